"""Writing persons of the 1940 Census in the forms of IPUMS USA."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.delimited import MAX_LINE
from bayesrisk._files.text import shown
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.text.source import (
    Source,
    list_sources,
    named,
    new_file,
    one_source,
    parse,
    write_table,
)
from bayesrisk.readers.text.tables import (
    CHUNK,
    Lines,
    Picked,
    Piece,
    csv_pieces,
    digit_matrix,
    extra_column,
    header_of,
    joined,
    known_states,
    line_pieces,
    pieces_of,
    texts,
)
from bayesrisk.tables import Records, Schema

# -----------------------------------------------------------------------------
# Codes of the 1940 Census in IPUMS USA, and the records made of them.
#
# Kinds of quarters as the 2020 disclosure avoidance system recoded them for its 1940 tests: types 1
# and 5 do not occur; type 9, "other and unknown", counts as a household where GQ says so.


ADULT = 18  # as in the 2020 redistricting data, not the voting age of 1940
#: Types of quarters that occur, by their kind 0 to 7.
QUARTERS = (0, 2, 3, 4, 6, 7, 8, 9)
#: General codes of Hispanic origin; 9 is "not reported".
HISPANIC = (0, 1, 2, 3, 4, 9)
RACES = 9
GQ_CODES = 6
_HOUSEHOLDS = (1, 2, 5)
_UNKNOWN = 9
#: Digits of state, county, supervisor's district and enumeration district.
WIDTHS = (2, 4, 3, 4)


def hhgq_of(gq: IntArray, gqtype: IntArray) -> IntArray:
    """Return the kind of quarters, 0 to 7."""
    kind = np.searchsorted(np.array(QUARTERS), gqtype).astype(np.int64)
    return np.where((gqtype == _UNKNOWN) & np.isin(gq, _HOUSEHOLDS), 0, kind)


def place_of(state: IntArray, county: IntArray, supdist: IntArray, enumdist: IntArray) -> Any:
    """Return 13-digit codes of enumeration districts."""
    code = ((state * 10**4 + county) * 10**3 + supdist) * 10**4 + enumdist
    return texts(digit_matrix(code, sum(WIDTHS)))


def records_of(places: Any, columns: dict[str, IntArray]) -> Records:
    """Return records from checked codes of IPUMS."""
    age = columns["AGE"]
    table = {
        "enumdist": places,
        "hhgq": columns["hhgq"].astype(np.int16),
        "votingage": (age >= ADULT).astype(np.int16),
        "hispanic": np.minimum(columns["HISPAN"], 5).astype(np.int16),
        "cenrace": (columns["RACE"] - 1).astype(np.int16),
        "household": columns["SERIAL"],
        "person": columns["PERNUM"].astype(np.int32),
        "sex": (columns["SEX"] - 1).astype(np.int16),
        "age": age.astype(np.int16),
    }
    return Records(Schema.named("census-1940"), pa.table(table))


# -----------------------------------------------------------------------------
# The DDI codebook of an IPUMS extract: where each variable stands in a line.
#
# XML from elsewhere is not trusted: a document type, and with it every entity, is refused.


_CODEBOOK_BYTES = 2**26
_PIECE = 2**16
_SPACE = "ddi:codebook:2_5"


@dataclass(frozen=True)
class Variable:
    """A variable: its first character in a line, from 0, and the one after its last."""

    name: str
    start: int
    stop: int


def read_ddi(path: str | Path) -> dict[str, Variable]:
    """Return the variables of a rectangular extract by their names, in capitals."""
    source = list_sources(path)[0]
    name = source.name
    book = _Codebook(name)
    with source.raw() as (stream, _):
        size = 0
        for _ in parse(
            name, iter(lambda: stream.read(_PIECE), b""), start=book.start, end=book.end
        ):
            size += _PIECE
            if size > _CODEBOOK_BYTES:
                raise DataError(f"{name}: must be at most {_CODEBOOK_BYTES} bytes long, got more")
    if not book.found:
        raise DataError(f"{name}: must describe variables, got none")
    return book.found


class _Codebook:
    """What has been read of a codebook."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: dict[str, Variable] = {}
        self.root: str | None = None
        self.title: str | None = None
        self.place: dict[str, str] | None = None

    def start(self, tag: str, about: dict[str, str]) -> None:
        """Take in a tag."""
        if self.root is None:
            self.root = tag
            if tag != "codeBook":
                raise DataError(f"{self.name}: must be a DDI codebook, got {shown(tag)}")
        elif tag == "fileStrc" and about.get("type", "rectangular") != "rectangular":
            raise DataError(
                f"{self.name}: must describe a rectangular file, "
                f"got {shown(about['type'])}; ask for "
                "a rectangular extract"
            )
        elif tag == "var":
            self.title, self.place = (about.get("name") or about.get("ID") or "").upper(), None
        elif tag == "location" and self.place is None:
            self.place = about

    def end(self, tag: str) -> None:
        """Take in the end of a variable."""
        if tag != "var" or self.title is None:
            return
        title, place = self.title, self.place
        where = f"{self.name}: variable {title!r}"
        if not title or place is None:
            raise DataError(f"{where}: must have a name and a location")
        with named(where):
            start, stop = int(place.get("StartPos", "")), int(place.get("EndPos", ""))
        if not 1 <= start <= stop <= MAX_LINE:
            raise DataError(f"{where}: must be in a line, got {start}-{stop}")
        self.found[title] = Variable(title, start - 1, stop)
        self.title = None


def write_ddi(variables: dict[str, Variable], data: str) -> bytes:
    """Return the codebook of a fixed-width file."""
    root = ElementTree.Element("codeBook", {"xmlns": _SPACE, "version": "2.5"})
    text = ElementTree.SubElement(ElementTree.SubElement(root, "fileDscr"), "fileTxt")
    ElementTree.SubElement(text, "fileName").text = data
    ElementTree.SubElement(text, "fileStrc", {"type": "rectangular"})
    described = ElementTree.SubElement(root, "dataDscr")
    for variable in variables.values():
        entry = ElementTree.SubElement(
            described, "var", {"ID": variable.name, "name": variable.name, "dcml": "0"}
        )
        width = str(variable.stop - variable.start)
        place = {"StartPos": str(variable.start + 1), "EndPos": str(variable.stop), "width": width}
        ElementTree.SubElement(entry, "location", place)
    text_of: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text_of + b"\n"


# -----------------------------------------------------------------------------
# The 1940 Census from IPUMS USA: the test file of the disclosure avoidance system, and extracts.
#
# ``EXT1940USCB.dat`` is fixed-width and hierarchical: a line H for each household, then a line P
# for each person in it.  Extracts that users make are rectangular, fixed-width with a DDI codebook
# or CSV.  Positions as the Census Bureau's published programs read them.


_H, _P = ord("H"), ord("P")
_LINE = 140  # characters of a line, about
_BYTES = 2**22  # read at a time at most: larger pieces leave the cache
_YEAR = 1940
#: First character, from 0, and the one after the last.
HOUSEHOLD = MappingProxyType(
    {
        "SERIAL": (7, 15),
        "NUMPREC": (15, 17),
        "STATEFIP": (53, 55),
        "COUNTY": (55, 59),
        "GQ": (93, 94),
        "GQTYPE": (94, 95),
        "ENUMDIST": (124, 128),
        "SUPDIST": (128, 131),
    }
)
PERSON = MappingProxyType(
    {
        "SERIAL": (7, 15),
        "PERNUM": (15, 19),
        "RELATE": (66, 68),
        "SEX": (72, 73),
        "AGE": (73, 76),
        "RACE": (84, 85),
        "HISPAN": (88, 89),
        "BPL": (92, 95),
        "CITIZEN": (117, 118),
    }
)
_PLACE = ("STATEFIP", "COUNTY", "SUPDIST", "ENUMDIST")
_MANY = 99  # persons of a household that its two characters can say
#: Variables of an extract with their bounds.
EXTRACT = MappingProxyType(
    {
        "YEAR": (_YEAR, _YEAR),
        "SERIAL": (1, 10**8 - 1),
        "PERNUM": (1, 9999),
        "STATEFIP": (1, 99),
        "COUNTYICP": (0, 9999),
        "SUPDIST": (0, 999),
        "ENUMDIST": (0, 9999),
        "GQ": (0, GQ_CODES),
        "GQTYPE": (0, 9),
        "SEX": (1, 2),
        "AGE": (0, 120),
        "RACE": (1, RACES),
        "HISPAN": (0, 9),
    }
)


def iter_ipums_1940(
    path: str | Path, *, ddi: str | Path | None = None, chunk: int = CHUNK
) -> Iterator[Records]:
    """Read persons of the 1940 Census from a file of IPUMS USA, a piece at a time.

    Parameters
    ----------
    path : path-like
        ``EXT1940USCB.dat`` (hierarchical, fixed-width), or a rectangular extract: CSV, or
        fixed-width with its codebook.  Also gzip or ZIP.
    ddi : path-like, optional
        The DDI codebook (XML) of a fixed-width extract; without one a file that is not CSV is read
        as ``EXT1940USCB.dat``.
    chunk : int, optional
        Rows in memory at a time, about.

    Yields
    ------
    Records
        Schema ``census-1940`` with columns ``household`` (SERIAL), ``person`` (PERNUM), ``sex`` (0
        male, 1 female) and ``age`` besides.  An extract must hold YEAR, SERIAL, PERNUM, STATEFIP,
        COUNTYICP, SUPDIST, ENUMDIST, GQ, GQTYPE, SEX, AGE, RACE and HISPAN.

    Raises
    ------
    DataError
        If a line is too short or of no known kind, a person without its household, a household
        without its persons, or a value out of range.

    Examples
    --------
    >>> from bayesrisk import DataError
    >>> from bayesrisk.readers import iter_ipums_1940
    >>> try:
    ...     list(iter_ipums_1940("no-such-file.dat"))
    ... except DataError as error:
    ...     print(error)
    no-such-file.dat: no such file
    """
    rows = check.integer(chunk, "chunk", lower=1)
    if ddi is not None:
        check.path(ddi, "ddi")
    source = one_source(path, ".dat", ".csv")
    if source.base.endswith(".csv"):
        if ddi is not None:
            raise ArgumentError(f"ddi must not be given with a CSV file, got {shown(str(ddi))}")
        yield from _from_csv(source, rows)
    elif ddi is not None:
        yield from _from_fixed(source, read_ddi(ddi), str(ddi), rows)
    else:
        yield from _from_hierarchy(source, rows)


def read_ipums_1940(path: str | Path, *, ddi: str | Path | None = None) -> Records:
    r"""Read all persons of the 1940 Census in a file of IPUMS USA into memory.

    Parameters
    ----------
    path : path-like
        As for :func:`iter_ipums_1940`.
    ddi : path-like, optional
        As for :func:`iter_ipums_1940`.

    Returns
    -------
    Records
        Schema ``census-1940``.

    Raises
    ------
    ArgumentError
        If a codebook is given with a CSV file.
    DataError
        As for :func:`iter_ipums_1940`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from bayesrisk.readers import read_ipums_1940
    >>> text = ("YEAR,SERIAL,PERNUM,STATEFIP,COUNTYICP,SUPDIST,ENUMDIST,GQ,GQTYPE,SEX,AGE,RACE,"
    ...         "HISPAN\n1940,7,1,37,550,1,21,1,0,2,41,2,0\n")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "usa_00001.csv")
    ...     _ = file.write_text(text)
    ...     read_ipums_1940(file).table.column("enumdist").to_pylist()
    ['3705500010021']
    """
    return joined(iter_ipums_1940(path, ddi=ddi), path)


def _from_columns(
    whole: Callable[[str, int, int], IntArray], check_codes: Callable[[str, Any, str], None]
) -> Records:
    """Return records from the columns of an extract."""
    values = {name: whole(name, *bounds) for name, bounds in EXTRACT.items()}
    check_codes("STATEFIP", known_states(_two_digits(values["STATEFIP"])), "a state")
    check_codes("GQTYPE", np.isin(values["GQTYPE"], QUARTERS), "0, 2 to 4 or 6 to 9")
    check_codes("HISPAN", np.isin(values["HISPAN"], HISPANIC), "0 to 4 or 9")
    values["hhgq"] = hhgq_of(values["GQ"], values["GQTYPE"])
    place = (values[n] for n in ("STATEFIP", "COUNTYICP", "SUPDIST", "ENUMDIST"))
    return records_of(place_of(*place), values)


def _two_digits(state: IntArray) -> NDArray[np.uint8]:
    return np.stack([state // 10 + 48, state % 10 + 48], axis=1).astype(np.uint8)


def _from_csv(source: Source, chunk: int) -> Iterator[Records]:
    header = header_of(source)
    names = {name.upper(): name for name in header}
    _check_variables(names, source.name)
    wanted = [names[name] for name in EXTRACT]
    for piece in csv_pieces(source, header, wanted=wanted, whole=wanted, chunk=chunk):

        def whole(name: str, low: int, high: int, piece: Piece = piece) -> IntArray:
            return piece.whole(names[name], low, high)

        def check_codes(name: str, good: Any, rule: str, piece: Piece = piece) -> None:
            piece.check(names[name], good, rule)

        yield _from_columns(whole, check_codes)


def _check_variables(names: Any, source: str) -> None:
    for name in EXTRACT:
        if name not in names:
            raise DataError(f"{source}: must have a variable {name}; has {', '.join(names)}")


def _from_fixed(
    source: Source, variables: dict[str, Variable], ddi: str, chunk: int
) -> Iterator[Records]:
    _check_variables(variables, ddi)
    width = max(v.stop for v in variables.values()) + 1
    for lines in line_pieces(source, min(chunk * width, _BYTES)):
        rows = Picked(lines, np.arange(len(lines)))

        def whole(name: str, low: int, high: int, rows: Picked = rows) -> IntArray:
            place = variables[name]
            return rows.whole(name, place.start, place.stop, low, high)

        def check_codes(name: str, good: Any, rule: str, rows: Picked = rows) -> None:
            place = variables[name]
            rows.check(name, good, rule, rows.text(place.start, place.stop))

        yield _from_columns(whole, check_codes)


class _Households:
    """Households of a piece, the last of the piece before first: persons may follow it here."""

    def __init__(self) -> None:
        self.place = np.zeros((0, sum(WIDTHS)), dtype=np.uint8)
        self.serial = self.hhgq = self.persons = np.zeros(0, dtype=np.int64)
        self.seen = np.zeros(0, dtype=np.int64)

    def follow(self, houses: Picked) -> None:
        """Keep the last household and add those of the next piece."""
        fields = [houses.digits(name, *HOUSEHOLD[name]) for name in _PLACE]
        houses.check("STATEFIP", known_states(fields[0]), "a state", fields[0])
        gq = houses.whole("GQ", *HOUSEHOLD["GQ"], 0, GQ_CODES)
        gqtype = houses.whole("GQTYPE", *HOUSEHOLD["GQTYPE"], 0, 9)
        field = houses.text(*HOUSEHOLD["GQTYPE"])
        houses.check("GQTYPE", np.isin(gqtype, QUARTERS), "0, 2 to 4 or 6 to 9", field)
        serial = houses.whole("SERIAL", *HOUSEHOLD["SERIAL"], 1, 10**8 - 1)
        persons = houses.whole("NUMPREC", *HOUSEHOLD["NUMPREC"], 0, _MANY)
        self.place = np.concatenate([self.place[-1:], np.hstack(fields)])
        self.serial = np.concatenate([self.serial[-1:], serial])
        self.hhgq = np.concatenate([self.hhgq[-1:], hhgq_of(gq, gqtype)])
        self.persons = np.concatenate([self.persons[-1:], persons])
        self.seen = np.concatenate([self.seen[-1:], np.zeros(len(houses), dtype=np.int64)])

    def check_complete(self, name: str, *, last: bool) -> None:
        """Refuse a household with another number of persons than it says."""
        ended = slice(None) if last else slice(None, -1)
        said, seen = self.persons[ended], self.seen[ended]
        wrong = (said != seen) & ~((said == _MANY) & (seen > _MANY))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise DataError(
                f"{name}: household {self.serial[at]}, column 'NUMPREC': must be followed by "
                f"{said[at]} persons, got {seen[at]}"
            )


def _from_hierarchy(source: Source, chunk: int) -> Iterator[Records]:
    households = _Households()
    empty = True
    for lines in line_pieces(source, min(chunk * _LINE, _BYTES)):
        empty = False
        yield _persons(lines, households)
    if empty:
        raise DataError(f"{source.name}: must have at least one line, got none")
    households.check_complete(source.name, last=True)


def _persons(lines: Lines, households: _Households) -> Records:
    kind = Picked(lines, np.arange(len(lines)))
    first = kind.text(0, 1)
    kind.check("RECTYPE", (first[:, 0] == _H) | (first[:, 0] == _P), "H or P", first)
    house_rows = np.flatnonzero(first[:, 0] == _H)
    person_rows = np.flatnonzero(first[:, 0] == _P)
    carried = int(households.serial.size > 0)
    households.follow(lines.take(house_rows))
    persons = lines.take(person_rows)
    owner = np.searchsorted(house_rows, person_rows) - 1 + carried
    field = persons.text(*PERSON["SERIAL"])
    persons.check("SERIAL", owner >= 0, "after the line of its household", field)
    serial = persons.whole("SERIAL", *PERSON["SERIAL"], 1, 10**8 - 1)
    persons.check("SERIAL", serial == households.serial[owner], "that of its household", field)
    households.seen += np.bincount(owner, minlength=households.seen.size)
    households.check_complete(lines.name, last=False)
    bounds = {name: EXTRACT[name] for name in ("PERNUM", "SEX", "AGE", "RACE", "HISPAN")}
    columns = {n: persons.whole(n, *PERSON[n], *limits) for n, limits in bounds.items()}
    origin = persons.text(*PERSON["HISPAN"])
    persons.check("HISPAN", np.isin(columns["HISPAN"], HISPANIC), "0 to 4 or 9", origin)
    columns |= {"SERIAL": serial, "hhgq": households.hhgq[owner]}
    return records_of(texts(households.place[owner]), columns)


# -----------------------------------------------------------------------------


_HOUSEHOLD_LINE, _PERSON_LINE = 131, 118
_NEEDED = {"household": 10**8 - 1, "person": 9999, "sex": 1, "age": 120}
_IN_HOUSEHOLD, _IN_QUARTERS = 1, 4  # GQ
_CUTS = tuple(pairwise((0, 2, 6, 9, 13)))


def write_ipums_1940(
    records: Records | Iterable[Records], path: str | Path, *, ddi: str | Path | None = None
) -> None:
    """Write persons of the 1940 Census in a form of IPUMS USA.

    Parameters
    ----------
    records : Records or iterable of Records
        Schema ``census-1940`` with columns ``household``, ``person``, ``sex`` and ``age`` (see
        :func:`iter_ipums_1940`); the persons of a household one after another.
    path : path-like
        File to be made; it must not exist.  ``.csv`` gets an extract; ``.dat`` gets a fixed-width
        extract if ``ddi`` is given, else the hierarchical form of ``EXT1940USCB.dat``.
    ddi : path-like, optional
        DDI codebook to be made beside a fixed-width extract.

    Raises
    ------
    ArgumentError
        If the path ends otherwise, or the records have another schema, lack a column, have ages
        that disagree with ``votingage``, or households in several places or of several kinds.
    OutputError
        If a file exists or cannot be written.

    Examples
    --------
    >>> from bayesrisk import ArgumentError
    >>> from bayesrisk.readers import write_ipums_1940
    >>> try:
    ...     write_ipums_1940([], "usa.txt")
    ... except ArgumentError as error:
    ...     print(error)
    path must end in .csv or .dat, got 'usa.txt'
    """
    target = check.path(path, "path")
    if ddi is not None:
        check.path(ddi, "ddi")
    if target.suffix.lower() not in (".csv", ".dat"):
        raise ArgumentError(f"path must end in .csv or .dat, got {shown(str(path))}")
    if target.suffix.lower() == ".csv" and ddi is not None:
        raise ArgumentError(f"ddi must not be given with a CSV file, got {shown(str(ddi))}")
    pieces = (_columns(piece) for piece in pieces_of(records, "census-1940"))
    if target.suffix.lower() == ".csv":
        write_table(target, list(EXTRACT), (pa.table(columns) for columns in pieces))
    elif ddi is not None:
        _write_fixed(target, ddi, pieces)
    else:
        with new_file(target) as stream:
            _write_hierarchy(stream, pieces)


def _columns(records: Records) -> dict[str, IntArray]:
    """Return the variables of an extract."""
    kept = {name: extra_column(records, name, largest) for name, largest in _NEEDED.items()}
    if np.any((kept["age"] >= ADULT) != (records.codes("votingage") == 1)):
        raise ArgumentError("records must have votingage 1 where age is 18 or more, else 0")
    points = np.ascontiguousarray(records.geoids, dtype="U13").view(np.uint32).reshape(-1, 13)
    digits = points.astype(np.int64) - 48
    place = [digits[:, a:b] @ 10 ** np.arange(b - a - 1, -1, -1) for a, b in _CUTS]
    kind, origin = records.codes("hhgq"), records.codes("hispanic")
    return {
        "YEAR": np.full(len(records), 1940),
        "SERIAL": kept["household"].astype(np.int64),
        "PERNUM": kept["person"].astype(np.int64),
        **dict(zip(("STATEFIP", "COUNTYICP", "SUPDIST", "ENUMDIST"), place, strict=True)),
        "GQ": np.where(kind > 0, _IN_QUARTERS, _IN_HOUSEHOLD),
        "GQTYPE": np.array(QUARTERS)[kind],
        "SEX": kept["sex"].astype(np.int64) + 1,
        "AGE": kept["age"].astype(np.int64),
        "RACE": records.codes("cenrace") + 1,
        "HISPAN": np.array(HISPANIC)[origin],
    }


def _write_fixed(target: Path, ddi: str | Path, pieces: Iterator[dict[str, IntArray]]) -> None:
    variables, start = {}, 0
    for name, (_, largest) in EXTRACT.items():
        stop = start + len(str(largest))
        variables[name] = Variable(name, start, stop)
        start = stop
    with new_file(ddi) as book, new_file(target) as stream:
        book.write(write_ddi(variables, target.name))
        for columns in pieces:
            lines = np.full((columns["YEAR"].size, start + 1), ord("\n"), dtype=np.uint8)
            for name, place in variables.items():
                _put(lines, columns[name], place.start, place.stop)
            stream.write(lines.tobytes())


def _put(lines: NDArray[np.uint8], values: IntArray, start: int, stop: int) -> None:
    lines[:, start:stop] = digit_matrix(values, stop - start)


def _write_hierarchy(stream: BinaryIO, pieces: Iterator[dict[str, IntArray]]) -> None:
    last = -1
    for columns in pieces:
        serial = columns["SERIAL"]
        if not serial.size:
            continue
        first = np.flatnonzero(np.concatenate([[True], serial[1:] != serial[:-1]]))
        owner = np.cumsum(np.isin(np.arange(serial.size), first)) - 1
        for name in ("STATEFIP", "COUNTYICP", "SUPDIST", "ENUMDIST", "GQ", "GQTYPE"):
            if np.any(columns[name] != columns[name][first][owner]):
                raise ArgumentError(f"records of a household must have one {name}")
        if np.unique(serial[first]).size != first.size or serial[0] == last:
            raise ArgumentError("records of a household must follow one another in one piece")
        last = int(serial[-1])
        stream.write(_lines(columns, first, np.bincount(owner)))


def _lines(columns: dict[str, IntArray], first: IntArray, size: IntArray) -> bytes:
    houses = _blank(first.size, _HOUSEHOLD_LINE, "H")
    values = {**columns, "COUNTY": columns["COUNTYICP"]}
    for name, (start, stop) in HOUSEHOLD.items():
        numbers = np.minimum(size, 99) if name == "NUMPREC" else values[name][first]
        _put(houses, numbers, start, stop)
    persons = _blank(columns["YEAR"].size, _PERSON_LINE, "P")
    for name in ("SERIAL", "PERNUM", "SEX", "AGE", "RACE", "HISPAN"):
        _put(persons, columns[name], *PERSON[name])
    parts = []
    for house, start, count in zip(houses, first, size, strict=True):
        parts.append(house.tobytes())
        parts.append(persons[start : start + count].tobytes())
    return b"".join(parts)


def _blank(rows: int, width: int, kind: str) -> NDArray[np.uint8]:
    lines = np.full((rows, width + 1), ord(" "), dtype=np.uint8)
    lines[:, 0], lines[:, -1] = ord(kind), ord("\n")
    return lines

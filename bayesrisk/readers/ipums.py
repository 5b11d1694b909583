"""Persons of the 1940 Census from IPUMS USA: a hierarchical test file, and extracts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._files.delimited import MAX_LINE
from bayesrisk._files.text import shown
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.text.source import Source, list_sources, named, one_source
from bayesrisk.readers.text.tables import (
    CHUNK,
    Lines,
    Piece,
    csv_pieces,
    digit_matrix,
    header_of,
    joined,
    known_states,
    line_pieces,
    texts,
)
from bayesrisk.tables import Records, Schema

# Codes of the 1940 Census in IPUMS USA, and the records made of them.
#
# Kinds of quarters as the 2020 disclosure avoidance system recoded them for its 1940 tests: types 1
# and 5 do not occur; type 9, "other and unknown", counts as a household where GQ says so.


ADULT = 18  # as in the 2020 redistricting data, not the voting age of 1940
#: Types of quarters that occur, by their kind 0 to 7.
QUARTERS = (0, 2, 3, 4, 6, 7, 8, 9)
#: General codes of Hispanic origin; 9 is "not reported".
HISPANIC = (0, 1, 2, 3, 4, 9)
_CODES = MappingProxyType(
    {"GQTYPE": (QUARTERS, "0, 2 to 4 or 6 to 9"), "HISPAN": (HISPANIC, "0 to 4 or 9")}
)
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


def records_of(places: pa.Array, columns: dict[str, IntArray]) -> Records:
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


# The DDI codebook of an extract says where each variable stands in a line.

_CODEBOOK_BYTES = 2**26


class Variable(NamedTuple):
    """A variable: its first character in a line, from 0, and the one after its last."""

    name: str
    start: int
    stop: int


def read_ddi(path: str | Path) -> dict[str, Variable]:
    """Return the variables of a rectangular extract by their names, in capitals."""
    source = list_sources(path)[0]
    name = source.name
    with named(name, also=(ElementTree.ParseError, LookupError)):
        root = ElementTree.fromstring(source.read(_CODEBOOK_BYTES))  # noqa: S314 - resolves nothing
    if _plain(root.tag) != "codeBook":
        raise DataError(f"{name}: must be a DDI codebook, got {shown(_plain(root.tag))}")
    found: dict[str, Variable] = {}
    for entry in root.iter():
        kind = entry.get("type", "rectangular")
        if _plain(entry.tag) == "fileStrc" and kind != "rectangular":
            raise DataError(
                f"{name}: must describe a rectangular file, got {shown(kind)}; ask for a "
                "rectangular extract"
            )
        if _plain(entry.tag) != "var":
            continue
        title = (entry.get("name") or entry.get("ID") or "").upper()
        where = f"{name}: variable {title!r}"
        place = next((part for part in entry if _plain(part.tag) == "location"), None)
        if not title or place is None:
            raise DataError(f"{where}: must have a name and a location")
        with named(where):
            start, stop = int(place.get("StartPos", "")), int(place.get("EndPos", ""))
        if not 1 <= start <= stop <= MAX_LINE:
            raise DataError(f"{where}: must be in a line, got {start}-{stop}")
        found[title] = Variable(title, start - 1, stop)
    if not found:
        raise DataError(f"{name}: must describe variables, got none")
    return found


def _plain(tag: str) -> str:
    return tag.rpartition("}")[2]


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

    Examples
    --------
    >>> next(iter_ipums_1940("EXT1940USCB.dat"))
    Traceback (most recent call last):
    bayesrisk.exceptions.DataError: EXT1940USCB.dat: no such file
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
    path, ddi
        As for :func:`iter_ipums_1940`.

    Returns
    -------
    Records
        Schema ``census-1940``.

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


def _from_columns(piece: Piece | Lines, names: Mapping[str, str]) -> Records:
    """Return records from the columns of an extract, by what the file calls them."""
    values = {name: piece.whole(names[name], *bounds) for name, bounds in EXTRACT.items()}
    piece.check(names["STATEFIP"], known_states(digit_matrix(values["STATEFIP"], 2)), "a state")
    for name, (codes, rule) in _CODES.items():
        piece.check(names[name], np.isin(values[name], codes), rule)
    values["hhgq"] = hhgq_of(values["GQ"], values["GQTYPE"])
    place = ("STATEFIP", "COUNTYICP", "SUPDIST", "ENUMDIST")
    parts = [digit_matrix(values[n], width) for n, width in zip(place, WIDTHS, strict=True)]
    return records_of(texts(np.hstack(parts)), values)


def _from_csv(source: Source, chunk: int) -> Iterator[Records]:
    header = header_of(source)
    names = {name.upper(): name for name in header}
    _check_variables(names, source.name)
    wanted = [names[name] for name in EXTRACT]
    for piece in csv_pieces(source, header, wanted=wanted, whole=wanted, chunk=chunk):
        yield _from_columns(piece, names)


def _check_variables(names: Iterable[str], source: str) -> None:
    for name in EXTRACT:
        if name not in names:
            raise DataError(f"{source}: must have a variable {name}; has {', '.join(names)}")


def _from_fixed(
    source: Source, variables: dict[str, Variable], ddi: str, chunk: int
) -> Iterator[Records]:
    _check_variables(variables, ddi)
    fields = {name: (v.start, v.stop) for name, v in variables.items()}
    width = max(stop for _, stop in fields.values()) + 1
    for lines in line_pieces(source, fields, min(chunk * width, _BYTES)):
        yield _from_columns(lines, {name: name for name in fields})


class _Households:
    """Households of a piece, the last of the piece before first: persons may follow it here."""

    def __init__(self) -> None:
        self.place = np.zeros((0, sum(WIDTHS)), dtype=np.uint8)
        self.serial = self.hhgq = self.persons = np.zeros(0, dtype=np.int64)
        self.seen = np.zeros(0, dtype=np.int64)

    def follow(self, houses: Lines) -> None:
        """Keep the last household and add those of the next piece."""
        fields = [houses.matrix(n, w) for n, w in zip(_PLACE, WIDTHS, strict=True)]
        houses.check("STATEFIP", known_states(fields[0]), "a state")
        gq = houses.whole("GQ", 0, GQ_CODES)
        gqtype = houses.whole("GQTYPE", 0, 9)
        houses.check("GQTYPE", np.isin(gqtype, QUARTERS), _CODES["GQTYPE"][1])
        serial = houses.whole("SERIAL", 1, 10**8 - 1)
        persons = houses.whole("NUMPREC", 0, _MANY)
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
    for lines in line_pieces(source, {"RECTYPE": (0, 1)}, min(chunk * _LINE, _BYTES)):
        empty = False
        yield _persons(lines, households)
    if empty:
        raise DataError(f"{source.name}: must have at least one line, got none")
    households.check_complete(source.name, last=True)


def _persons(lines: Lines, households: _Households) -> Records:
    kind = lines.text("RECTYPE")[:, 0]
    lines.check("RECTYPE", (kind == _H) | (kind == _P), "H or P")
    house_rows, person_rows = np.flatnonzero(kind == _H), np.flatnonzero(kind == _P)
    carried = int(households.serial.size > 0)
    households.follow(replace(lines, fields=HOUSEHOLD).take(house_rows))
    persons = replace(lines, fields=PERSON).take(person_rows)
    owner = np.searchsorted(house_rows, person_rows) - 1 + carried
    persons.check("SERIAL", owner >= 0, "after the line of its household")
    serial = persons.whole("SERIAL", 1, 10**8 - 1)
    persons.check("SERIAL", serial == households.serial[owner], "that of its household")
    households.seen += np.bincount(owner, minlength=households.seen.size)
    households.check_complete(lines.name, last=False)
    needed = ("PERNUM", "SEX", "AGE", "RACE", "HISPAN")
    columns = {name: persons.whole(name, *EXTRACT[name]) for name in needed}
    persons.check("HISPAN", np.isin(columns["HISPAN"], HISPANIC), _CODES["HISPAN"][1])
    columns |= {"SERIAL": serial, "hhgq": households.hhgq[owner]}
    return records_of(texts(households.place[owner]), columns)

"""Extracts of IPUMS by their codebooks, and persons of the 1940 Census from IPUMS USA."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._files.delimited import MAX_LINE
from bayesrisk._files.text import gather, named
from bayesrisk._pandas import pandas as pd
from bayesrisk._validation import ByteArray, IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.readers import text as forms
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


def quarter_kinds(gq: IntArray, gqtype: IntArray) -> IntArray:
    """Return the kind of quarters, 0 to 7."""
    kind = np.searchsorted(np.array(QUARTERS), gqtype).astype(np.int64)
    return np.where((gqtype == _UNKNOWN) & np.isin(gq, _HOUSEHOLDS), 0, kind)


def census_records(places: pa.Array, columns: dict[str, IntArray]) -> Records:
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
_LONG = 19  # characters of a number that is not one of 64 bits


class Variable(NamedTuple):
    """A variable: its first character in a line, from 0, and the one after its last.

    ``decimals`` are digits after a point that is not written, ``labels`` the meanings of its
    values, and ``records`` the types of lines that have it; of a rectangular file there are none.
    """

    name: str
    start: int
    stop: int
    decimals: int = 0
    labels: Mapping[str, str] = MappingProxyType({})
    records: tuple[str, ...] = ()


class ExtractForm(NamedTuple):
    """The form of an extract: variables by name, and those with the type and the key of a line."""

    variables: dict[str, Variable]
    hierarchical: bool
    kind: str = "RECTYPE"
    key: str = "SERIAL"


def read_ddi(path: str | Path) -> ExtractForm:
    """Return the codebook of an extract; names of variables are in capitals."""
    source = forms.list_sources(path)[0]
    name = source.name
    with named(name, also=(ElementTree.ParseError, LookupError)):
        root = ElementTree.fromstring(source.read(_CODEBOOK_BYTES))  # noqa: S314 - resolves nothing
    if _plain(root.tag) != "codeBook":
        raise DataError(f"{name}: must be a DDI codebook, got {quote(_plain(root.tag))}")
    variables: dict[str, Variable] = {}
    structure, kind, key = "rectangular", "RECTYPE", "SERIAL"
    for entry in root.iter():
        tag = _plain(entry.tag)
        if tag == "fileStrc":
            structure = entry.get("type", structure)
            if structure not in ("rectangular", "hierarchical"):
                raise DataError(
                    f"{name}: must describe a rectangular or a hierarchical file, got "
                    f"{quote(structure)}"
                )
        elif tag == "recGrp":
            kind, key = (entry.get(n, d).upper() for n, d in (("recidvar", kind), ("keyvar", key)))
        elif tag == "var":
            variable = _variable(entry, name)
            variables[variable.name] = variable
    if not variables:
        raise DataError(f"{name}: must describe variables, got none")
    for wanted in (kind, key) if structure == "hierarchical" else ():
        if wanted not in variables:
            raise DataError(f"{name}: must describe the variable {wanted} of a hierarchical file")
    return ExtractForm(variables, structure == "hierarchical", kind, key)


def _variable(entry: ElementTree.Element, name: str) -> Variable:
    title = (entry.get("name") or entry.get("ID") or "").upper()
    prefix = f"{name}: variable {title!r}"
    parts = [(_plain(part.tag), part) for part in entry]
    place = next((part for tag, part in parts if tag == "location"), None)
    if not title or place is None:
        raise DataError(f"{prefix}: must have a name and a location")
    with named(prefix):
        start, stop = int(place.get("StartPos", "")), int(place.get("EndPos", ""))
        decimals = int(entry.get("dcml") or 0)
    if not 1 <= start <= stop <= MAX_LINE or not 0 <= decimals <= stop - start + 1:
        raise DataError(f"{prefix}: must be in a line, got {start}-{stop}, {decimals} decimals")
    labels = {}
    for category in (part for tag, part in parts if tag == "catgry"):
        fields = {_plain(part.tag): (part.text or "").strip() for part in category}
        labels[_value(fields.get("catValu", ""))] = fields.get("labl", "")
    return Variable(
        title, start - 1, stop, decimals, labels, tuple((entry.get("rectype") or "").split())
    )


def _value(text: str) -> str:
    """Return a value as it is compared: a whole number without zeros in front."""
    return str(int(text)) if text.lstrip("-").isdecimal() and len(text) < _LONG else text


def _plain(tag: str) -> str:
    return tag.rpartition("}")[2]


# Any extract: what its codebook says of each column, as a data frame.

_PERSON = "P"
#: Beginnings of labels of values that say nothing about a person.
_NOTHING = ("n/a", "niu", "not in universe", "missing", "unknown", "not reported")


def read_ipums(path: str | Path, *, ddi: str | Path) -> "pd.DataFrame":
    """Return an extract of IPUMS (USA, CPS, International, ...) with the labels of its codebook.

    A row for each record, of a hierarchical extract for each person, with the variables of the
    household.  A variable most of whose values have labels is categorical, in the order of its
    codes, a value without a label being called ``code 7``.  Any other, or one whose labels mostly
    say the value itself (an age), is a number, missing where the label begins with such as "N/A",
    "NIU", "Missing" or "Unknown"; or text.

    Parameters
    ----------
    path : path-like
        The extract: fixed-width or CSV, rectangular or hierarchical; also gzip or ZIP.
    ddi : path-like
        Its DDI codebook (XML).

    Examples
    --------
    >>> read_ipums("usa_00001.dat.gz", ddi="usa_00001.xml")
    Traceback (most recent call last):
    bayesrisk.exceptions.DataError: usa_00001.xml: no such file
    """
    check.path(path, "path")
    check.path(ddi, "ddi")
    book = read_ddi(ddi)
    source = forms.one_source(path, ".dat", ".csv")
    fixed = not source.base.endswith(".csv")
    pieces = _text_of_lines(source, book) if fixed else _text_of_csv(source, book)
    frames = gather(pieces, lambda piece: int(piece.memory_usage().sum()), source.name)
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    if not len(frame):
        raise DataError(f"{source.name}: must have at least one record, got none")
    if book.hierarchical:
        frame = _person_rows(frame, book, source.name)
    variables = {str(name): book.variables[str(name)] for name in frame}
    return pd.DataFrame({n: _labelled(frame[n], v, fixed=fixed) for n, v in variables.items()})


def _text_of_lines(source: forms.Source, book: ExtractForm) -> Iterator["pd.DataFrame"]:
    """Yield the columns of a fixed-width file as text, missing where a line has none."""
    for lines in forms.line_pieces(source, _BYTES):
        columns, every, kinds = {}, np.arange(lines.starts.size), None
        if book.hierarchical:
            kind = book.variables[book.kind]
            kinds = _stripped(lines.text(kind.start, kind.stop, every))
        for name, variable in book.variables.items():
            rows = every
            if kinds is not None and variable.records:
                rows = np.flatnonzero(np.isin(kinds, variable.records))
            column = np.full(every.size, None, dtype=object)
            column[rows] = _stripped(lines.text(variable.start, variable.stop, rows))
            columns[name] = column
        yield pd.DataFrame(columns)


def _stripped(matrix: ByteArray) -> TextArray:
    """Return rows of characters as text without blanks around them."""
    if not len(matrix):
        return np.zeros(0, dtype="<U1")
    rows = np.ascontiguousarray(matrix).view(f"S{matrix.shape[1]}").ravel()
    texts: TextArray = np.strings.strip(np.char.decode(rows, "latin-1"))
    return texts


def _text_of_csv(source: forms.Source, book: ExtractForm) -> Iterator["pd.DataFrame"]:
    """Yield the columns of a CSV file as text, missing where a line has none."""
    header = forms.header_names(source)
    for name in header:
        if name.upper() not in book.variables:
            raise DataError(f"{source.name}: column {quote(name)}: is not in the codebook")
    for piece in forms.csv_pieces(source, header, wanted=header, chunk=forms.CHUNK):
        frame = piece.table.to_pandas().rename(columns=str.upper).astype(object)
        for name in frame.columns if book.hierarchical else ():
            if records := book.variables[name].records:
                frame.loc[~frame[book.kind].isin(records), name] = None
        yield frame


def _person_rows(frame: "pd.DataFrame", book: ExtractForm, source: str) -> "pd.DataFrame":
    """Return the records of persons with the variables of the household before them."""
    kinds = frame[book.kind]
    person = kinds == _PERSON
    outer = [n for n, v in book.variables.items() if v.records and _PERSON not in v.records]
    head = frame[book.key].where(~person).ffill()
    strange = person & (head != frame[book.key])
    if strange.any():
        row = int(strange.to_numpy().argmax())
        raise DataError(
            f"{source}: line {row + 1}, column {book.key!r}: must be that of the household before, "
            f"got {quote(frame[book.key].iloc[row])}"
        )
    outer = [name for name in outer if name in frame]
    frame[outer] = frame[outer].ffill()
    records = {str(name): book.variables[str(name)].records for name in frame}
    columns = [n for n, kinds in records.items() if not kinds or n in outer or _PERSON in kinds]
    return frame.loc[person, columns].reset_index(drop=True)


def _labelled(column: "pd.Series", variable: Variable, *, fixed: bool) -> "pd.Series":
    """Return a column with labels, or as numbers; text where it is neither."""
    texts = column.mask(column == "")
    values = texts.dropna().drop_duplicates()
    labels = variable.labels
    numbers = sum(label.partition(" ")[0] == value for value, label in labels.items())
    meanings = {text: labels.get(_value(text)) for text in values}
    named_values = sum(label is not None for label in meanings.values())
    if 2 * numbers < len(labels) and 2 * named_values >= len(meanings):
        all_named = {text: label or f"code {text}" for text, label in meanings.items()}
        order = dict.fromkeys(label for label in labels.values() if label in meanings.values())
        order |= dict.fromkeys(all_named.values())
        return texts.map(all_named).astype(pd.CategoricalDtype([*order]))
    nothing = [t for t, label in meanings.items() if label and label.lower().startswith(_NOTHING)]
    rest = texts.mask(texts.isin(nothing))
    try:
        series = pd.to_numeric(rest)
    except (ValueError, TypeError):
        return texts
    if fixed and variable.decimals:
        return series / 10.0**variable.decimals
    whole = (series.dropna() == series.dropna().round()).all()
    return series.astype("Int64") if whole else series


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
    path: str | Path, *, ddi: str | Path | None = None, chunk: int = forms.CHUNK
) -> Iterator[Records]:
    """Yield persons of the 1940 Census from a file of IPUMS USA, a piece at a time.

    Schema ``census-1940`` with columns ``household`` (SERIAL), ``person`` (PERNUM), ``sex`` (0
    male, 1 female) and ``age`` besides.  An extract must hold YEAR, SERIAL, PERNUM, STATEFIP,
    COUNTYICP, SUPDIST, ENUMDIST, GQ, GQTYPE, SEX, AGE, RACE and HISPAN.

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
    """
    rows = check.integer(chunk, "chunk", lower=1)
    if ddi is not None:
        check.path(ddi, "ddi")
    source = forms.one_source(path, ".dat", ".csv")
    if source.base.endswith(".csv"):
        if ddi is not None:
            raise ArgumentError(f"ddi must not be given with a CSV file, got {quote(str(ddi))}")
        yield from _from_csv(source, rows)
    elif ddi is not None:
        book = read_ddi(ddi)
        if book.hierarchical:
            raise DataError(f"{ddi}: must describe a rectangular file; ask for such an extract")
        _check_variables(book.variables, str(ddi))
        fields = {name: (book.variables[name].start, book.variables[name].stop) for name in EXTRACT}
        width = max(variable.stop for variable in book.variables.values()) + 1
        for lines in forms.line_pieces(source, min(rows * width, _BYTES)):
            yield _from_columns(lines.piece(fields), {name: name for name in fields})
    else:
        yield from _from_hierarchy(source, rows)


def read_ipums_1940(path: str | Path, *, ddi: str | Path | None = None) -> Records:
    r"""Return all persons of the 1940 Census in a file of IPUMS USA, of schema ``census-1940``.

    Parameters
    ----------
    path, ddi
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
    return forms.joined(iter_ipums_1940(path, ddi=ddi), path)


def _from_columns(piece: forms.Piece, names: Mapping[str, str]) -> Records:
    """Return records from the columns of an extract, by what the file calls them."""
    values = {name: piece.whole(names[name], *bounds) for name, bounds in EXTRACT.items()}
    piece.check(
        names["STATEFIP"], forms.known_states(forms.digit_matrix(values["STATEFIP"], 2)), "a state"
    )
    for name, (codes, rule) in _CODES.items():
        piece.check(names[name], np.isin(values[name], codes), rule)
    values["hhgq"] = quarter_kinds(values["GQ"], values["GQTYPE"])
    place = ("STATEFIP", "COUNTYICP", "SUPDIST", "ENUMDIST")
    parts = [forms.digit_matrix(values[n], width) for n, width in zip(place, WIDTHS, strict=True)]
    return census_records(forms.texts(np.hstack(parts)), values)


def _from_csv(source: forms.Source, chunk: int) -> Iterator[Records]:
    header = forms.header_names(source)
    names = {name.upper(): name for name in header}
    _check_variables(names, source.name)
    wanted = [names[name] for name in EXTRACT]
    for piece in forms.csv_pieces(source, header, wanted=wanted, whole=wanted, chunk=chunk):
        yield _from_columns(piece, names)


def _check_variables(names: Iterable[str], source: str) -> None:
    for name in EXTRACT:
        if name not in names:
            raise DataError(f"{source}: must have a variable {name}; has {', '.join(names)}")


class _Households:
    """Households of a piece, the last of the piece before first: persons may follow it here."""

    def __init__(self) -> None:
        self.place = np.zeros((0, sum(WIDTHS)), dtype=np.uint8)
        self.serial = self.hhgq = self.persons = np.zeros(0, dtype=np.int64)
        self.members = np.zeros(0, dtype=np.int64)

    def follow(self, houses: forms.Piece) -> None:
        """Keep the last household and add those of the next piece."""
        fields = [houses.matrix(n, w) for n, w in zip(_PLACE, WIDTHS, strict=True)]
        houses.check("STATEFIP", forms.known_states(fields[0]), "a state")
        gq = houses.whole("GQ", 0, GQ_CODES)
        gqtype = houses.whole("GQTYPE", 0, 9)
        houses.check("GQTYPE", np.isin(gqtype, QUARTERS), _CODES["GQTYPE"][1])
        serial = houses.whole("SERIAL", 1, 10**8 - 1)
        persons = houses.whole("NUMPREC", 0, _MANY)
        self.place = np.concatenate([self.place[-1:], np.hstack(fields)])
        self.serial = np.concatenate([self.serial[-1:], serial])
        self.hhgq = np.concatenate([self.hhgq[-1:], quarter_kinds(gq, gqtype)])
        self.persons = np.concatenate([self.persons[-1:], persons])
        self.members = np.concatenate([self.members[-1:], np.zeros(len(houses), dtype=np.int64)])

    def check_complete(self, name: str, *, last: bool) -> None:
        """Refuse a household with another number of persons than it says."""
        ended = slice(None) if last else slice(None, -1)
        stated, members = self.persons[ended], self.members[ended]
        wrong = (stated != members) & ~((stated == _MANY) & (members > _MANY))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{name}: household {self.serial[row]}, column 'NUMPREC': must be followed by "
                f"{stated[row]} persons, got {members[row]}"
            )


def _from_hierarchy(source: forms.Source, chunk: int) -> Iterator[Records]:
    households = _Households()
    empty = True
    for lines in forms.line_pieces(source, min(chunk * _LINE, _BYTES)):
        empty = False
        yield _persons(lines, households)
    if empty:
        raise DataError(f"{source.name}: must have at least one line, got none")
    households.check_complete(source.name, last=True)


def _persons(lines: forms.Lines, households: _Households) -> Records:
    kinds = lines.piece({"RECTYPE": (0, 1)})
    kind = kinds.text("RECTYPE", 1, "H or P")[:, 0]
    kinds.check("RECTYPE", (kind == _H) | (kind == _P), "H or P")
    house_rows, person_rows = np.flatnonzero(kind == _H), np.flatnonzero(kind == _P)
    carried = int(households.serial.size > 0)
    households.follow(lines.piece(HOUSEHOLD, house_rows))
    needed = ("PERNUM", "SEX", "AGE", "RACE", "HISPAN")
    persons = lines.piece({name: PERSON[name] for name in ("SERIAL", *needed)}, person_rows)
    owner = np.searchsorted(house_rows, person_rows) - 1 + carried
    persons.check("SERIAL", owner >= 0, "after the line of its household")
    serial = persons.whole("SERIAL", 1, 10**8 - 1)
    persons.check("SERIAL", serial == households.serial[owner], "that of its household")
    households.members += np.bincount(owner, minlength=households.members.size)
    households.check_complete(lines.name, last=False)
    columns = {name: persons.whole(name, *EXTRACT[name]) for name in needed}
    persons.check("HISPAN", np.isin(columns["HISPAN"], HISPANIC), _CODES["HISPAN"][1])
    columns |= {"SERIAL": serial, "hhgq": households.hhgq[owner]}
    return census_records(forms.texts(households.place[owner]), columns)

"""IPUMS extracts by their codebooks, and persons of the 1940 Census from IPUMS USA."""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa

from bayesrisk._base import validation as check
from bayesrisk._base.calls import caller_level
from bayesrisk._base.disk.delimited import MAX_LINE
from bayesrisk._base.disk.text import gather, named
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import ByteArray, IntArray, TextArray
from bayesrisk.census.readers import text as forms
from bayesrisk.exceptions import ArgumentError, DataError, DataWarning, quote
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
    """Return the kind of quarters (0 to 7) for codes of GQ and GQTYPE."""
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
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_LONG = 19  # characters of a number that is not one of 64 bits
# What instructions say of a code: "999 = NIU", "0000:  Not in Universe".
_TOLD = re.compile(r"^(?:Codes)?[ \t]*(-?\d+(?:\.\d+)?)[ \t]*[=:][ \t]*([A-Za-z].*)$", re.MULTILINE)


class Variable(NamedTuple):
    """A variable of an extract: its columns ``start`` to ``stop`` in a line, counted from 0.

    ``decimals`` are digits after a point that is not written, and ``labels`` the meanings of its
    values. ``records`` are the types of lines that have it, empty for a rectangular file.
    """

    name: str
    start: int
    stop: int
    decimals: int = 0
    labels: Mapping[str, str] = MappingProxyType({})
    records: tuple[str, ...] = ()


class ExtractForm(NamedTuple):
    """The form of an extract: its variables, and the kinds of lines if it is hierarchical.

    ``kind`` is the variable that has them, ``kinds`` their titles, and ``keys`` the variables by
    which lines of one household belong together.
    """

    variables: dict[str, Variable]
    hierarchical: bool
    kind: str
    kinds: dict[str, str]
    keys: dict[str, list[str]]


def read_ddi(path: str | Path) -> ExtractForm:
    """Return an extract's codebook, with variables' names in capitals."""
    source = forms.list_sources(path)[0]
    name = source.name
    raw = source.read(_CODEBOOK_BYTES)
    if re.match(rb"(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?<(!doctype\s+)?html\b", raw, re.IGNORECASE):
        raise DataError(
            f"{name}: must be a DDI codebook, is a web page: save the file behind the link DDI of "
            "the extract, which ends in .xml, and not what a browser shows of it"
        )
    with named(name, also=(ElementTree.ParseError, LookupError)):
        root = ElementTree.fromstring(raw)  # noqa: S314 - resolves nothing
    if _plain(root.tag) != "codeBook":
        raise DataError(f"{name}: must be a DDI codebook, got {quote(_plain(root.tag))}")
    variables: dict[str, Variable] = {}
    structure, kind = "rectangular", "RECTYPE"
    kinds: dict[str, str] = {}
    keys: dict[str, list[str]] = {}
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
            kind, value = entry.get("recidvar", kind).upper(), entry.get("rectype", "")
            kinds[value] = " ".join(p.text or "" for p in entry if _plain(p.tag) == "labl").strip()
            keys[value] = entry.get("keyvar", "").upper().split()
        elif tag == "var":
            variable = _variable(entry, name)
            variables[variable.name] = variable
    if not variables:
        raise DataError(f"{name}: must describe variables, got none")
    if structure == "hierarchical":
        for wanted in {kind: 0, **dict.fromkeys(key for part in keys.values() for key in part)}:
            if wanted not in variables:
                rule = f"must describe the variable {wanted} of a hierarchical file"
                raise DataError(f"{name}: {rule}")
        labels = {k: text for k, text in variables[kind].labels.items() if not kinds.get(k)}
        every = dict.fromkeys((k for v in variables.values() for k in v.records), "")
        kinds = {k: text for k, text in (every | kinds | labels).items() if k}
    return ExtractForm(variables, structure == "hierarchical", kind, kinds, keys)


def _person_kind(book: ExtractForm, stated: str | None, source: str) -> str:
    """Return the kind of person lines: stated, or found by its title, code or variables."""
    if stated is None:
        called = [kind for kind, title in book.kinds.items() if title.lower().startswith("person")]
        tries = [called, [kind for kind in book.kinds if kind == "P"]]
        tries += [list(book.variables[n].records) for n in _PERSONAL if n in book.variables]
        stated = next((kinds[0] for kinds in tries if len(kinds) == 1), "")
    elif not book.hierarchical:
        raise ArgumentError(
            "person_kind", "must not be given with a rectangular file", shown=stated
        )
    if book.hierarchical and stated not in book.kinds:
        kinds = ", ".join(
            f"{kind} ({title})" if title else kind for kind, title in book.kinds.items()
        )
        got = f"got {quote(stated)}" if stated else "which cannot be told"
        raise ArgumentError(
            "person_kind",
            f"must be the kind of records of persons, one of {kinds} in {source}, {got}",
        )
    return stated


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
    instructions = "\n".join(part.text or "" for tag, part in parts if tag == "codInstr")
    for code, label in _TOLD.findall(instructions):
        # A point in a code is that of the number, which the file does not write.
        if entry.get("intrvl") != "contin" or label.lower().startswith(_NOTHING):
            labels.setdefault(_value(code, decimals if "." in code else 0), label.strip())
    return Variable(
        title, start - 1, stop, decimals, labels, tuple((entry.get("rectype") or "").split())
    )


def _value(text: str, decimals: int = 0) -> str:
    """Return a text value normalised for comparison: no needless zeros, decimals applied."""
    if len(text) >= _LONG or not _NUMBER.fullmatch(text):
        return text
    return format(Decimal(text).scaleb(decimals).normalize(), "f")


def _plain(tag: str) -> str:
    return tag.rpartition("}")[2]


# Any extract: what its codebook says of each column, as a data frame.

#: Variables that only lines of persons have.
_PERSONAL = ("AGE", "SEX", "PERNUM")
#: Beginnings of labels of values that say nothing about a person.
_NOTHING = (
    "n/a", "niu", "n.i.u", "not in universe", "not applicable", "missing", "unknown",
    "not reported", "refused", "don't know", "not ascertained", "not identified",
    "not available", "could not be",
)  # fmt: skip


def read_ipums(
    path: str | Path, *, ddi: str | Path, person_kind: str | None = None
) -> "pd.DataFrame":
    """Return an extract of IPUMS (USA, CPS, International, ...) with the labels of its codebook.

    There is a row for each record, in a hierarchical extract for each person, with the variables of
    the household and of other lines above its persons. Variables of other lines, such as the
    activities of a person, are left out, with a warning. A variable whose values mostly have labels
    is categorical, in the order of its codes; a value without a label is called ``code 7``. Other
    variables are numbers or text, also if their labels mostly repeat the value (an age). A number
    is missing if its label begins with "N/A", "NIU", "Missing", "Unknown" or the like. Labels are
    those of categories, and of instructions such as ``999 = NIU``.

    Parameters
    ----------
    path : path-like
        The extract: fixed-width or CSV, rectangular or hierarchical; also gzip or ZIP.
    ddi : path-like
        Its DDI codebook (XML).
    person_kind : str, optional
        The kind of lines of persons in a hierarchical extract, such as ``"P"`` or ``"2"``. By
        default it is the kind with that name in the codebook, or the only one with an age or a sex.

    Warns
    -----
    DataWarning
        Once if variables are left out.

    Examples
    --------
    >>> read_ipums("usa_00001.dat.gz", ddi="usa_00001.xml")
    Traceback (most recent call last):
    bayesrisk.exceptions.DataError: usa_00001.xml: no such file
    """
    check.path(path, "path")
    check.path(ddi, "ddi")
    book = read_ddi(ddi)
    person = _person_kind(book, person_kind, str(ddi))
    source = forms.one_source(path, ".dat", ".csv")
    fixed = not source.base.endswith(".csv")
    pieces = _text_of_lines(source, book) if fixed else _text_of_csv(source, book)
    frames = gather(pieces, lambda piece: int(piece.memory_usage().sum()), source.name)
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    if not len(frame):
        raise DataError(f"{source.name}: must have at least one record, got none")
    if book.hierarchical:
        place = f"{source.name}: {'line' if fixed else 'row'}"
        frame = _person_rows(frame, book, person, place)
    variables = {str(name): book.variables[str(name)] for name in frame}
    return pd.DataFrame({n: _labelled(frame[n], v, fixed=fixed) for n, v in variables.items()})


def _text_of_lines(source: forms.Source, book: ExtractForm) -> Iterator["pd.DataFrame"]:
    """Yield the columns of a fixed-width file as text, missing where a line lacks them."""
    for lines in forms.line_pieces(source, _BYTES):
        columns, every, kinds = {}, np.arange(lines.starts.size), None
        if book.hierarchical:
            kind = book.variables[book.kind]
            kinds = _stripped(lines.text(kind.start, kind.stop, every))
        for name, variable in book.variables.items():
            rows = every
            if kinds is not None and variable.records and name != book.kind:
                rows = np.flatnonzero(np.isin(kinds, variable.records))
            column = np.full(every.size, None, dtype=object)
            column[rows] = _stripped(lines.text(variable.start, variable.stop, rows))
            columns[name] = column
        yield pd.DataFrame(columns)


def _stripped(matrix: ByteArray) -> TextArray:
    """Return rows of characters as text without surrounding blanks."""
    if not len(matrix):
        return np.zeros(0, dtype="<U1")
    rows = np.ascontiguousarray(matrix).view(f"S{matrix.shape[1]}").ravel()
    texts: TextArray = np.strings.strip(np.char.decode(rows, "latin-1"))
    return texts


def _text_of_csv(source: forms.Source, book: ExtractForm) -> Iterator["pd.DataFrame"]:
    """Yield the columns of a CSV file as text, missing where a line lacks them."""
    header = forms.header_names(source)
    for name in header:
        if name.upper() not in book.variables:
            raise DataError(f"{source.name}: column {quote(name)}: is not in the codebook")
    for piece in forms.csv_pieces(source, header, wanted=header, chunk=forms.CHUNK):
        frame = piece.table.to_pandas().rename(columns=str.upper).astype(object)
        for name in frame.columns if book.hierarchical else ():
            if (records := book.variables[name].records) and name != book.kind:
                frame.loc[~frame[book.kind].isin(records), name] = None
        yield frame


def _person_rows(
    frame: "pd.DataFrame", book: ExtractForm, person: str, place: str
) -> "pd.DataFrame":
    """Return the person records, joined with the variables of the household lines above."""
    kinds, rows = frame[book.kind], np.arange(len(frame))
    if not (good := kinds.isin([*book.kinds]).to_numpy()).all():
        row = int(good.argmin())
        rule = f"must be one of {', '.join(book.kinds)}"
        raise DataError(f"{place} {row + 1}, column {book.kind!r}: {rule}, got {quote(kinds[row])}")
    people = (kinds == person).to_numpy()
    if not people.any():
        present = ", ".join(sorted(set(kinds)))
        raise DataError(f"{place}s must be of persons, of kind {person}, got kinds {present}")
    other_kinds = [kind for kind in dict.fromkeys(kinds) if kind != person]
    stated = book.keys.get(person) or [k for part in book.keys.values() for k in part] or ["SERIAL"]
    has = {str(name): book.variables[str(name)].records for name in frame}
    keys = [
        n
        for n in dict.fromkeys(stated)
        if n in has and {person, kinds[0]} <= {*(has[n] or book.kinds)}
    ]
    # A household begins where the key is another, always with a line of one kind.
    key = frame[keys].ffill() if keys else pd.DataFrame({book.kind: (kinds == kinds[0]).cumsum()})
    change = (key != key.shift()).any(axis=1).to_numpy()
    starts = kinds[change].value_counts()
    top = next((kind for kind in starts.index if kind != person), person)
    first = (kinds == top).to_numpy()
    if (strange := (change & ~first) if top == person else change != first).any():
        row, name = int(strange.argmax()), keys[0]
        rule = f"must be {'' if change[row] else 'another than '}that of the household before"
        raise DataError(
            f"{place} {row + 1}, column {name!r}: {rule}, got {quote(frame[name][row])}"
        )
    group = np.cumsum(change)
    before: IntArray = np.cumsum(people) - people
    before -= before[np.searchsorted(group, group)]  # persons of the household before each line
    above = []  # kinds that come before the first person, and never twice for the same persons
    for kind in other_kinds:
        lines = rows[kinds == kind]
        part = pd.DataFrame({"group": group[lines], "before": before[lines]})
        if not part.duplicated().any() and not part.groupby("group")["before"].first().any():
            above.append(kind)
    outer = [n for n, lines in has.items() if {*lines} & {*above} and person not in lines]
    values = frame[outer].where(kinds.isin(above), None)
    frame[outer] = values.groupby(group).ffill() if outer else values
    left = [n for n, lines in has.items() if lines and n not in outer and person not in lines]
    if left:
        text = f"{place}s of other kinds than {', '.join([*above, person])} are left out, with "
        warnings.warn(DataWarning(text + ", ".join(left)), stacklevel=caller_level())
    return frame.loc[people, [n for n in has if n not in left]].reset_index(drop=True)


def _labelled(column: "pd.Series", variable: Variable, *, fixed: bool) -> "pd.Series":
    """Return a column with labels or as numbers, or as text if it is neither."""
    texts = column.mask(column == "")
    values = texts.dropna().drop_duplicates()
    labels = variable.labels
    moved = 0 if fixed else variable.decimals  # CSV writes the point, which codes are without
    numbers = sum(label.partition(" ")[0] == value for value, label in labels.items())
    meanings = {text: labels.get(_value(text, moved)) for text in values}
    nothing = [t for t, label in meanings.items() if label and label.lower().startswith(_NOTHING)]
    saying = [label for text, label in meanings.items() if text not in nothing]
    named_values = sum(label is not None for label in saying)
    says = any(not label.lower().startswith(_NOTHING) for label in labels.values())
    if says and 2 * numbers < len(labels) and 2 * named_values >= len(saying):
        all_named = {text: label or f"code {text}" for text, label in meanings.items()}
        order = dict.fromkeys(label for label in labels.values() if label in meanings.values())
        order |= dict.fromkeys(all_named.values())
        return texts.map(all_named).astype(pd.CategoricalDtype([*order]))
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

    The schema is ``census-1940`` with further columns ``household`` (SERIAL), ``person`` (PERNUM),
    ``sex`` (0 male, 1 female) and ``age``. An extract must hold YEAR, SERIAL, PERNUM, STATEFIP,
    COUNTYICP, SUPDIST, ENUMDIST, GQ, GQTYPE, SEX, AGE, RACE and HISPAN.

    Parameters
    ----------
    path : path-like
        ``EXT1940USCB.dat`` (hierarchical, fixed-width), or a rectangular extract: CSV, or
        fixed-width with its codebook.  Also gzip or ZIP.
    ddi : path-like, optional
        The DDI codebook (XML) of a fixed-width extract. Without one, a file that is not CSV is read
        as ``EXT1940USCB.dat``.
    chunk : int, optional
        Approximate number of rows in memory at a time.
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
    >>> from bayesrisk.census import read_ipums_1940
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
    """Return records from an extract's columns; ``names`` maps to the file's names."""
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
    """The households of a piece, preceded by the last one, whose persons may follow here."""

    def __init__(self) -> None:
        self.place = np.zeros((0, sum(WIDTHS)), dtype=np.uint8)
        self.serial = self.hhgq = self.persons = np.zeros(0, dtype=np.int64)
        self.members = np.zeros(0, dtype=np.int64)

    def follow(self, houses: forms.Piece) -> None:
        """Keep the last household, and append those of the next piece."""
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
        """Raise if a household has another number of persons than it states."""
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

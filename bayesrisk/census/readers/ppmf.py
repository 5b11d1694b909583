"""Privacy-protected microdata files: persons and housing units that TopDown produced."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, IntArray, TextArray
from bayesrisk.census.readers import text as forms
from bayesrisk.exceptions import DataError
from bayesrisk.tables import Records, Schema
from bayesrisk.tables.records import CENRACE, CENRACE_OF_MASK, whole_column

# Columns of the vintages and their codes.  The internal unit file has the names of the public one
# without the leading T of six of them, and neither HH_STATUS nor TENSHORT.


# Geographies after the block's own, in the public 2020 files.
_OTHER_PLACES = (
    "TABBLKST TABBLKCOU TABTRACTCE TABBLK TABBLKGRPCE AIANNHCE AIANNHFP AIANNHNS AIHHTLI ANRCFP "
    "ANRCNS AREALAND AREAWATER AREAWATERCSTL AREAWATERGRLK AREAWATERINLD AREAWATERTSEA CBSAFP "
    "CD116FP CNECTAFP CONCITFP CONCITNS COUNTYFS COUNTYNS COUSUBFP COUSUBFS COUSUBNS CSAFP "
    "DIVISIONCE ESTATEFP ESTATENS INTPTLAT INTPTLON LWBLKTYP MEMI METDIVFP NECTADIVFP NECTAFP "
    "NMEMI PCICBSA PCINECTA PLACEFP PLACEFS PLACENS PUMA REGIONCE SDELMLEA SDSECLEA SDUNILEA "
    "SLDLST SLDUST STATENS SUBMCDFP SUBMCDNS TBLKGRPCE TRIBALSUBCE TRIBALSUBFP TRIBALSUBNS "
    "TTRACTCE UACE UATYP UGACE UR VTDST ZCTA5CE"
)
_HOUSING = (
    "RTYPE GQTYPE TEN VACS HHSIZE HHT HHT2 CPLT UPART MULTG THHLDRAGE THHSPAN THHRACE PAOC TP18 "
    "TP60 TP65 TP75 PAC HHSEX "
)
_INTERNAL = {
    name: name[1:] for name in ["THHLDRAGE", "THHSPAN", "THHRACE", "TP18", "TP60", "TP65", "TP75"]
}
#: Other names of a column.
_ALIASES = {"TABTRACT": "TABTRACTCE", "TABBLKGRP": "TABBLKGRPCE"} | {
    short: name for name, short in _INTERNAL.items()
}
_DECIMAL = re.compile(r"\.0+\Z")
_LOOK = 1000  # lines that tell how codes are written
GEOGRAPHY = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
_PLACE = " ".join(GEOGRAPHY)
_MDF_HOUSING = " ".join(_INTERNAL.get(name, name) for name in _HOUSING.split())

#: Census codes of group quarters: the first digit tells the major kind (7 and above are one).
QUARTERS = (
    *(0, 101, 102, 103, 104, 105, 106, 201, 202, 203, 301, 401, 402, 403, 404, 405, 501, 601, 602),
    *(701, 702, 704, 706, 801, 802, 900, 901, 903, 904, 997),
)
FIRST_QUARTERS = np.array(["000", "101", "201", "301", "401", "501", "601", "701"])
TWO_DIGITS = np.array([f"{i:02d}" for i in range(64)])

#: Columns of household records: the file's name and largest code.
HOUSEHOLD = MappingProxyType(
    {
        "tenure": ("TEN", 4),
        "vacancy": ("VACS", 7),
        "size": ("HHSIZE", 7),
        "type": ("HHT", 7),
        "detailed_type": ("HHT2", 12),
        "under_18": ("TP18", 1),
        "over_65": ("TP65", 1),
        "hispanic": ("THHSPAN", 2),
        "hhage": ("THHLDRAGE", 9),
        "race": ("THHRACE", 7),
    }
)
#: Of these the file says 0 or 1; the schema 1 or 2, with 0 for units without household.
PRESENCE = ("under_18", "over_65")


class FileLayout(NamedTuple):
    """The columns of a file vintage in order, and the schema of its records."""

    name: str
    schema: str
    columns: tuple[str, ...]
    needed: tuple[str, ...]
    delimiter: str = ","
    comment: str | None = None

    def fits(self, names: set[str]) -> bool:
        """Return whether a file's columns, by their standard names, are those of this layout.

        Beside the needed columns there may be other geographies in 2020, which are not read. In the
        files of May 2020 any of these may be missing.
        """
        usual = {_usual(name) for name in self.columns}
        if self.name == "2020":
            return set(self.needed) <= names
        if self.name.startswith("2020-05-27"):
            return set(self.needed) <= names <= usual
        return names == usual


def _layout(name: str, schema: str, columns: str, needed: str) -> FileLayout:
    internal = name.startswith("mdf")
    return FileLayout(
        name,
        schema,
        tuple(columns.split()),
        (*GEOGRAPHY, *needed.split()),
        "|" if internal else ",",
        "#" if internal else None,
    )


_PL94 = "RTYPE GQTYPE_PL VOTING_AGE CENHISP CENRACE"
_DHC = "RTYPE GQTYPE RELSHIP QSEX QAGE CENHISP CENRACE LIVE_ALONE"
_AGES = "RTYPE GQTYPE QSEX QAGE CENHISP CENRACE"
_STATUS = "RTYPE HH_STATUS"
_CODES = "RTYPE " + " ".join(name for name, _ in HOUSEHOLD.values())
_INSIDE = f"SCHEMA_TYPE_CODE SCHEMA_BUILD_ID {_PLACE}"
_PL94_AGES = "RTYPE GQTYPE_PL VOTING_AGE QSEX QAGE CENHISP CENRACE"
_PUBLIC = f"EPNUM {_DHC} NUMRACE PGQSHRT GQTYPE_PL VOTING_AGE {_OTHER_PLACES}"
LAYOUTS: Mapping[str, tuple[FileLayout, ...]] = MappingProxyType(
    {
        "person": (
            _layout("2010-demonstration", "pl94", f"VINTAGE {_PLACE} {_PL94}", _PL94),
            _layout("2020-05-27", "pl94", f"{_PLACE} EPNUM {_PL94}", _PL94),
            _layout("2020-05-27-ages", "sf1-person", f"{_PLACE} EPNUM {_DHC}", _AGES),
            _layout("mdf-pl94", "pl94", f"{_INSIDE} EPNUM {_PL94}", _PL94),
            _layout("mdf-dhc", "sf1-person", f"{_INSIDE} EPNUM {_DHC}", _AGES),
            _layout("2020", "sf1-person", _PUBLIC, _PL94_AGES),
        ),
        "unit": (
            _layout("2010-demonstration", "pl94-units", f"VINTAGE {_PLACE} {_STATUS}", _STATUS),
            _layout("mdf-pl94", "pl94-units", f"{_INSIDE} {_STATUS}", _STATUS),
            _layout("mdf-dhc", "household-dhc", f"{_INSIDE} {_MDF_HOUSING}", _CODES),
            _layout(
                "2020", "household-dhc", f"{_HOUSING} TENSHORT HH_STATUS {_OTHER_PLACES}", _CODES
            ),
        ),
    }
)


def _usual(name: str) -> str:
    upper = name.upper()
    return _ALIASES.get(upper, upper)


def detect(source: forms.Source, kind: str) -> tuple[FileLayout, list[str], dict[str, str]]:
    """Return a file's layout, its header, and its names for the needed columns."""
    # Files of one vintage were published between commas and between bars.
    other = {",": "|", "|": ","}
    variants = [lay._replace(delimiter=other[lay.delimiter]) for lay in LAYOUTS[kind]]
    for layout in (*LAYOUTS[kind], *variants):
        header = forms.header_names(source, delimiter=layout.delimiter, comment=layout.comment)
        names = {_usual(name): name for name in header}
        if layout.fits(set(names)):
            return layout, header, {name: names[name] for name in layout.needed}
    expected = "; ".join(f"{lay.name}: {' '.join(lay.needed)}" for lay in LAYOUTS[kind])
    header = forms.header_names(source)
    raise DataError(
        f"{source.name}: must have the {kind} columns of a known vintage ({expected}), got "
        f"{len(header)} columns: {' '.join(header[:20])}"
    )


def code_pieces(
    source: forms.Source,
    layout: FileLayout,
    header: list[str],
    wanted: Mapping[str, str],
    chunk: int,
) -> Iterator[forms.Piece]:
    """Yield the needed columns of a file; codes such as ``3.0`` are read as integers."""
    codes = [wanted[name] for name in wanted if name not in GEOGRAPHY]
    above, _ = forms.first_lines(source, layout.comment)
    with source.open() as stream:
        lines = [stream.readline() for _ in range(above + 1 + _LOOK)][above + 1 :]
    rows = (line.decode("latin-1").rstrip("\n").split(layout.delimiter) for line in lines)
    texts = [dict(zip(header, row, strict=False)) for row in rows]
    decimals = [c for c in codes if any(_DECIMAL.search(text.get(c, "")) for text in texts)]
    for piece in forms.csv_pieces(
        source,
        header,
        wanted=list(wanted.values()),
        whole=[name for name in codes if name not in decimals],
        chunk=chunk,
        form=forms.TextForm(layout.delimiter, layout.comment),
    ):
        changed = piece
        for name in decimals:
            whole = pc.replace_substring_regex(piece.table.column(name), r"\.0+$", "")
            changed = changed.replace(name, whole)
        yield changed


# Forms of records: what columns hold, and how they are written again.

_OLDEST = 110  # age 110 and over is one code of the published tables
_IN_HOUSEHOLD, _IN_QUARTERS = 3, 5  # kinds of a person's record
_UNIT, _QUARTERS = 2, 4  # and of a unit's
Names = Mapping[str, str]
Columns = dict[str, IntArray | TextArray | pa.Array]


def _blocks(piece: forms.Piece, names: Names, state: str | None) -> pa.Array:
    return forms.block_column(piece, [names[n] for n in GEOGRAPHY], state)


def _check_quarters(piece: forms.Piece, names: Names, quarters: IntArray, column: str) -> None:
    """Raise if a record's type contradicts its kind of quarters."""
    kind = piece.codes(names["RTYPE"], (_IN_HOUSEHOLD, _IN_QUARTERS))
    consistent = (kind == _IN_QUARTERS) == (quarters > 0)
    piece.check(column, consistent, "0 where RTYPE is 3, and only there")


#: Columns of the redistricting data: the file's name, its least and its largest code.
_PL94_CODES = {
    "hhgq": ("GQTYPE_PL", 0, 7),
    "votingage": ("VOTING_AGE", 1, 2),
    "hispanic": ("CENHISP", 1, 2),
    "cenrace": ("CENRACE", 1, 63),
}


def _pl94(piece: forms.Piece, names: Names, state: str | None) -> Columns:
    codes = {
        column: piece.whole(names[name], least, most) - least
        for column, (name, least, most) in _PL94_CODES.items()
    }
    _check_quarters(piece, names, codes["hhgq"], names["GQTYPE_PL"])
    return {"block": _blocks(piece, names, state), **codes}


def _pl94_rows(records: Records) -> Columns:
    columns: Columns = {
        name: records.codes(column) + least for column, (name, least, _) in _PL94_CODES.items()
    }
    kind = np.where(records.codes("hhgq") > 0, _IN_QUARTERS, _IN_HOUSEHOLD)
    return columns | {"RTYPE": kind, "CENRACE": TWO_DIGITS[columns["CENRACE"]]}


def _persons(piece: forms.Piece, names: Names, state: str | None) -> Columns:
    if "GQTYPE_PL" in names:
        column = names["GQTYPE_PL"]
        quarters = piece.whole(column, 0, 7)
    else:  # the first digit of three tells the kind
        column = names["GQTYPE"]
        quarters = np.minimum(piece.codes(column, QUARTERS) // 100, 7)
    _check_quarters(piece, names, quarters, column)
    age = piece.whole(names["QAGE"], 0, 115)
    if "VOTING_AGE" in names:
        adult = piece.whole(names["VOTING_AGE"], 1, 2) == 2
        piece.check(names["VOTING_AGE"], adult == (age >= 18), "2 where QAGE is 18 or more, else 1")
    return {
        "block": _blocks(piece, names, state),
        "sex": piece.whole(names["QSEX"], 1, 2) - 1,
        "age": np.minimum(age, _OLDEST),
        "race": CENRACE[piece.whole(names["CENRACE"], 1, 63) - 1],
        "hisp": piece.whole(names["CENHISP"], 1, 2) - 1,
        "gq": quarters,
    }


def _person_rows(records: Records) -> Columns:
    quarters = whole_column(records, "gq", 7)
    age, race = records.codes("age"), records.codes("race")
    return {
        "EPNUM": np.arange(1, len(records) + 1),
        "RTYPE": np.where(quarters > 0, _IN_QUARTERS, _IN_HOUSEHOLD),
        "GQTYPE": FIRST_QUARTERS[quarters],
        "QSEX": records.codes("sex") + 1,
        "QAGE": age,
        "CENHISP": records.codes("hisp") + 1,
        "CENRACE": TWO_DIGITS[CENRACE_OF_MASK[race] + 1],
        "NUMRACE": np.bitwise_count(race.astype(np.uint8)).astype(np.int64),
        "GQTYPE_PL": quarters,
        "VOTING_AGE": 1 + (age >= 18),
    }


def _units(piece: forms.Piece, names: Names) -> BoolArray:
    """Return a mask of the records of housing units rather than group quarters."""
    return np.asarray(piece.codes(names["RTYPE"], (_UNIT, _QUARTERS)) == _UNIT)


def _occupancy(piece: forms.Piece, names: Names, state: str | None) -> Columns:
    block, unit = _blocks(piece, names, state), _units(piece, names)
    status = piece.whole(names["HH_STATUS"], 0, 2)
    piece.check(names["HH_STATUS"], unit == (status > 0), "1 or 2 where RTYPE is 2, else 0")
    rows = np.flatnonzero(unit)
    return {"block": block.take(rows), "h1": 2 - status[rows]}


def _occupancy_rows(records: Records) -> Columns:
    return {"RTYPE": np.full(len(records), _UNIT), "HH_STATUS": 2 - records.codes("h1")}


def _households(piece: forms.Piece, names: Names, state: str | None) -> Columns:
    block, unit = _blocks(piece, names, state), _units(piece, names)
    rows = np.flatnonzero(unit)
    codes = {column: piece.whole(names[name], 0, top) for column, (name, top) in HOUSEHOLD.items()}
    occupied = unit & (codes["vacancy"] == 0)
    for column in PRESENCE:
        codes[column] = np.where(occupied, codes[column] + 1, codes[column])
    for column, (name, _) in HOUSEHOLD.items():
        if column != "vacancy":
            rule = "0 in vacant units and group quarters, and only there"
            piece.check(names[name], (codes[column] > 0) == occupied, rule)
    return {"block": block.take(rows), **{column: v[rows] for column, v in codes.items()}}


def _household_rows(records: Records) -> Columns:
    columns: Columns = {
        "RTYPE": np.full(len(records), _UNIT),
        "GQTYPE": np.full(len(records), "000"),
        "HH_STATUS": np.where(records.codes("vacancy") == 0, 1, 2),
    }
    for column, (name, _) in HOUSEHOLD.items():
        codes = records.codes(column)
        columns[name] = np.maximum(codes - 1, 0) if column in PRESENCE else codes
    return columns


_Parse = Callable[[forms.Piece, Names, str | None], Columns]
_Rows = Callable[[Records], Columns]
#: By the schema of the records: how a piece of a file becomes columns, and records become rows.
FORMS: Mapping[str, tuple[_Parse, _Rows]] = MappingProxyType(
    {
        "pl94": (_pl94, _pl94_rows),
        "sf1-person": (_persons, _person_rows),
        "pl94-units": (_occupancy, _occupancy_rows),
        "household-dhc": (_households, _household_rows),
    }
)


def _iterate(kind: str, path: str | Path, state: str | None, chunk: int) -> Iterator[Records]:
    """Yield records of a kind, ``person`` or ``unit``, in pieces."""
    rows = check.integer(chunk, "chunk", lower=1)
    source = forms.one_source(path, ".csv", ".txt")
    place = forms.state_code(state) or forms.state_of_name(source.base)
    layout, names, wanted = detect(source, kind)
    schema, parse = Schema.named(layout.schema), FORMS[layout.schema][0]
    for piece in code_pieces(source, layout, names, wanted, rows):
        columns = parse(piece, wanted, place)
        codes = {k: v if k == "block" else v.astype(np.int16) for k, v in columns.items()}
        yield Records(schema, pa.table(codes))


def _write(kind: str, records: Records | Iterable[Records], path: str | Path, vintage: str) -> None:
    """Write records of a kind in a vintage's layout, with unknown columns empty."""
    names = tuple(layout.name for layout in LAYOUTS[kind])
    layout = LAYOUTS[kind][names.index(check.choice(vintage, "vintage", names))]
    constants = {"VINTAGE": layout.name, "SCHEMA_BUILD_ID": "1.1.0"}
    constants["SCHEMA_TYPE_CODE"] = "MUD" if kind == "unit" else "MPD"

    def table(piece: Records) -> pa.Table:
        codes = pa.array(piece.geoids, pa.string())
        cuts = zip(GEOGRAPHY, ((0, 2), (2, 5), (5, 11), (11, 12), (11, 15)), strict=True)
        columns = {name: pc.utf8_slice_codeunits(codes, *cut) for name, cut in cuts}
        columns |= FORMS[layout.schema][1](piece)
        arrays = {}
        for name in layout.columns:
            values = columns.get(_usual(name), columns.get(name))
            if values is None:
                values = [constants.get(name, "")] * len(piece)
            arrays[name] = pa.array(values).cast(pa.string())
        return pa.table(arrays)

    above = "" if layout.comment is None else f"{layout.comment} bayesrisk {layout.name}\n"
    tables = map(table, forms.schema_pieces(records, layout.schema))
    forms.write_table(path, layout.columns, tables, delimiter=layout.delimiter, above=above)


def iter_ppmf(
    path: str | Path, *, state: str | None = None, chunk: int = forms.CHUNK
) -> Iterator[Records]:
    """Yield persons of a privacy-protected microdata file, a piece at a time.

    The schema is ``pl94`` for 2010 demonstration data, else ``sf1-person``. In the latter, ages
    over 110 are 110, and a column ``gq`` has the kinds of group quarters of ``pl94``, 0 to 7.

    Parameters
    ----------
    path : path-like
        CSV file, or a ZIP archive or gzip file of one. It is 2010 demonstration data of May 2020
        (without ``VINTAGE``; voting age or single years) or of 2021 (11 columns). Or it is the 2020
        file (its other geographies are left out), or an internal form (``|`` between columns, ``#``
        before comments). Codes may be written as ``3.0``.
    state : str, optional
        FIPS code or postal abbreviation of the state of every block; by default the one at the end
        of the file's name, if any.
    chunk : int, optional
        Rows in memory at a time.

    Notes
    -----
    Layouts follow the specification of the microdata detail file in the Census Bureau's published
    programs (2010 demonstrations of 2021 and its internal form; 2020 production of August 2024).
    """
    yield from _iterate("person", path, state, chunk)


def read_ppmf(path: str | Path, *, state: str | None = None) -> Records:
    """Return all persons of a privacy-protected microdata file, as :func:`iter_ppmf` yields them.

    Parameters
    ----------
    path, state
        As for :func:`iter_ppmf`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from bayesrisk.census import read_ppmf, write_ppmf
    >>> from bayesrisk.tables import Records, Schema
    >>> frame = pd.DataFrame({"block": ["500010001001000"] * 3, "hhgq": 0, "votingage": [0, 1, 1],
    ...                       "hispanic": 0, "cenrace": [0, 0, 62]})
    >>> with TemporaryDirectory() as folder:
    ...     write_ppmf(Records.from_frame(frame, schema=Schema.named("pl94")), folder + "/vt.csv",
    ...                vintage="2010-demonstration")
    ...     len(read_ppmf(folder + "/vt.csv"))
    3
    """
    return forms.joined(iter_ppmf(path, state=state), path)


def write_ppmf(records: Records | Iterable[Records], path: str | Path, *, vintage: str) -> None:
    """Write persons in the form of a privacy-protected microdata file.

    Parameters
    ----------
    records : Records or iterable of Records
        Schema ``pl94`` for ``2010-demonstration``, ``2020-05-27`` and ``mdf-pl94``; ``sf1-person``
        with a column ``gq`` for ``2020``, ``2020-05-27-ages`` and ``mdf-dhc``.
    path : path-like
        File to create; it must not exist.
    vintage : str
        One of these six. Columns that the records lack are left empty.

    Examples
    --------
    >>> write_ppmf([], "new.csv", vintage="2000")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bayesrisk.exceptions.ArgumentError: vintage must be one of 2010-demonstration, ...
    """
    _write("person", records, path, vintage)


def iter_ppmf_units(
    path: str | Path, *, state: str | None = None, chunk: int = forms.CHUNK
) -> Iterator[Records]:
    """Yield housing units of a privacy-protected microdata file, a piece at a time.

    Group quarters are left out, because they are not housing units.

    The schema is ``pl94-units`` for 2010 demonstration data, else ``household-dhc``.

    Parameters
    ----------
    path : path-like
        CSV file, or a ZIP archive or gzip file of one: 2010 demonstration data of 2021 (8 columns),
        the 2020 file, or the internal forms of either.
    state, chunk
        As for :func:`iter_ppmf`.
    """
    yield from _iterate("unit", path, state, chunk)


def read_ppmf_units(path: str | Path, *, state: str | None = None) -> Records:
    """Return all housing units of a privacy-protected microdata file, see :func:`iter_ppmf_units`.

    Parameters
    ----------
    path, state
        As for :func:`iter_ppmf_units`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from bayesrisk.tables import Records, Schema
    >>> frame = pd.DataFrame({"block": ["500010001001000"] * 2, "h1": [0, 1]})
    >>> with TemporaryDirectory() as folder:
    ...     write_ppmf_units(Records.from_frame(frame, schema=Schema.named("pl94-units")),
    ...                      folder + "/vt.csv", vintage="2010-demonstration")
    ...     read_ppmf_units(folder + "/vt.csv").codes("h1").tolist()
    [0, 1]
    """
    return forms.joined(iter_ppmf_units(path, state=state), path)


def write_ppmf_units(
    records: Records | Iterable[Records], path: str | Path, *, vintage: str
) -> None:
    """Write housing units in the form of a privacy-protected microdata file.

    Parameters
    ----------
    records : Records or iterable of Records
        Schema ``pl94-units`` for ``2010-demonstration`` and ``mdf-pl94``; ``household-dhc`` for
        ``2020`` and ``mdf-dhc``.
    path, vintage
        As for :func:`write_ppmf`; the vintage is one of these four.

    Examples
    --------
    >>> write_ppmf_units([], "new.csv", vintage="2000")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bayesrisk.exceptions.ArgumentError: vintage must be one of 2010-demonstration, mdf-pl94, ...
    """
    _write("unit", records, path, vintage)

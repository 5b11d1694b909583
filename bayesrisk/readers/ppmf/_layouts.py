"""Columns of the vintages of privacy-protected microdata files, and their codes.

The internal unit file has the names of the public one without the leading T of six of them, and
neither HH_STATUS nor TENSHORT.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk.exceptions import DataError
from bayesrisk.readers.text.columns import Piece, csv_pieces, header_of
from bayesrisk.readers.text.source import Source, first_lines

_SCHEMA_COLUMNS = "SCHEMA_TYPE_CODE SCHEMA_BUILD_ID "
_PLACE = "TABBLKST TABBLKCOU TABTRACTCE TABBLKGRPCE TABBLK "
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
_MDF_HOUSING = " ".join(_INTERNAL.get(name, name) for name in _HOUSING.split())

#: Census codes of group quarters: the first digit tells the major kind (7 and above are one).
QUARTERS = (
    *(0, 101, 102, 103, 104, 105, 106, 201, 202, 203, 301, 401, 402, 403, 404, 405, 501, 601, 602),
    *(701, 702, 704, 706, 801, 802, 900, 901, 903, 904, 997),
)
FIRST_QUARTERS = np.array(["000", "101", "201", "301", "401", "501", "601", "701"])
TWO_DIGITS = np.array([f"{i:02d}" for i in range(64)])
#: Bit mask of each of the 63 codes of CENRACE: one race, then two, three, ... in their order.
RACE_MASKS: NDArray[np.int64] = np.array(
    [sum(1 << i for i in races) for n in range(1, 7) for races in combinations(range(6), n)]
)
RACE_INDEX = np.full(64, -1, dtype=np.int64)
RACE_INDEX[RACE_MASKS] = np.arange(63)

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


@dataclass(frozen=True)
class Layout:
    """The columns of a vintage, in order, and the schema of its records."""

    name: str
    schema: str
    columns: tuple[str, ...]
    needed: tuple[str, ...]
    delimiter: str = ","
    comment: str | None = None

    def fits(self, here: set[str]) -> bool:
        """Return whether these are the columns of a file, by their usual names.

        Beside the needed ones there may be other geographies in 2020, which are not read, and in
        the files of May 2020 any of theirs may be missing.
        """
        usual = {_usual(name) for name in self.columns}
        if self.name == "2020":
            return set(self.needed) <= here
        if self.name.startswith("2020-05-27"):
            return set(self.needed) <= here <= usual
        return here == usual


def _layout(name: str, schema: str, columns: str, needed: str) -> Layout:
    internal = name.startswith("mdf")
    return Layout(
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
LAYOUTS: Mapping[str, tuple[Layout, ...]] = MappingProxyType(
    {
        "person": (
            _layout("2010-demonstration", "pl94", f"VINTAGE {_PLACE} {_PL94}", _PL94),
            _layout("2020-05-27", "pl94", f"{_PLACE} EPNUM {_PL94}", _PL94),
            _layout("2020-05-27-ages", "sf1-person", f"{_PLACE} EPNUM {_DHC}", _AGES),
            _layout("mdf-pl94", "pl94", f"{_SCHEMA_COLUMNS}{_PLACE} EPNUM {_PL94}", _PL94),
            _layout(
                "mdf-dhc",
                "sf1-person",
                f"{_SCHEMA_COLUMNS}{_PLACE} EPNUM {_DHC}",
                _AGES,
            ),
            _layout(
                "2020",
                "sf1-person",
                f"EPNUM {_DHC} NUMRACE PGQSHRT GQTYPE_PL VOTING_AGE {_OTHER_PLACES}",
                "RTYPE GQTYPE_PL VOTING_AGE QSEX QAGE CENHISP CENRACE",
            ),
        ),
        "unit": (
            _layout(
                "2010-demonstration",
                "pl94-units",
                f"VINTAGE {_PLACE} {_STATUS}",
                _STATUS,
            ),
            _layout(
                "mdf-pl94",
                "pl94-units",
                f"{_SCHEMA_COLUMNS}{_PLACE} {_STATUS}",
                _STATUS,
            ),
            _layout(
                "mdf-dhc", "household-dhc", f"{_SCHEMA_COLUMNS}{_PLACE} {_MDF_HOUSING}", _CODES
            ),
            _layout(
                "2020", "household-dhc", f"{_HOUSING} TENSHORT HH_STATUS {_OTHER_PLACES}", _CODES
            ),
        ),
    }
)


def named_layout(vintage: str, kind: str) -> Layout:
    """Return the layout of a vintage."""
    names = tuple(layout.name for layout in LAYOUTS[kind])
    return LAYOUTS[kind][names.index(check.choice(vintage, "vintage", names))]


def _usual(name: str) -> str:
    upper = name.upper()
    return _ALIASES.get(upper, upper)


def detect(source: Source, kind: str) -> tuple[Layout, list[str], dict[str, str]]:
    """Return the vintage of a file, its columns, and what it calls the needed ones."""
    # Files of one vintage were published between commas and between bars.
    other = {",": "|", "|": ","}
    others = [replace(lay, delimiter=other[lay.delimiter]) for lay in LAYOUTS[kind]]
    for layout in (*LAYOUTS[kind], *others):
        header = header_of(source, delimiter=layout.delimiter, comment=layout.comment)
        here = {_usual(name): name for name in header}
        if layout.fits(set(here)):
            return layout, header, {name: here[name] for name in layout.needed}
    expected = "; ".join(f"{lay.name}: {' '.join(lay.needed)}" for lay in LAYOUTS[kind])
    header = header_of(source)
    raise DataError(
        f"{source.name}: must have the {kind} columns of a known vintage ({expected}), got "
        f"{len(header)} columns: {' '.join(header[:20])}"
    )


def decimal_columns(
    source: Source, layout: Layout, header: list[str], columns: Sequence[str]
) -> list[str]:
    """Return which columns of codes are written as ``3.0``, by the first lines."""
    found: set[str] = set()
    above, _ = first_lines(source, layout.comment)
    with source.open() as stream:
        for _ in range(above + 1):
            stream.readline()
        for _ in range(_LOOK):
            line = stream.readline().decode("latin-1").rstrip("\n")
            row = dict(zip(header, line.split(layout.delimiter), strict=False))
            found |= {name for name in columns if _DECIMAL.search(row.get(name, ""))}
    return sorted(found)


def code_pieces(
    source: Source, layout: Layout, header: list[str], wanted: Mapping[str, str], chunk: int
) -> Iterator[Piece]:
    """Yield the needed columns of a file; codes such as ``3.0`` are the whole numbers they are."""
    codes = [wanted[name] for name in wanted if name not in GEOGRAPHY]
    decimals = decimal_columns(source, layout, header, codes)
    for piece in csv_pieces(
        source,
        header,
        wanted=list(wanted.values()),
        whole=[name for name in codes if name not in decimals],
        chunk=chunk,
        delimiter=layout.delimiter,
        comment=layout.comment,
    ):
        changed = piece
        for name in decimals:
            texts = pc.replace_substring_regex(piece.table.column(name), r"\.0+$", "")
            changed = changed.replace(name, texts)
        yield changed


def major_quarters(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the kind of quarters, 0 to 7, of three-digit codes."""
    return np.minimum(codes // 100, 7)


def geography_columns(geoids: NDArray[np.str_]) -> dict[str, Any]:
    """Return the columns of state, county, tract, block group and block of 15-digit codes."""
    points = np.ascontiguousarray(geoids, dtype="U15").view(np.uint32).reshape(-1, 15)
    cuts = ((0, 2), (2, 5), (5, 11), (11, 12), (11, 15))
    return {
        name: np.ascontiguousarray(points[:, a:b]).view(f"U{b - a}").reshape(-1)
        for name, (a, b) in zip(GEOGRAPHY, cuts, strict=True)
    }


def filled(columns: dict[str, Any], layout: Layout, rows: int) -> pa.Table:
    """Return all columns of a layout as text; those that nothing is known of are empty."""
    constants = {"VINTAGE": layout.name, "SCHEMA_BUILD_ID": "1.1.0"}
    constants["SCHEMA_TYPE_CODE"] = "MUD" if "HH" in "".join(layout.columns) else "MPD"
    by_name = {}
    for name in layout.columns:
        values = columns.get(_usual(name), columns.get(name))
        if values is None:
            by_name[name] = pa.array([constants.get(name, "")] * rows, pa.string())
        else:
            by_name[name] = pa.array(values).cast(pa.string())
    return pa.table(by_name)

"""The codebook beside an NHGIS extract: which column is which published cell."""

import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import DataError
from bayesrisk.readers.summary_files._products import Product
from bayesrisk.readers.summary_files._sf1_cells import usual_table
from bayesrisk.readers.text.source import Source, list_sources

_SOURCE = re.compile(r"\s*Source code:\s*(\S+)\s*$", re.IGNORECASE)
_CODE = re.compile(r"\s*NHGIS code:\s*(\S+)\s*$", re.IGNORECASE)
_DATASET = re.compile(r"\s*NHGIS ID:\s*(\S+)\s*$", re.IGNORECASE)
_CODE_OF = re.compile(r"\s*NHGIS code:\s*(\d{4}_\S+)\s*$", re.IGNORECASE)
_YEAR = re.compile(r"\s*Years?:\s*(\S.*?)\s*$", re.IGNORECASE)
_SERIES = re.compile(r"\s*Time series", re.IGNORECASE)
_BYTES = 2**24  # a codebook is text for people; a longer one is none

#: Name and number of a data set of each summary file, by the ending of its files.
DATASETS = MappingProxyType(
    {"sf1": ("2010_SF1a", "ds172"), "pl": ("2020_PL94171", "ds248"), "dhc": ("2020_DHCa", "ds258")}
)
# First table and first code of each run: codes count A to Z and then 0 to 9 in their last place.
# Seen in published programs: P1, P3, P5, P12, P16, P18, P28, P16A to G and H, P28A to H, H1, H3,
# H4; the others follow by their order, which is why a codebook comes first.
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_RUNS = (
    ("H7V", [f"P{i}" for i in range(1, 29)]),
    ("H9A", [f"P12{letter}" for letter in "ABCDEFGHI"]),
    ("H9S", [f"P16{letter}" for letter in "ABCDEFGH"]),
    ("IAJ", [f"P28{letter}" for letter in "ABCDEFGH"]),
    ("IFC", [f"H{i}" for i in range(1, 16)]),
)


def _following(code: str) -> str:
    """Return the next code."""
    place = _DIGITS.index(code[2])
    if place + 1 < len(_DIGITS):
        return code[:2] + _DIGITS[place + 1]
    return code[0] + _DIGITS[_DIGITS.index(code[1]) + 1] + _DIGITS[0]


def built_in_columns() -> dict[str, str]:
    """Return the NHGIS code of tables of the 2010 block data set, as far as it is known."""
    found = {}
    for code, tables in _RUNS:
        for table in tables:
            found[table] = code
            code = _following(code)
    return found


def codebook_of(source: Source) -> Source | None:
    """Return the codebook that stands beside a data file, in its folder or archive."""
    wanted = source.base.removesuffix(".csv") + "_codebook.txt"
    place = source.path if source.member is not None else source.path.parent
    for other in list_sources(place):
        if other.base == wanted:
            return other
    return None


@dataclass(frozen=True)
class Codebook:
    """What a codebook says: the code of each table, its data set and year, where it does.

    ``sources`` are all tables that it describes, those that are not read among them, by the names
    of the agency.
    """

    codes: dict[str, str]
    sources: tuple[str, ...] = ()
    year: str | None = None
    dataset: str | None = None  # such as ds172
    name: str | None = None  # such as 2010_SF1a


def read_codebook(source: Source) -> Codebook:
    """Return the NHGIS code of each table that a codebook describes, and its data set."""
    raw = source.read(_BYTES)
    found: dict[str, str] = {}
    table: str | None = None
    dataset: str | None = None
    name: str | None = None
    year: str | None = None
    sources: list[str] = []
    for line in raw.decode("latin-1").splitlines():
        if match := _DATASET.match(line):
            dataset = dataset or match[1]
        elif match := _CODE_OF.match(line):
            name = name or match[1]
        elif match := _YEAR.match(line):
            year = year or match[1]
        elif _SERIES.match(line) and not found:
            raise DataError(
                f"{source.name}: describes time series, which are not read; ask NHGIS for the "
                "source tables of one data set"
            )
        elif match := _SOURCE.match(line):
            sources.append(match[1])
            table = usual_table(match[1])
        elif (match := _CODE.match(line)) and table is not None:
            if found.setdefault(table, match[1]) != match[1]:
                raise DataError(
                    f"{source.name}: table {table}: must have one NHGIS code, "
                    f"got {shown(found[table])} "
                    f"and {match[1]!r}"
                )
            table = None
    if not sources:
        raise DataError(
            f"{source.name}: must name tables (lines 'Source code:' and 'NHGIS code:'), got none"
        )
    return Codebook(found, tuple(sources), year, dataset, name)


def describe(tables: dict[str, tuple[str, int]], data: str, about: Product) -> str:
    """Return a codebook in the form of NHGIS, for tables with their code and number of cells."""
    name, dataset = DATASETS[about.ending]
    rule = "-" * 80
    lines = [
        rule,
        f"Codebook for NHGIS data file '{data}'",
        rule,
        " ",
        "Data Summary",
        rule,
        " ",
        f"Year:             {about.year}",
        f"Dataset:          {about.year} Census: {about.title}",
        f"   NHGIS code:    {name}",
        f"   NHGIS ID:      {dataset}",
        " ",
        rule,
        "Data Dictionary",
        rule,
        " ",
    ]
    for place, (table, (code, cells)) in enumerate(tables.items(), 1):
        lines += [f"Table {place}:     {table}", f"Source code: {table}", f"NHGIS code:  {code}"]
        lines += [f"    {code}{number:03d}:      {number}" for number in range(1, cells + 1)]
        lines.append(" ")
    return "\n".join(lines) + "\n"


def as_source(path: str | Path) -> Source:
    """Return a codebook file that the caller names."""
    return list_sources(path)[0]

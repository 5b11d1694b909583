"""The codebook beside an NHGIS extract: which column is which published cell."""

import re
from pathlib import Path

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import DataError
from bayesrisk.readers.summary_files._sf1_cells import usual_table
from bayesrisk.readers.text.source import Source, list_sources

__all__ = ["built_in_columns", "codebook_of", "read_codebook"]

_SOURCE = re.compile(r"\s*Source code:\s*(\S+)\s*$", re.IGNORECASE)
_CODE = re.compile(r"\s*NHGIS code:\s*(\S+)\s*$", re.IGNORECASE)
_BYTES = 2**24  # a codebook is text for people; a longer one is none

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


def read_codebook(source: Source) -> dict[str, str]:
    """Return the NHGIS code of each table that a codebook describes."""
    raw = source.read(_BYTES)
    found: dict[str, str] = {}
    table: str | None = None
    for line in raw.decode("latin-1").splitlines():
        if match := _SOURCE.match(line):
            table = usual_table(match[1])
        elif (match := _CODE.match(line)) and table is not None:
            if found.setdefault(table, match[1]) != match[1]:
                raise DataError(
                    f"{source.name}: table {table}: must have one NHGIS code, "
                    f"got {shown(found[table])} "
                    f"and {match[1]!r}"
                )
            table = None
    if not found:
        raise DataError(
            f"{source.name}: must name tables (lines 'Source code:' and 'NHGIS code:'), got none"
        )
    return found


def describe(tables: dict[str, tuple[str, int]], data: str) -> str:
    """Return a codebook in the form of NHGIS, for tables with their code and number of cells."""
    rule = "-" * 80
    lines = [
        rule,
        f"Codebook for NHGIS data file '{data}'",
        rule,
        " ",
        "Data Summary",
        rule,
        " ",
        "Year:             2010",
        "Dataset:          2010 Census: SF 1a - P & H Tables [Blocks & Larger Areas]",
        "   NHGIS code:    2010_SF1a",
        "   NHGIS ID:      ds172",
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

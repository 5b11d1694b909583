"""Where the cells of the 2010 Summary File 1 stand: table, number, segment, column.

``sf1_codebook.csv`` has a line for each table of whole counts: its segment, the column of its first
cell (1 is FILEID) and how many cells follow one another (positions of the technical documentation
of the 2010 Census Summary File 1, as classified in the Census Bureau's ``recon_replication``).
Tables of medians and averages (P13, P17, H12) are no counts and are left out.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError

#: Summary level of each level of the census geography.
SUMMARY_LEVELS = {
    "nation": "010",
    "state": "040",
    "county": "050",
    "tract": "140",
    "block_group": "150",
    "block": "101",
}
_CELL = re.compile(r"(PCT|P|H)(\d{3})([A-Z]?)(\d{3,4})")
_TABLE = re.compile(r"(PCT|P|H)0*(\d+)([A-Z]?)")


@dataclass(frozen=True)
class Block:
    """The columns of a table in its segment, the first counted from 1."""

    segment: int
    column: int
    cells: int


@cache
def codebook() -> dict[str, Block]:
    """Return the place of every table."""
    text = (resources.files("bayesrisk.readers") / "sf1_codebook.csv").read_text(encoding="utf-8")
    return {
        row["table"]: Block(int(row["segment"]), int(row["column"]), int(row["cells"]))
        for row in csv.DictReader(text.splitlines())
    }


def usual_table(text: str) -> str | None:
    """Return the name of a table as ours are written: ``P012A`` is ``P12A``."""
    found = _TABLE.fullmatch(text.strip().upper())
    return None if found is None else f"{found[1]}{int(found[2])}{found[3]}"


def cell_number(cell: str, title: str = "Summary File 1") -> tuple[str, int]:
    """Return table and number of a published cell, such as ``P012A003``."""
    if cell == "H00010001":  # alone in having a digit more
        return "H1", 1
    found = _CELL.fullmatch(cell)
    if found is None or len(found[3] + found[4]) != 4:
        raise ArgumentError(f"workload must have cells of {title}, got {shown(cell)}")
    return f"{found[1]}{int(found[2])}{found[3]}", int(found[4])

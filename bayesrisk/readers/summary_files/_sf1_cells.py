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

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables import Table, Workload

__all__ = ["SUMMARY_LEVELS", "Block", "cell_number", "codebook", "has_total", "usual_table"]

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


def cell_number(cell: str) -> tuple[str, int]:
    """Return table and number of a published cell, such as ``P012A003``."""
    if cell == "H00010001":  # alone in having a digit more
        return "H1", 1
    found = _CELL.fullmatch(cell)
    if found is None or len(found[3] + found[4]) != 4:
        raise ArgumentError(f"workload must have cells of Summary File 1, got {shown(cell)}")
    return f"{found[1]}{int(found[2])}{found[3]}", int(found[4])


def numbers(table: Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the numbers of a table's cells, from 1, after checking that it is in the codebook."""
    found = []
    for cell in table.cells:
        name, number = cell_number(cell)
        if name not in codebook() or name != table.name or number > codebook()[name].cells:
            raise ArgumentError(
                f"workload must have tables of counts of Summary File 1, got {shown(cell)} in "
                f"{table.name!r}"
            )
        found.append(number)
    return np.array(found, dtype=np.int64)


def has_total(table: Table) -> bool:
    """Return whether all cells of a table together are its first, which it does not hold.

    So it is where every leaf is held: the tables of race and of age by sex.
    """
    base = table.name.rstrip("ABCDEFGHIJKLMNO")
    full = base in ("P6", "P7", "P8", "P9", "P10", "P11", "P12", "PCT12", "P15", "H13")
    held = {cell_number(cell)[1] for cell in table.cells}
    return full and 1 not in held and len(held) == _LEAVES[base]


_LEAVES = {
    "P6": 6,
    "P7": 12,
    "P8": 63,
    "P9": 64,
    "P10": 63,
    "P11": 64,
    "P12": 46,
    "PCT12": 206,
    "P15": 14,
    "H13": 7,
}


def check_workload(workload: Workload) -> None:
    """Refuse a workload that Summary File 1 does not hold."""
    check.instance(workload, Workload, "workload")
    if workload.schema.geography.name != "census":
        raise ArgumentError(
            f"workload must be of the census geography, got {shown(workload.schema.geography.name)}"
        )
    for table in workload.tables.values():
        numbers(table)

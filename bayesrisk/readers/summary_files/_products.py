"""The summary files that are read: names of files, geographic header, and where each cell stands.

Positions of 2010 are those of ``sf1_codebook.csv``.  Those of 2020 follow the technical
documentation of the redistricting file (P.L. 94-171) and of the Demographic and Housing
Characteristics File (DHC): fields between ``|``, five keys first, tables one after another.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError
from bayesrisk.readers.summary_files import _sf1_cells as cells
from bayesrisk.readers.summary_files._sf1_cells import SUMMARY_LEVELS, Block
from bayesrisk.tables import Table, Workload

_ITERATIONS = "ABCDEFGHIJKLMNO"


@dataclass(frozen=True)
class Product:
    """A summary file.

    Attributes
    ----------
    title : str
        What messages call it.
    year : int
        Of the census.
    ending : str
        Of the names of its files.
    file_id : str
        First field of its lines.
    delimiter : str
        Between the fields of a segment.
    block_level : str
        Summary level of blocks.
    leaves : mapping of str to int
        How many cells a table has that together are its first cell, the total.
    """

    title: str
    year: int
    ending: str
    file_id: str
    delimiter: str
    block_level: str
    leaves: Mapping[str, int]

    @cached_property
    def codebook(self) -> dict[str, Block]:
        """Return the place of every table."""
        if self.year == 2010:
            return cells.codebook()
        return _pl94_codebook() if self.ending == "pl" else _dhc_codebook()

    @property
    def geography(self) -> re.Pattern[str]:
        """The name of the geographic header, the state's abbreviation first."""
        return re.compile(rf"([a-z]{{2}})geo{self.year}\.{self.ending}")

    def segment(self, state: str, number: int) -> str:
        """Return the name of a segment."""
        return f"{state}{number:05d}{self.year}.{self.ending}"

    @property
    def summary_levels(self) -> dict[str, str]:
        """The code of each level of the census geography."""
        return {**SUMMARY_LEVELS, "block": self.block_level}

    def check_workload(self, workload: Workload) -> None:
        """Refuse a workload that the file does not hold."""
        check.instance(workload, Workload, "workload")
        if workload.schema.geography.name != "census":
            raise ArgumentError(
                "workload must be of the census geography, got "
                f"{shown(workload.schema.geography.name)}"
            )
        for table in workload.tables.values():
            self.numbers(table)

    def numbers(self, table: Table) -> NDArray[np.int64]:
        """Return the numbers of a table's cells, from 1, after checking that they are known."""
        found = []
        for cell in table.cells:
            name, number = cells.cell_number(cell, self.title)
            book = self.codebook
            if name not in book or name != table.name or number > book[name].cells:
                raise ArgumentError(
                    f"workload must have tables of counts of {self.title} "
                    f"({', '.join(book)}), got {shown(cell)} in {shown(table.name)}"
                )
            found.append(number)
        return np.array(found, dtype=np.int64)

    def has_total(self, table: Table) -> bool:
        """Return whether all cells of a table together are its first, which it does not hold.

        So it is where every leaf is held: the tables of race and of age by sex.
        """
        base = table.name.rstrip(_ITERATIONS)
        held = {cells.cell_number(cell, self.title)[1] for cell in table.cells}
        return base in self.leaves and 1 not in held and len(held) == self.leaves[base]


def _placed(segment: int, *tables: tuple[str, int], start: int = 6) -> dict[str, Block]:
    """Return tables that follow one another in a segment."""
    found = {}
    for name, size in tables:
        found[name] = Block(segment, start, size)
        start += size
    return found


def _pl94_codebook() -> dict[str, Block]:
    return {
        **_placed(1, ("P1", 71), ("P2", 73)),
        **_placed(2, ("P3", 71), ("P4", 73), ("H1", 3)),
        **_placed(3, ("P5", 10)),
    }


def _dhc_codebook() -> dict[str, Block]:
    """Return the tables of persons by sex, age, race and Hispanic origin.

    P2 (urban and rural) and P13 (medians) stand between them and are not read, nor are the tables
    of sex by age for other groups (P12J to P12AH), which share segments with those that are.
    """
    race = (("P3", 8), ("P4", 3), ("P5", 17), ("P6", 7), ("P7", 15), ("P8", 71), ("P9", 73))
    found = {
        **_placed(5, ("P1", 1)),
        **_placed(5, *race, start=11),
        **_placed(6, ("P10", 71), ("P11", 73), ("P12", 49), ("P12A", 49)),
        **_placed(8, ("P12B", 49), ("P12C", 49), start=153),
        **_placed(9, *((f"P12{letter}", 49) for letter in "DEFGH")),
        **_placed(10, ("P12I", 49)),
        **_placed(13, ("P14", 43), start=183),
        **_placed(21, ("PCT12", 209)),
    }
    for place, letter in enumerate(_ITERATIONS):
        found |= _placed(22 + place, (f"PCT12{letter}", 209))
    return found


_RACES = {"P8": 63, "P9": 64, "P10": 63, "P11": 64, "P12": 46, "PCT12": 206}
SF1 = Product(
    "Summary File 1", 2010, "sf1", "SF1ST", ",", "101",
    {"P6": 6, "P7": 12, **_RACES, "P15": 14, "H13": 7},
)  # fmt: skip
PL94 = Product(
    "the 2020 redistricting file", 2020, "pl", "PLST", "|", "750",
    {"P1": 63, "P2": 64, "P3": 63, "P4": 64, "P5": 7, "H1": 2},
)  # fmt: skip
DHC = Product(
    "the 2020 DHC", 2020, "dhc", "DHCST", "|", "100",
    {"P3": 7, "P4": 2, "P5": 14, "P6": 6, "P7": 12, **_RACES},
)  # fmt: skip
PRODUCTS = (SF1, PL94, DHC)

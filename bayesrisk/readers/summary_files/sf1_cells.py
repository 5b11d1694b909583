"""Cells of the 2010 Summary File 1, and geographic headers: which record is which place."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._files.text import shown
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.text.tables import Lines, Piece, check_distinct, check_state

# Where the cells of the 2010 Summary File 1 stand: table, number, segment, column.
#
# ``sf1_codebook.csv`` has a line for each table of whole counts: its segment, the column of its
# first cell (1 is FILEID) and how many cells follow one another (positions of the technical
# documentation of the 2010 Census Summary File 1, as classified in the Census Bureau's
# ``recon_replication``). Tables of medians and averages (P13, P17, H12) are no counts and are left
# out.


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


#: First character (from 0) and the one after the last of the columns that are used.
FIELDS = {
    "STUSAB": (6, 8),
    "SUMLEV": (8, 11),
    "GEOCOMP": (11, 13),
    "LOGRECNO": (18, 25),
    "STATE": (27, 29),
    "COUNTY": (29, 32),
    "TRACT": (54, 60),
    "BLKGRP": (60, 61),
    "BLOCK": (61, 65),
    "POP100": (318, 327),
    "HU100": (327, 336),
}
LINE = 500  # characters of a line
#: Columns of a level's code.
PARTS = {
    "nation": (),
    "state": ("STATE",),
    "county": ("STATE", "COUNTY"),
    "tract": ("STATE", "COUNTY", "TRACT"),
    "block_group": ("STATE", "COUNTY", "TRACT", "BLKGRP"),
    "block": ("STATE", "COUNTY", "TRACT", "BLOCK"),
}
_WIDTHS = {"STATE": 2, "COUNTY": 3, "TRACT": 6, "BLKGRP": 1, "BLOCK": 4}
_WHOLE = "00"  # geographic component and variant: the whole place, not a part of it


@dataclass(frozen=True)
class Header:
    """The records of a state: every number, and level and code of those that are wanted.

    ``level`` is a position among the levels asked for, -1 for other records.  Codes are numbers,
    for their leading zeros are known from the level.
    """

    name: str
    levels: tuple[str, ...]
    record: NDArray[np.int64]
    level: NDArray[np.int8]
    code: NDArray[np.int64]


def read_header(
    name: str,
    pieces: Iterable[Piece | Lines],
    levels: tuple[str, ...],
    state: str | None,
    summary: Mapping[str, str],
    variants: Sequence[str],
) -> Header:
    """Return the records of a geographic header, by the codes of their levels.

    ``variants`` are the columns that say whether a record is of a whole place.
    """
    records, found, codes = [], [], []
    what = "line"
    for piece in pieces:
        what = "row" if isinstance(piece, Piece) else "line"
        record = piece.whole("LOGRECNO", 1, 9_999_999)
        whole = np.logical_and.reduce([piece.equals(column, _WHOLE) for column in variants])
        level = np.full(len(piece), -1, dtype=np.int8)
        code = np.full(len(piece), -1, dtype=np.int64)
        for place, title in enumerate(levels):
            here = piece.equals("SUMLEV", summary[title]) & whole
            level[here] = place
            rows = np.flatnonzero(here)
            code[rows] = _codes(piece.take(rows), title, state)
        if record.size:
            records.append(record)
            found.append(level)
            codes.append(code)
    return _numbered(name, levels, summary, (records, found, codes), what)


def _codes(chosen: Piece | Lines, level: str, state: str | None) -> NDArray[np.int64]:
    """Return the codes of places of one level as numbers."""
    code = np.zeros(len(chosen), dtype=np.int64)
    for name in PARTS[level]:
        field = chosen.matrix(name, _WIDTHS[name])
        if name == "STATE":
            check_state(chosen, name, field, state)
        if name == "BLOCK":
            group = chosen.matrix("BLKGRP", 1)
            chosen.check("BLKGRP", group[:, 0] == field[:, 0], "the first digit of BLOCK")
        for place in range(field.shape[1]):
            code = code * 10 + (field[:, place] - np.uint8(48))
    return code


def _numbered(
    name: str,
    levels: tuple[str, ...],
    summary: Mapping[str, str],
    parts: tuple[list[Any], list[Any], list[Any]],
    what: str,
) -> Header:
    """Return pieces of a header as one; each place must be there once, and one of each level."""
    if not parts[0]:
        raise DataError(f"{name}: must have at least one {what}, got none")
    number, level_of, code = (np.concatenate(part) for part in parts)
    header = Header(name, levels, number, level_of, code)
    for place, level in enumerate(levels):
        rows = np.flatnonzero(header.level == place)
        if not rows.size:
            raise DataError(
                f"{name}: must have records of level {level!r} (summary level "
                f"{summary[level]}), got none"
            )
        column = PARTS[level][-1] if PARTS[level] else "SUMLEV"
        check_distinct(header.code[rows], rows + 1, name, what, column)
    if (np.diff(number) > 0).all():
        return header
    # Segments are in the order of their record numbers, whatever that of the header is.
    check_distinct(number, 1, name, what, "LOGRECNO")
    order = np.argsort(number)
    return Header(name, levels, number[order], header.level[order], header.code[order])

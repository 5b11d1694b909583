"""The geographic header of a state's Summary File 1: which record is which place."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from bayesrisk._files.text import shown
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.readers.text.source import Source
from bayesrisk.readers.text.tables import Lines, Picked, check_distinct, known_states, line_pieces

# -----------------------------------------------------------------------------
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


# -----------------------------------------------------------------------------


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
_BYTES = 2**24
_TOTAL = b"00"  # geographic component: the whole place, not its urban or rural part


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


def _level_of(lines: Lines, levels: Sequence[str], codes: Mapping[str, str]) -> NDArray[np.int8]:
    everything = Picked(lines, np.arange(len(lines)))
    summary = everything.text(*FIELDS["SUMLEV"])
    component = everything.text(*FIELDS["GEOCOMP"])
    whole = (component == np.frombuffer(_TOTAL, dtype=np.uint8)).all(axis=1)
    found = np.full(len(lines), -1, dtype=np.int8)
    for place, level in enumerate(levels):
        wanted = np.frombuffer(codes[level].encode(), dtype=np.uint8)
        found[(summary == wanted).all(axis=1) & whole] = place
    return found


def _codes(chosen: Picked, level: str, state: str | None) -> NDArray[np.int64]:
    """Return the codes of places of one level as numbers."""
    code = np.zeros(len(chosen), dtype=np.int64)
    for name in PARTS[level]:
        field = chosen.digits(name, *FIELDS[name])
        if name == "STATE":
            chosen.check(name, known_states(field), "a state or Puerto Rico", field)
            if state is not None:
                here = np.frombuffer(state.encode(), dtype=np.uint8)
                chosen.check(name, (field == here).all(axis=1), f"{state}, by the name", field)
        for place in range(field.shape[1]):
            code = code * 10 + (field[:, place] - np.uint8(48))
    if level == "block":
        group = chosen.digits("BLKGRP", *FIELDS["BLKGRP"])
        block = chosen.text(*FIELDS["BLOCK"])
        chosen.check("BLKGRP", group[:, 0] == block[:, 0], "the first digit of BLOCK", group)
    return code


def read_header(
    source: Source, levels: tuple[str, ...], state: str | None, summary: Mapping[str, str]
) -> Header:
    """Return the records of a geographic header of fixed width, by the codes of their levels."""
    records, found, codes = [], [], []
    for lines in line_pieces(source, _BYTES):
        everything = Picked(lines, np.arange(len(lines)))
        record = everything.whole("LOGRECNO", *FIELDS["LOGRECNO"], 1, 9_999_999)
        level = _level_of(lines, levels, summary)
        code = np.full(len(lines), -1, dtype=np.int64)
        for place, name in enumerate(levels):
            rows = np.flatnonzero(level == place)
            code[rows] = _codes(lines.take(rows), name, state)
        records.append(record)
        found.append(level)
        codes.append(code)
    return numbered(source.name, levels, summary, records, found, codes, "line")


def numbered(
    name: str,
    levels: tuple[str, ...],
    summary: Mapping[str, str],
    records: Sequence[NDArray[np.int64]],
    found: Sequence[NDArray[np.int8]],
    codes: Sequence[NDArray[np.int64]],
    what: str,
) -> Header:
    """Return pieces of a header as one; each place must be there once, and one of each level."""
    if not records:
        raise DataError(f"{name}: must have at least one {what}, got none")
    number = np.concatenate(records)
    header = Header(name, levels, number, np.concatenate(found), np.concatenate(codes))
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

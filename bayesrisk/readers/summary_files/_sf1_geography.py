"""The geographic header of a state's Summary File 1: which record is which place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk.exceptions import DataError
from bayesrisk.readers.text.fixed import Lines, Picked, line_pieces
from bayesrisk.readers.text.places import known_states
from bayesrisk.readers.text.source import Source
from bayesrisk.readers.text.table_pieces import check_distinct

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

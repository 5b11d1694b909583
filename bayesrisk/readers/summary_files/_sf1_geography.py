"""The geographic header of a state's Summary File 1: which record is which place."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk.exceptions import DataError
from bayesrisk.readers.summary_files._sf1_cells import SUMMARY_LEVELS
from bayesrisk.readers.text.fixed import Lines, Picked, line_pieces
from bayesrisk.readers.text.places import known_states
from bayesrisk.readers.text.source import Source
from bayesrisk.readers.text.table_pieces import check_distinct

__all__ = ["FIELDS", "LINE", "Header", "read_header"]

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
_PARTS = {
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


def _level_of(lines: Lines, levels: Sequence[str]) -> NDArray[np.int8]:
    everything = Picked(lines, np.arange(len(lines)))
    summary = everything.text(*FIELDS["SUMLEV"])
    component = everything.text(*FIELDS["GEOCOMP"])
    whole = (component == np.frombuffer(_TOTAL, dtype=np.uint8)).all(axis=1)
    found = np.full(len(lines), -1, dtype=np.int8)
    for place, level in enumerate(levels):
        wanted = np.frombuffer(SUMMARY_LEVELS[level].encode(), dtype=np.uint8)
        found[(summary == wanted).all(axis=1) & whole] = place
    return found


def _codes(chosen: Picked, level: str, state: str | None) -> NDArray[np.int64]:
    """Return the codes of places of one level as numbers."""
    code = np.zeros(len(chosen), dtype=np.int64)
    for name in _PARTS[level]:
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


def read_header(source: Source, levels: tuple[str, ...], state: str | None) -> Header:
    """Return the records of a geographic header; they must be numbered upwards, each place once."""
    records, found, codes = [], [], []
    last = np.zeros(1, dtype=np.int64)
    for lines in line_pieces(source, _BYTES):
        everything = Picked(lines, np.arange(len(lines)))
        record = everything.whole("LOGRECNO", *FIELDS["LOGRECNO"], 1, 9_999_999)
        rising = np.diff(np.concatenate([last, record])) > 0
        field = everything.text(*FIELDS["LOGRECNO"])
        everything.check("LOGRECNO", rising, "larger than in the line above", field)
        level = _level_of(lines, levels)
        code = np.full(len(lines), -1, dtype=np.int64)
        for place, name in enumerate(levels):
            rows = np.flatnonzero(level == place)
            code[rows] = _codes(lines.take(rows), name, state)
        records.append(record)
        found.append(level)
        codes.append(code)
        last = record[-1:]
    if not records:
        raise DataError(f"{source.name}: must have at least one line, got none")
    header = Header(
        source.name, levels, np.concatenate(records), np.concatenate(found), np.concatenate(codes)
    )
    for place, name in enumerate(levels):
        rows = np.flatnonzero(header.level == place)
        if not rows.size:
            raise DataError(
                f"{source.name}: must have records of level {name!r} (summary level "
                f"{SUMMARY_LEVELS[name]}), got none"
            )
        column = _PARTS[name][-1] if _PARTS[name] else "SUMLEV"
        check_distinct(header.code[rows], rows + 1, source.name, "line", column)
    return header

"""Bounds of published counts, computed a few places at a time within a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from bayesrisk import reconstruction
from bayesrisk._base.disk.parquet import read_frame
from bayesrisk._base.display import arrow_table
from bayesrisk._base.validation import BoolArray, TextArray
from bayesrisk.constraints.model import Status
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.experiments.clock import Clock
from bayesrisk.reconstruction.records.bounds import CountBounds
from bayesrisk.reconstruction.records.problem import Problem
from bayesrisk.reconstruction.records.solve import LIMIT_REACHED
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.exchange import write_parquet
from bayesrisk.tables.reading.reading import TableReading

#: Seconds below which the next part has twice as many places, and above which it has half.
_SHORT, _LONG = 0.25, 1.0
#: Seconds of a first look at a part: what it proves is written before the rest is looked at.
_FIRST = 2.0


_CELLS, _KEYS = "_cells.parquet", ["geoid", "table", "cell"]


def write_read_tables(reading: TableReading, tables: PublishedTables, folder: Path) -> None:
    """Write tables as they were read, and which cells files state at each place.

    Others are withheld in the tables, but nobody published them, or they are premises.
    """
    tables.write(folder)
    write_parquet(arrow_table(reading.count_keys), folder / _CELLS)


class StatedCells:
    """The counts in files, sorted by place: the counts of a few places are a slice."""

    def __init__(self, cells: pd.DataFrame) -> None:
        codes = cells["geoid"].to_numpy(str)
        order = np.argsort(codes, kind="stable")
        self._cells, self._codes = cells.iloc[order], codes[order]

    @classmethod
    def read(cls, folder: Path) -> StatedCells | None:
        """Return the cells of tables read from files, or None for others."""
        file = folder / _CELLS
        return cls(read_frame(file)) if file.exists() else None

    def part(self, places: TextArray) -> pd.DataFrame:
        """Return the cells from the first to the last of some places, for :func:`count_bounds`."""
        if not len(places):  # nobody published a count there
            return self._cells[:0]
        first = self._codes.searchsorted(min(places))
        return self._cells[first : self._codes.searchsorted(max(places), "right")]

    def are_numbers(self, counts: pd.DataFrame) -> BoolArray:
        """Return whether the text of each count is a number, which a range such as <5 is not."""
        cells = self.part(counts["geoid"].to_numpy(str)).drop_duplicates(_KEYS)
        number = cells.set_index(_KEYS)["number"]
        return number.reindex(pd.MultiIndex.from_frame(counts[_KEYS])).to_numpy(np.bool_)


class PlaceBounds:
    """Bounds of chosen counts of a problem, extended by more places in each step.

    ``cells`` are those of :func:`count_bounds`. Places of one part share its short time. Cases left
    open are examined again, place by place, after all places.
    """

    def __init__(self, problem: Problem, cells: pd.DataFrame, clock: Clock) -> None:
        self._problem, self._clock, self.number = problem, clock, 0
        self._cells = StatedCells(cells)
        self._ended = False
        self._parts: dict[int, CountBounds] = {}  # by their first place

    @property
    def complete(self) -> bool:
        """Whether all places were bounded, and examined again if some were left open."""
        return self._ended

    @property
    def conflict(self) -> bool:
        """Whether some place has no solution."""
        texts = (part.conflict.values() for part in self._parts.values())
        return any(text != LIMIT_REACHED for part in texts for text in part)

    @property
    def bounds(self) -> CountBounds:
        """The bounds of all places bounded so far."""
        parts = [self._parts[first] for first in sorted(self._parts)]
        conflict = {
            place: text
            for part in parts
            for place, text in part.conflict.items()
            if text != LIMIT_REACHED  # which contradicts nothing
        }
        counts = pd.concat([part.counts for part in parts], ignore_index=True)
        return replace(parts[0], counts=counts, conflict=conflict)

    def steps(self) -> Iterator[int]:
        """Bound more places, at least one, and yield their number."""
        size, places = 1, self._problem.geoids.size
        while self.number < places and not (self.number and self._clock.ended):
            began, last = time.monotonic(), min(self.number + size, places)
            self._parts[self.number] = self._part(self.number, last, _FIRST)
            self.number, seconds = last, time.monotonic() - began
            size = 2 * size if seconds < _SHORT else max(size // 2, 1) if seconds > _LONG else size
            if last < places:
                yield last
        if self.number == places:
            yield from self._retry()
            self._ended = True
            yield places

    def _part(self, first: int, last: int, most: float = np.inf) -> CountBounds:
        """Return the bounds of some places, each with its share of the time, at most so much."""
        share, size = min(self._clock.share or np.inf, most), self._problem.geoids.size
        whole = last - first == size
        problem = self._problem if whole else self._problem.part(np.arange(first, last))
        limit = None if np.isinf(share) else Deadline(share, share=share / (last - first))
        cells = self._cells.part(problem.geoids)
        return reconstruction.count_bounds(problem, cells=cells, time_limit=limit)

    def _retry(self) -> Iterator[int]:
        """Bound places again that were left open, and yield their number before each part."""
        for first, part in self._parts.items():
            frame, conflict = part.counts, dict(part.conflict)
            unsure = frame.loc[frame["status"] == Status.UNDECIDED, "geoid"].unique()
            if unsure.size:
                yield self.number
            for place in np.flatnonzero(np.isin(self._problem.geoids, unsure)).tolist():
                if self._clock.ended:
                    break
                one, code = self._part(place, place + 1), self._problem.geoids[place]
                rows = np.flatnonzero(frame["geoid"] == code)
                pieces = frame[: rows[0]], one.counts, frame[rows[-1] + 1 :]
                frame = pd.concat(pieces, ignore_index=True)
                conflict.pop(str(code), None)
                conflict |= one.conflict
            self._parts[first] = replace(part, counts=frame, conflict=conflict)

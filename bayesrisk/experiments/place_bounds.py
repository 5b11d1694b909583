"""Bounds of published counts, computed a few places at a time within a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from bayesrisk import reconstruction
from bayesrisk.constraints.model import Status
from bayesrisk.constraints.solvers import Deadline
from bayesrisk.reconstruction.records.bounds import CountBounds
from bayesrisk.reconstruction.records.problem import Problem
from bayesrisk.reconstruction.records.solve import LIMIT_REACHED

#: Seconds below which the next part has twice as many places, and above which it has half.
_SHORT, _LONG = 0.25, 1.0


class Clock:
    """The time limit of all steps together; each step may take half of the time left."""

    def __init__(self, limit: float | None) -> None:
        self._begun = time.monotonic()
        self.end = None if limit is None else self._begun + limit

    @property
    def passed(self) -> float:
        """Seconds since the first step began."""
        return time.monotonic() - self._begun

    @property
    def left(self) -> float | None:
        """Seconds left, at least 0.01, or None without a limit."""
        return None if self.end is None else max(self.end - time.monotonic(), 0.01)

    @property
    def share(self) -> float | None:
        """Half of the seconds left, or None without a limit."""
        return None if self.left is None else self.left / 2

    @property
    def ended(self) -> bool:
        """Whether the time limit has passed."""
        return self.end is not None and time.monotonic() >= self.end


class PlaceBounds:
    """Bounds of the counts of a problem, extended by more places in each step.

    Places of one part share its time.  What that leaves open is looked at again when all places
    were, place by place.
    """

    def __init__(self, problem: Problem, clock: Clock) -> None:
        self._problem, self._clock, self.number = problem, clock, 0
        self._parts: dict[int, CountBounds] = {}  # by their first place

    @property
    def complete(self) -> bool:
        """Whether the counts of all places are bounded."""
        return self.number == self._problem.geoids.size

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
        """Bound more places in each step, and yield the number bounded so far."""
        size = 1
        while not self.complete and not (self.number and self._clock.ended):
            began, last = time.monotonic(), min(self.number + size, self._problem.geoids.size)
            self._parts[self.number] = self._part(self.number, last)
            self.number, seconds = last, time.monotonic() - began
            size = 2 * size if seconds < _SHORT else max(size // 2, 1) if seconds > _LONG else size
            if last == self._problem.geoids.size:
                self._retry()
            yield self.number

    def _part(self, first: int, last: int) -> CountBounds:
        """Return bounds for places ``first`` to ``last - 1``, which share one time limit."""
        share, size = self._clock.share, self._problem.geoids.size
        whole = last - first == size
        problem = self._problem if whole else self._problem.part(np.arange(first, last))
        limit = None if share is None else Deadline(share, share=share / (last - first))
        return reconstruction.count_bounds(problem, time_limit=limit)

    def _retry(self) -> None:
        """Bound places again, one by one, that were undecided in a part of several."""
        for first, part in self._parts.items() if self._clock.end is not None else ():
            frame, places = part.counts, len(part.counts["geoid"].unique())
            width = len(frame) // places
            unsure = (frame["status"] == Status.UNDECIDED).to_numpy().reshape(places, width)
            conflict = dict(part.conflict)
            for place in np.flatnonzero(unsure.any(axis=1)).tolist() if places > 1 else ():
                if self._clock.ended:
                    break
                one = self._part(first + place, first + place + 1)
                pieces = frame[: place * width], one.counts, frame[(place + 1) * width :]
                frame = pd.concat(pieces, ignore_index=True)
                conflict.pop(str(one.counts["geoid"].iloc[0]), None)
                conflict |= one.conflict
            self._parts[first] = replace(part, counts=frame, conflict=conflict)

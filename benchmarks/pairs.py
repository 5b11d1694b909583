"""Two functions timed in turn: a ratio of one run, whatever else the machine does meanwhile."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pairs:
    """Seconds per unit of work of each round, ours and theirs."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs, round by round, smallest first."""
        return sorted(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        """Median of the ratios: below 1 where ours is faster."""
        return statistics.median(self.ratios)


def in_turn(
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    rounds: int,
    ours_units: float = 1,
    theirs_units: float = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Pairs:
    """Call both once unmeasured, then in turn ``rounds`` times.

    The units say how much work a call does, so that the slower one may do less.  A clock of the
    processor (``time.process_time``) hears less of other programs, and nothing of other processes.
    """
    ours()
    theirs()
    pairs = [(seconds(ours, clock), seconds(theirs, clock)) for _ in range(rounds)]
    return Pairs(tuple(a / ours_units for a, _ in pairs), tuple(b / theirs_units for _, b in pairs))


def seconds(function: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of one call."""
    start = clock()
    function()
    return clock() - start

"""When to stop: one clock for all stages of a search."""

import time

import numpy as np

from bayesrisk.reconstruction.solvers.model import Limits


class Deadline:
    """A point in time, on a clock that only goes forward.

    Parameters
    ----------
    seconds : float, optional
        How long from now; None for no limit.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._end = np.inf if seconds is None else time.perf_counter() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0; infinite without a limit."""
        return max(self._end - time.perf_counter(), 0.0)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.left <= 0.0

    def sooner(self, seconds: float) -> "Deadline":
        """Return the deadline that is some seconds from now, or this one if it comes first."""
        found = Deadline(seconds)
        found._end = min(found._end, self._end)
        return found

    @property
    def limits(self) -> Limits:
        """What a solver may still take."""
        left = self.left
        return Limits(seconds=None if np.isinf(left) else left)

"""The law of a count as a table of logarithms: what every sum over counts and every sampler reads.

Only ratios matter in a posterior, so tables need not be normalised.
"""

from typing import Any, NamedTuple

import numpy as np

from bayesrisk._files.parse import shown
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.distributions._base import single_law
from bayesrisk.exceptions import ArgumentError

#: Most entries of a table.
MAX_ENTRIES = 2**24


class LogTable(NamedTuple):
    """Logarithms of probabilities, ``log_pmf[i]`` at the count ``start + i``.

    Minus infinity beyond; a table without entries is flat on all counts.
    """

    start: int
    log_pmf: FloatArray

    @classmethod
    def of_target(cls, known: int, prior: float) -> "LogTable":
        """Return the law of a count that is ``known``, or one more with probability ``prior``."""
        return cls(known, np.array([np.log1p(-prior), np.log(prior)]))

    @property
    def flat(self) -> bool:
        """Whether nothing is known."""
        return not self.log_pmf.size

    @property
    def stop(self) -> int:
        """The count after the last entry."""
        return self.start + self.log_pmf.size

    @property
    def allowed(self) -> IntArray:
        """Counts of positive probability, in order."""
        return np.asarray(self.start + np.flatnonzero(np.isfinite(self.log_pmf)), dtype=np.int64)

    def at(self, count: int) -> float:
        """Return the logarithm at one count; 0 where the table is flat."""
        if self.flat:
            return 0.0
        inside = self.start <= count < self.stop
        return float(self.log_pmf[count - self.start]) if inside else -np.inf

    def trimmed(self) -> "LogTable":
        """Return the table without impossible counts at its ends."""
        first, last = self.allowed[[0, -1]].tolist()
        return LogTable(first, self.log_pmf[first - self.start : last - self.start + 1])

    def times(self, other: "LogTable") -> "LogTable":
        """Return the product of two laws of one count, on the counts that both list.

        One impossible entry where there are none.
        """
        if self.flat or other.flat:
            return other if self.flat else self
        start = max(self.start, other.start)
        size = min(self.stop, other.stop) - start
        if size < 1:
            return LogTable(start, np.array([-np.inf]))
        parts = [t.log_pmf[start - t.start : start - t.start + size] for t in (self, other)]
        return LogTable(start, parts[0] + parts[1])


#: Nothing is known of a count.
FLAT = LogTable(0, np.empty(0))


def log_table(
    law: Any, name: str, *, negative: bool = False, largest: int | None = None
) -> LogTable:
    """Return the table of a law on the counts from 0.

    Parameters
    ----------
    law : CountLaw
        A single law.
    name : str
        What it is called in messages.
    negative : bool, default False
        Whether mass on negative counts is left out; else it is refused.
    largest : int, optional
        Counts beyond are left out.

    Returns
    -------
    LogTable
        From the first count >= 0 of the law's support to its last, or to ``largest``.

    Raises
    ------
    ArgumentError
        If the law allows no such count, needs more than 2**24 entries, or is several laws.
    """
    low, high = (float(end) for end in single_law(law, name).support())
    if low < 0.0 and not negative and float(law.cdf(-1)) > 0.0:
        raise ArgumentError(f"{name} must give no mass to negative counts, got {shown(law)}")
    first, last = max(low, 0.0), high if largest is None else min(high, float(largest))
    if not last - first < MAX_ENTRIES:
        raise ArgumentError(
            f"{name} must have at most {MAX_ENTRIES} values >= 0 (tabulate or truncate it), got "
            f"the support {low:g} to {high:g}"
        )
    if last >= first:
        values = np.arange(int(first), int(last) + 1)
        log_pmf = np.atleast_1d(np.asarray(law.logpmf(values), dtype=np.float64))
        if np.isfinite(log_pmf).any():
            return LogTable(int(first), log_pmf)
    most = "" if largest is None else f" and <= {largest}"
    raise ArgumentError(f"{name} must allow a count >= 0{most}, got {shown(law)}")

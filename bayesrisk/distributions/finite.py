"""A law given by its probabilities: convolutions, empirical and simulated laws."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._random import Seed, generator
from bayesrisk._validation import FloatAnswer, IntAnswer
from bayesrisk.distributions._base import CountLaw, whole_size
from bayesrisk.exceptions import ArgumentError, ShapeError


class FiniteLaw(CountLaw):
    """A law on consecutive integers, given by its probabilities.

    Parameters
    ----------
    start : int
        Smallest value.
    probabilities : array_like of float, shape (n,)
        Probability of ``start``, ``start + 1``, ...; non-negative, summing to 1 within
        ``error_bound`` plus rounding.
    error_bound : float, default 0
        Bound on the total-variation distance to the law that this one stands for: mass cut off
        its tails, and rounding.

    Examples
    --------
    >>> die = FiniteLaw(1, [1 / 6] * 6)
    >>> float(die.mean()), round(float(die.cdf(2)), 4)
    (3.5, 0.3333)
    """

    def __init__(self, start: int, probabilities: ArrayLike, *, error_bound: float = 0.0) -> None:
        self._start = check.integer(start, "start")
        pmf = check.real_array(probabilities, "probabilities", lower=0.0)
        self.error_bound = check.scalar(error_bound, "error_bound", lower=0.0, upper=1.0)
        if pmf.ndim != 1:
            raise ShapeError(f"probabilities must be one-dimensional, got shape {pmf.shape}")
        excess = abs(float(pmf.sum()) - 1.0)
        if excess > 2.0 * self.error_bound + pmf.size * 2**-50:
            raise ArgumentError(f"probabilities must sum to 1, got {pmf.sum()!s}")
        self._pmf: NDArray[np.float64] = np.array(pmf)
        self._pmf.setflags(write=False)
        # Each tail is summed from its own end, so that both keep their relative precision.
        self._lower = np.concatenate(([0.0], np.cumsum(self._pmf)))
        self._upper = np.concatenate((np.cumsum(self._pmf[::-1])[::-1], [0.0]))

    @classmethod
    def point(cls, value: int) -> "FiniteLaw":
        """Return the law that has one value: a count known exactly, such as an invariant.

        Parameters
        ----------
        value : int
            The value.

        Returns
        -------
        FiniteLaw
            With probability 1 at ``value``.

        Examples
        --------
        >>> print(FiniteLaw.point(7).mean())
        7.0
        """
        return cls(value, [1.0])

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probabilities of the consecutive integers of the support (read-only)."""
        return self._pmf

    @property
    def start(self) -> int:
        """Smallest value of the support."""
        return self._start

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters: a single law."""
        return ()

    def __repr__(self) -> str:
        size, bound = self._pmf.size, self.error_bound
        return f"FiniteLaw(start={self._start}, size={size}, error_bound={bound:.3g})"

    def pmf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X = x)."""
        d = check.points(x, "x") - self._start
        with np.errstate(invalid="ignore"):
            inside = (d >= 0) & (d < self._pmf.size) & (d == np.rint(d))
        value = self._pmf[np.where(inside, d, 0).astype(np.int64)]
        return np.where(inside, value, np.where(np.isnan(d), np.nan, 0.0))[()]

    def logpmf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X = x)."""
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(x))

    def _cumulative(self, x: ArrayLike, table: NDArray[np.float64]) -> Any:
        d = np.asarray(check.points(x, "x") - self._start, dtype=float)
        index = np.clip(np.nan_to_num(np.floor(d)) + 1.0, 0, self._pmf.size).astype(np.int64)
        return np.where(np.isnan(d), np.nan, table[index])[()]

    def cdf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X <= x)."""
        return check.answer(self._cumulative(x, np.minimum(self._lower, 1.0)))

    def sf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X > x)."""
        return check.answer(self._cumulative(x, np.minimum(self._upper, 1.0)))

    def logcdf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X <= x)."""
        with np.errstate(divide="ignore"):
            return np.log(self.cdf(x))

    def logsf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X > x)."""
        with np.errstate(divide="ignore"):
            return np.log(self.sf(x))

    def support(self) -> tuple[int, int]:
        """Return the smallest and the largest tabulated value."""
        return self._start, self._start + self._pmf.size - 1

    def ppf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest x with P(X <= x) >= q."""
        q = check.points(q, "q").astype(float)
        top = self._pmf.size - 1
        index = np.minimum(np.searchsorted(self._lower[1:], q, side="left"), top)
        index = np.where(q == 1.0, top, index)  # the tabulated sum may reach 1 before the end
        value = np.where(q == 0.0, self._start - 1, self._start + index)
        return np.where((q >= 0.0) & (q <= 1.0), value, np.nan)[()]

    def isf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest x with P(X > x) <= q."""
        q = check.points(q, "q").astype(float)
        top = self._pmf.size - 1
        index = top + 1 - np.searchsorted(self._upper[::-1], q, side="right")
        value = np.where(q == 1.0, self._start - 1, self._start + np.clip(index, 0, top))
        return np.where((q >= 0.0) & (q <= 1.0), value, np.nan)[()]

    def mean(self) -> FloatAnswer:
        """Return the expectation."""
        return self._start + float(np.arange(self._pmf.size) @ self._pmf)

    def var(self) -> FloatAnswer:
        """Return the variance."""
        deviation = self._start + np.arange(self._pmf.size) - self.mean()
        return float(deviation**2 @ self._pmf)

    def entropy(self) -> FloatAnswer:
        """Return the entropy in nats."""
        positive = self._pmf[self._pmf > 0.0]
        return float(-(positive @ np.log(positive)))

    def rvs(
        self, size: int | tuple[int, ...] | None = None, random_state: Seed | None = None
    ) -> IntAnswer:
        """Draw values by inversion; simulation grade.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the draw.
        random_state : int, Generator or SeedSequence, optional
            Source of randomness.

        Returns
        -------
        int or ndarray of int64
            Draws.
        """
        u = generator(random_state, "random_state", optional=True).random(whole_size(size, ()))
        index = np.searchsorted(self._lower[1:], u * self._lower[-1], side="right")
        return check.whole_answer(self._start + np.minimum(index, self._pmf.size - 1))

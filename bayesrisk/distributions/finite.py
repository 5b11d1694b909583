"""A law given by its probabilities: convolutions, empirical and simulated laws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._random import Seed, generator
from bayesrisk._validation import FloatAnswer, IntAnswer
from bayesrisk.distributions.base import CountLaw, whole_size
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError


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
    def point(cls, value: int) -> FiniteLaw:
        """Return the law that has one value: a count known exactly, such as an invariant.

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


# -----------------------------------------------------------------------------
# Any noise law, conditioned on an interval.


WINDOW_TAIL = 2.0**-60  # mass left out on each side where moments are summed
MAX_TABLE = 2**24  # 128 MiB of doubles
# Where a difference of tails would leave less than this share of them, up to so many values are
# summed instead.
CANCELS = np.log(0.25)
NARROW = 256


def _log_less(log_part: Any) -> Any:
    """Return log(1 - exp(log_part)), for log_part <= 0, without cancellation at either end."""
    with np.errstate(divide="ignore", under="ignore"):
        part = np.minimum(log_part, 0.0)
        return np.where(part > -np.log(2.0), np.log(-np.expm1(part)), np.log1p(-np.exp(part)))


def _log_difference(larger: Any, smaller: Any) -> Any:
    """Return log(exp(larger) - exp(smaller))."""
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isneginf(smaller), -np.inf, smaller - larger)
    return larger + _log_less(gap)


class TruncatedLaw(CountLaw):
    """The law of ``X`` given ``lower <= X <= upper``.

    Parameters
    ----------
    law : CountLaw
        The law to condition; its parameters may be arrays.
    lower, upper : array_like of float, optional
        Whole numbers, or minus / plus infinity (the default: no bound on that side).

    Notes
    -----
    The mass of every interval that a method needs is the difference of two tails of the law on
    the side of its median where the interval lies, or what both tails leave of 1 where it holds
    the median; where these nearly cancel and the interval has at most 256 values, they are
    summed.  So ``cdf``, ``sf`` and ``pmf`` keep a relative error, and their logarithms an
    absolute one, of about ``2**-52 * (16 + 8 |log P|)``, P the smallest probability under the law
    that was conditioned; for an interval of more than 256 values this is divided by its share of
    the half-line it was cut from (of the line, if it holds the median), where that is below 1/4.
    ``logcdf`` and ``logsf`` near 0 come from the other tail.

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> law = TruncatedLaw(DiscreteGaussian(10.0), lower=0)
    >>> bool(abs(law.pmf(range(100)).sum() - 1) < 1e-14)
    True
    """

    def __init__(
        self, law: CountLaw, lower: ArrayLike = -np.inf, upper: ArrayLike = np.inf
    ) -> None:
        if not isinstance(law, CountLaw):
            raise ArgumentTypeError(f"law must be a CountLaw, got {shown(law)}")
        self._law = law
        low, high = law.support()
        bounds = self._bound(lower, "lower"), self._bound(upper, "upper")
        self._shape = check.broadcast(
            lower=bounds[0], upper=bounds[1], law=np.empty(law.shape, dtype=np.int8)
        )
        self._low, self._high = np.maximum(bounds[0], low), np.minimum(bounds[1], high)
        if np.any(self._low > self._high):
            raise ArgumentError(
                f"lower must not exceed upper within the support, "
                f"got [{shown(lower)}, {shown(upper)}]"
            )
        self._centre = np.asarray(law.median())  # neither tail beyond it exceeds one half
        self._log_mass = self._log_interval(self._low, self._high)
        if np.any(np.isneginf(self._log_mass)):
            raise ArgumentError(
                f"lower and upper must leave a positive probability, got none in "
                f"[{shown(lower)}, {shown(upper)}]"
            )

    @staticmethod
    def _bound(value: ArrayLike, name: str) -> NDArray[np.float64]:
        bound = np.asarray(check.points(value, name), dtype=float)
        if np.any(np.isnan(bound) | (np.isfinite(bound) & (bound != np.rint(bound)))):
            raise ArgumentError(f"{name} must be a whole number or infinite, got {shown(value)}")
        return bound

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the broadcast parameters."""
        return self._shape

    def __repr__(self) -> str:
        return (
            f"TruncatedLaw({self._law!r}, lower={self._low.tolist()}, upper={self._high.tolist()})"
        )

    def _log_interval(self, low: Any, high: Any) -> Any:
        """Return log P(low <= X <= high) under the law that was truncated."""
        law = self._law
        below, above = np.asarray(law.logcdf(low - 1.0)), np.asarray(law.logsf(high))
        from_low, to_high = np.asarray(law.logsf(low - 1.0)), np.asarray(law.logcdf(high))
        right, left = low > self._centre, high < self._centre
        with np.errstate(divide="ignore", under="ignore"):
            across = np.log1p(-np.minimum(np.exp(below) + np.exp(above), 1.0))
        sides = _log_difference(from_low, above), _log_difference(to_high, below)
        value = np.where(right, sides[0], np.where(left, sides[1], across))
        with np.errstate(invalid="ignore"):
            share = value - np.where(right, from_low, np.where(left, to_high, 0.0))
            narrow = (high - low < NARROW) & (high >= low) & (share < CANCELS)
        return np.where(narrow, self._log_sum(low, high, narrow), value) if narrow.any() else value

    def _log_sum(self, low: Any, high: Any, narrow: NDArray[np.bool_]) -> Any:
        """Return log P(low <= X <= high), value by value, where the interval is narrow."""
        low, high = np.where(narrow, low, 0.0), np.where(narrow, high, 0.0)
        total = np.asarray(self._law.logpmf(low))
        for step in range(1, int(np.max(high - low)) + 1):
            term = np.asarray(self._law.logpmf(low + step))
            total = np.where(low + step <= high, np.logaddexp(total, term), total)
        return total

    def _log_parts(self, x: Any) -> tuple[Any, Any]:
        """Return log P(X <= x) and log P(X > x) of the truncated law, for whole x."""
        cut = np.clip(x, self._low, self._high - 1.0)
        below = np.minimum(self._log_interval(self._low, cut) - self._log_mass, 0.0)
        above = np.minimum(self._log_interval(cut + 1.0, self._high) - self._log_mass, 0.0)
        # The larger of the two is what the smaller leaves of 1.
        return (
            np.where(below > above, _log_less(above), below),
            np.where(above > below, _log_less(below), above),
        )

    def _points(self, x: ArrayLike) -> NDArray[np.float64]:
        values = np.asarray(check.points(x, "x"), dtype=float)
        check.broadcast(x=values, parameters=np.empty(self._shape, dtype=np.int8))
        return values

    def logpmf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X = x); minus infinity outside the interval."""
        x = self._points(x)
        with np.errstate(invalid="ignore"):
            inside = (x >= self._low) & (x <= self._high)
            value = np.asarray(self._law.logpmf(x)) - self._log_mass
        return np.where(inside, value, np.where(np.isnan(x), np.nan, -np.inf))[()]

    def logcdf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X <= x)."""
        x = np.floor(self._points(x))
        value = self._log_parts(x)[0]
        value = np.where(x >= self._high, 0.0, np.where(x < self._low, -np.inf, value))
        return np.where(np.isnan(x), np.nan, value)[()]

    def logsf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X > x)."""
        x = np.floor(self._points(x))
        value = self._log_parts(x)[1]
        value = np.where(x >= self._high, -np.inf, np.where(x < self._low, 0.0, value))
        return np.where(np.isnan(x), np.nan, value)[()]

    def support(self) -> tuple[FloatAnswer, FloatAnswer]:
        """Return the ends of the interval, cut to the support of the law."""
        low, high = np.broadcast_arrays(self._low, self._high)
        return low[()], high[()]

    def _guess(self, log_tail: NDArray[np.float64], side: Any) -> NDArray[np.float64]:
        return np.asarray(np.clip(self._centre, self._low, self._high))

    def _table(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return values and probabilities along a new first axis, all but 2 WINDOW_TAIL of it."""
        first, last = np.asarray(self.ppf(WINDOW_TAIL)), np.asarray(self.isf(WINDOW_TAIL))
        width = int(np.max(last - first)) + 1
        if width * first.size > MAX_TABLE:
            raise ArgumentError(
                f"the truncated law must have at most {MAX_TABLE} values worth tabulating, "
                f"got {width} for each of {first.size} laws"
            )
        values = first + np.arange(float(width)).reshape((-1,) + (1,) * first.ndim)
        return values, np.exp(self.logpmf(values))

    def mean(self) -> FloatAnswer:
        """Return the expectation, summed over all but 2**-59 of the mass."""
        values, pmf = self._table()
        return check.answer(((values - values[0]) * pmf).sum(axis=0) + values[0])

    def var(self) -> FloatAnswer:
        """Return the variance, summed over all but 2**-59 of the mass."""
        values, pmf = self._table()
        return check.answer(((values - self.mean()) ** 2 * pmf).sum(axis=0))

    def entropy(self) -> FloatAnswer:
        """Return the entropy in nats, summed over all but 2**-59 of the mass."""
        _, pmf = self._table()
        return check.answer(special.entr(pmf).sum(axis=0))

    def rvs(
        self, size: int | tuple[int, ...] | None = None, random_state: Seed | None = None
    ) -> IntAnswer:
        """Draw values by inversion; simulation grade.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the draw; it must hold the parameters' shape, which is the default.
        random_state : int, Generator or SeedSequence, optional
            Source of randomness.

        Returns
        -------
        int or ndarray of int64
            Draws.
        """
        shape = whole_size(size, self._shape)
        rng = generator(random_state, "random_state", optional=True)
        if self._shape == ():
            values, pmf = self._table()
            return FiniteLaw(int(values[0]), pmf / pmf.sum()).rvs(shape, rng)
        u = rng.random(shape) + 2.0**-54  # strictly inside (0, 1)
        return np.asarray(self.ppf(u)).astype(np.int64)[()]

"""Any noise law, conditioned on an interval."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesrisk import _validation as check
from bayesrisk._random import Seed, generator
from bayesrisk.distributions._base import CountLaw, whole_size
from bayesrisk.distributions.finite import FiniteLaw
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

__all__ = ["TruncatedLaw"]

WINDOW_TAIL = 2.0**-60  # mass left out on each side where moments are summed
MAX_TABLE = 2**24  # 128 MiB of doubles


def _log_difference(larger: Any, smaller: Any) -> Any:
    """Return log(exp(larger) - exp(smaller))."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(np.isneginf(smaller), -np.inf, smaller - larger)
        return larger + np.log1p(-np.exp(np.minimum(gap, 0.0)))


class TruncatedLaw(CountLaw):
    """The law of ``X`` given ``lower <= X <= upper``.

    Parameters
    ----------
    law : CountLaw
        The law to condition; its parameters may be arrays.
    lower, upper : array_like of float, optional
        Whole numbers, or minus / plus infinity (the default: no bound on that side).

    Raises
    ------
    ArgumentError
        If a bound is not whole, ``lower > upper``, or the interval has probability 0.
    ShapeError
        If bounds and law do not broadcast.

    Notes
    -----
    Masses are differences of log tails on the side of the law where they do not cancel, so that
    an interval deep in one tail keeps its precision: a probability has a relative error of about
    ``2**-52 * (4 + |log P(lower <= X <= upper)|)``, divided by the share of the mass that the
    interval holds of the half-line it was cut from.

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
            raise ArgumentTypeError(f"law must be a CountLaw, got {law!r}")
        self._law = law
        low, high = law.support()
        bounds = self._bound(lower, "lower"), self._bound(upper, "upper")
        self._shape = check.broadcast(
            lower=bounds[0], upper=bounds[1], law=np.empty(law.shape, dtype=np.int8)
        )
        self._low, self._high = np.maximum(bounds[0], low), np.minimum(bounds[1], high)
        if np.any(self._low > self._high):
            raise ArgumentError(
                f"lower must not exceed upper within the support, got [{lower!r}, {upper!r}]"
            )
        # Measure from above where the interval starts right of the centre, else from below.
        self._from_above = np.asarray(self._low > np.asarray(law.mean()))
        self._log_below = np.asarray(law.logcdf(self._low - 1.0))
        self._log_above = np.asarray(law.logsf(self._high))
        self._log_mass = self._log_interval(self._low, self._high)
        if np.any(np.isneginf(self._log_mass)):
            raise ArgumentError(f"[{lower!r}, {upper!r}] must have positive probability, got 0")

    @staticmethod
    def _bound(value: ArrayLike, name: str) -> NDArray[np.float64]:
        bound = np.asarray(check.points(value, name), dtype=float)
        if np.any(np.isnan(bound) | (np.isfinite(bound) & (bound != np.rint(bound)))):
            raise ArgumentError(f"{name} must be a whole number or infinite, got {value!r}")
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
        above = _log_difference(
            np.asarray(self._law.logsf(low - 1.0)), np.asarray(self._law.logsf(high))
        )
        below = _log_difference(
            np.asarray(self._law.logcdf(high)), np.asarray(self._law.logcdf(low - 1.0))
        )
        return np.where(self._from_above, above, below)

    def _points(self, x: ArrayLike) -> NDArray[np.float64]:
        values = np.asarray(check.points(x, "x"), dtype=float)
        check.broadcast(x=values, parameters=np.empty(self._shape, dtype=np.int8))
        return values

    def logpmf(self, x: ArrayLike) -> Any:
        """Return log P(X = x); minus infinity outside the interval."""
        x = self._points(x)
        with np.errstate(invalid="ignore"):
            inside = (x >= self._low) & (x <= self._high)
            value = np.asarray(self._law.logpmf(x)) - self._log_mass
        return np.where(inside, value, np.where(np.isnan(x), np.nan, -np.inf))[()]

    def logcdf(self, x: ArrayLike) -> Any:
        """Return log P(X <= x)."""
        x = np.floor(self._points(x))
        clipped = np.clip(x, self._low, self._high)
        value = np.minimum(self._log_interval(self._low, clipped) - self._log_mass, 0.0)
        value = np.where(x >= self._high, 0.0, np.where(x < self._low, -np.inf, value))
        return np.where(np.isnan(x), np.nan, value)[()]

    def logsf(self, x: ArrayLike) -> Any:
        """Return log P(X > x)."""
        x = np.floor(self._points(x))
        clipped = np.clip(x, self._low - 1.0, self._high - 1.0)
        value = np.minimum(self._log_interval(clipped + 1.0, self._high) - self._log_mass, 0.0)
        value = np.where(x >= self._high, -np.inf, np.where(x < self._low, 0.0, value))
        return np.where(np.isnan(x), np.nan, value)[()]

    def support(self) -> tuple[Any, Any]:
        """Return the ends of the interval, cut to the support of the law."""
        low, high = np.broadcast_arrays(self._low, self._high)
        return low[()], high[()]

    def _guess(self, log_tail: NDArray[np.float64], side: Any) -> NDArray[np.float64]:
        return np.asarray(np.clip(np.asarray(self._law.mean()), self._low, self._high))

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

    def mean(self) -> Any:
        """Return the expectation, summed over all but 2**-59 of the mass."""
        values, pmf = self._table()
        return ((values - values[0]) * pmf).sum(axis=0) + values[0]

    def var(self) -> Any:
        """Return the variance, summed over all but 2**-59 of the mass."""
        values, pmf = self._table()
        return ((values - self.mean()) ** 2 * pmf).sum(axis=0)

    def entropy(self) -> Any:
        """Return the entropy in nats, summed over all but 2**-59 of the mass."""
        _, pmf = self._table()
        return special.entr(pmf).sum(axis=0)

    def rvs(
        self, size: int | tuple[int, ...] | None = None, random_state: Seed | None = None
    ) -> Any:
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

        Raises
        ------
        ArgumentError
            If ``size`` is negative or does not hold the parameters' shape.
        """
        shape = whole_size(size, self._shape)
        rng = generator(random_state, "random_state", optional=True)
        if self._shape == ():
            values, pmf = self._table()
            return FiniteLaw(int(values[0]), pmf / pmf.sum()).rvs(shape, rng)
        u = rng.random(shape) + 2.0**-54  # strictly inside (0, 1)
        return np.asarray(self.ppf(u)).astype(np.int64)[()]

"""Distributions on the integers, with SciPy's method names: all but three are derived."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import Seed, generator
from bayesrisk._base.validation import BoolArray, FloatAnswer, FloatArray, IntAnswer, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError

_Measure = Callable[[FloatArray], FloatAnswer]
_HALVINGS = 1100  # more than from the largest double to 1


class CountLaw(ABC):
    """A distribution on the integers, or a broadcast array of them, with SciPy's method names.

    ``x`` follows SciPy: the pmf is 0 off the integers, the cdf is a step function, NaN gives
    NaN.  Parameters are checked once, when the law is made.
    """

    @abstractmethod
    def logpmf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X = x)."""

    @abstractmethod
    def logcdf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X <= x)."""

    @abstractmethod
    def logsf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X > x)."""

    @abstractmethod
    def support(self) -> tuple[FloatAnswer, FloatAnswer]:
        """Return the smallest and the largest value with positive probability."""

    @abstractmethod
    def mean(self) -> FloatAnswer:
        """Return the expectation."""

    @abstractmethod
    def var(self) -> FloatAnswer:
        """Return the variance (for a discrete Gaussian, not the parameter sigma2)."""

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntAnswer:
        """Return draws of a shape that includes the parameters', by their quantiles."""
        chances = rng.uniform(np.nextafter(0.0, 1.0), 1.0, shape)
        return check.whole_answer(np.asarray(self.ppf(chances)).astype(np.int64))

    def rvs(
        self, size: int | tuple[int, ...] | None = None, random_state: Seed | None = None
    ) -> IntAnswer:
        """Return pseudo-random draws: for simulation, not for protecting a release.

        The draws follow the law to double precision, but do not resist an attacker who studies
        floating point or timing. Protect real data with a vetted library (OpenDP, Google's
        differential-privacy library).

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the draw; it must hold the parameters' shape, which is the default.
        random_state : int, Generator or SeedSequence, optional
            Source of randomness; the same seed gives the same draws.
        """
        shape = _whole_size(size, self.shape)
        return self._draw(shape, generator(random_state, "random_state", optional=True))

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the broadcast parameters; ``()`` for a single law."""

    def _guess(self, log_tail: FloatArray, side: FloatAnswer) -> FloatArray:
        """Return roughly where the tail on ``side`` (-1 lower, +1 upper) is ``exp(log_tail)``."""
        spread = np.sqrt(-2.0 * log_tail) * np.asarray(self.std())
        return np.asarray(np.rint(np.asarray(self.mean()) + side * spread))

    def pmf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X = x)."""
        return np.exp(self.logpmf(x))

    def cdf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X <= x)."""
        return np.exp(self.logcdf(x))

    def sf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X > x)."""
        return np.exp(self.logsf(x))

    def std(self) -> FloatAnswer:
        """Return the standard deviation."""
        return np.sqrt(self.var())

    def ppf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest x with P(X <= x) >= q; NaN outside [0, 1].

        As in SciPy the result is float64. ``q = 0`` gives one less than the support, and ``q = 1``
        its upper end. ``ppf(cdf(x)) == x`` as long as the cdf increases.
        """
        q = check.points(q, "q").astype(float)
        side = np.where(q > 0.5, 1.0, -1.0)
        tail = np.where(side > 0.0, 1.0 - q, q)
        return check.answer(self._quantile(q, side, tail, self.cdf))

    def isf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest x with P(X > x) <= q; NaN outside [0, 1]."""
        q = check.points(q, "q").astype(float)
        return check.answer(self._quantile(q, 1.0, q, lambda x: -np.asarray(self.sf(x)), sign=-1.0))

    def _quantile(
        self,
        q: FloatArray,
        side: FloatAnswer,
        tail: ArrayLike,
        measure: _Measure,
        sign: float = 1.0,
    ) -> FloatArray:
        """Return the smallest x with ``measure(x) >= sign * q``, for an increasing measure."""
        shape = check.broadcast(q=q, parameters=np.empty(self.shape, dtype=np.int8))
        low, high = (np.broadcast_to(np.asarray(s, float), shape) for s in self.support())
        below, above = (q == 0.0, q == 1.0) if sign > 0.0 else (q == 1.0, q == 0.0)
        ends = np.where(below, low - 1.0, np.where(above, high, np.nan))
        inside = np.broadcast_to((q > 0.0) & (q < 1.0), shape)
        if not inside.any():
            return ends
        log_tail = np.log(np.clip(np.where((q > 0.0) & (q < 1.0), tail, 0.5), 1e-308, 0.5))
        guess = np.broadcast_to(self._guess(log_tail, side), shape)
        target = np.where(inside, sign * q, sign * 0.5)
        first = _first_true(lambda x: np.asarray(measure(x)) >= target, guess, low, high)
        return np.where(inside, first, ends)


class LocatedLaw(CountLaw):
    """A law on all integers, symmetric around an integer ``loc``."""

    _loc: IntArray
    _shape: tuple[int, ...]

    @property
    def loc(self) -> IntAnswer:
        """Centre of the law."""
        return self._loc[()]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the broadcast parameters."""
        return self._shape

    def _centred(self, x: ArrayLike) -> FloatArray:
        """Return ``x - loc``, the difference of integers taken exactly."""
        values = check.points(x, "x")
        check.broadcast(x=values, parameters=np.empty(self._shape, dtype=np.int8))
        return np.asarray(values - self._loc, dtype=float)

    @abstractmethod
    def _tails(self, d: FloatArray, *, log: bool) -> FloatAnswer:
        """Return P(X - loc > d), or its logarithm, for real d."""

    def sf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X > x)."""
        return self._tails(self._centred(x), log=False)

    def logsf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X > x)."""
        return self._tails(self._centred(x), log=True)

    def cdf(self, x: ArrayLike) -> FloatAnswer:
        """Return P(X <= x), by symmetry P(X >= 2 loc - x)."""
        return self._tails(-np.floor(self._centred(x)) - 1.0, log=False)

    def logcdf(self, x: ArrayLike) -> FloatAnswer:
        """Return log P(X <= x)."""
        return self._tails(-np.floor(self._centred(x)) - 1.0, log=True)

    def support(self) -> tuple[FloatAnswer, FloatAnswer]:
        """Return minus and plus infinity: every integer has positive probability."""
        return np.full(self._shape, -np.inf)[()], np.full(self._shape, np.inf)[()]

    def mean(self) -> FloatAnswer:
        """Return the expectation, ``loc``."""
        return np.broadcast_to(self._loc.astype(float), self._shape)[()]


def single_law(law: object, name: str = "law") -> CountLaw:
    """Return the law unchanged if it is a single one, else raise."""
    if not isinstance(law, CountLaw):
        raise ArgumentTypeError(name, "must be a CountLaw", got=law)
    if law.shape != ():
        raise ShapeError(name, "must be a single law", shown=f"parameters of shape {law.shape}")
    return law


def _whole_size(size: int | tuple[int, ...] | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a draw, checked against the shape of the parameters."""
    if size is None:
        return shape
    try:
        wanted = tuple(check.count_array(size, "size", lower=0).reshape(-1).tolist())
        valid = np.broadcast_shapes(wanted, shape) == wanted
    except ShapeError:
        wanted, valid = (), isinstance(size, tuple) and not size and not shape
    except (ArgumentError, ValueError):
        valid = False
    if not valid:
        raise ArgumentError(
            "size", f"must be non-negative and hold the parameters' shape {shape}", got=size
        )
    if prod(wanted) > check.MAX_ELEMENTS:
        raise ArgumentError("size", f"must be at most {check.MAX_ELEMENTS} draws", shown=wanted)
    return wanted


def _first_true(
    reached: Callable[[FloatArray], BoolArray], guess: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the smallest whole x in [low, high] for which the monotone ``reached(x)`` is true.

    Gallops away from the guess until the answer is bracketed, then bisects: about twice the
    logarithm of the guess's error in evaluations, all elements at once.
    """
    right = np.clip(guess, low, high)
    step = np.ones_like(right)
    for _ in range(64):  # move right until reached
        todo = ~reached(right) & (right < high)
        if not todo.any():
            break
        right = np.where(todo, np.minimum(right + step, high), right)
        step = np.where(todo, 2.0 * step, step)
    left = np.maximum(right - 1.0, low - 1.0)
    step = np.ones_like(right)
    for _ in range(64):  # move left until not reached
        todo = (left >= low) & reached(left)
        if not todo.any():
            break
        right = np.where(todo, left, right)
        left = np.where(todo, np.maximum(left - step, low - 1.0), left)
        step = np.where(todo, 2.0 * step, step)
    for _ in range(_HALVINGS):
        middle = np.floor(0.5 * (left + right))
        # Beyond 2**53 neighbouring doubles are more than 1 apart, with nothing between them.
        split = (right - left > 1.0) & (left < middle) & (middle < right)
        if not split.any():
            break
        is_right = reached(middle)
        right = np.where(split & is_right, middle, right)
        left = np.where(split & ~is_right, middle, left)
    return right


# -----------------------------------------------------------------------------
# What a law of noise must offer to be read by an adversary.


@runtime_checkable
class NoiseLaw(Protocol):
    """A law of integer noise, as an adversary must know it to read a release.

    A posterior given one release needs only ``logpmf``. Averages over releases also need the
    quantiles ``ppf`` and ``isf``, which bound the sum over releases.
    """

    def logpmf(self, x: ArrayLike) -> FloatAnswer:
        """Return the natural logarithm of the probability of noise ``x``."""

    def ppf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest ``x`` whose cumulative probability is at least ``q``."""

    def isf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest ``x`` whose upper-tail probability is at most ``q``."""

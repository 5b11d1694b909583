"""Answers of the package: a belief before and after a release, and a number with its error.

All packages use these classes, so this module imports nothing but the checks of arguments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, page, span
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatAnswer, FloatArray
from bayesrisk.exceptions import ArgumentError, ShapeError

__all__ = ["Belief", "Estimate"]


def _settle(owner: object, arrays: dict[str, FloatArray]) -> None:
    """Set fields of a frozen object to floats or read-only arrays of one shape."""
    shape = check.broadcast(**arrays)
    for name, array in arrays.items():
        value: Any = np.array(np.broadcast_to(array, shape))
        value.flags.writeable = False
        object.__setattr__(owner, name, _plain(value))


def _plain(array: FloatArray) -> FloatAnswer:
    """Return the array, or a float if it has no axes."""
    return array if array.ndim else float(array)


@dataclass(frozen=True, eq=False, repr=False)
class Belief(Tabular):
    """Prior and posterior probability of a statement, and their ratio.

    Both are floats, or arrays of one shape.

    Attributes
    ----------
    prior : float or ndarray
        Probability before the release, in [0, 1]: the baseline.
    posterior : float or ndarray
        Probability after the release, in [0, 1], or its average over releases.

    Examples
    --------
    >>> belief = Belief(prior=0.5, posterior=0.62)
    >>> belief
    Belief: 0.5 before the release, 0.62 after it (1.24 times as probable)
    >>> Belief([0.1, 0.5], 0.5).ratio.tolist()
    [5.0, 1.0]
    """

    prior: FloatAnswer
    posterior: FloatAnswer

    def __post_init__(self) -> None:
        """Check both probabilities and broadcast them to one shape."""
        pair = {"prior": self.prior, "posterior": self.posterior}
        _settle(self, {n: check.real_array(v, n, lower=0.0, upper=1.0) for n, v in pair.items()})

    @property
    def ratio(self) -> FloatAnswer:
        """Posterior over prior, the risk ratio; NaN where the prior is 0."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.divide(self.posterior, self.prior)
        return _plain(np.where(np.equal(self.prior, 0.0), np.nan, ratio))

    @property
    def log_ratio(self) -> FloatAnswer:
        """Natural logarithm of the ratio; minus infinity where the posterior is 0."""
        with np.errstate(divide="ignore"):
            return _plain(np.asarray(np.log(self.ratio)))

    def to_frame(self) -> pd.DataFrame:
        """Return a frame of ``prior``, ``posterior`` and ``ratio``, a row for each belief."""
        columns = {"prior": self.prior, "posterior": self.posterior, "ratio": self.ratio}
        return pd.DataFrame({name: np.ravel(value) for name, value in columns.items()})

    def __repr__(self) -> str:
        """Return the answer in words."""
        shape = np.shape(self.prior)
        many = f" of shape {shape}" if shape else ""
        return (
            f"Belief{many}: {span(self.prior)} before the release, {span(self.posterior)} after "
            f"it ({span(self.ratio)} times as probable)"
        )

    def _repr_html_(self) -> str:
        return page([repr(self)], self.to_frame())


_NUMBERS = ("value", "error", "lower", "upper")


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(NDArrayOperatorsMixin, Tabular):
    """An estimated number, or array of numbers, with its standard error and interval.

    In arithmetic, comparisons and NumPy functions it acts as its value, and the result is a plain
    number without an error.

    Attributes
    ----------
    value : float or ndarray
        The estimate.
    error : float or ndarray
        Its standard error, >= 0; 0 if nothing was drawn.
    lower, upper : float or ndarray
        Ends of the interval, ``lower <= value <= upper``.
    confidence : float
        Confidence of the interval, in (0, 1).
    method : str
        Method of computation, such as ``"exact"`` or ``"monte-carlo"``.

    Examples
    --------
    >>> share = Estimate(0.62, 0.02, 0.58, 0.66, confidence=0.95, method="monte-carlo")
    >>> print(share, float(share))
    0.62 (0.58-0.66) 0.62
    >>> drawn = Estimate.normal(0.6213, 0.0013, confidence=0.95, method="monte-carlo")
    >>> f"{drawn:.4f}"
    '0.6213 (0.6188-0.6238)'
    >>> bool(abs(drawn - 0.62) < 2.0 * drawn.error)
    True
    """

    value: FloatAnswer
    error: FloatAnswer
    lower: FloatAnswer
    upper: FloatAnswer
    confidence: float
    method: str

    def __post_init__(self) -> None:
        """Check the numbers and broadcast them to one shape."""
        arrays = {name: check.real_array(getattr(self, name), name) for name in _NUMBERS}
        check.real_array(self.error, "error", lower=0.0)
        check.broadcast(**arrays)
        for low, high in (("lower", "value"), ("value", "upper")):
            bad = arrays[low] > arrays[high]
            if np.any(bad):
                least = check.describe_first(np.broadcast_to(arrays[low], bad.shape), bad)
                most = check.describe_first(np.broadcast_to(arrays[high], bad.shape), bad)
                raise ArgumentError(low, f"must be <= {high}", shown=f"{least} and {most}")
        confidence = check.scalar(self.confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
        object.__setattr__(self, "confidence", confidence)
        check.text(self.method, "method")
        _settle(self, arrays)

    @classmethod
    def normal(
        cls,
        value: FloatAnswer,
        error: FloatAnswer,
        *,
        confidence: float,
        method: str,
        limits: tuple[float, float] = (-np.inf, np.inf),
    ) -> Estimate:
        """Return an average of draws with a normal interval.

        The interval is ``value`` plus and minus a multiple of ``error``, such as 1.96 at a
        ``confidence`` of 0.95: it holds the true number with this probability. It is cut at
        ``limits``, which the number cannot pass. The standard error is at most 1e300.
        """
        level = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
        middle = check.real_array(value, "value")
        spread = check.real_array(error, "error", lower=0.0, upper=1e300)
        check.broadcast(value=middle, error=spread)
        reach = NormalDist().inv_cdf(0.5 + 0.5 * level) * spread
        low, high = _limits(limits)
        # A value beyond a limit, by rounding, is still in its interval.
        lower = np.minimum(np.maximum(middle - reach, low), middle)
        upper = np.maximum(np.minimum(middle + reach, high), middle)
        return cls(value, error, lower, upper, level, method)

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with the attributes as columns and a row for each number."""
        frame = pd.DataFrame({name: np.ravel(getattr(self, name)) for name in _NUMBERS})
        return frame.assign(confidence=self.confidence, method=self.method)

    def ratio(self, baseline: float) -> Estimate:
        """Return the estimate, error and interval divided by a baseline, such as a prior.

        Examples
        --------
        >>> print(Estimate(0.62, 0.02, 0.58, 0.66, confidence=0.95, method="draws").ratio(0.5))
        1.24 (1.16-1.32)
        """
        unit = check.scalar(baseline, "baseline", lower=0.0, bounds="()")
        return replace(self, **{name: getattr(self, name) / unit for name in _NUMBERS})

    def columns(self, name: str) -> dict[str, FloatAnswer]:
        """Return the numbers as columns: ``name``, ``name_error``, ``_lower`` and ``_upper``."""
        check.text(name, "name")
        return {name: self.value} | {f"{name}_{n}": getattr(self, n) for n in _NUMBERS[1:]}

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the value as an array."""
        return np.array(self.value, dtype=dtype)

    def __array_ufunc__(self, ufunc: object, method: str, *inputs: object, **kwargs: object) -> Any:
        """Return the result of an operation on the value."""
        values = [item.value if isinstance(item, Estimate) else item for item in inputs]
        return getattr(ufunc, method)(*values, **kwargs)

    def __round__(self, digits: int = 0) -> FloatAnswer:
        """Return the rounded value."""
        return _plain(np.asarray(np.round(self.value, digits)))

    def __float__(self) -> float:
        """Return the value; it must be a single number."""
        if np.ndim(self.value):
            raise ShapeError(f"float() needs one estimate, got shape {np.shape(self.value)}")
        return float(self.value)

    def __format__(self, spec: str) -> str:
        """Return value and interval, each number in the requested format."""
        rows = zip(*(np.ravel(v) for v in (self.value, self.lower, self.upper)), strict=True)
        texts = [_interval(float(v), float(low), float(high), spec) for v, low, high in rows]
        return texts[0] if not np.ndim(self.value) else "[" + ", ".join(texts) + "]"

    def __str__(self) -> str:
        """Return value and interval with as many digits as the interval's width supports."""
        return format(self, "")

    def __repr__(self) -> str:
        """Return value, interval, confidence and method."""
        shape = np.shape(self.value)
        text = f"of shape {shape}, values {span(self.value)}" if shape else str(self)
        return f"Estimate {text}, confidence {self.confidence:g}, {self.method}"

    def _repr_html_(self) -> str:
        return page([repr(self)], self.to_frame())


def _interval(value: float, lower: float, upper: float, spec: str) -> str:
    """Return text such as ``0.62 (0.58-0.66)``, or the value alone if the width is zero."""
    width = 0.5 * (upper - lower)
    if width == 0.0:
        return format(value, spec or ".4g")
    digits = spec or f".{min(max(0, -int(np.floor(np.log10(width)))), 15)}f"
    separator = "-" if lower >= 0.0 else " to "
    return f"{value:{digits}} ({lower:{digits}}{separator}{upper:{digits}})"


def _limits(limits: object) -> tuple[float, float]:
    """Return a checked lower and upper bound, either of which may be infinite."""
    bounds = [
        value if isinstance(value, float) and math.isinf(value) else check.scalar(value, "limits")
        for value in check.items(limits, "limits")
    ]
    if len(bounds) != 2 or not bounds[0] <= bounds[1]:
        raise ArgumentError("limits", "must be a lower and an upper bound", got=limits)
    return bounds[0], bounds[1]

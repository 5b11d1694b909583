"""Variance and scale of the noise in noisy measurement files.

The files give the variance of the discrete Gaussian, rounded to single precision; inference wants
the scale parameter sigma2.  The two agree to 2e-7 at 1 and differ by 6 % at sigma2 = 0.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._validation import FloatAnswer
from bayesrisk.accounting import exact_number
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    import pandas as pd

# Above this scale, variance and sigma2 are the same double: the gap is sigma2 times
# 8 pi**2 sigma2 exp(-2 pi**2 sigma2), relatively 2e-17.
_SAME = 2.2
_TERMS = np.arange(1.0, 16.0)  # exp(-j**2 / (2 _SAME)) < 1e-21 beyond
_MAX_STEPS = 60
#: Relative difference that rounding to single precision explains, with a margin of two.
SINGLE = 2.0**-23


def _log_variance(precision: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return the logarithm of the variance at 1 / (2 sigma2), and its derivative.

    The weight of 1 is taken out, so that nothing underflows.
    """
    squares = _TERMS**2
    weight = np.exp(-precision[..., None] * (squares - 1.0))
    second, fourth = (weight * squares).sum(-1), (weight * squares**2).sum(-1)
    first = 2.0 * np.exp(-precision)
    mass = 1.0 + first * weight.sum(-1)
    value = np.log(2.0 * second) - precision - np.log(mass)
    return value, first * second / mass - fourth / second


def sigma2_from_variance(variance: ArrayLike) -> FloatAnswer:
    r"""Return the scale parameter of the discrete Gaussian that has a given variance.

    The inverse of ``DiscreteGaussian(sigma2).var()``, by Newton's method on
    :math:`\log \operatorname{var}` as a function of :math:`1 / (2 \sigma^2)`, a smooth
    curve that falls everywhere, with slopes between -4.4 and -0.79 and -1 at the far end.

    Parameters
    ----------
    variance : array_like
        Variances, in (0, 1e30].

    Returns
    -------
    float or ndarray
        Scale parameters sigma2, within 1e-14 relative; from 2.2 on they equal the variance.

    Examples
    --------
    >>> float(sigma2_from_variance(10.09))
    10.09
    >>> from bayesrisk.distributions import DiscreteGaussian
    >>> variance = float(DiscreteGaussian(0.2).var())
    >>> round(variance, 6), round(float(sigma2_from_variance(variance)), 12)
    (0.14132, 0.2)
    """
    target = check.real_array(variance, "variance", lower=0.0, upper=1e30, bounds="(]")
    result = target.astype(float)
    small = target < _SAME
    if small.any():
        goal = np.log(target[small])
        precision = np.full(goal.shape, 0.5 / _SAME)
        for _ in range(_MAX_STEPS):
            value, slope = _log_variance(precision)
            step = (goal - value) / slope
            precision = np.maximum(precision + step, 0.5 / _SAME)
            if (np.abs(step) <= 4e-16 * precision).all():
                break
        result[small] = 0.5 / precision
    return result[()]


def budget_chain(budget: pd.DataFrame, level: str, query: str) -> list[Fraction]:
    """Return the budgets of a query at a level and at those below it, from a table of budgets."""
    missing = [name for name in ("level", "query", "rho") if name not in budget.columns]
    if missing:
        raise ArgumentError(f"budget must have the columns level, query, rho; missing: {missing}")
    levels = list(dict.fromkeys(budget["level"]))
    if level not in levels:
        raise ArgumentError(f"budget must have the level {level!r}, got {', '.join(levels)}")
    mine = budget[budget["query"] == query]
    if mine.empty:
        raise ArgumentError(f"budget must have the query {query!r}, got none of that name")
    if mine["level"].duplicated().any():
        raise ArgumentError(f"budget must have one row for each level of {query!r}, got two")
    budgets = zip(mine["level"], mine["rho"], strict=True)
    rho = {name: exact_number(value, "rho") for name, value in budgets}
    return [rho.get(name, Fraction(0)) for name in levels[levels.index(level) :]]


class Scales:
    """Scale parameters for the variances of one query at one level.

    A unit without siblings hands its budget to its parent, and that one perhaps to its own: with
    a table of budgets a row's share is the level's own and those of one, two, ... levels below.

    Parameters
    ----------
    chain : sequence of Fraction or None
        Budgets of the level and those below; the noise has ``sigma2 = 1 / rho``.  None: invert
        the variance, which is known to single precision only.
    """

    def __init__(self, chain: Sequence[Fraction] | None) -> None:
        self._exact: NDArray[np.float64] | None = None
        if chain is not None:
            totals = {sum(chain[: i + 1], Fraction(0)) for i in range(len(chain))} - {Fraction(0)}
            if not totals:
                raise ArgumentTypeError("budget must be positive at some level, got zero")
            self._exact = np.array(sorted(float(1 / total) for total in totals))
            self._variance = np.asarray(DiscreteGaussian(self._exact).var())

    @property
    def allowed(self) -> list[float] | None:
        """Variances that the budget allows, or None."""
        return None if self._exact is None else self._variance.tolist()

    def __call__(self, variance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sigma2 for each variance; NaN where the budget does not explain it."""
        distinct, place = np.unique(variance, return_inverse=True)
        if self._exact is None:
            scales = np.asarray(sigma2_from_variance(distinct))
        else:
            gap = np.abs(distinct[:, None] / self._variance - 1.0)
            best = gap.argmin(axis=1)
            scales = np.where(gap.min(axis=1) <= SINGLE, self._exact[best], np.nan)
        result: NDArray[np.float64] = scales[place]
        return result

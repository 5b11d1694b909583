"""The exact epsilon and delta of one count with discrete Gaussian noise, on the safe side."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._validation import FloatAnswer, Number
from bayesrisk.accounting.conversion import (
    LEAST_DELTA,
    _delta,
    _epsilon,
    _log_inverse,
    _root,
)
from bayesrisk.distributions import kernels as _kernels
from bayesrisk.distributions.discrete_gaussian import normaliser
from bayesrisk.exceptions import ArgumentError

#: Added to every delta: its terms are within 10 roundings of 2**-53, their compensated sum within
#: 2 more, what is left out below 1e-17, the normaliser within 8: 22 in all, and here are 32.
_MARGIN = 2.0**-48
#: Doublings of a step from one ulp of epsilon to far beyond the upper bracket.
_MAX_STEPS = 128


def _arguments(sigma2: Number, sensitivity: ArrayLike) -> tuple[Any, Any]:
    return (
        check.real_array(sigma2, "sigma2", lower=1e-100, upper=1e12),
        check.count_array(sensitivity, "sensitivity", lower=1, upper=10**6),
    )


def _safe_delta(epsilon: Any, sigma2: Any, shift: Any) -> Any:
    """Return delta, never below its exact value and at most 1e-14 of it above."""
    total = _kernels.hockey_stick(epsilon, sigma2, shift) / normaliser(sigma2)
    return np.clip(total * (1.0 + _MARGIN), LEAST_DELTA, 1.0)


def discrete_gaussian_delta(
    epsilon: Number, *, sigma2: Number, sensitivity: ArrayLike = 1
) -> FloatAnswer:
    r"""Return the exact delta of one count released with discrete Gaussian noise.

    .. math:: \delta = P[Y > \epsilon\sigma^2/D - D/2] - e^\epsilon P[Y > \epsilon\sigma^2/D + D/2],
       \quad Y \sim N_\mathbb{Z}(0, \sigma^2)

    Parameters
    ----------
    epsilon : array_like
        Budget of approximate DP, in [0, 1e12].
    sigma2 : array_like
        Scale parameter of the noise, in [1e-100, 1e12].
    sensitivity : array_like of int, default 1
        Change D of the count between neighbours, a whole number >= 1.

    Returns
    -------
    float or ndarray
        delta in (0, 1], rounded up: never below the exact value, above it by less than 1e-14 of
        it; 2**-1022 where it is smaller than that.

    Notes
    -----
    A sum of positive terms (no cancellation), about 9 sigma of them.

    References
    ----------
    Canonne, Kamath and Steinke (2020, arXiv:2004.00010), Theorem 7.

    Examples
    --------
    >>> print(round(discrete_gaussian_delta(1.0, sigma2=5.04), 8))
    0.00328048
    """
    target = _epsilon(epsilon)
    scale2, shift = _arguments(sigma2, sensitivity)
    check.broadcast(epsilon=target, sigma2=scale2, sensitivity=shift)
    return check.answer(_safe_delta(target, scale2, shift))


def discrete_gaussian_epsilon(
    delta: Number, *, sigma2: Number, sensitivity: ArrayLike = 1
) -> FloatAnswer:
    """Return the exact epsilon of one count released with discrete Gaussian noise.

    The smallest epsilon whose :func:`discrete_gaussian_delta` does not exceed delta.

    Parameters
    ----------
    delta : array_like
        Probability of failure, in [1e-300, 1).
    sigma2 : array_like
        Scale parameter of the noise, in [1e-100, 1e12].
    sensitivity : array_like of int, default 1
        Change of the count between neighbours, a whole number >= 1.

    Returns
    -------
    float or ndarray
        Epsilon >= 0, rounded up: the exact delta at the value returned does not exceed ``delta``.
        Above the least such epsilon by about 1e-12 of it; by more only where delta hardly moves,
        so that a change of it by 1e-14 of its value moves epsilon that far.

    Examples
    --------
    >>> print(round(discrete_gaussian_epsilon(0.00328048, sigma2=5.04), 5))
    1.0
    """
    failure = _delta(delta)
    scale2, shift = _arguments(sigma2, sensitivity)
    shape = check.broadcast(delta=failure, sigma2=scale2, sensitivity=shift)
    failure, scale2, shift = (np.broadcast_to(a, shape) for a in (failure, scale2, shift))

    def excess(e: Any, d: Any, s2: Any, n: Any) -> Any:
        return np.log(_safe_delta(e, s2, n.astype(np.int64))) - np.log(d)

    # An upper bracket: the loss at the first y beyond which less than delta is left.
    rho = shift.astype(float) ** 2 / (2.0 * scale2)
    high = rho + 2.0 * np.sqrt(rho * _log_inverse(failure)) + 1.0 / scale2
    needed = np.asarray(_safe_delta(0.0, scale2, shift) > failure)
    root = _root(excess, np.zeros(shape), high, failure, scale2, shift.astype(float))
    return _first_safe(np.where(needed, root, 0.0), high, failure, scale2, shift)[()]


def _first_safe(
    start: NDArray[np.float64], high: Any, failure: Any, scale2: Any, shift: Any
) -> NDArray[np.float64]:
    """Return an epsilon of at least ``start`` where delta does not exceed the target.

    In doubling steps, and back to within 1e-13: a root is where delta crosses the target only to
    its own rounding, and delta may fall by many powers of ten between two doubles.
    """
    last, found = start.copy(), start.copy()
    step = np.maximum(np.spacing(start), high * 2.0**-100)
    for _ in range(_MAX_STEPS):
        short = np.asarray(_safe_delta(found, scale2, shift) > failure)
        if not short.any():
            break
        last = np.where(short, found, last)
        found = np.where(short, start + step, found)
        step = 2.0 * step
    else:
        raise ArgumentError(
            f"delta must be reached within {_MAX_STEPS} steps of a root, got {failure.min():g}"
        )
    for _ in range(_MAX_STEPS):
        middle = last + 0.5 * (found - last)
        wide = (found - last > 1e-13 * found) & (last < middle) & (middle < found)
        if not wide.any():
            break
        safe = np.asarray(_safe_delta(middle, scale2, shift) <= failure)
        found = np.where(wide & safe, middle, found)
        last = np.where(wide & ~safe, middle, last)
    return found

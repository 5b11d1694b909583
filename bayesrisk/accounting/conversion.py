"""zCDP and approximate differential privacy: rho, sigma2 and (epsilon, delta), in every direction.

Let L = log(1 / delta) and let a = 1 + b be the Renyi order. The tight conversion is the curve

    log(1 / delta) = b**2 rho + log(1 + b),     epsilon = (2 b + 1) rho - log(1 + 1 / b),

on which each of the three quantities is monotone in b > 0. So every direction is one bracketed root
in t = log b. It is followed by the form of the bound that is stationary in b, so the error of the
root enters squared.

That form is a valid bound at every b > 0, so only rounding could make a guarantee too good. Each
result is therefore moved to the safe side (epsilon and delta up, rho down) by a bound on that
rounding: ``_ROUND`` times the sum of the magnitudes of the terms.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.validation import ULP, FloatAnswer, FloatArray, IntArray, Number
from bayesrisk.accounting.budget import exact_number
from bayesrisk.distributions import kernels
from bayesrisk.distributions.discrete_gaussian import normaliser
from bayesrisk.exceptions import ArgumentError

_METHODS = ("tight", "bun-steinke")
#: Three roundings at most stand behind each term of a bound, and one behind each of the sums.
_ROUND = 4.0 * ULP
#: Least delta that is returned: below it doubles lose their precision.
LEAST_DELTA = 2.0**-1022


def _root(
    function: Callable[..., FloatArray], low: FloatArray, high: FloatArray, *arguments: FloatArray
) -> FloatArray:
    """Return the root of a monotone function, element by element, to double precision."""
    from scipy.optimize import elementwise

    arrays = np.broadcast_arrays(low, high, *arguments)
    with np.errstate(over="ignore", under="ignore"):
        find_root: Any = elementwise.find_root  # its stubs take no tuple of arrays
        result = find_root(function, tuple(arrays[:2]), args=tuple(arrays[2:]))
    return np.asarray(result.x, dtype=np.float64)


def _slack(b: FloatArray, log_inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (L - log(1 + b)) / b - log(1 + 1 / b), and the sum of its terms' magnitudes."""
    first, second, third = log_inverse / b, np.log1p(b) / b, np.log1p(1.0 / b)
    return first - second - third, first + second + third


def _up(exponent: FloatArray) -> FloatArray:
    """Return exp(exponent), at most 1, rounded up."""
    with np.errstate(under="ignore"):
        value = np.exp(np.minimum(exponent, 0.0)) * (1.0 + 2.0 * ULP)
    return np.clip(value, LEAST_DELTA, 1.0)


def _delta(delta: Number) -> FloatArray:
    return check.real_array(delta, "delta", lower=1e-300, upper=1.0, bounds="[)")


def _rho(rho: Number) -> FloatArray:
    return check.real_array(rho, "rho", lower=1e-15, upper=1e12)


def _epsilon(epsilon: Number) -> FloatArray:
    return check.real_array(epsilon, "epsilon", lower=0.0, upper=1e12)


def rho_to_epsilon(rho: Number, delta: Number, method: str = "tight") -> FloatAnswer:
    r"""Return the epsilon of approximate DP that rho-zCDP implies at a given delta.

    ``"tight"`` is the best bound from Renyi divergences alone,
    :math:`\inf_{a>1} a\rho + \frac{\log(1/\delta) - \log a}{a-1} + \log(1 - 1/a)`.
    ``"bun-steinke"`` is :math:`\rho + 2\sqrt{\rho \log(1/\delta)}`, the simple bound of the Census
    Bureau's announcements and of Kazan and Reiter (Theorem 1). Source: Canonne, Kamath and Steinke
    (2020, arXiv:2004.00010), Corollary 13; Bun and Steinke (2016, arXiv:1605.02065), Proposition
    1.3.

    Parameters
    ----------
    rho : array_like
        zCDP budget, in [1e-15, 1e12].
    delta : array_like
        The delta of approximate DP, in [1e-300, 1).
    method : {"tight", "bun-steinke"}, default "tight"
        Choice of the bound.

    Returns
    -------
    float or ndarray
        Epsilon >= 0, in nats, rounded up, so never below the bound. With 1 + b the best Renyi
        order, it is too large by at most about ``2e-15 (epsilon + 2 + 2 log(1 + 1 / b))``.

    Examples
    --------
    >>> print(round(rho_to_epsilon(2.56, 1e-10), 4))
    17.1583
    >>> print(round(rho_to_epsilon(2.56, 1e-10, method="bun-steinke"), 4))
    17.9153
    """
    budget, failure = _rho(rho), _delta(delta)
    check.choice(method, "method", _METHODS)
    check.broadcast(rho=budget, delta=failure)
    log_inverse = -np.log(failure)
    if method == "bun-steinke":
        return ((budget + 2.0 * np.sqrt(budget * log_inverse)) * (1.0 + 2.0 * ULP))[()]
    # Each of the two terms of L is at most L, and one of them at least L / 2.
    high = np.minimum(np.expm1(log_inverse), np.sqrt(log_inverse / budget))
    low = np.minimum(np.expm1(0.5 * log_inverse), np.sqrt(0.5 * log_inverse / budget))
    t = _root(
        lambda t, r, big: np.exp(2.0 * t) * r + np.logaddexp(0.0, t) - big,
        np.log(low) - 1e-9,
        np.log(high) + 1e-9,
        budget,
        log_inverse,
    )
    slack, magnitude = _slack(np.exp(t), log_inverse)
    spent = (1.0 + np.exp(t)) * budget
    return check.answer(np.maximum(spent + slack + _ROUND * (spent + magnitude), 0.0))


def epsilon_to_rho(epsilon: Number, delta: Number, method: str = "tight") -> FloatAnswer:
    """Return the largest rho whose conversion at delta does not exceed epsilon.

    It is the inverse of :func:`rho_to_epsilon` in its first argument.

    Parameters
    ----------
    epsilon : array_like
        Budget of approximate DP, in [0, 1e12].
    delta, method
        As for :func:`rho_to_epsilon`.

    Returns
    -------
    float or ndarray
        rho >= 0, rounded down: its conversion never exceeds epsilon. The relative error is about
        1e-13 if rho > 1e-6 epsilon.

    Examples
    --------
    >>> print(round(epsilon_to_rho(17.158277, 1e-10), 4))
    2.56
    """
    budget, failure = _epsilon(epsilon), _delta(delta)
    check.choice(method, "method", _METHODS)
    check.broadcast(epsilon=budget, delta=failure)
    log_inverse = -np.log(failure)
    if method == "bun-steinke":
        root = budget / (np.sqrt(log_inverse + budget) + np.sqrt(log_inverse))
        return check.answer(root**2 * (1.0 - 6.0 * ULP))

    def excess(t: FloatArray, e: FloatArray, big: FloatArray) -> FloatArray:
        b: FloatArray = np.exp(t)
        return (2.0 * b + 1.0) * (big - np.logaddexp(0.0, t)) / b**2 - np.logaddexp(0.0, -t) - e

    low = np.log(np.minimum(0.25 * log_inverse, 0.5 * np.sqrt(log_inverse / (budget + 1.0))))
    high = log_inverse + np.log1p(-failure)  # log(expm1(L)), where rho = 0
    t = _root(excess, low, high + 1e-9, budget, log_inverse)
    b = np.exp(t)
    slack, magnitude = _slack(b, log_inverse)
    left = budget - slack - _ROUND * (budget + magnitude)
    return check.answer(np.maximum(left / (1.0 + b) * (1.0 - 2.0 * ULP), 0.0))


def rho_to_delta(rho: Number, epsilon: Number, method: str = "tight") -> FloatAnswer:
    r"""Return the delta of approximate DP that rho-zCDP implies at a given epsilon.

    ``"tight"``: :math:`\inf_{a>1} \frac{e^{(a-1)(a\rho-\epsilon)}}{a-1} (1-1/a)^a`;
    ``"bun-steinke"``: :math:`e^{-(\epsilon-\rho)^2/4\rho}` for epsilon > rho, else 1.

    Parameters
    ----------
    rho, epsilon, method
        As in :func:`rho_to_epsilon` and :func:`epsilon_to_rho`.

    Returns
    -------
    float or ndarray
        delta in (0, 1], rounded up, so never below the bound, and at least 2**-1022. Its relative
        error is at most about ``5e-15 (1 + log(1 + (1 + epsilon) / rho) + epsilon**2 / rho)``.

    Examples
    --------
    >>> print(round(rho_to_delta(0.0992, 1.0), 7))
    0.0086916
    """
    budget, target = _rho(rho), _epsilon(epsilon)
    check.choice(method, "method", _METHODS)
    check.broadcast(rho=budget, epsilon=target)
    if method == "bun-steinke":
        gap = np.maximum(target - budget, 0.0)
        return check.answer(_up(-gap * (gap / (4.0 * budget)) * (1.0 - _ROUND)))
    t = _root(
        lambda t, r, e: (2.0 * np.exp(t) + 1.0) * r - np.logaddexp(0.0, -t) - e,
        -(3.0 * budget + 1.0),
        np.log((target + 1.0) / (2.0 * budget) + 1.0),
        budget,
        target,
    )
    b = np.exp(np.maximum(t, -700.0))
    gain, spent = np.log1p(1.0 / b), (1.0 + b) * budget
    exponent = b * (spent - target - gain) - np.log1p(b)
    return check.answer(_up(exponent + _ROUND * (b * (spent + target + gain) + np.log1p(b))))


def sigma2_from_rho(rho: Number, sensitivity: Number) -> FloatAnswer:
    """Return the scale parameter of the discrete Gaussian that spends rho.

    It is ``sigma2 = sensitivity**2 / (2 rho)``.

    Parameters
    ----------
    rho : array_like or Fraction
        zCDP budget, > 0.
    sensitivity : array_like or Fraction
        L2 sensitivity. It is 1 if neighbours differ by one added or removed record (Kazan and
        Reiter). It is sqrt(2) if one record of a histogram changes, as in the 2020 Census, whose
        noise has ``sigma2 = 1 / rho``.

    Returns
    -------
    Fraction, float or ndarray
        sigma2. It is exact if both arguments are exact (int or Fraction), else the nearest double
        within two roundings, on either side.

    Examples
    --------
    >>> sigma2_from_rho(Fraction(1, 8), 1)
    Fraction(4, 1)
    """
    return check.answer(_exchange(rho, sensitivity))


def _exchange(rho: Number, sensitivity: Number) -> FloatAnswer | Fraction:
    """Return sensitivity**2 / (2 rho), exact for exact numbers."""
    array = check.real_array(rho, "rho", lower=0.0, bounds="()")
    delta = check.real_array(check.by_neighbour(sensitivity), "sensitivity", lower=0.0, bounds="()")
    check.broadcast(rho=array, sensitivity=delta)
    if isinstance(rho, (Fraction, int)) and isinstance(sensitivity, (Fraction, int)):
        return exact_number(sensitivity) ** 2 / (2 * exact_number(rho))
    with np.errstate(over="ignore"):
        result = delta**2 / (2.0 * array)
    return check.real_array(result, "sensitivity**2 / (2 rho)", lower=0.0, bounds="()")[()]


# -----------------------------------------------------------------------------
# The exact epsilon and delta of one count with discrete Gaussian noise, on the safe side.


#: Added to every delta: its terms are within 10 roundings of 2**-53, their compensated sum within
#: 2 more, what is left out below 1e-17, the normaliser within 8: 22 in all, and here are 32.
_MARGIN = 2.0**-48
#: Doublings of a step from one ulp of epsilon to far beyond the upper bracket.
_MAX_STEPS = 128


def _arguments(sigma2: Number, sensitivity: ArrayLike) -> tuple[FloatArray, IntArray]:
    return (
        check.real_array(sigma2, "sigma2", lower=1e-100, upper=1e12),
        check.count_array(sensitivity, "sensitivity", lower=1, upper=10**6),
    )


def _safe_delta(epsilon: FloatAnswer, sigma2: FloatArray, shift: IntArray) -> FloatArray:
    """Return delta, never below its exact value and at most 1e-14 of it above."""
    total = kernels.hockey_stick(epsilon, sigma2, shift) / normaliser(sigma2)
    return np.asarray(np.clip(total * (1.0 + _MARGIN), LEAST_DELTA, 1.0))


def discrete_gaussian_delta(
    epsilon: Number, *, sigma2: Number, sensitivity: ArrayLike = 1
) -> FloatAnswer:
    r"""Return the exact delta of one count released with discrete Gaussian noise.

    .. math:: \delta = P[Y > \epsilon\sigma^2/D - D/2] - e^\epsilon P[Y > \epsilon\sigma^2/D + D/2],
       \quad Y \sim N_\mathbb{Z}(0, \sigma^2)

    Source: Canonne, Kamath and Steinke (2020, arXiv:2004.00010), Theorem 7.

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
        delta in (0, 1], rounded up. It is never below the exact value, and above it by less than
        1e-14 of it; 2**-1022 if it is smaller than that.

    Notes
    -----
    It is a sum of about 9 sigma positive terms, without cancellation.

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

    It is the smallest epsilon whose :func:`discrete_gaussian_delta` does not exceed delta.

    Parameters
    ----------
    delta : array_like
        The delta of approximate DP, in [1e-300, 1).
    sigma2, sensitivity
        As for :func:`discrete_gaussian_delta`.

    Returns
    -------
    float or ndarray
        Epsilon >= 0, rounded up: its exact delta does not exceed ``delta``. It is above the
        smallest such epsilon by about 1e-12 of it. It may be further above if delta hardly moves,
        so that a relative change of 1e-14 moves epsilon that far.

    Examples
    --------
    >>> print(round(discrete_gaussian_epsilon(0.00328048, sigma2=5.04), 5))
    1.0
    """
    failure = _delta(delta)
    scale2, shift = _arguments(sigma2, sensitivity)
    shape = check.broadcast(delta=failure, sigma2=scale2, sensitivity=shift)
    failure, scale2 = np.broadcast_to(failure, shape), np.broadcast_to(scale2, shape)
    shift = np.broadcast_to(shift, shape)

    def excess(e: FloatArray, d: FloatArray, s2: FloatArray, n: FloatArray) -> FloatArray:
        return np.log(_safe_delta(e, s2, n.astype(np.int64))) - np.log(d)

    # An upper bracket: the loss at the first y beyond which less than delta is left.
    rho = shift.astype(float) ** 2 / (2.0 * scale2)
    high = rho + 2.0 * np.sqrt(-rho * np.log(failure)) + 1.0 / scale2
    needed = np.asarray(_safe_delta(0.0, scale2, shift) > failure)
    root = _root(excess, np.zeros(shape), high, failure, scale2, shift.astype(float))
    return _first_safe(np.where(needed, root, 0.0), high, failure, scale2, shift)[()]


def _first_safe(
    start: FloatArray, high: FloatArray, failure: FloatArray, scale2: FloatArray, shift: IntArray
) -> FloatArray:
    """Return an epsilon of at least ``start`` where delta does not exceed the target.

    The search goes up in doubling steps, and back to within 1e-13: a root is exact only to its own
    rounding, and delta may fall by many powers of ten between two doubles.
    """
    last, epsilon = start.copy(), start.copy()
    step = np.maximum(np.spacing(start), high * 2.0**-100)
    for _ in range(_MAX_STEPS):
        short = np.asarray(_safe_delta(epsilon, scale2, shift) > failure)
        if not short.any():
            break
        last = np.where(short, epsilon, last)
        epsilon = np.where(short, start + step, epsilon)
        step = 2.0 * step
    else:
        raise ArgumentError(
            "delta",
            f"must be reached within {_MAX_STEPS} steps of a root",
            shown=f"{failure.min():g}",
        )
    for _ in range(_MAX_STEPS):
        middle = last + 0.5 * (epsilon - last)
        wide = (epsilon - last > 1e-13 * epsilon) & (last < middle) & (middle < epsilon)
        if not wide.any():
            break
        safe = np.asarray(_safe_delta(middle, scale2, shift) <= failure)
        epsilon = np.where(wide & safe, middle, epsilon)
        last = np.where(wide & ~safe, middle, last)
    return epsilon

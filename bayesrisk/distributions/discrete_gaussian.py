"""The discrete Gaussian N_Z(loc, sigma2), exact to double precision."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatAnswer, FloatArray, IntAnswer
from bayesrisk.distributions import kernels as _kernels
from bayesrisk.distributions.base import LocatedLaw

# The tail is summed term by term below this scale and by Euler-Maclaurin above it, as long as
# one step changes the log-weight by less than _FLAT.
_SUM_BELOW = 100.0
_FLAT = 0.5
# Within these, squares stay doubles and draws 64-bit integers.
_MIN_SIGMA2, _MAX_SIGMA2 = 1e-100, 1e30

#: Bernoulli numbers B_2, B_4, ..., B_18 (DLMF 24.2).
_NUMBERS = "1/6 -1/30 1/42 -1/30 5/66 -691/2730 7/6 -3617/510 43867/798"
BERNOULLI = tuple(map(Fraction, _NUMBERS.split()))
#: B_2k(1/2) / (2k)!, the coefficients of the midpoint Euler-Maclaurin formula, k = 1..9:
#: B_2k(1/2) = -(1 - 2**(1 - 2k)) B_2k, DLMF 24.4.27.
MIDPOINT = [
    float(-(1 - Fraction(2, 4**k)) * b / factorial(2 * k)) for k, b in enumerate(BERNOULLI, 1)
]


def _series(sigma2: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return c and s with Z = c (1 + s), Z = sum over j of exp(-j**2 / (2 sigma2)).

    The direct series for 1 / (2 sigma2) >= pi, its Poisson dual below: five terms suffice.
    """
    rho = 0.5 / sigma2
    direct = rho >= np.pi
    # Both series are Gaussian weights: the dual one has scale 1 / (4 pi**2 sigma2).
    scale = np.where(direct, sigma2, 0.25 / (np.pi**2 * sigma2))
    series = sum(2.0 * _kernels.gaussian_weight(float(j), scale) for j in range(4, 0, -1))
    return np.where(direct, 1.0, np.pi / rho), series


def normaliser(sigma2: FloatArray) -> FloatArray:
    """Return Z, to a few ulp; sigma2 >= 1e-100."""
    square, series = _series(sigma2)
    result: FloatArray = np.sqrt(square) * (1.0 + series)
    return result


def log_normaliser(sigma2: FloatArray) -> FloatArray:
    """Return log Z, to a few ulp."""
    square, series = _series(sigma2)
    result: FloatArray = 0.5 * np.log(square) + np.log1p(series)
    return result


def _variance(sigma2: FloatArray) -> FloatArray:
    """Return the variance, -d log Z / d rho, from whichever series of Z does not cancel."""
    rho = 0.5 / sigma2
    terms = [_kernels.gaussian_weight(float(j), np.minimum(sigma2, 0.5)) for j in range(8)]
    direct = 2.0 * sum(j * j * terms[j] for j in range(7, 0, -1))
    direct = direct / (1.0 + 2.0 * sum(terms[7:0:-1]))
    dual_rate = np.pi**2 / np.minimum(rho, 1.0)
    terms = [np.exp(-dual_rate * j * j) for j in range(4)]
    loss = 2.0 * sum(j * j * terms[j] for j in range(3, 0, -1)) * dual_rate
    loss = loss / (1.0 + 2.0 * sum(terms[3:0:-1]))
    # dual: Z = sqrt(pi / rho) D, so var = 1 / (2 rho) - D' / D with D' / D = loss / rho.
    result: FloatArray = np.where(rho >= 1.0, direct, sigma2 * (1.0 - 2.0 * loss))
    return result


def _smooth_ratio(middle: FloatArray, sigma2: FloatArray) -> FloatArray:
    """Return the sum of w(j) / w(middle) over j >= middle + 1/2 by the Euler-Maclaurin formula.

    The first term left out is below 2 (_FLAT / 2 pi)**20 = 1e-22 of the sum.
    """
    sigma = np.sqrt(sigma2)
    slope = middle / sigma2
    total = sigma * np.sqrt(np.pi / 2.0) * special.erfcx(middle / (sigma * np.sqrt(2.0)))
    before, hermite = np.ones_like(slope), slope  # He_n(z) / sigma**n, z = middle / sigma
    for k, coefficient in enumerate(MIDPOINT, start=1):
        total = total + coefficient * hermite
        for n in (2 * k - 1, 2 * k):
            before, hermite = hermite, slope * hermite - n * before / sigma2
    return np.asarray(total)


def _upper_tail(first: FloatArray, sigma2: FloatArray, *, log: bool) -> FloatArray:
    """Return the sum (or its logarithm) of w(j) over j >= first, for first >= 1."""
    first, sigma2 = np.broadcast_arrays(first, sigma2)
    summed = (sigma2 < _SUM_BELOW) | (first > _FLAT * sigma2)
    reference = np.where(summed, first, first - 0.5)
    if summed.all():
        ratio = _kernels.tail_ratio(first, sigma2)
    else:
        ratio = np.empty(first.shape)
        ratio[summed] = _kernels.tail_ratio(first[summed], sigma2[summed])
        ratio[~summed] = _smooth_ratio(reference[~summed], sigma2[~summed])
    if log:
        return np.asarray(np.log(ratio) - reference * (reference / (2.0 * sigma2)))
    return np.asarray(ratio * _kernels.gaussian_weight(reference, sigma2))


class DiscreteGaussian(LocatedLaw):
    r"""Discrete Gaussian law with scale parameter ``sigma2`` around an integer ``loc``.

    .. math:: f(x) = \exp(-(x - \mathrm{loc})^2 / (2\sigma^2)) / Z(\sigma^2), \quad x \in \mathbb{Z}

    ``sigma2`` is the scale parameter, not the variance: they agree to 2e-7 at sigma2 = 1 and differ
    by 29 % at 0.2 (use :meth:`var`).  All methods broadcast over ``x``, ``sigma2`` and ``loc``.
    Source: Canonne, Kamath and Steinke (2020, arXiv:2004.00010), The Discrete Gaussian for
    Differential Privacy.

    Parameters
    ----------
    sigma2 : array_like of float or Fraction
        Scale parameter, in [1e-100, 1e30].
    loc : array_like of int, default 0
        Centre, at most 2**52 in size.

    Notes
    -----
    For sigma2 in [1e-5, 1e10], ``pmf``, ``cdf``, ``sf`` and their logarithms are within 1e-13
    relative. For the first three this holds if the value is a normal double, above 2.2e-308. They
    are checked against 50-digit arithmetic in ``tests/distributions``.

    Examples
    --------
    >>> law = DiscreteGaussian.from_rho(0.0992264)
    >>> round(float(law.pmf(0)), 4)
    0.1777
    """

    def __init__(self, sigma2: ArrayLike | Fraction, loc: ArrayLike = 0) -> None:
        self._sigma2 = check.real_array(sigma2, "sigma2", lower=_MIN_SIGMA2, upper=_MAX_SIGMA2)
        self._loc = check.count_array(loc, "loc")
        self._shape = check.broadcast(sigma2=self._sigma2, loc=self._loc)
        self._log_z = log_normaliser(self._sigma2)
        self._z = np.exp(self._log_z)

    @classmethod
    def from_rho(
        cls, rho: ArrayLike | Fraction, sensitivity: ArrayLike | Fraction = 1, *, loc: ArrayLike = 0
    ) -> Self:
        """Return the noise law that spends ``rho`` of zCDP on a count.

        The scale is ``sigma2 = sensitivity**2 / (2 rho)``.

        Parameters
        ----------
        rho : array_like of float or Fraction
            zCDP budget, > 0.
        sensitivity : array_like, default 1
            L2 sensitivity: 1 if neighbours differ by one added or removed record, sqrt(2) if one
            record of a histogram changes (the convention of the 2020 Census).
        loc : array_like of int, default 0
            Centre.
        """
        with np.errstate(over="ignore"):
            sigma2 = 0.5 / check.cell_precision(rho, None, sensitivity)
        formula = "sensitivity**2 / (2 rho) = sigma2"
        return cls(check.real_array(sigma2, formula, lower=_MIN_SIGMA2, upper=_MAX_SIGMA2), loc)

    @property
    def sigma2(self) -> FloatAnswer:
        """Scale parameter (not the variance)."""
        return self._sigma2[()]

    def __repr__(self) -> str:
        return f"DiscreteGaussian(sigma2={self._sigma2.tolist()!r}, loc={self._loc.tolist()!r})"

    def logpmf(self, x: ArrayLike) -> FloatAnswer:
        """Return log f(x); minus infinity off the integers."""
        d = self._centred(x)
        with np.errstate(invalid="ignore", over="ignore"):
            value = -d * (d / (2.0 * self._sigma2)) - self._log_z
            return np.where(d == np.rint(d), value, np.where(np.isnan(d), np.nan, -np.inf))[()]

    def pmf(self, x: ArrayLike) -> FloatAnswer:
        """Return f(x); 0 off the integers."""
        d = self._centred(x)
        whole = d == np.rint(d)  # infinities too: the kernel gives them 0
        with np.errstate(over="ignore"):  # of squares, whose weight is 0
            weight = _kernels.gaussian_weight(np.where(whole, d, 0.0), self._sigma2) / self._z
        if whole.all():
            return check.answer(weight)
        return np.where(whole, weight, np.where(np.isnan(d), np.nan, 0.0))[()]

    def _tails(self, d: FloatArray, *, log: bool) -> FloatAnswer:
        """Return P(X - loc > d), or its logarithm, for real d; computes the smaller tail."""
        with np.errstate(invalid="ignore"):
            first = np.floor(d) + 1.0
            upper = first >= 1.0
            inner = np.where(upper, first, 1.0 - first)
        finite = np.isfinite(inner)
        inner = np.where(finite, inner, 1.0)
        with np.errstate(under="ignore", over="ignore"):
            if log:
                small = _upper_tail(inner, self._sigma2, log=True) - self._log_z
                linear = _upper_tail(inner, self._sigma2, log=False) / self._z
                other = np.log1p(-np.where(upper, 0.5, linear))
                limits = np.where(upper, -np.inf, 0.0)
            else:
                small = _upper_tail(inner, self._sigma2, log=False) / self._z
                other = 1.0 - small
                limits = np.where(upper, 0.0, 1.0)
        value = np.where(finite, np.where(upper, small, other), limits)
        return check.answer(np.where(np.isnan(d), np.nan, value))

    def var(self) -> FloatAnswer:
        """Return the variance, which is below ``sigma2``."""
        return np.broadcast_to(_variance(self._sigma2), self._shape)[()]

    def _guess(self, log_tail: FloatArray, side: FloatAnswer) -> FloatArray:
        centred = -np.sqrt(self._sigma2) * special.ndtri_exp(log_tail)
        return np.asarray(self._loc + np.rint(side * centred), dtype=float)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntAnswer:
        sigma2 = self._sigma2.flatten()  # a copy: what may not be written is compiled apart
        if sigma2.size > 1:
            sigma2 = np.broadcast_to(self._sigma2, shape).flatten()
        out = np.empty(shape, dtype=np.int64)
        _kernels.fill_discrete_gaussian(rng, sigma2, out.reshape(-1))
        out += self._loc
        return out[()]

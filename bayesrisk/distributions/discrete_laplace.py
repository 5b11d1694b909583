"""The discrete Laplace (two-sided geometric) law, the noise of pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import html, span
from bayesrisk._base.validation import FloatAnswer, FloatArray, IntAnswer, Number
from bayesrisk.distributions.base import LocatedLaw
from bayesrisk.distributions.discrete_gaussian import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

_MIN_SCALE, _MAX_SCALE = 1e-12, 1e15


class DiscreteLaplace(LocatedLaw):
    r"""Discrete Laplace law around an integer ``loc``.

    .. math:: f(x) = \tanh(1 / 2b)\, e^{-|x - \mathrm{loc}| / b}, \quad x \in \mathbb{Z}

    Added to a count of L1 sensitivity D with ``scale = D / epsilon``, it is epsilon-DP, hence also
    epsilon**2 / 2-zCDP (Bun and Steinke 2016, Proposition 1.4).

    Parameters
    ----------
    scale : array_like of float or Fraction
        Scale b, in [1e-12, 1e15].
    loc : array_like of int, default 0
        Centre.

    Notes
    -----
    All functions have closed forms. The pmf, cdf and sf have a relative error of
    ``(4 + (1 + |x - loc|) / b) 2**-52``, which is below 1.6e-13 for every normal double.

    Examples
    --------
    >>> law = DiscreteLaplace.from_epsilon(1.0)
    >>> round(float(law.pmf(0)), 6)
    0.462117
    """

    def __init__(self, scale: ArrayLike | Fraction, loc: ArrayLike = 0) -> None:
        self._scale = check.real_array(scale, "scale", lower=_MIN_SCALE, upper=_MAX_SCALE)
        self._loc = check.count_array(loc, "loc")
        self._shape = check.broadcast(scale=self._scale, loc=self._loc)
        self._rate = 1.0 / self._scale
        self._peak = np.tanh(0.5 * self._rate)
        self._odds = 1.0 + np.exp(-self._rate)  # P(X - loc > n) = exp(-(n + 1) / b) / odds

    @classmethod
    def from_epsilon(
        cls,
        epsilon: ArrayLike | Fraction,
        sensitivity: ArrayLike | Fraction = 1,
        *,
        loc: ArrayLike = 0,
    ) -> Self:
        """Return the noise that spends ``epsilon`` of pure DP, ``scale = sensitivity / epsilon``.

        Parameters
        ----------
        epsilon : array_like of float or Fraction
            Pure differential-privacy budget, > 0.
        sensitivity : array_like, default 1
            L1 sensitivity: 1 for add-or-remove neighbours, 2 for a changed record.
        loc : array_like of int, default 0
            Centre.
        """
        budget = check.real_array(epsilon, "epsilon", lower=0.0, bounds="()")
        delta = check.real_array(sensitivity, "sensitivity", lower=0.0, bounds="()")
        check.broadcast(epsilon=budget, sensitivity=delta)
        with np.errstate(over="ignore"):
            scale = delta / budget
        formula = "sensitivity / epsilon = scale"
        return cls(check.real_array(scale, formula, lower=_MIN_SCALE, upper=_MAX_SCALE), loc)

    @property
    def scale(self) -> FloatAnswer:
        """Scale b."""
        return self._scale[()]

    def __repr__(self) -> str:
        return f"DiscreteLaplace(scale={self._scale.tolist()!r}, loc={self._loc.tolist()!r})"

    def logpmf(self, x: ArrayLike) -> FloatAnswer:
        """Return log f(x); minus infinity off the integers."""
        d = self._centred(x)
        with np.errstate(invalid="ignore"):
            value = np.log(self._peak) - np.abs(d) / self._scale
            return np.where(d == np.rint(d), value, np.where(np.isnan(d), np.nan, -np.inf))[()]

    def pmf(self, x: ArrayLike) -> FloatAnswer:
        """Return f(x); 0 off the integers."""
        d = self._centred(x)
        with np.errstate(invalid="ignore", under="ignore"):
            value = self._peak * np.exp(-np.abs(d) / self._scale)
            return np.where(d == np.rint(d), value, np.where(np.isnan(d), np.nan, 0.0))[()]

    def _tails(self, d: FloatArray, *, log: bool) -> FloatAnswer:
        """Return P(X - loc > d), or its logarithm, for real d."""
        with np.errstate(invalid="ignore", under="ignore"):
            whole = np.floor(d)
            upper = whole >= 0.0
            steps = np.where(upper, whole + 1.0, -whole) / self._scale
            small = np.exp(-steps) / self._odds
            if log:
                value = np.where(upper, -steps - np.log(self._odds), np.log1p(-small))
            else:
                value = np.where(upper, small, 1.0 - small)
        return check.answer(np.where(np.isnan(d), np.nan, value))

    def var(self) -> FloatAnswer:
        """Return the variance, ``1 / (2 sinh(1 / 2b)**2)``."""
        with np.errstate(over="ignore"):
            value = 0.5 / np.sinh(0.5 * self._rate) ** 2
        return np.broadcast_to(value, self._shape)[()]

    def _guess(self, log_tail: FloatArray, side: FloatAnswer) -> FloatArray:
        steps = np.maximum(-np.log(self._odds) - log_tail, 0.0) * self._scale
        return np.asarray(self._loc + np.rint(side * steps), dtype=float)

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> IntAnswer:
        # The difference of two geometric variables of the same rate.
        first = np.floor(rng.standard_exponential(shape) * self._scale)
        second = np.floor(rng.standard_exponential(shape) * self._scale)
        return (self._loc + (first - second).astype(np.int64))[()]


# -----------------------------------------------------------------------------
# How a count was perturbed: a zCDP budget and the sensitivity that it refers to.


@dataclass(frozen=True, eq=False, kw_only=True)
class Noise:
    r"""Discrete Gaussian noise, given by its budget rho.

    .. math:: \sigma^2 = \Delta^2 / (2 \rho)

    Functions with an argument ``noise`` take such a budget, or the law itself,
    ``DiscreteGaussian(sigma2=...)``.

    Attributes
    ----------
    rho : array_like
        zCDP budget of the count, > 0; an array has one budget for each level or setting.
    sensitivity : array_like, default 1.0
        L2 sensitivity that the budget refers to, > 0: the largest change by one person or household
        in the counts that share it.

    Examples
    --------
    >>> noise = Noise(rho=0.0992264)
    >>> round(float(noise.law().sigma2), 4)
    5.039
    """

    rho: Number
    sensitivity: Number = 1.0

    def __post_init__(self) -> None:
        """Check rho and sensitivity."""
        check.cell_precision(self.rho, None, self.sensitivity)

    def _answer(self) -> list[str]:
        scale = span(self.law().sigma2)
        return [repr(self), f"Discrete Gaussian noise of sigma^2 {scale}, on every count."]

    _repr_html_ = html

    @property
    def precision(self) -> FloatArray:
        """Factor of squared distance in the log-likelihood, 1 / (2 sigma2), at most 1e280."""
        return check.cell_precision(self.rho, None, self.sensitivity)

    def law(self) -> DiscreteGaussian:
        """Return the law of the noise, centred on 0."""
        return DiscreteGaussian.from_rho(self.rho, self.sensitivity)


def noise_precision(noise: Noise | DiscreteGaussian) -> FloatArray:
    """Return 1 / (2 sigma2) for noise given as a budget or as a law."""
    if isinstance(noise, Noise):
        return noise.precision
    if not isinstance(noise, DiscreteGaussian):
        raise ArgumentTypeError(
            "noise", "must be a Noise(rho=...) or a DiscreteGaussian", got=noise
        )
    if np.any(noise.loc != 0):
        raise ArgumentError("noise", "must be centred on 0", shown="a law with another loc")
    return check.cell_precision(None, noise.sigma2, 1.0)

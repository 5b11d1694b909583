"""The adversary's posterior on one noisy count (Kazan and Reiter, section 3.1).

The adversary knows everyone in the group but the target. ``known_count`` others share the
characteristics in question, so the true count X is ``known_count`` or one more. ``prior`` is the
probability of one more (the target has them). The noisy count is Y = X + N_Z(0, sigma2).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from bayesrisk._base import validation as check
from bayesrisk._base.doors import door
from bayesrisk._base.validation import FloatAnswer, FloatArray, IntAnswer, IntArray, Number
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.base import NoiseLaw
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError


def threshold_offset(precision: FloatArray, prior: FloatArray) -> FloatArray:
    """Return the smallest whole d with logit(prior) + precision (2 d - 1) >= 0, as float64."""
    return first_reached(special.logit(prior), precision)


def first_reached(log_odds: FloatArray | float, precision: FloatArray | float) -> FloatArray:
    """Return the smallest whole d with log_odds + precision (2 d - 1) >= 0, as float64."""
    with np.errstate(over="ignore", under="ignore"):
        offset = np.ceil(0.5 - log_odds / (2.0 * precision))
        # Rounding keeps order: never too large, this is too small where it was rounded to a tie.
        short = log_odds + precision * (2.0 * offset - 1.0) < 0.0
        return np.where(short, offset + 1.0, offset)


_FAR = 700.0  # evidence against: beyond 709.8 its exponential is no double
_BLOCK = 8192  # elements per pass: three arrays of doubles stay in the first-level cache


def bayes_rule(
    minus_evidence: FloatArray,
    prior: FloatArray | float,
    numerator: FloatArray | float,
    out: FloatArray,
) -> None:
    """Fill ``out`` with numerator / (p + (1 - p) exp(-evidence)).

    The numerator p gives the posterior, and 1 the risk ratio. No log-odds are formed, so tiny
    priors keep their precision. If the exponential underflows, the result is numerator / p. If it
    would overflow, p is negligible, and the rest is multiplied by its halves.
    """
    against: FloatArray = np.broadcast_to(minus_evidence, out.shape)
    far = against > _FAR
    halves = np.exp(-0.5 * against[far])  # before ``out``, which may be the same array
    with np.errstate(over="ignore", under="ignore"):
        np.exp(minus_evidence, out=out)
        out *= 1.0 - prior
        out += prior
        np.divide(numerator, out, out=out)
        if halves.size:
            odds = np.broadcast_to(numerator / (1.0 - np.asarray(prior)), out.shape)[far]
            out[far] = odds * halves * halves


class CountArguments(TypedDict, total=False):
    """Unchecked arguments of :class:`NoisyCount`."""

    rho: Number | None
    prior: Required[Number]
    known_count: ArrayLike
    sensitivity: Number
    sigma2: Number | None


class CountValues(NamedTuple):
    """Checked arguments: 1 / (2 sigma2), p and k."""

    precision: FloatArray
    prior: FloatArray
    known_count: IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisyCount:
    r"""One noisy count, and the adversary's knowledge before seeing it.

    The true count X is ``known_count`` = k, or one more if the target has the characteristics. The
    release ``noisy_count`` is y = X + noise. The arguments broadcast against each other and against
    released counts. These are whole numbers, may be negative, and are at most 2**52 in size.
    Source: Kazan and Reiter (arXiv:2204.04253), equations (3.1), (3.2), (3.5) and (3.6).

    Attributes
    ----------
    rho : array_like, optional
        zCDP budget of the count, > 0; give either ``rho`` or ``sigma2``.
    prior : array_like
        The adversary's prior probability p that the target has the characteristics, in (0, 1).
    known_count : array_like of int, default 0
        Number k of others known to have them.
    sensitivity : array_like, default 1.0
        L2 sensitivity that ``rho`` refers to: ``sigma2 = sensitivity**2 / (2 rho)``.
    sigma2 : array_like, optional
        Scale parameter of the noise, in place of ``rho`` and ``sensitivity``.

    Examples
    --------
    >>> count = NoisyCount(rho=0.0992264, prior=1 / 10)
    >>> [round(float(r), 2) for r in count.risk_ratio([1, 3, 5])]
    [1.09, 1.54, 2.13]
    >>> round(float(NoisyCount(rho=0.0992264, prior=0.5).posterior(3)), 4)
    0.6215
    >>> NoisyCount(rho=0.0992264, prior=[1 / 2, 1 / 5]).decision_threshold().tolist()
    [1, 8]
    >>> NoisyCount(rho=0.0992264, prior=1 / 5).decision([0, 1, 7, 8]).tolist()
    [0, 0, 0, 1]
    """

    rho: Number | None = None
    prior: Number
    known_count: ArrayLike = 0
    sensitivity: Number = 1.0
    sigma2: Number | None = None
    _values: CountValues = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the arguments, and store read-only copies of arrays."""
        values = CountValues(
            np.array(check.cell_precision(self.rho, self.sigma2, self.sensitivity)),
            np.array(check.probability(self.prior, "prior")),
            np.array(check.count_array(self.known_count, "known_count", lower=0)),
        )
        self._broadcast(values)
        object.__setattr__(self, "_values", values)

    @staticmethod
    def _broadcast(values: CountValues, **more: FloatArray | IntArray) -> tuple[int, ...]:
        precision, p, k = values
        return check.broadcast(**more, prior=p, known_count=k, **{check.NOISE: precision})

    def posterior(self, noisy_count: ArrayLike) -> FloatAnswer:
        r"""Return the adversary's posterior probability that the target has the characteristics.

        .. math:: \pi(y) = \operatorname{expit}(\operatorname{logit} p + \rho (2(y-k) - 1))

        Errors are those of :meth:`risk_ratio`; the normaliser of the noise cancels.
        """
        return self._reread(noisy_count, as_ratio=False)

    def risk_ratio(self, noisy_count: ArrayLike) -> FloatAnswer:
        r"""Return the ratio of posterior to prior, the factor by which the belief changed.

        .. math:: r(y) = \pi(y) / p = \frac{1}{p + (1-p)\, e^{-\rho (2(y-k) - 1)}}

        It is in (0, 1 / p). Its relative error is at most ``(4 + 3 |e|) 2**-52`` with e = rho (2 (y
        - k) - 1). This holds for priors from 2.2e-308, the smallest double of full precision;
        smaller values have a further error of at most 4.9e-324.
        """
        return self._reread(noisy_count, as_ratio=True)

    def _reread(self, noisy_count: ArrayLike, *, as_ratio: bool) -> FloatAnswer:
        """Return the posterior, or the risk ratio if ``as_ratio``, given noisy counts."""
        y = check.whole_array(noisy_count, "noisy_count")
        precision, p, k = self._values
        out: FloatArray = np.empty(self._broadcast(self._values, noisy_count=y))
        one = k.size == p.size == precision.size == 1 and y.size == out.size
        if one and k.item() < check.MAX_COUNT:  # a half more is exact
            # The common case, one setting and many counts, block by block without temporaries.
            shift, slope, one_p = k.item() + 0.5, -2.0 * precision.item(), p.item()
            numerator = 1.0 if as_ratio else one_p
            flat_y, flat_out = y.reshape(-1), out.reshape(-1)
            for start in range(0, flat_y.size, _BLOCK):
                part = flat_out[start : start + _BLOCK]
                np.subtract(flat_y[start : start + _BLOCK], shift, out=part)
                part *= slope
                bayes_rule(part, one_p, numerator, part)
        else:
            bayes_rule((-2.0 * precision) * ((y - k) - 0.5), p, 1.0 if as_ratio else p, out)
        return check.answer(out)

    def decision_threshold(self) -> IntAnswer:
        r"""Return the smallest noisy count at which the adversary decides "there".

        .. math:: k + \lceil 1/2 + \log((1-p)/p) / (2\rho) \rceil

        It may be negative. It is exact unless it exceeds 2**52, or the posterior at a whole number
        is within rounding of 1/2. Beyond 62 bits it is refused.
        """
        offset = threshold_offset(self._values.precision, self._values.prior)
        if np.any(np.abs(offset) > 2.0**62):
            raise ArgumentError(
                f"the threshold must fit in 62 bits, got {offset.flat[np.abs(offset).argmax()]:g}; "
                "rho / sensitivity**2 is too small for this prior"
            )
        return (self._values.known_count + offset.astype(np.int64))[()]

    def decision(self, noisy_count: ArrayLike) -> IntAnswer:
        """Return the adversary's best guess of the true count under 0-1 loss: k or k + 1.

        It is k + 1 if the posterior is at least 1/2, that is, if the release reaches
        :meth:`decision_threshold`.
        """
        y = check.count_array(noisy_count, "noisy_count")
        precision, p, k = self._values
        self._broadcast(self._values, noisy_count=y)
        return (k + ((y - k) >= threshold_offset(precision, p)))[()]


@door(NoisyCount)
def posterior_probability(
    noisy_count: ArrayLike, **question: Unpack[CountArguments]
) -> FloatAnswer:
    """Return the adversary's belief after a release: :meth:`NoisyCount.posterior`."""
    return NoisyCount(**question).posterior(noisy_count)


@door(NoisyCount)
def risk_ratio(noisy_count: ArrayLike, **question: Unpack[CountArguments]) -> FloatAnswer:
    """Return the ratio of posterior to prior: :meth:`NoisyCount.risk_ratio`."""
    return NoisyCount(**question).risk_ratio(noisy_count)


@door(NoisyCount)
def decision_threshold(**question: Unpack[CountArguments]) -> IntAnswer:
    """Return the smallest count decided as "there": :meth:`NoisyCount.decision_threshold`."""
    return NoisyCount(**question).decision_threshold()


@door(NoisyCount)
def bayes_decision(noisy_count: ArrayLike, **question: Unpack[CountArguments]) -> IntAnswer:
    """Return the adversary's best guess of the true count: :meth:`NoisyCount.decision`."""
    return NoisyCount(**question).decision(noisy_count)


def multilevel_posterior(
    noisy_counts: ArrayLike,
    *,
    noise: Noise | DiscreteGaussian,
    prior: Number,
    known_count: ArrayLike = 0,
) -> Belief:
    r"""Return the belief that the target is counted, given noisy counts at several levels.

    .. math:: \pi = \operatorname{expit}\Big(\operatorname{logit} p
        + \sum_l \rho_l (2(y_l - k_l) - 1)\Big)

    The same formula serves independent releases of one count.

    Source: Kazan and Reiter (arXiv:2204.04253), supplement S1.3.

    Parameters
    ----------
    noisy_counts : array_like of int, shape (..., levels)
        Released counts, the levels along the last axis.
    noise : Noise or DiscreteGaussian, shape (..., levels)
        Noise of each level: a zCDP budget, ``Noise(rho=[...])``, or a law.
    prior : array_like, shape (...)
        Probability that the target has the characteristics, in (0, 1).
    known_count : array_like of int, shape (..., levels), default 0
        Number of others known to have them at each level.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> belief = multilevel_posterior([2, 1], noise=Noise(rho=[0.1, 0.25]), prior=0.1)
    >>> round(belief.posterior, 5), round(belief.ratio, 4)
    (0.16148, 1.6148)
    """
    precision = noise_precision(noise)
    y = check.count_array(noisy_counts, "noisy_counts")
    k = check.count_array(known_count, "known_count", lower=0)
    p = check.probability(prior, "prior")
    if y.ndim == 0:
        raise ShapeError("noisy_counts", "must have an axis of levels", shown="one number")
    levels = check.broadcast(noisy_counts=y, known_count=k, noise=precision)
    evidence = np.broadcast_to((2.0 * precision) * ((y - k) - 0.5), levels).sum(axis=-1)
    out: FloatArray = np.empty(check.broadcast(noisy_counts=evidence, prior=p))
    bayes_rule(-evidence, p, p, out)
    return Belief(p, out)


def count_posterior(
    noisy_count: ArrayLike,
    *,
    noise: NoiseLaw | Noise,
    prior_pmf: ArrayLike,
    known_count: ArrayLike = 0,
) -> FloatArray:
    r"""Return the posterior of a count under any prior and any noise law.

    .. math:: P(X = k + i \mid y) \propto w_i\, f(y - k - i), \quad i = 0, \dots, u

    The adversary does not know u people, and ``prior_pmf[i]`` is the prior probability that i of
    them have the characteristics. The result has shape (..., u + 1); entry i is the posterior of k
    + i.

    Parameters
    ----------
    noisy_count : array_like of int, shape (...)
        Released count y.
    noise : NoiseLaw or Noise
        Law of the noise, with a vectorised ``logpmf``; or the budget of Gaussian noise.
    prior_pmf : array_like, shape (..., u + 1)
        Prior w of X = k, ..., k + u; sums to 1.
    known_count : array_like of int, shape (...), default 0
        Number k of others known to have them.

    Examples
    --------
    >>> from bayesrisk.distributions import DiscreteLaplace
    >>> count_posterior(2, noise=DiscreteLaplace(1.0), prior_pmf=[0.5, 0.3, 0.2]).round(4).tolist()
    [0.179, 0.2919, 0.5291]
    """
    law = noise.law() if isinstance(noise, Noise) else noise
    if not callable(getattr(law, "logpmf", None)):
        raise ArgumentTypeError("noise", "must have a logpmf method", got=noise)
    pmf = check.probability_vector(prior_pmf, "prior_pmf")
    y = check.count_array(noisy_count, "noisy_count")
    k = check.count_array(known_count, "known_count", lower=0)
    check.broadcast(noisy_count=y, known_count=k, prior_pmf=pmf[..., 0])
    residual = (y - k)[..., None] - np.arange(pmf.shape[-1])
    check.broadcast(counts=residual, noise=np.empty(getattr(law, "shape", ()), dtype=np.int8))
    likelihood = np.asarray(law.logpmf(residual), dtype=float)
    with np.errstate(divide="ignore"):
        joint = np.log(pmf) + likelihood
    peak = joint.max(axis=-1, keepdims=True)
    impossible = ~np.isfinite(peak[..., 0])
    if impossible.any():
        raise ArgumentError(
            "noisy_count must be possible under some count of the prior, got "
            + check.describe_first(np.broadcast_to(y, impossible.shape), impossible)
        )
    with np.errstate(under="ignore"):
        weight = np.exp(joint - peak)
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))

"""Risk of one count under a wrong noise law, and before and after post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number
from bayesrisk._base.validation import FloatArray, IntArray, Number
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.base import NoiseLaw
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.distributions.kernels import REACH
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.count import postprocessed as kernels
from bayesrisk.inference.count.measurements import SumLaws, exact_wanted, sum_laws
from bayesrisk.inference.count.postprocessed import group_setting
from bayesrisk.risk.count.averages import marginal_posterior, single_noise
from bayesrisk.risk.count.several_levels import before_postprocessing

_MAX_WRONG_RELEASES = 2**22
#: Beliefs that differ by less are one.
_SAME = 1e-12


@displayed
@dataclass(frozen=True, eq=False)
class MisspecifiedRisk(Tabular):
    """Beliefs of an adversary with the wrong noise law, release by release, and correct ones.

    Attributes
    ----------
    prior : float
        Probability p that the target is there, before the release.
    release : ndarray of int64
        Released count less the known count.
    probability, probability_if_there : ndarray
        Its probability under the true law, the target there with probability p, or certainly.
    believed_log_odds, correct_log_odds : ndarray
        Logarithm of the odds, there against not, that the adversary computes from it, and that
        under the true law.
    left_out : float
        Bound on the probability of releases that are not listed, hence on the error of every
        average but the regret, which they change by that times their difference of log odds.
    """

    prior: float
    release: IntArray
    probability: FloatArray
    probability_if_there: FloatArray
    believed_log_odds: FloatArray
    correct_log_odds: FloatArray
    left_out: float

    def _answer(self) -> list[str]:
        return [
            f"If the target is there, the belief grows {number(self.expected_risk)} times on "
            f"average; with the true law it would be {number(self.correct_risk)} times.",
            f"Over all releases it is {number(self.mean_belief)} on average where "
            f"{number(self.prior)} is true, and off by {number(self.mean_error)} on average.",
        ]

    @property
    def believed(self) -> FloatArray:
        """Posterior that the adversary computes from each release."""
        return np.asarray(special.expit(self.believed_log_odds))

    @property
    def correct(self) -> FloatArray:
        """Posterior under the true law: the share of such releases with the target there."""
        return np.asarray(special.expit(self.correct_log_odds))

    @property
    def expected_risk(self) -> float:
        """Average of believed posterior over prior, if the target is there."""
        return float(self.probability_if_there @ self.believed) / self.prior

    @property
    def correct_risk(self) -> float:
        """The same for an adversary who knows the true law: the marginal risk."""
        return float(self.probability_if_there @ self.correct) / self.prior

    @property
    def mean_belief(self) -> float:
        """Average belief over all releases; the prior, for an adversary who knows the law."""
        return float(self.probability @ self.believed)

    @property
    def mean_error(self) -> float:
        """Average distance of the belief from what is true of the same release."""
        return float(self.probability @ np.abs(self.believed - self.correct))

    @property
    def regret(self) -> float:
        """Nats of logarithmic score lost to the adversary who knows the law, on average; >= 0.

        Infinite where certainty is believed and wrong.
        """
        # Both outcomes by their log odds: a posterior rounded to 1 would say log 0 of the other.
        true, believed = (
            np.stack([odds, -odds]) for odds in (self.correct_log_odds, self.believed_log_odds)
        )
        share = special.expit(true)
        with np.errstate(invalid="ignore", under="ignore"):
            terms = share * (special.log_expit(true) - special.log_expit(believed))
            terms = np.where(share > 0.0, terms, 0.0).sum(axis=0)
            # Beliefs nearly right: the two terms would cancel.
            less = np.minimum(share[0], share[1])
            step = np.where(share[0] < 0.5, 1.0, -1.0) * (believed[0] - true[0])
            near = np.log1p(less * np.expm1(np.clip(step, -1.0, 1.0))) - less * step
        terms = np.where(np.abs(step) < 1.0, near, terms)
        terms = np.where(np.isinf(believed[0]) & (believed[0] != true[0]), np.inf, terms)
        return max(float(self.probability @ terms), 0.0)

    def calibration(self) -> pd.DataFrame:
        """Return, for each belief, how often it is held and how often it is right.

        Columns ``believed`` (ascending; those within 1e-12 are one), ``probability`` and
        ``share_there``, the share of those releases in which the target is there, which is equal to
        ``believed`` for a calibrated adversary.
        """
        order = np.argsort(self.believed, kind="stable")
        values, weight = self.believed[order], self.probability[order]
        weight_present = weight * self.correct[order]
        starts = np.flatnonzero(np.concatenate(([True], np.diff(values) > _SAME)))
        mass = np.add.reduceat(weight, starts)
        share = np.add.reduceat(weight_present, starts) / mass
        columns = {"believed": values[starts], "probability": mass, "share_there": share}
        return pd.DataFrame(columns)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each release."""
        names = ("release", "probability", "probability_if_there", "believed", "correct")
        return pd.DataFrame({name: getattr(self, name) for name in names})


def _log_likelihoods(law: NoiseLaw, release: IntArray) -> FloatArray:
    """Return the log probability of each release without the target and with it."""
    return np.stack([np.asarray(law.logpmf(release - x), dtype=float) for x in (0, 1)])


def misspecified_risk(
    *,
    true_noise: NoiseLaw | Noise,
    believed_noise: NoiseLaw | Noise,
    prior: float,
    left_out: float = 1e-15,
) -> MisspecifiedRisk:
    r"""Return the beliefs about one count of an adversary who takes the noise for another law.

    With f the true law of the noise and g the believed one,

    .. math:: \pi_g(y) = \frac{p\, g(y - k - 1)}{p\, g(y - k - 1) + (1 - p)\, g(y - k)}, \quad
        R = \sum_y f(y - k - 1)\, \frac{\pi_g(y)}{p}

    and the true posterior is the same with f: the share of releases y in which the target is
    there.  Source: Kazan and Reiter (arXiv:2204.04253), equations (3.1) to (3.4), where f and g are
    the same.  The regret is the conditional Kullback-Leibler divergence (Cover and Thomas, Elements
    of Information Theory, section 2.5).

    With too little noise in mind the adversary is too sure, with too much too timid.  The known
    count cancels.

    Parameters
    ----------
    true_noise : NoiseLaw or Noise
        Law of the noise that is added, or its budget.
    believed_noise : NoiseLaw or Noise
        Law that the adversary takes for it: another scale, or another law.
    prior : float
        Probability p that the target is there, in (0, 1); the adversary knows it.
    left_out : float, default 1e-15
        Probability of releases that may be left out, in (0, 1e-3].

    Returns
    -------
    MisspecifiedRisk
        Releases with what is believed and what is true; expected risk, mean belief, error, regret
        and calibration.  Exact but for ``left_out`` and rounding; at most 2**22 releases are
        listed, all of which the believed law must hold possible.

    Examples
    --------
    The noise of a redistricting cell as produced, and an adversary who takes it for the paper's:

    >>> result = misspecified_risk(
    ...     true_noise=Noise(rho=0.0992264, sensitivity=2**0.5),
    ...     believed_noise=Noise(rho=0.0992264),
    ...     prior=1 / 10,
    ... )
    >>> print(round(result.expected_risk, 4), round(result.correct_risk, 4))
    1.2402 1.0821
    >>> print(round(result.mean_belief, 4))
    0.1067
    """
    true, believed = (
        single_noise(noise, name)
        for noise, name in ((true_noise, "true_noise"), (believed_noise, "believed_noise"))
    )
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    cut = check.scalar(left_out, "left_out", lower=0.0, upper=1e-3, bounds="(]")
    first, last = float(np.asarray(true.ppf(0.5 * cut))), float(np.asarray(true.isf(0.5 * cut))) + 1
    if not last - first < _MAX_WRONG_RELEASES:
        raise ArgumentError(
            f"true_noise must give at most {_MAX_WRONG_RELEASES} releases, got {last - first + 1:g}"
        )
    release = np.arange(int(first), int(last) + 1)
    logs = _log_likelihoods(true, release)
    with np.errstate(under="ignore"):
        happens = np.exp(logs).sum(axis=0) > 0.0
        release, logs = release[happens], logs[:, happens]
        without, present = np.exp(logs)
    believed_logs = _log_likelihoods(believed, release)
    impossible = np.isneginf(believed_logs.max(axis=0))
    if impossible.any():
        raise ArgumentError(
            "believed_noise must hold every release of true_noise possible, got none for "
            f"{release[impossible][0]} above the known count"
        )
    log_odds = np.log(p) - np.log1p(-p)
    return MisspecifiedRisk(
        prior=p,
        release=release,
        probability=(1.0 - p) * without + p * present,
        probability_if_there=present,
        believed_log_odds=log_odds + (believed_logs[1] - believed_logs[0]),
        correct_log_odds=log_odds + (logs[1] - logs[0]),
        left_out=cut,
    )


# -----------------------------------------------------------------------------
# Average risk of a count that is published after post-processing, and before it (S6).
#
# Two releases of the same noisy counts are compared, to an adversary who knows the group's count N
# either way: the block's count after projection on N, and the noisy counts (y, S) themselves.


_MAX_RELEASES = 2**24


def _check_cost(laws: SumLaws, group_count: IntArray) -> None:
    """Refuse sums over more than 2**24 released values."""
    depth = -np.minimum.reduceat(laws.ripples, laws.ends[:-1])
    window = np.sqrt((REACH + 2.0 * depth) / laws.rates)
    releases = np.minimum(window[laws.number], group_count.ravel())
    if releases.max() > _MAX_RELEASES:
        raise ArgumentError(
            "rho",
            f"must be worth at most {_MAX_RELEASES} released values up to group_count",
            shown=f"{releases.max():.3g}",
        )


def postprocessed_marginal_posterior(
    *,
    group_count: ArrayLike,
    n_siblings: ArrayLike,
    noise: Noise | DiscreteGaussian,
    prior: Number,
    known_count: ArrayLike = 0,
    sibling_noise: str = "approximate",
) -> Belief:
    r"""Return the belief after post-processing, averaged, if the target is in the cell.

    .. math:: \sum_{a=0}^{N} P(a \mid X = k + 1)\, P(X = k + 1 \mid a)

    The relative error is at most 2**-44, which includes all truncation (at most 2**24 released
    values are summed); the average depends on N and k because the ends 0 and N are mixtures of many
    noise values.  Source: Kazan and Reiter, supplement, equation (S6.8).
    """
    exact = exact_wanted(sibling_noise)
    precision = noise_precision(noise)
    n, m, k = group_setting(group_count, n_siblings, known_count)
    p = check.probability(prior, "prior")
    shape = check.broadcast(group_count=n, n_siblings=m, known_count=k, noise=precision, prior=p)
    laws = sum_laws(precision, m + 1, exact=exact, shape=shape)
    _check_cost(laws, np.broadcast_to(n, shape))
    out = np.empty(shape)
    # Copies: what may not be written would be compiled apart.
    totals, counts = (np.array(np.broadcast_to(v, shape), order="C").reshape(-1) for v in (n, k))
    priors = np.array(np.broadcast_to(p, shape), order="C").reshape(-1)
    kernels.fill_marginal_ratio(totals, counts, priors, laws, out.reshape(-1))
    ratio = np.clip(out, 1.0, 1.0 / p)
    return Belief(p, np.minimum(ratio * p, 1.0))


@displayed
@dataclass(frozen=True)
class PostprocessingComparison(Tabular):
    """Average posteriors of the truth before and after post-processing, with the baselines.

    The numbers are exact (no sampling); arrays have one common shape.

    Attributes
    ----------
    group_count, n_siblings, known_count : ndarray of int64
        N, m and k.
    sigma2, prior : ndarray
        Scale parameter of a block's noise, and the belief before any release: the baseline.
    block_only, before, after : ndarray
        Marginal posterior given y alone, which is not what post-processing starts from; given
        (y, S) with N known; and given the post-processed count with N known.
    sibling_noise : str
        ``"approximate"`` or ``"exact"``.
    """

    group_count: IntArray
    n_siblings: IntArray
    known_count: IntArray
    sigma2: FloatArray
    prior: FloatArray
    block_only: FloatArray
    before: FloatArray
    after: FloatArray
    sibling_noise: str

    @property
    def risk_before(self) -> FloatArray:
        """Average risk before post-processing: ``before / prior``."""
        return self.before / self.prior

    @property
    def risk_after(self) -> FloatArray:
        """Average risk after it: ``after / prior``."""
        return self.after / self.prior

    @property
    def ratio(self) -> FloatArray:
        """``after / before``, at most 1."""
        return self.after / self.before

    @property
    def margin(self) -> FloatArray:
        """``before - after``, at least 0 (data processing), up to ``error_bound``."""
        return self.before - self.after

    @property
    def error_bound(self) -> FloatArray:
        """Bound on the error of ``margin``, from rounding and truncation."""
        # 2**-44 of ``after``, and that of ``multilevel_marginal_posterior`` of ``before``.
        rounding = (4.0 + 6.0 * np.minimum(0.5 / self.sigma2, 900.0)) * 2.0**-52
        return 2.0**-44 * self.after + self.before * rounding

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each setting."""
        names = (
            *("group_count", "n_siblings", "known_count", "sigma2", "prior", "block_only"),
            *("before", "after", "risk_before", "risk_after", "ratio", "margin", "error_bound"),
        )
        return pd.DataFrame({name: getattr(self, name).ravel() for name in names})


def compare_postprocessing(
    *,
    group_count: ArrayLike,
    n_siblings: ArrayLike,
    noise: Noise | DiscreteGaussian,
    prior: Number,
    known_count: ArrayLike = 0,
    sibling_noise: str = "approximate",
) -> PostprocessingComparison:
    """Return the average risk before and after post-processing, under the same knowledge of N.

    Source: Kazan and Reiter (arXiv:2204.04253), supplement S6 and Figure 12.

    Parameters
    ----------
    group_count : array_like of int
        Count N of the group, known to the adversary, >= 1.
    n_siblings, noise, prior, known_count, sibling_noise : array_like
        As for :func:`postprocessed_posterior`: m, a block's noise, p, k, and the law of the
        siblings' noise.

    Examples
    --------
    >>> from bayesrisk import Noise
    >>> result = compare_postprocessing(
    ...     group_count=50, n_siblings=[1, 27], noise=Noise(rho=0.0992264), prior=0.5
    ... )
    >>> result.to_frame()[["n_siblings", "block_only", "before", "after", "margin"]].round(4)
       n_siblings  block_only  before   after  margin
    0           1      0.5237  0.5453  0.5392  0.0062
    1          27      0.5237  0.5245  0.5029  0.0216
    """
    precision = noise_precision(noise)
    published = postprocessed_marginal_posterior(
        group_count=group_count,
        n_siblings=n_siblings,
        noise=noise,
        prior=prior,
        known_count=known_count,
        sibling_noise=sibling_noise,
    )
    noisy = before_postprocessing(
        n_siblings=n_siblings, noise=noise, prior=prior, sibling_noise=sibling_noise
    )
    columns = {
        "group_count": check.count_array(group_count, "group_count"),
        "n_siblings": check.count_array(n_siblings, "n_siblings"),
        "known_count": check.count_array(known_count, "known_count"),
        "sigma2": 0.5 / precision,
        "prior": check.probability(prior, "prior"),
        "block_only": marginal_posterior(rho=precision, prior=prior),
        "before": noisy.posterior,
        "after": published.posterior,
    }
    arrays: list[Any] = list(np.broadcast_arrays(*columns.values()))
    named = dict(zip(columns, arrays, strict=True))
    return PostprocessingComparison(**named, sibling_noise=sibling_noise)

"""Budgets of one noisy count: the largest that keeps a limit on risk, and the implied epsilon.

Neither measure of the risk is monotone in rho everywhere. So the result is the largest rho below
which *every* rho keeps the limit, not a root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number, span
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import FloatAnswer, FloatArray, Number
from bayesrisk.accounting.privacy_loss import PrivacyLoss
from bayesrisk.answers import Belief
from bayesrisk.distributions import DiscreteGaussian, Noise
from bayesrisk.distributions.discrete_laplace import noise_precision
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.risk.count.averages import SMOOTH
from bayesrisk.risk.count.distribution import ratio_evidence
from bayesrisk.risk.count.question import CountRisk
from bayesrisk.risk.count.several_levels import excess_ratio

if TYPE_CHECKING:
    from bayesrisk.plotting import Axes, Panels, Where


MEASURES = ("average", "quantile")
#: The measure at the rho returned is at least the limit times one less this.
TOLERANCE = 1e-11
_NOISE = np.arange(1.0, 25.0)  # exp(-SMOOTH * 24**2) is 1e-45
_MAX_STEPS = 10**5
_MAX_COUNT = 2**24
_STEP = 2**12
# Up to this rho a sum of draws is a discrete Gaussian again, as in ``distributions.convolve``.
_CLOSED = 0.125


def _slopes(rho: float) -> tuple[float, float]:
    """Return bounds on the growth rates, in rho, of log r and of -log(1 / p - r).

    With V the variance of the noise, d log r / d rho <= V + 2. The law of the noise changes by V -
    eta**2 of itself, and the summand by at most max(2 eta + 1, 0) <= eta**2 + 2. The summand falls
    at least that fast to either side. So -d log(1 / p - r) / d rho <= sum over i >= 0 of (1 + i)**2
    exp(-rho i**2). Both bounds fall with rho.
    """
    weight = np.exp(-rho * _NOISE**2)
    variance = float(2.0 * (_NOISE**2 @ weight) / (1.0 + 2.0 * weight.sum()))
    return variance + 2.0, float(1.0 + (1.0 + _NOISE) ** 2 @ weight)


def _average_limit(limit: float, prior: float, levels: int) -> float:
    """Return the largest rho per level up to which the average ratio keeps the limit.

    Up to ``SMOOTH`` the average is that of Gaussian noise within 1e-17 (``marginal_ratio``). There
    less noise is more information, so it rises, and a root finder suffices. Beyond, steps are so
    short that no bound on the slope lets the limit be passed within one. Average and limit are
    expressed by their excess over 1, which may be small. That excess is (1 - p)**2 times a sum in
    which p and 1 - p may be exchanged (``marginal_excess``), so a small prior suffices.
    """
    more = limit - 1.0
    if prior > 0.5:
        more, prior = more * (prior / (1.0 - prior)) ** 2, 1.0 - prior
    most = (1.0 - prior) / prior
    if excess_ratio(SMOOTH, prior, levels) >= more:
        low = 0.5 * np.log1p(more) / levels  # the average is below exp(2 rho) for every prior

        def log_gap(log_rho: float) -> float:
            excess = excess_ratio(float(np.exp(log_rho)), prior, levels)
            return float(np.log(excess / more)) + 0.5 * TOLERANCE

        return float(np.exp(brentq(log_gap, np.log(0.99 * low), np.log(SMOOTH), xtol=1e-13)))
    rho = SMOOTH
    for _ in range(_MAX_STEPS):
        excess = excess_ratio(rho, prior, levels)
        if np.log(more / excess) <= TOLERANCE:
            return rho
        rise, fall = _slopes(rho)
        gap = np.log1p((more - excess) / (1.0 + excess))
        left = np.log1p((more - excess) / (most - more)) if more < most else 0.0
        rho += max(gap / rise, left / fall) / levels
    rule = "must be further from a maximum of the average risk"
    advice = f": not settled within {_MAX_STEPS} steps, up to rho = {rho:g}"
    raise ArgumentError("limit", rule, got=limit, advice=advice)


def _sum_tails(rho: FloatArray, first: FloatArray, levels: int) -> FloatArray:
    """Return P(S >= first) for the sum S of ``levels`` draws, for each rho."""
    law = DiscreteGaussian(0.5 * levels / rho)
    tails = np.atleast_1d(np.asarray(law.sf(first - 1.0)))
    if levels > 1:
        for i in np.flatnonzero(rho > _CLOSED):
            reach = int(np.sqrt(41.0 / rho[i])) + 1
            one = np.exp(-rho[i] * np.arange(-reach, reach + 1.0) ** 2)
            one, pmf = one / one.sum(), np.ones(1)
            for _ in range(levels):
                pmf = np.convolve(pmf, one)
            start = int(first[i]) + levels * reach
            tails[i] = pmf[max(start, 0) :].sum()
    return tails


def _quantile_limit(limit: float, prior: float, levels: int, probability: float) -> float:
    """Return the largest rho per level up to which the quantile keeps the limit.

    If the quantile of the noise S is j, the ratio keeps the limit up to rho_j = E / (2 j + m). Here
    E is its evidence and m the number of levels. As rho grows, j falls. The quantile at rho_j is at
    least j if and only if P(S >= j) > 1 - probability. So the answer is rho_j for the largest such
    j. As P(S >= j) <= exp(-rho j**2 / m), none is beyond the j at the start.
    """
    evidence = float(ratio_evidence(np.array(limit), prior))
    rare = -np.log1p(-probability)
    top = levels * (rare + np.sqrt(rare**2 + evidence * rare)) / evidence
    if not top < _MAX_COUNT:
        rule = f"must be further above 1 for a quantile (noise of at most {_MAX_COUNT} is searched)"
        raise ArgumentError("limit", rule, got=limit)
    last = int(top) + 1
    while last >= 0:
        j = np.arange(last, max(last - _STEP, -1), -1.0)
        rho = evidence / (2.0 * j + levels)
        exceeding = _sum_tails(rho, j, levels) > 1.0 - probability
        if exceeding.any():
            return float(rho[exceeding.argmax()])
        last -= _STEP
    return evidence / levels


def rho_for_risk(
    limit: float,
    *,
    prior: Number,
    measure: str = "average",
    probability: float | None = None,
    sensitivity: Number = 1.0,
    levels: int = 1,
) -> float:
    r"""Return the largest budget such that it and every smaller one keep a limit on the risk.

    .. math:: \sup\{\rho : R(\rho') \le \text{limit for all } \rho' \le \rho\}

    Here R is the :func:`marginal_risk`, or a quantile of the risk ratio over releases, given that
    the target is in the cell. Source of the risks: Kazan and Reiter (arXiv:2204.04253), equations
    (3.2) and (3.4).

    Parameters
    ----------
    limit : float
        Largest accepted risk ratio, above 1 and below 1 / p (no release reaches 1 / p).
    prior : float
        Probability p that the target is in the cell, in (0, 1).
    measure : {"average", "quantile"}, default "average"
        The average over releases, or the ratio exceeded with probability at most
        ``1 - probability``.
    probability : float, optional
        Level of the quantile, in [0.5, 1); required for ``"quantile"``, else not allowed.
    sensitivity : float, default 1.0
        L2 sensitivity that rho refers to. It is 1 if a neighbour has one record more or less (the
        paper's noise), sqrt(2) if one record is changed (the 2020 census). The result has the same
        noise, sigma2 = sensitivity**2 / (2 rho), but another cost.
    levels : int, default 1
        Number of releases that count the target, each with that budget, in [1, 100].

    Returns
    -------
    float
        rho of each release, > 0. Its average risk exceeds 1 by at most ``limit - 1`` (1 + 1e-12).
        It does so by at least 1 - 2e-11 of that, unless the average has a maximum just below the
        limit. The quantile is ``limit`` within 1e-12, and any larger rho next to it exceeds the
        limit. Limits so near 1 that a quantile needs noise of 2**24 or more are refused. So are
        limits that cannot be told from a maximum of the average.

    Notes
    -----
    The known count plays no part. The average rises with rho up to rho / sensitivity**2 = 0.18 at
    every prior. Beyond that it may fall for small priors: at p = 1e-6 by 63 % from rho = 4.9 to
    6.9. A quantile rises and falls like a saw, so larger budgets may keep the limit again.

    Examples
    --------
    >>> from bayesrisk import marginal_risk
    >>> rho = rho_for_risk(1.5, prior=1 / 10)
    >>> print(round(rho, 6), round(marginal_risk(rho=rho, prior=1 / 10), 9))
    0.279491 1.5
    >>> print(round(rho_for_risk(1.5, prior=1 / 10, sensitivity=2**0.5), 6))
    0.558982
    >>> print(round(rho_for_risk(3, prior=1 / 10, measure="quantile", probability=0.99), 6))
    0.122721
    """
    check.choice(measure, "measure", MEASURES)
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    bound = check.scalar(limit, "limit", lower=1.0, bounds="()")
    delta = check.scalar(check.by_neighbour(sensitivity), "sensitivity", lower=1e-100, upper=1e100)
    m = check.integer(levels, "levels", lower=1, upper=100)
    if not bound < 1.0 / p:
        rule = (
            f"must be below 1 / prior = {1.0 / p:g}, which no release reaches: every rho keeps it"
        )
        raise ArgumentError("limit", rule, shown=f"{bound:g}")
    if measure == "average":
        if probability is not None:
            rule, advice = "belongs with the quantile", ": write measure='quantile'"
            raise ArgumentError("probability", rule, got=probability, advice=advice)
        return _average_limit(bound, p, m) * delta**2
    if probability is None:
        raise ArgumentError("measure='quantile' needs a probability: write probability=0.99")
    level = check.scalar(probability, "probability", lower=0.5, upper=1.0, bounds="[)")
    return _quantile_limit(bound, p, m, level) * delta**2


_PANELS = ("posterior", "ratio", "found")
_MOST = 2**22  # pairs of a budget and a prior


@displayed
@dataclass(frozen=True, eq=False)
class RiskCurve(Tabular):
    """Averages over the releases of a count, for each budget and prior.

    Arrays have one axis: all priors of the first budget, then those of the next.

    Attributes
    ----------
    rho, prior : ndarray
        Budget of the count, and prior probability p that the target is in its cell.
    marginal_posterior, marginal_risk : ndarray
        Average posterior over releases if the target is in the cell, and its ratio to the prior
        (:func:`marginal_posterior`, :func:`marginal_risk`).
    correct_decision_probability : ndarray
        Probability that the target is found, if it is in the cell.
    decision_accuracy, decision_baseline : ndarray
        Rate of correct best guesses, and that without a release (:func:`decision_accuracy`).
    """

    rho: FloatArray
    prior: FloatArray
    marginal_posterior: FloatArray
    marginal_risk: FloatArray
    correct_decision_probability: FloatArray
    decision_accuracy: FloatArray
    decision_baseline: FloatArray

    def _answer(self) -> list[str]:
        peak = int(np.argmax(self.marginal_risk))
        prior, after, rho = (
            number(a[peak]) for a in (self.prior, self.marginal_posterior, self.rho)
        )
        return [
            f"On average over releases the belief that the target is in the cell, if it is, grows "
            f"{span(self.marginal_risk)}-fold.",
            f"It grows most at rho {rho}: from {prior} to {after}.",
        ]

    def _shown_frame(self) -> pd.DataFrame:
        return self.to_frame()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each budget and prior, with the attributes as columns."""
        return pd.DataFrame({field.name: getattr(self, field.name) for field in fields(self)})

    def plot(
        self,
        *,
        panel: str | None = None,
        budgets: Mapping[str, float] | None = None,
        ax: Where = None,
    ) -> Panels | Axes:
        """Draw the curves: one line for each prior, rho on a logarithmic axis.

        ``panel`` is ``"posterior"``, ``"ratio"`` or ``"found"`` (the probability of being found);
        by default the first two are drawn side by side. ``budgets`` are marked with their names.
        """
        from bayesrisk.plotting import plot_correct_decision, plot_risk  # slow to import

        if panel is not None:
            check.choice(panel, "panel", _PANELS)
        frame = self.to_frame()
        if panel == "found":
            return plot_correct_decision(frame, budgets=budgets, ax=cast("Axes", ax))
        return plot_risk(frame, panel=panel, budgets=budgets, ax=ax)


def risk_curve(rho: ArrayLike, prior: ArrayLike, *, sensitivity: Number = 1.0) -> RiskCurve:
    r"""Return the average risk of a noisy count for each budget and prior.

    .. math:: R(\rho, p) = \sum_y f(y - k - 1)\, \pi(y) / p

    Here f is the discrete Gaussian of sigma2 = sensitivity**2 / (2 rho), k the number of others in
    the cell, and pi(y) the posterior given y. Source: Kazan and Reiter (arXiv:2204.04253),
    equations (3.3) to (3.6).

    Parameters
    ----------
    rho : array_like
        Budgets of the count, > 0.
    prior : array_like
        Probabilities that the target is in the cell, in (0, 1); each is combined with each budget.
    sensitivity : float, default 1.0
        L2 sensitivity that rho refers to, as for :func:`rho_for_risk`.

    Returns
    -------
    RiskCurve
        Numbers, ``to_frame()`` and ``plot()``.

    Examples
    --------
    >>> curve = risk_curve([0.01, 0.1, 1.0], prior=["1/10", "1/864"])
    >>> curve.to_frame()[["rho", "prior", "marginal_risk"]].round(3).head(3)
        rho  prior  marginal_risk
    0  0.01  0.100          1.016
    1  0.01  0.001          1.020
    2  0.10  0.100          1.169
    """
    budgets = np.ravel(check.real_array(rho, "rho", lower=0.0, bounds="()"))
    priors = np.ravel(check.probability(prior, "prior"))
    if budgets.size * priors.size > _MOST:
        raise ArgumentError(
            "rho", f"and prior must make at most {_MOST:,} pairs", shown=budgets.size * priors.size
        )
    by_rho, by_prior = np.repeat(budgets, priors.size), np.tile(priors, budgets.size)
    count = CountRisk(rho=by_rho, prior=by_prior, sensitivity=sensitivity)
    decisions = count.accuracy()
    return RiskCurve(
        by_rho,
        by_prior,
        np.asarray(count.marginal_posterior()),
        np.asarray(count.marginal_risk()),
        np.asarray(count.correct_decision()),
        decisions.accuracy,
        decisions.baseline,
    )


_MAX_PRECISION = 1e3


def implied_epsilon(belief: Belief) -> float:
    r"""Return the smallest epsilon of pure differential privacy that allows the given beliefs.

    .. math:: \epsilon \ge \max \Big| \log\frac{\pi}{1 - \pi} - \log\frac{p}{1 - p} \Big|

    The change of the log-odds is the logarithm of the Bayes factor, P(release | present) over
    P(release | absent). Under epsilon-differential privacy (delta = 0) it is at most epsilon in
    size, whatever the prior. Source: S. P. Kasiviswanathan and A. Smith (2014), *On the semantics
    of differential privacy: a Bayesian formulation*, Journal of Privacy and Confidentiality 6(1).

    The bound is in nats, and infinite if a posterior is 0 or 1. Rounding a posterior to a double
    moves it by up to 2**-53 / (1 - posterior).

    For an average posterior the bound is valid but smaller. Gaussian noise has no finite epsilon at
    delta = 0; see :func:`attainable_epsilon`.

    Parameters
    ----------
    belief : Belief
        Priors in (0, 1) and posteriors that the target is in the data, where all else is known: the
        two possible data sets must be neighbours.

    Examples
    --------
    >>> print(round(implied_epsilon(Belief(prior=0.1, posterior=0.182)), 4))
    0.6944
    """
    p = check.probability(check.instance(belief, Belief, "belief").prior, "prior")
    with np.errstate(divide="ignore"):
        after = np.log(belief.posterior) - np.log1p(-np.asarray(belief.posterior))
    return float(np.abs(after - (np.log(p) - np.log1p(-p))).max())


def decision_epsilon(*, found: Number, cleared: Number, delta: float = 0.0) -> FloatAnswer:
    r"""Return the smallest epsilon that allows the given rates of correct decisions.

    .. math:: \epsilon \ge \log \max\Big\{ \frac{a - \delta}{b}, \frac{b - \delta}{a},
        \frac{1 - a - \delta}{1 - b}, \frac{1 - b - \delta}{1 - a} \Big\}, \quad
        a = \text{found},\ b = 1 - \text{cleared}

    Every decision about one person is a test between two neighbouring data sets;
    :func:`decision_accuracy` and simulated attacks give its rates. Source: L. Wasserman and S. Zhou
    (2010), *A statistical framework for differential privacy*, Theorem 2.4; P. Kairouz, S. Oh and
    P. Viswanath (2015), *The composition theorem for differential privacy*, Theorem 2.1.

    The bound is in nats. It is infinite if an outcome has probability above delta under one truth
    and none under the other.

    For estimated rates, use the ends of their confidence intervals that make the bound small.

    Parameters
    ----------
    found : array_like
        Probability of deciding "present" if the target is present, in [0, 1].
    cleared : array_like
        Probability of deciding "absent" if it is absent, in [0, 1].
    delta : float, default 0.0
        delta of the guarantee, in [0, 1).

    Examples
    --------
    >>> print(round(decision_epsilon(found=0.6, cleared=0.7), 4))
    0.6931
    """
    a = check.real_array(found, "found", lower=0.0, upper=1.0) + 0.0  # without minus zero
    right = check.real_array(cleared, "cleared", lower=0.0, upper=1.0) + 0.0
    failure = check.scalar(delta, "delta", lower=0.0, upper=1.0, bounds="[)")
    check.broadcast(found=a, cleared=right)
    b = 1.0 - right
    pairs = [(a, b), (b, a), (1.0 - a, right), (right, 1.0 - a)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        bounds = [
            np.where(x > failure, np.log1p((np.maximum(x - failure, 0.0) - y) / y), 0.0)
            for x, y in pairs
        ]
    return check.answer(np.maximum(np.maximum.reduce(bounds), 0.0))


def attainable_epsilon(*, noise: Noise | DiscreteGaussian, delta: float) -> float:
    r"""Return the epsilon at a given delta that the best test of the noisy counts attains.

    .. math:: \inf\{\epsilon \ge 0 : E[(1 - e^{\epsilon - E})_+] \le \delta\}, \quad
        E = \sum_l \rho_l (2 \eta_l + 1)

    Here E is the evidence, the log Bayes factor, if the target is present. The best test of
    presence decides by whether E exceeds epsilon; by the Neyman-Pearson lemma no other test gains
    more. Source: as for :func:`decision_epsilon`.

    Parameters
    ----------
    noise : Noise or DiscreteGaussian, shape () or (levels,)
        Noise of the count, or of each level that counts the target.
    delta : float
        delta of the guarantee, in [1e-12, 1).

    Returns
    -------
    float
        Epsilon in nats, rounded down. It is attained for one person more or less; for one count it
        is :func:`discrete_gaussian_epsilon`. It is the lower end of
        :meth:`~bayesrisk.accounting.PrivacyLoss.epsilon`, whose two ends are within 1e-7. rho /
        sensitivity**2 is at most 1000.

    Examples
    --------
    >>> print(round(attainable_epsilon(noise=Noise(rho=0.0992264), delta=1e-6), 4))
    2.0016
    """
    precision = noise_precision(noise)
    if precision.ndim > 1:
        raise ShapeError(f"noise must be one number or a list of levels, got {precision.shape}")
    if np.any(precision > _MAX_PRECISION):
        raise ArgumentError(
            f"noise must have rho / sensitivity**2 <= {_MAX_PRECISION:g}, got {precision.max():g}"
        )
    failure = check.scalar(delta, "delta", lower=1e-12, upper=1.0, bounds="[)")
    noises = [DiscreteGaussian(0.5 / level) for level in np.atleast_1d(precision).tolist()]
    return float(PrivacyLoss.of(noises).epsilon(failure).lower)

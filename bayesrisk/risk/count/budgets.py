"""The budget that keeps a limit on the risk.

Neither measure of the risk is monotone in rho everywhere: the largest rho below which *every* rho
keeps the limit is returned, not a root.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray, Number
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError
from bayesrisk.risk.count.averages import SMOOTH
from bayesrisk.risk.count.distribution import ratio_evidence
from bayesrisk.risk.count.several_levels import excess_ratio

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
    """Return bounds on how fast the ratio r grows from rho on, and how fast 1 / p - r falls.

    With V the variance of the noise, d log r / d rho <= V + 2: the law of the noise changes by
    V - eta**2 of itself and the summand by at most max(2 eta + 1, 0), which is eta**2 + 2 or less.
    In the same way -d log(1 / p - r) / d rho <= sum over i >= 0 of (1 + i)**2 exp(-rho i**2),
    because the summand falls at least that fast to either side.  Both bounds fall with rho.
    """
    weight = np.exp(-rho * _NOISE**2)
    variance = float(2.0 * (_NOISE**2 @ weight) / (1.0 + 2.0 * weight.sum()))
    return variance + 2.0, float(1.0 + (1.0 + _NOISE) ** 2 @ weight)


def _average_limit(limit: float, prior: float, levels: int) -> float:
    """Return the rho of each level up to which the average keeps the limit.

    Up to ``SMOOTH`` the average is that of Gaussian noise within 1e-17 (``marginal_ratio``), and
    there less noise is more information: it rises, and a root finder will do.  Beyond, steps so
    short that no bound on the slope lets the limit be passed within one.  All in terms of what the
    average and the limit exceed 1 by, which may be little.  That excess is (1 - p)**2 times a sum
    in which p and 1 - p may be exchanged (``marginal_excess``), so that a small prior will do.
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
    """Return P(S >= first) for the sum S of a number of draws of each rho."""
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
    """Return the rho of each level up to which the quantile keeps the limit.

    Where the quantile of the noise S is j, the ratio keeps the limit up to rho_j = E / (2 j + m),
    E its evidence and m the levels.  As rho grows, j falls; the quantile at rho_j is still j or
    more exactly where P(S >= j) > 1 - probability.  So the answer is rho_j for the largest such j.
    By P(S >= j) <= exp(-rho j**2 / m) none is beyond the j that is started from.
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
    r"""Return the largest budget such that it, and every smaller one, keeps a limit on the risk.

    .. math:: \sup\{\rho : R(\rho') \le \text{limit for all } \rho' \le \rho\}

    with R the :func:`marginal_risk`, or a quantile of the risk ratio over releases, given that the
    target is there.  Source: Kazan and Reiter (arXiv:2204.04253), equations (3.2) and (3.4), for
    the risks.

    Parameters
    ----------
    limit : float
        Largest risk ratio that is accepted, above 1 and below 1 / p (no release reaches 1 / p).
    prior : float
        Probability p that the target is there, in (0, 1).
    measure : {"average", "quantile"}, default "average"
        The average over releases, or the ratio that they exceed with probability at most
        ``1 - probability``.
    probability : float, optional
        Level of the quantile, in [0.5, 1); with ``"quantile"`` only, and then required.
    sensitivity : float, default 1.0
        L2 sensitivity that rho refers to: 1 where a neighbour has one record more or less (the
        paper's noise), sqrt(2) where one record is changed (that of the 2020 census).  The noise
        found is the same, sigma2 = sensitivity**2 / (2 rho); what it costs is not.
    levels : int, default 1
        Number of releases of that budget each that count the target, in [1, 100].

    Returns
    -------
    float
        rho of each release, > 0. Its average risk exceeds 1 by at most ``limit - 1`` (1 + 1e-12).
        Unless the average has a maximum just below the limit, it does so by at least 1 - 2e-11 of
        that; its quantile is ``limit`` within 1e-12, and any larger rho next to it exceeds it.
        Refused where ``limit`` is so near 1 that a quantile needs noise of 2**24 and more. Refused
        also where it cannot be told from a maximum of the average.

    Notes
    -----
    The known count plays no part.  The average rises with rho up to rho / sensitivity**2 = 0.18 at
    every prior.  Beyond that it may fall for small ones: at p = 1e-6 from rho = 4.9 to 6.9, by
    63 %.  A quantile rises and falls like a saw, so that larger budgets may keep the limit again.

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
    delta = check.scalar(sensitivity, "sensitivity", lower=1e-100, upper=1e100)
    m = check.integer(levels, "levels", lower=1, upper=100)
    if not bound < 1.0 / p:
        rule = (
            f"must be below 1 / prior = {1.0 / p:g}, which no release reaches: every rho keeps it"
        )
        raise ArgumentError("limit", rule, shown=f"{bound:g}")
    if measure == "average":
        if probability is not None:
            raise ArgumentError("probability", "belongs with 'quantile'", got=probability)
        return _average_limit(bound, p, m) * delta**2
    if probability is None:
        raise ArgumentError("measure='quantile' needs a probability, got None")
    level = check.scalar(probability, "probability", lower=0.5, upper=1.0, bounds="[)")
    return _quantile_limit(bound, p, m, level) * delta**2

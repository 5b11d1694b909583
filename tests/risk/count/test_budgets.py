"""The budget for a risk: inverted back, and every smaller budget keeps the limit too."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from mpmath import mp, mpf
from oracles import laws as oracles

from bayesrisk import ArgumentError, DiscreteGaussian, Noise, marginal_risk, risk_ratio
from bayesrisk.risk import multilevel_marginal_posterior, rho_for_risk, risk_distribution

priors = st.floats(-9, -0.1).map(lambda t: 10.0**t)
shares = st.floats(0.001, 0.999)


def limit_at(prior, share):
    """Return a limit between 1 and 1 / p, evenly in its logarithm."""
    return math.exp(-share * math.log(prior))


def all_below(rho, points=4001):
    return np.concatenate([np.geomspace(1e-9 * rho, rho, 400), np.linspace(0, rho, points)[1:]])


@given(priors, shares)
def test_the_average_comes_back_and_all_smaller_budgets_keep_the_limit(prior, share):
    limit = limit_at(prior, share)
    rho = rho_for_risk(limit, prior=prior)
    risk = marginal_risk(rho=all_below(rho), prior=prior)
    slack = (16 + 3 * math.log(1 / prior)) * 2**-52
    assert risk.max() <= limit * (1 + slack)
    # A maximum just below the limit is not met by chance: the average comes back.
    assert marginal_risk(rho=rho, prior=prior) >= limit * (1 - 2e-11)


def test_the_average_against_high_precision():
    for prior, limit in ((0.1, 1.5), (0.5, 1.9), (1e-6, 300.0), (1 / 864, 1.01)):
        rho = rho_for_risk(limit, prior=prior)
        assert oracles.marginal_risk(rho, prior) == pytest.approx(limit, rel=2e-11)


def added(rho, prior, levels):
    """Return the average ratio of levels of one rho from the law of their total noise."""
    rho, p = mpf(rho), mpf(prior)
    one = [mp.exp(-rho * j * j) for j in range(-40, 41)]
    law = [mpf(1)]
    for _ in range(levels):
        longer = [mpf(0)] * (len(law) + 80)
        for (i, v), (j, w) in itertools.product(enumerate(law), enumerate(one)):
            longer[i + j] += v * w
        law = longer
    total = enumerate(law, start=-40 * levels)
    ratios = (w / (p + (1 - p) * mp.exp(-rho * (2 * j + levels))) for j, w in total)
    return mp.fsum(ratios) / mp.fsum(law)


@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize(
    ("prior", "more"),
    [
        (0.5, 1e-12),
        (0.5, 2.0**-52),
        (1e-9, 1e-12),
        (0.9, 1e-5),
        (1 - 1e-6, 3e-12),
        (1 - 1e-6, 9e-7),
        (1 - 1e-9, 5e-10),
        (1 - 1e-12, 5e-13),
    ],
)
def test_limits_next_to_1_and_priors_next_to_1(prior, more, levels):
    limit = 1.0 + more
    rho = rho_for_risk(limit, prior=prior, levels=levels)
    with mp.workdps(40):
        # Noise of small budgets is smooth: all levels are one count of their sum.
        one = levels == 1 or rho < 0.01
        risk = oracles.marginal_risk(levels * rho, prior) if one else added(rho, prior, levels)
        share = float((risk - 1) / (mpf(limit) - 1))
    assert 1 - 2e-11 <= share <= 1 + 1e-12


def test_the_average_is_not_monotone_for_small_priors_and_the_first_crossing_is_taken():
    prior = 1e-6
    grid = np.linspace(4.0, 12.0, 8001)
    risk = marginal_risk(rho=grid, prior=prior)
    fallen = np.flatnonzero(np.diff(risk) < 0.0)
    peak, valley = fallen[0], fallen[-1] + 1
    assert 4.8 < grid[peak] < 4.9
    assert 6.85 < grid[valley] < 6.95
    assert 0.36 < risk[valley] / risk[peak] < 0.38
    # Three budgets have one average: the least of them is given.
    limit = float(0.5 * (risk[peak] + risk[valley]))
    crossings = np.flatnonzero(np.diff(np.sign(risk - limit)))
    assert crossings.size == 3
    rho = rho_for_risk(limit, prior=prior)
    assert grid[crossings[0]] <= rho <= grid[crossings[0] + 1]


@pytest.mark.parametrize("prior", [0.5, 0.1, 0.01])
def test_the_average_rises_throughout_for_larger_priors(prior):
    rho = np.concatenate([np.geomspace(1e-6, 0.05, 300), np.linspace(0.05, 30, 30_000)])
    risk = marginal_risk(rho=rho, prior=prior)
    assert (np.diff(risk) >= -1e-13 * risk[1:]).all()


@given(priors, shares, st.floats(0.5, 0.9999))
def test_quantiles_come_back_and_all_smaller_budgets_keep_the_limit(prior, share, level):
    limit = limit_at(prior, max(share, 0.01))
    rho = rho_for_risk(limit, prior=prior, measure="quantile", probability=level)

    def quantile(budget):
        release = 1 + DiscreteGaussian(0.5 / budget).ppf(level)
        return risk_ratio(release, rho=budget, prior=prior)

    assert quantile(rho) == pytest.approx(limit, rel=1e-12)
    assert quantile(all_below(rho, 2001)[:-1]).max() <= limit * (1 + 1e-12)
    assert quantile(rho * (1 + 1e-9)) > limit


@pytest.mark.parametrize("levels", [2, 6])
def test_several_levels(levels):
    for limit in (1.2, 3.0, 9.5):
        rho = rho_for_risk(limit, prior=0.1, levels=levels)
        found = multilevel_marginal_posterior(noise=Noise(rho=[rho] * levels), prior=0.1).ratio
        assert found == pytest.approx(limit, rel=2e-11)
        below = np.linspace(0, rho, 60)[1:, None] * np.ones(levels)
        risks = multilevel_marginal_posterior(noise=Noise(rho=below), prior=0.1).ratio
        assert risks.max() <= limit * (1 + 1e-13)
        rho = rho_for_risk(limit, prior=0.1, levels=levels, measure="quantile", probability=0.9)
        for budget in (rho, *np.linspace(0.3, 1, 7, endpoint=False) * rho):
            law = risk_distribution(noise=Noise(rho=[budget] * levels), prior=0.1, left_out=1e-12)
            # Ties of the law are wider than the rounding of its quantile.
            assert law.quantile(0.9) <= limit * (1 + 1e-9)
        assert law.prior == 0.1
    # Levels of small budgets add up to one count of their sum.
    one, six = (rho_for_risk(1.1, prior=0.01, levels=m) for m in (1, 6))
    assert 6 * six == pytest.approx(one, rel=1e-9)


def test_sensitivity_changes_the_cost_and_not_the_noise():
    for more in ({}, {"measure": "quantile", "probability": 0.95}):
        once = rho_for_risk(1.5, prior=0.1, **more)
        assert rho_for_risk(1.5, prior=0.1, sensitivity=2**0.5, **more) == pytest.approx(
            2 * once, rel=1e-15
        )
    twice = rho_for_risk(1.5, prior=0.1, sensitivity=2**0.5)
    risk = marginal_risk(rho=twice, prior=0.1, sensitivity=2**0.5)
    assert risk == pytest.approx(1.5, rel=2e-11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"limit": 10.0}, "limit must be below 1 / prior = 10"),
        ({"measure": "median"}, "measure"),
        ({"probability": 0.9}, "belongs with the quantile, got 0.9"),
        ({"measure": "quantile"}, "needs a probability"),
        ({"measure": "quantile", "probability": 0.4}, "probability must be >= 0.5, got 0.4"),
        ({"measure": "quantile", "probability": 0.9, "limit": 1 + 1e-9}, "further above 1"),
        ({"levels": 0}, "levels must be >= 1, got 0"),
        ({"sensitivity": 0.0}, "sensitivity"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        rho_for_risk(**({"limit": 1.5, "prior": 0.1} | arguments))

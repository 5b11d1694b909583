"""The law of the risk ratio against lists of all releases, draws, and what it must satisfy."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from mpmath import mp, mpf
from oracles import laws as oracles
from refusals import refuses

from bayesrisk import DiscreteGaussian, Noise, marginal_risk, risk_ratio
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.inference import multilevel_posterior
from bayesrisk.risk import multilevel_marginal_posterior, risk_distribution
from bayesrisk.risk.count.distribution import ratio_evidence

CENSUS = [0.0509378, 0.0504878, 0.0513777, 0.0504162, 0.2464845, 0.0992264]
SIZES = [[0.0992264], [2.5], [0.3, 0.3], [0.0992264, 0.2464845], [0.4, 1.1, 0.4]]
rhos = st.lists(st.floats(-1, 1).map(lambda t: 10.0**t), min_size=1, max_size=2)
priors = st.floats(1e-4, 0.9)


def between(law, count=25):
    """Return limits halfway between neighbouring values of a list, spread over its mass."""
    ratios = np.array([r for r, _ in law])
    gaps = np.flatnonzero(np.diff(ratios) > 1e-7 * ratios[:-1])
    chosen = gaps[np.unique(np.linspace(0, gaps.size - 1, count).astype(int))]
    return 0.5 * (ratios[chosen] + ratios[chosen + 1])


@pytest.mark.parametrize("rho", SIZES)
@pytest.mark.parametrize("prior", [0.5, 1 / 10, 1 / 864])
@pytest.mark.parametrize("given", ["target", "other"])
def test_tails_quantiles_and_mean_against_a_list_of_all_releases(rho, prior, given):
    law = risk_distribution(noise=Noise(rho=rho), prior=prior, given=given)
    listed = oracles.ratio_law(rho, prior, there=given == "target")
    ratios, weights = np.array(listed).T
    # Left out: 1e-15 by the law, as much for each level by the list; the rest is rounding.
    slack = 1e-15 * (len(rho) + 2) + 1e-13
    for limit in between(listed):
        above = math.fsum(weights[ratios > limit])
        assert law.exceeds(limit) == pytest.approx(above, abs=slack)
        assert law.cdf(limit) == pytest.approx(1.0 - above, abs=slack)
    for level in (0.01, 0.25, 0.5, 0.9, 0.99):
        at = np.searchsorted(np.cumsum(weights), level)
        assert law.quantile(level) == pytest.approx(ratios[at], rel=1e-9)
    mean = math.fsum(ratios * weights)
    assert law.mean == pytest.approx(mean, rel=1e-12, abs=slack / prior)


@pytest.mark.parametrize("rho", [1e-8, 0.0992264, 0.5, 6.0, 40.0])
@pytest.mark.parametrize("prior", [1e-12, 0.5, 1 - 1e-6, 1 - 1e-12])
def test_the_mean_without_the_target_at_the_ends(rho, prior):
    law = risk_distribution(noise=Noise(rho=rho), prior=prior, given="other", left_out=1e-3)
    exact = float(oracles.marginal_risk(rho, prior, truth=0))
    assert law.mean == pytest.approx(exact, rel=1e-13, abs=0.0)
    both = risk_distribution(
        noise=Noise(rho=[rho, 0.3]), prior=prior, given="other", left_out=1e-3
    ).mean
    ratio = multilevel_marginal_posterior(noise=Noise(rho=[rho, 0.3]), prior=prior).ratio
    assert prior * ratio + (1 - prior) * both == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("prior", [1e-9, 0.5, 1 - 1e-12])
@pytest.mark.parametrize("share", [1e-13, 1e-6, 0.5, 1 - 1e-9])
def test_the_evidence_of_a_ratio_against_many_digits(prior, share):
    with mp.workdps(40):
        for ratio in (1.0 - share, 1.0 + share * (1 - prior) / prior):
            p, r = mpf(prior), mpf(ratio)
            exact = mp.log((1 - p) / (1 / r - p))
            found = float(ratio_evidence(np.array(ratio), prior))
            # A ratio next to 1 / p is itself rounded by as much as what is left.
            slack = 1e-13 + 2**-52 / (1 - p * r)
            assert abs(found - exact) <= slack * abs(exact)


def test_one_count_has_the_mean_of_marginal_risk_and_the_values_of_risk_ratio():
    law = risk_distribution(noise=Noise(rho=0.0992264), prior=1 / 10)
    assert law.mean == pytest.approx(marginal_risk(rho=0.0992264, prior=1 / 10), rel=1e-14)
    noise = DiscreteGaussian.from_rho(0.0992264)
    for release in (-3, 0, 1, 4, 9):
        ratio = risk_ratio(release, rho=0.0992264, prior=1 / 10)
        # The ratio of a release is not above itself: it is a value of the law, and a tie.
        assert law.exceeds(ratio) == pytest.approx(noise.sf(release - 1), rel=1e-12)
        assert law.cdf(ratio) == pytest.approx(noise.cdf(release - 1), rel=1e-12)
        middle = law.cdf(ratio) - 0.5 * noise.pmf(release - 1)
        assert law.quantile(middle) == pytest.approx(ratio, rel=1e-12)


def test_six_levels_against_drawn_releases():
    law = risk_distribution(noise=Noise(rho=CENSUS), prior=1 / 10)
    together = multilevel_marginal_posterior(noise=Noise(rho=CENSUS), prior=1 / 10)
    assert law.mean == pytest.approx(together.ratio, rel=1e-14)
    draws, rng = 40_000, np.random.default_rng(11)
    noise = np.stack([DiscreteGaussian.from_rho(r).rvs(draws, rng) for r in CENSUS], axis=-1)
    ratio = multilevel_posterior(1 + noise, noise=Noise(rho=CENSUS), prior=1 / 10).ratio
    for limit in (0.5, 1.0, 1.5, 3.0, 6.0):
        chance = law.exceeds(limit)
        # Six standard errors: a false alarm has probability 2e-9.
        error = math.sqrt(chance * (1.0 - chance) / draws)
        assert abs((ratio > limit).mean() - chance) < 6 * error
    for level in (0.1, 0.5, 0.9):
        found = law.quantile(level)
        reach = 6 * math.sqrt(level * (1 - level) / draws)
        assert (ratio <= found * (1 + 1e-9)).mean() > level - reach
        assert (ratio < found * (1 - 1e-9)).mean() < level + reach


@given(rhos, priors)
def test_over_the_prior_the_ratio_is_one_on_average(rho, prior):
    noise = Noise(rho=rho)
    both = risk_distribution(noise=noise, prior=prior, given="prior")
    there = risk_distribution(noise=noise, prior=prior)
    other = risk_distribution(noise=noise, prior=prior, given="other")
    assert both.mean == 1.0
    limits = np.array([0.3, 0.9, 1.7])
    mixed = prior * there.exceeds(limits) + (1 - prior) * other.exceeds(limits)
    np.testing.assert_allclose(both.exceeds(limits), mixed, rtol=1e-12, atol=1e-15)
    # By Bayes' rule itself: with the target releases are r times as probable as on the whole.
    assert prior * there.mean + (1 - prior) * other.mean == pytest.approx(1.0, rel=1e-12)
    assert (there.exceeds(limits) >= other.exceeds(limits) - 1e-13).all()


@pytest.mark.parametrize("rho", [4.0, 8.0, 10.0, 12.0])
@pytest.mark.parametrize("prior", [0.5, 0.1, 1 / 864])
def test_quantiles_next_to_the_largest_ratio_are_reached(rho, prior):
    law = risk_distribution(noise=Noise(rho=[rho, rho]), prior=prior)
    levels = np.linspace(0.01, 0.99, 99)
    ratios = law.quantile(levels)
    assert (law.cdf(ratios) >= levels - 1e-13).all()
    assert (ratios <= 1.0 / prior).all()


def test_ends():
    law = risk_distribution(noise=Noise(rho=0.5), prior=0.25)
    assert law.exceeds([0.0, 4.0, 1e300]).tolist() == [1.0, 0.0, 0.0]
    assert law.cdf([0.0, 4.0]).tolist() == [0.0, 1.0]
    certain = risk_distribution(noise=Noise(rho=300.0), prior=0.25)
    assert certain.quantile(0.5) == 4.0
    assert certain.mean == 4.0


def test_it_prints_draws_and_tabulates():
    law = risk_distribution(noise=Noise(rho=0.1), prior=0.1)
    assert "never above 10" in repr(law)
    assert "90 % between" in repr(law)
    frame = law.to_frame()
    assert frame.columns.tolist() == ["risk_ratio", "exceeds"]
    np.testing.assert_array_equal(frame["exceeds"], law.exceeds(frame["risk_ratio"]))
    axes = law.plot()
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), frame["exceeds"])
    assert any(list(line.get_xdata()) == [law.mean] * 2 for line in axes.lines)


def test_arguments_are_checked():
    noise = Noise(rho=0.1)
    assert refuses(
        lambda bad: risk_distribution(noise=noise, prior=0.1, given=bad), "given", "truth"
    )
    assert refuses(
        lambda bad: risk_distribution(noise=noise, prior=0.1, left_out=bad), "left_out", 0.01
    )
    assert refuses(lambda bad: risk_distribution(noise=bad, prior=0.1), "noise", 0.1)
    law = risk_distribution(noise=noise, prior=0.1)
    assert refuses(law.exceeds, "ratio", -1.0)
    assert refuses(law.quantile, "probability", 1.0)
    with pytest.raises(ShapeError, match="noise must be one number or a list"):
        risk_distribution(noise=Noise(rho=[[0.1]]), prior=0.1)
    for rho in (1e-20, np.linspace(0.001, 0.002, 8)):
        with pytest.raises(ArgumentError, match=r"at most 4194304 values .* larger left_out"):
            risk_distribution(noise=Noise(rho=rho), prior=0.1)

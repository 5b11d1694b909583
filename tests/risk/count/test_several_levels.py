"""Averages over several levels against nested sums, the simple case, and the Gaussian limit."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import laws as oracles
from refusals import NOT_PRIORS, refuses
from scipy.stats import norm

from bayesrisk import DiscreteGaussian, Noise, decision_accuracy, marginal_risk
from bayesrisk.exceptions import ShapeError
from bayesrisk.inference import multilevel_posterior
from bayesrisk.risk import multilevel_decision_accuracy, multilevel_marginal_posterior
from bayesrisk.risk.count.evidence import levels_law

EPS = 2**-52
rhos = st.lists(st.floats(-4, 1.5).map(lambda t: 10.0**t), min_size=1, max_size=6)
priors = st.one_of(st.floats(1e-9, 1 - 1e-9), st.floats(-300, -1).map(lambda t: 10.0**t))


def bound(rho):
    """Return the documented relative error."""
    return (4 + 3 * sum(rho)) * EPS


def ratio(rho, prior):
    return multilevel_marginal_posterior(noise=Noise(rho=rho), prior=prior).ratio


def test_two_levels_against_nested_sums():
    rng = np.random.default_rng(1)
    for _ in range(20):
        rho = (10 ** rng.uniform(-1, 1.3, 2)).tolist()
        prior = float(10 ** rng.uniform(-6, -0.01))
        truth = oracles.multilevel_marginal_risk(rho, prior)
        assert oracles.relative_error(ratio(rho, prior), truth) <= bound(rho), (rho, prior)


@pytest.mark.parametrize(
    "rho", [[0.3, 0.5, 0.9], [0.2, 0.2, 4.0], [0.05, 1.0, 12.0], [890.0, 0.5], [450.0, 440.0]]
)
@pytest.mark.parametrize("prior", [1e-300, 1 / 864, 0.5])
def test_three_levels_and_large_budgets_against_nested_sums(rho, prior):
    truth = oracles.multilevel_marginal_risk(rho, prior)
    assert oracles.relative_error(ratio(rho, prior), truth) <= bound(rho)


@given(st.floats(-4, 2).map(lambda t: 10.0**t), priors)
def test_one_level_is_the_simple_case(rho, prior):
    slack = bound([rho]) + (16 + 3 * min(rho, -math.log(prior))) * EPS
    assert ratio([rho], prior) == pytest.approx(
        marginal_risk(rho=rho, prior=prior), rel=slack, abs=0
    )


@given(st.floats(-4, -0.8).map(lambda t: 10.0**t), st.integers(1, 8), priors)
def test_small_budgets_compose(rho, levels, prior):
    # Below rho = 0.18 levels are Gaussian for this purpose, so that only their sum matters.
    together = marginal_risk(rho=rho, prior=prior)
    slack = bound([rho]) + (16 + 3 * min(rho, -math.log(prior))) * EPS
    assert ratio([rho / levels] * levels, prior) == pytest.approx(together, rel=slack, abs=0)


@given(rhos, priors)
def test_order_bounds_and_monotonicity(rho, prior):
    risk, slack = ratio(rho, prior), 2 * bound(rho)
    assert ratio(rho[::-1], prior) == pytest.approx(risk, rel=slack, abs=0)
    assert 1 - slack <= risk <= (1 + slack) / prior
    assert risk <= math.exp(min(2 * sum(rho), 700)) * (1 + slack)
    assert ratio([*rho, 0.1], prior) >= risk * (1 - slack)
    posterior = multilevel_marginal_posterior(noise=Noise(rho=rho), prior=prior).posterior
    assert posterior == pytest.approx(min(prior * risk, 1.0), rel=EPS, abs=0)


def test_limits():
    tiny = ratio([1e-300] * 3, [1e-300, 0.5, 1 - 2**-53])
    assert tiny == pytest.approx(1.0, rel=4 * EPS, abs=0)
    # Documented: no error from a total of 900 on, where the adversary is certain.
    assert ratio([500.0, 500.0], 0.25) == 4.0
    assert ratio([1e6, 0.1], [1e-300, 0.25]).tolist() == [1 / 1e-300, 4.0]
    assert multilevel_marginal_posterior(noise=Noise(rho=[1e6, 0.1]), prior=0.3).posterior == 1.0


def test_many_equal_levels():
    rho = [0.3] * 60
    rng = np.random.default_rng(3)
    noise = DiscreteGaussian.from_rho(0.3).rvs((20_000, 60), rng) + 1
    draws = multilevel_posterior(noise, noise=Noise(rho=0.3), prior=1e-3).ratio
    error = 5 * draws.std() / math.sqrt(draws.size)
    assert ratio(rho, 1e-3) == pytest.approx(draws.mean(), abs=error)


def test_the_levels_are_averaged_jointly():
    # Negative control: neither the product of the marginals nor half a budget is the answer.
    rho, prior = [0.4, 0.6], 0.2
    truth = oracles.multilevel_marginal_risk(rho, prior)
    product = math.prod(marginal_risk(rho=r, prior=prior) for r in rho)
    assert oracles.relative_error(product, truth) > 0.05
    assert oracles.relative_error(ratio([r / 2 for r in rho], prior), truth) > 0.05


def test_broadcasting_equals_a_loop():
    rho, prior = np.array([[[0.1, 0.3]], [[2.0, 0.3]]]), np.array([1e-3, 0.2, 0.9])
    table = ratio(rho, prior)
    assert table.shape == (2, 3)
    for i, j in itertools.product(range(2), range(3)):
        assert table[i, j] == ratio(rho[i, 0], prior[j])
    assert isinstance(ratio([0.1, 0.2], 0.1), float)
    scales = multilevel_marginal_posterior(noise=DiscreteGaussian([5.0, 1.0]), prior=0.1).ratio
    assert scales == pytest.approx(ratio([0.1, 0.5], 0.1), rel=1e-14, abs=0)
    doubled = multilevel_marginal_posterior(
        noise=Noise(rho=[0.2, 1.0], sensitivity=2**0.5), prior=0.1
    ).ratio
    assert doubled == pytest.approx(scales, rel=1e-14, abs=0)


def test_bad_arguments():
    function = multilevel_marginal_posterior
    for bad in NOT_PRIORS:
        assert refuses(lambda v: function(noise=Noise(rho=[0.1]), prior=v), "prior", bad)
    with pytest.raises(ShapeError, match="axis of levels"):
        function(noise=Noise(rho=0.1), prior=0.5)
    with pytest.raises(ShapeError, match="do not broadcast"):
        function(prior=[0.1, 0.2], noise=Noise(rho=[[0.1], [0.2], [0.3]]))


@pytest.mark.parametrize("rho", [[0.0992264, 0.2464845], [0.3, 0.3, 0.8], [1.5]])
@pytest.mark.parametrize("prior", [0.5, 0.3, 1 / 10])
def test_decisions_against_a_list_of_all_releases(rho, prior):
    result = multilevel_decision_accuracy(noise=Noise(rho=rho), prior=prior)
    halves = []
    for there in (True, False):
        listed = np.array(oracles.ratio_law(rho, prior, there=there))
        posterior, weights = prior * listed[:, 0], listed[:, 1]
        tie = np.abs(posterior - 0.5) < 1e-12
        yes = weights[(posterior > 0.5) & ~tie].sum() + 0.5 * weights[tie].sum()
        halves.append(yes if there else 1.0 - yes)
    found, cleared = halves
    assert result.found == pytest.approx(found, abs=1e-12)
    assert result.cleared == pytest.approx(cleared, abs=1e-12)
    assert result.accuracy == pytest.approx(prior * found + (1 - prior) * cleared, abs=1e-12)
    assert result.baseline == max(prior, 1 - prior)


def test_one_level_decides_as_one_count():
    rho, prior = np.array([[0.05], [0.7], [3.0]]), np.array([0.5, 0.2, 0.01])
    many = multilevel_decision_accuracy(noise=Noise(rho=rho[..., None]), prior=prior)
    one = decision_accuracy(rho=rho, prior=prior)
    for name in ("prior", "accuracy", "baseline", "found", "cleared"):
        np.testing.assert_allclose(getattr(many, name), getattr(one, name), rtol=0, atol=1e-12)


def test_equal_levels_tie_at_one_half_and_a_coin_decides():
    result = multilevel_decision_accuracy(noise=Noise(rho=[0.4, 0.4]), prior=0.5)
    # By symmetry the two halves agree, and the decision is right more often than a coin.
    assert result.found == pytest.approx(float(result.cleared), rel=1e-13)
    listed = np.array(oracles.ratio_law([0.4, 0.4], 0.5))
    tie = listed[np.abs(listed[:, 0] - 1.0) < 1e-12, 1].sum()
    assert tie > 0.1
    above = listed[listed[:, 0] > 1.0 + 1e-12, 1].sum()
    assert result.found == pytest.approx(above + 0.5 * tie, abs=1e-12)


@pytest.mark.parametrize("variance", [3.9, 4.0, 25.0])
@pytest.mark.parametrize("levels", [2, 6])
def test_equal_levels_add_up_to_the_sum_of_their_noise(variance, levels):
    rho = 0.5 / variance
    law = levels_law(np.full(levels, rho), present=True, left_out=1e-15)
    total = np.rint(0.5 * (law.first / rho - levels)).astype(int)
    pmf = np.array(oracles.gaussian_sum_pmf(variance, levels, 12), dtype=float)
    near = np.abs(total) <= 12
    assert near.sum() == 25
    np.testing.assert_allclose(law.weights[near], pmf[np.abs(total[near])], rtol=4e-14)
    assert law.weights.sum() == pytest.approx(1.0, abs=2e-15)


def test_many_levels_of_tiny_budgets_need_no_more_values_than_their_sum():
    """Six levels of variance 500,000 are one of six times that: 16 standard deviations of it."""
    law = levels_law(np.full(6, 1e-6), present=False, left_out=1e-15)
    deviation = np.sqrt(6 * 5e5)
    assert law.first.size < 17 * deviation
    total = np.array([-5200, 0, 3500])
    found = [law.reached(2e-6 * t - 6e-6, present=True) for t in total]
    np.testing.assert_allclose(found, norm.sf(total / deviation), rtol=1e-6)


@given(st.lists(st.floats(-2, 0.7).map(lambda t: 10.0**t), min_size=1, max_size=3), priors)
def test_another_level_never_spoils_the_accuracy(rho, prior):
    one = multilevel_decision_accuracy(noise=Noise(rho=rho), prior=prior)
    more = multilevel_decision_accuracy(noise=Noise(rho=[*rho, 0.2]), prior=prior)
    assert one.baseline - 1e-12 <= one.accuracy <= more.accuracy + 2e-12


def test_levels_at_the_edge_of_smoothness():
    for rho in ([0.1799, 0.1799], [0.1801, 0.1801], [0.1799, 0.1801]):
        truth = oracles.multilevel_marginal_risk(rho, 0.1)
        assert oracles.relative_error(
            multilevel_marginal_posterior(noise=Noise(rho=rho), prior=0.1).ratio, truth
        ) <= bound(rho)

"""Epsilon from risks: below every promise, and the exact profile where it is attained."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import laws as oracles
from refusals import refuses

from bayesrisk import (
    ArgumentError,
    Belief,
    DiscreteLaplace,
    Noise,
    accounting,
    count_posterior,
    decision_accuracy,
    posterior_probability,
    rho_to_epsilon,
)
from bayesrisk.exceptions import ShapeError
from bayesrisk.risk import attainable_epsilon, decision_epsilon, implied_epsilon

CENSUS = [0.0509378, 0.0504878, 0.0513777, 0.0504162, 0.2464845, 0.0992264]


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("prior", [0.5, 0.1, 1e-6])
def test_pure_privacy_is_found_from_any_prior(scale, prior):
    # A discrete Laplace law of scale b has epsilon 1 / b exactly, at every release but one side.
    law = DiscreteLaplace(scale)
    posterior = count_posterior(np.arange(-20, 20), noise=law, prior_pmf=[1 - prior, prior])[:, 1]
    found = implied_epsilon(Belief(prior, posterior))
    assert found == pytest.approx(1.0 / scale, rel=1e-9)


@given(st.floats(-3, 0.5).map(lambda t: 10.0**t), st.integers(-12, 12), st.floats(0.01, 0.99))
def test_one_release_gives_its_bayes_factor(rho, release, prior):
    posterior = posterior_probability(release, rho=rho, prior=prior)
    expected = abs(rho * (2 * release - 1))
    # The posterior was rounded, and near 1 its odds have fewer digits left.
    lost = 16 * (1 + expected) * 2**-52 * (1 + 1 / (1 - posterior)) if posterior < 1 else math.inf
    assert implied_epsilon(Belief(prior, posterior)) == pytest.approx(expected, abs=lost)


def test_certainty_has_no_epsilon():
    assert implied_epsilon(Belief([0.1, 0.5], [0.2, 1.0])) == math.inf
    assert implied_epsilon(Belief(0.3, 0.0)) == math.inf
    assert implied_epsilon(Belief(0.3, 0.3)) == 0.0


@pytest.mark.parametrize("rho", [0.01, 0.0992264, 0.5, 3.0, 50.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
def test_the_exact_profile_is_attained(rho, delta):
    exact = accounting.discrete_gaussian_epsilon(delta, sigma2=0.5 / rho)
    found = attainable_epsilon(noise=Noise(rho=rho), delta=delta)
    assert found <= exact * (1 + 1e-13)
    # Below it by what was left out: a millionth of delta, and rounding of the sums.
    reached = accounting.discrete_gaussian_delta(found, sigma2=0.5 / rho)
    assert reached == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize("rho", [[0.3, 0.8], [0.5, 0.5], [0.2, 0.2, 1.0]])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_several_levels_against_every_test_there_is(rho, delta):
    found = attainable_epsilon(noise=Noise(rho=rho), delta=delta)
    reaches = [int(math.sqrt(40 / r)) + 2 for r in rho]
    spans = [range(-n, n + 1) for n in reaches]
    weights = [{j: math.exp(-r * j * j) for j in s} for r, s in zip(rho, spans, strict=True)]
    z = math.prod(math.fsum(w.values()) for w in weights)
    excess = math.fsum(
        max(
            1.0 - math.exp(found - math.fsum(r * (2 * j + 1) for r, j in zip(rho, e, strict=True))),
            0,
        )
        * math.prod(w[j] for w, j in zip(weights, e, strict=True))
        / z
        for e in itertools.product(*spans)
    )
    assert excess == pytest.approx(delta, rel=1e-5)
    assert found <= rho_to_epsilon(sum(rho), delta)


@given(
    st.floats(-2, 0.7).map(lambda t: 10.0**t),
    st.floats(0.01, 0.99),
    st.sampled_from([0.0, 1e-6, 1e-2]),
)
def test_decisions_never_imply_more_than_the_exact_epsilon(rho, prior, delta):
    rates = decision_accuracy(rho=rho, prior=prior)
    found = decision_epsilon(found=rates.found, cleared=rates.cleared, delta=delta)
    # found and cleared are within 4e-13; where the rarer outcome is rarer still, so is its ratio.
    if delta:
        exact = accounting.discrete_gaussian_epsilon(delta, sigma2=0.5 / rho)
        assert found <= exact + 4e-13 / delta


def test_decisions_by_hand():
    assert decision_epsilon(found=0.6, cleared=0.7) == pytest.approx(math.log(2))
    assert decision_epsilon(found=0.6, cleared=0.7, delta=0.1) == pytest.approx(math.log(5 / 3))
    assert decision_epsilon(found=0.5, cleared=0.5) == 0.0
    assert decision_epsilon(found=0.5, cleared=1.0) == math.inf
    assert decision_epsilon(found=0.05, cleared=1.0, delta=0.1) == 0.0
    assert decision_epsilon(found=[0.2, 0.9], cleared=0.2).tolist() == pytest.approx(
        [math.log(4), math.log(2)]
    )
    # Rates that hardly differ: the logarithm of their quotient, not a difference of logarithms.
    nearly = 0.5 + 1e-12
    assert decision_epsilon(found=nearly, cleared=0.5) == pytest.approx(2e-12, rel=1e-3)
    assert decision_epsilon(found=nearly, cleared=0.5) == pytest.approx(
        -math.log1p(-(nearly - 0.5) / 0.5), rel=1e-12
    )
    # Of one count: the oracle's own rates.
    found = float(oracles.correct_decision_probability(0.5, 0.4))
    rates = decision_accuracy(rho=0.5, prior=0.4)
    assert decision_epsilon(found=rates.found, cleared=rates.cleared) >= math.log(
        found / (1 - float(rates.cleared))
    ) * (1 - 1e-12)


def test_arguments_are_checked():
    assert refuses(implied_epsilon, "belief", 0.5)
    with pytest.raises(ArgumentError, match="prior must be > 0"):
        implied_epsilon(Belief(0.0, 0.5))
    assert refuses(lambda bad: decision_epsilon(found=bad, cleared=0.5), "found", 1.5)
    assert refuses(lambda bad: decision_epsilon(found=0.5, cleared=bad), "cleared", -0.5)
    assert refuses(lambda bad: decision_epsilon(found=0.5, cleared=0.5, delta=bad), "delta", 1.0)
    assert refuses(lambda bad: attainable_epsilon(noise=Noise(rho=0.1), delta=bad), "delta", 1e-13)
    assert refuses(lambda bad: attainable_epsilon(noise=bad, delta=1e-6), "noise", 0.1)
    with pytest.raises(ArgumentError, match="<= 1000, got 2000"):
        attainable_epsilon(noise=Noise(rho=2000.0), delta=1e-6)
    with pytest.raises(ShapeError, match="list of levels"):
        attainable_epsilon(noise=Noise(rho=[[0.1]]), delta=1e-6)


def test_no_promise_is_below():
    together = attainable_epsilon(noise=Noise(rho=CENSUS), delta=1e-6)
    assert 0.9 * rho_to_epsilon(sum(CENSUS), 1e-6) < together < rho_to_epsilon(sum(CENSUS), 1e-6)
    assert attainable_epsilon(noise=Noise(rho=0.001), delta=0.5) == 0.0

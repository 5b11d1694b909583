"""Decisions: the threshold is where the posterior reaches one half, and nowhere else."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from mpmath import mp, mpf
from oracles import laws as oracles
from scipy import special

from bayesrisk import ArgumentError, bayes_decision, posterior_probability
from bayesrisk.inference import decision_threshold

rhos = st.floats(-6, 2).map(lambda t: 10.0**t)
priors = st.one_of(st.floats(1e-9, 1 - 1e-9), st.floats(-300, -1).map(lambda t: 10.0**t))


def crossing(rho, prior):
    """Return the real y - k at which the posterior is one half."""
    with mp.workdps(60):
        p = oracles.exact(prior)
        return mpf("0.5") + mp.log((1 - p) / p) / (2 * oracles.exact(rho))


@given(rhos, priors, st.integers(0, 10**6))
def test_threshold_against_its_formula(rho, prior, k):
    exact = crossing(rho, prior)
    # Documented: exact unless the posterior at a whole number is 1/2 within rounding.
    if abs(exact - mp.nint(exact)) > 1e-14 * (1 + abs(exact)):
        expected = k + int(mp.ceil(exact))
        assert decision_threshold(rho=rho, prior=prior, known_count=k) == expected


@given(rhos, st.floats(0.001, 0.999), st.integers(0, 100))
def test_threshold_is_where_the_posterior_reaches_one_half(rho, prior, k):
    settings = {"rho": rho, "prior": prior, "known_count": k}
    t = decision_threshold(**settings)
    slack = 1e-12 * (1 + rho * abs(t))
    assert posterior_probability(t, **settings) >= 0.5 - slack
    assert posterior_probability(t - 1, **settings) < 0.5 + slack
    assert bayes_decision([t - 1, t], **settings).tolist() == [k, k + 1]


def test_near_a_tie_the_threshold_is_exact_unless_both_of_its_roundings_are_ties():
    rng, ties, exactly = np.random.default_rng(41), 0, 0
    for _ in range(4000):
        prior, step = rng.uniform(1e-6, 0.5), int(rng.integers(1, 10**6))
        log_odds = float(special.logit(prior))
        rho = -log_odds / (2 * step - 1)
        found = decision_threshold(rho=rho, prior=prior)
        exact = math.ceil(Fraction(1, 2) - Fraction(log_odds) / (2 * Fraction(rho)))
        ties += found != exact
        exactly += found == exact
        if found != exact:
            assert found == exact - 1
            assert log_odds / (2 * rho) == 0.5 - found
            assert log_odds + rho * (2 * found - 1) == 0
    assert min(ties, exactly) > 500


@pytest.mark.parametrize("prior", [0.1, 0.25, 0.4])
def test_a_tie_goes_to_the_target(prior):
    # With rho = -logit(p) the posterior at y = 1 is one half, to the last bit of the logit.
    rho = -float(special.logit(prior))
    assert decision_threshold(rho=rho, prior=prior) == 1
    assert bayes_decision([0, 1], rho=rho, prior=prior).tolist() == [0, 1]


def test_broadcasting_and_kinds():
    table = decision_threshold(rho=[[0.1], [1.0]], prior=[0.1, 0.5, 0.9], known_count=4)
    loop = [
        [decision_threshold(rho=r, prior=p, known_count=4) for p in (0.1, 0.5, 0.9)]
        for r in (0.1, 1.0)
    ]
    assert table.tolist() == loop
    assert table.dtype == np.int64
    assert np.ndim(decision_threshold(rho=0.1, prior=0.1)) == 0
    guess = bayes_decision([[0], [9]], rho=0.1, prior=[0.1, 0.5, 0.9], known_count=4)
    assert guess.shape == (2, 3)
    assert set(guess.ravel().tolist()) <= {4, 5}
    assert bayes_decision(3, sigma2=5.0, prior=0.5) == bayes_decision(3, rho=0.1, prior=0.5)
    assert decision_threshold(rho=0.1, sensitivity=2**0.5, prior=0.01) == decision_threshold(
        sigma2=10.0, prior=0.01
    )


def test_thresholds_that_do_not_fit():
    with pytest.raises(ArgumentError, match="threshold must fit in 62 bits, got 6"):
        decision_threshold(rho=1e-300, prior=0.2)
    # The decision itself is still defined: no release that exists reaches the threshold.
    assert bayes_decision([-(2**52), 2**52], rho=1e-300, prior=0.2).tolist() == [0, 0]

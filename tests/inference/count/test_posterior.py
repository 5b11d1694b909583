"""Posteriors against Bayes' theorem in 60 digits, their properties, and bad input."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from mpmath import mp
from oracles import laws as oracles

from bayesrisk import (
    ArgumentError,
    DiscreteGaussian,
    DiscreteLaplace,
    FiniteLaw,
    Noise,
    count_posterior,
    posterior_probability,
    risk_ratio,
)
from bayesrisk.inference import multilevel_posterior

EPS = 2**-52
rhos = st.floats(-4, 1).map(lambda t: 10.0**t)
priors = st.one_of(st.floats(1e-12, 1 - 1e-12), st.floats(-300, -1).map(lambda t: 10.0**t))
counts = st.integers(-1000, 1000)


def bound(y, rho, known_count=0):
    """Return the documented relative error of a risk ratio."""
    return (4 + 3 * abs(rho * (2 * (y - known_count) - 1))) * EPS


def check(y, rho, prior, known_count=0):
    """Assert that both functions are within their bound of Bayes' theorem."""
    truth = oracles.posterior(y, rho, prior, known_count)
    settings = {"rho": rho, "prior": prior, "known_count": known_count}
    for function, expected in (
        (posterior_probability, truth),
        (risk_ratio, truth / oracles.exact(prior)),
    ):
        value = function(y, **settings)
        if expected < 2.0**-1022:
            assert abs(float(value) - expected) <= 1.001 * 2.0**-1074
        else:
            assert oracles.relative_error(value, expected) <= bound(y, rho, known_count), (
                function.__name__,
                y,
                settings,
            )


def test_against_bayes_theorem():
    rng = np.random.default_rng(1)
    for _ in range(150):
        rho = float(10 ** rng.uniform(-4, 1))
        k = int(rng.integers(0, 500))
        y = k + int(rng.normal(0, 3 / math.sqrt(rho)))
        check(y, rho, float(rng.uniform(1e-6, 1)), k)


@pytest.mark.parametrize("rho", [1e-12, 1e-3, 0.0992264, 1.0, 50.0, 1e6])
@pytest.mark.parametrize("prior", [1e-300, 1e-9, 0.5, 1 - 1e-9, 1 - 2**-53])
def test_extremes(rho, prior):
    for y in (-(10**9), -7, 0, 1, 2, 12, 10**9):
        check(y, rho, prior)
    check(10**9 + 3, rho, prior, 10**9)


@pytest.mark.parametrize("y", [-87, -88, -89])
def test_where_the_exponential_is_near_its_overflow(y):
    # exp(712) is no double, though (1 - p) exp(712) would be.
    check(y, 4.0, 1 - 1e-9)


def test_a_slip_in_the_noise_is_seen():
    # Negative controls: rho halved, or the variance taken for the scale, is another posterior.
    y, rho, prior = 3, 1.0, 0.1
    right = oracles.posterior(y, rho, prior)
    assert oracles.relative_error(posterior_probability(y, rho=rho / 2, prior=prior), right) > 0.01
    scale = 0.2
    variance = float(DiscreteGaussian(scale).var())
    confused = posterior_probability(1, sigma2=variance, prior=prior)
    assert oracles.relative_error(confused, oracles.posterior(1, 0.5 / scale, prior)) > 0.01


def test_limits():
    assert risk_ratio([-9, 1, 9], rho=1e-300, prior=0.3).tolist() == [1.0, 1.0, 1.0]
    assert risk_ratio([0, 1], rho=1e5, prior=0.25).tolist() == [0.0, 4.0]
    assert posterior_probability([0, 1], rho=1e5, prior=0.25).tolist() == [0.0, 1.0]
    assert posterior_probability(5, rho=0.1, prior=1 - 2**-53) == pytest.approx(1.0)


def test_many_levels_against_bayes_theorem():
    rng = np.random.default_rng(5)
    for _ in range(40):
        levels = int(rng.integers(1, 5))
        rho, y = 10 ** rng.uniform(-2, 0.3, levels), rng.integers(-6, 7, levels)
        k, prior = rng.integers(0, 5, levels), float(rng.uniform(0.001, 0.999))
        with mp.workdps(60):
            odds = oracles.exact(prior) / (1 - oracles.exact(prior))
            for r, n, m in zip(rho, y, k, strict=True):
                s2 = 1 / (2 * oracles.exact(r))
                odds *= oracles.gaussian_pmf(n, s2, m + 1) / oracles.gaussian_pmf(n, s2, m)
            truth = odds / (1 + odds)
        value = multilevel_posterior(y, noise=Noise(rho=rho), prior=prior, known_count=k).posterior
        slack = (4 + levels + 3 * float((rho * np.abs(2 * (y - k) - 1)).sum())) * EPS
        assert oracles.relative_error(value, truth) <= slack


def test_sigma2_and_sensitivity_say_the_same():
    y = np.arange(-5, 9)
    for value in (
        risk_ratio(y, sigma2=10.0, prior=0.1),
        risk_ratio(y, rho=0.1, sensitivity=2**0.5, prior=0.1),
    ):
        assert value == pytest.approx(risk_ratio(y, rho=0.05, prior=0.1), rel=1e-14, abs=0)


def test_broadcasting_equals_a_loop():
    y, k = np.array([[-1], [4]]), np.array([0, 2, 3])
    rho, prior = np.array([[[0.1]], [[2.0]]]), np.array([0.01, 0.5, 0.9])
    table = posterior_probability(y, rho=rho, prior=prior, known_count=k)
    assert table.shape == (2, 2, 3)
    for a, i, j in np.ndindex(2, 2, 3):
        single = posterior_probability(
            int(y[i, 0]), rho=float(rho[a, 0, 0]), prior=float(prior[j]), known_count=int(k[j])
        )
        assert table[a, i, j] == pytest.approx(single, rel=2 * bound(4, 2.0), abs=0)
    levels = multilevel_posterior(
        np.ones((4, 1, 2)), noise=Noise(rho=[0.1, 0.2]), prior=[0.1, 0.2, 0.3]
    ).posterior
    assert levels.shape == (4, 3)
    assert (
        levels[2, 1]
        == multilevel_posterior([1, 1], noise=Noise(rho=[0.1, 0.2]), prior=0.2).posterior
    )


def test_long_arrays_equal_their_parts():
    # The common case runs in blocks of 8192; the seams must not show.
    y = np.random.default_rng(2).integers(-50, 50, 3 * 8192 + 5)
    whole = risk_ratio(y, rho=0.1, prior=0.1)
    assert whole.tolist() == risk_ratio(y, rho=0.1, prior=np.full(y.size, 0.1)).tolist()
    assert whole[8192] == risk_ratio(int(y[8192]), rho=0.1, prior=0.1)
    flipped = np.asfortranarray(y[:-5].reshape(-1, 64))[::-1]
    assert risk_ratio(flipped, rho=0.1, prior=0.1).shape == flipped.shape
    assert risk_ratio(flipped, rho=0.1, prior=0.1)[0, 0] == risk_ratio(
        int(flipped[0, 0]), rho=0.1, prior=0.1
    )


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        pd.Series,
        np.array,
        lambda v: np.array(v, dtype=np.int8),
        lambda v: np.array(v, float),
    ],
)
def test_kinds_of_counts(kind):
    expected = [risk_ratio(y, rho=0.1, prior=0.2) for y in (1, 2, 3)]
    assert risk_ratio(kind([1, 2, 3]), rho=0.1, prior=0.2).tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "y"),
    [
        ("uint8", 255),
        ("uint64", 10**9),
        ("int32", 2**31 - 1),
        ("float32", 2**24),
        ("float16", 2047),
    ],
)
def test_narrow_dtypes_are_widened(dtype, y):
    # One half less than a count has one bit more than the count.
    rho, prior = 1 / y, 1e-4
    value = risk_ratio(np.array([y, 1], dtype=dtype), rho=rho, prior=prior)[0]
    expected = oracles.posterior(y, rho, prior) / oracles.exact(prior)
    assert oracles.relative_error(value, expected) <= bound(y, rho)


PMFS = [[0.5, 0.5], [0.2, 0.0, 0.8], [0.1, 0.2, 0.3, 0.4]]


@pytest.mark.parametrize("pmf", PMFS)
@pytest.mark.parametrize("noise", [DiscreteGaussian(5.0), DiscreteLaplace(2.0)], ids=repr)
def test_any_prior_and_any_noise(pmf, noise):
    mass = {
        DiscreteGaussian: lambda x: oracles.gaussian_pmf(x, 5.0),
        DiscreteLaplace: lambda x: oracles.laplace_pmf(x, 2.0),
    }[type(noise)]
    for y, k in ((0, 0), (7, 2), (-30, 0), (10**4, 0)):
        joint = [oracles.exact(w) * mass(y - k - i) for i, w in enumerate(pmf)]
        posterior = count_posterior(y, noise=noise, prior_pmf=pmf, known_count=k)
        for value, weight in zip(posterior, joint, strict=True):
            truth = weight / mp.fsum(joint)
            # One rounded log-likelihood of size L costs L * 2**-52.
            slack = (8 + 3 * abs(float(mp.log(max(joint))))) * EPS
            assert truth < 1e-300 or oracles.relative_error(value, truth) < slack


def test_general_posteriors_broadcast():
    pmf = np.array([[0.5, 0.5], [0.9, 0.1]])
    table = count_posterior([[1], [2], [3]], noise=DiscreteGaussian(2.0), prior_pmf=pmf)
    assert table.shape == (3, 2, 2)
    one = count_posterior(3, noise=DiscreteGaussian(2.0), prior_pmf=pmf[1])
    assert table[2, 1].tolist() == one.tolist()


def test_noise_with_a_gap_rules_counts_out():
    rounding = FiniteLaw(-1, [0.5, 0.0, 0.5])
    assert count_posterior(3, noise=rounding, prior_pmf=[0, 0, 0.3, 0.3, 0.4]).tolist() == [
        0.0,
        0.0,
        pytest.approx(3 / 7),
        0.0,
        pytest.approx(4 / 7),
    ]
    with pytest.raises(ArgumentError, match=r"noisy_count must be possible .* got 9"):
        count_posterior(9, noise=rounding, prior_pmf=[0.5, 0.5])
    with pytest.raises(ArgumentError, match="got 9 at index 1"):
        count_posterior([1, 9], noise=rounding, prior_pmf=[0.5, 0.5])


@pytest.mark.parametrize("prior", [0.5, 1e-10, 1e-300, 0.999, 1.0 - 2.0**-53])
def test_posteriors_of_any_size_are_those_of_high_precision(prior):
    """Down to the least doubles: evidence of 700 to 760 against was 0 from 1e-297 on."""
    rho = 1.25
    counts = np.array([*range(-304, -277), *range(-3, 4), *range(278, 305)])
    ratios = risk_ratio(counts, rho=rho, prior=prior)
    posteriors = posterior_probability(counts, rho=rho, prior=prior)
    broadcast = posterior_probability(counts, rho=np.full(counts.size, rho), prior=prior)
    several = multilevel_posterior(counts[:, None], noise=Noise(rho=[rho]), prior=prior)
    assert np.array_equal(posteriors, broadcast)
    with mp.workdps(60):
        for count, ratio, posterior, level in zip(
            counts.tolist(), ratios, posteriors, several.posterior, strict=True
        ):
            evidence, p = mp.mpf(rho) * (2 * count - 1), mp.mpf(prior)
            true = 1 / (p + (1 - p) * mp.exp(-evidence))
            error = (4 + 3 * abs(evidence)) * mp.mpf(2) ** -52
            for found, exact in ((ratio, true), (posterior, p * true), (level, p * true)):
                assert abs(float(found) - exact) <= error * exact + mp.mpf(2) ** -1074

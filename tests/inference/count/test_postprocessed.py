"""Post-processed counts against enumeration of both noisy counts and 60-digit arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from mpmath import mp
from oracles import postprocessing as twin

from bayesrisk import DiscreteGaussian, Noise
from bayesrisk.distributions import convolve
from bayesrisk.inference import postprocess, postprocessed_posterior
from bayesrisk.inference.count import (
    measurements as _difference,
    postprocessed as _postprocessed_kernels,
)

MODES = ["approximate", "exact"]


# --- the closed form --------------------------------------------------------------------------


@given(st.integers(-60, 60), st.integers(-60, 60), st.integers(0, 25))
def test_the_result_is_the_nearest_feasible_pair(y, s, n):
    a = int(postprocess(y, s, group_count=n))
    distance = [(b - y) ** 2 + (n - b - s) ** 2 for b in range(n + 1)]
    best = [b for b, value in enumerate(distance) if value == min(distance)]
    # Rounding the projection is the integer problem itself: at most two solutions, the larger.
    assert a == max(best)
    assert a == twin.project(y, s, n)


def test_halves_go_up_and_the_ends_hold():
    assert postprocess([0, 1, 2, 3], 0, group_count=4).tolist() == [2, 3, 3, 4]
    assert postprocess([-1, -2], [4, 9], group_count=4).tolist() == [0, 0]
    assert postprocess(5, 5, group_count=0) == 0
    assert postprocess(2**51, -(2**51), group_count=7) == 7
    assert postprocess([[1], [2]], [0, 1, 5], group_count=3).shape == (2, 3)


# --- the posterior ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_posterior_against_enumeration(mode):
    rng = np.random.default_rng(5)
    for _ in range(30):
        n, m = int(rng.integers(1, 13)), int(rng.integers(1, 9))
        k, rho = int(rng.integers(n)), float(10 ** rng.uniform(-1.5, 0.6))
        p = float(rng.uniform(0.01, 0.99))
        truth, _ = twin.after(rho, m, n, k, p, mode == "exact")
        mass = twin.likelihoods(rho, m, n, k, mode == "exact").min(axis=0)
        value = postprocessed_posterior(
            np.arange(n + 1), group_count=n, n_siblings=m, noise=Noise(rho=rho), prior=p,
            known_count=k, sibling_noise=mode,
        ).posterior  # fmt: skip
        seen = mass > 1e-12  # the enumeration itself loses the digits of rarer releases
        np.testing.assert_allclose(value[seen], truth[seen], rtol=1e-12)


@pytest.mark.parametrize(
    ("rho", "m", "mode"),
    [
        (0.0992264, 1, "approximate"),
        (0.0992264, 27, "approximate"),
        (0.7, 3, "approximate"),
        (5.0, 27, "approximate"),
        (300.0, 1, "approximate"),
        (0.3, 2, "exact"),
        (2.0, 2, "exact"),
        (40.0, 2, "exact"),
    ],
)
def test_log_odds_to_the_documented_error_however_far_out(rho, m, mode):
    for n, k, a in [
        (1, 0, 0),
        (1, 0, 1),
        (3, 1, 2),
        (30, 0, 30),
        (30, 29, 0),
        (30, 29, 30),
        (400, 3, 300),
        (400, 390, 0),
    ]:
        truth = float(twin.log_odds_change(a, rho, m, n, k, mode == "exact"))
        laws = _difference.sum_laws(rho, np.array(m + 1), exact=mode == "exact", shape=())
        ripple = laws.ripple(0)
        value, _ = _postprocessed_kernels.evidence(a, n, k, laws.rates[0], ripple, -ripple.min())
        assert abs(value - truth) <= 2**-46 * abs(truth) + 2**-48 * (1 + rho), (n, k, a)
        if abs(truth) < 600:
            ratio = postprocessed_posterior(
                a,
                group_count=n,
                n_siblings=m,
                noise=Noise(rho=rho),
                prior=0.25,
                known_count=k,
                sibling_noise=mode,
            ).ratio
            slack = 2**-46 * abs(truth) + 2**-47 * (1 + rho)
            assert math.log(ratio) == pytest.approx(
                -math.log(0.25 + 0.75 * math.exp(-truth)), abs=2 * slack
            )


@pytest.mark.parametrize("rate", [3e-7, 1e-5, 1e-3, 0.05])
@pytest.mark.parametrize("first", [-1, 0, 1, 40, 3000])
def test_long_tails_are_summed_in_strides(rate, first):
    value = _postprocessed_kernels.log_tail(first, rate, np.zeros(1), 0.0)
    assert value == pytest.approx(float(twin.flat_tail(first, rate)), abs=4e-15)


@pytest.mark.parametrize(("s2", "m"), [(0.3, 1), (0.7, 4), (2.0, 9), (10.0, 3)])
def test_the_law_is_that_of_the_convolution(s2, m):
    d = np.arange(-12, 13)
    for exact, laws in (
        (False, [DiscreteGaussian(s2), DiscreteGaussian(m * s2)]),
        (True, [DiscreteGaussian(s2)] * (m + 1)),
    ):
        sums = _difference.sum_laws(0.5 / s2, np.array(m + 1), exact=exact, shape=())
        ripple = sums.ripple(0)
        relative = ripple[d % ripple.size] - sums.rates[0] * d**2.0
        law = convolve(*laws, tail=1e-200)
        np.testing.assert_allclose(relative, law.logpmf(d) - law.logpmf(0), rtol=0, atol=2e-13)


def test_extreme_settings_are_finite():
    for rho in (1e-300, 1e-40, 1e-9, 1e3, 1e250):
        for n in (1, 10**6, 2**51):
            for k in {0, n // 2, n - 1}:
                a = np.array([0, min(k, n), k + 1, n])
                value = postprocessed_posterior(
                    a, group_count=n, n_siblings=27, noise=Noise(rho=rho), prior=0.3, known_count=k
                ).posterior
                assert np.isfinite(value).all()
                assert ((value >= 0) & (value <= 1)).all()
    nothing = postprocessed_posterior(
        [0, 1, 9], group_count=9, n_siblings=1, noise=Noise(rho=1e-300), prior=0.3, known_count=4
    ).posterior
    np.testing.assert_allclose(nothing, 0.3, rtol=1e-14)
    certain = postprocessed_posterior(
        [4, 5], group_count=9, n_siblings=1, noise=Noise(rho=1e4), prior=0.3, known_count=4
    ).posterior
    assert certain.tolist() == [0.0, 1.0]


def test_broadcasting_equals_a_loop():
    released, rho, prior = np.arange(4)[:, None, None], [[0.1], [1.5]], [0.1, 0.5, 0.9]
    table = postprocessed_posterior(
        released, group_count=3, n_siblings=4, noise=Noise(rho=rho), prior=prior
    ).posterior
    assert table.shape == (4, 2, 3)
    for a in range(4):
        for i, r in enumerate((0.1, 1.5)):
            for j, p in enumerate(prior):
                one = postprocessed_posterior(
                    a, group_count=3, n_siblings=4, noise=Noise(rho=r), prior=p
                ).posterior
                assert isinstance(one, float)
                assert table[a, i, j] == one
    ratio = postprocessed_posterior(
        released, group_count=3, n_siblings=4, noise=Noise(rho=rho), prior=prior
    ).ratio
    np.testing.assert_allclose(ratio * np.array(prior), table, rtol=1e-15)


def test_rho_sensitivity_and_sigma2_are_one_argument():
    setting = {"group_count": 4, "n_siblings": 2, "prior": 0.2}
    value = postprocessed_posterior(3, noise=Noise(rho=0.1), **setting).posterior
    assert postprocessed_posterior(
        3, noise=DiscreteGaussian(5.0), **setting
    ).posterior == pytest.approx(value, rel=1e-14)
    double = postprocessed_posterior(
        3, noise=Noise(rho=0.2, sensitivity=2**0.5), **setting
    ).posterior
    assert double == pytest.approx(value, rel=1e-14)


def test_the_two_laws_of_the_siblings_part_only_for_little_noise():
    setting = {"group_count": 6, "n_siblings": 5, "prior": 0.5, "known_count": 2}
    a = np.arange(7)
    calm, loud = (
        [
            postprocessed_posterior(
                a, noise=DiscreteGaussian(s2), sibling_noise=mode, **setting
            ).posterior
            for mode in ("approximate", "exact")
        ]
        for s2 in (4.0, 0.25)
    )
    np.testing.assert_allclose(calm[0], calm[1], rtol=1e-14)
    assert np.abs(loud[0] - loud[1]).max() > 0.01


def test_the_oracle_is_a_law():
    mass = twin.likelihoods(0.4, 3, 5, 1, True)
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, rtol=1e-13)
    with mp.workdps(30):
        change = [float(twin.log_odds_change(a, 0.4, 3, 5, 1)) for a in range(6)]
    exact = twin.likelihoods(0.4, 3, 5, 1)
    np.testing.assert_allclose(change, np.log(exact[1] / exact[0]), atol=1e-11)

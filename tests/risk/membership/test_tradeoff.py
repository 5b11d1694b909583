"""Trade-off curves against linear programs, closed forms, the privacy profile and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles.membership import best_power, releases
from scipy.stats import norm

from bayesrisk import DiscreteGaussian, DiscreteLaplace, FiniteLaw, Noise
from bayesrisk.accounting import discrete_gaussian_delta
from bayesrisk.distributions import total_variation
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError
from bayesrisk.inference import simulated_likelihood
from bayesrisk.risk import rho_for_advantage, simulated_tradeoff, tradeoff_curve

SIZES = np.linspace(0.0, 1.0, 23)
MASS = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any)


@given(MASS, st.integers(-3, 3), st.integers(0, 2))
def test_every_law_reaches_the_best_power(mass, change, cells):
    law = FiniteLaw(-1, np.array(mass) / sum(mass))
    changes = [change] if cells < 2 else [change, 1]
    absent, present = releases(lambda y: float(law.pmf(y)), range(-6, 9), changes)
    curve = tradeoff_curve(law, changes=changes)
    for size in (0.0, 0.1, 0.37, 0.8, 1.0):
        wanted = best_power(absent, present, size)
        assert float(curve.power(size)) == pytest.approx(wanted, abs=1e-7)  # of the program
    assert curve.advantage == pytest.approx(np.maximum(present - absent, 0).sum(), abs=1e-12)


@pytest.mark.parametrize(
    "law", [DiscreteGaussian(0.3), DiscreteGaussian(40.0), DiscreteLaplace(2.5)]
)
@pytest.mark.parametrize("change", [1, -1, 2, 5, 8])
def test_advantage_is_the_central_mass_and_the_distance(law, change):
    curve = tradeoff_curve(law, changes=change)
    middle = -(-abs(change) // 2)
    central = math.fsum(np.asarray(law.pmf(np.arange(middle - abs(change), middle))))
    assert abs(curve.advantage - central) <= curve.error
    distance, error = total_variation(
        law, type(law)(getattr(law, "sigma2", 0) or law.scale, change)
    )
    assert abs(curve.advantage - distance) <= curve.error + error
    gap = curve.true_positive_rate - curve.false_positive_rate
    assert gap.max() == pytest.approx(curve.advantage, abs=curve.error)
    assert curve.advantage_lower <= curve.advantage <= curve.advantage_upper
    slope = np.diff(np.interp(SIZES, SIZES, curve.power(SIZES)))
    assert (np.diff(slope) <= 1e-12).all()  # concave


@pytest.mark.parametrize("change", [1, 2, 5])
@pytest.mark.parametrize("sigma2", [0.2, 5.04, 300.0])
def test_the_privacy_profile_is_the_dual(sigma2, change):
    curve = tradeoff_curve(DiscreteGaussian(sigma2), changes=change)
    for epsilon in (0.0, 0.01, 0.3, 1.0, 4.0):
        exact = discrete_gaussian_delta(epsilon, sigma2=sigma2, sensitivity=change)
        assert float(curve.delta(epsilon)) == pytest.approx(
            exact, abs=(1 + math.exp(epsilon)) * curve.error
        )
    assert curve.delta([0.0, 1.0]).shape == (2,)
    assert float(curve.delta(0.0)) == pytest.approx(curve.advantage, abs=2 * curve.error)


def test_laplace_noise_is_on_the_line_of_pure_privacy():
    epsilon = 0.7
    curve = tradeoff_curve(DiscreteLaplace.from_epsilon(epsilon))
    assert curve.advantage == pytest.approx(math.tanh(epsilon / 2), abs=curve.error)
    sizes = np.linspace(0, 1 / (1 + math.exp(epsilon)), 9)
    assert curve.power(sizes) == pytest.approx(math.exp(epsilon) * sizes, abs=1e-13)
    assert float(curve.delta(epsilon)) <= 3 * curve.error


def test_two_cells_against_every_pair_of_values():
    law = DiscreteGaussian(1.5)
    absent, present = releases(lambda y: float(law.pmf(y)), range(-14, 15), (1, -1))
    curve = tradeoff_curve(law, changes=[1, -1])
    assert curve.advantage == pytest.approx(np.maximum(present - absent, 0).sum(), abs=1e-12)
    for size in (0.01, 0.2, 0.6):
        assert float(curve.power(size)) == pytest.approx(
            best_power(absent, present, size), abs=1e-7
        )
    alone = tradeoff_curve(law)
    assert (curve.power(SIZES) >= alone.power(SIZES) - 1e-12).all()
    both = tradeoff_curve([law, FiniteLaw(0, [0.5, 0.5])], changes=[1, 0])
    assert both.power(SIZES) == pytest.approx(alone.power(SIZES), abs=1e-12)


def test_wide_noise_is_gaussian_privacy():
    sigma = 300.0
    curve = tradeoff_curve(DiscreteGaussian(sigma**2), changes=600)
    sizes = np.linspace(0.01, 0.99, 21)
    assert curve.power(sizes) == pytest.approx(norm.sf(norm.isf(sizes) - 2.0), abs=1e-5)
    assert curve.advantage == pytest.approx(2 * norm.cdf(1.0) - 1, abs=1e-5)


def test_no_noise_is_no_privacy_and_no_change_is_no_attack():
    curve = tradeoff_curve(FiniteLaw(0, [1.0]))
    assert (curve.advantage, float(curve.power(0.0)), float(curve.delta(3.0))) == (1.0, 1.0, 1.0)
    nothing = tradeoff_curve(DiscreteGaussian(2.0), changes=0)
    assert nothing.advantage == 0
    assert nothing.power(SIZES) == pytest.approx(SIZES, abs=nothing.error)


@pytest.mark.parametrize("change", [1, 2, 3, 7])
@pytest.mark.parametrize("advantage", [1e-6, 0.01, 0.1, 0.5, 0.9, 1 - 1e-9])
def test_rho_reaches_the_advantage_and_no_more(advantage, change):
    rho = rho_for_advantage(advantage, change=change)
    for factor, over in ((1.0, False), (1 + 1e-9, True)):
        law = DiscreteGaussian.from_rho(rho * factor)
        middle = -(-change // 2)
        mass = math.fsum(np.asarray(law.pmf(np.arange(middle - change, middle))))
        assert (mass > advantage) == over or abs(mass - advantage) < 1e-15
    assert rho_for_advantage(advantage, change=change, sensitivity=2**0.5) == pytest.approx(
        2 * rho, rel=1e-12
    )


def test_small_advantages_cost_pi_times_their_square():
    assert rho_for_advantage(1e-3) == pytest.approx(math.pi * 1e-6, rel=1e-5)
    found = [rho_for_advantage(a) for a in np.linspace(0.05, 0.95, 19)]
    assert (np.diff(found) > 0).all()
    assert tradeoff_curve(Noise(rho=found[3])).advantage == pytest.approx(0.2, abs=1e-10)


def draws_of(law, number, seed):
    return simulated_likelihood(
        lambda h, rng, size: h + law.rvs(size, random_state=rng),
        hypotheses=2, draws=number, batch=number, rng=seed,
    )  # fmt: skip


def test_simulated_curves_hold_the_exact_one():
    law = DiscreteGaussian(5.0)
    exact = tradeoff_curve(law)
    outside = 0
    for seed in range(40):
        found = simulated_tradeoff(draws_of(law, 4_000, seed), confidence=0.95)
        assert found.draws == 2_000
        outside += not found.advantage_lower <= exact.advantage <= found.advantage_upper
        best = exact.power(found.false_positive_rate)
        spread = np.sqrt(0.5 / found.draws)  # of the difference of two rates, at most
        assert (found.true_positive_rate - best).max() < 4.5 * spread
        assert (np.diff(found.false_positive_rate) >= 0).all()
        assert found.true_positive_rate[[0, -1]].tolist() == [0.0, 1.0]
    assert outside <= 6  # of 40 at 5 %: more than 6 has probability below 0.4 %


def test_a_protection_that_adds_half_the_noise_is_caught():
    stated = tradeoff_curve(DiscreteGaussian(5.0))
    found = simulated_tradeoff(draws_of(DiscreteGaussian(1.25), 20_000, 1), confidence=0.999)
    assert found.advantage_lower > stated.advantage


def test_useless_draws_have_no_advantage():
    likelihood = simulated_likelihood(
        lambda h, rng, size: np.zeros(size, np.int64), hypotheses=3, draws=100, rng=1
    )
    found = simulated_tradeoff(likelihood, absent=2, present=0)
    assert found.advantage == 0
    assert found.power(SIZES) == pytest.approx(SIZES)


def test_results_print_draw_and_tabulate():
    exact = tradeoff_curve(Noise(rho=0.1))
    found = simulated_tradeoff(draws_of(DiscreteGaussian(5.0), 1_000, 3))
    for curve in (exact, found):
        frame = curve.to_frame()
        for name in ("false_positive_rate", "true_positive_rate"):
            assert (frame[f"{name}_lower"] <= frame[name]).all()
            assert (frame[name] <= frame[f"{name}_upper"]).all()
        assert f"Advantage {curve.advantage:.4g} (" in repr(curve)
        assert curve.plot().get_xlabel() == "false positive rate"
    assert "95% interval" in repr(found)


def test_more_cells_than_can_be_listed():
    curve = tradeoff_curve(Noise(rho=0.02), changes=[1] * 12)
    # Discrete Gaussian noise of so many cells is nearly normal: mu**2 = 2 rho, 12 times.
    mu = math.sqrt(2 * 0.02 * 12)
    assert curve.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1, abs=1e-3)
    for size in (0.01, 0.1, 0.5):
        assert float(curve.power(size)) == pytest.approx(norm.cdf(norm.ppf(size) + mu), abs=2e-3)
    assert curve.error < 1e-3


def test_refusals():
    one = Noise(rho=1)
    for call, error, message in (
        (lambda: tradeoff_curve(3), ArgumentTypeError, "noise must"),
        (lambda: tradeoff_curve(Noise(rho=[1, 2])), ShapeError, "noise must be a single law"),
        (lambda: tradeoff_curve(one, changes=0.5), ArgumentError, "changes must be a whole"),
        (lambda: tradeoff_curve(one, changes=10**5), ArgumentError, "changes must be <= 10000"),
        (lambda: tradeoff_curve([one], changes=[1, 1]), ShapeError, "noise must be one or 2"),
        (lambda: rho_for_advantage(1.0), ArgumentError, "advantage must be <= 1, got 1"),
        (lambda: simulated_tradeoff(3), ArgumentTypeError, "likelihood"),
    ):
        with pytest.raises(error, match=message):
            call()

"""The law of the privacy loss of a release against enumeration, simulation and closed forms."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from oracles import privacy_loss as oracle
from scipy.stats import norm

from bayesrisk import ArgumentError, Workload, make_mechanism
from bayesrisk.accounting import (
    PrivacyLoss,
    census_2020_budget,
    discrete_gaussian_delta,
    discrete_gaussian_epsilon,
    rho_to_epsilon,
)
from bayesrisk.accounting.loss_sums import LossLine, LossList, logistic
from bayesrisk.datasets import load_microdata
from bayesrisk.distributions import DiscreteGaussian, DiscreteLaplace, FiniteLaw
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.risk import marginal_posterior, tradeoff_curve


@pytest.fixture(autouse=True, scope="module")
def digits():
    with mp.workdps(50):
        yield


SIGMA2, SCALES = (0.3, 0.7, 1.0, 1.3, 2.5, 5.04), (0.5, 1.0, 2.5, 7.0)


def composition(rng):
    """Draw one to three counts of both laws with mixed changes, at most two of them Gaussian."""
    counts, laws, gaussians = [], [], 0
    for _ in range(rng.integers(1, 4)):
        change = int(rng.choice([1, -1, 2, 3]))
        if gaussians < 2 and rng.random() < 0.5:
            sigma2 = float(rng.choice(SIGMA2))
            counts.append((DiscreteGaussian(sigma2), change))
            laws.append(oracle.gaussian(sigma2, change, digits=45))
            gaussians += 1
        else:
            scale = float(rng.choice(SCALES))
            counts.append((DiscreteLaplace(scale), change))
            laws.append(oracle.laplace(scale, change))
    return counts, oracle.together(laws)


def encloses(ends, exact):
    return mp.mpf(float(ends.lower)) <= exact <= mp.mpf(float(ends.upper))


def check_composition(seed):
    rng = np.random.default_rng(seed)
    counts, exact = composition(rng)
    law = PrivacyLoss.of(counts)
    likely = [float(loss) for loss, mass in exact.items() if mass > 1e-36]
    for epsilon in (0.0, rng.uniform(0, max(likely)), rng.uniform(min(likely), 0)):
        wanted = oracle.delta(exact, epsilon)
        found = law.delta(epsilon)
        assert encloses(found, wanted)
        if wanted > mp.mpf(10) ** -35:
            assert abs(float(found) / wanted - 1) < 1e-12
            # The inversion answers the same question in another way.
            if epsilon >= 0.0:
                line = LossLine(law.parts, epsilon, 1e-2).delta(epsilon)
                assert line.lower <= wanted <= line.upper
        if epsilon < 30.0:  # a belief below 1
            belief = 1 / (1 + math.exp(-epsilon - 1e-9))
            wanted = oracle.tail(exact, mp.log(belief / (1 - mp.mpf(belief))))
            assert encloses(law.posterior(0.5).tail(belief), wanted)
    for prior in (0.5, 0.1, 1 / 2016):
        wanted = oracle.mean_posterior(exact, prior)
        assert encloses(law.posterior(prior).mean, wanted)
        assert abs(float(law.posterior(prior).mean) / wanted - 1) < 1e-12
        shift = math.log(prior) - math.log1p(-prior)
        by_line = logistic(law.parts, shift)
        assert encloses(by_line, wanted)
        assert by_line.upper - by_line.lower < 1e-8


@pytest.mark.parametrize("seed", range(12))
def test_small_compositions_against_enumeration(seed):
    check_composition(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1488))
def test_many_small_compositions_against_enumeration(seed):
    check_composition(seed)


def test_the_oracle_tells_what_is_wrong():
    exact = oracle.together([oracle.gaussian(2.5, 1, digits=45)])
    other = PrivacyLoss.of([DiscreteGaussian(2.5000001)]).delta(1.0)
    assert not encloses(other, oracle.delta(exact, 1.0))


@pytest.mark.parametrize("sigma2", [0.2, 1.0, 5.04, 900.0])
def test_one_count_has_the_delta_and_the_posterior_of_a_count(sigma2):
    law = PrivacyLoss.of(DiscreteGaussian(sigma2))
    top = float(discrete_gaussian_epsilon(1e-35, sigma2=sigma2))
    for epsilon in np.linspace(0.0, top, 7):
        wanted = float(discrete_gaussian_delta(epsilon, sigma2=sigma2))
        assert float(law.delta(epsilon)) == pytest.approx(wanted, rel=1e-11)
    for delta in (1e-3, 1e-10, 1e-30):
        wanted = float(discrete_gaussian_epsilon(delta, sigma2=sigma2))
        assert float(law.epsilon(delta).lower) <= wanted * (1 + 1e-11)
        assert float(law.epsilon(delta)) == pytest.approx(wanted, rel=1e-10)
    prior = np.array([0.5, 0.1, 1 / 864])
    found = law.posterior(prior)
    wanted = marginal_posterior(sigma2=sigma2, prior=prior)
    assert found.mean.value == pytest.approx(wanted, rel=1e-12)
    x = np.arange(-400, 400)
    p, q = (np.asarray(DiscreteGaussian(sigma2).pmf(x - d)) for d in (1, 0))
    wrong = [np.minimum(chance * p, (1 - chance) * q).sum() for chance in prior]
    assert found.decision_error.value == pytest.approx(wrong, rel=1e-9)


def test_the_redistricting_data_of_2020():
    """Between 16.452 and 16.478 by rounding losses down and up; below the conversion of rho."""
    law = PrivacyLoss.of("pl94")
    ends = law.epsilon(1e-10)
    assert 16.452 < ends.lower <= ends.upper < 16.478
    assert ends.width < 1e-6
    assert law.rho == pytest.approx(float(sum(census_2020_budget("pl94").rho)), rel=1e-12)
    assert ends.upper < rho_to_epsilon(law.rho, 1e-10) - 0.6
    least = law.epsilon(1e-35)
    assert least.width < 1e-6
    assert law.delta(float(least.upper)).upper <= 1e-35


def rounded_losses(parts, unit, up):
    """Return delta(0), delta(1), ... by losses rounded to a grid one way, convolved directly."""
    total, offset = np.ones(1), 0
    for part in parts:
        loss, mass, _ = part.values
        steps = (np.ceil if up else np.floor)(loss / unit).astype(int)
        own = np.bincount(steps - steps.min(), mass)
        for _ in range(part.times):
            total, offset = np.convolve(total, own), offset + steps.min()
    losses = (np.arange(total.size) + offset) * unit
    return [float(total[losses > e] @ -np.expm1(e - losses[losses > e])) for e in range(6)]


def test_many_counts_lie_between_losses_rounded_down_and_up():
    budget = census_2020_budget("pl94").query("level == 'Block' or level == 'County'")
    law = PrivacyLoss.of(budget)
    assert LossList.listed(law.parts) is None
    low, high = (rounded_losses(law.parts, 2e-3, up) for up in (False, True))
    found = law.delta(np.arange(6))
    assert np.all(np.array(low) - 1e-12 <= found.upper)
    assert np.all(found.lower <= np.array(high) + 1e-12)
    assert np.all(found.width <= 1e-6 * found.upper)


def test_simulated_releases_have_the_law_of_the_posterior():
    law = PrivacyLoss.of("pl94")
    rng, draws = np.random.default_rng(7), 200_000
    loss = np.zeros(draws)
    for part in law.parts:
        v = float(part.law.sigma2)
        for _ in range(part.times):
            loss += (2 * part.law.rvs(draws, random_state=rng) + 1) / (2 * v)
    prior = 0.01
    belief = 1 / (1 + (1 - prior) / prior * np.exp(-loss))
    found = law.posterior(prior)
    error = belief.std() / math.sqrt(draws)
    assert abs(belief.mean() - float(found.mean)) < 5 * error
    for value in (0.02, 0.3, 0.9):
        share = (belief > value).mean()
        assert abs(share - float(found.tail(value))) < 5 * math.sqrt(share * (1 - share) / draws)
        assert found.tail(value).width < 1e-3
    for level in (0.05, 0.5, 0.99):
        quantile = found.quantile(level)
        reach = 5 * math.sqrt(level * (1 - level) / draws)
        assert np.quantile(belief, level - reach) <= quantile.upper
        assert quantile.lower <= np.quantile(belief, min(level + reach, 1.0))


def test_tests_have_the_trade_off_of_a_list_of_all_values():
    counts = [DiscreteGaussian(5.04), DiscreteLaplace(2.5)]
    curve, law = (
        tradeoff_curve(counts, changes=[1, -1]),
        PrivacyLoss.of([counts[0], (counts[1], -1)]),
    )
    assert float(law.advantage) == pytest.approx(curve.advantage, abs=1e-12)
    rates = np.array([0.0, 1e-3, 0.05, 0.5, 1.0])
    found = law.power(rates)
    assert np.all(found.lower <= curve.power(rates) + 1e-9)
    assert np.all(curve.power(rates) <= found.upper + 1e-9)
    assert np.all(found.width < 2e-2)


def test_noise_with_a_list_of_probabilities():
    noise = FiniteLaw(0, [0.5, 0.25, 0.125, 0.125])
    law = PrivacyLoss.of([(noise, 1), (DiscreteLaplace(1.0), 2)])
    exact = oracle.together([oracle.finite([0.5, 0.25, 0.125, 0.125], 1), oracle.laplace(1.0, 2)])
    for epsilon in (-1.0, 0.0, 0.5, 2.0, 30.0):
        assert encloses(law.delta(epsilon), oracle.delta(exact, epsilon))
    assert law.delta(30.0).lower >= 0.1249
    assert law.epsilon(0.1).lower == math.inf
    back = oracle.together([oracle.finite([0.5, 0.25, 0.125, 0.125], -1), oracle.laplace(1.0, 2)])
    assert encloses(law.reversed.delta(0.5), oracle.delta(back, 0.5))


@pytest.mark.parametrize("seed", range(20))
def test_ends_enclose_fractions(seed):
    """The advantage of noise with dyadic probabilities is a fraction, which ends must enclose."""
    rng = np.random.default_rng(seed)
    joint = {(): (Fraction(1), Fraction(1))}
    counts = []
    for _ in range(3):
        weights = np.bincount(rng.integers(0, 4, 64), minlength=4)
        change = int(rng.choice([-1, 1, 2]))
        counts.append((FiniteLaw(0, weights / 64), change))
        p = {x: Fraction(int(w), 64) for x, w in enumerate(weights)}
        values = range(-2, 7)
        joint = {
            (*key, x): (present * p.get(x - change, Fraction(0)), absent * p.get(x, Fraction(0)))
            for key, (present, absent) in joint.items()
            for x in values
        }
    wanted = sum(max(present - absent, Fraction(0)) for present, absent in joint.values())
    ends = PrivacyLoss.of(counts).advantage
    assert Fraction(float(ends.lower)) <= wanted <= Fraction(float(ends.upper))
    assert ends.width < 1e-11


def test_a_release_states_its_counts():
    budgets = {"block": {"P1": "1/8", "P3": "1/16"}}
    mechanism = make_mechanism("discrete-gaussian", budgets=budgets, sensitivity="change-one")
    law = PrivacyLoss.of(mechanism)
    assert law.rho == pytest.approx(3 / 16)
    one = PrivacyLoss.of(mechanism, sensitivity="add-remove")
    assert one.rho == pytest.approx(3 / 32)
    assert one.epsilon(1e-6).upper < law.epsilon(1e-6).lower
    # A record that counts in two cells of a table needs twice the variance, at the same budget.
    several = make_mechanism(
        "discrete-gaussian", budgets=budgets, sensitivity="change-one", overlap={"P1": 2, "P3": 1}
    )
    assert PrivacyLoss.of(several).rho == pytest.approx(3 / 16)
    assert sum(part.times for part in PrivacyLoss.of(several).parts) == 6


def test_a_table_without_noise_has_no_law():
    tables = Workload.named("sf1-block").select(tables=["P8"])
    released = make_mechanism("identity").release(
        load_microdata("synthetic-county"), workload=tables, rng=1
    )
    with pytest.raises(ArgumentError, match="in every table"):
        PrivacyLoss.of(released)


def test_the_least_noise_that_keeps_a_promise():
    law = PrivacyLoss.of([DiscreteGaussian(4.0), DiscreteLaplace(2.0)])
    factor = law.variance_factor(epsilon=1.0, delta=1e-5)
    assert law.scaled(factor).delta(1.0).upper <= 1e-5
    assert law.scaled(factor * 0.99999).delta(1.0).lower > 1e-5


def test_frames_and_words():
    law = PrivacyLoss.of("pl94")
    frame = law.to_frame()
    assert (frame["epsilon_upper"] < frame["rho_tight"]).all()
    assert (frame["rho_tight"] < frame["rho_bun_steinke"]).all()
    assert frame["epsilon_lower"].is_monotonic_increasing
    beliefs = law.posterior([0.1, 0.5]).to_frame()
    assert beliefs["ratio_lower"].to_numpy() == pytest.approx(
        beliefs["mean_lower"] / beliefs["prior"]
    )
    assert "130 noisy counts" in repr(law)


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (3.0, ArgumentTypeError),
        ([], ArgumentError),
        ([3.0], ArgumentTypeError),
        (pd.DataFrame({"rho": [1.0]}), ArgumentError),
        ("pl95", ArgumentError),
        ([(DiscreteGaussian(1.0), 10**5)], ArgumentError),
    ],
)
def test_sources_that_are_none(source, error):
    with pytest.raises(error):
        PrivacyLoss.of(source)


def test_losses_without_end_are_certainty():
    """With probability 1/2 the noise shows the record: no belief, test or quantile is in doubt."""
    law = PrivacyLoss.of([(FiniteLaw(0, [0.5, 0.5]), 1), (DiscreteLaplace(1.0), 1)])
    belief = law.posterior(0.3)
    assert belief.quantile([0.7, 0.95]).lower.tolist() == [1.0, 1.0]
    assert belief.quantile(0.3).upper < 1.0
    power = law.power([0.0, 0.5, 1.0])
    assert power.lower == pytest.approx([0.5, 1.0, 1.0], abs=1e-12)
    assert power.upper == pytest.approx([0.5, 1.0, 1.0], abs=1e-12)
    with pytest.raises(ArgumentError, match="to be scaled"):
        law.scaled(2.0)


def test_power_of_many_counts_is_reached_and_not_passed():
    law = PrivacyLoss.of([DiscreteGaussian(v) for v in (11.0, 13.0, 17.5, 19.0, 23.0, 29.0)])
    assert LossList.listed(law.parts) is None
    rates = np.array([1e-3, 0.2, 0.999])
    power = law.power(rates)
    assert np.all(power.width < 1e-6)
    mu = math.sqrt(2 * law.rho)  # nearly normal
    assert power.value == pytest.approx(norm.cdf(norm.ppf(rates) + mu), abs=2e-3)


def test_answers_do_not_depend_on_earlier_ones():
    counts = [DiscreteGaussian(v) for v in (1e5, 1.3e5, 1.7e5, 2.3e5)]
    used = PrivacyLoss.of(counts)
    used.delta([20.0, 5.0])
    for epsilon in (0.0, 1e-3, 0.02):
        one, other = used.delta(epsilon), PrivacyLoss.of(counts).delta(epsilon)
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert other.width <= 1e-6 * other.upper
    mu = math.sqrt(2 * used.rho)  # nearly normal
    assert float(used.delta(0.0)) == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-6)


def test_much_budget_is_near_certainty():
    law = PrivacyLoss.of("pl94")
    means = [law.scaled(law.rho / rho).posterior([0.1, 1e-6]).mean for rho in (20, 60, 100, 300)]
    lower = np.array([mean.lower for mean in means])
    assert np.all(np.diff(lower, axis=0) >= -1e-12)
    assert all(np.all(mean.width < 1e-9) for mean in means)
    assert lower[-1] == pytest.approx([1.0, 1.0], abs=1e-12)


@pytest.mark.parametrize("x", [1e-10, 1e-18])
def test_a_tiny_chance_of_certainty_is_kept(x):
    law = PrivacyLoss.of([(FiniteLaw(0, [x, 1 - x]), -1)])
    ends = law.delta(2 + math.log((1 - x) / x))
    assert encloses(ends, mp.mpf(x))
    assert ends.width < 1e-12 * x
    assert law.epsilon(x / 2).lower == math.inf


@pytest.mark.parametrize("change", [1200, 10_000])
def test_large_changes(change):
    law = PrivacyLoss.of([(DiscreteGaussian(1e4), change)] * 3)
    exact = 1 - 2 * norm.sf(change * math.sqrt(3) / 200)  # nearly normal
    assert float(law.advantage) == pytest.approx(exact, abs=1e-9)


def test_many_counts_alike():
    many = PrivacyLoss.of([DiscreteGaussian(400.0)] * 5000)
    ends = many.epsilon(1e-6)
    assert ends.width < 1e-6
    assert ends.upper < rho_to_epsilon(many.rho, 1e-6)


def test_a_promise_that_no_noise_keeps_is_refused():
    with pytest.raises(ArgumentError, match="some factor"):
        PrivacyLoss.of([DiscreteLaplace(2.0)]).variance_factor(epsilon=0, delta=1e-6)
    with pytest.raises(ArgumentError, match="sigma2"):
        PrivacyLoss.of(pd.DataFrame({"sigma2": ["x"]}))

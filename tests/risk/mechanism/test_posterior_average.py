"""Averages of simulated posteriors: against exact ones, and their intervals over many seeds."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from oracles.simulated import (
    binomial_range,
    exact_accuracy,
    exact_average,
    gaussian_law,
    laplace_law,
    slow_estimates,
)

import bayesrisk as br
from bayesrisk.inference.simulated import simulated_likelihood
from bayesrisk.risk.mechanism.posterior import AverageRisk, _estimates, simulated_marginal_posterior


def simulated(laws, *, draws, rng, streams="common"):
    """Simulate finite laws by inversion, one uniform a draw."""
    values = [np.array(list(law)) for law in laws]
    edges = [np.cumsum(list(law.values())) for law in laws]

    def simulate(h, rng, size):
        index = np.searchsorted(edges[h][:-1], rng.random(size), side="right")
        return values[h][index]

    return simulated_likelihood(
        simulate, hypotheses=len(laws), draws=draws, batch=draws, rng=rng, streams=streams
    )


def average(laws, prior, truth, **how):
    return simulated_marginal_posterior(simulated(laws, **how), prior_pmf=prior, truth=truth)


def rounding_law(probability_up, count, base):
    """Return the law of random rounding to a multiple of ``base``, as a table by hand."""
    low = count // base * base
    return {low: 1.0 - probability_up, low + base: probability_up}


@settings(max_examples=40, deadline=None)
@given(
    arrays(np.int64, (3, 14), elements=st.integers(0, 3)),
    st.integers(0, 2),
    st.floats(0.05, 3.0),
    st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
)
def test_estimates_equal_the_loop(table, truth, smoothing, weights):
    prior = np.array(weights) / np.sum(weights)
    ours = _estimates(table, prior, truth, smoothing, 4)
    slow = slow_estimates(table.tolist(), prior.tolist(), truth, smoothing)
    assert ours == pytest.approx(slow, rel=1e-11)


@settings(max_examples=40, deadline=None)
@given(arrays(np.int64, (2, 40), elements=st.integers(0, 9)), st.floats(0.001, 0.999))
def test_bounds_hold_for_any_draws(table, p):
    likelihood = simulated_likelihood(
        lambda h, rng, size: table[h, :size], hypotheses=2, draws=40, batch=40, rng=0
    )
    result = simulated_marginal_posterior(likelihood, prior_pmf=[1.0 - p, p], truth=1)
    ends = result.marginal_posterior.lower, result.marginal_posterior.upper
    assert p <= ends[0] <= result.marginal_posterior <= ends[1] <= 1.0
    assert result.marginal_risk == pytest.approx(result.marginal_posterior / p)
    assert 0.0 <= result.correct_decision_probability.lower <= result.correct_decision_probability
    assert result.correct_decision_probability <= result.correct_decision_probability.upper <= 1.0
    assert result.bias_bound >= 0.0
    assert result.decision_baseline == max(p, 1.0 - p) <= result.decision_accuracy.lower
    assert result.decision_accuracy.lower <= result.decision_accuracy
    assert result.decision_accuracy <= result.decision_accuracy.upper <= 1.0


RHO = 0.0992264
CASES = {
    "gaussian, census": ([gaussian_law(RHO, 0), gaussian_law(RHO, 1)], [0.5, 0.5], 1),
    "gaussian, small prior": ([gaussian_law(RHO, 0), gaussian_law(RHO, 1)], [0.98, 0.02], 1),
    "gaussian, sharp": ([gaussian_law(2.0, 0), gaussian_law(2.0, 1)], [0.8, 0.2], 1),
    "gaussian, wide": ([gaussian_law(0.001, 0), gaussian_law(0.001, 1)], [0.9, 0.1], 1),
    "gaussian, three": ([gaussian_law(0.5, s) for s in (0, 1, 2)], [0.5, 0.3, 0.2], 1),
    "laplace": ([laplace_law(1.5, 0), laplace_law(1.5, 1)], [0.7, 0.3], 1),
    "laplace, wide": ([laplace_law(20.0, 0), laplace_law(20.0, 1)], [0.5, 0.5], 1),
    "rounding": ([rounding_law(0.4, 2, 5), rounding_law(0.6, 3, 5)], [0.75, 0.25], 1),
    "rounding to a boundary": ([rounding_law(0.8, 4, 5), rounding_law(0.0, 5, 5)], [0.9, 0.1], 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["common", "independent"])
@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_the_exact_average(name, streams):
    laws, prior, truth = CASES[name]
    exact, right = exact_average(laws, prior, truth)
    accuracy, guessed = exact_accuracy(laws, prior), 0
    runs, inside, decided = 300, 0, 0
    for seed in range(runs):
        result = average(laws, prior, truth, draws=800, rng=seed, streams=streams)
        inside += result.marginal_posterior.lower <= exact <= result.marginal_posterior.upper
        share = result.correct_decision_probability
        decided += share.lower <= right <= share.upper
        ends = result.decision_accuracy.lower, result.decision_accuracy.upper
        guessed += ends[0] - 1e-12 <= accuracy <= ends[1] + 1e-12  # sums are rounded
    # The interval may cover more often than it says, never less.
    low, _ = binomial_range(runs, 0.95)
    assert inside >= low
    assert decided >= low
    assert guessed >= low


@pytest.mark.parametrize("name", ["gaussian, three", "gaussian, sharp", "rounding"])
def test_the_accuracy_is_bracketed(name):
    laws, prior, truth = CASES[name]
    exact = exact_accuracy(laws, prior)
    runs, inside = 30, 0
    for seed in range(runs):
        result = average(laws, prior, truth, draws=800, rng=seed, streams="common")
        inside += result.decision_accuracy.lower <= exact <= result.decision_accuracy.upper
        assert abs(result.decision_accuracy - exact) < 0.08
    assert inside >= binomial_range(runs, 0.95)[0]
    # The control: found, given the truth, is another number, where the threshold is not half-way.
    found = exact_average(laws, prior, truth)[1]
    assert (abs(found - exact) > 0.1) == (name != "gaussian, sharp")


@pytest.mark.slow
@pytest.mark.parametrize("size", [300, 3000])
def test_intervals_cover_where_few_releases_repeat(size):
    rng = np.random.default_rng(size)
    masses = rng.dirichlet(np.full(size, 0.7), 2)
    laws = [dict(enumerate(mass.tolist())) for mass in masses]
    exact, _ = exact_average(laws, [0.6, 0.4], 1)
    results = [average(laws, [0.6, 0.4], 1, draws=1000, rng=seed) for seed in range(100)]
    inside = sum(r.marginal_posterior.lower <= exact <= r.marginal_posterior.upper for r in results)
    assert inside >= binomial_range(100, 0.95)[0]
    # The two estimates err on their own side, by many standard errors of their means.
    middle = np.mean([r.marginal_posterior for r in results])
    spread = np.mean([r.bias_bound for r in results])
    assert middle - spread < exact < middle + spread


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["common", "independent"])
@pytest.mark.parametrize(("rho", "p"), [(RHO, 0.5), (1.0, 0.5), (4.0, 0.1)])
def test_the_value_is_centred_and_its_error_honest_once_draws_suffice(rho, p, streams):
    laws = [gaussian_law(rho, 0), gaussian_law(rho, 1)]
    exact = float(br.marginal_posterior(rho=rho, prior=p))
    assert exact == pytest.approx(exact_average(laws, [1 - p, p], 1)[0], rel=1e-12)
    runs = 300
    results = [
        average(laws, [1 - p, p], 1, draws=4000, rng=seed, streams=streams) for seed in range(runs)
    ]
    within = sum(
        abs(r.marginal_posterior - exact) <= 2.093 * r.marginal_posterior.error for r in results
    )  # t of 19 degrees of freedom
    assert within >= binomial_range(runs, 0.95)[0]
    spread = np.std([r.marginal_posterior for r in results])
    claimed = np.sqrt(np.mean([r.marginal_posterior.error**2 for r in results]))
    # A jackknife may overstate (Efron and Stein), never understate beyond chance: the standard
    # deviation of 300 runs is known to 1 / sqrt(600), that is 4.1 %; four of those.
    assert claimed > spread * (1.0 - 4.0 * 0.041)
    assert claimed < spread * 1.5


def test_the_same_draws_without_correction_do_not_cover():
    # Negative control: relative frequencies put in, their scatter taken for the error.
    laws, prior = [gaussian_law(0.001, 0), gaussian_law(0.001, 1)], np.array([0.9, 0.1])
    exact, _ = exact_average(laws, prior, 1)
    inside = 0
    for seed in range(20):
        likelihood = simulated(laws, draws=1000, rng=seed, streams="independent")
        posterior = (prior[:, None] * likelihood.counts)[1] / (prior @ likelihood.counts)
        each = posterior[likelihood.codes[1]]
        inside += abs(each.mean() - exact) <= 1.96 * each.std() / np.sqrt(1000)
    assert inside == 0


def test_a_mechanism_that_ignores_the_data():
    law = dict.fromkeys(range(12), 1 / 12)
    common = average([law, law], [0.7, 0.3], 1, draws=500, rng=1)
    assert common.marginal_risk == pytest.approx(1.0, abs=1e-12)
    assert common.marginal_posterior.error == pytest.approx(0.0, abs=1e-12)
    apart = average([law, law], [0.7, 0.3], 1, draws=500, rng=1, streams="independent")
    assert apart.marginal_risk.lower == 1.0
    assert 1.0 <= apart.marginal_risk.upper < 1.1


def test_a_mechanism_that_leaks():
    result = average([{0: 1.0}, {1: 1.0}], [0.99, 0.01], 1, draws=2000, rng=1)
    assert result.marginal_posterior.upper == 1.0
    # q = (n - 1 + a) w / (...): the lower end is 1 - (99 a / n)**2, a = 1/2.
    assert result.marginal_posterior.lower == pytest.approx(1.0, abs=1e-3)
    assert result.marginal_risk == pytest.approx(100.0, rel=1e-3)
    assert result.correct_decision_probability == 1.0


def test_common_streams_are_worth_draws():
    laws = [gaussian_law(RHO, 0), gaussian_law(RHO, 1)]
    variance = {
        streams: np.var(
            [
                average(laws, [0.5, 0.5], 1, draws=1000, rng=s, streams=streams).marginal_posterior
                for s in range(40)
            ]
        )
        for streams in ("common", "independent")
    }
    assert variance["common"] < variance["independent"] / 3.0


def test_frame_and_labels():
    result = average([{0: 0.5, 1: 0.5}, {1: 1.0}], [0.4, 0.6], 1, draws=100, rng=4)
    frame = result.to_frame()
    estimates = {f.name for f in fields(AverageRisk) if f.type == "Estimate"}
    assert estimates == {"marginal_posterior", "correct_decision_probability", "decision_accuracy"}
    ends = {f"{name}_{end}" for name in estimates for end in ("error", "lower", "upper")}
    assert set(frame) >= {f.name for f in fields(AverageRisk)} | ends
    assert frame["marginal_risk_upper"].tolist() == [result.marginal_posterior.upper / 0.6]
    assert frame["prior"].tolist() == [0.6]
    assert (result.method, result.draws, result.smoothing) == ("simulated", 100, 0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior_pmf": [0.5, 0.6]}, "prior_pmf must sum to 1"),
        ({"prior_pmf": [1.0, 0.0]}, r"prior_pmf\[1\] must be > 0, got 0.0"),
        ({"prior_pmf": [0.5, 0.3, 0.2]}, r"prior_pmf must have shape \(2,\)"),
        ({"truth": 2}, "truth must be <= 1, got 2"),
        ({"confidence": 1}, "confidence must be < 1, got 1"),
    ],
)
def test_bad_arguments(change, message):
    likelihood = simulated([{0: 1.0}, {1: 1.0}], draws=50, rng=0)
    with pytest.raises(br.ArgumentError, match=message):
        simulated_marginal_posterior(likelihood, **{"prior_pmf": [0.5, 0.5], "truth": 1, **change})

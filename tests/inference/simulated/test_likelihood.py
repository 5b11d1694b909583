"""The simulated likelihood counts what was drawn, and its posterior is Bayes' rule on counts."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from oracles.simulated import binomial_range, importable_draws

import bayesrisk as br
from bayesrisk.experiments.runs.executors import ProcessExecutor
from bayesrisk.inference.simulated import SUPPRESSED, simulated_likelihood

RHO = 0.0992264


def noisy(hypothesis, rng, size):
    return hypothesis + br.DiscreteGaussian.from_rho(RHO).rvs(size, random_state=rng)


def pairs(hypothesis, rng, size):
    y = rng.integers(0, 3, (size, 2)) + np.array([hypothesis, 0])
    return np.where(rng.random((size, 2)) < 0.2, SUPPRESSED, y)


def fixed(table):
    """Return a simulator that reads its draws from a table (hypotheses, draws)."""
    return lambda hypothesis, rng, size: table[hypothesis, :size]


@given(arrays(np.int64, (3, 12), elements=st.integers(-2, 4)))
def test_counts_are_counts(table):
    result = simulated_likelihood(fixed(table), hypotheses=3, draws=12, batch=12, rng=0)
    assert result.values.ravel().tolist() == sorted(set(table.ravel().tolist()))
    for h in range(3):
        counted = Counter(table[h].tolist())
        assert result.counts[h].tolist() == [counted[v] for v in result.values.ravel().tolist()]
        assert result.values[result.codes[h], 0].tolist() == table[h].tolist()


@given(
    arrays(np.int64, (2, 30), elements=st.integers(0, 3)),
    st.floats(0.01, 5),
    st.floats(0.001, 0.999),
)
def test_posterior_is_bayes_rule_on_smoothed_counts(table, smoothing, p):
    result = simulated_likelihood(
        fixed(table), hypotheses=2, draws=30, batch=30, rng=0, smoothing=smoothing
    )
    for value in range(5):
        a, b = ((table[h] == value).sum() for h in (1, 0))
        posterior = result.posterior(value, prior_pmf=[1.0 - p, p])
        expected = p * (a + smoothing) / (p * (a + smoothing) + (1 - p) * (b + smoothing))
        assert posterior.posterior[1] == pytest.approx(expected, rel=1e-12)
        assert posterior.posterior.sum() == pytest.approx(1.0)
        assert posterior.risk_ratio[1] == pytest.approx(expected / p)
        assert posterior.error[0] == pytest.approx(posterior.error[1])
        assert posterior.seen.tolist() == [b, a]
    total = sum(result.probability(v) for v in np.unique(table))
    assert (total + result.probability(99)) == pytest.approx([1.0, 1.0])


def test_a_value_never_drawn_is_no_evidence():
    result = simulated_likelihood(noisy, hypotheses=2, draws=50, batch=50, rng=1)
    unseen = result.posterior(10**6, prior_pmf=[0.9, 0.1])
    assert unseen.posterior.tolist() == pytest.approx([0.9, 0.1])
    assert unseen.error[1] > 0.1
    only = simulated_likelihood(
        fixed(np.array([[0] * 50, [1] * 50])), hypotheses=2, draws=50, batch=50, rng=1
    )
    certain = only.posterior(1, prior_pmf=[0.5, 0.5])
    assert certain.posterior[1] / certain.posterior[0] == pytest.approx(50.5 / 0.5)


def test_several_cells_and_suppression():
    result = simulated_likelihood(pairs, hypotheses=2, draws=4000, batch=4000, rng=3)
    assert result.values.shape[1] == 2
    assert [SUPPRESSED, SUPPRESSED] in result.values.tolist()
    seen = result.posterior([3, SUPPRESSED], prior_pmf=[0.5, 0.5])
    assert seen.seen[0] == 0
    assert seen.posterior[1] > 0.99
    same = result.posterior([SUPPRESSED, 0], prior_pmf=[0.5, 0.5])
    assert abs(same.posterior[1] - 0.5) < 1e-12  # common streams: the very same draws


def test_streams():
    settings_ = {"hypotheses": 2, "draws": 200, "rng": 5}
    common = simulated_likelihood(noisy, **settings_)
    assert np.array_equal(common.values[common.codes[0]] + 1, common.values[common.codes[1]])
    apart = simulated_likelihood(noisy, **settings_, streams="independent")
    assert not np.array_equal(apart.values[apart.codes[0]] + 1, apart.values[apart.codes[1]])
    again = simulated_likelihood(noisy, **settings_)
    assert np.array_equal(common.codes, again.codes)
    assert (
        common.seed == again.seed != simulated_likelihood(noisy, hypotheses=2, draws=9, rng=6).seed
    )
    first = simulated_likelihood(noisy, hypotheses=2, draws=100, rng=5)
    drawn = common.values[common.codes[1][:100], 0]
    assert np.array_equal(first.values[first.codes[1], 0], drawn)


class Shuffled(ThreadPoolExecutor):
    """Every third item takes longer, so that results arrive in another order."""

    def submit(self, task, item):
        slow = self._work_queue.qsize() % 3 == 0
        return super().submit(lambda: (time.sleep(0.01 * slow), task(item))[1])


@pytest.mark.parametrize("draws", [7, 300])
def test_results_do_not_depend_on_who_draws(draws):
    alone = simulated_likelihood(noisy, hypotheses=2, draws=draws, batch=3, rng=2)
    other = simulated_likelihood(
        noisy, hypotheses=2, draws=draws, batch=3, rng=2, executor=Shuffled(4)
    )
    assert np.array_equal(alone.values[alone.codes], other.values[other.codes])


@pytest.mark.slow
def test_processes_draw_the_same():
    alone = simulated_likelihood(importable_draws, hypotheses=2, draws=64, rng=2)
    other = simulated_likelihood(
        importable_draws, hypotheses=2, draws=64, rng=2, executor=ProcessExecutor(2)
    )
    assert np.array_equal(alone.values[alone.codes], other.values[other.codes])


def test_progress_and_interruption():
    seen = []
    simulated_likelihood(
        noisy, hypotheses=2, draws=130, rng=1, progress=lambda done, all_: seen.append((done, all_))
    )
    assert seen[-1] == (130, 130)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})

    def stop(done, all_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulated_likelihood(noisy, hypotheses=2, draws=130, rng=1, progress=stop)


@pytest.mark.slow
@pytest.mark.parametrize("streams", ["common", "independent"])
@pytest.mark.parametrize(("y", "p"), [(1, 0.5), (3, 0.2), (5, 0.02)])
def test_errors_of_the_posterior_cover_the_exact_one(y, p, streams):
    # Log-odds within 1.96 errors in 95 of 100 runs; counts of a few hundred, so that the bias
    # towards the prior, below 0.5 / 100, is less than a tenth of the error.
    exact = float(br.posterior_probability(y, rho=RHO, prior=p))
    inside, runs = 0, 400
    for seed in range(runs):
        likelihood = simulated_likelihood(
            noisy, hypotheses=2, draws=4000, batch=4000, rng=seed, streams=streams
        )
        result = likelihood.posterior(y, prior_pmf=[1.0 - p, p])
        estimate, error = result.posterior[1], result.error[1]
        inside += abs(np.log(estimate / (1 - estimate)) - np.log(exact / (1 - exact))) <= (
            1.96 * error / (estimate * (1 - estimate))
        )
    low, high = binomial_range(runs, 0.95)
    assert low <= inside <= high


def test_shrinkage_is_towards_the_prior():
    # E log((c1 + a) / (c0 + a)) is nearer 0 than the exact evidence, for the a of Jeffreys.
    y, exact = 6, RHO * 11
    estimates = []
    for seed in range(400):
        likelihood = simulated_likelihood(
            noisy, hypotheses=2, draws=60, batch=60, rng=seed, streams="independent"
        )
        p = likelihood.posterior(y, prior_pmf=[0.5, 0.5]).posterior
        estimates.append(np.log(p[1] / p[0]))
    mean, error = np.mean(estimates), np.std(estimates) / 20.0
    assert 0.0 < mean < exact - 3.0 * error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hypotheses": 1}, "hypotheses must be >= 2, got 1"),
        ({"draws": 1}, "draws must be >= 2, got 1"),
        ({"draws": 2**27}, r"hypotheses \* draws must be at most 134217728, got 268435456"),
        ({"batch": 0}, "batch must be >= 1, got 0"),
        ({"smoothing": 0}, "smoothing must be > 0, got 0"),
        ({"streams": "shared"}, "streams must be one of common, independent, got 'shared'"),
        ({"rng": "x"}, "rng must be a numpy Generator"),
    ],
)
def test_bad_arguments(change, message):
    with pytest.raises(br.ArgumentError, match=message):
        simulated_likelihood(noisy, **{"hypotheses": 2, "draws": 10, "rng": 0, **change})


@pytest.mark.parametrize(
    ("simulate", "message"),
    [
        (3, "simulate must be callable, got 3"),
        (lambda h, rng, size: 1, r"simulate must return shape \(1,\)"),
        (lambda h, rng, size: np.zeros((size, 2, 2), int), "simulate must return shape"),
        (lambda h, rng, size: np.full(size, 0.5), "simulate's result must be a whole number"),
        (lambda h, rng, size: np.zeros((size, 1 + h), int), "the same cells every time"),
        (
            lambda h, rng, size: np.zeros((size, 1 + int(rng.integers(2))), int),
            "the same cells every time|must match exactly",
        ),
    ],
)
def test_bad_simulators(simulate, message):
    with pytest.raises((br.ArgumentError, ValueError), match=message):
        simulated_likelihood(simulate, hypotheses=2, draws=200, rng=0)


def test_bad_observations():
    result = simulated_likelihood(pairs, hypotheses=2, draws=10, rng=0)
    with pytest.raises(
        br.exceptions.ShapeError, match=r"observation must have 2 cells, got shape \(\)"
    ):
        result.probability(1)
    with pytest.raises(
        br.exceptions.ShapeError, match=r"prior_pmf must have shape \(2,\), got \(3,\)"
    ):
        result.posterior([1, 1], prior_pmf=[0.5, 0.3, 0.2])
    with pytest.raises(br.ArgumentError, match="observation must be a whole number"):
        result.probability([0.5, 1])


def test_selection_is_the_same_draws():
    def three(hypothesis, rng, size):
        return rng.integers(0, 3, (size, 3)) + hypothesis

    whole = simulated_likelihood(three, hypotheses=3, draws=50, rng=8)
    part = whole.select(hypotheses=[2, 0], cells=[1])
    expected = whole.values[whole.codes[[2, 0]]][:, :, [1]]
    assert np.array_equal(part.values[part.codes], expected)
    assert (part.draws, part.seed, part.streams) == (50, whole.seed, "common")
    assert part.counts.sum(axis=1).tolist() == [50, 50]
    with pytest.raises(br.ArgumentError, match="cells must be <= 2, got 3"):
        whole.select(hypotheses=[0, 1], cells=[3])
    with pytest.raises(br.ArgumentError, match="hypotheses must be <= 2, got 3"):
        whole.select(hypotheses=[0, 3], cells=[1])

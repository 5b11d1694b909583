"""Intervals of shares whose trials depend on each other."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from interval_coverage import at_random, by_class, coverage
from oracles import linkage as oracle
from scipy import stats

from bayesrisk.exceptions import ArgumentError, SampleWarning, ShapeError
from bayesrisk.risk.intervals import (
    binomial_interval,
    block_moments,
    clustered_interval,
    group_sums,
    guess_moments,
    moment_intervals,
    moment_ratio_intervals,
    number_interval,
    stratified_rates,
)

ROUNDS = 800
#: Blocks of very different sizes, about 12 people each in the middle.
SIZES = {
    "equal": lambda rng, count: np.full(count, 20.0),
    "lognormal": lambda rng, count: np.ceil(rng.lognormal(2.5, 1.5, count)),
    "pareto": lambda rng, count: np.ceil(5.0 * rng.random(count) ** (-1.0 / 1.5)),
}


def ratio_intervals(hits, guessed, trials, groups, n_groups, *, confidence):
    sums, beside = (
        group_sums(rows, groups, n_groups)
        for rows in (block_moments(hits, trials), guess_moments(hits, guessed))
    )
    return moment_ratio_intervals(sums, beside, confidence=confidence)


def intervals(hits, trials, groups, n_groups):
    sums = group_sums(block_moments(hits, trials), groups, n_groups)
    return moment_intervals(sums, confidence=0.95)


def simulated(sizes, blocks, rate, alike, seed):
    """Blocks of many rounds: hits, people and number of the round of each."""
    rng = np.random.default_rng([seed, blocks, round(100 * rate), round(100 * alike)])
    people = SIZES[sizes](rng, ROUNDS * blocks)
    rates = np.full(people.size, rate)
    if alike:
        rest = (1.0 - alike) / alike
        rates = rng.beta(rest * rate, rest * (1.0 - rate), people.size)
    hits = rng.binomial(people.astype(int), rates).astype(float)
    return hits, people, np.repeat(np.arange(ROUNDS), blocks)


def share_within(bounds, truth):
    return np.mean((bounds[0] <= truth) & (truth <= bounds[1]))


@pytest.mark.parametrize("alike", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("rate", [0.77, 0.02])
@pytest.mark.parametrize("blocks", [10, 100])
@pytest.mark.parametrize("sizes", SIZES)
def test_coverage(sizes, blocks, rate, alike):
    """Intervals of 95 % hold the truth nearly as often; the binomial one, a negative control, not.

    With 4,000 rounds coverage is at least 94 %, but for rates near 0 or 1 that depend strongly on
    the block (2 or 3 % of events in blocks that are nearly all or nothing): there at least 85 %.
    """
    hits, people, number = simulated(sizes, blocks, rate, alike, 5)
    found = share_within(intervals(hits, people, number, ROUNDS), rate)
    least = 0.85 if alike == 0.4 and rate != 0.77 else 0.94
    assert found > least - 3.0 * np.sqrt(least * (1.0 - least) / ROUNDS)
    if alike:
        sums = [np.bincount(number, values) for values in (hits, people)]
        naive = share_within(binomial_interval(*sums, confidence=0.95), rate)
        assert naive < (0.9 if alike == 0.1 else 0.85)
        assert naive < found - 0.05


@pytest.mark.parametrize("alike", [0.1, 0.4])
def test_degrees_of_freedom_are_what_few_large_blocks_need(alike):
    """With those of the number of blocks, as if all were of one size, coverage is far too low."""
    hits, people, number = simulated("lognormal", 30, 0.77, alike, 6)

    def by_the_number_of_blocks(y, n):
        share = y.sum() / n.sum()
        variance = 30 / 29 * ((y - share * n) ** 2).sum() / n.sum() ** 2
        few = (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 29)) ** 2
        effective = min(share * (1 - share) / variance * few, n.sum())
        return [
            float(end) for end in binomial_interval(share * effective, effective, confidence=0.95)
        ]

    rows = zip(hits.reshape(-1, 30), people.reshape(-1, 30), strict=True)
    plain = np.array([by_the_number_of_blocks(y, n) for y, n in rows]).T
    assert share_within(plain, 0.77) < 0.91
    found = intervals(hits, people, number, ROUNDS)
    assert share_within(found, 0.77) > 0.94 - 3.0 * np.sqrt(0.94 * 0.06 / ROUNDS)


@pytest.mark.parametrize("blocks", [30, 300])
@pytest.mark.parametrize("sizes", SIZES)
def test_coverage_of_ratios(sizes, blocks):
    """Hits over what a guesser expects to hit in the same blocks, who is better in clear cases."""
    hits, people, number = simulated(sizes, blocks, 0.6, 0.3, 7)
    rng = np.random.default_rng(8)
    guessed = people * rng.beta(4.0, 4.0, people.size)
    bounds = ratio_intervals(hits, guessed, people, number, ROUNDS, confidence=0.95)
    assert share_within(bounds, 0.6 / 0.5) > 0.93 - 3.0 * np.sqrt(0.93 * 0.07 / ROUNDS)
    naive = binomial_interval(
        np.bincount(number, hits), np.bincount(number, people), confidence=0.95
    )
    assert share_within([end / 0.5 for end in naive], 0.6 / 0.5) < 0.6


def test_ratios_without_hits_guesses_or_blocks():
    low, high = ratio_intervals(
        [0, 0, 3, 2, 4], [1, 2, 0, 0, 2], [9, 9, 9, 9, 9], [0, 0, 1, 1, 2], 4, confidence=0.9
    )
    most = clustered_interval(np.zeros(18), np.repeat([0, 1], 9), confidence=0.9)[1]
    assert (low[0], high[0]) == (0.0, pytest.approx(most * 18 / 3, rel=1e-12))
    assert np.isnan([low[1], high[1], low[3], high[3]]).all()  # the guesser never hits; no block
    assert (low[2], high[2]) == (0.0, np.inf)  # one block says nothing of others


BLOCK = st.integers(0, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(st.lists(BLOCK, min_size=1, max_size=12), st.sampled_from([0.5, 0.95]))
@settings(deadline=None)
def test_sums_over_blocks_give_what_whole_matrices_give(blocks, level):
    hits, people = np.array(blocks, float).T
    found = moment_intervals(block_moments(hits, people).sum(axis=1), confidence=level)
    if people.sum() == 0:
        assert (found[0], found[1]) == (0.0, 1.0)
    else:
        expected = oracle.clustered_interval(hits, people, level)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_clusters_of_one_are_no_wider_than_few_clusters_make_it():
    right = np.arange(200) < 120
    low, high = clustered_interval(right, np.arange(200), confidence=0.95)
    exact = stats.binomtest(120, 200).proportion_ci(method="exact")
    assert low <= exact.low + 1e-12
    assert high >= exact.high - 1e-12
    assert high - low < 1.03 * (exact.high - exact.low)  # (1.972 / 1.960) ** 2 fewer trials, n / b


@pytest.mark.parametrize("value", [True, False])
def test_where_all_agree_there_are_as_many_trials_as_clusters(value):
    right = np.full(300, value)
    found = clustered_interval(right, np.arange(300) // 100, confidence=0.9)
    expected = stats.binomtest(3 * value, 3).proportion_ci(0.9, method="exact")
    assert found == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_one_cluster_says_little_and_none_nothing():
    low, high = clustered_interval([True, False] * 50, np.zeros(100), confidence=0.95)
    assert high - low > 0.9
    assert clustered_interval([], [], confidence=0.95) == (0.0, 1.0)


@pytest.mark.parametrize("law", ["few large blocks", "more large blocks"])
def test_a_rate_that_falls_with_the_size_is_held_by_strata(law):
    """A random sample without large blocks, the negative control, misses on one side."""
    rounds = 150
    _, found, *_ = coverage(law, 1083, by_class, rounds)
    assert found > 0.93 - 3 * np.sqrt(0.93 * 0.07 / rounds)
    alone, *_ = coverage(law, 1083, at_random, rounds)
    assert alone < 0.93 - (0.02 if law == "more large blocks" else 0.1)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 0.95]))
def test_strata_are_cochrans_by_leaving_out_blocks(seed, level):
    rng = np.random.default_rng(seed)
    strata = []
    for first in (8, 32, 128):
        frame = rng.integers(first, 2 * first, rng.integers(3, 9))
        people = frame[: rng.integers(2, frame.size + bool(strata))]  # one class is not whole
        trials = rng.integers(3, people + 1)
        strata.append((list(zip(rng.integers(0, trials + 1), trials, people, strict=True)), frame))
    blocks = strata[0][0]
    blocks[:2] = [(1, 3, blocks[0][2]), (0, 2, blocks[1][2])]
    sample = np.concatenate([blocks for blocks, _ in strata]).T
    every = np.concatenate([frame for _, frame in strata])
    found = stratified_rates(*sample, frame_sizes=every, confidence=level).iloc[-1]
    expected = oracle.stratified_rate(strata, level)
    np.testing.assert_allclose(found[["rate", "lower", "upper"]].astype(float), expected, rtol=1e-7)


def test_classes_without_a_block_join_the_next_smaller_and_are_told():
    with pytest.warns(SampleWarning, match=r"2 blocks of 500 to 900 people.*1400 of 1484"):
        rates = stratified_rates(
            [3, 5, 6, 20],
            [8, 9, 10, 30],
            [8, 9, 10, 30],
            frame_sizes=[8, 9, 10, 12, 30, 15, 500, 900],
        )
    assert rates["people"].tolist() == ["8-1023", "All"]
    assert rates.loc[1, "rate"] == pytest.approx(34 / 57)
    sparse = stratified_rates([2, 9, 9], [4, 20, 20], [4, 20, 20], frame_sizes=[4, 5, 20, 20, 21])
    assert sparse["people"].tolist() == ["1-31", "All"]  # the smallest join those above


def test_a_frame_that_was_sampled_whole_leaves_nothing_open():
    rates = stratified_rates([1, 2, 60], [4, 5, 90], [4, 5, 90], frame_sizes=[90, 4, 5])
    assert rates.iloc[-1][["rate", "lower", "upper"]].tolist() == [63 / 99] * 3
    assert rates["blocks"].tolist() == [2, 1, 3]
    none = stratified_rates([0, 0], [0, 0], [4, 5], frame_sizes=[4, 5, 6]).iloc[-1]
    assert np.isnan(none["rate"])
    assert none[["lower", "upper"]].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("given_", "error", "said"),
    [
        (([2], [1], [5], [5]), ArgumentError, "hits must be at most trials, got 2 of 1"),
        (([1], [1], [5], [6]), ArgumentError, "frame_sizes must hold .* 1 too few of 5 people"),
        (([1], [1], [0], [5]), ArgumentError, "sizes must be >= 1"),
        (([1, 1], [1], [5], [5]), ShapeError, r"\(2,\), \(1,\)"),
    ],
)
def test_samples_that_cannot_be_are_refused(given_, error, said):
    *sample, frame = given_
    with pytest.raises(error, match=said):
        stratified_rates(*sample, frame_sizes=frame)


def hypergeometric_ends(seen, asked, everybody, confidence):
    """Every number that the seen one does not refute, tried one by one."""
    tail = (1.0 - confidence) / 2.0
    number = np.arange(seen, everybody - asked + seen + 1)
    few = stats.hypergeom.cdf(seen, everybody, number, asked)
    many = stats.hypergeom.sf(seen - 1, everybody, number, asked)
    kept = number[(few > tail) & (many > tail)]
    return int(kept[0]), int(kept[-1])


@given(st.integers(1, 300), st.data())
def test_a_number_in_a_finite_population_is_clopper_and_pearsons(everybody, data):
    asked = data.draw(st.integers(1, everybody))
    seen = data.draw(st.integers(0, asked))
    level = data.draw(st.sampled_from([0.5, 0.9, 0.95]))
    found = number_interval((seen, seen), asked, everybody, confidence=level)
    assert found == hypergeometric_ends(seen, asked, everybody, level)
    if asked == everybody:
        assert found == (seen, seen)


def test_a_number_in_a_nation_is_that_of_the_binomial_law():
    low, high = number_interval((3, 3), 500, 300_000_000, confidence=0.95)
    shares = binomial_interval(3, 500, confidence=0.95)
    np.testing.assert_allclose([low / 3e8, high / 3e8], shares, rtol=1e-4)

"""Intervals of shares whose trials depend on each other."""

import numpy as np
import pytest
from scipy import stats

from bayesrisk.risk._intervals import binomial_interval, clustered_interval


def test_the_interval_covers_where_trials_stand_and_fall_together():
    """The binomial one, a negative control, does not."""
    rng = np.random.default_rng(41)
    truth, rounds, covered, naive = 0.6, 1000, 0, 0
    for _ in range(rounds):
        size = rng.integers(20, 40, 30)
        place = np.repeat(np.arange(30), size)
        right = np.repeat(rng.random(30) < truth, size)
        low, high = clustered_interval(right, place, level=0.95)
        covered += low <= truth <= high
        low, high = binomial_interval(right.sum(), right.size, level=0.95)
        naive += low <= truth <= high
    assert covered / rounds > 0.95 - 3 * np.sqrt(0.95 * 0.05 / rounds)
    assert naive / rounds < 0.5


def test_clusters_of_one_are_no_wider_than_few_clusters_make_it():
    right = np.arange(200) < 120
    low, high = clustered_interval(right, np.arange(200), level=0.95)
    exact = stats.binomtest(120, 200).proportion_ci(method="exact")
    assert low <= exact.low + 1e-12
    assert high >= exact.high - 1e-12
    assert high - low < 1.03 * (exact.high - exact.low)  # (1.972 / 1.960) ** 2 fewer trials, n / b


@pytest.mark.parametrize("value", [True, False])
def test_where_all_agree_there_are_as_many_trials_as_clusters(value):
    right = np.full(300, value)
    found = clustered_interval(right, np.arange(300) // 100, level=0.9)
    expected = stats.binomtest(3 * value, 3).proportion_ci(0.9, method="exact")
    assert found == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_one_cluster_says_little_and_none_nothing():
    low, high = clustered_interval([True, False] * 50, np.zeros(100), level=0.95)
    assert high - low > 0.9
    assert clustered_interval([], [], level=0.95) == (0.0, 1.0)

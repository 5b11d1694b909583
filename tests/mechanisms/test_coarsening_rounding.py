"""Rounding against its definition and its likelihood; and no protection at all."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles.mechanisms import AGES, SEX, people_workload, population
from scipy import stats

from bayesrisk.mechanisms import Identity, Rounding
from bayesrisk.release import RoundingSpec
from bayesrisk.tables import tabulate

counts = st.lists(st.integers(0, 10**6), min_size=1, max_size=20)


@given(counts, st.integers(2, 1000))
def test_nearest_with_halves_up(values, base):
    found = Rounding(base=base, method="nearest").round(np.array(values), np.random.default_rng(0))
    for value, rounded in zip(values, found.tolist(), strict=True):
        low = value - value % base
        assert rounded == (low if 2 * (value - low) < base else low + base)


@given(counts, st.integers(2, 1000), st.integers(0, 2**32))
def test_random_takes_a_neighbour(values, base, seed):
    rng = np.random.default_rng(seed)
    found = Rounding(base=base, method="random").round(np.array(values), rng)
    for value, rounded in zip(values, found.tolist(), strict=True):
        low = value - value % base
        assert rounded in ({low} if value == low else {low, low + base})


@pytest.mark.parametrize("count", [1, 3, 7])
def test_random_follows_its_likelihood(count):
    rounding = Rounding(base=5, method="random")
    drawn = rounding.round(np.full(20_000, count), np.random.default_rng(count))
    below = count // 5 * 5
    share = RoundingSpec(5, "random").probability(below, count)
    assert stats.binomtest(int((drawn == below).sum()), drawn.size, float(share)).pvalue > 1e-3
    wrong = RoundingSpec(5, "random").probability(below, count + 1)
    assert stats.binomtest(int((drawn == below).sum()), drawn.size, float(wrong)).pvalue < 1e-9


@pytest.mark.parametrize("method", ["nearest", "random"])
def test_tables_are_rounded_cell_by_cell(method):
    data, asked = population(4), people_workload(SEX, AGES)
    made = Rounding(base=3, method=method).release(data, workload=asked, rng=1)
    truth = tabulate(data, asked)
    for key, table in made.tables.counts.items():
        rounded, true = table.toarray(), truth.counts[key].toarray()
        assert np.all(rounded % 3 == 0)
        assert np.all(made.spec.likelihood(*key).probability(rounded, true) > 0)
        assert np.all(rounded[true == 0] == 0)


def test_identity_publishes_the_truth():
    data, asked = population(4), people_workload(SEX, AGES)
    made = Identity().release(data, workload=asked, rng=0)
    assert made.tables == tabulate(data, asked)
    assert set(made.spec.invariants) == set(asked.tables)

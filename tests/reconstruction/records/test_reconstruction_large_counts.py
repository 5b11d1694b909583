"""Memory does not depend on how large counts are, or what would need it is refused with a bound."""

import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from bayesrisk import ArgumentError, PublishedTables
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.reconstruction import (
    count_bounds,
    find_claims,
    reconstruct,
    record_form,
    solution_variability,
)

LABELS = [("F", "A"), ("F", "B"), ("M", "A"), ("M", "B"), ("Total", "A"), ("Total", "B"),
          ("F", "Total"), ("M", "Total"), ("Total", "Total")]  # fmt: skip
MOST = 2**24  # bytes of a handful of counts; a byte for each of 8e9 people is 500 times as much


def town(cells, hidden):
    """Return the tables of two sexes by two wards with their totals, some counts withheld."""
    (a, b), (c, d) = np.reshape(cells, (2, 2)).tolist()
    counts = [a, b, c, d, a + c, b + d, a + b, c + d, a + b + c + d]
    texts = ["*" if i in hidden else str(n) for i, n in enumerate(counts)]
    frame = pd.DataFrame(LABELS, columns=["sex", "ward"]).assign(count=texts)
    return PublishedTables.from_frame(
        frame, counts="exact", totals="complete", marks={"*": "withheld"}
    )


@pytest.fixture
def traced():
    """Return a call that fails where Python and NumPy hold more than ``MOST`` bytes at a time."""
    small = town([3, 1, 2, 4], {1, 3})
    for first in (count_bounds, lambda t: solution_variability(t, scope="all")):
        first(small)  # what is compiled or imported once is not counted

    def call(function, *arguments, **options):
        tracemalloc.start()
        try:
            result = function(*arguments, **options)
            assert tracemalloc.get_traced_memory()[1] < MOST
        finally:
            tracemalloc.stop()
        return result

    return call


@settings(max_examples=10, deadline=None)
@given(
    cells=st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    hidden=st.sets(st.integers(0, 7), max_size=5),
)
def test_bounds_grow_with_the_counts(cells, hidden):
    """A table of two ways is a network: bounds of counts k times as large are so, too."""
    k = 900_000_000
    one, many = (count_bounds(town(np.array(cells) * f, hidden)).counts for f in (1, k))
    assert (one[["low", "high"]] * k).equals(many[["low", "high"]])


def test_the_memory_of_bounds_and_records_is_that_of_small_counts(traced):
    tables = town(np.array([3, 1, 2, 4]) * 10**9, {1, 3})
    assert traced(count_bounds, tables).counts["low"].max() == 10**10
    found = traced(reconstruct, tables, scope="all")
    assert found.histogram().toarray().tolist() == [[3 * 10**9, 10**9, 2 * 10**9, 4 * 10**9]]
    spread = traced(solution_variability, tables, scope="all", solution=found)
    assert spread.upper.tolist() == [0]
    nearest = town(np.array([3, 1, 2, 4]) * 10**9, ())
    assert traced(reconstruct, nearest, scope="all", nearest=True).population.tolist() == [10**10]


def test_what_has_a_row_for_each_record_is_refused(traced):
    tables = town(np.array([3, 1, 2, 4]) * 10**9, {1, 3})
    found = reconstruct(tables, scope="all")
    for wanted in (found.to_frame, lambda: record_form(found), lambda: find_claims(tables).rows):
        with pytest.raises(ArgumentError, match=r"must count at most .* got 10000000000"):
            traced(wanted)


def test_posteriors_of_too_many_people_are_refused(traced):
    tables = town(np.array([3, 1, 2, 4]) * 10**9, {1, 2, 3, 6, 7})
    asked = RecordQuestion({"sex": [0], "ward": [1]}, at_least=1)
    prior = RecordPrior.uniform_data_sets(tables.workload.schema)
    for engine in ("auto", "exact", "lattice"):
        with pytest.raises(ArgumentError, match="must leave at most 16777216 records to each kind"):
            traced(
                microdata_posterior, tables, [asked], level="all", place="", prior=prior,
                engine=engine, rng=1,
            )  # fmt: skip


def test_rounded_counts_of_millions_take_no_longer_than_small_ones():
    """Counts in thousands, whose sums are off by what rounding allows: a climb finds records."""
    rng = np.random.default_rng(3)
    true = rng.integers(10**5, 10**6, (7, 2))
    table = np.c_[np.r_[true, [true.sum(axis=0)]], np.r_[true.sum(axis=1), true.sum()]]
    frame = pd.DataFrame((table + 500) // 1000 * 1000, columns=["M", "F", "Total"])
    frame.insert(0, "area", [*"abcdefg", "Total"])
    tables = PublishedTables.from_frame(
        frame, counts="nearest-1000", totals="complete", labels={"area": {"Total": "all"}}
    )
    count_bounds(tables)  # what is compiled once is not counted
    began = time.process_time()
    found = reconstruct(tables, scope="all")
    assert time.process_time() - began < 5
    assert found.count.sum() > 10**6
    ends = count_bounds(tables).counts
    assert (ends["low"] <= ends["published"] + 500).all()

"""Ranges and thresholds against their definitions, and the rules of agencies, count by count."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles.mechanisms import AGES, SEX, people_workload, population

from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.mechanisms.coarsening import Ranges, Threshold
from bayesrisk.release import MechanismSpec, RangeSpec, RoundingSpec, SuppressedCounts, TrueCounts
from bayesrisk.tables import tabulate
from bayesrisk.tables.likelihoods import UNBOUNDED

EXAMPLE = {
    "ranges": {"edges": [0, 1, 3, 6, 10]},
    "threshold": {"least": 5},
}
#: Of each rule what is published for some counts, by its source; where that is drawn, the chance of
#: each number.
RULES = {
    "cms-11": {0: 0, 1: 1, 10: 1, 11: 11, 250: 250},
    "nearest-5": {0: 0, 2: 0, 3: 5, 7: 5, 8: 10, 12: 10},
    "ons-10-5": {0: 0, 9: 0, 10: 10, 12: 10, 13: 15, 17: 15, 18: 20, 102: 100, 103: 105},
    "opensafely-midpoint-6": {0: 0, 1: 3, 6: 3, 7: 9, 12: 9, 13: 15},
}
COARSE = {**EXAMPLE, **{name: {} for name in RULES}}


@st.composite
def range_laws(draw):
    """Return a random law of ranges and the numbers by which it is stated."""
    widths = draw(st.lists(st.integers(1, 9), max_size=6))
    edges = [0, *np.cumsum(widths).tolist()]
    gaps = draw(st.lists(st.integers(1, 9), min_size=len(edges), max_size=len(edges)))
    values = (np.cumsum(gaps) - draw(st.integers(0, 1))).tolist()
    step = draw(st.none() | st.integers(1, 7))
    return RangeSpec(tuple(edges), tuple(values), step), edges, values, step


def number_of(count, edges, values, step):
    """Return what is published for a count: by the definition, one range after the other."""
    at = max(i for i, edge in enumerate(edges) if edge <= count)
    if at < len(edges) - 1 or step is None:
        return values[at]
    low, value = edges[at], values[at]
    while low + step <= count:
        low, value = low + step, value + step
    return value


@given(range_laws())
def test_ranges_are_those_that_are_stated(stated):
    law, edges, values, step = stated
    counts = np.arange(90)
    published = [number_of(count, edges, values, step) for count in counts.tolist()]
    assert law.publish(counts).tolist() == published
    for number in range(-2, 70):
        low, high = (int(end) for end in law.support(number))
        inside = np.flatnonzero(np.equal(published, number))
        if not inside.size:
            assert low > high
            continue
        assert low == inside[0]
        open_top = step is None and number == values[-1]
        assert high == (UNBOUNDED if open_top else inside[-1])
        assert np.array_equal(law.probability(number, counts) == 1.0, np.equal(published, number))
    assert MechanismSpec.from_dict(MechanismSpec("x", {}, {}, law).to_dict()).others == law


@pytest.mark.parametrize("method", ["nearest", "random"])
@pytest.mark.parametrize("base", [1, 2, 3, 5, 6])
def test_supports_of_rounding_are_where_its_likelihood_is(base, method):
    law, counts = RoundingSpec(base, method), np.arange(60)
    for number in range(-base, 40):
        low, high = (int(end) for end in law.support(number))
        inside = np.flatnonzero(law.probability(number, counts) > 0.0)
        assert (low > high) if not inside.size else (low, high) == (inside[0], inside[-1])


@pytest.mark.parametrize(
    ("law", "exact"),
    [
        (RangeSpec((0,), (0,), 1), True),
        (RangeSpec((0, 1), (0, 1), 1), True),
        (RangeSpec((0, 1), (0, 2), 1), False),
        (RangeSpec((0, 1), (0, 1)), False),
        (RangeSpec((0,), (0,), 2), False),
        (RoundingSpec(1, "random"), True),
        (RoundingSpec(2, "nearest"), False),
    ],
)
def test_ranges_of_one_count_are_that_count(law, exact):
    assert law.exact is exact
    if exact:
        assert [end.tolist() for end in law.support([0, 1, 7])] == [[0, 1, 7]] * 2
        assert not law.random


@pytest.mark.parametrize("name", RULES)
def test_rules_of_agencies_publish_what_they_say(name):
    law = make_mechanism(name).spec.others
    for count, published in RULES[name].items():
        chances = published if isinstance(published, dict) else {published: 1.0}
        assert sum(chances.values()) == pytest.approx(1.0, abs=1e-15)
        for number, chance in chances.items():
            assert law.probability(number, count) == pytest.approx(chance, abs=1e-15)


@pytest.mark.parametrize("name", COARSE)
def test_every_count_is_coarsened_by_itself(name):
    data, asked = population(4), people_workload(SEX, AGES)
    truth = tabulate(data, asked)
    mechanism = make_mechanism(name, **COARSE[name])
    made = mechanism.release(data, workload=asked)
    assert not any(law.random for law in made.spec.tables.values())
    for key, table in made.tables.counts.items():
        low, high = made.tables.support(*key)
        true = truth.counts[key].toarray()
        assert np.all((low <= true) & (true <= high))
        assert made.tables.laws[key] == mechanism.spec.others
        again = made.spec.likelihood(*key).probability(table.toarray(), true)
        assert np.all(again == 1.0)


def test_tables_without_a_record_are_coarsened():
    data, asked = population(4), people_workload(SEX, AGES)
    nobody = data.persons.take(np.zeros(len(data.persons), np.bool_))
    for name in ("ranges", "ons-10-5"):
        mechanism = make_mechanism(name, **COARSE[name])
        made = mechanism.release(nobody, workload=asked, places=np.unique(data.persons.geoids))
        assert all(part.nnz == 0 for part in made.tables.counts.values())


def test_a_rule_bounds_what_it_withholds():
    data, asked = population(4), people_workload(SEX, AGES)
    truth = tabulate(data, asked)
    for complementary, most in ((False, 2), (True, UNBOUNDED)):
        mechanism = make_mechanism("suppression", threshold=3, complementary=complementary)
        made = mechanism.release(data, workload=asked)
        found = 0
        for key in truth.counts:
            true, hidden = truth.counts[key].toarray(), made.tables.hidden(*key).toarray()
            low, high = made.tables.support(*key)
            assert np.all((low <= true) & (true <= high))
            assert np.all(low[hidden] == 1)
            assert np.all(high[hidden] == most)
            assert np.array_equal(low[~hidden], high[~hidden])
            secret = made.tables.support(*key, known_rule=False)
            assert np.all(secret[0][hidden] == 0)
            assert np.all(secret[1][hidden] == UNBOUNDED)
            found += int(hidden.sum())
        assert found > 0
    assert TrueCounts().rule is None
    assert SuppressedCounts(0, 4).rule.support(0) == (0, 4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"edges": [1, 3]}, "edges must begin with 0, got 1"),
        ({"edges": [0, 3, 3]}, r"edges must be increasing numbers, got \[0, 3, 3\]"),
        ({"edges": [0, 5, 3]}, "edges must be increasing"),
        ({"edges": []}, "edges must not be empty"),
        ({"edges": [0, 3], "values": [0]}, r"values must be as many as edges \(2\), got 1"),
        ({"edges": [0, 3], "values": [2, 2]}, "values must be increasing"),
        ({"edges": [0, 3], "step": 0}, "step must be"),
    ],
)
def test_ranges_that_overlap_or_miss_counts_are_refused(options, said):
    with pytest.raises(ArgumentError, match=said):
        Ranges(**options)


@pytest.mark.parametrize("options", [{"least": 1}, {"least": 5, "zeros": "gone"}])
def test_thresholds_are_checked(options):
    with pytest.raises(ArgumentError, match=r"least must be|zeros must be"):
        Threshold(**options)

"""Suppression against integer programs over whole histograms, written apart from the package."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles.mechanisms import AGES, SEX, TOTAL, people_workload, population
from oracles.suppression import Program, kinds, recovered, weights
from scipy import sparse

from bayesrisk.census import population_spec, simulate_population
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.mechanisms import Suppression, audit_suppression
from bayesrisk.mechanisms.suppression import groups as _integer_range
from bayesrisk.mechanisms.suppression.groups import table_cliques
from bayesrisk.tables import (
    Attribute,
    Geography,
    PublishedTables,
    Records,
    Schema,
    Table,
    Workload,
    tabulate,
)

TOWNS = Geography("towns", ("town",), (1,))
CUBE = Schema("cube", tuple(Attribute(name, 3) for name in "abc"), TOWNS)


def cross(*names, schema=CUBE):
    """Return the table of all combinations of attributes."""
    sizes = [schema.attribute(name).size for name in names]
    cells = list(itertools.product(*(range(size) for size in sizes)))
    factors = {
        name: np.array([[code == cell[at] for code in range(sizes[at])] for cell in cells]).astype(
            np.int64
        )
        for at, name in enumerate(names)
    }
    return Table(
        "".join(names) or "all", tuple("-".join(map(str, c)) or "all" for c in cells), factors
    )


TWO_WAY = Workload(CUBE, {("town", t.name): t for t in (cross(*"ab"), cross(*"bc"), cross(*"ac"))})


def cube_records(seed, size, towns=1):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.choice(3, size, p=[0.6, 0.3, 0.1]) for name in "abc"})
    frame["town"] = [str(t) for t in rng.integers(towns, size=size)]
    return Records.from_frame(frame, schema=CUBE)


def withheld(tables, hidden):
    """Return tables with cells withheld: hidden(counts) is a mask of each table."""
    masks = {key: hidden(part.toarray()) for key, part in tables.counts.items()}
    counts = {
        key: sparse.csr_array(np.where(masks[key], 0, part.toarray()))
        for key, part in tables.counts.items()
    }
    return replace(
        tables, counts=counts, suppressed={k: sparse.csr_array(m) for k, m in masks.items()}
    )


def by_name(ranges):
    frame = ranges.to_frame()
    names = zip(frame["level"], frame["geoid"], frame["table"], frame["cell"], strict=True)
    return dict(zip(names, zip(frame["lower"], frame["upper"], strict=True), strict=True))


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(0, 1), st.integers(0, 2**32))
def test_ranges_are_those_of_the_independent_program(seed, size, least, mask):
    truth = tabulate(cube_records(seed, size), TWO_WAY)
    rng = np.random.default_rng(mask)
    # Zeros too may be withheld where nothing says that a withheld count is above 0.
    shown = withheld(truth, lambda c: (rng.random(c.shape) < 0.5) & (c >= least))
    ranges = audit_suppression(shown, least=least)
    assert ranges.proved.all()
    (town,) = truth.geoids["town"].tolist()
    assert by_name(ranges) == Program(shown, town, least=least).ranges()


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_ranges_are_those_of_a_list_of_all_histograms(seed, size):
    asked = TWO_WAY.union(Workload(CUBE, {("town", "all"): cross()})).select(
        tables=["all", "ab", "bc"]
    )
    truth = tabulate(cube_records(seed, size), asked)
    shown = withheld(truth, lambda c: (c > 0) & (c < 3) & (c.shape[1] > 1))
    rows = np.concatenate([weights(t, CUBE, kinds(truth)) for t in asked.tables.values()])
    counts = np.concatenate([c.toarray()[0] for c in shown.counts.values()])
    hidden = np.concatenate([shown.hidden(*key).toarray()[0] for key in asked.tables])
    live = rows[:, ~(rows[(counts == 0) & ~hidden] > 0).any(axis=0)]
    possible = []
    for records in itertools.combinations_with_replacement(range(live.shape[1]), size):
        sums = live[:, list(records)].sum(axis=1)
        if np.array_equal(sums[~hidden], counts[~hidden]):
            possible.append(sums[hidden])
    ranges = audit_suppression(shown)
    assert ranges.lower.tolist() == np.min(possible, axis=0).tolist()
    assert ranges.upper.tolist() == np.max(possible, axis=0).tolist()


def three_of_four(hidden):
    """Return a release whose relaxation is wider than its whole solutions."""
    schema = Schema("four", (Attribute("kind", 4),), TOWNS)
    sets = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 0, 1]])
    table = Table("sets", ("01", "12", "02", "3"), {"kind": sets})
    counts = sparse.csr_array(np.array([[1, 1, 1, 0]]))
    mask = {("town", "sets"): sparse.csr_array(np.array([[False, False, False, hidden]]))}
    asked = Workload(schema, {("town", "sets"): table})
    return PublishedTables(asked, {"town": np.array(["1"])}, {("town", "sets"): counts}, mask)


def test_whole_numbers_say_more_than_real_ones():
    # A half of each of the first three kinds fits as well as one of the fourth.
    ranges = audit_suppression(three_of_four(hidden=True))
    assert (ranges.lower.tolist(), ranges.upper.tolist()) == ([1.0], [1.0])
    assert ranges.recovered.all()
    assert ranges.proved.all()
    with pytest.raises(DataError, match="contradict"):
        Suppression(threshold=2).suppress(replace(three_of_four(hidden=False), suppressed={}))


def test_a_search_that_gives_up_says_so(monkeypatch):
    monkeypatch.setattr(_integer_range, "_NODES", 1)
    ranges = audit_suppression(three_of_four(hidden=True))
    assert not ranges.proved.any()
    assert ranges.lower.tolist() == [0.0]
    assert ranges.upper.tolist() == [1.0]
    assert not ranges.recovered.any()


def test_what_the_rule_says_is_used():
    # Ten in all, nine of them published: the two that are left are one each.
    counts = np.array([[10, 8, 1, 1]])
    table = Table("t", ("all", "0", "1", "2"), {"a": np.array([[1, 1, 1], *np.eye(3)]).astype(int)})
    asked = Workload(CUBE, {("town", "t"): table})
    truth = PublishedTables(
        asked, {"town": np.array(["1"])}, {("town", "t"): sparse.csr_array(counts)}
    )
    shown = withheld(truth, lambda c: c == 1)
    assert not audit_suppression(shown).recovered.any()
    ranges = audit_suppression(shown, least=1)
    assert ranges.recovered.all()
    assert (audit_suppression(shown, least=0, most=1).lower == 1).all()
    protected = Suppression(threshold=3).suppress(truth)
    assert not audit_suppression(protected, least=1).recovered.any()
    for least, most, match in ((-1, None, "least must be >= 0"), (2, 1, "most must be >= 2")):
        with pytest.raises(ArgumentError, match=match):
            audit_suppression(shown, least=least, most=most)
    with pytest.raises(DataError, match="contradict"):
        audit_suppression(shown, least=2)


@pytest.mark.parametrize("seed", range(3))
def test_three_two_way_margins_give_nothing_back(seed):
    records = cube_records(seed, 120, towns=6)
    bare = Suppression(threshold=4, complementary=False)
    bare = bare.release(records, workload=TWO_WAY, places="occupied").tables
    assert recovered(bare)  # there is something to protect
    protected = (
        Suppression(threshold=4).release(records, workload=TWO_WAY, places="occupied").tables
    )
    assert recovered(protected) == []
    assert recovered(protected, least=1) == []
    ranges = audit_suppression(bare)
    found = {name for name, (low, high) in by_name(ranges).items() if low == high}
    assert found == set(recovered(bare))
    looked_for = Suppression(threshold=4).suppress(tabulate(records, TWO_WAY))
    assert recovered(looked_for, least=1) == []


HOUSEHOLDS = ["P16", "P16A", "P16H", "H4", "H4A", "H4H", "H9", "H10", "H12", "H15"]
ASKED = {
    "persons": Workload.named("sf1-block"),
    "households": Workload.named("household-dhc").select(tables=HOUSEHOLDS),
}


@pytest.mark.parametrize(
    ("unit", "blocks", "most"),
    [("households", 60, 0), pytest.param("persons", 153, 50, marks=pytest.mark.slow)],
)
def test_records_of_a_tract_give_nothing_back(unit, blocks, most):
    people = simulate_population(population_spec("tract", n_blocks=blocks), rng=3)
    made = Suppression(threshold=3).release(people, workload=ASKED[unit], rng=0).tables
    ranges = audit_suppression(made, least=1)
    assert ranges.proved.all()
    assert not ranges.recovered.any()
    # Every eighth block by the independent program, which takes longer.
    some = made.geoids["block"].tolist()[::8]
    assert recovered(made, least=1, roots=some) == []
    bare = Suppression(threshold=3, complementary=False)
    bare = bare.release(people, workload=ASKED[unit], rng=0).tables
    audited = by_name(audit_suppression(bare, least=1))
    lost = set(recovered(bare, least=1, roots=some))
    assert {n for n, (low, high) in audited.items() if low == high and n[1] in some} == lost
    assert len(lost) > most


@settings(max_examples=12)
@given(st.integers(0, 2**32), st.integers(3, 25))
def test_cliques_lose_nothing(seed, size):
    # a-b and b-c meet in b; d is apart; the total ties them together.
    schema = Schema("four", tuple(Attribute(name, 2) for name in "abcd"), TOWNS)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(2, size=size) for name in "abcd"})
    frame["town"] = "1"
    tables = [cross(*names, schema=schema) for names in (("a", "b"), ("b", "c"), ("d",))]
    asked = Workload(schema, {("town", t.name): t for t in tables})
    assert {frozenset(names) for names in table_cliques(asked).members} == {
        frozenset("ab"),
        frozenset("bc"),
        frozenset("d"),
    }
    truth = tabulate(Records.from_frame(frame, schema=schema), asked)
    shown = withheld(truth, lambda c: rng.random(c.shape) < 0.5)
    assert by_name(audit_suppression(shown)) == Program(shown, "1").ranges()
    made = Suppression(threshold=4).suppress(truth)
    assert recovered(made, least=1) == []


def test_ten_attributes_need_thousands_of_cells():
    cliques = table_cliques(Workload.named("household-dhc"))
    assert Workload.named("household-dhc").schema.size > 50_000_000
    assert cliques.size < 20_000


@settings(max_examples=10)
@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(1, 3), st.integers(3, 40))
def test_levels_with_other_tables_give_nothing_back(seed, threshold, protection, households):
    # Ages by sex of the tract, ages and sexes apart of its blocks, a total above.
    sexes, ages = np.repeat(np.eye(2, dtype=np.int64), 3, axis=0), AGES.factors["age"]
    both = Table("pairs", tuple("abcdef"), {"sex": sexes, "age": np.tile(ages, (2, 1))})
    asked = (
        people_workload(TOTAL, levels=("county", "block"))
        .union(people_workload(both, levels=("tract",)))
        .union(people_workload(SEX, AGES, levels=("block",)))
    )
    people = population(seed, blocks=6, households=households)
    mechanism = Suppression(threshold=threshold, protection=protection)
    made = mechanism.release(people, workload=asked, rng=0).tables
    assert recovered(made, least=1) == []
    ranges = audit_suppression(made, least=1)
    assert np.all(ranges.upper - ranges.lower >= protection)
    bare = Suppression(threshold=threshold, complementary=False)
    bare = bare.release(people, workload=asked, rng=0).tables
    found = {n for n, (low, high) in by_name(audit_suppression(bare)).items() if low == high}
    assert found == set(recovered(bare))


def test_weights_above_one_are_sums_too():
    # Two for each man: 2 men + women = 5 and 3 people make 2 men.
    counts = {"sum": [[5]], "sex": [[3, 2, 1]]}
    heads = Table("sum", ("twice",), {"sex": np.array([[2, 1]])})
    asked = people_workload(heads, SEX, levels=("block",))
    tables = PublishedTables(
        asked,
        {"block": np.array(["100"])},
        {("block", name): sparse.csr_array(np.array(c)) for name, c in counts.items()},
    )
    shown = withheld(tables, lambda c: c < 3)
    assert audit_suppression(shown).recovered.all()
    assert recovered(shown) == [("block", "100", "sex", "men"), ("block", "100", "sex", "women")]
    made = Suppression(threshold=3).suppress(tables)
    assert recovered(made, least=1) == []


def test_a_level_without_a_place_is_refused():
    truth = tabulate(population(1), people_workload(SEX, levels=("tract", "block")))
    places = {**truth.geoids, "tract": truth.geoids["tract"][1:]}
    counts = {
        (level, name): part[1:] if level == "tract" else part
        for (level, name), part in truth.counts.items()
    }
    with pytest.raises(DataError, match="must have every tract, got none of '10'"):
        audit_suppression(PublishedTables(truth.workload, places, counts))


def test_counts_that_products_cannot_hold_are_refused():
    counts = sparse.csr_array(np.array([[2**31, 2**31 - 1, 1]]))
    asked = people_workload(SEX, levels=("block",))
    tables = PublishedTables(asked, {"block": np.array(["100"])}, {("block", "sex"): counts})
    with pytest.raises(DataError, match="counts must be below 2147483648"):
        Suppression(threshold=2).suppress(tables)
    counts = sparse.csr_array(np.array([[2**31 - 1, 2**31 - 2, 1]]))
    smaller = replace(tables, counts={("block", "sex"): counts})
    shown = withheld(smaller, lambda c: c == 1)
    assert audit_suppression(shown).lower.tolist() == [1.0]
    made = Suppression(threshold=2).suppress(smaller)
    assert not audit_suppression(made, least=1).recovered.any()

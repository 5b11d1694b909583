"""Suppression against brute force: what is withheld, and what anybody can still work out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from oracles.mechanisms import AGES, PEOPLE, SEX, people_workload, population, possible_counts
from scipy import sparse

from bayesrisk.constraints.ends import FormEnds
from bayesrisk.constraints.highs import HighsWarm
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.mechanisms import Suppression, audit_suppression
from bayesrisk.tables import PublishedTables, Records, tabulate

# Men and women by block, with a total of each block and of the tract: a two-way table.
TWO_WAY = people_workload(SEX, levels=("tract", "block"))
SUMS = [
    *(
        ((place, "all"), [(place, "men"), (place, "women")])
        for place in ("10", "100", "101", "102")
    ),
    *((("10", cell), [(b, cell) for b in ("100", "101", "102")]) for cell in SEX.cells),
]


def two_way(inner, hidden=()):
    """Return published tables of three blocks from counts (blocks, sexes), some cells hidden."""
    counts = np.array(inner, dtype=np.int64)
    blocks = np.column_stack([counts.sum(axis=1), counts])
    every = {"block": blocks, "tract": blocks.sum(axis=0, keepdims=True)}
    places = {"tract": np.array(["10"]), "block": np.array(["100", "101", "102"])}
    masks = {level: np.zeros(c.shape, dtype=bool) for level, c in every.items()}
    for place, cell in hidden:
        level = "tract" if len(place) == 2 else "block"
        masks[level][places[level].tolist().index(place), SEX.cells.index(cell)] = True
    tables = PublishedTables(
        TWO_WAY,
        places,
        {
            (level, "sex"): sparse.csr_array(np.where(masks[level], 0, c))
            for level, c in every.items()
        },
        {(level, "sex"): sparse.csr_array(mask) for level, mask in masks.items()},
    )
    named = {
        (place, cell): None if masks[level][i, j] else int(every[level][i, j])
        for level, of_level in places.items()
        for i, place in enumerate(of_level.tolist())
        for j, cell in enumerate(SEX.cells)
    }
    return tables, named


small = st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2), min_size=3, max_size=3)
cells = st.tuples(st.sampled_from(["10", "100", "101", "102"]), st.sampled_from(SEX.cells))


@settings(max_examples=40)
@given(small, st.sets(cells, max_size=4))
def test_the_audit_agrees_with_brute_force(inner, hidden):
    tables, published = two_way(inner, hidden)
    limit = 40 if len(hidden) < 4 else 26  # every finite end is at most 24
    possible = possible_counts(published, SUMS, limit) if hidden else {}
    frame = audit_suppression(tables).to_frame()
    assert len(frame) == len(hidden)
    for row in frame.itertuples():
        counts = possible[row.geoid, row.cell]
        assert row.lower == min(counts)
        if np.isfinite(row.upper):
            assert row.upper == max(counts)
        else:
            assert max(counts) == limit - 1 or len(counts) > 10


@settings(max_examples=40)
@given(small, st.integers(2, 4), st.integers(1, 3))
def test_nothing_can_be_recovered(inner, threshold, protection):
    tables, _ = two_way(inner)
    protected = Suppression(threshold=threshold, protection=protection).suppress(tables)
    for key, counts in tables.counts.items():
        true, hidden = counts.toarray(), protected.hidden(*key).toarray()
        assert np.all(hidden[(true > 0) & (true < threshold)])
        assert np.array_equal(protected.counts[key].toarray(), np.where(hidden, 0, true))
    ranges = audit_suppression(protected)
    assert not ranges.recovered.any()
    assert np.all(ranges.upper - ranges.lower >= protection)
    for row in ranges.to_frame().itertuples():
        level = protected.row(row.level, row.geoid), SEX.cells.index(row.cell)
        assert row.lower <= tables.counts[row.level, "sex"].toarray()[level] <= row.upper
    # By brute force too; counts tried are below 13: the true ones, and those one further.
    hidden = list(zip(ranges.geoid.tolist(), ranges.cell.tolist(), strict=True))
    _, true = two_way(inner)
    if 0 < len(hidden) <= 4 and max(true[cell] for cell in hidden) <= 11:
        possible = possible_counts(two_way(inner, hidden)[1], SUMS, 13)
        assert all(len(counts) > 1 for counts in possible.values())


@pytest.mark.parametrize(
    ("cell", "change", "hidden", "ask", "match"),
    [
        (1, 1, [], Suppression(threshold=3).suppress, "contradict"),
        (0, -99, [], Suppression(threshold=3).suppress, "must be >= 0"),
        (1, 1, [("100", "men")], audit_suppression, "contradict"),
    ],
)
def test_what_does_not_add_up_is_refused(cell, change, hidden, ask, match):
    tables, _ = two_way([[2, 9], [8, 7], [6, 5]], hidden)
    wrong = tables.counts["tract", "sex"].toarray()
    wrong[0, cell] += change
    counts = {**tables.counts, ("tract", "sex"): sparse.csr_array(wrong)}
    with pytest.raises(DataError, match=match):
        ask(PublishedTables(TWO_WAY, tables.geoids, counts, tables.suppressed))


def test_primary_alone_gives_counts_away():
    tables, _ = two_way([[2, 9], [8, 7], [6, 5]])
    bare = Suppression(threshold=3, complementary=False).suppress(tables)
    ranges = audit_suppression(bare)
    assert ranges.to_frame().to_dict("records") == [
        {
            "level": "block",
            "geoid": "100",
            "table": "sex",
            "cell": "men",
            "lower": 2.0,
            "upper": 2.0,
            "proved": True,
        }
    ]
    assert ranges.recovered.tolist() == [True]
    whole = Suppression(threshold=3).suppress(tables)
    assert len(audit_suppression(whole).lower) == 4  # the smallest rectangle around it


def test_one_sum_alone_does_not_settle_a_two_way_table():
    # Every row and column has two hidden cells, yet the two zeros and their sums say it all.
    hidden = [("100", "men"), ("100", "women"), ("101", "men"), ("101", "women")]
    tables, _ = two_way([[0, 2], [0, 3], [5, 5]], hidden)
    ranges = audit_suppression(tables)
    assert ranges.recovered.all()
    assert ranges.lower.tolist() == [0.0, 2.0, 0.0, 3.0]
    protected = Suppression(threshold=4).suppress(two_way([[0, 2], [0, 3], [5, 5]])[0])
    assert not audit_suppression(protected).recovered.any()


def test_without_a_sum_nothing_more_is_hidden():
    people = Records(PEOPLE, population(1).persons.table)
    tables = tabulate(people, people_workload(AGES, levels=("block",)))
    one = Suppression(threshold=4, complementary=False).suppress(tables)
    two = Suppression(threshold=4).suppress(tables)
    assert one == two
    ranges = audit_suppression(one)
    assert np.all(ranges.lower == 0)
    assert np.all(np.isinf(ranges.upper))


def test_a_few_programs_reach_the_ends_of_many_cells(monkeypatch):
    """The ranges are those of a program for each end that no solution has, with fewer programs."""
    solved, plain = [], HighsWarm.relax
    monkeypatch.setattr(
        HighsWarm, "relax", lambda self, *ends: solved.append(1) or plain(self, *ends)
    )
    counts = []
    for seed in range(3):
        data = population(seed, blocks=8, households=60)
        tables = tabulate(data, people_workload(SEX, AGES, levels=("county", "tract", "block")))
        protected = Suppression(threshold=3).suppress(tables)
        found = []
        for reach in (FormEnds.reach_together, lambda *_: None):
            with monkeypatch.context() as patch:
                patch.setattr(FormEnds, "reach_together", reach)
                solved.clear()
                found.append(audit_suppression(protected, least=1).to_frame())
                counts.append(len(solved))
        assert found[0].equals(found[1])
        assert found[0]["proved"].all()
    assert sum(counts[::2]) < sum(counts[1::2])


def test_release():
    data, asked = population(3), people_workload(SEX, AGES)
    made = Suppression(threshold=3).release(data, workload=asked, rng=0)
    hidden = sum(m.nnz for m in made.tables.suppressed.values())
    assert made.diagnostics == {"suppressed_cells": float(hidden)}
    assert hidden > 0
    assert made.spec.likelihood("block", "sex").probability(1, 1) is None
    again = Suppression(**made.spec.parameters).spec.for_tables(asked.tables)
    assert replace(again, places="public") == made.spec
    assert made.tables == Suppression(threshold=3).release(data, workload=asked, rng=9).tables


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"threshold": 1}, "threshold must be >= 2"),
        ({"threshold": 3, "protection": 0}, "protection must be >= 1"),
        ({"threshold": 3, "complementary": "no"}, "complementary must be True or False"),
    ],
)
def test_parameters_are_checked(parameters, match):
    with pytest.raises(ArgumentError, match=match):
        Suppression(**parameters)


def test_the_brute_force_itself():
    published = {"a": 5, "b": None, "c": None}
    found = possible_counts(published, [("a", ["b", "c"])], 9)
    assert found == {"b": set(range(6)), "c": set(range(6))}

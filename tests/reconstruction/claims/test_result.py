"""Claims against every data set listed, the one-hot program, and what must be refused."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from claims_cases import as_patterns, case, matching, publish, small_schema
from oracles import claims as oracle
from solver_cases import Silent

from bayesrisk.constraints import highs, search as searches
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction import find_claims, verify_claims
from bayesrisk.reconstruction.claims.verification import generate_claims
from bayesrisk.tables import PublishedTables, Table, Workload


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("start", [0, 20, 40, 60])
def test_claims_are_those_of_every_data_set(start, hide):
    for seed in range(start, start + 20):
        schema, tables, cells, published, sets, _ = case(seed, hide=hide)
        truth = oracle.true_claims(schema, tables, cells, sets, schema.names, len(schema.names))
        found = find_claims(published, cells=cells, refuted=True)
        assert found.blocks["status"].tolist() == ["decided"]
        assert as_patterns(found.to_frame(), schema, tables) == truth
        # Everything else that was looked at is false in some data set.
        assert set(found.claims["status"]) <= {"verified", "refuted"}


def test_other_ways_to_the_same_claims():
    # Two candidates of many solutions, decisions asked for by name, one column fewer.
    for seed in range(200, 230):
        schema, tables, cells, published, sets, _ = case(seed)
        truth = oracle.true_claims(schema, tables, cells, sets, schema.names, len(schema.names))
        candidates = generate_claims(published, cells=cells, n_solutions=5)
        assert set(as_patterns(candidates.claims, schema, tables)) >= set(truth)
        assert set(candidates.claims["status"]) <= {"undecided"}
        decided = verify_claims(published, candidates, cells=cells)
        assert as_patterns(decided.to_frame(), schema, tables) == truth
        fewer = find_claims(published, cells=cells, columns=schema.names[:2], max_columns=1)
        short = oracle.true_claims(schema, tables, cells, sets, schema.names[:2], 1)
        assert as_patterns(fewer.to_frame(), schema, tables) == short


def halves():
    """Return tables of 2a + 3b = 3, a + c = 1 and b + d = 1: halves fit, and one whole way."""
    schema = small_schema(4)
    weights = {"W": [2, 3, 0, 0], "X": [1, 0, 1, 0], "Y": [0, 1, 0, 1]}
    tables = [Table(n, (f"{n}_0",), {"a0": np.array([w])}) for n, w in weights.items()]
    return schema, tables, *publish(schema, tables, np.arange(4), np.array([0, 1, 1, 0]))


def test_whole_numbers_say_more_than_the_relaxation():
    schema, tables, published, counts = halves()
    sets = oracle.consistent(schema, tables, np.arange(4), counts, np.zeros(3, bool), 2)
    truth = oracle.true_claims(schema, tables, np.arange(4), sets, schema.names, 1)
    assert truth == {(1,): 1, (2,): 1}
    assert as_patterns(find_claims(published).to_frame(), schema, tables) == truth


def test_readable_claims_are_sums_of_cells_of_one_table():
    """Against all subsets of the cells of each table, over all cells and over those left."""
    seen = {True: 0, False: 0}
    for seed in range(500, 560):
        schema, tables, cells, published, _, _ = case(seed)
        weights = oracle.weights_of(schema, tables, cells)
        counts = np.concatenate([published.counts["block", t.name].toarray()[0] for t in tables])
        live = ~((weights > 0) & (counts == 0)[:, None]).any(axis=0)
        found = find_claims(published, cells=cells).to_frame()
        for row in found.itertuples(index=False):
            match = matching(schema, tables, cells, row)
            for column, part in (("readable", np.ones_like(live)), ("readable_here", live)):
                sums = False
                at = 0
                for table in tables:
                    own = weights[at : at + len(table.cells)][:, part]
                    at += len(table.cells)
                    own = np.unique(own[own.max(axis=1) <= 1], axis=0)
                    for size in range(1, len(own) + 1):
                        for chosen in itertools.combinations(range(len(own)), size):
                            sums |= np.array_equal(own[list(chosen)].sum(axis=0), match[part])
                answer = getattr(row, column)
                # With overlapping cells that are not nested a sum may be missed, never made up.
                parts = [oracle.weights_of(schema, [t], cells) > 0 for t in tables]
                overlap = any(part.sum(axis=0).max() > 1 for part in parts)
                assert answer == sums or (overlap and sums)
                seen[sums] += 1
    assert min(seen.values()) > 50


def test_needed_columns_are_the_fewest_that_say_the_same():
    for seed in range(600, 620):
        schema, tables, cells, published, _, _ = case(seed)
        for row in find_claims(published, cells=cells).to_frame().itertuples(index=False):
            used = [name for name in schema.names if not pd.isna(getattr(row, name))]
            whole = matching(schema, tables, cells, row)
            less = [
                row._replace(**dict.fromkeys(set(used) - set(chosen), pd.NA))
                for k in range(len(used) + 1)
                for chosen in itertools.combinations(used, k)
            ]
            fewest = next(
                one for one in less if np.array_equal(matching(schema, tables, cells, one), whole)
            )
            assert row.n_needed == sum(not pd.isna(getattr(fewest, name)) for name in used)
            assert row.n_columns == len(used)


def test_nobody_of_interest_and_nobody_at_all():
    schema = small_schema(2, 2)
    tables = [Table("A", ("A_0", "A_1"), {"a0": np.eye(2, dtype=int)})]
    published, _ = publish(schema, tables, np.arange(4), np.zeros(4, int))
    empty = find_claims(published)
    assert empty.blocks["status"].tolist() == ["empty"]
    assert len(empty.claims) == 0
    asked = pd.DataFrame({"block": ["001"] * 2, "a0": [0, 1], "multiplicity": [0, 1]})
    assert verify_claims(published, asked).claims["status"].tolist() == ["verified", "refuted"]
    published, _ = publish(schema, tables, np.arange(4), np.array([2, 0, 0, 0]))
    none = find_claims(published, among={"a0": [1]})
    assert len(none.claims) == 0
    assert none.blocks["records"].tolist() == [0]


def test_tables_that_contradict_each_other_name_the_cells():
    schema = small_schema(2, 2)
    a = Table("A", ("A_0", "A_1"), {"a0": np.eye(2, dtype=int)})
    b = Table("B", ("B_0", "B_1"), {"a1": np.eye(2, dtype=int)})
    workload = Workload(schema, {("block", "A"): a, ("block", "B"): b})

    def status(first, second):
        parts = {("block", "A"): sp.csr_array([first]), ("block", "B"): sp.csr_array([second])}
        row = find_claims(PublishedTables(workload, {"block": ["001"]}, parts)).blocks.iloc[0]
        return row["status"], row["conflict"]

    assert status([1, 2], [3, 0]) == ("decided", "")
    found = status([1, 2], [2, 2])
    assert found[0] == "infeasible"
    assert found[1] == "contradict each other: A_0 = 1, A_1 = 2, B_0 = 2, B_1 = 2"
    assert status([1, 2], [0, 0]) == (
        "infeasible",
        "all possible records are ruled out by zeros: A_0 = 1, A_1 = 2",
    )
    assert status([1, -2], [3, 0]) == ("infeasible", "negative: A_1 = -2")


def test_only_whole_numbers_contradict():
    """Each pair of three values adds up to one record: halves fit, no whole ones do."""
    schema = small_schema(3)
    pairs = Table("P", ("P_0", "P_1", "P_2"), {"a0": np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])})
    workload = Workload(schema, {("block", "P"): pairs})
    parts = {("block", "P"): sp.csr_array([[1, 1, 1]])}
    row = find_claims(PublishedTables(workload, {"block": ["001"]}, parts)).blocks.iloc[0]
    assert row["status"] == "infeasible"
    assert row["conflict"] == "contradict each other: P_0 = 1, P_1 = 1, P_2 = 1"


def test_a_limit_never_makes_a_claim(monkeypatch):
    schema, tables, published, _ = halves()
    # A search may look at one relaxation for each side of a claim, at a few for the first records.
    search = searches.find_at_least

    def short(solver, model, objective, least, *, nodes, deadline):
        nodes = nodes if least is None else 1
        return search(solver, model, objective, least, nodes=nodes, deadline=deadline)

    monkeypatch.setattr(searches, "find_at_least", short)
    found = find_claims(published, solver=Silent(), refuted=True)
    monkeypatch.undo()
    assert found.blocks["status"].tolist() == ["undecided"]
    # Bounds of the relaxation, rounded inwards, need no solver: 3b >= 1, so b is 1.
    assert as_patterns(found.to_frame(), schema, tables) == {(1,): 1}
    assert as_patterns(found.to_frame(status="undecided"), schema, tables) == {(2,): 1}
    late = find_claims(published, time_limit=1e-9, refuted=True)
    assert late.blocks["status"].iloc[0] in ("undecided", "unknown")
    for seed in range(700, 720):
        schema, tables, cells, published, sets, _ = case(seed)
        truth = oracle.true_claims(schema, tables, cells, sets, schema.names, len(schema.names))
        late = find_claims(published, cells=cells, time_limit=1e-9)
        for pattern, m in as_patterns(late.to_frame(), schema, tables).items():
            assert truth[pattern] == m


def test_a_bound_with_room_for_a_record_is_no_proof_that_a_class_is_empty(monkeypatch):
    """A relaxation that errs: it says that nobody can be there, its dual values that one can."""
    right, asked = highs.Sifted.maximise, []

    def careless(self, objective):
        answer = right(self, objective)
        asked.append(objective)
        return answer._replace(values=0.0 * answer.values)

    schema = small_schema(3, 2)
    tables = [Table("N", ("N_0",), {}), Table("A", ("A_0",), {"a0": np.array([[1, 1, 0]])})]
    published, _ = publish(schema, tables, np.arange(6), np.array([0, 0, 0, 1, 0, 0]))
    expected = as_patterns(find_claims(published).to_frame(), schema, tables)
    monkeypatch.setattr(highs.Sifted, "maximise", careless)
    found = find_claims(published)
    assert asked
    assert found.blocks["status"].tolist() == ["decided"]
    assert as_patterns(found.to_frame(), schema, tables) == expected
    assert expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["colour"]}, "columns must be one of a0, a1"),
        ({"columns": []}, "columns must be from 1 to 14 names"),
        ({"columns": ["a0", "a0"]}, "columns must give each once, got 'a0'"),
        ({"max_columns": 0}, "max_columns must be"),
        ({"level": "tract"}, "level must be one of block"),
        ({"tenure": "cash"}, "tenure must be merged for schema 'small'"),
        ({"tenure": "half"}, "tenure must be one of"),
        ({"time_limit": 0}, "time_limit must be"),
        ({"n_solutions": 0}, "n_solutions must be"),
        ({"structural_rules": 1}, "structural_rules must be True or False"),
        ({"cells": [99]}, "cells must be"),
        ({"among": {"colour": [1]}}, "among must be one of"),
        ({"among": {"a0": [7]}}, r"among\['a0'\] must be"),
        ({"solver": "abacus"}, "solver must be one of highs, pulp"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    schema = small_schema(2, 2)
    tables = [Table("A", ("A_0", "A_1"), {"a0": np.eye(2, dtype=int)})]
    published, _ = publish(schema, tables, np.arange(4), np.ones(4, int))
    with pytest.raises(ArgumentError, match=message):
        find_claims(published, **options)


def test_more_assignments_than_numbers_are_refused():
    schema = small_schema(*[21] * 14)
    tables = [
        Table(f"T{a}", tuple(f"T{a}_{i}" for i in range(21)), {f"a{a}": np.eye(21, dtype=int)})
        for a in range(14)
    ]
    workload = Workload(schema, {("block", t.name): t for t in tables})
    counts = {("block", t.name): sp.csr_array(np.eye(1, 21, dtype=int)) for t in tables}
    published = PublishedTables(workload, {"block": ["001"]}, counts)
    with pytest.raises(ArgumentError, match=r"columns must have at most 2\*\*62 partial"):
        find_claims(published, cells=[0, 1])
    found = find_claims(published, cells=[0, 1], columns=schema.names[:3])
    assert len(found.to_frame()) == 7


def test_other_things_are_refused():
    schema = small_schema(2, 2)
    tables = [Table("A", ("A_0", "A_1"), {"a0": np.eye(2, dtype=int)})]
    published, _ = publish(schema, tables, np.arange(4), np.ones(4, int))
    with pytest.raises(ArgumentTypeError, match="tables must be PublishedTables"):
        find_claims(3)
    with pytest.raises(ArgumentTypeError, match="is no argument of find_claims"):
        generate_claims(published, colour=1)
    with pytest.raises(ArgumentTypeError, match="candidates must be a DataFrame of pandas"):
        verify_claims(published, [1])
    good = pd.DataFrame({"block": ["001"], "a0": [1], "multiplicity": [2]})
    for bad, message in (
        (good.drop(columns="multiplicity"), "candidates must have the column 'multiplicity'"),
        (good.assign(block="002"), "block must be a place of the tables, got '002'"),
        (good.assign(a0=9), "a0 must be"),
        (good.assign(a0=pd.NA), "candidates must give a column each, row 0 gives none"),
    ):
        with pytest.raises(ArgumentError, match=message):
            verify_claims(published, bad)
    with pytest.raises(ArgumentError, match="columns must have 'a0', which candidates use"):
        verify_claims(published, good, columns=["a1"])
    with pytest.raises(ArgumentError, match="status must be one of"):
        find_claims(published).to_frame(status="perhaps")
    with pytest.raises(ArgumentError, match="rows must have the column 'a0'"):
        find_claims(published).covered(rows=pd.DataFrame({"block": ["001"]}))

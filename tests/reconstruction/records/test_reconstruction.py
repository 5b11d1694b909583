"""Reconstruction of person blocks against enumeration and the records."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles.reconstruction import block_solutions, largest_distance, people, person_tables

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction import reconstruct, solution_variability
from bayesrisk.reconstruction.records.problem import published_problem

KEY = ["block", "sex", "agebin", "race", "hisp"]
BINS = np.concatenate(
    [np.arange(22), [22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]]
)


def binned(columns):
    """Return the records as a multiset with the age bin in place of the age."""
    frame = pd.DataFrame(columns)
    frame["agebin"] = np.searchsorted(BINS, frame["age"], side="right") - 1
    return Counter(map(tuple, frame[KEY].to_numpy().tolist()))


def found_records(result, key=KEY):
    return Counter(map(tuple, result.to_frame()[key].to_numpy().tolist()))


def published_matrix(tables):
    problem = published_problem(tables, scope="block")
    return problem, problem.system.queries.matrix


def perturbed(tables, table, cell, by, row=0, level="block"):
    counts = dict(tables.counts)
    at = tables.workload.tables[level, table].cells.index(cell)
    changed = counts[level, table].tolil()
    changed[row, at] += by
    counts[level, table] = sp.csr_array(changed)
    return replace(tables, counts=counts)


@pytest.fixture(scope="module")
def small():
    """Blocks of two to six persons whose tables leave something open more often than not."""
    rng = np.random.default_rng(21)
    # Few kinds of people close in age: the tables leave more open.
    columns = people(rng, rng.integers(2, 7, 220).tolist(), races=[1, 2, 8, 3, 9], spread=2.0)
    columns["age"] = rng.choice([3, 20, 31, 33], size=len(columns["age"]))
    return columns, person_tables(columns, tract=False)


def test_two_hundred_small_blocks_equal_enumeration(small):
    _, tables = small
    result = reconstruct(tables, scope="block")
    variability = solution_variability(tables, scope="block", solution=result)
    problem, matrix = published_matrix(tables)
    histogram, dense = result.histogram().toarray(), matrix.toarray().astype(np.int8)
    open_blocks = 0
    for b in range(len(result.geoids)):
        counts = problem.published[[b]].toarray().ravel()
        cells, every = block_solutions(dense, counts)
        star = histogram[b]
        assert star.sum() == star[cells].sum()
        assert any(np.array_equal(star[cells], x) for x in every)
        assert result.status[b] == ("unique" if len(every) == 1 else "feasible")
        distance = largest_distance(every, star[cells])
        n = int(star.sum())
        assert variability.status[b] == "proved"
        assert variability.lower[b] == variability.upper[b] == distance / (2 * n)
        open_blocks += len(every) > 1
    assert 20 < open_blocks < 200


def test_every_block_is_returned_with_its_tables(small):
    columns, tables = small
    result = reconstruct(tables, scope="block")
    assert result.population.tolist() == list(Counter(columns["block"]).values())
    problem, matrix = published_matrix(tables)
    assert abs(sp.csr_array(result.histogram() @ matrix.T) - problem.published).nnz == 0
    unique = {g for g, s in zip(result.geoids, result.status, strict=True) if s == "unique"}
    truth, found = binned(columns), found_records(result)
    assert {k: n for k, n in truth.items() if k[0] in unique} == {
        k: n for k, n in found.items() if k[0] in unique
    }
    assert list(result.blocks().columns) == [
        "block",
        "population",
        "status",
        "deviation",
        "conflict",
    ]


@pytest.fixture(scope="module")
def tract():
    rng = np.random.default_rng(22)
    columns = people(rng, rng.integers(1, 25, 12).tolist(), spread=0.5)
    return columns, person_tables(columns)


@pytest.mark.parametrize("solver", ["highs", "pulp:highs", "pulp:cbc"])
def test_tracts_reproduce_every_table_with_single_years(tract, solver):
    tables = tract[1]
    result = reconstruct(tables, scope="tract", solver=solver)
    frame = result.to_frame()
    assert list(frame.columns) == ["block", "sex", "agebin", "race", "hisp", "age"]
    again = person_tables({n: frame[n].to_numpy() for n in ("block", "sex", "age", "race", "hisp")})
    for key, counts in tables.counts.items():
        assert abs(again.counts[key] - counts).nnz == 0
    assert np.array_equal(np.searchsorted(BINS, frame["age"], side="right") - 1, frame["agebin"])
    assert result.solver == solver
    assert set(result.status) <= {"unique", "feasible"}


def test_ages_are_filled_in_the_documented_order(tract):
    frame = reconstruct(tract[1], scope="tract").to_frame()
    single = np.array([bin(r).count("1") == 1 for r in frame["race"]])
    frame["class"] = np.where(single, frame["race"], 0)
    for _, part in frame.groupby(["sex", "agebin", "class", "hisp"]):
        ordered = part.sort_values(["block", "race"], kind="stable")
        assert ordered["age"].is_monotonic_increasing


def overlaps(problem, detail, cell):
    """Whether a published cell that is named counts people whom ``cell`` counts too."""
    names = [name for _, name in problem.system.queries.names]
    matrix = problem.system.queries.matrix
    named = [names.index(text) for text in re.findall(r"P\d\w+", detail)]
    assert named
    return any((matrix[[at]] @ matrix[[names.index(cell)]].T).sum() > 0 for at in named)


@pytest.mark.parametrize(
    ("table", "cell"),
    [
        ("P12", "P0120010"),
        ("P12A", "P012A012"),
        ("P1", "P0010001"),
        ("P14", "P0140005"),
        ("P9", "P0090005"),
    ],
)
@pytest.mark.parametrize("by", [1, 40])
def test_a_perturbed_cell_is_named(small, table, cell, by):
    tables = perturbed(small[1], table, cell, by, row=3)
    result = reconstruct(tables, scope="block")
    assert result.status[3] == "infeasible"
    # A contradiction is between cells: the one named counts people of the perturbed one.
    problem, _ = published_matrix(tables)
    assert overlaps(problem, result.conflict[3].split(": ")[1], cell)
    assert result.conflict[3].startswith(f"block {result.geoids[3]}: ")
    assert result.population[3] == 0
    others = reconstruct(small[1], scope="block")
    assert result.status[:3] + result.status[4:] == others.status[:3] + others.status[4:]


def test_a_total_that_does_not_add_up_is_named_with_both_numbers(small):
    tables = perturbed(small[1], "P1", "P0010001", 2, row=0)
    population = reconstruct(small[1], scope="block").population[0]
    detail = reconstruct(tables, scope="block").conflict[0]
    assert f"P0010001 of table P1 is {population + 2}" in detail
    assert f"adds up to {population}" in detail


def test_a_perturbed_tract_names_the_tract_and_spoils_only_it():
    rng = np.random.default_rng(23)
    first = people(rng, [5, 9, 3], spread=0.5)
    second = people(rng, [4, 8], spread=0.5, tract="50001000200")
    both = {n: list(first[n]) + list(second[n]) for n in first}
    tables = person_tables(both)
    level = tables.workload.tables["tract", "PCT12"].cells
    at = level[int(tables.counts["tract", "PCT12"].indices[0])]
    broken = perturbed(tables, "PCT12", at, 1, level="tract")
    result = reconstruct(broken, scope="tract")
    assert result.status[:3] == ("infeasible",) * 3
    assert set(result.status[3:]) <= {"unique", "feasible"}
    assert "tract 50001000100" in result.conflict[0]
    assert result.conflict[3:] == ("", "")
    assert set(result.to_frame()["block"]) == set(second["block"])


def test_nearest_records_of_inconsistent_tables(small):
    tables = perturbed(small[1], "P12", "P0120010", 1, row=3)
    result = reconstruct(tables, scope="block", nearest=True)
    assert result.status[3] == "nearest"
    problem, matrix = published_matrix(tables)
    counts = problem.published[[3]].toarray().ravel()
    star = result.histogram()[[3]].toarray().ravel()
    assert result.deviation[3] == np.abs(matrix @ star - counts).sum()
    # The true records deviate by the one perturbed count.
    assert 0 < result.deviation[3] <= 1
    assert result.deviation[[0, 1, 2]].tolist() == [0, 0, 0]


def test_nearest_in_a_tract_keeps_columns_in_step(tract):
    broken = perturbed(tract[1], "P12", "P0120010", 1, row=2)
    frame = reconstruct(broken, scope="tract", nearest=True).to_frame()
    assert len(frame) >= len(tract[0]["block"]) - 1
    assert frame["block"].is_monotonic_increasing


def test_bad_arguments_are_named(small):
    tables = small[1]
    with pytest.raises(ArgumentTypeError, match="PublishedTables"):
        reconstruct("tables", scope="block")
    with pytest.raises(ArgumentError, match="scope must be one of"):
        reconstruct(tables, scope="tract")
    with pytest.raises(ArgumentError, match="time_limit must be > 0"):
        reconstruct(tables, scope="block", time_limit=0.0)
    with pytest.raises(ArgumentError, match="solver must be"):
        reconstruct(tables, scope="block", solver="none")

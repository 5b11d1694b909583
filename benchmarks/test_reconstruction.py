"""Reconstruction against the published program, a binary for every potential record."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from targets import as_long, faster

from bayesrisk.census.population.nation import Nation
from bayesrisk.reconstruction import reconstruct, solution_variability
from bayesrisk.reconstruction.records.problem import published_problem
from bayesrisk.release import RangeSpec, RoundingSpec
from bayesrisk.tables import Workload, tabulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from oracles.reconstruction import people, person_tables, published_program


@pytest.fixture(scope="module")
def county():
    """Blocks as in a county: most are small, and people in a block are mostly alike."""
    rng = np.random.default_rng(1)
    sizes = np.clip(rng.lognormal(1.6, 1.0, 2000).astype(int), 1, 300)
    return person_tables(people(rng, sizes.tolist(), spread=0.15), tract=False)


def slow(tables, blocks):
    problem = published_problem(tables, scope="block")
    matrix = problem.system.queries.matrix
    names = problem.system.queries.names
    ages = np.array([at for at, (table, _) in enumerate(names) if table == "P12"])
    counts = [problem.published[[b]].toarray().ravel() for b in blocks]
    return [published_program(matrix, c, by=ages) for c in counts]


def test_blocks_propagation(compare, county):
    problem = published_problem(county, scope="block")
    bounds = problem.bounds
    some = np.flatnonzero(bounds.status == 0)[:8]
    for b, found in zip(some, slow(county, some), strict=True):
        here = bounds.block == b
        assert np.array_equal(found[bounds.cell[here]], bounds.low[here])
    compare(
        lambda: replace(problem).bounds,  # of a copy, which knows none yet
        lambda: slow(county, some),
        aims={"bounds of all cells of a block, beside the published program": faster(1000)},
        ours_units=len(problem.geoids),
        twin_units=len(some),
        rounds=3,
    )


def test_blocks_public(compare, county):
    result = reconstruct(county, scope="block")
    some = [b for b, s in enumerate(result.status) if s == "unique"][:8]
    histogram = result.histogram()
    for b, found in zip(some, slow(county, some), strict=True):
        assert np.array_equal(found, histogram[[b]].toarray().ravel())
    compare(
        lambda: reconstruct(county, scope="block"),
        lambda: slow(county, some),
        aims={"reconstructing a block, beside the published program": faster(200)},
        ours_units=len(result.geoids),
        twin_units=len(some),
        rounds=3,
    )


RANGES = RangeSpec((0, 1, 3, 6, 10, 20, 50), (0, 1, 3, 6, 10, 20, 50))


@pytest.mark.parametrize(
    ("name", "law", "publish"),
    [
        ("published in ranges", RANGES, RANGES.publish),
        ("rounded to the nearest 3", RoundingSpec(3, "nearest"), lambda n: (n + 1) // 3 * 3),
    ],
)
def test_coarsened_blocks(compare, county, name, law, publish):
    """Aim: three times as long as true counts, which propagation alone mostly settles."""
    blocks = {"block": county.geoids["block"][:40]}
    exact = {key: part[:40] for key, part in county.counts.items()}
    counts = {key: sp.csr_array(publish(part.toarray())) for key, part in exact.items()}
    true = replace(county, geoids=blocks, counts=exact)
    given = replace(true, counts=counts, laws=dict.fromkeys(counts, law))
    assert set(reconstruct(given, scope="block").status) <= {"unique", "feasible"}
    compare(
        lambda: reconstruct(given, scope="block"),
        lambda: reconstruct(true, scope="block"),
        aims={f"records of blocks from counts {name}, beside true counts": as_long(3)},
        rounds=3,
    )


@pytest.mark.parametrize("size", [30, 60])
def test_variability(compare, size):
    tables = person_tables(people(np.random.default_rng(2), [size] * 20), tract=False)
    solution = reconstruct(tables, scope="block")
    problem = published_problem(tables, scope="block")
    matrix, histogram = problem.system.queries.matrix, solution.histogram()
    found = solution_variability(tables, scope="block", solution=solution)

    def twin():
        counts = problem.published[[0]].toarray().ravel()
        return published_program(matrix, counts, histogram[[0]].toarray().ravel())

    assert twin() == round(found.upper[0] * 2 * size)
    name = f"how far {size} people of a block may vary, beside the published program"
    compare(
        lambda: solution_variability(tables, scope="block", solution=solution),
        twin,
        aims={name: faster(10)},
        ours_units=20,
        rounds=3,
    )


def test_a_tract_jointly_with_a_limit_of_nodes(benchmark):
    """No aim: an interval after one node, the same each time, around the proved value."""
    both = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
    people = Nation.scaled(1.0).county(8, seed=1).persons
    inside = np.flatnonzero(
        people.schema.geography.ancestors(people.geoids, "tract") == "80017001300"
    )
    tables = tabulate(people.take(inside), both)
    options = {"scope": "tract-joint", "solution": reconstruct(tables, scope="tract")}
    truth = solution_variability(tables, **options)
    assert truth.status == ("proved",)
    found = benchmark.pedantic(
        solution_variability, (tables,), {**options, "node_limit": 1}, rounds=1
    )
    again = solution_variability(tables, **options, node_limit=1)
    assert found.lower[0] <= truth.lower[0] == truth.upper[0] <= found.upper[0]
    assert (found.lower[0], found.upper[0]) == (again.lower[0], again.upper[0])

"""Solution variability: order of the scopes, intervals, and the published program."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.reconstruction import people, person_tables, published_program
from solver_cases import Silent

from bayesrisk.constraints.solvers import make_solver
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction import reconstruct, solution_variability
from bayesrisk.reconstruction.records.problem import published_problem

SCOPES = ("block", "tract-bounds", "tract-joint")


def tract_of(seed, sizes, **options):
    return person_tables(people(np.random.default_rng(seed), sizes, **options))


@pytest.mark.parametrize("seed", range(6))
def test_joint_is_below_bounds_is_below_block(seed):
    tables = tract_of(seed, [12, 30, 5, 22, 17], spread=0.6)
    solution = reconstruct(tables, scope="tract")
    found = {s: solution_variability(tables, scope=s, solution=solution) for s in SCOPES}
    for result in found.values():
        assert set(result.status) == {"proved"}
        assert np.array_equal(result.lower, result.upper)
        assert np.all((result.lower >= 0.0) & (result.upper <= 1.0))
    assert np.all(found["tract-bounds"].upper <= found["block"].upper)
    moved = (found["tract-bounds"].upper * found["tract-bounds"].population).sum()
    assert (found["tract-joint"].upper * found["tract-joint"].population).sum() <= moved + 1e-9
    unique = np.array([s == "unique" for s in reconstruct(tables, scope="block").status])
    assert np.array_equal(found["block"].upper == 0.0, unique)
    joint_unique = set(solution.status) == {"unique"}
    assert (found["tract-joint"].upper[0] == 0.0) == joint_unique


def block_diagonal(problem):
    """Return the block rows of all blocks and the coupling rows, over blocks times cells."""
    matrix = problem.system.queries.matrix
    counts = problem.published.toarray().ravel()
    size = problem.geoids.size
    coupling = problem.larger[0].coupling
    rows = sp.csr_array(sp.block_diag([matrix] * size))
    across = sp.csr_array(sp.hstack([coupling.rows] * size))
    totals = (problem.larger[0].published @ coupling.derivation.T).toarray().ravel()
    return rows, counts, across, totals


@pytest.mark.parametrize("seed", [31, 32, 33])
def test_joint_and_bounds_equal_the_published_program(seed):
    tables = tract_of(seed, [6, 8, 5], races=[1, 2, 3, 8], spread=1.0)
    solution = reconstruct(tables, scope="tract")
    problem = published_problem(tables, scope="tract")
    rows, counts, across, totals = block_diagonal(problem)
    star = solution.histogram().toarray().ravel()
    both = sp.csr_array(sp.vstack([rows, across]))
    joint = published_program(both, np.concatenate([counts, totals]), star)
    found = solution_variability(tables, scope="tract-joint", solution=solution)
    assert found.upper[0] * 2 * found.population[0] == pytest.approx(joint, abs=1e-9)
    bounds = solution_variability(tables, scope="tract-bounds", solution=solution)
    matrix, coupling = problem.system.queries.matrix, problem.larger[0].coupling
    for b in range(3):
        own = solution.histogram()[[b]].toarray().ravel()
        extra = [(coupling.rows, np.zeros(totals.size), totals)]
        slow = published_program(matrix, problem.published[[b]].toarray().ravel(), own, extra)
        assert bounds.upper[b] * 2 * bounds.population[b] == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize("size", [60, 150])
def test_solvers_agree_on_blocks_that_need_them(size):
    tables = person_tables(people(np.random.default_rng(34), [size] * 3), tract=False)
    solution = reconstruct(tables, scope="block")
    first = solution_variability(tables, scope="block", solution=solution)
    for solver in ("pulp:highs", "pulp:cbc"):
        other = solution_variability(tables, scope="block", solution=solution, solver=solver)
        assert np.array_equal(first.upper, other.upper)
        assert first.status == other.status == ("proved",) * 3
    assert first.upper.max() > 0.05


def test_a_limit_gives_an_interval_that_holds_the_truth():
    tables = person_tables(people(np.random.default_rng(35), [200] * 3), tract=False)
    solution = reconstruct(tables, scope="block")
    truth = solution_variability(tables, scope="block", solution=solution)
    found = solution_variability(tables, scope="block", solution=solution, solver=Silent())
    assert "feasible" in found.status
    for b, status in enumerate(found.status):
        assert found.lower[b] <= truth.lower[b] == truth.upper[b] <= found.upper[b]
        assert (status == "proved") == (found.lower[b] == found.upper[b])
    assert found.solver == "silent"


@pytest.mark.parametrize("seed", [41, 42, 43])
def test_a_tract_that_is_not_finished_has_an_interval_that_holds_the_truth(seed):
    """HiGHS itself, stopped after its first node, and by clocks of any length."""
    tables = tract_of(seed, [20, 35, 28, 40], spread=0.6)
    solution = reconstruct(tables, scope="tract")
    truth = solution_variability(tables, scope="tract-joint", solution=solution)
    assert truth.status == ("proved",)
    stopped = [
        {"solver": make_solver("highs", dive=False, mip_max_nodes=0)},
        *({"time_limit": seconds} for seconds in (1e-9, 1e-3, 1e-2, 0.1)),
    ]
    for options in stopped:
        found = solution_variability(tables, scope="tract-joint", solution=solution, **options)
        assert found.lower[0] <= truth.lower[0] == truth.upper[0] <= found.upper[0]
        assert (found.status[0] == "proved") == (found.lower[0] == found.upper[0])
        if options in (stopped[0], {"time_limit": 1e-9}):
            assert (found.status[0], found.upper[0] > found.lower[0]) == ("feasible", True)


class Noted:
    """HiGHS without a dive, which notes what limits it was given."""

    name = "highs"

    def __init__(self):
        self.limits, self._solver = [], make_solver("highs", dive=False)

    def solve(self, model, objective, *, limits=None):
        self.limits.append(limits)
        return self._solver.solve(model, objective, limits=limits)


@pytest.mark.parametrize("seed", [41, 44])
def test_a_limit_of_nodes_gives_the_same_interval_again_and_it_holds_the_truth(seed):
    tables = tract_of(seed, [60, 80, 45, 90, 70], spread=0.9)
    solution = reconstruct(tables, scope="tract")
    truth = solution_variability(tables, scope="tract-joint", solution=solution)
    assert truth.status == ("proved",)
    for nodes in (1, 3):
        backend = Noted()
        found, again = (
            solution_variability(
                tables, scope="tract-joint", solution=solution, solver=s, node_limit=nodes
            )
            for s in (backend, Noted())
        )
        assert {(limit.nodes, limit.seconds) for limit in backend.limits} == {(nodes, None)}
        assert found.lower[0] <= truth.lower[0] == truth.upper[0] <= found.upper[0]
        assert (found.lower[0], found.upper[0]) == (again.lower[0], again.upper[0])


def test_a_limit_of_nodes_is_in_range_and_of_a_solver_that_keeps_it():
    tables = tract_of(38, [9, 12])
    for nodes in (0, 2**31):
        with pytest.raises(ArgumentError, match="node_limit must be"):
            solution_variability(tables, scope="block", node_limit=nodes)
    with pytest.raises(ArgumentError, match="node_limit must be None for solver 'pulp:highs'"):
        solution_variability(tables, scope="block", node_limit=5, solver="pulp:highs")


def test_a_solver_that_stops_leaves_blocks_unknown_not_wrong():
    tables = person_tables(people(np.random.default_rng(36), [700, 3]), tract=False)
    result = reconstruct(tables, scope="block", solver=Silent())
    assert result.status[1] == "unique"
    if result.status[0] == "unknown":
        assert "limit" in result.conflict[0]
        found = solution_variability(tables, scope="block", solution=result, solver=Silent())
        assert (found.lower[0], found.upper[0], found.status[0]) == (0.0, 1.0, "unknown")


def test_blocks_without_a_solution_say_so():
    tables = person_tables(people(np.random.default_rng(37), [5, 6]), tract=False)
    counts = dict(tables.counts)
    counts["block", "P1"] = sp.csr_array(counts["block", "P1"] + np.array([[1], [0]]))
    broken = type(tables)(tables.workload, tables.geoids, counts)
    found = solution_variability(broken, scope="block")
    assert found.status[0] == "infeasible"
    assert found.status[1] == "proved"


def test_a_solution_of_other_tables_is_refused():
    one = tract_of(38, [9, 12])
    other = tract_of(39, [9, 12])
    with pytest.raises(ArgumentError, match="must fit the tables"):
        solution_variability(one, scope="block", solution=reconstruct(other, scope="block"))
    third = tract_of(38, [9])
    with pytest.raises(ArgumentError, match="same blocks"):
        solution_variability(one, scope="block", solution=reconstruct(third, scope="block"))
    with pytest.raises(ArgumentError, match="scope must be one of"):
        solution_variability(one, scope="county")


def test_a_block_solution_that_breaks_the_tract_is_refused():
    # Found without the tract's tables, it may break them: then the joint value has no meaning.
    refused = accepted = 0
    for seed in range(40, 52):
        rng = np.random.default_rng(seed)
        columns = people(rng, [14, 14], races=[2, 8])
        columns["age"], columns["sex"] = rng.choice([20, 31], size=28), np.zeros(28, int)
        columns["hisp"] = rng.integers(0, 2, 28)
        tables = person_tables(columns)
        alone, together = (reconstruct(tables, scope=s) for s in ("block", "tract"))
        same = not abs(alone.histogram() - together.histogram()).nnz
        if same:
            found = solution_variability(tables, scope="tract-joint", solution=alone)
            assert (found.upper[0] == 0) == (set(together.status) == {"unique"})
            accepted += 1
        elif set(together.status) == {"unique"}:
            with pytest.raises(ArgumentError, match="must fit the tables"):
                solution_variability(tables, scope="tract-joint", solution=alone)
            refused += 1
    assert refused
    assert accepted

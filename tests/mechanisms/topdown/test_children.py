"""Least squares of a family against its optimality conditions and a twin; rounding against all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import topdown as oracle
from scipy import sparse

from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.topdown._children import least_squares, solve_family
from bayesrisk.mechanisms.topdown._family import Family, Query
from bayesrisk.mechanisms.topdown._least_squares import TOLERANCES, LeastSquares, _solve, solve
from bayesrisk.mechanisms.topdown._rounding import Rounding, controlled_rounding

SEEDS = st.integers(0, 2**32 - 1)


def empty(cells):
    return sparse.csr_array((0, cells), dtype=np.int64)


@given(seed=SEEDS, children=st.integers(1, 6), cells=st.integers(1, 9), invariant=st.booleans())
def test_optimality_conditions(seed, children, cells, invariant):
    family, _ = oracle.random_family(
        np.random.default_rng(seed), children=children, cells=cells, invariant=invariant
    )
    problem, totals = least_squares(family)
    found = solve(problem)
    reduced = problem.gradient(found.x) + problem.equalities.T @ found.multipliers
    # The solver stops at this gap and these residuals, relative to the size of the problem.
    assert found.tolerance in TOLERANCES[:3]
    size = 1.0 + oracle.objective(family, np.zeros(family.live.shape))
    assert np.abs(problem.equalities @ found.x - totals).max() <= 100 * found.tolerance * size
    assert reduced.min() >= -100 * found.tolerance * size
    assert found.x @ np.abs(reduced) <= 100 * found.tolerance * size


@given(seed=SEEDS, children=st.integers(2, 3), cells=st.integers(2, 4), invariant=st.booleans())
def test_no_feasible_point_of_a_twin_is_better(seed, children, cells, invariant):
    family, truth = oracle.random_family(
        np.random.default_rng(seed), children=children, cells=cells, invariant=invariant
    )
    problem, _ = least_squares(family)
    found = solve(problem)
    x = found.x.reshape(truth.shape)
    ours, twin = oracle.objective(family, x), oracle.slow_least_squares(family)
    size = 1.0 + oracle.objective(family, np.zeros(truth.shape))
    assert ours <= oracle.objective(family, truth) + 100 * found.tolerance * size
    assert ours <= oracle.objective(family, twin) + 1e-7 * size  # the twin leaves its rows by 1e-8
    # The detail weighs 0.2, so the objective is that convex: distances follow from differences.
    gap = max(oracle.objective(family, twin) - ours, 0.0) + 1e-7 * size
    assert np.abs(twin - x).max() <= (2.0 * gap / 0.2) ** 0.5


def unknowns_alike(rng):
    """A problem of eight kinds of unknowns, one to nine of each, in no order."""
    kinds, size = 8, rng.integers(1, 10, 8)
    kind = rng.permutation(np.repeat(np.arange(kinds), size))
    rows, sums = rng.integers(0, 2, (6, kinds)).astype(float), np.ones((1, kinds))
    diagonal, linear = rng.integers(0, 2, kinds).astype(float), rng.integers(-2, 3, kinds) * 1.0
    linear[diagonal == 0] = 0.0
    return kind, LeastSquares(
        diagonal[kind],
        linear[kind],
        sparse.csr_array(rows[:, kind]),
        rng.uniform(0.5, 2.0, 6),
        rng.integers(-3, 30, 6).astype(float),
        sparse.csr_array(sums[:, kind]),
        np.array([float(rng.integers(1, 30))]),
    )


def test_unknowns_that_nothing_tells_apart_are_solved_as_one():
    merged = 0
    for seed in range(40):
        kind, problem = unknowns_alike(np.random.default_rng(seed))
        found, plain = solve(problem), _solve(problem)

        def value(x, problem=problem):
            squares = 0.5 * problem.weights @ (problem.rows @ x - problem.targets) ** 2
            return squares + x @ (0.5 * problem.diagonal * x + problem.linear)

        size = 1.0 + abs(value(np.zeros(kind.size)))
        assert value(found.x) == pytest.approx(value(plain.x), abs=1e-7 * size)
        assert problem.equalities @ found.x == pytest.approx(problem.totals, abs=1e-7 * size)
        reduced = problem.gradient(found.x) + problem.equalities.T @ found.multipliers
        assert reduced.min() >= -1e-7 * size
        if 2 * np.unique(kind).size <= kind.size:
            merged += 1
            for k in np.unique(kind):
                assert np.unique(found.x[kind == k]).size == 1
    assert merged > 30


def test_the_comparison_with_the_twin_can_fail():
    family, truth = oracle.random_family(np.random.default_rng(1), children=3, cells=4)
    ours = oracle.objective(family, solve(least_squares(family)[0]).x.reshape(truth.shape))
    worse = np.broadcast_to(family.parent / 3, truth.shape)
    assert oracle.objective(family, worse) > ours + 0.01


@given(seed=SEEDS, invariant=st.booleans(), controlled=st.booleans())
def test_rounding_is_the_best_of_all(seed, invariant, controlled):
    rng = np.random.default_rng(seed)
    family, truth = oracle.random_family(
        rng, children=3, cells=4, invariant=invariant, controlled=controlled
    )
    problem, totals = least_squares(family)
    x = solve(problem).x
    near = sparse.csr_array(sparse.kron(sparse.eye_array(3), family.controlled))
    best = oracle.best_rounding(x, problem.equalities, totals, near)
    task = Rounding(x, problem.equalities, totals, near, x.size, not invariant)
    rounded = controlled_rounding(task)
    assert best is not None
    # Among values within 1e-9 of each other the choice is free.
    assert np.abs(rounded - x).sum() <= best + 1e-6
    assert np.abs(rounded - x).max() < 1.0
    assert np.array_equal(rounded.reshape(truth.shape).sum(axis=0), family.parent)
    if invariant:
        assert np.array_equal(rounded.reshape(truth.shape).sum(axis=1), truth.sum(axis=1))
    if controlled:
        assert np.abs(near @ rounded - near @ x).max() < 1.0 + 1e-6


@given(seed=SEEDS)
def test_largest_remainders_equal_the_program(seed):
    family, _ = oracle.random_family(np.random.default_rng(seed), children=5, cells=6)
    problem, totals = least_squares(family)
    x = solve(problem).x
    distances = [
        np.abs(
            controlled_rounding(
                Rounding(x, problem.equalities, totals, empty(x.size), x.size, fast)
            )
            - x
        ).sum()
        for fast in (True, False)
    ]
    assert distances[0] == pytest.approx(distances[1], abs=1e-6)


def test_without_a_parent_every_cell_goes_to_the_nearest_integer():
    x = np.array([0.2, 1.7, 3.0, 0.49])
    task = Rounding(x, empty(4), np.zeros(0, np.int64), empty(4), 4, True)
    assert controlled_rounding(task).tolist() == [0, 2, 3, 0]


def test_fractions_lost_in_the_last_digits_are_found_again():
    """Ten thousandths of a person hidden below the snap make one whole person."""
    x = np.full(4, 0.9999999)
    rows = sparse.csr_array(np.ones((1, 4)))
    for fast in (True, False):
        task = Rounding(x, rows, np.array([3]), empty(4), 4, fast)
        assert sorted(controlled_rounding(task).tolist()) == [0, 1, 1, 1]


def test_rounding_refuses_what_has_no_integers():
    x = np.array([0.5, 0.5])
    rows = sparse.csr_array(np.array([[1.0, 1.0], [1.0, -1.0]]))
    with pytest.raises(DataError, match="whole numbers"):
        controlled_rounding(Rounding(x, rows, np.array([1, 0]), empty(2), 2, False))


@given(seed=SEEDS, invariant=st.booleans(), controlled=st.booleans())
def test_children_add_up_and_keep_their_sets(seed, invariant, controlled):
    family, truth = oracle.random_family(
        np.random.default_rng(seed), children=4, cells=5, invariant=invariant, controlled=controlled
    )
    counts = solve_family(family)
    assert counts.dtype == np.int64
    assert counts.min() >= 0
    assert np.array_equal(counts.sum(axis=0), family.parent)
    if invariant:
        assert np.array_equal(counts.sum(axis=1), truth.sum(axis=1))


def test_an_only_child_is_its_parent():
    family, truth = oracle.random_family(np.random.default_rng(3), children=1, cells=5)
    assert np.array_equal(solve_family(family), truth)


def test_a_total_without_a_place_is_refused():
    query = Query(sparse.csc_array(np.eye(2)), 1.0, np.zeros((1, 2), np.int64))
    family = Family(
        np.array([[True, False]]),
        None,
        (query,),
        sparse.csr_array(np.array([[0, 1]])),
        np.array([[2]]),
        empty(2),
    )
    with pytest.raises(DataError, match="public zeros"):
        solve_family(family)
    nobody = Family(
        np.zeros((1, 2), bool), None, (query,), empty(2), np.zeros((1, 0), int), empty(2)
    )
    assert solve_family(nobody).tolist() == [[0, 0]]


def test_contradictory_equalities_are_refused():
    family, _ = oracle.random_family(np.random.default_rng(2), children=2, cells=3, invariant=True)
    wrong = Family(
        family.live,
        family.parent,
        family.queries,
        family.sets,
        family.totals + 1,
        family.controlled,
    )
    with pytest.raises(DataError, match="contradict"):
        solve_family(wrong)


def test_sets_that_are_no_network_are_rounded_by_branch_and_bound():
    """Three overlapping sets: half of each would be the best vertex, and is no integer."""
    x = np.array([0.4, 0.4, 0.4, 0.3, 0.3, 0.3])
    near = np.array([[1, 1, 0, 1, 0, 0], [0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1]])
    near = sparse.csr_array(near)
    rounded = controlled_rounding(Rounding(x, empty(6), np.zeros(0, np.int64), near, 6, True))
    best = oracle.best_rounding(x, np.zeros((0, 6)), np.zeros(0), near)
    assert np.abs(rounded - x).sum() == pytest.approx(best)
    assert sorted(rounded[:3].tolist()) == [0, 1, 1]

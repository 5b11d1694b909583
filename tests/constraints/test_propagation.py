"""Searches by propagation against enumeration, compiled and as plain Python."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.reconstruction import largest_distance, solutions
from row_cases import open_problem

from bayesrisk.constraints import propagation
from bayesrisk.constraints.model import IntegerModel, components


def run_search(
    program, *, star=None, stop=2**40, limit=10**6, kernel=propagation.search_components
):
    k, n = program.parts.size, program.model.low.size
    point = np.full(n, -1, np.int64) if star is None else star.copy()
    has = np.full(k, 0 if star is None else 1, np.int64)
    found = np.full(k, propagation.PENDING, np.int64)
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    far = np.zeros(n, np.int64)
    answers = propagation.SearchAnswers(point, has, far, found, lower, upper)
    kernel(program.arrays, program.work(), answers, stop, np.full(k, limit))
    return point, far, found, lower, upper


@pytest.mark.parametrize("weights", [(1,), (1, 2)])
def test_search_finds_what_enumeration_finds(weights):
    rng = np.random.default_rng(5)
    kinds = set()
    for _ in range(200):
        program, matrix, counts, _, high = open_problem(
            rng, weights=weights, feasible=bool(rng.integers(0, 4))
        )
        if not program.model.low.size:
            continue
        every = solutions(matrix, np.zeros_like(high), high, counts, counts)
        point, far, found, lower, upper = run_search(program)
        kinds |= set(found.tolist())
        if not every:
            assert (found == propagation.NONE).any()
            continue
        assert not (found == propagation.NONE).any()
        star = np.zeros(len(high), int)
        star[program.cell] = point
        other = star.copy()
        other[program.cell] = far
        assert any(np.array_equal(star, x) for x in every)
        assert any(np.array_equal(other, x) for x in every)
        assert np.array_equal(lower, upper)
        assert lower.sum() == np.abs(star - other).sum() == largest_distance(every, star)
        assert (found == propagation.UNIQUE).all() == (len(every) == 1)
    assert {propagation.NONE, propagation.UNIQUE, propagation.SEVERAL} <= kinds


def test_a_search_without_room_for_its_changes_stops_and_stays_sound(monkeypatch):
    rng = np.random.default_rng(9)
    stopped = 0
    for _ in range(150):
        program, matrix, counts, _, high = open_problem(rng)
        every = solutions(matrix, np.zeros_like(high), high, counts, counts)
        whole = run_search(program)
        monkeypatch.setattr(propagation, "MOST_CHANGES", 0)
        assert program.work().trail.shape[0] == 2 * program.model.low.size
        point, far, found, lower, upper = run_search(program)
        monkeypatch.undo()
        stopped += found.tolist() != whole[2].tolist() or upper.tolist() != whole[4].tolist()
        if propagation.UNKNOWN in found.tolist():
            continue
        star = np.zeros(len(high), int)
        star[program.cell] = point
        other = star.copy()
        other[program.cell] = far
        assert any(np.array_equal(star, x) for x in every)
        assert any(np.array_equal(other, x) for x in every)
        truth = largest_distance(every, star)
        assert lower.sum() <= truth
        assert (upper < 0).any() or truth <= upper.sum()
    assert stopped > 3


def test_a_node_limit_leaves_an_interval_that_holds_the_truth():
    rng = np.random.default_rng(6)
    cut = 0
    for _ in range(100):
        program, matrix, counts, _, high = open_problem(rng)
        every = solutions(matrix, np.zeros_like(high), high, counts, counts)
        point, _, found, lower, upper = run_search(program, limit=3)
        if propagation.UNKNOWN in found.tolist():
            continue
        star = np.zeros(len(high), int)
        star[program.cell] = point
        truth = largest_distance(every, star)
        assert lower.sum() <= truth
        if (upper >= 0).all():
            assert truth <= upper.sum()
        cut += int((lower != upper).any())
    assert cut > 5


def test_search_is_its_python_self():
    rng = np.random.default_rng(7)
    problems = [open_problem(rng, weights=(1, 2))[0] for _ in range(15)]
    fast = [run_search(p) for p in problems]
    for one, expected in zip(problems, fast, strict=True):
        slow = run_search(one, kernel=propagation.search_components.py_func)
        assert all(np.array_equal(a, b) for a, b in zip(slow, expected, strict=True))


def ranged_rows(rng):
    """Return components of rows with ranges, their bounds and arrays, and all of their points."""
    n, m = int(rng.integers(3, 6)), int(rng.integers(2, 6))
    dense, high = rng.integers(0, 3, (m, n)), rng.integers(1, 5, n)
    at = dense @ rng.integers(0, high + 1)
    ends = at - rng.integers(0, 2, m), at + rng.integers(0, 3, m)
    low = np.zeros(n, np.int64)
    parts = components(IntegerModel(low, high, sp.csr_array(dense), *ends))
    model, grid = parts.model, np.indices(high + 1).reshape(n, -1).T
    points = np.array([x for x in grid[:, parts.variable] if model.holds(x)])
    return model, propagation.program_arrays(parts, np.arange(m)), points


@pytest.mark.parametrize(("looks", "few", "many"), [(10**6, 0, 5), (300, 40, 80), (0, 500, 700)])
def test_dives_reach_the_ends_of_rows_or_leave_bounds_of_them(monkeypatch, looks, few, many):
    """With fewer coefficients to look at more ends are left open, and none is wrong."""
    monkeypatch.setattr(propagation, "_LOOKS", looks)
    rng, reached, lowered, left = np.random.default_rng(8), 0, 0, 0
    for _ in range(300):
        model, arrays, points = ranged_rows(rng)
        used = np.flatnonzero(np.diff(arrays.row_ptr))  # the others are in no component
        star = points[rng.integers(len(points))]
        before = [part.copy() for part in arrays]
        ends = propagation.reached_ends(arrays, model.low, model.high, star)
        assert all(np.array_equal(a, b) for a, b in zip(arrays, before, strict=True))
        sums = (points @ model.rows.toarray().T)[:, used]
        low, high, least, most = (side[used] for side in ends)
        assert np.all(low <= sums.min(axis=0))
        assert np.all(high >= sums.max(axis=0))
        for side in (least, most):
            assert all(value in column for value, column in zip(side, sums.T, strict=True))
        closed = (low == least) & (high == most)
        assert np.array_equal(low[closed], sums.min(axis=0)[closed])
        assert np.array_equal(high[closed], sums.max(axis=0)[closed])
        reached, left = reached + int(closed.sum()), left + int((~closed).sum())
        work = propagation.search_work(arrays, model.low, model.high)
        propagation.propagate_components(arrays, work, np.zeros(arrays.first_var.size - 1, int))
        narrowed = np.minimum(model.row_high, model.rows @ work.high)[used]
        lowered += int((high < narrowed).sum())
    assert few < left < many
    assert reached + left == 1050
    assert (lowered > 100) == (looks > 0)


def test_dives_for_ends_are_their_python_selves():
    rng = np.random.default_rng(9)
    for _ in range(15):
        model, arrays, points = ranged_rows(rng)
        every, looks = [], int(rng.choice([0, 30, 10**6]))
        for kernel in (propagation._reach_ends, propagation._reach_ends.py_func):
            none = np.full_like(arrays.row_low, propagation.UNBOUNDED)
            sides = arrays.row_low.copy(), arrays.row_high.copy(), none, -none
            work = propagation.search_work(arrays, model.low, model.high)
            kernel(arrays, work, points[0].copy(), propagation.ReachedEnds(*sides), looks)
            every.append(np.concatenate([*sides, work.state]))
        assert np.array_equal(*every)

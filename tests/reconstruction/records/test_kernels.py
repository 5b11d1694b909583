"""Propagation and search against enumeration, compiled and as plain Python."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.reconstruction import largest_distance, solutions

from bayesrisk.constraints.rows import by_columns
from bayesrisk.reconstruction.records import kernels, program as programs
from bayesrisk.reconstruction.records.problem import CountRanges, RowSource
from bayesrisk.reconstruction.records.program import build_program, fixed_totals


def random_problem(rng, *, weights=(1,), feasible=True):
    """Return a matrix (two partitions and some further rows), and counts."""
    n = int(rng.integers(2, 8))
    rows = []
    for _ in range(2):
        label = rng.integers(0, 3, n)
        rows += [(label == k).astype(int) for k in range(3) if (label == k).any()]
    rows += [rng.integers(0, 2, n) * rng.choice(weights, n) for _ in range(int(rng.integers(0, 3)))]
    matrix = np.array(rows)
    x = rng.integers(0, 3, n) * rng.integers(0, 2, n)
    counts = matrix @ x
    if not feasible:
        counts = np.maximum(counts + rng.integers(-1, 2, len(counts)), 0)
    return matrix, counts, x


def source_of(matrix, counts, family=None):
    family = np.arange(len(matrix)) if family is None else family
    return RowSource(
        by_columns(matrix), family.astype(np.int64),
        CountRanges.from_counts(sp.csr_array(counts[None, :].astype(np.int64))),
        np.zeros(1, np.int64),
    )  # fmt: skip


def propagate_block(matrix, counts, kernel=kernels.solve_blocks):
    n_rows, n = matrix.shape
    row = np.flatnonzero(counts)
    # One more row without a count lists all cells.
    rows = np.append(row, n_rows)
    ends = np.append(counts[row], 0), np.append(counts[row], kernels.UNBOUNDED)
    cover = np.append(np.zeros(n_rows + 1, np.int64), n)
    status, culprit = np.empty(1, np.int64), np.empty(1, np.int64)
    system = kernels.BlockRows(
        by_columns(matrix), cover, np.arange(n), np.full(n, kernels.UNBOUNDED),
        np.zeros(n, np.int64),
    )  # fmt: skip
    outcome = kernels.BlockOutcome(status, culprit, np.empty(2, np.int64))
    one = kernels.BlockCounts(np.array([0, len(rows)]), rows, *ends)
    cell, low, high = kernel(system, one, outcome)
    lows, highs = np.zeros(n, int), np.zeros(n, int)
    lows[cell], highs[cell] = low, high
    return int(status[0]), int(culprit[0]), lows, highs


@pytest.mark.parametrize("weights", [(1,), (1, 2, 3)])
@pytest.mark.parametrize("feasible", [True, False])
def test_propagation_keeps_every_solution(weights, feasible):
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(150):
        matrix, counts, _ = random_problem(rng, weights=weights, feasible=feasible)
        status, culprit, low, high = propagate_block(matrix, counts)
        seen.add(status)
        if status == kernels.UNCOUNTED:
            assert (matrix.sum(axis=0) == 0).any()
            continue
        zero = np.zeros(matrix.shape[1], int)
        found = solutions(matrix, zero, zero + counts.max(initial=0), counts, counts)
        if status == kernels.INFEASIBLE:
            assert found == []
            assert culprit >= 0
            continue
        for x in found:
            assert np.all((low <= x) & (x <= high))
        # Every end of a cell is reached in each of its rows, where the other cells are at theirs.
        room = matrix * (high - low)
        assert np.all((matrix @ high - counts)[:, None] >= room * (matrix > 0))
        assert np.all((counts - matrix @ low)[:, None] >= room * (matrix > 0))
        if status == kernels.FIXED:
            assert [x.tolist() for x in found] == [low.tolist()]
    assert {kernels.FIXED, kernels.OPEN} <= seen
    assert (kernels.INFEASIBLE in seen) is not feasible


def test_the_kernel_is_its_python_self():
    rng = np.random.default_rng(4)
    for _ in range(30):
        matrix, counts, _ = random_problem(rng, weights=(1, 2), feasible=False)
        slow = propagate_block(matrix, counts, kernels.solve_blocks.py_func)
        fast = propagate_block(matrix, counts)
        assert slow[:2] == fast[:2]
        assert all(np.array_equal(a, b) for a, b in zip(slow[2:], fast[2:], strict=True))


def test_a_negative_count_is_a_contradiction():
    status, culprit, _, _ = propagate_block(np.eye(2, dtype=int), np.array([1, -1]))
    assert (status, culprit) == (kernels.INFEASIBLE, 1)


def test_the_output_grows_when_blocks_have_more_cells_than_was_guessed():
    _, _, low, high = propagate_block(np.ones((1, 40), int), np.array([3]))
    assert (low.tolist(), high.tolist()) == ([0] * 40, [3] * 40)


def run_search(program, *, star=None, stop=2**40, limit=10**6, module=kernels):
    k, n = program.n_components, program.low.size
    point = np.full(n, -1, np.int64) if star is None else star.copy()
    has = np.full(k, 0 if star is None else 1, np.int64)
    found = np.full(k, kernels.PENDING, np.int64)
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    far = np.zeros(n, np.int64)
    kernel = module.search_components
    kernel = getattr(kernel, "py_func", kernel) if module is not kernels else kernel
    answers = kernels.SearchAnswers(point, has, far, found, lower, upper)
    kernel(program.arrays, program.work(), answers, stop, np.full(k, limit))
    return point, far, found, lower, upper


def open_problem(rng, **options):
    """Return a program with all of its variables free, and what it was made from."""
    matrix, counts, x = random_problem(rng, **options)
    used = matrix.sum(axis=0) > 0
    matrix, x = matrix[:, used], x[used]
    n = matrix.shape[1]
    high = np.full(n, int(counts.max(initial=0)))
    source = source_of(matrix, counts)
    program = build_program(
        [source], np.zeros(n, np.int64), np.arange(n), np.zeros(n, np.int64), high
    )
    return program, matrix, counts, x, high


@pytest.mark.parametrize("weights", [(1,), (1, 2)])
def test_search_finds_what_enumeration_finds(weights):
    rng = np.random.default_rng(5)
    kinds = set()
    for _ in range(200):
        program, matrix, counts, _, high = open_problem(
            rng, weights=weights, feasible=bool(rng.integers(0, 4))
        )
        if not program.low.size:
            continue
        every = solutions(matrix, np.zeros_like(high), high, counts, counts)
        point, far, found, lower, upper = run_search(program)
        kinds |= set(found.tolist())
        if not every:
            assert (found == kernels.NONE).any()
            continue
        assert not (found == kernels.NONE).any()
        star = np.zeros(len(high), int)
        star[program.cell] = point
        other = star.copy()
        other[program.cell] = far
        assert any(np.array_equal(star, x) for x in every)
        assert any(np.array_equal(other, x) for x in every)
        assert np.array_equal(lower, upper)
        assert lower.sum() == np.abs(star - other).sum() == largest_distance(every, star)
        assert (found == kernels.UNIQUE).all() == (len(every) == 1)
    assert {kernels.NONE, kernels.UNIQUE, kernels.SEVERAL} <= kinds


def test_a_search_without_room_for_its_changes_stops_and_stays_sound(monkeypatch):
    rng = np.random.default_rng(9)
    stopped = 0
    for _ in range(150):
        program, matrix, counts, _, high = open_problem(rng)
        every = solutions(matrix, np.zeros_like(high), high, counts, counts)
        whole = run_search(program)
        monkeypatch.setattr(programs, "MOST_CHANGES", 0)
        assert program.work().trail.shape[0] == 2 * program.low.size
        point, far, found, lower, upper = run_search(program)
        monkeypatch.undo()
        stopped += found.tolist() != whole[2].tolist() or upper.tolist() != whole[4].tolist()
        if kernels.UNKNOWN in found.tolist():
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
        if kernels.UNKNOWN in found.tolist():
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
    class Plain:
        search_components = kernels.search_components

    rng = np.random.default_rng(7)
    problems = [open_problem(rng, weights=(1, 2))[0] for _ in range(15)]
    fast = [run_search(p) for p in problems]
    for one, expected in zip(problems, fast, strict=True):
        slow = run_search(one, module=Plain)
        assert all(np.array_equal(a, b) for a, b in zip(slow, expected, strict=True))


def test_components_share_no_row():
    rng = np.random.default_rng(8)
    for _ in range(50):
        program, *_ = open_problem(rng)
        p, label = program.arrays, program.variable_components()
        for k in range(program.n_components):
            rows = range(p.first_row[k], p.first_row[k + 1])
            for row in rows:
                members = p.row_var[p.row_ptr[row] : p.row_ptr[row + 1]]
                assert set(label[members].tolist()) == {k}
        assert p.first_var[-1] == program.low.size


def test_totals_that_are_fixed_make_distances_even():
    balanced = source_of(np.array([[1, 1, 1]]), np.array([2]))
    loose = source_of(np.array([[1, 2, 1]]), np.array([2]))
    for source, expected in ((balanced, [True]), (loose, [False])):
        program = build_program(
            [source], np.zeros(3, np.int64), np.arange(3), np.zeros(3, np.int64), np.full(3, 2)
        )
        assert fixed_totals(program).tolist() == expected

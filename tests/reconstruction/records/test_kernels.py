"""Bounds of the cells of a block against enumeration, compiled and as plain Python."""

import numpy as np
import pytest
from oracles.reconstruction import solutions
from row_cases import random_problem

from bayesrisk.constraints.model import by_columns
from bayesrisk.reconstruction.records import kernels


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

"""Controlled rounding: every cell goes to a neighbouring integer, and the sums still hold.

Parent sums and nested sets within a child are the nodes of a transportation network, so the matrix
is totally unimodular: the linear program has integer vertices and the simplex method returns one.
With parent sums alone the program falls apart by cell, and the largest remainders solve it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, sparse

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import DataError

#: The solver's answers are good to about 1e-9: what is this close to an integer is one.
SNAP = 1e-6


@dataclass(frozen=True)
class Rounding:
    """What is to be rounded.

    Attributes
    ----------
    fractional : ndarray of float64
        Values; the first ``cells`` are counts, the others auxiliary and free to move.
    equalities, totals : csr_array and ndarray of int64
        Sums that hold exactly; the fractional values satisfy them.
    controlled : csr_array
        0/1 sums that may move to a neighbouring integer.
    cells : int
        How many of the values are counts.
    cell_sums_only : bool
        Whether each count is in at most one equality, so that these can be rounded one by one.
    """

    fractional: FloatArray
    equalities: sparse.csr_array
    totals: IntArray
    controlled: sparse.csr_array
    cells: int
    cell_sums_only: bool


def controlled_rounding(task: Rounding, rng: np.random.Generator) -> IntArray:
    """Return the integers with the smallest total distance to the fractional counts.

    Fractions that are equal to the solver's precision are ordered by chance: its last digits lean
    to the smaller child, and half-integers are common.
    """
    counts = task.fractional[: task.cells]
    base = np.floor(counts + SNAP)
    share = np.maximum(counts - base, 0.0)
    share[share <= SNAP] = 0.0
    free = np.flatnonzero(share)
    share[free] += SNAP * (rng.random(free.size) - 0.5)
    if task.cell_sums_only and not task.controlled.shape[0]:
        step = _largest_remainder(task, base, share, free)
    else:
        step = _program(task, base, share, free)
    rounded = _wider_program(task, base, counts - base) if step is None else base + step
    return _checked(task, rounded)


def _checked(task: Rounding, rounded: FloatArray) -> IntArray:
    """Return the counts as integers, once they satisfy the sums in integer arithmetic."""
    integers = np.rint(rounded).astype(np.int64)
    sums = task.equalities[:, : task.cells].astype(np.int64) @ integers
    # Rows with auxiliary values were left to the solver, and are implied by the level below.
    own = np.diff(task.equalities[:, task.cells :].indptr) == 0
    if integers.min(initial=0) < 0 or np.any(sums[own] != task.totals[own]):
        raise DataError("controlled rounding must keep every sum, got a solver answer that did not")
    return integers


def _largest_remainder(
    task: Rounding, base: FloatArray, share: FloatArray, free: IntArray
) -> FloatArray | None:
    """Return 1 where a count is rounded up, sum by sum; None if a sum cannot be reached."""
    if not task.totals.size:
        return np.where(share > 0.5, 1.0, 0.0)
    missing = task.totals - task.equalities @ base
    group = sparse.csc_array(task.equalities).indices[free]
    order = np.lexsort((-share[free], group))
    group = group[order]
    size = np.bincount(group, minlength=missing.size)
    if np.any(missing < 0) or np.any(missing > size):
        return None
    rank = np.arange(group.size) - (np.cumsum(size) - size)[group]
    step = np.zeros(base.size)
    step[free[order]] = rank < missing[group]
    return step


def _bounds_of_sums(task: Rounding, base: FloatArray, free: IntArray) -> tuple[Any, FloatArray]:
    """Return ``A, b`` of ``A t <= b``: controlled sums stay between floor and ceiling."""
    rows = sparse.csr_array(task.controlled[:, free])
    several = np.flatnonzero(np.diff(rows.indptr) > 1)
    value = (task.controlled @ task.fractional)[several]
    fixed = (task.controlled[:, : task.cells] @ base)[several]
    upper = np.ceil(value - SNAP) - fixed
    lower = np.floor(value + SNAP) - fixed
    rows = sparse.csr_array(rows[several])
    return sparse.vstack([rows, -rows]), np.concatenate([upper, -lower])


def _program(
    task: Rounding, base: FloatArray, share: FloatArray, free: IntArray
) -> FloatArray | None:
    """Return 1 where a count is rounded up, by one linear program; None if there is no such."""
    auxiliary = np.arange(task.cells, task.fractional.size)
    columns = np.concatenate([free, auxiliary])
    missing = task.totals - task.equalities[:, : task.cells] @ base
    rows = sparse.csr_array(task.equalities[:, columns])
    used = np.diff(rows.indptr) > 0
    if np.any(missing[~used] != 0):
        return None
    step = np.zeros(base.size)
    if not free.size:
        return step
    matrix, bounds = _bounds_of_sums(task, base, free)
    matrix = sparse.hstack([matrix, sparse.csr_array((matrix.shape[0], auxiliary.size))])
    answer = _integral(
        np.concatenate([1.0 - 2.0 * share[free], np.zeros(auxiliary.size)]),
        (sparse.csr_array(rows[np.flatnonzero(used)]), missing[used]),
        (sparse.csr_array(matrix), bounds),
        np.concatenate([np.ones(free.size), np.full(auxiliary.size, np.inf)]),
    )
    if answer is None:
        return None
    step[free] = answer[: free.size]
    return step


def _wider_program(task: Rounding, base: FloatArray, share: FloatArray) -> FloatArray:
    """Return counts nearest to the fractional ones, further than a neighbour if need be.

    Needed only where the solver's last digits hide a fraction: distance then grows by one with
    each further step up or down, and controlled sums are left free.
    """
    auxiliary = task.fractional.size - task.cells
    cost = [1.0 - 2.0 * share, np.ones(task.cells), np.ones(task.cells), np.zeros(auxiliary)]
    upper = [np.ones(task.cells), np.full(task.cells, np.inf), base, np.full(auxiliary, np.inf)]
    own, rest = task.equalities[:, : task.cells], task.equalities[:, task.cells :]
    answer = _integral(
        np.concatenate(cost),
        (sparse.csr_array(sparse.hstack([own, own, -own, rest])), task.totals - own @ base),
        None,
        np.concatenate(upper),
    )
    if answer is None:
        raise DataError(
            "public zeros, facilities and invariants must leave room for whole numbers, got none"
        )
    first, up, down = (answer[k * task.cells : (k + 1) * task.cells] for k in range(3))
    return base + first + up - down


def _integral(
    cost: FloatArray,
    equal: tuple[sparse.csr_array, FloatArray],
    below: tuple[sparse.csr_array, FloatArray] | None,
    upper: FloatArray,
) -> FloatArray | None:
    """Return an integer minimiser of ``cost t``, or None if nothing satisfies the rows."""
    rows = [optimize.LinearConstraint(equal[0], equal[1], equal[1])] if equal[1].size else []
    if below is not None and below[1].size:
        rows.append(optimize.LinearConstraint(below[0], -np.inf, below[1]))
    # Sets that cross the classes of a lookahead leave the network: then branch and bound.
    for whole in (0, 1):
        answer = _vertex(cost, rows, upper, whole)
        if answer is None:
            return None
        rounded: FloatArray = np.rint(answer)
        if np.all(np.abs(answer - rounded) <= SNAP):
            break
    return rounded


def _vertex(cost: FloatArray, rows: list[Any], upper: FloatArray, whole: int) -> FloatArray | None:
    """Return a vertex that minimises the cost, a whole one if asked for, or None if none is found.

    A refusal counts only if it does not come from the presolve.
    """
    for presolve in (True, False):
        answer = optimize.milp(
            cost,
            constraints=rows,
            bounds=optimize.Bounds(0.0, upper),
            integrality=np.full(cost.size, whole),
            options={"mip_rel_gap": 0.0, "presolve": presolve},
        )
        if answer.status == 0:
            return np.asarray(answer.x, dtype=np.float64)
    return None

"""The children of one node as one least-squares problem, and their integer answer.

Unknowns are the cells that may hold somebody: a cell at zero in the parent is at zero in every
child, so problems stay as sparse as the data.
"""

import hashlib

import numpy as np
from scipy import sparse

from bayesrisk._types import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.topdown._classes import classes_of
from bayesrisk.mechanisms.topdown._family import Family, Lookahead
from bayesrisk.mechanisms.topdown._least_squares import LeastSquares, solve
from bayesrisk.mechanisms.topdown._rounding import Rounding, controlled_rounding


def _numbers(live: BoolArray) -> tuple[IntArray, int]:
    """Return the number of each child's live cells as unknowns, -1 elsewhere, and how many."""
    index = np.full(live.shape, -1, dtype=np.int64)
    cells = int(live.sum())
    index[live] = np.arange(cells)
    return index, cells


def _expand(
    rows: sparse.csr_array | sparse.csc_array, live: BoolArray, index: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return (child * n_rows + row, unknown, weight) of a matrix repeated for every child."""
    entries = sparse.coo_array(rows)
    row, cell = entries.coords
    child, entry = np.nonzero(live[:, cell])
    return (
        child * rows.shape[0] + row[entry],
        index[child, cell[entry]],
        np.asarray(entries.data[entry], dtype=np.float64),
    )


class _Equations:
    """Rows of equalities, collected as triplets."""

    def __init__(self) -> None:
        self._row: list[IntArray] = []
        self._column: list[IntArray] = []
        self._data: list[FloatArray] = []
        self._totals: list[IntArray] = []
        self.count = 0

    def add(self, row: IntArray, column: IntArray, data: FloatArray, totals: IntArray) -> None:
        """Add the rows that have an unknown; a row without one must ask for zero."""
        used = np.zeros(totals.size, dtype=bool)
        used[row] = True
        if np.any(totals[~used] != 0):
            raise DataError(
                "a count that must be kept exactly lies in cells that are all public zeros: "
                f"got total {int(totals[~used][totals[~used] != 0][0])}"
            )
        number = self.count + np.cumsum(used) - 1
        self._row.append(number[row])
        self._column.append(column)
        self._data.append(data)
        self._totals.append(totals[used])
        self.count += int(used.sum())

    def matrix(self, unknowns: int) -> tuple[sparse.csr_array, IntArray]:
        """Return the matrix and the right-hand side."""
        if not self.count:
            return sparse.csr_array((0, unknowns)), np.zeros(0, dtype=np.int64)
        triplets = (
            np.concatenate(self._data),
            (np.concatenate(self._row), np.concatenate(self._column)),
        )
        return (
            sparse.csr_array(sparse.coo_array(triplets, shape=(self.count, unknowns))),
            np.concatenate(self._totals),
        )


def _equations(family: Family, index: IntArray, cells: int) -> tuple[sparse.csr_array, IntArray]:
    """Return the equalities that children, invariants and lookahead impose, in this order."""
    found = _Equations()
    if family.parent is not None:
        own, cell = np.nonzero(family.live)
        found.add(cell, index[own, cell], np.ones(cell.size), family.parent)
    found.add(*_expand(family.sets, family.live, index), family.totals.ravel())
    extra = cells
    for child, ahead in family.lookahead:
        extra = _add_lookahead(found, ahead, index[child], extra)
    return found.matrix(extra)


def _add_lookahead(found: _Equations, ahead: Lookahead, index: IntArray, first: int) -> int:
    """Add one child's split over groups; return the number of unknowns so far."""
    group, kind = np.nonzero(ahead.allowed)
    unknown = first + np.arange(group.size)
    own = np.flatnonzero(index >= 0)
    classes = ahead.allowed.shape[1]
    found.add(
        np.concatenate([kind, ahead.classes[own]]),
        np.concatenate([unknown, index[own]]),
        np.concatenate([np.ones(group.size), -np.ones(own.size)]),
        np.zeros(classes, dtype=np.int64),
    )
    numbers = np.full(ahead.allowed.shape, -1, dtype=np.int64)
    numbers[group, kind] = unknown
    found.add(*_expand(ahead.sets, ahead.allowed, numbers), ahead.totals.ravel())
    return first + group.size


def least_squares(family: Family) -> tuple[LeastSquares, IntArray]:
    """Return the problem of a family, and the right-hand side of its equalities as integers."""
    live = family.live
    index, cells = _numbers(live)
    equalities, totals = _equations(family, index, cells)
    unknowns = equalities.shape[1]
    diagonal, linear = np.zeros(unknowns), np.zeros(unknowns)
    triplets: list[tuple[IntArray, IntArray, FloatArray]] = []
    weights: list[FloatArray] = []
    targets: list[FloatArray] = []
    used_rows = 0
    for query in family.queries:
        row, column, data = _expand(query.rows, live, index)
        answers = query.noisy.ravel().astype(np.float64)
        strength = np.tile(np.broadcast_to(query.weight, query.rows.shape[0]), live.shape[0])
        length = np.bincount(row, minlength=answers.size)
        single = length[row] == 1
        if single.any():  # a query of one cell needs no row of its own
            alone, weight = column[single], strength[row[single]] * data[single]
            diagonal += np.bincount(alone, weight * data[single], minlength=unknowns)
            linear -= np.bincount(alone, weight * answers[row[single]], minlength=unknowns)
        several = length > 1
        number = used_rows + np.cumsum(several) - 1
        triplets.append((number[row[~single]], column[~single], data[~single]))
        weights.append(strength[several])
        targets.append(answers[several])
        used_rows += int(several.sum())
    row, column = (np.concatenate([t[k] for t in triplets]) for k in (0, 1))
    values = np.concatenate([t[2] for t in triplets])
    rows = sparse.coo_array((values, (row, column)), shape=(used_rows, unknowns))
    problem = LeastSquares(
        diagonal,
        linear,
        sparse.csr_array(rows),
        np.concatenate(weights),
        np.concatenate(targets),
        equalities,
        totals.astype(np.float64),
    )
    return problem, totals


def _controlled_rows(family: Family, unknowns: int) -> sparse.csr_array:
    """Return the controlled sets of every child over the unknowns."""
    index, _ = _numbers(family.live)
    row, column, data = _expand(family.controlled, family.live, index)
    shape = (family.live.shape[0] * family.controlled.shape[0], unknowns)
    return sparse.csr_array(sparse.coo_array((data, (row, column)), shape=shape))


def _forced(family: Family) -> IntArray | None:
    """Return the answer where there is nothing to choose: an only child, or nobody to place."""
    if family.parent is not None and (family.live.shape[0] == 1 or not family.parent.any()):
        return np.broadcast_to(family.parent, family.live.shape)
    return None


def _chance(family: Family) -> np.random.Generator:
    """Return random numbers for what the fit leaves open, seeded by the noisy answers alone."""
    digest = hashlib.blake2b(digest_size=16)
    for query in family.queries:
        digest.update(np.ascontiguousarray(query.noisy).data)
    return np.random.default_rng(int.from_bytes(digest.digest(), "little"))


def solve_family(family: Family) -> IntArray:
    """Return the integer counts of the children, (children, cells).

    The fit is rounded over classes of cells that nothing tells apart; these are split afterwards.
    """
    forced = _forced(family)
    if forced is not None:
        return forced
    if not family.live.any():
        return np.zeros(family.live.shape, dtype=np.int64)
    classes, rng = classes_of(family), _chance(family)
    few = classes.family
    problem, totals = least_squares(few)
    fractional = solve(problem).x
    rounded = controlled_rounding(
        Rounding(
            fractional,
            problem.equalities,
            totals,
            _controlled_rows(few, fractional.size),
            cells=int(few.live.sum()),
            cell_sums_only=not few.sets.shape[0] and not few.lookahead,
        ),
        rng,
    )
    sums = np.zeros(few.live.shape, dtype=np.int64)
    sums[few.live] = rounded
    return classes.split(sums, family.parent, rng)

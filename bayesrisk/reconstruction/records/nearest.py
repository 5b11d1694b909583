"""Records for tables that no records fit: the least total deviation from the published counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.solvers import BOUND_ERROR, Limits, SolverBackend
from bayesrisk.tables.likelihoods import UNBOUNDED


@dataclass(frozen=True)
class Nearest:
    """Records of the least total deviation: a histogram, its deviation, and a lower bound of it.

    The status is ``proved``, ``feasible`` (a limit was reached) or ``unknown``.
    """

    status: str
    cell: IntArray
    count: IntArray
    deviation: int
    bound: int


def nearest_records(
    matrix: sp.csr_array,
    least: IntArray,
    most: IntArray,
    *,
    solver: SolverBackend,
    seconds: float | None,
) -> Nearest:
    """Return the histogram ``x >= 0`` with the smallest ``sum max(L - A x, 0, A x - H)``.

    ``A`` is the matrix of published cells by cells, non-negative; ``L`` and ``H`` are the smallest
    and largest counts that they allow (``H`` is ``UNBOUNDED`` without a limit), equal for true
    counts, whose deviation is ``|A x - c|``.  Negative counts are allowed.

    Notes
    -----
    Steed, Qing and Wu, appendix C, for person tables.  A cell whose rows with a largest count of
    zero or less weigh at least as much as its rows that ask for records is left out: a record there
    costs as much in the former as it can win in the latter.  No cell needs more than the largest
    number that one of its rows asks for.
    """
    bounded = np.flatnonzero((most < UNBOUNDED) | (least > 0))
    rows, low, high = sp.csr_array(matrix[bounded]), least[bounded], most[bounded]
    alone = np.maximum(low, 0) + np.maximum(-high, 0)
    by_cell = sp.csr_array(rows.T)
    gain = by_cell @ (low > 0).astype(np.int64)
    cost = by_cell @ (high <= 0).astype(np.int64)
    cell = np.flatnonzero(gain > cost)
    columns = sp.csr_array(by_cell[cell])
    if not cell.size:
        nobody = int(alone.sum())
        return Nearest(Status.PROVED, cell, cell, nobody, nobody)
    size, top = cell.size, np.zeros(cell.size, np.int64)
    owner = np.repeat(np.arange(size), np.diff(columns.indptr))
    np.maximum.at(top, owner, np.maximum(low[columns.indices], 0))
    distinct = sp.csr_array(columns.T)
    # A row without a cell deviates by its count, whatever the records are.
    used = np.flatnonzero(np.diff(distinct.indptr))
    fixed = int(alone.sum() - alone[used].sum())
    distinct, low, high = sp.csr_array(distinct[used]), low[used], high[used]
    one, largest = sp.eye_array(used.size, dtype=np.int64), distinct @ top
    model = IntegerModel(
        low=np.zeros(size + 2 * used.size, np.int64),
        high=np.concatenate([top, np.maximum(low, 0), largest + np.maximum(-high, 0)]),
        rows=sp.csr_array(sp.hstack([distinct, one, -one], format="csr").astype(np.int64)),
        row_low=low,
        row_high=np.where(high == UNBOUNDED, largest + np.maximum(low, 0), high),
    )
    objective = np.concatenate([np.zeros(size, np.int64), np.full(2 * used.size, -1)])
    answer = solver.solve(model, objective, limits=Limits(seconds))
    if answer.values is None:
        empty = np.zeros(0, np.int64)
        return Nearest(Status.UNKNOWN, empty, empty, int(alone.sum()), 0)
    records = answer.values[:size]
    sums = distinct @ records
    deviation = fixed + int(np.maximum(low - sums, 0).sum() + np.maximum(sums - high, 0).sum())
    bound = (
        fixed + max(0, int(np.ceil(-answer.bound - BOUND_ERROR)))
        if np.isfinite(answer.bound)
        else 0
    )
    occupied = np.flatnonzero(records)
    return Nearest(answer.status, cell[occupied], records[occupied], deviation, bound)

"""Records for tables that no records fit: the least total deviation from the published counts."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.constraints.kernels import HIDDEN
from bayesrisk.reconstruction.solvers import IntegerModel, Limits
from bayesrisk.reconstruction.solvers.interfaces import SolverBackend
from bayesrisk.reconstruction.status import Status


@dataclass(frozen=True)
class Nearest:
    """Records of the least total deviation.

    Attributes
    ----------
    status : str
        ``proved``, ``feasible`` (a limit was reached) or ``unknown``.
    cell, count : ndarray of int64
        The histogram.
    deviation : int
        Sum of absolute deviations from the published counts.
    bound : int
        Lower bound of the least deviation.
    """

    status: str
    cell: IntArray
    count: IntArray
    deviation: int
    bound: int


def nearest_records(
    matrix: sp.csr_array, published: IntArray, *, solver: SolverBackend, seconds: float | None
) -> Nearest:
    """Return the histogram ``x >= 0`` with the smallest ``sum |A x - c|``.

    Parameters
    ----------
    matrix : scipy.sparse.csr_array
        ``A``: published cells by cells, non-negative.
    published : ndarray of int64
        ``c``, ``HIDDEN`` where suppressed; negative counts are allowed.
    solver : SolverBackend
        Solves the integer program.
    seconds : float or None
        Time that it may take.

    Returns
    -------
    Nearest
        The records and their deviation.

    Notes
    -----
    Steed, Qing and Wu, appendix C, for person tables.  A cell whose rows with a count of zero or
    less weigh at least as much as its other rows is left out: a record there costs as much in
    the former as it can win in the latter.  No cell needs more than its largest count.
    """
    known = np.flatnonzero(published != HIDDEN)
    rows, counts = sp.csr_array(matrix[known]), published[known]
    by_cell = sp.csr_array(rows.T)
    positive = counts > 0
    gain = by_cell @ positive.astype(np.int64)
    cost = by_cell @ (~positive).astype(np.int64)
    cell = np.flatnonzero(gain > cost)
    columns = sp.csr_array(by_cell[cell])
    if not cell.size:
        nobody = int(np.abs(counts).sum())
        return Nearest(Status.PROVED, cell, cell, nobody, nobody)
    size, most = cell.size, np.zeros(cell.size, np.int64)
    owner = np.repeat(np.arange(size), np.diff(columns.indptr))
    np.maximum.at(most, owner, np.maximum(counts[columns.indices], 0))
    kept = sp.csr_array(columns.T)
    # A row without a cell deviates by its count, whatever the records are.
    used = np.flatnonzero(np.diff(kept.indptr))
    fixed = int(np.abs(counts).sum() - np.abs(counts[used]).sum())
    kept, target = sp.csr_array(kept[used]), counts[used]
    one = sp.eye_array(used.size, dtype=np.int64)
    model = IntegerModel(
        low=np.zeros(size + 2 * used.size, np.int64),
        high=np.concatenate([most, np.maximum(target, 0), kept @ most + np.maximum(-target, 0)]),
        rows=sp.csr_array(sp.hstack([kept, one, -one], format="csr").astype(np.int64)),
        row_low=target,
        row_high=target,
    )
    objective = np.concatenate([np.zeros(size, np.int64), np.full(2 * used.size, -1)])
    answer = solver.solve(model, objective, limits=Limits(seconds))
    if answer.values is None:
        none = np.zeros(0, np.int64)
        return Nearest(Status.UNKNOWN, none, none, int(np.abs(counts).sum()), 0)
    found = answer.values[:size]
    deviation = fixed + int(np.abs(kept @ found - target).sum())
    bound = fixed + max(0, int(np.ceil(-answer.bound - 1e-6))) if np.isfinite(answer.bound) else 0
    here = np.flatnonzero(found)
    return Nearest(answer.status, cell[here], found[here], deviation, bound)

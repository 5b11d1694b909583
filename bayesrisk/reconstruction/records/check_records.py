"""Every answer tabulated again and compared with the published counts, in integer arithmetic."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.constraints.ages import detailed_cells
from bayesrisk.reconstruction.constraints.cells import Queries
from bayesrisk.reconstruction.constraints.coupling import Coupling
from bayesrisk.reconstruction.constraints.kernels import HIDDEN
from bayesrisk.reconstruction.records.problem import Instance
from bayesrisk.reconstruction.records.solve import Solution, spread
from bayesrisk.reconstruction.status import Status


def first_differences(
    published: sp.csr_array, found: sp.csr_array, names: Queries
) -> dict[int, str]:
    """Return for every geography that differs its first cell with both counts.

    Parameters
    ----------
    published : scipy.sparse.csr_array
        Published counts, ``HIDDEN`` where suppressed.
    found : scipy.sparse.csr_array
        Counts of the records.
    names : Queries
        The published cells.

    Returns
    -------
    dict of int to str
        Empty when all that is published agrees.
    """
    held = published.tocoo()
    secret = held.data == HIDDEN
    place = tuple(part[secret] for part in held.coords)
    hidden = sp.csr_array((np.ones(int(secret.sum()), np.int64), place), shape=published.shape)
    difference = sp.csr_array(found - published)
    difference = sp.csr_array(difference - difference.multiply(hidden))
    difference.eliminate_zeros()
    difference.sort_indices()
    texts = {}
    for row in np.flatnonzero(np.diff(difference.indptr)):
        at = int(difference.indices[difference.indptr[row]])
        table, cell = names.names[at]
        texts[int(row)] = (
            f"{cell} of table {table} is {published[int(row), at]}, "
            f"what the other cells say adds up to {found[int(row), at]}"
        )
    return texts


def _histogram(
    group: IntArray, cell: IntArray, count: IntArray, shape: tuple[int, int]
) -> sp.csr_array:
    return sp.csr_array((count, (group, cell)), shape=shape)


def complete(problem: Instance, solution: Solution) -> dict[str, IntArray]:
    """Check a solution against every published cell, and give records their finer attributes.

    Blocks whose tables do not agree with each other lose their records; their status becomes
    ``infeasible``, with the cell that differs.  Those whose number of records no table bounds
    lose them after that, and become ``unknown``: they were there for the rows of larger places.

    Parameters
    ----------
    problem : Instance
        What was published.
    solution : Solution
        Changed where it does not fit.

    Returns
    -------
    dict of str to ndarray of int64
        A column of the records for every attribute that a larger place tells more of.
    """
    extra = _checked(problem, solution)
    solved = (Status.UNIQUE, Status.FEASIBLE)
    gone = [b for b in solution.unbounded if solution.status[b] in solved]
    for b in gone:
        solution.status[b], solution.conflict[b] = Status.UNKNOWN, solution.unbounded[b]
    kept = ~np.isin(solution.block, gone)
    records = np.repeat(kept, solution.count)
    extra = {name: values[records] for name, values in extra.items()}
    _keep(solution, kept)
    return extra


def _checked(problem: Instance, solution: Solution) -> dict[str, IntArray]:
    """Return the finer columns of what is left after blocks and places that do not agree."""
    shape = (problem.geoids.size, problem.space.size)
    found = _histogram(solution.block, solution.cell, solution.count, shape)
    names = problem.system.queries
    differences = first_differences(
        problem.published, sp.csr_array(found @ names.matrix().T), names
    )
    solved = {b for b, s in enumerate(solution.status) if s in (Status.UNIQUE, Status.FEASIBLE)}
    causes = {
        b: f"{problem.level} {problem.geoids[b]}: {text}"
        for b, text in differences.items()
        if b in solved
    }
    _drop(problem, solution, causes)
    extra: dict[str, IntArray] = {}
    for level, coupling in problem.couplings.items():
        columns, causes = _place(problem, solution, level, coupling)
        if causes:
            # The same tables again, without the places that contradict themselves.
            _drop(problem, solution, causes)
            return _checked(problem, solution)
        extra |= columns
    return extra


def _drop(problem: Instance, solution: Solution, causes: dict[int, str]) -> None:
    gone = spread(problem, causes)
    for block, cause in gone.items():
        solution.status[block], solution.conflict[block] = Status.INFEASIBLE, causes[cause]
    _keep(solution, ~np.isin(solution.block, list(gone)))


def _keep(solution: Solution, kept: NDArray[np.bool_]) -> None:
    solution.block, solution.cell = solution.block[kept], solution.cell[kept]
    solution.count = solution.count[kept]


def _place(
    problem: Instance, solution: Solution, level: str, coupling: Coupling
) -> tuple[dict[str, IntArray], dict[int, str]]:
    """Return the finer columns that a level gives, and the blocks of places that do not agree."""
    group, counts = problem.group[level], problem.coupled[level]
    block, cell = (np.repeat(part, solution.count) for part in (solution.block, solution.cell))
    fine = coupling.queries.space
    solved = np.array([s in (Status.UNIQUE, Status.FEASIBLE) for s in solution.status], bool)
    whole = ~np.isin(np.arange(problem.places[level].size), group[~solved])
    columns: dict[str, IntArray] = {}
    if coupling.detail is None:
        detailed = cell
    else:
        at = detailed_cells(coupling, counts, group[block], block, cell)
        given = np.unravel_index(np.maximum(coupling.detail_cell[at], 0), fine.shape)
        parts = list(np.unravel_index(cell, problem.space.shape))
        for axis, name in enumerate(fine.schema.names):
            if fine.bins[name].max() > problem.space.bins[name].max():
                parts[axis] = given[axis]
                first = np.unique(fine.bins[name], return_index=True)[1]
                codes = first[given[axis]] + fine.schema.attribute(name).first
                # A place that misses a block has more ages than records.
                columns[name] = np.where(whole[group[block]] & (at >= 0), codes, -1)
        detailed = np.ravel_multi_index(tuple(parts), fine.shape).astype(np.int64)
    shape = (problem.places[level].size, fine.size)
    found = _histogram(group[block], detailed, np.ones(block.size, np.int64), shape)
    matrix = coupling.queries.matrix()
    differences = first_differences(counts, sp.csr_array(found @ matrix.T), coupling.queries)
    causes = {
        b: f"{level} {problem.places[level][place]}: {differences[place]}"
        for b, place in enumerate(group.tolist())
        if place in differences and whole[place]
    }
    return columns, causes

"""Solutions of every block, by local search or programs, and nearest records if there are none."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints import propagation
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.solvers import BOUND_ERROR, Limits, SolverBackend
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.climb import climbed_records
from bayesrisk.reconstruction.records.problem import (
    CountRanges,
    LargerLevel,
    Problem,
    check_records,
)
from bayesrisk.reconstruction.records.search import settle
from bayesrisk.reconstruction.records.system import Coupling
from bayesrisk.tables.cells import Queries
from bayesrisk.tables.likelihoods import UNBOUNDED

LIMIT_REACHED = "a limit was reached before a solution was found"


@dataclass
class Solution:
    """A histogram for every solvable block, and each block's status.

    ``status`` is ``unique``, ``feasible``, ``infeasible`` or ``unknown``. For blocks without a
    solution, ``conflict`` names the published cells that contradict each other. ``block``, ``cell``
    and ``count`` are the histograms. ``unbounded`` names the blocks with a cell in no published
    count. Their other cells have values until the rows of larger places, which need them, are
    checked. ``extra`` are finer columns of the records, from larger places.
    """

    status: list[str]
    conflict: dict[int, str] = field(default_factory=dict)
    block: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    cell: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    count: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    unbounded: dict[int, str] = field(default_factory=dict)
    extra: dict[str, IntArray] = field(default_factory=dict)

    @property
    def solved(self) -> BoolArray:
        """Blocks with a solution, as a mask."""
        return np.isin(self.status, (Status.UNIQUE, Status.FEASIBLE))

    def histogram(self, problem: Problem) -> sp.csr_array:
        """Return the histograms over the cells of a problem, blocks by cells."""
        return problem.histograms(self.block, self.cell, self.count)

    def keep(self, chosen: BoolArray) -> None:
        """Remove the cells that are not chosen."""
        self.block, self.cell, self.count = (
            self.block[chosen],
            self.cell[chosen],
            self.count[chosen],
        )


def solve_blocks(
    problem: Problem,
    *,
    solver: SolverBackend,
    limits: Limits,
    nearest: bool = False,
    loose: bool = False,
) -> tuple[Solution, IntArray]:
    """Return a solution of every block, and its deviation from the published counts.

    A climb solves most coarsened blocks. With ``nearest``, blocks that no records fit get those of
    least deviation. ``limits`` and ``loose`` are as for :func:`solve`.
    """
    if not problem.coarsened or problem.larger or np.any(problem.system.columns.coef != 1):
        solution = solve(problem, solver=solver, limits=limits, loose=loose)
    else:
        solution = _climbed(problem, solver, limits, loose)
    deviation = np.zeros(problem.geoids.size, np.int64)
    if nearest:
        _add_nearest(problem, solution, deviation, solver, limits.next.seconds)
    return solution, deviation


def _climbed(problem: Problem, solver: SolverBackend, limits: Limits, loose: bool) -> Solution:
    """Return records found by local search for some blocks, and by programs for the others."""
    (block, cell, count), rest = climbed_records(problem)
    solution = Solution(
        [Status.FEASIBLE] * problem.geoids.size, block=block, cell=cell, count=count
    )
    # Every answer is tabulated again.
    counts = sp.csr_array(solution.histogram(problem) @ problem.system.queries.matrix.T)
    rest = np.union1d(rest, problem.ranges.differences(counts)[0])
    rest_solution = solve(problem.part(rest), solver=solver, limits=limits, loose=loose)
    for number, b in enumerate(rest.tolist()):
        solution.status[b] = rest_solution.status[number]
        if number in rest_solution.conflict:
            solution.conflict[b] = rest_solution.conflict[number]
    solution.keep(~np.isin(solution.block, rest))
    parts = (
        (solution.block, rest[rest_solution.block]),
        (solution.cell, rest_solution.cell),
        (solution.count, rest_solution.count),
    )
    block, cell, count = (np.concatenate(pair) for pair in parts)
    order = np.lexsort((cell, block))
    solution.block, solution.cell, solution.count = block[order], cell[order], count[order]
    return solution


def _add_nearest(
    problem: Problem,
    solution: Solution,
    deviation: IntArray,
    solver: SolverBackend,
    seconds: float | None,
) -> None:
    """Give infeasible blocks the records of least deviation, with finer columns -1."""
    parts = [(solution.block, solution.cell, solution.count)]
    for b, status in enumerate(solution.status):
        if status != Status.INFEASIBLE:
            continue
        low, high = (side[0] for side in problem.ranges.whole([b]))
        nearest = nearest_records(
            problem.system.queries.matrix, low, high, solver=solver, seconds=seconds
        )
        if nearest.status == Status.UNKNOWN:
            solution.status[b] = Status.UNKNOWN
            continue
        solution.status[b], deviation[b] = Status.NEAREST, nearest.deviation
        if nearest.status != Status.PROVED:
            solution.conflict[b] += f"; the least deviation is at least {nearest.bound}"
        parts.append((np.full(nearest.cell.size, b), nearest.cell, nearest.count))
    block, cell, count = (np.concatenate(part) for part in zip(*parts, strict=True))
    before = int(solution.count.sum())
    order = np.lexsort((cell, block))
    if solution.extra:
        records = np.repeat(np.arange(count.size), count)
        by_place = np.argsort(np.argsort(order)[records], kind="stable")
        added = np.full(records.size - before, -1, np.int64)
        for name, values in solution.extra.items():
            solution.extra[name] = np.concatenate([values, added])[by_place]
    solution.block, solution.cell, solution.count = block[order], cell[order], count[order]


def solve(
    problem: Problem, *, solver: SolverBackend, limits: Limits, loose: bool = False
) -> Solution:
    """Return a solution of every block, with a proof if it is unique.

    ``limits`` are those of each component that the search does not settle. With ``loose``, blocks
    with cells of any number keep their other records.
    """
    findings = settle(problem, solver=solver, limits=limits)
    bounds, solution = problem.bounds, Solution([Status.UNIQUE] * problem.geoids.size)
    if not loose:
        solution.unbounded = _unbounded(problem)
    for finding, blocks in findings.components:
        for b in blocks.tolist():
            if finding == propagation.UNKNOWN:
                # Proofs about other components stand.
                solution.status[b] = Status.UNKNOWN
                solution.conflict[b] = LIMIT_REACHED
            elif solution.status[b] == Status.UNIQUE:
                solution.status[b] = Status.FEASIBLE
    for b, text in findings.conflicts.items():
        solution.status[b], solution.conflict[b] = Status.INFEASIBLE, text
    # One more record in a cell that no count bounds fits, too.
    for b in np.flatnonzero(bounds.status == kernels.UNLIMITED):
        if solution.status[b] == Status.UNIQUE:
            solution.status[b] = Status.FEASIBLE
    positive = solution.solved[bounds.block] & (findings.value > 0)
    solution.block, solution.cell = bounds.block[positive], bounds.cell[positive]
    solution.count = findings.value[positive]
    _complete(problem, solution)
    return solution


def _unbounded(problem: Problem) -> dict[int, str]:
    names = ", ".join(larger.level for larger in problem.larger)
    larger = f" (nor in one of its {names})" if names else ""
    return {
        int(b): f"{problem.level} {problem.geoids[b]}: some cell is in no published count{larger}"
        for b in np.flatnonzero(problem.bounds.status == kernels.UNCOUNTED)
    }


# -----------------------------------------------------------------------------
# Every answer tabulated again and compared with the published counts, in integer arithmetic.


def first_differences(ranges: CountRanges, counts: sp.csr_array, names: Queries) -> dict[int, str]:
    """Return, for every place that differs, its first differing cell with both counts.

    The result is None if every published cell allows its count.
    """
    texts = {}
    places = ranges.differences(counts)
    for row, block, least, most, count in zip(*(part.tolist() for part in places), strict=True):
        table, cell = names.names[block]
        text = f"{least}" if least == most else f"from {least} to {most}"
        text = f"{least} or more" if most >= UNBOUNDED else text
        texts[row] = (
            f"{cell} of table {table} is {text}, what the other cells say adds up to {count}"
        )
    return texts


def _complete(problem: Problem, solution: Solution) -> None:
    """Check a solution against every published cell, and add finer attributes of its records.

    Blocks whose tables do not agree with each other lose their records; their status becomes
    ``infeasible``, with the cell that differs.  Those whose number of records no table bounds
    lose them after that, and become ``unknown``: they were there for the rows of larger places.
    """
    extra = _checked(problem, solution)
    unlimited = [b for b in solution.unbounded if solution.solved[b]]
    for b in unlimited:
        solution.status[b], solution.conflict[b] = Status.UNKNOWN, solution.unbounded[b]
    chosen = ~np.isin(solution.block, unlimited)
    if extra:  # a value for each record
        records = np.repeat(chosen, solution.count)
        solution.extra = {name: extra[name][records] for name in extra}
    solution.keep(chosen)


def _checked(problem: Problem, solution: Solution) -> dict[str, IntArray]:
    """Return the finer columns, after dropping blocks and places that contradict their tables."""
    histogram = solution.histogram(problem)
    names, solved = problem.system.queries, solution.solved
    differences = first_differences(problem.ranges, sp.csr_array(histogram @ names.matrix.T), names)
    causes = {
        b: f"{problem.level} {problem.geoids[b]}: {differences[b]}"
        for b in differences
        if solved[b]
    }
    _drop(problem, solution, causes)
    extra: dict[str, IntArray] = {}
    for larger in problem.larger:
        columns, causes = _finer_columns(problem, solution, larger)
        if causes:
            # The same tables again, without the places that contradict themselves.
            _drop(problem, solution, causes)
            return _checked(problem, solution)
        extra |= columns
    return extra


def _drop(problem: Problem, solution: Solution, causes: dict[int, str]) -> None:
    """Mark blocks and those that depend on them as infeasible, and drop their records."""
    linked = problem.bound_together(causes)
    for block, cause in linked.items():
        solution.status[block], solution.conflict[block] = Status.INFEASIBLE, causes[cause]
    solution.keep(~np.isin(solution.block, list(linked)))


def _finer_columns(
    problem: Problem, solution: Solution, larger: LargerLevel
) -> tuple[dict[str, IntArray], dict[int, str]]:
    """Return the finer columns that a level gives, and the blocks of contradictory places."""
    coupling, group = larger.coupling, larger.group
    block, cell, count = solution.block, solution.cell, solution.count
    fine = coupling.queries.space
    whole = ~np.isin(np.arange(larger.geoids.size), group[~solution.solved])
    columns: dict[str, IntArray] = {}
    if coupling.detail is None:
        detailed = cell
    else:
        rows = check_records(count, "columns finer than the tables of blocks")
        block, cell = np.repeat(block, count), np.repeat(cell, count)
        count = np.ones(rows, np.int64)
        detail = sp.csr_array(larger.published @ coupling.detail.T).tocoo()
        index = _detailed_cells(coupling, detail, group[block], block, cell)
        fine_index = np.unravel_index(np.maximum(coupling.detail_cell[index], 0), fine.shape)
        parts = list(np.unravel_index(cell, problem.space.shape))
        for axis, attribute in enumerate(fine.schema.attributes):
            name = attribute.name
            if fine.bins[name].max() > problem.space.bins[name].max():
                parts[axis] = fine_index[axis]
                codes = fine.first[name][fine_index[axis]] + attribute.first
                # A place that misses a block has more ages than records.
                columns[name] = np.where(whole[group[block]] & (index >= 0), codes, -1)
        detailed = np.ravel_multi_index(tuple(parts), fine.shape).astype(np.int64)
    shape = (larger.geoids.size, fine.size)
    counts = sp.csr_array((count, (group[block], detailed)), shape=shape)
    differences = first_differences(
        larger.ranges, sp.csr_array(counts @ coupling.queries.matrix.T), coupling.queries
    )
    causes = {
        b: f"{larger.level} {larger.geoids[place]}: {differences[place]}"
        for b, place in enumerate(group.tolist())
        if place in differences and whole[place]
    }
    return columns, causes


def _detailed_cells(
    coupling: Coupling, detail: sp.coo_array, group: IntArray, block: IntArray, cell: IntArray
) -> IntArray:
    """Return the row of the larger place's detailed tables that each record is assigned to.

    Within a place and a row (sex, age bin, race class, Hispanic origin) records are taken in the
    order of block, then cell (race, Hispanic origin). They get the published single years of age
    from the youngest to the oldest. The tables do not say more: any other order is as good.
    ``detail`` are the counts of the detailed rows of each place, ``group`` the place of every
    record; records are sorted by block and cell. One for which no age is left gets -1.
    """
    columns = sp.csc_array(coupling.rows)
    row = columns.indices[columns.indptr[cell]].astype(np.int64)
    order = np.lexsort((cell, block, row, group))
    place, fine = (part.astype(np.int64) for part in detail.coords)
    by_age = np.lexsort((coupling.detail_cell[fine], coupling.detail_row[fine], place))
    size = np.maximum(detail.data[by_age], 0)
    offered_place = np.repeat(place[by_age], size)
    offered = np.repeat(fine[by_age], size)
    # Both lists are sorted by place and row: the n-th record of a key gets the n-th offer of it.
    width = coupling.rows.shape[0]
    wanted_key = group[order] * width + row[order]
    offered_key = offered_place * width + coupling.detail_row[offered]
    rank = np.arange(order.size) - np.searchsorted(wanted_key, wanted_key)
    index = np.searchsorted(offered_key, wanted_key) + rank
    available = index < np.searchsorted(offered_key, wanted_key, side="right")
    result = np.full(block.size, -1, np.int64)
    result[order[available]] = offered[index[available]]
    return result


@dataclass(frozen=True)
class Nearest:
    """Records of least total deviation, with the deviation and a lower bound of it.

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
    Steed, Qing and Wu, appendix C, for person tables. A cell is left out if its rows with a largest
    count of zero or less weigh at least as much as its rows that ask for records. A record there
    costs as much in the former as it can win in the latter. No cell needs more than the largest
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

"""A solution of every block, what is proved of it, and records where no solution is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from bayesrisk._validation import BoolArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.climb import climbed_records
from bayesrisk.reconstruction.records.kernels import UNBOUNDED
from bayesrisk.reconstruction.records.problem import CountRanges, LargerLevel, Problem
from bayesrisk.reconstruction.records.program import Clash, Row, settle
from bayesrisk.reconstruction.records.system import CellSystem, Coupling, Queries
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import IntegerModel, Limits
from bayesrisk.reconstruction.solvers.model import SolverBackend


@dataclass
class Solution:
    """A solution for every block that has one, and its status.

    ``status`` is ``unique``, ``feasible``, ``infeasible`` or ``unknown``; ``conflict`` names, for
    blocks without a solution, the published cells that contradict; ``block``, ``cell`` and
    ``count`` are the histograms.  ``unbounded`` are blocks with a cell that no published count
    holds, in words; their other cells have values, which the rows of larger places need, until
    these were checked.  ``extra`` are finer columns of the records, from larger places.
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
        shape = (problem.geoids.size, problem.space.size)
        found = sp.csr_array((self.count, (self.block, self.cell)), shape=shape)
        found.sum_duplicates()
        return found

    def keep(self, kept: BoolArray) -> None:
        """Leave out the cells that are not kept."""
        self.block, self.cell, self.count = self.block[kept], self.cell[kept], self.count[kept]


def solve_blocks(
    problem: Problem,
    *,
    solver: SolverBackend,
    limits: Limits,
    nearest: bool = False,
    loose: bool = False,
) -> tuple[Solution, IntArray]:
    """Return a solution of every block, and the deviation from the published counts.

    Most coarsened blocks are solved by a climb; blocks that no records fit get those of least
    deviation where ``nearest``.  ``limits`` and ``loose`` are as for :func:`solve`.
    """
    if not problem.coarsened or problem.larger or np.any(problem.system.cell_coef != 1):
        solution = solve(problem, solver=solver, limits=limits, loose=loose)
    else:
        solution = _climbed(problem, solver, limits, loose)
    deviation = np.zeros(problem.geoids.size, np.int64)
    if nearest:
        _add_nearest(problem, solution, deviation, solver, limits.seconds)
    return solution, deviation


def _climbed(problem: Problem, solver: SolverBackend, limits: Limits, loose: bool) -> Solution:
    """Return the records that a climb finds of some blocks, and a solution of the others."""
    (block, cell, count), rest = climbed_records(problem)
    made = Solution([Status.FEASIBLE] * problem.geoids.size, block=block, cell=cell, count=count)
    # Every answer is tabulated again.
    counts = sp.csr_array(made.histogram(problem) @ problem.system.queries.matrix.T)
    rest = np.union1d(rest, problem.ranges.differences(counts)[0])
    others = solve(problem.part(rest), solver=solver, limits=limits, loose=loose)
    for at, b in enumerate(rest.tolist()):
        made.status[b] = others.status[at]
        if at in others.conflict:
            made.conflict[b] = others.conflict[at]
    made.keep(~np.isin(made.block, rest))
    parts = (made.block, rest[others.block]), (made.cell, others.cell), (made.count, others.count)
    block, cell, count = (np.concatenate(pair) for pair in parts)
    order = np.lexsort((cell, block))
    made.block, made.cell, made.count = block[order], cell[order], count[order]
    return made


def solve(
    problem: Problem, *, solver: SolverBackend, limits: Limits, loose: bool = False
) -> Solution:
    """Return a solution of every block, with proof of uniqueness where there is one.

    ``limits`` are those of each component that the search does not settle.  Blocks with cells of
    any number keep their other records where ``loose``.
    """
    findings = settle(problem, solver=solver, limits=limits)
    bounds, solution = problem.bounds, Solution([Status.UNIQUE] * problem.geoids.size)
    if not loose:
        solution.unbounded = _unbounded(problem)
    for finding, blocks in findings.components:
        for b in blocks.tolist():
            if finding == kernels.UNKNOWN:
                # Proofs about other components stand.
                solution.status[b] = Status.UNKNOWN
                solution.conflict[b] = "a limit was reached before a solution was found"
            elif solution.status[b] == Status.UNIQUE:
                solution.status[b] = Status.FEASIBLE
    texts: dict[int, str] = {}
    for b, clash in findings.clashes.items():
        if id(clash) not in texts:
            texts[id(clash)] = _clash_text(problem, clash, solver)
        solution.status[b], solution.conflict[b] = Status.INFEASIBLE, texts[id(clash)]
    # One more record in a cell that no count bounds fits, too.
    for b in np.flatnonzero(bounds.status == kernels.TOPLESS):
        if solution.status[b] == Status.UNIQUE:
            solution.status[b] = Status.FEASIBLE
    kept = solution.solved[bounds.block] & (findings.value > 0)
    solution.block, solution.cell = bounds.block[kept], bounds.cell[kept]
    solution.count = findings.value[kept]
    _complete(problem, solution)
    return solution


def _unbounded(problem: Problem) -> dict[int, str]:
    """Return for blocks with any number of records in some cell a sentence that says so."""
    names = ", ".join(larger.level for larger in problem.larger)
    larger = f" (nor in one of its {names})" if names else ""
    return {
        int(b): f"{problem.level} {problem.geoids[b]}: some cell is in no published count{larger}"
        for b in np.flatnonzero(problem.bounds.status == kernels.LOOSE)
    }


# -----------------------------------------------------------------------------
# Published counts that contradict each other, in words.

#: Rows that are named; coefficients up to which the fewest are looked for; seconds of a look.
_NAMED, _SMALL, _SECONDS = 3, 2_000_000, 1.0


def _clash_text(problem: Problem, clash: Clash, solver: SolverBackend) -> str:
    """Return rows that have no solution together, the fewest that are found."""
    rows = clash.rows
    if clash.propagated and problem.coarsened:
        rows = _sifted(problem, _clashing_rows(problem, clash), solver)
    elif problem.coarsened:
        # Counts that are settled have settled the cells around: their rows clash with these.
        every = [
            (number, group, row)
            for number, source in enumerate(problem.rows)
            for group in np.unique(source.group[clash.blocks]).tolist()
            for row in range(_matrix(problem, number).shape[0])
        ]
        if len(every) * problem.space.size * clash.blocks.size <= _SMALL:
            rows = _sifted(problem, every, solver)
    texts = [_row_text(problem, *row) for row in rows[:_NAMED]]
    if len(rows) == 1:
        return texts[0]
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return f"together without a solution: {'; '.join(texts)}{more}"


def _clashing_rows(problem: Problem, clash: Clash) -> list[Row]:
    """Return rows of a block that contradict each other by propagation, among which fewer may."""
    alone = problem.part(clash.blocks)
    low, high = (side[0] for side in alone.rows[0].ranges.whole([0]))

    def clashes(rows: IntArray) -> bool:
        least, most = np.zeros_like(low), np.full_like(high, UNBOUNDED)
        least[rows], most[rows] = low[rows], high[rows]
        given = CountRanges.of_support(least[None], most[None], np.zeros_like(low))
        bounds = replace(alone, rows=(replace(alone.rows[0], ranges=given),)).bounds
        return bool(bounds.status[0] == kernels.INFEASIBLE)

    return [(0, int(clash.blocks[0]), int(row)) for row in _fewest(np.arange(low.size), clashes)]


def _fewest(rows: IntArray, clashes: Callable[[IntArray], bool]) -> IntArray:
    """Return some of rows that clash which still do, none of which can be left out."""
    step = max(rows.size // 2, 1)
    while True:
        at = 0
        while at < rows.size:
            rest = np.delete(rows, slice(at, at + step))
            if clashes(rest):
                rows = rest
            else:
                at += step
        if step == 1:
            return rows
        step = max(step // 2, 1)


def _matrix(problem: Problem, source: int) -> sp.csr_array:
    """Return the rows of a source over the cells of one block."""
    if source > 0:
        return problem.larger[source - 1].coupling.rows
    return sp.csr_array(problem.system.derivation @ problem.system.queries.matrix)


def _sifted(problem: Problem, rows: Sequence[Row], solver: SolverBackend) -> list[Row]:
    """Return the fewest of rows without a common solution that are found to have none."""
    size, parts, ends = problem.space.size, [], []
    blocks = np.unique(
        np.concatenate([np.flatnonzero(problem.rows[s].group == g) for s, g, _ in set(rows)])
    )
    matrices = [_matrix(problem, source) for source in range(len(problem.rows))]
    for number, group, row in rows:
        source = problem.rows[number]
        inside = sp.coo_array((source.group[blocks] == group).astype(np.int64)[None])
        parts.append(sp.kron(inside, matrices[number][[row]], format="csr"))
        ends.append([side[0, row] for side in source.ranges.whole([group])])
    matrix = sp.csr_array(sp.vstack(parts, format="csr"), dtype=np.int64)
    low, high = np.array(ends, np.int64).T
    # No cell needs more than the largest end of a row.
    top = max(int(high[high < UNBOUNDED].max(initial=0)), int(low.max(initial=0)), 0)

    def clashes(chosen: IntArray) -> bool:
        some = sp.csc_array(matrix[chosen])
        used = np.flatnonzero(np.diff(some.indptr))
        columns = np.unique(some[:, used].toarray(), axis=1)
        count = columns.shape[1]
        most = np.minimum(high[chosen], columns @ np.full(count, top))
        if np.any(low[chosen] > most) or np.any(most < 0):
            return True
        model = IntegerModel(
            np.zeros(count, np.int64), np.full(count, top), sp.csr_array(columns), low[chosen], most
        )
        # Easy contradictions are proved soon; without a proof a row stays.
        answer = solver.solve(model, model.low, limits=Limits(_SECONDS))
        return answer.status == Status.INFEASIBLE

    at = np.flatnonzero((low > 0) | (high < UNBOUNDED))
    if matrix.shape[0] * size * blocks.size <= _SMALL and clashes(at):
        at = _fewest(at, clashes)
    return [rows[k] for k in at.tolist()]


def _row_text(problem: Problem, source: int, group: int, row: int) -> str:
    """Return the place and the published cells of a row."""
    if source == 0:
        return f"{problem.level} {problem.geoids[group]}: {row_cells(problem.system, row)}"
    larger = problem.larger[source - 1]
    part = larger.coupling.derivation[[row]].tocoo()
    names = sorted(larger.coupling.queries.labels[at] for at in part.coords[1].tolist())
    return f"{larger.level} {larger.geoids[group]}: {' '.join(names)}"


def row_cells(system: CellSystem, row: int) -> str:
    """Return the published cells that a row of a block is made of, as ``+P012A003 -P012I003``."""
    if row >= system.n_rows:
        return "(no published cell)"
    part = system.derivation[[row]].tocoo()
    terms = sorted(zip(part.data.tolist(), part.coords[1].tolist(), strict=True), reverse=True)
    names = [system.queries.labels[at] for _, at in terms]
    if len(terms) == 1 and terms[0][0] == 1:
        return names[0]
    signs = ["+" if c == 1 else "-" if c == -1 else f"{c:+d} " for c, _ in terms]
    return " ".join(sign + name for sign, name in zip(signs, names, strict=True))


# -----------------------------------------------------------------------------
# Every answer tabulated again and compared with the published counts, in integer arithmetic.


def _first_differences(ranges: CountRanges, counts: sp.csr_array, names: Queries) -> dict[int, str]:
    """Return for every geography that differs its first cell with both counts.

    None is returned where every count is one of those that the published cell allows.
    """
    texts = {}
    places = ranges.differences(counts)
    for row, at, least, most, count in zip(*(part.tolist() for part in places), strict=True):
        table, cell = names.names[at]
        said = f"{least}" if least == most else f"from {least} to {most}"
        said = f"{least} or more" if most >= UNBOUNDED else said
        texts[row] = (
            f"{cell} of table {table} is {said}, what the other cells say adds up to {count}"
        )
    return texts


def _complete(problem: Problem, solution: Solution) -> None:
    """Check a solution against every published cell, and find finer attributes of its records.

    Blocks whose tables do not agree with each other lose their records; their status becomes
    ``infeasible``, with the cell that differs.  Those whose number of records no table bounds
    lose them after that, and become ``unknown``: they were there for the rows of larger places.
    """
    extra = _checked(problem, solution)
    gone = [b for b in solution.unbounded if solution.solved[b]]
    for b in gone:
        solution.status[b], solution.conflict[b] = Status.UNKNOWN, solution.unbounded[b]
    kept = ~np.isin(solution.block, gone)
    records = np.repeat(kept, solution.count)
    solution.extra = {name: extra[name][records] for name in extra}
    solution.keep(kept)


def _checked(problem: Problem, solution: Solution) -> dict[str, IntArray]:
    """Return the finer columns of what is left after blocks and places that do not agree."""
    found = solution.histogram(problem)
    names, solved = problem.system.queries, solution.solved
    differences = _first_differences(problem.ranges, sp.csr_array(found @ names.matrix.T), names)
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
    """Take the records of some blocks, and of those bound to them, away."""
    together = problem.bound_together(causes)
    for block, cause in together.items():
        solution.status[block], solution.conflict[block] = Status.INFEASIBLE, causes[cause]
    solution.keep(~np.isin(solution.block, list(together)))


def _finer_columns(
    problem: Problem, solution: Solution, larger: LargerLevel
) -> tuple[dict[str, IntArray], dict[int, str]]:
    """Return the finer columns that a level gives, and the blocks of places that do not agree."""
    coupling, group = larger.coupling, larger.group
    block, cell = (np.repeat(part, solution.count) for part in (solution.block, solution.cell))
    fine = coupling.queries.space
    whole = ~np.isin(np.arange(larger.geoids.size), group[~solution.solved])
    columns: dict[str, IntArray] = {}
    if coupling.detail is None:
        detailed = cell
    else:
        detail = sp.csr_array(larger.published @ coupling.detail.T).tocoo()
        at = _detailed_cells(coupling, detail, group[block], block, cell)
        given = np.unravel_index(np.maximum(coupling.detail_cell[at], 0), fine.shape)
        parts = list(np.unravel_index(cell, problem.space.shape))
        for axis, attribute in enumerate(fine.schema.attributes):
            name = attribute.name
            if fine.bins[name].max() > problem.space.bins[name].max():
                parts[axis] = given[axis]
                first = np.unique(fine.bins[name], return_index=True)[1]
                codes = first[given[axis]] + attribute.first
                # A place that misses a block has more ages than records.
                columns[name] = np.where(whole[group[block]] & (at >= 0), codes, -1)
        detailed = np.ravel_multi_index(tuple(parts), fine.shape).astype(np.int64)
    shape = (larger.geoids.size, fine.size)
    found = sp.csr_array((np.ones(block.size, np.int64), (group[block], detailed)), shape=shape)
    differences = _first_differences(
        larger.ranges, sp.csr_array(found @ coupling.queries.matrix.T), coupling.queries
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
    """Return for every record the row of the larger place's detailed tables that it gets.

    Within a place and a row (sex, age bin, race class, Hispanic origin) records are taken in the
    order of block, then cell (race, Hispanic origin), and get the published single years of age
    from the youngest to the oldest.  The tables do not say more: any other order is as good.
    ``detail`` are the counts of the detailed rows of each place, ``group`` the place of every
    record; records are sorted by block and cell.  One for which no age is left gets -1.
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
    at = np.searchsorted(offered_key, wanted_key) + rank
    found = at < np.searchsorted(offered_key, wanted_key, side="right")
    result = np.full(block.size, -1, np.int64)
    result[order[found]] = offered[at[found]]
    return result


# -----------------------------------------------------------------------------
# Records for tables that no records fit: the least total deviation from the published counts.


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
    known = np.flatnonzero((most < UNBOUNDED) | (least > 0))
    rows, low, high = sp.csr_array(matrix[known]), least[known], most[known]
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
    kept = sp.csr_array(columns.T)
    # A row without a cell deviates by its count, whatever the records are.
    used = np.flatnonzero(np.diff(kept.indptr))
    fixed = int(alone.sum() - alone[used].sum())
    kept, low, high = sp.csr_array(kept[used]), low[used], high[used]
    one, largest = sp.eye_array(used.size, dtype=np.int64), kept @ top
    model = IntegerModel(
        low=np.zeros(size + 2 * used.size, np.int64),
        high=np.concatenate([top, np.maximum(low, 0), largest + np.maximum(-high, 0)]),
        rows=sp.csr_array(sp.hstack([kept, one, -one], format="csr").astype(np.int64)),
        row_low=low,
        row_high=np.where(high == UNBOUNDED, largest + np.maximum(low, 0), high),
    )
    objective = np.concatenate([np.zeros(size, np.int64), np.full(2 * used.size, -1)])
    answer = solver.solve(model, objective, limits=Limits(seconds))
    if answer.values is None:
        none = np.zeros(0, np.int64)
        return Nearest(Status.UNKNOWN, none, none, int(alone.sum()), 0)
    found = answer.values[:size]
    sums = kept @ found
    deviation = fixed + int(np.maximum(low - sums, 0).sum() + np.maximum(sums - high, 0).sum())
    bound = fixed + max(0, int(np.ceil(-answer.bound - 1e-6))) if np.isfinite(answer.bound) else 0
    here = np.flatnonzero(found)
    return Nearest(answer.status, cell[here], found[here], deviation, bound)


def _add_nearest(
    problem: Problem,
    solution: Solution,
    deviation: IntArray,
    solver: SolverBackend,
    seconds: float | None,
) -> None:
    """Give blocks that no records fit those of least deviation, whose finer columns are -1."""
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
    records = np.repeat(np.arange(count.size), count)
    by_place = np.argsort(np.argsort(order)[records], kind="stable")
    added = np.full(records.size - before, -1, np.int64)
    for name, values in solution.extra.items():
        solution.extra[name] = np.concatenate([values, added])[by_place]
    solution.block, solution.cell, solution.count = block[order], cell[order], count[order]


# -----------------------------------------------------------------------------
# A solution that was found before, for tables that may tell less apart.


def starting_solution(
    problem: Problem,
    given: tuple[Problem, Solution] | None,
    *,
    solver: SolverBackend,
    limits: Limits,
) -> Solution:
    """Return a solution of a problem: one that was given of another, on its cells, or a new one.

    One that breaks tables of its blocks is refused.  Its own cells may be finer: tables of larger
    places can tell more apart.
    """
    if given is None:
        return solve(problem, solver=solver, limits=limits)
    (other, solution), names = given, problem.space.schema.names
    space = other.space
    wrong = ArgumentError("solution must be of the same blocks and cells as tables")
    if not np.array_equal(problem.geoids, other.geoids) or names != space.schema.names:
        raise wrong
    for name in names:
        fine, coarse = space.bins[name], problem.space.bins[name]
        if fine.size != coarse.size:
            raise wrong
        first = np.unique(fine, return_index=True)[1]
        if not np.array_equal(coarse[first][fine], coarse):
            raise wrong
    solution.cell = space.coarser(solution.cell, problem.space)
    published = problem.system.queries
    counts = sp.csr_array(solution.histogram(problem) @ published.matrix.T)
    differences = _first_differences(problem.ranges, counts, published)
    for block in differences:
        if solution.solved[block]:
            raise ArgumentError(
                f"solution must fit the tables: {problem.geoids[block]}: {differences[block]}"
            )
    return solution

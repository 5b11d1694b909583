"""A solution of every block, what is proved of it, and records where no solution is."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from bayesrisk._validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.conflict import (
    block_conflict,
    component_conflict,
    row_conflict,
)
from bayesrisk.reconstruction.records.kernels import UNBOUNDED
from bayesrisk.reconstruction.records.problem import (
    BlockBounds,
    CountRanges,
    LargerLevel,
    Program,
    PublishedRows,
    entries,
    open_program,
)
from bayesrisk.reconstruction.records.system import CellSpace, Coupling, Queries
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import BOUND_ERROR, IntegerModel, Limits
from bayesrisk.reconstruction.solvers.branching import find_at_least
from bayesrisk.reconstruction.solvers.model import Deadline, SolverBackend


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

    def histogram(self, problem: PublishedRows) -> sp.csr_array:
        """Return the histograms over the cells of a problem, blocks by cells."""
        shape = (problem.geoids.size, problem.space.size)
        found = sp.csr_array((self.count, (self.block, self.cell)), shape=shape)
        found.sum_duplicates()
        return found

    def keep(self, kept: BoolArray) -> None:
        """Leave out the cells that are not kept."""
        self.block, self.cell, self.count = self.block[kept], self.cell[kept], self.count[kept]


def _bound_together(problem: PublishedRows, chosen: Iterable[int]) -> dict[int, int]:
    """Return the blocks that stand or fall with the chosen ones, and with which."""
    blocks = sorted(set(chosen))
    because: dict[int, int] = {}
    if problem.larger and blocks:
        place = problem.larger[0].group  # the largest place first
        for b in blocks:
            because.setdefault(int(place[b]), b)
        others = np.flatnonzero(np.isin(place, list(because)))
        return {int(b): because[int(place[b])] for b in others} | {b: b for b in blocks}
    return {b: b for b in blocks}


def _give_up(
    problem: PublishedRows,
    solution: Solution,
    causes: Mapping[int, tuple[str, str]],
    good: BoolArray,
) -> None:
    """Note status and reason of blocks without a solution, and of those that are bound to them.

    Rows of a larger place make no sense without one of its blocks.
    """
    for block, cause in _bound_together(problem, causes).items():
        solution.status[block], solution.conflict[block] = causes[cause]
        good[block] = False


def solve(
    problem: PublishedRows,
    bounds: BlockBounds,
    *,
    solver: SolverBackend,
    limits: Limits,
    loose: bool = False,
) -> Solution:
    """Return a solution of every block, with proof of uniqueness where there is one.

    ``limits`` are those of each component that the search does not settle.  Blocks with cells of
    any number keep their other records where ``loose``.
    """
    size = problem.geoids.size
    solution = Solution(
        [Status.UNIQUE] * size, unbounded={} if loose else _unbounded(problem, bounds)
    )
    good = np.ones(size, bool)
    wrong_rows = {
        int(b): (Status.INFEASIBLE, block_conflict(problem, int(b), int(bounds.culprit[b]), solver))
        for b in np.flatnonzero(bounds.status == kernels.INFEASIBLE)
    }
    _give_up(problem, solution, wrong_rows, good)
    while True:  # ends: each round gives up a block at least
        program, wrong, low, _ = open_program(problem, bounds, good)
        if not wrong:
            break
        texts = {r: row_conflict(problem, program, r, solver) for r in set(wrong.values())}
        causes = {b: (Status.INFEASIBLE, texts[wrong[b]]) for b in wrong}
        _give_up(problem, solution, causes, good)
    star, found = solve_components(program, solver, limits)
    _note_statuses(problem, program, found, solution, solver)
    # One more record in a cell that no count bounds fits, too.
    for b in np.flatnonzero((bounds.status == kernels.TOPLESS) & good):
        if solution.status[b] == Status.UNIQUE:
            solution.status[b] = Status.FEASIBLE
    inside = np.flatnonzero(good[bounds.block])
    value = low.copy()
    value[inside[program.entry]] = star
    kept = solution.solved[bounds.block] & (value > 0)
    solution.block, solution.cell = bounds.block[kept], bounds.cell[kept]
    solution.count = value[kept]
    _complete(problem, solution)
    return solution


def _unbounded(problem: PublishedRows, bounds: BlockBounds) -> dict[int, str]:
    """Return for blocks with any number of records in some cell a sentence that says so."""
    names = ", ".join(larger.level for larger in problem.larger)
    larger = f" (nor in one of its {names})" if names else ""
    return {
        int(b): f"{problem.level} {problem.geoids[b]}: some cell is in no published count{larger}"
        for b in np.flatnonzero(bounds.status == kernels.LOOSE)
    }


def _note_statuses(
    problem: PublishedRows,
    program: Program,
    found: dict[int, tuple[int, IntArray]],
    solution: Solution,
    solver: SolverBackend,
) -> None:
    """Note the status of every block from that of its components."""
    causes: dict[int, tuple[str, str]] = {}
    for k in found:
        finding, blocks = found[k]
        text = component_conflict(problem, program, k, solver) if finding == kernels.NONE else ""
        for b in blocks.tolist():
            if finding == kernels.NONE:
                causes[b] = (Status.INFEASIBLE, text)
            elif finding == kernels.UNKNOWN:
                # Proofs about other components stand.
                solution.status[b] = Status.UNKNOWN
                solution.conflict[b] = "a limit was reached before a solution was found"
            elif solution.status[b] == Status.UNIQUE:
                solution.status[b] = Status.FEASIBLE
    _give_up(problem, solution, causes, np.ones(problem.geoids.size, bool))


# -----------------------------------------------------------------------------
# Components: a search of each, then a solver; one in which all is seen is unique or has none.


#: Nodes that a depth-first search may look at before a solver is asked.
NODES = 1000
#: Variables above which a component is searched with fewer nodes, and how many: enough for two
#: dives, which mostly find a solution and another one, but seldom the farthest.
LARGE, FEW_NODES = 60, 60
#: One in so many variables of a wide component begins its relaxation; nodes of a dive.
_EVERY, _DIVES = 50, 400
#: Variables up to which components are put into one model when a solution is looked for.
TOGETHER = 2000


def solve_components(
    program: Program, solver: SolverBackend, limits: Limits
) -> tuple[IntArray, dict[int, tuple[int, IntArray]]]:
    """Return a solution, -1 where there is none, and what is known of its components.

    Components whose solution is proved to be unique are left out; of each of the others one of the
    kernels' findings (``SEVERAL``, ``SOME``, ``NONE``, ``UNKNOWN``) and its blocks are returned.
    """
    star = np.full(program.low.size, -1, np.int64)
    found = np.full(program.n_components, kernels.PENDING, np.int64)
    _dive(program, star, found, limits)
    _search(program, star, found)
    without = [int(k) for k in np.flatnonzero(found == kernels.UNKNOWN)]
    for group in _grouped(program, without):
        _solve_group(program, group, star, found, solver, limits)
    if without:
        _search(program, star, found)
    for k in np.flatnonzero(found == kernels.SOME):
        other = distance_model(program, star, int(k)).another()
        answer = solver.solve(other, np.zeros(other.low.size, np.int64), limits=limits)
        if answer.values is not None:
            found[k] = kernels.SEVERAL
        elif answer.status == Status.INFEASIBLE:
            found[k] = kernels.UNIQUE
    return star, {
        int(k): (int(found[k]), program.blocks_of(int(k)))
        for k in np.flatnonzero(found != kernels.UNIQUE)
    }


def _dive(program: Program, star: IntArray, found: IntArray, limits: Limits) -> None:
    """Look for two solutions of every large component whose rows are wide: mostly there are."""
    from bayesrisk.reconstruction.solvers.highs import Sifted  # slow to load

    p = program.arrays
    wide = np.add.reduceat(np.append(p.row_low < p.row_high, False), p.first_row[:-1]) > 0
    for k in np.flatnonzero(wide & (np.diff(p.first_var) > LARGE)).tolist():
        model = solution_model(program, [k])
        deadline = Deadline(limits.seconds, limits.nodes)
        # Few of its cells are not 0 in a solution: any of them do to begin with.
        linear = Sifted(model, np.arange(0, model.low.size, _EVERY), deadline=deadline)
        objective, chosen = np.zeros(model.low.size, np.int64), variables(program, [k])
        linear.aim(objective)
        status, one = find_at_least(linear, model, objective, None, nodes=_DIVES, deadline=deadline)
        if one is None:
            found[k] = kernels.NONE if status == "none" else kernels.UNKNOWN
            continue
        star[chosen] = one
        linear.aim(-one)
        _, other = find_at_least(linear, model, -one, None, nodes=_DIVES, deadline=deadline)
        found[k] = kernels.SOME if other is None or np.array_equal(one, other) else kernels.SEVERAL


def node_limits(program: Program, *, farthest: bool = False) -> IntArray:
    """Return the limit of nodes for the search of every component."""
    size = np.diff(program.arrays.first_var)
    # The farthest solution of a large component is for a solver: only the bound is wanted.
    return np.where(size > LARGE, 1 if farthest else FEW_NODES + 2 * size, NODES)


def _search(program: Program, star: IntArray, found: IntArray) -> None:
    """Search the components that are pending; those with a solution have it in ``star``."""
    k = program.n_components
    has_star = (star[program.arrays.first_var[:-1]] >= 0).astype(np.int64)
    far = np.zeros(star.size, np.int64)
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    answers = kernels.SearchAnswers(star, has_star, far, found, lower, upper)
    kernels.search_components(program.arrays, program.work(), answers, 1, node_limits(program))


def _grouped(program: Program, components: list[int]) -> Iterable[list[int]]:
    """Yield components in groups whose variables fit into one model."""
    sizes = np.diff(program.arrays.first_var)
    group: list[int] = []
    total = 0
    for k in components:
        if group and total + sizes[k] > TOGETHER:
            yield group
            group, total = [], 0
        group.append(k)
        total += int(sizes[k])
    if group:
        yield group


def _solve_group(
    program: Program,
    group: list[int],
    star: IntArray,
    found: IntArray,
    solver: SolverBackend,
    limits: Limits,
) -> None:
    """Look for solutions of several components in one model; one by one if that fails."""
    model = solution_model(program, group)
    answer = solver.solve(model, np.zeros(model.low.size, np.int64), limits=limits)
    if answer.values is not None:
        star[variables(program, group)] = answer.values
        found[group] = kernels.PENDING
    elif len(group) > 1:
        for k in group:
            _solve_group(program, [k], star, found, solver, limits)
    elif answer.status == Status.INFEASIBLE:
        found[group] = kernels.NONE


# -----------------------------------------------------------------------------
# Integer models of components of a program: any solution, and the one farthest from another.


def variables(program: Program, components: Sequence[int]) -> IntArray:
    """Return the variables of some components, in order."""
    first = program.arrays.first_var
    return np.concatenate([np.arange(first[k], first[k + 1]) for k in components])


def _component_rows(program: Program, components: Sequence[int]) -> tuple[IntArray, sp.csr_array]:
    """Return the rows of some components, and their matrix over the components' variables."""
    p = program.arrays
    rows = np.concatenate([np.arange(p.first_row[k], p.first_row[k + 1]) for k in components])
    starts = np.cumsum([0, *(p.first_var[k + 1] - p.first_var[k] for k in components)])
    columns, values, sizes = [], [], []
    for k, start in zip(components, starts[:-1], strict=True):
        a, b = p.row_ptr[p.first_row[k]], p.row_ptr[p.first_row[k + 1]]
        columns.append(p.row_var[a:b] - p.first_var[k] + start)
        values.append(p.row_coef[a:b])
        sizes.append(np.diff(p.row_ptr[p.first_row[k] : p.first_row[k + 1] + 1]))
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    matrix = sp.csr_array(
        (np.concatenate(values), np.concatenate(columns), ptr),
        shape=(rows.size, int(starts[-1])),
    )
    return rows, matrix


def solution_model(program: Program, components: Sequence[int]) -> IntegerModel:
    """Return the model of the solutions of some components, variables as in ``variables``."""
    chosen = variables(program, components)
    rows, matrix = _component_rows(program, components)
    p = program.arrays
    return IntegerModel(
        program.low[chosen], program.high[chosen], matrix, p.row_low[rows], p.row_high[rows]
    )


@dataclass(frozen=True)
class DistanceModel:
    """A model whose largest value is the largest distance from a solution.

    Its variables are gains (the first ``gains`` of them), losses, and a binary for every cell
    that could do either; the objective is gains plus losses.
    """

    model: IntegerModel
    objective: IntArray
    gains: int

    def another(self) -> IntegerModel:
        """Return the model of the solutions that differ: none, when the solution is unique."""
        differs = sp.csr_array(self.objective[None, :])
        return IntegerModel(
            self.model.low,
            self.model.high,
            sp.csr_array(sp.vstack([self.model.rows, differs], format="csr")),
            np.append(self.model.row_low, 1),
            np.append(self.model.row_high, int(self.objective @ self.model.high)),
        )


def distance_model(program: Program, star: IntArray, component: int) -> DistanceModel:
    """Return the model of the largest distance from the solution ``star`` within a component.

    A cell is ``x = star + gain - loss``.  Where the bounds let it only gain or only lose, that
    is all; where they let it do either, a binary says which: ``gain <= (high - star) b`` and
    ``loss <= (star - low) (1 - b)``.  The distance is the sum of gains and losses.  Variables are
    gains, losses and binaries, in this order.
    """
    at = variables(program, [component])
    rows, matrix = _component_rows(program, [component])
    gain, loss = program.high[at] - star[at], star[at] - program.low[at]
    up, down = np.flatnonzero(gain > 0), np.flatnonzero(loss > 0)
    both = np.flatnonzero((gain > 0) & (loss > 0))
    n, n_up, n_down = both.size, up.size, down.size
    used = sp.csr_array(matrix @ star[at][:, None]).toarray().ravel()
    columns = matrix.tocsc()
    flow = sp.hstack([columns[:, up], -columns[:, down], sp.csc_array((rows.size, n))])
    switch, each = n_up + n_down + np.arange(n), np.arange(n)
    ones = np.ones(n, np.int64)

    def linked(first: IntArray, weight: IntArray) -> sp.csr_array:
        data = np.concatenate([ones, weight])
        place = (np.tile(each, 2), np.concatenate([first, switch]))
        return sp.csr_array((data, place), shape=(n, n_up + n_down + n))

    p = program.arrays
    model = IntegerModel(
        low=np.zeros(n_up + n_down + n, np.int64),
        high=np.concatenate([gain[up], loss[down], ones]),
        rows=sp.csr_array(
            sp.vstack(
                [
                    flow,
                    linked(np.searchsorted(up, both), -gain[both]),
                    linked(n_up + np.searchsorted(down, both), loss[both]),
                ],
                format="csr",
            ).astype(np.int64)
        ),
        row_low=np.concatenate([p.row_low[rows] - used, -gain[both], np.zeros(n, np.int64)]),
        row_high=np.concatenate([p.row_high[rows] - used, np.zeros(n, np.int64), loss[both]]),
    )
    objective = np.concatenate([np.ones(n_up + n_down, np.int64), np.zeros(n, np.int64)])
    return DistanceModel(model, objective, n_up)


# -----------------------------------------------------------------------------
# Every answer tabulated again and compared with the published counts, in integer arithmetic.


def first_differences(ranges: CountRanges, found: sp.csr_array, names: Queries) -> dict[int, str]:
    """Return for every geography that differs its first cell with both counts.

    None is returned where every count is one of those that the published cell allows.
    """
    over, under = (sp.csr_array(found - part).tocoo() for part in (ranges.high, ranges.low))
    above, below = over.data > ranges.zero[over.coords[1]], under.data < 0
    rows, columns = (
        np.concatenate([over.coords[k][above], under.coords[k][below]]) for k in range(2)
    )
    found.sort_indices()
    order = np.lexsort((columns, rows))
    places, first = np.unique(rows[order], return_index=True)
    column = columns[order][first]
    low, high = ranges.at(places.astype(np.int64), column.astype(np.int64))
    counts = entries(found, places.astype(np.int64), column.astype(np.int64))
    texts = {}
    for row, at, least, most, count in zip(
        *(part.tolist() for part in (places, column, low, high, counts)), strict=True
    ):
        table, cell = names.names[at]
        said = f"{least}" if least == most else f"from {least} to {most}"
        said = f"{least} or more" if most >= UNBOUNDED else said
        texts[row] = (
            f"{cell} of table {table} is {said}, what the other cells say adds up to {count}"
        )
    return texts


def _complete(problem: PublishedRows, solution: Solution) -> None:
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


def _checked(problem: PublishedRows, solution: Solution) -> dict[str, IntArray]:
    """Return the finer columns of what is left after blocks and places that do not agree."""
    found = solution.histogram(problem)
    names, solved = problem.system.queries, solution.solved
    differences = first_differences(problem.ranges, sp.csr_array(found @ names.matrix.T), names)
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


def _drop(problem: PublishedRows, solution: Solution, causes: dict[int, str]) -> None:
    """Take the records of some blocks, and of those bound to them, away."""
    gone = np.ones(problem.geoids.size, bool)
    _give_up(problem, solution, {b: (Status.INFEASIBLE, causes[b]) for b in causes}, gone)
    solution.keep(gone[solution.block])


def _finer_columns(
    problem: PublishedRows, solution: Solution, larger: LargerLevel
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
        at = detailed_cells(coupling, detail, group[block], block, cell)
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
    differences = first_differences(
        larger.ranges, sp.csr_array(found @ coupling.queries.matrix.T), coupling.queries
    )
    causes = {
        b: f"{larger.level} {larger.geoids[place]}: {differences[place]}"
        for b, place in enumerate(group.tolist())
        if place in differences and whole[place]
    }
    return columns, causes


def detailed_cells(
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


def add_nearest(
    problem: PublishedRows,
    solution: Solution,
    solver: SolverBackend,
    seconds: float | None,
) -> IntArray:
    """Give blocks that no records fit those of least deviation, and return every deviation.

    Their finer columns are -1.
    """
    deviation = np.zeros(problem.geoids.size, np.int64)
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
    return deviation


# -----------------------------------------------------------------------------
# A solution that was found before, for tables that may tell less apart.


def check_solution(
    problem: PublishedRows, solution: Solution, geoids: TextArray, space: CellSpace
) -> None:
    """Put a solution on the cells of a problem; refuse one that breaks tables of its blocks.

    Its own cells, those of ``space``, may be finer: tables of larger places can tell more apart.
    """
    names = problem.space.schema.names
    wrong = ArgumentError("solution must be of the same blocks and cells as tables")
    if not np.array_equal(problem.geoids, geoids) or names != space.schema.names:
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
    differences = first_differences(problem.ranges, counts, published)
    for block in differences:
        if solution.solved[block]:
            raise ArgumentError(
                f"solution must fit the tables: {problem.geoids[block]}: {differences[block]}"
            )


# -----------------------------------------------------------------------------
# The farthest solution of every component.


_WITHOUT_END = 2**60


@dataclass
class Farthest:
    """Bounds of the largest distance from a solution, component by component.

    ``fixed`` says whether all solutions have as many records: then they gain what they lose.
    ``more`` is how many records more than the solution the farthest one found has, at the
    distance ``lower``; ``seconds`` is the time that a solver took.
    """

    lower: IntArray
    upper: IntArray
    seconds: FloatArray
    fixed: BoolArray
    more: IntArray


def _solve_distance(
    program: Program,
    star: IntArray,
    component: int,
    solver: SolverBackend,
    limits: Limits,
    *,
    even: bool,
) -> tuple[int, int, int, float]:
    """Return bounds of the largest distance within a component, records more, and the time."""
    problem = distance_model(program, star, component)
    start = time.perf_counter()
    limits = replace(limits, gap=1.99 if even else 0.99)
    answer = solver.solve(problem.model, problem.objective, limits=limits)
    lower, more = 0, 0
    if answer.value is not None and answer.values is not None:
        lower = int(answer.value)
        more = 2 * int(answer.values[: problem.gains].sum()) - lower
    upper = int(problem.objective @ problem.model.high)
    if np.isfinite(answer.bound):
        # The largest distance below the solver's bound: a multiple of 2 where the total is fixed.
        step = 2 if even else 1
        upper = min(upper, step * int(np.floor((answer.bound + BOUND_ERROR) / step)))
    return lower, max(lower, upper), more, time.perf_counter() - start


def fixed_totals(program: Program) -> BoolArray:
    """Return the components with one number of records: every distance within is even.

    They have a family whose rows are equations of ones that hold every variable once.
    """
    p = program.arrays
    size, n_vars = np.diff(p.row_ptr), np.diff(p.first_var)
    owner = np.repeat(np.arange(n_vars.size), np.diff(p.first_row))
    weighted = np.bincount(np.repeat(np.arange(size.size), size), p.row_coef != 1, size.size)
    sound = (p.row_low == p.row_high) & (weighted == 0)
    keys = np.stack([owner, p.family])[:, sound]
    (component, _), at = np.unique(keys, axis=1, return_inverse=True)
    # Rows of a family share no variable: as many variables as there are is each of them once.
    held = np.bincount(at.ravel(), size[sound], component.size)
    found = np.zeros(n_vars.size, np.bool_)
    found[component[held == n_vars[component]]] = True
    return found


def farthest(program: Program, star: IntArray, solver: SolverBackend, limits: Limits) -> Farthest:
    """Return bounds of the largest distance from ``star`` in every component.

    The solver is asked for components that the search does not settle; the gap is chosen here.
    """
    k = program.n_components
    far, point = np.zeros(star.size, np.int64), star.copy()
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    found = np.full(k, kernels.PENDING, np.int64)
    answers = kernels.SearchAnswers(point, np.ones(k, np.int64), far, found, lower, upper)
    nodes, work = node_limits(program, farthest=True), program.work()
    taken, even, more = np.zeros(k), fixed_totals(program), np.zeros(k, np.int64)
    kernels.search_components(program.arrays, work, answers, _WITHOUT_END, nodes)
    np.add.at(more, program.component_of(), far - star)
    for component in np.flatnonzero(lower != upper):
        low, high, gained, taken[component] = _solve_distance(
            program, star, int(component), solver, limits, even=bool(even[component])
        )
        if low > lower[component]:
            lower[component], more[component] = low, gained
        upper[component] = high if upper[component] < 0 else min(upper[component], high)
    return Farthest(lower, upper, taken, even, more)

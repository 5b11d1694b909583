"""Solutions of all blocks, component by component, and explanations of contradictions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints import propagation
from bayesrisk.constraints.model import Components, IntegerModel, Status, components, expand
from bayesrisk.constraints.propagation import (
    ProgramArrays,
    SearchWork,
    program_arrays,
    propagate_components,
    search_work,
)
from bayesrisk.constraints.solvers import Limits, SolverBackend
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.problem import BlockBounds, CountRanges, Problem, RowSource
from bayesrisk.reconstruction.records.system import CellSystem
from bayesrisk.tables.cells import positions
from bayesrisk.tables.likelihoods import UNBOUNDED


@dataclass(frozen=True)
class Program:
    """The program of undetermined cells: their bounds and rows, split into components.

    ``entry``, ``block`` and ``cell`` say which of the given cells each variable is; ``source``,
    ``group`` and ``row`` where each row comes from, and ``family`` which others share none of its
    cells.
    """

    parts: Components
    family: IntArray
    entry: IntArray
    block: IntArray
    cell: IntArray
    source: IntArray
    group: IntArray
    row: IntArray

    @property
    def model(self) -> IntegerModel:
        """The model of cells and rows."""
        return self.parts.model

    @cached_property
    def arrays(self) -> ProgramArrays:
        """The program as arrays for the compiled search."""
        return program_arrays(self.parts, self.family)

    def work(self) -> SearchWork:
        """Return fresh working arrays of a search."""
        return search_work(self.arrays, self.model.low, self.model.high)

    def component_blocks(self, component: int) -> IntArray:
        """Return the blocks that have a cell in a component."""
        first, last = self.parts.first_var[component : component + 2]
        return np.unique(self.block[first:last])


def _rows(
    source: RowSource, block: IntArray, cell: IntArray, low: IntArray, free: BoolArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return keys and residual bounds of rows with free cells, and entries (row, var, coef)."""
    n_rows = source.family.size
    position, owner = expand(source.columns.ptr, cell)
    base = block if source.single_block else source.group[block]
    key = base[owner] * n_rows + source.columns.row[position]
    coef = source.columns.coef[position]
    open_entry = free[owner]
    keys, row = np.unique(key[open_entry], return_inverse=True)
    group = keys // n_rows
    if source.single_block:
        group = source.group[group]
    least, most = source.ranges.ends(group, keys % n_rows)
    # What the settled cells of these rows hold is taken off.
    index = positions(key[~open_entry], keys)
    fixed = coef[~open_entry] * low[owner[~open_entry]]
    inside = index >= 0
    settled = np.zeros(keys.size, np.int64)
    np.add.at(settled, index[inside], fixed[inside])
    # What a row asks for may be there already; one without an upper end then says nothing.
    endless = most == UNBOUNDED
    published = ~endless | (least > settled) | source.required
    keep = published[row]
    new = np.cumsum(published) - 1
    var = (np.cumsum(free) - 1)[owner[open_entry]]
    return (
        keys[published],
        (least - settled)[published],
        np.where(endless, UNBOUNDED, most - settled)[published],
        new[row[keep]],
        var[keep],
        coef[open_entry][keep],
    )


def build_program(
    sources: Sequence[RowSource], block: IntArray, cell: IntArray, low: IntArray, high: IntArray
) -> Program:
    """Return the program of the cells (of ``block``, ``cell``) whose bounds differ.

    Counts of settled cells, ``low == high``, are taken off the counts of their rows.  Variables and
    rows are sorted by component.
    """
    free = low < high
    pieces = [_rows(source, block, cell, low, free) for source in sources]
    sizes = [part[0].size for part in pieces]
    offset = np.concatenate([[0], np.cumsum(sizes)])
    entry_row = np.concatenate([p[3] + offset[index] for index, p in enumerate(pieces)])
    keys, least, most, _, entry_var, coef = (np.concatenate(p) for p in zip(*pieces, strict=True))
    source = np.repeat(np.arange(len(sources)), sizes)
    # A key is the group, times the rows of its source, plus the row.
    group, row_id = np.divmod(keys, np.array([s.family.size for s in sources])[source])
    first = np.concatenate([[0], np.cumsum([s.family.size for s in sources])[:-1]])[source]
    shift = np.concatenate([[0], np.cumsum([int(s.family.max()) + 1 for s in sources])[:-1]])
    family = np.concatenate([s.family for s in sources])[first + row_id] + shift[source]
    equal = np.array([s.equal for s in sources])[source]
    n_vars, n_rows = int(free.sum()), int(offset[-1])
    # No row has a larger end than its cells: certificates stay within whole numbers.
    room = np.zeros(n_rows, np.int64)
    np.add.at(room, entry_row, coef * high[free][entry_var])
    most = np.where(most > least, np.clip(most, least, np.maximum(room, least)), most)
    matrix = sp.csr_array((coef, (entry_row, entry_var)), shape=(n_rows, n_vars))
    least = np.where(equal, least, 0)
    parts = components(IntegerModel(low[free], high[free], matrix, least, most))
    index, order = np.flatnonzero(free)[parts.variable], parts.row
    return Program(
        parts, family[order], index, block[index], cell[index], source[order], group[order],
        row_id[order],
    )  # fmt: skip


def open_program(
    problem: Problem, bounds: BlockBounds, good: BoolArray, *, bounds_only: bool = False
) -> tuple[Program, dict[int, int], IntArray, IntArray]:
    """Return the program of undetermined cells, contradictions, and the tightened bounds.

    Only blocks that are ``good`` are examined. With ``bounds_only``, coupling rows hold for every
    block as upper bounds. Contradictions are the blocks of components without a solution, each with
    the contradicting row of the program. The bounds are those of the cells of ``bounds``.
    """
    first, *larger = problem.rows
    if bounds_only:
        larger = [replace(rows, equal=False, single_block=True) for rows in larger]
    low, high = bounds.low.copy(), bounds.high.copy()
    inside = np.flatnonzero(good[bounds.block])
    block, cell = bounds.block[inside], bounds.cell[inside]
    wrong: dict[int, int] = {}
    while True:  # ends: each round settles a cell that the last one left open
        program = build_program([first, *larger], block, cell, low[inside], high[inside])
        work = program.work()
        culprit = np.full(program.parts.size, -1, np.int64)
        propagate_components(program.arrays, work, culprit)
        for k in np.flatnonzero(culprit >= 0):
            wrong.update((int(b), int(culprit[k])) for b in program.component_blocks(int(k)))
        low[inside[program.entry]], high[inside[program.entry]] = work.low, work.high
        if wrong or not np.any((work.low == work.high) & (program.model.low < program.model.high)):
            return program, wrong, low, high


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
) -> tuple[IntArray, dict[int, int]]:
    """Return a solution (-1 if there is none), and findings on components not proved unique.

    Findings are those of the kernels: ``SEVERAL``, ``SOME``, ``NONE`` or ``UNKNOWN``.
    """
    star = np.full(program.model.low.size, -1, np.int64)
    findings = np.full(program.parts.size, propagation.PENDING, np.int64)
    _dive(program, star, findings, limits)
    _search(program, star, findings)
    without = [int(k) for k in np.flatnonzero(findings == propagation.UNKNOWN)]
    for group in _grouped(program, without):
        _solve_group(program, group, star, findings, solver, limits)
    if without:
        _search(program, star, findings)
    for k in np.flatnonzero(findings == propagation.SOME):
        other = distance_model(program, star, int(k)).another()
        answer = solver.solve(other, np.zeros(other.low.size, np.int64), limits=limits.next)
        if answer.values is not None:
            findings[k] = propagation.SEVERAL
        elif answer.status == Status.INFEASIBLE:
            findings[k] = propagation.UNIQUE
    return star, {int(k): int(findings[k]) for k in np.flatnonzero(findings != propagation.UNIQUE)}


def _dive(program: Program, star: IntArray, findings: IntArray, limits: Limits) -> None:
    """Search for two solutions of every large component with wide rows; most have them."""
    from bayesrisk.constraints.highs import Sifted  # slow to load

    p = program.arrays
    wide = np.add.reduceat(np.append(p.row_low < p.row_high, False), p.first_row[:-1]) > 0
    for k in np.flatnonzero(wide & (np.diff(p.first_var) > LARGE)).tolist():
        model = program.parts.part([k])
        # Few of its cells are not 0 in a solution: any of them do to begin with.
        linear = Sifted(model, np.arange(0, model.low.size, _EVERY), deadline=limits.deadline)
        status, one = linear.find(np.zeros(model.low.size, np.int64), nodes=_DIVES)
        if one is None:
            findings[k] = propagation.NONE if status == "none" else propagation.UNKNOWN
            continue
        star[program.parts.variables([k])] = one
        _, other = linear.find(-one, nodes=_DIVES)
        findings[k] = (
            propagation.SOME if other is None or np.array_equal(one, other) else propagation.SEVERAL
        )


def node_limits(program: Program, *, farthest: bool = False) -> IntArray:
    """Return the node limit for the search of every component."""
    size = np.diff(program.arrays.first_var)
    # The farthest solution of a large component is for a solver: only the bound is wanted.
    return np.where(size > LARGE, 1 if farthest else FEW_NODES + 2 * size, NODES)


def _search(program: Program, star: IntArray, findings: IntArray) -> None:
    """Search the pending components; ``star`` holds the solutions already known."""
    k = program.parts.size
    has_star = (star[program.arrays.first_var[:-1]] >= 0).astype(np.int64)
    far = np.zeros(star.size, np.int64)
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    answers = propagation.SearchAnswers(star, has_star, far, findings, lower, upper)
    propagation.search_components(program.arrays, program.work(), answers, 1, node_limits(program))


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
    findings: IntArray,
    solver: SolverBackend,
    limits: Limits,
) -> None:
    """Solve several components in one model, or one by one if that fails."""
    model = program.parts.part(group)
    answer = solver.solve(model, np.zeros(model.low.size, np.int64), limits=limits.next)
    if answer.values is not None:
        star[program.parts.variables(group)] = answer.values
        findings[group] = propagation.PENDING
    elif len(group) > 1:
        for k in group:
            _solve_group(program, [k], star, findings, solver, limits)
    elif answer.status == Status.INFEASIBLE:
        findings[group] = propagation.NONE


@dataclass(frozen=True)
class DistanceModel:
    """A model whose maximum is the largest distance of a solution from a given one.

    Its variables are gains (the first ``gains`` of them), losses, and a binary for every cell
    that could do either; the objective is gains plus losses.
    """

    model: IntegerModel
    objective: IntArray
    gains: int

    def another(self) -> IntegerModel:
        """Return the model of different solutions; it is infeasible if the solution is unique."""
        return self.model.beyond(self.objective, 1)


def distance_model(program: Program, star: IntArray, component: int) -> DistanceModel:
    """Return the model of the largest distance from the solution ``star`` in a component.

    A cell is ``x = star + gain - loss``. If the bounds allow only gain or only loss, that is all.
    If they allow both, a binary chooses: ``gain <= (high - star) b`` and
    ``loss <= (star - low) (1 - b)``. The distance is the sum of gains and losses. Variables are
    gains, losses and binaries, in this order.
    """
    part, star = program.parts.part([component]), star[program.parts.variables([component])]
    matrix, gain, loss = part.rows, part.high - star, star - part.low
    up, down = np.flatnonzero(gain > 0), np.flatnonzero(loss > 0)
    two_sided = np.flatnonzero((gain > 0) & (loss > 0))
    n, n_up, n_down = two_sided.size, up.size, down.size
    used = matrix @ star
    columns = matrix.tocsc()
    flow = sp.hstack([columns[:, up], -columns[:, down], sp.csc_array((used.size, n))])
    switch, numbers = n_up + n_down + np.arange(n), np.arange(n)
    ones = np.ones(n, np.int64)

    def linked(first: IntArray, weight: IntArray) -> sp.csr_array:
        data = np.concatenate([ones, weight])
        place = (np.tile(numbers, 2), np.concatenate([first, switch]))
        return sp.csr_array((data, place), shape=(n, n_up + n_down + n))

    model = IntegerModel(
        low=np.zeros(n_up + n_down + n, np.int64),
        high=np.concatenate([gain[up], loss[down], ones]),
        rows=sp.csr_array(
            sp.vstack(
                [
                    flow,
                    linked(np.searchsorted(up, two_sided), -gain[two_sided]),
                    linked(n_up + np.searchsorted(down, two_sided), loss[two_sided]),
                ],
                format="csr",
            ).astype(np.int64)
        ),
        row_low=np.concatenate([part.row_low - used, -gain[two_sided], np.zeros(n, np.int64)]),
        row_high=np.concatenate([part.row_high - used, np.zeros(n, np.int64), loss[two_sided]]),
    )
    objective = np.concatenate([np.ones(n_up + n_down, np.int64), np.zeros(n, np.int64)])
    return DistanceModel(model, objective, n_up)


#: A row: its source, its group and its number.
Row: TypeAlias = tuple[int, int, int]


class Clash(NamedTuple):
    """Rows that contradict each other, and the blocks involved.

    ``propagated`` says whether the tables of the block by itself show it, by one of its rows.
    """

    rows: list[Row]
    blocks: IntArray
    propagated: bool = False


@dataclass(frozen=True)
class Findings:
    """A solution of all blocks, components that are not unique, and contradictory blocks.

    ``value`` is the number of records in each cell that has bounds, where there is a solution;
    ``components`` are the kernels' findings, each with its blocks, of those whose solution is not
    unique; ``conflicts`` are the published cells that contradict, by block.
    """

    value: IntArray
    components: list[tuple[int, IntArray]]
    conflicts: dict[int, str]


def settle(problem: Problem, *, solver: SolverBackend, limits: Limits) -> Findings:
    """Return a solution, open components and conflicts; ``limits`` are for each component."""
    bounds, good = problem.bounds, np.ones(problem.geoids.size, bool)
    infeasible = np.flatnonzero(bounds.status == kernels.INFEASIBLE).tolist()
    clashes = _excluded(
        problem,
        {b: Clash([(0, b, int(bounds.culprit[b]))], np.array([b]), True) for b in infeasible},
    )
    good[list(clashes)] = False
    while True:  # ends: each round gives up a block at least
        program, wrong, low, _ = open_program(problem, bounds, good)
        if not wrong:
            break
        by_row = {row: _row_clash(problem, program, row) for row in set(wrong.values())}
        more = _excluded(problem, {b: by_row[row] for b, row in wrong.items()})
        clashes |= more
        good[list(more)] = False
    star, findings = solve_components(program, solver, limits)
    value = low.copy()
    value[np.flatnonzero(good[bounds.block])[program.entry]] = star
    components = [(finding, program.component_blocks(k)) for k, finding in findings.items()]
    without: dict[int, Clash] = {}
    for k in findings:
        if findings[k] == propagation.NONE:
            clash = _component_clash(program, k)
            without |= dict.fromkeys(clash.blocks.tolist(), clash)
    clashes |= _excluded(problem, without)
    distinct = {id(clash): clash for clash in clashes.values()}
    texts = {key: _clash_text(problem, clash, solver) for key, clash in distinct.items()}
    return Findings(value, components, {b: texts[id(clash)] for b, clash in clashes.items()})


def _excluded(problem: Problem, causes: Mapping[int, Clash]) -> dict[int, Clash]:
    """Return the blocks that fail for the given causes, or that depend on such a block."""
    return {block: causes[cause] for block, cause in problem.bound_together(causes).items()}


def _component_clash(program: Program, component: int) -> Clash:
    first, last = program.arrays.first_row[component : component + 2]
    ids = (part[first:last].tolist() for part in (program.source, program.group, program.row))
    return Clash(list(zip(*ids, strict=True)), program.component_blocks(component))


def _row_clash(problem: Problem, program: Program, row: int) -> Clash:
    """Return a violated row, or all rows of its component where counts are ranges."""
    component = int(np.searchsorted(program.arrays.first_row, row, side="right")) - 1
    clash = _component_clash(program, component)
    local_row = row - int(program.arrays.first_row[component])
    return clash if problem.coarsened else clash._replace(rows=[clash.rows[local_row]])


#: Rows that are named; coefficients up to which the fewest are looked for; seconds of a look.
_NAMED, _SMALL, _SECONDS = 3, 2_000_000, 1.0


def _clash_text(problem: Problem, clash: Clash, solver: SolverBackend) -> str:
    """Return contradictory rows in words, as few as are found."""
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
    """Return rows of a block that contradict each other by propagation."""
    alone = problem.part(clash.blocks)
    low, high = (side[0] for side in alone.rows[0].ranges.whole([0]))

    def clashes(rows: IntArray) -> bool:
        least, most = np.zeros_like(low), np.full_like(high, UNBOUNDED)
        least[rows], most[rows] = low[rows], high[rows]
        ranges = CountRanges.from_support(least[None], most[None], np.zeros_like(low))
        bounds = replace(alone, rows=(replace(alone.rows[0], ranges=ranges),)).bounds
        return bool(bounds.status[0] == kernels.INFEASIBLE)

    return [(0, int(clash.blocks[0]), int(row)) for row in _fewest(np.arange(low.size), clashes)]


def _fewest(rows: IntArray, clashes: Callable[[IntArray], bool]) -> IntArray:
    step = max(rows.size // 2, 1)
    while True:
        start = 0
        while start < rows.size:
            rest = np.delete(rows, slice(start, start + step))
            if clashes(rest):
                rows = rest
            else:
                start += step
        if step == 1:
            return rows
        step = max(step // 2, 1)


def _matrix(problem: Problem, source: int) -> sp.csr_array:
    if source > 0:
        return problem.larger[source - 1].coupling.rows
    return sp.csr_array(problem.system.derivation @ problem.system.queries.matrix)


def _sifted(problem: Problem, rows: Sequence[Row], solver: SolverBackend) -> list[Row]:
    """Return as few of the contradictory rows as are found to contradict each other."""
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
        selected = sp.csc_array(matrix[chosen])
        used = np.flatnonzero(np.diff(selected.indptr))
        columns = np.unique(selected[:, used].toarray(), axis=1)
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

    candidates = np.flatnonzero((low > 0) | (high < UNBOUNDED))
    if matrix.shape[0] * size * blocks.size <= _SMALL and clashes(candidates):
        candidates = _fewest(candidates, clashes)
    return [rows[k] for k in candidates.tolist()]


def _row_text(problem: Problem, source: int, group: int, row: int) -> str:
    if source == 0:
        return f"{problem.level} {problem.geoids[group]}: {row_cells(problem.system, row)}"
    larger = problem.larger[source - 1]
    part = larger.coupling.derivation[[row]].tocoo()
    names = sorted(larger.coupling.queries.labels[number] for number in part.coords[1].tolist())
    return f"{larger.level} {larger.geoids[group]}: {' '.join(names)}"


def row_cells(system: CellSystem, row: int) -> str:
    """Return the published cells of which a block's row consists, as ``+P012A003 -P012I003``."""
    if row >= system.n_rows:
        return "(no published cell)"
    part = system.derivation[[row]].tocoo()
    terms = sorted(zip(part.data.tolist(), part.coords[1].tolist(), strict=True), reverse=True)
    names = [system.queries.labels[query] for _, query in terms]
    if len(terms) == 1 and terms[0][0] == 1:
        return names[0]
    signs = ["+" if c == 1 else "-" if c == -1 else f"{c:+d} " for c, _ in terms]
    return " ".join(sign + name for sign, name in zip(signs, names, strict=True))

"""A solution of all blocks whose counts agree, and the counts of the others that do not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import IntArray
from bayesrisk.constraints import propagation
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.solvers import Limits, SolverBackend
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.problem import CountRanges, Problem
from bayesrisk.reconstruction.records.program import Program, open_program
from bayesrisk.reconstruction.records.search import solve_components
from bayesrisk.reconstruction.records.system import CellSystem
from bayesrisk.tables.likelihoods import UNBOUNDED

#: A row: its source, its group and its number.
Row: TypeAlias = tuple[int, int, int]


class Clash(NamedTuple):
    """Rows without a common solution, and the blocks that they are about.

    ``propagated`` says whether the tables of the block by itself show it, by one of its rows.
    """

    rows: list[Row]
    blocks: IntArray
    propagated: bool = False


@dataclass(frozen=True)
class Findings:
    """A solution, open components, and the blocks without a solution.

    ``value`` is the number of records in each cell that has bounds, where there is a solution;
    ``components`` are the kernels' findings, each with its blocks, of those whose solution is not
    unique; ``conflicts`` are the published cells that contradict, by block.
    """

    value: IntArray
    components: list[tuple[int, IntArray]]
    conflicts: dict[int, str]


def settle(problem: Problem, *, solver: SolverBackend, limits: Limits) -> Findings:
    """Return a solution, components and conflicts of all blocks; ``limits`` are of a component."""
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
    """Return the blocks that have no solution for some causes, or stand or fall with those."""
    return {block: causes[cause] for block, cause in problem.bound_together(causes).items()}


def _component_clash(program: Program, component: int) -> Clash:
    first, last = program.arrays.first_row[component : component + 2]
    ids = (part[first:last].tolist() for part in (program.source, program.group, program.row))
    return Clash(list(zip(*ids, strict=True)), program.component_blocks(component))


def _row_clash(problem: Problem, program: Program, row: int) -> Clash:
    """Return the row of a program that contradicts, with all around it where counts are ranges."""
    component = int(np.searchsorted(program.arrays.first_row, row, side="right")) - 1
    clash = _component_clash(program, component)
    local_row = row - int(program.arrays.first_row[component])
    return clash if problem.coarsened else clash._replace(rows=[clash.rows[local_row]])


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
    """Return the published cells that a row of a block is made of, as ``+P012A003 -P012I003``."""
    if row >= system.n_rows:
        return "(no published cell)"
    part = system.derivation[[row]].tocoo()
    terms = sorted(zip(part.data.tolist(), part.coords[1].tolist(), strict=True), reverse=True)
    names = [system.queries.labels[query] for _, query in terms]
    if len(terms) == 1 and terms[0][0] == 1:
        return names[0]
    signs = ["+" if c == 1 else "-" if c == -1 else f"{c:+d} " for c, _ in terms]
    return " ".join(sign + name for sign, name in zip(signs, names, strict=True))

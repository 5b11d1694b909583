"""Published counts that contradict each other, in words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._validation import IntArray
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.kernels import UNBOUNDED
from bayesrisk.reconstruction.records.problem import (
    CountRanges,
    Program,
    PublishedRows,
    row_bounds,
)
from bayesrisk.reconstruction.records.system import CellSystem
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import IntegerModel, Limits
from bayesrisk.reconstruction.solvers.model import SolverBackend

#: A row: its source, its group and its number.
Row: TypeAlias = tuple[int, int, int]
#: Rows that are named; coefficients up to which the fewest are looked for; seconds of a look.
_NAMED, _SMALL, _SECONDS = 3, 2_000_000, 1.0


def block_conflict(problem: PublishedRows, block: int, culprit: int, solver: SolverBackend) -> str:
    """Return the rows of a block that contradict each other, ``culprit`` being one of them."""
    source = problem.rows[0]
    if not problem.coarsened:
        return _row_text(problem, 0, block, culprit)
    low, high = (side[0] for side in source.ranges.whole([block]))

    def clashes(rows: IntArray) -> bool:
        least, most = np.zeros_like(low), np.full_like(high, UNBOUNDED)
        least[rows], most[rows] = low[rows], high[rows]
        given = CountRanges.of_support(least[None], most[None], np.zeros_like(low))
        bounds = row_bounds(problem, replace(source, ranges=given))
        return bool(bounds.status[0] == kernels.INFEASIBLE)

    # Propagation finds some that clash, among which fewer may.
    rows = _fewest(np.arange(low.size), clashes)
    return _clash_text(problem, _sifted(problem, [(0, block, int(row)) for row in rows], solver))


def component_conflict(
    problem: PublishedRows, program: Program, component: int, solver: SolverBackend
) -> str:
    """Return rows of a component that have no solution, though no single row contradicts."""
    first, last = program.arrays.first_row[component : component + 2]
    at = program.source, program.group, program.row
    rows = list(zip(*(part[first:last].tolist() for part in at), strict=True))
    if problem.coarsened:
        # Counts that are settled have settled the cells around: their rows clash with these.
        blocks = program.blocks_of(component)
        every = [
            (number, group, row)
            for number, source in enumerate(problem.rows)
            for group in np.unique(source.group[blocks]).tolist()
            for row in range(_matrix(problem, number).shape[0])
        ]
        if len(every) * problem.space.size * blocks.size <= _SMALL:
            rows = _sifted(problem, every, solver)
    return _clash_text(problem, rows)


def row_conflict(problem: PublishedRows, program: Program, row: int, solver: SolverBackend) -> str:
    """Return the rows that contradict a row of a program, or that row where counts are true."""
    if problem.coarsened:
        component = int(np.searchsorted(program.arrays.first_row, row, side="right")) - 1
        return component_conflict(problem, program, component, solver)
    source, group, own = program.source[row], program.group[row], program.row[row]
    return _row_text(problem, int(source), int(group), int(own))


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


def _matrix(problem: PublishedRows, source: int) -> sp.csr_array:
    """Return the rows of a source over the cells of one block."""
    if source > 0:
        return problem.larger[source - 1].coupling.rows
    return sp.csr_array(problem.system.derivation @ problem.system.queries.matrix)


def _sifted(problem: PublishedRows, rows: Sequence[Row], solver: SolverBackend) -> list[Row]:
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


def _clash_text(problem: PublishedRows, rows: Sequence[Row]) -> str:
    """Return rows that are without a solution together."""
    texts = [_row_text(problem, *row) for row in rows[:_NAMED]]
    if len(rows) == 1:
        return texts[0]
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return f"together without a solution: {'; '.join(texts)}{more}"


def _row_text(problem: PublishedRows, source: int, group: int, row: int) -> str:
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

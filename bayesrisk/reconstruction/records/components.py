"""Programs of free cells: their components, solutions of each, and the farthest other one."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.kernels import HIDDEN, ProgramArrays, SearchWork
from bayesrisk.reconstruction.records.problem import BlockBounds, PublishedRows, RowSource
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import BOUND_ERROR, IntegerModel, Limits
from bayesrisk.reconstruction.solvers.model import SolverBackend

#: Changes of bounds, beyond two for each variable, that a search can take back; one that needs
#: more stops, as at its limit of nodes.  24 bytes each.
MOST_CHANGES = 5_000_000
#: Nodes that a depth-first search may look at before a solver is asked.
NODES = 1000
#: Variables above which a component is searched with fewer nodes, and how many: enough for two
#: dives, which mostly find a solution and another one, but seldom the farthest.
LARGE, FEW_NODES = 60, 60
#: Variables up to which components are put into one model when a solution is looked for.
TOGETHER = 2000
_WITHOUT_END = 2**60


@dataclass(frozen=True)
class Program:
    """Free cells with their bounds, and the rows that bind them.

    ``entry``, ``block`` and ``cell`` say which of the given cells each variable is; ``source``,
    ``group`` and ``row`` where each row comes from.
    """

    arrays: ProgramArrays
    low: IntArray
    high: IntArray
    entry: IntArray
    block: IntArray
    cell: IntArray
    source: IntArray
    group: IntArray
    row: IntArray

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.arrays.first_var.size - 1

    def component_of(self) -> IntArray:
        """Return the component of every variable."""
        return np.repeat(np.arange(self.n_components), np.diff(self.arrays.first_var))

    def blocks_of(self, component: int) -> IntArray:
        """Return the blocks that have a cell in a component."""
        first, last = self.arrays.first_var[component : component + 2]
        return np.unique(self.block[first:last])

    def work(self) -> SearchWork:
        """Return fresh working arrays; the sums of rows are filled by propagation."""
        n_rows, n_vars = self.arrays.row_low.size, self.low.size
        families = int(self.arrays.family.max()) + 1 if n_rows else 1
        depth = int((self.high - self.low).sum()) + n_vars + 1
        return SearchWork(
            low=self.low.copy(),
            high=self.high.copy(),
            least=np.zeros(n_rows, np.int64),
            most=np.zeros(n_rows, np.int64),
            trail=np.empty((min(depth, MOST_CHANGES) + 2 * n_vars, 3), np.int64),
            queue=np.empty(n_rows + 1, np.int64),
            waiting=np.zeros(n_rows, np.int64),
            state=np.zeros(5, np.int64),
            stack=np.empty((n_vars + 1, 4), np.int64),
            usable=np.zeros(families, np.int64),
            total=np.zeros(families, np.int64),
        )


def entries(matrix: sp.csr_array, rows: IntArray, columns: IntArray) -> IntArray:
    """Return the entries of a sparse matrix with sorted indices at pairs of row and column."""
    width = matrix.shape[1]
    held = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * width + matrix.indices
    wanted = rows * width + columns
    if not held.size:
        return np.zeros(wanted.size, np.int64)
    at = np.minimum(np.searchsorted(held, wanted), held.size - 1)
    return np.where(held[at] == wanted, matrix.data[at], 0).astype(np.int64)


def _expand(ptr: IntArray, at: IntArray) -> tuple[IntArray, IntArray]:
    """Return positions of the entries of several compressed rows, and whose each one is."""
    sizes = ptr[at + 1] - ptr[at]
    owner = np.repeat(np.arange(at.size), sizes)
    start = np.repeat(ptr[at] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return start + np.arange(owner.size), owner


def _rows(
    source: RowSource, block: IntArray, cell: IntArray, low: IntArray, free: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return keys and residual counts of rows with free cells, and entries (row, var, coef)."""
    n_rows = source.family.size
    position, owner = _expand(source.cell_ptr, cell)
    base = block if source.own else source.group[block]
    key = base[owner] * n_rows + source.cell_row[position]
    coef = source.cell_coef[position]
    open_entry = free[owner]
    keys, row = np.unique(key[open_entry], return_inverse=True)
    group = keys // n_rows
    if source.own:
        group = source.group[group]
    counts = entries(source.counts, group, keys % n_rows)
    # What the settled cells of these rows hold is taken off.
    at = np.searchsorted(keys, key[~open_entry])
    at = np.minimum(at, max(keys.size - 1, 0))
    held = coef[~open_entry] * low[owner[~open_entry]]
    inside = keys[at] == key[~open_entry] if keys.size else np.zeros(0, bool)
    settled = np.zeros(keys.size, np.int64)
    np.add.at(settled, at[inside], held[inside])
    published = counts != HIDDEN
    keep = published[row]
    new = np.cumsum(published) - 1
    var = (np.cumsum(free) - 1)[owner[open_entry]]
    return (
        keys[published],
        (counts - settled)[published],
        new[row[keep]],
        var[keep],
        coef[open_entry][keep],
    )


def build_program(
    sources: Sequence[RowSource], block: IntArray, cell: IntArray, low: IntArray, high: IntArray
) -> Program:
    """Return the program of the cells (of ``block``, ``cell``) whose bounds are apart.

    Counts of settled cells, ``low == high``, are taken off the counts of their rows.  Variables and
    rows are sorted by component.
    """
    free = low < high
    parts = [_rows(source, block, cell, low, free) for source in sources]
    sizes = [part[0].size for part in parts]
    offset = np.concatenate([[0], np.cumsum(sizes)])
    entry_row = np.concatenate([p[2] + offset[at] for at, p in enumerate(parts)])
    entry_var = np.concatenate([p[3] for p in parts])
    coef = np.concatenate([p[4] for p in parts])
    count = np.concatenate([p[1] for p in parts])
    source = np.repeat(np.arange(len(sources)), sizes)
    row_id = np.concatenate(
        [p[0] % s.family.size for p, s in zip(parts, sources, strict=True)]
    ).astype(np.int64)
    group = np.concatenate([p[0] // s.family.size for p, s in zip(parts, sources, strict=True)])
    shift = np.concatenate([[0], np.cumsum([int(s.family.max()) + 1 for s in sources])])
    family = np.concatenate(
        [s.family[p[0] % s.family.size] + shift[at]
         for at, (p, s) in enumerate(zip(parts, sources, strict=True))]
    )  # fmt: skip
    equal = np.array([s.equal for s in sources])[source]
    n_vars, n_rows = int(free.sum()), int(offset[-1])
    label = _components(entry_row, entry_var, n_rows, n_vars)
    var_order = np.argsort(label[:n_vars], kind="stable")
    row_order = np.argsort(label[n_vars:], kind="stable")
    n_components = int(label.max()) + 1 if label.size else 0
    var_rank, row_rank = np.empty(n_vars, np.int64), np.empty(n_rows, np.int64)
    var_rank[var_order], row_rank[row_order] = np.arange(n_vars), np.arange(n_rows)
    matrix = sp.csr_array(
        (coef, (row_rank[entry_row], var_rank[entry_var])), shape=(n_rows, n_vars)
    )
    columns = sp.csc_array(matrix)
    columns.sort_indices()
    ends = np.arange(n_components + 1)
    arrays = ProgramArrays(
        var_ptr=columns.indptr.astype(np.int64),
        var_row=columns.indices.astype(np.int64),
        var_coef=columns.data.astype(np.int64),
        row_ptr=matrix.indptr.astype(np.int64),
        row_var=matrix.indices.astype(np.int64),
        row_coef=matrix.data.astype(np.int64),
        row_low=np.where(equal, count, 0)[row_order],
        row_high=count[row_order],
        family=family[row_order].astype(np.int64),
        first_var=np.searchsorted(label[:n_vars][var_order], ends).astype(np.int64),
        first_row=np.searchsorted(label[n_vars:][row_order], ends).astype(np.int64),
    )
    at = np.flatnonzero(free)[var_order]
    return Program(
        arrays, low[at], high[at], at, block[at], cell[at], source[row_order],
        group[row_order], row_id[row_order],
    )  # fmt: skip


def _components(row: IntArray, var: IntArray, n_rows: int, n_vars: int) -> IntArray:
    """Return the component of every variable and then of every row, in order of first variable."""
    size = n_vars + n_rows
    graph = sp.coo_array((np.ones(row.size, np.int8), (var, row + n_vars)), shape=(size, size))
    count, label = connected_components(graph.tocsr(), directed=False)
    first = np.full(count, size)
    np.minimum.at(first, label, np.arange(size))
    return np.argsort(np.argsort(first, kind="stable"))[label].astype(np.int64)


def open_program(
    problem: PublishedRows,
    bounds: BlockBounds,
    good: NDArray[np.bool_],
    *,
    bounds_only: bool = False,
) -> tuple[Program, dict[int, int], IntArray, IntArray]:
    """Return the program that all rows leave open, contradictions, and the tightened bounds.

    Only blocks that are ``good`` are looked at; with ``bounds_only`` coupling rows hold for every
    block as upper bounds.  Contradictions are the blocks of components without a solution, each
    with the row of the program that contradicts; the bounds are those of the cells of ``bounds``.
    """
    sources = list(problem.rows)
    if bounds_only:
        sources[1:] = [replace(rows, equal=False, own=True) for rows in sources[1:]]
    low, high = bounds.low.copy(), bounds.high.copy()
    inside = np.flatnonzero(good[bounds.block])
    block, cell = bounds.block[inside], bounds.cell[inside]
    wrong: dict[int, int] = {}
    while True:  # ends: each round settles a cell that the last one left open
        program = build_program(sources, block, cell, low[inside], high[inside])
        work = program.work()
        culprit = np.full(program.n_components, -1, np.int64)
        kernels.propagate_components(program.arrays, work, culprit)
        for k in np.flatnonzero(culprit >= 0):
            wrong.update((int(b), int(culprit[k])) for b in program.blocks_of(int(k)))
        low[inside[program.entry]], high[inside[program.entry]] = work.low, work.high
        if wrong or not np.any((work.low == work.high) & (program.low < program.high)):
            return program, wrong, low, high


def solve_components(
    program: Program, solver: SolverBackend, limits: Limits
) -> tuple[IntArray, dict[int, tuple[int, IntArray]]]:
    """Return a solution, -1 where there is none, and what is known of its components.

    Components whose solution is proved to be unique are left out; of each of the others one of the
    kernels' findings (``SEVERAL``, ``SOME``, ``NONE``, ``UNKNOWN``) and its blocks are returned.
    """
    star = np.full(program.low.size, -1, np.int64)
    found = np.full(program.n_components, kernels.PENDING, np.int64)
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


def _nodes(program: Program, *, farthest: bool = False) -> IntArray:
    """Return how many nodes the search of every component may look at."""
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
    kernels.search_components(program.arrays, program.work(), answers, 1, _nodes(program))


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


@dataclass
class Farthest:
    """Bounds of the largest distance from a solution, component by component.

    ``fixed`` says whether all solutions have as many records: then they gain what they lose.
    ``more`` is how many records more than the solution the farthest one found has, at the
    distance ``lower``; ``seconds`` is the time that a solver took.
    """

    lower: IntArray
    upper: IntArray
    seconds: NDArray[np.float64]
    fixed: NDArray[np.bool_]
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


def farthest(program: Program, star: IntArray, solver: SolverBackend, limits: Limits) -> Farthest:
    """Return bounds of the largest distance from ``star`` in every component.

    The solver is asked for components that the search does not settle; the gap is chosen here.
    """
    k = program.n_components
    far, point = np.zeros(star.size, np.int64), star.copy()
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    found = np.full(k, kernels.PENDING, np.int64)
    answers = kernels.SearchAnswers(point, np.ones(k, np.int64), far, found, lower, upper)
    nodes, work = _nodes(program, farthest=True), program.work()
    taken, even, more = np.zeros(k), np.zeros(k, np.int64), np.zeros(k, np.int64)
    kernels.search_components(program.arrays, work, answers, _WITHOUT_END, nodes)
    kernels.mark_even(program.arrays, work, even)
    np.add.at(more, program.component_of(), far - star)
    for component in np.flatnonzero(lower != upper):
        low, high, gained, taken[component] = _solve_distance(
            program, star, int(component), solver, limits, even=bool(even[component])
        )
        if low > lower[component]:
            lower[component], more[component] = low, gained
        upper[component] = high if upper[component] < 0 else min(upper[component], high)
    return Farthest(lower, upper, taken, even > 0, more)


def farthest_solutions(
    problem: PublishedRows,
    bounds: BlockBounds,
    solved: NDArray[np.bool_],
    star: sp.csr_array,
    *,
    bounds_only: bool,
    solver: SolverBackend,
    limits: Limits,
) -> tuple[Program, IntArray, Farthest]:
    """Return the program of the solved blocks, ``star`` as its solution, and what is farthest."""
    program, wrong, low, high = open_program(problem, bounds, solved, bounds_only=bounds_only)
    value = entries(star, bounds.block, bounds.cell)
    outside = solved[bounds.block] & ((value < low) | (value > high))
    point = entries(star, program.block, program.cell)
    p = program.arrays
    matrix = sp.csr_array((p.row_coef, p.row_var, p.row_ptr), shape=(p.row_low.size, point.size))
    sums = np.asarray(matrix @ point)
    bad = p.row_var[p.row_ptr[:-1][(sums < p.row_low) | (sums > p.row_high)]]
    broken = [*wrong, *np.unique(bounds.block[outside]).tolist(), *program.block[bad].tolist()]
    if broken:
        raise ArgumentError(
            f"solution must fit the tables, got one that breaks those around "
            f"{problem.level} {problem.geoids[min(broken)]}"
        )
    return program, point, farthest(program, point, solver, limits)

"""From bounds to a solution: propagation, components, search, and programs for what is left."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._validation import IntArray
from bayesrisk.reconstruction.constraints import derived_rows as blocks
from bayesrisk.reconstruction.constraints.cells import Queries
from bayesrisk.reconstruction.constraints.derived_rows import HIDDEN
from bayesrisk.reconstruction.constraints.system import Coupling, detailed_cells
from bayesrisk.reconstruction.records import _search_kernels as kernels
from bayesrisk.reconstruction.records.problem import (
    BlockBounds,
    Instance,
    Program,
    block_bounds,
    build_program,
    distance_model,
    solution_model,
    variables,
)
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import BOUND_ERROR, IntegerModel, Limits
from bayesrisk.reconstruction.solvers.model import SolverBackend

#: Nodes that a depth-first search may look at before a solver is asked.
NODES = 1000
#: Variables above which a component is searched with fewer nodes, and how many: enough for two
#: dives, which mostly find a solution and another one, but seldom the farthest.
LARGE, FEW_NODES = 60, 60
#: Variables up to which components are put into one model when a solution is looked for.
TOGETHER = 2000
_WITHOUT_END = 2**60


@dataclass
class Solution:
    """A solution for every block that has one, and what is known about it.

    Attributes
    ----------
    status : list of str
        For every block ``unique``, ``feasible``, ``infeasible`` or ``unknown``.
    conflict : dict of int to str
        For blocks without a solution why: the published cells that contradict.
    block, cell, count : ndarray of int64
        The histograms.
    unbounded : dict of int to str
        Blocks with a cell that no published count holds, and what says so.  Their other cells
        have values here, which the rows of larger places need, until these were checked.
    """

    status: list[str]
    conflict: dict[int, str] = field(default_factory=dict)
    block: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    cell: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    count: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    unbounded: dict[int, str] = field(default_factory=dict)


@dataclass
class Farthest:
    """What is known about the largest distance from a solution, component by component.

    Attributes
    ----------
    lower, upper : ndarray of int64
        Bounds of the largest distance.
    seconds : ndarray
        Time that a solver took.
    fixed : ndarray of bool
        Whether all solutions have as many records: then they gain what they lose.
    more : ndarray of int64
        How many records more than the solution the farthest one found has, at the distance
        ``lower``.
    """

    lower: IntArray
    upper: IntArray
    seconds: NDArray[np.float64]
    fixed: NDArray[np.bool_]
    more: IntArray


def spread(problem: Instance, chosen: Iterable[int]) -> dict[int, int]:
    """Return the blocks that stand or fall with the chosen ones, and with which."""
    chosen = sorted(set(chosen))
    if not problem.group or not chosen:
        return {b: b for b in chosen}
    place = next(iter(problem.group.values()))  # the largest place first
    because: dict[int, int] = {}
    for b in chosen:
        because.setdefault(int(place[b]), b)
    found = {
        int(other): because[int(place[other])]
        for other in np.flatnonzero(np.isin(place, list(because)))
    }
    return found | {b: b for b in chosen}


def _give_up(
    problem: Instance,
    solution: Solution,
    causes: dict[int, tuple[str, str]],
    good: NDArray[np.bool_],
) -> None:
    """Note status and reason of blocks without a solution, and of those that are bound to them.

    Rows of a larger place make no sense without one of its blocks.
    """
    for block, cause in spread(problem, causes).items():
        solution.status[block], solution.conflict[block] = causes[cause]
        good[block] = False


def open_program(
    problem: Instance, bounds: BlockBounds, good: NDArray[np.bool_], *, bounds_only: bool = False
) -> tuple[Program, dict[int, str], IntArray, IntArray]:
    """Return the program that all rows leave open, contradictions, and the tightened bounds.

    Parameters
    ----------
    problem : Instance
        Blocks and rows.
    bounds : BlockBounds
        What the rows of every block leave possible.
    good : ndarray of bool
        Blocks to look at.
    bounds_only : bool, default False
        Whether coupling rows hold for every block as upper bounds only.

    Returns
    -------
    program : Program
        Free cells.
    wrong : dict of int to str
        Blocks of components that have no solution, with the published cells that say so.
    low, high : ndarray of int64
        Bounds of the cells of ``bounds``.
    """
    low, high = bounds.low.copy(), bounds.high.copy()
    inside = good[bounds.block]
    entries = np.flatnonzero(inside)
    sources = problem.sources(bounds_only=bounds_only)
    wrong: dict[int, str] = {}
    while True:  # ends: each round settles a cell that the last one left open
        program = build_program(
            sources, bounds.block[entries], bounds.cell[entries], low[entries], high[entries]
        )
        work = program.work()
        culprit = np.full(program.n_components, -1, np.int64)
        kernels.propagate_components(program.arrays, work, culprit)
        for k in np.flatnonzero(culprit >= 0):
            row = culprit[k]
            text = problem.describe(
                int(program.source[row]), int(program.group[row]), int(program.row[row])
            )
            wrong.update((int(b), text) for b in program.blocks_of(int(k)))
        low[entries[program.entry]], high[entries[program.entry]] = work.low, work.high
        if wrong or not np.any((work.low == work.high) & (program.low < program.high)):
            return program, wrong, low, high


def solve(problem: Instance, *, solver: SolverBackend, seconds: float | None) -> Solution:
    """Return a solution of every block, with proof of uniqueness where there is one.

    Parameters
    ----------
    problem : Instance
        Blocks and rows.
    solver : SolverBackend
        Asked for components that the search does not settle.
    seconds : float or None
        Time that the solver may take for a component.

    Returns
    -------
    Solution
        Histograms of all blocks that have one.
    """
    bounds = block_bounds(problem)
    size = problem.geoids.size
    solution = Solution([Status.UNIQUE] * size, unbounded=_unbounded(problem, bounds))
    good = np.ones(size, bool)
    _give_up(problem, solution, _contradictions(problem, bounds), good)
    while True:  # ends: each round gives up a block at least
        program, wrong, low, _ = open_program(problem, bounds, good)
        if not wrong:
            break
        _give_up(problem, solution, {b: (Status.INFEASIBLE, t) for b, t in wrong.items()}, good)
    star = np.full(program.low.size, -1, np.int64)  # -1: there is none yet
    found = np.full(program.n_components, kernels.PENDING, np.int64)
    _search(program, star, found)
    _finish(problem, program, star, found, solution, solver, Limits(seconds))
    entries = np.flatnonzero(good[bounds.block])
    value = low.copy()
    value[entries[program.entry]] = star
    solved = np.array([s in (Status.UNIQUE, Status.FEASIBLE) for s in solution.status], bool)
    kept = solved[bounds.block] & (value > 0)
    solution.block, solution.cell = bounds.block[kept], bounds.cell[kept]
    solution.count = value[kept]
    return solution


def _contradictions(problem: Instance, bounds: BlockBounds) -> dict[int, tuple[str, str]]:
    """Return for blocks whose own rows contradict each other the status and the row."""
    return {
        int(b): (Status.INFEASIBLE, problem.describe(0, int(b), int(bounds.culprit[b])))
        for b in np.flatnonzero(bounds.status == blocks.INFEASIBLE)
    }


def _unbounded(problem: Instance, bounds: BlockBounds) -> dict[int, str]:
    """Return for blocks with any number of records in some cell what says so."""
    larger = f" (nor in one of its {', '.join(problem.couplings)})" if problem.couplings else ""
    return {
        int(b): f"{problem.level} {problem.geoids[b]}: some cell is in no published count{larger}"
        for b in np.flatnonzero(bounds.status == blocks.LOOSE)
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
    answers = kernels.Answers(star, has_star, far, found, lower, upper)
    kernels.search_components(program.arrays, program.work(), answers, 1, _nodes(program))


def _finish(
    problem: Instance,
    program: Program,
    star: IntArray,
    found: IntArray,
    solution: Solution,
    solver: SolverBackend,
    limits: Limits,
) -> None:
    """Ask the solver about what the search left, and note the status of every block."""
    without = [int(k) for k in np.flatnonzero(found == kernels.UNKNOWN)]
    for group in _grouped(program, without):
        _solve_group(program, group, star, found, solver, limits)
    if without:
        _search(program, star, found)
    for k in np.flatnonzero(found == kernels.SOME):
        other = distance_model(program, program.low, program.high, star, int(k)).another()
        answer = solver.solve(other, np.zeros(other.low.size, np.int64), limits=limits)
        if answer.values is not None:
            found[k] = kernels.SEVERAL
        elif answer.status == Status.INFEASIBLE:
            found[k] = kernels.UNIQUE
    causes: dict[int, tuple[str, str]] = {}
    for k in np.flatnonzero(found != kernels.UNIQUE):
        for b in program.blocks_of(int(k)).tolist():
            if found[k] == kernels.NONE:
                causes[b] = (Status.INFEASIBLE, _whole_component(problem, program, int(k)))
            elif found[k] == kernels.UNKNOWN:
                # Proofs about other components stand.
                solution.status[b] = Status.UNKNOWN
                solution.conflict[b] = "a limit was reached before a solution was found"
            elif solution.status[b] == Status.UNIQUE:
                solution.status[b] = Status.FEASIBLE
    _give_up(problem, solution, causes, np.ones(problem.geoids.size, bool))


def _whole_component(problem: Instance, program: Program, component: int) -> str:
    """Return the rows of a component that has no solution though no single row contradicts."""
    first, last = program.arrays.first_row[component : component + 2]
    texts = [
        problem.describe(int(program.source[r]), int(program.group[r]), int(program.row[r]))
        for r in range(first, min(last, first + 3))
    ]
    more = f" and {last - first - 3} more" if last - first > 3 else ""
    return f"together without a solution: {'; '.join(texts)}{more}"


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
    model = solution_model(program, program.low, program.high, group)
    answer = solver.solve(model, np.zeros(model.low.size, np.int64), limits=limits)
    if answer.values is not None:
        star[variables(program, group)] = answer.values
        found[group] = kernels.PENDING
    elif len(group) > 1:
        for k in group:
            _solve_group(program, [k], star, found, solver, limits)
    elif answer.status == Status.INFEASIBLE:
        found[group] = kernels.NONE


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
    problem = distance_model(program, program.low, program.high, star, component)
    start = time.perf_counter()
    answer = solver.solve(
        problem.model,
        problem.objective,
        limits=replace(limits, gap=1.99 if even else 0.99),
    )
    lower, more = 0, 0
    if answer.value is not None and answer.values is not None:
        lower = int(answer.value)
        more = 2 * int(answer.values[: problem.gains].sum()) - lower
    upper = _whole(answer.bound, even=even)
    return (
        lower,
        max(lower, min(upper, int(problem.objective @ problem.model.high))),
        more,
        (time.perf_counter() - start),
    )


def _whole(bound: float, *, even: bool) -> int:
    """Return the largest possible distance below a bound of a solver."""
    if not np.isfinite(bound):
        return _WITHOUT_END
    step = 2 if even else 1
    return step * int(np.floor((bound + BOUND_ERROR) / step))


def _even(program: Program) -> IntArray:
    """Return for every component whether its total is fixed, so that every distance is even."""
    even = np.zeros(program.n_components, np.int64)
    kernels.mark_even(program.arrays, program.work(), even)
    return even


def farthest(
    program: Program, star: IntArray, *, solver: SolverBackend, limits: Limits
) -> Farthest:
    """Return bounds of the largest distance from ``star`` in every component.

    Parameters
    ----------
    program : Program
        Free cells.
    star : ndarray of int64
        A solution.
    solver : SolverBackend
        Asked for components that the search does not settle.
    limits : Limits
        What the solver may take for a component; the gap is chosen here.

    Returns
    -------
    Farthest
        Equal bounds are proved.
    """
    k = program.n_components
    far, point = np.zeros(star.size, np.int64), star.copy()
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    found = np.full(k, kernels.PENDING, np.int64)
    answers = kernels.Answers(point, np.ones(k, np.int64), far, found, lower, upper)
    nodes = _nodes(program, farthest=True)
    kernels.search_components(program.arrays, program.work(), answers, _WITHOUT_END, nodes)
    taken, even, more = np.zeros(k), _even(program), np.zeros(k, np.int64)
    np.add.at(more, program.component_of(), far - star)
    for component in np.flatnonzero(lower != upper):
        low, high, gained, taken[component] = _solve_distance(
            program, star, int(component), solver, limits, even=bool(even[component])
        )
        if low > lower[component]:
            lower[component], more[component] = low, gained
        upper[component] = high if upper[component] < 0 else min(upper[component], high)
    return Farthest(lower, upper, taken, even > 0, more)


# -----------------------------------------------------------------------------
# Every answer tabulated again and compared with the published counts, in integer arithmetic.


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


# -----------------------------------------------------------------------------
# Records for tables that no records fit: the least total deviation from the published counts.


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

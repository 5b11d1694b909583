"""From bounds to a solution: propagation, components, search, and programs for what is left."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.constraints import kernels as blocks
from bayesrisk.reconstruction.records import _search_kernels as kernels
from bayesrisk.reconstruction.records.models import distance_model, solution_model, variables
from bayesrisk.reconstruction.records.problem import BlockBounds, Instance, block_bounds
from bayesrisk.reconstruction.records.program import Program, build_program
from bayesrisk.reconstruction.solvers import BOUND_ERROR, Limits
from bayesrisk.reconstruction.solvers.interfaces import SolverBackend
from bayesrisk.reconstruction.status import Status

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

"""The farthest solution from one, of every component of what bounds leave open."""

import time
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.constraints import propagation
from bayesrisk.constraints.solvers import BOUND_ERROR, Limits, SolverBackend
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.problem import Problem, entries
from bayesrisk.reconstruction.records.program import Program, open_program
from bayesrisk.reconstruction.records.search import distance_model, node_limits

_WITHOUT_END = 2**60


@dataclass
class Farthest:
    """Bounds of the largest distance from a solution, component by component.

    ``solved`` are the blocks that are looked at, ``program`` is theirs, and ``point`` the solution.
    ``fixed`` says whether all solutions have as many records: then they gain what they lose.
    ``more`` is how many records more than the solution the farthest one found has, at the
    distance ``lower``; ``seconds`` is the time that a solver took.
    """

    solved: BoolArray
    program: Program
    point: IntArray
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
    distance = distance_model(program, star, component)
    start = time.perf_counter()
    limits = replace(limits, gap=1.99 if even else 0.99)
    answer = solver.solve(distance.model, distance.objective, limits=limits)
    lower, more = 0, 0
    if answer.value is not None and answer.values is not None:
        lower = int(answer.value)
        more = 2 * int(answer.values[: distance.gains].sum()) - lower
    upper = int(distance.objective @ distance.model.high)
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
    (component, _), group = np.unique(keys, axis=1, return_inverse=True)
    # Rows of a family share no variable: as many variables as there are is each of them once.
    covered = np.bincount(group.ravel(), size[sound], component.size)
    fixed = np.zeros(n_vars.size, np.bool_)
    fixed[component[covered == n_vars[component]]] = True
    return fixed


def farthest_solutions(
    problem: Problem,
    star: sp.csr_array,
    solved: BoolArray,
    *,
    kind: str,
    solver: SolverBackend,
    limits: Limits,
) -> Farthest:
    """Return bounds of the largest distance of other solutions from ``star``.

    Only blocks that are ``solved`` are looked at, with tables of larger places as ``bounds`` or for
    all blocks together (``joint``).  The solver is asked for components that the search does not
    settle; the gap is chosen here.
    """
    bounds = problem.bounds
    solved = solved & np.isin(bounds.status, (kernels.FIXED, kernels.OPEN))
    if kind == "joint":
        for larger in problem.larger:  # a place counts when all of its blocks do
            solved &= ~np.isin(larger.group, larger.group[~solved])
    program, wrong, low, high = open_program(problem, bounds, solved, bounds_only=kind == "bounds")
    value = entries(star, bounds.block, bounds.cell)
    outside = solved[bounds.block] & ((value < low) | (value > high))
    point = value[np.flatnonzero(solved[bounds.block])[program.entry]]
    p, sums = program.arrays, program.model.rows @ point
    bad = p.row_var[p.row_ptr[:-1][(sums < p.row_low) | (sums > p.row_high)]]
    broken = [*wrong, *np.unique(bounds.block[outside]).tolist(), *program.block[bad].tolist()]
    if broken:
        raise ArgumentError(
            f"solution must fit the tables, got one that breaks those around "
            f"{problem.level} {problem.geoids[min(broken)]}"
        )
    k = program.parts.size
    far, star_point = np.zeros(point.size, np.int64), point.copy()
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    findings = np.full(k, propagation.PENDING, np.int64)
    answers = propagation.SearchAnswers(
        star_point, np.ones(k, np.int64), far, findings, lower, upper
    )
    nodes, work = node_limits(program, farthest=True), program.work()
    seconds, even, more = np.zeros(k), fixed_totals(program), np.zeros(k, np.int64)
    propagation.search_components(program.arrays, work, answers, _WITHOUT_END, nodes)
    np.add.at(more, program.parts.owner, far - point)
    for component in np.flatnonzero(lower != upper):
        low_end, high_end, gained, seconds[component] = _solve_distance(
            program, point, int(component), solver, limits, even=bool(even[component])
        )
        if low_end > lower[component]:
            lower[component], more[component] = low_end, gained
        upper[component] = high_end if upper[component] < 0 else min(upper[component], high_end)
    return Farthest(solved, program, point, lower, upper, seconds, even, more)

"""Solution variability: the largest distance of other solutions from a given one."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk._version import __version__
from bayesrisk.constraints import propagation
from bayesrisk.constraints.model import Status
from bayesrisk.constraints.solvers import (
    BOUND_ERROR,
    Deadline,
    Limits,
    SolverBackend,
    solver_and_limits,
)
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.problem import (
    CountRanges,
    Problem,
    entries,
    published_problem,
)
from bayesrisk.reconstruction.records.reconstruction import Reconstruction
from bayesrisk.reconstruction.records.search import (
    Program,
    distance_model,
    node_limits,
    open_program,
)
from bayesrisk.reconstruction.records.solve import Solution, first_differences, solve
from bayesrisk.tables.cells import Queries
from bayesrisk.tables.published import SeveralTables

#: What a larger level is good for: its counts as upper bounds, or all of its blocks together.
KINDS = ("bounds", "joint")


@displayed
@dataclass(frozen=True)
class SolutionVariability(Tabular):
    """Bounds of the solution variability of every place.

    Attributes
    ----------
    scope : str
        ``block``, ``tract-bounds`` or ``tract-joint``.
    level : str
        The level of the places.
    geoids : ndarray of str
        The places.
    population : ndarray of int64
        Records of the solution.
    lower, upper : ndarray
        Bounds of ``max sum |x - x*| / (N + N*)``, in [0, 1]; equal when ``proved``.
    status : tuple of str
        ``proved``; ``feasible`` (an interval: a limit was reached, or the tables leave the number
        of records open); or ``infeasible`` or ``unknown``, without a solution to start from or with
        a cell that no published count bounds (interval [0, 1]).
    seconds : ndarray
        Solver time for the place.
    solver : str
        Name of the solver.
    version : str
        Version of bayesrisk.
    taken_as_true : bool
        Whether counts of a release were taken as true without being so. Then bounds and proofs hold
        only if they were true.
    coarsened : bool
        Whether published counts were read as the ranges of counts that they allow.
    """

    scope: str
    level: str
    geoids: TextArray
    population: IntArray
    lower: FloatArray
    upper: FloatArray
    status: tuple[str, ...]
    seconds: FloatArray
    solver: str
    version: str = __version__
    taken_as_true: bool = False
    coarsened: bool = False

    def _answer(self) -> list[str]:
        people = self.population.astype(float)
        most = people.sum() or 1.0
        low, high = (float((bound * people).sum() / most) for bound in (self.lower, self.upper))
        fixed = int(people[self.upper == 0.0].sum())
        true = "if the published counts were true"
        words = (true, f"decided {true}") if self.taken_as_true else ("proved", "proved")
        return [
            f"At most {high:.1%} of the records could be others, averaged over "
            f"{int(people.sum()):,} people in {len(self.status):,} places"
            + (f" (at least {low:.1%})." if low < high else "."),
            f"{fixed:,} people live where the tables leave no choice: variability 0, {words[0]}.",
            f"{self.status.count('proved'):,} places {words[1]}, scope {self.scope}.",
            *["Published counts are read as ranges."] * self.coarsened,
        ]

    def _shown_frame(self) -> pd.DataFrame:
        return self.to_frame()

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each place."""
        return pd.DataFrame(
            {
                self.level: self.geoids,
                "population": self.population,
                "lower": self.lower,
                "upper": self.upper,
                "status": list(self.status),
                "seconds": self.seconds,
            }
        )


def solution_variability(
    tables: SeveralTables | Problem,
    *,
    scope: str,
    solution: Reconstruction | None = None,
    solver: str | SolverBackend = "highs",
    time_limit: float | Deadline | None = None,
    node_limit: int | None = None,
    taken_as_true: bool = False,
    known_rule: bool = True,
) -> SolutionVariability:
    """Return bounds on how far other records that fit the same tables can differ.

    For a solution ``x*`` with ``N*`` records, it is the largest ``sum |x - x*| / (N + N*)`` over
    all solutions ``x``, with N records, in [0, 1]. Published tables usually fix the number of
    records. Then it is ``sum |x - x*| / (2 N)``, and twice the value bounds the same measure for
    any two solutions. If they do not (withheld counts), the result may be an interval although no
    limit was reached. Zero proves the records: no others fit. Only zero does not depend on ``x*``.

    Parameters
    ----------
    tables : PublishedTables
        As for :func:`reconstruct`.
    scope : str
        A level of the tables, as for :func:`reconstruct`. The finest level, such as ``block``, uses
        its tables only. ``tract-bounds`` uses the counts of a larger level as upper bounds for
        every block (equation 8). ``tract-joint`` solves all blocks of the larger place together,
        with one value for each such place.
    solution : Reconstruction, optional
        The solution ``x*`` of these tables; by default one is found, with the tables of the level
        in ``scope``. The three values are ordered only for one ``x*``.
    solver, time_limit
        As for :func:`reconstruct`.
    node_limit : int, optional
        Nodes of branch and bound for the distance of a component; by default no limit. Unlike a
        time limit, it gives the same results on a slow machine. Not for solvers of PuLP.
    taken_as_true, known_rule
        As for :func:`reconstruct`.

    Returns
    -------
    SolutionVariability
        One interval and status for each place.

    Notes
    -----
    Abowd et al. (2025), equations 7 and 8; ``tract-joint`` is tighter than equation 8.  An L1
    distance between histograms of equal size is even, so a gap below 2 is an exact stop.

    Examples
    --------
    >>> from bayesrisk.tables import Records, Schema, Workload, tabulate
    >>> people = pd.DataFrame({"place": list("aabb"), "sex": list("FFMF"), "old": list("ynny")})
    >>> schema = Schema.from_frame(people, place="place")
    >>> work = Workload.of(schema, [["sex"], ["old"]])
    >>> published = tabulate(Records.from_frame(people, schema=schema), work)
    >>> solution_variability(published, scope="place").upper.tolist()
    [0.0, 1.0]
    """
    backend, limits = solver_and_limits(solver, time_limit, node_limit)
    start = None
    check.text(scope, "scope")
    if solution is not None:
        check.instance(solution, Reconstruction, "solution")
        parts = solution.block, solution.cell, solution.count
        start = solution.problem, Solution(list(solution.status), {}, *parts)
        tables = solution.problem if tables is solution.problem.tables else tables
    problem = published_problem(
        tables, scope=scope, kinds=KINDS, taken_as_true=taken_as_true, known_rule=known_rule
    )
    kind = scope.removeprefix(f"{problem.scope}-") if problem.larger else ""
    star = _starting_solution(problem, start, solver=backend, limits=replace(limits, nodes=None))
    histogram = star.histogram(problem)
    answer = farthest_solutions(
        problem, histogram, star.solved, kind=kind, solver=backend, limits=limits
    )
    return _result(problem, answer, star, scope, backend.name)


def _known_totals(published: Queries, ranges: CountRanges) -> BoolArray:
    """Return a mask of places with an exact published count of all records."""
    matrix = published.matrix
    ones = (np.diff(matrix.indptr) == matrix.shape[1]) & (matrix.max(axis=1).toarray() == 1)
    columns = np.flatnonzero(ones)
    low, high = (
        ranges.low[:, columns].toarray(),
        ranges.high[:, columns].toarray() + ranges.zero[columns],
    )
    return np.asarray((low == high).any(axis=1), dtype=bool)


def _result(
    problem: Problem, answer: Farthest, star: Solution, scope: str, solver: str
) -> SolutionVariability:
    """Return the result for each place, summed over its components."""
    program = answer.program
    level, geoids, place = problem.level, problem.geoids, np.arange(problem.geoids.size)
    if joint := scope.endswith("-joint"):
        largest = problem.larger[0]
        level, geoids, place = largest.level, largest.geoids, largest.group
    population = np.zeros(geoids.size, np.int64)
    np.add.at(population, place[star.block], star.count)
    owner = place[program.block[program.parts.first_var[:-1]]]
    seconds = np.zeros(geoids.size)
    np.add.at(seconds, owner, answer.seconds)
    settled = np.ones(geoids.size, bool)
    np.logical_and.at(settled, place, _known_totals(problem.system.queries, problem.ranges))
    if joint:
        settled |= _known_totals(largest.coupling.queries, largest.ranges)
    fixed = answer.fixed | settled[owner]
    low, below, high, above = _ratios(answer, fixed, owner, 2 * population)
    high, below, above = np.minimum(high, above), np.maximum(below, 1), np.maximum(above, 1)
    status = np.where(low * above == high * below, Status.PROVED, Status.FEASIBLE).astype(object)
    for b in np.flatnonzero(~answer.solved):
        reason = star.status[b]
        status[place[b]] = (
            reason if reason in (Status.INFEASIBLE, Status.UNKNOWN) else Status.UNKNOWN
        )
    open_ = np.isin(status, (Status.INFEASIBLE, Status.UNKNOWN))
    lower, upper = np.where(open_, 0.0, low / below), np.where(open_, 1.0, high / above)
    return SolutionVariability(
        scope, level, geoids, population, lower, upper, tuple(status.tolist()), seconds,
        solver, taken_as_true=problem.taken_as_true, coarsened=problem.coarsened,
    )  # fmt: skip


def _ratios(
    answer: Farthest, fixed: BoolArray, owner: IntArray, whole: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the bounds of ``sum |x - x*| / (N + N*)`` for every place, as two fractions.

    With ``gain`` more records in some cells and ``loss`` fewer in others, it is
    ``(gain + loss) / (2 N* + gain - loss)``, which grows with both. If the number of records is
    ``fixed``, both are half of the distance. Otherwise the solution found gives the lower bound,
    and the bounds of cells and distance the upper one.
    """
    program, point = answer.program, answer.point
    component = program.parts.owner
    room = np.zeros((2, program.parts.size), np.int64)
    np.add.at(room[0], component, program.model.high - point)
    np.add.at(room[1], component, point - program.model.low)

    def total(values: IntArray, chosen: BoolArray) -> IntArray:
        sums = np.zeros(whole.size, np.int64)
        np.add.at(sums, owner[chosen], values[chosen])
        return sums

    most_gain, most_loss = (total(part, ~fixed) for part in room)
    low = total(answer.lower, fixed) + total(answer.lower, ~fixed)
    below = whole + total(answer.more, ~fixed)
    most = total(answer.upper, ~fixed)
    loss = np.minimum(most_loss, most)
    gain = np.minimum(most_gain, most - loss)
    high, above = total(answer.upper, fixed) + gain + loss, whole + gain - loss
    return low, below, high, above


def _starting_solution(
    problem: Problem,
    start: tuple[Problem, Solution] | None,
    *,
    solver: SolverBackend,
    limits: Limits,
) -> Solution:
    """Return a problem's solution: a given one transferred to its cells, or a new one.

    A solution that breaks tables of its blocks is refused. Its own cells may be finer: tables of
    larger places can separate more.
    """
    if start is None:
        return solve(problem, solver=solver, limits=limits)
    (other, solution), names = start, problem.space.schema.names
    space = other.space
    wrong = ArgumentError("solution must be of the same blocks and cells as tables")
    if not np.array_equal(problem.geoids, other.geoids) or names != space.schema.names:
        raise wrong
    for name in names:
        fine, coarse = space.bins[name], problem.space.bins[name]
        if fine.size != coarse.size:
            raise wrong
        if not np.array_equal(coarse[space.first[name]][fine], coarse):
            raise wrong
    solution.cell = problem.space.labels(space.representatives(solution.cell))
    published = problem.system.queries
    counts = sp.csr_array(solution.histogram(problem) @ published.matrix.T)
    differences = first_differences(problem.ranges, counts, published)
    for block in differences:
        if solution.solved[block]:
            raise ArgumentError(
                f"solution must fit the tables: {problem.geoids[block]}: {differences[block]}"
            )
    return solution


_WITHOUT_END = 2**60


@dataclass
class Farthest:
    """Bounds on the largest distance from a solution, component by component.

    ``solved`` are the examined blocks, ``program`` is theirs, and ``point`` the solution. ``fixed``
    says whether all solutions have equally many records: then gains equal losses. ``more`` is the
    excess of records of the farthest solution found, at the distance ``lower``. ``seconds`` is the
    solver's time.
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
    """Return distance bounds in a component, the farthest solution's extra records, and seconds."""
    distance = distance_model(program, star, component)
    start = time.perf_counter()
    limits = replace(limits.next, gap=1.99 if even else 0.99)
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


def farthest_solutions(
    problem: Problem,
    star: sp.csr_array,
    solved: BoolArray,
    *,
    kind: str,
    solver: SolverBackend,
    limits: Limits,
) -> Farthest:
    """Return bounds on the largest distance of other solutions from ``star``.

    Only ``solved`` blocks are examined, with tables of larger places as ``bounds`` or for all
    blocks together (``joint``). The solver is used for components that the search does not settle;
    this function chooses the gap.
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
    seconds, even, more = np.zeros(k), np.zeros(k, np.bool_), np.zeros(k, np.int64)
    propagation.mark_even(program.arrays, work, even)
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

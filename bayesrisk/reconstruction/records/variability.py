"""Solution variability: how far from a solution the farthest other one is."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._validation import BoolArray, IntArray, TextArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.kernels import FIXED, HIDDEN, OPEN
from bayesrisk.reconstruction.records.problem import (
    BlockBounds,
    Program,
    PublishedRows,
    block_bounds,
    entries,
    open_program,
    published_rows,
)
from bayesrisk.reconstruction.records.reconstruction import Reconstruction
from bayesrisk.reconstruction.records.solve import (
    Solution,
    distance_model,
    first_differences,
    node_limits,
    solve,
)
from bayesrisk.reconstruction.records.system import CellSpace, Queries
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import BOUND_ERROR, Limits, make_solver
from bayesrisk.reconstruction.solvers.model import SolverBackend, checked_nodes
from bayesrisk.tables.published import PublishedTables

SCOPES = ("block", "tract-bounds", "tract-joint")


@displayed
@dataclass(frozen=True)
class SolutionVariability:
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
        of records open); ``infeasible`` or ``unknown`` where there is no solution to start from,
        or a cell in no published count (interval [0, 1]).
    seconds : ndarray
        Time that the solver took for the place.
    solver : str
        Its name.
    version : str
        Version of bayesrisk.
    taken_as_true : bool
        Whether counts of a release were taken as true that need not be: bounds, and what is
        ``proved``, hold if they were.
    """

    scope: str
    level: str
    geoids: NDArray[np.str_]
    population: IntArray
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    status: tuple[str, ...]
    seconds: NDArray[np.float64]
    solver: str
    version: str = __version__
    taken_as_true: bool = False

    def _answer(self) -> list[str]:
        people = self.population.astype(float)
        most = people.sum() or 1.0
        low, high = (float((bound * people).sum() / most) for bound in (self.lower, self.upper))
        fixed = int(people[self.upper == 0.0].sum())
        true = "if the published counts were true"
        said = (true, f"decided {true}") if self.taken_as_true else ("proved", "proved")
        return [
            f"At most {high:.1%} of the records could be others, averaged over "
            f"{int(people.sum()):,} people in {len(self.status):,} places"
            + (f" (at least {low:.1%})." if low < high else "."),
            f"{fixed:,} people live where the tables leave no choice: variability 0, {said[0]}.",
            f"{self.status.count('proved'):,} places {said[1]}, scope {self.scope}.",
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
    tables: PublishedTables,
    *,
    scope: str,
    larger: str = "tract",
    solution: Reconstruction | None = None,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
    node_limit: int | None = None,
    taken_as_true: bool = False,
) -> SolutionVariability:
    """Return how far from a solution other solutions can be, proved or as an interval.

    For a solution ``x*`` with ``N*`` records the largest ``sum |x - x*| / (N + N*)`` over all
    solutions ``x``, with N records, in [0, 1].  Published tables mostly fix the number of records:
    then this is ``sum |x - x*| / (2 N)``, and twice the value bounds the same of any two
    solutions.  Where they do not (withheld counts), the result may be an interval without a limit
    having been reached.  Zero proves the records: no others fit; only zero does not depend on
    ``x*``.

    Parameters
    ----------
    tables : PublishedTables
        Tables of true counts.
    scope : str
        ``block``: tables of the finest level only; ``tract-bounds``: also the larger place's
        counts as upper bounds for every block (equation 8); ``tract-joint``: all blocks of the
        larger place together, one value for each such place.
    larger : str, default "tract"
        The larger level, for the last two scopes.
    solution : Reconstruction, optional
        The solution ``x*``, of these tables; by default one is found, with the tables of
        ``larger`` but for scope ``block``.  The three values are ordered only for one ``x*``.
    solver : str or SolverBackend, default "highs"
        See :func:`make_solver`.
    time_limit : float, optional
        Seconds that the solver may take for a component; none by default.
    node_limit : int, optional
        Nodes of branch and bound that the solver may look at for the distance of a component; none
        by default.  What it leaves open is the same on a slow machine.
        Not for solvers of PuLP.
    taken_as_true : bool, default False
        Whether counts of a release that need not be true (``tables.laws``) are read as if they
        were, as somebody naive reads them.  Without it they are refused.

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
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from bayesrisk.tables import Attribute, Geography, PublishedTables, Schema, Table, Workload
    >>> about = Schema("s", (Attribute("sex", 2), Attribute("old", 2)),
    ...                Geography("g", ("block",), (1,)))
    >>> sex = Table("SEX", ("m", "f"), {"sex": np.eye(2, dtype=int)})
    >>> old = Table("OLD", ("young", "old"), {"old": np.eye(2, dtype=int)})
    >>> work = Workload(about, {("block", "SEX"): sex, ("block", "OLD"): old})
    >>> counts = {("block", "SEX"): sparse.csr_array([[2, 0], [1, 1]]),
    ...           ("block", "OLD"): sparse.csr_array([[1, 1], [1, 1]])}
    >>> published = PublishedTables(work, {"block": ["1", "2"]}, counts)
    >>> solution_variability(published, scope="block").upper.tolist()
    [0.0, 1.0]
    """
    check.choice(scope, "scope", SCOPES)
    if time_limit is not None:
        time_limit = check.scalar(time_limit, "time_limit", lower=0.0, bounds="(]")
    backend = make_solver(solver)
    node_limit = checked_nodes(node_limit, backend.name)
    level = tables.workload.levels[-1] if isinstance(tables, PublishedTables) else scope
    known = level if scope == "block" else larger
    if solution is not None:
        check.instance(solution, Reconstruction, "solution")
    problem = published_rows(tables, scope=known, taken_as_true=taken_as_true)
    bounds = block_bounds(problem)
    if solution is None:
        star = solve(problem, bounds, solver=backend, seconds=time_limit)
    else:
        star = Solution(
            list(solution.status), block=solution.block, cell=solution.cell, count=solution.count
        )
        check_solution(problem, star, solution.geoids, solution.problem.space)
    solved = star.solved & np.isin(bounds.status, (FIXED, OPEN))
    if scope == "tract-joint":
        for place in problem.larger:  # a place counts when all of its blocks do
            solved &= ~np.isin(place.group, place.group[~solved])
    program, point, answer = farthest_solutions(
        problem,
        bounds,
        solved,
        star.histogram(problem),
        bounds_only=scope == "tract-bounds",
        solver=backend,
        limits=Limits(time_limit, nodes=node_limit),
    )
    return _result(problem, program, point, answer, star, solved, scope, backend.name)


def _known_totals(published: Queries, counts: sp.csr_array) -> BoolArray:
    """Return for every place whether one of its published counts is that of all of its records."""
    matrix = published.matrix
    ones = (np.diff(matrix.indptr) == matrix.shape[1]) & (matrix.max(axis=1).toarray() == 1)
    held = counts[:, np.flatnonzero(ones)].tocoo()
    hidden = np.bincount(held.coords[0], held.data == HIDDEN, held.shape[0])
    return np.asarray(hidden < ones.sum(), dtype=bool)


def _result(
    problem: PublishedRows,
    program: Program,
    point: IntArray,
    answer: Farthest,
    star: Solution,
    solved: BoolArray,
    scope: str,
    solver: str,
) -> SolutionVariability:
    """Add the components of every place up."""
    level, geoids, place = problem.level, problem.geoids, np.arange(problem.geoids.size)
    if scope == "tract-joint":
        largest = problem.larger[0]
        level, geoids, place = largest.level, largest.geoids, largest.group
    population = np.zeros(geoids.size, np.int64)
    np.add.at(population, place[star.block], star.count)
    owner = place[program.block[program.arrays.first_var[:-1]]]
    seconds = np.zeros(geoids.size)
    np.add.at(seconds, owner, answer.seconds)
    known = np.ones(geoids.size, bool)
    np.logical_and.at(known, place, _known_totals(problem.system.queries, problem.published))
    if scope == "tract-joint":
        known |= _known_totals(largest.coupling.queries, largest.published)
    fixed = answer.fixed | known[owner]
    low, below, high, above = _ratios(program, point, answer, fixed, owner, 2 * population)
    high, below, above = np.minimum(high, above), np.maximum(below, 1), np.maximum(above, 1)
    status = np.where(low * above == high * below, Status.PROVED, Status.FEASIBLE).astype(object)
    for b in np.flatnonzero(~solved):
        reason = star.status[b]
        status[place[b]] = (
            reason if reason in (Status.INFEASIBLE, Status.UNKNOWN) else Status.UNKNOWN
        )
    open_ = np.isin(status, (Status.INFEASIBLE, Status.UNKNOWN))
    lower, upper = np.where(open_, 0.0, low / below), np.where(open_, 1.0, high / above)
    return SolutionVariability(
        scope, level, geoids, population, lower, upper, tuple(status.tolist()), seconds,
        solver, taken_as_true=problem.taken_as_true,
    )  # fmt: skip


def _ratios(
    program: Program,
    point: IntArray,
    answer: Farthest,
    fixed: BoolArray,
    owner: IntArray,
    whole: IntArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the bounds of ``sum |x - x*| / (N + N*)`` for every place as two fractions.

    With ``gain`` records more in some cells and ``loss`` fewer in others it is
    ``(gain + loss) / (2 N* + gain - loss)``, which grows with both.  Where the number of records
    is ``fixed`` both are half of the distance; elsewhere the solution found gives the lower bound,
    and the bounds of cells and distance the upper one.
    """
    component = program.component_of()
    room = np.zeros((2, program.n_components), np.int64)
    np.add.at(room[0], component, program.high - point)
    np.add.at(room[1], component, point - program.low)

    def total(values: IntArray, chosen: BoolArray) -> IntArray:
        found = np.zeros(whole.size, np.int64)
        np.add.at(found, owner[chosen], values[chosen])
        return found

    most_gain, most_loss = (total(part, ~fixed) for part in room)
    low = total(answer.lower, fixed) + total(answer.lower, ~fixed)
    below = whole + total(answer.more, ~fixed)
    most = total(answer.upper, ~fixed)
    loss = np.minimum(most_loss, most)
    gain = np.minimum(most_gain, most - loss)
    high, above = total(answer.upper, fixed) + gain + loss, whole + gain - loss
    return low, below, high, above


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
    differences = first_differences(problem.published, counts, published)
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
    seconds: NDArray[np.float64]
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


def farthest_solutions(
    problem: PublishedRows,
    bounds: BlockBounds,
    solved: BoolArray,
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

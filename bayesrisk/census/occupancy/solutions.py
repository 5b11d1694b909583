"""Likely households of a block with bedrooms: the best, the t best, or noisy (Eq. 2, Eq. 8)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from math import isqrt
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.randomness import Seed, generator, seeded
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.census.occupancy.household_law import UNIT, HouseholdLaw
from bayesrisk.census.occupancy.programs import BlockProgram, block_program
from bayesrisk.census.occupancy.statistics import OccupancyStatistics
from bayesrisk.constraints.certificates import proves_infeasible, reduced_values
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.search import LinearSolver, halves
from bayesrisk.constraints.solvers import (
    Deadline,
    Limits,
    SolverBackend,
    SolverResult,
    solver_and_limits,
)
from bayesrisk.exceptions import ArgumentError

_METHODS = ("exact", "perturbed")
_ERRORS = ("none", "absolute", "squared")


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyReconstruction(Tabular):
    """Reconstructed households of blocks, with one or more solutions for each block.

    Attributes
    ----------
    geoids : ndarray of str
        The blocks.
    status : tuple of str
        For each block: ``proved`` (the best solutions), ``feasible``, ``infeasible`` (the tables
        contradict each other) or ``unknown`` (a limit was reached).
    outside_sample : ndarray of bool
        Whether kinds outside the sample were needed.
    solutions : ndarray of int64
        Number of solutions of each block. With method ``exact`` and a ``count`` above 1, they are
        the best ones even if a limit left fewer than wanted (``feasible``).
    block, solution, size, race_ethnicity, children, bedrooms, subsidised, households : ndarray
        One entry for each different household of each solution: position of the block, number of
        the solution, codes of ``household-occupancy``, and number of such households.
    log_likelihood : tuple of ndarray
        For each block the log-likelihoods of its solutions, in nats, each with an error of at most
        5e-5 for a household.
    misfit : tuple of ndarray of int64
        For each block the total error of its solutions: distances to the published numbers, or to
        the interval of counts behind rounded numbers. It is 0 except for noisy tables.
    """

    geoids: TextArray
    status: tuple[str, ...]
    outside_sample: BoolArray
    solutions: IntArray
    block: IntArray
    solution: IntArray
    size: IntArray
    race_ethnicity: IntArray
    children: IntArray
    bedrooms: IntArray
    subsidised: IntArray
    households: IntArray
    log_likelihood: tuple[FloatArray, ...]
    misfit: tuple[IntArray, ...]

    @property
    def violation(self) -> BoolArray:
        """Entries whose households violate the occupancy limit, as a mask."""
        small = (self.bedrooms == 1) & (self.size > 2)
        return np.asarray(small | ((self.bedrooms == 2) & (self.size > 4)), dtype=bool)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each distinct household in each solution."""
        names = ("solution", "size", "race_ethnicity", "children", "bedrooms", "subsidised")
        return pd.DataFrame(
            {
                "block": self.geoids[self.block],
                **{name: getattr(self, name) for name in names},
                "households": self.households,
                "violation": self.violation,
            }
        ).astype({"block": "str"})


class _SolutionPlan(NamedTuple):
    """Settings of the search for solutions."""

    law: HouseholdLaw
    wanted: int
    method: str
    scale: float
    error: str
    likelihood: bool
    solver: SolverBackend
    limits: Limits


class _Found(NamedTuple):
    """Solutions of one block: rows of kind, bedrooms (0: not subsidised), households."""

    status: str
    outside: bool
    rows: list[IntArray]
    log_likelihood: FloatArray
    misfit: IntArray


@seeded
def reconstruct_occupancy(
    blocks: OccupancyStatistics,
    law: HouseholdLaw,
    *,
    rng: Seed,
    count: int = 1,
    method: str = "exact",
    scale: float | None = None,
    error: str = "none",
    likelihood: bool = True,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
) -> OccupancyReconstruction:
    r"""Return the most probable households of every block that its statistics allow.

    It maximises :math:`\sum_{d} \log \hat p(d)` over multisets of households :math:`d` that satisfy
    the statistics (Eq. 2). For noisy statistics, it maximises that minus the error of the
    statistics (Eq. 8). The sample has no subsidies and bedrooms: one of the assignments that HUD's
    statistics allow is drawn at random.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), Eq. 2, Eq. 8, appendices C and E. E. L.
    Lawler, "A procedure for computing the K best solutions to discrete optimization problems",
    Management Science 18 (1972).

    Parameters
    ----------
    blocks : OccupancyStatistics
        The statistics.
    law : HouseholdLaw
        Probability of every kind of household.
    rng : int, Generator or SeedSequence
        Source of random choices: assignments, ties and perturbations.
    count : int, default 1
        Requested number of solutions.
    method : {"exact", "perturbed"}, default "exact"
        ``exact`` gives the best solutions in order, different in the households of each kind
        (partition of Lawler); there may be fewer. ``perturbed`` gives the best solution of each of
        ``count`` randomly changed objectives, which may repeat. They are more diverse, but not the
        best.
    scale : float, optional
        Scale of the Gumbel noise of ``perturbed`` on each log probability, in nats, > 0.
    error : {"none", "absolute", "squared"}, default "none"
        Whether statistics may be missed, and the measure of the error; the number of households is
        always exact. ``squared`` takes a variable for each possible unit of error, so blocks that
        need more than a million are refused.
    likelihood : bool, default True
        Whether log probabilities count; otherwise only errors do.
    solver : str or SolverBackend, default "highs"
        See :func:`make_solver`.
    time_limit : float, optional
        Seconds for each block; by default no limit.

    Notes
    -----
    Households of 7 people or more count as 7, children of 6 or more as 6. Published numbers of
    people and children may be larger than sizes can explain. They are lowered to that number if
    there are no errors and some household can have 7 or more. Elsewhere they are contradictions,
    and every block that :func:`detect_occupancy` finds ``infeasible`` is so here.

    The error of a rounded number, such as a percentage of HUD's, is the distance to the interval of
    counts behind it. So exact statistics have a solution without error.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from bayesrisk.census import HouseholdLaw
    >>> from bayesrisk.census.occupancy.statistics import OccupancyStatistics
    >>> one, row = np.ones(1, dtype=int), np.eye(14, dtype=int)
    >>> block = OccupancyStatistics(
    ...     np.array(["500010101001000"]), households=one, population=3 * one,
    ...     sizes=row[2:3, :7], race=row[:1], children=one, hud_households=one,
    ...     hud_people=3 * one, hud_race=row[:1, :6], hud_children=np.ones((1, 2), dtype=int),
    ...     hud_bedrooms=row[:1, :3])
    >>> sample = pd.DataFrame({"size": [3, 3, 3], "race_ethnicity": 0, "children": [0, 1, 2]})
    >>> found = reconstruct_occupancy(block, HouseholdLaw.from_sample(sample, smoothing=0.5), rng=1)
    >>> found.status, found.size, found.bedrooms, found.violation
    (('proved',), array([3]), array([1]), array([ True]))
    """
    check.instance(blocks, OccupancyStatistics, "blocks").exact("reconstruct_occupancy")
    check.instance(law, HouseholdLaw, "law")
    random = generator(rng)
    check.choice(method, "method", _METHODS)
    check.flag(likelihood, "likelihood")
    check.choice(error, "error", _ERRORS)
    if (method == "perturbed") != (scale is not None):
        raise ArgumentError("scale", "must be given for perturbed objectives only", got=scale)
    if scale is not None:
        scale = check.scalar(scale, "scale", lower=0.0, upper=100.0, bounds="(]")
    backend, limits = solver_and_limits(solver, time_limit)
    wanted = check.integer(count, "count", lower=1, upper=10**6)
    plan = _SolutionPlan(
        law, wanted, method, scale or 0.0, error, bool(likelihood), backend, limits
    )
    return _collected(blocks, law, [_solve(blocks, i, plan, random) for i in range(len(blocks))])


def _solve(
    blocks: OccupancyStatistics, block: int, plan: _SolutionPlan, rng: np.random.Generator
) -> _Found:
    """Return the solutions of one block, with unsampled kinds only if needed."""
    for every in (False, True):
        program = _program(blocks, block, plan, every_kind=every)
        best = _best(program, plan, rng)
        if best.status != Status.INFEASIBLE:
            break
    values = shuffled_assignments(program, best.values, rng)
    n = program.kinds.size
    weight = plan.law.log_probability[program.kinds]
    rows = [_assigned(program, v, rng) for v in values]
    likelihood = np.array([int(weight @ v[:n]) for v in values], dtype=np.float64) / UNIT
    cost = program.objective[n:]
    misfit = np.array([-int(cost @ v[n:]) // UNIT for v in values], dtype=np.int64)
    return _Found(best.status, every, rows, likelihood, misfit)


def _program(
    blocks: OccupancyStatistics, block: int, plan: _SolutionPlan, *, every_kind: bool
) -> BlockProgram:
    """Return the program of a block; squared errors are limited by the best absolute ones."""
    options = {"every_kind": every_kind, "likelihood": plan.likelihood}
    if plan.error != "squared":
        return block_program(blocks, block, plan.law, error=plan.error, **options)
    linear = block_program(blocks, block, plan.law, error="absolute", **options)
    nearest = best_solution(linear, plan.solver, plan.limits)
    if not nearest.values:
        return linear
    n, m = linear.kinds.size, 3 * linear.n_classes
    missed = linear.model.rows[:, n + m :] @ nearest.values[0][n + m :]
    weight = linear.objective[:n]
    # No row of the best solution misses by more than this one does in all, its likelihood
    # counted against the largest that any has.
    spare = int(weight.max(initial=-(2**40))) * int(blocks.households[block])
    spare -= int(weight @ nearest.values[0][:n])
    most = isqrt(int(missed @ missed) + max(spare, 0) // UNIT + 1)
    return block_program(blocks, block, plan.law, error="squared", most=max(most, 1), **options)


def _best(program: BlockProgram, plan: _SolutionPlan, rng: np.random.Generator) -> Best:
    if plan.wanted == 1 and plan.method == "exact":
        return best_solution(program, plan.solver, plan.limits)
    best = shaken_solutions if plan.method == "perturbed" else best_solutions
    return best(program, plan, rng)


def _assigned(program: BlockProgram, values: IntArray, rng: np.random.Generator) -> IntArray:
    """Return rows (kind, bedrooms, households), with subsidies dealt at random within classes."""
    homes, subsidised = program.split(values)
    rows = []
    for c in np.flatnonzero(np.bincount(program.kind_class, homes, program.n_classes)):
        members = np.flatnonzero((program.kind_class == c) & (homes > 0))
        left = homes[members]
        for rooms in (1, 2, 3):
            wanted = int(subsidised[rooms - 1, c])
            if not wanted:
                continue
            draw = rng.multivariate_hypergeometric(left, wanted)
            left = left - draw
            rows += [(members[i], rooms, draw[i]) for i in np.flatnonzero(draw)]
        rows += [(members[i], 0, left[i]) for i in np.flatnonzero(left)]
    assignment = np.array(rows, dtype=np.int64).reshape(-1, 3)
    assignment[:, 0] = program.kinds[assignment[:, 0]]
    return assignment


def _collected(
    blocks: OccupancyStatistics, law: HouseholdLaw, solutions: list[_Found]
) -> OccupancyReconstruction:
    pieces = [np.empty((0, 5), dtype=np.int64)]
    for index, answer in enumerate(solutions):
        for number, rows in enumerate(answer.rows):
            label = np.full((len(rows), 2), (index, number), dtype=np.int64)
            pieces.append(np.hstack([label, rows]))
    block, solution, kind, rooms, homes = np.concatenate(pieces).T
    return OccupancyReconstruction(
        blocks.geoids,
        tuple(f.status for f in solutions),
        np.array([f.outside for f in solutions], dtype=bool),
        np.array([len(f.rows) for f in solutions], dtype=np.int64),
        block, solution, law.size[kind], law.race_ethnicity[kind], law.children[kind], rooms,
        (rooms > 0).astype(np.int64), homes,
        tuple(f.log_likelihood for f in solutions),
        tuple(f.misfit for f in solutions),
    )  # fmt: skip


# -----------------------------------------------------------------------------
# The best solutions of a block's program: one, the t best ones, or those of shaken objectives.
#
# Two solutions are the same when they have the same households of each kind (the census side); who
# of them is subsidised, with how many bedrooms, is then chosen at random among what is possible.


_WHOLE = 1e-6
_STEPS = 60


class Best(NamedTuple):
    """Solutions of a program, best first, and whether they are proved the best."""

    status: str
    values: list[IntArray]


def best_solution(program: BlockProgram, solver: SolverBackend, limits: Limits) -> Best:
    """Return one solution with the largest objective."""
    if program.model.row_low[0] == 0:  # no households: what is published is missed, if it may be
        nobody = program.model.high.copy()
        nobody[: program.kinds.size + 3 * program.n_classes] = 0
        if program.model.holds(nobody):
            return Best(Status.PROVED, [nobody])
    if program.model.row_low[0] == 0 or program.kinds.size == 0:
        return Best(Status.INFEASIBLE, [])
    answer = solver.solve(program.model, program.objective, limits=limits)
    return Best(answer.status, [] if answer.values is None else [answer.values])


class _Box(NamedTuple):
    """A subset of the solutions by bounds, with the relaxation's answer once known.

    Only the numbers of households of each kind are ever bounded: all ways to choose who of them is
    subsidised are in one box.  ``only`` is the solution of a box that holds no other.  ``parent``
    makes the box from households that were taken out of a larger one: the variables that come
    before ``step`` in its order are as there, the one at it is below or above.
    """

    low: IntArray
    high: IntArray
    values: FloatArray | None
    duals: FloatArray | None
    parent: tuple[IntArray, IntArray, int, int] | None = None
    only: IntArray | None = None

    def opened(self) -> _Box:
        """Return the box with explicit bounds."""
        if self.parent is None:
            return self
        star, order, step, side = self.parent
        low, high = self.low.copy(), self.high.copy()
        before, coordinate = order[:step], order[step]
        low[before] = high[before] = star[before]
        if side < 0:
            high[coordinate] = star[coordinate] - 1
        else:
            low[coordinate] = star[coordinate] + 1
        return _Box(low, high, None, None)


class _Partition:
    """Best-first enumeration of solutions (Lawler 1972) over a warm-started relaxation.

    Solutions come best first, so that those found before a limit are the best ones all the same.
    """

    def __init__(
        self, program: BlockProgram, rng: np.random.Generator, solver: SolverBackend, limits: Limits
    ) -> None:
        self._program, self._model = program, program.model
        from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

        self._warm = HighsWarm(program.model, program.objective)
        # Ties fall at random: noise that all households together keep below one unit.
        households = max(int(program.model.row_low[0]), 1)
        kinds = program.kinds.size
        noise = np.zeros(program.objective.size)
        noise[:kinds] = rng.uniform(0.0, 0.5 / households, kinds)
        self._warm.aim(program.objective + noise)
        self._rng, self._solver = rng, solver
        self._deadline = Deadline(limits.seconds)
        self._heap: list[tuple[float, float, int, _Box]] = []
        self._count = 0
        self.proved = True

    def _push(self, bound: float, box: _Box) -> None:
        self._count += 1
        heapq.heappush(self._heap, (-bound, float(self._rng.random()), self._count, box))

    def run(self, wanted: int) -> list[IntArray]:
        """Return the best solutions, best first, or fewer if there are no more."""
        solutions: list[IntArray] = []
        self._push(np.inf, _Box(self._model.low, self._model.high, None, None))
        while self._heap and len(solutions) < wanted:
            self.proved &= not self._deadline.late
            if not self.proved:
                break
            top, _, _, box = heapq.heappop(self._heap)
            star = box.only
            if star is None and box.values is None:
                self._evaluate(box.opened(), -top)
            elif star is None:
                star = self._take(box, -top)
            if star is not None:
                solutions.append(star)
        return solutions

    def _evaluate(self, box: _Box, inherited: float) -> None:
        """Solve a box's relaxation, and put the box back with its own bound."""
        answer = self._warm.relax(box.low, box.high)
        if answer.values is None or answer.duals is None:
            ray = answer.ray
            if ray is None or not proves_infeasible(self._model, box.low, box.high, ray):
                self._by_program(box)
            return
        bound, _ = reduced_values(
            self._model, self._program.objective, box.low, box.high, answer.duals
        )
        self._push(
            min(float(np.floor(bound + _WHOLE)), inherited),
            _Box(box.low, box.high, answer.values, answer.duals),
        )

    def _whole(self, low: IntArray, high: IntArray) -> SolverResult:
        """Return the best solution within bounds, by the integer solver."""
        m = self._model
        inside = IntegerModel(low, high, m.rows, m.row_low, m.row_high)
        return self._solver.solve(inside, self._program.objective, limits=self._deadline.limits)

    def _by_program(self, box: _Box) -> None:
        """Solve a box by the integer solver, if the relaxation is inconclusive."""
        answer = self._whole(box.low, box.high)
        if answer.values is not None:
            zeros = np.zeros(self._model.row_low.size)
            self._push(answer.bound, _Box(box.low, box.high, answer.values.astype(float), zeros))
        elif answer.status != Status.INFEASIBLE:
            self.proved = False

    def _take(self, box: _Box, bound: float) -> IntArray | None:
        """Split a box; return its best solution if the relaxation's is whole, else None."""
        values, n = box.values, self._program.kinds.size
        if values is None or box.duals is None:
            return None
        fraction = np.abs(values[:n] - np.rint(values[:n]))
        index = int(fraction.argmax())
        if fraction[index] > _WHOLE:
            for low, high in halves(box.low, box.high, index, int(np.floor(values[index]))):
                self._push(bound, _Box(low, high, None, None))
            return None
        homes = np.rint(values[:n]).astype(np.int64)
        self._exclude(box, homes, bound)
        return self._completed(homes, values, bound)

    def _completed(self, homes: IntArray, values: FloatArray, bound: float) -> IntArray | None:
        """Return the best solution with these households if it attains the bound, else None.

        A solution that does not attain the bound is put back into the queue.
        """
        objective = self._program.objective
        low, high = self._model.low.copy(), self._model.high.copy()
        low[: homes.size] = high[: homes.size] = homes
        star = np.rint(values).astype(np.int64)
        if not self._reaches(star, bound):
            answer = self._warm.relax(low, high)
            if answer.values is not None:
                star = np.rint(answer.values).astype(np.int64)
        if self._reaches(star, bound):
            return star
        best = self._whole(low, high)
        if best.values is None or best.status != Status.PROVED:
            self.proved &= best.status == Status.INFEASIBLE
            return None
        worth = float(objective @ best.values)
        self._push(min(worth, bound), _Box(low, high, None, None, only=best.values))
        return None

    def _reaches(self, star: IntArray, bound: float) -> bool:
        """Return True if the values are a solution that attains the bound of their box."""
        return self._model.holds(star) and bound <= int(self._program.objective @ star) + 0.5

    def _exclude(self, box: _Box, star: IntArray, bound: float) -> None:
        """Split a box into boxes without these households."""
        n = star.size
        free = np.flatnonzero(box.low[:n] < box.high[:n])
        if not free.size or box.duals is None:
            return
        whole, rest = reduced_values(
            self._model, self._program.objective, box.low, box.high, box.duals
        )
        # The dearest variables first: their boxes have the lowest bounds, and stay small.
        order = free[np.argsort(-np.abs(rest[free]), kind="stable")]
        best = np.maximum(rest * box.low, rest * box.high)[order]
        fixed = np.concatenate([[0.0], np.cumsum(best - rest[order] * star[order])[:-1]])
        for step, index in enumerate(order.tolist()):
            left = whole - fixed[step] - best[step]
            for side, low, high in (
                (-1, box.low[index], star[index] - 1),
                (1, star[index] + 1, box.high[index]),
            ):
                if low > high:
                    continue
                term = max(rest[index] * low, rest[index] * high)
                child = float(np.floor(left + term + _WHOLE))
                self._push(
                    min(child, bound),
                    _Box(box.low, box.high, None, None, (star, order, step, side)),
                )


def best_solutions(program: BlockProgram, plan: _SolutionPlan, rng: np.random.Generator) -> Best:
    """Return the solutions of largest objective, ties at random."""
    if program.model.row_low[0] == 0 or program.kinds.size == 0:
        return best_solution(program, plan.solver, plan.limits)
    partition = _Partition(program, rng, plan.solver, plan.limits)
    solutions = partition.run(plan.wanted)
    if not solutions and partition.proved:
        return Best(Status.INFEASIBLE, [])
    return Best(
        Status.PROVED if partition.proved else Status.FEASIBLE if solutions else Status.UNKNOWN,
        solutions,
    )


def shaken_solutions(program: BlockProgram, plan: _SolutionPlan, rng: np.random.Generator) -> Best:
    """Return optima of objectives perturbed by Gumbel noise of a scale in nats."""
    if program.model.row_low[0] == 0 or program.kinds.size == 0:
        only = best_solution(program, plan.solver, plan.limits)
        return Best(only.status, only.values * plan.wanted)
    model, size = program.model, program.kinds.size + 3 * program.n_classes
    from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

    warm = HighsWarm(model, program.objective)
    soft = program.objective.size > size
    # Closer to an optimum than the noise of one variable, or one count of error, is not looked for.
    noise = plan.scale * UNIT
    near, deadline = float(UNIT if soft else np.floor(noise)), Deadline(plan.limits.seconds)
    values: list[IntArray] = []
    for _ in range(plan.wanted):
        if deadline.late:
            return Best(Status.FEASIBLE if values else Status.UNKNOWN, values)
        objective = program.objective.copy()
        objective[:size] += np.rint(rng.gumbel(0.0, noise, size)).astype(np.int64)
        warm.aim(objective)
        point = _dive(warm, model, objective, near)
        if point is None:
            exact = plan.solver.solve(model, objective, limits=replace(deadline.limits, gap=near))
            if exact.status == Status.INFEASIBLE:
                return Best(Status.INFEASIBLE, [])
            point = exact.values
        if point is not None:
            values.append(point)
    return Best(Status.FEASIBLE if values else Status.UNKNOWN, values)


def _dive(
    warm: LinearSolver, model: IntegerModel, objective: IntArray, near: float
) -> IntArray | None:
    """Return a solution near the relaxation's optimum by fixing fractional variables, or None."""
    low, high = model.low, model.high
    answer = warm.relax(low, high)
    if answer.values is None:
        return None
    least = float(objective @ answer.values) - near
    for _ in range(_STEPS):
        values = answer.values
        if values is None or float(objective @ values) < least:
            return None
        fraction = np.abs(values - np.rint(values))
        if fraction.max(initial=0.0) < _WHOLE:
            whole = np.rint(values).astype(np.int64)
            return whole if model.holds(whole) else None
        fractional = np.flatnonzero(fraction >= _WHOLE)
        index = fractional[int(fraction[fractional].argmin())]
        low, high = low.copy(), high.copy()
        fixed = int(np.rint(values[index]))
        low[index] = high[index] = fixed
        answer = warm.relax(low, high)
        if answer.values is None:  # the other side
            other = fixed + (1 if values[index] > fixed else -1)
            low, high = low.copy(), high.copy()
            low[index] = high[index] = other
            answer = warm.relax(low, high)
    return None


def shuffled_assignments(
    program: BlockProgram, values: list[IntArray], rng: np.random.Generator
) -> list[IntArray]:
    """Return solutions with the same households, and random subsidies and bedrooms.

    Each assignment maximises a random linear objective.
    """
    model, n, m = program.model, program.kinds.size, 3 * program.n_classes
    if not values or not m:
        return values
    from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

    warm = HighsWarm(model, np.zeros(program.objective.size, np.int64))
    free = np.zeros(program.objective.size, dtype=bool)
    free[n : n + m] = True
    shuffled = []
    for solution in values:
        warm.aim(np.where(free, rng.standard_normal(free.size), 0.0))
        answer = warm.relax(
            np.where(free, model.low, solution), np.where(free, model.high, solution)
        )
        other = solution if answer.values is None else np.rint(answer.values).astype(np.int64)
        shuffled.append(other if model.holds(other) else solution)
    return shuffled

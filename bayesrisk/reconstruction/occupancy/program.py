"""The best solutions of a block's program: one, the t best ones, or those of shaken objectives.

Two solutions are the same when they have the same households of each kind (the census side); who
of them is subsidised, with how many bedrooms, is then chosen at random among what is possible.
"""

import heapq
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.occupancy.detection import UNIT, HouseholdLaw
from bayesrisk.reconstruction.occupancy.statistics import HUD_GROUP, OccupancyStatistics
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import IntegerModel, Limits, SolverResult
from bayesrisk.reconstruction.solvers.branching import (
    proved_bound,
    proves_infeasible,
    reduced_values,
)
from bayesrisk.reconstruction.solvers.model import SolverBackend

if TYPE_CHECKING:
    from bayesrisk.reconstruction.solvers.highs import HighsWarm

# -----------------------------------------------------------------------------
# Integer programs of the households of one block: Eq. 2 (exact tables) and Eq. 8 (noisy ones).
#
# Variables: households of each kind; of each class (size, group of the householder, children or
# not) the subsidised ones by bedrooms; and, for noisy tables, what each row misses its count by.


#: Most units of squared errors of a block, a variable each.
MAX_STEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """The program of one block: kinds, subsidised classes (bedrooms by class), errors.

    The objective is the log-likelihood in units of 1e-4 (minus error), maximised.  ``kinds`` are
    positions in the law; ``class_of`` is the class of each kind, as a position among those of the
    program.
    """

    model: IntegerModel
    objective: IntArray
    kinds: IntArray
    class_of: IntArray
    n_classes: int

    def split(self, values: IntArray) -> tuple[IntArray, IntArray]:
        """Return households of each kind, and subsidised ones (3, classes)."""
        n = self.kinds.size
        return values[:n], values[n : n + 3 * self.n_classes].reshape(3, -1)


def block_program(
    blocks: OccupancyStatistics,
    at: int,
    law: HouseholdLaw,
    *,
    every_kind: bool,
    error: str,
    likelihood: bool = True,
    most: int | None = None,
) -> BlockProgram:
    """Return the program of the block at a position.

    With ``error="none"`` tables are right, as :func:`occupancy_statistics` reads them; with
    ``absolute`` or ``squared`` every row but the number of households may be missed, at that
    cost: the distance to the interval of counts that a published number stands for.
    ``every_kind`` allows kinds outside the sample, ``likelihood`` gives kinds their weights,
    ``most`` is the largest error of a row that needs to be looked at, for squared errors.
    """
    exact = error == "none"
    usable = np.ones(len(law), dtype=bool) if every_kind else law.in_sample
    limit = kind_limit(blocks, at, law, exact=exact)
    kinds = np.flatnonzero(usable & (limit > 0))
    code, class_of = _classes(law, kinds)
    rows, low, high = statistic_rows(blocks, at, law, kinds, code, exact=exact)
    n, m = kinds.size, code.size
    top = np.concatenate([limit[kinds], np.full(3 * m, blocks.hud_households[at])])
    if not exact:
        top[n:] = blocks.households[at]
    coupling = sp.hstack(
        [
            -sp.csr_array((np.ones(n, np.int64), (class_of, np.arange(n))), shape=(m, n)),
            sp.hstack([sp.eye_array(m, dtype=np.int64)] * 3),
        ],
        format="csr",
    )
    weight = law.log_probability[kinds] if likelihood else np.zeros(n, np.int64)
    objective = np.concatenate([weight, np.zeros(3 * m, np.int64)])
    if not exact:
        soft, cost, soft_top = _errors(rows, low, high, top, squared=error == "squared", most=most)
        rows = sp.hstack([rows, soft], format="csr")
        coupling = sp.hstack(
            [coupling, sp.csr_array((m, soft.shape[1]), dtype=np.int64)], format="csr"
        )
        objective = np.concatenate([objective, -UNIT * cost])
        top = np.concatenate([top, soft_top])
    model = IntegerModel(
        np.zeros(top.size, np.int64),
        top.astype(np.int64),
        sp.csr_array(sp.vstack([rows, coupling], format="csr")),
        np.concatenate([low, np.full(m, -int(blocks.households[at]), np.int64)]),
        np.concatenate([high, np.zeros(m, np.int64)]),
    )
    return BlockProgram(model, objective, kinds, class_of, m)


def kind_limit(blocks: OccupancyStatistics, at: int, law: HouseholdLaw, *, exact: bool) -> IntArray:
    """Return the most households of each kind that a block can have."""
    n = int(blocks.households[at])
    race = blocks.race[at]
    if exact and race.sum() == n:
        return np.asarray(race[law.race_ethnicity], dtype=np.int64)
    return np.full(len(law), n, dtype=np.int64)


def _classes(law: HouseholdLaw, kinds: IntArray) -> tuple[IntArray, IntArray]:
    """Return the codes of the classes that kinds fall into, and the class of each kind."""
    different, class_of = np.unique(_codes(law, kinds), return_inverse=True)
    return different.astype(np.int64), class_of.astype(np.int64)


def _codes(law: HouseholdLaw, kinds: IntArray) -> IntArray:
    """Return a number for what HUD's statistics tell of kinds: size, group, children or not."""
    group = HUD_GROUP[law.race_ethnicity[kinds]] + 1
    code: IntArray = (law.size[kinds] * 7 + group) * 2 + (law.children[kinds] > 0)
    return code


def statistic_rows(
    blocks: OccupancyStatistics,
    at: int,
    law: HouseholdLaw,
    kinds: IntArray,
    code: IntArray | None = None,
    *,
    exact: bool,
) -> tuple[sp.csr_array, IntArray, IntArray]:
    """Return rows over kinds and subsidised classes with their bounds, the first that of H3.

    Classes are given by their codes; without, every kind is a class of its own.
    """
    size, race, children = law.size[kinds], law.race_ethnicity[kinds], law.children[kinds]
    code = _codes(law, kinds) if code is None else code
    c_size, c_group, c_child = code // 14, (code // 2) % 7 - 1, code % 2
    n, n_sub = int(blocks.households[at]), int(blocks.hud_households[at])
    homes = [np.ones_like(size), *(size == x for x in range(1, 8))]
    homes += [*(race == j for j in range(14)), size, children]
    subsidised = [np.ones_like(c_size), c_size, *(c_group == j for j in range(6)), c_child]
    every = np.tile(np.array(subsidised, dtype=np.int64), 3)
    rooms = np.kron(np.eye(3, dtype=np.int64), np.ones(code.size, dtype=np.int64))
    parts = np.array(homes, dtype=np.int64), np.vstack([every, rooms])
    matrix = sp.block_diag([sp.coo_array(part) for part in parts], format="csr")
    counts = blocks.sizes[at]
    people, minors = int(blocks.population[at]), int(blocks.children[at])
    hud_people = int(blocks.hud_people[at])
    large = n - int(counts[:6].sum())  # households that may be larger than any size published
    if exact:
        hud_people = min(hud_people, int(blocks.largest_people[at]))
    if exact and large > 0:
        sizes, homes_of = np.arange(1, 8), [*counts[:6].tolist(), large]
        people = min(people, int(homes_of @ sizes))
        minors = min(minors, int(homes_of @ np.minimum(sizes - law.adults, 6)))
        left = n_sub - np.cumsum([0, *homes_of[:0:-1]])  # the largest ones first
        largest = np.clip(left, 0, homes_of[::-1]) @ sizes[::-1]
        hud_people = min(hud_people, int(largest))
    low = [n, *counts, *blocks.race[at], people, minors, n_sub, hud_people]
    low += [*blocks.hud_race[at], int(blocks.hud_children[at, 0]), *blocks.hud_bedrooms[at]]
    if not exact:
        high = [n, *counts, *blocks.race[at], people, minors, n_sub, hud_people]
        high += [*np.asarray(blocks.hud_race_most)[at], int(blocks.hud_children[at, 1])]
        high += [*np.asarray(blocks.hud_bedrooms_most)[at]]
        return sp.csr_array(matrix), np.array(low, np.int64), np.array(high, np.int64)
    low[7] = 0  # a household of unknown size may have 7 people, and 7 may be anything
    high = [n, *[n] * 7, *[n] * 14, 7 * n, 7 * n, n_sub, 7 * n, *[n] * 6]
    high += [int(blocks.hud_children[at, 1]), *[n] * 3]
    return sp.csr_array(matrix), np.array(low, np.int64), np.array(high, np.int64)


def _errors(
    rows: sp.csr_array,
    low: IntArray,
    high: IntArray,
    top: IntArray,
    *,
    squared: bool,
    most: int | None,
) -> tuple[sp.csr_array, IntArray, IntArray]:
    """Return columns of errors of all rows but the first, their costs and bounds.

    Squared errors are steps of one, at costs 1, 3, 5, ...: the k-th brings the sum to k squared.
    """
    largest = rows @ top
    missing, surplus = low, np.maximum(largest - high, 0)
    if squared:
        every = np.concatenate([missing[1:], surplus[1:]])
        needed = int((every if most is None else np.minimum(every, most)).sum())
        if needed > MAX_STEPS:
            raise ArgumentError(
                f"error 'squared' must have at most {MAX_STEPS} units of error in a block, "
                f"got {needed}: take 'absolute'"
            )
    place, sign, cost, bound = [], [], [], []
    for row in range(1, rows.shape[0]):
        for direction, reach in ((1, int(missing[row])), (-1, int(surplus[row]))):
            reach = reach if most is None else min(reach, most)
            if not reach:
                continue
            steps = reach if squared else 1
            place += [row] * steps
            sign += [direction] * steps
            cost += list(range(1, 2 * steps, 2)) if squared else [1]
            bound += [1] * steps if squared else [reach]
    columns = sp.csr_array(
        (np.array(sign, np.int64), (np.array(place, np.int64), np.arange(len(place)))),
        shape=(rows.shape[0], len(place)),
    )
    return columns, np.array(cost, np.int64), np.array(bound, np.int64)


_WHOLE = 1e-6
_STEPS = 60


class Best(NamedTuple):
    """Solutions of a program, best first, and whether these are proved to be the best."""

    status: str
    values: list[IntArray]


def best_solution(program: BlockProgram, solver: SolverBackend, limits: Limits) -> Best:
    """Return one solution of largest objective."""
    if program.model.row_low[0] == 0:  # no households: what is published is missed, if it may be
        nobody = program.model.high.copy()
        nobody[: program.kinds.size + 3 * program.n_classes] = 0
        return (
            Best(Status.PROVED, [nobody])
            if program.model.holds(nobody)
            else Best(Status.INFEASIBLE, [])
        )
    if program.kinds.size == 0:
        return Best(Status.INFEASIBLE, [])
    found = solver.solve(program.model, program.objective, limits=limits)
    return Best(found.status, [] if found.values is None else [found.values])


class _Box(NamedTuple):
    """A part of the solutions: bounds, and the relaxation's answer once it is known.

    Only the numbers of households of each kind are ever bounded: all ways to choose who of them is
    subsidised are in one box.  ``only`` is the solution of a box that holds no other.  ``parent``
    makes the box from households that were taken out of a larger one: the variables that come
    before ``step`` in its order are as there, the one at it is below or above.
    """

    low: IntArray
    high: IntArray
    values: NDArray[np.float64] | None
    duals: NDArray[np.float64] | None
    parent: "tuple[IntArray, IntArray, int, int] | None" = None
    only: IntArray | None = None

    def opened(self) -> "_Box":
        """Return the box with its own bounds."""
        if self.parent is None:
            return self
        star, order, step, side = self.parent
        low, high = self.low.copy(), self.high.copy()
        before, own = order[:step], order[step]
        low[before] = high[before] = star[before]
        if side < 0:
            high[own] = star[own] - 1
        else:
            low[own] = star[own] + 1
        return _Box(low, high, None, None)


class _Partition:
    """Best-first enumeration (Lawler 1972) over a relaxation that starts warm.

    What it finds comes best first: where it ends early, at a limit, those found so far are the
    best ones all the same.
    """

    def __init__(
        self,
        program: BlockProgram,
        rng: np.random.Generator,
        solver: SolverBackend,
        limits: Limits,
    ) -> None:
        self._program, self._model = program, program.model
        self._transposed = sp.csr_array(program.model.rows.T)
        from bayesrisk.reconstruction.solvers.highs import HighsWarm  # loads a compiled solver

        self._warm = HighsWarm(program.model, program.objective)
        # Ties fall at random: noise that all households together keep below one unit.
        households = max(int(program.model.row_low[0]), 1)
        kinds = program.kinds.size
        noise = np.zeros(program.objective.size)
        noise[:kinds] = rng.uniform(0.0, 0.5 / households, kinds)
        self._warm.aim(program.objective + noise)
        self._rng, self._solver = rng, solver
        self._end = np.inf if limits.seconds is None else time.perf_counter() + limits.seconds
        self._heap: list[tuple[float, float, int, _Box]] = []
        self._count = 0
        self.proved = True

    def _push(self, bound: float, box: _Box) -> None:
        self._count += 1
        heapq.heappush(self._heap, (-bound, float(self._rng.random()), self._count, box))

    def run(self, wanted: int) -> list[IntArray]:
        """Return the best solutions, best first; fewer when there are no more."""
        found: list[IntArray] = []
        self._push(np.inf, _Box(self._model.low, self._model.high, None, None))
        while self._heap and len(found) < wanted:
            if time.perf_counter() > self._end:
                self.proved = False
            if not self.proved:
                break
            top, _, _, box = heapq.heappop(self._heap)
            star = box.only
            if star is None and box.values is None:
                self._evaluate(box.opened(), -top)
            elif star is None:
                star = self._take(box, -top)
            if star is not None:
                found.append(star)
        return found

    def _evaluate(self, box: _Box, inherited: float) -> None:
        """Solve the relaxation of a box, and put it back with its own bound."""
        answer = self._warm.relax(box.low, box.high)
        if answer.values is None or answer.duals is None:
            ray = answer.ray
            if ray is None or not proves_infeasible(
                self._model, self._transposed, box.low, box.high, ray
            ):
                self._by_program(box)
            return
        bound = proved_bound(
            self._model, self._program.objective, self._transposed, box.low, box.high, answer.duals
        )
        self._push(
            min(float(np.floor(bound + _WHOLE)), inherited),
            _Box(box.low, box.high, answer.values, answer.duals),
        )

    def _whole(self, low: IntArray, high: IntArray) -> SolverResult:
        """Return the best solution within bounds, from the solver of integer programs."""
        m = self._model
        left = None if np.isinf(self._end) else max(self._end - time.perf_counter(), 1e-3)
        inside = IntegerModel(low, high, m.rows, m.row_low, m.row_high)
        return self._solver.solve(inside, self._program.objective, limits=Limits(seconds=left))

    def _by_program(self, box: _Box) -> None:
        """Look for a solution in a box that the relaxation says nothing certain about."""
        answer = self._whole(box.low, box.high)
        if answer.values is not None:
            none = np.zeros(self._model.row_low.size)
            self._push(answer.bound, _Box(box.low, box.high, answer.values.astype(float), none))
        elif answer.status != Status.INFEASIBLE:
            self.proved = False

    def _take(self, box: _Box, bound: float) -> IntArray | None:
        """Split a box with a known relaxation; return its best solution if it is whole."""
        values, n = box.values, self._program.kinds.size
        if values is None or box.duals is None:
            return None
        away = np.abs(values[:n] - np.rint(values[:n]))
        at = int(away.argmax())
        if away[at] > _WHOLE:
            below, above = box.high.copy(), box.low.copy()
            below[at] = int(np.floor(values[at]))
            above[at] = below[at] + 1
            self._push(bound, _Box(box.low, below, None, None))
            self._push(bound, _Box(above, box.high, None, None))
            return None
        homes = np.rint(values[:n]).astype(np.int64)
        self._exclude(box, homes, bound)
        return self._completed(homes, values, bound)

    def _completed(
        self, homes: IntArray, values: NDArray[np.float64], bound: float
    ) -> IntArray | None:
        """Return the best solution with these households if it reaches the bound.

        One that does not waits for its turn; there may be none.
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
        """Whether values are a solution, and none in their box is better."""
        return self._model.holds(star) and bound <= int(self._program.objective @ star) + 0.5

    def _exclude(self, box: _Box, star: IntArray, bound: float) -> None:
        """Split what remains of a box without these households."""
        n = star.size
        free = np.flatnonzero(box.low[:n] < box.high[:n])
        if not free.size or box.duals is None:
            return
        whole, rest = reduced_values(
            self._model, self._program.objective, self._transposed, box.low, box.high, box.duals
        )
        # The dearest variables first: their boxes have the lowest bounds, and stay small.
        order = free[np.argsort(-np.abs(rest[free]), kind="stable")]
        best = np.maximum(rest * box.low, rest * box.high)[order]
        fixed = np.concatenate([[0.0], np.cumsum(best - rest[order] * star[order])[:-1]])
        for step, at in enumerate(order.tolist()):
            left = whole - fixed[step] - best[step]
            for side, low, high in (
                (-1, box.low[at], star[at] - 1),
                (1, star[at] + 1, box.high[at]),
            ):
                if low > high:
                    continue
                own = max(rest[at] * low, rest[at] * high)
                child = float(np.floor(left + own + _WHOLE))
                self._push(
                    min(child, bound),
                    _Box(box.low, box.high, None, None, (star, order, step, side)),
                )


def best_solutions(
    program: BlockProgram,
    wanted: int,
    rng: np.random.Generator,
    solver: SolverBackend,
    limits: Limits,
) -> Best:
    """Return the solutions of largest objective, ties at random."""
    if program.model.row_low[0] == 0 or program.kinds.size == 0:
        return best_solution(program, solver, limits)
    partition = _Partition(program, rng, solver, limits)
    found = partition.run(wanted)
    if not found and partition.proved:
        return Best(Status.INFEASIBLE, [])
    return Best(
        Status.PROVED if partition.proved else Status.FEASIBLE if found else Status.UNKNOWN, found
    )


def shaken_solutions(
    program: BlockProgram,
    wanted: int,
    scale: float,
    rng: np.random.Generator,
    solver: SolverBackend,
    limits: Limits,
) -> Best:
    """Return optima of objectives with random noise of a scale, in nats, for each variable."""
    if program.model.row_low[0] == 0 or program.kinds.size == 0:
        only = best_solution(program, solver, limits)
        return Best(only.status, only.values * wanted)
    model, size = program.model, program.kinds.size + 3 * program.n_classes
    from bayesrisk.reconstruction.solvers.highs import HighsWarm  # loads a compiled solver

    warm = HighsWarm(model, program.objective)
    soft = program.objective.size > size
    # Closer to an optimum than the noise of one variable, or one count of error, is not looked for.
    near = float(UNIT if soft else np.floor(scale * UNIT))
    end = np.inf if limits.seconds is None else time.perf_counter() + limits.seconds
    values: list[IntArray] = []
    for _ in range(wanted):
        if time.perf_counter() > end:
            return Best(Status.FEASIBLE if values else Status.UNKNOWN, values)
        objective = program.objective.copy()
        objective[:size] += np.rint(rng.gumbel(0.0, scale * UNIT, size)).astype(np.int64)
        warm.aim(objective)
        found = _dive(warm, model, objective, near)
        if found is None:
            left = None if np.isinf(end) else max(end - time.perf_counter(), 1e-3)
            exact = solver.solve(model, objective, limits=Limits(seconds=left, gap=near))
            if exact.status == Status.INFEASIBLE:
                return Best(Status.INFEASIBLE, [])
            found = exact.values
        if found is not None:
            values.append(found)
    return Best(Status.FEASIBLE if values else Status.UNKNOWN, values)


def _dive(
    warm: "HighsWarm", model: IntegerModel, objective: IntArray, near: float
) -> IntArray | None:
    """Return a solution near the optimum of the relaxation, found by fixing what is not whole.

    None if there was none on the way, or not near enough.
    """
    low, high = model.low, model.high
    answer = warm.relax(low, high)
    if answer.values is None:
        return None
    least = float(objective @ answer.values) - near
    for _ in range(_STEPS):
        values = answer.values
        if values is None or float(objective @ values) < least:
            return None
        away = np.abs(values - np.rint(values))
        if away.max(initial=0.0) < _WHOLE:
            whole = np.rint(values).astype(np.int64)
            return whole if model.holds(whole) else None
        fractional = np.flatnonzero(away >= _WHOLE)
        at = fractional[int(away[fractional].argmin())]
        low, high = low.copy(), high.copy()
        fixed = int(np.rint(values[at]))
        low[at] = high[at] = fixed
        answer = warm.relax(low, high)
        if answer.values is None:  # the other side
            other = fixed + (1 if values[at] > fixed else -1)
            low, high = low.copy(), high.copy()
            low[at] = high[at] = other
            answer = warm.relax(low, high)
    return None


def shuffled_assignments(
    program: BlockProgram, values: list[IntArray], rng: np.random.Generator
) -> list[IntArray]:
    """Return solutions with the same households and errors, subsidies and bedrooms at random.

    Among the possible assignments it is one of those that a random direction likes best.
    """
    model, n, m = program.model, program.kinds.size, 3 * program.n_classes
    if not values or not m:
        return values
    from bayesrisk.reconstruction.solvers.highs import HighsWarm  # loads a compiled solver

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

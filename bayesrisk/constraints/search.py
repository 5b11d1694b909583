"""Branch and bound over a warm-started linear relaxation, with bounds proved in integers.

The models here are small and nearly integral: a handful of fractional variables at the root. A
general solver spends most of its time on presolve and heuristics. Diving with a warm relaxation
needs a few simplex steps for each node. Every bound comes from dual values turned into whole
multiples of rows (:mod:`bayesrisk.constraints.certificates`). So it holds whatever the
floating-point solver did.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.certificates import proves_infeasible, reduced_values
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.solvers import Deadline, Limits, Raw

#: Nodes that are looked at: the fewer, the larger the model; a general solver catches up then.
_NODES, _FEWEST, _WORK = 60, 5, 6000
_INTEGRAL = 1e-6
#: Fractions above which a dive rounds up.
_UP = 0.8


class Relaxation(NamedTuple):
    """Answer of a linear solver: values and dual values, or a ray that shows infeasibility."""

    values: FloatArray | None
    duals: FloatArray | None
    ray: FloatArray | None


class LinearSolver(Protocol):
    """Solver of one model's linear relaxation, called again with other bounds."""

    def relax(self, low: IntArray, high: IntArray) -> Relaxation:
        """Return the relaxation's solution within bounds of the variables."""


Part = TypeVar("Part")


def explore(
    waiting: list[Part],
    look: Callable[[Part], Iterable[Part] | None],
    *,
    nodes: int,
    deadline: Deadline,
) -> bool:
    """Visit parts of the solution space depth first; each visit returns further parts to visit.

    ``look`` returns None to end the search.  Return whether no part is left to look at.
    """
    for _ in range(nodes):
        if not waiting or deadline.late:
            break
        more = look(waiting.pop())
        if more is None:
            return False
        waiting.extend(more)
    return not waiting


def halves(
    low: IntArray, high: IntArray, index: int, most: int
) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
    """Return two pairs of bounds: one variable at most ``most``, or at least ``most + 1``."""
    less, more = high.copy(), low.copy()
    less[index], more[index] = most, most + 1
    return (low, less), (more, high)


def _refuted(model: IntegerModel, low: IntArray, high: IntArray, answer: Relaxation) -> bool:
    return answer.ray is not None and proves_infeasible(model, low, high, answer.ray)


def branch_and_bound(
    solver: LinearSolver, model: IntegerModel, objective: IntArray, limits: Limits
) -> Raw | None:
    """Maximise an integer model by depth-first branch and bound over its relaxation ``solver``.

    Return a proved answer, or None if a general solver should take over. That is after 60 nodes
    (fewer for large models), at the time limit, for a model without a solution, or if no bound was
    proved.
    """
    # A better solution is better by one at least.
    step = max(limits.gap, 1.0 - _INTEGRAL)
    switch = objective == 0
    best, value, worst = list[FloatArray](), -np.inf, -np.inf

    def look(part: tuple[IntArray, IntArray]) -> Iterable[tuple[IntArray, IntArray]] | None:
        nonlocal value, worst
        answer = solver.relax(*part)
        if answer.values is None or answer.duals is None:
            return [] if _refuted(model, *part, answer) else None
        bound = reduced_values(model, objective, *part, answer.duals)[0]
        if bound <= value + step:
            worst = max(worst, bound)
            return []
        fraction = np.abs(answer.values - np.rint(answer.values))
        # Variables without a weight are switches: they decide most.
        index = int(np.where(switch & (fraction >= _INTEGRAL), fraction + 1.0, fraction).argmax())
        if fraction[index] < _INTEGRAL:
            whole = np.rint(answer.values).astype(np.int64)
            if not model.holds(whole):
                return None
            worth = int(objective @ whole)
            if worth > value:
                best[:], value = [answer.values], worth
            worst = max(worst, bound)
            return [] if bound <= worth + step else None  # the dual values were no good
        most = int(np.floor(answer.values[index]))
        children = halves(*part, index, most)
        # The nearer side last: it is looked at next.
        return children if answer.values[index] - most > 0.5 else children[::-1]

    # One node less than the limit: that nothing is left must be seen within it.
    nodes = min(max(_WORK // max(model.low.size, 1), _FEWEST), _NODES) - 1
    deadline = Deadline(limits.seconds)
    complete = explore([(model.low, model.high)], look, nodes=nodes, deadline=deadline)
    return Raw(Status.PROVED, max(worst, value), best[0]) if complete and best else None


def find_at_least(
    solver: LinearSolver,
    model: IntegerModel,
    objective: IntArray,
    least: int | None,
    *,
    nodes: int,
    deadline: Deadline,
) -> tuple[str, IntArray | None]:
    """Search depth first for a solution with objective at least ``least`` (None: any solution).

    ``solver`` is the relaxation of the model with this objective.  Return ``found``, ``none``
    (proved in integer arithmetic) or ``unknown``, and the solution, checked against every row.
    """
    solutions, proved = list[IntArray](), True

    def look(part: tuple[IntArray, IntArray, bool]) -> list[tuple[IntArray, IntArray, bool]] | None:
        nonlocal proved
        low, high, whole = part
        answer = solver.relax(low, high)
        if answer.values is None or answer.duals is None:
            proved &= not whole or _refuted(model, low, high, answer)
            return []
        if least is not None and objective @ answer.values < least - _INTEGRAL:
            if whole:
                bound = reduced_values(model, objective, low, high, answer.duals)[0]
                proved &= bound < least
            return []
        floor = np.floor(answer.values + _INTEGRAL).astype(np.int64)
        above = answer.values - floor
        index = int(above.argmax())
        if above[index] < _INTEGRAL:
            if (least is None or int(objective @ floor) >= least) and model.holds(floor):
                solutions.append(floor)
                return None
            proved &= not whole
            return []
        children = halves(low, high, index, int(floor[index]))
        # First a part of these two that is soon at an end: whole parts stay, large ones go up.
        ahead = np.maximum(children[1][0], np.where(above > _UP, floor + 1, floor))
        parts = [(*child, True) for child in children] if whole else []
        return [*parts, (np.minimum(ahead, high), high, False)]

    whole = [(model.low, model.high, True)]
    complete = explore(whole, look, nodes=nodes, deadline=deadline)
    if solutions:
        return "found", solutions[0]
    return "none" if proved and complete else "unknown", None


class Questions(ABC):
    """Base of relaxations that answer questions about a model's solutions."""

    def __init__(self, model: IntegerModel, deadline: Deadline | None) -> None:
        self._model, self._deadline = model, deadline or Deadline()

    @abstractmethod
    def relax(self, low: IntArray, high: IntArray) -> Relaxation:
        """Return the relaxation's solution for the last objective within the bounds."""

    @abstractmethod
    def aim(self, objective: IntArray | FloatArray) -> None:
        """Set the objective."""

    def maximise(self, objective: IntArray) -> Relaxation:
        """Return values and dual values that maximise an objective within the model's bounds."""
        self.aim(objective)
        return self.relax(self._model.low, self._model.high)

    def bound(self, objective: IntArray) -> tuple[int | None, IntArray | None]:
        """Return a proved integer upper bound and rounded values near it, or None if unknown."""
        answer, model = self.maximise(objective), self._model
        if answer.values is None or answer.duals is None:
            return None, None
        bound = reduced_values(model, objective, model.low, model.high, answer.duals)[0]
        near = np.rint(answer.values).astype(np.int64)
        return int(np.floor(bound)) if np.isfinite(bound) else None, near

    def find(
        self, objective: IntArray, least: int | None = None, *, nodes: int
    ) -> tuple[str, IntArray | None]:
        """Search depth first for a solution of the model, as :func:`find_at_least` does."""
        self.aim(objective)
        return find_at_least(
            self, self._model, objective, least, nodes=nodes, deadline=self._deadline
        )

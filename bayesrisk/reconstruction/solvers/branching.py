"""Branch and bound over a linear relaxation that starts warm, its bounds proved in integers.

The models here are small and nearly integral: a handful of fractional variables at the root.  A
general solver spends most of its time on presolve and heuristics; diving with a warm relaxation
needs a few simplex steps for each node.  Every bound that is used comes from dual values that
were rounded to whole multiples of ``2**-20`` and evaluated in integer arithmetic, so that it
holds whatever the floating-point solver did.
"""

from typing import NamedTuple, Protocol

import numpy as np

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers.model import Deadline, IntegerModel, Limits, Raw

_UNIT = 2**20
#: Nodes that are looked at: the fewer, the larger the model; a general solver catches up then.
_NODES, _FEWEST, _WORK = 60, 5, 6000
_INTEGRAL = 1e-6
#: Fractions above which a dive rounds up.
_UP = 0.8
#: Below this, sums of whole numbers are exact whatever the order of their terms.
_EXACT = 2**62


class Relaxation(NamedTuple):
    """Answer of a linear solver: values, dual values of the rows, or a ray of infeasibility."""

    values: FloatArray | None
    duals: FloatArray | None
    ray: FloatArray | None


class LinearSolver(Protocol):
    """Solves the relaxation of one model again and again, within changing bounds."""

    def relax(self, low: IntArray, high: IntArray) -> Relaxation:
        """Return the relaxation within bounds of the variables."""


def _whole(duals: FloatArray) -> IntArray | None:
    """Return dual values as whole multiples of the unit, or None when they are too large."""
    scaled = np.rint(duals * _UNIT)
    if not np.all(np.abs(scaled) < 2**40):
        return None
    return scaled.astype(np.int64)


def _exact(model: IntegerModel, y: IntArray, objective: IntArray | None = None) -> bool:
    """Return True if a combination of the rows and the rest of an objective cannot overflow."""
    top = int(np.abs(y).max(initial=0))
    heaviest = 0 if objective is None else int(np.abs(objective).max(initial=0)) * _UNIT
    rows, columns, variables = model.spans
    if top * rows + (heaviest + top * columns) * variables < _EXACT:
        return True
    size = np.abs(y).astype(np.float64)
    weight = abs(model.rows).T @ size
    if objective is not None:
        weight = weight + np.abs(objective).astype(np.float64) * _UNIT
    ends = np.maximum(np.abs(model.row_low), np.abs(model.row_high))
    most = size @ ends + weight @ np.maximum(np.abs(model.low), np.abs(model.high))
    return bool(most < _EXACT)


def reduced_values(
    model: IntegerModel,
    objective: IntArray,
    low: IntArray,
    high: IntArray,
    duals: FloatArray,
) -> tuple[float, FloatArray]:
    """Return an upper bound of the objective, proved by dual values, and reduced values.

    For any ``y``: ``c x = y (A x) + (c - A' y) x``, each term at most its largest value within
    the bounds of rows and variables, in integer arithmetic.  Any dual values give a bound, good
    ones a good bound, rounded up to a multiple of ``2**-20``; infinite when values are too large.
    The reduced value of a variable is what one more of it adds to the bound.
    """
    y = _whole(duals)
    if y is None or not _exact(model, y, objective):
        return np.inf, np.zeros(low.size)
    rest = objective * _UNIT - model.columns @ y
    rows = np.maximum(y * model.row_low, y * model.row_high).sum()
    total = int(rows + np.maximum(rest * low, rest * high).sum())
    bound = total / _UNIT
    if abs(total) >= 2**53:  # a double may have been rounded down
        bound = float(np.nextafter(bound, np.inf))
    return bound, rest / _UNIT


def proves_infeasible(model: IntegerModel, low: IntArray, high: IntArray, ray: FloatArray) -> bool:
    """Return True if no values within their bounds reach a combination of the rows."""
    largest = float(np.abs(ray).max(initial=0.0))
    y = _whole(ray / largest) if largest > 0 else None
    if y is None or not _exact(model, y):
        return False
    weights = model.columns @ y
    most = np.maximum(weights * low, weights * high)
    least = np.minimum(weights * low, weights * high)
    needed = np.minimum(y * model.row_low, y * model.row_high).sum()
    allowed = np.maximum(y * model.row_low, y * model.row_high).sum()
    return bool(most.sum() < needed or least.sum() > allowed)


def branch_and_bound(
    solver: LinearSolver, model: IntegerModel, objective: IntArray, limits: Limits
) -> Raw | None:
    """Maximise an integer model by diving, ``solver`` being its relaxation.

    Return a proved answer; None, when a general solver had better do it, after 60 nodes (fewer for
    large models), at the time limit, for a model without a solution, or when no bound was proved.
    """
    deadline = Deadline(limits.seconds)
    # A better solution is better by one at least.
    step = max(limits.gap, 1.0 - _INTEGRAL)
    switch = objective == 0
    best, value, worst = None, -np.inf, -np.inf
    stack = [(model.low, model.high)]
    nodes = min(max(_WORK // max(model.low.size, 1), _FEWEST), _NODES)
    for _ in range(nodes):
        if not stack:
            return None if best is None else Raw(Status.PROVED, max(worst, value), best)
        if deadline.late:
            return None
        low, high = stack.pop()
        answer = solver.relax(low, high)
        if answer.values is None or answer.duals is None:
            if answer.ray is None or not proves_infeasible(model, low, high, answer.ray):
                return None
            continue
        bound = reduced_values(model, objective, low, high, answer.duals)[0]
        if bound <= value + step:
            worst = max(worst, bound)
            continue
        fraction = np.abs(answer.values - np.rint(answer.values))
        # Variables without a weight are switches: they decide most.
        index = int(np.where(switch & (fraction >= _INTEGRAL), fraction + 1.0, fraction).argmax())
        if fraction[index] < _INTEGRAL:
            whole = np.rint(answer.values).astype(np.int64)
            if not model.holds(whole):
                return None
            worth = int(objective @ whole)
            if worth > value:
                best, value = answer.values, worth
            if bound > worth + step:
                return None  # the dual values were no good
            worst = max(worst, bound)
            continue
        below, above = high.copy(), low.copy()
        below[index] = int(np.floor(answer.values[index]))
        above[index] = below[index] + 1
        children = [(low, below), (above, high)]
        # The nearer side last: it is looked at next.
        stack.extend(children if answer.values[index] - below[index] > 0.5 else children[::-1])
    return None


def find_at_least(
    solver: LinearSolver,
    model: IntegerModel,
    objective: IntArray,
    least: int | None,
    *,
    nodes: int,
    deadline: Deadline,
) -> tuple[str, IntArray | None]:
    """Look for a solution whose objective is at least a number, by diving; None for any solution.

    ``solver`` is the relaxation of the model with this objective.  Return ``found``, ``none``
    (proved in integer arithmetic) or ``unknown``, and the solution, checked against every row.
    """
    stack, proved = [(model.low, model.high, True)], True
    for _ in range(nodes):
        if not stack or deadline.late:
            break
        low, high, whole = stack.pop()
        answer = solver.relax(low, high)
        if answer.values is None or answer.duals is None:
            if whole:
                ray = answer.ray
                proved &= ray is not None and proves_infeasible(model, low, high, ray)
            continue
        if least is not None and objective @ answer.values < least - _INTEGRAL:
            if whole:
                bound = reduced_values(model, objective, low, high, answer.duals)[0]
                proved &= bound < least
            continue
        floor = np.floor(answer.values + _INTEGRAL).astype(np.int64)
        above = answer.values - floor
        index = int(above.argmax())
        if above[index] < _INTEGRAL:
            enough = least is None or int(objective @ floor) >= least
            if enough and model.holds(floor):
                return "found", floor
            proved &= not whole
            continue
        less, more = high.copy(), low.copy()
        less[index], more[index] = floor[index], floor[index] + 1
        if whole:
            stack.extend([(low, less, True), (more, high, True)])
        # First a part of these two that is soon at an end: whole parts stay, large ones go up.
        ahead = np.maximum(more, np.where(above > _UP, floor + 1, floor))
        stack.append((np.minimum(ahead, high), high, False))
    return "none" if proved and not stack else "unknown", None

"""Proofs of bounds: whole multiples of rows, added up in integer arithmetic.

Take rows ``l <= A x <= u``, bounds ``a <= x <= b``, an objective ``c`` and any whole ``y``. Then::

    d c x = y (A x) + (d c - A' y) x <= sum_i max(y_i l_i, y_i u_i) + sum_j max(r_j a_j, r_j b_j)

with ``r = d c - A' y``. A solver's floating-point duals suggest ``y / d``. Any ``y`` gives a valid
bound, and a good one gives a good bound. With ``c = 0``, a bound below 0 is a contradiction
(Farkas): there is no solution.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel, largest_ends

#: The unit of multiples where all ends are known: what rounding leaves over is taken at an end.
UNIT = 2**20
#: Units where some are not, the likely ones first: nothing may be left over of what has no end.
UNITS = (1, 2, 3, 4, 12, 60, UNIT)
#: Multiples from here on are not looked at.
_LARGE = 2**40
#: Below this, sums of whole numbers are exact whatever the order of their terms.
_EXACT = 2**62
#: Roundings by less than this need no finer unit.
_SAME = 1e-9


class Bounds(NamedTuple):
    """Lower and upper bounds of variables and of rows: one part of a model's solutions."""

    low: IntArray
    high: IntArray
    row_low: IntArray
    row_high: IntArray


class Combination(NamedTuple):
    """Whole multiples of rows, the rest of the objective, and the bound that both prove.

    ``unit`` times the objective is at most ``total``; the reduced value ``rest / unit`` of a
    variable is what one more of it adds.
    """

    unit: int
    multiples: IntArray
    rest: IntArray
    total: int

    @property
    def floor(self) -> int:
        """The largest whole value that the proof allows the objective."""
        return self.total // self.unit

    @property
    def bound(self) -> float:
        """The proved bound as a float, rounded up."""
        bound = self.total / self.unit
        if abs(self.total) >= 2**53:  # a double may have been rounded down
            bound = float(np.nextafter(bound, np.inf))
        return bound


def combinations(
    model: IntegerModel,
    objective: IntArray,
    bounds: Bounds,
    duals: FloatArray,
    units: Sequence[int] = (),
    *,
    near: float = np.inf,
) -> Iterator[Combination]:
    """Yield proofs of a bound: dual values rounded to whole multiples of rows, unit by unit.

    A proof is skipped if it proves nothing, because it needs a side without an end, or because
    numbers are too large for 64 bits. Except for the last unit, roundings by more than ``near`` of
    a unit are skipped too. A rounding that changes nothing is the last one.
    """
    units = units or ((UNIT,) if model.closed else UNITS)
    ends = model.largest_ends if model.closed else largest_ends(*bounds)
    for unit in units:
        scaled = duals * unit
        if not np.all(np.abs(scaled) < _LARGE):
            return
        rounded = np.rint(scaled)
        error = 0.0 if unit == units[-1] else np.abs(rounded - scaled).max(initial=0.0) / unit
        if error > near:
            continue
        y = rounded.astype(np.int64)
        if not model.closed:  # what has no end on the side that a multiple needs adds nothing
            y[_endless(y, bounds.row_low, bounds.row_high)] = 0
        if not _exact(model, y, unit, objective, ends):
            return
        rest = unit * objective - model.columns @ y
        if model.closed or not _endless(rest, bounds.low, bounds.high).any():
            # y_i u_i where y_i > 0, y_i l_i where it is not, and so for the variables.
            total = (y * np.where(y > 0, bounds.row_high, bounds.row_low)).sum()
            total += (rest * np.where(rest > 0, bounds.high, bounds.low)).sum()
            yield Combination(unit, y, rest, int(total))
        if error < _SAME:
            return


def _endless(weight: IntArray, low: IntArray, high: IntArray) -> BoolArray:
    return np.asarray((weight > 0) & (high >= ENDLESS) | (weight < 0) & (low <= -ENDLESS))


def _exact(
    model: IntegerModel, y: IntArray, unit: int, objective: IntArray,
    ends: tuple[FloatArray, FloatArray, int, int],
) -> bool:  # fmt: skip
    """Return True if the multiples of rows and the rest of the objective cannot overflow."""
    row_ends, variable_ends, rows, variables = ends
    top = int(np.abs(y).max(initial=0))
    heaviest = int(np.abs(objective).max(initial=0)) * unit
    if top * rows + (heaviest + top * model.heaviest) * variables < _EXACT:
        return True
    size = np.abs(y).astype(np.float64)
    weight = abs(model.rows).T @ size + np.abs(objective).astype(np.float64) * unit
    return bool(size @ row_ends + weight @ variable_ends < _EXACT)


def reduced_values(
    model: IntegerModel, objective: IntArray, low: IntArray, high: IntArray, duals: FloatArray
) -> tuple[float, FloatArray]:
    """Return an upper bound of the objective that dual values prove, and the reduced values.

    The bound is infinite when values are too large.
    """
    bounds = Bounds(low, high, model.row_low, model.row_high)
    one = min(combinations(model, objective, bounds, duals), key=lambda c: c.bound, default=None)
    return (np.inf, np.zeros(low.size)) if one is None else (one.bound, one.rest / one.unit)


def proves_infeasible(model: IntegerModel, low: IntArray, high: IntArray, ray: FloatArray) -> bool:
    """Return True if a combination of rows proves that no values within the bounds satisfy them."""
    largest = float(np.abs(ray).max(initial=0.0))
    nothing, bounds = np.zeros(low.size, np.int64), Bounds(low, high, model.row_low, model.row_high)
    return largest > 0 and any(
        one.total < 0
        for sign in (1.0, -1.0)
        for one in combinations(model, nothing, bounds, sign * ray / largest)
    )

"""Whole histograms of a group of places: one that has its counts, and the range of hidden ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.components import components
from bayesrisk.constraints.ends import FormEnds
from bayesrisk.constraints.model import ENDLESS, IntegerModel
from bayesrisk.constraints.narrow import narrowed
from bayesrisk.constraints.rows import equal_rows
from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.suppression.groups import PlaceGroup, endless_variables

if TYPE_CHECKING:
    from bayesrisk.constraints.highs import HighsWarm

#: Nodes that one search looks at before it gives up.
_NODES = 2000
_SWEEPS = 20  # of bounds through the rows; more only save linear programs
_CONTRADICT = "tables: published cells contradict each other"


def some_histogram(group: PlaceGroup) -> IntArray:
    """Return a histogram that has all counts of a group in which nothing is hidden."""
    model = _consistent(group.model)
    histogram = model.low.copy()
    for part in _parts(model, np.zeros(0, dtype=np.int64)):
        if part.star is None:
            raise DataError(
                "tables: found no records that have the counts; release records instead"
            )
        histogram[part.variables] = part.star
    return histogram


def group_ranges(
    group: PlaceGroup, least: int, most: int | None
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the smallest and largest count of each hidden row, and whether both are proved.

    ``least`` and ``most`` bound every hidden count.  What is not proved is an outer bound.
    """
    model, hidden = group.model, group.hidden
    # Cells that the same variables make up have one count.
    row_class, first = equal_rows(model.rows, hidden, group.tie)
    if np.any(model.row_low != model.row_low[first][row_class]):
        raise DataError(f"{_CONTRADICT}: equal cells differ")
    rows, wanted, tie = sparse.csr_array(model.rows[first]), hidden[first], group.tie[first]
    low = np.where(wanted, least, model.row_low[first])
    high = np.where(wanted, ENDLESS if most is None else most, model.row_high[first])
    bounded = ~tie & (~wanted | (most is not None))
    free = endless_variables(sparse.csr_array(rows[bounded]), rows[np.flatnonzero(tie)])
    targets = np.flatnonzero(wanted)
    narrow = _consistent(IntegerModel(model.low, model.high, rows, low, high))
    lower, upper, proved = _settled(narrow, targets, (rows[targets] @ free) > 0)
    number = np.full(len(first), -1)
    number[targets] = np.arange(len(targets))
    position = number[row_class[hidden]]
    return lower[position], upper[position], proved[position]


def _consistent(model: IntegerModel) -> IntegerModel:
    left = narrowed(model, _SWEEPS)
    if left is None:
        raise DataError(
            f"{_CONTRADICT}, or what is assumed of hidden ones (least, most): they do not add up"
        )
    return left


def _minus(bound: IntArray, rest: IntArray) -> IntArray:
    return np.where(np.abs(bound) >= ENDLESS, bound, bound - rest)


def _settled(
    model: IntegerModel, targets: IntArray, endless: BoolArray
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the range of the rows wanted, part by part of the model; some have no end."""
    lower, upper = model.row_low[targets].copy(), model.row_high[targets].copy()
    proved = np.ones(len(targets), dtype=np.bool_)
    for part in _parts(model, targets):
        # What is fixed is counted apart; an end that there is not is not looked for.
        index, fixed, none = part.number, part.fixed, endless[part.number]
        high = np.where(none, -ENDLESS, _minus(upper[index], fixed))
        ends = FormEnds(
            part.model, part.linear, part.forms, (lower[index] - fixed, high), part.star,
            nodes=_NODES,
        )  # fmt: skip
        ends.settle()
        most, least = np.split(ends.goal, 2)
        above, below = np.split(ends.goal == ends.reached, 2)
        lower[index] = fixed - least
        upper[index] = np.where(none, upper[index], most + fixed)
        proved[index] = below & (above | none)
    return lower, upper, proved


class _RowPart(NamedTuple):
    """A part of a model that has no open variable in common with others.

    ``number`` says which of the rows wanted are ``forms`` of its ``variables``, beside what is
    ``fixed`` of them; ``star`` is a solution, None if the search for one gave up.
    """

    number: IntArray
    variables: IntArray
    model: IntegerModel
    forms: sparse.csr_array
    fixed: IntArray
    linear: HighsWarm
    star: IntArray | None


def _parts(model: IntegerModel, targets: IntArray) -> Iterator[_RowPart]:
    """Yield the parts of a model, without what is fixed; one without a solution is refused."""
    wide = np.flatnonzero(model.low < model.high)
    constant = model.rows @ np.where(model.low == model.high, model.low, 0)
    ends = (_minus(end, constant) for end in (model.row_low, model.row_high))
    left = sparse.csr_array(model.rows[:, wide])
    parts = components(IntegerModel(model.low[wide], model.high[wide], left, *ends))
    number = np.full(constant.size, -1)
    number[targets] = np.arange(len(targets))
    from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

    for k in range(parts.size):
        part, rows = parts.part([k]), parts.row[parts.first_row[k] : parts.first_row[k + 1]]
        nothing = np.zeros(part.low.size, np.int64)
        linear = HighsWarm(part, nothing, primal=True)
        status, star = linear.find(nothing, nodes=_NODES)
        if status == "none":
            raise DataError(f"{_CONTRADICT}: no counts fit them")
        wanted, variables = number[rows] >= 0, wide[parts.variable[parts.variables([k])]]
        index, forms = number[rows[wanted]], sparse.csr_array(part.rows[np.flatnonzero(wanted)])
        yield _RowPart(index, variables, part, forms, constant[rows[wanted]], linear, star)

"""Whole histograms of a group of places: one that has its counts, and the range of hidden ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bayesrisk._types import BoolArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.suppression._groups import Group, endless_variables, equal_rows
from bayesrisk.mechanisms.suppression._integer_range import ENDLESS, IntegerProgram

_SWEEPS = 20  # of bounds through the rows; more only save linear programs
_CONTRADICT = "tables: published cells contradict each other"


def some_histogram(group: Group) -> IntArray:
    """Return a histogram that has all counts of a group in which nothing is hidden.

    Raises
    ------
    DataError
        If there is none, or the search for one gives up.
    """
    size = group.matrix.shape[1]
    nothing, endless = np.zeros(size, dtype=np.int64), np.full(size, ENDLESS)
    system = _System(group.matrix, group.count, group.count, nothing, endless)
    _narrow(system)
    found = system.low.copy()
    for rows, variables in _parts(system):
        none = sparse.csr_array((0, len(variables)), dtype=np.int64)
        program = IntegerProgram(*_cut(system, rows, variables), forms=none)
        known = program.feasible()
        if known is False:
            raise DataError(f"{_CONTRADICT}: no records have them")
        if program.found is None:
            raise DataError(
                "tables: found no records that have the counts; release records instead"
            )
        found[variables] = program.found
    return found


@dataclass
class _System:
    """Rows and variables with bounds, ENDLESS where there is none."""

    matrix: sparse.csr_array
    row_low: IntArray
    row_high: IntArray
    low: IntArray
    high: IntArray


def group_ranges(
    group: Group, least: int, most: int | None
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the smallest and largest count of each hidden row, and whether both are proved.

    ``least`` and ``most`` bound every hidden count.  What is not proved is an outer bound.
    """
    counted = np.flatnonzero(~group.tie)
    matrix = group.matrix
    # Cells that the same variables make up have one count.
    same = equal_rows(matrix[counted], group.hidden[counted])
    kept, first = np.unique(same, return_index=True)
    hidden = group.hidden[counted][first]
    rows = np.concatenate([counted[first], np.flatnonzero(group.tie)])
    hidden = np.concatenate([hidden, np.zeros(int(group.tie.sum()), dtype=np.bool_)])
    high = np.where(hidden, ENDLESS if most is None else most, group.count[rows])
    system = _System(
        sparse.csr_array(matrix[rows]),
        np.where(hidden, least, group.count[rows]),
        high.astype(np.int64),
        np.zeros(matrix.shape[1], dtype=np.int64),
        np.full(matrix.shape[1], ENDLESS),
    )
    wrong = np.flatnonzero(group.count[counted] != group.count[counted[first]][same])
    if wrong.size:
        raise DataError(f"{_CONTRADICT}: equal cells differ")
    asked = np.flatnonzero(hidden)
    bounded = ~hidden if most is None else np.ones(len(rows), dtype=np.bool_)
    bounded[len(kept) :] = False
    free = endless_variables(sparse.csr_array(system.matrix[bounded]), system.matrix[len(kept) :])
    _narrow(system)
    lower, upper, proved = _settled(system, asked, (system.matrix[asked] @ free) > 0)
    number = np.full(len(kept), -1)
    number[hidden[: len(kept)]] = np.arange(len(asked))
    own = number[same[group.hidden[counted]]]
    return lower[own], upper[own], proved[own]


def _narrow(system: _System) -> None:
    """Pass bounds from rows to variables until they settle; refuse what contradicts itself."""
    entries = system.matrix.tocoo()
    row, column = (part.astype(np.int64) for part in entries.coords)
    weight = entries.data
    for _ in range(_SWEEPS):
        low, high = _reach(system, row, column, weight)
        size = system.matrix.shape[0]
        # What the other entries of the row leave, at least and at most.
        under = _rest(row, low, size), _rest(row, high, size)
        above = _minus(system.row_high[row], under[0])
        below = _minus(system.row_low[row], under[1])
        top, bottom = np.where(weight > 0, above, -below), np.where(weight > 0, below, -above)
        size_ = abs(weight)
        top = np.where(abs(top) < ENDLESS, top // size_, top)
        bottom = np.where(abs(bottom) < ENDLESS, -(-bottom // size_), bottom)
        new_low, new_high = system.low.copy(), system.high.copy()
        np.maximum.at(new_low, column, bottom)
        np.minimum.at(new_high, column, top)
        if np.array_equal(new_low, system.low) and np.array_equal(new_high, system.high):
            break
        system.low, system.high = new_low, new_high
        if np.any(new_low > new_high):
            break
    low, high = _reach(system, row, column, weight)
    size = system.matrix.shape[0]
    bottom, top = _total(row, low, size), _total(row, high, size)
    if (
        np.any(system.low > system.high)
        or np.any(bottom > system.row_high)
        or np.any(top < system.row_low)
    ):
        raise DataError(
            f"{_CONTRADICT}, or what is assumed of hidden ones (least, most): they do not add up"
        )
    system.row_low = np.maximum(system.row_low, bottom)
    system.row_high = np.minimum(system.row_high, top)


def _reach(
    system: _System, row: IntArray, column: IntArray, weight: IntArray
) -> tuple[IntArray, IntArray]:
    """Return how little and how much each entry adds to its row."""
    low, high = _times(system.low[column], weight), _times(system.high[column], weight)
    return np.minimum(low, high), np.maximum(low, high)


def _times(bound: IntArray, weight: IntArray) -> IntArray:
    endless = abs(bound) >= ENDLESS
    return np.where(endless, np.sign(weight) * bound, np.where(endless, 0, bound) * weight)


def _minus(bound: IntArray, rest: IntArray) -> IntArray:
    """Return a bound less the rest of its row, endless where either is."""
    endless, far = abs(bound) >= ENDLESS, abs(rest) >= ENDLESS
    plain = np.where(endless | far, 0, bound) - np.where(endless | far, 0, rest)
    return np.where(endless, bound, np.where(far, -rest, plain))


def _total(row: IntArray, values: IntArray, size: int) -> IntArray:
    """Return sums by row; endless bounds of one kind have one sign."""
    far = abs(values) >= ENDLESS
    found = np.zeros(size, dtype=np.int64)
    np.add.at(found, row, np.where(far, 0, values))
    found[row[far]] = values[far]
    return found


def _rest(row: IntArray, values: IntArray, size: int) -> IntArray:
    """Return for each entry the sum of the other entries of its row."""
    far = abs(values) >= ENDLESS
    finite = np.where(far, 0, values)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, row, finite)
    others = np.bincount(row, far, size).astype(np.int64)[row] - far
    endless = values[far][0] if far.any() else 0
    return np.where(others > 0, endless, total[row] - finite)


def _settled(
    system: _System, asked: IntArray, endless: BoolArray
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the range of the rows asked, part by part of the system; some have no end."""
    lower, upper = system.row_low[asked].copy(), system.row_high[asked].copy()
    proved = np.ones(len(asked), dtype=np.bool_)
    number = np.full(system.matrix.shape[0], -1)
    number[asked] = np.arange(len(asked))
    for rows, variables in _parts(system):
        own = number[rows]
        at = np.flatnonzero(own >= 0)
        program = IntegerProgram(
            *_cut(system, rows, variables), forms=_forms(system, rows[at], variables)
        )
        fixed = system.matrix[rows[at]] @ np.where(system.low == system.high, system.low, 0)
        if program.feasible() is False:
            raise DataError(f"{_CONTRADICT}: no counts fit them")
        program.reach(1, lower[own[at]] - fixed)
        top = upper[own[at]]
        program.reach(-1, np.where(endless[own[at]] | (top >= ENDLESS), ENDLESS, top - fixed))
        for form, target in enumerate(own[at].tolist()):
            shift = int(fixed[form])
            low, sure = program.settle(form, 1, int(lower[target]) - shift)
            if low >= ENDLESS:
                raise DataError(f"{_CONTRADICT}: no counts fit them")
            lower[target], proved[target] = low + shift, sure
            if not endless[target]:
                outer = int(upper[target])
                outer = outer if outer >= ENDLESS else outer - shift
                high, certain = program.settle(form, -1, outer)
                upper[target] = high if high >= ENDLESS else high + shift
                proved[target] &= certain
    return lower, upper, proved


def _parts(system: _System) -> Iterator[tuple[IntArray, IntArray]]:
    """Return rows and variables of each part that has no open variable in common with others."""
    wide = np.flatnonzero(system.low < system.high)
    matrix = sparse.coo_array(system.matrix[:, wide])
    row, column = matrix.coords
    size = matrix.shape[0] + len(wide)
    edges = np.ones(len(row), dtype=np.int8), (row, column + matrix.shape[0])
    label = connected_components(sparse.csr_array(edges, shape=(size, size)), directed=False)[1]
    of_row, of_variable = label[: matrix.shape[0]], label[matrix.shape[0] :]
    rows, variables = np.argsort(of_row, kind="stable"), np.argsort(of_variable, kind="stable")
    for part in np.unique(of_variable).tolist():
        ends = np.searchsorted(of_row[rows], [part, part + 1])
        own = rows[ends[0] : ends[1]]
        ends = np.searchsorted(of_variable[variables], [part, part + 1])
        yield own, wide[variables[ends[0] : ends[1]]]


def _cut(
    system: _System, rows: IntArray, variables: IntArray
) -> tuple[sparse.csr_array, tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
    """Return the rows of a part without what is fixed."""
    matrix = system.matrix[rows]
    fixed = matrix @ np.where(system.low == system.high, system.low, 0)
    low, high = system.row_low[rows], system.row_high[rows]
    return (
        sparse.csr_array(matrix[:, variables]),
        (_minus(low, fixed), _minus(high, fixed)),
        (system.low[variables], system.high[variables]),
    )


def _forms(system: _System, rows: IntArray, variables: IntArray) -> sparse.csr_array:
    forms = sparse.csr_array(system.matrix[rows][:, variables])
    forms.sort_indices()
    return forms

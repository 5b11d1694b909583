"""Intervals of whole numbers, narrowed by rows ``L <= A x <= H`` until none changes.

With ``l <= x <= h``, a row leaves each of its unknowns

    L - sum_{i != j} max(a_i l_i, a_i h_i) <= a_j x_j <= H - sum_{i != j} min(a_i l_i, a_i h_i).

The fixed point does not depend on the order.  The unknowns of a block, of a law or of a group of
places are looked at one after the other (:func:`narrow`); a search, which moves a few of them many
times, looks at the rows that these are in (:func:`settle`), and can take all of it back.
"""

from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step
from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel
from bayesrisk.constraints.rows import Columns, ProgramArrays, by_columns
from bayesrisk.tables.likelihoods import UNBOUNDED

EVERY_PASS = 2**62


class RowSums(NamedTuple):
    """The ends of every row, and the least and the most that its unknowns add up to."""

    low: IntArray
    high: IntArray
    least: IntArray
    most: IntArray


@lean_step
def limits(rows: RowSums, r: int, a: int, low: int, high: int) -> tuple[int, int]:
    """Return the smallest and the largest value that row ``r`` leaves an unknown of weight ``a``.

    ``low`` and ``high`` are its ends so far.
    """
    # What the others add is between least - min(a l, a h) and most - max(a l, a h).
    if a > 0:
        needed, room = rows.low[r] - rows.most[r] + a * high, rows.high[r] - rows.least[r] + a * low
    else:
        needed, room = rows.least[r] - a * high - rows.high[r], rows.most[r] - a * low - rows.low[r]
        a = -a
    if a == 1:
        return needed, room
    return -(-needed // a), room // a  # ceil of the lower end, floor of the upper one


@lean_step
def shift(rows: RowSums, r: int, a: int, up: int, down: int) -> None:
    """Add to a row's sums what the ends of an unknown of weight ``a`` gain, ``up`` and ``down``."""
    if a > 0:
        rows.least[r] += a * up
        rows.most[r] += a * down
    else:
        rows.least[r] += a * down
        rows.most[r] += a * up


# One unknown after the other: blocks, laws, groups of places.


@lean_step
def narrow(
    c: Columns, rows: RowSums, unknown: IntArray, low: IntArray, high: IntArray,
    size: int, passes: int,
) -> int:  # fmt: skip
    """Narrow the intervals of the first unknowns; return a row that contradicts, or -1.

    ``rows`` have the sums of the ends, which are kept up to date; ``passes`` limits how often all
    unknowns are looked at.
    """
    changed = True
    while changed and passes > 0:  # ends: each pass moves a whole-numbered end inwards
        changed = False
        passes -= 1
        for j in range(size):
            if low[j] == high[j]:
                continue
            new_low, new_high = low[j], high[j]
            tight = -1
            first, last = c.ptr[unknown[j]], c.ptr[unknown[j] + 1]
            for k in range(first, last):
                r = c.row[k]
                if rows.high[r] >= UNBOUNDED and rows.low[r] <= rows.least[r]:
                    continue  # it says nothing
                needed, room = limits(rows, r, c.coef[k], low[j], high[j])
                if needed > new_low:
                    new_low = needed
                    tight = r
                if room < new_high:
                    new_high = room
                    tight = r
            if tight < 0:
                continue
            if new_low > new_high:
                return tight
            for k in range(first, last):
                shift(rows, c.row[k], c.coef[k], new_low - low[j], new_high - high[j])
            low[j], high[j] = new_low, new_high
            changed = True
    return -1


@lean_step
def narrow_all(
    c: Columns, rows: RowSums, unknown: IntArray, low: IntArray, high: IntArray, passes: int
) -> int:
    """Narrow the intervals of all unknowns; return a row that contradicts, or -1."""
    rows.least[:] = 0
    rows.most[:] = 0
    for j in range(low.size):
        for k in range(c.ptr[j], c.ptr[j + 1]):
            shift(rows, c.row[k], c.coef[k], low[j], high[j])
    wrong = narrow(c, rows, unknown, low, high, low.size, passes)
    # L <= sum a x <= H cannot hold where sum a l > H or sum a h < L.
    for r in range(rows.low.size):
        if wrong < 0 and (rows.least[r] > rows.high[r] or rows.most[r] < rows.low[r]):
            wrong = r
    return wrong


@kernel
def narrow_dense(
    matrix: IntArray, row_low: IntArray, row_high: IntArray, low: IntArray, high: IntArray
) -> bool:
    """Raise ``low`` and lower ``high`` to what all rows allow; False where nothing is left."""
    n_rows, size = matrix.shape
    ptr, entries = np.zeros(size + 1, np.int64), np.count_nonzero(matrix)
    row, coef = np.empty(entries, np.int64), np.empty(entries, np.int64)
    n = 0
    for j in range(size):
        for r in range(n_rows):
            if matrix[r, j] != 0:
                row[n], coef[n] = r, matrix[r, j]
                n += 1
        ptr[j + 1] = n
    rows = RowSums(row_low, row_high, np.empty(n_rows, np.int64), np.empty(n_rows, np.int64))
    return narrow_all(Columns(ptr, row, coef), rows, np.arange(size), low, high, EVERY_PASS) < 0


@lean_kernel
def _narrow_columns(
    c: Columns, rows: RowSums, unknown: IntArray, low: IntArray, high: IntArray, passes: int
) -> int:
    return narrow_all(c, rows, unknown, low, high, passes)


def narrowed(model: IntegerModel, passes: int = EVERY_PASS) -> IntegerModel | None:
    """Return a model with the ends of variables, and of rows, that are left; None if nothing is.

    Upper ends may be ``ENDLESS``, of variables with a weight of 1 or -1 in each row with an end.
    """
    # What has no end has one here that no sum of counts reaches.  The others of its rows may lower
    # it, by no more than half of that.
    columns = by_columns(model.rows)
    weight = np.bincount(columns.row, np.abs(columns.coef)).max(initial=1)
    far = min(ENDLESS // 4, 2**61 // int(weight))
    low, high = model.low.copy(), np.where(model.high >= ENDLESS, far, model.high)
    zeros = np.zeros((2, model.row_low.size), np.int64)
    rows = RowSums(model.row_low, model.row_high, *zeros)
    if _narrow_columns(columns, rows, np.arange(low.size), low, high, passes) >= 0:
        return None
    for end in (high, rows.most):
        end[end > far // 2] = ENDLESS
    ends = np.maximum(model.row_low, rows.least), np.minimum(model.row_high, rows.most)
    return IntegerModel(low, high, model.rows, *ends)


# The rows that wait in a queue: components of programs, in which a search goes forth and back.


class SearchWork(NamedTuple):
    """Bounds of the variables, the ends of rows with their sums, and what a search takes back by.

    ``widest`` is for every row the largest ``a (h - l)`` of its variables when it began.  ``state``
    holds the length of the trail, the first and next place of the circular queue, whether changes
    are noted on the trail (only a search takes them back), and whether it is full.
    """

    low: IntArray
    high: IntArray
    rows: RowSums
    widest: IntArray
    trail: IntArray
    queue: IntArray
    waiting: IntArray
    state: IntArray
    stack: IntArray
    usable: IntArray
    total: IntArray


@lean_step
def set_ends(p: ProgramArrays, w: SearchWork, var: int, new_low: int, new_high: int) -> None:
    """Set the bounds of a variable, note the old ones on the trail, and queue its rows."""
    if w.state[3] == 1:
        length = w.state[0]
        w.trail[length, 0] = var
        w.trail[length, 1] = w.low[var]
        w.trail[length, 2] = w.high[var]
        w.state[0] = length + 1
    # sum a l and sum a h of each of its rows change by a (l' - l) and a (h' - h).
    for k in range(p.var_ptr[var], p.var_ptr[var + 1]):
        row = p.var_row[k]
        shift(w.rows, row, p.var_coef[k], new_low - w.low[var], new_high - w.high[var])
        if w.waiting[row] == 0:
            w.waiting[row] = 1
            w.queue[w.state[2]] = row
            w.state[2] = (w.state[2] + 1) % w.queue.size
    w.low[var] = new_low
    w.high[var] = new_high


@lean_step
def settle(p: ProgramArrays, w: SearchWork) -> int:
    """Propagate the queued rows to a fixed point; return the row that contradicts, or -1."""
    wrong = -1
    while w.state[1] != w.state[2]:
        row = w.queue[w.state[1]]
        w.state[1] = (w.state[1] + 1) % w.queue.size
        w.waiting[row] = 0
        if wrong >= 0:  # after a contradiction the queue is only emptied
            continue
        first, last = p.row_ptr[row], p.row_ptr[row + 1]
        # So it is when the trail is full: a row may change all of its variables, and a branch
        # every variable.
        if w.state[3] == 1 and w.state[0] + last - first + w.low.size > w.trail.shape[0]:
            w.state[4] = 1
            wrong = row
            continue
        # L <= sum a x <= H cannot hold where sum a l > H or sum a h < L.
        if w.rows.least[row] > w.rows.high[row] or w.rows.most[row] < w.rows.low[row]:
            wrong = row
            continue
        # Nothing follows where all of its variables have room enough: a (h - l) is at most both
        # H - sum a l and sum a h - L.
        room = min(w.rows.high[row] - w.rows.least[row], w.rows.most[row] - w.rows.low[row])
        if w.widest[row] <= room or w.rows.least[row] == w.rows.most[row]:
            continue
        for k in range(first, last):
            var = p.row_var[k]
            if w.low[var] == w.high[var]:
                continue
            needed, room = limits(w.rows, row, p.row_coef[k], w.low[var], w.high[var])
            new_low = max(w.low[var], needed)
            new_high = min(w.high[var], room)
            if new_low > new_high:
                wrong = row
                break
            if new_low > w.low[var] or new_high < w.high[var]:
                set_ends(p, w, var, new_low, new_high)
    return wrong


@lean_step
def undo(p: ProgramArrays, w: SearchWork, mark: int) -> None:
    """Take back what was noted on the trail after ``mark``."""
    while w.state[0] > mark:
        w.state[0] -= 1
        top = w.state[0]
        var, old_low, old_high = w.trail[top, 0], w.trail[top, 1], w.trail[top, 2]
        # The sums of its rows go back with the bounds.
        for k in range(p.var_ptr[var], p.var_ptr[var + 1]):
            row = p.var_row[k]
            shift(w.rows, row, p.var_coef[k], old_low - w.low[var], old_high - w.high[var])
        w.low[var] = old_low
        w.high[var] = old_high


@lean_step
def propagate(p: ProgramArrays, w: SearchWork, component: int) -> int:
    """Propagate the rows of a component to a fixed point; return one that contradicts, or -1."""
    w.state[:] = 0
    # Sums of bounds from nothing, and every row in the queue.
    for row in range(p.first_row[component], p.first_row[component + 1]):
        w.rows.least[row] = 0
        w.rows.most[row] = 0
        w.widest[row] = 0
        for k in range(p.row_ptr[row], p.row_ptr[row + 1]):
            least, most = p.row_coef[k] * w.low[p.row_var[k]], p.row_coef[k] * w.high[p.row_var[k]]
            w.rows.least[row] += least
            w.rows.most[row] += most
            w.widest[row] = max(w.widest[row], most - least)
        w.queue[w.state[2]] = row
        w.waiting[row] = 1
        w.state[2] += 1
    wrong = settle(p, w)
    w.state[0] = 0
    return wrong


@lean_kernel
def propagate_components(p: ProgramArrays, w: SearchWork, wrong: IntArray) -> None:
    """Propagate every component; ``wrong`` gets the row of each that contradicts, or -1."""
    for component in range(p.first_var.size - 1):
        wrong[component] = propagate(p, w, component)

"""Intervals of whole numbers, narrowed by rows ``L <= A x <= H`` until none changes.

With ``l <= x <= h``, a row leaves each of its unknowns

    L - sum_{i != j} max(a_i l_i, a_i h_i) <= a_j x_j <= H - sum_{i != j} min(a_i l_i, a_i h_i).

The fixed point does not depend on the order.  The unknowns of a block, of a law or of a group of
places are looked at one after the other; a search, which moves a few of them many times, looks at
the rows that these are in, by the same rule (:mod:`bayesrisk.constraints.propagation`).
"""

from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step
from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.model import ENDLESS, Columns, IntegerModel, by_columns
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

"""Kernel over all blocks of a file: live cells, and bounds of each, by interval propagation."""

from typing import NamedTuple

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk._types import IntArray

#: A count that was not published: its row says nothing.
HIDDEN = -(2**62)
#: More than any count; a cell that keeps this bound is in no published count.
UNBOUNDED = 2**52

FIXED, OPEN, INFEASIBLE, LOOSE = 0, 1, 2, 3


class System(NamedTuple):
    """The rows of every cell with its coefficient in each, and rows that cover the cells.

    Every cell lies in exactly one cover row.  ``ceiling`` bounds the cells that no published row of
    a block does, by larger places.
    """

    cell_ptr: IntArray
    cell_row: IntArray
    cell_coef: IntArray
    cover_ptr: IntArray
    cover_cell: IntArray
    ceiling: IntArray


class Blocks(NamedTuple):
    """The rows of each block that are not zero, block after block, and their counts."""

    ptr: IntArray
    row: IntArray
    value: IntArray


class Outcome(NamedTuple):
    """Of every block: its status, the row at fault (or -1), and where its cells begin."""

    status: IntArray
    culprit: IntArray
    ptr: IntArray


class Work(NamedTuple):
    """One block: the count of every row, sums of bounds, and its live cells with their bounds.

    ``least`` and ``most`` hold the sums of the bounds of every row and are kept up to date.
    """

    value: IntArray
    least: IntArray
    most: IntArray
    cell: IntArray
    low: IntArray
    high: IntArray


@kernel
def grown(array: IntArray, needed: int) -> IntArray:
    """Return ``array``, or a copy at least twice as long when ``needed`` entries do not fit."""
    if needed <= array.size:
        return array
    larger = np.empty(max(needed, 2 * array.size), np.int64)
    larger[: array.size] = array
    return larger


@kernel
def live_cells(s: System, w: Work, rows: IntArray) -> int:
    """List the cells that no row excludes, with their largest count, and return how many.

    ``rows`` are the rows of the block that are not zero: only the cells of the cover rows among
    them are looked at.
    """
    cell_ptr, cell_row, cell_coef = s.cell_ptr, s.cell_row, s.cell_coef
    cover_ptr, cover_cell, value = s.cover_ptr, s.cover_cell, w.value
    found = 0
    for row in rows:
        for at in range(cover_ptr[row], cover_ptr[row + 1]):
            candidate = cover_cell[at]
            most = UNBOUNDED
            for k in range(cell_ptr[candidate], cell_ptr[candidate + 1]):
                count = value[cell_row[k]]
                if count == HIDDEN:
                    continue
                if count < cell_coef[k]:
                    most = 0
                    break
                if count < most * cell_coef[k]:
                    most = count // cell_coef[k]
            if most == UNBOUNDED:
                most = s.ceiling[candidate]
            if most > 0:
                w.cell[found] = candidate
                w.high[found] = most
                found += 1
    return found


@kernel
def tighten(s: System, w: Work, n_cells: int) -> int:
    """Tighten the bounds of the first cells to a fixed point; return a row that contradicts, or -1.

    The fixed point does not depend on the order.
    """
    cell_ptr, cell_row, cell_coef = s.cell_ptr, s.cell_row, s.cell_coef
    value, least, most, cell, low, high = w
    changed = True
    while changed:  # ends: each pass moves a whole-numbered bound inwards
        changed = False
        for j in range(n_cells):
            if low[j] == high[j]:
                continue
            new_low, new_high = low[j], high[j]
            tight = -1
            for k in range(cell_ptr[cell[j]], cell_ptr[cell[j] + 1]):
                row = cell_row[k]
                count = value[row]
                if count == HIDDEN:
                    continue
                coef = cell_coef[k]
                # The row minus the most (least) that its other cells can hold.
                needed = count - most[row] + coef * high[j]
                room = count - least[row] + coef * low[j]
                if coef != 1:
                    needed = -(-needed // coef)
                    room = room // coef
                if needed > new_low:
                    new_low = needed
                    tight = row
                if room < new_high:
                    new_high = room
                    tight = row
            if tight < 0:
                continue
            if new_low > new_high:
                return tight
            for k in range(cell_ptr[cell[j]], cell_ptr[cell[j] + 1]):
                row = cell_row[k]
                least[row] += cell_coef[k] * (new_low - low[j])
                most[row] += cell_coef[k] * (new_high - high[j])
            low[j], high[j] = new_low, new_high
            changed = True
    return -1


@kernel
def solve_block(s: System, w: Work, rows: IntArray) -> tuple[int, int, int]:
    """Bound the cells of one block; return its status, the row at fault and how many cells."""
    value, least, most, cell, low, high = w
    for row in rows:
        if value[row] < 0 and value[row] != HIDDEN:
            return INFEASIBLE, row, 0
    found = live_cells(s, w, rows)
    status = FIXED
    for row in rows:
        least[row] = 0
        most[row] = 0
    for j in range(found):
        low[j] = 0
        if high[j] == UNBOUNDED:  # in no published row: it changes nothing for other cells
            status = LOOSE
            continue
        for k in range(s.cell_ptr[cell[j]], s.cell_ptr[cell[j] + 1]):
            most[s.cell_row[k]] += s.cell_coef[k] * high[j]
    # A row that its live cells cannot fill is the clearest contradiction: look for it first.
    for row in rows:
        if value[row] != HIDDEN and most[row] < value[row]:
            return INFEASIBLE, row, 0
    wrong = tighten(s, w, found)
    if wrong >= 0:
        return INFEASIBLE, wrong, 0
    for row in rows:
        if value[row] != HIDDEN and (least[row] > value[row] or most[row] < value[row]):
            return INFEASIBLE, row, 0
    for j in range(found):
        if status == FIXED and low[j] < high[j]:
            status = OPEN
    return status, -1, found


@kernel
def solve_blocks(
    s: System, blocks: Blocks, outcome: Outcome
) -> tuple[IntArray, IntArray, IntArray]:
    """Bound the cells of every block; return cells, lower and upper bounds, block after block.

    Cells without a bound are not returned, and make the block ``LOOSE``.  ``outcome`` is filled.
    """
    n_rows, n_cells = s.cover_ptr.size - 1, s.cell_ptr.size - 1
    value = np.zeros(n_rows, np.int64)
    cell = np.empty(n_cells, np.int64)
    low = np.empty(n_cells, np.int64)
    high = np.empty(n_cells, np.int64)
    w = Work(value, np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64), cell, low, high)
    start = max(blocks.row.size // 2, 16)
    cells = np.empty(start, np.int64)
    lows = np.empty(start, np.int64)
    highs = np.empty(start, np.int64)
    used = 0
    outcome.ptr[0] = 0
    for block in range(blocks.ptr.size - 1):
        first, last = blocks.ptr[block], blocks.ptr[block + 1]
        rows = blocks.row[first:last]
        for k in range(first, last):
            value[blocks.row[k]] = blocks.value[k]
        outcome.status[block], outcome.culprit[block], found = solve_block(s, w, rows)
        cells = grown(cells, used + found)
        lows = grown(lows, used + found)
        highs = grown(highs, used + found)
        for j in range(found):
            if 0 < high[j] < UNBOUNDED:
                cells[used], lows[used], highs[used] = cell[j], low[j], high[j]
                used += 1
        outcome.ptr[block + 1] = used
        for row in rows:
            value[row] = 0
    return cells[:used], lows[:used], highs[:used]

"""Records of blocks whose counts leave room, found by putting and taking them one by one.

A rounded count of 0 excludes no cell, so that a program would have thousands of them for a block of
a few people.  But such counts mostly allow many lists of records, and it is enough to find two: the
block is then feasible, and not unique.  The blocks of which none, or no other, is found in time are
left to bounds and programs.
"""

from typing import NamedTuple

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk._validation import IntArray
from bayesrisk.reconstruction.records.kernels import UNBOUNDED
from bayesrisk.reconstruction.records.problem import WHOLE, Problem

#: Changes after which a climb ends, beside four for each record; from one first cell to the next.
_STEPS, _STRIDE = 1000, 7919


class Climb(NamedTuple):
    """A block: rows of each cell and cells of each row, ends of rows, and where the climb is.

    There are ``records`` in each cell and ``total`` in each row; ``gain`` is the change of
    the weighted distance by one more record of each cell.
    """

    cell_ptr: IntArray
    cell_row: IntArray
    row_ptr: IntArray
    row_cell: IntArray
    low: IntArray
    high: IntArray
    records: IntArray
    total: IntArray
    weight: IntArray
    gain: IntArray


@kernel
def allowed(
    cell_ptr: IntArray, cell_row: IntArray, high: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return the cells in no row of at most 0, with pointers and rows of them, and of rows."""
    n_cells, n_rows = cell_ptr.size - 1, high.size
    cell, ptr = np.empty(n_cells, np.int64), np.zeros(n_cells + 1, np.int64)
    row, row_ptr = np.empty(cell_row.size, np.int64), np.zeros(n_rows + 1, np.int64)
    n = used = 0
    for j in range(n_cells):
        # x_j <= H_r for every row r of the cell: H_r = 0 leaves it empty.
        end = used
        for k in range(cell_ptr[j], cell_ptr[j + 1]):
            if high[cell_row[k]] == 0:
                end = -1
                break
            row[end] = cell_row[k]
            end += 1
        if end >= 0:
            cell[n], ptr[n + 1], used = j, end, end
            n += 1
    # The transpose, by counting: first the number of cells of each row, then their places.
    for k in range(used):
        row_ptr[row[k] + 1] += 1
    row_ptr[:] = np.cumsum(row_ptr)
    row_cell, at = np.empty(used, np.int64), row_ptr[:-1].copy()
    for j in range(n):
        for k in range(ptr[j], ptr[j + 1]):
            row_cell[at[row[k]]] = j
            at[row[k]] += 1
    return cell[:n].copy(), ptr[: n + 1].copy(), row[:used].copy(), row_ptr, row_cell


@kernel
def outside(w: Climb, row: int, more: int) -> int:
    """Return d = max(L - t, 0) + max(t - H, 0) of a row, t its total and some more."""
    total = w.total[row] + more
    distance: int = max(w.low[row] - total, 0) + max(total - w.high[row], 0)
    return distance


@kernel
def add_gain(w: Climb, row: int, sign: int) -> None:
    """Add the share of a row to the gains of its cells, or take it off."""
    # w_r (d_r(t + 1) - d_r(t)), which is -w_r, 0 or w_r.
    share = sign * w.weight[row] * (outside(w, row, 1) - outside(w, row, 0))
    if share != 0:
        for k in range(w.row_ptr[row], w.row_ptr[row + 1]):
            w.gain[w.row_cell[k]] += share


@kernel
def put(w: Climb, cell: int, by: int) -> int:
    """Put a record into a cell, or take one (-1); return the change of the total distance."""
    change = 0
    for k in range(w.cell_ptr[cell], w.cell_ptr[cell + 1]):
        row = w.cell_row[k]
        before, after = outside(w, row, 0), outside(w, row, by)
        change += after - before
        # One more record of the row changes its distance by -1, 0 or 1, before and after.
        if outside(w, row, 1) - before != outside(w, row, by + 1) - after:
            add_gain(w, row, -1)
            w.total[row] += by
            add_gain(w, row, 1)
        else:
            w.total[row] += by
    w.records[cell] += by
    return change


@kernel
def loss(w: Climb, cell: int) -> int:
    """Return the change of the weighted distance by one record less in a cell."""
    # sum_r w_r (d_r(t - 1) - d_r(t)) over the rows of the cell.
    change = 0
    for k in range(w.cell_ptr[cell], w.cell_ptr[cell + 1]):
        row = w.cell_row[k]
        change += w.weight[row] * (outside(w, row, -1) - outside(w, row, 0))
    return change


@kernel
def climb(w: Climb) -> bool:
    """Look for records that fit all rows; return whether ``w.records`` holds some.

    The distance is sum_r d_r, d_r how far A_r x lies outside of L_r to H_r.  Each time the record
    comes or goes that lowers sum_r w_r d_r most.  Where none does, the rows with d_r > 0 gain
    weight (the breakout method: Morris, 1993).
    """
    n_cells, n_rows = w.records.size, w.total.size
    # From x = 0 and weights of 1.
    w.weight[:] = 1
    left = 0
    for row in range(n_rows):
        left += outside(w, row, 0)
        add_gain(w, row, 1)
    first = 0
    for _ in range(_STEPS + 4 * w.low.max()):
        if left == 0:
            return True
        # The record that lowers sum_r w_r d_r most by coming.  Ties go to another cell each time:
        # cells alike share the records.
        first = (first + _STRIDE) % n_cells
        best, least, by = -1, 0, 1
        for cell in range(n_cells):
            least = min(least, w.gain[cell])
        if least < 0:
            best = first
            while w.gain[best] != least:
                best = best + 1 if best + 1 < n_cells else 0
        else:
            # Or by going.
            for cell in range(n_cells):
                if w.records[cell] > 0 and loss(w, cell) < least:
                    best, least, by = cell, loss(w, cell), -1
        if best >= 0:
            left += put(w, best, by)
            continue
        # No change lowers the sum: w_r grows by one where d_r > 0.
        for row in range(n_rows):
            if outside(w, row, 0) > 0:
                add_gain(w, row, -1)
                w.weight[row] += 1
                add_gain(w, row, 1)
    return False


@kernel
def has_others(w: Climb) -> bool:
    """Return whether one record more, one less or one of another cell fits, too."""
    # All d_r are 0: x + e_j fits where its gain is 0, x - e_j where its loss is.
    for cell in range(w.records.size):
        if w.gain[cell] == 0 or (w.records[cell] > 0 and loss(w, cell) == 0):
            return True
    for cell in range(w.records.size):
        if w.records[cell] > 0:
            # x - e_i + e_j: a record elsewhere must win back what this one costs.
            lost, found = loss(w, cell), False
            put(w, cell, -1)
            for other in range(w.records.size):
                found = found or (other != cell and w.gain[other] == -lost)
            put(w, cell, 1)
            if found:
                return True
    return False


def climbed_records(problem: Problem) -> tuple[list[IntArray], IntArray]:
    """Return block, cell and count of records that were found, and the blocks without."""
    system, ranges = problem.system, problem.rows[0].ranges
    rows = system.cell_ptr, system.cell_row
    n_rows = system.family.size
    every = allowed(*rows, np.ones(n_rows, np.int64))
    star, rest = [np.zeros((3, 0), np.int64)], []
    for first in range(0, problem.geoids.size, WHOLE):
        for at, (low, high) in enumerate(
            zip(*ranges.whole(slice(first, first + WHOLE)), strict=True)
        ):
            low, high = low[:n_rows], high[:n_rows]  # without the row of all cells, uncounted
            cell, ptr, row, row_ptr, row_cell = every if high.all() else allowed(*rows, high)
            sizes = cell.size, low.size, low.size, cell.size
            work = (np.zeros(size, np.int64) for size in sizes)
            w = Climb(ptr, row, row_ptr, row_cell, low, high, *work)
            # A cell that no row limits may hold any number: that is for the bounds to say.
            known = high < UNBOUNDED
            limited = (
                known.all() or np.diff(np.append(0, np.cumsum(known[w.cell_row]))[w.cell_ptr]).all()
            )
            if limited and climb(w) and has_others(w):
                here = np.flatnonzero(w.records)
                star.append(np.stack([np.full_like(here, first + at), cell[here], w.records[here]]))
            else:
                rest.append(first + at)
    return [*np.concatenate(star, axis=1)], np.array(rest, np.int64)

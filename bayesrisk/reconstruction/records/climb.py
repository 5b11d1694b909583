"""Records of blocks whose counts leave room, found by putting and taking them one by one.

A rounded count of 0 excludes no cell, so that a program would have thousands of them for a block of
a few people.  But such counts mostly allow many lists of records, and it is enough to find two: the
block is then feasible, and not unique.  Where counts are withheld and zeros are not, bounds of the
cells come first, and a climb stays within them.  The blocks of which no list, or no other, is found
in time are left to programs.
"""

from typing import NamedTuple

import numpy as np

from bayesrisk._numba import kernel, lean_step
from bayesrisk._validation import IntArray
from bayesrisk.reconstruction.records.kernels import OPEN, UNBOUNDED
from bayesrisk.reconstruction.records.problem import WHOLE, Problem
from bayesrisk.reconstruction.records.program import BlockBounds, block_bounds
from bayesrisk.reconstruction.records.system import CellSystem

#: Changes after which a climb ends, beside four for each record; from one first cell to the next.
_STEPS, _STRIDE = 1000, 7919
#: Steps in which a cell that changed stays (to twice as many); steps of a climb to other records.
_TABU, _SHORT = 8, 60


class Climb(NamedTuple):
    """A block: rows of each cell and cells of each row, ends of rows, and where the climb is.

    There are ``records`` in each cell, from ``least`` to ``most``, and ``total`` in each row;
    ``gain`` is the change of the weighted distance by one more record of each cell, and ``tabu``
    the step before which the cell does not change.
    """

    cell_ptr: IntArray
    cell_row: IntArray
    row_ptr: IntArray
    row_cell: IntArray
    low: IntArray
    high: IntArray
    least: IntArray
    most: IntArray
    records: IntArray
    total: IntArray
    weight: IntArray
    gain: IntArray
    tabu: IntArray


@kernel
def linked(
    cell_ptr: IntArray, cell_row: IntArray, cell: IntArray, n_rows: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the rows of some cells, after pointers to them, and the cells of every row."""
    n = cell.size
    ptr, row_ptr = np.zeros(n + 1, np.int64), np.zeros(n_rows + 1, np.int64)
    for j in range(n):
        ptr[j + 1] = ptr[j] + cell_ptr[cell[j] + 1] - cell_ptr[cell[j]]
    row = np.empty(ptr[n], np.int64)
    for j in range(n):
        for k in range(ptr[j], ptr[j + 1]):
            row[k] = cell_row[cell_ptr[cell[j]] + k - ptr[j]]
            row_ptr[row[k] + 1] += 1
    # The transpose, by counting: first the number of cells of each row, then their places.
    row_ptr[:] = np.cumsum(row_ptr)
    row_cell, at = np.empty(ptr[n], np.int64), row_ptr[:-1].copy()
    for j in range(n):
        for k in range(ptr[j], ptr[j + 1]):
            row_cell[at[row[k]]] = j
            at[row[k]] += 1
    return ptr, row, row_ptr, row_cell


@lean_step
def outside(w: Climb, row: int, more: int) -> int:
    """Return d = max(L - t, 0) + max(t - H, 0) of a row, t its total and some more."""
    total = w.total[row] + more
    distance: int = max(w.low[row] - total, 0) + max(total - w.high[row], 0)
    return distance


@lean_step
def add_gain(w: Climb, row: int, sign: int) -> None:
    """Add the share of a row to the gains of its cells, or take it off."""
    # w_r (d_r(t + 1) - d_r(t)), which is -w_r, 0 or w_r.
    share = sign * w.weight[row] * (outside(w, row, 1) - outside(w, row, 0))
    if share != 0:
        for k in range(w.row_ptr[row], w.row_ptr[row + 1]):
            w.gain[w.row_cell[k]] += share


@lean_step
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


@lean_step
def loss(w: Climb, cell: int) -> int:
    """Return the change of the weighted distance by one record less in a cell."""
    # sum_r w_r (d_r(t - 1) - d_r(t)) over the rows of the cell.
    change = 0
    for k in range(w.cell_ptr[cell], w.cell_ptr[cell + 1]):
        row = w.cell_row[k]
        change += w.weight[row] * (outside(w, row, -1) - outside(w, row, 0))
    return change


@lean_step
def start_over(w: Climb) -> int:
    """Set all weights to 1 and the gains to theirs; return the total distance."""
    w.weight[:] = 1
    w.gain[:] = 0
    w.tabu[:] = 0
    left = 0
    for row in range(w.total.size):
        left += outside(w, row, 0)
        add_gain(w, row, 1)
    return left


@lean_step
def coming(w: Climb, step: int, first: int) -> int:
    """Return a cell of least gain of those that may hold more, from a first one on, or -1."""
    n_cells, least, best = w.gain.size, UNBOUNDED, -1
    for cell in range(n_cells):
        least = min(least, w.gain[cell])
    at = first
    for _ in range(n_cells):
        if w.gain[at] == least and w.tabu[at] <= step and w.records[at] < w.most[at]:
            return at
        at = at + 1 if at + 1 < n_cells else 0
    # None of the least gain of all may.
    least = UNBOUNDED
    for cell in range(n_cells):
        if w.gain[cell] < least and w.tabu[cell] <= step and w.records[cell] < w.most[cell]:
            best, least = cell, w.gain[cell]
    return best


@lean_step
def climb(w: Climb, steps: int) -> bool:
    """Look for records that fit all rows; return whether ``w.records`` holds some.

    The distance is sum_r d_r, d_r how far A_r x lies outside of L_r to H_r.  Each time the record
    comes or goes that lowers sum_r w_r d_r most, or raises it least; after a first rise none of a
    cell that just changed (tabu search).  Where it does not fall, the rows with d_r > 0 gain weight
    (the breakout method: Morris, 1993).
    """
    n_cells, n_rows = w.records.size, w.total.size
    left, first, stuck = start_over(w), 0, False
    for step in range(steps):
        if left == 0:
            return True
        # Ties go to another cell each time: cells alike share the records.
        first = (first + _STRIDE) % n_cells
        best, by = coming(w, step, first), 1
        least = w.gain[best] if best >= 0 else UNBOUNDED
        if least >= 0:
            for cell in range(n_cells):
                if w.records[cell] > w.least[cell] and w.tabu[cell] <= step:
                    change = loss(w, cell)
                    if change < least:
                        best, least, by = cell, change, -1
        stuck = stuck or least >= 0
        if best >= 0:
            left += put(w, best, by)
            if stuck:
                w.tabu[best] = step + _TABU + step % _TABU
        if least >= 0:
            # No change lowers the sum: w_r grows by one where d_r > 0.
            for row in range(n_rows):
                if outside(w, row, 0) > 0:
                    add_gain(w, row, -1)
                    w.weight[row] += 1
                    add_gain(w, row, 1)
    return left == 0


@lean_step
def has_others(w: Climb) -> bool:
    """Return whether one record more, one less or one of another cell fits, too."""
    # All d_r are 0: x + e_j fits where its gain is 0, x - e_j where its loss is.
    for cell in range(w.records.size):
        if w.gain[cell] == 0 and w.records[cell] < w.most[cell]:
            return True
        if w.records[cell] > w.least[cell] and loss(w, cell) == 0:
            return True
    for cell in range(w.records.size):
        if w.records[cell] > w.least[cell]:
            # x - e_i + e_j: a record elsewhere must win back what this one costs.
            lost, found = loss(w, cell), False
            put(w, cell, -1)
            for other in range(w.records.size):
                room = other != cell and w.records[other] < w.most[other]
                found = found or (room and w.gain[other] == -lost)
            put(w, cell, 1)
            if found:
                return True
    return False


@lean_step
def strays(w: Climb, star: IntArray) -> bool:
    """Return whether a short climb from one record less of some cell ends at other records."""
    for cell in range(star.size):
        if star[cell] > w.least[cell]:
            most = w.most[cell]
            w.most[cell] = star[cell] - 1
            put(w, cell, -1)
            if climb(w, _SHORT):
                return True
            w.most[cell] = most
            for at in range(star.size):
                while w.records[at] != star[at]:
                    put(w, at, 1 if star[at] > w.records[at] else -1)
    return False


@kernel
def climb_block(
    links: tuple[IntArray, IntArray, IntArray, IntArray],
    low: IntArray, high: IntArray, least: IntArray, most: IntArray,
) -> tuple[bool, IntArray]:  # fmt: skip
    """Return whether other records fit beside those that are found, and how many of each cell."""
    ptr, row, row_ptr, row_cell = links
    total, weight = np.zeros(low.size, np.int64), np.empty(low.size, np.int64)
    for j in np.flatnonzero(least):
        for k in range(ptr[j], ptr[j + 1]):
            total[row[k]] += least[j]
    gain, tabu = np.empty(least.size, np.int64), np.empty(least.size, np.int64)
    w = Climb(
        ptr, row, row_ptr, row_cell, low, high, least, most.copy(), least.copy(), total, weight,
        gain, tabu,
    )  # fmt: skip
    if not climb(w, _STEPS + 4 * low.max()):
        return False, w.records
    return has_others(w) or strays(w, w.records.copy()), w.records


def climbed_records(problem: Problem) -> tuple[list[IntArray], IntArray]:
    """Return block, cell and count of records that were found, and the blocks without."""
    system, ranges = problem.system, problem.rows[0].ranges
    rows, n_rows = (system.cell_ptr, system.cell_row), system.family.size
    every: IntArray = np.arange(problem.space.size)
    bounds: BlockBounds | None = None
    nobody, endless = np.zeros_like(every), np.full_like(every, UNBOUNDED)
    if not ranges.zero[:n_rows].any():
        # Counts that are not listed are 0: bounds leave few cells.
        bounds = block_bounds(problem)
        ptr = np.searchsorted(bounds.block, np.arange(problem.geoids.size + 1))
    else:
        all_links = linked(*rows, every, n_rows)
    star, rest = [np.zeros((3, 0), np.int64)], []
    for first in range(0, problem.geoids.size, WHOLE):
        # Without the row of all cells, uncounted.
        ends = (side[:, :n_rows].copy() for side in ranges.whole(slice(first, first + WHOLE)))
        for at, (low, high) in enumerate(zip(*ends, strict=True), first):
            found = False
            if bounds is None:
                cell = every if high.all() else every[_largest(system, high) > 0]
                # A cell that no row limits may hold any number: that is for the bounds to say.
                limited = bool(high.max() < UNBOUNDED or _largest(system, high).max() < UNBOUNDED)
                least, most = nobody[: cell.size], endless[: cell.size]
            else:
                limited, part = bool(bounds.status[at] == OPEN), slice(ptr[at], ptr[at + 1])
                cell, least, most = bounds.cell[part], bounds.low[part], bounds.high[part]
            if limited and cell.size:
                links = all_links if cell is every else linked(*rows, cell, n_rows)
                found, count = climb_block(links, low, high, least, most)
            if found:
                here = np.flatnonzero(count)
                star.append(np.stack([np.full_like(here, at), cell[here], count[here]]))
            else:
                rest.append(at)
    return [*np.concatenate(star, axis=1)], np.array(rest, np.int64)


def _largest(system: CellSystem, high: IntArray) -> IntArray:
    """Return the largest number of each cell by each of its rows alone."""
    sizes = np.diff(system.cell_ptr)
    found: IntArray = np.full(sizes.size, UNBOUNDED)
    found[sizes > 0] = np.minimum.reduceat(high[system.cell_row], system.cell_ptr[:-1][sizes > 0])
    return found

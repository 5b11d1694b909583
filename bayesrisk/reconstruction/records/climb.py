"""Records of blocks whose counts leave room, found by local search (adding and removing records).

A rounded count of 0 excludes no cell, so a program would have thousands of cells for a block of a
few people. But such counts usually allow many lists of records, and two suffice: the block is then
feasible, and not unique. If counts are withheld and zeros are not, bounds of the cells come first,
and a climb stays within them. Blocks for which no list, or no second one, is found in time are left
to programs.
"""

from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_step
from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.model import largest_alone
from bayesrisk.reconstruction.records.kernels import OPEN
from bayesrisk.reconstruction.records.problem import WHOLE, Problem
from bayesrisk.tables.likelihoods import UNBOUNDED

#: Changes after which a climb ends, beside four for each record; from one first cell to the next.
_STEPS, _STRIDE = 1000, 7919
#: Records of the largest count that a climb takes one by one; of more it takes first so many times
#: as many at once, and then fewer and fewer.
_MOST_CLIMBED, _COARSER = 20_000, 8
#: Steps in which a cell that changed stays (to twice as many); steps of a climb to other records.
_TABU, _SHORT = 8, 60


class Climb(NamedTuple):
    """State of a local search in a block: incidence, bounds, records, totals and gains.

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
def incidence(
    cell_ptr: IntArray, cell_row: IntArray, cell: IntArray, n_rows: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the rows of some cells, and the cells of every row, in compressed form."""
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
    row_cell, position = np.empty(ptr[n], np.int64), row_ptr[:-1].copy()
    for j in range(n):
        for k in range(ptr[j], ptr[j + 1]):
            row_cell[position[row[k]]] = j
            position[row[k]] += 1
    return ptr, row, row_ptr, row_cell


@lean_step
def violation(w: Climb, row: int, more: int) -> int:
    """Return a row's violation max(L - t, 0) + max(t - H, 0), for its total t plus ``more``."""
    total = w.total[row] + more
    distance: int = max(w.low[row] - total, 0) + max(total - w.high[row], 0)
    return distance


@lean_step
def add_gain(w: Climb, row: int, sign: int) -> None:
    """Add a row's share to the gains of its cells (sign 1), or subtract it (-1)."""
    # w_r (d_r(t + 1) - d_r(t)), which is -w_r, 0 or w_r.
    share = sign * w.weight[row] * (violation(w, row, 1) - violation(w, row, 0))
    if share != 0:
        for k in range(w.row_ptr[row], w.row_ptr[row + 1]):
            w.gain[w.row_cell[k]] += share


@lean_step
def change_cell(w: Climb, cell: int, amount: int) -> int:
    """Add a record to a cell or remove one (-1); return the change of the total violation."""
    change = 0
    for k in range(w.cell_ptr[cell], w.cell_ptr[cell + 1]):
        row = w.cell_row[k]
        before, after = violation(w, row, 0), violation(w, row, amount)
        change += after - before
        # One more record of the row changes its distance by -1, 0 or 1, before and after.
        if violation(w, row, 1) - before != violation(w, row, amount + 1) - after:
            add_gain(w, row, -1)
            w.total[row] += amount
            add_gain(w, row, 1)
        else:
            w.total[row] += amount
    w.records[cell] += amount
    return change


@lean_step
def loss(w: Climb, cell: int) -> int:
    """Return the change of the weighted violation if one record is removed from a cell."""
    # sum_r w_r (d_r(t - 1) - d_r(t)) over the rows of the cell.
    change = 0
    for k in range(w.cell_ptr[cell], w.cell_ptr[cell + 1]):
        row = w.cell_row[k]
        change += w.weight[row] * (violation(w, row, -1) - violation(w, row, 0))
    return change


@lean_step
def start_over(w: Climb) -> int:
    """Reset all weights to 1, with the gains that follow; return the total violation."""
    w.weight[:] = 1
    w.gain[:] = 0
    w.tabu[:] = 0
    left = 0
    for row in range(w.total.size):
        left += violation(w, row, 0)
        add_gain(w, row, 1)
    return left


@lean_step
def least_gain_cell(w: Climb, step: int, first: int) -> int:
    """Return a cell of least gain that may take a record, searched from ``first``, or -1."""
    n_cells, least, best = w.gain.size, UNBOUNDED, -1
    for cell in range(n_cells):
        least = min(least, w.gain[cell])
    candidate = first
    for _ in range(n_cells):
        if (
            w.gain[candidate] == least
            and w.tabu[candidate] <= step
            and w.records[candidate] < w.most[candidate]
        ):
            return candidate
        candidate = candidate + 1 if candidate + 1 < n_cells else 0
    # None of the least gain of all may.
    least = UNBOUNDED
    for cell in range(n_cells):
        if w.gain[cell] < least and w.tabu[cell] <= step and w.records[cell] < w.most[cell]:
            best, least = cell, w.gain[cell]
    return best


@lean_step
def climb(w: Climb, steps: int) -> bool:
    """Search for records that satisfy all rows; return whether ``w.records`` satisfies them.

    The distance is sum_r d_r, where d_r is how far A_r x lies outside of L_r to H_r. Each step adds
    or removes the record that lowers sum_r w_r d_r most, or raises it least. After a first rise,
    cells that just changed are excluded (tabu search). If it does not fall, the rows with d_r > 0
    gain weight (the breakout method: Morris, 1993).
    """
    n_cells, n_rows = w.records.size, w.total.size
    left, first, stuck = start_over(w), 0, False
    for step in range(steps):
        if left == 0:
            return True
        # Ties go to another cell each time: cells alike share the records.
        first = (first + _STRIDE) % n_cells
        best, amount = least_gain_cell(w, step, first), 1
        least = w.gain[best] if best >= 0 else UNBOUNDED
        if least >= 0:
            for cell in range(n_cells):
                if w.records[cell] > w.least[cell] and w.tabu[cell] <= step:
                    change = loss(w, cell)
                    if change < least:
                        best, least, amount = cell, change, -1
        stuck = stuck or least >= 0
        if best >= 0:
            left += change_cell(w, best, amount)
            if stuck:
                w.tabu[best] = step + _TABU + step % _TABU
        if least >= 0:
            # No change lowers the sum: w_r grows by one where d_r > 0.
            for row in range(n_rows):
                if violation(w, row, 0) > 0:
                    add_gain(w, row, -1)
                    w.weight[row] += 1
                    add_gain(w, row, 1)
    return left == 0


@lean_step
def rescale(w: Climb, ends: tuple[IntArray, IntArray, IntArray, IntArray], scale: int) -> None:
    """Set the bounds of rows and cells for records counted in units of ``scale``, and reset totals.

    L // s, and H / s rounded up, so that what fits x fits x / s.
    """
    low, high, least, most = ends
    for row in range(low.size):
        w.low[row], w.total[row] = low[row] // scale, 0
        w.high[row] = high[row] if high[row] >= UNBOUNDED else -(-high[row] // scale)
    for cell in range(least.size):
        w.least[cell] = least[cell] // scale
        w.most[cell] = most[cell] if most[cell] >= UNBOUNDED else -(-most[cell] // scale)
        w.records[cell] = min(max(w.records[cell], w.least[cell]), w.most[cell])
        for k in range(w.cell_ptr[cell], w.cell_ptr[cell + 1]):
            w.total[w.cell_row[k]] += w.records[cell]


@lean_step
def has_others(w: Climb) -> bool:
    """Return whether adding, removing or exchanging one record gives another solution."""
    # All d_r are 0: x + e_j fits where its gain is 0, x - e_j where its loss is.
    for cell in range(w.records.size):
        if w.gain[cell] == 0 and w.records[cell] < w.most[cell]:
            return True
        if w.records[cell] > w.least[cell] and loss(w, cell) == 0:
            return True
    for cell in range(w.records.size):
        if w.records[cell] > w.least[cell]:
            # x - e_i + e_j: a record elsewhere must win back what this one costs.
            lost, exists = loss(w, cell), False
            change_cell(w, cell, -1)
            for other in range(w.records.size):
                room = other != cell and w.records[other] < w.most[other]
                exists = exists or (room and w.gain[other] == -lost)
            change_cell(w, cell, 1)
            if exists:
                return True
    return False


@lean_step
def distant_records(w: Climb, star: IntArray) -> bool:
    """Return whether a short search, begun with one record less, finds another solution."""
    for cell in range(star.size):
        if star[cell] > w.least[cell]:
            most = w.most[cell]
            w.most[cell] = star[cell] - 1
            change_cell(w, cell, -1)
            if climb(w, _SHORT):
                return True
            w.most[cell] = most
            for index in range(star.size):
                while w.records[index] != star[index]:
                    change_cell(w, index, 1 if star[index] > w.records[index] else -1)
    return False


@kernel
def climb_block(
    links: tuple[IntArray, IntArray, IntArray, IntArray],
    low: IntArray, high: IntArray, least: IntArray, most: IntArray,
) -> tuple[bool, IntArray]:  # fmt: skip
    """Return whether there are other solutions, and the number of records found in each cell."""
    ptr, row, row_ptr, row_cell = links
    total, weight = np.empty(low.size, np.int64), np.empty(low.size, np.int64)
    gain, tabu = np.empty(least.size, np.int64), np.empty(least.size, np.int64)
    w = Climb(
        ptr, row, row_ptr, row_cell, low.copy(), high.copy(), least.copy(), most.copy(),
        np.zeros(least.size, np.int64), total, weight, gain, tabu,
    )  # fmt: skip
    scale = 1
    while low.max() // scale > _MOST_CLIMBED:
        scale *= _COARSER
    rescale(w, (low, high, least, most), scale)
    success = climb(w, _STEPS + 4 * w.low.max())
    while scale > 1:  # what fits in so many, each for some records, is near to what fits
        scale //= _COARSER
        for cell in range(least.size):
            w.records[cell] *= _COARSER
        rescale(w, (low, high, least, most), scale)
        success = climb(w, _STEPS + 4 * _COARSER * low.size)
    if not success:
        return False, w.records
    return has_others(w) or distant_records(w, w.records.copy()), w.records


def climbed_records(problem: Problem) -> tuple[list[IntArray], IntArray]:
    """Return block, cell and count of the records found, and the blocks without a solution."""
    system, ranges = problem.system, problem.rows[0].ranges
    rows, n_rows = system.columns[:2], system.family.size
    every: IntArray = np.arange(problem.space.size)
    nobody, endless = np.zeros_like(every), np.full_like(every, UNBOUNDED)
    # Where counts that are not listed are 0, bounds leave few cells.
    bounds = None if ranges.zero[:n_rows].any() else problem.bounds
    if bounds is not None:
        ptr = np.searchsorted(bounds.block, np.arange(problem.geoids.size + 1))
    else:
        all_links = incidence(*rows, every, n_rows)
    star, rest = [np.zeros((3, 0), np.int64)], []
    for first in range(0, problem.geoids.size, WHOLE):
        # Without the row of all cells, uncounted.
        ends = (side[:, :n_rows].copy() for side in ranges.whole(slice(first, first + WHOLE)))
        for block, (low, high) in enumerate(zip(*ends, strict=True), first):
            success = False
            if bounds is None:
                alone = largest_alone(system.columns, low, high)[0]
                cell = every if high.all() else every[alone > 0]
                # A cell that no row limits may hold any number: that is for the bounds to say.
                limited = bool(high.max() < UNBOUNDED or alone.max() < UNBOUNDED)
                least, most = nobody[: cell.size], endless[: cell.size]
            else:
                limited, part = (
                    bool(bounds.status[block] == OPEN),
                    slice(ptr[block], ptr[block + 1]),
                )
                cell, least, most = bounds.cell[part], bounds.low[part], bounds.high[part]
            if limited and cell.size:
                links = all_links if cell is every else incidence(*rows, cell, n_rows)
                success, count = climb_block(links, low, high, least, most)
            if success:
                occupied = np.flatnonzero(count)
                star.append(
                    np.stack([np.full_like(occupied, block), cell[occupied], count[occupied]])
                )
            else:
                rest.append(block)
    return [*np.concatenate(star, axis=1)], np.array(rest, np.int64)

"""Kernels that bound the cells of blocks by each block's rows."""

from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_step
from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.model import Columns
from bayesrisk.constraints.propagation import EVERY_PASS, RowSums, narrow
from bayesrisk.tables.likelihoods import UNBOUNDED

#: A count that was not published: its row says nothing.
HIDDEN = -(2**62)

#: Status of a block: one solution is left, several may be, none fits; some cell is in no row with
#: a count; some cell may hold any number, though its rows ask for somebody.
FIXED, OPEN, INFEASIBLE, UNCOUNTED, UNLIMITED = 0, 1, 2, 3, 4


class BlockRows(NamedTuple):
    """The rows of every cell with coefficients, and a set of rows that covers every cell once.

    Every cell lies in exactly one cover row. ``ceiling`` bounds, by larger places, the cells that
    no published row of a block bounds. ``need`` is the largest number that rows of these places may
    require of such a cell.
    """

    columns: Columns
    cover_ptr: IntArray
    cover_cell: IntArray
    ceiling: IntArray
    need: IntArray


class BlockCounts(NamedTuple):
    """Each block's non-zero rows, concatenated, with the bounds of their counts."""

    ptr: IntArray
    row: IntArray
    low: IntArray
    high: IntArray


class BlockOutcome(NamedTuple):
    """Each block's status, the violated row (or -1), and where its cells begin."""

    status: IntArray
    culprit: IntArray
    ptr: IntArray


@lean_step
def solve_block(
    s: BlockRows, ends: RowSums, rows: IntArray, cell: IntArray, low: IntArray, high: IntArray
) -> tuple[int, int, int]:
    """Bound the cells of one block; return its status, the violated row and the number of cells.

    ``rows`` are the nonzero rows of the block. Only the cells of the cover rows among them are
    examined, and ``cell`` lists those that no row excludes. Cells without a bound in larger places
    make the block ``UNCOUNTED``, or ``UNLIMITED`` if a row requires them.
    """
    cell_ptr, cell_row, cell_coef = s.columns
    row_low, row_high, least, most = ends
    # No records add up to a negative count, nor to a number that is never published.
    for row in rows:
        if row_high[row] < 0 or row_low[row] > row_high[row]:
            return INFEASIBLE, row, 0
    # Bounds to begin with: 0 <= x <= min over its rows of floor(H / a).
    status, n_cells = FIXED, 0
    for row in rows:
        for entry in range(s.cover_ptr[row], s.cover_ptr[row + 1]):
            candidate = s.cover_cell[entry]
            top = UNBOUNDED
            for k in range(cell_ptr[candidate], cell_ptr[candidate + 1]):
                # A cell x of weight a in a row of at most H has a x <= H: x <= floor(H / a).
                count = row_high[cell_row[k]]
                if count == UNBOUNDED:
                    continue
                if count < cell_coef[k]:
                    top = 0
                    break
                if count < top * cell_coef[k]:
                    top = count // cell_coef[k]
            if top == UNBOUNDED:
                top = s.ceiling[candidate]
            if top == UNBOUNDED:
                # All rows of the cell are open above.  More than max L / a of it serve no row: with
                # that bound there is a solution where there was one, and every sum of other cells
                # keeps its values.
                top = s.need[candidate]
                for k in range(cell_ptr[candidate], cell_ptr[candidate + 1]):
                    top = max(top, -(-row_low[cell_row[k]] // cell_coef[k]))
                if top > 0:
                    status = UNLIMITED if status == FIXED else status
                else:  # nobody asks for it: it changes nothing for other cells
                    top = UNBOUNDED
                    status = UNCOUNTED
            if top > 0:
                cell[n_cells], low[n_cells], high[n_cells] = candidate, 0, top
                n_cells += 1
    for row in rows:
        least[row] = 0
        most[row] = 0
    for j in range(n_cells):
        if high[j] == UNBOUNDED:
            continue
        for k in range(cell_ptr[cell[j]], cell_ptr[cell[j] + 1]):
            most[cell_row[k]] += cell_coef[k] * high[j]
    # A row that its live cells cannot fill is the clearest contradiction: look for it first.
    for row in rows:
        if most[row] < row_low[row]:
            return INFEASIBLE, row, 0
    wrong = narrow(s.columns, ends, cell, low, high, n_cells, EVERY_PASS)
    if wrong >= 0:
        return INFEASIBLE, wrong, 0
    for row in rows:
        if least[row] > row_high[row] or most[row] < row_low[row]:
            return INFEASIBLE, row, 0
    # One solution is left where every l = h.
    for j in range(n_cells):
        if status == FIXED and low[j] < high[j]:
            status = OPEN
    return status, -1, n_cells


@kernel
def solve_blocks(s: BlockRows, blocks: BlockCounts, outcome: BlockOutcome) -> IntArray:
    """Bound the cells of every block; return cells with lower and upper bounds, (3, cells).

    Cells without a bound are not returned; their block is ``UNCOUNTED``.  ``outcome`` is filled.
    """
    n_rows, n_cells = s.cover_ptr.size - 1, s.columns.ptr.size - 1
    row_low, row_high = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    least, most = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    cell = np.empty(n_cells, np.int64)
    low, high = np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)
    ends = RowSums(row_low, row_high, least, most)
    table = np.empty((3, max(blocks.row.size // 2, 16)), np.int64)
    used = 0
    outcome.ptr[0] = 0
    for block in range(blocks.ptr.size - 1):
        first, last = blocks.ptr[block], blocks.ptr[block + 1]
        rows = blocks.row[first:last]
        for k in range(first, last):
            row_low[blocks.row[k]] = blocks.low[k]
            row_high[blocks.row[k]] = blocks.high[k]
        status, culprit, count = solve_block(s, ends, rows, cell, low, high)
        outcome.status[block], outcome.culprit[block] = status, culprit
        # Room for the cells of this block: twice as much as before, at least.
        if used + count > table.shape[1]:
            larger = np.empty((3, max(used + count, 2 * table.shape[1])), np.int64)
            for j in range(used):
                for k in range(3):
                    larger[k, j] = table[k, j]
            table = larger
        for j in range(count):
            if 0 < high[j] < UNBOUNDED:
                table[0, used], table[1, used], table[2, used] = cell[j], low[j], high[j]
                used += 1
        outcome.ptr[block + 1] = used
        for row in rows:
            row_low[row] = 0
            row_high[row] = 0
    return table[:, :used]

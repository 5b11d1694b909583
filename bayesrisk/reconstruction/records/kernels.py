"""Kernels of propagation and search: bounds of the cells of blocks, and components of programs."""

from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step
from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.narrow import (
    EVERY_PASS,
    RowSums,
    SearchWork,
    narrow,
    propagate,
    set_ends,
    settle,
    undo,
)
from bayesrisk.constraints.rows import Columns, ProgramArrays
from bayesrisk.tables.likelihoods import UNBOUNDED

#: A count that was not published: its row says nothing.
HIDDEN = -(2**62)

#: Status of a block: one solution is left, several may be, none fits; some cell is in no row with
#: a count; some cell may hold any number, though its rows ask for somebody.
FIXED, OPEN, INFEASIBLE, UNCOUNTED, UNLIMITED = 0, 1, 2, 3, 4


class BlockRows(NamedTuple):
    """The rows of every cell with its coefficient in each, and rows that cover the cells.

    Every cell lies in exactly one cover row.  ``ceiling`` bounds the cells that no published row of
    a block does, by larger places; ``need`` is as many as rows of these may ask of such a cell.
    """

    columns: Columns
    cover_ptr: IntArray
    cover_cell: IntArray
    ceiling: IntArray
    need: IntArray


class BlockCounts(NamedTuple):
    """The rows of each block that are not zero, block after block, and the ends of their counts."""

    ptr: IntArray
    row: IntArray
    low: IntArray
    high: IntArray


class BlockOutcome(NamedTuple):
    """Of every block: its status, the row at fault (or -1), and where its cells begin."""

    status: IntArray
    culprit: IntArray
    ptr: IntArray


class BlockWork(NamedTuple):
    """One block: the ends of every row, and its live cells with their bounds."""

    rows: RowSums
    cell: IntArray
    low: IntArray
    high: IntArray


@lean_step
def solve_block(s: BlockRows, w: BlockWork, rows: IntArray) -> tuple[int, int, int]:
    """Bound the cells of one block; return its status, the row at fault and how many cells.

    ``rows`` are the rows of the block that are not zero: only the cells of the cover rows among
    them are looked at, and those listed that no row excludes.  Those without a bound in larger
    places either make the block ``UNCOUNTED``, or ``UNLIMITED`` where a row asks for them.
    """
    cell_ptr, cell_row, cell_coef = s.columns
    row_low, row_high, least, most = w.rows
    cell, low, high = w.cell, w.low, w.high
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
    wrong = narrow(s.columns, w.rows, cell, low, high, n_cells, EVERY_PASS)
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
    """Bound the cells of every block; return cells, lower and upper bounds, (3, cells in order).

    Cells without a bound are not returned; their block is ``UNCOUNTED``.  ``outcome`` is filled.
    """
    n_rows, n_cells = s.cover_ptr.size - 1, s.columns.ptr.size - 1
    row_low, row_high = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    least, most = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    cell = np.empty(n_cells, np.int64)
    low, high = np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)
    w = BlockWork(RowSums(row_low, row_high, least, most), cell, low, high)
    table = np.empty((3, max(blocks.row.size // 2, 16)), np.int64)
    used = 0
    outcome.ptr[0] = 0
    for block in range(blocks.ptr.size - 1):
        first, last = blocks.ptr[block], blocks.ptr[block + 1]
        rows = blocks.row[first:last]
        for k in range(first, last):
            row_low[blocks.row[k]] = blocks.low[k]
            row_high[blocks.row[k]] = blocks.high[k]
        outcome.status[block], outcome.culprit[block], count = solve_block(s, w, rows)
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


# Programs of free cells: propagation with a trail, and complete depth-first search.

#: What a search found out about a component.
NONE, UNIQUE, SEVERAL, SOME, UNKNOWN, PENDING = 0, 1, 2, 3, 4, 5


class SearchAnswers(NamedTuple):
    """Answers of a search: a solution, and the one farthest from it, of every component.

    ``star`` gets a solution where ``has_star`` is 0, ``far`` the farthest one found, ``finding``
    what is known, ``distance`` and ``upper`` bounds of the largest distance (-1: no bound).
    """

    star: IntArray
    has_star: IntArray
    far: IntArray
    finding: IntArray
    distance: IntArray
    upper: IntArray


@lean_step
def mark_usable(p: ProgramArrays, w: SearchWork, component: int) -> None:
    """Mark the families whose rows are equations of ones that hold every variable once."""
    w.usable[:] = 0
    for row in range(p.first_row[component], p.first_row[component + 1]):
        # An equation of ones: x_1 + ... + x_m = c.
        sound = p.row_low[row] == p.row_high[row]
        for k in range(p.row_ptr[row], p.row_ptr[row + 1]):
            sound = sound and p.row_coef[k] == 1
        if sound:
            w.usable[p.family[row]] += p.row_ptr[row + 1] - p.row_ptr[row]
    # Rows of a family share no variable: as many variables as there are is each of them once.
    n_vars = p.first_var[component + 1] - p.first_var[component]
    for label in range(w.usable.size):
        w.usable[label] = 1 if w.usable[label] == n_vars else 0


@lean_step
def distance_bound(p: ProgramArrays, w: SearchWork, component: int, star: IntArray) -> int:
    """Return an upper bound of the distance from ``star`` within the bounds, or -1.

    In a row whose sum is fixed, what some cells gain others lose, so that the distance is at
    most twice the smaller of all possible gains and all possible losses.  The rows of a usable
    family add up to a bound; the best family counts, and without one there is no bound.
    """
    w.total[:] = 0
    for row in range(p.first_row[component], p.first_row[component + 1]):
        if w.usable[p.family[row]] == 0:
            continue
        # sum |x - x*| <= 2 min(sum (h - x*)+, sum (x* - l)+) over the row.
        gain, loss = 0, 0
        for k in range(p.row_ptr[row], p.row_ptr[row + 1]):
            var = p.row_var[k]
            gain += max(0, w.high[var] - star[var])
            loss += max(0, star[var] - w.low[var])
        w.total[p.family[row]] += 2 * min(gain, loss)
    best = -1
    for label in range(w.usable.size):
        if w.usable[label] == 1 and (best < 0 or w.total[label] < best):
            best = w.total[label]
    return best


@lean_step
def search(
    p: ProgramArrays,
    w: SearchWork,
    component: int,
    star: IntArray,
    maximise: bool,
    stop: int,
    limit: int,
    out: IntArray,
) -> tuple[int, bool]:
    """Search a component; return the best distance (-1: no solution) and whether all was seen.

    Without ``maximise`` the first solution ends the search, at distance 0; with it, the largest
    distance from the solution ``star`` is looked for, until ``stop`` is reached or ``limit``
    nodes were looked at.  ``out`` gets the solution.
    """
    first, last = p.first_var[component], p.first_var[component + 1]
    best, nodes, depth = -1, 0, 0
    if maximise:
        best = 0
        for var in range(first, last):
            out[var] = star[var]
        mark_usable(p, w, component)
    base = w.state[0]
    w.state[3], w.state[4] = 1, 0
    while True:
        nodes += 1
        if nodes > limit or w.state[4] == 1:
            undo(p, w, base)
            return best, False
        # A node whose bound is no better than the best distance is cut off.
        bound = distance_bound(p, w, component, star) if maximise else -1
        if bound < 0 or bound > best:
            # The free variable with the narrowest bounds is branched on.
            branch, narrowest = -1, 0
            for var in range(first, last):
                width = w.high[var] - w.low[var]
                if width > 0 and (branch < 0 or width < narrowest):
                    branch, narrowest = var, width
                    if width == 1:
                        break
            if branch >= 0:
                w.stack[depth, 0] = branch
                w.stack[depth, 1] = w.low[branch]
                w.stack[depth, 2] = w.high[branch]
                w.stack[depth, 3] = w.state[0]
                depth += 1
            else:
                # Nothing is free: a solution, at sum |x - x*|.
                distance = 0
                for var in range(first, last):
                    distance += abs(w.low[var] - star[var]) if maximise else 0
                if distance > best:
                    best = distance
                    for var in range(first, last):
                        out[var] = w.low[var]
                if not maximise or best >= stop:
                    undo(p, w, base)
                    return best, not maximise
        # The deepest branching variable with a value left is fixed, until no row contradicts.
        while depth > 0:
            top = depth - 1
            if w.stack[top, 1] > w.stack[top, 2]:  # all of its values were tried
                depth -= 1
                continue
            undo(p, w, w.stack[top, 3])
            var, smallest, largest = w.stack[top, 0], w.stack[top, 1], w.stack[top, 2]
            # The end of l..h that is farther from x*; the node keeps the rest of the values.
            if abs(largest - star[var]) < abs(smallest - star[var]):
                value = smallest
                w.stack[top, 1] = smallest + 1
            else:
                value = largest
                w.stack[top, 2] = largest - 1
            set_ends(p, w, var, value, value)
            if settle(p, w) < 0 or w.state[4] == 1:
                break
        if depth == 0:
            undo(p, w, base)
            return best, True


@lean_kernel
def search_components(
    p: ProgramArrays, w: SearchWork, answers: SearchAnswers, stop: int, limit: IntArray
) -> None:
    """Search every component that is pending for a solution and for the one farthest from it.

    A search ends at the distance ``stop``, or after ``limit`` nodes of the component.
    """
    star, has_star, far, finding, distance, upper = answers
    for component in range(p.first_var.size - 1):
        if finding[component] != PENDING:
            continue
        distance[component] = 0
        upper[component] = -1
        if propagate(p, w, component) >= 0:
            finding[component] = NONE
            continue
        if has_star[component] == 0:
            best, complete = search(p, w, component, star, False, 0, limit[component], star)
            if best < 0:
                finding[component] = NONE if complete else UNKNOWN
                continue
            has_star[component] = 1
        # The farthest solution; 0 with all seen proves that there is no other.
        best, complete = search(p, w, component, star, True, stop, limit[component], far)
        distance[component] = best
        if complete:
            upper[component] = best
            finding[component] = SEVERAL if best > 0 else UNIQUE
        else:
            upper[component] = distance_bound(p, w, component, star)
            finding[component] = SEVERAL if best > 0 else SOME

"""Bound propagation under rows ``L <= A x <= H``, and a search of small components by it.

With ``l <= x <= h``, a row leaves each of its unknowns

    L - sum_{i != j} max(a_i l_i, a_i h_i) <= a_j x_j <= H - sum_{i != j} min(a_i l_i, a_i h_i).

The fixed point does not depend on the order. The unknowns of a block, of a law or of a group of
places are examined in turn. A search branches on a variable and examines the variable's rows by the
same rule. A trail records each change, and undoes it.
"""

from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step
from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.model import ENDLESS, Columns, Components, IntegerModel, by_columns
from bayesrisk.tables.likelihoods import UNBOUNDED

EVERY_PASS = 2**62


class RowSums(NamedTuple):
    """Lower and upper bounds of every row, and the least and the most that its unknowns sum to."""

    low: IntArray
    high: IntArray
    least: IntArray
    most: IntArray


@lean_step
def limits(rows: RowSums, r: int, a: int, low: int, high: int) -> tuple[int, int]:
    """Return the least and the largest value that row ``r`` allows an unknown of weight ``a``.

    ``low`` and ``high`` are the current ends of the unknown.
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
    """Update a row's sums after an unknown's lower end rose by ``up`` and its upper by ``down``."""
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
    """Tighten the bounds of the first ``size`` unknowns; return a violated row, or -1.

    ``rows`` have the sums of the ends, which are updated; ``passes`` limits the number of passes
    over all unknowns.
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
    """Tighten the bounds of all unknowns; return a violated row, or -1."""
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
    """Raise ``low`` and lower ``high`` as far as all rows require; return False if none fits."""
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
    """Return the model with tightened bounds of variables and rows, or None if infeasible.

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


#: What a search found out about a component.
NONE, UNIQUE, SEVERAL, SOME, UNKNOWN, PENDING = 0, 1, 2, 3, 4, 5
#: Changes of bounds, beyond two for each variable, that a search can take back; one that needs
#: more stops, as at its limit of nodes.  24 bytes each.
MOST_CHANGES = 5_000_000
#: Values that may contradict for each node of the limit, before a search gives up.
FAILURES = 100


class ProgramArrays(NamedTuple):
    """Arrays of a split model: rows stored both ways, their bounds, and each row's family.

    Variables and rows of component k stand from ``first_var[k]`` and ``first_row[k]`` on; rows of
    one family share no variable.
    """

    var_ptr: IntArray
    var_row: IntArray
    var_coef: IntArray
    row_ptr: IntArray
    row_var: IntArray
    row_coef: IntArray
    row_low: IntArray
    row_high: IntArray
    family: IntArray
    first_var: IntArray
    first_row: IntArray


def program_arrays(parts: Components, family: IntArray) -> ProgramArrays:
    """Return the components as the arrays that the compiled search reads."""
    rows, ends = parts.model.rows, (parts.model.row_low, parts.model.row_high)
    stored = *by_columns(rows), *by_columns(rows.T)
    return ProgramArrays(*stored, *ends, family, parts.first_var, parts.first_row)


class SearchWork(NamedTuple):
    """Working arrays of a search: bounds, row sums, and a trail to undo changes.

    ``widest`` is for every row the largest ``a (h - l)`` of its variables at the start. ``state``
    holds the length of the trail, and the first and next position of the circular queue. Two flags
    follow: whether changes are recorded on the trail (only a search undoes them), and whether a
    search must end (the trail is full, or nothing is left). The last entry is the number of
    coefficients that may still be examined.
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


def search_work(p: ProgramArrays, low: IntArray, high: IntArray) -> SearchWork:
    """Return fresh working arrays; propagation fills the sums of rows."""
    n_rows, n_vars = p.row_low.size, low.size
    families = int(p.family.max()) + 1 if n_rows else 1
    depth = int((high - low).sum()) + n_vars + 1
    return SearchWork(
        low=low.copy(),
        high=high.copy(),
        rows=RowSums(p.row_low, p.row_high, *np.zeros((2, n_rows), np.int64)),
        widest=np.zeros(n_rows, np.int64),
        trail=np.empty((min(depth, MOST_CHANGES) + 2 * n_vars, 3), np.int64),
        queue=np.empty(n_rows + 1, np.int64),
        waiting=np.zeros(n_rows, np.int64),
        state=np.array([0, 0, 0, 0, 0, EVERY_PASS]),
        stack=np.empty((n_vars + 1, 4), np.int64),
        usable=np.zeros(families, np.int64),
        total=np.zeros(families, np.int64),
    )


@lean_step
def set_ends(p: ProgramArrays, w: SearchWork, var: int, new_low: int, new_high: int) -> None:
    """Set a variable's bounds, record the old ones on the trail, and queue its rows."""
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
    """Propagate the queued rows to a fixed point; return a violated row, or -1."""
    wrong = -1
    while w.state[1] != w.state[2]:
        row = w.queue[w.state[1]]
        w.state[1] = (w.state[1] + 1) % w.queue.size
        w.waiting[row] = 0
        if wrong >= 0:  # after a contradiction the queue is only emptied
            continue
        first, last = p.row_ptr[row], p.row_ptr[row + 1]
        w.state[5] -= last - first
        # So it is when the trail is full: a row may change all of its variables, and a branch
        # every variable.
        full = w.state[0] + last - first + w.low.size > w.trail.shape[0]
        if w.state[3] == 1 and (full or w.state[5] < 0):
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
    """Undo the changes recorded on the trail after ``mark``."""
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
    """Propagate the rows of a component to a fixed point; return a violated row, or -1."""
    w.state[:5] = 0
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
    """Propagate every component; ``wrong`` gets a violated row of each, or -1."""
    for component in range(p.first_var.size - 1):
        wrong[component] = propagate(p, w, component)


class SearchAnswers(NamedTuple):
    """Answers of a search for every component: a solution, and the solution farthest from it.

    ``star`` gets a solution if ``has_star`` is 0, and ``far`` the farthest one found. ``finding``
    is the finding; ``distance`` and ``upper`` bound the largest distance (-1: no bound).
    """

    star: IntArray
    has_star: IntArray
    far: IntArray
    finding: IntArray
    distance: IntArray
    upper: IntArray


@lean_step
def mark_usable(p: ProgramArrays, w: SearchWork, component: int) -> None:
    """Mark the families of rows that are equations with weights 1 and cover every variable once."""
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


@lean_kernel
def mark_even(p: ProgramArrays, w: SearchWork, even: BoolArray) -> None:
    """Mark components with a usable family: their solutions have equal sums and even distances."""
    for component in range(p.first_var.size - 1):
        mark_usable(p, w, component)
        even[component] = w.usable.any()


@lean_step
def distance_bound(p: ProgramArrays, w: SearchWork, component: int, star: IntArray) -> int:
    """Return an upper bound of the distance from ``star`` within the bounds, or -1 if unknown.

    If the sum of a row is fixed, the gains of some cells are losses of others. So the distance is
    at most twice the smaller of all possible gains and all possible losses. The rows of a usable
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
    """Return the best distance in a component (-1: no solution) and whether the search is complete.

    Without ``maximise`` the first solution ends the search, at distance 0. With it, the search
    seeks the largest distance from the solution ``star``, until it reaches ``stop`` or has examined
    ``limit`` nodes. ``out`` receives the solution.
    """
    first, last = p.first_var[component], p.first_var[component + 1]
    best, nodes, depth, failures = -1, 0, 0, 0
    if maximise:
        best = 0
        for var in range(first, last):
            out[var] = star[var]
        mark_usable(p, w, component)
    base = w.state[0]
    w.state[3], w.state[4] = 1, 0
    while True:
        nodes += 1
        w.state[5] -= last - first
        if nodes > limit or failures > FAILURES * limit or w.state[4] == 1:
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
            # Of millions of values all may contradict: the next node ends the search.
            failures += 1
            if failures > FAILURES * limit:
                break
        if depth == 0:
            undo(p, w, base)
            return best, True


@lean_kernel
def search_components(
    p: ProgramArrays, w: SearchWork, answers: SearchAnswers, stop: int, limit: IntArray
) -> None:
    """Search every pending component for a solution and for the solution farthest from it.

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


#: Coefficients that dives look at, of a component and of all: then linear programs are faster.
_LOOKS, _ALL_LOOKS = 500_000, 100_000_000


class ReachedEnds(NamedTuple):
    """The proved least and most of every row, and the least and most that solutions reach."""

    low: IntArray
    high: IntArray
    least: IntArray
    most: IntArray


@lean_kernel
def _reach_ends(
    p: ProgramArrays, w: SearchWork, point: IntArray, ends: ReachedEnds, looks: int
) -> None:
    low, high, least, most = ends
    for component in range(p.first_var.size - 1):
        propagate(p, w, component)
        w.state[5] = looks
        size = p.first_var[component + 1] - p.first_var[component]
        first, last = p.first_row[component], p.first_row[component + 1]
        for row in range(first, last):
            low[row] = max(p.row_low[row], w.rows.least[row])
            high[row] = min(p.row_high[row], w.rows.most[row])
        row, distance = first, 0
        while row < last and w.state[5] >= 0:
            for other in range(first, last if distance >= 0 else first):
                total = 0
                for k in range(p.row_ptr[other], p.row_ptr[other + 1]):
                    total += p.row_coef[k] * point[p.row_var[k]]
                least[other] = min(least[other], total)
                most[other] = max(most[other], total)
            upper, distance = most[row] < high[row], -1
            if not upper and least[row] <= low[row]:
                row += 1
                continue
            # A dive, and a few nodes more, for a solution that has the row at its end.
            side = w.rows.low if upper else w.rows.high
            before = side[row]
            side[row] = high[row] if upper else low[row]
            w.queue[w.state[2]] = row
            w.state[2] = (w.state[2] + 1) % w.queue.size
            w.waiting[row] = 1
            w.state[3], w.state[4], complete = 1, 0, True
            if settle(p, w) < 0:
                distance, complete = search(p, w, component, point, False, 0, 2 * size + 2, point)
            complete = complete and w.state[4] == 0
            side[row] = before
            undo(p, w, 0)
            if distance < 0 and not complete:
                row += 1
            elif distance < 0 and upper:  # no solution is there: the last is before
                high[row] -= 1
            elif distance < 0:
                low[row] += 1


def reached_ends(p: ProgramArrays, low: IntArray, high: IntArray, star: IntArray) -> ReachedEnds:
    """Return the ends of all rows within bounds of the variables, as far as dives reach them.

    Each dive begins at the last solution, the first at ``star``, and leads away from it.
    """
    none = np.full_like(p.row_low, UNBOUNDED)
    ends = ReachedEnds(p.row_low.copy(), p.row_high.copy(), none, -none)
    looks = min(_LOOKS, _ALL_LOOKS // max(p.first_var.size - 1, 1))
    _reach_ends(p, search_work(p, low, high), star.copy(), ends, looks)
    return ends

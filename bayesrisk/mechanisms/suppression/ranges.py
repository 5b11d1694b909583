"""Whole histograms of a group of places: one that has its counts, and the range of hidden ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bayesrisk._base.highs import WarmProgram
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.constraints.narrow import ENDLESS, narrow_sparse
from bayesrisk.constraints.rows import equal_rows, first_of
from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.suppression.groups import PlaceGroup, endless_variables

# Smallest and largest whole value of linear forms: linear programs, proved in whole numbers.
#
# A linear program by floating point proposes; whole numbers decide.  A solution counts after it is
# rounded and checked in every row.  A bound counts after the dual values are rounded to fractions
# and the bound is worked out again from them, which is true whatever they are.  Where the two do
# not meet, a variable is split at a fraction and both halves are looked at.


#: How far HiGHS may be off a whole number; only proposals depend on it.
_SNAP = 1e-6
#: Largest whole number that a solution or the terms of a bound may have: products stay exact.
_LARGE = 2**40
_EXACT = 2.0**61
#: Denominators that dual values are rounded to, the likely ones first.
_DENOMINATORS = (1, 2, 3, 4, 12, 60, 2**20)
#: Parts that one search looks at before it gives up.
_PARTS = 2000


def as_floats(bounds: tuple[IntArray, IntArray]) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds with infinities where there is none."""
    low, high = (np.where(abs(b) >= ENDLESS, np.copysign(np.inf, b), b) for b in bounds)
    return low, high


@dataclass
class _IntegerBox:
    """Bounds of the variables, and what the form is at least within them."""

    low: IntArray
    high: IntArray
    least: int


class IntegerProgram:
    """Whole variables within bounds, rows within bounds, and the solutions seen."""

    def __init__(
        self,
        matrix: sparse.csr_array,
        rows: tuple[IntArray, IntArray],
        columns: tuple[IntArray, IntArray],
        forms: sparse.csr_array,
    ) -> None:
        self._matrix, self._rows, self._columns = matrix, rows, columns
        self._across = sparse.csr_array(matrix.T)
        self._forms = forms
        cost = np.zeros(matrix.shape[1])
        self._linear = WarmProgram(matrix, as_floats(rows), as_floats(columns), cost, primal=True)
        self._index = np.arange(matrix.shape[1])
        self._moved = False
        self.lowest = np.full(forms.shape[0], ENDLESS)
        self.highest = np.full(forms.shape[0], -ENDLESS)
        self.solution: IntArray | None = None

    def feasible(self) -> bool | None:
        """Return whether there is a solution, or None if the search gave up."""
        bound, settled = self._search(np.zeros(len(self._index), dtype=np.int64), 0, None)
        if self.solution is not None:
            return True
        return False if settled and bound >= ENDLESS else None

    def reach(self, sign: int, outer: IntArray) -> None:
        """Look for solutions that bring many forms at once to the bounds known of them.

        The sum of all forms that no solution seen has at their bound is minimised (sign 1) or
        maximised (-1), again as long as two of them or more get there.  Nothing is decided here:
        a form whose bound was reached needs no program of its own.
        """
        bounded = np.abs(outer) < ENDLESS
        waiting = len(outer) + 2
        while True:
            reached = self.lowest if sign > 0 else -self.highest
            left = np.flatnonzero(bounded & (reached > sign * outer))
            if left.size < 2 or left.size > waiting - 2:
                return
            waiting = left.size
            cost = sign * np.asarray(self._forms[left].sum(axis=0), dtype=np.int64)
            self._linear.set_cost(self._index, cost.astype(float))
            values, _ = self._solve(cost, _IntegerBox(*self._columns, -ENDLESS), -ENDLESS)
            if values is None:
                return
            self._noted(values, cost)

    def settle(self, form: int, sign: int, outer: int) -> tuple[int, bool]:
        """Return the smallest value of a form (sign 1) or the largest (-1), and if it is proved.

        ``outer`` is known to be no larger (no smaller), and the form not to be endless.  What is
        not proved is an outer bound.
        """
        inner = int(self.lowest[form] if sign > 0 else -self.highest[form])
        cost = np.zeros(len(self._index), dtype=np.int64)
        span = slice(self._forms.indptr[form], self._forms.indptr[form + 1])
        cost[self._forms.indices[span]] = sign * self._forms.data[span]
        bound, settled = self._search(cost, sign * outer, inner)
        return sign * bound, settled

    def _search(self, cost: IntArray, outer: int, inner: int | None) -> tuple[int, bool]:
        """Return the least cost of a solution, or a bound and False if it is not settled."""
        best = ENDLESS if inner is None else inner
        if best <= outer:
            return best, True
        self._linear.set_cost(self._index, cost.astype(float))
        waiting = [_IntegerBox(*self._columns, outer)]
        for _ in range(_PARTS):
            if not waiting:
                break
            part = waiting.pop()
            if part.least >= best:
                continue
            values, bound = self._solve(cost, part, best)
            if values is not None:
                best = min(best, self._noted(values, cost))
            if bound >= best:
                continue
            if np.array_equal(part.low, part.high):
                best = min(best, self._noted(part.low.astype(float), cost))
            else:
                waiting.extend(self._halves(part, values, max(bound, part.least)))
        left = min((part.least for part in waiting), default=ENDLESS)
        return (best, True) if left >= best else (left, False)

    def _solve(self, cost: IntArray, part: _IntegerBox, best: int) -> tuple[FloatArray | None, int]:
        """Return the values that solve a part in real numbers, and the bound that is proved."""
        whole = part.low is self._columns[0] and part.high is self._columns[1]
        if self._moved or not whole:
            self._linear.bound_columns(self._index, *as_floats((part.low, part.high)))
            self._moved = not whole
        solved = self._linear.solve()
        if solved is not None:
            values, dual = solved
            enough = min(best, int(np.ceil(cost @ values - _SNAP)))
            return values, self._bound(cost, dual, part, enough)
        ray = self._linear.ray()
        if ray is not None:
            ray = ray / max(1e-9, float(np.abs(ray).max(initial=0)))
            for sign in (1.0, -1.0):
                if self._bound(0 * cost, sign * ray, part, 1) > 0:
                    return None, ENDLESS  # a cost of 0 cannot be above 0: there is no solution
        return None, -ENDLESS

    def _bound(self, cost: IntArray, dual: FloatArray, part: _IntegerBox, enough: int) -> int:
        """Return the best bound that roundings of dual values prove, exactly."""
        best = -ENDLESS
        for denominator in _DENOMINATORS:
            scaled = np.rint(dual * denominator)
            if not np.all(np.abs(scaled) < _LARGE):
                break
            price = scaled.astype(np.int64)
            edge = np.where(price > 0, self._rows[0], self._rows[1])
            price[np.abs(edge) >= ENDLESS] = 0
            rest = denominator * cost - self._across @ price
            end = np.where(rest > 0, part.low, part.high)
            if np.any((rest != 0) & (np.abs(end) >= ENDLESS)):
                continue
            rows, columns = price != 0, rest != 0
            terms = (price[rows], edge[rows]), (rest[columns], end[columns])
            if (
                sum(float(np.abs(a.astype(float)) @ np.abs(b.astype(float))) for a, b in terms)
                > _EXACT
            ):
                break  # 64 bits would not hold it, nor what follows
            total = sum(int(a @ b) for a, b in terms)
            best = max(best, -(-total // denominator))
            if best >= enough:
                break
        return best

    def _noted(self, values: FloatArray, cost: IntArray) -> int:
        """Keep a solution if its rounding is one; return its cost, or ENDLESS."""
        if not np.all(np.abs(values) < _LARGE):
            return ENDLESS
        whole = np.rint(values).astype(np.int64)
        inside = self._matrix @ whole
        if (
            np.any(whole < self._columns[0])
            or np.any(whole > self._columns[1])
            or np.any(inside < self._rows[0])
            or np.any(inside > self._rows[1])
        ):
            return ENDLESS
        reached = self._forms @ whole
        np.minimum(self.lowest, reached, out=self.lowest)
        np.maximum(self.highest, reached, out=self.highest)
        if self.solution is None:
            self.solution = whole
        return int(cost @ whole)

    def _halves(
        self, part: _IntegerBox, values: FloatArray | None, least: int
    ) -> list[_IntegerBox]:
        """Return a part cut in two at its most fractional variable."""
        open_ = part.high > part.low
        if values is None:
            values = np.where(part.high < ENDLESS, (part.low + part.high) / 2, part.low + 0.5)
        split = np.where(open_, np.abs(values - np.rint(values)), -1.0)
        variable = int(np.argmax(split))
        cut = int(np.clip(np.floor(values[variable]), part.low[variable], part.high[variable] - 1))
        low, high = part.low.copy(), part.high.copy()
        low[variable], high[variable] = cut + 1, cut
        below, above = _IntegerBox(part.low, high, least), _IntegerBox(low, part.high, least)
        # The last is looked at first: the half that the fraction is nearer to.
        return [below, above] if values[variable] - cut > 0.5 else [above, below]


_SWEEPS = 20  # of bounds through the rows; more only save linear programs
_CONTRADICT = "tables: published cells contradict each other"


def some_histogram(group: PlaceGroup) -> IntArray:
    """Return a histogram that has all counts of a group in which nothing is hidden."""
    size = group.matrix.shape[1]
    nothing, endless = np.zeros(size, dtype=np.int64), np.full(size, ENDLESS)
    system = _System(group.matrix, group.count, group.count, nothing, endless)
    _narrow(system)
    histogram = system.low.copy()
    for _, variables, _, program in _programs(system, np.zeros(0, dtype=np.int64)):
        if program.solution is None:
            raise DataError(
                "tables: found no records that have the counts; release records instead"
            )
        histogram[variables] = program.solution
    return histogram


@dataclass
class _System:
    """Rows and variables with bounds, ENDLESS where there is none."""

    matrix: sparse.csr_array
    row_low: IntArray
    row_high: IntArray
    low: IntArray
    high: IntArray


def group_ranges(
    group: PlaceGroup, least: int, most: int | None
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the smallest and largest count of each hidden row, and whether both are proved.

    ``least`` and ``most`` bound every hidden count.  What is not proved is an outer bound.
    """
    counted = np.flatnonzero(~group.tie)
    matrix = group.matrix
    # Cells that the same variables make up have one count.
    row_class = equal_rows(matrix[counted], group.hidden[counted])
    first = first_of(row_class)
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
    wrong = np.flatnonzero(group.count[counted] != group.count[counted[first]][row_class])
    if wrong.size:
        raise DataError(f"{_CONTRADICT}: equal cells differ")
    targets = np.flatnonzero(hidden)
    bounded = ~hidden if most is None else np.ones(len(rows), dtype=np.bool_)
    bounded[len(first) :] = False
    free = endless_variables(sparse.csr_array(system.matrix[bounded]), system.matrix[len(first) :])
    _narrow(system)
    lower, upper, proved = _settled(system, targets, (system.matrix[targets] @ free) > 0)
    number = np.full(len(first), -1)
    number[hidden[: len(first)]] = np.arange(len(targets))
    position = number[row_class[group.hidden[counted]]]
    return lower[position], upper[position], proved[position]


def _narrow(system: _System) -> None:
    """Pass bounds from rows to variables until they settle; refuse what contradicts itself."""
    row_ends, ends = (system.row_low, system.row_high), (system.low, system.high)
    left = narrow_sparse(system.matrix, row_ends, ends, _SWEEPS)
    if left is None:
        raise DataError(
            f"{_CONTRADICT}, or what is assumed of hidden ones (least, most): they do not add up"
        )
    rows, system.low, system.high = left
    system.row_low = np.maximum(system.row_low, rows.least)
    system.row_high = np.minimum(system.row_high, rows.most)


def _minus(bound: IntArray, rest: IntArray) -> IntArray:
    return np.where(np.abs(bound) >= ENDLESS, bound, bound - rest)


def _settled(
    system: _System, targets: IntArray, endless: BoolArray
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the range of the rows asked, part by part of the system; some have no end."""
    lower, upper = system.row_low[targets].copy(), system.row_high[targets].copy()
    proved = np.ones(len(targets), dtype=np.bool_)
    for rows, _, indices, program in _programs(system, targets):
        fixed = system.matrix[rows] @ np.where(system.low == system.high, system.low, 0)
        program.reach(1, lower[indices] - fixed)
        top = upper[indices]
        program.reach(-1, np.where(endless[indices] | (top >= ENDLESS), ENDLESS, top - fixed))
        for form, target in enumerate(indices.tolist()):
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


def _programs(
    system: _System, targets: IntArray
) -> Iterator[tuple[IntArray, IntArray, IntArray, "IntegerProgram"]]:
    """Yield a program for each part that has no open variable in common with others.

    With it come the rows asked of the part, its variables, and where the rows are among all asked.
    What is fixed is taken out; a part without a solution is refused.
    """
    wide = np.flatnonzero(system.low < system.high)
    matrix = sparse.coo_array(system.matrix[:, wide])
    row, column = matrix.coords
    size = matrix.shape[0] + len(wide)
    edges = np.ones(len(row), dtype=np.int8), (row, column + matrix.shape[0])
    label = connected_components(sparse.csr_array(edges, shape=(size, size)), directed=False)[1]
    row_part, variable_part = label[: matrix.shape[0]], label[matrix.shape[0] :]
    by_row, by_variable = (np.argsort(key, kind="stable") for key in (row_part, variable_part))
    number = np.full(matrix.shape[0], -1)
    number[targets] = np.arange(len(targets))
    fixed = np.where(system.low == system.high, system.low, 0)
    for part in np.unique(variable_part).tolist():
        ends = np.searchsorted(row_part[by_row], [part, part + 1])
        rows = by_row[ends[0] : ends[1]]
        ends = np.searchsorted(variable_part[by_variable], [part, part + 1])
        variables = wide[by_variable[ends[0] : ends[1]]]
        inner, wanted = system.matrix[rows], rows[number[rows] >= 0]
        constant = inner @ fixed
        forms = sparse.csr_array(system.matrix[wanted][:, variables])
        forms.sort_indices()
        program = IntegerProgram(
            sparse.csr_array(inner[:, variables]),
            (_minus(system.row_low[rows], constant), _minus(system.row_high[rows], constant)),
            (system.low[variables], system.high[variables]),
            forms,
        )
        if program.feasible() is False:
            raise DataError(f"{_CONTRADICT}: no counts fit them")
        yield wanted, variables, number[wanted], program

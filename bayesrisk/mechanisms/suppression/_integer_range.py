"""Smallest and largest whole value of linear forms: linear programs, proved in whole numbers.

A linear program by floating point proposes; whole numbers decide.  A solution counts after it is
rounded and checked in every row.  A bound counts after the dual values are rounded to fractions
and the bound is worked out again from them, which is true whatever they are.  Where the two do not
meet, a variable is split at a fraction and both halves are looked at.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bayesrisk._highs import WarmProgram
from bayesrisk._types import FloatArray, IntArray

#: A bound that is none.
ENDLESS = 2**62
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
    found = []
    for part in bounds:
        values = part.astype(float)
        values[np.abs(part) >= ENDLESS] *= np.inf
        found.append(values)
    return found[0], found[1]


@dataclass
class _Part:
    """Bounds of the variables, and what the form is at least within them."""

    low: IntArray
    high: IntArray
    least: int


class IntegerProgram:
    """Whole variables within bounds, rows within bounds, and the solutions seen.

    Parameters
    ----------
    matrix : csr_array of int64
        Rows.
    rows, columns : tuple of ndarray of int64
        Lower and upper bounds; ENDLESS where there is none.
    forms : csr_array of int64
        Linear forms whose range over all solutions seen is kept in ``lowest`` and ``highest``.
    """

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
        self.found: IntArray | None = None

    def feasible(self) -> bool | None:
        """Return whether there is a solution, or None if the search gave up."""
        zero = np.zeros(len(self._index), dtype=np.int64)
        bound, settled = self._search(zero, 0, None)
        if self.found is not None:
            return True
        return False if settled and bound >= ENDLESS else None

    def reach(self, sign: int, outer: IntArray) -> None:
        """Look for solutions that bring many forms at once to the bounds known of them.

        The sum of all forms that no solution seen has at their bound is minimised (sign 1) or
        maximised (-1), again as long as two of them or more get there.  Nothing is decided here:
        a form whose bound was reached needs no program of its own.
        """
        known = np.abs(outer) < ENDLESS
        waiting = len(outer) + 2
        while True:
            seen = self.lowest if sign > 0 else -self.highest
            left = np.flatnonzero(known & (seen > sign * outer))
            if left.size < 2 or left.size > waiting - 2:
                return
            waiting = left.size
            cost = sign * np.asarray(self._forms[left].sum(axis=0), dtype=np.int64)
            self._linear.set_cost(self._index, cost.astype(float))
            values, _ = self._solve(cost, _Part(*self._columns, -ENDLESS), -ENDLESS)
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
        at = slice(self._forms.indptr[form], self._forms.indptr[form + 1])
        cost[self._forms.indices[at]] = sign * self._forms.data[at]
        bound, settled = self._search(cost, sign * outer, inner)
        return sign * bound, settled

    def _search(self, cost: IntArray, outer: int, inner: int | None) -> tuple[int, bool]:
        """Return the least cost of a solution, or a bound and False if it is not settled."""
        best = ENDLESS if inner is None else inner
        if best <= outer:
            return best, True
        self._linear.set_cost(self._index, cost.astype(float))
        waiting = [_Part(*self._columns, outer)]
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

    def _solve(self, cost: IntArray, part: _Part, best: int) -> tuple[FloatArray | None, int]:
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

    def _bound(self, cost: IntArray, dual: FloatArray, part: _Part, enough: int) -> int:
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
            some, other = price != 0, rest != 0
            terms = (price[some], edge[some]), (rest[other], end[other])
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
        if self.found is None:
            self.found = whole
        return int(cost @ whole)

    def _halves(self, part: _Part, values: FloatArray | None, least: int) -> list[_Part]:
        """Return a part cut in two at its most fractional variable."""
        open_ = part.high > part.low
        if values is None:
            values = np.where(part.high < ENDLESS, (part.low + part.high) / 2, part.low + 0.5)
        split = np.where(open_, np.abs(values - np.rint(values)), -1.0)
        at = int(np.argmax(split))
        cut = int(np.clip(np.floor(values[at]), part.low[at], part.high[at] - 1))
        low, high = part.low.copy(), part.high.copy()
        low[at], high[at] = cut + 1, cut
        below, above = _Part(part.low, high, least), _Part(low, part.high, least)
        # The last is looked at first: the half that the fraction is nearer to.
        return [below, above] if values[at] - cut > 0.5 else [above, below]

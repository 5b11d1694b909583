"""The weighted sums of unknowns that the counts of rows determine.

The rows are eliminated modulo a prime, which avoids large numbers. This finds the combination of
rows that gives a sum. The combination is made whole, and then checked in integers for every
unknown. The check is the proof; the prime only helps to find it.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._base.compiling import kernel, lean_step
from bayesrisk._base.validation import BoolArray, IntArray

_PRIME = 2**31 - 1
#: Largest whole number of times that a row is taken, and largest common denominator.
_TIMES, _PARTS = 2**20, 60
#: Largest count and weight; sums of them taken so many times stay below 2**62.
_COUNT = 2**31


@dataclass(frozen=True)
class RowBasis:
    """Linearly independent rows of a system (rows by unknowns), with combinations for others.

    ``right`` is the count of each row, and ``rows`` are the first that are independent, increasing.
    ``pivots`` has an unknown for each of them in which only one combination is not zero.
    ``inverse`` has those combinations modulo a prime, (independent rows, rows).
    """

    columns: sp.csc_array
    right: IntArray
    rows: IntArray
    pivots: IntArray
    inverse: IntArray

    def totals(self, sums: BoolArray | IntArray) -> tuple[IntArray, IntArray]:
        """Return integers total and part: each weighted sum, (sums, unknowns), equals total / part.

        The part is 0 where the counts give no value.
        """
        total, part = np.zeros((2, len(sums)), np.int64)
        if max(self.right.max(initial=0), self.columns.data.max(initial=0)) < _COUNT:
            a, whole = self.columns, np.ascontiguousarray(sums, np.int64)
            rows = a.indptr, a.indices, a.data, self.right, self.pivots, self.inverse
            _combine(*rows, whole, total, part)
        return total, part


def row_basis(columns: sp.csc_array, right: IntArray) -> RowBasis:
    """Return the rows of a system that are linearly independent modulo a prime.

    Rows that are independent modulo a prime are so in whole numbers; in the other direction a row
    may be missed, which loses a proof and makes none.
    """
    n_rows = columns.shape[0]
    inverse = np.eye(n_rows, dtype=np.int64)
    pivots = np.full(n_rows, -1, np.int64)
    # Any weights will do: they look for a row that is left, and decide nothing.
    weights = np.random.default_rng(0).integers(1, _PRIME, n_rows)
    _eliminate(columns.indptr, columns.indices, columns.data, weights, inverse, pivots)
    rows = np.flatnonzero(pivots >= 0)
    return RowBasis(columns, right, rows, pivots[rows], np.ascontiguousarray(inverse[rows]))


@lean_step
def _dot(
    combination: IntArray,
    start: np.int64,
    end: np.int64,
    indices: NDArray[np.int32],
    data: IntArray,
) -> np.int64:
    total = np.int64(0)
    for i in range(start, end):
        total = (total + combination[indices[i]] * (data[i] % _PRIME)) % _PRIME
    return total


@kernel
def _eliminate(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: IntArray,
    weights: IntArray,
    inverse: IntArray,
    pivots: IntArray,
) -> None:
    """Eliminate unknowns one by one; a random sum of the rows left finds the next pivot."""
    n_rows = inverse.shape[0]
    mixed, column = weights % _PRIME, np.empty(n_rows, np.int64)
    places = np.empty(n_rows, np.int64)
    for g in range(indptr.size - 1):
        # r' M a_g = 0 for random weights r: almost surely no row that is left has unknown g.
        if _dot(mixed, indptr[g], indptr[g + 1], indices, data) == 0:
            continue
        chosen = -1
        for r in range(n_rows):
            column[r] = _dot(inverse[r], indptr[g], indptr[g + 1], indices, data)
            if chosen < 0 and pivots[r] < 0 and column[r]:
                chosen = r
        if chosen < 0:
            continue
        # The pivot row is divided by its head, then taken off the others: M <- M - c m_pivot.
        pivots[chosen] = g
        # c ** (p - 2) is the inverse of c modulo the prime p, by squaring.
        head, base, exponent = np.int64(1), column[chosen], _PRIME - 2
        while exponent:
            if exponent & 1:
                head = head * base % _PRIME
            base = base * base % _PRIME
            exponent >>= 1
        # The sum of the rows that are left loses the pivot row: r' M <- r' M - r_pivot m_pivot.
        size, lost = 0, np.int64(0)
        for i in range(n_rows):
            if inverse[chosen, i]:
                mixed[i] = (mixed[i] - weights[chosen] * inverse[chosen, i]) % _PRIME
                inverse[chosen, i] = inverse[chosen, i] * head % _PRIME
                places[size] = i
                size += 1
        for r in range(n_rows):
            if r != chosen and column[r]:
                for i in places[:size]:
                    inverse[r, i] = (inverse[r, i] - column[r] * inverse[chosen, i]) % _PRIME
                if pivots[r] < 0:
                    lost = (lost + weights[r] * column[r]) % _PRIME
        # And it loses the multiples of the pivot row that the others lose.
        for i in places[:size]:
            mixed[i] = (mixed[i] - lost * inverse[chosen, i]) % _PRIME


@kernel
def _combine(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: IntArray,
    right: IntArray,
    pivots: IntArray,
    inverse: IntArray,
    sums: IntArray,
    total: IntArray,
    part: IntArray,
) -> None:
    n_rows = right.size
    raw, times = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    for t in range(sums.shape[0]):
        # A sum s is y' A with y = sum of the pivots' combinations that s has, modulo the prime.
        raw[:] = 0
        for k in range(pivots.size):
            weight = sums[t, pivots[k]] % _PRIME
            if weight:
                for i in range(n_rows):
                    raw[i] = (raw[i] + weight * inverse[k, i]) % _PRIME
        # Whole multiples: the smallest d for which all d y are small after centring.
        parts = 0
        for d in range(1, _PARTS + 1):
            small = True
            for i in range(n_rows):
                times[i] = raw[i] * d % _PRIME
                if times[i] > _PRIME // 2:
                    times[i] -= _PRIME
                if abs(times[i]) > _TIMES:
                    small = False
                    break
            if small:
                parts = d
                break
        if parts == 0:
            continue
        # The proof: in whole numbers, for every unknown.
        equal = True
        for g in range(indptr.size - 1):
            weight = np.int64(0)
            for i in range(indptr[g], indptr[g + 1]):
                weight += times[indices[i]] * data[i]
            if weight != parts * sums[t, g]:
                equal = False
                break
        # d s = y' A in whole numbers, so s x = y' c / d in every solution.
        if equal:
            part[t] = parts
            for i in range(n_rows):
                total[t] += times[i] * right[i]

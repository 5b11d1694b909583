"""Which sums of classes are a combination of the published counts: found modulo a prime, proved.

The rows are eliminated modulo a prime, which needs no large numbers.  What a sum is a combination
of is read off there, made whole, and then checked in whole numbers for every class: the check is
the proof, the prime only a way to find it.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._numba import kernel
from bayesrisk._types import BoolArray, IntArray

_PRIME = 2**31 - 1
#: Largest whole number of times that a row is taken, and largest common denominator.
_TIMES, _PARTS = 2**20, 60
#: Largest published count; sums of counts taken so many times stay below 2**62.
_COUNT = 2**31


@dataclass(frozen=True)
class RowBasis:
    """Rows of a system that are independent, and how others are made of them.

    Attributes
    ----------
    columns : scipy.sparse.csc_array
        The system, rows by classes.
    right : ndarray of int64
        Published count of each row.
    rows : ndarray of int64
        Independent rows, increasing.
    pivots : ndarray of int64
        A class for each of them, in which only one combination is not zero.
    inverse : ndarray of int64
        Those combinations, modulo a prime: (independent rows, rows).
    """

    columns: sp.csc_array
    right: IntArray
    rows: IntArray
    pivots: IntArray
    inverse: IntArray

    def values(self, sums: BoolArray) -> IntArray:
        """Return the value that the counts give to each sum of classes, -1 where they give none."""
        found = np.full(len(sums), -1, np.int64)
        if self.right.max(initial=0) < _COUNT:
            a = self.columns
            _combine(
                a.indptr, a.indices, a.data, self.right, self.pivots, self.inverse, sums, found
            )
        return found


def row_basis(columns: sp.csc_array, right: IntArray) -> RowBasis:
    """Return independent rows of a system, by elimination modulo a prime.

    Parameters
    ----------
    columns : scipy.sparse.csc_array
        Rows by classes, whole numbers.
    right : ndarray of int64
        Published count of each row.

    Returns
    -------
    RowBasis
        Rows that are independent modulo a prime are so in whole numbers; in the other direction
        a row may be missed, which loses a proof and makes none.
    """
    n_rows = columns.shape[0]
    inverse = np.eye(n_rows, dtype=np.int64)
    pivots = np.full(n_rows, -1, np.int64)
    # Any weights will do: they look for a row that is left, and decide nothing.
    weights = np.random.default_rng(0).integers(1, _PRIME, n_rows)
    _eliminate(columns.indptr, columns.indices, columns.data, weights, inverse, pivots)
    rows = np.flatnonzero(pivots >= 0)
    return RowBasis(columns, right, rows, pivots[rows], np.ascontiguousarray(inverse[rows]))


@kernel
def _power(base: np.int64, exponent: np.int64) -> np.int64:
    found = np.int64(1)
    while exponent:
        if exponent & 1:
            found = found * base % _PRIME
        base = base * base % _PRIME
        exponent >>= 1
    return found


@kernel
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
    """Eliminate class after class; a weighted sum of the rows that are left finds the next one."""
    n_rows = inverse.shape[0]
    mixed, column = weights % _PRIME, np.empty(n_rows, np.int64)
    for g in range(indptr.size - 1):
        if _dot(mixed, indptr[g], indptr[g + 1], indices, data) == 0:
            continue
        chosen = -1
        for r in range(n_rows):
            column[r] = _dot(inverse[r], indptr[g], indptr[g + 1], indices, data)
            if chosen < 0 and pivots[r] < 0 and column[r]:
                chosen = r
        if chosen < 0:
            continue
        pivots[chosen] = g
        head = _power(column[chosen], np.int64(_PRIME - 2))
        for i in range(n_rows):
            inverse[chosen, i] = inverse[chosen, i] * head % _PRIME
        mixed[:] = 0
        for r in range(n_rows):
            if r != chosen and column[r]:
                for i in range(n_rows):
                    inverse[r, i] = (inverse[r, i] - column[r] * inverse[chosen, i]) % _PRIME
            if pivots[r] < 0:
                for i in range(n_rows):
                    mixed[i] = (mixed[i] + weights[r] * inverse[r, i]) % _PRIME


@kernel
def _combine(
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: IntArray,
    right: IntArray,
    pivots: IntArray,
    inverse: IntArray,
    sums: NDArray[np.bool_],
    value: IntArray,
) -> None:
    n_rows = right.size
    raw, times = np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    for t in range(sums.shape[0]):
        raw[:] = 0
        for k in range(pivots.size):
            if sums[t, pivots[k]]:
                for i in range(n_rows):
                    raw[i] = (raw[i] + inverse[k, i]) % _PRIME
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
        # The proof: in whole numbers, for every class.
        same = True
        for g in range(indptr.size - 1):
            total = np.int64(0)
            for i in range(indptr[g], indptr[g + 1]):
                total += times[indices[i]] * data[i]
            if total != (parts if sums[t, g] else 0):
                same = False
                break
        if same:
            total = np.int64(0)
            for i in range(n_rows):
                total += times[i] * right[i]
            if total % parts == 0:
                value[t] = total // parts

"""Every partial assignment of some rows: which live cells it matches, and how much it says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._numba import kernel
from bayesrisk._validation import BoolArray, CodeArray, IntArray
from bayesrisk.reconstruction.claims.search import kernels
from bayesrisk.reconstruction.claims.search.kernels import Subsets as Subsets
from bayesrisk.reconstruction.claims.search.space import BlockSystem, ClaimSpace, Stated

# -----------------------------------------------------------------------------
# Which sums of classes are a combination of the published counts: found modulo a prime, proved.
#
# The rows are eliminated modulo a prime, which needs no large numbers.  What a sum is a combination
# of is read off there, made whole, and then checked in whole numbers for every class: the check is
# the proof, the prime only a way to find it.


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


# -----------------------------------------------------------------------------


def subsets(columns: Sequence[int], most: int) -> Subsets:
    """Return all sets of at least one and at most ``most`` columns."""
    bits = np.arange(1, 1 << len(columns), dtype=np.int64)
    bits = bits[np.bitwise_count(bits) <= most]
    position = np.full(1 << len(columns), -1, np.int64)
    position[bits] = np.arange(bits.size)
    last = bits & -bits
    lowest = np.round(np.log2(last)).astype(np.int64)
    return Subsets(np.asarray(columns, np.int64), bits, position, position[bits ^ last], lowest)


@dataclass(frozen=True)
class Supports:
    """Cells that patterns match; patterns that match the same ones have one number.

    Attributes
    ----------
    number : ndarray of int64
        Number of the support of each pattern.
    first : ndarray of int64
        First pattern of each number.
    size : ndarray of int64
        Cells of each number.
    """

    number: IntArray
    first: IntArray
    size: IntArray


def supports(codes: CodeArray, eligible: BoolArray, patterns: CodeArray) -> Supports:
    """Return the support of every pattern among eligible cells.

    Memory is a bit for each cell and code of an attribute, whatever the number of patterns.
    """
    base = _packed(eligible)
    most = np.maximum(codes.max(axis=0, initial=-1), patterns.max(axis=0, initial=-1))
    offset = np.concatenate([[0], np.cumsum(most.astype(np.int64) + 1)])
    bits = np.zeros((max(int(offset[-1]), 1), base.size), np.uint64)
    for a in range(codes.shape[1]):
        for code in np.unique(patterns[:, a]).tolist():
            if code >= 0:
                bits[offset[a] + code] = _packed(codes[:, a] == code)
    n = len(patterns)
    number, first, size = (np.zeros(n, np.int64) for _ in range(3))
    found = kernels.Numbering(
        number, first, size, np.empty(n, np.uint64), np.empty(2 * n + 1, np.int64)
    )
    count = kernels.pattern_supports(kernels.Cells(bits, offset, base), patterns, found)
    return Supports(number, first[:count], size[:count])


def _packed(chosen: BoolArray) -> NDArray[np.uint64]:
    """Return flags as bits of whole words."""
    padded = np.zeros(max(1, (chosen.size + 63) // 64) * 64, np.bool_)
    padded[: chosen.size] = chosen
    return np.packbits(padded, bitorder="little").view(np.uint64)


@dataclass(frozen=True)
class Universal:
    """What partial assignments say whatever was published.

    Attributes
    ----------
    size : ndarray of int64
        Possible eligible cells that match, (rows, sets).
    needed : ndarray of int64
        Smallest number of the columns that imply the others.
    """

    size: IntArray
    needed: IntArray


def universal(space: ClaimSpace, rows: NDArray[np.int16], sets: Subsets) -> Universal:
    """Return how many possible cells every set of columns of every row matches."""
    size = np.empty((len(rows), sets.bits.size), np.int64)
    needed = np.empty_like(size)
    kernels.lattice_counts(space.core, space.free_values, rows, sets, size, needed)
    return Universal(size, needed)


def matches(codes: NDArray[np.int16], patterns: NDArray[np.int16]) -> BoolArray:
    """Return which cells match each pattern; -1 in a pattern matches anything."""
    found = np.ones((len(patterns), len(codes)), np.bool_)
    for a in range(codes.shape[1]):
        asked = np.flatnonzero(patterns[:, a] >= 0)
        found[asked] &= codes[None, :, a] == patterns[asked, a, None]
    return found


# -----------------------------------------------------------------------------
# Claims that a table states itself: some of its cells, added up, are the claim.
#
# Where cells of a table overlap (totals and subtotals), cells are taken from the largest down, each
# that is inside the claim and apart from those taken: with nested cells this finds every sum.


def readable_here(
    space: ClaimSpace, system: BlockSystem, patterns: NDArray[np.int16], size: IntArray
) -> BoolArray:
    """Return which claims are sums of cells of one table, dead cells left out.

    Parameters
    ----------
    space : ClaimSpace
        Tables.
    system : BlockSystem
        The block.
    patterns : ndarray of int16
        Value of every attribute, -1 for any.
    size : ndarray of int64
        Live cells that match, for each claim.

    Returns
    -------
    ndarray of bool
        One answer for each claim; a claim that no live cell matches is a sum of no cells.
    """
    stated = space.stated(system.cells, system.published)
    return np.asarray((size == 0) | _sums(space, stated, system.cells, patterns, size), np.bool_)


def readable_everywhere(
    space: ClaimSpace, patterns: NDArray[np.int16], size: IntArray
) -> BoolArray:
    """Return which claims are sums of cells of one table whatever was published.

    Parameters
    ----------
    space : ClaimSpace
        Tables and possible cells.
    patterns : ndarray of int16
        Value of every attribute, -1 for any.
    size : ndarray of int64
        Possible cells that match, for each claim.

    Returns
    -------
    ndarray of bool
        One answer for each claim.
    """
    return _sums(space, space.constant, np.arange(len(space.codes)), patterns, size)


def _sums(
    space: ClaimSpace, stated: Stated, cells: IntArray, patterns: NDArray[np.int16], size: IntArray
) -> BoolArray:
    """Return which claims have the size of cells of one table that lie inside and apart."""
    value, width, table = stated.value, stated.width, space.table[stated.query]
    found = np.zeros(len(patterns), np.bool_)
    apart = np.where(space.overlapping[table], -1, width)
    kernels.sums_of_patterns(value, table, apart, patterns, size, found)
    for t in np.unique(table[space.overlapping[table]]).tolist():
        rows = np.flatnonzero((table == t) & (width > 0))
        order = rows[np.argsort(-width[rows], kind="stable")]
        for s in np.flatnonzero(~found).tolist():
            asked = patterns[s] >= 0
            inside = (value[order][:, asked] == patterns[s, asked]).all(axis=1)
            chosen: list[int] = []
            for q in order[inside].tolist():
                own = int(stated.query[q])
                if not any(space.overlap(own, int(stated.query[o]), cells) for o in chosen):
                    chosen.append(q)
            found[s] = int(width[chosen].sum()) == size[s]
    return found

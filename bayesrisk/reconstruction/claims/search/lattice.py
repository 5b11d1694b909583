"""Every partial assignment of some rows: which live cells it matches, and how much it says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import BoolArray, CodeArray, IntArray
from bayesrisk.reconstruction.claims.search import kernels
from bayesrisk.reconstruction.claims.search.kernels import Subsets as Subsets
from bayesrisk.reconstruction.claims.search.space import ClaimSpace


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

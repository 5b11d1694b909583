"""Every partial assignment of some rows: which live cells it matches, and how much it says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk.reconstruction.claims import _kernels as kernels
from bayesrisk.reconstruction.claims._space import ClaimSpace

__all__ = ["Subsets", "Supports", "Universal", "matches", "subsets", "supports", "universal"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Subsets:
    """Sets of columns, each made from a smaller one by adding its lowest column.

    Attributes
    ----------
    columns : ndarray of int64
        Positions of the columns in the schema.
    bits : ndarray of int64
        Each set as a bit mask over ``columns``, increasing; not the empty one.
    position : ndarray of int64
        Where each bit mask is among ``bits``, -1 where it is not.
    without, lowest : ndarray of int64
        The set without its lowest column (-1 for the empty set), and that column.
    """

    columns: Ints
    bits: Ints
    position: Ints
    without: Ints
    lowest: Ints

    @property
    def count(self) -> Ints:
        """Number of columns of each set."""
        return np.bitwise_count(self.bits).astype(np.int64)

    def member(self) -> Bools:
        """Return which columns are in each set, (sets, columns)."""
        return (self.bits[:, None] >> np.arange(self.columns.size) & 1).astype(np.bool_)


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
    """Live cells that partial assignments match; equal ones have one number.

    Attributes
    ----------
    number : ndarray of int64
        Number of the support of each row and set of columns.
    member : ndarray of bool
        Live cells of each support.
    """

    number: Ints
    member: Bools


def supports(
    codes: NDArray[np.int16], eligible: Bools, rows: NDArray[np.int16], sets: Subsets
) -> Supports:
    """Return the support of every set of columns of every row, among eligible cells."""
    n_words = max(1, (len(codes) + 63) // 64)
    base = np.zeros(n_words * 64, np.bool_)
    base[: len(codes)] = eligible
    words = np.packbits(base, bitorder="little").view(np.uint64)
    number = np.empty((len(rows), sets.bits.size), np.int64)
    size = 1024
    while True:  # ends: there is room for as many supports as there are sets of columns
        unique = np.empty((size, n_words), np.uint64)
        table = np.empty(4 * size, np.int64)
        count = kernels.lattice_supports(
            codes, words, rows, sets.columns, sets.without, sets.lowest, number, unique, table
        )
        if count >= 0:
            break
        size *= 4
    member = np.unpackbits(unique[:count].view(np.uint8), axis=1, bitorder="little")
    return Supports(number, member[:, : len(codes)].astype(np.bool_))


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

    size: Ints
    needed: Ints


def universal(space: ClaimSpace, rows: NDArray[np.int16], sets: Subsets) -> Universal:
    """Return how many possible cells every set of columns of every row matches."""
    size = np.empty((len(rows), sets.bits.size), np.int64)
    needed = np.empty_like(size)
    kernels.lattice_counts(
        space.core, rows, sets.columns, space.free_values,
        sets.bits, sets.position, sets.lowest, size, needed,
    )  # fmt: skip
    return Universal(size, needed)


def matches(codes: NDArray[np.int16], patterns: NDArray[np.int16]) -> Bools:
    """Return which cells match each pattern; -1 in a pattern matches anything."""
    found = np.ones((len(patterns), len(codes)), np.bool_)
    for a in range(codes.shape[1]):
        asked = np.flatnonzero(patterns[:, a] >= 0)
        found[asked] &= codes[None, :, a] == patterns[asked, a, None]
    return found

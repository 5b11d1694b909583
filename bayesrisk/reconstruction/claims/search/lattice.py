"""All partial assignments (subsets of columns) of rows: the cells they match, and their sizes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_step
from bayesrisk._base.validation import BoolArray, CodeArray, IntArray, WordArray
from bayesrisk.reconstruction.claims.search.space import ClaimSpace


class Subsets(NamedTuple):
    """All sets of columns, each with the smaller set that lacks its lowest column.

    ``columns`` are positions in the schema, ``bits`` the sets as bit masks over these,
    increasing, without the empty one; ``position`` is where each bit mask is among ``bits``, or
    -1; ``without`` is the set without its lowest column (-1 for the empty set), ``lowest`` that
    column.
    """

    columns: IntArray
    bits: IntArray
    position: IntArray
    without: IntArray
    lowest: IntArray

    def member(self) -> BoolArray:
        """Return a mask of the columns in each set (sets, columns)."""
        return (self.bits[:, None] >> np.arange(self.columns.size) & 1).astype(np.bool_)


def subsets(columns: Sequence[int], most: int) -> Subsets:
    """Return all non-empty sets of at most ``most`` columns."""
    bits = np.arange(1, 1 << len(columns), dtype=np.int64)
    bits = bits[np.bitwise_count(bits) <= most]
    position = np.full(1 << len(columns), -1, np.int64)
    position[bits] = np.arange(bits.size)
    last = bits & -bits
    lowest = np.round(np.log2(last)).astype(np.int64)
    return Subsets(np.asarray(columns, np.int64), bits, position, position[bits ^ last], lowest)


@lean_step
def _ones(word: np.uint64) -> np.int64:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


class CellBits(NamedTuple):
    """Bit masks of cells: those with code c of attribute a, ``bits[offset[a] + c]``."""

    bits: WordArray
    offset: IntArray
    base: WordArray


class Numbering(NamedTuple):
    """Numbers of patterns, equal for patterns that match the same cells.

    ``number`` is the number of each pattern. For each number, ``first`` is its first pattern and
    ``size`` its number of cells. ``hashes`` are its keys in ``table``, which must have more slots
    than there are patterns.
    """

    number: IntArray
    first: IntArray
    size: IntArray
    hashes: WordArray
    table: IntArray


@lean_step
def _support(cells: CellBits, pattern: CodeArray, out: WordArray) -> np.uint64:
    """Fill ``out`` with the eligible cells that match a pattern; return a hash of them."""
    for w in range(out.size):
        out[w] = cells.base[w]
    for a in range(pattern.size):
        if pattern[a] >= 0:
            row = cells.bits[cells.offset[a] + pattern[a]]
            for w in range(out.size):
                out[w] &= row[w]
    # FNV-1a over the words, mixed: equal supports have equal hashes; the rest is compared.
    hashed = np.uint64(1469598103934665603)
    for w in range(out.size):
        hashed = (hashed ^ out[w]) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
    return hashed


@kernel
def pattern_supports(cells: CellBits, patterns: CodeArray, supports: Numbering) -> int:
    """Assign equal numbers to patterns with equal eligible cells; return their number."""
    number, first, size, hashes, table = supports
    support, other = np.empty(cells.base.size, np.uint64), np.empty(cells.base.size, np.uint64)
    slots = table.size
    table[:] = -1
    count = 0
    for s in range(patterns.shape[0]):
        hashed = _support(cells, patterns[s], support)
        slot = np.int64(hashed % np.uint64(slots))
        while True:  # ends: more slots than patterns
            entry = table[slot]
            if entry < 0:
                table[slot], number[s] = count, count
                first[count], hashes[count], size[count] = s, hashed, 0
                for w in range(support.size):
                    size[count] += _ones(support[w])
                count += 1
                break
            if hashes[entry] == hashed:
                _support(cells, patterns[first[entry]], other)
                if np.array_equal(support, other):
                    number[s] = entry
                    break
            slot = (slot + 1) % slots
    return count


def supports(
    codes: CodeArray, eligible: BoolArray, patterns: CodeArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return each pattern's number, equal for patterns that match the same eligible cells.

    It also returns the first pattern of each number, and the number of cells it matches. Memory is
    a bit for each cell and code of an attribute, for any number of patterns.
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
    numbering = Numbering(
        number, first, size, np.empty(n, np.uint64), np.empty(2 * n + 1, np.int64)
    )
    count = pattern_supports(CellBits(bits, offset, base), patterns, numbering)
    return number, first[:count], size[:count]


def _packed(chosen: BoolArray) -> WordArray:
    """Return flags packed as bits into 64-bit words."""
    padded = np.zeros(max(1, (chosen.size + 63) // 64) * 64, np.bool_)
    padded[: chosen.size] = chosen
    return np.packbits(padded, bitorder="little").view(np.uint64)


@kernel
def lattice_counts(
    core: CodeArray,
    free_values: IntArray,
    rows: CodeArray,
    sets: Subsets,
    out: IntArray,
    needed: IntArray,
) -> None:
    """Count the possible cells that agree with each row on every subset of columns.

    ``core`` lists combinations of the attributes that depend on each other; the others (-1)
    multiply the count by their number of values unless they are in the subset.  ``needed`` is the
    size of the smallest subset with the same cells.  Subsets are ordered by their bit masks, so
    that each comes after its own subsets; those with a column that a row leaves open (-1) are
    skipped.
    """
    columns, set_bits, position, lowest = sets.columns, sets.bits, sets.position, sets.lowest
    n_words = (core.shape[0] + 63) // 64
    bits = np.zeros((columns.size, n_words), np.uint64)
    matched = np.zeros((set_bits.size, n_words), np.uint64)
    total = np.int64(1)
    for a in range(free_values.size):
        total *= free_values[a]
    base = np.zeros(n_words, np.uint64)
    for cell in range(core.shape[0]):
        base[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
    everything = total * core.shape[0]
    times = np.empty(set_bits.size, np.int64)
    for r in range(rows.shape[0]):
        # The cells that agree with the row, for each column on its own, and its given columns.
        bits[:] = 0
        present = np.int64(0)
        for c in range(columns.size):
            code = rows[r, columns[c]]
            if code >= 0:
                present |= np.int64(1) << c
            for cell in range(core.shape[0]):
                if core[cell, columns[c]] == code or core[cell, columns[c]] < 0:
                    bits[c, cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
        # Cells of a set are those of the set without its lowest column, and of that column.
        for s in range(set_bits.size):
            if set_bits[s] & present != set_bits[s]:
                continue
            smaller = position[set_bits[s] ^ (np.int64(1) << lowest[s])]
            before = base if smaller < 0 else matched[smaller]
            count = np.int64(0)
            for w in range(n_words):
                matched[s, w] = before[w] & bits[lowest[s], w]
                count += _ones(matched[s, w])
            times[s] = (total if smaller < 0 else times[smaller]) // free_values[columns[lowest[s]]]
            out[r, s] = count * times[s]
            # needed(s) = min over c in s of needed(s - c) where s - c has as many cells; else |s|.
            least = np.int64(0)
            for c in range(columns.size):
                if set_bits[s] >> c & 1:
                    least += 1
            for c in range(columns.size):
                if set_bits[s] >> c & 1:
                    smaller = position[set_bits[s] ^ (np.int64(1) << c)]
                    if smaller < 0:
                        if out[r, s] == everything:
                            least = np.int64(0)
                    elif out[r, smaller] == out[r, s] and needed[r, smaller] < least:
                        least = needed[r, smaller]
            needed[r, s] = least


def universal(space: ClaimSpace, rows: CodeArray, sets: Subsets) -> tuple[IntArray, IntArray]:
    """Return sizes (rows, sets) of partial assignments, for any published counts.

    The sizes are the number of matching eligible cells, and the smallest number of columns that
    imply the others.
    """
    size = np.empty((len(rows), sets.bits.size), np.int64)
    needed = np.empty_like(size)
    lattice_counts(space.core, space.free_values, rows, sets, size, needed)
    return size, needed


def matches(codes: CodeArray, patterns: CodeArray) -> BoolArray:
    """Return a mask (patterns, cells) of the cells that match each pattern; -1 matches any code."""
    matched = np.ones((len(patterns), len(codes)), np.bool_)
    for a in range(codes.shape[1]):
        stated = np.flatnonzero(patterns[:, a] >= 0)
        matched[stated] &= codes[None, :, a] == patterns[stated, a, None]
    return matched


@kernel
def pattern_counts(patterns: CodeArray, rows: CodeArray, weight: IntArray, out: IntArray) -> None:
    """Add up the weights of the rows that match each pattern; -1 matches any code."""
    columns = np.empty(patterns.shape[1], np.int64)
    for s in range(patterns.shape[0]):
        n_columns = 0
        for a in range(patterns.shape[1]):
            if patterns[s, a] >= 0:
                columns[n_columns] = a
                n_columns += 1
        # Rows differ soon: the first column that does ends a comparison.
        total = np.int64(0)
        for r in range(rows.shape[0]):
            equal = True
            for i in range(n_columns):
                if rows[r, columns[i]] != patterns[s, columns[i]]:
                    equal = False
                    break
            if equal:
                total += weight[r]
        out[s] = total

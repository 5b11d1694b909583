"""Compiled parts of claims: live cells, supports as bitsets, and counts of patterns."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrisk._numba import kernel
from bayesrisk._validation import BoolArray, CodeArray, IntArray, WordArray


@kernel
def live_cells(place: NDArray[np.int32], mask: BoolArray, start: IntArray) -> IntArray:
    """Return the cells whose place is open in the mask of every family."""
    n_families, n_cells = place.shape
    found = np.empty(n_cells, np.int64)
    count = 0
    for cell in range(n_cells):
        live = True
        for f in range(n_families):
            if not mask[start[f] + place[f, cell]]:
                live = False
                break
        if live:
            found[count] = cell
            count += 1
    return found[:count].copy()


@kernel
def _ones(word: np.uint64) -> np.int64:
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _column_bits(codes: CodeArray, row: CodeArray, columns: IntArray, out: WordArray) -> None:
    """Set the bits of the cells that agree with a row, for each column on its own."""
    out[:] = 0
    for c in range(columns.size):
        a = columns[c]
        for cell in range(codes.shape[0]):
            if codes[cell, a] == row[a] or codes[cell, a] < 0:
                out[c, cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)


class Cells(NamedTuple):
    """Cells as bits: those with code c of attribute a, ``bits[offset[a] + c]``; the eligible."""

    bits: WordArray
    offset: IntArray
    base: WordArray


class Numbering(NamedTuple):
    """One number for the patterns that match the same cells.

    ``number`` is that of each pattern.  Of each number, ``first`` is the first pattern, ``size``
    its cells and ``hashes`` what they are found by in ``table``, which must have more slots than
    there are patterns.
    """

    number: IntArray
    first: IntArray
    size: IntArray
    hashes: WordArray
    table: IntArray


@kernel
def _support(cells: Cells, pattern: CodeArray, out: WordArray) -> np.uint64:
    """Fill in the eligible cells that match a pattern; return a number made of them."""
    out[:] = cells.base
    for a in range(pattern.size):
        if pattern[a] >= 0:
            own = cells.bits[cells.offset[a] + pattern[a]]
            for w in range(out.size):
                out[w] &= own[w]
    hashed = np.uint64(1469598103934665603)
    for w in range(out.size):
        hashed = (hashed ^ out[w]) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
    return hashed


@kernel
def pattern_supports(cells: Cells, patterns: CodeArray, found: Numbering) -> int:
    """Give patterns that match the same eligible cells one number; return how many there are."""
    number, first, size, hashes, table = found
    own, other = np.empty(cells.base.size, np.uint64), np.empty(cells.base.size, np.uint64)
    slots = table.size
    table[:] = -1
    count = 0
    for s in range(patterns.shape[0]):
        hashed = _support(cells, patterns[s], own)
        slot = np.int64(hashed % np.uint64(slots))
        while True:  # ends: more slots than patterns
            at = table[slot]
            if at < 0:
                table[slot], number[s] = count, count
                first[count], hashes[count], size[count] = s, hashed, 0
                for w in range(own.size):
                    size[count] += _ones(own[w])
                count += 1
                break
            if hashes[at] == hashed:
                _support(cells, patterns[first[at]], other)
                if np.array_equal(own, other):
                    number[s] = at
                    break
            slot = (slot + 1) % slots
    return count


class Subsets(NamedTuple):
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

    columns: IntArray
    bits: IntArray
    position: IntArray
    without: IntArray
    lowest: IntArray

    def member(self) -> BoolArray:
        """Return which columns are in each set, (sets, columns)."""
        return (self.bits[:, None] >> np.arange(self.columns.size) & 1).astype(np.bool_)


@kernel
def lattice_counts(
    core: CodeArray,
    free_values: IntArray,
    rows: CodeArray,
    sets: Subsets,
    out: IntArray,
    needed: IntArray,
) -> None:
    """Count the possible cells that agree with every subset of columns of every row.

    ``core`` lists combinations of the attributes that depend on each other; the others (-1)
    multiply the count by their number of values unless they are in the subset.  ``needed`` is the
    size of the smallest subset with the same cells.  Subsets are ordered by their bit masks, so
    that each comes after its own subsets; those with a column that a row leaves open (-1) are
    skipped.
    """
    columns, bits_of, position, lowest = sets.columns, sets.bits, sets.position, sets.lowest
    n_words = (core.shape[0] + 63) // 64
    bits = np.zeros((columns.size, n_words), np.uint64)
    own = np.zeros((bits_of.size, n_words), np.uint64)
    total = np.int64(1)
    for a in range(free_values.size):
        total *= free_values[a]
    base = np.zeros(n_words, np.uint64)
    for cell in range(core.shape[0]):
        base[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
    everything = total * core.shape[0]
    times = np.empty(bits_of.size, np.int64)
    for r in range(rows.shape[0]):
        _column_bits(core, rows[r], columns, bits)
        given = np.int64(0)
        for c in range(columns.size):
            if rows[r, columns[c]] >= 0:
                given |= np.int64(1) << c
        for s in range(bits_of.size):
            if bits_of[s] & given != bits_of[s]:
                continue
            smaller = position[bits_of[s] ^ (np.int64(1) << lowest[s])]
            before = base if smaller < 0 else own[smaller]
            count = np.int64(0)
            for w in range(n_words):
                own[s, w] = before[w] & bits[lowest[s], w]
                count += _ones(own[s, w])
            times[s] = (total if smaller < 0 else times[smaller]) // free_values[columns[lowest[s]]]
            out[r, s] = count * times[s]
            least = np.int64(0)
            for c in range(columns.size):
                if bits_of[s] >> c & 1:
                    least += 1
            for c in range(columns.size):
                if bits_of[s] >> c & 1:
                    smaller = position[bits_of[s] ^ (np.int64(1) << c)]
                    if smaller < 0:
                        if out[r, s] == everything:
                            least = np.int64(0)
                    elif out[r, smaller] == out[r, s] and needed[r, smaller] < least:
                        least = needed[r, smaller]
            needed[r, s] = least


@kernel
def common_values(
    weight: CodeArray,
    place: IntArray,
    codes: CodeArray,
    eligible: BoolArray,
    value: CodeArray,
    width: IntArray,
) -> None:
    """Fill in the code that all cells of each published cell share, and how many they are.

    ``place`` says where among the columns of ``weight`` each cell lies.  The width is -1 for
    published cells that count a cell more than once, or one that is not eligible, or none.
    """
    n_places, n_codes = weight.shape[1], codes.shape[1]
    common = np.full((n_places, n_codes), -2, np.int16)
    number, plain = np.zeros(n_places, np.int64), np.ones(n_places, np.bool_)
    for cell in range(place.size):
        p = place[cell]
        number[p] += 1
        plain[p] &= eligible[cell]
        for a in range(n_codes):
            if common[p, a] == -2:
                common[p, a] = codes[cell, a]
            elif common[p, a] != codes[cell, a]:
                common[p, a] = -1
    for q in range(weight.shape[0]):
        total = np.int64(0)
        value[q, :] = -2
        for p in range(n_places):
            if weight[q, p] == 0 or number[p] == 0:
                continue
            if weight[q, p] > 1 or not plain[p]:
                total = np.int64(-1)
                break
            total += number[p]
            for a in range(n_codes):
                if value[q, a] == -2:
                    value[q, a] = common[p, a]
                elif value[q, a] != common[p, a]:
                    value[q, a] = -1
        width[q] = total if total > 0 else -1
        for a in range(n_codes):
            if width[q] < 0 or value[q, a] == -2:
                value[q, a] = -1


@kernel
def sums_of_patterns(
    value: CodeArray,
    table: IntArray,
    width: IntArray,
    patterns: CodeArray,
    size: IntArray,
    out: BoolArray,
) -> None:
    """Say which patterns have the size of the cells of one table that lie inside them.

    ``value`` is what all records of a cell have in each attribute, -1 where they differ.
    """
    asked = np.empty(patterns.shape[1], np.int64)
    for s in range(patterns.shape[0]):
        n_asked = 0
        for a in range(patterns.shape[1]):
            if patterns[s, a] >= 0:
                asked[n_asked] = a
                n_asked += 1
        total, before = np.int64(0), np.int64(-1)
        out[s] = False
        for q in range(value.shape[0]):
            if table[q] != before:
                total, before = np.int64(0), table[q]
            if width[q] < 0 or width[q] > size[s]:
                continue
            inside = True
            for i in range(n_asked):
                if value[q, asked[i]] != patterns[s, asked[i]]:
                    inside = False
                    break
            if inside:
                total += width[q]
                if total == size[s]:
                    out[s] = True
                    break


@kernel
def pattern_counts(patterns: CodeArray, rows: CodeArray, weight: IntArray, out: IntArray) -> None:
    """Add up the weights of the rows that match each pattern; -1 in a pattern matches anything."""
    asked = np.empty(patterns.shape[1], np.int64)
    for s in range(patterns.shape[0]):
        n_asked = 0
        for a in range(patterns.shape[1]):
            if patterns[s, a] >= 0:
                asked[n_asked] = a
                n_asked += 1
        total = np.int64(0)
        for r in range(rows.shape[0]):
            same = True
            for i in range(n_asked):
                if rows[r, asked[i]] != patterns[s, asked[i]]:
                    same = False
                    break
            if same:
                total += weight[r]
        out[s] = total

"""Compiled parts of claims: live cells, supports as bitsets, and elimination in whole numbers."""

import numpy as np
from numpy.typing import NDArray

from bayesrisk._numba import kernel

__all__ = [
    "eliminate",
    "lattice_counts",
    "lattice_supports",
    "live_cells",
    "pattern_counts",
    "reduce_rows",
    "sums_of_cells",
    "sums_of_patterns",
]

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

#: Largest entry of an elimination; products of two of them stay below 2**62.
LARGEST = 2**30


@kernel
def live_cells(place: NDArray[np.int32], mask: NDArray[np.bool_], start: Ints) -> Ints:
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
def _column_bits(
    codes: NDArray[np.int16], row: NDArray[np.int16], columns: Ints, out: Words
) -> None:
    """Set the bits of the cells that agree with a row, for each column on its own."""
    out[:] = 0
    for c in range(columns.size):
        a = columns[c]
        for cell in range(codes.shape[0]):
            if codes[cell, a] == row[a] or codes[cell, a] < 0:
                out[c, cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)


@kernel
def lattice_supports(
    codes: NDArray[np.int16],
    base: Words,
    rows: NDArray[np.int16],
    columns: Ints,
    without: Ints,
    lowest: Ints,
    support: Ints,
    unique: Words,
    table: Ints,
) -> int:
    """Fill in the support of every subset of columns of every row; return how many there are.

    A subset is made from the one ``without`` its ``lowest`` column (-1: from all cells of
    ``base``).  Equal supports get one number.  Returns -1 when ``unique`` is too small.
    """
    n_words = base.size
    bits = np.zeros((columns.size, n_words), np.uint64)
    own = np.zeros((without.size, n_words), np.uint64)
    slots = table.size
    table[:] = -1
    count = 0
    for r in range(rows.shape[0]):
        _column_bits(codes, rows[r], columns, bits)
        for s in range(without.size):
            before = base if without[s] < 0 else own[without[s]]
            hashed = np.uint64(1469598103934665603)
            for w in range(n_words):
                word = before[w] & bits[lowest[s], w]
                own[s, w] = word
                hashed = (hashed ^ word) * np.uint64(0x9E3779B97F4A7C15)
                hashed ^= hashed >> np.uint64(29)
            slot = np.int64(hashed % np.uint64(slots))
            while True:  # ends: at most half of the slots are in use
                at = table[slot]
                if at < 0:
                    if count == unique.shape[0] or 2 * count > slots:
                        return -1
                    table[slot] = count
                    unique[count] = own[s]
                    support[r, s] = count
                    count += 1
                    break
                same = True
                for w in range(n_words):
                    if unique[at, w] != own[s, w]:
                        same = False
                        break
                if same:
                    support[r, s] = at
                    break
                slot = (slot + 1) % slots
    return count


@kernel
def lattice_counts(
    core: NDArray[np.int16],
    rows: NDArray[np.int16],
    columns: Ints,
    free_values: Ints,
    bits_of: Ints,
    position: Ints,
    lowest: Ints,
    out: Ints,
    needed: Ints,
) -> None:
    """Count the possible cells that agree with every subset of columns of every row.

    ``core`` lists combinations of the attributes that depend on each other; the others (-1)
    multiply the count by their number of values unless they are in the subset.  ``needed`` is the
    size of the smallest subset with the same cells.  Subsets are ordered by their bit masks, so
    that each comes after its own subsets; those with a column that a row leaves open (-1) are
    skipped.
    """
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
def _gcd(a: np.int64, b: np.int64) -> np.int64:
    while b:
        a, b = b, a % b
    return abs(a)


@kernel
def eliminate(matrix: Ints, n_columns: int, pivots: Ints) -> int:
    """Reduce whole-numbered rows in place to echelon form, each column of a pivot else zero.

    The columns from ``n_columns`` on are carried along.  Every step adds multiples of rows, so
    that the reduced rows are combinations of the given ones, exactly.  Returns the rank, with the
    pivots' columns in ``pivots``, or -1 when an entry becomes too large.
    """
    n_rows, width = matrix.shape
    for r in range(n_rows):
        for c in range(width):
            if abs(matrix[r, c]) > LARGEST:
                return -1
    used = np.zeros(n_rows, np.bool_)
    rank = 0
    for column in range(n_columns):
        best, size = -1, np.int64(0)
        for r in range(n_rows):
            value = abs(matrix[r, column])
            if not used[r] and value and (best < 0 or value < size):
                best, size = r, value
        if best < 0:
            continue
        used[best] = True
        pivots[best] = column
        rank += 1
        head = matrix[best, column]
        for r in range(n_rows):
            if r == best or matrix[r, column] == 0:
                continue
            common = _gcd(head, matrix[r, column])
            keep, take = head // common, matrix[r, column] // common
            shared = np.int64(0)
            for c in range(width):
                value = keep * matrix[r, c] - take * matrix[best, c]
                if abs(value) > LARGEST:
                    return -1
                matrix[r, c] = value
                if shared != 1 and value:
                    shared = _gcd(shared, value)
            if shared > 1:
                for c in range(width):
                    matrix[r, c] //= shared
    return rank


@kernel
def reduce_rows(matrix: Ints, pivots: Ints, n_columns: int, targets: Ints, value: Ints) -> None:
    """Say for each target row whether it is a combination of the reduced rows, and of what value.

    ``value`` becomes the combination of the last column, or -1 where the target is none, or where
    an entry becomes too large.
    """
    width = n_columns + 1
    rest = np.empty(width, np.int64)
    for t in range(targets.shape[0]):
        scale = np.int64(1)
        rest[:n_columns] = targets[t]
        rest[n_columns] = 0
        fine = True
        for r in range(matrix.shape[0]):
            if pivots[r] < 0 or rest[pivots[r]] == 0:
                continue
            head = matrix[r, pivots[r]]
            common = _gcd(head, rest[pivots[r]])
            keep, take = head // common, rest[pivots[r]] // common
            scale *= keep
            if abs(scale) > LARGEST:
                fine = False
                break
            for c in range(width):
                rest[c] = keep * rest[c] - take * matrix[r, c]
                if abs(rest[c]) > LARGEST:
                    fine = False
                    break
            if not fine:
                break
        value[t] = -1
        if fine:
            zero = True
            for c in range(n_columns):
                if rest[c] != 0:
                    zero = False
                    break
            if zero and (-rest[n_columns]) % scale == 0:
                value[t] = (-rest[n_columns]) // scale


@kernel
def sums_of_cells(
    member: NDArray[np.bool_],
    table: Ints,
    width: Ints,
    every: NDArray[np.bool_],
    size: Ints,
    out: NDArray[np.bool_],
) -> None:
    """Say which sums of classes have the size of the cells of one table that lie inside them.

    Rows of ``member`` (cells of tables, classes) are sorted by table; a negative width leaves a
    cell out.
    """
    for s in range(every.shape[0]):
        total, before = np.int64(0), np.int64(-1)
        out[s] = size[s] == 0
        for q in range(member.shape[0]):
            if table[q] != before:
                total, before = np.int64(0), table[q]
            if width[q] < 0 or width[q] > size[s]:
                continue
            inside = True
            for g in range(member.shape[1]):
                if member[q, g] and not every[s, g]:
                    inside = False
                    break
            if inside:
                total += width[q]
                if total == size[s]:
                    out[s] = True
                    break


@kernel
def sums_of_patterns(
    value: NDArray[np.int16],
    table: Ints,
    width: Ints,
    patterns: NDArray[np.int16],
    size: Ints,
    out: NDArray[np.bool_],
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
def pattern_counts(
    patterns: NDArray[np.int16], rows: NDArray[np.int16], weight: Ints, out: Ints
) -> None:
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

"""Matching of records without replacement, in passes of decreasing detail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.compiling import kernel
from bayesrisk._base.display import displayed
from bayesrisk._base.randomness import Seed, generator
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError

_DIGIT = 11  # bits of a pass: the 2,048 counters stay in the first-level cache
_BUCKETS = 1 << _DIGIT
_MASK = _BUCKETS - 1


@kernel
def _sort_keys(
    keys: IntArray, order: IntArray, spare_keys: IntArray, spare_order: IntArray, bits: int
) -> None:
    """Sort ``keys`` (non-negative, below ``2**bits``) and ``order`` in place, stably."""
    n = keys.size
    start = np.empty(_BUCKETS, np.int64)
    for shift in range(0, bits, _DIGIT):
        start[:] = 0
        # How many keys have each digit, then where the first of each goes: sums before it.
        for i in range(n):
            start[(keys[i] >> shift) & _MASK] += 1
        total = 0
        for b in range(_BUCKETS):
            total, start[b] = total + start[b], total
        # Each goes to the next place of its digit, in the order so far: the sort is stable.
        for i in range(n):
            b = (keys[i] >> shift) & _MASK
            spare_keys[start[b]] = keys[i]
            spare_order[start[b]] = order[i]
            start[b] += 1
        for i in range(n):
            keys[i], order[i] = spare_keys[i], spare_order[i]


@kernel
def _match_sorted(
    left: IntArray,
    left_order: IntArray,
    left_uniform: FloatArray,
    right: IntArray,
    right_order: IntArray,
    right_uniform: FloatArray,
    left_out: IntArray,
    right_out: IntArray,
) -> int:
    """Pair records of equal key at random, without replacement; return the number of pairs."""
    i = j = pairs = 0
    while i < left.size and j < right.size:
        if left[i] < right[j]:
            i += 1
        elif left[i] > right[j]:
            j += 1
        else:
            # Runs of one key; min(m, n) of their records are paired after a shuffle of both.
            key = left[i]
            i_end = i
            while i_end < left.size and left[i_end] == key:
                i_end += 1
            j_end = j
            while j_end < right.size and right[j_end] == key:
                j_end += 1
            # Fisher and Yates, from the front.
            for k in range(i, i_end - 1):
                other = k + int(left_uniform[k] * (i_end - k))
                left_order[k], left_order[other] = left_order[other], left_order[k]
            for k in range(j, j_end - 1):
                other = k + int(right_uniform[k] * (j_end - k))
                right_order[k], right_order[other] = right_order[other], right_order[k]
            for k in range(min(i_end - i, j_end - j)):
                left_out[pairs] = left_order[i + k]
                right_out[pairs] = right_order[j + k]
                pairs += 1
            i = i_end
            j = j_end
    return pairs


# -----------------------------------------------------------------------------
# Matching records without replacement, in passes of decreasing detail (Algorithms 1 and 2).
#
# The published algorithm walks over both files in order, which is quadratic in a block and lets
# the order of a file decide which of several equal records is taken.  Here every key is a number,
# both files are sorted by it, and equal records are paired at random: the number of pairs of a key
# is the smaller of its two multiplicities, which is what the published loop finds too.


#: A table of records: a data frame, or columns by name.
Columns = pd.DataFrame | Mapping[str, Any]
_LARGEST = 2**62
_Rows = IntArray | None


@displayed
@dataclass(frozen=True)
class Matching:
    """Pairs of records from two files, with each record in at most one pair.

    ``left`` and ``right`` are positions of the records of each pair, in the order of the passes.
    ``match_pass`` is the pass that found the pair, 0 for the first of the ``keys``.
    """

    left: IntArray
    right: IntArray
    match_pass: NDArray[np.int8]
    keys: tuple[tuple[str, ...], ...]

    def counts(self) -> IntArray:
        """Return the number of pairs of each pass."""
        return np.bincount(self.match_pass, minlength=len(self.keys)).astype(np.int64)


def match_records(
    left: Columns, right: Columns, *, keys: Sequence[Sequence[str]], rng: Seed
) -> Matching:
    """Return random pairs of records that agree on each key in turn, without replacement.

    Records that agree on the first key are paired; the remaining records are paired on the second,
    and so on (Abowd et al. 2023, Algorithms 1 to 4). The choice among equal records is uniform.
    Each pass takes two radix sorts and one walk, in time linear in the records.

    Parameters
    ----------
    left, right : pandas.DataFrame or mapping of str to array
        The files; columns hold whole numbers or text, without missing values.
    keys : sequence of sequences of str
        Columns compared in each pass, present in both files.
    rng : Generator or int
        Source of the choice among equal records.

    Examples
    --------
    >>> left = {"block": [1, 1, 2], "age": [30, 31, 40]}
    >>> right = {"block": [1, 1, 2], "age": [31, 33, 40]}
    >>> found = match_records(left, right, keys=[("block", "age"), ("block",)], rng=1)
    >>> found.counts()
    array([2, 1])
    """
    passes = tuple(check.texts(key, "keys") for key in check.items(keys, "keys"))
    if not passes or not all(passes):
        raise ArgumentError("keys", "must name at least one column for each pass", got=keys)
    random = generator(rng)
    left, right = (
        table if isinstance(table, Mapping) else check.frame(table, side)
        for table, side in ((left, "left"), (right, "right"))
    )
    for table, side in ((left, "left"), (right, "right")):
        _check_columns(table, passes, side)
    # Positions of what is still unmatched; None stands for everything, and saves a copy.
    rest: list[_Rows] = [None, None]
    links = []
    for number, key in enumerate(passes):
        codes, bits = _encode((left, right), key, rest)
        pair = _match(codes[0], codes[1], bits, random)
        rows = [m if r is None else r[m] for r, m in zip(rest, pair, strict=True)]
        links.append((rows[0], rows[1], np.full(rows[0].size, number, np.int8)))
        free = [np.delete(np.arange(c.size), m) for m, c in zip(pair, codes, strict=True)]
        rest = [f if r is None else r[f] for r, f in zip(rest, free, strict=True)]
    matched_left, matched_right, match_pass = (
        np.concatenate(parts) for parts in zip(*links, strict=True)
    )
    return Matching(matched_left, matched_right, match_pass, passes)


def _match(
    left: IntArray, right: IntArray, bits: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    pairs = min(left.size, right.size)
    out = np.empty((2, pairs), np.int64)
    sides = []
    for keys in (left, right):
        order = np.arange(keys.size, dtype=np.int64)
        _sort_keys(keys, order, np.empty_like(keys), np.empty_like(order), bits)
        sides.append((keys, order, rng.random(keys.size)))
    n = _match_sorted(*sides[0], *sides[1], out[0], out[1])
    return out[0, :n], out[1, :n]


def _check_columns(table: Columns, passes: tuple[tuple[str, ...], ...], side: str) -> None:
    """Raise if a file lacks columns of some pass, or if columns differ in length."""
    wanted = sorted({name for key in passes for name in key})
    missing = [name for name in wanted if name not in table]
    if missing:
        raise ArgumentError(f"{side} must have the columns {wanted}, it lacks {missing}")
    lengths = {name: len(table[name]) for name in wanted}
    if len(set(lengths.values())) > 1:
        raise ShapeError("columns", f"of {side} must have one length", shown=lengths)


def _encode(
    tables: tuple[Columns, Columns], key: tuple[str, ...], rest: list[_Rows]
) -> tuple[list[IntArray], int]:
    """Return a code for each remaining record, equal if all key columns are, and its bit length."""
    codes: list[IntArray] = []
    span = 1
    for name in key:
        columns = _numbers([table[name] for table in tables], name, rest)
        full = [column for column in columns if column.size]
        lowest = min((int(column.min()) for column in full), default=0)
        width = max((int(column.max()) for column in full), default=0) - lowest + 1
        if span * width >= _LARGEST:  # numbers far apart: number the distinct ones
            codes, columns = _renumber(codes), _renumber(columns)
            span = 1 + max(int(c.max()) for c in codes if c.size)
            lowest, width = 0, 1 + max(int(c.max()) for c in columns if c.size)
        if not codes:
            codes = [np.subtract(column, lowest, dtype=np.int64) for column in columns]
        else:
            for code, column in zip(codes, columns, strict=True):
                code *= width
                code += column
                code -= lowest
        span *= width
    return codes, max(span - 1, 1).bit_length()


def _renumber(sides: list[NDArray[Any]]) -> list[IntArray]:
    """Return consecutive numbers for the distinct values of both sides."""
    if not sides:
        return []
    numbers = np.unique(np.concatenate(sides), return_inverse=True)[1].astype(np.int64)
    return [numbers[: sides[0].size], numbers[sides[0].size :]]


def _numbers(columns: list[Any], name: str, rest: list[_Rows]) -> list[NDArray[Any]]:
    """Return a column of both files as numbers, with text numbered jointly."""
    arrays = [pd.Series(column, copy=False).array for column in columns]
    if all(pd.api.types.is_integer_dtype(a.dtype) for a in arrays):
        if any(a.isna().any() for a in arrays if not isinstance(a, pd.arrays.NumpyExtensionArray)):
            raise ArgumentError(f"column {name!r} must have no missing values")
        sides = [
            a.to_numpy() if isinstance(a, pd.arrays.NumpyExtensionArray) else a.to_numpy(np.int64)
            for a in arrays
        ]
    elif all(pd.api.types.infer_dtype(pd.Series(a)) in ("string", "empty") for a in arrays):
        values = pd.concat([pd.Series(a) for a in arrays], ignore_index=True)
        numbers = pd.factorize(values)[0]
        if (numbers < 0).any():
            raise ArgumentError(f"column {name!r} must have no missing values")
        sides = [numbers[: len(arrays[0])], numbers[len(arrays[0]) :]]
    else:
        raise ArgumentTypeError(
            f"column {name!r} must hold whole numbers in both files, or text in both; "
            f"got {arrays[0].dtype} and {arrays[1].dtype}"
        )
    return [side if rows is None else side[rows] for side, rows in zip(sides, rest, strict=True)]

"""Matching records without replacement, in passes of decreasing detail (Algorithms 1 and 2).

The published algorithm walks over both files in order, which is quadratic in a block and lets the
order of a file decide which of several equal records is taken.  Here every key is a number, both
files are sorted by it, and equal records are paired at random: the number of pairs of a key is the
smaller of its two multiplicities, which is what the published loop finds too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import Seed, generator
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError
from bayesrisk.reconstruction.linkage import _matching_kernels as kernels

#: A table of records: a data frame, or columns by name.
Columns = pd.DataFrame | Mapping[str, Any]
_LARGEST = 2**62
_Rows = NDArray[np.int64] | None


@displayed
@dataclass(frozen=True)
class Matching:
    """Pairs of records of two files, each record in at most one pair.

    Attributes
    ----------
    left, right : ndarray of int64
        Positions of the records of each pair, in the order of the passes.
    match_pass : ndarray of int8
        The pass (0 for the first key) that found the pair.
    keys : tuple of tuple of str
        The columns compared in each pass.
    n_left, n_right : int
        Records in the two files.
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    match_pass: NDArray[np.int8]
    keys: tuple[tuple[str, ...], ...]
    n_left: int
    n_right: int

    def counts(self) -> NDArray[np.int64]:
        """Return how many pairs each pass found."""
        return np.bincount(self.match_pass, minlength=len(self.keys)).astype(np.int64)


def match_records(
    left: Columns,
    right: Columns,
    *,
    keys: Sequence[Sequence[str]],
    rng: Seed,
) -> Matching:
    """Match the records of two files exactly on each key in turn, without replacement.

    Records equal on the first key are paired; what is left over is paired on the second, and so
    on (Abowd et al. 2023, Algorithms 1 to 4).  Among equal records the choice is uniform.  Two
    radix sorts and one walk for each pass: linear in the records.

    Parameters
    ----------
    left, right : pandas.DataFrame or mapping of str to array
        The files; columns hold whole numbers or text, without missing values.
    keys : sequence of sequences of str
        Columns compared in each pass, present in both files.
    rng : Generator or int
        Source of the choice among equal records.

    Returns
    -------
    Matching
        The pairs, with the pass that found each.

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
        raise ArgumentError(f"keys must name at least one column for each pass, got {shown(keys)}")
    random = generator(rng)
    n_left, n_right = _length(left, passes, "left"), _length(right, passes, "right")
    # Positions of what is still unmatched; None stands for everything, and saves a copy.
    rest: list[_Rows] = [None, None]
    found = []
    for number, key in enumerate(passes):
        codes, bits = _encode((left, right), key, rest)
        pair = _match(codes[0], codes[1], bits, random)
        rows = [m if r is None else r[m] for r, m in zip(rest, pair, strict=True)]
        found.append((rows[0], rows[1], np.full(rows[0].size, number, np.int8)))
        rest = [_left_over(r, m, c.size) for r, m, c in zip(rest, pair, codes, strict=True)]
    matched_left, matched_right, match_pass = (
        np.concatenate(parts) for parts in zip(*found, strict=True)
    )
    return Matching(matched_left, matched_right, match_pass, passes, n_left, n_right)


def _left_over(rest: _Rows, matched: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the positions that no pair has taken."""
    free = np.ones(size, dtype=bool)
    free[matched] = False
    return np.flatnonzero(free) if rest is None else rest[free]


def _match(
    left: NDArray[np.int64], right: NDArray[np.int64], bits: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the pairs of equal keys."""
    pairs = min(left.size, right.size)
    out = np.empty((2, pairs), np.int64)
    sides = []
    for keys in (left, right):
        order = np.arange(keys.size, dtype=np.int64)
        kernels._sort_keys(keys, order, np.empty_like(keys), np.empty_like(order), bits)
        sides.append((keys, order, rng.random(keys.size)))
    n = kernels._match_sorted(*sides[0], *sides[1], out[0], out[1])
    return out[0, :n], out[1, :n]


def _length(table: Columns, passes: tuple[tuple[str, ...], ...], side: str) -> int:
    """Return the number of records, after checking that the columns of every pass are there."""
    if not isinstance(table, Mapping | pd.DataFrame):
        raise ArgumentTypeError(
            f"{side} must be a mapping of columns or a DataFrame, got {shown(table)}"
        )
    wanted = sorted({name for key in passes for name in key})
    missing = [name for name in wanted if name not in table]
    if missing:
        raise ArgumentError(f"{side} must have the columns {wanted}, it lacks {missing}")
    lengths = {name: len(table[name]) for name in wanted}
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"columns of {side} must have one length, got {lengths}")
    return lengths[wanted[0]]


def _encode(
    tables: tuple[Columns, Columns], key: tuple[str, ...], rest: list[_Rows]
) -> tuple[list[NDArray[np.int64]], int]:
    """Return a number for each remaining record, equal where the columns are, and its bits."""
    codes: list[NDArray[np.int64]] = []
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


def _renumber(sides: list[NDArray[Any]]) -> list[NDArray[np.int64]]:
    """Return consecutive numbers for the distinct values of both sides together."""
    if not sides:
        return []
    numbers = np.unique(np.concatenate(sides), return_inverse=True)[1].astype(np.int64)
    return [numbers[: sides[0].size], numbers[sides[0].size :]]


def _numbers(columns: list[Any], name: str, rest: list[_Rows]) -> list[NDArray[Any]]:
    """Return a column of both files as numbers; text is numbered over both files together."""
    arrays = [pd.Series(column, copy=False).array for column in columns]
    if all(pd.api.types.is_integer_dtype(a.dtype) for a in arrays):
        if any(a.isna().any() for a in arrays if not isinstance(a, pd.arrays.NumpyExtensionArray)):
            raise ArgumentError(f"column {name!r} must have no missing values")
        sides = [
            a.to_numpy() if isinstance(a, pd.arrays.NumpyExtensionArray) else a.to_numpy(np.int64)
            for a in arrays
        ]
    elif all(pd.api.types.infer_dtype(pd.Series(a)) in ("string", "empty") for a in arrays):
        both = pd.concat([pd.Series(a) for a in arrays], ignore_index=True)
        numbers = pd.factorize(both)[0]
        if (numbers < 0).any():
            raise ArgumentError(f"column {name!r} must have no missing values")
        sides = [numbers[: len(arrays[0])], numbers[len(arrays[0]) :]]
    else:
        raise ArgumentTypeError(
            f"column {name!r} must hold whole numbers in both files, or text in both; "
            f"got {arrays[0].dtype} and {arrays[1].dtype}"
        )
    return [side if rows is None else side[rows] for side, rows in zip(sides, rest, strict=True)]

"""Inference from a block's composition alone: the baselines of every re-identification.

The modal guesser says for everyone the most frequent race and ethnicity of the block, the
proportional guesser draws from the block's frequencies (Abowd et al. 2023, "Statistical baseline
details").  Neither links anybody to a record, so whatever they achieve is inference about a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.compiling import kernel
from bayesrisk._base.display import displayed
from bayesrisk._base.randomness import Seed, generator
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, ShapeError, quote
from bayesrisk.tables.schema import AGE_BIN_STARTS as AGE_BIN_STARTS

# -----------------------------------------------------------------------------
# Kernels of matching: a stable radix sort, and the walk over two sorted lists of keys.


_DIGIT = 11  # bits of a pass: the 2,048 counters stay in the first-level cache
_BUCKETS = 1 << _DIGIT
_MASK = _BUCKETS - 1


@kernel
def _sort_keys(
    keys: IntArray, order: IntArray, spare_keys: IntArray, spare_order: IntArray, bits: int
) -> None:
    """Sort ``keys`` (non-negative, below ``2**bits``) in place, stably, and ``order`` with them."""
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
    """Pair records of equal key at random, without replacement; return how many pairs."""
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
    """Pairs of records of two files, each record in at most one pair.

    ``left`` and ``right`` are positions of the records of each pair, in the order of the passes,
    and ``match_pass`` the pass that found it, 0 for that of the first of the ``keys``.
    """

    left: IntArray
    right: IntArray
    match_pass: NDArray[np.int8]
    keys: tuple[tuple[str, ...], ...]

    def counts(self) -> IntArray:
        """Return the number of pairs of each pass."""
        return np.bincount(self.match_pass, minlength=len(self.keys)).astype(np.int64)


def match_records(
    left: Columns,
    right: Columns,
    *,
    keys: Sequence[Sequence[str]],
    rng: Seed,
) -> Matching:
    """Return the pairs of records of two files that agree on each key in turn, without replacement.

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
    """Refuse a file without the columns of every pass, or with columns of several lengths."""
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
    """Return a number for each remaining record, equal where the columns are, and its bits."""
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


# -----------------------------------------------------------------------------
# Person records as attackers and auditors exchange them: one checked frame.


def age_bin(age: ArrayLike) -> IntArray:
    """Return the bin, 0 to 37, of each age, of those in ``tables.schema.AGE_BIN_STARTS``.

    Parameters
    ----------
    age : array_like of int
        Ages in years, 0 to 110.

    Examples
    --------
    >>> age_bin([0, 21, 22, 24, 25, 84, 110])
    array([ 0, 21, 22, 22, 23, 36, 37])
    """
    ages = check.count_array(age, "age", lower=0, upper=110)
    return np.searchsorted(AGE_BIN_STARTS, ages, side="right") - 1


#: Race (63 combinations) by Hispanic origin.
CELLS = 126
_NAMES = ("block", "sex", "age", "race", "hisp", "person")
_RANGES = {"sex": (0, 1), "age": (0, 110), "race": (1, 63), "hisp": (0, 1)}


@dataclass(frozen=True, eq=False)
class Persons:
    """Records of persons that have been checked.

    Every function of linkage takes a frame or this.  Make it where a file is read, and hand it on.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each person, numbered from 0: those of ``block`` (text of 15 digits; whole numbers
        are turned into it), ``sex`` (0, 1), ``age`` (0 to 110), ``race`` (1 to 63), ``hisp`` (0, 1)
        and ``person`` that the records have, and ``agebin`` after ``age``.  Do not change it.
    source : str
        How messages call the records.

    Raises
    ------
    DataError
        If a value is missing or out of range; the row is counted from 1.

    Examples
    --------
    >>> people = pd.DataFrame({"block": [500010101001000], "sex": 0, "age": 21})
    >>> Persons(people, "my file").frame.values.tolist()
    [['500010101001000', 0, 21, 21]]
    """

    frame: pd.DataFrame
    source: str

    def __post_init__(self) -> None:
        frame = check.frame(self.frame, f"{check.text(self.source, 'source')}: frame")
        columns: dict[str, Any] = {}
        for name in _NAMES:
            if name not in frame:
                continue
            column = frame[name]
            if column.isna().any():
                row = int(np.argmax(column.isna().to_numpy())) + 1
                raise DataError(f"{self.source}: row {row}, column {name!r}: is missing")
            columns[name] = _checked(column, name, self.source)
            if name == "age":
                columns["agebin"] = age_bin(columns["age"]) if len(column) else columns["age"]
        object.__setattr__(self, "frame", pd.DataFrame(columns))

    def __len__(self) -> int:
        return len(self.frame)


def person_frame(
    records: pd.DataFrame | Persons, *, columns: Sequence[str], source: str
) -> pd.DataFrame:
    """Return the named columns of persons, and ``agebin`` after ``age``; a frame is checked.

    ``source`` is what messages call a frame; persons have a name of their own.
    """
    if isinstance(records, Persons):
        check.frame(records.frame, records.source, columns)
    else:
        records = check.frame(records, source, columns)
        records = Persons(records[list(columns)], source)
    wanted = [part for name in columns for part in ((name, "agebin") if name == "age" else (name,))]
    return records.frame[wanted]


def _checked(column: pd.Series, name: str, source: str) -> pd.Series | IntArray:
    if name == "block":
        return _blocks(column, source)
    if name not in _RANGES:
        return column.reset_index(drop=True)
    if not pd.api.types.is_integer_dtype(column.dtype):
        raise DataError(f"{source}: column {name!r} must hold whole numbers, got {column.dtype}")
    values = column.to_numpy(dtype=np.int64)
    lowest, highest = _RANGES[name]
    bad = (values < lowest) | (values > highest)
    check.refuse_row(bad, values, source, name, f"be from {lowest} to {highest}")
    return values


def _blocks(column: pd.Series, source: str) -> pd.Series:
    if pd.api.types.is_integer_dtype(column.dtype):
        text = column.astype("int64").astype(str).str.zfill(15)
    else:
        text = column.astype("str")
    text = text.reset_index(drop=True)
    for block in text.unique():
        if len(block) != 15 or not (block.isascii() and block.isdigit()):
            row = int(np.argmax((text == block).to_numpy())) + 1
            raise DataError(
                f"{source}: row {row}, column 'block': must be 15 digits, got {quote(block)}"
            )
    return text


def race_ethnicity(frame: pd.DataFrame) -> IntArray:
    """Return the cell ``2 (race - 1) + hisp`` of each record of a checked frame, 0 to 125."""
    cells: IntArray = 2 * (frame["race"].to_numpy(np.int64) - 1)
    cells += frame["hisp"].to_numpy(np.int64)
    return cells


_COLUMNS = ("block", "sex", "age", "race", "hisp")
_BLOCK_GROUP = 12  # digits of the geoid that name the block group


def _modes(group: IntArray, cells: IntArray, n_groups: int) -> IntArray:
    """Return the most frequent cell of every group, -1 on a tie or a mode of one person."""
    pairs, counts = np.unique(group * CELLS + cells, return_counts=True)
    group_number, cell = np.divmod(pairs, CELLS)
    highest = np.zeros(n_groups, np.int64)
    np.maximum.at(highest, group_number, counts)
    top = counts == highest[group_number]
    n_top = np.bincount(group_number[top], minlength=n_groups)
    modes = np.full(n_groups, -1, np.int64)
    modes[group_number[top]] = cell[top]
    modes[(n_top > 1) | (highest <= 1)] = -1
    return modes


def modal_cells(records: pd.DataFrame | Persons) -> IntArray:
    """Return for each record the modal race and ethnicity of its block.

    On a tie, or when the mode has one person, the block group's mode; on a tie there too, that of
    all records (of equal ones the first in the order of the codes).

    ``records`` have ``block``, ``race`` and ``hisp``.
    """
    return cells_of_modes(
        person_frame(records, columns=("block", "race", "hisp"), source="records")
    )


def cell_counts(frame: pd.DataFrame) -> IntArray:
    """Return the number of records of a checked frame with each race and ethnicity."""
    return np.bincount(race_ethnicity(frame), minlength=CELLS).astype(np.int64)


def cells_of_modes(frame: pd.DataFrame, everywhere: IntArray | None = None) -> IntArray:
    """Return the modal cells of persons that are checked already.

    ``everywhere`` are the :func:`cell_counts` of all records where the frame has some of them: all
    of every block group that it has any of.
    """
    cells = race_ethnicity(frame)
    if not cells.size:
        return cells
    block, blocks = pd.factorize(frame["block"])
    group_of_block, groups = pd.factorize(pd.Series(blocks).str[:_BLOCK_GROUP])
    everyone = int(np.argmax(cell_counts(frame) if everywhere is None else everywhere))
    in_group = _modes(group_of_block[block], cells, len(groups))
    in_group = np.where(in_group < 0, everyone, in_group)
    in_block = _modes(block.astype(np.int64), cells, len(blocks))
    return np.where(in_block < 0, in_group[group_of_block], in_block)[block]


def _with_cells(frame: pd.DataFrame, cells: IntArray) -> pd.DataFrame:
    return frame.assign(race=cells // 2 + 1, hisp=cells % 2)


def modal_guess(records: pd.DataFrame | Persons) -> pd.DataFrame:
    """Return the records with everyone's race and ethnicity replaced by the modal one (MDG).

    ``records`` are what the adversary holds: ``block, sex, age, race, hisp``.
    """
    frame = person_frame(records, columns=_COLUMNS, source="records")
    return _with_cells(frame, cells_of_modes(frame))


def proportional_guess(records: pd.DataFrame | Persons, *, rng: Seed) -> pd.DataFrame:
    """Return the records with race and ethnicity drawn from the block's frequencies (PRG).

    Everyone gets the race and ethnicity of a record of the block chosen uniformly.  ``records``
    are what the adversary holds: ``block, sex, age, race, hisp``.
    """
    frame = person_frame(records, columns=_COLUMNS, source="records")
    block = pd.factorize(frame["block"])[0]
    order = np.argsort(block, kind="stable")
    size = np.bincount(block) if block.size else np.zeros(0, np.int64)
    first = np.cumsum(size) - size
    uniform = generator(rng).random(block.size)
    chosen = order[first[block] + (uniform * size[block]).astype(np.int64)]
    return _with_cells(frame, race_ethnicity(frame)[chosen])


@dataclass(frozen=True, eq=False)
class Guesses:
    """Answers of both guessers who start from one source of records, drawn once for all tables.

    ``modal`` and ``proportional`` are the same blocks, sexes and ages with the race and ethnicity
    that each guesser says (:func:`modal_guess`, :func:`proportional_guess`).
    """

    source: str
    records: Persons
    modal: Persons
    proportional: Persons

    @classmethod
    def draw(
        cls,
        records: pd.DataFrame | Persons,
        *,
        source: str,
        rng: Seed,
        everywhere: IntArray | None = None,
    ) -> Guesses:
        """Return the guesses of both from the same records, for every table of one report.

        ``records`` are what the adversary holds (``block, sex, age, race, hisp``), ``source`` is
        how tables call them.  Where they are those of some block groups of many, ``everywhere`` are
        126 counts: how many of all records have each race and ethnicity, cell
        ``2 (race - 1) + hisp``.  What is most frequent there is what the modal guesser says where
        block and block group have no mode.
        """
        name = check.text(source, "source")
        frame = person_frame(records, columns=_COLUMNS, source=name)
        persons = Persons(frame, name)
        if everywhere is not None:
            everywhere = check.count_array(everywhere, "everywhere", lower=0)
            if everywhere.shape != (CELLS,):
                raise ShapeError(f"everywhere must be {CELLS} counts, got {everywhere.shape}")
        modal = _with_cells(persons.frame, cells_of_modes(persons.frame, everywhere))
        return cls(
            name,
            persons,
            Persons(modal, "modal guesses"),
            Persons(proportional_guess(persons, rng=rng), "proportional guesses"),
        )

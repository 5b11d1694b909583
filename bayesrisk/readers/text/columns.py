"""Comma-separated text in pieces of columns, and the checks of a column: file, row, column, value.

Rows are counted from 1, the header not among them.  Text stays text until a column is asked for as
whole numbers, so that no leading zero is lost.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.delimited import csv_tables
from bayesrisk._files.parse import MISSING, shown
from bayesrisk._files.text import WithoutComments, header_fields, split_line
from bayesrisk._types import IntArray
from bayesrisk.exceptions import DataError, DataWarning
from bayesrisk.readers.text.source import Source, first_lines, named

#: Rows in memory at a time, where the caller does not say.
CHUNK = 2**18
_ASCII_ZERO = 48
_OTHER_LENGTH = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


@dataclass(frozen=True)
class Piece:
    """Rows of a table as they stand in a file."""

    name: str
    start: int
    table: pa.Table
    places: IntArray | None = None  # of the rows after ``start``, where they are not all

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def fail(self, column: str, row: int, rule: str) -> DataError:
        """Return the error for a value that breaks ``rule``."""
        value = self.table.column(column)[row].as_py()
        place = row if self.places is None else int(self.places[row])
        return DataError(
            f"{self.name}: row {self.start + place + 1}, column {column!r}: must be {rule}, "
            f"got {shown(value)}"
        )

    def check(self, column: str, good: NDArray[np.bool_], rule: str) -> None:
        """Raise for the first row that is not good."""
        if not good.all():
            raise self.fail(column, int(np.argmin(good)), rule)

    def whole(self, column: str, low: int, high: int, *, rule: str | None = None) -> IntArray:
        """Return a column of whole numbers within bounds; ``rule`` says them in messages."""
        values = self.table.column(column)
        rule = rule or f"a whole number in [{low}, {high}]"
        if values.null_count:
            raise self.fail(column, int(np.argmax(values.is_null().to_numpy())), rule)
        try:
            numbers: IntArray = values.cast(pa.int64()).to_numpy().astype(np.int64, copy=False)
        except pa.ArrowInvalid:
            raise self.fail(column, _first_unreadable(values), rule) from None
        self.check(column, (numbers >= low) & (numbers <= high), rule)
        return numbers

    def codes(self, column: str, allowed: Collection[int]) -> IntArray:
        """Return a column of codes out of a list."""
        values = np.sort(np.fromiter(allowed, dtype=np.int64))
        numbers = self.whole(column, int(values[0]), int(values[-1]))
        if values.size != values[-1] - values[0] + 1:
            listed = ", ".join(str(v) for v in values)
            self.check(column, np.isin(numbers, values), f"one of {listed}")
        return numbers

    def digits(self, column: str, width: int) -> pa.Array:
        """Return a column of digits, all of one width, as one array of text."""
        values = one_array(self.table.column(column))
        rule = f"{width} digits"
        if values.null_count:
            raise self.fail(column, int(np.argmax(values.is_null().to_numpy(False))), rule)
        matrix = characters(values, width)
        if matrix is None:
            lengths = pc.binary_length(values).to_numpy()
            raise self.fail(column, int(np.argmax(lengths != width)), rule)
        good: NDArray[np.bool_] = np.logical_and.reduce(
            (matrix - np.uint8(_ASCII_ZERO)) <= 9, axis=1
        )
        self.check(column, good, rule)
        return values

    def take(self, rows: IntArray) -> "Piece":
        """Return some of the rows; messages tell their own numbers."""
        places = rows if self.places is None else self.places[rows]
        return Piece(self.name, self.start, self.table.take(pa.array(rows)), places)

    def replace(self, column: str, values: pa.Array) -> "Piece":
        """Return the piece with a column changed or added."""
        if column in self.table.column_names:
            place = self.table.column_names.index(column)
            table = self.table.set_column(place, column, values)
        else:
            table = self.table.append_column(column, values)
        return Piece(self.name, self.start, table, self.places)


class Faults:
    """What becomes of values that cannot be: the file is refused, or they are missing, counted.

    Parameters
    ----------
    on_error : str
        ``"refuse"`` or ``"missing"``.
    """

    def __init__(self, on_error: str) -> None:
        self.kept = check.choice(on_error, "on_error", ("refuse", "missing")) == "missing"
        self.counts: Counter[tuple[str, str]] = Counter()

    def missing(
        self, piece: Piece, column: str, good: NDArray[np.bool_], rule: str, reason: str = ""
    ) -> NDArray[np.bool_]:
        """Return which values are missing; raise for the first where the file is refused."""
        bad = ~good
        if bad.any():
            if not self.kept:
                error = piece.fail(column, int(np.argmax(bad)), rule)
                raise DataError(f"{error}; {MISSING} keeps such values as missing")
            self.counts[column, reason or f"not {rule}"] += int(bad.sum())
        return bad

    def counts_of(self, piece: Piece, column: str, high: int) -> tuple[IntArray, NDArray[np.bool_]]:
        """Return counts, 0 where they are missing, and where they are."""
        rule = f"a whole number in [0, {high}]"
        values = piece.table.column(column)
        if pa.types.is_string(values.type):
            digits = pc.match_substring_regex(values, "^[0-9]{1,18}$")
            values = pc.if_else(digits, values, "-1").cast(pa.int64())
        numbers: IntArray = pc.fill_null(values, -1).to_numpy().astype(np.int64)
        good = (numbers >= 0) & (numbers <= high)
        bad = self.missing(piece, column, good, rule)
        return (np.where(bad, 0, numbers) if bad.any() else numbers), bad

    def warn(self, source: str) -> None:
        """Say how many values are missing for what they were, by column and reason."""
        if self.counts:
            listed = "; ".join(
                f"column {column!r}: {reason} ({times} rows)"
                for (column, reason), times in self.counts.items()
            )
            text = f"{source}: values that cannot be are missing: {listed}"
            warnings.warn(DataWarning(text, self.counts), stacklevel=3)


def _first_unreadable(values: Any) -> int:
    """Return the place of the first value that is no whole number: bisection, on failure only."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            values.slice(low, middle - low).cast(pa.int64())
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def one_array(values: Any) -> pa.Array:
    """Return a column as one array, whatever pieces it has."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    return array


def characters(values: pa.Array, width: int) -> NDArray[np.uint8] | None:
    """Return the bytes of equally long texts, a row each; None if their lengths differ."""
    n = len(values)
    if n == 0:
        return np.zeros((0, width), dtype=np.uint8)
    buffers = values.buffers()
    offsets = np.frombuffer(buffers[1], dtype=np.int32)[values.offset : values.offset + n + 1]
    if (np.diff(offsets) != width).any():
        return None
    data = np.frombuffer(buffers[2], dtype=np.uint8)[int(offsets[0]) : int(offsets[-1])]
    return data.reshape(n, width)


def texts(matrix: NDArray[np.uint8]) -> pa.Array:
    """Return a matrix of ASCII characters as an array of text without copying it twice."""
    n, width = matrix.shape
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(width)
    data = np.ascontiguousarray(matrix)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(data))


def header_of(source: Source, *, delimiter: str = ",", comment: str | None = None) -> list[str]:
    """Return the names of the columns, each once; delimiters at the end name none."""
    line = first_lines(source, comment)[1]
    return header_fields(line, source.name, delimiter, errors="replace", without_blank=True)


def blank_columns(line: bytes, source: Source, delimiter: str = ",") -> int:
    """Return how many columns without a name stand at the end of a header line."""
    text = line.decode("utf-8", errors="replace").rstrip("\n")
    fields = split_line(text, source.name, delimiter)
    return len(fields) - max((i + 1 for i, field in enumerate(fields) if field.strip()), default=0)


def csv_pieces(
    source: Source,
    names: list[str],
    *,
    wanted: list[str],
    chunk: int,
    whole: Collection[str] = (),
    header: bool = True,
    delimiter: str = ",",
    comment: str | None = None,
    skip: int = 0,
    nulls: Sequence[str] = (),
    quotes: bool = True,
    text: Any = pa.string(),  # noqa: B008  (a type without state)
    blank: int = 0,
) -> Iterator[Piece]:
    """Yield the wanted columns, ``chunk`` rows at a time; at least one piece, if empty.

    They are text (or bytes, where ``text`` says so), but for those in ``whole``, which are parsed
    as whole numbers at once, or are missing where the file has one of ``nulls``.  ``blank`` columns
    at the end, by default those that the header does not name, must be empty.
    """
    above = 0
    if header:
        comments, line = first_lines(source, comment)
        above, blank = comments + 1, blank_columns(line, source, delimiter)
    unnamed = [f"column {len(names) + place + 1}, without a name" for place in range(blank)]
    again = partial(
        csv_pieces,
        source,
        names,
        wanted=wanted,
        chunk=chunk,
        header=header,
        delimiter=delimiter,
        comment=comment,
        skip=skip,
        nulls=nulls,
        quotes=quotes,
        blank=blank,
    )
    kinds = pa.schema([(n, pa.int64() if n in whole else text) for n in [*names, *unnamed]])
    asked = [*wanted, *unnamed]
    schema = pa.schema([kinds.field(name) for name in asked])
    with named(source.name), source.open() as stream, _located(source, whole, nulls, again):
        for _ in range(above + skip):
            stream.readline()
        rest = stream if comment is None else WithoutComments(stream, comment.encode())
        tables = csv_tables(
            rest, kinds, wanted=asked, nulls=nulls, delimiter=delimiter, quotes=quotes
        )
        start, held, rows = 0, [schema.empty_table()], 0
        for table in tables:
            held.append(table)
            rows += table.num_rows
            while rows >= chunk:
                there = pa.concat_tables(held)
                yield _without(Piece(source.name, start, there.slice(0, chunk)), unnamed)
                start, rows, held = start + chunk, rows - chunk, [there.slice(chunk)]
        stream.check_end()
        if rows or start == 0:
            yield _without(Piece(source.name, start, pa.concat_tables(held)), unnamed)


def _without(piece: Piece, unnamed: list[str]) -> Piece:
    """Return the piece without columns that have no name, which must be empty."""
    for name in unnamed:
        empty = pc.equal(pc.binary_length(piece.table.column(name)), 0)
        piece.check(name, empty.to_numpy(), "empty")
    return Piece(piece.name, piece.start, piece.table.drop_columns(unnamed)) if unnamed else piece


@contextmanager
def _located(
    source: Source,
    whole: Collection[str],
    nulls: Sequence[str],
    again: Callable[[], Iterator[Piece]],
) -> Iterator[None]:
    """Name the row of what the parser refuses; for a value, in a second pass as text."""
    try:
        yield
    except pa.ArrowInvalid as error:
        if found := _OTHER_LENGTH.search(str(error)):
            number, expected, actual = found.groups()
            place = "" if number is None else f" {number}"
            raise DataError(
                f"{source.name}: row{place}: must have {expected} columns, got {actual}"
            ) from None
        if "conversion error" not in str(error):
            raise
        for piece in again():
            for name in whole:
                there = ~np.isin(piece.table.column(name).to_numpy(), list(nulls))
                piece.take(np.flatnonzero(there)).whole(name, -(2**63), 2**63 - 1)
        raise


def digit_matrix(code: IntArray, width: int) -> NDArray[np.uint8]:
    """Return the last ``width`` digits of whole numbers as characters, a row each."""
    matrix = np.empty((code.size, width), dtype=np.uint8)
    rest = code
    for place in range(width - 1, -1, -1):
        rest, digit = np.divmod(rest, 10)
        matrix[:, place] = digit + _ASCII_ZERO
    return matrix

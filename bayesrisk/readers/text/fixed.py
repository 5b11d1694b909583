"""Lines of fixed width as a matrix of bytes, from which columns are cut and numbers made."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrisk._files.parse import shown
from bayesrisk._types import ByteArray
from bayesrisk.exceptions import DataError
from bayesrisk.readers.text.source import Source, blocks

_NEWLINE, _BLANK, _ZERO = 10, 32, 48
_DIGITS = 18  # of a number that fits in 64 bits, whatever they are


@dataclass(frozen=True)
class Lines:
    """Whole lines of a file; a column is given by its first character and the one after it."""

    name: str
    before: int
    buffer: ByteArray
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return self.starts.size

    def take(self, rows: NDArray[np.int64]) -> "Picked":
        """Return some of the lines."""
        return Picked(self, rows)

    def where(self, row: int) -> str:
        """Return how a message names a line."""
        return f"{self.name}: line {self.before + row + 1}"

    def characters(self, rows: NDArray[np.int64], start: int, stop: int) -> ByteArray:
        """Return columns of some lines, a row each."""
        short = self.lengths[rows] < stop
        if short.any():
            row = int(rows[np.argmax(short)])
            raise DataError(
                f"{self.where(row)}: must have at least {stop} characters, got {self.lengths[row]}"
            )
        width = stop - start
        if rows.size == 0:
            return np.zeros((0, width), dtype=np.uint8)
        # A view of every window of that width; rows are picked from it in one pass.
        windows = np.lib.stride_tricks.sliding_window_view(self.buffer, width)
        picked: ByteArray = windows[self.starts[rows] + start]
        return picked


@dataclass(frozen=True)
class Picked:
    """Some lines, of one kind."""

    lines: Lines
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return self.rows.size

    def check(self, column: str, good: NDArray[np.bool_], rule: str, field: ByteArray) -> None:
        """Raise for the first line that is not good."""
        if not good.all():
            row = int(np.argmin(good))
            text = field[row].tobytes().decode("latin-1")
            raise DataError(
                f"{self.lines.where(int(self.rows[row]))}, column {column!r}: must be {rule}, "
                f"got {shown(text)}"
            )

    def text(self, start: int, stop: int) -> ByteArray:
        """Return a column as characters."""
        return self.lines.characters(self.rows, start, stop)

    def digits(self, column: str, start: int, stop: int) -> ByteArray:
        """Return a column in which every character is a digit."""
        field = self.text(start, stop)
        good = np.logical_and.reduce((field - np.uint8(_ZERO)) <= 9, axis=1)
        self.check(column, good, f"{stop - start} digits", field)
        return field

    def whole(self, column: str, start: int, stop: int, low: int, high: int) -> NDArray[np.int64]:
        """Return a column of whole numbers, filled up on the left with blanks or zeros."""
        field = self.text(start, stop)
        rule = f"a whole number in [{low}, {high}]"
        value, good = parse_whole(field)
        good &= (value >= low) & (value <= high)
        self.check(column, good, rule, field)
        return value


def parse_whole(field: ByteArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return numbers without sign, and which fields are one: blanks stand only on the left."""
    digit = field - np.uint8(_ZERO)
    numeric = digit <= 9
    blank = field == _BLANK
    good = (numeric | blank).all(axis=1) & numeric[:, -1]
    if blank.any():
        good &= ~(blank[:, 1:] & numeric[:, :-1]).any(axis=1)
    # What has more digits than a number of 64 bits is none, but for zeros in front.
    good &= ~(numeric & (digit > 0))[:, :-_DIGITS].any(axis=1)
    value = np.zeros(len(field), dtype=np.int64)
    for place in range(field.shape[1]):
        value = value * 10 + np.where(numeric[:, place], digit[:, place], 0)
    return value, good


def line_pieces(source: Source, size: int) -> Iterator[Lines]:
    """Yield the lines of a file in pieces of about ``size`` bytes."""
    before = empty = 0
    for block in blocks(source, size):
        buffer = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(buffer == _NEWLINE)
        starts = np.concatenate([[0], ends[:-1] + 1])
        lengths = ends - starts
        last = int(np.max(np.flatnonzero(lengths), initial=-1)) + 1
        if last and empty:
            raise DataError(f"{source.name}: line {before}: must hold something, is empty")
        # Lines at the end of a file may be empty.
        empty += ends.size - last
        if last:
            yield Lines(source.name, before, buffer, starts[:last], lengths[:last])
        before += ends.size

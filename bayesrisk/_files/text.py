"""Lines of text from elsewhere: whatever ends them, and none longer than a bound."""

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from bayesrisk._files.delimited import csv_tables
from bayesrisk._files.parse import named, shown
from bayesrisk.exceptions import DataError

#: Bytes of a line, and columns in it.
MAX_LINE = 2**20
MAX_COLUMNS = 2**14
#: How many bytes a compressed one may become, once there are many.
MAX_RATIO = 200
LARGE = 2**26
_PIECE = 2**16


def check_ratio(name: str, size: int, packed: int) -> None:
    """Refuse what is far longer than its compressed form."""
    if size > LARGE and size > MAX_RATIO * max(packed, 1):
        raise DataError(
            f"{name}: must be at most {MAX_RATIO} times as long as its compressed form, got "
            f"{size} bytes from {packed}"
        )


class TextStream(io.BufferedIOBase):
    r"""Bytes whose lines end in ``\n``, where the file has ``\r\n``, ``\r`` or ``\n``.

    Parameters
    ----------
    stream : file-like
        Where they come from.
    name : str
        How messages call it.
    packed : int, optional
        Bytes of the compressed form, if it is one.
    """

    def __init__(self, stream: BinaryIO, name: str, packed: int | None = None) -> None:
        self._stream, self._name, self._packed = stream, name, packed
        self._held, self._at = b"", 0  # what a line was taken from
        self._run = self._size = 0  # bytes of the line that is going on, and of all
        self._after_return = False
        self.last = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def _next(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; none at the end."""
        while data := self._stream.read(size):
            self._size += len(data)
            if self._packed is not None:
                check_ratio(self._name, self._size, self._packed)
            after, self._after_return = self._after_return, data.endswith(b"\r")
            if b"\r" in data:
                data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            if after and data.startswith(b"\n"):
                data = data[1:]  # the second half of a line's end
            if data:
                self._check(data)
                self.last = data[-1:]
                return data
        return b""

    def _check(self, data: bytes) -> None:
        first = data.find(b"\n")
        longest = self._run + (len(data) if first < 0 else first)
        self._run = longest if first < 0 else len(data) - data.rfind(b"\n") - 1
        if max(longest, self._run) > MAX_LINE:
            raise DataError(f"{self._name}: lines must be at most {MAX_LINE} bytes long, got more")

    def read(self, size: int | None = -1) -> bytes:
        """Return at most ``size`` bytes, all by default."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        if self._at == len(self._held):
            return self._next(size) if size else b""
        data = self._held[self._at : self._at + size]
        self._at += len(data)
        return data

    def read1(self, size: int = -1) -> bytes:
        """Return some bytes."""
        return self.read(_PIECE if size < 0 else size)

    def readline(self, size: int | None = -1) -> bytes:
        """Return the next line with its end."""
        while (cut := self._held.find(b"\n", self._at) + 1) == 0:
            more = self._next(_PIECE)
            self._held, self._at = self._held[self._at :] + more, 0
            if not more:
                cut = len(self._held)
                break
        line, self._at = self._held[self._at : cut], cut
        return line

    def check_end(self) -> None:
        """Refuse a file whose last line has no end: it may have been cut off."""
        if self.last not in (b"", b"\n"):
            raise DataError(
                f"{self._name}: the last line must end in a newline; is the file whole?"
            )


class WithoutComments(io.BufferedIOBase):
    """Bytes of a text without the lines that begin with a mark, which is one byte long."""

    def __init__(self, stream: TextStream, mark: bytes) -> None:
        self._stream, self._mark = stream, mark
        self._fresh, self._within = True, False  # at a line's beginning; in a comment

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return at most ``size`` bytes, all by default; none at the end."""
        while data := self._stream.read(size):
            if kept := self._kept(data):
                return kept
        return b""

    def _kept(self, data: bytes) -> bytes:
        kept, at = [], 0
        while at < len(data):
            if self._within or (self._fresh and data.startswith(self._mark, at)):
                end = data.find(b"\n", at) + 1
                self._within, at = end == 0, end or len(data)
            else:
                end = data.find(b"\n" + self._mark, at) + 1 or len(data)
                kept.append(data[at:end])
                at = end
            self._fresh = data[at - 1 : at] == b"\n"
        return b"".join(kept)


@contextmanager
def open_text(file: Path, name: str | None = None) -> Iterator[TextStream]:
    """Open a text file, or a gzip file of one."""
    called = name or str(file)
    with named(called):
        if file.suffix.lower() == ".gz":
            with gzip.open(file, "rb") as packed:
                yield TextStream(cast("BinaryIO", packed), called, file.stat().st_size)
        else:
            with file.open("rb") as plain:
                yield TextStream(plain, called)


def split_line(line: str, name: str, delimiter: str = ",") -> list[str]:
    """Return the fields of a line."""
    try:
        fields = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(f"{name}: the header cannot be read: {error}") from error
    if len(fields) > MAX_COLUMNS:
        raise DataError(f"{name}: must have at most {MAX_COLUMNS} columns, got {len(fields)}")
    return fields


def header_fields(
    line: bytes,
    name: str,
    delimiter: str = ",",
    *,
    errors: str = "strict",
    without_blank: bool = False,
) -> list[str]:
    """Return the names of columns in a header line, each there once.

    ``without_blank`` leaves out those at the end that have no name.
    """
    with named(name):
        text = line.decode("utf-8-sig", errors=errors)
    names = split_line(text.rstrip("\n"), name, delimiter)
    while without_blank and names and not names[-1].strip():
        names.pop()
    if not names:
        raise DataError(f"{name}: must have a header line, got an empty one")
    again = [field for field, times in Counter(names).items() if times > 1]
    if again:
        raise DataError(f"{name}: column {shown(again[0])}: must stand in the header once")
    return names


def text_tables(lines: TextStream, names: list[str]) -> Iterator[pa.Table]:
    """Yield what follows a header as columns of text, so that nothing is guessed."""
    return csv_tables(lines, pa.schema([(name, pa.string()) for name in names]))

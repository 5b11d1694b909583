"""Comma-separated text within limits: blocks of whole lines, headers, columns."""

import csv
import gzip
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

import pyarrow as pa
import pyarrow.csv as pa_csv

from bayesrisk._base.disk.text import gather, named, open_regular
from bayesrisk.exceptions import DataError, quote

if TYPE_CHECKING:
    import pandas as pd

# Blocks are read here, and parsed from memory that is Arrow's own.  Given a stream of Python's,
# Arrow reads ahead in a thread: where a process ends meanwhile, as after an error in the first
# rows, that thread never comes back from Python, and the process waits for it for ever.

#: How files begin that are no text, what they are, and what to do.
_OTHER_FILES = {
    b"PK\x03\x04": "a workbook or another archive: save the sheet as CSV UTF-8",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel: save the sheet as CSV UTF-8",
    b"PAR1": "Parquet: let its name end in .parquet",
    b"%PDF": "a PDF: save its tables as CSV UTF-8",
    b"\x1f\x8b": "packed by gzip: let its name end in .gz, or unpack it",
    b"\xff\xfe": "UTF-16: save it as CSV UTF-8",
    b"\xfe\xff": "UTF-16: save it as CSV UTF-8",
}
_BLOCK = 2**22  # bytes that are parsed at a time, and at most one line more
_ROW = re.compile(r"Row #(\d+)")
# Texts that a spreadsheet computes when it opens a file, blanks before the sign or not, also one
# of full width; and numbers, which it may.
_FORMULA = re.compile(
    r"'*(?:[\t\r\n]|[\s\0-\x1f\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20])"
)
_NUMBER = re.compile(r"[+-]?[0-9][0-9,]*(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?%?", re.IGNORECASE)


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def csv_tables(
    stream: _Stream,
    kinds: pa.Schema,
    *,
    wanted: Collection[str] | None = None,
    nulls: Sequence[str] = (),
    delimiter: str = ",",
    quotes: bool = True,
) -> Iterator[pa.Table]:
    """Yield the rows of a text without a header; lines end in a line feed, blank ones are skipped.

    ``kinds`` has all columns of the text in order, with their types. Those in ``wanted`` are
    yielded, in this order. One of ``nulls`` stands for a missing number. ``ArrowInvalid`` names a
    row with another number of columns, a value of another kind, or a quote that is not closed on
    its line.
    """
    names = list(kinds.names if wanted is None else wanted)
    parse = pa_csv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False)
    convert = pa_csv.ConvertOptions(
        column_types={name: kinds.field(name).type for name in names},
        include_columns=names,
        null_values=list(nulls),
        strings_can_be_null=False,
    )
    count = 0
    for block in _blocks(stream):
        read = pa_csv.ReadOptions(
            column_names=kinds.names, block_size=len(block) + 1, use_threads=False
        )
        buffer = pa.BufferOutputStream()
        buffer.write(block)
        try:
            table = pa_csv.read_csv(buffer.getvalue(), read, parse, convert)
        except pa.ArrowInvalid as error:
            # Rows are counted from the beginning of the text.
            text = _ROW.sub(lambda row: f"Row #{count + int(row[1])}", str(error))  # noqa: B023
            raise pa.ArrowInvalid(text) from None
        if quotes:
            _check_quotes(block, table.num_rows, count, delimiter)
        count += table.num_rows
        yield table


def csv_bytes(frame: "pd.DataFrame") -> bytes:
    """Return a data frame as CSV, in which no text, be it a heading or a cell, is a formula.

    Names of protections and columns and values of records come from others.  One that a spreadsheet
    would compute stands after an apostrophe, by which it takes a cell for text; ``own_text``
    removes it.  Half of a pair of surrogates, which is no character, is written as an escape.
    """
    guarded = frame.copy()
    for place, kind in enumerate(frame.dtypes):
        if kind.kind == "O":  # texts and categories, too
            guarded.isetitem(place, frame.iloc[:, place].astype(object).map(_guarded).to_numpy())
    guarded.columns = [_guarded(str(name)) for name in frame.columns]
    text: str = guarded.to_csv(index=False, lineterminator="\n")
    return text.encode()


def _guarded(value: object) -> object:
    if not isinstance(value, str):
        return value
    # The writer sets a text with a line feed in quotes, but not one with a carriage return.
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    text = text.encode(errors="backslashreplace").decode()
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def guarded_table(table: pa.Table) -> pa.Table:
    """Return a table with texts and headings as from :func:`csv_bytes`."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(plain := getattr(field.type, "value_type", field.type)):
            column = table.column(place).cast(plain).combine_chunks().dictionary_encode()
            words = pa.array([_guarded(text) for text in column.dictionary.to_pylist()], plain)
            column = pa.DictionaryArray.from_arrays(column.indices, words).cast(plain)
            table = table.set_column(place, field.name, column)
    return table.rename_columns([_guarded(name) for name in table.column_names])


def csv_rows(table: pa.Table) -> bytes:
    """Return the lines of :func:`csv_bytes` but the heading, of texts and whole numbers."""
    columns = (column.to_pylist() for column in guarded_table(table).columns)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(zip(*columns, strict=True))
    return out.getvalue().encode()


def own_text(value: object) -> object:
    """Return a value of such a file as it was."""
    if isinstance(value, str) and value.startswith("'") and _FORMULA.match(value):
        return value[1:]
    return value


def read_own_csv(file: Path, texts: Collection[str] = ()) -> "pd.DataFrame":
    """Return the frame of a file as :func:`csv_bytes` writes it; columns of ``texts`` are text."""
    from bayesrisk._base.frames import pandas

    frame = pandas.read_csv(
        file, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(texts, str)
    )
    return frame.map(own_text)


def _blocks(stream: _Stream) -> Iterator[bytes]:
    """Yield the bytes of a stream in pieces of whole lines, the end of the last one left out."""
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        data = stream.read(_BLOCK)
        more = bool(data)
        pieces.append(data)
        size += len(data)
        cut = data.rfind(b"\n") + 1
        if not more or (size >= _BLOCK and cut):
            pieces[-1] = data[:cut]
            # A blank line is no row, and a block without a row is an error of the parser.
            if block := b"".join(pieces).rstrip(b"\n"):
                yield block
            pieces, size = [data[cut:]], len(data) - cut


_UNCLOSED = "a quote must be closed on its line; write a space for a line break within a value"


def _check_quotes(block: bytes, rows: int, rows_before: int, delimiter: str) -> None:
    """Refuse a quote that is not closed on its line: the lines after it became one value."""
    closed = not _left_open(block[block.rfind(b"\n") + 1 :], delimiter)
    if closed and rows == block.count(b"\n") + 1:
        return
    lines = [line for line in block.split(b"\n") if line]
    if closed and rows == len(lines):
        return
    faults = (row for row, line in enumerate(lines, rows_before + 1) if _left_open(line, delimiter))
    raise pa.ArrowInvalid(f"Row #{next(faults, rows_before + 1)}: {_UNCLOSED}")


def _left_open(line: bytes, delimiter: str) -> bool:
    if b'"' not in line:
        return False
    try:
        next(csv.reader([line.decode(errors="replace")], delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


#: Bytes of a line, and columns in it.
MAX_LINE = 2**20
MAX_COLUMNS = 2**14
#: How many bytes a compressed one may become, once there are many.
MAX_RATIO = 200
LARGE = 2**26
_PIECE = 2**16


#: Members of a gzip file, and the least bytes that they must have on average once they are more.
MAX_MEMBERS = 2**10
LEAST_MEMBER = 2**8
_MEMBER = b"\x1f\x8b\x08"  # how each begins


def check_ratio(name: str, size: int, packed: int) -> None:
    """Refuse a member that is far longer than its compressed form."""
    if size > LARGE and size > MAX_RATIO * max(packed, 1):
        raise DataError(
            f"{name}: must be at most {MAX_RATIO} times as long as its compressed form, got "
            f"{size} bytes from {packed}"
        )


class TextStream:
    r"""Bytes whose lines end in ``\n``, where the file has ``\r\n``, ``\r`` or ``\n``.

    ``packed`` is the number of compressed bytes, if there is a compressed form.
    """

    def __init__(self, stream: BinaryIO, name: str, packed: int | None = None) -> None:
        self._stream, self._name, self._packed = stream, name, packed
        self._buffer, self._offset = b"", 0  # what a line was taken from
        self._run = self._size = 0  # bytes of the line that is going on, and of all
        self._after_return = False
        self.last = b""

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

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, all by default."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        if self._offset == len(self._buffer):
            return self._next(size) if size else b""
        data = self._buffer[self._offset : self._offset + size]
        self._offset += len(data)
        return data

    def readline(self) -> bytes:
        """Return the next line with its end."""
        while (cut := self._buffer.find(b"\n", self._offset) + 1) == 0:
            more = self._next(_PIECE)
            self._buffer, self._offset = self._buffer[self._offset :] + more, 0
            if not more:
                cut = len(self._buffer)
                break
        line, self._offset = self._buffer[self._offset : cut], cut
        return line

    def check_end(self) -> None:
        """Refuse a file whose last line has no end: it may have been cut off."""
        if self.last not in (b"", b"\n"):
            raise DataError(
                f"{self._name}: the last line must end in a newline; is the file whole?"
            )


class WithoutComments:
    """Bytes of a text without the lines that begin with a mark, which is one byte long."""

    def __init__(self, stream: TextStream, mark: bytes) -> None:
        self._stream, self._mark = stream, mark
        self._line_start, self._in_comment = True, False  # at a line's beginning; in a comment

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes, all by default; none at the end."""
        while data := self._stream.read(size):
            if text := self._strip(data):
                return text
        return b""

    def _strip(self, data: bytes) -> bytes:
        pieces, offset = [], 0
        while offset < len(data):
            if self._in_comment or (self._line_start and data.startswith(self._mark, offset)):
                end = data.find(b"\n", offset) + 1
                self._in_comment, offset = end == 0, end or len(data)
            else:
                end = data.find(b"\n" + self._mark, offset) + 1 or len(data)
                pieces.append(data[offset:end])
                offset = end
            self._line_start = data[offset - 1 : offset] == b"\n"
        return b"".join(pieces)


def _check_members(packed: BinaryIO, name: str) -> None:
    """Refuse a gzip file of many tiny members, each of which takes its time to be unpacked."""
    members, size, rest = 0, 0, b""
    while size < LARGE and (data := packed.read(_BLOCK)):
        members, size = members + (rest + data).count(_MEMBER), size + len(data)
        rest = data[-2:]
    packed.seek(0)
    if members > MAX_MEMBERS and members * LEAST_MEMBER > size:
        raise DataError(
            f"{name}: more than {MAX_MEMBERS} members of a gzip file must have {LEAST_MEMBER} "
            f"bytes each on average, got {members} in {size} bytes"
        )


@contextmanager
def open_unpacked(file: Path, name: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open the bytes of a file, unpacked if it is gzip; also return their number."""
    with open_regular(file, name=name) as plain:
        if file.suffix.lower() != ".gz":
            yield plain, None
            return
        _check_members(plain, name)
        with gzip.GzipFile(fileobj=plain) as unpacked:
            yield cast("BinaryIO", unpacked), os.fstat(plain.fileno()).st_size


@contextmanager
def open_text(file: Path, name: str | None = None) -> Iterator[TextStream]:
    """Open a text file, or a gzip file of one."""
    called = name or str(file)
    with named(called), open_unpacked(file, called) as (stream, packed):
        yield TextStream(stream, called, packed)


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
    kind = next((kind for sign, kind in _OTHER_FILES.items() if line.startswith(sign)), "")
    if kind or b"\0" in line:
        raise DataError(f"{name}: must be text, is {kind or 'no text: save it as CSV UTF-8'}")
    with named(name):
        text = line.decode("utf-8-sig", errors=errors)
    if _left_open(line.rstrip(b"\r\n"), delimiter):
        raise DataError(f"{name}: header line: {_UNCLOSED}")
    names = split_line(text.rstrip("\n"), name, delimiter)
    while without_blank and names and not names[-1].strip():
        names.pop()
    if not names:
        raise DataError(f"{name}: must have a header line, got an empty one")
    double = [field for field, times in Counter(names).items() if times > 1]
    if double:
        rule = "must stand in the header once: rename one of them"
        raise DataError(f"{name}: column {quote(double[0])}: {rule}")
    return names


def text_frame(
    file: Path, wanted: Callable[[str], bool] = lambda _: True, name: str | None = None
) -> "pd.DataFrame":
    """Return the columns of a CSV file whose names are wanted, as text."""
    called = name or str(file)
    with named(called, also=(pa.ArrowException,)), open_text(file, called) as lines:
        names = header_fields(lines.readline(), called)
        chosen = [column for column in names if wanted(column)]
        pieces = (table.select(chosen) for table in text_tables(lines, names))
        tables = gather(pieces, lambda piece: int(piece.nbytes), called)
    empty = pa.schema([(column, pa.string()) for column in chosen]).empty_table()
    frame: pd.DataFrame = pa.concat_tables([empty, *tables]).to_pandas()
    return frame


def text_tables(lines: TextStream, names: list[str]) -> Iterator[pa.Table]:
    """Yield the rows below a header as columns of text, so that nothing is guessed."""
    return csv_tables(lines, pa.schema([(name, pa.string()) for name in names]))

"""Text files of every reader: pieces of bytes, columns, fixed widths, and tables.

Nothing is unpacked to disk. A member of an archive may have at most 256 GiB, and beyond 64 MiB at
most 200 times its compressed size: no census file comes near either bound. A fault names file, row
(or line), column and value. Rows are counted from 1, without the header. Text stays text until a
column is requested as whole numbers, so no leading zero is lost.
"""

import re
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from scipy import sparse

from bayesrisk._base import disk, validation as check
from bayesrisk._base.calls import caller_level
from bayesrisk._base.disk.delimited import (
    TextStream,
    WithoutComments,
    check_ratio,
    csv_tables,
    header_fields,
    open_unpacked,
    split_line,
)
from bayesrisk._base.disk.text import MISSING, gather, named, open_regular
from bayesrisk._base.validation import BoolArray, ByteArray, IntArray, TextArray
from bayesrisk.exceptions import (
    ArgumentError,
    DataError,
    DataWarning,
    MissingDependencyError,
    quote,
)
from bayesrisk.tables import PublishedTables, Records, Table, Workload
from bayesrisk.tables.published import joined as joined_tables
from bayesrisk.tables.records import joined as joined, record_pieces
from bayesrisk.tables.workload import Key

#: Bytes of a member of an archive.
MAX_MEMBER = 2**38
#: Rows of a sheet, which is what Excel has, and bytes of one.
MAX_ROWS = 2**20
MAX_ROW = 2**22
_ROW = re.compile(rb"<(?:[\w.-]+:)?(?:row|si)[\s/>]")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_COMMENTS = 1000  # lines above a header
# How files begin that are no text, whatever they are called, and what to do.
_BINARY = {
    b"\xd0\xcf\x11\xe0": "an Excel file of the old form (.xls): save it as .xlsx or as CSV",
    b"PK\x03\x04": "a ZIP archive or a workbook: its name must end in .zip or .xlsx",
    b"PAR1": "a Parquet file: its name must end in .parquet",
    b"\x1f\x8b": "a gzip file: its name must end in .gz",
    b"\xff\xfe": "text in UTF-16: save it as CSV UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as CSV UTF-8",
}


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive."""
    with open_regular(path) as packed:
        with named(str(path)):
            archive = zipfile.ZipFile(packed)
        with archive:
            yield archive


@dataclass(frozen=True)
class Source:
    """A file, or a member of an archive."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """The source's name in messages."""
        return str(self.path) if self.member is None else f"{self.path}/{self.member}"

    @property
    def base(self) -> str:
        """The file's own name in lower case, without folder and compression ending."""
        base = (self.member or self.path.name).rsplit("/", 1)[-1].lower()
        return base.removesuffix(".gz")

    @contextmanager
    def raw(self) -> Iterator[tuple[BinaryIO, int | None]]:
        """Open the bytes; yield the stream and the compressed size, or None if not compressed."""
        with named(self.name):
            if self.member is not None:
                with open_archive(self.path) as archive:
                    info = _member(archive, self.member, self.name)
                    with archive.open(info) as stream:
                        yield cast("BinaryIO", stream), info.compress_size
            else:
                with open_unpacked(self.path, self.name) as opened:
                    yield opened

    @contextmanager
    def open(self) -> Iterator[TextStream]:
        """Open the source for reading lines."""
        with self.raw() as (stream, packed):
            yield TextStream(stream, self.name, packed)

    def read(self, most: int) -> bytes:
        """Return all bytes of a small file."""
        with self.raw() as (stream, _):
            raw = stream.read(most + 1)
        if len(raw) > most:
            raise DataError(f"{self.name}: must be at most {most} bytes long, got more")
        return raw


def _member(archive: zipfile.ZipFile, member: str, name: str) -> zipfile.ZipInfo:
    try:
        info = archive.getinfo(member)
    except KeyError as error:
        raise DataError(f"{name}: is not in the archive") from error
    if info.compress_type not in _METHODS:
        raise DataError(
            f"{name}: must be packed by DEFLATE or not at all, got method {info.compress_type}"
        )
    if info.file_size > MAX_MEMBER:
        raise DataError(f"{name}: must be at most {MAX_MEMBER} bytes long, got {info.file_size}")
    check_ratio(name, info.file_size, info.compress_size)
    return info


def list_sources(path: str | Path) -> list[Source]:
    """Return the files of a folder, the members of an archive, or the file itself."""
    place = check.path(path, "path")
    with named(str(place)):
        if place.is_dir():
            return [Source(file) for file in sorted(place.iterdir()) if file.is_file()]
        if not place.exists():
            raise DataError(f"{place}: no such file")
        if place.suffix.lower() != ".zip":
            return [Source(place)]
        with open_archive(place) as archive:
            members = [info for info in archive.infolist() if info.filename]
            return [Source(place, info.filename) for info in members if not info.is_dir()]


def find_source(path: str | Path, match: Callable[[str], bool], kind: str) -> Source:
    """Return the only file below ``path`` whose own name matches; raise otherwise."""
    sources = list_sources(path)
    fitting = [source for source in sources if match(source.base)]
    if len(fitting) == 1:
        return fitting[0]
    listing = ", ".join(source.base for source in sources[:10]) or "nothing"
    raise DataError(f"{path}: must hold exactly one {kind}, got {len(fitting)} among: {listing}")


def one_source(path: str | Path, *endings: str) -> Source:
    """Return a file, or the only member of an archive or folder with one of the endings."""
    place = check.path(path, "path")
    with named(str(place)):
        several = place.is_dir() or place.suffix.lower() == ".zip"
    if several:
        return find_source(place, lambda base: base.endswith(endings), " or ".join(endings))
    return list_sources(place)[0]


def blocks(source: Source, size: int) -> Iterator[bytes]:
    """Yield pieces of whole lines, of about ``size`` bytes."""
    rest = b""
    with source.open() as stream:
        while data := stream.read(size):
            cut = data.rfind(b"\n") + 1
            if cut == 0:
                rest += data
                continue
            whole, rest = rest + data[:cut], data[cut:]
            yield whole
        stream.check_end()


def first_lines(source: Source, comment: str | None) -> tuple[int, bytes]:
    """Return the number of comment lines above the header, and the header line."""
    mark = None if comment is None else comment.encode()
    with source.open() as stream:
        for skipped in range(_COMMENTS):
            line = stream.readline()
            for start, description in _BINARY.items():
                if skipped == 0 and line.startswith(start):
                    raise DataError(f"{source.name}: cannot be read as text, is {description}")
            if mark is None or not line.removeprefix(b"\xef\xbb\xbf").startswith(mark):
                if line:
                    return skipped, line
                raise DataError(f"{source.name}: must have a header line, got none")
    raise DataError(f"{source.name}: must have a header line among the first {_COMMENTS}")


def sheet_rows(source: Source) -> Iterator[list[str]]:
    """Yield an Excel workbook's first sheet row by row as text, with blank cells empty."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingDependencyError(
            f"{source.name}: an Excel workbook needs openpyxl: "
            "pip install 'bayesrisk-disclosure[excel]', or save it as CSV"
        ) from error
    with open_archive(source.path) as archive:
        for info in archive.infolist():
            _check_part(archive, info.filename, f"{source.name}/{info.filename}")
    # Every kind of error means that it is no workbook.
    with named(source.name, also=(Exception,)), open_regular(source.path) as packed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions that are not kept
            book = openpyxl.load_workbook(packed, read_only=True, data_only=True)
        try:
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # they are often wrong
            for place, row in enumerate(sheet.iter_rows(values_only=True)):
                if place == MAX_ROWS:  # those that the file leaves out are counted, too
                    raise DataError(f"{source.name}: must have at most {MAX_ROWS} rows, got more")
                yield [_cell_text(value) for value in row]
        finally:
            book.close()


def _check_part(archive: zipfile.ZipFile, member: str, name: str) -> None:
    """Raise if a workbook part has too many rows or texts, or too long ones, before reading it."""
    info = _member(archive, member, name)
    if info.file_size <= MAX_ROW or member.startswith("xl/media/"):
        return
    rows, run, rest = 0, 0, b""
    with named(name), archive.open(info) as stream:
        while data := stream.read(CHUNK):
            text = rest + data
            cut = max(text.rfind(b"<"), 0)  # the last tag may go on
            text, rest = text[:cut], text[cut:]
            places = [match.start() for match in _ROW.finditer(text)]
            rows += len(places)
            longest = max(np.diff([-run, *places, cut + len(rest)]))
            run = cut - places[-1] if places else run + cut
            if rows > MAX_ROWS or longest > MAX_ROW:
                rule = f"at most {MAX_ROWS} rows, of at most {MAX_ROW} bytes each"
                raise DataError(f"{name}: must have {rule}, got more")


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def new_file(path: str | Path) -> AbstractContextManager[BinaryIO]:
    """Open a new file that appears under its name only when complete."""
    return disk.whole_file(check.path(path, "path"), new=True)


def write_table(
    path: str | Path,
    columns: Iterable[str],
    tables: Iterable[pa.Table],
    *,
    delimiter: str = ",",
    above: str = "",
    quotes: bool = False,
) -> None:
    """Write a header and tables to a new file."""
    names = list(columns)
    options = pyarrow.csv.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style="needed" if quotes else "none"
    )
    with new_file(path) as stream:
        stream.write((above + delimiter.join(names) + "\n").encode())
        for table in tables:
            if not table.num_rows:
                continue
            try:
                pyarrow.csv.write_csv(table.select(names), stream, options)
            except pa.ArrowInvalid as error:
                rule = f"records must hold no text with {delimiter!r}"
                raise ArgumentError(f"{rule}: {error}") from error


# Columns of text and of lines of fixed width, checked; tables and records made of pieces.

#: Rows in memory at a time, where the caller does not say.
CHUNK = 2**18
_ASCII_ZERO = 48
_OTHER_LENGTH = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, with their position for messages."""

    name: str
    start: int
    table: pa.Table
    places: IntArray | None = None  # of the rows after ``start``, where they are not all
    unit: str = "row"  # what messages call one

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def fail(self, column: str, row: int, rule: str) -> DataError:
        """Return the error for a value that violates ``rule``."""
        value = self.table.column(column)[row].as_py()
        place = self.start + (row if self.places is None else int(self.places[row]))
        location = f"{self.name}: {self.unit} {place + 1}, column {column!r}"
        return DataError(f"{location}: must be {rule}, got {quote(value)}")

    def check(self, column: str, good: BoolArray, rule: str) -> None:
        """Raise for the first row that is not good."""
        if not good.all():
            raise self.fail(column, int(np.argmin(good)), rule)

    def whole(self, column: str, low: int, high: int, *, rule: str | None = None) -> IntArray:
        """Return a column of integers within bounds; ``rule`` describes them in messages."""
        values = self.table.column(column)
        if self.unit == "line":  # where blanks fill a field up on the left
            values = pc.utf8_ltrim(values, " ")
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
        """Return a column of codes, each of which must be listed."""
        values = np.sort(np.fromiter(allowed, dtype=np.int64))
        numbers = self.whole(column, int(values[0]), int(values[-1]))
        if values.size != values[-1] - values[0] + 1:
            listed = ", ".join(str(v) for v in values)
            self.check(column, np.isin(numbers, values), f"one of {listed}")
        return numbers

    def text(self, column: str, width: int, rule: str) -> ByteArray:
        """Return a column of fixed-width text as rows of characters."""
        values = one_array(self.table.column(column))
        # A null is -1 characters long.
        self.check(column, pc.fill_null(pc.binary_length(values), -1).to_numpy() == width, rule)
        return characters(values, width)

    def matrix(self, column: str, width: int) -> ByteArray:
        """Return a column of fixed-width digits as rows of characters."""
        field = self.text(column, width, f"{width} digits")
        self.check(column, all_digits(field), f"{width} digits")
        return field

    def equals(self, column: str, text: str) -> BoolArray:
        """Return a mask of the values that equal a text."""
        equal: BoolArray = pc.equal(self.table.column(column), text).to_numpy()
        return equal

    def take(self, rows: IntArray) -> "Piece":
        """Return some of the rows; messages keep the original numbers."""
        places = rows if self.places is None else self.places[rows]
        return replace(self, table=self.table.take(pa.array(rows)), places=places)

    def replace(self, column: str, values: pa.Array) -> "Piece":
        """Return the piece with one column replaced."""
        place = self.table.column_names.index(column)
        return replace(self, table=self.table.set_column(place, column, values))


class Faults:
    """Invalid values: an error, or counted as missing if ``on_error`` is "missing"."""

    def __init__(self, on_error: str) -> None:
        self.lenient = check.choice(on_error, "on_error", ("refuse", "missing")) == "missing"
        self.counts: Counter[tuple[str, str]] = Counter()

    def missing(
        self, piece: Piece, column: str, good: BoolArray, rule: str, reason: str = ""
    ) -> BoolArray:
        """Return a mask of missing values; raise at the first if the file is refused."""
        bad = ~good
        if bad.any():
            if not self.lenient:
                error = piece.fail(column, int(np.argmax(bad)), rule)
                raise DataError(str(error), advice=MISSING)
            self.counts[column, reason or f"not {rule}"] += int(bad.sum())
        return bad

    def cell_counts(self, piece: Piece, column: str, table: str) -> tuple[IntArray, BoolArray]:
        """Return a table's counts (0 where missing), and a mask of the missing ones."""
        values = piece.table.column(column)
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy()))
            rule = f"a count: '.' says that {table} is not published at this level"
            raise piece.fail(column, row, rule)
        rule = f"a whole number in [0, {check.MAX_COUNT}]"
        if pa.types.is_string(values.type):
            digits = pc.match_substring_regex(values, "^[0-9]{1,18}$")
            values = pc.if_else(digits, values, "-1").cast(pa.int64())
        numbers: IntArray = pc.fill_null(values, -1).to_numpy().astype(np.int64)
        good = (numbers >= 0) & (numbers <= check.MAX_COUNT)
        bad = self.missing(piece, column, good, rule)
        return (np.where(bad, 0, numbers) if bad.any() else numbers), bad

    def warn(self, source: str) -> None:
        """Warn about missing values, counted by column and reason."""
        if self.counts:
            listed = "; ".join(
                f"column {column!r}: {reason} ({times} rows)"
                for (column, reason), times in self.counts.items()
            )
            text = f"{source}: values that cannot be are missing: {listed}"
            warnings.warn(DataWarning(text, self.counts), stacklevel=caller_level())


def _first_unreadable(values: pa.ChunkedArray) -> int:
    """Return the position of the first value that is not an integer, by bisection."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            values.slice(low, middle - low).cast(pa.int64())
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def one_array(values: pa.ChunkedArray) -> pa.Array:
    """Return a chunked column as a single array."""
    array = values.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    return array


def characters(values: pa.Array, width: int) -> ByteArray:
    """Return texts of equal length as rows of bytes."""
    n = len(values)
    if n == 0:
        return np.zeros((0, width), dtype=np.uint8)
    buffers = values.buffers()
    offsets = np.frombuffer(buffers[1], dtype=np.int32)[values.offset : values.offset + n + 1]
    data = np.frombuffer(buffers[2], dtype=np.uint8)[int(offsets[0]) : int(offsets[-1])]
    return data.reshape(n, width)


def all_digits(field: ByteArray) -> BoolArray:
    """Return a mask of the rows of characters that are all digits."""
    good: BoolArray = np.logical_and.reduce((field - np.uint8(_ASCII_ZERO)) <= 9, axis=1)
    return good


def texts(matrix: ByteArray) -> pa.Array:
    """Return a matrix of ASCII characters as an Arrow text array, without extra copies."""
    n, width = matrix.shape
    offsets = np.arange(n + 1, dtype=np.int32) * np.int32(width)
    data = np.ascontiguousarray(matrix)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(data))


def header_names(source: Source, *, delimiter: str = ",", comment: str | None = None) -> list[str]:
    """Return the header's column names, all different, without trailing empty ones."""
    line = first_lines(source, comment)[1]
    return header_fields(line, source.name, delimiter, errors="replace", without_blank=True)


@dataclass(frozen=True)
class TextForm:
    """Format of delimited text columns.

    ``nulls`` stand for missing whole numbers, ``skip`` lines below the header are left out, and
    ``kind`` is the type of text columns. Without a header, ``blank`` columns at the end must be
    empty.
    """

    delimiter: str = ","
    comment: str | None = None
    header: bool = True
    quotes: bool = True
    nulls: Sequence[str] = ()
    skip: int = 0
    blank: int = 0
    kind: pa.DataType = pa.string()  # noqa: RUF009  (a type without state)


def csv_pieces(
    source: Source,
    names: list[str],
    *,
    wanted: list[str],
    chunk: int,
    whole: Collection[str] = (),
    form: TextForm = TextForm(),
) -> Iterator[Piece]:
    """Yield the wanted columns, ``chunk`` rows at a time; at least one piece, if empty.

    Columns are text, except that those in ``whole`` are parsed as integers.
    """
    delimiter, nulls = form.delimiter, form.nulls
    above, blank = 0, form.blank
    if form.header:
        comments, line = first_lines(source, form.comment)
        text = line.decode("utf-8", errors="replace").rstrip("\n")
        fields = split_line(text, source.name, delimiter)
        named_fields = [i for i, field in enumerate(fields, 1) if field.strip()]
        above, blank = comments + 1, len(fields) - max(named_fields, default=0)
    unnamed = [f"column {len(names) + place + 1}, without a name" for place in range(blank)]
    plain = replace(form, kind=pa.string())
    reread = partial(csv_pieces, source, names, wanted=wanted, chunk=chunk, form=plain)
    kinds = pa.schema([(n, pa.int64() if n in whole else form.kind) for n in [*names, *unnamed]])
    columns = [*wanted, *unnamed]
    schema = pa.schema([kinds.field(name) for name in columns])
    with named(source.name), source.open() as stream, _located(source, whole, nulls, reread):
        for _ in range(above + form.skip):
            stream.readline()
        rest = stream if form.comment is None else WithoutComments(stream, form.comment.encode())
        tables = csv_tables(
            rest, kinds, wanted=columns, nulls=nulls, delimiter=delimiter, quotes=form.quotes
        )
        start, buffer, rows = 0, [schema.empty_table()], 0
        for table in tables:
            buffer.append(table)
            rows += table.num_rows
            while rows >= chunk:
                stacked = pa.concat_tables(buffer)
                yield _without(Piece(source.name, start, stacked.slice(0, chunk)), unnamed)
                start, rows, buffer = start + chunk, rows - chunk, [stacked.slice(chunk)]
        stream.check_end()
        if rows or start == 0:
            yield _without(Piece(source.name, start, pa.concat_tables(buffer)), unnamed)


def _without(piece: Piece, unnamed: list[str]) -> Piece:
    """Return the piece without unnamed columns; raise unless these are empty."""
    for name in unnamed:
        empty = pc.equal(pc.binary_length(piece.table.column(name)), 0)
        piece.check(name, empty.to_numpy(), "empty")
    return Piece(piece.name, piece.start, piece.table.drop_columns(unnamed)) if unnamed else piece


@contextmanager
def _located(
    source: Source,
    whole: Collection[str],
    nulls: Sequence[str],
    reread: Callable[[], Iterator[Piece]],
) -> Iterator[None]:
    """Raise parser errors with the row's number; for a bad value, after rereading as text."""
    try:
        yield
    except pa.ArrowInvalid as error:
        if match := _OTHER_LENGTH.search(str(error)):
            number, expected, actual = match.groups()
            place = "" if number is None else f" {number}"
            raise DataError(
                f"{source.name}: row{place}: must have {expected} columns, got {actual}"
            ) from None
        if "conversion error" not in str(error):
            raise
        for piece in reread():
            for name in whole:
                present = ~np.isin(piece.table.column(name).to_numpy(), list(nulls))
                piece.take(np.flatnonzero(present)).whole(name, -(2**63), 2**63 - 1)
        raise


def digit_matrix(code: IntArray, width: int) -> ByteArray:
    """Return the last ``width`` digits of integers as rows of characters."""
    matrix = np.empty((code.size, width), dtype=np.uint8)
    rest = code
    for place in range(width - 1, -1, -1):
        rest, digit = np.divmod(rest, 10)
        matrix[:, place] = digit + _ASCII_ZERO
    return matrix


# Lines of fixed width as a matrix of bytes, from which columns are cut and numbers made.

_NEWLINE = 10


class Lines(NamedTuple):
    """Some lines of a fixed-width file."""

    name: str
    before: int
    buffer: ByteArray
    starts: IntArray
    lengths: IntArray

    def text(self, start: int, stop: int, rows: IntArray) -> ByteArray:
        """Return a column of some lines as rows of characters."""
        short = self.lengths[rows] < stop
        if short.any():
            row = int(rows[np.argmax(short)])
            raise DataError(
                f"{self.name}: line {self.before + row + 1}: must have at least {stop} "
                f"characters, got {self.lengths[row]}"
            )
        if rows.size == 0:
            return np.zeros((0, stop - start), dtype=np.uint8)
        # A view of every window of that width; rows are picked from it in one pass.
        windows = np.lib.stride_tricks.sliding_window_view(self.buffer, stop - start)
        picked: ByteArray = windows[self.starts[rows] + start]
        return picked

    def piece(self, fields: Mapping[str, tuple[int, int]], rows: IntArray | None = None) -> Piece:
        """Return columns of some lines, each given by start and stop, counted from 0."""
        rows = np.arange(self.starts.size) if rows is None else rows
        cut = {name: self.text(start, stop, rows) for name, (start, stop) in fields.items()}
        # What is no ASCII is no code of these files, and must not become broken text.
        columns = {name: texts(np.where(m < 128, m, ord("?")).astype(np.uint8))
                   for name, m in cut.items()}  # fmt: skip
        return Piece(self.name, self.before, pa.table(columns), rows, "line")


def line_pieces(source: Source, size: int) -> Iterator[Lines]:
    """Yield a file's lines in pieces of about ``size`` bytes."""
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


# Records that come in pieces: taken apart for writers; readers put them together (`joined`).


def schema_pieces(records: Records | Iterable[Records], schema: str) -> Iterator[Records]:
    """Yield records piece by piece; raise unless they have the writer's schema."""
    for piece in record_pieces(records):
        if piece.schema.name != schema:
            raise ArgumentError(
                f"records must have the schema {schema!r}, got {quote(piece.schema.name)}"
            )
        yield piece


# Published tables that come in pieces: made from cells read, checked by totals, put together.


def place_texts(matrix: ByteArray) -> TextArray:
    """Return rows of ASCII characters as NumPy texts."""
    n, width = matrix.shape
    if width == 0:
        return np.full(n, "", dtype="<U1")
    return np.ascontiguousarray(matrix).view(f"S{width}").reshape(n).astype(f"<U{width}")


def piece_of_tables(
    workload: Workload,
    geoids: Mapping[str, TextArray],
    counts: Mapping[Key, IntArray],
    missing: Mapping[Key, BoolArray],
) -> PublishedTables:
    """Return the tables of some places, sorted, from a row of counts for each.

    Counts that are ``missing`` are suppressed.
    """
    order = {level: np.argsort(places) for level, places in geoids.items()}
    return PublishedTables(
        workload,
        {level: geoids[level][rows] for level, rows in order.items()},
        {key: sparse.csr_array(counts[key][order[key[0]]]) for key in workload.tables},
        {key: sparse.csr_array(bad[order[key[0]]]) for key, bad in missing.items() if bad.any()},
    )


def table_counts(
    piece: Piece, columns: Sequence[str], table: Table, faults: Faults
) -> tuple[IntArray, BoolArray]:
    """Return a table's counts, and a mask of the missing ones.

    A further column is the total, to which the cells must add up if none is missing.
    """
    pairs = [faults.cell_counts(piece, column, table.name) for column in columns]
    values, missing = (np.stack(part, axis=1) for part in zip(*pairs, strict=True))
    size = len(table.cells)
    if len(columns) > size:
        equal = (values[:, size] == values[:, :size].sum(axis=1)) | missing.any(axis=1)
        piece.check(columns[size], equal, f"the sum of the cells of {table.name}")
    return values[:, :size], missing[:, :size]


def combined(pieces: Iterable[PublishedTables], path: str | Path) -> PublishedTables:
    """Return the joined tables of all pieces; raise if a place occurs twice."""
    return joined_tables(gather(pieces, _bytes, str(check.path(path, "path"))))


def _bytes(tables: PublishedTables) -> int:
    """Return the memory of tables in bytes: places, and non-zero counts."""
    counts = sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in tables.counts.values())
    return int(counts + sum(places.nbytes for places in tables.geoids.values()))


def check_distinct(
    codes: IntArray, places: IntArray | int, name: str, unit: str, column: str
) -> None:
    """Raise if a place occurs twice.

    ``places`` are its rows or lines, from 1, or the first of them if they are consecutive. Correct
    codes take as much memory again as the codes; faulty ones take more.
    """
    ordered = np.sort(codes)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    order = np.argsort(codes, kind="stable")
    repeat = int(np.argmax(codes[order][1:] == codes[order][:-1]))
    first, second = order[repeat], order[repeat + 1]
    rows = np.arange(places, places + codes.size) if isinstance(places, int) else places
    raise DataError(
        f"{name}: {unit} {rows[second]}, column {column!r}: must be a place that is there "
        f"once, got that of {unit} {rows[first]} again"
    )


_STATES = (
    "AL01 AK02 AZ04 AR05 CA06 CO08 CT09 DE10 DC11 FL12 GA13 HI15 ID16 IL17 IN18 IA19 KS20 KY21 "
    "LA22 ME23 MD24 MA25 MI26 MN27 MS28 MO29 MT30 NE31 NV32 NH33 NJ34 NM35 NY36 NC37 ND38 OH39 "
    "OK40 OR41 PA42 RI44 SC45 SD46 TN47 TX48 UT49 VT50 VA51 WA53 WV54 WI55 WY56 PR72"
)
#: FIPS code of each state and of Puerto Rico by its postal abbreviation.
STATES = MappingProxyType({entry[:2]: entry[2:] for entry in _STATES.split()})
_STATE_CODES = np.zeros(100, dtype=bool)
_STATE_CODES[[int(code) for code in STATES.values()]] = True
_WIDTHS = (2, 3, 6, 4)  # state, county, tract, block


def state_code(state: str | None) -> str | None:
    """Return a state's FIPS code from its code or postal abbreviation."""
    if state is None or (isinstance(state, str) and state in STATES.values()):
        return state
    if isinstance(state, str) and state.upper() in STATES:
        return STATES[state.upper()]
    raise ArgumentError("state", "must be a FIPS code or a postal abbreviation", got=state)


def state_of_name(base: str) -> str | None:
    """Return the state named in a file's name, as in ``2020_ppmf_person_VT.csv``, or None."""
    last = base.split(".")[0].rsplit("_", 1)[-1].upper()
    return STATES.get(last) if "_" in base else None


def known_states(matrix: ByteArray) -> BoolArray:
    """Return a mask of the codes that begin with a state's digits."""
    tens, ones = matrix[:, 0] - np.uint8(48), matrix[:, 1] - np.uint8(48)
    mask: BoolArray = _STATE_CODES[tens.astype(np.int64) * 10 + ones]
    return mask


def check_state(piece: Piece, column: str, codes: ByteArray, state: str | None) -> None:
    """Raise for codes (rows of digits) outside all states, or outside ``state`` if given."""
    piece.check(column, known_states(codes), "in a state or Puerto Rico")
    if state is not None:
        wanted = np.frombuffer(state.encode(), dtype=np.uint8)
        piece.check(column, (codes[:, :2] == wanted).all(axis=1), f"in state {state}")


def block_column(piece: Piece, columns: Sequence[str], state: str | None) -> pa.Array:
    """Return 15-digit block codes from columns of state, county, tract, group and block.

    The block group must be the first digit of the block.
    """
    state_column, county, tract, group, block = columns
    parts = [
        piece.matrix(column, width)
        for column, width in zip((state_column, county, tract, block), _WIDTHS, strict=True)
    ]
    whole = np.hstack(parts)
    equal = piece.matrix(group, 1)[:, 0] == whole[:, 11]
    piece.check(group, equal, f"the first digit of {block!r}")
    check_state(piece, state_column, whole, state)
    return texts(whole)

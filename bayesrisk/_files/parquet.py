"""Parquet files from elsewhere: columns that stand there once, of known types, in bounded memory.

What other programs left in a file's metadata (indices, types of pandas) is not read.  Texts come
in as dictionaries and are checked before they are written out, so that a short file cannot become
a long table, and damaged indices and text that is no UTF-8 are found.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bayesrisk._files.text import Fault, check_held, named, shown
from bayesrisk.exceptions import DataError

if TYPE_CHECKING:
    import pandas as pd

# -----------------------------------------------------------------------------
# How long the pages of a Parquet file are, and how many values its lists hold, by its own word.
#
# A page is held whole, and memory for it is taken by what its header says before a byte of it is
# read.  A row of a list may hold billions of equal numbers in a few bytes, and is read whole; the
# footer says how many there are.  pyarrow does not show the one, and its view of the other ends the
# process where it is damaged, so that both are read here: Thrift's compact protocol, as the Parquet
# format's specification has it.


#: Numbers in the lists of a file, and how many for each byte of it once there are many.
MAX_NUMBERS = 2**23
MAX_NUMBERS_PER_BYTE = 512
#: Bytes of all pages before they were compressed, and how many for each byte of the file.
MAX_PAGES = 2**24
MAX_BYTES_PER_BYTE = 128
#: Bytes of a page's header: it may quote the least and the greatest text of the page.
_HEADER = 2**16
_DEPTH = 32
_BITS = 64  # of a whole number
_NUMBER = (5, 4, 6)
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
# Fields of the specification.
_ROW_GROUPS, _COLUMNS, _ABOUT, _PATH, _NUMBERS, _DATA_AT, _DICTIONARY_AT = 4, 1, 3, 3, 5, 9, 11
_KIND, _LENGTH, _STORED = 1, 2, 3
_VALUES = {0: 5, 2: 7, 3: 8}  # where the header of a kind of page says how many there are
_DICTIONARY = 2


class _Compact:
    """Values of a text of the compact protocol, from its beginning; structs by their fields."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > _BITS:
                raise ValueError(f"whole numbers must have at most {_BITS} bits")

    def _number(self) -> int:
        value = self.data[self.at]
        if value < 128:  # most are
            self.at += 1
        else:
            value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind: int, depth: int = 0) -> Any:
        """Return a value that stands alone or in a list."""
        if depth > _DEPTH:
            raise ValueError(f"the footer must be at most {_DEPTH} deep")
        if kind in (_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY):
            size = self._varint() if kind == _BINARY else 8 if kind == _DOUBLE else 1
            self.at += size
            return self.data[self.at - size : self.at]
        if kind in (_LIST, _SET):
            return self._list(depth)
        if kind == _MAP:
            raise ValueError("the footer must hold no maps")
        return self.struct(depth) if kind == _STRUCT else self._number()

    def _list(self, depth: int) -> list[Any]:
        head = self.data[self.at]
        self.at += 1
        size = self._varint() if head >> 4 == 15 else head >> 4
        if size > len(self.data):
            raise ValueError(f"the footer must hold lists of its own length at most, got {size}")
        return [self.value(head & 15, depth + 1) for _ in range(size)]

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct by their numbers."""
        found: dict[int, Any] = {}
        field = 0
        while head := self.data[self.at]:
            self.at += 1
            field = field + (head >> 4) if head >> 4 else self._number()
            kind = head & 15
            if kind in _NUMBER:  # most are
                found[field] = self._number()
            elif kind in (_TRUE, _FALSE):  # of a field they are the value itself
                found[field] = kind == _TRUE
            else:
                found[field] = self.value(kind, depth + 1)
        self.at += 1
        return found


def _abouts(stream: BinaryIO) -> tuple[list[list[dict[int, Any]]], int]:
    """Return what the footer says of the columns of each row group, and where the footer begins."""
    size = stream.seek(0, 2)
    stream.seek(-8, 2)
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(-8 - length, 2)
    footer = _Compact(stream.read(length)).struct()
    groups = [[column[_ABOUT] for column in group[_COLUMNS]] for group in footer[_ROW_GROUPS]]
    return groups, size - 8 - length


def check_lists(file: Path, columns: list[str]) -> None:
    """Refuse a file whose lists in some columns hold more numbers than its bytes allow."""
    with named(str(file), also=(LookupError, TypeError, AttributeError)), file.open("rb") as stream:
        groups, _ = _abouts(stream)
        wanted = {column.encode() for column in columns}
        abouts = [about for group in groups for about in group]
        numbers = sum(about[_NUMBERS] for about in abouts if about[_PATH][0] in wanted)
        size = stream.seek(0, 2)
    most = max(MAX_NUMBERS, MAX_NUMBERS_PER_BYTE * size)
    if numbers > most:
        raise DataError(
            f"{file}: columns {', '.join(columns)}: must hold at most {most} numbers, by the "
            f"file's size, got {numbers}"
        )


def check_pages(
    file: Path,
    columns: Collection[str] | None = None,
    groups: Collection[int] | None = None,
    fault: Fault = DataError,
) -> None:
    """Refuse a file whose pages, of some columns in some row groups, are longer than it allows.

    The header of every page is read, and nothing of what follows it: no page may reach beyond the
    pages of the file, none may be part of another one, and all of them, before they were
    compressed, may be as long as the file's size allows.
    """
    wanted = None
    if columns is not None:  # pyarrow takes "a.b" for the part b of a as well
        wanted = {n.encode() for name in columns for n in (name, name.partition(".")[0])}
    with (
        named(str(file), fault, also=(LookupError, TypeError, AttributeError)),
        file.open("rb") as stream,
    ):
        found, end = _abouts(stream)
        most, stored, length = max(MAX_PAGES, MAX_BYTES_PER_BYTE * stream.seek(0, 2)), 0, 0
        for number in range(len(found)) if groups is None else groups:
            for about in found[number]:
                if wanted is not None and about[_PATH][0] not in wanted:
                    continue
                try:
                    sizes = _pages(stream, about, end, end - stored)
                except ValueError as error:
                    name = shown(about[_PATH][0].decode(errors="replace"))
                    raise ValueError(f"column {name}: {error}") from error
                stored, length = stored + sizes[0], length + sizes[1]
                if length > most:
                    raise fault(f"{file}: pages must be at most {most} bytes long, got {length}")


def _pages(stream: BinaryIO, about: dict[int, Any], end: int, room: int) -> tuple[int, int]:
    """Return the bytes of a column's pages in a row group: as they are stored, and of their text.

    ``room`` is how many of the bytes before ``end`` are of no page so far.
    """
    at = about[_DATA_AT]
    if 0 < about.get(_DICTIONARY_AT, 0) < at:
        at = about[_DICTIONARY_AT]
    left, stored, length = about[_NUMBERS], 0, 0
    while left > 0:
        header, begin = _header(stream, at, end)
        kind, size, packed = header[_KIND], header[_LENGTH], header[_STORED]
        values = header[_VALUES[kind]][1] if kind in _VALUES else 0
        stored, length = stored + begin - at + packed, length + size
        if not 0 <= packed <= end - begin or stored > room:
            raise ValueError(f"the page at byte {at} cannot be {packed} bytes long")
        # Each value in a dictionary takes a byte at least.
        if not 0 <= values <= (size if kind == _DICTIONARY else left):
            raise ValueError(f"the page at byte {at} cannot hold {values} values")
        if size < 0:
            raise ValueError(f"the page at byte {at} cannot hold {size} bytes")
        left -= 0 if kind == _DICTIONARY else values
        at = begin + packed
    return stored, length


def _header(stream: BinaryIO, at: int, end: int) -> tuple[dict[int, Any], int]:
    """Return the header of the page at a place, and where it ends."""
    if not 0 <= at < end:
        raise ValueError(f"a page must begin before byte {end}, got {at}")
    for size in (_HEADER >> 8, _HEADER):
        stream.seek(at)
        text = _Compact(stream.read(min(size, end - at)))
        try:
            return text.struct(), at + text.at
        except IndexError:
            continue
    raise ValueError(f"the header of the page at byte {at} must be at most {_HEADER} bytes long")


# -----------------------------------------------------------------------------


#: Key of a file's metadata under which this package says what the codes of persons mean.
CODING = b"bayesrisk.dialect"
#: Values of a file, and how many for each byte of it once there are many.
MAX_VALUES = 2**25
MAX_PER_BYTE = 64
#: Bytes of a table held whole, until there are many for each byte of the file.
MAX_TABLE = 2**27
#: Bytes of a footer.
MAX_FOOTER = 2**22
#: Bytes of a text, and of all texts of a column on average once there are many.
MAX_TEXT = 2**16
MAX_MEAN_TEXT = 2**8
#: Columns with what they may hold: of "text", "whole", "number" and "flag", or anything flat.
Kinds = Mapping[str, Sequence[str]]
_BUFFER = 2**20  # bytes read ahead of each column
_INDEX = re.compile(r"__index_level_\d+__")


def plain_kind(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, also where they come as a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds texts, as they are or as a dictionary."""
    kind = plain_kind(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    floating = pa.types.is_float32(kind) or pa.types.is_float64(kind)
    return bool(pa.types.is_integer(kind) or floating)


def _is_flat(kind: pa.DataType) -> bool:
    kind = plain_kind(kind)
    tests = (pa.types.is_boolean, pa.types.is_decimal, pa.types.is_temporal)
    return is_text(kind) or _is_number(kind) or any(test(kind) for test in tests)


_TESTS: dict[str, Callable[[pa.DataType], Any]] = {
    "text": is_text,
    "whole": pa.types.is_integer,
    "number": _is_number,
    "flag": pa.types.is_boolean,
    "anything flat": _is_flat,
}


def unique_names(schema: pa.Schema, file: Path, fault: Fault = DataError) -> list[str]:
    """Return the names of the columns; each must stand there once."""
    names: list[str] = schema.names
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise fault(f"{file}: column {shown(name)}: must stand in the file once")
        seen.add(name)
    return names


def check_kinds(schema: pa.Schema, file: Path, kinds: Kinds, fault: Fault = DataError) -> None:
    """Refuse a file whose columns are missing or of another type."""
    for name, allowed in kinds.items():
        if name not in schema.names:
            held = ", ".join(schema.names) or "none"
            raise fault(f"{file}: must have a column {name!r}; columns: {held[:1000]}")
        kind = schema.field(name).type
        # A column of nothing but nulls is one of missing values: its rows are refused by others.
        if not (pa.types.is_null(kind) or any(_TESTS[test](kind) for test in allowed)):
            kind = plain_kind(kind)
            raise fault(f"{file}: column {name!r}: must hold {' or '.join(allowed)}, got {kind}")


@contextmanager
def opened(
    file: Path, fault: Fault = DataError, **options: Any
) -> Iterator[tuple[parquet.ParquetFile, pa.Schema]]:
    """Open a file, its columns each there once, and no more values in it than its bytes allow.

    The columns are told with the types that they have in the file; texts come as dictionaries.
    Who reads from it has the pages checked before (``check_pages``).
    """
    with named(str(file), fault, also=(pa.ArrowException,)):
        # Buffered ahead of what is read, all pages stay in memory until the file is closed.
        options = {
            "page_checksum_verification": True,
            "pre_buffer": False,
            "buffer_size": _BUFFER,
            **options,
        }
        check_footer(file, fault)
        with parquet.ParquetFile(file, **options) as source:
            schema = source.schema_arrow
            unique_names(schema, file, fault)
            _check_values(file, source.metadata, fault)
            found = [name for name in schema.names if is_text(schema.field(name).type)]
        with parquet.ParquetFile(file, read_dictionary=found, **options) as source:
            yield source, schema


def check_footer(file: Path, fault: Fault = DataError) -> None:
    """Refuse a file whose footer is too long: what is read of it takes ten times as much."""
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - 8))
        length, mark = int.from_bytes(stream.read(4), "little"), stream.read(4)
    most = MAX_FOOTER + size // MAX_BYTES_PER_BYTE
    if mark == b"PAR1" and length > most:
        raise fault(f"{file}: the footer must be at most {most} bytes long, got {length}")


def _check_values(file: Path, about: Any, fault: Fault) -> None:
    # Not from what is told of each column: to look at it where it is damaged ends the process.
    values = about.num_rows * about.num_columns
    most = max(MAX_VALUES, MAX_PER_BYTE * file.stat().st_size)
    if values > most:
        raise fault(f"{file}: must hold at most {most} values, by its size, got {values}")


def check_whole(file: Path, columns: Sequence[str] | None = None, fault: Fault = DataError) -> None:
    """Refuse a file whose columns, by default all, are too many or too long to be held at once."""
    with opened(file, fault) as (source, schema):
        _check_whole(file, source.metadata.num_rows, schema, columns, fault)


def _check_whole(
    file: Path, rows: int, schema: pa.Schema, columns: Sequence[str] | None, fault: Fault
) -> None:
    kinds = [plain_kind(schema.field(name).type) for name in columns or schema.names]
    # Of a text its place takes four bytes; how long it is, the footer does not say.
    width = sum(
        4 if is_text(kind) or pa.types.is_null(kind) else -(-kind.bit_width // 8) for kind in kinds
    )
    check_held(str(file), rows * width, _most(file), fault)


def _most(*files: Path) -> int:
    return max(MAX_TABLE, MAX_BYTES_PER_BYTE * sum(file.stat().st_size for file in files))


def check_together(name: str, size: int, files: Sequence[Path], fault: Fault = DataError) -> None:
    """Refuse files that each can be held, but all of them, of so many bytes, cannot."""
    with named(name, fault):
        check_held(name, size, _most(*files), fault)


def _check_flat(schema: pa.Schema, file: Path, fault: Fault) -> None:
    """Refuse lists and the like: how much is in a row of them, the footer does not say."""
    for field in schema:
        kind = plain_kind(field.type)
        single = (pa.types.is_primitive, pa.types.is_null, pa.types.is_decimal)
        if not (is_text(kind) or any(test(kind) for test in single)):
            raise fault(
                f"{file}: column {shown(field.name)}: must hold single values, "
                f"got {shown(str(field.type))}"
            )


def _check_texts(column: pa.ChunkedArray, name: str, file: Path, fault: Fault) -> None:
    """Refuse texts that are too long, each or all together, before they are written out."""
    longest = total = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary)
        longest = max(longest, pc.max(lengths).as_py() or 0)
        total += pc.sum(lengths.take(chunk.indices).cast(pa.int64())).as_py() or 0
    if longest > MAX_TEXT:
        raise fault(
            f"{file}: column {name!r}: texts must be at most {MAX_TEXT} bytes long, got {longest}"
        )
    most = max(MAX_TABLE, MAX_MEAN_TEXT * len(column))
    if total > most:
        raise fault(
            f"{file}: column {name!r}: the texts of {len(column)} rows must be at most {most} "
            f"bytes long together, got {total}"
        )


def _plain(table: pa.Table, schema: pa.Schema, file: Path, fault: Fault) -> pa.Table:
    """Return a table with texts written out and without metadata, every value sound."""
    with named(str(file), fault, also=(pa.ArrowException,)):
        for place, field in enumerate(table.schema):
            column = table.column(place)
            column.validate(full=True)
            if not pa.types.is_dictionary(field.type):
                continue
            if is_text(field.type):
                _check_texts(column, field.name, file, fault)
            table = table.set_column(
                place, field.name, column.cast(plain_kind(schema.field(field.name).type))
            )
        return table.replace_schema_metadata(None)


def read_batches(
    file: Path,
    rows: int,
    columns: Kinds | None = None,
    fault: Fault = DataError,
) -> Iterator[pa.Table]:
    """Yield tables of at most so many rows, at least one, of all columns; some are of a kind."""
    with opened(file, fault) as (source, schema):
        check_kinds(schema, file, columns or {}, fault)
        _check_flat(schema, file, fault)
        empty = True
        check_pages(file, fault=fault)
        with named(str(file), fault, also=(pa.ArrowException,)):
            for batch in source.iter_batches(rows):
                empty = False
                yield _plain(pa.Table.from_batches([batch]), schema, file, fault)
            if empty:
                yield _plain(source.read(), schema, file, fault)


def read_table(file: Path, columns: Kinds | None = None, fault: Fault = DataError) -> pa.Table:
    """Return the named columns of a file, all by default."""
    with opened(file, fault) as (source, schema):
        check_kinds(schema, file, columns or {}, fault)
        wanted = None if columns is None else list(columns)
        if wanted is None:
            _check_flat(schema, file, fault)
        _check_whole(file, source.metadata.num_rows, schema, wanted, fault)
        check_pages(file, wanted, fault=fault)
        return _plain(source.read(columns=wanted), schema, file, fault)


def read_frame(
    file: Path, columns: Kinds | None = None, fault: Fault = DataError
) -> "pd.DataFrame":
    """Return the named columns of a file as a frame; by default all but those of an index."""
    if columns is None:
        with opened(file, fault) as (_, schema):
            names = [name for name in schema.names if not _INDEX.fullmatch(name)]
        columns = dict.fromkeys(names, ("anything flat",))
    table = read_table(file, columns, fault)
    with named(str(file), fault, also=(pa.ArrowException, OverflowError)):
        frame: pd.DataFrame = table.to_pandas()
        return frame


# -----------------------------------------------------------------------------
# Rows put down in files that grow, and read again once all are there.


def spill(file: Path, table: pa.Table) -> None:
    """Put rows down behind those that are there."""
    with file.open("ab") as stream, pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)


def spilled(file: Path) -> pa.Table | None:
    """Return all rows that were put down; None where nothing was."""
    if not file.exists():
        return None
    found, size = [], file.stat().st_size
    with file.open("rb") as stream:
        while stream.tell() < size:
            with pa.ipc.open_stream(stream) as reader:
                found.append(reader.read_all())
    return pa.concat_tables(found)

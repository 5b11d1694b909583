"""Parquet files from elsewhere: columns that occur once, of known types, in bounded memory.

Metadata of other programs in a file (indices, types of pandas) are not read. Texts are read as
dictionaries, so that damaged indices and invalid UTF-8 are found.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from bayesrisk._base.disk.objects import is_object, local_copy
from bayesrisk._base.disk.text import Fault, check_held, named, open_regular
from bayesrisk.exceptions import DataError, quote

if TYPE_CHECKING:
    import pandas as pd

#: Key of a file's metadata under which this package says what the codes of persons mean.
CODING = b"bayesrisk.dialect"
#: Values of a file, and how many for each byte of it once there are many.
MAX_VALUES = 2**25
MAX_PER_BYTE = 64
#: Bytes of a table held whole, or of a file unpacked, and how many for each byte of the file.
MAX_TABLE = 2**27
MAX_BYTES_PER_BYTE = 128
#: Columns with what they may hold: of "text", "whole", "number" and "flag", or anything flat.
Kinds = Mapping[str, Sequence[str]]
#: How files are written.
STORAGE: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
_BUFFER = 2**20  # bytes read ahead of each column
_INDEX = re.compile(r"__index_level_\d+__")


def plain_kind(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, also where they come as a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plain_column(column: Any) -> Any:
    """Return a column of values, also where they come as a dictionary."""
    return column.cast(plain_kind(column.type))


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as a file without metadata."""
    sink = pa.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata(None), sink, **STORAGE)
    data: bytes = sink.getvalue().to_pybytes()
    return data


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


def check_kinds(schema: pa.Schema, file: Path, kinds: Kinds, fault: Fault = DataError) -> None:
    """Refuse a file whose columns are missing or of another type."""
    for name, allowed in kinds.items():
        if name not in schema.names:
            listing = ", ".join(schema.names) or "none"
            raise fault(f"{file}: must have a column {name!r}; columns: {listing[:1000]}")
        kind = schema.field(name).type
        # A column of nothing but nulls is one of missing values: its rows are refused by others.
        if not (pa.types.is_null(kind) or any(_TESTS[test](kind) for test in allowed)):
            kind = plain_kind(kind)
            raise fault(f"{file}: column {name!r}: must hold {' or '.join(allowed)}, got {kind}")


@contextmanager
def opened(
    file: Path, fault: Fault = DataError, **options: object
) -> Iterator[tuple[parquet.ParquetFile, pa.Schema]]:
    """Open a file, its columns each there once, and no longer unpacked than its bytes allow.

    The columns are told with the types that they have in the file; texts come as dictionaries.
    """
    with ExitStack() as stack, named(str(file), fault, also=(pa.ArrowException,)):
        # Buffered ahead of what is read, all pages stay in memory until the file is closed.
        options = {
            "page_checksum_verification": True,
            "pre_buffer": False,
            "buffer_size": _BUFFER,
            **options,
        }
        open_regular(file, fault).close()  # Arrow opens it itself: from Python's it reads slowly
        place = stack.enter_context(local_copy(file)) if is_object(file) else file
        with parquet.ParquetFile(place, **options) as source:
            schema = source.schema_arrow
            double = [name for name, times in Counter(schema.names).items() if times > 1]
            if double:
                raise fault(f"{file}: column {quote(double[0])}: must stand in the file once")
            meta, size = source.metadata, place.stat().st_size
            values, most = meta.num_rows * meta.num_columns, max(MAX_VALUES, MAX_PER_BYTE * size)
            if values > most:
                raise fault(f"{file}: must hold at most {most} values, by its size, got {values}")
            unpacked = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
            if unpacked > _most(place):
                raise fault(
                    f"{file}: must be at most {_most(place)} bytes long unpacked, got {unpacked}"
                )
            texts = [name for name in schema.names if is_text(schema.field(name).type)]
        with parquet.ParquetFile(place, read_dictionary=texts, **options) as source:
            yield source, schema


def _most(*files: Path) -> int:
    return max(MAX_TABLE, MAX_BYTES_PER_BYTE * sum(file.stat().st_size for file in files))


def check_together(name: str, size: int, files: Sequence[Path]) -> None:
    """Refuse files that fit in memory singly, but not together."""
    with named(name):
        check_held(name, size, _most(*files))


def _check_flat(schema: pa.Schema, file: Path, fault: Fault) -> None:
    """Refuse lists and similar types: the footer does not say how much a row of them holds."""
    for field in schema:
        kind = plain_kind(field.type)
        single = (pa.types.is_primitive, pa.types.is_null, pa.types.is_decimal)
        if not (is_text(kind) or any(test(kind) for test in single)):
            raise fault(
                f"{file}: column {quote(field.name)}: must hold single values, "
                f"got {quote(str(field.type))}: write the file without it"
            )


def _plain(table: pa.Table, schema: pa.Schema, file: Path, fault: Fault) -> pa.Table:
    """Return a table with texts written out and without metadata, every value sound."""
    with named(str(file), fault, also=(pa.ArrowException,)):
        for place, field in enumerate(table.schema):
            column = table.column(place)
            column.validate(full=True)
            if pa.types.is_dictionary(field.type):
                kind = plain_kind(schema.field(field.name).type)
                table = table.set_column(place, field.name, column.cast(kind))
        return table.replace_schema_metadata(None)


def read_batches(
    file: Path, rows: int, columns: Kinds | None = None, fault: Fault = DataError
) -> Iterator[pa.Table]:
    """Yield tables of at most so many rows, at least one, of all columns; some are of a kind."""
    with opened(file, fault) as (source, schema):
        check_kinds(schema, file, columns or {}, fault)
        _check_flat(schema, file, fault)
        empty = True
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
        kinds = [plain_kind(schema.field(name).type) for name in wanted or schema.names]
        # Of a text its place takes four bytes; how long it is, the footer does not say.
        short = [is_text(kind) or pa.types.is_null(kind) for kind in kinds]
        width = sum(4 if s else -(-k.bit_width // 8) for s, k in zip(short, kinds, strict=True))
        check_held(str(file), source.metadata.num_rows * width, _most(file), fault)
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


# Rows put down in files that grow, and read again once all are there.


def spill(file: Path, table: pa.Table) -> None:
    """Append rows to those stored."""
    with file.open("ab") as stream, pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)


def spilled(file: Path) -> pa.Table | None:
    """Return all stored rows, or None if there are none."""
    if not file.exists():
        return None
    tables, size = [], file.stat().st_size
    with file.open("rb") as stream:
        while stream.tell() < size:
            with pa.ipc.open_stream(stream) as reader:
                tables.append(reader.read_all())
    return pa.concat_tables(tables)

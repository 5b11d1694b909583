"""Reading record files piece by piece; what goes wrong is said with file, row and column."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bayesrisk._files import parquet as _parquet
from bayesrisk._files.parse import check_held, named, shown
from bayesrisk._files.text import header_fields, open_text, text_tables
from bayesrisk.exceptions import DataError
from bayesrisk.tables.schema import Schema


def read_batches(file: Path, schema: Schema, chunk: int) -> Iterator[pa.Table]:
    """Yield the rows of a CSV or Parquet file in tables of at most ``chunk`` rows."""
    if file.suffix.lower() == ".parquet":
        yield from _parquet.read_batches(file, chunk)
        return
    for table in _from_csv(file, schema):
        for start in range(0, max(table.num_rows, 1), chunk):
            yield table.slice(start, chunk)


def check_whole(file: Path) -> None:
    """Refuse a CSV or Parquet file that is too long to be held whole."""
    if file.suffix.lower() == ".parquet":
        _parquet.check_whole(file)
    else:
        with named(str(file)):
            check_held(str(file), file.stat().st_size)


def _from_csv(file: Path, schema: Schema) -> Iterator[pa.Table]:
    """Read every column as text, so that nothing is guessed, then the codes as numbers."""
    with named(str(file), also=(pa.ArrowException,)), open_text(file) as lines:
        names = header_fields(lines.readline(), str(file))
        done = 0
        for table in text_tables(lines, names):
            for a in schema.attributes:
                if a.name in names:
                    table = _numbers(table, a.name, file, done)
            yield table
            done += table.num_rows
        if done == 0:
            kinds = [(n, pa.int64() if n in schema.names else pa.string()) for n in names]
            yield pa.schema(kinds).empty_table()


def _numbers(table: pa.Table, name: str, file: Path, done: int) -> pa.Table:
    column = table.column(name)
    good = pc.match_substring_regex(column, r"^[+-]?[0-9]{1,18}$")
    if not pc.all(good).as_py():
        row = pc.index(good, False).as_py()
        value: Any = column[row].as_py()
        raise DataError(
            f"{file}: row {done + row + 1}, column {name!r}: must be a whole number, "
            f"got {shown(value)}"
        )
    index = table.column_names.index(name)
    return table.set_column(index, name, column.cast(pa.int64()))

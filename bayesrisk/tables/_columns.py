"""Reading record files piece by piece; what goes wrong is said with file, row and column."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bayesrisk.exceptions import DataError
from bayesrisk.tables.schema import Schema


def read_batches(file: Path, schema: Schema, chunk: int) -> Iterator[pa.Table]:
    """Yield the rows of a CSV or Parquet file in tables of at most ``chunk`` rows."""
    pieces = (
        _from_csv(file, schema) if file.suffix.lower() == ".csv" else _from_parquet(file, chunk)
    )
    while True:
        try:
            table = next(pieces)
        except StopIteration:
            return
        except (OSError, ValueError, pa.ArrowException) as error:
            if isinstance(error, DataError):
                raise
            reason = (str(error).strip() or repr(error)).splitlines()[0]
            raise DataError(f"{file}: cannot be read: {reason}") from error
        for start in range(0, max(table.num_rows, 1), chunk):
            yield table.slice(start, chunk)


def _from_parquet(file: Path, chunk: int) -> Iterator[pa.Table]:
    with pq.ParquetFile(file, page_checksum_verification=True) as source:
        if source.metadata.num_rows == 0:
            yield source.read()
        for batch in source.iter_batches(batch_size=chunk):
            yield pa.Table.from_batches([batch]).replace_schema_metadata(None)


def _from_csv(file: Path, schema: Schema) -> Iterator[pa.Table]:
    """Read every column as text, so that nothing is guessed, then the codes as numbers."""
    with file.open(encoding="utf-8-sig", newline="") as lines:
        names = next(csv.reader(lines), [])
    options = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    done = 0
    with pa_csv.open_csv(file, convert_options=options) as reader:
        for batch in reader:
            table = pa.Table.from_batches([batch])
            for a in schema.attributes:
                if table.column_names.count(a.name) == 1:
                    table = _numbers(table, a.name, file, done)
            yield table
            done += table.num_rows
        if done == 0:
            yield pa.table({n: pa.array([], pa.string()) for n in names}).cast(
                pa.schema([(n, pa.int64() if n in schema.names else pa.string()) for n in names])
            )


def _numbers(table: pa.Table, name: str, file: Path, done: int) -> pa.Table:
    column = table.column(name)
    good = pc.match_substring_regex(column, r"^[+-]?[0-9]{1,18}$")
    if not pc.all(good).as_py():
        row = pc.index(good, False).as_py()
        value: Any = column[row].as_py()
        raise DataError(
            f"{file}: row {done + row + 1}, column {name!r}: must be a whole number, got {value!r}"
        )
    index = table.column_names.index(name)
    return table.set_column(index, name, column.cast(pa.int64()))

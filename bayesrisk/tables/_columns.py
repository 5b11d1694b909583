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
from bayesrisk.tables.schema import Attribute, Schema

_WHOLE = r"^[+-]?[0-9]{1,18}$"
_SHOWN = 20  # labels that a message lists


def read_batches(file: Path, schema: Schema, chunk: int) -> Iterator[pa.Table]:
    """Yield the rows of a CSV or Parquet file in tables of at most ``chunk`` rows."""
    if file.suffix.lower() == ".parquet":
        _refuse_other_coding(file, schema)
        yield from _parquet.read_batches(file, chunk)
        return
    for table in _from_csv(file, schema):
        for start in range(0, max(table.num_rows, 1), chunk):
            yield table.slice(start, chunk)


def _refuse_other_coding(file: Path, schema: Schema) -> None:
    """Refuse persons of which the file itself says that its codes are not those of the schema."""
    with _parquet.opened(file) as (_, columns):
        said = (columns.metadata or {}).get(_parquet.CODING, b"schema")
    if schema.name == "sf1-person" and said != b"schema":
        raise DataError(
            f"{file}: says that its codes are of the dialect {shown(said.decode('latin-1'))}, not "
            "those of the schema 'sf1-person': read it with readers.read_record_form"
        )


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
                    table = _numbers(table, a, file, done)
            yield table
            done += table.num_rows
        if done == 0:
            kinds = [(n, pa.int64() if n in schema.names else pa.string()) for n in names]
            yield pa.schema(kinds).empty_table()


def _numbers(table: pa.Table, a: Attribute, file: Path, done: int) -> pa.Table:
    """Return the table with a column of text as numbers, labels replaced by their codes."""
    column = table.column(a.name)
    good = pc.match_substring_regex(column, _WHOLE)
    if a.labels:
        column = codes_of_labels(column, a, f"{file}: row", done, numbers=True)
    elif not pc.all(good).as_py():
        where = f"column {a.name!r}: must be a whole number"
        refuse_first(pc.invert(good), column, f"{file}: row", done, where)
    index = table.column_names.index(a.name)
    return table.set_column(index, a.name, column.cast(pa.int64()))


def codes_of_labels(
    column: Any, a: Attribute, source: str, first_row: int, *, numbers: bool = False
) -> Any:
    """Return a column of labels as codes; with ``numbers`` a whole number is a code, as in CSV.

    A column of another type is returned as it is, and so is text without any label.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not text or not a.labels:
        return column
    label = pc.index_in(column, pa.array(a.labels, column.type))
    if not numbers and not pc.any(pc.is_valid(label)).as_py():
        return column
    number = pc.and_(pc.match_substring_regex(column, _WHOLE), numbers)
    known = f"a whole number in [{a.first}, {a.last}] or one of {_listed(a.labels)}"
    bad = pc.invert(pc.or_kleene(pc.is_valid(label), number).fill_null(False))
    refuse_first(bad, column, source, first_row, f"column {a.name!r}: must be {known}")
    codes = pc.if_else(number, column, "0").cast(pa.int64())
    return pc.if_else(number, codes, pc.add(label.cast(pa.int64()), a.first))


def _listed(labels: tuple[str, ...]) -> str:
    """Return labels as a message lists them."""
    rest = len(labels) - _SHOWN
    return ", ".join(map(repr, labels[:_SHOWN])) + (f" and {rest} more" if rest > 0 else "")


def refuse_first(bad: Any, column: Any, source: str, first_row: int, where: str) -> None:
    """Refuse the first bad value of a column, if there is one."""
    if pc.any(bad).as_py():
        row = pc.index(bad, True).as_py()
        raise DataError(
            f"{source} {first_row + row + 1}, {where}, got {shown(column[row].as_py())}"
        )

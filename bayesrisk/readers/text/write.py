"""New files, written whole or not at all."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError


def new_file(path: str | Path) -> AbstractContextManager[BinaryIO]:
    """Open a file that takes its name only once all is written."""
    return _files.whole_file(check.path(path, "path"), new=True)


def write_rows(stream: BinaryIO, table: Any, *, delimiter: str = ",", quotes: bool = False) -> None:
    """Append the rows of a table as text."""
    options = pyarrow.csv.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style="needed" if quotes else "none"
    )
    if table.num_rows:
        try:
            pyarrow.csv.write_csv(table, stream, options)
        except pa.ArrowInvalid as error:
            raise ArgumentError(f"records must hold no text with {delimiter!r}: {error}") from error


def write_table(
    path: str | Path,
    columns: Iterable[str],
    tables: Iterable[pa.Table],
    *,
    delimiter: str = ",",
    above: str = "",
    quotes: bool = False,
) -> None:
    """Write a header and tables with these columns to a new file."""
    names = list(columns)
    with new_file(path) as stream:
        stream.write((above + delimiter.join(names) + "\n").encode())
        for table in tables:
            write_rows(stream, table.select(names), delimiter=delimiter, quotes=quotes)

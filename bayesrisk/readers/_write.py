"""Text files written whole or not at all."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv

from bayesrisk.exceptions import ArgumentError, OutputError

__all__ = ["new_file", "write_rows", "write_table"]


def _fresh(path: str | Path) -> tuple[Path, Path]:
    """Return a path that is free, and a temporary one beside it."""
    target = Path(path)
    if target.exists():
        raise OutputError(f"{target}: exists already; choose another name")
    return target, target.with_name(f".{target.name}.{os.getpid()}.tmp")


@contextmanager
def new_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that takes its name only once all is written."""
    target, temporary = _fresh(path)
    try:
        with temporary.open("wb") as stream:
            yield stream
        temporary.replace(target)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


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

"""Rows put down in files that grow, and read again once all are there."""

from pathlib import Path

import pyarrow as pa


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

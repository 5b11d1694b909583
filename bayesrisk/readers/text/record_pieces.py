"""Records that come in pieces: taken apart for writers, put together for readers."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import all_of, shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.readers.text.source import check_length
from bayesrisk.tables import Records


def pieces_of(records: Records | Iterable[Records], schema: str) -> Iterator[Records]:
    """Yield records one by one, each of the schema that a writer asks for."""
    try:
        pieces = iter([records] if isinstance(records, Records) else records)
    except TypeError as error:
        raise ArgumentTypeError(f"records must be Records, got {shown(records)}") from error
    for piece in pieces:
        if not isinstance(piece, Records):
            raise ArgumentTypeError(f"records must be Records, got {type(piece).__name__}")
        if piece.schema.name != schema:
            raise ArgumentError(
                f"records must have the schema {schema!r}, got {shown(piece.schema.name)}"
            )
        yield piece


def joined(pieces: Iterable[Records], path: str | Path) -> Records:
    """Return the pieces of a file as one; there is at least one.

    What is too long to be held is refused: before it is read, where the length of the text is
    known, else when it has become too long.
    """
    check_length(path)
    held = all_of(pieces, lambda piece: int(piece.table.nbytes), str(path))
    if len(held) == 1:
        return held[0]
    return Records(held[0].schema, pa.concat_tables([piece.table for piece in held]))


def extra_column(records: Records, name: str, largest: int) -> NDArray[np.int64]:
    """Return a column of whole numbers, 0 to ``largest``, that the schema does not ask for."""
    if name not in records.table.column_names:
        raise ArgumentError(f"records must have a column {name!r} (0 to {largest}), got none")
    values = records.table.column(name).to_numpy()
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    return check.count_array(values, name, lower=0, upper=largest)

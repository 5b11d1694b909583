"""Published tables that come in pieces: made from cells read, checked by totals, put together."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._files.parse import all_of
from bayesrisk.exceptions import DataError
from bayesrisk.readers.text.columns import Piece
from bayesrisk.tables import PublishedTables, Workload

Key = tuple[str, str]


def place_texts(matrix: NDArray[np.uint8]) -> NDArray[np.str_]:
    """Return rows of ASCII characters as texts."""
    n, width = matrix.shape
    if width == 0:
        return np.full(n, "", dtype="<U1")
    return np.ascontiguousarray(matrix).view(f"S{width}").reshape(n).astype(f"<U{width}")


def piece_of_tables(
    workload: Workload,
    geoids: Mapping[str, NDArray[np.str_]],
    counts: Mapping[Key, NDArray[np.int64]],
    missing: Mapping[Key, NDArray[np.bool_]],
) -> PublishedTables:
    """Return the tables of some places, given in any order with a row of counts each.

    Counts that are ``missing`` are suppressed.
    """
    order = {level: np.argsort(places) for level, places in geoids.items()}
    return PublishedTables(
        workload,
        {level: geoids[level][rows] for level, rows in order.items()},
        {key: sparse.csr_array(counts[key][order[key[0]]]) for key in workload.tables},
        {key: sparse.csr_array(bad[order[key[0]]]) for key, bad in missing.items() if bad.any()},
    )


def check_total(
    piece: Piece,
    column: str,
    total: tuple[NDArray[np.int64], NDArray[np.bool_]],
    cells: tuple[NDArray[np.int64], NDArray[np.bool_]],
    table: str,
) -> None:
    """Refuse cells that do not add up to their total, where all of them are there."""
    same = (total[0] == cells[0].sum(axis=1)) | total[1] | cells[1].any(axis=1)
    piece.check(column, same, f"the sum of the cells of {table}")


def combined(
    pieces: Iterable[PublishedTables], workload: Workload, path: str | Path
) -> PublishedTables:
    """Return the tables of all pieces of a file; no place may be in two of them."""
    held = all_of(pieces, _bytes, str(check.path(path, "path")))
    geoids, counts, suppressed = {}, {}, {}
    for level in workload.levels:
        places = np.concatenate([piece.geoids[level] for piece in held])
        order = np.argsort(places, kind="stable")
        geoids[level] = places[order]
        for name in workload.at(level):
            matrix = sparse.vstack([piece.counts[level, name] for piece in held], format="csr")
            counts[level, name] = sparse.csr_array(matrix)[order]
            if any((level, name) in piece.suppressed for piece in held):
                hidden = sparse.vstack([piece.hidden(level, name) for piece in held], format="csr")
                suppressed[level, name] = sparse.csr_array(hidden)[order]
    return PublishedTables(workload, geoids, counts, suppressed)


def _bytes(tables: PublishedTables) -> int:
    """Return what tables take: a place its text, a count that is not zero its value and cell."""
    counts = sum(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes for m in tables.counts.values())
    return int(counts + sum(places.nbytes for places in tables.geoids.values()))


def check_distinct(
    codes: NDArray[np.int64], places: NDArray[np.int64] | int, name: str, what: str, column: str
) -> None:
    """Refuse a place that is there twice.

    ``places`` are its rows or lines, from 1, or the first of them where one follows another.  What
    is right takes as much memory again as the codes; what is wrong takes more.
    """
    ordered = np.sort(codes)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    order = np.argsort(codes, kind="stable")
    again = int(np.argmax(codes[order][1:] == codes[order][:-1]))
    first, second = order[again], order[again + 1]
    rows = np.arange(places, places + codes.size) if isinstance(places, int) else places
    raise DataError(
        f"{name}: {what} {rows[second]}, column {column!r}: must be a place that is there "
        f"once, got that of {what} {rows[first]} again"
    )

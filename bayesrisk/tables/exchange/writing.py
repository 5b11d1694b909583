"""Published tables into a folder, whole or not at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bayesrisk import _files
from bayesrisk.exceptions import OutputError
from bayesrisk.tables.exchange.layout import (
    FORMAT,
    GEOGRAPHIES,
    MANIFEST,
    PLACES,
    ROWS,
    Content,
    Key,
    is_part,
)

_PART_ROWS = 2**22
_SLICE = 2**20  # rows turned into text at a time


def _repeated(text: str, count: int) -> pa.Array:
    codes = pa.array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([text])).cast(pa.string())


def _texts(values: Any, index: NDArray[np.int64]) -> pa.Array:
    return pa.array(list(values), pa.string()).take(pa.array(index))


def entries(tables: Content, key: Key) -> tuple[NDArray[Any], ...]:
    """Return rows, columns, counts and a mask of suppression of what a table must state."""
    counts, hidden = tables.counts[key].tocoo(), tables.hidden[key].tocoo()
    rows = np.concatenate([counts.coords[0], hidden.coords[0]]).astype(np.int64)
    cells = np.concatenate([counts.coords[1], hidden.coords[1]]).astype(np.int64)
    values = np.concatenate([counts.data, np.zeros(hidden.nnz, dtype=np.int64)])
    missing = np.repeat([False, True], [counts.nnz, hidden.nnz])
    order = np.lexsort((cells, rows))
    return rows[order], cells[order], values[order], missing[order]


def rows_of(tables: Content, key: Key) -> pa.Table:
    """Return the rows of a table, places first."""
    pieces = list(_slices(tables, key))
    return pa.concat_tables(pieces) if pieces else ROWS.empty_table()


def _slices(tables: Content, key: Key) -> Iterator[pa.Table]:
    rows, cells, values, missing = entries(tables, key)
    places = pa.array(tables.geoids[key[0]].tolist(), pa.string())
    names = pa.array(list(tables.workload.tables[key].cells), pa.string())
    for start in range(0, len(rows), _SLICE):
        part = slice(start, start + _SLICE)
        count = len(rows[part])
        yield pa.table(
            [
                _repeated(key[0], count),
                places.take(pa.array(rows[part])),
                _repeated(key[1], count),
                names.take(pa.array(cells[part])),
                pa.array(values[part], mask=missing[part]),
            ],
            schema=ROWS,
        )


def write(tables: Content, folder: Path, *, replace: bool) -> None:
    """Write the folder, whole or as before."""

    def check(target: Path) -> None:
        check_folder(target, replace=replace)

    with _files.whole_folder(folder, check) as made:
        fill(tables, made)


def fill(tables: Content, folder: Path, *, release: str | None = None) -> None:
    """Write tables into a folder that is being made; those of a release name its description."""
    parts: list[dict[str, Any]] = []
    waiting: list[pa.Table] = []
    size = 0
    for key in tables.workload.tables:
        for piece in _slices(tables, key):
            waiting.append(piece)
            size += piece.num_rows
            if size >= _PART_ROWS:
                parts.append(_part(folder, len(parts), waiting))
                waiting, size = [], 0
    if waiting or not parts:
        parts.append(_part(folder, len(parts), waiting or [ROWS.empty_table()]))
    places = [
        pa.table([_repeated(level, len(g)), pa.array(g.tolist(), pa.string())], schema=PLACES)
        for level, g in tables.geoids.items()
    ]
    digest = _parquet(pa.concat_tables(places), folder / GEOGRAPHIES)
    manifest = {
        "format": FORMAT,
        "geographies": digest,
        "negative": tables.signed,
        "parts": parts,
        "places": {level: len(g) for level, g in tables.geoids.items()},
        "workload": tables.workload.to_dict(),
        **({} if release is None else {"release": release}),
    }
    if tables.laws:  # tables that are of no release, or exact ones, have none
        manifest["laws"] = [[*key, law] for key, law in sorted(tables.laws.items())]
    _files.write_bytes(folder / MANIFEST, _files.sealed(manifest))


def check_folder(folder: Path, *, replace: bool, also: str = MANIFEST) -> None:
    """Refuse a folder unless it is empty or holds tables, and perhaps one more file."""
    found = sorted(p.name for p in folder.iterdir()) if folder.exists() else []
    known = [n for n in found if n in (MANIFEST, GEOGRAPHIES, also) or is_part(n)]
    others = [n for n in found if n not in known and not _files.is_leftover(n)]
    if others or (known and MANIFEST not in known):
        raise OutputError(
            f"{folder}: must be empty or hold tables, but holds {(others or known)[0]!r}; "
            "nothing was changed"
        )
    if known and not replace:
        raise OutputError(f"{folder}: holds tables already; nothing was changed")


def _part(folder: Path, number: int, pieces: list[pa.Table]) -> dict[str, Any]:
    table = pa.concat_tables(pieces)
    name = f"part-{number:05d}.parquet"
    return {"file": name, "rows": table.num_rows, "sha256": _parquet(table, folder / name)}


def _parquet(table: pa.Table, target: Path) -> str:
    """Write a file, and return its digest."""
    plain = table.replace_schema_metadata(None)
    with _files.whole_file(target, tidy=False) as stream:
        pq.write_table(plain, stream, compression="zstd", write_page_checksum=True)
    return _files.digest(target)

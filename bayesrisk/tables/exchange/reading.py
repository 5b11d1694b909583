"""Published tables out of a folder, without guessing: every row, place and type is checked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk import _files
from bayesrisk._files.parquet import check_together, read_table
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables.exchange.layout import (
    FORMAT,
    GEOGRAPHIES,
    MANIFEST,
    PLACES,
    ROWS,
    Key,
    is_part,
)
from bayesrisk.tables.workload import Workload

_KEYS = {"format", "negative", "parts", "places", "workload"}
_ROW_BYTES = 24  # of a row that is read: its place, its cell and its count


def read(
    folder: Path,
) -> tuple[Workload, dict[str, Any], dict[Key, Any], dict[Key, Any], dict[Key, str]]:
    """Return workload, places, counts, suppressed cells and laws of a folder, all checked."""
    manifest = _manifest(folder)
    try:
        workload = Workload.from_dict(manifest["workload"])
    except ArgumentError as error:
        raise DataError(f"{folder / MANIFEST}: workload: {error}") from error
    laws = {(level, name): law for level, name, law in manifest.get("laws", ())}
    if not set(laws) <= set(workload.tables):
        raise DataError(f"{folder / MANIFEST}: laws must be of tables of the workload")
    places = _places(folder, workload, manifest)
    listed = [part["file"] for part in manifest["parts"]]
    found = sorted(p.name for p in folder.glob("*.parquet") if not p.name.startswith(("_", ".")))
    if found != sorted(listed):
        other = sorted(set(found) ^ set(listed))
        raise DataError(f"{folder}: must hold the parts of its manifest, differs in {other[0]!r}")
    rows = sum(part["rows"] for part in manifest["parts"])
    check_together(str(folder), rows * _ROW_BYTES, [folder / name for name in listed])
    reader = _Reader(workload, places, negative=manifest["negative"])
    for part in manifest["parts"]:
        reader.add(folder / part["file"], part)
    return workload, places, *reader.matrices(), laws


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    if not file.exists():
        raise DataError(f"{file}: is not the manifest of tables: no such file")
    manifest = _files.read_document(file)
    try:
        plain = (
            set(manifest) - {"geographies", "laws", "release"} == _KEYS
            and all(set(p) - {"sha256"} == {"file", "rows"} for p in manifest["parts"])
            and manifest["format"] == FORMAT
            and isinstance(manifest["negative"], bool)
            and all(isinstance(p["file"], str) and is_part(p["file"]) for p in manifest["parts"])
            and all(_is_size(p["rows"]) for p in manifest["parts"])
            and isinstance(manifest["places"], dict)
            and isinstance(manifest["workload"], dict)
            and all(len(r) == 3 and all(map(_is_text, r)) for r in manifest.get("laws", ()))
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"{file}: is not the manifest of tables: {error!r}") from error
    if not plain:
        raise DataError(f"{file}: must have format {FORMAT!r}, negative, parts, places, workload")
    return manifest


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _load(file: Path, columns: pa.Schema, rows: int, digest: str | None) -> pa.Table:
    """Return what is in a file: the one with this digest, where the manifest has it."""
    if digest is not None:
        _files.check_digest(file, digest, MANIFEST)
    table = read_table(file)
    if table.column_names != columns.names:
        raise DataError(
            f"{file}: columns must be {', '.join(columns.names)}, "
            f"got {', '.join(table.column_names)}"
        )
    if table.num_rows != rows:
        raise DataError(f"{file}: must have {rows} rows, got {table.num_rows}")
    for name, kind in zip(columns.names, columns.types, strict=True):
        table = _typed(table, name, kind, file)
    return table


def _typed(table: pa.Table, name: str, kind: Any, file: Path) -> pa.Table:
    """Return the table with a column in its type; other texts and integers are as good."""
    column = table.column(name)
    if kind == pa.string():
        good = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    else:
        good = pa.types.is_integer(column.type)
    if not good:
        row, value = _culprit(column)
        raise DataError(
            f"{file}: row {row + 1}, column {name!r}: must be of type {kind}, "
            f"got {shown(value)} ({column.type})"
        )
    if kind == pa.string() and column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"{file}: row {row + 1}, column {name!r}: must be a text, got none")
    try:
        column = column.cast(kind)
    except pa.ArrowInvalid as error:
        row = pc.index(pc.greater(column, pa.scalar(2**63 - 1, column.type)), True).as_py()
        raise DataError(
            f"{file}: row {row + 1}, column {name!r}: must be below 2**63, got {column[row]}"
        ) from error
    return table.set_column(table.column_names.index(name), name, column)


def _culprit(column: pa.ChunkedArray) -> tuple[int, Any]:
    """Return the row and value that are most clearly wrong: the first fraction, else the first."""
    if len(column) == 0:
        return 0, None
    row = 0
    if pa.types.is_float32(column.type) or pa.types.is_float64(column.type):
        row = max(0, pc.index(pc.not_equal(column, pc.floor(column)), True).as_py())
    return row, column[row].as_py()


def _places(folder: Path, workload: Workload, manifest: Mapping[str, Any]) -> dict[str, Any]:
    file, sizes = folder / GEOGRAPHIES, manifest["places"]
    if set(sizes) != set(workload.levels) or not all(map(_is_size, sizes.values())):
        raise DataError(f"{file.parent / MANIFEST}: places must be of {', '.join(workload.levels)}")
    table = _load(file, PLACES, sum(sizes.values()), manifest.get("geographies"))
    found, start = {}, 0
    levels = np.asarray(table.column("level").to_pylist(), dtype=np.str_)
    geoids = np.asarray(table.column("geoid").to_pylist(), dtype=np.str_)
    for level in workload.levels:
        stop = start + sizes[level]
        width = workload.schema.geography.width(level)
        part = geoids[start:stop]
        digits = np.strings.isdigit(part) if width else np.ones(len(part), dtype=bool)
        order = np.ones(len(part), dtype=bool)
        order[1:] = part[1:] > part[:-1]
        checks = {
            "level": (levels[start:stop] != level, f"must be {level!r}"),
            "geoid": (
                (np.strings.str_len(part) != width) | ~digits,
                f"must be a place of {width} digits",
            ),
            "geoid ": (~order, "must be sorted, each place once"),
        }
        for name, (bad, message) in checks.items():
            if bad.any():
                row = start + int(bad.argmax())
                value = (levels if name == "level" else geoids)[row]
                raise DataError(
                    f"{file}: row {row + 1}, column {name.strip()!r}: {message}, "
                    f"got {shown(str(value))}"
                )
        found[level] = part
        start = stop
    return found


class _Reader:
    """Collects the rows of the parts into sparse matrices."""

    def __init__(self, workload: Workload, places: dict[str, Any], *, negative: bool) -> None:
        self.workload, self.places, self.negative = workload, places, negative
        self.texts = {level: pa.array(g.tolist(), pa.string()) for level, g in places.items()}
        self.found: dict[Key, list[tuple[NDArray[Any], ...]]] = {k: [] for k in workload.tables}
        self.files: list[Path] = []

    def add(self, file: Path, about: Mapping[str, Any]) -> None:
        """Take in a part, whatever the order of its rows."""
        rows = int(about["rows"])
        table = _load(file, ROWS, rows, about.get("sha256"))
        number = len(self.files)
        self.files.append(file)
        levels, level = _coded(table.column("level"))
        names, name = _coded(table.column("table"))
        kind = level * len(names) + name
        for one in np.unique(kind):
            where = np.flatnonzero(kind == one)
            key = (levels[one // len(names)], names[one % len(names)])
            self._known(key, file, int(where[0]))
            part = table if len(where) == rows else table.take(pa.array(where))
            self._take(part, key, where, number)

    def _take(self, part: pa.Table, key: Key, where: NDArray[np.int64], number: int) -> None:
        file = self.files[number]
        rows = _positions(part, "geoid", self.texts[key[0]], "place of its level", file, where)
        cells = pa.array(list(self.workload.tables[key].cells), pa.string())
        columns = _positions(part, "cell", cells, "cell of its table", file, where)
        counts = part.column("count")
        missing = pc.is_null(counts).to_numpy()
        values = counts.fill_null(0).to_numpy().astype(np.int64)
        if not self.negative and (values < 0).any():
            row = int((values < 0).argmax())
            raise DataError(
                f"{file}: row {where[row] + 1}, column 'count': must be >= 0 "
                f"(the manifest says no count is negative), got {values[row]}"
            )
        files = np.full(len(where), number)
        self.found[key].append((rows, columns, values, missing, files, where))

    def _known(self, key: Key, file: Path, start: int) -> None:
        if key[0] not in self.places:
            raise DataError(
                f"{file}: row {start + 1}, column 'level': must be one of "
                f"{', '.join(self.places)}, got {shown(key[0])}"
            )
        if key not in self.found:
            raise DataError(
                f"{file}: row {start + 1}, column 'table': must be a table of level {key[0]!r}, "
                f"got {shown(key[1])}"
            )

    def matrices(self) -> tuple[dict[Key, Any], dict[Key, Any]]:
        """Return counts and suppressed cells, after a look for rows that are there twice."""
        counts, suppressed = {}, {}
        for key, pieces in self.found.items():
            shape = (len(self.places[key[0]]), len(self.workload.tables[key].cells))
            if not pieces:
                counts[key] = sparse.csr_array(shape, dtype=np.int64)
                continue
            rows, cells, values, missing, files, where = map(
                np.concatenate, zip(*pieces, strict=True)
            )
            flat = rows * shape[1] + cells
            order = np.argsort(flat, kind="stable")
            again = np.flatnonzero(flat[order][1:] == flat[order][:-1])
            if len(again):
                row = order[again[0] + 1]
                raise DataError(
                    f"{self.files[files[row]]}: row {where[row] + 1}, columns 'level' to 'cell': "
                    f"must be there once, got {key[0]} {self.places[key[0]][rows[row]]} {key[1]} "
                    f"{self.workload.tables[key].cells[cells[row]]} again"
                )
            counts[key] = sparse.csr_array((values, (rows, cells)), shape=shape)
            if missing.any():
                ones = np.ones(int(missing.sum()), dtype=np.bool_)
                at = (rows[missing], cells[missing])
                suppressed[key] = sparse.csr_array((ones, at), shape=shape)
        return counts, suppressed


def _coded(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    """Return the different texts of a column, and which of them every row has."""
    coded = pc.dictionary_encode(column.combine_chunks())
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)


def _positions(
    part: pa.Table,
    column: str,
    known: pa.Array,
    meaning: str,
    file: Path,
    where: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the positions of texts among those known; one that is not is refused by its row."""
    found = pc.index_in(part.column(column), value_set=known)
    if found.null_count:
        row = pc.index(pc.is_null(found), True).as_py()
        raise DataError(
            f"{file}: row {where[row] + 1}, column {column!r}: must be a {meaning}, "
            f"got {shown(part.column(column)[row].as_py())}"
        )
    positions: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return positions

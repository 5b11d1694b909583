"""Published tables written to a folder, whole or not at all, also by place; and read, checked."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.delimited import csv_rows
from bayesrisk._base.disk.parquet import STORAGE, check_together, is_text, parquet_bytes, read_table
from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError, OutputError, quote
from bayesrisk.tables._grammar import Key
from bayesrisk.tables.likelihoods import Likelihood, SimulationOnly, read_likelihood
from bayesrisk.tables.workload import Workload

# What the folder of published tables is made of: its files, their columns, what they state.


MANIFEST = "_manifest.json"
GEOGRAPHIES = "_geographies.parquet"
CSV_FOLDER = "tables"  # of a release: its tables once more, for people
FORMAT = "bayesrisk tables 1"
ROWS = pa.schema(
    [
        ("level", pa.string()),
        ("geoid", pa.string()),
        ("table", pa.string()),
        ("cell", pa.string()),
        ("count", pa.int64()),
    ]
)
PLACES = pa.schema([("level", pa.string()), ("geoid", pa.string())])


class Content(NamedTuple):
    """Published counts by key, which of them are suppressed, and laws of the release."""

    workload: Workload
    geoids: Mapping[str, NDArray[Any]]
    counts: Mapping[Key, Any]
    hidden: Mapping[Key, Any]
    signed: bool
    laws: Mapping[Key, Likelihood]
    made_up: bool


def is_part(name: str) -> bool:
    """Return whether a file of this name holds rows."""
    return name.startswith("part-") and name.endswith(".parquet")


# A data set by place: a folder for each place, and an index that is small however many there are.
#
# ``part-CODE`` is an ordinary folder of tables or of microdata about one place, with a manifest of
# its own.  ``_partitions.json`` names them all, with the digest of each one's manifest, which
# holds those of its files: so a reader of one place can tell that it is whole, and reads nothing
# else. ``_places.parquet`` says how many places of the finest level lie in each part, and in each
# place of the level above it.  ``part-above`` holds the tables of levels that are coarser than the
# parts.


PARTITIONS = "_partitions.json"
INDEX = "_places.parquet"
ABOVE = "above"
_FORMAT = "bayesrisk partitions 1"
_KEYS = {"format", "kind", "level", "parts", "above", "places"}
_COLUMNS = pa.schema([("part", pa.string()), ("place", pa.string()), ("finest", pa.int64())])
#: The manifest of a part, by what it holds.
_MANIFESTS = {"tables": MANIFEST, "microdata": "_microdata.json"}


def part_name(code: str) -> str:
    """Return the name of the folder of a part."""
    return f"part-{code}"


@dataclass(frozen=True, eq=False)
class Partitions:
    """The index of a data set by place."""

    folder: Path  # the data set
    kind: str  # ``tables`` or ``microdata``
    level: str  # level of the parts
    digests: Mapping[str, str]  # by code of a part, sorted, the SHA-256 of its manifest
    above: str | None  # that of the tables of coarser levels
    part: IntArray  # for each place of the index the position of its part
    place: NDArray[np.str_]  # its code: of the level above the finest, or of the part itself
    finest: IntArray  # places of the finest level in it
    digest: str  # SHA-256 of ``_partitions.json``, which all other digests follow from

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes of the parts, sorted."""
        return tuple(self.digests)

    @property
    def sizes(self) -> IntArray:
        """Places of the finest level in each part."""
        return np.bincount(self.part, self.finest, len(self.digests)).astype(np.int64)

    def checked(self, code: str) -> Path:
        """Return the folder of a part whose manifest is the one that the index lists."""
        expected = self.above if code == ABOVE else self.digests.get(code)
        if expected is None:
            raise DataError(f"{self.folder}: must have a part {quote(code)}")
        folder = self.folder / part_name(code)
        disk.check_own(folder)
        disk.check_digest(folder / _MANIFESTS[self.kind], expected, PARTITIONS)
        return folder

    @staticmethod
    def there(folder: Path) -> bool:
        """Return whether a folder is a data set by place."""
        return (folder / PARTITIONS).exists()

    @classmethod
    def read(cls, folder: Path, kind: str) -> "Partitions":
        """Return the index of a folder, everything but the parts checked."""
        file = folder / PARTITIONS
        document = disk.read_document(file)
        if set(document) != _KEYS or document["format"] != _FORMAT:
            raise DataError(f"{file}: must have format {_FORMAT!r} and {', '.join(sorted(_KEYS))}")
        parts = document["parts"]
        plain = isinstance(parts, dict) and all(
            isinstance(text, str) for text in (document["places"], *parts, *parts.values())
        )
        codes = plain and all(text.isascii() and text.isdigit() for text in parts)
        if not codes or list(parts) != sorted(parts):
            raise DataError(f"{file}: parts must be digests by codes of places, sorted")
        if document["kind"] != kind:
            raise DataError(f"{folder}: must hold {kind}, got {quote(document['kind'])}")
        rows = _read_index(folder / INDEX, document["places"], list(parts))
        level, above = str(document["level"]), document["above"]
        return cls(folder, kind, level, parts, above, *rows, disk.digest(file))


def _read_index(
    file: Path, digest: str, codes: list[str]
) -> tuple[IntArray, NDArray[np.str_], IntArray]:
    """Return part, place and size of every place of the index."""
    disk.check_digest(file, digest, PARTITIONS)
    table = read_table(file)
    if table.schema != _COLUMNS:
        raise DataError(f"{file}: columns must be {', '.join(_COLUMNS.names)}")
    names = np.asarray(table.column("part").to_pylist(), dtype=np.str_)
    part = np.searchsorted(np.asarray(codes, dtype=np.str_), names).astype(np.int64)
    if len(part) and (np.diff(part) < 0).any():
        raise DataError(f"{file}: parts must be sorted")
    place = np.asarray(table.column("place").to_pylist(), dtype=np.str_)
    return part, place, table.column("finest").to_numpy().astype(np.int64)


def index_rows(code: str, places: NDArray[np.str_], width: int, manifest: str) -> pa.Table:
    """Return the rows of the index for a part: its places of ``width`` digits, and its digest.

    ``places`` are those of the finest level, sorted.
    """
    above, counts = np.unique(places.astype(f"<U{width}"), return_counts=True)
    if not len(above):
        above, counts = np.array([code]), np.zeros(1, dtype=np.int64)
    rows = pa.table(
        [pa.array([code] * len(above)), pa.array(above.tolist()), pa.array(counts)], schema=_COLUMNS
    )
    return rows.append_column("manifest", pa.array([manifest] * len(above), pa.string()))


def index_files(
    kind: str, level: str, rows: Iterable[pa.Table], above: str | None
) -> dict[str, bytes]:
    """Return the files of the index, from the rows of :func:`index_rows` of every part in order."""
    table = pa.concat_tables(rows)
    codes, manifests = table.column("part").to_pylist(), table.column("manifest").to_pylist()
    index = parquet_bytes(table.select(_COLUMNS.names))
    document: dict[str, Any] = {
        "format": _FORMAT,
        "kind": kind,
        "level": level,
        "parts": dict(zip(codes, manifests, strict=True)),
        "above": above,
        "places": hashlib.sha256(index).hexdigest(),
    }
    return {INDEX: index, PARTITIONS: disk.sealed(document)}


#: The key by which manifests and settings of runs say that the people they are about do not exist.
MADE_UP = "made_up"


def made_up_mark(made_up: bool) -> dict[str, bool]:
    """Return the mark of a manifest of made-up people: nothing of others."""
    return {MADE_UP: True} if made_up else {}


def is_marked(folder: Path) -> bool:
    """Return whether a folder of tables or microdata says that its people are made up."""
    for kind, name in _MANIFESTS.items():
        if (folder / name).is_file():
            return MADE_UP in disk.read_document(folder / name)
        if Partitions.there(folder) and disk.read_document(folder / PARTITIONS)["kind"] == kind:
            index = Partitions.read(folder, kind)
            return bool(index.codes) and is_marked(index.checked(index.codes[0]))
    return False


def manifest_digest(folder: Path, kind: str) -> str:
    """Return the digest of the manifest of a part."""
    return disk.digest(folder / _MANIFESTS[kind])


# Published tables out of a folder, without guessing: every row, place and type is checked.


_TABLE_KEYS = {"format", "negative", "parts", "places", "workload"}
_FURTHER = {"absent", "geographies", "laws", "release", MADE_UP}
_ROW_BYTES = 24  # of a row that is read: its place, its cell and its count
_FILE_BYTES, _MOST_BYTES = 2**20, 2**10  # of a file without rows, and of each row, at most


class TableRows(NamedTuple):
    """Rows of one table in one file: place and cell by position, count, and where they stand."""

    row: IntArray
    cell: IntArray
    value: IntArray
    missing: BoolArray
    position: IntArray
    file: Path


def read(
    folder: Path,
) -> tuple[Workload, dict[str, Any], dict[Key, Any], dict[Key, Any], dict[Key, Likelihood], bool]:
    """Return workload, places, counts, suppressed cells, laws and the mark of a folder, checked."""
    manifest = _manifest(folder)
    try:
        workload = Workload.from_dict(manifest["workload"])
    except ArgumentError as error:
        raise DataError(f"{folder / MANIFEST}: workload: {error}") from error
    laws = {
        (level, name): _law(law, folder / MANIFEST) for level, name, law in manifest.get("laws", ())
    }
    if not set(laws) <= set(workload.tables):
        raise DataError(f"{folder / MANIFEST}: laws must be of tables of the workload")
    places = _places(folder, workload, manifest)
    listed = [part["file"] for part in manifest["parts"]]
    files = sorted(p.name for p in folder.glob("*.parquet") if not p.name.startswith(("_", ".")))
    if files != sorted(listed):
        other = sorted(set(files) ^ set(listed))
        raise DataError(f"{folder}: must hold the parts of its manifest, differs in {other[0]!r}")
    rows = sum(part["rows"] for part in manifest["parts"])
    check_together(str(folder), rows * _ROW_BYTES, [folder / name for name in listed])
    pieces: dict[Key, list[TableRows]] = {key: [] for key in workload.tables}
    for part in manifest["parts"]:
        file = folder / part["file"]
        table = _load(file, ROWS, part["rows"], part.get("sha256"))
        _take(table, file, workload, places, pieces, negative=manifest["negative"])
    matrices = {key: _matrices(p, key, workload, places) for key, p in pieces.items()}
    counts = {key: pair[0] for key, pair in matrices.items()}
    suppressed = {key: pair[1] for key, pair in matrices.items() if pair[1].nnz}
    return workload, places, counts, suppressed, laws, MADE_UP in manifest


def _manifest(folder: Path) -> dict[str, Any]:
    file = folder / MANIFEST
    if not file.exists():
        advice = disk.nearby(folder, MANIFEST, PARTITIONS) or (
            ": give the folder that PublishedTables.write or Release.write wrote"
        )
        raise DataError(f"{file}: is not the manifest of tables: no such file", advice=advice)
    manifest = disk.read_document(file)
    try:
        plain = (
            set(manifest) - _FURTHER == _TABLE_KEYS
            and manifest.get(MADE_UP, True) is True
            and all(set(p) - {"sha256"} == {"file", "rows"} for p in manifest["parts"])
            and manifest["format"] == FORMAT
            and isinstance(manifest["negative"], bool)
            and all(isinstance(p["file"], str) and is_part(p["file"]) for p in manifest["parts"])
            and all(_is_size(p["rows"]) for p in manifest["parts"])
            and isinstance(manifest["places"], dict)
            and isinstance(manifest["workload"], dict)
            and all(
                len(r) == 3 and all(isinstance(t, str) and t for t in r[:2])
                for r in manifest.get("laws", ())
            )
        )
    except (KeyError, TypeError) as error:
        raise DataError(f"{file}: is not the manifest of tables: {error!r}") from error
    if not plain:
        raise DataError(f"{file}: must have format {FORMAT!r}, negative, parts, places, workload")
    return manifest


def _law(document: object, file: Path) -> Likelihood:
    """Return the law of a table; one that is named alone, as before 0.2, has no closed form."""
    if isinstance(document, str) and document:
        return SimulationOnly()
    try:
        return read_likelihood(document, f"{file}: laws")
    except (ArgumentError, TypeError, ValueError) as error:
        raise DataError(f"{file}: laws: {error}") from error


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _load(file: Path, columns: pa.Schema, rows: int, digest: str | None) -> pa.Table:
    """Return the table of a file, which has this digest where the manifest has it."""
    disk.check_own(file)
    if digest is not None:
        disk.check_digest(file, digest, MANIFEST, most=_FILE_BYTES + _MOST_BYTES * rows)
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


def _typed(table: pa.Table, name: str, kind: object, file: Path) -> pa.Table:
    """Return the table with a column in its type; other texts and integers are as good."""
    column = table.column(name)
    test = is_text if kind == pa.string() else pa.types.is_integer
    if not test(column.type):
        row, value = _culprit(column)
        raise DataError(
            f"{file}: row {row + 1}, column {name!r}: must be of type {kind}, "
            f"got {quote(value)} ({column.type})"
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
    places, start = {}, 0
    levels = np.asarray(table.column("level").to_pylist(), dtype=np.str_)
    geoids = np.asarray(table.column("geoid").to_pylist(), dtype=np.str_)
    for level in workload.levels:
        stop = start + sizes[level]
        width = workload.schema.geography.width(level)
        part = geoids[start:stop]
        other = np.strings.str_len(part) != width
        if width:
            other |= ~np.strings.isdigit(part)
        unsorted = np.concatenate([np.zeros(min(len(part), 1), np.bool_), part[1:] <= part[:-1]])
        for bad, values, column, must in (
            (levels[start:stop] != level, levels, "level", f"be {level!r}"),
            (other, geoids, "geoid", f"be a place of {width} digits"),
            (unsorted, geoids, "geoid", "be sorted, each place once"),
        ):
            check.refuse_row(np.pad(bad, (start, 0)), values, file, column, must)
        places[level] = part
        start = stop
    return places


def _take(
    table: pa.Table,
    file: Path,
    workload: Workload,
    places: Mapping[str, Any],
    pieces: Mapping[Key, list[TableRows]],
    *,
    negative: bool,
) -> None:
    """Add the rows of a part, in any order, to those of their tables."""
    names = table.select(["level", "table"]).to_pandas(strings_to_categorical=True)
    for key, position in names.groupby(["level", "table"], observed=True).indices.items():
        start = f"{file}: row {position[0] + 1}"
        if key[0] not in places:
            raise DataError(
                f"{start}, column 'level': must be one of {', '.join(places)}, got {quote(key[0])}"
            )
        if key not in pieces:
            raise DataError(
                f"{start}, column 'table': must be a table of level {key[0]!r}, got {quote(key[1])}"
            )
        part = table if len(position) == table.num_rows else table.take(pa.array(position))
        rows = _positions(part, "geoid", places[key[0]], "place of its level", file, position)
        cells = workload.tables[key].cells
        columns = _positions(part, "cell", cells, "cell of its table", file, position)
        counts = part.column("count")
        values = counts.fill_null(0).to_numpy().astype(np.int64)
        if not negative:
            rule = "be >= 0 (the manifest says no count is negative)"
            check.refuse_row(values < 0, values, file, "count", rule, rows=position)
        pieces[key].append(
            TableRows(rows, columns, values, pc.is_null(counts).to_numpy(), position, file)
        )


def _matrices(
    pieces: list[TableRows], key: Key, workload: Workload, places: Mapping[str, Any]
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return counts and suppressed cells of a table, (places, cells); refuse a row there twice."""
    names = workload.tables[key].cells
    shape = len(places[key[0]]), len(names)
    if not pieces:
        return sparse.csr_array(shape, dtype=np.int64), sparse.csr_array(shape, dtype=np.bool_)
    columns: Any = map(np.concatenate, zip(*(piece[:5] for piece in pieces), strict=True))
    rows, cells, values, missing, position = columns
    flat = rows * len(names) + cells
    order = np.argsort(flat, kind="stable")
    repeats = np.flatnonzero(flat[order][1:] == flat[order][:-1])
    if len(repeats):
        row = order[repeats[0] + 1]
        ends = np.cumsum([len(piece.row) for piece in pieces])
        file = pieces[int(np.searchsorted(ends, row, side="right"))].file
        raise DataError(
            f"{file}: row {position[row] + 1}, columns 'level' to 'cell': must be there once, got "
            f"{key[0]} {places[key[0]][rows[row]]} {key[1]} {names[cells[row]]} again"
        )
    hidden: Any = (missing[missing], (rows[missing], cells[missing]))
    stored = values != 0
    counts: Any = (values[stored], (rows[stored], cells[stored]))
    return sparse.csr_array(counts, shape=shape), sparse.csr_array(hidden, shape=shape)


def _positions(
    part: pa.Table, column: str, names: Iterable[str], meaning: str, file: Path, numbers: IntArray
) -> IntArray:
    """Return the positions of texts among those known; one that is not is refused by its row."""
    index = pc.index_in(part.column(column), value_set=pa.array(list(names), pa.string()))
    if index.null_count:
        unknown = pc.is_null(index)
        check.refuse_row(unknown, part[column], file, column, f"be a {meaning}", rows=numbers)
    positions: IntArray = index.to_numpy().astype(np.int64)
    return positions


_PART_ROWS = 2**22
_SLICE = 2**20  # rows turned into text at a time
#: Counts of a table that is written with its zeros: of larger ones, which are sparse, a rule that
#: looks at the size alone leaves them out, and the manifest says so.
WHOLE = 2**17
_ABSENT = "A cell without a row is 0; one that is withheld has a row without a count."


def table_rows(tables: Content, key: Key) -> pa.Table:
    """Return the rows of a table, places first."""
    pieces = list(_slices(tables, key))
    return pa.concat_tables(pieces) if pieces else ROWS.empty_table()


def _is_whole(tables: Content, key: Key) -> bool:
    """Return whether a table is written with its zeros: its size says it, which all know."""
    height, width = tables.counts[key].shape
    return bool(height * width <= WHOLE)


def _slices(tables: Content, key: Key, *, whole: bool = False) -> Iterator[pa.Table]:
    """Yield counts, those that are 0 only of the whole, and suppressed cells as missing."""
    counts, hidden = tables.counts[key].tocoo(), tables.hidden[key].tocoo()
    if whole:
        every = np.indices(counts.shape).reshape(2, -1)
        rows, cells = every.astype(np.int64)
        values = tables.counts[key].toarray().ravel()
        missing = tables.hidden[key].toarray().ravel()
    else:
        rows, cells = np.concatenate([counts.coords, hidden.coords], axis=1).astype(np.int64)
        values = np.concatenate([counts.data, np.zeros(hidden.nnz, dtype=np.int64)])
        missing = np.repeat([False, True], [counts.nnz, hidden.nnz])
    order = np.lexsort((cells, rows))
    places = pa.array(tables.geoids[key[0]].tolist(), pa.string())
    names = pa.array(list(tables.workload.tables[key].cells), pa.string())
    for start in range(0, len(rows), _SLICE):
        part = order[start : start + _SLICE]
        count = len(part)
        yield pa.table(
            [
                pa.repeat(key[0], count),
                places.take(pa.array(rows[part])),
                pa.repeat(key[1], count),
                names.take(pa.array(cells[part])),
                pa.array(values[part], mask=missing[part]),
            ],
            schema=ROWS,
        )


def write(tables: Content, folder: Path, *, replace: bool) -> None:
    """Write the folder whole, or leave it unchanged."""
    with disk.whole_folder(folder, partial(check_folder, replace=replace)) as draft:
        fill(tables, draft)


def fill(tables: Content, folder: Path, *, release: str | None = None) -> None:
    """Write tables into an unfinished folder; those of a release name its description."""
    parts: list[dict[str, Any]] = []
    waiting: list[pa.Table] = []

    def write_part() -> None:
        table = pa.concat_tables(waiting or [ROWS.empty_table()])
        name = f"part-{len(parts):05d}.parquet"
        digest = write_parquet(table, folder / name)
        parts.append({"file": name, "rows": table.num_rows, "sha256": digest})
        waiting.clear()

    for key in tables.workload.tables:
        for piece in _slices(tables, key, whole=_is_whole(tables, key)):
            waiting.append(piece)
            if sum(table.num_rows for table in waiting) >= _PART_ROWS:
                write_part()
    if waiting or not parts:
        write_part()
    places = [
        pa.table([pa.repeat(level, len(g)), pa.array(g.tolist(), pa.string())], schema=PLACES)
        for level, g in tables.geoids.items()
    ]
    digest = write_parquet(pa.concat_tables(places), folder / GEOGRAPHIES)
    sparse_keys = [list(key) for key in tables.counts if not _is_whole(tables, key)]
    absent = {"absent": {"meaning": _ABSENT, "tables": sparse_keys}} if sparse_keys else {}
    manifest = {
        **absent,
        "format": FORMAT,
        "geographies": digest,
        "negative": tables.signed,
        "parts": parts,
        "places": {level: len(g) for level, g in tables.geoids.items()},
        "workload": tables.workload.to_dict(),
        **({} if release is None else {"release": release}),
        **made_up_mark(tables.made_up),
    }
    if tables.laws:  # tables that are of no release, or exact ones, have none
        manifest["laws"] = [[*key, tables.laws[key].to_dict()] for key in sorted(tables.laws)]
    disk.write_bytes(folder / MANIFEST, disk.sealed(manifest))


def write_csv(tables: Content, folder: Path) -> dict[str, str]:
    """Write a file ``tables/NAME.csv`` of every table, at all levels; return the tables by file.

    Cells stand by their labels, and places also by their names, if they have any.
    """
    levels: dict[str, list[Key]] = {}
    for key in tables.workload.tables:
        levels.setdefault(key[1], []).append(key)
    geography, files = tables.workload.schema.geography, dict[str, str]()
    (folder / CSV_FOLDER).mkdir()
    for name, keys in levels.items():
        stem = re.sub(r"[^\w-]+", "_", name).strip("_-")[:80] or "table"
        names = {Path(file).stem.casefold() for file in files}
        stems = (stem, *(f"{stem}-{number}" for number in range(2, len(levels) + 2)))
        file = f"{CSV_FOLDER}/{next(s for s in stems if s.casefold() not in names)}.csv"
        with disk.whole_file(folder / file, tidy=False) as stream:
            pieces = (_slices(tables, key, whole=_is_whole(tables, key)) for key in keys)
            stream.write(f"level,place,{'name,' if geography.names else ''}cell,count\n".encode())
            for piece in chain.from_iterable(pieces):
                rows = piece.drop_columns("table")
                if geography.names:
                    places = pa.array(geography.named(rows["geoid"].to_pylist()), pa.string())
                    rows = rows.add_column(2, "name", places)
                stream.write(csv_rows(rows))
        files[file] = f"table {name}" + f" at {', '.join(key[0] for key in keys)}"
    return files


def check_folder(folder: Path, *, replace: bool, also: Collection[str] = ()) -> None:
    """Refuse a folder unless it is empty or holds tables, and perhaps some more files."""
    names = {p.name for p in folder.iterdir()} if folder.exists() else set()
    parts = {n for n in names if n in (MANIFEST, GEOGRAPHIES, *also) or is_part(n)}
    refuse_others(folder, names - parts if not parts or MANIFEST in parts else names, "tables")
    if parts and not replace:
        raise OutputError(f"{folder}: holds tables already; nothing was changed")


def refuse_others(folder: Path, names: set[str], kind: str) -> None:
    """Refuse a folder that holds other names than leftovers."""
    extra = sorted(name for name in names if not disk.is_leftover(name))
    if extra:
        raise OutputError(
            f"{folder}: must be empty or hold {kind}, but holds {extra[0]!r}; nothing was changed"
        )


def write_parquet(table: pa.Table, target: Path) -> str:
    """Write a file, and return its digest."""
    with disk.whole_file(target, tidy=False) as stream:
        pq.write_table(table, stream, **STORAGE)
    return disk.digest(target)

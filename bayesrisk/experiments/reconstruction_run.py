"""Reconstruct a whole area: shard by shard, resumable, the same records for any number of workers.

Reads published tables and nothing else.
"""

import functools
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, DataError, PartFileError
from bayesrisk.experiments.executors import make_executor
from bayesrisk.experiments.parts import PartFolder
from bayesrisk.reconstruction import (
    Reconstruction,
    make_solver,
    reconstruct,
    record_form,
    solution_variability,
)
from bayesrisk.tables import PublishedTables

__all__ = [
    "ReconstructionConfig",
    "ReconstructionOutput",
    "ReconstructionSummary",
    "read_reconstruction",
    "run_reconstruction",
]

VARIABILITIES = ("block", "tract-bounds", "tract-joint")
_TRACT = "tract"
_SHOWN = 5  # conflicts that a summary quotes


@dataclass(frozen=True)
class ReconstructionConfig:
    """What a run does, and to which tables.

    Attributes
    ----------
    tables : str
        Digest of the input folder's files.
    scope : str
        Level whose tables are solved together.
    variability : str or None
        Scope of the solution variability: ``block``, ``tract-bounds``, ``tract-joint``; None for
        none.
    unit : str
        Level of the places that stay together in a shard.
    solver : str
        For what search does not settle.
    time_limit : float or None
        Seconds that the solver may take for a component.
    nearest : bool
        Whether blocks without a solution get the records of the least deviation.
    blocks_per_shard : int
        Blocks after which a shard ends.
    shards : int
        Number of shards.
    version : str
        Version of bayesrisk.
    """

    tables: str
    scope: str
    variability: str | None
    unit: str
    solver: str
    time_limit: float | None
    nearest: bool
    blocks_per_shard: int
    shards: int
    version: str = __version__

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain containers, for JSON."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class ReconstructionSummary:
    """What a run did.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    records : int
        Reconstructed records of a complete run; else 0.
    statuses : dict of str to int
        Blocks of each status.
    conflicts : tuple of str
        Of the first blocks without a solution the published cells that contradict.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    records: int
    statuses: dict[str, int]
    conflicts: tuple[str, ...]


@dataclass(frozen=True)
class ReconstructionOutput:
    """What a finished run wrote.

    Attributes
    ----------
    config : ReconstructionConfig
        What it did.
    records : pandas.DataFrame
        Reconstructed records.
    blocks : pandas.DataFrame
        Population, status, deviation and conflict of every block.
    variability : pandas.DataFrame or None
        Bounds of the solution variability, if it was asked for.
    """

    config: ReconstructionConfig
    records: pd.DataFrame
    blocks: pd.DataFrame
    variability: pd.DataFrame | None


class _Folder(PartFolder):
    """The folder of one reconstruction; blocks are written last and stand for a whole shard."""

    what: ClassVar[str] = "reconstruction"

    def __init__(self, path: str | Path, *, variability: bool) -> None:
        super().__init__(path)
        self.kinds = ("records", "variability", "blocks") if variability else ("records", "blocks")

    def merge(self, config: ReconstructionConfig) -> dict[str, Any]:
        """Write one file of each kind from the parts, a shard at a time; return what they hold."""
        files = {}
        for kind in self.kinds:
            target = self.path / f"{kind}.parquet"
            temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
            try:
                rows = self._concatenate(config, kind, temporary)
                with temporary.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
            files[target.name] = {"rows": rows, "sha256": digest}
        return files

    def _concatenate(self, config: ReconstructionConfig, kind: str, target: Path) -> int:
        columns = self.read_part(0, kind).schema
        rows = 0
        with pq.ParquetWriter(
            target, columns, compression="zstd", write_page_checksum=True
        ) as writer:
            for shard in range(config.shards):
                part = self.read_part(shard, kind)
                rows += part.num_rows
                writer.write_table(part.cast(columns))
        return rows


def digest_folder(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of a folder's files."""
    total = hashlib.sha256()
    for file in sorted(p for p in folder.iterdir() if p.is_file()):
        with file.open("rb") as data:
            content = hashlib.file_digest(data, "sha256").hexdigest()
        total.update(f"{file.name} {content}\n".encode())
    return total.hexdigest()


@functools.lru_cache(maxsize=1)
def _read_tables(folder: str, digest: str) -> PublishedTables:
    """Return the tables of a folder, once for each process; refuse them when they have changed."""
    path = Path(folder)
    tables = PublishedTables.read(path)
    if digest_folder(path) != digest:
        raise DataError(f"{path}: must not change while it is read")
    return tables


def _shard_of_blocks(
    tables: PublishedTables, unit: str, blocks_per_shard: int
) -> NDArray[np.int64]:
    """Return the shard of every block; blocks of one place of the unit stay together."""
    blocks = tables.geoids[tables.workload.levels[-1]]
    places = tables.workload.schema.geography.ancestors(blocks, unit)
    # Blocks are sorted, and the code of a place starts those of its blocks.
    first = np.searchsorted(places, places)
    return np.unique(first // blocks_per_shard, return_inverse=True)[1].astype(np.int64)


def _some_blocks(tables: PublishedTables, chosen: NDArray[np.bool_], unit: str) -> PublishedTables:
    """Return the tables of some blocks, and of the places up to the unit around them."""
    geography = tables.workload.schema.geography
    finest = tables.workload.levels[-1]
    lowest = geography.rank(unit)
    levels = [level for level in tables.workload.levels if geography.rank(level) >= lowest]
    workload = tables.workload.select(levels=levels)
    blocks = tables.geoids[finest][chosen]
    rows = {
        level: np.searchsorted(tables.geoids[level], np.unique(geography.ancestors(blocks, level)))
        for level in levels
    }
    return PublishedTables(
        workload,
        {level: tables.geoids[level][at] for level, at in rows.items()},
        {key: tables.counts[key][rows[key[0]]] for key in workload.tables},
        {
            key: hidden[rows[key[0]]]
            for key, hidden in tables.suppressed.items()
            if key in workload.tables
        },
    )


def _compute(tables: PublishedTables, config: ReconstructionConfig) -> dict[str, pa.Table]:
    """Return records, blocks and variability of some places."""
    found = reconstruct(
        tables,
        scope=config.scope,
        solver=config.solver,
        time_limit=config.time_limit,
        nearest=config.nearest,
    )
    parts = {"records": _records(found), "blocks": _arrow(found.blocks())}
    if config.variability is not None:
        # Block records need not fit the tract's tables: then a solution that does is looked for.
        same = config.variability == "block" or config.scope != found.problem.level
        bounds = solution_variability(
            tables,
            scope=config.variability,
            solution=found if same and not config.nearest else None,
            solver=config.solver,
            time_limit=config.time_limit,
        )
        parts["variability"] = _arrow(bounds.to_frame())
    return parts


def _records(found: Reconstruction) -> pa.Table:
    frame = record_form(found)
    codes = {name: "int16" for name in frame if name != found.problem.level}
    return _arrow(frame.astype(codes))


def _arrow(frame: pd.DataFrame) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    texts = [
        (
            f.name,
            pa.string() if pa.types.is_large_string(f.type) or pa.types.is_null(f.type) else f.type,
        )
        for f in table.schema
    ]
    return table.cast(pa.schema(texts))


def _work(folder: str, tables: str, config: ReconstructionConfig, shard: int) -> int:
    """Compute one shard and write its parts: what a worker does."""
    everything = _read_tables(tables, config.tables)
    chosen = _shard_of_blocks(everything, config.unit, config.blocks_per_shard) == shard
    parts = _compute(_some_blocks(everything, chosen, config.unit), config)
    store = _Folder(folder, variability=config.variability is not None)
    store.write_parts(config, shard, parts)
    return shard


def run_reconstruction(
    tables: str | Path,
    folder: str | Path,
    *,
    scope: str,
    variability: str | None = None,
    solver: str = "highs",
    time_limit: float | None = None,
    nearest: bool = False,
    workers: int = 1,
    resume: bool = False,
    blocks_per_shard: int = 250,
    executor: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReconstructionSummary:
    """Reconstruct records from a folder of published tables into a folder.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as ``PublishedTables.write`` and ``Release.write`` make it.
    folder : path-like
        Output folder, new or empty; or, with ``resume``, one that holds a part of this run.
    scope : str
        The finest level of the tables, or a larger one whose tables are used too.
    variability : str, optional
        ``block``, ``tract-bounds`` or ``tract-joint``: also bound the solution variability.
    solver : str, default "highs"
        See :func:`make_solver`.
    time_limit : float, optional
        Seconds that the solver may take for a component; none by default.
    nearest : bool, default False
        Whether blocks that no records fit get those of the least total deviation.
    workers : int, default 1
        Worker processes, in [1, 1024]; records do not depend on it.
    resume : bool, default False
        Whether finished shards in the folder are kept and the rest computed.
    blocks_per_shard : int, default 250
        Blocks after which a shard ends; places that are solved together stay together.
    executor : str, optional
        ``"serial"``, ``"processes"``, ``"dask"`` or a plug-in; by default serial for one worker
        and processes for more.
    progress : callable, optional
        Called with the finished and the total number of shards of this run, after each.

    Returns
    -------
    ReconstructionSummary
        What was done.  A complete run has ``records.parquet``, ``blocks.parquet`` and, if asked
        for, ``variability.parquet``.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or there are no tables at a level that is needed.
    DataError
        If the folder of tables is damaged: file, row and column are named.
    MissingDependencyError
        If the solver is not installed.
    OutputError
        If the folder belongs to another run, or holds shards and ``resume`` is false; nothing is
        changed then.
    PartFileError
        If a part in the folder is truncated, altered or foreign; nothing is changed then.

    Notes
    -----
    Memory: the tables in every worker, and one shard.  An interrupt keeps every finished shard.
    With a time limit the answers may depend on the speed of the machine.
    """
    check.integer(workers, "workers", lower=1, upper=1024)
    runner = make_executor(executor or ("serial" if workers == 1 else "processes"), workers)
    source = Path(tables)
    config = _configure(source, scope, variability, solver, time_limit, nearest, blocks_per_shard)
    store = _Folder(folder, variability=variability is not None)
    done = store.prepare(config, range(config.shards), resume=resume)
    todo = [shard for shard in range(config.shards) if shard not in done]
    task = functools.partial(_work, str(store.path), str(source), config)
    try:
        for count, _ in enumerate(runner.run(task, todo), start=1):
            if progress is not None:
                progress(count, len(todo))
    finally:
        manifest = store.write_manifest(config)  # also after an interrupt: what is there
        _read_tables.cache_clear()
    records = 0
    if manifest["complete"]:
        files = store.merge(config)
        store.write_manifest(config, files=files)
        records = files["records.parquet"]["rows"]
    statuses, conflicts = _outcome(store, config)
    return ReconstructionSummary(
        folder=str(store.path),
        shards=config.shards,
        computed=len(todo),
        resumed=len(done),
        complete=bool(manifest["complete"]),
        records=records,
        statuses=statuses,
        conflicts=conflicts,
    )


def _configure(
    source: Path,
    scope: str,
    variability: str | None,
    solver: str,
    time_limit: float | None,
    nearest: bool,
    blocks_per_shard: int,
) -> ReconstructionConfig:
    """Check everything that can be checked before a folder is made."""
    if variability is not None:
        check.choice(variability, "variability", VARIABILITIES)
    if time_limit is not None:
        time_limit = check.scalar(time_limit, "time_limit", lower=0.0, bounds="(]")
    check.integer(blocks_per_shard, "blocks_per_shard", lower=1)
    if not isinstance(solver, str):
        raise ArgumentError(f"solver must be a name, got {solver!r}")
    make_solver(solver)
    if not source.is_dir():
        raise DataError(f"{source}: must be a folder of tables")
    digest = digest_folder(source)
    published = _read_tables(str(source), digest)
    levels = published.workload.levels
    check.choice(scope, "scope", levels)
    unit = scope
    if variability is not None and variability != "block":
        if _TRACT not in levels:
            raise ArgumentError(
                f"variability {variability!r} needs tables of level {_TRACT!r}, "
                f"got those of {', '.join(levels)}"
            )
        unit = levels[min(levels.index(scope), levels.index(_TRACT))]
    if not published.geoids[levels[-1]].size:
        raise DataError(f"{source}: must have tables of at least one {levels[-1]}")
    shards = int(_shard_of_blocks(published, unit, blocks_per_shard)[-1]) + 1
    return ReconstructionConfig(
        digest,
        scope,
        variability,
        unit,
        solver,
        time_limit,
        bool(nearest),
        blocks_per_shard,
        shards,
    )


def _outcome(
    store: _Folder, config: ReconstructionConfig
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return how many blocks have each status, and what the first conflicts are."""
    statuses: Counter[str] = Counter()
    conflicts: list[str] = []
    for shard in sorted(store.finished(config)):
        blocks = store.read_part(shard, "blocks")
        statuses.update(blocks.column("status").to_pylist())
        conflicts += [text for text in blocks.column("detail").to_pylist() if text]
        conflicts = conflicts[:_SHOWN]
    return dict(sorted(statuses.items())), tuple(conflicts)


def read_reconstruction(folder: str | Path) -> ReconstructionOutput:
    """Return what a finished reconstruction wrote.

    Parameters
    ----------
    folder : path-like
        Its folder.

    Returns
    -------
    ReconstructionOutput
        Configuration, records, blocks and variability.

    Raises
    ------
    OutputError
        If the folder holds no reconstruction.
    PartFileError
        If the run is not finished, or a file is not the one that the manifest lists.
    """
    store = _Folder(folder, variability=True)
    document = store.load_settings()
    try:
        config = ReconstructionConfig(**document)
        manifest: Mapping[str, Any] = json.loads((store.path / "manifest.json").read_bytes())
        files = manifest.get("files")
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise store.no_settings(error) from error
    if not files:
        raise PartFileError(f"{store.path}: is not finished; run the reconstruction with --resume")
    return ReconstructionOutput(
        config,
        _listed(store.path, "records", files),
        _listed(store.path, "blocks", files),
        _listed(store.path, "variability", files) if config.variability else None,
    )


def _listed(folder: Path, kind: str, files: Mapping[str, Any]) -> pd.DataFrame:
    """Return a file after comparing it with the manifest."""
    file = folder / f"{kind}.parquet"
    try:
        with file.open("rb") as data:
            same = hashlib.file_digest(data, "sha256").hexdigest() == files[file.name]["sha256"]
    except (OSError, KeyError, TypeError) as error:
        raise PartFileError(f"{file}: cannot be read: {error}") from error
    if not same:
        raise PartFileError(f"{file}: is not the file that the manifest lists; run with --resume")
    return pq.read_table(file).to_pandas()

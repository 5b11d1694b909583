"""Reconstruct a whole area: shard by shard, resumable, the same records for any number of workers.

Reads published tables and nothing else.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.reconstruction.folder import ReconstructionConfig, ReconstructionFolder
from bayesrisk.experiments.reconstruction.shards import (
    compute_shard,
    digest_folder,
    read_tables,
    shard_of_blocks,
)
from bayesrisk.experiments.runs.executors import make_executor
from bayesrisk.reconstruction import make_solver

__all__ = ["ReconstructionSummary", "run_reconstruction"]

VARIABILITIES = ("block", "tract-bounds", "tract-joint")
_TRACT = "tract"
_SHOWN = 5  # conflicts that a summary quotes


@displayed
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


def _work(folder: str, tables: str, config: ReconstructionConfig, shard: int) -> int:
    """Compute one shard and write its parts: what a worker does."""
    store = ReconstructionFolder(folder, variability=config.variability is not None)
    store.write_parts(config, shard, compute_shard(tables, config, shard))
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
        See :func:`~bayesrisk.make_solver`.
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
    store = ReconstructionFolder(folder, variability=variability is not None)
    done = store.prepare(config, range(config.shards), resume=resume)
    todo = [shard for shard in range(config.shards) if shard not in done]
    task = functools.partial(_work, str(store.path), str(source), config)
    try:
        complete = store.run(config, task, runner, todo, progress=progress, merged=store.kinds)
    finally:
        read_tables.cache_clear()
    records = 0
    if complete:
        records = pq.read_metadata(store.path / "records.parquet").num_rows
    statuses, conflicts = _outcome(store, config)
    return ReconstructionSummary(
        folder=str(store.path),
        shards=config.shards,
        computed=len(todo),
        resumed=len(done),
        complete=complete,
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
        raise ArgumentError(f"solver must be a name, got {shown(solver)}")
    make_solver(solver)
    if not source.is_dir():
        raise DataError(f"{source}: must be a folder of tables")
    digest = digest_folder(source)
    published = read_tables(str(source), digest)
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
    shards = int(shard_of_blocks(published, unit, blocks_per_shard)[-1]) + 1
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
    store: ReconstructionFolder, config: ReconstructionConfig
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

"""One shard of a reconstruction: some places of a folder of published tables."""

import functools
import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk import _files
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.reconstruction.folder import ReconstructionConfig
from bayesrisk.experiments.runs.folder import arrow_table
from bayesrisk.reconstruction import (
    Reconstruction,
    reconstruct,
    record_form,
    solution_variability,
)
from bayesrisk.reconstruction.status import Status
from bayesrisk.release import RELEASE_FILE, Release
from bayesrisk.tables import PublishedTables

__all__ = [
    "compute_shard",
    "digest_folder",
    "open_tables",
    "published",
    "read_tables",
    "shard_of_blocks",
    "shard_size",
]

_SHARDS = 64  # of a run that nobody told how many blocks a shard has, at least
_MOST_BLOCKS = 250  # of such a shard


def digest_folder(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of a folder's files."""
    total = hashlib.sha256()
    try:
        for file in sorted(p for p in folder.iterdir() if p.is_file()):
            if not _files.is_leftover(file.name):
                total.update(f"{file.name} {_files.digest(file)}\n".encode())
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error}") from error
    return total.hexdigest()


def published(folder: Path) -> PublishedTables:
    """Return the tables of a folder, or of a release: then its description must be whole too.

    The digest of the folder, which a run keeps, covers the description as well.
    """
    if (folder / RELEASE_FILE).exists():
        return Release.read(folder).tables
    return PublishedTables.read(folder)


@functools.lru_cache(maxsize=1)
def read_tables(folder: str, digest: str) -> PublishedTables:
    """Return the tables of a folder, once for each process; refuse them when they have changed."""
    path = Path(folder)
    tables = published(path)
    if digest_folder(path) != digest:
        raise DataError(f"{path}: must not change while it is read")
    return tables


def open_tables(source: str | Path) -> tuple[str, PublishedTables]:
    """Return the digest and the tables of a folder; refuse what is no folder."""
    folder = Path(source)
    if not folder.is_dir():
        raise DataError(f"{folder}: must be a folder of tables")
    digest = digest_folder(folder)
    return digest, read_tables(str(folder), digest)


def shard_size(blocks: int) -> int:
    """Return how many blocks a shard has: so many that there are about 64 shards, or more.

    Blocks differ by orders of magnitude in the work that they take, so that few large shards keep
    workers waiting for the last one.  Only the number of blocks counts, never that of workers.
    """
    return min(max(1, blocks // _SHARDS), _MOST_BLOCKS)


def shard_of_blocks(tables: PublishedTables, unit: str, blocks_per_shard: int) -> NDArray[np.int64]:
    """Return the shard of every block; blocks of one place of the unit stay together."""
    blocks = tables.geoids[tables.workload.levels[-1]]
    places = tables.workload.schema.geography.ancestors(blocks, unit)
    # Blocks are sorted, and the code of a place starts those of its blocks.
    first = np.searchsorted(places, places)
    return np.unique(first // blocks_per_shard, return_inverse=True)[1].astype(np.int64)


def compute_shard(tables: str, config: ReconstructionConfig, shard: int) -> dict[str, pa.Table]:
    """Return records, blocks and variability of the places of a shard."""
    everything = read_tables(tables, config.tables)
    chosen = shard_of_blocks(everything, config.unit, config.blocks_per_shard) == shard
    return _compute(_some_blocks(everything, chosen, config.unit), config)


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
    parts = {"records": _records(found), "blocks": arrow_table(found.blocks())}
    if config.variability is not None:
        # Block records need not fit the tract's tables: then a solution that does is looked for.
        same = config.variability == "block" or config.scope != found.problem.level
        same = same and Status.NEAREST not in found.status
        bounds = solution_variability(
            tables,
            scope=config.variability,
            solution=found if same else None,
            solver=config.solver,
            time_limit=config.time_limit,
        )
        parts["variability"] = arrow_table(bounds.to_frame())
    return parts


def _records(found: Reconstruction) -> pa.Table:
    frame = record_form(found)
    codes = {name: "int16" for name in frame if name != found.problem.level}
    return arrow_table(frame.astype(codes))

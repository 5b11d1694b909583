"""One shard of a reconstruction: some places of a folder of published tables."""

import pyarrow as pa

from bayesrisk.experiments.reconstruction.folder import ReconstructionConfig
from bayesrisk.experiments.reconstruction.source import open_tables
from bayesrisk.experiments.runs.folder import arrow_table
from bayesrisk.reconstruction import (
    Reconstruction,
    reconstruct,
    record_form,
    solution_variability,
)
from bayesrisk.reconstruction.status import Status
from bayesrisk.tables import PublishedTables

_SHARDS = 64  # of a run that nobody told how many blocks a shard has, at least
_MOST_BLOCKS = 250  # of such a shard


def shard_size(blocks: int) -> int:
    """Return how many blocks a shard has: so many that there are about 64 shards, or more.

    Blocks differ by orders of magnitude in the work that they take, so that few large shards keep
    workers waiting for the last one.  Only the number of blocks counts, never that of workers.
    """
    return min(max(1, blocks // _SHARDS), _MOST_BLOCKS)


def compute_shard(tables: str, config: ReconstructionConfig, shard: int) -> dict[str, pa.Table]:
    """Return records, blocks and variability of the places of a shard."""
    source = open_tables(tables, config.tables)
    return _compute(source.shard(shard, config.unit, config.blocks_per_shard), config)


def _compute(tables: PublishedTables, config: ReconstructionConfig) -> dict[str, pa.Table]:
    """Return records, blocks and variability of some places."""
    found = reconstruct(
        tables,
        scope=config.scope,
        solver=config.solver,
        time_limit=config.time_limit,
        nearest=config.nearest,
        taken_as_true=config.taken_as_true,
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
            node_limit=config.node_limit,
            taken_as_true=config.taken_as_true,
        )
        parts["variability"] = arrow_table(bounds.to_frame())
    return parts


def _records(found: Reconstruction) -> pa.Table:
    frame = record_form(found)
    codes = {name: "int16" for name in frame if name != found.problem.level}
    return arrow_table(frame.astype(codes))

"""The reconstruction of a whole area as a study, in shards of places.

Reads published tables and nothing else.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.reconstruction.folder import (
    VARIABILITIES,
    ReconstructionConfig,
    ReconstructionFolder,
)
from bayesrisk.experiments.reconstruction.shards import (
    compute_shard,
    shard_size,
)
from bayesrisk.experiments.reconstruction.source import forget_tables, open_tables
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.runs.study import Outcome, Study
from bayesrisk.reconstruction import make_solver
from bayesrisk.reconstruction.records.variability import checked_nodes
from bayesrisk.tables.published import assumed_true

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
    taken_as_true : bool
        Whether counts are taken as true that need not be.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    records: int
    statuses: dict[str, int]
    conflicts: tuple[str, ...]
    taken_as_true: bool


@dataclass(frozen=True)
class ReconstructionStudy(Study[ReconstructionSummary]):
    """Records behind a folder of published tables, for :func:`~bayesrisk.run`.

    A complete run has ``records.parquet``, ``blocks.parquet`` and, if asked for,
    ``variability.parquet``; :func:`read_reconstruction` reads them.  Memory: in every worker the
    tables, or of tables by place one part and the index, and one shard.  With a time limit the
    answers may depend on the speed of the machine; with a limit of nodes they do not.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as ``PublishedTables.write`` and ``Release.write`` make it, or by place,
        as :class:`TabulationStudy` does.
    scope : str
        The finest level of the tables, or a larger one whose tables are used too.
    variability : str, optional
        ``block``, ``tract-bounds`` or ``tract-joint``: also bound the solution variability.
    solver : str, default "highs"
        See :func:`~bayesrisk.reconstruction.make_solver`.
    time_limit : float, optional
        Seconds that the solver may take for a component; none by default.
    node_limit : int, optional
        Nodes that the solver may look at for the variability of a component, which must be asked
        for; none by default.
    nearest : bool, default False
        Whether blocks that no records fit get those of the least total deviation.
    blocks_per_shard : int, optional
        Blocks after which a shard ends; places that are solved together stay together.  By
        default enough for about 64 shards, and at most 250.
    taken_as_true : bool, default False
        Whether counts of a release that need not be true are read as if they were.

    Raises
    ------
    ArgumentError
        When it runs: if a setting is out of range, there are no tables at a level that is
        needed, or their counts need not be true.
    DataError
        When it runs: if the folder of tables is damaged: file, row and column are named.
    MissingDependencyError
        When it runs: if the solver is not installed.
    """

    tables: str | Path
    _: KW_ONLY
    scope: str
    variability: str | None = None
    solver: str = "highs"
    time_limit: float | None = None
    node_limit: int | None = None
    nearest: bool = False
    blocks_per_shard: int | None = None
    taken_as_true: bool = False

    @functools.cached_property
    def config(self) -> ReconstructionConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        if self.variability is not None:
            check.choice(self.variability, "variability", VARIABILITIES)
        limit, nodes = self.time_limit, checked_nodes(self.node_limit, str(self.solver))
        if limit is not None:
            limit = check.scalar(limit, "time_limit", lower=0.0, bounds="(]")
        if nodes is not None and self.variability is None:
            raise ArgumentError(f"node_limit goes with a variability, got {nodes} without one")
        if self.blocks_per_shard is not None:
            check.integer(self.blocks_per_shard, "blocks_per_shard", lower=1)
        if not isinstance(self.solver, str):
            raise ArgumentError(f"solver must be a name, got {shown(self.solver)}")
        make_solver(self.solver)
        source = open_tables(self.tables)
        levels = source.workload.levels
        check.choice(self.scope, "scope", levels)
        if not source.blocks:
            raise DataError(f"{self.tables}: must have tables of at least one {levels[-1]}")
        unit, size = self._unit(levels), self.blocks_per_shard or shard_size(source.blocks)
        used = levels[levels.index(unit) :]
        keys = [key for key in source.workload.tables if key[0] in used]
        assumed = assumed_true(source.laws, keys, taken_as_true=self.taken_as_true)
        return ReconstructionConfig(
            source.digest,
            self.scope,
            self.variability,
            unit,
            self.solver,
            limit,
            nodes,
            bool(self.nearest),
            size,
            len(source.starts(unit, size)),
            taken_as_true=assumed,
        )

    def _unit(self, levels: tuple[str, ...]) -> str:
        """Return the level whose places stay together in a shard."""
        if self.variability is None or self.variability == "block":
            return self.scope
        if _TRACT not in levels:
            raise ArgumentError(
                f"variability {self.variability!r} needs tables of level {_TRACT!r}, "
                f"got those of {', '.join(levels)}"
            )
        return levels[min(levels.index(self.scope), levels.index(_TRACT))]

    @property
    def merged(self) -> tuple[str, ...]:  # type: ignore[override]
        """Kinds of parts that a complete run has in one file each."""
        return self.open(".").kinds

    def open(self, folder: str | Path) -> ReconstructionFolder:
        """Return the folder of a reconstruction."""
        return ReconstructionFolder(folder, variability=self.variability is not None)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return records, blocks and variability of some places."""
        return compute_shard(str(self.tables), self.config, shard)

    def summary(self, folder: PartFolder, outcome: Outcome) -> ReconstructionSummary:
        """Return what was done."""
        records = 0
        if outcome.complete:
            records = pq.read_metadata(folder.path / "records.parquet").num_rows
        return ReconstructionSummary(
            str(folder.path),
            *outcome,
            records,
            *_outcome(folder, self.config),
            self.config.taken_as_true,
        )

    def close(self) -> None:
        """Forget the tables."""
        forget_tables()


def _outcome(
    store: PartFolder, config: ReconstructionConfig
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return how many blocks have each status, and what the first conflicts are."""
    statuses: Counter[str] = Counter()
    conflicts: list[str] = []
    for shard in sorted(store.finished(config)):
        blocks = store.read_part(shard, "blocks")
        statuses.update(blocks.column("status").to_pylist())
        conflicts += [text for text in blocks.column("conflict").to_pylist() if text]
        conflicts = conflicts[:_SHOWN]
    return dict(sorted(statuses.items())), tuple(conflicts)

"""Claims about a whole area: shard by shard, resumable, the same for any number of workers.

Reads published tables and nothing else.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.reconstruction.shards import digest_folder, read_tables
from bayesrisk.experiments.runs.config import RunSettings
from bayesrisk.experiments.runs.executors import make_executor
from bayesrisk.experiments.runs.folder import PartFolder, arrow_table
from bayesrisk.reconstruction import Claims, claim_sentences, find_claims
from bayesrisk.reconstruction.claims.options import ClaimOptions, about_claims
from bayesrisk.tables import PublishedTables

__all__ = ["ClaimsConfig", "ClaimsSummary", "run_claims"]

_SHOWN = 5  # conflicts, and sentences, that a summary quotes
_PROVENANCE = ("folder", "computed", "resumed")  # what a file of results does not tell


@dataclass(frozen=True)
class ClaimsConfig(RunSettings):
    """What a run does, and to which tables.

    Attributes
    ----------
    tables : str
        Digest of the input folder's files.
    columns : tuple of str or None
        Columns of claims; None for all.
    max_columns : int or None
        Most columns of a claim.
    structural_rules : bool
        Whether only combinations that can exist count.
    tenure : str
        How tables that publish renters together are read.
    solver : str
        For what relaxations do not settle.
    time_limit : float or None
        Seconds for a place.
    blocks_per_shard : int
        Blocks of a shard.
    shards : int
        Number of shards.
    version : str
        Version of bayesrisk.
    """

    tables: str
    columns: tuple[str, ...] | None
    max_columns: int | None
    structural_rules: bool
    tenure: str
    solver: str
    time_limit: float | None
    blocks_per_shard: int
    shards: int
    version: str = __version__

    def options(self) -> dict[str, Any]:
        """Return the options of :func:`find_claims`."""
        names = ("columns", "max_columns", "structural_rules", "tenure", "solver", "time_limit")
        return {name: getattr(self, name) for name in names}


@displayed
@dataclass(frozen=True)
class ClaimsSummary:
    """What a run did.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    claims, singletons : int
        Verified claims, and those about one record, that no table states itself.
    statuses : dict of str to int
        Blocks of each status.
    coverage : list of dict
        Records described by such claims, by number of columns: singletons and all.
    examples : tuple of str
        A few claims about one record, those with most columns, in words.
    conflicts : tuple of str
        Published cells that contradict, of the first blocks without a data set.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    claims: int
    singletons: int
    statuses: dict[str, int]
    coverage: list[dict[str, int]]
    examples: tuple[str, ...]
    conflicts: tuple[str, ...]


class ClaimsFolder(PartFolder):
    """The folder of one run; blocks are written last and stand for a whole shard."""

    what: ClassVar[str] = "run of claims"
    kinds = ("claims", "coverage", "examples", "blocks")


def _work(folder: str, tables: str, config: ClaimsConfig, shard: int) -> int:
    """Study one shard and write its parts: what a worker does."""
    everything = read_tables(tables, config.tables)
    found = find_claims(_some(everything, config, shard), **config.options())
    ClaimsFolder(folder).write_parts(config, shard, _parts(found))
    return shard


def _some(tables: PublishedTables, config: ClaimsConfig, shard: int) -> PublishedTables:
    """Return the tables of the blocks of a shard."""
    level = tables.workload.levels[-1]
    rows = slice(shard * config.blocks_per_shard, (shard + 1) * config.blocks_per_shard)
    keys = [key for key in tables.workload.tables if key[0] == level]
    return PublishedTables(
        tables.workload.select(levels=[level]),
        {level: tables.geoids[level][rows]},
        {key: tables.counts[key][rows] for key in keys},
        {key: tables.suppressed[key][rows] for key in keys if key in tables.suppressed},
    )


def _parts(found: Claims) -> dict[str, pa.Table]:
    """Return claims, coverage, examples and blocks of a shard."""
    kinds = []
    for kind, singletons in (("singleton", True), ("any", False)):
        covered = found.covered(singletons=singletons)
        totals = covered.groupby("columns")[["covered", "claims"]].sum().reset_index()
        kinds.append(totals.assign(kind=kind))
    single = found.to_frame(readable="here")
    single = single[single["multiplicity"] == 1].nlargest(_SHOWN, "n_columns")
    examples = pd.DataFrame(
        {
            "place": single[found.level].to_numpy(dtype=object),
            "columns": single["n_columns"].to_numpy(),
            "sentence": np.array(claim_sentences(found, single), dtype=object),
        }
    )
    return {
        "claims": arrow_table(found.claims),
        "coverage": arrow_table(pd.concat(kinds, ignore_index=True)),
        "examples": arrow_table(examples),
        "blocks": arrow_table(found.blocks),
    }


def run_claims(
    tables: str | Path,
    folder: str | Path,
    *,
    columns: Sequence[str] | None = None,
    max_columns: int | None = None,
    structural_rules: bool = True,
    tenure: str = "merged",
    solver: str = "highs",
    time_limit: float | None = None,
    workers: int = 1,
    resume: bool = False,
    blocks_per_shard: int = 50,
    executor: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ClaimsSummary:
    """Verify claims about every block of a folder of published tables.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as ``PublishedTables.write`` and ``Release.write`` make it.
    folder : path-like
        Output folder, new or empty; or, with ``resume``, one that holds a part of this run.
    columns, max_columns, structural_rules, tenure, solver, time_limit : object
        As for :func:`find_claims`; the time limit is for each block.
    workers : int, default 1
        Worker processes, in [1, 1024]; claims do not depend on it.
    resume : bool, default False
        Whether finished shards in the folder are kept and the rest computed.
    blocks_per_shard : int, default 50
        Blocks of a shard.
    executor : str, optional
        ``"serial"``, ``"processes"``, ``"dask"`` or a plug-in; by default serial for one worker
        and processes for more.
    progress : callable, optional
        Called with the finished and the total number of shards of this run, after each.

    Returns
    -------
    ClaimsSummary
        What was done.  A complete run has ``claims.parquet`` (verified and undecided claims),
        ``blocks.parquet`` and ``summary.json``.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or a column unknown.
    DataError
        If the folder of tables is damaged: file, row and column are named.
    OutputError
        If the folder belongs to another run, or holds shards and ``resume`` is false; nothing is
        changed then.
    PartFileError
        If a part in the folder is truncated, altered or foreign; nothing is changed then.

    Notes
    -----
    Memory: the tables in every worker, and the claims of one shard.  An interrupt keeps every
    finished shard.
    """
    check.integer(workers, "workers", lower=1, upper=1024)
    check.integer(blocks_per_shard, "blocks_per_shard", lower=1)
    if not isinstance(solver, str):
        raise ArgumentError(f"solver must be a name, got {shown(solver)}")
    runner = make_executor(executor or ("serial" if workers == 1 else "processes"), workers)
    source = Path(tables)
    if not source.is_dir():
        raise DataError(f"{source}: must be a folder of tables")
    digest = digest_folder(source)
    published = read_tables(str(source), digest)
    given = None if columns is None else tuple(columns)
    options = ClaimOptions(
        columns=given,
        max_columns=max_columns,
        structural_rules=structural_rules,
        tenure=tenure,
        solver=solver,
        time_limit=time_limit,
    )
    about_claims(published, options)
    n_blocks = published.geoids[published.workload.levels[-1]].size
    if not n_blocks:
        raise DataError(f"{source}: must have tables of at least one place")
    config = ClaimsConfig(
        digest,
        given,
        max_columns,
        structural_rules,
        tenure,
        solver,
        time_limit,
        blocks_per_shard,
        -(-n_blocks // blocks_per_shard),
    )
    store = ClaimsFolder(folder)
    done = store.prepare(config, range(config.shards), resume=resume)
    todo = [shard for shard in range(config.shards) if shard not in done]
    task = functools.partial(_work, str(store.path), str(source), config)
    made: list[ClaimsSummary] = []

    def results() -> dict[str, bytes]:
        made.append(_summary(store, config, len(done)))
        # How a run came to its results is none of them: the same after an interrupt.
        told = {k: v for k, v in asdict(made[0]).items() if k not in _PROVENANCE}
        return {"summary.json": (json.dumps(told, indent=2) + "\n").encode()}

    try:
        store.run(
            config,
            task,
            runner,
            todo,
            progress=progress,
            merged=("claims", "blocks"),
            results=results,
        )
    finally:
        read_tables.cache_clear()
    return made[0]


def _summary(store: ClaimsFolder, config: ClaimsConfig, resumed: int) -> ClaimsSummary:
    statuses: Counter[str] = Counter()
    conflicts: list[str] = []
    parts: dict[str, list[pd.DataFrame]] = {"coverage": [], "examples": []}
    total = singletons = 0
    for shard in sorted(store.finished(config)):
        blocks = store.read_part(shard, "blocks")
        statuses.update(blocks.column("status").to_pylist())
        conflicts += [text for text in blocks.column("detail").to_pylist() if text]
        for kind, frames in parts.items():
            frames.append(store.read_part(shard, kind).to_pandas())
    coverage: list[dict[str, int]] = []
    if parts["coverage"]:
        frame = pd.concat(parts["coverage"]).groupby(["kind", "columns"]).sum().unstack("kind")
        for columns, line in frame.iterrows():
            coverage.append(
                {
                    "columns": int(str(columns)),
                    "singleton_records": int(line["covered", "singleton"]),
                    "singleton_claims": int(line["claims", "singleton"]),
                    "records": int(line["covered", "any"]),
                    "claims": int(line["claims", "any"]),
                }
            )
        total = sum(line["claims"] for line in coverage)
        singletons = sum(line["singleton_claims"] for line in coverage)
    examples = pd.concat(parts["examples"]) if parts["examples"] else pd.DataFrame()
    shown = []
    if len(examples):
        best = examples.sort_values("columns", ascending=False, kind="stable")
        best = best.drop_duplicates("place").head(_SHOWN)
        shown = [f"{p}: {s}" for p, s in zip(best["place"], best["sentence"], strict=True)]
    return ClaimsSummary(
        folder=str(store.path),
        shards=config.shards,
        computed=config.shards - resumed,
        resumed=resumed,
        complete=True,
        claims=total,
        singletons=singletons,
        statuses=dict(sorted(statuses.items())),
        coverage=coverage,
        examples=tuple(shown),
        conflicts=tuple(conflicts[:_SHOWN]),
    )

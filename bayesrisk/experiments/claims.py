"""Claims about a whole area as a study, in shards of blocks.

Reads published tables and nothing else.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._files.limits import Count, Positive
from bayesrisk._files.text import shown
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.reconstruction import forget_tables, open_tables, shard_size
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder, RunSettings, arrow_table
from bayesrisk.reconstruction import ClaimOptions, Claims, claim_sentences, find_claims
from bayesrisk.reconstruction.claims.options import resolve_options
from bayesrisk.reconstruction.registry import Status

#: What files call a status, where that is another word.
STORED = {Status.INFEASIBLE: "contradictory"}
_SHOWN = 5  # conflicts, and sentences, that a summary quotes
#: Options of :func:`find_claims`.
_OPTIONS = (
    "columns",
    "max_columns",
    "structural_rules",
    "tenure",
    "solver",
    "time_limit",
    "taken_as_true",
)
_RESULTS = "summary.json"  # without how the run came to it
_RUN = ("shards", "complete")  # of that file


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
    taken_as_true : bool
        Whether counts are taken as true that need not be.
    """

    tables: str
    columns: tuple[str, ...] | None
    max_columns: Count | None
    structural_rules: bool
    tenure: str
    solver: str
    time_limit: Positive | None
    blocks_per_shard: Count
    shards: Count
    version: str = __version__
    taken_as_true: bool = False

    def options(self) -> dict[str, Any]:
        """Return the options of :func:`find_claims`."""
        return {name: getattr(self, name) for name in _OPTIONS}


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
        "blocks": arrow_table(found.blocks.replace({"status": STORED})),
    }


@dataclass(frozen=True)
class ClaimsStudy(Study):
    """What must be true of every block of a folder of tables, for :func:`~bayesrisk.run`.

    A complete run has ``claims.parquet`` (verified and undecided claims), ``blocks.parquet`` and
    ``summary.json``.  Memory: in every worker the tables, or of tables by place
    one part and the index, and the claims of one shard.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as ``PublishedTables.write`` and ``Release.write`` make it, or by place,
        as :class:`TabulationStudy` does.
    columns, max_columns, structural_rules, tenure, solver, time_limit, taken_as_true : object
        As for :func:`find_claims`; the time limit is for each block.
    blocks_per_shard : int, optional
        Blocks of a shard; by default enough for about 64 shards, and at most 250.

    Raises
    ------
    ArgumentError
        When it runs: if a setting is out of range, a column unknown, or counts need not be true.
    DataError
        When it runs: if the folder of tables is damaged: file, row and column are named.
    """

    tables: str | Path
    _: KW_ONLY
    columns: Sequence[str] | None = None
    max_columns: int | None = None
    structural_rules: bool = True
    tenure: str = "merged"
    solver: str = "highs"
    time_limit: float | None = None
    blocks_per_shard: int | None = None
    taken_as_true: bool = False

    layout = Layout(
        "run of claims",
        kinds=("claims", "coverage", "examples", "blocks"),
        merged=("claims", "blocks"),
    )

    @functools.cached_property
    def config(self) -> ClaimsConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        if self.blocks_per_shard is not None:
            check.integer(self.blocks_per_shard, "blocks_per_shard", lower=1)
        if not isinstance(self.solver, str):
            raise ArgumentError(f"solver must be a name, got {shown(self.solver)}")
        source = open_tables(self.tables)
        options: dict[str, Any] = {name: getattr(self, name) for name in _OPTIONS}
        options["columns"] = None if self.columns is None else tuple(self.columns)
        about = resolve_options(source.sample(), ClaimOptions(**options))
        options["taken_as_true"] = about.taken_as_true
        if not source.blocks:
            raise DataError(f"{self.tables}: must have tables of at least one place")
        size = self.blocks_per_shard or shard_size(source.blocks)
        shards = -(-source.blocks // size)
        return ClaimsConfig(source.digest, **options, blocks_per_shard=size, shards=shards)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return claims, coverage, examples and blocks of a shard."""
        source = open_tables(self.tables, self.config.tables)
        finest = source.workload.levels[-1]
        some = source.shard(shard, finest, self.config.blocks_per_shard)
        return _parts(find_claims(some, **self.config.options()))

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the summary as JSON, without how the run came to it."""
        facts = self.facts(folder, complete=False)
        done = {"shards": self.shards, "complete": True, **facts}
        return {_RESULTS: (json.dumps(done, indent=2) + "\n").encode()}

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return counts of claims and blocks; a complete run has just counted them for its file."""
        if complete:
            done = json.loads((folder.path / _RESULTS).read_bytes())
            return {name: value for name, value in done.items() if name not in _RUN}
        return _counted(folder, self.config)

    def close(self) -> None:
        """Forget the tables."""
        forget_tables()


def _counted(store: RunFolder, config: ClaimsConfig) -> dict[str, Any]:
    """Return the counts of the finished shards, and a few of their claims and conflicts."""
    statuses: Counter[str] = Counter()
    conflicts: list[str] = []
    parts: dict[str, list[pd.DataFrame]] = {"coverage": [], "examples": []}
    total = singletons = 0
    for shard in store.finished():
        blocks = store.read_part(shard, "blocks")
        statuses.update(blocks.column("status").to_pylist())
        conflicts += [text for text in blocks.column("conflict").to_pylist() if text]
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
        shown = [
            f"{p}: {s}" if p else s for p, s in zip(best["place"], best["sentence"], strict=True)
        ]
    return {
        "claims": total,
        "singletons": singletons,
        "statuses": dict(sorted(statuses.items())),
        "coverage": coverage,
        "examples": shown,
        "conflicts": conflicts[:_SHOWN],
        "taken_as_true": config.taken_as_true,
    }

"""Claims about a whole area as a study, in shards of blocks: reads published tables only."""

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
from bayesrisk._files.text import shown
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.reconstruction import forget_tables, open_tables, shard_size
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder, arrow_table
from bayesrisk.reconstruction import Claims, claim_sentences, find_claims
from bayesrisk.reconstruction.claims.result import ClaimOptions, claim_problem
from bayesrisk.reconstruction.registry import Status

#: Names of statuses in files, where they are other words.
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
_RESULTS = "summary.json"
_RUN = ("shards", "complete")  # of that file, besides the facts


@dataclass(frozen=True)
class ClaimsStudy(Study):
    """Claims that must be true of every block of a folder of tables, for :func:`~bayesrisk.run`.

    A complete run has ``claims.parquet`` (verified and undecided claims), ``blocks.parquet`` and
    ``summary.json``.  Its summary has, as facts, ``claims`` and ``singletons`` (verified claims,
    and those about one record, that no table states itself), ``statuses`` (blocks of each),
    ``coverage`` (records that such claims describe, by number of columns), ``examples`` (claims
    about one record with most columns, in words), ``conflicts`` (published cells that contradict)
    and ``taken_as_true``.  Memory: in every worker the tables, or of tables by place one part and
    the index, and the claims of one shard.

    Parameters
    ----------
    tables : path-like
        Folder of tables, as ``PublishedTables.write`` and ``Release.write`` make it, or by place,
        as :class:`TabulationStudy` does.
    columns, max_columns, structural_rules, tenure, solver, time_limit, taken_as_true : object
        As for :func:`find_claims`; the time limit is for each block.
    blocks_per_shard : int, optional
        Blocks of a shard; by default enough for about 64 shards, and at most 250.
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
    def config(self) -> dict[str, Any]:
        """The configuration: everything is checked that can be before a folder is made."""
        if self.blocks_per_shard is not None:
            check.integer(self.blocks_per_shard, "blocks_per_shard", lower=1)
        if not isinstance(self.solver, str):
            raise ArgumentError(f"solver must be a name, got {shown(self.solver)}")
        source = open_tables(self.tables)
        options: dict[str, Any] = {name: getattr(self, name) for name in _OPTIONS}
        options["columns"] = None if self.columns is None else tuple(self.columns)
        about = claim_problem(source.sample(), ClaimOptions(**options))
        options["taken_as_true"] = about.taken_as_true
        if not source.blocks:
            raise DataError(f"{self.tables}: must have tables of at least one place")
        size = self.blocks_per_shard or shard_size(source.blocks)
        return {
            "tables": source.digest,
            **options,
            "blocks_per_shard": size,
            "shards": -(-source.blocks // size),
            "version": __version__,
        }

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return claims, coverage, examples and blocks of a shard."""
        config = self.config
        source = open_tables(self.tables, config["tables"])
        finest = source.workload.levels[-1]
        some = source.shard(shard, finest, config["blocks_per_shard"])
        claims = find_claims(some, **{name: config[name] for name in _OPTIONS})
        kinds = []
        for kind, singletons in (("singleton", True), ("any", False)):
            covered = claims.covered(singletons=singletons)
            totals = covered.groupby("columns")[["covered", "claims"]].sum().reset_index()
            kinds.append(totals.assign(kind=kind))
        return {
            "claims": arrow_table(claims.claims),
            "coverage": arrow_table(pd.concat(kinds, ignore_index=True)),
            "examples": arrow_table(_examples(claims)),
            "blocks": arrow_table(claims.blocks.replace({"status": STORED})),
        }

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
        shards = folder.finished()
        statuses: Counter[str] = Counter()
        conflicts: list[str] = []
        for shard in shards:
            blocks = folder.read_part(shard, "blocks")
            statuses.update(blocks.column("status").to_pylist())
            conflicts += [text for text in blocks.column("conflict").to_pylist() if text]
        coverage = _coverage(folder.frame("coverage", shards)) if shards else []
        return {
            "claims": sum(line["claims"] for line in coverage),
            "singletons": sum(line["singleton_claims"] for line in coverage),
            "statuses": dict(sorted(statuses.items())),
            "coverage": coverage,
            "examples": _best(folder.frame("examples", shards)) if shards else [],
            "conflicts": conflicts[:_SHOWN],
            "taken_as_true": self.config["taken_as_true"],
        }

    def close(self) -> None:
        """Forget the tables."""
        forget_tables()


def _examples(claims: Claims) -> pd.DataFrame:
    """Return the claims about one record with most columns, in words."""
    frame = claims.to_frame(readable="here")
    single = frame[frame["multiplicity"] == 1].nlargest(_SHOWN, "n_columns")
    return pd.DataFrame(
        {
            "place": single[claims.level].to_numpy(dtype=object),
            "columns": single["n_columns"].to_numpy(),
            "sentence": np.array(claim_sentences(claims, single), dtype=object),
        }
    )


def _best(examples: pd.DataFrame) -> list[str]:
    """Return the sentence with most columns of each of a few places."""
    best = examples.sort_values("columns", ascending=False, kind="stable")
    best = best.drop_duplicates("place").head(_SHOWN)
    pairs = zip(best["place"], best["sentence"], strict=True)
    return [f"{place}: {sentence}" if place else sentence for place, sentence in pairs]


def _coverage(parts: pd.DataFrame) -> list[dict[str, int]]:
    """Return records described and claims, of singletons and of all, by number of columns."""
    names = {
        "singleton_records": ("covered", "singleton"),
        "singleton_claims": ("claims", "singleton"),
        "records": ("covered", "any"),
        "claims": ("claims", "any"),
    }
    frame = parts.groupby(["kind", "columns"]).sum().unstack("kind")
    return [
        {"columns": int(str(columns)), **{name: int(line[key]) for name, key in names.items()}}
        for columns, line in frame.iterrows()
    ]

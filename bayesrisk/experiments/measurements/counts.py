"""The posterior of every count of a noisy measurement file, consistent along the spine.

For each cell of one query the counts of all units are a tree: a place counts what the places in it
count.  Noisy answers, invariant totals and bounds of every level of the tree are used at once.
"""

from __future__ import annotations

import functools
import json
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.measurements.config import MeasurementCountsConfig
from bayesrisk.experiments.measurements.source import BUDGETS, Source, digest_of, open_source
from bayesrisk.experiments.measurements.spine import Spine, checked_levels, tree_of
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.runs.study import Outcome, Study
from bayesrisk.inference import TreePosterior, tree_posterior
from bayesrisk.readers.nmf.between import states_of, units_between

_NODES = 2**19  # nodes times cells of a shard, about
_LEVELS = (0.05, 0.95)  # of the interval in the output
_PROVENANCE = ("folder", "computed", "resumed")


@displayed
@dataclass(frozen=True)
class MeasurementCountsSummary:
    """What a run did.

    Attributes
    ----------
    folder : str
        The output folder; ``counts.parquet`` in it has a row for each unit and cell.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    query, level, top : str
        What was asked.
    counts : dict of str to int
        Counts of each level.
    exact : dict of str to int
        Those among them that the evidence leaves no doubt about: one count is possible.
    sd : dict of str to float
        Root of the mean variance of the posterior, by level, in persons.
    noise_sd : dict of str to float or None
        Root of the mean scale sigma2 of the noise in the level's own answers, where it has some.
    truncation_bound : float
        Largest bound on what was cut off a posterior.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    query: str
    level: str
    top: str
    counts: dict[str, int]
    exact: dict[str, int]
    sd: dict[str, float]
    noise_sd: dict[str, float | None]
    truncation_bound: float


class MeasurementCountsFolder(PartFolder):
    """The folder of one run; the counts are written last and stand for a whole shard."""

    what: ClassVar[str] = "run on the counts of noisy measurements"
    kinds = ("tally", "counts")


@dataclass(frozen=True)
class MeasurementCountsStudy(Study[MeasurementCountsSummary]):
    """The posterior of the counts of one query in every place, for :func:`run`.

    Every cell of the query has a tree of its own, from the top level to the finest, and
    :func:`tree_posterior` answers it exactly under a flat prior: noisy answers of all levels,
    totals and bounds that the constraints state, non-negative counts that add up.

    A complete run has ``counts.parquet`` with a row for each unit and cell (``geocode``,
    ``level``, ``cell``, ``noisy_count`` and ``sigma2`` of its own answer, ``lower`` and ``upper``,
    the posterior's ``mean``, ``sd``, ``mode``, ``at_least_one``, the quantiles ``q05`` and
    ``q95``, and ``truncation_bound``), and ``summary.json``.

    Parameters
    ----------
    measurements : path-like
        Folder of a product of noisy measurement files.
    query : str, default "total"
        Query whose counts are asked for; its noisy answers are used, no other's.
    level : str, default "Block"
        Finest level.
    top : str, default "State"
        Coarsest level: each of its units is a tree, and what levels above say is not used.  An
        exact count of the top makes that no loss, as that of the population of a state.
    budget : {"pl94-us", "pl94-pr"}, optional
        Production budget: exact scales of the noise, instead of those found from variances.

    Raises
    ------
    DataError
        When it runs: if a row breaks the format, a unit lies in none of the level above, or
        constraints contradict each other; unit and constraints are named.

    Notes
    -----
    Memory: a tree, about 2 KiB for each unit of the finest level below one of the top level, and
    a shard of at most about 2**19 rows (or one cell of one tree).  A finer ``top`` needs less.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.experiments import run
    >>> from bayesrisk.readers import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Person_PL_PROD", rng=1)
    ...     summary = run(MeasurementCountsStudy(sample.folder), folder + "/counts")
    >>> summary.exact["State"], summary.sd["Block"] < summary.noise_sd["Block"]
    (3, True)
    """

    measurements: str | Path
    _: KW_ONLY
    query: str = "total"
    level: str = "Block"
    top: str = "State"
    budget: str | None = None

    merged = ("counts",)

    @functools.cached_property
    def config(self) -> MeasurementCountsConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        if self.budget is not None:
            check.choice(self.budget, "budget", BUDGETS)
        source = checked_levels(self._source(), self.top)
        parts = []
        for state in states_of(source.nmf, self.top):
            for unit in units_between(source.nmf, self.top, state, state)[0].tolist():
                nodes = Spine(source, self.top, unit).size
                cells = max(1, _NODES // nodes)
                for first in range(0, source.n_cells, cells):
                    parts.append((unit, first, min(first + cells, source.n_cells)))
        if not parts:
            raise DataError(f"{source.nmf.folder}: level {self.top} must have units, got none")
        return MeasurementCountsConfig(
            digest_of(source.nmf.folder),
            self.query,
            self.level,
            self.top,
            self.budget,
            tuple(parts),
        )

    def open(self, folder: str | Path) -> MeasurementCountsFolder:
        """Return the folder of a run on the counts of noisy measurements."""
        return MeasurementCountsFolder(folder)

    def _source(self) -> Source:
        check.text(self.query, "query")
        folder = str(check.path(self.measurements, "measurements"))
        return open_source(folder, self.level, self.query, self.budget)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the posteriors of a shard, and a tally of them by level."""
        source = self._source()
        unit, first, last = self.config.parts[shard]
        found = []
        for cell, frame in Spine(source, self.top, unit).frames(first, last):
            result = tree_posterior(tree_of(source, cell, frame), leaf_prior="flat")
            found.append(_rows(result, cell, frame))
        counts = pd.concat(found, ignore_index=True)
        schema = pa.schema([(name, _TYPES.get(name, pa.float64())) for name in counts.columns])
        return {
            "tally": pa.Table.from_pandas(_tally(counts), preserve_index=False),
            "counts": pa.Table.from_pandas(counts, schema=schema, preserve_index=False),
        }

    def results(self, folder: PartFolder) -> dict[str, bytes]:
        """Return the summary as JSON, without how the run came to it."""
        done = self.summary(folder, Outcome(self.config.shards, 0, 0, True))
        told = {k: v for k, v in asdict(done).items() if k not in _PROVENANCE}
        return {"summary.json": (json.dumps(told, indent=2, allow_nan=False) + "\n").encode()}

    def summary(self, folder: PartFolder, outcome: Outcome) -> MeasurementCountsSummary:
        """Return what was done."""
        return _summary(folder, self.config, self._source().nmf.levels, outcome)

    def close(self) -> None:
        """Forget the folder."""
        open_source.cache_clear()


_TYPES = {
    "geocode": pa.string(),
    "level": pa.string(),
    "cell": pa.int32(),
    **dict.fromkeys(("noisy_count", "lower", "upper", "mode", "q05", "q95"), pa.int64()),
}


def _rows(result: TreePosterior, cell: int, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the posterior of a cell in every unit, in the order of the frame."""
    order = result.tree.names.get_indexer(pd.Index(frame["node"]))
    low, high = result.quantile(_LEVELS)
    return pd.DataFrame(
        {
            "geocode": frame["node"],
            "level": frame["level"],
            "cell": cell,
            "noisy_count": frame["noisy_count"],
            "sigma2": frame["sigma2"],
            "lower": frame["lower"],
            "upper": frame["upper"],
            "mean": result.mean[order],
            "sd": result.sd[order],
            "mode": result.mode[order],
            "at_least_one": result.at_least_one[order],
            "q05": low[order],
            "q95": high[order],
            "truncation_bound": result.truncation_bound,
        }
    )


def _tally(counts: pd.DataFrame) -> pd.DataFrame:
    """Return sums by level, which add up over shards."""
    some = counts.assign(
        exact=counts["sd"] == 0.0,
        variance=counts["sd"] ** 2,
        noise=counts["sigma2"].fillna(0.0),
        measured=counts["sigma2"].notna(),
        n=1,
    )
    sums = some.groupby("level", sort=True)[["n", "exact", "variance", "noise", "measured"]].sum()
    bound = some.groupby("level", sort=True)["truncation_bound"].max()
    return sums.astype({"exact": "int64"}).assign(truncation_bound=bound).reset_index()


def _summary(
    store: PartFolder,
    config: MeasurementCountsConfig,
    levels: tuple[str, ...],
    outcome: Outcome,
) -> MeasurementCountsSummary:
    parts = [
        store.read_part(shard, "tally").to_pandas() for shard in sorted(store.finished(config))
    ]
    total, bound = pd.DataFrame(), 0.0
    if parts:
        every = pd.concat(parts)
        bound = float(every["truncation_bound"].max())
        total = every.drop(columns="truncation_bound").groupby("level").sum()
    found: dict[Any, dict[Any, Any]] = total.to_dict(orient="index")
    rows = {level: found[level] for level in levels if level in found}
    return MeasurementCountsSummary(
        folder=str(store.path),
        **outcome._asdict(),
        query=config.query,
        level=config.level,
        top=config.top,
        counts={level: int(row["n"]) for level, row in rows.items()},
        exact={level: int(row["exact"]) for level, row in rows.items()},
        sd={level: float(np.sqrt(row["variance"] / row["n"])) for level, row in rows.items()},
        noise_sd={
            level: float(np.sqrt(row["noise"] / row["measured"])) if row["measured"] else None
            for level, row in rows.items()
        },
        truncation_bound=bound,
    )

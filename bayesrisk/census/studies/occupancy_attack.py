"""The occupancy attack on published tables, as a study.

It reads published statistics, optionally a public sample of households, and nothing else.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk._base import disk, validation as check
from bayesrisk._base.disk.parquet import opened, read_frame
from bayesrisk._base.disk.text import named
from bayesrisk._base.display import arrow_table
from bayesrisk._base.validation import FloatArray
from bayesrisk.census.occupancy.detection import detect_occupancy
from bayesrisk.census.occupancy.household_law import HouseholdLaw
from bayesrisk.census.occupancy.solutions import OccupancyReconstruction, reconstruct_occupancy
from bayesrisk.census.occupancy.statistics import OccupancyStatistics, occupancy_statistics
from bayesrisk.census.studies.occupancy_results import occupancy_page
from bayesrisk.constraints.model import Status
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.reconstruction import kept_tables, open_tables
from bayesrisk.experiments.runs.engine import Study, evenly
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.tables import Microdata, PublishedTables, Records, Schema

SCHEMA = "household-occupancy"
_HUD = {"children", "bedrooms", "subsidised"}
_SIMULATED = {"tenure", *_HUD}  # columns of ``household-dhc``, and HUD's
SAMPLED = ["size", "race_ethnicity", "children"]
HOUSEHOLD = ["size", "race_ethnicity", "children", "bedrooms", "subsidised", "violation"]

# -----------------------------------------------------------------------------
# Files of households.


def read_households(path: str | Path) -> Records:
    """Return confidential households of a Parquet file.

    Its columns are those of schema ``household-occupancy``; or of ``household-dhc`` with
    ``children``, ``bedrooms`` and ``subsidised``, as from ``bayesrisk census simulate``.
    """
    columns = _columns(path)
    if set(columns) >= _SIMULATED:
        return Records.read(path, schema=Schema.named("household-dhc"))
    if set(columns) >= {"race_ethnicity", *_HUD}:
        return Records.read(path, schema=Schema.named(SCHEMA))
    raise DataError(
        f"{path}: must have columns block, size, race_ethnicity, children, bedrooms, subsidised "
        f"(or those of household-dhc), got {', '.join(columns)}"
    )


def read_sample(path: str | Path) -> pd.DataFrame:
    """Return a public sample's ``size``, ``race_ethnicity``, ``children`` and optional ``weight``.

    The Parquet file has those columns, or households such as ``bayesrisk census simulate`` writes.
    """
    columns = _columns(path)
    if "race_ethnicity" not in columns and set(columns) >= _SIMULATED:
        homes = Microdata(None, read_households(path), None).for_schema(Schema.named(SCHEMA))
        return homes.to_frame()[SAMPLED]
    for name in SAMPLED:
        if name not in columns:
            raise DataError(f"{path}: must have a column {name!r}, got {', '.join(columns)}")
    weight = ["weight"] if "weight" in columns else []
    return read_frame(Path(path), dict.fromkeys([*SAMPLED, *weight], ("number",)))


def _columns(path: str | Path) -> list[str]:
    if Path(path).is_dir():
        raise DataError(f"{path}: must be a file of households, got a folder without them")
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    with opened(Path(path)) as (_, columns):
        return list(columns.names)


def _digest(path: str | Path) -> str:
    with named(str(path)):
        return disk.digest(path)


@functools.lru_cache(maxsize=1)
def _statistics(path: str, digest: str) -> OccupancyStatistics:
    """Return a file's statistics, cached in each process; raise if the file has changed."""
    statistics = OccupancyStatistics.from_frame(read_frame(Path(path)), source=path)
    if _digest(path) != digest:
        raise DataError(f"{path}: must not change while it is read")
    return statistics


@dataclass(frozen=True)
class OccupancyAttackStudy(Study):
    """The occupancy attack on published statistics, as a study for :func:`~bayesrisk.run`.

    A complete run has ``report.html`` and ``blocks.parquet``: status, and with a sample the mean
    number of violations in reconstructions. With a sample it has ``households.parquet``: kinds of
    households with their mean number in the reconstructions of a block, violations first. Facts of
    a run are the numbers of ``blocks``, of those with ``subsidised`` households and of each of
    ``statuses``, ``conflicts`` and ``taken_as_true``. ``conflicts`` has the first blocks that no
    households fit, with the tables that contradict each other. Each worker holds the statistics,
    or for statistics by place the shard's part, and one shard.

    Parameters
    ----------
    blocks : path-like
        Folder of tables of the workload ``household-occupancy`` or of a release, by place too; or a
        Parquet file of :meth:`OccupancyStatistics.to_frame`.
    sample : path-like, optional
        Parquet file of a public sample with ``size``, ``race_ethnicity``, ``children`` and
        optionally ``weight``. Households of blocks with a violation are then reconstructed, too.
    level, hud, taken_as_true, known_rule : object
        As for :func:`~bayesrisk.census.occupancy_statistics`, for tables.
    open_end, error, smoothing, time_limit : object
        As for :func:`~bayesrisk.census.detect_occupancy`,
        :func:`~bayesrisk.reconstruct_occupancy` and :meth:`HouseholdLaw.from_sample`.
    solutions : int, default 100
        Reconstructions of a block: the best one, or those of perturbed objectives.
    seed : int, default 1
        Seed of the perturbations, and of ties.
    blocks_per_shard : int, default 250
        Blocks of a shard; the perturbations depend on it. For tables at a level that is not their
        finest, a shard has whole places of the level with about so many of the finest.
    """

    blocks: str | Path
    _: KW_ONLY
    sample: str | Path | None = None
    level: str = "block"
    hud: str = "counts"
    open_end: bool = True
    error: str = "none"
    solutions: int = 100
    smoothing: float = 0.5
    seed: int = 1
    time_limit: float | None = None
    blocks_per_shard: int = 250

    inputs: ClassVar = ("blocks",)
    taken_as_true: bool = False
    known_rule: bool = True

    caches: ClassVar = (kept_tables, _statistics)

    @functools.cached_property
    def config(self) -> Mapping[str, Any]:
        """Checked settings, and the digests of statistics and sample."""
        size = check.integer(self.blocks_per_shard, "blocks_per_shard", lower=1)
        check.integer(self.solutions, "solutions", lower=1, upper=10**6)
        check.choice(self.error, "error", ("none", "absolute", "squared"))
        check.flag(self.taken_as_true, "taken_as_true")
        limit = check.time_limit(self.time_limit)
        smoothing = check.scalar(self.smoothing, "smoothing", lower=0.0, upper=1e6, bounds="(]")
        if Path(self.blocks).is_dir():
            source = open_tables(self.blocks)
            check.choice(self.level, "level", source.workload.levels)
            digest, shards = source.digest, len(source.starts(self.level, size))
            if shards:  # whether all tables are there is said before a folder is made
                self._readable(self._read_statistics(source.shard(0, self.level, size)))
        elif self.hud != "counts":
            raise ArgumentError(
                "hud",
                "must be 'counts' for a file of statistics, which has intervals",
                got=self.hud,
            )
        else:
            digest = _digest(self.blocks)
            statistics = self._readable(_statistics(str(self.blocks), digest))
            shards = -(-len(statistics) // size)
        if not shards:
            raise DataError(f"{self.blocks}: must hold at least one block")
        return self.configuration(
            blocks=digest,
            sample=None if self.sample is None else _digest(self.sample),
            open_end=bool(self.open_end),
            smoothing=smoothing,
            seed=check.integer(self.seed, "seed", lower=0),
            time_limit=limit,
            shards=shards,
        )

    def shard_statistics(self, shard: int) -> OccupancyStatistics:
        """Return the statistics of a shard's blocks."""
        digest, size = self.config["blocks"], self.blocks_per_shard
        if Path(self.blocks).is_dir():
            return self._read_statistics(
                open_tables(self.blocks, digest).shard(shard, self.level, size)
            )
        statistics = _statistics(str(self.blocks), digest)
        return statistics.take(np.arange(len(statistics))[shard * size : (shard + 1) * size])

    def _readable(self, statistics: OccupancyStatistics) -> OccupancyStatistics:
        """Return the statistics; raise if households are requested and counts are not exact."""
        return statistics if self.sample is None else statistics.exact("a sample of households")

    def _read_statistics(self, tables: PublishedTables) -> OccupancyStatistics:
        """Return the statistics in tables; raise an error about the folder if one is missing."""
        try:
            return occupancy_statistics(
                tables,
                level=self.level,
                hud=self.hud,
                taken_as_true=self.taken_as_true,
                known_rule=self.known_rule,
            )
        except ArgumentError as error:
            if not str(error).startswith(("table ", "tables must have ")):
                raise
            raise DataError(f"{self.blocks}: {error}") from error  # of the folder, not of the call

    @functools.cached_property
    def _law(self) -> HouseholdLaw | None:
        """The law of households in the checked public sample, or None without one."""
        if self.sample is None:
            return None
        return HouseholdLaw.from_sample(read_sample(self.sample), smoothing=self.smoothing)

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """The parts of a shard: blocks, and households if there is a sample."""
        kinds = ("blocks",) if self._law is None else ("households", "blocks")
        return Layout("run of the occupancy attack", kinds=kinds, merged=kinds)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return a shard's blocks, and with a sample the mean households of violating blocks."""
        return self._parts(self.shard_statistics(shard), shard)

    def work(self, shard: int) -> float:
        """Return the number of blocks of a full shard."""
        return float(self.blocks_per_shard)

    def pilot(self, shard: int, amount: float) -> float:
        """Attack some blocks, evenly spread over the shard."""
        statistics = self.shard_statistics(shard)
        places = evenly(len(statistics), amount)
        self._parts(statistics.take(np.array(places)), shard)
        return self.work(shard) * len(places) / len(statistics)

    def _parts(self, statistics: OccupancyStatistics, shard: int) -> dict[str, pa.Table]:
        limit = self.config["time_limit"]
        detection = detect_occupancy(statistics, open_end=bool(self.open_end), time_limit=limit)
        blocks = detection.to_frame()
        if self._law is None:
            return {"blocks": arrow_table(blocks)}
        several = self.solutions > 1
        solutions = reconstruct_occupancy(
            statistics.take(detection.violation),
            self._law,
            rng=np.random.default_rng([self.seed, shard]),
            count=self.solutions,
            method="perturbed" if several else "exact",
            scale=0.1 if several else None,  # in nats
            error=self.error,
            time_limit=limit,
        )
        homes = solutions.to_frame().assign(
            households=solutions.households / solutions.solutions[solutions.block]
        )
        homes = homes.groupby(["block", *HOUSEHOLD], sort=True)["households"].sum().reset_index()
        order = ["block", "violation", "households"]
        homes = homes.sort_values(order, ascending=[True, False, False], kind="stable")
        homes = homes.astype(
            dict.fromkeys(HOUSEHOLD, np.int64) | {"block": "str", "violation": bool}
        )
        n = len(statistics)
        columns: dict[str, NDArray[Any]] = {
            "solutions": np.zeros(n, np.int64),
            "reconstruction": np.full(n, Status.NOT_RUN, dtype=object),
            "violations": np.full(n, np.nan),
        }
        results = (solutions.solutions, solutions.status, mean_violations(solutions))
        for column, values in zip(columns.values(), results, strict=True):
            column[detection.violation] = values
        blocks = blocks.assign(**columns)
        return {"households": arrow_table(homes), "blocks": arrow_table(blocks)}

    def report(self, folder: RunFolder, facts: Mapping[str, Any]) -> bytes:
        """Return the report."""
        return occupancy_page(self.config, folder, facts)

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return counts of blocks, and the first five conflicts."""
        statuses, inhabited = Counter[str](), 0
        conflicts: list[tuple[str, str]] = []
        for shard in folder.finished():
            blocks = folder.read_part(shard, "blocks").to_pandas()
            statuses.update(blocks["status"].tolist())
            inhabited += int(blocks["subsidised"].gt(0).sum())
            wrong = blocks[blocks["status"] == Status.INFEASIBLE].head(5 - len(conflicts))
            conflicts += list(zip(wrong["block"], wrong["conflict"], strict=True))
        return {
            "blocks": statuses.total(),
            "subsidised": inhabited,
            "statuses": dict(sorted(statuses.items())),
            "conflicts": tuple(conflicts),
            "taken_as_true": self.taken_as_true,
        }


def mean_violations(solutions: OccupancyReconstruction) -> FloatArray:
    """Return each block's mean number of violations over its solutions, NaN without any."""
    total = np.bincount(
        solutions.block, solutions.households * solutions.violation, minlength=solutions.geoids.size
    )
    mean: FloatArray = np.full(total.shape, np.nan)
    np.divide(total, solutions.solutions, out=mean, where=solutions.solutions > 0)
    return mean

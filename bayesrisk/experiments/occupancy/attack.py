"""The occupancy attack on published statistics as a study: blocks, and likely households.

Reads published statistics, and a public sample, and nothing else.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.limits import Count, Positive, Seed, choice
from bayesrisk._files.parquet import read_frame
from bayesrisk._files.text import shown
from bayesrisk._random import as_finished
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.experiments.by_place.parts import (
    check_reach,
    forget_index,
    level_of_parts,
    open_index,
    read_place,
)
from bayesrisk.experiments.occupancy.study import (
    SCHEMA,
    SYNTHETIC,
    OccupancyConfig,
    OccupancyResults,
    StudyPart,
    pooled_results,
    study_part,
    true_households,
)
from bayesrisk.experiments.reconstruction import forget_tables, open_tables, published
from bayesrisk.experiments.runs.engine import Outcome, Study, some_executor
from bayesrisk.experiments.runs.folder import (
    CONFIDENTIAL,
    Layout,
    RunFolder,
    RunSettings,
    arrow_table,
)
from bayesrisk.reconstruction import (
    HouseholdLaw,
    OccupancyDetection,
    OccupancyStatistics,
    detect_occupancy,
    occupancy_statistics,
    reconstruct_occupancy,
)
from bayesrisk.reconstruction.registry import Status
from bayesrisk.tables import PublishedTables, Records, Workload
from bayesrisk.tables.exchange import Partitions

_KIND = ["size", "race_ethnicity", "children", "bedrooms", "subsidised", "violation"]
#: How reconstructions may miss statistics.
ERRORS = ("none", "absolute", "squared")
_SHOWN = 5  # conflicts that a summary quotes
_SCALE = 0.1  # noise of the objectives of several solutions, in nats


@dataclass(frozen=True)
class OccupancyAttackConfig(RunSettings):
    """What a run does, and to which statistics.

    Attributes
    ----------
    blocks : str
        Digest of the input.
    sample : str or None
        Digest of the public sample; None for no reconstructions.
    level : str
        Level of published tables.
    hud : str
        How HUD's tables are read.
    open_end : bool
        Whether households of 7 people or more can be of any size, in detection.
    error : str
        How reconstructions may miss statistics: ``none``, ``absolute`` or ``squared``.
    solutions : int
        Reconstructions of a block.
    smoothing : float
        Households of every kind that are added to the sample.
    seed : int
        Of reconstructions.
    time_limit : float or None
        Seconds for a program of detection, and for the reconstructions of a block.
    blocks_per_shard : int
        Blocks of a shard.
    shards : int
        Number of shards.
    version : str
        Version of bayesrisk.
    taken_as_true : bool
        Whether counts of tables are taken as true, whether or not they are.
    """

    blocks: str
    sample: str | None
    level: str
    hud: str
    open_end: bool
    error: Annotated[str, choice(ERRORS)]
    solutions: Count
    smoothing: Positive
    seed: Seed
    time_limit: Positive | None
    blocks_per_shard: Count
    shards: Count
    version: str = __version__
    taken_as_true: bool = False


class OccupancyAttackSummary(NamedTuple):
    """What a run did.

    ``statuses`` counts blocks by status, ``conflicts`` has the first blocks that no households fit
    with the tables that contradict each other.
    """

    folder: str
    blocks: int
    shards: int
    computed: int
    resumed: int
    complete: bool
    statuses: dict[str, int]
    conflicts: tuple[tuple[str, str], ...]
    taken_as_true: bool


@dataclass(frozen=True)
class OccupancyAttackStudy(Study):
    """Which blocks of published statistics must hold a violation, for :func:`~bayesrisk.run`.

    A complete run has ``blocks.parquet`` (status, and with a sample the mean number of violations
    in reconstructions) and, with a sample, ``households.parquet``: kinds of households with their
    mean number in the reconstructions of a block, violations first.  Memory: the statistics in
    every worker, and one shard; of statistics by place, the part that the shard is in.

    Parameters
    ----------
    blocks : path-like
        Folder of tables of the workload ``household-occupancy`` or of a release, by place too; or a
        Parquet file of :meth:`OccupancyStatistics.to_frame`.
    sample : path-like, optional
        Parquet file of a public sample with ``size``, ``race_ethnicity``, ``children`` and perhaps
        ``weight``: also reconstruct the households of blocks with a violation.
    level, hud, taken_as_true : object
        As for :func:`~bayesrisk.reconstruction.occupancy_statistics`, for tables.
    open_end : bool, default True
        As for :func:`~bayesrisk.reconstruction.detect_occupancy`.
    error : {"none", "absolute", "squared"}, default "none"
        As for :func:`~bayesrisk.reconstruct_occupancy`; ``absolute`` or ``squared`` for noisy
        statistics.
    solutions : int, default 100
        Reconstructions of a block: the best one, or those of perturbed objectives.
    smoothing : float, default 0.5
        As for :meth:`HouseholdLaw.from_sample`.
    seed : int, default 1
        Of the perturbations, and of ties.
    time_limit : float, optional
        Seconds for a program of detection, and for the reconstructions of a block.
    blocks_per_shard : int, default 250
        Blocks of a shard; the perturbations depend on it.  Of tables by place at a level that is
        not their finest, a shard is of whole places of the level with about so many of the finest.

    Raises
    ------
    ArgumentError
        When it runs: if a setting is out of range, or counts of tables need not be true.
    DataError
        When it runs: if the input is damaged, or a table is missing.
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
    taken_as_true: bool = False

    @functools.cached_property
    def config(self) -> OccupancyAttackConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        check.integer(self.blocks_per_shard, "blocks_per_shard", lower=1)
        check.integer(self.solutions, "solutions", lower=1, upper=10**6)
        check.choice(self.error, "error", ERRORS)
        check.flag(self.taken_as_true, "taken_as_true")
        limit = self.time_limit
        if limit is not None:
            limit = check.scalar(limit, "time_limit", lower=0.0, bounds="(]")
        digest, shards = self._extent()
        if not shards:
            raise DataError(f"{self.blocks}: must hold at least one block")
        return OccupancyAttackConfig(
            digest,
            None if self.sample is None else _digest(self.sample),
            self.level,
            self.hud,
            bool(self.open_end),
            self.error,
            self.solutions,
            check.scalar(self.smoothing, "smoothing", lower=0.0, upper=1e6, bounds="(]"),
            check.integer(self.seed, "seed", lower=0),
            limit,
            self.blocks_per_shard,
            shards,
            taken_as_true=self.taken_as_true,
        )

    @property
    def _reading(self) -> tuple[str, str, bool]:
        """How tables are read."""
        return self.level, self.hud, self.taken_as_true

    @property
    def _by_place(self) -> bool:
        return Partitions.there(Path(self.blocks))

    def _extent(self) -> tuple[str, int]:
        """Return the digest of the statistics, and the number of shards."""
        if not self._by_place:
            digest = _digest(self.blocks)
            statistics = _statistics(str(self.blocks), digest, *self._reading)
            return digest, -(-len(statistics) // self.blocks_per_shard)
        source = open_tables(self.blocks)
        check.choice(self.level, "level", source.workload.levels)
        shards = len(source.starts(self.level, self.blocks_per_shard))
        if shards:  # whether all tables are there is said before a folder is made
            first = source.shard(0, self.level, self.blocks_per_shard)
            _of_tables(first, str(self.blocks), *self._reading)
        return source.digest, shards

    def _some(self, shard: int) -> OccupancyStatistics:
        """Return the statistics of the blocks of a shard."""
        config, size = self.config, self.config.blocks_per_shard
        if self._by_place:
            tables = open_tables(self.blocks, config.blocks).shard(shard, config.level, size)
            return _of_tables(tables, str(self.blocks), *self._reading)
        everything = _statistics(str(self.blocks), config.blocks, *self._reading)
        return everything.take(np.arange(len(everything))[shard * size : (shard + 1) * size])

    @functools.cached_property
    def _public(self) -> pd.DataFrame | None:
        """The public sample, checked."""
        return None if self.sample is None else _sample(str(self.sample), self.config)

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        """Parts of a shard: blocks, and with a sample households."""
        kinds = ("blocks",) if self._public is None else ("households", "blocks")
        return Layout("run of the occupancy attack", kinds=kinds, merged=kinds)

    def compute(self, shard: int) -> dict[str, Any]:
        """Return blocks, and with a sample households, of a shard."""
        config = self.config
        some = self._some(shard)
        found = detect_occupancy(some, open_end=config.open_end, time_limit=config.time_limit)
        frames: dict[str, Any] = {"blocks": found.to_frame()}
        if self._public is not None:
            frames |= _households(config, some, found, self._public, shard)
        return {kind: arrow_table(frame) for kind, frame in frames.items()}

    def summary(self, folder: RunFolder, outcome: Outcome) -> OccupancyAttackSummary:
        """Return what was done."""
        return _summary(folder, self.config, outcome)

    def close(self) -> None:
        """Forget the statistics."""
        _statistics.cache_clear()
        forget_tables()


def _digest(path: str | Path) -> str:
    """Return the digest of a file, or of the files of a folder."""
    source = Path(path)
    if source.is_dir():
        return _files.digest_folder(source)
    try:
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{source}: cannot be read: {error}") from error


@functools.lru_cache(maxsize=1)
def _statistics(
    path: str, digest: str, level: str, hud: str, taken_as_true: bool = False
) -> OccupancyStatistics:
    """Return the statistics, once for each process; refuse them when they have changed."""
    source = Path(path)
    if source.is_dir():
        tables = published(source)
        check.choice(level, "level", tables.workload.levels)
        found = _of_tables(tables, path, level, hud, taken_as_true)
    elif hud != "counts":
        raise ArgumentError(
            f"hud must be 'counts' for a file of statistics, which has intervals, got {shown(hud)}"
        )
    else:
        found = OccupancyStatistics.from_frame(read_frame(source), source=path)
    if _digest(source) != digest:
        raise DataError(f"{path}: must not change while it is read")
    return found


def _of_tables(
    tables: PublishedTables, path: str, level: str, hud: str, taken_as_true: bool
) -> OccupancyStatistics:
    """Return the statistics of tables; one that is missing is a fault of the folder."""
    try:
        return occupancy_statistics(tables, level=level, hud=hud, taken_as_true=taken_as_true)
    except ArgumentError as error:
        if not str(error).startswith(("table ", "tables must have ")):
            raise
        raise DataError(f"{path}: {error}") from error  # of the folder, not of the call


def _sample(path: str, config: OccupancyAttackConfig) -> pd.DataFrame:
    """Return the public sample, checked."""
    from bayesrisk.experiments.occupancy.report import read_sample

    frame = read_sample(path)
    HouseholdLaw.from_sample(frame, smoothing=config.smoothing)
    return frame


def _households(
    config: OccupancyAttackConfig,
    some: OccupancyStatistics,
    detection: OccupancyDetection,
    sample: pd.DataFrame,
    shard: int,
) -> dict[str, pd.DataFrame]:
    """Return blocks and households with what reconstructions of blocks with a violation say."""
    several = config.solutions > 1
    found = reconstruct_occupancy(
        some.take(detection.violation),
        HouseholdLaw.from_sample(sample, smoothing=config.smoothing),
        rng=np.random.default_rng([config.seed, shard]),
        count=config.solutions,
        method="perturbed" if several else "exact",
        scale=_SCALE if several else None,
        error=config.error,
        time_limit=config.time_limit,
    )
    homes = found.to_frame().assign(households=found.households / found.solutions[found.block])
    mean = homes.groupby(["block", *_KIND], sort=True)["households"].sum().reset_index()
    order = ["block", "violation", "households"]
    mean = mean.sort_values(order, ascending=[True, False, False], kind="stable")
    at = np.flatnonzero(detection.violation)
    breach = np.bincount(found.block, found.households * found.violation, minlength=at.size)
    solutions, violations = np.zeros(len(some), np.int64), np.full(len(some), np.nan)
    solutions[at] = found.solutions
    violations[at] = np.where(found.solutions > 0, breach / np.maximum(found.solutions, 1), np.nan)
    status = np.full(len(some), Status.NOT_RUN, dtype=object)
    status[at] = found.status
    blocks = detection.to_frame().assign(
        solutions=solutions, reconstruction=list(status), violations=violations
    )
    whole = dict.fromkeys(_KIND[:-1], np.int64)
    return {
        "blocks": blocks,
        "households": mean.astype({**whole, "block": "str", "violation": bool}),
    }


def _summary(
    store: RunFolder, config: OccupancyAttackConfig, outcome: Outcome
) -> OccupancyAttackSummary:
    statuses: Counter[str] = Counter()
    conflicts: list[tuple[str, str]] = []
    total = 0
    for shard in store.finished():
        blocks = store.read_part(shard, "blocks")
        total += blocks.num_rows
        status = blocks.column("status").to_pylist()
        statuses.update(status)
        rows = zip(
            blocks.column("block").to_pylist(),
            status,
            blocks.column("conflict").to_pylist(),
            strict=True,
        )
        conflicts += [
            (block, conflict) for block, what, conflict in rows if what == Status.INFEASIBLE
        ]
        conflicts = conflicts[:_SHOWN]
    return OccupancyAttackSummary(
        str(store.path),
        total,
        *outcome,
        dict(sorted(statuses.items())),
        tuple(conflicts),
        config.taken_as_true,
    )


# -----------------------------------------------------------------------------
# Households of a study by place: a part at a time, each protected and attacked by itself.


_INSTEAD = "make larger parts, or give all households in one file"


def check_protections(config: OccupancyConfig, folder: str | Path) -> None:
    """Refuse protections that need more than the households of a part.

    Raises
    ------
    ArgumentError
        If there is one.
    """
    workload = Workload.named(SCHEMA)
    level = level_of_parts(open_index(folder), workload)
    for name in config.protections:
        check_reach(config.mechanism(name), workload, level, whole=_INSTEAD)


def part_households(folder: str | Path, part: int, digest: str) -> tuple[str, Records]:
    """Return code and households of a part.

    Raises
    ------
    DataError
        If it is damaged, holds none, or others than when the study began.
    """
    code, data = read_place(folder, part, digest)
    if data.households is None:
        raise DataError(f"{folder}: part {code} must hold households, got persons only")
    return code, data.households


def all_truth(config: OccupancyConfig, seed: int, folder: str | Path) -> pd.DataFrame:
    """Return the households of the blocks that are looked at, of all parts in order.

    Raises
    ------
    DataError
        If there are no such blocks, or a part is damaged.
    """
    index = open_index(folder)
    parts = (part_households(folder, n, index.digest)[1] for n in range(len(index.codes)))
    truths = (true_households(config, seed, homes)[2] for homes in parts)
    found = [truth for truth in truths if len(truth)]
    if not found:
        raise DataError(f"{folder}: must hold subsidised households, got none")
    return pd.concat(found, ignore_index=True)


def joined_parts(parts: list[StudyPart]) -> StudyPart:
    """Return what one protection gives of all places, from what it gives of each.

    The rate of swaps is that of all households of the parts that have blocks to look at.
    """
    held = [part for part in parts if len(part.blocks)]
    if len(held) > 1:
        rates = [float(part.blocks["realised_rate"].iloc[0]) for part in held]
        homes = [int(part.blocks["protected"].iloc[0]) for part in held]
        rate = float(np.average(rates, weights=homes))
        held = [part._replace(blocks=part.blocks.assign(realised_rate=rate)) for part in held]
    blocks, rankings, variability = (
        pd.concat(frames, ignore_index=True) if len(held) > 1 else frames[0]
        for frames in zip(*held, strict=True)
    )
    return StudyPart(blocks.drop(columns="protected"), rankings, variability)


# -----------------------------------------------------------------------------
# The study of occupancy violations, part by part: in memory, or in a folder to go on with.


_STUDY = Layout(
    "study of occupancy",
    kinds=("rankings", "variability", "blocks"),
    # They are found in tables as exact as the confidential records, for comparison.
    parts=f"{CONFIDENTIAL}/parts",
)


@dataclass(frozen=True)
class OccupancySummary:
    """What a run of a study did.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Parts in all, those computed by this run, and those found finished.
    complete : bool
        Whether every part is there.
    results : OccupancyResults or None
        Frames of results of a complete run.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    results: OccupancyResults | None


@dataclass(frozen=True, eq=False)
class OccupancyStudy(Study):
    """The attack on several protections of the same households, judged; for :func:`~bayesrisk.run`.

    In a folder, what says of a single block whether it holds a violation, and what adversaries find
    in tables without protection, is below ``confidential/``, which only its owner may read.

    Parameters
    ----------
    settings : OccupancyConfig
        What to do.
    households : Records or path-like, optional
        Confidential households of schema ``household-occupancy`` (or ``household-dhc`` with
        columns ``children``, ``bedrooms`` and ``subsidised``) instead of synthetic ones; or a
        folder of microdata by place with them.
    sample : pandas.DataFrame, optional
        Public sample of households, for :meth:`HouseholdLaw.from_sample`; a synthetic one by
        default.

    Raises
    ------
    ArgumentError
        When it runs: if a protection needs more than the households of a part.
    DataError
        When it runs: if households lack a column or none is subsidised, or a folder is damaged.

    Notes
    -----
    Of a folder by place a shard is one protection of one part, which is protected and attacked by
    itself, with random numbers that its code chooses; the rate of swaps is that of each part.  What
    tables say for certain is the same as of all households at once.  Memory: one part in every
    worker; and to judge them all, the households of blocks with subsidised ones, and what was found
    there.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), section 4.

    Examples
    --------
    >>> config = OccupancyConfig(seeds=(1,), blocks=10, protections=("none",), solutions=2,
    ...                          sample_blocks=200)
    >>> results = OccupancyStudy(config).in_memory()
    >>> results.table[["protection", "blocks"]].values.tolist()[0]
    ['none', 10]
    """

    settings: OccupancyConfig
    _: KW_ONLY
    households: Records | str | Path | None = None
    sample: pd.DataFrame | None = None

    layout = _STUDY

    def __post_init__(self) -> None:
        """Check the types."""
        given = self.settings
        if not isinstance(given, OccupancyConfig):
            raise ArgumentTypeError(
                f"settings must be an OccupancyConfig, got {type(given).__name__}"
            )
        if not isinstance(self.households, Records | str | Path | None):
            raise ArgumentTypeError(
                "households must be Records or a folder of microdata by place, got "
                f"{type(self.households).__name__}"
            )
        if self.sample is not None:
            check.frame(self.sample, "sample", ("size", "race_ethnicity", "children"))

    @functools.cached_property
    def config(self) -> OccupancyConfig:
        """The settings with what was given: other households are another study."""
        config = _complete(self.settings, self.households, self.sample)
        if isinstance(self.households, str | Path):
            check_protections(config, self.households)
            seed = config.seeds[0]
            self._truths[seed] = all_truth(config, seed, self.households)
            return config
        for seed in config.seeds:
            self._truths[seed] = truth = true_households(config, seed, self.households)[2]
            if truth.empty:
                raise DataError("households: must hold subsidised ones, got none")
        return config

    @functools.cached_property
    def _truths(self) -> dict[int, pd.DataFrame]:
        """Households of the blocks that are looked at, by population: not for workers."""
        return {}

    @functools.cached_property
    def _pools(self) -> dict[str, OccupancyResults]:
        """What was made into files, by folder, for the summary: not for workers."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker is sent."""
        own = {"_truths", "_pools"}
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return what one protection of one population, or of one place, gives."""
        config, homes, place = self.config, self.households, ""
        task, number = divmod(shard, config.parts)
        if isinstance(homes, str | Path):
            place, homes = part_households(homes, number, config.households)
        part = study_part(config, *config.tasks[task], homes, self.sample, place=place)
        return {kind: arrow_table(getattr(part, kind)) for kind in _STUDY.kinds}

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the frames as files."""
        self._pools[str(folder.path)] = pooled = self._pooled(folder)
        return pooled.files()

    def summary(self, folder: RunFolder, outcome: Outcome) -> OccupancySummary:
        """Return what was done."""
        if not outcome.complete:
            return OccupancySummary(str(folder.path), *outcome, None)
        results = self._pools.pop(str(folder.path), None)
        return OccupancySummary(str(folder.path), *outcome, results or self._pooled(folder))

    def _pooled(self, folder: RunFolder) -> OccupancyResults:
        parts = (
            _part({kind: folder.read_part(shard, kind) for kind in folder.layout.kinds})
            for shard in range(self.config.shards)
        )
        return self._judged(parts)

    def _judged(self, parts: Iterator[StudyPart]) -> OccupancyResults:
        """Return the results, from what every shard gives in order."""
        config = self.config
        tasks = [joined_parts([next(parts) for _ in range(config.parts)]) for _ in config.tasks]
        return pooled_results(config, tasks, self._truths)

    def close(self) -> None:
        """Forget the index of households by place."""
        forget_index()

    def in_memory(
        self,
        *,
        workers: int = 1,
        executor: str | Executor | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> OccupancyResults:
        """Return the results without a folder: nothing is written, nothing can be resumed.

        Parameters
        ----------
        workers, executor, progress : object
            As for :func:`~bayesrisk.run`.

        Returns
        -------
        OccupancyResults
            Frames of results.

        Raises
        ------
        DataError
            If households lack a column or none is subsidised.
        """
        check.function(progress, "progress")
        with some_executor(executor, workers) as pool:
            shards = range(self.config.shards)
            found: dict[int, StudyPart] = {}
            for shard, tables in as_finished(pool, functools.partial(_numbered, self), shards):
                found[shard] = _part(tables)
                if progress is not None:
                    progress(len(found), len(shards))
        results = self._judged(found[shard] for shard in shards)
        self.close()
        return results


def _numbered(study: OccupancyStudy, shard: int) -> tuple[int, dict[str, pa.Table]]:
    """Return a shard with its number: what a worker does."""
    return shard, study.compute(shard)


def _complete(
    config: OccupancyConfig,
    households: Records | str | Path | None,
    sample: pd.DataFrame | None,
) -> OccupancyConfig:
    """Return the settings with what was given: another file is another study."""
    seeds = config.seeds if households is None else config.seeds[:1]
    parts = 1
    if isinstance(households, str | Path):
        index = open_index(households)
        given, parts = index.digest, len(index.codes)
    else:
        given = SYNTHETIC if households is None else _frame_digest(households.to_frame())
    public = SYNTHETIC if sample is None else _frame_digest(sample)
    return replace(config, seeds=seeds, households=given, sample=public, parts=parts)


def _frame_digest(frame: pd.DataFrame) -> str:
    """Return a digest of the rows of a frame in their order."""
    rows = pd.util.hash_pandas_object(frame, index=False).to_numpy(np.uint64)
    names = ",".join(map(str, frame.columns)).encode()
    return hashlib.sha256(names + rows.astype("<u8").tobytes()).hexdigest()


def _part(tables: dict[str, pa.Table]) -> StudyPart:
    """Return a part as frames, texts as text and missing whole numbers as missing."""
    frames = {}
    for kind in _STUDY.kinds:
        frame = tables[kind].to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
        whole = [n for n in frame if frame[n].dtype == "Int64" and not frame[n].hasnans]
        texts = [n for n in frame if pd.api.types.is_string_dtype(frame[n])]
        frames[kind] = frame.astype(
            {**dict.fromkeys(whole, np.int64), **dict.fromkeys(texts, "str")}
        )
    return StudyPart(**frames)

"""The study of occupancy violations, part by part: in memory, or in a folder to go on with."""

import functools
import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._tasks import as_finished
from bayesrisk.exceptions import ArgumentTypeError, DataError
from bayesrisk.experiments.by_place.records import forget_index, open_index
from bayesrisk.experiments.occupancy.by_place import (
    all_truth,
    check_protections,
    joined_parts,
    part_households,
)
from bayesrisk.experiments.occupancy.config import SYNTHETIC, OccupancyConfig
from bayesrisk.experiments.occupancy.pooled import OccupancyResults, pooled_results
from bayesrisk.experiments.occupancy.study import StudyPart, study_part, true_households
from bayesrisk.experiments.runs.engine import some_executor
from bayesrisk.experiments.runs.folder import PartFolder, arrow_table
from bayesrisk.experiments.runs.settled import CONFIDENTIAL
from bayesrisk.experiments.runs.study import Outcome, Study
from bayesrisk.tables import Records


class OccupancyFolder(PartFolder):
    """The folder of one study; blocks are written last and stand for a whole part."""

    what: ClassVar[str] = "study of occupancy"
    kinds = ("rankings", "variability", "blocks")
    # They are found in tables as exact as the confidential records, for comparison.
    parts: ClassVar[str] = f"{CONFIDENTIAL}/parts"


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
class OccupancyStudy(Study[OccupancySummary]):
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

    def open(self, folder: str | Path) -> OccupancyFolder:
        """Return the folder of a study."""
        return OccupancyFolder(folder)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return what one protection of one population, or of one place, gives."""
        config, homes, place = self.config, self.households, ""
        task, number = divmod(shard, config.parts)
        if isinstance(homes, str | Path):
            place, homes = part_households(homes, number, config.households)
        part = study_part(config, *config.tasks[task], homes, self.sample, place=place)
        return {kind: arrow_table(getattr(part, kind)) for kind in OccupancyFolder.kinds}

    def results(self, folder: PartFolder) -> dict[str, bytes]:
        """Return the frames as files."""
        self._pools[str(folder.path)] = pooled = self._pooled(folder)
        return pooled.files()

    def summary(self, folder: PartFolder, outcome: Outcome) -> OccupancySummary:
        """Return what was done."""
        if not outcome.complete:
            return OccupancySummary(str(folder.path), *outcome, None)
        results = self._pools.pop(str(folder.path), None)
        return OccupancySummary(str(folder.path), *outcome, results or self._pooled(folder))

    def _pooled(self, folder: PartFolder) -> OccupancyResults:
        parts = (
            _part({kind: folder.read_part(shard, kind) for kind in folder.kinds})
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
        given = SYNTHETIC if households is None else _digest(households.to_frame())
    public = SYNTHETIC if sample is None else _digest(sample)
    return replace(config, seeds=seeds, households=given, sample=public, parts=parts)


def _digest(frame: pd.DataFrame) -> str:
    """Return a digest of the rows of a frame in their order."""
    rows = pd.util.hash_pandas_object(frame, index=False).to_numpy(np.uint64)
    names = ",".join(map(str, frame.columns)).encode()
    return hashlib.sha256(names + rows.astype("<u8").tobytes()).hexdigest()


def _part(tables: dict[str, pa.Table]) -> StudyPart:
    """Return a part as frames, texts as text and missing whole numbers as missing."""
    frames = {}
    for kind in OccupancyFolder.kinds:
        frame = tables[kind].to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
        whole = [n for n in frame if frame[n].dtype == "Int64" and not frame[n].hasnans]
        texts = [n for n in frame if pd.api.types.is_string_dtype(frame[n])]
        frames[kind] = frame.astype(
            {**dict.fromkeys(whole, np.int64), **dict.fromkeys(texts, "str")}
        )
    return StudyPart(**frames)

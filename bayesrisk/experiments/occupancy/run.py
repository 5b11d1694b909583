"""The study of occupancy violations, part by part: in memory, or in a folder to go on with."""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.experiments.occupancy.config import SYNTHETIC, OccupancyConfig
from bayesrisk.experiments.occupancy.pooled import OccupancyStudy, pooled_study
from bayesrisk.experiments.occupancy.study import StudyPart, study_part, true_households
from bayesrisk.experiments.runs.executors import make_executor
from bayesrisk.experiments.runs.folder import CONFIDENTIAL, PartFolder, arrow_table
from bayesrisk.interfaces import Executor
from bayesrisk.tables import Records

__all__ = ["OccupancyStudy", "run_occupancy"]


class OccupancyFolder(PartFolder):
    """The folder of one study; blocks are written last and stand for a whole part."""

    what: ClassVar[str] = "study of occupancy"
    kinds = ("rankings", "variability", "blocks")
    # They are found in tables as exact as the confidential records, for comparison.
    parts: ClassVar[str] = f"{CONFIDENTIAL}/parts"


def run_occupancy(
    config: OccupancyConfig,
    *,
    households: Records | None = None,
    sample: pd.DataFrame | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> OccupancyStudy:
    """Run the attack on several protections of the same households, and judge it.

    Parameters
    ----------
    config : OccupancyConfig
        What to do.
    households : Records, optional
        Confidential households of schema ``household-occupancy`` (or ``household-dhc`` with
        columns ``children``, ``bedrooms`` and ``subsidised``) instead of synthetic ones.
    sample : pandas.DataFrame, optional
        Public sample of households, for :func:`household_law`; a synthetic one by default.
    folder : path-like, optional
        Output folder, new or empty; or, with ``resume``, one that holds a part of this study.  An
        interrupt leaves every finished part there.  What says of a single block whether it holds
        a violation, and what adversaries find in tables without protection, is below
        ``confidential/``, which only its owner may read.  None: in memory only.
    resume : bool, default False
        Whether finished parts in the folder are kept and the rest computed.
    workers : int, default 1
        Processes; the results do not depend on their number.
    progress : callable, optional
        Called with the parts done and all parts.

    Returns
    -------
    OccupancyStudy
        Frames of results.

    Raises
    ------
    ArgumentError
        If a setting is out of range.
    ArgumentTypeError
        If an argument has the wrong type.
    DataError
        If households lack a column or none is subsidised.
    OutputError
        If the folder belongs to another study, or holds parts and ``resume`` is false; nothing is
        changed then.
    PartFileError
        If a part in the folder is truncated, altered or foreign; nothing is changed then.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), section 4.

    Examples
    --------
    >>> config = OccupancyConfig(seeds=(1,), blocks=10, protections=("none",), solutions=2,
    ...                          sample_blocks=200)
    >>> study = run_occupancy(config)
    >>> study.table[["protection", "blocks"]].values.tolist()[0]
    ['none', 10]
    """
    if not isinstance(config, OccupancyConfig):
        raise ArgumentTypeError(f"config must be an OccupancyConfig, got {type(config).__name__}")
    if households is not None and not isinstance(households, Records):
        raise ArgumentTypeError(f"households must be Records, got {type(households).__name__}")
    if sample is not None:
        check.frame(sample, "sample", ("size", "race_ethnicity", "children"))
    check.flag(resume, "resume")
    check.function(progress, "progress")
    check.integer(workers, "workers", lower=1, upper=1024)
    config = _complete(config, households, sample)
    truths = {seed: true_households(config, seed, households)[2] for seed in config.seeds}
    runner = make_executor("serial" if workers == 1 else "processes", workers)
    work = functools.partial(_work, config, households, sample)
    if folder is None:
        return pooled_study(config, _in_memory(config, runner, work, progress), truths)
    store = OccupancyFolder(folder)
    return _in_folder(config, runner, work, store, truths, resume, progress)


def _complete(
    config: OccupancyConfig, households: Records | None, sample: pd.DataFrame | None
) -> OccupancyConfig:
    """Return the settings with what was given: another file is another study."""
    seeds = config.seeds if households is None else config.seeds[:1]
    given = SYNTHETIC if households is None else _digest(households.to_frame())
    public = SYNTHETIC if sample is None else _digest(sample)
    return replace(config, seeds=seeds, households=given, sample=public)


def _digest(frame: pd.DataFrame) -> str:
    """Return a digest of the rows of a frame in their order."""
    rows = pd.util.hash_pandas_object(frame, index=False).to_numpy(np.uint64)
    names = ",".join(map(str, frame.columns)).encode()
    return hashlib.sha256(names + rows.astype("<u8").tobytes()).hexdigest()


def _in_memory(
    config: OccupancyConfig,
    runner: Executor,
    work: Callable[[int], tuple[int, dict[str, pa.Table]]],
    progress: Callable[[int, int], None] | None,
) -> list[StudyPart]:
    found: dict[int, StudyPart] = {}
    for shard, tables in runner.run(work, range(config.shards)):
        found[shard] = _part(tables)
        if progress is not None:
            progress(len(found), config.shards)
    return [found[shard] for shard in range(config.shards)]


def _in_folder(
    config: OccupancyConfig,
    runner: Executor,
    work: Callable[[int], tuple[int, dict[str, pa.Table]]],
    store: OccupancyFolder,
    truths: dict[int, pd.DataFrame],
    resume: bool,
    progress: Callable[[int, int], None] | None,
) -> OccupancyStudy:
    shards = range(config.shards)
    done = store.prepare(config, shards, resume=resume)
    todo = [shard for shard in shards if shard not in done]
    made: list[OccupancyStudy] = []

    def results() -> dict[str, bytes]:
        parts = [_part({k: store.read_part(shard, k) for k in store.kinds}) for shard in shards]
        made.append(pooled_study(config, parts, truths))
        return made[0].files()

    task = functools.partial(_write, store, config, work)
    store.run(config, task, runner, todo, progress=progress, results=results)
    return made[0]


def _work(
    config: OccupancyConfig, households: Records | None, sample: pd.DataFrame | None, shard: int
) -> tuple[int, dict[str, pa.Table]]:
    """Return the number and the tables of a part: what a worker does."""
    part = study_part(config, *config.tasks[shard], households, sample)
    return shard, {kind: arrow_table(getattr(part, kind)) for kind in OccupancyFolder.kinds}


def _write(
    store: OccupancyFolder,
    config: OccupancyConfig,
    work: Callable[[int], tuple[int, dict[str, pa.Table]]],
    shard: int,
) -> int:
    store.write_parts(config, *work(shard))
    return shard


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

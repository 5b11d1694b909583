"""Run a sweep: shard by shard, resumable, the same bytes for any number of workers."""

import functools
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pyarrow import csv as pa_csv

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.runs.executors import make_executor
from bayesrisk.experiments.sweep.config import SweepConfig
from bayesrisk.experiments.sweep.folder import SweepFolder
from bayesrisk.experiments.sweep.shard import compute_shard

__all__ = ["SweepSummary", "read_results", "run_sweep"]


@displayed
@dataclass(frozen=True)
class SweepSummary:
    """What a run of a sweep did.

    Attributes
    ----------
    folder : str
        The output folder.
    config : str
        Digest of the configuration.
    shards, computed, resumed : int
        Shards of the sweep, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there (with ``shard`` given, others may be missing).
    rows : int
        Rows of the results of a complete sweep; else 0.
    """

    folder: str
    config: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    rows: int


def _work(folder: str, config: SweepConfig, shard: int) -> int:
    """Compute one shard and write its part: what a worker does."""
    SweepFolder(folder).write_parts(config, shard, {"part": compute_shard(config, shard)})
    return shard


def run_sweep(
    config: SweepConfig,
    folder: str | Path,
    *,
    workers: int = 1,
    resume: bool = False,
    shard: tuple[int, int] = (1, 1),
    executor: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SweepSummary:
    """Run a sweep into a folder.

    Parameters
    ----------
    config : SweepConfig
        What to run; see :func:`load_config`.
    folder : path-like
        Output folder, new or empty; or, with ``resume``, one that holds a part of this sweep.
    workers : int, default 1
        Worker processes, in [1, 1024]; the results do not depend on it.
    resume : bool, default False
        Whether finished shards in the folder are kept and the rest computed.
    shard : tuple of int, default (1, 1)
        ``(i, n)``: run only every n-th shard, starting with the i-th, 1 <= i <= n.  Several
        machines may share a folder: they run (1, n), ..., (n, n), in any order or at once.
    executor : str, optional
        ``"serial"``, ``"processes"``, ``"dask"`` or a plug-in; by default serial for one worker
        and processes for more.
    progress : callable, optional
        Called with the finished and the total number of shards of this run, after each.

    Returns
    -------
    SweepSummary
        What was done; ``results.csv`` is written once all shards are there.

    Raises
    ------
    ArgumentError
        If ``workers``, ``shard`` or ``executor`` is out of range.
    OutputError
        If the folder belongs to another configuration, or holds shards and ``resume`` is false;
        nothing is changed then.
    PartFileError
        If a part in the folder is truncated, altered or foreign; nothing is changed then.

    Notes
    -----
    Memory: a shard's rows in each worker, and all rows (at most 2**24) at the end.  An interrupt
    keeps every finished shard.
    """
    check.integer(workers, "workers", lower=1, upper=1024)
    part, parts = _share(shard)
    runner = make_executor(executor or ("serial" if workers == 1 else "processes"), workers)
    store = SweepFolder(folder)
    mine = range(part - 1, config.shards, parts)
    done = store.prepare(config, mine, resume=resume)
    todo = [number for number in mine if number not in done]
    task = functools.partial(_work, str(store.path), config)
    rows = 0

    def results() -> dict[str, bytes]:
        nonlocal rows
        table = store.read(config)
        rows = table.num_rows
        buffer = io.BytesIO()
        pa_csv.write_csv(table, buffer)
        return {"results.csv": buffer.getvalue()}

    complete = store.run(config, task, runner, todo, progress=progress, results=results)
    return SweepSummary(
        folder=str(store.path),
        config=config.digest,
        shards=config.shards,
        computed=len(todo),
        resumed=len(mine) - len(todo),
        complete=complete,
        rows=rows,
    )


def _share(shard: tuple[int, int]) -> tuple[int, int]:
    if not (isinstance(shard, tuple) and len(shard) == 2):
        raise ArgumentError(f"shard must be a pair (i, n), got {shown(shard)}")
    parts = check.integer(shard[1], "shard[1]", lower=1, upper=10**6)
    return check.integer(shard[0], "shard[0]", lower=1, upper=parts), parts


def read_results(folder: str | Path) -> tuple[SweepConfig, pd.DataFrame]:
    """Return the configuration and the results of a finished sweep.

    Parameters
    ----------
    folder : path-like
        Its folder.

    Returns
    -------
    config : SweepConfig
        The resolved configuration.
    results : pandas.DataFrame
        One row for each quantity at each point; ``standard_error`` is missing where the value
        is exact.

    Raises
    ------
    OutputError
        If the folder holds no sweep.
    PartFileError
        If a part is missing, truncated or foreign.
    """
    store = SweepFolder(folder)
    config = store.load_config()
    frame = store.read(config).to_pandas()
    for column in ("levels", "group_count", "n_siblings", "known_count", "noisy_count"):
        frame[column] = frame[column].astype("Int64")
    texts = ("rho_name", "prior_text", "conditionals", "target")
    return config, frame.fillna(dict.fromkeys(texts, ""))

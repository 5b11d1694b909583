"""Studies, computations in shards, and the one function that runs them.

A run is resumable, and its bytes do not depend on the executor.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed, short
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.experiments.runs.executors import make_executor
from bayesrisk.experiments.runs.folder import Layout, RunFolder


@displayed
@dataclass(frozen=True)
class RunSummary:
    """The shards that a run computed, and the facts that a study found in all that are finished.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    facts : dict
        Results of the study by name, which are attributes, too.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return a fact."""
        facts = self.__dict__.get("facts", {})
        if name not in facts:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)
        return facts[name]

    def to_dict(self) -> dict[str, Any]:
        """Return everything in one dictionary, the facts beside the rest."""
        own = {name: value for name, value in self.__dict__.items() if name != "facts"}
        return {**own, **self.facts}

    def _answer(self) -> list[str]:
        done = f"{self.computed + self.resumed} of {self.shards} shards are done, in {self.folder}"
        if sentences := self.facts.get("brief"):  # the answer of a study that says one
            return [*sentences, done]
        return [done, *(f"{name}: {short(value)}" for name, value in self.facts.items())]


class Study(ABC):
    """A computation in shards, for :func:`run`: everything but where and how it runs.

    A study is a frozen dataclass whose fields are its configuration.  It is sent to workers, so it
    holds settings and paths rather than open files.  The parts of a shard depend on the study and
    the number of the shard, on nothing else.
    """

    #: Files of a run: a class attribute, or a property where it depends on the fields.
    layout: Layout

    @property
    @abstractmethod
    def config(self) -> Mapping[str, Any]:
        """The checked configuration as plain values: fields, digests of inputs, ``shards``.

        It is written into the folder and tells runs apart.
        """

    @property
    def shards(self) -> int:
        """Number of shards."""
        return int(self.config["shards"])

    @property
    def stages(self) -> Sequence[range]:
        """Shards in stages, one after the other: a later one may read the parts of earlier ones."""
        return (range(self.shards),)

    def open(self, folder: str | Path) -> RunFolder:
        """Return the folder of a run of this study."""
        return RunFolder(folder, self.config, self.layout)

    @abstractmethod
    def compute(self, shard: int) -> Mapping[str, Any]:
        """Return the parts of a shard, tables of Arrow by kind."""

    def compute_after(self, shard: int, folder: RunFolder) -> Mapping[str, Any]:
        """Return the parts of a shard, where a folder holds those of all earlier stages."""
        return self.compute(shard)

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return files of a complete run, by name, besides those of merged parts."""
        return {}

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return what the finished shards say, for the summary; results are written before."""
        return {}

    def close(self) -> None:  # noqa: B027 - most keep nothing
        """Forget what this process keeps between shards."""


def run(
    study: Study,
    folder: str | Path,
    *,
    workers: int = 1,
    executor: str | Executor | None = None,
    shard: tuple[int, int] | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> RunSummary:
    """Run a study into a folder.

    Parameters
    ----------
    study : Study
        The computation: :class:`SweepStudy`, :class:`ReconstructionStudy`, :class:`ClaimsStudy`,
        :class:`OccupancyStudy`, :class:`OccupancyAttackStudy`, or your own.
    folder : path-like
        Output folder, new or empty; or, with ``resume``, one that holds a part of this study.
    workers : int, default 1
        Worker processes, in [1, 1024]; the results do not depend on it.
    executor : str or concurrent.futures.Executor, optional
        ``"serial"``, ``"processes"``, ``"dask"`` or a plug-in; or any executor of your own, which
        stays open and decides itself how many workers it has.  By default serial for one worker
        and processes for more.
    shard : tuple of int, optional
        ``(i, n)``: compute only every n-th shard, starting with the i-th, 1 <= i <= n.  Several
        machines may share a folder: they run (1, n), ..., (n, n), in any order or at once, and
        the last of them makes the results.  A study in stages stops where another machine's share
        of an earlier stage is not there yet; run it again with ``resume``.
    resume : bool, default False
        Whether finished shards in the folder are kept and the rest computed.
    progress : callable, optional
        Called with the finished and the total number of shards of this run, after each.

    Returns
    -------
    RunSummary
        The shards that were computed and the study's facts; its ``complete`` says whether every
        shard is there.

    Raises
    ------
    DataError
        If the data that the study reads are damaged.
    OutputError
        If the folder belongs to another configuration, or holds shards and ``resume`` is false;
        nothing is changed then.
    PartFileError
        If a part in the folder is truncated, altered or foreign; nothing is changed then.
    ShardError
        If shards failed: they are set aside, each with its error, and the others are finished.
        Where no shard was ever finished, the error of the first is raised as it is.
    WorkerError
        If worker processes cannot begin, or the scheduler of a cluster ended.  A worker that dies
        is replaced; the shard that three of them died of is set aside.

    Notes
    -----
    Memory: one shard, and what the study reads, in every worker.  An interrupt keeps every
    finished shard, and so does the end of workers, of a scheduler, or of the room on a disk;
    ``resume`` goes on with what is missing, shards that were set aside among it.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.experiments import run
    >>> from bayesrisk.experiments.sweep.document import parse_config
    >>> study = parse_config({
    ...     "quantities": ["marginal_risk"], "grid": {"rho": [0.1, 1.0], "prior": [0.1]},
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run(study, folder)
    >>> summary.complete, summary.rows
    (True, 2)
    """
    if not isinstance(study, Study):
        raise ArgumentTypeError(f"study must be a Study, got {type(study).__name__}")
    check.flag(resume, "resume")
    check.function(progress, "progress")
    part, parts = _share(shard)
    with some_executor(executor, workers) as pool:
        try:
            store = study.open(folder)
            mine = range(part - 1, store.shards, parts)
            done = store.prepare(mine, resume=resume)
            todo = [number for number in mine if number not in done]
            complete = store.run(
                functools.partial(_work, study, str(store.path)),
                pool,
                todo,
                stages=study.stages,
                progress=progress,
                results=lambda: study.results(store),
            )
            left = set() if complete else set(store.missing()).intersection(todo)
            computed = len(todo) - len(left)
            facts = study.facts(store, complete=complete)
            resumed = len(mine) - len(todo)
            return RunSummary(str(store.path), store.shards, computed, resumed, complete, facts)
        finally:
            study.close()


def _work(study: Study, folder: str, shard: int) -> int:
    """Compute one shard and write its parts: what a worker does.

    A scheduler that lost a worker may ask again for what that one had finished: it is there.
    """
    store = study.open(folder)
    if not store.has(shard):
        store.write_parts(shard, study.compute_after(shard, store))
    return shard


@contextmanager
def some_executor(executor: str | Executor | None, workers: int) -> Iterator[Executor]:
    """Provide the executor that was asked for; one of our own is shut down at the end."""
    check.integer(workers, "workers", lower=1, upper=1024)
    if isinstance(executor, Executor):
        yield executor
        return
    default = "serial" if workers == 1 else "processes"
    pool = make_executor(default if executor is None else executor, workers)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _share(shard: tuple[int, int] | None) -> tuple[int, int]:
    if shard is None:
        return 1, 1
    if not (isinstance(shard, tuple) and len(shard) == 2):
        raise ArgumentError(f"shard must be a pair (i, n), got {shown(shard)}")
    parts = check.integer(shard[1], "shard[1]", lower=1, upper=10**6)
    return check.integer(shard[0], "shard[0]", lower=1, upper=parts), parts

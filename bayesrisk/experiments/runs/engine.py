"""The one engine of long runs: shard by shard, resumable, the same bytes for any executor."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from bayesrisk import _validation as check
from bayesrisk._files.limits import Bound, refuse
from bayesrisk._files.text import shown
from bayesrisk.accounting import exact_number
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.experiments.runs.executors import make_executor
from bayesrisk.experiments.runs.folder import PartFolder
from bayesrisk.experiments.runs.parts import RunConfig

# -----------------------------------------------------------------------------
# What a study is: a configuration, shards that are computed one by one, and what they come to.


S_co = TypeVar("S_co", covariant=True)


class Outcome(NamedTuple):
    """What a run did: shards in all, computed, found finished; and whether every one is there."""

    shards: int
    computed: int
    resumed: int
    complete: bool


class Study(ABC, Generic[S_co]):
    """A computation in shards, for :func:`run`: everything but where and how it runs.

    A study is sent to workers, so it holds settings and paths rather than open files.  What a
    shard comes to depends on the study and the number of the shard, on nothing else.
    """

    #: Kinds of parts that a complete run has in one file each.
    merged: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def config(self) -> RunConfig:
        """The checked configuration, the same for every run of this study."""

    @abstractmethod
    def open(self, folder: str | Path) -> PartFolder:
        """Return the folder of this kind of study at a path."""

    @abstractmethod
    def compute(self, shard: int) -> Mapping[str, Any]:
        """Return the parts of a shard, tables of Arrow: what a worker does.

        A folder of another kind may take other things too, which its ``write_parts`` knows.
        """

    @property
    def stages(self) -> Sequence[range]:
        """Shards in stages, one after the other: a later one may read what earlier ones found."""
        return (range(self.config.shards),)

    def compute_after(self, shard: int, folder: PartFolder) -> Mapping[str, Any]:
        """Return the parts of a shard, where a folder holds those of all earlier stages."""
        return self.compute(shard)

    def results(self, folder: PartFolder) -> Mapping[str, bytes]:
        """Return further files of a complete run, by name."""
        return {}

    @abstractmethod
    def summary(self, folder: PartFolder, outcome: Outcome) -> S_co:
        """Return what a run did and what the folder holds."""

    def close(self) -> None:
        """Forget what this process keeps between shards."""


# -----------------------------------------------------------------------------
# The bound of a number that may be written as a fraction.


def number(low: float, high: float, *, open_: bool = False, **told: Any) -> Bound:
    """Return the bound of a number or fraction, which is read exactly."""
    brackets = "()" if open_ else "[]"
    words = f"a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}"

    def check(value: Any) -> Fraction:
        try:
            exact = exact_number(value)
        except ArgumentError:
            raise refuse(words, **told) from None
        if not (low < exact < high if open_ else low <= exact <= high):
            raise refuse(words, **told)
        return exact

    ends = ("exclusiveMinimum", "exclusiveMaximum") if open_ else ("minimum", "maximum")
    drawn = [{"type": "number", ends[0]: low, ends[1]: high}, {"type": "string"}]
    return Bound(words, check, {"anyOf": drawn})


# -----------------------------------------------------------------------------


S = TypeVar("S")


def run(
    study: Study[S],
    folder: str | Path,
    *,
    workers: int = 1,
    executor: str | Executor | None = None,
    shard: tuple[int, int] | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> S:
    """Run a study into a folder.

    Parameters
    ----------
    study : Study
        What to compute: :class:`SweepStudy`, :class:`ReconstructionStudy`, :class:`ClaimsStudy`,
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
    object
        The study's summary of what was done; its ``complete`` says whether every shard is there.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or the study cannot be run as it is.
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
    >>> from bayesrisk.experiments import SweepStudy, parse_config, run
    >>> config = parse_config({
    ...     "quantities": ["marginal_risk"], "grid": {"rho": [0.1, 1.0], "prior": [0.1]},
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run(SweepStudy(config), folder)
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
            config = study.config
            store = study.open(folder)
            mine = range(part - 1, config.shards, parts)
            done = store.prepare(config, mine, resume=resume)
            todo = [number for number in mine if number not in done]
            complete = store.run(
                config,
                functools.partial(_work, study, str(store.path)),
                pool,
                todo,
                stages=study.stages,
                progress=progress,
                merged=study.merged,
                results=lambda: study.results(store),
            )
            left = set() if complete else set(store.missing(config)).intersection(todo)
            computed = len(todo) - len(left)
            outcome = Outcome(config.shards, computed, len(mine) - len(todo), complete)
            return study.summary(store, outcome)
        finally:
            study.close()


def _work(study: Study[object], folder: str, shard: int) -> int:
    """Compute one shard and write its parts: what a worker does.

    A scheduler that lost a worker may ask again for what that one had finished: it is there.
    """
    store = study.open(folder)
    if not store.has(study.config, shard):
        store.write_parts(study.config, shard, study.compute_after(shard, store))
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

"""Studies, computations split into shards, and the function that runs them.

A run is resumable, and its bytes do not depend on the executor of ``concurrent.futures``.
"""

import functools
import heapq
import json
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import nnls

from bayesrisk import datasets
from bayesrisk._base import validation as check
from bayesrisk._base.compiling import compiled_since
from bayesrisk._base.display import displayed, short, spoken
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.experiments.runs.executors import SerialExecutor, some_executor
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.tables.exchange import MADE_UP, made_up_mark

_R = TypeVar("_R")


@displayed
@dataclass(frozen=True)
class RunSummary:
    """Numbers of shards that a run computed, and the facts of all finished shards.

    Facts, the results of the study by name, are also attributes.
    """

    folder: str
    shards: int  # in all
    computed: int  # by this run
    resumed: int  # found finished
    complete: bool  # whether every shard is there
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return a fact by its name."""
        facts = self.__dict__.get("facts", {})
        if name not in facts:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)
        return facts[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as one dictionary, facts included."""
        attributes = {name: value for name, value in self.__dict__.items() if name != "facts"}
        return {**attributes, **self.facts}

    def _answer(self) -> list[str]:
        shards = (
            f"{self.computed + self.resumed} of {self.shards} shards are done, in {self.folder}"
        )
        first = [datasets.MADE_UP] if self.facts.get(MADE_UP) else []
        if sentences := self.facts.get("brief"):  # the answer of a study that says one
            return [*first, *sentences, shards]
        facts = {name: value for name, value in self.facts.items() if name != MADE_UP}
        return [*first, shards, *(f"{name}: {short(value)}" for name, value in facts.items())]


_FULL = 0.9  # of the processors that are busy
_SHORT = 5.0  # seconds of all together that nobody asks about one by one


class Outlook(NamedTuple):
    """Notes that a study gives before it runs, and expected seconds of its shards."""

    lines: Sequence[str] = ()  # such as what is left out
    seconds: Mapping[int, float] = MappingProxyType({})  # of a processor; none: all alike
    parts: Mapping[str, float] = MappingProxyType({})  # of what takes how long, by name
    optional: float = 0.0  # seconds of these that may turn out not to be needed
    unknown: Sequence[str] = ()  # names of what takes time that nobody knows yet

    def shard_seconds(self, shards: Sequence[int]) -> list[float]:
        """Return the seconds of shards, those that nobody knows as long as any; [] without any."""
        longest = max(self.seconds.values(), default=0.0)
        return [self.seconds.get(one, longest) or 1e-6 for one in shards if self.seconds]

    def sentences(
        self, workers: int, pace: float = 1.0, load: float = 0.0, start: float = 0.0
    ) -> list[str]:
        """Return the notes, and the expected time for ``workers`` workers.

        On a full machine it is a range: the others may end at once, or go on as they do now.
        """
        more = [f"not known yet, how long it takes: {', '.join(self.unknown)}"] * bool(self.unknown)
        if not (total := sum(self.seconds.values())):
            return [*self.lines, *more]

        def clock(share: float, pace: float, load: float) -> str:
            (begun,) = ends_of_shards([0.0], 1, pace, load, start)
            end = ends_of_shards([*self.seconds.values()], workers, pace, load, start)[-1]
            return spoken(begun + share * (end - begun))

        full = load > 0.0 and pace + load > _FULL * (os.cpu_count() or 1)
        soonest = (max(pace, 1.0), 0.0) if full else (pace, load)
        times = clock(1.0 - self.optional / total, *soonest), clock(1.0, pace, load)
        text = " to ".join(dict.fromkeys(times)).replace("to about", "to")
        if self.unknown and not text.startswith("less"):
            text = "more than " + text.split(" to ")[0].removeprefix("about ")
        text += f" with {workers} worker{'s' * (workers > 1)}"
        slowest = max(self.parts, key=lambda name: self.parts[name], default="")
        if len(self.parts) > 1 and total > _SHORT:
            most = 2.0 * self.parts[slowest] > sum(self.parts.values())
            text += f"; {slowest} takes " + ("most of it" if most else "longest")
        return [*self.lines, text, *more]


def ends_of_shards(
    seconds: Sequence[float], workers: int, pace: float = 1.0, load: float = 0.0, start: float = 0.0
) -> list[float]:
    """Return the seconds of the clock after which shards end, sorted, begun in their order.

    ``seconds`` are processor seconds. ``pace`` is their number per clock second for one process,
    more than 1 with threads. ``load`` is that of all else on the machine, which shares the
    processors evenly with the workers.  ``start`` are the seconds before the first shard of each.
    """
    workers, cpus = min(workers, len(seconds)), os.cpu_count() or 1
    demand = workers * max(pace, 1.0)
    speed = max(min(pace, cpus * demand / (demand + load) / workers), 1e-3)
    ends, free = list[float](), [start / speed] * workers
    for one in seconds:
        ends.append(heapq.heappop(free) + one / speed)
        heapq.heappush(free, ends[-1])
    return sorted(ends)


class Study(ABC):
    """A computation split into shards, for :func:`run` with any executor.

    A study is a frozen dataclass whose fields are its configuration. It is sent to workers, so it
    holds settings and paths, not open files. The parts of a shard depend only on the study and the
    number of the shard.
    """

    #: Files of a run: a class attribute, or a property where it depends on the fields.
    layout: Layout
    #: The folder of a run.
    _store: ClassVar[type[RunFolder]] = RunFolder
    #: Functions with a cache that this process keeps between shards, emptied after a run.
    caches: ClassVar[Sequence[Any]] = ()
    #: Fields with the data that the answers are about: settings say so where they are made up.
    inputs: ClassVar[Sequence[str]] = ()
    #: What a pilot may miss, as few places take most of the time.
    uneven: ClassVar[Sequence[str]] = ()
    #: Whether a complete run has its facts in ``summary.json``, without how it came to them.
    summary: ClassVar[bool] = False

    @property
    @abstractmethod
    def config(self) -> Mapping[str, Any]:
        """The checked configuration as plain values: fields, digests of inputs, ``shards``.

        The configuration is written into the folder, and distinguishes runs.
        """

    def configuration(self, **derived: object) -> dict[str, Any]:
        """Return the fields as a configuration, with derived values and the version."""
        settings = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        made_up = any(datasets.is_made_up(getattr(self, name)) for name in self.inputs)
        return settings | made_up_mark(made_up) | derived | {"version": __version__}

    @property
    def shards(self) -> int:
        """Number of shards."""
        return int(self.config["shards"])

    @property
    def stages(self) -> Sequence[range]:
        """Shards grouped into stages; a stage may read the parts of earlier stages."""
        return (range(self.shards),)

    def open(self, folder: str | Path) -> RunFolder:
        """Return the folder of a run of this study."""
        return self._store(folder, self.config, self.layout)

    @abstractmethod
    def compute(self, shard: int) -> Mapping[str, Any]:
        """Return the parts of a shard as Arrow tables by kind."""

    def compute_after(self, shard: int, folder: RunFolder) -> Mapping[str, Any]:
        """Return the parts of a shard; ``folder`` holds those of all earlier stages."""
        return self.compute(shard)

    def work(self, shard: int) -> float:
        """Return the amount of work in a shard, such as its places, or 0 if unknown."""
        return 0.0

    def group(self, shard: int) -> str:
        """Return the name of a group of shards with the same time per amount of work."""
        return ""

    def pilot(self, shard: int, amount: float) -> float:
        """Compute about ``amount`` of a shard's work without output; return the amount done."""
        return 0.0

    def outlook(self, todo: Sequence[int]) -> Outlook:
        """Return the expected time of the shards ``todo``, extrapolated from a pilot."""
        groups: dict[str, dict[int, float]] = {}
        for shard in todo:
            groups.setdefault(self.group(shard), {})[shard] = self.work(shard)
        seconds = {name: forecast(work, self.pilot) for name, work in groups.items()}
        if not all(seconds.values()):
            return Outlook()
        parts = {name: sum(part.values()) for name, part in seconds.items()}
        expected = dict(ChainMap(*seconds.values()))
        return Outlook(seconds=expected, parts=parts, unknown=self.uneven)

    def news(self, folder: RunFolder) -> Sequence[str]:
        """Return sentences on new findings since the last call, while shards are computed."""
        return ()

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return further result files of a complete run by name, besides merged parts."""
        return {}

    def report(self, folder: RunFolder, facts: Mapping[str, Any]) -> bytes | None:
        """Return the HTML report of a complete run with these facts, or None."""
        return None

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return facts about the finished shards for the summary, after results are written."""
        return {}

    def close(self) -> None:
        """Clear the caches that this process keeps between shards."""
        for cache in self.caches:
            cache.cache_clear()


def run(
    study: Study,
    folder: str | Path,
    *,
    workers: int = 1,
    executor: str | Executor | None = None,
    shard: tuple[int, int] | None = None,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
    announce: Callable[[str, bool], None] | None = None,
) -> RunSummary:
    """Run a study, such as an audit or a sweep, into a folder; return its summary.

    The summary has the number of computed shards and the study's facts; ``complete`` says whether
    all shards are there.

    Parameters
    ----------
    study : Study
        The computation: :class:`SweepStudy`, :class:`ReconstructionStudy`, :class:`ClaimsStudy`,
        :class:`OccupancyStudy`, :class:`OccupancyAttackStudy`, or your own.
    folder : path-like
        Output folder, new or empty; or, with ``resume``, one with finished shards of this study.
    workers : int, default 1
        Worker processes, in [1, 1024]; the results do not depend on it.
    executor : str or concurrent.futures.Executor, optional
        ``"serial"``, ``"processes"``, ``"dask"`` or a plug-in; or any executor of your own, which
        stays open and has its own number of workers. By default serial for one worker and processes
        for more.
    shard : tuple of int, optional
        ``(i, n)``: compute only every n-th shard, starting with the i-th, 1 <= i <= n. Several
        machines may share a folder. They run (1, n), ..., (n, n), in any order or at once, and the
        last one makes the results. A study in stages stops if an earlier stage lacks another
        machine's shards; run it again with ``resume``.
    resume : bool, default False
        Whether to keep finished shards in the folder and compute the rest.
    progress : callable, optional
        Called after each shard with the finished and the total number of shards of this run.
    announce : callable, optional
        Called before the start with sentences about omissions and expected time, and False; and
        before each call of ``progress`` with the time left, and True. A study may run a pilot for
        it, which changes no results.

    Raises
    ------
    OutputError
        If the folder belongs to another configuration, or holds shards and ``resume`` is false;
        nothing is then changed.
    PartFileError
        If a part in the folder is truncated, altered or foreign; nothing is then changed.
    ShardError
        If shards failed. They are set aside, each with its error, and the others are finished. If
        no shard was ever finished, the error of the first is raised unchanged.
    WorkerError
        If worker processes cannot start, or the scheduler of a cluster ended. A worker that dies is
        replaced; a shard that kills three workers is set aside.

    Notes
    -----
    Each worker holds one shard in memory, and the data that the study reads. An interrupt keeps
    every finished shard. So does the end of workers or of a scheduler, or a full disk. ``resume``
    computes the missing shards, and those that were set aside.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.experiments import run
    >>> from bayesrisk.experiments.sweep_document import parse_config
    >>> study = parse_config({
    ...     "quantities": ["marginal_risk"], "grid": {"rho": [0.1, 1.0], "prior": [0.1]},
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary = run(study, folder)
    >>> summary.complete, summary.rows
    (True, 2)
    """
    if not isinstance(study, Study):
        raise ArgumentTypeError(
            "study", "must be a Study", shown=type(study).__name__,
            advice=": give a SweepStudy, an AuditStudy or your own; of a file load_config(file)",
        )  # fmt: skip
    check.flag(resume, "resume")
    check.function(progress, "progress")
    part, parts = 1, 1
    if shard is not None:
        if not (isinstance(shard, tuple) and len(shard) == 2):
            raise ArgumentError("shard", "must be a pair (i, n)", got=shard)
        parts = check.integer(shard[1], "shard[1]", lower=1, upper=10**6)
        part = check.integer(shard[0], "shard[0]", lower=1, upper=parts)
    with some_executor(executor, workers) as pool:
        try:
            store = study.open(folder)
            mark = made_up_mark(study.config.get(MADE_UP, False))
            cached_facts = functools.cache(
                lambda complete: {**mark, **study.facts(store, complete=complete)}
            )
            mine = range(part - 1, store.shards, parts)
            finished = store.prepare(mine, resume=resume)
            todo = [number for number in mine if number not in finished]
            if announce is not None and todo:
                begin = clocks()
                outlook = study.outlook(todo)
                power = fastest(outlook.shard_seconds(todo), workers, pace_since(begin))
                if executor is None and outlook.seconds and power[0] == 1:
                    pool = SerialExecutor()
                progress = _timed(outlook, todo, power, announce, progress)
                progress = _with_news(functools.partial(study.news, store), announce, progress)
            complete = store.run(
                functools.partial(_work, study, str(store.path)),
                pool,
                todo,
                stages=study.stages,
                progress=progress,
                results=lambda: _results(study, store, cached_facts),
            )
            left = set() if complete else set(store.missing()).intersection(todo)
            computed = len(todo) - len(left)
            shards = store.shards, computed, len(mine) - len(todo)
            return RunSummary(str(store.path), *shards, complete, cached_facts(complete))
        finally:
            study.close()


#: Clock and CPU seconds of a pilot that tell how busy a machine is.
_MEASURED, _USED = 1.0, 0.05
_START = 8.0  # processor seconds that a worker needs at most to load packages and kernels
_pace = [(1.0, 0.0)]  # the last that was measured


def clocks() -> tuple[float, float, float]:
    """Return the CPU seconds of this process, clock seconds, and the CPU seconds of all processes.

    The last are 0 if the system does not report them.
    """
    used = 0.0
    with suppress(OSError), Path("/proc/stat").open(encoding="ascii") as stream:
        used = sum(map(int, stream.readline().split()[1:4])) / os.sysconf("SC_CLK_TCK")
    return time.process_time(), time.monotonic(), used


def pace_since(begin: tuple[float, float, float]) -> tuple[float, float]:
    """Return the CPU seconds of this process, and of all others, in one of the clock since then.

    For a moment, such as a pilot run beside other processes, it is the last measurement. So it is
    for a pilot that mostly waited: its few CPU seconds would foretell days.
    """
    used, passed, total = np.subtract(clocks(), begin).tolist()
    if passed > _MEASURED and used > _USED:
        _pace[0] = used / passed, max(total - used, 0.0) / passed
    return _pace[0]


def fastest(
    seconds: Sequence[float], workers: int, pace: tuple[float, float]
) -> tuple[int, float, float, float]:
    """Return workers, pace, load and the start of a worker: one, this process, if soonest done.

    A worker loads what this process has loaded.  The end of ``seconds`` without a forecast is
    unknown.
    """
    many = workers, *pace, min(time.process_time(), _START)
    one = 1, *pace, 0.0
    alone = workers == 1 or (
        seconds and ends_of_shards(seconds, *one)[-1] <= ends_of_shards(seconds, *many)[-1]
    )
    return one if alone else many


def _timed(
    outlook: Outlook,
    todo: Sequence[int],
    power: tuple[int, float, float, float],
    announce: Callable[[str, bool], None],
    progress: Callable[[int, int], None] | None,
) -> Callable[[int, int], None]:
    """Announce expectations before a run, and return a progress callback with the time left.

    ``power`` are the workers, the pace of one and of all others, and the start of a worker.
    """
    for sentence in outlook.sentences(*power):
        announce(sentence, False)
    seconds = outlook.shard_seconds(todo) or [1.0] * len(todo)
    ends, work = ends_of_shards(seconds, *power), np.cumsum(seconds)
    begin, ahead = time.monotonic(), ends[-1] if outlook.seconds else 0.0

    def advance(count: int, total: int) -> None:
        # Between what others have begun, too, and what alone is over: a last one may be late.
        share = float(ends[count - 1] / ends[-1] + work[count - 1] / work[-1]) / 2.0
        passed = time.monotonic() - begin
        # What is expected counts as a tenth of the whole that went as it was to go.
        rate = (passed + 0.1 * ahead) / (share + 0.1 * bool(ahead))
        left = (
            f"{spoken(rate * (1.0 - share))} left" if count < total else "only the results are left"
        )
        announce(left, True)
        if progress is not None:
            progress(count, total)

    return advance


def _with_news(
    news: Callable[[], Sequence[str]],
    announce: Callable[[str, bool], None],
    progress: Callable[[int, int], None],
) -> Callable[[int, int], None]:
    """Return progress that also says what was found so far, but where all is about to be said."""

    def advance(count: int, total: int) -> None:
        if count < total:
            for sentence in news():
                announce(f"so far: {sentence}", False)
        progress(count, total)

    return advance


def _results(
    study: Study, folder: RunFolder, facts: Callable[[bool], Mapping[str, Any]]
) -> dict[str, bytes]:
    """Return result files of a complete run, with its facts if the study wants them."""
    files = dict(study.results(folder))
    if type(study).report is not Study.report:
        files["report.html"] = study.report(folder, facts(True)) or b""
    if study.summary:
        document = {"shards": study.shards, "complete": True, **facts(True)}
        text = json.dumps(document, indent=2, allow_nan=False) + "\n"
        files["summary.json"] = text.encode()
    return files


def _work(study: Study, folder: str, shard: int) -> int:
    """Compute one shard and write its parts, as a worker does; return its number.

    A scheduler that lost a worker may repeat a call whose shard is already finished.
    """
    store = study.open(folder)
    if not store.has(shard):
        store.write_parts(shard, study.compute_after(shard, store))
    return shard


#: Seconds of a processor after which no further part begins.
_SECONDS = 1.0
#: As many times that for the first part, after which no other begins.
_FIRST = 10.0
#: Most of a run that a part is: what is shorter is not forecast.
_SHARE = 0.25
#: Steps of this size, modulo 1, visit a range evenly however many they are.
_GOLDEN = 0.6180339887498949


def evenly(size: int, amount: float) -> list[int]:
    """Return about ``amount`` numbers below ``size``, evenly spaced, at least one."""
    many = max(1, min(size, int(amount)))
    return [size * (2 * number + 1) // (2 * many) for number in range(many)]


def forecast(
    work: Mapping[int, float], compute: Callable[[int, float], float], *, seconds: float = _SECONDS
) -> dict[int, float]:
    """Return the expected CPU seconds of each shard, extrapolated from a short pilot.

    Parameters
    ----------
    work : mapping of int to float
        Amount of work by shard, such as its places.
    compute : callable
        Does at least 1 of a shard's work, and returns the amount done; 0 to decline.
    seconds : float, default 1.0
        Time for the pilot, within which its last part may still begin.

    Notes
    -----
    The first part loads compiled code, and counts only if it is alone. The later ones lie in shards
    all over the run. A part that fails ends the pilot: the run itself will report it.
    """
    shards, total = list(work), sum(work.values())
    parts: list[tuple[float, float]] = []
    spent, amount, begun = 0.0, 1.0, time.time_ns()
    while spent < seconds and amount <= _SHARE * total:
        shard = shards[int(len(shards) * (len(parts) * _GOLDEN % 1.0))]
        start = time.process_time()
        try:
            with warnings.catch_warnings():  # the run says them
                warnings.simplefilter("ignore")
                size = compute(shard, min(amount, work[shard]))
        except Exception:
            break
        if not size:
            break
        parts.append((size, time.process_time() - start))
        spent = sum(took for _, took in parts[1:])
        if parts[0][1] > _FIRST * seconds and not compiled_since(begun):
            break
        # Once the second part is over, others make the answer surer: up to a share of the run.
        if sum(size for size, _ in parts[1:]) >= _SHARE * total:
            break
        amount = min(2.0 * amount, max(1.0, _SHARE * total))
    counted = np.array(parts[1:] or parts)
    if not counted.size:
        return {}
    amounts, took = counted.T
    first, slope = 0.0, took.sum() / amounts.sum()
    if (
        amounts.max() >= 4.0 * amounts.min()
    ):  # a shard takes a time of its own, and one for its work
        coefficients = nnls(np.stack([np.ones_like(amounts), amounts], axis=1), took)[0]
        first, slope = coefficients if coefficients[1] else (first, slope)
    return {shard: float(first + slope * part) for shard, part in work.items()}

"""Studies, computations in shards, the one function that runs them on an executor, and their pages.

A run is resumable, and its bytes do not depend on the executor of ``concurrent.futures``: this
process, worker processes, or a Dask cluster.  Others register in the entry-point group
``bayesrisk.executors`` (whatever returns an executor when it is called with the number of workers),
or through ``REGISTRY``.  A plug-in that fails to load is skipped with a warning.
"""

import base64
import ctypes
import functools
import hashlib
import json
import logging
import multiprocessing
import os
import platform
import re
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from importlib.resources import files
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import pandas as pd

from bayesrisk import _interrupts, _validation as check, datasets, plotting
from bayesrisk._plugins import Registry
from bayesrisk._show import displayed, short
from bayesrisk._version import __version__
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    MissingDependencyError,
    WorkerError,
    quote,
)
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.tables.exchange import MADE_UP, made_up_mark

if TYPE_CHECKING:
    from jinja2 import Environment

_R = TypeVar("_R")
#: Workers that may die of the same call.
_TRIES = 3
_PR_SET_PDEATHSIG = 1  # of prctl(2): the signal that the end of the parent's thread sends
_FILES = 16  # that may be open for each worker: 8 are, and twice as many while one is replaced
_OWN = {
    "serial": "bayesrisk.experiments.runs.engine:SerialExecutor",
    "processes": "bayesrisk.experiments.runs.engine:ProcessExecutor",
    "dask": "bayesrisk.experiments.runs.engine:DaskExecutor",
}
REGISTRY: Registry[Executor] = Registry(
    "executor", builtin=_OWN, protocol=Executor, needs="submit()", results={"submit": Future}
)


@displayed
@dataclass(frozen=True)
class RunSummary:
    """The shards that a run computed, and the facts that a study found in all that are finished.

    Facts, the results of the study by name, are attributes, too.
    """

    folder: str
    shards: int  # in all
    computed: int  # by this run
    resumed: int  # found finished
    complete: bool  # whether every shard is there
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        """Return a fact."""
        facts = self.__dict__.get("facts", {})
        if name not in facts:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}", name=name)
        return facts[name]

    def to_dict(self) -> dict[str, Any]:
        """Return everything in one dictionary, the facts beside the rest."""
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


class Study(ABC):
    """A computation in shards, for :func:`run`: everything but where and how it runs.

    A study is a frozen dataclass whose fields are its configuration.  It is sent to workers, so it
    holds settings and paths rather than open files.  The parts of a shard depend on the study and
    the number of the shard, on nothing else.
    """

    #: Files of a run: a class attribute, or a property where it depends on the fields.
    layout: Layout
    #: The folder of a run.
    _store: ClassVar[type[RunFolder]] = RunFolder
    #: Functions with a cache that this process keeps between shards, emptied after a run.
    caches: ClassVar[Sequence[Any]] = ()
    #: Fields with the data that the answers are about: settings say so where they are made up.
    inputs: ClassVar[Sequence[str]] = ()
    #: Whether a complete run has its facts in ``summary.json``, without how it came to them.
    summary: ClassVar[bool] = False

    @property
    @abstractmethod
    def config(self) -> Mapping[str, Any]:
        """The checked configuration as plain values: fields, digests of inputs, ``shards``.

        It is written into the folder and tells runs apart.
        """

    def configuration(self, **derived: Any) -> dict[str, Any]:
        """Return the fields as a configuration: with what was found of them, and the version."""
        settings = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        made_up = any(datasets.is_made_up(getattr(self, name)) for name in self.inputs)
        return settings | made_up_mark(made_up) | derived | {"version": __version__}

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
        return self._store(folder, self.config, self.layout)

    @abstractmethod
    def compute(self, shard: int) -> Mapping[str, Any]:
        """Return the parts of a shard, tables of Arrow by kind."""

    def compute_after(self, shard: int, folder: RunFolder) -> Mapping[str, Any]:
        """Return the parts of a shard, where a folder holds those of all earlier stages."""
        return self.compute(shard)

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return files of a complete run, by name, besides those of merged parts."""
        return {}

    def report(self, folder: RunFolder, facts: Mapping[str, Any]) -> bytes | None:
        """Return ``report.html`` of a complete run with these facts; None for none."""
        return None

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return facts of the finished shards, for the summary; results are written before."""
        return {}

    def close(self) -> None:
        """Forget what this process keeps between shards."""
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
) -> RunSummary:
    """Return a summary of a study that is run into a folder.

    The shards that were computed and the study's facts; its ``complete`` says whether every shard
    is there.

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

    Raises
    ------
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
        raise ArgumentTypeError(f"study must be a Study, got {type(study).__name__}")
    check.flag(resume, "resume")
    check.function(progress, "progress")
    part, parts = 1, 1
    if shard is not None:
        if not (isinstance(shard, tuple) and len(shard) == 2):
            raise ArgumentError(f"shard must be a pair (i, n), got {quote(shard)}")
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


def _results(
    study: Study, folder: RunFolder, facts: Callable[[bool], Mapping[str, Any]]
) -> dict[str, bytes]:
    """Return the files of a complete run, its facts among them where the study says so."""
    files = dict(study.results(folder))
    if type(study).report is not Study.report:
        files["report.html"] = study.report(folder, facts(True)) or b""
    if study.summary:
        document = {"shards": study.shards, "complete": True, **facts(True)}
        text = json.dumps(document, indent=2, allow_nan=False) + "\n"
        files["summary.json"] = text.encode()
    return files


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
    pool = REGISTRY.make(default if executor is None else executor, workers)
    try:
        yield pool
    except BaseException as error:
        if isinstance(pool, ProcessExecutor) and _interrupts.ended(error):
            pool.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# -----------------------------------------------------------------------------
# Executors.


class SerialExecutor(Executor):
    """Calls in this process, each when it is submitted; ``workers`` changes nothing."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers

    def submit(self, fn: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        """Call a function, and return its result as a future that is done."""
        future: Future[_R] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # an interrupt is for who waits here, not for a result
            future.set_exception(error)
        return future


class ProcessExecutor(Executor):
    """Worker processes on this machine, which end with this one.

    A worker that dies is replaced and its call tried again, three times in all; then the future
    holds a WorkerError.  The calls of other workers go on meanwhile.
    """

    def __init__(self, workers: int) -> None:
        # A pool of several processes ends them all when one dies, and does not tell of which call.
        # So each thread has a pool of one.
        _allow_files(_FILES * workers)
        self._threads = ThreadPoolExecutor(workers, initializer=_block_interrupts)
        self._local = threading.local()
        self._pools: set[ProcessPoolExecutor] = set()
        self._killed = False

    def submit(self, fn: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        """Send a call to a worker.

        One that cannot be sent to another process is an ArgumentTypeError at once: a pool finds out
        in a thread of its own, and Python 3.11's can wait for ever then.
        """
        for value in (fn, *args, *kwargs.values()):
            try:
                ForkingPickler.dumps(value)
            except Exception as error:  # whatever a class raises when it is written
                raise ArgumentTypeError(
                    "task and items must be something that can be sent to a worker process (a "
                    f"function of a module, not one made within another), got {quote(value)}: "
                    f"{error}"
                ) from error
        return self._threads.submit(self._call, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers, when their calls are done."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        while wait and self._pools:  # else they end with this process
            self._pools.pop().shutdown()

    def kill(self) -> None:
        """End the workers at once, whatever they do; files are whole or as they were."""
        self._killed = True
        for pool in tuple(self._pools):
            for process in tuple((pool._processes or {}).values()):
                process.kill()

    def _call(self, fn: Callable[..., _R], args: Any, kwargs: Any) -> _R:
        """Return the result of a worker of this thread, after as many workers as it takes."""
        for _ in range(_TRIES):
            pool = self._pool()
            try:
                return pool.submit(fn, *args, **kwargs).result()
            except BrokenProcessPool as error:
                last = error
                self._local.pool = None
                self._pools.discard(pool)
                pool.shutdown()
                if self._killed or _interrupts.ended(error):
                    break  # who asked this process to end may have asked all of its group
        raise WorkerError(
            f"a worker process ended before its work was done, {_TRIES} times at the same "
            "(killed, or out of memory)"
        ) from last

    def _pool(self) -> ProcessPoolExecutor:
        """Return this thread's pool of one, whose worker has begun.

        One that cannot begin would not the next time either: that is a broken executor, and not
        the fault of a call.
        """
        pool: ProcessPoolExecutor | None = getattr(self._local, "pool", None)
        if pool is None:
            context = multiprocessing.get_context("spawn")  # safe with threads, alike everywhere
            try:
                pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin_worker)
                self._pools.add(pool)
                pool.submit(os.getpid).result()
            except Exception as error:
                raise BrokenExecutor(f"no worker process could be started: {error}") from error
            self._local.pool = pool
            if self._killed:
                self.kill()
        return pool


def _allow_files(number: int) -> None:
    """Let this process have so many more files open, or as many as the system allows."""
    try:
        import resource
    except ImportError:  # not a POSIX system, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + 256 if hard == resource.RLIM_INFINITY else min(number + 256, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _block_interrupts() -> None:
    """Let no Ctrl-C reach processes that this thread starts: they inherit the blocked signals.

    The process that tracks resources starts first, as starting it unblocks Ctrl-C.
    """
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _begin_worker() -> None:
    """Leave Ctrl-C to the process that made this worker, and end when that one is gone.

    A worker whose parent was killed would finish and write all it holds; files appear whole or not
    at all, so that it may stop anywhere.  Linux kills it; elsewhere a thread ends it, once no
    compiled code keeps threads from running.
    """
    _ignore_interrupts()
    parent = multiprocessing.parent_process()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def exit_after_parent() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=exit_after_parent, daemon=True).start()


class DaskExecutor(Executor):
    """A Dask scheduler that is there, or a local cluster without a dashboard.

    The scheduler is the one at ``address``, such as ``tcp://host:8786``, or else in
    ``DASK_SCHEDULER_ADDRESS``; where there is none a local cluster has so many ``workers``.
    """

    def __init__(self, workers: int, *, address: str | None = None) -> None:
        self.workers, self.address = workers, address
        try:
            import dask
            import distributed
        except ImportError as error:
            raise MissingDependencyError(
                "the dask executor needs the extra bayesrisk[dask]"
            ) from error
        self._dask: Any = dask
        self._distributed: Any = distributed
        self._pool: Any = None
        self._client: Any = None
        self._open = ExitStack()

    def room(self) -> int:
        """Return the number of calls that the cluster can work on at once.

        No more than that should wait there: every call that a worker holds when it dies is
        suspected of having killed it, and given up after the third time.
        """
        if self._client is None:
            return 1
        try:
            return max(1, int(sum(self._client.nthreads().values())))
        except (OSError, TimeoutError) as error:
            raise BrokenExecutor(f"the scheduler does not answer: {error}") from error

    def submit(self, fn: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        """Send a call to the cluster, which is started for the first one."""
        if self._pool is None:
            self._connect()
        future: Future[_R] = self._pool.submit(fn, *args, **kwargs)
        return future

    def _connect(self) -> None:
        address = self.address or os.environ.get("DASK_SCHEDULER_ADDRESS")
        options: dict[str, Any] = {"address": address}
        if address is None:
            options = {
                "n_workers": self.workers,
                "threads_per_worker": 1,
                "dashboard_address": None,
                "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
                "silence_logs": logging.CRITICAL,  # what matters comes as an error
            }
        # Dask starts an HTTP server in any case: it gets a free port and nothing to show.
        routes = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
        self._open.enter_context(self._dask.config.set({route: [] for route in routes}))
        self._hide_tracebacks()
        try:
            self._client = self._open.enter_context(self._distributed.Client(**options))
        except (OSError, TimeoutError) as error:
            scheduler = address or "this machine"
            raise WorkerError(f"there is no Dask scheduler at {scheduler}: {error}") from error
        if address is None:
            self._client.run(_ignore_interrupts)
        self._pool = self._client.get_executor(pure=False)

    def _hide_tracebacks(self) -> None:
        """Keep what Dask logs on the way, but for tracebacks: a run says itself what failed."""
        names = ("distributed", "distributed.client", "tornado.application")
        handlers = {handler for name in names for handler in logging.getLogger(name).handlers}
        for place in (*handlers, logging.getLogger("asyncio")):
            place.addFilter(_has_no_traceback)
            self._open.callback(place.removeFilter, _has_no_traceback)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; a local one ends."""
        if self._pool is not None:
            self._pool.shutdown(wait=wait)
            self._pool = self._client = None
        self._open.close()


def _has_no_traceback(record: logging.LogRecord) -> bool:
    return not record.exc_info


# -----------------------------------------------------------------------------
# Pages: templates filled in, every text escaped, figures embedded.
#
# The templates are in ``bayesrisk/experiments/templates``.  A page holds no date and no path.  It
# is whole without its script, which lets tables be sorted and filtered.


_PIXELS_PER_INCH = 125


class Figure(NamedTuple):
    """A figure for a template: caption or what it is made of, width in pixels, PNG in base 64."""

    caption: str | dict[str, object]
    width: int
    data: str


class PageTable(NamedTuple):
    """A table for a template, every cell as text."""

    caption: str
    heads: list[str]
    rows: list[list[str]]


class PageCell(str):
    """A text of a page, with the value that it is sorted by or a file beside it as its proof."""

    sort: object
    href: str

    def __new__(cls, text: object, **attributes: object) -> Self:
        """Return the text with what is known about it; ``href=""`` where there is no file."""
        cell = super().__new__(cls, text)
        vars(cell).update(attributes)
        return cell


def render(template: str, **values: Any) -> str:
    """Return a template of the package filled in: all that is no markup of its own is escaped.

    A name that the template uses and nobody gave is an error.  Pages that are ``made_up`` begin
    with it.
    """
    values = {MADE_UP: False} | values
    return _environment().get_template(template).render(versions=_versions(), **values)


@functools.cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only reports need it
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("bayesrisk.experiments", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for name, file in (("style", "style.css"), ("script", "report.js")):
        text = files("bayesrisk.experiments").joinpath("templates", file).read_text("utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
        # The package's own, and so no text to be escaped: a policy lets in exactly these bytes.
        environment.globals |= {name: Markup(text), f"{name}_digest": f"sha256-{digest}"}  # noqa: S704
    return environment


def _printable(value: object) -> object:
    """Return a value as text without control characters, which HTML may not hold; markup as is."""
    if hasattr(value, "__html__"):
        return value
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def _versions() -> str:
    """Return the versions of what computed and drew."""
    packages = ["numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib"]
    versions = {package: version(package) for package in packages}
    versions |= {"bayesrisk": __version__, "python": platform.python_version()}
    return ", ".join(f"{k} {v}" for k, v in sorted(versions.items()))


def findings(
    title: str,
    answer: Sequence[str],
    *,
    source: str,
    settings: Mapping[str, object],
    figures: Sequence[Figure] = (),
    tables: Sequence[PageTable] = (),
    words: Mapping[str, str] = MappingProxyType({}),
    warning: str = "",
) -> bytes:
    """Return a page that begins with the answer in sentences, the first of them large.

    The settings say whether the people are made up.
    """
    text = json.dumps(settings, indent=2, sort_keys=True, default=str)
    return render(
        "findings.html", title=title, answer=answer, source=source, figures=figures,
        tables=[rows for rows in tables if rows.rows], words=words, warning=warning,
        made_up=settings.get(MADE_UP, False),
        settings_title="Settings", settings=text,
    ).encode()  # fmt: skip


def origin(config: Mapping[str, Any], content: str) -> str:
    """Return the sentence about where a report comes from, and what the files beside it hold."""
    digest = str(config.get("tables") or config["measurements"])[:16]
    return (
        f"Made by bayesrisk {config['version']} from nothing but what was published, of digest "
        f"{digest}…; the {content} themselves are in the files beside this page."
    )


_CLASS = "bayesrisk-report"


def fragment(page: str) -> str:
    """Return a page as a part of another one, such as of Quarto or Jupyter.

    The style holds inside of it alone, by nested rules, and there is no script.
    """
    style = _environment().globals["style"]
    rules = re.sub(r"@page \{[^}]*\}", "", re.sub(r"(?m)^(\s*)body \{", r"\1& {", str(style)))
    inside = page.split("<main>", 1)[1].rsplit("</main>", 1)[0]
    return (
        f'<div class="{_CLASS}">\n<style>.{_CLASS} {{\n{rules}}}</style>\n'
        f"<main>{inside}</main>\n</div>\n"
    )


def drawing(axes: Any, caption: str) -> Figure:
    """Return a figure for a page that alone shows it."""
    with TemporaryDirectory() as folder:
        return figure(axes, Path(folder) / "figure", caption)


def figure(axes: Any, stem: Path, caption: str | dict[str, object]) -> Figure:
    """Write a figure beside the page and return it for the page."""
    png = plotting.save_figure(axes, stem)[0]
    width = round(float(plotting.parent_figure(axes).get_figwidth()) * _PIXELS_PER_INCH)
    data = base64.b64encode(png.read_bytes()).decode("ascii")
    return Figure(caption, width, data)


def table(frame: pd.DataFrame, caption: str) -> PageTable:
    """Return a frame for the page; numbers to five significant digits, none as a dash."""
    heads = [str(name).replace("_", " ") for name in frame.columns]
    rows = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return PageTable(caption, heads, rows)


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose rates have three decimals, and whose intervals are one column each."""
    numbers = [str(c) for c in table if table[c].dtype.kind == "f"]
    text = {
        name: table[name].map(lambda value: "–" if pd.isna(value) else f"{value:.3f}").astype("str")
        for name in numbers
    }
    wide = table.assign(**text)
    for name in [c.removesuffix("_lower") for c in numbers if c.endswith("_lower")]:
        low, high = f"{name}_lower", f"{name}_upper"
        # None is a dash alone: a column sorts as numbers where all others are.
        wide[low] = (wide[low] + " to " + wide[high]).replace("– to –", "–")
        wide = wide.drop(columns=high).rename(columns={low: f"{name} interval"})
    return wide


def _cell(value: object) -> str:
    if isinstance(value, float):
        if np.isnan(value):
            return "–"
        return f"{value:.0f}" if value == np.rint(value) and abs(value) >= 1.5 else f"{value:.5g}"
    return value if isinstance(value, PageCell) else str(value)

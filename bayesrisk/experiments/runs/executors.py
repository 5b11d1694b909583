"""Ways to run independent pieces of work: in this process, or in several.

All are executors of ``concurrent.futures``.  Others register in the entry-point group
``bayesrisk.executors`` (whatever returns an executor when it is called with the number of workers),
or through :func:`register`.  A plug-in that fails to load is skipped with a warning.
"""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

from bayesrisk import _interrupts
from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._plugins import Registry
from bayesrisk.exceptions import ArgumentTypeError, MissingDependencyError, WorkerError

_R = TypeVar("_R")
#: Workers that may die of the same call.
_TRIES = 3
_FILES = 16  # that may be open for each worker: 8 are, and twice as many while one is replaced
_OWN = {
    "serial": "bayesrisk.experiments.runs.executors:SerialExecutor",
    "processes": "bayesrisk.experiments.runs.executors:ProcessExecutor",
    "dask": "bayesrisk.experiments.runs.executors:DaskExecutor",
}
REGISTRY: Registry[Executor] = Registry("executor", own=_OWN, protocol=Executor, needs="submit()")


class SerialExecutor(Executor):
    """Run everything in this process, each piece when it is submitted.

    Parameters
    ----------
    workers : int
        Not more than one is used.
    """

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
    """Run in worker processes on this machine, which end with this one.

    A worker that dies is replaced, and what it was at is tried again, three times in all; then the
    future holds a WorkerError.  What other workers are at goes on meanwhile.

    Parameters
    ----------
    workers : int
        Number of processes.
    """

    def __init__(self, workers: int) -> None:
        # A pool of several processes ends them all when one dies, and does not tell which one it
        # was nor what that was at.  So each thread has a pool of one.
        _allow_files(_FILES * workers)
        self._threads = ThreadPoolExecutor(workers, initializer=_leave_interrupts)
        self._own = threading.local()
        self._pools: set[ProcessPoolExecutor] = set()
        self._task: Any = None
        self._items = 0

    def submit(self, fn: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        """Send a call to a worker.

        What cannot be sent to another process is an ArgumentTypeError before anything is waited
        for: the pool finds out in a thread of its own, and Python 3.11's can wait for ever then.
        """
        if fn is not self._task:
            _check_sendable(fn, "task")
            self._task = fn
        sent = args[0] if len(args) == 1 and not kwargs else (args, kwargs)
        _check_sendable(sent, f"item {self._items}")
        self._items += 1
        return self._threads.submit(self._call, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers, when what they are at is done."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if wait:  # else they end with this process
            while self._pools:
                self._pools.pop().shutdown()

    def _call(self, fn: Callable[..., _R], args: Any, kwargs: Any) -> _R:
        """Return what a worker of this thread comes to, after as many workers as it takes."""
        for _ in range(_TRIES):
            pool = self._pool()
            try:
                return pool.submit(fn, *args, **kwargs).result()
            except BrokenProcessPool as error:
                last = error
                self._own.pool = None
                self._pools.discard(pool)
                pool.shutdown()
                if _interrupts.ended(error):
                    break  # who asked this process to end may have asked all of its group
        raise WorkerError(
            f"a worker process ended before its work was done, {_TRIES} times at the same "
            "(killed, or out of memory)"
        ) from last

    def _pool(self) -> ProcessPoolExecutor:
        """Return this thread's pool of one, whose worker has begun.

        One that cannot begin would not the next time: that is no matter of what is to be done, and
        the error of a broken executor.
        """
        pool: ProcessPoolExecutor | None = getattr(self._own, "pool", None)
        if pool is None:
            context = multiprocessing.get_context("spawn")  # safe with threads, alike everywhere
            try:
                pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin_worker)
                self._pools.add(pool)
                pool.submit(os.getpid).result()
            except Exception as error:
                raise BrokenExecutor(f"no worker process could be started: {error}") from error
            self._own.pool = pool
        return pool


def _allow_files(number: int) -> None:
    """Let this process have so many more files open, or as many as the system lets it have."""
    try:
        import resource
    except ImportError:  # not a POSIX system, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _leave_interrupts() -> None:
    """Let no Ctrl-C reach processes that this thread starts: they take over what it blocks.

    Whoever starts the one that tracks resources has Ctrl-C no longer blocked: it starts first.
    """
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def _begin_worker() -> None:
    """Leave Ctrl-C to the process that made this worker, and end when that one is gone.

    An interrupt lets workers finish what they do.  A worker whose parent was killed would finish
    all it holds, and write it; what it writes appears whole or not at all, so that it may stop
    anywhere.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: Any) -> None:
    """Wait for the end of a process, then end this one without further ado."""
    parent.join()
    os._exit(1)


def _check_sendable(value: Any, name: str) -> None:
    """Refuse what a worker process cannot be sent."""
    try:
        ForkingPickler.dumps(value)
    except Exception as error:  # whatever a class raises when it is written
        raise ArgumentTypeError(
            f"{name} must be something that can be sent to a worker process "
            f"(a function of a module, not one made within another), got {shown(value)}: {error}"
        ) from error


def register(name: str, factory: Callable[[int], Executor]) -> None:
    """Make an executor available under a name, for this process.

    Parameters
    ----------
    name : str
        Name to choose it by; it may replace a plug-in, not one of the package's own.
    factory : callable
        Takes the number of workers and returns an executor.

    Raises
    ------
    ArgumentError
        If the name is one of the package's own.
    """
    REGISTRY.register(name, factory)


def available() -> list[str]:
    """Return the names of the executors that can be chosen.

    Returns
    -------
    list of str
        Sorted names.

    Raises
    ------
    OSError
        If the installation is unreadable.
    """
    return REGISTRY.available()


def make_executor(name: str, workers: int) -> Executor:
    """Return an executor by name.

    Parameters
    ----------
    name : str
        One of :func:`available`.
    workers : int
        Number of workers, in [1, 1024].

    Returns
    -------
    concurrent.futures.Executor
        Ready to run; whoever made it shuts it down.

    Raises
    ------
    ArgumentError
        If the name is unknown, or the plug-in behind it cannot be loaded.
    MissingDependencyError
        If it needs an extra that is not installed.
    """
    workers = check.integer(workers, "workers", lower=1, upper=1024)
    return REGISTRY.make(name, workers)


# -----------------------------------------------------------------------------
# Shards on a Dask cluster: the only module that imports Dask (extra ``bayesrisk[dask]``).


#: Pages that a cluster of our own serves: none. Dask starts an HTTP server whatever is asked,
#: on port 8787 unless told otherwise, so it gets a free port and nothing to show.
_NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Keep what Dask logs on the way, but for tracebacks: a run says itself what became of it."""

    def told(record: logging.LogRecord) -> bool:
        return not record.exc_info

    names = ("distributed", "distributed.client", "tornado.application")
    handlers = {handler for name in names for handler in logging.getLogger(name).handlers}
    places: list[logging.Filterer] = [*handlers, logging.getLogger("asyncio")]
    for place in places:
        place.addFilter(told)
    try:
        yield
    finally:
        for place in places:
            place.removeFilter(told)


class DaskExecutor(Executor):
    """Run on a scheduler that is there, or on a local cluster.

    The local cluster has no dashboard.

    Parameters
    ----------
    workers : int
        Number of worker processes of the local cluster; a scheduler has its own.
    address : str, optional
        Address of a scheduler, such as ``tcp://host:8786``; by default the one in
        ``DASK_SCHEDULER_ADDRESS``, and a local cluster where there is none.

    Raises
    ------
    MissingDependencyError
        If Dask is not installed.
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
        """Return how many calls the cluster can work on at once.

        No more than that should wait there: whatever a worker holds when it dies is suspected of
        having killed it, and given up after the third time.

        Raises
        ------
        concurrent.futures.BrokenExecutor
            If the scheduler does not answer.
        """
        client = self._client
        if client is None:
            return 1
        try:
            return max(1, int(sum(client.nthreads().values())))
        except (OSError, TimeoutError) as error:
            raise BrokenExecutor(f"the scheduler does not answer: {error}") from error

    def submit(self, fn: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        """Send a call to the cluster, which is started for the first one."""
        if self._pool is None:
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
            self._open.enter_context(self._dask.config.set(_NO_PAGES))
            self._open.enter_context(_without_tracebacks())
            self._client = self._open.enter_context(self._connected(options))
            if address is None:
                self._client.run(_ignore_interrupts)
            self._pool = self._client.get_executor(pure=False)
        future: Future[_R] = self._pool.submit(fn, *args, **kwargs)
        return future

    def _connected(self, options: dict[str, Any]) -> Any:
        try:
            return self._distributed.Client(**options)
        except (OSError, TimeoutError) as error:
            where = options.get("address", "this machine")
            raise WorkerError(f"there is no Dask scheduler at {where}: {error}") from error

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; a local one ends."""
        if self._pool is not None:
            self._pool.shutdown(wait=wait)
            self._pool = self._client = None
        self._open.close()


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the process that made this worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

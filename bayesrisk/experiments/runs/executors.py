"""Executors of runs: this process, local worker processes, or a Dask cluster.

Others register in the entry-point group ``bayesrisk.executors``, or through ``REGISTRY``. An entry
is called with the number of workers and returns an executor. A plug-in that fails to load is
skipped with a warning.
"""

import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait as wait_for,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar
from weakref import WeakSet

from bayesrisk._base import interrupts, validation as check
from bayesrisk._base.plugins import Registry
from bayesrisk.exceptions import ArgumentTypeError, MissingDependencyError, WorkerError, quote

_R = TypeVar("_R")
#: Workers that may die of the same call.
_TRIES = 3
_PR_SET_PDEATHSIG = 1  # of prctl(2): the signal that the end of the parent's thread sends
_FILES = 16  # that may be open for each worker: 8 are, and twice as many while one is replaced
_OWN = {
    "serial": "bayesrisk.experiments.runs.executors:SerialExecutor",
    "processes": "bayesrisk.experiments.runs.executors:ProcessExecutor",
    "dask": "bayesrisk.experiments.runs.executors:DaskExecutor",
}
REGISTRY: Registry[Executor] = Registry(
    "executor", builtin=_OWN, protocol=Executor, needs="submit()", results={"submit": Future}
)


@contextmanager
def some_executor(executor: str | Executor | None, workers: int) -> Iterator[Executor]:
    """Yield the requested executor, and shut it down afterwards if it was made here."""
    check.integer(workers, "workers", lower=1, upper=1024)
    if isinstance(executor, Executor):
        yield executor
        return
    default = "serial" if workers == 1 else "processes"
    pool = REGISTRY.make(default if executor is None else executor, workers)
    try:
        yield pool
    except BaseException as error:
        if isinstance(pool, ProcessExecutor) and interrupts.ended(error):
            pool.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class SerialExecutor(Executor):
    """An executor that makes each call in this process at once, whatever ``workers`` is."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers

    def submit(self, fn: Callable[..., _R], /, *args: object, **kwargs: object) -> Future[_R]:
        """Call a function, and return its result as a completed future."""
        future: Future[_R] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # an interrupt is for who waits here, not for a result
            future.set_exception(error)
        return future


class ProcessExecutor(Executor):
    """An executor with worker processes on this machine, which end with this one.

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

    def submit(self, fn: Callable[..., _R], /, *args: object, **kwargs: object) -> Future[_R]:
        """Send a call to a worker process.

        A call that cannot be sent to another process is an ArgumentTypeError at once: a pool finds
        out in a thread of its own, and Python 3.11's can wait for ever then.
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
        """End the workers after their calls are finished."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        while wait and self._pools:  # else they end with this process
            self._pools.pop().shutdown()

    def kill(self) -> None:
        """Kill the workers at once; files are written whole or not at all."""
        self._killed = True
        for pool in tuple(self._pools):
            for process in tuple((pool._processes or {}).values()):
                process.kill()

    def _call(self, fn: Callable[..., _R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _R:
        """Return the result of a call in this thread's worker, retried if the worker dies."""
        for _ in range(_TRIES):
            pool = self._pool()
            try:
                return pool.submit(fn, *args, **kwargs).result()
            except BrokenProcessPool as error:
                last = error
                self._local.pool = None
                self._pools.discard(pool)
                pool.shutdown()
                if self._killed or interrupts.ended(error):
                    break  # who asked this process to end may have asked all of its group
        raise WorkerError(
            f"a worker process ended before its work was done, {_TRIES} times at the same "
            "(killed, or out of memory)"
        ) from last

    def _pool(self) -> ProcessPoolExecutor:
        """Return this thread's pool of one worker, started if needed.

        A worker that cannot start would not start the next time either, so that this is an error of
        the executor and not of a call.
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
    """Raise this process's limit on open files by ``number``, as far as the system allows."""
    try:
        import resource
    except ImportError:  # not a POSIX system, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + 256 if hard == resource.RLIM_INFINITY else min(number + 256, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _block_interrupts() -> None:
    """Block Ctrl-C in this thread, so that processes it starts inherit the block.

    The process that tracks resources starts first, as starting it unblocks Ctrl-C.
    """
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _begin_worker() -> None:
    """Set a worker up to ignore Ctrl-C, and to end when its parent process ends.

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
    """An executor on an existing Dask scheduler, or on a local cluster.

    The scheduler is the one at ``address``, such as ``tcp://host:8786``, or else in
    ``DASK_SCHEDULER_ADDRESS``. Without one, a local cluster has the given number of ``workers``.
    """

    def __init__(self, workers: int, *, address: str | None = None) -> None:
        self.workers, self.address = workers, address
        try:
            import dask
            import distributed
        except ImportError as error:
            raise MissingDependencyError(
                "the dask executor needs the extra bayesrisk-disclosure[dask]"
            ) from error
        self._dask: Any = dask
        self._distributed: Any = distributed
        self._pool: Any = None
        self._client: Any = None
        self._open = ExitStack()
        self._futures = WeakSet[Future[Any]]()

    def room(self) -> int:
        """Return the number of calls that the cluster can process at once.

        No more than that should wait there: every call that a worker holds when it dies is
        suspected of having killed it, and given up after the third time.
        """
        if self._client is None:
            return 1
        try:
            return max(1, int(sum(self._client.nthreads().values())))
        except (OSError, TimeoutError) as error:
            raise BrokenExecutor(f"the scheduler does not answer: {error}") from error

    def submit(self, fn: Callable[..., _R], /, *args: object, **kwargs: object) -> Future[_R]:
        """Send a call to the cluster, which is started by the first one."""
        if self._pool is None:
            self._connect()
        future: Future[_R] = self._pool.submit(fn, *args, **kwargs)
        self._futures.add(future)
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
        """Remove tracebacks from Dask's log messages, as a run reports errors itself."""
        names = ("distributed", "distributed.client", "tornado.application")
        handlers = {handler for name in names for handler in logging.getLogger(name).handlers}
        for place in (*handlers, logging.getLogger("asyncio")):
            place.addFilter(_has_no_traceback)
            self._open.callback(place.removeFilter, _has_no_traceback)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect from the cluster, and end it if it is local."""
        if cancel_futures:
            for future in tuple(self._futures):
                future.cancel()
        if wait:  # Dask's own way waits for ever for a call that went with a lost scheduler
            wait_for([future for future in self._futures if not future.cancelled()])
        self._pool = self._client = None
        self._open.close()


def _has_no_traceback(record: logging.LogRecord) -> bool:
    return not record.exc_info

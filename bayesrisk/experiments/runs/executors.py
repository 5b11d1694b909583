"""Ways to run independent pieces of work: in this process, or in several.

All are executors of ``concurrent.futures``.  Others register in the entry-point group
``bayesrisk.executors`` (whatever returns an executor when it is called with the number of workers),
or through :func:`register`.  A plug-in that fails to load is skipped with a warning.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._plugins import Registry
from bayesrisk.exceptions import ArgumentTypeError

__all__ = ["ProcessExecutor", "SerialExecutor", "available", "make_executor", "register"]

_R = TypeVar("_R")
_OWN = {
    "serial": "bayesrisk.experiments.runs.executors:SerialExecutor",
    "processes": "bayesrisk.experiments.runs.executors:ProcessExecutor",
    "dask": "bayesrisk.experiments.runs.executors_dask:DaskExecutor",
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


class ProcessExecutor(ProcessPoolExecutor):
    """Run in worker processes on this machine, which end with this one.

    Parameters
    ----------
    workers : int
        Number of processes.
    """

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")  # safe with threads, alike everywhere
        super().__init__(max_workers=workers, mp_context=context, initializer=_end_with_parent)
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
        with _interrupts_ignored():
            return super().submit(fn, *args, **kwargs)


def _end_with_parent() -> None:
    """Watch the process that made this worker, and end when it is gone.

    Otherwise a worker whose parent was killed would finish all it holds, and write it.  What it
    writes appears whole or not at all, so that it may stop anywhere.
    """
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


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Start processes that leave Ctrl-C to this one, which lets them finish what they do.

    A new process keeps ignoring what its parent ignores.  Only the main thread may set that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
    ArgumentTypeError
        If ``name`` is no text, or ``factory`` cannot be called.
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

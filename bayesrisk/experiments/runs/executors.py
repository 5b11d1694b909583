"""Ways to run independent pieces of work: in this process, or in several.

Others register in the entry-point group ``bayesrisk.executors`` (a class that takes the number of
workers), or through :func:`register`.  A plug-in that fails to load is skipped with a warning.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib.metadata import entry_points
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar, cast

from bayesrisk import _plugins
from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentTypeError, WorkerError
from bayesrisk.interfaces import Executor

__all__ = ["ProcessExecutor", "SerialExecutor", "available", "make_executor", "register"]

_T = TypeVar("_T")
_R = TypeVar("_R")
_GROUP = "bayesrisk.executors"
_registered: dict[str, Callable[[int], Executor]] = {}


class SerialExecutor:
    """Run everything in this process, in order.

    Parameters
    ----------
    workers : int
        Not more than one is used.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, task: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
        """Yield ``task(item)`` for every item."""
        return map(task, items)


class ProcessExecutor:
    """Run in worker processes on this machine.

    Parameters
    ----------
    workers : int
        Number of processes.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(self, task: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
        """Yield ``task(item)`` for every item, as they finish; stop the workers on leaving.

        What cannot be sent to another process is an ArgumentTypeError before anything is waited
        for: the pool finds out in a thread of its own, and Python 3.11's can wait for ever then.
        """
        _check_sendable(task, "task")
        context = multiprocessing.get_context("spawn")  # safe with threads, alike everywhere
        pool = ProcessPoolExecutor(
            max_workers=self.workers, mp_context=context, initializer=_end_with_parent
        )
        try:
            with _interrupts_ignored():
                futures = []
                for position, item in enumerate(items):
                    _check_sendable(item, f"item {position}")
                    futures.append(pool.submit(task, item))
            for future in as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise WorkerError(
                "a worker process ended before its work was done (killed, or out of memory); "
                "what was finished is kept"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


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
        Name to choose it by.
    factory : callable
        Takes the number of workers and returns an executor.

    Raises
    ------
    ArgumentTypeError
        If ``name`` is not text, or ``factory`` cannot be called.
    """
    _plugins.check_registration(name, factory, kind="executor")
    _registered[name] = factory


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
    names = {point.name for point in entry_points(group=_GROUP)}
    return sorted(names | set(_registered) | {"processes", "serial"})


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
    Executor
        Ready to run.

    Raises
    ------
    ArgumentError
        If the name is unknown, or the plug-in behind it cannot be loaded.
    MissingDependencyError
        If it needs an extra that is not installed.
    """
    workers = check.integer(workers, "workers", lower=1, upper=1024)
    built_in: dict[str, Callable[[int], Executor]] = {
        "serial": SerialExecutor,
        "processes": ProcessExecutor,
    }
    check.choice(name, "executor", tuple(available()))
    factory = _plugins.find(
        name,
        kind="executor",
        own={**built_in, **_registered},
        registered={},
        points=lambda: entry_points(group=_GROUP, name=name),
    )
    return cast(Executor, factory(workers))

"""Independent pieces of work on an executor of ``concurrent.futures``, in any order."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed, wait
from typing import Any, TypeVar

from bayesrisk.exceptions import WorkerError

__all__ = ["as_finished"]

_T = TypeVar("_T")
_R = TypeVar("_R")


def as_finished(executor: Executor, task: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
    """Yield ``task(item)`` for every item, each as soon as it is finished.

    An executor that works at once, in this process, does the next item only when the last result
    was taken.  On leaving, early or not, what has not begun is cancelled and what has is awaited;
    the executor itself stays open.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Where the work is done.
    task : callable
        What is done.
    items : iterable
        With what.

    Yields
    ------
    object
        Results, in any order.

    Raises
    ------
    WorkerError
        If a worker of the executor ended before its work was done.
    """
    waiting: set[Future[Any]] = set()
    try:
        for item in items:
            future = executor.submit(task, item)
            if future.done():
                yield future.result()
            else:
                waiting.add(future)
        for future in as_completed(waiting):
            waiting.discard(future)  # its result is whose it goes to, and not kept here
            yield future.result()
    except BrokenExecutor as error:
        raise WorkerError(
            "a worker process ended before its work was done (killed, or out of memory); "
            "what was finished is kept"
        ) from error
    finally:
        for future in waiting:
            future.cancel()
        wait(waiting)

"""Shards on a Dask cluster: the only module that imports Dask (extra ``bayesrisk[dask]``)."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from bayesrisk.exceptions import MissingDependencyError, WorkerError

_R = TypeVar("_R")


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
                self._client.run(_leave_interrupts)
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


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that made this worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

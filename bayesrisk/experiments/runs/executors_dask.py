"""Shards on a Dask cluster: the only module that imports Dask (extra ``bayesrisk[dask]``)."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from bayesrisk.exceptions import MissingDependencyError

__all__ = ["DaskExecutor"]

_T = TypeVar("_T")
_R = TypeVar("_R")


#: Pages that a cluster of our own serves: none. Dask starts an HTTP server whatever is asked,
#: on port 8787 unless told otherwise, so it gets a free port and nothing to show.
_NO_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


class DaskExecutor:
    """Run on the scheduler in ``DASK_SCHEDULER_ADDRESS``, or on a local cluster.

    The local cluster has no dashboard.

    Parameters
    ----------
    workers : int
        Number of worker processes of the local cluster.

    Raises
    ------
    MissingDependencyError
        If Dask is not installed.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        try:
            import dask
            import distributed
        except ImportError as error:
            raise MissingDependencyError(
                "the dask executor needs the extra bayesrisk[dask]"
            ) from error
        self._dask: Any = dask
        self._distributed: Any = distributed

    def run(self, task: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
        """Yield ``task(item)`` for every item, as they finish."""
        address = os.environ.get("DASK_SCHEDULER_ADDRESS")
        options: dict[str, Any] = {"address": address}
        if address is None:
            options = {
                "n_workers": self.workers,
                "threads_per_worker": 1,
                "dashboard_address": None,
                "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
            }
        with self._dask.config.set(_NO_PAGES), self._distributed.Client(**options) as client:
            futures = client.map(task, list(items), pure=False)
            for _, result in self._distributed.as_completed(futures, with_results=True):
                yield result

"""The clock of an attack or an audit: one time limit for all steps, and how it ends them."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bayesrisk._base import interrupts

#: Seconds after which a process ends whose time is over, whatever runs then.
_GRACE = 3.0


@contextmanager
def _timer(seconds: float, action: Callable[[], None]) -> Iterator[None]:
    """Call a function after some seconds, unless the block has ended by then."""
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Clock:
    """The time limit of all steps together; each step may take half of the time left."""

    def __init__(self, limit: float | None, begun: float | None = None) -> None:
        self._begun = time.monotonic() if begun is None else begun
        self.end = None if limit is None else self._begun + limit
        self.writing = threading.Lock()  # held while files are written
        self.stopped = threading.Event()  # no more limit, as only the results are left

    @contextmanager
    def guard(self, last_words: Callable[[], int]) -> Iterator[None]:
        """End this process a few seconds after the time is over, whatever it does.

        Files in progress are finished first; then last words give its status. A process that is not
        the command's own, such as a notebook's, is not ended.
        """
        if self.left is None or sys.stdout is not sys.__stdout__:
            yield
            return
        inside = True

        def end() -> None:
            with self.writing:
                if not inside or self.stopped.is_set():
                    return
                status = 1
                try:
                    status = last_words()
                    for stream in (sys.stdout, sys.stderr):
                        stream.flush()
                finally:
                    os._exit(status)

        with _timer(self.left + _GRACE, end):
            try:
                yield
            finally:
                with self.writing:
                    inside = False

    @contextmanager
    def interrupts(self, reserve: float = 0.0) -> Iterator[None]:
        """Ask this process to end once the time is over, as Ctrl-C does: finished work is kept.

        ``reserve`` are the seconds that are then left, to report that work.
        """
        if self.left is None or sys.stdout is not sys.__stdout__:
            yield
            return

        def ask() -> None:
            if not self.stopped.is_set():
                interrupts.late()

        with _timer(max(self.left - reserve, 0.01), ask):
            yield

    @property
    def passed(self) -> float:
        """Seconds since the first step began."""
        return time.monotonic() - self._begun

    @property
    def left(self) -> float | None:
        """Seconds left, at least 0.01, or None without a limit."""
        return None if self.end is None else max(self.end - time.monotonic(), 0.01)

    @property
    def share(self) -> float | None:
        """Half of the seconds left, or None without a limit."""
        return None if self.left is None else self.left / 2

    @property
    def ended(self) -> bool:
        """Whether the time limit has passed."""
        return self.end is not None and time.monotonic() >= self.end

"""Requests to end this process, Ctrl-C and SIGTERM: a flag that nothing below can swallow.

The request comes as a KeyboardInterrupt at any point of the program. Compilers, callbacks from C
and loading modules turn it into another exception, or drop it. So any failure after a request
counts as an interruption, and a dropped request is repeated.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Status of a command that its own time limit ended; what it had done is kept.
LATE = 4
#: Until a request that was dropped is repeated, and from when on a second one ends all at once.
_SECONDS = 1.0
_first: tuple[int, float] | None = None  # signal and time of the first request
_message_printed = False
_reason: tuple[int, str] | None = None  # status and words of an end that no signal asked for


class Interruption(KeyboardInterrupt):
    """A request to end; Python ends by SIGINT where one of its own class went through ``exec``."""


def ended(error: BaseException | None) -> bool:
    """Return True if an exception is a request to end, or came after one."""
    return isinstance(error, KeyboardInterrupt) or _first is not None


def check() -> None:
    """Raise an Interruption if this process was asked to end."""
    if _first is not None:
        raise Interruption


def late() -> None:
    """Ask this process to end as Ctrl-C does, since its own time limit is over."""
    global _reason
    _reason = LATE, "--time-limit is over"
    os.kill(os.getpid(), signal.SIGINT)


def tell(note: str = "") -> int:
    """Say why the command ended; return its status: 130, after SIGTERM 143, or its own."""
    global _message_printed
    _set_alarm(0.0)
    if not _message_printed:
        sys.stderr.write(f"bayesrisk: {'interrupted' if _reason is None else _reason[1]}{note}\n")
        _message_printed = _first is not None
    return 128 + (signal.SIGINT if _first is None else _first[0]) if _reason is None else _reason[0]


@contextmanager
def answered() -> Iterator[None]:
    """Let a last step run whole after a request, which another request ends."""
    global _first
    _set_alarm(0.0)
    before, _first = _first, None
    try:
        yield
    finally:
        _first = _first or before


@contextmanager
def heeded(*, last: bool = False) -> Iterator[None]:
    """Handle requests to end: leave by a SystemExit after one, unless all work was done.

    A second request, a second later or more, ends the process at once: files are whole or
    unchanged, and workers end with it. An ignored signal, as behind ``nohup``, stays ignored. If it
    is the ``last`` thing, only the end of the process follows, which a first request does not stop.
    """
    global _first, _message_printed, _reason
    hook, excepthook, before = sys.unraisablehook, sys.excepthook, {}
    if threading.current_thread() is threading.main_thread():  # no other may handle signals
        handlers = dict.fromkeys((signal.SIGINT, signal.SIGTERM), _ask)
        if hasattr(signal, "SIGALRM"):
            handlers[signal.SIGALRM] = _repeat
        before = {number: signal.getsignal(number) for number in handlers}
        for number, handler in before.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, handlers[number])
    sys.unraisablehook = lambda fault: None if ended(fault.exc_value) else hook(fault)
    # NumPy's C interface prints what ended its loading, and raises an ImportError instead.
    sys.excepthook = lambda kind, error, place: (
        None if ended(error) else excepthook(kind, error, place)
    )
    try:
        yield
    except BaseException as error:
        if not ended(error) or (isinstance(error, SystemExit) and not error.code):
            raise
        raise SystemExit(tell()) from None
    finally:
        _set_alarm(0.0)
        sys.excepthook = excepthook
        if last:
            _first = _first or (signal.SIGINT, time.monotonic())
        else:
            for number, handler in before.items():
                if handler is not None:
                    signal.signal(number, handler)
            sys.unraisablehook = hook
            if before and _ask not in before.values():
                _first, _message_printed, _reason = None, False, None


def _ask(number: int, frame: object) -> None:
    """Note a request, and stop what runs."""
    global _first
    moment = time.monotonic()
    if _first is None:
        _first = (number, moment)
        _set_alarm(_SECONDS)
        raise Interruption
    if moment - _first[1] >= _SECONDS:  # programs that start others often send the first one twice
        os.write(2, b"bayesrisk: ended at once\n")
        os._exit(128 + number)


def _repeat(number: int, frame: object) -> None:
    """Stop what runs again, unless it is stopping: then an exception is being handled."""
    _set_alarm(_SECONDS)
    if sys.exc_info()[1] is None:
        raise Interruption


def _set_alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
        signal.setitimer(signal.ITIMER_REAL, seconds)

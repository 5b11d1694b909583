"""Randomness by one keyword: the allowed seeds, and the generator that each gives."""

import functools
import reprlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    as_completed,
    wait,
)
from typing import Any, ParamSpec, TypeVar

import numpy as np

from bayesrisk._base import interrupts
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, WorkerError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_R = TypeVar("_R")
#: What gives a generator.
Seed = int | np.random.Generator | np.random.BitGenerator | np.random.SeedSequence
_MAX_BITS = 1024


def generator(seed: object, name: str = "rng", *, optional: bool = False) -> np.random.Generator:
    """Return a NumPy generator from a seed, by a whitelist of types.

    NumPy itself takes nested sequences and other objects, of any size and depth, and some of them
    end the interpreter.

    A generator is returned unchanged. A whole number must be >= 0 and have at most 1024 bits. If it
    is ``optional``, None stands for 128 bits of entropy of the operating system.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, (np.random.BitGenerator, np.random.SeedSequence)):
        return np.random.default_rng(seed)
    if seed is None and optional:
        return np.random.default_rng()
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        number = int(seed)
        if number < 0:
            raise ArgumentError(name, "must be >= 0 as a seed", shown=number)
        if number.bit_length() > _MAX_BITS:
            raise ArgumentError(
                name, f"must have at most {_MAX_BITS} bits as a seed", shown=number.bit_length()
            )
        return np.random.default_rng(number)
    rule = "must be a numpy Generator, BitGenerator, SeedSequence or a whole number >= 0"
    digits = str(seed).removesuffix(".0") if isinstance(seed, str | float) else ""
    advice = f": write {digits}" if digits.isdecimal() and len(digits) <= 40 else ""
    raise ArgumentTypeError(name, rule, shown=reprlib.repr(seed), advice=advice)


def seeded(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function that takes ``rng`` say so where another name of it is given."""

    @functools.wraps(function)
    def call(*positional: _P.args, **named: _P.kwargs) -> _R:
        for name in named.keys() & {"seed", "random_state"}:
            raise ArgumentTypeError(function.__name__, f"must be given rng, a seed, not {name}")
        return function(*positional, **named)

    return call


def named_stream(seed: int, name: str) -> np.random.Generator:
    """Return the random numbers that belong to a name, such as the code of a place.

    It is ``default_rng(SeedSequence(seed, spawn_key=...))``, with the bytes of the name as key. So
    it does not depend on other names.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(name.encode())))


# -----------------------------------------------------------------------------
# Independent pieces of work on an executor of ``concurrent.futures``, in any order.


def as_finished(
    executor: Executor,
    task: Callable[[_T], _R],
    items: Iterable[_T],
    failed: Callable[[_T, Exception], None] | None = None,
) -> Iterator[_R]:
    """Yield ``task(item)`` for every item, each as soon as it is finished.

    An executor that works at once, in this process, starts the next item only when the last result
    was taken. One with a method ``room`` holds at most that many items at a time. On leaving, early
    or not, items that have not begun are cancelled and the others awaited; the executor stays open.
    One with a method ``kill`` is ended by it after a request to end.

    ``failed`` takes an item whose task raised an error, and the error, and may return to continue.
    Without it the error is raised. A WorkerError says that a worker of the executor, or its
    scheduler, ended before its work was done.
    """
    waiting: dict[Future[Any], _T] = {}
    room: Callable[[], int] | None = getattr(executor, "room", None)
    kill: Callable[[], None] | None = getattr(executor, "kill", None)
    try:
        for item in items:
            while room is not None and len(waiting) >= room():
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield from _result(future, waiting.pop(future), failed)
            interrupts.check()
            future = executor.submit(task, item)
            if future.done():
                yield from _result(future, item, failed)
            else:
                waiting[future] = item
        for future in as_completed(list(waiting)):
            # its result is whose it goes to, and not kept here
            yield from _result(future, waiting.pop(future), failed)
    except BrokenExecutor as error:
        raise WorkerError(
            "a worker process ended before its work was done, or could not begin; what was "
            f"finished is kept: {error}"
        ) from error
    except CancelledError as error:
        raise WorkerError(
            "what gives work to the workers was lost before their work was done; what was "
            "finished is kept"
        ) from error
    except BaseException as error:
        if kill is not None and interrupts.ended(error):
            kill()
        raise
    finally:
        # Nobody may say that one is cancelled, as when the scheduler of a cluster is lost.
        wait([future for future in waiting if not future.cancel()])


def _result(
    future: Future[Any], item: _T, failed: Callable[[_T, Exception], None] | None
) -> Iterator[Any]:
    """Yield the result of a future that is done, or say that its item failed."""
    try:
        result = future.result()
    except (BrokenExecutor, CancelledError):
        raise
    except Exception as error:
        interrupts.check()  # an interrupt may have become another error
        if failed is None:
            raise
        failed(item, error)
    else:
        yield result

"""The draws behind a simulated likelihood: streams, who runs them, checks of what comes back."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._tasks import as_finished
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError

#: ``simulate(hypothesis, rng, size)`` returns int64 of shape (size,) or (size, cells).
Simulator = Callable[[int, np.random.Generator, int], ArrayLike]
Progress = Callable[[int, int], None]

MAX_VALUES = 2**27  # int64 numbers kept: 1 GB
_CHUNKS = 64  # pieces of work handed to an executor


def whole(value: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return counts or symbols as int64."""
    array = check.as_array(value, name)
    if array.dtype.kind in "iu" and array.size:
        return array.astype(np.int64, copy=False)
    return check.count_array(value, name)


@dataclass(frozen=True)
class Work:
    """What one worker does: draw a range of streams under every hypothesis."""

    simulate: Simulator
    hypotheses: int
    draws: int
    batch: int
    common: bool
    seed: int

    def __call__(self, streams: range) -> tuple[int, NDArray[np.int64]]:
        parts = [self._draw(i) for i in streams]
        _same_cells(parts)
        return streams.start, np.concatenate(parts, axis=1)

    def _draw(self, stream: int) -> NDArray[np.int64]:
        size = min(self.batch, self.draws - stream * self.batch)
        rows = []
        for hypothesis in range(self.hypotheses):
            key = (stream,) if self.common else (stream, hypothesis)
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
            rows.append(_drawn(self.simulate(hypothesis, rng, size), size))
        _same_cells(rows)
        return np.stack(rows)


def _same_cells(drawn: list[NDArray[np.int64]]) -> None:
    """Refuse observations of different widths."""
    widths = sorted({part.shape[-1] for part in drawn})
    if len(widths) > 1:
        raise ShapeError(f"simulate must observe the same cells every time, got {widths} cells")


def _drawn(value: ArrayLike, size: int) -> NDArray[np.int64]:
    drawn = whole(value, "simulate's result")
    if drawn.ndim == 1:
        drawn = drawn[:, None]
    if drawn.ndim != 2 or len(drawn) != size:
        raise ShapeError(
            f"simulate must return shape ({size},) or ({size}, cells), got {np.shape(value)}"
        )
    return drawn


def run(work: Work, executor: Executor | None, progress: Progress | None) -> NDArray[np.int64]:
    """Return every draw, shape (hypotheses, draws, cells), whoever drew it and when."""
    check.function(progress, "progress")
    if executor is not None and not isinstance(executor, Executor):
        raise ArgumentTypeError(
            f"executor must be a concurrent.futures.Executor, got {shown(executor)}"
        )
    n_streams = -(-work.draws // work.batch)
    step = max(1, -(-n_streams // _CHUNKS))
    pieces = [range(i, min(i + step, n_streams)) for i in range(0, n_streams, step)]
    found: Any = map(work, pieces) if executor is None else as_finished(executor, work, pieces)
    drawn: dict[int, NDArray[np.int64]] = {}
    done = kept = 0
    for start, part in found:
        drawn[start] = part
        done += part.shape[1]
        kept += part.size
        if kept > MAX_VALUES:
            raise ArgumentError(
                f"hypotheses * draws * cells must be at most {MAX_VALUES}, got more than {kept}"
            )
        if progress is not None:
            progress(done, work.draws)
    ordered = [drawn[piece.start] for piece in pieces]
    _same_cells(ordered)
    return np.concatenate(ordered, axis=1)

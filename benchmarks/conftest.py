"""Benchmarks state a ratio to a slow twin or a peer measured in the same run."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


@pytest.fixture
def compare(benchmark: Any, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Time two functions in turn; print the median of their ratio beside what is aimed at.

    ``ours_units`` and ``twin_units`` say how much work a call does, so that a slow twin may do
    less; the ratio is per unit.  With --benchmark-disable each runs once and nothing is timed.
    """

    def run(
        ours: Callable[[], Any],
        twin: Callable[[], Any],
        *,
        aim: str,
        ours_units: int = 1,
        twin_units: int = 1,
        rounds: int = 7,
    ) -> None:
        benchmark.pedantic(ours, rounds=rounds, warmup_rounds=1)
        if benchmark.disabled:
            twin()
            return
        pairs = [(_seconds(ours), _seconds(twin)) for _ in range(rounds + 1)][1:]
        ratios = [(a / ours_units) / (b / twin_units) for a, b in pairs]
        ratio = statistics.median(ratios)
        benchmark.extra_info["ratio"] = ratio
        nanoseconds = statistics.median(a for a, _ in pairs) / ours_units * 1e9
        shown = f"{ratio:.3g} of the twin" if ratio > 0.2 else f"{1 / ratio:.3g} times faster"
        name = request.node.name.removeprefix("test_")
        print(f"\n  {name}: {shown} (aim: {aim}); {nanoseconds:.4g} ns a unit")

    return run

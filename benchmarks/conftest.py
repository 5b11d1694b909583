"""Benchmarks state a ratio to a slow twin or a peer measured in the same run."""

import statistics
from collections.abc import Callable
from typing import Any

import pytest
from pairs import in_turn


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
        pairs = in_turn(ours, twin, rounds=rounds, ours_units=ours_units, theirs_units=twin_units)
        ratio = pairs.ratio
        benchmark.extra_info["ratio"] = ratio
        nanoseconds = statistics.median(pairs.ours) * 1e9
        shown = f"{ratio:.3g} of the twin" if ratio > 0.2 else f"{1 / ratio:.3g} times faster"
        name = request.node.name.removeprefix("test_")
        print(f"\n  {name}: {shown} (aim: {aim}); {nanoseconds:.4g} ns a unit")

    return run

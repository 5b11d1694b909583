"""Benchmarks state a ratio to a slow twin or a peer measured in the same run."""

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pairs import in_turn
from targets import Aim, Measured, value_of

_MEASURED = Measured()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--targets", type=Path, help="table of targets to bring up to date")


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[[str, Aim, float], None]:
    """Print a number beside its target, and keep it for the table of all."""

    timed = not request.config.getoption("benchmark_disable", False)

    def keep(what: str, aim: Aim, value: float) -> None:
        if timed:
            print("\n  " + _MEASURED.add(what, aim, value))

    return keep


@pytest.fixture
def compare(
    benchmark: Any, measured: Callable[[str, Aim, float], None], request: pytest.FixtureRequest
) -> Callable[..., None]:
    """Time two functions in turn; print the median of their ratio beside what is aimed at.

    ``aims`` are targets by their names, plain words that a reader of the documentation knows.
    Seconds are those of the processor in this process, unless another ``clock`` is given.

    ``ours_units`` and ``twin_units`` say how much work a call does, so that a slow twin may do
    less; the ratio is per unit.  With --benchmark-disable each runs once and nothing is timed.
    """

    def run(
        ours: Callable[[], Any],
        twin: Callable[[], Any],
        *,
        aims: Mapping[str, Aim] = MappingProxyType({}),
        ours_units: int = 1,
        twin_units: int = 1,
        rounds: int = 7,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        benchmark.pedantic(ours, rounds=rounds, warmup_rounds=1)
        if benchmark.disabled:
            twin()
            return
        units = {"ours_units": ours_units, "theirs_units": twin_units}
        pairs = in_turn(ours, twin, rounds=rounds, clock=clock, **units)
        ratio, seconds = pairs.ratio, statistics.median(pairs.ours)
        benchmark.extra_info["ratio"] = ratio
        shown = f"{ratio:.3g} of the twin" if ratio > 0.2 else f"{1 / ratio:.3g} times faster"
        name = request.node.name.removeprefix("test_").replace("_", " ")
        print(f"\n  {name}: {shown}; {seconds * 1e9:.4g} ns a unit")
        for what, aim in aims.items():
            measured(what, aim, value_of(aim, ratio, seconds))

    return run


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print every target that was measured, and bring the table up to date."""
    if not _MEASURED.rows:
        return
    terminalreporter.section("targets")
    for what, (aim, value, met) in sorted(_MEASURED.rows.items()):
        terminalreporter.line(f"{'met   ' if met == 'yes' else 'MISSED'}  {what}: {value} ({aim})")
    if (file := config.getoption("--targets")) is not None:
        _MEASURED.update(file)

"""The tables of a run, for the terminal and for the documentation."""

import csv
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from peers import linked
from peers.comparison import LeftOutError, Result, version

HEADER = ("Question", "bayesrisk", "Beside", "Time of the other / ours", "Equal", "Not the same")
OWN = ("bayesrisk-disclosure", "numpy", "scipy", "numba", "pandas", "pyarrow", "highspy")


def line(result: Result) -> str:
    """Return what the terminal shows of one comparison."""
    about = result.comparison
    return f"{about.name}: {about.question}; {result.peer}: {result.times}"


def write(results: Sequence[Result], folder: Path) -> None:
    """Write both tables: the comparisons, and what they ran on."""
    rows = [
        (
            r.comparison.question,
            f"`{r.comparison.ours}`",
            r.peer,
            r.times,
            r.comparison.equal if r.pairs else "not checked",
            r.comparison.differs,
        )
        for r in results
    ]
    table(folder / "beside-peers.csv", HEADER, rows)
    try:
        version("pytauargus")
        table(folder / "beside-peers-linked.csv", linked.HEADER, linked.rows())
    except LeftOutError as reason:
        print(f"linked tables: left out: {reason}")
    load = os.getloadavg()[2] / (os.cpu_count() or 1)
    ran = [
        ("Python", platform.python_version()),
        *((name, metadata.version(name)) for name in OWN),
        ("processors", str(os.cpu_count())),
        ("programs that wanted each processor, last 15 minutes", f"{load:.1f}"),
    ]
    table(folder / "beside-peers-run.csv", ("What", "Value"), ran)


def table(file: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as sink:
        csv.writer(sink, lineterminator="\n").writerows([header, *rows])

"""Results on standard output; progress and warnings as lines on standard error."""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import typer

import bayesrisk as br
from bayesrisk.exceptions import BayesRiskWarning, printable

#: The key of documents about made-up people, as in manifests.
MADE_UP = "made_up"
#: Between two lines of progress where nobody knows how much there is, and before the first one of
#: what is usually done sooner.
_SECONDS = 2.0
#: Takes what is done and how much there is, None where that is not known.
Advance = Callable[[int, int | None], None]


def say(*lines: str, err: bool = True) -> None:
    """Print lines, in which names from files may stand: each stays one line."""
    typer.echo("\n".join(map(printable, lines)), err=err)


def print_answer(document: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print one JSON document, or lines that say the same to people: first, if they are made up."""
    if isinstance(document, Mapping) and document.get(MADE_UP):
        lines = [br.datasets.MADE_UP, *lines]
    if as_json:
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
    else:
        say(*lines, err=False)


def table_lines(rows: list[dict[str, Any]], title: str) -> list[str]:
    """Return a title and aligned columns, the same on a terminal and in a pipe."""
    texts = [[f"{v:.6g}" if isinstance(v, float) else str(v) for v in r.values()] for r in rows]
    lines = [[name.replace("_", " ") for name in rows[0]], *texts]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    if isinstance([*rows[0].values()][-1], str):  # words at the end, which may be long
        widths[-1] = 0
    return [title, *("  " + "  ".join(map(str.rjust, line, widths)) for line in lines)]


def listed(counts: Mapping[str, object], separator: str = " ") -> str:
    """Return numbers and what they count on one line: ``3 solved, 1 infeasible``."""
    return ", ".join(f"{count}{separator}{name}" for name, count in counts.items())


def shard_lines(summary: Any) -> Iterator[str]:
    """Yield lines about the shards of a run, and whether others must finish it."""
    yield (
        f"{summary.computed + summary.resumed} of {summary.shards} parts done "
        f"({summary.resumed} were already there), in {summary.folder}"
    )
    if getattr(summary, "taken_as_true", False):
        yield "the published counts were taken as true: what is said holds if they were"
    if not summary.complete:
        yield "shards of other runs are missing: results are written with the last of them"


@contextmanager
def progress(
    *,
    quiet: bool,
    title: str,
    unit: str = "shards",
    patient: bool = False,
    left: Sequence[str] = ("",),
) -> Iterator[Advance | None]:
    """Show a bar on a terminal, plain lines elsewhere, nothing when quiet.

    Where it is patient, there are no lines for what is done within two seconds.  The last text of
    ``left`` is the time that is left.
    """
    if quiet:
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console, title, unit, left) as advance:
            yield advance
        return
    last, last_time, pending = -1, time.monotonic(), ""
    first = last_time + _SECONDS if patient else last_time

    def log(count: int, total: int | None) -> None:
        nonlocal last, last_time, pending
        clock = datetime.now().astimezone().strftime("%H:%M:%S")
        bound = "" if total is None else f" of {total}"
        pending = f"{clock} {title}: {count}{bound} {unit}{left[-1]}"
        if total is None:
            due = time.monotonic() - last_time >= _SECONDS
        else:
            due = count * 10 // max(total, 1) > last  # about ten lines, however many shards
            last = max(last, count * 10 // max(total, 1))
        if due and time.monotonic() >= first:
            say(pending)
            last_time, pending = time.monotonic(), ""

    yield log
    if pending and time.monotonic() >= first:
        say(pending)


@contextmanager
def _bar(console: Any, title: str, unit: str, left: Sequence[str]) -> Iterator[Advance]:
    """Show a bar, or a count while nobody knows how much there is."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task(title, total=None, count="")

        def show(number: int, total: int | None) -> None:
            count = f"{number:,}" if total is None else f"{number:,}/{total:,}"
            bar.update(task, completed=number, total=total, count=f"{count} {unit}{left[-1]}")

        yield show


def counter(advance: Advance | None, total: int | None = None) -> Callable[..., None]:
    """Return a function that adds rows or steps, one by default, to those done of a total."""
    count = 0

    def add(number: int = 1) -> None:
        nonlocal count
        count += number
        if advance is not None:
            advance(count, total)

    return add


@contextmanager
def warnings_as_lines() -> Iterator[list[warnings.WarningMessage]]:
    """Say each of our warnings once, in one line on standard error; provide the list of all."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BayesRiskWarning)
        try:
            yield caught
        finally:
            ours = (w for w in caught if issubclass(w.category, BayesRiskWarning))
            for text in dict.fromkeys(str(w.message) for w in ours):
                say(f"bayesrisk: warning: {text}")


def write_fragment(report: Path) -> None:
    """Write a report as a part of another page, beside it."""
    from bayesrisk._base.disk import write_bytes
    from bayesrisk.experiments.pages import fragment

    page = fragment(report.read_text("utf-8")).encode()
    write_bytes(report.with_name(report.name.replace("report", "fragment")), page)

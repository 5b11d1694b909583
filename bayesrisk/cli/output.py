"""What commands print: results on standard output, progress and warnings on standard error."""

import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import typer

from bayesrisk.exceptions import BayesRiskWarning

#: Between two lines of progress where nobody knows how much there is, and before the first one of
#: what is usually done sooner.
_SECONDS = 2.0
#: Takes what is done and how much there is, None where that is not known.
Advance = Callable[[int, int | None], None]


def print_json(document: Any) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def print_table(rows: list[dict[str, Any]], title: str) -> None:
    """Print aligned columns, the same on a terminal and in a pipe."""
    texts = [[f"{v:.6g}" if isinstance(v, float) else str(v) for v in r.values()] for r in rows]
    lines = [[name.replace("_", " ") for name in rows[0]], *texts]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    typer.echo(title)
    for line in lines:
        cells = (text.rjust(width) for text, width in zip(line, widths, strict=True))
        typer.echo("  " + "  ".join(cells))


def print_shards(summary: Any) -> None:
    """Print what a run in shards did, and whether others must finish it."""
    typer.echo(
        f"{summary.computed + summary.resumed} of {summary.shards} parts done "
        f"({summary.resumed} were already there), in {summary.folder}"
    )
    if getattr(summary, "taken_as_true", False):
        typer.echo("the published counts were taken as true: what is said holds if they were")
    if not summary.complete:
        typer.echo("shards of other runs are missing: results are written with the last of them")


@contextmanager
def progress(
    *, quiet: bool, title: str, unit: str = "shards", patient: bool = False
) -> Iterator[Advance | None]:
    """Show a bar on a terminal, plain lines elsewhere, nothing when quiet.

    Where it is patient, there are no lines for what is done within two seconds.
    """
    if quiet:
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with _bar(console, title, unit) as advance:
            yield advance
        return
    last, said, unsaid = -1, time.monotonic(), ""
    first = said + _SECONDS if patient else said

    def log(done: int, total: int | None) -> None:
        nonlocal last, said, unsaid
        now = datetime.now().astimezone().strftime("%H:%M:%S")
        of = "" if total is None else f" of {total}"
        unsaid = f"{now} {title}: {done}{of} {unit}"
        if total is None:
            due = time.monotonic() - said >= _SECONDS
        else:
            due = done * 10 // max(total, 1) > last  # about ten lines, however many shards
            last = max(last, done * 10 // max(total, 1))
        if due and time.monotonic() >= first:
            typer.echo(unsaid, err=True)
            said, unsaid = time.monotonic(), ""

    yield log
    if unsaid and time.monotonic() >= first:
        typer.echo(unsaid, err=True)


@contextmanager
def _bar(console: Any, title: str, unit: str) -> Iterator[Advance]:
    """Show a bar, or a count while nobody knows how much there is."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task(title, total=None, count="")

        def show(done: int, total: int | None) -> None:
            count = f"{done:,}" if total is None else f"{done:,}/{total:,}"
            bar.update(task, completed=done, total=total, count=f"{count} {unit}")

        yield show


def rows_done(advance: Advance | None) -> Callable[[int], None]:
    """Return a function that adds rows to those done, of nobody knows how many."""
    done = 0

    def add(rows: int) -> None:
        nonlocal done
        done += rows
        if advance is not None:
            advance(done, None)

    return add


def steps_done(advance: Advance | None, steps: int) -> Callable[[], None]:
    """Return a function that says that another of so many steps is done."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if advance is not None:
            advance(done, steps)

    return step


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
                typer.echo(f"bayesrisk: warning: {text}", err=True)

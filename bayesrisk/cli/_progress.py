"""Progress of a long command, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ["progress"]


@contextmanager
def progress(
    *, quiet: bool, title: str, unit: str = "shards"
) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on a terminal, plain lines elsewhere, nothing when quiet; always on stderr."""
    if quiet:
        yield None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        last = -1

        def log(done: int, total: int) -> None:
            nonlocal last
            if done * 10 // total > last:  # about ten lines, however many shards
                last = done * 10 // total
                now = datetime.now().astimezone().strftime("%H:%M:%S")
                typer.echo(f"{now} {title}: {done} of {total} {unit}", err=True)

        yield log
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

"""Options that mean the same in every command, and how their texts are read."""

import csv
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import interrupts
from bayesrisk.cli.printing import (
    print_answer,
    progress,
    shard_lines,
    warnings_as_lines,
    write_fragment,
)
from bayesrisk.exceptions import ArgumentError

DialectOption = Annotated[
    str | None,
    "What the codes of files of persons mean: schema (sex 0 male, 1 female), archive (1 "
    "male, 0 female), pums (1 male, 2 female), labels (male, female; Y, N).",
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="Output folder.")]
SchemaOption = Annotated[
    str | None, "Schema of a file of records, a name or a .toml file [the tables' own]."
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
SEED = typer.Option(help="Seed: the same one gives the same bytes.")
SeedOption = Annotated[int, SEED]
TakenOption = Annotated[
    bool,
    typer.Option(
        "--taken-as-true", help="Read counts of a release that need not be true as if they were."
    ),
]
RuleOption = Annotated[
    bool, typer.Option("--no-rule", help="The rule by which counts are withheld is not known.")
]
SensitivityOption = Annotated[
    str,
    "L2 sensitivity that rho refers to: a number, add-remove (1) or change-one "
    "(the square root of 2).",
]
FragmentOption = Annotated[
    bool, typer.Option("--fragment", help="Also the report as a part of a page: fragment.html.")
]


def parse_number(text: str, name: str) -> float:
    """Return a number that may be written as a fraction."""
    from bayesrisk.accounting.budget import exact_number

    return float(exact_number(text, name))


def parse_count(text: str, name: str) -> int:
    """Return a whole number."""
    from bayesrisk._base import validation as check

    if not re.fullmatch(r"\s*[+-]?[0-9]{1,300}(\.0*)?\s*", text):
        raise ArgumentError(name, "must be a whole number", got=text)
    return check.integer(int(text.partition(".")[0]), name)


def optional_number(text: str | None, name: str) -> float | None:
    """Return a number, or None where none was given."""
    return None if text is None else parse_number(text, name)


def parse_sensitivity(text: str) -> float:
    """Return a sensitivity given as a number or by what a neighbour does."""
    from bayesrisk._base import validation as check

    return parse_number(str(check.by_neighbour(text)), "sensitivity")


def parse_names(texts: str | list[str] | None, separator: str = ",") -> list[str]:
    """Return names that may be repeated, and separated by commas.

    One that holds a comma stands in double quotes, as in a CSV file.
    """
    parts = [texts] if isinstance(texts, str) else texts or []
    if separator == ",":
        rows = (row for text in parts for row in csv.reader([text], skipinitialspace=True))
    else:
        rows = (re.split(separator, text) for text in parts)
    return [name.strip() for row in rows for name in row if name.strip()]


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: the same for every command that runs a study."""

    workers: Annotated[int, "Worker processes."] = 1
    executor: Annotated[str | None, "serial, processes, dask or a plug-in."] = None
    scheduler: Annotated[str | None, "Address of a Dask scheduler [a cluster on this machine]."] = (
        None
    )
    shard: Annotated[str, "i/n: only every n-th shard, from the i-th."] = "1/1"
    resume: Annotated[bool, "Keep finished shards."] = False
    fragment: FragmentOption = False
    as_json: JsonOption = False
    quiet: QuietOption = False

    def embed(self, report: Path) -> None:
        """Write a report as a part of another page, where that is asked for."""
        if self.fragment and report.is_file():
            write_fragment(report)

    def run(
        self, study: Any, folder: Any, title: str, computed: Callable[[], object] | None = None
    ) -> Any:
        """Run a study into a folder with these options, showing its progress.

        ``computed`` is called once only the results are left.
        """
        share, left = _share(self.shard), [""]

        def announce(text: str, begun: bool) -> None:
            if begun:
                left.append(f", {text}")
            else:
                typer.echo(f"{title}: {text}", err=True)

        def advance(count: int, total: int) -> None:
            if computed is not None and count == total:
                computed()
            if show is not None:
                show(count, total)

        silent = self.quiet or self.as_json
        with (
            self._executor() as executor,
            warnings_as_lines(),
            progress(quiet=silent, title=title, left=left) as show,
        ):
            try:
                summary = br.run(
                    study,
                    folder,
                    workers=self.workers,
                    executor=executor,
                    shard=share,
                    resume=self.resume,
                    progress=advance,
                    announce=None if silent else announce,
                )
            except (KeyboardInterrupt, Exception) as stop:
                if not interrupts.ended(stop):
                    raise
                advice = "finished shards are kept, go on with --resume"
                raise KeyboardInterrupt(advice) from stop
        if summary.complete:
            self.embed(Path(folder) / "report.html")
        return summary

    def show(self, summary: Any, before: Iterable[str] = (), after: Iterable[str] = ()) -> None:
        """Print what a run found: one JSON document, or lines before and after its parts."""
        lines = [*before, *shard_lines(summary), *after]
        print_answer(summary.to_dict(), lines, as_json=self.as_json)

    @contextmanager
    def _executor(self) -> Iterator[Any]:
        """Provide the executor asked for: a name, or one on a scheduler."""
        if self.scheduler is None:
            yield self.executor
            return
        if self.executor not in (None, "dask"):
            raise ArgumentError(f"--scheduler goes with --executor dask, got {self.executor}")
        from bayesrisk.experiments.runs.executors import DaskExecutor  # slow to import

        with DaskExecutor(self.workers, address=self.scheduler) as pool:
            yield pool

    def refuse(self, advice: str) -> None:
        """Refuse options of long runs that were given where there is none."""
        for field in dataclasses.fields(self):
            is_set = getattr(self, field.name) != field.default
            if is_set and field.name not in ("as_json", "quiet", "fragment"):
                raise ArgumentError(f"--{field.name} {advice}")


def _share(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    try:
        return int(part), int(parts)
    except ValueError as error:
        raise ArgumentError("shard", "must be i/n, such as 2/8", got=text) from error

"""Options that mean the same in every command, and how their texts are read."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import typer

from bayesrisk import _interrupts
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError

DialectOption = Annotated[
    str | None,
    typer.Option(
        help="What the codes of files of persons mean: schema (sex 0 male, 1 female), archive (1 "
        "male, 0 female), pums (1 male, 2 female), labels (male, female; Y, N)."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
SEED = typer.Option(help="Seed: the same one gives the same bytes.")
SeedOption = Annotated[int, SEED]
SolverOption = Annotated[str, typer.Option(help="highs, pulp:highs, pulp:cbc, ...")]
TakenOption = Annotated[
    bool,
    typer.Option(
        "--taken-as-true", help="Read counts of a release that need not be true as if they were."
    ),
]
SensitivityOption = Annotated[
    str,
    typer.Option(
        help="L2 sensitivity that rho refers to: a number, add-remove (1) or change-one "
        "(the square root of 2)."
    ),
]


@dataclass(frozen=True)
class RunOptions:
    """How a study runs: the same options for every command that runs one."""

    workers: Annotated[int, typer.Option(help="Worker processes.")] = 1
    executor: Annotated[str | None, typer.Option(help="serial, processes, dask or a plug-in.")] = (
        None
    )
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler [a cluster on this machine].")
    ] = None
    shard: Annotated[str, typer.Option(help="i/n: only every n-th shard, from the i-th.")] = "1/1"
    resume: Annotated[bool, typer.Option("--resume", help="Keep finished shards.")] = False
    as_json: JsonOption = False
    quiet: QuietOption = False

    def run(self, study: Any, folder: Any, title: str) -> Any:
        """Run a study into a folder with these options, showing its progress."""
        from bayesrisk.cli.output import progress, warnings_as_lines
        from bayesrisk.experiments import run

        share = _share(self.shard)
        with (
            self._executor() as executor,
            warnings_as_lines(),
            progress(quiet=self.quiet or self.as_json, title=title) as advance,
        ):
            try:
                return run(
                    study,
                    folder,
                    workers=self.workers,
                    executor=executor,
                    shard=share,
                    resume=self.resume,
                    progress=advance,
                )
            except (KeyboardInterrupt, Exception) as stop:
                if not _interrupts.ended(stop):
                    raise
                kept = "finished shards are kept, go on with --resume"
                raise KeyboardInterrupt(kept) from stop

    @contextmanager
    def _executor(self) -> Iterator[Any]:
        """Provide the executor asked for: a name, or one on a scheduler."""
        if self.scheduler is None:
            yield self.executor
            return
        if self.executor not in (None, "dask"):
            raise ArgumentError(f"--scheduler goes with --executor dask, got {self.executor}")
        from bayesrisk.experiments.runs.executors_dask import DaskExecutor  # slow to import

        with DaskExecutor(self.workers, address=self.scheduler) as pool:
            yield pool

    def refuse(self, advice: str) -> None:
        """Refuse options of long runs that were given where there is none.

        Raises
        ------
        ArgumentError
            If one has another value than its default.
        """
        for field in dataclasses.fields(self):
            given = getattr(self, field.name) != field.default
            if given and field.name not in ("as_json", "quiet"):
                raise ArgumentError(f"--{field.name} {advice}")


def _share(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    try:
        return int(part), int(parts)
    except ValueError as error:
        raise ArgumentError(f"shard must be i/n, such as 2/8, got {shown(text)}") from error


def flattened(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose options are the fields of the dataclasses that the function takes.

    A command line has no objects, only options; a function with twenty of them has no shape.
    """
    flat: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        if not dataclasses.is_dataclass(kind):
            flat.append(parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind
        inner = get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            elif default is dataclasses.MISSING:
                default = parameter.empty
            made_of = inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default)
            flat.append(made_of.replace(annotation=inner[field.name]))

    def command(**given: Any) -> None:
        made = {
            name: kind(**{f.name: given.pop(f.name) for f in dataclasses.fields(kind)})
            for name, kind in groups.items()
        }
        function(**given, **made)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {p.name: p.annotation for p in flat}
    command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return command


def number(text: str, name: str) -> float:
    """Return a number that may be written as a fraction."""
    from bayesrisk.accounting import exact_number

    return float(exact_number(text, name))


def optional_number(text: str | None, name: str) -> float | None:
    """Return a number, or None where none was given."""
    return None if text is None else number(text, name)


def sensitivity_of(text: str) -> float:
    """Return a sensitivity given as a number or by what a neighbour does."""
    from bayesrisk.accounting.budget import SENSITIVITIES

    if text in SENSITIVITIES:
        return float(SENSITIVITIES[text])
    try:
        return number(text, "sensitivity")
    except ArgumentError as error:
        from bayesrisk import _validation as check

        words = ", ".join(SENSITIVITIES)
        advice = check.did_you_mean(text, SENSITIVITIES)
        raise ArgumentError(
            f"sensitivity must be a number or one of {words}, got {shown(text)}{advice}"
        ) from error


def names(texts: str | list[str] | None) -> list[str]:
    """Return names that may be repeated, and separated by commas."""
    parts = [texts] if isinstance(texts, str) else texts or []
    return [name.strip() for text in parts for name in text.split(",") if name.strip()]


@contextmanager
def called(name: str, option: str) -> Iterator[None]:
    """Say the name of an option where an error says that of an argument."""
    try:
        yield
    except ArgumentError as error:
        text = str(error)
        if not text.startswith(f"{name} "):
            raise
        raise type(error)(option + text.removeprefix(name)) from error

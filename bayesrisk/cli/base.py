"""Data that commands take: a path, or ``sample:NAME`` for what ships with the package."""

import copy
import dataclasses
import errno
import inspect
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

import bayesrisk as br
from bayesrisk._base import interrupts
from bayesrisk._base.disk.text import IN_PIECES
from bayesrisk.exceptions import ArgumentError, BayesRiskWarning, DataError, printable, quote

#: The key of documents about made-up people, as in manifests.
MADE_UP = "made_up"

# -----------------------------------------------------------------------------
# What all commands have in common: groups in ``--help``, interrupts, names in messages.


_COUNT = re.compile(r"-\.?\d")
_ORDER = ("Risk", "Protect", "Attack", "Data", "Setup")
#: Arguments of the package that options of other names give; the first of these wins.
_GIVEN_BY = {
    "name of the mechanism": ("mechanism",),
    "name of the solver": ("solver",),
    "name of the executor": ("executor",),
    "rng": ("seed", "simulation_seed"),
    "shard[0]": ("shard",),
    "shard[1]": ("shard",),
    "protections": ("protection",),
    "rate": ("swap_rate",),
    "blocks": ("n_blocks",),
    "level": ("level", "levels"),
}
#: The word that ``--help`` shows for what an option takes, where its type does not say it.
_WORDS = {
    "RATIO": ("exceeds", "max_risk"),
    "NUMBER": (
        "prior", "probability", "rho", "rho_block", "rho_group", "sigma2", "epsilon", "delta",
        "sensitivity", "swap_rate",
    ),
    "SECONDS": ("time_limit",),
    "NAMES": ("columns", "keys", "levels", "place", "tables", "without"),
    "NAME=NUMBERS": ("cuts",),
    "NAME=VALUE": ("changes",),
    "KEY=VALUE": ("settings",),
    "LAW": ("group_prior",),
    "i/n": ("shard",),
}  # fmt: skip
_WORD_OF = {name: word for word, names in _WORDS.items() for name in names}
_WORD_OF_TYPE = {int: "N", float: "NUMBER", Path: "PATH"}


#: Exit statuses where what is printed cannot be: the reader of a pipe went away, as shells say it.
_UNWRITTEN, _READER_GONE = 1, 141


@contextmanager
def _printing() -> Iterator[None]:
    """End a command whose output cannot be written: in one line, or silently with its reader."""
    if sys.stdout is None:  # the next file that is opened would take its place
        typer.echo("bayesrisk: standard output could not be written: it is closed", err=True)
        raise typer.Exit(_UNWRITTEN)
    try:
        yield
    except OSError as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        if last is None or last.tb_frame.f_code.co_name != "echo":
            raise
        broken = error.errno == errno.EPIPE
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr) if broken else (sys.stdout,):
            with suppress(OSError):  # what it still holds is written when the process ends
                os.dup2(nowhere, stream.fileno())
        if broken:
            raise typer.Exit(_READER_GONE) from None
        with suppress(OSError):
            text = f"bayesrisk: standard output could not be written: {error.strerror}"
            typer.echo(text, err=True)
        raise typer.Exit(_UNWRITTEN) from None
    except Exception as error:  # of Typer, whose errors have no public name: words of the line
        if isinstance(words := getattr(error, "message", None), str):
            error.message = "\n".join(map(printable, words.split("\n")))  # type: ignore[attr-defined]
        raise


class Command(TyperCommand):
    """A command: Ctrl-C ends it in one line, and errors name the option that was given."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, without types of Python."""
        for title in ("Arguments", "Options"):
            records = (
                parameter.get_help_record(ctx)
                for parameter in self.get_params(ctx)
                if f"{parameter.param_type_name}s" == title.lower()
            )
            rows = [(row[0].partition(" <")[0], row[1]) for row in records if row is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; a negative number looks like an option."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # Typer's own errors have no public name
            name = str(getattr(error, "option_name", ""))
            if not _COUNT.match(name):
                raise
            raise typer.BadParameter(
                f"{name} is read as an option; put -- before negative counts, after all options: "
                f"{ctx.command_path} ... -- {name}",
                ctx=ctx,
            ) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            advice = f"; {stop}" if stop.args else ""  # a run says what becomes of it
            raise typer.Exit(interrupts.tell(advice)) from None
        except ArgumentError as error:
            options = {
                p.name: max(p.opts, key=len) for p in self.params if p.param_type_name == "option"
            }
            names = _GIVEN_BY.get(error.argument, (error.argument,))
            option = next((options[name] for name in names if name in options), None)
            if option is None:
                raise
            raise error.renamed(option) from error


class Commands(TyperGroup):
    """The commands, in groups by what they are for."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the words, which may ask for help."""
        with _printing():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _printing():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> Any:
        """Return the options, off if not given: reading "nothing" takes Typer a while."""
        parameters = super().get_params(ctx)
        for option in parameters:
            option.default = False if option.default is None else option.default
        return parameters

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None)
            title = panel if panel in _ORDER else "Commands"
            groups.setdefault(title, []).append((name, command.get_short_help_str(formatter.width)))
        for title in (*_ORDER, "Commands"):
            if title in groups:
                with formatter.section(title):
                    formatter.write_dl(groups[title])


# -----------------------------------------------------------------------------
# What commands print: results on standard output, progress and warnings on standard error.


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
    return [title, *("  " + "  ".join(map(str.rjust, line, widths)) for line in lines)]


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


# -----------------------------------------------------------------------------
# Options that mean the same in every command, and how their texts are read.


DialectOption = Annotated[
    str | None,
    "What the codes of files of persons mean: schema (sex 0 male, 1 female), archive (1 "
    "male, 0 female), pums (1 male, 2 female), labels (male, female; Y, N).",
]
RecordsArgument = Annotated[
    Path, typer.Argument(help="Records (.parquet, .csv), a folder of microdata, or sample:NAME.")
]
TablesArgument = Annotated[
    Path, typer.Argument(help="Folder of published tables, or of a release.")
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="Output folder.")]
SchemaOption = Annotated[
    str | None, "Schema of a file of records, a name or a .toml file [the tables' own]."
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
SEED = typer.Option(help="Seed: the same one gives the same bytes.")
SeedOption = Annotated[int, SEED]
SolverOption = Annotated[str, "highs, pulp:highs, pulp:cbc, ..."]
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


def write_fragment(report: Path) -> None:
    """Write a report as a part of another page, beside it."""
    from bayesrisk._base.disk import write_bytes
    from bayesrisk.experiments.pages import fragment

    page = fragment(report.read_text("utf-8")).encode()
    write_bytes(report.with_name(report.name.replace("report", "fragment")), page)


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

    def run(self, study: Any, folder: Any, title: str) -> Any:
        """Run a study into a folder with these options, showing its progress."""
        share, left = _share(self.shard), [""]

        def announce(text: str, begun: bool) -> None:
            if begun:
                left.append(f", {text}")
            else:
                typer.echo(f"{title}: {text}", err=True)

        silent = self.quiet or self.as_json
        with (
            self._executor() as executor,
            warnings_as_lines(),
            progress(quiet=silent, title=title, left=left) as advance,
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


def flattened(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose options are the fields of the dataclasses that the function takes.

    A command line has no objects, only options; a function with twenty of them has no shape.  An
    annotation may have the words of ``--help`` alone, and a flag has no opposite then.
    """
    flat: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        kind = hints[parameter.name]
        if not dataclasses.is_dataclass(kind):
            flat.append(_option(parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY)))
            continue
        groups[parameter.name] = kind
        inner = get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            elif default is dataclasses.MISSING:
                default = parameter.empty
            option = inspect.Parameter(field.name, parameter.KEYWORD_ONLY, default=default)
            flat.append(_option(option.replace(annotation=inner[field.name])))

    def command(**values: Any) -> None:
        objects = {
            name: kind(**{f.name: values.pop(f.name) for f in dataclasses.fields(kind)})
            for name, kind in groups.items()
        }
        function(**values, **objects)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {p.name: p.annotation for p in flat}
    command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return command


def _option(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter whose annotation has an option, with a word for what it takes.

    The annotation may have had only what ``--help`` says.
    """
    kind, option = get_args(parameter.annotation)
    if isinstance(option, str):
        flags = [f"--{parameter.name.replace('_', '-')}"] if kind is bool else []
        option = typer.Option(*flags, help=option)
    one = kind
    while inner := [part for part in get_args(one) if part is not type(None)]:
        one = inner[0]  # of a list, or of what may be None
    if isinstance(option, OptionInfo) and one is not bool:
        option, word = copy.copy(option), _WORD_OF_TYPE.get(one, "NAME")
        option.metavar = _WORD_OF.get(parameter.name, word)
    return parameter.replace(annotation=Annotated[kind, option])


def number(text: str, name: str) -> float:
    """Return a number that may be written as a fraction."""
    from bayesrisk.accounting.budget import exact_number

    return float(exact_number(text, name))


def optional_number(text: str | None, name: str) -> float | None:
    """Return a number, or None where none was given."""
    return None if text is None else number(text, name)


def parse_sensitivity(text: str) -> float:
    """Return a sensitivity given as a number or by what a neighbour does."""
    from bayesrisk.accounting.budget import SENSITIVITIES

    if text in SENSITIVITIES:
        return float(SENSITIVITIES[text])
    try:
        return number(text, "sensitivity")
    except ArgumentError as error:
        from bayesrisk._base import validation as check

        words = ", ".join(SENSITIVITIES)
        advice = check.did_you_mean(text, SENSITIVITIES)
        raise ArgumentError(
            "sensitivity", f"must be a number or one of {words}", got=text, advice=advice
        ) from error


def listed(counts: Mapping[str, object], separator: str = " ") -> str:
    """Return numbers and what they count on one line: ``3 solved, 1 infeasible``."""
    return ", ".join(f"{count}{separator}{name}" for name, count in counts.items())


def names(texts: str | list[str] | None) -> list[str]:
    """Return names that may be repeated, and separated by commas."""
    parts = [texts] if isinstance(texts, str) else texts or []
    return [name.strip() for text in parts for name in text.split(",") if name.strip()]


@contextmanager
def renamed(options: Mapping[str, str]) -> Iterator[None]:
    """Let errors about arguments name the options that give these."""
    try:
        yield
    except ArgumentError as error:
        if error.argument not in options:
            raise
        raise error.renamed(options[error.argument]) from error


@contextmanager
def advised(usual: str, better: str) -> Iterator[None]:
    """Give better advice than the usual one in errors about data."""
    try:
        yield
    except DataError as error:
        if error.advice != usual:
            raise
        raise error.advised(better) from error


_PREFIX = "sample:"
MICRODATA = "microdata"
#: What to do about records that are too many, in a file, in a folder and in one by place.
FILE_BY_PLACE = ": add --by county, which holds one county at a time"
FOLDER_BY_PLACE = ": give its file of records instead, with --by county, which holds one at a time"
WHOLE_BY_PLACE = ": leave out --whole, which holds one place at a time"
MEASUREMENTS = "noisy measurements"
#: Folders with ``records.csv``, and the schema and tables that it goes with.
RECORDS = "records with tables of their own"
#: Kinds of which no sample ships: commands make them.
TABLES = "published tables"
SWEEPS = "settings of a sweep"
AUDITS = "settings of an audit"
#: What a sample is, by what the catalogue says or the ending of its file; folders have none.
_KINDS = {
    "audit": AUDITS,
    "records": RECORDS,
    "": MICRODATA,
    ".zip": MEASUREMENTS,
    ".csv": "a table",
    ".toml": SWEEPS,
}


def data_path(argument: Path, kind: str, part: str = "") -> Path:
    """Return the path of the data that an argument names, a file, a folder or ``sample:NAME``.

    The command takes data of a ``kind``, or ``part``, a file of a sample's folder.
    """
    text = str(argument)
    if not text.startswith(_PREFIX):
        if not os.path.lexists(argument):
            raise ArgumentError(f"no such file or folder: {argument}")
        if kind == TABLES and _is_microdata(argument):
            raise ArgumentError(
                f"{argument} holds microdata, not tables: run `bayesrisk tabulate` first"
            )
        return argument

    name = text.removeprefix(_PREFIX)
    fitting = _sample_names(kind)
    if name not in fitting:
        is_ = f"is {_kind(name)}" if name in br.datasets.names() else "is none"
        have = f"samples of this kind: {', '.join(fitting)}" if fitting else "none ships"
        raise ArgumentError(f"{text} must be a sample of {kind}, but {name!r} {is_}; {have}")
    folder = br.datasets.path(name)
    if part and not (folder / part).is_file():
        raise ArgumentError(f"{text} must hold {part}, but this sample does not")
    return folder / part


def made_up_mark(*sources: Path) -> dict[str, Any]:
    """Return the mark of a document about data whose people are made up: nothing of others."""
    return {MADE_UP: True} if any(map(br.datasets.is_made_up, sources)) else {}


def _is_microdata(folder: Path) -> bool:
    """Return whether a folder is one of microdata, as ``simulate`` makes it."""
    names = {"persons.parquet", "households.parquet"}
    return not (folder / "_manifest.json").exists() and any((folder / n).exists() for n in names)


def _kind(name: str) -> str:
    entry = br.datasets.catalogue()[name]
    return _KINDS[entry.get("kind", Path(str(entry["file"])).suffix)]


def audit_settings_path(argument: Path) -> Path | None:
    """Return the path of the settings of an audit, which a sample may be; None if it is none."""
    if str(argument).startswith(_PREFIX):
        name = str(argument).removeprefix(_PREFIX)
        return data_path(argument, AUDITS) if name in _sample_names(AUDITS) else None
    return argument if argument.suffix.lower() == ".toml" else None


def record_path(argument: Path) -> Path:
    """Return the path of microdata or of a file of records, which a sample may hold."""
    name = str(argument).removeprefix(_PREFIX)
    if str(argument).startswith(_PREFIX) and name in _sample_names(RECORDS):
        return data_path(argument, RECORDS, "records.csv")
    return data_path(argument, MICRODATA)


def record_pieces(
    path: Path, wanted: "br.Schema", schema: "str | br.Schema | None", dialect: str | None
) -> "br.Microdata | Iterator[br.Records]":
    """Return the microdata of a folder, or the pieces of a file of records.

    These are in the schema that is named, or else in that of the tables.  Where there are other
    codings of it, codes may be those of a dialect: the one that is said or that the file says of
    itself, and of a file whose columns are not the schema's one of them must say it.
    """
    from bayesrisk.tables.exchange import Partitions
    from bayesrisk.tables.records import CODINGS, iter_records

    if path.is_dir():
        check_folder_names_its_own(schema, dialect)
        with advised(IN_PIECES, WHOLE_BY_PLACE if Partitions.there(path) else FOLDER_BY_PLACE):
            return br.Microdata.read(path)
    record_schema = schema if isinstance(schema, br.Schema) else wanted
    if isinstance(schema, str):
        with renamed({"name": "--schema"}):
            record_schema = load_schema(schema, geography=wanted.geography.name)
    if record_schema.name not in CODINGS.builtin:
        if dialect is not None:
            schemas = " or ".join(CODINGS.builtin)
            raise ArgumentError(
                f"--dialect goes with records of the schema {schemas}, got {record_schema.name}"
            )
        return iter_records(path, schema=record_schema)
    codings = CODINGS.make(record_schema.name)
    with renamed({"dialect": "--dialect"}):
        coding = codings.coding(path, dialect)
    if coding is None:
        return iter_records(path, schema=record_schema)
    return codings.pieces(path, coding)


@contextmanager
def split_records(
    pieces: "br.Microdata | Iterator[br.Records]",
    output: Path,
    level: str,
    places: str | list[str] | None = None,
    *,
    made_up: bool = False,
) -> Iterator[Path]:
    """Provide records put down by place beside an output, and remove them at the end."""
    from bayesrisk._base import disk
    from bayesrisk.experiments.by_place import split_by_place

    with disk.scratch_folder(output) as folder:
        with renamed({"level": "--by", "places": "--places"}):
            split_by_place(pieces, folder / "records", level=level, places=places, made_up=made_up)
        yield folder / "records"


def check_folder_names_its_own(schema: "str | br.Schema | None", dialect: str | None) -> None:
    """Refuse options that say what a folder of microdata says itself."""
    for option, value in (("--schema", schema), ("--dialect", dialect)):
        if value is not None:
            raise ArgumentError(f"{option} goes with a file of records; microdata names its own")


def _sample_names(kind: str) -> list[str]:
    return [name for name in br.datasets.names() if _kind(name) == kind]


def load_workload(
    name: str, *, levels: Sequence[str] | None = None, geography: str | None = None
) -> "br.Workload":
    """Return a built-in workload, that of a TOML file, or that of a sample of records.

    ``levels`` and ``geography`` stand instead of the usual ones; a file names its own geography.
    """
    sample = name.startswith(_PREFIX)
    if not sample and not name.endswith(".toml"):
        return br.Workload.named(name, levels=levels, geography=geography)
    if geography is not None:
        raise ArgumentError(
            f"--geography goes with built-in tables; {name} names its own, got {quote(geography)}"
        )
    file = data_path(Path(name), RECORDS, "tables.toml") if sample else Path(name)
    return br.Workload.read(file, levels=levels)


def union_of_workloads(
    chosen: Sequence[str],
    *,
    levels: Sequence[str] | None = None,
    geography: str | None = None,
    only: Sequence[str] | None = None,
    without: Sequence[str] = (),
) -> "br.Workload":
    """Return the tables of several workloads together: all, ``only`` some, or ``without`` some."""
    with renamed({"name": "--tables"}):
        first, *rest = [load_workload(name, levels=levels, geography=geography) for name in chosen]
    union = first.union(*rest)
    if not only and not without:
        return union
    with renamed({"tables": "--only" if only else "--without"}):
        return union.select(tables=only or None, without=without)


def load_schema(name: str, *, geography: str | None = None) -> "br.Schema":
    """Return a built-in schema, or that of a TOML file."""
    if name.endswith(".toml"):
        return br.Schema.read(name)
    return br.Schema.named(name, geography=geography)

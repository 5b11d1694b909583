"""A command and its options in ``--help``; errors that name options; its end on Ctrl-C."""

import copy
import dataclasses
import errno
import inspect
import itertools
import math
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from bayesrisk._base import interrupts
from bayesrisk.cli.former_names import check_command, check_option
from bayesrisk.exceptions import ArgumentError, DataError, did_you_mean, name_list, quote

_SECONDS = {"s": 1, "m": 60, "h": 3600}
_COUNT = re.compile(r"-\.?\d")
#: A name in advice that an option can take only in quotes.
_WITH_COMMA = re.compile(r"Did you mean '([^']*,[^']*)'\?$")
_ORDER = ("Attack", "Protect", "Risk", "Data", "Setup")
#: Options that help shows apart from the rest, where there are more; and those that come last.
_FIRST = 8
_LAST = ("workers", "executor", "scheduler", "shard", "resume", "fragment", "as_json", "quiet")
#: Arguments of the package that options of other names give; the first of these wins.
_GIVEN_BY = {
    "name of the mechanism": ("protection", "rule"),
    "mechanism": ("protection", "rule"),
    "name of the solver": ("solver",),
    "name of the executor": ("executor",),
    "rng": ("seed", "simulation_seed"),
    "shard[0]": ("shard",),
    "shard[1]": ("shard",),
    "protections": ("protection",),
    "swap_rate": ("protection",),
    "blocks": ("n_blocks",),
}
#: The word that ``--help`` shows for what an option takes, where its type does not say it.
_WORDS = {
    "RATIO": ("exceeds", "max_risk"),
    "NUMBER": ("prior", "probability", "rho", "sigma2", "epsilon", "delta", "sensitivity"),
    "SECONDS": ("time_limit",),
    "NAMES": (
        "columns", "known", "level", "only", "place", "stated", "tables", "without", "adversary",
        "method",
    ),
    "RECIPE": ("protection",),
    "NAME=NUMBERS": ("cuts",),
    "NAME=VALUE": ("changes",),
    "NAME=NUMBER": ("limit", "weight"),
    "NAME=RATE": ("change",),
    "KEY=VALUE": ("settings",),
    "LAW": ("group_prior",),
    "i/n": ("shard",),
}  # fmt: skip
_WORD_OF = {name: word for word, names in _WORDS.items() for name in names}
_WORD_OF_TYPE = {int: "N", float: "NUMBER", Path: "PATH"}
#: Exit statuses where what is printed cannot be: the reader of a pipe went away, as shells say it.
_UNWRITTEN, _READER_GONE = 1, 141
#: What some write after a flag, which has no value.
_YES_NO = ("yes", "no", "true", "false", "on", "off")
#: What is said before a path where nothing is.
MISSING = "no such file or folder:"
#: Bytes of addresses that the libraries of a command need at least.
_LEAST_MEMORY = 2**30


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


class Command(TyperCommand):
    """A command: Ctrl-C ends it in one line, and errors name the option that was given."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, those that matter first apart, without types of Python."""
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            if (row := parameter.get_help_record(ctx)) is not None:
                words = row[0].partition(" <")[0]
                rows[parameter.param_type_name].append((words, row[1]))
        first, rest = rows["option"][:_FIRST], rows["option"][_FIRST:]
        if len(rest) <= _FIRST // 2:
            first, rest = [*first, *rest], []
        sections = (("Arguments", rows["argument"]), ("Options", first), ("Further options", rest))
        for title, lines in sections:
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words; a negative number looks like an option."""
        words = ctx.meta["words"] = list(args)
        if not ctx.resilient_parsing:  # as for completion
            self._check_settings(ctx, words)
        with _in_own_words(ctx, words):
            return super().parse_args(ctx, args)

    def _check_settings(self, ctx: Any, words: Sequence[str]) -> None:
        """Refuse settings without an equals sign, and flags with a value."""
        for option, value, place in _values(self.get_params(ctx), words):
            name, after = max(option.opts, key=len), (*words[place + 1 :], "")[0]
            if getattr(option, "is_flag", False):
                if value.lower() in _YES_NO:
                    raise ArgumentError(name, f"takes no value: leave out {value}")
            elif "=" in str(option.metavar) and re.fullmatch(
                r"[^=]+" if option.metavar == "KEY=VALUE" else r"[A-Za-z_][^=%]*", value
            ):
                way = value.replace(":", "=", 1)
                usual = "18,65" if option.metavar == "NAME=NUMBERS" else "VALUE"
                follows = re.fullmatch(r"[^-=][^=]*", after)
                way += "" if way != value else f"={after if follows else usual}"
                rule = f"must be {option.metavar}"
                raise ArgumentError(
                    name, rule, got=value, advice=f": write {name} {shlex.quote(way)}"
                )

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        if memory_limit() < _LEAST_MEMORY:  # libraries do not end, or end the process, with less
            raise MemoryError
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            advice = f"; {stop}" if stop.args else ""  # a run says what becomes of it
            raise typer.Exit(interrupts.tell(advice)) from None
        except ArgumentError as error:
            options = {
                p.name: max(p.opts, key=len) for p in self.params if p.param_type_name == "option"
            }
            if error.argument == MISSING:
                better = _stray(self.get_params(ctx), ctx.meta["words"], error.rule)
                raise error.advised(better or error.advice) from error
            names = _GIVEN_BY.get(error.argument, (error.argument,))
            parameter = next((p for p in self.params if p.name in names), None)
            if (separated := _separated_error(error, parameter)) is not error:
                raise separated.renamed(options.get(names[0], error.argument)) from error
            option = next((options[name] for name in names if name in options), None)
            near = _WITH_COMMA.search(error.advice)
            if near is not None:
                error = error.advised(f"{error.advice} Write '\"{near[1]}\"'")
            if option is None and near is None:
                raise
            raise (error if option is None else error.renamed(option)) from error


def _separated_error(error: ArgumentError, parameter: Any) -> ArgumentError:
    """Return an error about several numbers in one word, with how to write each apart."""
    numbers = re.split(r"[\s,;]+", error.got.strip("' "))
    if parameter is None or "one number" not in error.advice:
        return error
    if parameter.nargs == -1:
        return error.advised(f": write {' '.join(numbers)}, each apart")
    way = f" {max(parameter.opts, key=len)} ".join(["", *numbers])
    return error.advised(f": write{way}") if parameter.multiple else error


def memory_limit() -> float:
    """Return the bytes of memory that this process may use; infinity without a limit."""
    try:
        import resource
    except ImportError:  # elsewhere than on POSIX systems
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


@contextmanager
def _in_own_words(ctx: Any, words: Sequence[str]) -> Iterator[None]:
    """Say what is wrong with a command line in one line, with what to write."""
    try:
        yield
    except ArgumentError:
        raise
    except Exception as error:  # Typer's own errors have no public name
        message = getattr(error, "message", None)
        ours = isinstance(message, str) and callable(getattr(error, "format_message", None))
        if not ours or type(error).__name__ == "NoArgsIsHelpError":
            raise
        raise _own_words(ctx, words, error, str(message)) from None


def _own_words(ctx: Any, words: Sequence[str], error: Exception, message: str) -> ArgumentError:
    options = {name: one for one in ctx.command.get_params(ctx) for name in one.opts}
    option: Any = getattr(error, "param", None)
    unknown = str(getattr(error, "option_name", None) or "")
    if unknown and unknown not in options:
        check_option(_path(ctx), unknown, words)
        if _COUNT.match(unknown):
            return ArgumentError(
                f"{unknown} is read as an option; put -- before negative counts, after all "
                f"options: {ctx.command_path} ... -- {unknown}"
            )
        near = did_you_mean(unknown, [name for name in options if name.startswith("--")])
        longs = [max(one.opts, key=len) for one in dict.fromkeys(options.values())]
        near = near or f"; it has {name_list(one for one in longs if one.startswith('--'))}"
        return ArgumentError(f"`{ctx.command_path}` has no {unknown}{near}")
    example = str(ctx.command.epilog or "").partition(f"{ctx.command_path} ")[2]
    if option is not None and "issing" in f"{type(error).__name__} {message}":
        name, example_words = max(option.opts, key=len), shlex.split(example)
        value = next((b for a, b in itertools.pairwise(example_words) if a in option.opts), "")
        if option.param_type_name == "argument":
            return ArgumentError(f"{name} must be given, such as `{ctx.command_path} {example}`")
        return ArgumentError(f"{name} must be given, such as {name} {value}")
    if option is not None:
        name = max(option.opts, key=len)
        rule = "must be a whole number" if option.metavar == "N" else "must be a number"
        values = [v for one, v, _ in _values([option], words) if not re.fullmatch(r"[+-]?\d+", v)]
        if "valid" in message and values:
            time = re.fullmatch(r"(\d+)\s*(s|m|h)[a-z]*", values[0])
            seconds = int(time[1]) * _SECONDS[time[2]] if time else 0
            advice = f": write {seconds}, in seconds" if "time" in name and seconds else ""
            return ArgumentError(name, rule, got=values[0], advice=advice)
        return ArgumentError(f"{name}: {message}")
    if extra := re.fullmatch(r"Got unexpected extra argument.*? \((.*)\)", message):
        first = extra[1].split(" ")[0]
        word = next((w for w in words if w.split(" ")[0] == first), first)
        advice = _stray(options.values(), words, word) or ": leave it out"
        return ArgumentError(f"`{ctx.command_path}` takes no {quote(word)} there{advice}")
    if "requires an argument" in message:
        return ArgumentError(f"{unknown} needs a value: write {unknown} {options[unknown].metavar}")
    return ArgumentError(message.rstrip("."))


def _values(parameters: Iterable[Any], words: Sequence[str]) -> Iterator[tuple[Any, str, int]]:
    """Yield options, each with the word after it, or after its equals sign, and its place."""
    named = {name: one for one in parameters for name in one.opts if name.startswith("-")}
    for place, word in enumerate(words):
        if word == "--":
            return
        name, equals, value = word.partition("=")
        if name in named and equals:
            yield named[name], value, place
        elif name in named and place + 1 < len(words):
            yield named[name], words[place + 1], place + 1


def _stray(parameters: Iterable[Any], words: Sequence[str], word: str) -> str:
    """Return advice about a word that belongs to the value before it, as spaces do not tell."""
    for option, value, place in _values(parameters, words):
        if getattr(option, "is_flag", False) or words[place + 1 : place + 2] != [word]:
            continue
        name, kind = max(option.opts, key=len), str(option.metavar)
        way = f"{value} {word}"
        if kind == "RECIPE":
            way = f"{value}{',' if ':' in value else ':'}{word}"
        elif kind in ("NAMES", "NAME=NUMBERS"):
            way = f"{value.rstrip(',')},{word.lstrip(',')}"
        elif kind in ("NUMBER", "RATIO") or "=" in kind:
            return f": write {name} {shlex.quote(value)} {name} {shlex.quote(word)}"
        return f": write {name} {shlex.quote(way)}"
    return ""


def _path(ctx: Any) -> str:
    """Return the words that call a command, without the program's name."""
    return "" if ctx.parent is None else f"{_path(ctx.parent)} {ctx.info_name}".strip()


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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; one of the version before says what to write now."""
        if args and args[0] not in self.commands and not ctx.resilient_parsing:
            check_command(args[0])
            near = did_you_mean(args[0], self.commands)
            near = near or f"; `{ctx.command_path} --help` lists them"
            raise ArgumentError(f"`{ctx.command_path}` has no command {quote(args[0])}{near}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words before the command."""
        with _in_own_words(ctx, list(args)):
            return super().parse_args(ctx, args)

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


def flattened(function: Callable[..., None], first: Sequence[str] = ()) -> Callable[..., None]:
    """Return a command whose options are the fields of the dataclasses that the function takes.

    A command line has no objects, only options; a function with twenty of them has no shape.  An
    annotation may have the words of ``--help`` alone, and a flag has no opposite then.  Help shows
    the ``first`` options first.
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

    order = {name: place - len(first) for place, name in enumerate(first)}
    flat.sort(key=lambda p: order.get(p.name, p.name in _LAST))

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
    if isinstance(option, OptionInfo):
        option = copy.copy(option)
        option.show_default = False  # which help says in one way: in brackets, before the full stop
        if one is not bool:
            word = _WORD_OF.get(parameter.name, _WORD_OF_TYPE.get(one, "NAME"))
            several = any(get_origin(part) is list for part in (kind, *get_args(kind)))
            option.metavar = "NAME" if word == "NAMES" and not several else word
            if parameter.default not in (parameter.empty, None, "", []) and option.help:
                text = option.help if option.help.endswith("...") else option.help.rstrip(".")
                option.help = f"{text} [{parameter.default}]."
    return parameter.replace(annotation=Annotated[kind, option])

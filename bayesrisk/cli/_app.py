"""What all commands have in common: groups in ``--help``, interrupts, names in messages."""

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from bayesrisk import _interrupts
from bayesrisk.exceptions import ArgumentError

_COUNT = re.compile(r"-\.?\d")
_ORDER = ("Risk", "Protect", "Attack", "Data", "Setup")
#: What messages call a value that an option gives under another name: the options, the first wins.
_CALLED = {
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
    "NAMES": ("columns", "keys", "levels", "tables", "without"),
    "NAME=VALUE": ("changes",),
    "KEY=VALUE": ("settings",),
    "LAW": ("group_prior",),
    "i/n": ("shard",),
}  # fmt: skip
_WORD_OF = {name: word for word, names in _WORDS.items() for name in names}
_WORD_OF_TYPE = {"int": "N", "integer": "N", "float": "NUMBER", "path": "PATH"}
#: An option as Typer shows it: its names, and what it takes, written in many ways by its versions.
_SHOWN = re.compile(r"((?:--?[a-z][\w-]*(?:, | / )?)+) ?[<\[]?(?:list\[)?([^\]>]*)")


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
        gone = error.errno == errno.EPIPE
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr) if gone else (sys.stdout,):
            with suppress(OSError):  # what it still holds is written when the process ends
                os.dup2(nowhere, stream.fileno())
        if gone:
            raise typer.Exit(_READER_GONE) from None
        with suppress(OSError):
            text = f"bayesrisk: standard output could not be written: {error.strerror}"
            typer.echo(text, err=True)
        raise typer.Exit(_UNWRITTEN) from None


class Command(TyperCommand):
    """A command: Ctrl-C ends it in one line, and errors name the option that was given."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, each with a word for what it takes, not a type of Python."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                option = _SHOWN.match(record[0])
                if option is None:
                    sections["Arguments"].append((record[0].partition(" <")[0], record[1]))
                else:
                    shown = f"{option[1]} {_word(parameter.name, option[2])}".rstrip()
                    sections["Options"].append((shown, record[1]))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

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
            kept = f"; {stop}" if stop.args else ""  # a run says what becomes of it
            raise typer.Exit(_interrupts.tell(kept)) from None
        except ArgumentError as error:
            told = self._told(str(error))
            if told == str(error):
                raise
            raise type(error)(told) from error

    def _told(self, text: str) -> str:
        """Return a message with the name of the option that its first words stand for."""
        options = {
            p.name: max(p.opts, key=len) for p in self.params if p.param_type_name == "option"
        }
        known = {name: (name,) for name in options} | _CALLED
        for words, names in known.items():
            option = next((options[name] for name in names if name in options), None)
            if option is not None and text.startswith(f"{words} "):
                return option + text.removeprefix(words)
        return text


def _word(name: str, kind: str) -> str:
    """Return what an option takes, in a word, or the choices that it has; nothing for a flag."""
    if "|" in kind or not kind:
        return kind
    return _WORD_OF.get(name, _WORD_OF_TYPE.get(kind.lower(), "NAME"))


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

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option of help, off if not given: reading "nothing" takes Typer a while."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option

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

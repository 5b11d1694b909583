"""The ``bayesrisk`` command: thin wrappers, no mathematics of their own."""

import math
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesrisk._base import interrupts
from bayesrisk._base.wings import wing_points
from bayesrisk._version import __version__
from bayesrisk.cli import attacks, audit, setup
from bayesrisk.cli.command import Command, Commands, flattened, memory_limit
from bayesrisk.cli.counts import risk
from bayesrisk.cli.printing import say
from bayesrisk.cli.protect import plan, release
from bayesrisk.exceptions import (
    BayesRiskError,
    DataError,
    PartFileError,
    PluginError,
    ShardError,
    WorkerError,
    error_line,
)

#: Exit statuses besides 0, 2 (wrong use), 4 (late), 130 and 143 (interrupted).
DATA, CRASH = 3, 1

#: A command with its example and its first options; or the name of a group, with help and commands.
Listing = Mapping[Any, tuple[str, Any]]


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        add_completion=settings["name"] == "bayesrisk",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        **settings,
    )


app = _typer(name="bayesrisk", help="Bayesian disclosure risk of published statistics.")


#: Commands by group, each with an example of its arguments, and the options that matter first.
_COMMANDS: dict[str, Listing] = {
    "Attack": {
        attacks.attack: (
            "tables.csv -o out --set counts=exact",
            "output only settings accept scope columns time_limit workers",
        ),
        audit.audit: (
            "sample:synthetic-county -o audit --protection none --protection swapping:rate=0.05 "
            "--method posterior,reconstruction,claims --targets 40",
            "output protection known stated adversary method targets workers",
        ),
    },
    "Protect": {
        release.release: (
            "population -o release --protection rounding:base=3 --tables sf1-block",
            "output protection tables place columns cuts places by",
        ),
        release.verify: ("release", ""),
        plan.plan: (
            "sample:small-town -o plan --tables sample:small-town --limit proved=0",
            "output limit rule ladders tables adversary workers resume",
        ),
    },
    "Risk": {
        risk.risk: ("--rho 0.1 --prior 1/10 -- 3 -1", ""),
        risk.convert: ("--max-risk 1.5 --prior 1/10", ""),
        risk.sweep: ("sample:dare-county-sweep -o out --workers 2", "output seed"),
        risk.report: ("out", ""),
    },
    "Setup": {setup.list_: ("mechanisms", ""), setup.warmup: ("", "")},
}


def _add(group: typer.Typer, path: str, panel: str, commands: Listing) -> None:
    """Add commands to a group, each with its example, and groups below it."""
    for command, entry in commands.items():
        if isinstance(command, str):
            below, (text, inner) = _typer(name=command), entry
            _add(below, f"{path} {command}", panel, inner)
            group.add_typer(below, rich_help_panel=panel, help=text)
            continue
        name = command.__name__.rstrip("_").replace("_", "-")
        text = f"Example: {path} {name} {entry[0]}".rstrip()
        add = group.command(name, cls=Command, rich_help_panel=panel, epilog=text)
        add(flattened(command, entry[1].split()))


_wings = map(import_module, wing_points().get("bayesrisk.commands", {}).values())
for _listings in (_COMMANDS, *(wing.COMMANDS for wing in _wings)):
    for _panel, _commands in _listings.items():
        _add(app, "bayesrisk", _panel, _commands)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"bayesrisk {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Bayesian disclosure risk of published statistics."""


def _status(error: BayesRiskError) -> int:
    """Return the exit status of an error of ours."""
    if isinstance(error, (DataError, PartFileError)):
        return DATA
    if isinstance(error, ShardError) and isinstance(error.__cause__, (DataError, PartFileError)):
        return DATA
    return CRASH if isinstance(error, (PluginError, ShardError, WorkerError)) else 2


def _place(error: Exception) -> str:
    """Return file and line of the package that raised a foreign error, or passed it on."""
    package, place = Path(__file__).parents[1], ""
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(package):
            place = f" at {file.relative_to(package)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _shortage(error: Exception) -> str:
    """Return the cause in words, where this machine lacks something; else no text."""
    trace, loading = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        loading = code.co_filename if code.co_name == "<module>" else loading
        trace = trace.tb_next
    named = str(getattr(error, "name", "") or "").partition(".")[0]
    if isinstance(error, MemoryError):
        text = "there is not enough memory for this command"
    elif loading and named != "bayesrisk" and isinstance(error, (ImportError, OSError)):
        text = f"a library that it needs cannot be loaded: {error_line(error)}"
    else:
        return ""
    limit = memory_limit()
    if limit < math.inf:
        text += f"; its memory is limited to {limit // 2**20} MB (ulimit -v), which may be why"
    return text


def main() -> None:
    """Run the command: 2 for wrong use, 3 for data that cannot be used, 1 for a crash."""
    try:
        with interrupts.heeded():
            app()
    except BayesRiskError as error:
        with suppress(OSError):
            say(f"bayesrisk: {error}")
        sys.exit(_status(error))
    except Exception as error:  # the last resort: a defect, told in one line
        text = _shortage(error) or (
            f"internal error: {error_line(error)}{_place(error)}; this is a defect of bayesrisk "
            f"{__version__}: please report this line and the command to its maintainers"
        )
        say(f"bayesrisk: {text}")
        sys.exit(CRASH)

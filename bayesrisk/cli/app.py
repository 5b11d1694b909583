"""The ``bayesrisk`` command: thin wrappers, no mathematics of their own."""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesrisk._base import interrupts
from bayesrisk._base.wings import wing_points
from bayesrisk._version import __version__
from bayesrisk.cli import attacks, audit, plan, records, release, risk, setup
from bayesrisk.cli.command import Command, Commands, flattened
from bayesrisk.cli.printing import say
from bayesrisk.exceptions import (
    BayesRiskError,
    DataError,
    PartFileError,
    PluginError,
    ShardError,
    WorkerError,
    error_line,
)

#: Exit statuses besides 0, 2 (wrong use), 130 and 143 (interrupted).
DATA, CRASH = 3, 1


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


#: Commands by group, each with an example of its arguments.
_COMMANDS: dict[str, dict[Callable[..., None], str]] = {
    "Risk": {
        risk.risk: "--rho 0.1 --prior 1/10 -- 3 -1",
        risk.hierarchy: "--rho-block 1/2 --rho-group 1/2 --block 2 --group 5 --siblings 3 "
        "--n-siblings 2 --prior 1/10",
        risk.sweep: "sample:dare-county-sweep -o out --workers 2",
        risk.report: "out",
        risk.convert: "--max-risk 1.5 --prior 1/10",
        records.first_look: "sample:hospital --keys region,age --sensitive diagnosis",
        audit.audit: "sample:synthetic-county -o audit --protection identity "
        "--protection swapping:rate=0.05 --method posterior,reconstruction,claims --targets 40",
    },
    "Protect": {
        release.release: "population -o release --mechanism rounding:base=3 --tables sf1-block",
        release.verify_release: "release",
        plan.plan: "sample:small-town -o plan --tables sample:small-town --limit proved=0",
    },
    "Attack": {
        attacks.attack_: "tables.csv -o attack --set counts=exact",
        attacks.reconstruct: "tables -o records --scope block --variability block",
        attacks.bounds: "tables -o bounds",
        attacks.claims: "tables -o claims --max-columns 3 --workers 2",
    },
    "Data": {
        records.tabulate: "population -o tables --tables sf1-block,sf1-tract",
    },
    "Setup": {setup.list_: "mechanisms", setup.warmup: ""},
}


def _add(group: typer.Typer, panel: str, commands: Mapping[Callable[..., None], str]) -> None:
    """Add commands to a group, each with its example."""
    prefix = "bayesrisk" if group is app else f"bayesrisk {group.info.name}"
    for command, arguments in commands.items():
        name = command.__name__.rstrip("_").replace("_", "-")
        text = f"Example: {prefix} {name} {arguments}".rstrip()
        group.command(name, cls=Command, rich_help_panel=panel, epilog=text)(flattened(command))


for _panel, _commands in _COMMANDS.items():
    _add(app, _panel, _commands)
for _module in map(import_module, wing_points().get("bayesrisk.commands", {}).values()):
    for _panel, _commands in _module.COMMANDS.items():
        _add(app, _panel, _commands)
    for _name, (_panel, _help, _commands) in _module.GROUPS.items():
        _group = _typer(name=_name)
        _add(_group, _panel, _commands)
        app.add_typer(_group, rich_help_panel=_panel, help=_help)


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
    with suppress(ImportError):  # elsewhere than on POSIX systems
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
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

"""The ``bayesrisk`` command: thin wrappers, no mathematics of their own."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesrisk import _interrupts
from bayesrisk._version import __version__
from bayesrisk.cli._app import Command, Commands
from bayesrisk.cli.commands.audit import audit
from bayesrisk.cli.commands.claims import claims
from bayesrisk.cli.commands.convert import convert
from bayesrisk.cli.commands.convert_file import convert_file
from bayesrisk.cli.commands.first_look import first_look
from bayesrisk.cli.commands.hierarchy import hierarchy, hierarchy_table
from bayesrisk.cli.commands.measurements import measurements
from bayesrisk.cli.commands.occupancy import attack, study
from bayesrisk.cli.commands.reconstruct import reconstruct
from bayesrisk.cli.commands.reidentify import reidentify
from bayesrisk.cli.commands.release import release
from bayesrisk.cli.commands.risk import risk
from bayesrisk.cli.commands.simulate import simulate
from bayesrisk.cli.commands.sweep import report, sweep
from bayesrisk.cli.commands.tables import tabulate
from bayesrisk.cli.commands.verify_release import verify_release
from bayesrisk.cli.commands.warmup import warmup
from bayesrisk.cli.options import flattened
from bayesrisk.exceptions import (
    BayesRiskError,
    DataError,
    PartFileError,
    ShardError,
    WorkerError,
)

#: Exit statuses besides 0, 2 (wrong use), 130 and 143 (interrupted).
DATA, CRASH = 3, 1


def _typer(**settings: Any) -> typer.Typer:
    return typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        **settings,
    )


app = _typer(name="bayesrisk", help="Bayesian disclosure risk of published statistics.")
occupancy = _typer(name="occupancy")


def _add(to: typer.Typer, panel: str, command: Callable[..., None], example: str) -> None:
    """Add a command with its group and an example."""
    name = command.__name__.replace("_", "-")
    text = f"Example: {example}"
    to.command(name, cls=Command, rich_help_panel=panel, epilog=text)(flattened(command))


_add(app, "Risk", risk, "bayesrisk risk --rho 0.1 --prior 1/10 -- 3 -1")
_add(
    app,
    "Risk",
    measurements,
    "bayesrisk measurements sample:noisy-measurements -o risk --prior 1/10 --exceeds 2",
)
_add(
    app,
    "Risk",
    hierarchy,
    "bayesrisk hierarchy --rho-block 1/2 --rho-group 1/2 --block 2 --group 5 --siblings 3 "
    "--n-siblings 2 --prior 1/10",
)
_add(
    app,
    "Risk",
    hierarchy_table,
    "bayesrisk hierarchy-table releases.csv -o posteriors.csv --rho-block 1/2 --rho-group 1/2 "
    "--n-siblings 2 --prior 1/10",
)
_add(app, "Risk", sweep, "bayesrisk sweep sample:dare-county-sweep -o out --workers 2")
_add(app, "Risk", report, "bayesrisk report out")
_add(app, "Risk", convert, "bayesrisk convert --max-risk 1.5 --prior 1/10")
_add(
    app,
    "Risk",
    first_look,
    "bayesrisk first-look sample:hospital --keys region,age --sensitive diagnosis",
)
_add(
    app,
    "Risk",
    audit,
    "bayesrisk audit sample:synthetic-county -o audit --protection identity "
    "--protection swapping:rate=0.05 --method posterior,reconstruction,claims --targets 40",
)
_add(
    app,
    "Protect",
    release,
    "bayesrisk release population -o release --mechanism rounding --set base=3 "
    "--set method=random --tables sf1-block",
)
_add(app, "Protect", verify_release, "bayesrisk verify-release release")
_add(
    app,
    "Attack",
    reconstruct,
    "bayesrisk reconstruct tables -o records --scope block --variability block",
)
_add(app, "Attack", claims, "bayesrisk claims tables -o claims --max-columns 3 --workers 2")
_add(
    app,
    "Attack",
    reidentify,
    "bayesrisk reidentify records -o links --attacker known.csv --truth truth.csv --dialect schema",
)
_add(occupancy, "Attack", study, "bayesrisk occupancy study -o study --seeds 2 --protection das")
_add(occupancy, "Attack", attack, "bayesrisk occupancy attack tables -o attack")
app.add_typer(
    occupancy,
    rich_help_panel="Attack",
    help="Blocks with subsidised households above the occupancy limit (study, attack).",
)
_add(app, "Data", simulate, "bayesrisk simulate -o population --preset tract --seed 1")
_add(app, "Data", tabulate, "bayesrisk tabulate population -o tables --tables sf1-block,sf1-tract")
_add(app, "Data", convert_file, "bayesrisk convert-file ppmf.csv --from ppmf -o persons.parquet")
_add(app, "Setup", warmup, "bayesrisk warmup")


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
    return CRASH if isinstance(error, (ShardError, WorkerError)) else 2


def _place(error: Exception) -> str:
    """Return where in the package an error of somebody else was raised, or passed."""
    own, place = Path(__file__).parents[1], ""
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.is_relative_to(own):
            place = f" at {file.relative_to(own)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def main() -> None:
    """Run the command: 2 for wrong use, 3 for data that cannot be used, 1 for a crash."""
    try:
        with _interrupts.heeded():
            app()
    except BayesRiskError as error:
        with suppress(OSError):
            typer.echo(f"bayesrisk: {error}", err=True)
        sys.exit(_status(error))
    except Exception as error:  # the last resort: a defect, told in one line
        text = " ".join(str(error).split())[:200]
        typer.echo(
            f"bayesrisk: internal error: {type(error).__name__}: {text}{_place(error)}; this is a "
            f"defect of bayesrisk {__version__}: please report this line and the command to its "
            "maintainers",
            err=True,
        )
        sys.exit(CRASH)

"""The ``bayesrisk`` command: thin wrappers, no mathematics of their own."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from bayesrisk import _interrupts
from bayesrisk._version import __version__
from bayesrisk.cli.attacks import attack, claims, reconstruct, reidentify, study
from bayesrisk.cli.audit import audit
from bayesrisk.cli.base import (
    Command,
    Commands,
    JsonOption,
    QuietOption,
    flattened,
    print_json,
    progress,
    steps_done,
    warnings_as_lines,
)
from bayesrisk.cli.hierarchy import hierarchy, hierarchy_table, measurements
from bayesrisk.cli.records import convert_file, first_look, simulate, tabulate
from bayesrisk.cli.release import release, verify_release
from bayesrisk.cli.risk import convert, report, risk, sweep
from bayesrisk.exceptions import BayesRiskError, DataError, PartFileError, ShardError, WorkerError

# -----------------------------------------------------------------------------
# ``bayesrisk warmup``: compile all kernels ahead.


def warmup(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Compile all kernels ahead, so that no later command waits; once for an installation."""
    from bayesrisk import _numba
    from bayesrisk.cli.examples import EXAMPLES

    clock, start = time.perf_counter(), time.time_ns()
    with warnings_as_lines(), progress(quiet=quiet or as_json, title="warmup", unit="groups") as go:
        step = steps_done(go, len(EXAMPLES))
        for call in EXAMPLES.values():
            call()
            step()
            if _numba.cache_folder() is None:
                break  # the rest would be compiled in vain
    folder, compiled = _numba.cache_folder(), _numba.compiled_since(start)
    summary = {
        "kernels": len(_numba.DECLARED),
        "compiled": compiled,
        "seconds": round(time.perf_counter() - clock, 1),
        "folder": folder,
    }
    if as_json:
        print_json(summary)
    elif folder is None:
        typer.echo("nothing was compiled ahead: compiled kernels cannot be kept")
    elif compiled:
        typer.echo(
            f"{compiled} versions of {summary['kernels']} kernels compiled in "
            f"{summary['seconds']} s, kept in {folder}"
        )
    else:
        typer.echo(f"nothing was left to compile: {summary['kernels']} kernels, kept in {folder}")


# -----------------------------------------------------------------------------


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


#: Commands by group, each with an example of its arguments.
_COMMANDS: dict[str, dict[Callable[..., None], str]] = {
    "Risk": {
        risk: "--rho 0.1 --prior 1/10 -- 3 -1",
        measurements: "sample:noisy-measurements -o risk --prior 1/10 --exceeds 2",
        hierarchy: "--rho-block 1/2 --rho-group 1/2 --block 2 --group 5 --siblings 3 "
        "--n-siblings 2 --prior 1/10",
        hierarchy_table: "releases.csv -o posteriors.csv --rho-block 1/2 --rho-group 1/2 "
        "--n-siblings 2 --prior 1/10",
        sweep: "sample:dare-county-sweep -o out --workers 2",
        report: "out",
        convert: "--max-risk 1.5 --prior 1/10",
        first_look: "sample:hospital --keys region,age --sensitive diagnosis",
        audit: "sample:synthetic-county -o audit --protection identity "
        "--protection swapping:rate=0.05 --method posterior,reconstruction,claims --targets 40",
    },
    "Protect": {
        release: "population -o release --mechanism rounding --set base=3 --set method=random "
        "--tables sf1-block",
        verify_release: "release",
    },
    "Attack": {
        reconstruct: "tables -o records --scope block --variability block",
        claims: "tables -o claims --max-columns 3 --workers 2",
        reidentify: "records -o links --attacker known.csv --truth truth.csv --dialect schema",
    },
    "Data": {
        simulate: "-o population --preset tract --seed 1",
        tabulate: "population -o tables --tables sf1-block,sf1-tract",
        convert_file: "ppmf.csv --from ppmf -o persons.parquet",
    },
    "Setup": {warmup: ""},
}
_OCCUPANCY: dict[Callable[..., None], str] = {
    study: "-o study --seeds 2 --protection das",
    attack: "tables -o attack",
}


def _add(group: typer.Typer, panel: str, commands: Mapping[Callable[..., None], str]) -> None:
    """Add commands to a group, each with its example."""
    prefix = "bayesrisk occupancy" if group is occupancy else "bayesrisk"
    for command, arguments in commands.items():
        name = command.__name__.replace("_", "-")
        text = f"Example: {prefix} {name} {arguments}".rstrip()
        group.command(name, cls=Command, rich_help_panel=panel, epilog=text)(flattened(command))


for _panel, _commands in _COMMANDS.items():
    _add(app, _panel, _commands)
_add(occupancy, "Attack", _OCCUPANCY)
app.add_typer(
    occupancy,
    rich_help_panel="Attack",
    help="Blocks with subsidised households above the occupancy limit (study, attack).",
)


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

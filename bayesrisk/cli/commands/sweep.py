"""``bayesrisk sweep`` and ``bayesrisk report``: risk over a grid of settings, and its report."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from bayesrisk.cli.data import SWEEPS, data_path
from bayesrisk.cli.options import SEED, JsonOption, QuietOption, RunOptions
from bayesrisk.cli.output import print_json, print_shards, progress


def sweep(
    config: Annotated[str, typer.Argument(help="TOML file, or sample:NAME.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    how: RunOptions,
    seed: Annotated[int | None, SEED] = None,
) -> None:
    """Run a sweep of disclosure risk over rho, then write its report."""
    from bayesrisk.experiments import SweepStudy, load_config, write_report

    data_path(Path(config), SWEEPS)
    settings = load_config(config, seed=seed)
    summary = how.run(SweepStudy(settings), output, settings.title)
    page = str(write_report(output)) if summary.complete else None
    if how.as_json:
        print_json({**dataclasses.asdict(summary), "report": page})
        return
    print_shards(summary)
    if page is not None:
        typer.echo(f"{summary.rows} rows in {output / 'results.csv'}")
        typer.echo(f"report: {page}")


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished sweep.")],
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write figures and report.html of a finished sweep again."""
    from bayesrisk.experiments import write_report

    with progress(quiet=quiet or as_json, title="report", unit="steps", patient=True) as advance:
        page = write_report(folder, progress=advance)
    if as_json:
        print_json({"report": str(page)})
    else:
        typer.echo(f"report: {page}")

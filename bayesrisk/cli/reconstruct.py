"""``bayesrisk reconstruct``: a folder of published tables in, records and what is proved out."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from bayesrisk.accounting import exact_number
from bayesrisk.cli._data import TABLES, data_path
from bayesrisk.cli._progress import progress

__all__ = ["reconstruct"]


def reconstruct(
    tables: Annotated[Path, typer.Argument(help="Folder of published tables, or of a release.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    scope: Annotated[
        str, typer.Option(help="block: each block alone; tract: with its tract's tables.")
    ],
    variability: Annotated[
        str | None,
        typer.Option(help="Also bound the solution variability: block, tract-bounds, tract-joint."),
    ] = None,
    solver: Annotated[str, typer.Option(help="highs, pulp:highs, pulp:cbc, ...")] = "highs",
    time_limit: Annotated[
        str | None, typer.Option(help="Seconds of the solver for each component [none].")
    ] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Least deviation where no records fit.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Keep finished shards.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")] = False,
) -> None:
    """Reconstruct the records behind published tables, and say what is proved about them."""
    from bayesrisk.experiments import run_reconstruction

    limit = None if time_limit is None else float(exact_number(time_limit, "time_limit"))
    try:
        with progress(quiet=quiet or as_json, title="reconstruct") as advance:
            summary = run_reconstruction(
                data_path(tables, TABLES),
                output,
                scope=scope,
                variability=variability,
                solver=solver,
                time_limit=limit,
                nearest=nearest,
                workers=workers,
                resume=resume,
                progress=advance,
            )
    except KeyboardInterrupt:
        typer.echo(
            "bayesrisk: interrupted; finished shards are kept, go on with --resume", err=True
        )
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(summary), indent=2))
        return
    statuses = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    typer.echo(f"{summary.records} records in {output}; blocks: {statuses}")
    typer.echo(
        f"{summary.computed + summary.resumed} of {summary.shards} parts done "
        f"({summary.resumed} were already there)"
    )
    for conflict in summary.conflicts:
        typer.echo(f"  no records fit: {conflict}")

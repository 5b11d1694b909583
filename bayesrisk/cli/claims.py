"""``bayesrisk claims``: a folder of published tables in, what must be true of its blocks out."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from bayesrisk.accounting import exact_number
from bayesrisk.cli._data import TABLES, data_path
from bayesrisk.cli._progress import progress

__all__ = ["claims"]


def claims(
    tables: Annotated[Path, typer.Argument(help="Folder of published tables, or of a release.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Columns of claims; repeat, or separate by commas [all]."),
    ] = None,
    max_columns: Annotated[int | None, typer.Option(help="Most columns of a claim.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Any combination of codes, no structural rules.")
    ] = False,
    tenure: Annotated[
        str, typer.Option(help="Renters: merged, cash (all pay) or four-way.")
    ] = "merged",
    solver: Annotated[str, typer.Option(help="highs, pulp:highs, pulp:cbc, ...")] = "highs",
    time_limit: Annotated[str | None, typer.Option(help="Seconds for each block [none].")] = None,
    workers: Annotated[int, typer.Option(help="Worker processes.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Keep finished shards.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")] = False,
) -> None:
    """Say what must be true of the records behind published tables, and prove it."""
    from bayesrisk.experiments import run_claims

    limit = None if time_limit is None else float(exact_number(time_limit, "time_limit"))
    try:
        with progress(quiet=quiet or as_json, title="claims") as advance:
            summary = run_claims(
                data_path(tables, TABLES),
                output,
                columns=[c.strip() for text in columns for c in text.split(",")]
                if columns
                else None,
                max_columns=max_columns,
                structural_rules=not plain,
                tenure=tenure,
                solver=solver,
                time_limit=limit,
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
    typer.echo(
        f"{summary.claims} verified claims that no table states, {summary.singletons} about one "
        f"record, in {output}; blocks: {statuses}"
    )
    typer.echo(
        f"{summary.computed + summary.resumed} of {summary.shards} parts done "
        f"({summary.resumed} were already there)"
    )
    for example in summary.examples:
        typer.echo(f"  {example}")
    for conflict in summary.conflicts:
        typer.echo(f"  no records fit: {conflict}")

"""``bayesrisk claims``: a folder of published tables in, what must be true of its blocks out."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from bayesrisk.cli.data import TABLES, data_path
from bayesrisk.cli.options import RunOptions, SolverOption, TakenOption, names, optional_number
from bayesrisk.cli.output import print_json, print_shards


def claims(
    tables: Annotated[Path, typer.Argument(help="Folder of published tables, or of a release.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    how: RunOptions,
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
    solver: SolverOption = "highs",
    time_limit: Annotated[str | None, typer.Option(help="Seconds for each block [none].")] = None,
    taken_as_true: TakenOption = False,
) -> None:
    """Say what must be true of the records behind published tables, and prove it."""
    from bayesrisk.experiments import ClaimsStudy

    study = ClaimsStudy(
        data_path(tables, TABLES),
        columns=names(columns) if columns else None,
        max_columns=max_columns,
        structural_rules=not plain,
        tenure=tenure,
        solver=solver,
        time_limit=optional_number(time_limit, "time_limit"),
        taken_as_true=taken_as_true,
    )
    summary = how.run(study, output, "claims")
    if how.as_json:
        print_json(dataclasses.asdict(summary))
        return
    statuses = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    typer.echo(
        f"{summary.claims} verified claims that no table states, {summary.singletons} about one "
        f"record, in {output}; blocks: {statuses}"
    )
    print_shards(summary)
    for example in summary.examples:
        typer.echo(f"  {example}")
    for conflict in summary.conflicts:
        typer.echo(f"  no records fit: {conflict}")

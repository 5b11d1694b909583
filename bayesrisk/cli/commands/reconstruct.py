"""``bayesrisk reconstruct``: a folder of published tables in, records and what is proved out."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from bayesrisk.cli.data import TABLES, data_path
from bayesrisk.cli.options import RunOptions, SolverOption, number
from bayesrisk.cli.output import print_json, print_shards

__all__ = ["JOINT_SECONDS", "reconstruct"]

#: Limit of what may go on for days where nobody asked for one: a tract is one component.
JOINT_SECONDS = 600


def reconstruct(
    tables: Annotated[Path, typer.Argument(help="Folder of published tables, or of a release.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output folder.")],
    scope: Annotated[
        str, typer.Option(help="block: each block alone; tract: with its tract's tables.")
    ],
    how: RunOptions,
    variability: Annotated[
        str | None,
        typer.Option(help="Also bound the solution variability: block, tract-bounds, tract-joint."),
    ] = None,
    solver: SolverOption = "highs",
    time_limit: Annotated[
        str | None,
        typer.Option(
            help="Seconds of the solver for each component, or none "
            f"[{JOINT_SECONDS} with --variability tract-joint, else none]."
        ),
    ] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Least deviation where no records fit.")
    ] = False,
) -> None:
    """Reconstruct the records behind published tables, and say what is proved about them."""
    from bayesrisk.experiments import ReconstructionStudy

    study = ReconstructionStudy(
        data_path(tables, TABLES),
        scope=scope,
        variability=variability,
        solver=solver,
        time_limit=_seconds(time_limit, joint=variability == "tract-joint"),
        nearest=nearest,
    )
    summary = how.run(study, output, "reconstruct")
    if how.as_json:
        print_json(dataclasses.asdict(summary))
        return
    statuses = ", ".join(f"{count} {status}" for status, count in summary.statuses.items())
    typer.echo(f"{summary.records} records in {output}; blocks: {statuses}")
    print_shards(summary)
    for conflict in summary.conflicts:
        typer.echo(f"  no records fit: {conflict}")


def _seconds(text: str | None, *, joint: bool) -> float | None:
    """Return the limit that was asked for, or that of what takes long; None without one."""
    if text is None:
        return JOINT_SECONDS if joint else None
    return None if text == "none" else number(text, "time_limit")

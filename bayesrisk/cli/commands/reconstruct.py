"""``bayesrisk reconstruct``: a folder of published tables in, records and what is proved out."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from bayesrisk._files.parse import shown
from bayesrisk.cli.data import TABLES, data_path
from bayesrisk.cli.options import RunOptions, SolverOption, TakenOption, number
from bayesrisk.cli.output import print_json, print_shards
from bayesrisk.exceptions import ArgumentError

#: Limits of what may go on for days where nobody asked for any: a tract is one component.  That of
#: nodes is mostly reached first, and leaves the same answer on any machine.
JOINT_NODES, JOINT_SECONDS = 100, 600


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
    node_limit: Annotated[
        str | None,
        typer.Option(
            help="Nodes of the solver for the variability of each component, or none "
            f"[{JOINT_NODES} with --variability tract-joint and highs, else none]."
        ),
    ] = None,
    nearest: Annotated[
        bool, typer.Option("--nearest", help="Least deviation where no records fit.")
    ] = False,
    taken_as_true: TakenOption = False,
) -> None:
    """Reconstruct the records behind published tables, and say what is proved about them."""
    from bayesrisk.experiments import ReconstructionStudy

    joint = variability == "tract-joint"
    study = ReconstructionStudy(
        data_path(tables, TABLES),
        scope=scope,
        variability=variability,
        solver=solver,
        time_limit=_seconds(time_limit, joint=joint),
        node_limit=_nodes(node_limit, joint=joint and solver == "highs"),
        nearest=nearest,
        taken_as_true=taken_as_true,
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


def _nodes(text: str | None, *, joint: bool) -> int | None:
    """Return the limit of nodes that was asked for, or that of what takes long."""
    if text is None:
        return JOINT_NODES if joint else None
    if text == "none":
        return None
    if not text.isdecimal():
        raise ArgumentError(f"node_limit must be a whole number or none, got {shown(text)}")
    return int(text)

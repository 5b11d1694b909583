"""``bayesrisk tabulate``: records in, a folder of exact tables out."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk import _files
from bayesrisk.cli._data import MICRODATA, data_path
from bayesrisk.exceptions import ArgumentError, OutputError

if TYPE_CHECKING:
    from bayesrisk.tables import Microdata, Records, Workload

__all__ = ["tabulate"]


def tabulate(
    records: Annotated[
        Path,
        typer.Argument(help="Records (.parquet, .csv), a folder of microdata, or sample:NAME."),
    ],
    tables: Annotated[str, typer.Option(help="Workloads, with commas: sf1-block,sf1-tract.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")],
    levels: Annotated[
        str | None, typer.Option(help="Levels, with commas, instead of the workloads' own.")
    ] = None,
    without: Annotated[str, typer.Option(help="Tables to leave out, with commas.")] = "",
    schema: Annotated[
        str | None, typer.Option(help="Schema of a file of records [that of the tables].")
    ] = None,
    geography: Annotated[
        str | None, typer.Option(help="census, spine-2020 or enumeration-1940.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace tables that the folder holds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")] = False,
) -> None:
    """Count records into published tables, exactly."""
    from bayesrisk.tables import tabulate

    _check_output(output, replace=replace)
    wanted = _workload(_names(tables), levels, _names(without), geography)
    counter = _Progress(quiet=quiet or as_json)
    source = data_path(records, MICRODATA)
    made = tabulate(_source(source, wanted, schema, counter), wanted)
    counter.say(f"writing {output}")
    made.write(output)
    summary: dict[str, Any] = {
        "folder": str(output),
        "tables": len(made.counts),
        "cells": wanted.n_cells,
        "places": {level: len(places) for level, places in made.geoids.items()},
        "rows": int(sum(counts.nnz for counts in made.counts.values())),
    }
    if as_json:
        typer.echo(json.dumps(summary, indent=2))
        return
    places = ", ".join(f"{n} of level {level}" for level, n in summary["places"].items())
    typer.echo(f"{summary['tables']} tables of {summary['cells']} cells in {output}")
    typer.echo(f"places: {places}")
    typer.echo(f"{summary['rows']} counts are not zero")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _check_output(folder: Path, *, replace: bool) -> None:
    """Refuse a folder that is in use before anything is computed."""
    with _files.explained(folder):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if any(not _files.is_leftover(name) for name in names):
        if "_manifest.json" not in names or "_release.json" in names:
            raise OutputError(f"{folder}: must be empty or hold tables; nothing was changed")
        if not replace:
            raise OutputError(
                f"{folder}: holds tables; add --replace to make them again, or choose another "
                "folder; nothing was changed"
            )


def _workload(
    names: list[str], levels: str | None, without: list[str], geography: str | None
) -> "Workload":
    from bayesrisk.tables import Workload

    if not names:
        raise ArgumentError("tables must name at least one workload, got none")
    places = None if levels is None else _names(levels)
    first, *others = [Workload.named(name, levels=places, geography=geography) for name in names]
    return first.union(*others).select(without=without)


def _source(
    path: Path, wanted: "Workload", name: str | None, counter: "_Progress"
) -> "Microdata | Iterator[Records]":
    """Return microdata of a folder, or the pieces of a file in the schema that is counted."""
    from bayesrisk.tables import Microdata, Schema, as_microdata, iter_records

    if path.is_dir():
        if name is not None:
            raise ArgumentError("schema goes with a file of records; microdata name their own")
        return Microdata.read(path)
    about = (
        wanted.schema
        if name is None
        else Schema.named(name, geography=wanted.schema.geography.name)
    )
    pieces = counter.counted(iter_records(path, schema=about))
    return (as_microdata(piece).for_schema(wanted.schema) for piece in pieces)


class _Progress:
    """Lines on standard error: what was read so far."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def say(self, text: str) -> None:
        """Print a line with the time."""
        if not self.quiet:
            now = datetime.now().astimezone().strftime("%H:%M:%S")
            typer.echo(f"{now} tabulate: {text}", err=True)

    def counted(self, pieces: "Iterator[Records]") -> "Iterator[Records]":
        """Pass pieces on, with a line after each."""
        done = 0
        for piece in pieces:
            yield piece
            done += len(piece)
            self.say(f"{done} records counted")

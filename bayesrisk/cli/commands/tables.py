"""``bayesrisk tabulate``: records in, a folder of exact tables out."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk import _files
from bayesrisk.cli.data import (
    FOLDER_BY_PLACE,
    check_folder_names_its_own,
    held_whole,
    record_path,
    record_pieces,
    workload_of,
)
from bayesrisk.cli.options import DialectOption, RunOptions, called, names
from bayesrisk.cli.output import print_json, print_shards, progress, rows_done
from bayesrisk.exceptions import ArgumentError, OutputError

if TYPE_CHECKING:
    from bayesrisk.tables import Microdata, Records, Workload


def tabulate(
    records: Annotated[
        Path,
        typer.Argument(help="Records (.parquet, .csv), a folder of microdata, or sample:NAME."),
    ],
    tables: Annotated[
        str,
        typer.Option(
            help="Workloads, with commas: sf1-block,sf1-tract; or files of your own: *.toml."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")],
    how: RunOptions,
    levels: Annotated[
        str | None, typer.Option(help="Levels, with commas, instead of the workloads' own.")
    ] = None,
    without: Annotated[str, typer.Option(help="Tables to leave out, with commas.")] = "",
    schema: Annotated[
        str | None,
        typer.Option(help="Schema of a file of records, a name or a .toml file [the tables' own]."),
    ] = None,
    geography: Annotated[
        str | None, typer.Option(help="census, spine-2020 or enumeration-1940.")
    ] = None,
    dialect: DialectOption = None,
    by: Annotated[
        str | None,
        typer.Option(help="Level, such as county: tables by place, one place in memory at a time."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace tables that the folder holds.")
    ] = False,
) -> None:
    """Count records into published tables, exactly.

    Codes of a file of records are those of the schema, unless --dialect or the file says otherwise.
    Microdata by place become tables by the same places.
    """
    from bayesrisk.tables.exchange.partitions import Partitions

    wanted = _workload(names(tables), levels, names(without), geography)
    source = record_path(records)
    there = Partitions.there(source)
    if there or by is not None:
        if replace:
            raise ArgumentError("--replace does not go with tables by place; use a new folder")
        if there and by is not None:
            raise ArgumentError(f"--by goes with records that are not by place, as {source} is")
        if there:
            check_folder_names_its_own(schema, dialect)
            _by_place(source, wanted, output, how)
            return
        _split(source, wanted, output, how, (schema, dialect), str(by))
        return
    how.refuse("goes with --by, or with microdata by place")
    _whole(source, wanted, output, how, (schema, dialect), replace=replace)


def _whole(
    source: Path,
    wanted: "Workload",
    output: Path,
    how: RunOptions,
    codes: tuple[str | None, str | None],
    *,
    replace: bool,
) -> None:
    """Count records into one folder."""
    from bayesrisk.tables import tabulate

    _check_output(output, replace=replace)
    with progress(quiet=how.quiet or how.as_json, title="tabulate", unit="records") as advance:
        made = tabulate(_source(source, wanted, *codes, rows_done(advance)), wanted)
        made.write(output)
    summary: dict[str, Any] = {
        "folder": str(output),
        "tables": len(made.counts),
        "cells": wanted.n_cells,
        "places": {level: len(places) for level, places in made.geoids.items()},
        "rows": int(sum(counts.nnz for counts in made.counts.values())),
    }
    if how.as_json:
        print_json(summary)
        return
    places = ", ".join(f"{n} of level {level}" for level, n in summary["places"].items())
    typer.echo(f"{summary['tables']} tables of {summary['cells']} cells in {output}")
    typer.echo(f"places: {places}")
    typer.echo(f"{summary['rows']} counts are not zero")


def _split(
    source: Path,
    wanted: "Workload",
    output: Path,
    how: RunOptions,
    codes: tuple[str | None, str | None],
    level: str,
) -> None:
    """Put records down by place beside the output, and count them."""
    from bayesrisk.experiments import split_by_place

    with _files.scratch_folder(output) as folder:
        pieces = _source(source, wanted, *codes, rows_done(None))
        with called("level", "--by"):
            split_by_place(pieces, folder / "records", level=level)
        _by_place(folder / "records", wanted, output, how)


def _by_place(source: Path, wanted: "Workload", output: Path, how: RunOptions) -> None:
    """Count microdata by place, a part at a time."""
    from bayesrisk.experiments import TabulationStudy

    done = how.run(TabulationStudy(source, wanted), output, "tabulate")
    if how.as_json:
        print_json(vars(done))
        return
    typer.echo(f"{len(wanted.tables)} tables of {wanted.n_cells} cells in {output}")
    if done.complete:
        typer.echo(f"places: {done.places} of level {wanted.levels[-1]}, in {done.shards} parts")
    print_shards(done)


def _check_output(folder: Path, *, replace: bool) -> None:
    """Refuse a folder that is in use before anything is computed."""
    with _files.explained(folder):
        held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if any(not _files.is_leftover(name) for name in held):
        if "_manifest.json" not in held or "_release.json" in held:
            raise OutputError(f"{folder}: must be empty or hold tables; nothing was changed")
        if not replace:
            raise OutputError(
                f"{folder}: holds tables; add --replace to make them again, or choose another "
                "folder; nothing was changed"
            )


def _workload(
    chosen: list[str], levels: str | None, without: list[str], geography: str | None
) -> "Workload":
    if not chosen:
        raise ArgumentError("--tables must name at least one workload, got none")
    places = None if levels is None else names(levels)
    with called("name", "--tables"):
        first, *others = [workload_of(name, levels=places, geography=geography) for name in chosen]
    with called("tables", "--without"):
        return first.union(*others).select(without=without)


def _source(
    path: Path,
    wanted: "Workload",
    name: str | None,
    dialect: str | None,
    advance: Callable[[int], None],
) -> "Microdata | Iterator[Records]":
    """Return microdata of a folder, or the pieces of a file in the schema that is counted."""
    from bayesrisk.tables import Microdata, as_microdata

    if path.is_dir():
        check_folder_names_its_own(name, dialect)
        with held_whole(FOLDER_BY_PLACE):
            read = Microdata.read(path)
        advance(sum(len(kind) for kind in (read.persons, read.households) if kind is not None))
        return read
    pieces = _counted(record_pieces(path, wanted.schema, name, dialect), advance)
    return (as_microdata(piece).for_schema(wanted.schema) for piece in pieces)


def _counted(pieces: "Iterator[Records]", advance: Callable[[int], None]) -> "Iterator[Records]":
    """Pass pieces on, and tell how many records they hold."""
    for piece in pieces:
        yield piece
        advance(len(piece))

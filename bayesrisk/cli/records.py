"""``bayesrisk tabulate`` and ``first-look``: records in, exact tables or rare records out."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.disk.text import IN_PIECES
from bayesrisk.cli.command import advised
from bayesrisk.cli.data import load_schema
from bayesrisk.cli.options import (
    DialectOption,
    JsonOption,
    RecordsArgument,
    RunOptions,
    SchemaOption,
    parse_names,
)
from bayesrisk.cli.printing import counter, listed, print_answer, progress
from bayesrisk.cli.sources import (
    ColumnOptions,
    RecordSource,
    check_folder_names_its_own,
    infer_schema,
    usual_tables,
)
from bayesrisk.exceptions import ArgumentError, OutputError

if TYPE_CHECKING:
    import pandas as pd


def tabulate(
    records: RecordsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")],
    runner: RunOptions,
    choices: ColumnOptions,
    tables: Annotated[
        str | None,
        "Workloads, with commas: sf1-block,sf1-tract; or files of your own: *.toml [of a "
        "file with columns of its own: one- and two-way tables of each place].",
    ] = None,
    levels: Annotated[str | None, "Levels, with commas, instead of the workloads' own."] = None,
    without: Annotated[str, "Tables to leave out, with commas."] = "",
    schema: SchemaOption = None,
    geography: Annotated[str | None, "census, spine-2020 or enumeration-1940."] = None,
    dialect: DialectOption = None,
    by: Annotated[
        str | None, "Level, such as county: tables by place, one place in memory at a time."
    ] = None,
    replace: Annotated[bool, "Replace tables that the folder holds."] = False,
) -> None:
    """Count records into published tables, exactly.

    Codes of a file of records are those of the schema, unless --dialect or the file says otherwise.
    Microdata by place become tables by the same places.
    """
    if tables is not None and not parse_names(tables):
        raise ArgumentError("--tables must name at least one workload, got none")
    source = RecordSource(records)
    document: dict[str, Any] = dataclasses.asdict(choices) | {
        "tables": parse_names(tables),
        "levels": None if levels is None else parse_names(levels),
        "geography": geography,
        "without": parse_names(without),
        "schema": schema,
        "dialect": dialect,
    }
    wanted = usual_tables([source.file or source.path], document, quiet=runner.quiet)
    if source.is_by_place or by is not None:
        if replace:
            raise ArgumentError("--replace does not go with tables by place; use a new folder")
        source.check_by_place(by, document)
        recoded = functools.partial(_recoded, source, wanted, document, counter(None))
        with source.parts(recoded, by, output) as folder:
            _by_place(folder, wanted, output, runner)
        return
    runner.refuse("goes with --by, or with microdata by place")
    _check_output(output, replace=replace)
    with progress(
        quiet=runner.quiet or runner.as_json, title="tabulate", unit="records"
    ) as advance:
        published = br.tabulate(_recoded(source, wanted, document, counter(advance)), wanted)
        (br.tables.published.marked(published) if source.mark else published).write(output)
    summary: dict[str, Any] = {
        "folder": str(output),
        "tables": len(published.counts),
        "cells": wanted.n_cells,
        "places": {level: len(places) for level, places in published.geoids.items()},
        "rows": int(sum(counts.nnz for counts in published.counts.values())),
    }
    lines = [
        f"{summary['tables']} tables of {summary['cells']} cells in {output}",
        f"places: {listed(summary['places'], ' of level ')}",
        f"{summary['rows']} counts are not zero",
    ]
    print_answer(source.mark | summary, lines, as_json=runner.as_json)


def _by_place(source: Path, wanted: "br.Workload", output: Path, runner: RunOptions) -> None:
    """Count microdata by place, a part at a time."""
    from bayesrisk.experiments.by_place import TabulationStudy

    summary = runner.run(TabulationStudy(source, wanted), output, "tabulate")
    lines = [f"{len(wanted.tables)} tables of {wanted.n_cells} cells in {output}"]
    if summary.complete:
        lines.append(
            f"places: {summary.places} of level {wanted.levels[-1]}, in {summary.shards} parts"
        )
    runner.show(summary, lines)


def _check_output(folder: Path, *, replace: bool) -> None:
    """Refuse a folder that is in use before anything is computed."""
    with disk.explained(folder):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if any(not disk.is_leftover(name) for name in names):
        if "_manifest.json" not in names or "_release.json" in names:
            raise OutputError(f"{folder}: must be empty or hold tables; nothing was changed")
        if not replace:
            raise OutputError(
                f"{folder}: holds tables; add --replace to make them again, or choose another "
                "folder; nothing was changed"
            )


def _recoded(
    source: RecordSource,
    wanted: "br.Workload",
    document: Mapping[str, Any],
    advance: Callable[[int], None],
) -> "br.tables.Microdata | Iterator[br.Records]":
    """Return microdata of a folder, or the pieces of a file in the schema that is counted."""
    read = source.pieces(wanted.schema, document["schema"], document["dialect"])
    if isinstance(read, br.tables.Microdata):
        advance(sum(len(kind) for kind in (read.persons, read.households) if kind is not None))
        return read
    return _counted(read, wanted.schema, advance)


def _counted(
    pieces: "Iterator[br.Records]", schema: "br.Schema", advance: Callable[[int], None]
) -> "Iterator[br.Records]":
    """Yield pieces in a schema, and tell how many records they hold."""
    from bayesrisk.tables.microdata import as_microdata

    for piece in pieces:
        yield as_microdata(piece).for_schema(schema)
        advance(len(piece))


_ONE_PLACE = (
    ": every record is compared with every other one, so give those of one place, such as one "
    "folder part-CODE of microdata by place"
)


def first_look(
    records: RecordsArgument,
    choices: ColumnOptions,
    keys: Annotated[
        str | None,
        "Columns that an intruder may know, with commas; their values are compared as "
        "they are, without a schema [all but the last of a file, numbers in groups].",
    ] = None,
    sensitive: Annotated[str | None, "Column whose values classes of records should hide."] = None,
    max_size: Annotated[int, "Most keys of a minimal sample unique that is looked for."] = 3,
    schema: Annotated[
        str | None,
        "Schema of a file, a name or a .toml file: its values are checked, and levels of "
        "its geography may be keys.",
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Parquet file with a row for each record.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count sample uniques, special uniques and small classes of microdata."""
    source = RecordSource(records)
    data: pd.DataFrame | br.Records
    with advised(IN_PIECES, _ONE_PLACE):
        if keys is None:
            data, chosen, sensitive = _file_records(source, schema, choices, sensitive)
        else:
            data, chosen = _read(source, schema), parse_names(keys)
    result = br.risk.first_look(data, keys=chosen, sensitive=sensitive, max_size=max_size)
    if output is not None:
        with disk.whole_file(output) as stream:
            frame = result.to_frame()
            frame.to_parquet(stream, index=False, compression="zstd", write_page_checksum=True)
    summary: dict[str, Any] = {
        "records": len(result.class_size),
        "keys": list(result.keys),
        "k": result.k,
        "unique": int(result.unique.sum()),
        "special": int(result.special.sum()),
        "classes": result.summary().to_dict(orient="records"),
    }
    if result.sensitive is not None:
        summary |= {"sensitive": result.sensitive, "l": result.l}
    print_answer(source.mark | summary, result._answer(), as_json=as_json)


def _file_records(
    source: RecordSource, name: str | None, choices: ColumnOptions, sensitive: str | None
) -> "tuple[br.Records, list[str], str | None]":
    """Return the records of a file with columns of its own, and its keys but the last column."""
    if source.file is None:
        raise ArgumentError("--keys must be given for microdata, such as sex,age")
    if name is None:
        schema = infer_schema([source.file], dataclasses.asdict(choices), quiet=False)
    else:
        schema = load_schema(name)
    keys = [*schema.geography.levels[-1:], *schema.names]
    sensitive = sensitive or schema.names[-1]
    keys = [key for key in keys if key not in ("all", sensitive)]
    return br.Records.read(source.path, schema=schema), keys, sensitive


def _read(source: RecordSource, schema: str | None) -> "pd.DataFrame | br.Records":
    """Return the persons (or households) of a folder, or the rows of a file."""
    if source.file is None:
        check_folder_names_its_own(schema, None)
        microdata = br.tables.Microdata.read(source.path)
        return next(unit for unit in (microdata.persons, microdata.households) if unit is not None)
    if schema is not None:
        return br.Records.read(source.path, schema=load_schema(schema))
    from bayesrisk._base.disk.record_file import record_frame  # slow to import

    return record_frame(source.file)

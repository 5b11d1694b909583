"""Files of records: what is counted and looked at, and what own columns mean."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.disk.text import IN_PIECES
from bayesrisk.cli import base
from bayesrisk.exceptions import ArgumentError, OutputError, quote

if TYPE_CHECKING:
    import pandas as pd


# -----------------------------------------------------------------------------
# Files with columns of their own: what these are taken for, and other choices.


#: Columns that are taken for the place where nobody says another one.
_PLACES = ("place", "block")
#: A number, but none that begins with a zero, which is a code.
_NUMBER = r"[+-]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?"
#: Kinds of records that an audit can hold in mind at once.
MOST_KINDS = 2**24
_SHOWN = 6


@dataclass(frozen=True)
class ColumnOptions:
    """Options of a file of records with columns of its own."""

    place: Annotated[
        list[str] | None,
        "Of a file with columns of its own: column with names of places; several, coarse "
        "to fine, with commas [place or block, if there is one].",
    ] = None
    columns: Annotated[
        list[str] | None,
        "Of such a file: columns that are counted [all but places and those that identify].",
    ] = None
    cuts: Annotated[
        list[str] | None,
        typer.Option(
            "--cut",
            help="Of such a file: NAME=NUMBER,NUMBER, where the groups of a column begin; may be "
            "repeated [round numbers, where there are many values].",
        ),
    ] = None


def usual_tables(
    sources: Sequence[Any],
    document: dict[str, Any],
    *,
    quiet: bool = False,
    persons: tuple[list[str], list[str]] | None = None,
) -> "br.Workload":
    """Return the tables that are asked for, or the usual ones.

    Those of ``persons``, workloads and tables of these, are for records in codes of the package.
    A schema that was made of the records takes the place of ``schema`` in the document.
    """
    choices = {key: document.pop(key, None) for key in ("place", "columns", "cuts")}
    levels, only = document.get("levels"), document.get("only")
    if document.get("tables") or not (schema := _schema(sources, document, choices, quiet=quiet)):
        if choice := next((key for key, value in choices.items() if value), None):
            option = {"cuts": "cut"}.get(choice, choice)
            raise ArgumentError(
                f"--{option} goes with files that are read by their own columns: of others the "
                "schema and the tables say it"
            )
        if not document.get("tables") and persons is not None:
            document["tables"], only = persons
        if not document.get("tables"):
            raise ArgumentError(
                "--tables must be given for records of the census, or tables in --config; "
                "`bayesrisk list workloads` has the built-in ones"
            )
        options = {"levels": levels, "geography": document.get("geography"), "only": only}
        without = document.get("without", ())
        return base.union_of_workloads(document["tables"], without=without, **options)
    workload = br.Workload.of(schema, levels=levels)
    if only or document.get("without"):
        workload = workload.select(tables=only, without=document.get("without", ()))
    return workload


def _schema(
    sources: Sequence[Any], document: dict[str, Any], choices: Mapping[str, Any], *, quiet: bool
) -> "br.Schema | None":
    """Return the schema of records with columns of their own; None for others."""
    from bayesrisk.tables.records import CODINGS

    if document.get("schema"):
        with base.renamed({"name": "--schema"}):
            schema = base.load_schema(document["schema"])
        return None if schema.name in br.Schema.available() else schema
    if document.get("dialect") or document.get("geography"):
        return None
    files = [one for one in sources if isinstance(one, Path) and not one.is_dir()]
    if len(files) == len(sources):
        codings = [CODINGS.make(name) for name in CODINGS.builtin]
        if any(one.describes(file) for file in files for one in codings):
            return None
        document["schema"] = schema = infer_schema(files, choices, quiet=quiet)
        return schema
    folder = sources[0]
    if (
        len(sources) > 1
        or not isinstance(folder, Path)
        or not (folder / "persons.parquet").exists()
    ):
        return None
    data = br.Microdata.read(folder).persons
    return None if data is None or data.schema.name in br.Schema.available() else data.schema


def infer_schema(files: Sequence[Path], choices: Mapping[str, Any], *, quiet: bool) -> "br.Schema":
    """Return the schema of files with columns of their own, and say what they were taken for."""
    import pandas as pd

    frames = [read_frame(file) for file in files]
    for file, frame in zip(files, frames, strict=True):
        if not len(frame):
            raise ArgumentError(f"{file} must have at least one row, got none")
        if missing := [c for c in frames[0].columns if c not in frame.columns]:
            raise ArgumentError(f"{file} must have the columns of {files[0]}, lacks {missing[0]!r}")
    frame = pd.concat(frames, ignore_index=True)
    places = base.names(choices["place"]) or [name for name in _PLACES if name in frame][:1]
    columns = base.names(choices["columns"]) or None
    for option, names in (("--place", places), ("--columns", columns or ())):
        for name in names:
            _check_column(option, name, frame)
    cuts = _cuts(choices["cuts"] or [], frame)
    schema = br.Schema.from_frame(
        typed(frame), name=files[0].stem, columns=columns, place=places or None, cuts=cuts
    )
    if not quiet:
        base.say(*reading_lines(schema, frame, files))
    return schema


def _check_column(option: str, name: str, frame: "pd.DataFrame") -> None:
    """Refuse a column that a file does not have."""
    from bayesrisk._base import validation as check

    check.choice(name, f"{option}: column", tuple(map(str, frame.columns)))


def _cuts(texts: Sequence[str], frame: "pd.DataFrame") -> dict[str, list[float]]:
    """Return the numbers at which the groups of columns begin."""
    cuts = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not base.names(values):
            raise ArgumentError(f"--cut must be NAME=NUMBER,NUMBER, got {quote(text)}")
        _check_column("--cut", name, frame)
        cuts[name] = [base.number(value, f"--cut {name}") for value in base.names(values)]
    return cuts


def reading_lines(schema: "br.Schema", frame: "pd.DataFrame", files: Sequence[Path]) -> list[str]:
    """Return lines about the columns of files, and the options that say otherwise."""
    from bayesrisk.mechanisms.registry import usual_roles

    levels = schema.geography.levels[1:]
    place = f"{', '.join(levels)}: {len(schema.geography.codes)} places" if levels else "none"
    lines = [
        f"{', '.join(map(str, files))}: read by its own columns",
        f"  place: {place} (--place)",
    ]
    for a in schema.attributes:
        unit = "groups" if a.cuts else "categories"
        values = list(a.labels) or [f"{a.first} to {a.last}"]
        if len(values) > _SHOWN:
            values = [*values[: _SHOWN - 2], "...", values[-1]]
        kinds = f"{a.size} {unit}: " if a.labels else "whole numbers "
        lines.append(f"  {a.name}: {kinds}{', '.join(values)}{' (--cut)' * bool(a.cuts)}")
    left = [str(c) for c in frame.columns if c not in (*schema.names, *levels)]
    background, stated = usual_roles(schema)
    return [
        *lines,
        *([f"  left out: {', '.join(left)} (--columns)"] if left else []),
        f"  others may know {', '.join(background) or 'nothing'} (--known, --keys); at risk is "
        f"{', '.join(stated)} (--stated, --sensitive)",
    ]


def typed(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame of text with numbers where a column holds nothing else."""
    import pandas as pd

    columns = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_string_dtype(column.dtype):
            column = column.mask(column == "")
            values = column.dropna()
            if len(values) and values.str.fullmatch(_NUMBER).all():
                column = pd.to_numeric(column)
        columns[name] = column
    return pd.DataFrame(columns)


def read_frame(file: Path) -> "pd.DataFrame":
    """Return the rows of a CSV file as text, or those of a Parquet file as they are."""
    from bayesrisk._base.disk.delimited import text_frame
    from bayesrisk._base.disk.parquet import read_table

    if file.suffix.lower() == ".parquet":
        table: pd.DataFrame = read_table(file).to_pandas()
        return table
    if file.suffix.lower() != ".csv":
        raise ArgumentError(f"records must end in .parquet or .csv, got {quote(str(file))}")
    return text_frame(file)


# -----------------------------------------------------------------------------
# ``bayesrisk tabulate``: records in, a folder of exact tables out.


def tabulate(
    records: base.RecordsArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")],
    runner: base.RunOptions,
    choices: ColumnOptions,
    tables: Annotated[
        str | None,
        "Workloads, with commas: sf1-block,sf1-tract; or files of your own: *.toml [of a "
        "file with columns of its own: one- and two-way tables of each place].",
    ] = None,
    levels: Annotated[str | None, "Levels, with commas, instead of the workloads' own."] = None,
    without: Annotated[str, "Tables to leave out, with commas."] = "",
    schema: base.SchemaOption = None,
    geography: Annotated[str | None, "census, spine-2020 or enumeration-1940."] = None,
    dialect: base.DialectOption = None,
    by: Annotated[
        str | None, "Level, such as county: tables by place, one place in memory at a time."
    ] = None,
    replace: Annotated[bool, "Replace tables that the folder holds."] = False,
) -> None:
    """Count records into published tables, exactly.

    Codes of a file of records are those of the schema, unless --dialect or the file says otherwise.
    Microdata by place become tables by the same places.
    """
    from bayesrisk.tables.exchange import Partitions

    if tables is not None and not base.names(tables):
        raise ArgumentError("--tables must name at least one workload, got none")
    source = base.record_path(records)
    document: dict[str, Any] = dataclasses.asdict(choices) | {
        "tables": base.names(tables),
        "levels": None if levels is None else base.names(levels),
        "geography": geography,
        "without": base.names(without),
        "schema": schema,
        "dialect": dialect,
    }
    wanted = usual_tables([source], document, quiet=runner.quiet)
    schema = document["schema"]
    is_by_place, mark = Partitions.there(source), base.made_up_mark(source)
    if is_by_place or by is not None:
        if replace:
            raise ArgumentError("--replace does not go with tables by place; use a new folder")
        if is_by_place and by is not None:
            raise ArgumentError(f"--by goes with records that are not by place, as {source} is")
        if is_by_place:
            base.check_folder_names_its_own(schema, dialect)
            _by_place(source, wanted, output, runner)
            return
        pieces = _source(source, wanted, schema, dialect, base.counter(None))
        with base.split_records(pieces, output, str(by), made_up=bool(mark)) as folder:
            _by_place(folder, wanted, output, runner)
        return
    runner.refuse("goes with --by, or with microdata by place")
    _check_output(output, replace=replace)
    with base.progress(
        quiet=runner.quiet or runner.as_json, title="tabulate", unit="records"
    ) as advance:
        pieces = _source(source, wanted, schema, dialect, base.counter(advance))
        published = br.tabulate(pieces, wanted)
        (br.tables.published.marked(published) if mark else published).write(output)
    summary: dict[str, Any] = {
        "folder": str(output),
        "tables": len(published.counts),
        "cells": wanted.n_cells,
        "places": {level: len(places) for level, places in published.geoids.items()},
        "rows": int(sum(counts.nnz for counts in published.counts.values())),
    }
    lines = [
        f"{summary['tables']} tables of {summary['cells']} cells in {output}",
        f"places: {base.listed(summary['places'], ' of level ')}",
        f"{summary['rows']} counts are not zero",
    ]
    base.print_answer(mark | summary, lines, as_json=runner.as_json)


def _by_place(source: Path, wanted: "br.Workload", output: Path, runner: base.RunOptions) -> None:
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


def _source(
    path: Path,
    wanted: "br.Workload",
    name: "str | br.Schema | None",
    dialect: str | None,
    advance: Callable[[int], None],
) -> "br.Microdata | Iterator[br.Records]":
    """Return microdata of a folder, or the pieces of a file in the schema that is counted."""
    read = base.record_pieces(path, wanted.schema, name, dialect)
    if isinstance(read, br.Microdata):
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


# -----------------------------------------------------------------------------
# ``bayesrisk first-look``: microdata in, how many records are rare out.


_ONE_PLACE = (
    ": every record is compared with every other one, so give those of one place, such as one "
    "folder part-CODE of microdata by place"
)


def first_look(
    records: base.RecordsArgument,
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
    as_json: base.JsonOption = False,
) -> None:
    """Count sample uniques, special uniques and small classes of microdata."""
    source = base.record_path(records)
    data: pd.DataFrame | br.Records
    with base.advised(IN_PIECES, _ONE_PLACE):
        if keys is None:
            data, chosen, sensitive = _file_records(source, schema, choices, sensitive)
        else:
            data, chosen = _read(source, schema), base.names(keys)
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
    base.print_answer(base.made_up_mark(source) | summary, result._answer(), as_json=as_json)


def _file_records(
    path: Path, name: str | None, choices: ColumnOptions, sensitive: str | None
) -> "tuple[br.Records, list[str], str | None]":
    """Return the records of a file with columns of its own, and its keys but the last column."""
    if path.is_dir():
        raise ArgumentError("--keys must be given for microdata, such as sex,age")
    inferred = (
        infer_schema([path], dataclasses.asdict(choices), quiet=False) if name is None else None
    )
    schema = inferred or base.load_schema(str(name))
    keys = [*schema.geography.levels[-1:], *schema.names]
    sensitive = sensitive or schema.names[-1]
    keys = [key for key in keys if key not in ("all", sensitive)]
    return br.Records.read(path, schema=schema), keys, sensitive


def _read(path: Path, schema: str | None) -> "pd.DataFrame | br.Records":
    """Return the persons (or households) of a folder, or the rows of a file."""
    if path.is_dir():
        base.check_folder_names_its_own(schema, None)
        microdata = br.Microdata.read(path)
        return next(unit for unit in (microdata.persons, microdata.households) if unit is not None)
    if schema is not None:
        return br.Records.read(path, schema=base.load_schema(schema))
    return read_frame(path)

"""Files of records: what is made, counted, looked at and converted, and what own columns mean."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.disk.text import IN_PIECES, MISSING
from bayesrisk.cli import base
from bayesrisk.exceptions import ArgumentError, DataError, DataWarning, OutputError, quote

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.census.population.summary import PopulationSummary

# -----------------------------------------------------------------------------
# Files with columns of their own: what these are taken for, and other choices.


#: Columns of persons of the census, by whatever name: files that have them all are read as these.
_CENSUS = ("block", "sex", "age", "race", "hisp")
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
    census: tuple[list[str], list[str]] | None = None,
) -> "br.Workload":
    """Return the tables that are asked for, or the usual ones.

    Those of the ``census``, workloads and tables of these, are for records of it.  A schema that
    was made of the records takes the place of ``schema`` in the document.
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
        if not document.get("tables") and census is not None:
            document["tables"], only = census
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
    """Return the schema of records that are not census; None for others."""
    from bayesrisk.census.readers.record_form import file_columns, missing_columns, said_by_file

    if document.get("schema"):
        with base.renamed({"name": "--schema"}):
            schema = base.load_schema(document["schema"])
        return None if schema.name in br.Schema.available() else schema
    if document.get("dialect") or document.get("geography"):
        return None
    files = [one for one in sources if isinstance(one, Path) and not one.is_dir()]
    if len(files) == len(sources):
        # A file may say that it is of persons of the census, or look so.
        for file in files:
            if said_by_file(file) is not None or not missing_columns(file_columns(file), _CENSUS):
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
# ``bayesrisk simulate``: a synthetic population in a folder, beside the nation's figures.


def _settings(preset: str, blocks: int | None, changes: list[str]) -> "br.census.PopulationSpec":
    """Return the settings named, with those changed that are given as NAME=VALUE."""
    from bayesrisk._base import validation as check

    kinds = get_type_hints(br.census.PopulationSpec)
    settings: dict[str, Any] = {} if blocks is None else {"n_blocks": blocks}
    for text in changes:
        name, equals, value = text.partition("=")
        if not equals:
            raise ArgumentError(f"--set must be NAME=VALUE, got {quote(text)}")
        if name not in kinds:
            advice = check.did_you_mean(name, kinds) or f"; there are {', '.join(kinds)}"
            raise ArgumentError(f"--set: unknown setting {quote(name)}{advice}")
        settings[name] = value if kinds[name] is str else base.number(value, f"--set {name}")
    given = {"name": "--preset", "n_blocks": "--blocks"}
    given |= {name: f"--set {name}" for name in (text.partition("=")[0] for text in changes)}
    with base.renamed(given):
        return br.census.population_spec(preset, **settings)


def _lines(summary: "PopulationSummary") -> list[str]:
    """Return the summary for people: each figure with the nation's in brackets."""
    frame = summary.to_frame()
    names = [c for c in frame if f"published_{c}" in frame]
    lines = [
        "By block population, in per cent (in brackets: United States 2010, published):",
        "  " + "".join(str(c).rjust(16) for c in ["population", *names]),
    ]
    for row in frame.to_dict(orient="records"):
        cells = [f"{row[name]:.1f} ({row[f'published_{name}']:.1f})" for name in names]
        lines.append("  " + "".join(text.rjust(16) for text in [row["population"], *cells]))
    rate = f"{100.0 * summary.violations / summary.subsidised:.1f}%" if summary.subsidised else "-"
    return [
        *lines,
        f"Blocks with people: {summary.blocks.sum()} of {summary.all_blocks}; "
        f"people: {summary.people.sum()}; in group quarters: {100 * summary.quarters:.1f}%; "
        f"people in an occupied unit: {summary.household_size:.2f}; "
        f"vacant units: {100 * summary.vacant:.1f}%",
        f"Subsidised households: {summary.subsidised}; over the occupancy limit: "
        f"{summary.violations} ({rate})",
    ]


def _document(summary: "PopulationSummary", folder: Path) -> dict[str, Any]:
    """Return the summary as JSON; what is not known is null."""

    def plain(value: object) -> object:
        return None if isinstance(value, float) and math.isnan(value) else value

    values = dataclasses.asdict(summary)
    arrays = {n: [plain(v) for v in a.tolist()] for n, a in values.items() if hasattr(a, "tolist")}
    return {"folder": str(folder), **{n: plain(v) for n, v in values.items()}, **arrays}


def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the microdata.")],
    seed: base.SeedOption,
    runner: base.RunOptions,
    preset: Annotated[str, "tract, county or state."] = "county",
    blocks: Annotated[int | None, "Blocks, instead of the preset's."] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting to change.")
    ] = None,
    nation: Annotated[bool, "A nation by county, each drawn by itself."] = False,
    scale: Annotated[
        str | None, "With --nation: share of the 11,078,297 blocks of 2010 [1]."
    ] = None,
    years: Annotated[
        int | None, "Also the same people so many years later: folders first and later."
    ] = None,
    change: Annotated[
        list[str] | None, "With --years, NAME=RATE: share for whom another value is recorded."
    ] = None,
    replace: Annotated[bool, "Replace microdata that the folder holds."] = False,
) -> None:
    """Make a synthetic population: persons, households and blocks."""
    settings = _settings(preset, blocks, changes or [])
    if change and years is None:
        raise ArgumentError("--change goes with --years")
    if nation or years is not None:
        other = "--nation" if nation else "--years"
        alone = ("--years", years), ("--blocks", blocks)
        for option, value in (*(alone if nation else ()), ("--replace", replace or None)):
            if value is not None:
                raise ArgumentError(f"{option} does not go with {other}")
    if nation:
        _nation(output, settings, seed, scale, runner)
        return
    if scale is not None:
        raise ArgumentError("--scale goes with --nation")
    runner.refuse("goes with --nation, which is drawn county by county")
    law = None if years is None else _law(years, change or [])
    _population(output, settings, seed, runner, replace=replace, law=law)


def _law(years: int, changes: list[str]) -> "br.tables.PopulationChange":
    """Return the stylised law of change, with rates that are given as NAME=RATE."""
    with base.renamed({"years": "--years"}):
        law = br.census.stylised_change(years)
    parts = [text.partition("=") for text in changes]
    for name, equals, _ in parts:
        if not equals or name not in law.schema.names:
            attributes = ", ".join(n for n in law.schema.names if n != law.age)
            raise ArgumentError(f"--change must be NAME=RATE of {attributes}, got {quote(name)}")
    given = {"changes": "--change"} | {f"changes[{n!r}]": f"--change {n}" for n, _, _ in parts}
    with base.renamed(given):
        rates = {name: base.number(rate, f"--change {name}") for name, _, rate in parts}
        return dataclasses.replace(law, changes=rates)


def _nation(
    output: Path,
    settings: "br.census.PopulationSpec",
    seed: int,
    scale: str | None,
    runner: base.RunOptions,
) -> None:
    """Make a nation by county, as a run in shards."""
    from bayesrisk.census.population.simulate import Nation
    from bayesrisk.census.studies.nation import NationStudy

    with base.renamed({"scale": "--scale"}):
        nation = Nation.scaled(1.0 if scale is None else base.number(scale, "--scale"), settings)
    summary = runner.run(NationStudy(nation, seed), output, "simulate")
    run = {k: v for k, v in summary.to_dict().items() if k != "population"}
    figures, lines = {}, list(base.shard_lines(summary))
    if summary.population is not None:
        figures, lines = _document(summary.population, output), _lines(summary.population) + lines
    base.print_answer({**figures, **run}, lines, as_json=runner.as_json)


def _population(
    output: Path,
    settings: "br.census.PopulationSpec",
    seed: int,
    runner: base.RunOptions,
    *,
    replace: bool,
    law: "br.tables.PopulationChange | None",
) -> None:
    """Make a population in one piece, and those people some years later by a law of change."""
    from numpy.random import SeedSequence

    with disk.explained(output):
        occupied = output.is_dir() and any(output.glob("*.parquet"))
    if occupied and not replace:
        raise OutputError(
            f"{output}: holds microdata; add --replace to make them again, or choose another "
            "folder; nothing was changed"
        )
    hidden = runner.quiet or runner.as_json
    with base.progress(quiet=hidden, title="simulate", unit="steps", patient=True) as advance:
        count_step = base.counter(advance, 3)
        population = br.simulate_population(settings, rng=seed)
        persons = population.persons
        if persons is None or len(persons) == 0:
            raise ArgumentError("nobody lives in any of the blocks: give more blocks")
        count_step()
        if law is None:
            population.write(output)
        else:
            later = br.census.simulate_later(persons, law, rng=SeedSequence([seed, law.years]))
            with disk.whole_folder(output, disk.new_folder) as folder:
                population.write(folder / "first")
                aged = dataclasses.replace(population, persons=later, households=None)
                aged.write(folder / "later")
        count_step()
        summary = br.census.population_summary(population)
        count_step()
    document, lines = _document(summary, output) | {base.MADE_UP: True}, _lines(summary)
    if law is not None:
        survivors = int(later.to_frame()["person"].isin(persons.to_frame()["person"]).sum())
        document |= {"later": len(later), "both": survivors}
        lines.append(f"{law.years} years later: {len(later)} people, {survivors} of them the same")
    base.print_answer(document, [*lines, f"microdata: {output}"], as_json=runner.as_json)


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


class Form(StrEnum):
    """Forms of files that can be read."""

    PPMF = "ppmf"
    PPMF_UNITS = "ppmf-units"
    RECORDS = "records"
    IPUMS = "ipums"
    IPUMS_1940 = "ipums-1940"
    HUD = "hud"
    SF1 = "sf1"
    PL94 = "pl94"
    DHC = "dhc"
    NHGIS = "nhgis"


_TABLES = (Form.SF1, Form.PL94, Form.DHC, Form.NHGIS)
#: Options, and the forms that they go with.
_FORMS: dict[str, tuple[Form, ...]] = {
    "codebook": (Form.NHGIS, Form.IPUMS, Form.IPUMS_1940),
    "person_kind": (Form.IPUMS,),
    "state": (Form.PPMF, Form.PPMF_UNITS, Form.RECORDS, Form.NHGIS),
    **dict.fromkeys(("workload", "table"), _TABLES),
    **dict.fromkeys(("level", "on_error"), (*_TABLES, Form.HUD)),
    "dialect": (Form.RECORDS,),
    "dataset": (Form.NHGIS,),
}


@dataclass(frozen=True)
class FormOptions:
    """Options of some forms of files only."""

    codebook: Annotated[Path | None, "NHGIS codebook, or DDI codebook of an IPUMS extract."] = None
    person_kind: Annotated[str | None, "Kind of persons' lines in an IPUMS extract: P, 2."] = None
    state: Annotated[str | None, "FIPS code or abbreviation that all places must have."] = None
    workload: Annotated[
        str | None, "Tables to read: sf1-block, sf1-tables, pl94-tables, dhc-block, ..."
    ] = None
    dataset: Annotated[str | None, "NHGIS data set, where several are there: ds172, ..."] = None
    table: Annotated[list[str] | None, "Only this table; may repeat."] = None
    level: Annotated[list[str] | None, "Level of the tables (may repeat) or HUD file."] = None
    dialect: base.DialectOption = None
    on_error: Annotated[
        str | None,
        "A value that cannot be in a HUD file or a table: 'refuse' the file, or keep it "
        "as 'missing' and count it [refuse].",
    ] = None


def convert_file(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="File, archive or folder.")],
    form: Annotated[Form, typer.Option("--from", help="Form of the input.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Parquet file, or folder for tables.")
    ],
    options: FormOptions,
    as_json: base.JsonOption = False,
    quiet: base.QuietOption = False,
) -> None:
    """Convert a census or HUD file to records in Parquet, or to a folder of tables."""
    for name, forms in _FORMS.items():
        if getattr(options, name) and form not in forms:
            option, alternatives = name.replace("_", "-"), " or ".join(forms)
            raise ArgumentError(f"--{option} goes with --from {alternatives}, got --from {form}")
    source = base.data_path(source, "census files")
    with disk.explained(output):
        if output.exists():
            raise OutputError(f"{output}: exists already; choose another name")
    rows_read = base.progress(quiet=quiet or as_json, title="convert-file", unit="rows")
    named = base.advised(MISSING, "; --on-error missing keeps such values as missing")
    with named, rows_read as bar, base.warnings_as_lines() as notices:
        advance = base.counter(bar)
        if form in _TABLES:
            tables = _tables(source, form, options, advance)
            tables.write(output, replace=False)
            rows = sum(len(places) for places in tables.geoids.values())
        else:
            rows = _write_parquet(_frames(source, form, options), output, advance)
    missing = [
        {"column": column, "reason": reason, "values": values}
        for warning in notices
        if isinstance(warning.message, DataWarning)
        for (column, reason), values in warning.message.missing.items()
    ]
    document = {"output": str(output), "rows": rows, "missing": missing}
    lines = [f"{rows} {'places' if form in _TABLES else 'rows'} in {output}"]
    base.print_answer(document, lines, as_json=as_json)


def _frames(source: Path, form: Form, options: FormOptions) -> Iterator[Any]:
    """Yield pieces of the input as Arrow tables; records say that their codes are the schema's."""
    import pyarrow as pa

    from bayesrisk.census.readers.record_form import METADATA

    if form is Form.HUD:
        level, rule = options.level or [], options.on_error or "refuse"
        if len(level) != 1:
            raise ArgumentError("--level must be given once for a HUD file: tract, county or state")
        for frame in br.census.iter_hud(source, level=level[0], on_error=rule):
            yield pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        return
    if form is Form.IPUMS:
        if (ddi := options.codebook) is None:
            raise ArgumentError("--codebook must be given for --from ipums: the DDI file (.xml)")
        with base.renamed({"person_kind": "--person-kind"}):
            frame = br.census.read_ipums(source, ddi=ddi, person_kind=options.person_kind)
        yield pa.Table.from_pandas(frame, preserve_index=False)
        return
    if form is Form.IPUMS_1940:
        pieces = br.census.iter_ipums_1940(source, ddi=options.codebook)
    elif form is Form.RECORDS:
        pieces = br.census.iter_record_form(source, dialect=options.dialect, state=options.state)
    else:
        ppmf = br.census.iter_ppmf if form is Form.PPMF else br.census.iter_ppmf_units
        pieces = ppmf(source, state=options.state)
    for records in pieces:
        yield records.table.replace_schema_metadata({METADATA: b"schema"})


def _tables(
    source: Path, form: Form, options: FormOptions, advance: Callable[[int], None]
) -> "br.PublishedTables":
    from bayesrisk.census.readers.text import combined

    if options.workload is None:
        raise ArgumentError("--workload must be given for tables, such as sf1-block")
    with base.renamed({"name": "--workload"}):
        chosen = br.Workload.named(options.workload, levels=options.level or None)
    with base.renamed({"tables": "--table"}):
        chosen = chosen.select(tables=options.table) if options.table else chosen
    settings: dict[str, Any] = {"workload": chosen, "on_error": options.on_error or "refuse"}
    if form is Form.NHGIS:
        settings |= {name: getattr(options, name) for name in ("codebook", "state", "dataset")}
    pieces = getattr(br.census, f"iter_{form}")(source, **settings)

    def counted() -> Iterator["br.PublishedTables"]:
        for piece in pieces:
            advance(sum(len(places) for places in piece.geoids.values()))
            yield piece

    return combined(counted(), source)


def _write_parquet(pieces: Iterator[Any], output: Path, advance: Callable[[int], None]) -> int:
    """Write a Parquet file that takes its name once it is whole; return the number of rows."""
    import pyarrow.parquet as pq

    if output.suffix.lower() != ".parquet":
        raise ArgumentError(f"--output must end in .parquet, got {quote(str(output))}")
    first = next(pieces, None)
    if first is None:
        raise DataError("the input must hold at least one row, got none")
    rows = 0
    with (
        disk.whole_file(output, new=True) as stream,
        pq.ParquetWriter(
            stream, first.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for piece in chain([first], pieces):
            writer.write_table(piece)
            rows += piece.num_rows
            advance(piece.num_rows)
    return rows

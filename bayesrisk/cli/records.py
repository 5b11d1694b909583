"""``bayesrisk convert-file``: a file that users hold into the form that the commands exchange."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from bayesrisk import _files
from bayesrisk._files.text import IN_PIECES, MISSING, shown
from bayesrisk.cli.base import (
    FOLDER_BY_PLACE,
    DialectOption,
    JsonOption,
    QuietOption,
    RunOptions,
    SchemaOption,
    SeedOption,
    called,
    check_folder_names_its_own,
    data_path,
    listed,
    names,
    number,
    print_json,
    print_shards,
    progress,
    record_path,
    record_pieces,
    reworded,
    rows_done,
    schema_of,
    split_records,
    steps_done,
    warnings_as_lines,
)
from bayesrisk.cli.own import OwnOptions, own_schema, read_frame, usual_tables
from bayesrisk.exceptions import ArgumentError, DataError, DataWarning, OutputError

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.population import PopulationSpec
    from bayesrisk.population.summary import PopulationSummary
    from bayesrisk.tables import (
        Microdata,
        PopulationChange,
        PublishedTables,
        Records,
        Schema,
        Workload,
    )

# -----------------------------------------------------------------------------
# ``bayesrisk simulate``: a synthetic population in a folder, beside the nation's figures.


def _settings(preset: str, blocks: int | None, changes: list[str]) -> "PopulationSpec":
    """Return the settings named, with those changed that are given as NAME=VALUE."""
    from bayesrisk import _validation as check
    from bayesrisk.population import PopulationSpec, population_spec

    kinds = get_type_hints(PopulationSpec)
    given: dict[str, Any] = {} if blocks is None else {"n_blocks": blocks}
    for text in changes:
        name, equals, value = text.partition("=")
        if not equals:
            raise ArgumentError(f"--set must be NAME=VALUE, got {shown(text)}")
        if name not in kinds:
            advice = check.did_you_mean(name, kinds) or f"; there are {', '.join(kinds)}"
            raise ArgumentError(f"--set: unknown setting {shown(name)}{advice}")
        given[name] = value if kinds[name] is str else number(value, f"--set {name}")
    with ExitStack() as names:
        names.enter_context(called("name", "--preset"))
        for name in given:
            by_set = any(text.partition("=")[0] == name for text in changes)
            names.enter_context(called(name, f"--set {name}" if by_set else "--blocks"))
        return population_spec(preset, **given)


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
    seed: SeedOption,
    how: RunOptions,
    preset: Annotated[str, typer.Option(help="tract, county or state.")] = "county",
    blocks: Annotated[int | None, typer.Option(help="Blocks, instead of the preset's.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: a setting to change.")
    ] = None,
    nation: Annotated[
        bool, typer.Option("--nation", help="A nation by county, each drawn by itself.")
    ] = False,
    scale: Annotated[
        str | None,
        typer.Option(help="With --nation: share of the 11,078,297 blocks of 2010 [1]."),
    ] = None,
    years: Annotated[
        int | None,
        typer.Option(help="Also the same people so many years later: folders first and later."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(help="With --years, NAME=RATE: share for whom another value is recorded."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace microdata that the folder holds.")
    ] = False,
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
        _nation(output, settings, seed, scale, how)
        return
    if scale is not None:
        raise ArgumentError("--scale goes with --nation")
    how.refuse("goes with --nation, which is drawn county by county")
    law = None if years is None else _law(years, change or [])
    _population(output, settings, seed, how, replace=replace, law=law)


def _law(years: int, changes: list[str]) -> "PopulationChange":
    """Return the stylised law of change, with rates that are given as NAME=RATE."""
    from bayesrisk.population import stylised_change

    with called("years", "--years"):
        law = stylised_change(years)
    parts = [text.partition("=") for text in changes]
    for name, equals, _ in parts:
        if not equals or name not in law.schema.names:
            known = ", ".join(n for n in law.schema.names if n != law.age)
            raise ArgumentError(f"--change must be NAME=RATE of {known}, got {shown(name)}")
    with ExitStack() as said:
        for name, _, _ in parts:
            said.enter_context(called(f"changes[{name!r}]", f"--change {name}"))
        said.enter_context(called("changes", "--change"))
        rates = {name: number(rate, f"--change {name}") for name, _, rate in parts}
        return dataclasses.replace(law, changes=rates)


def _nation(
    output: Path, settings: "PopulationSpec", seed: int, scale: str | None, how: RunOptions
) -> None:
    """Make a nation by county, as a run in shards."""
    from bayesrisk.experiments.by_place import NationStudy
    from bayesrisk.population.simulate import Nation

    with called("scale", "--scale"):
        nation = Nation.of_scale(1.0 if scale is None else number(scale, "--scale"), settings)
    done = how.run(NationStudy(nation, seed), output, "simulate")
    if how.as_json:
        run = {k: v for k, v in done.to_dict().items() if k != "population"}
        figures = {} if done.population is None else _document(done.population, output)
        print_json({**figures, **run})
        return
    if done.population is not None:
        typer.echo("\n".join(_lines(done.population)))
    print_shards(done)


def _population(
    output: Path,
    settings: "PopulationSpec",
    seed: int,
    how: RunOptions,
    *,
    replace: bool,
    law: "PopulationChange | None",
) -> None:
    """Make a population in one piece, and those people some years later by a law of change."""
    from numpy.random import SeedSequence

    from bayesrisk.population import population_summary, simulate_later, simulate_population
    from bayesrisk.tables import Microdata

    with _files.explained(output):
        held = output.is_dir() and any(output.glob("*.parquet"))
    if held and not replace:
        raise OutputError(
            f"{output}: holds microdata; add --replace to make them again, or choose another "
            "folder; nothing was changed"
        )
    hidden = how.quiet or how.as_json
    with progress(quiet=hidden, title="simulate", unit="steps", patient=True) as advance:
        done = steps_done(advance, 3)
        population = simulate_population(settings, rng=seed)
        persons = population.persons
        if persons is None or len(persons) == 0:
            raise ArgumentError("nobody lives in any of the blocks: give more blocks")
        done()
        if law is None:
            population.write(output)
        else:
            later = simulate_later(persons, law, rng=SeedSequence([seed, law.years]))
            with _files.whole_folder(output, _files.new_folder) as folder:
                population.write(folder / "first")
                Microdata(later, blocks=population.blocks).write(folder / "later")
        done()
        summary = population_summary(population)
        done()
    document, said = _document(summary, output), _lines(summary)
    if law is not None:
        both = int(later.to_frame()["person"].isin(persons.to_frame()["person"]).sum())
        document |= {"later": len(later), "both": both}
        said.append(f"{law.years} years later: {len(later)} people, {both} of them the same")
    if how.as_json:
        print_json(document)
    else:
        typer.echo("\n".join([*said, f"microdata: {output}"]))


# -----------------------------------------------------------------------------
# ``bayesrisk tabulate``: records in, a folder of exact tables out.


def tabulate(
    records: Annotated[
        Path,
        typer.Argument(help="Records (.parquet, .csv), a folder of microdata, or sample:NAME."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the tables.")],
    how: RunOptions,
    own: OwnOptions,
    tables: Annotated[
        str | None,
        typer.Option(
            help="Workloads, with commas: sf1-block,sf1-tract; or files of your own: *.toml [of a "
            "file with columns of its own: one- and two-way tables of each place]."
        ),
    ] = None,
    levels: Annotated[
        str | None, typer.Option(help="Levels, with commas, instead of the workloads' own.")
    ] = None,
    without: Annotated[str, typer.Option(help="Tables to leave out, with commas.")] = "",
    schema: SchemaOption = None,
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
    from bayesrisk.tables import tabulate as counted
    from bayesrisk.tables.exchange import Partitions

    if tables is not None and not names(tables):
        raise ArgumentError("--tables must name at least one workload, got none")
    source = record_path(records)
    document: dict[str, Any] = dataclasses.asdict(own) | {
        "tables": names(tables),
        "levels": None if levels is None else names(levels),
        "geography": geography,
        "without": names(without),
        "schema": schema,
        "dialect": dialect,
    }
    wanted = usual_tables([source], document, quiet=how.quiet)
    schema = document["schema"]
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
        pieces = _source(source, wanted, schema, dialect, rows_done(None))
        with split_records(pieces, output, str(by)) as folder:
            _by_place(folder, wanted, output, how)
        return
    how.refuse("goes with --by, or with microdata by place")
    _check_output(output, replace=replace)
    with progress(quiet=how.quiet or how.as_json, title="tabulate", unit="records") as advance:
        made = counted(_source(source, wanted, schema, dialect, rows_done(advance)), wanted)
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
    typer.echo(f"{summary['tables']} tables of {summary['cells']} cells in {output}")
    typer.echo(f"places: {listed(summary['places'], ' of level ')}")
    typer.echo(f"{summary['rows']} counts are not zero")


def _by_place(source: Path, wanted: "Workload", output: Path, how: RunOptions) -> None:
    """Count microdata by place, a part at a time."""
    from bayesrisk.experiments.by_place import TabulationStudy

    done = how.run(TabulationStudy(source, wanted), output, "tabulate")
    said = [f"{len(wanted.tables)} tables of {wanted.n_cells} cells in {output}"]
    if done.complete:
        said.append(f"places: {done.places} of level {wanted.levels[-1]}, in {done.shards} parts")
    how.show(done, said)


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


def _source(
    path: Path,
    wanted: "Workload",
    name: "str | Schema | None",
    dialect: str | None,
    advance: Callable[[int], None],
) -> "Microdata | Iterator[Records]":
    """Return microdata of a folder, or the pieces of a file in the schema that is counted."""
    from bayesrisk.tables import Microdata
    from bayesrisk.tables.microdata import as_microdata

    if path.is_dir():
        check_folder_names_its_own(name, dialect)
        with reworded(IN_PIECES, FOLDER_BY_PLACE):
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


# -----------------------------------------------------------------------------
# ``bayesrisk first-look``: microdata in, how many records are rare out.


_PLACES = (
    "every record is compared with every other one, so give those of one place, such as one folder "
    "part-CODE of microdata by place"
)


def first_look(
    records: Annotated[
        Path,
        typer.Argument(help="Records (.parquet, .csv), a folder of microdata, or sample:NAME."),
    ],
    own: OwnOptions,
    keys: Annotated[
        str | None,
        typer.Option(
            help="Columns that an intruder may know, with commas; their values are compared as "
            "they are, without a schema [all but the last of a file, numbers in groups]."
        ),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(help="Column whose values classes of records should hide.")
    ] = None,
    max_size: Annotated[
        int, typer.Option(help="Most keys of a minimal sample unique that is looked for.")
    ] = 3,
    schema: Annotated[
        str | None,
        typer.Option(
            help="Schema of a file, a name or a .toml file: its values are checked, and levels of "
            "its geography may be keys."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Parquet file with a row for each record.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count sample uniques, special uniques and small classes of microdata."""
    from bayesrisk.risk import first_look

    source = record_path(records)
    held: pd.DataFrame | Records
    with reworded(IN_PIECES, _PLACES):
        if keys is None:
            held, chosen, sensitive = _own(source, schema, own, sensitive)
        else:
            held, chosen = _read(source, schema), names(keys)
    found = first_look(held, keys=chosen, sensitive=sensitive, max_size=max_size)
    if output is not None:
        with _files.whole_file(output) as stream:
            frame = found.to_frame()
            frame.to_parquet(stream, index=False, compression="zstd", write_page_checksum=True)
    if not as_json:
        typer.echo("\n".join(found._answer()))
        return
    summary: dict[str, Any] = {
        "records": len(found.class_size),
        "keys": list(found.keys),
        "k": found.k,
        "unique": int(found.unique.sum()),
        "special": int(found.special.sum()),
        "classes": found.summary().to_dict(orient="records"),
    }
    if found.sensitive is not None:
        summary |= {"sensitive": found.sensitive, "l": found.l}
    print_json(summary)


def _own(
    path: Path, name: str | None, own: OwnOptions, sensitive: str | None
) -> "tuple[Records, list[str], str | None]":
    """Return the records of a file with columns of its own, and its keys but the last column."""
    from bayesrisk.tables import Records

    if path.is_dir():
        raise ArgumentError("--keys must be given for microdata, such as sex,age")
    about = own_schema([path], dataclasses.asdict(own), quiet=False) if name is None else None
    schema = about or schema_of(str(name))
    keys = [*schema.geography.levels[-1:], *schema.names]
    sensitive = sensitive or schema.names[-1]
    keys = [key for key in keys if key not in ("all", sensitive)]
    return Records.read(path, schema=schema), keys, sensitive


def _read(path: Path, schema: str | None) -> "pd.DataFrame | Records":
    """Return the persons (or households) of a folder, or the rows of a file."""
    from bayesrisk.tables import Microdata, Records

    if path.is_dir():
        if schema is not None:
            raise ArgumentError("--schema goes with a file of records; microdata name their own")
        held = Microdata.read(path)
        unit = held.persons if held.persons is not None else held.households
        if unit is None:  # Microdata hold one or the other
            raise ArgumentError(f"{path} must hold records, got none")
        return unit
    if schema is not None:
        return Records.read(path, schema=schema_of(schema))
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
_CODEBOOK = (Form.NHGIS, Form.IPUMS, Form.IPUMS_1940)
_STATE = (Form.PPMF, Form.PPMF_UNITS, Form.RECORDS, Form.NHGIS)


def convert_file(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="File, archive or folder.")],
    form: Annotated[Form, typer.Option("--from", help="Form of the input.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Parquet file, or folder for tables.")
    ],
    codebook: Annotated[
        Path | None, typer.Option(help="NHGIS codebook, or DDI codebook of an IPUMS extract.")
    ] = None,
    state: Annotated[
        str | None, typer.Option(help="FIPS code or abbreviation that all places must have.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(help="Tables to read: sf1-block, sf1-tables, pl94-tables, dhc-block, ..."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="NHGIS data set, where several are there: ds172, ...")
    ] = None,
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may repeat.")] = None,
    level: Annotated[
        list[str] | None, typer.Option(help="Level of the tables (may repeat) or HUD file.")
    ] = None,
    dialect: DialectOption = None,
    on_error: Annotated[
        str | None,
        typer.Option(
            help="A value that cannot be in a HUD file or a table: 'refuse' the file, or keep it "
            "as 'missing' and count it [refuse]."
        ),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Convert a census or HUD file to records in Parquet, or to a folder of tables."""
    for value, name, forms in (
        (codebook, "--codebook", _CODEBOOK),
        (state, "--state", _STATE),
        (workload, "--workload", _TABLES),
        (table, "--table", _TABLES),
        (level, "--level", (*_TABLES, Form.HUD)),
        (dialect, "--dialect", (Form.RECORDS,)),
        (dataset, "--dataset", (Form.NHGIS,)),
        (on_error, "--on-error", (*_TABLES, Form.HUD)),
    ):
        if value and form not in forms:
            raise ArgumentError(f"{name} goes with --from {' or '.join(forms)}, got --from {form}")
    source = data_path(source, "census files")
    with _files.explained(output):
        if output.exists():
            raise OutputError(f"{output}: exists already; choose another name")
    silent = quiet or as_json
    rows_read = progress(quiet=silent, title="convert-file", unit="rows")
    named = reworded(MISSING, "--on-error missing")
    with named, rows_read as bar, warnings_as_lines() as said:
        advance = rows_done(bar)
        if form in _TABLES:
            chosen = _converted_workload(workload, table, level)
            options = {"codebook": codebook, "state": state, "dataset": dataset}
            options |= {"on_error": on_error or "refuse"}
            made = _tables(source, form, chosen, options, advance)
            made.write(output, replace=False)
            rows = sum(len(places) for places in made.geoids.values())
        else:
            pieces = _frames(source, form, codebook, state, level, dialect, on_error)
            rows = _write_parquet(pieces, output, advance)
    if as_json:
        missing = [
            {"column": column, "reason": reason, "values": values}
            for warning in said
            if isinstance(warning.message, DataWarning)
            for (column, reason), values in warning.message.missing.items()
        ]
        print_json({"output": str(output), "rows": rows, "missing": missing})
    else:
        typer.echo(f"{rows} {'places' if form in _TABLES else 'rows'} in {output}")


def _converted_workload(
    name: str | None, tables: list[str] | None, levels: list[str] | None
) -> "Workload":
    from bayesrisk.tables import Workload

    if name is None:
        raise ArgumentError("--workload must be given for tables, such as sf1-block")
    with called("name", "--workload"):
        chosen = Workload.named(name, levels=levels or None)
    with called("tables", "--table"):
        return chosen.select(tables=tables) if tables else chosen


def _frames(
    source: Path,
    form: Form,
    codebook: Path | None,
    state: str | None,
    level: list[str] | None,
    dialect: str | None,
    on_error: str | None,
) -> Iterator[Any]:
    """Yield pieces of the input as Arrow tables; records say that their codes are the schema's."""
    import pyarrow as pa

    from bayesrisk import readers
    from bayesrisk.readers.record_form import METADATA

    if form is Form.HUD:
        if not level or len(level) != 1:
            raise ArgumentError("--level must be given once for a HUD file: tract, county or state")
        for frame in readers.iter_hud(source, level=level[0], on_error=on_error or "refuse"):
            yield pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        return
    if form is Form.IPUMS:
        if codebook is None:
            raise ArgumentError("--codebook must be given for --from ipums: the DDI file (.xml)")
        frame = readers.read_ipums(source, ddi=codebook)
        yield pa.Table.from_pandas(frame, preserve_index=False)
        return
    if form is Form.IPUMS_1940:
        pieces = readers.iter_ipums_1940(source, ddi=codebook)
    elif form is Form.PPMF:
        pieces = readers.iter_ppmf(source, state=state)
    elif form is Form.PPMF_UNITS:
        pieces = readers.iter_ppmf_units(source, state=state)
    else:
        pieces = readers.iter_record_form(source, dialect=dialect, state=state)
    for records in pieces:
        yield records.table.replace_schema_metadata({METADATA: b"schema"})


def _tables(
    source: Path,
    form: Form,
    chosen: "Workload",
    options: dict[str, Any],
    advance: Callable[[int], None],
) -> "PublishedTables":
    from bayesrisk import readers
    from bayesrisk.readers.text.tables import combined

    if form is Form.NHGIS:
        pieces = readers.iter_nhgis(source, workload=chosen, **options)
    else:
        read = {
            Form.SF1: readers.iter_sf1,
            Form.PL94: readers.iter_pl94,
            Form.DHC: readers.iter_dhc,
        }
        pieces = read[form](source, workload=chosen, on_error=options["on_error"])

    def counted() -> Iterator["PublishedTables"]:
        for piece in pieces:
            advance(sum(len(places) for places in piece.geoids.values()))
            yield piece

    return combined(counted(), chosen, source)


def _write_parquet(pieces: Iterator[Any], output: Path, advance: Callable[[int], None]) -> int:
    """Write a Parquet file that takes its name once it is whole; return the number of rows."""
    import pyarrow.parquet as pq

    if output.suffix.lower() != ".parquet":
        raise ArgumentError(f"--output must end in .parquet, got {shown(str(output))}")
    first = next(pieces, None)
    if first is None:
        raise DataError("the input must hold at least one row, got none")
    rows = 0
    with (
        _files.whole_file(output, new=True) as stream,
        pq.ParquetWriter(
            stream, first.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for piece in chain([first], pieces):
            writer.write_table(piece)
            rows += piece.num_rows
            advance(piece.num_rows)
    return rows

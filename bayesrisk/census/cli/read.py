"""``bayesrisk census read``: agency files converted to Parquet records or published tables."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.disk.text import MISSING
from bayesrisk._base.wings import wing_points
from bayesrisk.cli.command import advised, renamed
from bayesrisk.cli.data import data_path
from bayesrisk.cli.options import DialectOption, JsonOption, QuietOption
from bayesrisk.cli.printing import counter, print_answer, progress, warnings_as_lines
from bayesrisk.exceptions import ArgumentError, DataError, DataWarning, OutputError, quote

if TYPE_CHECKING:
    import pyarrow as pa

#: Forms of files, by the names of their readers.
_FORMS = wing_points()["bayesrisk.readers"]
#: Parameters of readers that an option gives: the first of them that a reader has.
_GIVES = {"codebook": ("codebook", "ddi"), "level": ("level", "workload"), "table": ("workload",)}


@dataclass(frozen=True)
class FormOptions:
    """Options that only some forms of files have."""

    codebook: Annotated[Path | None, "NHGIS codebook, or DDI codebook of an IPUMS extract."] = None
    person_kind: Annotated[str | None, "Kind of persons' lines in an IPUMS extract: P, 2."] = None
    state: Annotated[str | None, "FIPS code or abbreviation that all places must have."] = None
    workload: Annotated[
        str | None, "Tables to read: sf1-block, sf1-tables, pl94-tables, dhc-block, ..."
    ] = None
    dataset: Annotated[str | None, "NHGIS data set, where several are there: ds172, ..."] = None
    table: Annotated[list[str] | None, "Only this table; may repeat."] = None
    level: Annotated[list[str] | None, "Level of the tables (may repeat) or HUD file."] = None
    dialect: DialectOption = None
    on_error: Annotated[
        str | None,
        "A value that cannot be in a HUD file or a table: 'refuse' the file, or keep it "
        "as 'missing' and count it [refuse].",
    ] = None


def _parameters(form: str) -> dict[str, str]:
    """Return the options that a form accepts, with the reader's parameter for each."""
    from bayesrisk.census.readers.forms import READERS

    takes, parameters = READERS.parameters(form), {}
    for option in (field.name for field in fields(FormOptions)):
        parameter = next((name for name in _GIVES.get(option, (option,)) if name in takes), None)
        if parameter is not None:
            parameters[option] = parameter
    return parameters


def read(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="File, archive or folder.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Parquet file, or folder for tables.")
    ],
    options: FormOptions,
    form: Annotated[
        str | None, typer.Option("--from", help=f"Form of the input: {', '.join(_FORMS)}.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read a census or HUD file into records or tables."""
    from bayesrisk._base import validation as check
    from bayesrisk.census.readers.forms import READERS

    forms = tuple(READERS.available())  # those of installed packages, too
    if form is None:
        raise ArgumentError(f"--from must say what the input is: one of {', '.join(forms)}")
    form = check.choice(form, "form", forms)
    parameters = _parameters(form)
    for name in (field.name for field in fields(FormOptions)):
        if getattr(options, name) and name not in parameters:
            takers = " or ".join(one for one in forms if name in _parameters(one))
            option = name.replace("_", "-")
            raise ArgumentError(f"--{option} goes with --from {takers}, got --from {form}")
    source = data_path(source, "census files")
    with disk.explained(output):
        if output.exists():
            raise OutputError(f"{output}: exists already; choose another name")
    rows_read = progress(quiet=quiet or as_json, title="read", unit="rows")
    named = advised(MISSING, "; --on-error missing keeps such values as missing")
    whole = "workload" in parameters
    with named, rows_read as bar, warnings_as_lines() as notices:
        advance = counter(bar)
        if whole:
            tables = _tables(source, form, options, parameters, advance)
            tables.write(output, replace=False)
            rows = sum(len(places) for places in tables.geoids.values())
        else:
            rows = _write_parquet(_frames(source, form, options, parameters), output, advance)
    missing = [
        {"column": column, "reason": reason, "values": values}
        for warning in notices
        if isinstance(warning.message, DataWarning)
        for (column, reason), values in warning.message.missing.items()
    ]
    document = {"output": str(output), "rows": rows, "missing": missing}
    lines = [f"{rows} {'places' if whole else 'rows'} in {output}"]
    print_answer(document, lines, as_json=as_json)


def _settings(options: FormOptions, parameters: dict[str, str]) -> dict[str, Any]:
    values = {parameters[name]: getattr(options, name) for name in parameters}
    return {name: value for name, value in values.items() if value is not None}


def _frames(
    source: Path, form: str, options: FormOptions, parameters: dict[str, str]
) -> "Iterator[pa.Table]":
    """Yield pieces of the input as Arrow tables; records are marked with the schema's coding."""
    import pandas as pd
    import pyarrow as pa

    from bayesrisk._base.disk.parquet import CODING
    from bayesrisk.census.readers.forms import READERS

    settings = _settings(options, parameters)
    if "level" in parameters:
        if len(options.level or []) != 1:
            raise ArgumentError("--level must be given once for a HUD file: tract, county or state")
        (settings["level"],) = options.level or []
    if options.codebook is None and READERS.parameters(form).get("ddi"):
        raise ArgumentError(f"--codebook must be given for --from {form}: the DDI file (.xml)")
    with renamed({"person_kind": "--person-kind"}):
        pieces = READERS.factory(form)(source, **settings)
    if isinstance(pieces, pd.DataFrame):
        yield pa.Table.from_pandas(pieces, preserve_index=False)
        return
    for piece in pieces:
        if isinstance(piece, br.Records):
            yield piece.table.replace_schema_metadata({CODING: b"schema"})
        else:
            table = pa.Table.from_pandas(piece, preserve_index=False)
            yield table.replace_schema_metadata(None)


def _tables(
    source: Path,
    form: str,
    options: FormOptions,
    parameters: dict[str, str],
    advance: Callable[[int], None],
) -> "br.PublishedTables":
    from bayesrisk.census.readers.forms import READERS
    from bayesrisk.census.readers.text import combined

    if options.workload is None:
        raise ArgumentError("--workload must be given for tables, such as sf1-block")
    with renamed({"name": "--workload"}):
        chosen = br.Workload.named(options.workload, levels=options.level or None)
    with renamed({"tables": "--table"}):
        chosen = chosen.select(tables=options.table) if options.table else chosen
    settings = _settings(options, parameters) | {"workload": chosen}
    pieces = cast("Iterator[br.PublishedTables]", READERS.factory(form)(source, **settings))

    def counted() -> Iterator["br.PublishedTables"]:
        for piece in pieces:
            advance(sum(len(places) for places in piece.geoids.values()))
            yield piece

    return combined(counted(), source)


def _write_parquet(pieces: Iterator[Any], output: Path, advance: Callable[[int], None]) -> int:
    """Write a Parquet file that appears only when complete; return its number of rows."""
    import pyarrow.parquet as pq

    from bayesrisk._base.disk.parquet import STORAGE

    if output.suffix.lower() != ".parquet":
        raise ArgumentError(f"--output must end in .parquet, got {quote(str(output))}")
    first = next(pieces, None)
    if first is None:
        raise DataError("the input must hold at least one row, got none")
    rows = 0
    with (
        disk.whole_file(output, new=True) as stream,
        pq.ParquetWriter(stream, first.schema, **STORAGE) as writer,
    ):
        for piece in chain([first], pieces):
            writer.write_table(piece)
            rows += piece.num_rows
            advance(piece.num_rows)
    return rows

"""``bayesrisk convert-file``: a file that users hold into the form that the commands exchange."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk import _files
from bayesrisk._files.parse import MISSING, shown
from bayesrisk.cli.data import data_path
from bayesrisk.cli.options import DialectOption, JsonOption, QuietOption, called
from bayesrisk.cli.output import print_json, progress, rows_done, warnings_as_lines
from bayesrisk.exceptions import ArgumentError, DataError, DataWarning, OutputError

if TYPE_CHECKING:
    from bayesrisk.tables import PublishedTables, Workload


class Form(StrEnum):
    """Forms of files that can be read."""

    PPMF = "ppmf"
    PPMF_UNITS = "ppmf-units"
    RECORDS = "records"
    IPUMS_1940 = "ipums-1940"
    HUD = "hud"
    SF1 = "sf1"
    PL94 = "pl94"
    DHC = "dhc"
    NHGIS = "nhgis"


_TABLES = (Form.SF1, Form.PL94, Form.DHC, Form.NHGIS)
_CODEBOOK = (Form.NHGIS, Form.IPUMS_1940)
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
    told = progress(quiet=silent, title="convert-file", unit="rows")
    with _option_named(), told as bar, warnings_as_lines() as said:
        advance = rows_done(bar)
        if form in _TABLES:
            chosen = _workload(workload, table, level)
            options = {"codebook": codebook, "state": state, "dataset": dataset}
            options |= {"on_error": on_error or "refuse"}
            rows = _write_tables(_tables(source, form, chosen, options, advance), output)
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


@contextmanager
def _option_named() -> Iterator[None]:
    """Say the option that reads a file in spite of values that cannot be."""
    try:
        yield
    except DataError as error:
        if MISSING not in str(error):
            raise
        raise DataError(str(error).replace(MISSING, "--on-error missing")) from error


def _workload(name: str | None, tables: list[str] | None, levels: list[str] | None) -> "Workload":
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
    from bayesrisk.readers.dialects import METADATA

    if form is Form.HUD:
        if not level or len(level) != 1:
            raise ArgumentError("--level must be given once for a HUD file: tract, county or state")
        for frame in readers.iter_hud(source, level=level[0], on_error=on_error or "refuse"):
            yield pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
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
    from bayesrisk.readers.text.table_pieces import combined

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


def _write_tables(tables: "PublishedTables", output: Path) -> int:
    """Write a folder that takes its name once it is whole; return the number of places."""
    tables.write(output, replace=False)
    return sum(len(places) for places in tables.geoids.values())


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

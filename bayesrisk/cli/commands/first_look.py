"""``bayesrisk first-look``: microdata in, how many records are rare out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesrisk._files.parse import shown
from bayesrisk.cli.data import held_whole, record_path, schema_of
from bayesrisk.cli.options import JsonOption, names
from bayesrisk.cli.output import print_json
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.tables import Records

_PLACES = (
    "every record is compared with every other one, so give those of one place, such as one folder "
    "part-CODE of microdata by place"
)


def first_look(
    records: Annotated[
        Path,
        typer.Argument(help="Records (.parquet, .csv), a folder of microdata, or sample:NAME."),
    ],
    keys: Annotated[str, typer.Option(help="Columns that an intruder may know, with commas.")],
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
            "its geography may be keys [none: values are compared as they are]."
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
    with held_whole(_PLACES):
        held = _read(source, schema)
    found = first_look(held, keys=names(keys), sensitive=sensitive, max_size=max_size)
    if output is not None:
        _write(found.to_frame(), output)
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
    return _frame(path)


def _frame(file: Path) -> "pd.DataFrame":
    """Return the rows of a CSV file as text, or those of a Parquet file as they are."""
    import pyarrow as pa

    from bayesrisk._files.parquet import check_whole, read_table
    from bayesrisk._files.parse import all_of, check_held, named
    from bayesrisk._files.text import header_fields, open_text, text_tables

    if file.suffix.lower() == ".parquet":
        check_whole(file)
        held: pd.DataFrame = read_table(file).to_pandas()
        return held
    if file.suffix.lower() != ".csv":
        raise ArgumentError(f"records must end in .parquet or .csv, got {shown(str(file))}")
    with named(str(file), also=(pa.ArrowException,)), open_text(file) as lines:
        check_held(str(file), file.stat().st_size)
        columns = header_fields(lines.readline(), str(file))
        found = all_of(text_tables(lines, columns), lambda table: int(table.nbytes), str(file))
        empty = pa.schema([(name, pa.string()) for name in columns]).empty_table()
        held = pa.concat_tables([empty, *found]).to_pandas()
        return held


def _write(frame: Any, output: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bayesrisk import _files

    with _files.whole_file(output) as stream:
        pq.write_table(
            pa.Table.from_pandas(frame, preserve_index=False),
            stream,
            compression="zstd",
            write_page_checksum=True,
        )

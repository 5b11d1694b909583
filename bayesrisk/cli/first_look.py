"""Rare records, before anything is released: what an audit says first."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.disk.text import IN_PIECES
from bayesrisk.cli.command import advised, renamed
from bayesrisk.cli.data import load_schema
from bayesrisk.cli.printing import print_answer
from bayesrisk.cli.sources import (
    ColumnOptions,
    RecordSource,
    check_column,
    check_folder_names_its_own,
    infer_schema,
)
from bayesrisk.exceptions import ArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.risk.microdata import FirstLook

_ONE_PLACE = (
    ": every record is compared with every other one, so give those of one place, such as one "
    "folder part-CODE of microdata by place"
)
#: The same arguments by the options that give them.
_OPTIONS = {"keys": "--known", "sensitive": "--stated"}


def look_alone(
    population: Path,
    choices: ColumnOptions,
    output: Path | None,
    *,
    known: Sequence[str] | None,
    stated: Sequence[str],
    schema: str | None,
    max_size: int,
    as_json: bool,
) -> None:
    """Print the first look alone, and write a row for each record.

    Values of columns that are ``known`` are compared as they are.
    """
    if len(stated) > 1:
        raise ArgumentError("--stated must be one column where no --protection is given")
    if output is not None and output.suffix != ".parquet":
        rule = "must end in .parquet, with a row for each record, where no --protection is given"
        raise ArgumentError("--output", rule, got=str(output))
    source = RecordSource(population)
    sensitive = stated[0] if stated else None
    data: pd.DataFrame | br.Records
    with advised(IN_PIECES, _ONE_PLACE):
        if known is None:
            data, keys, sensitive = _file_records(source, schema, choices, sensitive)
        else:
            for name in ("place", "columns", "cuts"):
                if getattr(choices, name):
                    rule = "goes with --protection: without one, values are compared as they are"
                    raise ArgumentError(f"--{name}".replace("cuts", "cut"), rule)
            data, keys = _read(source, schema), list(known)
            for option, names in (("--known", keys), ("--stated", [sensitive])):
                for name in filter(None, names):
                    if not isinstance(data, br.Records):
                        check_column(option, name, data)
    with renamed(_OPTIONS | {"max_size": "--max-size"}):
        result = br.risk.first_look(data, keys=keys, sensitive=sensitive, max_size=max_size)
    if output is not None:
        from bayesrisk._base.disk.parquet import STORAGE

        with disk.whole_file(output) as stream:
            result.to_frame().to_parquet(stream, index=False, **STORAGE)
    print_answer(source.mark | document(result), result._answer(), as_json=as_json)


def document(result: "FirstLook") -> dict[str, Any]:
    """Return a first look as a JSON document."""
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
    return summary


def _file_records(
    source: RecordSource, name: str | None, choices: ColumnOptions, sensitive: str | None
) -> "tuple[br.Records, list[str], str | None]":
    """Return the records of a file with columns of its own, and its keys but the last column."""
    if source.file is None:
        raise ArgumentError("--known must be given for microdata, such as sex,age")
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
    from bayesrisk.tables.reading.counts.testimony import check_records

    frame = record_frame(source.file)
    check_records(frame, source.file)
    return frame

"""Files of records with columns of their own: what these are taken for, and other choices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk.cli.base import called, names, number, schema_of, union_of_workloads
from bayesrisk.exceptions import ArgumentError, shown

if TYPE_CHECKING:
    import pandas as pd


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
class OwnOptions:
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
    own = {key: document.pop(key, None) for key in ("place", "columns", "cuts")}
    levels, only = document.get("levels"), document.get("only")
    if document.get("tables") or not (schema := _schema(sources, document, own, quiet=quiet)):
        if given := next((key for key, value in own.items() if value), None):
            option = {"cuts": "cut"}.get(given, given)
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
        return union_of_workloads(document["tables"], without=without, **options)
    made = br.Workload.of(schema, levels=levels)
    if only or document.get("without"):
        made = made.select(tables=only, without=document.get("without", ()))
    return made


def _schema(
    sources: Sequence[Any], document: dict[str, Any], choices: Mapping[str, Any], *, quiet: bool
) -> "br.Schema | None":
    """Return the schema of records that are not census; None for others."""
    from bayesrisk.readers.record_form import file_columns, missing_columns, said_by_file

    if document.get("schema"):
        with called("name", "--schema"):
            schema = schema_of(document["schema"])
        return None if schema.name in br.Schema.available() else schema
    if document.get("dialect") or document.get("geography"):
        return None
    files = [one for one in sources if isinstance(one, Path) and not one.is_dir()]
    if len(files) == len(sources):
        # A file may say that it is of persons of the census, or look so.
        for file in files:
            if said_by_file(file) is not None or not missing_columns(file_columns(file), _CENSUS):
                return None
        document["schema"] = schema = own_schema(files, choices, quiet=quiet)
        return schema
    folder = sources[0]
    if (
        len(sources) > 1
        or not isinstance(folder, Path)
        or not (folder / "persons.parquet").exists()
    ):
        return None
    held = br.Microdata.read(folder).persons
    return None if held is None or held.schema.name in br.Schema.available() else held.schema


def own_schema(files: Sequence[Path], choices: Mapping[str, Any], *, quiet: bool) -> "br.Schema":
    """Return the schema of files with columns of their own, and say what they were taken for."""
    import pandas as pd

    frames = [read_frame(file) for file in files]
    for file, frame in zip(files, frames, strict=True):
        if not len(frame):
            raise ArgumentError(f"{file} must have at least one row, got none")
        if missing := [c for c in frames[0].columns if c not in frame.columns]:
            raise ArgumentError(f"{file} must have the columns of {files[0]}, lacks {missing[0]!r}")
    frame = pd.concat(frames, ignore_index=True)
    places = names(choices["place"]) or [name for name in _PLACES if name in frame][:1]
    columns = names(choices["columns"]) or None
    for option, given in (("--place", places), ("--columns", columns or ())):
        for name in given:
            _check_column(option, name, frame)
    cuts = _cuts(choices["cuts"] or [], frame)
    schema = br.Schema.from_frame(
        typed(frame), name=files[0].stem, columns=columns, place=places or None, cuts=cuts
    )
    if not quiet:
        typer.echo("\n".join(reading_lines(schema, frame, files)), err=True)
    return schema


def _check_column(option: str, name: str, frame: "pd.DataFrame") -> None:
    """Refuse a column that a file does not have."""
    from bayesrisk import _validation as check

    check.choice(name, f"{option}: column", tuple(map(str, frame.columns)))


def _cuts(texts: Sequence[str], frame: "pd.DataFrame") -> dict[str, list[float]]:
    """Return the numbers at which the groups of columns begin."""
    cuts = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not names(values):
            raise ArgumentError(f"--cut must be NAME=NUMBER,NUMBER, got {shown(text)}")
        _check_column("--cut", name, frame)
        cuts[name] = [number(value, f"--cut {name}") for value in names(values)]
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
        what = "groups" if a.cuts else "categories"
        told = list(a.labels) or [f"{a.first} to {a.last}"]
        if len(told) > _SHOWN:
            told = [*told[: _SHOWN - 2], "...", told[-1]]
        kinds = f"{a.size} {what}: " if a.labels else "whole numbers "
        lines.append(f"  {a.name}: {kinds}{', '.join(told)}{' (--cut)' * bool(a.cuts)}")
    left = [str(c) for c in frame.columns if c not in (*schema.names, *levels)]
    known, stated = usual_roles(schema)
    return [
        *lines,
        *([f"  left out: {', '.join(left)} (--columns)"] if left else []),
        f"  others may know {', '.join(known) or 'nothing'} (--known, --keys); at risk is "
        f"{', '.join(stated)} (--stated, --sensitive)",
    ]


def typed(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame of text with numbers where a column holds nothing else."""
    import pandas as pd

    made = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_string_dtype(column.dtype):
            column = column.mask(column == "")
            told = column.dropna()
            if len(told) and told.str.fullmatch(_NUMBER).all():
                column = pd.to_numeric(column)
        made[name] = column
    return pd.DataFrame(made)


def read_frame(file: Path) -> "pd.DataFrame":
    """Return the rows of a CSV file as text, or those of a Parquet file as they are."""
    from bayesrisk._files.delimited import text_frame
    from bayesrisk._files.parquet import read_table

    if file.suffix.lower() == ".parquet":
        held: pd.DataFrame = read_table(file).to_pandas()
        return held
    if file.suffix.lower() != ".csv":
        raise ArgumentError(f"records must end in .parquet or .csv, got {shown(str(file))}")
    return text_frame(file)

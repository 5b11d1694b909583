"""Records that commands read: folders, whole or by place, and files with columns of their own."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import bayesrisk as br
from bayesrisk._base import disk
from bayesrisk._base.disk.text import IN_PIECES
from bayesrisk.cli.command import advised, renamed
from bayesrisk.cli.data import load_schema, made_up_mark, record_path, union_of_workloads
from bayesrisk.cli.options import parse_names, parse_number
from bayesrisk.cli.printing import say
from bayesrisk.exceptions import ArgumentError, DataError, quote

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk._base.disk.record_file import RecordFile

#: What to do about records that are too many, in a file, in a folder and in one by place.
FILE_BY_PLACE = ": add --by county, which holds one county at a time"
FOLDER_BY_PLACE = ": give its file of records instead, with --by county, which holds one at a time"
WHOLE_BY_PLACE = ": leave out --whole, which holds one place at a time"


class RecordSource:
    """A folder of microdata, whole or by place, or a file of records, which a sample may be."""

    def __init__(self, argument: Path) -> None:
        from bayesrisk._base.disk.record_file import RecordFile  # slow to import
        from bayesrisk.tables.exchange import Partitions

        self.path = record_path(argument)
        self.is_by_place = Partitions.there(self.path)
        self.file = None if self.path.is_dir() else RecordFile(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def mark(self) -> dict[str, Any]:
        """The mark of documents about people who are made up: nothing of others."""
        return made_up_mark(self.path)

    @property
    def has_households(self) -> bool:
        """Whether microdata have persons and households, by place too."""
        folders = [] if self.file else [self.path, *self.path.glob("part-*")]
        units = ("persons.parquet", "households.parquet")
        return any(all((folder / unit).exists() for unit in units) for folder in folders)

    def pieces(
        self, wanted: "br.Schema", schema: "str | br.Schema | None", dialect: str | None
    ) -> "br.tables.Microdata | Iterator[br.Records]":
        """Return the microdata of a folder, or the pieces of a file of records.

        These are in the schema that is named, or else in that of the tables. Where there are other
        codings of it, codes may be those of a dialect, which is given or which the file says of
        itself. A file with columns other than the schema's needs one of these.
        """
        from bayesrisk.tables.records import CODINGS, file_pieces

        if self.file is None:
            check_folder_names_its_own(schema, dialect)
            with advised(IN_PIECES, WHOLE_BY_PLACE if self.is_by_place else FOLDER_BY_PLACE):
                return br.tables.Microdata.read(self.path)
        record_schema = schema if isinstance(schema, br.Schema) else wanted
        if isinstance(schema, str):
            with renamed({"name": "--schema"}):
                record_schema = load_schema(schema, geography=wanted.geography.name)
        if record_schema.name not in CODINGS.builtin:
            if dialect is not None:
                rule = f"goes with records of the schema {' or '.join(CODINGS.builtin)}"
                raise ArgumentError("--dialect", rule, shown=record_schema.name)
            return file_pieces(self.file, record_schema)
        codings = CODINGS.make(record_schema.name)
        with renamed({"dialect": "--dialect"}):
            coding = codings.coding(self.file, dialect)
        if coding is None:
            return file_pieces(self.file, record_schema)
        return codings.pieces(self.file, coding)

    @contextmanager
    def parts(
        self,
        pieces: "Callable[[], br.tables.Microdata | Iterator[br.Records]]",
        by: str | None,
        output: Path,
        places: str | list[str] | None = None,
    ) -> Iterator[Path]:
        """Provide the records by place: the folder itself, or put down beside the output."""
        from bayesrisk.experiments.by_place import split_by_place

        if self.is_by_place:
            yield self.path
            return
        records = pieces()
        with disk.scratch_folder(output) as folder:
            with renamed({"level": "--by", "places": "--places"}):
                split_by_place(
                    records, folder / "records", level=str(by), places=places,
                    made_up=bool(self.mark),
                )  # fmt: skip
            yield folder / "records"

    def check_by_place(self, by: str | None, document: Mapping[str, Any]) -> None:
        """Refuse options that do not go with records that are by place."""
        if self.is_by_place and by is not None:
            raise ArgumentError(f"--by goes with records that are not by place, as {self} is")
        if self.is_by_place:
            check_folder_names_its_own(document.get("schema"), document.get("dialect"))


def check_folder_names_its_own(schema: "str | br.Schema | None", dialect: str | None) -> None:
    """Refuse options that say what a folder of microdata says itself."""
    for option, value in (("--schema", schema), ("--dialect", dialect)):
        if value is not None:
            raise ArgumentError(f"{option} goes with a file of records; microdata names its own")


#: Columns that are taken for the place where nobody says another one.
_PLACES = ("place", "block")
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
        return union_of_workloads(document["tables"], without=without, **options)
    workload = br.Workload.of(schema, levels=levels)
    if only or document.get("without"):
        with renamed({"tables": "--only" if only else "--without"}):
            workload = workload.select(tables=only, without=document.get("without", ()))
    return workload


def _schema(
    sources: Sequence[Any], document: dict[str, Any], choices: Mapping[str, Any], *, quiet: bool
) -> "br.Schema | None":
    """Return the schema of records with columns of their own; None for others."""
    from bayesrisk._base.disk.record_file import RecordFile  # slow to import
    from bayesrisk.tables.records import CODINGS

    if document.get("schema"):
        with renamed({"name": "--schema"}):
            schema = load_schema(document["schema"])
        return None if schema.name in br.Schema.available() else schema
    if document.get("dialect") or document.get("geography"):
        return None
    files = [RecordFile(one) for one in sources if isinstance(one, Path) and not one.is_dir()]
    files += [one for one in sources if isinstance(one, RecordFile)]
    if len(files) == len(sources):
        codings = [CODINGS.make(name) for name in CODINGS.builtin]
        if any(one.describes(file) for file in files for one in codings):
            return None
        roles = parse_names(document.get("known")), parse_names(document.get("stated"))
        document["schema"] = schema = infer_schema(files, choices, roles=roles, quiet=quiet)
        return schema
    folder = sources[0]
    if (
        len(sources) > 1
        or not isinstance(folder, Path)
        or not (folder / "persons.parquet").exists()
    ):
        return None
    data = br.tables.Microdata.read(folder).persons
    return None if data is None or data.schema.name in br.Schema.available() else data.schema


def infer_schema(
    files: "Sequence[RecordFile]",
    choices: Mapping[str, Any],
    *,
    roles: tuple[list[str], list[str]] = ([], []),
    quiet: bool,
) -> "br.Schema":
    """Return the schema of files with columns of their own, and say what they were taken for.

    ``roles`` are the attributes that are said to be known, and to be at risk.
    """
    import pandas as pd

    from bayesrisk._base import validation as check
    from bayesrisk._base.disk.record_file import record_frame, typed  # slow to import
    from bayesrisk.tables.reading.counts.testimony import check_records

    frames = [record_frame(file) for file in files]
    for file, frame in zip(files, frames, strict=True):
        if not len(frame):
            raise DataError(f"{file}: must have at least one row, got none")
        if missing := [c for c in frames[0].columns if c not in frame.columns]:
            raise DataError(f"{file}: must have the columns of {files[0]}, lacks {missing[0]!r}")
        check_records(frame, file)
    frame = pd.concat(frames, ignore_index=True)
    places = parse_names(choices["place"]) or [name for name in _PLACES if name in frame][:1]
    columns = parse_names(choices["columns"]) or None
    for option, names in (("--place", places), ("--columns", columns or ())):
        for name in names:
            check_column(option, name, frame)
        check.each_once(names, option)
    cuts = _cuts(choices["cuts"] or [], frame)
    try:
        schema = br.Schema.from_frame(
            typed(frame[[*places, *columns]] if columns else frame),
            name=files[0].path.stem,
            columns=columns,
            place=places or None,
            cuts=cuts,
        )
    except DataError as error:
        words = error.sentence.removeprefix("frame: ")
        names = [str(one) for one in columns or frame if f"column {one!r}:" not in words]
        argument = shlex.quote(",".join(one for one in names if one not in places))
        words = words.replace("name the other columns as columns", f"write --columns {argument}")
        words = words.replace("as columns", "with --columns")
        advice = f"{error.advice}; if it is a published table: `bayesrisk attack {files[0]} -o OUT`"
        raise DataError(f"{files[0]}: {words}", advice=advice) from error
    if not schema.names:
        left = ", ".join(map(str, frame.columns))
        rule = f"must have a column that is counted; taken for identifiers: {left}"
        raise DataError(f"{files[0]}: {rule}", advice="; name columns with --columns")
    from bayesrisk._base import validation as check

    for option, names in zip(("--known", "--stated"), roles, strict=True):
        for name in names:
            check.choice(name, option, schema.names)
    if not quiet:
        say(*reading_lines(schema, frame, files, roles))
    return schema


def check_column(option: str, name: str, frame: "pd.DataFrame") -> None:
    """Refuse a column that a file does not have."""
    from bayesrisk._base import validation as check

    check.choice(name, f"{option}: column", tuple(map(str, frame.columns)))


def _cuts(texts: Sequence[str], frame: "pd.DataFrame") -> dict[str, list[float]]:
    """Return the numbers at which the groups of columns begin."""
    import pandas as pd

    from bayesrisk._base.disk.record_file import typed  # slow to import

    cuts = {}
    for text in texts:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not parse_names(values):
            raise ArgumentError(
                f"--cut must be NAME=NUMBER,NUMBER, such as --cut '{frame.columns[-1]}=18,65', "
                f"got {quote(text)}"
            )
        check_column("--cut", name, frame)
        if not pd.api.types.is_numeric_dtype(typed(frame[[name]])[name].dtype):
            raise ArgumentError("--cut", "must be of a column of numbers", got=name)
        if re.fullmatch(r"\d+( *[-;] *\d+)+", values):
            rule = f"must be NAME=NUMBER,NUMBER: write {name}={re.sub(' *[-;] *', ',', values)}"
            raise ArgumentError("--cut", rule, got=text)
        cuts[name] = [parse_number(value, f"--cut {name}") for value in parse_names(values)]
        if cuts[name] != sorted(set(cuts[name])):
            order = ",".join(f"{value:g}" for value in sorted(set(cuts[name])))
            rule = f"of {name!r} must increase: write {name}={order}"
            raise ArgumentError("--cut", rule, got=text)
    return cuts


def reading_lines(
    schema: "br.Schema",
    frame: "pd.DataFrame",
    files: "Sequence[RecordFile]",
    roles: tuple[list[str], list[str]] = ([], []),
) -> list[str]:
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
    left = [
        str(c) or "a column without a name"
        for c in frame.columns
        if c not in (*schema.names, *levels)
    ]
    usual, risky = usual_roles(schema)
    stated = roles[1]
    background = roles[0] or [name for name in usual if name not in stated]
    stated = stated or [name for name in risky if name not in background]
    return [
        *lines,
        *([f"  left out: {_quoted(left)} (--columns)"] if left else []),
        f"  others may know {_quoted(background) or 'nothing'} (--known); at risk is "
        f"{_quoted(stated)} (--stated)",
    ]


def _quoted(names: Sequence[str]) -> str:
    """Return names in a row, those with a comma in quotes."""
    return ", ".join(repr(name) if "," in name else name for name in names)

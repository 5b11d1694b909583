"""Data that commands take: a path, or ``sample:NAME`` for what ships with the package."""

import os
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bayesrisk._files.parse import IN_PIECES, shown
from bayesrisk.cli.options import called
from bayesrisk.exceptions import ArgumentError, DataError

if TYPE_CHECKING:
    from bayesrisk.tables import Records, Schema, Workload

_PREFIX = "sample:"
MICRODATA = "microdata"
#: What to do about records that are too many, in a file and in a folder.
FILE_BY_PLACE = "add --by county, which holds one county at a time"
FOLDER_BY_PLACE = "give its file of records instead, with --by county, which holds one at a time"
MEASUREMENTS = "noisy measurements"
#: Folders with ``records.csv``, and the schema and tables that it goes with.
RECORDS = "records with tables of their own"
#: Kinds of which no sample ships: commands make them.
TABLES = "published tables"
SWEEPS = "settings of a sweep"
AUDITS = "settings of an audit"
#: What a sample is, by what the catalogue says or the ending of its file; folders have none.
_KINDS = {
    "audit": AUDITS,
    "records": RECORDS,
    "": MICRODATA,
    ".zip": MEASUREMENTS,
    ".csv": "a table",
    ".toml": SWEEPS,
}


def data_path(given: Path, kind: str, part: str = "") -> Path:
    """Return the path of the data that an argument names.

    Parameters
    ----------
    given : Path
        A file or folder, or ``sample:NAME``.
    kind : str
        What the command takes.
    part : str, optional
        File of a sample's folder, for a command that takes a file.

    Returns
    -------
    Path
        The path itself, or that of the sample, its bytes checked.

    Raises
    ------
    ArgumentError
        If there is no such file or sample, or it is of another kind; those that fit are named.
    DataError
        If the sample is damaged.
    """
    text = str(given)
    if not text.startswith(_PREFIX):
        if not os.path.lexists(given):
            raise ArgumentError(f"no such file or folder: {given}")
        if kind == TABLES and _is_microdata(given):
            raise ArgumentError(
                f"{given} holds microdata, not tables: run `bayesrisk tabulate` first"
            )
        return given
    from bayesrisk import datasets as samples  # slow to import

    name = text.removeprefix(_PREFIX)
    fitting = _of_kind(kind)
    if name not in fitting:
        is_ = f"is {_kind(name)}" if name in samples.names() else "is none"
        have = f"samples of this kind: {', '.join(fitting)}" if fitting else "none ships"
        raise ArgumentError(f"{text} must be a sample of {kind}, but {name!r} {is_}; {have}")
    found = samples.path(name)
    if part and not (found / part).is_file():
        raise ArgumentError(f"{text} must hold {part}, but this sample does not")
    return found / part


@contextmanager
def held_whole(instead: str) -> Iterator[None]:
    """Say what to do instead where records are too many to be held whole."""
    try:
        yield
    except DataError as error:
        text = str(error)
        if IN_PIECES not in text:
            raise
        raise type(error)(text.replace(IN_PIECES, instead)) from error


def _is_microdata(folder: Path) -> bool:
    """Return whether a folder is one of microdata, as ``simulate`` makes it."""
    names = {"persons.parquet", "households.parquet"}
    return not (folder / "_manifest.json").exists() and any((folder / n).exists() for n in names)


def _kind(name: str) -> str:
    from bayesrisk import datasets as samples

    entry = samples.catalogue()[name]
    return _KINDS[entry.get("kind", Path(str(entry["file"])).suffix)]


def audit_settings_path(given: Path) -> Path | None:
    """Return the path of the settings of an audit, which a sample may be; None if it is none."""
    if str(given).startswith(_PREFIX):
        name = str(given).removeprefix(_PREFIX)
        return data_path(given, AUDITS) if name in _of_kind(AUDITS) else None
    return given if given.suffix.lower() == ".toml" else None


def record_path(given: Path) -> Path:
    """Return the path of microdata or of a file of records, which a sample may hold."""
    name = str(given).removeprefix(_PREFIX)
    if str(given).startswith(_PREFIX) and name in _of_kind(RECORDS):
        return data_path(given, RECORDS, "records.csv")
    return data_path(given, MICRODATA)


def record_pieces(
    path: Path, wanted: "Schema", schema: str | None, dialect: str | None
) -> "Iterator[Records]":
    """Return the pieces of a file of records.

    They are in the schema that is named, or else in that of the tables.  Where it is
    ``sf1-person``, codes may be those of a dialect: the one that is said or that the file says of
    itself, and of a file whose columns are not the schema's one of them must say it.
    """
    from bayesrisk.readers import iter_record_form
    from bayesrisk.readers.dialects import coding_of_file
    from bayesrisk.tables.records import CHUNK, iter_records

    about = wanted
    if schema is not None:
        with called("name", "--schema"):
            about = schema_of(schema, geography=wanted.geography.name)
    if about.name != "sf1-person":
        if dialect is not None:
            raise ArgumentError(
                f"--dialect goes with records of the schema sf1-person, got {about.name}"
            )
        return iter_records(path, schema=about)
    with called("dialect", "--dialect"):
        coding = coding_of_file(path, dialect)
    if coding is None:
        return iter_records(path, schema=about)
    return iter_record_form(path, dialect=coding, chunk=CHUNK)


def check_folder_names_its_own(schema: str | None, dialect: str | None) -> None:
    """Refuse options that say what a folder of microdata says itself."""
    for option, value in (("--schema", schema), ("--dialect", dialect)):
        if value is not None:
            raise ArgumentError(f"{option} goes with a file of records; microdata names its own")


def _of_kind(kind: str) -> list[str]:
    from bayesrisk import datasets as samples

    return [name for name in samples.names() if _kind(name) == kind]


def workload_of(
    name: str, *, levels: Sequence[str] | None = None, geography: str | None = None
) -> "Workload":
    """Return a built-in workload, that of a TOML file, or that of a sample of records.

    ``levels`` and ``geography`` stand instead of the usual ones; a file names its own geography.
    """
    from bayesrisk.tables import Workload

    sample = name.startswith(_PREFIX)
    if not sample and not name.endswith(".toml"):
        return Workload.named(name, levels=levels, geography=geography)
    if geography is not None:
        raise ArgumentError(
            f"--geography goes with built-in tables; {name} names its own, got {shown(geography)}"
        )
    file = data_path(Path(name), RECORDS, "tables.toml") if sample else Path(name)
    return Workload.read(file, levels=levels)


def schema_of(name: str, *, geography: str | None = None) -> "Schema":
    """Return a built-in schema, or that of a TOML file."""
    from bayesrisk.tables import Schema

    if name.endswith(".toml"):
        return Schema.read(name)
    return Schema.named(name, geography=geography)


@contextmanager
def measurement_folder(given: Path) -> Iterator[Path]:
    """Provide the folder of noisy measurements that an argument names, a sample's unpacked."""
    found = data_path(given, MEASUREMENTS)
    if found is given:
        yield given
        return
    with TemporaryDirectory() as folder, zipfile.ZipFile(found) as archive:
        archive.extractall(folder)  # our own, its bytes checked
        yield next(path for path in sorted(Path(folder).iterdir()) if path.is_dir())

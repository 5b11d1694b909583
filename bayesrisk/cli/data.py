"""Data that commands take: a path, or ``sample:NAME`` for what ships with the package."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bayesrisk as br
from bayesrisk._base.disk import nearby
from bayesrisk.cli.command import MISSING, renamed
from bayesrisk.cli.printing import MADE_UP
from bayesrisk.exceptions import ArgumentError, quote

_PREFIX = "sample:"
MICRODATA = "microdata"
MEASUREMENTS = "noisy measurements"
#: Folders with ``records.csv``, and the schema and tables that it goes with.
RECORDS = "records with tables of their own"
#: Kinds of which no sample ships: commands make them.
TABLES = "published tables"
SWEEPS = "settings of a sweep"
AUDITS = "settings of an audit"
#: Files of a folder of tables, whole or by place.
_TABLES = ("_manifest.json", "_partitions.json")
_RECORD_FILES = (".csv", ".parquet")
#: What a sample is, by what the catalogue says or the ending of its file; folders have none.
_KINDS = {
    "audit": AUDITS,
    "records": RECORDS,
    "": MICRODATA,
    ".zip": MEASUREMENTS,
    ".csv": "a table",
    ".toml": SWEEPS,
}


def data_path(argument: Path, kind: str, part: str = "") -> Path:
    """Return the path of the data that an argument names, a file, a folder or ``sample:NAME``.

    The command takes data of a ``kind``, or ``part``, a file of a sample's folder.
    """
    text = str(argument)
    if not text.startswith(_PREFIX):
        if not os.path.lexists(argument):
            named = f"; {_PREFIX}{text} is a sample" if text in br.datasets.names() else ""
            raise ArgumentError(MISSING, str(argument), advice=named or nearby(argument))
        if kind == TABLES and _is_microdata(argument):
            raise ArgumentError(
                f"{argument} holds microdata, not tables: make some by `bayesrisk release "
                f"{argument} -o TABLES --protection none --tables NAME`"
            )
        if kind == MICRODATA and (argument / "_manifest.json").is_file():
            raise ArgumentError(
                f"{argument} holds no microdata but tables: `bayesrisk attack {argument} -o OUT` "
                "says what they give away"
            )
        if (
            kind == MICRODATA
            and argument.is_dir()
            and not (is_tables(argument) or _is_microdata(argument))
        ):
            if (argument / "manifest.json").is_file() and (argument / "report.html").is_file():
                raise ArgumentError(
                    f"{argument} holds results, not microdata: read {argument / 'report.html'}"
                )
            files = sorted(file.name for file in argument.iterdir() if file.suffix in _RECORD_FILES)
            instead = (argument / files[0]) if files else "a file of records, such as people.csv"
            raise ArgumentError(
                f"{argument} holds no microdata (persons.parquet is not there): give {instead}, or "
                "the folder that `bayesrisk census simulate -o` wrote"
            )
        if kind == TABLES and argument.is_dir() and not is_tables(argument):
            instead = nearby(argument, *_TABLES) or (
                ": give the folder that `bayesrisk release -o` or `bayesrisk census read -o` wrote"
            )
            whole = argument.parent
            if argument.name == "tables" and is_tables(whole):  # as a release writes them
                instead = f": give the whole release, {whole}, or its files, {argument / '*.csv'}"
            raise ArgumentError(
                f"{argument} holds no tables (_manifest.json is not there){instead}"
            )
        return argument

    name = text.removeprefix(_PREFIX)
    fitting = _sample_names(kind)
    if name not in fitting:
        is_ = f"is {_kind(name)}" if name in br.datasets.names() else "is none"
        have = f"samples of this kind: {', '.join(fitting)}" if fitting else "none ships"
        raise ArgumentError(f"{text} must be a sample of {kind}, but {name!r} {is_}; {have}")
    folder = br.datasets.path(name)
    if part and not (folder / part).is_file():
        raise ArgumentError(f"{text} must hold {part}, but this sample does not")
    return folder / part


def made_up_mark(*sources: Path) -> dict[str, Any]:
    """Return the mark of a document about data whose people are made up: nothing of others."""
    return {MADE_UP: True} if any(map(br.datasets.is_made_up, sources)) else {}


def _is_microdata(folder: Path) -> bool:
    """Return whether a folder is one of microdata, as ``simulate`` makes it."""
    names = {"persons.parquet", "households.parquet"}
    return not (folder / "_manifest.json").exists() and any((folder / n).exists() for n in names)


def is_tables(folder: Path) -> bool:
    """Return whether a folder holds tables or a release, whole or by place."""
    return any((folder / name).exists() for name in _TABLES)


def _kind(name: str) -> str:
    entry = br.datasets.catalogue()[name]
    return _KINDS[entry.get("kind", Path(str(entry["file"])).suffix)]


def _sample_names(kind: str) -> list[str]:
    return [name for name in br.datasets.names() if _kind(name) == kind]


def audit_settings_path(argument: Path) -> Path | None:
    """Return the path of the settings of an audit, which a sample may be; None if it is none."""
    if str(argument).startswith(_PREFIX):
        name = str(argument).removeprefix(_PREFIX)
        return data_path(argument, AUDITS) if name in _sample_names(AUDITS) else None
    return argument if argument.suffix.lower() == ".toml" else None


def record_path(argument: Path) -> Path:
    """Return the path of microdata or of a file of records, which a sample may hold."""
    name = str(argument).removeprefix(_PREFIX)
    if str(argument).startswith(_PREFIX) and name in _sample_names(RECORDS):
        return data_path(argument, RECORDS, "records.csv")
    return data_path(argument, MICRODATA)


def load_schema(name: str, *, geography: str | None = None) -> "br.Schema":
    """Return a built-in schema, or that of a TOML file."""
    if name.endswith(".toml"):
        return br.Schema.read(name)
    return br.Schema.named(name, geography=geography)


def load_workload(
    name: str, *, levels: Sequence[str] | None = None, geography: str | None = None
) -> "br.Workload":
    """Return a built-in workload, that of a TOML file, or that of a sample of records.

    ``levels`` and ``geography`` stand instead of the usual ones; a file names its own geography.
    """
    sample = name.startswith(_PREFIX)
    if not sample and not name.endswith(".toml"):
        return br.Workload.named(name, levels=levels, geography=geography)
    if geography is not None:
        raise ArgumentError(
            f"--geography goes with built-in tables; {name} names its own, got {quote(geography)}"
        )
    file = data_path(Path(name), RECORDS, "tables.toml") if sample else Path(name)
    return br.Workload.read(file, levels=levels)


def union_of_workloads(
    chosen: Sequence[str],
    *,
    levels: Sequence[str] | None = None,
    geography: str | None = None,
    only: Sequence[str] | None = None,
    without: Sequence[str] = (),
) -> "br.Workload":
    """Return the tables of several workloads together: all, ``only`` some, or ``without`` some."""
    with renamed({"name": "--tables"}):
        first, *rest = [load_workload(name, levels=levels, geography=geography) for name in chosen]
    union = first.union(*rest)
    if not only and not without:
        return union
    with renamed({"tables": "--only" if only else "--without"}):
        return union.select(tables=only or None, without=without)

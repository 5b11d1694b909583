"""Data that commands take: a path, or ``sample:NAME`` for what ships with the package."""

import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bayesrisk.exceptions import ArgumentError

__all__ = ["MICRODATA", "SWEEPS", "TABLES", "data_path", "measurement_folder"]

_PREFIX = "sample:"
MICRODATA = "microdata"
MEASUREMENTS = "noisy measurements"
#: Kinds of which no sample ships: commands make them.
TABLES = "published tables"
SWEEPS = "settings of a sweep"
#: What a sample is, by the ending of its file; folders have none.
_KINDS = {"": MICRODATA, ".zip": MEASUREMENTS, ".csv": "a table", ".toml": SWEEPS}


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
    fitting = [other for other in samples.names() if _kind(other) == kind]
    if name not in fitting:
        is_ = f"is {_kind(name)}" if name in samples.names() else "is none"
        have = f"samples of this kind: {', '.join(fitting)}" if fitting else "none ships"
        raise ArgumentError(f"{text} must be a sample of {kind}, but {name!r} {is_}; {have}")
    found = samples.path(name)
    if part and not (found / part).is_file():
        raise ArgumentError(f"{text} must hold {part}, but this sample does not")
    return found / part


def _is_microdata(folder: Path) -> bool:
    """Return whether a folder is one of microdata, as ``simulate`` makes it."""
    names = {"persons.parquet", "households.parquet"}
    return not (folder / "_manifest.json").exists() and any((folder / n).exists() for n in names)


def _kind(name: str) -> str:
    from bayesrisk import datasets as samples

    file = Path(str(samples.catalogue()[name]["file"]))
    return _KINDS[file.suffix]


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

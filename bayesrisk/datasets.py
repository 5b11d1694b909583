"""Small data sets shipped with the package: synthetic records or published figures only."""

import json
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayesrisk._base import disk, validation as check
from bayesrisk.exceptions import ArgumentError, DataError

if TYPE_CHECKING:
    from bayesrisk.tables import Microdata

__all__ = ["load", "load_microdata", "names", "path", "source"]


#: The first line of reports and commands about such data.
MADE_UP = "Made-up data: none of these people exists."


def folder() -> Path:
    """Return the folder of the samples, in the wheel or in the checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "_samples"
    return installed if installed.is_dir() else package.parent / "data" / "samples"


def catalogue() -> dict[str, dict[str, Any]]:
    """Return file, checksum, kind, source and licence of every sample, by name."""
    entries: dict[str, dict[str, Any]] = json.loads(
        (folder() / "catalogue.json").read_text("utf-8")
    )
    return entries


def names() -> list[str]:
    """Return the names of the samples, sorted.

    Examples
    --------
    >>> names()
    ['coarsening-audit', 'dare-county-28-21', 'dare-county-sweep', 'fifty-blocks',
     'granville-county-sweep', 'hospital', 'noisy-measurements', 'one-scale-audit', 'small-town',
     'small-town-audit', 'synthetic-county', 'thirty-blocks']
    """
    return sorted(catalogue())


def is_made_up(data: object) -> bool:
    """Return whether an object, folder, file or sample is marked as data of made-up people.

    A file takes the mark of its folder, or of the folder around it.
    """
    from bayesrisk.tables.exchange import is_marked  # slow to import

    if not isinstance(data, str | PathLike):
        return bool(getattr(data, "made_up", False))
    place = Path(data).resolve()
    if place.is_relative_to(folder()):
        return place.name not in {one["file"] for one in catalogue().values() if "real" in one}
    return any(map(is_marked, [place] if place.is_dir() else place.parents[:2]))


def path(name: str) -> Path:
    """Return the path of a sample file or folder, its checksum verified.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    """
    entries = catalogue()
    check.choice(name, "name", tuple(sorted(entries)))
    sample = folder() / str(entries[name]["file"])
    wanted = entries[name]["sha256"]
    files = {"": wanted} if isinstance(wanted, str) else wanted
    for part, expected in files.items():
        digest = disk.digest(sample / part)
        if digest != expected:
            raise DataError(
                f"{sample / part}: sha256 must be {expected}, got {digest}; the installation is "
                "damaged"
            )
    return sample


def source(name: str) -> str:
    """Return the source and the licence of a sample.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    """
    entries = catalogue()
    check.choice(name, "name", tuple(sorted(entries)))
    return f"{entries[name]['source']} Licence: {entries[name]['licence']}"


def load(name: str) -> pd.DataFrame:
    """Return a sample table as a data frame; every column but ``count`` is text.

    Parameters
    ----------
    name : str
        One of :func:`names` whose file is a CSV table.

    Examples
    --------
    >>> load("dare-county-28-21")["count"].tolist()
    [34, 10, 1]
    """
    file = path(name)
    if file.suffix != ".csv":
        raise ArgumentError("name", "must be a table (CSV)", got=name, advice=f", {file.suffix}")
    return pd.read_csv(file, dtype=str).astype({"count": "int64"})


def load_microdata(name: str) -> "Microdata":
    """Return a made-up sample population: persons, households and blocks.

    Parameters
    ----------
    name : str
        One of :func:`names` that is a folder of microdata.

    Examples
    --------
    >>> load_microdata("synthetic-county").persons.schema.name
    'sf1-person'
    """
    from bayesrisk.tables import Microdata  # slow to import

    file = path(name)
    if not file.is_dir() or "kind" in catalogue()[name]:
        raise ArgumentError(
            "name", "must be microdata (a folder)", got=name, advice=f", {file.name}"
        )
    return replace(Microdata.read(file), made_up=True)

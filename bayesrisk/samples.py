"""Small data sets that ship with the package: synthetic or published figures only."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError, DataError

__all__ = ["load", "names", "path", "source"]


def _folder() -> Path:
    """Return the folder of the samples: inside the wheel, or in the checkout it was made from."""
    here = Path(__file__).resolve().parent
    installed = here / "_samples"
    return installed if installed.is_dir() else here.parent / "data" / "samples"


def _catalogue() -> dict[str, dict[str, Any]]:
    catalogue: dict[str, dict[str, Any]] = json.loads(
        (_folder() / "catalogue.json").read_text(encoding="utf-8")
    )
    return catalogue


def names() -> list[str]:
    """Return the names of the samples.

    Returns
    -------
    list of str
        Sorted names.

    Raises
    ------
    OSError
        If the installation is incomplete.

    Examples
    --------
    >>> names()
    ['dare-county-28-21', 'dare-county-sweep', 'granville-county-sweep']
    """
    return sorted(_catalogue())


def path(name: str) -> Path:
    """Return the path of a sample file, after checking its bytes.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    pathlib.Path
        The file, read-only by convention.

    Raises
    ------
    ArgumentError
        If there is no such sample.
    DataError
        If the file does not have the checksum in the catalogue.
    """
    catalogue = _catalogue()
    check.choice(name, "name", tuple(sorted(catalogue)))
    file = _folder() / str(catalogue[name]["file"])
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != catalogue[name]["sha256"]:
        raise DataError(
            f"{file}: sha256 must be {catalogue[name]['sha256']}, got {digest}; "
            "the installation is damaged"
        )
    return file


def source(name: str) -> str:
    """Return where a sample comes from and its licence.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    str
        Source and licence, a sentence each.

    Raises
    ------
    ArgumentError
        If there is no such sample.
    """
    catalogue = _catalogue()
    check.choice(name, "name", tuple(sorted(catalogue)))
    return f"{catalogue[name]['source']} Licence: {catalogue[name]['licence']}"


def load(name: str) -> pd.DataFrame:
    """Return a sample table as a data frame, codes as text.

    Parameters
    ----------
    name : str
        One of :func:`names` whose file is a CSV table.

    Returns
    -------
    pandas.DataFrame
        The table; every column but ``count`` is text.

    Raises
    ------
    ArgumentError
        If there is no such sample, or it is not a table.
    DataError
        If its file is damaged.

    Examples
    --------
    >>> load("dare-county-28-21")["count"].tolist()
    [34, 10, 1]
    """
    file = path(name)
    if file.suffix != ".csv":
        raise ArgumentError(f"name must be a table (CSV), got {name!r}, {file.suffix}")
    return pd.read_csv(file, dtype=str).astype({"count": "int64"})

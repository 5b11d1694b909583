"""A release as files: JSON with exact numbers, and a folder that appears whole or not at all."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentTypeError, DataError
from bayesrisk.tables.exchange import writing
from bayesrisk.tables.exchange.layout import MANIFEST
from bayesrisk.tables.published import PublishedTables

#: Readers of Parquet folders pass over names that start with an underscore.
RELEASE_FILE = "_release.json"


def write_release(
    folder: Path, tables: PublishedTables, document: Mapping[str, Any], *, replace: bool
) -> Path:
    """Write tables and document as one folder, whole or as before; each names the other."""

    def check_folder(target: Path) -> None:
        if replace:
            writing.check_folder(target, replace=True, also=RELEASE_FILE)
        else:
            _files.new_folder(target)

    with _files.whole_folder(folder, check_folder) as made:
        writing.fill(tables.content, made, release=_files.document_digest(document))
        bound = {**document, "tables": _files.digest(made / MANIFEST)}
        _files.write_bytes(made / RELEASE_FILE, _files.sealed(bound))
    return folder


def plain(value: object, name: str) -> object:
    """Return a value in the types of JSON; exact fractions become strings."""
    try:
        return _plain(value, name)
    except RecursionError as error:
        raise ArgumentTypeError(
            f"{name} must not be nested so deeply, got {shown(value)}"
        ) from error


def _plain(value: object, name: str) -> object:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentTypeError(f"{name} must have text as keys, got {shown(key)}")
        return {key: _plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        return float(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, float, np.floating)):
        return [_plain(item, f"{name}[{i}]") for i, item in enumerate(check.items(value, name))]
    raise ArgumentTypeError(f"{name} must be finite and fit in JSON, got {shown(value)}")


def same_keys(document: Any, names: set[str], source: str) -> None:
    """Check that an object has exactly these keys."""
    if not isinstance(document, Mapping):
        raise DataError(f"{source}: must be an object, got {shown(document)}")
    for name in sorted(names - set(document)):
        raise DataError(f"{source}: key {name!r} is missing")
    for name in sorted(set(document) - names):
        raise DataError(f"{source}: key {name!r} is unknown")

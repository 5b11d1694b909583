"""A release as files: JSON with exact numbers, and a folder that appears whole or not at all."""

import math
import os
import shutil
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bayesrisk.exceptions import ArgumentTypeError, DataError, OutputError
from bayesrisk.tables.published import PublishedTables

__all__ = ["RELEASE_FILE", "plain", "same_keys", "write_release"]

#: Readers of Parquet folders pass over names that start with an underscore.
RELEASE_FILE = "_release.json"


def write_release(folder: Path, tables: PublishedTables, text: str) -> Path:
    """Write tables and document beside the folder, then move them into its place."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder}: must be new or an empty folder; nothing was changed")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        tables.write(temporary)
        (temporary / RELEASE_FILE).write_text(text, encoding="utf-8")
        if folder.exists():
            folder.rmdir()  # empty: not every system replaces a folder
        temporary.replace(folder)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{folder}: cannot be written: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def plain(value: Any, name: str) -> Any:
    """Return a value in the types of JSON; exact fractions become strings."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentTypeError(f"{name} must have text as keys, got {key!r}")
        return {key: plain(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        return float(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, float, np.floating)):
        return [plain(item, f"{name}[{i}]") for i, item in enumerate(value)]
    raise ArgumentTypeError(f"{name} must be finite and fit in JSON, got {value!r}")


def same_keys(document: Any, names: set[str], source: str) -> None:
    """Check that an object has exactly these keys."""
    if not isinstance(document, Mapping):
        raise DataError(f"{source}: must be an object, got {document!r}")
    for name in sorted(names - set(document)):
        raise DataError(f"{source}: key {name!r} is missing")
    for name in sorted(set(document) - names):
        raise DataError(f"{source}: key {name!r} is unknown")

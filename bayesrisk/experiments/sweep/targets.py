"""The table whose cells hold the targets of a sweep: CSV or Parquet, one row for each cell."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd

from bayesrisk import datasets as samples
from bayesrisk._files.parquet import read_frame
from bayesrisk._files.parse import named, shown
from bayesrisk._files.text import open_text
from bayesrisk.exceptions import ConfigError, DataError

_MAX_TARGETS = 1000
_MAX_BYTES = 2**28


@dataclass(frozen=True)
class Target:
    """Someone in a cell: its label, and its count with the target included."""

    label: str
    count: int

    @property
    def known_count(self) -> int:
        """Return the count of the others in the cell, which the adversary knows."""
        return self.count - 1


class TableSection(Protocol):
    """The checked ``[table]`` section of a configuration."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def count(self) -> str:
        """Column of counts."""

    @property
    def targets(self) -> str:
        """``"unique"`` or ``"all"``."""


def read_targets(section: TableSection | None, *, source: str, folder: Path) -> tuple[Target, ...]:
    """Return the targets that the ``[table]`` section of a configuration names.

    Parameters
    ----------
    section : TableSection or None
        Keys ``path``, ``count`` (default ``"count"``) and ``targets`` (``"unique"``, the default,
        or ``"all"`` cells that are not empty); None for one nameless target alone in its cell.
    source : str
        How messages call the configuration.
    folder : pathlib.Path
        Where a relative path starts.

    Returns
    -------
    tuple of Target
        At most 1,000.

    Raises
    ------
    ConfigError
        If the file cannot be read.
    DataError
        If the table has no such column, a bad count, or no or too many targets.
    """
    if section is None:
        return (Target("target", 1),)
    name, column, which = section.path, section.count, section.targets
    frame = _read(name, source, folder)
    if column not in frame.columns:
        known = ", ".join(map(str, frame.columns))
        raise DataError(f"{name}: has no column {column!r}; columns: {known}")
    counts = _counts(frame[column], name)
    others = [
        ["" if pd.isna(value) else str(value) for value in frame[name]]
        for name in frame.columns
        if name != column
    ]
    labels = [", ".join(parts) for parts in zip(*others, strict=True)] or [""] * len(frame)
    wanted = counts == 1 if which == "unique" else counts > 0
    targets = tuple(
        Target(str(label) or f"row {row}", int(count))
        for row, (label, count, keep) in enumerate(
            zip(labels, counts, wanted, strict=True), start=1
        )
        if keep
    )
    if not 1 <= len(targets) <= _MAX_TARGETS:
        raise DataError(
            f"{name}: must have 1 to {_MAX_TARGETS} target cells ({which}), got {len(targets)}"
        )
    return targets


def _read(name: str, source: str, folder: Path) -> pd.DataFrame:
    with named(f"{source}: table.path {shown(name)}", ConfigError):
        file = samples.path(name[7:]) if name.startswith("sample:") else folder / name
        size = file.stat().st_size
    if size > _MAX_BYTES:
        raise DataError(f"{name}: must have at most {_MAX_BYTES} bytes")
    if file.suffix == ".parquet":
        return read_frame(file)
    with open_text(file, name) as lines, named(name, also=(OverflowError,)):
        return pd.read_csv(lines, dtype=str, keep_default_na=False, compression=None)


def _counts(values: pd.Series, name: str) -> pd.Series:
    """Return whole, non-negative counts; the first bad one is named by row and column."""
    numbers = pd.to_numeric(values, errors="coerce")
    bad = numbers.isna() | (numbers < 0) | (numbers != numbers.round()) | (numbers > 2**52)
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise DataError(
            f"{name}: row {row + 1}, column {values.name!r}: must be a whole number "
            f"in [0, 2**52], got {shown(values.iloc[row])}"
        )
    return numbers.astype("int64")

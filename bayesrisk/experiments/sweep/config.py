"""The configuration of a sweep, resolved: nothing left to look up, nothing left to check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Protocol

import pandas as pd

from bayesrisk import datasets as samples
from bayesrisk._files.delimited import open_text
from bayesrisk._files.limits import Count, Positive, Seed, choice
from bayesrisk._files.parquet import read_frame
from bayesrisk._files.text import named, shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import ConfigError, DataError
from bayesrisk.experiments.runs.folder import RunSettings

# -----------------------------------------------------------------------------
# The table whose cells hold the targets of a sweep: CSV or Parquet, one row for each cell.


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


# -----------------------------------------------------------------------------


#: Every quantity, with the section or key it needs besides rho and prior.
QUANTITIES = {
    "posterior": "grid.released",
    "risk_ratio": "grid.released",
    "release_probability": "grid.released",
    "marginal_posterior": "",
    "marginal_risk": "",
    "decision_threshold": "",
    "correct_decision_probability": "",
    "decision_accuracy": "",
    "decision_baseline": "",
    "multilevel_marginal_posterior": "levels",
    "multilevel_marginal_risk": "levels",
    "hierarchical_correct_decision_probability": "hierarchy",
    "hierarchical_decision_accuracy": "hierarchy",
    "hierarchical_marginal_posterior": "hierarchy",
    "simulated_marginal_posterior": "simulation",
    "epsilon": "accounting",
}
#: Quantities that do not depend on the prior.
FREE_OF_PRIOR = ("release_probability", "epsilon")
#: What only the first noise law, the Gaussian, offers.
GAUSSIAN_ONLY = ("levels", "hierarchy")
#: Noise laws; the first is the default.
NOISES = ("discrete-gaussian", "discrete-laplace")


@dataclass(frozen=True)
class Budget:
    """A value of rho: its name where it has one, and the number.

    ``census`` marks a budget of the 2020 Census, whose rho stands for one noise in the literature
    and for another in production.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    value: float
    census: bool = False


@dataclass(frozen=True)
class Hierarchy:
    """Axes of the adversary who also reads a group's count and those of the siblings.

    Attributes
    ----------
    rho_group : tuple of Budget
        Budgets of the group's count; the setting's rho is that of the blocks.
    group_count : tuple of int
        True counts of the group, the target included.
    n_siblings : tuple of int
        Numbers of other blocks in the group.
    conditionals : tuple of str
        ``"coherent"``, ``"as-published"``.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    rho_group: tuple[Budget, ...] = ()
    group_count: tuple[int, ...] = ()
    n_siblings: tuple[int, ...] = ()
    conditionals: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        """Number of points that the axes span."""
        axes = (self.rho_group, self.group_count, self.n_siblings, self.conditionals)
        return math.prod(len(axis) for axis in axes)


@displayed
@dataclass(frozen=True)
class SweepConfig(RunSettings):
    """A resolved sweep: nothing left to look up, nothing left to check.

    Attributes
    ----------
    title, scenario : str
        What the report is called and what the adversary wants to know.
    seed : int
        Seed of the simulation.
    targets : tuple of Target
        Whose risk is computed: label and count of the cell, the target included.
    rho : tuple of Budget
        Budgets; the named ones are marked in figures and tables.
    prior : tuple of Budget
        Priors, by the text they were written with.
    sensitivity : tuple of Budget
        L2 sensitivities (L1 for Laplace noise).
    noise : tuple of str
        Noise laws.
    released : tuple of int
        Released counts, as differences from the known count.
    levels : tuple of Budget
        Levels from the target's upwards, as multiples of the rho of the first.
    hierarchy : Hierarchy
        Axes of the adversary who uses two levels; empty where the file has none.
    quantities : tuple of str
        What is computed.
    delta : float or None
        Probability of failure for ``epsilon``.
    releases : int
        Simulated releases for each setting, or 0.
    settings_per_shard : int
        Settings (noise, sensitivity, rho) in a shard.
    version : str
        Version of bayesrisk that resolved it.
    """

    title: str
    scenario: str
    seed: Seed
    targets: tuple[Target, ...]
    rho: tuple[Budget, ...]
    prior: tuple[Budget, ...]
    sensitivity: tuple[Budget, ...]
    noise: tuple[Annotated[str, choice(NOISES)], ...]
    released: tuple[int, ...]
    levels: tuple[Budget, ...]
    hierarchy: Hierarchy
    quantities: tuple[Annotated[str, choice(QUANTITIES)], ...]
    delta: Positive | None
    releases: Seed
    settings_per_shard: Count
    version: str = __version__

    @property
    def settings(self) -> list[tuple[str, Budget, Budget]]:
        """Every (noise, sensitivity, rho), in the order of the results."""
        return [(n, s, r) for n in self.noise for s in self.sensitivity for r in self.rho]

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-len(self.settings) // self.settings_per_shard)

    @property
    def rows(self) -> int:
        """Number of rows of the results."""
        per_setting = 0
        for quantity in self.quantities:
            rows = 1 if quantity in FREE_OF_PRIOR else len(self.prior)
            if QUANTITIES[quantity] == "grid.released":
                rows *= len(self.released) * len(self.targets)
            elif QUANTITIES[quantity] == "levels":
                rows *= len(self.levels)
            elif QUANTITIES[quantity] == "hierarchy":
                rows *= self.hierarchy.points
            per_setting += rows
        return per_setting * len(self.settings)

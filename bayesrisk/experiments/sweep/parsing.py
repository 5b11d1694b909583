"""From a TOML file to a resolved configuration, checked key by key."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesrisk import _validation as check
from bayesrisk import datasets as samples
from bayesrisk._files.parse import read_toml, shown
from bayesrisk.exceptions import ArgumentError, ConfigError
from bayesrisk.experiments.sweep.config import (
    GAUSSIAN_ONLY,
    NOISES,
    QUANTITIES,
    Budget,
    Hierarchy,
    SweepConfig,
)
from bayesrisk.experiments.sweep.targets import read_targets

if TYPE_CHECKING:
    from bayesrisk.experiments.sweep.document import Document, Groups, Span

_MAX_ROWS = 2**24
#: Sections that quantities need.
_OPTIONAL = ("levels", "hierarchy", "accounting", "simulation")


def load_config(path: str | Path, *, seed: int | None = None) -> SweepConfig:
    """Read and resolve the configuration of a sweep.

    Parameters
    ----------
    path : path-like
        TOML file; or the name of a sample, as ``sample:NAME``.
    seed : int, optional
        Seed that replaces the one in the file.

    Returns
    -------
    SweepConfig
        The resolved configuration.

    Raises
    ------
    ConfigError
        If the file cannot be read, is not TOML, or a key is unknown, missing or out of range;
        the message names file, key, bound and value.
    DataError
        If the table of targets breaks its format.

    Examples
    --------
    >>> config = load_config("sample:dare-county-sweep")
    >>> len(config.rho), len(config.prior), config.targets[0].count
    (203, 5, 1)
    """
    check.path(path, "path")
    text = str(path)
    try:
        file = samples.path(text[7:]) if text.startswith("sample:") else Path(path)
    except ArgumentError as error:
        raise ConfigError(f"{text}: cannot be read: {error}") from error
    document = read_toml(file, name=text)
    return parse_config(document, source=text, folder=file.parent, seed=seed)


def parse_config(
    document: Mapping[str, Any],
    *,
    source: str = "config document",
    folder: str | Path = ".",
    seed: int | None = None,
) -> SweepConfig:
    """Resolve a configuration that is already in memory.

    Parameters
    ----------
    document : mapping
        As TOML would give it.
    source : str, default "config document"
        How messages call it.
    folder : path-like, default "."
        Where relative paths start.
    seed : int, optional
        Seed that replaces the one in the document.

    Returns
    -------
    SweepConfig
        The resolved configuration.

    Raises
    ------
    ConfigError
        If a key is unknown, missing or out of range.
    DataError
        If the table of targets breaks its format.
    """
    from pydantic import ValidationError  # slow to import, and needed only here

    from bayesrisk._files.bounds import as_config_error
    from bayesrisk.experiments.sweep.document import Document

    check.text(source, "source")
    check.path(folder, "folder")
    if not isinstance(document, Mapping):
        raise ConfigError(f"{source}: must be a mapping, got {shown(document)}")
    try:
        read = Document.model_validate(document if seed is None else {**document, "seed": seed})
    except ValidationError as error:
        raise as_config_error(error, source) from error
    config = _resolved(read, source, Path(folder))
    if config.rows > _MAX_ROWS:
        raise ConfigError(
            f"{source}: the sweep must have at most {_MAX_ROWS} rows, got {config.rows}"
        )
    return config


def _resolved(read: "Document", source: str, folder: Path) -> SweepConfig:
    """Look up what a checked document names."""
    grid, levels = read.grid, read.levels
    return SweepConfig(
        title=read.title,
        scenario=read.scenario,
        seed=read.seed,
        targets=read_targets(read.table, source=source, folder=folder),
        rho=grid.rho,
        prior=tuple(grid.prior),
        sensitivity=tuple(grid.sensitivity),
        noise=_once(grid.noise),
        released=_released(grid.released),
        levels=()
        if levels is None
        else tuple(
            Budget(name, rho.value / levels.rho[0].value)
            for name, rho in zip(levels.names, levels.rho, strict=True)
        ),
        hierarchy=_hierarchy(read.hierarchy),
        quantities=_quantities(read, source),
        delta=None if read.accounting is None else float(read.accounting.delta),
        releases=0 if read.simulation is None else read.simulation.releases,
        settings_per_shard=read.settings_per_shard,
    )


def _once(values: Iterable[str]) -> tuple[str, ...]:
    """Return values in the order in which they came first."""
    return tuple(dict.fromkeys(values))


def _released(values: "Span | list[int] | None") -> tuple[int, ...]:
    """Return released counts in order."""
    if values is None:
        return ()
    if isinstance(values, list):
        return tuple(sorted(set(values)))
    return tuple(range(values.from_, values.to + 1))


def _hierarchy(groups: "Groups | None") -> Hierarchy:
    """Return the axes of the adversary who uses two levels."""
    if groups is None:
        return Hierarchy()
    return Hierarchy(
        rho_group=groups.rho_group,
        group_count=tuple(sorted(set(groups.group_count))),
        n_siblings=tuple(sorted(set(groups.n_siblings))),
        conditionals=_once(groups.conditionals),
    )


def _quantities(read: "Document", source: str) -> tuple[str, ...]:
    """Return what is computed: what the document asks for, or all that its sections allow."""
    noise = _once(read.grid.noise)
    gaussian_only = noise != (NOISES[0],)
    available = {
        "": True,
        "grid.released": read.grid.released is not None,
        **{name: getattr(read, name) is not None for name in _OPTIONAL},
    }
    if read.quantities is None:
        return tuple(
            quantity
            for quantity, need in QUANTITIES.items()
            if available[need] and not (gaussian_only and need in GAUSSIAN_ONLY)
        )
    chosen = _once(read.quantities)
    for quantity in chosen:
        need = QUANTITIES[quantity]
        if not available[need]:
            fault = f"free of {quantity} without {need}, got {shown(read.quantities)}"
        elif gaussian_only and need in GAUSSIAN_ONLY:
            fault = f"free of {quantity} unless all noise is {NOISES[0]}, got {shown(noise)}"
        else:
            continue
        raise ConfigError(f"{source}: quantities must be {fault}")
    return chosen

"""From a TOML file to a resolved configuration, checked key by key."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bayesrisk import _validation as check
from bayesrisk import datasets as samples
from bayesrisk._files.parse import read_toml, shown
from bayesrisk.accounting import census_2020_budget, exact_number
from bayesrisk.accounting.budget import SENSITIVITIES
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
from bayesrisk.inference.two_levels.model import CONDITIONALS
from bayesrisk.risk.count.scenarios import SCENARIOS

__all__ = ["load_config", "parse_config"]

_MAX_ROWS = 2**24
_MAX_POINTS = 10**6


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
    source: str = "config",
    folder: str | Path = ".",
    seed: int | None = None,
) -> SweepConfig:
    """Resolve a configuration that is already in memory.

    Parameters
    ----------
    document : mapping
        As TOML would give it.
    source : str, default "config"
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
    reader = _Reader(check.text(source, "source"))
    check.path(folder, "folder")
    if not isinstance(document, Mapping):
        raise reader.fail("document", "a mapping", document)
    reader.known(
        document,
        "",
        "title scenario seed settings_per_shard quantities table grid levels hierarchy accounting "
        "simulation",
    )
    grid = reader.section(document, "grid", "rho prior sensitivity noise released", required=True)
    levels = reader.section(document, "levels", "names rho")
    hierarchy = reader.section(
        document, "hierarchy", "rho_group group_count n_siblings conditionals"
    )
    accounting = reader.section(document, "accounting", "delta")
    simulation = reader.section(document, "simulation", "releases")
    table = reader.section(document, "table", "path count targets")
    released = grid.get("released")
    available = {
        "": True,
        "grid.released": released is not None,
        "levels": levels is not None,
        "hierarchy": hierarchy is not None,
        "accounting": accounting is not None,
        "simulation": simulation is not None,
    }
    noise = reader.choices(grid.get("noise", [NOISES[0]]), "grid.noise", NOISES)
    config = SweepConfig(
        title=reader.text(document.get("title", "Disclosure risk over rho"), "title"),
        scenario=reader.choices(
            [document.get("scenario", "characteristics")], "scenario", tuple(SCENARIOS)
        )[0],
        seed=reader.whole(document.get("seed", 0) if seed is None else seed, "seed", 0, 2**63 - 1),
        targets=read_targets(table, source=source, folder=Path(folder)),
        rho=reader.budgets(grid, "grid.rho", low=1e-12, high=1e6),
        prior=reader.priors(grid),
        sensitivity=reader.sensitivities(grid.get("sensitivity", ["add-remove"])),
        noise=noise,
        released=() if released is None else reader.integers(released, "grid.released"),
        levels=() if levels is None else reader.levels(levels),
        hierarchy=Hierarchy() if hierarchy is None else reader.hierarchy(hierarchy),
        quantities=reader.quantities(document.get("quantities"), available, noise),
        delta=None
        if accounting is None
        else float(
            reader.number(accounting.get("delta"), "accounting.delta", 1e-300, 1.0, open_=True)
        ),
        releases=0
        if simulation is None
        else reader.whole(simulation.get("releases"), "simulation.releases", 2, 10**9),
        settings_per_shard=reader.whole(
            document.get("settings_per_shard", 16), "settings_per_shard", 1, 10**6
        ),
    )
    if config.rows > _MAX_ROWS:
        raise ConfigError(
            f"{source}: the sweep must have at most {_MAX_ROWS} rows, got {config.rows}"
        )
    return config


def _of_census(value: Any) -> bool:
    """Return whether a value names a budget of the 2020 Census."""
    return isinstance(value, str) and value.split("/")[0] in ("pl94", "dhc")


class _Reader:
    """Checks that name the file, the key, the bound and the value."""

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, key: str, bound: str, value: Any) -> ConfigError:
        return ConfigError(f"{self.source}: {key} must be {bound}, got {shown(value)}")

    def known(self, section: Mapping[str, Any], prefix: str, keys: str) -> None:
        for key in section:
            if key not in keys.split():
                known = ", ".join(f"{prefix}{k}" for k in keys.split())
                raise ConfigError(
                    f"{self.source}: unknown key {prefix}{key!s:.200}; known: {known}"
                )

    def section(
        self, document: Mapping[str, Any], name: str, keys: str, *, required: bool = False
    ) -> Any:
        section = document.get(name)
        if section is None and not required:
            return None
        if not isinstance(section, Mapping):
            raise self.fail(f"[{name}]", "a table", section)
        self.known(section, f"{name}.", keys)
        return section

    def text(self, value: Any, key: str) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > 200:
            raise self.fail(key, "text of 1 to 200 characters", value)
        return value

    def whole(self, value: Any, key: str, low: int, high: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.fail(key, f"a whole number in [{low}, {high}]", value)
        return value

    def number(
        self, value: Any, key: str, low: float, high: float, *, open_: bool = False
    ) -> Fraction:
        brackets = "()" if open_ else "[]"
        bound = f"a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}"
        try:
            number = exact_number(value)
        except ArgumentError as error:
            raise self.fail(key, bound, value) from error
        inside = low < number < high if open_ else low <= number <= high
        if not inside:
            raise self.fail(key, bound, value)
        return number

    def sequence(self, value: Any, key: str) -> list[Any]:
        if not isinstance(value, list) or not value:
            raise self.fail(key, "a list with at least one entry", value)
        return value

    def choices(self, value: Any, key: str, options: Iterable[str]) -> tuple[str, ...]:
        entries = self.sequence(value, key)
        for entry in entries:
            if not isinstance(entry, str) or entry not in tuple(options):
                raise self.fail(key, f"one of {', '.join(options)}", entry)
        return tuple(dict.fromkeys(entries))

    def budgets(
        self, section: Mapping[str, Any], key: str, *, low: float, high: float
    ) -> tuple[Budget, ...]:
        """Read a list of numbers, ranges and budgets; values in order, named ones kept."""
        entries = section.get(key.rpartition(".")[2])
        entries = entries if isinstance(entries, list) else [entries]
        found: list[Budget] = []
        for i, entry in enumerate(self.sequence(entries, key)):
            found += self.entry(entry, f"{key}[{i}]", low, high)
        names = [budget.name for budget in found if budget.name]
        for name in names:
            if names.count(name) > 1:
                raise self.fail(key, "without repeated names", name)
        distinct = {(budget.value, budget.name): budget for budget in found}
        named = {budget.value for budget in found if budget.name}
        kept = [b for (value, name), b in distinct.items() if name or value not in named]
        return tuple(sorted(kept, key=lambda b: (b.value, b.name)))

    def entry(self, entry: Any, key: str, low: float, high: float) -> list[Budget]:
        if not isinstance(entry, Mapping):
            return [Budget("", float(self.value(entry, key, low, high)))]
        if "log" in entry or "linear" in entry:
            return [Budget("", value) for value in self.range(entry, key, low, high)]
        self.known(entry, f"{key}.", "name value budget total log linear points")
        if ("value" in entry) == ("budget" in entry):
            raise self.fail(key, "a table with one of value, budget, log, linear", dict(entry))
        name = self.text(entry["name"], f"{key}.name") if "name" in entry else ""
        total = entry.get("total")
        if total is not None and "budget" not in entry:
            raise self.fail(f"{key}.total", "left out without budget", total)
        value = entry.get("value", entry.get("budget"))
        number = self.value(value, key, low, high, total=total)
        return [Budget(name, float(number), census=_of_census(value))]

    def range(self, entry: Mapping[str, Any], key: str, low: float, high: float) -> list[float]:
        kind = "log" if "log" in entry else "linear"
        self.known(entry, f"{key}.", f"{kind} points")
        ends = self.sequence(entry[kind], f"{key}.{kind}")
        if len(ends) != 2:
            raise self.fail(f"{key}.{kind}", "two numbers", ends)
        first, last = (float(self.number(e, f"{key}.{kind}", low, high)) for e in ends)
        if not first < last:
            raise self.fail(f"{key}.{kind}", "increasing", ends)
        points = self.whole(entry.get("points"), f"{key}.points", 2, _MAX_POINTS)
        space = np.geomspace if kind == "log" else np.linspace
        return [float(value) for value in space(first, last, points)]

    def value(
        self, value: Any, key: str, low: float, high: float, *, total: Any = None
    ) -> Fraction:
        """Read a number, a fraction, or PRODUCT/REGION/UNIVERSE/LEVEL/QUERY of the 2020 Census."""
        if not _of_census(value):
            return self.number(value, key, low, high)
        parts = value.split("/")
        if len(parts) != 5:
            raise self.fail(key, "PRODUCT/REGION/UNIVERSE/LEVEL/QUERY", value)
        product, region, universe, level, query = parts
        try:
            table = census_2020_budget(product, region=region, universe=universe, total_rho=total)
        except ArgumentError as error:
            raise ConfigError(f"{self.source}: {key}: {error}") from error
        row = table[(table["level"] == level) & (table["query"] == query)]
        if row.empty:
            known = ", ".join(
                f"{a}/{b}" for a, b in zip(table["level"], table["query"], strict=True)
            )
            raise self.fail(key, f"one of LEVEL/QUERY = {known}", value)
        exact: Fraction = row["rho"].iloc[0]
        return self.number(exact, key, low, high)

    def priors(self, grid: Mapping[str, Any]) -> tuple[Budget, ...]:
        entries = self.sequence(grid.get("prior"), "grid.prior")
        numbers = [
            self.number(entry, f"grid.prior[{i}]", 0.0, 1.0, open_=True)
            for i, entry in enumerate(entries)
        ]
        for entry, number in zip(entries, numbers, strict=True):
            if not 0.0 < float(number) < 1.0:
                raise self.fail("grid.prior", "strictly between 0 and 1 as a double", entry)
        labelled = zip(entries, numbers, strict=True)
        return tuple({float(n): Budget(str(entry), float(n)) for entry, n in labelled}.values())

    def sensitivities(self, value: Any) -> tuple[Budget, ...]:
        entries = self.sequence(value, "grid.sensitivity")
        found = []
        for i, entry in enumerate(entries):
            if isinstance(entry, str) and entry in SENSITIVITIES:
                found.append(Budget(entry, SENSITIVITIES[entry]))
            else:
                key = f"grid.sensitivity[{i}] (add-remove, change-one)"
                found.append(Budget(str(entry), float(self.number(entry, key, 1e-3, 1e3))))
        return tuple({budget.value: budget for budget in found}.values())

    def integers(self, value: Any, key: str) -> tuple[int, ...]:
        if isinstance(value, Mapping):
            self.known(value, f"{key}.", "from to")
            first = self.whole(value.get("from"), f"{key}.from", -(10**9), 10**9)
            last = self.whole(value.get("to"), f"{key}.to", first, first + _MAX_POINTS)
            return tuple(range(first, last + 1))
        entries = self.sequence(value, key)
        return tuple(sorted({self.whole(e, key, -(10**9), 10**9) for e in entries}))

    def levels(self, section: Mapping[str, Any]) -> tuple[Budget, ...]:
        entries = self.sequence(section.get("rho"), "levels.rho")
        names = self.sequence(section.get("names"), "levels.names")
        if len(names) != len(entries):
            raise self.fail("levels.names", f"as many as levels.rho, {len(entries)}", names)
        values = []
        for i, entry in enumerate(entries):
            (budget,) = self.entry(entry, f"levels.rho[{i}]", 1e-12, 1e6)
            values.append(budget.value)
        labels = [self.text(name, f"levels.names[{i}]") for i, name in enumerate(names)]
        return tuple(Budget(n, v / values[0]) for n, v in zip(labels, values, strict=True))

    def hierarchy(self, section: Mapping[str, Any]) -> Hierarchy:
        conditionals = section.get("conditionals", [CONDITIONALS[0]])
        return Hierarchy(
            rho_group=self.budgets(section, "hierarchy.rho_group", low=1e-12, high=1e6),
            group_count=self.counts(section, "hierarchy.group_count"),
            n_siblings=self.counts(section, "hierarchy.n_siblings"),
            conditionals=self.choices(conditionals, "hierarchy.conditionals", CONDITIONALS),
        )

    def counts(self, section: Mapping[str, Any], key: str) -> tuple[int, ...]:
        entries = self.sequence(section.get(key.rpartition(".")[2]), key)
        return tuple(sorted({self.whole(entry, key, 1, 10**6) for entry in entries}))

    def quantities(
        self, value: Any, available: Mapping[str, bool], noise: tuple[str, ...]
    ) -> tuple[str, ...]:
        gaussian_only = noise != (NOISES[0],)
        possible = [
            q
            for q, need in QUANTITIES.items()
            if available[need] and not (gaussian_only and need in GAUSSIAN_ONLY)
        ]
        if value is None:
            return tuple(possible)
        chosen = self.choices(value, "quantities", tuple(QUANTITIES))
        for quantity in chosen:
            need = QUANTITIES[quantity]
            if not available[need]:
                raise self.fail("quantities", f"free of {quantity} without {need}", value)
            if gaussian_only and need in GAUSSIAN_ONLY:
                raise self.fail(
                    "quantities", f"free of {quantity} unless all noise is {NOISES[0]}", noise
                )
        return chosen

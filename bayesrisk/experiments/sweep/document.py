"""The TOML document of a sweep as pydantic models: its keys, their bounds, and its JSON Schema.

pydantic takes a while to import, so only what reads a configuration imports this module.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WrapValidator,
)
from pydantic import model_validator as _model
from pydantic_core import PydanticCustomError

from bayesrisk import _validation as check
from bayesrisk import datasets as samples
from bayesrisk._files.limits import (
    Bound,
    Section,
    Several,
    as_config_error,
    choice,
    refuse,
    schema_text,
    whole,
)
from bayesrisk._files.text import read_toml, shown
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
    read_targets,
)
from bayesrisk.inference.two_levels.model import CONDITIONALS
from bayesrisk.risk.count.blocks import SCENARIOS

_MAX_POINTS = 10**6
_RHO = (1e-12, 1e6)
_COUNT = whole(1, 10**6)
_RELEASED = whole(-(10**9), 10**9)


def _number(low: float, high: float, *, open_: bool = False, **told: Any) -> Bound:
    """Return the bound of a number or fraction, which is read exactly."""
    brackets = "()" if open_ else "[]"
    words = f"a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}"

    def exact_value(value: Any) -> Fraction:
        try:
            exact = exact_number(value)
        except ArgumentError:
            raise refuse(words, **told) from None
        if not (low < exact < high if open_ else low <= exact <= high):
            raise refuse(words, **told)
        return exact

    ends = ("exclusiveMinimum", "exclusiveMaximum") if open_ else ("minimum", "maximum")
    drawn = [{"type": "number", ends[0]: low, ends[1]: high}, {"type": "string"}]
    return Bound(words, exact_value, {"anyOf": drawn})


def _short(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 200:
        raise refuse("text of 1 to 200 characters")
    return value


def _any_text(value: Any) -> str:
    if not isinstance(value, str):
        raise refuse("text")
    return value


_TEXT = Bound(
    "text of 1 to 200 characters",
    _short,
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"\S"},
)
_ANY_TEXT = Bound("text", _any_text, {"type": "string"})


def _of_census(value: Any) -> bool:
    """Return whether a value names a budget of the 2020 Census."""
    return isinstance(value, str) and value.split("/")[0] in ("pl94", "dhc")


def _census(value: str, total: Any) -> Fraction:
    """Return the rho of PRODUCT/REGION/UNIVERSE/LEVEL/QUERY."""
    parts = value.split("/")
    if len(parts) != 5:
        raise refuse("PRODUCT/REGION/UNIVERSE/LEVEL/QUERY", value=value)
    product, region, universe, level, query = parts
    try:
        table = census_2020_budget(product, region=region, universe=universe, total_rho=total)
    except ArgumentError as error:
        raise PydanticCustomError("said", "{words}", {"words": str(error)}) from error
    row = table[(table["level"] == level) & (table["query"] == query)]
    if row.empty:
        known = ", ".join(f"{a}/{b}" for a, b in zip(table["level"], table["query"], strict=True))
        raise refuse(f"one of LEVEL/QUERY = {known}", value=value)
    exact: Fraction = row["rho"].iloc[0]
    return exact


def _budget(value: Any, name: str = "", total: Any = None) -> Budget:
    """Return the budget that a number, a fraction or a name of the 2020 Census stands for."""
    census = _of_census(value)
    exact = _number(*_RHO, value=value).check(_census(value, total) if census else value)
    return Budget(name, float(exact), census=census)


def _nameless(value: Any) -> Budget:
    """Return the budget of an entry that is no table: nothing marks it, nor where it comes from."""
    return Budget("", _budget(value).value)


_AMOUNT = _number(*_RHO).drawn
_BUDGET = Bound(_number(*_RHO).words, _nameless, _AMOUNT)


def _as_given(drawn: dict[str, Any]) -> Bound:
    """Return the bound of what is checked with the keys beside it."""
    return Bound("", lambda value: value, drawn)


def _increasing(ends: Any, check: Callable[[Any], list[float]]) -> list[float]:
    """Return the ends of a range as doubles."""
    if isinstance(ends, list) and ends and len(ends) != 2:
        raise refuse("two numbers")
    first, last = (float(end) for end in check(ends))
    if not first < last:
        raise refuse("increasing")
    return [first, last]


_Ends = Annotated[
    list[Annotated[float, _number(*_RHO, indexed=False)]], Several(), WrapValidator(_increasing)
]
_Points = Annotated[int, whole(2, _MAX_POINTS), Field(description="How many, both ends included.")]


class LogRange(Section):
    """Values at equal ratios."""

    log: Annotated[_Ends, Field(description="First and last value.")]
    points: _Points

    @cached_property
    def budgets(self) -> list[Budget]:
        """The values."""
        return [Budget("", float(v)) for v in np.geomspace(self.log[0], self.log[1], self.points)]


class LinearRange(Section):
    """Values at equal distances."""

    linear: Annotated[_Ends, Field(description="First and last value.")]
    points: _Points

    @cached_property
    def budgets(self) -> list[Budget]:
        """The values."""
        return [
            Budget("", float(v)) for v in np.linspace(self.linear[0], self.linear[1], self.points)
        ]


class Named(Section):
    """One budget, with a name that figures and tables mark."""

    name: Annotated[str, _TEXT] = ""
    value: Annotated[Any, _as_given(_AMOUNT)] = None
    budget: Annotated[Any, _as_given(_AMOUNT)] = None
    total: Annotated[Any, _as_given({"type": ["number", "string"]})] = Field(
        None, description="Rescales the whole allocation of the 2020 Census."
    )
    _forms: ClassVar[tuple[str, ...]] = ("value", "budget")

    @_model(mode="after")
    def _is_one_budget(self) -> Self:
        given = self.model_fields_set
        if ("value" in given) == ("budget" in given):
            raise refuse(f"a table with one of {', '.join(self._forms)}")
        if self.total is not None and "budget" not in given:
            raise refuse("left out without budget", key=".total", value=self.total)
        _ = self.budgets  # looked up once, and refused here
        return self

    @cached_property
    def budgets(self) -> list[Budget]:
        """The one value."""
        value = self.value if "value" in self.model_fields_set else self.budget
        return [_budget(value, self.name, self.total)]


class NamedOrRange(Named):
    """One budget where a range may stand too."""

    _forms: ClassVar[tuple[str, ...]] = ("value", "budget", "log", "linear")

    @classmethod
    def known(cls, names: list[str]) -> list[str]:
        """Return the keys of the ranges too."""
        return [*names, "log", "linear", "points"]


def _form(entry: Any) -> str:
    """Return the tag of an entry of a list of budgets."""
    if not isinstance(entry, Mapping):
        return "<number>"
    return "<log>" if "log" in entry else "<linear>" if "linear" in entry else "<named>"


_Number = Annotated[Budget, _BUDGET, Tag("<number>")]
_Entry = Annotated[
    _Number
    | Annotated[LogRange, Tag("<log>")]
    | Annotated[LinearRange, Tag("<linear>")]
    | Annotated[NamedOrRange, Tag("<named>")],
    Discriminator(_form),
]
_Level = Annotated[
    _Number | Annotated[Named, Tag("<named>")],
    Discriminator(lambda entry: "<named>" if isinstance(entry, Mapping) else "<number>"),
]


def _flat(entries: list[Any]) -> list[Budget]:
    """Return the budgets of entries of any form."""
    return [
        budget
        for entry in entries
        for budget in ([entry] if isinstance(entry, Budget) else entry.budgets)
    ]


def _sorted(entries: list[Any]) -> tuple[Budget, ...]:
    """Return budgets in order; of equal values the named ones are kept."""
    found = _flat(entries)
    names = set[str]()
    for budget in found:
        if budget.name and budget.name in names:
            raise refuse("without repeated names", value=budget.name)
        names.add(budget.name)
    distinct = {(budget.value, budget.name): budget for budget in found}
    named = {budget.value for budget in found if budget.name}
    kept = [b for (value, name), b in distinct.items() if name or value not in named]
    return tuple(sorted(kept, key=lambda b: (b.value, b.name)))


_Budgets = Annotated[
    tuple[Budget, ...],
    Several(read=Annotated[list[_Entry], AfterValidator(_sorted)]),
    BeforeValidator(
        lambda value: value if isinstance(value, list) else [value],
        json_schema_input_type=_Entry | Annotated[list[_Entry], Several()],
    ),
]


def _prior(value: Any) -> Budget:
    """Return a prior under the text that it was written with."""
    exact = _number(0.0, 1.0, open_=True).check(value)
    if not 0.0 < float(exact) < 1.0:
        raise refuse("strictly between 0 and 1 as a double", indexed=False)
    return Budget(str(value), float(exact))


_NORM = _number(1e-3, 1e3, key=f" ({', '.join(SENSITIVITIES)})")


def _sensitivity(value: Any) -> Budget:
    """Return a sensitivity by its name or its number."""
    if isinstance(value, str) and value in SENSITIVITIES:
        return Budget(value, SENSITIVITIES[value])
    return Budget(str(value), float(_NORM.check(value)))


_PRIOR = Bound("", _prior, _number(0.0, 1.0, open_=True).drawn)
_SENSITIVITY = Bound("", _sensitivity, _NORM.drawn)


def _distinct(found: list[Budget]) -> list[Budget]:
    """Return one budget for each value."""
    return list({budget.value: budget for budget in found}.values())


class Span(Section):
    """Whole numbers from one to another, both included."""

    from_: Annotated[int, _RELEASED] = Field(alias="from")
    to: Annotated[int, whole(-(10**9), 10**9 + _MAX_POINTS)]

    @_model(mode="after")
    def _is_in_order(self) -> Self:
        bound = whole(self.from_, self.from_ + _MAX_POINTS)
        if not self.from_ <= self.to <= self.from_ + _MAX_POINTS:
            raise refuse(bound.words, key=".to", value=self.to)
        return self


_Released = Annotated[
    Annotated[Span, Tag("<span>")]
    | Annotated[list[Annotated[int, _RELEASED]], Several(), Tag("<list>")],
    Discriminator(lambda value: "<span>" if isinstance(value, Mapping) else "<list>"),
]


class Table(Section):
    """The table whose cells hold the targets."""

    path: Annotated[str, _ANY_TEXT] = Field(
        description="CSV or Parquet file, relative to the configuration, or sample:NAME."
    )
    count: Annotated[str, _ANY_TEXT] = Field(
        "count", description="Column of counts; the others name the cell."
    )
    targets: Annotated[str, choice(("unique", "all"), "unique or all")] = Field(
        "unique", description="Cells with one person, or all cells with anyone."
    )


class Grid(Section):
    """What every setting is made of."""

    rho: Annotated[_Budgets, Field(description="zCDP budgets: numbers, ranges, names.")]
    prior: Annotated[list[Annotated[Budget, _PRIOR]], Several(), AfterValidator(_distinct)] = Field(
        description="Numbers or fractions in (0, 1)."
    )
    sensitivity: Annotated[
        list[Annotated[Budget, _SENSITIVITY]], Several(), AfterValidator(_distinct)
    ] = Field(
        [Budget("add-remove", SENSITIVITIES["add-remove"])],
        description="Numbers, add-remove (1) or change-one (the square root of 2).",
    )
    noise: Annotated[list[Annotated[str, choice(NOISES)]], Several()] = Field(
        [NOISES[0]], description="Noise laws."
    )
    released: _Released | None = Field(
        None, description="Released count minus the count of the others."
    )


class Levels(Section):
    """Levels from the target's block upwards; only the proportions of rho matter."""

    names: Annotated[list[Annotated[str, _TEXT]], Several()]
    rho: Annotated[list[Budget], Several(read=Annotated[list[_Level], AfterValidator(_flat)])]

    @_model(mode="after")
    def _are_as_many(self) -> Self:
        if len(self.names) != len(self.rho):
            words = f"as many as levels.rho, {len(self.rho)}"
            raise refuse(words, key=".names", value=self.names)
        return self


class Groups(Section):
    """The adversary who also reads a group's count and those of the siblings."""

    rho_group: Annotated[_Budgets, Field(description="Budgets of the count of the group.")]
    group_count: Annotated[list[Annotated[int, _COUNT]], Several()] = Field(
        description="True counts of the group, the target included."
    )
    n_siblings: Annotated[list[Annotated[int, _COUNT]], Several()] = Field(
        description="Numbers of other blocks in the group."
    )
    conditionals: Annotated[list[Annotated[str, choice(CONDITIONALS)]], Several()] = Field(
        [CONDITIONALS[0]], description="Conditionals of the blocks given the group."
    )


class Accounting(Section):
    """What the quantity epsilon needs."""

    delta: Annotated[Fraction, _number(1e-300, 1.0, open_=True)] = Field(
        description="Probability of failure."
    )


class Simulation(Section):
    """An independent check by simulated releases."""

    releases: Annotated[int, whole(2, 10**9)] = Field(description="Releases for each setting.")


class Document(Section):
    """Configuration of a sweep of bayesrisk."""

    title: Annotated[str, _TEXT] = "Disclosure risk over rho"
    scenario: Annotated[str, choice(SCENARIOS)] = Field(
        "characteristics", description="What the adversary wants to know."
    )
    seed: Annotated[int, whole(0, 2**63 - 1)] = Field(0, description="Seed of the simulation.")
    settings_per_shard: Annotated[int, whole(1, 10**6)] = Field(
        16, description="Settings (noise, sensitivity, rho) computed and stored together."
    )
    quantities: Annotated[list[Annotated[str, choice(QUANTITIES)]], Several()] | None = Field(
        None, description="What is computed; all that the file allows where left out."
    )
    table: Table | None = None
    grid: Grid
    levels: Levels | None = None
    hierarchy: Groups | None = None
    accounting: Accounting | None = None
    simulation: Simulation | None = None


def json_schema() -> str:
    """Return the JSON Schema of the document, which an editor can use."""
    return schema_text(Document, "Sweep of bayesrisk")


# -----------------------------------------------------------------------------
# From a TOML file to a resolved configuration, checked key by key.


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

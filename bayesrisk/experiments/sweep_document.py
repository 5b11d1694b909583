"""The TOML file of a sweep: its keys with their limits, and the resulting study."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
import pandas as pd
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from bayesrisk import datasets as samples
from bayesrisk._base import validation as check
from bayesrisk._base.disk.delimited import text_frame
from bayesrisk._base.disk.limits import Section, Several, as_config_error, choice, refuse
from bayesrisk._base.disk.parquet import read_frame
from bayesrisk._base.disk.text import named, read_toml
from bayesrisk.accounting import census_2020_budget
from bayesrisk.accounting.budget import exact_number
from bayesrisk.exceptions import ArgumentError, ConfigError, DataError, quote
from bayesrisk.experiments.sweep import (
    GAUSSIAN_ONLY,
    NOISES,
    QUANTITIES,
    Budget,
    Hierarchy,
    SweepStudy,
    Target,
)
from bayesrisk.inference.two_levels.model import CONDITIONALS
from bayesrisk.risk.count.blocks import SCENARIOS

_MAX_POINTS, _MAX_ROWS, _MAX_TARGETS, _MAX_BYTES = 10**6, 2**24, 1000, 2**28
_LARGEST = 10**9  # difference of a released count

# Numbers and names that stand for budgets, priors and sensitivities.


def _number(
    low: float, high: float, *, open_: bool = False, **details: object
) -> Callable[[object], Fraction]:
    """Return a validator of numbers and fractions in an interval, read exactly."""
    brackets = "()" if open_ else "[]"

    def exact_value(value: object) -> Fraction:
        with suppress(ArgumentError):
            exact = exact_number(value)
            if low < exact < high if open_ else low <= exact <= high:
                return exact
        raise refuse(f"a number in {brackets[0]}{low:g}, {high:g}{brackets[1]}", **details)

    return exact_value


_RHO = (1e-12, 1e6)
_NORM = _number(1e-3, 1e3, key=f" ({', '.join(check.SENSITIVITIES)})")


def _census(value: str, total: object) -> Fraction:
    """Return the rho of a 2020 Census budget named PRODUCT/REGION/UNIVERSE/LEVEL/QUERY."""
    parts = value.split("/")
    if len(parts) != 5:
        rule = "PRODUCT/REGION/UNIVERSE/LEVEL/QUERY, such as pl94/US/person/Block/detailed"
        raise refuse(rule, value=value)
    product, region, universe, level, query = parts
    try:
        table = census_2020_budget(product, region=region, universe=universe, total_rho=total)
    except ArgumentError as error:
        raise PydanticCustomError("said", "{words}", {"words": str(error)}) from error
    row = table[(table["level"] == level) & (table["query"] == query)]
    if row.empty:
        queries = ", ".join(f"{a}/{b}" for a, b in zip(table["level"], table["query"], strict=True))
        raise refuse(f"one of LEVEL/QUERY = {queries}", value=value)
    exact: Fraction = row["rho"].iloc[0]
    return exact


def _budget(value: object, name: str = "", total: object = None) -> Budget:
    """Return the budget given as a number, a fraction or a 2020 Census name."""
    census = isinstance(value, str) and value.split("/")[0] in ("pl94", "dhc")
    if value == 0 and not isinstance(value, bool):
        words = "is 0, at which nothing is learned: leave it out; a decimal has a point, as in 0.1"
        raise PydanticCustomError("said", "{words}", {"words": words})
    exact = _number(*_RHO, value=value)(_census(str(value), total) if census else value)
    return Budget(name, float(exact), census=census)


def _prior(value: object) -> Budget:
    """Return a prior with the text it was written as."""
    exact = _number(0.0, 1.0, open_=True)(value)
    if not 0.0 < float(exact) < 1.0:
        raise refuse("strictly between 0 and 1 as a double", indexed=False)
    return Budget(str(value), float(exact))


def _sensitivity(value: object) -> Budget:
    if isinstance(value, str) and value in check.SENSITIVITIES:
        return Budget(value, check.SENSITIVITIES[value])
    return Budget(str(value), float(_NORM(value)))


# The keys.


class _Keys(Section):
    model_config = ConfigDict(strict=True)


_T = TypeVar("_T")
_Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"\S")]
_Count = Annotated[int, Field(ge=1, le=10**6)]
_Several = Annotated[list[_T], Field(min_length=1)]
_FORMS = ("value", "budget", "log", "linear")


class Entry(_Keys):
    """A single budget with an optional name to be marked in figures, or a range of budgets."""

    name: Annotated[str, Field(max_length=200)] = ""
    value: Any = None
    budget: Any = None
    total: Any = None  # rescales the whole allocation of the 2020 Census
    log: _Several[Any] | None = None  # ends of values at equal ratios
    linear: _Several[Any] | None = None  # ends of values at equal distances
    points: Annotated[int, Field(ge=2, le=_MAX_POINTS)] | None = None  # both ends included

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        forms = self.model_fields_set.intersection(_FORMS)
        if len(forms) != 1:
            raise refuse(f"a table with one of {', '.join(_FORMS)}")
        if self.total is not None and "budget" not in forms:
            raise refuse("left out without budget", key=".total", value=self.total)
        if (self.points is None) == bool(forms.intersection(("log", "linear"))):
            rule = "given with a range, such as points = 61, and only there"
            raise refuse(rule, key=".points", value=self.points)
        _ = self.budgets  # looked up once, and refused here
        return self

    @cached_property
    def budgets(self) -> list[Budget]:
        """The single budget, or all of the range."""
        if self.points is None:
            spelling = self.value if "value" in self.model_fields_set else self.budget
            return [_budget(spelling, self.name, self.total)]
        name, spaced = ("log", np.geomspace) if self.log else ("linear", np.linspace)
        ends = self.log or self.linear or []
        numbers = [float(_number(*_RHO, key=f".{name}", value=e)(e)) for e in ends]
        if len(numbers) != 2 or not numbers[0] < numbers[1]:
            raise refuse("two increasing numbers", key=f".{name}", value=ends)
        first, last = numbers
        return [Budget("", float(value)) for value in spaced(first, last, self.points)]


_BUDGET = PlainValidator(lambda value: [Budget("", _budget(value).value)])
_Entry = Annotated[
    Annotated[list[Budget], _BUDGET, Tag("<number>")] | Annotated[Entry, Tag("<table>")],
    Discriminator(lambda entry: "<table>" if isinstance(entry, Mapping) else "<number>"),
]


def _flat(entries: list[Any]) -> list[Budget]:
    return [b for e in entries for b in (e if isinstance(e, list) else e.budgets)]


def _sorted(entries: list[Any]) -> tuple[Budget, ...]:
    """Return budgets sorted by value; of equal values only named ones are kept."""
    budgets = _flat(entries)
    names = [budget.name for budget in budgets if budget.name]
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise refuse("without repeated names", value=repeated[0])
    marked = {budget.value for budget in budgets if budget.name}
    distinct = {b for b in budgets if b.name or b.value not in marked}
    return tuple(sorted(distinct, key=lambda b: (b.value, b.name)))


def _distinct(budgets: list[Budget]) -> tuple[Budget, ...]:
    """Return budgets without repeated values, keeping the last of each."""
    return tuple({budget.value: budget for budget in budgets}.values())


_Once = AfterValidator(lambda values: tuple(dict.fromkeys(values)))
_Ordered = AfterValidator(lambda values: tuple(sorted(set(values))))
_Budgets = Annotated[
    list[Budget],
    Several(read=Annotated[list[_Entry], AfterValidator(_sorted)]),
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
]


def _choices(options: Iterable[str]) -> Several:
    """Return a validator of lists of the given names, without repetitions."""
    return Several(read=Annotated[list[Annotated[str, choice(options)]], _Once])


_Released = Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)]
_Prior = Annotated[Budget, PlainValidator(_prior)]
_Sensitivity = Annotated[Budget, PlainValidator(_sensitivity)]


class Span(_Keys):
    """Whole numbers from one to another, both included."""

    from_: _Released = Field(alias="from")
    to: Annotated[int, Field(ge=-_LARGEST, le=_LARGEST + _MAX_POINTS)]

    def numbers(self) -> tuple[int, ...]:
        """Return all numbers of the span."""
        return tuple(range(self.from_, self.to + 1))

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        low, high = self.from_, self.from_ + _MAX_POINTS
        if not low <= self.to <= high:
            raise refuse(f"a whole number in [{low}, {high}]", key=".to", value=self.to)
        return self


class TableKeys(_Keys):
    """Keys of the table whose cells hold the targets."""

    path: str  # CSV or Parquet file, relative to the configuration, or sample:NAME
    count: str = "count"  # column of counts; the others name the cell
    targets: Literal["unique", "all"] = "unique"  # cells with one person, or with anyone


class GridKeys(_Keys):
    """Keys of the grid of settings, used in every combination."""

    rho: _Budgets
    prior: Annotated[_Several[_Prior], AfterValidator(_distinct)]
    sensitivity: Annotated[
        tuple[Budget, ...], Several(read=Annotated[list[_Sensitivity], AfterValidator(_distinct)])
    ] = (Budget("add-remove", check.SENSITIVITIES["add-remove"]),)
    noise: Annotated[tuple[str, ...], _choices(NOISES)] = NOISES[:1]
    released: (  # released count minus the count of the others
        Annotated[
            Annotated[Span, AfterValidator(Span.numbers), Tag("<span>")]
            | Annotated[_Several[_Released], _Ordered, Tag("<list>")],
            Discriminator(lambda value: "<span>" if isinstance(value, Mapping) else "<list>"),
        ]
        | None
    ) = None


class LevelKeys(_Keys):
    """Keys of the geographic levels, finest first; only the proportions of rho matter."""

    names: _Several[_Text]
    rho: Annotated[list[Budget], Several(read=Annotated[list[_Entry], AfterValidator(_flat)])]

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        if len(self.names) != len(self.rho):
            words = f"as many as the budgets of levels.rho, {len(self.rho)}"
            raise refuse(words, key=".names", value=self.names)
        return self


class GroupKeys(_Keys):
    """Keys of the adversary who also reads counts of a group and the other blocks in it."""

    rho_group: _Budgets
    group_count: Annotated[_Several[_Count], _Ordered]  # true ones, the target included
    n_siblings: Annotated[_Several[_Count], _Ordered]
    conditionals: Annotated[tuple[str, ...], _choices(CONDITIONALS)] = CONDITIONALS[:1]


class ReleaseKeys(_Keys):
    """Keys of a whole census release, whose budgets are rescaled to each rho."""

    budget: Literal["pl94", "dhc"]


class AccountingKeys(_Keys):
    """Keys of the quantity epsilon."""

    delta: Annotated[Fraction, PlainValidator(_number(1e-300, 1.0, open_=True))]


class SimulationKeys(_Keys):
    """Keys of the independent check by simulated releases."""

    releases: Annotated[int, Field(ge=2, le=10**9)]  # for each setting


class Document(_Keys):
    """The configuration document of a sweep."""

    title: _Text = "Disclosure risk over rho"
    scenario: Annotated[str, choice(SCENARIOS)] = "characteristics"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    settings_per_shard: _Count = 16  # settings (noise, sensitivity, rho) computed together
    #: All that the file allows where they are left out.
    quantities: Annotated[tuple[str, ...], _choices(QUANTITIES)] | None = None
    table: TableKeys | None = None
    grid: GridKeys
    levels: LevelKeys | None = None
    hierarchy: GroupKeys | None = None
    accounting: AccountingKeys | None = None
    simulation: SimulationKeys | None = None
    release: ReleaseKeys | None = None


# From the file to the study.


def load_config(path: str | Path, *, seed: int | None = None) -> SweepStudy:
    """Return the study described in a TOML file.

    Parameters
    ----------
    path : path-like
        TOML file; or the name of a sample, as ``sample:NAME``.
    seed : int, optional
        Seed that replaces the one in the file.

    Examples
    --------
    >>> study = load_config("sample:dare-county-sweep")
    >>> len(study.rho), len(study.prior), study.targets[0].count
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
) -> SweepStudy:
    """Return the study described by a document in memory, as parsed from TOML.

    ``source`` is its name in messages. Relative paths start at ``folder``, and ``seed`` replaces
    the one in the document.
    """
    check.text(source, "source")
    check.path(folder, "folder")
    if not isinstance(document, Mapping):
        raise ConfigError(f"{source}: must be a mapping, got {quote(document)}")
    try:
        read = Document.model_validate(document if seed is None else {**document, "seed": seed})
    except ValidationError as error:
        raise as_config_error(error, source) from error
    shares: tuple[Budget, ...] = ()
    if read.levels is not None:
        first = read.levels.rho[0].value
        pairs = zip(read.levels.names, read.levels.rho, strict=True)
        shares = tuple(Budget(name, rho.value / first) for name, rho in pairs)
    study = SweepStudy(
        **read.model_dump(include={"title", "scenario", "seed", "settings_per_shard"}),
        **{**dict(read.grid), "released": read.grid.released or ()},
        targets=_targets(read.table, source, Path(folder)),
        levels=shares,
        hierarchy=Hierarchy(**dict(read.hierarchy or {})),
        quantities=_quantities(read, source),
        delta=None if read.accounting is None else float(read.accounting.delta),
        releases=0 if read.simulation is None else read.simulation.releases,
        release="" if read.release is None else read.release.budget,
    )
    if study.rows > _MAX_ROWS:
        raise ConfigError(
            f"{source}: the sweep must have at most {_MAX_ROWS} rows, got {study.rows}"
        )
    return study


def _quantities(read: Document, source: str) -> tuple[str, ...]:
    """Return the quantities requested, or all that the document's sections allow."""
    only_gaussian = set(read.grid.noise) == {NOISES[0]}
    faults = {}
    for quantity, (_, need) in QUANTITIES.items():
        section, _, key = need.partition(".")
        part = getattr(read, section) if section else read
        if part is None or (key and getattr(part, key) is None):
            got = f"got {quote(read.quantities)}: leave it out, or add {need}"
            faults[quantity] = f"free of {quantity} without {need}, {got}"
        elif need == "release" and not {one.name for one in read.grid.sensitivity} <= {
            *check.SENSITIVITIES
        }:
            faults[quantity] = f"free of {quantity} unless sensitivities are called by name"
        elif need in GAUSSIAN_ONLY and not only_gaussian:
            faults[quantity] = (
                f"free of {quantity} unless all noise is {NOISES[0]}, got {quote(read.grid.noise)}"
            )
    if read.quantities is None:
        return tuple(quantity for quantity in QUANTITIES if quantity not in faults)
    for quantity in read.quantities:
        if quantity in faults:
            raise ConfigError(f"{source}: quantities must be {faults[quantity]}")
    return read.quantities


def _targets(section: TableKeys | None, source: str, folder: Path) -> tuple[Target, ...]:
    """Return the targets in a table, or without one a person alone in a cell."""
    if section is None:
        return (Target("target", 1),)
    name, column = section.path, section.count
    frame = _read(name, source, folder)
    if column not in frame.columns:
        columns = ", ".join(map(str, frame.columns))
        raise DataError(f"{name}: has no column {column!r}; columns: {columns}")
    counts = pd.to_numeric(frame[column], errors="coerce")
    bad = counts.isna() | (counts < 0) | (counts != counts.round()) | (counts > 2**52)
    check.refuse_row(bad, frame[column], name, column, "be a whole number in [0, 2**52]")
    chosen = counts == 1 if section.targets == "unique" else counts > 0
    rows = np.flatnonzero(chosen)
    if not 1 <= len(rows) <= _MAX_TARGETS:
        raise DataError(
            f"{name}: must have 1 to {_MAX_TARGETS} target cells ({section.targets}), "
            f"got {len(rows)}"
        )
    labels = frame.drop(columns=column).iloc[rows].astype(object)
    labels = labels.where(labels.notna(), "").astype(str)
    return tuple(
        Target(", ".join(labels.iloc[place]) or f"row {row + 1}", int(counts.iloc[row]))
        for place, row in enumerate(rows)
    )


def _read(name: str, source: str, folder: Path) -> pd.DataFrame:
    with named(f"{source}: table.path {quote(name)}", ConfigError):
        file = samples.path(name[7:]) if name.startswith("sample:") else folder / name
        size = file.stat().st_size
    if size > _MAX_BYTES:
        raise DataError(f"{name}: must have at most {_MAX_BYTES} bytes")
    if file.suffix == ".parquet":
        return read_frame(file)
    return text_frame(file, name=name)

"""Populations of an audit: files of records or simulated ones, and results by population."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk import population as simulated
from bayesrisk._files.limits import Bound, Count, Positive, Seed, refuse
from bayesrisk._files.text import shown, toml_document
from bayesrisk._show import displayed
from bayesrisk._validation import IntArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, BayesRiskError
from bayesrisk.experiments.by_place.parts import (
    check_reach,
    coarse_levels,
    level_of_parts,
    open_index,
    read_place,
)
from bayesrisk.experiments.runs.folder import RunSettings
from bayesrisk.interfaces import Mechanism
from bayesrisk.mechanisms import BaseMechanism, make_mechanism
from bayesrisk.mechanisms.registry import REGISTRY
from bayesrisk.population import PopulationSpec
from bayesrisk.release import Release
from bayesrisk.risk.audit import AuditedPopulation, AuditQuestion
from bayesrisk.risk.audit.adversaries import (
    Surroundings,
    drawn_targets,
    fit_place_concentration,
    sampled_places,
)
from bayesrisk.risk.audit.population import mean_errors
from bayesrisk.tables import Microdata, Records, Schema, Workload
from bayesrisk.tables.exchange import Partitions

# -----------------------------------------------------------------------------
# What an audit is told.


_DIGESTS = "a digest, or digests by names of populations"


def _digests(value: Any) -> Any:
    several = value if isinstance(value, dict) else {"": value}
    if not several or not all(isinstance(text, str) for text in (*several, *several.values())):
        raise refuse(_DIGESTS)
    return value


_Digests = Annotated[
    str | dict[str, str],
    Bound(
        _DIGESTS,
        _digests,
        {"type": ["string", "object"], "additionalProperties": {"type": "string"}},
    ),
]


@dataclass(frozen=True)
class AuditConfig(RunSettings):
    """What a run does, and to which population.

    Attributes
    ----------
    population : str or dict of str to str
        Digest of the file or folder of records; of several populations, by their names.
    workload : str
        Digest of the published tables' definition.
    stated : tuple of str
        Attributes that statements give.
    protections : tuple of dict
        ``name``, ``mechanism`` and ``parameters`` of each.
    adversaries : tuple of dict
        ``name``, ``known`` and ``neighbours`` of each.
    targets : int or None
        Number of targets; None for everybody.
    concentration : float or None
        Of the prior; None where it is fitted.
    methods : tuple of str
        How adversaries conclude.
    seed : int
        Of releases, targets and chains.
    targets_per_shard : int
        About so many targets are one shard.
    target_ratio, quantile : float or None
        What settings shall keep to; None where all are stated.
    against : str or None
        Adversary for whom; None for the worst.
    steps : int or None
        Bisections of every range.
    shards : int
        Number of shards.
    version : str
        Version of bayesrisk.
    """

    population: _Digests
    workload: str
    stated: tuple[str, ...]
    protections: tuple[dict[str, Any], ...]
    adversaries: tuple[dict[str, Any], ...]
    targets: Count | None
    concentration: Positive | None
    methods: tuple[str, ...]
    seed: Seed
    targets_per_shard: Count
    target_ratio: Positive | None
    quantile: Positive | None
    against: str | None
    steps: Seed | None
    shards: Count
    version: str = __version__


# -----------------------------------------------------------------------------


# -----------------------------------------------------------------------------
# Protections of an audit: a mechanism with its parameters, and what is taken where one is missing.
#
# An audit compares protections of which little is said: "swapping, 5 %".  What else a mechanism
# needs follows from the population and the published tables, by the name of the parameter.


_NEXT = re.compile(r",(?=\s*[A-Za-z_]+\s*=)")
_SHARES = ("level_shares", "table_shares")
_BUDGETS = ("budgets", "allocation", "budget")


@dataclass(frozen=True)
class Protection:
    """A protection by name.

    Attributes
    ----------
    name : str
        How it is called in results.
    mechanism : str
        Name of the mechanism.
    parameters : mapping of str to object
        Its parameters, plain values; those that are missing are the usual ones.
    """

    name: str
    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check.text(self.name, "name of the protection")
        check.text(self.mechanism, "name of the mechanism")
        given = dict(check.mapping(self.parameters, "parameters"))
        object.__setattr__(self, "parameters", given)

    def make(self, usual: Usual) -> Mechanism:
        """Return the mechanism."""
        return make_mechanism(self.mechanism, **usual.completed(self.mechanism, self.parameters))


@dataclass(frozen=True)
class Usual:
    """What parameters are where nothing is said.

    Attributes
    ----------
    workload : Workload
        Published tables.
    stated : sequence of str
        Attributes that statements are about: what is rare in them is at risk.
    households : bool
        Whether persons come in households, which then change places whole.
    """

    workload: Workload
    stated: Sequence[str]
    households: bool

    def completed(self, mechanism: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return parameters with the usual values of those that must be given and are not."""
        possible = REGISTRY.parameters(mechanism)
        usual = self._values()
        missing = [n for n, needed in possible.items() if needed and n not in given]
        found = {n: usual[n] for n in missing if n in usual} | dict(given)
        whole = "rho" in given or "epsilon" in given
        if whole and not has_budget(given):
            shares = [n for n in _SHARES if n in possible and n not in given]
            found |= {n: usual[n] for n in shares}
        return found

    def _values(self) -> dict[str, Any]:
        workload = self.workload
        levels = workload.schema.geography.levels
        finest = levels.index(workload.levels[-1])
        regions = [n for n in ("county", "tract") if n in levels[:finest]]
        coarse = regions[0] if regions else levels[0]
        fine = regions[-1] if regions else levels[max(finest - 1, 0)]
        tables = sorted({name for _, name in workload.tables})
        others = [a for a in workload.schema.names if a not in self.stated]
        return {
            "sensitivity": "add-remove",
            "level_shares": {n: str(Fraction(1, len(workload.levels))) for n in workload.levels},
            "table_shares": {n: str(Fraction(1, len(tables))) for n in tables},
            "swap_key": ["size", "adults"] if self.households else others[:1],
            "unique_by": list(self.stated),
            "within": coarse,
            "unique_within": fine,
            "unit": "household" if self.households else "person",
            "threshold": 3,
            "base": 3,
            "method": "random",
        }


def has_budget(given: Mapping[str, Any]) -> bool:
    """Return whether parameters state the budget of every table, and not only their total."""
    return any(name in given for name in _BUDGETS)


def parse_protection(text: str) -> Protection:
    """Return the protection of a text such as ``swapping:rate=0.05,neighbours=3``.

    Parameters
    ----------
    text : str
        Mechanism, and after a colon parameters ``KEY=VALUE`` with commas between them; values as
        in TOML, and text where they are none.

    Returns
    -------
    Protection
        Called by the text.

    Raises
    ------
    ArgumentError
        If a parameter has no value, or comes twice.

    Examples
    --------
    >>> parse_protection("swapping:rate=0.05,neighbours=3").parameters
    {'rate': '0.05', 'neighbours': 3}
    """
    whole = check.text(text, "protection").strip()
    mechanism, _, rest = whole.partition(":")
    parameters: dict[str, Any] = {}
    for part in _NEXT.split(rest) if rest.strip() else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise ArgumentError(
                f"protection must be MECHANISM:KEY=VALUE,KEY=VALUE..., got {shown(text)}"
            )
        if key in parameters:
            raise ArgumentError(f"protection must give each parameter once, got {shown(text)}")
        parameters[key] = _value(value)
    return Protection(whole, mechanism.strip(), parameters)


def _value(text: str) -> Any:
    """Return a TOML value, the text of a fraction as it is so that it stays exact."""
    try:
        found = toml_document(f"value = {text}")["value"]
    except ValueError:
        return text
    return text if isinstance(found, float) else found


# -----------------------------------------------------------------------------
# A population by place under audit: looked through once, then read where targets live.


_WHOLE = "audit them as one folder of microdata, not by place"


@dataclass(frozen=True, eq=False)
class Survey:
    """What a population by place comes to: small, so that it is sent to workers.

    Attributes
    ----------
    digest : str
        Of the microdata.
    level : str
        Level of the parts.
    rows, places : ndarray of int64
        Records and places before each part, and after the last.
    composition : ndarray of int64
        Records in each cell of the schema.
    largest : int
        Records of the largest place.
    concentration : float
        How alike people of one place are.
    targets, target_places : ndarray of int64
        Rows of those who are asked about, sorted, and the places they live in.
    households : bool
        Whether persons come in households.
    """

    digest: str
    level: str
    rows: IntArray
    places: IntArray
    composition: IntArray
    largest: int
    concentration: float
    targets: IntArray
    target_places: IntArray
    households: bool


def survey(folder: Path, question: AuditQuestion, *, seed: int, targets: int | None) -> Survey:
    """Look through microdata by place, a part at a time.

    Parameters
    ----------
    folder : Path
        The microdata.
    question : AuditQuestion
        What is asked.
    seed : int
        Of the choice of targets.
    targets : int or None
        Number of targets; None for everybody.

    Raises
    ------
    ArgumentError
        If there is no record, or tables are of a level coarser than the parts.
    DataError
        If the microdata are damaged.
    """
    index, schema = open_index(folder), question.workload.schema
    level = level_of_parts(index, question.workload)
    if coarse := coarse_levels(question.workload, level):
        raise ArgumentError(
            f"workload must have no level coarser than a {level}, which the parts are, "
            f"got {coarse[0]}"
        )
    rows, places = [0], [0]
    composition, largest, households = np.zeros(schema.size, np.int64), 0, False
    for number in range(len(index.codes)):
        data = read_place(folder, number, index.digest)[1]
        households |= data.persons is not None and data.households is not None
        part = _part(data, question, seed, None)
        rows.append(rows[-1] + (0 if part is None else len(part.records)))
        places.append(places[-1] + (0 if part is None else part.codes.size))
        if part is not None:
            composition += np.bincount(part.cells, minlength=schema.size)
            largest = max(largest, part.largest)
    if not rows[-1]:
        raise ArgumentError("population must hold at least one record, got none")
    chosen = drawn_targets(seed, rows[-1], targets)
    asked = sampled_places(seed, places[-1])
    if question.concentration is not None:
        concentration, asked = float(question.concentration), asked[:0]
    elif places[-1] == 1:
        concentration, asked = float(schema.size), asked[:0]
    homes, counts = np.zeros(chosen.size, np.int64), np.zeros((asked.size, 0), np.int64)
    firsts = np.array(rows), np.array(places)
    for number in range(len(index.codes)):
        who = _inside(chosen, firsts[0], number)
        where = np.flatnonzero((asked >= places[number]) & (asked < places[number + 1]))
        if who.start == who.stop and not where.size:
            continue
        part = _part(read_place(folder, number, index.digest)[1], question, seed, None)
        if part is not None:
            homes[who] = places[number] + part.places_of(chosen[who] - rows[number])
            found = part.values_at(asked[where] - places[number]) if where.size else None
            if found is not None:
                counts = counts if counts.size else np.zeros((asked.size, found.shape[1]), np.int64)
                counts[where] = found
    if asked.size:
        concentration = fit_place_concentration(counts)
    return Survey(
        index.digest,
        level,
        *firsts,
        composition,
        largest,
        concentration,
        chosen,
        homes,
        households,
    )


def _part(
    data: Microdata, question: AuditQuestion, seed: int, around: Surroundings | None
) -> AuditedPopulation | None:
    """Return a part as a population; None where nobody lives there."""
    if not len(data.for_schema(question.workload.schema)):
        return None
    return AuditedPopulation(data, question, seed=seed, around=around)


def _inside(rows: IntArray, firsts: IntArray, number: int) -> slice:
    """Return which of sorted rows are of a part."""
    start, stop = np.searchsorted(rows, firsts[number : number + 2])
    return slice(int(start), int(stop))


class PopulationByPlace:
    """A population of which one part is held at a time; used as an :class:`AuditedPopulation` is.

    Every part is protected by itself, with random numbers that its name chooses, and so is what is
    left of it without a record.

    Parameters
    ----------
    folder : Path
        The microdata.
    question : AuditQuestion
        What is asked.
    known : Survey
        What they come to.
    seed : int
        Of releases and chains.
    """

    def __init__(self, folder: Path, question: AuditQuestion, known: Survey, *, seed: int) -> None:
        self.folder, self.question, self.known, self.seed = folder, question, known, seed
        self._held = functools.lru_cache(maxsize=1)(self._read)

    def targets(self, number: int | None) -> IntArray:
        """Return the rows of targets, as they were drawn in the survey."""
        return self.known.targets

    def places_of(self, rows: IntArray) -> IntArray:
        """Return the numbers of the places of targets."""
        found: IntArray = self.known.target_places[np.searchsorted(self.known.targets, rows)]
        return found

    def check(self, mechanism: Mechanism) -> None:
        """Refuse a mechanism that needs more than a part."""
        check_reach(mechanism, self.question.workload, self.known.level, whole=_WHOLE)

    def release(self, protection: int, mechanism: Mechanism) -> ReleasedByPlace:
        """Return the release of every part, made when it is asked for."""
        return ReleasedByPlace(self, protection, mechanism)

    def errors(self, release: ReleasedByPlace) -> pd.DataFrame:
        """Return the errors of every table, in the parts where targets live."""
        sums = [part.error_sums(made) for part, made in release.parts(self.known.targets)]
        return mean_errors(pd.concat(sums, ignore_index=True))

    def statements(
        self,
        name: str,
        protection: int,
        mechanism: Mechanism,
        release: ReleasedByPlace,
        rows: IntArray,
    ) -> pd.DataFrame:
        """Return what :meth:`AuditedPopulation.statements` does, part after part."""
        frames = []
        for number in self._parts_of(rows):
            part, made = release.of(number)
            mine = np.sort(rows)[_inside(np.sort(rows), self.known.rows, number)]
            own = mine - self.known.rows[number]
            frames.append(part.statements(name, protection, mechanism, made, own))
        return pd.concat(frames, ignore_index=True)

    def part(self, number: int) -> AuditedPopulation:
        """Return a part, the last one kept."""
        return self._held(number)

    def _parts_of(self, rows: IntArray) -> list[int]:
        found = np.searchsorted(self.known.rows, np.unique(rows), side="right") - 1
        return [int(number) for number in np.unique(found)]

    def _read(self, number: int) -> AuditedPopulation:
        known = self.known
        code, data = read_place(self.folder, number, known.digest)
        around = Surroundings(
            code,
            int(known.rows[number]),
            int(known.places[number]),
            known.composition,
            known.largest,
            known.concentration,
        )
        part = _part(data, self.question, self.seed, around)
        if part is None:
            raise ArgumentError(f"part {code} must hold a target, got no record")
        return part


class ReleasedByPlace:
    """A protection of all parts, of which the release of one is held."""

    def __init__(
        self, population: PopulationByPlace, protection: int, mechanism: Mechanism
    ) -> None:
        self._population, self._protection, self._mechanism = population, protection, mechanism
        self._made: tuple[int, Release] | None = None

    def of(self, number: int) -> tuple[AuditedPopulation, Release]:
        """Return a part and its release, made once as long as it is the last one."""
        part = self._population.part(number)
        if self._made is None or self._made[0] != number:
            self._made = number, part.release(self._protection, self._mechanism)
        return part, self._made[1]

    def parts(self, rows: IntArray) -> Iterator[tuple[AuditedPopulation, Release]]:
        """Yield the parts of some rows with their releases."""
        for number in self._population._parts_of(rows):
            yield self.of(number)


def households_of(population: Any) -> bool:
    """Return whether persons of a population come in households."""
    if isinstance(population, PopulationByPlace):
        return population.known.households
    held = population.data
    return held.persons is not None and held.households is not None


# -----------------------------------------------------------------------------
# What every process of an audit keeps: the population, and what was released.


@dataclass(eq=False)
class State:
    """A population, what is asked of whom, and releases that were made."""

    name: str
    question: AuditQuestion
    population: AuditedPopulation | PopulationByPlace
    usual: Usual
    targets: IntArray

    def __post_init__(self) -> None:
        self._released: dict[str, tuple[Mechanism, Any]] = {}

    def parts(self, size: int) -> list[IntArray]:
        """Return targets in parts of about a size, those of one place together."""
        place = self.population.places_of(self.targets)
        order = np.argsort(place, kind="stable")
        rows, place = self.targets[order], place[order]
        first = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
        cuts, last = [0], 0
        for start in first.tolist():
            if start - last >= size:
                cuts.append(start)
                last = start
        return [rows[a:b] for a, b in zip(cuts, [*cuts[1:], rows.size], strict=True)]

    def released(self, number: int, protection: Protection) -> tuple[Mechanism, Any]:
        """Return a protection and its release, made once."""
        name = protection.name
        if name not in self._released:
            mechanism = protection.make(self.usual)
            if isinstance(mechanism, BaseMechanism):  # released anew without each target
                mechanism = mechanism.for_neighbours()
            self._released = {name: (mechanism, self.population.release(number, mechanism))}
        return self._released[name]


def digest_of(path: Path) -> str:
    """Return a digest of a file, or of all files of a folder."""
    return _files.digest(path) if path.is_file() else _files.digest_folder(path)


def plain(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return values as JSON keeps them."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"parameters of {name!r} must be plain values: {error}") from error
    return plain


# -----------------------------------------------------------------------------


POPULATION = "population"


@displayed
@dataclass(frozen=True)
class SimulatedPopulation:
    """A synthetic population, made anew from its seed wherever it is needed.

    Attributes
    ----------
    spec : PopulationSpec or str
        Settings, or the name of ready ones, as for :func:`~bayesrisk.simulate_population`.
    seed : int
        The same seed gives the same population; >= 0.
    """

    spec: PopulationSpec | str
    seed: int

    def __post_init__(self) -> None:
        spec = self.spec
        if isinstance(spec, str):
            object.__setattr__(self, "spec", simulated.population_spec(spec))
        else:
            check.instance(spec, PopulationSpec, "spec")
        check.integer(self.seed, "seed", lower=0)


Source = str | Path | SimulatedPopulation


def named_sources(population: Any) -> dict[str, Source]:
    """Return populations by name; a single one that has no name is called by an empty text."""
    if not isinstance(population, Mapping):
        return {"": population}
    if not population:
        raise ArgumentError("population must name at least one population, got none")
    for name in population:
        check.text(name, "name of a population")
        if not name.strip():
            raise ArgumentError(f"name of a population must not be empty, got {shown(name)}")
    return dict(population)


@contextmanager
def about_population(name: str) -> Iterator[None]:
    """Let errors say which of several populations they are about."""
    try:
        yield
    except BayesRiskError as error:
        if not name:
            raise
        raise type(error)(f"population {name!r}: {error}") from error


def digest(source: Source) -> str:
    """Return what tells a population from others: of its files, or of its settings and seed."""
    if isinstance(source, SimulatedPopulation):
        told = json.dumps(dataclasses.asdict(source), sort_keys=True, default=str)
        return hashlib.sha256(told.encode()).hexdigest()
    return digest_of(check.path(source, "population"))


def loaded(source: Source, schema: Schema) -> Microdata | Records:
    """Return the records of a population; ``schema`` is that of a file."""
    if isinstance(source, SimulatedPopulation):
        return simulated.simulate_population(source.spec, rng=source.seed)
    path = check.path(source, "population")
    return Microdata.read(path) if path.is_dir() else Records.read(path, schema=schema)


def surveyed(
    source: Source, question: AuditQuestion, *, seed: int, targets: int | None
) -> Survey | None:
    """Return what a population by place comes to; None of one that is read as a whole."""
    if isinstance(source, SimulatedPopulation):
        return None
    path = check.path(source, "population")
    return survey(path, question, seed=seed, targets=targets) if Partitions.there(path) else None


def population_names(frame: pd.DataFrame) -> list[str]:
    """Return the populations that rows are about; an empty text for the only one without name."""
    return list(dict.fromkeys(frame[POPULATION].tolist())) if POPULATION in frame else [""]


def of_population(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows about a population, without its name."""
    if POPULATION not in frame:
        return frame
    return frame[frame[POPULATION] == name].drop(columns=POPULATION)


def by_population(
    frame: pd.DataFrame, found: Callable[[pd.DataFrame, str], pd.DataFrame]
) -> pd.DataFrame:
    """Return what is found of each population: populations are never pooled.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows about all of them.
    found : callable
        Gets the rows about one, and its name.
    """
    if POPULATION not in frame:
        return found(frame, "")
    parts = []
    for name in population_names(frame):
        part = found(of_population(frame, name), name)
        part.insert(0, POPULATION, name)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)

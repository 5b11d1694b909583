"""Populations of an audit with their protected releases, and results by population."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import datasets
from bayesrisk._base import disk, validation as check
from bayesrisk._base.old_names import moved
from bayesrisk._base.plugins import Registry
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, BayesRiskError, quote
from bayesrisk.experiments import by_place
from bayesrisk.experiments.audit.words import error_text
from bayesrisk.inference.microdata.posterior import ChainNeededError
from bayesrisk.interfaces import Mechanism, PopulationSource
from bayesrisk.mechanisms import BaseMechanism
from bayesrisk.mechanisms.registry import make_mechanism, meaning, read_recipe, usual_parameters
from bayesrisk.release import Release
from bayesrisk.risk.audit import AuditedPopulation, AuditQuestion, checks, spot_comparisons
from bayesrisk.risk.audit.constructions import equal_in_law
from bayesrisk.risk.audit.place_beliefs import DrawnLaws, PilotTimeError
from bayesrisk.risk.audit.population import PublicPrior, mean_errors, randomised
from bayesrisk.risk.audit.reading import READINGS
from bayesrisk.risk.audit.release_law import DIFFERENCES, PLACES, release_differences
from bayesrisk.risk.audit.spot_checks import NO_SPOTS
from bayesrisk.risk.audit.surroundings import (
    Surroundings,
    drawn_targets,
    fit_place_concentration,
    sampled_places,
)
from bayesrisk.risk.microdata import FirstLook, first_look
from bayesrisk.risk.statements.residual import is_additive
from bayesrisk.tables import Microdata, Records, Schema, Workload
from bayesrisk.tables.exchange import Partitions
from bayesrisk.tables.microdata import as_microdata


@dataclass(frozen=True)
class Protection:
    """A mechanism with its parameters, and a name.

    Attributes
    ----------
    name : str
        Its name in results.
    mechanism : str
        Name or recipe of the mechanism, such as ``swapping:rate=0.05``; by default the name.
    parameters : mapping of str to object
        Its parameters, as plain values, which override those of a recipe. Missing ones get their
        usual values (:func:`~bayesrisk.mechanisms.registry.usual_parameters`).

    Examples
    --------
    >>> Protection("swapping:rate=0.05").parameters
    {'rate': '0.05'}
    """

    name: str
    mechanism: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        check.instance(self.mechanism, str, "mechanism")
        recipe = "mechanism" if self.mechanism else "name"
        mechanism, parameters = read_recipe(getattr(self, recipe), recipe)
        object.__setattr__(self, "mechanism", mechanism)
        parameters |= check.mapping(self.parameters, "parameters")
        object.__setattr__(self, "parameters", parameters)

    @property
    def setting(self) -> str:
        """The mechanism and its parameters as JSON text, the cache key of results."""
        return json.dumps([self.mechanism, self.parameters], sort_keys=True, default=repr)

    def to_dict(self) -> dict[str, Any]:
        """Return name, mechanism and parameters as plain values; raise if a parameter has none."""
        try:
            plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"parameters of {self.name!r} must be plain values: {error}"
            ) from error
        return plain


# Where the records of a population are, and which population a result is about.

POPULATION = "population"


Source = str | Path | Records | PopulationSource
#: Populations that are made, by the key of an audit's settings that asks for them.
REGISTRY: Registry[PopulationSource] = Registry(
    "population",
    builtin={},
    protocol=PopulationSource,
    needs="made_up, microdata() and digest()",
    results={"microdata": Microdata, "digest": str},
)

#: People of a population of whom everybody is asked about, and how many are of a larger one.
MOST_TARGETS, USUAL_TARGETS = 2000, 200
#: Where each person needs chains of its own under each release, so many are asked about, and so
#: many releases are made where there would be ``USUAL_RELEASES``.
FEW_TARGETS, FEW_RELEASES, USUAL_RELEASES = 20, 4, 20
#: Before the digest of records that are held, which is that of any file with the same records.
OF_RECORDS = "records:"
_KEPT = 24  # releases of so small a population
_TWINS = 20  # targets of one kind, of which there are many where there are so many
_PILOT = 4  # places of a pilot, or targets where each needs chains of its own
_LONG = 2.0  # seconds of a target after which exact laws of one place are looked at
_MOST_LOOKED_AT = 2**20  # records that are held against each other: some seconds


def is_made_up(source: Source) -> bool:
    """Return whether a population is synthetic or a sample shipped with the package."""
    return datasets.is_made_up(source)


def named_sources(population: Source | Mapping[str, Source], schema: Schema) -> dict[str, Source]:
    """Return populations by name with frames as records; a single one is named ``""``.

    ``schema`` gives the meaning of the columns of frames.
    """
    if not isinstance(population, Mapping):
        return {"": _as_source(population, schema)}
    if not population:
        raise ArgumentError("population must name at least one population, got none")
    for name in population:
        check.text(name, "name of a population")
        if not name.strip():
            raise ArgumentError(f"name of a population must not be empty, got {quote(name)}")
    return {name: _as_source(source, schema) for name, source in population.items()}


def _as_source(source: Any, schema: Schema) -> Source:
    """Return a data frame as records, and any other source unchanged."""
    if isinstance(source, Records) or not hasattr(source, "__arrow_c_stream__"):
        return cast("Source", source)
    return Records.from_frame(source, schema=schema)


@contextmanager
def about_population(name: str) -> Iterator[None]:
    """Prefix errors in a ``with`` block with the population's name, if it has one."""
    try:
        yield
    except BayesRiskError as error:
        if not name:
            raise
        raise type(error)(f"population {name!r}: {error}") from error


def source_digest(source: Source) -> str:
    """Return the digest of a population's files, records or generator settings."""
    if isinstance(source, PopulationSource):
        return source.digest()
    if isinstance(source, Records):
        total = hashlib.sha256(json.dumps(source.schema.to_dict()).encode())
        for name in sorted(source.columns):  # as text: the same however a column is held
            column = source.table.column(name).cast(pa.large_string()).fill_null("")
            total.update(json.dumps([name, column.to_pylist()]).encode())
        return f"{OF_RECORDS}{total.hexdigest()}"
    path = check.path(source, "population")
    return disk.digest(path) if path.is_file() else disk.digest_folder(path)


def population_names(frame: pd.DataFrame) -> list[str]:
    """Return the population names in a frame, or ``[""]`` for one without a name."""
    return list(dict.fromkeys(frame[POPULATION].tolist())) if POPULATION in frame else [""]


def population_rows(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows about a population, without its name."""
    if POPULATION not in frame:
        return frame
    return frame[frame[POPULATION] == name].drop(columns=POPULATION)


def by_population(
    frame: pd.DataFrame, function: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """Apply a function to the rows of each population separately."""
    if POPULATION not in frame:
        return function(frame)
    parts = []
    for name in population_names(frame):
        part = function(population_rows(frame, name))
        part.insert(0, POPULATION, name)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


# A population is surveyed once, and then read where targets live; held whole it is one part.


@dataclass(frozen=True, eq=False)
class Survey:
    """The targets of a population and the sizes of its parts, small enough for workers.

    ``rows`` and ``places`` are the numbers of records and places before each part, and in all.
    ``targets`` are the rows of targets, sorted, and ``target_places`` the numbers of their places.
    For microdata by place there are the ``digest`` of the index, and in ``around``, for each part,
    the whole that contains it.
    """

    digest: str
    rows: IntArray
    places: IntArray
    targets: IntArray
    target_places: IntArray
    households: bool
    around: tuple[Surroundings, ...]


def counts_of_place(workload: Workload) -> int:
    """Return the number of counts of a finest place."""
    return sum(len(table.cells) for table in workload.at(workload.levels[-1]).values())


class Pilot(NamedTuple):
    """CPU seconds that one protection takes per place, release, kind of target, check, target."""

    place: float = 0.0  # before the first release of a place: an exact law that is too large
    release: float = 0.0  # for each release of a place
    target: float = 0.0  # and for each kind of target under it
    check: float = 0.0  # for each target whose beliefs are found once more
    person: float = 0.0  # for each target under each release, of whatever kind
    proof: float = 0.0  # for each place whose counts may prove others

    def once(self, places: float, provable: float, people: float) -> float:
        """Return the seconds that all releases share."""
        return places * self.place + provable * self.proof + people * self.check

    def release_time(self, places: float, kinds: float, people: float) -> float:
        """Return the seconds of each release."""
        return places * self.release + kinds * self.target + people * self.person


class PopulationInParts:
    """A population under audit, held one part and its release at a time.

    Every part is protected alone, with random numbers selected by its name, and so is the part
    without a record. Records that are not by place form one part. ``targets`` is their number, None
    for everybody; ``survey`` is an earlier one to reuse.
    """

    def __init__(
        self,
        source: Source,
        question: AuditQuestion,
        schema: Schema,
        *,
        seed: int,
        targets: int | None,
        survey: Survey | None = None,
        prior_from: str | Path | None = None,
    ) -> None:
        self.source, self.question, self.schema, self.seed = source, question, schema, seed
        self._index, self.level = None, None
        if not isinstance(source, PopulationSource | Records):
            path = check.path(source, "population")
            self._index = by_place.open_index(path) if Partitions.there(path) else None
        if self._index is not None:
            self.level = by_place.level_of_parts(self._index, question.workload)
            if coarse := by_place.coarse_levels(question.workload, self.level):
                raise ArgumentError(
                    "workload",
                    f"must have no level coarser than a {self.level}, which the parts are",
                    shown=coarse[0],
                )
        self._digest = "" if self._index is None else self._index.digest
        if survey is not None:
            self._digest = survey.digest  # of when the study began
        self._public = None if prior_from is None else self._public_prior(prior_from)
        self._part = functools.lru_cache(maxsize=1)(self._read)
        self.survey = self._survey(targets) if survey is None else survey
        self._mechanisms: dict[str, Mechanism] = {}
        self._released: dict[tuple[str, str, int, int], Release] = {}
        self._streams: dict[tuple[str, str], str] = {}
        self._pilots: dict[tuple[str, str], Pilot | None] = {}
        #: Protections whose pilots were cut: they take longer.
        self.cut: set[str] = set()
        #: Moment of the clock after which pilots begin no law.
        self.pilots_end = float("inf")
        self._law_stores: dict[str, DrawnLaws] = {}
        #: By protection, the readings and places that its pilot found to need chains.
        self.too_large = defaultdict[str, dict[tuple[str, str], set[int]]](dict)

    def _microdata(self, number: int) -> Microdata:
        """Return the microdata of a part."""
        if isinstance(self.source, PopulationSource):
            return self.source.microdata()
        if self._index is not None:
            return by_place.read_place(cast(Path, self.source), number, self._digest)[1]
        if isinstance(self.source, Records):
            return as_microdata(self.source)
        path = check.path(self.source, "population")
        if path.is_dir():
            return Microdata.read(path)
        return as_microdata(Records.read(path, schema=self.schema))

    def _read(self, number: int, surroundings: Surroundings | None) -> AuditedPopulation | None:
        """Return the audited part, or None if nobody lives there."""
        data = self._microdata(number)
        if not len(data.for_schema(self.question.workload.schema)):
            return None
        return AuditedPopulation(
            data, self.question, seed=self.seed, around=surroundings, public=self._public
        )

    def _public_prior(self, source: str | Path) -> PublicPrior:
        """Return the prior estimated from public records."""
        path = check.path(source, "prior_from")
        data = Microdata.read(path) if path.is_dir() else Records.read(path, schema=self.schema)
        public = AuditedPopulation(data, self.question, seed=self.seed)
        return PublicPrior(public.composition, public.largest, public.concentration)

    @property
    def people(self) -> int:
        """Number of records of the population."""
        return int(self.survey.rows[-1])

    def part(self, number: int) -> AuditedPopulation:
        """Return the audited population of a part; only the last one is kept in memory."""
        around = self.survey.around[number] if self.survey.around else None
        return cast(AuditedPopulation, self._part(number, around))

    def _survey(self, targets: int | None) -> Survey:
        """Return targets, sizes and surroundings of all parts, reading them twice."""
        question, schema = self.question, self.question.workload.schema
        codes = ("",) if self._index is None else self._index.codes
        rows, places = [0], [0]
        composition, largest, households = np.zeros(schema.size, np.int64), 0, False
        for number in range(len(codes)):
            rows.append(rows[-1])
            places.append(places[-1])
            if (part := self._part(number, None)) is None:
                continue
            rows[-1] += len(part.records)
            places[-1] += part.codes.size
            composition += np.bincount(part.cells, minlength=schema.size)
            largest = max(largest, part.largest)
            households |= part.data.persons is not None and part.data.households is not None
        if not rows[-1]:
            raise ArgumentError("population must hold at least one record, got none")
        if targets is None and rows[-1] > MOST_TARGETS:
            targets = USUAL_TARGETS
        chosen = drawn_targets(self.seed, rows[-1], targets)
        sampled = sampled_places(self.seed, places[-1])
        concentration = question.concentration
        if concentration is None and places[-1] == 1:
            concentration = schema.size
        if concentration is not None or self._index is None:  # a whole population fits its own
            sampled = sampled[:0]
        # Where the targets live, and counts of the places that the concentration is fitted to.
        homes, counts = np.zeros(chosen.size, np.int64), np.zeros((0, 0), np.int64)
        for number in range(len(codes)):
            people = slice(*np.searchsorted(chosen, rows[number : number + 2]))
            positions = np.flatnonzero((sampled >= places[number]) & (sampled < places[number + 1]))
            if people.start == people.stop and not positions.size:
                continue
            part = cast(AuditedPopulation, self._part(number, None))
            homes[people] = places[number] + part.place[chosen[people] - rows[number]]
            if positions.size:
                values = part.tallies(sampled[positions] - places[number])
                if not counts.size:
                    counts = np.zeros((sampled.size, values.shape[1]), np.int64)
                counts[positions] = values
        equals = (
            fit_place_concentration(counts) if counts.size else float(concentration or schema.size)
        )
        around = tuple(
            Surroundings(code, row, place, composition, largest, equals)
            for code, row, place in zip(codes, rows, places, strict=False)
        )
        surroundings = () if self._index is None else around
        extent = np.array(rows), np.array(places)
        return Survey(self._digest, *extent, chosen, homes, households, surroundings)

    def rare_records(
        self, keys: Sequence[str], stated: Sequence[str], max_size: int
    ) -> FirstLook | None:
        """Return the rarity of records by place and keys, or None if it is not computed."""
        level, schema = self.question.workload.levels[-1], self.question.workload.schema
        keys = [*([level] if level != "all" else []), *keys]
        if self._index is not None or not keys or self.people > _MOST_LOOKED_AT:
            return None
        secret = next((name for name in stated if name in schema.names and name not in keys), None)
        records = self.part(0).records
        return first_look(records, keys=keys, sensitive=secret, max_size=max_size)

    def check(self, protection: Protection) -> None:
        """Raise if a protection cannot be applied, or needs more than one part at a time."""
        mechanism, workload = self.mechanism(protection), self.question.workload
        if self.level is not None:
            instead = "audit them as one folder of microdata, not by place"
            by_place.check_reach(mechanism, workload, self.level, whole=instead)
        published = getattr(mechanism, "published", None)
        if published is not None:
            lived, left = (w.levels[-1] for w in (workload, published(workload)))
            if lived != left:
                raise ArgumentError(
                    "protection",
                    f"{protection.name!r} must publish tables of level {lived!r}, where the "
                    "targets live",
                    shown=f"none finer than {quote(left)}: audit tables of that level",
                )

        if self._index is None and self.people <= MOST_TARGETS:  # the release is kept
            try:
                self.release(protection, 0, 0)
            except ArgumentError:
                raise
            except BayesRiskError:  # which a shard will tell
                pass

    def shards(self, size: int) -> list[IntArray]:
        """Return targets in groups of at least ``size``, each place in one group."""
        places = self.survey.target_places
        order = np.argsort(places, kind="stable")
        rows, place = self.survey.targets[order], places[order]
        first = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
        cuts = [0]
        for start in first.tolist():
            if start - cuts[-1] >= size:
                cuts.append(start)
        return [rows[a:b] for a, b in zip(cuts, [*cuts[1:], rows.size], strict=True)]

    def target_parts(self, rows: IntArray) -> list[int]:
        """Return the numbers of the parts that contain some rows."""
        numbers = np.searchsorted(self.survey.rows, np.unique(rows), side="right") - 1
        return [int(number) for number in np.unique(numbers)]

    def parameters(self, protection: Protection) -> dict[str, Any]:
        """Return all parameters of a protection, defaults for this population included."""
        workload, households = self.question.workload, self.survey.households
        settings: dict[str, Any] = dict(protection.parameters)
        return usual_parameters(protection.mechanism, workload, households=households, **settings)

    def mechanism(self, protection: Protection) -> Mechanism:
        """Return the mechanism of a protection for this population, cached."""
        if protection.setting not in self._mechanisms:
            result = make_mechanism(protection.mechanism, **self.parameters(protection))
            if isinstance(result, BaseMechanism):  # released anew without each target
                result = result.for_neighbours()
            self._mechanisms[protection.setting] = result
        return self._mechanisms[protection.setting]

    def release(self, protection: Protection, number: int, part: int) -> tuple[Mechanism, Release]:
        """Return a mechanism and its release ``number`` of a part; recent ones are cached."""
        mechanism, stream = self.mechanism(protection), self._stream(protection)
        key = protection.setting, stream, number, part
        if key not in self._released:
            while len(self._released) >= (_KEPT if self.people <= MOST_TARGETS else 1):
                self._released.pop(next(iter(self._released)))
            result = self.part(part).release(stream, number, mechanism)
            self._released[key] = result
        return mechanism, self._released[key]

    def separate(self, protections: Sequence[Protection]) -> None:
        """Give settings with the same output distribution their own random streams.

        Otherwise equal settings would seem to be the same for sure, however few releases there are.
        """
        specs = [self.mechanism(one).spec for one in protections]
        for number, (one, spec) in enumerate(zip(protections, specs, strict=True)):
            workload = self.question.workload
            if any(equal_in_law(spec, other, workload) for other in specs[:number]):
                self._streams[one.name, one.setting] = f"{one.mechanism} {number}"

    def _stream(self, protection: Protection) -> str:
        """Return the name of the random stream, shared by settings of one mechanism by default."""
        return self._streams.get((protection.name, protection.setting), protection.mechanism)

    def additive(self, protection: Protection) -> bool:
        """Return whether a release without a record is the release less the record."""
        part = self.target_parts(self.survey.targets[:1])[0]
        return is_additive(self.release(protection, 0, part)[1].spec)

    def randomised(self, protection: Protection) -> bool:
        """Return whether releases of a protection are random."""
        return randomised(self.mechanism(protection).spec, self.question.workload)

    def counts(self, protection: Protection, number: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return table errors of a release, and its differences from the truth near targets."""
        sums, differences, places = [], [], PLACES
        for number_of_part in self.target_parts(self.survey.targets):
            release = self.release(protection, number, number_of_part)[1]
            part = self.part(number_of_part)
            sums.append(part.error_sums(release))
            truth = part.true_tables(release.tables.workload)
            differences.append(release_differences(release, truth, places=places))
            places = max(places - part.codes.size, 0)
        errors = mean_errors(pd.concat(sums, ignore_index=True))
        whole = pd.concat(differences, ignore_index=True)
        whole = whole.groupby(DIFFERENCES, sort=False)["cells"].sum().reset_index()
        for frame in (errors, whole):
            frame.insert(0, "release", number)
        return errors, whole

    def proofs(
        self, protection: Protection, number: int, rows: IntArray, most: int
    ) -> pd.DataFrame:
        """Return the number of counts that a release proves in the places of given rows."""
        tables = self.question.workload.tables.values()
        columns = [n for n in self.schema.names if any(n in table.factors for table in tables)]
        frames, left = [checks.NO_PROOFS], most
        for part in self.target_parts(rows):
            start, stop = self.survey.rows[part : part + 2]
            audited, release = self.part(part), self.release(protection, number, part)[1]
            work = release.tables.workload
            size = counts_of_place(work)
            places = np.unique(audited.place[rows[(rows >= start) & (rows < stop)] - start])
            places = places[: max(left // size, left == most)]
            if not places.size:
                break
            truth, codes = audited.true_tables(work), audited.codes[places]
            proved = checks.release_proofs(release.tables, truth, codes.tolist(), whole=columns)
            proved["people"] = [audited.rows(p).size for p in places.tolist()]
            frames.append(proved.assign(release=number))
            left -= size * places.size
        return pd.concat(frames, ignore_index=True)

    def spots(
        self, protection: Protection, number: int, statements: pd.DataFrame, targets: int
    ) -> pd.DataFrame:
        """Return some statements about a release beside the same from a simpler method."""
        row = statements["target"].to_numpy(np.int64)
        mine = statements[statements["release"] == number]
        row = row[statements["release"] == number]
        frames = [NO_SPOTS]
        for part in self.target_parts(row):
            start, stop = self.survey.rows[part : part + 2]
            part_rows = mine[(row >= start) & (row < stop)]
            audited, release = self.part(part), self.release(protection, number, part)
            for method in audited.methods(self._stream(protection), number, *release):
                chosen = part_rows[part_rows["attack"] == method.reading.name]
                if len(chosen) and method.reading.name in READINGS:
                    read = method.reading, method.counterfactual
                    frames.append(spot_comparisons(audited, chosen, *read, targets=targets))
        return pd.concat(frames, ignore_index=True)

    def with_meaning(self, costs: pd.DataFrame, protections: Sequence[Protection]) -> pd.DataFrame:
        """Return costs with a column that describes each protection in words."""
        error, texts = costs.set_index("protection")["error"], {}
        for one in protections:
            spec = self.mechanism(one).spec  # a rule of an agency is one of the mechanisms
            settings = {**spec.parameters, **self.parameters(one)}
            texts[one.name] = meaning(spec.mechanism, settings, error_text(error[one.name]))
        return costs.assign(meaning=costs["protection"].map(texts).fillna(""))

    def chained(self, protection: Protection) -> bool:
        """Return whether the first target needs its own Markov chain, as all then do."""
        by_chains = False
        with suppress(BayesRiskError):  # which a shard will raise
            rows = self.shards(1)[0]
            release = self.release(protection, 0, self.target_parts(rows)[0])[1]
            if not is_additive(release.spec):
                if (protection.name, protection.setting) not in self._pilots:
                    with suppress(ChainNeededError):
                        self._try(protection, rows[:1], exact_only=True)
                by_chains = any(self.too_large[protection.name].values())
        return by_chains

    def pilot(self, protection: Protection) -> Pilot | None:
        """Return the CPU time of statements about the first targets, or None without any in time.

        What exact laws are too large for is known of the places of the pilot, and tried no more.
        """
        key = protection.name, protection.setting
        if key not in self._pilots:
            pilot: Pilot | None = Pilot()
            late = time.monotonic() > self.pilots_end
            try:
                pilot = None if late else self._measured(protection)
            except PilotTimeError:
                pilot = None
            except BayesRiskError:  # which a shard will raise
                pass
            if pilot is None:
                self.cut.add(protection.name)
                pilot = self.least(protection)
            if pilot is not None:
                places = {place for (_, place), one in self.too_large[key[0]].items() if one}
                left = 1.0 - len(places) / np.unique(self.survey.target_places).size
                pilot = pilot._replace(place=pilot.place * max(left, 0.0))
            self._pilots[key] = pilot
        return self._pilots[key]

    def least(self, protection: Protection) -> Pilot | None:
        """Return the least cost of a protection whose pilot was cut, or None if it drew nothing."""
        store = self._law_stores.get(protection.setting, DrawnLaws())
        took = {key: seconds for key, (_, seconds) in store.laws.items()} | store.least
        return self._drawn_costs(took) if took else None

    def take_pilots(self, other: PopulationInParts) -> None:
        """Copy the pilot results of another audit of the same records."""
        self.too_large, self._law_stores = other.too_large, other._law_stores
        self._pilots, self.cut = other._pilots, other.cut

    def _try(
        self, protection: Protection, rows: IntArray, *, exact_only: bool = False
    ) -> tuple[float, pd.DataFrame]:
        """Return CPU seconds of, and statements about, a few targets; sampled laws are kept."""
        too_large = self.too_large[protection.name]
        law_store = self._law_stores.setdefault(protection.setting, DrawnLaws())
        law_store.pilot_end, begin = self.pilots_end, time.process_time()
        law_store.exact_only = exact_only
        try:
            frame = self.statements(protection, range(1), rows, too_large)
        finally:
            law_store.pilot_end, law_store.exact_only = None, False
        return time.process_time() - begin, frame

    def _measured(self, protection: Protection) -> Pilot:
        first, frame = self._try(protection, self._pilot_rows(1, 1))  # compiles what is compiled
        try:
            pilot = self._costs(protection, first)
        except PilotTimeError:  # one place is known, and what has been drawn there before
            self.cut.add(protection.name)
            return self.least(protection) or Pilot(0.0, first)
        for _ in range(2):  # the first time loads or compiles kernels
            if time.monotonic() < self.pilots_end:
                begin = time.process_time()
                self.spots(protection, 0, frame, 1)
                middle = time.process_time()
                self.proofs(protection, 0, self._pilot_rows(1, 1), 1)
                pilot = pilot._replace(check=middle - begin, proof=time.process_time() - middle)
        return pilot

    def _costs(self, protection: Protection, first: float) -> Pilot:
        """Return the CPU seconds of a protection after its first target, which compiled kernels."""
        too_large, laws = self.too_large[protection.name], self._law_stores[protection.setting].laws
        random, places = self.randomised(protection), 1 if first > _LONG else _PILOT
        rows = self._pilot_rows(places, 1)
        if not any(too_large.values()):
            # Of a single release all may be for the release, and nothing for the place.
            one = self._try(protection, rows)[0] if random or rows.size > 1 else first
            more, twins, person = self._pilot_rows(places, 3), self._twins(rows[0]), 0.0
            if twins.size >= _TWINS:  # people of one kind share what is computed about it
                spent = self._try(protection, twins)[0]
                person = max(spent - one / rows.size, 0.0) / (twins.size - 1)
            rest = self._try(protection, more)[0] - one - person * (more.size - rows.size)
            target = max(rest, 0.0) / max(self.kinds(more) - self.kinds(rows), 1)
            release = max(one / rows.size - target - person, 0.0)
            return Pilot(0.0, release, target, person=person)
        if all(without is None for _, without, *_ in laws):
            begin = time.process_time()  # another release, for which nothing is kept
            self.statements(protection, [1], self._pilot_rows(1, 1), too_large)
            seconds = time.process_time() - begin
            share, rows = min(seconds / first, 1.0), self._pilot_rows(1, _PILOT)
            target = self._try(protection, rows)[0] / max(rows.size - 1, 1)
            with suppress(PilotTimeError):  # of other places, which may be smaller, laws are kept
                rows = self._pilot_rows(_PILOT, 1)
                first = (first + self._try(protection, rows)[0]) / rows.size
            return Pilot(first * (1.0 - share), first * share, target)
        self._try(protection, self._pilot_rows(_PILOT, -(-_PILOT // rows.size)))
        return self.least(protection) or Pilot(0.0, first)

    def _drawn_costs(self, laws: Mapping[tuple[Any, ...], float]) -> Pilot:
        """Return the CPU seconds of a protection, given those of the laws drawn by its pilots.

        If no law without a target's record was drawn, targets cost nothing: it is the least.
        """
        took = pd.DataFrame(
            [(*key[:2], seconds) for key, seconds in laws.items()],
            columns=["place", "without", "seconds"],
        )
        alone = took.dropna()
        place = took[took["without"].isna()].groupby("place")["seconds"]
        if alone.empty:
            return Pilot(0.0, place.sum().mean())
        release = place.size().mean() * alone["seconds"].mean()  # laws of all readings
        target = alone["seconds"].sum() / alone["without"].nunique()
        pilot = max(place.sum().mean() - release, 0.0), release, target
        return Pilot(*np.nan_to_num(pilot).tolist())  # none may be of a whole place

    def kinds(self, rows: IntArray) -> int:
        """Return the number of different records of targets; of parts, that of all targets."""
        if self._index is not None:
            return int(rows.size)
        part = self.part(0)
        return int(np.unique([part.place[rows], part.cells[rows]], axis=1).shape[1])

    def _twins(self, row: int) -> IntArray:
        """Return up to ``_TWINS`` targets of the same place and record as a target."""
        if self._index is not None:
            return self.survey.targets[:0]
        part, rows = self.part(0), self.survey.targets
        mask = (part.place[rows] == part.place[row]) & (part.cells[rows] == part.cells[row])
        twins: IntArray = rows[mask][:_TWINS]
        return twins

    def _pilot_rows(self, places: int, number: int) -> IntArray:
        """Return the first targets of some places spread evenly over all."""
        homes, rows = self.survey.target_places, self.survey.targets
        names = np.unique(homes)
        index = np.unique(np.arange(places) * names.size // places)
        return np.concatenate([rows[homes == place][:number] for place in names[index]])

    def statements(
        self,
        protection: Protection,
        numbers: Iterable[int],
        rows: IntArray,
        too_large: dict[tuple[str, str], set[int]] | None = None,
    ) -> pd.DataFrame:
        """Return statements about targets under some releases, one part at a time.

        ``too_large`` is that of :meth:`AuditedPopulation.statements`, of all parts.
        """
        frames, rows = [], np.sort(rows)
        too_large = {} if too_large is None else too_large
        for part in self.target_parts(rows):
            start, stop = np.searchsorted(rows, self.survey.rows[part : part + 2])
            inside = rows[start:stop] - self.survey.rows[part]
            for number in numbers:
                release, stream = self.release(protection, number, part), self._stream(protection)
                stores = too_large, self._law_stores.get(protection.setting)
                frame = self.part(part).statements(
                    protection.name, stream, number, *release, inside, *stores
                )
                frames.append(frame)
        return pd.concat(frames, ignore_index=True)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return moved(__name__, name)

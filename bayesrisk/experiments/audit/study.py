"""The study that runs an audit: protections and adversaries, with targets in shards by place."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk._base import validation as check
from bayesrisk._base.disk.parquet import parquet_bytes
from bayesrisk._base.display import arrow_table
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.experiments.audit import choosing, fitting
from bayesrisk.experiments.audit.populations import (
    FEW_RELEASES,
    FEW_TARGETS,
    POPULATION,
    USUAL_RELEASES,
    Pilot,
    PopulationInParts,
    Protection,
    Source,
    Survey,
    about_population,
    counts_of_place,
    is_made_up,
    named_sources,
    population_rows,
    source_digest,
)
from bayesrisk.experiments.audit.report import audit_files, check_totals
from bayesrisk.experiments.audit.results import (
    LAYOUT,
    PROTECTIONS,
    named_rows,
    needing_chains,
    protections_document,
    read_audit,
    result_frames,
    result_table,
    since,
)
from bayesrisk.experiments.audit.screen import audit_brief, first_line
from bayesrisk.experiments.by_place import open_index
from bayesrisk.experiments.runs import engine
from bayesrisk.experiments.runs.engine import Outlook, Study
from bayesrisk.experiments.runs.folder import RunFolder
from bayesrisk.mechanisms.registry import NOTHING, shown_name
from bayesrisk.risk import audit
from bayesrisk.risk.audit.checks import NO_PROOFS, proof_totals
from bayesrisk.risk.audit.constructions import can_be_made
from bayesrisk.risk.audit.measures import widest_interval
from bayesrisk.risk.audit.population import NO_ERRORS
from bayesrisk.risk.audit.release_law import NO_DIFFERENCES
from bayesrisk.risk.audit.spot_checks import NO_SPOTS
from bayesrisk.risk.microdata import FirstLook
from bayesrisk.tables import Schema, Workload

_SHARDS = 5  # of a protection with few targets, so that workers share them
_FIRST = 8  # releases, before it is asked whether they are enough
_SPOTS = 20  # targets of each protection whose beliefs are found once more
_RESULTS = 6.0  # seconds of the figures and tables of an audit
_PLANNED = 0.75  # of a time limit: pilots are few, and other programs begin
_PATIENCE = 10.0  # seconds of the clock that the pilot of a protection may take
_PROVED = 5000  # counts of each protection of which it is asked what they prove
_OF_PROCESS = ("_populations", "_shards", "_surveyed", "_news_slots", "_trials", "_widths")


@dataclass(frozen=True)
class AuditStudy(Study):
    """An audit that compares protections of populations, for :func:`~bayesrisk.run`.

    A complete run has ``statements.parquet``, with a row for each target, adversary, reading of a
    release and statement, as :class:`Statements`. It also has ``errors.parquet`` (of every
    published table), ``targets.parquet``, ``measures.csv``, ``comparisons.csv``, ``costs.csv``,
    ``calibration.csv``, ``checks.csv``, ``protections.json`` (all parameters) and ``report.html``.
    All are computed from the confidential records: only the folder's owner may read it (0700).

    Facts of a complete run are the numbers of ``statements``, ``targets`` and ``releases``,
    ``brief`` (the answer in a few lines) and ``checks`` (how many hold).

    Parameters
    ----------
    population : path-like, Records, data frame, SimulatedPopulation or mapping of str to these
        A folder of microdata, by place too; a file of records (Parquet or CSV); records in memory,
        or a frame of them (pandas, Polars, Arrow); or a synthetic population. Several are given by
        name. Each is judged alone, with the same seed; nothing is pooled, except that a goal is
        about the worst of them. All results then have a column ``population``, and ``target``
        begins with the population's name.
    workload : Workload
        Published tables.
    protections, adversaries : sequence of Protection, sequence of Adversary
        Each with a different name.
    stated : sequence of str
        Attributes in statements.
    schema : Schema, optional
        Schema of a file or a frame of records; by default the tables' own.
    targets : int, optional
        Number of targets of each population, drawn without replacement. By default it is everybody
        up to 2,000 people, else 200. It is 20, under 4 releases, if each target needs its own
        chains under each release of a random protection.
    releases : int, optional
        Largest number of releases of a randomised protection, of the same people; other protections
        have one. By default 20; 4 in the case above, unless ``targets`` are given.
    half_width : float, default 0.005
        Releases stop when the 95 % interval of every gain has this half-width; with 0 there are as
        many as allowed.
    prior_from : path-like, optional
        Public records, of the tables' schema, for the adversaries' prior, such as a sample or an
        earlier census. By default the prior is the composition of all other places of the
        population.
    concentration : float, optional
        Dirichlet concentration of the prior; fitted by default (:class:`AuditQuestion`).
    methods : sequence of str, default ("posterior",)
        How adversaries infer: ``posterior``, ``reconstruction``, ``majority`` or ``claims``
        (:class:`AuditQuestion`).
    seed : int, default 1
        Seed of releases, targets and chains.
    targets_per_shard : int, default 25
        Approximate number of targets in a shard; places stay whole.
    goal : ProtectionGoal, optional
        Bound that protections must keep. For each protection without a stated setting, bisection
        finds the weakest setting that keeps it. The range is stated (``{"rho": "0.01..10"}``) or
        that of its :class:`~bayesrisk.mechanisms.base.Dial`; all settings use the same random
        numbers. Results are about the chosen settings. ``choice.csv`` and ``settings.csv`` list
        every setting that was tried.
    keys : sequence of str, optional
        Attributes, beside the place, by which rare records are counted (:func:`first_look`). By
        default they are all that an adversary knows of the target.
    max_size : int, default 3
        For rare records: largest number of attributes in a combination.

    Notes
    -----
    Memory in every worker: the records and one release of every population, or one part of those by
    place. Each part is protected alone, as in :class:`ReleaseStudy`. So a protection must act
    within a part (``acts_within``), and no table may be of a coarser level. Targets and priors are
    of all parts; the errors of tables are those of the parts with targets.
    """

    population: Source | Mapping[str, Source]
    workload: Workload
    _: KW_ONLY
    protections: Sequence[Protection]
    adversaries: Sequence[audit.Adversary]
    stated: Sequence[str]
    schema: Schema | None = None
    targets: int | None = None
    releases: int | None = None
    half_width: float = 0.005
    prior_from: str | Path | None = None
    concentration: float | None = None
    methods: Sequence[str] = ("posterior",)
    seed: int = 1
    targets_per_shard: int = 25
    goal: choosing.ProtectionGoal | None = None
    keys: Sequence[str] = ()
    max_size: int = 3

    layout = LAYOUT
    caches: ClassVar = (open_index,)

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """Checked settings, with digests of populations and tables."""
        self.check()
        digests = {name: source_digest(source) for name, source in self._sources.items()}
        tables = json.dumps(self.workload.to_dict(), sort_keys=True)
        goal, question = self.goal, self._question
        names = (one.name for one in fields(choosing.ProtectionGoal))
        config = self.configuration(
            population=digests.get("", digests),
            workload=hashlib.sha256(tables.encode()).hexdigest(),
            stated=list(question.stated),
            protections=[one.to_dict() for one in self.protections],
            adversaries=[asdict(one) | {"known": [*one.known]} for one in question.adversaries],
            prior_from=None if self.prior_from is None else source_digest(self.prior_from),
            made_up=all(map(is_made_up, self._sources.values())),
            methods=list(question.methods),
            shards=sum(map(len, self._slots)) * len(self._shards),
            few=list(self._chained),
            **{name: getattr(goal, name, None) for name in names},
        )
        del config["goal"], config["schema"]
        return config

    def check(self) -> None:
        """Refuse wrong settings before anything is computed."""
        self._check_numbers()
        self._check_protections()

    def _check_numbers(self) -> None:
        if self.targets is not None:
            check.integer(self.targets, "targets", lower=1)
        if self.releases is not None:
            check.integer(self.releases, "releases", lower=1, upper=10_000)
        check.scalar(self.half_width, "half_width", lower=0.0, upper=1.0)
        check.integer(self.targets_per_shard, "targets_per_shard", lower=1)
        check.integer(self.seed, "seed", lower=0)
        check.integer(self.max_size, "max_size", lower=1)
        for name in check.texts(self.keys, "keys"):
            check.choice(name, "keys", self.workload.schema.names)

    def _check_protections(self) -> None:
        """Raise if names repeat, or if a setting cannot be applied to a population."""
        protections = check.instances(self.protections, Protection, "protections")
        names = [one.name for one in protections]
        check.each_once(names, "protections", filled=True)
        if self.goal is not None and self.goal.against is not None:
            adversaries = tuple(one.name for one in self._question.adversaries)
            check.choice(self.goal.against, "against", adversaries)
        for one, search in zip(protections, self._searches, strict=True):
            for setting in [one] if search is None else map(search.setting, search.first()):
                for name, population in self._surveyed.items():
                    with about_population(name):
                        population.check(setting)
        stems = [search.stem for search in self._searches if search is not None]
        if len(set(stems)) < len(stems) or any(name.startswith(tuple(stems)) for name in names):
            raise ArgumentError(
                f"protections must not be called as settings of another one are, got {quote(names)}"
            )

    def rare_records(self) -> dict[str, FirstLook]:
        """Return the rarity of records in each population that is held as a whole."""
        keys = self.keys or dict.fromkeys(n for one in self.adversaries for n in one.known)
        looks = {
            name: population.rare_records([*keys], self.stated, self.max_size)
            for name, population in self._surveyed.items()
        }
        return {name: look for name, look in looks.items() if look is not None}

    # Who is asked about what: populations, and their targets in shards.

    @functools.cached_property
    def _sources(self) -> dict[str, Source]:
        return named_sources(self.population, self.schema or self.workload.schema)

    @functools.cached_property
    def _question(self) -> audit.AuditQuestion:
        return audit.AuditQuestion(
            self.workload,
            tuple(self.stated),
            tuple(self.adversaries),
            self.concentration,
            methods=tuple(self.methods),
        )

    @functools.cached_property
    def _surveys(self) -> dict[str, Survey]:
        """Surveys by population, computed once and sent to workers."""
        return {}

    @functools.cached_property
    def _surveyed(self) -> dict[str, PopulationInParts]:
        """Populations by name; all share one seed, so each is judged as if alone."""
        populations = {}
        for name in self._sources:
            with about_population(name):
                populations[name] = self._survey(name, self.targets)
        return populations

    def _survey(self, name: str, targets: int | None) -> PopulationInParts:
        population = PopulationInParts(
            self._sources[name],
            self._question,
            self.schema or self.workload.schema,
            seed=self.seed,
            prior_from=self.prior_from,
            targets=targets,
            survey=self._surveys.get(name),
        )
        if self.goal is None:
            population.separate(self.protections)
        return population

    @functools.cached_property
    def _populations(self) -> dict[str, PopulationInParts]:
        """Every population, of which few people are asked about where each needs chains."""
        populations = {}
        for name, surveyed in self._surveyed.items():
            population, few = surveyed, self.targets is None and self.goal is None
            if few and name not in self._surveys:
                with about_population(name):
                    for one in self.protections:
                        surveyed.check(one)
                    random = filter(surveyed.randomised, self.protections)
                    if slow := next(filter(surveyed.chained, random), None):
                        self._chained[name] = slow.name
                        if surveyed.survey.targets.size > FEW_TARGETS:
                            population = self._survey(name, FEW_TARGETS)
                            population.take_pilots(surveyed)
            populations[name], self._surveys[name] = population, population.survey
        return populations

    @functools.cached_property
    def _shards(self) -> list[tuple[str, IntArray, bool]]:
        """Population and targets of each shard of a setting, and whether it is the first."""
        return [
            (name, rows, not number)
            for name, population in self._populations.items()
            for number, rows in enumerate(
                population.shards(self._shard_size(population.survey.targets.size))
            )
        ]

    @property
    def _provable(self) -> float:
        """Number of places whose proved counts are examined."""
        return max(_PROVED // counts_of_place(self.workload), 1)

    def _shard_size(self, people: int) -> int:
        """Return the number of targets of a shard; where all would be in one, fewer."""
        size = self.targets_per_shard
        return size if people > size else -(-size // _SHARDS)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: settings without the records."""
        return {k: v for k, v in self.__dict__.items() if k not in _OF_PROCESS}

    # Settings of protections: stated ones, or a search of which each step needs the one before.

    @functools.cached_property
    def _searches(self) -> list[choosing.Search | None]:
        """Search of each protection, or None where its setting is fixed."""
        if self.goal is not None:
            return [choosing.make_search(one) for one in self.protections]
        choosing.refuse_ranges(self.protections)
        return [None] * len(self.protections)

    @functools.cached_property
    def _chained(self) -> dict[str, str]:
        """Populations with few targets and releases, and for whose protection they need chains."""
        return {}

    @functools.cached_property
    def _spare(self) -> list[str]:
        """Names of protections for which a limited time is expected to be too short."""
        return []

    @functools.cached_property
    def _too_large_first(self) -> dict[tuple[str, str], dict[tuple[str, str], set[int]]]:
        """Readings and places that pilots found to need chains, by population and protection.

        Results do not depend on the pilot: without it, the exact law is tried in vain once more.
        """
        return {}

    @functools.cached_property
    def _most_releases(self) -> int:
        """Largest number of releases of a randomised protection."""
        if self.releases is not None:
            return self.releases
        return FEW_RELEASES if self._populations and self._chained else USUAL_RELEASES

    @functools.cached_property
    def _batches(self) -> list[range]:
        """Release numbers of a protection in batches, made until precision is sufficient."""
        stops = [min(_FIRST, self._most_releases)]
        while stops[-1] < self._most_releases and self.goal is None:
            stops.append(min(stops[-1] + max(4, stops[-1] // 2), self._most_releases))
        return list(itertools.starmap(range, itertools.pairwise([0, *stops])))

    @functools.cached_property
    def _slots(self) -> list[list[tuple[int, int]]]:
        """(Protection number, step) pairs of each stage, in the order of shards.

        A step is a batch of releases, or with a goal what :class:`Trials` say.
        """
        if self._trials is not None:
            return self._trials.stages
        everyone = range(len(self.protections))
        return [[(number, step) for number in everyone] for step in range(len(self._batches))]

    @functools.cached_property
    def _trials(self) -> choosing.Trials | None:
        """Settings tried to meet a goal, or None without one."""
        if self.goal is None:
            return None
        populations = self._populations.values()
        return choosing.Trials(
            self.goal,
            self.protections,
            releases=self._batches[0].stop,
            randomised=self._randomised,
            share=sum(p.survey.targets.size for p in populations)
            / sum(p.people for p in populations),
        )

    @functools.cached_property
    def _order(self) -> list[tuple[int, int]]:
        return list(itertools.chain(*self._slots))

    @property
    def stages(self) -> Sequence[range]:
        """Shards in stages; later ones depend on the statements of earlier ones."""
        stops = np.cumsum([0, *map(len, self._slots)]) * len(self._shards)
        return [range(a, b) for a, b in itertools.pairwise(stops.tolist())]

    def _trial(self, number: int, step: int, folder: RunFolder | None) -> choosing.Trial | None:
        """Return setting and releases of a step, or None if nothing is left to do."""
        if folder is None and self._order.index((number, step)) >= len(self._slots[0]):
            raise ArgumentError("shard", "must be of the first stage", shown=f"step {step}")
        if self._trials is not None:
            return self._trials.trial(number, step, self._reader(folder))
        protection = self.protections[number]
        if self._randomised(protection):
            return choosing.Trial(protection, None, self._batches[step])
        return None if step else choosing.Trial(protection, None, range(1))

    def _reader(self, folder: RunFolder | None) -> choosing.Reader:
        """Return a function that reads the statements of a protection and step."""

        def read(number: int, step: int) -> pd.DataFrame:
            if folder is None:
                raise ArgumentError("shard", "must be of the first stage", shown=f"step {step}")
            slot, size = self._order.index((number, step)), len(self._shards)
            return folder.frame("statements", range(slot * size, (slot + 1) * size))

        return read

    def _randomised(self, protection: Protection) -> bool:
        return any(one.randomised(protection) for one in self._populations.values())

    def _enough(self, step: int, name: str, folder: RunFolder) -> bool:
        """Return whether batches before a step estimate all gains precisely enough.

        Each population has as many releases as it would have alone.
        """
        if not step or not self.half_width or self.goal is not None:
            return False
        if self._enough(step - 1, name, folder):
            return True
        if (step, name) not in self._widths:
            size, before = len(self._shards), sum(map(len, self._slots[:step]))
            mine = [i for i, (one, *_) in enumerate(self._shards) if one == name]
            shards = [slot * size + i for slot in range(before) for i in mine]
            targets = audit.audit_targets(folder.frame("statements", shards))
            share = targets["target"].nunique() / self._populations[name].people
            self._widths[step, name] = widest_interval(targets, share=share)
        return self._widths[step, name] <= self.half_width

    @functools.cached_property
    def _widths(self) -> dict[tuple[int, str], float]:
        """Largest half-width of a gain before each step, by population, cached."""
        return {}

    def outlook(self, todo: Sequence[int]) -> Outlook:
        """Return notes on targets left out, and expected seconds of the shards ``todo``."""
        causes = {
            n: f": under {slow} each takes chains of its own" for n, slow in self._chained.items()
        }
        lines = [
            f"{population.survey.targets.size} of {population.people} people, drawn at random, "
            f"speak for all{f' of {name!r}' if name else ''}{causes.get(name, '')} (--targets "
            "asks about more, if time allows)"
            for name, population in self._populations.items()
            if population.survey.targets.size < population.people
        ]
        if any(map(self._randomised, self.protections)):
            number, more = self._most_releases, ""
            if self._chained and self.releases is None:
                more = ": each person needs chains (--releases asks for more)"
            lines.append(f"at most {number} releases of a protection with chance are made{more}")
        size, first = len(self._shards), len(self._slots[0])
        seconds, unknown = dict[int, float](), dict[str, None]()
        names = [
            "the release without protection" if shown_name(one.name) == NOTHING else one.name
            for one in self.protections
        ]
        parts = dict.fromkeys(names, 0.0)
        if self.goal is None:
            self._tried(self._populations.values())
        for shard in todo:
            slot, (name, rows, _) = shard // size, self._shards[shard % size]
            number, step = self._order[slot]
            trial = cast(choosing.Trial, self._trial(number, step if slot < first else 0, None))
            releases, repeated = len(trial.releases), slot >= first and self._trials is None
            if repeated:
                releases = len(self._batches[step]) * self._randomised(trial.protection)
            population = self._populations[name]
            survey = population.survey
            places = np.unique(survey.target_places[np.searchsorted(survey.targets, rows)]).size
            pilot = population.pilot(trial.protection)
            spare = trial.protection.name in self._spare
            if trial.protection.name in population.cut and not spare:
                unknown[names[number]] = None
            if pilot is not None and not spare:
                release_time = pilot.release_time(places, population.kinds(rows), rows.size)
                people = min(-(-_SPOTS // size), rows.size)
                once = pilot.once(places, min(places, self._provable / size), people)
                seconds[shard] = (0.0 if repeated else once) + releases * release_time
                parts[names[number]] += seconds[shard]
            too_large = population.too_large[trial.protection.name]
            self._too_large_first[name, trial.protection.name] = {
                key: {0} for key, numbers in too_large.items() if 0 in numbers
            }
        lines += [f"then, if time is left: {', '.join(self._spare)}"] * bool(self._spare)
        lines += ["fewer columns, or --time-limit, make it shorter"] * bool(unknown)
        later = sum(value for shard, value in seconds.items() if shard >= first * size)
        return Outlook(lines, seconds, parts, later, [*unknown])

    def _tried(
        self, populations: Iterable[PopulationInParts], end: float | None = None
    ) -> list[Protection]:
        """Return protections, those without chance first, of which pilots have measured something.

        Each has ``_PATIENCE``.  Or the first, which loads what all need, has the time to the end,
        and the others equal shares of what is left.
        """
        populations, tried = [*populations], []
        ordered = sorted(self.protections, key=populations[0].randomised)
        for begun, one in enumerate(ordered):
            now, pilots = time.monotonic(), list[object]()
            for population in populations:
                share = (end - now) / (len(ordered) - begun if begun else 1) if end else _PATIENCE
                population.pilots_end = now + share
                pilots.append(population.pilot(one))
            tried += [one] * (None not in pilots)
        return tried

    def fit_time(
        self, seconds: float, *, workers: int = 1, begun: float | None = None
    ) -> AuditStudy:
        """Return this audit of as many people and releases as take about so long, by pilots.

        The seconds are clock time since ``begun``, pilots and results included. The slowest
        protections come last, and are not counted, if else fewer than 10 people would be asked, or
        if their pilots measured nothing in their shares of a third of the time.
        """
        seconds = check.scalar(seconds, "seconds", lower=0.0, bounds="()")
        if self.goal is not None:
            raise ArgumentError("seconds", "cannot be limited where a setting is searched for")
        begin = engine.clocks()
        begun = begin[1] if begun is None else begun
        end = max(begun, begin[1] - seconds / 6.0) + seconds / 3.0
        if not (tried := self._tried(self._surveyed.values(), end)):
            rule = "must be enough for a pilot of one protection"
            raise ArgumentError("seconds", rule, shown=f"{seconds:g}: more, or fewer columns")
        populations = [*self._populations.values()]
        costs = {one.name: [self._cost(p, one) for p in populations] for one in tried}
        pace = engine.pace_since(begin)
        overhead = time.monotonic() - begun + engine.ends_of_shards([_RESULTS], 1, *pace)[-1]
        left = max(_PLANNED * seconds - overhead, seconds / 4.0)

        def ends(costs: Sequence[float], people: int) -> float:
            size = -(-people // self._shard_size(people))  # shards of a protection
            shards = [cost / size for cost in costs for _ in range(size)]
            return engine.ends_of_shards(shards, *engine.fastest(shards, workers, pace))[-1]

        most = max(one.survey.targets.size for one in populations)
        limits = {"people": most, "releases": self._most_releases}
        names, counted, people, releases = fitting.fit(costs, ends, left, **limits)
        if not people:
            least = (overhead + ends([cost(1, 1) for cost in costs[names[0]]], 1)) / _PLANNED
            raise ArgumentError(
                "seconds",
                "must be enough for one person",
                shown=f"{seconds:g}: about {math.ceil(least)} are needed, under the fastest "
                f"protection, {shown_name(names[0])}",
            )
        last = [one for one in self.protections if one not in tried]
        order = sorted(tried, key=lambda one: names.index(one.name)) + last
        study = replace(self, protections=order, targets=people, releases=releases)
        study._spare.extend(one.name for one in order[counted:])
        for name, population in study._surveyed.items():
            population.take_pilots(self._surveyed[name])
        return study

    def _cost(self, population: PopulationInParts, protection: Protection) -> fitting.Cost:
        """Return the function of people and releases that says how long a protection takes."""
        pilot = population.pilot(protection) or Pilot()
        random = population.randomised(protection)
        if protection.name in population.cut and not (random and population.additive(protection)):
            # each kind may take what the first person took
            pilot = pilot._replace(target=pilot.target or pilot.release)
        every = np.unique(population.survey.target_places).size
        kinds = population.kinds(population.survey.targets)

        def cost(people: int, releases: int) -> float:
            places = min(every, people)
            release_time = pilot.release_time(places, min(kinds, people), people)
            once = pilot.once(places, min(places, self._provable), min(people, _SPOTS))
            return once + (releases if random else 1) * release_time

        return cost

    def news(self, folder: RunFolder) -> list[str]:
        """Return a line about each protection whose first releases ended since the last call."""
        lines, size = [], len(self._shards)
        linkers = [one.name for one in self.adversaries if one.known and not one.neighbours]
        adversary = [*linkers, self.adversaries[0].name][0]
        for slot, (number, _) in enumerate(self._order[: len(self._slots[0])]):
            protection, shards = self.protections[number], range(slot * size, (slot + 1) * size)
            silent = self.goal is not None or slot in self._news_slots
            if silent or not all(map(folder.has, shards)):
                continue
            self._news_slots.add(slot)
            statements = folder.frame("statements", shards)
            for name, population in self._populations.items():
                targets = audit.audit_targets(population_rows(statements, name))
                measures = audit.audit_measures(targets, people=population.people)
                text = first_line(measures, protection.name, adversary)
                lines.append(f"{name + ': ' if name else ''}{text}")
        return lines

    @functools.cached_property
    def _news_slots(self) -> set[int]:
        """Slots of which something was said."""
        return set()

    # Statements of a shard, and what all of them come to.

    def statements(self) -> pd.DataFrame:
        """Return the statements of all releases, without the checks and results of a run.

        A random protection has its largest number of releases. Columns are those of
        ``statements.parquet``.
        """
        if self.goal is not None:
            raise ArgumentError("goal", "must be None for statements alone: run the study")
        self.check()
        frames = []
        for one in self.protections:
            numbers = range(self._most_releases if self._randomised(one) else 1)
            for name, rows, _ in self._shards:
                frame = self._populations[name].statements(one, numbers, rows)
                frames.append(named_rows(frame, name))
        return pd.concat(frames, ignore_index=True)

    def compute(self, shard: int) -> Mapping[str, pa.Table]:
        """Return the statements of a shard of the first stage."""
        return self._statements(shard, None)

    def compute_after(self, shard: int, folder: RunFolder) -> Mapping[str, pa.Table]:
        """Return the statements of a shard of a later stage."""
        return self._statements(shard, folder)

    def _statements(self, shard: int, folder: RunFolder | None) -> Mapping[str, pa.Table]:
        """Return statements of a shard and, with the first targets, errors of the tables."""
        number, step = self._order[shard // len(self._shards)]
        trial = self._trial(number, step, folder)
        name, rows, first = self._shards[shard % len(self._shards)]
        if folder is not None and (
            trial is None or not len(trial.releases) or self._enough(step, name, folder)
        ):  # nothing is left to do
            return {k: folder.read_part(0, k).schema.empty_table() for k in self.layout.kinds}
        trial = cast(choosing.Trial, trial)  # each step of the first stage has one
        population, too_large = self._populations[name], None
        if self.goal is None and not step:  # a law that the pilot could not find is not tried again
            first_laws = self._too_large_first.get((name, trial.protection.name), {})
            too_large = {key: set(numbers) for key, numbers in first_laws.items()}
        if folder is not None and step and self.goal is None:
            before = self._order.index((number, 0)) * len(self._shards)
            before += shard % len(self._shards)
            strangers = {one.name for one in self.adversaries if not one.neighbours}
            too_large = needing_chains(folder.frame("statements", [before]), strangers)
        frame = population.statements(trial.protection, trial.releases, rows, too_large)
        counts = [(NO_ERRORS, NO_DIFFERENCES)]
        if first:
            counts = [population.counts(trial.protection, one) for one in trial.releases]
        errors, differences = (
            pd.concat(part, ignore_index=True) for part in zip(*counts, strict=True)
        )
        for one in (errors, differences):
            one.insert(0, "protection", trial.protection.name)
        # Some statements once more by a plain way: under the first release that results are about.
        spots, proofs = NO_SPOTS.copy(), NO_PROOFS.copy()
        if (not step and self.goal is None) or step >= choosing.PROOF:
            number_of_shards = sum(one == name for one, *_ in self._shards)
            limit = -(-_SPOTS // number_of_shards)
            spots = population.spots(trial.protection, trial.releases[0], frame, limit)
            limit = -(-_PROVED // number_of_shards)
            proofs = population.proofs(trial.protection, trial.releases[0], rows, limit)
        proofs.insert(0, "protection", trial.protection.name)
        frames = {"differences": differences, "errors": errors, "proofs": proofs}
        frames |= {"spots": spots, "statements": frame}
        frames = {kind: named_rows(one, name) for kind, one in frames.items()}
        return {kind: arrow_table(one) for kind, one in frames.items()}

    def so_far(self, folder: RunFolder) -> tuple[list[Protection], list[str]]:
        """Write the results of the protections that are done, and return these and the answer.

        A protection is done with its first releases; of later ones there are those that all have.
        Without any, or where a setting is searched for, nothing is written.
        """
        whole, size = {*folder.finished()}, len(self._shards)
        slots = [range(slot * size, (slot + 1) * size) for slot in range(len(self._order))]
        number = 0 if self.goal is not None else len(self._slots[0])
        numbers = [n for n, slot in enumerate(slots[:number]) if whole.issuperset(slot)]
        if not numbers:
            return [], []
        shards = list[int]()
        for begin in range(0, len(slots), number):
            step = [shard for n in numbers for shard in slots[begin + n]]
            if not whole.issuperset(step):
                break
            shards += step
        ready = [self.protections[n] for n in numbers]
        statements = pa.Table.from_pandas(folder.frame("statements", shards), preserve_index=False)
        stated = {"statements.parquet": parquet_bytes(statements)}
        folder.write_so_far({**self.results(folder, ready, shards), **stated})
        audited = read_audit(folder.path)
        frames = audited.measures, audited.comparisons, audited.costs
        return ready, audit_brief(*frames, missing=audited.missing)

    def _missing(self, ready: Sequence[Protection]) -> list[str]:
        """Return the names of all other protections."""
        return [shown_name(one.name) for one in self.protections if one not in ready]

    def results(
        self,
        folder: RunFolder,
        protections: Sequence[Protection] | None = None,
        shards: Sequence[int] | None = None,
    ) -> Mapping[str, bytes]:
        """Return measures, comparisons and report by file name, of a complete run or of a part."""
        protections = self.protections if protections is None else protections
        statements, errors, differences, spots, proofs = (
            folder.frame(kind, shards)
            for kind in ("statements", "errors", "differences", "spots", "proofs")
        )
        more: dict[str, pd.DataFrame] = {}
        missing = self._missing(protections)
        if self._trials is not None:
            choice, settings, trials = self._trials.results(
                self._reader(folder), errors, self._follows
            )
            more = {"choice": choice, "settings": settings}
            first = {one.protection.name: one.releases.start for one in trials}
            protections = [one.protection for one in trials]
            statements, errors, differences, spots, proofs = (
                since(frame, first) for frame in (statements, errors, differences, spots, proofs)
            )
        parts: dict[str, list[pd.DataFrame]] = {}
        for name, population in self._populations.items():
            frames = result_frames(
                population_rows(statements, name),
                population_rows(differences, name),
                population_rows(spots, name),
                {one.name: population.mechanism(one).spec for one in protections},
                self._question,
                people=population.people,
            )
            costs = audit.costs(population_rows(errors, name))
            frames["costs"] = population.with_meaning(costs, protections)
            frames["proofs"] = proof_totals(population_rows(proofs, name))
            for kind, frame in frames.items():
                if name:
                    frame.insert(0, POPULATION, name)
                parts.setdefault(kind, []).append(frame)
        frames = {kind: pd.concat(pieces, ignore_index=True) for kind, pieces in parts.items()}
        rare = self.rare_records()
        config = {**self.config, "missing": missing} if missing else self.config
        files = audit_files(statements, errors, config, rare=rare, **frames, **more)
        by_name = {
            name: [replace(one, parameters=part.parameters(one)) for one in protections]
            for name, part in self._populations.items()
        }
        document = protections_document(by_name, self.workload, self.schema or self.workload.schema)
        return files | {PROTECTIONS: document}

    def _follows(self, clear: Protection, faint: Protection) -> bool:
        """Return whether ``faint`` can be computed from ``clear`` in every population."""
        populations = self._populations.values()
        specs = [(one.mechanism(clear).spec, one.mechanism(faint).spec) for one in populations]
        return all(can_be_made(one, other, self.workload) for one, other in specs)

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return totals, answers and checks of a complete run."""
        if not complete:
            return {"statements": 0, "targets": 0, "releases": 0, "brief": (), "checks": ""}
        statements, measures = read_audit(folder.path)
        names = ("comparisons", "costs") + (("choice",) if self.goal is not None else ())
        frames: dict[str, Any] = {n: result_table(folder.result(f"{n}.csv")) for n in names}
        return {
            "statements": len(statements),
            "targets": int(statements["target"].nunique()),
            "releases": int(measures["releases"].max()),
            "brief": tuple(audit_brief(measures, **frames)),
            "checks": check_totals(result_table(folder.result("checks.csv"))),
        }

    def close(self) -> None:
        """Drop the records from memory."""
        for name in _OF_PROCESS:
            self.__dict__.pop(name, None)
        super().close()

"""An audit as a study: every protection, every adversary, targets in shards of whole places."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk import _validation as check
from bayesrisk._files.delimited import own_text
from bayesrisk._files.text import shown
from bayesrisk._validation import IntArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.audit.choosing import (
    ProtectionGoal,
    Search,
    chosen_settings,
    is_range,
    search_of,
    tried_settings,
    worst_quantile,
)
from bayesrisk.experiments.audit.populations import (
    POPULATION,
    PopulationInParts,
    Protection,
    Source,
    Survey,
    about_population,
    by_population,
    named_sources,
    of_population,
    source_digest,
)
from bayesrisk.experiments.audit.report import audit_files, check_totals
from bayesrisk.experiments.by_place import forget_index
from bayesrisk.experiments.runs.engine import Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder, arrow_table
from bayesrisk.risk.audit import (
    Adversary,
    AuditQuestion,
    audit_checks,
    audit_summary,
    audit_targets,
)
from bayesrisk.risk.audit.population import NO_ERRORS
from bayesrisk.tables import Schema, Workload

LAYOUT = Layout(
    "run of an audit",
    kinds=("errors", "statements"),
    merged=("errors", "statements"),
    confidential=True,  # all of it is computed from confidential records
)
_BRIEF = 5  # lines
_OF_PROCESS = ("_populations", "_shards", "_tried")  # made anew in every process


def read_audit(folder: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the statements of a complete audit in a folder, and their summary.

    Returns
    -------
    (statements, summary) : (pandas.DataFrame, pandas.DataFrame)
        Rows as in :class:`Statements`, which takes them as they are, of all settings that were
        tried, with ``without_error`` and ``posterior_error`` (Monte Carlo standard errors, 0 where
        calculated), ``engine``, ``place``, ``place_size``, ``alike`` (people of the place with what
        is known of the target) and ``nonmodal``; and rows as in ``summary.csv``.  Where
        populations have names, both have them in a column ``population``.
    """
    store = RunFolder.existing(check.path(folder, "folder"), LAYOUT)
    statements = pq.read_table(store.result("statements.parquet")).to_pandas()
    shown_ = statements
    if store.config.get("target_ratio") is not None:
        chosen = _csv(store.result("choice.csv"))["setting"]
        shown_ = statements[statements["protection"].isin(chosen)]
    return statements, by_population(shown_, lambda rows: audit_summary(audit_targets(rows)))


def _csv(file: Path) -> pd.DataFrame:
    """Return a table in which a protection may be called "None" or "1"."""
    return pd.read_csv(file, keep_default_na=False, dtype={"setting": str}).map(own_text)


def _brief(chosen: list[str], answers: list[str], everybody: pd.DataFrame) -> list[str]:
    """Return the answers where they are few; else those of the adversaries that learn most."""
    lines = chosen or answers
    if not chosen and len(answers) > _BRIEF:
        # Answers are in the order of the rows, of which populations and protections are one each.
        rows = everybody.reset_index(drop=True)
        keys = [name for name in (POPULATION, "protection") if name in rows]
        most = rows["own"].groupby([rows[name] for name in keys], sort=False).idxmax()
        first = f"Who learns most from people's own records ({len(answers)} answers in the report):"
        lines = [first, *(answers[number] for number in most)]
    if len(lines) > _BRIEF:
        lines = [*lines[: _BRIEF - 1], f"and {len(lines) - _BRIEF + 1} more in the report"]
    return lines


def _answer(row: Mapping[Any, Any]) -> str:
    population = f"{row[POPULATION]}, " if POPULATION in row else ""
    return (
        f"{population}{row['protection']}, {row['attack']}, {row['adversary']}: right about "
        f"{row['right_posterior']:.1%}; {row['right_without']:.1%} without their own records; "
        f"{row['right_prior']:.1%} before; own records {100.0 * row['own']:+.1f} points "
        f"({100.0 * row['own_lower']:+.1f} to {100.0 * row['own_upper']:+.1f})"
    )


@dataclass(frozen=True)
class AuditStudy(Study):
    """Protections of a population judged on one scale, for :func:`~bayesrisk.run`.

    A complete run has ``statements.parquet`` (a row for each target, adversary, reading of a
    release and statement, as :class:`Statements`), ``errors.parquet`` (of every published table),
    ``targets.csv``, ``summary.csv``, ``calibration.csv``, ``certain.csv``, ``checks.csv`` and
    ``report.html``.  All of it is computed from the confidential records, so that only its owner
    may read the folder (0700).

    Facts of a complete run are the numbers of ``statements`` and ``targets``, ``answers`` (a
    sentence for each protection that was to be chosen, and of everybody one for each population,
    protection, reading and adversary), ``brief`` (five lines of them) and ``checks`` (how many
    hold).

    Parameters
    ----------
    population : path-like, SimulatedPopulation or mapping of str to either
        Folder of microdata, by place too, or file of records (Parquet or CSV), or a synthetic one;
        several by their names.  Each of several is judged by itself, with the same seed, as it
        would be alone: nothing is pooled, but that a goal is about the worst of them.  Then all
        results have a column ``population``, and ``target`` begins with the population's name.
    workload : Workload
        Published tables.
    protections, adversaries : sequence of Protection, sequence of Adversary
        Each of another name.
    stated : sequence of str
        Attributes that statements give.
    schema : Schema, optional
        Of a file of records; by default the tables' own.
    targets : int, optional
        Number of people of each population who are asked about, drawn without replacement;
        everybody by default.
    concentration : float, optional
        Dirichlet concentration of the prior; fitted by default (:class:`AuditQuestion`).
    methods : sequence of str, default ("posterior",)
        How adversaries conclude: ``posterior``, ``reconstruction``, ``majority`` or ``claims``
        (:class:`AuditQuestion`).
    seed : int, default 1
        Of releases, targets and chains.
    targets_per_shard : int, default 25
        About so many targets are one shard; places stay whole.
    goal : ProtectionGoal, optional
        Bound that protections shall keep.  Then the weakest setting that does is found for each one
        of which no setting is stated, by bisection of a stated range (``{"rho": "0.01..10"}``) or
        of that of its :class:`~bayesrisk.mechanisms.base.Dial`; all settings use the same random
        numbers.  Results are about the chosen settings, and there are ``choice.csv`` and
        ``settings.csv``, with every setting that was tried.

    Notes
    -----
    Memory: the records and one release of every population in every worker, or one part of those by
    place.  Each part is protected by itself, as :class:`ReleaseStudy` does, so that a protection
    must act within a part (``acts_within``) and no table be of a coarser level.  Targets and priors
    are of all parts; the errors of tables are those of the parts where targets live.
    """

    population: Source | Mapping[str, Source]
    workload: Workload
    _: KW_ONLY
    protections: Sequence[Protection]
    adversaries: Sequence[Adversary]
    stated: Sequence[str]
    schema: Schema | None = None
    targets: int | None = None
    concentration: float | None = None
    methods: Sequence[str] = ("posterior",)
    seed: int = 1
    targets_per_shard: int = 25
    goal: ProtectionGoal | None = None

    layout = LAYOUT

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """The checked fields, with digests of populations and tables."""
        self._check_numbers()
        self._check_protections()
        digests = {name: source_digest(source) for name, source in self._sources.items()}
        tables = json.dumps(self.workload.to_dict(), sort_keys=True)
        goal, question = self.goal, self._question
        return {
            "population": digests.get("", digests),
            "workload": hashlib.sha256(tables.encode()).hexdigest(),
            "stated": list(question.stated),
            "protections": [_plain(one) for one in self.protections],
            "adversaries": [asdict(one) | {"known": [*one.known]} for one in question.adversaries],
            "targets": self.targets,
            "concentration": self.concentration,
            "methods": list(question.methods),
            "seed": self.seed,
            "targets_per_shard": self.targets_per_shard,
            "target_ratio": None if goal is None else goal.target_ratio,
            "quantile": None if goal is None else goal.quantile,
            "against": None if goal is None else goal.against,
            "steps": None if goal is None else goal.steps,
            "shards": sum(map(len, self._slots)) * len(self._shards),
            "version": __version__,
        }

    def _check_numbers(self) -> None:
        if self.targets is not None:
            check.integer(self.targets, "targets", lower=1)
        check.integer(self.targets_per_shard, "targets_per_shard", lower=1)
        check.integer(self.seed, "seed", lower=0)

    def _check_protections(self) -> None:
        """Refuse names that come twice, and settings that cannot be made of a population."""
        protections = check.instances(self.protections, Protection, "protections")
        names = [one.name for one in protections]
        if not names or len(set(names)) < len(names):
            raise ArgumentError(
                f"protections must be at least one, each of another name, got {shown(names)}"
            )
        if self.goal is not None and self.goal.against is not None:
            known = tuple(one.name for one in self._question.adversaries)
            check.choice(self.goal.against, "against", known)
        for one, search in zip(protections, self._searches, strict=True):
            for setting in [one] if search is None else map(search.setting, search.first()):
                for name, population in self._populations.items():
                    with about_population(name):
                        population.check(setting)
        stems = [search.stem for search in self._searches if search is not None]
        if len(set(stems)) < len(stems) or any(name.startswith(tuple(stems)) for name in names):
            raise ArgumentError(
                f"protections must not be called as settings of another one are, got {shown(names)}"
            )

    # Who is asked about what: populations, and their targets in shards.

    @functools.cached_property
    def _sources(self) -> dict[str, Source]:
        return named_sources(self.population)

    @functools.cached_property
    def _question(self) -> AuditQuestion:
        return AuditQuestion(
            self.workload,
            tuple(self.stated),
            tuple(self.adversaries),
            self.concentration,
            methods=tuple(self.methods),
        )

    @functools.cached_property
    def _surveys(self) -> dict[str, Survey]:
        """Surveys of populations by name: made once, and sent to workers."""
        return {}

    @functools.cached_property
    def _populations(self) -> dict[str, PopulationInParts]:
        """Every population by name, with one seed for all: each is judged as it would be alone."""
        populations, schema = {}, self.schema or self.workload.schema
        for name, source in self._sources.items():
            known = self._surveys.get(name)
            with about_population(name):
                made = PopulationInParts(
                    source,
                    self._question,
                    schema,
                    seed=self.seed,
                    targets=self.targets,
                    known=known,
                )
            populations[name], self._surveys[name] = made, made.known
        return populations

    @functools.cached_property
    def _shards(self) -> list[tuple[str, IntArray, bool]]:
        """Population and targets of every shard of a setting, and whether they are its first."""
        return [
            (name, rows, not number)
            for name, population in self._populations.items()
            for number, rows in enumerate(population.shards(self.targets_per_shard))
        ]

    def __getstate__(self) -> dict[str, Any]:
        """Send settings to another process, not the records."""
        return {k: v for k, v in self.__dict__.items() if k not in _OF_PROCESS}

    # Settings of protections: stated ones, or a search of which each step needs the one before.

    @functools.cached_property
    def _searches(self) -> list[Search | None]:
        """The search of each protection; None where its setting is stated."""
        if self.goal is not None:
            return [search_of(one) for one in self.protections]
        for one in self.protections:
            for name, value in one.parameters.items():
                if is_range(value):
                    raise ArgumentError(
                        f"{name} of {one.name!r} must be one value where there is no target ratio, "
                        f"got {shown(value)}"
                    )
        return [None] * len(self.protections)

    @functools.cached_property
    def _slots(self) -> list[list[tuple[int, int]]]:
        """By stages, the number of a protection and of its setting, in the order of shards."""
        first = [1 if s is None else len(s.first()) for s in self._searches]
        stages = [[(number, k) for number, size in enumerate(first) for k in range(size)]]
        searched = [n for n, search in enumerate(self._searches) if search is not None]
        for step in range(self.goal.steps if self.goal and searched else 0):
            stages.append([(n, first[n] + step) for n in searched])
        return stages

    @property
    def stages(self) -> Sequence[range]:
        """Shards in stages: a bisection reads the statements of the settings before."""
        ends = np.cumsum([0, *map(len, self._slots)]) * len(self._shards)
        return [range(a, b) for a, b in itertools.pairwise(ends.tolist())]

    def _slot(self, shard: int) -> tuple[int, int]:
        """Return the number of a protection and the step of its search that a shard is part of."""
        return list(itertools.chain(*self._slots))[shard // len(self._shards)]

    @functools.cached_property
    def _tried(self) -> dict[int, dict[int, tuple[float | None, bool] | None]]:
        """Of a protection, by step: the value and whether it is enough; None for no value."""
        return {}

    def _setting(
        self, number: int, step: int, folder: RunFolder | None
    ) -> tuple[float | None, Protection] | None:
        """Return the value and the protection that are tried at a step; None after the last."""
        search = self._searches[number]
        if search is None or self.goal is None:
            return None, self.protections[number]
        first = search.first()
        if step < len(first):
            return first[step], search.setting(first[step])
        if folder is None:
            raise ArgumentError(f"shard must be of the first stage, got step {step}")
        known = self._tried.setdefault(number, {})
        for k in range(step):
            if k not in known:
                before = self._setting(number, k, folder)
                known[k] = before and (before[0], self._met(number, k, folder, self.goal))
        earlier = (one for one in map(known.__getitem__, range(step)) if one is not None)
        value = search.following({value: met for value, met in earlier if value is not None})
        return None if value is None else (value, search.setting(value))

    def _met(self, number: int, step: int, folder: RunFolder, goal: ProtectionGoal) -> bool:
        """Return True where a setting that was tried keeps to the goal."""
        slot, size = list(itertools.chain(*self._slots)).index((number, step)), len(self._shards)
        statements = folder.frame("statements", range(slot * size, (slot + 1) * size))
        return bool(worst_quantile(statements, goal)["met"])

    # Statements of a shard, and what all of them come to.

    def compute(self, shard: int) -> Mapping[str, pa.Table]:
        """Return the statements of some targets under one protection; of the first stage."""
        setting = self._setting(*self._slot(shard), None)
        return {} if setting is None else self._statements(shard, setting[1])

    def compute_after(self, shard: int, folder: RunFolder) -> Mapping[str, pa.Table]:
        """Return the statements of some targets under one setting of a protection."""
        setting = self._setting(*self._slot(shard), folder)
        if setting is None:  # nothing is left to try
            return {k: folder.read_part(0, k).schema.empty_table() for k in self.layout.kinds}
        return self._statements(shard, setting[1])

    def _statements(self, shard: int, protection: Protection) -> Mapping[str, pa.Table]:
        """Return errors of the tables, with the first targets, and statements."""
        number, _ = self._slot(shard)
        name, rows, first = self._shards[shard % len(self._shards)]
        population = self._populations[name]
        frame = population.statements(number, protection, rows)
        errors = population.errors(number, protection) if first else NO_ERRORS.copy()
        errors.insert(0, "protection", protection.name)
        if name:
            frame["target"] = f"{name}:" + frame["target"].astype(str)
            for one in (frame, errors):
                one.insert(0, POPULATION, name)
        return {"errors": arrow_table(errors), "statements": arrow_table(frame)}

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return summaries and report of a complete run."""
        statements, errors = folder.frame("statements"), folder.frame("errors")
        if self.goal is None:
            checks = self.checks(statements, self.protections)
            return audit_files(statements, errors, self.config, checks)
        tried = []
        for number, step in sorted(itertools.chain(*self._slots)):
            setting = self._setting(number, step, folder)
            if setting is not None:
                tried.append((self.protections[number], self._searches[number], *setting))
        settings = tried_settings(tried, statements, errors, self.goal)
        searches = {p.name: s for p, s in zip(self.protections, self._searches, strict=True)}
        choice = chosen_settings(searches, settings, statements, self.goal)
        names = set(choice["setting"])
        statements, errors = (f[f["protection"].isin(names)] for f in (statements, errors))
        checks = self.checks(statements, [made for *_, made in tried if made.name in names])
        return audit_files(
            statements, errors, self.config, checks, choice=choice, settings=settings
        )

    def checks(self, statements: pd.DataFrame, protections: Iterable[Protection]) -> pd.DataFrame:
        """Return the rows of :func:`audit_checks` about statements under protections.

        Each population has its own.
        """
        made, parts = list(protections), []
        for name, population in self._populations.items():
            specs = {one.name: one.make(population.usual).spec for one in made}
            part = audit_checks(
                of_population(statements, name), question=self._question, specs=specs
            )
            if name:
                part.insert(0, POPULATION, name)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def facts(self, folder: RunFolder, *, complete: bool) -> dict[str, Any]:
        """Return numbers, answers and checks of a complete run."""
        if not complete:
            return {"statements": 0, "targets": 0, "answers": (), "brief": (), "checks": ""}
        statements, summary = read_audit(folder.path)
        everybody = summary[summary["group"] == "everybody"]
        answers = [_answer(row) for row in everybody.to_dict(orient="records")]
        chosen: list[str] = []
        if self.goal is not None:
            chosen = _csv(folder.result("choice.csv"))["answer"].tolist()
        return {
            "statements": len(statements),
            "targets": int(statements["target"].nunique()),
            "answers": (*chosen, *answers),
            "brief": tuple(_brief(chosen, answers, everybody)),
            "checks": check_totals(_csv(folder.result("checks.csv"))),
        }

    def close(self) -> None:
        """Forget the records."""
        for name in _OF_PROCESS:
            self.__dict__.pop(name, None)
        forget_index()


def _plain(protection: Protection) -> dict[str, Any]:
    """Return a protection as JSON keeps it."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(asdict(protection), default=str))
    except (TypeError, ValueError) as error:
        name = protection.name
        raise ArgumentError(f"parameters of {name!r} must be plain values: {error}") from error
    return plain

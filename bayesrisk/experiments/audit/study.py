"""An audit as a study: every protection, every adversary, targets in shards of whole places."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bayesrisk import _validation as check
from bayesrisk._files.delimited import own_text
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.experiments.audit.choosing import (
    ProtectionGoal,
    Search,
    choice_of,
    evaluated,
    is_range,
    judged,
    search_of,
)
from bayesrisk.experiments.audit.populations import (
    POPULATION,
    AuditConfig,
    PopulationByPlace,
    Protection,
    Source,
    State,
    Survey,
    Usual,
    about_population,
    by_population,
    digest,
    households_of,
    loaded,
    named_sources,
    plain,
    surveyed,
)
from bayesrisk.experiments.audit.report import audit_files, checks_said
from bayesrisk.experiments.by_place.parts import forget_index
from bayesrisk.experiments.runs.engine import Outcome, Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder, arrow_table
from bayesrisk.risk.audit import (
    Adversary,
    AuditedPopulation,
    AuditQuestion,
    audit_checks,
    audit_summary,
    audit_targets,
)
from bayesrisk.risk.audit.population import NO_ERRORS
from bayesrisk.tables import Schema, Workload

# -----------------------------------------------------------------------------
# The folder of an audit, what a run of it found in words, and its way back to statements.


_SHOWN = 5  # lines


@displayed
@dataclass(frozen=True)
class AuditSummary:
    """What a run did, and what it found.

    Attributes
    ----------
    folder : str
        The output folder.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    statements, targets : int
        Of a complete run; else 0.
    answers : tuple of str
        What a complete run found: a sentence for each protection that was to be chosen, and of
        everybody one for each population, protection, reading and adversary.
    brief : tuple of str
        The same in five lines at most: what was to be chosen, or all of it, or who learns most
        from people's own records under each protection.
    checks : str
        What the checks of a complete run (:func:`audit_checks`) came to.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    statements: int
    targets: int
    answers: tuple[str, ...]
    brief: tuple[str, ...]
    checks: str

    @classmethod
    def of(cls, folder: RunFolder, outcome: Outcome) -> Self:
        """Return the summary of a run; of one that is not complete, nothing was found."""
        if not outcome.complete:
            return cls(str(folder.path), *outcome, 0, 0, (), (), "")
        statements, found = read_audit(folder.path)
        files = _checked(folder.path, "choice.csv", "checks.csv")
        everybody = found[found["group"] == "everybody"]
        told = [_sentence(row) for row in everybody.to_dict(orient="records")]
        chosen: list[str] = []
        if "choice.csv" in files:
            chosen = _csv(files["choice.csv"])["answer"].tolist()
        checks = _csv(files["checks.csv"])
        return cls(
            str(folder.path), *outcome, len(statements), int(statements["target"].nunique()),
            (*chosen, *told), tuple(_brief(chosen, told, everybody)),
            checks_said(checks),
        )  # fmt: skip

    def _answer(self) -> list[str]:
        return [*self.brief, f"{self.statements} statements in {self.folder}"]


_LAYOUT = Layout(
    "run of an audit",
    kinds=("errors", "statements"),
    merged=("errors", "statements"),
    confidential=True,  # all of it is computed from confidential records
)


def read_audit(folder: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the statements of a complete audit, and their summary.

    Parameters
    ----------
    folder : path-like
        Output folder of an :class:`AuditStudy`.

    Returns
    -------
    (statements, summary) : (pandas.DataFrame, pandas.DataFrame)
        Rows as in :class:`Statements`, which takes them as they are, of all settings that were
        tried, with ``without_error`` and ``posterior_error`` (Monte Carlo standard errors, 0 where
        calculated), ``engine``, ``place``, ``place_size``, ``alike`` (people of the place with what
        is known of the target) and ``nonmodal``; and rows as in ``summary.csv``.  Where
        populations have names, both have them in a column ``population``.

    Raises
    ------
    OutputError
        If the folder holds no audit.
    PartFileError
        If it is not complete, or was altered.
    """
    files = _checked(check.path(folder, "folder"), "statements.parquet", "choice.csv")
    statements = pq.read_table(files["statements.parquet"]).to_pandas()
    shown_ = statements
    if "choice.csv" in files:
        chosen = _csv(files["choice.csv"])["setting"]
        shown_ = statements[statements["protection"].isin(chosen)]
    return statements, by_population(shown_, lambda rows, _: audit_summary(audit_targets(rows)))


def _checked(path: Path, *names: str) -> dict[str, Path]:
    """Return files of a complete audit that are as it wrote them; a choice if one was made."""
    store = RunFolder.existing(path, _LAYOUT)
    config = store.settings(AuditConfig)
    wanted = (name for name in names if name != "choice.csv" or config.target_ratio is not None)
    return {name: store.result(name) for name in wanted}


def _csv(file: Path) -> pd.DataFrame:
    """Return a table in which a protection may be called "None" or "1"."""
    return pd.read_csv(file, keep_default_na=False, dtype={"setting": str}).map(own_text)


def _brief(chosen: list[str], told: list[str], everybody: pd.DataFrame) -> Iterator[str]:
    """Yield the answers where they are few; else those of who learns most."""
    lines = chosen or told
    if not chosen and len(told) > _SHOWN:
        # Answers are in the order of the rows, of which populations and protections are one each.
        rows = everybody.reset_index(drop=True)
        keys = [name for name in (POPULATION, "protection") if name in rows]
        most = rows["own"].groupby([rows[name] for name in keys], sort=False).idxmax()
        first = f"Who learns most from people's own records ({len(told)} answers in the report):"
        lines = [first, *(told[number] for number in most)]
    if len(lines) > _SHOWN:
        lines = [*lines[: _SHOWN - 1], f"and {len(lines) - _SHOWN + 1} more in the report"]
    yield from lines


def _sentence(row: Mapping[Any, Any]) -> str:
    of = f"{row[POPULATION]}, " if POPULATION in row else ""
    return (
        f"{of}{row['protection']}, {row['attack']}, {row['adversary']}: right about "
        f"{row['right_posterior']:.1%}; {row['right_without']:.1%} without their own records; "
        f"{row['right_prior']:.1%} before; own records {100.0 * row['own']:+.1f} points "
        f"({100.0 * row['own_lower']:+.1f} to {100.0 * row['own_upper']:+.1f})"
    )


# -----------------------------------------------------------------------------


#: What is read anew in every process.
_OF_PROCESS = ("_states", "_parts", "_tried")


@dataclass(frozen=True)
class AuditStudy(Study):
    """Protections of a population judged on one scale, for :func:`~bayesrisk.run`.

    A complete run has ``statements.parquet`` (a row for each target, adversary, reading of a
    release and statement, as :class:`Statements`), ``errors.parquet`` (of every published table),
    ``targets.csv``, ``summary.csv``, ``calibration.csv``, ``certain.csv``, ``checks.csv`` and
    ``report.html``.  All of it is computed from the confidential records, so that only its owner
    may read the folder (0700).

    Parameters
    ----------
    population : path-like, SimulatedPopulation or mapping of str to either
        Folder of microdata, by place too, or file of records (Parquet or CSV), or a synthetic one;
        several by their names.  Each of several is judged by itself, with the same seed, as it
        would be alone: nothing is pooled, but that a goal is about the worst of them.  Then all
        results have a column ``population``, and ``target`` begins with the population's name.
    workload : Workload
        Published tables.
    protections : sequence of Protection
        Each of another name.
    adversaries : sequence of Adversary
        Each of another name.
    stated : sequence of str
        Attributes that statements give.
    schema : Schema, optional
        Of a file of records; by default the tables' own.
    targets : int, optional
        Number of people of each population who are asked about, drawn without replacement;
        everybody by default.
    concentration : float, optional
        How alike people of one place are; fitted by default (:class:`AuditQuestion`).
    methods : sequence of str, default ("posterior",)
        How adversaries conclude: ``posterior``, ``reconstruction``, ``majority`` or ``claims``
        (:class:`AuditQuestion`).
    seed : int, default 1
        Of releases, targets and chains.
    targets_per_shard : int, default 25
        About so many targets are one shard; places stay whole.
    goal : ProtectionGoal, optional
        What protections shall do.  Then the weakest setting that does it is found for each one of
        which no setting is stated, by bisection of a stated range (``{"rho": "0.01..10"}``) or of
        that of its :class:`~bayesrisk.mechanisms.Dial`; all settings use the same random
        numbers.  Results are about the chosen settings, and there are ``choice.csv`` and
        ``settings.csv``, with every setting that was tried.

    Raises
    ------
    ArgumentError
        When it runs: if a setting is out of range, two protections or adversaries have one name,
        a protection cannot be made, or an attribute is unknown to a population.
    DataError
        When it runs: if the records are damaged: file, row and column are named.

    Notes
    -----
    Memory: the records and one release of every population, in every worker.  Of a population by
    place it is one part: each part is protected by itself, as :class:`ReleaseStudy` does, so that a
    protection must act within a part (``acts_within``) and no table be of a coarser level.  Targets
    are drawn from all parts, and beliefs rest on the composition of all of them; the errors of
    tables are those of the parts where targets live.
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

    layout: ClassVar[Layout] = _LAYOUT  # type: ignore[misc]

    @functools.cached_property
    def config(self) -> AuditConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        protections = check.instances(self.protections, Protection, "protections")
        names = [one.name for one in protections]
        if not names or len(set(names)) < len(names):
            raise ArgumentError(
                f"protections must be at least one, each of another name, got {shown(names)}"
            )
        if self.targets is not None:
            check.integer(self.targets, "targets", lower=1)
        size = check.integer(self.targets_per_shard, "targets_per_shard", lower=1)
        goal = self.goal
        question = self._question
        if goal is not None and goal.against is not None:
            check.choice(goal.against, "against", tuple(a.name for a in self.adversaries))
        for one, search in zip(protections, self._searches, strict=True):
            for made in [one] if search is None else map(search.setting, search.first()):
                for state in self._states:
                    with about_population(state.name):
                        state.population.check(made.make(state.usual))
        settings = [search.stem for search in self._searches if search is not None]
        if len(set(settings)) < len(settings) or any(n.startswith(tuple(settings)) for n in names):
            raise ArgumentError(
                f"protections must not be called as settings of another one are, got {shown(names)}"
            )
        document = json.dumps(self.workload.to_dict(), sort_keys=True)
        digests = {name: digest(source) for name, source in self._sources.items()}
        return AuditConfig(
            digests.get("", digests),
            hashlib.sha256(document.encode()).hexdigest(),
            question.stated,
            tuple(plain(asdict(one), one.name) for one in protections),
            tuple(asdict(one) | {"known": list(one.known)} for one in question.adversaries),
            self.targets,
            self.concentration,
            question.methods,
            check.integer(self.seed, "seed", lower=0),
            size,
            None if goal is None else goal.target_ratio,
            None if goal is None else goal.quantile,
            None if goal is None else goal.against,
            None if goal is None else goal.steps,
            sum(map(len, self._slots)) * len(self._parts),
        )

    @functools.cached_property
    def _searches(self) -> list[Search | None]:
        """How each protection is searched; None where its setting is stated."""
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
        for step in range(self.goal.steps if self.goal else 0):
            turned = [n for n, search in enumerate(self._searches) if search is not None]
            if turned:
                stages.append([(n, first[n] + step) for n in turned])
        return stages

    @property
    def stages(self) -> Sequence[range]:
        """Shards in stages: a bisection needs what was found before."""
        parts = len(self._parts)
        ends = np.cumsum([0, *map(len, self._slots)]) * parts
        return [range(a, b) for a, b in itertools.pairwise(ends.tolist())]

    @functools.cached_property
    def _sources(self) -> dict[str, Source]:
        return named_sources(self.population)

    @functools.cached_property
    def _question(self) -> AuditQuestion:
        """What is asked."""
        return AuditQuestion(
            self.workload,
            tuple(self.stated),
            tuple(self.adversaries),
            self.concentration,
            methods=tuple(self.methods),
        )

    @functools.cached_property
    def _surveys(self) -> dict[str, Survey | None]:
        """What populations by place come to: found once, and sent to workers."""
        found = {}
        for name, source in self._sources.items():
            with about_population(name):
                found[name] = surveyed(source, self._question, seed=self.seed, targets=self.targets)
        return found

    @functools.cached_property
    def _states(self) -> list[State]:
        """Every population and who is asked about: read once in every process."""
        return [self._state(name, source) for name, source in self._sources.items()]

    def _state(self, name: str, source: Source) -> State:
        question, population = self._question, self._population(name, source)
        usual = Usual(self.workload, question.stated, households_of(population))
        return State(name, question, population, usual, population.targets(self.targets))

    def _population(self, name: str, source: Source) -> AuditedPopulation | PopulationByPlace:
        """Return a population: one seed for all, so that each is judged as it would be alone."""
        question, known = self._question, self._surveys[name]
        if known is not None:
            path = check.path(source, "population")
            return PopulationByPlace(path, question, known, seed=self.seed)
        data = loaded(source, self.schema or self.workload.schema)
        with about_population(name):
            return AuditedPopulation(data, question, seed=self.seed)

    @functools.cached_property
    def _parts(self) -> list[tuple[State, IntArray, bool]]:
        """Targets of every shard of a setting, and whether they are the first of a population."""
        size = self.targets_per_shard
        return [
            (state, rows, not number)
            for state in self._states
            for number, rows in enumerate(state.parts(size))
        ]

    @functools.cached_property
    def _tried(self) -> dict[int, dict[int, tuple[float | None, bool] | None]]:
        """Of a protection, by step: the value and whether it is enough; None for no value."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Send settings to another process, not the records."""
        return {k: v for k, v in self.__dict__.items() if k not in _OF_PROCESS}

    def compute(self, shard: int) -> Mapping[str, pa.Table]:
        """Return the statements of some targets under one protection; of the first stage."""
        setting = self._setting(*self._slot(shard), None)
        return {} if setting is None else self._found(shard, setting[1])

    def compute_after(self, shard: int, folder: RunFolder) -> Mapping[str, pa.Table]:
        """Return the statements of some targets under one setting of a protection."""
        setting = self._setting(*self._slot(shard), folder)
        if setting is None:  # nothing is left to try
            return {k: folder.read_part(0, k).schema.empty_table() for k in folder.layout.kinds}
        return self._found(shard, setting[1])

    def _slot(self, shard: int) -> tuple[int, int]:
        """Return the number of a protection and the step of its search that a shard is part of."""
        return list(itertools.chain(*self._slots))[shard // len(self._parts)]

    def _found(self, shard: int, protection: Protection) -> Mapping[str, pa.Table]:
        """Return errors of the tables, with the first targets, and statements."""
        number, _ = self._slot(shard)
        state, rows, first = self._parts[shard % len(self._parts)]
        mechanism, release = state.released(number, protection)
        frame = state.population.statements(protection.name, number, mechanism, release, rows)
        errors = state.population.errors(release) if first else NO_ERRORS.copy()
        errors.insert(0, "protection", protection.name)
        if state.name:
            frame["target"] = f"{state.name}:" + frame["target"].astype(str)
            for one in (frame, errors):
                one.insert(0, POPULATION, state.name)
        return {
            "errors": arrow_table(errors),
            "statements": arrow_table(frame),
        }

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
        value = search.following({at: met for at, met in earlier if at is not None})
        return None if value is None else (value, search.setting(value))

    def _met(self, number: int, step: int, folder: RunFolder, goal: ProtectionGoal) -> bool:
        """Return whether a setting that was tried does what it shall."""
        parts = len(self._parts)
        slot = list(itertools.chain(*self._slots)).index((number, step))
        shards = range(slot * parts, (slot + 1) * parts)
        return bool(judged(_frame(folder, shards, "statements"), goal)["met"])

    def results(self, folder: RunFolder) -> Mapping[str, bytes]:
        """Return summaries and report of a complete run."""
        shards = range(self.config.shards)
        statements, errors = (_frame(folder, shards, k) for k in ("statements", "errors"))
        if self.goal is None:
            checks = self.checks(statements, self.protections)
            return audit_files(statements, errors, self.config, checks)
        tried = []
        for number, step in sorted(itertools.chain(*self._slots)):
            found = self._setting(number, step, folder)
            if found is not None:
                tried.append((self.protections[number], self._searches[number], *found))
        settings = evaluated(tried, statements, errors, self.goal)
        searches = {p.name: s for p, s in zip(self.protections, self._searches, strict=True)}
        choice = choice_of(searches, settings, statements, self.goal)
        statements, errors = (
            f[f["protection"].isin(choice["setting"])] for f in (statements, errors)
        )
        chosen = [made for *_, made in tried if made.name in set(choice["setting"])]
        checks = self.checks(statements, chosen)
        return audit_files(
            statements, errors, self.config, checks, choice=choice, settings=settings
        )

    def checks(self, statements: pd.DataFrame, protections: Iterable[Protection]) -> pd.DataFrame:
        """Return whether statements keep what theory demands (:func:`audit_checks`).

        Parameters
        ----------
        statements : pandas.DataFrame
            Statements under protections.
        protections : iterable of Protection
            With their settings.
        """
        made = list(protections)
        states = {state.name: state for state in self._states}

        def found(rows: pd.DataFrame, name: str) -> pd.DataFrame:
            specs = {one.name: one.make(states[name].usual).spec for one in made}
            return audit_checks(rows, question=self._question, specs=specs)

        return by_population(statements, found)

    def summary(self, folder: RunFolder, outcome: Outcome) -> AuditSummary:
        """Return what was done and found."""
        return AuditSummary.of(folder, outcome)

    def close(self) -> None:
        """Forget the records."""
        for name in _OF_PROCESS:
            self.__dict__.pop(name, None)
        forget_index()


def _frame(folder: RunFolder, shards: range, kind: str) -> pd.DataFrame:
    """Return the rows of parts."""
    frames: list[pd.DataFrame] = [folder.read_part(i, kind).to_pandas() for i in shards]
    return pd.concat(frames, ignore_index=True)

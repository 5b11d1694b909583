"""An audit as a study: every protection, every adversary, targets in shards of whole places."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from bayesrisk import _files
from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._show import displayed
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError, OutputError, PartFileError
from bayesrisk.experiments.audit.config import AuditConfig
from bayesrisk.experiments.audit.protections import Protection, Usual
from bayesrisk.experiments.audit.report import audit_files
from bayesrisk.experiments.runs.folder import MANIFEST, PartFolder, arrow_table
from bayesrisk.experiments.runs.study import Outcome, Study
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import Release
from bayesrisk.risk.audit import (
    Adversary,
    AuditedPopulation,
    AuditQuestion,
    audit_summary,
    audit_targets,
)
from bayesrisk.tables import Microdata, Records, Schema, Workload

__all__ = ["AuditStudy", "AuditSummary", "read_audit"]

_SHOWN = 6


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
        What a complete run found of everybody, a sentence for each protection, reading and
        adversary.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    statements: int
    targets: int
    answers: tuple[str, ...]

    def _answer(self) -> list[str]:
        return [*self.answers[:_SHOWN], f"{self.statements} statements in {self.folder}"]


class _AuditFolder(PartFolder):
    """The folder of an audit: all of it is computed from confidential records."""

    what: ClassVar[str] = "audit"
    kinds = ("errors", "statements")

    def _settle(self, config: Any) -> None:
        super()._settle(config)
        _files.make_folder(self.path, private=True)

    def _private(self, file: Path) -> bool:
        return True


@dataclass(frozen=True)
class AuditStudy(Study[AuditSummary]):
    """Protections of a population judged on one scale, for :func:`~bayesrisk.run`.

    A complete run has ``statements.parquet`` (a row for each target, adversary, reading of a
    release and statement, as :class:`Statements`), ``errors.parquet`` (of every published table),
    ``targets.csv``, ``summary.csv``, ``calibration.csv``, ``certain.csv`` and ``report.html``.  All
    of it is computed from the confidential records, so that only its owner may read the folder
    (0700).

    Parameters
    ----------
    population : path-like
        Folder of microdata, or file of records (Parquet or CSV).
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
        Number of people who are asked about, drawn without replacement; everybody by default.
    concentration : float, optional
        How alike people of one place are; fitted by default (:class:`AuditQuestion`).
    methods : sequence of str, default ("posterior",)
        How adversaries conclude: ``posterior``, ``reconstruction``, ``majority`` or ``claims``
        (:class:`AuditQuestion`).
    seed : int, default 1
        Of releases, targets and chains.
    targets_per_shard : int, default 25
        About so many targets are one shard; places stay whole.

    Raises
    ------
    ArgumentError
        When it runs: if a setting is out of range, two protections or adversaries have one name,
        a protection cannot be made, or an attribute is unknown.
    DataError
        When it runs: if the records are damaged: file, row and column are named.

    Notes
    -----
    Memory: the records, and for each protection one release, in every worker.
    """

    population: str | Path
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

    merged: ClassVar[tuple[str, ...]] = ("errors", "statements")

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
        state = self._state
        for one in protections:
            one.make(state.usual)
        document = json.dumps(self.workload.to_dict(), sort_keys=True)
        return AuditConfig(
            _digest(check.path(self.population, "population")),
            hashlib.sha256(document.encode()).hexdigest(),
            state.question.stated,
            tuple(_plain(asdict(one), one.name) for one in protections),
            tuple(asdict(one) | {"known": list(one.known)} for one in state.question.adversaries),
            self.targets,
            self.concentration,
            state.question.methods,
            check.integer(self.seed, "seed", lower=0),
            size,
            len(protections) * len(state.parts(size)),
        )

    @functools.cached_property
    def _state(self) -> _State:
        """The population and what is asked: read once in every process."""
        question = AuditQuestion(
            self.workload,
            tuple(self.stated),
            tuple(self.adversaries),
            self.concentration,
            methods=tuple(self.methods),
        )
        path = check.path(self.population, "population")
        data: Any
        if path.is_dir():
            data = Microdata.read(path)
        else:
            data = Records.read(path, schema=self.schema or self.workload.schema)
        population = AuditedPopulation(data, question, seed=self.seed)
        households = population.data.persons is not None and population.data.households is not None
        usual = Usual(self.workload, question.stated, households)
        return _State(question, population, usual, population.targets(self.targets))

    def __getstate__(self) -> dict[str, Any]:
        """Send settings to another process, not the records."""
        return {k: v for k, v in self.__dict__.items() if k != "_state"}

    def open(self, folder: str | Path) -> PartFolder:
        """Return the folder of an audit."""
        return _AuditFolder(folder)

    def compute(self, shard: int) -> Mapping[str, pa.Table]:
        """Return the statements of some targets under one protection."""
        state = self._state
        parts = state.parts(self.targets_per_shard)
        number, part = divmod(shard, len(parts))
        protection = self.protections[number]
        mechanism, release = state.released(number, protection)
        frame = state.population.statements(
            protection.name, number, mechanism, release, parts[part]
        )
        errors = state.population.errors(release)
        errors.insert(0, "protection", protection.name)
        return {
            "errors": arrow_table(errors if part == 0 else errors.iloc[:0]),
            "statements": arrow_table(frame),
        }

    def results(self, folder: PartFolder) -> Mapping[str, bytes]:
        """Return summaries and report of a complete run."""
        frames = {
            kind: pd.concat(
                [folder.read_part(i, kind).to_pandas() for i in range(self.config.shards)],
                ignore_index=True,
            )
            for kind in ("errors", "statements")
        }
        return audit_files(frames["statements"], frames["errors"], self.config)

    def summary(self, folder: PartFolder, outcome: Outcome) -> AuditSummary:
        """Return what was done and found."""
        rows, targets, answers = 0, 0, []
        if outcome.complete:
            statements, found = read_audit(folder.path)
            rows, targets = len(statements), int(statements["target"].nunique())
            everybody = found[found["group"] == "everybody"]
            answers = [_sentence(row) for row in everybody.to_dict(orient="records")]
        return AuditSummary(str(folder.path), *outcome, rows, targets, tuple(answers))

    def close(self) -> None:
        """Forget the records."""
        self.__dict__.pop("_state", None)


@dataclass(eq=False)
class _State:
    """The population, what is asked of whom, and releases that were made."""

    question: AuditQuestion
    population: AuditedPopulation
    usual: Usual
    targets: IntArray

    def __post_init__(self) -> None:
        self._released: dict[int, tuple[Mechanism, Release]] = {}

    def parts(self, size: int) -> list[IntArray]:
        """Return targets in parts of about a size, those of one place together."""
        place = self.population.place[self.targets]
        order = np.argsort(place, kind="stable")
        rows, place = self.targets[order], place[order]
        first = np.flatnonzero(np.r_[True, place[1:] != place[:-1]])
        cuts, last = [0], 0
        for start in first.tolist():
            if start - last >= size:
                cuts.append(start)
                last = start
        return [rows[a:b] for a, b in zip(cuts, [*cuts[1:], rows.size], strict=True)]

    def released(self, number: int, protection: Protection) -> tuple[Mechanism, Release]:
        """Return a protection and its release, made once."""
        if number not in self._released:
            mechanism = protection.make(self.usual)
            self._released = {number: (mechanism, self.population.release(number, mechanism))}
        return self._released[number]


def read_audit(folder: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the statements of a complete audit, and their summary.

    Parameters
    ----------
    folder : path-like
        Output folder of an :class:`AuditStudy`.

    Returns
    -------
    (statements, summary) : (pandas.DataFrame, pandas.DataFrame)
        Rows as in :class:`Statements`; and as in ``summary.csv``.

    Raises
    ------
    OutputError
        If the folder holds no audit.
    PartFileError
        If it is not complete, or was altered.
    """
    path = check.path(folder, "folder")
    store = _AuditFolder(path)
    config = store.load_settings(AuditConfig)
    manifest = store.check_settings(config)
    if not manifest.get("complete"):
        raise PartFileError(f"{path / MANIFEST}: the audit is not complete; run it with --resume")
    file = path / "statements.parquet"
    if _files.digest(file) != manifest["files"][file.name]["sha256"]:
        raise PartFileError(f"{file}: was altered after the audit")
    statements = pd.read_parquet(file)
    return statements, audit_summary(audit_targets(statements))


def _sentence(row: Mapping[Any, Any]) -> str:
    return (
        f"{row['protection']}, {row['attack']}, {row['adversary']}: right about "
        f"{row['right_posterior']:.1%}; {row['right_without']:.1%} without their own records; "
        f"{row['right_prior']:.1%} before"
    )


def _digest(path: Path) -> str:
    """Return a digest of a file, or of all files of a folder."""
    if path.is_file():
        return str(_files.digest(path))
    if not path.is_dir():
        raise OutputError(f"{path}: is no file or folder")
    files = sorted(p for p in path.iterdir() if p.is_file() and not _files.is_leftover(p.name))
    return hashlib.sha256(
        "".join(f"{p.name} {_files.digest(p)}\n" for p in files).encode()
    ).hexdigest()


def _plain(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return values as JSON keeps them."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(value, default=str))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"parameters of {name!r} must be plain values: {error}") from error
    return plain

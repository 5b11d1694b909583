"""Attacks on a place's tables, read as true counts, and methods of inference from a release."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.plugins import Registry, Wall
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import PluginError
from bayesrisk.inference import RecordPrior
from bayesrisk.reconstruction import Status, reconstruct, verify_claims
from bayesrisk.reconstruction.registry import REGISTRY as ATTACKS
from bayesrisk.release import Release
from bayesrisk.risk.audit.adversaries import TargetBelief, TargetQuestion, prior_belief
from bayesrisk.risk.audit.named_attacks import NamedAttack, make_named
from bayesrisk.risk.audit.place_beliefs import (
    UNSTATED,
    AuditTarget,
    PlaceReading,
    TargetBeliefs,
    infer,
    prior_of_rest,
)
from bayesrisk.risk.audit.reading import Reading, readings
from bayesrisk.tables import PublishedTables, Schema, Workload
from bayesrisk.tables.published import select_rows

# -----------------------------------------------------------------------------
# Attacks on the tables of one place, taken as true.  Each is made from tables once, and gives for
# many targets weights of the values of a statement, or None where it says nothing.


_ROUNDING = 1e-9  # of least squares over counts


@runtime_checkable
class TableAttack(Protocol):
    """An attack on one place's tables, read as true counts, less the known records.

    Its class may have a function ``check(workload)``, which refuses tables that it cannot read. It
    may have ``partial``, if it can prove something without a single answer. With ``around``, it is
    built from the prior, the known records, and the tables of the place and of those around it,
    nearest first.
    """

    engine: str  # how it found its answer
    proof: bool  # whether nothing else fits the tables

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return a weight for each statement, at least one > 0; None if the attack says nothing."""


def place_tables(tables: PublishedTables, level: str, code: str, off: IntArray) -> PublishedTables:
    """Return the tables of one place, with known records subtracted."""
    part, counts = select_rows(tables, {level: [tables.row(level, code)]}), {}
    for key, table in part.workload.tables.items():
        left = part.counts[key].toarray()
        if off.size:
            left = left - table.incidence(part.workload.schema, off).sum(axis=1)
        if key in part.suppressed:
            left = np.where(part.hidden(*key).toarray(), 0, left)
        counts[key] = sparse.csr_array(left.astype(np.int64))
    return replace(part, counts=counts)


class RecordsAttack:
    """Reconstructed records, exact or nearest to the tables, taken as true."""

    def __init__(self, tables: PublishedTables) -> None:
        level = tables.workload.levels[-1]
        reconstruction = reconstruct(tables, scope=level, nearest=True, taken_as_true=True)
        self.engine = str(reconstruction.status[0])
        self.proof = reconstruction.status[0] == Status.UNIQUE
        self._cells = reconstruction.problem.space
        self._count = reconstruction.histogram().toarray()[0]

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return the number of reconstructed records like the target that have each value."""
        weights: FloatArray = self._count @ question.shares(self._cells, prior.shares_of_cells)
        return weights if weights.sum() > 0 else None


class MajorityAttack:
    """Numbers of a place's people with each value, from published counts of these values alone.

    Nothing is linked, and only the target's place is used: it is a stranger's guess. Counts are
    combined by least squares, and what they leave open is shared as in the prior. A place without
    counts takes those of the next larger place with counts.
    """

    engine = "margins"
    proof = False
    around = True

    def __init__(self, nearest_first: Iterable[PublishedTables], prior: RecordPrior) -> None:
        self._places, self._prior = nearest_first, prior
        self._people: FloatArray | None = None

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return the numbers of people with each value, the same for every target."""
        if self._people is None:
            shares = self._prior.shares_of_cells
            scale = np.sqrt(np.bincount(question.value, shares, minlength=question.values))
            self._people = np.zeros(question.values)
            for tables in self._places:
                self._people = _margins(tables, question, scale)
                if self._people.any():
                    break
        return self._people if self._people.any() else None


class RefutationAttack:
    """Proofs, from tables taken as true, of values that nobody like the target has."""

    engine = "claims"
    proof = True
    partial = True

    def __init__(self, tables: PublishedTables) -> None:
        self._tables = tables
        self._refuted: dict[bytes, BoolArray | None] = {}

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return the prior of the values that are not refuted, or None if nothing is proved."""
        key = question.possible.tobytes()
        if key not in self._refuted:
            self._refuted[key] = self._refuted_values(question)
        refuted = self._refuted[key]
        if refuted is None:
            return None
        left = np.where(refuted, 0.0, question.sums(prior.shares_of_cells))
        # Everything refuted: the tables have nobody like the target.
        return left if left.any() and refuted.any() else None

    def _refuted_values(self, question: TargetQuestion) -> BoolArray | None:
        """Return a mask of values that nobody like the target has, or None if undecided."""
        workload = self._tables.workload
        level = workload.levels[-1]
        frame: dict[str, object] = {level: str(self._tables.geoids[level][0]), "multiplicity": 0}
        for name, (low, high) in _codes(workload.schema, question, question.possible).items():
            codes = pd.array(low, dtype="Int64")
            codes[low < high] = pd.NA
            frame[name] = codes
        values = np.unique(question.value[question.possible])
        claims = pd.DataFrame(frame, index=np.arange(question.values)).loc[values]
        verified = verify_claims(self._tables, claims, among={}, taken_as_true=True)
        if verified.blocks["status"].iloc[0] in (Status.INFEASIBLE, Status.UNKNOWN):
            return None
        refuted = np.ones(question.values, np.bool_)
        refuted[values] = (verified.claims["status"] == Status.VERIFIED).to_numpy()
        return refuted


def _codes(
    schema: Schema, question: TargetQuestion, possible: BoolArray
) -> dict[str, tuple[IntArray, IntArray]]:
    """Return each attribute's least and greatest code among the cells of every statement."""
    cells = np.flatnonzero(possible)
    value, ranges = question.value[cells], {}
    for name, index in schema.indices(cells).items():
        code = index + schema.attribute(name).first
        low = np.full(question.values, np.iinfo(np.int64).max)
        high = np.full(question.values, np.iinfo(np.int64).min)
        np.minimum.at(low, value, code)
        np.maximum.at(high, value, code)
        ranges[name] = low, high
    return ranges


def _margins(tables: PublishedTables, question: TargetQuestion, scale: FloatArray) -> FloatArray:
    """Return the numbers of people with each value, >= 0, by least squares.

    ``scale`` is the root of the prior share of each value. Of all numbers that fit equally well,
    the result deviates least from zero in its units.
    """
    workload: Workload = tables.workload
    level, schema = workload.levels[-1], workload.schema
    everybody = np.ones(schema.size, np.bool_)
    codes = _codes(schema, question, everybody)
    free = [name for name, (low, high) in codes.items() if (low < high).any()]
    first = np.unique(question.value, return_index=True)[1]
    rows, counts = [], []
    for name, table in workload.at(level).items():
        visible = ~tables.hidden(level, name).toarray()[0]
        for other in free:
            if other in table.factors:
                visible &= np.ptp(np.asarray(table.factors[other]), axis=1) == 0
        rows.append(table.incidence(schema, first).toarray()[visible])
        counts.append(tables.count(level, name, str(tables.geoids[level][0]))[visible])
    matrix, count = np.concatenate(rows).astype(np.float64), np.concatenate(counts)
    if not matrix.any():
        return np.zeros(question.values)
    people = scale * np.linalg.lstsq(matrix * scale, count, rcond=None)[0]
    return np.where(people > _ROUNDING, people, 0.0)


REGISTRY: Registry[TableAttack] = Registry(
    "method",
    builtin={
        "reconstruction": "bayesrisk.risk.audit.attacks:RecordsAttack",
        "majority": "bayesrisk.risk.audit.attacks:MajorityAttack",
        "claims": "bayesrisk.risk.audit.attacks:RefutationAttack",
    },
    protocol=TableAttack,
    needs="engine, proof and weights()",
)
POSTERIOR = "posterior"
#: How an adversary concludes: by the law of the records, or by attacks that take tables as true.
METHODS = (POSTERIOR, *REGISTRY.builtin)
PROVED, BELIEVED = "proved", "believed"
_NOBODY: IntArray = np.zeros(0, np.int64)


def available_methods() -> tuple[str, ...]:
    """Return the names of all methods: built-in, registered, and from plug-ins."""
    return METHODS + tuple(name for name in REGISTRY.available() if name not in METHODS)


def choose_method(name: object, argument: str) -> None:
    """Raise unless a name is a method or a recipe of an attack on releases."""
    if name in METHODS:
        return
    if named_attack(name):
        make_named(str(name))
        return
    check.choice(name, argument, tuple(dict.fromkeys([*available_methods(), *ATTACKS.available()])))


def named_attack(method: object) -> bool:
    """Return whether a method is a recipe of an attack on whole releases."""
    name = method.partition(":")[0].strip() if isinstance(method, str) else None
    return name not in METHODS and name in ATTACKS.available() and name not in REGISTRY.available()


def check_method(name: str, workload: Workload) -> None:
    """Raise if a method's attack cannot read the workload's tables."""
    if name == POSTERIOR or named_attack(name):
        return
    if rule := getattr(REGISTRY.factory(name), "check", None):
        rule(workload)


@runtime_checkable
class CellStatement(Protocol):
    """A statement about a record that combines attributes, made for a workload."""

    labels: Sequence[str]  # its values in words
    value: IntArray  # (cells of the schema,): which of them is true of a record of the cell


STATEMENTS: Registry[CellStatement] = Registry(
    "statement", builtin={}, protocol=CellStatement, needs="labels and value"
)


def stated_values(workload: Workload, stated: Sequence[str]) -> tuple[list[str], IntArray]:
    """Return all statements in words, and the index of the true one for each schema cell."""
    schema = workload.schema
    index = schema.indices(np.arange(schema.size, dtype=np.int64))
    texts, value = [""], np.zeros(schema.size, np.int64)
    for name in stated:
        if name not in schema.names:
            statement = STATEMENTS.make(name, workload)
            labels, number = list(statement.labels), statement.value
        else:
            attribute = schema.attribute(name)
            codes = range(attribute.first, attribute.last + 1)
            labels = [str(one) for one in attribute.labels or [f"{name} {code}" for code in codes]]
            number = index[name]
        texts = [f"{text}, {label}" if text else label for text in texts for label in labels]
        value = value * len(labels) + number
    return texts, value


@dataclass(frozen=True)
class InferenceMethod:
    """A method of inference from one reading of a release."""

    reading: Reading
    counterfactual: Callable[[int], Reading]  # reading of the release without the record of a row
    infer: Callable[[PlaceReading, Iterable[AuditTarget]], Iterator[TargetBeliefs]]
    number: int  # of the reading, which random numbers depend on


def inference_methods(
    methods: Iterable[str],
    release: Release,
    release_without: Callable[[int], Release],
    errors: Mapping[tuple[str, str], float],
) -> Iterator[InferenceMethod]:
    """Yield the inference of each method; ``posterior`` yields one for each reading."""

    @functools.cache
    def all_again(row: int) -> list[Reading]:
        return readings(release_without(row), errors)

    def read_again(number: int, row: int) -> Reading:
        return all_again(row)[number]

    def as_true(method: str, row: int) -> Reading:
        return Reading(method, release_without(row))

    for method in methods:
        check_method(method, release.tables.workload)
        if method == POSTERIOR:
            for number, reading in enumerate(readings(release, errors)):
                yield InferenceMethod(reading, functools.partial(read_again, number), infer, number)
        else:
            rerun = functools.partial(as_true, method)
            yield InferenceMethod(
                Reading(method, release), rerun, functools.partial(infer_by_attack, method), 0
            )


def infer_by_attack(
    method: str, place: PlaceReading, targets: Iterable[AuditTarget]
) -> Iterator[TargetBeliefs]:
    """Yield an attack's beliefs about each target, in order.

    Counts are read as true, however they were made. Known records of others are first subtracted
    from the tables, except for the majority, which is a stranger's view. The status is ``proved``
    if published counts are true and nothing else fits. It is ``unstated`` if the attack says
    nothing after the release, so that the prior stands; else ``believed``.
    """
    attacks = _Attacks(method, place)
    for target in targets:
        yield attacks.beliefs(target)


class _Attacks:
    """The attacks of one method on a place, each run once."""

    def __init__(self, method: str, place: PlaceReading) -> None:
        self._method, self._place, self._around = method, place, False
        self._named = make_named(method) if named_attack(method) else None
        if self._named is None:
            self._subject = REGISTRY.subject(method)
            self._around = bool(getattr(REGISTRY.factory(method), "around", False))
        else:
            self._subject = self._named[1]
        self._attacks: dict[tuple[int | None, bytes], TableAttack] = {}
        release = place.release.release
        self._true = all(
            release.spec.likelihood(place.level, name).exact
            for name in release.tables.workload.at(place.level)
        )

    def beliefs(self, target: AuditTarget) -> TargetBeliefs:
        """Return the beliefs about a target."""
        place = self._place
        prior = prior_of_rest(place.prior, target)
        known_cells = _NOBODY if self._around else target.known_cells
        start = prior_belief(prior, target.question)
        attack = self._attack(None, known_cells)
        posterior = self._belief(attack, target, prior)
        if place.additive:
            other = self._attack(None, np.append(known_cells, target.cell))
        else:
            other = self._attack(target.row, known_cells)
        without = self._belief(other, target, prior) or start
        if posterior is None:
            return TargetBeliefs(target.row, start, without, start, attack.engine, UNSTATED)
        sure = not getattr(attack, "partial", False) or posterior.probability.max() == 1.0
        status = PROVED if self._true and attack.proof and sure else BELIEVED
        return TargetBeliefs(target.row, start, without, posterior, attack.engine, status)

    def _attack(self, without: int | None, off: IntArray) -> TableAttack:
        """Return the attack on the release, or on one without a row, net of known records."""
        off = np.sort(off)
        key = without, off.tobytes()
        if key not in self._attacks:
            place = self._place
            read = place.release if without is None else place.counterfactual(without)
            if self._around:
                near = _around(read.release, place.code, off)
                self._attacks[key] = REGISTRY.make(self._method, near, place.prior)
                return self._attacks[key]
            tables = place_tables(read.release.tables, place.level, place.code, off)
            if self._named is None:
                self._attacks[key] = REGISTRY.make(self._method, tables)
            else:
                spec = read.release.spec.for_tables(tables.counts)
                release = replace(read.release, spec=spec, tables=tables)
                self._attacks[key] = NamedAttack(*self._named, release)
        return self._attacks[key]

    def _belief(
        self, attack: TableAttack, target: AuditTarget, prior: RecordPrior
    ) -> TargetBelief | None:
        """Return an attack's belief about a target, or None if it says nothing."""
        answer = attack.weights(target.question, prior)
        if answer is None:
            return None
        with Wall(self._subject):
            weights = np.asarray(answer, np.float64)
        good = weights.shape == (target.question.values,) and np.isfinite(weights).all()
        if not (good and (weights >= 0).all() and weights.any()):
            rule = f"{target.question.values} numbers >= 0, one of them positive"
            raise PluginError(f"{self._subject} failed: weights() must return {rule}, or None")
        return TargetBelief.exact(weights)


def _around(release: Release, code: str, off: IntArray) -> Iterator[PublishedTables]:
    """Yield the tables of a place and then of the larger places that contain it."""
    workload = release.tables.workload
    geography = workload.schema.geography
    for level in reversed(workload.levels):
        around = str(geography.ancestors(np.array([code]), level)[0])
        yield place_tables(release.tables, level, around, off)

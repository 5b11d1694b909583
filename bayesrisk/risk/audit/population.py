"""A population under audit: questions, methods of inference, and beliefs about its targets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._random import named_stream
from bayesrisk._show import displayed
from bayesrisk._validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference import RecordPrior
from bayesrisk.inference.microdata.knowledge import Classes
from bayesrisk.interfaces import Mechanism
from bayesrisk.reconstruction import Status, reconstruct, verify_claims
from bayesrisk.release import Release
from bayesrisk.risk.audit.adversaries import (
    CHAINS,
    INSIDERS,
    MECHANISM,
    UNSTATED,
    Adversary,
    AuditTarget,
    PlaceReading,
    Reading,
    Surroundings,
    TargetBelief,
    TargetBeliefs,
    TargetQuestion,
    audit_rng,
    drawn_targets,
    fit_place_concentration,
    infer,
    is_additive,
    known_others,
    prior_belief,
    prior_of_rest,
    readings,
    sampled_places,
)
from bayesrisk.tables import Microdata, PublishedTables, Records, Schema, Workload, tabulate
from bayesrisk.tables.microdata import as_microdata

# -----------------------------------------------------------------------------
# Three attacks on the tables of one place, taken as true.  Each is made from tables once, and gives
# for many targets weights of the values of a statement, or None where it says nothing.


_ROUNDING = 1e-9  # of least squares over counts


class TableAttack(Protocol):
    """An attack on tables that are taken as true."""

    engine: str  # how it found its answer
    proof: bool  # whether nothing else fits the tables

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return weights of the values, of which one at least is positive, or None."""


def tables_of(tables: PublishedTables, level: str, code: str, off: IntArray) -> PublishedTables:
    """Return the tables of one place, less records that are known."""
    workload = tables.workload.select(levels=[level])
    row = tables.row(level, code)
    counts, hidden = {}, {}
    for name, table in workload.at(level).items():
        key = level, name
        own = np.asarray(table.incidence(workload.schema, off).sum(axis=1), np.int64)
        hidden[key] = sparse.csr_array(tables.hidden(*key)[[row]])
        left = np.where(hidden[key].toarray(), 0, tables.count(*key, code) - own)
        counts[key] = sparse.csr_array(left)
    laws = {key: law for key, law in tables.laws.items() if key in counts}
    return PublishedTables(workload, {level: np.array([code])}, counts, hidden, laws)


class RecordsAttack:
    """Records that fit the tables, or deviate least where none fit, taken at their word."""

    def __init__(self, tables: PublishedTables) -> None:
        level = tables.workload.levels[-1]
        found = reconstruct(tables, scope=level, nearest=True, taken_as_true=True)
        space = found.problem.space
        self.engine = str(found.status[0])
        self.proof = found.status[0] == Status.UNIQUE
        self._cells = Classes(space.schema, space.bins)
        self._count = found.histogram().toarray()[0]

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return the numbers of reconstructed records of each value, of those like the target."""
        found: FloatArray = self._count @ question.shares(self._cells, prior.shares_of_cells)
        return found if found.sum() > 0 else None


class MajorityAttack:
    """Numbers of people of the place with each value, by published counts of these values alone.

    Nothing is linked, and nothing used that is known of the target but the place: what a stranger
    would guess.  Counts are put together by least squares, and what they leave open is shared as in
    the prior.  Where a place has none, the next larger one that has counts.
    """

    engine = "margins"
    proof = False

    def __init__(self, nearest_first: Iterable[PublishedTables], prior: RecordPrior) -> None:
        self._places, self._prior = nearest_first, prior
        self._found: FloatArray | None = None

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return the numbers of people of every value: the same whoever is asked about."""
        if self._found is None:
            shares = self._prior.shares_of_cells
            scale = np.sqrt(np.bincount(question.value, shares, minlength=question.values))
            self._found = np.zeros(question.values)
            for tables in self._places:
                self._found = _margins(tables, question, scale)
                if self._found.any():
                    break
        return self._found if self._found.any() else None


class RefutationAttack:
    """Statements that must be true of everybody like the target, if the tables are true."""

    engine = "claims"
    proof = True

    def __init__(self, tables: PublishedTables) -> None:
        self._tables = tables
        self._refuted: dict[bytes, BoolArray | None] = {}

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return the prior of the values that nobody like the target is proved not to have."""
        key = question.possible.tobytes()
        if key not in self._refuted:
            self._refuted[key] = self._found(question)
        refuted = self._refuted[key]
        if refuted is None:
            return None
        left = np.where(refuted, 0.0, question.sums(prior.shares_of_cells))
        # Everything refuted: the tables have nobody like the target.
        return left if left.any() and refuted.any() else None

    def _found(self, question: TargetQuestion) -> BoolArray | None:
        """Return which values the tables, taken as true, leave to nobody like the target."""
        workload = self._tables.workload
        level = workload.levels[-1]
        frame: dict[str, object] = {level: str(self._tables.geoids[level][0]), "multiplicity": 0}
        for name, (low, high) in _codes(workload.schema, question, question.possible).items():
            codes = pd.array(low, dtype="Int64")
            codes[low < high] = pd.NA
            frame[name] = codes
        values = np.unique(question.value[question.possible])
        claims = pd.DataFrame(frame, index=np.arange(question.values)).loc[values]
        found = verify_claims(self._tables, claims, among={}, taken_as_true=True)
        if found.blocks["status"].iloc[0] in (Status.INFEASIBLE, Status.UNKNOWN):
            return None
        refuted = np.ones(question.values, np.bool_)
        refuted[values] = (found.claims["status"] == Status.VERIFIED).to_numpy()
        return refuted


def _codes(
    schema: Schema, question: TargetQuestion, possible: BoolArray
) -> dict[str, tuple[IntArray, IntArray]]:
    """Return the least and the greatest code of each attribute among the cells of every value."""
    cells = np.flatnonzero(possible)
    value, found = question.value[cells], {}
    for name, index in schema.indices(cells).items():
        code = index + schema.attribute(name).first
        low = np.full(question.values, np.iinfo(np.int64).max)
        high = np.full(question.values, np.iinfo(np.int64).min)
        np.minimum.at(low, value, code)
        np.maximum.at(high, value, code)
        found[name] = low, high
    return found


def _margins(tables: PublishedTables, question: TargetQuestion, scale: FloatArray) -> FloatArray:
    """Return the numbers of people of every value, at least 0, by least squares.

    ``scale`` is the root of the prior share of each value: of all numbers that fit equally well,
    those that deviate least, in its units, from nobody.
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
    found = scale * np.linalg.lstsq(matrix * scale, count, rcond=None)[0]
    return np.where(found > _ROUNDING, found, 0.0)


# -----------------------------------------------------------------------------


POSTERIOR = "posterior"
#: How an adversary concludes: by the law of the records, or by attacks that take tables as true.
METHODS = (POSTERIOR, "reconstruction", "majority", "claims")
PROVED, BELIEVED = "proved", "believed"
_NOBODY: IntArray = np.zeros(0, np.int64)


@dataclass(frozen=True)
class InferenceMethod:
    """A method of inference from a reading of a release."""

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
    """Yield the inference of each method: the posterior has one for each reading of the release."""

    def read_again(number: int, row: int) -> Reading:
        return readings(release_without(row), errors)[number]

    def as_true(method: str, row: int) -> Reading:
        return Reading(method, release_without(row))

    for method in methods:
        if method == POSTERIOR:
            for number, reading in enumerate(readings(release, errors)):
                yield InferenceMethod(reading, functools.partial(read_again, number), infer, number)
        else:
            again = functools.partial(as_true, method)
            yield InferenceMethod(
                Reading(method, release), again, functools.partial(infer_by_attack, method), 0
            )


def infer_by_attack(
    method: str, place: PlaceReading, targets: Iterable[AuditTarget]
) -> Iterator[TargetBeliefs]:
    """Yield the beliefs that an attack leads to about each target, in order.

    Counts are taken as true, however they came about.  Known records of others are taken off the
    tables first, but by the majority, which is what a stranger sees.  ``proved`` where published
    counts are true ones and nothing else fits; ``unstated`` where the attack says nothing after the
    release, so that the prior stands; else ``believed``.
    """
    attacks = _Attacks(method, place)
    for target in targets:
        yield attacks.beliefs(target)


class _Attacks:
    """The attacks of one method on a place, each made once."""

    def __init__(self, method: str, place: PlaceReading) -> None:
        self._method, self._place = method, place
        self._made: dict[tuple[int | None, bytes], TableAttack] = {}
        release = place.release.release
        self._true = all(
            release.spec.likelihood(place.level, name).exact
            for name in release.tables.workload.at(place.level)
        )

    def beliefs(self, target: AuditTarget) -> TargetBeliefs:
        """Return the beliefs about a target."""
        place = self._place
        prior = prior_of_rest(place.prior, target)
        others = _NOBODY if self._method == "majority" else target.others
        start = prior_belief(prior, target.question)
        attack = self._attack(None, others)
        posterior = _belief(attack, target, prior)
        if place.additive:
            other = self._attack(None, np.append(others, target.cell))
        else:
            other = self._attack(target.row, others)
        without = _belief(other, target, prior) or start
        if posterior is None:
            return TargetBeliefs(target.row, start, without, start, attack.engine, UNSTATED)
        sure = self._method != "claims" or posterior.probability.max() == 1.0
        status = PROVED if self._true and attack.proof and sure else BELIEVED
        return TargetBeliefs(target.row, start, without, posterior, attack.engine, status)

    def _attack(self, without: int | None, off: IntArray) -> TableAttack:
        """Return the attack on the release, or on one without a row, less known records."""
        off = np.sort(off)
        key = without, off.tobytes()
        if key not in self._made:
            read = self._place.release if without is None else self._place.counterfactual(without)
            self._made[key] = self._make(read.release, off)
        return self._made[key]

    def _make(self, release: Release, off: IntArray) -> TableAttack:
        place = self._place
        if self._method == "majority":
            return MajorityAttack(_around(release, place.code, off), place.prior)
        tables = tables_of(release.tables, place.level, place.code, off)
        return (
            RecordsAttack(tables) if self._method == "reconstruction" else RefutationAttack(tables)
        )


def _belief(attack: TableAttack, target: AuditTarget, prior: RecordPrior) -> TargetBelief | None:
    weights = attack.weights(target.question, prior)
    return None if weights is None else TargetBelief.exact(weights)


def _around(release: Release, code: str, off: IntArray) -> Iterator[PublishedTables]:
    """Yield the tables of a place, and of those around it, the nearest first."""
    workload = release.tables.workload
    geography = workload.schema.geography
    for level in reversed(workload.levels):
        around = str(geography.ancestors(np.array([code]), level)[0])
        yield tables_of(release.tables, level, around, off)


# -----------------------------------------------------------------------------
# What an audit asks: of which tables, by whom, and which statements about a target.


_MAX_VALUES = 2**12


@displayed
@dataclass(frozen=True, eq=False)
class AuditQuestion:
    """The published tables, the question about each target, and the adversaries.

    Attributes
    ----------
    workload : Workload
        Published tables; targets live in places of its finest level.
    stated : tuple of str
        Attributes that a statement gives: "the target has race 2 and is not Hispanic".
    adversaries : tuple of Adversary
        Who asks, each of another name.
    concentration : float, optional
        Dirichlet concentration (:class:`RecordPrior`): pseudo-records shared by the people of a
        place.  By default fitted to the places of the population, as from an earlier census, and of
        a single place one for each cell of the schema (:meth:`RecordPrior.uniform_histograms`).
    more : float, default 1
        Records that are added in equal parts to all cells of the composition, so that nobody is
        impossible.
    methods : tuple of str, default ("posterior",)
        How adversaries conclude: ``posterior``, by the law of the records, ``reconstruction``,
        ``majority`` or ``claims``, which take published counts as true.
    """

    workload: Workload
    stated: tuple[str, ...]
    adversaries: tuple[Adversary, ...]
    concentration: float | None = None
    more: float = 1.0
    methods: tuple[str, ...] = (POSTERIOR,)

    def __post_init__(self) -> None:
        schema = check.instance(self.workload, Workload, "workload").schema
        stated = check.texts(self.stated, "stated")
        people = tuple(check.instances(self.adversaries, Adversary, "adversaries"))
        if not stated or not people:
            raise ArgumentError("stated and adversaries must hold at least one, got none")
        names = [one.name for one in people]
        if len(set(names)) < len(names):
            raise ArgumentError(f"adversaries must have different names, got {shown(names)}")
        for name in (*stated, *(a for one in people for a in one.known)):
            schema.attribute(name)
        for one in people:
            both = sorted({*one.known} & {*stated})
            if both:
                raise ArgumentError(
                    f"stated must be none of what {one.name!r} knows, got {shown(both[0])}"
                )
        if self.concentration is not None:
            check.scalar(self.concentration, "concentration", lower=0.0, bounds="(]")
        check.scalar(self.more, "more", lower=0.0, bounds="(]")
        methods = check.texts(self.methods, "methods")
        for method in methods:
            check.choice(method, "methods", METHODS)
        if not methods or len(set(methods)) < len(methods):
            raise ArgumentError(
                f"methods must be at least one, each of them once, got {shown(list(methods))}"
            )
        object.__setattr__(self, "methods", tuple(methods))
        object.__setattr__(self, "stated", tuple(stated))
        object.__setattr__(self, "adversaries", people)
        if len(self.values) > _MAX_VALUES:
            raise ArgumentError(
                f"stated must have at most {_MAX_VALUES} combinations of values, "
                f"got {len(self.values)}"
            )

    @functools.cached_property
    def values(self) -> list[str]:
        """The statements, in words."""
        schema = self.workload.schema
        texts = [""]
        for name in self.stated:
            attribute = schema.attribute(name)
            labels = attribute.labels or [
                f"{name} {code}" for code in range(attribute.first, attribute.last + 1)
            ]
            texts = [
                f"{text}, {label}" if text else str(label) for text in texts for label in labels
            ]
        return texts

    @functools.cached_property
    def value_of_cell(self) -> IntArray:
        """Which statement is true of a record of every cell of the schema."""
        schema = self.workload.schema
        found = np.zeros(schema.size, np.int64)
        for name in self.stated:
            found = found * schema.attribute(name).size + self._index[name]
        return found

    @functools.cached_property
    def _index(self) -> dict[str, IntArray]:
        """Code of every attribute in every cell of the schema, counted from 0."""
        schema = self.workload.schema
        return schema.indices(np.arange(schema.size, dtype=np.int64))

    def target_question(self, adversary: Adversary, cell: int) -> TargetQuestion:
        """Return the question about a target with a record of a cell."""
        possible = np.ones(self.workload.schema.size, np.bool_)
        for name in adversary.known:
            possible &= self._index[name] == self._index[name][cell]
        return TargetQuestion(possible, self.value_of_cell, len(self.values))


# -----------------------------------------------------------------------------


_FLOOR = 1e-3  # statements that nobody believes, ever, are left out unless they are true
_Z = 1.959963984540054
_SIZES = 2  # times the size of the largest place is what a place may have
_ERRORS = ("mean_absolute_error", "mean_squared_error", "withheld", "mean_absolute_loss")
#: Errors of no table.
NO_ERRORS = pd.DataFrame(
    {n: pd.Series(dtype="str") for n in ("level", "table")}
    | {n: pd.Series(dtype="float64") for n in _ERRORS}
)


class AuditedPopulation:
    """A population whose protections are judged by its custodian.

    Parameters
    ----------
    population : Microdata or Records
        The confidential records.  Where they have no ``blocks``, the places of the records are
        taken as a public list.
    question : AuditQuestion
        What is asked.
    seed : int
        Of releases, chains, and the choice of targets.
    around : Surroundings, optional
        Of a part of a larger population, the whole of it: priors, random numbers and numbers of
        places are then those of the whole.
    """

    def __init__(
        self,
        population: Microdata | Records,
        question: AuditQuestion,
        *,
        seed: int,
        around: Surroundings | None = None,
    ) -> None:
        self.data, self.question = _with_places(as_microdata(population)), question
        self.seed = check.integer(seed, "seed", lower=0)
        schema = question.workload.schema
        self.records = self.data.for_schema(schema)
        if not len(self.records):
            raise ArgumentError("population must hold at least one record, got none")
        self.level = question.workload.levels[-1]
        finest, at = self.records.places()
        codes = schema.geography.ancestors(finest, self.level)
        self.codes, inverse = np.unique(codes, return_inverse=True)
        self.place = inverse[at].astype(np.int64)
        self.cells = self.records.cells()
        self._order = np.argsort(self.place, kind="stable")
        self._starts = np.searchsorted(self.place[self._order], np.arange(self.codes.size + 1))
        self._all = np.bincount(self.cells, minlength=schema.size)
        self._around, self._row, self._place = around, 0, 0
        if around is not None:
            self._all, self._row, self._place = (
                around.composition,
                around.first_row,
                around.first_place,
            )

    def rows_of(self, place: int) -> IntArray:
        """Return the rows of a place."""
        found: IntArray = self._order[self._starts[place] : self._starts[place + 1]]
        return found

    def targets(self, number: int | None) -> IntArray:
        """Return the rows of targets, drawn without replacement; of everybody if there is None."""
        return drawn_targets(self.seed, len(self.records), number)

    def values_at(self, places: IntArray) -> IntArray:
        """Return (places, statements): the people of each place of whom a statement is true."""
        value = self.question.value_of_cell
        return np.array(
            [
                np.bincount(value[self.cells[self.rows_of(p)]], minlength=value.max() + 1)
                for p in places.tolist()
            ]
        )

    @functools.cached_property
    def concentration(self) -> float:
        """Dirichlet concentration: pseudo-records shared by the people of a place.

        A single place has no others that it could be held against: there it is one for each cell
        of the schema, so that every histogram is equally probable ("uniform on histograms").
        """
        given = self.question.concentration
        if given is not None:
            return float(given)
        if self._around is not None:
            return self._around.concentration
        if self.codes.size == 1:
            return float(self.question.workload.schema.size)
        return fit_place_concentration(self.values_at(sampled_places(self.seed, self.codes.size)))

    def prior(self, place: int) -> RecordPrior:
        """Return the public prior of a place: the composition of all others."""
        here = np.bincount(self.cells[self.rows_of(place)], minlength=self._all.size)
        return RecordPrior.composition(
            self.question.workload.schema,
            self._all - here,
            concentration=self.concentration,
            more=self.question.more,
            size=self._size,
            name="composition of the other places",
        )

    @property
    def largest(self) -> int:
        """Records of the largest place."""
        return int(np.diff(self._starts).max())

    @functools.cached_property
    def _size(self) -> FloatArray:
        """Equal chances of all sizes up to twice the largest place: tables may not bound it."""
        most = _SIZES * (self.largest if self._around is None else self._around.largest)
        return np.full(most + 1, 1.0 / (most + 1))

    @functools.cached_property
    def truth(self) -> PublishedTables:
        """The true tables."""
        return tabulate(self.data, self.question.workload)

    def release(
        self, protection: int, mechanism: Mechanism, *, without_row: int | None = None
    ) -> Release:
        """Return a release, or one of the data without a record from the same stream."""
        data = self.data
        if without_row is not None:
            check.integer(without_row, "without_row", lower=0, upper=len(self.records) - 1)
            data = _without(data, self.records, without_row)
        seed = int(audit_rng(self.seed, MECHANISM, protection).integers(2**63))
        rng = seed if self._around is None else named_stream(seed, self._around.code)
        return mechanism.release(data, workload=self.question.workload, rng=rng)

    def errors(self, release: Release) -> pd.DataFrame:
        """Return mean squared and mean absolute error of every table, as an agency states them.

        They are about the published counts; of ``mean_absolute_loss`` a withheld count is as wrong
        as a published 0.
        """
        return mean_errors(self.error_sums(release))

    def error_sums(self, release: Release) -> pd.DataFrame:
        """Return of every table the number of its cells and of those published, and sums."""
        lines = []
        for key, counts in release.tables.counts.items():
            off = (counts - self.truth.counts[key]).toarray()
            hidden = release.tables.hidden(*key).toarray()
            seen = np.where(hidden, 0, off).astype(float)
            lost = np.where(hidden, self.truth.counts[key].toarray(), off).astype(float)
            lines.append(
                {
                    "level": key[0],
                    "table": key[1],
                    "cells": hidden.size,
                    "seen": int((~hidden).sum()),
                    "absolute": float(np.abs(seen).sum()),
                    "squared": float((seen**2).sum()),
                    "lost": float(np.abs(lost).sum()),
                }
            )
        return pd.DataFrame(lines)

    def statements(
        self, name: str, protection: int, mechanism: Mechanism, release: Release, rows: IntArray
    ) -> pd.DataFrame:
        """Return a row for each target, adversary, reading and statement worth a thought.

        ``name`` and ``protection`` are the protection's name and number, which its random numbers
        depend on; targets ``rows`` of one place should come together.  The columns are those of
        :class:`Statements`, errors, and what is known of the target.
        """
        rows = check.count_array(rows, "rows", lower=0, upper=len(self.records) - 1)
        table_errors = self.errors(release)
        keys = zip(
            table_errors["level"].astype(str), table_errors["table"].astype(str), strict=True
        )
        mse = dict(zip(keys, table_errors["mean_squared_error"].astype(float), strict=True))
        additive = is_additive(release.spec)
        cache: dict[int, Release] = {}

        def release_without(row: int) -> Release:
            if row not in cache:
                cache[row] = self.release(protection, mechanism, without_row=row)
            return cache[row]

        frames = []
        for method in inference_methods(self.question.methods, release, release_without, mse):
            for place in np.unique(self.place[rows]).tolist():
                as_read = PlaceReading(
                    method.reading,
                    self.level,
                    str(self.codes[place]),
                    self.prior(place),
                    additive,
                    method.counterfactual,
                    (self.seed, CHAINS, protection, method.number, place + self._place),
                )
                about = {"attack": method.reading.name, "protection": name}
                asked = self._asked(place, rows[self.place[rows] == place])
                whose, targets = zip(*asked, strict=True)
                for adversary, target, beliefs in zip(
                    whose, targets, method.infer(as_read, targets), strict=True
                ):
                    about["adversary"] = adversary.name
                    frames.append(self._rows(about, place, target, beliefs))
        return pd.concat(frames, ignore_index=True)

    def _asked(self, place: int, rows: IntArray) -> Iterator[tuple[Adversary, AuditTarget]]:
        """Yield every adversary and target of a place, with the question and the known records."""
        everybody = self.rows_of(place)
        cells = dict(zip(everybody.tolist(), self.cells[everybody].tolist(), strict=True))
        for which, adversary in enumerate(self.question.adversaries):
            rng = audit_rng(self.seed, INSIDERS, which, place + self._place)
            known = known_others(adversary, cells, rows, rng)
            for row in rows.tolist():
                question = self.question.target_question(adversary, cells[row])
                yield adversary, AuditTarget(row, cells[row], question, *known[row])

    def _rows(
        self, about: dict[str, str], place: int, target: AuditTarget, beliefs: TargetBeliefs
    ) -> pd.DataFrame:
        """Return the statements about a target."""
        value, there = self.question.value_of_cell, self.cells[self.rows_of(place)]
        true, mode = int(value[target.cell]), int(np.bincount(value[there]).argmax())
        three = [beliefs.prior, beliefs.without, beliefs.posterior]
        most = np.nanmax([b.probability for b in three], axis=0)
        kept = np.flatnonzero((most >= _FLOOR) | (np.arange(most.size) == true))
        posterior, error = beliefs.posterior.probability[kept], beliefs.posterior.error[kept]
        found = {
            "attack": about["attack"],
            "adversary": about["adversary"],
            "protection": about["protection"],
            "target": str(beliefs.row + self._row),
            "statement": [self.question.values[v] for v in kept],
            "people": 1,
            "prior": beliefs.prior.probability[kept],
            "without": beliefs.without.probability[kept],
            "posterior": posterior,
            "lower": np.clip(posterior - _Z * error, 0.0, 1.0),
            "upper": np.clip(posterior + _Z * error, 0.0, 1.0),
            "correct": kept == true,
            "status": beliefs.status,
            "without_error": beliefs.without.error[kept],
            "posterior_error": error,
            "engine": beliefs.engine,
            "place": str(self.codes[place]),
            "place_size": there.size,
            "alike": int(np.count_nonzero(target.question.possible[there])),
            "nonmodal": true != mode,
        }
        return pd.DataFrame(found)


def mean_errors(sums: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of tables from sums over their cells, of all parts (``error_sums``)."""
    keys = ["level", "table"]
    total = sums.groupby(keys, sort=False).sum().reset_index()
    seen, cells = (np.maximum(total[name].to_numpy(), 1) for name in ("seen", "cells"))
    errors = (
        total["absolute"] / seen,
        total["squared"] / seen,
        (total["cells"] - total["seen"]) / total["cells"].where(total["cells"] > 0),
        total["lost"] / cells,
    )
    found: pd.DataFrame = total[keys].assign(**dict(zip(_ERRORS, errors, strict=True)))
    return found


def _with_places(data: Microdata) -> Microdata:
    """Return microdata whose places are stated: without its only resident a place is still there.

    Their coordinates are what mechanisms take where there are none.
    """
    if data.blocks is not None:
        return data
    units = [unit for unit in (data.persons, data.households) if unit is not None]
    codes = np.unique(np.concatenate([unit.geoids for unit in units]))
    blocks = pd.DataFrame({"block": codes, "x": np.arange(codes.size, dtype=float), "y": 0.0})
    return Microdata(data.persons, data.households, blocks)


def _without(data: Microdata, records: Records, row: int) -> Microdata:
    """Return microdata without one record."""
    keep = np.arange(len(records)) != row
    if data.persons is not None and len(data.persons) == len(records):
        return Microdata(data.persons.take(keep), data.households, data.blocks)
    if data.households is not None and len(data.households) == len(records):
        return Microdata(data.persons, data.households.take(keep), data.blocks)
    raise DataError("population must have a row for each record that is asked about")

"""A population under audit: questions, methods of inference, and beliefs about targets."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.randomness import generator, named_stream
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference import RecordPrior
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec, RangeSpec, Release
from bayesrisk.risk.audit.adversaries import Adversary, TargetQuestion
from bayesrisk.risk.audit.attacks import (
    POSTERIOR,
    STATEMENTS,
    InferenceMethod,
    check_method,
    choose_method,
    inference_methods,
    stated_values,
)
from bayesrisk.risk.audit.measures import empty_frame
from bayesrisk.risk.audit.place_beliefs import (
    AuditTarget,
    DrawnLaws,
    PlaceReading,
    SharedLaws,
    TargetBeliefs,
    known_others,
)
from bayesrisk.risk.audit.surroundings import (
    CHAINS,
    INSIDERS,
    MECHANISM,
    Surroundings,
    audit_rng,
    drawn_targets,
    fit_place_concentration,
    sampled_places,
)
from bayesrisk.risk.mechanism.simulation import Drawing
from bayesrisk.risk.statements.residual import counted_unit, is_additive, microdata_without
from bayesrisk.tables import Microdata, PublishedTables, Records, Table, Workload, tabulate
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.microdata import as_microdata

# -----------------------------------------------------------------------------
# What an audit asks: of which tables, by whom, and which statements about a target.


_MAX_VALUES = 2**12


@displayed
@dataclass(frozen=True, eq=False)
class AuditQuestion:
    """The published tables, the attributes to be inferred, and the adversaries.

    Attributes
    ----------
    workload : Workload
        Published tables; targets live in places of the finest level.
    stated : tuple of str
        Attributes that a statement gives: "the target has race 2 and is not Hispanic". Or the name
        of a statement, such as ``over_limit`` of households.
    adversaries : tuple of Adversary
        The adversaries, each with a different name.
    concentration : float, optional
        Dirichlet concentration (:class:`RecordPrior`): pseudo-records shared by the people of a
        place. By default it is fitted to the places of the population, as from an earlier census.
        For a single place it is one for each cell of the schema.
    methods : tuple of str, default ("posterior",)
        How adversaries infer. ``posterior`` uses the law of the records. ``reconstruction``,
        ``majority``, ``claims`` and others of :func:`available_methods` read published counts as
        true. A registered attack may have settings, ``"NAME:KEY=VALUE,KEY=VALUE"``.
    """

    workload: Workload
    stated: tuple[str, ...]
    adversaries: tuple[Adversary, ...]
    concentration: float | None = None
    methods: tuple[str, ...] = (POSTERIOR,)

    def __post_init__(self) -> None:
        schema = check.instance(self.workload, Workload, "workload").schema
        stated = check.texts(self.stated, "stated")
        people = tuple(check.instances(self.adversaries, Adversary, "adversaries"))
        if not stated or not people:
            raise ArgumentError("stated", "and adversaries must hold at least one", shown="none")
        check.each_once([one.name for one in people], "adversaries")
        for argument, attributes in [("stated", stated), *(("known", one.known) for one in people)]:
            for name in attributes:
                unknown = name not in schema.names
                if unknown and (argument != "stated" or name not in STATEMENTS.available()):
                    check.choice(name, argument, schema.names)
        for one in people:
            overlap = sorted({*one.known} & {*stated})
            if overlap:
                rule = f"cannot be among known (what {one.name!r} knows)"
                advice = ": leave it out of one of them"
                raise ArgumentError("stated", rule, got=overlap[0], advice=advice)
        if self.concentration is not None:
            check.scalar(self.concentration, "concentration", lower=0.0, bounds="(]")
        methods = check.texts(self.methods, "methods")
        for method in methods:
            choose_method(method, "methods")
            check_method(method, self.workload)
        check.each_once(methods, "methods", filled=True)
        object.__setattr__(self, "methods", tuple(methods))
        object.__setattr__(self, "stated", tuple(stated))
        object.__setattr__(self, "adversaries", people)
        if len(self.values) > _MAX_VALUES:
            raise ArgumentError(
                "stated",
                f"must have at most {_MAX_VALUES} combinations of values",
                shown=len(self.values),
            )

    @functools.cached_property
    def values(self) -> list[str]:
        """The statements, in words."""
        return stated_values(self.workload, self.stated)[0]

    @functools.cached_property
    def value_of_cell(self) -> IntArray:
        """Index of the statement that is true of a record in each schema cell."""
        return stated_values(self.workload, self.stated)[1]

    @functools.cached_property
    def _index(self) -> dict[str, IntArray]:
        """Code of every attribute in every schema cell, counted from 0."""
        schema = self.workload.schema
        return schema.indices(np.arange(schema.size, dtype=np.int64))

    def target_question(self, adversary: Adversary, cell: int) -> TargetQuestion:
        """Return an adversary's question about a target whose record is in a given cell."""
        possible = np.ones(self.workload.schema.size, np.bool_)
        for name in adversary.known:
            possible &= self._index[name] == self._index[name][cell]
        return TargetQuestion(possible, self.value_of_cell, len(self.values))


_FLOOR = 1e-3  # statements that nobody believes, ever, are left out unless they are true
_Z = 1.959963984540054
_MORE = 1.0  # records that the composition has more, in equal parts: nobody is impossible
_SIZES = 2  # times the size of the largest place is what a place may have
_DRAWINGS, _FEW = 128, 2000  # drawings that are kept, of so few records
_ERRORS = ("error", "withheld", "mean_squared_error")
#: Errors of no table.
NO_ERRORS = empty_frame(
    ["release", "level", "table", *_ERRORS], {"release": "int64", "level": "str", "table": "str"}
)


@dataclass(frozen=True, eq=False)
class PublicPrior:
    """Public knowledge about similar places: composition, largest place, concentration.

    ``composition`` has the records of each cell of the schema, and ``largest`` the number of
    records of the largest place. ``concentration`` is the Dirichlet concentration of people of one
    place.
    """

    composition: IntArray
    largest: int
    concentration: float


class AuditedPopulation:
    """A population whose protections its custodian audits.

    Parameters
    ----------
    population : Microdata or Records
        The confidential records. Without ``blocks``, the places of the records are taken as a
        public list.
    question : AuditQuestion
        The statements, the tables and the adversaries.
    seed : int
        Seed of releases, chains, and the choice of targets.
    around : Surroundings, optional
        For a part of a larger population: the whole. Priors, random numbers and numbers of places
        are then those of the whole.
    public : PublicPrior, optional
        What everybody knows of such places from elsewhere. By default it is the composition of all
        other places of the population, and their similarity.
    """

    def __init__(
        self,
        population: Microdata | Records,
        question: AuditQuestion,
        *,
        seed: int,
        around: Surroundings | None = None,
        public: PublicPrior | None = None,
    ) -> None:
        self.data, self.question = _with_places(as_microdata(population)), question
        self.seed = check.integer(seed, "seed", lower=0)
        schema = question.workload.schema
        self.records = self.data.for_schema(schema)
        if not len(self.records):
            raise ArgumentError("population", "must hold at least one record", shown="none")
        self.level = question.workload.levels[-1]
        finest, index = self.records.places()
        codes = schema.geography.ancestors(finest, self.level)
        self.codes, inverse = np.unique(codes, return_inverse=True)
        self.place = inverse[index].astype(np.int64)
        self.cells = self.records.cells()
        self._order = np.argsort(self.place, kind="stable")
        self._starts = np.searchsorted(self.place[self._order], np.arange(self.codes.size + 1))
        #: Records in each cell of the schema.
        self.composition = np.bincount(self.cells, minlength=schema.size)
        self._priors: dict[int, RecordPrior] = {}
        self._twins: dict[int, dict[int, int]] = {}
        self._drawings: dict[tuple[int, int | None], Drawing] = {}
        self._around, self._public, self._row, self._place = around, public, 0, 0
        if around is not None:
            self.composition = around.composition
            self._row, self._place = around.first_row, around.first_place

    def rows(self, place: int) -> IntArray:
        """Return the rows of a place's records."""
        return np.asarray(self._order[self._starts[place] : self._starts[place + 1]])

    def targets(self, number: int | None) -> IntArray:
        """Return the rows of targets drawn without replacement, or all rows if None."""
        return drawn_targets(self.seed, len(self.records), number)

    def tallies(self, places: IntArray) -> IntArray:
        """Return the number of each place's people for whom each statement is true."""
        value = self.question.value_of_cell
        return np.array(
            [
                np.bincount(value[self.cells[self.rows(p)]], minlength=value.max() + 1)
                for p in places.tolist()
            ]
        )

    @functools.cached_property
    def concentration(self) -> float:
        """Dirichlet concentration, as a number of pseudo-records for each place.

        A single place has no other places to compare with. There it is one for each cell of the
        schema, so that every histogram is equally probable ("uniform on histograms").
        """
        if self.question.concentration is not None:
            return float(self.question.concentration)
        if (outside := self._public or self._around) is not None:
            return outside.concentration
        if self.codes.size == 1:
            return float(self.question.workload.schema.size)
        return fit_place_concentration(self.tallies(sampled_places(self.seed, self.codes.size)))

    def prior(self, place: int) -> RecordPrior:
        """Return the prior of a place from the other places' records or from public records."""
        if place not in self._priors:
            counts = np.bincount(self.cells[self.rows(place)], minlength=self.composition.size)
            public = self._public
            self._priors[place] = RecordPrior.composition(
                self.question.workload.schema,
                self.composition - counts if public is None else public.composition,
                concentration=self.concentration,
                more=_MORE,
                size=self._size,
                name="composition of the other places" if public is None else "public records",
            )
        return self._priors[place]

    @property
    def largest(self) -> int:
        """Records of the largest place."""
        return int(np.diff(self._starts).max())

    @functools.cached_property
    def _size(self) -> FloatArray:
        """Uniform prior of a place's size, up to twice the largest place."""
        most = self.largest if self._around is None else self._around.largest
        most = _SIZES * max(most, 0 if self._public is None else self._public.largest)
        return np.full(most + 1, 1.0 / (most + 1))

    @functools.cached_property
    def truth(self) -> PublishedTables:
        """The true tables."""
        return tabulate(self.data, self.question.workload)

    def true_tables(self, workload: Workload) -> PublishedTables:
        """Return the true tables of a workload, which may differ from the audit's."""
        if workload is self.question.workload or workload == self.question.workload:
            return self.truth
        return tabulate(self.data, workload)

    def release(
        self, stream: str, number: int, mechanism: Mechanism, *, without_row: int | None = None
    ) -> Release:
        """Return a release, or one without a record that uses the same random numbers.

        The random numbers depend on the stream and on the number of the release. Settings of one
        mechanism share a stream.
        """
        seed = int(audit_rng(self.seed, MECHANISM, number, *stream.encode()).integers(2**63))
        around = self._around
        rng = generator(seed) if around is None else named_stream(seed, around.code)
        return self._drawing(mechanism, without_row).draw(rng)

    def _drawing(self, mechanism: Mechanism, without_row: int | None) -> Drawing:
        """Return the mechanism prepared for all data, or for the data without a record; cached."""
        key = id(mechanism), without_row  # a drawing holds its mechanism
        if key not in self._drawings:
            data = self.data
            if without_row is not None:
                check.integer(without_row, "without_row", lower=0, upper=len(self.records) - 1)
                data = microdata_without(data, self.records, without_row)
            while len(self._drawings) >= (_DRAWINGS if len(self.records) <= _FEW else 1):
                self._drawings.pop(next(iter(self._drawings)))
            self._drawings[key] = Drawing(mechanism, data, self.question.workload)
        return self._drawings[key]

    def error_sums(self, release: Release) -> pd.DataFrame:
        """Return the sums over each table from which mean errors are computed."""
        return error_sums(release, self.truth)

    def methods(
        self, stream: str, number: int, mechanism: Mechanism, release: Release
    ) -> Iterator[InferenceMethod]:
        """Yield the methods of inference from a release, each with its counterfactual readings."""
        squared: dict[tuple[str, str], float] = {}
        if not all(law.closed for law in release.spec.tables.values()):  # else nobody needs them
            sums = self.error_sums(release)
            keys = zip(sums["level"].astype(str), sums["table"].astype(str), strict=True)
            mean = sums["squared"] / sums["seen"].clip(lower=1)
            squared = dict(zip(keys, mean.astype(float), strict=True))

        @functools.cache
        def release_without(row: int) -> Release:
            return self.release(stream, number, mechanism, without_row=row)

        return inference_methods(self.question.methods, release, release_without, squared)

    def statements(
        self,
        name: str,
        stream: str,
        number: int,
        mechanism: Mechanism,
        release: Release,
        rows: IntArray,
        too_large: dict[tuple[str, str], set[int]] | None = None,
        law_store: DrawnLaws | None = None,
    ) -> pd.DataFrame:
        """Return a row for each target, adversary, reading and possible statement.

        ``name`` is the protection's name; ``stream`` and ``number`` are those of the ``release``.
        Targets ``rows`` of one place should be consecutive. The columns are those of
        :class:`Statements`, ``release``, whether it is ``randomised``, errors, and the known
        attributes of the target. ``too_large`` collects the readings and places that need chains,
        and the numbers of known people, for other releases of the protection. ``law_store`` has
        laws that were drawn before.
        """
        too_large = {} if too_large is None else too_large
        rows = check.count_array(rows, "rows", lower=0, upper=len(self.records) - 1)
        additive = is_additive(release.spec)
        parts = []
        laws: dict[tuple[int, int], SharedLaws] = {}
        for method in self.methods(stream, number, mechanism, release):
            for place in np.unique(self.place[rows]).tolist():
                as_read = PlaceReading(
                    method.reading,
                    self.level,
                    str(self.codes[place]),
                    self.prior(place),
                    additive,
                    method.counterfactual,
                    (self.seed, CHAINS, number, method.number, place + self._place, *name.encode()),
                    too_large.setdefault((method.reading.name, str(self.codes[place])), set()),
                    laws.setdefault((id(method.reading.release), place), ({}, {})),
                    law_store or DrawnLaws(),
                )
                place_rows = rows[self.place[rows] == place]
                names, targets = self._place_targets(place, place_rows)
                # Of people with the same record the same is believed by whoever knows as much.
                keys = [
                    (name, target.row, target.known_cells.tobytes())
                    for name, target in zip(names, targets, strict=True)
                ]
                first = dict(zip(keys, targets, strict=True))
                beliefs = dict(zip(first, method.infer(as_read, first.values()), strict=True))
                everybody = np.tile(place_rows, len(self.question.adversaries)).tolist()
                for row, key, target in zip(everybody, keys, targets, strict=True):
                    subject = (method.reading.name, key[0], name, number, str(row + self._row))
                    parts.append((*subject, *self._beliefs(place, target, beliefs[key])))
        random = randomised(release.spec, self.question.workload)
        return _statement_rows(parts, self.question.values, random)

    def _place_targets(self, place: int, rows: IntArray) -> tuple[list[str], list[AuditTarget]]:
        """Return the adversary's name and the target, for each adversary and row of a place."""
        everybody = self.rows(place)
        cells = dict(zip(everybody.tolist(), self.cells[everybody].tolist(), strict=True))
        like = self._first_twins(place)
        names, targets = [], []
        for number, adversary in enumerate(self.question.adversaries):
            rng = audit_rng(self.seed, INSIDERS, number, place + self._place)
            knowledge = known_others(adversary, cells, rows, rng)
            for row in rows.tolist():
                question = self.question.target_question(adversary, cells[row])
                names.append(adversary.name)
                targets.append(AuditTarget(like[row], cells[row], question, *knowledge[row]))
        return names, targets

    def _first_twins(self, place: int) -> dict[int, int]:
        """Return, for each row of a place, the first row with an identical record.

        Removing either of them leaves the same people.
        """
        if place not in self._twins:
            rows = self.rows(place)
            frame = counted_unit(self.data, self.records).table.take(rows).to_pandas()
            number = frame.groupby(list(frame), dropna=False, sort=False).ngroup().to_numpy()
            first = rows[np.unique(number, return_index=True)[1]]
            self._twins[place] = dict(zip(rows.tolist(), first[number].tolist(), strict=True))
        return self._twins[place]

    def _beliefs(self, place: int, target: AuditTarget, beliefs: TargetBeliefs) -> tuple[Any, ...]:
        """Return a target's description and its statements of non-negligible probability."""
        value, cells = self.question.value_of_cell, self.cells[self.rows(place)]
        true, mode = int(value[target.cell]), int(np.bincount(value[cells]).argmax())
        three = np.array(
            [b.probability for b in (beliefs.prior, beliefs.without, beliefs.posterior)]
        )
        most = np.fmax.reduce(three)
        stated = np.flatnonzero((most >= _FLOOR) | (np.arange(most.size) == true))
        n_possible = int(np.count_nonzero(target.question.possible[cells]))
        return (
            beliefs.status, beliefs.engine, str(self.codes[place]),
            cells.size, n_possible, true != mode, stated, stated == true, *three[:, stated],
            beliefs.without.error[stated], beliefs.posterior.error[stated],
        )  # fmt: skip


_TARGET_COLUMNS = (
    "attack", "adversary", "protection", "release", "target", "status", "engine", "place",
    "place_size", "alike", "nonmodal",
)  # fmt: skip
_VALUE_COLUMNS = (
    "statement", "correct", "prior", "without", "posterior", "without_error", "posterior_error",
)  # fmt: skip
_ORDER = [
    "attack", "adversary", "protection", "release", "target", "statement", "people", "prior",
    "without", "posterior", "lower", "upper", "correct", "status", "without_error",
    "posterior_error", "engine", "place", "place_size", "alike", "nonmodal", "randomised",
]  # fmt: skip


def _statement_rows(parts: list[tuple[Any, ...]], values: list[str], random: bool) -> pd.DataFrame:
    """Return a frame with one row for each statement about each target."""
    targets = list(zip(*(part[: len(_TARGET_COLUMNS)] for part in parts), strict=True))
    size = np.array([part[len(_TARGET_COLUMNS)].size for part in parts])
    frame = pd.DataFrame(
        {
            name: np.repeat(np.array(column), size)
            for name, column in zip(_TARGET_COLUMNS, targets, strict=True)
        }
    )
    columns = zip(*(part[len(_TARGET_COLUMNS) :] for part in parts), strict=True)
    for name, column in zip(_VALUE_COLUMNS, columns, strict=True):
        frame[name] = np.concatenate(column)
    frame["statement"] = np.array(values, dtype=object)[frame["statement"].to_numpy()]
    reach = _Z * frame["posterior_error"]
    frame["lower"] = (frame["posterior"] - reach).clip(0.0, 1.0)
    frame["upper"] = (frame["posterior"] + reach).clip(0.0, 1.0)
    return frame.assign(people=1, randomised=random)[_ORDER]


def randomised(spec: MechanismSpec, workload: Workload) -> bool:
    """Return True if two releases of the same records may differ."""
    laws = spec.tables.values() or [spec.likelihood(*key) for key in workload.tables]
    return any(law.random for law in laws)


def error_sums(release: Release, truth: PublishedTables) -> pd.DataFrame:
    """Return each true table's number of cells, published cells, and sums of errors."""
    lines = []
    tables = release.tables
    for key, table in truth.workload.tables.items():
        if tables.workload.tables.get(key) == table:
            best, hidden = _best_values(release, key), tables.hidden(*key).toarray()
        else:  # other tables are published instead
            best, hidden = _split_values(release, key[0], table, len(truth.geoids[key[0]]))
        off = best - truth.counts[key].toarray()
        lines.append(
            {
                "level": key[0],
                "table": key[1],
                "cells": hidden.size,
                "seen": int((~hidden).sum()),
                "absolute": float(np.abs(off).sum()),
                "squared": float((off[~hidden] ** 2).sum()),
            }
        )
    return pd.DataFrame(lines)


def _best_values(release: Release, key: tuple[str, str]) -> FloatArray:
    """Return a reader's best estimates of a table's counts.

    The estimate is the published count or the middle of its range; for a withheld count it is the
    middle of the counts that the rule withholds, or 0.
    """
    counts, law = release.tables.counts[key].toarray(), release.spec.likelihood(*key)
    threshold = release.spec.parameters.get("threshold")
    hidden = threshold / 2.0 if isinstance(threshold, int) else 0.0
    best = counts.astype(np.float64)
    if isinstance(law, RangeSpec):
        low, high = law.support(counts)
        best = np.where(high < UNBOUNDED, (low + high) / 2.0, low)
    return np.where(release.tables.hidden(*key).toarray(), hidden, best)


def _split_values(
    release: Release, level: str, table: Table, places: int
) -> tuple[FloatArray, BoolArray]:
    """Return a reader's best estimates for an unpublished table, and a mask of those without one.

    The smallest published cell that holds a cell is shared equally by all smaller ones that it
    holds; a cell that no published one holds counts as withheld, with 0 as best value.
    """
    tables = release.tables
    schema, size = tables.workload.schema, len(table.cells)
    index = {a.name: np.full(size, a.first) for a in schema.attributes}
    for name, weights in table.factors.items():
        index[name] = schema.attribute(name).first + (weights > 0).argmax(axis=1)
    record = schema.cell_index(index)  # one of every cell: what holds the cell counts it
    best, withheld = np.zeros((places, size)), np.ones((places, size), np.bool_)
    least = np.full(size, np.inf)  # kinds of records in the smallest cell so far
    for (other_level, name), other in tables.workload.tables.items():
        if other_level != level:
            continue
        holder, cell = other.incidence(schema, record).nonzero()
        extent = inner_extent = np.ones(cell.size)
        whole = np.ones(cell.size, np.bool_)
        for attribute in {*table.factors, *other.factors}:
            every = np.ones((1, schema.attribute(attribute).size), np.bool_)
            inner = table.factors[attribute][cell] > 0 if attribute in table.factors else every
            outer = other.factors[attribute][holder] > 0 if attribute in other.factors else every
            whole &= ~np.any(inner & ~outer, axis=1)
            extent, inner_extent = extent * outer.sum(axis=1), inner_extent * inner.sum(axis=1)
        group = holder[whole & (inner_extent < extent)]
        shared = np.maximum(np.bincount(group, minlength=len(other.cells)), 1)
        shared = np.where(inner_extent < extent, shared[holder], 1)
        # Of the cells of this table each takes the smallest, where it is smaller than before.
        order = np.lexsort((extent, cell))
        order = order[whole[order]]
        order = order[np.unique(cell[order], return_index=True)[1]]
        order = order[extent[order] < least[cell[order]]]
        updated = cell[order]
        best[:, updated] = _best_values(release, (level, name))[:, holder[order]] / shared[order]
        withheld[:, updated], least[updated] = False, extent[order]
    return best, withheld


def mean_errors(sums: pd.DataFrame) -> pd.DataFrame:
    """Return tables' mean errors from the sums of all parts (``error_sums``).

    ``error`` is the mean absolute error of a reader's best value of a count: the published one, or
    the middle of its range, and of a withheld count the middle of those that the rule withholds, or
    0; ``withheld`` is the share of cells; ``mean_squared_error`` is that of published counts.  A
    count that is published as a part of a larger one is an equal share of that.
    """
    keys = ["level", "table"]
    total = sums.groupby(keys, sort=False).sum().reset_index()
    cells, published = (total[name].clip(lower=1) for name in ("cells", "seen"))
    hidden = (total["cells"] - total["seen"]) / cells
    errors = total["absolute"] / cells, hidden, total["squared"] / published
    return total[keys].assign(**dict(zip(_ERRORS, errors, strict=True)))


def _with_places(data: Microdata) -> Microdata:
    """Return microdata with a list of places, so that none vanishes with its only resident.

    The places get the coordinates that mechanisms use by default.
    """
    if data.blocks is not None:
        return data
    units = [unit for unit in (data.persons, data.households) if unit is not None]
    codes = np.unique(np.concatenate([unit.geoids for unit in units]))
    blocks = pd.DataFrame({"block": codes, "x": np.arange(codes.size, dtype=float), "y": 0.0})
    return Microdata(data.persons, data.households, blocks)

"""The unknown counts of a place, and a release's information about their sums.

An unknown is the number of records of one *class* in one of the finest places. A class is a set of
cells of the schema that no published cell separates. A published cell of any level is a row, a
weighted sum of unknowns. A row is *hard* if the release states the sum. Otherwise it is *soft* and
gives a log weight to every value of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.constraints.implied import row_basis
from bayesrisk.constraints.model import ENDLESS, IntegerModel, by_columns, equal_rows, largest_alone
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.inference.microdata.contraction import WeighedModel, weighed_model
from bayesrisk.inference.microdata.prior import (
    Knowledge,
    KnownGroup,
    KnownRecords,
    RecordPrior,
    make_knowledge,
    pieces,
)
from bayesrisk.release import Likelihood, NoiseSpec, Release
from bayesrisk.tables import Table
from bayesrisk.tables.cells import CellSpace, table_cells
from bayesrisk.tables.likelihoods import UNBOUNDED

#: Most unknowns, and most values of a sum whose weights are kept.
MAX_UNKNOWNS = 2**22
MAX_SUM = 2**24
# A noisy total is taken to be right up to errors of this probability, where nothing else bounds
# the number of records.
TAIL = 1e-15


@dataclass(frozen=True)
class Layer:
    """The published cells of one geographic level."""

    level: str  # name of the level
    geoids: TextArray  # its places, inside the place that is asked about
    belongs: IntArray  # for each finest place the position of the one of these places around it
    weights: sp.csr_array  # (cells, classes): weight of a record of a class in every published cell
    counts: IntArray  # (places, cells): published counts, less what was taken off
    # (places, cells): counts of records that were taken off
    # (:meth:`MicrodataSystem.without_records`)
    removals: IntArray
    hidden: BoolArray  # (places, cells): cells that are withheld: nothing is known of them
    # what a published count says about the true one, for each cell
    likelihoods: tuple[Likelihood, ...]
    names: tuple[tuple[str, str], ...]  # (str, str): table and cell

    @property
    def exact(self) -> BoolArray:
        """Whether each cell is published without error."""
        return np.array([law.exact for law in self.likelihoods], np.bool_)

    def read(self, place: int) -> tuple[IntArray, list[Likelihood], IntArray]:
        """Return a place's informative cells, with the likelihood and count of each.

        A cell withheld by a known rule says that its count is one of those of the rule. The
        subtracted records are in all counts.
        """
        rules = [law.rule for law in self.likelihoods]
        ruled = np.array([rule is not None for rule in rules], np.bool_)
        cells = np.flatnonzero(~self.hidden[place] | ruled)
        totals = self.counts[place] + self.removals[place]
        laws, counts = [], totals[cells]
        for position, c in enumerate(cells.tolist()):
            rule = rules[c] if self.hidden[place, c] else None
            laws.append(self.likelihoods[c] if rule is None else rule)
            if rule is not None:
                counts[position] = self.likelihoods[c].withheld[0]
        return cells, laws, counts


@dataclass(frozen=True)
class MicrodataSystem:
    """A place's unknown counts, and the published sums of them.

    Unknown ``p * classes.size + c`` is the number of records of class c in place p, without known
    people. After these come the numbers of each class among the people of every group that is known
    in part.
    """

    classes: CellSpace  # classes of cells
    places: TextArray  # the finest places, inside the place that is asked about
    prior: RecordPrior  # prior of each of these places
    layers: tuple[Layer, ...]  # the published cells, level by level from the coarsest
    knowledge: Knowledge  # what is known beyond them

    @property
    def cells(self) -> int:
        """Number of pairs of a place and a class."""
        return len(self.places) * self.classes.size

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.cells + sum(group.classes.size for group in self.knowledge.groups)

    @cached_property
    def mass(self) -> FloatArray:
        """Share, or Dirichlet parameter, of every class."""
        return self.classes.mass(self.prior.shares) * (self.prior.concentration or 1.0)

    @cached_property
    def strata(self) -> list[list[Stratum]] | None:
        """The strata of every place, unknown people last; None where conditions overlap."""
        knowledge, mass = self.knowledge, self.mass
        settled = knowledge.settled.toarray()
        plain = not settled.any() or self.prior.concentration is None
        strata = []
        for place in range(len(self.places)):
            shares = mass if plain else mass + settled[place] * (mass > 0.0)
            exact_groups = [g for g in knowledge.exact_groups if g.place == place]
            groups = [g for g in knowledge.groups if g.place == place]
            conditions = _disjoint(exact_groups, groups, mass.size)
            if conditions is None:
                return None
            people = int(knowledge.people[place])
            strata.append(_place_strata(place, conditions, groups, settled[place], shares, people))
        return strata

    @property
    def unknown_cell(self) -> IntArray:
        """Position of every unknown among all pairs, ``place * classes.size + class``."""
        parts = [g.place * self.classes.size + g.classes for g in self.knowledge.groups]
        return np.concatenate([np.arange(self.cells), *parts])

    def map_unknowns(self, cells: sp.csr_array) -> sp.csr_array:
        """Return functions of all classes' counts, rewritten as functions of the unknowns."""
        if not self.knowledge.groups:
            return cells
        return sp.csr_array(sp.csc_array(cells)[:, self.unknown_cell])

    def settled(self, cells: sp.csr_array) -> IntArray:
        """Return the part of functions of counts that known people of known class contribute."""
        return np.asarray(cells @ self.knowledge.settled.toarray().ravel(), np.int64)

    def without_records(self, place: int, records: IntArray) -> MicrodataSystem:
        """Return the system with known records subtracted from a place's published counts.

        Use it if all attributes of the known records are known, for a prior on the others; and if
        the record is not knowledge, but the one missing from a release. The classes stay those of
        the tables, as one system for many targets needs. Conditions on some attributes are
        :class:`KnownRecords`, which need a new system.
        """
        layers = []
        for layer in self.layers:
            counts, removals = layer.counts.copy(), layer.removals.copy()
            counts[layer.belongs[place]] -= layer.weights @ records
            removals[layer.belongs[place]] += layer.weights @ records
            _check_true(counts, layer)
            layers.append(replace(layer, counts=counts, removals=removals))
        return replace(self, layers=tuple(layers))


def make_system(
    release: Release,
    *,
    level: str,
    place: str,
    prior: RecordPrior,
    finest: str | None = None,
    conditions: Sequence[Table] = (),
    known_people: Sequence[KnownRecords] = (),
) -> MicrodataSystem:
    """Return the system of a place from the tables of the place and of those inside it."""
    tables, workload = release.tables, release.tables.workload
    schema, geography = workload.schema, workload.schema.geography
    if prior.schema != schema:
        raise ArgumentError("prior", f"must be of schema {schema.name!r}", got=prior.schema.name)
    check.choice(level, "level", workload.levels)
    tables.row(level, place)
    bottom = workload.levels[-1]
    if finest is not None:
        bottom = check.choice(finest, "finest", workload.levels)
    if geography.rank(bottom) < geography.rank(level):
        raise ArgumentError(f"finest must not be coarser than level {level!r}, got {quote(bottom)}")
    top, low = geography.rank(level), geography.rank(bottom)
    levels = [other for other in workload.levels if top <= geography.rank(other) <= low]
    places = _descendants(tables.geoids[bottom], place)
    conditions = [*conditions, *(t for item in known_people for t in item.tables(schema))]
    published = table_cells(schema, [t for name in levels for t in workload.at(name).values()])
    classes = published.refined(conditions)
    if classes.size * len(places) > MAX_UNKNOWNS:
        raise ArgumentError(
            f"place must have at most {MAX_UNKNOWNS} unknown counts, got "
            f"{classes.size} classes in {len(places)} places"
        )
    matrices = [published.queries(workload.at(name).values()).matrix for name in levels]
    if classes is not published:  # a part of a class has its weights
        parent = published.labels(classes.representatives())
        matrices = [sp.csr_array(sp.csc_array(weights)[:, parent]) for weights in matrices]
    layers = [
        _layer(release, other, place, places, weights)
        for other, weights in zip(levels, matrices, strict=True)
    ]
    knowledge = make_knowledge(known_people, classes, places.tolist(), prior)
    return MicrodataSystem(classes, places, prior, tuple(layers), knowledge)


def _layer(
    release: Release, level: str, place: str, places: TextArray, weights: sp.csr_array
) -> Layer:
    tables, schema = release.tables, release.tables.workload.schema
    geoids = _descendants(tables.geoids[level], place)
    rows = np.searchsorted(tables.geoids[level], geoids)
    arrays, laws, names = [], [], []
    hidden: list[BoolArray] = []
    for name, table in tables.workload.at(level).items():
        law = release.spec.likelihood(level, name)
        if not _is_closed(law):
            reason = "" if law.independent else ", where cells with the same records change alike"
            raise ArgumentError(
                f"release must have a likelihood in closed form for every table, got "
                f"{law.kind!r} for table {name!r} at level {level!r}{reason}"
            )
        arrays.append(_dense(tables.counts[level, name], rows))
        mask = np.zeros(arrays[-1].shape, np.bool_)
        withheld = tables.suppressed.get((level, name))
        hidden.append(mask if withheld is None else np.asarray(_dense(withheld, rows), np.bool_))
        laws += [law] * len(table.cells)
        names += [(name, cell) for cell in table.cells]
    published = np.concatenate(arrays, axis=1).astype(np.int64)
    ancestors = np.searchsorted(geoids, schema.geography.ancestors(places, level)).astype(np.int64)
    counts = published, np.zeros(published.shape, np.int64), np.concatenate(hidden, axis=1)
    layer = Layer(level, geoids, ancestors, weights, *counts, tuple(laws), tuple(names))
    _check_true(layer.counts, layer)
    return layer


@lru_cache(maxsize=256)
def _is_closed(law: Likelihood) -> bool:
    return law.closed


def _dense(matrix: sp.csr_array, rows: IntArray) -> IntArray:
    """Return some rows of a sparse matrix as a dense array."""
    if rows.size != 1:
        return np.asarray(matrix[rows, :].toarray())
    dense = np.zeros((1, matrix.shape[1]), matrix.dtype)
    part = slice(matrix.indptr[rows[0]], matrix.indptr[rows[0] + 1])
    np.add.at(dense[0], matrix.indices[part], matrix.data[part])
    return dense


def _check_true(counts: IntArray, layer: Layer) -> None:
    """Raise if a count published as true would be negative."""
    bad = np.argwhere((counts < 0) & layer.exact & ~layer.hidden)
    if bad.size:
        i, c = bad[0]
        table, cell = layer.names[c]
        raise DataError(
            f"release states {counts[i, c]} as the true count of {cell} of table {table!r} at "
            f"{layer.level} {layer.geoids[i]}"
        )


def _descendants(geoids: TextArray, place: str) -> TextArray:
    matches: TextArray = geoids[np.strings.startswith(geoids, place)]
    return matches


# A system made small without changing its law: dead unknowns, equal columns, implied rows.


_AT_ONCE = 2000  # rows that are looked at together, or as many as there are groups
_MAX_WEIGHTS = 2**28  # of numbers of records: 2 GiB
_MAX_ENTRIES = 2**26  # of rows by groups, written out: half a GiB


class TooLargeError(ArgumentError):
    """A place has too many counts for the exact and sampling engines."""


@dataclass(frozen=True)
class PublishedRows:
    """Published cells and other sums as rows over the unknowns, net of known people.

    A *hard* row has the sum that is given; a soft one, which has weights, ends where its law does.
    """

    model: IntegerModel
    hard: BoolArray  # whether the sum is given
    counts: IntArray  # the published count
    constants: IntArray  # what known people add to the sum of the unknowns
    # what it says about the sum; None for the number of records of a place, which has a prior
    laws: list[Likelihood | None]
    names: list[str]  # how messages call the rows

    def part(self, rows: IntArray, unknowns: IntArray | None = None) -> PublishedRows:
        """Return the chosen rows over the chosen unknowns (default: all)."""
        return PublishedRows(
            self.model.part(rows, unknowns),
            self.hard[rows],
            self.counts[rows],
            self.constants[rows],
            [self.laws[r] for r in rows],
            [self.names[r] for r in rows],
        )


@dataclass(frozen=True, eq=False)
class GroupSystem(WeighedModel):
    """A system in which unknowns with equal columns are merged into groups.

    Hard rows, whose sum is given, are independent of each other; the sums of soft rows begin at 0.
    """

    group: IntArray  # the group of every unknown of the system; -1 where the count is 0 for certain
    # share of every unknown in its group: inside a group records are exchangeable
    weight: FloatArray
    mass: FloatArray  # share, or Dirichlet parameter, of every group
    hard: BoolArray
    # (runs, 2): first and last sum of the runs of every row that most of its weight is on
    # (:func:`~bayesrisk.inference.microdata.prior.pieces`)
    runs: tuple[IntArray, ...]


def presolve(system: MicrodataSystem, functions: sp.csr_array) -> tuple[GroupSystem, sp.csr_array]:
    """Return the reduced system of groups, and the functions rewritten over these groups.

    Dead unknowns and implied rows are left out, and equal columns merged.
    """
    prior, mass, rows = system.prior, _mass(system), _published_rows(system)
    model = rows.model
    for bad in np.flatnonzero(rows.hard & (model.row_high < 0)):
        raise DataError(
            f"release contradicts what is known: {rows.names[bad]} is {rows.counts[bad]}, and "
            f"{rows.constants[bad]} are known"
        )
    zero = rows.hard & (model.row_high == 0)
    alive = mass > 0.0
    alive[np.unique(model.rows[np.flatnonzero(zero), :].indices)] = False
    matrix = sp.csr_array(sp.vstack([model.rows, functions], format="csr"))
    # Unknowns with equal columns are one group: the rows of the transpose.
    living = np.flatnonzero(alive)
    label, first = equal_rows(sp.csc_array(matrix)[:, living].T)
    group, first = np.full(mass.size, -1, np.int64), living[first]
    group[living] = label
    total = np.bincount(group[alive], mass[alive], minlength=first.size).astype(float)
    weight = np.zeros(mass.size)
    weight[alive] = mass[alive] / total[group[alive]]
    rows = _drop_implied_rows(rows.part(np.flatnonzero(~zero), first), prior)
    top, high = _tops(rows)
    weights, runs = [], []
    for r, reach in enumerate(rows.model.rows @ top):
        if rows.hard[r]:
            weights.append(np.zeros(1))
            runs.append(np.full((1, 2), high[r]))
            if reach < high[r]:
                raise DataError(
                    f"release contradicts itself or the prior: {rows.names[r]} is "
                    f"{rows.counts[r]}, and other counts leave at most {reach + rows.constants[r]}"
                )
            continue
        weights.append(_log_weights(rows, r, min(int(reach), int(high[r])), prior))
        size = prior.size if rows.laws[r] is None else None
        law = weights[r] > -np.inf if size is None else size[rows.constants[r] :][: weights[r].size]
        runs.append(pieces(law.astype(float)))
    priors = log_priors(total, top, dirichlet=prior.concentration is not None)
    noise = np.array([isinstance(law, NoiseSpec) for law in rows.laws], np.bool_) & ~rows.hard
    small = weighed_model(rows.model.rows, rows.model.row_low, weights, priors, noise)
    terms = group, weight, total, rows.hard, tuple(runs)
    groups = GroupSystem(small.model, small.row_weights, small.priors, noise, *terms)
    return groups, sp.csr_array(sp.csc_array(functions)[:, first].astype(np.int64))


def log_prior(mass: FloatArray, top: int, *, dirichlet: bool) -> FloatArray:
    """Return each group's log prior weights of 0, 1, ... ``top`` records (groups, top + 1)."""
    j = np.arange(top)
    step = np.log(mass[:, None] + j) if dirichlet else np.log(mass)[:, None]
    log_weight = np.zeros((mass.size, top + 1))
    np.cumsum(step - np.log1p(j), axis=1, out=log_weight[:, 1:])
    return log_weight


def log_priors(mass: FloatArray, top: IntArray, *, dirichlet: bool) -> tuple[FloatArray, ...]:
    """Return each group's log prior weights of 0, 1, ... records up to its own maximum."""
    numbers = float(np.sum(top, dtype=float))
    if top.max(initial=0) > MAX_SUM or numbers > _MAX_WEIGHTS:
        raise TooLargeError(
            f"release must leave at most {MAX_SUM} records to each kind, and {_MAX_WEIGHTS} to all "
            f"kinds together, got {top.max()} and {numbers:.0f}; count_bounds takes any number"
        )
    priors: list[FloatArray] = [np.zeros(1)] * mass.size
    for most in np.unique(top):
        groups = np.flatnonzero(top == most)
        for g, weights in zip(
            groups, log_prior(mass[groups], int(most), dirichlet=dirichlet), strict=True
        ):
            priors[g] = weights
    return tuple(priors)


def _mass(system: MicrodataSystem) -> FloatArray:
    mass = np.tile(system.mass, len(system.places))
    if system.prior.concentration is not None:  # known people of a place say what others are like
        mass += system.knowledge.settled.toarray().ravel() * (mass > 0.0)
    return np.concatenate([mass, *(group.mass for group in system.knowledge.groups)])


def _published_rows(system: MicrodataSystem) -> PublishedRows:
    """Return rows for published cells, for the people of each place, and for knowledge."""
    matrices, hard, published, removals, names = [], [], [], [], list[str]()
    laws: list[Likelihood | None] = []
    for layer in system.layers:
        for i, geoid in enumerate(layer.geoids):
            member = sp.csr_array((layer.belongs == i).astype(np.int64)[None, :])
            # What rounding does depends on the whole count.
            cells, likelihoods, counts = layer.read(i)
            matrices.append(sp.kron(member, layer.weights[cells, :], format="csr"))
            hard.append(np.array([law.exact for law in likelihoods], np.bool_))
            published.append(counts)
            removals.append(layer.removals[i, cells])
            laws += likelihoods
            names += [" ".join((layer.level, str(geoid), *layer.names[c])) for c in cells]
    matrix = sp.csr_array(sp.vstack(matrices, format="csr"), dtype=np.int64)
    constants = [system.settled(matrix) + np.concatenate(removals)]
    n_places, n_classes, knowledge = len(system.places), system.classes.size, system.knowledge
    # The number of others: its law is that of all records, less those that are known.
    ones = sp.csr_array(np.ones((1, n_classes), np.int64))
    every = sp.kron(sp.eye_array(n_places, dtype=np.int64), ones, format="csr")
    nobody = sp.csr_array((n_places, system.size - system.cells), dtype=np.int64)
    numbers = sp.csr_array(sp.hstack([every, nobody], format="csr"))
    parts, start = [system.map_unknowns(matrix), numbers], system.cells
    for group in knowledge.groups:
        parts.append(_ones(np.arange(start, start + group.classes.size), system.size))
        start += group.classes.size
    stated = [_ones(g.place * n_classes + g.classes, system.cells) for g in knowledge.exact_groups]
    constants += [knowledge.people, np.zeros(len(knowledge.groups), np.int64)]
    if stated:
        sums = sp.csr_array(sp.vstack(stated, format="csr"))
        parts.append(system.map_unknowns(sums))
        constants.append(system.settled(sums))
    groups = [*knowledge.groups, *knowledge.exact_groups]
    exact = np.concatenate([*hard, np.zeros(n_places, np.bool_), np.ones(len(groups), np.bool_)])
    settled = np.asarray(knowledge.settled.sum(axis=1), np.int64).ravel()
    counts = np.concatenate([*published, settled, np.array([g.count for g in groups], np.int64)])
    known_counts, laws = np.concatenate(constants), [*laws, *[None] * (n_places + len(groups))]
    names += [f"number of records of {p}" for p in system.places]
    names += [f"number of {g.name}" for g in groups]
    high = _largest_counts(exact, counts, laws, system.prior)
    high = np.where(high < UNBOUNDED, high - known_counts, high)
    none = np.zeros(system.size, np.int64)
    matrix = sp.csr_array(sp.vstack(parts, format="csr"), dtype=np.int64)
    model = IntegerModel(none, none + ENDLESS, matrix, np.where(exact, high, 0), high)
    return PublishedRows(model, exact, counts, known_counts, laws, names)


def _largest_counts(
    hard: BoolArray, counts: IntArray, laws: list[Likelihood | None], prior: RecordPrior
) -> IntArray:
    high = np.where(hard, counts, UNBOUNDED)
    for r in np.flatnonzero(~hard).tolist():
        law = laws[r]
        if law is None:
            if prior.size is not None:
                high[r] = int(np.flatnonzero(prior.size)[-1])
        elif (most := int(law.support(counts[r])[1])) < UNBOUNDED:
            high[r] = max(most, 0)
    return high


def _ones(columns: IntArray, width: int) -> sp.csr_array:
    return sp.csr_array(
        (np.ones(columns.size, np.int64), columns, np.array([0, columns.size])), shape=(1, width)
    )


def _drop_implied_rows(rows: PublishedRows, prior: RecordPrior) -> PublishedRows:
    """Return the rows without those whose sum other hard rows determine."""
    matrix, right = rows.model.rows, rows.counts - rows.constants
    if np.prod(matrix.shape, dtype=float) > _MAX_ENTRIES:
        raise TooLargeError(
            f"place must have at most {_MAX_ENTRIES} pairs of a published count and a kind of "
            f"record, got {matrix.shape[0]} * {matrix.shape[1]}"
        )
    # Hard rows are kept as long as they are independent, those of few unknowns first.
    order = np.lexsort((np.diff(matrix.indptr), ~rows.hard))
    hard = order[rows.hard[order]]
    independent, step = hard[:0], max(_AT_ONCE, matrix.shape[1])
    # Some at a time, beside the independent ones of those before: all of them need a square.
    for begin in range(0, max(hard.size, 1), step):
        chosen = np.append(independent, hard[begin : begin + step])
        basis = row_basis(sp.csc_array(matrix[chosen]), right[chosen])
        independent = chosen[basis.rows]
    rest = order[~np.isin(order, independent)]
    keep = np.ones(order.size, np.bool_)
    totals = zip(*basis.totals(matrix[rest].toarray()), strict=True)
    for r, (total, part) in zip(rest.tolist(), totals, strict=True):
        if not part:
            continue
        keep[r] = False
        value = total / part + int(rows.constants[r])
        if total % part or total < 0:
            raise DataError(
                f"release contradicts itself: other counts make {rows.names[r]} {value:g}"
            )
        if rows.hard[r] and total != part * right[r]:
            raise DataError(
                f"release contradicts itself or the prior: {rows.names[r]} is "
                f"{rows.counts[r]}, and other counts make it {value:.0f}"
            )
        if rows.hard[r]:
            continue
        if _log_weight(rows, r, np.array([total // part]), prior)[0] == -np.inf:
            raise DataError(
                f"release contradicts itself or the prior: {rows.names[r]} cannot be "
                f"{value:.0f}, as other counts say"
            )
    return rows.part(np.flatnonzero(keep))


def _tops(rows: PublishedRows) -> tuple[IntArray, IntArray]:
    """Return the largest possible count of every group, and the largest sum of every row.

    Exact bounds are used where there are any, and else noisy sums.
    """
    columns, high = by_columns(rows.model.rows), rows.model.row_high
    nothing = np.zeros_like(high)
    top = largest_alone(columns, nothing, high)[0]
    if np.any(top == UNBOUNDED):
        noisy = high.copy()
        for r, law in enumerate(rows.laws):
            if isinstance(law, NoiseSpec):
                noisy[r] = max(0, int(rows.counts[r])) + int(law.to_law().isf(TAIL))
                noisy[r] -= rows.constants[r]
        top = np.where(top == UNBOUNDED, largest_alone(columns, nothing, noisy)[0], top)
        high = np.minimum(high, noisy)
    if np.any(top == UNBOUNDED):
        raise ArgumentError(
            "size must be given in the prior: no published count bounds the number of records"
        )
    return top, high


def _log_weights(rows: PublishedRows, r: int, most: int, prior: RecordPrior) -> FloatArray:
    if most > MAX_SUM:
        raise ArgumentError(
            f"release must leave at most {MAX_SUM} records to each kind and each sum, got {most}"
        )
    return _log_weight(rows, r, np.arange(most + 1), prior)


def _log_weight(rows: PublishedRows, r: int, sums: IntArray, prior: RecordPrior) -> FloatArray:
    law = rows.laws[r]
    if law is None:
        return log_size(sums, prior, int(rows.constants[r]), int(rows.counts[r]))
    sums = sums + rows.constants[r]
    if isinstance(law, NoiseSpec):
        return np.asarray(law.to_law().logpmf(int(rows.counts[r]) - sums), dtype=float)
    probability = law.probability(int(rows.counts[r]), sums)
    with np.errstate(divide="ignore"):
        weights: FloatArray = np.log(np.asarray(probability, dtype=float))
    return weights


def log_rising(x: float | FloatArray, most: int) -> FloatArray:
    """Return log of x (x + 1) ... (x + k - 1) for k = 0, 1, ... ``most`` on a last axis.

    Computed as sums of logarithms, as differences of log Gamma(x + k) lose all digits for large x.
    """
    steps = np.cumsum(np.log(np.asarray(x)[..., None] + np.arange(most)), axis=-1)
    log_product: FloatArray = np.concatenate([np.zeros((*steps.shape[:-1], 1)), steps], axis=-1)
    return log_product


def log_size(
    u: IntArray, prior: RecordPrior, known_count: int = 0, settled_count: int = 0
) -> FloatArray:
    """Return the log weight of u unknown people: P(n) u!, with a Dirichlet term if shares vary.

    Here n = u + ``known_count``, and A is the concentration and ``settled_count``, the number of
    known people whose class is known.
    """
    a = prior.concentration
    value: FloatArray = np.asarray(gammaln(u + 1.0), dtype=float)
    if a is not None:
        value = value - log_rising(a + settled_count, int(u.max()))[u]
    return value + prior.log_size(u + known_count)


# -----------------------------------------------------------------------------
# People of a place divided by what is known of them, and the laws of their numbers and kinds.


@dataclass(frozen=True)
class Stratum:
    """People of one finest place who share one law of classes, given their number."""

    place: int  # position of the place
    # (classes,): share, or Dirichlet parameter, of every class; 0 where it is impossible
    mass: FloatArray
    # how many they are; None where that has a law (of the others of a place alone)
    count: int | None
    complement: int  # people of the place outside of the stratum
    exact_count: int  # those of them of whom nobody else may be like, see ``log_size``
    name: str  # of the people who are known; empty for the others

    def log_size(self, most: int, prior: RecordPrior, total: float) -> FloatArray:
        r"""Return the log prior weight of 0, 1, ... ``most`` people, given the knowledge.

        Of u = ``exact_count`` + r people who are not known by name, ``exact_count`` have the
        classes that nobody else has. With shares it is P(n) u! / r! s**r for the share s of all
        other classes. With Dirichlet parameters of sum A, a ratio of gamma functions takes its
        place. ``total`` is the sum of the masses of all classes of the place.
        """
        r = np.arange(most + 1)
        u, s = r + self.exact_count, float(self.mass.sum())
        value: FloatArray = np.zeros(r.size)
        if self.exact_count or abs(s - total) > 1e-12 * total:  # else these terms are 0
            value += gammaln(u + 1.0) - gammaln(r + 1.0)
            if prior.concentration is None:
                value += r * np.log(s / total) if s > 0.0 else np.where(r > 0, -np.inf, 0.0)
            elif s > 0.0:
                value += log_rising(s, most) - log_rising(total + self.exact_count, most)
            else:
                value[1:] = -np.inf
        return value + prior.log_size(r + self.complement)


def _place_strata(
    place: int,
    conditions: list[KnownGroup],
    groups: list[KnownGroup],
    settled: IntArray,
    mass: FloatArray,
    people: int,
) -> list[Stratum]:
    rest, strata, exact_count = mass, [], 0
    for group in conditions:
        members = [g for g in groups if np.isin(g.classes[0], group.classes)]
        left = group.count - int(settled[group.classes].sum()) - sum(g.count for g in members)
        if left < 0:
            raise DataError(
                f"known contradicts itself: {group.name} is {group.count}, and "
                f"{group.count - left} are known"
            )
        inside = np.zeros(mass.size)
        inside[group.classes] = mass[group.classes]
        rest = np.where(inside > 0.0, 0.0, rest)
        exact_count += left
        if left:
            strata.append(Stratum(place, inside, left, 0, 0, ""))
    for group in groups:
        inside = np.zeros(mass.size)
        inside[group.classes] = group.mass
        strata.append(Stratum(place, inside, group.count, 0, 0, group.name))
    strata.append(Stratum(place, rest, None, people + exact_count, exact_count, ""))
    return strata


def _disjoint(
    conditions: list[KnownGroup], groups: list[KnownGroup], classes: int
) -> list[KnownGroup] | None:
    """Return the distinct conditions, or None if they overlap or split a known group."""
    disjoint: list[KnownGroup] = []
    owner = np.full(classes, -1, np.int64)
    for group in conditions:
        owners = np.unique(owner[group.classes])
        if owners.size == 1 and owners[0] >= 0:
            other = disjoint[owners[0]]
            if other.classes.size != group.classes.size:
                return None
            if other.count != group.count:
                raise DataError(
                    f"known contradicts itself: {group.name} is {group.count} and {other.count}"
                )
        elif np.any(owners >= 0):
            return None
        else:
            owner[group.classes] = len(disjoint)
            disjoint.append(group)
    if any(np.unique(owner[group.classes]).size > 1 for group in groups):
        return None
    return disjoint

"""The unknown counts of a place, and what a release says about sums of them.

An unknown is the number of records of one *class* in one of the finest places: a class is a set
of cells of the schema that no published cell tells apart.  A published cell of any level is a row,
a weighted sum of unknowns.  A row is *hard* where the release states the sum, and otherwise
*soft*: it gives a log weight to every value of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference.microdata.classes import Classes, classes_of, refined
from bayesrisk.inference.microdata.knowledge import Knowledge, KnownRecords, knowledge_of
from bayesrisk.inference.microdata.prior import RecordPrior
from bayesrisk.release import Likelihood, Release
from bayesrisk.tables.workload import Table, Workload

#: Most unknowns, and most values of a sum whose weights are kept.
MAX_UNKNOWNS = 2**22
MAX_SUM = 2**24
# A noisy total is taken to be right up to errors of this probability, where nothing else bounds
# the number of records.
TAIL = 1e-15


@dataclass(frozen=True)
class Layer:
    """The published cells of one level.

    Attributes
    ----------
    level : str
        Name of the level.
    geoids : ndarray of str
        Its places, inside the place that is asked about.
    belongs : ndarray of int64
        For each finest place the position of the one of these places around it.
    weights : scipy.sparse.csr_array of int64, shape (cells, classes)
        Weight of a record of a class in every published cell.
    given : ndarray of int64, shape (places, cells)
        Published counts, less what was taken off.
    off : ndarray of int64, shape (places, cells)
        Counts of records that were taken off (:meth:`MicrodataSystem.less`).
    hidden : ndarray of bool, shape (places, cells)
        Cells that are withheld: nothing is known of them.
    likelihoods : tuple of Likelihood
        What a published count says about the true one, for each cell.
    names : tuple of (str, str)
        Table and cell.
    """

    level: str
    geoids: TextArray
    belongs: IntArray
    weights: sp.csr_array
    given: IntArray
    off: IntArray
    hidden: IntArray
    likelihoods: tuple[Likelihood, ...]
    names: tuple[tuple[str, str], ...]

    @property
    def exact(self) -> IntArray:
        """Cells that are published as they are."""
        return np.array([law.exact for law in self.likelihoods], np.bool_)


@dataclass(frozen=True)
class MicrodataSystem:
    """What is unknown, and what is published about it.

    Unknown ``p * classes.size + c`` is the number of records of class c in place p, but for people
    who are known.  After these stand the numbers of each class among the people of every group
    that is known in part.

    Attributes
    ----------
    classes : Classes
        Classes of cells.
    places : ndarray of str
        The finest places, inside the place that is asked about.
    prior : RecordPrior
        Prior of each of these places.
    layers : tuple of Layer
        The published cells, level by level from the coarsest.
    known : Knowledge
        What is known beyond them.
    """

    classes: Classes
    places: TextArray
    prior: RecordPrior
    layers: tuple[Layer, ...]
    known: Knowledge

    @property
    def cells(self) -> int:
        """Number of classes in all places."""
        return len(self.places) * self.classes.size

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.cells + sum(group.classes.size for group in self.known.partly)

    @property
    def cell_of(self) -> IntArray:
        """Place and class of every unknown, as ``p * classes.size + c``."""
        parts = [g.place * self.classes.size + g.classes for g in self.known.partly]
        return np.concatenate([np.arange(self.cells), *parts])

    def over_unknowns(self, cells: sp.csr_array) -> sp.csr_array:
        """Return functions of the counts of all classes as functions of the unknowns."""
        if not self.known.partly:
            return cells
        return sp.csr_array(sp.csc_array(cells)[:, self.cell_of])

    def settled(self, cells: sp.csr_array) -> IntArray:
        """Return what known people of a known class add to functions of the counts."""
        return np.asarray(cells @ self.known.settled.toarray().ravel(), np.int64)

    def less(self, place: int, records: IntArray) -> MicrodataSystem:
        """Return the system of the other records, some being known: their counts are taken off.

        To be used where all attributes of the known records are known, for a prior of the others,
        and where the known record is no knowledge: that which a release is without.  The classes
        stay those of the tables, which one system for many targets needs.  Conditions on some
        attributes are :class:`KnownRecords`, for which a system is made anew.

        Parameters
        ----------
        place : int
            Position of a finest place.
        records : ndarray of int64, shape (classes,)
            Known records there, by class.

        Raises
        ------
        DataError
            If a count that is published as true is smaller than that of the known records.
        """
        layers = []
        for layer in self.layers:
            given, off = layer.given.copy(), layer.off.copy()
            given[layer.belongs[place]] -= layer.weights @ records
            off[layer.belongs[place]] += layer.weights @ records
            _check_true(given, layer)
            layers.append(replace(layer, given=given, off=off))
        return replace(self, layers=tuple(layers))

    def rows(self) -> Rows:
        """Return every published cell as a row over the unknowns."""
        matrices, hard, given, off, names = [], [], [], [], []
        laws: list[Likelihood | None] = []
        for layer in self.layers:
            for i, geoid in enumerate(layer.geoids):
                member = sp.csr_array((layer.belongs == i).astype(np.int64)[None, :])
                told = np.flatnonzero(~layer.hidden[i])
                matrices.append(sp.kron(member, layer.weights[told, :], format="csr"))
                hard.append(layer.exact[told])
                # What rounding does depends on the whole count.
                given.append(layer.given[i, told] + layer.off[i, told])
                off.append(layer.off[i, told])
                laws += [layer.likelihoods[c] for c in told]
                names += [" ".join((layer.level, str(geoid), *layer.names[c])) for c in told]
        matrix = sp.csr_array(sp.vstack(matrices, format="csr"), dtype=np.int64)
        known = self.settled(matrix) + np.concatenate(off)
        return Rows(
            self.over_unknowns(matrix),
            np.concatenate(hard),
            np.concatenate(given),
            known,
            laws,
            names,
        )


@dataclass
class Rows:
    """Published cells, and other sums: hard where the sum is given, soft where it has weights.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of int64
        Weight of a record in every row.
    hard : ndarray of bool
        Whether the sum is given.
    given : ndarray of int64
        The published count.
    known : ndarray of int64
        What known people add to the sum of the unknowns.
    laws : list of Likelihood or None
        What it says about the sum; None for the number of records of a place, which has a prior.
    names : list of str
        How messages call the rows.
    """

    matrix: sp.csr_array
    hard: IntArray
    given: IntArray
    known: IntArray
    laws: list[Likelihood | None]
    names: list[str]

    def keep(self, rows: IntArray) -> Rows:
        """Return some of the rows."""
        return Rows(
            sp.csr_array(self.matrix[rows, :]),
            self.hard[rows],
            self.given[rows],
            self.known[rows],
            [self.laws[r] for r in rows],
            [self.names[r] for r in rows],
        )


def system_of(
    release: Release,
    *,
    level: str,
    place: str,
    prior: RecordPrior,
    finest: str | None = None,
    apart: Sequence[Table] = (),
    known: Sequence[KnownRecords] = (),
) -> MicrodataSystem:
    """Return the system of a place: what its tables, and those of the places inside, say.

    Parameters
    ----------
    release : Release
        Tables with their likelihoods.
    level, place : str
        The place that is asked about.
    prior : RecordPrior
        Prior of the records of every finest place.
    finest : str, optional
        Level of the finest places; by default the finest level that has a table.
    apart : sequence of Table
        Tables that are not published, whose cells the classes shall tell apart all the same.
    known : sequence of KnownRecords
        What is known beyond the release.

    Returns
    -------
    MicrodataSystem
        Withheld counts and tables of other levels say nothing here.

    Raises
    ------
    ArgumentError
        If the place is unknown, the prior is of another schema, a table has no likelihood in
        closed form, or there are too many unknowns.
    DataError
        If a count that is published as true is negative.
    """
    tables, workload = release.tables, release.tables.workload
    schema, geography = workload.schema, workload.schema.geography
    if prior.schema != schema:
        raise ArgumentError(
            f"prior must be of schema {schema.name!r}, got {shown(prior.schema.name)}"
        )
    check.choice(level, "level", workload.levels)
    tables.row(level, place)
    bottom = workload.levels[-1]
    if finest is not None:
        bottom = check.choice(finest, "finest", workload.levels)
    if geography.rank(bottom) < geography.rank(level):
        raise ArgumentError(f"finest must not be coarser than level {level!r}, got {shown(bottom)}")
    levels = [
        other
        for other in workload.levels
        if geography.rank(level) <= geography.rank(other) <= geography.rank(bottom)
    ]
    places = _inside(tables.geoids[bottom], place)
    shared = _Shared(workload)
    apart = [*apart, *(t for item in known for t in item.tables(schema))]
    told = _classes(shared, tuple(levels))
    classes = refined(told, apart)
    if classes.size * len(places) > MAX_UNKNOWNS:
        raise ArgumentError(
            f"place must have at most {MAX_UNKNOWNS} unknown counts, got "
            f"{classes.size} classes in {len(places)} places"
        )
    matrices = [_weights(shared, other, told) for other in levels]
    if classes is not told:  # a part of a class has its weights
        parent = told.of_cells(classes.representatives())
        matrices = [sp.csr_array(sp.csc_array(weights)[:, parent]) for weights in matrices]
    layers = [
        _layer(release, other, place, places, weights)
        for other, weights in zip(levels, matrices, strict=True)
    ]
    knowledge = knowledge_of(known, classes, places.tolist(), prior)
    return MicrodataSystem(classes, places, prior, tuple(layers), knowledge)


@dataclass(frozen=True, eq=False)
class _Shared:
    """A workload, the same only as itself: what depends on nothing else is made once."""

    workload: Workload

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shared) and self.workload is other.workload

    def __hash__(self) -> int:
        return id(self.workload)


@lru_cache(maxsize=16)
def _classes(of: _Shared, levels: tuple[str, ...]) -> Classes:
    told = [t for level in levels for t in of.workload.at(level).values()]
    return classes_of(of.workload.schema, told)


@lru_cache(maxsize=16)
def _weights(of: _Shared, level: str, classes: Classes) -> sp.csr_array:
    """Return the weight of a record of every class in every cell of a level."""
    cells = classes.representatives()
    parts = [table.incidence(classes.schema, cells) for table in of.workload.at(level).values()]
    return sp.csr_array(sp.vstack(parts, format="csr"), dtype=np.int64)


def _layer(
    release: Release, level: str, place: str, places: TextArray, weights: sp.csr_array
) -> Layer:
    """Return the published cells of a level."""
    tables, schema = release.tables, release.tables.workload.schema
    geoids = _inside(tables.geoids[level], place)
    at = np.searchsorted(tables.geoids[level], geoids)
    given, hidden, laws, names = [], [], [], []
    for name, table in tables.workload.at(level).items():
        law = release.spec.likelihood(level, name)
        if not law.exact and law.probability(0, 0) is None:
            raise ArgumentError(
                f"release must have a likelihood in closed form for every table, got "
                f"{law.kind!r} for table {name!r} at level {level!r}"
            )
        given.append(tables.counts[level, name][at, :].toarray())
        hidden.append(tables.hidden(level, name)[at, :].toarray())
        laws += [law] * len(table.cells)
        names += [(name, cell) for cell in table.cells]
    published = np.concatenate(given, axis=1).astype(np.int64)
    layer = Layer(
        level,
        geoids,
        np.searchsorted(geoids, schema.geography.ancestors(places, level)).astype(np.int64),
        weights,
        published,
        np.zeros(published.shape, np.int64),
        np.concatenate(hidden, axis=1),
        tuple(laws),
        tuple(names),
    )
    _check_true(layer.given, layer)
    return layer


def _check_true(counts: IntArray, layer: Layer) -> None:
    """Refuse counts below 0 where they are published as true."""
    bad = np.argwhere((counts < 0) & layer.exact & ~layer.hidden)
    if bad.size:
        i, c = bad[0]
        table, cell = layer.names[c]
        raise DataError(
            f"release states {counts[i, c]} as the true count of {cell} of table {table!r} at "
            f"{layer.level} {layer.geoids[i]}"
        )


def _inside(geoids: TextArray, place: str) -> TextArray:
    """Return the places whose code begins with that of a place."""
    found: TextArray = geoids[np.strings.startswith(geoids, place)]
    return found

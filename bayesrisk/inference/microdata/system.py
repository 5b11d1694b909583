"""The unknown counts of a place, and what a release says about sums of them.

An unknown is the number of records of one *class* in one of the finest places: a class is a set
of cells of the schema that no published cell tells apart.  A published cell of any level is a row,
a weighted sum of unknowns.  A row is *hard* where the release states the sum, and otherwise
*soft*: it gives a log weight to every value of the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import FloatArray, IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference.microdata.prior import RecordPrior
from bayesrisk.release import Likelihood, Release
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Table, Workload

__all__ = ["Classes", "Layer", "MicrodataSystem", "Rows", "classes_of", "system_of"]

#: Most unknowns, and most values of a sum whose weights are kept.
MAX_UNKNOWNS = 2**22
MAX_SUM = 2**24
# A noisy total is taken to be right up to errors of this probability, where nothing else bounds
# the number of records.
TAIL = 1e-15


@dataclass(frozen=True, eq=False)
class Classes:
    """Cells of a schema that no published cell tells apart.

    Attributes
    ----------
    schema : Schema
        What the records are.
    bins : mapping of str to ndarray
        For each attribute the bin of every code, numbered from 0.
    """

    schema: Schema
    bins: Mapping[str, IntArray]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins of each attribute."""
        return tuple(int(self.bins[name].max()) + 1 for name in self.schema.names)

    @property
    def size(self) -> int:
        """Number of classes."""
        return int(np.prod(self.shape))

    def representatives(self) -> IntArray:
        """Return a cell of the schema in each class."""
        first = [np.unique(self.bins[name], return_index=True)[1] for name in self.schema.names]
        grid = np.meshgrid(*first, indexing="ij")
        cells = np.zeros(self.size, np.int64)
        for part, size in zip(grid, self.schema.shape, strict=True):
            cells = cells * size + part.ravel()
        return cells

    def of_cells(self, cells: IntArray) -> IntArray:
        """Return the class of cells of the schema."""
        index = self.schema.indices(cells)
        found = np.zeros(cells.shape, np.int64)
        for name, size in zip(self.schema.names, self.shape, strict=True):
            found = found * size + self.bins[name][index[name]]
        return found

    def mass(self, values: FloatArray | None) -> FloatArray:
        """Return the sum of the values of the cells of each class; of equal shares without any."""
        if values is None:
            mass = np.ones(1)
            for name in self.schema.names:
                part = np.bincount(self.bins[name]) / self.bins[name].size
                mass = np.multiply.outer(mass, part).ravel()
            return mass
        table = values.reshape(self.schema.shape)
        for axis, name in enumerate(self.schema.names):
            order = np.argsort(self.bins[name], kind="stable")
            starts = np.searchsorted(self.bins[name][order], np.arange(self.shape[axis]))
            table = np.add.reduceat(np.take(table, order, axis), starts, axis)
        return np.ascontiguousarray(table.ravel())


def classes_of(schema: Schema, tables: list[Table]) -> Classes:
    """Return the coarsest classes on which every cell of the tables is constant."""
    bins = {}
    for attribute in schema.attributes:
        used = [t.factors[attribute.name] for t in tables if attribute.name in t.factors]
        columns = np.concatenate([*used, np.ones((1, attribute.size), np.int64)])
        _, first, label = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        bins[attribute.name] = np.argsort(np.argsort(first))[label.ravel()].astype(np.int64)
    return Classes(schema, bins)


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
        Published counts, less those of known records.
    known : ndarray of int64, shape (places, cells)
        Counts of known records: what rounding does depends on the whole count.
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
    known: IntArray
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

    Unknown ``p * classes.size + c`` is the number of records of class c in place p.

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
    """

    classes: Classes
    places: TextArray
    prior: RecordPrior
    layers: tuple[Layer, ...]

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.places) * self.classes.size

    def less(self, place: int, records: IntArray) -> MicrodataSystem:
        """Return the system of the other records, some being known: their counts are taken off.

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
            given, known = layer.given.copy(), layer.known.copy()
            given[layer.belongs[place]] -= layer.weights @ records
            known[layer.belongs[place]] += layer.weights @ records
            _check_true(given, layer)
            layers.append(replace(layer, given=given, known=known))
        return replace(self, layers=tuple(layers))

    def rows(self) -> Rows:
        """Return every published cell as a row over the unknowns."""
        matrices, hard, given, known, names = [], [], [], [], []
        laws: list[Likelihood | None] = []
        for layer in self.layers:
            for i, geoid in enumerate(layer.geoids):
                member = sp.csr_array((layer.belongs == i).astype(np.int64)[None, :])
                told = np.flatnonzero(~layer.hidden[i])
                matrices.append(sp.kron(member, layer.weights[told, :], format="csr"))
                hard.append(layer.exact[told])
                given.append(layer.given[i, told])
                known.append(layer.known[i, told])
                laws += [layer.likelihoods[c] for c in told]
                names += [" ".join((layer.level, str(geoid), *layer.names[c])) for c in told]
        matrix = sp.csr_array(sp.vstack(matrices, format="csr"), dtype=np.int64)
        return Rows(
            matrix, np.concatenate(hard), np.concatenate(given), np.concatenate(known), laws, names
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
    given, known : ndarray of int64
        The published count less that of known records, and the latter.
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
    if apart:
        told = [t for other in levels for t in workload.at(other).values()]
        classes = classes_of(schema, [*told, *apart])
    else:
        classes = _classes(shared, tuple(levels))
    if classes.size * len(places) > MAX_UNKNOWNS:
        raise ArgumentError(
            f"place must have at most {MAX_UNKNOWNS} unknown counts, got "
            f"{classes.size} classes in {len(places)} places"
        )
    layers = []
    for other in levels:
        weights = (
            _weights(workload, other, classes) if apart else _known_weights(shared, other, classes)
        )
        layers.append(_layer(release, other, place, places, weights))
    return MicrodataSystem(classes, places, prior, tuple(layers))


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
def _known_weights(of: _Shared, level: str, classes: Classes) -> sp.csr_array:
    return _weights(of.workload, level, classes)


def _weights(workload: Workload, level: str, classes: Classes) -> sp.csr_array:
    """Return the weight of a record of every class in every cell of a level."""
    cells = classes.representatives()
    parts = [table.incidence(classes.schema, cells) for table in workload.at(level).values()]
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

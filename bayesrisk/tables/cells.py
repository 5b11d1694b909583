"""The codes that published tables distinguish, and the resulting cells of a schema.

Only the *kind* of each code decides in which cells of tables a record counts: codes are of one kind
if every table gives them the same weights. Cells of the schema whose codes are of the same kinds
form one cell of a :class:`CellSpace`. Values are numbered for that, as elsewhere.
"""

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.tables._grammar import Table
from bayesrisk.tables.schema import Schema


def renumbered(values: ArrayLike) -> IntArray:
    """Return the position of each value among the different ones."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)


def positions(values: NDArray[Any], listed: NDArray[Any]) -> IntArray:
    """Return each value's position among sorted ones, or -1 if it is not among them."""
    if not listed.size:
        return np.full(values.shape, -1)
    place = np.minimum(np.searchsorted(listed, values), listed.size - 1)
    return np.where(listed[place] == values, place, -1)


def joint_codes(labels: Sequence[IntArray], largest: int = 2**62) -> tuple[IntArray, int]:
    """Return a code for each combination of labels, and a number that all are below.

    Codes are in the order of the labels, with gaps; those beyond ``largest`` are numbered anew.
    """
    codes, span = np.zeros(len(labels[0]), np.int64), 1
    for label in labels:
        least = int(label.min(initial=0))  # below 0 where a label says that there is none
        size = int(label.max(initial=0)) - least + 1
        if span * size >= largest:  # as many numbers as there are codes so far
            codes = renumbered(codes)
            span = int(codes.max(initial=0)) + 1
        codes = codes * size + (label - least)
        span *= size
    return codes, span


def joint_kinds(labels: Sequence[IntArray]) -> IntArray:
    """Return the kinds that several classifications make together, in the order of their labels."""
    return renumbered(joint_codes(labels)[0])


def class_sizes(*columns: IntArray) -> IntArray:
    """Return for each row the number of rows with its values in all columns."""
    kinds = joint_kinds(columns)
    return np.bincount(kinds)[kinds]


def code_kinds(tables: Iterable[Table], name: str, size: int) -> IntArray:
    """Return the kind of each of the codes of an attribute, in the order of their weights."""
    labels = [table.classes[name][1] for table in tables if name in table.factors]
    return joint_kinds([np.zeros(size, np.int64), *labels])


def crossed_weights(table: Table, codes: Mapping[str, IntArray]) -> IntArray:
    """Return the weights of all combinations of some codes in each cell of a table."""
    weights = np.ones((len(table.cells), 1), np.int64)
    for name, chosen in codes.items():
        factor = np.ones((len(table.cells), chosen.size), np.int64)
        if name in table.factors:
            factor = table.factors[name][:, chosen]
        weights = (weights[:, :, None] * factor[:, None, :]).reshape(len(table.cells), -1)
    return weights


@dataclass(frozen=True, eq=False)
class CellSpace:
    """The cells of a schema after merging codes that need no distinction.

    ``bins`` has for every attribute the bin of each code, numbered from 0.
    """

    schema: Schema
    bins: Mapping[str, IntArray]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of bins of every attribute, in the order of the schema."""
        return tuple(int(self.bins[name].max()) + 1 for name in self.schema.names)

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @cached_property
    def first(self) -> dict[str, IntArray]:
        """For every attribute the first code of each bin, counted from 0."""
        return {n: np.unique(self.bins[n], return_index=True)[1] for n in self.schema.names}

    def refined(self, tables: Iterable[Table]) -> "CellSpace":
        """Return the coarsest cells inside these on which every cell of tables is constant.

        Bins are numbered in the order of their first codes. Cells that the tables do not change are
        returned themselves, so that results computed for them stay valid.
        """
        bins, tables = {}, list(tables)
        for name, old in self.bins.items():
            kinds = joint_kinds([old, code_kinds(tables, name, old.size)])
            first = np.unique(kinds, return_index=True)[1]
            bins[name] = np.argsort(np.argsort(first))[kinds].astype(np.int64)
        equal = all(np.array_equal(bins[name], self.bins[name]) for name in bins)
        return self if equal else CellSpace(self.schema, bins)

    def parts(self, cells: IntArray) -> dict[str, IntArray]:
        """Return the bin of every attribute for flat cells."""
        parts = {}
        for name, size in zip(self.schema.names[::-1], self.shape[::-1], strict=True):
            cells, parts[name] = np.divmod(cells, size)
        return parts

    def representatives(self, cells: IntArray | None = None) -> IntArray:
        """Return a cell of the schema in each of some cells, by default in all."""
        parts = self.parts(np.arange(self.size) if cells is None else cells)
        flat = np.zeros(self.size if cells is None else cells.shape, np.int64)
        for name, size in zip(self.schema.names, self.schema.shape, strict=True):
            flat = flat * size + self.first[name][parts[name]]
        return flat

    def labels(self, cells: IntArray) -> IntArray:
        """Return the cell in which each of some cells of the schema lies."""
        index = self.schema.indices(cells)
        numbers = np.zeros(cells.shape, np.int64)
        for name, size in zip(self.schema.names, self.shape, strict=True):
            numbers = numbers * size + self.bins[name][index[name]]
        return numbers

    def columns(self, cells: IntArray) -> dict[str, IntArray]:
        """Return the bins of flat cells; the code itself where an attribute was left whole."""
        parts, columns = self.parts(cells), {}
        for attribute in self.schema.attributes:
            part = parts[attribute.name]
            if self.is_whole(attribute.name):
                columns[attribute.name] = part + attribute.first
            else:
                columns[f"{attribute.name}bin"] = part
        return columns

    def is_whole(self, name: str) -> bool:
        """Return True where every code of the attribute has a bin of its own."""
        return self.bins[name].size == int(self.bins[name].max()) + 1

    def weights(self, tables: Sequence[Table]) -> dict[str, IntArray]:
        """Return for every attribute the weight of each bin in all cells of tables, (cells, bins).

        The tables must not distinguish what this space does not.
        """
        weights = {}
        for name in self.schema.names:
            first = self.first[name]
            parts = [np.zeros((0, first.size), np.int64)]
            for t in tables:
                whole = np.ones((len(t.cells), first.size), np.int64)
                parts.append(t.factors[name][:, first] if name in t.factors else whole)
            weights[name] = np.concatenate(parts)
        return weights

    def incidence(self, tables: Iterable[Table]) -> sp.csr_array:
        """Return the weight of each cell of this space in all cells of tables, (theirs, these)."""
        cells = self.representatives()
        parts = [table.incidence(self.schema, cells) for table in tables]
        matrix = sp.csr_array(sp.vstack(parts, format="csr"), dtype=np.int64)
        matrix.sort_indices()
        return matrix

    def queries(self, tables: Iterable[Table]) -> "Queries":
        """Return the published cells of tables over these cells, made once."""
        tables = tuple(tables)
        for queries in self._last_queries:
            if queries.tables == tables:
                return queries
        self._last_queries.append(Queries(self, tables))
        return self._last_queries[-1]

    @cached_property
    def _last_queries(self) -> "deque[Queries]":
        return deque(maxlen=16)

    def mass(
        self, values: FloatArray | None, factors: Mapping[str, IntArray] | None = None
    ) -> FloatArray:
        """Return the sum of values of the schema's cells in each cell; by default of equal shares.

        ``factors`` are the weights of one table cell, by which the values count.
        """
        weights = {
            n: (factors or {}).get(n, np.ones((1, 1), np.int64))[0] for n in self.schema.names
        }
        if values is None:
            mass = np.ones(1)
            for name in self.schema.names:
                bins = self.bins[name]
                part = np.bincount(bins, np.broadcast_to(weights[name], bins.shape)) / bins.size
                mass = np.multiply.outer(mass, part).ravel()
            return mass
        table = values.reshape(self.schema.shape)
        for axis, name in enumerate(self.schema.names):
            if name in (factors or {}):
                shape = [-1 if a == axis else 1 for a in range(table.ndim)]
                table = table * weights[name].reshape(shape)
            order = np.argsort(self.bins[name], kind="stable")
            starts = np.searchsorted(self.bins[name][order], np.arange(self.shape[axis]))
            table = np.add.reduceat(np.take(table, order, axis), starts, axis)
        return np.ascontiguousarray(table.ravel())


def coarsest_cells(schema: Schema, tables: Iterable[Table]) -> CellSpace:
    """Return the coarsest cells of a schema on which every cell of some tables is constant."""
    one = CellSpace(schema, {a.name: np.zeros(a.size, np.int64) for a in schema.attributes})
    return one.refined(tables)


#: The last cells: what a workload tells apart is asked for again and again.
_KEPT: deque[tuple[Schema, tuple[Table, ...], CellSpace]] = deque(maxlen=16)


def table_cells(schema: Schema, tables: Iterable[Table]) -> CellSpace:
    """Return the same as :func:`coarsest_cells`, of the last few sets of tables made once."""
    tables = tuple(tables)
    for other, kept_tables, space in _KEPT:
        if kept_tables == tables and other == schema:
            return space
    cells = coarsest_cells(schema, tables)
    # Other tables may tell the same cells apart, whose rows then stand already.
    equal = (
        space
        for other, _, space in _KEPT
        if other == schema and all(np.array_equal(b, space.bins[n]) for n, b in cells.bins.items())
    )
    _KEPT.append((schema, tables, next(equal, cells)))
    return _KEPT[-1][2]


@dataclass(frozen=True)
class Queries:
    """Published cells of some tables, table after table, over cells.

    No table distinguishes what the cells of the space do not.
    """

    space: CellSpace
    tables: tuple[Table, ...]

    @cached_property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Table and cell of every query."""
        return tuple((table.name, cell) for table in self.tables for cell in table.cells)

    @cached_property
    def table(self) -> IntArray:
        """The number of the table of every query."""
        return np.repeat(np.arange(len(self.tables)), [len(t.cells) for t in self.tables])

    @cached_property
    def factors(self) -> Mapping[str, IntArray]:
        """The weight of every bin of each attribute in the queries, (queries, bins)."""
        return self.space.weights(self.tables)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the cells, after their table's where another table has a cell of this name."""
        often = Counter(cell for _, cell in self.names)
        return tuple(c if often[c] == 1 else f"{table}: {c}" for table, c in self.names)

    @cached_property
    def matrix(self) -> sp.csr_array:
        """The incidence, one row for each query and one column for each cell."""
        return self.space.incidence(self.tables)

    def key(self, query: int) -> tuple[bytes, ...]:
        """Return the identity of the set of cells that a query counts."""
        return tuple(self.factors[name][query].tobytes() for name in self.space.schema.names)

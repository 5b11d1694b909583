"""The cells of a schema that published tables can tell apart, and the tables as sets of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables import Table
from bayesrisk.tables.schema import Schema

#: Most cells that are enumerated for one schema.
MAX_CELLS = 2_000_000


@dataclass(frozen=True)
class CellSpace:
    """The cells of a schema after values that no query distinguishes are put together.

    Attributes
    ----------
    schema : Schema
        What the records have.
    bins : Mapping of str to ndarray
        For every attribute the bin of each value, numbered in order of first appearance.
    """

    schema: Schema
    bins: Mapping[str, IntArray]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of bins of every attribute, in the order of the schema."""
        return tuple(int(self.bins[name].max()) + 1 for name in self.schema.names)

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(np.prod(self.shape))

    def columns(self, cells: IntArray) -> dict[str, IntArray]:
        """Return the bins of flat cells; the code itself where an attribute was left whole."""
        found = {}
        parts = np.unravel_index(cells, self.shape)
        for name, part in zip(self.schema.names, parts, strict=True):
            attribute = self.schema.attribute(name)
            if self.is_whole(name):
                found[name] = part.astype(np.int64) + attribute.first
            else:
                found[f"{name}bin"] = part.astype(np.int64)
        return found

    def is_whole(self, name: str) -> bool:
        """Whether every value of the attribute has a bin of its own."""
        return self.bins[name].size == int(self.bins[name].max()) + 1

    def coarser(self, cells: IntArray, space: "CellSpace") -> IntArray:
        """Return the cells of a coarser space in which the cells of this one lie."""
        index = []
        for name, part in zip(self.schema.names, np.unravel_index(cells, self.shape), strict=True):
            first = np.unique(self.bins[name], return_index=True)[1]
            index.append(space.bins[name][first][part])
        return np.ravel_multi_index(tuple(index), space.shape).astype(np.int64)


@dataclass(frozen=True)
class Queries:
    """Published cells of one level, in product form over a cell space.

    Attributes
    ----------
    space : CellSpace
        Where they live.
    names : tuple of (str, str)
        Table and cell of every query.
    factors : Mapping of str to ndarray
        For every attribute an array (queries, bins).
    table_sizes : tuple of int
        How many queries each table has, in order.
    """

    space: CellSpace
    names: tuple[tuple[str, str], ...]
    factors: Mapping[str, IntArray]
    table_sizes: tuple[int, ...]

    def key(self, at: int) -> tuple[bytes, ...]:
        """Return what identifies the set of cells that a query counts."""
        return tuple(self.factors[name][at].tobytes() for name in self.space.schema.names)

    def matrix(self) -> sp.csr_array:
        """Return the incidence, one row for each query and one column for each cell."""
        return self._matrix

    @cached_property
    def _matrix(self) -> sp.csr_array:
        supports = [self._support(at) for at in range(len(self.names))]
        return stack(supports, self.space.size)

    def _support(self, at: int) -> tuple[IntArray, IntArray]:
        cells, weight = np.zeros(1, np.int64), np.ones(1, np.int64)
        for name, size in zip(self.space.schema.names, self.space.shape, strict=True):
            factor = self.factors[name][at]
            kept = np.flatnonzero(factor)
            cells = (cells[:, None] * size + kept).ravel()
            weight = (weight[:, None] * factor[kept]).ravel()
        return cells, weight


def stack(rows: Sequence[tuple[IntArray, IntArray]], n_columns: int) -> sp.csr_array:
    """Return a sparse matrix from (columns, values) of each row."""
    ptr = np.concatenate([[0], np.cumsum([columns.size for columns, _ in rows])])
    columns = np.concatenate([c for c, _ in rows]) if rows else np.zeros(0, np.int64)
    values = np.concatenate([v for _, v in rows]) if rows else np.zeros(0, np.int64)
    return sp.csr_array((values, columns, ptr), shape=(len(rows), n_columns))


def entries(matrix: sp.csr_array, rows: IntArray, columns: IntArray) -> IntArray:
    """Return the entries of a sparse matrix with sorted indices at pairs of row and column."""
    width = matrix.shape[1]
    held = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * width + matrix.indices
    wanted = rows * width + columns
    if not held.size:
        return np.zeros(wanted.size, np.int64)
    at = np.minimum(np.searchsorted(held, wanted), held.size - 1)
    return np.where(held[at] == wanted, matrix.data[at], 0).astype(np.int64)


def space_of(schema: Schema, tables: Sequence[Table]) -> CellSpace:
    """Return the coarsest cells on which every query of the tables is constant.

    Parameters
    ----------
    schema : Schema
        The attributes of the records.
    tables : sequence of Table
        The queries.

    Returns
    -------
    CellSpace
        For the block tables of the 2010 Summary File 1: 2 sexes, 38 age bins, 63 race
        combinations and Hispanic origin, 9,576 cells.

    Raises
    ------
    ArgumentError
        If there are more than two million cells.
    """
    bins = {}
    for name in schema.names:
        size = schema.attribute(name).size
        used = [np.asarray(t.factors[name], np.int64) for t in tables if name in t.factors]
        columns = np.concatenate([*used, np.ones((1, size), np.int64)])
        _, first, label = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        bins[name] = np.argsort(np.argsort(first))[label.ravel()].astype(np.int64)
    space = CellSpace(schema, bins)
    if space.size > MAX_CELLS:
        raise ArgumentError(
            f"the tables must tell at most {MAX_CELLS} cells apart, got {space.size}"
        )
    return space


def queries(space: CellSpace, tables: Sequence[Table]) -> Queries:
    """Return the published cells of tables over a cell space.

    Parameters
    ----------
    space : CellSpace
        Cells on which the queries are constant.
    tables : sequence of Table
        The tables of one level.

    Returns
    -------
    Queries
        One for each published cell, table after table.
    """
    names = tuple((table.name, cell) for table in tables for cell in table.cells)
    sizes = tuple(len(table.cells) for table in tables)
    factors = {}
    for name in space.schema.names:
        first = np.unique(space.bins[name], return_index=True)[1]
        parts = [
            np.asarray(t.factors[name], np.int64)[:, first]
            if name in t.factors
            else np.ones((len(t.cells), first.size), np.int64)
            for t in tables
        ]
        factors[name] = np.concatenate(parts) if parts else np.ones((0, first.size), np.int64)
        if (factors[name] < 0).any():
            raise ArgumentError(f"the weights of {name} must be >= 0 for a reconstruction")
    return Queries(space, names, factors, sizes)

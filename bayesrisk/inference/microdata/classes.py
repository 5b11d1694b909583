"""Classes of cells that nothing tells apart, and conditions on records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Table

#: Codes of each attribute that a record may have; an attribute that is not named does not matter.
Condition = Mapping[str, Iterable[int]]


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

    def mass(
        self, values: FloatArray | None, within: Mapping[str, IntArray] | None = None
    ) -> FloatArray:
        """Return the sum of the values of the cells of each class; of equal shares without any.

        ``within`` counts only cells of a condition, as :func:`condition_factors` gives it.
        """
        weights = {
            n: (within or {}).get(n, np.ones((1, 1), np.int64))[0] for n in self.schema.names
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
            if name in (within or {}):
                shape = [-1 if a == axis else 1 for a in range(table.ndim)]
                table = table * weights[name].reshape(shape)
            order = np.argsort(self.bins[name], kind="stable")
            starts = np.searchsorted(self.bins[name][order], np.arange(self.shape[axis]))
            table = np.add.reduceat(np.take(table, order, axis), starts, axis)
        return np.ascontiguousarray(table.ravel())


def classes_of(schema: Schema, tables: Iterable[Table]) -> Classes:
    """Return the coarsest classes on which every cell of the tables is constant."""
    one = Classes(schema, {a.name: np.zeros(a.size, np.int64) for a in schema.attributes})
    return refined(one, tables)


def refined(classes: Classes, tables: Iterable[Table]) -> Classes:
    """Return the coarsest classes inside these on which every cell of more tables is constant.

    Classes that the tables leave as they are come back themselves: what was found for them holds.
    """
    rows: dict[str, dict[bytes, IntArray]] = {name: {} for name in classes.schema.names}
    for table in tables:
        for name, factor in table.factors.items():
            rows[name].update((row.tobytes(), row) for row in factor)  # each once: many are alike
    bins = {}
    for name, own in rows.items():
        columns = np.array([classes.bins[name], *own.values()])
        _, first, label = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        bins[name] = np.argsort(np.argsort(first))[label.ravel()].astype(np.int64)
    same = all(np.array_equal(bins[name], classes.bins[name]) for name in bins)
    return classes if same else Classes(classes.schema, bins)


def codes_of(condition: Condition, name: str) -> dict[str, tuple[int, ...]]:
    """Return the checked codes of a condition."""
    return {
        check.text(a, name): tuple(
            check.integer(v, f"{name}[{a!r}]") for v in check.items(values, name)
        )
        for a, values in check.mapping(condition, name).items()
    }


def of_classes(condition: Condition, classes: Classes) -> IntArray:
    """Return for each class whether its records fulfil a condition that it tells apart."""
    factors = condition_factors(condition, classes.schema)
    found = np.ones(1, np.int64)
    for name in classes.schema.names:
        first = np.unique(classes.bins[name], return_index=True)[1]
        part = factors[name][0][first] if name in factors else np.ones(first.size, np.int64)
        found = np.multiply.outer(found, part).ravel()
    return found


def condition_factors(condition: Condition, schema: Schema) -> dict[str, IntArray]:
    """Return a condition as the factors of a table of one cell."""
    factors = {}
    for name, codes in condition.items():
        attribute = schema.attribute(name)
        for code in codes:
            if not attribute.first <= code <= attribute.last:
                raise ArgumentError(
                    f"{name} must be from {attribute.first} to {attribute.last}, got {code}"
                )
        row = np.zeros((1, attribute.size), np.int64)
        row[0, np.array(codes, np.int64) - attribute.first] = 1
        factors[name] = row
    return factors

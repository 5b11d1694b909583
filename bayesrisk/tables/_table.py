"""A table as linear counting queries: the weight of a record in every cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError, ShapeError
from bayesrisk.tables._grammar import Part
from bayesrisk.tables.schema import Schema

_DENSE = 2**22  # entries of a dense slice of an incidence matrix


@displayed
@dataclass(frozen=True, eq=False)
class Table:
    """A table: named cells, each a weighted count of records.

    The weight of a record in cell q is the product over the attributes ``a`` named in ``factors``
    of ``factors[a][q, code - first]``; an attribute that is not named does not matter.

    Attributes
    ----------
    name : str
        Its name.
    cells : tuple of str
        Names of its cells, in order.
    factors : mapping of str to ndarray of int64
        For each attribute that matters an array (cells, codes), >= 0.
    parts : tuple
        How it was defined, for a compact description; empty when made from factors.
    """

    name: str
    cells: tuple[str, ...]
    factors: Mapping[str, IntArray]
    parts: tuple[Part, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        check.text(self.name, "name")
        cells = check.texts(self.cells, "cells")
        if not cells or len(set(cells)) != len(cells):
            raise ArgumentError(f"cells of {self.name!r} must be named, each once")
        factors = {}
        for name, values in check.mapping(self.factors, "factors").items():
            array = check.count_array(
                values, f"factors: factor {name!r} of {self.name!r}", lower=0
            ).copy()
            if array.ndim != 2 or len(array) != len(cells):
                raise ShapeError(
                    f"factors: factor {name!r} of {self.name!r} must be ({len(cells)} cells, "
                    f"codes), got shape {array.shape}"
                )
            array.setflags(write=False)
            factors[name] = array
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "factors", MappingProxyType(factors))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return (
            (self.name, self.cells) == (other.name, other.cells)
            and self.factors.keys() == other.factors.keys()
            and all(np.array_equal(v, other.factors[k]) for k, v in self.factors.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Send what it is made of to another process, which makes and checks it again."""
        return Table, (self.name, self.cells, dict(self.factors), self.parts)

    @cached_property
    def classes(self) -> dict[str, tuple[IntArray, IntArray]]:
        """For each attribute its different columns (cells, classes) and the class of each code."""
        found = {}
        for name, values in self.factors.items():
            columns, inverse = np.unique(values, axis=1, return_inverse=True)
            found[name] = columns, inverse.reshape(-1).astype(np.int64)
        return found

    def check_schema(self, schema: Schema) -> None:
        """Refuse a schema whose attributes the factors do not fit."""
        check.instance(schema, Schema, "schema")
        for name, values in self.factors.items():
            size = schema.attribute(name).size
            if values.shape[1] != size:
                raise ShapeError(
                    f"factors: factor {name!r} of {self.name!r} must have {size} codes, "
                    f"got {values.shape[1]}"
                )

    def incidence(self, schema: Schema, cells: ArrayLike) -> sparse.csr_array:
        """Return the weight of records of given schema cells in the cells of the table.

        Parameters
        ----------
        schema : Schema
            What the cell numbers belong to.
        cells : array_like of int
            Schema cells, as :meth:`Schema.cell_index` numbers them.

        Returns
        -------
        scipy.sparse.csr_array of int64
            Shape (cells of the table, len(cells)).
        """
        self.check_schema(schema)
        flat = check.as_array(cells, "cells")
        if flat.size:
            flat = check.count_array(flat, "cells", lower=0, upper=schema.size - 1)
        if flat.ndim != 1:
            raise ShapeError(f"cells must have one axis, got shape {flat.shape}")
        index = schema.indices(flat.astype(np.int64))
        key = np.zeros(len(flat), dtype=np.int64)
        for name, (columns, inverse) in self.classes.items():
            key = key * columns.shape[1] + inverse[index[name]]
        distinct, inverse = np.unique(key, return_inverse=True)
        matrix = self._of_classes(distinct)
        return sparse.csr_array(matrix[:, inverse.reshape(-1)])

    def _of_classes(self, keys: IntArray) -> sparse.csc_array:
        """Return the columns of combinations of classes, numbered in mixed radix."""
        pieces = []
        step = max(1, _DENSE // len(self.cells))
        for start in range(0, len(keys), step):
            rest = keys[start : start + step]
            weights = np.ones((len(self.cells), len(rest)), dtype=np.int64)
            for columns, _ in reversed(self.classes.values()):
                rest, digit = np.divmod(rest, columns.shape[1])
                weights *= columns[:, digit]
            pieces.append(sparse.csc_array(weights))
        if not pieces:
            return sparse.csc_array((len(self.cells), 0), dtype=np.int64)
        return sparse.csc_array(sparse.hstack(pieces, format="csc"))

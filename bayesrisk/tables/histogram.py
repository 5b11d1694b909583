"""Sparse histograms: how many records of each place are in each cell of their schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._validation import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError
from bayesrisk.tables.records import Records
from bayesrisk.tables.schema import Schema

_PENDING = 2**22  # distinct (place, cell) pairs that wait before they are merged


@displayed
@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of records by place and cell.

    Attributes
    ----------
    schema : Schema
        What the cells are.
    level : str
        Level of the places.
    geoids : ndarray of str
        The places, sorted, each once.
    counts : scipy.sparse.csr_array of int64
        Shape (places, cells of the schema); no stored zeros, columns sorted.
    """

    schema: Schema
    level: str
    geoids: NDArray[np.str_]
    counts: sparse.csr_array

    def __post_init__(self) -> None:
        width = check.instance(self.schema, Schema, "schema").geography.width(self.level)
        geoids = check.text_array(self.geoids, "geoids")
        if geoids.ndim != 1 or np.any(geoids[1:] <= geoids[:-1]):
            raise ArgumentError("geoids must be one axis of sorted places, each once")
        if np.any(np.strings.str_len(geoids) != width):
            raise ArgumentError(f"geoids must have {width} digits at level {self.level!r}")
        shape = (len(geoids), self.schema.size)
        counts = checked_matrix(self.counts, np.int64, shape, "counts")
        object.__setattr__(self, "geoids", geoids)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def from_records(
        cls, records: Records | Iterable[Records], *, level: str | None = None
    ) -> Histogram:
        """Return the counts of records, given at once or in pieces.

        Parameters
        ----------
        records : Records or iterable of Records
            Records in any order, or pieces of them that never need to be in memory together.
        level : str, optional
            Level of the places; the finest by default.

        Returns
        -------
        Histogram
            One row for each place with a record.  Memory grows with the different (place, cell)
            pairs, not with the records.

        Raises
        ------
        ArgumentError
            If there is no piece, or the pieces differ in schema.
        """
        merger: _Merger | None = None
        for piece in pieces_of(records):
            if merger is None:
                merger = _Merger(piece.schema, level or piece.schema.geography.finest)
            merger.add(piece)
        if merger is None:
            raise ArgumentError("records must have at least one piece, got none")
        return merger.histogram()

    def aggregate(self, level: str) -> Histogram:
        """Return the counts at a coarser level (or the same)."""
        place = self.schema.geography
        if place.rank(level) > place.rank(self.level):
            raise ArgumentError(f"level must be {self.level!r} or coarser, got {shown(level)}")
        above, parent = np.unique(place.ancestors(self.geoids, level), return_inverse=True)
        small, cells = compact(self.counts)
        total = summed(small, parent, len(above))
        parts = (total.data, cells[total.indices], total.indptr)
        counts = sparse.csr_array(parts, shape=(len(above), self.schema.size))
        return Histogram(self.schema, level, above, counts)

    def to_records(self) -> Records:
        """Return the records, sorted by place and cell; only at the finest level."""
        finest = self.schema.geography.finest
        if self.level != finest:
            raise ArgumentError(
                f"level must be {finest!r} to list records, got {shown(self.level)}"
            )
        rows = np.repeat(np.arange(len(self.geoids)), np.diff(self.counts.indptr))
        if self.counts.nnz and int(self.counts.data.min()) < 0:
            raise ArgumentError("counts must be >= 0 to list records")
        rows = np.repeat(rows, self.counts.data)
        cells = np.repeat(self.counts.indices.astype(np.int64), self.counts.data)
        codes = self.schema.indices(cells)
        columns = {finest: pa.array(self.geoids.tolist(), pa.string()).take(pa.array(rows))}
        for a in self.schema.attributes:
            columns[a.name] = pa.array(codes[a.name] + a.first)
        return Records(self.schema, pa.table(columns))


def pieces_of(records: Records | Iterable[Records]) -> Iterator[Records]:
    """Yield records given at once or in pieces, each checked to be records."""
    try:
        pieces = iter([records] if isinstance(records, Records) else records)
    except TypeError as error:
        raise ArgumentTypeError(
            f"records must be Records or pieces of them, got {shown(records)}"
        ) from error
    for piece in pieces:
        yield check.instance(piece, Records, "records")


def checked_matrix(values: Any, dtype: Any, shape: tuple[int, int], name: str) -> sparse.csr_array:
    """Return a matrix of whole numbers or truth values in canonical sparse form."""
    given: Any = values if sparse.issparse(values) else check.as_array(values, name)
    if given.shape != shape:
        raise ShapeError(f"{name} must have shape {shape}, got {given.shape}")
    if given.dtype.kind not in ("b" if dtype is np.bool_ else "iu"):
        raise ArgumentTypeError(f"{name} must hold {np.dtype(dtype)}, got {given.dtype}")
    matrix = sparse.csr_array(sparse.csr_array(given).astype(dtype))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def compact(counts: sparse.csr_array) -> tuple[sparse.csr_array, IntArray]:
    """Return the columns that are not all zero, and which they are.

    A product then costs what is stored, not the size of the schema.
    """
    cells, index = np.unique(counts.indices, return_inverse=True)
    parts = (counts.data, index.reshape(-1), counts.indptr)
    small = sparse.csr_array(parts, shape=(counts.shape[0], len(cells)))
    return small, cells.astype(np.int64)


def summed(counts: sparse.csr_array, parent: IntArray, size: int) -> sparse.csr_array:
    """Return the sums of rows by parent."""
    children = len(parent)
    ones = np.ones(children, dtype=np.int64)
    gather = sparse.csr_array((ones, (parent, np.arange(children))), shape=(size, children))
    return sparse.csr_array(gather @ counts)


class _Merger:
    """Counts records piece by piece: keys of place and cell, merged when many wait."""

    def __init__(self, schema: Schema, level: str) -> None:
        self.schema, self.level = schema, level
        schema.geography.rank(level)
        self.number: dict[str, int] = {}
        self.keys: list[IntArray] = []
        self.counts: list[IntArray] = []
        self.waiting = 0

    def add(self, records: Records) -> None:
        if records.schema != self.schema:
            raise ArgumentError(
                f"schemas must be the same, "
                f"got {shown(self.schema.name)} and {shown(records.schema.name)}"
            )
        places, index = records.places()
        above = self.schema.geography.ancestors(places, self.level)
        numbers = [self.number.setdefault(p, len(self.number)) for p in above.tolist()]
        if len(self.number) * self.schema.size >= 2**63:
            raise ArgumentError(
                f"places times cells must be below 2**63, got {len(self.number)} places of "
                f"{self.schema.size} cells"
            )
        keys = np.asarray(numbers, dtype=np.int64)[index] * self.schema.size + records.cells()
        keys.sort()
        self._append(keys, np.ones(len(keys), dtype=np.int64))
        if self.waiting > _PENDING:
            self._merge()

    def _append(self, keys: IntArray, counts: IntArray) -> None:
        """Store sorted keys, equal ones added up."""
        first = np.flatnonzero(np.diff(keys, prepend=-1) != 0)
        self.keys.append(keys[first])
        self.counts.append(np.add.reduceat(counts, first) if len(first) else counts)
        self.waiting += len(first)

    def _merge(self) -> None:
        if len(self.keys) < 2:
            return
        keys, counts = np.concatenate(self.keys), np.concatenate(self.counts)
        order = np.argsort(keys, kind="stable")
        self.keys, self.counts, self.waiting = [], [], 0
        self._append(keys[order], counts[order])

    def histogram(self) -> Histogram:
        self._merge()
        width = max(self.schema.geography.width(self.level), 1)
        places = np.asarray(list(self.number), dtype=f"<U{width}")
        order = np.argsort(places)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        keys = self.keys[0] if self.keys else np.zeros(0, dtype=np.int64)
        counts = self.counts[0] if self.counts else np.zeros(0, dtype=np.int64)
        rows, cells = np.divmod(keys, self.schema.size)
        shape = (len(places), self.schema.size)
        matrix = sparse.csr_array((counts, (rank[rows], cells)), shape=shape)
        return Histogram(self.schema, self.level, places[order], matrix)

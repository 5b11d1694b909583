"""Count records by place: sparse histograms of cells, and the tables of a workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.display import displayed
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.tables.microdata import Microdata
from bayesrisk.tables.published import PublishedTables, checked_matrix, checked_places
from bayesrisk.tables.records import Records, record_pieces
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Workload

_PENDING = 2**22  # distinct (place, cell) pairs that wait before they are merged


@displayed
@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of records by place and cell.

    Attributes
    ----------
    schema : Schema
        Schema of the cells.
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
        check.instance(self.schema, Schema, "schema")
        geoids = checked_places(self.geoids, self.schema, self.level, "geoids")
        counts = checked_matrix(self.counts, np.int64, (len(geoids), self.schema.size), "counts")
        object.__setattr__(self, "geoids", geoids)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def from_records(
        cls, records: Records | Iterable[Records], *, level: str | None = None
    ) -> Histogram:
        """Return the counts of records at a level, by default the finest, a row for each place.

        Pieces of records need not be in memory together: memory grows with the distinct (place,
        cell) pairs.
        """
        pieces = record_pieces(records)
        first = next(pieces, None)
        if first is None:
            raise ArgumentError("records", "must have at least one piece", shown="none")
        schema = first.schema
        level = schema.geography.finest if level is None else level
        number: dict[str, int] = {}
        pairs: list[tuple[IntArray, IntArray]] = []  # numbers of (place, cell), and their counts
        for piece in chain([first], pieces):
            _check_same(schema, piece.schema)
            places, index = piece.places()
            above = schema.geography.ancestors(places, level).tolist()
            numbers = [number.setdefault(place, len(number)) for place in above]
            if len(number) * schema.size >= 2**63:
                size = f"{len(number)} places of {schema.size} cells"
                raise ArgumentError("places", "times cells must be below 2**63", shown=size)
            keys = np.asarray(numbers, dtype=np.int64)[index] * schema.size + piece.cells()
            pairs.append(np.unique(keys, return_counts=True))
            if sum(len(part) for part, _ in pairs) > _PENDING:
                pairs = [_merged(pairs)]
        places, rank = np.unique(np.asarray(list(number), dtype=np.str_), return_inverse=True)
        keys, counts = _merged(pairs)
        rows, cells = np.divmod(keys, schema.size)
        matrix = sparse.csr_array((counts, (rank[rows], cells)), shape=(len(places), schema.size))
        return cls(schema, level, places, matrix)

    def aggregate(self, level: str) -> Histogram:
        """Return the counts at a coarser level (or the same)."""
        place = self.schema.geography
        if place.rank(level) > place.rank(self.level):
            raise ArgumentError("level", f"must be {self.level!r} or coarser", got=level)
        above, parent = np.unique(place.ancestors(self.geoids, level), return_inverse=True)
        small, cells = _compact(self.counts)
        total = row_sums(small, parent, len(above))
        parts = (total.data, cells[total.indices], total.indptr)
        counts = sparse.csr_array(parts, shape=(len(above), self.schema.size))
        return Histogram(self.schema, level, above, counts)


def tabulate(
    records: Records | Microdata | Iterable[Records],
    workload: Workload,
    *,
    geoids: ArrayLike | None = None,
) -> PublishedTables:
    """Return the tables of records at every level of a workload, counted exactly.

    Parameters
    ----------
    records : Records, Microdata or iterable of Records
        Records of the workload's schema in any order, or pieces of them.
    workload : Workload
        The tables to count.
    geoids : array_like of str, optional
        All places of the finest level, or of another level no coarser than the tables', also those
        without a record. By default those of the blocks of microdata, else those with a record.

    Notes
    -----
    The distinct (place, cell) pairs are counted first. A table is then the sparse product of those
    counts with its weights on the cells that occur. Memory grows with these pairs and with the
    nonzero counts.

    Examples
    --------
    >>> from bayesrisk.tables import Schema, Workload
    >>> people = pd.DataFrame({"block": ["500010101001000"] * 2, "sex": [0, 1], "age": [30, 4],
    ...                        "race": [1, 3], "hisp": [0, 0]})
    >>> records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    >>> tables = tabulate(records, Workload.named("sf1-block"))
    >>> tables.count("block", "P6", "500010101001000").tolist()
    [2, 1, 0, 0, 0, 0]
    """
    place = check.instance(workload, Workload, "workload").schema.geography
    if isinstance(records, pd.DataFrame):  # which would be taken for its columns
        check.instance(records, Records, "records")
    finest = workload.levels[-1]
    made_up = isinstance(records, Microdata) and records.made_up
    if isinstance(records, Microdata):
        geoids = records.geoids() if geoids is None else geoids
        records = records.for_schema(workload.schema)
    histogram = Histogram.from_records(_pieces(records, workload), level=finest)
    listed = None if geoids is None else np.unique(check.text_array(geoids, "geoids"))
    if listed is not None and np.any(np.strings.str_len(listed) < place.width(finest)):
        raise ArgumentError("geoids", f"must have {place.width(finest)} digits or more")
    small, cells = _compact(histogram.counts)
    places, counts = {}, {}
    for level in workload.levels:
        above = place.ancestors(histogram.geoids, level)
        places[level] = np.unique(above if listed is None else place.ancestors(listed, level))
        outside = ~np.isin(above, places[level])
        if outside.any():
            first = str(above[int(outside.argmax())])
            raise ArgumentError("records", "must lie in geoids", shown=f"{level} {quote(first)}")
        sums = row_sums(small, np.searchsorted(places[level], above), len(places[level]))
        for name, table in workload.at(level).items():
            weights = table.incidence(workload.schema, cells)
            counts[level, name] = sparse.csr_array(sums @ sparse.csr_array(weights.T))
    return PublishedTables(workload, places, counts, made_up=made_up)


def _merged(pairs: list[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """Return sorted keys, each once, with the sums of their counts."""
    keys, counts = (np.concatenate(part) for part in zip(*pairs, strict=True))
    distinct, index = np.unique(keys, return_inverse=True)
    # Sums below 2**53 are exact.
    return distinct, np.bincount(index, counts).astype(np.int64)


def _compact(counts: sparse.csr_array) -> tuple[sparse.csr_array, IntArray]:
    """Return the columns that are not all zero, and their positions.

    A product then costs as much as the stored entries, not as the size of the schema.
    """
    cells, index = np.unique(counts.indices, return_inverse=True)
    parts = (counts.data, index.reshape(-1), counts.indptr)
    small = sparse.csr_array(parts, shape=(counts.shape[0], len(cells)))
    return small, cells.astype(np.int64)


def row_sums(counts: sparse.csr_array, parent: IntArray, size: int) -> sparse.csr_array:
    """Return the sums of rows by parent."""
    children = len(parent)
    ones = np.ones(children, dtype=np.int64)
    gather = sparse.csr_array((ones, (parent, np.arange(children))), shape=(size, children))
    return sparse.csr_array(gather @ counts)


def _pieces(records: Records | Iterable[Records], workload: Workload) -> Iterator[Records]:
    for piece in record_pieces(records):
        _check_same(workload.schema, piece.schema)
        yield piece


def _check_same(schema: Schema, other: Schema) -> None:
    if other != schema:
        raise ArgumentError(
            f"records must be of schema {schema.name!r} ({schema.geography.name}), "
            f"got {quote(other.name)} ({other.geography.name})"
        )

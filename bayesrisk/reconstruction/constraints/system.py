"""The integer system of published tables: cells, rows, and what each row is made of.

The unknown is the histogram ``x`` of a geography over the cells of its schema, and the tables
say ``A x = c``.  Three things make the system small without changing its solutions:

- attribute values between which no query distinguishes share a cell (single years of age become
  the 38 bins of the block tables);
- rows are taken apart by differences of published cells, so that a cell lies in few, small rows
  (:mod:`bayesrisk.reconstruction.constraints.derived_rows`);
- a cell in any row that is zero is dead, and never listed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._validation import IntArray
from bayesrisk.reconstruction.constraints.cells import CellSpace, Queries, queries, space_of
from bayesrisk.reconstruction.constraints.derived_rows import (
    HIDDEN,
    coupling_family,
    joined,
    person_families,
    spanned,
)
from bayesrisk.tables import Table

# -----------------------------------------------------------------------------
# Rows that couple the blocks of a larger place, such as the tract tables by single years of age.
#
# The tables PCT12A-G and PCT12I-O fix every count of sex x age x 7 race classes x Hispanic origin
# in a tract.  Summed over the ages of a bin they couple the blocks, and whatever solves block rows
# and coupling rows can be given single years of age afterwards: within sex, bin, class and origin
# the block tables do not tell ages apart, so any assignment with the published ages will do.


@dataclass(frozen=True)
class Coupling:
    """Rows of a larger place over the cells of its blocks.

    Attributes
    ----------
    queries : Queries
        The published cells of the larger place, over cells that they tell apart.
    derivation : scipy.sparse.csr_array
        Rows in terms of published cells.
    rows : scipy.sparse.csr_array
        Rows over the cells of the blocks.
    family : ndarray of int64
        The family of each row.
    detail : scipy.sparse.csr_array or None
        Counts of finer rows in terms of published cells, when the cells of the blocks are coarser
        than the tables of the place.
    detail_cell : ndarray of int64
        The first fine cell of every finer row.
    detail_row : ndarray of int64
        The row in which every finer row lies.
    """

    queries: Queries
    derivation: sp.csr_array
    rows: sp.csr_array
    family: IntArray
    detail: sp.csr_array | None
    detail_cell: IntArray
    detail_row: IntArray


def coarse_coupling(
    space: CellSpace, own: Sequence[Table], tables: Sequence[Table]
) -> Coupling | None:
    """Return rows over the cells of the blocks that are as good as all tables of the place.

    Parameters
    ----------
    space : CellSpace
        The cells of the blocks.
    own : sequence of Table
        The tables of the blocks.
    tables : sequence of Table
        The tables of the larger place.

    Returns
    -------
    Coupling or None
        None when the tables are not such that what is finer can be filled in afterwards.
    """
    fine = space_of(space.schema, [*own, *tables])
    published = queries(fine, tables)
    family = coupling_family(published)
    if family is None:
        return None
    coarse = fine.coarser(family.rows.indices.astype(np.int64), space)
    sizes = np.diff(family.rows.indptr)
    first = np.minimum.reduceat(coarse, family.rows.indptr[:-1])
    keys, group = np.unique(first, return_inverse=True)
    merge = sp.csr_array(
        (np.ones(group.size, np.int64), (group, np.arange(group.size))),
        shape=(keys.size, group.size),
    )
    pairs = np.unique(np.stack([np.repeat(group, sizes), coarse]), axis=1)
    if np.unique(pairs[1]).size < pairs.shape[1]:
        return None  # rows that overlap on the coarse cells could not be summed
    rows = sp.csr_array(
        (np.ones(pairs.shape[1], np.int64), (pairs[0], pairs[1])), shape=(keys.size, space.size)
    )
    return Coupling(
        queries=published,
        derivation=sp.csr_array(merge @ family.derivation),
        rows=rows,
        family=np.zeros(keys.size, np.int64),
        detail=family.derivation,
        detail_cell=np.minimum.reduceat(family.rows.indices, family.rows.indptr[:-1]).astype(
            np.int64
        ),
        detail_row=group.astype(np.int64),
    )


def whole_coupling(space: CellSpace, tables: Sequence[Table]) -> Coupling:
    """Return the published cells of the place as they are, over cells that they tell apart.

    Parameters
    ----------
    space : CellSpace
        Cells on which the tables are constant.
    tables : sequence of Table
        The tables of the larger place.

    Returns
    -------
    Coupling
        One row for each published cell.
    """
    published = queries(space, tables)
    count = len(published.names)
    none = np.zeros(0, np.int64)
    return Coupling(
        queries=published,
        derivation=sp.csr_array(sp.eye_array(count, dtype=np.int64)),
        rows=published.matrix(),
        family=np.arange(count, dtype=np.int64),
        detail=None,
        detail_cell=none,
        detail_row=none,
    )


# -----------------------------------------------------------------------------


@dataclass(frozen=True)
class CellSystem:
    """Rows of an integer system over cells, made of published cells.

    Attributes
    ----------
    queries : Queries
        The published cells.
    derivation : scipy.sparse.csr_array
        Rows in terms of published cells: ``row counts = derivation @ published counts``.
    cell_ptr, cell_row, cell_coef : ndarray of int64
        The rows of every cell with its coefficient in each.
    cover_ptr, cover_cell : ndarray of int64
        Cells of each row of a set of rows that holds every cell exactly once; other rows are
        empty here.  When no rows do, one more row without a count does.
    family : ndarray of int64
        The family of each row: rows of one family share no cell.
    reduced : bool
        Whether rows are differences of published cells rather than the published cells.
    """

    queries: Queries
    derivation: sp.csr_array
    cell_ptr: IntArray
    cell_row: IntArray
    cell_coef: IntArray
    cover_ptr: IntArray
    cover_cell: IntArray
    family: IntArray
    reduced: bool

    @property
    def space(self) -> CellSpace:
        """The cells."""
        return self.queries.space

    @property
    def n_rows(self) -> int:
        """Number of rows that have a count."""
        return int(self.derivation.shape[0])

    def rows_of(self, counts: sp.csr_array) -> sp.csr_array:
        """Return the counts of the rows for each geography, zeros left out."""
        rows = sp.csr_array(counts @ self.derivation.T)
        if self.cover_ptr[-1] > self.cover_ptr[-2]:  # the row without a count is in every block
            column = np.full((rows.shape[0], 1), HIDDEN, np.int64)
            rows = sp.csr_array(sp.hstack([rows, sp.csr_array(column)], format="csr"))
        rows.eliminate_zeros()
        rows.sort_indices()
        return rows

    def describe(self, row: int) -> str:
        """Return the published cells that a row is made of, as ``+P012A003 -P012I003``."""
        if row >= self.n_rows:
            return "(no published cell)"
        part = self.derivation[[row]].tocoo()
        terms = sorted(zip(part.data.tolist(), part.coords[1].tolist(), strict=True), reverse=True)
        names = [self.queries.names[at][1] for _, at in terms]
        if len(terms) == 1 and terms[0][0] == 1:
            return names[0]
        signs = ["+" if c == 1 else "-" if c == -1 else f"{c:+d} " for c, _ in terms]
        return " ".join(sign + name for sign, name in zip(signs, names, strict=True))


def assemble(
    published: Queries,
    rows: sp.csr_array,
    derivation: sp.csr_array,
    family: IntArray,
    *,
    reduced: bool,
) -> CellSystem:
    """Return the system of ``rows`` (rows by cells) with its cover."""
    columns = sp.csc_array(rows)
    columns.sort_indices()
    cover_ptr, cover_cell = _cover(rows, family)
    return CellSystem(
        queries=published,
        derivation=derivation,
        cell_ptr=columns.indptr.astype(np.int64),
        cell_row=columns.indices.astype(np.int64),
        cell_coef=columns.data.astype(np.int64),
        cover_ptr=cover_ptr,
        cover_cell=cover_cell,
        family=family,
        reduced=reduced,
    )


def _cover(rows: sp.csr_array, family: IntArray) -> tuple[IntArray, IntArray]:
    """Return the cells of the family with most rows that holds every cell once."""
    n_rows, n_cells = rows.shape
    candidates = []
    for label in np.unique(family):
        members = np.flatnonzero(family == label)
        cells = np.concatenate([rows.indices[rows.indptr[r] : rows.indptr[r + 1]] for r in members])
        if cells.size == n_cells and np.unique(cells).size == n_cells:
            candidates.append((members.size, members, cells))
    sizes = np.zeros(n_rows + 1, np.int64)
    if not candidates:
        sizes[n_rows] = n_cells
        cells = np.arange(n_cells)
        return np.concatenate([[0], np.cumsum(sizes)]), cells
    _, members, cells = max(candidates, key=lambda c: c[0])
    sizes[members] = np.diff(rows.indptr)[members]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), cells.astype(np.int64)


def raw_system(published: Queries) -> CellSystem:
    """Return the system whose rows are the published cells themselves."""
    rows = published.matrix()
    count = len(published.names)
    labels = np.repeat(np.arange(len(published.table_sizes)), published.table_sizes)
    family = _disjoint_families(rows, labels.astype(np.int64))
    identity = sp.csr_array(sp.eye_array(count, dtype=np.int64))
    return assemble(published, rows, identity, family, reduced=False)


def _disjoint_families(rows: sp.csr_array, labels: IntArray) -> IntArray:
    """Return ``labels``, with a family of its own for every row of a table whose rows overlap."""
    family = labels.copy()
    following = int(labels.max()) + 1 if labels.size else 0
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        used = np.concatenate([rows.indices[rows.indptr[r] : rows.indptr[r + 1]] for r in members])
        if np.unique(used).size < used.size:
            family[members] = following + np.arange(members.size)
            following += members.size
    return family


def reduced_system(published: Queries) -> CellSystem:
    """Return the system whose rows are differences of published cells where that helps.

    Parameters
    ----------
    published : Queries
        The published cells.

    Returns
    -------
    CellSystem
        With the same solutions as :func:`raw_system` for tables that add up.
    """
    families = person_families(published)
    if not families:
        return raw_system(published)
    matrix = published.matrix()
    left = np.flatnonzero(~spanned(matrix, [*families, *joined(families)]))
    derivation = [family.derivation for family in families]
    labels = [np.full(f.derivation.shape[0], at) for at, f in enumerate(families)]
    # What no family spans stays as it was published, each row a family of its own.
    pick = sp.csr_array(
        (np.ones(left.size, np.int64), (np.arange(left.size), left)),
        shape=(left.size, len(published.names)),
    )
    labels.append(len(families) + np.arange(left.size))
    stacked = sp.csr_array(sp.vstack([*derivation, pick], format="csr"))
    rows = sp.csr_array(stacked @ matrix)
    rows.eliminate_zeros()
    rows.sort_indices()
    family = np.concatenate(labels).astype(np.int64)
    return assemble(published, rows, stacked, family, reduced=True)


# -----------------------------------------------------------------------------
# Details that only the larger place publishes, such as single years of age, given to records.


def detailed_cells(
    coupling: Coupling, counts: sp.csr_array, group: IntArray, block: IntArray, cell: IntArray
) -> IntArray:
    """Return for every record the row of the larger place's detailed tables that it gets.

    Within a place and a row (sex, age bin, race class, Hispanic origin) records are taken in the
    order of block, then cell (race, Hispanic origin), and get the published single years of age
    from the youngest to the oldest.  The tables do not say more: any other order is as good.

    Parameters
    ----------
    coupling : Coupling
        Rows of the larger place, with their details.
    counts : scipy.sparse.csr_array
        Published counts of the places.
    group : ndarray of int64
        The place of every record.
    block, cell : ndarray of int64
        Block and cell of every record, sorted by block and then cell.

    Returns
    -------
    ndarray of int64
        The detailed row of every record; -1 where the published counts leave none.
    """
    if coupling.detail is None:
        return np.full(block.size, -1, np.int64)
    detail = sp.csr_array(counts @ coupling.detail.T).tocoo()
    columns = sp.csc_array(coupling.rows)
    row = columns.indices[columns.indptr[cell]].astype(np.int64)
    order = np.lexsort((cell, block, row, group))
    place, fine = (part.astype(np.int64) for part in detail.coords)
    by_age = np.lexsort((coupling.detail_cell[fine], coupling.detail_row[fine], place))
    size = np.maximum(detail.data[by_age], 0)
    offered_place = np.repeat(place[by_age], size)
    offered = np.repeat(fine[by_age], size)
    # Both lists are sorted by place and row: the n-th record of a key gets the n-th offer of it.
    width = coupling.rows.shape[0]
    wanted_key = group[order] * width + row[order]
    offered_key = offered_place * width + coupling.detail_row[offered]
    rank = np.arange(order.size) - np.searchsorted(wanted_key, wanted_key)
    at = np.searchsorted(offered_key, wanted_key) + rank
    found = at < np.searchsorted(offered_key, wanted_key, side="right")
    result = np.full(block.size, -1, np.int64)
    result[order[found]] = offered[at[found]]
    return result

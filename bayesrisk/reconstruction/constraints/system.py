"""The integer system of published tables: cells, rows, and what each row is made of.

The unknown is the histogram ``x`` of a geography over the cells of its schema, and the tables
say ``A x = c``.  Three things make the system small without changing its solutions:

- attribute values between which no query distinguishes share a cell (single years of age become
  the 38 bins of the block tables);
- rows are taken apart by differences of published cells, so that a cell lies in few, small rows
  (:mod:`bayesrisk.reconstruction.constraints.derived_rows`);
- a cell in any row that is zero is dead, and never listed.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.constraints.cells import CellSpace, Queries
from bayesrisk.reconstruction.constraints.derived_rows import joined, person_families, spanned
from bayesrisk.reconstruction.constraints.kernels import HIDDEN


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

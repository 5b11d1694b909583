"""Rows that couple the blocks of a larger place, such as the tract tables by single years of age.

The tables PCT12A-G and PCT12I-O fix every count of sex x age x 7 race classes x Hispanic origin
in a tract.  Summed over the ages of a bin they couple the blocks, and whatever solves block rows
and coupling rows can be given single years of age afterwards: within sex, bin, class and origin
the block tables do not tell ages apart, so any assignment with the published ages will do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.constraints.cells import CellSpace, Queries, queries, space_of
from bayesrisk.reconstruction.constraints.derived_rows import coupling_family
from bayesrisk.tables.workload import Table


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

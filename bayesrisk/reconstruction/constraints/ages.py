"""Details that only the larger place publishes, such as single years of age, given to records."""

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.constraints.coupling import Coupling


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

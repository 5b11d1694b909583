"""Claims that a table states itself: some of its cells, added up, are the claim.

Where cells of a table overlap (totals and subtotals), cells are taken from the largest down, each
that is inside the claim and apart from those taken: with nested cells this finds every sum.
"""

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import BoolArray, IntArray
from bayesrisk.reconstruction.claims.search import kernels
from bayesrisk.reconstruction.claims.search.problem import BlockSystem
from bayesrisk.reconstruction.claims.search.space import ClaimSpace, Stated


def readable_here(
    space: ClaimSpace, system: BlockSystem, patterns: NDArray[np.int16], size: IntArray
) -> BoolArray:
    """Return which claims are sums of cells of one table, dead cells left out.

    Parameters
    ----------
    space : ClaimSpace
        Tables.
    system : BlockSystem
        The block.
    patterns : ndarray of int16
        Value of every attribute, -1 for any.
    size : ndarray of int64
        Live cells that match, for each claim.

    Returns
    -------
    ndarray of bool
        One answer for each claim; a claim that no live cell matches is a sum of no cells.
    """
    stated = space.stated(system.cells, system.published)
    return np.asarray((size == 0) | _sums(space, stated, system.cells, patterns, size), np.bool_)


def readable_everywhere(
    space: ClaimSpace, patterns: NDArray[np.int16], size: IntArray
) -> BoolArray:
    """Return which claims are sums of cells of one table whatever was published.

    Parameters
    ----------
    space : ClaimSpace
        Tables and possible cells.
    patterns : ndarray of int16
        Value of every attribute, -1 for any.
    size : ndarray of int64
        Possible cells that match, for each claim.

    Returns
    -------
    ndarray of bool
        One answer for each claim.
    """
    return _sums(space, space.constant, np.arange(len(space.codes)), patterns, size)


def _sums(
    space: ClaimSpace, stated: Stated, cells: IntArray, patterns: NDArray[np.int16], size: IntArray
) -> BoolArray:
    """Return which claims have the size of cells of one table that lie inside and apart."""
    value, width, table = stated.value, stated.width, space.table[stated.query]
    found = np.zeros(len(patterns), np.bool_)
    apart = np.where(space.overlapping[table], -1, width)
    kernels.sums_of_patterns(value, table, apart, patterns, size, found)
    for t in np.unique(table[space.overlapping[table]]).tolist():
        rows = np.flatnonzero((table == t) & (width > 0))
        order = rows[np.argsort(-width[rows], kind="stable")]
        for s in np.flatnonzero(~found).tolist():
            asked = patterns[s] >= 0
            inside = (value[order][:, asked] == patterns[s, asked]).all(axis=1)
            chosen: list[int] = []
            for q in order[inside].tolist():
                own = int(stated.query[q])
                if not any(space.overlap(own, int(stated.query[o]), cells) for o in chosen):
                    chosen.append(q)
            found[s] = int(width[chosen].sum()) == size[s]
    return found

"""Claims that a table states itself: some of its cells, added up, are the claim.

Where cells of a table overlap (totals and subtotals), cells are taken from the largest down, each
that is inside the claim and apart from those taken: with nested cells this finds every sum.
"""

import numpy as np
from numpy.typing import NDArray

from bayesrisk.reconstruction.claims import _kernels as kernels
from bayesrisk.reconstruction.claims._block import BlockSystem
from bayesrisk.reconstruction.claims._space import ClaimSpace

__all__ = ["readable_everywhere", "readable_here"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def readable_here(space: ClaimSpace, system: BlockSystem, every: Bools, size: Ints) -> Bools:
    """Return which sums of classes are sums of cells of one table, dead cells left out.

    Parameters
    ----------
    space : ClaimSpace
        Tables.
    system : BlockSystem
        The block.
    every : ndarray of bool
        Classes of each sum, (sums, classes).
    size : ndarray of int64
        Live cells that match, for each sum; a sum that splits a class is no sum of cells.

    Returns
    -------
    ndarray of bool
        One answer for each sum.
    """
    number = np.bincount(system.label[~system.unbound], minlength=every.shape[1])
    plain = system.member.max(axis=1, initial=0) <= 1
    member = system.member > 0
    width = np.where(plain, member.astype(np.int64) @ number, -1)
    table = space.table[system.published]
    found = np.empty(len(every), np.bool_)
    apart = np.where(space.overlapping[table], -1, width)
    kernels.sums_of_cells(member, table, apart, every, size, found)
    for t in np.unique(table[space.overlapping[table]]).tolist():
        rows = np.flatnonzero((table == t) & plain)
        order = rows[np.argsort(-width[rows], kind="stable")]
        for s in np.flatnonzero(~found).tolist():
            taken, total = np.zeros(member.shape[1], np.bool_), 0
            for q in order.tolist():
                if not (member[q] & ~every[s]).any() and not (taken & member[q]).any():
                    taken |= member[q]
                    total += int(width[q])
            found[s] = total == size[s]
    whole: Bools = (every.astype(np.int64) @ number) == size
    return found & whole


def readable_everywhere(space: ClaimSpace, patterns: NDArray[np.int16], size: Ints) -> Bools:
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
    value, width = space.constant
    found = np.empty(len(patterns), np.bool_)
    apart = np.where(space.overlapping[space.table], -1, width)
    kernels.sums_of_patterns(value, space.table, apart, patterns, size, found)
    for t in np.flatnonzero(space.overlapping).tolist():
        rows = np.flatnonzero((space.table == t) & (width > 0))
        order = rows[np.argsort(-width[rows], kind="stable")]
        for s in np.flatnonzero(~found).tolist():
            asked = patterns[s] >= 0
            inside = (value[order][:, asked] == patterns[s, asked]).all(axis=1)
            chosen: list[int] = []
            for q in order[inside].tolist():
                if not any(space.overlap(q, other) for other in chosen):
                    chosen.append(q)
            found[s] = int(width[chosen].sum()) == size[s]
    return found

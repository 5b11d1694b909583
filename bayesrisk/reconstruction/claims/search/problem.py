"""One block as a system: live cells, classes of cells that no table tells apart, and rows."""

import hashlib
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import BoolArray, IntArray
from bayesrisk.reconstruction.claims.search.space import ClaimSpace
from bayesrisk.reconstruction.solvers import IntegerModel


@dataclass(frozen=True)
class BlockSystem:
    """Whole numbers of records in classes of live cells, and the published counts they add up to.

    Attributes
    ----------
    cells : ndarray of int64
        Live cells, as positions in the space.
    order : ndarray of int64
        Live cells, as positions among ``cells``, class by class; last those that no published
        count binds, because all their counts are withheld.
    start : ndarray of int64
        Where each class begins in ``order``, and where the last ends.
    query : ndarray of int64
        Published cell of each row (the first of those with equal rows).
    published : ndarray of int64
        Published cells that are positive.
    model : IntegerModel
        Rows with their counts, bounds of the classes.
    """

    cells: IntArray
    order: IntArray
    start: IntArray
    query: IntArray
    published: IntArray
    model: IntegerModel

    @property
    def members(self) -> IntArray:
        """Cells of the classes as positions in the space, class by class."""
        return self.cells[self.order[: self.start[-1]]]

    @property
    def unbound(self) -> IntArray:
        """Cells that no published count binds, as positions in the space."""
        return self.cells[self.order[self.start[-1] :]]


@dataclass(frozen=True)
class Conflict:
    """Published cells that contradict each other.

    Attributes
    ----------
    reason : str
        What they do.
    query : tuple of int
        Published cells by position.
    """

    reason: str
    query: tuple[int, ...]


def block_system(space: ClaimSpace, counts: IntArray, hidden: BoolArray) -> BlockSystem | Conflict:
    """Return the system of a block, or the published cells that no possible cell can fill.

    Parameters
    ----------
    space : ClaimSpace
        Possible cells and tables.
    counts : ndarray of int64
        Every published cell of the block.
    hidden : ndarray of bool
        Which of them are withheld.

    Returns
    -------
    BlockSystem or Conflict
        A conflict where a count is negative, or positive though zeros rule out all its cells.
    """
    if (counts < 0).any():
        return Conflict("negative", tuple(np.flatnonzero(counts < 0).tolist()))
    cells = space.alive(counts, hidden)
    chosen = np.flatnonzero((counts > 0) & ~hidden)
    label, bound = space.classes(cells, chosen)
    order = np.argsort(label, kind="stable")
    first = np.flatnonzero(np.diff(label[order], prepend=-1))
    kept = bound[label[order[first]]]
    # Classes that a count binds first, those that none binds last.
    size = np.diff(np.append(first, order.size))
    inside = np.repeat(kept, size)
    order = np.concatenate([order[inside], order[~inside]])
    start = np.concatenate([[0], np.cumsum(size[kept])]).astype(np.int64)
    columns = space.columns(cells[order[start[:-1]]], chosen)
    rows = sp.csr_array(columns)
    empty = np.diff(rows.indptr) == 0
    if empty.any():
        return Conflict(
            "all possible records are ruled out by zeros", tuple(chosen[empty].tolist())
        )
    kept_rows = _different_rows(rows, counts[chosen])
    right, top = counts[chosen[kept_rows]], int(counts[chosen].max(initial=0))
    high = np.full(start.size - 1, top)
    if high.size:
        high = np.minimum.reduceat(
            counts[chosen][columns.indices] // columns.data, columns.indptr[:-1]
        )
    model = IntegerModel(np.zeros(high.size, np.int64), high, rows[kept_rows], right, right)
    return BlockSystem(cells, order, start, chosen[kept_rows], chosen, model)


def _different_rows(rows: sp.csr_array, right: IntArray) -> IntArray:
    """Return rows without repetitions; rows that are equal but for their count are both kept."""
    seen: dict[tuple[bytes, int], int] = {}
    for row in range(rows.shape[0]):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        key = hashlib.sha256(rows.indices[part].tobytes())
        key.update(rows.data[part].tobytes())
        seen.setdefault((key.digest(), int(right[row])), row)
    return np.array(sorted(seen.values()), dtype=np.int64)

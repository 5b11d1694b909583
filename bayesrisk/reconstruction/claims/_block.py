"""One block as a system: live cells, classes of cells that no table tells apart, and rows."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk.reconstruction.claims._space import ClaimSpace
from bayesrisk.reconstruction.solvers import IntegerModel

__all__ = ["BlockSystem", "Conflict", "block_system"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class BlockSystem:
    """Whole numbers of records in classes of live cells, and the published counts they add up to.

    Attributes
    ----------
    cells : ndarray of int64
        Live cells, as positions in the space.
    label : ndarray of int64
        Class of each live cell.
    unbound : ndarray of bool
        Live cells that no published count binds, because all their counts are withheld.
    first : ndarray of int64
        First live cell of each class.
    query : ndarray of int64
        Published cell of each row (the first of those with equal rows).
    published : ndarray of int64
        Published cells that are positive.
    member : ndarray of int64
        Weight of each class in them, (published, classes).
    model : IntegerModel
        Rows with their counts, bounds of the classes.
    """

    cells: Ints
    label: Ints
    unbound: Bools
    first: Ints
    query: Ints
    published: Ints
    member: Ints
    model: IntegerModel

    @property
    def dense(self) -> Ints:
        """Rows and their counts side by side, (rows, classes + 1)."""
        return np.column_stack([self.model.rows.toarray(), self.model.row_low])


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


def block_system(space: ClaimSpace, counts: Ints, hidden: Bools) -> BlockSystem | Conflict:
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
    weights = space.weights(cells, chosen)
    empty = ~weights.any(axis=1)
    if empty.any():
        return Conflict(
            "all possible records are ruled out by zeros", tuple(chosen[empty].tolist())
        )
    columns, first, label = _classes(weights)
    bound = np.asarray(columns.any(axis=0), np.bool_)
    unbound = ~bound[label]
    keep = np.flatnonzero(bound)
    renumber = np.full(bound.size, -1, np.int64)
    renumber[keep] = np.arange(keep.size)
    matrix, rows = _different_rows(columns[:, keep], counts[chosen])
    right = counts[chosen[rows]]
    high = np.where(matrix > 0, right[:, None] // np.maximum(matrix, 1), right.max(initial=0))
    model = IntegerModel(
        np.zeros(keep.size, np.int64),
        high.min(axis=0, initial=int(right.max(initial=0))),
        sp.csr_array(matrix),
        right,
        right,
    )
    return BlockSystem(
        cells,
        renumber[label],
        unbound,
        first[keep],
        chosen[rows],
        chosen,
        columns[:, keep],
        model,
    )


def _classes(weights: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the different columns, where each occurs first, and the number of each column."""
    if not weights.shape[0]:  # nothing is published that is positive
        size = weights.shape[1]
        return weights[:, : min(size, 1)], np.arange(min(size, 1)), np.zeros(size, np.int64)
    packed = np.ascontiguousarray(
        weights.T.astype(np.uint16)
        if weights.max(initial=0) > 1
        else np.packbits(weights > 0, axis=0).T
    )
    keys = packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1]))).ravel()
    _, first, label = np.unique(keys, return_index=True, return_inverse=True)
    return weights[:, first], first.astype(np.int64), label.ravel().astype(np.int64)


def _different_rows(matrix: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Return rows without repetitions; rows that are equal but for their count are both kept."""
    if not matrix.shape[0]:
        return matrix, np.zeros(0, np.int64)
    _, first = np.unique(np.column_stack([matrix, right]), axis=0, return_index=True)
    rows = np.sort(first).astype(np.int64)
    return matrix[rows], rows

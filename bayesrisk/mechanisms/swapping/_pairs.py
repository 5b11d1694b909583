"""Partners: for each unit one of its nearest like it, in another block, that is still free.

Units of one region and swap-key class are held block by block in a k-d tree of the blocks, so a
partner costs a query of a few blocks and not a pass over the units.  Blocks that run out are
passed over; when half of a tree's blocks have run out it is built again without them.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from bayesrisk._types import IntArray

_FIRST = 8  # blocks of the first query


class _Nearest:
    """Blocks in the order of their distance from one of them; answers are kept.

    They do not depend on chance, so that many searches may share them.
    """

    def __init__(
        self, blocks: IntArray, points: NDArray[np.float64], ends: Sequence[int] = ()
    ) -> None:
        self.blocks, self._points = blocks, points
        #: Where the units of each block end, in the order of the blocks, and at first 0.
        self.ends = ends
        self._tree = cKDTree(points[blocks])
        self._kept: dict[tuple[int, int], list[int]] = {}

    def of(self, block: int, size: int) -> list[int]:
        """Return the ``size`` nearest blocks of a block."""
        if (block, size) not in self._kept:
            _, at = self._tree.query(self._points[block], k=size)
            self._kept[block, size] = self.blocks[np.atleast_1d(at)].tolist()
        return self._kept[block, size]


class _Class:
    """Free units of one region and one swap-key class, by block."""

    def __init__(
        self, members: list[list[int]], points: NDArray[np.float64], nearest: _Nearest
    ) -> None:
        self._points = points  # coordinates of every block
        self._members = dict(zip(nearest.blocks.tolist(), members, strict=True))
        self._live = len(self._members)
        self._nearest = nearest

    def _build(self) -> None:
        blocks = np.array([b for b, m in self._members.items() if m], dtype=np.int64)
        if blocks.size:
            self._nearest = _Nearest(blocks, self._points)

    def remove(self, unit: int, block: int) -> None:
        """Take a unit out, as it is swapped now."""
        members = self._members[block]
        members.remove(unit)
        if not members:
            self._live -= 1
            if 2 * self._live < len(self._nearest.blocks):
                self._build()

    def nearest(self, block: int, wanted: int) -> list[int]:
        """Return up to ``wanted`` free units of other blocks, nearest blocks first."""
        others = self._live - bool(self._members[block])
        count = len(self._nearest.blocks)
        found: list[int] = []
        k = _FIRST
        while others:
            size = min(k, count)
            found = []
            for other in self._nearest.of(block, size):
                if other != block:
                    found.extend(self._members[other][: wanted - len(found)])
                    if len(found) == wanted:
                        return found
            if size == count:
                break
            k *= 4
        return found


class PartnerSearch:
    """Pairs of units; no unit is in two.

    Parameters
    ----------
    group : ndarray of int64
        Region and swap-key class of each unit, as one number.
    block : ndarray of int64
        Block of each unit.
    points : ndarray of float, shape (blocks, d)
        Coordinates of the blocks.
    neighbours : int
        How many of the nearest a partner is chosen among.
    rng : Generator
        Source of randomness.
    nearest : dict, optional
        The blocks of each class by distance, filled when first needed; many searches may share it.
    """

    def __init__(
        self,
        group: IntArray,
        block: IntArray,
        points: NDArray[np.float64],
        *,
        neighbours: int,
        rng: np.random.Generator,
        nearest: dict[int, _Nearest] | None = None,
    ) -> None:
        self._nearest = {} if nearest is None else nearest
        self._group, self._block = group.tolist(), block.tolist()
        self._points, self._neighbours, self._rng = points, neighbours, rng
        # Units of one block are equally near: the order among them is left to chance.
        shuffled = rng.permutation(len(group))
        order = shuffled[np.lexsort((block[shuffled], group[shuffled]))]
        self._order, self._starts, self._numbers = order, *_bounds(group[order])
        self._classes: dict[int, _Class] = {}
        self.partner = np.full(len(group), -1, dtype=np.int64)

    def _class(self, number: int) -> _Class:
        """Return a class, made when it is first needed."""
        if number not in self._classes:
            i = int(np.searchsorted(self._numbers, number))
            units = self._order[self._starts[i] : self._starts[i + 1]].tolist()
            if number not in self._nearest:
                blocks = np.array([self._block[u] for u in units], dtype=np.int64)
                distinct, at = np.unique(blocks, return_index=True)
                ends = [*at.tolist(), len(units)]
                self._nearest[number] = _Nearest(distinct, self._points, ends)
            nearest = self._nearest[number]
            # Chance orders the units of a block, not the blocks.
            members = [units[low:high] for low, high in pairwise(nearest.ends)]
            self._classes[number] = _Class(members, self._points, nearest)
        return self._classes[number]

    def swap(self, unit: int) -> bool:
        """Pair a unit with one of its nearest; say whether there was one."""
        if self.partner[unit] >= 0:
            return False
        free = self._class(self._group[unit])
        near = free.nearest(self._block[unit], self._neighbours)
        if not near:
            return False
        other = near[int(self._rng.integers(len(near)))]
        self.partner[unit], self.partner[other] = other, unit
        for one in (unit, other):
            free.remove(one, self._block[one])
        return True


def _bounds(ordered: IntArray) -> tuple[IntArray, IntArray]:
    """Return where each run of equal numbers starts (and the end), and the numbers."""
    numbers, starts = np.unique(ordered, return_index=True)
    return np.append(starts, len(ordered)).astype(np.int64), numbers

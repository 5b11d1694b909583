"""Proofs that a model has no solution: trees of branches with contradictions as leaves.

A leaf is an integer combination of rows without a solution. If the relaxation of a part has a
solution, the tree branches on a row or variable that is fractional there.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.certificates import UNIT, Bounds, combinations
from bayesrisk.constraints.highs import HighsWarm
from bayesrisk.constraints.model import IntegerModel
from bayesrisk.constraints.search import explore
from bayesrisk.constraints.solvers import Deadline

#: The branches that made a part: the row, or the variable after all rows, and its side.
Path: TypeAlias = tuple[tuple[int, str], ...]
#: A refutation as certificates have it.
Tree: TypeAlias = dict[str, Any]
#: A part, the branches that made it, and where its refutation is put.
_Branch: TypeAlias = tuple[Bounds, Path, Tree, str]
#: What each row is relaxed by, so that few are used, and then hardly; what is above 0.
_RELAXED, _ABOVE, _FRACTION = (0.02, 1e-6), 1e-7, 1e-4
#: Units of multiples that are tried; the largest one holds any, rounding aside.
_UNITS = (*range(1, 61), UNIT)
_NEAR = 1e-5
_TOP = 2**40


class Refuter:
    """Builds proofs that rows of a model cannot have stated values; variables have no upper bound.

    ``write_sum`` makes a leaf of multiples of rows, and of variables after them, within the
    branches of a path. ``boxes`` describes what a row or a variable counts. An empty leaf ends a
    search.
    """

    def __init__(
        self,
        model: IntegerModel,
        write_sum: Callable[[Sequence[tuple[int, int]], Path], Tree],
        boxes: Callable[[int], list[Tree]],
    ) -> None:
        self._model, self._write_sum, self._boxes = model, write_sum, boxes
        # The weight of all variables of a row, if it is one.
        self.units = np.array([
            int(d[0]) if (d := model.rows.data[a:b]).size and (d == d[0]).all() else 0
            for a, b in itertools.pairwise(model.rows.indptr)
        ])  # fmt: skip
        # a x + e - f within both ends, the sum of all e and f as small as can be.
        m, n = model.rows.shape
        eye, top = sp.eye_array(m, dtype=np.int64), np.full(n + 2 * m, _TOP)
        relaxed = sp.csr_array(sp.hstack([model.rows, eye, -eye], format="csr"))
        nothing = np.zeros(m, np.int64)
        elastic = IntegerModel(np.zeros_like(top), top, relaxed, nothing, nothing)
        self._linear = HighsWarm(elastic, np.repeat([0, -1], [n, 2 * m]))

    def tree(self, row_low: IntArray, row_high: IntArray, nodes: int, deadline: Deadline) -> Tree:
        """Return a refutation, or an empty tree if a limit is reached or a solution exists."""
        root: Tree = {}

        def look(part: _Branch) -> list[_Branch] | None:
            bounds, path, above, side = part
            above[side], point = self._relaxed(bounds, path)
            if above[side] or point is None:
                return [] if above[side] else None
            m, index = self.units.size, self._fractional(point)
            if index < 0:
                return None
            most = int(np.floor(self._sums(point)[index]))
            tree = above[side] = {"branch": self._boxes(index), "most": most}
            parts = []
            for side, end in (("below", most), ("above", most + 1)):
                inside, branched = Bounds(*(e.copy() for e in bounds)), (*path, (index, side))
                if index < m:
                    ends = inside.row_high if side == "below" else inside.row_low
                    ends[index] = end * self.units[index]
                else:
                    (inside.high if side == "below" else inside.low)[index - m] = end
                tree[side] = {}
                if index < m and inside.row_low[index] > inside.row_high[index]:
                    tree[side] = self._write_sum([(index, 1), (index, -1)], branched)
                    if not tree[side]:
                        return None
                else:
                    parts.append((inside, branched, tree, side))
            return parts[::-1]

        whole = Bounds(self._model.low, self._model.high, row_low, row_high)
        waiting: list[_Branch] = [(whole, (), root, "tree")]
        complete = explore(waiting, look, nodes=nodes, deadline=deadline)
        return root["tree"] if complete else {}

    def _relaxed(self, bounds: Bounds, path: Path) -> tuple[Tree, FloatArray | None]:
        """Return a contradiction, or else a point of the relaxation; neither may be found."""
        m, n = self._model.rows.shape
        rest, point = np.zeros(2 * m, np.int64), None
        most = np.append(np.minimum(bounds.high, _TOP), rest + _TOP)
        least = np.append(bounds.low, rest)
        for relaxed in _RELAXED:
            low, high = (end.astype(np.float64) for end in (bounds.row_low, bounds.row_high))
            self._linear.rebound(low - relaxed, high + relaxed)
            values, duals, _ = self._linear.relax(least, most)
            if values is None or duals is None:
                return {}, None
            if values[n:].sum() > _ABOVE:
                leaf = self._leaf(duals, bounds, path)
                if leaf or relaxed == _RELAXED[-1]:
                    return leaf, None
            point = values[:n]
        return {}, point

    def _leaf(self, duals: FloatArray, bounds: Bounds, path: Path) -> Tree:
        """Return the contradiction that rounded dual values prove, or an empty tree."""
        nothing = np.zeros(bounds.low.size, np.int64)
        for one in combinations(self._model, nothing, bounds, duals, _UNITS, near=_NEAR):
            if one.total < 0:
                break
        else:
            return {}
        y, weight = -one.multiples, one.rest
        # What a branch has limited is taken at its limit, and all else must not be above 0.
        limited = np.flatnonzero((weight > 0) | (weight < 0) & (bounds.low > 0))
        rows = [(int(row), int(y[row])) for row in np.flatnonzero(y)]
        kinds = [(y.size + int(kind), -int(weight[kind])) for kind in limited]
        return self._write_sum([*rows, *kinds], path)

    def _sums(self, point: FloatArray) -> FloatArray:
        """Return the rows' sums at a point, each divided by its weight, followed by the point."""
        return np.append((self._model.rows @ point) / np.maximum(self.units, 1), point)

    def _fractional(self, point: FloatArray) -> int:
        """Return the index of a fractional row or variable to branch on, or -1 if all are whole."""
        m, sums = self.units.size, self._sums(point)
        # Rows are branched on before variables: they are one product of labels, and say more.
        fraction = np.abs(sums - np.rint(sums)) * np.append(self.units > 0, np.ones(point.size))
        index = int(fraction[:m].argmax()) if fraction[:m].max(initial=0) > _FRACTION else m
        index = index if index < m or not point.size else m + int(fraction[m:].argmax())
        return -1 if index == fraction.size or fraction[index] <= _FRACTION else index

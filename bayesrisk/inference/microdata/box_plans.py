"""Plans of the joins of boxes, each made once of a matrix, and of nothing that is published."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bayesrisk._base.validation import FloatArray, IntArray

_VALUES = 16.0  # of an unknown, when an order of joins is chosen
_WIDE = 64  # unknowns, and rows, of a plan
CLOSED, OPEN = 1, 2


class BoxPlan(NamedTuple):
    """Parts, first the unknowns and then their joins, and the axes of their boxes.

    An axis of an unknown is its value, that of a join the sum of a row.
    """

    left: IntArray  # (joins,): the two parts of every join
    right: IntArray
    state: IntArray  # (parts, rows): 1 where a part closes a row, 2 where the row stays open
    axes: IntArray  # (parts,): number of axes, and (parts, axes) their rows
    axis: IntArray
    sums: IntArray  # (parts, rows, axes): sums of the rows as sums of axes
    inner_axes: IntArray  # (joins,): the same of the box in which two parts are joined
    inner_axis: IntArray
    inner_sums: IntArray


class _Piece(NamedTuple):
    """A part while a plan is made."""

    part: int
    unknowns: tuple[int, ...]
    rows: tuple[int, ...]  # the open ones
    size: float


@lru_cache(maxsize=256)
def box_plan(matrix: bytes, rows: int) -> BoxPlan | None:
    """Return the plan of a matrix (rows, unknowns) of whole numbers; None of a wide one."""
    return _Planner(np.frombuffer(matrix, np.int64).reshape(rows, -1)).plan()


class _Planner:
    """Joins of parts: next of those of the row that is closed at the least cost."""

    def __init__(self, matrix: IntArray) -> None:
        self._matrix = matrix
        self._joins: list[tuple[_Piece, _Piece, _Piece]] = []
        self._leaves = [
            _Piece(g, (g,), self._open_rows((g,)), _VALUES) for g in range(matrix.shape[1])
        ]

    def plan(self) -> BoxPlan | None:
        """Return the plan."""
        n_rows, unknowns = self._matrix.shape
        if not 0 < unknowns <= _WIDE or n_rows > _WIDE:
            return None
        parts = list(self._leaves)
        while len(parts) > 1:
            touching = [[p for p in parts if r in p.rows] for r in range(n_rows)]
            chosen = min(
                (group for group in touching if len(group) > 1), key=self._cost, default=parts
            )
            parts = [p for p in parts if p not in chosen]
            waiting = list(chosen)
            while len(waiting) > 1:
                pairs = combinations(range(len(waiting)), 2)
                i, j = min(pairs, key=lambda ij: self._growth(waiting[ij[0]], waiting[ij[1]]))
                other, one = waiting.pop(j), waiting.pop(i)
                waiting.insert(0, self._joined(one, other))
            parts.append(waiting[0])
        return self._write()

    def _open_rows(self, unknowns: tuple[int, ...]) -> tuple[int, ...]:
        rest = np.ones(self._matrix.shape[1], np.bool_)
        rest[list(unknowns)] = False
        inside, outside = self._matrix[:, ~rest].any(axis=1), self._matrix[:, rest].any(axis=1)
        return tuple(np.flatnonzero(inside & outside).tolist())

    def _join(self, one: _Piece, other: _Piece) -> _Piece:
        unknowns = tuple(sorted(one.unknowns + other.unknowns))
        rows = self._open_rows(unknowns)
        rank = np.linalg.matrix_rank(self._matrix[np.ix_(rows, unknowns)]) if rows else 0
        size = min(one.size * other.size, (2.0 * _VALUES) ** rank)
        return _Piece(-1, unknowns, rows, size)

    def _cost(self, parts: list[_Piece]) -> float:
        joined, pairs = parts[0], 0.0
        for part in parts[1:]:
            pairs += joined.size * part.size
            joined = self._join(joined, part)
        return pairs + joined.size

    def _growth(self, one: _Piece, other: _Piece) -> float:
        return self._join(one, other).size / max(one.size, other.size)

    def _joined(self, one: _Piece, other: _Piece) -> _Piece:
        left, right = (one, other) if one.size >= other.size else (other, one)
        part = len(self._leaves) + len(self._joins)
        joined = self._join(left, right)._replace(part=part)
        self._joins.append((left, right, joined))
        return joined

    def _axes(self, rows: list[int], unknowns: tuple[int, ...]) -> tuple[list[int], IntArray]:
        """Return rows, the first ones first, whose sums all others are whole sums of; and these."""
        matrix = self._matrix[:, unknowns]
        axes: list[int] = []
        sums: dict[int, FloatArray] = {}
        for r in dict.fromkeys(rows):
            whole, fits = np.zeros(0), not matrix[r].any()
            if axes:
                whole = np.rint(np.linalg.lstsq(matrix[axes].T * 1.0, matrix[r] * 1.0)[0])
                fits = np.array_equal(whole @ matrix[axes], matrix[r])
            if fits:
                sums[r] = whole
            else:
                axes.append(r)
        table = np.zeros((self._matrix.shape[0], len(axes)), np.int64)
        for r, whole in sums.items():
            table[r, : whole.size] = whole
        table[axes, range(len(axes))] = 1
        return axes, table

    def _write(self) -> BoxPlan:
        n_rows, unknowns = self._matrix.shape
        parts, width = 2 * unknowns - 1, max(n_rows, 1)
        state, axes = np.zeros((parts, n_rows), np.int64), np.ones(parts, np.int64)
        axis, sums = np.zeros((parts, width), np.int64), np.zeros((parts, n_rows, width), np.int64)
        inner = np.zeros((unknowns - 1, width), np.int64)
        inner_axes = np.zeros(unknowns - 1, np.int64)
        inner_sums = np.zeros((unknowns - 1, n_rows, width), np.int64)
        for g, leaf in enumerate(self._leaves):
            state[g, self._matrix[:, g] > 0] = CLOSED
            state[g, list(leaf.rows)] = OPEN
            sums[g, :, 0] = self._matrix[:, g]
        for number, (left, right, part) in enumerate(self._joins):
            rows = sorted({*left.rows, *right.rows})
            row_axes = [r for r in axis[left.part, : axes[left.part]].tolist() if r in rows]
            row_axes = row_axes if left.part >= unknowns else list(left.rows[:1])
            # Along the last axis of the left part the weights of both boxes are next to each other.
            chosen, _ = self._axes([*reversed(row_axes), *rows], part.unknowns)
            chosen = [
                *(r for r in chosen if r not in row_axes),
                *(r for r in row_axes if r in chosen),
            ]
            chosen, table = self._axes([*chosen, *rows], part.unknowns)
            inner_axes[number], inner[number, : len(chosen)] = len(chosen), chosen
            inner_sums[number, :, : len(chosen)] = table
            state[part.part, rows] = CLOSED
            state[part.part, list(part.rows)] = OPEN
            open_rows = [r for r in chosen if r in part.rows]
            axis_rows, table = self._axes([*open_rows, *part.rows], part.unknowns)
            axes[part.part], axis[part.part, : len(axis_rows)] = len(axis_rows), axis_rows
            sums[part.part, :, : len(axis_rows)] = table
        left_parts = np.array([left.part for left, _, _ in self._joins], np.int64)
        right_parts = np.array([right.part for _, right, _ in self._joins], np.int64)
        arrays = (left_parts, right_parts, state, axes, axis, sums, inner_axes, inner, inner_sums)
        return BoxPlan(*arrays)

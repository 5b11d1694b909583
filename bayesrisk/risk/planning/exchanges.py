r"""Data sets near the true one, found by changing records or exchanging them between places.

A *move* takes a record of one kind out of a finest place and puts a record of another kind in;
either may be missing. It changes counts by W e_into - W e_out. If sums over places must stay,
another place makes the reverse move, and the changes cancel. A data set that fits is a witness:
whatever it changes is not proved. Moves prove nothing; linear programs decide what they do not
reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step
from bayesrisk._base.validation import IntArray

#: Moves after each other; the place of a move that was not made.
MOVES, NO_MOVE = 8, -2


class CountLayout(NamedTuple):
    """The counts that include a record of each kind at each place.

    ``weight[ptr[k]:ptr[k + 1]]`` are the weights of kind k in cells ``cell`` of tables ``variant``,
    whose counts begin at ``start``. ``local`` says which tables have a place for each finest one.
    """

    ptr: IntArray
    variant: IntArray
    cell: IntArray
    weight: IntArray
    parent: IntArray
    start: IntArray
    cells: IntArray
    local: IntArray

    @classmethod
    def make(
        cls, weights: Sequence[sp.csr_array], parent: IntArray, start: IntArray
    ) -> CountLayout:
        """Return the layout from the tables' weights (cells, kinds) and places."""
        whole = sp.csc_array(sp.vstack(weights))
        cells = np.array([w.shape[0] for w in weights], np.int64)
        first = np.cumsum(np.r_[0, cells])
        variant = np.searchsorted(first, whole.indices, side="right") - 1
        local = (parent.max(axis=1) + 1 == parent.shape[1]).astype(np.int64)
        parts = whole.indptr, variant, whole.indices - first[variant], whole.data
        ptr, variant, cell, weight = (part.astype(np.int64) for part in parts)
        return cls(ptr, variant, cell, weight, parent, start[:-1].astype(np.int64), cells, local)


class Reached(NamedTuple):
    """The published bounds of counts, and the values that data sets within them reach."""

    low: IntArray
    high: IntArray
    least: IntArray
    most: IntArray
    fewest: IntArray  # records by place and kind


class State(NamedTuple):
    """A data set (places, kinds), and its counts."""

    records: IntArray
    counts: IntArray


@lean_step
def _position(a: CountLayout, e: int, block: int) -> int:
    v = a.variant[e]
    return int(a.start[v] + a.parent[v, block] * a.cells[v] + a.cell[e])


@lean_step
def _add(a: CountLayout, state: State, block: int, kind: int, number: int) -> None:
    """Add ``number`` records of a kind at a place; the kind after the last means no record."""
    if kind < state.records.shape[1]:
        state.records[block, kind] += number
        for e in range(a.ptr[kind], a.ptr[kind + 1]):
            state.counts[_position(a, e, block)] += number * a.weight[e]


@lean_step
def _fits(a: CountLayout, state: State, r: Reached, block: int, kind: int, local: bool) -> bool:
    """Return whether counts of a kind at a place (``local``: its own only) are within bounds."""
    if kind == state.records.shape[1]:
        return True
    if state.records[block, kind] < 0:
        return False
    for e in range(a.ptr[kind], a.ptr[kind + 1]):
        if local and not a.local[a.variant[e]]:
            continue
        p = _position(a, e, block)
        if state.counts[p] < r.low[p] or state.counts[p] > r.high[p]:
            return False
    return True


@lean_step
def _move(a: CountLayout, state: State, block: int, lost: int, gained: int) -> None:
    _add(a, state, block, lost, -1)
    _add(a, state, block, gained, 1)


@lean_step
def _move_fits(
    a: CountLayout, state: State, r: Reached, block: int, lost: int, gained: int, local: bool
) -> bool:
    return _fits(a, state, r, block, lost, local) and _fits(a, state, r, block, gained, local)


@lean_step
def _reach(a: CountLayout, state: State, r: Reached, block: int, kind: int) -> None:
    """Update the values reached by the counts of a kind at a place."""
    if kind < state.records.shape[1]:
        r.fewest[block, kind] = min(r.fewest[block, kind], state.records[block, kind])
        for e in range(a.ptr[kind], a.ptr[kind + 1]):
            p = _position(a, e, block)
            r.least[p] = min(r.least[p], state.counts[p])
            r.most[p] = max(r.most[p], state.counts[p])


@lean_step
def _useful_move(
    a: CountLayout, state: State, r: Reached, block: int, lost: int, gained: int
) -> int:
    """Try a move; return the place that reverses it, or -1 (none is needed), or -2 (failed)."""
    none = state.records.shape[1]
    _move(a, state, block, lost, gained)
    if _move_fits(a, state, r, block, lost, gained, True):
        if _move_fits(a, state, r, block, lost, gained, False):
            return -1
        # Only sums with other places are off: one that makes the move backwards keeps them.
        for other in range(state.records.shape[0]):
            if other == block or (gained < none and state.records[other, gained] == 0):
                continue
            _move(a, state, other, gained, lost)
            if _move_fits(a, state, r, other, gained, lost, False) and _move_fits(
                a, state, r, block, lost, gained, False
            ):
                return other
            _move(a, state, other, lost, gained)
    _move(a, state, block, gained, lost)
    return NO_MOVE


@lean_step
def _step_from(
    a: CountLayout, state: State, r: Reached, blocks: IntArray, weight: IntArray, position: int,
    direction: int, row: IntArray,
) -> bool:  # fmt: skip
    """Make the first move that raises or lowers a form, and write it to ``row``; return success.

    The form has ``weight`` by kind, with a zero for none, over ``blocks``; it is the count at a
    position, or a kind of record where that is below 0.
    """
    none = state.records.shape[1]
    for block in blocks:
        for lost in range(none + 1):
            if lost < none and state.records[block, lost] == 0:
                continue
            for gained in range(none + 1):
                effect = weight[gained] - weight[lost]
                if effect * direction <= 0:
                    continue
                before = state.counts[max(position, 0)]
                other = _useful_move(a, state, r, block, lost, gained)
                if other == NO_MOVE:
                    continue
                if position >= 0 and state.counts[position] == before:
                    _move(a, state, block, gained, lost)  # a partner of the same count undid it
                    _move(a, state, other, lost, gained)
                    continue
                row[0], row[1], row[2], row[3] = block, lost, gained, other
                return True
    return False


@kernel
def find_moves(
    a: CountLayout, base: IntArray, counts: IntArray, r: Reached, blocks: IntArray,
    weight: IntArray, position: int, direction: int, steps: int,
) -> IntArray:  # fmt: skip
    """Return successive moves (moves, 4) that each raise, or each lower, a form.

    A row is the place, the kinds lost and gained, and the place that makes the move backwards, -1
    for none.  ``base`` and its ``counts`` are as before when this returns.
    """
    state, moves = State(base, counts), np.empty((steps, 4), np.int64)
    n = 0
    while n < steps and _step_from(a, state, r, blocks, weight, position, direction, moves[n]):
        n += 1
    for i in range(n):
        block, lost, gained, other = moves[i]
        _move(a, state, block, gained, lost)
        if other >= 0:
            _move(a, state, other, lost, gained)
    return moves[:n]


@lean_kernel
def replay(
    a: CountLayout, base: IntArray, counts: IntArray, r: Reached, ptr: IntArray, change: IntArray
) -> None:
    """Update the values reached by each listed data set that fits the bounds."""
    state = State(base, counts)
    for i in range(ptr.size - 1):
        for j in range(ptr[i], ptr[i + 1]):
            _add(a, state, change[j, 0], change[j, 1], change[j, 2])
        fits = True
        for j in range(ptr[i], ptr[i + 1]):
            fits = fits and _fits(a, state, r, change[j, 0], change[j, 1], False)
        for j in range(ptr[i], ptr[i + 1]):
            if fits:
                _reach(a, state, r, change[j, 0], change[j, 1])
        for j in range(ptr[i], ptr[i + 1]):
            _add(a, state, change[j, 0], change[j, 1], -change[j, 2])


def as_changes(moves: IntArray, none: int) -> IntArray:
    """Return moves as changes (place, kind, number); ``none`` is the kind that means no record."""
    block, lost, gained, other = moves.T
    pairs = (block, lost, -1), (block, gained, 1), (other, gained, -1), (other, lost, 1)
    rows = np.concatenate(
        [np.stack([p, k, np.full_like(p, n)], axis=1) for p, k, n in pairs]
    )  # fmt: skip
    return rows[(rows[:, 0] >= 0) & (rows[:, 1] < none)]

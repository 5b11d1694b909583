r"""Data sets near the true one: records change their kind, or are exchanged with another place.

A *move* takes a record of one kind out of a finest place and puts one of another in; either may
be none.  It changes counts by W e_into - W e_out.  Where sums over places must stay, another place
makes the move backwards, and their changes cancel.  Whatever fits is a witness: what it changes is
not proved.  Nothing is proved here; what no move reaches is left to programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step, step
from bayesrisk._base.validation import IntArray

#: Moves after each other, and places that are tried to make one backwards.
MOVES, PARTNERS = 8, 3
#: Of places that were not looked for; also of a move that was not made.
UNTRIED = -2


class Layout(NamedTuple):
    """Where a record of a kind at a place counts: tables by place of theirs and cell.

    ``weight[ptr[k]:ptr[k + 1]]`` are those of kind k in cells ``cell`` of tables ``variant``, whose
    counts begin at ``start``; ``local`` says which tables have a place for each finest one.
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
    def make(cls, weights: Sequence[sp.csr_array], parent: IntArray, start: IntArray) -> Layout:
        """Return the layout of tables by their weights (cells, kinds) and places."""
        whole = sp.csc_array(sp.vstack(weights))
        cells = np.array([w.shape[0] for w in weights], np.int64)
        first = np.cumsum(np.r_[0, cells])
        variant = np.searchsorted(first, whole.indices, side="right") - 1
        local = (parent.max(axis=1) + 1 == parent.shape[1]).astype(np.int64)
        parts = whole.indptr, variant, whole.indices - first[variant], whole.data
        ptr, variant, cell, weight = (part.astype(np.int64) for part in parts)
        return cls(ptr, variant, cell, weight, parent, start[:-1].astype(np.int64), cells, local)


class Reached(NamedTuple):
    """Ends of counts that are published, and what data sets within them come to."""

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
def _position(a: Layout, e: int, block: int) -> int:
    v = a.variant[e]
    return a.start[v] + a.parent[v, block] * a.cells[v] + a.cell[e]


@lean_step
def _add(a: Layout, state: State, block: int, kind: int, number: int) -> None:
    """Add records of a kind at a place; a kind that is too large is none."""
    if kind < state.records.shape[1]:
        state.records[block, kind] += number
        for e in range(a.ptr[kind], a.ptr[kind + 1]):
            state.counts[_position(a, e, block)] += number * a.weight[e]


@lean_step
def _fits(a: Layout, state: State, r: Reached, block: int, kind: int, local: bool) -> bool:
    """Return whether all counts of a kind at a place, or those of it alone, keep their ends."""
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
def _move(a: Layout, state: State, block: int, out: int, into: int) -> None:
    _add(a, state, block, out, -1)
    _add(a, state, block, into, 1)


@lean_step
def _move_fits(
    a: Layout, state: State, r: Reached, block: int, out: int, into: int, local: bool
) -> bool:
    return _fits(a, state, r, block, out, local) and _fits(a, state, r, block, into, local)


@lean_step
def _reach(a: Layout, state: State, r: Reached, block: int, kind: int) -> None:
    """Note what the counts of a kind at a place come to."""
    if kind < state.records.shape[1]:
        r.fewest[block, kind] = min(r.fewest[block, kind], state.records[block, kind])
        for e in range(a.ptr[kind], a.ptr[kind + 1]):
            p = _position(a, e, block)
            r.least[p] = min(r.least[p], state.counts[p])
            r.most[p] = max(r.most[p], state.counts[p])


@lean_step
def _find_partners(
    a: Layout, state: State, r: Reached, out: int, into: int, partner: IntArray
) -> None:
    """List the first places where a move keeps the counts of the place alone."""
    n = 0
    partner[:] = -1
    for block in range(state.records.shape[0]):
        if out < state.records.shape[1] and state.records[block, out] == 0:
            continue
        _move(a, state, block, out, into)
        if _move_fits(a, state, r, block, out, into, True):
            partner[n] = block
            n += 1
        _move(a, state, block, into, out)
        if n == partner.size:
            break


@step
def _useful_move(
    a: Layout, state: State, r: Reached, block: int, out: int, into: int, partners: IntArray
) -> int:
    """Make a move, perhaps with a partner that makes it backwards; return it, -1, or -2: none."""
    _move(a, state, block, out, into)
    if _move_fits(a, state, r, block, out, into, True):
        if _move_fits(a, state, r, block, out, into, False):
            return -1
        partner = partners[into, out]
        if partner[0] == UNTRIED:
            _move(a, state, block, into, out)
            _find_partners(a, state, r, into, out, partner)
            _move(a, state, block, out, into)
        for other in partner:
            if other < 0:
                break
            if other == block or (into < state.records.shape[1] and not state.records[other, into]):
                continue
            _move(a, state, other, into, out)
            if _move_fits(a, state, r, other, into, out, False) and _move_fits(
                a, state, r, block, out, into, False
            ):
                return other
            _move(a, state, other, out, into)
    _move(a, state, block, into, out)
    return UNTRIED


@step
def _step_from(
    a: Layout, state: State, r: Reached, blocks: IntArray, weight: IntArray, position: int,
    direction: int, partners: IntArray, found: IntArray,
) -> bool:  # fmt: skip
    """Make the first move that takes a form further, and write it to ``found``.

    The form has ``weight`` by kind, with a zero for none, over ``blocks``; it is the count at a
    position, or a kind of record where that is below 0.
    """
    none = state.records.shape[1]
    for block in blocks:
        for out in range(none + 1):
            if out < none and state.records[block, out] == 0:
                continue
            for into in range(none + 1):
                effect = weight[into] - weight[out]
                if effect * direction <= 0:
                    continue
                before = state.counts[max(position, 0)]
                other = _useful_move(a, state, r, block, out, into, partners)
                if other == UNTRIED:
                    continue
                if position >= 0 and state.counts[position] == before:
                    _move(a, state, block, into, out)  # a partner of the same count undid it
                    _move(a, state, other, out, into)
                    continue
                found[0], found[1], found[2], found[3] = block, out, into, other
                return True
    return False


@kernel
def find_moves(
    a: Layout, base: IntArray, counts: IntArray, r: Reached, blocks: IntArray,
    weight: IntArray, position: int, direction: int, partners: IntArray, steps: int,
) -> IntArray:  # fmt: skip
    """Return moves one after the other, each of which takes a form further: (moves, 4).

    A row is the place, the kinds out and in, and the place that makes the move backwards, -1 for
    none.  ``base`` and its ``counts`` are as before when this returns.
    """
    state, found = State(base, counts), np.empty((steps, 4), np.int64)
    n = 0
    while n < steps and _step_from(
        a, state, r, blocks, weight, position, direction, partners, found[n]
    ):
        block, out, into, other = found[n]
        n += 1
        for i in range(n):  # what earlier moves changed is as it is now
            for place in (found[i, 0], found[i, 3]):
                if place >= 0:
                    _reach(a, state, r, place, found[i, 1])
                    _reach(a, state, r, place, found[i, 2])
    for i in range(n - 1, -1, -1):
        block, out, into, other = found[i]
        _move(a, state, block, into, out)
        if other >= 0:
            _move(a, state, other, out, into)
    return found[:n]


@lean_kernel
def replay(
    a: Layout, base: IntArray, counts: IntArray, r: Reached, ptr: IntArray, change: IntArray
) -> None:
    """Note what data sets that fit come to, each listed as changes: (place, kind, number)."""
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
    """Return moves as changes: rows of place, kind and number; ``none`` is no kind."""
    block, out, into, other = moves.T
    pairs = (block, out, -1), (block, into, 1), (other, into, -1), (other, out, 1)
    rows = np.concatenate(
        [np.stack([p, k, np.full_like(p, n)], axis=1) for p, k, n in pairs]
    )  # fmt: skip
    return rows[(rows[:, 0] >= 0) & (rows[:, 1] < none)]

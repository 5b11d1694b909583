"""Compiled sum-product on a binary tree of merges.  Nothing here checks its arguments.

Messages are probabilities on a window, scaled to sum 1, one after the other in ``store``.
``spot[s]`` is (lowest count, offset in the store, size).  ``lost[s]`` bounds, relative to the
message's mass, the mass that was cut off below s (column 0) and what transforms rounded (1).
``own[5]`` holds the least and the largest count that each unit's bounds leave.

A passage may stop, to be taken up again at the same segment, with one of these codes.
"""

import math
from typing import Any

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk.inference.tree._factors import (
    apply_factor,
    convolve_into,
    correlate_into,
    factor_of,
    factor_window,
    lost_below,
    lowest,
    tails,
)
from bayesrisk.inference.tree._kernels import fill_leaf, fill_leaf_table, leaf_window

DONE = 0
LONG = 1  # a product of messages is long enough for a transform
ROOM = 2  # the store is full
EMPTY = 3  # no count is possible here
IMPROPER = 4  # a leaf's message cannot be summed


@kernel
def product_window(
    s: int, tree: Any, spot: Any, unit: Any, own: Any, tables: Any, log_eps: float
) -> Any:
    """Return lowest count and size of a merge, and log of what its factor is below outside.

    A size of 0 or less means that no count of the children is within the unit's bounds.
    """
    left, right = tree[0][s], tree[1][s]
    low = spot[left, 0] + spot[right, 0]
    high = low + spot[left, 2] + spot[right, 2] - 2
    u = unit[s]
    outside = -math.inf
    if u >= 0:  # what is outside bounds is not cut off: it is impossible
        low, high = max(low, own[5][u, 0]), min(high, own[5][u, 1])
        if high < low:
            return low, 0, outside
    if u >= 0 and own[4][u] >= 0:
        row = tables[1][own[4][u]]
        if row[0] <= high and row[0] + row[2] - 1 >= low:  # nothing is possible outside the table
            low, high = max(low, row[0]), min(high, row[0] + row[2] - 1)
    elif u >= 0 and own[0][u] > 0.0:
        # The margin of 40 leaves room for evidence in which children and parent disagree.
        depth = 40.0 - log_eps
        window = factor_window(own[1][u], own[2][u], own[0][u], own[3][u], depth)
        if window[2] <= high and window[3] >= low:
            if window[2] > low or window[3] < high:
                outside = -depth
            low, high = max(low, window[2]), min(high, window[3])
    return low, high - low + 1, outside


@kernel
def close_merge(
    s: int,
    low: int,
    conv: Any,
    outside: float,
    rounded: float,
    tree: Any,
    spot: Any,
    lost: Any,
    unit: Any,
    own: Any,
    tables: Any,
    store: Any,
    offset: int,
    log_eps: float,
) -> int:
    """Apply the unit's factor to a convolution, cut, scale, write at ``offset``; return a code."""
    left, right = tree[0][s], tree[1][s]
    a = store[spot[left, 1] : spot[left, 1] + spot[left, 2]]
    b = store[spot[right, 1] : spot[right, 1] + spot[right, 2]]
    underflow = lowest(a) * lowest(b) < 1e-290
    factor, table, spread = factor_of(unit[s], own, tables)
    if unit[s] >= 0:
        spread = min(spread, own[5][unit[s], 1] - own[5][unit[s], 0] + 1.0)
    log_kept, under = apply_factor(low, factor, table, conv)
    if log_kept == -math.inf:
        return EMPTY
    scale = math.exp(min(-log_kept, 700.0))
    gone = lost_below(a, b, lost[left], lost[right], spread, 0)
    if outside > -math.inf:
        gone += math.exp(outside) * (1.0 + lost[left, 0]) * (1.0 + lost[right, 0])
    if underflow:
        gone += 1e-300
    gone *= scale
    if under:
        gone += 1e-300
    first, last, cut = tails(conv, math.exp(log_eps))
    kept = 1.0 - cut
    lost[s, 0] = (gone + cut) / kept
    lost[s, 1] = (lost_below(a, b, lost[left], lost[right], spread, 1) + rounded) * scale / kept
    spot[s, 0], spot[s, 1], spot[s, 2] = low + first, offset, last - first
    for i in range(first, last):
        store[offset + i - first] = conv[i] / kept
    return DONE


@kernel
def _leaf(
    s: int,
    u: int,
    own: Any,
    law: Any,
    bank: Any,
    bank_of: Any,
    theta: Any,
    needed: Any,
    spot: Any,
    lost: Any,
    store: Any,
    offset: int,
    log_eps: float,
) -> int:
    """Write a leaf's message at ``offset``; return a code."""
    lam, y, frac = own[0][u], own[1][u], own[2][u]
    if bank_of[u, 2] > 0:
        low, size, cut, start = bank_of[u, 1], bank_of[u, 2], 0.0, 0
    else:
        low, high, start, cut = leaf_window(
            y, frac, lam, law[u], theta[u], log_eps, own[5][u, 0], own[5][u, 1]
        )
        if high < low:
            return IMPROPER
        if needed[u] >= 0:
            low, high = min(low, needed[u]), max(high, needed[u] + 1)
        size = high - low + 1
    if offset + size > store.size:
        spot[s, 2] = size
        return ROOM
    out = store[offset : offset + size]
    if bank_of[u, 2] > 0:
        part = bank[bank_of[u, 0] : bank_of[u, 0] + size]
        if not fill_leaf_table(y, frac, lam, part, low, theta[u], out):
            return EMPTY
    else:
        fill_leaf(y, frac, lam, law[u], theta[u], low, start, out)
    spot[s, 0], spot[s, 1], spot[s, 2] = low, offset, size
    lost[s, 0], lost[s, 1] = cut, 0.0
    return DONE


@kernel
def upward(
    s: int,
    offset: int,
    tree: Any,
    unit: Any,
    own: Any,
    law: Any,
    bank: Any,
    bank_of: Any,
    tables: Any,
    theta: Any,
    needed: Any,
    spot: Any,
    lost: Any,
    store: Any,
    log_eps: float,
    longest: int,
) -> tuple[int, int, int]:
    """Pass messages from the leaves to the root; return where it stopped and why."""
    while s < unit.size:
        if tree[0][s] < 0:
            code = _leaf(
                s,
                unit[s],
                own,
                law,
                bank,
                bank_of,
                theta,
                needed,
                spot,
                lost,
                store,
                offset,
                log_eps,
            )
        else:
            left, right = tree[0][s], tree[1][s]
            if spot[left, 2] * spot[right, 2] > longest:
                return s, offset, LONG
            low, size, outside = product_window(s, tree, spot, unit, own, tables, log_eps)
            if size <= 0:
                return s, offset, EMPTY
            if offset + size > store.size:
                spot[s, 2] = size
                return s, offset, ROOM
            a = store[spot[left, 1] : spot[left, 1] + spot[left, 2]]
            b = store[spot[right, 1] : spot[right, 1] + spot[right, 2]]
            conv = np.empty(size)
            convolve_into(a, b, low - spot[left, 0] - spot[right, 0], conv)
            code = close_merge(
                s,
                low,
                conv,
                outside,
                0.0,
                tree,
                spot,
                lost,
                unit,
                own,
                tables,
                store,
                offset,
                log_eps,
            )
        if code != DONE:
            return s, offset, code
        offset += spot[s, 2]
        s += 1
    return s, offset, DONE


@kernel
def outside_message(
    s: int, unit: Any, own: Any, tables: Any, spot: Any, store: Any, above: Any
) -> Any:
    """Return what everything outside a merge says of its count, its own factor included."""
    low, offset, size = spot[s, 0], spot[s, 1], spot[s, 2]
    out = above[offset : offset + size].copy()
    for i in range(size):
        if store[offset + i] == 0.0:
            out[i] = 0.0  # cannot be reached: it must not set the scale
    factor, table, _ = factor_of(unit[s], own, tables)
    apply_factor(low, factor, table, out)
    return out


@kernel
def scale_above(s: int, spot: Any, store: Any, above: Any) -> None:
    """Scale an outside message so that message times outside message sums to 1."""
    offset, size = spot[s, 1], spot[s, 2]
    total = 0.0
    for i in range(offset, offset + size):
        total += store[i] * above[i]
    for i in range(offset, offset + size):
        above[i] /= total


@kernel
def downward(
    s: int,
    tree: Any,
    unit: Any,
    own: Any,
    tables: Any,
    spot: Any,
    store: Any,
    above: Any,
    longest: int,
) -> tuple[int, int]:
    """Pass outside messages from the root to the leaves; return where it stopped and why."""
    while s >= 0:
        left, right = tree[0][s], tree[1][s]
        if left >= 0:
            if spot[left, 2] * spot[right, 2] > longest:
                return s, LONG
            out = outside_message(s, unit, own, tables, spot, store, above)
            first = spot[left, 0] + spot[right, 0] - spot[s, 0]
            for child, other in ((left, right), (right, left)):
                u = store[spot[other, 1] : spot[other, 1] + spot[other, 2]]
                d = above[spot[child, 1] : spot[child, 1] + spot[child, 2]]
                correlate_into(u, out, first, d)
                scale_above(child, spot, store, above)
        s -= 1
    return s, DONE

"""Compiled sum-product on a binary tree of merges.  Nothing here checks its arguments.

A passage may stop, to be taken up again at the same segment, with one of these codes.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk._types import FloatArray, IntArray
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


class Merges(NamedTuple):
    """The binary tree: segment s merges ``left[s]`` and ``right[s]``, -1 for a leaf.

    ``unit[s]`` is the unit whose count it is, -1 for a partial sum of siblings.
    """

    left: IntArray
    right: IntArray
    unit: IntArray


class Leaves(NamedTuple):
    """Priors of the leaves, by unit: a law, or a table in ``bank``; and their tilts.

    ``bank_of[u]`` is (offset in the bank, lowest count, size); size 0 means a law.  A window holds
    the counts ``needed[u]`` and one more, where that is not -1.
    """

    law: FloatArray
    bank: FloatArray
    bank_of: IntArray
    theta: FloatArray
    needed: IntArray


class Messages(NamedTuple):
    """Probabilities on a window, scaled to sum 1, one after the other in ``store``.

    ``spot[s]`` is (lowest count, offset in the store, size).  ``lost[s]`` bounds, relative to the
    message's mass, the mass that was cut off below s (column 0) and what transforms rounded (1).
    """

    spot: IntArray
    lost: FloatArray
    store: FloatArray


@kernel
def message(s: int, messages: Any, store: Any) -> Any:
    """Return the message of a segment, or what stands in its place in another store."""
    offset = messages.spot[s, 1]
    return store[offset : offset + messages.spot[s, 2]]


@kernel
def product_window(s: int, merges: Any, factors: Any, spot: Any, log_eps: float) -> Any:
    """Return lowest count and size of a merge, and log of what its factor is below outside."""
    left, right = merges.left[s], merges.right[s]
    low = spot[left, 0] + spot[right, 0]
    high = low + spot[left, 2] + spot[right, 2] - 2
    u = merges.unit[s]
    outside = -math.inf
    if u >= 0 and factors.row[u] >= 0:
        row = factors.rows[factors.row[u]]
        if row[0] <= high and row[0] + row[2] - 1 >= low:  # nothing is possible outside the table
            low, high = max(low, row[0]), min(high, row[0] + row[2] - 1)
    elif u >= 0 and factors.lam[u] > 0.0:
        # The margin of 40 leaves room for evidence in which children and parent disagree.
        depth = 40.0 - log_eps
        window = factor_window(
            factors.y[u], factors.frac[u], factors.lam[u], factors.delta[u], depth
        )
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
    missing: tuple[float, float],
    merges: Any,
    factors: Any,
    messages: Any,
    log_eps: float,
) -> int:
    """Apply the unit's factor to a convolution, cut, scale, write it; return a code.

    ``missing`` is the log of what the factor is outside the window, and what transforms rounded.
    The message goes to the offset that stands in its spot.
    """
    outside, rounded = missing
    spot, lost = messages.spot, messages.lost
    left, right = merges.left[s], merges.right[s]
    a, b = message(left, messages, messages.store), message(right, messages, messages.store)
    underflow = lowest(a) * lowest(b) < 1e-290
    factor, table, spread = factor_of(merges.unit[s], factors)
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
    spot[s, 0], spot[s, 2] = low + first, last - first
    out = message(s, messages, messages.store)
    for i in range(first, last):
        out[i - first] = conv[i] / kept
    return DONE


@kernel
def _leaf(s: int, u: int, leaves: Any, factors: Any, messages: Any, log_eps: float) -> int:
    """Write a leaf's message to the offset that stands in its spot; return a code."""
    lam, y, frac = factors.lam[u], factors.y[u], factors.frac[u]
    law, theta, in_bank = leaves.law[u], leaves.theta[u], leaves.bank_of[u]
    spot, lost = messages.spot, messages.lost
    if in_bank[2] > 0:
        low, size, cut, start = in_bank[1], in_bank[2], 0.0, 0
    else:
        low, high, start, cut = leaf_window(y, frac, lam, law, theta, log_eps)
        if high < low:
            return IMPROPER
        if leaves.needed[u] >= 0:
            low, high = min(low, leaves.needed[u]), max(high, leaves.needed[u] + 1)
        size = high - low + 1
    spot[s, 0], spot[s, 2] = low, size
    if spot[s, 1] + size > messages.store.size:
        return ROOM
    out = message(s, messages, messages.store)
    if in_bank[2] > 0:
        part = leaves.bank[in_bank[0] : in_bank[0] + size]
        if not fill_leaf_table(y, frac, lam, part, low, theta, out):
            return EMPTY
    else:
        fill_leaf(y, frac, lam, law, theta, low, start, out)
    lost[s, 0], lost[s, 1] = cut, 0.0
    return DONE


@kernel
def upward(
    s: int,
    offset: int,
    merges: Any,
    leaves: Any,
    factors: Any,
    messages: Any,
    log_eps: float,
    longest: int,
) -> tuple[int, int, int]:
    """Pass messages from the leaves to the root; return where it stopped and why."""
    spot, store = messages.spot, messages.store
    while s < merges.unit.size:
        spot[s, 1] = offset
        left, right = merges.left[s], merges.right[s]
        if left < 0:
            code = _leaf(s, merges.unit[s], leaves, factors, messages, log_eps)
        else:
            if spot[left, 2] * spot[right, 2] > longest:
                return s, offset, LONG
            low, size, outside = product_window(s, merges, factors, spot, log_eps)
            if offset + size > store.size:
                spot[s, 2] = size
                return s, offset, ROOM
            a, b = message(left, messages, store), message(right, messages, store)
            conv = np.empty(size)
            convolve_into(a, b, low - spot[left, 0] - spot[right, 0], conv)
            missing = (outside, 0.0)
            code = close_merge(s, low, conv, missing, merges, factors, messages, log_eps)
        if code != DONE:
            return s, offset, code
        offset += spot[s, 2]
        s += 1
    return s, offset, DONE


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
def outside_message(s: int, merges: Any, factors: Any, messages: Any, above: Any) -> Any:
    """Return what everything outside a merge says of its count, its own factor included."""
    out = message(s, messages, above).copy()
    inside = message(s, messages, messages.store)
    for i in range(out.size):
        if inside[i] == 0.0:
            out[i] = 0.0  # cannot be reached: it must not set the scale
    factor, table, _ = factor_of(merges.unit[s], factors)
    apply_factor(messages.spot[s, 0], factor, table, out)
    return out


@kernel
def downward(
    s: int, merges: Any, factors: Any, messages: Any, above: Any, longest: int
) -> tuple[int, int]:
    """Pass outside messages from the root to the leaves; return where it stopped and why."""
    spot, store = messages.spot, messages.store
    while s >= 0:
        left, right = merges.left[s], merges.right[s]
        if left >= 0:
            if spot[left, 2] * spot[right, 2] > longest:
                return s, LONG
            out = outside_message(s, merges, factors, messages, above)
            first = spot[left, 0] + spot[right, 0] - spot[s, 0]
            for child, other in ((left, right), (right, left)):
                d = message(child, messages, above)
                correlate_into(message(other, messages, store), out, first, d)
                scale_above(child, spot, store, above)
        s -= 1
    return s, DONE

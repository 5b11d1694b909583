"""Compiled sum-product on a binary tree of merges.  Nothing here checks its arguments.

A passage may stop, to be taken up again at the same segment, with one of these codes.
"""

import math
from typing import NamedTuple

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.inference.tree._kernels import fill_leaf, fill_leaf_table, leaf_window

# -----------------------------------------------------------------------------
# Compiled arithmetic of messages: convolutions, factors, cuts.  Nothing here checks arguments.


class Factors(NamedTuple):
    """Each unit's own factor exp(-lam (x - y - frac)**2 + delta x), or its table.

    ``row[u]`` is -1, or the row of ``rows`` that says where in ``values`` the logarithms of the
    table are: lowest count, offset, size.  ``bounds`` holds the least and the largest count that
    each unit's bounds leave.
    """

    lam: FloatArray
    y: IntArray
    frac: FloatArray
    delta: FloatArray
    row: IntArray
    values: FloatArray
    rows: IntArray
    bounds: IntArray


@kernel
def factor_window(
    y: int, frac: float, lam: float, delta: float, depth: float
) -> tuple[int, float, int, int, float]:
    """Describe a unit's own factor exp(-lam (x - y - frac)**2 + delta x) on x >= 0.

    Returns its largest point x0, the slope of the logarithm there, the window outside which it
    is below exp(-depth) of the largest, and a bound on its sum (largest value 1).
    """
    shift = frac + delta / (2.0 * lam)
    x0 = max(y + int(np.rint(min(max(shift, -4.5e15), 4.5e15))), 0)
    # log factor at x0 + e, relative to x0: e (slope - lam e)
    slope = 2.0 * lam * ((y - x0) + frac) + delta
    # Roots of lam e**2 - slope e = depth, each in the form that does not cancel.
    half = 0.5 * slope / lam
    reach = math.sqrt(half * half + depth / lam)
    up = half + reach if half > 0.0 else (depth / lam) / (reach - half)
    down = reach - half if half < 0.0 else (depth / lam) / (reach + half)
    low = max(x0 - math.ceil(min(down, 4e15)), 0)
    high = x0 + math.ceil(min(up, 4e15))
    return x0, slope, low, high, 3.0 + math.sqrt(math.pi / lam)


@kernel
def convolve_into(a: FloatArray, b: FloatArray, first: int, out: FloatArray) -> None:
    """Fill ``out[z] = sum a[i] b[first + z - i]``; sums of products that are not negative."""
    if a.size > b.size:
        a, b = b, a
    out[:] = 0.0
    # The shorter outside, so that the inner loop is long and runs over neighbours in memory.
    last = first + out.size
    for i in range(a.size):
        weight = a[i]
        if weight > 0.0:
            for j in range(max(0, first - i), min(b.size, last - i)):
                out[i + j - first] += weight * b[j]


@kernel
def correlate_into(u: FloatArray, v: FloatArray, first: int, out: FloatArray) -> None:
    """Fill ``out[x] = sum_y u[y] v[x + y + first]``, v zero outside its window."""
    out[:] = 0.0
    if u.size <= out.size:
        for y in range(u.size):
            shift = y + first
            for x in range(max(0, -shift), min(out.size, v.size - shift)):
                out[x] += u[y] * v[x + shift]
    else:
        for x in range(out.size):
            total = 0.0
            shift = x + first
            for y in range(max(0, -shift), min(u.size, v.size - shift)):
                total += u[y] * v[y + shift]
            out[x] = total


@kernel
def apply_factor(
    low: int, factor: tuple[int, float, float], table: tuple[int, FloatArray], out: FloatArray
) -> tuple[float, bool]:
    """Multiply ``out`` by a unit's factor, scale to sum 1; return the log sum, and any underflow.

    ``factor`` is (x0, slope, lam); a ``table`` (lowest count, log values) replaces it.
    """
    peak = -math.inf
    total = 0.0
    if factor[2] == 0.0 and not table[1].size:  # no factor: spare the logarithms
        for i in range(out.size):
            total += out[i]
        if not total > 0.0:
            return peak, False
        for i in range(out.size):
            out[i] /= total
        return math.log(total), False
    for i in range(out.size):
        if out[i] > 0.0:
            if table[1].size:
                at = low + i - table[0]
                gain = table[1][at] if 0 <= at < table[1].size else -math.inf
            else:
                e = float(low + i - factor[0])
                gain = e * (factor[1] - factor[2] * e)
            out[i] = math.log(out[i]) + gain
            peak = max(peak, out[i])
        else:
            out[i] = -math.inf
    # exp relative to the largest; what underflows is reported, as it counts as cut off.
    if peak == -math.inf:
        return peak, False
    under = False
    for i in range(out.size):
        under |= -math.inf < out[i] - peak < -700.0
        out[i] = math.exp(out[i] - peak)
        total += out[i]
    for i in range(out.size):
        out[i] /= total
    return peak + math.log(total), under


@kernel
def factor_of(
    u: int, factors: Factors
) -> tuple[tuple[int, float, float], tuple[int, FloatArray], float]:
    """Return a unit's factor, its table (empty for none) and a bound on the factor's sum."""
    factor, spread = (0, 0.0, 0.0), math.inf
    low, offset, size = 0, 0, 0
    if u >= 0 and factors.row[u] >= 0:
        row = factors.rows[factors.row[u]]
        low, offset, size = row[0], row[1], row[2]
        spread = np.exp(factors.values[offset : offset + size]).sum()
    elif u >= 0 and factors.lam[u] > 0.0:
        window = factor_window(factors.y[u], factors.frac[u], factors.lam[u], factors.delta[u], 1.0)
        factor, spread = (window[0], window[1], factors.lam[u]), window[4]
    return factor, (low, factors.values[offset : offset + size]), spread


@kernel
def _lowest(a: FloatArray) -> float:
    """Return the smallest positive entry."""
    low = math.inf
    for value in a:
        if value > 0.0:
            low = min(low, value)
    return low


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
def message(s: int, messages: Messages, store: FloatArray) -> FloatArray:
    """Return the message of a segment, or what stands in its place in another store."""
    offset = messages.spot[s, 1]
    return store[offset : offset + messages.spot[s, 2]]


@kernel
def product_window(
    s: int, merges: Merges, factors: Factors, spot: IntArray, log_eps: float
) -> tuple[int, int, float]:
    """Return lowest count and size of a merge, and log of what its factor is below outside.

    A size of 0 or less means that no count of the children is within the unit's bounds.
    """
    left, right = merges.left[s], merges.right[s]
    low = spot[left, 0] + spot[right, 0]
    high = low + spot[left, 2] + spot[right, 2] - 2
    u = merges.unit[s]
    outside = -math.inf
    if u >= 0:  # what is outside bounds is not cut off: it is impossible
        low, high = max(low, factors.bounds[u, 0]), min(high, factors.bounds[u, 1])
        if high < low:
            return low, 0, outside
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
    conv: FloatArray,
    missing: tuple[float, float],
    merges: Merges,
    factors: Factors,
    messages: Messages,
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
    underflow = _lowest(a) * _lowest(b) < 1e-290
    # message = factor * (left conv right), scaled to sum 1: all that was lost is scaled with it.
    u = merges.unit[s]
    factor, table, spread = factor_of(u, factors)
    if u >= 0:
        spread = min(spread, factors.bounds[u, 1] - factors.bounds[u, 0] + 1.0)
    log_kept, under = apply_factor(low, factor, table, conv)
    if log_kept == -math.inf:
        return EMPTY
    scale = math.exp(min(-log_kept, 700.0))
    # What one side lost meets the other side, and passes the factor (largest value 1, sum spread)
    # at most as fast as the other side's largest value allows:
    # sum_x f(x) sum_i a_lost(i) b(x - i) <= |a_lost| min(1, max(b) sum f)
    pass_a, pass_b = min(1.0, b.max() * spread), min(1.0, a.max() * spread)
    gone = lost[left, 0] * (pass_a + lost[right, 0]) + lost[right, 0] * pass_b
    rounded += lost[left, 1] * (pass_a + lost[right, 1]) + lost[right, 1] * pass_b
    if outside > -math.inf:
        gone += math.exp(outside) * (1.0 + lost[left, 0]) * (1.0 + lost[right, 0])
    if underflow:
        gone += 1e-300
    gone *= scale
    if under:
        gone += 1e-300
    # Cut at most exp(log_eps) from each end, and pass on what is lost below this segment.
    eps, first, last = math.exp(log_eps), 0, conv.size
    lower = upper = 0.0
    while first < last - 1 and lower + conv[first] <= eps:
        lower += conv[first]
        first += 1
    while last - 1 > first and upper + conv[last - 1] <= eps:
        upper += conv[last - 1]
        last -= 1
    kept = 1.0 - (lower + upper)
    lost[s, 0] = (gone + (lower + upper)) / kept
    lost[s, 1] = rounded * scale / kept
    spot[s, 0], spot[s, 2] = low + first, last - first
    out = message(s, messages, messages.store)
    for i in range(first, last):
        out[i - first] = conv[i] / kept
    return DONE


@kernel
def _leaf(
    s: int, u: int, leaves: Leaves, factors: Factors, messages: Messages, log_eps: float
) -> int:
    """Write a leaf's message to the offset that stands in its spot; return a code."""
    lam, y, frac = factors.lam[u], factors.y[u], factors.frac[u]
    law, theta, in_bank = leaves.law[u], leaves.theta[u], leaves.bank_of[u]
    spot, lost = messages.spot, messages.lost
    # The window: all of a table, or as much of a law as leaves out a share exp(log_eps).
    if in_bank[2] > 0:
        low, size, cut, start = in_bank[1], in_bank[2], 0.0, 0
    else:
        low, high, start, cut = leaf_window(
            y, frac, lam, law, theta, log_eps, factors.bounds[u, 0], factors.bounds[u, 1]
        )
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
    merges: Merges,
    leaves: Leaves,
    factors: Factors,
    messages: Messages,
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
            # Long products and a full store are the caller's: it takes up again at s.
            if spot[left, 2] * spot[right, 2] > longest:
                return s, offset, LONG
            low, size, outside = product_window(s, merges, factors, spot, log_eps)
            if size <= 0:
                return s, offset, EMPTY
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
def scale_above(s: int, spot: IntArray, store: FloatArray, above: FloatArray) -> None:
    """Scale an outside message so that message times outside message sums to 1."""
    offset, size = spot[s, 1], spot[s, 2]
    total = 0.0
    for i in range(offset, offset + size):
        total += store[i] * above[i]
    for i in range(offset, offset + size):
        above[i] /= total


@kernel
def outside_message(
    s: int, merges: Merges, factors: Factors, messages: Messages, above: FloatArray
) -> FloatArray:
    """Return the evidence on a merge's count from everything outside it and its own factor."""
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
    s: int, merges: Merges, factors: Factors, messages: Messages, above: FloatArray, longest: int
) -> tuple[int, int]:
    """Pass outside messages from the root to the leaves; return where it stopped and why."""
    spot, store = messages.spot, messages.store
    while s >= 0:
        left, right = merges.left[s], merges.right[s]
        if left >= 0:
            if spot[left, 2] * spot[right, 2] > longest:
                return s, LONG
            # outside(child)[x] = sum_y sibling[y] outside(parent)[x + y], for both children
            out = outside_message(s, merges, factors, messages, above)
            first = spot[left, 0] + spot[right, 0] - spot[s, 0]
            for child, other in ((left, right), (right, left)):
                d = message(child, messages, above)
                correlate_into(message(other, messages, store), out, first, d)
                scale_above(child, spot, store, above)
        s -= 1
    return s, DONE

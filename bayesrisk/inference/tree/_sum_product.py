"""Sum-product on a tree of counts: messages up from the leaves and down from the root.

Messages are tilted (see below), so that they are large where the posterior is, even if parent and
children disagree. Mass cut off a message then weighs about as much in the posterior, and the upward
pass alone bounds it. If the bound is too large, tilts are improved and windows widened. A compiled
pass may stop with a code, and be resumed.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step, step
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.distributions.sums import transform_convolution
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.tree import _kernels as kernels
from bayesrisk.inference.tree.plan import Plan


class Factors(NamedTuple):
    """Each unit's own factor exp(-lam (x - y - frac)**2 + delta x), or a table in its place.

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


@lean_step
def factor_window(
    y: int, frac: float, lam: float, delta: float, depth: float
) -> tuple[int, float, int, int, float]:
    """Return the peak and window of a unit's factor exp(-lam (x - y - frac)**2 + delta x).

    The result has the largest point x0 and the slope of the logarithm there. It has the window
    outside which the factor is below exp(-depth) of the largest value. Last comes a bound on its
    sum, with largest value 1.
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


@lean_kernel
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


@lean_kernel
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


@lean_step
def apply_factor(
    low: int, factor: tuple[int, float, float], table: tuple[int, FloatArray], out: FloatArray
) -> tuple[float, bool]:
    """Multiply ``out`` by a unit's factor; return the log of the sum, and whether it underflowed.

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
                position = low + i - table[0]
                gain = table[1][position] if 0 <= position < table[1].size else -math.inf
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
    underflow = False
    for i in range(out.size):
        underflow |= -math.inf < out[i] - peak < -700.0
        out[i] = math.exp(out[i] - peak)
        total += out[i]
    for i in range(out.size):
        out[i] /= total
    return peak + math.log(total), underflow


@step
def unit_factor(
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


@lean_step
def _lowest(a: FloatArray) -> float:
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
    """Binary tree of merges: segment s merges ``left[s]`` and ``right[s]`` (-1 for a leaf).

    ``unit[s]`` is the unit whose count it is, -1 for a partial sum of siblings.
    """

    left: IntArray
    right: IntArray
    unit: IntArray


class Leaves(NamedTuple):
    """Each leaf's prior by unit (a law, or a table in ``bank``), and its tilt.

    ``bank_slot[u]`` is (offset in the bank, lowest count, size); size 0 means a law.  A window
    holds the counts ``needed[u]`` and one more, where that is not -1.
    """

    law: FloatArray
    bank: FloatArray
    bank_slot: IntArray
    theta: FloatArray
    needed: IntArray


class Messages(NamedTuple):
    """Messages as probabilities on windows, concatenated in ``store``.

    ``spot[s]`` is (lowest count, offset in the store, size). ``lost[s]`` has two bounds relative to
    the message's mass: the mass cut off below s (column 0), and the rounding of transforms (column
    1).
    """

    spot: IntArray
    lost: FloatArray
    store: FloatArray


@step
def message(s: int, messages: Messages, store: FloatArray) -> FloatArray:
    """Return the part of ``store`` that belongs to a segment."""
    offset = messages.spot[s, 1]
    return store[offset : offset + messages.spot[s, 2]]


@lean_kernel
def product_window(
    s: int, merges: Merges, factors: Factors, spot: IntArray, log_eps: float
) -> tuple[int, int, float]:
    """Return a merge's lowest count and size, and a log bound on its factor outside.

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
    """Store a merge's message: convolution times factor, cut and scaled; return a code.

    ``missing`` is the log of the factor outside the window, plus the rounding of transforms. The
    message is stored at the offset in its spot.
    """
    outside, rounded = missing
    spot, lost = messages.spot, messages.lost
    left, right = merges.left[s], merges.right[s]
    a, b = message(left, messages, messages.store), message(right, messages, messages.store)
    underflow = _lowest(a) * _lowest(b) < 1e-290
    # message = factor * (left conv right), scaled to sum 1: all that was lost is scaled with it.
    u = merges.unit[s]
    factor, table, spread = unit_factor(u, factors)
    if u >= 0:
        spread = min(spread, factors.bounds[u, 1] - factors.bounds[u, 0] + 1.0)
    log_kept, below = apply_factor(low, factor, table, conv)
    if log_kept == -math.inf:
        return EMPTY
    scale = math.exp(min(-log_kept, 700.0))
    # What one side lost meets the other side, and passes the factor (largest value 1, sum spread)
    # at most as fast as the other side's largest value allows:
    # sum_x f(x) sum_i a_lost(i) b(x - i) <= |a_lost| min(1, max(b) sum f)
    pass_a, pass_b = min(1.0, b.max() * spread), min(1.0, a.max() * spread)
    lost_mass = lost[left, 0] * (pass_a + lost[right, 0]) + lost[right, 0] * pass_b
    rounded += lost[left, 1] * (pass_a + lost[right, 1]) + lost[right, 1] * pass_b
    if outside > -math.inf:
        lost_mass += math.exp(outside) * (1.0 + lost[left, 0]) * (1.0 + lost[right, 0])
    if underflow:
        lost_mass += 1e-300
    lost_mass *= scale
    if below:
        lost_mass += 1e-300
    # Cut at most exp(log_eps) from each end, and pass on what is lost below this segment.
    eps, first, last = math.exp(log_eps), 0, conv.size
    lower = upper = 0.0
    while first < last - 1 and lower + conv[first] <= eps:
        lower += conv[first]
        first += 1
    while last - 1 > first and upper + conv[last - 1] <= eps:
        upper += conv[last - 1]
        last -= 1
    remaining = 1.0 - (lower + upper)
    lost[s, 0] = (lost_mass + (lower + upper)) / remaining
    lost[s, 1] = rounded * scale / remaining
    spot[s, 0], spot[s, 2] = low + first, last - first
    out = message(s, messages, messages.store)
    for i in range(first, last):
        out[i - first] = conv[i] / remaining
    return DONE


@step
def _leaf(
    s: int, u: int, leaves: Leaves, factors: Factors, messages: Messages, log_eps: float
) -> int:
    """Store a leaf's message at the offset in its spot; return a code."""
    lam, y, frac = factors.lam[u], factors.y[u], factors.frac[u]
    leaf = kernels.Leaf(y, frac, lam, leaves.law[u], leaves.theta[u])
    spot, lost, in_bank = messages.spot, messages.lost, leaves.bank_slot[u]
    # The window: all of a table, or as much of a law as leaves out a share exp(log_eps).
    if in_bank[2] > 0:
        low, size, cut, start = in_bank[1], in_bank[2], 0.0, 0
    else:
        least, most = factors.bounds[u, 0], factors.bounds[u, 1]
        low, high, start, cut = kernels.leaf_window(leaf, log_eps, least, most)
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
        if not kernels.fill_leaf_table(leaf, part, low, out):
            return EMPTY
    else:
        kernels.fill_leaf(leaf, low, start, out)
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
    """Pass messages from the leaves up; return the segment and offset reached, and a code."""
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


@lean_kernel
def scale_above(s: int, spot: IntArray, store: FloatArray, above: FloatArray) -> None:
    """Scale an outside message so that its product with the message sums to 1."""
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
    """Return the evidence on a merge's count from outside, times the merge's own factor."""
    out = message(s, messages, above).copy()
    inside = message(s, messages, messages.store)
    for i in range(out.size):
        if inside[i] == 0.0:
            out[i] = 0.0  # cannot be reached: it must not set the scale
    factor, table, _ = unit_factor(merges.unit[s], factors)
    apply_factor(messages.spot[s, 0], factor, table, out)
    return out


@kernel
def downward(
    s: int, merges: Merges, factors: Factors, messages: Messages, above: FloatArray, longest: int
) -> tuple[int, int]:
    """Pass outside messages from the root down; return the segment reached, and a code."""
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


# -----------------------------------------------------------------------------
# Tilts of a tree's messages: where a message has to be large for the posterior.
#
# The evidence of a unit is multiplied by exp((theta - tilt) x), theta the tilt of the release above
# it and tilt that of its own children, and a leaf's message by exp(theta x).  The product over a
# tree stays the same.  The tilts minimise the product of the messages' sums and the factors'
# largest values, which bounds the evidence and is convex.


#: Newton steps at most; a dozen are enough where counts agree, some fifty where they do not.
_MAX_STEPS = 200
#: Largest tilt in nats.  Tilts cancel against the evidence to within their rounding, 2**-52 of
#: them: beyond this the log odds of neighbouring counts would be wrong by more than 1e-6.
MAX_TILT = 2.0**32


@dataclass(frozen=True, eq=False)
class Tilts:
    """Each unit's tilt for its children, its own (theta), and the difference (delta)."""

    tilt: FloatArray
    theta: FloatArray
    delta: FloatArray
    expected: FloatArray


def find_tilts(
    plan: Plan, last: Tilts | None = None, message_mean: FloatArray | None = None
) -> Tilts:
    """Return tilts, improved by the means of the last passage's messages if given."""
    lam, centre = plan.lam.copy(), plan.y + plan.frac
    for u, (low, values) in plan.tables.items():
        weight = np.exp(values - values.max())
        weight /= weight.sum()
        x = low + np.arange(values.size)
        mean = float(weight @ x)
        precision = 0.5 / max(float(weight @ (x - mean) ** 2), 1e-6)
        centre[u] = (lam[u] * centre[u] + precision * mean) / (lam[u] + precision)
        lam[u] += precision
    released = (lam > 0.0) & ~plan.is_leaf
    # The nearest unit above each with something that bounds its count; -1 for none.
    owner = np.full(lam.size, -1, dtype=np.int64)
    for u, above in enumerate(plan.parent.tolist()[1:], start=1):
        owner[u] = above if released[above] else owner[above]
    free = plan.is_leaf & (plan.lam == 0.0) & (plan.bank_slot[:, 2] == 0)
    free &= np.isfinite(plan.law[:, 1]) & (plan.law[:, 2] >= 0.0)
    if np.any(free & (owner < 0)):
        leaf = int(np.argmax(free & (owner < 0)))
        raise ArgumentError(
            f"leaf_prior must be proper for leaf {plan.leaf_name(leaf)!r}: nothing is released "
            f"there or above it, and its posterior is improper"
        )
    tilt, bias = np.zeros(lam.size), np.zeros(lam.size)
    if last is not None and message_mean is not None:
        bias = np.where(released, message_mean - last.expected, 0.0)
        return _minimise(plan, lam, centre, owner, released, bias, last.tilt)
    n_free = np.bincount(owner[free], minlength=lam.size)
    has_free = n_free > 0
    tilt[has_free] = -np.log1p(n_free[has_free] / (np.maximum(centre[has_free], 0.0) + 1.0))
    return _minimise(plan, lam, centre, owner, released, bias, tilt)


def _minimise(
    plan: Plan,
    lam: FloatArray,
    centre: FloatArray,
    owner: IntArray,
    released: BoolArray,
    bias: FloatArray,
    tilt: FloatArray,
) -> Tilts:
    """Return tilts found by damped Newton steps; any tilts that can be summed are valid.

    The number of steps is therefore limited, and the last tilts are used when it is reached: the
    passage bounds the mass it cuts off for any tilts.
    """
    step = np.zeros(lam.size)
    inner = np.flatnonzero(released)
    leaves = np.flatnonzero(plan.is_leaf)
    loose = 0.5 / lam[inner]
    leaf_arrays = kernels.LeafArrays(
        leaves, plan.y, plan.frac, plan.lam, plan.law, plan.bank, plan.bank_slot
    )
    releases = kernels.NodeReleases(owner, plan.is_leaf, released, lam, centre, bias)

    def above(values: FloatArray) -> FloatArray:
        return np.where(owner >= 0, values[owner], 0.0)

    def moments(point: FloatArray) -> tuple[bool, FloatArray, FloatArray]:
        mean, var = np.zeros(lam.size), np.zeros(lam.size)
        ok = kernels.leaf_moments(leaf_arrays, above(point), mean, var)
        return bool(ok), mean, var

    ok, mean, var = moments(tilt)
    for _ in range(_MAX_STEPS if ok and inner.size else 0):
        slope = kernels.newton_direction(releases, tilt, mean, var, step)
        if not slope < -0.5:  # half of it is what the bound could still gain, in nats
            break
        size, reached = 1.0, np.inf
        while size > 1e-9:  # at most thirty halvings
            trial = tilt + size * step
            inside, mean, var = moments(trial)
            if inside:  # the slope along the step says whether it went too far
                with np.errstate(over="ignore", invalid="ignore"):  # beyond doubles is too far
                    count = centre[inner] + (above(trial) - trial)[inner] * loose
                    reached = float(mean[leaves] @ above(step)[leaves])
                    reached += float(count @ (above(step) - step)[inner] + bias @ above(step))
                if reached <= 0.5 * abs(slope):
                    break
            size *= 0.5
        else:
            break
        tilt = trial
    theta = above(tilt)
    largest = float(np.max(np.abs(tilt), initial=0.0))
    if not largest <= MAX_TILT:
        raise ArgumentError(
            f"releases must agree to within a tilt of {MAX_TILT:.3g} nats (about 2 rho times the "
            f"gap between a count and what the others say of it), got {largest:.3g}: their noise "
            "could not have made them, or rho is too large"
        )
    delta = np.where(released, theta - tilt, 0.0)
    expected = centre.astype(np.float64)
    expected[inner] += delta[inner] * loose
    return Tilts(tilt, theta, delta, expected)


#: Doubles in all messages together; the passage down needs as many again.
MAX_ENTRIES = 2**27
_LONGEST_DIRECT = 2**24  # products; beyond, a transform is faster
_WORST_TRANSFORM = 1e-12  # share of the posterior that rounding of a transform may touch
_IMPROVEMENTS = 3  # of the tilts, before windows are widened
_TENSION = 60.0  # log of an excess for which better tilts are cheaper than wider windows
_NARROWEST = -600.0  # log of the smallest share that is cut: everything stays in double range


@dataclass(frozen=True, eq=False)
class Marginals:
    """Posterior pmfs of all units, concatenated in ``pmf``.

    ``summary`` holds mean, standard deviation, mode and P(count >= 1) of each.
    """

    low: IntArray
    offset: IntArray
    size: IntArray
    pmf: FloatArray
    summary: FloatArray
    truncation: float
    rounding: float
    peak_bytes: int


def _own_factors(plan: Plan, delta: FloatArray) -> Factors:
    """Return each unit's own factor, scaled to a largest value of 1."""
    row = np.full(plan.lam.size, -1, dtype=np.int64)
    spots, parts = [(0, 0, 0)], [np.zeros(0)]
    for u, (low, values) in plan.tables.items():
        # The evidence relative to that of the lowest count, which would drown the differences.
        d = np.arange(values.size, dtype=np.float64)
        gap = float(low - int(plan.y[u])) - plan.frac[u]
        values = values - plan.lam[u] * d * (d + 2.0 * gap) + delta[u] * d
        row[u] = len(spots)
        spots.append((low, sum(p.size for p in parts), values.size))
        parts.append(values - values.max())
    values, rows = np.concatenate(parts), np.array(spots, dtype=np.int64)
    return Factors(plan.lam, plan.y, plan.frac, delta, row, values, rows, plan.bounds)


class Passage:
    """One passage up and down a plan, with windows of one width."""

    def __init__(self, plan: Plan, tilts: Tilts, needed: IntArray) -> None:
        self.plan, self.needed = plan, needed
        self.set_tilts(tilts)
        n = plan.unit.size
        self.merges = Merges(plan.left, plan.right, plan.unit)
        self.spot = np.zeros((n, 3), dtype=np.int64)
        self.lost = np.zeros((n, 2))
        self.store = np.empty(max(64 * n, 1024))
        self.above = np.empty(0)
        self.rounded = 0.0
        self.empty = False

    @property
    def state(self) -> Messages:
        """The messages as the kernels take them, with the current store."""
        return Messages(self.spot, self.lost, self.store)

    def set_tilts(self, tilts: Tilts) -> None:
        """Set the tilts, and the factors that depend on them."""
        self.tilts, self.theta = tilts, tilts.theta
        self.factors = _own_factors(self.plan, tilts.delta)

    def improve(self) -> None:
        """Improve the tilts by the means of the last upward messages."""
        windows = self.spot[self.plan.root].tolist()
        means = [low + np.arange(n) @ self.store[start : start + n] for low, start, n in windows]
        self.set_tilts(find_tilts(self.plan, self.tilts, np.array(means)))

    def up(self, log_eps: float) -> float:
        """Compute the messages; return a bound on the posterior mass cut off."""
        plan, s, offset = self.plan, 0, 0
        leaves = Leaves(plan.law, plan.bank, plan.bank_slot, self.theta, self.needed)
        self.empty = False
        while True:  # ends: each round makes room, up to ``most``, or passes a segment
            s, offset, code = upward(
                s, offset, self.merges, leaves, self.factors, self.state, log_eps, _LONGEST_DIRECT
            )
            if code == DONE:
                self.used = offset
                return float(self.lost[-1, 0])
            if code == LONG:
                code = self._long_merge(s, offset, log_eps)
            if code == ROOM:
                self._grow(offset + int(self.spot[s, 2]))
            elif code == IMPROPER:
                name = plan.leaf_name(int(plan.unit[s]))
                raise ArgumentError(
                    f"leaf {name!r} needs a release or a proper leaf_prior: its count is bounded "
                    "too loosely"
                )
            elif code == EMPTY:
                self.empty = True
                return np.inf
            else:
                offset += int(self.spot[s, 2])
                s += 1

    def _grow(self, needed: int) -> None:
        if needed > MAX_ENTRIES:
            raise ArgumentError(
                f"the tree must need at most {MAX_ENTRIES} probabilities, got more: give leaves "
                f"without a release a narrower leaf_prior"
            )
        larger = np.empty(min(max(2 * self.store.size, needed), MAX_ENTRIES))
        larger[: self.store.size] = self.store
        self.store = larger

    def _message(self, s: int) -> FloatArray:
        _, offset, size = self.spot[s]
        return self.store[offset : offset + size]

    def _long_merge(self, s: int, offset: int, log_eps: float) -> int:
        """Merge two long messages by FFT, or directly if that is too inaccurate; return a code."""
        plan = self.plan
        left, right = int(plan.left[s]), int(plan.right[s])
        low, size, outside = product_window(s, self.merges, self.factors, self.spot, log_eps)
        if size <= 0:
            return int(EMPTY)
        if offset + size > self.store.size:
            self.spot[s, 2] = size
            return int(ROOM)
        first = low - int(self.spot[left, 0] + self.spot[right, 0])
        a, b = self._message(left), self._message(right)
        full, error = transform_convolution(a, b)
        for exact in (False, True):
            conv, rounded = full[first : first + size].copy(), size * error
            if exact:
                rounded = 0.0
                convolve_into(a, b, first, conv)
            missing = (outside, float(rounded))
            code = close_merge(
                s, low, conv, missing, self.merges, self.factors, self.state, log_eps
            )
            if code == DONE and self.lost[s, 1] <= _WORST_TRANSFORM:
                break
        return int(code)

    def down(self) -> None:
        """Compute the outside messages, whose products with the messages are the posteriors."""
        s = self.plan.unit.size - 1
        self.above = np.zeros(self.used)
        _, offset, size = self.spot[s]
        self.above[offset : offset + size] = 1.0
        scale_above(s, self.spot, self.store, self.above)
        while s >= 0:
            s, code = downward(
                s, self.merges, self.factors, self.state, self.above, _LONGEST_DIRECT
            )
            if code == LONG:
                self._long_split(s)
                s -= 1

    def _long_split(self, s: int) -> None:
        plan = self.plan
        out = outside_message(s, self.merges, self.factors, self.state, self.above)
        left, right = int(plan.left[s]), int(plan.right[s])
        first = int(self.spot[left, 0] + self.spot[right, 0] - self.spot[s, 0])
        for child, other in ((left, right), (right, left)):
            _, offset, size = self.spot[child]
            u, d = self._message(other), self.above[offset : offset + size]
            full, error = transform_convolution(u[::-1], out)
            position = np.arange(size) + first + u.size - 1
            inside = (position >= 0) & (position < full.size)
            d[:] = np.where(inside, full[np.clip(position, 0, full.size - 1)], 0.0)
            share = error / max(float(self._message(child) @ d), 1e-300)
            if share > _WORST_TRANSFORM:
                correlate_into(u, out, first, d)
            else:
                self.rounded += share
            scale_above(child, self.spot, self.store, self.above)

    def marginals(self, truncation: float) -> Marginals:
        """Return the posterior of every unit."""
        low, start, size = self.spot[self.plan.root].T.copy()
        offset = np.concatenate(([0], np.cumsum(size)[:-1]))
        pmf = np.empty(int(size.sum()))
        summary = np.empty((size.size, 4))
        kernels.gather_marginals(low, (start, size), self.store, self.above, pmf, summary)
        peak = self.store.nbytes + self.above.nbytes + pmf.nbytes
        rounding = self.rounded + float(self.lost[-1, 1])
        return Marginals(low, offset, size, pmf, summary, min(truncation, 1.0), rounding, peak)


def run(plan: Plan, *, tail: float, needed: IntArray | None = None) -> Marginals:
    """Return the posterior of every unit, with at most ``tail`` cut off if possible."""
    wanted = np.full(plan.lam.size, -1, dtype=np.int64) if needed is None else needed
    passage = Passage(plan, find_tilts(plan), wanted)
    # In hand for evidence in tension, which at the top of a tree grows with its size.
    margin = 7.0 + min(2e-4 * plan.unit.size, 50.0)
    log_eps = np.log(tail) - np.log(plan.unit.size) - margin
    improved = narrowed = 0
    while True:  # ends: at most _IMPROVEMENTS, one narrowing, and doublings up to _NARROWEST
        log_eps = max(log_eps, _NARROWEST)
        bound = passage.up(log_eps)
        if bound <= tail or log_eps == _NARROWEST:
            break
        excess = np.log(bound / tail) if np.isfinite(bound) else np.inf
        if excess > _TENSION and improved < _IMPROVEMENTS and not passage.empty:
            passage.improve()
            improved += 1
        elif narrowed or np.isinf(excess):
            log_eps *= 2.0
        else:  # as a rule, what is cut off shrinks with the share that may be
            log_eps -= excess + 2.0
            narrowed = 1
    if passage.empty:
        raise ArgumentError(
            "leaf_prior, other priors and bounds must allow some set of counts that adds up, got "
            "none whose evidence is within exp(-600) of the best for each count alone"
        )
    passage.down()
    return passage.marginals(bound)

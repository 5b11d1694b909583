"""Compiled inner loops of trees: shape, leaf messages, tilts; arguments are not checked.

A *unit* is a maximal chain of nodes that have one count (each but the last has a single child). Its
evidence is exp(-lam (x - y - frac)**2), with y whole and frac the small rest. A leaf's message is
tilted by exp(theta x). Windows are cut by bounds on the ratio of successive terms, which hold for
every prior of the family (see ``LeafPrior``).
"""

import math
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_kernel, lean_step
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray

_LONGEST = 2**25  # entries of one leaf's window on either side of its start
_WIDEST = -14.0  # log of a share above any that a window cuts off
_FARTHEST = 2**52  # count beyond which nothing is looked for


@kernel
def pair_children(
    first: IntArray,
    count: IntArray,
    left: IntArray,
    right: IntArray,
    unit: IntArray,
    root: IntArray,
) -> None:
    """Fill a balanced binary tree of merges under every unit, bottom up.

    Segment s merges ``left[s]`` and ``right[s]`` (-1 for a leaf); ``unit[s]`` is the unit whose
    count it is, -1 for a partial sum of siblings.  ``root[u]`` is the segment of unit u.
    """
    s = 0
    for u in range(count.size - 1, -1, -1):
        n = count[u]
        if n == 0:
            left[s] = right[s] = -1
        else:
            # Merge neighbours round by round: the depth is log2 of the number of children.
            queue = root[first[u] : first[u] + n].copy()
            while n > 2:
                half = 0
                for i in range(0, n - 1, 2):
                    left[s], right[s], unit[s] = queue[i], queue[i + 1], -1
                    queue[half] = s
                    half += 1
                    s += 1
                if n % 2:
                    queue[half] = queue[n - 1]
                    half += 1
                n = half
            left[s], right[s] = queue[0], queue[1]
        unit[s] = u
        root[u] = s
        s += 1


class Leaf(NamedTuple):
    """Parameters of a leaf's tilted message, exp(-lam (x - y - frac)**2 + theta x) prior(x).

    ``law`` is the prior's (log_jump, size, log_ratio); see ``LeafPrior``.
    """

    y: int
    frac: float
    lam: float
    law: FloatArray
    theta: float


@lean_step
def _log_step(x: int, leaf: Leaf) -> float:
    """Return log term(x + 1) - log term(x)."""
    # log prior(x + 1) / prior(x): the jump, mu / (x + 1), q, or q (x + r) / (x + 1)
    prior: float
    law = leaf.law
    if x == 0:
        prior = law[0]
    elif law[1] == math.inf:
        prior = law[2] - math.log(x + 1.0)
    elif law[1] == 1.0:
        prior = law[2]
    else:
        prior = law[2] + math.log((x + law[1]) / (x + 1.0))
    # evidence: -lam ((x + 1 - y - frac)**2 - (x - y - frac)**2)
    return prior + leaf.theta - leaf.lam * (2.0 * ((x - leaf.y) - leaf.frac) + 1.0)


@lean_step
def _log_step_above(x: int, leaf: Leaf) -> float:
    """Return an upper bound of the log ratio of successive terms at x >= 1 and beyond."""
    step: float = _log_step(x, leaf)
    if leaf.law[1] < 1.0:  # (z + r) / (z + 1) grows towards 1
        step -= math.log((x + leaf.law[1]) / (x + 1.0))
    return step


@lean_step
def _start(leaf: Leaf) -> int:
    """Return roughly the x >= 1 at which the terms are largest."""
    low, high = 1, 2
    # At most sixty doublings; a window that begins that far out is refused for its length.
    while high < _FARTHEST and _log_step_above(high, leaf) > 0.0:
        low, high = high, 2 * high
    # Bisection: the bound on the step falls in x.
    while high - low > 1:
        middle = (low + high) // 2
        if _log_step_above(middle, leaf) > 0.0:
            low = middle
        else:
            high = middle
    return low if _log_step_above(low, leaf) <= 0.0 else high


@lean_step
def _endless(start: int, leaf: Leaf, log_eps: float) -> bool:
    """Return whether every short enough window above ``start`` leaves out too large a share.

    No step up to the longest window is below ``least``; so its last term is at least that many
    of them, the mass at most its length, and the bound on what lies beyond at least ``beyond``.
    """
    last, law = start + _LONGEST, leaf.law
    least: float = _log_step(last, leaf)
    if law[1] < 1.0:
        least += math.log((start + law[1]) / (start + 1.0)) - math.log((last + law[1]) / (last + 1))
    if least >= 0.0:
        return True
    beyond = _LONGEST * least - math.log(-math.expm1(least))
    return beyond > log_eps + math.log(_LONGEST + 1.0)


@lean_step
def leaf_window(leaf: Leaf, log_eps: float, least: int, most: int) -> tuple[int, int, int, float]:
    """Return a leaf's window (low, high), where to start filling it, and the share cut off.

    The count is known to be in ``least``, ..., ``most``; values outside do not count as cut off.
    The share is relative to the mass kept, at most ``2 exp(log_eps)``. A window of size 0 means
    that the terms cannot be summed.
    """
    law = leaf.law
    if leaf.lam == 0.0 and law[1] < math.inf and law[2] + leaf.theta >= 0.0:
        return 0, -1, 0, 0.0
    start = min(max(_start(leaf), least), most)
    far = most - start > _LONGEST or most >= _FARTHEST
    if far and _endless(start, leaf, log_eps):
        return 0, -1, 0, 0.0
    # Upwards until a geometric series bounds what is beyond: term ratio / (1 - ratio).
    mass = 1.0
    log_term = 0.0
    high = start
    upper = lower = -math.inf
    while high < most:
        ratio = _log_step_above(high, leaf)
        if ratio < 0.0:
            upper = log_term + ratio - math.log(-math.expm1(ratio))
            if upper <= log_eps + math.log(mass):
                break
        if high - start > _LONGEST:
            return 0, -1, 0, 0.0
        log_term += _log_step(high, leaf)
        mass += math.exp(log_term)
        high += 1
        upper = -math.inf
    # Downwards likewise; the term of zero has a ratio of its own.
    log_term = 0.0
    low = start
    while low > least:
        if low > 1:
            # A bound on the log ratios from below, on 1, ..., low - 1
            ratio = _log_step(low - 1, leaf)
            if law[1] < 1.0:  # smallest at 1
                ratio += math.log(0.5 * (1.0 + law[1])) - math.log((low - 1 + law[1]) / low)
            if ratio > 0.0:
                lower = log_term - ratio - math.log(-math.expm1(-ratio))
                log_zero = log_term - (low - 1) * ratio
                log_zero -= _log_step(0, leaf)
                lower = max(lower, log_zero) + math.log(2.0)
                if lower <= log_eps + math.log(mass):
                    break
        if start - low > _LONGEST:
            return 0, -1, 0, 0.0
        low -= 1
        log_term -= _log_step(low, leaf)
        mass += math.exp(min(log_term, 700.0))
        lower = -math.inf
    cut = math.exp(upper - math.log(mass)) + math.exp(lower - math.log(mass))
    return low, high, start, cut


@lean_step
def fill_leaf(leaf: Leaf, low: int, start: int, out: FloatArray) -> None:
    """Fill ``out`` with the tilted message on low, low + 1, ..., scaled to sum 1."""
    # Logarithms by recursion away from the largest term: log t(x + 1) = log t(x) + step(x).
    origin = start - low
    out[origin] = 0.0
    for i in range(origin + 1, out.size):
        out[i] = out[i - 1] + _log_step(low + i - 1, leaf)
    for i in range(origin - 1, -1, -1):
        out[i] = out[i + 1] - _log_step(low + i, leaf)
    scale_exp(out)


@lean_step
def fill_leaf_table(leaf: Leaf, table: FloatArray, table_low: int, out: FloatArray) -> bool:
    """Fill ``out`` with tabulated prior times evidence, summing to 1; return False if all zero."""
    # -lam (x - y - frac)**2 + theta x, relative to the listed count nearest to y
    lam, centre = leaf.lam, min(max(leaf.y, table_low), table_low + table.size - 1)
    gap = 2.0 * lam * ((leaf.y - centre) + leaf.frac) + leaf.theta
    for i in range(table.size):
        e = float(table_low + i - centre)
        # A product of infinities is kept out: an impossible count stays impossible.
        out[i] = table[i] + e * (gap - lam * e) if table[i] > -math.inf else -math.inf
    return scale_exp(out)


@lean_step
def scale_exp(out: FloatArray) -> bool:
    """Replace logarithms by exponentials summing to 1; return False if all are zero."""
    peak = -math.inf
    for i in range(out.size):
        peak = max(peak, out[i])
    if peak == -math.inf:
        return False
    total = 0.0
    for i in range(out.size):
        out[i] = math.exp(out[i] - peak)
        total += out[i]
    for i in range(out.size):
        out[i] /= total
    return True


@lean_step
def free_moments(law: FloatArray, theta: float) -> tuple[float, float]:
    """Return mean and variance of a leaf's tilted prior, or infinity if they do not exist.

    Zero apart, the prior is a Poisson or negative binomial law, whose sum is exp(total).
    """
    # The law without the jump: Poisson of mean exp(log_ratio + theta), or negative binomial.
    if law[1] == math.inf:
        mean = math.exp(min(law[2] + theta, 700.0))
        var, total, odds = mean, mean, law[0] - law[2]
    else:
        log_q = law[2] + theta
        if log_q >= 0.0:
            return math.inf, math.inf
        free = -math.expm1(log_q)  # 1 - q
        mean = law[1] * math.exp(log_q) / free
        var, total = mean / free, -law[1] * math.log(free)
        odds = law[0] - math.log(law[1]) - law[2]
    if law[2] == -math.inf:  # at most one
        probability = 1.0 / (1.0 + math.exp(-min(max(law[0] + theta, -700.0), 700.0)))
        return probability, probability * (1.0 - probability)
    # The jump weighs all counts above 0 by ``weight``: moments of the mixture.
    weight = math.exp(min(odds, 700.0))
    mass = math.exp(-total) - weight * math.expm1(-total)
    first = weight * mean / mass
    return first, max(weight * (var + mean * mean) / mass - first * first, 0.0)


@lean_step
def rough_moments(leaf: Leaf) -> tuple[float, float]:
    """Return mean and variance of a leaf's tilted message, to about 1e-6."""
    start = _start(leaf)
    if _endless(start, leaf, _WIDEST):
        return math.inf, math.inf
    if start == 1 and _log_step(0, leaf) < 0.0:
        start = 0
    mass, first, second = 1.0, 0.0, 0.0
    shrink = math.exp(-2.0 * leaf.lam)  # of the ratio of terms from one count to the next
    for side in (1, -1):  # outwards from the largest term, until terms are below 1e-7 of the mass
        x, term = start, 1.0
        step = _log_step(start if side > 0 else max(start - 1, 0), leaf)
        ratio = math.exp(side * step)
        while (side > 0 or x > 0) and (term > 1e-7 * mass or ratio >= 1.0):
            term *= ratio
            x += side
            mass += term
            first += term * (x - start)
            second += term * (x - start) ** 2
            # log ratio(x + 1) - log ratio(x) = -2 lam for a geometric prior: no logarithm needed
            if leaf.law[1] == 1.0 and x > 1:
                ratio *= shrink
            elif side > 0 or x > 0:
                ratio = math.exp(side * _log_step(x if side > 0 else x - 1, leaf))
            if not mass < 1e300 or abs(x - start) > _LONGEST:
                return math.inf, math.inf
    first /= mass
    return start + first, max(second / mass - first * first, 0.0)


class LeafArrays(NamedTuple):
    """Evidence and priors of all leaves; arrays other than ``units`` are indexed by unit.

    ``table[u]`` is (offset in the bank, lowest count, size); size 0 means a law of the family.
    """

    units: IntArray
    y: IntArray
    frac: FloatArray
    lam: FloatArray
    law: FloatArray
    bank: FloatArray
    table: IntArray


@kernel
def leaf_moments(leaves: LeafArrays, theta: FloatArray, mean: FloatArray, var: FloatArray) -> bool:
    """Fill in mean and variance of every leaf's tilted message; return False if one has none."""
    lam, law, table = leaves.lam, leaves.law, leaves.table
    for u in leaves.units:
        leaf = Leaf(leaves.y[u], leaves.frac[u], lam[u], law[u], theta[u])
        low, size = table[u, 1], table[u, 2]
        if size == 0 and lam[u] == 0.0:
            mean[u], var[u] = free_moments(law[u], theta[u])
            if not mean[u] + var[u] < 1e200:
                return False
        elif size == 0:
            mean[u], var[u] = rough_moments(leaf)
            if mean[u] == math.inf:
                return False
        else:
            out = np.empty(size)
            part = leaves.bank[table[u, 0] : table[u, 0] + size]
            if not fill_leaf_table(leaf, part, low, out):
                return False
            first = second = 0.0
            for i in range(size):
                first += i * out[i]
            for i in range(size):
                second += (i - first) ** 2 * out[i]
            mean[u], var[u] = low + first, second
    return True


class NodeReleases(NamedTuple):
    """The units with a release, and the nearest such unit above each.

    ``owner`` is the nearest unit above with a release, -1 for none. ``bias`` is the excess of the
    mean of a unit's message over the point used for it in the bound of :func:`newton_direction`.
    """

    owner: IntArray
    leaf: BoolArray
    released: BoolArray
    lam: FloatArray
    centre: FloatArray
    bias: FloatArray


@kernel
def newton_direction(
    releases: NodeReleases, tilt: FloatArray, mean: FloatArray, var: FloatArray, step: FloatArray
) -> float:
    """Fill ``step`` with the Newton step for the tilts; return the slope along it.

    The tilts minimise the sum over leaves of log sum(message), plus the log of the largest value of
    the factor of every unit with a release. This bounds the evidence and is convex in the tilts.
    Its curvature couples a unit with the next release above it only.
    """
    owner, released, lam = releases.owner, releases.released, releases.lam
    # Children first: gradient and curvature, each unit eliminated into the release above it.
    grad = np.zeros(lam.size)
    curve = np.zeros(lam.size)
    pure = np.zeros(lam.size)
    for u in range(lam.size - 1, -1, -1):
        o = owner[u]
        above = tilt[o] if o >= 0 else 0.0
        if releases.leaf[u]:
            if o >= 0:
                grad[o] += mean[u]
                pure[o] += mean[u]
                curve[o] += var[u]
        elif released[u]:
            # The factor's own count at these tilts: centre + (theta - tilt) / (2 lam).
            loose = 0.5 / lam[u]
            count = releases.centre[u] + (above - tilt[u]) * loose
            grad[u] -= count
            pure[u] -= count
            # Schur complement: curvature of u alone is inner + loose, coupled to o by -loose.
            inner = curve[u]
            curve[u] = inner + loose
            if o >= 0:
                grad[o] += count + releases.bias[u] + loose * (grad[u] / curve[u])
                pure[o] += count + releases.bias[u]
                curve[o] += loose * (inner / curve[u])
    # Parents first: back-substitution for the step, and its slope.
    slope = 0.0
    for u in range(lam.size):
        if released[u]:
            above = step[owner[u]] if owner[u] >= 0 else 0.0
            step[u] = (-grad[u] + 0.5 / lam[u] * above) / curve[u]
            slope += pure[u] * step[u]
    return slope


@lean_kernel
def gather_marginals(
    low: IntArray,
    spots: tuple[IntArray, IntArray],
    message: FloatArray,
    above: FloatArray,
    pmf: FloatArray,
    summary: FloatArray,
) -> None:
    """Fill ``pmf`` with the posterior of each unit: message times outside message.

    ``spots`` are where a unit's window starts in both and how long it is; ``summary`` gets mean,
    standard deviation, mode and P(count >= 1).
    """
    end = 0
    for u in range(low.size):
        start, size = spots[0][u], spots[1][u]
        p = pmf[end : end + size]
        end += size
        # Two passes, so that the variance does not cancel.
        first = second = positive = 0.0
        mode = 0
        for i in range(size):
            p[i] = message[start + i] * above[start + i]
            first += i * p[i]
            if p[i] > p[mode]:
                mode = i
            if low[u] + i >= 1:
                positive += p[i]
        for i in range(size):
            second += (i - first) ** 2 * p[i]
        summary[u, 0], summary[u, 1] = low[u] + first, math.sqrt(second)
        summary[u, 2], summary[u, 3] = low[u] + mode, min(positive, 1.0)

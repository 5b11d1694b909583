"""Compiled Gibbs sweeps for two levels and for a path.  Nothing here checks its arguments.

A path is a tree, and two levels are a path; all sweeps draw from the same conditionals, which are
weights of ``log_fall`` times a prior, by ``draw_offset`` and ``draw_weighted``.  The special cases
are kept for their speed: a sweep of a path of four levels costs a sixth of one of the same model as
a tree, and a sweep of two levels, whose laws are all tables, a tenth of one of a path of them.  The
two levels also have the published conditionals, which belong to no tree.

Every kernel draws from the generator that it is given and releases the GIL, so that chains run
in threads of their own.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from bayesrisk._numba import kernel
from bayesrisk._validation import FloatArray, IntArray
from bayesrisk.distributions.kernels import LogTable
from bayesrisk.exceptions import ArgumentError


class TwoLevelTables(NamedTuple):
    """Laws of a block and its group given each other, as tables.

    ``cdf[x]`` is the law of N - base given x, with its guide; ``has_target[i]`` is
    P(x = 1 | N = base + i); the block counts ``known_count`` + x.
    """

    known_count: int
    base: int
    cdf: FloatArray
    guide: IntArray
    has_target: FloatArray


class PathModel(NamedTuple):
    """The releases and priors of a path, block first.

    ``log_odds`` are those of x = 1 given the block's own release; ``siblings[level]`` is the noisy
    total of the other children of the group at ``level``, from level 1; the log prior of a level
    lies in ``log_prior[prior_at[level]:prior_at[level + 1]]``, nothing if it is flat.
    """

    known_count: int
    log_odds: float
    noisy: FloatArray
    precision: FloatArray
    siblings: FloatArray
    sibling_precision: FloatArray
    prior_at: IntArray
    prior_start: IntArray
    log_prior: FloatArray


@kernel
def log_fall(precision: float, step: float, lean: float) -> float:
    """Return the log weight of ``step`` against that of 0, the peak at -lean; nothing cancels."""
    return -precision * step * (step + 2.0 * lean)


@kernel
def draw_offset(rng: Any, centre: float, precision: float, low: Any, high: Any) -> Any:
    """Draw a whole d in [low, high] with weight exp(-precision (d - centre)**2), exactly.

    Rejection from a flat top and two geometric tails.  The log weight is concave, so beyond any
    point t it lies below the chord of its next step; with t where the weight has fallen by e,
    more than a third of the proposals are taken, for any precision and any truncation.
    """
    if low >= high:
        return low
    if precision <= 0.0:
        return low + rng.integers(0, high - low + 1)
    mode = min(max(np.int64(np.rint(centre)), low), high)
    lean = float(mode) - centre
    fall = 1.0 / precision
    root = math.sqrt(lean * lean + fall)
    # Solves precision * step * (step + 2 lean) = 1, in the form that does not cancel.
    right = max(1.0, math.ceil(fall / (lean + root) if lean > 0.0 else root - lean))
    left = max(1.0, math.ceil(fall / (root - lean) if lean < 0.0 else root + lean))
    top_left = -min(left - 1.0, float(mode - low))
    top_right = min(right - 1.0, float(high - mode))
    flat = top_right - top_left + 1.0
    at_right = log_fall(precision, right, lean)
    at_left = log_fall(precision, left, -lean)
    step_right = -precision * (2.0 * (right + lean) + 1.0)
    step_left = -precision * (2.0 * (left - lean) + 1.0)
    tail_right = tail_left = 0.0
    if right <= float(high - mode):
        tail_right = math.exp(at_right) / -math.expm1(step_right)
    if left <= float(mode - low):
        tail_left = math.exp(at_left) / -math.expm1(step_left)
    # Ends with probability 1: the envelope holds at most a few times the mass under it, and the
    # mode is inside the window.
    while True:
        u = rng.random() * (flat + tail_right + tail_left)
        if u < flat:
            step = top_left + math.floor(u)
            envelope = 0.0
        elif u < flat + tail_right:
            jump = math.floor(math.log(1.0 - rng.random()) / step_right)
            step = right + jump
            envelope = at_right + step_right * jump
        else:
            jump = math.floor(math.log(1.0 - rng.random()) / step_left)
            step = -(left + jump)
            envelope = at_left + step_left * jump
        if step < float(low - mode) or step > float(high - mode):
            continue
        excess = log_fall(precision, step, lean) - envelope
        if rng.random() <= math.exp(excess):
            return mode + np.int64(step)


@kernel
def draw_weighted(rng: Any, log_weight: Any, size: int) -> int:
    """Draw an index below ``size`` with probability proportional to exp(log_weight[index]).

    Overwrites ``log_weight`` with the weights; returns -1 if none is positive.
    """
    peak = -np.inf
    for i in range(size):
        peak = max(peak, log_weight[i])
    if peak == -np.inf:
        return -1
    total = 0.0
    for i in range(size):
        log_weight[i] = math.exp(log_weight[i] - peak)
        total += log_weight[i]
    u = rng.random() * total
    last = -1
    for i in range(size):
        if log_weight[i] > 0.0:
            last = i
            u -= log_weight[i]
            if u < 0.0:
                break
    return last


@kernel
def _invert(u: float, cdf: Any, guide: Any) -> Any:
    """Return the first index whose cdf exceeds u; the guide says where to begin."""
    i = guide[np.int64(u * guide.size)]
    while u >= cdf[i]:
        i += 1
    return i


@kernel
def fill_two_levels(rng: Any, tables: Any, state: Any, skip: int, out: Any) -> None:
    """Fill ``out`` with draws (block, group); x has two values, so every law is a table.

    ``state`` holds x, and N - base or, before the first sweep, -1; it is kept for the next call.
    Stored after N | x, so that every pair is feasible.
    """
    cdf, guide = tables.cdf, tables.guide
    x, i = state[0], state[1]
    if i < 0:
        i = _invert(rng.random(), cdf[x], guide[x])
    for t in range(-skip, out.shape[0]):
        x = 1 if rng.random() < tables.has_target[i] else 0
        i = _invert(rng.random(), cdf[x], guide[x])
        if t >= 0:
            out[t, 0] = tables.known_count + x
            out[t, 1] = tables.base + i
    state[0], state[1] = x, i


@kernel
def _draw_level(rng: Any, model: Any, level: int, count: Any, work: Any) -> Any:
    """Draw the count of a level above the block given the counts beside it."""
    # Taken apart once: a field that is looked up at every use costs an eighth of the time.
    _, _, noisy, precision, siblings, sibling_precision, prior_at, prior_start, log_prior = model
    here, low = count[level], count[level - 1]
    own, of_siblings = precision[level], sibling_precision[level]
    # Residuals are differences of whole numbers, taken before anything is rounded.
    weight = own + of_siblings
    pull = own * (noisy[level] - float(here))
    pull += of_siblings * (siblings[level] - float(here - low))
    high = here + np.int64(2**61)
    if level + 1 < count.size:
        high = count[level + 1]
        above = sibling_precision[level + 1]
        weight += above
        pull += above * (float(high - here) - siblings[level + 1])
    centre = pull / weight if weight > 0.0 else 0.0
    at, size = prior_at[level], prior_at[level + 1] - prior_at[level]
    if size == 0:
        return here + draw_offset(rng, centre, weight, low - here, high - here)
    start, end = prior_start[level], prior_start[level] + size - 1
    low, high = max(low, start), min(high, end)
    nearest = min(max(here + np.int64(np.rint(centre)), low), high)
    lean = float(nearest - here) - centre
    for i in range(high - low + 1):
        step = float(low + i - nearest)
        work[i] = log_prior[at + low + i - start] + log_fall(weight, step, lean)
    return low + draw_weighted(rng, work, high - low + 1)


@kernel
def fill_path(rng: Any, model: Any, count: Any, skip: int, out: Any) -> None:
    """Fill ``out[t, level]`` with the counts of a path after ``skip`` sweeps from ``count``."""
    known_count = model.known_count
    work = np.empty(max(model.log_prior.size, 1))
    for t in range(-skip, out.shape[0]):
        logit = model.log_odds
        if count.size > 1:
            gap = float(count[1] - known_count)
            logit += model.sibling_precision[1] * (2.0 * (gap - model.siblings[1]) - 1.0)
        has_target = rng.random() * (1.0 + math.exp(-logit)) < 1.0
        if count.size > 1 and count[1] == known_count:
            has_target = False
        count[0] = known_count + (1 if has_target else 0)
        for level in range(1, count.size):
            count[level] = _draw_level(rng, model, level, count, work)
        if t >= 0:
            out[t, :] = count


# -----------------------------------------------------------------------------
# Tables from which the two-level Gibbs sampler draws: everything that does not change.


_TAIL = 50.0  # weights below e**-50 of the peak are never drawn: far below one step of a uniform
_GUIDE = 1024  # entries of the table that starts the search of an inverse
_MAX_TABLE = 2**22


def _log_weights(
    centre: float, precision: float, reference: int, lower: int, start: int, table: FloatArray
) -> tuple[int, FloatArray]:
    """Return the log weights of N on a window of N >= lower, relative to the largest.

    ``centre`` is relative to the whole number ``reference``.
    """
    if table.size:
        base = max(start, lower)
        values = np.arange(base, start + table.size)
        log_prior = table[base - start :]
    else:
        mode = max(lower - reference, round(centre))
        lean, fall = mode - centre, _TAIL / precision
        root = np.sqrt(lean * lean + fall)
        right = fall / (lean + root) if lean > 0.0 else root - lean
        left = min(root + lean, float(mode + reference - lower))
        if left + right > _MAX_TABLE:
            raise ArgumentError(
                f"rho_group and rho_block must leave at most {_MAX_TABLE} likely counts of the "
                f"group; with these budgets there are {left + right:.3g}: give a group_prior"
            )
        base = reference + mode - int(np.floor(left))
        values = np.arange(base, reference + mode + int(np.ceil(right)) + 1)
        log_prior = np.zeros(values.size)
    if values.size == 0 or not np.isfinite(log_prior).any():
        return base, np.empty(0)
    # Differences from the likeliest count of the window, so that nothing large cancels.
    nearest = min(max(reference + round(centre), base), int(values[-1]))
    step = (values - nearest).astype(float)
    lean = (nearest - reference) - centre
    log_weight = log_prior - precision * step * (step + 2.0 * lean)
    return base, log_weight - log_weight.max()


def _inverse_tables(windows: list[tuple[int, FloatArray]]) -> tuple[int, FloatArray, IntArray]:
    """Return the common base, the cdfs of N - base given x = 0, 1, and the guides to them."""
    used = [(b, w) for b, w in windows if w.size]
    base = min(b for b, _ in used)
    width = max(b + w.size for b, w in used) - base
    if width > _MAX_TABLE:
        raise ArgumentError(f"the group's likely counts must span at most {_MAX_TABLE}")
    cdf = np.ones((2, width))
    guide = np.zeros((2, _GUIDE), dtype=np.int64)
    for x, (first, log_weight) in enumerate(windows):
        if log_weight.size:
            weight = np.zeros(width)
            with np.errstate(under="ignore"):
                weight[first - base : first - base + log_weight.size] = np.exp(log_weight)
            total = np.cumsum(weight)
            cdf[x] = total / total[-1]
            cdf[x, np.flatnonzero(weight)[-1] :] = 1.0
            guide[x] = np.searchsorted(cdf[x], np.arange(_GUIDE) / _GUIDE, side="right")
    return base, cdf, guide


def two_level_tables(
    counts: tuple[int, int, int],
    weights: tuple[float, float],
    log_odds: float,
    group_prior: LogTable,
    *,
    coherent: bool,
) -> tuple[TwoLevelTables, list[int]]:
    """Return the laws of N given x and of x given N, and the possible x."""
    (n, s, k), (tau_group, tau_siblings) = counts, weights
    start, table = group_prior.start, group_prior.log_pmf
    tau = tau_group + tau_siblings
    if tau == 0.0 and not table.size:
        raise ArgumentError(
            "rho_group or rho_block must be > 0 under a flat group_prior: nothing else bounds "
            "the group's count"
        )
    reference = n if tau_group > 0.0 else s + k
    windows = []
    for x in (0, 1):
        pull = tau_siblings * (s + k + x - reference)  # the group's own residual is n - n
        centre = pull / tau if tau > 0.0 else 0.0
        windows.append(_log_weights(centre, tau, reference, k + x, start, table))
    feasible = [x for x in (0, 1) if windows[x][1].size]
    base, cdf, guide = _inverse_tables(windows)
    group = base + np.arange(cdf.shape[1])
    has_target = special.expit(log_odds + tau_siblings * (2.0 * (group - s - k) - 1.0))
    if coherent:
        has_target[group < k + 1] = 0.0
    return TwoLevelTables(k, base, cdf, guide, has_target), feasible


# -----------------------------------------------------------------------------
# Compiled Gibbs sweeps over a whole tree.  Nothing here checks its arguments.
#
# The state is the count of every node; only leaves are free.  A leaf's prior is a table of
# logarithms, or flat: ``size`` 0.


class TreeModel(NamedTuple):
    """A tree, its releases, and its leaves depth first with the log priors of their counts.

    The leaves below node v are ``begin[v]`` to ``end[v] - 1``.  The table of a leaf begins at
    ``tables[offset]`` with the count ``start`` and has ``size`` entries, the largest ``peak``.
    """

    parent: IntArray
    depth: IntArray
    noisy: IntArray
    precision: FloatArray
    node: IntArray
    begin: IntArray
    end: IntArray
    tables: FloatArray
    offset: IntArray
    start: IntArray
    size: IntArray
    peak: FloatArray


@kernel
def _draw_transfer(
    rng: Any,
    model: Any,
    first: int,
    second: int,
    count: Any,
    gaussian: tuple[float, float],
    window: Any,
    work: Any,
) -> Any:
    """Draw d in the window, what the first leaf gains and the second (if >= 0) loses.

    The likelihood is that of ``gaussian``, a centre and a precision; at least one of the two
    priors is a table.
    """
    (centre, weight), (low, high) = gaussian, window
    # Where the two counts stand in the tables; -1 says flat, or that there is no second leaf.
    tables = model.tables
    here = there = np.int64(-1)
    if model.size[first] > 0:
        here = model.offset[first] + count[model.node[first]] - model.start[first]
    if second >= 0 and model.size[second] > 0:
        there = model.offset[second] + count[model.node[second]] - model.start[second]
    if weight > 0.0:
        # No d beyond this can weigh more than e**-50 of staying, whatever the priors say.
        present = tables[here] if here >= 0 else 0.0
        best = model.peak[first]
        if second >= 0:
            present += tables[there] if there >= 0 else 0.0
            best += model.peak[second]
        slack = best - (present - weight * centre * centre) + _TAIL
        reach = math.sqrt(slack / weight)
        low = max(low, np.int64(math.floor(max(centre - reach, -4.0e18))))
        high = min(high, np.int64(math.ceil(min(centre + reach, 4.0e18))))
    for i in range(high - low + 1):
        d = low + i
        value = tables[here + d] if here >= 0 else 0.0
        if there >= 0:
            value += tables[there - d]
        work[i] = value + log_fall(weight, float(d), -centre)
    return low + draw_weighted(rng, work, high - low + 1)


@kernel
def _room(model: Any, leaf: int, count: Any) -> tuple[Any, Any]:
    """Return how much a leaf's count may fall and rise."""
    if model.size[leaf] == 0:
        return count, np.int64(2**61)
    return count - model.start[leaf], model.start[leaf] + model.size[leaf] - 1 - count


@kernel
def _move(rng: Any, model: Any, first: int, second: int, count: Any, work: Any) -> None:
    """Redraw leaf ``first`` alone (second < 0), or what moves to it from leaf ``second``.

    Walks both paths up to where they meet; nothing above changes.
    """
    weight = pull = 0.0
    up, down = model.node[first], np.int64(-1)
    if second >= 0:
        down = model.node[second]
    while up != down:
        if down < 0 or (up >= 0 and model.depth[up] >= model.depth[down]):
            weight += model.precision[up]
            pull += model.precision[up] * float(model.noisy[up] - count[up])
            up = model.parent[up]
        else:
            weight += model.precision[down]
            pull -= model.precision[down] * float(model.noisy[down] - count[down])
            down = model.parent[down]
    meeting = up
    centre = pull / weight if weight > 0.0 else 0.0
    fall, high = _room(model, first, count[model.node[first]])
    low = -fall
    if second >= 0:
        fall, rise = _room(model, second, count[model.node[second]])
        low, high = max(low, -rise), min(high, fall)
    if model.size[first] == 0 and (second < 0 or model.size[second] == 0):
        d = draw_offset(rng, centre, weight, low, high)
    else:
        d = _draw_transfer(rng, model, first, second, count, (centre, weight), (low, high), work)
    if d == 0:
        return
    up = model.node[first]
    while up != meeting:
        count[up] += d
        up = model.parent[up]
    if second >= 0:
        down = model.node[second]
        while down != meeting:
            count[down] -= d
            down = model.parent[down]


@kernel
def fill_tree(
    rng: Any, model: Any, pairs: bool, count: Any, keep: Any, skip: int, out: Any
) -> None:
    """Fill ``out[t]`` with the counts of the nodes ``keep`` after ``skip`` sweeps from ``count``.

    A sweep redraws every leaf alone and, with ``pairs``, against a leaf drawn below one of its
    ancestors, the ancestor drawn first: near and far partners alike.
    """
    work = np.empty(max(np.max(model.size), 1))
    for t in range(-skip, out.shape[0]):
        for leaf in range(model.node.size):
            _move(rng, model, leaf, -1, count, work)
            depth = model.depth[model.node[leaf]]
            if not pairs or depth == 0:
                continue
            above = model.parent[model.node[leaf]]
            for _ in range(rng.integers(0, depth)):
                above = model.parent[above]
            other = rng.integers(model.begin[above], model.end[above])
            if other != leaf:
                _move(rng, model, leaf, other, count, work)
        if t >= 0:
            for i in range(keep.size):
                out[t, i] = count[keep[i]]

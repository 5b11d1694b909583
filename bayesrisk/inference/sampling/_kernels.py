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

from bayesrisk._numba import kernel
from bayesrisk._types import FloatArray, IntArray


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

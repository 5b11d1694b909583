"""Gibbs sweeps over a tree: the state is every node's count, set by the leaves."""

import math
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_step, step
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.inference.sampling.chains import TAIL


class TreeModel(NamedTuple):
    """A tree's links, releases, possible counts and leaves, as arrays of the kernels.

    The leaves below node v are ``node[begin[v]:end[v]]``.  Its count is in ``lower[v]``, ...,
    ``upper[v]``; the log weight of ``lower[v]`` is ``tables[offset[v]]`` and that of the others
    follows, none where the offset is -1.  ``peak[v]`` is the largest.
    """

    parent: IntArray
    depth: IntArray
    noisy: IntArray
    precision: FloatArray
    node: IntArray
    begin: IntArray
    end: IntArray
    lower: IntArray
    upper: IntArray
    tables: FloatArray
    offset: IntArray
    peak: FloatArray


class SweepWork(NamedTuple):
    """Working arrays of one move: log weights of its steps, and tables on its path."""

    log_weight: FloatArray
    place: IntArray
    side: IntArray


@step
def draw_offset(
    rng: np.random.Generator, centre: float, precision: float, low: int, high: int
) -> int:
    """Draw a whole d in [low, high] with weight exp(-precision (d - centre)**2), exactly.

    Rejection from a flat top and two geometric tails. The log weight is concave, so beyond any
    point t it lies below the chord of its next step. With t where the weight has fallen by e, more
    than a third of the proposals are taken, for any precision and truncation.
    """
    if low >= high:
        return low
    if precision <= 0.0:
        return low + int(rng.integers(0, high - low + 1))
    mode = min(max(int(np.rint(centre)), low), high)
    lean = float(mode) - centre
    fall = 1.0 / precision
    root = math.sqrt(lean * lean + fall)
    # Solves precision * step * (step + 2 lean) = 1, in the form that does not cancel.
    right = max(1.0, math.ceil(fall / (lean + root) if lean > 0.0 else root - lean))
    left = max(1.0, math.ceil(fall / (root - lean) if lean < 0.0 else root + lean))
    top_left = -min(left - 1.0, float(mode - low))
    top_right = min(right - 1.0, float(high - mode))
    flat = top_right - top_left + 1.0
    # log weight of a step against that of 0, the mode at -lean: nothing cancels
    log_right = -precision * right * (right + 2.0 * lean)
    log_left = -precision * left * (left - 2.0 * lean)
    step_right = -precision * (2.0 * (right + lean) + 1.0)
    step_left = -precision * (2.0 * (left - lean) + 1.0)
    tail_right = tail_left = 0.0
    if right <= float(high - mode):
        tail_right = math.exp(log_right) / -math.expm1(step_right)
    if left <= float(mode - low):
        tail_left = math.exp(log_left) / -math.expm1(step_left)
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
            envelope = log_right + step_right * jump
        else:
            jump = math.floor(math.log(1.0 - rng.random()) / step_left)
            step = -(left + jump)
            envelope = log_left + step_left * jump
        if step < float(low - mode) or step > float(high - mode):
            continue
        excess = -precision * step * (step + 2.0 * lean) - envelope
        if rng.random() <= math.exp(excess):
            return mode + int(step)


@lean_step
def draw_weighted(rng: np.random.Generator, log_weight: FloatArray, size: int) -> int:
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


@lean_step
def _draw_tabulated(
    rng: np.random.Generator,
    tables: FloatArray,
    gaussian: tuple[float, float],
    window: tuple[int, int],
    slack: float,
    work: SweepWork,
    passed: int,
) -> int:
    """Draw d in the window, with Gaussian weight (centre, precision) times ``passed`` tables.

    Table j stands at ``work.place[j]`` now and moves to ``place[j] + side[j] d``.
    """
    (centre, weight), (low, high) = gaussian, window
    if weight > 0.0:
        # No d beyond this weighs more than e**-50 of staying, whatever the tables say:
        # weight (d - centre)**2 <= weight centre**2 + (largest - present of the tables) + 50.
        reach = math.sqrt((slack + weight * centre * centre + TAIL) / weight)
        low = max(low, math.floor(max(centre - reach, -4.0e18)))
        high = min(high, math.ceil(min(centre + reach, 4.0e18)))
    for i in range(high - low + 1):
        # log weight of d: -weight (d**2 - 2 d centre) + sum of the tables at the new counts
        d = low + i
        value = -weight * float(d) * (float(d) - 2.0 * centre)
        for j in range(passed):
            value += tables[work.place[j] + work.side[j] * d]
        work.log_weight[i] = value
    count: int = low + draw_weighted(rng, work.log_weight, high - low + 1)
    return count


@step
def _move(
    rng: np.random.Generator,
    model: TreeModel,
    first: int,
    second: int,
    count: IntArray,
    work: SweepWork,
) -> None:
    """Redraw leaf ``first`` alone (second < 0), or move people to it from leaf ``second``.

    Along d the log likelihood is -sum precision (noisy - count -+ d)**2 over the nodes on the two
    paths up to where they meet; nothing above changes.
    """
    weight = pull = slack = 0.0
    low, high = -np.int64(2**61), np.int64(2**61)
    passed = 0
    up, down = model.node[first], np.int64(-1)
    if second >= 0:
        down = model.node[second]
    while up != down:
        # The deeper of the two goes up: its node gains d (side 1) or loses it (side -1).
        if down < 0 or (up >= 0 and model.depth[up] >= model.depth[down]):
            v, side = up, 1
            up = model.parent[up]
        else:
            v, side = down, -1
            down = model.parent[down]
        current = count[v]
        # Square completed: weight = sum precision, centre = sum side precision residual / weight.
        weight += model.precision[v]
        pull += side * model.precision[v] * float(model.noisy[v] - current)
        if side > 0:
            low, high = max(low, model.lower[v] - current), min(high, model.upper[v] - current)
        else:
            low, high = max(low, current - model.upper[v]), min(high, current - model.lower[v])
        if model.offset[v] >= 0:
            place = model.offset[v] + current - model.lower[v]
            work.place[passed], work.side[passed] = place, side
            slack += model.peak[v] - model.tables[place]
            passed += 1
    meeting = up
    centre = pull / weight if weight > 0.0 else 0.0
    if passed == 0:
        d = draw_offset(rng, centre, weight, int(low), int(high))
    else:
        d = _draw_tabulated(
            rng, model.tables, (centre, weight), (int(low), int(high)), slack, work, passed
        )
    if d == 0:
        return
    # Carry the change up to the meeting point, where gain and loss cancel.
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
    rng: np.random.Generator,
    model: TreeModel,
    pairs: bool,
    count: IntArray,
    keep: IntArray,
    skip: int,
    out: IntArray,
) -> None:
    """Fill ``out[t]`` with the counts of the nodes ``keep`` after ``skip`` sweeps from ``count``.

    A sweep redraws every leaf alone and, with ``pairs``, against a leaf drawn below one of its
    ancestors, the ancestor drawn first: near and far partners alike.
    """
    longest = np.int64(1)
    for v in range(model.offset.size):
        if model.offset[v] >= 0:
            longest = max(longest, model.upper[v] - model.lower[v] + 1)
    nodes = 2 * (np.max(model.depth) + 1)
    work = SweepWork(np.empty(longest), np.empty(nodes, np.int64), np.empty(nodes, np.int64))
    for t in range(-skip, out.shape[0]):
        for leaf in range(model.node.size):
            # One leaf alone: every total above it changes.
            _move(rng, model, leaf, -1, count, work)
            depth = model.depth[model.node[leaf]]
            if not pairs or depth == 0:
                continue
            # A pair: a uniform ancestor, and a uniform leaf below it, whatever the state is.
            above = model.parent[model.node[leaf]]
            for _ in range(rng.integers(0, depth)):
                above = model.parent[above]
            other = rng.integers(model.begin[above], model.end[above])
            if other != leaf:
                _move(rng, model, leaf, other, count, work)
        if t >= 0:
            for i in range(keep.size):
                out[t, i] = count[keep[i]]

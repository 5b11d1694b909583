"""Compiled Gibbs sweeps over a whole tree.  Nothing here checks its arguments.

The state is the count of every node; only leaves are free.  A leaf's prior is a table of
logarithms, or flat: ``size`` 0.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.inference.sampling._kernels import draw_offset, draw_weighted, log_fall

_TAIL = 50.0  # weights below e**-50 of the present state's are left out


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

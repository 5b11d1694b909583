"""Compiled Gibbs sweeps over a whole tree.  Nothing here checks its arguments.

The state is the count of every node; only leaves are free.  A leaf's prior is a table of
logarithms, or flat: ``size`` 0.
"""

import math
from typing import Any

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk.inference.sampling._kernels import draw_offset, draw_weighted

_TAIL = 50.0  # weights below e**-50 of the present state's are left out


@kernel
def _log_prior(tables: Any, offset: Any, start: Any, size: Any, leaf: int, count: int) -> float:
    """Return the log prior of a leaf's count, 0 where it is flat."""
    if size[leaf] == 0:
        return 0.0
    value: float = tables[offset[leaf] + count - start[leaf]]
    return value


@kernel
def _draw_transfer(
    rng: Any,
    centre: float,
    weight: float,
    low: Any,
    high: Any,
    first: int,
    second: int,
    first_count: Any,
    second_count: Any,
    tables: Any,
    offset: Any,
    start: Any,
    size: Any,
    peak: Any,
    work: Any,
) -> Any:
    """Draw d in [low, high], what the first leaf gains and the second (if >= 0) loses.

    The likelihood is exp(-weight (d - centre)**2); at least one of the two priors is a table.
    """
    present = _log_prior(tables, offset, start, size, first, first_count)
    best = peak[first]
    if second >= 0:
        present += _log_prior(tables, offset, start, size, second, second_count)
        best += peak[second]
    if weight > 0.0:
        # No d beyond this can weigh more than e**-50 of staying, whatever the priors say.
        slack = best - (present - weight * centre * centre) + _TAIL
        reach = math.sqrt(slack / weight)
        low = max(low, np.int64(math.floor(max(centre - reach, -4.0e18))))
        high = min(high, np.int64(math.ceil(min(centre + reach, 4.0e18))))
    for i in range(high - low + 1):
        d = low + i
        value = _log_prior(tables, offset, start, size, first, first_count + d)
        if second >= 0:
            value += _log_prior(tables, offset, start, size, second, second_count - d)
        work[i] = value - weight * float(d) * (float(d) - 2.0 * centre)
    return low + draw_weighted(rng, work, high - low + 1)


@kernel
def _room(start: Any, size: Any, leaf: int, count: Any) -> tuple[Any, Any]:
    """Return how much a leaf's count may fall and rise."""
    if size[leaf] == 0:
        return count, np.int64(2**61)
    return count - start[leaf], start[leaf] + size[leaf] - 1 - count


@kernel
def _move(
    rng: Any,
    first: int,
    second: int,
    parent: Any,
    depth: Any,
    noisy: Any,
    precision: Any,
    node: Any,
    tables: Any,
    offset: Any,
    start: Any,
    size: Any,
    peak: Any,
    count: Any,
    work: Any,
) -> None:
    """Redraw leaf ``first`` alone (second < 0), or what moves to it from leaf ``second``.

    Walks both paths up to where they meet; nothing above changes.
    """
    weight = pull = 0.0
    up, down = node[first], np.int64(-1)
    if second >= 0:
        down = node[second]
    while up != down:
        if down < 0 or (up >= 0 and depth[up] >= depth[down]):
            weight += precision[up]
            pull += precision[up] * float(noisy[up] - count[up])
            up = parent[up]
        else:
            weight += precision[down]
            pull -= precision[down] * float(noisy[down] - count[down])
            down = parent[down]
    meeting = up
    centre = pull / weight if weight > 0.0 else 0.0
    first_count, second_count = count[node[first]], np.int64(0)
    fall, high = _room(start, size, first, first_count)
    low = -fall
    if second >= 0:
        second_count = count[node[second]]
        fall, rise = _room(start, size, second, second_count)
        low, high = max(low, -rise), min(high, fall)
    if size[first] == 0 and (second < 0 or size[second] == 0):
        d = draw_offset(rng, centre, weight, low, high)
    else:
        d = _draw_transfer(
            rng,
            centre,
            weight,
            low,
            high,
            first,
            second,
            first_count,
            second_count,
            tables,
            offset,
            start,
            size,
            peak,
            work,
        )
    if d == 0:
        return
    up = node[first]
    while up != meeting:
        count[up] += d
        up = parent[up]
    if second >= 0:
        down = node[second]
        while down != meeting:
            count[down] -= d
            down = parent[down]


@kernel
def fill_tree(
    rng: Any,
    parent: Any,
    depth: Any,
    noisy: Any,
    precision: Any,
    node: Any,
    leaf_begin: Any,
    leaf_end: Any,
    tables: Any,
    offset: Any,
    start: Any,
    size: Any,
    peak: Any,
    pairs: bool,
    count: Any,
    keep: Any,
    skip: int,
    out: Any,
) -> None:
    """Fill ``out[t]`` with the counts of the nodes ``keep`` after ``skip`` sweeps from ``count``.

    ``node`` lists the leaves depth first, so that those below v are ``leaf_begin[v]`` to
    ``leaf_end[v] - 1``.  A sweep redraws every leaf alone and, with ``pairs``, against a leaf
    drawn below one of its ancestors, the ancestor drawn first: near and far partners alike.
    """
    work = np.empty(max(np.max(size), 1))
    for t in range(-skip, out.shape[0]):
        for leaf in range(node.size):
            _move(
                rng,
                leaf,
                -1,
                parent,
                depth,
                noisy,
                precision,
                node,
                tables,
                offset,
                start,
                size,
                peak,
                count,
                work,
            )
            if not pairs or depth[node[leaf]] == 0:
                continue
            above = parent[node[leaf]]
            for _ in range(rng.integers(0, depth[node[leaf]])):
                above = parent[above]
            other = rng.integers(leaf_begin[above], leaf_end[above])
            if other != leaf:
                _move(
                    rng,
                    leaf,
                    other,
                    parent,
                    depth,
                    noisy,
                    precision,
                    node,
                    tables,
                    offset,
                    start,
                    size,
                    peak,
                    count,
                    work,
                )
        if t >= 0:
            for i in range(keep.size):
                out[t, i] = count[keep[i]]

r"""Exact distribution of integers with known weighted sums, by dense arrays (boxes) of sums.

The law is that of :mod:`~bayesrisk.inference.microdata.contraction`, for few unknowns whose sums
have few values. An array holds the weights of all values of the open sums of a part, and two parts
are joined by convolving their arrays. The order of the joins depends only on the matrix of the
sums. So one plan serves all places, releases and records of a workload.

Weights are kept as plain numbers, each array divided by its largest. Underflow loses at most
:math:`10^{-307}` times the number of points, in units in which every factor is at most 1. If this
could be seen in the whole weight, no answer is returned.
"""

import math
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel, lean_step, step
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.propagation import narrow_dense

_VALUES = 16.0  # of an unknown, when an order of joins is chosen
_WIDE = 64  # unknowns, and rows, of a plan
CLOSED, OPEN = 1, 2


class BoxPlan(NamedTuple):
    """Order of joins of parts (unknowns first, then joins), and the axes of each part's box.

    An axis of an unknown is its value, that of a join the sum of a row.
    """

    left: IntArray  # (joins,): the two parts of every join
    right: IntArray
    state: IntArray  # (parts, rows): 1 where a part closes a row, 2 where the row stays open
    axes: IntArray  # (parts,): number of axes, and (parts, axes) their rows
    axis: IntArray
    sums: IntArray  # (parts, rows, axes): sums of the rows as sums of axes
    inner_axes: IntArray  # (joins,): the same of the box in which two parts are joined
    inner_axis: IntArray
    inner_sums: IntArray


class _Piece(NamedTuple):
    """A part of the unknowns while the plan is made."""

    part: int
    unknowns: tuple[int, ...]
    rows: tuple[int, ...]  # the open ones
    size: float


@lru_cache(maxsize=256)
def box_plan(matrix: bytes, rows: int) -> BoxPlan | None:
    """Return the plan for an integer matrix (rows, unknowns), or None if it is too wide."""
    table = np.frombuffer(matrix, np.int64).reshape(rows, -1)
    return _Planner(table).plan() if 0 < table.shape[1] <= _WIDE and rows <= _WIDE else None


class _Planner:
    """Chooses the order of joins: next the row whose parts are cheapest to join."""

    def __init__(self, matrix: IntArray) -> None:
        self._matrix = matrix
        self._joins: list[tuple[_Piece, _Piece, _Piece]] = []
        self._leaves = [
            _Piece(g, (g,), self._open_rows((g,)), _VALUES) for g in range(matrix.shape[1])
        ]

    def plan(self) -> BoxPlan:
        n_rows, parts = self._matrix.shape[0], list(self._leaves)
        while len(parts) > 1:
            touching = [[p for p in parts if r in p.rows] for r in range(n_rows)]
            chosen = min(
                (group for group in touching if len(group) > 1), key=self._cost, default=parts
            )
            parts = [p for p in parts if p not in chosen]
            waiting = list(chosen)
            while len(waiting) > 1:
                pairs = combinations(range(len(waiting)), 2)
                i, j = min(pairs, key=lambda ij: self._growth(waiting[ij[0]], waiting[ij[1]]))
                other, one = waiting.pop(j), waiting.pop(i)
                waiting.insert(0, self._joined(one, other))
            parts.append(waiting[0])
        return self._write()

    def _open_rows(self, unknowns: tuple[int, ...]) -> tuple[int, ...]:
        rest = np.ones(self._matrix.shape[1], np.bool_)
        rest[list(unknowns)] = False
        inside, outside = self._matrix[:, ~rest].any(axis=1), self._matrix[:, rest].any(axis=1)
        return tuple(np.flatnonzero(inside & outside).tolist())

    def _join(self, one: _Piece, other: _Piece) -> _Piece:
        unknowns = tuple(sorted(one.unknowns + other.unknowns))
        rows = self._open_rows(unknowns)
        rank = np.linalg.matrix_rank(self._matrix[np.ix_(rows, unknowns)]) if rows else 0
        size = min(one.size * other.size, (2.0 * _VALUES) ** rank)
        return _Piece(-1, unknowns, rows, size)

    def _cost(self, parts: list[_Piece]) -> float:
        joined, pairs = parts[0], 0.0
        for part in parts[1:]:
            pairs += joined.size * part.size
            joined = self._join(joined, part)
        return pairs + joined.size

    def _growth(self, one: _Piece, other: _Piece) -> float:
        return self._join(one, other).size / max(one.size, other.size)

    def _joined(self, one: _Piece, other: _Piece) -> _Piece:
        left, right = (one, other) if one.size >= other.size else (other, one)
        part = len(self._leaves) + len(self._joins)
        joined = self._join(left, right)._replace(part=part)
        self._joins.append((left, right, joined))
        return joined

    def _axes(self, rows: list[int], unknowns: tuple[int, ...]) -> tuple[list[int], IntArray]:
        """Return rows (axes) whose sums give all others', and the integer combinations that do."""
        matrix = self._matrix[:, unknowns]
        axes: list[int] = []
        sums: dict[int, FloatArray] = {}
        for r in dict.fromkeys(rows):
            whole, fits = np.zeros(0), not matrix[r].any()
            if axes:
                whole = np.rint(np.linalg.lstsq(matrix[axes].T * 1.0, matrix[r] * 1.0)[0])
                fits = np.array_equal(whole @ matrix[axes], matrix[r])
            if fits:
                sums[r] = whole
            else:
                axes.append(r)
        table = np.zeros((self._matrix.shape[0], len(axes)), np.int64)
        for r, whole in sums.items():
            table[r, : whole.size] = whole
        table[axes, range(len(axes))] = 1
        return axes, table

    def _write(self) -> BoxPlan:
        n_rows, unknowns = self._matrix.shape
        parts, width = 2 * unknowns - 1, max(n_rows, 1)
        state, axes = np.zeros((parts, n_rows), np.int64), np.ones(parts, np.int64)
        axis, sums = np.zeros((parts, width), np.int64), np.zeros((parts, n_rows, width), np.int64)
        inner = np.zeros((unknowns - 1, width), np.int64)
        inner_axes = np.zeros(unknowns - 1, np.int64)
        inner_sums = np.zeros((unknowns - 1, n_rows, width), np.int64)
        for g, leaf in enumerate(self._leaves):
            state[g, self._matrix[:, g] > 0] = CLOSED
            state[g, list(leaf.rows)] = OPEN
            sums[g, :, 0] = self._matrix[:, g]
        for number, (left, right, part) in enumerate(self._joins):
            rows = sorted({*left.rows, *right.rows})
            row_axes = [r for r in axis[left.part, : axes[left.part]].tolist() if r in rows]
            row_axes = row_axes if left.part >= unknowns else list(left.rows[:1])
            # Along the last axis of the left part the weights of both boxes are next to each other.
            chosen, _ = self._axes([*reversed(row_axes), *rows], part.unknowns)
            chosen = [
                *(r for r in chosen if r not in row_axes),
                *(r for r in row_axes if r in chosen),
            ]
            chosen, table = self._axes([*chosen, *rows], part.unknowns)
            inner_axes[number], inner[number, : len(chosen)] = len(chosen), chosen
            inner_sums[number, :, : len(chosen)] = table
            state[part.part, rows] = CLOSED
            state[part.part, list(part.rows)] = OPEN
            open_rows = [r for r in chosen if r in part.rows]
            axis_rows, table = self._axes([*open_rows, *part.rows], part.unknowns)
            axes[part.part], axis[part.part, : len(axis_rows)] = len(axis_rows), axis_rows
            sums[part.part, :, : len(axis_rows)] = table
        left_parts = np.array([left.part for left, _, _ in self._joins], np.int64)
        right_parts = np.array([right.part for _, right, _ in self._joins], np.int64)
        arrays = (left_parts, right_parts, state, axes, axis, sums, inner_axes, inner, inner_sums)
        return BoxPlan(*arrays)


MOST_PAIRS = 2**25  # pairs of values that are looked at: some hundredths of a second
_ROOM = 2**22  # weights that are held
_FAINT = -640.0  # log of a whole weight that underflow might be seen in


class RowWeights(NamedTuple):
    """Log weights of the sums ``low[r]`` to ``high[r]``, from ``weights[start[r]]`` on."""

    low: IntArray
    high: IntArray
    start: IntArray
    weights: FloatArray


class _Boxes(NamedTuple):
    """Sizes of all boxes' axes, and where the weights of each begin.

    A joint box has all sums that two parts can have along its axes, of the first axis only those
    that its row allows: then one part, moved by a state of the other, is one run of the box.
    """

    low: IntArray  # (parts, axes)
    span: IntArray
    start: IntArray  # (parts + 1,)
    inner_low: IntArray  # (joins, axes)
    inner_span: IntArray


@lean_step
def _add(values: FloatArray, factor: float, target: FloatArray) -> None:
    for s in range(values.size):
        target[s] += factor * values[s]


@lean_step
def _dot(one: FloatArray, other: FloatArray) -> float:
    """Return the sum of products: four sums side by side, as one waits for each addition."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = one.size // 4
    for s in range(whole):
        a += one[4 * s] * other[4 * s]
        b += one[4 * s + 1] * other[4 * s + 1]
        c += one[4 * s + 2] * other[4 * s + 2]
        d += one[4 * s + 3] * other[4 * s + 3]
    for s in range(4 * whole, one.size):
        a += one[s] * other[s]
    return (a + b) + (c + d)


@lean_step
def _positions(low: IntArray, span: IntArray, pace: IntArray, cells: IntArray) -> None:
    """Fill ``cells`` with the sum of pace times value at every point of a box, in order."""
    for t in range(cells.size):
        index, cells[t] = t, 0
        for i in range(pace.size - 1, -1, -1):
            cells[t] += pace[i] * (low[i] + index % span[i])
            index //= span[i]


@step
def _convolve(
    plan: BoxPlan, boxes: _Boxes, join: int, weight: FloatArray, box: FloatArray, slope: FloatArray
) -> None:
    """Add the convolution of two parts' weights to a box; with ``slope``, pass derivatives back.

    ``slope`` is empty, or as large as ``weight``: then ``box`` has the derivative of the whole
    weight by each of its values, and the derivatives by the weights of both parts are added.
    """
    one, other = plan.left[join], plan.right[join]
    if boxes.start[one + 1] - boxes.start[one] < boxes.start[other + 1] - boxes.start[other]:
        one, other = other, one
    n, stride = plan.inner_axes[join], 1
    pace_one = np.zeros(plan.axes[one], np.int64)
    pace_other = np.zeros(plan.axes[other], np.int64)
    offset = np.int64(0)
    for i in range(n - 1, -1, -1):
        row = plan.inner_axis[join, i]
        for k in range(pace_one.size):
            pace_one[k] += stride * plan.sums[one, row, k]
        for k in range(pace_other.size):
            pace_other[k] += stride * plan.sums[other, row, k]
        offset -= stride * boxes.inner_low[join, i]
        stride *= boxes.inner_span[join, i]
    start_one, end_one = boxes.start[one], boxes.start[one + 1]
    start_other, end_other = boxes.start[other], boxes.start[other + 1]
    to_one = np.empty(end_one - start_one, np.int64)
    to_other = np.empty(end_other - start_other, np.int64)
    _positions(boxes.low[one], boxes.span[one], pace_one, to_one)
    _positions(boxes.low[other], boxes.span[other], pace_other, to_other)
    least, most = to_one[0], to_one[0]
    for t in range(to_one.size):
        least, most = min(least, to_one[t]), max(most, to_one[t])
    run = np.zeros(most - least + 1)
    for t in range(to_one.size):
        run[to_one[t] - least] += weight[start_one + t]
    gradient = np.zeros(run.size if slope.size else 0)
    for t in range(to_other.size):
        w = weight[start_other + t]
        begin = to_other[t] + least + offset
        # Before and behind the box are sums that the row of its first axis does not allow
        a, b = max(0, -begin), min(run.size, box.size - begin)
        if w == 0.0 or a >= b:
            continue
        window = box[begin + a : begin + b]
        if slope.size:
            _add(window, w, gradient[a:b])
            slope[start_other + t] += _dot(run[a:b], window)
        else:
            _add(run[a:b], w, window)
    if slope.size:
        for t in range(to_one.size):
            slope[start_one + t] += gradient[to_one[t] - least]


@step
def _close(
    plan: BoxPlan,
    boxes: _Boxes,
    rows: RowWeights,
    join: int,
    unit: float,
    box: FloatArray,
    part: FloatArray,
    slope: FloatArray,
) -> None:
    """Weigh a box's closed rows and sum over them; with ``slope``, pass derivatives back.

    ``part`` are the weights of the part, or derivatives by them, and ``unit`` their common divisor.
    ``slope`` is empty or not, as a switch.
    """
    backward = slope.size > 0
    p, n = plan.left.size + 1 + join, plan.inner_axes[join]
    k, number = plan.axes[p], 0
    closed = np.zeros(plan.state.shape[1], np.int64)
    for r in range(closed.size):
        if plan.state[p, r] == CLOSED:
            closed[number] = r
            number += 1
    closed = closed[:number]
    # Sums of the closed rows and, behind them, of the axes of the part
    sums = np.zeros(closed.size + k, np.int64)
    low, span = boxes.inner_low[join], boxes.inner_span[join]
    length = span[n - 1] if n else 1
    for run in range(box.size // length):
        for j in range(sums.size):
            r = closed[j] if j < closed.size else plan.axis[p, j - closed.size]
            index, sums[j] = run, 0
            for i in range(n - 1, -1, -1):
                value = low[i]
                if i < n - 1:
                    value += index % span[i]
                    index //= span[i]
                sums[j] += plan.inner_sums[join, r, i] * value
        for t in range(run * length, (run + 1) * length):
            if box[t] != 0.0 or backward:
                factor, slot = 1.0 / unit, np.int64(0)
                for j in range(closed.size):
                    s = sums[j] - rows.low[closed[j]]
                    if 0 <= s <= rows.high[closed[j]] - rows.low[closed[j]]:
                        factor *= rows.weights[rows.start[closed[j]] + s]
                    else:
                        factor = 0.0
                for i in range(k):
                    s = sums[closed.size + i] - boxes.low[p, i]
                    slot = slot * boxes.span[p, i] + s
                    if s < 0 or s >= boxes.span[p, i]:
                        factor = 0.0
                if backward:
                    box[t] = part[slot] * factor if factor > 0.0 else 0.0
                elif factor > 0.0:
                    part[slot] += box[t] * factor
            for j in range(sums.size):
                r = closed[j] if j < closed.size else plan.axis[p, j - closed.size]
                sums[j] += plan.inner_sums[join, r, n - 1] if n else 0


@kernel
def _sizes(
    plan: BoxPlan,
    matrix: IntArray,
    rows: RowWeights,
    least: IntArray,
    most: IntArray,
    boxes: _Boxes,
) -> float:
    """Fill in the sizes of all boxes; return the number of weight pairs, or -1 if nothing fits."""
    unknowns, parts = matrix.shape[1], plan.axes.size
    lows = np.zeros((parts, matrix.shape[0]), np.int64)
    highs = np.zeros_like(lows)
    pairs = 0.0
    for p in range(parts):
        join = p - unknowns
        for r in range(matrix.shape[0]):
            if join < 0:
                lows[p, r], highs[p, r] = matrix[r, p] * least[p], matrix[r, p] * most[p]
            else:
                lows[p, r] = lows[plan.left[join], r] + lows[plan.right[join], r]
                highs[p, r] = highs[plan.left[join], r] + highs[plan.right[join], r]
    for p in range(parts):
        join, size = p - unknowns, 1.0
        for i in range(plan.axes[p]):
            r, low, high = plan.axis[p, i], least[p], most[p]
            if join >= 0:
                # A sum that can still end where its row has a weight
                low = max(lows[p, r], rows.low[r] - (highs[parts - 1, r] - highs[p, r]))
                high = min(highs[p, r], rows.high[r] - (lows[parts - 1, r] - lows[p, r]))
            if low > high:
                return -1.0
            boxes.low[p, i], boxes.span[p, i] = low, high - low + 1
            size *= high - low + 1
        inner = 1.0
        for i in range(plan.inner_axes[join] if join >= 0 else 0):
            r, low, high = plan.inner_axis[join, i], np.int64(0), np.int64(0)
            for part in (plan.left[join], plan.right[join]):
                for k in range(plan.axes[part]):
                    c, a = plan.sums[part, r, k], boxes.low[part, k]
                    b = a + boxes.span[part, k] - 1
                    low, high = low + min(c * a, c * b), high + max(c * a, c * b)
            if i == 0:
                low = max(low, rows.low[r] - (highs[parts - 1, r] - highs[p, r]))
                high = min(high, rows.high[r] - (lows[parts - 1, r] - lows[p, r]))
            if low > high:
                return -1.0
            boxes.inner_low[join, i], boxes.inner_span[join, i] = low, high - low + 1
            inner *= high - low + 1
        if boxes.start[p] + max(size, inner) > _ROOM:
            return math.inf
        boxes.start[p + 1] = boxes.start[p] + np.int64(size)
        if join >= 0:
            one = boxes.start[plan.left[join] + 1] - boxes.start[plan.left[join]]
            other = boxes.start[plan.right[join] + 1] - boxes.start[plan.right[join]]
            pairs += inner * min(one, other)
    return pairs


@kernel
def _contract(
    plan: BoxPlan,
    matrix: IntArray,
    rows: RowWeights,
    priors: FloatArray,
    least: IntArray,
    most: IntArray,
    boxes: _Boxes,
    laws: FloatArray,
) -> float:
    """Fill in the laws of the unknowns; return the log of the total weight in scaled units.

    ``priors`` (unknowns, values) are log weights; those of the rows are numbers, at most 1.
    """
    unknowns, joins = matrix.shape[1], plan.left.size
    parts, empty = unknowns + joins, np.zeros(0)
    weight = np.zeros(boxes.start[parts])
    units = np.ones(parts)
    for g in range(unknowns):
        peak = -math.inf
        for x in range(least[g], most[g] + 1):
            peak = max(peak, priors[g, x])
        if peak == -math.inf:
            return peak
        for x in range(least[g], most[g] + 1):
            w = math.exp(priors[g, x] - peak)
            for r in range(matrix.shape[0]):
                if plan.state[g, r] == CLOSED:
                    s = matrix[r, g] * x
                    inside = rows.low[r] <= s <= rows.high[r]
                    w *= rows.weights[rows.start[r] + s - rows.low[r]] if inside else 0.0
            weight[boxes.start[g] + x - least[g]] = w
    log_weight = 0.0
    for join in range(joins):
        p, size = unknowns + join, 1
        for i in range(plan.inner_axes[join]):
            size *= boxes.inner_span[join, i]
        box = np.zeros(size)
        _convolve(plan, boxes, join, weight, box, empty)
        part = weight[boxes.start[p] : boxes.start[p + 1]]
        _close(plan, boxes, rows, join, 1.0, box, part, empty)
        units[p] = 0.0
        for t in range(part.size):
            units[p] = max(units[p], part[t])
        if not units[p] > 0.0:
            return -math.inf
        for t in range(part.size):
            part[t] /= units[p]
        log_weight += math.log(units[p])
    # P(state) = weight * derivative of the log of the whole weight Z by it, from dZ/Z = 1/Z back
    whole = 0.0
    for t in range(boxes.start[parts - 1], weight.size):
        whole += weight[t]
    if not whole > 0.0:
        return -math.inf
    slope = np.zeros(weight.size)
    for t in range(boxes.start[parts - 1], weight.size):
        slope[t] = 1.0 / whole
    for join in range(joins - 1, -1, -1):
        p, size = unknowns + join, 1
        for i in range(plan.inner_axes[join]):
            size *= boxes.inner_span[join, i]
        box = np.zeros(size)
        part = slope[boxes.start[p] : boxes.start[p + 1]]
        _close(plan, boxes, rows, join, units[p], box, part, slope)
        _convolve(plan, boxes, join, weight, box, slope)
    for g in range(unknowns):
        for x in range(least[g], most[g] + 1):
            position = boxes.start[g] + x - least[g]
            laws[g, x] = weight[position] * slope[position]
    return log_weight + math.log(whole)


def box_laws(
    matrix: IntArray,
    low: IntArray,
    weights: list[FloatArray],
    priors: FloatArray,
    limit: int = MOST_PAIRS,
) -> tuple[float, FloatArray] | None:
    """Return the log total weight and the unknowns' laws (unknowns, values), or None if impossible.

    ``weights`` are, for each row, the log weights of the sums ``low[r]``, ``low[r] + 1``, ...;
    ``priors`` (unknowns, values) are those of the unknowns. None if more than ``limit`` pairs of
    weights would be needed, or if nothing has a weight.
    """
    matrix = np.ascontiguousarray(matrix, np.int64)
    plan = box_plan(matrix.tobytes(), matrix.shape[0])
    if plan is None:
        return None
    sizes = np.array([w.size for w in weights], np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)])
    flat = np.concatenate(weights)
    peaks = np.maximum.reduceat(flat, start[:-1])
    if peaks.min() == -math.inf:
        return None
    flat = np.exp(flat - np.repeat(peaks, sizes))
    rows = RowWeights(low, low + sizes - 1, start, flat)
    unknowns, parts = matrix.shape[1], plan.axes.size
    least = np.zeros(unknowns, np.int64)
    most = np.full(unknowns, priors.shape[1] - 1)
    if not narrow_dense(matrix, rows.low, rows.high, least, most):
        return None
    alone = np.flatnonzero(~matrix.any(axis=1))  # sums of nothing, which are 0
    with np.errstate(divide="ignore"):
        constant = float(np.log(flat[(start[:-1] - rows.low)[alone]]).sum())
    if constant == -math.inf:
        return None
    shape = plan.axis.shape[1]
    boxes = _Boxes(
        np.zeros((parts, shape), np.int64),
        np.zeros((parts, shape), np.int64),
        np.zeros(parts + 1, np.int64),
        np.zeros((unknowns - 1, shape), np.int64),
        np.zeros((unknowns - 1, shape), np.int64),
    )
    if not 0.0 <= _sizes(plan, matrix, rows, least, most, boxes) <= min(limit, MOST_PAIRS):
        return None
    laws = np.zeros(priors.shape)
    evidence = _contract(plan, matrix, rows, priors, least, most, boxes, laws)
    if not evidence - float(np.log(most - least + 1.0).sum()) > _FAINT:
        return None
    inside = np.arange(unknowns), np.arange(priors.shape[1])[:, None]
    peak = np.where((inside[1] >= least) & (inside[1] <= most), priors.T, -np.inf).max(axis=0)
    return evidence + constant + float(peak.sum() + peaks.sum()), laws

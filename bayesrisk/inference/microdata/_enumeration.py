"""Every point of a small integer system, weighed: a compiled depth-first search that can pause.

The unknowns are whole numbers ``x[0], x[1], ...``.  A *hard* row says that a weighted sum of them
is a number; a *soft* row gives a log weight to every value of such a sum.  The log weight of a
point is the sum of the log priors of the unknowns and of the soft rows.  A point is reached by one
path, and what is below a branch is added up on the way back, so the law of every unknown costs
nothing beyond the visit.

Nothing here checks its arguments.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk._types import FloatArray, IntArray

_FAR = 500.0  # how far a log weight may lie above the reference before all sums are rescaled


class Component(NamedTuple):
    """Unknowns that rows connect, in the order of the search.

    ``ptr, row, coef`` list the rows of every unknown; ``after`` is the most that the unknowns
    after it can add to that row, and ``last`` says whether there are none.
    """

    top: IntArray  # largest value of every unknown
    prior_ptr: IntArray  # log prior of x[i] = v stands at prior[prior_ptr[i] + v]
    prior: FloatArray
    ptr: IntArray
    row: IntArray
    coef: IntArray
    after: IntArray
    last: Any
    hard: Any  # for every row: whether its sum is given
    most: IntArray  # that sum, or the largest that has a weight
    soft_ptr: IntArray  # log weight of a sum s of a soft row stands at soft[soft_ptr[r] + s]
    soft: FloatArray
    asked_ptr: IntArray  # the linear functions that are asked about, by unknown
    asked: IntArray
    asked_coef: IntArray


class Search(NamedTuple):
    """State of a search, so that it can pause."""

    x: IntArray
    high: IntArray  # largest value at each depth
    path: FloatArray  # log weight of what stands above each depth
    below: FloatArray  # weight found below the present value of each depth
    sums: IntArray  # of every row so far
    answers: IntArray  # of every linear function so far
    law_ptr: IntArray
    law: FloatArray  # weight of each value of each unknown
    answer_ptr: IntArray
    answer_law: FloatArray  # weight of each value of each linear function
    number: IntArray  # depth, points, nodes, and whether the depth is to be entered
    scale: FloatArray  # reference of the weights (log), and their sum


@kernel
def _rescale(log_weight: float, scale: Any, below: Any, law: Any, answer_law: Any) -> None:
    """Move the reference up to a weight that lies far above it."""
    factor = math.exp(scale[0] - log_weight)
    below *= factor
    law *= factor
    answer_law *= factor
    scale[1] *= factor
    scale[0] = log_weight


@kernel
def search(of: Component, at: Search, budget: int) -> bool:
    """Go on for about ``budget`` nodes; return whether every point has been visited.

    At each depth the values from ``x`` to ``high`` are still to be tried; ``sums`` and ``answers``
    hold what stands above and the present value.
    """
    # Arrays by name: to reach into a tuple inside the loop costs more than the loop's own work.
    top, prior_ptr, prior, ptr, row, coef = (
        of.top,
        of.prior_ptr,
        of.prior,
        of.ptr,
        of.row,
        of.coef,
    )
    after, last, hard, most, soft_ptr, soft = (
        of.after,
        of.last,
        of.hard,
        of.most,
        of.soft_ptr,
        of.soft,
    )
    asked_ptr, asked, asked_coef = of.asked_ptr, of.asked, of.asked_coef
    x, high, path, below, sums, answers = at.x, at.high, at.path, at.below, at.sums, at.answers
    law_ptr, law, answer_ptr, answer_law, scale = (
        at.law_ptr,
        at.law,
        at.answer_ptr,
        at.answer_law,
        at.scale,
    )
    n = top.size
    depth, points, nodes = at.number[0], at.number[1], np.int64(0)
    enter = at.number[3] == 1
    reference, total = scale[0], scale[1]
    while nodes < budget:
        step = np.int64(1)
        if enter:  # which values do the rows leave here?
            low, up = np.int64(0), top[depth]
            for k in range(ptr[depth], ptr[depth + 1]):
                r = row[k]
                rest = most[r] - sums[r]
                up = min(up, rest // coef[k]) if rest >= 0 else np.int64(-1)
                if hard[r] and rest > after[k]:
                    low = max(low, -((after[k] - rest) // coef[k]))
            high[depth], below[depth], step, enter = up, 0.0, low, False
        elif x[depth] > high[depth]:  # this depth is done: back to the one above
            for k in range(ptr[depth], ptr[depth + 1]):
                sums[row[k]] -= x[depth] * coef[k]
            for k in range(asked_ptr[depth], asked_ptr[depth + 1]):
                answers[asked[k]] -= x[depth] * asked_coef[k]
            x[depth] = 0
            found = below[depth]
            depth -= 1
            if depth < 0:
                break
            law[law_ptr[depth] + x[depth]] += found
            below[depth] += found
        else:
            nodes += 1
            value = path[depth] + prior[prior_ptr[depth] + x[depth]]
            for k in range(ptr[depth], ptr[depth + 1]):
                if last[k] and not hard[row[k]]:
                    value += soft[soft_ptr[row[k]] + sums[row[k]]]
            if value > -math.inf:
                if depth < n - 1:
                    depth += 1
                    path[depth], enter = value, True
                    continue
                points += 1
                if reference == -math.inf:
                    scale[0] = reference = value
                elif value > reference + _FAR:
                    scale[1] = total
                    _rescale(value, scale, below, law, answer_law)
                    reference, total = scale[0], scale[1]
                weight = math.exp(value - reference)
                law[law_ptr[depth] + x[depth]] += weight
                below[depth] += weight
                total += weight
                for i in range(answers.size):
                    answer_law[answer_ptr[i] + answers[i]] += weight
        if step:
            x[depth] += step
            for k in range(ptr[depth], ptr[depth + 1]):
                sums[row[k]] += step * coef[k]
            for k in range(asked_ptr[depth], asked_ptr[depth + 1]):
                answers[asked[k]] += step * asked_coef[k]
    scale[1] = total
    at.number[0], at.number[1], at.number[3] = depth, points, 1 if enter else 0
    at.number[2] += nodes
    return bool(depth < 0)

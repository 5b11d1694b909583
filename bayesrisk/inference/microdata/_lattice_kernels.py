"""A chain on the whole points of a polytope: every step redraws one line through the state.

A *move* changes some counts and leaves every hard row as it is.  A step takes a move at random
and draws how far to go along it from the exact conditional law.  Nothing here checks its arguments.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bayesrisk._numba import lean_kernel
from bayesrisk._types import FloatArray, IntArray


class Lattice(NamedTuple):
    """What does not change: moves, priors and soft rows."""

    ptr: IntArray  # groups of every move
    group: IntArray
    coef: IntArray
    row_ptr: IntArray  # soft rows that every move changes
    row: IntArray
    row_coef: IntArray
    prior_ptr: IntArray  # log prior of x[g] = v stands at prior[prior_ptr[g] + v]
    prior: FloatArray
    soft_ptr: IntArray  # log weight of a sum s of soft row r stands at soft[soft_ptr[r] + s]
    soft: FloatArray


@lean_kernel
def _reach(of: Any, x: Any, sums: Any, move: Any) -> tuple[Any, Any]:
    """Return how far one can go back and forth along a move."""
    low, high = np.int64(-(2**62)), np.int64(2**62)
    for k in range(of.ptr[move], of.ptr[move + 1]):
        g, c = of.group[k], of.coef[k]
        top = of.prior_ptr[g + 1] - of.prior_ptr[g] - 1
        if c > 0:
            low, high = max(low, -(x[g] // c)), min(high, (top - x[g]) // c)
        else:
            low, high = max(low, -((top - x[g]) // -c)), min(high, x[g] // -c)
    for k in range(of.row_ptr[move], of.row_ptr[move + 1]):
        r, c = of.row[k], of.row_coef[k]
        top = of.soft_ptr[r + 1] - of.soft_ptr[r] - 1
        if c > 0:
            low, high = max(low, -(sums[r] // c)), min(high, (top - sums[r]) // c)
        else:
            low, high = max(low, -((top - sums[r]) // -c)), min(high, sums[r] // -c)
    return low, high


@lean_kernel
def go(rng: Any, of: Lattice, x: Any, sums: Any, work: Any, tally: Any, steps: int) -> None:
    """Make so many steps; ``work`` has room for the longest line."""
    ptr, group, coef, prior_ptr, prior = of.ptr, of.group, of.coef, of.prior_ptr, of.prior
    row_ptr, row, row_coef, soft_ptr, soft = of.row_ptr, of.row, of.row_coef, of.soft_ptr, of.soft
    moves = ptr.size - 1
    for _ in range(steps):
        move = np.int64(rng.random() * moves)
        low, high = _reach(of, x, sums, move)
        if low == high:
            continue
        best = -math.inf
        for t in range(low, high + 1):
            value = 0.0
            for k in range(ptr[move], ptr[move + 1]):
                value += prior[prior_ptr[group[k]] + x[group[k]] + t * coef[k]]
            for k in range(row_ptr[move], row_ptr[move + 1]):
                value += soft[soft_ptr[row[k]] + sums[row[k]] + t * row_coef[k]]
            work[t - low] = value
            best = max(best, value)
        total = 0.0
        for i in range(high - low + 1):
            total += math.exp(work[i] - best)
            work[i] = total
        u = rng.random() * total
        i = 0
        while i < high - low and work[i] <= u:
            i += 1
        t = low + i
        if t != 0:
            for k in range(ptr[move], ptr[move + 1]):
                x[group[k]] += t * coef[k]
            for k in range(row_ptr[move], row_ptr[move + 1]):
                sums[row[k]] += t * row_coef[k]
        tally[0] += 1
        tally[1] += t != 0

"""Steps of the Markov chains on lattice points: how far to go along a move, drawn exactly."""

import math
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import lean_kernel, lean_step
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.inference.microdata.people_model import Index, Rng

# Chains on the points of a system with hard rows, from starts that lie far apart.
#
# A *move* changes some counts and leaves every hard row as it is: moves are a basis of a lattice,
# and combinations of it.  A step takes a move at random and draws how far to go along it from the
# exact conditional law.


class Lattice(NamedTuple):
    """Fixed arrays of a run on lattice points: moves, priors and soft rows."""

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


_NEGLIGIBLE = 45.0  # exp(-45) is 3e-20: thousands of such points are less than rounding


@lean_step
def _clip(low: Index, high: Index, value: Index, top: Index, c: Index) -> tuple[Index, Index]:
    """Return the subinterval [low, high] of t that also keeps 0 <= value + c t <= top."""
    # -value / |c| <= t <= (top - value) / |c|, the ends exchanged where c < 0
    below, above = value, top - value
    if c < 0:
        below, above, c = above, below, -c
    if c > 1:  # rarely: a division costs more than all else here
        below, above = below // c, above // c
    return max(low, -below), min(high, above)


@lean_step
def _reach(lattice: Lattice, x: IntArray, sums: IntArray, move: Index) -> tuple[Index, Index]:
    """Return the smallest and largest t that keep x + t z possible, z being the move."""
    low: Index = np.int64(-(2**62))
    high: Index = np.int64(2**62)
    # 0 <= x_g + t z_g <= top_g for every group
    for k in range(lattice.ptr[move], lattice.ptr[move + 1]):
        g = lattice.group[k]
        top = lattice.prior_ptr[g + 1] - lattice.prior_ptr[g] - 1
        low, high = _clip(low, high, x[g], top, lattice.coef[k])
        if low == high:  # nowhere: to stay is always possible, so that no row can say more
            return low, high
    # 0 <= s_r + t (A z)_r <= top_r for every soft row
    for k in range(lattice.row_ptr[move], lattice.row_ptr[move + 1]):
        r = lattice.row[k]
        top = lattice.soft_ptr[r + 1] - lattice.soft_ptr[r] - 1
        low, high = _clip(low, high, sums[r], top, lattice.row_coef[k])
        if low == high:
            return low, high
    return low, high


@lean_kernel
def walk(
    rng: Rng, lattice: Lattice, x: IntArray, sums: IntArray, work: FloatArray, steps: int
) -> None:
    """Make ``steps`` Gibbs steps along random moves; ``work`` must hold the longest line."""
    ptr, group, coef = lattice.ptr, lattice.group, lattice.coef
    prior_ptr, prior, row_ptr, row = lattice.prior_ptr, lattice.prior, lattice.row_ptr, lattice.row
    row_coef, soft_ptr, soft = lattice.row_coef, lattice.soft_ptr, lattice.soft
    moves = ptr.size - 1
    for _ in range(steps):
        move = np.int64(rng.random() * moves)
        low, high = _reach(lattice, x, sums, move)
        if low == high:
            continue
        # w(t) = sum_g log prior_g(x_g + t z_g) + sum_r log weight_r(s_r + t (A z)_r)
        best = -math.inf
        for t in range(low, high + 1):
            value = 0.0
            for k in range(ptr[move], ptr[move + 1]):
                value += prior[prior_ptr[group[k]] + x[group[k]] + t * coef[k]]
            for k in range(row_ptr[move], row_ptr[move + 1]):
                value += soft[soft_ptr[row[k]] + sums[row[k]] + t * row_coef[k]]
            work[t - low] = value
            best = max(best, value)
        # P(t) = exp(w(t)) / sum exp(w), drawn by inversion of the cumulative sum
        total = 0.0
        for i in range(high - low + 1):
            if work[i] > best - _NEGLIGIBLE:
                total += math.exp(work[i] - best)
            work[i] = total
        u = rng.random() * total
        i = 0
        while i < high - low and work[i] <= u:
            i += 1
        # x' = x + t z, s' = s + t A z
        step = low + i
        if step != 0:
            for k in range(ptr[move], ptr[move + 1]):
                x[group[k]] += step * coef[k]
            for k in range(row_ptr[move], row_ptr[move + 1]):
                sums[row[k]] += step * row_coef[k]


@lean_kernel
def walks(
    rng: Rng,
    lattice: Lattice,
    x: IntArray,
    sums: IntArray,
    work: FloatArray,
    steps: int,
    counts: IntArray,
    row_sums: IntArray,
) -> None:
    """Make ``steps`` steps for each row of ``counts`` and ``row_sums``, which store the states."""
    for draw in range(len(counts)):
        walk(rng, lattice, x, sums, work, steps)
        for i in range(x.size):
            counts[draw, i] = x[i]
        for i in range(sums.size):
            row_sums[draw, i] = sums[i]

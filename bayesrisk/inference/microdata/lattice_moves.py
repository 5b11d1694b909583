r"""Steps of the Markov chains on lattice points, along moves and of single records; and moves.

A *move* z changes some counts and leaves every hard row unchanged. A step along it draws its length
from the exact conditional law. If groups have equal hard columns, every second step concerns one
record. The record goes to another of these groups, or it is added or removed if no hard row counts
it. Such a step is accepted with

    min(1, [P(x') L(x')] / [P(x) L(x)] * q(x | x') / q(x' | x))

for the prior P, the likelihood L of the soft rows and the proposal probability q. Steps along moves
connect states that single records cannot.
"""

import math
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import lean_kernel, lean_step
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.inference.microdata.people_model import Index, Rng


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
    group_ptr: IntArray  # soft rows that every group is in
    group_row: IntArray
    group_coef: IntArray
    block: IntArray  # of every group: equal where hard columns are; 0 if zero, -1 if of no other
    reach: FloatArray  # cumulative shares of the groups with a block
    chances: FloatArray  # of a step of one record, and among these of one that comes or goes


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


# Steps of one record.


_FAR = 0.05  # weight of a move that shares no group with another
_SPAN = 5  # log2 of the groups that are passed over together


def span_sums(x: IntArray) -> IntArray:
    """Return the sums of counts over each 2**_SPAN groups."""
    return np.add.reduceat(x, np.arange(0, x.size, 1 << _SPAN))


@lean_step
def _add(x: IntArray, spans: IntArray, g: Index, records: Index) -> None:
    """Add records to a group."""
    x[g] += records
    spans[g >> _SPAN] += records


@lean_step
def _random_record(rng: Rng, x: IntArray, spans: IntArray, number: Index) -> Index:
    """Return the group of a random one of ``number`` records."""
    left = np.int64(rng.random() * number)
    span: Index = 0
    while left >= spans[span]:
        left -= spans[span]
        span += 1
    g = span << _SPAN
    while left >= x[g]:
        left -= x[g]
        g += 1
    return g


@lean_step
def _random_group(rng: Rng, reach: FloatArray) -> Index:
    """Return a random group by its share: the first whose cumulative share is above u."""
    u = rng.random() * reach[-1]
    low: Index = 0
    high: Index = reach.size - 1
    while low < high:
        middle = (low + high) // 2
        if reach[middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@lean_step
def _share(reach: FloatArray, g: Index) -> float:
    """Return the share of a group."""
    share: float = (reach[g] - (reach[g - 1] if g > 0 else 0.0)) / reach[-1]
    return share


@lean_step
def _change(lattice: Lattice, x: IntArray, sums: IntArray, old: Index, new: Index) -> float:
    """Return the change of log P(x) L(x) if a record of ``old`` turns into one of ``new``.

    The record is no longer in ``x``, but still in the sums; -1 means no record.
    """
    prior_ptr, prior = lattice.prior_ptr, lattice.prior
    soft_ptr, soft = lattice.soft_ptr, lattice.soft
    change = 0.0
    if new >= 0:  # log P(x_new + 1) - log P(x_new)
        k = prior_ptr[new] + x[new]
        if k + 1 >= prior_ptr[new + 1]:
            return -math.inf
        change += prior[k + 1] - prior[k]
    if old >= 0:  # the same of the group that it leaves
        k = prior_ptr[old] + x[old]
        change -= prior[k + 1] - prior[k]
    # Rows of both in their order: a row of both changes by the difference of its weights.
    row, coef, none = lattice.group_row, lattice.group_coef, len(soft_ptr)
    i, last = _row_range(lattice, old)
    j, end = _row_range(lattice, new)
    while i < last or j < end:
        r = min(row[i] if i < last else none, row[j] if j < end else none)
        step: Index = 0
        if i < last and row[i] == r:
            step -= coef[i]
            i += 1
        if j < end and row[j] == r:
            step += coef[j]
            j += 1
        if step != 0:
            k = soft_ptr[r] + sums[r]
            if k + step < soft_ptr[r] or k + step >= soft_ptr[r + 1]:
                return -math.inf
            change += soft[k + step] - soft[k]
    return change


@lean_step
def _row_range(lattice: Lattice, g: Index) -> tuple[Index, Index]:
    """Return the start and end of a group's soft rows; none for no group."""
    if g < 0:
        return 0, 0
    return lattice.group_ptr[g], lattice.group_ptr[g + 1]


@lean_step
def _put(lattice: Lattice, sums: IntArray, g: Index, sign: Index) -> None:
    """Add a record of a group to the sums (sign 1), or take one out (-1)."""
    for k in range(lattice.group_ptr[g], lattice.group_ptr[g + 1]):
        sums[lattice.group_row[k]] += sign * lattice.group_coef[k]


@lean_step
def _propose_group(
    rng: Rng, lattice: Lattice, x: IntArray, spans: IntArray, sums: IntArray, number: Index
) -> None:
    """Propose another group of equal hard columns for one of ``number`` records."""
    reach, block = lattice.reach, lattice.block
    old = _random_record(rng, x, spans, number)
    if block[old] < 0:
        return
    # q(g) = s_g / 2 + x_g / (2 (n - 1)), for the n - 1 other records x and the shares s
    _add(x, spans, old, -1)
    rest = number - 1
    if rest > 0 and rng.random() < 0.5:
        new = _random_record(rng, x, spans, rest)
    else:
        new = _random_group(rng, reach)
    if new == old or block[new] != block[old]:
        _add(x, spans, old, 1)
        return
    forward, backward = _share(reach, new), _share(reach, old)
    if rest > 0:
        forward, backward = forward + x[new] / rest, backward + x[old] / rest
    # x stands for x! orders of its records: P(x') L(x') / [P(x) L(x)] * (x_new + 1) / (x_old + 1)
    change = _change(lattice, x, sums, old, new)
    ratio = math.exp(change) * (x[new] + 1) / (x[old] + 1) * backward / forward
    if rng.random() < ratio:
        _put(lattice, sums, old, -1)
        _put(lattice, sums, new, 1)
        _add(x, spans, new, 1)
    else:
        _add(x, spans, old, 1)


@lean_step
def _propose_size(
    rng: Rng, lattice: Lattice, x: IntArray, spans: IntArray, sums: IntArray, number: Index
) -> Index:
    """Propose one record more or less of a group without hard rows; return the change."""
    if rng.random() < 0.5:
        # it comes to group g with chance s_g, and would go with chance (x_g + 1) / (n + 1)
        g = _random_group(rng, lattice.reach)
        if lattice.block[g] != 0:
            return 0
        change = _change(lattice, x, sums, -1, g)
        ratio = math.exp(change) * (x[g] + 1) / (number + 1) / _share(lattice.reach, g)
        if rng.random() >= ratio:
            return 0
        _put(lattice, sums, g, 1)
        _add(x, spans, g, 1)
        return 1
    if number == 0:
        return 0
    g = _random_record(rng, x, spans, number)
    if lattice.block[g] != 0:
        return 0
    _add(x, spans, g, -1)
    change = _change(lattice, x, sums, g, -1)
    ratio = math.exp(change) * number / (x[g] + 1) * _share(lattice.reach, g)
    if rng.random() >= ratio:
        _add(x, spans, g, 1)
        return 0
    _put(lattice, sums, g, -1)
    return -1


@lean_kernel
def walk(
    rng: Rng,
    lattice: Lattice,
    x: IntArray,
    spans: IntArray,
    sums: IntArray,
    work: FloatArray,
    steps: int,
) -> None:
    """Make ``steps`` steps along random moves or of one record; ``work`` holds the longest line.

    ``spans`` are the sums of x over each 2**_SPAN groups (:func:`span_sums`).
    """
    ptr, group, coef = lattice.ptr, lattice.group, lattice.coef
    prior_ptr, prior, row_ptr, row = lattice.prior_ptr, lattice.prior, lattice.row_ptr, lattice.row
    row_coef, soft_ptr, soft = lattice.row_coef, lattice.soft_ptr, lattice.soft
    moves, single, loose = ptr.size - 1, lattice.chances[0], lattice.chances[1]
    number = x.sum()
    for _ in range(steps):
        if single > 0.0 and rng.random() < single:
            if loose > 0.0 and rng.random() < loose:
                number += _propose_size(rng, lattice, x, spans, sums, number)
            elif number > 0:
                _propose_group(rng, lattice, x, spans, sums, number)
            continue
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
                _add(x, spans, group[k], step * coef[k])
                number += step * coef[k]
            for k in range(row_ptr[move], row_ptr[move + 1]):
                sums[row[k]] += step * row_coef[k]


@lean_kernel
def walks(
    rng: Rng,
    lattice: Lattice,
    x: IntArray,
    spans: IntArray,
    sums: IntArray,
    work: FloatArray,
    steps: int,
    counts: IntArray,
    row_sums: IntArray,
) -> None:
    """Make ``steps`` steps for each row of ``counts`` and ``row_sums``, which store the states."""
    for draw in range(len(counts)):
        walk(rng, lattice, x, spans, sums, work, steps)
        for i in range(x.size):
            counts[draw, i] = x[i]
        for i in range(sums.size):
            row_sums[draw, i] = sums[i]


# Moves by combinations of a basis, set up once.


@lean_step
def _add_move(basis: IntArray, move: Index, sign: Index, out: IntArray, row: Index) -> None:
    """Add a basis move to a row of ``out``, or subtract it (sign -1); sign 0 writes it there."""
    for g in range(basis.shape[1]):
        out[row, g] = out[row, g] + sign * basis[move, g] if sign != 0 else basis[move, g]


@lean_kernel
def combine_near(
    rng: Rng, basis: IntArray, near: IntArray, longest: Index, reach: FloatArray, out: IntArray
) -> Index:
    """Fill ``out`` with combinations of two to four basis moves that share groups.

    ``near`` has the number of groups that each two moves share; such combinations are shorter than
    others.  Those longer than ``longest`` are left out.  Returns the number that are filled.
    """
    dimension, groups = basis.shape
    filled: Index = 0
    for _ in range(len(out)):
        move = np.int64(rng.random() * dimension)
        _add_move(basis, move, 0, out, filled)
        for _ in range(1 + np.int64(rng.random() * 3.0)):
            # P(j) ~ n_ij + 1 / 20, for the n_ij groups that the first move i and j share
            total = 0.0
            for j in range(dimension):
                total += near[move, j] + _FAR
                reach[j] = total
            other, sign = _random_group(rng, reach), 1 if rng.random() < 0.5 else -1
            _add_move(basis, other, sign, out, filled)
        length: Index = 0
        for g in range(groups):
            length += abs(out[filled, g])
        if 0 < length <= longest:
            filled += 1
    return filled


@lean_kernel
def combine_small(
    rng: Rng,
    basis: IntArray,
    overlap: IntArray,
    left: FloatArray,
    reach: FloatArray,
    out: IntArray,
) -> Index:
    """Fill ``out`` with combinations of two to four basis moves that hardly change soft sums.

    ``overlap`` has the products c_i c_j of the changes c_i of the soft sums by each move i.  To a
    random move another is added or subtracted that takes back some of its change, and so on: such
    as one person here for one there, and the same elsewhere the other way.  Returns the number that
    are filled.
    """
    dimension, groups = basis.shape
    filled: Index = 0
    for _ in range(len(out)):
        move = np.int64(rng.random() * dimension)
        _add_move(basis, move, 0, out, filled)
        second: Index = -1
        third: Index = -1
        for j in range(dimension):
            left[j] = overlap[move, j]  # c_z c_j, for the change c_z of the combination
        for _ in range(1 + np.int64(rng.random() * (min(4, dimension) - 1))):
            # |c_z -+ c_j|^2 = |c_z|^2 - 2 |c_z c_j| + |c_j|^2, smallest for one of few moves.
            best = -math.inf
            for j in range(dimension):
                reach[j] = 2.0 * abs(left[j]) - overlap[j, j]
                if j not in (move, second, third):
                    best = max(best, reach[j])
            total = 0.0
            for j in range(dimension):
                if j not in (move, second, third):
                    total += math.exp(reach[j] - best)
                reach[j] = total
            other = _random_group(rng, reach)
            sign = -1 if left[other] > 0.0 else 1
            second, third = other, second
            _add_move(basis, other, sign, out, filled)
            for j in range(dimension):
                left[j] += sign * overlap[other, j]
        for g in range(groups):
            if out[filled, g] != 0:
                filled += 1
                break
    return filled

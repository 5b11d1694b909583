r"""Metropolis-Hastings moves of the chain over lists of people, and its sweeps.

A move changes one person or two, or the number of people of a part, and is accepted with

    min(1, [P(x') L(x')] / [P(x) L(x)] * q(x | x') / q(x' | x))

for the prior P of the lists, the likelihood L of all published counts and the chance q that a move
is proposed.  Where a class is proposed by what the prior predicts, P and q cancel.  Nothing here
checks its arguments.
"""

import math

import numpy as np

from bayesrisk._numba import lean_kernel
from bayesrisk._validation import IntArray
from bayesrisk.inference.microdata.people_model import (
    BIRTH,
    EXCHANGE,
    LEAP,
    MOVE,
    REDRAW,
    ChainState,
    Index,
    ModelArrays,
    Rng,
)

_TRIES = 16  # random slots, to find a person
_NEARBY = 0.8  # how often the other slot is of the area around a part


# Rows: the sums that published counts are about.  Row r of a state has the log likelihood
# table[spot[r]], and one more person of a class moves the spot by the weight of the class there.


@lean_kernel
def add_person(
    model: ModelArrays, state: ChainState, level: Index, part: Index, cls: Index, sign: Index
) -> float:
    """Add a person of a class to the rows of a part at one level; return log L(x') - log L(x)."""
    change = 0.0
    base, table, spot = model.base[level, part], model.table, state.spot
    cell, coef = model.cell, model.coef
    for k in range(cell.shape[2]):
        c = cell[level, cls, k]
        if c >= 0:
            # sum' = sum +- w: log L moves by table[spot'] - table[spot]
            old = spot[base + c]
            new = old + sign * coef[level, cls, k]
            change += table[new] - table[old]
            spot[base + c] = new
    return change


@lean_kernel
def shift_rows(
    model: ModelArrays, state: ChainState, level: Index, part: Index, cls: Index, sign: Index
) -> None:
    """Add a person of a class to the rows of a part at one level: sum' = sum +- w."""
    base, spot, cell, coef = model.base[level, part], state.spot, model.cell, model.coef
    for k in range(cell.shape[2]):
        c = cell[level, cls, k]
        if c >= 0:
            spot[base + c] += sign * coef[level, cls, k]


@lean_kernel
def reassign_delta(
    model: ModelArrays, state: ChainState, level: Index, part: Index, old: Index, new: Index
) -> float:
    """Return log L(x') - log L(x) of one level if a person of a part has another class."""
    change = 0.0
    base, table, spot = model.base[level, part], model.table, state.spot
    cell, coef = model.cell, model.coef
    for k in range(cell.shape[2]):
        i, j = cell[level, old, k], cell[level, new, k]
        if i == j:
            # Both classes are of one row: sum' = sum + w_new - w_old
            step = coef[level, new, k] - coef[level, old, k]
            if i >= 0 and step != 0:
                s = spot[base + i]
                change += table[s + step] - table[s]
            continue
        if i >= 0:  # the row that loses the person: sum' = sum - w_old
            s = spot[base + i]
            change += table[s - coef[level, old, k]] - table[s]
        if j >= 0:  # the row that gains it: sum' = sum + w_new
            s = spot[base + j]
            change += table[s + coef[level, new, k]] - table[s]
    return change


@lean_kernel
def reassign(
    model: ModelArrays, state: ChainState, level: Index, part: Index, old: Index, new: Index
) -> None:
    """Give one person of a part another class, in the rows of one level."""
    base, spot, cell, coef = model.base[level, part], state.spot, model.cell, model.coef
    for k in range(cell.shape[2]):
        i, j = cell[level, old, k], cell[level, new, k]
        if i >= 0:
            spot[base + i] -= coef[level, old, k]
        if j >= 0:
            spot[base + j] += coef[level, new, k]


# The prior of a list: shares, or Dirichlet parameters a_c of sum A.


@lean_kernel
def _accept(rng: Rng, log_ratio: float) -> bool:
    """Return True with probability min(1, exp(log_ratio))."""
    return not (log_ratio < 0.0 and rng.random() >= math.exp(log_ratio))


@lean_kernel
def _draw_share(rng: Rng, model: ModelArrays, law: Index) -> Index:
    """Draw a class from the shares of a law."""
    # Walker: bin i of n equally probable ones, kept with probability keep[i], else its alias
    u = rng.random() * model.keep.shape[1]
    i = np.int64(u)
    if u - i < model.keep[law, i]:
        return i
    chosen: Index = model.alias[law, i]
    return chosen


@lean_kernel
def _predict(
    rng: Rng, model: ModelArrays, state: ChainState, part: Index, excluded: Index
) -> Index:
    """Draw the class of one more person of a part, given all but slot ``excluded`` (or -1)."""
    law = model.law[part]
    a = model.concentration[law]
    if a == 0.0:
        return _draw_share(rng, model, law)
    # Polya's urn: P(c) = (a_c + x_c) / (A + n), from the shares with probability A / (A + n)
    others = state.people[part] - (1 if excluded >= 0 else 0)
    if rng.random() * (a + others) < a:
        return _draw_share(rng, model, law)
    # ... else the class of one of the n others
    slot = model.first[part] + np.int64(rng.random() * others)
    if excluded >= 0 and slot >= excluded:
        slot += 1
    chosen: Index = state.occupant[slot]
    return chosen


@lean_kernel
def _weight(model: ModelArrays, law: Index, cls: Index, count: Index) -> float:
    """Return the factor of one more person of a class: s_c, or a_c + x_c with ``count`` x_c."""
    if model.concentration[law] == 0.0:
        weight: float = model.mass[law, cls]
        return weight
    more: float = model.mass[law, cls] + count
    return more


@lean_kernel
def _size_delta(model: ModelArrays, part: Index, n: Index, sign: Index) -> float:
    """Return log P(n +- 1) - log P(n) for the number n of people of a part."""
    i = model.size_ptr[part] + n
    change: float = model.log_size[i + sign] - model.log_size[i]
    return change


@lean_kernel
def _leave(model: ModelArrays, state: ChainState, slot: Index) -> None:
    """Take a person out of the list of its part; the last one takes the slot."""
    part = model.part_of[slot]
    state.x[part, state.occupant[slot]] -= 1
    state.people[part] -= 1
    state.occupant[slot] = state.occupant[model.first[part] + state.people[part]]


@lean_kernel
def _join(model: ModelArrays, state: ChainState, part: Index, cls: Index) -> None:
    """Put a person of a class at the end of the list of a part."""
    state.occupant[model.first[part] + state.people[part]] = cls
    state.x[part, cls] += 1
    state.people[part] += 1


# Moves of one person.


@lean_kernel
def _redraw(rng: Rng, model: ModelArrays, state: ChainState, slot: Index) -> bool:
    """Give a person a class that its part predicts."""
    part, old = model.part_of[slot], state.occupant[slot]
    new = _predict(rng, model, state, part, slot)
    if new == old:
        return True
    # Proposed from the prior: P and q cancel, and the ratio is L(x') / L(x)
    change = 0.0
    for level in range(model.base.shape[0]):
        change += reassign_delta(model, state, level, part, old, new)
    if not _accept(rng, change):
        return False
    for level in range(model.base.shape[0]):
        reassign(model, state, level, part, old, new)
    state.occupant[slot] = new
    state.x[part, old] -= 1
    state.x[part, new] += 1
    state.density[0] += change
    return True


@lean_kernel
def _move(rng: Rng, model: ModelArrays, state: ChainState, slot: Index, target: Index) -> bool:
    """Move a person, with its class, from its part to another that has a free slot."""
    part, cls = model.part_of[slot], state.occupant[slot]
    law, target_law = model.law[part], model.law[target]
    if not (model.open[part] and model.open[target]) or model.mass[target_law, cls] == 0.0:
        return False
    # P(n - 1) / P(n) * P(m + 1) / P(m) for n people of the part and m of the target
    n, m = state.people[part], state.people[target]
    ratio = _size_delta(model, part, n, -1) + _size_delta(model, target, m, 1)
    # q(x | x') / q(x' | x): the way back begins at one of m + 1 people and ends in one of the free
    # slots of the part and the one that was left; the way there, at one of n and in one of ``free``
    room = model.first[part + 1] - model.first[part] - n
    free = model.first[target + 1] - model.first[target] - m
    ratio += math.log((m + 1) * (room + 1) / (n * free))
    # (a'_c + x'_c) / (a_c + x_c - 1), or s'_c / s_c ...
    ratio += math.log(
        _weight(model, target_law, cls, state.x[target, cls])
        / _weight(model, law, cls, state.x[part, cls] - 1)
    )
    # ... times (A + n - 1) / (A' + m)
    if model.concentration[law] > 0.0:
        ratio += math.log(
            (model.concentration[law] + n - 1) / (model.concentration[target_law] + m)
        )
    # L(x') / L(x): rows of places that hold both parts do not change
    change = 0.0
    for level in range(model.base.shape[0]):
        if model.base[level, part] != model.base[level, target]:
            change += add_person(model, state, level, part, cls, -1)
            change += add_person(model, state, level, target, cls, 1)
    if not _accept(rng, ratio + change):
        for level in range(model.base.shape[0]):
            if model.base[level, part] != model.base[level, target]:
                shift_rows(model, state, level, part, cls, 1)
                shift_rows(model, state, level, target, cls, -1)
        return False
    _leave(model, state, slot)
    _join(model, state, target, cls)
    state.density[0] += change
    return True


@lean_kernel
def _rows_delta(
    model: ModelArrays, state: ChainState, part: Index, cls: Index, sign: Index
) -> float:
    """Add a person of a class to the rows of a part at all levels; return the change of log L."""
    change = 0.0
    for level in range(model.base.shape[0]):
        change += add_person(model, state, level, part, cls, sign)
    return change


@lean_kernel
def _birth(rng: Rng, model: ModelArrays, state: ChainState, part: Index) -> bool:
    """Add a person, of a class that the part predicts, in a free slot."""
    n = state.people[part]
    free = model.first[part + 1] - model.first[part] - n
    cls = _predict(rng, model, state, part, -1)
    change = _rows_delta(model, state, part, cls, 1)
    # P(n + 1) / P(n) * (n + 1) / free * L(x') / L(x): the class is proposed from the prior
    ratio = _size_delta(model, part, n, 1) + math.log((n + 1) / free)
    if not _accept(rng, ratio + change):
        for level in range(model.base.shape[0]):
            shift_rows(model, state, level, part, cls, -1)
        return False
    _join(model, state, part, cls)
    state.density[0] += change
    return True


@lean_kernel
def _death(rng: Rng, model: ModelArrays, state: ChainState, slot: Index) -> bool:
    """Remove a person: the reverse of a birth."""
    part, cls = model.part_of[slot], state.occupant[slot]
    n = state.people[part]
    free = model.first[part + 1] - model.first[part] - n
    change = _rows_delta(model, state, part, cls, -1)
    # P(n - 1) / P(n) * (free + 1) / n * L(x') / L(x)
    ratio = _size_delta(model, part, n, -1) + math.log((free + 1) / n)
    if not _accept(rng, ratio + change):
        for level in range(model.base.shape[0]):
            shift_rows(model, state, level, part, cls, 1)
        return False
    _leave(model, state, slot)
    state.density[0] += change
    return True


# Leaps: many people are added or removed at once.


@lean_kernel
def _tilt(model: ModelArrays, state: ChainState, part: Index, sign: Index) -> float:
    """Fill ``work`` with cumulative weights b_c (sign 1) or d_c (-1); return the log of their sum.

    ``work`` is relative to the largest weight, and ends with the sum.
    """
    best = -math.inf
    a = model.concentration[model.law[part]]
    for cls in range(state.work.size):
        # b_c begins with the share s_c or (a_c + x_c) / (A + n), d_c with the count x_c
        weight = float(state.x[part, cls])
        if sign > 0:
            weight = _weight(model, model.law[part], cls, state.x[part, cls])
            weight = weight / (a + state.people[part]) if a > 0.0 else weight
        if weight > 0.0:
            # ... times (L(x') / L(x)) ** (1/2)
            change = 0.0
            for level in range(model.base.shape[0]):
                base = model.base[level, part]
                for k in range(model.cell.shape[2]):
                    c = model.cell[level, cls, k]
                    if c >= 0:
                        old = state.spot[base + c]
                        new = old + sign * model.coef[level, cls, k]
                        change += model.table[new] - model.table[old]
            weight = math.log(weight) + 0.5 * change
            best = max(best, weight)
        else:
            weight = -math.inf
        state.work[cls] = weight
    # log sum_c exp(w_c) = w_max + log sum_c exp(w_c - w_max)
    total = 0.0
    for cls in range(state.work.size):
        total += math.exp(state.work[cls] - best)
        state.work[cls] = total
    return best + math.log(total)


@lean_kernel
def _insert(model: ModelArrays, state: ChainState, part: Index, cls: Index) -> float:
    """Add a person of a class; return the change of log L."""
    change = _rows_delta(model, state, part, cls, 1)
    _join(model, state, part, cls)
    return change


@lean_kernel
def _remove(model: ModelArrays, state: ChainState, part: Index, cls: Index) -> float:
    """Remove a person of a class, kept in the first slot behind the list; return the change."""
    change = _rows_delta(model, state, part, cls, -1)
    slot = model.first[part] + state.people[part] - 1
    while state.occupant[slot] != cls:
        slot -= 1
    _leave(model, state, slot)
    state.occupant[model.first[part] + state.people[part]] = cls
    return change


@lean_kernel
def _leap(rng: Rng, model: ModelArrays, state: ChainState, part: Index) -> bool:
    """Add or remove many people, one after another, across numbers that are impossible.

    Of m people with the counts y, class c is added with probability b_c(y) / B(y) and removed with
    d_c(y) / D(y), where B and D are the sums of b_c = s_c(y) (L(y + e_c) / L(y))**(1/2) and
    d_c = y_c (L(y - e_c) / L(y))**(1/2), with the share s_c that is predicted.  Since

        pi(y + e_c) / pi(y) = P(m + 1) / P(m) * (m + 1) / (y_c + 1) * s_c(y) * L(y + e_c) / L(y),

    a path from y_0 to y_k, of n and n + k people, is as probable as the way back times

        P(n + k) / P(n) * prod_i (n + i) B(y_{i-1}) / D(y_i),    i = 1 ... k,

    in which no P of a number between the ends is left.  Paths up are accepted by this ratio, paths
    down by its inverse; both are proposed equally often, so that no other factor enters.
    """
    # k people with the chance of the table, up or down with probability 1/2 each
    u, k = rng.random(), 0
    while k < model.leap.size - 1 and u >= model.leap_chance[k]:
        k += 1
    sign = 1 if rng.random() < 0.5 else -1
    n, steps = state.people[part], model.leap[k]
    end = n + sign * steps
    if end < 0 or end > model.first[part + 1] - model.first[part]:
        return False
    # P(n + k) / P(n)
    ratio = model.log_size[model.size_ptr[part] + end] - model.log_size[model.size_ptr[part] + n]
    if ratio == -math.inf:
        return False
    change = 0.0
    for _ in range(steps):
        # (n + i) B(y_{i-1}) on the way up, its inverse D(y_i) / (n + i) terms on the way down
        ratio += sign * math.log(max(state.people[part], state.people[part] + sign))
        ratio += _tilt(model, state, part, sign)
        u = rng.random() * state.work[-1]
        cls = 0
        while state.work[cls] <= u:
            cls += 1
        if sign > 0:
            change += _insert(model, state, part, cls)
        else:
            change += _remove(model, state, part, cls)
        # the step of the way back: 1 / D(y_i), or 1 / B(y_i)
        ratio -= _tilt(model, state, part, -sign)
    if not _accept(rng, ratio):
        for _ in range(steps):
            last = model.first[part] + state.people[part]
            if sign > 0:
                _remove(model, state, part, state.occupant[last - 1])
            else:
                _insert(model, state, part, state.occupant[last])
        return False
    state.density[0] += change
    return True


# Moves of two people.


@lean_kernel
def _prior_step(
    model: ModelArrays, state: ChainState, part: Index, cls: Index, sign: Index
) -> float:
    """Add a person to the counts of a part, or remove one; return the log factor of the prior."""
    law = model.law[part]
    if sign < 0:  # 1 / s_c, or 1 / (a_c + x_c - 1)
        state.x[part, cls] -= 1
        return -math.log(_weight(model, law, cls, state.x[part, cls]))
    factor = math.log(_weight(model, law, cls, state.x[part, cls]))
    state.x[part, cls] += 1
    return factor


@lean_kernel
def _trade(
    model: ModelArrays,
    state: ChainState,
    parts: tuple[Index, Index],
    old: tuple[Index, Index],
    new: tuple[Index, Index],
) -> float:
    """Change the classes of a person of each part in the counts; return log P(x') - log P(x)."""
    ratio = _prior_step(model, state, parts[0], old[0], -1)
    ratio += _prior_step(model, state, parts[1], old[1], -1)
    gain = _prior_step(model, state, parts[0], new[0], 1)
    gain += _prior_step(model, state, parts[1], new[1], 1)
    return ratio + gain


@lean_kernel
def _undo_trade(
    state: ChainState,
    parts: tuple[Index, Index],
    old: tuple[Index, Index],
    new: tuple[Index, Index],
) -> None:
    for i in range(2):
        state.x[parts[i], old[i]] += 1
        state.x[parts[i], new[i]] -= 1


@lean_kernel
def _swap(rng: Rng, model: ModelArrays, state: ChainState, slot: Index, other: Index) -> bool:
    """Exchange the classes of two people of different parts: rows that hold both parts stay."""
    parts = (model.part_of[slot], model.part_of[other])
    old = (state.occupant[slot], state.occupant[other])
    new = (old[1], old[0])
    if old[0] == old[1]:
        return True
    if model.mass[model.law[parts[0]], new[0]] == 0.0:
        return False
    if model.mass[model.law[parts[1]], new[1]] == 0.0:
        return False
    # L(x') / L(x)
    change = 0.0
    for level in range(model.base.shape[0]):
        if model.base[level, parts[0]] != model.base[level, parts[1]]:
            change += reassign_delta(model, state, level, parts[0], old[0], new[0])
            change += reassign_delta(model, state, level, parts[1], old[1], new[1])
    # P(x') / P(x); the move is its own reverse, and q cancels
    ratio = _trade(model, state, parts, old, new)
    if not _accept(rng, ratio + change):
        _undo_trade(state, parts, old, new)
        return False
    for level in range(model.base.shape[0]):
        if model.base[level, parts[0]] != model.base[level, parts[1]]:
            reassign(model, state, level, parts[0], old[0], new[0])
            reassign(model, state, level, parts[1], old[1], new[1])
    state.occupant[slot], state.occupant[other] = new
    state.density[0] += change
    return True


@lean_kernel
def _exchange(rng: Rng, model: ModelArrays, state: ChainState, slot: Index, other: Index) -> bool:
    """Exchange the values of some attributes of two people of a place: one-way sums stay."""
    parts = (model.part_of[slot], model.part_of[other])
    a, b = state.occupant[slot], state.occupant[other]
    # Class = sum_m digit_m stride_m: each digit is exchanged with probability 1/2
    new_a, new_b = a, b
    for m in range(model.bins.size):
        if rng.random() < 0.5:
            digit_a = a // model.stride[m] % model.bins[m]
            digit_b = b // model.stride[m] % model.bins[m]
            new_a += (digit_b - digit_a) * model.stride[m]
            new_b += (digit_a - digit_b) * model.stride[m]
    if new_a == a or (new_a == b and parts[0] == parts[1]):
        return True
    if model.mass[model.law[parts[0]], new_a] == 0.0:
        return False
    if model.mass[model.law[parts[1]], new_b] == 0.0:
        return False
    # P(x') / P(x); the move is its own reverse, and q cancels
    ratio = _trade(model, state, parts, (a, b), (new_a, new_b))
    # L(x') / L(x), one person after the other: a sum that stays may be impossible in between only
    change = 0.0
    for level in range(model.base.shape[0]):
        change += reassign_delta(model, state, level, parts[0], a, new_a)
        reassign(model, state, level, parts[0], a, new_a)
        change += reassign_delta(model, state, level, parts[1], b, new_b)
        reassign(model, state, level, parts[1], b, new_b)
    if not _accept(rng, ratio + change):
        for level in range(model.base.shape[0]):
            reassign(model, state, level, parts[0], new_a, a)
            reassign(model, state, level, parts[1], new_b, b)
        _undo_trade(state, parts, (a, b), (new_a, new_b))
        return False
    state.occupant[slot], state.occupant[other] = new_a, new_b
    state.density[0] += change
    return True


# Sweeps: which move is proposed to whom.


@lean_kernel
def _random_person(rng: Rng, model: ModelArrays, state: ChainState) -> Index:
    """Return the slot of a random person, or -1 if several tries found empty ones only."""
    for _ in range(_TRIES):
        slot = np.int64(rng.random() * model.part_of.size)
        part = model.part_of[slot]
        if slot - model.first[part] < state.people[part]:
            return slot
    return np.int64(-1)


@lean_kernel
def _nearby_slot(rng: Rng, model: ModelArrays, part: Index) -> Index:
    """Return a random slot: mostly of the area around a part, where larger tables change less."""
    start, end = 0, model.part_of.size
    if rng.random() < _NEARBY:
        start, end = model.area[0, part], model.area[1, part]
    return start + np.int64(rng.random() * (end - start))


@lean_kernel
def _pair(rng: Rng, model: ModelArrays, state: ChainState, slot: Index, kind: Index) -> bool:
    """Propose an exchange or a swap of a person and a random other one."""
    part = model.part_of[slot]
    if kind == EXCHANGE:  # with another person of the place, all equally likely
        last = model.last_part[part]
        n = model.first[last] - model.home[part] + state.people[last]
        other = model.home[part] + np.int64(rng.random() * n)
        return bool(other != slot) and _exchange(rng, model, state, slot, other)
    other = _nearby_slot(rng, model, part)
    target = model.part_of[other]
    if target == part or other - model.first[target] >= state.people[target]:
        return False
    return _swap(rng, model, state, slot, other)


@lean_kernel
def _propose(rng: Rng, model: ModelArrays, state: ChainState, kind: Index) -> bool:
    """Make a proposal of a kind to a random slot, or person; return whether it was accepted."""
    if kind not in (MOVE, BIRTH, LEAP):  # numbers of people stay: every person is equally likely
        slot = _random_person(rng, model, state)
        if slot < 0:
            return False
        if kind == REDRAW:
            return _redraw(rng, model, state, slot)
        return _pair(rng, model, state, slot, kind)
    # Into a slot or out of it: every slot is equally likely, so that q is as in the moves
    slot = np.int64(rng.random() * model.part_of.size)
    part = model.part_of[slot]
    occupied = slot - model.first[part] < state.people[part]
    if kind == LEAP:
        return bool(model.open[part]) and _leap(rng, model, state, part)
    if kind == BIRTH:
        if not model.open[part]:
            return False
        if occupied:
            return _death(rng, model, state, slot)
        return _birth(rng, model, state, part)
    if not occupied:
        return False
    other = _nearby_slot(rng, model, part)
    target = model.part_of[other]
    if target == part or other - model.first[target] < state.people[target]:
        return False
    return _move(rng, model, state, slot, target)


@lean_kernel
def _random_kind(rng: Rng, model: ModelArrays) -> Index:
    """Draw the kind of a move from the cumulative probabilities ``chance``."""
    u = rng.random()
    kind = 0
    while u >= model.chance[kind]:
        kind += 1
    return kind


@lean_kernel
def sweep(rng: Rng, model: ModelArrays, state: ChainState, proposals: int) -> None:
    """Make so many proposals."""
    if model.part_of.size == 0:
        return
    for _ in range(proposals):
        kind = _random_kind(rng, model)
        accepted = _propose(rng, model, state, kind)
        state.tally[kind, 0] += 1
        state.tally[kind, 1] += accepted


@lean_kernel
def sweep_slots(
    rng: Rng,
    model: ModelArrays,
    state: ChainState,
    slots: IntArray,
    proposals: int,
) -> None:
    """Make so many proposals whose first person, or free slot, is among some slots.

    Nobody moves to another part: the step back would begin in a slot that may not be one of these.
    Every other step and its reverse begin in the same slot, or in equally many.
    """
    for _ in range(proposals):
        kind = _random_kind(rng, model)
        slot = slots[np.int64(rng.random() * slots.size)]
        part = model.part_of[slot]
        occupied = slot - model.first[part] < state.people[part]
        if kind in (MOVE, BIRTH, LEAP):
            if model.open[part]:
                if occupied:
                    _death(rng, model, state, slot)
                else:
                    _birth(rng, model, state, part)
        elif occupied:
            if kind == REDRAW:
                _redraw(rng, model, state, slot)
            else:
                _pair(rng, model, state, slot, kind)

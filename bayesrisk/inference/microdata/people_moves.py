r"""Metropolis-Hastings moves and sweeps of the chain over lists of people.

A move changes one or two persons, or the number of people of a part, and is accepted with

    min(1, [P(x') L(x')] / [P(x) L(x)] * q(x | x') / q(x' | x))

for the prior P of the lists, the likelihood L of all published counts and the proposal probability
q. If a class is proposed from the prior predictive, P and q cancel. Arguments are not checked.
"""

import math

import numpy as np

from bayesrisk._base.compiling import lean_kernel, lean_step
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.inference.microdata.people_model import (
    BIRTH,
    EXCHANGE,
    LEAP,
    MOVE,
    REDRAW,
    SWAP,
    ChainState,
    Index,
    ModelArrays,
    Rng,
)

_TRIES = 16  # random slots, to find a person
_NEARBY = 0.8  # how often the other slot is of the area around a part


# Rows: the sums that published counts are about.  Row r of a state has the log likelihood
# table[spot[r]], and one more person of a class moves the spot by the weight of the class there.
# Two parts share the rows of a level that has one place around both: these are left out where a
# change of one part is made up by the ``other`` (-1: nothing is).


@lean_step
def rows_delta(
    model: ModelArrays, state: ChainState, part: Index, cls: Index, sign: Index, other: Index
) -> float:
    """Return the change of log L if one person of a class joins (sign 1) or leaves (-1) a part."""
    change = 0.0
    for level in range(model.base.shape[0]):
        base = model.base[level, part]
        if other >= 0 and model.base[level, other] == base:
            continue
        for k in range(model.cell.shape[2]):
            c = model.cell[level, cls, k]
            if c >= 0:
                # sum' = sum +- w: log L moves by table[spot'] - table[spot]
                old = state.spot[base + c]
                change += model.table[old + sign * model.coef[level, cls, k]] - model.table[old]
    return change


@lean_step
def shift_rows(
    model: ModelArrays, state: ChainState, part: Index, cls: Index, sign: Index, other: Index
) -> None:
    """Add a person of a class to the sums of a part's rows (sign 1), or remove one (-1)."""
    for level in range(model.base.shape[0]):
        base = model.base[level, part]
        if other >= 0 and model.base[level, other] == base:
            continue
        for k in range(model.cell.shape[2]):
            c = model.cell[level, cls, k]
            if c >= 0:
                state.spot[base + c] += sign * model.coef[level, cls, k]


@lean_step
def _reassign_delta(
    model: ModelArrays, state: ChainState, part: Index, old: Index, new: Index, other: Index
) -> float:
    """Return the change of log L if a person of a part changes from class ``old`` to ``new``."""
    change = 0.0
    table, spot, cell, coef = model.table, state.spot, model.cell, model.coef
    for level in range(model.base.shape[0]):
        base = model.base[level, part]
        if other >= 0 and model.base[level, other] == base:
            continue
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


# The prior of a list: shares, or Dirichlet parameters a_c of sum A.


@lean_step
def _predict(
    rng: Rng, model: ModelArrays, state: ChainState, part: Index, excluded: Index
) -> Index:
    """Draw the class of one more person of a part from the prior predictive distribution."""
    law = model.law[part]
    a = model.concentration[law]
    number = state.people[part] - (1 if excluded >= 0 else 0)
    # Polya's urn: P(c) = (a_c + x_c) / (A + n), from the shares with probability A / (A + n) ...
    if a > 0.0 and rng.random() * (a + number) >= a:
        # ... else the class of one of the n others
        slot = model.first[part] + np.int64(rng.random() * number)
        if excluded >= 0 and slot >= excluded:
            slot += 1
        chosen: Index = state.occupant[slot]
        return chosen
    # Walker: bin i of n equally probable ones, kept with probability keep[i], else its alias
    u = rng.random() * model.keep.shape[1]
    i = np.int64(u)
    if u - i >= model.keep[law, i]:
        i = model.alias[law, i]
    return i


@lean_step
def weight(model: ModelArrays, law: Index, cls: Index, count: Index) -> float:
    """Return the predictive weight of a class: s_c, or a_c + x_c with ``count`` x_c."""
    share: float = model.mass[law, cls]
    return share if model.concentration[law] == 0.0 else share + count


@lean_step
def size_delta(model: ModelArrays, part: Index, n: Index, sign: Index) -> float:
    """Return log P(n +- 1) - log P(n), n being the number of people of a part."""
    i = model.size_ptr[part] + n
    change: float = model.log_size[i + sign] - model.log_size[i]
    return change


@lean_step
def _add(
    model: ModelArrays,
    state: ChainState,
    part: Index,
    cls: Index,
    sign: Index,
    slot: Index,
    other: Index,
) -> None:
    """Add a person of a class to a part's rows and list (sign 1), or remove one (-1).

    A person who leaves is in ``slot``, which the last person of the list then takes.
    """
    shift_rows(model, state, part, cls, sign, other)
    state.x[part, cls] += sign
    last = model.first[part] + state.people[part]
    state.people[part] += sign
    if sign > 0:
        state.occupant[last] = cls
    else:
        state.occupant[slot] = state.occupant[last - 1]


# Moves of one person.


@lean_step
def _redraw(rng: Rng, model: ModelArrays, state: ChainState, slot: Index) -> bool:
    """Propose a person's new class from the predictive law; return whether it was accepted."""
    part, old = model.part[slot], state.occupant[slot]
    new = _predict(rng, model, state, part, slot)
    if new == old:
        return True
    # Proposed from the prior: P and q cancel, and the ratio is L(x') / L(x)
    change = _reassign_delta(model, state, part, old, new, -1)
    if change < 0.0 and rng.random() >= math.exp(change):
        return False
    shift_rows(model, state, part, old, -1, -1)
    shift_rows(model, state, part, new, 1, -1)
    state.occupant[slot] = new
    state.x[part, old] -= 1
    state.x[part, new] += 1
    state.density[0] += change
    return True


@lean_step
def _move(rng: Rng, model: ModelArrays, state: ChainState, slot: Index, target: Index) -> bool:
    """Propose to move a person to a free slot of another part; return whether it was accepted."""
    part, cls = model.part[slot], state.occupant[slot]
    law, target_law = model.law[part], model.law[target]
    if not (model.open[part] and model.open[target]) or model.mass[target_law, cls] == 0.0:
        return False
    # P(n - 1) / P(n) * P(m + 1) / P(m) for n people of the part and m of the target
    n, m = state.people[part], state.people[target]
    ratio = size_delta(model, part, n, -1) + size_delta(model, target, m, 1)
    # q(x | x') / q(x' | x): the way back begins at one of m + 1 people and ends in one of the free
    # slots of the part and the one that was left; the way there, at one of n and in one of ``free``
    room = model.first[part + 1] - model.first[part] - n
    free = model.first[target + 1] - model.first[target] - m
    ratio += math.log((m + 1) * (room + 1) / (n * free))
    # (a'_c + x'_c) / (a_c + x_c - 1), or s'_c / s_c ...
    ratio += math.log(
        weight(model, target_law, cls, state.x[target, cls])
        / weight(model, law, cls, state.x[part, cls] - 1)
    )
    # ... times (A + n - 1) / (A' + m)
    if model.concentration[law] > 0.0:
        ratio += math.log(
            (model.concentration[law] + n - 1) / (model.concentration[target_law] + m)
        )
    # L(x') / L(x): rows of places that hold both parts do not change
    change = rows_delta(model, state, part, cls, -1, target)
    change += rows_delta(model, state, target, cls, 1, part)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        return False
    _add(model, state, part, cls, -1, slot, target)
    _add(model, state, target, cls, 1, -1, part)
    state.density[0] += change
    return True


@lean_step
def _resize(rng: Rng, model: ModelArrays, state: ChainState, slot: Index) -> bool:
    """Propose to fill a free slot or to empty a slot; return whether it was accepted."""
    part = model.part[slot]
    n = state.people[part]
    free = model.first[part + 1] - model.first[part] - n
    if slot - model.first[part] < n:
        # A death, the reverse of a birth: P(n - 1) / P(n) * (free + 1) / n
        sign, cls = -1, state.occupant[slot]
        ratio = size_delta(model, part, n, sign) + math.log((free + 1) / n)
    else:
        # A birth, its class proposed from the prior: P(n + 1) / P(n) * (n + 1) / free
        sign, cls = 1, _predict(rng, model, state, part, -1)
        ratio = size_delta(model, part, n, sign) + math.log((n + 1) / free)
    # ... times L(x') / L(x)
    change = rows_delta(model, state, part, cls, sign, -1)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        return False
    _add(model, state, part, cls, sign, slot, -1)
    state.density[0] += change
    return True


# Leaps: many people are added or removed at once.


@lean_step
def _tilt(model: ModelArrays, state: ChainState, part: Index, sign: Index) -> float:
    """Fill ``work`` with cumulative weights b_c (sign 1) or d_c (-1); return the log of their sum.

    ``work`` is relative to the largest weight, and ends with the sum.
    """
    best = -math.inf
    a = model.concentration[model.law[part]]
    for cls in range(state.work.size):
        # b_c begins with the share s_c or (a_c + x_c) / (A + n), d_c with the count x_c
        factor = float(state.x[part, cls])
        if sign > 0:
            factor = weight(model, model.law[part], cls, state.x[part, cls])
            factor = factor / (a + state.people[part]) if a > 0.0 else factor
        log_factor = -math.inf
        if factor > 0.0:
            # ... times (L(x') / L(x)) ** (1/2)
            log_factor = math.log(factor)
            log_factor += 0.5 * rows_delta(model, state, part, cls, sign, -1)
            best = max(best, log_factor)
        state.work[cls] = log_factor
    # log sum_c exp(w_c) = w_max + log sum_c exp(w_c - w_max)
    total = 0.0
    for cls in range(state.work.size):
        total += math.exp(state.work[cls] - best)
        state.work[cls] = total
    return best + math.log(total)


@lean_step
def _step(model: ModelArrays, state: ChainState, part: Index, cls: Index, sign: Index) -> float:
    """Add or remove a person of a class; return the change of log L."""
    change = rows_delta(model, state, part, cls, sign, -1)
    slot = model.first[part] + state.people[part] - 1
    while sign < 0 and state.occupant[slot] != cls:
        slot -= 1
    _add(model, state, part, cls, sign, slot, -1)
    if sign < 0:
        state.occupant[model.first[part] + state.people[part]] = cls
    return change


@lean_step
def _leap(rng: Rng, model: ModelArrays, state: ChainState, part: Index) -> bool:
    """Propose to add or remove many people, across impossible numbers; return whether accepted.

    From m people with counts y, class c is added with probability b_c(y) / B(y) and removed with
    d_c(y) / D(y). B and D are the sums of b_c = s_c(y) (L(y + e_c) / L(y))**(1/2) and d_c = y_c
    (L(y - e_c) / L(y))**(1/2). Here s_c is the predicted share. Since

        pi(y + e_c) / pi(y) = P(m + 1) / P(m) * (m + 1) / (y_c + 1) * s_c(y) * L(y + e_c) / L(y),

    a path from y_0 to y_k, of n and n + k people, is as probable as the way back times

        P(n + k) / P(n) * prod_i (n + i) B(y_{i-1}) / D(y_i),    i = 1 ... k,

    which contains no P of a number between the ends. Paths up are accepted with this ratio, paths
    down with its inverse. Both are proposed equally often, so no other factor enters.
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
        change += _step(model, state, part, cls, sign)
        # the step of the way back: 1 / D(y_i), or 1 / B(y_i)
        ratio -= _tilt(model, state, part, -sign)
    if ratio < 0.0 and rng.random() >= math.exp(ratio):
        for _ in range(steps):  # the last one added, or the first one behind the list
            last = model.first[part] + state.people[part] - (1 if sign > 0 else 0)
            _step(model, state, part, state.occupant[last], -sign)
        return False
    state.density[0] += change
    return True


# Moves of two people.


@lean_step
def _trade(
    rng: Rng, model: ModelArrays, state: ChainState, slot: Index, other: Index, kind: Index
) -> bool:
    """Propose that two people exchange classes or attributes; return whether it was accepted.

    People who swap are of different parts: rows that hold both stay.  Those who exchange values are
    of one place: one-way sums stay.  Either move is its own reverse, and q cancels.
    """
    parts = (model.part[slot], model.part[other])
    old = (state.occupant[slot], state.occupant[other])
    a, b = old
    if kind == SWAP:
        a, b = b, a
    else:
        # Class = sum_m digit_m stride_m: each digit is exchanged with probability 1/2
        for m in range(model.bins.size):
            if rng.random() < 0.5:
                digit_a = old[0] // model.stride[m] % model.bins[m]
                digit_b = old[1] // model.stride[m] % model.bins[m]
                a += (digit_b - digit_a) * model.stride[m]
                b += (digit_a - digit_b) * model.stride[m]
    new = (a, b)
    if a == old[0] or (a == old[1] and parts[0] == parts[1]):
        return True
    if model.mass[model.law[parts[0]], a] == 0.0 or model.mass[model.law[parts[1]], b] == 0.0:
        return False
    # P(x') / P(x): first 1 / s_c, or 1 / (a_c + x_c - 1), of the old classes, then the new ones
    ratio = 0.0
    for i in range(2):
        state.x[parts[i], old[i]] -= 1
        count = state.x[parts[i], old[i]]
        ratio -= math.log(weight(model, model.law[parts[i]], old[i], count))
    for i in range(2):
        count = state.x[parts[i], new[i]]
        ratio += math.log(weight(model, model.law[parts[i]], new[i], count))
        state.x[parts[i], new[i]] += 1
    # L(x') / L(x), one person after the other where rows are shared: a sum that stays may be
    # impossible in between only
    partner = (parts[1], parts[0]) if kind == SWAP else (np.int64(-1), np.int64(-1))
    change = _reassign_delta(model, state, parts[0], old[0], a, partner[0])
    shift_rows(model, state, parts[0], old[0], -1, partner[0])
    shift_rows(model, state, parts[0], a, 1, partner[0])
    change += _reassign_delta(model, state, parts[1], old[1], b, partner[1])
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        shift_rows(model, state, parts[0], a, -1, partner[0])
        shift_rows(model, state, parts[0], old[0], 1, partner[0])
        for i in range(2):
            state.x[parts[i], old[i]] += 1
            state.x[parts[i], new[i]] -= 1
        return False
    shift_rows(model, state, parts[1], old[1], -1, partner[1])
    shift_rows(model, state, parts[1], b, 1, partner[1])
    state.occupant[slot], state.occupant[other] = new
    state.density[0] += change
    return True


# Sweeps: which move is proposed to whom.


@lean_step
def _propose(rng: Rng, model: ModelArrays, state: ChainState, kind: Index, slots: IntArray) -> bool:
    """Make one proposal of a kind to a random slot or person; return whether it was accepted."""
    # Where numbers of people stay, every person is equally likely; where one goes into a slot or
    # out of it every slot is, so that q is as in the moves
    stay = kind not in (MOVE, BIRTH, LEAP)
    slot, part, occupied = np.int64(0), np.int64(0), False
    for _ in range(_TRIES if stay and not slots.size else 1):
        slot = np.int64(rng.random() * (slots.size if slots.size else model.part.size))
        if slots.size:
            slot = slots[slot]
        part = model.part[slot]
        occupied = slot - model.first[part] < state.people[part]
        if occupied:
            break
    if not stay and slots.size:
        kind = BIRTH
    if kind in (BIRTH, LEAP):
        if not model.open[part]:
            return False
        return _resize(rng, model, state, slot) if kind == BIRTH else _leap(rng, model, state, part)
    if not occupied:
        return False
    if kind == REDRAW:
        return _redraw(rng, model, state, slot)
    if kind == EXCHANGE:  # with another person of the place, all equally likely
        last = model.last_part[part]
        n = model.first[last] - model.home[part] + state.people[last]
        other = model.home[part] + np.int64(rng.random() * n)
        return bool(other != slot) and _trade(rng, model, state, slot, other, kind)
    # The other slot is mostly of the area around the part, where larger tables change less
    start, end = np.int64(0), np.int64(model.part.size)
    if rng.random() < _NEARBY:
        start, end = model.area[0, part], model.area[1, part]
    other = start + np.int64(rng.random() * (end - start))
    target = model.part[other]
    met = other - model.first[target] < state.people[target]
    if target == part or met != (kind == SWAP):
        return False
    if kind == SWAP:
        return _trade(rng, model, state, slot, other, kind)
    return _move(rng, model, state, slot, target)


@lean_kernel
def sweep(
    rng: Rng,
    model: ModelArrays,
    state: ChainState,
    proposals: int,
    slots: IntArray,
    counts: IntArray,
    density: FloatArray,
) -> None:
    """Make ``proposals`` proposals before each draw, and store its counts and log-likelihood.

    ``counts`` has the shape (draws, parts, classes), without parts that no question needs.
    Proposals are made to all people, or to those whose first person or free slot is in ``slots``.
    From some slots nobody moves to another part: the reverse step would begin in a slot that may be
    outside ``slots``. Every other step and its reverse begin in the same slot, or in equally many.
    """
    for d in range(density.size):
        for _ in range(proposals if model.part.size else 0):
            # The kind of a move, from the cumulative probabilities ``chance``
            u, kind = rng.random(), 0
            while u >= model.chance[kind]:
                kind += 1
            accepted = _propose(rng, model, state, kind, slots)
            if slots.size == 0:
                state.tally[kind, 0] += 1
                state.tally[kind, 1] += accepted
        density[d] = state.density[0]
        for p in range(counts.shape[1]):
            for c in range(counts.shape[2]):
                counts[d, p, c] = state.x[p, c]

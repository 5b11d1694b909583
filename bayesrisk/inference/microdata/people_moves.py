"""The moves of a chain over lists of people: what is proposed, and when it is taken.

A step changes one person or two; it is taken by its change of the likelihood and of the prior of
the list.  Nothing here checks its arguments.
"""

import math
from typing import Any

import numpy as np

from bayesrisk._numba import lean_kernel
from bayesrisk.inference.microdata.people_model import (
    BIRTH,
    EXCHANGE,
    LEAP,
    MOVE,
    REDRAW,
    Model,
    State,
    add,
    apply,
    turn,
    turned,
)

_TRIES = 16  # random slots, to find a person
_NEAR = 0.8  # how often the other slot is of the area around a part


@lean_kernel
def _draw_share(rng: Any, of: Any, law: Any) -> Any:
    """Draw a class from the shares."""
    u = rng.random() * of.keep.shape[1]
    i = np.int64(u)
    if u - i < of.keep[law, i]:
        return i
    chosen: int = of.alias[law, i]
    return chosen


@lean_kernel
def _predict(rng: Any, of: Any, at: Any, part: Any, without: Any) -> Any:
    """Draw a class of one more person of a part, the person in slot ``without`` (or -1) apart."""
    law = of.law[part]
    a = of.concentration[law]
    if a == 0.0:
        return _draw_share(rng, of, law)
    others = at.people[part] - (1 if without >= 0 else 0)
    if rng.random() * (a + others) < a:
        return _draw_share(rng, of, law)
    slot = of.first[part] + np.int64(rng.random() * others)
    if without >= 0 and slot >= without:
        slot += 1
    chosen: int = at.who[slot]
    return chosen


@lean_kernel
def _weight(of: Any, law: Any, cls: Any, count: Any) -> float:
    """Return the factor that one more person of a class brings to the prior of a list."""
    if of.concentration[law] == 0.0:
        weight: float = of.mass[law, cls]
        return weight
    more: float = of.mass[law, cls] + count
    return more


@lean_kernel
def _redraw(rng: Any, of: Any, at: Any, slot: Any) -> bool:
    """Give a person a class that its place predicts."""
    part, old = of.part_of[slot], at.who[slot]
    new = _predict(rng, of, at, part, slot)
    if new == old:
        return True
    change = 0.0
    for level in range(of.base.shape[0]):
        change += turn(of, at, level, part, old, new)
    if change < 0.0 and rng.random() >= math.exp(change):
        return False
    for level in range(of.base.shape[0]):
        turned(of, at, level, part, old, new)
    at.who[slot] = new
    at.x[part, old] -= 1
    at.x[part, new] += 1
    at.density[0] += change
    return True


@lean_kernel
def _leave(of: Any, at: Any, slot: Any) -> None:
    """Take a person out of the list of its part."""
    part = of.part_of[slot]
    at.x[part, at.who[slot]] -= 1
    at.people[part] -= 1
    at.who[slot] = at.who[of.first[part] + at.people[part]]


@lean_kernel
def _join(of: Any, at: Any, part: Any, cls: Any) -> None:
    at.who[of.first[part] + at.people[part]] = cls
    at.x[part, cls] += 1
    at.people[part] += 1


@lean_kernel
def _resize(of: Any, part: Any, n: Any, by: Any) -> float:
    """Return the change of the log prior of the number of people of a part."""
    at = of.size_ptr[part] + n
    change: float = of.log_size[at + by] - of.log_size[at]
    return change


@lean_kernel
def _move(rng: Any, of: Any, at: Any, slot: Any, to: Any) -> bool:
    """Move a person, class and all, to another part that has a free slot."""
    here, cls = of.part_of[slot], at.who[slot]
    if not (of.open[here] and of.open[to]) or of.mass[of.law[to], cls] == 0.0:
        return False
    n, m = at.people[here], at.people[to]
    room, free = of.first[here + 1] - of.first[here] - n, of.first[to + 1] - of.first[to] - m
    ratio = _resize(of, here, n, -1) + _resize(of, to, m, 1)
    ratio += math.log((m + 1) * (room + 1) / (n * free))
    ratio += math.log(
        _weight(of, of.law[to], cls, at.x[to, cls])
        / _weight(of, of.law[here], cls, at.x[here, cls] - 1)
    )
    if of.concentration[of.law[here]] > 0.0:
        ratio += math.log(
            (of.concentration[of.law[here]] + n - 1) / (of.concentration[of.law[to]] + m)
        )
    change = 0.0
    for level in range(of.base.shape[0]):
        if of.base[level, here] != of.base[level, to]:
            change += add(of, at, level, here, cls, -1)
            change += add(of, at, level, to, cls, 1)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        for level in range(of.base.shape[0]):
            if of.base[level, here] != of.base[level, to]:
                apply(of, at, level, here, cls, 1)
                apply(of, at, level, to, cls, -1)
        return False
    _leave(of, at, slot)
    _join(of, at, to, cls)
    at.density[0] += change
    return True


@lean_kernel
def _birth(rng: Any, of: Any, at: Any, part: Any) -> bool:
    """Let a predicted person come into a free slot."""
    n = at.people[part]
    free = of.first[part + 1] - of.first[part] - n
    cls = _predict(rng, of, at, part, -1)
    change = 0.0
    for level in range(of.base.shape[0]):
        change += add(of, at, level, part, cls, 1)
    ratio = _resize(of, part, n, 1) + math.log((n + 1) / free)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        for level in range(of.base.shape[0]):
            apply(of, at, level, part, cls, -1)
        return False
    _join(of, at, part, cls)
    at.density[0] += change
    return True


@lean_kernel
def _death(rng: Any, of: Any, at: Any, slot: Any) -> bool:
    """Let a person go."""
    part, cls = of.part_of[slot], at.who[slot]
    n = at.people[part]
    free = of.first[part + 1] - of.first[part] - n
    change = 0.0
    for level in range(of.base.shape[0]):
        change += add(of, at, level, part, cls, -1)
    ratio = _resize(of, part, n, -1) + math.log((free + 1) / n)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        for level in range(of.base.shape[0]):
            apply(of, at, level, part, cls, 1)
        return False
    _leave(of, at, slot)
    at.density[0] += change
    return True


@lean_kernel
def _tilted(of: Any, at: Any, part: Any, by: Any) -> float:
    """Fill ``work`` with cumulative weights of who comes (by 1) or goes (by -1); return a log sum.

    A class that comes weighs what its place predicts, one that goes the number of its people, each
    times the square root of the ratio of the likelihoods.  ``work`` ends with the sum relative to
    the largest weight, the logarithm that is returned with the sum itself.
    """
    best = -math.inf
    a = of.concentration[of.law[part]]
    for cls in range(at.work.size):
        weight = float(at.x[part, cls])
        if by > 0:
            weight = _weight(of, of.law[part], cls, at.x[part, cls])
            weight = weight / (a + at.people[part]) if a > 0.0 else weight
        if weight > 0.0:
            change = 0.0
            for level in range(of.base.shape[0]):
                base = of.base[level, part]
                for k in range(of.cell.shape[2]):
                    c = of.cell[level, cls, k]
                    if c >= 0:
                        old = at.spot[base + c]
                        change += of.table[old + by * of.coef[level, cls, k]] - of.table[old]
            weight = math.log(weight) + 0.5 * change
            best = max(best, weight)
        else:
            weight = -math.inf
        at.work[cls] = weight
    total = 0.0
    for cls in range(at.work.size):
        total += math.exp(at.work[cls] - best)
        at.work[cls] = total
    return best + math.log(total)


@lean_kernel
def _put_in(of: Any, at: Any, part: Any, cls: Any) -> float:
    """Let a person of a class come; return the change of the likelihood."""
    change = 0.0
    for level in range(of.base.shape[0]):
        change += add(of, at, level, part, cls, 1)
    _join(of, at, part, cls)
    return change


@lean_kernel
def _take_out(of: Any, at: Any, part: Any, cls: Any) -> float:
    """Let a person of a class go, whose class is kept behind the others; return the change."""
    change = 0.0
    for level in range(of.base.shape[0]):
        change += add(of, at, level, part, cls, -1)
    slot = of.first[part] + at.people[part] - 1
    while at.who[slot] != cls:
        slot -= 1
    _leave(of, at, slot)
    at.who[of.first[part] + at.people[part]] = cls
    return change


@lean_kernel
def _leap(rng: Any, of: Any, at: Any, part: Any) -> bool:
    """Let many people come or go, one after another: over numbers that are impossible.

    Of m people with the counts y, class c comes with probability b_c(y) / B(y) and goes with
    d_c(y) / D(y), where B and D are the sums of b_c = s_c(y) (L(y + e_c) / L(y))**(1/2) and
    d_c = y_c (L(y - e_c) / L(y))**(1/2), with the share s_c that is predicted.  Since

        pi(y + e_c) / pi(y) = P(m + 1) / P(m) * (m + 1) / (y_c + 1) * s_c(y) * L(y + e_c) / L(y),

    a path from y_0 to y_k, of n and n + k people, is as probable as the way back times

        P(n + k) / P(n) * prod_i (n + i) B(y_{i-1}) / D(y_i),    i = 1 ... k,

    in which nothing of P between the ends is left.  Paths up are taken by this, paths down by its
    inverse; as many people come as go, so that nothing else enters.
    """
    u, k = rng.random(), 0
    while k < of.leap.size - 1 and u >= of.leap_chance[k]:
        k += 1
    by = 1 if rng.random() < 0.5 else -1
    n, steps = at.people[part], of.leap[k]
    to = n + by * steps
    if to < 0 or to > of.first[part + 1] - of.first[part]:
        return False
    ratio = of.log_size[of.size_ptr[part] + to] - of.log_size[of.size_ptr[part] + n]
    if ratio == -math.inf:
        return False
    change = 0.0
    for _ in range(steps):
        ratio += by * math.log(max(at.people[part], at.people[part] + by))
        ratio += _tilted(of, at, part, by)
        u = rng.random() * at.work[-1]
        cls = 0
        while at.work[cls] <= u:
            cls += 1
        change += _put_in(of, at, part, cls) if by > 0 else _take_out(of, at, part, cls)
        ratio -= _tilted(of, at, part, -by)
    if ratio < 0.0 and rng.random() >= math.exp(ratio):
        for _ in range(steps):
            end = of.first[part] + at.people[part]
            if by > 0:
                _take_out(of, at, part, at.who[end - 1])
            else:
                _put_in(of, at, part, at.who[end])
        return False
    at.density[0] += change
    return True


@lean_kernel
def _prior_step(of: Any, at: Any, part: Any, cls: Any, by: Any) -> float:
    """Take a person of a class out of a part's counts, or put one in; return the log factor."""
    law = of.law[part]
    if by < 0:
        at.x[part, cls] -= 1
        return -math.log(_weight(of, law, cls, at.x[part, cls]))
    factor = math.log(_weight(of, law, cls, at.x[part, cls]))
    at.x[part, cls] += 1
    return factor


@lean_kernel
def _trade_prior(of: Any, at: Any, here: Any, there: Any, a: Any, b: Any, c: Any, d: Any) -> float:
    """Let a person a of one part be c, and b of another part d; return the log prior ratio."""
    ratio = _prior_step(of, at, here, a, -1) + _prior_step(of, at, there, b, -1)
    ratio += _prior_step(of, at, here, c, 1) + _prior_step(of, at, there, d, 1)
    return ratio


@lean_kernel
def _trade_back(at: Any, here: Any, there: Any, a: Any, b: Any, c: Any, d: Any) -> None:
    at.x[here, a] += 1
    at.x[there, b] += 1
    at.x[here, c] -= 1
    at.x[there, d] -= 1


@lean_kernel
def _swap(rng: Any, of: Any, at: Any, one: Any, two: Any) -> bool:
    """Let two people of different parts change classes: rows of both places stay."""
    here, there = of.part_of[one], of.part_of[two]
    old, new = at.who[one], at.who[two]
    if old == new:
        return True
    if of.mass[of.law[here], new] == 0.0 or of.mass[of.law[there], old] == 0.0:
        return False
    change = 0.0
    for level in range(of.base.shape[0]):
        if of.base[level, here] != of.base[level, there]:
            change += turn(of, at, level, here, old, new)
            change += turn(of, at, level, there, new, old)
    ratio = _trade_prior(of, at, here, there, old, new, new, old)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        _trade_back(at, here, there, old, new, new, old)
        return False
    for level in range(of.base.shape[0]):
        if of.base[level, here] != of.base[level, there]:
            turned(of, at, level, here, old, new)
            turned(of, at, level, there, new, old)
    at.who[one], at.who[two] = new, old
    at.density[0] += change
    return True


@lean_kernel
def _exchange(rng: Any, of: Any, at: Any, one: Any, two: Any) -> bool:
    """Let two people of one place change the values of some attributes: one-way sums stay."""
    here, there = of.part_of[one], of.part_of[two]
    a, b = at.who[one], at.who[two]
    new_a, new_b = a, b
    for m in range(of.bins.size):
        if rng.random() < 0.5:
            digit_a, digit_b = a // of.stride[m] % of.bins[m], b // of.stride[m] % of.bins[m]
            new_a += (digit_b - digit_a) * of.stride[m]
            new_b += (digit_a - digit_b) * of.stride[m]
    if new_a == a or (new_a == b and here == there):
        return True
    if of.mass[of.law[here], new_a] == 0.0 or of.mass[of.law[there], new_b] == 0.0:
        return False
    ratio = _trade_prior(of, at, here, there, a, b, new_a, new_b)
    change = 0.0
    for level in range(of.base.shape[0]):  # row by row: a sum that stays may have no other weight
        change += turn(of, at, level, here, a, new_a)
        turned(of, at, level, here, a, new_a)
        change += turn(of, at, level, there, b, new_b)
        turned(of, at, level, there, b, new_b)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        for level in range(of.base.shape[0]):
            turned(of, at, level, here, new_a, a)
            turned(of, at, level, there, new_b, b)
        _trade_back(at, here, there, a, b, new_a, new_b)
        return False
    at.who[one], at.who[two] = new_a, new_b
    at.density[0] += change
    return True


@lean_kernel
def _somebody(rng: Any, of: Any, at: Any) -> Any:
    """Return the slot of a random person, or -1 if several tries found empty ones only."""
    for _ in range(_TRIES):
        slot = np.int64(rng.random() * of.part_of.size)
        part = of.part_of[slot]
        if slot - of.first[part] < at.people[part]:
            return slot
    return np.int64(-1)


@lean_kernel
def _elsewhere(rng: Any, of: Any, part: Any) -> Any:
    """Return a random slot: mostly of the area around a part, where larger tables change less."""
    start, end = 0, of.part_of.size
    if rng.random() < _NEAR:
        start, end = of.near[0, part], of.near[1, part]
    return start + np.int64(rng.random() * (end - start))


@lean_kernel
def _pair(rng: Any, of: Any, at: Any, one: Any, kind: Any) -> bool:
    """Let somebody and another person swap classes, or exchange attributes."""
    part = of.part_of[one]
    if kind == EXCHANGE:  # with another person of the place
        rest = of.rest[part]
        n = of.first[rest] - of.home[part] + at.people[rest]
        two = of.home[part] + np.int64(rng.random() * n)
        return two != one and _exchange(rng, of, at, one, two)
    two = _elsewhere(rng, of, part)
    to = of.part_of[two]
    return to != part and two - of.first[to] < at.people[to] and _swap(rng, of, at, one, two)


@lean_kernel
def _of_two(rng: Any, of: Any, at: Any, kind: Any) -> bool:
    """Make a proposal that changes nobody's coming or going; everybody is as likely to be asked."""
    one = _somebody(rng, of, at)
    if one < 0:
        return False
    return _redraw(rng, of, at, one) if kind == REDRAW else _pair(rng, of, at, one, kind)


@lean_kernel
def go(rng: Any, of: Model, at: State, proposals: int) -> None:
    """Make so many proposals."""
    slots = of.part_of.size
    if slots == 0:
        return
    for _ in range(proposals):
        u = rng.random()
        kind = 0
        while u >= of.chance[kind]:
            kind += 1
        accepted = False
        if kind in (MOVE, BIRTH, LEAP):  # into a slot or out of it, all as likely
            one = np.int64(rng.random() * slots)
            part = of.part_of[one]
            taken = one - of.first[part] < at.people[part]
            if kind == BIRTH:
                if of.open[part]:
                    accepted = _death(rng, of, at, one) if taken else _birth(rng, of, at, part)
            elif kind == LEAP:
                accepted = of.open[part] and _leap(rng, of, at, part)
            elif taken:
                two = _elsewhere(rng, of, part)
                to = of.part_of[two]
                if to != part and two - of.first[to] >= at.people[to]:
                    accepted = _move(rng, of, at, one, to)
        else:
            accepted = _of_two(rng, of, at, kind)
        at.tally[kind, 0] += 1
        at.tally[kind, 1] += accepted


@lean_kernel
def stay(rng: Any, of: Model, at: State, slots: Any, proposals: int) -> None:
    """Make so many proposals of which the first person, or who comes, is in one of some slots.

    Nobody moves to another part: the step back would begin in a slot that may not be one of these.
    Every other step and its reverse begin in the same slot, or in equally many.
    """
    for _ in range(proposals):
        u = rng.random()
        kind = 0
        while u >= of.chance[kind]:
            kind += 1
        one = slots[np.int64(rng.random() * slots.size)]
        part = of.part_of[one]
        taken = one - of.first[part] < at.people[part]
        if kind in (MOVE, BIRTH, LEAP):
            if of.open[part]:
                _ = _death(rng, of, at, one) if taken else _birth(rng, of, at, part)
        elif taken:
            if kind == REDRAW:
                _redraw(rng, of, at, one)
            else:
                _pair(rng, of, at, one, kind)

"""A chain over lists of people: one person, or two, change at a time.

Every finest place has slots, some of them empty; an occupied slot holds the class of a person.
The prior of the list of one place is that of its counts, divided over the orders of the list.  A
*level* is a layer of rows: row ``base[level, place] + q`` is the q-th published cell of the place
at that level in which a finest place lies, and ``ptr, q, coef`` list the cells of every class.
The log likelihood of a sum s of row r stands at ``table[off[r] + s]``.

Nothing here checks its arguments.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk._types import FloatArray, IntArray

REDRAW, MOVE, BIRTH, SWAP, EXCHANGE = range(5)
KINDS = ("redraw", "move", "birth or death", "swap", "exchange")


class Model(NamedTuple):
    """What does not change."""

    base: IntArray  # (levels, places)
    ptr: IntArray  # (levels, classes + 1)
    q: IntArray
    coef: IntArray
    off: IntArray
    table: FloatArray
    slot_place: IntArray  # place of every slot
    first: IntArray  # first slot of every place, and the end
    log_size: FloatArray  # log P(n) of one place
    mass: FloatArray  # share or Dirichlet parameter of every class
    alias: IntArray  # Walker's tables of the shares
    keep: FloatArray
    concentration: float  # 0: known shares
    stride: IntArray  # classes are C-ordered bins of attributes
    bins: IntArray
    chance: FloatArray  # cumulative probabilities of the kinds of move


class State(NamedTuple):
    """What does."""

    who: IntArray  # class in every slot, occupied ones of a place first
    people: IntArray  # in every place
    x: IntArray  # (places, classes)
    sums: IntArray  # of every row
    tally: IntArray  # (kinds, 2): proposed, accepted
    density: FloatArray  # log likelihood, so far


@kernel
def _part(of: Any, at: Any, level: Any, place: Any, cls: Any, by: Any) -> float:
    """Add a class to the rows of one place at one level; return the change of the likelihood."""
    change = 0.0
    base, off, table, sums = of.base[level, place], of.off, of.table, at.sums
    for k in range(of.ptr[level, cls], of.ptr[level, cls + 1]):
        r = base + of.q[k]
        old = off[r] + sums[r]
        step = by * of.coef[k]
        change += table[old + step] - table[old]
        sums[r] += step
    return change


@kernel
def _turn(of: Any, at: Any, level: Any, place: Any, old: Any, new: Any) -> float:
    """Return the change of the likelihood if one person of a place has another class.

    The rows of a class stand in order, so that rows of both are seen and passed over.
    """
    change = 0.0
    base, off, table, sums, q, coef = (
        of.base[level, place],
        of.off,
        of.table,
        at.sums,
        of.q,
        of.coef,
    )
    i, i_end = of.ptr[level, old], of.ptr[level, old + 1]
    j, j_end = of.ptr[level, new], of.ptr[level, new + 1]
    while i < i_end or j < j_end:
        if j == j_end or (i < i_end and q[i] < q[j]):
            r, step = base + q[i], -coef[i]
            i += 1
        elif i == i_end or q[j] < q[i]:
            r, step = base + q[j], coef[j]
            j += 1
        else:
            r, step = base + q[i], coef[j] - coef[i]
            i += 1
            j += 1
            if step == 0:
                continue
        at_sum = off[r] + sums[r]
        change += table[at_sum + step] - table[at_sum]
    return change


@kernel
def _apply(of: Any, at: Any, level: Any, place: Any, cls: Any, by: Any) -> None:
    base = of.base[level, place]
    for k in range(of.ptr[level, cls], of.ptr[level, cls + 1]):
        at.sums[base + of.q[k]] += by * of.coef[k]


@kernel
def _draw_share(rng: Any, of: Any) -> Any:
    """Draw a class from the shares."""
    u = rng.random() * of.keep.size
    i = np.int64(u)
    if u - i < of.keep[i]:
        return i
    chosen: int = of.alias[i]
    return chosen


@kernel
def _predict(rng: Any, of: Any, at: Any, place: Any, without: Any) -> Any:
    """Draw a class of one more person of a place, the person in slot ``without`` (or -1) apart."""
    if of.concentration == 0.0:
        return _draw_share(rng, of)
    others = at.people[place] - (1 if without >= 0 else 0)
    if rng.random() * (of.concentration + others) < of.concentration:
        return _draw_share(rng, of)
    slot = of.first[place] + np.int64(rng.random() * others)
    if without >= 0 and slot >= without:
        slot += 1
    chosen: int = at.who[slot]
    return chosen


@kernel
def _weight(of: Any, cls: Any, count: Any) -> float:
    """Return the factor that one more person of a class brings to the prior of a list."""
    if of.concentration == 0.0:
        weight: float = of.mass[cls]
        return weight
    more: float = of.mass[cls] + count
    return more


@kernel
def _redraw(rng: Any, of: Any, at: Any, slot: Any) -> bool:
    """Give a person a class that its place predicts."""
    place, old = of.slot_place[slot], at.who[slot]
    new = _predict(rng, of, at, place, slot)
    if new == old:
        return True
    change = 0.0
    for level in range(of.base.shape[0]):
        change += _turn(of, at, level, place, old, new)
    if change < 0.0 and rng.random() >= math.exp(change):
        return False
    for level in range(of.base.shape[0]):
        _apply(of, at, level, place, old, -1)
        _apply(of, at, level, place, new, 1)
    at.who[slot] = new
    at.x[place, old] -= 1
    at.x[place, new] += 1
    at.density[0] += change
    return True


@kernel
def _leave(of: Any, at: Any, slot: Any) -> None:
    """Take a person out of the list of its place."""
    place = of.slot_place[slot]
    at.x[place, at.who[slot]] -= 1
    at.people[place] -= 1
    at.who[slot] = at.who[of.first[place] + at.people[place]]


@kernel
def _join(of: Any, at: Any, place: Any, cls: Any) -> None:
    at.who[of.first[place] + at.people[place]] = cls
    at.x[place, cls] += 1
    at.people[place] += 1


@kernel
def _move(rng: Any, of: Any, at: Any, slot: Any, to: Any) -> bool:
    """Move a person, class and all, to another place that has a free slot."""
    here, cls = of.slot_place[slot], at.who[slot]
    n, m = at.people[here], at.people[to]
    room, free = of.first[here + 1] - of.first[here] - n, of.first[to + 1] - of.first[to] - m
    ratio = of.log_size[n - 1] + of.log_size[m + 1] - of.log_size[n] - of.log_size[m]
    ratio += math.log((m + 1) * (room + 1) / (n * free))
    if of.concentration > 0.0:
        a = of.concentration
        ratio += math.log((a + n - 1) / (a + m))
        ratio += math.log((of.mass[cls] + at.x[to, cls]) / (of.mass[cls] + at.x[here, cls] - 1))
    change = 0.0
    for level in range(of.base.shape[0]):
        if of.base[level, here] != of.base[level, to]:
            change += _part(of, at, level, here, cls, -1)
            change += _part(of, at, level, to, cls, 1)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        for level in range(of.base.shape[0]):
            if of.base[level, here] != of.base[level, to]:
                _apply(of, at, level, here, cls, 1)
                _apply(of, at, level, to, cls, -1)
        return False
    _leave(of, at, slot)
    _join(of, at, to, cls)
    at.density[0] += change
    return True


@kernel
def _birth(rng: Any, of: Any, at: Any, place: Any) -> bool:
    """Let a predicted person come into a free slot."""
    n = at.people[place]
    free = of.first[place + 1] - of.first[place] - n
    cls = _predict(rng, of, at, place, -1)
    change = 0.0
    for level in range(of.base.shape[0]):
        change += _part(of, at, level, place, cls, 1)
    ratio = of.log_size[n + 1] - of.log_size[n] + math.log((n + 1) / free)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        for level in range(of.base.shape[0]):
            _apply(of, at, level, place, cls, -1)
        return False
    _join(of, at, place, cls)
    at.density[0] += change
    return True


@kernel
def _death(rng: Any, of: Any, at: Any, slot: Any) -> bool:
    """Let a person go."""
    place, cls = of.slot_place[slot], at.who[slot]
    n = at.people[place]
    free = of.first[place + 1] - of.first[place] - n
    change = 0.0
    for level in range(of.base.shape[0]):
        change += _part(of, at, level, place, cls, -1)
    ratio = of.log_size[n - 1] - of.log_size[n] + math.log((free + 1) / n)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        for level in range(of.base.shape[0]):
            _apply(of, at, level, place, cls, 1)
        return False
    _leave(of, at, slot)
    at.density[0] += change
    return True


@kernel
def _prior_step(of: Any, at: Any, place: Any, cls: Any, by: Any) -> float:
    """Take a person of a class out of a place's counts, or put one in; return the log factor."""
    if by < 0:
        at.x[place, cls] -= 1
        return -math.log(_weight(of, cls, at.x[place, cls]))
    factor = math.log(_weight(of, cls, at.x[place, cls]))
    at.x[place, cls] += 1
    return factor


@kernel
def _swap(rng: Any, of: Any, at: Any, one: Any, two: Any) -> bool:
    """Let two people of different places change classes: rows of both places stay."""
    here, there = of.slot_place[one], of.slot_place[two]
    old, new = at.who[one], at.who[two]
    if old == new:
        return True
    change = 0.0
    for level in range(of.base.shape[0]):
        if of.base[level, here] != of.base[level, there]:
            change += _turn(of, at, level, here, old, new)
            change += _turn(of, at, level, there, new, old)
    ratio = _prior_step(of, at, here, old, -1) + _prior_step(of, at, here, new, 1)
    ratio += _prior_step(of, at, there, new, -1) + _prior_step(of, at, there, old, 1)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        at.x[here, old] += 1
        at.x[here, new] -= 1
        at.x[there, new] += 1
        at.x[there, old] -= 1
        return False
    for level in range(of.base.shape[0]):
        if of.base[level, here] != of.base[level, there]:
            _apply(of, at, level, here, old, -1)
            _apply(of, at, level, here, new, 1)
            _apply(of, at, level, there, new, -1)
            _apply(of, at, level, there, old, 1)
    at.who[one], at.who[two] = new, old
    at.density[0] += change
    return True


@kernel
def _exchange(rng: Any, of: Any, at: Any, one: Any, two: Any) -> bool:
    """Let two people of one place change the values of some attributes: one-way sums stay."""
    place = of.slot_place[one]
    a, b = at.who[one], at.who[two]
    new_a, new_b = a, b
    for m in range(of.bins.size):
        if rng.random() < 0.5:
            digit_a, digit_b = a // of.stride[m] % of.bins[m], b // of.stride[m] % of.bins[m]
            new_a += (digit_b - digit_a) * of.stride[m]
            new_b += (digit_a - digit_b) * of.stride[m]
    if new_a in (a, b):
        return True
    if of.mass[new_a] == 0.0 or of.mass[new_b] == 0.0:
        return False
    ratio = _prior_step(of, at, place, a, -1) + _prior_step(of, at, place, b, -1)
    ratio += _prior_step(of, at, place, new_a, 1) + _prior_step(of, at, place, new_b, 1)
    change = 0.0
    for level in range(of.base.shape[0]):
        change += _part(of, at, level, place, a, -1) + _part(of, at, level, place, new_a, 1)
        change += _part(of, at, level, place, b, -1) + _part(of, at, level, place, new_b, 1)
    if ratio + change < 0.0 and rng.random() >= math.exp(ratio + change):
        for level in range(of.base.shape[0]):
            _apply(of, at, level, place, a, 1)
            _apply(of, at, level, place, new_a, -1)
            _apply(of, at, level, place, b, 1)
            _apply(of, at, level, place, new_b, -1)
        at.x[place, a] += 1
        at.x[place, b] += 1
        at.x[place, new_a] -= 1
        at.x[place, new_b] -= 1
        return False
    at.who[one], at.who[two] = new_a, new_b
    at.density[0] += change
    return True


@kernel
def go(rng: Any, of: Model, at: State, proposals: int) -> None:
    """Make so many proposals."""
    slots = of.slot_place.size
    if slots == 0:
        return
    for _ in range(proposals):
        u = rng.random()
        kind = 0
        while u >= of.chance[kind]:
            kind += 1
        one = np.int64(rng.random() * slots)
        place = of.slot_place[one]
        taken = one - of.first[place] < at.people[place]
        accepted = False
        if kind == REDRAW:
            if taken:
                accepted = _redraw(rng, of, at, one)
        elif kind == BIRTH:
            accepted = _death(rng, of, at, one) if taken else _birth(rng, of, at, place)
        elif taken:
            if kind == EXCHANGE:  # with another person of the place
                n = at.people[place]
                two = of.first[place] + np.int64(rng.random() * n)
                if two != one:
                    accepted = _exchange(rng, of, at, one, two)
            else:
                two = np.int64(rng.random() * slots)
                to = of.slot_place[two]
                both = two - of.first[to] < at.people[to]
                if to != place and both == (kind == SWAP):
                    accepted = _swap(rng, of, at, one, two) if both else _move(rng, of, at, one, to)
        at.tally[kind, 0] += 1
        at.tally[kind, 1] += accepted

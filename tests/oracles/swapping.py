"""What swapped tables of several places say together: every data set under every exchange.

One swap-key class: people of a few places, of value 0 or 1, in which so many pairs change places.
A pair is a person drawn from all who have not moved yet, and a partner drawn from those of them in
other places.  The target is the first person of the first place.  The prior of every place is a
beta-binomial law: mean ``share`` of value 1, concentration ``a``.
"""

import itertools
import math


def exchanges(sizes, pairs):
    """Yield every sequence of pairs as (probability, place of everybody afterwards)."""
    start = [place for place, n in enumerate(sizes) for _ in range(n)]

    def go(left, moved, now, weight):
        free = [i for i in range(len(now)) if i not in moved]
        partners = {i: [j for j in free if start[j] != start[i]] for i in free}
        able = [i for i in free if partners[i]]
        if not left or not able:
            yield weight, tuple(now)
            return
        for i in able:
            others = partners[i]
            for j in others:
                then = list(now)
                then[i], then[j] = start[j], start[i]
                yield from go(left - 1, moved | {i, j}, then, weight / len(able) / len(others))

    yield from go(pairs, frozenset(), start, 1.0)


def data_set(values, sizes, share, a):
    """Return the prior probability of everybody's value, places being independent."""
    weight, at = 1.0, 0
    for n in sizes:
        ones = zeros = 0
        for value in values[at : at + n]:
            part = a * share + ones if value else a * (1 - share) + zeros
            weight *= part / (a + ones + zeros)
            ones, zeros = ones + value, zeros + 1 - value
        at += n
    return weight


def joint_by_listing(sizes, pairs, share, a):
    """Return {published numbers of value 1: [P(and the target is 0), P(and it is 1)]}."""
    where = {}
    for weight, now in exchanges(sizes, pairs):
        where[now] = where.get(now, 0.0) + weight
    found = {}
    for values in itertools.product((0, 1), repeat=sum(sizes)):
        prior = data_set(values, sizes, share, a)
        for now, weight in where.items():
            seen = [0] * len(sizes)
            for place, value in zip(now, values, strict=True):
                seen[place] += value
            found.setdefault(tuple(seen), [0.0, 0.0])[values[0]] += prior * weight
    return found


def flows(sizes, pairs):
    """Return {(who moved from where to where, where the target is): probability}.

    People of one place are alike but for the target, so that numbers are enough.
    """
    count = len(sizes)
    still = tuple(0 for _ in range(count * count))
    law = {(still, 0): 1.0}
    for _ in range(pairs):
        after = {}
        for (flow, target), weight in law.items():
            free = [n - sum(flow[a * count : (a + 1) * count]) for a, n in enumerate(sizes)]
            able = [free[a] if sum(free) > free[a] else 0 for a in range(count)]
            if not sum(able):
                after[flow, target] = after.get((flow, target), 0.0) + weight
                continue
            for a, b in itertools.permutations(range(count), 2):
                if not able[a] or not free[b]:
                    continue
                chance = weight * able[a] / sum(able) * free[b] / (sum(free) - free[a])
                then = list(flow)
                then[a * count + b] += 1
                then[b * count + a] += 1
                # Of the free people of the first place one is the target, if it has not moved.
                mine = {a: b, b: a}.get(0) if target == 0 else None
                parts = [(target, 1.0)]
                if mine is not None:
                    parts = [(mine, 1 / free[0]), (0, 1 - 1 / free[0])]
                for to, part in parts:
                    if part:
                        key = tuple(then), to
                        after[key] = after.get(key, 0.0) + chance * part
        law = after
    return law


def joint(sizes, pairs, share, a):
    """Return the same as :func:`joint_by_listing`, by numbers of people."""
    count, found = len(sizes), {}
    for (flow, target), weight in flows(sizes, pairs).items():
        parts = {tuple([0] * count): [weight, 0.0]}
        for place, n in enumerate(sizes):
            out = list(flow[place * count : (place + 1) * count])
            out[place] = n - sum(out)
            own = 1 if place == 0 else 0
            after = {}
            for split in itertools.product(*(range(g + 1) for g in out)):
                ones = sum(split)
                prior = rising(a * share, ones) * rising(a * (1 - share), n - ones) / rising(a, n)
                ways = math.prod(math.comb(g, k) for g, k in zip(out, split, strict=True))
                # Of the group that the target is in, as many as are of value 1 are it.
                chance = split[target] / out[target] if own else 0.0
                for seen, (zero, one) in parts.items():
                    key = tuple(s + k for s, k in zip(seen, split, strict=True))
                    into = after.setdefault(key, [0.0, 0.0])
                    if own:
                        into[0] += zero * prior * ways * (1 - chance)
                        into[1] += zero * prior * ways * chance
                    else:
                        into[0] += zero * prior * ways
                        into[1] += one * prior * ways
            parts = after
        for seen, pair in parts.items():
            into = found.setdefault(seen, [0.0, 0.0])
            into[0] += pair[0]
            into[1] += pair[1]
    return found


def joint_of_many(n, rate, share, a):
    """Return the law for one place of very many: those who come are drawn from the composition."""
    found = {}
    for moved in range(n + 1):
        chance = math.comb(n, moved) * rate**moved * (1 - rate) ** (n - moved)
        for stayed, gone, come in itertools.product(
            range(n - moved + 1), range(moved + 1), range(moved + 1)
        ):
            ones = stayed + gone
            weight = rising(a * share, ones) * rising(a * (1 - share), n - ones) / rising(a, n)
            weight *= math.comb(n - moved, stayed) * math.comb(moved, gone)
            weight *= math.comb(moved, come) * share**come * (1 - share) ** (moved - come)
            into = found.setdefault((stayed + come,), [0.0, 0.0])
            # Everybody is as likely the target, whether moved or not.
            into[0] += chance * weight * (n - ones) / n
            into[1] += chance * weight * ones / n
    return found


def rising(x, n):
    return math.prod(x + i for i in range(n))


def swap_aware(seen, n, rate, share, a):
    """Return P(target is 1) of somebody who reads one place: the counts, or from elsewhere."""
    return rate * share + (1 - rate) * seen[0] / n


def as_true(seen, n, rate, share, a):
    """Return the same of somebody who takes the counts as true."""
    return seen[0] / n


def of_the_place(seen, n, rate, share, a):
    """Return the same of somebody to whom one who moved is like those who are counted there."""
    return rate * (a * share + seen[0]) / (a + n) + (1 - rate) * seen[0] / n


def loss(law, belief):
    """Return what a reader of one place loses against the law of all places, exactly.

    Expected log score; expected probability of the truth, of the law and of the reader; mean
    absolute difference of the two probabilities; and how much more the reader promises for what it
    holds more probable than not than is true.
    """
    lost = exact = mine = apart = promised = 0.0
    for seen, (zero, one) in law.items():
        whole = zero + one
        if not whole:
            continue
        p, q = one / whole, belief(seen)
        for right, own, told in ((one, p, q), (zero, 1 - p, 1 - q)):
            if right:
                lost += right * (math.log(own) - math.log(told) if told else math.inf)
            exact, mine = exact + right * own, mine + right * told
            promised += whole * (told - own) if told > 0.5 else 0.0
        apart += whole * abs(p - q)
    return {"log": lost, "exact": exact, "mine": mine, "apart": apart, "promised": promised}

"""Slow, obvious twins of the occupancy attack: every household written down."""

from itertools import combinations_with_replacement, permutations, product

import numpy as np
import scipy.optimize as optimize

UNIT = 10_000
GROUP = [0, 1, 2, 3, 3, None, 4, 5, 5, 5, 5, 5, 5, 5]


def breach(rooms, size):
    return (rooms == 1 and size > 2) or (rooms == 2 and size > 4)


def largest(sizes, n_sub):
    people = sorted((x for x, c in enumerate(sizes, 1) for _ in range(c)), reverse=True)
    return sum(people[:n_sub])


def statistics_of(homes):
    """The published numbers of households (size, race, children, rooms, subsidised)."""
    sub = [h for h in homes if h[4]]
    return {
        "households": len(homes),
        "population": sum(h[0] for h in homes),
        "sizes": [sum(min(h[0], 7) == x for h in homes) for x in range(1, 8)],
        "race": [sum(h[1] == j for h in homes) for j in range(14)],
        "children": sum(h[2] for h in homes),
        "hud_households": len(sub),
        "hud_people": sum(h[0] for h in sub),
        "hud_race": [sum(GROUP[h[1]] == j for h in sub) for j in range(6)],
        "hud_children": [sum(h[2] > 0 for h in sub)] * 2,
        "hud_bedrooms": [sum(h[3] == k for h in sub) for k in (1, 2, 3)],
    }


def detect(s, *, adults, open_end, top):
    """Eq. 1 by listing every multiset of households (group, size, children); ``top`` is large."""
    sizes = (*range(1, 9), top) if open_end else range(1, 8)
    kinds = sorted({(g, x, c) for g in range(4) for x in sizes for c in (0, x - adults)})
    rows = np.array(
        [
            [1, g > 0, *[x == y for y in range(1, 7)], x, c, (g > 0) * x, (g > 0) * (c > 0)]
            + [g == k for k in (1, 2, 3)]
            + [breach(g, x)]
            for g, x, c in kinds
        ],
        dtype=int,
    )
    at = np.array(list(combinations_with_replacement(range(len(kinds)), s["households"])), int)
    sums = rows[at].sum(axis=1) if at.size else np.zeros((1, rows.shape[1]), int)
    hud = min(s["hud_people"], largest(s["sizes"], s["hud_households"]))
    good = sums[:, 1] == s["hud_households"]
    for x in range(1, 7):
        good &= sums[:, 1 + x] >= s["sizes"][x - 1]
    good &= (sums[:, 8] >= s["population"]) & (sums[:, 9] >= s["children"]) & (sums[:, 10] >= hud)
    good &= (sums[:, 11] >= s["hud_children"][0]) & (sums[:, 11] <= s["hud_children"][1])
    for k in range(3):
        good &= sums[:, 12 + k] >= s["hud_bedrooms"][k]
    if np.any(good & (sums[:, 15] == 0)):
        return "possible"
    return "violation" if good.any() else "infeasible"


def detect_by_program(s, *, adults):
    """Eq. 1 as one fresh program, presolve off: a household of 7 or more has 7 or very many."""
    many = s["population"] + s["children"] + s["hud_people"] + 10
    kinds = [(g, x, c) for g in range(4) for x in (*range(1, 8), many) for c in (0, 1)]
    kinds = [(g, x, c) for g, x, c in kinds if not (c and x <= adults)]
    n, sub = s["households"], s["hud_households"]
    hud = min(s["hud_people"], largest(s["sizes"], sub))
    rows, low, high = [], [], []

    def row(f, least, most):
        rows.append([f(*k) for k in kinds])
        low.append(least)
        high.append(most)

    row(lambda g, x, c: 1, n, n)
    row(lambda g, x, c: g > 0, sub, sub)
    for y in range(1, 7):
        row(lambda g, x, c, y=y: x == y, s["sizes"][y - 1], np.inf)
    row(lambda g, x, c: x, s["population"], np.inf)
    row(lambda g, x, c: c * (x - adults), s["children"], np.inf)
    row(lambda g, x, c: (g > 0) * x, hud, np.inf)
    row(lambda g, x, c: (g > 0) * c, *s["hud_children"])
    for k in (1, 2, 3):
        row(lambda g, x, c, k=k: g == k, s["hud_bedrooms"][k - 1], np.inf)

    def feasible(within):
        top = [0 if within and breach(g, x) else n for g, x, c in kinds]
        answer = optimize.milp(
            np.zeros(len(kinds)),
            constraints=optimize.LinearConstraint(np.array(rows, float), low, high),
            integrality=np.ones(len(kinds)),
            bounds=optimize.Bounds(0, top),
            options={"presolve": False},
        )
        assert answer.status in (0, 2)
        return answer.status == 0

    if feasible(True):
        return "possible"
    return "violation" if feasible(False) else "infeasible"


def assignments(s, kinds):
    """Every multiset of (kind, rooms) with the right number of households."""
    every = list(product(range(len(kinds)), range(4)))
    return every, np.array(
        list(combinations_with_replacement(range(len(every)), s["households"])), int
    )


def query_rows(kinds, every):
    """Rows of published numbers of each (kind, rooms)."""
    rows = []
    for i, rooms in every:
        size, race, children = kinds[i]
        sub = rooms > 0
        rows.append(
            [size == x for x in range(1, 8)]
            + [race == j for j in range(14)]
            + [size, children, sub, sub * size]
            + [sub and GROUP[race] == j for j in range(6)]
            + [sub and children > 0]
            + [rooms == k for k in (1, 2, 3)]
        )
    return np.array(rows, dtype=int)


def wanted(s):
    homes = [*s["sizes"], *s["race"], s["population"], s["children"]]
    subsidised = [s["hud_households"], s["hud_people"], *s["hud_race"], s["hud_children"][0]]
    return np.array([*homes, *subsidised, *s["hud_bedrooms"]])


def missed(s, sums):
    """Distance of every sum to the counts that its published number stands for."""
    low = wanted(s)
    high = low.copy()
    high[25:31] = s.get("hud_race_most", s["hud_race"])
    high[31] = s["hud_children"][1]
    high[32:] = s.get("hud_bedrooms_most", s["hud_bedrooms"])
    return np.maximum(low - sums, 0) + np.maximum(sums - high, 0)


def fits(s, sums, *, adults):
    """Whether sums of rows satisfy the published numbers, as Eq. 2 reads them."""
    people, children = s["population"], s["children"]
    hud = min(s["hud_people"], largest(s["sizes"], s["hud_households"]))
    large = s["households"] - sum(s["sizes"][:6])
    if large > 0:  # only a household that may be of 7 or more explains more than the sizes do
        sizes = [*s["sizes"][:6], large]
        people = min(people, largest(sizes, s["households"]))
        children = min(children, sum(min(x - adults, 6) * c for x, c in enumerate(sizes, 1)))
        hud = min(hud, largest(sizes, s["hud_households"]))
    good = np.all(sums[:, :6] >= s["sizes"][:6], axis=1)
    good &= np.all(sums[:, 7:21] >= s["race"], axis=1)
    good &= (sums[:, 21] >= people) & (sums[:, 22] >= children)
    good &= (sums[:, 23] == s["hud_households"]) & (sums[:, 24] >= hud)
    good &= np.all(sums[:, 25:31] >= s["hud_race"], axis=1)
    good &= (sums[:, 31] >= s["hud_children"][0]) & (sums[:, 31] <= s["hud_children"][1])
    return good & np.all(sums[:, 32:] >= s["hud_bedrooms"], axis=1)


def reconstruct(s, kinds, weight, *, error, adults):
    """Objective and kinds of every multiset, best first: (objective, sorted kinds, sums)."""
    every, at = assignments(s, kinds)
    rows = query_rows(kinds, every)
    sums = rows[at].sum(axis=1)
    kind = np.array([i for i, _ in every])[at]
    value = np.asarray(weight)[kind].sum(axis=1)
    if error == "none":
        good = fits(s, sums, adults=adults)
        at, kind, value = at[good], kind[good], value[good]
    else:
        off = missed(s, sums)
        value = value - UNIT * (off if error == "absolute" else off**2).sum(axis=1)
    return every, at, np.sort(kind, axis=1), value


def variability(s, kinds, star, *, full, adults):
    """Largest L1 distance to the histogram of ``star``: rows of (size, race, children, rooms)."""

    def cell(size, race, children, rooms):
        if full:
            return (size, race, children, rooms)
        return (size, race == 0, children > 0, rooms)

    every, at = assignments(s, kinds)
    good = fits(s, query_rows(kinds, every)[at].sum(axis=1), adults=adults)
    mine = [cell(*h) for h in star]
    worst = 0
    for choice in {
        tuple(sorted(cell(*kinds[every[a][0]], every[a][1]) for a in row)) for row in at[good]
    }:
        cells = {*mine, *choice}
        worst = max(worst, sum(abs(mine.count(c) - choice.count(c)) for c in cells))
    return worst


def linkage(entries, truth, key, *, unique):
    """Expected counts at every k over all orders of ties: entries are (block, codes, score)."""
    homes = [h for h in truth if h["subsidised"] or "subsidised" not in key]
    alike = {}
    for h in homes:
        alike.setdefault((h["block"], *(h[name] for name in key)), []).append(h["violation"])
    orders = {}
    for order in permutations(range(len(entries))):
        scores = [entries[i][2] for i in order]
        if scores == sorted(scores, reverse=True):
            orders[order] = 1
    total = np.zeros((3, len(entries)))
    for order in orders:
        putative = hits = matched = 0
        for k, i in enumerate(order):
            found = alike.get((entries[i][0], *entries[i][1]), [])
            if unique and len(found) != 1:
                found = []
            putative += len(found)
            hits += sum(found)
            matched += any(found)
            total[:, k] += (putative, hits, matched)
    kept = [v for v in alike.values() if not unique or len(v) == 1]
    return total / len(orders), sum(map(sum, kept)), sum(map(len, kept))

"""The least coarse safe setting, by enumeration of data sets and of all settings.

A world has a few places and kinds of records, and tables as lists of cells, each a set of kinds, of
one level.  All data sets up to a number of records are listed; under a setting those remain whose
published numbers are the true ones.  What all of them have in common is proved.
"""

import itertools

import numpy as np


def data_sets(cells, most):
    """Return all ways to put at most so many records into cells, one a row."""
    rows = []
    for total in range(most + 1):
        for bars in itertools.combinations(range(total + cells - 1), cells - 1):
            ends = (-1, *bars, total + cells - 1)
            rows.append([b - a - 1 for a, b in itertools.pairwise(ends)])
    return np.array(rows, np.int64)


def published(rule, counts):
    """Return the numbers that a rule publishes of counts; one of (name, number)."""
    name, number = rule
    if name == "identity":
        return counts
    if name == "nearest":
        return np.floor(counts / number + 0.5).astype(np.int64) * number
    if name == "below":
        return np.where((counts > 0) & (counts < number), -1, counts)
    if name == "ranges":
        return np.searchsorted(np.array(number), counts, side="right")
    return np.zeros_like(counts)  # nothing


def proved(records, truth, asked, same, within):
    """Return how many counts of 1 or 2 are recovered, how many are at least 1, records proved.

    ``asked`` are counts of every data set (sets, counts), ``same`` which sets look like the truth;
    ``truth`` is its number.
    """
    left, counts = records[same], asked[same]
    small = np.isin(asked[truth], (1, 2))
    width = counts.max(axis=0) - counts.min(axis=0)
    recovered = int((small & (width <= within)).sum())
    sentences = int((small & (counts.min(axis=0) >= 1)).sum())
    return recovered, sentences, int(left.min(axis=0).sum())


def errors(rule, counts, groups):
    """Return the mean error of a reader, and the share of cells without a number.

    ``groups`` is for each cell the number of the published one that it is part of.
    """
    sizes = np.bincount(groups)
    merged = np.stack([counts[:, groups == g].sum(axis=1) for g in range(sizes.size)], axis=1)
    name, number = rule
    if name == "nothing":
        return np.abs(counts).mean(), 1.0
    best = published(rule, merged).astype(float)
    if name == "below":
        best = np.where(best < 0, number / 2.0, best)
    if name == "ranges":
        ends = [*((a + b - 1) / 2.0 for a, b in itertools.pairwise(number)), number[-1]]
        best = np.array(ends, float)[best.astype(int) - 1]
    return np.abs(best[:, groups] / sizes[groups] - counts).mean(), 0.0


def least_coarse(world, ladders, limits, most=12, within=0):
    """Return the least cost of a safe setting, None if there is none, and the verdict of each.

    ``world`` has ``truth`` (places, kinds) and ``tables``: for each the cells as sets of kinds, and
    whether places are added up.  ``ladders`` has for each table its rules: (rule, groups).
    ``limits`` are of recovered, sentences, proved; None is none.
    """
    places, kinds = world["truth"].shape
    worlds = data_sets(places * kinds, most)
    index = int(np.flatnonzero((worlds == world["truth"].ravel()).all(axis=1))[0])
    whole = worlds.reshape(-1, places, kinds)
    # A record is what tables tell of it: kinds that are in the same cells are one.
    told = [tuple(k in c for cells, _ in world["tables"] for c in cells) for k in range(kinds)]
    parts = [[k for k in range(kinds) if told[k] == one] for one in dict.fromkeys(told)]
    records = np.concatenate([whole[:, :, part].sum(axis=2) for part in parts], axis=1)
    counts = []
    for cells, summed in world["tables"]:
        every = np.stack([whole[:, :, sorted(c)].sum(axis=2) for c in cells], axis=2)
        counts.append(every.sum(axis=1, keepdims=True) if summed else every)
    asked = np.concatenate([c.reshape(len(worlds), -1) for c in counts], axis=1)
    alike, costs = [], []
    for one, rules in zip(counts, ladders, strict=True):
        alike.append([])
        costs.append([])
        for rule, groups in rules:
            sums = [one[:, :, groups == g].sum(axis=2) for g in range(groups.max() + 1)]
            numbers = published(rule, np.stack(sums, axis=2)).reshape(len(worlds), -1)
            alike[-1].append((numbers == numbers[index]).all(axis=1))
            costs[-1].append(sum(errors(rule, one[index], groups)))
    best, verdicts, known = None, {}, {}
    for choice in itertools.product(*(range(len(rules)) for rules in ladders)):
        same = np.logical_and.reduce([a[i] for a, i in zip(alike, choice, strict=True)])
        key = same.tobytes()
        if key not in known:
            known[key] = proved(records, index, asked, same, within)
        safe = all(m is None or n <= m for n, m in zip(known[key], limits, strict=True))
        cost = sum(c[i] for c, i in zip(costs, choice, strict=True)) / len(ladders)
        verdicts[choice] = known[key], safe, cost
        if safe and (best is None or cost < best):
            best = cost
    return best, verdicts

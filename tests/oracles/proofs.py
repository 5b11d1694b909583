"""What certificates say and prove, over every kind of record that they name, one by one.

Nothing of the package or of its checker is used: kinds are listed, sums are added up for each, and
the data sets of few records are enumerated.
"""

import functools
import itertools

import numpy as np

from oracles.claims import multisets

#: The largest number of records, and of kinds, of the data sets that are listed.
MOST, KINDS = 5, 12


@functools.cache
def small_sets(n_kinds):
    """Return all data sets of at most MOST records, (data sets, kinds)."""
    return np.concatenate([multisets(n_kinds, n) for n in range(MOST + 1)])


def labels_of(given):
    """Return the labels of an attribute: texts, or the whole numbers between two ends."""
    if isinstance(given[0], str):
        return given
    first, last = given
    return list(range(first, last + 1))


def labels_in(sets, given):
    """Return the labels that a part of a count names, with their weights."""
    pairs = list(sets.items()) if isinstance(sets, dict) else []
    if not isinstance(sets, dict):
        pairs = [(code, w) for first, last, w in sets for code in range(first, last + 1)]
        if any(first > last for first, last, _ in sets) or pairs != sorted(pairs):
            raise ValueError("ranges do not increase")
    labels = [label for label, _ in pairs]
    if not pairs or len(set(labels)) < len(labels) or not set(labels) <= set(labels_of(given)):
        raise ValueError("labels are there twice, or are none")
    if any(w < 1 for _, w in pairs):
        raise ValueError("a weight is below 1")
    return dict(pairs)


def may_become(law, count):
    """Return the numbers that a law may publish for a true count."""
    kind = law["law"]
    if kind == "exact":
        return {count}
    if kind == "nearest":  # halves upwards
        base = law["base"]
        return {min((abs(2 * m - 2 * count), -m) for m in _multiples(base, count))[1] * -1}
    if kind == "random":
        base = law["base"]
        return {m for m in _multiples(base, count) if abs(m - count) < base}
    if kind == "ranges":
        edges, values, step = (law[name] for name in ("edges", "values", "step"))
        edges, values = list(edges), list(values)
        while step and edges[-1] <= count:
            edges.append(edges[-1] + step)
            values.append(values[-1] + step)
        return {max((e, v) for e, v in zip(edges, values, strict=True) if e <= count)[1]}
    if kind == "perturbed":
        return {count + change for change in range(-law["largest"], law["largest"] + 1)}
    rows = list(law["changes"])
    while len(rows) <= count:
        rows.append(rows[-law["repeat"]])
    return {count + change for change in rows[count]}


def _multiples(base, count):
    return range(count // base * base, count + base + 1, base)


def ends_by_law(count, most=60):
    """Return the ends that a count has by its law, of true counts up to a largest one."""
    law, number = count["law"], count["published"]
    numbers = ("base", "step", "repeat", "largest")
    if any(law.get(name) is not None and law[name] < 1 for name in numbers):
        raise ValueError("a law has no such number")
    if "repeat" in law and law["repeat"] >= len(law["changes"]):
        raise ValueError("more rows repeat than follow that of a count of 0")
    if law["law"] == "withheld":
        if law["least"] < 0 or (law["most"] is not None and law["most"] < law["least"]):
            raise ValueError("withheld counts are from least to most")
        return law["least"], law["most"]
    if law["law"] == "exact":
        return number, number
    true = [x for x in range(most) if number in may_become(law, x)]
    if not true:
        return 1, 0
    return true[0], None if true[-1] == most - 1 else true[-1]


def kinds_of(certificate):
    """Return all kinds of records of a certificate: place, label of each attribute."""
    axes = [labels_of(given) for given in certificate["attributes"].values()]
    return list(itertools.product(certificate["places"], *axes))


def weights_of(entries, certificate):
    """Return how often each entry counts each kind of record, (entries, kinds)."""
    kinds, attributes = kinds_of(certificate), certificate["attributes"]
    rows = np.zeros((len(entries), len(kinds)), dtype=int)
    for row, entry in zip(rows, entries, strict=True):
        row[:] = [kind[0].startswith(entry.get("place", "")) for kind in kinds]
        if not row.any():
            raise ValueError(f"no place begins with {entry['place']}")
        for name, sets in entry["sets"].items():
            at, labels = list(attributes).index(name) + 1, labels_in(sets, attributes[name])
            row *= [labels.get(kind[at], 0) for kind in kinds]
    return rows


def within(sums, low, high):
    """Return which sums are between two ends, None where there is none."""
    return (sums >= (-np.inf if low is None else low)) & (
        sums <= (np.inf if high is None else high)
    )


def fitting(certificate):
    """Return the small data sets that the counts of a certificate allow."""
    counts = [*certificate["counts"], *({**a, "low": 0, "high": 0} for a in certificate["assumed"])]
    weights = weights_of(counts, certificate)
    ways = small_sets(weights.shape[1])
    fits = [within(ways @ w, c["low"], c["high"]) for w, c in zip(weights, counts, strict=True)]
    return ways[np.all(fits, axis=0)] if fits else ways


def is_false(certificate):
    """Return whether a small data set fits the counts of a certificate and not its sentence."""
    ways, says = fitting(certificate), certificate["says"]
    if certificate["kind"] == "impossible":
        return bool(len(ways))
    true = [
        within(ways @ w, part["least"], part["most"])
        for w, part in zip(weights_of(says, certificate), says, strict=True)
    ]
    if certificate["kind"] == "records":  # nobody else is at the place
        *parts, everybody = weights_of([*says[:-1], {**says[-1], "sets": {}}], certificate)
        true.append(ways @ (everybody * (np.sum(parts, axis=0) == 0)) == 0)
    return not np.all(true)


def goals_of(certificate):
    """Return the opposites of what is said, by name, each with its weights and ends."""
    kind, says = certificate["kind"], certificate["says"]
    weights = weights_of(says, certificate)
    if kind == "impossible":
        return None if says else {"all": None}
    if kind == "count" and len(says) != 1:
        return None
    if kind == "records":
        # No kind is in two parts, each part is in all, and the parts add up to all.
        inside = (weights[:-1].sum(axis=0) <= weights[-1]).all() and not says[-1]["sets"]
        if not inside or says[-1]["most"] != sum(part["least"] for part in says[:-1]):
            return None
    found = {}
    for at, (part, row) in enumerate(zip(says, weights, strict=True), 1):
        if part["least"] is not None:
            found[f"fewer {at}"] = row, None, part["least"] - 1
        if part["most"] is not None:
            found[f"more {at}"] = row, part["most"] + 1, None
    return found or None


def is_refuted(tree, known, certificate, depth=1):
    """Return whether every leaf of a tree is a contradiction, kind by kind."""
    if "branch" in tree:
        row = weights_of(tree["branch"], certificate).sum(axis=0)
        return all(
            is_refuted(
                tree[side], known | {f"branch {depth}": (row, *ends)}, certificate, depth + 1
            )
            for side, ends in (("below", (None, tree["most"])), ("above", (tree["most"] + 1, None)))
        )
    if "none" in tree:
        _, low, high = known[tree["none"]]
        return low > high
    multiples = np.array([*tree["sum"].values()], dtype=object)
    used = [known[name] for name in tree["sum"]]
    left = multiples @ np.array([row for row, *_ in used], dtype=object)
    right = sum(
        m * (low if m > 0 else high) for m, (_, low, high) in zip(multiples, used, strict=True)
    )
    return bool((multiples != 0).all() and (left <= 0).all() and right > 0)


def is_placed(entry, certificate):
    """Return whether the place of an entry has the length of its level."""
    return certificate["levels"].get(entry["level"]) == len(entry["place"])


def is_proof(certificate):
    """Return whether a certificate proves what it says, its sentence in words aside."""
    known = {}
    try:
        counts, says = certificate["counts"], certificate["says"]
        weights = weights_of(counts, certificate)
        for number, (row, count) in enumerate(zip(weights, counts, strict=True), 1):
            low, high = count["low"], count["high"]
            if not is_placed(count, certificate) or (low, high) != ends_by_law(count):
                return False
            known[f"count {number}"] = row, low, high
        weights = weights_of(certificate["assumed"], certificate)
        known |= {f"assumed {number}": (row, 0, 0) for number, row in enumerate(weights, 1)}
        if not all(is_placed(part, certificate) for part in says):
            return False
        if len({part["place"] for part in says}) > 1:
            return False
        goals, trees = goals_of(certificate), certificate["refutations"]
        return (
            goals is not None
            and set(goals) == set(trees)
            and all(
                is_refuted(trees[name], known | ({"not": goal} if goal else {}), certificate)
                for name, goal in goals.items()
            )
        )
    except (LookupError, TypeError, ValueError):
        return False

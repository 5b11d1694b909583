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
    """Return the labels of an attribute as texts."""
    if isinstance(given, str):
        first, last = given.split("-")
        return [str(code) for code in range(int(first), int(last) + 1)]
    return given


def labels_in(sets, given):
    """Return the labels that a part of a count names, with their weights."""
    found = {}
    for text in sets:
        ends = text.split("-") if isinstance(given, str) and "-" in text else [text, text]
        codes = range(int(ends[0]), int(ends[1]) + 1) if ends[0] != ends[1] else ends[:1]
        for code in map(str, codes):
            if code in found or code not in labels_of(given):
                raise ValueError(f"{code} is there twice, or not a label")
            found[code] = sets[text] if isinstance(sets, dict) else 1
    return found


def kinds_of(certificate):
    """Return all kinds of records of a certificate: place, label of each attribute."""
    axes = [labels_of(given) for given in certificate["attributes"].values()]
    return list(itertools.product(certificate["places"], *axes))


def weights_of(entries, certificate):
    """Return how often each entry counts each kind of record, (entries, kinds)."""
    kinds, attributes = kinds_of(certificate), certificate["attributes"]
    rows = np.zeros((len(entries), len(kinds)), dtype=int)
    for row, entry in zip(rows, entries, strict=True):
        row[:] = [kind[0].startswith(entry["place"]) for kind in kinds]
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
    counts = list(certificate["counts"].values())
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
    return not np.all(true)


def goals_of(certificate):
    """Return the opposites of what is said, by name, each with its weights and ends."""
    kind, says = certificate["kind"], certificate["says"]
    weights = weights_of(says, certificate)
    if kind == "impossible":
        return None if says else {"all": (np.zeros(len(kinds_of(certificate)), int), 0, 0)}
    if kind == "count" and len(says) != 1:
        return None
    if kind == "records":
        # No kind is in two parts, each part is in all, and the parts add up to all.
        inside = (weights[:-1].sum(axis=0) <= weights[-1]).all()
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
    return bool((left <= 0).all() and right > 0)


def is_proof(certificate):
    """Return whether a certificate proves what it says, its sentence in words aside."""
    known = {}
    try:
        counts = certificate["counts"]
        weights = weights_of(list(counts.values()), certificate)
        for row, (name, count) in zip(weights, counts.items(), strict=True):
            low, high, stated = count["low"], count["high"], count["published"]
            own = f"{count['level']} {count['place']}, {count['table']}: {count['cell']}"
            alone = (0, None) if stated is None else (stated, stated)
            if name != own or not (count["law"] or (low, high) == alone):
                return False
            known[name] = row, low, high
        goals, trees = goals_of(certificate), certificate["refutations"]
        return (
            goals is not None
            and set(goals) == set(trees)
            and all(
                is_refuted(trees[name], known | {"not": goal}, certificate)
                for name, goal in goals.items()
            )
        )
    except (LookupError, TypeError, ValueError):
        return False

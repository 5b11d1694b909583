"""Small random blocks of all kinds, certificates of what they prove, and damaged copies."""

import copy
import json

import numpy as np
import pandas as pd
from range_cases import LAWS, range_case

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.reconstruction import count_bounds, find_claims, prove, reconstruct
from bayesrisk.tables import (
    Attribute,
    Geography,
    HouseholdLink,
    PublishedTables,
    Records,
    Schema,
    Table,
    Workload,
)
from bayesrisk.tables.likelihoods import CellKeySpec, PerturbedCounts

#: Laws of the tables of a block, by the kind of the block.
BY_LAW = {
    "exact": (None,),
    "rounded": LAWS[1:5],
    "ranges": LAWS[5:9],
    "withheld": (None, *LAWS[9:]),
    "changed": (None, PerturbedCounts(1)),
    "noise with a bound": (None, CellKeySpec(("0: 1", "-1: 1/4, 0: 1/2, 1: 1/4"))),
}
ISLAND = Geography("island", ("block",), (1,))
TOWN = Geography("town", ("tract", "block"), (1, 2))


def one_way(level, schema):
    """Return a total and a table of each attribute at a level."""
    tables = [Table("N", ("all",), {})]
    for about in schema.attributes:
        cells = tuple(map(str, range(about.size)))
        tables.append(Table(about.name, cells, {about.name: np.eye(about.size, dtype=int)}))
    return {(level, table.name): table for table in tables}


def people(rng, schema, blocks):
    """Return up to five records in some blocks."""
    columns = {a.name: rng.integers(0, a.size, 5) for a in schema.attributes}
    frame = pd.DataFrame({"block": rng.choice(blocks, 5), **columns})
    return Records.from_frame(frame.head(int(rng.integers(1, 6))), schema=schema)


def rounding(rng):
    """Return a mechanism that rounds, or changes nothing."""
    base, method = int(rng.integers(2, 5)), ("nearest", "random")[rng.integers(2)]
    return (
        make_mechanism("rounding", base=base, method=method)
        if rng.random() < 0.8
        else make_mechanism("identity")
    )


def coarse(seed):
    """Return tables of merged categories, true counts, some of them of two attributes."""
    rng = np.random.default_rng(seed)
    schema = Schema("coarse", (Attribute("a", 2), Attribute("b", 4)), ISLAND)
    work = Workload(schema, {k: v for k, v in one_way("block", schema).items() if k[1] != "N"})
    cross = Workload.of(schema, [("a", "b")])
    both = next(iter(cross.tables.values()))
    both = {("block", both.name): both} if rng.random() < 0.5 else {}
    groups = {"b": [0, *sorted(rng.permutation([1, 2, 3])[: rng.integers(1, 3)].tolist())]}
    tables = {**work.tables, **both}
    release = make_mechanism("recode", groups=groups).release(
        people(rng, schema, ["1"]), workload=Workload(schema, tables), places=["1"]
    )
    return release.tables


def two_levels(seed):
    """Return tables of a tract and some of its blocks, and what is asked about blocks."""
    rng = np.random.default_rng(seed)
    schema = Schema("town", (Attribute("a", 2), Attribute("b", 2)), TOWN)
    blocks = one_way("block", schema)
    chosen = [key for key in blocks if rng.random() < 0.6] or [("block", "N")]
    tables = one_way("tract", schema) | {key: blocks[key] for key in chosen}
    records = people(rng, schema, ["11", "12"])
    made = rounding(rng).release(
        records, workload=Workload(schema, tables), places=["11", "12"], rng=seed
    )
    return made.tables, Workload(schema, blocks)


def two_releases(seed):
    """Return two protections of the same people, combined."""
    rng = np.random.default_rng(seed)
    schema = Schema("twice", (Attribute("a", 2), Attribute("b", 3)), ISLAND)
    records, work = people(rng, schema, ["1"]), Workload(schema, one_way("block", schema))
    given = {
        name: rounding(rng).release(records, workload=work, places=["1"], rng=seed).tables
        for name in ("spring", "autumn")
    }
    return PublishedTables.combine(given)


def linked(seed):
    """Return tables of persons and of their households, combined."""
    rng = np.random.default_rng(seed)
    persons = Schema("persons", (Attribute("a", int(rng.integers(2, 4))),), ISLAND)
    homes = Schema("homes", (Attribute("size", 2, 1),), ISLAND)
    sizes = {"size": lambda members: members.sum(axis=1)}
    link = HouseholdLink.enumerate(persons, homes, most=2, derived=sizes)
    works = {
        "persons": Workload(persons, one_way("block", persons)),
        "homes": Workload.of(homes, ["size"]),
    }
    labels = link.schema.attribute("members").labels
    chosen = rng.integers(len(labels), size=rng.integers(1, 4)).tolist()
    frame = pd.DataFrame({"block": "1", "members": [labels[at] for at in chosen]})
    records, parts = Records.from_frame(frame, schema=link.schema), {}
    for name, work in works.items():
        asked = link.convert(work)
        parts[name] = rounding(rng).release(records, workload=asked, places=["1"], rng=seed).tables
    return PublishedTables.combine(parts)


def noisy(seed):
    """Return noisy counts, to be taken as true: mostly, no records fit."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5), rng.integers(2, 4)
    axes = (Attribute(name, int(size)) for name, size in zip("ab", sizes, strict=True))
    schema = Schema("noisy", tuple(axes), ISLAND)
    work = Workload(schema, one_way("block", schema))
    rho = int(rng.choice([1, 5, 20]))
    mechanism = make_mechanism("discrete-gaussian", sensitivity="add-remove", rho=rho)
    return mechanism.release(
        people(rng, schema, ["1"]), workload=work, places=["1"], rng=seed
    ).tables


BLOCK_KINDS = (
    *BY_LAW,
    "coarse",
    "two levels",
    "two releases",
    "persons and households",
    "as if true",
)


def answered(kind, seed):
    """Return tables of a block, and the certificates of its claims, its bounds and its records."""
    some = {"most": 8}
    if kind == "as if true":
        tables = noisy(seed)
        found = [
            find_claims(tables, taken_as_true=True),
            reconstruct(tables, scope="block", taken_as_true=True),
        ]
        return tables, [prove(tables, result, **some) for result in found]
    if kind == "two levels":
        tables, asked = two_levels(seed)
        bounds = count_bounds(tables, scope="tract", queries=asked)
        return tables, [
            prove(tables, bounds, queries=asked, **some),
            prove(tables, reconstruct(tables, scope="tract"), **some),
        ]
    rule = {"known_rule": not (kind == "withheld" and seed % 2)}
    cells = {}
    if kind in BY_LAW:
        made = range_case(seed, among=BY_LAW[kind], **rule)
        tables = made[3]
        if seed % 3:
            cells = {"cells": made[2]}
    else:
        make = {"coarse": coarse, "two releases": two_releases, "persons and households": linked}
        tables = make[kind](seed)
    return tables, [
        prove(tables, find_claims(tables, **cells, **rule), **cells, **rule, **some),
        prove(tables, count_bounds(tables, **rule), **rule, **some),
        prove(tables, reconstruct(tables, scope="block", **rule), **rule, **some),
    ]


def certificates(kind, number):
    """Yield so many different certificates of blocks of a kind, each with the seed of its block.

    A statement without a certificate is a failure: these blocks need few nodes.
    """
    seen, seed = set(), 0
    while True:
        for proofs in answered(kind, seed)[1]:
            for found in proofs.certificates:
                assert found, f"no certificate in block {seed} of {kind}"
                text = json.dumps(found, sort_keys=True)
                if text not in seen:
                    seen.add(text)
                    yield seed, found
                    if len(seen) == number:
                        return
        seed += 1


# -----------------------------------------------------------------------------
# Damage: one number, one name, one law, or one sign is another one.


def leaves(tree):
    """Yield all sums of a refutation."""
    if "sum" in tree:
        yield tree["sum"]
    for side in ("below", "above"):
        if side in tree:
            yield from leaves(tree[side])


def _sums(certificate):
    return [s for tree in certificate["refutations"].values() for s in leaves(tree) if s]


def _picked(rng, options):
    return options[rng.integers(len(options))]


def change_count(certificate, rng):
    """Change a published count, or a number of the sentence, by a few."""
    ends = [
        (entry, end)
        for entry in (*certificate["counts"], *certificate["says"])
        for end in ("low", "least", "high", "most")
        if entry.get(end) is not None
    ]
    if not ends:
        return False
    entry, end = _picked(rng, ends)
    step = int(_picked(rng, (-2, -1, 1, 2)))
    # A count that is exact, or an end that says "exactly", is one number in several places.
    alike, exact = entry[end], entry.get("law", {"law": "exact"}) == {"law": "exact"}
    for name in ("published", "low", "high", "least", "most"):
        if name in entry and (name == end or (entry[name] == alike and exact)):
            entry[name] += step
    return True


def change_multiplier(certificate, rng):
    """Change how often a count is taken in a sum, not its sign."""
    sums = _sums(certificate)
    if not sums:
        return False
    terms = _picked(rng, sums)
    name = _picked(rng, list(terms))
    terms[name] += (1 if terms[name] > 0 else -1) * int(_picked(rng, (1, 2)))
    return True


def change_sign(certificate, rng):
    """Take a count as at most instead of as at least, or the other way."""
    sums = _sums(certificate)
    if not sums:
        return False
    terms = _picked(rng, sums)
    terms[_picked(rng, list(terms))] *= -1
    return True


def change_name(certificate, rng):
    """Change the name of a term, a level, a place, a label, an attribute or a refutation."""
    counts, says, attributes = (certificate[name] for name in ("counts", "says", "attributes"))
    entries = [*says, *counts]
    ways = [("refutation", certificate["refutations"])]
    ways += [("field", entry) for entry in entries]
    ways += [("term", terms) for terms in _sums(certificate)]
    ways += [("label", entry["sets"]) for entry in entries if entry["sets"]]
    ways += [("attribute", entry["sets"]) for entry in entries if entry["sets"]]
    ways += [("place", entry) for entry in says]
    way, at = _picked(rng, ways)
    if way in ("refutation", "term"):
        old = _picked(rng, list(at))
        numbers = range(1, len(counts) + 2)
        others = {
            "refutation": ["fewer 1", "more 1", "fewer 2", "all"],
            "term": [*(f"count {number}" for number in numbers), "not", "branch 1", "unknown"],
        }[way]
        new = _picked(rng, [name for name in others if name not in at] or ["unknown"])
        items = [(new if name == old else name, value) for name, value in at.items()]
        at.clear()
        at.update(items)
    elif way == "field":
        at[_picked(rng, ("level", "place"))] += "x"
    elif way == "place":
        at["place"] = "elsewhere"
    elif way == "attribute":
        name = _picked(rng, list(at))
        others = [other for other in attributes if other not in at]
        at[_picked(rng, [*others, "unknown"])] = at.pop(name)
    else:
        name = _picked(rng, list(at))
        given, sets = attributes[name], at[name]
        if isinstance(sets, dict):
            new = _picked(rng, [label for label in given if label not in sets] or ["unknown"])
            old = _picked(rng, list(sets))
            at[name] = {new if label == old else label: times for label, times in sets.items()}
        else:
            sets[rng.integers(len(sets))][rng.integers(2)] += int(_picked(rng, (-1, 1)))
    return True


def change_law(certificate, rng):
    """Change what a count was published as, or the law by which it was."""
    if not certificate["counts"]:
        return False
    count = _picked(rng, certificate["counts"])
    law = count["law"]
    numbers = [name for name, value in law.items() if isinstance(value, int)]
    if count["published"] is not None:
        numbers += ["published"]
    if not numbers or rng.random() < 0.3:
        count["law"] = _picked(
            rng,
            [
                {"law": "exact"},
                {"law": "nearest", "base": 3},
                {"law": "random", "base": 2},
                {"law": "ranges", "edges": [0, 1], "values": [0, 1], "step": None},
                {"law": "cell-key", "changes": [[0], [-1, 0, 1]], "repeat": 1},
            ],
        )
        return True
    name = _picked(rng, numbers)
    (count if name == "published" else law)[name] += int(_picked(rng, (-1, 1, 2)))
    return True


DAMAGES = {
    "a count": change_count,
    "a multiplier": change_multiplier,
    "a name": change_name,
    "a sign": change_sign,
    "a law": change_law,
}


def damaged(certificate, seed):
    """Yield copies with one change each, by its kind."""
    for at, (name, change) in enumerate(DAMAGES.items()):
        made = copy.deepcopy(certificate)
        if change(made, np.random.default_rng([seed, at])):
            yield name, made

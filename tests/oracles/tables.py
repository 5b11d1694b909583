"""Slow, obvious twins of tabulation: loops over records and cells, the grammar read anew."""

from itertools import product

import numpy as np


def codes(text, attribute):
    """Return the set of codes of a group such as "0-4,7", "1-63:2" or "1-"."""
    last = attribute["first"] + attribute["size"] - 1
    found = set()
    for item in text.split(","):
        item, _, step = item.partition(":")
        low, dash, high = item.partition("-")
        end = int(low) if not dash else int(high) if high else last
        found |= set(range(int(low), end + 1, int(step or 1)))
    return found


def groups(item, attributes):
    """Return an attribute's name and its groups of codes."""
    if isinstance(item, str):
        attribute = attributes[item]
        return item, [{attribute["first"] + i} for i in range(attribute["size"])]
    found = []
    for text in item[1]:
        if text.startswith("each "):
            listed = [sorted(codes(t, attributes[item[0]])) for t in text[5:].split(",")]
            found += [{code} for part in listed for code in part]
        else:
            found.append(codes(text, attributes[item[0]]))
    return item[0], found


def weights(entry, attributes, record):
    """Return the weight of a record in every cell of a table, part after part."""
    found = []
    for part in entry["parts"]:
        crossed = [groups(item, attributes) for item in part.get("cross", [])]
        base = 1
        for name, text in part.get("where", {}).items():
            base *= record[name] in codes(text, attributes[name])
        for name, values in part.get("weight", {}).items():
            code = record[name]
            base *= code if values == "code" else values[code - attributes[name]["first"]]
        for combination in product(*[members for _, members in crossed]):
            inside = all(
                record[name] in group for (name, _), group in zip(crossed, combination, strict=True)
            )
            found.append(base * inside)
    return found


def by_name(schema):
    return {a["name"]: {"first": 0, **a} for a in schema["attributes"]}


def direct_counts(document, entry, level, records):
    """Return {place: counts} of a table by adding up one record after the other."""
    place = document["schema"]["geography"]
    width = place["widths"][place["levels"].index(level)]
    finest = place["levels"][-1]
    attributes = by_name(document["schema"])
    found = {}
    for record in records:
        own = np.array(weights(entry, attributes, record), dtype=np.int64)
        geoid = record[finest][:width]
        found[geoid] = found.get(geoid, 0) + own
    return found


def every_record(schema):
    """Yield every combination of codes, in the order of the cells."""
    spans = [range(a["first"], a["first"] + a["size"]) for a in by_name(schema).values()]
    names = [a["name"] for a in schema["attributes"]]
    for combination in product(*spans):
        yield dict(zip(names, combination, strict=True))


def brute_sensitivity(document, kind, norm):
    """Return the largest change (norm 2: its square) by trying every record, or every two."""
    attributes = by_name(document["schema"])
    place = document["schema"]["geography"]
    root = {n for n, w in zip(place["levels"], place["widths"], strict=True) if w == 0}
    everybody = list(every_record(document["schema"]))
    best = 0
    columns = []
    for record in everybody:
        fixed, moving = [], []
        for entry in document["tables"]:
            own = weights(entry, attributes, record)
            for level in entry["levels"]:
                (fixed if level in root else moving).extend(own)
        columns.append((np.array(fixed, dtype=int), np.array(moving, dtype=int)))
    if kind == "add-remove":
        return max(int((abs(f) ** norm).sum() + (abs(m) ** norm).sum()) for f, m in columns)
    for fixed, moving in columns:
        for other_fixed, other_moving in columns:
            change = (abs(fixed - other_fixed) ** norm).sum()
            if kind == "change-one":  # it may come from another place
                change += (abs(moving) ** norm).sum() + (abs(other_moving) ** norm).sum()
            else:
                change += (abs(moving - other_moving) ** norm).sum()
            best = max(best, int(change))
    return best

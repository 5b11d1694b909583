"""Checks proofs about the records behind published counts: ``python check_proof.py proof.json``.

A proof names published counts, with the smallest and largest true count of each, and a sentence
about the records, of which it refutes the opposite.  Unknown is how many records there are of each
kind, a place with one label of each attribute; all are looked at.  A count adds up the kinds in its
``sets``, each by its weight.  A ``sum`` takes counts m > 0 times as "at least low" and m < 0 times
as "at most high".  If no kind adds more than 0 to the left side of all of it, that side is at most
0, and a right side above 0 is a contradiction.  A ``branch`` has at most k below, more above.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import Any


class RefusedError(Exception):
    """Says what is wrong with a proof, and where."""


def need(condition: Any, text: str) -> None:
    """Refuse a proof if a condition does not hold."""
    if not condition:
        raise RefusedError(text)


def entry(value: Any, path: str, names: str) -> None:
    """Refuse a value that is no object with just these names."""
    need(isinstance(value, dict) and set(value) == set(names.split()), f"{path}: not {names}")


def whole(value: Any, path: str) -> int:
    """Return a whole number."""
    need(type(value) is int, f"{path}: {value!r} must be a whole number")
    return int(value)


def codes(text: str) -> range:
    """Return the whole numbers of a text such as ``7`` or ``30-34``."""
    first, last = re.fullmatch(r"(-?\d+)(?:-(-?\d+))?", text).groups()  # type: ignore[union-attr]
    return range(int(first), int(last or first) + 1)


def heaviest(box: Any) -> int:
    """Return the largest weight of a kind in a box."""
    return math.prod(max(weights.values(), default=0) for weights in box if weights is not None)


def excess(terms: Any, axes: Any, states: set[Any], kind: Any = ()) -> Any:
    """Return a kind of record that adds more than 0 to terms, pairs of a multiple and a box."""
    depth, state = len(kind), (len(kind), *((m, id(box)) for m, box in terms))
    # At most what terms can add, less what others take off whatever the other labels are.
    most = sum(
        m * heaviest(b[depth:]) for m, b in terms if m > 0 or all(w is None for w in b[depth:])
    )
    if state in states or most <= 0:
        return None
    states.add(state)
    if depth == len(axes):
        return kind
    groups: dict[Any, Any] = {}  # labels that all terms weigh alike are one
    for label in axes[depth][1]:
        groups[tuple(1 if b[depth] is None else b[depth].get(label, 0) for _, b in terms)] = label
    for weights, label in groups.items():
        left = [(m * w, box) for (m, box), w in zip(terms, weights, strict=True) if w]
        if record := excess(left, axes, states, (*kind, label)):
            return record
    return None


def all_labels(places: Any, attributes: Any) -> list[Any]:
    """Return the places, and the labels of each attribute: texts, or numbers such as ``0-102``."""
    labels = [(n, codes(g) if isinstance(g, str) else g) for n, g in attributes.items()]
    axes = [(None, places), *labels]
    need(len({len(place) for place in places}) == 1, "the places need codes of one length")
    need(all(len(set(a)) == len(a) > 0 for _, a in axes), "each label must be there once")
    return axes


def parse_box(part: Any, axes: Any, path: str) -> list[Any]:
    """Return for each axis the weights of the labels in sets, or None where all have 1."""
    inside = {place: 1 for place in axes[0][1] if place.startswith(part["place"])}
    need(inside and set(part["sets"]) <= set(dict(axes)), f"{path}: unknown place or attribute")
    box = [inside if len(inside) < len(axes[0][1]) else None]
    for name, labels in axes[1:]:
        weights = part["sets"].get(name)
        if weights is not None:
            pairs = weights.items() if isinstance(weights, dict) else [(x, 1) for x in weights]
            if isinstance(labels, range):
                pairs = [(code, w) for text, w in pairs for code in codes(text)]
            weights = dict(pairs)
            right = set(weights) <= set(labels) and all(whole(w, path) > 0 for _, w in pairs)
            need(right and len(weights) == len(pairs), f"{path}: wrong labels of {name}")
        box.append(weights)
    return box


def refute(tree: Any, counts: Any, axes: Any, path: str, depth: int = 1) -> None:
    """Refuse a tree that does not refute what is known: boxes, low and high by name."""
    if "branch" in tree:
        entry(tree, path, "branch most below above")
        boxes, most = [parse_box(p, axes, path) for p in tree["branch"]], whole(tree["most"], path)
        for side, ends in (("below", (None, most)), ("above", (most + 1, None))):
            inside = {**counts, f"branch {depth}": (boxes, *ends)}
            refute(tree[side], inside, axes, f"{path}, {side}", depth + 1)
    elif "none" in tree:
        need(counts[tree["none"]][1] > counts[tree["none"]][2], f"{path}: this count is possible")
    else:
        entry(tree, path, "sum")
        terms, right = [], 0
        for name, multiple in tree["sum"].items():
            boxes, low, high = counts[name]
            right += multiple * whole((low, high)[whole(multiple, path) <= 0], f"{path}, {name}")
            terms += [(multiple, box) for box in boxes]
        need(right > 0, f"{path}: the sum is no contradiction, its right side is {right}")
        kind = excess(terms, axes, set())
        need(kind is None, f"{path}: a record of {kind} adds more than 0 to the sum")


def goals(kind: str, says: Any, axes: Any) -> dict[str, Any]:
    """Return the opposites to refute, by name, each with its boxes, low and high."""
    boxes = [parse_box(part, axes, "the sentence") for part in says]
    targets: dict[str, Any] = {"all": ([], 0, 0)} if kind == "impossible" else {}
    for i, part in enumerate(says, 1):
        entry(part, "the sentence", "level place sets least most")
        if part["least"] is not None:
            targets[f"fewer {i}"] = boxes[i - 1 : i], None, whole(part["least"], "least") - 1
        if part["most"] is not None:
            targets[f"more {i}"] = boxes[i - 1 : i], whole(part["most"], "most") + 1, None
    parts = {"impossible": 0, "count": 1, "records": len(says)}[kind]
    need(targets and len(says) == parts, "the sentence must have its parts")
    if kind == "records":
        # At least so many of some kinds, and no more of all: no kind may be there twice.
        enough = says[-1]["most"] == sum(part["least"] for part in says[:-1])
        twice = excess([(-1, boxes[-1]), *((1, box) for box in boxes[:-1])], axes, set())
        need(enough and twice is None, f"the records must be all, each once: {twice}")
    return targets


def words(says: Any, names: Any) -> str:
    """Return the sentence of a proof in words."""
    if not says:
        return "No records fit these counts."
    place, texts = says[-1]["place"], []
    for part in says:
        least, most = part["least"], part["most"]
        ends = {least: "at least", most: "at most" if least != most else "exactly"}
        text = " and ".join(f"{word} {n}" for n, word in ends.items() if n is not None)
        for name, sets in part["sets"].items():
            times = f" (times {[*sets.values()]})" if isinstance(sets, dict) else ""
            text += f", {name} {' or '.join(sets)}{times}"
        texts.append(text + " in all" * (not part["sets"]))
    opening = f"In {says[-1]['level']} {names.get(place, place)}, n" if place else "N"
    return f"{opening}umber of records: {'; '.join(texts)}."


def check(proof: Any) -> str:
    """Return the sentence that a proof proves; raise RefusedError where it fails."""
    try:
        entry(proof, "all", "format sentence kind places names attributes counts says refutations")
        need(proof["format"] == "bayesrisk-proof-1", "the format must be bayesrisk-proof-1")
        axes, counts = all_labels(proof["places"], proof["attributes"]), {}
        for name, count in proof["counts"].items():
            entry(count, name, "level place table cell published low high sets law")
            need(name == "{level} {place}, {table}: {cell}".format(**count), f"{name}: other names")
            stated, low, high = (count[end] for end in ("published", "low", "high"))
            exact = (0, None) if stated is None else (stated, stated)
            need(count["law"] or (low, high) == exact, f"{name} must be as published")
            counts[name] = [parse_box(count, axes, name)], low, high
        wanted = goals(proof["kind"], proof["says"], axes)
        need(set(proof["refutations"]) == set(wanted), "each part must have its refutation")
        for name, goal in wanted.items():
            refute(proof["refutations"][name], {**counts, "not": goal}, axes, name)
        text = words(proof["says"], proof["names"])
        need(proof["sentence"] == text, f"the sentence must be: {text}")
        return text
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise RefusedError(f"not well formed: {type(error).__name__} {error}") from error


def main(files: list[str]) -> int:
    """Print what each file proves, and on which counts; return 1 if one is refused, 2 if unread."""
    status = 0 if files else 2
    for file in files:
        try:
            proof = json.loads(Path(file).read_text(encoding="utf-8"))
            print(f"{file}: accepted: {check(proof)}")
            print(f"  places: {proof['places']}\n  attributes: {proof['attributes']}")
            for name, count in proof["counts"].items():
                law = f" by {count['law']}" if count["law"] else ""
                print(f"  {name}: {count['published']}, so {count['low']} to {count['high']}{law}")
        except (RefusedError, OSError, ValueError, RecursionError) as error:
            word = "refused" if isinstance(error, RefusedError) else "cannot be read"
            status = max(status, 1 if word == "refused" else 2)
            print(f"{file}: {word}: {error}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

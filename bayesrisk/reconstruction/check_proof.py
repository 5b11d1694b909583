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


def entry(given: Any, where: str, names: str) -> None:
    """Refuse a value that is no object with just these names."""
    need(isinstance(given, dict) and set(given) == set(names.split()), f"{where}: not {names}")


def whole(value: Any, where: str) -> int:
    """Return a whole number."""
    need(type(value) is int, f"{where}: {value!r} must be a whole number")
    return int(value)


def codes(text: str) -> range:
    """Return the whole numbers of a text such as ``7`` or ``30-34``."""
    first, last = re.fullmatch(r"(-?\d+)(?:-(-?\d+))?", text).groups()  # type: ignore[union-attr]
    return range(int(first), int(last or first) + 1)


def heaviest(box: Any) -> int:
    """Return the largest weight of a kind in a box."""
    return math.prod(max(weights.values(), default=0) for weights in box if weights is not None)


def excess(terms: Any, axes: Any, seen: set[Any], kind: Any = ()) -> Any:
    """Return a kind of record that adds more than 0 to terms, pairs of a multiple and a box."""
    at, state = len(kind), (len(kind), *((m, id(box)) for m, box in terms))
    # At most what terms can add, less what others take off whatever the other labels are.
    most = sum(m * heaviest(b[at:]) for m, b in terms if m > 0 or all(w is None for w in b[at:]))
    if state in seen or most <= 0:
        return None
    seen.add(state)
    if at == len(axes):
        return kind
    alike: dict[Any, Any] = {}  # labels that all terms weigh alike are one
    for label in axes[at][1]:
        alike[tuple(1 if b[at] is None else b[at].get(label, 0) for _, b in terms)] = label
    for weights, label in alike.items():
        left = [(m * w, box) for (m, box), w in zip(terms, weights, strict=True) if w]
        if found := excess(left, axes, seen, (*kind, label)):
            return found
    return None


def all_labels(places: Any, attributes: Any) -> list[Any]:
    """Return the places, and the labels of each attribute: texts, or numbers such as ``0-102``."""
    labels = [(n, codes(g) if isinstance(g, str) else g) for n, g in attributes.items()]
    axes = [(None, places), *labels]
    need(len({len(place) for place in places}) == 1, "the places need codes of one length")
    need(all(len(set(a)) == len(a) > 0 for _, a in axes), "each label must be there once")
    return axes


def box_of(given: Any, axes: Any, where: str) -> list[Any]:
    """Return for each axis the weights of the labels in sets, or None where all have 1."""
    inside = {place: 1 for place in axes[0][1] if place.startswith(given["place"])}
    need(inside and set(given["sets"]) <= set(dict(axes)), f"{where}: unknown place or attribute")
    box = [inside if len(inside) < len(axes[0][1]) else None]
    for name, labels in axes[1:]:
        weights = given["sets"].get(name)
        if weights is not None:
            pairs = weights.items() if isinstance(weights, dict) else [(x, 1) for x in weights]
            if isinstance(labels, range):
                pairs = [(code, w) for text, w in pairs for code in codes(text)]
            weights = dict(pairs)
            right = set(weights) <= set(labels) and all(whole(w, where) > 0 for _, w in pairs)
            need(right and len(weights) == len(pairs), f"{where}: wrong labels of {name}")
        box.append(weights)
    return box


def refute(tree: Any, known: Any, axes: Any, where: str, depth: int = 1) -> None:
    """Refuse a tree that does not refute what is known: boxes, low and high by name."""
    if "branch" in tree:
        entry(tree, where, "branch most below above")
        boxes, most = [box_of(p, axes, where) for p in tree["branch"]], whole(tree["most"], where)
        for side, ends in (("below", (None, most)), ("above", (most + 1, None))):
            inside = {**known, f"branch {depth}": (boxes, *ends)}
            refute(tree[side], inside, axes, f"{where}, {side}", depth + 1)
    elif "none" in tree:
        need(known[tree["none"]][1] > known[tree["none"]][2], f"{where}: this count is possible")
    else:
        entry(tree, where, "sum")
        terms, right = [], 0
        for name, multiple in tree["sum"].items():
            boxes, low, high = known[name]
            right += multiple * whole((low, high)[whole(multiple, where) <= 0], f"{where}, {name}")
            terms += [(multiple, box) for box in boxes]
        need(right > 0, f"{where}: the sum is no contradiction, its right side is {right}")
        kind = excess(terms, axes, set())
        need(kind is None, f"{where}: a record of {kind} adds more than 0 to the sum")


def goals(kind: str, says: Any, axes: Any) -> dict[str, Any]:
    """Return the opposites to refute, by name, each with its boxes, low and high."""
    boxes = [box_of(part, axes, "the sentence") for part in says]
    found: dict[str, Any] = {"all": ([], 0, 0)} if kind == "impossible" else {}
    for at, part in enumerate(says, 1):
        entry(part, "the sentence", "level place sets least most")
        if part["least"] is not None:
            found[f"fewer {at}"] = boxes[at - 1 : at], None, whole(part["least"], "least") - 1
        if part["most"] is not None:
            found[f"more {at}"] = boxes[at - 1 : at], whole(part["most"], "most") + 1, None
    parts = {"impossible": 0, "count": 1, "records": len(says)}[kind]
    need(found and len(says) == parts, "the sentence must have its parts")
    if kind == "records":
        # At least so many of some kinds, and no more of all: no kind may be there twice.
        enough = says[-1]["most"] == sum(part["least"] for part in says[:-1])
        twice = excess([(-1, boxes[-1]), *((1, box) for box in boxes[:-1])], axes, set())
        need(enough and twice is None, f"the records must be all, each once: {twice}")
    return found


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
    where = f"In {says[-1]['level']} {names.get(place, place)}, n" if place else "N"
    return f"{where}umber of records: {'; '.join(texts)}."


def check(given: Any) -> str:
    """Return the sentence that a proof proves; raise RefusedError where it fails."""
    try:
        entry(given, "all", "format sentence kind places names attributes counts says refutations")
        need(given["format"] == "bayesrisk-proof-1", "the format must be bayesrisk-proof-1")
        axes, known = all_labels(given["places"], given["attributes"]), {}
        for name, count in given["counts"].items():
            entry(count, name, "level place table cell published low high sets law")
            need(name == "{level} {place}, {table}: {cell}".format(**count), f"{name}: other names")
            stated, low, high = (count[end] for end in ("published", "low", "high"))
            exact = (0, None) if stated is None else (stated, stated)
            need(count["law"] or (low, high) == exact, f"{name} must be as published")
            known[name] = [box_of(count, axes, name)], low, high
        wanted = goals(given["kind"], given["says"], axes)
        need(set(given["refutations"]) == set(wanted), "each part must have its refutation")
        for name, goal in wanted.items():
            refute(given["refutations"][name], {**known, "not": goal}, axes, name)
        text = words(given["says"], given["names"])
        need(given["sentence"] == text, f"the sentence must be: {text}")
        return text
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise RefusedError(f"not well formed: {type(error).__name__} {error}") from error


def main(files: list[str]) -> int:
    """Print what each file proves, and on which counts; return 1 if one is refused, 2 if unread."""
    status = 0 if files else 2
    for file in files:
        try:
            given = json.loads(Path(file).read_text(encoding="utf-8"))
            print(f"{file}: accepted: {check(given)}")
            print(f"  places: {given['places']}\n  attributes: {given['attributes']}")
            for name, count in given["counts"].items():
                law = f" by {count['law']}" if count["law"] else ""
                print(f"  {name}: {count['published']}, so {count['low']} to {count['high']}{law}")
        except (RefusedError, OSError, ValueError, RecursionError) as error:
            word = "refused" if isinstance(error, RefusedError) else "cannot be read"
            status = max(status, 1 if word == "refused" else 2)
            print(f"{file}: {word}: {error}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

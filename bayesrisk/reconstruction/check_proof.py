"""Checks certificates: proofs about the records behind published counts.

    python check_proof.py proof-0001.json ...     add --all to print long lists whole

It needs Python 3.9 or later and nothing else, and trusts no statement of a file. A certificate has
places and labels, published counts with their laws, and a sentence about the records. It refutes
the opposite of the sentence. For each valid certificate, the sentence is printed with all that it
follows from: compare that with what was published.
"""

# Unknown is how many records there are of each kind, a place with one label of each attribute.  A
# count adds up kinds, each by its weight, and is at least its low and at most its high end.  A sum
# takes counts m > 0 times as "at least low" and m < 0 times as "at most high".  If no kind adds
# more than 0 to the left side of all of it, that side is at most 0, and a right side above 0 is a
# contradiction.  A branch has at most so many records below, and more above: both are refuted.
# The page "The format of certificates" of the documentation of bayesrisk specifies all of it.

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Collection, Iterable
from operator import mul
from typing import Any, NamedTuple

FORMAT, OLD = "bayesrisk-proof-2", "bayesrisk-proof-1"
BYTES, DIGITS, CHARACTERS, LABELS, BRANCHES, STEPS = 4_000_000, 18, 1000, 100_000, 50, 10_000_000
LEVELS, ATTRIBUTES, LISTED, SHORT, PRINTED, COUNTED = 20, 200, 20, 8, 1_000_000, 10_000_000
CLOSING = (
    "This follows from what is listed above. Compare it with what was published: every count must "
    "be right, with its labels, and no place and no label may be missing."
)
KEYS = "format,kind,sentence,levels,places,names,attributes,says,counts,assumed,refutations"
SHAPES = (
    "exact=law withheld=law,least,most nearest=law,base random=law,base "
    "ranges=law,edges,values,step cell-key=law,changes,repeat perturbed=law,largest"
)
LAWS = dict(shape.split("=") for shape in SHAPES.split())


class RefusedError(Exception):
    """A certificate is wrong; the message says what and where."""


class Frame(NamedTuple):
    """Levels with code lengths, places, names and labels of a certificate, and the steps left."""

    levels: dict[str, int]
    places: list[str]
    prefixes: dict[str, int]  # how many places begin with each code of a level
    names: dict[str, str]
    attributes: dict[str, Any]
    left: list[int]


class Box(NamedTuple):
    """Weighted kinds of records: at places whose code begins so, with labels or ranges of codes."""

    place: str
    sets: dict[str, Any]


# Reading: every field has a type, whether the proof uses it or not.


def need(condition: object, text: str) -> None:
    """Raise RefusedError if a condition does not hold."""
    if not condition:
        raise RefusedError(text)


def quoted(text: str) -> str:
    """Return a text in quotes; all but plain characters are escaped."""
    plain = (c if " " <= c <= "~" and c not in "'\\" else f"\\u{{{ord(c):x}}}" for c in text)
    return f"'{''.join(plain)}'"


def read(data: bytes) -> Any:
    """Return the JSON of a file, with whole numbers only and each key once."""

    def number(text: str) -> int:
        need(len(text.lstrip("-")) <= DIGITS and text != "-0", f"over {DIGITS} digits, or -0")
        return int(text)

    def other(text: str) -> None:
        raise RefusedError(f"{quoted(text[:20])} is no whole number")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(items)) == len(items), "an object has a key twice")
        return dict(items)

    need(len(data) <= BYTES, f"it has more than {BYTES} bytes")
    hooks: Any = {"parse_int": number, "parse_float": other, "parse_constant": other}
    return json.loads(data.decode("utf-8"), object_pairs_hook=pairs, **hooks)


def keys(value: object, path: str, names: str) -> None:
    """Raise unless a value is an object with exactly these keys."""
    right = type(value) is dict and set(value) == set(names.split(","))
    need(right, f"{path}: must be an object of {names}")


def filled(value: Any, kind: type, path: str) -> Any:
    """Return a list or object, checked not to be empty."""
    need(type(value) is kind and value, f"{path}: must be a filled {kind.__name__}")
    return value


def whole(value: object, path: str, least: int | None = None) -> int:
    """Return a checked whole number, at least a given one."""
    if type(value) is not int or abs(value) >= 10**DIGITS or (least is not None and value < least):
        raise RefusedError(f"{path}: must be a whole number, and not too small or too large")
    return value


def optional(value: object, path: str, least: int | None = None) -> int | None:
    """Return a checked whole number, or None."""
    return None if value is None else whole(value, path, least)


def word(value: object, path: str) -> str:
    """Return a checked text without unpaired surrogates."""
    right = type(value) is str and len(value) <= CHARACTERS
    need(right and not re.search("[\ud800-\udfff]", str(value)), f"{path}: must be a text")
    return str(value)


def read_frame(proof: dict[str, Any]) -> Frame:
    """Return the levels, the places and the labels of a certificate."""
    levels = filled(proof["levels"], dict, "levels")
    widths = [whole(levels[word(name, "levels")], "levels", 0) for name in levels]
    need(all(a < b for a, b in zip(widths, widths[1:])), "levels: lengths must increase")
    need(levels.get("all", 0) == 0 and widths[-1] <= CHARACTERS, "levels: wrong length of codes")
    need(len(levels) <= LEVELS, f"levels: must be at most {LEVELS}")
    places = [word(place, "places") for place in filled(proof["places"], list, "places")]
    need(len(set(places)) == len(places) <= LABELS, f"places: must differ, at most {LABELS}")
    need({len(place) for place in places} == {widths[-1]}, "places: must be of the last level")
    prefixes: dict[str, int] = {}
    for width in {0, *widths}:
        for place in places:
            prefixes[place[:width]] = prefixes.get(place[:width], 0) + 1
    names, attributes = proof["names"], proof["attributes"]
    need(type(names) is dict and type(attributes) is dict, "names, attributes: must be objects")
    need(len(attributes) <= ATTRIBUTES, f"attributes: must be at most {ATTRIBUTES}")
    for code, name in names.items():
        need(code and code in prefixes and word(name, "names"), "names: must be of places")
    labels: dict[str, Any] = {}
    for name, entries in attributes.items():
        path = f"attribute {quoted(word(name, 'attributes'))}"
        if type(filled(entries, list, path)[0]) is int:
            ends = [whole(number, path) for number in entries]
            need(len(ends) == 2 and 0 <= ends[1] - ends[0] < LABELS, f"{path}: must be two ends")
            labels[name] = range(ends[0], ends[1] + 1)
        else:
            labels[name] = dict.fromkeys(word(label, path) for label in entries)
            need(len(labels[name]) == len(entries) <= LABELS, f"{path}: labels must differ")
    return Frame(levels, places, prefixes, names, labels, [STEPS])


def read_box(place: str, sets: dict[str, Any], frame: Frame, path: str) -> Box:
    """Return the checked kinds of records that a count adds up."""
    need(word(place, path) in frame.prefixes, f"{path}: {quoted(place)} is no place")
    need(type(sets) is dict, f"{path}: sets must be an object")
    for name, chosen in sets.items():
        need(name in frame.attributes, f"{path}: {quoted(name)} is no attribute")
        labels, wrong = frame.attributes[name], f"{path}: wrong labels of {quoted(name)}"
        if isinstance(labels, range):
            after = labels[0]  # ranges increase, and do not overlap
            for piece in filled(chosen, list, wrong):
                need(type(piece) is list and len(piece) == 3 and whole(piece[2], wrong, 1), wrong)
                after, last = whole(piece[0], wrong, after), whole(piece[1], wrong, piece[0])
                need(last <= labels[-1], wrong)
                after = last + 1
        else:
            for label, weight in filled(chosen, dict, wrong).items():
                need(label in labels and whole(weight, wrong, 1), wrong)
    return Box(place, sets)


def read_law(law: dict[str, Any], y: int | None, path: str) -> tuple[str, int, int | None]:
    """Return a law in words, and the least and the most true count that may be published as y."""
    kind = word(law.get("law") if type(law) is dict else None, f"{path}: law")
    need(kind in LAWS, f"{path}: law must be one of {', '.join(LAWS)}")
    keys(law, path, LAWS[kind])
    need((y is None) == (kind == "withheld"), f"{path}: must have a number, or be withheld")
    if y is None:
        least, most = whole(law["least"], path, 0), optional(law["most"], path, law["least"])
        return f"withheld, {range_words(least, most)}", least, most
    if kind == "exact":
        return "exact", y, y
    if kind in ("nearest", "random"):
        base = whole(law["base"], path, 1)
        text = f"rounded {'to the nearest' if kind == 'nearest' else 'at random to a'} multiple"
        below, above = (base // 2, (base - 1) // 2) if kind == "nearest" else (base - 1, base - 1)
        low, high = (1, 0) if y < 0 or y % base else (max(y - below, 0), y + above)
        return f"{text} of {base}", low, high
    if kind == "perturbed":
        most = whole(law["largest"], path, 1)
        low, high = (1, 0) if y + most < 0 else (max(y - most, 0), y + most)
        return f"changed by {most} at most", low, high
    if kind == "ranges":
        edges, values, step = law["edges"], law["values"], optional(law["step"], path, 1)
        for numbers in (edges, values):
            row = [whole(n, path, 0) for n in filled(numbers, list, path)]
            need(all(a < b for a, b in zip(row, row[1:])), f"{path}: ranges must increase")
        need(edges[0] == 0 and len(edges) == len(values), f"{path}: must have edges from 0")
        text = f"ranges from {listed(edges)} as {listed(values)}"
        text += f", further ones every {step}" if step else ""
        beyond = y - values[-1]
        if step and beyond >= 0 and beyond % step == 0:
            return text, edges[-1] + beyond, edges[-1] + beyond + step - 1
        tops = [*(edge - 1 for edge in edges[1:]), None]
        return (text, *dict(zip(values, zip(edges, tops))).get(y, (1, 0)))
    changes, repeat = filled(law["changes"], list, path), whole(law["repeat"], path, 1)
    rows = [{whole(d, path) for d in filled(row, list, path)} for row in changes]
    last = len(rows) - 1
    need(repeat <= last, f"{path}: repeat must be below the number of changes")
    text = f"changed by cell key, from 0 on by {'; '.join(map(listed, changes))}"
    true = []
    for x in {y - d for row in rows for d in row}:  # counts that may become y
        position = x if x <= last else last - repeat + 1 + (x - last - 1) % repeat
        true += [x] if x >= 0 and y - x in rows[position] else []
    text += f", the last {repeat} in turn"
    return text, min(true, default=1), max(true, default=0)


# Sums: whether any kind of record adds more than 0.


def label_axes(frame: Frame) -> list[tuple[str | None, Any]]:
    """Return the places (under the name None) and the labels of each attribute."""
    return [(None, frame.places), *frame.attributes.items()]


def label_weights(box: Box, name: str | None, labels: Collection[Any]) -> list[int]:
    """Return the weight of each label in a box."""
    if name is None:
        return [int(place.startswith(box.place)) for place in labels]
    chosen = box.sets.get(name)
    if chosen is None:
        return [1] * len(labels)
    if not isinstance(labels, range):
        return [chosen.get(label, 0) for label in labels]
    row = [0] * len(labels)
    for first, last, weight in chosen:
        row[first - labels[0] : last + 1 - labels[0]] = [weight] * (last + 1 - first)
    return row


def excess(terms: list[tuple[int, Box]], frame: Frame) -> dict[Any, Any] | None:
    """Return a kind of record with positive total weight in the multiples of boxes, or None."""

    def take(number: int) -> None:
        frame.left[0] -= number
        need(frame.left[0] >= 0, f"it takes more than {STEPS} steps")

    used: set[str | None] = {name for _, box in terms for name in box.sets}
    used |= {None for _, box in terms if frame.prefixes[box.place] < len(frame.places)}
    axes = [(name, labels) for name, labels in label_axes(frame) if name in used]
    take(len(terms) * (1 + sum(len(labels) for _, labels in axes)))
    classes: list[dict[Any, Any]] = []  # labels that all terms weigh alike are one
    heavy, light = [[1] * len(terms)], [[1] * len(terms)]  # of the axes still to come
    for name, labels in reversed(axes):
        rows = [label_weights(box, name, labels) for _, box in terms]
        classes.insert(0, dict(zip(zip(*rows), labels)))
        heavy.insert(0, [w * max(row) for w, row in zip(heavy[0], rows)])
        light.insert(0, [w * min(row) for w, row in zip(light[0], rows)])
    states: set[Any] = set()
    waiting: list[tuple[Any, Any]] = [(tuple(m for m, _ in terms), ())]
    while waiting:
        state, kind = waiting.pop()
        depth = len(kind)
        # The terms do not add up to more than this, whatever the labels still to come are.
        most = sum(n * (h if n > 0 else w) for n, h, w in zip(state, heavy[depth], light[depth]))
        if most <= 0 or (depth, state) in states:
            continue
        states.add((depth, state))
        if depth == len(axes):
            return dict(zip((name for name, _ in axes), kind))
        take(len(state) * len(classes[depth]))
        for row, label in classes[depth].items():
            waiting.append((tuple(map(mul, state, row)), (*kind, label)))
    return None


def refute(
    tree: dict[str, Any], facts: dict[str, Any], frame: Frame, path: str, depth: int = 1
) -> None:
    """Raise unless a tree refutes the facts: boxes with lower and upper ends, by name."""
    need(type(tree) is dict and depth <= BRANCHES + 1, f"{path}: too deep, or no object")
    if "branch" in tree:
        keys(tree, path, "branch,most,below,above")
        boxes, most = [], whole(tree["most"], path)
        for part in filled(tree["branch"], list, path):
            keys(part, path, "place,sets")
            boxes.append(read_box(part["place"], part["sets"], frame, path))
        for side, low, high in (("below", None, most), ("above", most + 1, None)):
            facts[f"branch {depth}"] = boxes, low, high
            refute(tree[side], facts, frame, f"{path}, {side}", depth + 1)
        del facts[f"branch {depth}"]
    elif "none" in tree:
        keys(tree, path, "none")
        _, low, high = facts.get(word(tree["none"], path), (None, None, None))
        need(None not in (low, high) and low > high, f"{path}: this count is possible")
    else:
        keys(tree, path, "sum")
        terms, right = [], 0
        for name, multiple in filled(tree["sum"], dict, path).items():
            need(name in facts and whole(multiple, path), f"{path}: {quoted(name)} adds nothing")
            boxes, low, high = facts[name]
            end = low if multiple > 0 else high
            need(end is not None, f"{path}: {quoted(name)} has no such end")
            right += multiple * end
            terms += [(multiple, box) for box in boxes]
        need(right > 0, f"{path}: the sum is no contradiction, its right side is {right}")
        kind = excess(terms, frame)
        need(kind is None, f"{path}: a record of {kind!a} adds more than 0 to the sum")


# Words: all that is printed is made from what the proof uses.


def listed(entries: Iterable[object]) -> str:
    """Return entries joined by commas."""
    return ", ".join(str(entry) for entry in entries)


def range_words(low: int, high: int | None) -> str:
    """Return a range of numbers in words."""
    return f"{low} or more" if high is None else f"{low}" if low == high else f"{low} to {high}"


def kind_words(box: Box) -> str:
    """Return the labels of a box in words."""
    texts = []
    for name, chosen in box.sets.items():
        if type(chosen) is dict:
            parts = [(quoted(label), weight) for label, weight in chosen.items()]
        else:
            parts = [(range_words(first, last), weight) for first, last, weight in chosen]
        times = [part + f" times {weight}" * (weight > 1) for part, weight in parts]
        texts.append(f"{quoted(name)} {' or '.join(times)}")
    return f"with {', '.join(texts)}" if texts else "in all"


def place_words(level: str, code: str, frame: Frame) -> str:
    """Return a place in words, with its code and name."""
    if not code:
        return "" if frame.places == [""] else " in all places"
    name = f" (named {quoted(frame.names[code])})" if code in frame.names else ""
    return f" in {quoted(level)} {quoted(code)}{name}"


def sentence(proof: dict[str, Any]) -> str:
    """Return the sentence that a certificate states."""
    frame = read_frame(proof)
    boxes, texts = read_says(proof, frame), []
    if not boxes:
        return "No records fit these counts."
    for part, box in zip(proof["says"], boxes):
        least, most = part["least"], part["most"]
        ways = {least: "at least", most: "at most" if least != most else "exactly"}
        text = " and ".join(f"{way} {n}" for n, way in ways.items() if n is not None)
        texts.append(f"{text} {kind_words(box)}")
    place = place_words(proof["says"][0]["level"], boxes[0].place, frame)
    more = ", and no others" if proof["kind"] == "records" else ""
    return f"Number of records{place}: {'; '.join(texts)}{more}."


def sum_words(tree: dict[str, Any], facts: dict[str, Any], goal: str) -> str:
    """Return a short refutation in words: a sum of counts, minus others, leaves a number."""
    if "none" in tree:
        return f"{tree['none']} contradicts itself"
    if "branch" in tree or len(tree["sum"]) > SHORT:
        return "by a longer proof, which holds"
    times, left = abs(tree["sum"].get("not", 0)), 0
    plus: list[str] = []
    less: list[str] = []
    sign = -1 if times and goal.startswith("more") else 1
    for name, multiple in tree["sum"].items():
        if name != "not":
            (box,), low, high = facts[name]
            end, way = (low, "at least ") if multiple > 0 else (high, "at most ")
            left += sign * multiple * end
            text = f"{abs(multiple)} times " * (abs(multiple) > 1) + way * (low != high)
            text += f"{end} {kind_words(box)} ({name})"
            (plus if sign * multiple > 0 else less).append(text)
    text = ", plus ".join(plus or ["0"]) + "".join(f", less {part}" for part in less)
    after = ", where 0 can be" if not times else f" for {times} times the number" * (times > 1)
    return f"{text}, leaves {left}{after}"


# The certificate as a whole.


def read_entry(entry: dict[str, Any], frame: Frame, path: str) -> Box:
    """Return the kinds of records of a count or part, at a place of its level."""
    level, place = word(entry["level"], path), word(entry["place"], path)
    need(frame.levels.get(level) == len(place), f"{path}: {quoted(place)} is of another level")
    return read_box(place, entry["sets"], frame, path)


def read_says(proof: dict[str, Any], frame: Frame) -> list[Box]:
    """Return the kinds of records in each part of the sentence."""
    says, boxes = proof["says"], []
    need(type(says) is list, "says: must be a list")
    for i, part in enumerate(says, 1):
        keys(part, f"part {i}", "level,place,sets,least,most")
        boxes.append(read_entry(part, frame, f"part {i}"))
        stated = [optional(part[end], f"part {i}") for end in ("least", "most")]
        need(stated != [None, None], f"part {i}: says nothing")
    need(len({(part["level"], part["place"]) for part in says}) < 2, "says: more than one place")
    right = {"impossible": not boxes, "count": len(boxes) == 1, "records": boxes}
    need(right.get(word(proof["kind"], "kind")), "kind: unknown, or not of so many parts")
    return boxes


def read_counts(proof: dict[str, Any], frame: Frame) -> tuple[dict[str, Any], list[str]]:
    """Return the box and ends of each count by name, and a line of text about each."""
    facts: dict[str, Any] = {}
    lines: list[str] = []
    printed = 0

    def put(line: str) -> None:
        nonlocal printed
        printed += len(line)
        need(printed <= COUNTED, f"the counts take more than {COUNTED} characters")
        lines.append(line)

    for i, count in enumerate(proof["counts"], 1):
        path = f"count {i}"
        keys(count, path, "level,place,table,published,law,low,high,sets")
        box, y = read_entry(count, frame, path), optional(count["published"], path)
        law, low, high = read_law(count["law"], y, path)
        stated = whole(count["low"], path), optional(count["high"], path)
        need(stated == (low, high), f"{path}: by its law it is {range_words(low, high)}")
        facts[path] = [box], low, high
        text = f"{path}{place_words(count['level'], box.place, frame)}: {range_words(low, high)} "
        text += f"{kind_words(box)}; published {law if y is None else f'{y}, {law}'}"
        put(f"{text}; table {quoted(word(count['table'], path))}")
    for i, entry in enumerate(proof["assumed"], 1):
        path = f"assumed {i}"
        keys(entry, path, "sets")
        box = read_box("", entry["sets"], frame, path)
        facts[path] = [box], 0, 0
        put(f"{path}: 0 {kind_words(box)}; such records cannot be")
    return facts, lines


def opposites(proof: dict[str, Any], boxes: list[Box], frame: Frame) -> dict[str, Any]:
    """Return the negations of a certificate's parts by name, each with the part in words."""
    goals: dict[str, Any] = {}
    for i, (part, box) in enumerate(zip(proof["says"], boxes), 1):
        least, most = part["least"], part["most"]
        if least is not None:
            goals[f"fewer {i}"] = ([box], None, least - 1), f"at least {least} {kind_words(box)}"
        if most is not None:
            goals[f"more {i}"] = ([box], most + 1, None), f"at most {most} {kind_words(box)}"
    if proof["kind"] == "records":
        # At least so many of some kinds, and no more of all: no kind may be there twice.
        leasts = [part["least"] for part in proof["says"][:-1]]
        right = None not in leasts and proof["says"][-1]["most"] == sum(leasts)
        need(right and not boxes[-1].sets, "says: the last part must be as many as all, in all")
        kind = excess([(-1, boxes[-1]), *((1, box) for box in boxes[:-1])], frame)
        need(kind is None, f"says: a record of {kind!a} is in more parts than the last")
    return goals or {"all": (None, "a contradiction")}


def report(proof: dict[str, Any], *, everything: bool = False) -> list[str]:
    """Return a certificate's sentence and grounds as lines; raise RefusedError if it fails."""
    need(type(proof) is dict, "a certificate must be an object")
    need(proof.get("format") != OLD, f"{OLD} is not safe: make it again with a newer bayesrisk")
    keys(proof, "certificate", KEYS)
    need(proof["format"] == FORMAT, f"format: must be {FORMAT}")
    for name in ("counts", "assumed"):
        need(type(proof[name]) is list, f"{name}: must be a list")
    frame = read_frame(proof)
    (facts, counted), boxes = read_counts(proof, frame), read_says(proof, frame)
    goals, lines, printed = opposites(proof, boxes, frame), [sentence(proof)], 0
    need(proof["sentence"] == lines[0], f"sentence: must be: {lines[0]}")
    keys(proof["refutations"], "refutations", ",".join(goals))
    for name, (opposite, claim) in goals.items():
        tree = proof["refutations"][name]
        if opposite:
            facts["not"] = opposite
        refute(tree, facts, frame, name)
        lines.append(f"{claim}: {sum_words(tree, facts, name)}")
        printed += len(lines[-1])
        need(printed <= PRINTED, f"the sums take more than {PRINTED} characters")
    names = {code: f" (named {quoted(name)})" for code, name in frame.names.items()}
    lists = {"places": [quoted(code) + names.get(code, "") for code in frame.places]}
    for name, labels in frame.attributes.items():
        if isinstance(labels, range):
            counted.append(f"{quoted(name)}: whole numbers from {labels[0]} to {labels[-1]}")
        else:
            lists[quoted(name)] = [quoted(label) for label in labels]
    for name, entries in lists.items():
        chosen = entries if everything else entries[:LISTED]
        more = f", and {len(entries) - len(chosen)} more (--all)" * (len(chosen) < len(entries))
        counted.append(f"{name}, {len(entries)} in all: {', '.join(chosen)}{more}")
    return [*lines, *counted, CLOSING]


def check(proof: dict[str, Any]) -> str:
    """Return the sentence that a certificate proves; raise RefusedError if it fails."""
    return report(proof)[0]


def read_bytes(file: str) -> bytes:
    """Return the bytes of a regular file, at most one more than a certificate may have."""
    number = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(number, "rb") as stream:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError("it is not a regular file")
        return stream.read(BYTES + 1)


def main(
    arguments: list[str],
    reporter: Callable[..., list[str]] = report,
    purpose: str | None = __doc__,
) -> int:
    """Print what each file proves; return 1 if one is refused, and 2 if one cannot be read."""
    files = [argument for argument in arguments if argument != "--all"]
    if not files or {"-h", "--help"} & set(files):
        print(purpose)
        return 0 if files else 2
    status = 0
    for file in files:
        name = file if re.fullmatch(r"[\w.:/\\~+-]{1,80}", file, re.ASCII) else quoted(file)[-80:]
        try:
            lines = reporter(read(read_bytes(file)), everything="--all" in arguments)
            text = f"{name}: accepted: " + "\n  ".join(lines)
        except RefusedError as error:
            status = max(status, 1)
            text = f"{name}: refused: {error}"[:200]
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            status = 2
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            format_ = "it is no JSON in UTF-8: " * isinstance(error, ValueError)
            text = f"{name}: cannot be read: {format_}{reason!a}"[:200]
        print(text)
    return status


def run(program: Callable[[list[str]], int]) -> int:
    """Run a program; return 141, as shells do, if the reader of its output went away."""
    try:
        status = program(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still held
        return 141
    return status


if __name__ == "__main__":
    sys.exit(run(main))

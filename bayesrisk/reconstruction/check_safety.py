"""Checks certificates of safety: that published counts do not give records or small counts away.

    python check_safety.py safety-0001.json ...

It needs Python 3.9 or later, and check_proof.py in the same folder. A certificate has places and
labels, the published counts with their laws, and the counts that must stay unknown. It also has
explicit data sets: one for the start, and the others as changes of it. Each must fit every
published count. Two that differ show that a count is not known. The data sets are made from the
published counts; none of them claims to be the truth.
"""

# A count is not recovered if two data sets differ in it by more than "within"; one in which all
# agree is none of 1 and 2 if the data sets have another number there.  (The truth fits, too: were
# it known, it would be that number.)  A record is not proved if some data set has none of its kind.

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesrisk.reconstruction.check_proof import Frame

proof: Any = import_module("bayesrisk.reconstruction.check_proof" if __package__ else "check_proof")

FORMAT = "bayesrisk-safety-1"
KEYS = "format,levels,places,names,attributes,counts,asked,limits,within,kinds,start,changes"
SETS, SMALL = 100_000, (1, 2)
LIMITS = ("recovered", "sentences", "proved")
#: Attributes with their labels; and of each kind of record the position of its label in each.
Axes = list[tuple[str, Any]]
Kinds = list[list[tuple[str, int]]]
need, keys, whole, filled = proof.need, proof.keys, proof.whole, proof.filled


def read_weights(
    sets: dict[str, Any], frame: Frame, axes: Axes, kinds: Kinds, path: str
) -> list[int]:
    """Return the weight of each kind of record in a cell."""
    box = proof.read_box("", sets, frame, path)
    rows = {name: proof.label_weights(box, name, labels) for name, labels in axes}
    weights = []
    for kind in kinds:
        weight = 1
        for name, position in kind:
            weight *= rows[name][position]
        weights.append(weight)
    return weights


def read_kinds(document: dict[str, Any], frame: Frame, axes: Axes) -> Kinds:
    """Return the label positions of every kind of record, by attribute."""
    kinds = []
    position = {name: {label: i for i, label in enumerate(labels)} for name, labels in axes}
    for entry in filled(document["kinds"], list, "kinds"):
        if frame.attributes:
            keys(entry, "kinds", ",".join(frame.attributes))
        for name, label in entry.items():
            need(type(label) in (int, str) and label in position[name], f"kinds: {name!a}")
        kinds.append([(name, position[name][label]) for name, label in entry.items()])
    return kinds


def read_records(
    entries: list[list[int]], places: int, kinds: int, path: str
) -> dict[tuple[int, int], int]:
    """Return checked numbers of records by (place, kind)."""
    need(type(entries) is list, f"{path}: must be a list")
    records: dict[tuple[int, int], int] = {}
    for entry in entries:
        need(type(entry) is list and len(entry) == 3, f"{path}: must have place, kind and number")
        place, kind, number = (whole(n, path) for n in entry)
        need(0 <= place < places and 0 <= kind < kinds, f"{path}: no such place or kind")
        need((place, kind) not in records and number, f"{path}: one kind twice, or 0 records")
        records[place, kind] = number
    return records


class CellSums:
    """Counts of all published and requested cells, by the places around each finest place."""

    def __init__(self, document: dict[str, Any], frame: Frame, kinds: Kinds) -> None:
        self.frame, axes = frame, list(frame.attributes.items())
        self.by_place: dict[str, list[tuple[int, list[int]]]] = {}
        self.ends: list[tuple[int, int | None]] = []
        self.stated: dict[tuple[str, str], int] = {}  # place and sets: the least that is published
        weights: dict[str, list[int]] = {}

        def cell(sets: dict[str, Any], path: str) -> tuple[str, list[int]]:
            text = json.dumps(sets, sort_keys=True)
            if text not in weights:
                weights[text] = read_weights(sets, frame, axes, kinds, path)
            return text, weights[text]

        for i, count in enumerate(filled(document["counts"], list, "counts"), 1):
            path = f"count {i}"
            keys(count, path, "level,place,table,published,law,low,high,sets")
            box = proof.read_entry(count, frame, path)
            y = proof.optional(count["published"], path)
            _, low, high = proof.read_law(count["law"], y, path)
            stated = whole(count["low"], path), proof.optional(count["high"], path)
            need(stated == (low, high), f"{path}: its ends are not those of its law")
            text, row = cell(count["sets"], path)
            self.stated[box.place, text] = max(low, self.stated.get((box.place, text), 0))
            self._add(box.place, row, (low, high))
        self.published = len(self.ends)
        self.least: list[int] = []  # of each asked count, by what is published of it alone
        signature: list[list[int]] = []
        for i, entry in enumerate(filled(document["asked"], list, "asked"), 1):
            path = f"asked {i}"
            keys(entry, path, "level,sets")
            width = frame.levels.get(proof.word(entry["level"], path))
            need(width is not None, f"{path}: unknown level")
            text, row = cell(entry["sets"], path)
            signature.append(row)
            for place in sorted({place[:width] for place in frame.places}):
                self.least.append(self.stated.get((place, text), 0))
                self._add(place, row, (0, None))
        classes = list(zip(*signature))
        need(len(set(classes)) == len(classes), "kinds: two that no table tells apart")

    def _add(self, place: str, row: list[int], ends: tuple[int, int | None]) -> None:
        self.by_place.setdefault(place, []).append((len(self.ends), row))
        self.ends.append(ends)

    def counts(self, records: dict[tuple[int, int], int]) -> dict[int, int]:
        """Return the non-zero counts of records given by (place, kind)."""
        sums: dict[int, int] = {}
        for (place, kind), number in records.items():
            code = self.frame.places[place]
            for width in {0, *self.frame.levels.values()}:
                for index, row in self.by_place.get(code[:width], ()):
                    if row[kind]:
                        sums[index] = sums.get(index, 0) + row[kind] * number
        return sums

    def fit(self, index: int, count: int) -> bool:
        """Return whether a count lies within the bounds of its published cell."""
        low, high = self.ends[index]
        return low <= count and (high is None or count <= high)


def limits_kept(document: dict[str, Any]) -> tuple[dict[str, int], Frame, int]:
    """Return the numbers that are not excluded, by limit, the frame, and the number of data sets.

    Refuse a certificate whose data sets do not fit.
    """
    need(type(document) is dict, "a certificate must be an object")
    keys(document, "certificate", KEYS)
    need(document["format"] == FORMAT, f"format: must be {FORMAT}")
    frame = proof.read_frame(document)
    axes = list(frame.attributes.items())
    kinds = read_kinds(document, frame, axes)
    width, sums = whole(document["within"], "within", 0), CellSums(document, frame, kinds)
    size = len(frame.places), len(kinds)
    start = read_records(document["start"], *size, "start")
    need(all(n > 0 for n in start.values()), "start: fewer than 0 records")
    base = sums.counts(start)
    for index in range(sums.published):
        need(sums.fit(index, base.get(index, 0)), f"start: does not fit count {index + 1}")
    changes = document["changes"]
    need(type(changes) is list and len(changes) < SETS, "changes: must be a list")
    low = [base.get(i, 0) for i in range(len(sums.ends))]
    high, least = list(low), dict(start)
    for number, entry in enumerate(changes, 1):
        change = read_records(entry, *size, f"change {number}")
        for key, more in change.items():
            left = start.get(key, 0) + more
            need(left >= 0, f"change {number}: fewer than 0 records")
            if key in least:
                least[key] = min(least[key], left)
        for index, more in sums.counts(change).items():
            count = base.get(index, 0) + more
            if index < sums.published:
                need(sums.fit(index, count), f"change {number}: does not fit count {index + 1}")
            low[index], high[index] = min(low[index], count), max(high[index], count)
    numbers = dict.fromkeys(LIMITS, 0)
    for cell, index in enumerate(range(sums.published, len(sums.ends))):
        a, b = low[index], high[index]
        small = sums.least[cell] <= max(SMALL)
        # The truth is in reach of all data sets if it is known within so many.
        near = any(b - width <= n <= a + width for n in SMALL)
        numbers["recovered"] += small and b - a <= width and near
        numbers["sentences"] += small and a >= 1
    numbers["proved"] = sum(least.values())
    return numbers, frame, len(changes) + 1


def report(document: dict[str, Any]) -> list[str]:
    """Return a certificate's limits that hold, as lines; raise RefusedError if it fails."""
    numbers, frame, sets = limits_kept(document)
    limits, width = document["limits"], document["within"]
    need(type(limits) is dict and limits and set(limits) <= set(LIMITS), "limits: unknown or none")
    words = {
        "recovered": "counts of 1 or 2 are known" + f" within {width}" * (width > 0),
        "sentences": "counts of 1 or 2 are proved to be at least 1",
        "proved": "records are proved",
    }
    lines = [f"{sets} data sets fit all {len(document['counts'])} published counts"]
    for name, most in limits.items():
        text = f"at most {numbers[name]} {words[name]}"
        need(numbers[name] <= whole(most, "limits", 0), f"{text}, and the limit is {most}")
        lines.append(f"{text}, in {len(frame.places)} place(s); the limit is {most}")
    lines.append(
        "Compare the published counts, and the counts that were asked for, with the release. The "
        "data sets are made from it, and none is said to be the truth."
    )
    return lines


def main(arguments: list[str]) -> int:
    """Print what each file shows; return 1 if one is refused, and 2 if one cannot be read."""

    def tell(document: dict[str, Any], **_: bool) -> list[str]:
        try:
            return report(document)
        except (KeyError, TypeError) as error:
            raise proof.RefusedError(f"a key or value is missing: {error}") from error

    return int(proof.main(arguments, tell, __doc__))


if __name__ == "__main__":
    sys.exit(proof.run(main))

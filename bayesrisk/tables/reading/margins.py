"""Margins: columns of counts side by side, of several variables that each add up to one total."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import number_range, total_word

_BITS = 8  # sums of columns hold by chance in one case of 2**8 times those that are looked at
_LONGEST = 40  # columns of a margin without a name


class _Columns:
    """Counts by row and column, and the sums of columns that are known in enough rows."""

    def __init__(self, sheet: Sheet, columns: Sequence[int]) -> None:
        self.position = {i: j for j, i in enumerate(columns)}
        texts = {row[i] for _, row in sheet.rows for i in columns}
        ends = {text: number_range(text) for text in texts}
        exact = {text: end[0] for text, end in ends.items() if end and end[0] == end[1]}
        self.counts = np.array(
            [[exact.get(row[i], -1) for i in columns] for _, row in sheet.rows], np.int64
        ).reshape(len(sheet.rows), len(columns))

    def column(self, column: int) -> IntArray:
        return self.counts[:, self.position[column]]

    def add_up(self, parts: Sequence[int], total: int, bits: float = 0.0) -> bool:
        """Return whether parts are the total in all rows where all are known, with so many bits."""
        places = [self.position[i] for i in parts]
        rows = np.all(self.counts[:, [*places, self.position[total]]] >= 0, axis=1)
        return _sums_hold(self.counts[:, places].sum(axis=1), self.column(total), rows, bits)

    def run(self, columns: Sequence[int], total: int, bits: float) -> int:
        """Return the number of first columns, two or more, that add up to a total; 0 if none do."""
        whole = self.column(total)
        sums, rows = np.zeros(len(whole), np.int64), np.asarray(whole >= 0)
        for size, i in enumerate(columns[:_LONGEST], 1):
            sums, rows = sums + self.column(i), rows & (self.column(i) >= 0)
            if (rows & (sums > whole)).any():
                return 0
            if size > 1 and _sums_hold(sums, whole, rows, bits):
                return size
        return 0

    def runs(
        self, columns: Sequence[int], total: int, bits: float
    ) -> tuple[list[list[int]], list[int]]:
        """Return runs of columns that add up to a total, one after another, and the others."""
        runs, rest, first = list[list[int]](), list[int](), 0
        while first < len(columns):
            size = self.run(columns[first:], total, bits)
            if size:
                runs.append(list(columns[first : first + size]))
            else:
                rest.append(columns[first])
            first += size or 1
        return runs, rest

    def refine(self, fine: Sequence[int], coarse: Sequence[int], bits: float) -> bool:
        """Return whether columns that follow each other add up to each of some others."""
        return all(any(self.run(fine[k:], i, bits) for k in range(len(fine))) for i in coarse)


def _sums_hold(sums: IntArray, whole: IntArray, rows: BoolArray, bits: float) -> bool:
    """Return whether sums are a whole in some rows, where others would fit by chance alone."""
    rows = rows & ((sums > 0) | (whole > 0))
    if not rows.any() or (sums[rows] != whole[rows]).any():
        return False
    return bits == 0 or (rows.sum() > 1 and float(np.log2(whole[rows] + 1.0).sum()) >= bits)


def margins(
    sheet: Sheet, labels: Mapping[int, str], kinds: Mapping[int, str], unnamed: str
) -> dict[int, str]:
    """Return the variable of each column of counts, without that of all; empty for one variable.

    The labels of sexes and of ages each add up to the total.  So do columns of other labels that
    follow each other, of two variables or more; what adds up to one of their labels is a part of
    it.  Whatever is left over is a variable by itself.
    """
    totals = [i for i, label in labels.items() if total_word(label) == 2]
    numbers = list(labels)
    if len(totals) > 1 or len(labels) < 4 or "year" in kinds.values():
        return {}
    counts = _Columns(sheet, numbers)
    bits = _BITS + 2 * math.log2(len(numbers))
    for total in totals or (numbers[0], numbers[-1]):
        groups: dict[str, list[int]] = {}
        for i in numbers:
            if i != total:
                groups.setdefault("" if kinds[i] == unnamed else kinds[i], []).append(i)
        rest = groups.pop("", [])
        if any(len(g) < 2 or not counts.add_up(g, total) for g in groups.values()):
            continue
        if groups and len(rest) > 1 and counts.add_up(rest, total):
            runs, rest = [rest], []
        else:
            runs, rest = counts.runs(rest, total, bits)
        if not totals and len(groups) + len(runs) < 2:  # a sum that holds by chance
            continue
        if any((counts.column(i) > counts.column(total)).any() for i in rest):  # of others, too
            continue
        results = _variables(counts, groups, runs, rest, bits)
        if len({*results.values()}) > 1:
            return results
    return {}


def _variables(
    counts: _Columns, groups: Mapping[str, list[int]], runs: list[list[int]], rest: Sequence[int],
    bits: float,
) -> dict[int, str]:  # fmt: skip
    """Return the variable of each column; parts of a margin are of its variable."""
    names = {group[0]: name for name, group in groups.items()}
    every = sorted([*groups.values(), *runs], key=len)
    outer = {
        fine[0]: next((c[0] for c in every[:k] if counts.refine(fine, c, bits)), fine[0])
        for k, fine in enumerate(every)
    }
    alone = [run[0] for run in runs if outer[run[0]] == run[0]]
    names |= {first: f"category {k}" for k, first in enumerate(alone, 1)}
    while not outer.keys() <= names.keys():
        names |= {first: names[o] for first, o in outer.items() if first not in names if o in names}
    results = {i: names[group[0]] for group in every for i in group}
    for label in list(results):  # what else adds up to a label is a part of it
        parts, rest = counts.runs(rest, label, bits)
        results |= {i: results[label] for run in parts for i in run}
    return results | dict.fromkeys(rest, f"category {len(alone) + 1}")

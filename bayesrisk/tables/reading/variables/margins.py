"""Margins: count columns side by side, of several variables that each add up to one total."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.tables.sheets.sheet import Sheet
from bayesrisk.tables.sheets.texts import number_range, total_word

_BITS = 8  # sums of columns hold by chance in one of 2**8 cases, times the sums tried
_LONGEST = 128  # columns of a margin without a name, such as years of age
_MOST_APART = 64  # columns to search for a tree if they are not adjacent
_MOST_ROWS = 2**14  # to search for a combination of columns; it must hold in all rows
_NO_PART = 1e-9  # the relative residue of a column that is a combination of others


class CountedColumns:
    """Counts by row and column, -1 where unknown, and sums of columns known in enough rows."""

    def __init__(self, counts: IntArray, columns: Sequence[int]) -> None:
        self.counts, self.position = counts, {i: j for j, i in enumerate(columns)}

    @classmethod
    def from_sheet(cls, sheet: Sheet, columns: Sequence[int]) -> "CountedColumns":
        """Return the counts of some columns of a sheet."""
        texts = {row[i] for _, row in sheet.rows for i in columns}
        ends = {text: number_range(text) for text in texts}
        exact = {text: end[0] for text, end in ends.items() if end and end[0] == end[1]}
        rows = [[exact.get(row[i], -1) for i in columns] for _, row in sheet.rows]
        return cls(np.array(rows, np.int64).reshape(len(rows), len(columns)), columns)

    def column(self, column: int) -> IntArray:
        """Return the counts of a column."""
        return self.counts[:, self.position[column]]

    def add_up(self, parts: Sequence[int], total: int, bits: float = 0.0) -> bool:
        """Return whether parts add up to the total in all fully known rows, with enough bits."""
        places = [self.position[i] for i in parts]
        rows = np.all(self.counts[:, [*places, self.position[total]]] >= 0, axis=1)
        return _sums_hold(self.counts[:, places].sum(axis=1), self.column(total), rows, bits)

    def agree(self, groups: Sequence[Sequence[int]], bits: float) -> bool:
        """Return whether several groups of columns have equal sums in all fully known rows."""
        places = [[self.position[i] for i in group] for group in groups]
        stated = np.all(self.counts >= 0, axis=1)
        first, *rest = [self.counts[:, place].sum(axis=1) for place in places]
        return bool(rest) and all(_sums_hold(sums, first, stated, bits) for sums in rest)

    def run(self, columns: Sequence[int], total: int, bits: float) -> int:
        """Return the number of leading columns, two or more, that add up to a total; 0 if none."""
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
        """Return successive runs of columns that each add up to a total, and the other columns."""
        runs, rest, first = list[list[int]](), list[int](), 0
        while first < len(columns):
            size = self.run(columns[first:], total, bits)
            if size:
                runs.append(list(columns[first : first + size]))
            else:
                rest.append(columns[first])
            first += size or 1
        return runs, rest

    def partitions(
        self, columns: Sequence[int], total: int, bits: float
    ) -> tuple[list[list[int]], list[int]]:
        """Return sets of columns that each add up to a total, at any position; and the rest.

        Only fully known rows are used. Adjacent columns of any number form a set if their
        cumulative sums differ by the total. Others form one if the total is a unique combination of
        the independent columns, each at most once.
        """
        rest = list(columns)
        rows = np.all(self.counts[:, [self.position[i] for i in (*rest, total)]] >= 0, axis=1)
        whole = self.column(total)[rows]
        if float(np.log2(whole + 1.0).sum()) < bits + len(rest) or rows.sum() < 2:
            return [], rest
        results, zeros = list[list[int]](), {i for i in rest if not self.column(i).any()}
        while parts := self._combination(rest, whole, rows) or self._long_run(rest, whole, rows):
            inside = {*parts} | {i for i in zeros if min(parts) < i < max(parts)}
            results.append([i for i in rest if i in inside])
            rest = [i for i in rest if i not in inside]
        return results, rest

    def sets(self, columns: Sequence[int], total: int) -> list[list[int]]:
        """Return the runs of columns that add up to a total, or else sets at any position."""
        bits = _BITS + 2 * math.log2(len(self.position))
        runs, _ = self.runs(columns, total, bits)
        return runs or self.partitions(columns, total, bits)[0]

    def _long_run(self, columns: Sequence[int], whole: IntArray, rows: BoolArray) -> list[int]:
        """Return the first adjacent columns that add up to a total, without zeros at their ends."""
        ends = {bytes(np.zeros_like(whole)): 0}  # the last position with each cumulative sum
        sums = np.zeros_like(whole)
        for k, i in enumerate(columns, 1):
            sums = sums + self.column(i)[rows]
            first = ends.get(bytes(sums - whole), k)
            if k - first > 1 and self.column(i)[rows].any():
                return list(columns[first:k])
            ends[bytes(sums)] = k
        return []

    def _combination(self, columns: Sequence[int], whole: IntArray, rows: BoolArray) -> list[int]:
        """Return the independent columns with a unique sum to a total, small ones first.

        A column equal to another one, or the sum of others by few numbers, makes another way.
        Columns without a number do not.
        """
        counts = {i: self.column(i)[rows][:_MOST_ROWS].astype(float) for i in columns}
        basis, free = np.zeros((len(whole[:_MOST_ROWS]), 0)), list[int]()
        chance, doubtful = _BITS + len(columns), list[int]()
        for i in sorted(columns, key=lambda i: counts[i].sum()):  # parts before their sums
            residue = counts[i] - basis @ (basis.T @ counts[i])
            residue -= basis @ (basis.T @ residue)
            size = float(np.linalg.norm(residue))
            if size > _NO_PART * float(np.linalg.norm(counts[i])):
                basis, free = np.column_stack([basis, residue / size]), [*free, i]
            elif counts[i].any() and np.log2(counts[i] + 1.0).sum() < chance:
                doubtful.append(i)
        matrix = np.stack([counts[i] for i in free], axis=1) if free else basis
        right = whole[:_MOST_ROWS].astype(float), *(counts[i] for i in doubtful)
        sides = np.stack(right, axis=1)
        ways = np.rint(np.linalg.lstsq(matrix, sides)[0])
        way = [free[k] for k in np.flatnonzero(ways[:, 0])]
        sums = sum((self.column(i)[rows] for i in way), np.zeros_like(whole))
        other_ways = (ways[:, 1:] != 0).any(axis=1)[ways[:, 0] != 0].any()
        return way if len(way) > 1 and not other_ways and (sums == whole).all() else []

    def refine(self, fine: Sequence[int], coarse: Sequence[int], bits: float) -> bool:
        """Return whether some of the first columns add up to each of some others.

        Few columns may have any position. Many must be adjacent, since numbers are too few for
        their tree.
        """
        few = len(fine) + len(coarse) <= _MOST_APART
        return all(
            any(self.run(fine[k:], i, bits) for k in range(len(fine)))
            or (few and self.partitions(fine, i, bits)[0])
            for i in coarse
        )


def _sums_hold(sums: IntArray, whole: IntArray, rows: BoolArray, bits: float) -> bool:
    """Return whether sums equal a total in some rows, where others would fit only by chance."""
    rows = rows & ((sums > 0) | (whole > 0))
    if not rows.any() or (sums[rows] != whole[rows]).any():
        return False
    return bits == 0 or (rows.sum() > 1 and float(np.log2(whole[rows] + 1.0).sum()) >= bits)


def named_margins(sheet: Sheet, paths: Mapping[int, Sequence[str]]) -> dict[int, str]:
    """Return the heading above each count column that names a variable of all records.

    *Sex* and *Age* do so above groups of columns that each add up to one total. *Rural* and *Urban*
    above the same columns do not. The column of the total alone has an empty name. Without a total,
    several such groups must have equal sums.
    """
    wholes = [i for i, path in paths.items() if not path or total_word(path[0]) == 2]
    groups: dict[str, list[int]] = {}
    for i, path in paths.items():
        if len(path) == 2 and i not in wholes:
            groups.setdefault(path[0], []).append(i)
    labels = [frozenset(paths[i][1] for i in group) for group in groups.values()]
    if len(wholes) > 1 or not groups or len({*labels}) < len(labels):
        return {}
    counts = CountedColumns.from_sheet(sheet, list(paths))
    bits, results = _BITS + 2 * math.log2(len(paths)), dict[int, str]()
    total = wholes[0] if wholes else -1
    totals_by_name = {name: [i for i in group if total_word(paths[i][1]) == 2]
                      for name, group in groups.items()}  # fmt: skip
    for name, totals in sorted(totals_by_name.items(), key=lambda one: not one[1]):
        group = groups[name]
        rest = [i for i in group if i not in totals]
        if len(totals) > 1 or len(rest) < 2 or not (totals or total >= 0):
            continue
        total = totals[0] if total < 0 else total
        if all(counts.add_up([i], total) for i in totals) and counts.add_up(rest, total, bits):
            results |= dict.fromkeys(group, name)
    sizes = [*map(len, groups.values())]
    full = not wholes and total < 0 and min(sizes) > 1 and sum(sizes) == len(paths)
    if full and counts.agree([*groups.values()], bits):
        return {i: name for name, group in groups.items() for i in group}
    if sum(map(len, totals_by_name.values())) == 1 and len({*results.values()}) > 1:
        results[total] = ""  # a single group has the total of all
    several = len({*results.values()}) > 1
    if not wholes and not (several and len(results) == len(paths)):  # totals of other records
        return {}
    return results | dict.fromkeys(wholes, "") if results else {}


def margin_sums(
    sheet: Sheet, paths: Mapping[int, Sequence[str]], kinds: Mapping[int, Sequence[str]],
    unnamed: str,
) -> dict[tuple[int, str], str]:  # fmt: skip
    """Return the variable of labels that are sums of labels beside them: *Persons* beside sexes.

    Or they add up with these to a total: *Minors* beside ages. The keys are depth and label; only
    labels of unknown kind are included.
    """
    results, neighbours = dict[tuple[int, str], str](), dict[tuple[Any, ...], list[int]]()
    for i, path in paths.items():
        for d, kind in enumerate(kinds[i]):
            for group in (kind, ""):  # and those of any variable
                place = (d, group, *path[:d], "", *path[d + 1 :])
                neighbours.setdefault(place, []).append(i)
    columns: dict[tuple[int, str], list[int]] = {}
    for i, path in paths.items():
        for d, kind in enumerate(kinds[i]):
            if kind.startswith(unnamed) and total_word(path[d]) != 2:
                columns.setdefault((d, path[d]), []).append(i)
    named = {d: {ks[d] for ks in kinds.values() if len(ks) > d and not ks[d].startswith(unnamed)}
             for d, _ in columns}  # fmt: skip
    counts = (
        CountedColumns.from_sheet(sheet, list(paths))
        if any(len(named[d]) == 1 for d, _ in columns)
        else None
    )
    for (d, label), positions in columns.items():
        if counts is None or len(named[d]) != 1:
            continue
        kind = min(named[d])
        rests = [(*paths[i][:d], "", *paths[i][d + 1 :]) for i in positions]
        parts = [neighbours.get((d, kind, *rest), []) for rest in rests]
        below = list(zip(positions, parts, strict=True))
        plain = [rest for rest in rests if not any(total_word(x) == 2 for x in rest)]
        groups = [neighbours[d, "", *rest] for rest in plain]
        wholes = [(t, [j for j in js if j != t]) for js in groups
                  for t in js if total_word(paths[t][d]) == 2]  # fmt: skip
        whole = len(wholes) == len(groups) and _all_add_up(counts, wholes)
        if whole or _all_add_up(counts, below):
            results[d, label] = kind
    return results


def _all_add_up(counts: CountedColumns, sums: Sequence[tuple[int, Sequence[int]]]) -> bool:
    """Return whether each total, one or more, is the sum of two parts or more."""
    return bool(sums) and all(len(p) > 1 and counts.add_up(p, i, _BITS) for i, p in sums)


def margins(
    counts: CountedColumns, labels: Mapping[int, str], kinds: Mapping[int, str], unnamed: str
) -> dict[int, str]:
    """Return the variable of each count column except the total; empty for one variable.

    The labels of sexes and of ages each add up to the total. So do other columns, adjacent or not,
    of two variables or more. Columns that add up to one of their labels are its parts. The
    remaining columns are a separate variable.
    """
    totals = [i for i, label in labels.items() if total_word(label) == 2]
    numbers = list(labels)
    if len(totals) > 1 or len(labels) < 4 or "year" in kinds.values():
        return {}
    bits = _BITS + 2 * math.log2(len(numbers))
    largest = max(numbers, key=lambda i: counts.column(i).sum())
    for total in totals or dict.fromkeys((numbers[0], numbers[-1], largest)):
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
            _, left = _variables(counts, groups, runs, rest, bits)
            sets, _ = counts.partitions(left, total, bits)
            if len(groups) + len(runs) + len(sets) > 1:
                used = {*itertools.chain(*sets)}
                runs, rest = [*runs, *sets], [i for i in rest if i not in used]
        if not totals and len(groups) + len(runs) < 2:  # a sum that holds by chance
            continue
        if any((counts.column(i) > counts.column(total)).any() for i in rest):  # of others, too
            continue
        if any((counts.column(i) <= 0).all() for i in rest):  # it may be a part of any sum
            continue
        results, _ = _variables(counts, groups, runs, rest, bits)
        if len({*results.values()}) > 1 or len(groups) + len(runs) > 1:
            return results
    return {}


def _variables(
    counts: CountedColumns, groups: Mapping[str, list[int]], runs: list[list[int]],
    rest: Sequence[int], bits: float,
) -> tuple[dict[int, str], list[int]]:  # fmt: skip
    """Return the variable of each column, and columns of none; parts join that of their sum."""
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
    for label in list(results):  # columns that add up to a label are its parts
        parts, rest = counts.runs(rest, label, bits)
        every += parts
        results |= {i: results[label] for run in parts for i in run}
    for i in list(rest):  # and so are their sums, such as the head of a block
        sums = [run[0] for run in every if counts.refine(run, [i], bits)]
        inside = next((first for first in sorted(sums) if first > i), sums[-1] if sums else None)
        if inside is not None:
            results[i] = results[inside]
            rest = [j for j in rest if j != i]
    return results | dict.fromkeys(rest, f"category {len(alone) + 1}"), list(rest)

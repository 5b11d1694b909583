"""Searches for labels that add up to another one: runs, trees, and sets at any position."""

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bayesrisk._base.validation import IntArray
from bayesrisk.tables.reading.variables.judgements import MANY, MANY_BITS, NearSum
from bayesrisk.tables.reading.variables.sums import LabelSums

_LONGEST = 40  # labels beside one that may add up to it in most groups
_MOST_COMPARED = 2**18  # counts to search for such sums
_MOST_STEPS = 2**14  # labels in all candidate trees
_ALONE = 16  # bits of one group alone
_MOST_ROWS = 200  # groups to compare labels with all others


class SumSearch(LabelSums):
    """Counts by the labels of one variable, to be searched for sums."""

    def runs(self, label: str, rest: Sequence[str], bits: float) -> list[list[str]]:
        """Return runs of labels, from the first on, that add up to a label; the shortest first.

        Two groups or more must show it, with the given bits. A label that is above 0 in none of
        these is no part at an end of the run. Inside the run it must be 0 in all groups. Beside the
        run it must be so too, since it may be a part where it is above 0.
        """
        rows = np.flatnonzero(self.bounded[:, self.column[label]])
        columns = np.array([self.column[k] for k in rest], np.int64)
        mask = self.bounded[np.ix_(rows, columns[:2])].all(axis=1)
        if (mask & (self.high[rows, self.column[label]] > 0)).sum() < 2:
            return []
        parts = np.ix_(rows, columns)
        low, high = self.low[parts].cumsum(axis=1), self.largest[parts].cumsum(axis=1)
        full = np.logical_and.accumulate(self.bounded[parts], axis=1)
        every = self._judged_groups(low, high, full, rows, label)
        telling, good, _, _, weight = [groups.sum(axis=0) for groups in every]
        enough = (good > 1) & (good == telling) & (weight >= bits)
        results, positive = list[list[str]](), self.low[parts] > 0
        empty = self.empty[columns]
        for last in map(int, np.flatnonzero(enough[1:]) + 1):
            telling_rows = np.flatnonzero(every[1][:, last])
            above = np.logical_or.reduce(positive[telling_rows, : last + 1], axis=0)
            first = int(above.argmax())
            fits = (above | empty[: last + 1])[first:].all()
            ends = [*columns[:first], *columns[last + 1 : last + 2]]
            parts_here = columns[first : last + 1].tolist()
            fits = fits and not self._perhaps_parts(ends, parts_here, rows[telling_rows])
            if above[last] and above.sum() > 1 and fits:
                results.append(list(rest[first : last + 1]))
        return results

    def _perhaps_parts(
        self, columns: Sequence[int], parts: Sequence[int], groups: IntArray
    ) -> bool:
        """Return whether a label is 0 in some groups, but perhaps more in others of all parts."""
        places = np.array(columns, np.int64)
        nobody = (self.high[np.ix_(groups, places)] == 0).all(axis=0)
        full = np.flatnonzero(self.present[:, parts].all(axis=1))
        perhaps = (self.present & (self.high > 0))[np.ix_(full, places)].any(axis=0)
        return bool((nobody & perhaps).any())

    def only_run(self, total: str, labels: Sequence[str], bits: float) -> list[str]:
        """Return the only run of labels that adds up to a total; none if several do."""
        bits += 2 * math.log2(len(labels))
        firsts = (self.runs(total, labels[i : i + _LONGEST], bits) for i in range(len(labels)))
        runs = [*dict.fromkeys(map(tuple, itertools.chain(*firsts)))]
        return [*runs[0]] if len(runs) == 1 else []

    def all_but_one(self, total: str, labels: Sequence[str], bits: float) -> list[str]:
        """Return the labels that add up to a total if one of them is left out; else none.

        The one is excluded from the total, in many fully known groups: Puerto Rico beside the
        states of a country. Or labels unknown everywhere are excluded, in groups of many digits.
        """
        parts, counts, whole = self._exactly(total, [k for k in labels if k != total])
        more = counts.sum(axis=1) - whole
        if not more.any() and len(parts) < len(labels) - 1:
            return parts if len(parts) > 1 and np.log2(np.maximum(whole, 1)).sum() >= _ALONE else []
        if (more > 0).sum() < MANY or (more < 0).any():
            return []
        weight = float(np.log2(np.maximum(whole[more > 0], 1)).sum())
        other = np.flatnonzero((counts == more[:, None]).all(axis=0))
        if len(other) != 1 or weight < bits + MANY_BITS:
            return []
        return [k for i, k in enumerate(parts) if i != other[0]]

    def last_run(self, total: str, labels: Sequence[str], bits: float) -> list[str]:
        """Return the last run of labels, if these form two runs or more with one total."""
        parts, counts, whole = self._exactly(total, labels)
        sums, ends = counts.cumsum(axis=1), [0]  # after each run
        while whole.any() and (ends_here := (sums == len(ends) * whole[:, None]).all(axis=0)).any():
            ends.append(int(np.flatnonzero(ends_here)[-1]) + 1)
        weight = (len(ends) - 1) * float(np.log2(np.maximum(whole, 1)).sum())
        weight -= (len(ends) - 2) * math.log2(len(parts) + 1)
        several = len(ends) > 2 and min(np.diff(ends)) > 1 and ends[-1] == len(parts)
        return parts[ends[-2] :] if several and weight >= bits else []

    def _exactly(self, total: str, labels: Sequence[str]) -> tuple[list[str], IntArray, IntArray]:
        """Return the labels that are known somewhere, and their counts in fully known groups.

        The counts of the total come last.
        """
        parts = [k for k in labels if self.bounded[:, self.column[k]].any()]
        columns = [self.column[k] for k in (total, *parts)]
        exact = self.bounded[:, columns] & (self.low[:, columns] == self.high[:, columns])
        counts = self.low[np.ix_(exact.all(axis=1), columns)]
        return parts, counts[:, 1:], counts[:, 0]

    def near(self, labels: Sequence[str], wholes: Collection[str]) -> dict[str, NearSum]:
        """Return for labels, except ``wholes``, the neighbours that add up to each in most groups.

        At least two of the parts are above 0 there, so that no single label equals another.
        """
        results = dict[str, NearSum]()
        small = self.low.size <= _MOST_COMPARED
        for k, label in enumerate(labels) if small else ():
            if not label or label in wholes:
                continue
            for rest in (labels[:k][:-_LONGEST:-1], labels[k + 1 :][:_LONGEST]):
                columns = [self.column[part] for part in rest]
                stated = self.bounded & (self.low == self.high)
                full = np.logical_and.accumulate(stated[:, columns], axis=1)
                full &= stated[:, [self.column[label]]] & (self.low[:, [self.column[label]]] > 0)
                sums = self.low[:, columns].cumsum(axis=1)
                several = (self.low[:, columns] > 0).cumsum(axis=1) > 1
                good = full & several & (sums == self.low[:, [self.column[label]]])
                most = (good.sum(axis=0) >= MANY) & (2 * good.sum(axis=0) > full.sum(axis=0))
                for last in map(int, np.flatnonzero(most)[:1]):
                    parts = sorted(rest[: last + 1], key=labels.index)
                    groups = self.in_groups(label, parts)
                    if label not in results and groups.numbers[-1].sum() >= MANY_BITS:
                        number = f"{good[:, last].sum():,} of {full[:, last].sum():,} groups"
                        results[label] = NearSum(parts, groups, number)
        return results

    def outline(self, labels: Sequence[str], bits: float) -> dict[str, list[str]]:
        """Return the parts of each label, if ordered labels form a tree in only one way.

        The first is the sum of all. Parts follow their sum, and add up to it wherever all are
        known.
        """
        if not len(self.low) or not {*labels} <= {*self.column}:
            return {}
        first = self.column[labels[0]]
        if (self.low > self.high[:, [first]]).any():  # it is no sum of all
            return {}
        chance = math.log2(max(len(labels), 1))
        # For each way: labels without parent yet, the tree, and its bits; as linked lists.
        ways: list[tuple[Any, Any, float]] = [((), (), 0.0)]
        steps, most = 0, _MOST_STEPS + 2 * len(labels)
        for label in reversed(labels):
            following, certain_ones = list[tuple[Any, Any, float]](), list[tuple[Any, Any, float]]()
            for rest, tree, weight in ways:
                sums = [one for one in self._sums_below(label, rest)
                        if len(one[0]) > 1 or one[2] >= bits + chance]  # fmt: skip
                certainty = any(more >= bits + chance + 2 * math.log2(len(parts))
                                for parts, _, more in sums)  # fmt: skip
                more_ways = certain_ones if certainty else following
                more_ways += [((label, rest), tree, weight)] * (not certainty)
                more_ways += [((label, after), ((label, parts), tree), weight + more - chance)
                              for parts, after, more in sums]  # fmt: skip
            ways = certain_ones or following  # a way that omits a certain sum is dropped
            steps += len(ways)
            if steps > most:
                return {}
        whole = [(tree, weight) for (_, after), tree, weight in ways if not after]
        results, (tree, weight) = dict[str, list[str]](), whole[0] if len(whole) == 1 else ((), 0.0)
        while tree and weight >= bits:
            (label, results[label]), tree = tree
        return results

    def _sums_below(self, label: str, rest: Any) -> Iterator[tuple[list[str], Any, float]]:
        """Yield the first labels of a linked list that add up to a label, the rest, and bits."""
        column, parts = self.column[label], list[str]()
        rows = np.flatnonzero(self.bounded[:, column])
        low, high, full = 0 * rows, 0 * rows, rows >= 0
        if not self.high[rows, column].any():  # parts of nobody say nothing
            return
        while rest:
            (part, rest), k = rest, self.column[rest[0]]
            parts.append(part)
            low, high = low + self.low[rows, k], high + self.largest[rows, k]
            full = full & self.bounded[rows, k]
            if (low > self.high[rows, column]).any() or not full.any():
                return
            if (high < self.low[rows, column])[full].any():
                continue
            empty = bool(rest) and not self.high[:, self.column[rest[0]]].any()
            if not empty:
                telling, good, *_, weight = self.judged(low, high, full, rows, label)
                if good and good == telling:
                    yield [*parts], rest, float(weight)

    def scattered(
        self, labels: Sequence[str], rest: Sequence[str], bits: float
    ) -> dict[str, list[str]] | None:
        """Return the parts of each label, if the rest can be divided among them in only one way."""
        options: dict[str, list[list[str]]] = {}
        subsets = [list(s) for n in range(1, len(rest)) for s in itertools.combinations(rest, n)]
        for parts in subsets:
            judge = self.adding_up(parts)
            for label in labels:
                groups = judge(label)
                if groups.good != groups.telling or groups.good < 2 or groups.bits < bits:
                    continue
                telling = self.in_groups(label, parts).numbers[1] > 0
                positive = self.low[:, [self.column[p] for p in parts]][telling] > 0
                if positive.any(axis=0).all():
                    options.setdefault(label, []).append(parts)
        results = {label: parts[0] for label, parts in options.items() if len(parts) == 1}
        used = [part for parts in results.values() for part in parts]
        return results if len(results) == len(options) and sorted(used) == sorted(rest) else None

    def combined(
        self, labels: Sequence[str], trees: Mapping[str, frozenset[str]], bits: float
    ) -> dict[str, list[str]]:
        """Return the parts of each label that is the sum of smaller ones, at any position.

        In fully known groups, labels that are no sums of smaller ones are linearly independent, so
        a sum of them is unique. ``trees`` are sums already shown, by the leaves of their trees.
        Other sums may not overlap these in part.
        """
        names, stated = [*self.column], (self.low == self.high) & self.present
        columns = np.array([self.column[k] for k in labels], np.int64)
        columns = columns[2 * stated[:, columns].sum(axis=0) > len(stated)]
        rows = np.flatnonzero(stated[:, columns].all(axis=1))
        rows = rows[:: len(rows) // (_MOST_ROWS + 1) + 1]
        counts = self.low[np.ix_(rows, columns)]
        wholes, free = dict(trees), list[int]()
        order = counts.sum(axis=0).argsort(kind="stable").tolist()
        parts_here = columns[counts.any(axis=0)].tolist()
        for j in [] if self._perhaps_parts(columns.tolist(), parts_here, rows) else order:
            if len(free) + 1 >= len(counts) or not counts[:, j].any():
                continue
            factors, _, rank, _ = np.linalg.lstsq(counts[:, free] + 0.0, counts[:, j] + 0.0)
            parts = [free[i] for i in np.flatnonzero(np.rint(factors))]
            if not parts or (counts[:, parts].sum(axis=1) != counts[:, j]).any():
                rank = np.linalg.matrix_rank(counts[:, [*free, j]])
                free += [j] * int(rank == len(free) + 1)
                continue
            label, inside = names[columns[j]], frozenset(names[columns[i]] for i in parts)
            groups = self.adding_up([*inside])(label)
            holds = len(parts) > 1 and groups.good == groups.telling > 2 and groups.bits >= bits
            if holds and all(inside <= b or b <= inside or not inside & b for b in wholes.values()):
                wholes.setdefault(label, inside)
        results, names = dict[str, list[str]](), sorted(wholes, key=lambda k: len(wholes[k]))
        for i, label in enumerate(names):
            results[label], rest = [], wholes[label]
            for part in [k for k in reversed(names[:i]) if wholes[k] <= wholes[label]]:
                if wholes[part] <= rest:
                    results[label].append(part)
                    rest -= wholes[part]
            results[label] += [k for k in labels if k in rest]
        return results

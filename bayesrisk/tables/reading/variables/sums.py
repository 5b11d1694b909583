"""Counts by the labels of one variable: groups in which some add up to another, or cannot."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.reading.variables.ages import Ends
from bayesrisk.tables.reading.variables.judgements import (
    MANY,
    MANY_BITS,
    Groups,
    SumInGroups,
    is_balanced,
    judgement,
)
from bayesrisk.tables.sheets.texts import key

MOST_OFF = 6  # the largest effect of changes and rounding on each count of a sum
_FEWEST = 3  # labels, of which one counts all
_MOST_ENTRIES = 2**24
#: The square of two standard deviations of a count changed by 2 at most: a small miss.
_NEAR = 8
_NEARLY, _LISTED = 20, 20  # a list omits at most 1 / 20 of a total; its least labels
#: Groups with withheld counts, the most that one may be, and bits that show their sums.
_FEW_MISSED, _SMALL, _BITS_MISSED = 4, 10, 12
_FEW_FULL = 2  # groups with all labels, beside others with some
_MOST_JOINED = 256  # labels, if each group has few


class CodedLabels:
    """The labels of counts as numbers, with a column for each variable: 0 without label.

    ``spellings`` lists the normalised labels of each variable by number, in order; ``labels`` the
    distinct labels in their original spelling.
    """

    def __init__(self, labels: Sequence[Mapping[str, str]], ends: Sequence[Ends]) -> None:
        self.names = list(dict.fromkeys(itertools.chain.from_iterable(labels)))
        self.spellings: dict[str, list[str]] = {}
        self.labels: dict[str, list[str]] = {}
        self.codes = np.zeros((len(labels), len(self.names)), np.int64)
        for column, name in enumerate(self.names):
            texts = np.array([entry.get(name, "") for entry in labels], dtype=object)
            places, uniques = pd.factorize(texts)
            number = {"": 0}
            codes = np.array([number.setdefault(key(x), len(number)) for x in uniques])
            self.codes[:, column] = codes[places]
            self.spellings[name] = list(number)
            self.labels[name] = list(filter(None, uniques))
        sides = np.fromiter(itertools.chain.from_iterable(ends), np.int64, 2 * len(ends))
        self.low, self.high = sides.reshape(-1, 2).T

    def add_up_together(
        self, totals: Mapping[str, Sequence[str]]
    ) -> tuple[Groups, list[SumInGroups]]:
        """Return the judgement on whether labels of several variables add up to all, and the sum.

        ``totals`` are labels of each variable that count all, perhaps none. The result is empty if
        counts are of all of some variables only: these show the sums of one variable.
        """
        places = [self.names.index(name) for name in totals]
        every = [[i for i, k in enumerate(self.spellings[n]) if not k or k in totals[n]]
                 for n in totals]  # fmt: skip
        whole = np.stack([np.isin(self.codes[:, p], codes)
                          for p, codes in zip(places, every, strict=True)])  # fmt: skip
        if len(places) < 2 or not whole.any() or (whole.any(axis=0) != whole.all(axis=0)).any():
            return Groups(), []
        parts = np.unique(self.codes[:, places], axis=0, return_inverse=True)[1].ravel()
        rest = [p for p in range(len(self.names)) if p not in places]
        groups = np.unique(self.codes[:, rest], axis=0, return_inverse=True)[1].ravel()
        labels = [
            {"group": str(group)} | ({} if counts_all else {"part": str(part)})
            for group, part, counts_all in zip(groups, parts, whole[0], strict=True)
        ]
        ends = list(zip(self.low.tolist(), self.high.tolist(), strict=True))
        sums = LabelSums("part", CodedLabels(labels, ends), {})
        if not sums.implied or len(sums.column) < _FEWEST:
            return Groups(), []
        labelled = [k for k in sums.column if k]
        return sums.adding_up(labelled)(""), [sums.in_groups("", labelled)]

    def following(self, name: str) -> dict[str, list[str]]:
        """Return the labels of variables that ``name`` determines: its levels."""
        column, results = self.codes[:, self.names.index(name)], dict[str, list[str]]()
        for other, codes in zip(self.names, self.codes.T, strict=True):
            pairs = np.unique(column * len(self.spellings[other]) + codes)
            if other != name and pairs.size == np.unique(column).size:
                results[other] = self.spellings[other]
        return results


class LabelSums:
    """Counts by the labels of one variable, in groups that share all other labels.

    Tables have a row for each group and a column for each label, with the smallest and largest
    counts. A count without label has an empty label, or that of the total. ``totals`` are labels of
    each variable that count all, and do not distinguish groups. ``group`` and ``label`` have the
    row and column of each count. The row is -1 if its label is alone in the group.
    """

    def __init__(self, name: str, labels: CodedLabels, totals: Mapping[str, Sequence[str]]) -> None:
        every = next(iter(totals.get(name, ())), "")
        group, label_code = (
            np.zeros(len(labels.codes), np.int64),
            np.zeros(len(labels.codes), np.int64),
        )
        texts = [""]
        for column, other in enumerate(labels.names):
            spelled = labels.spellings[other]
            if other == name:
                label_code, texts = labels.codes[:, column], spelled
                continue
            group_code = np.arange(len(spelled))
            group_code[[i for i, k in enumerate(spelled) if k in totals.get(other, ())]] = 0
            # Groups are renumbered, so that the numbers stay small.
            group = np.unique(group * len(spelled) + group_code[labels.codes[:, column]],
                              return_inverse=True)[1].ravel()  # fmt: skip
        present = np.unique(label_code)
        spelled_here = [texts[code] or every for code in present]
        self.column = {k: i for i, k in enumerate(dict.fromkeys(spelled_here))}
        label_code = np.array([self.column[k] for k in spelled_here], np.int64)[
            np.searchsorted(present, label_code)
        ]
        self.label, self.group = label_code, np.full(len(group), -1)
        # A group of one label has no sum, so tables have only the other groups.
        pairs = pd.unique(group * len(self.column) + label_code) // len(self.column)
        mask = np.bincount(pairs, minlength=int(group.max(initial=-1)) + 1)[group] > 1
        group, label_code = np.unique(group[mask], return_inverse=True)[1], label_code[mask]
        # Tables that are too large have few labels in each group, and show no sums.
        shape = (int(group.max(initial=-1)) + 1, len(self.column))
        shape = shape if shape[0] * shape[1] <= _MOST_ENTRIES else (0, shape[1])
        if shape[0]:
            self.group[mask] = group
        self.low, self.high = np.zeros(shape, np.int64), np.full(shape, UNBOUNDED)
        self.present = np.zeros(shape, np.bool_)
        if shape[0]:
            np.maximum.at(self.low, (group, label_code), labels.low[mask])
            np.minimum.at(self.high, (group, label_code), labels.high[mask])
            self.present[group, label_code] = True
        self.bounded = self.present & (self.high < UNBOUNDED)
        self.largest = np.where(self.bounded, self.high, 0)  # the largest counts, 0 where unknown

    @property
    def implied(self) -> bool:
        """Whether some counts have no label of the variable, and so count all."""
        return "" in self.column

    @cached_property
    def empty(self) -> BoolArray:
        """Whether the count of each label is 0 in all groups."""
        nobody: BoolArray = np.all(~self.present | (self.high == 0), axis=0)
        return nobody

    @cached_property
    def counting(self) -> frozenset[str]:
        """Labels with some known count that may be above 0; others are no sums."""
        positive: BoolArray = np.any(self.largest > 0, axis=0)
        return frozenset(k for k, i in self.column.items() if positive[i])

    def meet(self, labels: Sequence[str]) -> bool:
        """Return whether two of some labels are in one group."""
        columns = [self.column[k] for k in labels]
        return bool((self.present[:, columns].sum(axis=1) > 1).any())

    def judged(
        self, low: IntArray, high: IntArray, full: BoolArray, rows: IntArray, total: str
    ) -> list[NDArray[Any]]:
        """Return the numbers of :class:`Groups` of sums, which may stand in several columns."""
        every = self._judged_groups(low, high, full, rows, total)
        return [groups.sum(axis=0) for groups in every]

    def _judged_groups(
        self, low: IntArray, high: IntArray, full: BoolArray, rows: IntArray, total: str
    ) -> list[NDArray[Any]]:
        """Return the numbers of :class:`Groups` for each group alone.

        ``rows`` are the groups with a known total. ``low`` and ``high`` are the ends of the sum of
        the parts there, ``full`` says whether all are known. A sum that does not fit is always
        informative.
        """
        column, shape = self.column[total], (-1, *[1] * (low.ndim - 1))
        least, most = (end[rows, column].reshape(shape) for end in (self.low, self.high))
        fit, tells = judgement(low, high, least, most)
        above = low > most
        telling = full & (tells | ~fit) | above
        good = telling & fit & ~above
        exact = good & (low == high) & (least == most)
        # The share of the numbers up to the total that fit; the total sets their scale.
        share = (high - low + most - least + 1.0) / (most + 1.0)
        bits = np.where(good, -np.log2(np.where(good, share, 1.0)), 0.0)
        return [telling, good, above, exact, bits]

    def in_groups(self, total: str, parts: Sequence[str]) -> SumInGroups:
        """Return the comparison of a sum of parts with a total in each group."""
        column, positions = self.column[total], [self.column[p] for p in parts]
        rows = np.flatnonzero(self.bounded[:, column])
        full = np.all(self.bounded[:, positions][rows], axis=1)
        low, high = (e[:, positions][rows].sum(axis=1) for e in (self.low, self.largest))
        telling, good, above, exact, bits = self._judged_groups(low, high, full, rows, total)
        least, most = self.low[rows, column], self.high[rows, column]
        missed = np.maximum(low - most, least - high)
        near = telling & ~good & (missed**2 <= _NEAR * (len(parts) + 1)) & (2 * missed < least)
        numbers = np.zeros((7, len(self.low)))
        numbers[:, rows] = telling, good, above, telling & ~good & ~above, exact, near, bits
        cells = np.flatnonzero((self.group >= 0) & np.isin(self.label, [column, *positions]))
        return SumInGroups(numbers, cells, self.group[cells])

    def missing(self, total: str, parts: Sequence[str]) -> tuple[int, int]:
        """Return the groups whose known parts miss a total by little, and the most for one part."""
        column, positions = self.column[total], [self.column[p] for p in parts]
        exact = self.present & (self.low == self.high)
        hidden = (self.present & ~self.bounded)[:, positions].sum(axis=1)
        stated = exact[:, positions].sum(axis=1)
        rows = exact[:, column] & (hidden > 0) & (stated > 0) & (hidden + stated == len(parts))
        whole, hidden = self.low[rows, column], hidden[rows]
        missed = whole - self.low[rows][:, positions].sum(axis=1)
        if len(missed) < _FEW_MISSED or missed.min() < 1:
            return 0, 0
        most = int(np.ceil(missed / hidden).max())
        bits = np.log2((whole + 1) / (most * hidden + 1)).sum()
        return (len(missed), most) if most <= _SMALL and bits >= _BITS_MISSED else (0, 0)

    def nearly_all(self, total: str, parts: Sequence[str]) -> bool:
        """Return whether many parts are nearly all of a total, and no more, in two groups or more.

        Overlapping parts rarely do this by chance in each group.
        """
        column, positions = self.column[total], [self.column[p] for p in parts]
        rows = self.bounded[:, column] & self.bounded[:, positions].all(axis=1)
        low, high = (e[rows][:, positions].sum(axis=1) for e in (self.low, self.high))
        near = (high <= self.low[rows, column]) & (
            _NEARLY * low >= (_NEARLY - 1) * self.high[rows, column]
        )
        return len(parts) >= _LISTED and len(near) > 1 and bool(near.all())

    def adding_up(self, parts: Sequence[str]) -> Callable[[str], Groups]:
        """Return the judgement on whether parts, apart from the label itself, add up to a label."""
        positions, inside = [self.column[p] for p in parts], {*parts}
        low, high = self.low[:, positions].sum(axis=1), self.largest[:, positions].sum(axis=1)
        number = self.bounded[:, positions].sum(axis=1)
        counting = [i for i in positions if self.low[:, i].any()]  # others are 0 in all groups
        positive = np.all(self.low[:, counting] > 0, axis=1)
        middles = np.where(self.low > 0, self.low + self.largest, 0) / 2
        small = np.sqrt(self.low) * np.sqrt(self.largest)  # most counts in 1 to 4 are small
        sides = [ends[:, counting].sum(axis=1) for ends in (middles, small)]
        present = self.present[:, positions].sum(axis=1)

        def judge(label: str) -> Groups:
            column, inner = self.column[label], label in inside
            rows = np.flatnonzero(self.bounded[:, column])
            full = number[rows] - inner == len(parts) - inner
            least = low[rows] - inner * self.low[rows, column]
            most = high[rows] - inner * self.largest[rows, column]
            if full.sum() < _FEW_FULL:  # few groups have all labels: use those with two or more
                mask = (number == present)[rows] & (present[rows] - inner > 1)
                sums, fits, *_ = self.judged(least, most, mask, rows, label)
                if (
                    fits > full.sum()
                    and fits == sums
                    and self._joined(rows[mask], np.array(positions))
                ):
                    full = mask
            every = self._judged_groups(least, most, full, rows, label)
            telling, good, above, exact = (int(groups.sum()) for groups in every[:-1])
            vague = int((full & ~every[0]).sum())
            # The excess of a total over its parts, from the middles of their ranges: in
            # groups of positive parts, or in all, where parts that may be 0 are taken as 0.
            part = inner and column in counting
            missed = [middles[rows, column] - side[rows] + part * ends[rows, column]
                      for side, ends in zip(sides, (middles, small), strict=True)]  # fmt: skip
            balanced = any(is_balanced(*(one[mask] for one in missed))
                           for mask in (full & positive[rows], full))  # fmt: skip
            bits = float(every[-1].sum())
            return Groups(telling, good, above, exact, bits, balanced, vague=vague)

        return judge

    def _joined(self, rows: IntArray, columns: IntArray) -> bool:
        """Return whether groups that lack some labels have labels of one variable.

        They share half of the labels of the smallest group. Or labels in one group are connected,
        and no single label connects two lists: ages and sexes may have only *unknown* in common.
        """
        present = self.present[np.ix_(rows, columns)]
        if 2 * present.all(axis=0).sum() >= present.sum(axis=1).min():
            return True
        size, stated = len(columns), present.astype(np.float32)
        joint = stated.T @ stated > 0
        for i in range(-1, size) if 2 < size <= _MOST_JOINED else ():
            rest = np.arange(size) != i
            _, part = connected_components(joint[np.ix_(rest, rest)], directed=False)
            if (np.bincount(part) > 1).sum() != 1:
                return False
        return 2 < size <= _MOST_JOINED

    def sum_of_present(self, total: str) -> tuple[int, int, float]:
        """Return the groups in which a label is the sum of the others, the number of all, and bits.

        Groups may have different labels. Those with an unknown count are left out.
        """
        column = self.column[total]
        full = ~(self.present & ~self.bounded).any(axis=1) & self.present[:, column]
        rows = np.flatnonzero(full)
        low, high = ((e * self.present)[rows].sum(axis=1) for e in (self.low, self.largest))
        low, high = low - self.low[rows, column], high - self.largest[rows, column]
        telling, good, _, _, bits = self.judged(
            low, high, np.ones(len(rows), np.bool_), rows, total
        )
        return int(good), int(telling), float(bits)

    def missed(
        self, total: str, parts: Sequence[str] | None = None, *, every: bool = True
    ) -> list[tuple[int, int]]:
        """Return the excess of a label over some parts, or all others, and the number of counts.

        Groups have known numbers and ``every`` label, or three labels or more.
        """
        if total not in self.column or len(self.column) < 2:
            return []
        columns = [self.column[k] for k in (total, *(parts or self.column))]
        columns = list(dict.fromkeys(columns))
        present, low = self.present[:, columns], self.low[:, columns]
        number = present.sum(axis=1)
        full = present[:, 0] & ~(present & (low != self.high[:, columns])).any(axis=1)
        full &= (number == len(columns)) if every else (number > 2)
        off = 2 * low[full, 0] - (low * present)[full].sum(axis=1)
        return [*zip(off.tolist(), number[full].tolist(), strict=True)]

    def near_total(self) -> str:
        """Return the label that misses the sum of all others by little; empty if there is none.

        It does so in enough groups of known numbers to exclude chance.
        """
        counts = self.low[(self.present & (self.low == self.high)).all(axis=1)]
        column, most = int(counts.sum(axis=0).argmax()), MOST_OFF * counts.shape[1]
        off = 2 * counts[:, column] - counts.sum(axis=1)
        bits = np.log2((counts[:, column] + 1) / (2 * most + 1))
        if len(off) < MANY or (abs(off) > most).any() or bits[bits > 0].sum() < MANY_BITS:
            return ""
        return [*self.column][column]

    def contradictory(self, ends: Mapping[str, Ends]) -> int:
        """Return the number of groups in which exact counts of ranges contradict each other.

        Let P(a) be the count below a. A range from a to b has P(b + 1) - P(a). All values that
        follow from the first end are compared.
        """
        points = sorted({p for low, high in ends.values() for p in (low, high + 1)})
        position = {p: i for i, p in enumerate(points)}
        below = np.full((len(self.low), len(points)), -1, np.int64)
        below[:, :1] = 0
        wrong, changed = np.zeros(len(self.low), np.bool_), True
        while changed:  # terminates: each pass makes an entry known
            changed = False
            for label, (low, high) in ends.items():
                if label not in self.column:
                    continue
                column, a, b = self.column[label], position[low], position[high + 1]
                stated = self.present[:, column] & (self.low[:, column] == self.high[:, column])
                count, start, end = self.low[:, column], below[:, a], below[:, b]
                wrong |= stated & (start >= 0) & (end >= 0) & (end - start != count)
                for rows, target, value in (
                    (stated & (start >= 0) & (end < 0), b, start + count),
                    (stated & (start < 0) & (end >= count), a, end - count),
                ):
                    if rows.any():
                        below[rows, target], changed = value[rows], True
        return int(wrong.sum())

    def impossible(
        self, groups: Mapping[str, Sequence[int]], wholes: Collection[str], size: int
    ) -> tuple[int, dict[str, int]]:
        """Return the number of groups in which no counts of exclusive labels fit, and doubts.

        A doubt is a label that would be 0 in all groups, several, in which it is withheld. It is
        above 0 wherever it is stated, while others have zeros. Perhaps totals leave it out. If
        every withheld label would be 0 while zeros are stated, all are doubts. ``groups`` are the
        codes that each label counts, of ``size`` codes; ``wholes`` count all. A label counts at
        least as many as its largest parts together, and exactly as many if they are all of it.
        """
        codes: dict[frozenset[int], list[int]] = {}
        for label, column in self.column.items():
            every = range(size) if label in wholes else groups.get(label, ())
            codes.setdefault(frozenset(every), []).append(column)
        top, wrong = np.full(size, -1), np.zeros(len(self.low), np.bool_)
        ends, zero = list[tuple[IntArray, IntArray, int]](), dict[int, BoolArray]()
        for members in sorted(filter(None, codes), key=len):
            columns, inner = codes[members], np.array(sorted(members))
            low, high = self.low[:, columns].max(axis=1), self.high[:, columns].min(axis=1)
            doubled = low > high  # stated twice, which does not concern parts
            low, high = np.where(doubled, 0, low), np.where(doubled, UNBOUNDED, high)
            inside, number = np.unique(top[inner], return_counts=True)
            parts = [(ends[i], n) for i, n in zip(inside, number, strict=True) if i >= 0]
            whole = [one for one, n in parts if one[2] == n]
            least = sum((one[0] for one in whole), np.zeros_like(low))
            low = np.maximum(low, least)
            if sum(one[2] for one in whole) == len(inner):
                most = np.zeros_like(high)
                for one in whole:
                    most = np.minimum(most + one[1], UNBOUNDED)
                for i in inside[inside >= 0]:
                    zero[int(i)] = (high == least) & (ends[i][0] == 0) & (ends[i][1] > 0)
                high = np.minimum(high, most)
            wrong |= low > high
            top[inner] = len(ends)
            ends.append((low, high, len(inner)))
        sets, names = sorted(filter(None, codes), key=len), [*self.column]
        zero_by_label = {names[codes[sets[i]][0]]: is_zero for i, is_zero in zero.items()}
        return int(wrong.sum()), self._left_out(zero_by_label)

    def _left_out(self, zero: Mapping[str, BoolArray]) -> dict[str, int]:
        """Return labels that totals may leave out where withheld, and the number of these groups.

        ``zero`` marks the groups in which a total makes a withheld label 0.
        """
        number, every, alone = dict[str, int](), list[bool](), set[str]()
        for label, is_zero in zero.items() if (self.bounded & (self.high == 0)).any() else ():
            column = self.column[label]
            exact = self.present[:, column] & (self.low[:, column] == self.high[:, column])
            hidden = self.present[:, column] & ~exact
            every += is_zero[hidden].tolist()
            if hidden.any() and is_zero[hidden].all() and exact.any():
                number[label] = int(hidden.sum())
                positive = (self.low[exact, column] > 0).all()
                alone |= {label} if hidden.sum() > 1 and positive else set()
        joint = len(every) > 1 and all(every)
        return {label: n for label, n in number.items() if joint or label in alone}

    def exceeds(self, label: str, other: str) -> bool:
        """Return whether a label counts more than another one in some group."""
        a, b = self.column[label], self.column[other]
        shared = self.present[:, a] & self.present[:, b]
        return bool((shared & (self.low[:, a] > self.high[:, b])).any())

    def exceeded(self) -> set[str]:
        """Return the labels below another one in some group, which do not count all."""
        if not self.present.size:
            return set()
        low = np.where(self.present, self.low, -1)
        largest = low.max(axis=1)
        alone = (low == largest[:, None]).sum(axis=1) == 1
        second = np.where(low == largest[:, None], -1, low).max(axis=1)
        largest_other = np.where((low == largest[:, None]) & alone[:, None], second[:, None],
                          largest[:, None])  # fmt: skip
        less = (self.present & (largest_other > self.high)).any(axis=0)
        return {label for label, column in self.column.items() if less[column]}

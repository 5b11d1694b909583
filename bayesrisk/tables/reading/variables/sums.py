"""Sums between the labels of one variable: in which groups some add up to another."""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.sheets.texts import interval, key

_FEWEST = 3  # labels, of which one counts all
_MOST_ENTRIES = 2**24
_LONGEST = 40  # labels beside one that may add up to it in most groups
_MOST_COMPARED = 2**18  # counts in which such sums are looked for
_MANY, _MANY_BITS = 8, 64  # groups, and bits, that show sums of rounded counts
_MORE = 18  # groups in which 3 standard errors show as much as 2 do in 8 groups
#: Squares of two standard deviations of a count that is changed by 2 at most: a miss by little.
_NEAR = 8
_NEARLY, _LISTED = 20, 20  # the share of a total that a list may leave out, and its labels
_MOST_STEPS = 2**14  # labels in all ways in which they may be a tree
_MOST_EXACT = 20  # groups in which a sum holds, for each in which it does not
_MOST_ROWS = 200  # groups in which labels are compared with all others
_FEW_FULL = 2  # groups with all labels, beside others that have some of them
_MOST_JOINED = 256  # labels of groups that each have few of them
_ALONE = 10  # bits that one group needs, where a sum holds by chance in one case of 1,000
Ends = tuple[int, int]
BoolPair = tuple[BoolArray, BoolArray]


def judgement(low: IntArray, high: IntArray, least: IntArray, most: IntArray) -> BoolPair:
    """Return whether parts may add up to a total, and whether that they do says something.

    The sum of the parts lies from ``low`` to ``high``, the total from ``least`` to ``most``.  It
    says something where what is open is at most half of the total, so that few others would fit.
    """
    fit = (low <= most) & (high >= least)
    return fit, (most > 0) & (2 * (high - low + most - least) <= most)


def _balanced(missed: NDArray[np.float64]) -> bool:
    """Return whether sums miss totals above and below alike, in many groups."""
    errors = 3 if len(missed) >= _MORE else 2  # 2 are exceeded by chance in one case of 20
    return len(missed) >= _MANY and abs(float(missed.mean())) <= float(
        errors * missed.std() / len(missed) ** 0.5
    )


def consecutive(ends: Mapping[str, Ends]) -> list[str]:
    """Return groups of ages that follow each other with the fewest years between, most of these.

    0-17 and 18+ of 0-4, 0-17, 18+ and 65+.
    """
    labels = {end: k for k, end in reversed([*ends.items()])}
    points = sorted({p for low, high in labels for p in (low, high + 1)})
    # From each age on: the years that no group has, less the number of groups, and the first step.
    best = {p: (0, 0, p) for p in points[-1:]}
    from_age: dict[int, list[int]] = {p: [] for p in points}
    for low, high in labels:
        from_age[low].append(high + 1)
    for age, following in reversed([*itertools.pairwise(points)]):
        years, number, _ = best[following]
        steps = [(best[q][0], best[q][1] - 1, q) for q in from_age[age]]
        best[age] = min([(years + following - age, number, following), *steps])
    chain, age = list[str](), points[0] if points else 0
    while points and age != points[-1]:
        if label := labels.get((age, best[age][2] - 1)):
            chain.append(label)
        age = best[age][2]
    return chain


def may_lie_in(part: str, label: str) -> bool:
    """Return whether a label may be a part of another: of two ranges it lies in the other."""
    inner, outer = interval(part), interval(label)
    return not (inner and outer) or outer[0] <= inner[0] <= inner[1] <= outer[1]


def overlapping(ends: Mapping[str, Ends]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the pairs of ranges of which one is inside the other, and those that share a part."""
    inside, across, open_ranges = list[tuple[str, str]](), list[tuple[str, str]](), list[str]()
    position = {label: n for n, label in enumerate(ends)}
    for label in sorted(ends, key=lambda k: (ends[k][0], -ends[k][1])):
        low, high = ends[label]
        open_ranges = [k for k in open_ranges if ends[k][1] >= low]
        for other in (k for k in open_ranges if ends[k] != (low, high)):
            (inside if high <= ends[other][1] else across).append((label, other))
        open_ranges.append(label)
    for pairs in (inside, across):
        pairs.sort(key=lambda pair: (position[pair[0]], position[pair[1]]))
    return inside, across


class Groups(NamedTuple):
    """Numbers of groups in which a sum says something, fits, is too large, and is exact.

    ``bits`` is how unlikely it is that all fit by chance, as minus the logarithm to base 2;
    ``balanced`` says that sums of rounded counts miss totals above and below alike; ``contrary``
    is the number of groups whose ranges of ages contradict each other, ``vague`` of those whose
    counts are all there, as ranges that say nothing.
    """

    telling: int = 0
    good: int = 0
    above: int = 0
    exact: int = 0
    bits: float = 0.0
    balanced: bool = False
    contrary: int = 0
    vague: int = 0

    @classmethod
    def joint(cls, groups: Iterable["Groups"]) -> "Groups":
        """Return the judgement on several sums, such as those of a tree, that show one another."""
        every = [*groups]
        return cls(
            sum(g.telling for g in every), sum(g.good for g in every), sum(g.above for g in every),
            sum(g.exact for g in every), sum(g.bits for g in every),
        )  # fmt: skip

    @property
    def rounded(self) -> bool:
        """Whether sums of rounded counts hold in many groups, and miss the totals by chance."""
        return self.balanced and self.good == self.telling and self.bits >= _MANY_BITS

    @property
    def fitting(self) -> bool:
        """Whether sums of rounded counts or of ranges fit in many groups, too many for chance."""
        return self.good == self.telling >= _MANY and self.bits >= _MANY_BITS

    @property
    def nearly(self) -> bool:
        """Whether a sum holds exactly in all of many groups but a few, one in twenty at most."""
        return 0 < _MOST_EXACT * (self.telling - self.good) <= self.exact and (
            self.bits >= _MANY_BITS
        )

    @property
    def no_chance(self) -> bool:
        """Whether a sum fits in several groups, or in one alone whose numbers have many digits."""
        return self.good > 1 or (self.good > 0 and self.bits >= _ALONE)


class SumInGroups(NamedTuple):
    """A sum of labels by group, with the counts that take part.

    The rows of ``numbers`` are whether it says something, fits, is too large, too small, exact, and
    misses by little for changed counts; and bits.  ``group`` is that of each of ``cells``.
    """

    numbers: NDArray[np.float64]
    cells: IntArray
    group: IntArray

    @property
    def contradicting(self) -> IntArray:
        """The counts of groups in which the sum says something and does not hold."""
        denied: BoolArray = self.numbers[0] > self.numbers[1]
        return np.compress(denied[self.group], self.cells)

    @property
    def certain(self) -> bool:
        """Whether a sum holds wherever it says something, by no chance."""
        return self.show_one_another([self])

    @staticmethod
    def show_one_another(sums: Sequence["SumInGroups"]) -> bool:
        """Return whether sums that names already say hold wherever they say something.

        They do so by no chance exactly in two groups, or in many groups of ranges.
        """
        every = sum((one.numbers.sum(axis=1) for one in sums), np.zeros(7))
        telling, good, _, _, exact, _, bits = every
        enough = (exact > 1 and bits >= _ALONE) or (good >= _MANY and bits >= _MANY_BITS)
        return not sums or bool(telling == good and enough)

    @property
    def holding(self) -> "SumInGroups":
        """The sum without the groups in which it does not hold."""
        return self._replace(numbers=self.numbers * (self.numbers[0] == self.numbers[1]))

    def by_place(self, place: IntArray, number: int) -> NDArray[np.float64]:
        """Return the numbers of the groups at each place; ``place`` is that of every count."""
        size = max(self.numbers.shape[1], 1)
        position, group = np.divmod(np.unique(place[self.cells] * size + self.group), size)
        every = [np.bincount(position, one[group], minlength=number) for one in self.numbers]
        return np.stack(every)


class NearSum(NamedTuple):
    """Parts that add up to a label in most groups, these, and in how many of how many."""

    parts: list[str]
    groups: SumInGroups
    number: str

    def clause(self, label: str, first: Mapping[str, str]) -> str:
        """Return the clause that says so, by the first spelling of each label."""
        return f"; {first[label]!r} is {' + '.join(first[k] for k in self.parts)} in {self.number}"


class CodedLabels:
    """The labels of counts as numbers, a column for each variable: 0 where a count has none.

    ``spellings`` are those of each variable by their number, in the order in which they stand;
    ``labels`` its different labels as they are written.
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

        ``totals`` are labels of each variable that do so, perhaps empty.  Counts of all of some
        variable, but not of each, show the sums of one variable instead.
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
        """Return the labels of variables of which each label of ``name`` has one: its levels."""
        column, results = self.codes[:, self.names.index(name)], dict[str, list[str]]()
        for other, codes in zip(self.names, self.codes.T, strict=True):
            pairs = np.unique(column * len(self.spellings[other]) + codes)
            if other != name and pairs.size == np.unique(column).size:
                results[other] = self.spellings[other]
        return results


class LabelSums:
    """Counts by the labels of one variable, in groups that have all other labels in common.

    A row for each group and a column for each label, of the smallest and the largest count; the
    label of a count that has none of the variable is empty, or that of its total.  ``totals`` are
    labels of each variable that count all, and tell no groups apart.  ``group`` and ``label`` have
    the row and the column of each count; the row is -1 where its label is alone.
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
            # Groups are numbered again, so that the numbers stay small.
            group = np.unique(group * len(spelled) + group_code[labels.codes[:, column]],
                              return_inverse=True)[1].ravel()  # fmt: skip
        present = np.unique(label_code)
        spelled_here = [texts[code] or every for code in present]
        self.column = {k: i for i, k in enumerate(dict.fromkeys(spelled_here))}
        label_code = np.array([self.column[k] for k in spelled_here], np.int64)[
            np.searchsorted(present, label_code)
        ]
        self.label, self.group = label_code, np.full(len(group), -1)
        # A group of one label has no sum: tables are of the others, however many groups there are.
        pairs = pd.unique(group * len(self.column) + label_code) // len(self.column)
        mask = np.bincount(pairs, minlength=int(group.max(initial=-1)) + 1)[group] > 1
        group, label_code = np.unique(group[mask], return_inverse=True)[1], label_code[mask]
        # Where few labels have a count in each group, sums say nothing, and there is no room.
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
        """Whether the count of each label is 0 wherever it stands."""
        nobody: BoolArray = np.all(~self.present | (self.high == 0), axis=0)
        return nobody

    @cached_property
    def counting(self) -> frozenset[str]:
        """Labels of which some count is known that may be above 0: others are no sums."""
        positive: BoolArray = np.any(self.largest > 0, axis=0)
        return frozenset(k for k, i in self.column.items() if positive[i])

    def meet(self, labels: Sequence[str]) -> bool:
        """Return whether two of some labels stand in one group."""
        columns = [self.column[k] for k in labels]
        return bool((self.present[:, columns].sum(axis=1) > 1).any())

    def stands_beside(self, label: str) -> bool:
        """Return whether a label stands in a group with others."""
        return bool(self.present[:, self.column[label]].any())

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

        ``rows`` are the groups in which the total is known, ``low`` and ``high`` there the ends of
        the sum of the parts, ``full`` where all are known.  A sum that does not fit always says
        something.
        """
        column, shape = self.column[total], (-1, *[1] * (low.ndim - 1))
        least, most = (end[rows, column].reshape(shape) for end in (self.low, self.high))
        fit, tells = judgement(low, high, least, most)
        above = low > most
        telling = full & (tells | ~fit) | above
        good = telling & fit & ~above
        exact = good & (low == high) & (least == most)
        # Of the numbers up to the total so many fit; the total itself stands for their scale.
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

    def nearly_all(self, total: str, parts: Sequence[str]) -> bool:
        """Return whether many parts are nearly all of a total, and no more, in two groups or more.

        That parts which overlap are so by chance in each group is rare.
        """
        column, positions = self.column[total], [self.column[p] for p in parts]
        rows = self.bounded[:, column] & self.bounded[:, positions].all(axis=1)
        low, high = (e[rows][:, positions].sum(axis=1) for e in (self.low, self.high))
        near = (high <= self.low[rows, column]) & (
            _NEARLY * low >= (_NEARLY - 1) * self.high[rows, column]
        )
        return len(parts) >= _LISTED and len(near) > 1 and bool(near.all())

    def adding_up(self, parts: Sequence[str]) -> Callable[[str], Groups]:
        """Return the judgement on whether parts, but itself, add up to a label."""
        positions, inside = [self.column[p] for p in parts], {*parts}
        low, high = self.low[:, positions].sum(axis=1), self.largest[:, positions].sum(axis=1)
        number = self.bounded[:, positions].sum(axis=1)
        counting = [i for i in positions if self.low[:, i].any()]  # others are above 0 in no group
        positive = np.all(self.low[:, counting] > 0, axis=1)
        middles = np.where(self.low > 0, self.low + self.largest, 0)
        sides = middles[:, counting].sum(axis=1)
        present = self.present[:, positions].sum(axis=1)

        def judge(label: str) -> Groups:
            column, inner = self.column[label], label in inside
            rows = np.flatnonzero(self.bounded[:, column])
            full = number[rows] - inner == len(parts) - inner
            least = low[rows] - inner * self.low[rows, column]
            most = high[rows] - inner * self.largest[rows, column]
            if full.sum() < _FEW_FULL:  # few groups have all labels: those with two or more of them
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
            # By how much a total exceeds its parts, from the middles of what their laws allow: in
            # groups of parts above 0, or in all, where what may be 0 is taken for it.
            part = middles[rows, column] * (inner and column in counting)
            missed = (middles[rows, column] - sides[rows] + part) / 2
            balanced = _balanced(missed[full & positive[rows]]) or _balanced(missed[full])
            bits = float(every[-1].sum())
            return Groups(telling, good, above, exact, bits, balanced, vague=vague)

        return judge

    def _joined(self, rows: IntArray, columns: IntArray) -> bool:
        """Return whether groups that lack some labels have the others as those of one variable.

        They share half of those that any has.  Or labels that stand in one group are joined, and no
        label alone joins two lists: those of ages and of sexes may have only *unknown* in common.
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
        """Return in how many groups a label is the sum of the others there, of how many, and bits.

        Groups may have different labels; those with an unknown count are left out.
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

    def missed(self, total: str, *, every: bool = True) -> list[tuple[int, int]]:
        """Return by how much a label exceeds the others, and how many counts these are.

        In the groups of known numbers that have ``every`` label, or three or more of them.
        """
        if total not in self.column or len(self.column) < 2:
            return []
        column, number = self.column[total], self.present.sum(axis=1)
        full = self.present[:, column] & ~(self.present & (self.low != self.high)).any(axis=1)
        full &= (number == len(self.column)) if every else (number > 2)
        off = 2 * self.low[full, column] - (self.low * self.present)[full].sum(axis=1)
        return [*zip(off.tolist(), number[full].tolist(), strict=True)]

    def contradictory(self, ends: Mapping[str, Ends]) -> int:
        """Return the number of groups in which exact counts of ranges contradict each other.

        Let P(a) be the count below a.  A range from a to b has P(b + 1) - P(a); all that follow
        from the first end are compared.
        """
        points = sorted({p for low, high in ends.values() for p in (low, high + 1)})
        position = {p: i for i, p in enumerate(points)}
        below = np.full((len(self.low), len(points)), -1, np.int64)
        below[:, :1] = 0
        wrong, changed = np.zeros(len(self.low), np.bool_), True
        while changed:  # ends: each pass makes an entry known
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

    def runs(self, label: str, rest: Sequence[str], bits: float) -> list[list[str]]:
        """Return runs of labels from the first one on that add up to a label, the shortest first.

        In two groups or more that together say so many bits.  A label that is above 0 in none of
        these is no part at an end of the run; inside it has to be 0 wherever it stands.
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
            if above[last] and above.sum() > 1 and fits:
                results.append(list(rest[first : last + 1]))
        return results

    def only_run(self, total: str, labels: Sequence[str], bits: float) -> list[str]:
        """Return the labels beside each other that add up to a total; none where several do."""
        bits += 2 * math.log2(len(labels))
        firsts = (self.runs(total, labels[i : i + _LONGEST], bits) for i in range(len(labels)))
        runs = [*dict.fromkeys(map(tuple, itertools.chain(*firsts)))]
        return [*runs[0]] if len(runs) == 1 else []

    def all_but_one(self, total: str, labels: Sequence[str], bits: float) -> list[str]:
        """Return the labels that add up to a total without one of them; none without such a one.

        One alone is not counted, in many groups whose counts are all known: Puerto Rico beside the
        states of a country.
        """
        parts = [k for k in labels if k != total]
        columns, column = np.array([self.column[k] for k in parts]), self.column[total]
        exact = self.present & (self.low == self.high)
        rows = np.flatnonzero(exact[:, column] & exact[:, columns].all(axis=1))
        counts = self.low[np.ix_(rows, columns)]
        more = counts.sum(axis=1) - self.low[rows, column]
        telling = rows[more > 0]
        if len(telling) < _MANY or (more < 0).any():
            return []
        weight = float(np.log2(np.maximum(self.low[telling, column], 1)).sum())
        other = np.flatnonzero((counts == more[:, None]).all(axis=0))
        if len(other) != 1 or weight < bits + _MANY_BITS:
            return []
        return [k for i, k in enumerate(parts) if i != other[0]]

    def near(self, labels: Sequence[str], wholes: Collection[str]) -> dict[str, NearSum]:
        """Return for labels the neighbours that add up to each in most groups, but for some wholes.

        Two of the parts or more are above 0 there, so that no label alone is the same as another.
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
                most = (good.sum(axis=0) >= _MANY) & (3 * good.sum(axis=0) >= 2 * full.sum(axis=0))
                for last in map(int, np.flatnonzero(most)[:1]):
                    parts = sorted(rest[: last + 1], key=labels.index)
                    groups = self.in_groups(label, parts)
                    if label not in results and groups.numbers[-1].sum() >= _MANY_BITS:
                        number = f"{good[:, last].sum():,} of {full[:, last].sum():,} groups"
                        results[label] = NearSum(parts, groups, number)
        return results

    def outline(self, labels: Sequence[str], bits: float) -> dict[str, list[str]]:
        """Return the parts of each label, where one way alone makes a tree of labels in a row.

        The first is the sum of all; parts follow what they add up to, wherever all are known.
        """
        if not len(self.low) or not {*labels} <= {*self.column}:
            return {}
        first = self.column[labels[0]]
        if (self.low > self.high[:, [first]]).any():  # it is no sum of all
            return {}
        chance = math.log2(max(len(labels), 1))
        # Of each way: labels that are in no other yet, the tree, and its bits; as linked lists.
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
            ways = certain_ones or following  # a way in which a sum is lost is none
            steps += len(ways)
            if steps > most:
                return {}
        whole = [(tree, weight) for (_, after), tree, weight in ways if not after]
        results, (tree, weight) = dict[str, list[str]](), whole[0] if len(whole) == 1 else ((), 0.0)
        while tree and weight >= bits:
            (label, results[label]), tree = tree
        return results

    def _sums_below(self, label: str, rest: Any) -> Iterator[tuple[list[str], Any, float]]:
        """Yield the first labels of a linked list that add up to one, the rest, and the bits."""
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
        """Return the parts of each label, where one way alone divides all the rest among them."""
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
        """Return the parts of each label that is the sum of smaller ones, wherever these stand.

        In groups whose counts are all known, labels that are sums of no smaller ones are linearly
        independent, and what is a sum of them is so in one way.  ``trees`` are sums that are shown
        already, by the last labels of their trees; no other one may have a part of their parts.
        """
        names, stated = [*self.column], (self.low == self.high) & self.present
        columns = np.array([self.column[k] for k in labels], np.int64)
        columns = columns[2 * stated[:, columns].sum(axis=0) > len(stated)]
        counts = self.low[stated[:, columns].all(axis=1)][:_MOST_ROWS, columns]
        wholes, free = dict(trees), list[int]()
        for j in map(int, np.argsort(counts.sum(axis=0), kind="stable")):
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
        results, order = dict[str, list[str]](), sorted(wholes, key=lambda k: len(wholes[k]))
        for i, label in enumerate(order):
            results[label], rest = [], wholes[label]
            for part in [k for k in reversed(order[:i]) if wholes[k] <= wholes[label]]:
                if wholes[part] <= rest:
                    results[label].append(part)
                    rest -= wholes[part]
            results[label] += [k for k in labels if k in rest]
        return results

    def impossible(
        self, groups: Mapping[str, Sequence[int]], wholes: Collection[str], size: int
    ) -> tuple[int, dict[str, int]]:
        """Return in how many groups no counts fit of labels that exclude each other, and doubts.

        A doubt is a label that would be 0 in all groups, so many, in which it is withheld, and is
        above 0 wherever it is stated, beside zeros of others: perhaps totals leave it out there.
        So are all labels if each that is withheld would be 0, beside zeros that are stated.
        ``groups`` are the codes that each label counts, of ``size`` codes; ``wholes`` count all.
        Each label counts as many as the largest of its parts together, and as their sum where they
        are all of it.
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
            doubled = low > high  # stated twice, which is no matter of parts
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
        """Return labels that totals may leave out where they are withheld, and in how many groups.

        ``zero`` says in which groups a total makes a withheld label 0.
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
        """Return the labels below another one in some group: they count not all."""
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

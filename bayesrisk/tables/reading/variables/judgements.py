"""Judgements on sums of labels: in how many groups they hold, and how unlikely that is."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrisk._base.validation import BoolArray, IntArray

MANY, MANY_BITS = 8, 64  # groups, and bits, that show sums of rounded counts
_MORE = 18  # groups in which 3 standard errors show as much as 2 do in 8 groups
_MOST_EXACT = 20  # groups in which a sum holds, for each in which it does not
_ALONE = 10  # bits that one group needs, where a sum holds by chance in one case of 1,000
BoolPair = tuple[BoolArray, BoolArray]


def judgement(low: IntArray, high: IntArray, least: IntArray, most: IntArray) -> BoolPair:
    """Return whether parts may add up to a total, and whether that they do says something.

    The sum of the parts lies from ``low`` to ``high``, the total from ``least`` to ``most``.  It
    says something where what is open is at most half of the total, so that few others would fit.
    """
    fit = (low <= most) & (high >= least)
    return fit, (most > 0) & (2 * (high - low + most - least) <= most)


def is_balanced(missed: NDArray[np.float64], most: NDArray[np.float64]) -> bool:
    """Return whether sums miss totals above and below alike, in many groups.

    ``most`` is by how much they miss these if withheld counts are small, as most counts are.
    """
    errors = 3 if len(missed) >= _MORE else 2  # 2 are exceeded by chance in one case of 20
    if len(missed) < MANY:
        return False
    chance = errors * missed.std() / len(missed) ** 0.5
    return bool(missed.mean() <= chance and most.mean() >= -chance)


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
    def fitting(self) -> bool:
        """Whether sums of rounded counts or of ranges fit in all groups, too many for chance."""
        return self.good == self.telling and self.bits >= MANY_BITS

    @property
    def nearly(self) -> bool:
        """Whether a sum holds exactly in all of many groups but a few, one in twenty at most."""
        return 0 < _MOST_EXACT * (self.telling - self.good) <= self.exact and (
            self.bits >= MANY_BITS
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
        enough = (exact > 1 and bits >= _ALONE) or (good >= MANY and bits >= MANY_BITS)
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

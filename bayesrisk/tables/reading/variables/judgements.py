"""Judgements on sums of labels: the groups in which they hold, and the odds of chance."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrisk._base.validation import BoolArray, IntArray

MANY, MANY_BITS = 8, 64  # groups, and bits, that show sums of rounded counts
_MORE = 18  # groups that need 3 standard errors, where 8 need 2
_MOST_EXACT = 20  # groups in which a sum holds, for each in which it does not
_ALONE = 10  # bits for one group: a sum holds by chance in one case of 1,000
BoolPair = tuple[BoolArray, BoolArray]


def judgement(low: IntArray, high: IntArray, least: IntArray, most: IntArray) -> BoolPair:
    """Return whether parts may add up to a total, and whether this is informative.

    The sum of the parts is from ``low`` to ``high``, the total from ``least`` to ``most``. It is
    informative if the uncertainty is at most half of the total, so that few other totals would fit.
    """
    fit = (low <= most) & (high >= least)
    return fit, (most > 0) & (2 * (high - low + most - least) <= most)


def is_balanced(missed: NDArray[np.float64], most: NDArray[np.float64]) -> bool:
    """Return whether sums miss totals equally above and below, in many groups.

    ``most`` is the miss if withheld counts are small, as most counts are.
    """
    errors = 3 if len(missed) >= _MORE else 2  # chance exceeds 2 in one case of 20
    if len(missed) < MANY:
        return False
    chance = errors * missed.std() / len(missed) ** 0.5
    return bool(missed.mean() <= chance and most.mean() >= -chance)


class Groups(NamedTuple):
    """Numbers of groups in which a sum is informative, fits, is too large, and is exact.

    ``bits`` is minus the log to base 2 of the probability that all fit by chance. ``balanced`` says
    that sums of rounded counts miss totals equally above and below. ``contrary`` counts groups
    whose age ranges contradict each other. ``vague`` counts complete groups with uninformative
    ranges.
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
        """Return the joint judgement on several sums, such as those of a tree."""
        every = [*groups]
        return cls(
            sum(g.telling for g in every), sum(g.good for g in every), sum(g.above for g in every),
            sum(g.exact for g in every), sum(g.bits for g in every),
        )  # fmt: skip

    @property
    def fitting(self) -> bool:
        """Whether sums of rounded counts or ranges fit in all groups, too many for chance."""
        return self.good == self.telling and self.bits >= MANY_BITS

    @property
    def nearly(self) -> bool:
        """Whether a sum holds exactly in many groups and fails in a few, at most one in twenty."""
        return 0 < _MOST_EXACT * (self.telling - self.good) <= self.exact and (
            self.bits >= MANY_BITS
        )

    @property
    def no_chance(self) -> bool:
        """Whether a sum fits in several groups, or in a single one with numbers of many digits."""
        return self.good > 1 or (self.good > 0 and self.bits >= _ALONE)


class SumInGroups(NamedTuple):
    """A sum of labels by group, with its counts.

    The rows of ``numbers`` say whether it is informative, fits, is too large, is too small, and is
    exact. The last two say whether it misses by little, as changed counts do, and have the bits.
    ``group`` is that of each of ``cells``.
    """

    numbers: NDArray[np.float64]
    cells: IntArray
    group: IntArray

    @property
    def contradicting(self) -> IntArray:
        """The counts of groups in which the sum is informative and does not hold."""
        denied: BoolArray = self.numbers[0] > self.numbers[1]
        return np.compress(denied[self.group], self.cells)

    @property
    def certain(self) -> bool:
        """Whether a sum holds wherever it is informative, beyond chance."""
        return self.show_one_another([self])

    @staticmethod
    def show_one_another(sums: Sequence["SumInGroups"]) -> bool:
        """Return whether sums already implied by names hold wherever they are informative.

        Two exact groups, or many groups of ranges, put them beyond chance.
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
        """Return the summed numbers of groups at each place; ``place`` is that of every count."""
        size = max(self.numbers.shape[1], 1)
        position, group = np.divmod(np.unique(place[self.cells] * size + self.group), size)
        every = [np.bincount(position, one[group], minlength=number) for one in self.numbers]
        return np.stack(every)


class NearSum(NamedTuple):
    """Parts that add up to a label in most groups, these groups, and a text on their number."""

    parts: list[str]
    groups: SumInGroups
    number: str

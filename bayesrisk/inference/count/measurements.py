"""Posteriors of many noisy counts from lookup tables, and the noise of a post-processed count.

The noise of a post-processed count is a block's noise less that of its m siblings,
``eta_1 - eta_m``. By symmetry it is a sum of m + 1 discrete Gaussians; in the approximation of S2
it is a sum of two, with scales s and m s (see ``distributions.sums``). It is exact also in the far
tails.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel
from bayesrisk._base.validation import MAX_COUNT, FloatArray, IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.distributions.sums import MAX_TERMS, pair_ripple, sum_ripple
from bayesrisk.inference.count.posterior import NoisyCount

if TYPE_CHECKING:
    import pandas as pd

# Compiled look-up of posteriors by noisy count.  Nothing here checks its arguments.


@kernel
def look_up(
    values: IntArray,
    low: int,
    tables: FloatArray,
    histogram: IntArray,
    posterior: FloatArray,
    ratio: FloatArray,
) -> int:
    """Fill posterior and ratio of each count from a table that starts at ``low``.

    ``tables[j]`` holds both for the count ``low + j``, and ``histogram[j]`` its frequency. The
    result is the number of counts outside; those are not changed.
    """
    size = tables.shape[0]
    outside = 0
    for i in range(values.size):
        j = values[i] - low
        if 0 <= j < size:
            posterior[i] = tables[j, 0]
            ratio[i] = tables[j, 1]
            histogram[j] += 1
        else:
            outside += 1
    return outside


# Tables of posterior and risk ratio by noisy count, one for each noise scale that occurs.


_REACH = 2**15  # a table never goes further from the known count: 1 MB, in the second-level cache
_BEYOND = MAX_COUNT + 1  # no count is so large
_MARGIN = 64  # counts added on each side, so that a table is seldom made again


class _Table:
    """Lookup table for one noise scale, with the number of occurrences of each noisy count."""

    def __init__(self, sigma2: float, prior: float, known_count: int) -> None:
        self.sigma2, self.known_count = sigma2, known_count
        self.question = NoisyCount(sigma2=sigma2, prior=prior, known_count=known_count)
        self.low = known_count
        self.histogram = np.zeros(0, dtype=np.int64)
        self.answers = np.zeros((0, 2))
        self.far: Counter[int] = Counter()

    def ratio(self, counts: IntArray | int) -> FloatArray:
        return np.asarray(self.question.risk_ratio(counts))

    def posterior(self, counts: IntArray) -> FloatArray:
        return np.asarray(self.question.posterior(counts))

    def cover(self, least: int, most: int) -> None:
        """Extend the table to the counts from ``least`` to ``most``, within its largest reach."""
        low, high = self.low, self.low + self.histogram.size
        if low <= least and most < high:
            return
        k = self.known_count
        new_low = min(low, max(least - _MARGIN, k - _REACH))
        new_high = max(high, min(most + _MARGIN, k + _REACH) + 1)
        if new_low == low and new_high == high:
            return
        histogram = np.zeros(new_high - new_low, dtype=np.int64)
        histogram[low - new_low : high - new_low] = self.histogram
        counts = np.arange(new_low, new_high)
        self.answers = np.stack([self.posterior(counts), self.ratio(counts)], axis=1)
        self.low, self.histogram = new_low, histogram

    def fill(self, values: IntArray, posterior: FloatArray, ratio: FloatArray) -> None:
        """Fill in the posterior and risk ratio of each count, and tally the counts."""
        self.cover(int(values.min()), int(values.max()))
        if look_up(values, self.low, self.answers, self.histogram, posterior, ratio):
            far = (values < self.low) | (values >= self.low + self.histogram.size)
            counts = values[far]
            posterior[far], ratio[far] = self.posterior(counts), self.ratio(counts)
            self.far.update(counts.tolist())

    @property
    def cells(self) -> int:
        return int(self.histogram.sum()) + self.far.total()

    def largest(self) -> float:
        present = np.flatnonzero(self.histogram)
        counts = [*self.far, *([int(present[-1]) + self.low] if present.size else [])]
        return float(self.ratio(max(counts)))

    def first_above(self, limits: FloatArray) -> IntArray:
        """Return the smallest noisy count with a risk ratio above each limit (else ``_BEYOND``).

        Found by bisection of the ratios as rounded in the output, which rise with the count.
        """
        low, first = np.full(limits.shape, -MAX_COUNT), np.full(limits.shape, MAX_COUNT)
        while np.any(wide := first - low > 1):
            middle = (low + first) // 2
            above = self.ratio(middle) > limits
            first = np.where(wide & above, middle, first)
            low = np.where(wide & ~above, middle, low)
        return np.where(self.ratio(MAX_COUNT) > limits, first, _BEYOND)

    def exceeding(self, limits: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the number of cells above each limit, and its chance for counts k and k + 1."""
        first = self.first_above(limits)
        start = np.clip(first - self.low, 0, self.histogram.size)
        from_here = np.cumsum([0, *self.histogram[::-1].tolist()])[::-1]  # of each count and above
        far = sorted(self.far.items())
        beyond = np.cumsum([0, *(times for _, times in reversed(far))])[::-1]
        place = np.searchsorted([value for value, _ in far], first)
        offset = np.where(first < _BEYOND, first - self.known_count, 0)
        tails = np.asarray(DiscreteGaussian(self.sigma2).sf(np.array([offset - 1, offset - 2])))
        return from_here[start] + beyond[place], np.where(first < _BEYOND, tails, 0.0)


class MeasurementTables:
    """Posteriors and risk ratios of noisy counts at any scale, and how many exceed a limit.

    The target is in a cell with probability ``prior``; ``known_count`` others are in it.
    """

    def __init__(self, prior: float, known_count: int) -> None:
        self._prior, self._known_count = prior, known_count
        self._tables: dict[float, _Table] = {}

    def _table(self, sigma2: float) -> _Table:
        if sigma2 not in self._tables:
            self._tables[sigma2] = _Table(sigma2, self._prior, self._known_count)
        return self._tables[sigma2]

    def look_up(self, values: IntArray, sigma2: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return posterior and risk ratio of every cell, flattened."""
        posterior, ratio = np.empty(values.size), np.empty(values.size)
        cells = values.shape[1]
        starts = [0, *(np.flatnonzero(np.diff(sigma2)) + 1).tolist(), sigma2.size]
        for first, last in pairwise(starts):
            part = slice(first * cells, last * cells)
            table = self._table(float(sigma2[first]))
            table.fill(values[first:last].reshape(-1), posterior[part], ratio[part])
        return posterior, ratio

    def counted(self) -> tuple[list[float], list[int], list[int]]:
        """Return sorted scales, noisy counts and numbers of cells, as :meth:`add` takes them."""
        totals: dict[tuple[float, int], int] = {}
        for sigma2, table in self._tables.items():
            for place in np.flatnonzero(table.histogram).tolist():
                totals[sigma2, table.low + place] = int(table.histogram[place])
            for count, times in table.far.items():
                totals[sigma2, count] = totals.get((sigma2, count), 0) + times
        order = sorted(totals)
        return [s for s, _ in order], [c for _, c in order], [totals[key] for key in order]

    def add(self, sigma2: Sequence[float], counts: Sequence[int], cells: Sequence[int]) -> None:
        """Add tallies of cells that another process saw."""
        for scale, count, times in zip(sigma2, counts, cells, strict=True):
            self._table(float(scale)).far[int(count)] += int(times)

    @property
    def cells(self) -> int:
        """Return the number of cells seen."""
        return sum(table.cells for table in self._tables.values())

    def largest_ratio(self) -> float:
        """Return the largest risk ratio seen so far, or 1 before any count."""
        return max((table.largest() for table in self._tables.values()), default=1.0)

    def exceedance(self, limits: Sequence[float]) -> "pd.DataFrame":
        """Return the number of cells above each limit, and its mean and error if all is noise.

        With n cells of a scale, each exceeding with probability q, the number has mean n q and
        variance n q (1 - q); scales add up.
        """
        import pandas as pd

        above = np.array(limits, dtype=float)
        number = np.zeros(above.size, dtype=np.int64)
        mean, variance = np.zeros((2, above.size)), np.zeros((2, above.size))
        for table in self._tables.values():
            count, chance = table.exceeding(above)
            number += count
            mean += table.cells * chance
            variance += table.cells * chance * (1.0 - chance)
        frame = pd.DataFrame({"risk_ratio": above, "cells": number})
        for row, kind in enumerate(("known", "one_more")):
            frame[f"expected_{kind}"], frame[f"error_{kind}"] = mean[row], np.sqrt(variance[row])
        return frame


SIBLING_NOISE = ("approximate", "exact")
MAX_SIBLINGS = MAX_TERMS
# A rate at which no count within 2**52 carries evidence above rounding.
_NO_EVIDENCE = 1e-32


class SumLaws(NamedTuple):
    """The distinct laws of sums, and the index of each element's law."""

    number: IntArray  # law of each element of the broadcast arguments, in C order
    rates: FloatArray  # h of each law
    ripples: FloatArray  # their periods, one after the other
    ends: IntArray  # where each begins, and the end of the last

    def ripple(self, law: int) -> FloatArray:
        """Return one period of a law's ripple."""
        return self.ripples[self.ends[law] : self.ends[law + 1]]


def sum_laws(
    precision: FloatArray, terms: IntArray, *, exact: bool, shape: tuple[int, ...]
) -> SumLaws:
    """Return the distinct laws of sums of ``terms`` discrete Gaussians."""
    h, n = np.broadcast_arrays(precision, terms)
    # Beyond these limits the evidence is nothing, or everything, in double precision.
    h = np.clip(h, _NO_EVIDENCE * n, 1e100)
    pairs = np.stack([h.ravel(), n.ravel().astype(np.float64)], axis=1)
    distinct, index = np.unique(pairs, axis=0, return_inverse=True)
    ripples = [
        sum_ripple(float(p), int(n)) if exact else pair_ripple(float(p), int(n))
        for p, n in distinct
    ]
    indices = np.broadcast_to(index.reshape(h.shape), shape)
    return SumLaws(
        number=indices.astype(np.int64).flatten(),
        rates=distinct[:, 0] / distinct[:, 1],
        ripples=np.concatenate(ripples),
        ends=np.cumsum([0, *(ripple.size for ripple in ripples)]).astype(np.int64),
    )

"""Totals that repeat in rows: each row of a group states the total of the group."""

import math
from collections.abc import Iterable, Mapping, Sequence

from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.sheets.texts import number_range, total_word

_LEAST = 3  # sums, with these bits of evidence together
_BITS = 16


def counted_over(
    totals: Sequence[str], counts: Sequence[str], labels: Mapping[int, Sequence[str]],
    *, named: bool,
) -> list[int]:  # fmt: skip
    """Return the label columns over which repeated numbers are totals; empty without evidence.

    The numbers are equal in all rows with the same other labels. The counts of these rows add up to
    them wherever all are known, and to no more elsewhere. Three groups must show it, or one if
    ``named``.
    """
    ends = {text: number_range(text) or (0, UNBOUNDED) for text in {*totals, *counts}}
    for axes in _options(labels):
        if any(total_word(text) for i in axes for text in {*labels[i]}):
            continue
        rest = [column for i, column in labels.items() if i not in axes]
        groups: dict[tuple[str, ...], list[int]] = {}
        for position, texts in enumerate(zip(*rest, strict=True)):
            groups.setdefault(texts, []).append(position)
        sums = _sums([[ends[totals[p]] for p in group] for group in groups.values()],
                       [[ends[counts[p]] for p in group] for group in groups.values()])  # fmt: skip
        least = 1 if named else _LEAST
        if len({*sums}) >= least and sum(math.log2(n + 1) for n in sums) >= _BITS:
            return axes
    return []


def _options(labels: Iterable[int]) -> list[list[int]]:
    """Return the sets of columns to sum over: each one, and all but each one."""
    every = [*labels]
    alone = [[i] for i in every] if len(every) > 1 else []
    return alone + [[j for j in every if j != i] for i in every if len(every) > 2]


def _sums(
    totals: Sequence[Sequence[tuple[int, int]]], counts: Sequence[Sequence[tuple[int, int]]]
) -> list[int]:
    """Return the totals that known counts add up to; none if some group denies it."""
    results = list[int]()
    for whole, parts in zip(totals, counts, strict=True):
        low, high = sum(a for a, _ in parts), sum(b for _, b in parts)
        if len({*whole}) > 1 or not low <= whole[0][1] or not whole[0][0] <= high:
            return []
        if len(parts) > 1 and low == high == whole[0][0] == whole[0][1] > 0:
            results.append(low)
    return results

"""Ranges of ages by their ends: consecutive ones, nested ones and overlapping ones."""

import bisect
import itertools
from collections.abc import Mapping

from bayesrisk.tables.sheets.texts import interval

Ends = tuple[int, int]


def consecutive(ends: Mapping[str, Ends]) -> list[str]:
    """Return consecutive age groups with the fewest years between, and among these the most groups.

    An example is 0-17 and 18+ of 0-4, 0-17, 18+ and 65+.
    """
    labels = {end: k for k, end in reversed([*ends.items()])}
    points = sorted({p for low, high in labels for p in (low, high + 1)})
    # From each age on: the years without group, minus the number of groups, and the first step.
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


def nested_ages(ends: Mapping[str, Ends]) -> dict[str, list[str]]:
    """Return the parts of each range that has others inside; none if they leave years out."""
    results, order = dict[str, list[str]](), [*ends]
    begins = sorted((end[0], number) for number, end in enumerate(ends.values()))
    for label, (low, high) in ends.items():
        first, last = (bisect.bisect_left(begins, (age,)) for age in (low, high + 1))
        after = [order[number] for number in sorted(number for _, number in begins[first:last])]
        inside = {k: ends[k] for k in after if ends[k][1] <= high and ends[k] != (low, high)}
        if inside:
            parts = consecutive(inside)
            years = sum(inside[k][1] - inside[k][0] + 1 for k in parts)
            results[label] = parts if years == high - low + 1 else []
    return results


def may_lie_in(part: str, label: str) -> bool:
    """Return whether a label may be part of another; a range must lie in another range."""
    inner, outer = interval(part), interval(label)
    return not (inner and outer) or outer[0] <= inner[0] <= inner[1] <= outer[1]


def overlapping(ends: Mapping[str, Ends]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the pairs of nested ranges, and the pairs that partly overlap."""
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

"""Who is swapped first: ranks by risk, tiers of ranks, and whole numbers that meet a rate."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray
from bayesrisk.accounting import exact_number
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError

#: Shares of the units by rank of risk, and the probability of being chosen before rescaling.
TIERS = (("0.005", "1"), ("0.195", "0.6"), ("0.3", "0.3"), ("0.5", "0.1"))


def parse_tiers(
    value: Sequence[Sequence[Any]],
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return shares and probabilities, exact."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence) or not value:
        raise ArgumentTypeError(
            f"tiers must be a sequence of (share, probability), got {shown(value)}"
        )
    shares, weights = [], []
    for i, tier in enumerate(value):
        if isinstance(tier, str) or not isinstance(tier, Sequence) or len(tier) != 2:
            raise ArgumentTypeError(f"tiers[{i}] must be (share, probability), got {shown(tier)}")
        numbers = [exact_number(item, f"tiers[{i}]") for item in tier]
        if min(numbers) < 0 or max(numbers) > 1:
            raise ArgumentError(f"tiers[{i}] must be in [0, 1], got {shown(tier)}")
        shares.append(numbers[0])
        weights.append(numbers[1])
    if sum(shares) != 1:
        raise ArgumentError(f"shares of tiers must sum to 1, got {sum(shares)}")
    if not any(weights):
        raise ArgumentError("probabilities of tiers must not all be 0")
    return tuple(shares), tuple(weights)


def tiers_of(
    region: IntArray,
    *,
    frequency: IntArray,
    block_persons: IntArray,
    shares: Sequence[Fraction],
    rng: np.random.Generator,
) -> IntArray:
    """Return the tier of each unit, 0 the riskiest; ranks are taken within each region.

    Rare characteristics come first, among equally rare ones small blocks, then chance.
    """
    count = len(region)
    order = np.lexsort((rng.random(count), block_persons, frequency, region))
    sizes = np.bincount(region)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    tier = np.zeros(count, dtype=np.int64)
    bounds = np.cumsum([Fraction(0), *shares])
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        edges = [int(bound * size + Fraction(1, 2)) for bound in bounds]
        for number, (low, high) in enumerate(pairwise(edges)):
            tier[order[start + low : start + high]] = number
    return tier


def pairs_for_rate(rate: Fraction, count: int) -> int:
    """Return how many pairs swap so that the share of swapped units is nearest the rate."""
    return min(int(rate * count / 2 + Fraction(1, 2)), count // 2)


def apportion(total: int, weights: Sequence[Fraction], limits: Sequence[int]) -> list[int]:
    """Split a whole number in proportion to weights, by largest remainder, within limits.

    What a full part cannot take goes to the others in proportion to their weights.
    """
    parts = [Fraction(0)] * len(weights)
    open_parts = [
        i for i, (w, limit) in enumerate(zip(weights, limits, strict=True)) if w and limit
    ]
    left = Fraction(min(total, sum(limits[i] for i in open_parts)))
    whole = int(left)
    while open_parts and left:
        scale = left / sum((weights[i] for i in open_parts), Fraction(0))
        full = [i for i in open_parts if weights[i] * scale >= limits[i]]
        for i in full or open_parts:
            parts[i] = Fraction(limits[i]) if full else weights[i] * scale
        left = left - sum((parts[i] for i in full), Fraction(0)) if full else Fraction(0)
        open_parts = [i for i in open_parts if i not in set(full)]
    result = [int(part) for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda i: (result[i] - parts[i], i))
    for i in by_remainder[: whole - sum(result)]:
        result[i] += 1
    return result

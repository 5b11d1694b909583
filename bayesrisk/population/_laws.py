"""Laws that the generator draws from, each computed once from the published figures."""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from bayesrisk._types import FloatArray
from bayesrisk.population import _national as national

_SWEEPS = 500
_FAR = 80  # people beyond which a household's tail is below 1e-20
_LARGEST = 20_000  # people in a block: far beyond any draw of the last class


def rake(start: FloatArray, margins: tuple[FloatArray, ...]) -> FloatArray:
    """Return the table nearest to ``start`` (in relative entropy) with the margins given.

    One margin for each axis, all with one total; zeros stay.  Iterative proportional fitting.
    """
    table = np.array(start, dtype=float)
    axes = range(table.ndim)
    for _ in range(_SWEEPS):
        for axis, margin in enumerate(margins):
            others = tuple(a for a in axes if a != axis)
            now = table.sum(axis=others, keepdims=True)
            wanted = np.expand_dims(margin, others)
            table *= np.divide(wanted, now, out=np.zeros_like(now), where=now > 0.0)
    return table


@cache
def household_law() -> FloatArray:
    """Return the joint law of size (7), detailed type (12) and age of householder (9)."""
    start = np.array(national.SIZE_SHAPES).T[:, :, None] * np.array(national.AGE_SHAPES)
    margins = (national.SIZES, national.KINDS, national.HOLDER_AGES)
    law = rake(start, tuple(np.array(m) / national.HOUSEHOLDS for m in margins))
    return np.asarray(law / law.sum())


@cache
def tenure_law() -> FloatArray:
    """Return the law of tenure (4) given the age of the householder (9), one row for each age."""
    ages = np.array(national.HOLDER_AGES) / national.HOUSEHOLDS
    start = np.array(national.TENURE_SHAPES) * ages[:, None]
    joint = rake(start, (ages, np.array(national.TENURE) / national.HOUSEHOLDS))
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _tilted(values: FloatArray, mean: float) -> FloatArray:
    """Return the law of largest entropy on ``values`` with the mean given."""

    def law(tilt: float) -> FloatArray:
        weights = np.exp(tilt * (values - mean) - np.max(tilt * (values - mean)))
        return np.asarray(weights / weights.sum())

    tilt = brentq(lambda t: float(law(t) @ values) - mean, -2.0, 2.0, xtol=1e-14)
    return law(float(tilt))


@cache
def block_law() -> FloatArray:
    """Return the law of the population 1, 2, ... of a block with people.

    Classes have the shares and the mean populations of Table S5; inside a class the law is the one
    of largest entropy with that mean.
    """
    law = np.zeros(_LARGEST + 1)
    total = sum(national.CLASS_BLOCKS)
    for (low, high), blocks, people in zip(
        national.SIZE_CLASSES, national.CLASS_BLOCKS, national.CLASS_PEOPLE, strict=True
    ):
        values = np.arange(low, (high or _LARGEST) + 1)
        law[values] = blocks / total * _tilted(values.astype(float), people / blocks)
    return law


def extra_mean() -> float:
    """Return the mean of what a household of 7 or more has beyond 7 people."""
    seven = sum((i + 1) * n for i, n in enumerate(national.SIZES))
    return (national.HOUSEHOLD_PEOPLE - seven) / national.SIZES[6]


@cache
def overshoot_law() -> FloatArray:
    """Return P(S > d) / E(S), d = 0, 1, ..., for the household size S of the nation.

    That is by how much people who are added household by household pass a far target.
    """
    sizes = np.array(national.SIZES) / national.HOUSEHOLDS
    going_on = extra_mean() / (1.0 + extra_mean())  # geometric beyond 7 people
    beyond = sizes[6] * going_on ** np.arange(_FAR)
    tail = np.concatenate([[1.0], 1.0 - np.cumsum(sizes)[:6], beyond[1:]])
    return np.asarray(tail / tail.sum())


@cache
def group_law() -> FloatArray:
    """Return the law of race (six alone, two or more) by ethnicity, flattened: 14 groups."""
    counts = np.array(national.RACE_ETHNICITY, dtype=float).reshape(-1)
    return np.asarray(counts / counts.sum())


@cache
def several_races() -> tuple[NDArray[np.int64], FloatArray]:
    """Return the bit masks of two or more races, and their law."""
    masks = np.array([m for m in range(1, 64) if m.bit_count() > 1])
    known = national.TWO_OR_MORE
    rest = national.TWO_OR_MORE_TOTAL - sum(known.values())
    share = rest / (len(masks) - len(known))
    counts = np.array([known.get(int(m), share) for m in masks])
    return masks, counts / counts.sum()

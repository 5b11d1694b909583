"""Settings of the generator, presets, and laws computed from published figures."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray
from bayesrisk.census.population.figures import (
    AGE_SHAPES,
    ALL_BLOCKS,
    CLASS_BLOCKS,
    CLASS_PEOPLE,
    GROUP_QUARTERS,
    HOLDER_AGES,
    HOUSEHOLD_PEOPLE,
    HOUSEHOLDS,
    KINDS,
    PEOPLE,
    RACE_ETHNICITY,
    SIZE_CLASSES,
    SIZE_SHAPES,
    SIZES,
    TENURE,
    TENURE_SHAPES,
    TWO_OR_MORE,
    TWO_OR_MORE_TOTAL,
)
from bayesrisk.exceptions import ArgumentError

_SWEEPS = 500
_FAR = 80  # people beyond which a household's tail is below 1e-20
_LARGEST = 20_000  # people in a block: far beyond any draw of the last class


def rake(start: FloatArray, margins: tuple[FloatArray, ...]) -> FloatArray:
    """Return the table nearest to ``start`` (in relative entropy) with the given margins.

    Iterative proportional fitting to one margin per axis, all with one total; zeros stay zero.
    """
    table = np.array(start, dtype=float)
    axes = range(table.ndim)
    for _ in range(_SWEEPS):
        for axis, margin in enumerate(margins):
            margin_axes = tuple(a for a in axes if a != axis)
            current = table.sum(axis=margin_axes, keepdims=True)
            wanted = np.expand_dims(margin, margin_axes)
            table *= np.divide(wanted, current, out=np.zeros_like(current), where=current > 0.0)
    return table


@cache
def household_law() -> FloatArray:
    """Return the joint law of size (7), detailed type (12) and age of householder (9)."""
    start = np.array(SIZE_SHAPES).T[:, :, None] * np.array(AGE_SHAPES)
    margins = (SIZES, KINDS, HOLDER_AGES)
    law = rake(start, tuple(np.array(m) / HOUSEHOLDS for m in margins))
    return np.asarray(law / law.sum())


@cache
def tenure_law() -> FloatArray:
    """Return the law of tenure (4) given the age of the householder (9), one row for each age."""
    ages = np.array(HOLDER_AGES) / HOUSEHOLDS
    start = np.array(TENURE_SHAPES) * ages[:, None]
    joint = rake(start, (ages, np.array(TENURE) / HOUSEHOLDS))
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _tilted(values: FloatArray, mean: float) -> FloatArray:
    """Return the maximum-entropy law on ``values`` with a given mean."""

    def law(tilt: float) -> FloatArray:
        weights = np.exp(tilt * (values - mean) - np.max(tilt * (values - mean)))
        return np.asarray(weights / weights.sum())

    tilt = brentq(lambda t: float(law(t) @ values) - mean, -2.0, 2.0, xtol=1e-14)
    return law(float(tilt))


@cache
def block_law() -> FloatArray:
    """Return the law of the population (1, 2, ...) of an inhabited block.

    Classes have the shares and the mean populations of Table S5; inside a class the law is the one
    of largest entropy with that mean.
    """
    law = np.zeros(_LARGEST + 1)
    total = sum(CLASS_BLOCKS)
    for (low, high), blocks, people in zip(SIZE_CLASSES, CLASS_BLOCKS, CLASS_PEOPLE, strict=True):
        values = np.arange(low, (high or _LARGEST) + 1)
        law[values] = blocks / total * _tilted(values.astype(float), people / blocks)
    return law


def extra_mean() -> float:
    """Return the mean number of people beyond 7 in households of 7 or more."""
    seven = sum((i + 1) * n for i, n in enumerate(SIZES))
    return (HOUSEHOLD_PEOPLE - seven) / SIZES[6]


@cache
def overshoot_law() -> FloatArray:
    """Return P(S > d) / E(S) for d = 0, 1, ..., S being the nation's household size.

    It is the law of the overshoot when households are added until a distant target is reached.
    """
    sizes = np.array(SIZES) / HOUSEHOLDS
    growth = extra_mean() / (1.0 + extra_mean())  # geometric beyond 7 people
    beyond = sizes[6] * growth ** np.arange(_FAR)
    tail = np.concatenate([[1.0], 1.0 - np.cumsum(sizes)[:6], beyond[1:]])
    return np.asarray(tail / tail.sum())


@cache
def group_law() -> FloatArray:
    """Return the shares of the 14 groups: race (six alone, two or more) by Hispanic origin."""
    counts = np.array(RACE_ETHNICITY, dtype=float).reshape(-1)
    return np.asarray(counts / counts.sum())


@cache
def several_races() -> tuple[NDArray[np.int64], FloatArray]:
    """Return the bit masks of two or more races, and their probabilities."""
    masks = np.array([m for m in range(1, 64) if m.bit_count() > 1])
    rest = TWO_OR_MORE_TOTAL - sum(TWO_OR_MORE.values())
    share = rest / (len(masks) - len(TWO_OR_MORE))
    counts = np.array([TWO_OR_MORE.get(int(m), share) for m in masks])
    return masks, counts / counts.sum()


#: Counties of a state, at most: their numbers are odd and have three digits.
COUNTIES = 500
_COUNTS = {"n_blocks": 10**8, "blocks_per_group": 1000, "groups_per_tract": 9,
           "tracts_per_county": 9999}  # fmt: skip
_SHARES = (
    *("occupied_blocks", "quarters_blocks", "household_homogeneity", "tenure_correlation"),
    *("subsidised_blocks", "subsidised_share", "block_mixing_growth"),
)
_POSITIVE = ("tract_mixing", "block_mixing", "bedroom_mixing")
_LIMITS: dict[str, dict[str, Any]] = {
    **{name: {"lower": 1, "upper": most} for name, most in _COUNTS.items()},
    **{name: {"lower": 0.0, "upper": 1.0} for name in _SHARES},
    **{name: {"lower": 0.0, "upper": 1e6, "bounds": "(]"} for name in _POSITIVE},
    "alpha": {"lower": 0.0, "upper": 1.0, "bounds": "(]"},
}


@dataclass(frozen=True)
class PopulationSpec:
    """All settings of a synthetic population except its seed.

    National laws are fixed at the figures of the 2010 Census: household size by type by age, race
    by ethnicity, group quarters, tenure, vacancy, block sizes.

    Attributes
    ----------
    n_blocks : int
        Number of blocks, including those without people; at least 1.
    blocks_per_group, groups_per_tract, tracts_per_county : int
        Nesting of blocks: at most 1,000, 9 and 9,999.
    state : str
        First two digits of every geographic code; no state has 99.
    occupied_blocks : float
        Probability that a block has people, in [0, 1].
    quarters_blocks : float
        Probability that a block with people has group quarters, where on average half of its people
        then live.
    tract_mixing : float
        Dirichlet concentration of a tract's mix of 14 groups of race and ethnicity around the
        nation's, in (0, 1e6]. The smaller it is, the more alike the people of a tract.
    block_mixing, block_mixing_growth : float
        Dirichlet concentration of a block's mix around its tract's: that of a block of one person,
        in (0, 1e6], and the power of the population by which it grows, in [0, 1]. Large blocks are
        more mixed.
    household_homogeneity : float
        Probability that a spouse, partner or other relative has the householder's group regardless
        of the block's mix, in [0, 1].
    tenure_correlation : float
        Correlation between households of one block of the Gaussian score that decides between
        owning and renting, in [0, 1].
    subsidised_blocks : float
        Probability that a block without group quarters and with 11 households or more holds a
        subsidised property.
    subsidised_share : float
        Expected share of subsidised households in such a block, before at least 11 are taken.
    bedroom_mixing : float
        Concentration of a property's shares of units by bedrooms around the nation's, in (0, 1e6].
        The smaller it is, the more often all units are alike.
    alpha : float
        Weight of a placement above the occupancy limit relative to one within it, in (0, 1].
    """

    n_blocks: int
    blocks_per_group: int
    groups_per_tract: int
    tracts_per_county: int
    state: str
    occupied_blocks: float
    quarters_blocks: float
    tract_mixing: float
    block_mixing: float
    block_mixing_growth: float
    household_homogeneity: float
    tenure_correlation: float
    subsidised_blocks: float
    subsidised_share: float
    bedroom_mixing: float
    alpha: float

    def __post_init__(self) -> None:
        """Check every setting."""
        for name, limits in _LIMITS.items():
            whole = check.integer if name in _COUNTS else check.scalar
            object.__setattr__(self, name, whole(getattr(self, name), name, **limits))
        text = self.state
        if not (isinstance(text, str) and len(text) == 2 and text.isascii() and text.isdigit()):
            raise ArgumentError("state", "must be two digits", got=text)
        blocks = self.blocks_per_group * self.groups_per_tract * self.tracts_per_county
        if -(-self.n_blocks // blocks) > COUNTIES:
            raise ArgumentError(
                "n_blocks",
                f"must fit into {COUNTIES} counties of {blocks} blocks",
                shown=self.n_blocks,
            )


# Shapes of geography: 11,078,297 blocks, 217,740 block groups, 73,057 tracts and 3,143 counties in
# 2010.  The four settings of group effects are fitted to Table S6 (see the page on populations).
_NATION = PopulationSpec(
    n_blocks=1000,
    blocks_per_group=51,
    groups_per_tract=3,
    tracts_per_county=23,
    state="99",
    occupied_blocks=sum(CLASS_BLOCKS) / ALL_BLOCKS,
    quarters_blocks=2 * sum(GROUP_QUARTERS) / PEOPLE,
    tract_mixing=8.0,
    block_mixing=0.07,
    block_mixing_growth=0.7,
    household_homogeneity=0.7,
    tenure_correlation=0.3,
    subsidised_blocks=0.1,
    subsidised_share=0.47,
    bedroom_mixing=4.0,
    alpha=1e-4,
)
_BLOCKS = {"tract": 153, "county": 1000, "state": 20_000}


def population_presets() -> list[str]:
    """Return the names of the presets: ``tract``, ``county``, ``state``."""
    return list(_BLOCKS)


def population_spec(name: str, **changes: Any) -> PopulationSpec:
    """Return the settings of a preset, with changes.

    Parameters
    ----------
    name : str
        One of :func:`population_presets`.
    **changes : int, float or str
        Fields of :class:`PopulationSpec` to change.

    Examples
    --------
    >>> population_spec("county", n_blocks=200).n_blocks
    200
    """
    for key in changes:
        check.choice(key, "field", tuple(f.name for f in fields(PopulationSpec)))
    return replace(named_spec(name, "name"), **changes)


def named_spec(name: str, argument: str) -> PopulationSpec:
    """Return the settings of a named preset."""
    check.choice(name, argument, tuple(_BLOCKS))
    return replace(_NATION, n_blocks=_BLOCKS[name])

"""Settings of the generator, and named sets of them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import Seed, generator
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ShapeError

# -----------------------------------------------------------------------------
# Published national figures that the generator starts from, and the shapes it assumes.
#
# Counts are those of the 2010 Census (Summary File 1, Demographic Profile, briefs C2010BR-02,
# C2010BR-13 and C2010BR-14) and of Tables S5 and S6 of the person-level reconstruction study. What
# no published table gives is called *stylised*: a rounded shape, chosen once, stated here and in
# the documentation, and raked to the published margins where there are any.  The figures shape
# synthetic people only: they add up among themselves (which the tests check), and nothing but the
# realism of the population hangs on their last digits, so check them at the source before other
# use.


#: Census blocks of 2010, and those with people, by population range (Table S5).
ALL_BLOCKS = 11_078_297
SIZE_CLASSES = ((1, 9), (10, 49), (50, 99), (100, 249), (250, 499), (500, 999), (1000, None))
CLASS_BLOCKS = (1_823_665, 2_671_753, 994_513, 540_455, 126_344, 40_492, 9_805)
CLASS_PEOPLE = tuple(1000 * n for n in (8_070, 67_598, 69_073, 80_021, 42_911, 27_029, 14_043))
#: Percentage of data-defined people unique on block, sex and age in 38 classes (Table S5).
CLASS_UNIQUE = (81.7, 50.3, 26.9, 12.2, 3.4, 0.8, 0.2)
#: Precision of the modal and of the proportional guess of race and ethnicity, in per cent,
#: against an attacker who knows block, sex and age of everybody (Table S6).
CLASS_MODAL = (94.1, 86.3, 79.0, 74.1, 70.9, 66.3, 60.6)
CLASS_PROPORTIONAL = (91.6, 78.9, 68.9, 62.9, 59.0, 53.6, 47.9)

PEOPLE = 308_745_538
HOUSEHOLD_PEOPLE = 300_758_215
HOUSEHOLDS = 116_716_292
#: Households of 1, ..., 6 people and of 7 or more.
SIZES = (31_204_909, 38_243_218, 18_758_985, 15_625_009, 7_538_631, 3_074_733, 2_270_807)

# Households by detailed type.  Published: married couples, unmarried partners, other families by
# sex and own children, householders alone.  Stylised: the shares of unmarried partners with own
# children (0.321) and with other relatives (0.07), both split evenly between householders of
# either sex.
_MARRIED, _MARRIED_CHILDREN = 56_510_377, 23_588_268
_PARTNERS = 7_744_711
_PARTNERS_CHILDREN = _PARTNERS * 2_980_700 // 9_288_401
_PARTNERS_RELATIVES = _PARTNERS * 7 // 100
_MALE, _MALE_CHILDREN, _MALE_ALONE = 5_777_570, 2_789_424, 13_906_294
_FEMALE, _FEMALE_CHILDREN, _FEMALE_ALONE = 15_250_349, 8_365_912, 17_298_615
_NONFAMILY_NOT_ALONE = 39_177_996 - _MALE_ALONE - _FEMALE_ALONE
_ONLY_NONRELATIVES = _NONFAMILY_NOT_ALONE - (_PARTNERS - _PARTNERS_CHILDREN - _PARTNERS_RELATIVES)


def _without_partners(families: int, with_children: int, alone: int, upper_half: int) -> list[int]:
    """Return alone, own children, relatives, nonrelatives only: no spouse or partner."""
    children = with_children - (_PARTNERS_CHILDREN + upper_half) // 2
    relatives = families - with_children - (_PARTNERS_RELATIVES + upper_half) // 2
    return [alone, children, relatives, (_ONLY_NONRELATIVES + upper_half) // 2]


#: Households by the twelve detailed types, in the order of the household tables.
KINDS = (
    _MARRIED_CHILDREN,
    _MARRIED - _MARRIED_CHILDREN,
    _PARTNERS_CHILDREN,
    _PARTNERS - _PARTNERS_CHILDREN,
    *_without_partners(_FEMALE, _FEMALE_CHILDREN, _FEMALE_ALONE, 1),
    *_without_partners(_MALE, _MALE_CHILDREN, _MALE_ALONE, 0),
)
#: Of unmarried partners, those reported with a partner of the same sex.
SAME_SEX = 901_997 / 7_744_711

#: Age of householder: first age of each class, and counts.  The class 55-64 (21,340,338) is split
#: in proportion to the people of 55-59 and 60-64 years.
HOLDER_STARTS = np.array([15, 25, 35, 45, 55, 60, 65, 75, 85])
_FIFTIES = 21_340_338 * 19_664_805 // (19_664_805 + 16_817_924)
HOLDER_AGES = (
    *(5_400_799, 17_957_375, 21_290_880, 24_907_064, _FIFTIES, 21_340_338 - _FIFTIES),
    *(13_504_517, 8_716_003, 3_599_316),
)

#: Race (six alone, two or more) by ethnicity (not Hispanic, Hispanic).
RACE_ETHNICITY = (
    (196_817_552, 26_735_713),
    (37_685_848, 1_243_471),
    (2_247_098, 685_150),
    (14_465_124, 209_128),
    (481_576, 58_437),
    (604_265, 18_503_103),
    (5_966_481, 3_042_592),
)
#: Largest combinations of two or more races (bit masks); the rest of 9,009,073 is shared evenly.
TWO_OR_MORE = {
    1 | 2: 1_834_212,
    1 | 32: 1_740_924,
    1 | 8: 1_623_234,
    1 | 4: 1_432_309,
    2 | 32: 314_571,
    2 | 4: 269_421,
    8 | 32: 234_462,
    1 | 2 | 4: 230_848,
    2 | 8: 185_595,
    1 | 16: 169_991,
    8 | 16: 165_690,
    1 | 8 | 16: 143_126,
    4 | 32: 115_752,
}
TWO_OR_MORE_TOTAL = 9_009_073

#: People in group quarters of types 1 to 7: correctional, juvenile, nursing, other institutional,
#: college, military, other.
GROUP_QUARTERS = (2_263_602, 151_315, 1_502_264, 76_478, 2_521_090, 338_191, 1_134_383)
#: Stylised: first and last age, and share of men, in group quarters of each type.
QUARTERS_AGES = ((18, 64), (10, 17), (65, 99), (18, 79), (18, 24), (18, 39), (18, 79))
QUARTERS_MEN = (0.91, 0.85, 0.33, 0.5, 0.47, 0.85, 0.6)

#: Vacant units by status: for rent, rented, for sale, sold, seasonal, migrant workers, other.
#: Seasonal, migrant and other: 4,649,298 and 3,676,920; that of migrant workers is rounded.
VACANT = (4_137_567, 206_825, 1_896_796, 421_032, 4_649_298, 24_000, 3_652_920)
#: Tenure: mortgage, free and clear, rented, no rent.  The census publishes 40,730,218 renters;
#: that 5 in 100 of them pay no rent is stylised.
TENURE = (52_979_430, 23_006_644, 40_730_218 * 95 // 100, 40_730_218 - 40_730_218 * 95 // 100)

# Stylised starting tables of the raking: what matters is their shape, not their level.
_S = {  # household sizes 2, ..., 6 and 7 or more
    "couple with children": (0.0, 0.36, 0.38, 0.17, 0.06, 0.03),
    "couple": (0.75, 0.16, 0.06, 0.02, 0.006, 0.004),
    "parent": (0.38, 0.31, 0.17, 0.08, 0.03, 0.03),
    "relatives": (0.55, 0.25, 0.11, 0.05, 0.02, 0.02),
    "nonrelatives": (0.80, 0.13, 0.04, 0.015, 0.01, 0.005),
}
_ALONE = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
SIZE_SHAPES = (
    *((0.0, *_S[name]) for name in ("couple with children", "couple") * 2),
    *((_ALONE, *((0.0, *_S[name]) for name in ("parent", "relatives", "nonrelatives"))) * 2),
)
AGE_SHAPES = (  # by detailed type, householder's age in nine classes
    (0.03, 0.27, 0.42, 0.24, 0.025, 0.01, 0.005, 0.0, 0.0),
    (0.02, 0.09, 0.08, 0.19, 0.14, 0.14, 0.20, 0.11, 0.03),
    (0.15, 0.45, 0.28, 0.10, 0.01, 0.005, 0.005, 0.0, 0.0),
    (0.15, 0.33, 0.15, 0.17, 0.07, 0.05, 0.05, 0.02, 0.01),
    (0.04, 0.10, 0.07, 0.14, 0.11, 0.11, 0.18, 0.17, 0.08),
    (0.10, 0.34, 0.34, 0.19, 0.02, 0.005, 0.005, 0.0, 0.0),
    (0.05, 0.10, 0.12, 0.23, 0.12, 0.10, 0.14, 0.10, 0.04),
    (0.30, 0.28, 0.09, 0.13, 0.06, 0.05, 0.05, 0.03, 0.01),
    (0.05, 0.17, 0.14, 0.21, 0.11, 0.10, 0.12, 0.07, 0.03),
    (0.06, 0.28, 0.36, 0.25, 0.03, 0.01, 0.01, 0.0, 0.0),
    (0.10, 0.17, 0.12, 0.20, 0.11, 0.09, 0.12, 0.07, 0.02),
    (0.25, 0.35, 0.14, 0.13, 0.05, 0.03, 0.03, 0.01, 0.01),
)
TENURE_SHAPES = (  # by age of householder: mortgage, free and clear, rented, no rent
    (0.14, 0.02, 0.80, 0.04),
    (0.39, 0.03, 0.55, 0.03),
    (0.55, 0.07, 0.36, 0.02),
    (0.57, 0.14, 0.27, 0.02),
    (0.51, 0.24, 0.23, 0.02),
    (0.46, 0.32, 0.20, 0.02),
    (0.32, 0.48, 0.18, 0.02),
    (0.16, 0.62, 0.20, 0.02),
    (0.08, 0.58, 0.31, 0.03),
)

#: Who lives with a householder: codes of the column ``relationship``.
HOLDER, SPOUSE, PARTNER, CHILD, RELATIVE, NONRELATIVE, IN_QUARTERS = range(7)
#: Roles of further members, by code: relationship, and whether a minor.
ROLES = (
    (CHILD, True),
    (CHILD, False),
    (RELATIVE, False),
    (RELATIVE, True),
    (NONRELATIVE, False),
    (NONRELATIVE, True),
)
# Stylised: law of the role of the member that makes the type, and of every further member.
_OWN = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_KIN = (0.0, 0.50, 0.36, 0.14, 0.0, 0.0)
_OTHERS = (0.0, 0.0, 0.0, 0.0, 0.97, 0.03)
_WITH_COUPLE = (0.74, 0.13, 0.05, 0.04, 0.025, 0.015)
_WITH_PARENT = (0.62, 0.17, 0.08, 0.05, 0.07, 0.01)
_NO_CHILDREN = (0.0, 0.68, 0.13, 0.10, 0.07, 0.02)
_WITH_PARTNER = (0.0, 0.25, 0.15, 0.10, 0.40, 0.10)
_WITH_KIN = (0.0, 0.37, 0.28, 0.24, 0.09, 0.02)
FIRST_ROLES = (
    *(_OWN, _NO_CHILDREN, _OWN, _WITH_PARTNER),
    *(_OTHERS, _OWN, _KIN, _OTHERS) * 2,
)
FURTHER_ROLES = (
    *(_WITH_COUPLE, _NO_CHILDREN, _WITH_COUPLE, _WITH_PARTNER),
    *(_OTHERS, _WITH_PARENT, _WITH_KIN, _OTHERS) * 2,
)
#: Stylised: a husband is older by this many years, with this standard deviation.
COUPLE_GAP = (2.3, 4.5)
#: Share of boys among births in the United States (1,048 boys for 1,000 girls).
BOYS = 1048 / 2048
#: Stylised: share of men among grown children at home and among nonrelatives.
GROWN_MEN = 0.55
#: Stylised: share of parents among grown relatives, and the years that the others (brothers,
#: nieces, grown grandchildren) are younger than the householder on average; the standard
#: deviation, also of nonrelatives.
PARENTS = 0.25
YOUNGER, PEER_SPREAD = 12, 8.0

#: Stylised national profile of subsidised households: householder not Hispanic and White, Black,
#: American Indian, Asian or Pacific; Hispanic; with children.
SUBSIDISED_PROFILE = (0.35, 0.42, 0.01, 0.04, 0.17, 0.38)
#: Stylised shares of subsidised units with at most 1, with 2, and with 3 or more bedrooms.
BEDROOMS = (0.45, 0.40, 0.15)
#: The smallest property whose figures are published (units).
SMALLEST_PROPERTY = 11


# -----------------------------------------------------------------------------
# Laws that the generator draws from, each computed once from the published figures.


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
    total = sum(CLASS_BLOCKS)
    for (low, high), blocks, people in zip(SIZE_CLASSES, CLASS_BLOCKS, CLASS_PEOPLE, strict=True):
        values = np.arange(low, (high or _LARGEST) + 1)
        law[values] = blocks / total * _tilted(values.astype(float), people / blocks)
    return law


def extra_mean() -> float:
    """Return the mean of what a household of 7 or more has beyond 7 people."""
    seven = sum((i + 1) * n for i, n in enumerate(SIZES))
    return (HOUSEHOLD_PEOPLE - seven) / SIZES[6]


@cache
def overshoot_law() -> FloatArray:
    """Return P(S > d) / E(S), d = 0, 1, ..., for the household size S of the nation.

    That is by how much people who are added household by household pass a far target.
    """
    sizes = np.array(SIZES) / HOUSEHOLDS
    growth = extra_mean() / (1.0 + extra_mean())  # geometric beyond 7 people
    beyond = sizes[6] * growth ** np.arange(_FAR)
    tail = np.concatenate([[1.0], 1.0 - np.cumsum(sizes)[:6], beyond[1:]])
    return np.asarray(tail / tail.sum())


@cache
def group_law() -> FloatArray:
    """Return the law of race (six alone, two or more) by ethnicity, flattened: 14 groups."""
    counts = np.array(RACE_ETHNICITY, dtype=float).reshape(-1)
    return np.asarray(counts / counts.sum())


@cache
def several_races() -> tuple[NDArray[np.int64], FloatArray]:
    """Return the bit masks of two or more races, and their law."""
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
    """Everything that a synthetic population is made from, but for its seed.

    National laws (household size by type by age, race by ethnicity, group quarters, tenure,
    vacancy, block sizes) are fixed at the figures of the 2010 Census and not part of it.

    Attributes
    ----------
    n_blocks : int
        Blocks in all, those without people included; at least 1.
    blocks_per_group, groups_per_tract, tracts_per_county : int
        How blocks nest: at most 1,000, 9 and 9,999.
    state : str
        Two digits that every geographic code begins with; no state has 99.
    occupied_blocks : float
        Probability that a block has people, in [0, 1].
    quarters_blocks : float
        Probability that a block with people has group quarters; on average half of its people
        then live in them.
    tract_mixing : float
        Concentration of the Dirichlet law of a tract's mix of 14 groups of race and ethnicity
        around the nation's, in (0, 1e6]: the smaller, the more alike the people of a tract.
    block_mixing, block_mixing_growth : float
        Concentration of the Dirichlet law of a block's mix around its tract's, for a block of one
        person, in (0, 1e6], and the power of the block's population by which it grows, in [0, 1]:
        large blocks are more mixed.
    household_homogeneity : float
        Probability that a spouse, partner or other relative has the householder's group whatever
        the block's mix, in [0, 1].
    tenure_correlation : float
        Correlation between households of one block of the Gaussian score that decides owning or
        renting, in [0, 1].
    subsidised_blocks : float
        Probability that a block without group quarters and with 11 households or more holds a
        subsidised property.
    subsidised_share : float
        Expected share of subsidised households in such a block, before at least 11 are taken.
    bedroom_mixing : float
        Concentration of the law of a property's shares of units by bedrooms around the nation's,
        in (0, 1e6]: the smaller, the more often all units are alike.
    alpha : float
        Weight of a placement that violates the occupancy limit against one that does not, in
        (0, 1].
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
    """Return the names of the ready settings: ``tract``, ``county``, ``state``."""
    return list(_BLOCKS)


def population_spec(name: str, **changes: Any) -> PopulationSpec:
    """Return ready settings, with the changes asked for.

    Parameters
    ----------
    name : str
        One of :func:`population_presets`.
    **changes : int, float or str
        Fields of :class:`PopulationSpec` to set instead.

    Examples
    --------
    >>> population_spec("county", n_blocks=200).n_blocks
    200
    """
    for key in changes:
        check.choice(key, "field", tuple(f.name for f in fields(PopulationSpec)))
    return replace(named_spec(name, "name"), **changes)


def named_spec(name: str, argument: str) -> PopulationSpec:
    """Return ready settings by their name."""
    check.choice(name, argument, tuple(_BLOCKS))
    return replace(_NATION, n_blocks=_BLOCKS[name])


# -----------------------------------------------------------------------------
# Race and ethnicity: a nation's mix, thinned to tracts and blocks by sparse Dirichlet laws.


def dirichlet_rows(concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw one Dirichlet vector for each row of concentrations.

    Where every gamma variate underflows, all weight goes to the likeliest entry: that is the limit.
    """
    draws = rng.standard_gamma(concentration)
    total = draws.sum(axis=1, keepdims=True)
    limit = np.eye(concentration.shape[1])[concentration.argmax(axis=1)]
    return np.where(total > 0.0, draws / np.where(total > 0.0, total, 1.0), limit)


def block_mixes(
    tracts: IntArray, people: IntArray, spec: PopulationSpec, rng: np.random.Generator
) -> FloatArray:
    """Draw each block's law of the 14 groups, shape (blocks, 14)."""
    nation = group_law()
    shape = (int(tracts[-1]) + 1, nation.size)
    tract = dirichlet_rows(np.broadcast_to(spec.tract_mixing * nation, shape), rng)
    concentration = spec.block_mixing * np.maximum(people, 1) ** spec.block_mixing_growth
    return dirichlet_rows(concentration[:, None] * tract[tracts], rng)


def pick(laws: FloatArray, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw one category for each entry of ``rows`` from that row's law: one sorted search.

    Laws need not be normalised.  A category of probability 0 is never drawn: where adding the row
    number rounds up, the answer is cut back to the last possible one.
    """
    cumulative = np.cumsum(laws, axis=1)
    cumulative /= cumulative[:, -1:]
    offset = np.arange(len(laws))[:, None]
    position = np.searchsorted(
        (cumulative + offset).reshape(-1), rows + rng.random(rows.size), "right"
    )
    last = laws.shape[1] - 1 - np.argmax(laws[:, ::-1] > 0.0, axis=1)
    return np.asarray(np.minimum(position - rows * laws.shape[1], last[rows]), dtype=np.int64)


def draw_categories(law: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Draw as many categories from one law."""
    return pick(law[None, :], np.zeros(count, dtype=np.int64), rng)


def race_masks(groups: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the race bit mask and Hispanic origin of each person's group."""
    race, hispanic = np.divmod(groups, 2)
    several, law = several_races()
    mask = several[draw_categories(law, groups.size, rng)]
    return np.where(race < 6, 1 << np.minimum(race, 5), mask), hispanic


def race_class(mask: IntArray) -> IntArray:
    """Return 1..6 for one race alone, 7 for two or more."""
    alone = (mask & (mask - 1)) == 0
    return np.where(alone, np.log2(np.maximum(mask, 1)).astype(np.int64) + 1, 7)


def member_groups(
    laws: FloatArray,
    blocks: IntArray,
    household: IntArray,
    relationship: IntArray,
    spec: PopulationSpec,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Return race mask and Hispanic origin of members of households, householder first.

    Householders and people who are no relatives are drawn from the block's mix; a spouse, partner
    or relative has the householder's group with the household's homogeneity, else one from the
    block's mix; a child of the householder has the group of householder, or of spouse or partner,
    each as likely.  So every person's group has the law of the block's mix.
    """
    holder = np.flatnonzero(relationship == HOLDER)[household]
    same_group = rng.random(household.size) < spec.household_homogeneity
    coin = rng.random(household.size) < 0.5
    mate = np.isin(relationship, (SPOUSE, PARTNER))
    source = np.where(same_group & (mate | (relationship == RELATIVE)), holder, -1)
    # a spouse or partner stands right after the householder
    after = np.minimum(holder + 1, household.size - 1)
    parent = np.where(coin & mate[after] & (household[after] == household), after, holder)
    mask, hispanic = race_masks(pick(laws, blocks, rng), rng)
    for copies, origin in ((source >= 0, source), (relationship == CHILD, parent)):
        mask = np.where(copies, mask[origin], mask)
        hispanic = np.where(copies, hispanic[origin], hispanic)
    return mask, hispanic


# -----------------------------------------------------------------------------
# Subsidised households and their bedrooms, after Appendix B of the occupancy study.


_LIMIT = np.array([0, 2, 4, 2**62])  # people that 0-1, 2, 3 or more bedrooms hold


def occupancy_violation(size: ArrayLike, bedrooms: ArrayLike) -> NDArray[np.bool_]:
    """Return whether more than two people share a bedroom for certain.

    A violation is a household of more than 2 people in at most 1 bedroom, or of more than 4 in 2
    bedrooms; 3 bedrooms or more, and an unknown number, are none.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), section 2 and appendix E.

    Parameters
    ----------
    size : array_like of int
        People in the household, at least 1.
    bedrooms : array_like of int
        0 not known, 1 at most one, 2 two, 3 three or more.

    Examples
    --------
    >>> occupancy_violation([2, 3, 4, 5, 9], [1, 1, 2, 2, 3])
    array([False,  True, False,  True, False])
    """
    people = check.count_array(size, "size", lower=1)
    rooms = check.count_array(bedrooms, "bedrooms", lower=0, upper=3)
    check.broadcast(size=people, bedrooms=rooms)
    return np.asarray((rooms > 0) & (people > np.where(rooms == 0, 2**62, _LIMIT[rooms])))


def draw_bedrooms(
    size: ArrayLike, shares: ArrayLike, *, alpha: float, rng: Seed
) -> NDArray[np.int64]:
    r"""Return bedrooms of subsidised households, violations made rare.

    A household of ``size`` people gets ``b`` bedrooms with probability proportional to
    :math:`p_b \alpha^{v(b)}`, where :math:`v(b)` is 1 if that violates the limit, else 0.  Where
    all shares of the property violate it, so does the household, whatever ``alpha``.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), appendix B; the paper's ``alpha`` is 1e-4.

    There are n households, of at least 1 person; ``shares``, shape (3,) or (n, 3), are those of the
    units with at most 1, with 2, and with 3 bedrooms or more, each row of sum 1; ``alpha`` is in
    (0, 1], where 1 ignores the limit.

    Examples
    --------
    >>> draw_bedrooms([1, 3, 4], [0.5, 0.5, 0.0], alpha=1e-12, rng=1)[1:]
    array([2, 2])
    """
    people = check.count_array(size, "size", lower=1)
    law = check.probability_vector(shares, "shares")
    weight = check.scalar(alpha, "alpha", lower=0.0, upper=1.0, bounds="(]")
    if people.ndim != 1 or law.shape not in ((3,), (people.size, 3)):
        raise ShapeError(
            f"shares must have shape (3,) or (n, 3), got {law.shape} for n = size of {people.shape}"
        )
    breach = occupancy_violation(people[:, None], np.array([1, 2, 3]))
    return pick(law * np.where(breach, weight, 1.0), np.arange(people.size), generator(rng)) + 1


def selection_weight(block: IntArray, flags: NDArray[np.bool_]) -> FloatArray:
    """Return the log of the heuristic likelihood: the profile's over the frequency in the block."""
    profile = np.array(SUBSIDISED_PROFILE)
    likelihood = np.where(flags, np.log(profile), np.log1p(-profile)).sum(axis=1)
    code = block * 2 ** flags.shape[1] + flags @ (1 << np.arange(flags.shape[1]))
    _, inverse, count = np.unique(code, return_inverse=True, return_counts=True)
    _, block_inverse, in_block = np.unique(block, return_inverse=True, return_counts=True)
    return np.asarray(likelihood - np.log(count[inverse] / in_block[block_inverse]))


def largest_in_block(block: IntArray, score: FloatArray, wanted: IntArray) -> NDArray[np.bool_]:
    """Return which entries are among the ``wanted[block]`` of their block with largest score."""
    order = np.lexsort((-score, block))
    sorted_blocks = block[order]
    rank = np.arange(block.size) - np.searchsorted(sorted_blocks, sorted_blocks)
    chosen = np.zeros(block.size, dtype=bool)
    chosen[order] = rank < wanted[sorted_blocks]
    return chosen


def property_sizes(
    homes: IntArray, has_quarters: NDArray[np.bool_], spec: PopulationSpec, rng: np.random.Generator
) -> IntArray:
    """Return the number of subsidised households of each block."""
    eligible = (homes >= SMALLEST_PROPERTY) & ~has_quarters
    selected = rng.random(homes.size) < spec.subsidised_blocks
    size = rng.binomial(homes, spec.subsidised_share)
    return np.where(eligible & selected, np.maximum(size, SMALLEST_PROPERTY), 0)


def subsidise(
    block: IntArray,
    columns: dict[str, IntArray],
    wanted: IntArray,
    spec: PopulationSpec,
    rng: np.random.Generator,
) -> tuple[NDArray[np.bool_], IntArray]:
    """Return which households are subsidised, and their bedrooms (0 for the others).

    Drawn without replacement with the weights of :func:`selection_weight` (the largest of log
    weight plus Gumbel noise); bedrooms from a mix of the property's own.
    """
    inside = np.flatnonzero(wanted[block] > 0)
    race, hispanic, children = (columns[n][inside] for n in ("race", "hispanic", "children"))
    # What the figures of properties count: groups of householders, and children.
    alone = [(hispanic == 1) & np.isin(race, codes) for codes in (1, 2, 3, (4, 5))]
    flags = np.column_stack([*alone, hispanic == 2, children > 0])
    score = selection_weight(block[inside], flags) + rng.gumbel(size=inside.size)
    chosen = np.zeros(block.size, dtype=bool)
    chosen[inside] = largest_in_block(block[inside], score, wanted)
    places = np.flatnonzero(wanted)
    mix = np.zeros((wanted.size, 3))
    concentration = np.broadcast_to(spec.bedroom_mixing * np.array(BEDROOMS), (places.size, 3))
    units = rng.multinomial(wanted[places], dirichlet_rows(concentration, rng))
    mix[places] = units / wanted[places][:, None]
    bedrooms = np.zeros(block.size, dtype=np.int64)
    if chosen.any():
        bedrooms[chosen] = draw_bedrooms(
            columns["people"][chosen], mix[block[chosen]], alpha=spec.alpha, rng=rng
        )
    return chosen, bedrooms

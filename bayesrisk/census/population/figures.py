"""Published national figures for the generator, and the distributions it assumes."""

import numpy as np

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
    """Return numbers of households without spouse or partner, by four types."""
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
FIRST_ROLES = (*(_OWN, _NO_CHILDREN, _OWN, _WITH_PARTNER), *(_OTHERS, _OWN, _KIN, _OTHERS) * 2)
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

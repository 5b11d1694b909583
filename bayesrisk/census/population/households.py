"""Households of schema ``household-dhc``: rules of validity, and claims about them in words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.tables.schema import Schema

#: Detailed types that each household type can have (codes of ``household-dhc``): couples with own
#: children, or living together with relatives, are families.
TYPES = {1: (1, 2), 2: (3, 4, 10, 11), 3: (3, 4, 6, 7), 4: (9,), 5: (4, 12), 6: (5,), 7: (4, 8)}
_ALONE = (5, 9)
_COUPLE_WITH_CHILDREN = (1, 3)
_COUPLE = (2, 4)
_PARENT = (6, 10)
_SENIOR = 7  # code of hhage from which the householder is 65 or over
_NO, _YES = 1, 2
#: The columns that the rules tie together; the others are free in an occupied unit.
TIED = ("size", "type", "detailed_type", "under_18", "over_65", "hhage")


def household_valid(codes: Mapping[str, ArrayLike]) -> BoolArray:
    """Return a mask of the housing units that can exist by the census's rules.

    A unit is vacant if and only if its household columns are absent (0). Size 1 and the detailed
    type "alone" imply each other. A household with a senior householder is a household with
    seniors. Own children are people under 18. A household has room for everybody whom its types and
    columns imply.

    Parameters
    ----------
    codes : mapping of str to array_like of int
        The ten columns of schema ``household-dhc``; shapes broadcast.

    Notes
    -----
    The rules leave 1,902 combinations of size, types, under 18, 65 and over and age, times 56 of
    tenure, Hispanic origin and race, and 7 vacant cells: 106,519 of 71,884,800 cells.

    Examples
    --------
    >>> unit = dict(tenure=3, vacancy=0, size=[1, 2], type=6, detailed_type=5, under_18=1,
    ...             over_65=1, hispanic=1, hhage=2, race=1)
    >>> household_valid(unit).tolist()
    [True, False]
    """
    schema = Schema.named("household-dhc")
    indices = schema.indices(schema.cell_index(codes))
    household = [indices[name] for name in schema.names if name != "vacancy"]
    absent = np.logical_and.reduce([values == 0 for values in household])
    present = np.logical_and.reduce([values > 0 for values in household])
    valid: BoolArray = np.where(indices["vacancy"] > 0, absent, present & _composed(indices))
    return valid


def household_cells() -> IntArray:
    """Return the cells of schema ``household-dhc`` that can exist.

    Examples
    --------
    >>> len(household_cells())
    106519
    """
    schema = Schema.named("household-dhc")
    tied = np.meshgrid(*(np.arange(1, schema.attribute(n).size) for n in TIED), indexing="ij")
    codes = {name: axis.ravel() for name, axis in zip(TIED, tied, strict=True)}
    keep = _composed(codes)
    occupied = {name: values[keep][:, None] for name, values in codes.items()}
    free = ("tenure", "hispanic", "race")
    axes = np.meshgrid(*(np.arange(1, schema.attribute(n).size) for n in free), indexing="ij")
    occupied |= {name: axis.ravel()[None, :] for name, axis in zip(free, axes, strict=True)}
    homes = schema.cell_index({**occupied, "vacancy": 0})
    empty = schema.cell_index({**dict.fromkeys(schema.names, 0), "vacancy": np.arange(1, 8)})
    return np.sort(np.concatenate([homes.ravel(), empty]))


def _composed(codes: Mapping[str, IntArray]) -> BoolArray:
    """Return a mask of units whose size, types and age columns are consistent."""
    size, detailed = codes["size"], codes["detailed_type"]
    pair = np.zeros((8, 13), dtype=np.bool_)
    for kind, details in TYPES.items():
        pair[kind, list(details)] = True
    child, senior = codes["under_18"] == _YES, codes["over_65"] == _YES
    head = codes["hhage"] >= _SENIOR
    other = senior & ~head  # somebody else is 65 or over
    alone = np.isin(detailed, _ALONE)
    parents = np.isin(detailed, _COUPLE_WITH_CHILDREN)
    single = np.isin(detailed, _PARENT)
    # A partner may be the other senior; a couple that is a family has a relative besides.
    family = (detailed == 4) & np.isin(codes["type"], (2, 3))
    couple = np.where(family, 3, 2 + child)
    least = np.select(
        [alone, parents, np.isin(detailed, _COUPLE), single],
        [1, 3, couple, 2 + other],
        default=np.maximum(2, 1 + child + other),
    )
    fits = np.where(alone, (size == 1) & ~child & (senior == head), size >= least)
    valid: BoolArray = pair[codes["type"], detailed] & fits
    valid &= (senior | ~head) & (child | ~(parents | single))
    return valid


_TENURE = {
    1: "owned with a mortgage",
    2: "owned free and clear",
    3: "rented",
    4: "occupied without payment of rent",
}
_TYPE = {
    1: "a married couple",
    2: "another family with a male householder",
    3: "another family with a female householder",
    4: "a man living alone",
    5: "a nonfamily household with a male householder who does not live alone",
    6: "a woman living alone",
    7: "a nonfamily household with a female householder who does not live alone",
}
_DETAIL = {
    1: "a married couple with own children under 18",
    2: "a married couple without own children under 18",
    3: "a cohabiting couple with own children under 18",
    4: "a cohabiting couple without own children under 18",
    5: "a woman living alone",
    6: "a female householder without spouse or partner, with own children under 18",
    7: "a female householder without spouse or partner, with relatives, no own children under 18",
    8: "a female householder without spouse or partner, with nonrelatives only",
    9: "a man living alone",
    10: "a male householder without spouse or partner, with own children under 18",
    11: "a male householder without spouse or partner, with relatives, no own children under 18",
    12: "a male householder without spouse or partner, with nonrelatives only",
}
_AGE = {
    1: "15 to 24 years old",
    2: "25 to 34 years old",
    3: "35 to 44 years old",
    4: "45 to 54 years old",
    5: "55 to 59 years old",
    6: "60 to 64 years old",
    7: "65 to 74 years old",
    8: "75 to 84 years old",
    9: "85 years old or older",
}
_RACE = {
    1: "White",
    2: "Black",
    3: "American Indian or Alaska Native",
    4: "Asian",
    5: "Native Hawaiian or Pacific Islander",
    6: "of some other race",
    7: "of two or more races",
}


def _alternatives(words: Mapping[int, str], codes: tuple[int, ...]) -> str:
    return " or ".join(words[code] for code in codes if code in words) or "not in universe"


def household_sentences(
    number: str, times: int, values: Mapping[str, tuple[int, ...]], schema: Schema
) -> str:
    """Return a claim about households in sentences, worded as in Table 1 of Liu et al."""
    one = times == 1
    start = f"{number} household{'' if one else 's'}"
    if "size" in values:
        size = values["size"][0]
        people = "person" if size == 1 else "people"
        start += f" of {size}{' or more' if size == 7 else ''} {people}"
    sentences = [start]
    subject = "It is" if one else "Each is"
    detail = values.get("detailed_type", (0,))
    if detail != (0,):
        sentences.append(f"{subject} {_alternatives(_DETAIL, detail)}")
    # The type follows from the detailed type, but for cohabiting couples.
    if "type" in values and detail[0] in (0, 3, 4):
        sentences.append(f"{subject} {_alternatives(_TYPE, values['type'])}")
    if "tenure" in values:
        sentences.append(f"The home is {_alternatives(_TENURE, values['tenure'])}")
    sentences += _presence_sentences(values)
    householder = []
    if "race" in values:
        householder.append(_alternatives(_RACE, values["race"]))
    if "hispanic" in values:
        origin = "of Hispanic or Latino origin"
        householder.append(origin if values["hispanic"][0] == 2 else f"not {origin}")
    if "hhage" in values:
        householder.append(_alternatives(_AGE, values["hhage"]))
    if householder:
        sentences.append("The householder is " + _listed(householder))
    if len(sentences) == 1 and "size" not in values:
        sentences = [f"{start}, occupied"]
    return ". ".join(sentences) + "."


def _presence_sentences(values: Mapping[str, tuple[int, ...]]) -> list[str]:
    words = {"under_18": "under 18", "over_65": "65 or over"}
    sentences = []
    for code, start in ((2, "Somebody in it is "), (1, "Nobody in it is ")):
        parts = [words[n] for n in words if n in values and values[n][0] == code]
        if parts:
            sentences.append(start + (", and somebody " if code == 2 else " or ").join(parts))
    return sentences


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + ", and " + parts[-1]

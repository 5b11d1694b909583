"""Structural rules of household records: which combinations of the ten columns can exist."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._types import BoolArray, IntArray
from bayesrisk.tables.schema import Schema

#: Detailed types that each household type can have (codes of ``household-dhc``): couples with own
#: children, or living together with relatives, are families.
TYPES = {
    1: (1, 2),
    2: (3, 4, 10, 11),
    3: (3, 4, 6, 7),
    4: (9,),
    5: (4, 12),
    6: (5,),
    7: (4, 8),
}
_ALONE = (5, 9)
_COUPLE_WITH_CHILDREN = (1, 3)
_COUPLE = (2, 4)
_PARENT = (6, 10)
_SENIOR = 7  # code of hhage from which the householder is 65 or over
_NO, _YES = 1, 2
#: The columns that the rules tie together; the others are free in an occupied unit.
TIED = ("size", "type", "detailed_type", "under_18", "over_65", "hhage")


def household_valid(codes: Mapping[str, ArrayLike]) -> BoolArray:
    """Return which housing units keep the structural rules.

    A unit is vacant if and only if its household columns are absent (0).  Living alone, size 1
    and the detailed type "alone" are one thing; a senior householder makes a household with
    seniors; own children are people under 18; and a household has room for everybody whom its
    types and columns imply.

    Parameters
    ----------
    codes : mapping of str to array_like of int
        The ten columns of schema ``household-dhc``; shapes broadcast.

    Returns
    -------
    ndarray of bool
        One answer for each unit.

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
    about = Schema.named("household-dhc")
    cells = about.cell_index(codes)
    return _valid(about, cells)


def household_cells() -> IntArray:
    """Return the cells of schema ``household-dhc`` that keep the structural rules.

    Returns
    -------
    ndarray of int64
        The 106,519 cell numbers, sorted.

    Examples
    --------
    >>> len(household_cells())
    106519
    """
    about = Schema.named("household-dhc")
    tied = np.meshgrid(*(np.arange(1, about.attribute(n).size) for n in TIED), indexing="ij")
    codes = {name: axis.ravel() for name, axis in zip(TIED, tied, strict=True)}
    keep = _composed(codes)
    occupied = {name: values[keep][:, None] for name, values in codes.items()}
    free = ("tenure", "hispanic", "race")
    axes = np.meshgrid(*(np.arange(1, about.attribute(n).size) for n in free), indexing="ij")
    occupied |= {name: axis.ravel()[None, :] for name, axis in zip(free, axes, strict=True)}
    homes = about.cell_index({**occupied, "vacancy": 0})
    empty = about.cell_index({**dict.fromkeys(about.names, 0), "vacancy": np.arange(1, 8)})
    return np.sort(np.concatenate([homes.ravel(), empty]))


def _valid(about: Schema, cells: IntArray) -> BoolArray:
    codes = about.indices(cells)
    vacant = codes["vacancy"] > 0
    household = [codes[name] for name in about.names if name != "vacancy"]
    absent = np.logical_and.reduce([values == 0 for values in household])
    present = np.logical_and.reduce([values > 0 for values in household])
    valid: BoolArray = np.where(vacant, absent, present & _composed(codes))
    return valid


def _composed(codes: Mapping[str, IntArray]) -> BoolArray:
    """Return whether size, types, under 18, 65 and over and age go together."""
    size, detailed = codes["size"], codes["detailed_type"]
    pair = np.zeros((8, 13), dtype=np.bool_)
    for kind, details in TYPES.items():
        pair[kind, list(details)] = True
    child, senior = codes["under_18"] == _YES, codes["over_65"] == _YES
    own = codes["hhage"] >= _SENIOR
    other = senior & ~own  # somebody else is 65 or over
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
    fits = np.where(alone, (size == 1) & ~child & (senior == own), size >= least)
    kept: BoolArray = pair[codes["type"], detailed] & fits
    kept &= (senior | ~own) & (child | ~(parents | single))
    return kept

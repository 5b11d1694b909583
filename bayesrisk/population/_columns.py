"""Columns of housing units, taken from the people who live in them."""

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import IntArray
from bayesrisk.population import _national as national
from bayesrisk.population._groups import race_class
from bayesrisk.population._households import Compositions, Members


def any_in(flag: NDArray[np.bool_], household: IntArray, count: int) -> NDArray[np.bool_]:
    """Return for each household whether a member has the flag."""
    return np.bincount(household, flag, count) > 0


def household_type(kind: IntArray, sex: IntArray, family: NDArray[np.bool_]) -> IntArray:
    """Return the type 1..7 from detailed type (0..11), householder's sex, and relatives present.

    Relatives are those besides a spouse; partners are none.
    """
    alone = (kind == 4) | (kind == 8)
    nonfamily = np.where(alone, 4, 5) + 2 * sex
    return np.where(kind < 2, 1, np.where(family, 2 + sex, nonfamily))


def household_columns(
    homes: Compositions, people: Members, mask: IntArray, hispanic: IntArray
) -> dict[str, IntArray]:
    """Return the columns that follow from the people, one entry for each household."""
    count, household = homes.people.size, people.household
    first = np.cumsum(homes.people) - homes.people
    relatives = np.isin(people.relationship, (national.CHILD, national.RELATIVE))
    minors = np.bincount(household, people.age < 18, count).astype(np.int64)
    race = race_class(mask[first])
    return {
        "size": np.minimum(homes.people, 7),
        "type": household_type(homes.kind, people.sex[first], any_in(relatives, household, count)),
        "detailed_type": homes.kind + 1,
        "under_18": 1 + (minors > 0),
        "over_65": 1 + any_in(people.age >= 65, household, count),
        "hispanic": 1 + hispanic[first],
        "hhage": np.searchsorted(national.HOLDER_STARTS, people.age[first], side="right"),
        "race": race,
        "children": minors,
        "people": homes.people,
    }

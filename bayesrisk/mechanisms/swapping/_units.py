"""Swap units: households (or persons) as columns of whole numbers, whichever file says it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables import Microdata, Records

_HOUSEHOLD = "household"
_ADULT_AGE = 18
#: Columns that are counted from the persons where the households do not have them.
DERIVED = ("size", "adults", "children")


@dataclass(frozen=True)
class Units:
    """What is swapped: one row for each household or person.

    Attributes
    ----------
    places : ndarray of str
        The different places, sorted.
    place : ndarray of int64
        Position of each unit's place.
    key, unique : ndarray of int64
        Class of each unit by the swap key, and by what makes it unique.
    persons : ndarray of int64
        Persons of each unit.
    member : ndarray of int64 or None
        For each person the unit that it moves with, -1 for none; None without persons.
    """

    places: NDArray[np.str_]
    place: IntArray
    key: IntArray
    unique: IntArray
    persons: IntArray
    member: IntArray | None


def swap_units(
    data: Microdata, *, unit: str, swap_key: tuple[str, ...], unique_by: tuple[str, ...]
) -> Units:
    """Return the units of microdata, with their classes."""
    if unit == "person":
        return _persons_alone(data, swap_key, unique_by)
    households = _household_ids(data)
    member = None if data.persons is None else _members(data.persons, households)
    count = len(households)
    if data.households is not None:
        places, place = data.households.places()
    else:
        places, place = _places_of_members(data.persons, member, count)
    persons = np.ones(count, dtype=np.int64)
    if member is not None:
        persons = np.bincount(member[member >= 0], minlength=count).astype(np.int64)
    names = dict.fromkeys((*swap_key, *unique_by))
    columns = {name: _household_columns(data, name, member, count) for name in names}
    return Units(
        places,
        place,
        _classes([values for name in swap_key for values in columns[name]], count),
        _classes([values for name in unique_by for values in columns[name]], count),
        persons,
        member,
    )


def _persons_alone(data: Microdata, swap_key: tuple[str, ...], unique_by: tuple[str, ...]) -> Units:
    """Return every person as a unit of its own."""
    if data.persons is None:
        raise ArgumentError("unit 'person' needs persons, got households only")
    persons = data.persons
    places, place = persons.places()
    columns = {name: _column(persons, name) for name in (*swap_key, *unique_by)}
    for name, values in columns.items():
        if values is None:
            raise ArgumentError(
                f"swap_key and unique_by must name columns of the persons, "
                f"{', '.join(persons.columns)}, got {shown(name)}"
            )
    count = len(persons)
    found: dict[str, Any] = columns
    return Units(
        places,
        place,
        _classes([found[name] for name in swap_key], count),
        _classes([found[name] for name in unique_by], count),
        np.ones(count, dtype=np.int64),
        np.arange(count, dtype=np.int64),
    )


def _household_ids(data: Microdata) -> IntArray:
    """Return the number of each household, in the order of the households' records."""
    if data.households is None:
        numbers = np.unique(_numbers(data.persons, "persons"))
        return numbers[numbers >= 0]  # a negative number: lives in no household
    if data.persons is None and _HOUSEHOLD not in data.households.columns:
        return np.arange(len(data.households), dtype=np.int64)
    numbers = _numbers(data.households, "households")
    ordered = np.sort(numbers)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if twice.size:
        raise DataError(f"households: household {ordered[twice[0]]} must be there once, got twice")
    return numbers


def _numbers(records: Any, source: str) -> IntArray:
    """Return the column ``household``."""
    values = None if records is None else _column(records, _HOUSEHOLD)
    if values is None:
        raise DataError(f"{source}: must have a column {_HOUSEHOLD!r} of whole numbers")
    return values


def _column(records: Records, name: str) -> IntArray | None:
    """Return a column of whole numbers, or None where there is no such column."""
    if name in records.schema.names:
        return records.codes(name)
    if name not in records.columns or name == records.schema.geography.finest:
        return None
    column = records.table.column(name)
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(f"records: row {row + 1}, column {name!r}: must not be missing")
    values = column.to_numpy()
    if values.dtype.kind not in "iub":
        # Text and other labels: only whether two are equal matters.
        values = np.unique(values.astype(str), return_inverse=True)[1]
    whole: IntArray = values.astype(np.int64)
    return whole


def _members(persons: Records, households: IntArray) -> IntArray:
    """Return the position of every person's household; -1 where there is none to move with."""
    numbers = _numbers(persons, "persons")
    order = np.argsort(households, kind="stable")
    if not order.size:
        return np.full(len(numbers), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(households[order], numbers), len(order) - 1)
    return np.where(households[order][at] == numbers, order[at], -1).astype(np.int64)


def _places_of_members(persons: Any, member: Any, count: int) -> tuple[NDArray[np.str_], IntArray]:
    """Return the places of households that are known from their persons only."""
    places, place = persons.places()
    of_household = np.zeros(count, dtype=np.int64)
    inside = member >= 0
    of_household[member[inside]] = place[inside]
    apart = np.flatnonzero(inside & (of_household[member] != place))
    if apart.size:
        row = int(apart[0])
        raise DataError(
            f"persons: row {row + 1}, column {persons.schema.geography.finest!r}: must be that of "
            f"the household's other persons, {places[of_household[member[row]]]!r}, "
            f"got {shown(places[place[row]])}"
        )
    return places, of_household


def _household_columns(
    data: Microdata, name: str, member: IntArray | None, count: int
) -> list[IntArray]:
    """Return what a name means for households: counted from persons, and their own column.

    An own column of sizes may have an open end, so that it does not replace the count.
    """
    own = None if data.households is None else _column(data.households, name)
    found = [] if own is None else [own]
    if data.persons is not None and member is not None:
        counted = _counted(data.persons, name, member, count)
        if counted is not None:
            found.append(counted)
        elif own is None:
            values = _column(data.persons, name)
            inside = member >= 0
            if values is not None:
                found.append(_multisets(member[inside], values[inside], count))
    if not found:
        raise ArgumentError(
            f"swap_key and unique_by must name columns of households or persons, or "
            f"{', '.join(DERIVED)}, which are counted from persons (the last two by their age), "
            f"got {shown(name)}"
        )
    return found


def _counted(persons: Records, name: str, member: IntArray, count: int) -> IntArray | None:
    """Return a number of persons in each household, where the name asks for one."""
    chosen = member >= 0
    if name not in DERIVED:
        return None
    if name != "size":
        age = _column(persons, "age")
        if age is None:
            return None
        chosen &= (age >= _ADULT_AGE) == (name == "adults")
    return np.bincount(member[chosen], minlength=count).astype(np.int64)


def _multisets(member: IntArray, values: IntArray, count: int) -> IntArray:
    """Return a number that tells the multiset of values of each household.

    The sum of 64-bit mixes of the values does not depend on their order; two different
    multisets meet with a probability of 2**-64.
    """
    mixed = _mix(values.astype(np.uint64))
    total = np.zeros(count, dtype=np.uint64)
    np.add.at(total, member, mixed)  # unsigned sums wrap around, as wanted
    return total.view(np.int64)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the SplitMix64 finaliser of each number (Steele, Lea and Flood 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _classes(columns: list[IntArray], count: int) -> IntArray:
    """Return the class of each row, 0, 1, ...: rows that agree in every column share one."""
    classes = np.zeros(count, dtype=np.int64)
    for values in columns:
        distinct, inverse = np.unique(values, return_inverse=True)
        classes = classes * max(1, len(distinct)) + inverse
        classes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    return classes

"""Pairing of units to be swapped: traits, places, distances and partners."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy.spatial import cKDTree

from bayesrisk._base.disk.parquet import plain_column
from bayesrisk._base.validation import FloatArray, IntArray, TextArray
from bayesrisk.accounting.budget import exact_number
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.tables import Geography, Microdata, Records
from bayesrisk.tables.cells import joint_kinds, positions, renumbered

# Partners: for each unit one of its nearest like it, in another block, that is still free.
#
# Units of one region and swap-key class are held block by block in a k-d tree of the blocks, so a
# partner costs a query of a few blocks and not a pass over the units.  Blocks that run out are
# passed over; when half of a tree's blocks have run out it is built again without them.


_FIRST = 8  # blocks of the first query


class _Nearest:
    """Blocks sorted by distance from a block, with cached answers.

    Neighbours are not random, so that many searches may share them.
    """

    def __init__(self, blocks: IntArray, points: FloatArray, ends: Sequence[int] = ()) -> None:
        self.blocks, self._points = blocks, points
        #: Where the units of each block end, in the order of the blocks, and at first 0.
        self.ends = ends
        self._tree = cKDTree(points[blocks])
        self._cache: dict[tuple[int, int], list[int]] = {}

    def query(self, block: int, size: int) -> list[int]:
        if (block, size) not in self._cache:
            _, index = self._tree.query(self._points[block], k=size)
            self._cache[block, size] = self.blocks[np.atleast_1d(index)].tolist()
        return self._cache[block, size]


class _Class:
    """Unswapped units of one region and swap-key class, by block."""

    def __init__(self, members: list[list[int]], points: FloatArray, nearest: _Nearest) -> None:
        self._points = points  # coordinates of every block
        self._members = dict(zip(nearest.blocks.tolist(), members, strict=True))
        self._live = len(self._members)
        self._nearest = nearest

    def remove(self, unit: int, block: int) -> None:
        """Remove a unit that has just been swapped."""
        members = self._members[block]
        members.remove(unit)
        if not members:
            self._live -= 1
            if 0 < 2 * self._live < len(self._nearest.blocks):
                blocks = np.array([b for b, m in self._members.items() if m], dtype=np.int64)
                self._nearest = _Nearest(blocks, self._points)

    def nearest(self, block: int, wanted: int) -> list[int]:
        """Return up to ``wanted`` unswapped units of other blocks, nearest blocks first."""
        other_blocks = self._live - bool(self._members[block])
        count = len(self._nearest.blocks)
        units: list[int] = []
        k = _FIRST
        while other_blocks:
            size = min(k, count)
            units = []
            for other in self._nearest.query(block, size):
                if other != block:
                    units.extend(self._members[other][: wanted - len(units)])
                    if len(units) == wanted:
                        return units
            if size == count:
                break
            k *= 4
        return units


class PartnerSearch:
    """Pairs units with near partners; no unit is in two pairs."""

    def __init__(
        self,
        group: IntArray,
        block: IntArray,
        points: FloatArray,
        *,
        neighbours: int,
        rng: np.random.Generator,
        nearest: dict[int, _Nearest] | None = None,
    ) -> None:
        self._nearest = {} if nearest is None else nearest
        self._group, self._block = group.tolist(), block.tolist()
        self._points, self._neighbours, self._rng = points, neighbours, rng
        # Units of one block are equally near: the order among them is left to chance.
        shuffled = rng.permutation(len(group))
        order = shuffled[np.lexsort((block[shuffled], group[shuffled]))]
        #: Each class, and where its run of units starts; then the end.
        self._numbers, starts = np.unique(group[order], return_index=True)
        self._order, self._starts = order, np.append(starts, len(order))
        self._classes: dict[int, _Class] = {}
        self.partner = np.full(len(group), -1, dtype=np.int64)

    def _class(self, number: int) -> _Class:
        """Return the class of a number, built at first use."""
        if number not in self._classes:
            i = int(np.searchsorted(self._numbers, number))
            units = self._order[self._starts[i] : self._starts[i + 1]].tolist()
            if number not in self._nearest:
                blocks = np.array([self._block[u] for u in units], dtype=np.int64)
                distinct, starts = np.unique(blocks, return_index=True)
                ends = [*starts.tolist(), len(units)]
                self._nearest[number] = _Nearest(distinct, self._points, ends)
            nearest = self._nearest[number]
            # Chance orders the units of a block, not the blocks.
            members = [units[low:high] for low, high in pairwise(nearest.ends)]
            self._classes[number] = _Class(members, self._points, nearest)
        return self._classes[number]

    def swap(self, unit: int) -> bool:
        """Pair a unit with one of its nearest; return False if it has a partner or none is left."""
        if self.partner[unit] >= 0:
            return False
        free = self._class(self._group[unit])
        near = free.nearest(self._block[unit], self._neighbours)
        if not near:
            return False
        other = near[int(self._rng.integers(len(near)))]
        self.partner[unit], self.partner[other] = other, unit
        for one in (unit, other):
            free.remove(one, self._block[one])
        return True


# Who is swapped first: ranks by risk, tiers of ranks, and whole numbers that meet a rate.


#: Shares of the units by rank of risk, and the probability of being chosen before rescaling.
TIERS = (("0.005", "1"), ("0.195", "0.6"), ("0.3", "0.3"), ("0.5", "0.1"))


def parse_tiers(
    value: Sequence[Sequence[Any]],
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return the tiers' shares and probabilities as exact fractions."""
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence) or not value:
        raise ArgumentTypeError("tiers", "must be a sequence of (share, probability)", got=value)
    shares, weights = [], []
    for i, tier in enumerate(value):
        if isinstance(tier, str) or not isinstance(tier, Sequence) or len(tier) != 2:
            raise ArgumentTypeError(f"tiers[{i}]", "must be (share, probability)", got=tier)
        numbers = [exact_number(item, f"tiers[{i}]") for item in tier]
        if min(numbers) < 0 or max(numbers) > 1:
            raise ArgumentError(f"tiers[{i}]", "must be in [0, 1]", got=tier)
        shares.append(numbers[0])
        weights.append(numbers[1])
    if sum(shares) != 1:
        raise ArgumentError(f"shares of tiers must sum to 1, got {sum(shares)}")
    if not any(weights):
        raise ArgumentError("probabilities of tiers must not all be 0")
    return tuple(shares), tuple(weights)


def risk_tiers(
    region: IntArray,
    *,
    frequency: IntArray,
    block_persons: IntArray,
    shares: Sequence[Fraction],
    rng: np.random.Generator,
) -> IntArray:
    """Return each unit's risk tier within its region, 0 being the riskiest.

    Rare characteristics come first, among equally rare ones small blocks, then chance.
    """
    count = len(region)
    order = np.lexsort((rng.random(count), block_persons, frequency, region))
    sizes = np.bincount(region)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    tier = np.zeros(count, dtype=np.int64)
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        for number, (low, high) in enumerate(pairwise(_ranks_of_tiers(size, tuple(shares)))):
            tier[order[start + low : start + high]] = number
    return tier


@lru_cache(maxsize=1024)
def _ranks_of_tiers(size: int, shares: tuple[Fraction, ...]) -> list[int]:
    """Return the first rank of each tier in a region of ``size`` units, and the end of the last."""
    bounds = np.cumsum([Fraction(0), *shares])
    return [int(bound * size + Fraction(1, 2)) for bound in bounds]


@lru_cache(maxsize=64)
def pairs_of_tiers(
    rate: Fraction, sizes: tuple[int, ...], weights: tuple[Fraction, ...]
) -> list[int]:
    """Return the number of pairs to start in each region and tier, for an overall rate."""
    parts = [size * weights[i % len(weights)] for i, size in enumerate(sizes)]
    return apportion(pairs_for_rate(rate, sum(sizes)), parts, sizes)


def pairs_for_rate(rate: Fraction, count: int) -> int:
    """Return the number of pairs with a share of swapped units nearest to the rate."""
    return min(int(rate * count / 2 + Fraction(1, 2)), count // 2)


def apportion(total: int, weights: Sequence[Fraction], limits: Sequence[int]) -> list[int]:
    """Return whole parts in proportion to weights, by largest remainder, within limits.

    The excess over a part's limit goes to the other parts in proportion to their weights.
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


# Swap units: households (or persons) as columns of whole numbers, whichever file says it.


_HOUSEHOLD = "household"
_ADULT_AGE = 18
#: Columns that are counted from the persons where the households do not have them.
DERIVED = ("size", "adults", "children")


@dataclass(frozen=True)
class Units:
    """Units that may be swapped: a household or person each."""

    places: TextArray  # the different places, sorted
    place: IntArray  # position of each unit's place
    key: IntArray  # class of each unit by the swap key, and by what makes it unique
    unique: IntArray
    persons: IntArray  # persons of each unit
    # for each person the unit that it moves with, -1 for none; None without persons
    member: IntArray | None


def swap_units(
    data: Microdata, *, unit: str, swap_key: tuple[str, ...], unique_key: tuple[str, ...]
) -> Units:
    """Return the units of microdata, with their key classes."""
    names = dict.fromkeys((*swap_key, *unique_key))
    if unit == "person":  # each a unit of its own
        if data.persons is None:
            raise ArgumentError("unit 'person' needs persons, got households only")
        places, place = data.persons.places()
        count = len(place)
        member: IntArray | None = np.arange(count, dtype=np.int64)
        columns = {}
        for name in names:
            values = _column(data.persons, name)
            if values is None:
                raise ArgumentError(
                    f"swap_key and unique_by must name columns of the persons, "
                    f"{', '.join(data.persons.columns)}, got {quote(name)}"
                )
            columns[name] = [values]
    else:
        households = _household_ids(data)
        count = len(households)
        member = None if data.persons is None else _members(data.persons, households)
        if data.households is not None:
            places, place = data.households.places()
        elif data.persons is not None and member is not None:
            places, place = _places_of_members(data.persons, member, count)
        columns = {name: _household_columns(data, name, member, count) for name in names}
    persons = np.ones(count, dtype=np.int64)
    if member is not None:
        persons = np.bincount(member[member >= 0], minlength=count).astype(np.int64)
    key, unique = (
        joint_kinds([renumbered(values) for name in chosen for values in columns[name]])
        for chosen in (swap_key, unique_key)
    )
    return Units(places, place, key, unique, persons, member)


def canonical_order(data: Microdata, *, unit: str) -> IntArray:
    """Return the units in an order that does not depend on the order of the records."""
    if unit == "household" and (data.households is None or _HOUSEHOLD in data.households.columns):
        return np.argsort(_household_ids(data))
    records = cast(Records, data.persons if unit == "person" else data.households)
    # By place and all columns: those alike in all of them may stand for each other.
    place = pa.array(records.places()[1])
    columns = {n: records.table.column(n) for n in records.columns}
    columns |= {records.schema.geography.finest: place}
    plain = {n: plain_column(c) for n, c in columns.items()}
    order = pc.sort_indices(pa.table(plain), sort_keys=[(n, "ascending") for n in plain])
    position: IntArray = order.to_numpy().astype(np.int64)
    return position


def _household_ids(data: Microdata) -> IntArray:
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


def _numbers(records: Records | None, source: str) -> IntArray:
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
        values = renumbered(values.astype(str))
    whole: IntArray = values.astype(np.int64)
    return whole


def _members(persons: Records, households: IntArray) -> IntArray:
    """Return the position of each person's household, or -1 if the file has none."""
    member: IntArray = pd.Index(households).get_indexer(pd.Index(_numbers(persons, "persons")))
    return member.astype(np.int64)


def _places_of_members(
    persons: Records, member: IntArray, count: int
) -> tuple[TextArray, IntArray]:
    """Return the distinct places, and each household's place, taken from its persons."""
    places, place = persons.places()
    household_place = np.zeros(count, dtype=np.int64)
    inside = member >= 0
    household_place[member[inside]] = place[inside]
    strays = np.flatnonzero(inside & (household_place[member] != place))
    if strays.size:
        row = int(strays[0])
        raise DataError(
            f"persons: row {row + 1}, column {persons.schema.geography.finest!r}: must be that of "
            f"the household's other persons, {places[household_place[member[row]]]!r}, "
            f"got {quote(places[place[row]])}"
        )
    return places, household_place


def _household_columns(
    data: Microdata, name: str, member: IntArray | None, count: int
) -> list[IntArray]:
    """Return the columns that a name means for households: counted and own.

    An own column of sizes may have an open end, so that it does not replace the count.
    """
    column = None if data.households is None else _column(data.households, name)
    columns = [] if column is None else [column]
    if data.persons is not None and member is not None:
        counted = _counted(data.persons, name, member, count)
        if counted is not None:
            columns.append(counted)
        elif column is None:
            values = _column(data.persons, name)
            inside = member >= 0
            if values is not None:
                columns.append(_multisets(member[inside], values[inside], count))
    if not columns:
        raise ArgumentError(
            f"swap_key and unique_by must name columns of households or persons, or "
            f"{', '.join(DERIVED)}, which are counted from persons (the last two by their age), "
            f"got {quote(name)}"
        )
    return columns


def _counted(persons: Records, name: str, member: IntArray, count: int) -> IntArray | None:
    """Return the number of persons (or adults) in each household, or None for other names."""
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
    """Return a hash of the multiset of values in each household.

    The sum of 64-bit mixes of the values does not depend on their order; two different
    multisets meet with a probability of 2**-64.
    """
    # The SplitMix64 finaliser (Steele, Lea and Flood 2014).
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    total = np.zeros(count, dtype=np.uint64)
    np.add.at(total, member, x ^ (x >> np.uint64(31)))  # unsigned sums wrap around, as wanted
    return total.view(np.int64)


def swap_geography(data: Microdata) -> Geography:
    """Return the geography of microdata; raise if it has no places."""
    records = data.households if data.households is not None else data.persons
    if records is None:
        raise ArgumentError("microdata", "must hold persons or households")
    geography = records.schema.geography
    if not geography.widths[-1]:
        raise ArgumentError(
            "place",
            f"of schema {records.schema.name!r} must be more than one, between which records are "
            "swapped",
            shown="none; rounding, suppression and noise need no places; for swapping name their "
            "column: --place town, in Python place='town'",
        )
    return geography


def points(places: TextArray, data: Microdata) -> FloatArray:
    """Return the coordinates of places, or their sorted positions if there are none."""
    if data.blocks is None or "x" not in data.blocks:
        return np.arange(len(places), dtype=float)[:, None]
    blocks = data.blocks.sort_values("block")
    codes = blocks["block"].to_numpy(dtype=str)
    position = positions(places, codes)
    absent = np.flatnonzero(position < 0)
    if absent.size:
        raise ArgumentError(
            "blocks",
            "must hold the coordinates of every place",
            shown=f"none for {quote(places[absent[0]])}",
        )
    return blocks[["x", "y"]].to_numpy(dtype=float)[position]


def moved(data: Microdata, units: Units, partner: IntArray, unit: str) -> Microdata:
    """Return the microdata with every swapped unit in its partner's place."""
    source = np.where(partner >= 0, partner, np.arange(len(partner)))
    place = units.place[source]
    persons, households = data.persons, data.households
    if unit == "person" and persons is not None:
        changed: dict[str, Any] = {persons.schema.geography.finest: units.places[place]}
        if "household" in persons.columns:
            changed["household"] = persons.table.column("household").take(source)
        return replace(data, persons=persons.replace(**changed))
    if households is not None:
        finest = households.schema.geography.finest
        households = households.replace(**{finest: units.places[place]})
    if persons is not None and units.member is not None:
        finest = persons.schema.geography.finest
        geoids = persons.geoids
        moves = units.member >= 0
        moves[moves] = partner[units.member[moves]] >= 0
        geoids[moves] = units.places[place[units.member[moves]]]
        persons = persons.replace(**{finest: geoids})
    return replace(data, persons=persons, households=households)

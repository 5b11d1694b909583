"""Synthetic microdata of people, housing units and blocks."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import ndtr

from bayesrisk._base.randomness import Seed, generator, seeded
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.census.population import figures, race_ethnicity, spec as national, subsidies
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.tables.microdata import Microdata
from bayesrisk.tables.records import Records
from bayesrisk.tables.schema import Schema

ADULT = 18
_OLDEST = 110
_YOUNGEST_PARENT, _OLDEST_PARENT = 15, 45
_OLDEST_KIN = 90


class Compositions(NamedTuple):
    """Households: block, number of people, type (0..11) and the householder's age class."""

    block: IntArray
    people: IntArray
    kind: IntArray
    age_class: IntArray


class Members(NamedTuple):
    """People in households, householder first."""

    household: IntArray
    relationship: IntArray
    sex: IntArray
    age: IntArray


def _draw(count: int, rng: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    """Draw people, type and age class of independent households from the national law."""
    law = national.household_law()
    flat = race_ethnicity.draw_categories(law.reshape(-1), count, rng)
    size, kind, age_class = np.unravel_index(flat, law.shape)
    people = size.astype(np.int64) + 1
    large = np.flatnonzero(people == 7)
    # the geometric law of numpy starts at 1
    people[large] += rng.geometric(1.0 / (1.0 + national.extra_mean()), large.size) - 1
    return people, kind, age_class


def fill_blocks(target: IntArray, rng: np.random.Generator) -> Compositions:
    """Draw households into each block until its target population is reached.

    A stopping rule that only looks at earlier draws leaves the law of the households unchanged
    (Wald's identity). The target is first lowered by the expected excess of the last household.
    Every block with a positive target gets at least one household.
    """
    overshoot = race_ethnicity.draw_categories(national.overshoot_law(), target.size, rng)
    missing = np.where(target > 0, np.maximum(target - overshoot, 1), 0)
    rounds: list[tuple[IntArray, ...]] = []
    mean = figures.HOUSEHOLD_PEOPLE / figures.HOUSEHOLDS
    while missing.any():  # ends: each round gives every open block somebody at least
        open_ = np.flatnonzero(missing)
        wanted = np.ceil(missing[open_] / mean + 2.0 * np.sqrt(missing[open_])).astype(np.int64)
        block = np.repeat(open_, wanted)
        people, kind, age_class = _draw(block.size, rng)
        before = np.cumsum(people) - people
        first = np.cumsum(wanted) - wanted
        added = before - np.repeat(before[first], wanted) < missing[block]
        rounds.append((block[added], people[added], kind[added], age_class[added]))
        missing -= np.bincount(block[added], people[added], missing.size).astype(np.int64)
        missing = np.maximum(missing, 0)
    empty = np.empty(0, dtype=np.int64)
    columns = [np.concatenate(c) for c in zip(*rounds, strict=True)] if rounds else [empty] * 4
    order = np.argsort(columns[0], kind="stable")
    return Compositions(*(c[order] for c in columns))


def _holders(homes: Compositions, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return sex and age of the householders."""
    starts = np.append(figures.HOLDER_STARTS, 85)
    starts[0] = ADULT
    low = starts[homes.age_class]
    width = np.where(homes.age_class < 8, starts[np.minimum(homes.age_class + 1, 8)] - low, 1)
    share = rng.random(low.size)
    # householders under 25: the older, the more of them; 85 and over: 18% fewer every year
    share = np.where(homes.age_class == 0, np.sqrt(share), share)
    oldest = (rng.geometric(0.18, low.size) - 1) % (_OLDEST - 84)  # no heap at the oldest age
    age = low + np.where(homes.age_class == 8, oldest, (share * width).astype(np.int64))
    coin = rng.integers(0, 2, low.size)
    sex = np.where(homes.kind < 4, coin, (homes.kind < 8).astype(np.int64))
    return sex, age


def _interpolate(low: IntArray, high: IntArray, share: FloatArray) -> IntArray:
    """Return whole numbers at ``share`` of the way from low to high, inclusive."""
    return low + (share * (high - low + 1)).astype(np.int64)


def _roles(
    homes: Compositions,
    household: IntArray,
    place: IntArray,
    age: IntArray,
    rng: np.random.Generator,
) -> tuple[IntArray, BoolArray]:
    """Return each member's relationship to the householder, and whether the member is a minor."""
    kind = homes.kind[household]
    couple = kind < 4
    first = place == couple + 1
    laws = np.array([*figures.FIRST_ROLES, *figures.FURTHER_ROLES])
    roles = np.array(figures.ROLES)
    role = race_ethnicity.pick(laws, kind + 12 * ~first, rng)
    relationship, minor = roles[role, 0], roles[role, 1].astype(bool)
    # too young for a child of age: a brother or sister instead
    young = (relationship == figures.CHILD) & ~minor & (age < ADULT + _YOUNGEST_PARENT)
    relationship = np.where(young, figures.RELATIVE, relationship)
    second = np.where(kind < 2, figures.SPOUSE, figures.PARTNER)
    couple_member = couple & (place == 1)
    relationship = np.where(couple_member, second, relationship)
    relationship = np.where(place == 0, figures.HOLDER, relationship)
    return relationship, minor & ~couple_member & (place > 0)


def _ages(
    relationship: IntArray,
    minor: BoolArray,
    holder: IntArray,
    man: IntArray,
    rng: np.random.Generator,
) -> IntArray:
    """Return ages that fit the householder's, as the generator's documentation explains."""
    share = rng.random(holder.size)
    parent = rng.random(holder.size) < figures.PARENTS
    normal = rng.standard_normal(holder.size)
    low = np.clip(holder - _OLDEST_PARENT, 0, ADULT - 1)
    high = np.clip(holder - _YOUNGEST_PARENT, 0, ADULT - 1)
    holder_child = relationship == figures.CHILD
    child = _interpolate(
        np.where(holder_child, low, 0), np.where(holder_child, high, ADULT - 1), share
    )
    top = np.maximum(holder - _YOUNGEST_PARENT, ADULT)
    grown = _interpolate(np.clip(holder - _OLDEST_PARENT, ADULT, top), top, share**2)
    gap, spread = figures.COUPLE_GAP
    mate = holder + np.rint(np.where(man == 0, -gap, gap) + spread * normal).astype(np.int64)
    peer = holder + np.rint(figures.PEER_SPREAD * normal).astype(np.int64)
    elder = holder + _interpolate(np.full_like(holder, 18), np.full_like(holder, 40), share)
    kin = np.where(parent & (elder < _OLDEST_KIN), elder, peer - figures.YOUNGER)
    adult = np.select(
        [
            holder_child,
            np.isin(relationship, (figures.SPOUSE, figures.PARTNER)),
            relationship == figures.RELATIVE,
        ],
        [grown, mate, kin],
        default=peer,
    )
    folded = np.where(adult < ADULT, 2 * ADULT - adult, adult)  # no heap at 18
    return np.where(minor, child, np.clip(folded, ADULT, _OLDEST))


def _sexes(
    relationship: IntArray, holder: IntArray, minor: BoolArray, rng: np.random.Generator
) -> IntArray:
    """Return sexes: spouses opposite, some partners equal, boys as frequent as at birth."""
    share = rng.random(holder.size)
    child_like = np.isin(relationship, (figures.CHILD, figures.NONRELATIVE))
    men = np.where(minor, figures.BOYS, np.where(child_like, figures.GROWN_MEN, 0.5))
    sex = (share >= men).astype(np.int64)
    same_sex = (relationship == figures.PARTNER) & (share < figures.SAME_SEX)
    mate = np.isin(relationship, (figures.SPOUSE, figures.PARTNER))
    return np.where(mate, np.where(same_sex, holder, 1 - holder), sex)


def make_members(homes: Compositions, rng: np.random.Generator) -> Members:
    """Draw relationship, sex and age of all household members."""
    holder_sex, holder_age = _holders(homes, rng)
    household = np.repeat(np.arange(homes.people.size), homes.people)
    first = np.cumsum(homes.people) - homes.people
    place = np.arange(household.size) - first[household]
    around, man = holder_age[household], holder_sex[household]
    relationship, minor = _roles(homes, household, place, around, rng)
    age = np.where(place == 0, around, _ages(relationship, minor, around, man, rng))
    sex = np.where(place == 0, man, _sexes(relationship, man, minor, rng))
    return Members(household, relationship, sex, age)


class Residents(NamedTuple):
    """People in group quarters: block, type 1..7, sex and age."""

    block: IntArray
    kind: IntArray
    sex: IntArray
    age: IntArray


def quarters_people(
    target: IntArray, spec: national.PopulationSpec, rng: np.random.Generator
) -> IntArray:
    """Return the number of people in group quarters in each block.

    A block has them with probability ``quarters_blocks``. Then any number from 0 to all of its
    people is equally probable. So on average it is half of them, whatever the block's size.
    """
    selected = rng.random(target.size) < spec.quarters_blocks
    return np.where(selected, rng.integers(0, target + 1), 0)


def make_residents(count: IntArray, rng: np.random.Generator) -> Residents:
    """Draw the people of group quarters, of one type in each block."""
    block = np.repeat(np.arange(count.size), count)
    kind = race_ethnicity.draw_categories(
        np.array(figures.GROUP_QUARTERS, dtype=float), count.size, rng
    )[block]
    low, high = np.array(figures.QUARTERS_AGES).T
    age = rng.integers(low[kind], high[kind] + 1)
    sex = rng.random(block.size) >= np.array(figures.QUARTERS_MEN)[kind]
    return Residents(block, kind + 1, sex.astype(np.int64), age)


def household_columns(
    homes: Compositions, people: Members, mask: IntArray, hispanic: IntArray
) -> dict[str, IntArray]:
    """Return the household columns that follow from the members."""
    count, household = homes.people.size, people.household

    def any_member(flag: BoolArray) -> BoolArray:
        """Return for each household whether some member has the flag."""
        return np.bincount(household, flag, count) > 0

    first = np.cumsum(homes.people) - homes.people
    relatives = np.isin(people.relationship, (figures.CHILD, figures.RELATIVE))
    minors = np.bincount(household, people.age < 18, count).astype(np.int64)
    # Relatives are those besides a spouse; partners are none.
    kind, sex = homes.kind, people.sex[first]
    nonfamily = np.where(np.isin(kind, (4, 8)), 4, 5) + 2 * sex
    return {
        "size": np.minimum(homes.people, 7),
        "type": np.where(kind < 2, 1, np.where(any_member(relatives), 2 + sex, nonfamily)),
        "detailed_type": homes.kind + 1,
        "under_18": 1 + (minors > 0),
        "over_65": 1 + any_member(people.age >= 65),
        "hispanic": 1 + hispanic[first],
        "hhage": np.searchsorted(figures.HOLDER_STARTS, people.age[first], side="right"),
        "race": race_ethnicity.race_class(mask[first]),
        "children": minors,
        "people": homes.people,
    }


_BLOCK_SIDE = 0.2  # kilometres: the nation's mean block, about 0.8 square kilometres, is far larger


class Places(NamedTuple):
    """Blocks sorted by code: code, tract, coordinates and target population."""

    geoids: TextArray
    tracts: IntArray
    x: FloatArray
    y: FloatArray
    target: IntArray


def _padded(numbers: IntArray, width: int) -> TextArray:
    return np.char.zfill(numbers.astype(f"U{width}"), width)


def _cell(index: IntArray, count: int) -> tuple[IntArray, IntArray, int]:
    """Return column, row and side of each index on the smallest square grid of ``count`` cells."""
    side = int(np.ceil(np.sqrt(count)))
    return index % side, index // side, side


def make_places(
    spec: national.PopulationSpec,
    rng: np.random.Generator,
    first: int = 0,
    counties: int | None = None,
) -> Places:
    """Draw the blocks: nested codes, coordinates on nested grids, and target populations.

    The first block is in county number ``first`` of ``counties``, by default the number that exist.
    """
    number = np.arange(spec.n_blocks)
    group, block = np.divmod(number, spec.blocks_per_group)
    tract, group_in_tract = np.divmod(group, spec.groups_per_tract)
    county, tract_in_county = np.divmod(tract, spec.tracts_per_county)
    county = county + first
    codes = [
        _padded(2 * (county % national.COUNTIES) + 1, 3),  # counties have odd numbers
        _padded(100 * (tract_in_county + 1), 6),
        _padded(1000 * (group_in_tract + 1) + block, 4),
    ]
    geoids = np.full(spec.n_blocks, spec.state)
    for part in codes:
        geoids = np.char.add(geoids, part)
    counts = (
        (block, spec.blocks_per_group),
        (group_in_tract, spec.groups_per_tract),
        (tract_in_county, spec.tracts_per_county),
        (county, int(county[-1]) + 1 if counties is None else counties),
    )
    xy = rng.random((2, spec.n_blocks))
    side = 1
    for index, count in counts:
        column, row, cells = _cell(index, count)
        xy += side * np.stack([column, row])
        side *= cells
    occupied = rng.random(spec.n_blocks) < spec.occupied_blocks
    cumulative = np.cumsum(national.block_law())
    size = np.searchsorted(cumulative / cumulative[-1], rng.random(spec.n_blocks), side="right")
    x, y = np.round(_BLOCK_SIDE * xy, 4)
    return Places(geoids, tract, x, y, np.where(occupied, size, 0))


Columns = dict[str, IntArray]
NO_HOUSEHOLD = -1  # people in group quarters


class Arrays(NamedTuple):
    """Columns of people and housing units; ``block`` is a position in the places."""

    places: Places
    people: Columns
    units: Columns


def _units(
    homes: Compositions,
    columns: Columns,
    quarters: IntArray,
    spec: national.PopulationSpec,
    rng: np.random.Generator,
) -> Columns:
    """Return the columns of all housing units, in each block occupied ones first."""
    occupied = np.bincount(homes.block, minlength=quarters.size)
    # Tenure given age, alike in a block through a shared Gaussian score.
    shared = rng.standard_normal(quarters.size)[homes.block]
    individual = rng.standard_normal(homes.block.size)
    r = spec.tenure_correlation
    score = ndtr(np.sqrt(r) * shared + np.sqrt(1.0 - r) * individual)
    cumulative = np.cumsum(national.tenure_law(), axis=1)[homes.age_class]
    tenure = np.asarray(1 + np.minimum((score[:, None] >= cumulative).sum(axis=1), 3))
    wanted = subsidies.property_sizes(occupied, quarters > 0, spec, rng)
    subsidised, bedrooms = subsidies.subsidise(homes.block, columns, wanted, spec, rng)
    filled = {
        "tenure": np.where(subsidised, 3, tenure),
        "vacancy": np.zeros_like(tenure),
        **columns,
        "bedrooms": bedrooms,
        "subsidised": subsidised.astype(np.int64),
    }
    # Units are taken one after the other, each vacant with the nation's probability, until the
    # occupied ones are there: a negative binomial number of vacant ones.
    share = figures.HOUSEHOLDS / (figures.HOUSEHOLDS + sum(figures.VACANT))
    vacant = rng.negative_binomial(np.maximum(occupied, 1), share)
    block = np.repeat(np.arange(occupied.size), np.where(occupied > 0, vacant, 0))
    status = 1 + race_ethnicity.draw_categories(
        np.array(figures.VACANT, dtype=float), block.size, rng
    )
    absent = np.zeros_like(block)
    units = {
        name: np.concatenate([values, status if name == "vacancy" else absent])
        for name, values in filled.items()
    }
    units["block"] = np.concatenate([homes.block, block])
    return units


def make_arrays(
    spec: national.PopulationSpec,
    rng: np.random.Generator,
    first: int = 0,
    counties: int | None = None,
) -> Arrays:
    """Draw a population: places, households, members, group quarters and vacant units."""
    places = make_places(spec, rng, first, counties)
    quarters = quarters_people(places.target, spec, rng)
    homes = fill_blocks(places.target - quarters, rng)
    members = make_members(homes, rng)
    residents = make_residents(quarters, rng)
    blocks = homes.block[members.household]
    total = np.bincount(blocks, minlength=quarters.size) + quarters
    laws = race_ethnicity.block_mixes(places.tracts, total, spec, rng)
    mask, hispanic = race_ethnicity.member_groups(
        laws, blocks, members.household, members.relationship, spec, rng
    )
    columns = household_columns(homes, members, mask, hispanic)
    units = _units(homes, columns, quarters, spec, rng)
    other_mask, other_hispanic = race_ethnicity.race_masks(
        race_ethnicity.pick(laws, residents.block, rng), rng
    )
    zero = np.zeros_like(blocks)
    people = {
        "block": (blocks, residents.block),
        "sex": (members.sex, residents.sex),
        "age": (members.age, residents.age),
        "race": (mask, other_mask),
        "hisp": (hispanic, other_hispanic),
        "gq": (zero, residents.kind),
        "relationship": (members.relationship, np.full_like(residents.block, figures.IN_QUARTERS)),
        "household": (members.household, np.full_like(residents.block, NO_HOUSEHOLD)),
    }
    joined = {name: np.concatenate(parts) for name, parts in people.items()}
    return Arrays(places, *_ordered(joined, units))


def _ordered(people: Columns, units: Columns) -> tuple[Columns, Columns]:
    """Return people and units sorted by block, with units numbered in that order."""
    order = np.argsort(units["block"], kind="stable")
    units = {name: values[order] for name, values in units.items()}
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    home = people["household"]
    inside = home != NO_HOUSEHOLD
    home = np.where(inside, number[np.where(inside, home, 0)] if order.size else 0, NO_HOUSEHOLD)
    by_block = np.argsort(people["block"], kind="stable")
    people = {name: values[by_block] for name, values in {**people, "household": home}.items()}
    units["household"] = np.arange(order.size)
    people["person"] = np.arange(by_block.size)
    return people, units


_PERSON = ("block", "household", "person", "sex", "age", "race", "hisp", "gq", "relationship")
_UNIT = (
    *("block", "household", "tenure", "vacancy", "size", "type", "detailed_type", "under_18"),
    *("over_65", "hispanic", "hhage", "race", "people", "children", "bedrooms", "subsidised"),
)
_IDENTITY = ("block", "household", "person")


@seeded
def simulate_population(spec: national.PopulationSpec | str, *, rng: Seed) -> Microdata:
    """Return a consistent synthetic population: people, housing units and blocks.

    Households come first (size, type and householder's age from one law raked to national margins),
    then everybody in them. Race and ethnicity are similar within household, block and tract. Some
    people live in group quarters, some units are vacant, some households are subsidised. Nothing is
    copied from real records.

    Parameters
    ----------
    spec : PopulationSpec or str
        Settings, or the name of a preset; see :func:`population_spec`.
    rng : int, Generator or SeedSequence
        Seed or generator; the same seed gives the same population.

    Returns
    -------
    Microdata ``persons`` (schema ``sf1-person``) with further columns: ``household`` (-1 in group
    quarters), ``person`` (row number), and ``gq`` (0 household, 1 to 7 kind of group quarters).
    ``relationship`` is 0 householder, 1 spouse, 2 unmarried partner, 3 child, 4 other relative, 5
    nonrelative, 6 in group quarters; ``households``, all housing units (schema
        ``household-dhc``), with ``household`` (row number), ``people`` (exact), ``children``
        (under 18), ``bedrooms`` (1 at most one, 2, 3 or more; 0 if not subsidised) and
        ``subsidised``; ``blocks`` with centres ``x``, ``y`` in kilometres.  Rows are sorted by
        block.

    See Also
    --------
    population_summary : Figures of a population beside published national ones.

    Examples
    --------
    >>> population = simulate_population("tract", rng=1)
    >>> population.persons.schema.name, population.households.schema.name, len(population.blocks)
    ('sf1-person', 'household-dhc', 153)
    """
    settings = national.named_spec(spec, "spec") if isinstance(spec, str) else spec
    if not isinstance(settings, national.PopulationSpec):
        raise ArgumentTypeError(
            f"spec must be a PopulationSpec or the name of one, got {type(spec).__name__}"
        )
    return as_microdata(make_arrays(settings, generator(rng)))


def as_microdata(arrays: Arrays) -> Microdata:
    """Return the arrays as microdata."""
    blocks = pd.DataFrame(
        {"block": arrays.places.geoids, "x": arrays.places.x, "y": arrays.places.y}
    )
    persons = Records(Schema.named("sf1-person"), _table(arrays, arrays.people, _PERSON))
    units = Records(Schema.named("household-dhc"), _table(arrays, arrays.units, _UNIT))
    return Microdata(persons, units, blocks, made_up=True)


def _table(arrays: Arrays, columns: Columns, names: tuple[str, ...]) -> pa.Table:
    """Return columns as an Arrow table: small codes, wide identifiers, blocks as text."""
    parts = {
        name: pa.array(columns[name], pa.int64() if name in _IDENTITY else pa.int16())
        for name in names
    }
    codes = pa.array(arrays.places.geoids.tolist(), pa.string())
    return pa.table({**parts, "block": codes.take(pa.array(columns["block"]))})

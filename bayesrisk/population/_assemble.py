"""The whole population as arrays: people, housing units, blocks."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bayesrisk._types import IntArray
from bayesrisk.population import _national as national
from bayesrisk.population._columns import household_columns
from bayesrisk.population._geography import Places, make_places
from bayesrisk.population._groups import block_mixes, masks_of, member_groups, pick
from bayesrisk.population._households import Compositions, fill_blocks, make_members
from bayesrisk.population._laws import tenure_law
from bayesrisk.population._quarters import make_residents, quarters_people
from bayesrisk.population.spec import PopulationSpec
from bayesrisk.population.subsidy import property_sizes, subsidise

Columns = dict[str, IntArray]
NO_HOUSEHOLD = -1  # people in group quarters


@dataclass(frozen=True)
class Arrays:
    """Columns of people and of housing units, ``block`` being a position in the places."""

    places: Places
    people: Columns
    units: Columns


def _tenure(
    block: IntArray,
    age_class: IntArray,
    n_blocks: int,
    spec: PopulationSpec,
    rng: np.random.Generator,
) -> IntArray:
    """Return tenure 1..4 given age, alike in a block through a shared Gaussian score."""
    shared = rng.standard_normal(n_blocks)[block]
    own = rng.standard_normal(block.size)
    r = spec.tenure_correlation
    score = ndtr(np.sqrt(r) * shared + np.sqrt(1.0 - r) * own)
    cumulative = np.cumsum(tenure_law(), axis=1)[age_class]
    return np.asarray(1 + np.minimum((score[:, None] >= cumulative).sum(axis=1), 3))


def _vacant(homes: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return block and status of vacant units.

    Units are taken one after the other, each vacant with the nation's probability, until the
    occupied ones are there: a negative binomial number of vacant ones.
    """
    vacant = sum(national.VACANT)
    occupied = national.HOUSEHOLDS / (national.HOUSEHOLDS + vacant)
    count = np.where(homes > 0, rng.negative_binomial(np.maximum(homes, 1), occupied), 0)
    block = np.repeat(np.arange(homes.size), count)
    law = np.array(national.VACANT, dtype=float)[None, :]
    return block, 1 + pick(law, np.zeros(block.size, dtype=np.int64), rng)


def _units(
    homes: Compositions,
    columns: Columns,
    quarters: IntArray,
    spec: PopulationSpec,
    rng: np.random.Generator,
) -> Columns:
    """Return the columns of all housing units, occupied ones in front of vacant ones by block."""
    occupied = np.bincount(homes.block, minlength=quarters.size)
    tenure = _tenure(homes.block, homes.age_class, quarters.size, spec, rng)
    wanted = property_sizes(occupied, quarters > 0, spec, rng)
    subsidised, bedrooms = subsidise(homes.block, columns, wanted, spec, rng)
    filled = {
        "tenure": np.where(subsidised, 3, tenure),
        "vacancy": np.zeros_like(tenure),
        **columns,
        "bedrooms": bedrooms,
        "subsidised": subsidised.astype(np.int64),
    }
    block, status = _vacant(occupied, rng)
    absent = np.zeros_like(block)
    units = {
        name: np.concatenate([values, status if name == "vacancy" else absent])
        for name, values in filled.items()
    }
    units["block"] = np.concatenate([homes.block, block])
    return units


def make_arrays(
    spec: PopulationSpec, rng: np.random.Generator, first: int = 0, counties: int | None = None
) -> Arrays:
    """Draw a population: places, households with their members, group quarters, vacant units."""
    places = make_places(spec, rng, first, counties)
    quarters = quarters_people(places.target, spec, rng)
    homes = fill_blocks(places.target - quarters, rng)
    members = make_members(homes, rng)
    residents = make_residents(quarters, rng)
    blocks = homes.block[members.household]
    total = np.bincount(blocks, minlength=quarters.size) + quarters
    laws = block_mixes(places.tracts, total, spec, rng)
    mask, hispanic = member_groups(laws, blocks, members.household, members.relationship, spec, rng)
    columns = household_columns(homes, members, mask, hispanic)
    units = _units(homes, columns, quarters, spec, rng)
    other_mask, other_hispanic = masks_of(pick(laws, residents.block, rng), rng)
    zero = np.zeros_like(blocks)
    people = {
        "block": (blocks, residents.block),
        "sex": (members.sex, residents.sex),
        "age": (members.age, residents.age),
        "race": (mask, other_mask),
        "hisp": (hispanic, other_hispanic),
        "gq": (zero, residents.kind),
        "relationship": (members.relationship, np.full_like(residents.block, national.IN_QUARTERS)),
        "household": (members.household, np.full_like(residents.block, NO_HOUSEHOLD)),
    }
    joined = {name: np.concatenate(parts) for name, parts in people.items()}
    return Arrays(places, *_ordered(joined, units))


def _ordered(people: Columns, units: Columns) -> tuple[Columns, Columns]:
    """Sort by block, number the units in that order, and say so in the people's column."""
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

"""Synthetic microdata of people, housing units and blocks."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import ndtr

from bayesrisk._base.randomness import Seed, generator, seeded
from bayesrisk._base.validation import IntArray
from bayesrisk.census.population import figures, race_ethnicity, spec as national, subsidies
from bayesrisk.census.population.people import (
    Compositions,
    fill_blocks,
    household_columns,
    make_members,
    make_residents,
    quarters_people,
)
from bayesrisk.census.population.places import Places, make_places
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.tables.microdata import Microdata
from bayesrisk.tables.records import Records
from bayesrisk.tables.schema import Schema

Columns = dict[str, IntArray]
NO_HOUSEHOLD = -1  # people in group quarters


class Arrays(NamedTuple):
    """Columns of people and of housing units, ``block`` being a position in the places."""

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
    """Return the columns of all housing units, occupied ones in front of vacant ones by block."""
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
    """Draw a population: places, households with their members, group quarters, vacant units."""
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


_PERSON = ("block", "household", "person", "sex", "age", "race", "hisp", "gq", "relationship")
_UNIT = (
    *("block", "household", "tenure", "vacancy", "size", "type", "detailed_type", "under_18"),
    *("over_65", "hispanic", "hhage", "race", "people", "children", "bedrooms", "subsidised"),
)
_IDENTITY = ("block", "household", "person")


@seeded
def simulate_population(spec: national.PopulationSpec | str, *, rng: Seed) -> Microdata:
    """Return a synthetic population: people, housing units and blocks that belong together.

    Households come first (size, type and householder's age from one law raked to national
    margins), then everybody in them; race and ethnicity are alike within household, block and
    tract; some people live in group quarters, some units are vacant, some households are
    subsidised.  Nothing is copied from anybody's records.

    Parameters
    ----------
    spec : PopulationSpec or str
        Settings, or the name of ready ones; see :func:`population_spec`.
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
    population_summary : Compare a population with published national.

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
    """Return arrays as microdata."""
    blocks = pd.DataFrame(
        {"block": arrays.places.geoids, "x": arrays.places.x, "y": arrays.places.y}
    )
    persons = Records(Schema.named("sf1-person"), _table(arrays, arrays.people, _PERSON))
    units = Records(Schema.named("household-dhc"), _table(arrays, arrays.units, _UNIT))
    return Microdata(persons, units, blocks, made_up=True)


def _table(arrays: Arrays, columns: Columns, names: tuple[str, ...]) -> pa.Table:
    """Return columns as an Arrow table: small codes, wide identities, text for the block."""
    parts = {
        name: pa.array(columns[name], pa.int64() if name in _IDENTITY else pa.int16())
        for name in names
    }
    codes = pa.array(arrays.places.geoids.tolist(), pa.string())
    return pa.table({**parts, "block": codes.take(pa.array(columns["block"]))})

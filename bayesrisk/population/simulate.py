"""Synthetic microdata of people, housing units and blocks."""

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk._random import Seed, generator
from bayesrisk.exceptions import ArgumentTypeError
from bayesrisk.population._assemble import Arrays, make_arrays
from bayesrisk.population.spec import PopulationSpec, named_spec
from bayesrisk.tables.microdata import Microdata
from bayesrisk.tables.records import Records
from bayesrisk.tables.schema import Schema

_PERSON = ("block", "household", "person", "sex", "age", "race", "hisp", "gq", "relationship")
_UNIT = (
    *("block", "household", "tenure", "vacancy", "size", "type", "detailed_type", "under_18"),
    *("over_65", "hispanic", "hhage", "race", "people", "children", "bedrooms", "subsidised"),
)
_IDENTITY = ("household", "person")


def simulate_population(spec: PopulationSpec | str, *, rng: Seed) -> Microdata:
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
    Microdata
        ``persons`` (schema ``sf1-person``) with further columns ``household`` (-1 in group
        quarters), ``person`` (row number), ``gq`` (0 household, 1 to 7 kind of group quarters) and
        ``relationship`` (0 householder, 1 spouse, 2 unmarried partner, 3 child, 4 other relative,
        5 nonrelative, 6 in group quarters); ``households``, all housing units (schema
        ``household-dhc``), with ``household`` (row number), ``people`` (exact), ``children``
        (under 18), ``bedrooms`` (1 at most one, 2, 3 or more; 0 if not subsidised) and
        ``subsidised``; ``blocks`` with centres ``x``, ``y`` in kilometres.  Rows are sorted by
        block.

    Raises
    ------
    ArgumentError
        If there are no ready settings of that name.

    See Also
    --------
    population_summary : Compare a population with published figures.

    Examples
    --------
    >>> population = simulate_population("tract", rng=1)
    >>> population.persons.schema.name, population.households.schema.name, len(population.blocks)
    ('sf1-person', 'household-dhc', 153)
    """
    settings = named_spec(spec, "spec") if isinstance(spec, str) else spec
    if not isinstance(settings, PopulationSpec):
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
    return Microdata(persons, units, blocks)


def _table(
    arrays: Arrays, columns: dict[str, NDArray[np.int64]], names: tuple[str, ...]
) -> pa.Table:
    """Return columns as an Arrow table: small codes, wide identities, text for the block."""
    codes = pa.array(arrays.places.geoids.tolist(), pa.string())
    parts = {}
    for name in names:
        if name == "block":
            parts[name] = codes.take(pa.array(columns["block"]))
        else:
            parts[name] = pa.array(columns[name], pa.int64() if name in _IDENTITY else pa.int16())
    return pa.table(parts)

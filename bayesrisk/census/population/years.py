"""Synthetic people some years later, by a given law of change."""

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import Seed, generator, seeded
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.tables.change import PopulationChange
from bayesrisk.tables.records import Records
from bayesrisk.tables.schema import Schema

# Stylised rates.  Deaths: a Gompertz law near the period life table of the United States for 2010
# (probability to die within a year about 0.0017 at 40 and 0.057 at 80).  Births: about 3.9 million
# a year among 309 million people.  Staying and arrivals: shapes of no source, such that people in
# their twenties move most and about as many arrive as leave.
_DEATH, _DEATH_RISE = 5e-5, 0.088
_BIRTHS = 3.9 / 309.0
_MOVES, _YOUNG_MOVES = 0.05, 0.15  # a year: of all, and of people of 18 to 29


def stylised_change(years: int) -> PopulationChange:
    """Return a stylised law of change for people of schema ``sf1-person``.

    Sex, race and ethnicity do not change; ``dataclasses.replace`` gives a law in which they do.
    Each year 5 % move, and 15 % of those aged 18 to 29 at first.

    Parameters
    ----------
    years : int
        Number of years, in [1, 50].

    Examples
    --------
    >>> change = stylised_change(10)
    >>> change.stay[[5, 20, 50, 85]].round(2).tolist()
    [0.6, 0.2, 0.56, 0.14]
    """
    check.integer(years, "years", lower=1, upper=50)
    schema = Schema.named("sf1-person")
    ages = np.arange(schema.attribute("age").size)
    rates = (1.0 - np.where((ages >= 18) & (ages < 30), _YOUNG_MOVES, _MOVES)) ** years
    yearly = np.minimum(_DEATH * np.exp(_DEATH_RISE * (ages[:, None] + np.arange(years))), 1.0)
    dying = 1.0 - np.prod(1.0 - yearly, axis=1)
    leavers = float(1.0 - rates.mean())
    return PopulationChange(
        schema,
        years,
        age="age",
        staying=rates,  # type: ignore[arg-type]
        dying=dying,
        arrivals=leavers,
        births=_BIRTHS * years,
    )


@seeded
def simulate_later(first: Records, change: PopulationChange, *, rng: Seed) -> Records:
    """Return records of people some years later, drawn by a law of change.

    Parameters
    ----------
    first : Records
        Records of the first year; a column ``person`` identifies them, by default the row number.
    change : PopulationChange
        The law of change.
    rng : int, Generator or SeedSequence
        Seed or generator; the same seed gives the same records.

    Returns
    -------
    Records
        Records sorted by place, with the column ``person``. People who stay keep their number; new
        people have numbers above all others. Arrivals and births are Poisson in every place. If the
        law has no records of its own for them, they are like those of the first year.

    See Also
    --------
    bayesrisk.tables.link_years : The trajectories of the records of both years.

    Examples
    --------
    >>> from bayesrisk import simulate_population
    >>> first = simulate_population("tract", rng=1).persons
    >>> later = simulate_later(first, stylised_change(10), rng=2)
    >>> len(first), later.columns
    (4943, ('block', 'sex', 'age', 'race', 'hisp', 'person'))
    """
    schema = check.instance(change, PopulationChange, "change").schema
    if check.instance(first, Records, "first").schema != schema:
        name = quote(first.schema.name)
        raise ArgumentError(f"first must be of schema {schema.name!r}, got {name}")
    random = generator(rng)
    ids = np.arange(len(first))
    if "person" in first.columns:
        ids = first.table.column("person").to_numpy()
    places, place = first.places()
    values = schema.indices(first.cells())
    age = values.get(change.age or "", np.zeros(len(first), np.int64))
    stayers = np.flatnonzero(random.random(len(first)) < change.stay[age])
    moved = {name: codes[stayers] for name, codes in values.items()}
    for name, matrix in change.changes.items():
        moved[name] = _next(np.asarray(matrix), moved[name], random)
    if change.age is not None:
        moved[change.age] = _next(change.ageing, moved[change.age], random)
    people = np.bincount(place, minlength=places.size)
    arrivals = np.asarray(change.arrivals)
    new = random.poisson(people * float(arrivals if arrivals.ndim == 0 else arrivals.sum()))
    cells = first.cells()
    if arrivals.ndim == 0:
        arrival_cells = cells[random.integers(0, max(len(first), 1), int(new.sum()))]
    else:
        total = max(float(arrivals.sum()), np.finfo(float).tiny)
        arrival_cells = random.choice(
            schema.size, int(new.sum()), p=arrivals / total if new.sum() else None
        )
    born = random.poisson(people * change.births)
    babies = schema.indices(cells[random.integers(0, max(len(first), 1), int(born.sum()))])
    if change.age is not None and born.sum():
        babies[change.age] = random.choice(change.newborn.size, int(born.sum()), p=change.newborn)
    arrived = schema.indices(np.asarray(arrival_cells, np.int64))
    numbers = np.arange(int(new.sum() + born.sum())) + (int(ids.max(initial=-1)) + 1)
    codes = np.arange(places.size)
    new_place = np.concatenate([place[stayers], np.repeat(codes, new), np.repeat(codes, born)])
    order = np.argsort(new_place, kind="stable")
    columns = {
        a.name: np.concatenate([moved[a.name], arrived[a.name], babies[a.name]])[order] + a.first
        for a in schema.attributes
    }
    frame = pd.DataFrame(
        {schema.geography.finest: places[new_place[order]], **columns}
        | {"person": np.concatenate([ids[stayers], numbers])[order]}
    )
    return Records.from_frame(frame, schema=schema, source="later year")


def _next(matrix: FloatArray, values: IntArray, rng: np.random.Generator) -> IntArray:
    """Return random next values, by the rows of a transition matrix."""
    # Row r holds r + P(next <= 0), r + P(next <= 1), ...: one search finds row and value.
    size = matrix.shape[1]
    below = np.minimum(np.cumsum(matrix, axis=1), 1.0) + np.arange(len(matrix))[:, None]
    below[:, -1] = np.arange(len(matrix)) + 1.0
    position = np.searchsorted(below.ravel(), values + rng.random(values.size), side="right")
    return np.asarray(np.minimum(position - values * size, size - 1), dtype=np.int64)

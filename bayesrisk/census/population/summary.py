"""Figures of a population beside the nation's published ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.census.population import figures
from bayesrisk.census.population.subsidies import occupancy_violation
from bayesrisk.exceptions import DataError
from bayesrisk.tables.cells import class_sizes
from bayesrisk.tables.microdata import Microdata, read_microdata
from bayesrisk.tables.records import Records
from bayesrisk.tables.schema import age_group

if TYPE_CHECKING:
    import pandas as pd

_LOWS = np.array([low for low, _ in figures.SIZE_CLASSES])


@displayed
@dataclass(frozen=True)
class PopulationSummary(Tabular):
    """Block sizes, uniques and homogeneity by block size class, beside published figures.

    Arrays have one entry for each of seven classes of block population: 1-9, 10-49, 50-99, 100-249,
    250-499, 500-999, 1000 and over. Shares are of all people or blocks with people, NaN in an empty
    class. ``blocks`` are those with people. ``unique`` is the share of people alone in their block
    with their sex and age class (38 classes). ``modal`` is the share of people with the most
    frequent race and ethnicity of their block: the largest success of a best guess.
    ``proportional`` is that of a random guess from the block's mix: the mean over people of the sum
    of squared shares in the block.

    Further figures are of the whole population. ``all_blocks`` include those without people.
    ``unique_exact`` is the share of people alone in their block with their sex and age in years.
    ``quarters`` is the share of people in group quarters, and ``vacant`` that of housing units.
    ``household_size`` is the mean of occupied units. All are NaN if unknown. ``subsidised`` is the
    number of subsidised households, and ``violations`` the number of them above the occupancy
    limit.
    """

    blocks: IntArray
    people: IntArray
    unique: FloatArray
    modal: FloatArray
    proportional: FloatArray
    all_blocks: int
    unique_exact: float
    quarters: float
    vacant: float
    household_size: float
    subsidised: int
    violations: int

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each class of block population, with shares in per cent."""
        import pandas as pd  # slow to import

        def per_cent(part: ArrayLike) -> FloatArray:
            values = np.asarray(part, dtype=float)
            return np.asarray(100.0 * values / values.sum())

        ranges = [f"{low}-{high}" if high else f"{low}+" for low, high in figures.SIZE_CLASSES]
        return pd.DataFrame(
            {
                "population": ranges,
                "blocks": per_cent(self.blocks),
                "published_blocks": per_cent(figures.CLASS_BLOCKS),
                "people": per_cent(self.people),
                "published_people": per_cent(figures.CLASS_PEOPLE),
                "unique": 100.0 * self.unique,
                "published_unique": np.array(figures.CLASS_UNIQUE),
                "modal": 100.0 * self.modal,
                "published_modal": np.array(figures.CLASS_MODAL),
                "proportional": 100.0 * self.proportional,
                "published_proportional": np.array(figures.CLASS_PROPORTIONAL),
            }
        )


def _class_sums(values: ArrayLike, group: IntArray) -> FloatArray:
    return np.asarray(np.bincount(group, np.asarray(values, dtype=float), _LOWS.size))


def _column(records: Records, name: str) -> IntArray:
    return np.asarray(records.table.column(name).to_numpy(), dtype=np.int64)


def _housing(units: Records | None) -> dict[str, float]:
    sums = dict.fromkeys(("units", "occupied", "home_people"), np.nan)
    sums |= {"subsidised": 0, "violations": 0}
    if units is None or units.schema.name != "household-dhc":
        return sums
    occupied = units.codes("vacancy") == 0
    sums |= {"units": len(units), "occupied": int(occupied.sum())}
    inside = {"people", "bedrooms", "subsidised"} <= set(units.columns)
    if inside:
        people, bedrooms = (_column(units, name)[occupied] for name in ("people", "bedrooms"))
        sums["home_people"] = int(people.sum())
        sums["subsidised"] = int((_column(units, "subsidised") == 1).sum())
        if people.size:
            sums["violations"] = int(occupancy_violation(people, bedrooms).sum())
    return sums


def population_sums(persons: Records, data: Microdata) -> dict[str, float]:
    """Return the sums from which a summary is computed; disjoint places' sums add up.

    People are those of the data, of schema ``sf1-person``. An unknown sum is NaN.
    """
    places, block = persons.places()
    sex, age = persons.codes("sex"), persons.codes("age")
    group = 2 * persons.codes("race") + persons.codes("hisp")
    size = np.bincount(block)
    class_of_block = np.searchsorted(_LOWS, size, side="right") - 1
    person_class = class_of_block[block]
    age_class = age_group(age)
    in_group = class_sizes(block, group)
    largest = np.zeros(size.size, dtype=np.int64)
    np.maximum.at(largest, block, in_group)
    by_class = {
        "blocks": np.bincount(class_of_block, minlength=_LOWS.size),
        "people": np.bincount(person_class, minlength=_LOWS.size),
        "unique": _class_sums(class_sizes(block, sex, age_class) == 1, person_class),
        "modal": _class_sums(largest[block] / size[block], person_class),
        "proportional": _class_sums(in_group / size[block], person_class),
    }
    quarters = int((_column(persons, "gq") > 0).sum()) if "gq" in persons.columns else np.nan
    sums = {
        **{f"{n} {i}": v for n, counts in by_class.items() for i, v in enumerate(counts)},
        "all_blocks": places.size if data.blocks is None else len(data.blocks),
        "unique_exact": int((class_sizes(block, sex, age) == 1).sum()),
        "quarters": quarters,
        **_housing(data.households),
    }
    return {name: float(value) for name, value in sums.items()}


def summary_of_sums(sums: Mapping[str, float]) -> PopulationSummary:
    """Return the summary computed from sums."""
    blocks, people, *shares = (
        np.array([sums[f"{name} {i}"] for i in range(_LOWS.size)])
        for name in ("blocks", "people", "unique", "modal", "proportional")
    )
    no = np.full(_LOWS.size, np.nan)
    unique, modal, proportional = (
        np.divide(total, people, out=no.copy(), where=people > 0) for total in shares
    )
    everybody = float(people.sum()) or np.nan
    occupied = sums["occupied"] or np.nan
    return PopulationSummary(
        blocks.astype(np.int64),
        people.astype(np.int64),
        unique,
        modal,
        proportional,
        all_blocks=int(sums["all_blocks"]),
        unique_exact=sums["unique_exact"] / everybody,
        quarters=sums["quarters"] / everybody,
        vacant=1.0 - sums["occupied"] / (sums["units"] or np.nan),
        household_size=sums["home_people"] / occupied,
        subsidised=int(sums["subsidised"]),
        violations=int(sums["violations"]),
    )


def population_summary(population: Microdata | Records) -> PopulationSummary:
    """Return a population's block sizes, uniques and homogeneity, beside the nation's.

    Parameters
    ----------
    population : Microdata or Records
        People of schema ``sf1-person``, synthetic or not.

    Raises
    ------
    DataError
        If there are no people of that schema.

    Examples
    --------
    >>> from bayesrisk.census import simulate_population
    >>> summary = population_summary(simulate_population("tract", rng=1))
    >>> int(summary.people.sum()) == len(simulate_population("tract", rng=1).persons)
    True
    """
    data = read_microdata(population, "population")
    persons = data.persons
    if persons is None or persons.schema.name != "sf1-person" or len(persons) == 0:
        raise DataError("population: must hold people of schema 'sf1-person', got none")
    return summary_of_sums(population_sums(persons, data))

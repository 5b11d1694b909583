"""Counts of race by Hispanic origin: the form in which majority inference compares releases."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.linkage.persons import CELLS, Persons, person_frame, race_ethnicity
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.recode import CENRACE

_ADULT = 18
#: Tables of races, and of races of those who are not Hispanic; of everybody and of adults.
_SF1 = {False: ("P8", "P9"), True: ("P10", "P11")}
_PL94 = {False: "hispanic * cenrace", True: "votingage * hispanic * cenrace"}


def race_ethnicity_counts(
    source: PublishedTables | pd.DataFrame | Persons, *, level: str = "block", adults: bool = False
) -> pd.DataFrame:
    """Return counts of race by Hispanic origin for each place, from tables or from records.

    Parameters
    ----------
    source : PublishedTables, pandas.DataFrame or Persons
        Tables P8 and P9 (for adults P10 and P11) of the 2010 Summary File 1, or the redistricting
        tables with Hispanic origin by race; noisy ones too.  Or records with ``block``, ``race``
        and ``hisp`` (for adults also ``age``).
    level : str, default "block"
        Level of the places; for records ``block``.
    adults : bool, default False
        Whether only people of 18 years and over count.

    Returns
    -------
    pandas.DataFrame
        A row for each place, in order, and 126 columns of int64: cell ``2 (race - 1) + hisp``, race
        the mask 1 to 63.  Withheld counts are zero.

    Raises
    ------
    DataError
        If a column of records is missing or a value is out of range.

    Notes
    -----
    Hispanics of a race are everybody of the race (P8) less those who are not Hispanic (P9).

    Examples
    --------
    >>> records = pd.DataFrame(
    ...     {"block": "010010201001000", "race": [1, 1, 2], "hisp": [0, 0, 1]}
    ... )
    >>> counts = race_ethnicity_counts(records)
    >>> counts.loc["010010201001000", [0, 3]].tolist(), int(counts.to_numpy().sum())
    ([2, 1], 3)
    """
    adults = check.flag(adults, "adults")
    if isinstance(source, PublishedTables):
        places, counts = _published(source, level, adults=adults)
    elif isinstance(source, pd.DataFrame | Persons):
        check.choice(level, "level", ("block",))
        places, counts = _counted(source, adults=adults)
    else:
        raise ArgumentTypeError(
            f"source must be PublishedTables or a DataFrame, got {shown(source)}"
        )
    return pd.DataFrame(counts, index=pd.Index(places, name=level), columns=range(CELLS))


def _counted(
    records: pd.DataFrame | Persons, *, adults: bool
) -> tuple[list[str], NDArray[np.int64]]:
    columns = ("block", *(("age",) if adults else ()), "race", "hisp")
    frame = person_frame(records, columns=columns, source="source" + ", adults" * adults)
    # A block where only children live stays in the list of places, with counts of zero.
    block, blocks = pd.factorize(frame["block"], sort=True)
    cells = block * CELLS + race_ethnicity(frame)
    if adults:
        cells = cells[frame["age"].to_numpy() >= _ADULT]
    counts = np.bincount(cells, minlength=len(blocks) * CELLS).astype(np.int64)
    return list(blocks), counts.reshape(-1, CELLS)


def _published(
    tables: PublishedTables, level: str, *, adults: bool
) -> tuple[list[str], NDArray[np.int64]]:
    check.choice(level, "level", tables.workload.levels)
    there = tables.workload.at(level)
    places = tables.geoids[level].tolist()
    if set(_SF1[adults]) <= set(there):
        races, by_origin = _SF1[adults]
        everybody = _by_race(tables, level, races)
        others = _by_race(tables, level, by_origin)
        return places, np.stack([others, everybody - others], axis=2).reshape(len(places), CELLS)
    if _PL94[adults] in there:
        dense = tables.counts[level, _PL94[adults]].toarray()
        by_origin_and_race = dense.reshape(len(places), -1, 2, 63)[:, -1]
        found = np.empty((len(places), 63, 2), np.int64)
        found[:, CENRACE - 1] = by_origin_and_race.transpose(0, 2, 1)
        return places, found.reshape(len(places), CELLS)
    wanted = f"{' and '.join(_SF1[adults])}, or {_PL94[adults]!r}"
    raise ArgumentError(
        f"source must have tables {wanted} at level {level!r}, got {', '.join(there)}"
    )


def _by_race(tables: PublishedTables, level: str, name: str) -> NDArray[np.int64]:
    """Return the counts of the 63 races: the cells of a table that count one race each."""
    table = tables.workload.tables[level, name]
    weights = np.asarray(table.factors["race"])
    of_one = np.flatnonzero(weights.sum(axis=1) == 1)
    found = np.zeros((len(tables.geoids[level]), 63), np.int64)
    found[:, weights[of_one].argmax(axis=1)] = tables.counts[level, name].toarray()[:, of_one]
    return found

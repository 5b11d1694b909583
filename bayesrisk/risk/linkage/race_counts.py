"""Counts of race by Hispanic origin: the form in which majority inference compares releases."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.persons import CELLS, Persons, person_frame, race_ethnicity
from bayesrisk.tables import PublishedTables
from bayesrisk.tables.recoding import CENRACE

_ADULT = 18
#: Tables of races, and of races of those who are not Hispanic; of everybody and of adults.
_SF1 = {False: ("P8", "P9"), True: ("P10", "P11")}
_PL94 = {False: "hispanic * cenrace", True: "votingage * hispanic * cenrace"}


def race_ethnicity_counts(
    source: PublishedTables | pd.DataFrame | Persons,
    *,
    level: str = "block",
    adults: bool = False,
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
        the mask 1 to 63.  Withheld counts are zero; Hispanics of a race are everybody of the race
        (P8) less those who are not Hispanic (P9).

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
        raise ArgumentTypeError("source", "must be PublishedTables or a DataFrame", got=source)
    return pd.DataFrame(counts, index=pd.Index(places, name=level), columns=range(CELLS))


def _counted(records: pd.DataFrame | Persons, *, adults: bool) -> tuple[list[str], IntArray]:
    columns = ("block", *(("age",) if adults else ()), "race", "hisp")
    frame = person_frame(records, columns=columns, source="source" + ", adults" * adults)
    # A block where only children live stays in the list of places, with counts of zero.
    block, blocks = pd.factorize(frame["block"], sort=True)
    cells = block * CELLS + race_ethnicity(frame)
    if adults:
        cells = cells[frame["age"].to_numpy() >= _ADULT]
    counts = np.bincount(cells, minlength=len(blocks) * CELLS).astype(np.int64)
    return list(blocks), counts.reshape(-1, CELLS)


def _published(tables: PublishedTables, level: str, *, adults: bool) -> tuple[list[str], IntArray]:
    check.choice(level, "level", tables.workload.levels)
    published = tables.workload.at(level)
    places = tables.geoids[level].tolist()
    if set(_SF1[adults]) <= set(published):
        races, by_origin = _SF1[adults]
        everybody = _by_race(tables, level, races)
        not_hispanic = _by_race(tables, level, by_origin)
        return places, np.stack([not_hispanic, everybody - not_hispanic], axis=2).reshape(
            len(places), CELLS
        )
    if _PL94[adults] in published:
        dense = tables.counts[level, _PL94[adults]].toarray()
        by_origin_and_race = dense.reshape(len(places), -1, 2, 63)[:, -1]
        counts = np.empty((len(places), 63, 2), np.int64)
        counts[:, CENRACE - 1] = by_origin_and_race.transpose(0, 2, 1)
        return places, counts.reshape(len(places), CELLS)
    wanted = f"{' and '.join(_SF1[adults])}, or {_PL94[adults]!r}"
    raise ArgumentError(
        "source", f"must have tables {wanted} at level {level!r}", shown=", ".join(published)
    )


def _by_race(tables: PublishedTables, level: str, name: str) -> IntArray:
    """Return the counts of the 63 races: the cells of a table that count one race each."""
    table = tables.workload.tables[level, name]
    weights = np.asarray(table.factors["race"])
    races = np.flatnonzero(weights.sum(axis=1) == 1)
    counts = np.zeros((len(tables.geoids[level]), 63), np.int64)
    counts[:, weights[races].argmax(axis=1)] = tables.counts[level, name].toarray()[:, races]
    return counts

"""Tables of levels coarser than the parts: sums of what the parts have, which are added up."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from bayesrisk.tables import PublishedTables, Workload
from bayesrisk.tables.exchange.layout import ROWS
from bayesrisk.tables.exchange.writing import rows_of


def coarse_levels(workload: Workload, level: str) -> list[str]:
    """Return the levels of a workload that are coarser than the parts."""
    geography = workload.schema.geography
    rank = geography.rank(level)
    return [name for name in workload.levels if geography.rank(name) < rank]


def digits(workload: Workload, level: str) -> int:
    """Return the digits of the places that an index counts in: above the finest level."""
    coarse = coarse_levels(workload, level)
    inner = [name for name in workload.levels if name not in coarse]
    return workload.schema.geography.width(inner[-2] if len(inner) > 1 else level)


def at_levels(tables: PublishedTables, levels: Sequence[str]) -> PublishedTables:
    """Return the tables of some levels."""
    workload = tables.workload.select(levels=list(levels))
    return PublishedTables(
        workload,
        {level: tables.geoids[level] for level in levels},
        {key: tables.counts[key] for key in workload.tables},
        {key: hidden for key, hidden in tables.suppressed.items() if key in workload.tables},
        {key: law for key, law in tables.laws.items() if key in workload.tables},
    )


def coarse_rows(tables: PublishedTables, levels: Sequence[str]) -> pa.Table:
    """Return the rows of the tables of some levels."""
    keys = [key for key in tables.workload.tables if key[0] in levels]
    return pa.concat_tables([ROWS.empty_table(), *(rows_of(tables.content, key) for key in keys)])


def sums_of(
    parts: Iterable[pa.Table], workload: Workload, levels: Sequence[str], codes: Sequence[str]
) -> PublishedTables:
    """Return the tables of some levels from the rows of every part.

    Parameters
    ----------
    parts : iterable of pyarrow.Table
        Those of :func:`coarse_rows`.
    workload : Workload
        Of all tables.
    levels : sequence of str
        Levels that are coarser than the parts.
    codes : sequence of str
        The parts.
    """
    names = ROWS.names[:-1]
    total = ROWS.empty_table().to_pandas()
    for rows in parts:
        both = pd.concat([total, rows.to_pandas()])
        total = both.groupby(names, sort=False)["count"].sum().reset_index()
    some = workload.select(levels=list(levels))
    geography = workload.schema.geography
    places = {n: np.unique(geography.ancestors(np.asarray(codes), n)) for n in levels}
    counts = {}
    for key, table in some.tables.items():
        own = total[(total["level"] == key[0]) & (total["table"] == key[1])]
        row = np.searchsorted(places[key[0]], own["geoid"].to_numpy(dtype=np.str_))
        cell = pd.Index(table.cells).get_indexer(pd.Index(own["cell"]))
        shape = (len(places[key[0]]), len(table.cells))
        values = own["count"].to_numpy(dtype=np.int64)
        counts[key] = sparse.csr_array((values, (row, cell)), shape=shape, dtype=np.int64)
    return PublishedTables(some, places, counts)

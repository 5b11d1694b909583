"""One published cell at every level of a release, as the table that a tree is made from."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.release import NoiseSpec, Release, SuppressedCounts, TrueCounts


def frame_of_release(release: Release, table: str, cell: str, place: str | None) -> pd.DataFrame:
    """Return a row for each place of every level that has the table.

    Raises
    ------
    ArgumentError
        If the table, cell or place is unknown, there is no one place at the top, or a count has
        neither Gaussian noise nor none.
    """
    published = check.instance(release, Release, "release").tables
    workload, geography = published.workload, published.workload.schema.geography
    names = tuple(dict.fromkeys(name for _, name in workload.tables))
    check.choice(table, "table", names)
    levels = [level for level in workload.levels if (level, table) in workload.tables]
    check.choice(cell, "cell", workload.tables[levels[0], table].cells)
    if place is not None:
        check.text(place, "place")
        widths = {geography.width(level): level for level in levels}
        if len(place) not in widths:
            raise ArgumentError(f"place must be of one of the levels {', '.join(levels)}")
        published.row(widths[len(place)], place)
        levels = levels[levels.index(widths[len(place)]) :]
    pieces, above = [], None
    for level in levels:
        geoids = published.geoids[level]
        rows = np.arange(len(geoids))
        if place is not None:
            rows = rows[np.strings.startswith(geoids, place)]
        if above is None and rows.size != 1:
            raise ArgumentError(
                f"place must be given, as the table is of {rows.size} places of level {level!r}"
            )
        at = workload.tables[level, table].cells.index(cell)
        law = release.spec.likelihood(level, table)
        known = isinstance(law, TrueCounts | SuppressedCounts)
        if not known and not (isinstance(law, NoiseSpec) and law.law == "discrete-gaussian"):
            raise ArgumentError(
                f"table {table!r} at level {level!r} must have Gaussian noise or none, got "
                f"{law.kind}"
            )
        counts = published.counts[level, table][rows, :][:, [at]].toarray()[:, 0].astype(float)
        told = ~published.hidden(level, table)[rows, :][:, [at]].toarray()[:, 0]
        codes = geoids[rows].astype(object)
        names_here = np.where(codes == "", level, codes)
        parents: list[str | None] = [None] * rows.size
        if above is not None:
            around = geography.ancestors(geoids[rows], above)
            parents = [str(code) or above for code in around]
        pieces.append(
            pd.DataFrame(
                {
                    "node": names_here,
                    "parent": parents,
                    "noisy_count": np.where(told & (not known), counts, np.nan),
                    "sigma2": float(law.scale) if isinstance(law, NoiseSpec) else np.nan,
                    "exact_count": np.where(told & known, counts, np.nan),
                }
            )
        )
        above = level
    return pd.concat(pieces, ignore_index=True)

"""The counts of one published cell at every level of a release, as a frame for a tree."""

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.release import NoiseSpec, Release, SuppressedCounts, TrueCounts


def release_frame(release: Release, table: str, cell: str, place: str | None) -> pd.DataFrame:
    """Return a row for each place of every level that has the table."""
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
            raise ArgumentError("place", f"must be of one of the levels {', '.join(levels)}")
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
                "place", f"must be given, as the table is of {rows.size} places of level {level!r}"
            )
        column = workload.tables[level, table].cells.index(cell)
        law = release.spec.likelihood(level, table)
        exact = isinstance(law, TrueCounts | SuppressedCounts)
        if not exact and not (isinstance(law, NoiseSpec) and law.law == "discrete-gaussian"):
            raise ArgumentError(
                f"table {table!r} at level {level!r} must have Gaussian noise or none, got "
                f"{law.kind}"
            )
        counts = published.counts[level, table][rows, :][:, [column]].toarray()[:, 0].astype(float)
        published_here = ~published.hidden(level, table)[rows, :][:, [column]].toarray()[:, 0]
        codes = geoids[rows].astype(object)
        names_here = np.where(codes == "", level, codes)
        parents: list[str | None] = [None] * rows.size
        if above is not None:
            around = geography.ancestors(geoids[rows], above)
            parents = [str(code) or above for code in around]
        columns = {
            "node": names_here,
            "parent": parents,
            "noisy_count": np.where(published_here & (not exact), counts, np.nan),
            "sigma2": float(law.scale) if isinstance(law, NoiseSpec) else np.nan,
            "exact_count": np.where(published_here & exact, counts, np.nan),
        }
        pieces.append(pd.DataFrame(columns))
        above = level
    return pd.concat(pieces, ignore_index=True)

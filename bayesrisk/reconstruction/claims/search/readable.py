"""Claims that a table states itself: some of its cells, added up, are the claim.

Where cells of a table overlap (totals and subtotals), cells are taken from the largest down, each
that is inside the claim and apart from those taken: with nested cells this finds every sum.
"""

from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import kernel
from bayesrisk._base.validation import BoolArray, CodeArray, IntArray
from bayesrisk.reconstruction.claims.search.block_system import AllowedCounts, BlockSystem
from bayesrisk.reconstruction.claims.search.lattice import matches
from bayesrisk.reconstruction.claims.search.space import ClaimSpace, Stated


class StatedClaims(NamedTuple):
    """Claims that a table may state: patterns, cells that match each, and numbers of records.

    ``at_least`` are about that many records or more.
    """

    patterns: CodeArray
    size: IntArray
    times: IntArray
    at_least: BoolArray


def readable_here(
    space: ClaimSpace, system: BlockSystem, patterns: CodeArray, size: IntArray
) -> BoolArray:
    """Return the claims that are sums of cells of one table, dead cells left out.

    ``size`` counts the live cells that match each; a claim without any is a sum of no cells.
    """
    stated = space.stated(system.place.cells, system.place.query)
    return np.asarray(
        (size == 0) | _sums(space, stated, system.place.cells, patterns, size), np.bool_
    )


def readable_everywhere(space: ClaimSpace, patterns: CodeArray, size: IntArray) -> BoolArray:
    """Return the claims that are sums of cells of one table whatever was published.

    ``size`` counts the possible cells that match each claim.
    """
    return _sums(space, space.constant, np.arange(len(space.codes)), patterns, size)


def readable_bounds(
    space: ClaimSpace, stated: Stated, cells: IntArray, counts: AllowedCounts, claims: StatedClaims
) -> BoolArray:
    """Return the claims that a table states itself, where its cells allow several counts.

    A table states that there are at least so many records where smallest counts of its cells
    inside the claim add up to as many, and exactly so many by cells with one count alone.
    """
    patterns, size, times, at_least = claims
    low, high = counts.low[stated.query], counts.high[stated.query]
    exact = low == high
    points = Stated(stated.query[exact], stated.value[exact], stated.width[exact])
    readable: BoolArray = (size == 0) | _sums(space, points, cells, patterns, size)
    rows = np.flatnonzero((low > 0) & (stated.width > 0))
    rows = rows[np.argsort(-low[rows], kind="stable")]
    query, table = stated.query[rows], space.queries.table[stated.query[rows]]
    for t in np.unique(table).tolist():
        members = np.flatnonzero(table == t)
        inside = matches(stated.value[rows[members]], patterns)
        if not space.overlapping[t]:
            readable |= at_least & (inside @ low[rows[members]] >= times)
            continue
        for s in np.flatnonzero(at_least & ~readable & inside.any(axis=1)).tolist():
            chosen: list[int] = []
            for q in members[inside[s]].tolist():
                if not any(space.overlap(int(query[q]), int(query[o]), cells) for o in chosen):
                    chosen.append(q)
            readable[s] = int(low[rows[chosen]].sum()) >= times[s]
    return readable


@kernel
def sums_of_patterns(
    value: CodeArray,
    table: IntArray,
    width: IntArray,
    patterns: CodeArray,
    size: IntArray,
    out: BoolArray,
) -> None:
    """Say which patterns have the size of the cells of one table that lie inside them.

    ``value`` is what all records of a cell have in each attribute, -1 where they differ.
    """
    columns = np.empty(patterns.shape[1], np.int64)
    for s in range(patterns.shape[0]):
        n_columns = 0
        for a in range(patterns.shape[1]):
            if patterns[s, a] >= 0:
                columns[n_columns] = a
                n_columns += 1
        total, before = np.int64(0), np.int64(-1)
        out[s] = False
        for q in range(value.shape[0]):
            if table[q] != before:
                total, before = np.int64(0), table[q]
            if width[q] < 0 or width[q] > size[s]:
                continue
            inside = True
            for i in range(n_columns):
                if value[q, columns[i]] != patterns[s, columns[i]]:
                    inside = False
                    break
            # Cells of one table that are inside and apart: sizes add up.
            if inside:
                total += width[q]
                if total == size[s]:
                    out[s] = True
                    break


def _sums(
    space: ClaimSpace, stated: Stated, cells: IntArray, patterns: CodeArray, size: IntArray
) -> BoolArray:
    """Return the claims with the size of cells of one table that lie inside and apart."""
    value, width, table = stated.value, stated.width, space.queries.table[stated.query]
    covered = np.zeros(len(patterns), np.bool_)
    disjoint = np.where(space.overlapping[table], -1, width)
    sums_of_patterns(value, table, disjoint, patterns, size, covered)
    for t in np.unique(table[space.overlapping[table]]).tolist():
        rows = np.flatnonzero((table == t) & (width > 0))
        order = rows[np.argsort(-width[rows], kind="stable")]
        for s in np.flatnonzero(~covered).tolist():
            columns = patterns[s] >= 0
            inside = (value[order][:, columns] == patterns[s, columns]).all(axis=1)
            chosen: list[int] = []
            for q in order[inside].tolist():
                query = int(stated.query[q])
                if not any(space.overlap(query, int(stated.query[o]), cells) for o in chosen):
                    chosen.append(q)
            covered[s] = int(width[chosen].sum()) == size[s]
    return covered

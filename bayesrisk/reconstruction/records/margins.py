"""Histograms replaced by margins that fit together, each for some of the tables.

If the tables fall into two sets, each set depends on a margin of the histogram. Both depend on the
coarsest margin that is a sum of either. Suppose that any two cells of the margins in one common
cell share a cell of the histogram. Then margins with equal sums in all common cells are those of a
histogram of whole numbers: the records of a common cell are paired in any order. So the unknown
counts are those of the margins, which are far fewer than the cells of the histogram. The rows are
the published counts and the equal sums.
"""

import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from bayesrisk._base.validation import IntArray
from bayesrisk.reconstruction.records.problem import BlockBounds, CountRanges, Problem, RowSource
from bayesrisk.tables.cells import CellSpace, Queries

#: For every attribute the group that each of its bins is in.
_Margin: TypeAlias = Mapping[str, IntArray]


@dataclass(frozen=True)
class _Link:
    """Two margins, and the cell of their common margin for each cell of the histogram."""

    margins: tuple[int, int]
    common: IntArray


@dataclass(frozen=True)
class _Parts:
    """Margins of a histogram with concatenated cells, and the links between them.

    ``cell`` (cells of the histogram, margins) is the cell of each margin that a cell is in;
    ``first`` is the first cell of the histogram in each of them; ``home`` is for each set of
    queries the margin of every query.
    """

    cell: IntArray
    first: IntArray
    home: tuple[IntArray, ...]
    links: tuple[_Link, ...]

    @property
    def size(self) -> int:
        return int(self.first.size)

    @property
    def width(self) -> int:
        """Number of cells of all margins and of their common margins."""
        return self.size + sum(int(link.common.max()) + 1 for link in self.links)

    def rows(self, number: int, matrix: sp.csr_array) -> sp.csr_array:
        """Return a set of queries rewritten over the margins' cells."""
        terms = sp.coo_array(matrix[:, self.first])
        margin = np.searchsorted(self.cell.max(axis=0), terms.coords[1])
        chosen = margin == self.home[number][terms.coords[0]]
        place = tuple(part[chosen] for part in terms.coords)
        return sp.csr_array((terms.data[chosen], place), shape=(matrix.shape[0], self.width))

    def sums(self, block: IntArray, cell: IntArray, count: IntArray, size: int) -> IntArray:
        """Return the histograms' sums over all margins' cells (blocks, cells of margins)."""
        totals = np.zeros((size, self.size), np.int64)
        for column in self.cell.T:
            totals += sp.coo_array((count, (block, column[cell])), shape=totals.shape).toarray()
        return totals


def _margin(space: CellSpace, factors: Iterable[Mapping[str, IntArray]]) -> dict[str, IntArray]:
    """Return groups of bins that none of the queries distinguishes, by attribute."""
    factor_list = list(factors)
    margin = {}
    for name, size in zip(space.schema.names, space.shape, strict=True):
        stacked = np.concatenate([np.zeros((1, size), np.int64), *(f[name] for f in factor_list)])
        columns = np.unique(stacked, axis=0)
        margin[name] = np.unique(columns, axis=1, return_inverse=True)[1].ravel().astype(np.int64)
    return margin


def _margin_size(margin: _Margin) -> int:
    return int(np.prod([group.max() + 1 for group in margin.values()]))


def _refines(fine: _Margin, coarse: _Margin) -> bool:
    """Return whether each group of the fine margin lies in one group of the coarse one."""
    return all(
        np.unique(np.stack([fine[name], coarse[name]]), axis=1).shape[1] == fine[name].max() + 1
        for name in fine
    )


def _common(a: IntArray, b: IntArray) -> IntArray | None:
    """Return the finest common coarsening of two groupings, or None if the two cannot be paired."""
    pairs = np.unique(np.stack([a, b]), axis=1)
    sizes = int(a.max()) + 1, int(b.max()) + 1
    graph = sp.coo_array((np.ones(pairs.shape[1], np.int8), tuple(pairs)), shape=sizes)
    square = sp.block_array([[None, graph], [graph.T, None]], format="csr")
    label = connected_components(square, directed=False)[1]
    count = [np.bincount(side) for side in (label[: sizes[0]], label[sizes[0] :])]
    # In every common group all groups of one side meet all of the other.
    if int(count[0] @ count[1]) != pairs.shape[1]:
        return None
    groups: IntArray = label[a].astype(np.int64)
    return groups


@dataclass(frozen=True)
class _Item:
    """Queries of one table (set and positions), or a margin shared with margin ``link``."""

    factors: Mapping[str, IntArray]
    number: int = -1
    positions: IntArray | None = None
    link: int = -1


#: The last parts: many blocks with one workload need them.
_KEPT: deque[tuple[Sequence[Queries], _Parts]] = deque(maxlen=8)


def margin_parts(space: CellSpace, sets: Sequence[Queries]) -> _Parts:
    """Return margins with few cells that determine a histogram when their sums agree; cached."""
    for cached, parts in _KEPT:
        if len(cached) == len(sets) and all(a is b for a, b in zip(cached, sets, strict=True)):
            return parts
    parts = _split_margins(space, sets)
    _KEPT.append((tuple(sets), parts))
    return parts


def _split_margins(space: CellSpace, sets: Sequence[Queries]) -> _Parts:
    """Return the margins of tables, split off one after the other.

    Tables whose attributes are among those of one table are split off together, the best first, as
    long as the number of cells falls.
    """
    rest: list[_Item] = []
    for number, queries in enumerate(sets):
        ends = np.searchsorted(queries.table, np.arange(len(queries.tables) + 1))
        for a, b in itertools.pairwise(ends):
            factors = {name: factor[a:b] for name, factor in queries.factors.items()}
            rest.append(_Item(factors, number, np.arange(a, b)))
    home = tuple(np.zeros(len(queries.names), np.int64) for queries in sets)
    margins: list[_Margin] = []
    links: list[_Link] = []
    while rest:
        members, margin, common = _split(space, rest)
        for item in members:
            if item.positions is not None:
                home[item.number][item.positions] = len(margins)
            else:
                shared = {name: factor[0] for name, factor in item.factors.items()}
                links.append(_Link((item.link, len(margins)), _margin_cells(space, shared)))
        rest = [item for item in rest if all(item is not other for other in members)]
        if rest:
            # One query that distinguishes the groups of the common margin.
            factors = {name: group[None, :] for name, group in common.items()}
            rest.append(_Item(factors, link=len(margins)))
        margins.append(margin)
    cells = [_margin_cells(space, margin) for margin in margins]
    offset = np.cumsum([0, *(_margin_size(margin) for margin in margins)])
    first = np.concatenate([np.unique(part, return_index=True)[1] for part in cells])
    cell = np.stack([part + start for part, start in zip(cells, offset[:-1], strict=True)], axis=1)
    return _Parts(cell, first.astype(np.int64), home, tuple(links))


def _split(space: CellSpace, rest: list[_Item]) -> tuple[list[_Item], _Margin, _Margin]:
    """Return the items to split off, their margin, and the margin they share with the rest."""
    whole = _margin(space, (item.factors for item in rest))
    best, least = (rest, whole, whole), _margin_size(whole)
    tables = [item for item in rest if item.positions is not None]
    used = {
        id(t): frozenset(n for n, f in t.factors.items() if np.any(f != f[:, :1])) for t in tables
    }
    for names in dict.fromkeys(used.values()):
        members = [t for t in tables if used[id(t)] <= names]
        if len(members) == len(tables):
            continue
        margin = _margin(space, (item.factors for item in members))
        for item in rest:
            shared = {name: factor[0] for name, factor in item.factors.items()}
            if item.positions is None and _refines(margin, shared):
                members.append(item)
        remainder = [item for item in rest if all(item is not t for t in members)]
        rest_margin = _margin(space, (item.factors for item in remainder))
        size = _margin_size(margin) + _margin_size(rest_margin)
        if size >= least:
            continue
        common = {name: _common(margin[name], rest_margin[name]) for name in margin}
        agreed = {name: group for name, group in common.items() if group is not None}
        if len(agreed) == len(common):
            best, least = (members, margin, agreed), size
    return best


def _margin_cells(space: CellSpace, margin: _Margin) -> IntArray:
    shape = tuple(int(margin[name].max()) + 1 for name in space.schema.names)
    index = np.broadcast_arrays(*np.ix_(*(margin[name] for name in space.schema.names)))
    return np.ravel_multi_index(tuple(index), shape).ravel().astype(np.int64)


def margin_problem(
    problem: Problem,
    parts: _Parts,
    star: sp.csr_array,
    targets: Sequence[tuple[Queries, CountRanges, IntArray]],
) -> tuple[Problem, BlockBounds, sp.csr_array]:
    """Return an equivalent problem over margins' cells, with slacks for common sums.

    ``targets`` are queries with their ranges, and the group of every block; ``star`` are histograms
    that fit, and are returned on the cells of the problem.  Two margins v and w with
    a common cell of at most N records have the rows ``sum v + s = N`` and ``sum w + s = N``.
    """
    size, bounds = problem.geoids.size, problem.bounds
    low = parts.sums(bounds.block, bounds.cell, bounds.low, size)
    high = parts.sums(bounds.block, bounds.cell, bounds.high, size)
    width, sources = parts.width, []
    for number, (queries, ranges, group) in enumerate(targets):
        rows = parts.rows(number, queries.matrix)
        sources.append(RowSource.from_matrix(rows, ranges, group, required=True))
    star_entries = star.tocoo()
    position = star_entries.coords[0].astype(np.int64), star_entries.coords[1].astype(np.int64)
    values = [parts.sums(*position, star_entries.data, size)]
    slack, row = parts.size, 0
    places: list[IntArray] = []
    slacks, totals = [low[:, :0]], [low[:, :0]]
    for link in parts.links:
        n_common = int(link.common.max()) + 1
        cells = [np.unique(parts.cell[:, margin]) for margin in link.margins]
        common = link.common[parts.first[cells[0]]]
        ones, place = np.ones(common.size, np.int64), (common, np.arange(common.size))
        groups = sp.csr_array((ones, place), shape=(n_common, common.size))
        total: IntArray = np.asarray(groups @ high[:, cells[0]].T).T
        for side in cells:
            places.append(np.stack([row + link.common[parts.first[side]], side]))
            places.append(np.stack([row + np.arange(n_common), slack + np.arange(n_common)]))
            totals.append(total)
            row += n_common
        slacks.append(total)
        inside = np.zeros_like(total)
        np.add.at(inside, (position[0], link.common[position[1]]), star_entries.data)
        values.append(total - inside)
        slack += n_common
    if parts.links:
        entry = np.concatenate(places, axis=1)
        rows = sp.csr_array((np.ones(entry.shape[1], np.int64), tuple(entry)), shape=(row, width))
        counts = CountRanges.from_counts(sp.csr_array(np.concatenate(totals, axis=1)))
        sources.append(RowSource.from_matrix(rows, counts, np.arange(size)))
    most = np.concatenate([high, *slacks], axis=1)
    least = np.concatenate([low, np.zeros((size, width - parts.size), np.int64)], axis=1)
    block, cell = np.nonzero(most)
    margin_bounds = replace(
        bounds, block=block, cell=cell, low=least[block, cell], high=most[block, cell]
    )
    margin_star = sp.csr_array(np.concatenate(values, axis=1))
    return replace(problem, rows=tuple(sources), larger=()), margin_bounds, margin_star

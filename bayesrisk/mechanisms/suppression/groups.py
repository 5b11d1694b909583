"""Published tables as integer programs over histograms, and the ranges of their cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.ends import FormEnds
from bayesrisk.constraints.model import ENDLESS, IntegerModel, components, equal_rows, less
from bayesrisk.constraints.propagation import narrowed
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.tables import Histogram, PublishedTables, Workload
from bayesrisk.tables.cells import code_kinds, positions

if TYPE_CHECKING:
    from bayesrisk.constraints.highs import HighsWarm


# The smallest histograms that tables speak of: cliques of attributes that tables cross.
#
# Tables that cross the same attributes need their joint histogram; tables that share none need two
# histograms with one total.  Between the two lies a tree of cliques: the attributes crossed by some
# table are joined by an edge, the graph is made chordal, and every table lies in a clique.  Whole,
# non-negative histograms of the cliques that agree on what neighbours share come from one histogram
# of all attributes (records with the same shared codes are glued, one to one), and the other way
# round.  So nothing is lost, and ten attributes need thousands of cells, not millions.


_MAX_CELLS = 2**22


@dataclass(frozen=True)
class Cliques:
    """Cells of all cliques (groups of attributes) in one row, and what tables count of them."""

    # for every attribute that matters the number of the kind of each code: tables tell kinds apart,
    # not codes
    bins: dict[str, IntArray]
    members: tuple[tuple[str, ...], ...]  # the attributes of each clique
    start: IntArray  # where the cells of each clique start; the last entry is the number of cells
    # (cells of tables, cells): for each level the weight of a cell in the cells of its tables, one
    # after the other
    incidence: dict[str, sparse.csc_array]
    # (ties, cells): rows that are 0 for consistent cliques: what two neighbours share
    ties: sparse.csc_array
    # (int, int, tuple of str): the tree: pairs of cliques, the one nearer to the root first, and
    # what they share
    neighbours: tuple[tuple[int, int, tuple[str, ...]], ...]

    @property
    def size(self) -> int:
        """Number of cells of all cliques."""
        return int(self.start[-1])

    def shape(self, clique: int) -> tuple[int, ...]:
        """Return the number of kinds of each attribute in a clique."""
        return tuple(int(self.bins[name].max()) + 1 for name in self.members[clique])

    def project(self, histogram: Histogram) -> sparse.csr_array:
        """Return the cliques' histograms at each place (places, cells)."""
        counts = histogram.counts.tocoo()
        place, cell = counts.coords
        distinct, inverse = np.unique(cell, return_inverse=True)
        codes = histogram.schema.indices(distinct.astype(np.int64))
        columns = [
            int(self.start[clique]) + self._flat(clique, codes)[inverse]
            for clique in range(len(self.members))
        ]
        count = len(self.members)
        coords = np.tile(place, count), np.concatenate(columns)
        shape = (counts.shape[0], self.size)
        return sparse.csr_array((np.tile(counts.data, count), coords), shape=shape)

    def _flat(self, clique: int, codes: dict[str, IntArray]) -> IntArray:
        flat = np.zeros(len(next(iter(codes.values()))), dtype=np.int64)
        for name, kinds in zip(self.members[clique], self.shape(clique), strict=True):
            flat = flat * kinds + self.bins[name][codes[name]]
        return flat

    def shared(self, clique: int, names: tuple[str, ...]) -> IntArray:
        """Return, for each cell of a clique, the index of its combination of some attributes."""
        shape = self.shape(clique)
        codes = np.unravel_index(np.arange(prod(shape)), shape) if shape else ()
        flat = np.zeros(prod(shape), dtype=np.int64)
        for name, kinds, code in zip(self.members[clique], shape, codes, strict=True):
            if name in names:
                flat = flat * kinds + code
        return flat


def table_cliques(workload: Workload) -> Cliques:
    """Return the cliques of all levels' tables in a workload."""
    schema = workload.schema
    bins = {}
    for attribute in schema.attributes:
        kinds = code_kinds(workload.tables.values(), attribute.name, attribute.size)
        if kinds.max():
            bins[attribute.name] = kinds
    order = {name: rank for rank, name in enumerate(bins)}
    crossed = {frozenset(t.factors) & frozenset(bins) for t in workload.tables.values()}
    members = _chordal_cliques(crossed, {name: int(b.max()) + 1 for name, b in bins.items()})
    named = tuple(tuple(sorted(m, key=order.__getitem__)) for m in members)
    sizes = [prod(int(bins[n].max()) + 1 for n in names) for names in named]
    if sum(sizes) > _MAX_CELLS:
        raise ArgumentError(
            "tables",
            f"of the workload must tell at most {_MAX_CELLS} kinds of records apart",
            shown=sum(sizes),
        )
    start = np.cumsum([0, *sizes]).astype(np.int64)
    neighbours = _tree(named)
    empty = sparse.csc_array((0, int(start[-1])), dtype=np.int64)
    bare = Cliques(bins, named, start, {}, empty, neighbours)
    incidence = {level: _incidence(bare, workload, level) for level in workload.levels}
    return Cliques(bins, named, start, incidence, _ties(bare), neighbours)


def _chordal_cliques(crossed: set[frozenset[str]], kinds: dict[str, int]) -> list[frozenset[str]]:
    """Return the maximal cliques of a chordal graph whose edges include all crossed attributes.

    Attributes are taken out one by one, the one with the smallest histogram of it and its
    neighbours first.
    """
    near: dict[str, set[str]] = {name: set() for name in kinds}
    for names in crossed:
        for one, other in combinations(names, 2):
            near[one].add(other)
            near[other].add(one)
    cliques: list[frozenset[str]] = []
    while near:
        name = min(near, key=lambda n: (kinds[n] * prod(kinds[o] for o in near[n]), n))
        neighbours = near.pop(name)
        clique = frozenset({name, *neighbours})
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
        for other in neighbours:
            near[other] |= neighbours - {other}
            near[other].discard(name)
    return cliques or [frozenset()]


def _tree(members: tuple[tuple[str, ...], ...]) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """Return a maximum spanning tree of the cliques by shared attributes: a junction tree."""
    inside, edges = [0], []
    while len(inside) < len(members):
        _, near, new = max(
            (len(set(members[i]) & set(members[j])), -i, -j)
            for i in inside
            for j in range(len(members))
            if j not in inside
        )
        shared = tuple(name for name in members[-near] if name in members[-new])
        edges.append((-near, -new, shared))
        inside.append(-new)
    return tuple(edges)


def _incidence(cliques: Cliques, workload: Workload, level: str) -> sparse.csc_array:
    schema, blocks = workload.schema, []
    for table in workload.at(level).values():
        needed = set(table.factors) & set(cliques.bins)
        sizes = np.diff(cliques.start)
        fitting = [i for i, names in enumerate(cliques.members) if needed <= set(names)]
        clique = min(fitting, key=lambda i: (sizes[i], i))
        codes = {a.name: np.full(sizes[clique], a.first) for a in schema.attributes}
        shape = cliques.shape(clique)
        grid = np.unravel_index(np.arange(sizes[clique]), shape) if shape else ()
        for name, kinds in zip(cliques.members[clique], grid, strict=True):
            first = np.unique(cliques.bins[name], return_index=True)[1]
            codes[name] = first[kinds] + schema.attribute(name).first
        weights = sparse.coo_array(table.incidence(schema, schema.cell_index(codes)))
        row, column = weights.coords
        wide = (len(table.cells), cliques.size)
        coords = row, column + cliques.start[clique]
        blocks.append(sparse.coo_array((weights.data, coords), shape=wide))
    stacked = sparse.csc_array(sparse.vstack(blocks, format="csc"), dtype=np.int64)
    stacked.eliminate_zeros()
    return stacked


def _ties(cliques: Cliques) -> sparse.csc_array:
    """Return the rows (equations) by which neighbouring cliques agree on shared attributes."""
    rows, columns, signs, number = [], [], [], 0
    for one, other, names in cliques.neighbours:
        for clique, sign in ((one, 1), (other, -1)):
            value = cliques.shared(clique, names)
            rows.append(number + value)
            columns.append(cliques.start[clique] + np.arange(len(value)))
            signs.append(np.full(len(value), sign, dtype=np.int64))
        number += prod(int(cliques.bins[name].max()) + 1 for name in names)
    if not number:
        return sparse.csc_array((0, cliques.size), dtype=np.int64)
    coords = np.concatenate(rows), np.concatenate(columns)
    return sparse.csc_array((np.concatenate(signs), coords), shape=(number, cliques.size))


_MAX_COUNT = 2**31  # sums of products of such are exact


@dataclass(frozen=True)
class PlaceGroup:
    """The integer program for all finest places inside one place of the coarsest level.

    A variable is the count of a place of the finest level in a cell of a clique.  Those that a
    published zero holds, at the place or above it, are 0 and left out.
    """

    # rows are cells of tables that are not a published zero, 0 or more where they are suppressed,
    # and ties between cliques
    model: IntegerModel
    tie: BoolArray  # rows that are ties
    # where each row comes from: level, place, and the cell among those of the level's tables (for a
    # tie the finest level, the place, and the number of the tie)
    level: IntArray
    place: IntArray
    cell: IntArray
    finest: IntArray  # place and clique cell of each variable
    column: IntArray

    @property
    def hidden(self) -> BoolArray:
        """Whether each row's count is suppressed."""
        return np.asarray(self.model.row_low < self.model.row_high)


@dataclass(frozen=True)
class Structure:
    """Constraints on histograms from published tables and their geography."""

    tables: PublishedTables  # the tables
    cliques: Cliques  # the histograms
    # for each level the position of the first cell of each table among those of the level
    start: list[dict[str, int]]
    # for each level the counts and the suppression of all its tables side by side
    counts: list[sparse.csr_array]
    hidden: list[sparse.csr_array]
    above: list[IntArray]  # for each level its place that each place of the finest level lies in
    # for each level the place of the coarsest level that each of its places lies in
    root: list[IntArray]

    def clique_histograms(self, histogram: Histogram) -> sparse.csr_array:
        """Return the cliques' histograms at the finest level's places."""
        finest = self.tables.geoids[self.tables.workload.levels[-1]]
        counts = sparse.coo_array(self.cliques.project(histogram))
        place = np.searchsorted(finest, histogram.geoids)[counts.coords[0]]
        shape = (len(finest), self.cliques.size)
        return sparse.csr_array((counts.data, (place, counts.coords[1])), shape=shape)

    def groups(self) -> Iterator[PlaceGroup]:
        """Yield the group of each coarsest place whose counts are not all zero."""
        size = len(self.tables.geoids[self.tables.workload.levels[0]])
        order = [np.argsort(root, kind="stable") for root in self.root]
        ends = [
            np.searchsorted(root[nodes], np.arange(size + 1))
            for root, nodes in zip(self.root, order, strict=True)
        ]
        for top in range(size):
            places = [
                nodes[end[top] : end[top + 1]] for nodes, end in zip(order, ends, strict=True)
            ]
            if any(self._open[i][p].nnz for i, p in enumerate(places)):
                yield self._group(places)

    @cached_property
    def _open(self) -> list[sparse.csr_array]:
        """For each level, 1 for every cell that is not a published zero."""
        parts = []
        for counts, hidden in zip(self.counts, self.hidden, strict=True):
            part = sparse.csr_array(abs(counts) + hidden)
            part.data = np.ones(part.nnz, dtype=np.int64)
            part.sort_indices()
            parts.append(part)
        return parts

    @cached_property
    def _holds(self) -> list[tuple[sparse.csr_array, IntArray]]:
        """For each level, the table cells that contain each clique cell, and their number."""
        incidences = []
        for incidence in self.cliques.incidence.values():
            rows = sparse.csr_array(incidence)
            rows.data = np.ones(rows.nnz, dtype=np.int64)
            incidences.append((rows, np.bincount(rows.indices, minlength=rows.shape[1])))
        return incidences

    def _group(self, places: list[IntArray]) -> PlaceGroup:
        finest = places[-1]
        live = self._live(places)
        variable = np.concatenate([np.full(len(k), b) for b, k in zip(finest, live, strict=True)])
        column = np.concatenate([*live, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        names, values, rows, columns, data = [], [], [], [], []
        first = 0
        for number, (level, nodes) in enumerate(zip(self.cliques.incidence, places, strict=True)):
            opened = self._open[number][nodes]
            local, cell = opened.tocoo().coords
            width = opened.shape[1]
            code = local.astype(np.int64) * width + cell
            names.append((np.full(len(code), number), nodes[local], cell))
            index = nodes[local], cell
            values.append((self.counts[number][index], self.hidden[number][index]))
            entries = sparse.coo_array(self.cliques.incidence[level][:, column])
            position = np.searchsorted(nodes, self.above[number][variable])
            wanted = position[entries.coords[1]] * width + entries.coords[0]
            rows.append(first + np.searchsorted(code, wanted))
            columns.append(entries.coords[1])
            data.append(entries.data)
            first += len(code)
        ties = sparse.coo_array(self.cliques.ties[:, column])
        width = max(1, ties.shape[0])
        wanted = np.searchsorted(finest, variable)[ties.coords[1]] * width + ties.coords[0]
        distinct, position = np.unique(wanted, return_inverse=True)
        rows.append(first + position.reshape(-1))
        columns.append(ties.coords[1])
        data.append(ties.data)
        last = np.full(len(distinct), len(places) - 1)
        names.append((last, finest[distinct // width], distinct % width))
        row_level, place, row_cell = (
            np.concatenate(part).astype(np.int64) for part in zip(*names, strict=True)
        )
        count, hidden = (
            np.concatenate([np.asarray(p).reshape(-1) for p in part]).astype(np.int64)
            for part in zip(*values, strict=True)
        )
        coords: Any = (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns)))
        matrix: Any = sparse.csr_array(coords, shape=(first + len(distinct), len(column)))
        # A count is exact, or free where it is hidden; a tie is 0.
        tied = np.zeros(len(distinct), dtype=np.int64)
        ends = (np.where(hidden, end, count) for end in (0, ENDLESS))
        low, high = (np.concatenate([end, tied]) for end in ends)
        nothing = np.zeros(len(column), dtype=np.int64)
        model = IntegerModel(
            nothing, nothing + ENDLESS, sparse.csr_array(matrix.astype(np.int64)), low, high
        )
        tie = np.arange(first + len(distinct)) >= first
        return PlaceGroup(model, tie, row_level, place, row_cell, variable.astype(np.int64), column)

    def _live(self, places: list[IntArray]) -> list[IntArray]:
        """Return for each finest place the clique cells that no published zero excludes."""
        possible: list[dict[int, BoolArray]] = []
        for number, nodes in enumerate(places):
            rows, total = self._holds[number]
            opened = sparse.csr_array(self._open[number][nodes])
            reached = {}
            for row, place in enumerate(nodes.tolist()):
                cells = opened.indices[opened.indptr[row] : opened.indptr[row + 1]]
                if len(cells):
                    tally = np.bincount(rows[cells].indices, minlength=rows.shape[1])
                    reached[place] = tally == total
            possible.append(reached)
        nothing = np.zeros(self.cliques.size, dtype=np.bool_)
        live = []
        for place in places[-1].tolist():
            mask = ~nothing
            for number, reached in enumerate(possible):
                mask = mask & reached.get(int(self.above[number][place]), nothing)
            live.append(np.flatnonzero(mask))
        return live


def table_structure(tables: PublishedTables) -> Structure:
    """Return the constraints of published tables on histograms."""
    levels = tables.workload.levels
    start: list[dict[str, int]] = []
    counts, hidden = [], []
    for level in levels:
        names = list(tables.workload.at(level))
        sizes = [tables.counts[level, name].shape[1] for name in names]
        start.append(dict(zip(names, np.cumsum([0, *sizes]).tolist(), strict=False)))
        counts.append(
            sparse.csr_array(sparse.hstack([tables.counts[level, n] for n in names], "csr"))
        )
        masks = [tables.hidden(level, n).astype(np.int64) for n in names]
        hidden.append(sparse.csr_array(sparse.hstack(masks, "csr")))
    if any(part.nnz and int(abs(part).max()) >= _MAX_COUNT for part in counts):
        raise DataError(f"tables: counts must be below {_MAX_COUNT}")
    above = [_ancestor_positions(tables, levels[-1], level) for level in levels]
    root = [_ancestor_positions(tables, level, levels[0]) for level in levels]
    return Structure(tables, table_cliques(tables.workload), start, counts, hidden, above, root)


def _ancestor_positions(tables: PublishedTables, level: str, coarser: str) -> IntArray:
    """Return each place's position among the coarser places that contain them."""
    places = tables.geoids[coarser]
    parents = tables.workload.schema.geography.ancestors(tables.geoids[level], coarser)
    index = positions(parents, places)
    if (index < 0).any():
        first = str(parents[int(index.argmin())])
        raise DataError(f"tables: must have every {coarser}, got none of {quote(first)}")
    return index


def endless_variables(bounded: sparse.csr_array, ties: sparse.csr_array) -> BoolArray:
    """Return a mask of the variables without an upper bound, alone or jointly with others.

    ``bounded`` are rows of weights >= 0 with a bound: their variables are bounded. If all variables
    on one side of a tie are bounded, so are those on the other. The rest are unbounded: cliques are
    a tree, so a cell with a partner across each tie is part of a record.
    """
    free = np.ones(bounded.shape[1], dtype=np.bool_)
    free[bounded.indices] = False
    entries = ties.tocoo()
    (row, column), positive = entries.coords, entries.data > 0
    while True:
        open_ = free[column]
        one = np.bincount(row[positive & open_], minlength=ties.shape[0]) > 0
        other = np.bincount(row[~positive & open_], minlength=ties.shape[0]) > 0
        alone = open_ & np.where(positive, ~other[row], ~one[row])
        if not alone.any():
            return free
        free[column[alone]] = False


#: Nodes that one search looks at before it gives up.
_NODES = 2000
_SWEEPS = 20  # of bounds through the rows; more only save linear programs
_CONTRADICT = "tables: published cells contradict each other"


def some_histogram(group: PlaceGroup) -> IntArray:
    """Return some histogram that has all counts of a group without suppressed cells."""
    model = _consistent(group.model)
    histogram = model.low.copy()
    for part in _parts(model, np.zeros(0, dtype=np.int64)):
        if part.star is None:
            raise DataError(
                "tables: found no records that have the counts; release records instead"
            )
        histogram[part.variables] = part.star
    return histogram


def group_ranges(
    group: PlaceGroup, least: int, most: int | None
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return each hidden row's smallest and largest count, and whether both are attained.

    ``least`` and ``most`` bound every hidden count. Unproved ends are outer bounds.
    """
    model, hidden = group.model, group.hidden
    # Cells that the same variables make up have one count.
    row_class, first = equal_rows(model.rows, hidden, group.tie)
    if np.any(model.row_low != model.row_low[first][row_class]):
        raise DataError(f"{_CONTRADICT}: equal cells differ")
    rows, wanted, tie = sparse.csr_array(model.rows[first]), hidden[first], group.tie[first]
    low = np.where(wanted, least, model.row_low[first])
    high = np.where(wanted, ENDLESS if most is None else most, model.row_high[first])
    bounded = ~tie & (~wanted | (most is not None))
    free = endless_variables(sparse.csr_array(rows[bounded]), rows[np.flatnonzero(tie)])
    targets = np.flatnonzero(wanted)
    narrow = _consistent(IntegerModel(model.low, model.high, rows, low, high))
    lower, upper, proved = _settled(narrow, targets, (rows[targets] @ free) > 0)
    number = np.full(len(first), -1)
    number[targets] = np.arange(len(targets))
    position = number[row_class[hidden]]
    return lower[position], upper[position], proved[position]


def _consistent(model: IntegerModel) -> IntegerModel:
    left = narrowed(model, _SWEEPS)
    if left is None:
        raise DataError(
            f"{_CONTRADICT}, or what is assumed of hidden ones (least, most): they do not add up"
        )
    return left


def _settled(
    model: IntegerModel, targets: IntArray, endless: BoolArray
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the ranges of the target rows, solved component by component."""
    lower, upper = model.row_low[targets].copy(), model.row_high[targets].copy()
    proved = np.ones(len(targets), dtype=np.bool_)
    for part in _parts(model, targets):
        # What is fixed is counted apart; an end that there is not is not looked for.
        index, fixed, none = part.number, part.fixed, endless[part.number]
        high = np.where(none, -ENDLESS, less(upper[index], fixed))
        ends = FormEnds(
            part.model, part.linear, part.forms, (lower[index] - fixed, high), part.star,
            nodes=_NODES,
        )  # fmt: skip
        ends.settle()
        most, least = np.split(ends.goal, 2)
        above, below = np.split(ends.goal == ends.reached, 2)
        lower[index] = fixed - least
        upper[index] = np.where(none, upper[index], most + fixed)
        proved[index] = below & (above | none)
    return lower, upper, proved


class _RowPart(NamedTuple):
    """A component of a model, with the target rows that it contains.

    ``number`` says which of the wanted rows are ``forms`` of its ``variables``, beside their
    ``fixed`` part. ``star`` is a solution, or None if the search for one gave up.
    """

    number: IntArray
    variables: IntArray
    model: IntegerModel
    forms: sparse.csr_array
    fixed: IntArray
    linear: HighsWarm
    star: IntArray | None


def _parts(model: IntegerModel, targets: IntArray) -> Iterator[_RowPart]:
    """Yield the components of a model without fixed variables; raise if one is infeasible."""
    wide = np.flatnonzero(model.low < model.high)
    constant = model.rows @ np.where(model.low == model.high, model.low, 0)
    ends = (less(end, constant) for end in (model.row_low, model.row_high))
    left = sparse.csr_array(model.rows[:, wide])
    parts = components(IntegerModel(model.low[wide], model.high[wide], left, *ends))
    number = np.full(constant.size, -1)
    number[targets] = np.arange(len(targets))
    from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

    for k in range(parts.size):
        part, rows = parts.part([k]), parts.row[parts.first_row[k] : parts.first_row[k + 1]]
        nothing = np.zeros(part.low.size, np.int64)
        linear = HighsWarm(part, nothing, primal=True)
        status, star = linear.find(nothing, nodes=_NODES)
        if status == "none":
            raise DataError(f"{_CONTRADICT}: no counts fit them")
        wanted, variables = number[rows] >= 0, wide[parts.variable[parts.variables([k])]]
        index, forms = number[rows[wanted]], sparse.csr_array(part.rows[np.flatnonzero(wanted)])
        yield _RowPart(index, variables, part, forms, constant[rows[wanted]], linear, star)

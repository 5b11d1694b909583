"""The smallest histograms that tables speak of: cliques of attributes that tables cross.

Tables that cross the same attributes need their joint histogram; tables that share none need two
histograms with one total.  Between the two lies a tree of cliques: the attributes crossed by some
table are joined by an edge, the graph is made chordal, and every table lies in a clique.  Whole,
non-negative histograms of the cliques that agree on what neighbours share come from one histogram
of all attributes (records with the same shared codes are glued, one to one), and the other way
round.  So nothing is lost, and ten attributes need thousands of cells, not millions.
"""

from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from scipy import sparse

from bayesrisk._types import IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.tables import Histogram, Workload

_MAX_CELLS = 2**22


@dataclass(frozen=True)
class Cliques:
    """Cells of all cliques side by side, and what is counted of them at a place.

    Attributes
    ----------
    bins : dict of str to ndarray of int64
        For every attribute that matters the number of the kind of each code: tables tell kinds
        apart, not codes.
    members : tuple of tuple of str
        The attributes of each clique.
    start : ndarray of int64
        Where the cells of each clique start; the last entry is the number of cells.
    incidence : dict of str to csc_array of int64, each of shape (cells of tables, cells)
        For each level the weight of a cell in the cells of its tables, one after the other.
    ties : csc_array of int64, shape (ties, cells)
        Rows that are 0 for consistent cliques: what two neighbours share.
    neighbours : tuple of (int, int, tuple of str)
        The tree: pairs of cliques, the one nearer to the root first, and what they share.
    """

    bins: dict[str, IntArray]
    members: tuple[tuple[str, ...], ...]
    start: IntArray
    incidence: dict[str, sparse.csc_array]
    ties: sparse.csc_array
    neighbours: tuple[tuple[int, int, tuple[str, ...]], ...]

    @property
    def size(self) -> int:
        """Number of cells of all cliques."""
        return int(self.start[-1])

    def shape(self, clique: int) -> tuple[int, ...]:
        """Return the number of kinds of each attribute of a clique."""
        return tuple(int(self.bins[name].max()) + 1 for name in self.members[clique])

    def project(self, histogram: Histogram) -> sparse.csr_array:
        """Return the histograms of the cliques, (places, cells)."""
        counts = histogram.counts.tocoo()
        place, cell = counts.coords
        distinct, at = np.unique(cell, return_inverse=True)
        codes = histogram.schema.indices(distinct.astype(np.int64))
        columns = [
            int(self.start[clique]) + self._flat(clique, codes)[at]
            for clique in range(len(self.members))
        ]
        count = len(self.members)
        where = np.tile(place, count), np.concatenate(columns)
        shape = (counts.shape[0], self.size)
        found = sparse.coo_array((np.tile(counts.data, count), where), shape=shape)
        return sparse.csr_array(found)

    def _flat(self, clique: int, codes: dict[str, IntArray]) -> IntArray:
        """Return the cells of a clique that indices of codes lie in."""
        size = len(next(iter(codes.values())))
        flat = np.zeros(size, dtype=np.int64)
        for name, kinds in zip(self.members[clique], self.shape(clique), strict=True):
            flat = flat * kinds + self.bins[name][codes[name]]
        return flat

    def shared(self, clique: int, names: tuple[str, ...]) -> IntArray:
        """Return for each cell of a clique the number of its combination of some attributes."""
        shape = self.shape(clique)
        codes = np.unravel_index(np.arange(prod(shape)), shape) if shape else ()
        flat = np.zeros(prod(shape), dtype=np.int64)
        for name, kinds, code in zip(self.members[clique], shape, codes, strict=True):
            if name in names:
                flat = flat * kinds + code
        return flat


def cliques_of(workload: Workload) -> Cliques:
    """Return the cliques of the tables of all levels of a workload.

    Raises
    ------
    ArgumentError
        If cliques have more than 4,194,304 cells.
    """
    schema = workload.schema
    bins = {}
    for attribute in schema.attributes:
        name = attribute.name
        used = [t.factors[name] for t in workload.tables.values() if name in t.factors]
        if used:
            kinds = np.unique(np.vstack(used), axis=1, return_inverse=True)[1].reshape(-1)
            if kinds.max():
                bins[name] = kinds.astype(np.int64)
    order = {name: at for at, name in enumerate(bins)}
    crossed = {frozenset(t.factors) & frozenset(bins) for t in workload.tables.values()}
    members = _chordal_cliques(crossed, {name: int(b.max()) + 1 for name, b in bins.items()})
    named = tuple(tuple(sorted(m, key=order.__getitem__)) for m in members)
    sizes = [prod(int(bins[n].max()) + 1 for n in names) for names in named]
    if sum(sizes) > _MAX_CELLS:
        raise ArgumentError(
            f"tables of the workload must tell at most {_MAX_CELLS} kinds of records apart, "
            f"got {sum(sizes)}"
        )
    start = np.cumsum([0, *sizes]).astype(np.int64)
    neighbours = _tree(named)
    empty = sparse.csc_array((0, int(start[-1])), dtype=np.int64)
    bare = Cliques(bins, named, start, {}, empty, neighbours)
    incidence = {level: _incidence(bare, workload, level) for level in workload.levels}
    return Cliques(bins, named, start, incidence, _ties(bare), neighbours)


def _chordal_cliques(crossed: set[frozenset[str]], kinds: dict[str, int]) -> list[frozenset[str]]:
    """Return the maximal cliques of a chordal graph that joins attributes crossed by a table.

    Attributes are taken out one by one, the one with the smallest histogram of it and its
    neighbours first.
    """
    near: dict[str, set[str]] = {name: set() for name in kinds}
    for names in crossed:
        for one, other in combinations(names, 2):
            near[one].add(other)
            near[other].add(one)
    found: list[frozenset[str]] = []
    while near:
        name = min(near, key=lambda n: (kinds[n] * prod(kinds[o] for o in near[n]), n))
        others = near.pop(name)
        clique = frozenset({name, *others})
        if not any(clique <= other for other in found):
            found.append(clique)
        for other in others:
            near[other] |= others - {other}
            near[other].discard(name)
    return found or [frozenset()]


def _tree(members: tuple[tuple[str, ...], ...]) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """Return a spanning tree of cliques that share most: a junction tree of a chordal graph."""
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
    """Return the weights of the cells of cliques in the cells of the tables of a level."""
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
        where = row, column + cliques.start[clique]
        blocks.append(sparse.coo_array((weights.data, where), shape=wide))
    stacked = sparse.csc_array(sparse.vstack(blocks, format="csc"), dtype=np.int64)
    stacked.eliminate_zeros()
    return stacked


def _ties(cliques: Cliques) -> sparse.csc_array:
    """Return the rows that say that neighbours agree on what they share."""
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
    where = np.concatenate(rows), np.concatenate(columns)
    return sparse.csc_array((np.concatenate(signs), where), shape=(number, cliques.size))

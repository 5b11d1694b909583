"""The linear system of suppressed cells that everybody can write down from what is published."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from bayesrisk.mechanisms._relations import Link, Structure
from bayesrisk.tables import PublishedTables

__all__ = ["Cells", "HiddenSystem", "hidden_system", "parts_of", "stacked"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Cells of published tables.

    Attributes
    ----------
    level, place, cell : ndarray of int64
        Positions of the level, the place in it, and the cell among those of the level's tables.
    """

    level: IntArray
    place: IntArray
    cell: IntArray


@dataclass(frozen=True)
class HiddenSystem:
    """``matrix @ x = right`` for the suppressed counts x >= 0, one row for each relation.

    Attributes
    ----------
    variables : Cells
        The suppressed cells.
    matrix : csr_array of int64, shape (rows, suppressed cells)
        Coefficients, +1 and -1.
    right : ndarray of int64
        What the published cells of each relation leave.
    source, place, relation : ndarray of int64
        Of each row: the level (or, from ``len(levels)`` on, the link), the place and the relation
        (for a link the position of the cell) that it comes from.
    """

    variables: Cells
    matrix: sparse.csr_array
    right: IntArray
    source: IntArray
    place: IntArray
    relation: IntArray

    @cached_property
    def components(self) -> IntArray:
        """Number of the part of the system that each variable belongs to."""
        return parts_of(self.matrix)


def parts_of(matrix: sparse.csr_array) -> IntArray:
    """Return the number of the part of a system that each variable belongs to."""
    # Rows and variables are the nodes: as many edges as entries, however long the rows.
    rows, variables = matrix.shape
    row, variable = matrix.tocoo().coords
    size = rows + variables
    graph = sparse.csr_array((np.ones(len(row)), (row, variable + rows)), shape=(size, size))
    found: IntArray = connected_components(graph, directed=False)[1][rows:].astype(np.int64)
    return found


def stacked(
    tables: PublishedTables, plan: Structure
) -> tuple[list[sparse.csr_array], list[sparse.csr_array]]:
    """Return for each level the counts and the suppression of all its tables side by side."""
    counts, hidden = [], []
    for level in plan.levels:
        keys = [(level.name, name) for name in level.start]
        counts.append(sparse.csr_array(sparse.hstack([tables.counts[k] for k in keys], "csr")))
        parts = [tables.hidden(*key).astype(np.int64) for key in keys]
        hidden.append(sparse.csr_array(sparse.hstack(parts, "csr")))
    return counts, hidden


def hidden_system(
    plan: Structure, counts: list[sparse.csr_array], hidden: list[sparse.csr_array]
) -> HiddenSystem:
    """Return the system of all relations that hold a suppressed cell.

    Counts of suppressed cells are not looked at.
    """
    known = [sparse.csr_array(c - c.multiply(h)) for c, h in zip(counts, hidden, strict=True)]
    coords = [h.tocoo().coords for h in hidden]
    level = np.concatenate([np.full(len(c[0]), i) for i, c in enumerate(coords)])
    variables = Cells(
        level.astype(np.int64),
        np.concatenate([c[0] for c in coords]).astype(np.int64),
        np.concatenate([c[1] for c in coords]).astype(np.int64),
    )
    first = np.cumsum([0, *(len(c[0]) for c in coords)])
    rows = [
        _inside(i, variables, int(first[i]), int(first[i + 1]), level.relations, known[i])
        for i, level in enumerate(plan.levels)
    ]
    rows += [
        _between(i, link, len(plan.levels), variables, known) for i, link in enumerate(plan.links)
    ]
    return _assembled(variables, rows)


@dataclass(frozen=True)
class _Rows:
    """Entries of some rows of the system, rows named by place and relation."""

    source: int
    place: IntArray
    relation: IntArray
    variable: IntArray
    sign: IntArray
    right: sparse.csr_array  # (places, relations)


def _inside(
    source: int,
    variables: Cells,
    first: int,
    last: int,
    relations: sparse.csr_array,
    known: sparse.csr_array,
) -> _Rows:
    """Return the entries of relations inside a level."""
    by_cell = relations.tocsc()
    cell = variables.cell[first:last]
    count = np.diff(by_cell.indptr)[cell]
    variable = np.repeat(np.arange(first, last), count)
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    at = np.repeat(by_cell.indptr[cell], count) + offset
    return _Rows(
        source,
        variables.place[variable],
        by_cell.indices[at].astype(np.int64),
        variable.astype(np.int64),
        by_cell.data[at],
        sparse.csr_array(-(known @ relations.T)),
    )


def _between(
    number: int, link: Link, levels: int, variables: Cells, known: list[sparse.csr_array]
) -> _Rows:
    """Return the entries of sums of children to parents, a relation for each cell they share."""
    place, relation, variable, sign = [], [], [], []
    for level, cells, value in (
        (link.coarse, link.coarse_cells, -1),
        (link.fine, link.fine_cells, 1),
    ):
        own = np.flatnonzero(variables.level == level)
        position = np.full(known[level].shape[1], -1, dtype=np.int64)
        position[cells] = np.arange(len(cells))
        own = own[position[variables.cell[own]] >= 0]
        at = variables.place[own]
        place.append(link.parent[at] if value == 1 else at)
        relation.append(position[variables.cell[own]])
        variable.append(own)
        sign.append(np.full(len(own), value, dtype=np.int64))
    children = len(link.parent)
    parents = known[link.coarse].shape[0]
    ones = np.ones(children, dtype=np.int64)
    total = sparse.csr_array((ones, (link.parent, np.arange(children))), (parents, children))
    below = total @ known[link.fine][:, link.fine_cells]
    return _Rows(
        levels + number,
        np.concatenate(place),
        np.concatenate(relation),
        np.concatenate(variable),
        np.concatenate(sign),
        sparse.csr_array(known[link.coarse][:, link.coarse_cells] - below),
    )


def _assembled(variables: Cells, rows: list[_Rows]) -> HiddenSystem:
    """Return one system of all rows."""
    matrices, right, names = [], [], []
    for part in rows:
        code = part.place * max(1, part.right.shape[1]) + part.relation
        distinct, row = np.unique(code, return_inverse=True)
        place, relation = np.divmod(distinct, max(1, part.right.shape[1]))
        shape = (len(distinct), len(variables.cell))
        matrices.append(sparse.csr_array((part.sign, (row, part.variable)), shape=shape))
        if len(distinct):
            right.append(np.asarray(part.right[place, relation], dtype=np.int64).reshape(-1))
        names.append((np.full(len(distinct), part.source), place, relation))
    matrix = sparse.csr_array(sparse.vstack(matrices, format="csr"))
    source, place, relation = (np.concatenate(c).astype(np.int64) for c in zip(*names, strict=True))
    values = np.concatenate(right) if right else np.zeros(0, dtype=np.int64)
    return HiddenSystem(variables, matrix, values, source, place, relation)

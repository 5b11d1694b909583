"""Sums that hold between published cells: parts of a table to its totals, children to parents.

A relation says that some cells (coefficient +1) add up to another (-1).  Inside a level it is
found from the definitions of the tables: a cell whose records are exactly those of several
disjoint cells of one table.  Between two levels a table that both have adds up cell by cell.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk.mechanisms._tabulation import different_cells
from bayesrisk.tables import PublishedTables, Workload

__all__ = ["Level", "Link", "Structure", "structure"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Level:
    """The cells of all tables of a level, one after the other, and the relations among them.

    Attributes
    ----------
    name : str
        The level.
    start : dict of str to int
        Position of the first cell of each table.
    relations : csr_array of int64, shape (relations, cells)
        +1 for the parts, -1 for what they add up to.
    """

    name: str
    start: dict[str, int]
    relations: sparse.csr_array


@dataclass(frozen=True)
class Link:
    """Tables that two levels have in common.

    Attributes
    ----------
    coarse, fine : int
        Positions of the levels.
    coarse_cells, fine_cells : ndarray of int64
        Positions of the cells in either.
    parent : ndarray of int64
        For each place of the fine level the position of its parent.
    """

    coarse: int
    fine: int
    coarse_cells: IntArray
    fine_cells: IntArray
    parent: IntArray


@dataclass(frozen=True)
class Structure:
    """All relations of published tables.

    Attributes
    ----------
    levels : tuple of Level
        Coarse to fine.
    links : tuple of Link
        Between levels.
    """

    levels: tuple[Level, ...]
    links: tuple[Link, ...]


def structure(tables: PublishedTables) -> Structure:
    """Return the relations among the cells of published tables."""
    workload = tables.workload
    levels = tuple(_level(workload, name) for name in workload.levels)
    return Structure(levels, tuple(_links(tables, levels)))


def _level(workload: Workload, name: str) -> Level:
    own = list(workload.at(name).values())
    sizes = [len(table.cells) for table in own]
    ends = np.cumsum([0, *sizes])
    kinds = different_cells(workload.schema, own)
    blocks = [table.incidence(workload.schema, kinds) for table in own]
    rows = sparse.csr_array(sparse.vstack(blocks, format="csr"))
    start = {table.name: int(at) for table, at in zip(own, ends, strict=False)}
    return Level(name, start, _relations(rows, ends))


def _relations(rows: sparse.csr_array, ends: IntArray) -> sparse.csr_array:
    """Return the relations among rows of 0 and 1; ``ends`` says where tables start and end."""
    count = rows.shape[0]
    rows.eliminate_zeros()
    plain = np.ones(count, dtype=bool)  # weights other than 0 and 1 enter no relation
    heavy = rows.copy()
    heavy.data = (rows.data != 1).astype(np.int64)
    plain[heavy.sum(axis=1) > 0] = False
    size = np.diff(rows.indptr)
    common = sparse.csc_array(rows @ rows.T)
    found_rows, found_cells, found_signs = [], [], []
    number = 0
    for whole in np.flatnonzero(plain & (size > 0)).tolist():
        at = slice(common.indptr[whole], common.indptr[whole + 1])
        parts, shared = common.indices[at].astype(np.int64), common.data[at]
        order = np.argsort(parts)
        parts, shared = parts[order], shared[order]
        smaller = (size[parts] < size[whole]) | (parts < whole)
        parts = parts[plain[parts] & (shared == size[parts]) & smaller]
        for first, last in pairwise(ends.tolist()):
            inside = parts[(parts >= first) & (parts < last)]
            inside = inside[inside != whole]
            if first <= whole < last:
                inside = inside[size[inside] < size[whole]]
            chosen = _cover(inside, size, int(size[whole]), rows)
            if chosen.size:
                found_rows.append(np.full(chosen.size + 1, number))
                found_cells.append(np.append(chosen, whole))
                found_signs.append(np.append(np.ones(chosen.size, dtype=np.int64), -1))
                number += 1
    if not number:
        return sparse.csr_array((0, count), dtype=np.int64)
    where = np.concatenate(found_rows), np.concatenate(found_cells)
    return sparse.csr_array((np.concatenate(found_signs), where), shape=(number, count))


def _cover(parts: IntArray, size: IntArray, whole: int, rows: sparse.csr_array) -> IntArray:
    """Return the parts that make up a whole without overlap, or none."""
    if parts.size and int(size[parts].sum()) != whole:
        # Some lie within others: keep the largest.
        own = sparse.csr_array(rows[parts])
        shared = sparse.coo_array(own @ own.T)
        small, large = shared.coords
        within = (shared.data == size[parts][small]) & (size[parts][small] < size[parts][large])
        parts = np.delete(parts, np.unique(small[within]))
    if int(size[parts].sum()) != whole:
        return parts[:0]
    union = np.unique(sparse.csr_array(rows[parts]).indices).size
    return parts if union == whole else parts[:0]


def _links(tables: PublishedTables, levels: tuple[Level, ...]) -> list[Link]:
    """Return for each table its sums from a level to the next coarser one that has it too."""
    workload = tables.workload
    geography = workload.schema.geography
    pairs: dict[tuple[int, int], list[str]] = {}
    for fine, level in enumerate(levels):
        for name in level.start:
            table = workload.tables[level.name, name]
            for coarse in range(fine - 1, -1, -1):
                if workload.tables.get((levels[coarse].name, name)) == table:
                    pairs.setdefault((coarse, fine), []).append(name)
                    break
    links = []
    for (coarse, fine), names in pairs.items():
        places = tables.geoids[levels[coarse].name]
        parents = geography.ancestors(tables.geoids[levels[fine].name], levels[coarse].name)
        cells = [np.arange(len(workload.tables[levels[fine].name, n].cells)) for n in names]
        links.append(
            Link(
                coarse,
                fine,
                _shifted(cells, [levels[coarse].start[n] for n in names]),
                _shifted(cells, [levels[fine].start[n] for n in names]),
                np.searchsorted(places, parents).astype(np.int64),
            )
        )
    return links


def _shifted(cells: list[NDArray[np.int64]], starts: list[int]) -> IntArray:
    return np.concatenate([c + s for c, s in zip(cells, starts, strict=True)]).astype(np.int64)

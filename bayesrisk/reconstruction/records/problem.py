"""Published tables as one integer problem: rows with their counts, and bounds of the cells."""

import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.kernels import HIDDEN, LOOSE, UNBOUNDED
from bayesrisk.reconstruction.records.system import (
    CellSpace,
    CellSystem,
    Coupling,
    coarse_coupling,
    queries,
    raw_system,
    reduced_system,
    space_of,
    whole_coupling,
)
from bayesrisk.tables import Table
from bayesrisk.tables.published import PublishedTables, assumed_true
from bayesrisk.tables.schema import Schema
from bayesrisk.tables.workload import Workload


@dataclass(frozen=True)
class RowSource:
    """Rows that every group of cells (a block, a tract) has, and their counts, groups by rows.

    The rows of cell j are ``cell_row[cell_ptr[j]:cell_ptr[j + 1]]``, with coefficients; rows of
    one ``family`` share no cell; ``group`` is the group of every block.  The cells add up to the
    count where ``equal``, else to at most the count; where ``own`` a group is one block's, and
    cells of other blocks do not enter its rows.
    """

    cell_ptr: IntArray
    cell_row: IntArray
    cell_coef: IntArray
    family: IntArray
    counts: sp.csr_array
    group: IntArray
    equal: bool = True
    own: bool = False


@dataclass(frozen=True)
class LargerLevel:
    """The tables of a larger level, which couple the blocks.

    ``group`` is the place of every block, by position among ``geoids``; ``published`` are the
    counts of the places, ``HIDDEN`` where suppressed; ``coupling`` are rows of a place over the
    cells of its blocks.
    """

    level: str
    geoids: TextArray
    group: IntArray
    published: sp.csr_array
    coupling: Coupling


@dataclass(frozen=True)
class PublishedRows:
    """Rows that published tables give of the histograms of blocks: made once, never changed.

    Attributes
    ----------
    level : str
        The finest level, called block here.
    geoids : ndarray of str
        The blocks.
    system : CellSystem
        Rows of a block in terms of its published cells.
    published : scipy.sparse.csr_array
        Published counts of the blocks, ``HIDDEN`` where suppressed.
    larger : tuple of LargerLevel
        Tables of larger places, the largest first.
    rows : tuple of RowSource
        Rows of the blocks with their counts, then those of each larger level.
    taken_as_true : bool
        Whether some counts are of a release that does not say that they are true.
    """

    level: str
    geoids: TextArray
    system: CellSystem
    published: sp.csr_array
    larger: tuple[LargerLevel, ...]
    rows: tuple[RowSource, ...]
    taken_as_true: bool

    @property
    def space(self) -> CellSpace:
        """The cells of a block."""
        return self.system.queries.space


def published_rows(
    tables: PublishedTables, *, scope: str, taken_as_true: bool = False
) -> PublishedRows:
    """Return the rows of tables of the finest level, and of larger ones up to a scope."""
    if not isinstance(tables, PublishedTables):
        raise ArgumentTypeError(f"tables must be PublishedTables, got {type(tables).__name__}")
    workload = tables.workload
    check.choice(scope, "scope", workload.levels)
    geography = workload.schema.geography
    *coarser, level = workload.levels
    above = [n for n in coarser if geography.levels.index(scope) <= geography.levels.index(n)]
    keys = [key for key in workload.tables if key[0] in (level, *above)]
    assumed = assumed_true(tables.laws, keys, taken_as_true=taken_as_true)
    geoids = tables.geoids[level]
    ancestors = [geography.ancestors(geoids, name) for name in above]
    published, *counts = [_stacked(tables, name) for name in (level, *above)]
    withheld = _withheld([published]), _withheld(counts)
    system, couplings = _systems(workload, (level, *above), withheld)
    larger = []
    for name, own, part, coupling in zip(above, ancestors, counts, couplings, strict=True):
        places = tables.geoids[name]
        group = np.minimum(np.searchsorted(places, own), places.size - 1)
        missing = places[group] != own
        if missing.any():
            first = str(own[int(missing.argmax())])
            raise ArgumentError(f"tables must have every {name}, got none of {shown(first)}")
        larger.append(LargerLevel(name, places, group.astype(np.int64), part, coupling))
    rows = RowSource(
        system.cell_ptr, system.cell_row, system.cell_coef, system.family,
        system.rows_of(published), np.arange(geoids.size),
    )  # fmt: skip
    return PublishedRows(
        level, geoids, system, published, tuple(larger), (rows, *map(_coupling_rows, larger)),
        assumed,
    )  # fmt: skip


def _coupling_rows(larger: LargerLevel) -> RowSource:
    """Return the rows of a larger level with the counts of its places."""
    coupling = larger.coupling
    columns = sp.csc_array(coupling.rows)
    columns.sort_indices()
    counts = sp.csr_array(larger.published @ coupling.derivation.T)
    counts.sort_indices()
    return RowSource(
        columns.indptr.astype(np.int64),
        columns.indices.astype(np.int64),
        columns.data.astype(np.int64),
        coupling.family,
        counts,
        larger.group,
    )


def _stacked(tables: PublishedTables, level: str) -> sp.csr_array:
    """Return the counts of all tables of a level side by side, ``HIDDEN`` where suppressed."""
    parts = []
    for key in [key for key in tables.workload.tables if key[0] == level]:
        part = tables.counts[key]
        if key in tables.suppressed:
            part = sp.csr_array(part + HIDDEN * tables.suppressed[key].astype(np.int64))
        parts.append(part)
    return sp.csr_array(sp.hstack(parts, format="csr"), dtype=np.int64)


def _withheld(parts: Iterable[sp.csr_array]) -> bool:
    """Return whether any cell of some counts is withheld."""
    return any(part.nnz and int(part.data.min()) == HIDDEN for part in parts)


class _KeptSystems(NamedTuple):
    """Systems that were made, and of which tables."""

    key: tuple[Schema, tuple[str, ...], tuple[bool, bool]]
    tables: tuple[Table, ...]
    made: tuple[CellSystem, tuple[Coupling, ...]]


#: The last systems: many tracts with one workload need one of them.
_KEPT: deque[_KeptSystems] = deque(maxlen=8)


def _systems(
    workload: Workload, levels: tuple[str, ...], withheld: tuple[bool, bool]
) -> tuple[CellSystem, tuple[Coupling, ...]]:
    """Return the system of the first level, and the couplings of the others.

    Where some cell of the blocks, or of the larger places, is withheld, the rows of these are the
    published cells themselves.
    """
    own, *larger = [
        tuple(workload.tables[key] for key in workload.tables if key[0] == level)
        for level in levels
    ]
    every = (*own, *itertools.chain(*larger))
    key = (workload.schema, levels, withheld)
    for kept in _KEPT:
        if kept.key == key and kept.tables == every:
            return kept.made
    space = space_of(workload.schema, own)
    couplings: list[Coupling] = []
    for tables in larger:
        coarse = None if withheld[1] else coarse_coupling(space, own, tables)
        if coarse is None:
            space = space_of(workload.schema, every)
            couplings = [whole_coupling(space, tables) for tables in larger]
            break
        couplings.append(coarse)
    published = queries(space, own)
    system = raw_system(published) if withheld[0] else reduced_system(published)
    _KEPT.append(_KeptSystems(key, every, (system, tuple(couplings))))
    return system, tuple(couplings)


# -----------------------------------------------------------------------------
# Bounds of the cells of every block from its own rows, by interval propagation.


@dataclass(frozen=True)
class BlockBounds:
    """Every cell that can hold somebody with its bounds, and a status of each block.

    The status is ``FIXED``, ``OPEN``, ``INFEASIBLE`` or ``LOOSE`` of the kernels; ``culprit`` is
    the row that contradicts, or -1.
    """

    status: IntArray
    culprit: IntArray
    block: IntArray
    cell: IntArray
    low: IntArray
    high: IntArray


def block_bounds(problem: PublishedRows) -> BlockBounds:
    """Return bounds of the cells of every block: the fixed point of interval propagation."""
    bounds = _bounds_of(problem, 0, problem.geoids.size, None)
    if not problem.larger or not np.any(bounds.status == LOOSE):
        return bounds
    # Cells that a block's own tables leave unbounded are bounded by those of its larger places.
    places = np.stack([larger.group for larger in problem.larger])
    change = np.flatnonzero(np.any(places[:, 1:] != places[:, :-1], axis=0)) + 1
    edges = [0, *change.tolist(), problem.geoids.size]
    parts = [
        _bounds_of(problem, first, last, _ceiling(problem, first))
        for first, last in itertools.pairwise(edges)
    ]
    return BlockBounds(*(np.concatenate(part) for part in zip(*map(astuple, parts), strict=True)))


def _bounds_of(
    problem: PublishedRows, first: int, last: int, ceiling: IntArray | None
) -> BlockBounds:
    """Return the bounds of the blocks from ``first`` to ``last``."""
    s, counts = problem.system, problem.rows[0].counts[first:last]
    size = last - first
    if ceiling is None:
        ceiling = np.full(problem.space.size, UNBOUNDED, np.int64)
    outcome = kernels.BlockOutcome(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size + 1, np.int64)
    )
    cell, low, high = kernels.solve_blocks(
        kernels.BlockRows(s.cell_ptr, s.cell_row, s.cell_coef, s.cover_ptr, s.cover_cell, ceiling),
        kernels.BlockCounts(
            counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data
        ),
        outcome,
    )
    block = np.repeat(np.arange(first, last), np.diff(outcome.ptr))
    return BlockBounds(outcome.status, outcome.culprit, block, cell, low, high)


def _ceiling(problem: PublishedRows, block: int) -> IntArray:
    """Return the largest count of every cell that the tables of a block's larger places allow."""
    most = np.full(problem.space.size, UNBOUNDED, np.int64)
    for larger in problem.larger:
        coupling = larger.coupling
        published = larger.published[[larger.group[block]]].toarray().ravel()
        counts = coupling.derivation @ np.where(published == HIDDEN, 0, published)
        hidden = abs(coupling.derivation) @ (published == HIDDEN).astype(np.int64) > 0
        known = sp.csr_array(coupling.rows[np.flatnonzero(~hidden)])
        row = np.repeat(np.flatnonzero(~hidden), np.diff(known.indptr))
        bound: IntArray = np.maximum(counts[row], 0) // known.data
        np.minimum.at(most, known.indices, bound)
    return most

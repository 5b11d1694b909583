"""Published tables as a problem: the system of the blocks, their counts, and what couples them."""

import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.constraints import kernels
from bayesrisk.reconstruction.constraints.cells import CellSpace, queries, space_of
from bayesrisk.reconstruction.constraints.coupling import Coupling, coarse_coupling, whole_coupling
from bayesrisk.reconstruction.constraints.kernels import HIDDEN, LOOSE, UNBOUNDED
from bayesrisk.reconstruction.constraints.system import CellSystem, raw_system, reduced_system
from bayesrisk.reconstruction.records.program import RowSource
from bayesrisk.tables.published import PublishedTables, assumed_true
from bayesrisk.tables.workload import Table, Workload


class _Kept(NamedTuple):
    """Systems that were made, and what for."""

    key: tuple[Any, ...]
    tables: tuple[Table, ...]
    made: "tuple[CellSystem, dict[str, Coupling]]"


_KEPT: deque[_Kept] = deque(maxlen=8)


@dataclass(frozen=True)
class Instance:
    """Blocks, their counts, and the rows that couple them.

    Attributes
    ----------
    level : str
        The finest level, called block here.
    geoids : ndarray of str
        The blocks.
    system : CellSystem
        Rows of a block.
    published : scipy.sparse.csr_array
        Published counts of the blocks, ``HIDDEN`` where suppressed.
    counts : scipy.sparse.csr_array
        Counts of the rows of every block.
    couplings : Mapping of str to Coupling
        For every larger level its rows.
    coupled : Mapping of str to scipy.sparse.csr_array
        For every larger level the published counts of its places.
    group : Mapping of str to ndarray of int64
        For every larger level the place of each block.
    places : Mapping of str to ndarray of str
        For every larger level its places.
    taken_as_true : bool
        Whether some counts are of a release that does not say that they are true.
    """

    level: str
    geoids: TextArray
    system: CellSystem
    published: sp.csr_array
    counts: sp.csr_array
    couplings: Mapping[str, Coupling]
    coupled: Mapping[str, sp.csr_array]
    group: Mapping[str, IntArray]
    places: Mapping[str, TextArray]
    taken_as_true: bool

    @property
    def space(self) -> CellSpace:
        """The cells of a block."""
        return self.system.space

    def sources(self, *, bounds_only: bool = False) -> list[RowSource]:
        """Return where the rows of a program come from; coupling rows as bounds where asked."""
        s = self.system
        own = np.arange(self.geoids.size)
        rows = RowSource(s.cell_ptr, s.cell_row, s.cell_coef, s.family, self.counts, own)
        return [rows, *(self._coupled(level, bounds_only) for level in self.couplings)]

    def _coupled(self, level: str, bounds_only: bool) -> RowSource:
        coupling = self.couplings[level]
        columns = sp.csc_array(coupling.rows)
        columns.sort_indices()
        counts = sp.csr_array(self.coupled[level] @ coupling.derivation.T)
        counts.sort_indices()
        return RowSource(
            columns.indptr.astype(np.int64),
            columns.indices.astype(np.int64),
            columns.data.astype(np.int64),
            coupling.family,
            counts,
            self.group[level],
            equal=not bounds_only,
            own=bounds_only,
        )

    def describe(self, source: int, group: int, row: int) -> str:
        """Return the place and the published cells of a row."""
        if source == 0:
            return f"{self.level} {self.geoids[group]}: {self.system.describe(row)}"
        level = list(self.couplings)[source - 1]
        coupling = self.couplings[level]
        part = coupling.derivation[[row]].tocoo()
        names = sorted(coupling.queries.names[at][1] for at in part.coords[1].tolist())
        return f"{level} {self.places[level][group]}: {' '.join(names)}"


def _stacked(tables: PublishedTables, level: str) -> sp.csr_array:
    """Return the counts of all tables of a level side by side, ``HIDDEN`` where suppressed."""
    names = list(tables.workload.at(level))
    parts = []
    for name in names:
        part = tables.counts[level, name]
        if (level, name) in tables.suppressed:
            part = sp.csr_array(part + HIDDEN * tables.suppressed[level, name].astype(np.int64))
        parts.append(part)
    return sp.csr_array(sp.hstack(parts, format="csr"), dtype=np.int64)


def _between(workload: Workload, level: str, scope: str) -> list[str]:
    """Return the levels with tables above ``level`` up to ``scope``."""
    rank = workload.schema.geography.rank
    return [n for n in workload.levels if rank(scope) <= rank(n) < rank(level)]


def instance(tables: PublishedTables, *, scope: str, taken_as_true: bool = False) -> Instance:
    """Return the problem that tables pose.

    Parameters
    ----------
    tables : PublishedTables
        Tables of the finest level, and of larger places.
    scope : str
        The finest level for every block on its own; a larger level for all blocks of such a
        place together, with the tables of every level in between.
    taken_as_true : bool, default False
        Whether counts of a release that need not be true may be read as if they were.

    Returns
    -------
    Instance
        Systems, counts and coupling rows.

    Raises
    ------
    ArgumentError
        If there are no tables at ``scope``, too many cells, or counts that need not be true.
    """
    if not isinstance(tables, PublishedTables):
        raise ArgumentTypeError(f"tables must be PublishedTables, got {type(tables).__name__}")
    workload = tables.workload
    level = workload.levels[-1]
    check.choice(scope, "scope", workload.levels)
    larger = _between(workload, level, scope)
    keys = [key for key in workload.tables if key[0] in (level, *larger)]
    assumed = assumed_true(tables.laws, keys, taken_as_true=taken_as_true)
    own = tuple(workload.at(level).values())
    above = {name: tuple(workload.at(name).values()) for name in larger}
    published = _stacked(tables, level)
    coupled = {name: _stacked(tables, name) for name in larger}
    raw, whole = _withheld([published]), _withheld(coupled.values())
    system, couplings = _systems(workload, own, above, raw=raw, whole=whole)
    geoids = tables.geoids[level]
    places = {name: tables.geoids[name] for name in larger}
    group = {}
    for name in larger:
        ancestors = workload.schema.geography.ancestors(geoids, name)
        at = np.searchsorted(places[name], ancestors)
        missing = (at == places[name].size) | (
            places[name][np.minimum(at, places[name].size - 1)] != ancestors
        )
        if missing.any():
            first = str(ancestors[int(missing.argmax())])
            raise ArgumentError(f"tables must have every {name}, got none of {shown(first)}")
        group[name] = at.astype(np.int64)
    return Instance(
        level,
        geoids,
        system,
        published,
        system.rows_of(published),
        couplings,
        coupled,
        group,
        places,
        assumed,
    )


def _withheld(parts: Iterable[sp.csr_array]) -> bool:
    """Return whether any cell of some counts is withheld."""
    return any(part.nnz and int(part.data.min()) == HIDDEN for part in parts)


def _systems(
    workload: Workload,
    own: Sequence[Table],
    above: Mapping[str, Sequence[Table]],
    *,
    raw: bool,
    whole: bool,
) -> tuple[CellSystem, dict[str, Coupling]]:
    """Return the system and the couplings.

    ``raw`` and ``whole`` say that some cell of the blocks, or of the larger places, is withheld:
    then their rows are the published cells themselves.  The last few are kept: many tracts with
    one workload need them once.
    """
    used = (*own, *(t for name in above for t in above[name]))
    key = (workload.schema, tuple(above), raw, whole)
    for kept in _KEPT:
        pairs = zip(kept.tables, used, strict=False)
        same = kept.key == key and len(kept.tables) == len(used)
        if same and all(a is b or a == b for a, b in pairs):
            return kept.made
    made = _made_systems(workload, own, above, raw=raw, whole=whole)
    _KEPT.append(_Kept(key, used, made))
    return made


def _made_systems(
    workload: Workload,
    own: Sequence[Table],
    above: Mapping[str, Sequence[Table]],
    *,
    raw: bool,
    whole: bool,
) -> tuple[CellSystem, dict[str, Coupling]]:
    space = space_of(workload.schema, own)
    couplings: dict[str, Coupling] = {}
    for name, tables in above.items():
        coarse = None if whole else coarse_coupling(space, own, tables)
        if coarse is None:
            space = space_of(workload.schema, [*own, *(t for ts in above.values() for t in ts)])
            couplings = {n: whole_coupling(space, ts) for n, ts in above.items()}
            break
        couplings[name] = coarse
    published = queries(space, own)
    return (raw_system if raw else reduced_system)(published), couplings


@dataclass(frozen=True)
class BlockBounds:
    """Possible cells of every block with their bounds, and what propagation proved.

    Attributes
    ----------
    status : ndarray of int64
        ``FIXED``, ``OPEN``, ``INFEASIBLE`` or ``LOOSE`` of the kernels.
    culprit : ndarray of int64
        Row that contradicts, or -1.
    block, cell, low, high : ndarray of int64
        Every cell that can hold somebody.
    """

    status: IntArray
    culprit: IntArray
    block: IntArray
    cell: IntArray
    low: IntArray
    high: IntArray


def block_bounds(problem: Instance) -> BlockBounds:
    """Return bounds of the cells of every block from its own rows.

    Parameters
    ----------
    problem : Instance
        The blocks.

    Returns
    -------
    BlockBounds
        The fixed point of interval propagation.
    """
    bounds = _bounds_of(problem, 0, problem.geoids.size, None)
    if not problem.couplings or not np.any(bounds.status == LOOSE):
        return bounds
    # Cells that a block's own tables leave unbounded are bounded by those of its larger places.
    places = np.stack(list(problem.group.values()))
    change = np.flatnonzero(np.any(places[:, 1:] != places[:, :-1], axis=0)) + 1
    edges = [0, *change.tolist(), problem.geoids.size]
    parts = [
        _bounds_of(problem, first, last, _ceiling(problem, places[:, first]))
        for first, last in itertools.pairwise(edges)
    ]
    return BlockBounds(*(np.concatenate(part) for part in zip(*map(astuple, parts), strict=True)))


def _bounds_of(problem: Instance, first: int, last: int, ceiling: IntArray | None) -> BlockBounds:
    """Return the bounds of the blocks from ``first`` to ``last``."""
    s, counts = problem.system, problem.counts[first:last]
    size = last - first
    if ceiling is None:
        ceiling = np.full(problem.space.size, UNBOUNDED, np.int64)
    outcome = kernels.Outcome(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size + 1, np.int64)
    )
    cell, low, high = kernels.solve_blocks(
        kernels.System(s.cell_ptr, s.cell_row, s.cell_coef, s.cover_ptr, s.cover_cell, ceiling),
        kernels.Blocks(
            counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data
        ),
        outcome,
    )
    block = np.repeat(np.arange(first, last), np.diff(outcome.ptr))
    return BlockBounds(outcome.status, outcome.culprit, block, cell, low, high)


def _ceiling(problem: Instance, places: IntArray) -> IntArray:
    """Return the largest count of every cell that the tables of its larger places allow."""
    most = np.full(problem.space.size, UNBOUNDED, np.int64)
    for level, place in zip(problem.couplings, places.tolist(), strict=True):
        coupling = problem.couplings[level]
        published = problem.coupled[level][[place]].toarray().ravel()
        counts = coupling.derivation @ np.where(published == HIDDEN, 0, published)
        hidden = abs(coupling.derivation) @ (published == HIDDEN).astype(np.int64) > 0
        known = sp.csr_array(coupling.rows[np.flatnonzero(~hidden)])
        row = np.repeat(np.flatnonzero(~hidden), np.diff(known.indptr))
        bound: IntArray = np.maximum(counts[row], 0) // known.data
        np.minimum.at(most, known.indices, bound)
    return most

"""Published tables as a problem: the system of the blocks, their counts, and what couples them."""

import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import IntArray, TextArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.constraints import derived_rows
from bayesrisk.reconstruction.constraints.cells import CellSpace, entries, queries, space_of
from bayesrisk.reconstruction.constraints.derived_rows import HIDDEN, LOOSE, UNBOUNDED
from bayesrisk.reconstruction.constraints.system import (
    CellSystem,
    Coupling,
    coarse_coupling,
    raw_system,
    reduced_system,
    whole_coupling,
)
from bayesrisk.reconstruction.records._search_kernels import Arrays, Work
from bayesrisk.reconstruction.solvers import IntegerModel
from bayesrisk.tables import Table
from bayesrisk.tables.published import PublishedTables, assumed_true
from bayesrisk.tables.workload import Workload

# -----------------------------------------------------------------------------
# What propagation leaves open: a program of free cells, taken apart into components.


#: Changes of bounds, beyond two for each variable, that a search can take back; one that needs
#: more stops, as at its limit of nodes.  24 bytes each.
MOST_CHANGES = 5_000_000


@dataclass(frozen=True)
class RowSource:
    """Rows that every group of cells (a block, a tract) has.

    Attributes
    ----------
    cell_ptr, cell_row, cell_coef : ndarray of int64
        The rows of every cell.
    family : ndarray of int64
        The family of each row.
    counts : scipy.sparse.csr_array
        Counts, groups by rows.
    group : ndarray of int64
        The group of every block.
    equal : bool
        Whether the cells add up to the count, or to at most the count.
    own : bool
        Whether a group is one block's: cells of other blocks do not enter its rows.
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
class Program:
    """Free cells with their bounds, and the rows that bind them.

    Attributes
    ----------
    arrays : Arrays
        Columns, rows and components.
    low, high : ndarray of int64
        Bounds of the variables.
    entry, block, cell : ndarray of int64
        Where each variable comes from: which of the given cells, its block and cell.
    source, group, row : ndarray of int64
        Where each row comes from: which source, which group and which row of it.
    """

    arrays: Arrays
    low: IntArray
    high: IntArray
    entry: IntArray
    block: IntArray
    cell: IntArray
    source: IntArray
    group: IntArray
    row: IntArray

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.arrays.first_var.size - 1

    def component_of(self) -> IntArray:
        """Return the component of every variable."""
        return np.repeat(np.arange(self.n_components), np.diff(self.arrays.first_var))

    def blocks_of(self, component: int) -> IntArray:
        """Return the blocks that have a cell in a component."""
        first, last = self.arrays.first_var[component : component + 2]
        return np.unique(self.block[first:last])

    def work(self) -> Work:
        """Return fresh working arrays; the sums of rows are filled by propagation."""
        n_rows, n_vars = self.arrays.row_low.size, self.low.size
        families = int(self.arrays.family.max()) + 1 if n_rows else 1
        depth = int((self.high - self.low).sum()) + n_vars + 1
        return Work(
            low=self.low.copy(),
            high=self.high.copy(),
            least=np.zeros(n_rows, np.int64),
            most=np.zeros(n_rows, np.int64),
            trail=np.empty((min(depth, MOST_CHANGES) + 2 * n_vars, 3), np.int64),
            queue=np.empty(n_rows + 1, np.int64),
            waiting=np.zeros(n_rows, np.int64),
            state=np.zeros(5, np.int64),
            stack=np.empty((n_vars + 1, 4), np.int64),
            usable=np.zeros(families, np.int64),
            total=np.zeros(families, np.int64),
        )


def _expand(ptr: IntArray, at: IntArray) -> tuple[IntArray, IntArray]:
    """Return positions of the entries of several compressed rows, and whose each one is."""
    sizes = ptr[at + 1] - ptr[at]
    owner = np.repeat(np.arange(at.size), sizes)
    start = np.repeat(ptr[at] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return start + np.arange(owner.size), owner


def _rows(
    source: RowSource, block: IntArray, cell: IntArray, low: IntArray, free: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return keys and residual counts of rows with free cells, and entries (row, var, coef)."""
    n_rows = source.family.size
    position, owner = _expand(source.cell_ptr, cell)
    base = block if source.own else source.group[block]
    key = base[owner] * n_rows + source.cell_row[position]
    coef = source.cell_coef[position]
    open_entry = free[owner]
    keys, row = np.unique(key[open_entry], return_inverse=True)
    group = keys // n_rows
    if source.own:
        group = source.group[group]
    counts = entries(source.counts, group, keys % n_rows)
    # What the settled cells of these rows hold is taken off.
    at = np.searchsorted(keys, key[~open_entry])
    at = np.minimum(at, max(keys.size - 1, 0))
    held = coef[~open_entry] * low[owner[~open_entry]]
    inside = keys[at] == key[~open_entry] if keys.size else np.zeros(0, bool)
    settled = np.zeros(keys.size, np.int64)
    np.add.at(settled, at[inside], held[inside])
    published = counts != HIDDEN
    keep = published[row]
    new = np.cumsum(published) - 1
    var = (np.cumsum(free) - 1)[owner[open_entry]]
    return (
        keys[published],
        (counts - settled)[published],
        new[row[keep]],
        var[keep],
        coef[open_entry][keep],
    )


def build_program(
    sources: Sequence[RowSource], block: IntArray, cell: IntArray, low: IntArray, high: IntArray
) -> Program:
    """Return the program of the cells whose bounds are apart.

    Parameters
    ----------
    sources : sequence of RowSource
        Where rows come from.
    block, cell : ndarray of int64
        Block and cell of everything that is known to be possible.
    low, high : ndarray of int64
        Bounds; settled cells are taken off the counts.

    Returns
    -------
    Program
        Variables and rows sorted by component.
    """
    free = low < high
    parts = [_rows(source, block, cell, low, free) for source in sources]
    sizes = [part[0].size for part in parts]
    offset = np.concatenate([[0], np.cumsum(sizes)])
    entry_row = np.concatenate([p[2] + offset[at] for at, p in enumerate(parts)])
    entry_var = np.concatenate([p[3] for p in parts])
    coef = np.concatenate([p[4] for p in parts])
    count = np.concatenate([p[1] for p in parts])
    source = np.repeat(np.arange(len(sources)), sizes)
    row_id = np.concatenate(
        [p[0] % s.family.size for p, s in zip(parts, sources, strict=True)]
    ).astype(np.int64)
    group = np.concatenate([p[0] // s.family.size for p, s in zip(parts, sources, strict=True)])
    shift = np.concatenate([[0], np.cumsum([int(s.family.max()) + 1 for s in sources])])
    family = np.concatenate(
        [s.family[p[0] % s.family.size] + shift[at]
         for at, (p, s) in enumerate(zip(parts, sources, strict=True))]
    )  # fmt: skip
    equal = np.array([s.equal for s in sources])[source]
    n_vars, n_rows = int(free.sum()), int(offset[-1])
    label = _components(entry_row, entry_var, n_rows, n_vars)
    var_order = np.argsort(label[:n_vars], kind="stable")
    row_order = np.argsort(label[n_vars:], kind="stable")
    n_components = int(label.max()) + 1 if label.size else 0
    var_rank, row_rank = np.empty(n_vars, np.int64), np.empty(n_rows, np.int64)
    var_rank[var_order], row_rank[row_order] = np.arange(n_vars), np.arange(n_rows)
    matrix = sp.csr_array(
        (coef, (row_rank[entry_row], var_rank[entry_var])), shape=(n_rows, n_vars)
    )
    columns = sp.csc_array(matrix)
    columns.sort_indices()
    ends = np.arange(n_components + 1)
    arrays = Arrays(
        var_ptr=columns.indptr.astype(np.int64),
        var_row=columns.indices.astype(np.int64),
        var_coef=columns.data.astype(np.int64),
        row_ptr=matrix.indptr.astype(np.int64),
        row_var=matrix.indices.astype(np.int64),
        row_coef=matrix.data.astype(np.int64),
        row_low=np.where(equal, count, 0)[row_order],
        row_high=count[row_order],
        family=family[row_order].astype(np.int64),
        first_var=np.searchsorted(label[:n_vars][var_order], ends).astype(np.int64),
        first_row=np.searchsorted(label[n_vars:][row_order], ends).astype(np.int64),
    )
    at = np.flatnonzero(free)[var_order]
    return Program(
        arrays, low[at], high[at], at, block[at], cell[at], source[row_order],
        group[row_order], row_id[row_order],
    )  # fmt: skip


def _components(row: IntArray, var: IntArray, n_rows: int, n_vars: int) -> IntArray:
    """Return the component of every variable and then of every row, in order of first variable."""
    size = n_vars + n_rows
    graph = sp.coo_array((np.ones(row.size, np.int8), (var, row + n_vars)), shape=(size, size))
    count, label = connected_components(graph.tocsr(), directed=False)
    first = np.full(count, size)
    np.minimum.at(first, label, np.arange(size))
    return np.argsort(np.argsort(first, kind="stable"))[label].astype(np.int64)


# -----------------------------------------------------------------------------


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
    outcome = derived_rows.Outcome(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size + 1, np.int64)
    )
    cell, low, high = derived_rows.solve_blocks(
        derived_rows.System(
            s.cell_ptr, s.cell_row, s.cell_coef, s.cover_ptr, s.cover_cell, ceiling
        ),
        derived_rows.Blocks(
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


# -----------------------------------------------------------------------------
# Integer models of components of a program: any solution, and the one farthest from another.


def variables(program: Program, components: Sequence[int]) -> IntArray:
    """Return the variables of some components, in order."""
    first = program.arrays.first_var
    return np.concatenate([np.arange(first[k], first[k + 1]) for k in components])


def _component_rows(program: Program, components: Sequence[int]) -> tuple[IntArray, sp.csr_array]:
    """Return the rows of some components, and their matrix over the components' variables."""
    p = program.arrays
    rows = np.concatenate([np.arange(p.first_row[k], p.first_row[k + 1]) for k in components])
    starts = np.cumsum([0, *(p.first_var[k + 1] - p.first_var[k] for k in components)])
    columns, values, sizes = [], [], []
    for k, start in zip(components, starts[:-1], strict=True):
        a, b = p.row_ptr[p.first_row[k]], p.row_ptr[p.first_row[k + 1]]
        columns.append(p.row_var[a:b] - p.first_var[k] + start)
        values.append(p.row_coef[a:b])
        sizes.append(np.diff(p.row_ptr[p.first_row[k] : p.first_row[k + 1] + 1]))
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    matrix = sp.csr_array(
        (np.concatenate(values), np.concatenate(columns), ptr),
        shape=(rows.size, int(starts[-1])),
    )
    return rows, matrix


def solution_model(
    program: Program, low: IntArray, high: IntArray, components: Sequence[int]
) -> IntegerModel:
    """Return the model whose solutions are those of some components.

    Parameters
    ----------
    program : Program
        Rows and variables.
    low, high : ndarray of int64
        Bounds of all variables.
    components : sequence of int
        Which components; together they are one model.

    Returns
    -------
    IntegerModel
        Variables as :func:`variables` orders them.
    """
    at = variables(program, components)
    rows, matrix = _component_rows(program, components)
    p = program.arrays
    return IntegerModel(low[at], high[at], matrix, p.row_low[rows], p.row_high[rows])


@dataclass(frozen=True)
class DistanceModel:
    """A model whose largest value is the largest distance from a solution.

    Attributes
    ----------
    model : IntegerModel
        Gains, losses, and a binary for every cell that could do either.
    objective : ndarray of int64
        Gains plus losses.
    gains : int
        How many variables, the first ones, are gains.
    """

    model: IntegerModel
    objective: IntArray
    gains: int

    def another(self) -> IntegerModel:
        """Return the model of the solutions that differ: none, when the solution is unique."""
        differs = sp.csr_array(self.objective[None, :])
        return IntegerModel(
            self.model.low,
            self.model.high,
            sp.csr_array(sp.vstack([self.model.rows, differs], format="csr")),
            np.append(self.model.row_low, 1),
            np.append(self.model.row_high, int(self.objective @ self.model.high)),
        )


def distance_model(
    program: Program, low: IntArray, high: IntArray, star: IntArray, component: int
) -> DistanceModel:
    """Return the model of the largest distance from ``star`` within a component.

    A cell is ``x = star + gain - loss``.  Where the bounds let it only gain or only lose, that
    is all; where they let it do either, a binary says which: ``gain <= (high - star) b`` and
    ``loss <= (star - low) (1 - b)``.  The distance is the sum of gains and losses.

    Parameters
    ----------
    program : Program
        Rows and variables.
    low, high : ndarray of int64
        Bounds of all variables.
    star : ndarray of int64
        A solution, of all variables.
    component : int
        Which component.

    Returns
    -------
    DistanceModel
        Over gains, losses and binaries, in this order.
    """
    at = variables(program, [component])
    rows, matrix = _component_rows(program, [component])
    gain, loss = high[at] - star[at], star[at] - low[at]
    up, down = np.flatnonzero(gain > 0), np.flatnonzero(loss > 0)
    both = np.flatnonzero((gain > 0) & (loss > 0))
    n, n_up, n_down = both.size, up.size, down.size
    used = sp.csr_array(matrix @ star[at][:, None]).toarray().ravel()
    columns = matrix.tocsc()
    flow = sp.hstack([columns[:, up], -columns[:, down], sp.csc_array((rows.size, n))])
    switch, each = n_up + n_down + np.arange(n), np.arange(n)
    ones = np.ones(n, np.int64)

    def linked(first: IntArray, weight: IntArray) -> sp.csr_array:
        data = np.concatenate([ones, weight])
        place = (np.tile(each, 2), np.concatenate([first, switch]))
        return sp.csr_array((data, place), shape=(n, n_up + n_down + n))

    p = program.arrays
    model = IntegerModel(
        low=np.zeros(n_up + n_down + n, np.int64),
        high=np.concatenate([gain[up], loss[down], ones]),
        rows=sp.csr_array(
            sp.vstack(
                [
                    flow,
                    linked(np.searchsorted(up, both), -gain[both]),
                    linked(n_up + np.searchsorted(down, both), loss[both]),
                ],
                format="csr",
            ).astype(np.int64)
        ),
        row_low=np.concatenate([p.row_low[rows] - used, -gain[both], np.zeros(n, np.int64)]),
        row_high=np.concatenate([p.row_high[rows] - used, np.zeros(n, np.int64), loss[both]]),
    )
    objective = np.concatenate([np.ones(n_up + n_down, np.int64), np.zeros(n, np.int64)])
    return DistanceModel(model, objective, n_up)

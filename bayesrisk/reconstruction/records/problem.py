"""Published tables as one integer problem: rows with their counts, and bounds of the cells."""

import itertools
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import IntArray, TextArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.kernels import (
    HIDDEN,
    LOOSE,
    TOPLESS,
    UNBOUNDED,
    ProgramArrays,
    SearchWork,
)
from bayesrisk.reconstruction.records.system import (
    CellSpace,
    CellSystem,
    Coupling,
    cell_systems,
    columns_of,
)
from bayesrisk.tables import Table
from bayesrisk.tables.published import PublishedTables, SeveralTables, assumed_true, one_release


@dataclass(frozen=True)
class CountRanges:
    """Smallest and largest counts, groups by rows (or published cells), with few stored.

    A count lies from ``low`` to ``high + zero``, ends included: ``zero`` is the largest count of
    each row where nothing is stored, which for true counts is 0.  Both matrices have the same
    entries, in order of rows; counts without an upper end add up to ``UNBOUNDED``.
    """

    low: sp.csr_array
    high: sp.csr_array
    zero: IntArray

    @classmethod
    def of_counts(cls, counts: sp.csr_array) -> "CountRanges":
        """Return the ranges of true counts, which are points, and all counts where ``HIDDEN``."""
        zero, hidden = np.zeros(counts.shape[1], np.int64), counts.data == HIDDEN
        if not hidden.any():
            return cls(counts, counts, zero)
        places = counts.indices, counts.indptr
        low = sp.csr_array((np.where(hidden, 0, counts.data), *places), shape=counts.shape)
        high = np.where(hidden, UNBOUNDED, counts.data)
        return cls(low, sp.csr_array((high, *places), shape=counts.shape), zero)

    @classmethod
    def of_support(cls, low: IntArray, high: IntArray, zero: IntArray) -> "CountRanges":
        """Return the ranges between two whole arrays of counts."""
        kept = (low != 0) | (high != zero)
        ptr, column = np.append(0, np.cumsum(kept.sum(axis=1))), np.nonzero(kept)[1]
        low, high = low[kept], (high - zero)[kept]
        made = [sp.csr_array((part, column, ptr), shape=kept.shape) for part in (low, high)]
        return cls(made[0], made[1], zero)

    @property
    def true(self) -> bool:
        """Whether every range is a point."""
        return self.low is self.high

    def at(self, groups: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return both ends of some counts."""
        high = entries(self.high, groups, rows)
        return high if self.true else entries(self.low, groups, rows), high + self.zero[rows]

    def whole(self, groups: slice | Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return both ends of all counts of some groups."""
        return self.low[groups].toarray(), self.high[groups].toarray() + self.zero

    def listed(self, groups: slice) -> kernels.BlockCounts:
        """Return the rows of some groups whose counts are not 0."""
        held = CountRanges(self.low[groups], self.high[groups], self.zero)
        if self.zero.any():
            held = CountRanges.of_support(*self.whole(groups), np.zeros_like(self.zero))
        high = held.high
        ptr, row = high.indptr.astype(np.int64), high.indices.astype(np.int64)
        return kernels.BlockCounts(ptr, row, held.low.data, high.data)


@dataclass(frozen=True)
class RowSource:
    """Rows that every group of cells (a block, a tract) has, and their counts, groups by rows.

    The rows of cell j are ``cell_row[cell_ptr[j]:cell_ptr[j + 1]]``, with coefficients; rows of
    one ``family`` share no cell; ``group`` is the group of every block.  The cells add up to a
    count within ``ranges`` where ``equal``, else to at most its largest; where ``own`` a group is
    one block's, and cells of other blocks do not enter its rows.  Rows that say nothing are left
    out of programs, but where they are ``asked`` for.
    """

    cell_ptr: IntArray
    cell_row: IntArray
    cell_coef: IntArray
    family: IntArray
    ranges: CountRanges
    group: IntArray
    equal: bool = True
    own: bool = False
    asked: bool = False


@dataclass(frozen=True)
class LargerLevel:
    """The tables of a larger level, which couple the blocks.

    ``group`` is the place of every block, by position among ``geoids``; ``published`` are the
    counts of the places, ``HIDDEN`` where suppressed, ``ranges`` the counts that they allow;
    ``coupling`` are rows of a place over the cells of its blocks.
    """

    level: str
    geoids: TextArray
    group: IntArray
    published: sp.csr_array
    ranges: CountRanges
    coupling: Coupling


@dataclass(frozen=True)
class PublishedRows:
    """Rows that published tables give of the histograms of blocks: made once, never changed.

    ``level`` is the finest one, called block here, ``system`` the rows of a block in terms of its
    published cells; ``published`` are the counts of the blocks, ``HIDDEN`` where suppressed, and
    ``ranges`` the counts that they allow; ``larger`` are tables of larger places, the largest
    first.  ``rows`` are those of the blocks with their counts, then those of each larger level.
    ``taken_as_true`` says whether some counts are of a release that does not say that they are
    true, ``coarsened`` whether some are read as ranges.
    """

    level: str
    geoids: TextArray
    system: CellSystem
    published: sp.csr_array
    ranges: CountRanges
    larger: tuple[LargerLevel, ...]
    rows: tuple[RowSource, ...]
    taken_as_true: bool
    coarsened: bool

    @property
    def space(self) -> CellSpace:
        """The cells of a block."""
        return self.system.queries.space


def published_rows(
    tables: SeveralTables,
    *,
    scope: str,
    taken_as_true: bool = False,
    known_rule: bool = True,
    others: Sequence[Table] = (),
) -> PublishedRows:
    """Return the rows of tables of the finest level, and of larger ones up to a scope.

    A count that was rounded, or published as a range, stands for all counts that it allows, and a
    withheld one for those of the rule where ``known_rule``.  Cells are told apart as finely as
    ``others`` do, too.
    """
    tables = one_release(tables)
    workload = tables.workload
    check.choice(scope, "scope", workload.levels)
    check.flag(known_rule, "known_rule")
    geography = workload.schema.geography
    *coarser, level = workload.levels
    above = [n for n in coarser if geography.levels.index(scope) <= geography.levels.index(n)]
    keys = [key for key in workload.tables if key[0] in (level, *above)]
    assumed = assumed_true(tables.laws, keys, taken_as_true=taken_as_true, ranges=True)
    geoids = tables.geoids[level]
    ancestors = [geography.ancestors(geoids, name) for name in above]
    published = [_stacked(tables, name) for name in (level, *above)]
    coarse = [not assumed and _coarsened(tables, name, known_rule) for name in (level, *above)]
    ranges = [
        _supports(tables, name, known_rule) if wide else CountRanges.of_counts(counts)
        for name, wide, counts in zip((level, *above), coarse, published, strict=True)
    ]
    # Differences of published cells are rows where all counts are true.
    raw = not ranges[0].true, any(not part.true for part in ranges[1:])
    system, couplings = cell_systems(workload, (level, *above), raw, tuple(others))
    larger = []
    for name, own, counts, part, coupling in zip(
        above, ancestors, published[1:], ranges[1:], couplings, strict=True
    ):
        places = tables.geoids[name]
        group = np.minimum(np.searchsorted(places, own), places.size - 1)
        missing = places[group] != own
        if missing.any():
            first = str(own[int(missing.argmax())])
            raise ArgumentError(f"tables must have every {name}, got none of {shown(first)}")
        larger.append(LargerLevel(name, places, group.astype(np.int64), counts, part, coupling))
    rows = RowSource(
        system.cell_ptr, system.cell_row, system.cell_coef, system.family,
        _system_ranges(system, ranges[0]), np.arange(geoids.size),
    )  # fmt: skip
    return PublishedRows(
        level, geoids, system, published[0], ranges[0], tuple(larger),
        (rows, *map(_coupling_rows, larger)), assumed, any(coarse),
    )  # fmt: skip


def _system_ranges(system: CellSystem, ranges: CountRanges) -> CountRanges:
    """Return the ranges of the rows of a system, its row without a count included."""
    if ranges.true:
        return CountRanges.of_counts(system.rows_of(ranges.low))
    if not system.has_free_row:
        return ranges
    shape = ranges.low.shape[0], ranges.low.shape[1] + 1
    low, high = (
        sp.csr_array((m.data, m.indices, m.indptr), shape=shape) for m in (ranges.low, ranges.high)
    )
    return CountRanges(low, high, np.append(ranges.zero, UNBOUNDED))


def _coupling_rows(larger: LargerLevel) -> RowSource:
    """Return the rows of a larger level with the counts of its places."""
    coupling, ranges = larger.coupling, larger.ranges
    if ranges.true:
        counts = sp.csr_array(larger.published @ coupling.derivation.T)
        counts.sort_indices()
        ranges = CountRanges.of_counts(counts)
    return RowSource(*columns_of(coupling.rows), coupling.family, ranges, larger.group)


def _stacked(tables: PublishedTables, level: str) -> sp.csr_array:
    """Return the counts of all tables of a level side by side, ``HIDDEN`` where suppressed."""
    parts = []
    for key in [key for key in tables.workload.tables if key[0] == level]:
        part = tables.counts[key]
        if key in tables.suppressed:
            part = sp.csr_array(part + HIDDEN * tables.suppressed[key].astype(np.int64))
        parts.append(part)
    return sp.csr_array(sp.hstack(parts, format="csr"), dtype=np.int64)


def _coarsened(tables: PublishedTables, level: str, known_rule: bool) -> bool:
    """Return whether some table of a level has counts that stand for ranges by its law."""

    def wide(key: tuple[str, str]) -> bool:
        law = tables.laws[key]
        ruled = known_rule and not law.plain and bool(tables.hidden(*key).nnz)
        return not law.exact or ruled

    return any(wide(key) for key in tables.laws if key[0] == level)


#: Places whose counts are looked at together where a published zero is a range.
_WHOLE = 256


def _supports(tables: PublishedTables, level: str, known_rule: bool) -> CountRanges:
    """Return the counts that the published ones of a level allow, tables side by side."""
    names, size = list(tables.workload.at(level)), tables.geoids[level].size
    zero = [
        np.full(
            tables.counts[level, name].shape[1],
            tables.laws[level, name].support(0)[1] if (level, name) in tables.laws else 0,
        )
        for name in names
    ]
    highest, parts = np.concatenate(zero).astype(np.int64), []
    for first in range(0, size, _WHOLE):
        rows = np.arange(first, min(first + _WHOLE, size))
        ends = [tables.support(level, name, rows, known_rule=known_rule) for name in names]
        low, high = (np.concatenate(side, axis=1) for side in zip(*ends, strict=True))
        parts.append(CountRanges.of_support(low, high, highest))
    lows, highs = [part.low for part in parts], [part.high for part in parts]
    sides = [sp.csr_array(sp.vstack(side, format="csr")) for side in (lows, highs)]
    return CountRanges(sides[0], sides[1], highest)


# -----------------------------------------------------------------------------
# Bounds of the cells of every block from its own rows, by interval propagation.


@dataclass(frozen=True)
class BlockBounds:
    """Every cell that can hold somebody with its bounds, and a status of each block.

    The status is ``FIXED``, ``OPEN``, ``INFEASIBLE``, ``LOOSE`` or ``TOPLESS`` of the kernels;
    ``culprit`` is the row that contradicts, or -1.
    """

    status: IntArray
    culprit: IntArray
    block: IntArray
    cell: IntArray
    low: IntArray
    high: IntArray


def block_bounds(problem: PublishedRows) -> BlockBounds:
    """Return bounds of the cells of every block: the fixed point of interval propagation."""
    size, bounds = problem.geoids.size, row_bounds(problem, problem.rows[0])
    if not problem.larger or not np.any(np.isin(bounds.status, (LOOSE, TOPLESS))):
        return bounds
    # Cells that a block's own tables leave unbounded are bounded by those of its larger places.
    places = np.stack([larger.group for larger in problem.larger])
    change = np.flatnonzero(np.any(places[:, 1:] != places[:, :-1], axis=0)) + 1
    edges = [0, *change.tolist(), size]
    return _joined(
        [
            _bounds_of(problem, first, last, *ceiling(problem, first))
            for first, last in itertools.pairwise(edges)
        ]
    )


def row_bounds(problem: PublishedRows, rows: RowSource) -> BlockBounds:
    """Return the bounds of blocks, each by itself, with other counts of the same rows."""
    size, none = rows.ranges.low.shape[0], np.zeros(problem.space.size, np.int64)
    alone = replace(problem, rows=(rows,), larger=())
    return _bounds_of(alone, 0, size, np.full_like(none, UNBOUNDED), none)


def _joined(parts: Sequence[BlockBounds]) -> BlockBounds:
    """Return the bounds of runs of blocks as those of all of them."""
    return BlockBounds(*(np.concatenate(part) for part in zip(*map(astuple, parts), strict=True)))


def _bounds_of(
    problem: PublishedRows, first: int, last: int, ceiling: IntArray, need: IntArray
) -> BlockBounds:
    """Return the bounds of the blocks from ``first`` to ``last``."""
    s, ranges = problem.system, problem.rows[0].ranges
    # Where a published zero is a range, all rows of a block count: few blocks are held so.
    if ranges.zero.any() and last - first > _WHOLE:
        edges = [*range(first, last, _WHOLE), last]
        return _joined(
            [_bounds_of(problem, a, b, ceiling, need) for a, b in itertools.pairwise(edges)]
        )
    size = last - first
    outcome = kernels.BlockOutcome(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size + 1, np.int64)
    )
    system = kernels.BlockRows(
        s.cell_ptr, s.cell_row, s.cell_coef, s.cover_ptr, s.cover_cell, ceiling, need
    )
    cell, low, high = kernels.solve_blocks(system, ranges.listed(slice(first, last)), outcome)
    block = np.repeat(np.arange(first, last), np.diff(outcome.ptr))
    return BlockBounds(outcome.status, outcome.culprit, block, cell, low, high)


def ceiling(problem: PublishedRows, block: int) -> tuple[IntArray, IntArray]:
    """Return the largest numbers of all cells by the larger places of a block, and those asked for.

    The first are ``UNBOUNDED`` where no row of them has an upper end; the second are of all rows.
    """
    most = np.full(problem.space.size, UNBOUNDED, np.int64)
    need = np.zeros(problem.space.size, np.int64)
    for larger, source in zip(problem.larger, problem.rows[1:], strict=True):
        low, high = (side.ravel() for side in source.ranges.whole([int(larger.group[block])]))
        rows = larger.coupling.rows
        row = np.repeat(np.arange(low.size), np.diff(rows.indptr))
        closed = high[row] < UNBOUNDED
        bound: IntArray = np.maximum(high[row], 0) // rows.data
        np.minimum.at(most, rows.indices[closed], bound[closed])
        np.maximum.at(need, rows.indices, -(-low[row] // rows.data))
    return most, need


# -----------------------------------------------------------------------------
# Programs: cells whose bounds are apart, with the rows that bind them, in components.


#: Changes of bounds, beyond two for each variable, that a search can take back; one that needs
#: more stops, as at its limit of nodes.  24 bytes each.
MOST_CHANGES = 5_000_000


@dataclass(frozen=True)
class Program:
    """Free cells with their bounds, and the rows that bind them.

    ``entry``, ``block`` and ``cell`` say which of the given cells each variable is; ``source``,
    ``group`` and ``row`` where each row comes from.
    """

    arrays: ProgramArrays
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

    def work(self) -> SearchWork:
        """Return fresh working arrays; the sums of rows are filled by propagation."""
        n_rows, n_vars = self.arrays.row_low.size, self.low.size
        families = int(self.arrays.family.max()) + 1 if n_rows else 1
        depth = int((self.high - self.low).sum()) + n_vars + 1
        return SearchWork(
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


def entries(matrix: sp.csr_array, rows: IntArray, columns: IntArray) -> IntArray:
    """Return the entries of a sparse matrix with sorted indices at pairs of row and column."""
    width = matrix.shape[1]
    held = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * width + matrix.indices
    wanted = rows * width + columns
    if not held.size:
        return np.zeros(wanted.size, np.int64)
    at = np.minimum(np.searchsorted(held, wanted), held.size - 1)
    return np.where(held[at] == wanted, matrix.data[at], 0).astype(np.int64)


def _expand(ptr: IntArray, at: IntArray) -> tuple[IntArray, IntArray]:
    """Return positions of the entries of several compressed rows, and whose each one is."""
    sizes = ptr[at + 1] - ptr[at]
    owner = np.repeat(np.arange(at.size), sizes)
    start = np.repeat(ptr[at] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return start + np.arange(owner.size), owner


def _rows(
    source: RowSource, block: IntArray, cell: IntArray, low: IntArray, free: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return keys and both residual ends of rows with free cells, and entries (row, var, coef)."""
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
    least, most = source.ranges.at(group, keys % n_rows)
    # What the settled cells of these rows hold is taken off.
    at = np.searchsorted(keys, key[~open_entry])
    at = np.minimum(at, max(keys.size - 1, 0))
    held = coef[~open_entry] * low[owner[~open_entry]]
    inside = keys[at] == key[~open_entry] if keys.size else np.zeros(0, bool)
    settled = np.zeros(keys.size, np.int64)
    np.add.at(settled, at[inside], held[inside])
    # What a row asks for may be there already; one without an upper end then says nothing.
    endless = most == UNBOUNDED
    published = ~endless | (least > settled) | source.asked
    keep = published[row]
    new = np.cumsum(published) - 1
    var = (np.cumsum(free) - 1)[owner[open_entry]]
    return (
        keys[published],
        (least - settled)[published],
        np.where(endless, UNBOUNDED, most - settled)[published],
        new[row[keep]],
        var[keep],
        coef[open_entry][keep],
    )


def build_program(
    sources: Sequence[RowSource], block: IntArray, cell: IntArray, low: IntArray, high: IntArray
) -> Program:
    """Return the program of the cells (of ``block``, ``cell``) whose bounds are apart.

    Counts of settled cells, ``low == high``, are taken off the counts of their rows.  Variables and
    rows are sorted by component.
    """
    free = low < high
    parts = [_rows(source, block, cell, low, free) for source in sources]
    sizes = [part[0].size for part in parts]
    offset = np.concatenate([[0], np.cumsum(sizes)])
    entry_row = np.concatenate([p[3] + offset[at] for at, p in enumerate(parts)])
    keys, least, most, _, entry_var, coef = (np.concatenate(p) for p in zip(*parts, strict=True))
    source = np.repeat(np.arange(len(sources)), sizes)
    # A key is the group, times the rows of its source, plus the row.
    group, row_id = np.divmod(keys, np.array([s.family.size for s in sources])[source])
    first = np.concatenate([[0], np.cumsum([s.family.size for s in sources])[:-1]])[source]
    shift = np.concatenate([[0], np.cumsum([int(s.family.max()) + 1 for s in sources])[:-1]])
    family = np.concatenate([s.family for s in sources])[first + row_id] + shift[source]
    equal = np.array([s.equal for s in sources])[source]
    n_vars, n_rows = int(free.sum()), int(offset[-1])
    # No row has a larger end than its cells: certificates stay within whole numbers.
    room = np.zeros(n_rows, np.int64)
    np.add.at(room, entry_row, coef * high[free][entry_var])
    most = np.where(most > least, np.clip(most, least, np.maximum(room, least)), most)
    label = _components(entry_row, entry_var, n_rows, n_vars)
    var_order = np.argsort(label[:n_vars], kind="stable")
    row_order = np.argsort(label[n_vars:], kind="stable")
    n_components = int(label.max()) + 1 if label.size else 0
    var_rank, row_rank = np.empty(n_vars, np.int64), np.empty(n_rows, np.int64)
    var_rank[var_order], row_rank[row_order] = np.arange(n_vars), np.arange(n_rows)
    matrix = sp.csr_array(
        (coef, (row_rank[entry_row], var_rank[entry_var])), shape=(n_rows, n_vars)
    )
    ends = np.arange(n_components + 1)
    arrays = ProgramArrays(
        *columns_of(matrix),
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        matrix.data.astype(np.int64),
        row_low=np.where(equal, least, 0)[row_order],
        row_high=most[row_order],
        family=family[row_order],
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


def open_program(
    problem: PublishedRows,
    bounds: BlockBounds,
    good: NDArray[np.bool_],
    *,
    bounds_only: bool = False,
) -> tuple[Program, dict[int, int], IntArray, IntArray]:
    """Return the program that all rows leave open, contradictions, and the tightened bounds.

    Only blocks that are ``good`` are looked at; with ``bounds_only`` coupling rows hold for every
    block as upper bounds.  Contradictions are the blocks of components without a solution, each
    with the row of the program that contradicts; the bounds are those of the cells of ``bounds``.
    """
    first, *larger = problem.rows
    if bounds_only:
        larger = [replace(rows, equal=False, own=True) for rows in larger]
    low, high = bounds.low.copy(), bounds.high.copy()
    inside = np.flatnonzero(good[bounds.block])
    block, cell = bounds.block[inside], bounds.cell[inside]
    wrong: dict[int, int] = {}
    while True:  # ends: each round settles a cell that the last one left open
        program = build_program([first, *larger], block, cell, low[inside], high[inside])
        work = program.work()
        culprit = np.full(program.n_components, -1, np.int64)
        kernels.propagate_components(program.arrays, work, culprit)
        for k in np.flatnonzero(culprit >= 0):
            wrong.update((int(b), int(culprit[k])) for b in program.blocks_of(int(k)))
        low[inside[program.entry]], high[inside[program.entry]] = work.low, work.high
        if wrong or not np.any((work.low == work.high) & (program.low < program.high)):
            return program, wrong, low, high

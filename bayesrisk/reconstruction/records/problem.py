"""The problem that published tables pose: rows of cells, their counts, and the cells' bounds."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray, TextArray
from bayesrisk.constraints.model import Columns, by_columns, expand, largest_alone
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.reconstruction.records import kernels
from bayesrisk.reconstruction.records.kernels import HIDDEN
from bayesrisk.reconstruction.records.system import CellSystem, Coupling, cell_systems
from bayesrisk.tables import Table
from bayesrisk.tables.cells import CellSpace, Queries, positions
from bayesrisk.tables.likelihoods import UNBOUNDED
from bayesrisk.tables.published import PublishedTables, SeveralTables, read_tables
from bayesrisk.tables.workload import Workload


def check_records(count: IntArray, subject: str, most: int = 2**28) -> int:
    """Return the total number of records; raise if it exceeds ``most``."""
    total = int(count.sum(dtype=np.float64))  # no sum of many large ones wraps around
    if total > most:
        raise ArgumentError(
            "tables",
            f"must count at most {most} records for {subject}, with a row for each",
            shown=f"{total}; count_bounds, and histogram() and blocks() of a reconstruction, take "
            "more",
        )
    return total


@dataclass(frozen=True)
class CountRanges:
    """Smallest and largest counts (groups, rows), stored sparsely.

    A count lies from ``low`` to ``high + zero``, ends included: ``zero`` is the largest count of
    each row where nothing is stored, which for true counts is 0.  Both matrices have the same
    entries, in order of rows; counts without an upper end add up to ``UNBOUNDED``.
    """

    low: sp.csr_array
    high: sp.csr_array
    zero: IntArray

    @classmethod
    def from_counts(cls, counts: sp.csr_array) -> "CountRanges":
        """Return the ranges of true counts, which are points, or unbounded where ``HIDDEN``."""
        zero, hidden = np.zeros(counts.shape[1], np.int64), counts.data == HIDDEN
        if not hidden.any():
            return cls(counts, counts, zero)
        places = counts.indices, counts.indptr
        low = sp.csr_array((np.where(hidden, 0, counts.data), *places), shape=counts.shape)
        high = np.where(hidden, UNBOUNDED, counts.data)
        return cls(low, sp.csr_array((high, *places), shape=counts.shape), zero)

    @classmethod
    def from_support(cls, low: IntArray, high: IntArray, zero: IntArray) -> "CountRanges":
        """Return the ranges between two dense arrays of counts."""
        stored = (low != 0) | (high != zero)
        ptr, column = np.append(0, np.cumsum(stored.sum(axis=1))), np.nonzero(stored)[1]
        low, high = low[stored], (high - zero)[stored]
        matrices = [sp.csr_array((part, column, ptr), shape=stored.shape) for part in (low, high)]
        return cls(matrices[0], matrices[1], zero)

    @property
    def true(self) -> bool:
        """Whether every range is a point."""
        return self.low is self.high

    def ends(self, groups: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return both ends of some counts."""
        high = entries(self.high, groups, rows)
        return high if self.true else entries(self.low, groups, rows), high + self.zero[rows]

    def whole(self, groups: slice | Sequence[int]) -> tuple[IntArray, IntArray]:
        """Return both ends of all counts of some groups."""
        high = self.high[groups].toarray()
        return high if self.true else self.low[groups].toarray(), high + self.zero

    def differences(
        self, counts: sp.csr_array
    ) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """Return the first count of each group that is out of range: group, row, ends and count."""
        excess, deficit = (sp.csr_array(counts - part).tocoo() for part in (self.high, self.low))
        above, below = excess.data > self.zero[excess.coords[1]], deficit.data < 0
        groups, rows = (
            np.concatenate([excess.coords[k][above], deficit.coords[k][below]]) for k in range(2)
        )
        counts.sort_indices()
        order = np.lexsort((rows, groups))
        group, first = np.unique(groups[order], return_index=True)
        group, row = group.astype(np.int64), rows[order][first].astype(np.int64)
        return group, row, *self.ends(group, row), entries(counts, group, row)

    def part(self, groups: IntArray | slice) -> "CountRanges":
        """Return the ranges of some groups."""
        return CountRanges(self.low[groups], self.high[groups], self.zero)

    def listed(self, groups: slice) -> kernels.BlockCounts:
        """Return the non-zero rows of some groups."""
        ranges = self.part(groups)
        if self.zero.any():
            ranges = CountRanges.from_support(*self.whole(groups), np.zeros_like(self.zero))
        high = ranges.high
        ptr, row = high.indptr.astype(np.int64), high.indices.astype(np.int64)
        return kernels.BlockCounts(ptr, row, ranges.low.data, high.data)


@dataclass(frozen=True)
class RowSource:
    """Rows that every group of cells (a block, a tract) has, and their ranges (groups, rows).

    Rows of one ``family`` share no cell; ``group`` is the group of every block. If ``equal``, the
    cells add up to a count within ``ranges``, else to at most its largest. If ``single_block``, a
    group is one block's, and cells of other blocks are not in its rows. Uninformative rows are left
    out of programs, unless they are ``required``.
    """

    columns: Columns
    family: IntArray
    ranges: CountRanges
    group: IntArray
    equal: bool = True
    single_block: bool = False
    required: bool = False

    @classmethod
    def from_matrix(
        cls, rows: sp.csr_array, ranges: CountRanges, group: IntArray, *, required: bool = False
    ) -> "RowSource":
        """Return rows over the cells of a block, each in a family of its own."""
        return cls(by_columns(rows), np.arange(rows.shape[0]), ranges, group, required=required)


@dataclass(frozen=True)
class StatedCounts:
    """One level's queries and published counts, and the place that contains each block.

    ``group`` is that place by position among ``geoids``. ``published`` has the counts of the
    places, ``HIDDEN`` if suppressed, or is None; ``ranges`` are the allowed counts. ``rows`` are
    the queries over the cells of a problem; None if these are too coarse for them and the counts
    are true.
    """

    level: str
    geoids: TextArray
    group: IntArray
    queries: Queries
    published: sp.csr_array | None
    ranges: CountRanges
    rows: sp.csr_array | None


@dataclass(frozen=True)
class LargerLevel(StatedCounts):
    """The tables of a larger level, and a place's rows over the cells of its blocks."""

    published: sp.csr_array
    coupling: Coupling


@dataclass(frozen=True)
class BlockBounds:
    """Bounds of every cell that can hold a record, and each block's status.

    The status is one of the kernels, from ``FIXED`` to ``UNLIMITED``; ``culprit`` is the row that
    contradicts, or -1.
    """

    status: IntArray
    culprit: IntArray
    block: IntArray
    cell: IntArray
    low: IntArray
    high: IntArray

    def part(self, blocks: IntArray) -> "BlockBounds":
        """Return the bounds of some blocks, in the order of the blocks."""
        ptr = np.searchsorted(self.block, np.arange(self.status.size + 1)).astype(np.int64)
        (chosen, block), cells = expand(ptr, blocks), (self.cell, self.low, self.high)
        causes = self.status[blocks], self.culprit[blocks]
        return BlockBounds(*causes, block, *(part[chosen] for part in cells))


#: Levels, counts taken as true, the rule of withheld ones known, and further queries.
_Options: TypeAlias = tuple[tuple[str, ...], bool, bool, tuple[Table, ...]]


@dataclass(frozen=True)
class Problem:
    """The blocks' histograms as constrained by published tables; never changed.

    ``level`` is the finest one, called block here, and ``system`` the rows of a block in terms of
    its published cells. ``published`` are the counts of the blocks, ``HIDDEN`` if suppressed, and
    ``ranges`` the allowed counts. ``larger`` are tables of larger places, the largest first.
    ``rows`` are those of the blocks with their counts, then those of each larger level.
    ``taken_as_true`` says whether some counts are of a release that does not say that they are
    true, and ``coarsened`` whether some are read as ranges. ``tables`` and the options in
    ``question`` define the problem.
    """

    tables: PublishedTables
    question: _Options
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

    @property
    def stated(self) -> tuple[StatedCounts, ...]:
        """The published counts of every level, the blocks' first."""
        blocks, queries = np.arange(self.geoids.size), self.system.queries
        terms = self.level, self.geoids, blocks, queries, self.published, self.ranges
        return StatedCounts(*terms, queries.matrix), *self.larger

    @property
    def scope(self) -> str:
        """The largest level whose tables are read."""
        return self.larger[0].level if self.larger else self.level

    @cached_property
    def bounds(self) -> BlockBounds:
        """Bounds of the cells of every block: the fixed point of interval propagation."""
        size, zeros = self.geoids.size, np.zeros(self.space.size, np.int64)
        block_bounds = _bounds(self, 0, size, np.full_like(zeros, UNBOUNDED), zeros)
        endless = np.isin(block_bounds.status, (kernels.UNCOUNTED, kernels.UNLIMITED))
        if not self.larger or not endless.any():
            return block_bounds
        # Cells that a block's own tables leave unbounded are bounded by those of its larger places.
        places = np.stack([larger.group for larger in self.larger])
        change = np.flatnonzero(np.any(places[:, 1:] != places[:, :-1], axis=0)) + 1
        edges = itertools.pairwise([0, *change.tolist(), size])
        return _joined([_bounds(self, a, b, *self.ceiling(a)) for a, b in edges])

    def ceiling(self, block: int) -> tuple[IntArray, IntArray]:
        """Return the cells' maxima by a block's larger places, and the most their rows can need.

        The first are ``UNBOUNDED`` where no row of them has an upper end; the second are of all
        rows.
        """
        most = np.full(self.space.size, UNBOUNDED, np.int64)
        need = np.zeros(self.space.size, np.int64)
        for larger, source in zip(self.larger, self.rows[1:], strict=True):
            low, high = (side.ravel() for side in source.ranges.whole([int(larger.group[block])]))
            top, least = largest_alone(source.columns, low, high)
            np.minimum(most, top, out=most)
            np.maximum(need, least, out=need)
        return most, need

    def histograms(self, block: IntArray, cell: IntArray, count: IntArray) -> sp.csr_array:
        """Return numbers of records as a matrix, blocks by cells."""
        shape = self.geoids.size, self.space.size
        matrix = sp.csr_array((count, (block, cell)), shape=shape)
        matrix.sum_duplicates()
        return matrix

    def part(self, blocks: IntArray) -> "Problem":
        """Return the problem of some blocks, without larger places; known bounds are kept."""
        rows = replace(
            self.rows[0], ranges=self.rows[0].ranges.part(blocks), group=np.arange(blocks.size)
        )
        problem = replace(
            self, geoids=self.geoids[blocks], published=self.published[blocks],
            ranges=self.ranges.part(blocks), rows=(rows,), larger=(),
        )  # fmt: skip
        if "bounds" in vars(self) and not self.larger:
            vars(problem)["bounds"] = self.bounds.part(blocks)
        return problem

    def bound_together(self, blocks: Iterable[int]) -> dict[int, int]:
        """Return all blocks that fail if the given ones do, and for each the block that causes it.

        Rows of a larger place make no sense without one of its blocks.
        """
        because: dict[int, int] = {}
        chosen = {b: b for b in sorted(set(blocks))}
        if self.larger and chosen:
            place = self.larger[0].group  # the largest place first
            for b in chosen:
                because.setdefault(int(place[b]), b)
            linked = np.flatnonzero(np.isin(place, list(because)))
            return {int(b): because[int(place[b])] for b in linked} | chosen
        return chosen


def _joined(parts: Sequence[BlockBounds]) -> BlockBounds:
    fields = zip(*(vars(part).values() for part in parts), strict=True)
    return BlockBounds(*(np.concatenate(field) for field in fields))


def _bounds(
    problem: Problem, first: int, last: int, ceiling: IntArray, need: IntArray
) -> BlockBounds:
    """Return the bounds of the blocks from ``first`` to ``last`` by their own rows."""
    s, ranges = problem.system, problem.rows[0].ranges
    # Where a published zero is a range, all rows of a block count: few blocks are held so.
    if ranges.zero.any() and last - first > WHOLE:
        edges = itertools.pairwise([*range(first, last, WHOLE), last])
        return _joined([_bounds(problem, a, b, ceiling, need) for a, b in edges])
    size = last - first
    outcome = kernels.BlockOutcome(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size + 1, np.int64)
    )
    system = kernels.BlockRows(s.columns, s.cover_ptr, s.cover_cell, ceiling, need)
    cell, low, high = kernels.solve_blocks(system, ranges.listed(slice(first, last)), outcome)
    block = np.repeat(np.arange(first, last), np.diff(outcome.ptr))
    return BlockBounds(outcome.status, outcome.culprit, block, cell, low, high)


def published_problem(
    tables: "SeveralTables | Problem",
    *,
    scope: str | None,
    kinds: Sequence[str] = (),
    taken_as_true: bool | None = False,
    known_rule: bool = True,
    queries: Workload | None = None,
) -> Problem:
    """Return the problem of the finest level's tables, and of larger levels up to ``scope``.

    A count that was rounded, or published as a range, stands for all counts that it allows. With
    ``known_rule``, a withheld count stands for those of the rule. Cells also separate the groups of
    ``queries``. A scope may name one of some ``kinds``; by default it is the finest level. A given
    problem is returned, else one is made from the tables.
    """
    posed, source = (tables, tables.tables) if isinstance(tables, Problem) else (None, tables)
    tables, levels, assumed = read_tables(source, scope, taken_as_true=taken_as_true, kinds=kinds)
    check.flag(known_rule, "known_rule")
    workload, extra = tables.workload, () if queries is None else tuple(queries.tables.values())
    if queries is not None and queries.schema != workload.schema:
        raise ArgumentError(
            f"queries must be of schema {workload.schema.name!r}, got {quote(queries.schema.name)}"
        )
    question = levels, assumed, known_rule, extra
    if posed is not None and posed.question == question:
        return posed
    coarse = [not assumed and _coarsened(tables, name, known_rule) for name in levels]
    stated = [
        stated_counts(tables, name, coarsened=wide, known_rule=known_rule)
        for name, wide in zip(levels, coarse, strict=True)
    ]
    published, ranges = zip(*stated, strict=True)
    # Differences of published cells are rows where all counts are true.
    raw = not ranges[0].true, any(not part.true for part in ranges[1:])
    system, couplings = cell_systems(workload, levels, raw, extra)
    larger = tuple(
        LargerLevel(
            name,
            tables.geoids[name],
            tables.parents(name),
            coupling.queries,
            *counts,
            coupling.queries.matrix if coupling.detail is None else None,
            coupling,
        )
        for name, counts, coupling in zip(levels[1:], stated[1:], couplings, strict=True)
    )
    geoids = tables.geoids[levels[0]]
    rows = RowSource(
        system.columns, system.family, _system_ranges(system, ranges[0]), np.arange(geoids.size),
    )  # fmt: skip
    return Problem(
        tables, question, levels[0], geoids, system, published[0], ranges[0], larger,
        (rows, *map(_coupling_rows, larger)), assumed, any(coarse),
    )  # fmt: skip


def _system_ranges(system: CellSystem, ranges: CountRanges) -> CountRanges:
    """Return the ranges of a system's rows, its uncounted row included."""
    if ranges.true:
        return CountRanges.from_counts(system.row_counts(ranges.low))
    if not system.has_free_row:
        return ranges
    shape = ranges.low.shape[0], ranges.low.shape[1] + 1
    low, high = (
        sp.csr_array((m.data, m.indices, m.indptr), shape=shape) for m in (ranges.low, ranges.high)
    )
    return CountRanges(low, high, np.append(ranges.zero, UNBOUNDED))


def _coupling_rows(larger: LargerLevel) -> RowSource:
    coupling, ranges = larger.coupling, larger.ranges
    if ranges.true:
        counts = sp.csr_array(larger.published @ coupling.derivation.T)
        counts.sort_indices()
        ranges = CountRanges.from_counts(counts)
    return RowSource(by_columns(coupling.rows), coupling.family, ranges, larger.group)


def stated_counts(
    tables: PublishedTables, level: str, *, coarsened: bool, known_rule: bool
) -> tuple[sp.csr_array, CountRanges]:
    """Return the counts of all tables of a level, joined, and the ranges of the true ones.

    Counts are ``HIDDEN`` where suppressed; without ``coarsened``, published counts are taken as
    true.
    """
    keys = [key for key in tables.workload.tables if key[0] == level]
    parts, hidden = [tables.counts[key] for key in keys], tables.suppressed
    counts = sp.csr_array(sp.hstack(parts, format="csr"), dtype=np.int64)
    if any(key in hidden for key in keys):  # all together: each sum takes its time
        masks = [
            hidden[key] if key in hidden else sp.csr_array(part.shape, dtype=np.bool_)
            for key, part in zip(keys, parts, strict=True)
        ]
        masked = sp.hstack(masks, format="csr").astype(np.int64)
        counts = sp.csr_array(counts + HIDDEN * masked, dtype=np.int64)
    if coarsened:
        return counts, _supports(tables, level, known_rule)
    return counts, CountRanges.from_counts(counts)


def _coarsened(tables: PublishedTables, level: str, known_rule: bool) -> bool:
    """Return whether some table of a level has counts that stand for ranges."""

    def wide(key: tuple[str, str]) -> bool:
        law = tables.laws[key]
        ruled = known_rule and not law.plain and bool(tables.hidden(*key).nnz)
        return not law.exact or ruled

    return any(wide(key) for key in tables.laws if key[0] == level)


#: Places whose counts are held whole together where a published zero is a range.
WHOLE = 256


def _supports(tables: PublishedTables, level: str, known_rule: bool) -> CountRanges:
    """Return the ranges of true counts behind a level's published counts, tables joined."""
    names, size = list(tables.workload.at(level)), tables.geoids[level].size
    zero = [
        np.full(
            tables.counts[level, name].shape[1],
            tables.laws[level, name].support(0)[1] if (level, name) in tables.laws else 0,
        )
        for name in names
    ]
    highest, parts = np.concatenate(zero).astype(np.int64), []
    for first in range(0, size, WHOLE):
        rows = np.arange(first, min(first + WHOLE, size))
        ends = [tables.support(level, name, rows, known_rule=known_rule) for name in names]
        low, high = (np.concatenate(side, axis=1) for side in zip(*ends, strict=True))
        parts.append(CountRanges.from_support(low, high, highest))
    lows, highs = [part.low for part in parts], [part.high for part in parts]
    sides = [sp.csr_array(sp.vstack(side, format="csr")) for side in (lows, highs)]
    return CountRanges(sides[0], sides[1], highest)


def entries(matrix: sp.csr_array, rows: IntArray, columns: IntArray) -> IntArray:
    """Return the values of a sparse matrix at pairs of row and column."""
    width = matrix.shape[1]
    stored = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)) * width + matrix.indices
    wanted = rows * width + columns
    if not stored.size:
        return np.zeros(wanted.size, np.int64)
    index = positions(wanted, stored)
    return np.where(index >= 0, matrix.data[index], 0).astype(np.int64)

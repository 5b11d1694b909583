"""The integer system of one block, and the claims that its tables state directly.

If cells of a table overlap (totals and subtotals), they are taken from the largest down. A cell is
taken if it is inside the claim and disjoint from those taken. With nested cells this finds every
sum.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.compiling import kernel
from bayesrisk._base.validation import BoolArray, CodeArray, IntArray
from bayesrisk.constraints.certificates import proves_infeasible
from bayesrisk.constraints.model import IntegerModel, Status, by_columns, equal_rows, largest_alone
from bayesrisk.constraints.solvers import Deadline, SolverBackend
from bayesrisk.reconstruction.claims.search.lattice import matches
from bayesrisk.reconstruction.claims.search.space import ClaimSpace, Stated
from bayesrisk.tables.cells import joint_kinds
from bayesrisk.tables.likelihoods import UNBOUNDED


class AllowedCounts(NamedTuple):
    """A block's published cells, and the range of true counts that each allows.

    ``published`` is 0 if a count is ``hidden``. The true count is from ``low`` to ``high``, which
    are equal if it is published unchanged. ``UNBOUNDED`` means no largest count.
    """

    published: IntArray
    hidden: BoolArray
    low: IntArray
    high: IntArray


class PlaceClasses(NamedTuple):
    """A place's live cells in classes, and the published cells that constrain them.

    ``order`` lists the ``cells``, as positions among them, class by class from ``start`` on.
    ``columns`` has the weight of each class in every informative published cell (``query``).
    ``bound`` says which classes any of these binds.
    """

    cells: IntArray
    order: IntArray
    start: IntArray
    query: IntArray
    columns: sp.csc_array
    bound: BoolArray

    @property
    def members(self) -> list[IntArray]:
        """Cells of each class as positions in the space."""
        return np.split(self.cells[self.order], self.start[1:-1]) if self.cells.size else []


def place_classes(
    space: ClaimSpace, low: IntArray, high: IntArray, marks: IntArray | None = None
) -> PlaceClasses:
    """Return a place's classes of cells, given the range of each published cell's true count.

    The one that nothing binds is the last.  With ``marks`` (rows, cells of the space) cells of
    different marks are of different classes, in the order of their marks.
    """
    cells = space.alive(np.maximum(high, 0))
    query = np.flatnonzero((high != 0) & ((high < UNBOUNDED) | (low > 0)) | (low > high))
    label, bound = space.classes(cells, query)
    if marks is None:
        kinds = np.where(bound[label], label, bound.size)
    else:
        kinds = joint_kinds([label, *marks[:, cells]])
    order = np.argsort(kinds, kind="stable")
    start = np.append(np.flatnonzero(np.diff(kinds[order], prepend=-1)), order.size)
    first = order[start[:-1]]
    columns = space.columns(cells[first], query)
    return PlaceClasses(cells, order, start, query, columns, bound[label[first]])


@dataclass(frozen=True)
class BlockSystem:
    """Unknown numbers of records in classes of live cells, and the counts that constrain them.

    The model has the classes of the place that a published count binds, and a row for each
    ``query`` (the first of those with equal rows).  Classes that are ``loose``, and rows that are
    ``open``, have no largest count: the model has one for them that takes away no smallest number
    of records, and no largest of those that are not loose.
    """

    place: PlaceClasses
    query: IntArray
    loose: BoolArray
    open: BoolArray
    model: IntegerModel

    @property
    def start(self) -> IntArray:
        """Where each class begins among ``members``, and the end of the last."""
        return self.place.start[: self.model.low.size + 1]

    @property
    def members(self) -> IntArray:
        """Cells of the model's classes, as positions in the space, class by class."""
        return self.place.cells[self.place.order[: self.start[-1]]]

    @property
    def unbound(self) -> IntArray:
        """Cells that no published count constrains, as positions in the space."""
        return self.place.cells[self.place.order[self.start[-1] :]]


class Conflict(NamedTuple):
    """Published cells, by position, that contradict each other, with the reason."""

    reason: str
    query: IntArray


def block_system(space: ClaimSpace, counts: AllowedCounts) -> BlockSystem | Conflict:
    """Return the system of a block, or a conflict if a published count is impossible.

    A conflict is where a count is negative, or cannot be published, or must be positive though
    zeros rule out all its cells.
    """
    impossible = np.flatnonzero(counts.low > counts.high)
    if impossible.size:
        negative = np.flatnonzero(counts.published < 0)
        if negative.size:
            return Conflict("negative", negative)
        return Conflict("no count is published as this number", impossible)
    place = place_classes(space, counts.low, counts.high)
    low, high = counts.low[place.query], counts.high[place.query]
    limited = high < UNBOUNDED
    columns = place.columns[:, np.flatnonzero(place.bound)]
    rows = sp.csr_array(columns)
    empty = (np.diff(rows.indptr) == 0) & (low > 0)
    if empty.any():
        return Conflict("all possible records are ruled out by zeros", place.query[empty])
    most, enough = largest_alone(by_columns(columns), low, np.where(limited, high, UNBOUNDED))
    # More of a class without a largest number than fills its rows would take the place of others.
    loose = most == UNBOUNDED
    most = np.where(loose, enough, most)
    # A row without a largest count has as many as its classes together can have.
    high = np.where(limited, high, np.maximum(rows @ most, low))
    # Rows without repetitions; rows that are equal but for their counts are both kept.
    _, kept_rows = equal_rows(rows, low, high)
    model = IntegerModel(
        np.zeros(most.size, np.int64), most, rows[kept_rows], low[kept_rows], high[kept_rows]
    )
    return BlockSystem(place, place.query[kept_rows], loose, ~limited[kept_rows], model)


# -----------------------------------------------------------------------------
# Which published cells contradict each other, where no records fit them all.


#: Shares of a combination of rows below this are rounding.
_SMALL = 1e-7
#: Seconds that a solver may take for one set of rows, and for all.
_EACH, _ALL = 1.0, 10.0


def smallest_conflict(system: BlockSystem, solver: SolverBackend, deadline: Deadline) -> Conflict:
    """Return published cells that contradict each other, none of which is superfluous.

    Rows that could not be tried within seconds stay in.
    """
    end = deadline.sooner(_ALL)
    left = _contradiction(system, end)
    for row in left.tolist():
        fewer = left[left != row]
        if not end.late and _impossible(_rows(system, fewer), solver, end):
            left = fewer
    return Conflict("contradict each other", system.query[left])


def _contradiction(system: BlockSystem, deadline: Deadline) -> IntArray:
    """Return rows without a common solution, found by a dual ray, or all rows.

    Rows that all have one count are few, and each is tried.
    """
    from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

    every, model = np.arange(system.query.size), system.model
    if np.array_equal(model.row_low, model.row_high):
        return every
    nothing = np.zeros(model.low.size, np.int64)
    ray = HighsWarm(_rows(system, every), nothing, deadline=deadline).maximise(nothing).ray
    if ray is None:
        return every
    used = np.flatnonzero(np.abs(ray) > _SMALL * np.abs(ray).max())
    part = _rows(system, used)
    sure = proves_infeasible(part, part.low, part.high, ray[used])
    return used if sure else every


def _rows(system: BlockSystem, rows: IntArray) -> IntegerModel:
    part = system.model.part(rows)
    # Bounds of a cell come from all rows: without some of them they must not stay.
    free = np.full(part.high.size, int(system.model.row_high.max(initial=0)))
    high = np.where(system.open[rows], part.rows @ free, part.row_high)
    return replace(part, high=free, row_high=high)


def _impossible(model: IntegerModel, solver: SolverBackend, deadline: Deadline) -> bool:
    from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

    if not model.row_low.size:
        return False
    nothing = np.zeros(model.low.size, np.int64)
    answer = HighsWarm(model, nothing, deadline=deadline).maximise(nothing)
    if answer.ray is not None:
        return proves_infeasible(model, model.low, model.high, answer.ray)
    outcome = solver.solve(model, nothing, limits=deadline.sooner(_EACH).limits)
    return bool(outcome.status == Status.INFEASIBLE)


class StatedClaims(NamedTuple):
    """Claims that a table may state: patterns, matching cells, and numbers of records.

    ``at_least`` are about that many records or more.
    """

    patterns: CodeArray
    size: IntArray
    times: IntArray
    at_least: BoolArray


def readable_here(
    space: ClaimSpace, system: BlockSystem, patterns: CodeArray, size: IntArray
) -> BoolArray:
    """Return a mask of claims that are sums of one table's cells, dead cells ignored.

    ``size`` counts the live cells that match each; a claim without any is a sum of no cells.
    """
    stated = space.stated(system.place.cells, system.place.query)
    return np.asarray(
        (size == 0) | _sums(space, stated, system.place.cells, patterns, size), np.bool_
    )


def readable_everywhere(space: ClaimSpace, patterns: CodeArray, size: IntArray) -> BoolArray:
    """Return a mask of claims that are sums of one table's cells for any published counts.

    ``size`` counts the possible cells that match each claim.
    """
    return _sums(space, space.constant, np.arange(len(space.codes)), patterns, size)


def readable_bounds(
    space: ClaimSpace, stated: Stated, cells: IntArray, counts: AllowedCounts, claims: StatedClaims
) -> BoolArray:
    """Return a mask of claims that a table states itself, if cells allow several counts.

    A table states a least number of records: the sum of the smallest counts of its cells inside the
    claim. It states the number itself if each of these cells has a single possible count.
    """
    patterns, size, times, at_least = claims
    low, high = counts.low[stated.query], counts.high[stated.query]
    exact = low == high
    points = Stated(stated.query[exact], stated.value[exact], stated.width[exact])
    readable: BoolArray = (size == 0) | _sums(space, points, cells, patterns, size)
    rows = np.flatnonzero((low > 0) & (stated.width > 0))
    rows = rows[np.argsort(-low[rows], kind="stable")]
    query, table = stated.query[rows], space.queries.table[stated.query[rows]]
    for t in np.unique(table).tolist():
        members = np.flatnonzero(table == t)
        inside = matches(stated.value[rows[members]], patterns)
        if not space.overlapping[t]:
            readable |= at_least & (inside @ low[rows[members]] >= times)
            continue
        for s in np.flatnonzero(at_least & ~readable & inside.any(axis=1)).tolist():
            chosen = _disjoint(space, query, cells, members[inside[s]])
            readable[s] = int(low[rows[chosen]].sum()) >= times[s]
    return readable


def _disjoint(space: ClaimSpace, query: IntArray, cells: IntArray, among: IntArray) -> list[int]:
    """Return the cells, in order, that do not overlap one chosen before."""
    chosen: list[int] = []
    for q in among.tolist():
        if not any(space.overlap(int(query[q]), int(query[o]), cells) for o in chosen):
            chosen.append(q)
    return chosen


@kernel
def sums_of_patterns(
    value: CodeArray,
    table: IntArray,
    width: IntArray,
    patterns: CodeArray,
    size: IntArray,
    out: BoolArray,
) -> None:
    """Mark the patterns whose size equals that of one table's cells inside them.

    ``value`` is what all records of a cell have in each attribute, -1 where they differ.
    """
    columns = np.empty(patterns.shape[1], np.int64)
    for s in range(patterns.shape[0]):
        n_columns = 0
        for a in range(patterns.shape[1]):
            if patterns[s, a] >= 0:
                columns[n_columns] = a
                n_columns += 1
        total, before = np.int64(0), np.int64(-1)
        out[s] = False
        for q in range(value.shape[0]):
            if table[q] != before:
                total, before = np.int64(0), table[q]
            if width[q] < 0 or width[q] > size[s]:
                continue
            inside = True
            for i in range(n_columns):
                if value[q, columns[i]] != patterns[s, columns[i]]:
                    inside = False
                    break
            # Cells of one table that are inside and apart: sizes add up.
            if inside:
                total += width[q]
                if total == size[s]:
                    out[s] = True
                    break


def _sums(
    space: ClaimSpace, stated: Stated, cells: IntArray, patterns: CodeArray, size: IntArray
) -> BoolArray:
    """Return a mask of claims whose cells are exactly some disjoint cells of one table."""
    value, width, table = stated.value, stated.width, space.queries.table[stated.query]
    covered = np.zeros(len(patterns), np.bool_)
    disjoint = np.where(space.overlapping[table], -1, width)
    sums_of_patterns(value, table, disjoint, patterns, size, covered)
    for t in np.unique(table[space.overlapping[table]]).tolist():
        rows = np.flatnonzero((table == t) & (width > 0))
        order = rows[np.argsort(-width[rows], kind="stable")]
        for s in np.flatnonzero(~covered).tolist():
            (inside,) = matches(value[order], patterns[[s]])
            chosen = _disjoint(space, stated.query, cells, order[inside])
            covered[s] = int(width[chosen].sum()) == size[s]
    return covered

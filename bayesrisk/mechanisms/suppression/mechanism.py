r"""Cell suppression: small counts are withheld, and others that would reveal them by sums.

For each row, z says whether it is withheld. Given z, linear programs find the ends of a withheld
count p. They range over records x >= 0 that have all published counts and at least 1 in withheld
ones. If both ends reveal the count, their dual values name the published rows S that do so. It
stays revealed until one of these is withheld, too:

    sum_{s in S} z_s >= z_p.

The search finds the z with the fewest cells under all such rules, and then the ends again, until no
count is revealed. The caller proves the answer in integers, and withholds more if that fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.frames import pandas as pd
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel, equal_rows
from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.base import BaseMechanism, Dial, Protected
from bayesrisk.mechanisms.suppression.groups import (
    Cliques,
    PlaceGroup,
    Structure,
    endless_variables,
    group_ranges,
    some_histogram,
    table_structure,
)
from bayesrisk.release import MechanismSpec, SuppressedCounts
from bayesrisk.tables import Histogram, Microdata, PublishedTables, Records, Workload, tabulate
from bayesrisk.tables.microdata import as_microdata

if TYPE_CHECKING:
    from bayesrisk.constraints.highs import HighsWarm


# The choice of further cells to withhold, each one proved by a second histogram that fits as well.
#
# Let x be the true histogram.  A second one, x + d, whole and not negative, that has every
# published count, is a witness: nobody can tell it from x, so the range of a withheld count is at
# least as wide as d moves it.  For each withheld count that no witness moves yet, a linear program
# looks for the d that moves it and least else; published counts that d moves are withheld too.
#  Withholding more takes no witness away, so what is protected stays so.


#: Zeros are published, so everybody knows that a withheld count is at least this.
LEAST = 1
#: Largest count that a witness may have: sums of such stay exact.
_LARGE = 2**40
#: Rows are moved together as long as that leaves at most this share of them exposed.
_WORTH = 0.98


class _Choice:
    """Chooses withheld rows of a group, and tracks the range that witnesses show for each.

    ``histogram`` has the counts of ``group``, in which nothing is hidden.
    """

    _linear: HighsWarm  # the program of d, of the bounds _ends
    _ends: tuple[IntArray, IntArray]

    def __init__(
        self, group: PlaceGroup, cliques: Cliques, histogram: IntArray, protection: int
    ) -> None:
        if not group.model.holds(histogram):
            raise DataError("tables: counts contradict each other: they do not add up")
        self._group, self._cliques, self._histogram = group, cliques, histogram
        self._protection = protection
        counted = np.flatnonzero(~group.tie)
        # Cells that the same variables make up have one count, and are withheld together.
        self._row_class, first = equal_rows(sparse.csr_array(group.model.rows[counted]))
        self._rows = sparse.csr_array(group.model.rows[counted[first]])
        self._ties = sparse.csr_array(group.model.rows[np.flatnonzero(group.tie)])
        self._columns = sparse.csc_array(self._rows)
        self._count = group.model.row_low[counted[first]]
        level, place = group.level[counted[first]], group.place[counted[first]]
        self._place = level * (int(place.max(initial=0)) + 1) + place
        self._cost = (self._count * np.bincount(self._row_class)).astype(float)
        self._least, self._most = self._count.copy(), self._count.copy()
        self._room = np.maximum(0, (self._count - LEAST) // protection)

    def widen(self, hidden: BoolArray, *, fewest: bool) -> BoolArray:
        """Return the withheld rows and further ones, so that each has a range >= ``protection``."""
        withheld = np.zeros(len(self._count), dtype=np.bool_)
        counted = np.flatnonzero(~self._group.tie)
        withheld[self._row_class[hidden[counted]]] = True
        if fewest:
            withheld = fewest_withheld(
                self._rows, self._ties, self._count, np.bincount(self._row_class), withheld,
                self._protection,
            )  # fmt: skip
        self._note_endless(withheld)
        exposed = self._exposed(withheld)
        if exposed.any():
            self._program(withheld)
            self._move_together(withheld)
            exposed = self._exposed(withheld)
        # A row that is taken on the way needs no look: the witness that took it moves it.
        while exposed.any():
            # One row of each place at a time: what they move can cancel above.
            rows = np.flatnonzero(exposed)
            batch = rows[np.unique(self._place[rows], return_index=True)[1]]
            self._protect(batch, withheld)
            exposed = self._exposed(withheld)
        mask = np.zeros(len(hidden), dtype=np.bool_)
        mask[counted] = withheld[self._row_class]
        return mask

    def _protect(self, batch: IntArray, withheld: BoolArray) -> None:
        """Find witnesses for a batch of rows, or for its halves; withhold rows that they change."""
        batch = batch[self._exposed(withheld)[batch]]
        if not len(batch):
            return
        if len(batch) > 1:
            signs = np.where((np.arange(len(batch)) % 2 > 0) & (self._room[batch] > 0), -1, 1)
            moved = self._solved(batch, signs)
            if moved is None:
                half = len(batch) // 2
                self._protect(batch[:half], withheld)
                self._protect(batch[half:], withheld)
                return
        else:
            moved = self._move(int(batch[0]), withheld)
        self._note(moved)
        additions = (moved != 0) & ~withheld
        if additions.any():
            withheld |= additions
            # What is withheld moves at no cost.
            columns = self._rows.shape[1] + np.flatnonzero(additions[self._published])
            index = np.concatenate([columns, columns + len(self._published)])
            self._linear.aim(np.zeros(len(index)), index)
            self._note_endless(withheld)

    def _note(self, moved: IntArray) -> None:
        """Update the rows' shown ranges by a witness's changes."""
        np.minimum(self._least, self._count + moved, out=self._least)
        np.maximum(self._most, self._count + moved, out=self._most)

    def _move_together(self, withheld: BoolArray) -> None:
        """Search for witnesses that change many withheld rows and no published one."""
        variables, (low, high) = self._rows.shape[1], self._ends
        moving = np.arange(variables)
        near = low.copy(), high.copy()
        near[1][:variables], near[1][variables:] = 1, 0
        self._ends = near
        rng = np.random.default_rng(0)
        while True:
            exposed = self._exposed(withheld)
            gain = np.where(exposed, rng.choice([-1.0, 1.0], size=len(withheld)), 0.0)
            self._linear.aim(-(self._rows.T @ gain), moving)
            moved = self._run()
            if moved is None or np.any(moved[~withheld]) or not np.any(moved[exposed]):
                break
            self._note(moved)
            if np.mean(self._exposed(withheld)) > _WORTH * np.mean(exposed):
                break
        self._linear.aim(np.zeros(variables), moving)
        self._ends = low, high

    def _exposed(self, withheld: BoolArray) -> BoolArray:
        """Return a mask of the withheld rows whose shown range is too narrow."""
        return np.asarray(withheld & (self._most - self._least < self._protection))

    def _note_endless(self, withheld: BoolArray) -> None:
        """Mark the rows to which any number of records can be added unnoticed."""
        free = endless_variables(self._rows[~withheld], self._ties)
        self._most[(self._rows @ free) > 0] = ENDLESS

    def _program(self, withheld: BoolArray) -> None:
        """Build the linear program of a change d, and its cost in published rows."""
        from bayesrisk.constraints.highs import HighsWarm  # loads a compiled solver

        size, variables = self._rows.shape
        published = np.flatnonzero(~withheld)
        count = len(published)
        ones = np.ones(count, dtype=np.int64)
        selector = sparse.csr_array((ones, (published, np.arange(count))), shape=(size, count))
        blocks: Any = [[self._rows, -selector, selector], [self._ties, None, None]]
        matrix: Any = sparse.block_array(blocks, format="csr")
        zero = np.zeros(self._ties.shape[0], dtype=np.int64)
        row_low = np.concatenate([np.where(withheld, -self._room, 0), zero])
        row_high = np.concatenate([np.where(withheld, ENDLESS, 0), zero])
        nothing = np.zeros(2 * count, dtype=np.int64)
        low = np.concatenate([-(self._histogram // self._protection), nothing])
        high = np.concatenate([np.full(variables + count, ENDLESS), self._room[published]])
        cost = np.concatenate([np.zeros(variables), np.tile(self._cost[published], 2)])
        self._published, self._ends = published, (low, high)
        model = IntegerModel(low, high, matrix, row_low, row_high)
        self._linear = HighsWarm(model, cost, cost=True)

    def _move(self, row: int, withheld: BoolArray) -> IntArray:
        """Return all rows' changes under a witness that changes one row and few published ones."""
        moves = []
        for sign in (1, -1):
            moved = self._solved(np.array([row]), np.array([sign]))
            if moved is not None:
                moves.append((float(self._cost @ ((moved != 0) & ~withheld)), -sign, moved))
                if not np.any((moved != 0) & ~withheld):
                    break
        if not moves:
            return self._one_more(row, withheld)
        return min(moves, key=lambda f: f[:2])[2]

    def _solved(self, rows: IntArray, signs: IntArray) -> IntArray | None:
        """Return all rows' changes under the cheapest witness for given rows and signs, or None."""
        room = self._room[rows]
        if np.any((signs < 0) & (room == 0)):
            return None
        low, high = np.where(signs > 0, 1, -room), np.where(signs > 0, ENDLESS, -1)
        self._linear.rebound(low, high, rows)
        moved = self._run()
        self._linear.rebound(-room, np.full(len(rows), ENDLESS), rows)
        return None if moved is None or not moved[rows].all() else moved

    def _run(self) -> IntArray | None:
        """Return all rows' changes under the program's solution, or None if it is no witness."""
        values = self._linear.relax(*self._ends).values
        if values is None:
            return None
        values = values[: self._rows.shape[1]]
        if not np.all(np.abs(values) * self._protection < _LARGE):
            return None
        step = self._protection * np.rint(values).astype(np.int64)
        if np.any(self._histogram + step < 0) or np.any(self._ties @ step):
            return None
        moved: IntArray = self._rows @ step
        return None if np.any((moved != 0) & (self._count + moved < LEAST)) else moved

    def _one_more(self, row: int, withheld: BoolArray) -> IntArray:
        """Return all rows' changes when records like an existing one of a row are added."""
        group, cliques = self._group, self._cliques
        clique = np.searchsorted(cliques.start, group.column, side="right") - 1
        cost = self._columns.T @ np.where(withheld, 0.0, self._cost)
        present = self._histogram > 0
        inside = np.zeros(len(present), dtype=np.bool_)
        inside[self._rows.indices[self._rows.indptr[row] : self._rows.indptr[row + 1]]] = True
        first = _cheapest(np.flatnonzero(present & inside), cost)
        chosen = {int(clique[first]): first}
        present &= group.finest == group.finest[first]
        links = list(cliques.neighbours)
        while links:
            link = next(k for k in links if k[0] in chosen or k[1] in chosen)
            links.remove(link)
            near, new = (link[0], link[1]) if link[0] in chosen else (link[1], link[0])
            variable = chosen[near]
            value = cliques.shared(near, link[2])[group.column[variable] - cliques.start[near]]
            options = np.flatnonzero(present & (clique == new))
            shared = cliques.shared(new, link[2])[group.column[options] - cliques.start[new]]
            chosen[new] = _cheapest(options[shared == value], cost)
        direction = np.zeros(len(present), dtype=np.int64)
        direction[list(chosen.values())] = 1
        return np.asarray(self._protection * (self._rows @ direction))


def _cheapest(options: IntArray, cost: FloatArray) -> int:
    return int(options[np.argmin(cost[options])])


class Suppression(BaseMechanism):
    """Withhold counts below a threshold, and further counts that would reveal them.

    Primary suppression withholds every count from 1 to ``threshold - 1``. Complementary suppression
    withholds further counts above 0, small ones first, so that every withheld count keeps a range
    of at least ``protection``. That is, another histogram of whole, non-negative numbers has every
    published count and a positive number in every withheld cell. Its count in the cell differs by
    at least so much. A zero is always published.

    Parameters
    ----------
    threshold : int
        Smallest count above 0 that is published, >= 2.
    complementary : bool, default True
        Whether to withhold further cells; without them, sums reveal many counts.
    protection : int, default 1
        Smallest range of a withheld cell: its largest less its smallest possible count, >= 1. With
        1, no count can be recovered.
    fewest : bool, default False
        Whether to search for the fewest further cells, instead of taking small counts in turn. It
        is slower and withholds fewer cells in most tables.

    Notes
    -----
    The guarantee is against an adversary who knows all published counts of all tables and levels,
    and their definitions. The adversary also knows that a withheld count is at least 1, because
    zeros are published; but not which cells are primary, and nobody's record. An adversary who
    knows more, such as people of the place or how the cells were chosen, may recover more.

    The withheld cells suffice, but may not be the fewest possible; ``fewest`` comes near. The
    choice is deterministic. It depends on the records, and it is published.
    ``diagnostics["suppressed_cells"]`` of a release is the number of withheld cells. Tables may
    separate at most 4,194,304 kinds of records, and counts are below 2**31.

    Examples
    --------
    >>> Suppression(threshold=3).spec.parameters
    {'threshold': 3, 'complementary': True, 'protection': 1}
    """

    dial = Dial("threshold", 100.0, 2.0, whole=True)
    grain = 0  # cells are protected together below each place
    totals = ("suppressed_cells",)

    def __init__(
        self, *, threshold: int, complementary: bool = True, protection: int = 1,
        fewest: bool = False,
    ) -> None:  # fmt: skip
        self._threshold = check.integer(threshold, "threshold", lower=2)
        self._complementary = check.flag(complementary, "complementary")
        self._protection = check.integer(protection, "protection", lower=1)
        parameters = {
            "threshold": self._threshold,
            "complementary": self._complementary,
            "protection": self._protection,
        }
        self._fewest = check.flag(fewest, "fewest")
        if fewest:
            parameters["fewest"] = True
        # Of a cell that the rule alone withholds everybody knows that it is below the threshold.
        law = SuppressedCounts(LEAST, None if self._complementary else self._threshold - 1)
        super().__init__(MechanismSpec("suppression", parameters, others=law))

    def suppress(
        self, tables: PublishedTables, data: Microdata | Records | None = None
    ) -> PublishedTables:
        """Return the tables with cells withheld and the withheld counts removed.

        The proof of protection starts from records that have the counts. :meth:`release` has them.
        Without ``data`` such records are searched for first, which is harder than the rest, and may
        lead to other cells.

        Raises
        ------
        DataError
            If counts are negative or 2**31 or more, no records have them, or none were found.
        """
        check.instance(tables, PublishedTables, "tables")
        histogram = None
        if data is not None:
            work = tables.workload
            records = as_microdata(data).for_schema(work.schema)
            histogram = Histogram.from_records(records, level=work.levels[-1])
        return self._suppress(tables, histogram)

    def _protect(
        self, microdata: Microdata | Records, workload: Workload, rng: np.random.Generator
    ) -> Protected:
        tables = self.suppress(tabulate(microdata, workload), microdata)
        cells = sum(part.nnz for part in tables.suppressed.values())
        return Protected(tables, diagnostics={"suppressed_cells": float(cells)})

    def _suppress(self, tables: PublishedTables, histogram: Histogram | None) -> PublishedTables:
        """Return the tables with cells withheld; without ``histogram`` one is searched for."""
        if tables.signed:
            raise DataError("tables: true counts must be >= 0, got a negative one")
        plan = table_structure(replace(tables, suppressed={}))
        hidden = [_small(part, self._threshold) for part in plan.counts]
        if self._complementary:
            hidden = self._complemented(plan, hidden, histogram)
        return _withheld(tables, plan, hidden)

    def _complemented(
        self, plan: Structure, hidden: list[sparse.csr_array], histogram: Histogram | None
    ) -> list[sparse.csr_array]:
        """Return the hidden cells of each level, extended by the cells that protect them."""
        records = None if histogram is None else plan.clique_histograms(histogram)
        cells: list[list[tuple[IntArray, IntArray]]] = [[] for _ in hidden]
        for group in plan.groups():
            mask = np.zeros(len(group.level), dtype=np.bool_)
            for level, part in enumerate(hidden):
                rows = np.flatnonzero((group.level == level) & ~group.tie)
                mask[rows] = np.asarray(part[group.place[rows], group.cell[rows]]).reshape(-1) > 0
            if not mask.any():
                continue
            if records is None:
                counts = some_histogram(group)
            else:
                counts = np.asarray(records[group.finest, group.column]).reshape(-1)
            mask = _Choice(group, plan.cliques, counts, self._protection).widen(
                mask, fewest=self._fewest
            )
            for level, pairs in enumerate(cells):
                rows = np.flatnonzero(mask & (group.level == level))
                pairs.append((group.place[rows], group.cell[rows]))
        marked = []
        for pairs, part in zip(cells, hidden, strict=True):
            if pairs:
                coords = tuple(np.concatenate(axis) for axis in zip(*pairs, strict=True))
                ones = np.ones(len(coords[0]), dtype=np.int64)
                part = sparse.csr_array((ones, coords), shape=part.shape)
            marked.append(part)
        return marked


def _small(counts: sparse.csr_array, threshold: int) -> sparse.csr_array:
    hidden = counts.copy()
    hidden.data = ((counts.data > 0) & (counts.data < threshold)).astype(np.int64)
    hidden.eliminate_zeros()
    return hidden


def _withheld(
    tables: PublishedTables, plan: Structure, hidden: list[sparse.csr_array]
) -> PublishedTables:
    counts: dict[tuple[str, str], Any] = {}
    suppressed: dict[tuple[str, str], Any] = {}
    for level, starts, part in zip(tables.workload.levels, plan.start, hidden, strict=True):
        for name, start in starts.items():
            key = (level, name)
            cells = sparse.csr_array(part[:, start : start + tables.counts[key].shape[1]])
            counts[key] = sparse.csr_array(tables.counts[key] - tables.counts[key].multiply(cells))
            suppressed[key] = cells.astype(np.bool_)
    return replace(tables, counts=counts, suppressed=suppressed)


# What anybody can say about suppressed cells from the published ones: exact ranges.


@displayed
@dataclass(frozen=True, eq=False)
class ProtectionRanges(Tabular):
    """The range of every suppressed cell, given the published cells.

    Attributes
    ----------
    level, geoid, table, cell : ndarray of str
        Position of each suppressed cell.
    lower, upper : ndarray of float64
        Smallest and largest whole count that agrees with all published counts; ``upper`` may be
        infinite.
    proved : ndarray of bool
        Whether both ends are attained; if not, the attained range is narrower.
    """

    level: TextArray
    geoid: TextArray
    table: TextArray
    cell: TextArray
    lower: FloatArray
    upper: FloatArray
    proved: BoolArray

    @property
    def recovered(self) -> BoolArray:
        """Whether each cell has a single possible count, so that its suppression failed."""
        return np.equal(self.lower, self.upper)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each suppressed cell."""
        return pd.DataFrame({name: getattr(self, name) for name in self.__dataclass_fields__})


def audit_suppression(
    tables: PublishedTables, *, least: int = 0, most: int | None = None
) -> ProtectionRanges:
    """Return the exact range of every suppressed cell, given the published cells.

    Every suppressed count is minimised and maximised over all histograms of whole, non-negative
    numbers for the places of the finest level. The histograms have every published count of every
    table at every level.

    Rows are sorted by level, place and cell.

    Parameters
    ----------
    tables : PublishedTables
        Tables with suppressed cells.
    least : int, default 0
        Smallest count that the adversary assumes in a suppressed cell, >= 0. It is 1 for tables of
        :class:`~bayesrisk.Suppression`, which publishes zeros.
    most : int, optional
        Largest such count, >= ``least``; by default none. It is ``threshold - 1`` for primary
        suppression alone.

    Raises
    ------
    DataError
        If no histogram has the published counts, as with noisy or rounded ones; if a level lacks a
        place; or if a count is 2**31 or more.

    Notes
    -----
    Linear programs propose ends. An end is attained by a histogram that is checked in every
    published cell, and bounded by dual values in exact fractions. If the two differ, the program is
    split at a variable, up to 2,000 times. If they still differ, ``proved`` is False and the end is
    the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from bayesrisk.tables import Attribute, Geography, Schema, Table, Workload
    >>> place = Geography("towns", ("town",), (1,))
    >>> people = Schema("people", (Attribute("sex", 2),), place)
    >>> sex = Table("sex", ("all", "men", "women"), {"sex": np.array([[1, 1], [1, 0], [0, 1]])})
    >>> counts = {("town", "sex"): csr_array(np.array([[9, 0, 8]]))}
    >>> hidden = {("town", "sex"): csr_array(np.array([[False, True, False]]))}
    >>> published = PublishedTables(
    ...     Workload(people, {("town", "sex"): sex}), {"town": np.array(["1"])}, counts, hidden
    ... )
    >>> ranges = audit_suppression(published)
    >>> ranges.cell.tolist(), ranges.lower.tolist(), ranges.upper.tolist()
    (['men'], [1.0], [1.0])
    """
    check.instance(tables, PublishedTables, "tables")
    least = check.integer(least, "least", lower=0)
    most = None if most is None else check.integer(most, "most", lower=least)
    plan = table_structure(tables)
    pieces: list[tuple[IntArray, ...]] = [(np.zeros(0, dtype=np.int64),) * 6]
    for group in plan.groups():
        rows = np.flatnonzero(group.hidden)
        if rows.size:
            location = group.level[rows], group.place[rows], group.cell[rows]
            lower, upper, proved = group_ranges(group, least, most)
            pieces.append((*location, lower, upper, proved.astype(np.int64)))
    level, place, cell, lower, upper, proved_ = (
        np.concatenate(part) for part in zip(*pieces, strict=True)
    )
    order = np.lexsort((cell, place, level))
    ends = lower.astype(float)[order], np.where(upper >= ENDLESS, np.inf, upper)[order]
    text = _names(plan, level[order], place[order], cell[order])
    return ProtectionRanges(text[0], text[1], text[2], text[3], *ends, proved_[order] > 0)


def _names(plan: Structure, level: IntArray, place: IntArray, cell: IntArray) -> TextArray:
    """Return the level, place, table and cell of each row, by name."""
    workload = plan.tables.workload
    names: list[tuple[str, str, str, str]] = []
    for number, (name, starts) in enumerate(zip(workload.levels, plan.start, strict=True)):
        mask = level == number
        geoids = plan.tables.geoids[name][place[mask]].tolist()
        titles, first = list(starts), np.array(list(starts.values()))
        table = np.searchsorted(first, cell[mask], side="right") - 1
        inside = (cell[mask] - first[table]).tolist()
        for geoid, index, position in zip(geoids, table.tolist(), inside, strict=True):
            cells = workload.tables[name, titles[index]].cells
            names.append((name, str(geoid), titles[index], cells[position]))
    return np.array(names, dtype=np.str_).reshape(-1, 4).T


#: Rounds; unknowns of a program, and nodes of a search, of which more are not looked at.
_ROUNDS, _UNKNOWNS, _NODES = 60, 20_000, 2_000
_NEAR = 1e-6
#: What a cell costs beside the largest count, which decides between equal numbers of cells.
_CELL, _COUNT = 1000, 9


def fewest_withheld(
    rows: sparse.csr_array, ties: sparse.csr_array, counts: IntArray, cells: IntArray,
    primary: BoolArray, protection: int,
) -> BoolArray:  # fmt: skip
    """Return a mask of rows to withhold: the primary ones and as few others as found.

    Parameters
    ----------
    rows, ties : csr_array
        Weights of the unknowns in each count, and in sums that are 0.
    counts : ndarray of int64
        The true counts, all above 0.
    cells : ndarray of int64
        Number of cells of each row.
    primary : ndarray of bool
        Rows that must be withheld.
    protection : int
        Smallest width of the range of a withheld count.
    """
    from bayesrisk.constraints.highs import HighsSolver, HighsWarm  # loads a compiled solver
    from bayesrisk.constraints.solvers import Limits

    size, unknowns = rows.shape
    withheld = primary.copy()
    if not primary.any() or unknowns > _UNKNOWNS:
        return withheld
    zero = np.zeros(ties.shape[0], np.int64)
    low, high = np.zeros(unknowns, np.int64), np.full(unknowns, ENDLESS)
    matrix = sparse.csr_array(sparse.vstack([rows, ties]))
    ends = IntegerModel(low, high, matrix, np.r_[counts, zero], np.r_[counts, zero])
    linear = HighsWarm(ends, np.zeros(unknowns, np.int64))
    cost = -(_CELL * cells + (_COUNT * counts) // counts.max())
    cuts: list[sparse.csr_array] = []
    for _ in range(_ROUNDS):
        linear.rebound(
            np.where(withheld, 1, counts), np.where(withheld, ENDLESS, counts), np.arange(size)
        )
        new = []
        for p in np.flatnonzero(withheld).tolist():
            form, proof, width = rows[[p], :].toarray()[0], np.zeros(size, np.bool_), 0.0
            for sign in (1, -1):
                linear.aim(sign * form)
                answer = linear.relax(low, high)
                if answer.values is None or answer.duals is None:  # without end
                    width = np.inf
                    break
                width += sign * float(form @ answer.values)
                proof |= np.abs(answer.duals[:size]) > _NEAR
            if width < protection - _NEAR:
                weight = (proof & ~withheld).astype(np.int64)
                weight[p] = -1
                new.append(sparse.csr_array(weight[None, :]))
        if not new:
            break
        cuts += new
        nothing, endless = np.zeros(len(cuts), np.int64), np.full(len(cuts), ENDLESS)
        choice = IntegerModel(
            primary.astype(np.int64), np.ones(size, np.int64),
            sparse.csr_array(sparse.vstack(cuts)), nothing, endless,
        )  # fmt: skip
        values = HighsSolver().solve(choice, cost, limits=Limits(nodes=_NODES)).values
        if values is None:  # a count that nothing hides
            break
        withheld = values > 0
    return withheld

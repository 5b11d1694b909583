"""The choice of further cells to withhold, each one proved by a second histogram that fits as well.

Let x be the true histogram.  A second one, x + d, whole and not negative, that has every published
count, is a witness: nobody can tell it from x, so the range of a withheld count is at least as
wide as d moves it.  For each withheld count that no witness moves yet, a linear program looks for
the d that moves it and least else; published counts that d moves are withheld too.  Withholding
more takes no witness away, so what is protected stays so.
"""

from typing import Any

import numpy as np
from scipy import sparse

from bayesrisk._highs import WarmProgram
from bayesrisk._types import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.suppression._cliques import Cliques
from bayesrisk.mechanisms.suppression._groups import Group, endless_variables, equal_rows
from bayesrisk.mechanisms.suppression._integer_range import ENDLESS, as_floats

#: Zeros are published, so everybody knows that a withheld count is at least this.
LEAST = 1
#: Largest count that a witness may have: sums of such stay exact.
_LARGE = 2**40
#: Rows are moved together as long as that leaves at most this share of them exposed.
_WORTH = 0.98


def complement(
    group: Group, cliques: Cliques, histogram: IntArray, hidden: BoolArray, protection: int
) -> BoolArray:
    """Return the hidden rows with what gives each a range of at least ``protection``.

    ``histogram`` has the counts of ``group``, in which nothing is hidden.
    """
    choice = _Choice(group, cliques, histogram, protection)
    return choice.widen(hidden)


class _Choice:
    """Withheld rows of a group, and how far witnesses move them."""

    def __init__(
        self, group: Group, cliques: Cliques, histogram: IntArray, protection: int
    ) -> None:
        if np.any(group.matrix @ histogram != group.count):
            raise DataError("tables: counts contradict each other: they do not add up")
        self._group, self._cliques, self._histogram = group, cliques, histogram
        self._protection = protection
        counted = np.flatnonzero(~group.tie)
        # Cells that the same variables make up have one count, and are withheld together.
        self._same = equal_rows(group.matrix[counted], np.zeros(len(counted), dtype=np.bool_))
        first = np.unique(self._same, return_index=True)[1]
        self._rows = sparse.csr_array(group.matrix[counted[first]])
        self._ties = sparse.csr_array(group.matrix[np.flatnonzero(group.tie)])
        self._columns = sparse.csc_array(self._rows)
        self._count = group.count[counted[first]]
        level, place = group.level[counted[first]], group.place[counted[first]]
        self._place = level * (int(place.max(initial=0)) + 1) + place
        self._cost = (self._count * np.bincount(self._same)).astype(float)
        self._least, self._most = self._count.copy(), self._count.copy()
        self._room = np.maximum(0, (self._count - LEAST) // protection)

    def widen(self, hidden: BoolArray) -> BoolArray:
        """Return the withheld rows of the group with those that protect them."""
        taken = np.zeros(len(self._count), dtype=np.bool_)
        counted = np.flatnonzero(~self._group.tie)
        taken[self._same[hidden[counted]]] = True
        self._note_endless(taken)
        exposed = self._exposed(taken)
        if exposed.any():
            self._program(taken)
            self._move_together(taken)
            exposed = self._exposed(taken)
        # A row that is taken on the way needs no look: the witness that took it moves it.
        while exposed.any():
            # One row of each place at a time: what they move can cancel above.
            rows = np.flatnonzero(exposed)
            batch = rows[np.unique(self._place[rows], return_index=True)[1]]
            self._protect(batch, taken)
            exposed = self._exposed(taken)
        found = np.zeros(len(hidden), dtype=np.bool_)
        found[counted] = taken[self._same]
        return found

    def _protect(self, batch: IntArray, taken: BoolArray) -> None:
        """Find witnesses for rows, all at once or, where that fails, for fewer; withhold more."""
        batch = batch[self._exposed(taken)[batch]]
        if not len(batch):
            return
        if len(batch) > 1:
            signs = np.where((np.arange(len(batch)) % 2 > 0) & (self._room[batch] > 0), -1, 1)
            moved = self._solved(batch, signs)
            if moved is None:
                half = len(batch) // 2
                self._protect(batch[:half], taken)
                self._protect(batch[half:], taken)
                return
        else:
            moved = self._move(int(batch[0]), taken)
        self._note(moved)
        fresh = (moved != 0) & ~taken
        if fresh.any():
            taken |= fresh
            self._set_free(fresh)
            self._note_endless(taken)

    def _note(self, moved: IntArray) -> None:
        """Keep how far a witness moves rows."""
        np.minimum(self._least, self._count + moved, out=self._least)
        np.maximum(self._most, self._count + moved, out=self._most)

    def _move_together(self, taken: BoolArray) -> None:
        """Look for witnesses that move many withheld rows at once, and no published one."""
        variables, count = self._rows.shape[1], len(self._published)
        moving, rest = np.arange(variables), variables + np.arange(2 * count)
        low = -(self._histogram // self._protection).astype(float)
        nothing, inf = np.zeros(2 * count), np.full(max(variables, count), np.inf)
        self._linear.bound_columns(rest, nothing, nothing)
        self._linear.bound_columns(moving, low, np.ones(variables))
        rng = np.random.default_rng(0)
        while True:
            exposed = self._exposed(taken)
            gain = np.where(exposed, rng.choice([-1.0, 1.0], size=len(taken)), 0.0)
            self._linear.set_cost(moving, -(self._rows.T @ gain))
            moved = self._run()
            if moved is None or np.any(moved[~taken]) or not np.any(moved[exposed]):
                break
            self._note(moved)
            if np.mean(self._exposed(taken)) > _WORTH * np.mean(exposed):
                break
        self._linear.set_cost(moving, np.zeros(variables))
        self._linear.bound_columns(moving, low, inf[:variables])
        room = self._room[self._published].astype(float)
        self._linear.bound_columns(rest, nothing, np.concatenate([inf[:count], room]))

    def _exposed(self, taken: BoolArray) -> BoolArray:
        """Return the withheld rows that no witness moves far enough."""
        return np.asarray(taken & (self._most - self._least < self._protection))

    def _note_endless(self, taken: BoolArray) -> None:
        """Note the rows to which any number of records can be added unseen."""
        free = endless_variables(self._rows[~taken], self._ties)
        self._most[(self._rows @ free) > 0] = ENDLESS

    def _program(self, taken: BoolArray) -> None:
        """Make the program of d, and of how far it moves each published row up and down."""
        size, variables = self._rows.shape
        published = np.flatnonzero(~taken)
        count = len(published)
        ones = np.ones(count, dtype=np.int64)
        apart = sparse.csr_array((ones, (published, np.arange(count))), shape=(size, count))
        blocks: Any = [[self._rows, -apart, apart], [self._ties, None, None]]
        matrix: Any = sparse.block_array(blocks, format="csr")
        zero = np.zeros(self._ties.shape[0], dtype=np.int64)
        row_low = np.concatenate([np.where(taken, -self._room, 0), zero])
        row_high = np.concatenate([np.where(taken, ENDLESS, 0), zero])
        nothing = np.zeros(2 * count, dtype=np.int64)
        low = np.concatenate([-(self._histogram // self._protection), nothing])
        high = np.concatenate([np.full(variables + count, ENDLESS), self._room[published]])
        cost = np.concatenate([np.zeros(variables), np.tile(self._cost[published], 2)])
        self._published = published
        rows, columns = as_floats((row_low, row_high)), as_floats((low, high))
        self._linear = WarmProgram(matrix, rows, columns, cost, primal=False)

    def _set_free(self, fresh: BoolArray) -> None:
        """Let rows move at no cost."""
        at = self._rows.shape[1] + np.flatnonzero(fresh[self._published])
        index = np.concatenate([at, at + len(self._published)])
        self._linear.set_cost(index, np.zeros(len(index)))

    def _move(self, row: int, taken: BoolArray) -> IntArray:
        """Return how a witness that moves a row, and little else, moves all rows."""
        found = []
        for sign in (1, -1):
            moved = self._solved(np.array([row]), np.array([sign]))
            if moved is not None:
                found.append((float(self._cost @ ((moved != 0) & ~taken)), -sign, moved))
                if not np.any((moved != 0) & ~taken):
                    break
        if not found:
            return self._one_more(row, taken)
        return min(found, key=lambda f: f[:2])[2]

    def _solved(self, rows: IntArray, signs: IntArray) -> IntArray | None:
        """Return how the cheapest d that moves rows by their signs moves all, or None."""
        room = self._room[rows].astype(float)
        if np.any((signs < 0) & (room == 0)):
            return None
        low, high = np.where(signs > 0, 1.0, -room), np.where(signs > 0, np.inf, -1.0)
        self._linear.bound_rows(rows, low, high)
        moved = self._run()
        self._linear.bound_rows(rows, -room, np.full(len(rows), np.inf))
        return None if moved is None or not moved[rows].all() else moved

    def _run(self) -> IntArray | None:
        """Return how the solution of the program moves all rows, or None if it is no witness."""
        solved = self._linear.solve()
        if solved is None:
            return None
        values = solved[0][: self._rows.shape[1]]
        if not np.all(np.abs(values) * self._protection < _LARGE):
            return None
        step = self._protection * np.rint(values).astype(np.int64)
        if np.any(self._histogram + step < 0) or np.any(self._ties @ step):
            return None
        moved: IntArray = self._rows @ step
        return None if np.any((moved != 0) & (self._count + moved < LEAST)) else moved

    def _one_more(self, row: int, taken: BoolArray) -> IntArray:
        """Return how more records like a true one of a row move all rows: always a witness."""
        group, cliques = self._group, self._cliques
        clique = np.searchsorted(cliques.start, group.column, side="right") - 1
        cost = self._columns.T @ np.where(taken, 0.0, self._cost)
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
            known, new = (link[0], link[1]) if link[0] in chosen else (link[1], link[0])
            at = chosen[known]
            value = cliques.shared(known, link[2])[group.column[at] - cliques.start[known]]
            options = np.flatnonzero(present & (clique == new))
            shared = cliques.shared(new, link[2])[group.column[options] - cliques.start[new]]
            chosen[new] = _cheapest(options[shared == value], cost)
        direction = np.zeros(len(present), dtype=np.int64)
        direction[list(chosen.values())] = 1
        return np.asarray(self._protection * (self._rows @ direction))


def _cheapest(options: IntArray, cost: FloatArray) -> int:
    return int(options[np.argmin(cost[options])])

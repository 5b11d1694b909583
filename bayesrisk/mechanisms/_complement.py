"""The choice of further cells to withhold, each one proved by a second histogram that fits as well.

Let x be the true histogram.  A second one, x + d, whole and not negative, that has every published
count, is a witness: nobody can tell it from x, so the range of a withheld count is at least as
wide as d moves it.  For each withheld count that no witness moves yet, a linear program looks for
the d that moves it and least else; published counts that d moves are withheld too.  Withholding
more takes no witness away, so what is protected stays so.
"""

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms._cliques import Cliques
from bayesrisk.mechanisms._groups import Group, endless_variables, equal_rows
from bayesrisk.mechanisms._integer_range import ENDLESS, IntegerProgram, highs_model

__all__ = ["LEAST", "complement", "some_histogram"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
#: Zeros are published, so everybody knows that a withheld count is at least this.
LEAST = 1


def complement(
    group: Group, cliques: Cliques, histogram: IntArray, hidden: BoolArray, protection: int
) -> BoolArray:
    """Return the hidden rows with what gives each a range of at least ``protection``.

    ``histogram`` has the counts of ``group``, in which nothing is hidden.
    """
    choice = _Choice(group, cliques, histogram, protection)
    return choice.widen(hidden)


def some_histogram(group: Group) -> IntArray:
    """Return a histogram that has all counts of a group.

    Raises
    ------
    DataError
        If there is none, or the search for one gives up.
    """
    matrix, count = group.matrix, group.count
    bounds = np.zeros(matrix.shape[1], dtype=np.int64), np.full(matrix.shape[1], ENDLESS)
    none = sparse.csr_array((0, matrix.shape[1]), dtype=np.int64)
    program = IntegerProgram(matrix, (count, count), bounds, none)
    known = program.feasible()
    if program.found is None:
        raise DataError(
            "tables: counts contradict each other: no records have them"
            if known is False
            else "tables: found no records that have the counts; release the records instead"
        )
    return program.found


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
        # A row that is taken on the way needs no look: the witness that took it moves it.
        for row in np.flatnonzero(exposed).tolist():
            if not self._exposed(taken)[row]:
                continue
            moved = self._move(row, taken)
            np.minimum(self._least, self._count + moved, out=self._least)
            np.maximum(self._most, self._count + moved, out=self._most)
            fresh = (moved != 0) & ~taken
            if fresh.any():
                taken |= fresh
                self._set_free(fresh)
                self._note_endless(taken)
        found = np.zeros(len(hidden), dtype=np.bool_)
        found[counted] = taken[self._same]
        return found

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
        blocks = [[self._rows, -apart, apart], [self._ties, None, None]]
        matrix = sparse.csr_array(sparse.block_array(blocks, format="csr"))
        zero = np.zeros(self._ties.shape[0], dtype=np.int64)
        row_low = np.concatenate([np.where(taken, -self._room, 0), zero])
        row_high = np.concatenate([np.where(taken, ENDLESS, 0), zero])
        nothing = np.zeros(2 * count, dtype=np.int64)
        low = np.concatenate([-(self._histogram // self._protection), nothing])
        high = np.concatenate([np.full(variables + count, ENDLESS), self._room[published]])
        cost = np.concatenate([np.zeros(variables), np.tile(self._cost[published], 2)])
        self._published = published
        self._highs = highs_model(matrix, (row_low, row_high), (low, high), cost)

    def _set_free(self, fresh: BoolArray) -> None:
        """Let rows move at no cost."""
        at = self._rows.shape[1] + np.flatnonzero(fresh[self._published])
        index = np.concatenate([at, at + len(self._published)]).astype(np.int32)
        self._highs.changeColsCost(len(index), index, np.zeros(len(index)))

    def _move(self, row: int, taken: BoolArray) -> IntArray:
        """Return how a witness that moves a row, and little else, moves all rows."""
        found = []
        for sign in (1, -1):
            moved = self._solved(row, sign)
            if moved is not None:
                found.append((float(self._cost @ ((moved != 0) & ~taken)), -sign, moved))
                if not np.any((moved != 0) & ~taken):
                    break
        if not found:
            return self._one_more(row, taken)
        return min(found, key=lambda f: f[:2])[2]

    def _solved(self, row: int, sign: int) -> IntArray | None:
        """Return how the cheapest d moves all rows if it is whole, and moves a row by the sign."""
        inf, room = highspy.kHighsInf, float(self._room[row])
        if sign < 0 and not room:
            return None
        self._highs.changeRowBounds(row, *((1.0, inf) if sign > 0 else (-room, -1.0)))
        self._highs.run()
        solved = self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
        values = np.asarray(self._highs.getSolution().col_value) if solved else None
        self._highs.changeRowBounds(row, -room, inf)
        if values is None:
            return None
        return self._checked(np.rint(values[: self._rows.shape[1]]).astype(np.int64), row)

    def _checked(self, direction: IntArray, row: int) -> IntArray | None:
        """Return how a direction moves all rows, in whole numbers, or None if it is no witness."""
        step = self._protection * direction
        if np.any(self._histogram + step < 0) or np.any(self._ties @ step):
            return None
        moved: IntArray = self._rows @ step
        if not moved[row] or np.any((moved != 0) & (self._count + moved < LEAST)):
            return None
        return moved

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

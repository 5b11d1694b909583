"""The choice of further cells to withhold, each one proved by a second table that fits as well.

Let x be the true counts and A x = 0 the sums.  A direction d with A d = 0 and x + d >= 0 that
moves withheld cells only is a witness: nobody can tell x from x + d, so the range of a cell is at
least as wide as d moves it.  A linear program looks for the cheapest d that moves every exposed
cell by the protection asked; what it moves besides is withheld too.  It always exists: one record
more in each exposed cell.  Zeros need not move for that, so only counts above 0 are looked at.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms._hidden import hidden_system, parts_of
from bayesrisk.mechanisms._relations import Structure

__all__ = ["complement"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
#: Ten times the feasibility tolerance of HiGHS.
_SNAP = 1e-6
_INSIDE = 2  # attempts to protect withheld cells by each other, in a round
#: Where sums form trees or two-way tables a round is enough (see :func:`complement`).
_ROUNDS = 50


def complement(
    plan: Structure,
    counts: list[sparse.csr_array],
    hidden: list[sparse.csr_array],
    protection: int,
) -> list[sparse.csr_array]:
    """Return the hidden cells with what gives each a range of at least ``protection``.

    A round has at most four linear programs.  Their bounds are multiples of ``protection``, so
    if the matrix of sums is totally unimodular every cell that a vertex moves, moves far enough,
    and there is one round.  Otherwise cells that moved by a fraction are the next round's.
    """
    if any(part.nnz and part.data.min() < 0 for part in counts):
        raise DataError("tables: true counts must be >= 0, got a negative one")
    stored = [_stored(part) for part in counts]
    system = hidden_system(plan, counts, stored)
    where = system.variables
    true = np.zeros(len(where.cell), dtype=np.int64)
    taken = np.zeros(len(where.cell), dtype=np.bool_)
    for level, (values, mask) in enumerate(zip(counts, hidden, strict=True)):
        own = where.level == level
        if own.any():
            true[own] = np.asarray(values[where.place[own], where.cell[own]]).reshape(-1)
            taken[own] = np.asarray(mask[where.place[own], where.cell[own]]).reshape(-1) > 0
    if np.any(system.matrix @ true != system.right):
        raise DataError("tables: counts contradict each other: they do not add up")
    taken = _Choice(system.matrix, true, protection).widen(taken)
    found = []
    for level, part in enumerate(hidden):
        own = np.flatnonzero((where.level == level) & taken)
        at = where.place[own], where.cell[own]
        ones = np.ones(len(own), dtype=np.int64)
        found.append(sparse.csr_array((ones, at), shape=part.shape))
    return found


class _Choice:
    """Withheld cells of a system, and the directions found in which they can move."""

    def __init__(self, matrix: sparse.csr_array, true: IntArray, protection: int) -> None:
        self._matrix, self._columns = matrix, matrix.tocsc()
        self._true, self._protection = true, protection
        self._down = (true // protection * protection).astype(float)
        self._least = np.zeros(len(true))
        self._most = np.zeros(len(true))
        self._bound = np.diff(self._columns.indptr) > 0  # cells that some sum holds

    def widen(self, taken: BoolArray) -> BoolArray:
        """Return the withheld cells with those that protect them."""
        for _ in range(_ROUNDS):
            for _ in range(_INSIDE):
                if not self._inside(taken):
                    break
            exposed = self._exposed(taken)
            if not exposed.size:
                return taken
            moved = self._across(taken, exposed)
            taken = taken | (moved != 0)
        if self._exposed(taken).size:
            raise DataError(
                f"tables: withheld cells are not protected after {_ROUNDS} rounds; "
                f"{self._exposed(taken).size} have a range below {self._protection}"
            )
        return taken

    def _exposed(self, taken: BoolArray) -> IntArray:
        """Return the withheld cells that no direction found moves far enough."""
        narrow = self._most - self._least < self._protection
        return np.flatnonzero(taken & self._bound & narrow)

    def _inside(self, taken: BoolArray) -> bool:
        """Look for a direction of withheld cells alone; return whether it protects any more."""
        exposed = self._exposed(taken)
        if not exposed.size:
            return False
        own = np.flatnonzero(taken & self._bound)
        matrix, gain = self._matrix[:, own], np.zeros(len(self._true))
        gain[exposed] = -self._signs(exposed)
        bounds = np.column_stack(
            [-np.minimum(self._down[own], self._protection), np.full(len(own), self._protection)]
        )
        solved = _solve(gain[own], matrix, bounds)
        if solved is None:
            return False
        self._note(own, solved)
        return self._exposed(taken).size < exposed.size

    def _across(self, taken: BoolArray, exposed: IntArray) -> FloatArray:
        """Return the cheapest direction that moves all exposed cells: few and small counts."""
        # Sums that no exposed cell is linked to have nothing to say.
        parts = parts_of(self._matrix)
        own = np.flatnonzero(np.isin(parts, parts[exposed]))
        matrix = self._matrix[:, own]
        matrix = matrix[np.diff(matrix.indptr) > 0]
        cost = np.where(taken, 0, self._true)[own].astype(float)
        place = np.searchsorted(own, exposed)
        for signs in (self._signs(exposed), np.ones(len(exposed))):
            up = np.column_stack([np.zeros(len(own)), np.full(len(own), np.inf)])
            down = np.column_stack([np.zeros(len(own)), self._down[own]])
            up[place, 0] = np.where(signs > 0, self._protection, 0)
            up[place, 1] = np.where(signs > 0, np.inf, 0)
            down[place, 0] = np.where(signs < 0, self._protection, 0)
            down[place, 1] = np.where(signs < 0, self._down[exposed], 0)
            both = sparse.csr_array(sparse.hstack([matrix, -matrix], format="csr"))
            solved = _solve(np.concatenate([cost, cost]), both, np.vstack([up, down]))
            if solved is not None:
                moved = np.zeros(len(self._true))
                moved[own] = _snapped(solved[: len(own)] - solved[len(own) :])
                self._note(own, moved[own])
                return moved
        raise DataError("tables: no other counts fit the sums of withheld cells")

    def _signs(self, exposed: IntArray) -> FloatArray:
        """Return for each cell which way to move it, so that those of a sum cancel."""
        balance = np.zeros(self._matrix.shape[0])
        signs = np.ones(len(exposed))
        starts, rows, entries = self._columns.indptr, self._columns.indices, self._columns.data
        for i, cell in enumerate(exposed.tolist()):
            at = slice(starts[cell], starts[cell + 1])
            if entries[at] @ balance[rows[at]] > 0 and self._down[cell] > 0:
                signs[i] = -1
            balance[rows[at]] += signs[i] * entries[at]
        return signs

    def _note(self, own: IntArray, moved: FloatArray) -> None:
        """Keep how far cells move from the truth in a direction, if it is one."""
        moved = _snapped(moved)
        # A solver's word is no proof: what does not add up leaves its cells exposed.
        off = np.abs(self._matrix[:, own] @ moved) > _SNAP
        if off.any() or np.any(self._true[own] + moved < -_SNAP):
            return
        self._least[own] = np.minimum(self._least[own], moved)
        self._most[own] = np.maximum(self._most[own], moved)


def _stored(counts: sparse.csr_array) -> sparse.csr_array:
    """Return 1 for every count that is not 0."""
    found = counts.copy()
    found.data = (counts.data != 0).astype(np.int64)
    found.eliminate_zeros()
    return found


def _solve(cost: FloatArray, matrix: sparse.csr_array, bounds: FloatArray) -> FloatArray | None:
    """Return the vertex of least cost with ``matrix @ d = 0`` within bounds, or None."""
    linprog: Any = optimize.linprog  # its stubs know no sparse matrices
    solved = linprog(
        cost, A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=bounds, method="highs-ds"
    )
    return None if solved.status != 0 else np.asarray(solved.x)


def _snapped(values: FloatArray) -> FloatArray:
    """Return values with those next to a whole number made whole."""
    whole = np.rint(values)
    return np.where(np.abs(values - whole) < _SNAP, whole, values)

"""Deciding which claims are the same in every solution of a block.

Nothing here rests on floating point: a claim is constant because it is a whole-numbered
combination of published counts, or because bounds that were proved in whole numbers meet, or
because a solver finds no solution with another value, confirmed a second way.  It is not constant
because there are two solutions, each checked against every count.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._types import BoolArray, CodeArray, FloatArray, IntArray
from bayesrisk.reconstruction.claims.search.basis import RowBasis, row_basis
from bayesrisk.reconstruction.claims.search.exchange import Exchange
from bayesrisk.reconstruction.claims.search.lattice import Subsets, matches
from bayesrisk.reconstruction.claims.search.problem import BlockSystem
from bayesrisk.reconstruction.claims.search.space import ClaimSpace
from bayesrisk.reconstruction.solvers import IntegerModel
from bayesrisk.reconstruction.solvers.branching import (
    find_at_least,
    proved_bound,
    proves_infeasible,
)
from bayesrisk.reconstruction.solvers.deadline import Deadline
from bayesrisk.reconstruction.solvers.interfaces import SolverBackend
from bayesrisk.reconstruction.status import Status

VERIFIED, REFUTED, UNDECIDED = 1, 0, -1
_WHOLE, _POSITIVE = 1e-6, 1e-7
#: Classes for which the relaxation alone soon shows what can be positive.
_FEW = 100
#: Classes that are looked at first, for each row.
_LIKELY = 3
#: Rounds of exchanges without a refutation after which to stop, of all claims and of a few.
_BRIEF, _LONG = 2, 8
#: Relaxations of one search, before a general solver is asked.
_NODES = 400
#: Pairs of claim and cell that are looked at together.
_AT_ONCE = 2**22


@dataclass
class Decider:
    """Solutions of one block and what was proved about it.

    Parameters
    ----------
    space : ClaimSpace
        Possible cells.
    system : BlockSystem
        The block.
    solver : SolverBackend
        For what searches over the relaxation do not settle.
    deadline : Deadline
        When to stop.
    sets : Subsets
        Sets of columns that claims are about.
    radix : ndarray of int64
        What a code of each column, counted from 1, adds to the key of a claim.

    Attributes
    ----------
    model : IntegerModel
        The block without the classes that hold nobody in any solution, and without rows that
        follow from the others.
    start : ndarray of int64
        Where the cells of each class that is left begin in ``cells``, and where the last end.
    cells : ndarray of int64
        Cells of the classes that are left, class by class, as positions in the space.
    columns : scipy.sparse.csc_array
        All rows, for the classes that are left.
    solutions : list of ndarray of int64
        Records in each class that is left; each was checked against every count.
    """

    space: ClaimSpace
    system: BlockSystem
    solver: SolverBackend
    deadline: Deadline
    sets: Subsets
    radix: IntArray
    solutions: list[IntArray] = field(default_factory=list)

    def find(self, n_solutions: int, rng: np.random.Generator) -> str:
        """Look for solutions near vertices of random objectives.

        Parameters
        ----------
        n_solutions : int
            How many.
        rng : Generator
            Where the objectives come from.

        Returns
        -------
        str
            ``feasible``, ``infeasible`` (proved) or ``unknown``.
        """
        from bayesrisk.reconstruction.solvers.sifting import Sifted  # loads a compiled solver

        possible = self._possible()
        if possible is None:
            return Status.INFEASIBLE
        if self.deadline.late:
            return Status.UNKNOWN
        self._reduce(possible)
        likely = np.flatnonzero(self._likely[possible])
        self._linear = Sifted(self.model, likely, deadline=self.deadline)
        for _ in range(n_solutions):
            objective = rng.integers(-1000, 1001, self.model.low.size)
            if self._search(objective, None) == "none":
                return Status.INFEASIBLE
        return Status.FEASIBLE if self.solutions else Status.UNKNOWN

    def _possible(self) -> BoolArray | None:
        """Return the classes not proved to be empty in every solution; None without a solution.

        An interior point shows what can be positive.  That the others cannot is proved by the
        dual values of the largest sum of them.
        """
        from bayesrisk.reconstruction.solvers.highs import interior_point
        from bayesrisk.reconstruction.solvers.sifting import Sifted

        model = self.system.model
        every, inside = np.ones(model.low.size, np.bool_), None
        if every.size > _FEW:
            inside = interior_point(model, self.deadline)
        self._likely = _largest(inside, model)
        linear = Sifted(model, np.flatnonzero(self._likely), deadline=self.deadline)
        answer = linear.relax(model.low, model.high)
        columns = model.columns
        if answer.ray is not None and proves_infeasible(
            model, columns, model.low, model.high, answer.ray
        ):
            return None
        seen = inside > _POSITIVE if inside is not None else ~every
        while not seen.all():
            unseen = (~seen).astype(np.int64)
            answer = linear.maximise(unseen)
            if answer.values is None or answer.duals is None:
                return every
            if unseen @ answer.values < 1.0 - _WHOLE:
                low, high = model.low, model.high
                bound = proved_bound(model, unseen, columns, low, high, answer.duals)
                return seen if bound < 1 else every
            more = seen | (answer.values > _WHOLE)
            if more.sum() == seen.sum():
                return every
            seen = more
        return every

    def _reduce(self, possible: BoolArray) -> None:
        """Leave out classes that are empty, and rows that follow from the others."""
        full, kept = self.system.model, np.flatnonzero(possible)
        self.columns = sp.csc_array(sp.csc_array(full.rows)[:, kept])
        self.columns.sort_indices()
        size = np.diff(self.system.start)
        self.start = np.concatenate([[0], np.cumsum(size[kept])]).astype(np.int64)
        self.cells = self.system.members[np.repeat(possible, size)]
        self._basis: RowBasis = row_basis(self.columns, full.row_low)
        rows = self._basis.rows
        self.model = IntegerModel(
            full.low[kept],
            full.high[kept],
            sp.csr_array(sp.csr_array(self.columns)[rows]),
            full.row_low[rows],
            full.row_high[rows],
        )

    def take(self, whole: IntArray) -> bool:
        """Remember a solution, if it has every count."""
        fits = np.array_equal(self.columns @ whole, self.system.model.row_low)
        if fits and whole.min(initial=0) >= 0:
            self.solutions.append(whole)
            return True
        return False

    def _search(self, objective: IntArray, least: int | None) -> str:
        """Look for a solution, with at least some objective; remember it.

        Returns ``found``, ``none`` (proved) or ``unknown``.
        """
        self._linear.aim(objective)
        status, whole = find_at_least(
            self._linear, self.model, objective, least, nodes=_NODES, deadline=self.deadline
        )
        if status == "unknown" and not self.deadline.late:
            beyond = self.model if least is None else _beyond(self.model, objective, least)
            nothing = np.zeros(beyond.low.size, np.int64)
            answer = self.solver.solve(beyond, nothing, limits=self.deadline.limits)
            whole = answer.values
            status = "none" if answer.status == Status.INFEASIBLE else "unknown"
        if whole is not None:
            return "found" if self.take(whole) else "unknown"
        return status

    def records(self, solution: IntArray) -> CodeArray:
        """Return the records of a solution that claims can be about, one row each."""
        cells = self.cells[np.repeat(self.start[:-1], solution)]
        rows: CodeArray = self.space.codes[cells[self.space.eligible[cells]]]
        return rows

    def exchange(self, keys: IntArray) -> Exchange:
        """Return claims by their keys, and their counts in the solutions found so far."""
        codes = np.ascontiguousarray(self.space.codes[self.cells][:, self.sets.columns])
        eligible = self.space.eligible[self.cells]
        found = Exchange(self.columns, self.start, codes, eligible, self.sets, self.radix, keys)
        for solution in self.solutions:
            found.load(solution)
        return found

    def walk(self, claims: Exchange, *, idle: int = _BRIEF) -> BoolArray:
        """Refute claims by exchanges that begin at the last solution; return which ones."""
        before = claims.settled.copy()
        self.take(claims.walk(self.solutions[-1], idle=idle, deadline=self.deadline))
        return np.asarray(claims.settled & ~before, np.bool_)

    def _matched(self, patterns: CodeArray, classes: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return of which classes some, and every, cell matches each pattern."""
        size = np.diff(self.start)[classes]
        first = np.cumsum(size) - size
        at = np.repeat(self.start[classes] - first, size) + np.arange(int(size.sum()))
        cells = self.cells[at]
        found = matches(self.space.codes[cells], patterns) & self.space.eligible[cells]
        if found.shape[1] == classes.size:
            return found, found
        some: BoolArray = np.logical_or.reduceat(found, first, axis=1)
        every: BoolArray = np.logical_and.reduceat(found, first, axis=1)
        return some, every

    def decide(
        self, patterns: CodeArray, keys: IntArray, value: IntArray, status: NDArray[np.int8]
    ) -> None:
        """Decide which claims are the same in every solution, in place.

        Parameters
        ----------
        patterns : ndarray of int16
            Claims, by the value of every attribute, -1 for any; they match no unbound cell.
        keys : ndarray of int64
            Their keys, all different.
        value : ndarray of int64
            Matching records of the first solution: the only value a claim can have everywhere.
        status : ndarray of int8
            ``VERIFIED``, ``REFUTED`` or ``UNDECIDED``; only the last are looked at.
        """
        width = max(self.cells.size, 1)
        classes = np.arange(self.start.size - 1)
        step = max(1, _AT_ONCE // width)
        left = np.flatnonzero(status == UNDECIDED)
        for begin in range(0, left.size, step):
            if self.deadline.late:
                return
            part = left[begin : begin + step]
            some, every = self._matched(patterns[part], classes)
            whole = (some == every).all(axis=1)
            constant = np.full(part.size, -1, np.int64)
            constant[whole] = self._basis.values(np.ascontiguousarray(every[whole]))
            status[part[constant == value[part]]] = VERIFIED
        left = np.flatnonzero(status == UNDECIDED)
        if not left.size or self.deadline.late:
            return
        claims = self.exchange(keys[left])
        status[left[claims.settled | self.walk(claims, idle=_LONG)]] = REFUTED
        used = self._refute(patterns, value, status, 0)
        for at in left.tolist():
            if status[at] != UNDECIDED or self.deadline.late:
                continue
            self._settle(at, patterns, value, status)
            if len(self.solutions) > used:
                used = self._refute(patterns, value, status, used)
                claims.settled |= status[left] != UNDECIDED
                status[left[self.walk(claims)]] = REFUTED

    def _refute(
        self, patterns: CodeArray, value: IntArray, status: NDArray[np.int8], used: int
    ) -> int:
        """Refute the claims that differ in one of the solutions not used yet."""
        for solution in self.solutions[used:]:
            left = np.flatnonzero(status == UNDECIDED)
            filled = np.flatnonzero(solution)
            some, every = self._matched(patterns[left], filled)
            more = some @ solution[filled] > value[left]
            less = every @ solution[filled] < value[left]
            status[left[more | less]] = REFUTED
        return len(self.solutions)

    def _settle(
        self, at: int, patterns: CodeArray, value: IntArray, status: NDArray[np.int8]
    ) -> None:
        """Decide one claim: look for a solution with more matches, then for one with fewer."""
        some, every = self._matched(patterns[[at]], np.arange(self.start.size - 1))
        sides = ((some[0].astype(np.int64), 1), (-every[0].astype(np.int64), -1))
        proved = True
        for objective, sign in sides:
            least = sign * int(value[at]) + 1
            answer = self._search(objective, least)
            if answer == "found":
                status[at] = REFUTED
                return
            proved &= answer == "none"
        if proved:
            status[at] = VERIFIED


def _largest(inside: FloatArray | None, model: IntegerModel) -> BoolArray:
    """Return the classes of which a point inside has most, a few times as many as rows."""
    n_classes = model.low.size
    if inside is None:
        return np.ones(n_classes, np.bool_)
    found = np.zeros(n_classes, np.bool_)
    found[np.argsort(-inside, kind="stable")[: _LIKELY * model.row_low.size]] = True
    return found


def _beyond(model: IntegerModel, objective: IntArray, least: int) -> IntegerModel:
    """Return the model of the solutions whose objective is at least a number."""
    rows = sp.csr_array(sp.vstack([model.rows, sp.csr_array(objective[None, :])], format="csr"))
    most = int(np.maximum(objective * model.low, objective * model.high).sum())
    return IntegerModel(
        model.low,
        model.high,
        rows,
        np.append(model.row_low, least),
        np.append(model.row_high, max(most, least)),
    )

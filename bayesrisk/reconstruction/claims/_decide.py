"""Deciding which sums of classes are the same in every solution of a block.

Nothing here rests on floating point: a sum is constant because it is a whole-numbered combination
of published counts, or because bounds that were proved in whole numbers meet, or because a solver
finds no solution with another value, confirmed a second way.  It is not constant because there
are two solutions, each checked against every count.
"""

import time
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk.interfaces import SolverBackend
from bayesrisk.reconstruction.claims import _kernels as kernels
from bayesrisk.reconstruction.claims._block import BlockSystem
from bayesrisk.reconstruction.solvers import IntegerModel, Limits
from bayesrisk.reconstruction.solvers.branching import proved_bound, proves_infeasible

__all__ = ["REFUTED", "UNDECIDED", "VERIFIED", "Decider"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

VERIFIED, REFUTED, UNDECIDED = 1, 0, -1
_WHOLE = 1e-6


@dataclass
class Decider:
    """Solutions of one block and what was proved about it.

    Parameters
    ----------
    system : BlockSystem
        The block.
    solver : SolverBackend
        For what the relaxation does not settle.
    end : float
        When to stop, on the clock of ``time.perf_counter``.

    Attributes
    ----------
    solutions : list of ndarray of int64
        Whole-numbered solutions, each checked against every count.
    possible : ndarray of bool
        Classes not proved to be empty in every solution.
    """

    system: BlockSystem
    solver: SolverBackend
    end: float = np.inf
    solutions: list[Ints] = field(default_factory=list)

    def __post_init__(self) -> None:
        from bayesrisk.reconstruction.solvers._highs import HighsWarm  # loads a compiled solver

        self.model = self.system.model
        self.possible = np.ones(self.model.low.size, np.bool_)
        self._seen = np.zeros(self.model.low.size, np.bool_)
        self._columns = sp.csr_array(self.model.rows.T)
        # A basis stays feasible when the objective changes: the primal method starts from it.
        nothing = np.zeros(self.model.low.size, np.int64)
        self._linear = HighsWarm(self.model, nothing, strategy=4)
        self._dense = self.system.dense

    def late(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() > self.end

    def find(self, n_vertices: int, rng: np.random.Generator) -> str:
        """Look for solutions at vertices of random objectives.

        Parameters
        ----------
        n_vertices : int
            How many objectives.
        rng : Generator
            Where they come from.

        Returns
        -------
        str
            ``feasible``, ``infeasible`` (proved) or ``unknown``.
        """
        for _ in range(n_vertices):
            objective = rng.integers(-1000, 1001, self.model.low.size)
            answer = self._linear.maximise(objective)
            if answer.values is not None:
                self._take(answer.values)
            elif answer.ray is not None and self._contradicts(answer.ray):
                return "infeasible"
            if self.late():
                break
        if self.solutions:
            return "feasible"
        return self._ask(self.model)

    def _contradicts(self, ray: Floats) -> bool:
        low, high = self.model.low, self.model.high
        return proves_infeasible(self.model, self._columns, low, high, ray)

    def _take(self, values: Floats) -> Ints | None:
        """Remember the classes that a vertex fills, and the vertex if it is a solution."""
        self._seen |= values > _WHOLE
        whole = np.rint(values).astype(np.int64)
        if np.abs(values - whole).max(initial=0.0) > _WHOLE or not self._holds(whole):
            return None
        self.solutions.append(whole)
        return whole

    def _holds(self, values: Ints) -> bool:
        """Whether whole numbers are a solution: the same as asking the model, on dense rows."""
        rows, counts = self._dense[:, :-1], self._dense[:, -1]
        fits = values.min(initial=0) >= 0 and np.all(values <= self.model.high)
        return bool(fits and np.array_equal(rows @ values, counts))

    def _ask(self, model: IntegerModel) -> str:
        """Ask the solver for any solution; remember it."""
        left = None
        if np.isfinite(self.end):
            left = self.end - time.perf_counter()
            if left <= 0.0:
                return "unknown"
        nothing = np.zeros(model.low.size, np.int64)
        answer = self.solver.solve(model, nothing, limits=Limits(seconds=left))
        if answer.values is not None:
            self._take(answer.values.astype(np.float64))
            return "feasible"
        return "infeasible" if answer.status == "infeasible" else "unknown"

    def _at_most(self, objective: Ints, value: int) -> bool:
        """Whether the relaxation proves a bound of an objective; remember its vertex."""
        answer = self._linear.maximise(objective)
        if answer.values is None or answer.duals is None:
            return False
        self._take(answer.values)
        if objective @ answer.values >= value + 1 - _WHOLE:
            return False  # no proof can be had
        most = proved_bound(
            self.model, objective, self._columns, self.model.low, self.model.high, answer.duals
        )
        return most < value + 1

    def empty_classes(self) -> None:
        """Find the classes that hold nobody in any solution, and leave them out."""
        while not self.late():
            unseen = ~self._seen
            if not unseen.any():
                return
            before = int(unseen.sum())
            if self._at_most(unseen.astype(np.int64), 0):
                self.possible = self._seen.copy()
                return
            if int((~self._seen).sum()) == before:
                return

    def decide(self, some: Bools, every: Bools) -> tuple[NDArray[np.int8], Ints]:
        """Decide for sums of classes whether they are the same in every solution.

        Parameters
        ----------
        some, every : ndarray of bool
            Classes with at least one matching cell, and those with matching cells only; shape
            (sums, classes).  The number of matching records lies between the sums of both.

        Returns
        -------
        status : ndarray of int8
            ``VERIFIED``, ``REFUTED`` or ``UNDECIDED``.
        value : ndarray of int64
            The sum in the first solution: the only value it can have everywhere.
        """
        some, every = some & self.possible, every & self.possible
        first = self.solutions[0]
        value = every.astype(np.int64) @ first
        status = np.full(len(some), UNDECIDED, np.int8)
        whole = (some == every).all(axis=1)
        constant = self._combinations(every[whole])
        found = np.flatnonzero(whole)[constant == value[whole]]
        status[found] = VERIFIED
        self._used = 0
        self._refute(status, some, every, value)
        for at in np.argsort(-some.sum(axis=1), kind="stable").tolist():
            if status[at] == UNDECIDED and not self.late():
                self._settle(at, status, some, every, value)
        return status, value

    def _combinations(self, targets: Bools) -> Ints:
        """Return the value that the published counts give to each sum, -1 where they give none."""
        dense = self._dense
        dense = np.ascontiguousarray(dense[:, np.append(self.possible, True)])
        size = dense.shape[1] - 1
        pivots = np.full(len(dense), -1, np.int64)
        value = np.full(len(targets), -1, np.int64)
        if kernels.eliminate(dense, size, pivots) >= 0:
            wanted = np.ascontiguousarray(targets[:, self.possible].astype(np.int64))
            kernels.reduce_rows(dense, pivots, size, wanted, value)
        return value

    def _refute(self, status: NDArray[np.int8], some: Bools, every: Bools, value: Ints) -> None:
        """Refute the sums that differ in one of the solutions not used yet."""
        for solution in self.solutions[self._used :]:
            left = np.flatnonzero(status == UNDECIDED)
            more = some[left] @ solution > value[left]
            less = every[left] @ solution < value[left]
            status[left[more | less]] = REFUTED
        self._used = len(self.solutions)

    def _settle(
        self, at: int, status: NDArray[np.int8], some: Bools, every: Bools, value: Ints
    ) -> None:
        """Decide one sum: proved bounds of the relaxation first, then whole numbers."""
        settled = True
        sides = (
            (some[at].astype(np.int64), int(value[at])),
            (-every[at].astype(np.int64), -int(value[at])),
        )
        for objective, most in sides:
            proved = self._at_most(objective, most)
            self._refute(status, some, every, value)
            if status[at] == REFUTED:
                return
            if proved:
                continue
            answer = self._ask(_beyond(self.model, objective, most + 1))
            self._refute(status, some, every, value)
            if status[at] == REFUTED:
                return
            settled &= answer == "infeasible"
        if settled:
            status[at] = VERIFIED


def _beyond(model: IntegerModel, objective: Ints, least: int) -> IntegerModel:
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

"""Minimum and maximum of linear forms over a model's integer solutions: proved or bounded."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import BoolArray, IntArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel, Status, equal_rows
from bayesrisk.constraints.search import Questions
from bayesrisk.constraints.solvers import Deadline, SolverBackend

#: Variables up to which a relaxation begins with all of them.
_FEW = 300
#: Nodes of a dive.
_NODES = 300
#: Nodes of a question to the general solver where there is a limit: it counts as so many programs.
_ASKED = 50


def solve_beyond(
    model: IntegerModel,
    objective: IntArray,
    least: int | None,
    solver: SolverBackend,
    deadline: Deadline,
    *,
    most: int | None = None,
) -> tuple[str, IntArray | None]:
    """Search with a general solver for a solution with objective >= ``least`` (None: any).

    Return ``found``, ``none`` (confirmed a second way) or ``unknown``, and the solution.
    """
    beyond = model if least is None else model.beyond(objective, least, most)
    nothing, limits = np.zeros(objective.size, np.int64), deadline.limits
    if limits.nodes is not None:
        limits = replace(limits, nodes=min(limits.nodes, _ASKED))
        deadline.spend(_ASKED)
    answer = solver.solve(beyond, nothing, limits=limits)
    if answer.values is not None:
        return "found", answer.values
    return "none" if answer.status == Status.INFEASIBLE else "unknown", None


class FormEnds:
    """Maxima of linear forms and of their negatives: the proved bounds, and the values reached.

    The first half of all arrays is for the forms, the second for their negatives. No solution
    exceeds ``goal``, and ``reached`` is the largest value of a solution. ``ends`` are the initial
    upper bounds, and ``star`` is a known solution, if any. Cases that ``linear`` does not settle
    within ``nodes`` go to ``solver``, if there is one.
    """

    def __init__(
        self,
        model: IntegerModel,
        linear: Questions,
        forms: sp.csr_array,
        ends: tuple[IntArray, IntArray],
        star: IntArray | None,
        *,
        solver: SolverBackend | None = None,
        deadline: Deadline | None = None,
        nodes: int = _NODES,
    ) -> None:
        self._model, self._linear, self._nodes = model, linear, nodes
        self._solver, self._deadline = solver, deadline or Deadline()
        self._forms = sp.csr_array(sp.vstack([forms, -forms], format="csr"))
        self.goal = np.concatenate([ends[1], -ends[0]])
        none = np.full(self.goal.size, -ENDLESS)
        self.reached: IntArray = none if star is None else self._forms @ star
        self._begun = star is not None

    @property
    def open(self) -> IntArray:
        """Indices of the maxima that are not yet proved."""
        return np.flatnonzero(self.reached < self.goal)

    def settle(self) -> None:
        """Prove all maxima, as far as the time limit allows."""
        half = np.arange(self.goal.size // 2)
        if self._begun:
            self.reach_together(half.size + half)
            self.reach_together(half)
        for end in self.open.tolist():
            while self.reached[end] < self.goal[end]:
                if self._deadline.late:
                    return
                if not self._tighten(end):
                    break

    def _find(
        self, objective: IntArray, least: int | None, nodes: int | None = None
    ) -> tuple[str, bool]:
        """Search for a solution of large objective; return the finding and whether it is new."""
        status, values = self._linear.find(objective, least, nodes=nodes or self._nodes)
        return status, values is not None and self._note(values)

    def _note(self, values: IntArray) -> bool:
        """Record a solution's values; return whether one exceeds those reached before."""
        if not self._model.holds(values):
            return False
        sums, self._begun = self._forms @ values, True
        larger = bool((sums > self.reached).any())
        self.reached = np.maximum(self.reached, sums)
        return larger

    def reach_together(self, side: IntArray) -> None:
        """Search for solutions that bring all open ends of one side to their goals at once.

        Repeated while two or more of them get there; an end that was reached needs no proof of its
        own.
        """
        waiting = side.size + 2
        while not self._deadline.late:
            left = side[(self.reached[side] < self.goal[side]) & (self.goal[side] < ENDLESS)]
            if left.size < 2 or left.size > waiting - 2:
                return
            waiting = left.size
            weight = np.bincount(left, minlength=self.goal.size)
            self._find((weight @ self._forms).astype(np.int64), None, 1)

    def _tighten(self, end: int) -> bool:
        """Lower one end's proved bound or find a larger value; return whether either succeeded."""
        objective, span = np.zeros_like(self._model.low), slice(*self._forms.indptr[end : end + 2])
        objective[self._forms.indices[span]] = self._forms.data[span]
        bound, values = self._linear.bound(objective)
        if values is not None and self._note(values) and self.reached[end] >= self.goal[end]:
            return True
        if bound is not None and bound < self.goal[end]:
            self.goal[end] = max(bound, int(self.reached[end]))
            return True
        status, new = self._find(objective, int(self.goal[end]))
        if new:
            return True
        if status == "none":
            self.goal[end] -= 1
            return self._begun  # without a solution at all it would have no end
        if self._deadline.late or self._solver is None:
            return False
        # A general solver looks for anything above what was seen: that there is none, it confirms.
        least, most = int(self.reached[end]) + 1, int(self.goal[end])
        status, values = solve_beyond(
            self._model, objective, least, self._solver, self._deadline, most=most
        )
        if values is not None:
            return self._note(values)
        if status == "none":
            self.goal[end] = self.reached[end]
        return status == "none"


def row_ends(
    model: IntegerModel, star: IntArray, sums: tuple[IntArray, IntArray], targets: BoolArray,
    solver: SolverBackend, deadline: Deadline,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:  # fmt: skip
    """Return the proved least and most of each row, and the least and most that solutions reach.

    The search begins at the solution ``star``; ``sums`` are the least and most of others.  No
    weight is negative.  The ends of rows that are not among ``targets`` are no more than proved.
    """
    group, first = equal_rows(model.rows)
    rows, row_low, row_high = (
        sp.csr_array(model.rows[first]),
        model.row_low[first],
        model.row_high[first],
    )
    np.maximum.at(row_low, group, model.row_low)
    np.minimum.at(row_high, group, model.row_high)
    model = IntegerModel(model.low, model.high, rows, row_low, row_high)
    least, most = rows @ model.low, rows @ model.high
    low, high = np.maximum(row_low, least), np.minimum(row_high, most)
    # Rows that their variables' bounds fill, or of one variable, bind nothing.
    binding = (np.diff(rows.indptr) > 1) & ((low > least) | (high < most))
    lean = model.part(np.flatnonzero(binding))
    begin = np.flatnonzero(star) if star.size > _FEW else np.arange(star.size)
    from bayesrisk.constraints.highs import Sifted  # loads a compiled solver

    linear = Sifted(lean, begin, deadline=deadline)
    ends = FormEnds(model, linear, rows, (low, high), star, solver=solver, deadline=deadline)
    ends.reached = np.maximum(ends.reached, np.concatenate([sums[1][first], -sums[0][first]]))
    settled = np.tile(np.bincount(group, targets, first.size) == 0.0, 2)  # enough is known of these
    ends.reached[settled] = np.maximum(ends.reached, ends.goal)[settled]
    ends.settle()
    most, least = np.split(ends.goal, 2)
    above, below = np.split(ends.reached, 2)
    return -least[group], most[group], -below[group], above[group]

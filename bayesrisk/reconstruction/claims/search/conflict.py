"""Which published cells contradict each other, where no records fit them all."""

import numpy as np

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.claims.search.problem import BlockSystem, Conflict
from bayesrisk.reconstruction.claims.search.space import ClaimSpace
from bayesrisk.reconstruction.solvers import IntegerModel
from bayesrisk.reconstruction.solvers.branching import proves_infeasible
from bayesrisk.reconstruction.solvers.deadline import Deadline
from bayesrisk.reconstruction.solvers.interfaces import SolverBackend
from bayesrisk.reconstruction.status import Status

#: Seconds that a solver may take for one set of rows, and for all.
_EACH, _ALL = 1.0, 10.0


def smallest_conflict(system: BlockSystem, solver: SolverBackend, deadline: Deadline) -> Conflict:
    """Return rows without a solution, none of which can be left out.

    Parameters
    ----------
    system : BlockSystem
        A block without a solution.
    solver : SolverBackend
        For rows whose relaxation has solutions.
    deadline : Deadline
        When to stop.

    Returns
    -------
    Conflict
        Rows that could not be tried within seconds stay in.
    """
    end = deadline.sooner(_ALL)
    left = np.arange(system.query.size)
    for row in left.tolist():
        fewer = left[left != row]
        if not end.late and _impossible(_rows(system.model, fewer), solver, end):
            left = fewer
    return Conflict("contradict each other", tuple(system.query[left].tolist()))


def _rows(model: IntegerModel, rows: IntArray) -> IntegerModel:
    low, high = model.row_low[rows], model.row_high[rows]
    # Bounds of a cell come from all rows: without some of them they must not stay.
    free = np.full(model.high.size, int(model.row_high.max(initial=0)))
    return IntegerModel(model.low, free, model.rows[rows], low, high)


def _impossible(model: IntegerModel, solver: SolverBackend, deadline: Deadline) -> bool:
    """Whether rows are proved to have no solution."""
    from bayesrisk.reconstruction.solvers.highs import HighsWarm  # loads a compiled solver

    if not model.row_low.size:
        return False
    nothing = np.zeros(model.low.size, np.int64)
    answer = HighsWarm(model, nothing, deadline=deadline).maximise(nothing)
    if answer.ray is not None:
        return proves_infeasible(model, model.columns, model.low, model.high, answer.ray)
    found = solver.solve(model, nothing, limits=deadline.sooner(_EACH).limits)
    return bool(found.status == Status.INFEASIBLE)


def describe(conflict: Conflict, space: ClaimSpace, counts: IntArray) -> str:
    """Return a conflict in words, with its published cells and their counts."""
    names = ", ".join(f"{space.names[q][1]} = {counts[q]}" for q in conflict.query)
    return f"{conflict.reason}: {names}"

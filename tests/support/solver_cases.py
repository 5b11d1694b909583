"""Solvers that fail in known ways: what they say must never become a proof."""

import numpy as np

from bayesrisk.constraints.highs import HighsSolver
from bayesrisk.constraints.solvers import Raw, SolverResult


class Silent:
    """A solver that always stops before it knows anything."""

    name = "silent"

    def solve(self, model, objective, *, limits=None):
        return SolverResult("unknown", None, np.inf, np.inf, None, 0.5)


class WrongPresolve(HighsSolver):
    """HiGHS whose presolve calls every program infeasible, as some versions do now and then."""

    def __init__(self):
        super().__init__(dive=False)
        self.lies = 0

    def _run(self, model, objective, limits, *, presolve):
        if presolve == "choose":
            self.lies += 1
            return Raw("infeasible", -np.inf, None)
        return super()._run(model, objective, limits, presolve=presolve)

"""Integer programs through PuLP: the only module that imports it."""

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pulp

from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.solvers import (
    Deadline,
    Limits,
    Raw,
    SolverResult,
    checked_nodes,
    settle_answer,
)
from bayesrisk.exceptions import ArgumentError, MissingDependencyError

#: Short names; CBC is called differently in every major version of PuLP.
_NAMES = {
    "highs": ("HiGHS",),
    "cbc": ("COIN_CMD", "PULP_CBC_CMD"),
    "glpk": ("GLPK_CMD",),
    "scip": ("SCIP_PY", "SCIP_CMD"),
    "gurobi": ("GUROBI", "GUROBI_CMD"),
    "cplex": ("CPLEX_PY", "CPLEX_CMD"),
}


class PulpSolver:
    """Maximises over an :class:`IntegerModel` with a solver that PuLP drives.

    Parameters
    ----------
    solver : str
        ``highs``, ``cbc``, ``glpk``, ``scip``, ``gurobi``, ``cplex``, or a name that PuLP lists.
    **options : object
        Options of that solver, as PuLP takes them.
    """

    def __init__(self, solver: str, **options: object) -> None:
        self.name = f"pulp:{solver}"
        solvers = pulp.listSolvers()
        candidates = [n for n in _NAMES.get(solver.lower(), (solver,)) if n in solvers]
        if not candidates:
            offered = ", ".join(sorted({*_NAMES, *solvers}))
            raise ArgumentError("solver", f"must be a solver of PuLP ({offered})", got=solver)
        for self._kind in candidates:
            if _new_solver(self._kind, msg=False).available():
                break
        else:
            raise MissingDependencyError(
                f"solver {solver!r} is not installed: PuLP finds none of {', '.join(candidates)}"
            )
        self._options: dict[str, Any] = options

    def solve(
        self, model: IntegerModel, objective: IntArray, *, limits: Limits | None = None
    ) -> SolverResult:
        """Return the maximum; infeasibility is confirmed without presolve if the solver can."""
        limits = limits or Limits()
        checked_nodes(limits.nodes, self.name)
        start = time.perf_counter()
        deadline = Deadline(limits.seconds)
        raw = self._run(model, objective, limits, presolve=True)
        if raw.status == Status.INFEASIBLE:
            left = replace(limits, seconds=deadline.limits.seconds)
            raw = Raw(Status.UNKNOWN, np.inf, None)
            if not deadline.late:
                raw = self._run(model, objective, left, presolve=False)
        seconds = time.perf_counter() - start
        return settle_answer(model, objective, raw, gap=limits.gap, seconds=seconds)

    def _solver(self, limits: Limits, *, presolve: bool) -> pulp.LpSolver:
        settings: dict[str, Any] = {"msg": False, **self._options}
        if self._kind in ("HiGHS", "PULP_CBC_CMD", "COIN_CMD"):
            settings |= {"threads": 1, "gapRel": 0.0}
        if self._kind == "HiGHS":
            settings |= {"gapAbs": limits.gap, "random_seed": 0}
            settings |= {} if presolve else {"presolve": "off"}
        elif not presolve and self._kind in ("PULP_CBC_CMD", "COIN_CMD"):
            settings["presolve"] = False
        if limits.seconds is not None:
            settings["timeLimit"] = limits.seconds
        return _new_solver(self._kind, **settings)

    def _run(
        self, model: IntegerModel, objective: IntArray, limits: Limits, *, presolve: bool
    ) -> Raw:
        problem = pulp.LpProblem("model", pulp.LpMaximize)
        variables = [
            problem.add_variable(f"x{j}", low, high, cat="Integer")
            for j, (low, high) in enumerate(
                zip(model.low.tolist(), model.high.tolist(), strict=True)
            )
        ]
        problem.setObjective(
            pulp.LpAffineExpression(
                [(v, c) for v, c in zip(variables, objective.tolist(), strict=True)]
            )
        )
        rows = model.rows
        for i in range(rows.shape[0]):
            span = slice(rows.indptr[i], rows.indptr[i + 1])
            terms = zip(rows.indices[span].tolist(), rows.data[span].tolist(), strict=True)
            row = pulp.LpAffineExpression([(variables[j], a) for j, a in terms])
            low, high = int(model.row_low[i]), int(model.row_high[i])
            if low == high:
                problem += (row == low, f"r{i}")
            else:
                problem += (row >= low, f"l{i}")
                problem += (row <= high, f"h{i}")
        start = time.perf_counter()
        problem.solve(self._solver(limits, presolve=presolve))
        stopped = limits.seconds is not None and time.perf_counter() - start >= limits.seconds
        return _answer(problem, variables, objective, self._kind, stopped=stopped)


def _new_solver(kind: str, **settings: object) -> pulp.LpSolver:
    with warnings.catch_warnings():
        # The bundled CBC says that it will go; it is asked for only where there is no other.
        warnings.simplefilter("ignore", DeprecationWarning)
        return pulp.getSolver(kind, **settings)


def _answer(
    problem: pulp.LpProblem,
    variables: list[pulp.LpVariable],
    objective: IntArray,
    kind: str,
    *,
    stopped: bool,
) -> Raw:
    """Return the solver's answer; PuLP's ``status`` alone would call a time limit optimal."""
    proved = problem.sol_status == pulp.LpSolutionOptimal
    # CBC says of a model without whole solutions only that it found none.
    if problem.sol_status == pulp.LpSolutionInfeasible or (
        problem.status == pulp.LpStatusInfeasible and not stopped
    ):
        return Raw(Status.INFEASIBLE, -np.inf, None)
    if not proved and problem.sol_status != pulp.LpSolutionIntegerFeasible:
        return Raw(Status.UNKNOWN, np.inf, None)
    values = np.array([0.0 if v.value() is None else float(v.value()) for v in variables])
    bound = np.inf
    if kind == "HiGHS":
        dual_bound = float(problem.solverModel.getInfo().mip_dual_bound)
        # PuLP hands maximisation over as the minimisation of negated costs.
        bound = -dual_bound if np.isfinite(dual_bound) else np.inf
    if not np.isfinite(bound) and proved:
        bound = float(objective @ np.rint(values))
    return Raw(Status.PROVED if proved else Status.FEASIBLE, bound, values)

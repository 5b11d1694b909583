"""HiGHS without a modelling layer."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._highs import highspy
from bayesrisk._types import IntArray
from bayesrisk.reconstruction.solvers.branching import Relaxation, branch_and_bound
from bayesrisk.reconstruction.solvers.deadline import Deadline
from bayesrisk.reconstruction.solvers.model import (
    IntegerModel,
    Limits,
    Raw,
    SolverResult,
    settle_answer,
)
from bayesrisk.reconstruction.status import Status

_STATUS = highspy.HighsModelStatus
#: Most coefficients of a model that presolve is let at when there is a time limit.
_PRESOLVED = 100_000


class HighsSolver:
    """Maximises over an :class:`IntegerModel` with HiGHS, one thread, no relative gap.

    Parameters
    ----------
    dive : bool, default True
        Whether to try branch and bound over the linear relaxation first, which small models
        need less time for; its bounds are proved in integer arithmetic.
    **options : object
        Options of HiGHS by name.

    Attributes
    ----------
    name : str
        ``"highs"``.
    """

    name = "highs"

    def __init__(self, *, dive: bool = True, **options: Any) -> None:
        highs: Any = highspy.Highs  # has no types
        self._highs, self._linear = highs(), highs()
        self._dive = dive
        fixed = {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0, "random_seed": 0}
        self._options = {**fixed, **options}
        for option, value in {**self._options, "presolve": "off"}.items():
            self._linear.setOptionValue(option, value)

    def solve(
        self, model: IntegerModel, objective: IntArray, *, limits: Limits | None = None
    ) -> SolverResult:
        """Maximise ``objective`` over the model.

        Parameters
        ----------
        model : IntegerModel
            Bounds and rows.
        objective : ndarray of int64
            Coefficients of the variables.
        limits : Limits, optional
            Time, gap and nodes; the few nodes of the dive come before those.

        Returns
        -------
        SolverResult
            Checked in integer arithmetic; infeasibility was confirmed without presolve.
        """
        limits = limits or Limits()
        start = time.perf_counter()
        deadline = Deadline(limits.seconds)
        raw = None
        if self._dive:
            linear = _Linear(self._linear, model, objective, deadline)
            raw = branch_and_bound(linear, model, objective, limits)
        if raw is None:
            # Presolve of a large model does not look at the clock.
            quick = limits.seconds is None or model.rows.nnz <= _PRESOLVED
            if quick:
                raw = self._within(model, objective, limits, deadline, presolve="choose")
            if raw is None or raw.status == Status.INFEASIBLE:
                # Presolve of several versions declares feasible models infeasible now and then.
                raw = self._within(model, objective, limits, deadline, presolve="off")
        seconds = time.perf_counter() - start
        return settle_answer(model, objective, raw, gap=limits.gap, seconds=seconds)

    def _within(
        self,
        model: IntegerModel,
        objective: IntArray,
        limits: Limits,
        deadline: Deadline,
        *,
        presolve: str,
    ) -> Raw:
        """Run in the time that is left."""
        if deadline.late:
            return Raw(Status.UNKNOWN, np.inf, None)
        left = replace(limits, seconds=deadline.limits.seconds)
        return self._run(model, objective, left, presolve=presolve)

    def _run(
        self, model: IntegerModel, objective: IntArray, limits: Limits, *, presolve: str
    ) -> Raw:
        highs = self._highs
        highs.clear()
        settings = {
            **self._options,
            "presolve": presolve,
            "mip_abs_gap": limits.gap,
            "time_limit": highspy.kHighsInf if limits.seconds is None else float(limits.seconds),
        }
        if limits.nodes is not None:
            settings["mip_max_nodes"] = limits.nodes
        for option, value in settings.items():
            highs.setOptionValue(option, value)
        highs.passModel(translated(model, objective, whole=True))
        highs.run()
        status = highs.getModelStatus()
        # An error of presolve is not the last word either: the caller looks again without it.
        failed = presolve != "off" and status == _STATUS.kSolveError
        if status == _STATUS.kInfeasible or failed:
            return Raw(Status.INFEASIBLE, -np.inf, None)
        info = highs.getInfo()
        bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else np.inf
        if info.primal_solution_status != 2:  # no feasible values
            return Raw(Status.UNKNOWN, bound, None)
        values = np.array(highs.getSolution().col_value)
        return Raw(Status.PROVED if status == _STATUS.kOptimal else Status.FEASIBLE, bound, values)


class _Bounded:
    """A relaxation with changing bounds of the variables, each solved from the last basis."""

    _highs: Any
    _low: IntArray
    _high: IntArray
    _deadline: Deadline

    def relax(self, low: IntArray, high: IntArray) -> Relaxation:
        """Return values and dual values within bounds of the variables, or a ray.

        Parameters
        ----------
        low, high : ndarray of int64
            Bounds of the variables.

        Returns
        -------
        Relaxation
            All None when the solver says neither.
        """
        changed = np.flatnonzero((low != self._low) | (high != self._high))
        if changed.size:
            self._highs.changeColsBounds(
                changed.size,
                changed.astype(np.int32),
                low[changed].astype(np.float64),
                high[changed].astype(np.float64),
            )
            self._low, self._high = low, high
        if self._deadline.late:
            return Relaxation(None, None, None)
        stop_at(self._highs, self._deadline)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status == _STATUS.kOptimal:
            found = self._highs.getSolution()
            return Relaxation(np.array(found.col_value), np.array(found.row_dual), None)
        ray = None
        if status == _STATUS.kInfeasible:
            _, there, values = self._highs.getDualRay()
            ray = np.array(values) if there else None
        return Relaxation(None, None, ray)


class _Linear(_Bounded):
    """The relaxation of a model that a solver looks at once."""

    def __init__(
        self, highs: Any, model: IntegerModel, objective: IntArray, deadline: Deadline
    ) -> None:
        self._highs, self._deadline = highs, deadline
        self._low, self._high = model.low, model.high
        highs.clearModel()
        highs.passModel(translated(model, objective, whole=False))


def stop_at(highs: Any, deadline: Deadline) -> None:
    """Let HiGHS stop at a deadline; its own clock runs on from model to model."""
    left = deadline.left
    limit = highspy.kHighsInf if np.isinf(left) else highs.getRunTime() + left
    highs.setOptionValue("time_limit", limit)


def interior_point(model: IntegerModel, deadline: Deadline) -> NDArray[np.float64] | None:
    """Return a point inside the relaxation: what can be positive is, nearly always.

    An interior-point method without a crossover to a vertex ends near the analytic centre of the
    solutions.  This proves nothing; it is a guide.

    Parameters
    ----------
    model : IntegerModel
        Bounds and rows.
    deadline : Deadline
        When to stop.

    Returns
    -------
    ndarray or None
        Values of the variables; None when the method did not converge.
    """
    if deadline.late:
        return None
    made: Any = highspy.Highs  # has no types
    highs = made()
    fixed = {"output_flag": False, "threads": 1, "random_seed": 0, "presolve": "off"}
    for option, value in {**fixed, "solver": "ipm", "run_crossover": "off"}.items():
        highs.setOptionValue(option, value)
    highs.passModel(translated(model, np.zeros(model.low.size, np.int64), whole=False))
    stop_at(highs, deadline)
    highs.run()
    if highs.getModelStatus() != _STATUS.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)


def translated(model: IntegerModel, objective: IntArray, *, whole: bool) -> Any:
    """Return the model in the form that HiGHS takes, whole-numbered or relaxed."""
    n_rows, n_vars = model.rows.shape
    program = highspy.HighsLp()
    program.num_col_ = n_vars
    program.num_row_ = n_rows
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = objective.astype(np.float64)
    program.col_lower_ = model.low.astype(np.float64)
    program.col_upper_ = model.high.astype(np.float64)
    program.row_lower_ = model.row_low.astype(np.float64)
    program.row_upper_ = model.row_high.astype(np.float64)
    if whole:
        program.integrality_ = [highspy.HighsVarType.kInteger] * n_vars
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.num_col_ = n_vars
    program.a_matrix_.num_row_ = n_rows
    program.a_matrix_.start_ = model.rows.indptr.astype(np.int32)
    program.a_matrix_.index_ = model.rows.indices.astype(np.int32)
    program.a_matrix_.value_ = model.rows.data.astype(np.float64)
    return program


class HighsWarm(_Bounded):
    """The relaxation of one set of rows, again and again with other bounds and objectives.

    Every solution starts from the last basis.

    Parameters
    ----------
    model : IntegerModel
        Bounds and rows to begin with.
    objective : ndarray of int64
        Coefficients of the variables, maximised.
    deadline : Deadline, optional
        When every solution stops; no limit by default.
    """

    def __init__(
        self,
        model: IntegerModel,
        objective: IntArray,
        *,
        deadline: Deadline | None = None,
    ) -> None:
        highs: Any = highspy.Highs  # has no types
        self._deadline = deadline or Deadline()
        self._highs = highs()
        fixed = {"output_flag": False, "threads": 1, "random_seed": 0, "presolve": "off"}
        for option, value in fixed.items():
            self._highs.setOptionValue(option, value)
        self._highs.passModel(translated(model, objective, whole=False))
        self._columns = np.arange(model.low.size, dtype=np.int32)
        self._rows = np.arange(model.row_low.size, dtype=np.int32)
        self._low, self._high = model.low, model.high

    def rebound(self, row_low: IntArray, row_high: IntArray) -> None:
        """Set the bounds of the rows."""
        self._highs.changeRowsBounds(
            self._rows.size, self._rows, row_low.astype(np.float64), row_high.astype(np.float64)
        )

    def maximise(self, objective: IntArray) -> Relaxation:
        """Return values and dual values of the largest objective within the same bounds."""
        self.aim(objective)
        return self.relax(self._low, self._high)

    def aim(self, objective: NDArray[Any]) -> None:
        """Set the objective."""
        self._highs.changeColsCost(self._columns.size, self._columns, objective.astype(np.float64))

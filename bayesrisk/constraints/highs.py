"""HiGHS without a modelling layer: programs, and relaxations that start warm."""

import time
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from bayesrisk._base.highs import highspy, new_highs
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.model import ENDLESS, IntegerModel, Status
from bayesrisk.constraints.search import Questions, Relaxation, branch_and_bound
from bayesrisk.constraints.solvers import Deadline, Limits, Raw, SolverResult, settle_answer

Highs: TypeAlias = Any  # highspy's types lack methods
STATUS = highspy.HighsModelStatus
#: Most coefficients of a model that presolve is let at when there is a time limit.
_PRESOLVED = 100_000

DUAL, PRIMAL = 1, 4  # strategies of the simplex method
FIXED = {"output_flag": False, "threads": 1, "random_seed": 0}


class HighsSolver:
    """Maximises over an :class:`IntegerModel` with HiGHS, one thread, no relative gap.

    With ``dive``, branch and bound over the linear relaxation is tried first, which small models
    need less time for; its bounds are proved in integer arithmetic.  Other options are those of
    HiGHS.
    """

    name = "highs"

    def __init__(self, *, dive: bool = True, **options: Any) -> None:
        self._dive, self._options = dive, {**FIXED, "mip_rel_gap": 0.0, **options}
        self._highs, self._linear = new_highs(), new_highs(**{**self._options, "presolve": "off"})

    def solve(
        self, model: IntegerModel, objective: IntArray, *, limits: Limits | None = None
    ) -> SolverResult:
        """Maximise ``objective``; infeasibility is confirmed without presolve."""
        limits = limits or Limits()
        start = time.perf_counter()
        deadline = Deadline(limits.seconds)
        raw: Raw | None = None
        if self._dive:
            linear = HighsWarm(model, objective, deadline=deadline, highs=self._linear)
            raw = branch_and_bound(linear, model, objective, limits)
        if raw is None:
            # Presolve of a large model does not look at the clock; that of several versions
            # declares feasible models infeasible now and then.
            quick = limits.seconds is None or model.rows.nnz <= _PRESOLVED
            for presolve in ("choose", "off") if quick else ("off",):
                raw = Raw(Status.UNKNOWN, np.inf, None)
                if not deadline.late:
                    left = replace(limits, seconds=deadline.limits.seconds)
                    raw = self._run(model, objective, left, presolve=presolve)
                if raw.status != Status.INFEASIBLE:
                    break
        raw = raw or Raw(Status.UNKNOWN, np.inf, None)
        seconds = time.perf_counter() - start
        return settle_answer(model, objective, raw, gap=limits.gap, seconds=seconds)

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
        failed = presolve != "off" and status == STATUS.kSolveError
        if status == STATUS.kInfeasible or failed:
            return Raw(Status.INFEASIBLE, -np.inf, None)
        info = highs.getInfo()
        bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else np.inf
        if info.primal_solution_status != 2:  # no feasible values
            return Raw(Status.UNKNOWN, bound, None)
        values = np.array(highs.getSolution().col_value)
        return Raw(Status.PROVED if status == STATUS.kOptimal else Status.FEASIBLE, bound, values)


def set_time_limit(highs: Highs, deadline: Deadline) -> None:
    """Let HiGHS stop at a deadline; its own clock runs on from model to model."""
    left = deadline.left
    limit = highspy.kHighsInf if np.isinf(left) else highs.getRunTime() + left
    highs.setOptionValue("time_limit", limit)


def dual_ray(highs: Highs) -> FloatArray | None:
    """Return the combination of rows that shows infeasibility, where that is the last answer."""
    if highs.getModelStatus() != STATUS.kInfeasible:
        return None
    _, exists, values = highs.getDualRay()
    return np.array(values) if exists else None


def interior_point(model: IntegerModel, deadline: Deadline) -> FloatArray | None:
    """Return a point inside the relaxation, or None: what can be positive is, nearly always.

    An interior-point method without a crossover to a vertex ends near the analytic centre of the
    solutions.  This proves nothing; it is a guide.
    """
    if deadline.late:
        return None
    highs = new_highs(**FIXED, presolve="off", solver="ipm", run_crossover="off")
    highs.passModel(translated(model, np.zeros(model.low.size, np.int64), whole=False))
    set_time_limit(highs, deadline)
    highs.run()
    if highs.getModelStatus() != STATUS.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)


def floats(ends: IntArray | FloatArray) -> FloatArray:
    """Return ends as HiGHS takes them, infinite where there is none."""
    return np.where(np.abs(ends) >= ENDLESS, np.copysign(np.inf, ends), ends)


def translated(
    model: IntegerModel, objective: IntArray | FloatArray, *, whole: bool
) -> highspy.HighsLp:
    """Return the model in the form that HiGHS takes, whole-numbered or relaxed."""
    n_rows, n_vars = model.rows.shape
    program = highspy.HighsLp()
    program.num_col_ = n_vars
    program.num_row_ = n_rows
    program.sense_ = highspy.ObjSense.kMaximize
    program.col_cost_ = objective.astype(np.float64)
    program.col_lower_ = floats(model.low)
    program.col_upper_ = floats(model.high)
    program.row_lower_ = floats(model.row_low)
    program.row_upper_ = floats(model.row_high)
    if whole:
        program.integrality_ = [highspy.HighsVarType.kInteger] * n_vars
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.num_col_ = n_vars
    program.a_matrix_.num_row_ = n_rows
    program.a_matrix_.start_ = model.rows.indptr.astype(np.int32)
    program.a_matrix_.index_ = model.rows.indices.astype(np.int32)
    program.a_matrix_.value_ = model.rows.data.astype(np.float64)
    return program


class HighsWarm(Questions):
    """The relaxation of one set of rows, again and again with other bounds and objectives.

    Every solution starts from the last basis; ``highs`` is a solver to use again.  With ``primal``
    the objective is what changes, and not the bounds; a ``cost`` is made as small as can be.
    """

    def __init__(
        self,
        model: IntegerModel,
        objective: IntArray | FloatArray,
        *,
        deadline: Deadline | None = None,
        highs: Highs | None = None,
        primal: bool = False,
        cost: bool = False,
    ) -> None:
        super().__init__(model, deadline)
        self._highs = new_highs(**FIXED, presolve="off") if highs is None else highs
        self._highs.clearModel()
        self._primal = primal
        if primal:
            self._highs.setOptionValue("simplex_strategy", PRIMAL)
        program = translated(model, objective, whole=False)
        if cost:
            program.sense_ = highspy.ObjSense.kMinimize
        self._highs.passModel(program)
        self._columns = np.arange(model.low.size, dtype=np.int32)
        self._rows = np.arange(model.row_low.size, dtype=np.int32)
        self._low, self._high = model.low, model.high

    def relax(self, low: IntArray, high: IntArray) -> Relaxation:
        """Return values and duals within bounds of the variables, or a ray; or all None."""
        changed = np.flatnonzero((low != self._low) | (high != self._high))
        if changed.size:
            self._highs.changeColsBounds(
                changed.size,
                changed.astype(np.int32),
                floats(low[changed]),
                floats(high[changed]),
            )
            self._low, self._high = low, high
        if self._deadline.late:
            return Relaxation(None, None, None)
        set_time_limit(self._highs, self._deadline)
        self._highs.run()
        if self._primal and self._highs.getModelStatus() != STATUS.kOptimal:
            # Only the dual method leaves a ray; begun anew, it also solves what the other gave up.
            self._highs.clearSolver()
            self._highs.setOptionValue("simplex_strategy", DUAL)
            self._highs.run()
            self._highs.setOptionValue("simplex_strategy", PRIMAL)
        if self._highs.getModelStatus() == STATUS.kOptimal:
            solution = self._highs.getSolution()
            return Relaxation(np.array(solution.col_value), np.array(solution.row_dual), None)
        return Relaxation(None, None, dual_ray(self._highs))

    def rebound(
        self, row_low: IntArray | FloatArray, row_high: IntArray | FloatArray,
        rows: IntArray | None = None,
    ) -> None:  # fmt: skip
        """Set the bounds of all rows, or of some."""
        index = self._rows if rows is None else rows.astype(np.int32)
        self._highs.changeRowsBounds(index.size, index, floats(row_low), floats(row_high))

    def aim(self, objective: IntArray | FloatArray, columns: IntArray | None = None) -> None:
        """Set the objective, or the part of it of some variables."""
        index = self._columns if columns is None else columns.astype(np.int32)
        self._highs.changeColsCost(index.size, index, objective.astype(np.float64))

"""HiGHS through its own interface: integer programs, warm relaxations, and column generation.

Column generation: a solution needs few of very many variables. So HiGHS is given some of them, and
the others are 0. Dual values then price all others at once, and those that would improve the
solution are added. Once none would, it is optimal for the whole model. A vertex has at most as many
variables between their bounds as there are rows.
"""

import functools
import time
from dataclasses import replace
from typing import Any, TypeAlias

import highspy
import numpy as np
import scipy.sparse as sp

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
_Highs: Any = highspy.Highs  # has no types


class _Silent(_Highs):  # type: ignore[misc]
    """HiGHS without the banner that its constructor would print."""

    def enableCallbacks(self) -> None:  # noqa: N802
        """Switch the log off before the constructor makes its first call."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def new_highs(**options: object) -> Highs:
    """Return a HiGHS instance with the given options, silent by default."""
    make: Any = _Silent
    highs = make()
    for option, value in options.items():
        highs.setOptionValue(option, value)
    return highs


class HighsSolver:
    """Maximises over an :class:`IntegerModel` with HiGHS, one thread, no relative gap.

    With ``dive``, branch and bound over the linear relaxation is tried first, which is faster for
    small models; its bounds are proved in integer arithmetic. Other options are those of HiGHS.
    """

    name = "highs"

    def __init__(self, *, dive: bool = True, **options: object) -> None:
        self._dive, self._options = dive, {**FIXED, "mip_rel_gap": 0.0, **options}

    # Made when they are used: many small tables need none.

    @functools.cached_property
    def _highs(self) -> Highs:
        return new_highs()

    @functools.cached_property
    def _linear(self) -> Highs:
        return new_highs(**{**self._options, "presolve": "off"})

    def solve(
        self, model: IntegerModel, objective: IntArray, *, limits: Limits | None = None
    ) -> SolverResult:
        """Return the maximum of ``objective``; infeasibility is confirmed without presolve."""
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
    """Set HiGHS's time limit to a deadline; its clock is not reset between models."""
    left = deadline.left
    limit = highspy.kHighsInf if np.isinf(left) else highs.getRunTime() + left
    highs.setOptionValue("time_limit", limit)


def dual_ray(highs: Highs) -> FloatArray | None:
    """Return the rows' combination that proves infeasibility, or None if there is none."""
    if highs.getModelStatus() != STATUS.kInfeasible:
        return None
    _, exists, values = highs.getDualRay()
    return np.array(values) if exists else None


def interior_point(model: IntegerModel, deadline: Deadline) -> FloatArray | None:
    """Return a point inside the relaxation, which shows the possible positive variables, or None.

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
    """Return bounds as floats, infinite where there is no bound."""
    return np.where(np.abs(ends) >= ENDLESS, np.copysign(np.inf, ends), ends)


def translated(
    model: IntegerModel, objective: IntArray | FloatArray, *, whole: bool
) -> highspy.HighsLp:
    """Return the model in HiGHS's form, with whole or with continuous variables."""
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
    """The linear relaxation of one model, solved again from a warm start after each change.

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
        """Return values and duals within bounds, or a ray if infeasible; all None if undecided."""
        changed = np.flatnonzero((low != self._low) | (high != self._high))
        if changed.size:
            self._highs.changeColsBounds(
                changed.size, changed.astype(np.int32), floats(low[changed]), floats(high[changed])
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
        """Set the bounds of all rows, or of the rows listed."""
        index = self._rows if rows is None else rows.astype(np.int32)
        self._highs.changeRowsBounds(index.size, index, floats(row_low), floats(row_high))

    def aim(self, objective: IntArray | FloatArray, columns: IntArray | None = None) -> None:
        """Set the objective of all variables, or of the variables listed."""
        index = self._columns if columns is None else columns.astype(np.int32)
        self._highs.changeColsCost(index.size, index, objective.astype(np.float64))


#: Variables that come in at once: with more of them fewer answers are needed, and each is slower.
_AT_ONCE = 300
#: Gains below this are rounding; a bound is proved apart, in whole numbers.
_GAIN = 1e-7


class Sifted(Questions):
    """The maximum of a relaxation over some of its variables, to which others are added (sifting).

    No lower bound of the model is negative; ``among`` are the variables to begin with,
    increasing: which ones changes only the time.
    """

    def __init__(
        self, model: IntegerModel, among: IntArray, *, deadline: Deadline | None = None
    ) -> None:
        super().__init__(model, deadline)
        self._highs = new_highs(**FIXED, presolve="off")
        nobody = model.part(np.arange(model.row_low.size), np.zeros(0, np.int64))
        self._highs.passModel(translated(nobody, model.low[:0], whole=False))
        self._objective: FloatArray = np.zeros(model.low.size)
        self._low, self._high = model.low, model.high
        self._inside, self._feasible = np.zeros(0, np.int64), False
        self._admit(among)

    def aim(self, objective: IntArray | FloatArray) -> None:
        """Set the objective."""
        self._objective = objective.astype(np.float64)
        index = np.arange(self._inside.size, dtype=np.int32)
        self._highs.changeColsCost(index.size, index, self._objective[self._inside])

    def relax(self, low: IntArray, high: IntArray) -> Relaxation:
        """Return all variables' values and duals, or a ray if infeasible; all None if undecided."""
        # Only the dual method, which a start outside the rows suits, leaves a ray.
        self._feasible &= not self._bound(low, high)
        while not self._deadline.late:
            set_time_limit(self._highs, self._deadline)
            self._deadline.spend()
            self._highs.setOptionValue("simplex_strategy", PRIMAL if self._feasible else DUAL)
            self._highs.run()
            status = self._highs.getModelStatus()
            self._feasible = status == STATUS.kOptimal
            if self._feasible:
                solution = self._highs.getSolution()
                duals = np.array(solution.row_dual)
                if not self._admit(self._better(self._objective - self._model.columns @ duals)):
                    values = np.zeros(low.size)
                    values[self._inside] = solution.col_value
                    return Relaxation(values, duals, None)
            elif status == STATUS.kInfeasible:
                ray = dual_ray(self._highs)
                # Without a ray nothing says which variables would help: then all come in.
                more = self._outside() if ray is None else self._better(self._towards(ray))
                if not self._admit(more):
                    return Relaxation(None, None, ray)
            else:
                break
        return Relaxation(None, None, None)

    def _bound(self, low: IntArray, high: IntArray) -> bool:
        """Set the variables' bounds; return whether the program that HiGHS holds has changed."""
        changed = (low != self._low) | (high != self._high)
        self._low, self._high = low, high
        index = np.flatnonzero(changed[self._inside])
        if index.size:
            variables = self._inside[index]
            ends = floats(low[variables]), floats(high[variables])
            self._highs.changeColsBounds(index.size, index.astype(np.int32), *ends)
        outside = self._outside()
        return self._admit(outside[low[outside] > 0]) or bool(index.size)

    def _admit(self, more: IntArray) -> bool:
        """Add variables to the program; return whether there were any."""
        if not more.size:
            return False
        part = sp.csr_array(self._model.columns[more])
        self._highs.addCols(
            more.size,
            self._objective[more],
            floats(self._low[more]),
            floats(self._high[more]),
            part.nnz,
            part.indptr[:-1].astype(np.int32),
            part.indices.astype(np.int32),
            part.data.astype(np.float64),
        )
        self._inside = np.concatenate([self._inside, more])
        return True

    def _outside(self) -> IntArray:
        outside = np.ones(self._low.size, np.bool_)
        outside[self._inside] = False
        return np.flatnonzero(outside)

    def _better(self, gain: FloatArray) -> IntArray:
        """Return the omitted variables of largest reduced gain; empty if none gains."""
        gain[self._inside] = 0.0
        more = np.flatnonzero((gain > _GAIN) & (self._high > 0))
        return more[np.argsort(-gain[more], kind="stable")[:_AT_ONCE]]

    def _towards(self, ray: FloatArray) -> FloatArray:
        """Return the gain of each variable towards resolving a ray of infeasibility."""
        ray = ray / max(float(np.abs(ray).max(initial=0.0)), 1e-300)
        weights = self._model.columns @ ray
        inside_weights = weights[self._inside]
        low, high = self._low[self._inside], self._high[self._inside]
        most = np.maximum(inside_weights * low, inside_weights * high).sum()
        needed = np.minimum(ray * self._model.row_low, ray * self._model.row_high).sum()
        return weights if most < needed else -weights

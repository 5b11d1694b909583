"""HiGHS without a modelling layer: programs, relaxations, and the ends of rows over solutions."""

import time
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.highs import highspy, new_highs
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers.branching import (
    Relaxation,
    branch_and_bound,
    find_at_least,
    reduced_values,
)
from bayesrisk.reconstruction.solvers.model import (
    Deadline,
    IntegerModel,
    Limits,
    Raw,
    SolverBackend,
    SolverResult,
    settle_answer,
)

Highs: TypeAlias = Any  # highspy's types lack methods
_STATUS = highspy.HighsModelStatus
#: Most coefficients of a model that presolve is let at when there is a time limit.
_PRESOLVED = 100_000

_FIXED = {"output_flag": False, "threads": 1, "random_seed": 0}


class HighsSolver:
    """Maximises over an :class:`IntegerModel` with HiGHS, one thread, no relative gap.

    With ``dive``, branch and bound over the linear relaxation is tried first, which small models
    need less time for; its bounds are proved in integer arithmetic.  Other options are those of
    HiGHS.
    """

    name = "highs"

    def __init__(self, *, dive: bool = True, **options: Any) -> None:
        self._dive, self._options = dive, {**_FIXED, "mip_rel_gap": 0.0, **options}
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
        failed = presolve != "off" and status == _STATUS.kSolveError
        if status == _STATUS.kInfeasible or failed:
            return Raw(Status.INFEASIBLE, -np.inf, None)
        info = highs.getInfo()
        bound = float(info.mip_dual_bound) if np.isfinite(info.mip_dual_bound) else np.inf
        if info.primal_solution_status != 2:  # no feasible values
            return Raw(Status.UNKNOWN, bound, None)
        values = np.array(highs.getSolution().col_value)
        return Raw(Status.PROVED if status == _STATUS.kOptimal else Status.FEASIBLE, bound, values)


def set_time_limit(highs: Highs, deadline: Deadline) -> None:
    """Let HiGHS stop at a deadline; its own clock runs on from model to model."""
    left = deadline.left
    limit = highspy.kHighsInf if np.isinf(left) else highs.getRunTime() + left
    highs.setOptionValue("time_limit", limit)


def _ray(highs: Highs) -> FloatArray | None:
    """Return the combination of rows that shows infeasibility, where that is the last answer."""
    if highs.getModelStatus() != _STATUS.kInfeasible:
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
    highs = new_highs(**_FIXED, presolve="off", solver="ipm", run_crossover="off")
    highs.passModel(translated(model, np.zeros(model.low.size, np.int64), whole=False))
    set_time_limit(highs, deadline)
    highs.run()
    if highs.getModelStatus() != _STATUS.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)


def translated(model: IntegerModel, objective: IntArray, *, whole: bool) -> highspy.HighsLp:
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


class HighsWarm:
    """The relaxation of one set of rows, again and again with other bounds and objectives.

    Every solution starts from the last basis; ``highs`` is a solver to use again.
    """

    def __init__(
        self,
        model: IntegerModel,
        objective: IntArray,
        *,
        deadline: Deadline | None = None,
        highs: Highs | None = None,
    ) -> None:
        self._deadline = deadline or Deadline()
        self._highs = new_highs(**_FIXED, presolve="off") if highs is None else highs
        self._highs.clearModel()
        self._highs.passModel(translated(model, objective, whole=False))
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
                low[changed].astype(np.float64),
                high[changed].astype(np.float64),
            )
            self._low, self._high = low, high
        if self._deadline.late:
            return Relaxation(None, None, None)
        set_time_limit(self._highs, self._deadline)
        self._highs.run()
        if self._highs.getModelStatus() == _STATUS.kOptimal:
            solution = self._highs.getSolution()
            return Relaxation(np.array(solution.col_value), np.array(solution.row_dual), None)
        return Relaxation(None, None, _ray(self._highs))

    def rebound(self, row_low: IntArray | FloatArray, row_high: IntArray | FloatArray) -> None:
        """Set the bounds of the rows."""
        self._highs.changeRowsBounds(
            self._rows.size, self._rows, row_low.astype(np.float64), row_high.astype(np.float64)
        )

    def maximise(self, objective: IntArray) -> Relaxation:
        """Return values and dual values of the largest objective within the same bounds."""
        self.aim(objective)
        return self.relax(self._low, self._high)

    def aim(self, objective: IntArray | FloatArray) -> None:
        """Set the objective."""
        self._highs.changeColsCost(self._columns.size, self._columns, objective.astype(np.float64))


# -----------------------------------------------------------------------------
# The relaxation of a model of very many variables, few of which a solution needs.
#
# A solver is given some of the variables; the others are 0.  Dual values of its answer price all
# the others at once, and those that would better it come in, until none would: the answer is then
# that of the whole model.  A vertex has at most as many variables between their bounds as there
# are rows.


#: Variables that come in at once: with more of them fewer answers are needed, and each is slower.
_AT_ONCE = 300
#: Gains below this are rounding; a bound is proved apart, in whole numbers.
_GAIN = 1e-7
_DUAL, _PRIMAL = 1, 4


class Sifted:
    """The largest objective of a relaxation, found among a part of its variables that grows.

    No lower bound of the model is negative; ``among`` are the variables to begin with,
    increasing: which ones changes only the time.
    """

    def __init__(
        self, model: IntegerModel, among: IntArray, *, deadline: Deadline | None = None
    ) -> None:
        self._model, self._deadline = model, deadline or Deadline()
        self._highs = new_highs(**_FIXED, presolve="off")
        nobody = IntegerModel(
            model.low[:0], model.high[:0], model.rows[:, :0], model.row_low, model.row_high
        )
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

    def find(
        self, objective: IntArray, least: int | None = None, *, nodes: int
    ) -> tuple[str, IntArray | None]:
        """Look for a solution of the model by diving, as :func:`find_at_least` does."""
        self.aim(objective)
        return find_at_least(
            self, self._model, objective, least, nodes=nodes, deadline=self._deadline
        )

    def maximise(self, objective: IntArray) -> Relaxation:
        """Return values and dual values of the largest objective within the model's bounds."""
        self.aim(objective)
        return self.relax(self._model.low, self._model.high)

    def relax(self, low: IntArray, high: IntArray) -> Relaxation:
        """Return values of all variables and duals within bounds, or a ray; or all None."""
        # Only the dual method, which a start outside the rows suits, leaves a ray.
        self._feasible &= not self._bound(low, high)
        while not self._deadline.late:
            set_time_limit(self._highs, self._deadline)
            self._deadline.spend()
            self._highs.setOptionValue("simplex_strategy", _PRIMAL if self._feasible else _DUAL)
            self._highs.run()
            status = self._highs.getModelStatus()
            self._feasible = status == _STATUS.kOptimal
            if self._feasible:
                solution = self._highs.getSolution()
                duals = np.array(solution.row_dual)
                if not self._admit(self._better(self._objective - self._model.columns @ duals)):
                    values = np.zeros(low.size)
                    values[self._inside] = solution.col_value
                    return Relaxation(values, duals, None)
            elif status == _STATUS.kInfeasible:
                ray = _ray(self._highs)
                # Without a ray nothing says which variables would help: then all come in.
                more = self._outside() if ray is None else self._better(self._towards(ray))
                if not self._admit(more):
                    return Relaxation(None, None, ray)
            else:
                break
        return Relaxation(None, None, None)

    def _bound(self, low: IntArray, high: IntArray) -> bool:
        """Set the bounds of the variables; return whether any that is looked at has others."""
        changed = (low != self._low) | (high != self._high)
        self._low, self._high = low, high
        index = np.flatnonzero(changed[self._inside])
        if index.size:
            variables = self._inside[index]
            ends = low[variables].astype(np.float64), high[variables].astype(np.float64)
            self._highs.changeColsBounds(index.size, index.astype(np.int32), *ends)
        outside = self._outside()
        return self._admit(outside[low[outside] > 0]) or bool(index.size)

    def _admit(self, more: IntArray) -> bool:
        """Look at more variables; return whether there are any."""
        if not more.size:
            return False
        part = sp.csr_array(self._model.columns[more])
        self._highs.addCols(
            more.size,
            self._objective[more],
            self._low[more].astype(np.float64),
            self._high[more].astype(np.float64),
            part.nnz,
            part.indptr[:-1].astype(np.int32),
            part.indices.astype(np.int32),
            part.data.astype(np.float64),
        )
        self._inside = np.concatenate([self._inside, more])
        return True

    def _outside(self) -> IntArray:
        """Return the variables that are not looked at."""
        outside = np.ones(self._low.size, np.bool_)
        outside[self._inside] = False
        return np.flatnonzero(outside)

    def _better(self, gain: FloatArray) -> IntArray:
        """Return the variables that are not looked at and gain most, if there are any."""
        gain[self._inside] = 0.0
        more = np.flatnonzero((gain > _GAIN) & (self._high > 0))
        return more[np.argsort(-gain[more], kind="stable")[:_AT_ONCE]]

    def _towards(self, ray: FloatArray) -> FloatArray:
        """Return the gain of each variable towards the needed value of a combination of rows."""
        ray = ray / max(float(np.abs(ray).max(initial=0.0)), 1e-300)
        weights = self._model.columns @ ray
        inside_weights = weights[self._inside]
        low, high = self._low[self._inside], self._high[self._inside]
        most = np.maximum(inside_weights * low, inside_weights * high).sum()
        needed = np.minimum(ray * self._model.row_low, ray * self._model.row_high).sum()
        return weights if most < needed else -weights


# -----------------------------------------------------------------------------
# Smallest and largest values of the rows of a model over its whole-numbered solutions.


#: Variables up to which a relaxation begins with all of them.
_FEW = 300
#: Nodes of a dive, rounds without a new count after which ends are asked for one by one.
_NODES, _FRUITLESS = 300, 3
#: Nodes of a dive for many ends, which are asked for in halves where it finds nothing.
_QUICK = 20
#: Share of the open ends that a round aims at, after one at all of them.
_SHARE = 0.5
#: Nodes of a question to the general solver where there is a limit: it counts as so many programs.
_ASKED = 50


class _Ends:
    """Largest values of the rows of a model, and of their negatives: what is proved, and reached.

    The first half of all arrays is of the rows, the second of their negatives; ``goal`` is what no
    solution exceeds, ``reached`` the largest value of a solution.
    """

    def __init__(
        self, model: IntegerModel, star: IntArray, solver: SolverBackend, deadline: Deadline
    ) -> None:
        self._model, self._solver, self._deadline = model, solver, deadline
        self._rows = sp.csr_array(sp.vstack([model.rows, -model.rows], format="csr"))
        least, most = model.rows @ model.low, model.rows @ model.high
        low, high = np.maximum(model.row_low, least), np.minimum(model.row_high, most)
        self.goal = np.concatenate([high, -low])
        self.reached = self._rows @ star
        # Rows that their variables' bounds fill, or of one variable, bind nothing.
        binding = (np.diff(model.rows.indptr) > 1) & ((low > least) | (high < most))
        self._lean = IntegerModel(
            model.low, model.high, sp.csr_array(model.rows[binding]), model.row_low[binding],
            model.row_high[binding],
        )  # fmt: skip
        begin = np.flatnonzero(star) if star.size > _FEW else np.arange(star.size)
        self._linear = Sifted(self._lean, begin, deadline=deadline)

    @property
    def open(self) -> IntArray:
        """The ends that are not known."""
        return np.flatnonzero(self.reached < self.goal)

    def settle(self) -> None:
        """Find all ends, as far as the time goes."""
        self._reach_many()
        self._prove_many(self._least(self.open))
        for end in self.open.tolist():
            while self.reached[end] < self.goal[end] and not self._deadline.late:
                if not self._tighten(end):
                    break

    def _find(
        self, objective: IntArray, least: int | None, nodes: int = _NODES
    ) -> tuple[str, bool]:
        """Look for a solution of a large objective; return the finding, and whether it is new."""
        status, values = self._linear.find(objective, least, nodes=nodes)
        return status, values is not None and self._note(values)

    def _note(self, values: IntArray) -> bool:
        """Note the values of a solution; return whether any is larger than those before."""
        if not self._model.holds(values):
            return False
        sums = self._rows @ values
        larger = bool((sums > self.reached).any())
        self.reached = np.maximum(self.reached, sums)
        return larger

    def _reach_many(self) -> None:
        """Look for solutions that reach many ends at once."""
        rng, fruitless, share = np.random.default_rng(0), 0, 1.0
        while fruitless < _FRUITLESS and self.open.size and not self._deadline.late:
            chosen = self.open[rng.random(self.open.size) <= share]
            new = self._find(self._sum(chosen), None)[1]
            fruitless, share = (0 if new else fruitless + 1), _SHARE

    def _sum(self, ends: IntArray) -> IntArray:
        """Return the sum of the rows of some ends."""
        weight = np.bincount(ends, minlength=self.goal.size)
        total: IntArray = (weight @ self._rows).astype(np.int64)
        return total

    def _bound(self, objective: IntArray) -> int | None:
        """Return an upper bound of an objective, proved in whole numbers, or None."""
        duals = self._linear.maximise(objective).duals
        if duals is None:
            return None
        model = self._lean
        bound = reduced_values(model, objective, model.low, model.high, duals)[0]
        return int(np.floor(bound)) if np.isfinite(bound) else None

    def _least(self, ends: IntArray) -> IntArray:
        """Return the ends that were never seen above the least that they can be."""
        half = self.goal.size // 2
        least_ends: IntArray = ends[self.reached[ends] == -self.goal[(ends + half) % (2 * half)]]
        return least_ends

    def _prove_many(self, ends: IntArray) -> None:
        """Prove that some ends stay at the least that they can be, or reach some of them.

        Where each is at least its smallest value, and their sum is at most that of these, each is
        its smallest value.
        """
        while ends.size > 1 and not self._deadline.late:
            objective = self._sum(ends)
            bound, least = self._bound(objective), int(self.reached[ends].sum())
            if bound is None:
                return
            status, new = "none", False
            if bound > least:
                status, new = self._find(objective, least + 1, _QUICK)
            if status == "none":
                self.goal[ends] = self.reached[ends]
                return
            ends = self._least(ends)
            if not new:
                half = ends.size // 2
                self._prove_many(ends[:half])
                self._prove_many(self._least(ends[half:]))
                return

    def _tighten(self, end: int) -> bool:
        """Ask for one end: lower what is proved or find more; return whether either was done."""
        objective = self._rows[[end]].toarray()[0]
        bound = self._bound(objective)
        if bound is not None and bound < self.goal[end]:
            self.goal[end] = max(bound, int(self.reached[end]))
            return True
        status, new = self._find(objective, int(self.goal[end]))
        if new:
            return True
        if status == "none":
            self.goal[end] -= 1
            return True
        if self._deadline.late:
            return False
        # A general solver looks for anything above what was seen: that there is none, it confirms.
        beyond = self._model.beyond(objective, int(self.reached[end]) + 1, int(self.goal[end]))
        nothing, limits = np.zeros(objective.size, np.int64), self._deadline.limits
        if limits.nodes is not None:
            limits = replace(limits, nodes=min(limits.nodes, _ASKED))
            self._deadline.spend(_ASKED)
        answer = self._solver.solve(beyond, nothing, limits=limits)
        if answer.values is not None:
            return self._note(answer.values)
        if answer.status == Status.INFEASIBLE:
            self.goal[end] = self.reached[end]
        return answer.status == Status.INFEASIBLE


def _distinct(model: IntegerModel) -> tuple[IntegerModel, IntArray]:
    """Return a model with each row once, within all of its ends, and where each row is in it."""
    rows = model.rows
    number: dict[tuple[bytes, bytes], int] = {}
    group = np.empty(rows.shape[0], np.int64)
    for row in range(group.size):
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        key = rows.indices[part].tobytes(), rows.data[part].tobytes()
        group[row] = number.setdefault(key, len(number))
    first = np.unique(group, return_index=True)[1]
    low, high = model.row_low[first], model.row_high[first]
    np.maximum.at(low, group, model.row_low)
    np.minimum.at(high, group, model.row_high)
    return IntegerModel(model.low, model.high, sp.csr_array(rows[first]), low, high), group


def row_ends(
    model: IntegerModel, star: IntArray, solver: SolverBackend, deadline: Deadline
) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
    """Return the proved ends of each row of a model, and whether a solution reaches them.

    They are the smallest and the largest, and the same of what is reached; the search begins at the
    solution ``star``.
    """
    distinct, group = _distinct(model)
    ends = _Ends(distinct, star, solver, deadline)
    ends.settle()
    most, least = np.split(ends.goal, 2)
    above, below = np.split(ends.goal == ends.reached, 2)
    return -least[group], most[group], below[group], above[group]

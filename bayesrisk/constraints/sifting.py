"""The relaxation of a model of very many variables, few of which a solution needs.

A solver is given some of the variables; the others are 0.  Dual values of its answer price all
the others at once, and those that would better it come in, until none would: the answer is then
that of the whole model.  A vertex has at most as many variables between their bounds as there are
rows.
"""

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.highs import new_highs
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.constraints.highs import (
    DUAL,
    FIXED,
    PRIMAL,
    STATUS,
    dual_ray,
    floats,
    set_time_limit,
    translated,
)
from bayesrisk.constraints.model import IntegerModel
from bayesrisk.constraints.search import Questions, Relaxation
from bayesrisk.constraints.solvers import Deadline

#: Variables that come in at once: with more of them fewer answers are needed, and each is slower.
_AT_ONCE = 300
#: Gains below this are rounding; a bound is proved apart, in whole numbers.
_GAIN = 1e-7


class Sifted(Questions):
    """The largest objective of a relaxation, found among a part of its variables that grows.

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
        """Return values of all variables and duals within bounds, or a ray; or all None."""
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
        """Set the bounds of the variables; return whether any that is looked at has others."""
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
        """Look at more variables; return whether there are any."""
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

"""The relaxation of a model of very many variables, few of which a solution needs.

A solver is given some of the variables; the others are 0.  Dual values of its answer price all the
others at once, and those that would better it come in, until none would: the answer is then that
of the whole model.  A vertex has at most as many variables between their bounds as there are rows.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._highs import highspy
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.reconstruction.solvers import highs as _highs
from bayesrisk.reconstruction.solvers.branching import Relaxation
from bayesrisk.reconstruction.solvers.deadline import Deadline
from bayesrisk.reconstruction.solvers.model import IntegerModel

_STATUS = highspy.HighsModelStatus
#: Variables that come in at once: with more of them fewer answers are needed, and each is slower.
_AT_ONCE = 300
#: Gains below this are rounding; a bound is proved apart, in whole numbers.
_GAIN = 1e-7
_DUAL, _PRIMAL = 1, 4


class Sifted:
    """The largest objective of a relaxation, found among a part of its variables that grows.

    Parameters
    ----------
    model : IntegerModel
        Bounds and rows; no lower bound is negative.
    among : ndarray of int64
        Variables to begin with, increasing; which ones changes only the time.
    deadline : Deadline, optional
        When every solution stops; no limit by default.
    """

    def __init__(
        self, model: IntegerModel, among: IntArray, *, deadline: Deadline | None = None
    ) -> None:
        made: Any = highspy.Highs  # has no types
        self._model, self._deadline, self._highs = model, deadline or Deadline(), made()
        fixed = {"output_flag": False, "threads": 1, "random_seed": 0, "presolve": "off"}
        for option, value in fixed.items():
            self._highs.setOptionValue(option, value)
        nobody = IntegerModel(
            model.low[:0], model.high[:0], model.rows[:, :0], model.row_low, model.row_high
        )
        self._highs.passModel(_highs.translated(nobody, model.low[:0], whole=False))
        self._objective: FloatArray = np.zeros(model.low.size)
        self._low, self._high = model.low, model.high
        self._inside, self._feasible = np.zeros(0, np.int64), False
        self._let_in(among)

    def aim(self, objective: NDArray[Any]) -> None:
        """Set the objective."""
        self._objective = objective.astype(np.float64)
        at = np.arange(self._inside.size, dtype=np.int32)
        self._highs.changeColsCost(at.size, at, self._objective[self._inside])

    def maximise(self, objective: IntArray) -> Relaxation:
        """Return values and dual values of the largest objective within the same bounds."""
        self.aim(objective)
        return self.relax(self._low, self._high)

    def relax(self, low: IntArray, high: IntArray) -> Relaxation:
        """Return values and dual values within bounds of the variables, or a ray.

        Parameters
        ----------
        low, high : ndarray of int64
            Bounds of the variables.

        Returns
        -------
        Relaxation
            For all variables; all None when the solver says neither.
        """
        # Only the dual method, which a start outside the rows suits, leaves a ray.
        self._feasible &= not self._bound(low, high)
        while not self._deadline.late:
            _highs.stop_at(self._highs, self._deadline)
            self._highs.setOptionValue("simplex_strategy", _PRIMAL if self._feasible else _DUAL)
            self._highs.run()
            status = self._highs.getModelStatus()
            self._feasible = status == _STATUS.kOptimal
            if self._feasible:
                found = self._highs.getSolution()
                duals = np.array(found.row_dual)
                if not self._let_in(self._better(self._objective - self._model.columns @ duals)):
                    values = np.zeros(low.size)
                    values[self._inside] = found.col_value
                    return Relaxation(values, duals, None)
            elif status == _STATUS.kInfeasible:
                _, there, values = self._highs.getDualRay()
                ray = np.array(values) if there else None
                # Without a ray nothing says which variables would help: then all come in.
                more = self._outside() if ray is None else self._better(self._towards(ray))
                if not self._let_in(more):
                    return Relaxation(None, None, ray)
            else:
                break
        return Relaxation(None, None, None)

    def _bound(self, low: IntArray, high: IntArray) -> bool:
        """Set the bounds of the variables; return whether any that is looked at has others."""
        changed = (low != self._low) | (high != self._high)
        self._low, self._high = low, high
        at = np.flatnonzero(changed[self._inside])
        if at.size:
            own = self._inside[at]
            ends = low[own].astype(np.float64), high[own].astype(np.float64)
            self._highs.changeColsBounds(at.size, at.astype(np.int32), *ends)
        outside = self._outside()
        return self._let_in(outside[low[outside] > 0]) or bool(at.size)

    def _let_in(self, more: IntArray) -> bool:
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
        """Return how much each variable brings a combination of rows nearer to what is needed."""
        ray = ray / max(float(np.abs(ray).max(initial=0.0)), 1e-300)
        weights = self._model.columns @ ray
        own = weights[self._inside]
        low, high = self._low[self._inside], self._high[self._inside]
        most = np.maximum(own * low, own * high).sum()
        needed = np.minimum(ray * self._model.row_low, ray * self._model.row_high).sum()
        return weights if most < needed else -weights

"""HiGHS: the only module that imports it, and a linear program that is changed and solved again."""

from typing import Any

import highspy as highspy
import numpy as np
from scipy import sparse

from bayesrisk._base.validation import FloatArray, IntArray

_Highs: Any = highspy.Highs  # has no types


class _Silent(_Highs):  # type: ignore[misc]
    """HiGHS without its banner, which it prints with the first call unless it is told before."""

    def enableCallbacks(self) -> None:  # noqa: N802
        """Turn the log off before the constructor makes the first call."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()


def new_highs(**options: object) -> Any:
    """Return HiGHS with options, which prints nothing by default."""
    make: Any = _Silent
    highs = make()
    for option, value in options.items():
        highs.setOptionValue(option, value)
    return highs


class WarmProgram:
    """The least cost of variables within bounds, with rows within bounds.

    Each solution starts from the last basis.  What a solver says in floating point is a proposal:
    callers check it.

    ``rows`` and ``columns`` are lower and upper bounds of rows and of variables, infinities for
    none; ``primal`` says that the cost is what changes, and not the bounds.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        rows: tuple[FloatArray, FloatArray],
        columns: tuple[FloatArray, FloatArray],
        cost: FloatArray,
        *,
        primal: bool,
    ) -> None:
        # A presolve would start from nothing after each change.
        strategy = 4 if primal else 1
        self._highs = new_highs(threads=1, random_seed=0, presolve="off", simplex_strategy=strategy)
        program = highspy.HighsLp()
        program.num_row_, program.num_col_ = matrix.shape
        program.col_cost_ = cost
        program.row_lower_, program.row_upper_ = rows
        program.col_lower_, program.col_upper_ = columns
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = matrix.indptr.astype(np.int32)
        program.a_matrix_.index_ = matrix.indices.astype(np.int32)
        program.a_matrix_.value_ = matrix.data.astype(float)
        self._highs.passModel(program)

    def set_cost(self, index: IntArray, cost: FloatArray) -> None:
        """Set the cost of some variables."""
        self._highs.changeColsCost(len(index), index.astype(np.int32), cost)

    def bound_columns(self, index: IntArray, low: FloatArray, high: FloatArray) -> None:
        """Set the bounds of some variables."""
        self._highs.changeColsBounds(len(index), index.astype(np.int32), low, high)

    def bound_rows(self, index: IntArray, low: FloatArray, high: FloatArray) -> None:
        """Set the bounds of some rows."""
        self._highs.changeRowsBounds(len(index), index.astype(np.int32), low, high)

    def solve(self) -> tuple[FloatArray, FloatArray] | None:
        """Return values and dual values of the least cost, or None if there is none."""
        self._highs.run()
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._highs.getSolution()
        return np.array(solution.col_value), np.array(solution.row_dual)

    def ray(self) -> FloatArray | None:
        """Return a dual ray that proves infeasibility, if the last solution found one."""
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kInfeasible:
            return None
        _, exists, values = self._highs.getDualRay()
        return np.array(values) if exists else None

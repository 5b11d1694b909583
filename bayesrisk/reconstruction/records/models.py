"""Integer models of components of a program: any solution, and the one farthest from another."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.records.program import Program
from bayesrisk.reconstruction.solvers import IntegerModel


def variables(program: Program, components: Sequence[int]) -> IntArray:
    """Return the variables of some components, in order."""
    first = program.arrays.first_var
    return np.concatenate([np.arange(first[k], first[k + 1]) for k in components])


def _rows(program: Program, components: Sequence[int]) -> tuple[IntArray, sp.csr_array]:
    """Return the rows of some components, and their matrix over the components' variables."""
    p = program.arrays
    rows = np.concatenate([np.arange(p.first_row[k], p.first_row[k + 1]) for k in components])
    starts = np.cumsum([0, *(p.first_var[k + 1] - p.first_var[k] for k in components)])
    columns, values, sizes = [], [], []
    for k, start in zip(components, starts[:-1], strict=True):
        a, b = p.row_ptr[p.first_row[k]], p.row_ptr[p.first_row[k + 1]]
        columns.append(p.row_var[a:b] - p.first_var[k] + start)
        values.append(p.row_coef[a:b])
        sizes.append(np.diff(p.row_ptr[p.first_row[k] : p.first_row[k + 1] + 1]))
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    matrix = sp.csr_array(
        (np.concatenate(values), np.concatenate(columns), ptr),
        shape=(rows.size, int(starts[-1])),
    )
    return rows, matrix


def solution_model(
    program: Program, low: IntArray, high: IntArray, components: Sequence[int]
) -> IntegerModel:
    """Return the model whose solutions are those of some components.

    Parameters
    ----------
    program : Program
        Rows and variables.
    low, high : ndarray of int64
        Bounds of all variables.
    components : sequence of int
        Which components; together they are one model.

    Returns
    -------
    IntegerModel
        Variables as :func:`variables` orders them.
    """
    at = variables(program, components)
    rows, matrix = _rows(program, components)
    p = program.arrays
    return IntegerModel(low[at], high[at], matrix, p.row_low[rows], p.row_high[rows])


@dataclass(frozen=True)
class DistanceModel:
    """A model whose largest value is the largest distance from a solution.

    Attributes
    ----------
    model : IntegerModel
        Gains, losses, and a binary for every cell that could do either.
    objective : ndarray of int64
        Gains plus losses.
    gains : int
        How many variables, the first ones, are gains.
    """

    model: IntegerModel
    objective: IntArray
    gains: int

    def another(self) -> IntegerModel:
        """Return the model of the solutions that differ: none, when the solution is unique."""
        differs = sp.csr_array(self.objective[None, :])
        return IntegerModel(
            self.model.low,
            self.model.high,
            sp.csr_array(sp.vstack([self.model.rows, differs], format="csr")),
            np.append(self.model.row_low, 1),
            np.append(self.model.row_high, int(self.objective @ self.model.high)),
        )


def distance_model(
    program: Program, low: IntArray, high: IntArray, star: IntArray, component: int
) -> DistanceModel:
    """Return the model of the largest distance from ``star`` within a component.

    A cell is ``x = star + gain - loss``.  Where the bounds let it only gain or only lose, that
    is all; where they let it do either, a binary says which: ``gain <= (high - star) b`` and
    ``loss <= (star - low) (1 - b)``.  The distance is the sum of gains and losses.

    Parameters
    ----------
    program : Program
        Rows and variables.
    low, high : ndarray of int64
        Bounds of all variables.
    star : ndarray of int64
        A solution, of all variables.
    component : int
        Which component.

    Returns
    -------
    DistanceModel
        Over gains, losses and binaries, in this order.
    """
    at = variables(program, [component])
    rows, matrix = _rows(program, [component])
    gain, loss = high[at] - star[at], star[at] - low[at]
    up, down = np.flatnonzero(gain > 0), np.flatnonzero(loss > 0)
    both = np.flatnonzero((gain > 0) & (loss > 0))
    n, n_up, n_down = both.size, up.size, down.size
    used = sp.csr_array(matrix @ star[at][:, None]).toarray().ravel()
    columns = matrix.tocsc()
    flow = sp.hstack([columns[:, up], -columns[:, down], sp.csc_array((rows.size, n))])
    switch, each = n_up + n_down + np.arange(n), np.arange(n)
    ones = np.ones(n, np.int64)

    def linked(first: IntArray, weight: IntArray) -> sp.csr_array:
        data = np.concatenate([ones, weight])
        place = (np.tile(each, 2), np.concatenate([first, switch]))
        return sp.csr_array((data, place), shape=(n, n_up + n_down + n))

    p = program.arrays
    model = IntegerModel(
        low=np.zeros(n_up + n_down + n, np.int64),
        high=np.concatenate([gain[up], loss[down], ones]),
        rows=sp.csr_array(
            sp.vstack(
                [
                    flow,
                    linked(np.searchsorted(up, both), -gain[both]),
                    linked(n_up + np.searchsorted(down, both), loss[both]),
                ],
                format="csr",
            ).astype(np.int64)
        ),
        row_low=np.concatenate([p.row_low[rows] - used, -gain[both], np.zeros(n, np.int64)]),
        row_high=np.concatenate([p.row_high[rows] - used, np.zeros(n, np.int64), loss[both]]),
    )
    objective = np.concatenate([np.ones(n_up + n_down, np.int64), np.zeros(n, np.int64)])
    return DistanceModel(model, objective, n_up)

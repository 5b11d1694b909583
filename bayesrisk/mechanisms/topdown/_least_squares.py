"""Non-negative least squares with equalities: the one module that imports the solver.

Clarabel (interior point, direct sparse factorisation) was chosen by measurement, which
``benchmarks/test_topdown.py`` repeats.  HiGHS's active-set method finds the same minimum in two to
three times the time from a thousand unknowns on; ``scipy.optimize.lsq_linear`` knows bounds but no
equalities, and with these as heavy rows it stops well above the minimum.
"""

from dataclasses import dataclass
from typing import Any

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk.exceptions import DataError

#: Gap and feasibility asked of the solver, relative to the size of the problem.  Near the rounding
#: of doubles a step may undo the last digit of a residual, which the solver reads as a stall: the
#: next larger one is asked for then.
TOLERANCES = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8)
#: Entries of a factor from which on one made of dense pieces is faster than one entry at a time.
LARGE = 150_000
#: Unknowns are let in this many at once where there are this many times as many.
AT_ONCE, FEW = 600, 4
#: Part of the largest derivative at zero that counts as zero: unknowns are let in too early.
NEAR = 1e-8
_ACCEPTED = (clarabel.SolverStatus.Solved,)
_IMPOSSIBLE = (clarabel.SolverStatus.PrimalInfeasible,)


@dataclass(frozen=True)
class LeastSquares:
    """Minimise ``sum(d x**2) / 2 + q x + sum(w (R x - y)**2) / 2`` with ``E x = e``, ``x >= 0``.

    ``d`` and ``q`` carry what touches single cells: kept apart, it costs no extra unknown.
    """

    diagonal: NDArray[np.float64]
    linear: NDArray[np.float64]
    rows: sparse.csr_array
    weights: NDArray[np.float64]
    targets: NDArray[np.float64]
    equalities: sparse.csr_array
    totals: NDArray[np.float64]

    def gradient(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative of the objective at ``x``."""
        residual = self.weights * (self.rows @ x - self.targets)
        gradient: NDArray[np.float64] = self.diagonal * x + self.linear + self.rows.T @ residual
        return gradient


@dataclass(frozen=True)
class Optimum:
    """Minimiser, multipliers m (``gradient + E' m >= 0``, 0 where x > 0), tolerance reached."""

    x: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    tolerance: float


def _settings(tolerance: float) -> clarabel.DefaultSettings:
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    # One thread, the same sums in the same order: the same bytes from the same seed.
    settings.direct_solve_method = "qdldl"
    return settings


def _large(tolerance: float) -> clarabel.DefaultSettings:
    """Return settings for a problem whose factor is large: it is made of dense pieces."""
    settings = _settings(tolerance)
    settings.direct_solve_method = "faer"
    settings.max_threads = 1
    # With the usual 1e-8 single families of many children stall some digits above the tolerance.
    settings.static_regularization_constant = 1e-7
    return settings


def _stacked(problem: LeastSquares) -> sparse.csc_array:
    """Return the rows ``R x - z``, ``E x`` and ``-x``, put together in one step."""
    cells, queries = problem.diagonal.size, problem.weights.size
    fixed = problem.totals.size
    query, cell = np.arange(queries), np.arange(cells)
    row: list[Any] = [
        np.repeat(query, np.diff(problem.rows.indptr)),
        query,
        queries + np.repeat(np.arange(fixed), np.diff(problem.equalities.indptr)),
        queries + fixed + cell,
    ]
    column: list[Any] = [problem.rows.indices, cells + query, problem.equalities.indices, cell]
    value: list[Any] = [
        problem.rows.data,
        -np.ones(queries),
        problem.equalities.data,
        -np.ones(cells),
    ]
    triplets = np.concatenate(value), (np.concatenate(row), np.concatenate(column))
    return sparse.csc_array(triplets, shape=(queries + fixed + cells, cells + queries))


def solve(problem: LeastSquares) -> Optimum:
    """Return an optimum of ``problem``; the fitted answers ``R x`` are the same in every optimum.

    A problem without equalities and with far more unknowns than rows, as at the top, is solved
    among few unknowns, and those whose derivative there is not above zero are let in until there
    are none.  All that may be above zero in some optimum are among them then: the derivatives are
    those of every optimum.
    """
    size = problem.diagonal.size
    if problem.totals.size or size < FEW * max(problem.weights.size, AT_ONCE):
        return solve_whole(problem)
    chosen, x = np.zeros(size, dtype=bool), np.zeros(size)
    gradient = problem.gradient(x)
    near = NEAR * float(np.abs(gradient).max())
    # Of what comes in, that with the smallest derivatives; at first even where none is negative.
    wanted = np.argsort(gradient, kind="stable")[:AT_ONCE]
    while True:
        chosen[wanted] = True
        found = solve_whole(_among(problem, np.flatnonzero(chosen)))
        x[chosen] = found.x
        gradient = problem.gradient(x)
        wanted = np.flatnonzero(~chosen & (gradient <= near))
        if not wanted.size:
            return Optimum(x, found.multipliers, found.tolerance)
        wanted = wanted[np.argsort(gradient[wanted], kind="stable")[:AT_ONCE]]


def _among(problem: LeastSquares, unknowns: NDArray[np.int64]) -> LeastSquares:
    """Return a problem without equalities among some of its unknowns, the others zero."""
    rows = sparse.csr_array(sparse.csc_array(problem.rows)[:, unknowns])
    used = np.flatnonzero(np.diff(rows.indptr))
    return LeastSquares(
        problem.diagonal[unknowns],
        problem.linear[unknowns],
        sparse.csr_array(rows[used]),
        problem.weights[used],
        problem.targets[used],
        sparse.csr_array((0, unknowns.size)),
        problem.totals,
    )


def solve_whole(problem: LeastSquares) -> Optimum:
    """Return an optimum, by one program with all unknowns.

    The residuals ``z = R x - y`` become unknowns of their own, so that a query over many cells
    stays one sparse row instead of a dense block of the normal matrix.
    """
    cells, queries = problem.diagonal.size, problem.weights.size
    fixed = problem.totals.size
    matrix = _stacked(problem)
    right = np.concatenate([problem.targets, problem.totals, np.zeros(cells)])
    quadratic = np.concatenate([problem.diagonal, problem.weights])
    cones = [clarabel.ZeroConeT(queries + fixed), clarabel.NonnegativeConeT(cells)]
    costs = (
        sparse.diags_array(quadratic, format="csc"),
        np.concatenate([problem.linear, np.zeros(queries)]),
    )
    data = *costs, matrix, right, [cone for cone in cones if cone.dim]
    for tolerance in TOLERANCES:
        solver = clarabel.DefaultSolver(*data, _settings(tolerance))
        if solver.get_info().linsolver.nnzL > LARGE:
            solver = clarabel.DefaultSolver(*data, _large(tolerance))
        answer = solver.solve()
        if answer.status in _ACCEPTED:
            x = np.maximum(np.asarray(answer.x)[:cells], 0.0)
            return Optimum(x, np.asarray(answer.z)[queries : queries + fixed], tolerance)
        if answer.status in _IMPOSSIBLE:
            break
    raise DataError(
        "the least-squares step must have a solution: public zeros, facilities and invariants "
        f"must not contradict each other, got solver status {answer.status}"
    )

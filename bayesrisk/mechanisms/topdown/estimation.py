"""Least-squares estimates of a node's children, their rounding, and a cache of solutions.

Two data sets that differ in one record pose nearly the same problems under the same noise. Families
with equal counts above and equal noisy answers have equal children.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import clarabel
import numpy as np
from scipy import optimize, sparse

from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.exceptions import DataError
from bayesrisk.mechanisms.topdown.families import Family, Lookahead, cell_classes

# Non-negative least squares with equalities: the one module that imports the solver.
#
# Clarabel (interior point, direct sparse factorisation) was chosen by measurement, which
# ``benchmarks/test_topdown.py`` repeats.  HiGHS's active-set method finds the same minimum in two
# to three times the time from a thousand unknowns on; ``scipy.optimize.lsq_linear`` knows bounds
# but no equalities, and with these as heavy rows it stops well above the minimum.


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

    diagonal: FloatArray
    linear: FloatArray
    rows: sparse.csr_array
    weights: FloatArray
    targets: FloatArray
    equalities: sparse.csr_array
    totals: FloatArray

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the gradient of the objective at ``x``."""
        residual = self.weights * (self.rows @ x - self.targets)
        gradient: FloatArray = self.diagonal * x + self.linear + self.rows.T @ residual
        return gradient


@dataclass(frozen=True)
class Optimum:
    """A minimiser, its multipliers m (``gradient + E' m >= 0``, 0 where x > 0), and tolerance."""

    x: FloatArray
    multipliers: FloatArray
    tolerance: float


def _settings(tolerance: float, *, large: bool = False) -> clarabel.DefaultSettings:
    """Return solver settings; for large problems with a dense factorisation."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    # One thread, the same sums in the same order: the same bytes from the same seed.
    settings.direct_solve_method = "faer" if large else "qdldl"
    if large:
        settings.max_threads = 1
        # With the usual 1e-8 single families of many children stall above the tolerance.
        settings.static_regularization_constant = 1e-7
    return settings


def _stacked(problem: LeastSquares) -> sparse.csc_array:
    """Return the rows ``R x - z``, ``E x`` and ``-x`` as one matrix."""
    cells, queries = problem.diagonal.size, problem.weights.size
    fixed = problem.totals.size
    query, cell = np.arange(queries), np.arange(cells)
    rows, sums = problem.rows, problem.equalities
    # Row, column and value of each of the four blocks.
    blocks: list[tuple[Any, Any, Any]] = [
        (np.repeat(query, np.diff(rows.indptr)), rows.indices, rows.data),
        (query, cells + query, -np.ones(queries)),
        (queries + np.repeat(np.arange(fixed), np.diff(sums.indptr)), sums.indices, sums.data),
        (queries + fixed + cell, cell, -np.ones(cells)),
    ]
    row, column, value = (np.concatenate(part) for part in zip(*blocks, strict=True))
    triplets = value, (row, column)
    return sparse.csc_array(triplets, shape=(queries + fixed + cells, cells + queries))


def solve(problem: LeastSquares) -> Optimum:
    """Return an optimum of ``problem``; the fitted answers ``R x`` are the same in every optimum.

    At the top a problem has no equalities and far more unknowns than rows. It is solved among few
    unknowns, and others are added while their derivative there is not above zero. In the end these
    include all that may be above zero in some optimum, as the derivatives are those of every
    optimum.
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
        optimum = solve_whole(_among(problem, np.flatnonzero(chosen)))
        x[chosen] = optimum.x
        gradient = problem.gradient(x)
        wanted = np.flatnonzero(~chosen & (gradient <= near))
        if not wanted.size:
            return Optimum(x, optimum.multipliers, optimum.tolerance)
        wanted = wanted[np.argsort(gradient[wanted], kind="stable")[:AT_ONCE]]


def _among(problem: LeastSquares, unknowns: IntArray) -> LeastSquares:
    """Return a problem without equalities, restricted to some unknowns (others zero)."""
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
    """Return an optimum by one program with all unknowns.

    The residuals ``z = R x - y`` become unknowns of their own, so that a query over many cells
    stays one sparse row instead of a dense block of the normal matrix.
    """
    cells, queries = problem.diagonal.size, problem.weights.size
    fixed = problem.totals.size
    matrix = _stacked(problem)
    right = np.concatenate([problem.targets, problem.totals, np.zeros(cells)])
    quadratic = np.concatenate([problem.diagonal, problem.weights])
    cones = [clarabel.ZeroConeT(queries + fixed), clarabel.NonnegativeConeT(cells)]
    curved = np.flatnonzero(quadratic)
    ends = np.concatenate([[0], np.cumsum(quadratic != 0.0)])
    shape = (quadratic.size, quadratic.size)
    costs = (
        sparse.csc_array((quadratic[curved], curved, ends), shape=shape),
        np.concatenate([problem.linear, np.zeros(queries)]),
    )
    data = *costs, matrix, right, [cone for cone in cones if cone.dim]
    for tolerance in TOLERANCES:
        solver = clarabel.DefaultSolver(*data, _settings(tolerance))
        if solver.get_info().linsolver.nnzL > LARGE:
            solver = clarabel.DefaultSolver(*data, _settings(tolerance, large=True))
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


# Controlled rounding: every cell goes to a neighbouring integer, and the sums still hold.
#
# Parent sums and nested sets within a child are the nodes of a transportation network, so the
# matrix is totally unimodular: the linear program has integer vertices and the simplex method
# returns one. With parent sums alone the program falls apart by cell, and the largest remainders
# solve it.


#: The solver's answers are good to about 1e-9: what is this close to an integer is one.
SNAP = 1e-6


@dataclass(frozen=True)
class RoundingTask:
    """Fractional counts to be rounded, and the sums that rounding preserves."""

    fractional: FloatArray  # the first ``cells`` are counts, the others auxiliary, free to move
    equalities: sparse.csr_array  # sums that hold exactly, as the fractional values satisfy them
    totals: IntArray
    controlled: sparse.csr_array  # 0/1 sums that may move to a neighbouring integer
    cells: int
    cell_sums_only: bool  # each count is in at most one equality: these are rounded one by one


def controlled_rounding(task: RoundingTask, rng: np.random.Generator) -> IntArray:
    """Return integers with the smallest total distance to the fractional counts that keep the sums.

    Fractions that are equal to the solver's precision are ordered by chance: its last digits lean
    to the smaller child, and half-integers are common.
    """
    counts = task.fractional[: task.cells]
    base = np.floor(counts + SNAP)
    share = np.maximum(counts - base, 0.0)
    share[share <= SNAP] = 0.0
    free = np.flatnonzero(share)
    share[free] += SNAP * (rng.random(free.size) - 0.5)
    if task.cell_sums_only and not task.controlled.shape[0]:
        step = _largest_remainder(task, base, share, free)
    else:
        step = _program(task, base, share, free)
    rounded = _wider_program(task, base, counts - base) if step is None else base + step
    return _checked(task, rounded)


def _checked(task: RoundingTask, rounded: FloatArray) -> IntArray:
    """Return the counts as integers; raise if a sum is not preserved exactly."""
    integers = np.rint(rounded).astype(np.int64)
    rows = task.equalities
    # Rows with auxiliary values were left to the solver, and are implied by the level below.
    plain = np.ones(rows.shape[0], np.bool_)
    if task.fractional.size > task.cells:
        plain = np.diff(rows[:, task.cells :].indptr) == 0
        rows = rows[:, : task.cells]
    sums = rows.astype(np.int64) @ integers
    if integers.min(initial=0) < 0 or np.any(sums[plain] != task.totals[plain]):
        raise DataError("controlled rounding must keep every sum, got a solver answer that did not")
    return integers


def _largest_remainder(
    task: RoundingTask, base: FloatArray, share: FloatArray, free: IntArray
) -> FloatArray | None:
    """Return 1 for each count that is rounded up, sum by sum, or None if a sum is unreachable."""
    if not task.totals.size:
        return np.where(share > 0.5, 1.0, 0.0)
    missing = task.totals - task.equalities @ base
    group = sparse.csc_array(task.equalities).indices[free]
    order = np.lexsort((-share[free], group))
    group = group[order]
    size = np.bincount(group, minlength=missing.size)
    if np.any(missing < 0) or np.any(missing > size):
        return None
    rank = np.arange(group.size) - (np.cumsum(size) - size)[group]
    step = np.zeros(base.size)
    step[free[order]] = rank < missing[group]
    return step


def _bounds_of_sums(task: RoundingTask, base: FloatArray, free: IntArray) -> tuple[Any, FloatArray]:
    """Return ``A, b`` with ``A t <= b`` iff controlled sums stay between floor and ceiling."""
    rows = sparse.csr_array(task.controlled[:, free])
    several = np.flatnonzero(np.diff(rows.indptr) > 1)
    value = (task.controlled @ task.fractional)[several]
    fixed = (task.controlled[:, : task.cells] @ base)[several]
    upper = np.ceil(value - SNAP) - fixed
    lower = np.floor(value + SNAP) - fixed
    rows = sparse.csr_array(rows[several])
    return sparse.vstack([rows, -rows]), np.concatenate([upper, -lower])


def _program(
    task: RoundingTask, base: FloatArray, share: FloatArray, free: IntArray
) -> FloatArray | None:
    """Return 1 for each count that is rounded up, by one linear program, or None if infeasible."""
    auxiliary = np.arange(task.cells, task.fractional.size)
    columns = np.concatenate([free, auxiliary])
    missing = task.totals - task.equalities[:, : task.cells] @ base
    rows = sparse.csr_array(task.equalities[:, columns])
    used = np.diff(rows.indptr) > 0
    if np.any(missing[~used] != 0):
        return None
    step = np.zeros(base.size)
    if not free.size:
        return step
    matrix, bounds = _bounds_of_sums(task, base, free)
    if auxiliary.size:
        matrix = sparse.hstack([matrix, sparse.csr_array((matrix.shape[0], auxiliary.size))])
    answer = _integral(
        np.concatenate([1.0 - 2.0 * share[free], np.zeros(auxiliary.size)]),
        (sparse.csr_array(rows[np.flatnonzero(used)]), missing[used]),
        (sparse.csr_array(matrix), bounds),
        np.concatenate([np.ones(free.size), np.full(auxiliary.size, np.inf)]),
    )
    if answer is None:
        return None
    step[free] = answer[: free.size]
    return step


def _wider_program(task: RoundingTask, base: FloatArray, share: FloatArray) -> FloatArray:
    """Return the nearest integer counts, with steps larger than 1 allowed.

    Needed only where the solver's last digits hide a fraction: distance then grows by one with
    each further step up or down, and controlled sums are left free.
    """
    auxiliary = task.fractional.size - task.cells
    cost = [1.0 - 2.0 * share, np.ones(task.cells), np.ones(task.cells), np.zeros(auxiliary)]
    upper = [np.ones(task.cells), np.full(task.cells, np.inf), base, np.full(auxiliary, np.inf)]
    cells, rest = task.equalities[:, : task.cells], task.equalities[:, task.cells :]
    answer = _integral(
        np.concatenate(cost),
        (sparse.csr_array(sparse.hstack([cells, cells, -cells, rest])), task.totals - cells @ base),
        None,
        np.concatenate(upper),
    )
    if answer is None:
        raise DataError(
            "public zeros, facilities and invariants must leave room for whole numbers, got none"
        )
    first, up, down = (answer[k * task.cells : (k + 1) * task.cells] for k in range(3))
    return base + first + up - down


def _integral(
    cost: FloatArray,
    equal: tuple[sparse.csr_array, FloatArray],
    below: tuple[sparse.csr_array, FloatArray] | None,
    upper: FloatArray,
) -> FloatArray | None:
    """Return an integer minimiser of ``cost t``, or None if the rows are infeasible."""
    rows = [optimize.LinearConstraint(equal[0], equal[1], equal[1])] if equal[1].size else []
    if below is not None and below[1].size:
        rows.append(optimize.LinearConstraint(below[0], -np.inf, below[1]))
    # Sets that cross the classes of a lookahead leave the network: then branch and bound.
    for whole in (0, 1):
        answer = _vertex(cost, rows, upper, whole)
        if answer is None:
            return None
        rounded: FloatArray = np.rint(answer)
        if np.all(np.abs(answer - rounded) <= SNAP):
            break
    return rounded


def _vertex(cost: FloatArray, rows: list[Any], upper: FloatArray, whole: int) -> FloatArray | None:
    """Return an optimal vertex (integer if ``whole``), or None if none is found.

    A refusal counts only if it does not come from the presolve.
    """
    for presolve in (True, False):
        answer = optimize.milp(
            cost,
            constraints=rows,
            bounds=optimize.Bounds(0.0, upper),
            integrality=np.full(cost.size, whole),
            options={"mip_rel_gap": 0.0, "presolve": presolve},
        )
        if answer.status == 0:
            return np.asarray(answer.x, dtype=np.float64)
    return None


# The children of one node as one least-squares problem, and their integer answer.
#
# Unknowns are the cells that may hold somebody: a cell at zero in the parent is at zero in every
# child, so problems stay as sparse as the data.


def _numbers(live: BoolArray) -> tuple[IntArray, int]:
    """Return the index of each child's live cell as an unknown (-1 elsewhere), and their number."""
    index = np.full(live.shape, -1, dtype=np.int64)
    cells = int(live.sum())
    index[live] = np.arange(cells)
    return index, cells


def _expand(
    rows: sparse.csr_array | sparse.csc_array, live: BoolArray, index: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return triplets (row, unknown, weight) of a matrix repeated for every child."""
    entries = sparse.coo_array(rows)
    row, cell = entries.coords
    child, entry = np.nonzero(live[:, cell])
    return (
        child * rows.shape[0] + row[entry],
        index[child, cell[entry]],
        np.asarray(entries.data[entry], dtype=np.float64),
    )


class _Equations:
    """Equality rows, collected as triplets."""

    def __init__(self) -> None:
        self._row: list[IntArray] = []
        self._column: list[IntArray] = []
        self._data: list[FloatArray] = []
        self._totals: list[IntArray] = []
        self.count = 0

    def add(self, row: IntArray, column: IntArray, data: FloatArray, totals: IntArray) -> None:
        """Add rows; one without unknowns is left out and must have total zero."""
        used = np.zeros(totals.size, dtype=bool)
        used[row] = True
        if np.any(totals[~used] != 0):
            raise DataError(
                "a count that must be kept exactly lies in cells that are all public zeros: "
                f"got total {int(totals[~used][totals[~used] != 0][0])}"
            )
        number = self.count + np.cumsum(used) - 1
        self._row.append(number[row])
        self._column.append(column)
        self._data.append(data)
        self._totals.append(totals[used])
        self.count += int(used.sum())

    def matrix(self, unknowns: int) -> tuple[sparse.csr_array, IntArray]:
        if not self.count:
            return sparse.csr_array((0, unknowns)), np.zeros(0, dtype=np.int64)
        triplets = (
            np.concatenate(self._data),
            (np.concatenate(self._row), np.concatenate(self._column)),
        )
        return (
            sparse.csr_array(sparse.coo_array(triplets, shape=(self.count, unknowns))),
            np.concatenate(self._totals),
        )


def _equations(family: Family, index: IntArray, cells: int) -> tuple[sparse.csr_array, IntArray]:
    """Return the equalities from the parent's counts, the invariants and the lookahead."""
    equations = _Equations()
    if family.parent is not None:
        row, cell = np.nonzero(family.live)
        equations.add(cell, index[row, cell], np.ones(cell.size), family.parent)
    equations.add(*_expand(family.sets, family.live, index), family.totals.ravel())
    extra = cells
    for child, ahead in family.lookahead:
        extra = _add_lookahead(equations, ahead, index[child], extra)
    return equations.matrix(extra)


def _add_lookahead(equations: _Equations, ahead: Lookahead, index: IntArray, first: int) -> int:
    """Add equations that split one child over groups; return the number of unknowns so far."""
    group, kind = np.nonzero(ahead.allowed)
    unknown = first + np.arange(group.size)
    cells = np.flatnonzero(index >= 0)
    classes = ahead.allowed.shape[1]
    equations.add(
        np.concatenate([kind, ahead.classes[cells]]),
        np.concatenate([unknown, index[cells]]),
        np.concatenate([np.ones(group.size), -np.ones(cells.size)]),
        np.zeros(classes, dtype=np.int64),
    )
    numbers = np.full(ahead.allowed.shape, -1, dtype=np.int64)
    numbers[group, kind] = unknown
    equations.add(*_expand(ahead.sets, ahead.allowed, numbers), ahead.totals.ravel())
    return first + group.size


def least_squares(family: Family) -> tuple[LeastSquares, IntArray]:
    """Return a family's problem, and the integer right-hand side of its equalities."""
    live = family.live
    index, cells = _numbers(live)
    equalities, totals = _equations(family, index, cells)
    unknowns = equalities.shape[1]
    diagonal, linear = np.zeros(unknowns), np.zeros(unknowns)
    triplets: list[tuple[IntArray, IntArray, FloatArray]] = []
    weights: list[FloatArray] = []
    targets: list[FloatArray] = []
    used_rows = 0
    for query in family.queries:
        row, column, data = _expand(query.rows, live, index)
        answers = query.noisy.ravel().astype(np.float64)
        strength = np.tile(np.broadcast_to(query.weight, query.rows.shape[0]), live.shape[0])
        length = np.bincount(row, minlength=answers.size)
        single = length[row] == 1
        if single.any():  # a query of one cell needs no row of its own
            alone, weight = column[single], strength[row[single]] * data[single]
            diagonal += np.bincount(alone, weight * data[single], minlength=unknowns)
            linear -= np.bincount(alone, weight * answers[row[single]], minlength=unknowns)
        several = length > 1
        number = used_rows + np.cumsum(several) - 1
        triplets.append((number[row[~single]], column[~single], data[~single]))
        weights.append(strength[several])
        targets.append(answers[several])
        used_rows += int(several.sum())
    row, column = (np.concatenate([t[k] for t in triplets]) for k in (0, 1))
    values = np.concatenate([t[2] for t in triplets])
    rows = sparse.coo_array((values, (row, column)), shape=(used_rows, unknowns))
    problem = LeastSquares(
        diagonal,
        linear,
        sparse.csr_array(rows),
        np.concatenate(weights),
        np.concatenate(targets),
        equalities,
        totals.astype(np.float64),
    )
    return problem, totals


def _controlled_rows(family: Family, unknowns: int) -> sparse.csr_array:
    index, _ = _numbers(family.live)
    row, column, data = _expand(family.controlled, family.live, index)
    shape = (family.live.shape[0] * family.controlled.shape[0], unknowns)
    return sparse.csr_array(sparse.coo_array((data, (row, column)), shape=shape))


def _chance(family: Family) -> np.random.Generator:
    """Return a generator for undetermined choices, seeded by the noisy answers alone."""
    digest = hashlib.blake2b(digest_size=16)
    for query in family.queries:
        digest.update(np.ascontiguousarray(query.noisy).data)
    return np.random.default_rng(int.from_bytes(digest.digest(), "little"))


def solve_family(family: Family) -> IntArray:
    """Return the children's integer counts (children, cells).

    The fit is rounded over classes of cells that nothing distinguishes; these are split afterwards.
    """
    if family.parent is not None and (family.live.shape[0] == 1 or not family.parent.any()):
        # An only child, or nobody to place: there is nothing to choose.
        return np.broadcast_to(family.parent, family.live.shape)
    if not family.live.any():
        return np.zeros(family.live.shape, dtype=np.int64)
    classes, rng = cell_classes(family), _chance(family)
    few = classes.family
    problem, totals = least_squares(few)
    fractional = solve(problem).x
    rounded = controlled_rounding(
        RoundingTask(
            fractional,
            problem.equalities,
            totals,
            _controlled_rows(few, fractional.size),
            cells=int(few.live.sum()),
            cell_sums_only=not few.sets.shape[0] and not few.lookahead,
        ),
        rng,
    )
    sums = np.zeros(few.live.shape, dtype=np.int64)
    sums[few.live] = rounded
    return classes.split(sums, family.parent, rng)


_ROOM = 2**22  # numbers that are kept, about 64 MiB


class SolvedFamilies:
    """Solves families and caches the solutions, the least recently used dropped first.

    The cache is computed from confidential counts, so that only the custodian may have it.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._room, self._stored = room, 0
        self._solutions: OrderedDict[bytes, sparse.csr_array] = OrderedDict()

    def __call__(self, family: Family) -> IntArray:
        """Return the children's integer counts (children, cells), as ``solve_family`` does."""
        digest = hashlib.blake2b(digest_size=32)
        _take(family, digest)
        key = digest.digest()
        if key in self._solutions:
            self._solutions.move_to_end(key)
            counts: IntArray = self._solutions[key].toarray()
            return counts
        solved = solve_family(family)
        self._solutions[key] = entry = sparse.csr_array(solved)
        self._stored += _size(entry)
        while self._stored > self._room:
            self._stored -= _size(self._solutions.popitem(last=False)[1])
        return solved


def _size(counts: sparse.csr_array) -> int:
    return int(counts.data.size + counts.indptr.size)


def _take(value: Any, digest: Any) -> None:
    """Add a value's kind, shape and bytes to a digest, so that different values differ."""
    if is_dataclass(value):
        value = tuple(getattr(value, field.name) for field in fields(value))
    elif hasattr(value, "tocsr"):
        rows = value.tocsr()
        value = (rows.shape, rows.indptr, rows.indices, rows.data)
    if isinstance(value, tuple):
        digest.update(f"({len(value)}".encode())
        for one in value:
            _take(one, digest)
    elif isinstance(value, np.ndarray):
        digest.update(f"[{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).data)
    else:
        digest.update(f"{value!r};".encode())

"""A solution of each component of a program: by a search, then by a solver.

One in which all is seen is unique or has none.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bayesrisk._base.validation import IntArray
from bayesrisk.constraints import propagation
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.solvers import Deadline, Limits, SolverBackend
from bayesrisk.reconstruction.records.program import Program

#: Nodes that a depth-first search may look at before a solver is asked.
NODES = 1000
#: Variables above which a component is searched with fewer nodes, and how many: enough for two
#: dives, which mostly find a solution and another one, but seldom the farthest.
LARGE, FEW_NODES = 60, 60
#: One in so many variables of a wide component begins its relaxation; nodes of a dive.
_EVERY, _DIVES = 50, 400
#: Variables up to which components are put into one model when a solution is looked for.
TOGETHER = 2000


def solve_components(
    program: Program, solver: SolverBackend, limits: Limits
) -> tuple[IntArray, dict[int, int]]:
    """Return a solution, -1 where there is none, and what is known of its components.

    Of each component whose solution is not proved to be unique that is one of the kernels' findings
    (``SEVERAL``, ``SOME``, ``NONE``, ``UNKNOWN``).
    """
    star = np.full(program.model.low.size, -1, np.int64)
    findings = np.full(program.parts.size, propagation.PENDING, np.int64)
    _dive(program, star, findings, limits)
    _search(program, star, findings)
    without = [int(k) for k in np.flatnonzero(findings == propagation.UNKNOWN)]
    for group in _grouped(program, without):
        _solve_group(program, group, star, findings, solver, limits)
    if without:
        _search(program, star, findings)
    for k in np.flatnonzero(findings == propagation.SOME):
        other = distance_model(program, star, int(k)).another()
        answer = solver.solve(other, np.zeros(other.low.size, np.int64), limits=limits)
        if answer.values is not None:
            findings[k] = propagation.SEVERAL
        elif answer.status == Status.INFEASIBLE:
            findings[k] = propagation.UNIQUE
    return star, {int(k): int(findings[k]) for k in np.flatnonzero(findings != propagation.UNIQUE)}


def _dive(program: Program, star: IntArray, findings: IntArray, limits: Limits) -> None:
    """Look for two solutions of every large component whose rows are wide: mostly there are."""
    from bayesrisk.constraints.sifting import Sifted  # slow to load

    p = program.arrays
    wide = np.add.reduceat(np.append(p.row_low < p.row_high, False), p.first_row[:-1]) > 0
    for k in np.flatnonzero(wide & (np.diff(p.first_var) > LARGE)).tolist():
        model = program.parts.part([k])
        deadline = Deadline(limits.seconds, limits.nodes)
        # Few of its cells are not 0 in a solution: any of them do to begin with.
        linear = Sifted(model, np.arange(0, model.low.size, _EVERY), deadline=deadline)
        status, one = linear.find(np.zeros(model.low.size, np.int64), nodes=_DIVES)
        if one is None:
            findings[k] = propagation.NONE if status == "none" else propagation.UNKNOWN
            continue
        star[program.parts.variables([k])] = one
        _, other = linear.find(-one, nodes=_DIVES)
        findings[k] = (
            propagation.SOME if other is None or np.array_equal(one, other) else propagation.SEVERAL
        )


def node_limits(program: Program, *, farthest: bool = False) -> IntArray:
    """Return the limit of nodes for the search of every component."""
    size = np.diff(program.arrays.first_var)
    # The farthest solution of a large component is for a solver: only the bound is wanted.
    return np.where(size > LARGE, 1 if farthest else FEW_NODES + 2 * size, NODES)


def _search(program: Program, star: IntArray, findings: IntArray) -> None:
    """Search the components that are pending; those with a solution have it in ``star``."""
    k = program.parts.size
    has_star = (star[program.arrays.first_var[:-1]] >= 0).astype(np.int64)
    far = np.zeros(star.size, np.int64)
    lower, upper = np.zeros(k, np.int64), np.zeros(k, np.int64)
    answers = propagation.SearchAnswers(star, has_star, far, findings, lower, upper)
    propagation.search_components(program.arrays, program.work(), answers, 1, node_limits(program))


def _grouped(program: Program, components: list[int]) -> Iterable[list[int]]:
    """Yield components in groups whose variables fit into one model."""
    sizes = np.diff(program.arrays.first_var)
    group: list[int] = []
    total = 0
    for k in components:
        if group and total + sizes[k] > TOGETHER:
            yield group
            group, total = [], 0
        group.append(k)
        total += int(sizes[k])
    if group:
        yield group


def _solve_group(
    program: Program,
    group: list[int],
    star: IntArray,
    findings: IntArray,
    solver: SolverBackend,
    limits: Limits,
) -> None:
    """Look for solutions of several components in one model; one by one if that fails."""
    model = program.parts.part(group)
    answer = solver.solve(model, np.zeros(model.low.size, np.int64), limits=limits)
    if answer.values is not None:
        star[program.parts.variables(group)] = answer.values
        findings[group] = propagation.PENDING
    elif len(group) > 1:
        for k in group:
            _solve_group(program, [k], star, findings, solver, limits)
    elif answer.status == Status.INFEASIBLE:
        findings[group] = propagation.NONE


# -----------------------------------------------------------------------------
# Integer models of components of a program: any solution, and the one farthest from another.


@dataclass(frozen=True)
class DistanceModel:
    """A model whose largest value is the largest distance from a solution.

    Its variables are gains (the first ``gains`` of them), losses, and a binary for every cell
    that could do either; the objective is gains plus losses.
    """

    model: IntegerModel
    objective: IntArray
    gains: int

    def another(self) -> IntegerModel:
        """Return the model of the solutions that differ: none, when the solution is unique."""
        return self.model.beyond(self.objective, 1)


def distance_model(program: Program, star: IntArray, component: int) -> DistanceModel:
    """Return the model of the largest distance from the solution ``star`` within a component.

    A cell is ``x = star + gain - loss``.  Where the bounds let it only gain or only lose, that
    is all; where they let it do either, a binary says which: ``gain <= (high - star) b`` and
    ``loss <= (star - low) (1 - b)``.  The distance is the sum of gains and losses.  Variables are
    gains, losses and binaries, in this order.
    """
    part, star = program.parts.part([component]), star[program.parts.variables([component])]
    matrix, gain, loss = part.rows, part.high - star, star - part.low
    up, down = np.flatnonzero(gain > 0), np.flatnonzero(loss > 0)
    two_sided = np.flatnonzero((gain > 0) & (loss > 0))
    n, n_up, n_down = two_sided.size, up.size, down.size
    used = matrix @ star
    columns = matrix.tocsc()
    flow = sp.hstack([columns[:, up], -columns[:, down], sp.csc_array((used.size, n))])
    switch, numbers = n_up + n_down + np.arange(n), np.arange(n)
    ones = np.ones(n, np.int64)

    def linked(first: IntArray, weight: IntArray) -> sp.csr_array:
        data = np.concatenate([ones, weight])
        place = (np.tile(numbers, 2), np.concatenate([first, switch]))
        return sp.csr_array((data, place), shape=(n, n_up + n_down + n))

    model = IntegerModel(
        low=np.zeros(n_up + n_down + n, np.int64),
        high=np.concatenate([gain[up], loss[down], ones]),
        rows=sp.csr_array(
            sp.vstack(
                [
                    flow,
                    linked(np.searchsorted(up, two_sided), -gain[two_sided]),
                    linked(n_up + np.searchsorted(down, two_sided), loss[two_sided]),
                ],
                format="csr",
            ).astype(np.int64)
        ),
        row_low=np.concatenate([part.row_low - used, -gain[two_sided], np.zeros(n, np.int64)]),
        row_high=np.concatenate([part.row_high - used, np.zeros(n, np.int64), loss[two_sided]]),
    )
    objective = np.concatenate([np.ones(n_up + n_down, np.int64), np.zeros(n, np.int64)])
    return DistanceModel(model, objective, n_up)

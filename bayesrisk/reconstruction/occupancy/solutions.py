"""Likely households of a block, with their bedrooms: Eq. 2, the t best ones, and Eq. 8."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._random import Seed, generator
from bayesrisk._show import displayed
from bayesrisk._types import IntArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.occupancy._program import BlockProgram, block_program
from bayesrisk.reconstruction.occupancy.law import UNIT, HouseholdLaw
from bayesrisk.reconstruction.occupancy.statistics import OccupancyStatistics
from bayesrisk.reconstruction.solvers import Limits, make_solver
from bayesrisk.reconstruction.solvers.interfaces import SolverBackend
from bayesrisk.reconstruction.status import Status

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.reconstruction.occupancy._best import Best

_METHODS = ("exact", "perturbed")
_ERRORS = ("none", "absolute", "squared")


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyReconstruction:
    """Reconstructed households of blocks, one or several solutions of each.

    Attributes
    ----------
    geoids : ndarray of str
        The blocks.
    status : tuple of str
        For each block: ``proved`` (the best ones), ``feasible``, ``infeasible`` (the tables
        contradict each other) or ``unknown`` (a limit was reached).
    outside_sample : ndarray of bool
        Whether kinds outside the sample were needed.
    solutions : ndarray of int64
        Number of solutions of each block; of the method ``exact`` with a ``count`` above 1 they are
        the best ones also where a limit left fewer than wanted (``feasible``).
    block, solution, size, race_ethnicity, children, bedrooms, subsidised, households : ndarray
        One entry for each different household of each solution: position of the block, number of
        the solution, codes of ``household-occupancy``, and how many there are.
    log_likelihood : tuple of ndarray
        For each block the log-likelihoods of its solutions, in nats, each off by at most 5e-5 for
        a household.
    misfit : tuple of ndarray of int64
        For each block the total error of its solutions: distances to what was published (for
        rounded numbers to the interval of counts behind them); 0 but for noisy tables.
    version : str
        Version of bayesrisk.
    """

    geoids: NDArray[np.str_]
    status: tuple[str, ...]
    outside_sample: NDArray[np.bool_]
    solutions: IntArray
    block: IntArray
    solution: IntArray
    size: IntArray
    race_ethnicity: IntArray
    children: IntArray
    bedrooms: IntArray
    subsidised: IntArray
    households: IntArray
    log_likelihood: tuple[NDArray[np.float64], ...]
    misfit: tuple[IntArray, ...]
    version: str = __version__

    @property
    def violation(self) -> NDArray[np.bool_]:
        """Whether the households of each entry violate the occupancy limit."""
        small = (self.bedrooms == 1) & (self.size > 2)
        return np.asarray(small | ((self.bedrooms == 2) & (self.size > 4)), dtype=bool)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each different household of each solution.

        Returns
        -------
        pandas.DataFrame
            Columns ``block, solution, size, race_ethnicity, children, bedrooms, subsidised,
            households, violation``.
        """
        import pandas as pd  # slow to import

        names = ("solution", "size", "race_ethnicity", "children", "bedrooms", "subsidised")
        return pd.DataFrame(
            {
                "block": self.geoids[self.block],
                **{name: getattr(self, name) for name in names},
                "households": self.households,
                "violation": self.violation,
            }
        ).astype({"block": "str"})


class _Plan(NamedTuple):
    """How solutions are looked for."""

    law: HouseholdLaw
    wanted: int
    method: str
    scale: float
    error: str
    likelihood: bool
    solver: SolverBackend
    limits: Limits


class _Found(NamedTuple):
    """Solutions of one block: rows of kind, bedrooms (0: not subsidised), households."""

    status: str
    outside: bool
    rows: list[IntArray]
    log_likelihood: NDArray[np.float64]
    misfit: IntArray


def reconstruct_occupancy(
    blocks: OccupancyStatistics,
    law: HouseholdLaw,
    *,
    rng: Seed,
    count: int = 1,
    method: str = "exact",
    scale: float | None = None,
    error: str = "none",
    likelihood: bool = True,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
) -> OccupancyReconstruction:
    r"""Return the most likely households of every block that its statistics allow.

    Maximises :math:`\sum_{d} \log \hat p(d)` over multisets of households :math:`d` that satisfy
    the statistics (Eq. 2), or, for noisy statistics, that minus the error of the statistics
    (Eq. 8).  The sample says nothing of subsidies and bedrooms: among the assignments that HUD's
    statistics allow one is taken at random.

    Parameters
    ----------
    blocks : OccupancyStatistics
        The statistics.
    law : HouseholdLaw
        Probability of every kind of household.
    rng : int, Generator or SeedSequence
        Source of what is taken at random: assignments, ties and perturbations.
    count : int, default 1
        Number of solutions wanted.
    method : {"exact", "perturbed"}, default "exact"
        ``exact``: the best ones in order, different in the households of each kind (partition of
        Lawler); there may be fewer.  ``perturbed``: the best one for each of ``count`` randomly
        changed objectives, which may repeat; more diverse, but not the best ones.
    scale : float, optional
        Of the Gumbel noise of ``perturbed`` on each log probability, in nats, > 0.
    error : {"none", "absolute", "squared"}, default "none"
        Whether statistics may be missed, and what by counts; the number of households never is.
        ``squared`` takes a variable for each unit of error that a solution can have: blocks that
        need more than a million are refused.
    likelihood : bool, default True
        Whether log probabilities count; without, only errors do.
    solver : str or SolverBackend, default "highs"
        See :func:`make_solver`.
    time_limit : float, optional
        Seconds for each block; none by default.

    Returns
    -------
    OccupancyReconstruction
        Households of every solution.

    Notes
    -----
    Households of 7 people or more count as 7, children of 6 or more as 6.  Without errors, and
    where some household can be of 7 or more, published numbers of people and children that are
    larger than sizes can explain are lowered to what they can; elsewhere they are contradictions,
    and every block that :func:`detect_occupancy` finds ``infeasible`` is so here.

    The error of a number that was rounded, such as a percentage of HUD's, is the distance to the
    interval of counts behind it: exact statistics have a solution without error.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), Eq. 2, Eq. 8, appendices C and E. E. L. Lawler, "A
    procedure for computing the K best solutions to discrete optimization problems", Management
    Science 18 (1972).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from bayesrisk.reconstruction import HouseholdLaw, OccupancyStatistics
    >>> one, row = np.ones(1, dtype=int), np.eye(14, dtype=int)
    >>> block = OccupancyStatistics(
    ...     np.array(["500010101001000"]), households=one, population=3 * one,
    ...     sizes=row[2:3, :7], race=row[:1], children=one, hud_households=one,
    ...     hud_people=3 * one, hud_race=row[:1, :6], hud_children=np.ones((1, 2), dtype=int),
    ...     hud_bedrooms=row[:1, :3])
    >>> sample = pd.DataFrame({"size": [3, 3, 3], "race_ethnicity": 0, "children": [0, 1, 2]})
    >>> found = reconstruct_occupancy(block, HouseholdLaw.from_sample(sample, smoothing=0.5), rng=1)
    >>> found.status, found.size, found.bedrooms, found.violation
    (('proved',), array([3]), array([1]), array([ True]))
    """
    if not isinstance(blocks, OccupancyStatistics):
        raise ArgumentTypeError(f"blocks must be statistics, got {type(blocks).__name__}")
    if not isinstance(law, HouseholdLaw):
        raise ArgumentTypeError(f"law must be a HouseholdLaw, got {type(law).__name__}")
    random = generator(rng)
    check.choice(method, "method", _METHODS)
    check.flag(likelihood, "likelihood")
    check.choice(error, "error", _ERRORS)
    if (method == "perturbed") != (scale is not None):
        raise ArgumentError(
            f"scale must be given for perturbed objectives only, got {shown(scale)}"
        )
    if scale is not None:
        scale = check.scalar(scale, "scale", lower=0.0, upper=100.0, bounds="(]")
    if time_limit is not None:
        time_limit = check.scalar(time_limit, "time_limit", lower=0.0, bounds="(]")
    plan = _Plan(
        law,
        check.integer(count, "count", lower=1, upper=10**6),
        method,
        scale or 0.0,
        error,
        bool(likelihood),
        make_solver(solver),
        Limits(seconds=time_limit),
    )
    return _collected(blocks, law, [_solve(blocks, i, plan, random) for i in range(len(blocks))])


def _solve(blocks: OccupancyStatistics, at: int, plan: _Plan, rng: np.random.Generator) -> _Found:
    """Return the solutions of one block; with kinds outside the sample where it needs them."""
    from bayesrisk.reconstruction.occupancy._best import shuffled_assignments

    for every in (False, True):
        program = _program(blocks, at, plan, every_kind=every)
        best = _best(program, plan, rng)
        if best.status != Status.INFEASIBLE:
            break
    values = shuffled_assignments(program, best.values, rng)
    n = program.kinds.size
    weight = plan.law.log_probability[program.kinds]
    rows = [_assigned(program, v, rng) for v in values]
    likelihood = np.array([int(weight @ v[:n]) for v in values], dtype=np.float64) / UNIT
    cost = program.objective[n:]
    misfit = np.array([-int(cost @ v[n:]) // UNIT for v in values], dtype=np.int64)
    return _Found(best.status, every, rows, likelihood, misfit)


def _program(
    blocks: OccupancyStatistics, at: int, plan: _Plan, *, every_kind: bool
) -> BlockProgram:
    """Return the program of a block; squared errors only as far as the best one can reach."""
    about = {"every_kind": every_kind, "likelihood": plan.likelihood}
    if plan.error != "squared":
        return block_program(blocks, at, plan.law, error=plan.error, **about)
    from bayesrisk.reconstruction.occupancy._best import best_solution

    linear = block_program(blocks, at, plan.law, error="absolute", **about)
    found = best_solution(linear, plan.solver, plan.limits)
    if not found.values:
        return linear
    n, m = linear.kinds.size, 3 * linear.n_classes
    missed = linear.model.rows[:, n + m :] @ found.values[0][n + m :]
    weight = linear.objective[:n]
    # No row of the best solution misses by more than this one does in all, its likelihood
    # counted against the largest that any has.
    spare = int(weight.max(initial=-(2**40))) * int(blocks.households[at])
    spare -= int(weight @ found.values[0][:n])
    most = isqrt(int(missed @ missed) + max(spare, 0) // UNIT + 1)
    return block_program(blocks, at, plan.law, error="squared", most=max(most, 1), **about)


def _best(program: BlockProgram, plan: _Plan, rng: np.random.Generator) -> Best:
    from bayesrisk.reconstruction.occupancy import _best as search  # loads a compiled solver

    if plan.method == "perturbed":
        return search.shaken_solutions(
            program, plan.wanted, plan.scale, rng, plan.solver, plan.limits
        )
    if plan.wanted == 1:
        return search.best_solution(program, plan.solver, plan.limits)
    return search.best_solutions(program, plan.wanted, rng, plan.solver, plan.limits)


def _assigned(program: BlockProgram, values: IntArray, rng: np.random.Generator) -> IntArray:
    """Return rows of kind, bedrooms and households: classes are dealt out at random."""
    homes, subsidised = program.split(values)
    rows = []
    for c in np.flatnonzero(np.bincount(program.class_of, homes, program.n_classes)):
        members = np.flatnonzero((program.class_of == c) & (homes > 0))
        left = homes[members]
        for rooms in (1, 2, 3):
            wanted = int(subsidised[rooms - 1, c])
            if not wanted:
                continue
            taken = rng.multivariate_hypergeometric(left, wanted)
            left = left - taken
            rows += [(members[i], rooms, taken[i]) for i in np.flatnonzero(taken)]
        rows += [(members[i], 0, left[i]) for i in np.flatnonzero(left)]
    found = np.array(rows, dtype=np.int64).reshape(-1, 3)
    found[:, 0] = program.kinds[found[:, 0]]
    return found


def _collected(
    blocks: OccupancyStatistics, law: HouseholdLaw, found: list[_Found]
) -> OccupancyReconstruction:
    """Return the solutions of all blocks as one result."""
    pieces = [np.empty((0, 5), dtype=np.int64)]
    for at, answer in enumerate(found):
        for number, rows in enumerate(answer.rows):
            label = np.full((len(rows), 2), (at, number), dtype=np.int64)
            pieces.append(np.hstack([label, rows]))
    block, solution, kind, rooms, homes = np.concatenate(pieces).T
    return OccupancyReconstruction(
        blocks.geoids,
        tuple(f.status for f in found),
        np.array([f.outside for f in found], dtype=bool),
        np.array([len(f.rows) for f in found], dtype=np.int64),
        block,
        solution,
        law.size[kind],
        law.race_ethnicity[kind],
        law.children[kind],
        rooms,
        (rooms > 0).astype(np.int64),
        homes,
        tuple(f.log_likelihood for f in found),
        tuple(f.misfit for f in found),
    )

"""Likely households of a block, with their bedrooms: Eq. 2, the t best ones, and Eq. 8."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._random import Seed, generator
from bayesrisk._show import displayed
from bayesrisk._validation import IntArray
from bayesrisk._version import __version__
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.reconstruction.occupancy.detection import UNIT, HouseholdLaw
from bayesrisk.reconstruction.occupancy.program import (
    BlockProgram,
    block_program,
    kind_limit,
    statistic_rows,
)
from bayesrisk.reconstruction.occupancy.statistics import OccupancyStatistics
from bayesrisk.reconstruction.registry import Status
from bayesrisk.reconstruction.solvers import IntegerModel, Limits, make_solver
from bayesrisk.reconstruction.solvers.model import SolverBackend

if TYPE_CHECKING:
    import pandas as pd

    from bayesrisk.reconstruction.occupancy.program import Best

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
        """Return one row for each different household of each solution."""
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


class _SolutionPlan(NamedTuple):
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
    >>> from bayesrisk.reconstruction import HouseholdLaw
    >>> from bayesrisk.reconstruction.occupancy.statistics import OccupancyStatistics
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
    plan = _SolutionPlan(
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


def _solve(
    blocks: OccupancyStatistics, at: int, plan: _SolutionPlan, rng: np.random.Generator
) -> _Found:
    """Return the solutions of one block; with kinds outside the sample where it needs them."""
    from bayesrisk.reconstruction.occupancy.program import shuffled_assignments

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
    blocks: OccupancyStatistics, at: int, plan: _SolutionPlan, *, every_kind: bool
) -> BlockProgram:
    """Return the program of a block; squared errors only as far as the best one can reach."""
    about = {"every_kind": every_kind, "likelihood": plan.likelihood}
    if plan.error != "squared":
        return block_program(blocks, at, plan.law, error=plan.error, **about)
    from bayesrisk.reconstruction.occupancy.program import best_solution

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


def _best(program: BlockProgram, plan: _SolutionPlan, rng: np.random.Generator) -> Best:
    from bayesrisk.reconstruction.occupancy import program as search

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


# -----------------------------------------------------------------------------
# How far from a reconstruction other households that fit the same statistics can be (Eq. 3).


_ATTRIBUTES = ("full", "binned")


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyVariability:
    """Solution variability of blocks.

    Attributes
    ----------
    geoids : ndarray of str
        The blocks.
    attributes : str
        ``full`` or ``binned``.
    status : tuple of str
        For each block: ``proved`` (the largest distance is known), ``bounded`` (only between
        ``lower`` and ``upper``), or ``none`` (there is no reconstruction).
    households : ndarray of int64
        Households of each block.
    lower, upper : ndarray of int64
        Bounds of the largest L1 distance between the histograms of the reconstruction and of
        other feasible ones, in 0, 2, ..., 2 * households.
    version : str
        Version of bayesrisk.
    """

    geoids: NDArray[np.str_]
    attributes: str
    status: tuple[str, ...]
    households: IntArray
    lower: IntArray
    upper: IntArray
    version: str = __version__

    @property
    def share(self) -> NDArray[np.float64]:
        """Share of records that may be wrong: ``upper / (2 households)``; NaN without any."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = self.upper / (2.0 * self.households)
        none = np.array([s == Status.NOT_RUN for s in self.status], dtype=bool)
        return np.asarray(np.where(none, np.nan, share))

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each block."""
        import pandas as pd  # slow to import

        names = ("households", "lower", "upper", "share")
        columns = {name: getattr(self, name) for name in names}
        found = {"block": self.geoids, "attributes": self.attributes, "status": list(self.status)}
        texts = dict.fromkeys(("block", "attributes", "status"), "str")
        return pd.DataFrame({**found, **columns}).astype(texts)


class _DistanceBounds(NamedTuple):
    status: str
    lower: int
    upper: int


def occupancy_variability(
    blocks: OccupancyStatistics,
    found: OccupancyReconstruction,
    law: HouseholdLaw,
    *,
    attributes: str,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
) -> OccupancyVariability:
    r"""Return how many households of a reconstruction other feasible ones can have differently.

    :math:`\max_{D'} \sum_m |h_m(D^*) - h_m(D')|` over all households :math:`D'` that fit the
    statistics, likely or not, with :math:`h_m` the number that have attributes :math:`m`.

    Parameters
    ----------
    blocks : OccupancyStatistics
        The statistics.
    found : OccupancyReconstruction
        The first solution of each block is looked at.
    law : HouseholdLaw
        Kinds of households; their probabilities do not matter.
    attributes : {"full", "binned"}
        ``full``: size, race and ethnicity, number of children, subsidy and bedrooms; ``binned``:
        size, white and not Hispanic or not, children or not, subsidy and bedrooms.
    solver : str or SolverBackend, default "highs"
        See :func:`make_solver`.
    time_limit : float, optional
        Seconds for each block; none by default.

    Returns
    -------
    OccupancyVariability
        Bounds for each block, equal where proved.

    References
    ----------
    Steed, Qing and Wu (2024, arXiv:2407.04776), Eq. 3, after Abowd et al. (2023).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from bayesrisk.reconstruction import HouseholdLaw, reconstruct_occupancy
    >>> from bayesrisk.reconstruction.occupancy.statistics import OccupancyStatistics
    >>> one, row = np.ones(1, dtype=int), np.eye(14, dtype=int)
    >>> block = OccupancyStatistics(
    ...     np.array(["500010101001000"]), households=one, population=3 * one,
    ...     sizes=row[2:3, :7], race=row[:1], children=one, hud_households=one,
    ...     hud_people=3 * one, hud_race=row[:1, :6], hud_children=np.ones((1, 2), dtype=int),
    ...     hud_bedrooms=row[:1, :3])
    >>> sample = pd.DataFrame({"size": [3, 3, 3], "race_ethnicity": 0, "children": [0, 1, 2]})
    >>> law = HouseholdLaw.from_sample(sample, smoothing=0.5)
    >>> found = reconstruct_occupancy(block, law, rng=1)
    >>> full = occupancy_variability(block, found, law, attributes="full")
    >>> binned = occupancy_variability(block, found, law, attributes="binned")
    >>> full.upper, binned.upper
    (array([2]), array([0]))
    """
    if not isinstance(blocks, OccupancyStatistics):
        raise ArgumentTypeError(f"blocks must be statistics, got {type(blocks).__name__}")
    if not isinstance(found, OccupancyReconstruction):
        raise ArgumentTypeError(f"found must be a reconstruction, got {type(found).__name__}")
    if not isinstance(law, HouseholdLaw):
        raise ArgumentTypeError(f"law must be a HouseholdLaw, got {type(law).__name__}")
    check.choice(attributes, "attributes", _ATTRIBUTES)
    if not np.array_equal(blocks.geoids, found.geoids):
        raise ArgumentError("found must be of the same blocks as blocks")
    if time_limit is not None:
        time_limit = check.scalar(time_limit, "time_limit", lower=0.0, bounds="(]")
    backend, limits = make_solver(solver), Limits(seconds=time_limit)
    kinds = law if attributes == "full" else _coarse(law)
    answers = [
        _largest(blocks, at, found, kinds, attributes == "full", backend, limits)
        for at in range(len(blocks))
    ]
    status, lower, upper = zip(*answers, strict=True) if answers else ((), (), ())
    return OccupancyVariability(
        blocks.geoids,
        attributes,
        status,
        blocks.households,
        np.array(lower, dtype=np.int64),
        np.array(upper, dtype=np.int64),
    )


def _coarse(law: HouseholdLaw) -> HouseholdLaw:
    """Return the kinds without children, and with as many as their size can have.

    Published numbers of children are lower bounds, so that fewer children fit nothing more.
    """
    most = np.minimum(law.size - law.adults, 6)
    kept = (law.children == 0) | (law.children == most)
    names = ("size", "race_ethnicity", "children", "log_probability", "in_sample")
    return replace(law, **{name: getattr(law, name)[kept] for name in names})


def _cell(
    size: IntArray, race: IntArray, children: IntArray, rooms: IntArray, *, full: bool
) -> IntArray:
    """Return a number for the attributes of households."""
    race = race if full else (race == 0).astype(np.int64)
    children = children if full else (children > 0).astype(np.int64)
    return ((size * 14 + race) * 7 + children) * 4 + rooms


def _largest(
    blocks: OccupancyStatistics,
    at: int,
    found: OccupancyReconstruction,
    law: HouseholdLaw,
    full: bool,
    solver: SolverBackend,
    limits: Limits,
) -> _DistanceBounds:
    """Return the bounds of the largest distance in one block."""
    if not found.solutions[at]:
        return _DistanceBounds(Status.NOT_RUN, 0, 0)
    n = int(blocks.households[at])
    mine = (found.block == at) & (found.solution == 0)
    cells = _cell(
        *(getattr(found, a)[mine] for a in ("size", "race_ethnicity", "children", "bedrooms")),
        full=full,
    )
    different, inverse = np.unique(cells, return_inverse=True)
    star = np.bincount(inverse, found.households[mine]).astype(np.int64)
    model, cell = _model(blocks, at, law, full=full)
    position = np.minimum(np.searchsorted(different, cell), max(different.size - 1, 0))
    position = np.where(different[position] == cell, position, -1) if n else position
    # Where no household need be as in the reconstruction, all can differ.
    shared = solver.solve(model, -(position >= 0).astype(np.int64), limits=limits)
    if shared.value == 0:
        return _DistanceBounds(Status.PROVED, 2 * n, 2 * n)
    overlap, objective = _overlap(model, position, star)
    best = solver.solve(overlap, objective, limits=limits)
    if best.status == Status.INFEASIBLE:
        return _DistanceBounds(Status.NOT_RUN, 0, 0)
    if best.value is None:
        return _DistanceBounds(Status.BOUNDED, 0, 2 * n)
    lower, upper = 2 * (n + best.value), 2 * int(min(n + best.bound, n))
    exact = best.status == Status.PROVED
    return _DistanceBounds(Status.PROVED if exact else Status.BOUNDED, lower, upper)


def _model(
    blocks: OccupancyStatistics, at: int, law: HouseholdLaw, *, full: bool
) -> tuple[IntegerModel, IntArray]:
    """Return the program over kinds and bedrooms (0: not subsidised), and the cells of these."""
    limit = kind_limit(blocks, at, law, exact=True)
    kinds = np.flatnonzero(limit)
    rows, low, high = statistic_rows(blocks, at, law, kinds, exact=True)
    homes, subsidised = rows[:, : kinds.size], rows[:, kinds.size :]
    columns = sp.hstack([homes] * 4) + sp.hstack([homes * 0, subsidised])
    attributes = (law.size[kinds], law.race_ethnicity[kinds], law.children[kinds])
    size, race, children = (np.tile(a, 4) for a in attributes)
    rooms = np.repeat(np.arange(4), kinds.size)
    top = np.tile(limit[kinds], 4)
    top[kinds.size :] = np.minimum(top[kinds.size :], blocks.hud_households[at])
    model = IntegerModel(np.zeros(top.size, np.int64), top, sp.csr_array(columns), low, high)
    return model, _cell(size, race, children, rooms, full=full)


def _overlap(
    model: IntegerModel, position: IntArray, star: IntArray
) -> tuple[IntegerModel, IntArray]:
    """Return the program of the smallest overlap with a histogram, and its objective.

    For each cell of the reconstruction: households there = shared + beyond, where a switch says
    whether there are more than in the reconstruction; then all of those are shared.
    """
    n, k = model.low.size, star.size
    inside = np.flatnonzero(position >= 0)
    here = sp.csr_array((np.ones(inside.size, np.int64), (position[inside], inside)), shape=(k, n))
    room = np.asarray(here @ model.high, dtype=np.int64)
    most = np.minimum(room, int(model.row_low[0]))
    beyond = np.maximum(most - star, 0)
    eye = sp.eye_array(k, dtype=np.int64)
    rows = sp.vstack(
        [
            sp.hstack([model.rows, sp.csr_array((model.rows.shape[0], 3 * k), dtype=np.int64)]),
            sp.hstack([here, -eye, -eye, 0 * eye]),
            sp.hstack([0 * here, 0 * eye, eye, -_diagonal(beyond)]),
            sp.hstack([0 * here, eye, 0 * eye, -_diagonal(star)]),
        ],
        format="csr",
    )
    zeros = np.zeros(k, np.int64)
    whole = IntegerModel(
        np.zeros(n + 3 * k, np.int64),
        np.concatenate([model.high, star, beyond, (beyond > 0).astype(np.int64)]),
        sp.csr_array(rows.astype(np.int64)),
        np.concatenate([model.row_low, zeros, -beyond, zeros]),
        np.concatenate([model.row_high, zeros, zeros, star]),
    )
    objective = np.zeros(n + 3 * k, np.int64)
    objective[n : n + k] = -1
    return whole, objective


def _diagonal(values: IntArray) -> sp.csr_array:
    at = np.arange(values.size)
    return sp.csr_array((values, (at, at)), shape=(values.size, values.size))

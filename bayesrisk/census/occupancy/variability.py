"""Largest distance between a reconstruction and other households with equal statistics (Eq. 3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import FloatArray, IntArray, TextArray
from bayesrisk.census.occupancy.household_law import HouseholdLaw
from bayesrisk.census.occupancy.programs import kind_limit, statistic_rows
from bayesrisk.census.occupancy.solutions import OccupancyReconstruction
from bayesrisk.census.occupancy.statistics import OccupancyStatistics
from bayesrisk.constraints.model import IntegerModel, Status
from bayesrisk.constraints.solvers import Limits, SolverBackend, solver_and_limits
from bayesrisk.exceptions import ArgumentError

_ATTRIBUTES = ("full", "binned")


@displayed
@dataclass(frozen=True, eq=False)
class OccupancyVariability(Tabular):
    """Solution variability of each block's households.

    Attributes
    ----------
    geoids : ndarray of str
        The blocks.
    attributes : str
        ``full`` or ``binned``.
    status : tuple of str
        For each block: ``proved`` (the largest distance is known), ``bounded`` (it is between
        ``lower`` and ``upper``), or ``none`` (there is no reconstruction).
    households : ndarray of int64
        Households of each block.
    lower, upper : ndarray of int64
        Bounds of the largest L1 distance between the histograms of the reconstruction and of other
        feasible ones, in 0, 2, ..., 2 * households.
    """

    geoids: TextArray
    attributes: str
    status: tuple[str, ...]
    households: IntArray
    lower: IntArray
    upper: IntArray

    @property
    def share(self) -> FloatArray:
        """Share of records that may be wrong: ``upper / (2 households)``; NaN without any."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = self.upper / (2.0 * self.households)
        missing = np.array([s == Status.NOT_RUN for s in self.status], dtype=bool)
        return np.asarray(np.where(missing, np.nan, share))

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each block."""
        names = ("households", "lower", "upper", "share")
        columns = {name: getattr(self, name) for name in names}
        labels = {"block": self.geoids, "attributes": self.attributes, "status": list(self.status)}
        texts = dict.fromkeys(("block", "attributes", "status"), "str")
        return pd.DataFrame({**labels, **columns}).astype(texts)


def occupancy_variability(
    blocks: OccupancyStatistics,
    reconstruction: OccupancyReconstruction,
    law: HouseholdLaw,
    *,
    attributes: str,
    solver: str | SolverBackend = "highs",
    time_limit: float | None = None,
) -> OccupancyVariability:
    r"""Return the number of households in which a block's reconstructions can differ.

    It is :math:`\max_{D'} \sum_m |h_m(D^*) - h_m(D')|` over all households :math:`D'` that fit the
    statistics, probable or not, with :math:`h_m` the number that have attributes :math:`m`.

    Source: Steed, Qing and Wu (2024, arXiv:2407.04776), Eq. 3, after Abowd et al. (2023).

    Parameters
    ----------
    blocks : OccupancyStatistics
        The statistics.
    reconstruction : OccupancyReconstruction
        The reconstruction; the first solution of each block is used.
    law : HouseholdLaw
        Kinds of households; their probabilities do not matter.
    attributes : {"full", "binned"}
        ``full``: size, race and ethnicity, number of children, subsidy and bedrooms; ``binned``:
        size, White not Hispanic or other, children or none, subsidy and bedrooms.
    solver, time_limit
        As for :func:`reconstruct_occupancy`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from bayesrisk.census import HouseholdLaw, reconstruct_occupancy
    >>> from bayesrisk.census.occupancy.statistics import OccupancyStatistics
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
    check.instance(blocks, OccupancyStatistics, "blocks").exact("occupancy_variability")
    check.instance(reconstruction, OccupancyReconstruction, "reconstruction")
    check.instance(law, HouseholdLaw, "law")
    check.choice(attributes, "attributes", _ATTRIBUTES)
    if not np.array_equal(blocks.geoids, reconstruction.geoids):
        raise ArgumentError("reconstruction must be of the same blocks as blocks")
    backend, limits = solver_and_limits(solver, time_limit)
    kinds = law if attributes == "full" else _coarse(law)
    answers = [
        _largest(blocks, number, reconstruction, kinds, attributes == "full", backend, limits)
        for number in range(len(blocks))
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
    """Return the law restricted to kinds with no children or as many as fit their size.

    Published numbers of children are lower bounds, so that fewer children fit nothing more.
    """
    most = np.minimum(law.size - law.adults, 6)
    chosen = (law.children == 0) | (law.children == most)
    names = ("size", "race_ethnicity", "children", "log_probability", "in_sample")
    return replace(law, **{name: getattr(law, name)[chosen] for name in names})


def _cell(
    size: IntArray, race: IntArray, children: IntArray, rooms: IntArray, *, full: bool
) -> IntArray:
    race = race if full else (race == 0).astype(np.int64)
    children = children if full else (children > 0).astype(np.int64)
    return ((size * 14 + race) * 7 + children) * 4 + rooms


def _largest(
    blocks: OccupancyStatistics,
    block: int,
    solution: OccupancyReconstruction,
    law: HouseholdLaw,
    full: bool,
    solver: SolverBackend,
    limits: Limits,
) -> tuple[str, int, int]:
    """Return the status and bounds of the largest distance in one block."""
    if not solution.solutions[block]:
        return Status.NOT_RUN, 0, 0
    n = int(blocks.households[block])
    mine = (solution.block == block) & (solution.solution == 0)
    cells = _cell(
        *(getattr(solution, a)[mine] for a in ("size", "race_ethnicity", "children", "bedrooms")),
        full=full,
    )
    different, inverse = np.unique(cells, return_inverse=True)
    star = np.bincount(inverse, solution.households[mine]).astype(np.int64)
    model, cell = _model(blocks, block, law, full=full)
    position: IntArray = pd.Index(different).get_indexer(pd.Index(cell))
    # Where no household need be as in the reconstruction, all can differ.
    shared = solver.solve(model, -(position >= 0).astype(np.int64), limits=limits)
    if shared.value == 0:
        return Status.PROVED, 2 * n, 2 * n
    overlap, objective = _overlap(model, position, star)
    best = solver.solve(overlap, objective, limits=limits)
    if best.status == Status.INFEASIBLE:
        return Status.NOT_RUN, 0, 0
    if best.value is None:
        return Status.BOUNDED, 0, 2 * n
    lower, upper = 2 * (n + best.value), 2 * int(min(n + best.bound, n))
    exact = best.status == Status.PROVED
    return Status.PROVED if exact else Status.BOUNDED, lower, upper


def _model(
    blocks: OccupancyStatistics, block: int, law: HouseholdLaw, *, full: bool
) -> tuple[IntegerModel, IntArray]:
    """Return the program over kinds and bedrooms (0: not subsidised), and each variable's cell."""
    limit = kind_limit(blocks, block, law, exact=True)
    kinds = np.flatnonzero(limit)
    rows, low, high = statistic_rows(blocks, block, law, kinds, exact=True)
    homes, subsidised = rows[:, : kinds.size], rows[:, kinds.size :]
    columns = sp.hstack([homes] * 4) + sp.hstack([homes * 0, subsidised])
    attributes = (law.size[kinds], law.race_ethnicity[kinds], law.children[kinds])
    size, race, children = (np.tile(a, 4) for a in attributes)
    rooms = np.repeat(np.arange(4), kinds.size)
    top = np.tile(limit[kinds], 4)
    top[kinds.size :] = np.minimum(top[kinds.size :], blocks.hud_households[block])
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
    selection = sp.csr_array(
        (np.ones(inside.size, np.int64), (position[inside], inside)), shape=(k, n)
    )
    room = np.asarray(selection @ model.high, dtype=np.int64)
    most = np.minimum(room, int(model.row_low[0]))
    beyond = np.maximum(most - star, 0)
    eye = sp.eye_array(k, dtype=np.int64)
    rows = sp.vstack(
        [
            sp.hstack([model.rows, sp.csr_array((model.rows.shape[0], 3 * k), dtype=np.int64)]),
            sp.hstack([selection, -eye, -eye, 0 * eye]),
            sp.hstack([0 * selection, 0 * eye, eye, -sp.diags_array(beyond, dtype=np.int64)]),
            sp.hstack([0 * selection, eye, 0 * eye, -sp.diags_array(star, dtype=np.int64)]),
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

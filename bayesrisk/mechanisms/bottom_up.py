"""Noisy tables of the smallest places; coarser places are sums of these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.validation import IntArray
from bayesrisk.accounting.budget import positive
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.mechanisms.base import (
    BasePrepared,
    Dial,
    PreparingMechanism,
    Protected,
    different_cells,
    positive_parts,
)
from bayesrisk.release import MechanismSpec, NoiseSpec, TrueCounts
from bayesrisk.tables import Microdata, PublishedTables, Workload, tabulate
from bayesrisk.tables.tabulation import row_sums
from bayesrisk.tables.workload import Key

# What the bottom-up post-processing does to each table: who is scaled, derived, bounded.


Rows = sparse.csr_array


@dataclass(frozen=True)
class Roles:
    """Names of a workload's tables by origin: measured, scaled, derived or exact."""

    measured: tuple[str, ...]  # tables that get noise
    # those of them in whose cells every record is exactly once: scaled to the universe
    split: tuple[str, ...]
    # (str, ndarray): tables that are a linear function (cells, cells of the source) of a split
    # table
    derived: Mapping[str, tuple[str, IntArray]]
    exact: tuple[str, ...]  # tables that are published as they are, the universe first


def roles(workload: Workload, *, universe: str, exact: tuple[str, ...]) -> Roles:
    """Return the role of every table: exact, measured, or computed from a measured one."""
    tables = {name: table for (_, name), table in workload.tables.items()}
    for name in (universe, *exact):
        if name not in tables:
            raise ArgumentError(
                f"universe and exact must name tables of the workload, got {quote(name)}"
            )
    cells = different_cells(workload.schema, list(tables.values()))
    rows = {name: table.incidence(workload.schema, cells) for name, table in tables.items()}
    if rows[universe].shape[0] != 1 or not _is_split(rows[universe]):
        raise ArgumentError("universe", "must be one cell that counts every record", got=universe)
    open_tables = [name for name in tables if name not in (universe, *exact)]
    finest_first = sorted(open_tables, key=lambda name: -rows[name].shape[0])
    split: list[str] = []
    for name in finest_first:
        if _is_split(rows[name]) and _source(rows, split, name) is None:
            split.append(name)
    derived = {
        name: source
        for name in open_tables
        if name not in split and (source := _source(rows, split, name)) is not None
    }
    measured = tuple(name for name in open_tables if name not in derived)
    scaled = tuple(name for name in measured if name in split)
    return Roles(measured, scaled, derived, tuple(dict.fromkeys((universe, *exact))))


def _source(rows: Mapping[str, Rows], split: list[str], name: str) -> tuple[str, IntArray] | None:
    """Return the first split table that determines a table, and the matrix M of the relation.

    M has ``table = M @ source``.
    """
    target = rows[name]
    for source in split:
        cell = sparse.csc_array(rows[source]).indices
        used, first = np.unique(cell, return_index=True)
        matrix = np.zeros((target.shape[0], rows[source].shape[0]), dtype=np.int64)
        matrix[:, used] = target[:, first].toarray()
        if not sparse.csr_array(sparse.csr_array(matrix) @ rows[source] - target).count_nonzero():
            return source, matrix
    return None


def _is_split(rows: Rows) -> bool:
    return bool(np.all(rows.sum(axis=0) == 1))


def scale_counts(noisy: IntArray, totals: IntArray, rng: np.random.Generator) -> IntArray:
    """Return whole counts, in proportion to the noisy ones, that add up to the totals.

    Rounding is by largest remainders, in exact integers, with random ties.  If all noisy counts are
    0, the cells get equal shares.
    """
    counts = np.where(noisy.any(axis=1, keepdims=True), noisy, 1)
    whole = counts.sum(axis=1, keepdims=True)
    share, remainder = np.divmod(counts * totals[:, None], whole)
    missing = totals - share.sum(axis=1)
    ties = rng.random(counts.shape)
    order = np.lexsort((ties, -remainder), axis=1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(counts.shape[1])[None, :], axis=1)
    scaled: IntArray = share + (rank < missing[:, None])
    return scaled


def check_plan(workload: Workload, origins: Roles, bounds: Mapping[str, str]) -> None:
    """Raise if bounds are invalid or a published table is missing at the finest level."""
    finest = workload.at(workload.levels[-1])
    for (level, name), table in workload.tables.items():
        if name not in finest or finest[name] != table:
            raise ArgumentError(
                "workload",
                f"must have table {name!r} of level {level!r} at {workload.levels[-1]!r}",
            )
    for name, bound in bounds.items():
        if name not in origins.measured or name in origins.split or bound not in finest:
            raise ArgumentError(
                "bounds must map measured tables that are not scaled to tables, "
                f"got {quote(name)}: {quote(bound)}"
            )
        if len(finest[name].cells) != 1 or len(finest[bound].cells) != 1:
            raise ArgumentError(
                "bounds", "must be of tables of one cell", got=name, advice=f": {quote(bound)}"
            )


_ALLOCATIONS = ("das-2020", "uniform")
#: Share c of a strategy query over the cells that add up to one count, times the product's rho.
_DAS_2020 = {
    "H13": Fraction("0.0002") / 3360 * Fraction("7.70"),
    "P15": Fraction("0.0002") / 2 * Fraction("7.70"),
    "P16": Fraction("0.0002") / 2 * Fraction("4.96"),
}
_OCCUPANCY: dict[str, Any] = {
    "universe": "H3",
    "exact": ("HUD-households", "HUD-people", "HUD-race", "HUD-children", "HUD-bedrooms"),
    "bounds": {"P16": "P1"},
}
#: The published reading: sigma2 = 1 / budget in every table.
_PAPER = "steed-2024"
# Clipped counts times totals of 2**31 must stay 64-bit integers.
_MAX_SIGMA2 = 10**15


class BottomUp(PreparingMechanism["PreparedBottomUp"]):
    r"""Noise on tables of the smallest places, post-processed and added up to coarser places.

    Every cell of a measured table gets discrete Gaussian noise of scale
    :math:`\sigma^2 = \Delta^2 / (2 c \rho)`. Here :math:`c \rho` is the budget of its table, and
    :math:`\Delta` the largest change of the table by one record (in L2 norm). The record is the
    unit of privacy: the household, for ``household-occupancy``. Then each place is post-processed.
    Negative counts become 0. Tables in which every record is in exactly one cell are scaled to the
    exact total of the place. Functions of such a table are computed from it, and counts with a
    bound are cut there. Coarser places are sums. Source: Steed, Qing and Wu (2024,
    arXiv:2407.04776), equation 6 and appendix F.

    Parameters
    ----------
    sensitivity : {"add-remove", "change-one", "steed-2024"}
        The neighbours: a record is added or removed, or becomes any other record, also in another
        place. The noise has the scale for the largest such change of each table. ``steed-2024`` is
        the paper's reading instead, :math:`\sigma^2 = 1 / (c \rho)` in every table. It equals
        ``change-one`` if a record counts once. A table of children or people moves by up to 6 or 7
        in a place, so its budget is exceeded 36 or 49 times. ``diagnostics["rho"]`` of a release
        gives the total spent.
    allocation : {"das-2020", "uniform"}, optional
        ``das-2020``: the budgets of the 2020 disclosure avoidance system per count, as the
        reference derives them for ``household-occupancy``. Sizes (H13) have 0.0002 / 3360 of rho =
        7.70, race and origin (P15) 0.0002 / 2 of 7.70, children (P16) 0.0002 / 2 of 4.96.
        ``uniform``: ``rho`` in equal parts over the measured tables.
    rho : number or str, optional
        Total budget of ``uniform``.
    budget : mapping of table to number, optional
        Budget of every measured table, in place of an allocation.
    universe : str, optional
        Exact table of one cell that counts every record. By default H3, occupied units, for
        ``household-occupancy`` (the reference's convention); required for other schemas.
    exact : sequence of str, optional
        Other tables that are published unchanged. By default HUD's tables for
        ``household-occupancy``, as in the reference; in reality they have no noise.
    bounds : mapping of table to table, optional
        Tables of one cell that may not exceed another such table. By default, for
        ``household-occupancy``, children (P16) by population (P1).

    Notes
    -----
    The budgets add up to the zCDP of the measured tables, for the named neighbours. Tables that are
    published unchanged are not covered. A person who joins, leaves or changes alters one record, so
    ``change-one`` covers this too. A person who moves between households alters two.

    Scaling is by largest remainders, in exact integers, with random ties. If all clipped counts are
    zero, a place is split as evenly as possible. Households of seven and more count as seven. The
    released counts have no closed-form likelihood. :meth:`measurement_noise` gives the laws of the
    noise, and ``diagnostics["rho"]`` the budget it spends (``steed-2024``: for ``change-one``).

    Examples
    --------
    >>> from bayesrisk.tables import Workload
    >>> tables = Workload.named("household-occupancy")
    >>> for reading in ("change-one", "steed-2024"):
    ...     mechanism = BottomUp(sensitivity=reading, allocation="das-2020")
    ...     noise = mechanism.measurement_noise(tables)
    ...     print({table: str(spec.scale) for (_, table), spec in noise.items()})
    {'P15': '100000/77', 'P16': '2250000/31', 'H13': '24000000/11'}
    {'P15': '100000/77', 'P16': '62500/31', 'H13': '24000000/11'}
    """

    dial = Dial("rho", 0.001, 1000.0)
    grain = -1

    def __init__(
        self,
        *,
        sensitivity: str,
        allocation: str | None = None,
        rho: object = None,
        budget: Mapping[str, object] | None = None,
        universe: str | None = None,
        exact: Sequence[str] | None = None,
        bounds: Mapping[str, str] | None = None,
    ) -> None:
        check.choice(sensitivity, "sensitivity", (*check.SENSITIVITIES, _PAPER))
        if (allocation is None) == (budget is None):
            raise ArgumentError(
                "exactly one of allocation and budget must be given, "
                f"got allocation={quote(allocation)} and budget={quote(budget)}"
            )
        if allocation is not None:
            check.choice(allocation, "allocation", _ALLOCATIONS)
        if (rho is not None) != (allocation == "uniform"):
            raise ArgumentError(
                "rho", "must be given with allocation 'uniform', and only then", got=rho
            )
        self._sensitivity = sensitivity
        self._rho = None if rho is None else positive(rho, "rho")
        self._budget = None if budget is None else positive_parts(budget, "budget")
        self._universe = None if universe is None else check.text(universe, "universe")
        self._exact = None if exact is None else check.texts(exact, "exact")
        self._bounds = None if bounds is None else dict(check.mapping(bounds, "bounds"))
        parameters: dict[str, Any] = {
            "sensitivity": sensitivity,
            "allocation": allocation,
            "rho": self._rho,
            "budget": self._budget,
            "universe": universe,
            "exact": self._exact,
            "bounds": self._bounds,
        }
        stated = {k: v for k, v in parameters.items() if v is not None}
        super().__init__(MechanismSpec("bottom-up", stated))

    def _plan(self, workload: Workload) -> "_BottomUpPlan":
        """Return the roles, budgets and noise of a workload's tables."""
        check.instance(workload, Workload, "workload")
        names = {name for _, name in workload.tables}
        usual = _OCCUPANCY if workload.schema.name == "household-occupancy" else {}
        universe = self._universe or usual.get("universe")
        if universe is None:
            raise ArgumentError("universe", f"must be given for schema {workload.schema.name!r}")
        exact = self._exact
        if exact is None:
            exact = tuple(name for name in usual.get("exact", ()) if name in names)
        bounds = self._bounds
        if bounds is None:
            bounds = {a: b for a, b in usual.get("bounds", {}).items() if {a, b} <= names}
        origins = roles(workload, universe=universe, exact=exact)
        check_plan(workload, origins, bounds)
        return _BottomUpPlan(workload, origins, *self._scales(workload, origins), bounds)

    def _scales(
        self, workload: Workload, origins: Roles
    ) -> tuple[dict[str, Fraction], dict[str, Fraction], Fraction]:
        """Return each measured table's budget and sigma2, and the total spent, as fractions."""
        if self._rho is not None:
            budget = dict.fromkeys(origins.measured, self._rho / max(len(origins.measured), 1))
        else:
            budget = self._budget or _DAS_2020
        for name in origins.measured:
            if name not in budget:
                raise ArgumentError("budget", f"must have table {name!r}, which has to be measured")
        for name in self._budget or ():
            if name not in origins.measured:
                raise ArgumentError("budget", "must name measured tables only", got=name)
        paper = self._sensitivity == _PAPER
        kind, finest = "change-one" if paper else self._sensitivity, workload.levels[-1:]
        squares = {  # of how far one record can move each table of the smallest places
            name: workload.select(levels=finest, tables=[name]).largest_change(kind, norm=2)
            for name in origins.measured
        }
        scales = {
            name: (2 if paper else squares[name]) / (2 * budget[name]) for name in origins.measured
        }
        for name, scale in scales.items():
            if scale > _MAX_SIGMA2:
                raise ArgumentError(
                    "sigma2",
                    f"of table {name!r} must be <= {_MAX_SIGMA2:g}",
                    shown=f"{float(scale):g}",
                )
        spent = sum((squares[name] / (2 * scales[name]) for name in scales), Fraction(0))
        return {name: budget[name] for name in scales}, scales, spent

    def measurement_noise(self, workload: Workload) -> dict[Key, NoiseSpec]:
        """Return the exact noise law of every measured table at the finest level."""
        scales = self._plan(workload).scales
        finest = workload.levels[-1]
        return {(finest, n): NoiseSpec("discrete-gaussian", scales[n]) for n in scales}

    def _prepare(self, microdata: Microdata, workload: Workload) -> "PreparedBottomUp":
        plan = self._plan(workload)
        parameters = {
            "sensitivity": self._sensitivity,
            "budget": plan.budget,
            "universe": plan.roles.exact[0],
            "exact": plan.roles.exact[1:],
            "bounds": plan.bounds,
        }
        exact = {key: TrueCounts() for key in workload.tables if key[1] in plan.roles.exact}
        spec = MechanismSpec("bottom-up", parameters, exact).for_tables(workload.tables)
        return PreparedBottomUp(spec, plan, tabulate(microdata, workload))


@dataclass(frozen=True)
class _BottomUpPlan:
    """Roles, budgets, noise scales and bounds of a workload's tables, and the total budget."""

    workload: Workload
    roles: Roles
    budget: Mapping[str, Fraction]
    scales: Mapping[str, Fraction]
    spent: Fraction
    bounds: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class PreparedBottomUp(BasePrepared):
    """A bottom-up release of one truth, ready to be drawn many times."""

    spec: MechanismSpec  # of the releases
    plan: _BottomUpPlan
    truth: PublishedTables  # the true counts

    def _draw(self, rng: np.random.Generator) -> Protected:
        workload, origins, geoids = self.plan.workload, self.plan.roles, self.truth.geoids
        level = workload.levels[-1]
        # The tables of the smallest places: noise, zeros for negative counts, scaling, bounds.
        finest = {n: self.truth.counts[level, n].toarray() for n in origins.exact}
        totals = finest[origins.exact[0]][:, 0]
        for name in origins.measured:
            noisy = self.truth.counts[level, name].toarray()
            noisy += DiscreteGaussian(self.plan.scales[name]).rvs(noisy.shape, rng)
            clipped = np.maximum(noisy, 0)
            finest[name] = scale_counts(clipped, totals, rng) if name in origins.split else clipped
        for name, (source, matrix) in origins.derived.items():
            finest[name] = finest[source] @ matrix.T
        for name, bound in self.plan.bounds.items():
            finest[name] = np.minimum(finest[name], finest[bound])
        counts: dict[Key, Rows] = {}
        for coarse in workload.levels:
            above = workload.schema.geography.ancestors(geoids[level], coarse)
            place = np.searchsorted(geoids[coarse], above)
            for name in workload.at(coarse):
                counts[coarse, name] = row_sums(Rows(finest[name]), place, geoids[coarse].size)
        tables, spent = replace(self.truth, counts=counts), {"rho": float(self.plan.spent)}
        return Protected(tables, self.spec, spent)

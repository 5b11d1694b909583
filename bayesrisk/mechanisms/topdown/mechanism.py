"""TopDown-like release: noise at every level, then consistency from the top down."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

from scipy import sparse

from bayesrisk._files.parse import shown
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.mechanisms.base import Dial, PreparingMechanism
from bayesrisk.mechanisms.topdown import _budget as strategy
from bayesrisk.mechanisms.topdown import _parameters as parameters
from bayesrisk.mechanisms.topdown._build import Settings, build, noise_scales, settings_documents
from bayesrisk.mechanisms.topdown._children import solve_family
from bayesrisk.mechanisms.topdown._solved import SolvedFamilies
from bayesrisk.mechanisms.topdown._tree import Solve
from bayesrisk.mechanisms.topdown.prepared import PreparedTopDown
from bayesrisk.release import MechanismSpec, NoiseSpec, TrueCounts
from bayesrisk.tables import Histogram, Microdata, Workload

#: Most cells of a histogram that is solved.
MAX_CELLS = 100_000

Key = tuple[str, str]


class TopDown(PreparingMechanism[PreparedTopDown]):
    r"""Noisy counts at every level, made consistent from the top of the geography down.

    Every measured table :math:`q` of every node gets discrete Gaussian noise of scale
    :math:`\sigma_q^2 = \Delta_q^2 / (2 \rho_q)`, :math:`\Delta_q^2` the squared L2 sensitivity to
    one changed record (2 for a cross of attributes, so :math:`\sigma_q^2 = 1 / \rho_q`).  Then,
    from the top down, the children of one node are estimated jointly,

    .. math:: \min_{x \ge 0} \sum_{c, q} \frac{\|A_q x_c - y_{cq}\|^2}{v_q}, \quad
        \sum_c x_c = h, \quad B x_c = b_c,

    with :math:`v_q` the variance of the noise, h the parent's integer counts and B the
    invariants, and rounded to neighbouring integers that keep every sum.  All published tables
    are computed from these integers, so they are non-negative and agree with each other.

    Parameters
    ----------
    rho : number or str, optional
        Total zCDP budget, split exactly.  By default, and for redistricting persons (schema
        ``pl94``) only, the production budget of 2020 at the levels that the tree has.
    budget : mapping of level to mapping of table to number, optional
        rho of every measured table, instead of ``rho`` and the shares.
    level_shares : mapping of level to number, optional
        Weights of the levels; only these are measured.
    query_shares : mapping of table to number, optional
        Weights of the tables within each level; only these are measured.
    measurements : Workload or dict, optional
        Definitions of the tables to measure, or what its ``to_dict`` gives.  By default the
        eleven queries of 2020 for schema ``pl94``, else the tables that are published.
    invariants : sequence of (level, table), optional
        Tables that are exact; they must be nested counts.  By default the total of the top level
        for schema ``pl94`` (as in 2020 for the states), none otherwise.
    zero_patterns : mapping of attribute to sequence of codes, optional
        For these codes it is public at the finest level where nobody has them: for example
        ``{"hhgq": [1, 2, 3, 4, 5, 6, 7]}``, where there are no group quarters of a kind.
    facilities : mapping of attribute to mapping of place to sequence of codes, optional
        Where the codes of ``zero_patterns`` may occur, from a public list of facilities; without
        it, where they do occur in the records.
    rounding : sequence of str, optional
        Nested tables whose counts may only move to a neighbouring integer in the rounding.  By
        default, tables are taken from the smallest up while they stay nested.

    Raises
    ------
    ArgumentError
        If a parameter is out of range, or they contradict each other.

    Notes
    -----
    Simulation grade: see :meth:`DiscreteGaussian.rvs`.  The released counts have no likelihood in
    closed form, so the spec's ``noise`` is empty; :meth:`measurement_noise` says what was drawn.
    A release is post-processing of the noisy counts, but for what is invariant; its spec holds the
    budget of every measured table.  Tables are published at the measured levels or coarser ones:
    non-negative, whole, and consistent with each other.

    The fit of the tables is unique; the cells are so where tables tell all of them apart.  Else the
    rounded sum over cells that nothing tells apart is split in proportion to the parent's counts,
    the rest at random, and what is open beyond that is the solver's choice.

    References
    ----------
    Abowd et al. (2022, arXiv:2204.08986), The 2020 Census Disclosure Avoidance System TopDown
    Algorithm.

    Examples
    --------
    >>> TopDown(rho="1/2", invariants=[("block", "total")]).spec.parameters
    {'rho': '1/2', 'invariants': [['block', 'total']]}
    """

    dial = Dial("rho", 0.001, 1000.0)

    def __init__(
        self,
        *,
        rho: Any = None,
        budget: Mapping[str, Mapping[str, Any]] | None = None,
        level_shares: Mapping[str, Any] | None = None,
        query_shares: Mapping[str, Any] | None = None,
        measurements: Workload | Mapping[str, Any] | None = None,
        invariants: Sequence[Sequence[str]] | None = None,
        zero_patterns: Mapping[str, Sequence[int]] | None = None,
        facilities: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
        rounding: Sequence[str] | None = None,
    ) -> None:
        if budget is not None and not rho is level_shares is query_shares is None:
            raise ArgumentError("budget must be given alone, without rho and shares")
        self._rho = None if rho is None else strategy.positive(rho, "rho")
        self._budget = strategy.explicit_budget(budget)
        self._level_shares = strategy.shares(level_shares, "level_shares")
        self._query_shares = strategy.shares(query_shares, "query_shares")
        self._measurements = parameters.workload_of(measurements)
        self._invariants = None if invariants is None else parameters.level_tables(invariants)
        self._zero_patterns = parameters.zero_codes(zero_patterns)
        self._facilities = parameters.facility_codes(facilities, self._zero_patterns)
        self._rounding = parameters.table_names(rounding)
        given = {
            "rho": self._rho,
            "budget": self._budget,
            "level_shares": self._level_shares,
            "query_shares": self._query_shares,
            "measurements": None if self._measurements is None else self._measurements.to_dict(),
            "invariants": None if self._invariants is None else [list(k) for k in self._invariants],
            "zero_patterns": {k: list(v) for k, v in self._zero_patterns.items()} or None,
            "facilities": {
                name: {place: list(codes) for place, codes in table.items()}
                for name, table in self._facilities.items()
            }
            or None,
            "rounding": None if self._rounding is None else list(self._rounding),
        }
        stated = {k: settings_documents(v) for k, v in given.items() if v is not None}
        super().__init__(MechanismSpec("topdown", stated))
        self._last: tuple[Workload, Settings] | None = None
        self._solve: Solve = solve_family

    def _settings(self, workload: Workload) -> Settings:
        """Return the settings for a workload; the last ones are kept for the next truth."""
        if self._last is None or self._last[0] is not workload:
            self._last = workload, self._resolve(workload)
        return self._last[1]

    def _resolve(self, workload: Workload) -> Settings:
        """Return the settings, resolved for a workload."""
        if not isinstance(workload, Workload):
            raise ArgumentTypeError(f"workload must be a Workload, got {shown(workload)}")
        schema = workload.schema
        if schema.size > MAX_CELLS:
            raise ArgumentError(
                f"workload must have a schema of at most {MAX_CELLS} cells, "
                f"got {schema.size} for {shown(schema.name)}"
            )
        redistricting = schema.name == "pl94"
        measurements = self._measurements or (_pl94(workload) if redistricting else workload)
        if measurements.schema != schema:
            raise ArgumentError(
                f"measurements must have the schema of the workload, {schema.name!r}, "
                f"got {shown(measurements.schema.name)}"
            )
        budget = self._budget or strategy.allocate(
            {level: list(measurements.at(level)) for level in measurements.levels},
            strategy.census_2020_allocation(list(measurements.levels))
            if redistricting and self._measurements is None
            else None,
            rho=self._rho,
            level_shares=self._level_shares,
            query_shares=self._query_shares,
        )
        strategy.check_measured(budget, measurements)
        return self._with_invariants(workload, measurements, budget, redistricting)

    def _with_invariants(
        self,
        workload: Workload,
        measurements: Workload,
        budget: strategy.Budget,
        redistricting: bool,
    ) -> Settings:
        geography = workload.schema.geography
        levels = [level for level in geography.levels if level in budget]
        invariants = self._invariants
        if invariants is None:
            invariants = ((levels[0], "total"),) if redistricting else ()
        known = measurements.union(workload)
        for level, table in invariants:
            if level not in levels or (level, table) not in known.tables:
                raise ArgumentError(
                    f"invariants must be tables of the levels {', '.join(levels)}, "
                    f"got {shown((level, table))}"
                )
        if geography.rank(workload.levels[-1]) > geography.rank(levels[-1]):
            raise ArgumentError(
                f"budget must reach the finest published level {workload.levels[-1]!r}, "
                f"got {shown(levels[-1])}"
            )
        parameters.check_codes(workload, self._zero_patterns)
        return Settings(
            known,
            budget,
            invariants,
            self._zero_patterns,
            self._facilities,
            self._rounding,
            strategy.matrices(known),
        )

    def measurement_noise(self, workload: Workload) -> dict[Key, NoiseSpec]:
        """Return the law of the noise of every measured table, exactly.

        Parameters
        ----------
        workload : Workload
            Tables that are to be published.

        Returns
        -------
        dict of (level, table) to NoiseSpec
            Discrete Gaussian with ``sigma2 = Delta**2 / (2 rho)``, the same in every node.

        Raises
        ------
        ArgumentError
            If the parameters do not fit the workload.

        Examples
        --------
        >>> from bayesrisk.tables import Workload
        >>> noise = TopDown().measurement_noise(Workload.named("pl94", levels=["county", "block"]))
        >>> print(round(float(noise["block", "detailed"].scale), 4))
        10.0928
        """
        scales = noise_scales(self._settings(workload))
        return {key: NoiseSpec("discrete-gaussian", scale) for key, scale in scales.items()}

    def _prepare(self, microdata: Microdata, workload: Workload) -> PreparedTopDown:
        settings = self._settings(workload)
        records = microdata.for_schema(workload.schema)
        finest = settings.levels[-1]
        known = microdata.geoids()
        histogram = Histogram.from_records(records, level=finest)
        geography = workload.schema.geography
        geoids = histogram.geoids if known is None else geography.ancestors(known, finest)
        if not histogram.geoids.size and not geoids.size:
            raise ArgumentError("microdata must have a record or a block, got none")
        levels = build(settings, histogram, geoids)
        rows = {key: sparse.csc_array(settings.rows[key].T) for key in workload.tables}
        return PreparedTopDown(
            self._release_spec(settings, workload), levels, workload, rows, self._solve
        )

    def _release_spec(self, settings: Settings, workload: Workload) -> MechanismSpec:
        """Return the spec with the budget of every table, which builds the same mechanism."""
        stated: dict[str, Any] = {
            key: value
            for key, value in self._spec.parameters.items()
            if key not in ("rho", "level_shares", "query_shares")
        }
        stated["budget"] = settings_documents(settings.budget)
        stated["invariants"] = [list(key) for key in settings.invariants]
        exact = {key: TrueCounts() for key in settings.invariants if key in workload.tables}
        return MechanismSpec("topdown", stated, exact).for_tables(workload.tables)

    def for_neighbours(self) -> Self:
        """Return the mechanism with a memory of the families that it solved, the latest 64 MiB.

        Where truths differ in one record and the noise is the same, nearly all families are.
        """
        found = copy.copy(self)
        found._solve = SolvedFamilies()
        return found

    def acts_within(self, workload: Workload) -> str | None:
        """Return the coarsest measured level, each of whose places is a tree of its own."""
        return self._settings(workload).levels[0]


def _pl94(workload: Workload) -> Workload:
    """Return the eleven queries of 2020 at the levels of a workload."""
    queries = Workload.named("pl94")
    tables = queries.at(queries.levels[0])
    return Workload(
        workload.schema, {(level, n): t for level in workload.levels for n, t in tables.items()}
    )

"""TopDown-like releases: noise at every level, then consistency from the top down."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy import sparse

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import generator
from bayesrisk._base.validation import BoolArray, IntArray, TextArray
from bayesrisk.accounting.budget import positive
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, quote
from bayesrisk.mechanisms.base import (
    BasePrepared,
    Dial,
    PreparingMechanism,
    Protected,
    filled_mapping,
    positive_parts,
)
from bayesrisk.mechanisms.topdown import families
from bayesrisk.mechanisms.topdown.estimation import SolvedFamilies, solve_family
from bayesrisk.release import MechanismSpec, NoiseSpec, TrueCounts
from bayesrisk.tables import Histogram, Microdata, PublishedTables, Schema, Workload
from bayesrisk.tables.tabulation import row_sums
from bayesrisk.tables.workload import Key

# From records and settings to a tree that is ready to be solved.


Rows = sparse.csr_array
#: Returns the integer counts of the children of a node, (children, cells).
Solve = Callable[[families.Family], IntArray]


@dataclass(frozen=True)
class Measured:
    """A table measured at a level: rows over all cells, true answers, noise law and weight."""

    rows: sparse.csc_array
    answers: Rows
    law: DiscreteGaussian
    weight: float


@dataclass(frozen=True)
class Level:
    """One level of the geographic tree, with its measurements and exact counts."""

    name: str
    geoids: TextArray  # nodes in order; the children of a node are neighbours
    # where the children of each node of the level above start, and the end; at the top every node
    # is a family of its own
    first: IntArray
    measured: tuple[Measured, ...]  # tables
    exact: families.ExactSets  # what the children keep exactly
    zeros: families.Zeros  # public zeros
    controlled: Rows  # sets whose totals are rounded to a neighbour
    lookahead: dict[int, families.Lookahead] = field(default_factory=dict)  # by node, where needed


@dataclass(frozen=True)
class TreeSettings:
    """A mechanism's settings resolved for a workload: all that shapes the tree but the data."""

    measurements: Workload  # definitions of the measured tables and of the invariants
    budget: families.Budget  # rho by level and table; its levels are the tree's
    invariants: tuple[Key, ...]  # (level, table): tables that are exact
    # codes that are public zeros where a finest place lacks them
    zero_patterns: Mapping[str, tuple[int, ...]]
    # where these codes may occur, instead of where they do
    facilities: Mapping[str, Mapping[str, tuple[int, ...]]]
    rounding: Sequence[str] | None  # tables whose counts the rounding keeps near
    rows: Mapping[Key, Rows]  # (level, table): tables as matrices over the cells of the histogram

    @property
    def levels(self) -> list[str]:
        """Levels of the tree, coarse to fine."""
        names = self.measurements.schema.geography.levels
        return [level for level in names if level in self.budget]


@dataclass(frozen=True)
class _Truth:
    """The nodes of a level, each node's parent, and the true counts."""

    geoids: TextArray
    parent: IntArray
    counts: Rows


def _truths(histogram: Histogram, geoids: TextArray, levels: list[str]) -> list[_Truth]:
    """Return the nodes and true counts of every level, nodes without records included."""
    ancestors = histogram.schema.geography.ancestors
    nodes = np.union1d(ancestors(geoids, levels[-1]), histogram.geoids)
    counts = row_sums(histogram.counts, np.searchsorted(nodes, histogram.geoids), nodes.size)
    truths: list[_Truth] = []
    for level in reversed(levels[:-1]):
        above, parent = np.unique(ancestors(nodes, level), return_inverse=True)
        truths.append(_Truth(nodes, parent.astype(np.int64), counts))
        nodes, counts = above, row_sums(counts, parent, above.size)
    truths.append(_Truth(nodes, np.arange(nodes.size), counts))
    return truths[::-1]


def _observed(schema: Schema, settings: TreeSettings, truth: _Truth) -> families.Zeros:
    """Return the public zeros at the finest places."""
    cells = schema.indices(np.arange(schema.size, dtype=np.int64))
    kinds = np.zeros(schema.size, dtype=np.int64)
    allowed = np.ones((truth.geoids.size, 1), dtype=bool)
    for name, codes in settings.zero_patterns.items():
        first = schema.attribute(name).first
        label = np.zeros(schema.attribute(name).size, dtype=np.int64)
        label[np.asarray(codes) - first] = 1 + np.arange(len(codes))
        kind = label[cells[name]]
        member = sparse.csr_array(
            (np.ones(kind.size, dtype=np.int64), (np.arange(kind.size), kind)),
            shape=(kind.size, len(codes) + 1),
        )
        present = (truth.counts @ member).toarray() > 0
        if name in settings.facilities:
            public = _facility_mask(settings.facilities[name], truth.geoids, codes)
            missing = present[:, 1:] & ~public
            if missing.any():
                row, code = (int(i) for i in np.argwhere(missing)[0])
                raise DataError(
                    f"facilities[{name!r}] must list code {codes[code]} at "
                    f"{str(truth.geoids[row])!r}, where records have it"
                )
            present[:, 1:] = public
        present[:, 0] = True
        kinds = kinds * (len(codes) + 1) + kind
        allowed = (allowed[:, :, None] & present[:, None, :]).reshape(truth.geoids.size, -1)
    return families.Zeros(kinds, allowed)


def _facility_mask(
    table: Mapping[str, Sequence[int]], geoids: TextArray, codes: Sequence[int]
) -> BoolArray:
    """Return a mask (places, codes) of the codes that a public table allows."""
    column = {code: i for i, code in enumerate(codes)}
    public = np.zeros((geoids.size, len(codes)), dtype=bool)
    for geoid, present in table.items():
        row = int(np.searchsorted(geoids, geoid))
        if row < geoids.size and geoids[row] == geoid:
            public[row, [column[code] for code in present]] = True
    return public


def _exact(
    settings: TreeSettings,
    rows: Mapping[str, Rows],
    level: str,
    truth: _Truth,
    below: families.ExactSets | None,
) -> families.ExactSets:
    """Return a level's exact sets: its own invariants and sums of those below."""
    cells = settings.measurements.schema.size
    parts = [
        families.ExactSets(
            rows[table], np.asarray((truth.counts @ rows[table].T).toarray(), dtype=np.int64)
        )
        for name, table in settings.invariants
        if name == level
    ]
    exact = families.ExactSets.stack(
        parts if below is None else [*parts, below], cells=cells, nodes=truth.geoids.size
    )
    if not families.nested(exact.sets):
        raise ArgumentError(
            f"invariants must be 0/1 tables whose cells are nested, those of the levels below "
            f"included; at level {level!r} they are not"
        )
    return exact


def noise_scales(settings: TreeSettings) -> dict[Key, Fraction]:
    """Return the exact sigma2 of every measured table."""
    return {
        (level, table): families.sigma2(rho, settings.rows[level, table])
        for level, parts in settings.budget.items()
        for table, rho in parts.items()
    }


def _measured(
    rows: Mapping[str, Rows], laws: Mapping[str, DiscreteGaussian], truth: _Truth
) -> tuple[Measured, ...]:
    weight = families.weights(np.array([float(law.var()) for law in laws.values()]))
    return tuple(
        Measured(
            sparse.csc_array(rows[name].astype(np.float64)),
            sparse.csr_array(truth.counts @ rows[name].T),
            law,
            float(w),
        )
        for (name, law), w in zip(laws.items(), weight, strict=True)
    )


def build(settings: TreeSettings, histogram: Histogram, geoids: TextArray) -> tuple[Level, ...]:
    """Return the levels of the tree, from coarse to fine."""
    workload, names = settings.measurements, settings.levels
    scales = noise_scales(settings)
    truths = _truths(histogram, geoids, names)
    zeros = _observed(workload.schema, settings, truths[-1])
    # The one level below the top that has invariants, where zeros are public too.
    lower = [level for level in names[1:] if level in dict(settings.invariants)]
    if settings.zero_patterns and len(lower) > 1:
        raise ArgumentError(
            "invariants must lie at one level below the top when zero_patterns are given, "
            f"got {', '.join(lower)}"
        )
    below: families.ExactSets | None = None
    units: tuple[families.ExactSets, families.Zeros, IntArray] | None = None
    levels: list[Level] = []
    for level, truth in reversed(list(zip(names, truths, strict=True))):
        rows = {name: settings.rows[level, name] for name in workload.at(level)}
        exact = _exact(settings, rows, level, truth, below)
        budget = settings.budget[level]
        laws = {t: DiscreteGaussian(scales[level, t]) for t in budget}
        ahead = {} if units is None else families.lookaheads(*units)
        controlled = families.controlled_sets(
            {t: rows[t] for t in budget}, exact.sets, settings.rounding
        )
        top = level == names[0]
        first = np.arange(truth.geoids.size + 1)
        if not top:
            first = np.searchsorted(truth.parent, range(truth.parent[-1] + 2))
        measured = _measured(rows, laws, truth)
        levels.append(Level(level, truth.geoids, first, measured, exact, zeros, controlled, ahead))
        if top:
            break
        above = int(truth.parent[-1]) + 1
        if units is not None:
            units = units[0], units[1], truth.parent[units[2]]
        elif level in lower and settings.zero_patterns:
            units = exact, zeros, truth.parent
        below, zeros = exact.sums(truth.parent, above), zeros.above(truth.parent, above)
    return tuple(reversed(levels))


# The tree solved from the top down, for every draw.


def _noisy(level: Level, nodes: slice, rng: np.random.Generator) -> list[IntArray]:
    """Return noisy answers of some nodes, one array (nodes, rows) for each table."""
    noisy = []
    for table in level.measured:
        answers = table.answers[nodes].toarray()
        answers += table.law.rvs(answers.shape, rng)
        noisy.append(answers)
    return noisy


def _family(
    level: Level, nodes: slice, parent: IntArray | None, noisy: list[IntArray]
) -> tuple[families.Family, IntArray]:
    """Return the estimation problem of some nodes, and its cells."""
    exact, zeros = level.exact, level.zeros
    totals = exact.totals[nodes]
    cells = np.arange(zeros.kinds.size) if parent is None else np.flatnonzero(parent)
    sets = sparse.csr_array(exact.sets[:, cells])
    live = zeros.allowed[nodes][:, zeros.kinds[cells]]
    if sets.shape[0]:
        live = live & ((totals == 0).astype(np.int64) @ sets == 0)  # an exact zero empties its set
    if parent is None:
        columns = np.flatnonzero(live.any(axis=0))  # cells that a node can hold
        cells, sets, live = cells[columns], sparse.csr_array(sets[:, columns]), live[:, columns]
    elif not live.any(axis=0).all():
        raise DataError(
            f"level {level.name!r}: public zeros and invariants leave no place for a count above"
        )
    ahead = [
        (child, replace(lookahead, classes=lookahead.classes[cells]))
        for child, node in enumerate(range(nodes.start, nodes.stop))
        if (lookahead := level.lookahead.get(node)) is not None
    ]
    queries = tuple(
        families.Query(table.rows[:, cells], table.weight, answers)
        for table, answers in zip(level.measured, noisy, strict=True)
    )
    counts = None if parent is None else parent[cells]
    controlled = sparse.csr_array(level.controlled[:, cells])
    return families.Family(live, counts, queries, sets, totals, controlled, tuple(ahead)), cells


def solve_level(level: Level, above: Rows | None, rng: np.random.Generator, solve: Solve) -> Rows:
    """Return a level's integer histograms, given those of the level above.

    Noise is drawn for every node in order, used or not, so two runs with one seed differ only if
    their data do.
    """
    empty = np.zeros(0, dtype=np.int64)
    entries = [(empty, empty, empty)]  # node, cell and count
    for number, ends in enumerate(pairwise(level.first.tolist())):
        nodes = slice(*ends)
        parent = None if above is None else above[[number]].toarray().ravel()
        noisy = _noisy(level, nodes, rng)
        if parent is not None and not parent.any():
            continue
        family, cells = _family(level, nodes, parent, noisy)
        solved = solve(family)
        child, cell = np.nonzero(solved)
        entries.append((nodes.start + child, cells[cell], solved[child, cell]))
    row, column, count = (np.concatenate(part) for part in zip(*entries, strict=True))
    shape = (level.geoids.size, level.zeros.kinds.size)
    return sparse.csr_array((count, (row, column)), shape=shape)


# Parameters of the TopDown-like mechanism, checked and put into one form.


def as_workload(value: object) -> Workload | None:
    """Return a workload, given as such or as a dict."""
    if value is None or isinstance(value, Workload):
        return value
    if isinstance(value, Mapping):
        return Workload.from_dict(value)
    raise ArgumentTypeError("measurements", "must be a Workload or its dict", got=value)


def level_tables(value: object) -> tuple[Key, ...]:
    """Return checked pairs (level, table)."""
    entries = value if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else [()]
    pairs = [tuple(entry) if isinstance(entry, (list, tuple)) else () for entry in entries]
    if any(len(p) != 2 or not all(isinstance(n, str) for n in p) for p in pairs):
        raise ArgumentTypeError("invariants", "must be pairs (level, table)", got=value)
    return tuple((p[0], p[1]) for p in pairs)


def zero_codes(value: object) -> dict[str, tuple[int, ...]]:
    """Return distinct codes by attribute."""
    return {
        str(name): tuple(np.unique(check.count_array(codes, f"zero_patterns[{name!r}]")).tolist())
        for name, codes in check.mapping(value, "zero_patterns").items()
    }


def facility_codes(
    value: object, patterns: Mapping[str, tuple[int, ...]]
) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return codes by attribute and place; each must be among the zero patterns' codes."""
    facilities: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, table in check.mapping(value, "facilities").items():
        if name not in patterns:
            raise ArgumentError(f"facilities[{name!r}] must have codes in zero_patterns, got none")
        facilities[name] = {}
        for place, codes in check.mapping(table, f"facilities[{name!r}]").items():
            label = f"facilities[{name!r}][{place!r}]"
            listed = check.count_array(codes, label).reshape(-1).tolist() if np.size(codes) else []
            for code in listed:
                if code not in patterns[name]:
                    raise ArgumentError(label, "must be codes of zero_patterns", shown=code)
            facilities[name][str(place)] = tuple(listed)
    return facilities


def check_codes(workload: Workload, patterns: Mapping[str, tuple[int, ...]]) -> None:
    """Raise if an attribute does not have one of the codes."""
    for name, codes in patterns.items():
        attribute = workload.schema.attribute(name)
        for code in codes:
            if not attribute.first <= code <= attribute.last:
                raise ArgumentError(
                    f"zero_patterns[{name!r}] must be in [{attribute.first}, {attribute.last}], "
                    f"got {code}"
                )


# Many TopDown-like releases of one truth: all that the noise does not touch is done once.


@dataclass(frozen=True, eq=False)
class PreparedTopDown(BasePrepared):
    """A TopDown-like release of one truth, ready to be drawn many times."""

    spec: MechanismSpec  # of the releases
    levels: tuple[Level, ...]  # the tree
    workload: Workload  # published tables
    rows: Mapping[Key, sparse.csc_array]  # published tables over cells, transposed
    solve: Solve = solve_family

    def histograms(self, rng: np.random.Generator | int | None = None) -> dict[str, Histogram]:
        """Return one draw of the protected histograms, level by level from coarse to fine."""
        random = generator(rng, optional=True)
        above: Rows | None = None
        draw = {}
        for level in self.levels:
            above = counts = solve_level(level, above, random, self.solve)
            draw[level.name] = Histogram(self.workload.schema, level.name, level.geoids, counts)
        return draw

    def _draw(self, rng: np.random.Generator) -> Protected:
        histograms = self.histograms(rng)
        finest = histograms[self.levels[-1].name]
        geoids: dict[str, TextArray] = {}
        counts: dict[Key, sparse.csr_array] = {}
        for level in self.workload.levels:
            histogram = histograms.get(level) or finest.aggregate(level)
            geoids[level] = histogram.geoids
            for name in self.workload.at(level):
                counts[level, name] = sparse.csr_array(histogram.counts @ self.rows[level, name])
        return Protected(PublishedTables(self.workload, geoids, counts), self.spec)


#: Most cells of a histogram that is solved.
MAX_CELLS = 100_000


class TopDown(PreparingMechanism[PreparedTopDown]):
    r"""Noisy counts at every level, made consistent from the top of the geography down.

    Every measured table :math:`q` of every node gets discrete Gaussian noise of scale
    :math:`\sigma_q^2 = \Delta_q^2 / (2 \rho_q)`. Here :math:`\Delta_q^2` is the squared L2
    sensitivity to one changed record: 2 for a cross of attributes, so
    :math:`\sigma_q^2 = 1 / \rho_q`. Then, from the top down, the children of one node are estimated
    jointly,

    .. math:: \min_{x \ge 0} \sum_{c, q} \frac{\|A_q x_c - y_{cq}\|^2}{v_q}, \quad
        \sum_c x_c = h, \quad B x_c = b_c,

    with :math:`v_q` the variance of the noise, h the parent's integer counts and B the invariants.
    The estimates are rounded to neighbouring integers that keep every sum. All published tables are
    computed from these integers, so they are non-negative and consistent. Source: Abowd et al.
    (2022, arXiv:2204.08986), The 2020 Census Disclosure Avoidance System TopDown Algorithm.

    Parameters
    ----------
    rho : number or str, optional
        Total zCDP budget, split exactly. By default, for redistricting persons (schema ``pl94``)
        only, it is the production budget of 2020 at the levels of the tree.
    budget : mapping of level to mapping of table to number, optional
        rho of every measured table, in place of ``rho`` and the shares.
    level_shares : mapping of level to number, optional
        Weights of the levels; only these are measured.
    query_shares : mapping of table to number, optional
        Weights of the tables within each level; only these are measured.
    measurements : Workload or dict, optional
        Definitions of the tables to measure, or their ``to_dict`` form. By default the eleven
        queries of 2020 for schema ``pl94``, else the published tables.
    invariants : sequence of (level, table), optional
        Tables that are exact; they must be nested counts. By default the total of the top level for
        schema ``pl94`` (as in 2020 for the states), else none.
    zero_patterns : mapping of attribute to sequence of codes, optional
        Codes for which the places without such people are public, at the finest level. An example
        is ``{"hhgq": [1, 2, 3, 4, 5, 6, 7]}``: places without group quarters of a kind.
    facilities : mapping of attribute to mapping of place to sequence of codes, optional
        Places where the codes of ``zero_patterns`` may occur, from a public list of facilities; by
        default where they occur in the records.
    rounding : sequence of str, optional
        Nested tables whose counts may only move to a neighbouring integer in the rounding. By
        default, tables are added from the smallest up while they stay nested.

    Notes
    -----
    The released counts have no closed-form likelihood. :meth:`measurement_noise` gives the laws of
    the noise, drawn with NumPy for simulation. A release is post-processing of the noisy counts,
    apart from the invariants. Its spec holds the budget of every measured table. Tables are
    published at the measured levels or coarser ones. The fit of the tables is unique. The cells are
    unique if tables tell all of them apart; otherwise the solver chooses what the parent's
    proportions leave open.

    Examples
    --------
    >>> TopDown(rho="1/2", invariants=[("block", "total")]).spec.parameters
    {'rho': '1/2', 'invariants': [['block', 'total']]}
    """

    dial = Dial("rho", 0.001, 1000.0)

    def __init__(
        self,
        *,
        rho: object = None,
        budget: Mapping[str, Mapping[str, object]] | None = None,
        level_shares: Mapping[str, object] | None = None,
        query_shares: Mapping[str, object] | None = None,
        measurements: Workload | Mapping[str, Any] | None = None,
        invariants: Sequence[Sequence[str]] | None = None,
        zero_patterns: Mapping[str, Sequence[int]] | None = None,
        facilities: Mapping[str, Mapping[str, Sequence[int]]] | None = None,
        rounding: Sequence[str] | None = None,
    ) -> None:
        if budget is not None and not rho is level_shares is query_shares is None:
            raise ArgumentError("budget", "must be given alone, without rho and shares")
        self._rho = None if rho is None else positive(rho, "rho")
        self._budget = None
        if budget is not None:
            parts = filled_mapping(budget, "budget").items()
            self._budget = {str(n): positive_parts(part, f"budget[{n!r}]") for n, part in parts}
        self._level_shares, self._query_shares = (
            None if value is None else positive_parts(value, name)
            for value, name in ((level_shares, "level_shares"), (query_shares, "query_shares"))
        )
        self._measurements = as_workload(measurements)
        self._invariants = None if invariants is None else level_tables(invariants)
        self._zero_patterns = zero_codes({} if zero_patterns is None else zero_patterns)
        self._facilities = facility_codes(
            {} if facilities is None else facilities, self._zero_patterns
        )
        self._rounding = None if rounding is None else check.texts(rounding, "rounding")
        parameters = {
            "rho": self._rho,
            "budget": self._budget,
            "level_shares": self._level_shares,
            "query_shares": self._query_shares,
            "measurements": None if self._measurements is None else self._measurements.to_dict(),
            "invariants": self._invariants,
            "zero_patterns": self._zero_patterns or None,
            "facilities": self._facilities or None,
            "rounding": self._rounding,
        }
        stated = {k: v for k, v in parameters.items() if v is not None}
        super().__init__(MechanismSpec("topdown", stated))
        self._last: tuple[Workload, TreeSettings] | None = None
        self._solve: Solve = solve_family

    def _settings(self, workload: Workload) -> TreeSettings:
        """Return the settings resolved for a workload; the last result is cached."""
        if self._last is None or self._last[0] is not workload:
            self._last = workload, self._resolve(workload)
        return self._last[1]

    def _resolve(self, workload: Workload) -> TreeSettings:
        check.instance(workload, Workload, "workload")
        schema = workload.schema
        if schema.size > MAX_CELLS:
            raise ArgumentError(
                "workload",
                f"must have a schema of at most {MAX_CELLS} cells",
                shown=f"{schema.size} for {quote(schema.name)}",
            )
        redistricting = schema.name == "pl94"
        measurements = self._measurements or (_pl94(workload) if redistricting else workload)
        if measurements.schema != schema:
            raise ArgumentError(
                f"measurements must have the schema of the workload, {schema.name!r}, "
                f"got {quote(measurements.schema.name)}"
            )
        budget = self._budget or families.allocate(
            {level: list(measurements.at(level)) for level in measurements.levels},
            families.census_2020_allocation(list(measurements.levels))
            if redistricting and self._measurements is None
            else None,
            rho=self._rho,
            level_shares=self._level_shares,
            query_shares=self._query_shares,
        )
        for level, parts in budget.items():
            for table in parts:
                if (level, table) not in measurements.tables:
                    raise ArgumentError(
                        "budget",
                        f"names table {table!r} at level {level!r}, which the measurements lack",
                    )
        return self._with_invariants(workload, measurements, budget, redistricting)

    def _with_invariants(
        self,
        workload: Workload,
        measurements: Workload,
        budget: families.Budget,
        redistricting: bool,
    ) -> TreeSettings:
        geography = workload.schema.geography
        levels = [level for level in geography.levels if level in budget]
        invariants = self._invariants
        if invariants is None:
            invariants = ((levels[0], "total"),) if redistricting else ()
        tables = measurements.union(workload)
        for level, table in invariants:
            if level not in levels or (level, table) not in tables.tables:
                raise ArgumentError(
                    f"invariants must be tables of the levels {', '.join(levels)}, "
                    f"got {quote((level, table))}"
                )
        if geography.rank(workload.levels[-1]) > geography.rank(levels[-1]):
            raise ArgumentError(
                "budget",
                f"must reach the finest published level {workload.levels[-1]!r}",
                got=levels[-1],
            )
        check_codes(workload, self._zero_patterns)
        return TreeSettings(
            tables,
            budget,
            invariants,
            self._zero_patterns,
            self._facilities,
            self._rounding,
            families.matrices(tables),
        )

    def measurement_noise(self, workload: Workload) -> dict[Key, NoiseSpec]:
        """Return the noise law of every measured table, with sigma2 = Delta**2 / (2 rho)."""
        scales = noise_scales(self._settings(workload))
        return {key: NoiseSpec("discrete-gaussian", scale) for key, scale in scales.items()}

    def _prepare(self, microdata: Microdata, workload: Workload) -> PreparedTopDown:
        settings = self._settings(workload)
        records = microdata.for_schema(workload.schema)
        finest = settings.levels[-1]
        listed = microdata.geoids()
        histogram = Histogram.from_records(records, level=finest)
        geography = workload.schema.geography
        geoids = histogram.geoids if listed is None else geography.ancestors(listed, finest)
        if not histogram.geoids.size and not geoids.size:
            raise ArgumentError("microdata", "must have a record or a block", shown="none")
        levels = build(settings, histogram, geoids)
        rows = {key: sparse.csc_array(settings.rows[key].T) for key in workload.tables}
        return PreparedTopDown(
            self._release_spec(settings, workload), levels, workload, rows, self._solve
        )

    def _release_spec(self, settings: TreeSettings, workload: Workload) -> MechanismSpec:
        """Return a spec with every table's budget, from which the same mechanism can be built."""
        stated: dict[str, Any] = {
            key: value
            for key, value in self._spec.parameters.items()
            if key not in ("rho", "level_shares", "query_shares")
        }
        stated["budget"] = settings.budget
        stated["invariants"] = settings.invariants
        exact = {key: TrueCounts() for key in settings.invariants if key in workload.tables}
        return MechanismSpec("topdown", stated, exact).for_tables(workload.tables)

    def for_neighbours(self) -> Self:
        """Return the mechanism with a cache of solved problems, of at most 64 MiB.

        With the same noise and truths that differ in one record, nearly all families agree.
        """
        mechanism = copy.copy(self)
        mechanism._solve = SolvedFamilies()
        return mechanism

    def acts_within(self, workload: Workload) -> str | None:
        """Return the coarsest measured level; each of its places has its own tree."""
        return self._settings(workload).levels[0]


def _pl94(workload: Workload) -> Workload:
    """Return the eleven redistricting queries of 2020 at a workload's levels."""
    queries = Workload.named("pl94")
    tables = queries.at(queries.levels[0])
    return Workload(
        workload.schema, {(level, n): t for level in workload.levels for n, t in tables.items()}
    )

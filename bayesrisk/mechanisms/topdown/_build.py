"""From records and settings to a tree that is ready to be solved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bayesrisk._types import BoolArray, IntArray
from bayesrisk.distributions import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.mechanisms.topdown import _budget as strategy
from bayesrisk.mechanisms.topdown._invariants import (
    ExactSets,
    Zeros,
    check_nested,
    controlled_sets,
    lookaheads,
)
from bayesrisk.mechanisms.topdown._tree import Level, Measured
from bayesrisk.tables import Schema, Workload
from bayesrisk.tables.histogram import Histogram

Key = tuple[str, str]
Rows = sparse.csr_array


@dataclass(frozen=True)
class Settings:
    """Everything that shapes the tree but the data: what a spec says, resolved for a workload.

    Attributes
    ----------
    measurements : Workload
        Definitions of the measured tables and of the invariants.
    budget : dict
        rho by level and table; its levels are the tree's.
    invariants : tuple of (level, table)
        Tables that are exact.
    zero_patterns : mapping of attribute to codes
        Codes that are public zeros where a finest place lacks them.
    facilities : mapping of attribute to place to codes
        Where these codes may occur, instead of where they do.
    rounding : sequence of str or None
        Tables whose counts the rounding keeps near.
    rows : mapping of (level, table) to csr_array
        Tables as matrices over the cells of the histogram.
    """

    measurements: Workload
    budget: strategy.Budget
    invariants: tuple[Key, ...]
    zero_patterns: Mapping[str, tuple[int, ...]]
    facilities: Mapping[str, Mapping[str, tuple[int, ...]]]
    rounding: Sequence[str] | None
    rows: Mapping[Key, Rows]

    @property
    def levels(self) -> list[str]:
        """Levels of the tree, coarse to fine."""
        names = self.measurements.schema.geography.levels
        return [level for level in names if level in self.budget]


@dataclass(frozen=True)
class _Truth:
    """Nodes of a level, the level above of each, and the true counts."""

    geoids: NDArray[np.str_]
    parent: IntArray
    counts: Rows


def _truths(histogram: Histogram, geoids: NDArray[np.str_], levels: list[str]) -> list[_Truth]:
    """Return the nodes of every level, those without records included, and their counts."""
    geography = histogram.schema.geography
    finest = levels[-1]
    nodes = np.union1d(geography.ancestors(geoids, finest), histogram.geoids)
    place = np.searchsorted(nodes, histogram.geoids)
    counts = _gather(histogram.counts, place, nodes.size)
    found: list[_Truth] = []
    for level in [*reversed(levels[:-1]), None]:
        if level is None:
            found.append(_Truth(nodes, np.arange(nodes.size), counts))
            break
        above, parent = np.unique(geography.ancestors(nodes, level), return_inverse=True)
        found.append(_Truth(nodes, parent.astype(np.int64), counts))
        nodes, counts = above, _gather(counts, parent, above.size)
    return found[::-1]


def _gather(counts: Rows, parent: IntArray, size: int) -> Rows:
    """Return the sums of rows by parent."""
    ones = np.ones(parent.size, dtype=np.int64)
    shape = (size, parent.size)
    return sparse.csr_array(
        sparse.csr_array((ones, (parent, np.arange(parent.size))), shape=shape) @ counts
    )


def _observed(schema: Schema, settings: Settings, truth: _Truth) -> Zeros:
    """Return the public zeros of the finest places."""
    cells = schema.indices(np.arange(schema.size, dtype=np.int64))
    kinds = np.zeros(schema.size, dtype=np.int64)
    allowed = np.ones((truth.geoids.size, 1), dtype=bool)
    for name, codes in settings.zero_patterns.items():
        first = schema.attribute(name).first
        label = np.zeros(schema.attribute(name).size, dtype=np.int64)
        label[np.asarray(codes) - first] = 1 + np.arange(len(codes))
        own = label[cells[name]]
        member = sparse.csr_array(
            (np.ones(own.size, dtype=np.int64), (np.arange(own.size), own)),
            shape=(own.size, len(codes) + 1),
        )
        present = (truth.counts @ member).toarray() > 0
        if name in settings.facilities:
            public = _of_table(settings.facilities[name], truth.geoids, codes)
            _check_facilities(present[:, 1:] & ~public, truth.geoids, name, codes)
            present[:, 1:] = public
        present[:, 0] = True
        kinds = kinds * (len(codes) + 1) + own
        allowed = (allowed[:, :, None] & present[:, None, :]).reshape(truth.geoids.size, -1)
    return Zeros(kinds, allowed)


def _of_table(
    table: Mapping[str, Sequence[int]], geoids: NDArray[np.str_], codes: Sequence[int]
) -> BoolArray:
    """Return (places, codes): where a public table says that a code may occur."""
    column = {code: i for i, code in enumerate(codes)}
    public = np.zeros((geoids.size, len(codes)), dtype=bool)
    for geoid, present in table.items():
        row = int(np.searchsorted(geoids, geoid))
        if row < geoids.size and geoids[row] == geoid:
            public[row, [column[code] for code in present]] = True
    return public


def _check_facilities(
    missing: BoolArray, geoids: NDArray[np.str_], name: str, codes: Sequence[int]
) -> None:
    if missing.any():
        row, code = (int(i) for i in np.argwhere(missing)[0])
        raise DataError(
            f"facilities[{name!r}] must list code {codes[code]} at {str(geoids[row])!r}, "
            "where records have it"
        )


def _exact(
    settings: Settings, rows: Mapping[str, Rows], level: str, truth: _Truth, below: ExactSets | None
) -> ExactSets:
    """Return what is exact at a level: its own invariants, and sums of those below."""
    cells = settings.measurements.schema.size
    own = [
        ExactSets(rows[table], np.asarray((truth.counts @ rows[table].T).toarray(), dtype=np.int64))
        for name, table in settings.invariants
        if name == level
    ]
    exact = ExactSets.stack(
        own if below is None else [*own, below], cells=cells, nodes=truth.geoids.size
    )
    check_nested(exact, level)
    return exact


def noise_scales(settings: Settings) -> dict[Key, Fraction]:
    """Return sigma2 of every measured table, exactly."""
    return {
        (level, table): strategy.sigma2(rho, settings.rows[level, table])
        for level, parts in settings.budget.items()
        for table, rho in parts.items()
    }


def _measured(
    rows: Mapping[str, Rows], laws: Mapping[str, DiscreteGaussian], truth: _Truth
) -> tuple[Measured, ...]:
    weight = strategy.weights(np.array([float(law.var()) for law in laws.values()]))
    return tuple(
        Measured(
            sparse.csc_array(rows[name].astype(np.float64)),
            sparse.csr_array(truth.counts @ rows[name].T),
            law,
            float(w),
        )
        for (name, law), w in zip(laws.items(), weight, strict=True)
    )


def build(settings: Settings, histogram: Histogram, geoids: NDArray[np.str_]) -> tuple[Level, ...]:
    """Return the levels of the tree, coarse to fine.

    Parameters
    ----------
    settings : Settings
        What to measure and what to keep.
    histogram : Histogram
        True counts at the finest level of the tree.
    geoids : ndarray of str
        Places that exist, at that level or finer; those without records take part too.
    """
    workload, names = settings.measurements, settings.levels
    scales = noise_scales(settings)
    truths = _truths(histogram, geoids, names)
    zeros = _observed(workload.schema, settings, truths[-1])
    unit = _unit_level(settings)
    below: ExactSets | None = None
    units: tuple[ExactSets, Zeros, IntArray] | None = None
    levels: list[Level] = []
    for level, truth in reversed(list(zip(names, truths, strict=True))):
        rows = {name: settings.rows[level, name] for name in workload.at(level)}
        exact = _exact(settings, rows, level, truth, below)
        budget = settings.budget[level]
        laws = {t: DiscreteGaussian(scales[level, t]) for t in budget}
        ahead = {} if units is None else lookaheads(*units)
        controlled = controlled_sets({t: rows[t] for t in budget}, exact.sets, settings.rounding)
        nodes = truth.geoids.size
        top = level == names[0]
        first = (
            np.arange(nodes + 1)
            if top
            else np.searchsorted(truth.parent, range(truth.parent[-1] + 2))
        )
        levels.append(
            Level(
                level,
                truth.geoids,
                first,
                _measured(rows, laws, truth),
                exact,
                zeros,
                controlled,
                ahead,
            )
        )
        if top:
            break
        above = int(truth.parent[-1]) + 1
        if units is not None:
            units = units[0], units[1], truth.parent[units[2]]
        elif level == unit and settings.zero_patterns:
            units = exact, zeros, truth.parent
        below, zeros = exact.sums(truth.parent, above), zeros.above(truth.parent, above)
    return tuple(reversed(levels))


def _unit_level(settings: Settings) -> str | None:
    """Return the one level below the top that has invariants, where zeros are public too."""
    lower = [level for level in settings.levels[1:] if level in dict(settings.invariants)]
    if settings.zero_patterns and len(lower) > 1:
        raise ArgumentError(
            "invariants must lie at one level below the top when zero_patterns are given, "
            f"got {', '.join(lower)}"
        )
    return lower[0] if lower else None


def settings_documents(value: Any) -> Any:
    """Return nested mappings with fractions as text, as JSON holds them."""
    if isinstance(value, Mapping):
        return {key: settings_documents(part) for key, part in value.items()}
    return str(value) if isinstance(value, Fraction) else value

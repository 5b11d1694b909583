"""The posterior of every count of a noisy measurement file, consistent along the spine.

For each cell of one query the counts of all units are a tree: a place counts what the places in it
count.  Noisy answers, invariant totals and bounds of every level of the tree are used at once.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed
from bayesrisk._version import __version__
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.measurements.spine import (
    BUDGETS,
    Source,
    Spine,
    checked_levels,
    digest_of,
    open_source,
    tree_of,
)
from bayesrisk.experiments.runs.engine import Outcome, Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder, RunSettings
from bayesrisk.inference import TreePosterior, tree_posterior
from bayesrisk.inference.count.measurements import MeasurementTables
from bayesrisk.inference.count.posterior import bayes_rule
from bayesrisk.readers.nmf.bounds import (
    CellBounds,
    place_of,
    rows_between,
    states_of,
    units_between,
)
from bayesrisk.readers.nmf.rows import cell_labels

# -----------------------------------------------------------------------------
# What runs on noisy measurement files are told.


@dataclass(frozen=True)
class MeasurementsConfig(RunSettings):
    """What a run does, and to which folder.

    Attributes
    ----------
    measurements : str
        Digest of the folder's files.
    level, query : str
        Units and cells.
    combine : bool
        Whether all noisy values of the same count are used, or those of the query alone.
    prior : float
        Belief before the release, in every cell.
    known_count : int
        Others known to be in the cell, in every cell.
    exceeds : tuple of float
        Risk ratios above which cells are counted.
    budget : str or None
        Production budget with the exact scales of the noise.
    ranges : tuple of (str, str)
        First and last unit of each shard.
    version : str
        Version of bayesrisk.
    """

    measurements: str
    level: str
    query: str
    combine: bool
    prior: float
    known_count: int
    exceeds: tuple[float, ...]
    budget: str | None
    ranges: tuple[tuple[str, str], ...]
    version: str = __version__

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.ranges)


@dataclass(frozen=True)
class MeasurementCountsConfig(RunSettings):
    """What a run does, and to which folder.

    Attributes
    ----------
    measurements : str
        Digest of the folder's files.
    query : str
        Query whose counts are asked for.
    level, top : str
        Finest and coarsest level of the trees.
    budget : str or None
        Production budget with the exact scales of the noise.
    parts : tuple of (str, int, int)
        For each shard its unit of the top level, first cell and first cell after it.
    version : str
        Version of bayesrisk.
    """

    measurements: str
    query: str
    level: str
    top: str
    budget: str | None
    parts: tuple[tuple[str, int, int], ...]
    version: str = __version__

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.parts)


# -----------------------------------------------------------------------------
# All noisy values of the same count: which they are, and what they say together.
#
# Two noisy values are of the same count when the same people can be in both: when the cells that
# constraints leave open, of all units, are the same on both sides.  So in a block without group
# quarters the count of a race is seen by the query of that race alone as well as by the detailed
# one, and the only college of a tract is seen by the tract's answer too.  Nothing is assumed: a
# value of which this cannot be proved is not used.


_CHUNK = 2**13  # units of which all bounds are in memory
_KEPT = 2**12  # answers of `same_count` that are kept


def same_count(
    target: NDArray[np.int64],
    other: NDArray[np.int64],
    live: NDArray[np.bool_],
    elsewhere: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return cells of a query, and the cells of another one that count the same people.

    Parameters
    ----------
    target, other : ndarray of int64
        For every cell of the histogram, the cell of the query; -1 for none.
    live : ndarray of bool
        Cells of the histogram in which somebody of the unit can be.
    elsewhere : ndarray of bool
        Cells in which somebody of another unit can be whom the other query counts too.

    Returns
    -------
    target_cells, other_cells : ndarray of int64
        Pairs; cells that nobody can be in are in none.
    """
    n, m = int(target.max()) + 1, int(other.max()) + 1
    size = np.bincount(target[live & (target >= 0)], minlength=n)
    counted = np.bincount(other[(live | elsewhere) & (other >= 0)], minlength=m)
    mixed = np.bincount(other[elsewhere & (other >= 0)], minlength=m) > 0
    both = live & (target >= 0) & (other >= 0)
    first = np.full(n, -1, dtype=np.int64)
    first[target[both]] = other[both]
    shared = np.bincount(target[both][first[target[both]] == other[both]], minlength=n)
    cells = np.flatnonzero((size > 0) & (shared == size))
    partner = first[cells]
    same = (counted[partner] == size[cells]) & ~mixed[partner]
    return cells[same], partner[same]


class Around(NamedTuple):
    """The units of a state, and who else can be in the places around each.

    Attributes
    ----------
    units : ndarray of str
        Sorted geocodes.
    listed : bool
        Whether constraints list them; else some may be missing, and places around say nothing.
    keys, counts : dict of str to ndarray of int64
        For each usable level above, ``place * atoms + atom`` with how many of its units can have
        somebody in the atom.
    places : dict of str to ndarray of str
        Places of each usable level, sorted; the incomplete ones are left out.
    """

    units: NDArray[np.str_]
    listed: bool
    keys: dict[str, NDArray[np.int64]]
    counts: dict[str, NDArray[np.int64]]
    places: dict[str, NDArray[np.str_]]


@functools.lru_cache(maxsize=1)
def around(source: Source, state: str, combine: bool) -> Around:
    """Return the units of a state and what is around them; once for each process and state.

    A place counts only where it is complete: each unit that constraints list below it has a unit
    of the level in question.
    """
    units, listed = units_between(source.nmf, source.level, state, state)
    if listed:
        answered, _ = units_between(source.nmf, source.level, state, state, ("DPQuery",))
        if (missing := np.setdiff1d(answered, units)).size:
            raise DataError(
                f"{source.nmf.folder}: {source.level} {missing[0]} has a noisy answer, but the "
                "constraints of its state do not list it: copy the whole Constraint folder, or none"
            )
    levels = [level for level in source.above if level != "US"]
    places: dict[str, NDArray[np.str_]] = {}
    broken: NDArray[np.str_] = np.empty(0, dtype="U1")
    for level in reversed(levels if combine and listed else []):
        width = source.width(level)
        mine = np.unique(units.astype(f"U{width}"))
        found, known = units_between(source.nmf, level, state, state)
        if not known:
            continue
        lost = np.setdiff1d(mine, found)
        if lost.size:
            inside = units[units.astype(f"U{width}") == lost[0]]
            raise DataError(
                f"{source.nmf.folder}: unit {inside[0]} of level {source.level} must lie in a "
                f"{level} that the constraints list, got none {shown(str(lost[0]))}"
            )
        empty = np.setdiff1d(found, mine)
        broken = np.unique(np.concatenate([broken.astype(f"U{width}"), empty]))
        places[level] = np.setdiff1d(found, broken)
    keys: dict[str, NDArray[np.int64]] = {}
    counts: dict[str, NDArray[np.int64]] = {}
    if places and source.target is not None:
        unit, atom = _live(source, units)
        for level, known_places in places.items():
            place = place_of(units.astype(f"U{source.width(level)}"), known_places)[unit]
            inside = place >= 0
            keys[level], counts[level] = np.unique(
                place[inside] * source.atoms.size + atom[inside], return_counts=True
            )
    return Around(units, listed, keys, counts, places)


def _live(source: Source, units: NDArray[np.str_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a unit and an atom in which somebody of it can be."""
    owners, atoms = [], []
    for start in range(0, units.size, _CHUNK):
        some = units[start : start + _CHUNK]
        found = source.bounds(some, source.level, source.atoms.of_cell)
        unit, atom = np.nonzero(found.live[found.pattern])
        owners.append(unit + start)
        atoms.append(atom)
    return np.concatenate(owners), np.concatenate(atoms)


def _elsewhere(
    source: Source, near: Around, level: str, codes: NDArray[np.str_], live: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return which units lie in a usable place, and in which atoms others of it can be."""
    atoms = source.atoms.size
    place = place_of(codes.astype(f"U{source.width(level)}"), near.places[level])
    inside = np.flatnonzero(place >= 0)
    held, back = np.unique(place[inside], return_inverse=True)
    total = np.zeros((held.size, atoms), dtype=np.int64)
    keys, counts = near.keys[level], near.counts[level]
    for row, number in enumerate(held.tolist()):
        part = slice(*np.searchsorted(keys, [number * atoms, (number + 1) * atoms]))
        total[row, keys[part] - number * atoms] = counts[part]
    return inside, total[back.reshape(-1)] > live[inside]


@dataclass(eq=False)
class Evidence:
    """What noisy values of the same count say of each cell.

    Attributes
    ----------
    total : ndarray of float64, shape (units, cells)
        Log of the likelihood of one more against that of the known count.
    values : ndarray of int16, shape (units, cells)
        How many noisy values were added up.
    """

    total: NDArray[np.float64]
    values: NDArray[np.int16]

    @classmethod
    def none(cls, units: int, cells: int) -> Evidence:
        """Return the evidence of no value."""
        return cls(np.zeros((units, cells)), np.zeros((units, cells), dtype=np.int16))

    def add(
        self,
        units: NDArray[np.int64],
        cells: NDArray[np.int64],
        counts: NDArray[np.int64],
        sigma2: NDArray[np.float64],
        known_count: int,
    ) -> None:
        """Add one noisy value for each of some units and cells."""
        at = np.ix_(units, cells)
        self.total[at] += ((counts - known_count) - 0.5) / sigma2[:, None]
        self.values[at] += 1


def combined(
    source: Source,
    near: Around,
    units: NDArray[np.str_],
    bounds: CellBounds,
    known_count: int,
) -> Evidence:
    """Return what all queries of all usable levels say of the cells of some units."""
    out = Evidence.none(units.size, source.n_cells)
    live = bounds.live[bounds.pattern]
    pairs = _Pairs(source)
    for level in (*near.places, source.level):
        inside, others = np.arange(units.size), np.zeros_like(live)
        if level != source.level:
            inside, others = _elsewhere(source, near, level, units, live)
        if not inside.size:
            continue
        codes = units[inside].astype(f"U{source.width(level)}")
        patterns, group = np.unique(
            np.concatenate([live[inside], others], axis=1), axis=0, return_inverse=True
        )
        low, high = str(codes[0]), str(codes[-1])  # sorted as the units are
        for rows in rows_between(source.nmf, level, "DPQuery", low, high).values():
            row = place_of(codes, rows.geocodes)
            for number, pattern in enumerate(patterns):
                mine = np.flatnonzero((group.reshape(-1) == number) & (row >= 0))
                cells, partner = pairs.of(rows.answers, pattern) if mine.size else _NO_PAIRS
                if cells.size:
                    at = row[mine]
                    counts = rows.values[np.ix_(at, partner)]
                    out.add(inside[mine], cells, counts, rows.sigma2[at], known_count)
    return out


_NO_PAIRS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


class _Pairs:
    """Cells of the query asked about with those of others that count the same people."""

    def __init__(self, source: Source) -> None:
        self._universe = source.nmf.universe
        self._target, self._of_cell = source.known_cells()
        self._labels: dict[tuple[str, ...], NDArray[np.int64] | None] = {}
        self._kept: dict[tuple[tuple[str, ...], bytes], Any] = {}

    def of(
        self, answers: tuple[str, ...], pattern: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs, given in which atoms somebody of the unit and of others can be."""
        if answers not in self._labels:
            self._labels[answers] = cell_labels(self._universe, answers)
        labels = self._labels[answers]
        if labels is None:
            return _NO_PAIRS
        key = answers, pattern.tobytes()
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            live, others = np.split(pattern, 2)
            self._kept[key] = same_count(
                self._target, labels, live[self._of_cell], others[self._of_cell]
            )
        found: tuple[NDArray[np.int64], NDArray[np.int64]] = self._kept[key]
        return found


# -----------------------------------------------------------------------------
# One shard of the risk of noisy measurements: the cells of some units, as the files hold them.


_SEVERAL = "several"  # constraints that settle a cell together


def cells_of(
    source: Source, config: MeasurementsConfig, units: NDArray[np.str_], *, combine: bool
) -> dict[str, pa.Table]:
    """Return the parts of a shard of units."""
    near = around(source, source.state_of(str(units[0])), config.combine)
    width = source.width(source.level)
    low, high = str(units[0])[:width], str(units[-1])[:width]
    found = rows_between(source.nmf, source.level, "DPQuery", low, high, (source.query,))
    own = found.get(source.query)
    row = np.full(units.size, -1) if own is None else place_of(units, own.geocodes)
    absent = int((row < 0).sum()) if near.listed else None
    if not config.combine:  # units without an answer to the query have nothing to be judged by
        units, row = units[row >= 0], row[row >= 0]
    bounds = source.bounds(units, source.level, source.target)
    if combine:
        evidence = combined(source, near, units, bounds, config.known_count)
    else:
        evidence = Evidence.none(units.size, source.n_cells)
        if own is not None and units.size:
            cells = np.arange(source.n_cells)
            at = np.flatnonzero(row >= 0)
            evidence.add(at, cells, own.values[row[at]], own.sigma2[row[at]], config.known_count)
    tables = MeasurementTables(config.prior, config.known_count)
    alone = np.full((2, units.size, source.n_cells), np.nan)
    counts = np.zeros((units.size, source.n_cells), dtype=np.int64)
    measured = np.flatnonzero(row >= 0)
    if own is not None and measured.size:
        counts[measured] = own.values[row[measured]]
        looked_up = tables.look_up(counts[measured], own.sigma2[row[measured]])
        for out, answers in zip(alone, looked_up, strict=True):
            out[measured] = answers.reshape(measured.size, -1)
    joint = _with_constraints(config, bounds, evidence, alone, row >= 0)
    tally = _cell_tally(config, bounds, evidence, alone[1], joint)
    tally |= {"units": measured.size} | ({} if absent is None else {"unmeasured": absent})
    sigma2, values, times = tables.counted()
    return {
        "counted": pa.table({"sigma2": pa.array(sigma2, pa.float64()),
                             "noisy_count": pa.array(values, pa.int64()),
                             "cells": pa.array(times, pa.int64())}),
        "tally": pa.table({"name": pa.array(list(tally), pa.string()),
                           "cells": pa.array(list(tally.values()), pa.int64())}),
        "risk": _table(units, counts, row >= 0, alone, joint, evidence, bounds),
    }  # fmt: skip


def _with_constraints(
    config: MeasurementsConfig,
    bounds: CellBounds,
    evidence: Evidence,
    alone: NDArray[np.float64],
    measured: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return posterior and ratio given all values and the constraints; NaN where k is wrong."""
    p, k = config.prior, config.known_count
    joint = np.empty_like(alone)
    # Where the query's own value is all there is, numbers without constraints hold to the bit.
    # (In a unit that has an answer its own value is always among those of the count.)
    single = (evidence.values == 1) & measured[:, None]
    todo = ~single
    for out, numerator, own in zip(joint, (p, 1.0), alone, strict=True):
        part = np.empty(int(todo.sum()))
        bayes_rule(-evidence.total[todo], p, numerator, part)
        out[todo] = part
        out[single] = own[single]
        full = bounds.upper <= k
        sure = bounds.lower == k + 1
        wrong = bounds.lower > k + 1
        for where, value in ((full, 0.0), (sure, numerator / p), (wrong, np.nan)):
            if where.any():
                out[where[bounds.pattern]] = value
    return joint


def _settled(bounds: CellBounds) -> NDArray[np.bool_]:
    """Return in which cells constraints leave one count."""
    return np.equal(bounds.upper, bounds.lower)


def _cell_tally(
    config: MeasurementsConfig,
    bounds: CellBounds,
    evidence: Evidence,
    ratio: NDArray[np.float64],
    joint: NDArray[np.float64],
) -> dict[str, int]:
    """Return counts of units and cells that add up over shards."""
    times = np.bincount(bounds.pattern, minlength=len(bounds.upper))
    tally: Counter[str] = Counter()
    settled = _settled(bounds)
    for number in np.unique(bounds.kind[settled]).tolist() if settled.any() else []:
        name = bounds.kinds[number] if number >= 0 else _SEVERAL
        tally[f"settled {name}"] += int(times @ (settled & (bounds.kind == number)).sum(axis=1))
    tally["strengthened"] = int((evidence.values > 1).sum())
    tally["contradicted"] = int(np.isnan(joint[1]).sum())
    empty = (bounds.upper == 0)[bounds.pattern]
    for limit in config.exceeds:
        above = ratio > limit  # False where there is no answer
        tally[f"empty {limit!r}"] = int((above & empty).sum())
        tally[f"above {limit!r}"] = int((joint[1] > limit).sum())
    return dict(sorted(tally.items()))


def _table(
    units: NDArray[np.str_],
    counts: NDArray[np.int64],
    measured: NDArray[np.bool_],
    alone: NDArray[np.float64],
    joint: NDArray[np.float64],
    evidence: Evidence,
    bounds: CellBounds,
) -> pa.Table:
    """Return one row for each unit and cell."""
    n, cells = counts.shape
    place = np.repeat(np.arange(n, dtype=np.int32), cells)
    absent = np.repeat(~measured, cells)
    settled = _settled(bounds)[bounds.pattern].reshape(-1)
    used, codes = np.unique(bounds.kind[bounds.pattern].reshape(-1), return_inverse=True)
    names = [bounds.kinds[number] if number >= 0 else _SEVERAL for number in used.tolist()]
    by = pa.array(codes.reshape(-1).astype(np.int32), mask=~settled)
    left = {"posterior": alone[0], "risk_ratio": alone[1]}
    right = {"posterior_with_constraints": joint[0], "risk_ratio_with_constraints": joint[1]}
    wrong = np.isnan(joint[1]).reshape(-1)
    return pa.table(
        {
            "geocode": pa.DictionaryArray.from_arrays(
                pa.array(place), pa.array(units.tolist(), pa.string())
            ),
            "cell": np.tile(np.arange(cells, dtype=np.int32), n),
            "noisy_count": pa.array(counts.reshape(-1), mask=absent),
            **{name: pa.array(x.reshape(-1), mask=absent) for name, x in left.items()},
            **{name: pa.array(x.reshape(-1), mask=wrong) for name, x in right.items()},
            "values": evidence.values.reshape(-1),
            "settled_by": pa.DictionaryArray.from_arrays(by, pa.array(names, pa.string())),
        }
    )


# -----------------------------------------------------------------------------


_NODES = 2**19  # nodes times cells of a shard, about
_LEVELS = (0.05, 0.95)  # of the interval in the output
_PROVENANCE = ("folder", "computed", "resumed")


@displayed
@dataclass(frozen=True)
class MeasurementCountsSummary:
    """What a run did.

    Attributes
    ----------
    folder : str
        The output folder; ``counts.parquet`` in it has a row for each unit and cell.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    query, level, top : str
        What was asked.
    counts : dict of str to int
        Counts of each level.
    exact : dict of str to int
        Those among them that the evidence leaves no doubt about: one count is possible.
    sd : dict of str to float
        Root of the mean variance of the posterior, by level, in persons.
    noise_sd : dict of str to float or None
        Root of the mean scale sigma2 of the noise in the level's own answers, where it has some.
    truncation_bound : float
        Largest bound on what was cut off a posterior.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    query: str
    level: str
    top: str
    counts: dict[str, int]
    exact: dict[str, int]
    sd: dict[str, float]
    noise_sd: dict[str, float | None]
    truncation_bound: float


@dataclass(frozen=True)
class MeasurementCountsStudy(Study):
    """The posterior of the counts of one query in every place, for :func:`run`.

    Every cell of the query has a tree of its own, from the top level to the finest, and
    :func:`tree_posterior` answers it exactly under a flat prior: noisy answers of all levels,
    totals and bounds that the constraints state, non-negative counts that add up.

    A complete run has ``counts.parquet`` with a row for each unit and cell (``geocode``,
    ``level``, ``cell``, ``noisy_count`` and ``sigma2`` of its own answer, ``lower`` and ``upper``,
    the posterior's ``mean``, ``sd``, ``mode``, ``at_least_one``, the quantiles ``q05`` and
    ``q95``, and ``truncation_bound``), and ``summary.json``.

    Parameters
    ----------
    measurements : path-like
        Folder of a product of noisy measurement files.
    query : str, default "total"
        Query whose counts are asked for; its noisy answers are used, no other's.
    level : str, default "Block"
        Finest level.
    top : str, default "State"
        Coarsest level: each of its units is a tree, and what levels above say is not used.  An
        exact count of the top makes that no loss, as that of the population of a state.
    budget : {"pl94-us", "pl94-pr"}, optional
        Production budget: exact scales of the noise, instead of those found from variances.

    Raises
    ------
    DataError
        When it runs: if a row breaks the format, a unit lies in none of the level above, or
        constraints contradict each other; unit and constraints are named.

    Notes
    -----
    Memory: a tree, about 2 KiB for each unit of the finest level below one of the top level, and
    a shard of at most about 2**19 rows (or one cell of one tree).  A finer ``top`` needs less.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.experiments import run
    >>> from bayesrisk.readers import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Person_PL_PROD", rng=1)
    ...     summary = run(MeasurementCountsStudy(sample.folder), folder + "/counts")
    >>> summary.exact["State"], summary.sd["Block"] < summary.noise_sd["Block"]
    (3, True)
    """

    measurements: str | Path
    _: KW_ONLY
    query: str = "total"
    level: str = "Block"
    top: str = "State"
    budget: str | None = None

    layout = Layout(
        "run on the counts of noisy measurements", kinds=("tally", "counts"), merged=("counts",)
    )

    @functools.cached_property
    def config(self) -> MeasurementCountsConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        if self.budget is not None:
            check.choice(self.budget, "budget", BUDGETS)
        source = checked_levels(self._source(), self.top)
        parts = []
        for state in states_of(source.nmf, self.top):
            for unit in units_between(source.nmf, self.top, state, state)[0].tolist():
                nodes = Spine(source, self.top, unit).size
                cells = max(1, _NODES // nodes)
                for first in range(0, source.n_cells, cells):
                    parts.append((unit, first, min(first + cells, source.n_cells)))
        if not parts:
            raise DataError(f"{source.nmf.folder}: level {self.top} must have units, got none")
        return MeasurementCountsConfig(
            digest_of(source.nmf.folder),
            self.query,
            self.level,
            self.top,
            self.budget,
            tuple(parts),
        )

    def _source(self) -> Source:
        check.text(self.query, "query")
        folder = str(check.path(self.measurements, "measurements"))
        return open_source(folder, self.level, self.query, self.budget)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return the posteriors of a shard, and a tally of them by level."""
        source = self._source()
        unit, first, last = self.config.parts[shard]
        found = []
        for cell, frame in Spine(source, self.top, unit).frames(first, last):
            result = tree_posterior(tree_of(source, cell, frame), leaf_prior="flat")
            found.append(_rows(result, cell, frame))
        counts = pd.concat(found, ignore_index=True)
        schema = pa.schema([(name, _TYPES.get(name, pa.float64())) for name in counts.columns])
        return {
            "tally": pa.Table.from_pandas(_tally(counts), preserve_index=False),
            "counts": pa.Table.from_pandas(counts, schema=schema, preserve_index=False),
        }

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the summary as JSON, without how the run came to it."""
        done = self.summary(folder, Outcome(self.config.shards, 0, 0, True))
        told = {k: v for k, v in asdict(done).items() if k not in _PROVENANCE}
        return {"summary.json": (json.dumps(told, indent=2, allow_nan=False) + "\n").encode()}

    def summary(self, folder: RunFolder, outcome: Outcome) -> MeasurementCountsSummary:
        """Return what was done."""
        return _summary(folder, self.config, self._source().nmf.levels, outcome)

    def close(self) -> None:
        """Forget the folder."""
        open_source.cache_clear()


_TYPES = {
    "geocode": pa.string(),
    "level": pa.string(),
    "cell": pa.int32(),
    **dict.fromkeys(("noisy_count", "lower", "upper", "mode", "q05", "q95"), pa.int64()),
}


def _rows(result: TreePosterior, cell: int, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the posterior of a cell in every unit, in the order of the frame."""
    order = result.tree.names.get_indexer(pd.Index(frame["node"]))
    low, high = result.quantile(_LEVELS)
    return pd.DataFrame(
        {
            "geocode": frame["node"],
            "level": frame["level"],
            "cell": cell,
            "noisy_count": frame["noisy_count"],
            "sigma2": frame["sigma2"],
            "lower": frame["lower"],
            "upper": frame["upper"],
            "mean": result.mean[order],
            "sd": result.sd[order],
            "mode": result.mode[order],
            "at_least_one": result.at_least_one[order],
            "q05": low[order],
            "q95": high[order],
            "truncation_bound": result.truncation_bound,
        }
    )


def _tally(counts: pd.DataFrame) -> pd.DataFrame:
    """Return sums by level, which add up over shards."""
    some = counts.assign(
        exact=counts["sd"] == 0.0,
        variance=counts["sd"] ** 2,
        noise=counts["sigma2"].fillna(0.0),
        measured=counts["sigma2"].notna(),
        n=1,
    )
    sums = some.groupby("level", sort=True)[["n", "exact", "variance", "noise", "measured"]].sum()
    bound = some.groupby("level", sort=True)["truncation_bound"].max()
    return sums.astype({"exact": "int64"}).assign(truncation_bound=bound).reset_index()


def _summary(
    store: RunFolder,
    config: MeasurementCountsConfig,
    levels: tuple[str, ...],
    outcome: Outcome,
) -> MeasurementCountsSummary:
    parts = [store.read_part(shard, "tally").to_pandas() for shard in store.finished()]
    total, bound = pd.DataFrame(), 0.0
    if parts:
        every = pd.concat(parts)
        bound = float(every["truncation_bound"].max())
        total = every.drop(columns="truncation_bound").groupby("level").sum()
    found: dict[Any, dict[Any, Any]] = total.to_dict(orient="index")
    rows = {level: found[level] for level in levels if level in found}
    return MeasurementCountsSummary(
        folder=str(store.path),
        **outcome._asdict(),
        query=config.query,
        level=config.level,
        top=config.top,
        counts={level: int(row["n"]) for level, row in rows.items()},
        exact={level: int(row["exact"]) for level, row in rows.items()},
        sd={level: float(np.sqrt(row["variance"] / row["n"])) for level, row in rows.items()},
        noise_sd={
            level: float(np.sqrt(row["noise"] / row["measured"])) if row["measured"] else None
            for level, row in rows.items()
        },
        truncation_bound=bound,
    )

"""The risk of every unit and cell of a noisy measurement file as a study, in shards of units.

A noisy count is a whole number, so for one noise scale the answers without constraints are a
short table: a cell costs a look-up, and how often each count occurs is counted on the way.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bayesrisk import _validation as check
from bayesrisk._show import displayed
from bayesrisk.exceptions import DataError
from bayesrisk.experiments.measurements.counts import MeasurementsConfig, around, cells_of
from bayesrisk.experiments.measurements.spine import BUDGETS, Source, digest_of, open_source
from bayesrisk.experiments.runs.engine import Outcome, Study
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.inference.count.measurements import MeasurementTables
from bayesrisk.readers.nmf.bounds import states_of, units_between

if TYPE_CHECKING:
    import pandas as pd

_CURVE = 120  # thresholds of the curve
_CELLS = 2**20  # of a shard, about
_PROVENANCE = ("folder", "computed", "resumed")  # what a file of results does not tell


@displayed
@dataclass(frozen=True)
class MeasurementsSummary:
    """What a noisy measurement file tells about everybody in it, in short.

    Attributes
    ----------
    folder : str
        The output folder; ``risk.parquet`` in it has a row for each unit and cell.
    shards, computed, resumed : int
        Shards in all, those computed by this run, and those found finished.
    complete : bool
        Whether every shard is there.
    level, query : str
        What was asked about.
    combine : bool
        Whether all noisy values of the same count were used.
    prior : float
        Belief before the release, in every cell.
    known_count : int
        Others known to be in the cell, in every cell.
    units : int
        Units with a noisy answer to the query.
    unmeasured : int or None
        Units without one; None where no constraints list the units.
    cells : int
        Cells of the query in the units with an answer.
    settled : dict of str to int
        Cells, of all units in the output, whose count the constraints fix, by the constraint;
        ``several`` for those that need more than one.
    strengthened : int
        Cells about which more than one noisy value was added up.
    contradicted : int
        Cells in which constraints exclude ``known_count`` and one more: more people are there.
    ignored : tuple of str
        Constraints that were not used, because a recode in them is not known.
    exceedance : list of dict
        For each threshold ``risk_ratio``: ``cells`` whose ratio by the query's own noise is above,
        what that noise alone would give if every true count were the known count
        (``expected_known``, with ``error_known``) or one more (``expected_one_more``,
        ``error_one_more``; errors are standard deviations over the noise, cells being
        independent), ``proved_empty``, those of the cells that constraints show to be empty, and
        ``cells_with_constraints``, the cells above with constraints (and all values of the count).
    curve : list of dict
        The first six columns for thresholds from 1 to the largest ratio.
    """

    folder: str
    shards: int
    computed: int
    resumed: int
    complete: bool
    level: str
    query: str
    combine: bool
    prior: float
    known_count: int
    units: int
    unmeasured: int | None
    cells: int
    settled: dict[str, int]
    strengthened: int
    contradicted: int
    ignored: tuple[str, ...]
    exceedance: list[dict[str, float]]
    curve: list[dict[str, float]]


def limits_of(exceeds: Any) -> tuple[float, ...]:
    """Return the thresholds as numbers."""
    limits = check.items(exceeds, "exceeds")
    return tuple(check.scalar(limit, "exceeds", lower=0.0, bounds="()") for limit in limits)


def ranges_of(source: Source, units_per_shard: int) -> tuple[tuple[str, str], ...]:
    """Return first and last unit of each shard; no shard is in two states.

    One state's geocodes are in memory at a time.
    """
    found = []
    for state in states_of(source.nmf, source.level):
        units, _ = units_between(source.nmf, source.level, state, state)
        for start in range(0, units.size, units_per_shard):
            part = units[start : start + units_per_shard]
            found.append((str(part[0]), str(part[-1])))
    if not found:
        raise DataError(f"{source.nmf.folder}: level {source.level} must have units, got none")
    return tuple(found)


@dataclass(frozen=True)
class MeasurementsStudy(Study):
    r"""Posterior and risk ratio of every unit and cell of noisy measurements, for :func:`run`.

    .. math:: \pi(y) = \operatorname{expit}\Big(\operatorname{logit} p
        + \sum_m \frac{2 (y_m - k) - 1}{2 \sigma_m^2}\Big), \quad r(y) = \pi(y) / p

    The adversary knows everyone in the unit but the target: ``known_count`` others are in the
    cell, and the target is in it with probability ``prior``.  The same two numbers serve every
    cell.  ``posterior`` and ``risk_ratio`` are from the noisy count of the query alone;
    ``posterior_with_constraints`` and ``risk_ratio_with_constraints`` also from the constraints
    in the folder, and, unless one query is asked for, from all noisy values m that are proved to
    be of the same count, of other queries and of larger places.

    A complete run has ``risk.parquet`` (a row for each unit and cell: ``geocode``, ``cell``,
    ``noisy_count``, the four columns above, ``values``, the number of noisy values added up, and
    ``settled_by``, the constraint that fixes the count) and ``summary.json``.

    Parameters
    ----------
    measurements : path-like
        Folder of a product, such as ``US_Person_PL_PROD``.
    prior : float
        Probability p that the target is in the cell, in (0, 1).
    known_count : int, default 0
        Others known to be in the cell, k.
    level : str, default "Block"
        Level of the spine.
    query : str, optional
        One query alone.  By default the cells are those of the detailed query (else of the one
        with most cells), and every noisy value of their counts is used.
    exceeds : sequence of float, default (1.5,)
        Risk ratios for which cells above are counted, > 0.
    budget : {"pl94-us", "pl94-pr"}, optional
        Production budget: exact scales of the noise, instead of those found from variances.
    units_per_shard : int, optional
        Units of a shard; by default enough for about a million cells.

    Raises
    ------
    DataError
        When it runs: if a row breaks the format (file, row and column are named), constraints
        contradict each other (unit and constraints are named), or a unit that has a noisy answer
        is missing from the constraints.

    Notes
    -----
    Where constraints leave no room for the target (an upper bound of at most k) the posterior is
    0; where they say that there are k + 1 it is 1; where they say that there are more, the known
    count is wrong, and both columns are missing.  Memory: a shard, and for each state one number
    for every pair of a unit and a group of cells in which somebody of it can be.  Files whose rows
    are sorted by unit are read about once; of others each shard reads its state's.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.experiments import run
    >>> from bayesrisk.readers import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Person_PL_PROD", rng=1)
    ...     study = MeasurementsStudy(sample.folder, prior=0.1, level="Tract")
    ...     summary = run(study, folder + "/risk")
    >>> summary.complete, summary.cells == 2016 * summary.units
    (True, True)
    """

    measurements: str | Path
    _: KW_ONLY
    prior: float
    known_count: int = 0
    level: str = "Block"
    query: str | None = None
    exceeds: Sequence[float] = (1.5,)
    budget: str | None = None
    units_per_shard: int | None = None

    layout = Layout(
        "run on noisy measurements", kinds=("counted", "tally", "risk"), merged=("risk",)
    )

    @functools.cached_property
    def config(self) -> MeasurementsConfig:
        """The configuration: everything is checked that can be before a folder is made."""
        prior = check.scalar(check.probability(self.prior, "prior"), "prior")
        known = check.integer(self.known_count, "known_count", lower=0)
        limits = limits_of(self.exceeds)
        check.text(self.level, "level")
        if self.query is not None:
            check.text(self.query, "query")
        if self.budget is not None:
            check.choice(self.budget, "budget", BUDGETS)
        if self.units_per_shard is not None:
            check.integer(self.units_per_shard, "units_per_shard", lower=1)
        folder = check.path(self.measurements, "measurements")
        source = open_source(str(folder), self.level, self.query, self.budget)
        size = self.units_per_shard or max(1, _CELLS // source.n_cells)
        return MeasurementsConfig(
            digest_of(folder),
            self.level,
            source.query,
            combine=self.query is None,
            prior=prior,
            known_count=known,
            exceeds=limits,
            budget=self.budget,
            ranges=ranges_of(source, size),
        )

    def _source(self) -> Source:
        return open_source(str(self.measurements), self.level, self.query, self.budget)

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return cells, how often each noisy count occurs, and a tally of a shard."""
        source, config = self._source(), self.config
        low, high = config.ranges[shard]
        near = around(source, source.state_of(low), config.combine)
        units = near.units[slice(*np.searchsorted(near.units, [low, high + ":"]))]
        return cells_of(source, config, units, combine=config.combine and source.target is not None)

    def results(self, folder: RunFolder) -> dict[str, bytes]:
        """Return the summary as JSON, without how the run came to it."""
        done = self.summary(folder, Outcome(self.config.shards, 0, 0, True))
        told = {k: v for k, v in asdict(done).items() if k not in _PROVENANCE}
        text = json.dumps(told, indent=2, allow_nan=False) + "\n"
        return {"summary.json": text.encode()}

    def summary(self, folder: RunFolder, outcome: Outcome) -> MeasurementsSummary:
        """Return what was done."""
        return _summary(folder, self.config, self._source().atoms.ignored, outcome)

    def close(self) -> None:
        """Forget the folder and the units around."""
        open_source.cache_clear()
        around.cache_clear()


def _summary(
    store: RunFolder, config: MeasurementsConfig, ignored: tuple[str, ...], outcome: Outcome
) -> MeasurementsSummary:
    tally: Counter[str] = Counter()
    counted: Counter[tuple[float, int]] = Counter()
    for shard in store.finished():
        for row in store.read_part(shard, "tally").to_pylist():
            tally[row["name"]] += row["cells"]
        part = store.read_part(shard, "counted").to_pydict()
        for sigma2, value, cells in zip(*part.values(), strict=True):
            counted[sigma2, value] += cells
    tables = MeasurementTables(config.prior, config.known_count)
    seen = sorted(counted)
    tables.add([s for s, _ in seen], [y for _, y in seen], [counted[key] for key in seen])
    top = max(tables.largest_ratio(), 1.0 + 1e-9)
    exceedance = _records(tables.exceedance(config.exceeds))
    for row in exceedance:
        limit = repr(row["risk_ratio"])
        row["proved_empty"] = tally[f"empty {limit}"]
        row["cells_with_constraints"] = tally[f"above {limit}"]
    prefix = "settled "
    return MeasurementsSummary(
        folder=str(store.path),
        **outcome._asdict(),
        level=config.level,
        query=config.query,
        combine=config.combine,
        prior=config.prior,
        known_count=config.known_count,
        units=tally["units"],
        unmeasured=tally.get("unmeasured"),
        cells=tables.cells,
        settled={
            k.removeprefix(prefix): v for k, v in sorted(tally.items()) if k.startswith(prefix)
        },
        strengthened=tally["strengthened"],
        contradicted=tally["contradicted"],
        ignored=ignored,
        exceedance=exceedance,
        curve=_records(tables.exceedance(np.geomspace(1.0, top, _CURVE).tolist())),
    )


def _records(frame: pd.DataFrame) -> list[dict[str, float]]:
    """Return rows as plain numbers, for JSON."""
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict(orient="records")]

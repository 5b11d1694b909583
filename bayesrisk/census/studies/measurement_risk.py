"""The risk of every unit and cell of a noisy measurement file, as a study in shards.

Two noisy values are of the same count if the same people can be in both. That is so if the cells
that constraints leave open, of all units, are the same on both sides. So in a block without group
quarters, the query of one race sees the same count as the detailed query. The only college of a
tract is also seen by the tract's answer. Nothing is assumed: a value without such a proof is not
used.

A noisy count is a whole number, so for one noise scale the answers without constraints form a short
table. A cell costs a look-up, and the frequency of each count is tallied on the way.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import pdtrik

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray, TextArray
from bayesrisk.census.readers.nmf import reader as nmf_reader
from bayesrisk.census.readers.nmf.rows import query_cells
from bayesrisk.census.studies.measurement_counts import MeasurementSource, NoisyStudy
from bayesrisk.census.studies.measurement_evidence import Evidence, combined_evidence, surroundings
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.experiments.pages import Part, Quotes, drawing, findings, origin, table, what_to_do
from bayesrisk.experiments.runs.folder import Layout, RunFolder
from bayesrisk.inference.count.measurements import MeasurementTables
from bayesrisk.inference.count.posterior import bayes_rule
from bayesrisk.plotting import plot_noisy_measurements
from bayesrisk.tables.cells import positions

CURVE = 120  # thresholds of the curve
_CELLS = 2**20  # of a shard, about
_SEVERAL = "several"  # constraints that settle a cell together
_SETTLED = "settled "
#: What constraints of the 2020 census fix, by their names in its files.
_FIXED = {
    "hhgq_total_ub": "the most people that homes, or facilities of a type, hold",
    "hhgq_total_lb": "the least people that facilities of a type hold",
    "nurse_nva_0": "nobody under 18 in nursing homes",
    "total": "the number of all people",
    _SEVERAL: "several together",
}
_COUNTED = pa.schema(
    {"sigma2": pa.float64(), "noisy_count": pa.int64(), "cells": pa.int64()}.items()
)
_TALLY = pa.schema({"name": pa.string(), "cells": pa.int64()}.items())


# -----------------------------------------------------------------------------
# One shard: posterior, ratio, constraints and evidence of the cells of some units.


@dataclass
class _Cells:
    """Posterior and risk ratio (the first axis of ``alone`` and ``joint``) for every unit and cell.

    ``alone`` is from the noisy count of the query, NaN where there is none; ``joint`` is from all
    values and the constraints, NaN where more people are in the cell than the adversary knows.
    """

    units: TextArray
    counts: IntArray
    measured: BoolArray
    alone: FloatArray
    joint: FloatArray
    evidence: Evidence
    bounds: nmf_reader.CellBounds

    @property
    def settled(self) -> BoolArray:
        """Whether constraints leave a single count, for each pattern and cell."""
        return np.equal(self.bounds.upper, self.bounds.lower)

    def constraint(self, number: int) -> str:
        return self.bounds.kinds[number] if number >= 0 else _SEVERAL

    def tally(self, exceeds: Sequence[float]) -> dict[str, int]:
        """Return numbers of cells, which can be added over shards."""
        bounds, settled = self.bounds, self.settled
        times = np.bincount(bounds.pattern, minlength=len(bounds.upper))
        tally: Counter[str] = Counter()
        for number in np.unique(bounds.kind[settled]).tolist() if settled.any() else []:
            cells = (settled & (bounds.kind == number)).sum(axis=1)
            tally[_SETTLED + self.constraint(number)] += int(times @ cells)
        tally["strengthened"] = int((self.evidence.values > 1).sum())
        tally["contradicted"] = int(np.isnan(self.joint[1]).sum())
        empty = (bounds.upper == 0)[bounds.pattern]
        for limit in exceeds:
            above = self.alone[1] > limit  # False where there is no answer
            tally[f"empty {limit!r}"] = int((above & empty).sum())
            tally[f"above {limit!r}"] = int((self.joint[1] > limit).sum())
        return dict(sorted(tally.items()))

    def table(self) -> pa.Table:
        bounds, (n, cells) = self.bounds, self.counts.shape
        place = np.repeat(np.arange(n, dtype=np.int32), cells)
        absent = np.repeat(~self.measured, cells)
        settled = self.settled[bounds.pattern].reshape(-1)
        used, codes = np.unique(bounds.kind[bounds.pattern].reshape(-1), return_inverse=True)
        names = [self.constraint(number) for number in used.tolist()]
        settling = pa.array(codes.reshape(-1).astype(np.int32), mask=~settled)
        wrong = np.isnan(self.joint[1]).reshape(-1)
        pair = ("posterior", "risk_ratio")
        return pa.table(
            {
                "geocode": pa.DictionaryArray.from_arrays(
                    pa.array(place), pa.array(self.units.tolist(), pa.string())
                ),
                "cell": np.tile(np.arange(cells, dtype=np.int32), n),
                "noisy_count": pa.array(self.counts.reshape(-1), mask=absent),
                **{
                    name: pa.array(values.reshape(-1), mask=absent)
                    for name, values in zip(pair, self.alone, strict=True)
                },
                **{
                    f"{name}_with_constraints": pa.array(values.reshape(-1), mask=wrong)
                    for name, values in zip(pair, self.joint, strict=True)
                },
                "values": self.evidence.values.reshape(-1),
                "settled_by": pa.DictionaryArray.from_arrays(
                    settling, pa.array(names, pa.string())
                ),
            }
        )


def _joint(
    prior: float,
    known_count: int,
    bounds: nmf_reader.CellBounds,
    evidence: Evidence,
    alone: FloatArray,
) -> FloatArray:
    """Return posterior and ratio given all values and constraints, NaN where k is contradicted."""
    joint = np.empty_like(alone)
    # Where the query's own value is all there is, numbers without constraints hold to the bit.
    # (In a unit that has an answer its own value is always among those of the count.)
    single = (evidence.values == 1) & ~np.isnan(alone[1])
    rest = ~single
    for out, numerator, separate in zip(joint, (prior, 1.0), alone, strict=True):
        part = np.empty(int(rest.sum()))
        bayes_rule(-evidence.log_ratio[rest], prior, numerator, part)
        out[rest] = part
        out[single] = separate[single]
        full = bounds.upper <= known_count
        sure = bounds.lower == known_count + 1
        wrong = bounds.lower > known_count + 1
        for mask, value in ((full, 0.0), (sure, numerator / prior), (wrong, np.nan)):
            if mask.any():
                out[mask[bounds.pattern]] = value
    return joint


@dataclass(frozen=True)
class MeasurementsStudy(NoisyStudy):
    r"""Posterior and risk ratio of every unit and cell of noisy measurements, for :func:`run`.

    .. math:: \pi(y) = \operatorname{expit}\Big(\operatorname{logit} p
        + \sum_m \frac{2 (y_m - k) - 1}{2 \sigma_m^2}\Big), \quad r(y) = \pi(y) / p

    The adversary knows everyone in the unit but the target: ``known_count`` others are in the cell,
    and the target is in it with probability ``prior``. These two numbers apply to every cell.
    ``posterior`` and ``risk_ratio`` are from the noisy count of the query alone.
    ``posterior_with_constraints`` and ``risk_ratio_with_constraints`` also use the constraints in
    the folder. Unless one query is requested, they use all noisy values m proved to be of the same
    count, from other queries and larger places.

    A complete run has ``risk.parquet`` with a row for each unit and cell: ``geocode``, ``cell``,
    ``label`` (the cell in words), ``noisy_count`` and the four columns above. ``values`` is the
    number of noisy values used, and ``settled_by`` the constraint that fixes the count.

    ``summary.json`` has the settings and these facts of the run. ``units`` have a noisy answer to
    the query; ``unmeasured`` ones have none (None if no constraints list the units); ``cells`` are
    those of the former. ``settled`` counts cells fixed by a constraint, by constraint (``several``
    if it takes more than one). ``strengthened`` cells have more than one value. ``contradicted``
    cells have more people than ``known_count`` and one. ``ignored`` are constraints with an unknown
    recode.

    For each ``risk_ratio`` of ``exceeds``, ``exceedance`` has the ``cells`` whose ratio by the
    query's own noise is above it, those ``proved_empty``, and ``cells_with_constraints`` above it.
    ``expected_known``, with standard deviation ``error_known``, is the number expected from noise
    alone if every true count were the known count. ``expected_one_more`` and ``error_one_more`` are
    the same for one more. ``more_than_known`` is a 95 % lower bound on the number of cells with
    more than the known count. ``curve`` has the first six of these for ratios from 1 to the
    largest.

    Parameters
    ----------
    measurements : path-like
        Folder of a product, such as ``US_Person_PL_PROD``.
    prior : float
        Prior probability p that the target is in the cell, in (0, 1).
    known_count : int, default 0
        Number k of others known to be in the cell.
    level : str, default "Block"
        Level of the spine.
    query : str, optional
        One query alone. By default the cells are those of the detailed query (or else of the one
        with most cells), and every noisy value of their counts is used.
    exceeds : sequence of float, default (1.5,)
        Risk ratios for which cells above are counted, > 0.
    budget : {"pl94-us", "pl94-pr"}, optional
        Production budget with the exact scales of the noise, in place of those found from
        variances.
    made_up : bool, default False
        Whether the people do not exist, as in a sample; the report then says so.
    units_per_shard : int, optional
        Units of a shard; by default about a million cells.

    Notes
    -----
    If constraints leave no room for the target (an upper bound of at most k), the posterior is 0.
    If they fix the count at k + 1, it is 1. If there are more people, the known count is wrong, and
    both columns are missing. Memory holds a shard, and for each state one number for every pair of
    a unit and a group of cells that its people can be in. Files sorted by unit are read about once;
    otherwise each shard reads its state's files.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.experiments import run
    >>> from bayesrisk.census import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Person_PL_PROD", rng=1)
    ...     study = MeasurementsStudy(sample.folder, prior=0.1, level="Tract")
    ...     summary = run(study, folder + "/risk")
    >>> summary.complete, summary.cells == 2016 * summary.units
    (True, True)
    """

    _: KW_ONLY
    prior: float
    known_count: int = 0
    exceeds: Sequence[float] = (1.5,)
    units_per_shard: int | None = None

    caches: ClassVar = (*NoisyStudy.caches, surroundings)
    layout = Layout(
        "run on noisy measurements", kinds=("counted", "tally", "risk"), merged=("risk",)
    )

    @functools.cached_property
    def config(self) -> Mapping[str, Any]:
        """Checked settings, the folder's digest, and each shard's first and last unit."""
        prior = check.scalar(check.probability(self.prior, "prior"), "prior")
        known_count = check.integer(self.known_count, "known_count", lower=0)
        limits = tuple(
            check.scalar(limit, "exceeds", lower=0.0, bounds="()")
            for limit in check.items(self.exceeds, "exceeds")
        )
        if self.units_per_shard is not None:
            check.integer(self.units_per_shard, "units_per_shard", lower=1)
        source = self._source()
        ranges = _ranges(source, self.units_per_shard or max(1, _CELLS // source.n_cells))
        return self.configuration(
            measurements=source.digest,
            query=source.query,
            combine=self.query is None,
            prior=prior,
            known_count=known_count,
            exceeds=limits,
            ranges=ranges,
            shards=len(ranges),
        )

    def table_between(self, low: str, high: str) -> pa.Table:
        """Return the rows of ``risk.parquet`` for the units between two geocodes."""
        return self._unit_tables(low, high)["risk"]

    def compute(self, shard: int) -> dict[str, pa.Table]:
        """Return a shard's cells, the frequency of each noisy count, and a tally."""
        return self._unit_tables(*self.config["ranges"][shard])

    def work(self, shard: int) -> float:
        """Return the number of units of a full shard."""
        return float(self.units_per_shard or max(1, _CELLS // self._source().n_cells))

    def pilot(self, shard: int, amount: float) -> float:
        """Compute the first units of a shard of the first state, whose surroundings are cached."""
        source, (low, high) = self._source(), self.config["ranges"][0]
        near = surroundings(source, source.state(low), self.query is None)
        units = near.units[slice(*np.searchsorted(near.units, [low, high + ":"]))]
        last = min(units.size, int(amount))
        self._unit_tables(low, str(units[last - 1]))
        return self.work(shard) * last / units.size

    def _unit_tables(self, low: str, high: str) -> dict[str, pa.Table]:
        source, combine = self._source(), self.query is None
        prior = check.scalar(check.probability(self.prior, "prior"), "prior")
        known_count = check.integer(self.known_count, "known_count", lower=0)
        near = surroundings(source, source.state(low), combine)
        units = near.units[slice(*np.searchsorted(near.units, [low, high + ":"]))]
        measured_answers = source.answers(source.level, units)
        row = (
            np.full(units.size, -1)
            if measured_answers is None
            else positions(units, measured_answers.geocodes)
        )
        absent = {"unmeasured": int((row < 0).sum())} if near.listed else {}
        if not combine:  # units without an answer have nothing to be judged by
            units, row = units[row >= 0], row[row >= 0]
        bounds = source.bounds(units, source.level, source.target)
        shape = units.size, source.n_cells
        counts, alone = np.zeros(shape, dtype=np.int64), np.full((2, *shape), np.nan)
        tables, evidence = MeasurementTables(prior, known_count), Evidence(*shape, known_count)
        measured = np.flatnonzero(row >= 0)
        if measured_answers is not None and measured.size:
            counts[measured], sigma2 = (
                measured_answers.values[row[measured]],
                measured_answers.sigma2[row[measured]],
            )
            for out, answers in zip(alone, tables.look_up(counts[measured], sigma2), strict=True):
                out[measured] = answers.reshape(measured.size, -1)
            evidence.add(measured, np.arange(source.n_cells), counts[measured], sigma2)
        if combine and source.target is not None:
            evidence = combined_evidence(source, near, units, bounds, known_count)
        joint = _joint(prior, known_count, bounds, evidence, alone)
        cells = _Cells(units, counts, row >= 0, alone, joint, evidence, bounds)
        tally = (
            cells.tally([check.scalar(limit, "exceeds") for limit in self.exceeds])
            | {"units": measured.size}
            | absent
        )
        return {
            "counted": pa.table(list(tables.counted()), schema=_COUNTED),
            "tally": pa.table([list(tally), list(tally.values())], schema=_TALLY),
            "risk": cells.table().append_column("label", _labels(source, units.size)),
        }

    def sentences(self, facts: Mapping[str, Any]) -> list[str]:
        """Return the result of a run in sentences."""
        k, units = facts["known_count"], f"{facts['units']:,} units ({facts['level']})"
        kinds = "; ".join(
            f"{cells:,} by {_constraint(name)}" for name, cells in facts["settled"].items()
        )
        sentences = [surely_more(facts), *(_exceeding(row, k) for row in facts["exceedance"])]
        sentences.append(f"Cells whose count published constraints fix: {kinds or 'none'}.")
        if facts["combine"]:
            sentences.append(f"Several noisy values add up in {facts['strengthened']:,} cells.")
        if facts["contradicted"]:
            sentences.append(
                f"In {facts['contradicted']:,} cells constraints say that more than {k + 1} are "
                "there."
            )
        if facts["ignored"]:
            unused = ", ".join(facts["ignored"])
            sentences.append(f"Constraints with recodes not known are not used: {unused}.")
        without = (
            f"; {facts['unmeasured']:,} more have no noisy answer" if facts["unmeasured"] else ""
        )
        sentences.append(
            f"These are {units} and the query {facts['query']}{without}. Before the release one "
            f"more person is in a cell with a probability of {facts['prior']:g}."
        )
        return sentences

    def report(self, folder: RunFolder, facts: Mapping[str, Any]) -> bytes:
        """Return the report."""
        k, rows = facts["known_count"], facts["exceedance"]
        ratios = [row["risk_ratio"] for row in rows]
        curve = pd.DataFrame(facts["curve"])
        draw = functools.partial(plot_noisy_measurements, curve, ratios)
        return findings(
            "Noisy measurements: what each noisy count says about one more person",
            self.sentences(facts),
            advice=advice(facts),
            quotes=quotes(facts),
            source=origin(self.config, "posteriors"),
            settings=self.config,
            figures=[drawing(draw, "Cells above a risk ratio, and what noise alone would give.")],
            tables=[table(pd.DataFrame(rows), "Cells above each risk ratio")],
            words={
                "risk ratio": "the probability that one more person than is known is in the cell, "
                "after the release over before it. 1 says that nothing was learned.",
                "known count": f"people of the cell whom the adversary knows: {k}.",
            },
        )

    def facts(self, folder: RunFolder, *, complete: bool) -> Mapping[str, Any]:
        """Return numbers of units and cells in the finished shards."""
        config, tally = self.config, Counter[str]()
        counted: Counter[tuple[float, int]] = Counter()
        for shard in folder.finished():
            for row in folder.read_part(shard, "tally").to_pylist():
                tally[row["name"]] += row["cells"]
            part = folder.read_part(shard, "counted").to_pydict()
            for sigma2, value, cells in zip(*part.values(), strict=True):
                counted[sigma2, value] += cells
        tables = MeasurementTables(config["prior"], config["known_count"])
        keys = sorted(counted)
        tables.add([s for s, _ in keys], [y for _, y in keys], [counted[key] for key in keys])
        exceedance = _rows(tables.exceedance(config["exceeds"]))
        for row in exceedance:
            limit = repr(row["risk_ratio"])
            row["proved_empty"] = tally[f"empty {limit}"]
            row["cells_with_constraints"] = tally[f"above {limit}"]
        top = max(tables.largest_ratio(), 1.0 + 1e-9)
        names = ("level", "query", "combine", "prior", "known_count")
        return {
            **{name: config[name] for name in names},
            "units": tally["units"],
            "unmeasured": tally.get("unmeasured"),
            "cells": tables.cells,
            "settled": {
                name.removeprefix(_SETTLED): cells
                for name, cells in sorted(tally.items())
                if name.startswith(_SETTLED)
            },
            "strengthened": tally["strengthened"],
            "contradicted": tally["contradicted"],
            "ignored": self._source().atoms.ignored,
            "exceedance": exceedance,
            "more_than_known": more_than_known(
                # Ratios that do not depend on the counts: up to certainty.
                tables.exceedance(np.geomspace(1.0, 1.0 / config["prior"], CURVE).tolist())
            ),
            "curve": _rows(tables.exceedance(np.geomspace(1.0, top, CURVE).tolist())),
        }


def _labels(source: MeasurementSource, units: int) -> pa.DictionaryArray:
    """Return the labels of all cells of ``units`` units, or the cell numbers if unknown."""
    names = [f"cell {number}" for number in range(source.n_cells)]
    if source.target is not None:
        with suppress(ArgumentError):
            names = query_cells(source.nmf.universe, source.query)
    numbers = np.tile(np.arange(source.n_cells, dtype=np.int32), units)
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(names, pa.string()))


def more_than_known(curve: pd.DataFrame) -> int:
    """Return a 95 % lower bound on the number of cells with more people than known.

    Noise alone explains at most a Poisson quantile of the cells above a ratio, as the Poisson tail
    is longer; the other cells hold more people.  The error is shared among the ratios of ``curve``.
    """
    explained = np.ceil(pdtrik(1.0 - 0.05 / len(curve), curve["expected_known"].to_numpy()))
    explained = np.maximum(np.nan_to_num(explained), 0.0)  # NaN where nothing is expected
    return int(max((curve["cells"].to_numpy() - explained).max(), 0.0))


def surely_more(facts: Mapping[str, Any]) -> str:
    """Return the first sentence: whether noise alone can explain the noisy counts."""
    k, more, cells = facts["known_count"], facts["more_than_known"], facts["cells"]
    holding = f"more than the {k:,} people who are known" if k else "somebody"
    if not cells:
        return f"No noisy count was read, so that no cell is known to hold {holding}."
    if not more:
        return f"Noise alone can explain these {cells:,} noisy counts: none surely holds {holding}."
    hold = "holds" if more == 1 else "hold"
    return (
        f"At least {more:,} of {cells:,} cells {hold} {holding}: noise alone does not explain so "
        "many large counts (95 % sure)."
    )


def advice(facts: Mapping[str, Any]) -> Part:
    """Return the advice by what noise alone does not explain."""
    prior = f"{facts['prior']:g}"
    return what_to_do(
        undecided=facts["more_than_known"] > 0 if facts["cells"] else "nothing was read",
        basis=f"the prior of {prior} and the query {facts['query']}",
        step=f"`bayesrisk census measurements FOLDER --prior {prior} --unit GEOID` shows a place.",
    )


def _exceeding(row: Mapping[str, Any], k: int) -> str:
    """Return a sentence on how many noisy counts exceed a ratio, beside noise alone."""
    few, many = (f"{row[f'expected_{name}']:,.0f}" for name in ("known", "one_more"))
    spread = f"{2.0 * row['error_known']:,.0f}"
    return (
        f"{row['cells']:,} noisy counts make it more than {row['risk_ratio']:g} times as probable "
        f"that one more person is there. Noise alone makes {few} (give or take {spread}) do so if "
        f"every true count is {k}, and {many} if every one is {k + 1}. Constraints prove "
        f"{row['proved_empty']:,} of these cells empty; with them {row['cells_with_constraints']:,}"
        " are above."
    )


def _constraint(name: str) -> str:
    """Return a constraint by name, with its level where that is another, and in words."""
    words = _FIXED.get(name.rpartition(" ")[2])
    return name if words is None else f"{name} ({words})"


def quotes(facts: Mapping[str, Any]) -> Quotes:
    """Return sentences about a run that may be quoted, and sentences that may not."""
    first, k = facts["exceedance"][0], facts["known_count"]
    few = f"{first['expected_known']:,.0f}"
    settled = sum(facts["settled"].values())
    return Quotes(
        may=[
            surely_more(facts),
            f"{first['cells']:,} noisy counts make one more person more than "
            f"{first['risk_ratio']:g} times as probable; noise alone makes {few} of "
            f"{facts['cells']:,} do so.",
            f"Constraints that are published without noise fix the counts of {settled:,} cells.",
        ],
        may_not={
            f"{first['cells']:,} people were found.": f"Noise alone makes about {few} counts look "
            "so; no count says which.",
            f"A noisy count of {k + 3} says that {k + 3} people are there.": "It is the true count "
            "plus noise; less is as possible as more.",
            "A noisy count below 1 says that nobody is there.": "Noise makes counts of people who "
            "are there negative, too.",
        },
    )


def _ranges(source: MeasurementSource, units_per_shard: int) -> tuple[tuple[str, str], ...]:
    """Return each shard's first and last unit; no shard spans two states.

    One state's geocodes are in memory at a time.
    """
    ranges = []
    for state in nmf_reader.state_prefixes(source.nmf, source.level):
        units, _ = nmf_reader.units_between(source.nmf, source.level, state, state)
        for start in range(0, units.size, units_per_shard):
            part = units[start : start + units_per_shard]
            ranges.append((str(part[0]), str(part[-1])))
    if not ranges:
        raise DataError(f"{source.nmf.folder}: level {source.level} must have units, got none")
    return tuple(ranges)


def _rows(frame: pd.DataFrame) -> list[dict[str, float]]:
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict(orient="records")]

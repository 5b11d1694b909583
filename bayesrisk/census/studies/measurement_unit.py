"""One unit of a noisy measurement file: noisy counts by label, with intervals and risk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import IntArray
from bayesrisk.census.readers.geocodes import block_geoid
from bayesrisk.census.readers.nmf import reader as nmf_reader
from bayesrisk.census.studies.measurement_risk import CURVE, MeasurementsStudy, more_than_known
from bayesrisk.exceptions import ArgumentError, quote
from bayesrisk.inference.count.measurements import MeasurementTables
from bayesrisk.tables.cells import positions

if TYPE_CHECKING:
    from bayesrisk.plotting import Axes

_DRAWN = 12  # cells of a figure


@displayed
@dataclass(frozen=True, eq=False)
class UnitMeasurements(Tabular):
    """A unit's noisy counts, with intervals and risk.

    Attributes
    ----------
    unit, geocode, query : str
        The unit as requested, its geocode in the files, and the query.
    prior, known_count : float, int
        Prior probability of one more person in a cell than the known number, and that number.
    cells : pandas.DataFrame
        A row for each cell: ``cell`` (its number), ``label``, ``noisy_count``, and ``settled_by``,
        the constraint that fixes the count. ``least`` and ``most`` are the shortest interval that
        holds 95 % of the count, under a uniform prior on all counts that constraints allow.
        ``posterior`` and ``risk_ratio`` are those of one more person, given all noisy values and
        the constraints.
    more_than_known : int
        95 % lower bound on the number of cells with more people than known: noise alone explains no
        more.
    """

    unit: str
    geocode: str
    query: str
    prior: float
    known_count: int
    cells: pd.DataFrame
    more_than_known: int

    def _answer(self) -> list[str]:
        more, k = self.more_than_known, self.known_count
        people = f"more than {k:,} people" if k else "people"
        first = f"Noise alone explains these counts: no cell surely holds {people}."
        if more:
            first = f"{more:,} cells hold more people than noise explains (95 % sure)."
        cells, settled = len(self.cells), int(self.cells["settled_by"].notna().sum())
        return [
            first,
            f"Of {cells:,} cell{'s' * (cells != 1)} of {self.unit} constraints fix {settled:,}.",
            f"One more person is in a cell with probability {self.prior:g} before the release.",
            "least and most hold 95 % of one count, if all counts were as probable before. Of many "
            "cells some lie outside by noise alone: a least above 0 proves nobody.",
        ]

    def _shown_frame(self) -> pd.DataFrame:
        return self.open_cells()

    def open_cells(self) -> pd.DataFrame:
        """Return the cells that no constraint fixes, largest risk ratio first."""
        free = self.cells[self.cells["settled_by"].isna()].drop(columns="settled_by")
        return free.sort_values("risk_ratio", ascending=False, kind="stable", ignore_index=True)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each cell, in their order."""
        return self.cells

    def plot(self) -> Axes:
        """Draw the largest noisy counts that no constraint fixes, and an interval of each count.

        Noise alone makes some of many counts large, so that none of them proves a person.
        """
        from bayesrisk.plotting.attacks import plot_bounds  # slow to import

        every = self.open_cells()
        cells = every.nlargest(_DRAWN, "noisy_count")
        noisy = dict.fromkeys(("low", "high"), cells["noisy_count"])
        ends = {"least": "low_stated", "most": "high_stated"}
        axes = plot_bounds(cells.rename(columns=ends).assign(**noisy))
        text = f"the {len(cells)} largest of {len(every)}: noise alone makes some large"
        text = f"people (dots: noisy counts; bars: 95 % of each count)\n{text}"
        axes.set_xlabel(text, fontsize=8.0)
        return axes


def unit_measurements(
    measurements: str | Path,
    unit: str,
    *,
    prior: float,
    known_count: int = 0,
    level: str = "Block",
    query: str | None = None,
    budget: str | None = None,
) -> UnitMeasurements:
    r"""Return a unit's noisy counts by label, with intervals and risk.

    .. math:: P(x \mid y) \propto \exp(-(y - x)^2 / (2 \sigma^2)), \quad l \le x \le u

    Here y is the noisy count of a cell, and l and u are the least and the largest count that the
    published constraints allow. The risk is that of :class:`MeasurementsStudy`.

    Parameters
    ----------
    measurements : path-like
        Folder of a product, such as ``US_Person_PL_PROD``.
    unit : str
        For a block its GEOID of 15 digits; for any unit its geocode in the files.
    prior, known_count, level, query, budget : optional
        As for :class:`MeasurementsStudy`.

    Returns
    -------
    UnitMeasurements
        Counts by labels.

    Raises
    ------
    ArgumentError
        If there is no such unit, or the query has no noisy answer for it.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrisk.census import write_nmf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sample = write_nmf(folder + "/US_Person_PL_PROD", rng=1)
    ...     block = sample.geocodes["Tract"][0]
    ...     found = unit_measurements(sample.folder, block, prior=0.1, level="Tract")
    >>> found.cells["label"][0]
    'under 18, not Hispanic, White alone, in a household'
    """
    prior = check.scalar(check.probability(prior, "prior"), "prior")
    study = MeasurementsStudy(
        measurements, prior=prior, known_count=known_count, level=level, query=query, budget=budget
    )
    source = study._source()
    code = _geocode(source.nmf, source.level, check.text(unit, "unit"))
    answers = source.answers(source.level, np.array([code]))
    table = study.table_between(code, code).to_pandas()
    row = -1 if answers is None else int(positions(np.array([code]), answers.geocodes)[0])
    if answers is None or row < 0:
        rule = f"must have a noisy answer to {source.query} (a unit without siblings has none)"
        raise ArgumentError("unit", rule, got=unit)
    noisy, sigma2 = answers.values[row].astype(np.int64), float(answers.sigma2[row])
    bounds = source.bounds(np.array([code]), source.level, source.target)
    low, high = bounds.lower[bounds.pattern[0]], bounds.upper[bounds.pattern[0]]
    stated = zip(noisy.tolist(), low.tolist(), high.tolist(), strict=True)
    ends = [_interval(*cell, sigma2) for cell in stated]
    cells = pd.DataFrame(
        {
            "cell": table["cell"],
            "label": table["label"].astype(object),
            "noisy_count": noisy,
            "least": [least for least, _ in ends],
            "most": [most for _, most in ends],
            "posterior": table["posterior_with_constraints"],
            "risk_ratio": table["risk_ratio_with_constraints"],
            "settled_by": table["settled_by"].astype(object),
        }
    )
    free = np.flatnonzero(low < high)
    tables, surely = MeasurementTables(prior, known_count), 0
    if free.size:
        values, times = np.unique(noisy[free], return_counts=True)
        tables.add([sigma2] * values.size, values.tolist(), times.tolist())
        surely = more_than_known(tables.exceedance(np.geomspace(1.0, 1.0 / prior, CURVE).tolist()))
    return UnitMeasurements(unit, code, source.query, prior, known_count, cells, surely)


def _interval(noisy: int, low: int, high: int, sigma2: float) -> tuple[int, int]:
    """Return the most probable counts of 95 % together, with a flat prior within bounds.

    The weights fall on both sides of the largest, so that these counts are an interval.
    """
    reach = int(12.0 * np.sqrt(sigma2)) + 1
    middle = min(max(noisy, low), high)
    counts: IntArray = np.arange(max(low, middle - reach), min(high, middle + reach) + 1)
    exponent = -((counts - noisy) ** 2) / (2.0 * sigma2)
    weights = np.exp(exponent - exponent.max())
    order = np.argsort(-weights, kind="stable")
    total = np.cumsum(weights[order]) / weights.sum()
    likely = counts[order[: int(np.searchsorted(total, 0.95)) + 1]]
    return int(likely.min()), int(likely.max())


def _geocode(nmf: nmf_reader.NoisyMeasurements, level: str, unit: str) -> str:
    """Return the geocode of a unit given by geocode, or of a block given by GEOID."""
    states = nmf_reader.state_prefixes(nmf, level)
    near = [state for state in states if unit.startswith(state) or state[1:] == unit[:2]]
    codes, examples = list[Any](), list[Any]()
    for state in near or list(states)[:1]:
        units, _ = nmf_reader.units_between(nmf, level, state, state)
        names = block_geoid(units) if level == "Block" else units
        codes += units[(names == unit) | (units == unit)].tolist()
        examples += names[-1:].tolist()
    if len(codes) != 1:
        text = f"{quote(unit)}, which {'no' if not codes else 'more than one'} {level} has"
        like = f"; one that has is {examples[0]}" if examples else ""
        raise ArgumentError(
            "unit", "must be a GEOID or a geocode of the files", shown=text, advice=like
        )
    return str(codes[0])

"""Releases without one record, and residual risk: success beyond that on a control group."""

from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.interfaces import Mechanism
from bayesrisk.release import MechanismSpec, NoiseSpec, Release, TrueCounts
from bayesrisk.risk.intervals import binomial_interval, clustered_interval
from bayesrisk.risk.statements.statements import GROUP, Statements
from bayesrisk.tables import Microdata, Records
from bayesrisk.tables.published import select_rows


def is_additive(spec: MechanismSpec) -> bool:
    """Return True if all counts are true, or true plus noise independent of the records."""
    return all(isinstance(law, (TrueCounts, NoiseSpec)) for law in spec.tables.values())


def counted_unit(data: Microdata, records: Records) -> Records:
    """Return the microdata's persons or households, whichever the records describe."""
    for unit in (data.persons, data.households):
        if unit is not None and len(unit) == len(records):
            return unit
    raise DataError("microdata must have a row for each record that is counted")


def microdata_without(data: Microdata, records: Records, row: int) -> Microdata:
    """Return the microdata without the record in a row."""
    unit = counted_unit(data, records)
    remaining = unit.take(np.arange(len(records)) != row)
    if unit is data.persons:
        return replace(data, persons=remaining)
    return replace(data, households=remaining)


class Counterfactual:
    """Releases without one person, for the tables that an attack reads together.

    If every published count is true, or true plus noise that does not depend on records, the
    release of the others is the release less the record. Other releases are made again from the
    same seed.
    """

    def __init__(
        self, release: Release, truth: Microdata, mechanism: Mechanism | None, rng: int | None
    ) -> None:
        self._release, self._truth = release, truth
        self._mechanism, self._rng = mechanism, rng
        self.records = truth.for_schema(release.tables.workload.schema)
        self._cells = self.records.cells()
        self._additive = is_additive(release.spec)
        self.possible = self._additive or mechanism is not None
        if mechanism is None or self._additive:
            return
        if rng is None:
            raise ArgumentTypeError("rng must be the seed of the release, with mechanism: got None")
        repeated = mechanism.release(truth, workload=release.tables.workload, rng=rng)
        if repeated.tables != release.tables:
            raise ArgumentError(
                "truth, mechanism and rng must be those of the release: they make another one"
            )

    def groups(self, rows: IntArray) -> IntArray:
        """Return a group number for each record; equal numbers leave the same release behind."""
        place = np.unique(self.records.geoids, return_inverse=True)[1]
        kind: IntArray = place * self.records.schema.size + self._cells
        return kind[rows] if self._additive else rows

    def without(self, row: int, level: str | None) -> Release:
        """Return the release without a record, restricted to the record's place at a level."""
        release, code = self._release, str(self.records.geoids[row])
        if self._additive or self._mechanism is None:
            return tables_within(release, level, code, self._cells[row : row + 1])
        remaining = microdata_without(self._truth, self.records, row)
        workload = release.tables.workload
        reduced = self._mechanism.release(remaining, workload=workload, rng=self._rng)
        return tables_within(reduced, level, code, None)


def tables_within(release: Release, level: str | None, code: str, cell: IntArray | None) -> Release:
    """Return the tables around a finest place from a level down, minus a record of a cell.

    All tables are kept where ``level`` is None.
    """
    tables, schema = release.tables, release.tables.workload.schema
    geography = schema.geography
    top = tables.workload.levels[0] if level is None else level
    levels = [one for one in tables.workload.levels if geography.rank(one) >= geography.rank(top)]
    finest = np.array([code])
    rows = {}
    for one in levels:
        around = geography.ancestors(tables.geoids[one], top) == geography.ancestors(finest, top)
        rows[one] = np.flatnonzero(around | (level is None))
    part = select_rows(tables, rows)
    if cell is not None:
        counts = {}
        for key, table in part.workload.tables.items():
            match = part.geoids[key[0]] == geography.ancestors(finest, key[0])
            place = sp.csr_array(match[:, None].astype(np.int64))
            counts[key] = sp.csr_array(part.counts[key] - place @ table.incidence(schema, cell).T)
        part = replace(part, counts=counts)
    laws = {key: release.spec.likelihood(*key) for key in part.counts}
    return Release(MechanismSpec(release.spec.mechanism, {}, laws), part)


def residual_risk(
    statements: Statements,
    control: Statements,
    *,
    measure: str = "correct",
    units: str | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    r"""Return an attack's success beyond its success on people outside the data.

    .. math:: R = \frac{s - c}{1 - c}

    Here s is the success on people in the data, and c that on a control group: people like them
    whose records were left out of the release. Source: Giomi, Boenisch, Wehmeyer and Tasnádi (2023,
    PoPETs 2023(2), 312-328, arXiv:2211.10459), with Wilson intervals; Francis and Wagner (2024)
    measure the gain over a baseline in the same form.

    Parameters
    ----------
    statements : Statements
        Statements about people in the data.
    control : Statements
        Statements of the same attacks and protections, about people not in the data.
    measure : {"correct", "posterior"}, default "correct"
        Measure of success. ``"correct"`` is the share of true statements among those of known
        truth. ``"posterior"`` is the mean posterior, the success of drawing a guess at random, if
        statements are the truth about given people (:func:`statements_about_people`).
    units : str, optional
        Column of both whose equal values mark dependent statements, such as ``"block"``; by default
        statements are independent.
    confidence : float in (0, 1), default 0.95

    Returns
    -------
    pandas.DataFrame
        A row for each ``attack``, ``adversary`` and ``protection`` of ``statements``.
        ``statements`` and ``controls`` are the numbers judged; ``success`` and ``control`` have
        ``_lower`` and ``_upper``; ``residual`` has ``lower`` and ``upper``. A residual risk of 1
        means that the attack always succeeds on people in the data, and not always on others. With
        0 or less, being in the data did not help it. It is missing if nothing is judged on one
        side, or the control always succeeds.

    Notes
    -----
    Intervals of success are Clopper and Pearson's, for the effective number of statements if there
    are units. The residual risk rises with s and falls with c. So ends from intervals of both at
    ``(1 + confidence) / 2`` hold it with at least the confidence, whatever the dependence of the
    two groups. The control must be drawn like the people in the data.

    Examples
    --------
    >>> rows = pd.DataFrame({"attack": "guess", "adversary": "outsider", "protection": "none",
    ...     "target": ["1", "2", "3", "4"], "statement": "a", "people": 1, "prior": 0.5,
    ...     "posterior": 1.0, "status": "believed", "correct": [True, True, True, False]})
    >>> others = rows.assign(correct=[True, False, True, False])
    >>> residual_risk(Statements(rows), Statements(others))["residual"].tolist()
    [0.5]
    """
    in_data = check.instance(statements, Statements, "statements").frame
    controls = check.instance(control, Statements, "control").frame
    check.choice(measure, "measure", ("correct", "posterior"))
    sure = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    if units is not None:
        check.text(units, "units")
        for label, frame in (("statements", in_data), ("control", controls)):
            frame = check.frame(frame, f"units of {label}", [units])
    groups = dict(iter(controls.groupby(GROUP, sort=False)))
    lines = []
    for key, rows in in_data.groupby(GROUP, sort=False):
        if key not in groups:
            raise DataError(f"control: must have statements of {', '.join(map(str, key))}")
        line: dict[str, object] = dict(zip(GROUP, key, strict=True))
        ends, rates = [], []
        for name, number, part in (
            ("success", "statements", rows),
            ("control", "controls", groups[key]),
        ):
            judged = part[part[measure].notna()]
            hits = judged[measure].to_numpy(np.float64)
            labels = None if units is None else judged[units].astype("str").to_numpy()
            line[number] = len(hits)
            rates.append(float(hits.mean()) if len(hits) else np.nan)
            line[name] = rates[-1]
            line[f"{name}_lower"], line[f"{name}_upper"] = _interval(hits, labels, sure)
            ends.append(_interval(hits, labels, (1.0 + sure) / 2.0))
        (s_low, s_high), (c_low, c_high) = ends
        line["residual"] = _residual(*rates)
        line["lower"], line["upper"] = _residual(s_low, c_high), _residual(s_high, c_low)
        lines.append(line)
    if not lines:
        raise ArgumentError("statements", "must be at least one", shown="none")
    return pd.DataFrame(lines)


def _interval(
    hits: FloatArray, labels: NDArray[np.object_] | None, confidence: float
) -> tuple[float, float]:
    if labels is None:
        low, high = binomial_interval(hits.sum(), len(hits), confidence=confidence)
        return float(low), float(high)
    return clustered_interval(hits, labels, confidence=confidence)


def _residual(success: float, control: float) -> float:
    """Return (s - c) / (1 - c); for c = 1 minus infinity, or missing if s = 1."""
    if control == 1.0:
        return np.nan if np.isnan(success) or success == 1.0 else -np.inf
    return (success - control) / (1.0 - control)

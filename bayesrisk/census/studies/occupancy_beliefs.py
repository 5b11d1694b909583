"""Occupancy in audits: its question, its method of inference, and its statements."""

from typing import Any

import numpy as np
import pandas as pd

from bayesrisk._base.validation import BoolArray, FloatArray, IntArray
from bayesrisk.census.occupancy.detection import OccupancyDetection, detect_occupancy
from bayesrisk.census.occupancy.statistics import TABLES, occupancy_statistics
from bayesrisk.census.population.subsidies import occupancy_violation
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.inference import RecordPrior
from bayesrisk.interfaces import Attack
from bayesrisk.reconstruction import make_attack
from bayesrisk.release import Release
from bayesrisk.risk.audit.adversaries import TargetQuestion
from bayesrisk.risk.statements.results import AttackStatements, Composition, pairs_that_agree
from bayesrisk.tables import PublishedTables, Records, Schema, Workload

#: Attributes that decide whether a household is over its occupancy limit.
LIMITED = ("size", "bedrooms", "subsidised")


def occupancy_cells(schema: Schema) -> tuple[BoolArray, BoolArray]:
    """Return masks of the schema cells that are subsidised, and that exceed the limit."""
    index = schema.indices(np.arange(schema.size, dtype=np.int64))
    code = {name: index[name] + schema.attribute(name).first for name in LIMITED}
    subsidised = code["subsidised"] == 1
    return subsidised, subsidised & occupancy_violation(code["size"], code["bedrooms"])


def none_over(prior: RecordPrior, households: int, n_within: int = 0) -> float:
    r"""Return the probability that none of m subsidised households is over the limit.

    .. math:: \prod_{i=0}^{m-1} \frac{A \theta_N + w + i}{A \theta_S + w + i}

    for m households of a block, w others of which are known to be within the limit. S are the
    subsidised households of the composition, and N those of them within the limit. Without a
    concentration A, every factor is :math:`\theta_N / \theta_S`.
    """
    subsidised, violating = occupancy_cells(prior.schema)
    shares = prior.shares_of_cells
    every, least = float(shares[subsidised].sum()), float(shares[subsidised & ~violating].sum())
    if prior.concentration is None:
        return float((least / every) ** households)
    number = n_within + np.arange(households)
    a = prior.concentration
    return float(np.prod((a * least + number) / (a * every + number)))


def household_weights(prior: RecordPrior, households: int, subsidised: int) -> FloatArray:
    """Return a household's law (weights by cell), given that one of the block's is over the limit.

    A weight for each cell of the schema, with sum P(one is over the limit); ``households`` live in
    the block, ``subsidised`` of them in subsidised units.
    """
    assisted, violating = occupancy_cells(prior.schema)
    shares = prior.shares_of_cells
    weights = np.zeros(shares.size)
    # The household is subsidised with n of N, and then of cell c with theta_c / theta_S.  One over
    # the limit is enough; else it is up to the n - 1 others; of one without subsidy to all n.
    for cells, part, neighbours, n_within in (
        (assisted, subsidised, subsidised - 1, 1),
        (~assisted, households - subsidised, subsidised, 0),
    ):
        whole = float(shares[cells].sum())
        if part > 0 and whole > 0:
            rest = 1.0 - none_over(prior, neighbours, n_within) if shares[assisted].any() else 0.0
            chance = np.where(violating, 1.0, rest)
            weights[cells] = (part / households * shares * chance / whole)[cells]
    return weights


def check_occupancy(workload: Workload, name: str) -> None:
    """Raise unless the tables are those of households with an occupancy limit."""
    level, schema = workload.levels[-1], workload.schema
    missing = [one for one in LIMITED if one not in schema.names]
    if missing:
        raise ArgumentError(
            f"{name} must not name occupancy for schema {schema.name!r}: its records have no "
            f"{', '.join(missing)}, so that they are no households with an occupancy limit"
        )
    lost = [table for table in TABLES.values() if (level, table) not in workload.tables]
    if lost:
        raise ArgumentError(
            f"{name} must not name occupancy for these tables: {quote(level)} has no "
            f"{', '.join(lost)}"
        )


class OverLimit:
    """Whether a subsidised household is over its occupancy limit."""

    labels = ("within the occupancy limit", "over its occupancy limit")

    def __init__(self, workload: Workload) -> None:
        check_occupancy(workload, "stated")
        self.value: IntArray = occupancy_cells(workload.schema)[1].astype(np.int64)


class ViolationAttack:
    """Attack that proves, from tables read as true, that a place has a household over the limit.

    If that is not proved, or the counts contradict each other, nothing is stated.
    """

    engine = "occupancy"
    proof = True
    partial = True

    def __init__(self, tables: PublishedTables) -> None:
        self._households: tuple[int, int] | None = None
        level = tables.workload.levels[-1]
        try:
            counts = occupancy_statistics(tables, level=level, taken_as_true=True)
        except DataError:  # withheld, or below 0
            return
        if detect_occupancy(counts).violation[0]:
            self._households = int(counts.households[0]), int(counts.hud_households[0])

    def weights(self, question: TargetQuestion, prior: RecordPrior) -> FloatArray | None:
        """Return the law of a household's values, given that one is over the limit, or None."""
        if self._households is None:
            return None
        weights = question.sums(household_weights(prior, *self._households))
        return weights if weights.any() else None

    @staticmethod
    def check(workload: Workload) -> None:
        """Raise unless the tables are those of households with an occupancy limit."""
        check_occupancy(workload, "methods")


def stated_by_occupancy(
    result: OccupancyDetection,
    release: Release,
    prior: Composition,
    *,
    attack: Attack | None = None,
) -> AttackStatements:
    """Return statements that some subsidised household of a block is over the limit."""
    schema = prior.prior.schema
    assisted, violating = occupancy_cells(schema)
    shares = np.bincount(prior.cells, prior.shares, minlength=schema.size)
    law = RecordPrior.composition(schema, shares, concentration=prior.concentration)
    if not shares[assisted].any():
        raise ArgumentError("prior", "must allow subsidised households")
    start = float(shares[violating].sum() / shares[assisted].sum())
    usual = attack or make_attack("occupancy", taken_as_true=True)

    def believed(detection: OccupancyDetection) -> pd.Series:
        """Return each block's probability that a household is over the limit, given that one is."""
        values = []
        for n, hit in zip(detection.subsidised.tolist(), detection.violation.tolist(), strict=True):
            weight = household_weights(law, n, n) if hit else np.zeros(violating.size)
            part, rest = weight[violating].sum(), weight[~violating].sum()
            values.append(part / (part + rest) if part > 0 else np.nan)
        return pd.Series(values, detection.geoids.astype(str), dtype=np.float64)

    inhabited = result.subsidised > 0
    geoids = result.geoids[inhabited].astype(str)
    posterior = believed(result).to_numpy()[inhabited]
    rows = pd.DataFrame(
        {
            "target": [f"a subsidised household in block {geoid}" for geoid in geoids],
            "statement": "over its occupancy limit",
            "people": result.subsidised[inhabited],
            "prior": start,
            "posterior": posterior,
            "certain": posterior == 1.0,
            "finding": np.array(result.status)[inhabited],
        }
    )

    def subjects(truth: Records) -> tuple[IntArray, IntArray, BoolArray]:
        cells = truth.cells()
        level = release.tables.workload.levels[-1]
        places = truth.schema.geography.ancestors(truth.geoids, level)
        people = pd.DataFrame({"place": np.where(assisted[cells], places, "")})
        pairs = pairs_that_agree(pd.DataFrame({"place": geoids}), people, ["place"])
        record = pairs["record"].to_numpy()
        return pairs["statement_row"].to_numpy(), record, violating[cells[record]]

    def rerun(other: Release, numbers: IntArray) -> FloatArray:
        detection: Any = usual.run(other)
        return believed(detection).reindex(geoids[numbers]).to_numpy(np.float64)

    return AttackStatements(
        "occupancy", "outsider", rows, release.tables.workload.levels[-1], subjects, rerun
    )

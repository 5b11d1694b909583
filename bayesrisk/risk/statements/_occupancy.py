"""What an occupancy attack says of every block with subsidised households."""

from typing import Any

import numpy as np
import pandas as pd

from bayesrisk import _validation as check
from bayesrisk.reconstruction import OCCUPANCY_STATUS, OccupancyDetection
from bayesrisk.reconstruction.status import Status
from bayesrisk.release import MechanismSpec
from bayesrisk.risk.intervals import binomial_interval
from bayesrisk.risk.occupancy.blocks import violating_blocks


def statements_of_occupancy(
    found: OccupancyDetection,
    *,
    spec: MechanismSpec,
    prior: float,
    truth: pd.DataFrame | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Return the statements; see :meth:`Statements.of`."""
    believed = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    share = check.scalar(confidence, "confidence", lower=0.0, upper=1.0, bounds="()")
    kept = found.subsidised > 0
    finding = np.array(found.status)[kept]
    proved = (finding == Status.VIOLATION) & spec.true_counts
    values = np.where(proved, 1.0, np.nan)
    lower, upper, status = values.copy(), values.copy(), np.where(proved, "proved", "unverified")
    true = None
    if truth is not None:
        true = violating_blocks(found, truth)[kept]
        for kind in OCCUPANCY_STATUS:
            rows = (finding == kind) & ~proved
            if rows.any():
                hits, of = int(true[rows].sum()), int(rows.sum())
                bounds = binomial_interval(hits, of, confidence=share)
                values[rows], status[rows] = hits / of, "estimated"
                lower[rows], upper[rows] = bounds
    columns: dict[str, Any] = {
        "attack": "occupancy",
        "adversary": "outsider",
        "protection": spec.mechanism,
        "target": [f"block {geoid}" for geoid in found.geoids[kept]],
        "statement": "a subsidised household above the occupancy limit",
        "people": found.subsidised[kept],
        "prior": believed,
        "posterior": values,
        "lower": lower,
        "upper": upper,
        "correct": true,
        "status": status,
        "finding": finding,
    }
    return pd.DataFrame(columns)

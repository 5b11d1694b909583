"""The law of a household of a block where a subsidised one is over the limit."""

from __future__ import annotations

import numpy as np

from bayesrisk._base.validation import BoolArray, FloatArray
from bayesrisk.census.population.subsidies import occupancy_violation
from bayesrisk.inference import RecordPrior
from bayesrisk.tables import Schema

#: Attributes that decide whether a household is over its occupancy limit.
LIMITED = ("size", "bedrooms", "subsidised")


def occupancy_cells(schema: Schema) -> tuple[BoolArray, BoolArray]:
    """Return which cells are subsidised households, and which of these are over the limit."""
    index = schema.indices(np.arange(schema.size, dtype=np.int64))
    code = {name: index[name] + schema.attribute(name).first for name in LIMITED}
    subsidised = code["subsidised"] == 1
    return subsidised, subsidised & occupancy_violation(code["size"], code["bedrooms"])


def none_over(prior: RecordPrior, households: int, n_within: int = 0) -> float:
    r"""Return the probability that none of some subsidised households is over the limit.

    .. math:: \prod_{i=0}^{m-1} \frac{A \theta_N + w + i}{A \theta_S + w + i}

    for m households, of whose block w others are known to be within the limit; S are the subsidised
    ones of the composition, N those of them within the limit.  Without a concentration A every
    factor is :math:`\theta_N / \theta_S`.
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
    """Return the law of one household of a block where a subsidised one is over the limit.

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

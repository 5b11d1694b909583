"""Epsilon of each protection's whole release, from the distribution of its privacy loss."""

from __future__ import annotations

from collections.abc import Mapping

from bayesrisk._base.frames import pandas as pd
from bayesrisk.accounting import rho_to_epsilon
from bayesrisk.accounting.privacy_loss import PrivacyLoss
from bayesrisk.exceptions import ArgumentError
from bayesrisk.release import MechanismSpec
from bayesrisk.tables import Workload

#: Delta at which epsilon is stated, that of the 2020 census.
DELTA = 1e-10
_COLUMNS = ("protection", "neighbour", "counts", "rho", "epsilon", "epsilon_of_rho")


def privacy_losses(specs: Mapping[str, MechanismSpec], workload: Workload) -> pd.DataFrame:
    """Return epsilon and rho of each protection that has independent noise in every table.

    ``neighbour`` says whether one record is added or removed (``add-remove``) or changes
    (``change-one``); ``counts`` is the number of counts it moves. ``epsilon`` is that of the
    release's own law at :data:`DELTA`, rounded up. ``epsilon_of_rho`` is the tight conversion of
    ``rho``, for Gaussian noise only.
    """
    rows = []
    for name, spec in specs.items():
        try:
            law = PrivacyLoss.of(spec.for_tables(workload.tables))
        except ArgumentError:  # no such law
            continue
        counts, epsilon = sum(part.times for part in law.parts), float(law.epsilon(DELTA).upper)
        converted = float(rho_to_epsilon(law.rho, DELTA)) if law.rho > 0.0 else law.rho
        neighbour = spec.parameters.get("sensitivity", "change-one")
        rows.append((name, neighbour, counts, law.rho, epsilon, converted))
    return pd.DataFrame(rows, columns=_COLUMNS)

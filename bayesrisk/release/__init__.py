"""Releases: the tables that leave the custodian, and how they were protected.

``bayesrisk.release(records, protection=...)`` calls :func:`bayesrisk.verbs.release`.
"""

import sys

from bayesrisk._base.lazy import callable_room
from bayesrisk.release.release import Release
from bayesrisk.release.specification import MechanismSpec
from bayesrisk.tables.likelihoods import (
    Likelihood,
    NoiseSpec,
    RangeSpec,
    RoundingSpec,
    SimulationOnly,
    SuppressedCounts,
    TrueCounts,
)

__all__ = [
    "Likelihood",
    "MechanismSpec",
    "NoiseSpec",
    "RangeSpec",
    "Release",
    "RoundingSpec",
    "SimulationOnly",
    "SuppressedCounts",
    "TrueCounts",
]

sys.modules[__name__].__class__ = callable_room("bayesrisk.verbs:release")

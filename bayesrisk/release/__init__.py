"""Releases: the tables that leave the custodian, and how they were protected."""

from bayesrisk.release.release import MechanismSpec, Release
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

"""Releases: the tables that leave the custodian, and how they were protected."""

from bayesrisk.release.release import Release
from bayesrisk.release.spec import (
    Likelihood,
    MechanismSpec,
    NoiseSpec,
    RoundingSpec,
    SimulationOnly,
    SuppressedCounts,
    TrueCounts,
    rounding_probability,
)

__all__ = [
    "Likelihood",
    "MechanismSpec",
    "NoiseSpec",
    "Release",
    "RoundingSpec",
    "SimulationOnly",
    "SuppressedCounts",
    "TrueCounts",
    "rounding_probability",
]

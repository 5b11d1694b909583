"""Releases: the tables that leave the custodian, and how they were protected."""

from bayesrisk.release.likelihoods import (
    Likelihood,
    NoiseSpec,
    RoundingSpec,
    SimulationOnly,
    SuppressedCounts,
    TrueCounts,
    rounding_probability,
)
from bayesrisk.release.release import Release
from bayesrisk.release.spec import MechanismSpec

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

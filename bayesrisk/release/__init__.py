"""Releases: the tables that leave the custodian, and how they were protected."""

from bayesrisk.release.likelihoods import (
    RELEASE_FILE,
    Likelihood,
    NoiseSpec,
    RoundingSpec,
    SimulationOnly,
    SuppressedCounts,
    TrueCounts,
    rounding_probability,
)
from bayesrisk.release.release import Release, ReleaseIndex, place_document, release_document
from bayesrisk.release.spec import MechanismSpec

__all__ = [
    "RELEASE_FILE",
    "Likelihood",
    "MechanismSpec",
    "NoiseSpec",
    "Release",
    "ReleaseIndex",
    "RoundingSpec",
    "SimulationOnly",
    "SuppressedCounts",
    "TrueCounts",
    "place_document",
    "release_document",
    "rounding_probability",
]

"""What crosses from the custodian to everybody else: the tables and how they were protected."""

from bayesrisk.release._folder import RELEASE_FILE
from bayesrisk.release.by_place import ReleaseIndex, place_document, release_document
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

"""What crosses from the custodian to everybody else: the tables and how they were protected."""

from bayesrisk.release._folder import RELEASE_FILE
from bayesrisk.release.release import MechanismSpec, NoiseSpec, Release, rounding_probability

__all__ = ["RELEASE_FILE", "MechanismSpec", "NoiseSpec", "Release", "rounding_probability"]

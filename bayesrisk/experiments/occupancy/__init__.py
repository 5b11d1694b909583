"""Occupancy violations: the study of protections, and the attack on published statistics."""

from bayesrisk.experiments.occupancy.attack import OccupancyAttackSummary, run_occupancy_attack
from bayesrisk.experiments.occupancy.config import OccupancyConfig
from bayesrisk.experiments.occupancy.pooled import OccupancyStudy
from bayesrisk.experiments.occupancy.report import write_occupancy_figures
from bayesrisk.experiments.occupancy.run import run_occupancy

__all__ = [
    "OccupancyAttackSummary",
    "OccupancyConfig",
    "OccupancyStudy",
    "run_occupancy",
    "run_occupancy_attack",
    "write_occupancy_figures",
]

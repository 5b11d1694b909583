"""Occupancy violations: the study of protections, and the attack on published statistics."""

from bayesrisk.experiments.occupancy.attack import OccupancyAttackStudy, OccupancyAttackSummary
from bayesrisk.experiments.occupancy.config import OccupancyConfig
from bayesrisk.experiments.occupancy.pooled import OccupancyResults
from bayesrisk.experiments.occupancy.report import write_occupancy_figures, write_occupancy_report
from bayesrisk.experiments.occupancy.run import OccupancyStudy, OccupancySummary

__all__ = [
    "OccupancyAttackStudy",
    "OccupancyAttackSummary",
    "OccupancyConfig",
    "OccupancyResults",
    "OccupancyStudy",
    "OccupancySummary",
    "write_occupancy_figures",
    "write_occupancy_report",
]

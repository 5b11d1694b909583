"""Occupancy violations: the study of protections, and the attack on published statistics."""

from bayesrisk.experiments.occupancy.attack import (
    OccupancyAttackStudy,
    OccupancyAttackSummary,
    OccupancyStudy,
    OccupancySummary,
)
from bayesrisk.experiments.occupancy.report import write_occupancy_figures, write_occupancy_report
from bayesrisk.experiments.occupancy.study import OccupancyConfig, OccupancyResults

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

"""Households above the occupancy limit of subsidised housing, from census and HUD statistics."""

from bayesrisk.reconstruction.occupancy.detection import (
    OCCUPANCY_STATUS,
    OccupancyAttack,
    OccupancyDetection,
    OccupancyVariability,
    detect_occupancy,
    occupancy_variability,
)
from bayesrisk.reconstruction.occupancy.solutions import (
    OccupancyReconstruction,
    reconstruct_occupancy,
)
from bayesrisk.reconstruction.occupancy.statistics import (
    HouseholdLaw,
    OccupancyStatistics,
    occupancy_statistics,
)

__all__ = [
    "OCCUPANCY_STATUS",
    "HouseholdLaw",
    "OccupancyAttack",
    "OccupancyDetection",
    "OccupancyReconstruction",
    "OccupancyStatistics",
    "OccupancyVariability",
    "detect_occupancy",
    "occupancy_statistics",
    "occupancy_variability",
    "reconstruct_occupancy",
]

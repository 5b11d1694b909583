"""Households above the occupancy limit of subsidised housing, from census and HUD statistics."""

from bayesrisk.reconstruction.occupancy.detection import (
    OCCUPANCY_STATUS,
    OccupancyAttack,
    OccupancyDetection,
    detect_occupancy,
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
from bayesrisk.reconstruction.occupancy.variability import (
    OccupancyVariability,
    occupancy_variability,
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

"""Public names of the experiments."""

from .audit import AuditStudy as AuditStudy, Protection as Protection, read_audit as read_audit
from .measurement_counts import (
    MeasurementCountsStudy as MeasurementCountsStudy,
    measurement_posterior as measurement_posterior,
)
from .measurement_risk import MeasurementsStudy as MeasurementsStudy
from .occupancy_study import OccupancyStudy as OccupancyStudy
from .runs.engine import run as run
from .sweep import read_results as read_results, write_report as write_report
from .sweep_document import load_config as load_config

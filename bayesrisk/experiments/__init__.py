"""Long runs: studies that are computed in shards, resumed and reported.

May import everything but ``cli``; writes only inside the folder it is given.
"""

from bayesrisk.experiments.audit import AuditStudy, Protection, read_audit
from bayesrisk.experiments.measurement_counts import MeasurementCountsStudy, measurement_posterior
from bayesrisk.experiments.measurement_risk import MeasurementsStudy
from bayesrisk.experiments.occupancy_study import OccupancyStudy
from bayesrisk.experiments.runs.engine import run
from bayesrisk.experiments.sweep.document import load_config
from bayesrisk.experiments.sweep.report import write_report
from bayesrisk.experiments.sweep.study import read_results

__all__ = [
    "AuditStudy",
    "MeasurementCountsStudy",
    "MeasurementsStudy",
    "OccupancyStudy",
    "Protection",
    "load_config",
    "measurement_posterior",
    "read_audit",
    "read_results",
    "run",
    "write_report",
]

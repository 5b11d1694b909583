"""Long runs: studies that are computed in shards, resumed and reported.

May import everything but ``cli``; writes only inside the folder it is given.
"""

from bayesrisk.experiments.audit import (
    AuditStudy,
    Protection,
    ProtectionGoal,
    SimulatedPopulation,
    parse_protection,
    read_audit,
)
from bayesrisk.experiments.by_place import (
    NationStudy,
    ReleaseStudy,
    TabulationStudy,
    split_by_place,
)
from bayesrisk.experiments.claims import ClaimsStudy
from bayesrisk.experiments.measurement_counts import MeasurementCountsStudy, measurement_posterior
from bayesrisk.experiments.measurement_risk import MeasurementsStudy
from bayesrisk.experiments.occupancy_attack import OccupancyAttackStudy
from bayesrisk.experiments.occupancy_report import write_occupancy_figures, write_occupancy_report
from bayesrisk.experiments.occupancy_study import (
    OccupancyConfig,
    OccupancyResults,
    OccupancyStudy,
)
from bayesrisk.experiments.reconstruction import (
    ReconstructionOutput,
    ReconstructionStudy,
    read_reconstruction,
)
from bayesrisk.experiments.reidentification import ReidentificationReport, write_reidentification
from bayesrisk.experiments.runs.engine import Outcome, RunSummary, Study, run
from bayesrisk.experiments.sweep.document import load_config, parse_config
from bayesrisk.experiments.sweep.report import write_report
from bayesrisk.experiments.sweep.study import SweepStudy, read_results

__all__ = [
    "AuditStudy",
    "ClaimsStudy",
    "MeasurementCountsStudy",
    "MeasurementsStudy",
    "NationStudy",
    "OccupancyAttackStudy",
    "OccupancyConfig",
    "OccupancyResults",
    "OccupancyStudy",
    "Outcome",
    "Protection",
    "ProtectionGoal",
    "ReconstructionOutput",
    "ReconstructionStudy",
    "ReidentificationReport",
    "ReleaseStudy",
    "RunSummary",
    "SimulatedPopulation",
    "Study",
    "SweepStudy",
    "TabulationStudy",
    "load_config",
    "measurement_posterior",
    "parse_config",
    "parse_protection",
    "read_audit",
    "read_reconstruction",
    "read_results",
    "run",
    "split_by_place",
    "write_occupancy_figures",
    "write_occupancy_report",
    "write_reidentification",
    "write_report",
]

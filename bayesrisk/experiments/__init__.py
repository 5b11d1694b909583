"""Long runs: studies that are computed in shards, resumed and reported.

May import everything but ``cli``; writes only inside the folder it is given.
"""

from bayesrisk.experiments.audit import (
    AuditConfig,
    AuditStudy,
    AuditSummary,
    Protection,
    ProtectionGoal,
    SimulatedPopulation,
    parse_protection,
    read_audit,
)
from bayesrisk.experiments.by_place.parts import split_by_place
from bayesrisk.experiments.by_place.release import (
    NationConfig,
    NationStudy,
    NationSummary,
    ReleaseConfig,
    ReleaseStudy,
    ReleaseSummary,
    TabulationConfig,
    TabulationStudy,
    TabulationSummary,
)
from bayesrisk.experiments.claims import ClaimsConfig, ClaimsStudy
from bayesrisk.experiments.linkage.report import ReidentificationReport, write_reidentification
from bayesrisk.experiments.measurements.counts import (
    MeasurementCountsConfig,
    MeasurementCountsStudy,
    MeasurementCountsSummary,
    MeasurementsConfig,
)
from bayesrisk.experiments.measurements.risk import MeasurementsStudy, MeasurementsSummary
from bayesrisk.experiments.measurements.spine import measurement_posterior
from bayesrisk.experiments.occupancy import (
    OccupancyAttackStudy,
    OccupancyAttackSummary,
    OccupancyConfig,
    OccupancyResults,
    OccupancyStudy,
    OccupancySummary,
    write_occupancy_figures,
    write_occupancy_report,
)
from bayesrisk.experiments.reconstruction import (
    ReconstructionConfig,
    ReconstructionOutput,
    ReconstructionStudy,
    ReconstructionSummary,
    read_reconstruction,
)
from bayesrisk.experiments.runs.engine import Outcome, RunSummary, Study, run
from bayesrisk.experiments.sweep.document import load_config, parse_config
from bayesrisk.experiments.sweep.report import write_report
from bayesrisk.experiments.sweep.study import SweepStudy, read_results

__all__ = [
    "AuditConfig",
    "AuditStudy",
    "AuditSummary",
    "ClaimsConfig",
    "ClaimsStudy",
    "MeasurementCountsConfig",
    "MeasurementCountsStudy",
    "MeasurementCountsSummary",
    "MeasurementsConfig",
    "MeasurementsStudy",
    "MeasurementsSummary",
    "NationConfig",
    "NationStudy",
    "NationSummary",
    "OccupancyAttackStudy",
    "OccupancyAttackSummary",
    "OccupancyConfig",
    "OccupancyResults",
    "OccupancyStudy",
    "OccupancySummary",
    "Outcome",
    "Protection",
    "ProtectionGoal",
    "ReconstructionConfig",
    "ReconstructionOutput",
    "ReconstructionStudy",
    "ReconstructionSummary",
    "ReidentificationReport",
    "ReleaseConfig",
    "ReleaseStudy",
    "ReleaseSummary",
    "RunSummary",
    "SimulatedPopulation",
    "Study",
    "SweepStudy",
    "TabulationConfig",
    "TabulationStudy",
    "TabulationSummary",
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

"""Long runs: sweeps and reconstructions, computed in shards, resumed and reported.

May import everything but ``cli``; writes only inside the folder it is given.
"""

from bayesrisk.experiments.claims import ClaimsConfig, ClaimsSummary, run_claims
from bayesrisk.experiments.linkage.report import write_reidentification
from bayesrisk.experiments.measurements import NoisyMeasurementRisk, noisy_measurement_risk
from bayesrisk.experiments.occupancy import (
    OccupancyAttackSummary,
    OccupancyConfig,
    OccupancyStudy,
    run_occupancy,
    run_occupancy_attack,
    write_occupancy_figures,
)
from bayesrisk.experiments.reconstruction.folder import (
    ReconstructionConfig,
    ReconstructionOutput,
    read_reconstruction,
)
from bayesrisk.experiments.reconstruction.run import ReconstructionSummary, run_reconstruction
from bayesrisk.experiments.sweep.config import SweepConfig
from bayesrisk.experiments.sweep.parsing import load_config, parse_config
from bayesrisk.experiments.sweep.report import write_report
from bayesrisk.experiments.sweep.run import SweepSummary, read_results, run_sweep

__all__ = [
    "ClaimsConfig",
    "ClaimsSummary",
    "NoisyMeasurementRisk",
    "OccupancyAttackSummary",
    "OccupancyConfig",
    "OccupancyStudy",
    "ReconstructionConfig",
    "ReconstructionOutput",
    "ReconstructionSummary",
    "SweepConfig",
    "SweepSummary",
    "load_config",
    "noisy_measurement_risk",
    "parse_config",
    "read_reconstruction",
    "read_results",
    "run_claims",
    "run_occupancy",
    "run_occupancy_attack",
    "run_reconstruction",
    "run_sweep",
    "write_occupancy_figures",
    "write_reidentification",
    "write_report",
]

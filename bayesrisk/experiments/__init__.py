"""Long runs: sweeps and reconstructions, computed in shards, resumed and reported.

May import everything but ``cli``; writes only inside the folder it is given.
"""

from bayesrisk.experiments.claims_run import ClaimsConfig, ClaimsSummary, run_claims
from bayesrisk.experiments.config import SweepConfig
from bayesrisk.experiments.occupancy import (
    OccupancyAttackSummary,
    OccupancyConfig,
    OccupancyStudy,
    run_occupancy,
    run_occupancy_attack,
    write_occupancy_figures,
)
from bayesrisk.experiments.parsing import load_config, parse_config
from bayesrisk.experiments.reconstruction_folder import (
    ReconstructionConfig,
    ReconstructionOutput,
    read_reconstruction,
)
from bayesrisk.experiments.reconstruction_run import ReconstructionSummary, run_reconstruction
from bayesrisk.experiments.reidentification_report import write_reidentification
from bayesrisk.experiments.report import write_report
from bayesrisk.experiments.sweep import SweepSummary, read_results, run_sweep

__all__ = [
    "ClaimsConfig",
    "ClaimsSummary",
    "OccupancyAttackSummary",
    "OccupancyConfig",
    "OccupancyStudy",
    "ReconstructionConfig",
    "ReconstructionOutput",
    "ReconstructionSummary",
    "SweepConfig",
    "SweepSummary",
    "load_config",
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

"""Sweeps: many settings, computed in shards, resumed and reported.

May import everything but ``cli``; writes only inside the folder it is given.
"""

from bayesrisk.experiments.claims_run import ClaimsConfig, ClaimsSummary, run_claims
from bayesrisk.experiments.config import SweepConfig
from bayesrisk.experiments.parsing import load_config, parse_config
from bayesrisk.experiments.report import write_report
from bayesrisk.experiments.sweep import SweepSummary, read_results, run_sweep

__all__ = [
    "ClaimsConfig",
    "ClaimsSummary",
    "SweepConfig",
    "SweepSummary",
    "load_config",
    "parse_config",
    "read_results",
    "run_claims",
    "run_sweep",
    "write_report",
]

"""What the auditor computes: the adversary's answers averaged and judged with the truth known.

May import everything to its left (laws, accounting, inference); nothing there may import it.
"""

from bayesrisk.risk.block import (
    compose_risk,
    correct_decision_probability,
    marginal_count_posterior,
    marginal_posterior,
    marginal_risk,
)
from bayesrisk.risk.multilevel import multilevel_marginal_posterior, multilevel_marginal_risk
from bayesrisk.risk.result import BlockRisk, block_risk
from bayesrisk.risk.scenarios import SCENARIOS, Scenario, scenario

__all__ = [
    "SCENARIOS",
    "BlockRisk",
    "Scenario",
    "block_risk",
    "compose_risk",
    "correct_decision_probability",
    "marginal_count_posterior",
    "marginal_posterior",
    "marginal_risk",
    "multilevel_marginal_posterior",
    "multilevel_marginal_risk",
    "scenario",
]

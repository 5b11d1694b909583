"""What the auditor computes: the adversary's answers averaged and judged with the truth known.

May import everything to its left (laws, accounting, inference); nothing there may import it.
"""

from bayesrisk.risk.count.accuracy import DecisionAccuracy, decision_accuracy
from bayesrisk.risk.count.averages import (
    compose_risk,
    correct_decision_probability,
    marginal_count_posterior,
    marginal_posterior,
    marginal_risk,
)
from bayesrisk.risk.count.before_postprocessing import (
    unprocessed_marginal_posterior,
    unprocessed_marginal_risk,
)
from bayesrisk.risk.count.block_risk import BlockRisk, block_risk
from bayesrisk.risk.count.postprocessing import (
    PostprocessingComparison,
    compare_postprocessing,
    postprocessed_marginal_posterior,
    postprocessed_marginal_risk,
)
from bayesrisk.risk.count.scenarios import SCENARIOS, Scenario, scenario
from bayesrisk.risk.count.several_levels import (
    multilevel_marginal_posterior,
    multilevel_marginal_risk,
)
from bayesrisk.risk.linkage.agreement import Agreement, agreement
from bayesrisk.risk.linkage.majority import MajorityInference, majority_inference
from bayesrisk.risk.linkage.race_ethnicity import race_ethnicity_counts
from bayesrisk.risk.linkage.reidentification import Reidentification, reidentification
from bayesrisk.risk.linkage.variability_reports import uniques_by_block_size, variability_quantiles
from bayesrisk.risk.linkage.without_record import LeaveOneOut, leave_one_out
from bayesrisk.risk.mechanism.average import SimulatedAverage, simulated_marginal_posterior
from bayesrisk.risk.mechanism.comparison import (
    PostprocessingEffect,
    compare_mechanisms,
    postprocessing_effect,
)
from bayesrisk.risk.mechanism.posterior import MechanismRisk, mechanism_risk
from bayesrisk.risk.mechanism.question import MechanismOptions, MechanismQuestion
from bayesrisk.risk.mechanism.utility import release_utility
from bayesrisk.risk.occupancy.blocks import (
    OccupancyBlockRisk,
    occupancy_block_risk,
    occupancy_statements,
)
from bayesrisk.risk.occupancy.linkage import (
    MATCH_KEYS,
    LinkageCurve,
    occupancy_linkage,
    occupancy_ranking,
    sampling_ranking,
)
from bayesrisk.risk.statements.claim_reports import claim_examples, records_identified
from bayesrisk.risk.statements.claims import (
    certainty_precision,
    claim_priors,
    claim_statements,
    count_claims,
)
from bayesrisk.risk.statements.people import statements_about_people
from bayesrisk.risk.statements.statements import STATEMENT_COLUMNS, reconstruction_statements
from bayesrisk.risk.statements.summary import statement_summary
from bayesrisk.risk.two_levels.accuracy import hierarchical_decision_accuracy
from bayesrisk.risk.two_levels.averages import (
    HierarchicalRisk,
    hierarchical_correct_decision_probability,
    hierarchical_marginal_posterior,
)
from bayesrisk.risk.two_levels.gain import HierarchicalGain, hierarchical_gain

__all__ = [
    "MATCH_KEYS",
    "SCENARIOS",
    "STATEMENT_COLUMNS",
    "Agreement",
    "BlockRisk",
    "DecisionAccuracy",
    "HierarchicalGain",
    "HierarchicalRisk",
    "LeaveOneOut",
    "LinkageCurve",
    "MajorityInference",
    "MechanismOptions",
    "MechanismQuestion",
    "MechanismRisk",
    "OccupancyBlockRisk",
    "PostprocessingComparison",
    "PostprocessingEffect",
    "Reidentification",
    "Scenario",
    "SimulatedAverage",
    "agreement",
    "block_risk",
    "certainty_precision",
    "claim_examples",
    "claim_priors",
    "claim_statements",
    "compare_mechanisms",
    "compare_postprocessing",
    "compose_risk",
    "correct_decision_probability",
    "count_claims",
    "decision_accuracy",
    "hierarchical_correct_decision_probability",
    "hierarchical_decision_accuracy",
    "hierarchical_gain",
    "hierarchical_marginal_posterior",
    "leave_one_out",
    "majority_inference",
    "marginal_count_posterior",
    "marginal_posterior",
    "marginal_risk",
    "mechanism_risk",
    "multilevel_marginal_posterior",
    "multilevel_marginal_risk",
    "occupancy_block_risk",
    "occupancy_linkage",
    "occupancy_ranking",
    "occupancy_statements",
    "postprocessed_marginal_posterior",
    "postprocessed_marginal_risk",
    "postprocessing_effect",
    "race_ethnicity_counts",
    "reconstruction_statements",
    "records_identified",
    "reidentification",
    "release_utility",
    "sampling_ranking",
    "scenario",
    "simulated_marginal_posterior",
    "statement_summary",
    "statements_about_people",
    "uniques_by_block_size",
    "unprocessed_marginal_posterior",
    "unprocessed_marginal_risk",
    "variability_quantiles",
]

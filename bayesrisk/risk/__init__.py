"""What the auditor computes: the adversary's answers averaged and judged with the truth known.

May import everything to its left (laws, accounting, inference); nothing there may import it.
"""

from bayesrisk.risk.audit import (
    Adversary,
    AuditedPopulation,
    AuditQuestion,
    audit_calibration,
    audit_certain,
    audit_quantiles,
    audit_summary,
    audit_targets,
)
from bayesrisk.risk.count.accuracy import DecisionAccuracy, decision_accuracy
from bayesrisk.risk.count.averages import (
    compose_risk,
    correct_decision_probability,
    marginal_count_posterior,
    marginal_posterior,
    marginal_risk,
)
from bayesrisk.risk.count.blocks import BlockRisk, block_risk
from bayesrisk.risk.count.distribution import RiskDistribution, risk_distribution
from bayesrisk.risk.count.epsilon import (
    attainable_epsilon,
    decision_epsilon,
    implied_epsilon,
)
from bayesrisk.risk.count.limits import rho_for_risk
from bayesrisk.risk.count.misspecified import MisspecifiedRisk, misspecified_risk
from bayesrisk.risk.count.postprocessing import (
    PostprocessingComparison,
    compare_postprocessing,
    postprocessed_marginal_posterior,
)
from bayesrisk.risk.count.scenarios import SCENARIOS, Scenario
from bayesrisk.risk.count.several_levels import (
    multilevel_decision_accuracy,
    multilevel_marginal_posterior,
)
from bayesrisk.risk.count.unprocessed import before_postprocessing
from bayesrisk.risk.linkage.agreement import Agreement, compare_with_truth
from bayesrisk.risk.linkage.majority import MajorityInference, majority_inference
from bayesrisk.risk.linkage.race_ethnicity import race_ethnicity_counts
from bayesrisk.risk.linkage.reidentification import Reidentification, reidentify
from bayesrisk.risk.linkage.variability_reports import uniques_by_block_size, variability_quantiles
from bayesrisk.risk.linkage.without_record import InferenceWithoutRecord, inference_without_record
from bayesrisk.risk.mechanism.average import SimulatedAverage, simulated_marginal_posterior
from bayesrisk.risk.mechanism.comparison import (
    PostprocessingEffect,
    compare_mechanisms,
    postprocessing_effect,
)
from bayesrisk.risk.mechanism.many import mechanism_risk_of_many
from bayesrisk.risk.mechanism.posterior import MechanismRisk, mechanism_risk
from bayesrisk.risk.mechanism.question import MechanismOptions, MechanismQuestion
from bayesrisk.risk.mechanism.utility import release_utility
from bayesrisk.risk.membership.tradeoff import (
    TradeOffCurve,
    rho_for_advantage,
    simulated_tradeoff,
    tradeoff_curve,
)
from bayesrisk.risk.microdata.rare import FirstLook, first_look
from bayesrisk.risk.microdata.repeated import RepeatedMicrodata, repeated_microdata
from bayesrisk.risk.occupancy.blocks import OccupancyBlockRisk, occupancy_block_risk
from bayesrisk.risk.occupancy.linkage import (
    MATCH_KEYS,
    LinkageCurve,
    occupancy_linkage,
    occupancy_ranking,
    sampling_ranking,
)
from bayesrisk.risk.statements.claim_reports import claim_examples, records_identified
from bayesrisk.risk.statements.claims import (
    claim_precision,
    claim_priors,
    count_claims,
)
from bayesrisk.risk.statements.people import statements_about_people
from bayesrisk.risk.statements.residual import residual_risk
from bayesrisk.risk.statements.statements import Statements
from bayesrisk.risk.two_levels.averages import HierarchicalRisk
from bayesrisk.risk.two_levels.gain import HierarchicalGain
from bayesrisk.risk.two_levels.question import TwoLevels

__all__ = [
    "MATCH_KEYS",
    "SCENARIOS",
    "Adversary",
    "Agreement",
    "AuditQuestion",
    "AuditedPopulation",
    "BlockRisk",
    "DecisionAccuracy",
    "FirstLook",
    "HierarchicalGain",
    "HierarchicalRisk",
    "InferenceWithoutRecord",
    "LinkageCurve",
    "MajorityInference",
    "MechanismOptions",
    "MechanismQuestion",
    "MechanismRisk",
    "MisspecifiedRisk",
    "OccupancyBlockRisk",
    "PostprocessingComparison",
    "PostprocessingEffect",
    "Reidentification",
    "RepeatedMicrodata",
    "RiskDistribution",
    "Scenario",
    "SimulatedAverage",
    "Statements",
    "TradeOffCurve",
    "TwoLevels",
    "attainable_epsilon",
    "audit_calibration",
    "audit_certain",
    "audit_quantiles",
    "audit_summary",
    "audit_targets",
    "before_postprocessing",
    "block_risk",
    "claim_examples",
    "claim_precision",
    "claim_priors",
    "compare_mechanisms",
    "compare_postprocessing",
    "compare_with_truth",
    "compose_risk",
    "correct_decision_probability",
    "count_claims",
    "decision_accuracy",
    "decision_epsilon",
    "first_look",
    "implied_epsilon",
    "inference_without_record",
    "majority_inference",
    "marginal_count_posterior",
    "marginal_posterior",
    "marginal_risk",
    "mechanism_risk",
    "mechanism_risk_of_many",
    "misspecified_risk",
    "multilevel_decision_accuracy",
    "multilevel_marginal_posterior",
    "occupancy_block_risk",
    "occupancy_linkage",
    "occupancy_ranking",
    "postprocessed_marginal_posterior",
    "postprocessing_effect",
    "race_ethnicity_counts",
    "records_identified",
    "reidentify",
    "release_utility",
    "repeated_microdata",
    "residual_risk",
    "rho_for_advantage",
    "rho_for_risk",
    "risk_distribution",
    "sampling_ranking",
    "simulated_marginal_posterior",
    "simulated_tradeoff",
    "statements_about_people",
    "tradeoff_curve",
    "uniques_by_block_size",
    "variability_quantiles",
]

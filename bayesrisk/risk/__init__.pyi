"""Public names of risk: the auditor."""

from .audit import (
    Adversary as Adversary,
    AuditedPopulation as AuditedPopulation,
    AuditQuestion as AuditQuestion,
    audit_calibration as audit_calibration,
    audit_checks as audit_checks,
    audit_measures as audit_measures,
    audit_targets as audit_targets,
    compare as compare,
    statements_about_members as statements_about_members,
)
from .count.averages import (
    compose_risk as compose_risk,
    marginal_count_posterior as marginal_count_posterior,
)
from .count.budgets import (
    RiskCurve as RiskCurve,
    attainable_epsilon as attainable_epsilon,
    decision_epsilon as decision_epsilon,
    implied_epsilon as implied_epsilon,
    rho_for_risk as rho_for_risk,
    risk_curve as risk_curve,
)
from .count.distribution import risk_distribution as risk_distribution
from .count.misspecified import misspecified_risk as misspecified_risk
from .count.postprocessing import (
    PostprocessingRisk as PostprocessingRisk,
    compare_postprocessing as compare_postprocessing,
)
from .count.question import (
    CountRisk as CountRisk,
    block_risk as block_risk,
    correct_decision_probability as correct_decision_probability,
    decision_accuracy as decision_accuracy,
    marginal_posterior as marginal_posterior,
    marginal_risk as marginal_risk,
)
from .count.several_levels import (
    multilevel_decision_accuracy as multilevel_decision_accuracy,
    multilevel_marginal_posterior as multilevel_marginal_posterior,
)
from .intervals import stratified_rates as stratified_rates
from .linkage.agreement import (
    compare_with_truth as compare_with_truth,
    inference_without_record as inference_without_record,
)
from .linkage.majority import (
    majority_inference as majority_inference,
    race_ethnicity_counts as race_ethnicity_counts,
)
from .linkage.reidentification import reidentify as reidentify
from .linkage.variability import variability_quantiles as variability_quantiles
from .mechanism.hypotheses import (
    MechanismOptions as MechanismOptions,
    MechanismQuestion as MechanismQuestion,
)
from .mechanism.many import (
    compare_mechanisms as compare_mechanisms,
    mechanism_risk_of_many as mechanism_risk_of_many,
    postprocessing_effect as postprocessing_effect,
)
from .mechanism.posterior import (
    mechanism_risk as mechanism_risk,
    simulated_marginal_posterior as simulated_marginal_posterior,
)
from .membership import (
    rho_for_advantage as rho_for_advantage,
    simulated_tradeoff as simulated_tradeoff,
    tradeoff_curve as tradeoff_curve,
)
from .microdata import first_look as first_look, repeated_microdata as repeated_microdata
from .planning.ladders import Ladder as Ladder, PlanLimits as PlanLimits
from .planning.release_plan import ReleasePlan as ReleasePlan, plan as plan
from .statements.claims import (
    claim_precision as claim_precision,
    claim_priors as claim_priors,
    count_claims as count_claims,
    records_identified as records_identified,
)
from .statements.residual import residual_risk as residual_risk
from .statements.results import statements_about_people as statements_about_people
from .statements.statements import Statements as Statements
from .two_levels.question import TwoLevels as TwoLevels

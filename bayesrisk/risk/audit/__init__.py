"""Audits: beliefs before a release, without the own record, and after, on one scale."""

from bayesrisk.risk.audit.adversaries import ADVERSARIES, Adversary
from bayesrisk.risk.audit.attacks import METHODS, available_methods
from bayesrisk.risk.audit.checks import audit_checks, release_proofs
from bayesrisk.risk.audit.comparisons import compare
from bayesrisk.risk.audit.measures import audit_calibration, audit_measures, audit_targets, costs
from bayesrisk.risk.audit.members import statements_about_members
from bayesrisk.risk.audit.population import AuditedPopulation, AuditQuestion
from bayesrisk.risk.audit.reading import readings
from bayesrisk.risk.audit.release_law import release_differences
from bayesrisk.risk.audit.spot_checks import spot_comparisons

__all__ = [
    "ADVERSARIES",
    "METHODS",
    "Adversary",
    "AuditQuestion",
    "AuditedPopulation",
    "audit_calibration",
    "audit_checks",
    "audit_measures",
    "audit_targets",
    "available_methods",
    "compare",
    "costs",
    "readings",
    "release_differences",
    "release_proofs",
    "spot_comparisons",
    "statements_about_members",
]

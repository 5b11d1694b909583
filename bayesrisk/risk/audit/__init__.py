"""Every attack under every protection on one scale: prior, without the record, and posterior."""

from bayesrisk.risk.audit.adversaries import ADVERSARIES, Adversary, Reading, readings
from bayesrisk.risk.audit.checks import CHECKS, audit_checks
from bayesrisk.risk.audit.population import METHODS, AuditedPopulation, AuditQuestion
from bayesrisk.risk.audit.summary import (
    audit_calibration,
    audit_certain,
    audit_quantiles,
    audit_summary,
    audit_targets,
)

__all__ = [
    "ADVERSARIES",
    "CHECKS",
    "METHODS",
    "Adversary",
    "AuditQuestion",
    "AuditedPopulation",
    "Reading",
    "audit_calibration",
    "audit_certain",
    "audit_checks",
    "audit_quantiles",
    "audit_summary",
    "audit_targets",
    "readings",
]

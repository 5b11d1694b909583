"""Every attack under every protection on one scale: prior, without the record, and posterior."""

from bayesrisk.risk.audit.adversaries import ADVERSARIES, Adversary
from bayesrisk.risk.audit.certain import audit_certain
from bayesrisk.risk.audit.checks import CHECKS, audit_checks
from bayesrisk.risk.audit.methods import METHODS
from bayesrisk.risk.audit.population import AuditedPopulation
from bayesrisk.risk.audit.quantiles import audit_quantiles
from bayesrisk.risk.audit.question import AuditQuestion
from bayesrisk.risk.audit.readings import Reading, readings
from bayesrisk.risk.audit.summary import audit_calibration, audit_summary, audit_targets

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

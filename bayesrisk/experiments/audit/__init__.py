"""Audits: protections, adversaries and attacks on one scale, in shards, with a report."""

from bayesrisk.experiments.audit.choosing import ProtectionGoal
from bayesrisk.experiments.audit.config import AuditConfig
from bayesrisk.experiments.audit.folder import AuditSummary, read_audit
from bayesrisk.experiments.audit.populations import SimulatedPopulation
from bayesrisk.experiments.audit.protections import Protection, parse_protection
from bayesrisk.experiments.audit.study import AuditStudy

__all__ = [
    "AuditConfig",
    "AuditStudy",
    "AuditSummary",
    "Protection",
    "ProtectionGoal",
    "SimulatedPopulation",
    "parse_protection",
    "read_audit",
]

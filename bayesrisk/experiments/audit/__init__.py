"""Audits: protections, adversaries and attacks on one scale, in shards, with a report."""

from bayesrisk.experiments.audit.choosing import ProtectionGoal
from bayesrisk.experiments.audit.populations import Protection, SimulatedPopulation
from bayesrisk.experiments.audit.study import AuditStudy, audited_protection, read_audit

__all__ = [
    "AuditStudy",
    "Protection",
    "ProtectionGoal",
    "SimulatedPopulation",
    "audited_protection",
    "read_audit",
]

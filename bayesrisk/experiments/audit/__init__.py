"""Audits that compare protections by the gains of adversaries, with a report."""

from typing import TYPE_CHECKING

from bayesrisk._base.old_names import moved as _moved
from bayesrisk.experiments.audit.choosing import ProtectionGoal
from bayesrisk.experiments.audit.populations import Protection
from bayesrisk.experiments.audit.results import audited_protection, read_audit
from bayesrisk.experiments.audit.study import AuditStudy

__all__ = [
    "AuditStudy",
    "Protection",
    "ProtectionGoal",
    "audited_protection",
    "read_audit",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return _moved(__name__, name)

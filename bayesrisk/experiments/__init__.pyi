"""Public names of the experiments."""

from .audit import AuditStudy as AuditStudy, Protection as Protection, read_audit as read_audit
from .runs.engine import run as run
from .sweep import read_results as read_results
from .sweep_document import load_config as load_config
from .sweep_report import write_report as write_report
from .table_attack import AttackAnswer as AttackAnswer, attack as attack

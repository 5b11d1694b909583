"""What the adversary computes: posteriors and decisions from a release and public metadata.

This zone never sees the truth: it may not import records, mechanisms or ``risk``.
"""

from bayesrisk.inference.decision import bayes_decision, decision_threshold
from bayesrisk.inference.posterior import (
    count_posterior,
    multilevel_posterior,
    multilevel_risk_ratio,
    posterior_probability,
    risk_ratio,
)

__all__ = [
    "bayes_decision",
    "count_posterior",
    "decision_threshold",
    "multilevel_posterior",
    "multilevel_risk_ratio",
    "posterior_probability",
    "risk_ratio",
]

"""Public names of inference: the adversary."""

from .count.posterior import (
    NoisyCount as NoisyCount,
    bayes_decision as bayes_decision,
    count_posterior as count_posterior,
    decision_threshold as decision_threshold,
    multilevel_posterior as multilevel_posterior,
    posterior_probability as posterior_probability,
    risk_ratio as risk_ratio,
)
from .count.postprocessed import (
    PostprocessedCount as PostprocessedCount,
    postprocess as postprocess,
    postprocessed_posterior as postprocessed_posterior,
)
from .microdata.posterior import microdata_posterior as microdata_posterior
from .microdata.prior import KnownRecords as KnownRecords, RecordPrior as RecordPrior
from .microdata.questions import MemberQuestion as MemberQuestion, RecordQuestion as RecordQuestion
from .sampling.chains import diagnose as diagnose, to_arviz as to_arviz
from .sampling.tree import sample_tree as sample_tree
from .simulated import simulated_likelihood as simulated_likelihood
from .tree.plan import LeafPrior as LeafPrior
from .tree.posterior import target_posteriors as target_posteriors, tree_posterior as tree_posterior
from .tree.structure import Tree as Tree
from .two_levels.posterior import hierarchical_posterior as hierarchical_posterior

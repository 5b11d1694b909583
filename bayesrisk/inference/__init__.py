"""What the adversary computes: posteriors and decisions from a release and public metadata.

This zone never sees the truth: it may not import records, mechanisms or ``risk``.
"""

from bayesrisk.inference.count.decision import bayes_decision, decision_threshold
from bayesrisk.inference.count.posterior import (
    count_posterior,
    multilevel_posterior,
    posterior_probability,
    risk_ratio,
)
from bayesrisk.inference.count.postprocessed import (
    postprocess,
    postprocessed_posterior,
)
from bayesrisk.inference.microdata.knowledge import KnownRecords
from bayesrisk.inference.microdata.posterior import microdata_posterior
from bayesrisk.inference.microdata.prior import RecordPrior, fit_concentration
from bayesrisk.inference.microdata.questions import RecordQuestion
from bayesrisk.inference.microdata.result import MicrodataPosterior
from bayesrisk.inference.sampling.arviz_io import Diagnosis, diagnose, to_arviz
from bayesrisk.inference.sampling.chains import Samples
from bayesrisk.inference.sampling.path import sample_path
from bayesrisk.inference.sampling.tree import sample_tree
from bayesrisk.inference.simulated.likelihood import (
    SUPPRESSED,
    SimulatedLikelihood,
    SimulatedPosterior,
    simulated_likelihood,
)
from bayesrisk.inference.tree.leaf_prior import LeafPrior
from bayesrisk.inference.tree.path import PathPosterior, path_posterior
from bayesrisk.inference.tree.posterior import TreePosterior, tree_posterior
from bayesrisk.inference.tree.structure import Tree
from bayesrisk.inference.tree.targets import TargetPosteriors, target_posteriors
from bayesrisk.inference.two_levels.posterior import HierarchicalPosterior, hierarchical_posterior
from bayesrisk.inference.two_levels.sibling_cost import ApproximationCost

__all__ = [
    "SUPPRESSED",
    "ApproximationCost",
    "Diagnosis",
    "HierarchicalPosterior",
    "KnownRecords",
    "LeafPrior",
    "MicrodataPosterior",
    "PathPosterior",
    "RecordPrior",
    "RecordQuestion",
    "Samples",
    "SimulatedLikelihood",
    "SimulatedPosterior",
    "TargetPosteriors",
    "Tree",
    "TreePosterior",
    "bayes_decision",
    "count_posterior",
    "decision_threshold",
    "diagnose",
    "fit_concentration",
    "hierarchical_posterior",
    "microdata_posterior",
    "multilevel_posterior",
    "path_posterior",
    "posterior_probability",
    "postprocess",
    "postprocessed_posterior",
    "risk_ratio",
    "sample_path",
    "sample_tree",
    "simulated_likelihood",
    "target_posteriors",
    "to_arviz",
    "tree_posterior",
]

"""Public names, each once: what ``import bayesrisk`` offers, loaded on first use."""

from . import (
    accounting as accounting,
    answers as answers,
    census as census,
    datasets as datasets,
    distributions as distributions,
    exceptions as exceptions,
    experiments as experiments,
    inference as inference,
    interfaces as interfaces,
    mechanisms as mechanisms,
    plotting as plotting,
    reconstruction as reconstruction,
    risk as risk,
    tables as tables,
)
from ._version import __version__ as __version__
from .accounting import epsilon_to_rho as epsilon_to_rho, rho_to_epsilon as rho_to_epsilon
from .answers import Belief as Belief, Estimate as Estimate
from .census import (
    reconstruct_occupancy as reconstruct_occupancy,
    simulate_population as simulate_population,
)
from .distributions import (
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
    FiniteLaw as FiniteLaw,
    Noise as Noise,
)
from .exceptions import (
    ArgumentError as ArgumentError,
    BayesRiskError as BayesRiskError,
    DataError as DataError,
)
from .experiments import attack as attack, run as run
from .inference import (
    Tree as Tree,
    bayes_decision as bayes_decision,
    count_posterior as count_posterior,
    hierarchical_posterior as hierarchical_posterior,
    posterior_probability as posterior_probability,
    risk_ratio as risk_ratio,
    sample_tree as sample_tree,
    to_arviz as to_arviz,
    tree_posterior as tree_posterior,
)
from .mechanisms import (
    BottomUp as BottomUp,
    Identity as Identity,
    Rounding as Rounding,
    Suppression as Suppression,
    Swapping as Swapping,
    TopDown as TopDown,
    make_mechanism as make_mechanism,
)
from .reconstruction import (
    reconstruct as reconstruct,
    solution_variability as solution_variability,
    verify_claims as verify_claims,
)
from .release import MechanismSpec as MechanismSpec, NoiseSpec as NoiseSpec, Release as Release
from .risk import (
    MechanismQuestion as MechanismQuestion,
    Statements as Statements,
    TwoLevels as TwoLevels,
    block_risk as block_risk,
    compare_mechanisms as compare_mechanisms,
    correct_decision_probability as correct_decision_probability,
    decision_accuracy as decision_accuracy,
    marginal_posterior as marginal_posterior,
    marginal_risk as marginal_risk,
    mechanism_risk as mechanism_risk,
    plan as plan,
    reidentify as reidentify,
    statements_about_people as statements_about_people,
)
from .tables import (
    Microdata as Microdata,
    PublishedTables as PublishedTables,
    Records as Records,
    Schema as Schema,
    TableReading as TableReading,
    Workload as Workload,
    tabulate as tabulate,
)

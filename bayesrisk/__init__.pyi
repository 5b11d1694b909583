"""Public names, each once: what ``import bayesrisk`` offers, loaded on first use."""

from . import (
    accounting as accounting,
    census as census,
    datasets as datasets,
    distributions as distributions,
    experiments as experiments,
    inference as inference,
    mechanisms as mechanisms,
    plotting as plotting,
    reconstruction as reconstruction,
    risk as risk,
    tables as tables,
)
from ._version import __version__ as __version__
from .accounting import rho_to_epsilon as rho_to_epsilon
from .census import (
    reconstruct_occupancy as reconstruct_occupancy,
    simulate_population as simulate_population,
)
from .distributions import (
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
    Noise as Noise,
)
from .exceptions import (
    ArgumentError as ArgumentError,
    BayesRiskError as BayesRiskError,
    DataError as DataError,
)
from .experiments import attack as attack, read_audit as read_audit, run as run
from .inference import (
    Tree as Tree,
    count_posterior as count_posterior,
    diagnose as diagnose,
    hierarchical_posterior as hierarchical_posterior,
    posterior_probability as posterior_probability,
    risk_ratio as risk_ratio,
    to_arviz as to_arviz,
    tree_posterior as tree_posterior,
)
from .mechanisms import (
    Rounding as Rounding,
    Suppression as Suppression,
    Swapping as Swapping,
    make_mechanism as make_mechanism,
)
from .reconstruction import (
    count_bounds as count_bounds,
    find_claims as find_claims,
    reconstruct as reconstruct,
    solution_variability as solution_variability,
    verify_claims as verify_claims,
)
from .release import Release as Release
from .risk import (
    Statements as Statements,
    TwoLevels as TwoLevels,
    block_risk as block_risk,
    correct_decision_probability as correct_decision_probability,
    marginal_posterior as marginal_posterior,
    marginal_risk as marginal_risk,
    mechanism_risk as mechanism_risk,
    rho_for_risk as rho_for_risk,
    risk_curve as risk_curve,
    risk_distribution as risk_distribution,
)
from .tables import (
    PublishedTables as PublishedTables,
    Records as Records,
    Schema as Schema,
    Workload as Workload,
    tabulate as tabulate,
)
from .verbs import audit as audit, plan as plan, release as release

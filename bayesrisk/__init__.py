"""Bayesian disclosure risk of published statistics.

Given what was published, and what an adversary already believed: what does the adversary now
believe about a person, and how much of that is due to that person's own record?

Names are loaded when they are first used, so that importing the package is cheap.
"""

from typing import TYPE_CHECKING, Any

from bayesrisk._version import __version__

if TYPE_CHECKING:
    from bayesrisk import accounting, distributions, experiments, inference, plotting, risk, samples
    from bayesrisk.accounting import (
        census_2020_budget,
        compose_rho,
        discrete_gaussian_delta,
        discrete_gaussian_epsilon,
        epsilon_to_rho,
        exact_number,
        rho_from_sigma2,
        rho_to_delta,
        rho_to_epsilon,
        sigma2_from_rho,
        split_rho,
    )
    from bayesrisk.distributions import (
        CountLaw,
        DiscreteGaussian,
        DiscreteLaplace,
        FiniteLaw,
        SumApproximation,
        TruncatedLaw,
        as_rv_discrete,
        convolve,
        sum_approximation,
        tabulate,
        total_variation,
    )
    from bayesrisk.exceptions import (
        ArgumentError,
        ArgumentTypeError,
        BayesRiskError,
        BayesRiskWarning,
        ConfigError,
        DataError,
        MissingDependencyError,
        OutputError,
        PartFileError,
        ShapeError,
    )
    from bayesrisk.experiments import (
        SweepConfig,
        load_config,
        read_results,
        run_sweep,
        write_report,
    )
    from bayesrisk.inference import (
        bayes_decision,
        count_posterior,
        decision_threshold,
        multilevel_posterior,
        multilevel_risk_ratio,
        posterior_probability,
        risk_ratio,
    )
    from bayesrisk.interfaces import (
        Executor,
        NoiseLaw,
    )
    from bayesrisk.plotting import (
        plot_correct_decision,
        plot_levels,
        plot_marginal_risk,
        plot_released_count,
        save_figure,
    )
    from bayesrisk.risk import (
        SCENARIOS,
        BlockRisk,
        Scenario,
        block_risk,
        compose_risk,
        correct_decision_probability,
        marginal_count_posterior,
        marginal_posterior,
        marginal_risk,
        multilevel_marginal_posterior,
        multilevel_marginal_risk,
        scenario,
    )

_SUBMODULES = {
    "accounting",
    "distributions",
    "experiments",
    "inference",
    "plotting",
    "risk",
    "samples",
}

_HOME = {
    "bayesrisk.accounting": (
        "census_2020_budget",
        "compose_rho",
        "discrete_gaussian_delta",
        "discrete_gaussian_epsilon",
        "epsilon_to_rho",
        "exact_number",
        "rho_from_sigma2",
        "rho_to_delta",
        "rho_to_epsilon",
        "sigma2_from_rho",
        "split_rho",
    ),
    "bayesrisk.distributions": (
        "CountLaw",
        "DiscreteGaussian",
        "DiscreteLaplace",
        "FiniteLaw",
        "SumApproximation",
        "TruncatedLaw",
        "as_rv_discrete",
        "convolve",
        "sum_approximation",
        "tabulate",
        "total_variation",
    ),
    "bayesrisk.exceptions": (
        "ArgumentError",
        "ArgumentTypeError",
        "BayesRiskError",
        "BayesRiskWarning",
        "ConfigError",
        "DataError",
        "MissingDependencyError",
        "OutputError",
        "PartFileError",
        "ShapeError",
    ),
    "bayesrisk.experiments": (
        "SweepConfig",
        "load_config",
        "read_results",
        "run_sweep",
        "write_report",
    ),
    "bayesrisk.inference": (
        "bayes_decision",
        "count_posterior",
        "decision_threshold",
        "multilevel_posterior",
        "multilevel_risk_ratio",
        "posterior_probability",
        "risk_ratio",
    ),
    "bayesrisk.interfaces": (
        "Executor",
        "NoiseLaw",
    ),
    "bayesrisk.plotting": (
        "plot_correct_decision",
        "plot_levels",
        "plot_marginal_risk",
        "plot_released_count",
        "save_figure",
    ),
    "bayesrisk.risk": (
        "SCENARIOS",
        "BlockRisk",
        "Scenario",
        "block_risk",
        "compose_risk",
        "correct_decision_probability",
        "marginal_count_posterior",
        "marginal_posterior",
        "marginal_risk",
        "multilevel_marginal_posterior",
        "multilevel_marginal_risk",
        "scenario",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "SCENARIOS",
    "ArgumentError",
    "ArgumentTypeError",
    "BayesRiskError",
    "BayesRiskWarning",
    "BlockRisk",
    "ConfigError",
    "CountLaw",
    "DataError",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Executor",
    "FiniteLaw",
    "MissingDependencyError",
    "NoiseLaw",
    "OutputError",
    "PartFileError",
    "Scenario",
    "ShapeError",
    "SumApproximation",
    "SweepConfig",
    "TruncatedLaw",
    "__version__",
    "accounting",
    "as_rv_discrete",
    "bayes_decision",
    "block_risk",
    "census_2020_budget",
    "compose_rho",
    "compose_risk",
    "convolve",
    "correct_decision_probability",
    "count_posterior",
    "decision_threshold",
    "discrete_gaussian_delta",
    "discrete_gaussian_epsilon",
    "distributions",
    "epsilon_to_rho",
    "exact_number",
    "experiments",
    "inference",
    "load_config",
    "marginal_count_posterior",
    "marginal_posterior",
    "marginal_risk",
    "multilevel_marginal_posterior",
    "multilevel_marginal_risk",
    "multilevel_posterior",
    "multilevel_risk_ratio",
    "plot_correct_decision",
    "plot_levels",
    "plot_marginal_risk",
    "plot_released_count",
    "plotting",
    "posterior_probability",
    "read_results",
    "rho_from_sigma2",
    "rho_to_delta",
    "rho_to_epsilon",
    "risk",
    "risk_ratio",
    "run_sweep",
    "samples",
    "save_figure",
    "scenario",
    "sigma2_from_rho",
    "split_rho",
    "sum_approximation",
    "tabulate",
    "total_variation",
    "write_report",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"bayesrisk.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'bayesrisk' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

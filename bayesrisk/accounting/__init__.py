"""Privacy-loss accounting.  May import ``distributions``; knows no adversary and no risk."""

from bayesrisk.accounting.budget import census_2020_budget, split_rho
from bayesrisk.accounting.conversion import (
    discrete_gaussian_delta,
    discrete_gaussian_epsilon,
    epsilon_to_rho,
    rho_to_delta,
    rho_to_epsilon,
    sigma2_from_rho,
)

__all__ = [
    "census_2020_budget",
    "discrete_gaussian_delta",
    "discrete_gaussian_epsilon",
    "epsilon_to_rho",
    "rho_to_delta",
    "rho_to_epsilon",
    "sigma2_from_rho",
    "split_rho",
]

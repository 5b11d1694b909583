"""Public names of accounting."""

from .budget import census_2020_budget as census_2020_budget, split_rho as split_rho
from .conversion import (
    discrete_gaussian_delta as discrete_gaussian_delta,
    discrete_gaussian_epsilon as discrete_gaussian_epsilon,
    epsilon_to_rho as epsilon_to_rho,
    rho_to_delta as rho_to_delta,
    rho_to_epsilon as rho_to_epsilon,
    sigma2_from_rho as sigma2_from_rho,
)
from .privacy_loss import PrivacyLoss as PrivacyLoss

"""Noise laws on the integers.  May import ``_validation`` and ``exceptions``; knows no risk."""

from bayesrisk.distributions._base import CountLaw
from bayesrisk.distributions.discrete_gaussian import DiscreteGaussian
from bayesrisk.distributions.discrete_laplace import DiscreteLaplace
from bayesrisk.distributions.finite import FiniteLaw
from bayesrisk.distributions.noise import Noise
from bayesrisk.distributions.scipy_adapter import as_rv_discrete
from bayesrisk.distributions.sums import (
    SumApproximation,
    as_finite,
    convolve,
    sum_approximation,
    total_variation,
)
from bayesrisk.distributions.truncated import TruncatedLaw

__all__ = [
    "CountLaw",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FiniteLaw",
    "Noise",
    "SumApproximation",
    "TruncatedLaw",
    "as_finite",
    "as_rv_discrete",
    "convolve",
    "sum_approximation",
    "total_variation",
]

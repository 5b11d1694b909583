"""Public names of the noise laws."""

from .base import CountLaw as CountLaw
from .discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from .discrete_laplace import DiscreteLaplace as DiscreteLaplace, Noise as Noise
from .sums import (
    FiniteLaw as FiniteLaw,
    as_finite as as_finite,
    convolve as convolve,
    sum_approximation as sum_approximation,
    total_variation as total_variation,
)

"""Public names of the noise laws."""

from .base import CountLaw as CountLaw
from .discrete_gaussian import DiscreteGaussian as DiscreteGaussian
from .discrete_laplace import DiscreteLaplace as DiscreteLaplace
from .discrete_laplace import Noise as Noise
from .sums import FiniteLaw as FiniteLaw
from .sums import as_finite as as_finite
from .sums import convolve as convolve
from .sums import sum_approximation as sum_approximation
from .sums import total_variation as total_variation

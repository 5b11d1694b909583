"""How a count was perturbed: a zCDP budget and the sensitivity that it refers to."""

from dataclasses import dataclass

import numpy as np

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import FloatArray
from bayesrisk._validation import Number
from bayesrisk.distributions.discrete_gaussian import DiscreteGaussian
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError


@dataclass(frozen=True, eq=False, kw_only=True)
class Noise:
    r"""Discrete Gaussian noise of a zCDP budget, as an agency states it.

    .. math:: \sigma^2 = \Delta^2 / (2 \rho)

    Functions that take ``noise=`` take such a budget, or the law itself,
    ``DiscreteGaussian(sigma2=...)``.

    Attributes
    ----------
    rho : array_like
        zCDP budget of the count, > 0; an array has one budget for each level or setting.
    sensitivity : array_like, default 1.0
        L2 sensitivity that the budget refers to, > 0: how far one person or household can move
        the counts that share it.

    Examples
    --------
    >>> noise = Noise(rho=0.0992264)
    >>> round(float(noise.law().sigma2), 4)
    5.039
    """

    rho: Number
    sensitivity: Number = 1.0

    def __post_init__(self) -> None:
        """Check both."""
        check.cell_precision(self.rho, None, self.sensitivity)

    @property
    def precision(self) -> FloatArray:
        """The evidence per unit of squared distance, 1 / (2 sigma2); at most 1e280."""
        return check.cell_precision(self.rho, None, self.sensitivity)

    def law(self) -> DiscreteGaussian:
        """Return the law of the noise, centred on 0.

        Returns
        -------
        DiscreteGaussian
            With ``sigma2 = sensitivity**2 / (2 rho)``.
        """
        return DiscreteGaussian.from_rho(self.rho, self.sensitivity)


def noise_precision(noise: Noise | DiscreteGaussian) -> FloatArray:
    """Return 1 / (2 sigma2) of a noise that is given as a budget or as a law."""
    if isinstance(noise, Noise):
        return noise.precision
    if not isinstance(noise, DiscreteGaussian):
        raise ArgumentTypeError(
            f"noise must be a Noise(rho=...) or a DiscreteGaussian, got {shown(noise)}"
        )
    if np.any(noise.loc != 0):
        raise ArgumentError("noise must be centred on 0, got a law with another loc")
    return check.cell_precision(None, noise.sigma2, 1.0)

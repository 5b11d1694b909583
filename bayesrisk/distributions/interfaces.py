"""What a law of noise must offer to be read by an adversary."""

from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from bayesrisk._validation import FloatAnswer


@runtime_checkable
class NoiseLaw(Protocol):
    """A law of integer noise, as an adversary must know it to read a release.

    ``logpmf`` is all that a posterior given one release needs; averages over releases also need
    the quantiles ``ppf`` and ``isf``, which bound the releases that are summed.
    """

    def logpmf(self, x: ArrayLike) -> FloatAnswer:
        """Return the natural logarithm of the probability of noise ``x``."""

    def ppf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest ``x`` whose cumulative probability is at least ``q``."""

    def isf(self, q: ArrayLike) -> FloatAnswer:
        """Return the smallest ``x`` whose upper-tail probability is at most ``q``."""

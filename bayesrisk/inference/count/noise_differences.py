"""The law of the noise that separates a post-processed count from the truth, exact at any distance.

A block's noise less that of its m siblings, ``eta_1 - eta_m``: by symmetry a sum of m + 1 discrete
Gaussians, or of two with scales s and m s in the approximation of S2: see
``distributions.gaussian_sums`` for both.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk.distributions.gaussian_sums import MAX_TERMS, pair_ripple, sum_ripple

SIBLING_NOISE = ("approximate", "exact")
MAX_SIBLINGS = MAX_TERMS
# A rate at which no count within 2**52 carries evidence above rounding.
_NO_EVIDENCE = 1e-32


@dataclass(frozen=True)
class SumLaws:
    """Distinct laws, and which of them each element has.

    Attributes
    ----------
    index : ndarray of int64
        Law of each element, in the broadcast shape of the arguments.
    rates : ndarray
        h of each law.
    ripples : ndarray
        Their periods, one after the other.
    ends : ndarray of int64
        Where each begins, and the end of the last.
    """

    index: NDArray[np.int64]
    rates: NDArray[np.float64]
    ripples: NDArray[np.float64]
    ends: NDArray[np.int64]

    def ripple(self, law: int) -> NDArray[np.float64]:
        """Return one period."""
        return self.ripples[self.ends[law] : self.ends[law + 1]]


def sum_laws(precision: Any, terms: Any, *, exact: bool, shape: tuple[int, ...]) -> SumLaws:
    """Return the laws of sums of ``terms`` discrete Gaussians of a precision, the distinct ones."""
    h, n = np.broadcast_arrays(precision, terms)
    # Beyond these limits the evidence is nothing, or everything, in double precision.
    h = np.clip(h, _NO_EVIDENCE * n, 1e100)
    pairs = np.stack([h.ravel(), n.ravel().astype(np.float64)], axis=1)
    distinct, index = np.unique(pairs, axis=0, return_inverse=True)
    ripples = [
        sum_ripple(float(p), int(n), name="n_siblings") if exact else pair_ripple(float(p), int(n))
        for p, n in distinct
    ]
    own = index.reshape(h.shape).astype(np.int64)
    return SumLaws(
        index=np.array(np.broadcast_to(own, shape), order="C"),
        rates=distinct[:, 0] / distinct[:, 1],
        ripples=np.concatenate(ripples),
        ends=np.cumsum([0, *(ripple.size for ripple in ripples)]).astype(np.int64),
    )


def exact_wanted(sibling_noise: Any) -> bool:
    """Return whether the siblings' noise is to be convolved; refuse any other word."""
    return check.choice(sibling_noise, "sibling_noise", SIBLING_NOISE) == "exact"

"""The law of the noise that separates a post-processed count from the truth, exact at any distance.

A block's noise less that of its m siblings, ``eta_1 - eta_m``: by symmetry a sum of m + 1 discrete
Gaussians, or of two with scales s and m s in the approximation of S2.  Both have one form; see
``_postprocessed_kernels``.  Tables of probabilities end where a double does, this form nowhere.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.count import postprocessed_kernels as kernels

__all__ = ["MAX_SIBLINGS", "SIBLING_NOISE", "SumLaws", "exact_wanted", "sum_laws"]

SIBLING_NOISE = ("approximate", "exact")
MAX_SIBLINGS = 10**6
# Where the two rates add up to no more than this the wave is flat: by Poisson summation its
# relative height is 2 exp(-pi**2 / 0.25) = 1.4e-17.
_SMOOTH = 0.25
_MAX_TERMS = 2**28  # some seconds
_FLAT: NDArray[np.float64] = np.zeros(1)
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
    waves : ndarray
        Their periods of g, one after the other.
    ends : ndarray of int64
        Where each begins, and the end of the last.
    """

    index: NDArray[np.int64]
    rates: NDArray[np.float64]
    waves: NDArray[np.float64]
    ends: NDArray[np.int64]

    def wave(self, law: int) -> NDArray[np.float64]:
        """Return one period of g."""
        return self.waves[self.ends[law] : self.ends[law + 1]]


def _combine(
    left: NDArray[np.float64],
    left_n: int,
    right: NDArray[np.float64],
    right_n: int,
    precision: float,
) -> NDArray[np.float64]:
    """Return the wave of a sum of two sums, of ``left_n`` and ``right_n`` terms."""
    rate = precision / left_n + precision / right_n
    if left.size == right.size == 1 and rate <= _SMOOTH:
        return _FLAT
    out = np.empty(left_n + right_n)
    kernels.combine(left, left_n, right, right_n, precision, out)
    return out


def _wave(precision: float, terms: int, *, exact: bool) -> NDArray[np.float64]:
    """Return the wave of the sum of ``terms`` variables: of all of them, or of one and the rest."""
    if terms == 1 or not exact:
        return _combine(_FLAT, 1, _FLAT, terms - 1, precision) if terms > 1 else _FLAT
    if 2.0 * precision <= _SMOOTH:
        return _FLAT
    # The last and longest of the convolutions.
    cost = terms * np.sqrt(kernels.REACH * terms / precision)
    if cost > _MAX_TERMS:
        raise ArgumentError(
            f"n_siblings must be small enough for an exact convolution of {_MAX_TERMS} products, "
            f'got {cost:.3g} products; sibling_noise="approximate" has no such limit'
        )
    done, done_n = _FLAT, 0
    power, power_n = _FLAT, 1
    while True:
        if terms & power_n:
            done = _combine(done, done_n, power, power_n, precision) if done_n else power
            done_n += power_n
        if 2 * power_n > terms:
            return done
        power = _combine(power, power_n, power, power_n, precision)
        power_n *= 2


def sum_laws(precision: Any, terms: Any, *, exact: bool, shape: tuple[int, ...]) -> SumLaws:
    """Return the laws of sums of ``terms`` discrete Gaussians of a precision, the distinct ones."""
    h, n = np.broadcast_arrays(precision, terms)
    # Beyond these limits the evidence is nothing, or everything, in double precision.
    h = np.clip(h, _NO_EVIDENCE * n, 1e100)
    pairs = np.stack([h.ravel(), n.ravel().astype(np.float64)], axis=1)
    distinct, index = np.unique(pairs, axis=0, return_inverse=True)
    waves = [_wave(float(a), int(b), exact=exact) for a, b in distinct]
    own = index.reshape(h.shape).astype(np.int64)
    return SumLaws(
        index=np.array(np.broadcast_to(own, shape), order="C"),
        rates=distinct[:, 0] / distinct[:, 1],
        waves=np.concatenate(waves),
        ends=np.cumsum([0, *(wave.size for wave in waves)]).astype(np.int64),
    )


def exact_wanted(sibling_noise: Any) -> bool:
    """Return whether the siblings' noise is to be convolved; refuse any other word."""
    return check.choice(sibling_noise, "sibling_noise", SIBLING_NOISE) == "exact"

"""The exact law of the noise of a total over m blocks, in log space.

Let g(d) be proportional to the probability that m independent N_Z(0, 1 / (2 rho)) add up to d.
Raising each of them by one turns a sum of d into one of d + m and the sum of squares q into
q + 2 d + m.  Hence g(d + m) = g(d) exp(-rho (2 d + m)), and

    log g(d) = -(rho / m) d**2 + ripple(d),  ripple of period m:

the approximation by one discrete Gaussian of m times the scale leaves out a periodic factor and
nothing else.  One period describes the law at every distance, without underflow.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bayesrisk.exceptions import ArgumentError

__all__ = ["MAX_RIPPLED", "NO_RIPPLE", "log_ripple"]

#: Up to this rho the ripple is below 1e-16 (Poisson summation, as in ``distributions.convolve``).
NO_RIPPLE = 0.125
_REACH = 45.0
#: Largest number of blocks whose ripple is computed.
MAX_RIPPLED = 10_000

_Ripple = NDArray[np.float64]


def _sum_of(a: _Ripple, b: _Ripple, rho: float) -> _Ripple:
    """Return the ripple of the sum of two sums: one period of their convolution in log space.

    The product of the two laws at e and d - e is Gaussian in e but for ripples of known range.
    """
    m = a.size + b.size
    precision = rho / a.size + rho / b.size
    reach = int(np.sqrt((_REACH + np.ptp(a) + np.ptp(b)) / precision)) + 2
    d = np.arange(m // 2 + 1)
    e = np.rint(d * (a.size / m)).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    # Both squares at once, relative to the one that is taken off: no large numbers cancel.
    distance = (e * m - (d * a.size)[:, None]) / m
    terms = a[e % a.size] + b[(d[:, None] - e) % b.size] - precision * distance**2
    peak = terms.max(axis=1)
    half = peak + np.log(np.exp(terms - peak[:, None]).sum(axis=1))
    return np.concatenate((half, half[1 : (m + 1) // 2][::-1]))


@lru_cache(maxsize=256)
def log_ripple(rho: float, m: int) -> _Ripple:
    """Return one period of log g(d) + (rho / m) d**2, or a single 0 where it does not vary."""
    if m == 1 or rho <= NO_RIPPLE:
        flat: _Ripple = np.zeros(1)
        flat.setflags(write=False)
        return flat
    if m > MAX_RIPPLED:
        raise ArgumentError(
            f"n_siblings must be <= {MAX_RIPPLED} for exact sibling noise with rho_block / "
            f"sensitivity**2 > {NO_RIPPLE}, got {m}"
        )
    # By doubling, from the highest bit of m down.
    one: _Ripple = np.zeros(1)
    result = one
    for bit in bin(m)[3:]:
        result = _sum_of(result, result, rho)
        if bit == "1":
            result = _sum_of(result, one, rho)
    centred: _Ripple = np.asarray(result - result[0])
    centred.setflags(write=False)
    return centred

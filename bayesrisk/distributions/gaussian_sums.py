"""The law of a sum of discrete Gaussians in log space, exact at any distance.

Let D add up n independent variables with probabilities proportional to exp(-p x**2).  Raising each
of them by one turns a sum of d into one of d + n, and the sum of squares q into q + 2 d + n: hence
P(D = d + n) = P(D = d) exp(-p (2 d + n)).  With h = p / n this says that, but for a constant,

    log P(D = d) = -h d**2 + g(d mod n),    g of period n.

One discrete Gaussian of n times the scale, which the literature puts in place of the sum, leaves
out this periodic factor and nothing else.  g is called the *ripple*, and kept with its maximum,
which is at 0, set to 0.  One variable of precision p and one of p / m, raised by one and by m, add
up to a sum of the same form with n = m + 1.

Where the rates of the two variables that are added, 1 / (2 sigma2) each, come to no more than
``SMOOTH``, the ripple is flat: by Poisson summation its relative height is at most
2 exp(-pi**2 / SMOOTH) = 1.4e-17.  ``sums.convolve`` stays in closed form by the same rule.

``sums.convolve`` adds up any laws, as tables of probabilities with a proved bound on the
total-variation distance, and so ends where a double does.  Evidence far out in the tails needs the
form here: one period describes the law at every distance, without underflow.  The tests hold the
two against each other.
"""

from functools import lru_cache

import numpy as np

from bayesrisk._types import FloatArray
from bayesrisk.distributions import kernels
from bayesrisk.exceptions import ArgumentError

#: Where two rates add up to no more than this the ripple of the sum is flat.
SMOOTH = 0.25
#: Most terms of a sum whose ripple is not flat, and most products of one convolution.
MAX_TERMS = 10**6
_MAX_PRODUCTS = 2**28  # some seconds
_ONE = np.zeros(1)
#: The ripple of a discrete Gaussian: none.
FLAT = np.zeros(1)
FLAT.flags.writeable = False


def _add(left: FloatArray, left_n: int, right: FloatArray, right_n: int, p: float) -> FloatArray:
    """Return the ripple of a sum of two sums, of ``left_n`` and ``right_n`` terms."""
    if left.size == right.size == 1 and p / left_n + p / right_n <= SMOOTH:
        return _ONE
    out = np.empty(left_n + right_n)
    kernels.add_ripples(left, left_n, right, right_n, p, out)
    return out


def pair_ripple(precision: float, terms: int) -> FloatArray:
    """Return the ripple of the sum of one variable and one that stands for ``terms - 1`` others.

    The second is a discrete Gaussian of ``terms - 1`` times the scale.
    """
    return _add(_ONE, 1, _ONE, terms - 1, precision) if terms > 1 else _ONE


def sum_ripple(precision: float, terms: int, *, name: str) -> FloatArray:
    """Return the ripple of a sum of variables of one precision, read-only.

    Parameters
    ----------
    precision : float
        1 / (2 sigma2) of each, in (0, 1e100].
    terms : int
        Number of variables.
    name : str
        Argument that says how many, for the message.

    Returns
    -------
    ndarray
        One period, of ``terms`` entries; a single 0 where it is flat.

    Raises
    ------
    ArgumentError
        If the ripple is not flat and has more than 10**6 entries, or would need more than 2**28
        products.
    """
    if terms == 1 or 2.0 * precision <= SMOOTH:
        return FLAT
    instead = 'sibling_noise="approximate" has no such limit'
    if terms > MAX_TERMS + 1:
        raise ArgumentError(
            f"{name} must be <= {MAX_TERMS} for exact sibling noise with a ripple, got a sum of "
            f"{terms} terms; {instead}"
        )
    # The last and longest of the convolutions.
    products = terms * np.sqrt(kernels.REACH * terms / precision)
    if products > _MAX_PRODUCTS:
        raise ArgumentError(
            f"{name} must be small enough for an exact convolution of {_MAX_PRODUCTS} products, "
            f"got {products:.3g} products; {instead}"
        )
    return _doubled(precision, terms)


@lru_cache(maxsize=64)
def _doubled(precision: float, terms: int) -> FloatArray:
    """Return the ripple of a sum of ``terms`` variables, by repeated doubling."""
    done, done_n = _ONE, 0
    power, power_n = _ONE, 1
    while True:
        if terms & power_n:
            done = _add(done, done_n, power, power_n, precision) if done_n else power
            done_n += power_n
        if 2 * power_n > terms:
            break
        power = _add(power, power_n, power, power_n, precision)
        power_n *= 2
    kept = done.copy()
    kept.flags.writeable = False
    return kept

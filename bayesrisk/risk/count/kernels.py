"""Compiled inner loops of the risk of one count.  Nothing here checks its arguments."""

import math
from typing import Any

from bayesrisk._numba import elementwise, kernel
from bayesrisk.distributions.kernels import REACH

# Below this precision the sum over whole numbers equals its coarser trapezoidal sums (see
# ``marginal_ratio``).
SMOOTH = 0.18
STEP = 0.6


@elementwise("float64(float64, float64)")
def marginal_ratio(precision: float, prior: float) -> float:
    """Average over releases, if the target is in the cell, of posterior / prior.

    sum_j f(j) / (p + q exp(-rho (2 j + 1))), f the noise law, j its value, rho the precision.

    Window.  The summand at j, relative to that at 0 (for j < 0) or at 1 (for j > 1), is at most
    exp(-rho j**2) or exp(-rho (j - 1)**2), whatever p: so j in [-w, 1 + w], rho w**2 = REACH.

    Step.  By Poisson summation a sum with spacing s differs from the integral by the transform
    of the summand at 1 / s.  For s <= 2 the poles of the logistic function, pi / (2 rho) from the
    real line, decide: relatively exp(-(pi**2 / rho) (1 / s - 1 / 4)).  For s >= 2 the Gaussian
    decides: exp(-pi**2 / (rho s**2)).  For rho < SMOOTH that is below 1e-17 both at s = 1, the sum
    wanted, and at s = STEP sigma, the sum taken.  Hence at most 33 terms at any rho.
    """
    complement = 1.0 - prior
    reach = math.sqrt(REACH / precision)
    step = 1.0
    if precision < SMOOTH:
        step = STEP / math.sqrt(2.0 * precision)
    i = -math.floor(reach / step)
    last = math.floor((1.0 + reach) / step)
    total = 0.0
    mass = 0.0
    while i <= last:
        j = i * step
        weight = math.exp(-precision * j * j)
        mass += weight
        total += weight / (prior + complement * math.exp(-precision * (2.0 * j + 1.0)))
        i += 1
    return total / mass


@elementwise("float64(float64, float64)")
def marginal_excess(precision: float, prior: float) -> float:
    """Return ``marginal_ratio`` less 1 without cancellation, which loses all near 1.

    q**2 sum_j f(j) (1 - exp(-E))**2 / (p + q exp(-E)), E = rho (2 j + 1): with P and Q the laws of
    releases with and without the target, the mean of the ratio less 1 is q**2 times the sum of
    (P - Q)**2 / (p P + q Q).  Where E < 0 the term is taken from Q(j) = f(j + 1).  Window and step
    are those of ``marginal_ratio`` to both sides.
    """
    complement = 1.0 - prior
    step = 1.0
    if precision < SMOOTH:
        step = STEP / math.sqrt(2.0 * precision)
    last = math.floor((1.0 + math.sqrt(REACH / precision)) / step)
    total = 0.0
    mass = 0.0
    i = -last
    while i <= last:
        j = i * step
        evidence = precision * (2.0 * j + 1.0)
        decay = math.exp(-abs(evidence))
        rest = math.expm1(-abs(evidence))
        weight = math.exp(-precision * j * j)
        mass += weight
        if evidence >= 0.0:
            total += weight * rest * rest / (prior + complement * decay)
        else:
            less = math.exp(-precision * (j + 1.0) * (j + 1.0))
            total += less * rest * rest / (prior * decay + complement)
        i += 1
    return complement * complement * total / mass


@kernel
def pair_tail(
    edge: float, first: Any, weights: Any, second: Any, table: Any
) -> tuple[float, float]:
    """Weigh a tail of a sum of two independent terms, and find the smallest sum above an edge.

    ``table[j]`` is the mass of ``second[:j]`` or of ``second[j:]``.  Both lists are sorted, so that
    the edge moves down the second while the first goes up: one passage over both.
    """
    j = second.size
    total = 0.0
    nearest = math.inf
    for i in range(first.size):
        while j > 0 and first[i] + second[j - 1] > edge:
            j -= 1
        total += weights[i] * table[j]
        if j < second.size:
            nearest = min(nearest, first[i] + second[j])
    return total, nearest

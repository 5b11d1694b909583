"""Compiled inner loops of post-processed releases.  Nothing here checks its arguments.

The noise D of a post-processed count adds up n = m + 1 discrete Gaussians, or two that stand for
them; its log-pmf is -h d**2 + ripple[d mod n] but for a constant, see
``distributions.gaussian_sums``.
"""

import math
from typing import Any

import numpy as np

from bayesrisk._numba import kernel
from bayesrisk.distributions.kernels import REACH

# B_2k / (2 k)!, k = 1..8: the coefficients of the Euler-Maclaurin formula (DLMF 24.2, 2.10.1).
_BERNOULLI = np.array(
    [
        1 / 12,
        -1 / 720,
        1 / 30240,
        -1 / 1209600,
        1 / 47900160,
        -691 / 1307674368000,
        1 / 74724249600,
        -3617 / 10670622842880000,
    ]
)


@kernel
def log_tail(first: int, rate: float, ripple: Any, span: float) -> float:
    """Return log of P(D >= first) exp(rate first**2), but for the constant; first >= -1.

    Summed term by term; where that would be long the ripple is flat, and only every ``step``-th
    term is taken: two Euler-Maclaurin formulas for the same integral, one subtracted from the
    other, leave end corrections whose ninth is below 1e-17 of the sum.
    """
    step = 1
    slope = 2.0 * rate * first
    if ripple.size == 1:
        step = int(min(0.1 / math.sqrt(rate), 0.5 / slope if slope > 0.0 else math.inf, 2.0**60))
        step = max(step, 1)
    peak = -math.inf
    total = 0.0
    i = 0
    while True:
        fall = rate * i * (2.0 * first + i)
        if fall > REACH + span:
            break
        term: float = ripple[(first + i) % ripple.size] - fall
        if term > peak:
            total = total * math.exp(peak - term) + 1.0
            peak = term
        else:
            total += math.exp(term - peak)
        i += step
    if step == 1:
        return peak + math.log(total)
    total = math.exp(peak) * total * step + 0.5 * (1.0 - step)
    before, derivative = 1.0, -slope
    for k in range(1, 9):
        total += float(_BERNOULLI[k - 1]) * (float(step) ** (2 * k) - 1.0) * derivative
        for order in (2 * k - 1, 2 * k):
            before, derivative = (
                derivative,
                -slope * derivative - 2.0 * rate * order * before,
            )
    return math.log(total)


@kernel
def _log_pair(low: int, base: int, rate: float, ripple: Any) -> float:
    """Return log of P(low <= D <= low + 1) exp(rate base**2), but for the constant."""
    a: float = ripple[low % ripple.size]
    b: float = ripple[(low + 1) % ripple.size]
    a -= rate * float(low - base) * float(low + base)
    b -= rate * float(low + 1 - base) * float(low + 1 + base)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@kernel
def evidence(
    released: int, group: int, known: int, rate: float, ripple: Any, span: float
) -> tuple[float, float]:
    """Return the log-likelihood ratio of X = k + 1 against X = k, and the log-likelihood of k + 1.

    The released value is the count plus floor((D + 1) / 2), kept within [0, N]: a pair of values
    of D inside, a tail at either end.  Both likelihoods are taken relative to one exponent, so
    that nothing cancels however far out the release is.  The second is but for a constant.
    """
    if released == 0:
        first = 2 * known + 2
        with_target = log_tail(first, rate, ripple, span)
        without = log_tail(first - 2, rate, ripple, span)
        change = -4.0 * rate * (2.0 * known + 1.0)
        return with_target - without + change, with_target - rate * float(first) ** 2
    if released == group:
        first = 2 * (group - known - 1) - 1
        with_target = log_tail(first, rate, ripple, span)
        without = log_tail(first + 2, rate, ripple, span)
        change = 4.0 * rate * (first + 1.0)
        return with_target - without + change, with_target - rate * float(first) ** 2
    base = 2 * (released - known - 1)
    with_target = _log_pair(base - 1, base, rate, ripple)
    without = _log_pair(base + 1, base, rate, ripple)
    return with_target - without, with_target - rate * float(base) ** 2


@kernel
def fill_evidence(
    released: Any, group: Any, known: Any, law: Any, rates: Any, ripples: Any, ends: Any, out: Any
) -> None:
    """Fill ``out`` with the log-likelihood ratio of each release under its law."""
    for i in range(out.size):
        j = law[i]
        ripple = ripples[ends[j] : ends[j + 1]]
        out[i], _ = evidence(released[i], group[i], known[i], rates[j], ripple, -ripple.min())


@kernel
def fill_marginal_ratio(
    group: Any, known: Any, prior: Any, law: Any, rates: Any, ripples: Any, ends: Any, out: Any
) -> None:
    """Fill ``out`` with posterior / prior averaged over releases, if the target is there.

    The summand at d, the value of the noise, is at most exp(-h d**2) of the largest or, for tiny
    priors, exp(-h (d - 2)**2), but for the depth of the ripple twice: the window follows.
    """
    for i in range(out.size):
        j = law[i]
        rate = rates[j]
        ripple = ripples[ends[j] : ends[j + 1]]
        span = -ripple.min()
        reach = int(math.sqrt((REACH + 2.0 * span) / rate)) + 2
        truth = known[i] + 1
        first = max(truth - reach // 2 - 1, 0)
        last = min(truth + reach // 2 + 3, group[i])
        total = 0.0
        mass = 0.0
        for released in range(first, last + 1):
            ratio, likelihood = evidence(released, group[i], known[i], rate, ripple, span)
            weight = math.exp(likelihood)
            mass += weight
            total += weight / (prior[i] + (1.0 - prior[i]) * math.exp(-ratio))
        out[i] = total / mass


@kernel
def two_counts_ratio(precision: float, rate: float, ripple: Any, prior: float) -> float:
    """Average posterior / prior over the two noisy counts of the target, before post-processing.

    The noise of the first is N_Z with this precision, that of the second has the law of ``rate``
    and ``ripple``.
    """
    span = -ripple.min()
    near = math.sqrt(REACH / precision)
    far = math.sqrt((REACH + 2.0 * span) / rate)
    total = 0.0
    mass = 0.0
    for second in range(-math.floor(far), math.floor(far) + 3):
        level = ripple[second % ripple.size]
        outer = math.exp(level - rate * second * second)
        gain = rate * (2.0 * second + 1.0) + level - ripple[(second + 1) % ripple.size]
        for first in range(-math.floor(near), math.floor(near) + 2):
            weight = outer * math.exp(-precision * first * first)
            decay = math.exp(-(precision * (2.0 * first + 1.0) + gain))
            mass += weight
            total += weight / (prior + (1.0 - prior) * decay)
    return total / mass

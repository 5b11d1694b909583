"""Compiled inner loops of the two-level model; arguments are not checked.

Counts are relative to the known count k: ``n`` is the noisy group count minus k, t the group count
minus k, i = 0 or 1 the block count minus k. ``s = t - i >= 0`` is the true count in the other
blocks and ``total`` their noisy total. ``b`` and ``c`` are the precisions of the group count and of
that total, ``tau = b + c``.
"""

import math
from typing import NamedTuple

import numpy as np

from bayesrisk._base.compiling import elementwise, lean_kernel, lean_step
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions.discrete_gaussian import MIDPOINT
from bayesrisk.distributions.kernels import REACH

# Below _FLAT a sum over all whole numbers is its integral, within 2 exp(-pi**2 / _FLAT) = 3e-18.
_FLAT = 0.24
# Sums that meet the edge s = 0 are taken term by term above _SMOOTH, and below it as long as the
# terms fall by more than _STEEP a step; by the midpoint Euler-Maclaurin formula otherwise.
_SMOOTH = 0.005
_STEEP = 0.5
#: Noise beyond this is never met: thresholds are not told apart there.
FAR = 2.0**52
#: Log odds this close to 0 are a tie, which rounding must not decide.
TIE = 1e-10
_COEFFICIENTS = np.array(MIDPOINT)


class Releases(NamedTuple):
    """Releases and precisions, one entry each, named by the letters above.

    ``start`` is the first t of a tabulated prior.
    """

    n: FloatArray
    total: FloatArray
    b: FloatArray
    c: FloatArray
    start: IntArray


class Laws(NamedTuple):
    """Ripple of the siblings' noise, log prior of the group count, and reach of the sums.

    ``ripple`` is one period (see ``distributions.sums``); an empty ``log_prior`` is flat; ``reach``
    is the exponent at which sums end.
    """

    ripple: FloatArray
    log_prior: FloatArray
    reach: float


@lean_step
def _erfcx(z: float) -> float:
    """Return exp(z**2) erfc(z) for z > -26, within 3e-15."""
    # Beyond 5 by the continued fraction 1 / (z + (1/2) / (z + 1 / (z + ...))) / sqrt(pi).
    if z < 5.0:
        return math.exp(z * z) * math.erfc(z)
    fraction = z
    for j in range(40, 0, -1):
        fraction = z + 0.5 * j / fraction
    return 1.0 / (fraction * math.sqrt(math.pi))


@lean_step
def _term_by_term(distance: float, first: float, tau: float) -> float:
    """Return the sum of exp(-tau j (j + 2 distance)) over j >= -first.

    Each term is the previous one times a ratio, and each ratio the previous one times exp(-2 tau).
    """
    shrink = math.exp(-2.0 * tau)
    total = 1.0
    term = 1.0
    ratio = math.exp(-tau * (1.0 + 2.0 * distance))
    while term > 1e-18 * total:  # ends: tau, or the step at the edge, is not small here
        term *= ratio
        total += term
        ratio *= shrink
    term = 1.0
    ratio = math.exp(-tau * (1.0 - 2.0 * distance))
    left = first
    while left > 0.0 and term > 1e-18 * total:
        term *= ratio
        total += term
        ratio *= shrink
        left -= 1.0
    return total


@lean_step
def _from_edge(middle: float, tau: float) -> float:
    """Return the sum over j >= 0 of w(middle + 1/2 + j) / w(middle), w(x) = exp(-tau x**2).

    As ``DiscreteGaussian`` takes its upper tails; here the edge may lie on either side.
    """
    slope = 2.0 * tau * middle
    total = 0.5 * math.sqrt(math.pi / tau) * _erfcx(middle * math.sqrt(tau))
    before = 1.0
    hermite = slope
    for k in range(_COEFFICIENTS.size):
        total += _COEFFICIENTS[k] * hermite
        for n in (2 * k + 1, 2 * k + 2):
            before, hermite = hermite, slope * hermite - n * before * 2.0 * tau
    return total


@elementwise("float64(float64, float64, float64, float64)")
def group_evidence(n: float, total: float, b: float, c: float) -> float:
    """Return the releases' log-likelihood ratio of i = 1 against i = 0, flat prior on N.

    log A_1 - log A_0, A_i = sum over s >= 0 of exp(-b (n - i - s)**2 - c (total - s)**2).

    In s the summand is Gaussian, tau (s - mu_i)**2 + (b c / tau) (n - i - total)**2, where mu_i =
    total + (b / tau) (n - i - total). Far from the edge s = 0 and for small tau only the second
    square is left. Otherwise each sum is taken relative to its largest term, so nothing overflows
    and no large logarithms are subtracted.
    """
    tau = b + c
    if b == 0.0 or tau == 0.0:
        return 0.0
    gap = n - total
    # mu_i = total + (b / tau) (n - i - total).  The smaller share multiplies the gap: the
    # distances s - mu_i keep their digits.
    small_b = b <= c
    share = b / tau if small_b else c / tau
    if small_b:
        mu_0 = total + share * gap
        mu_1 = total + share * (gap - 1.0)
    else:
        mu_0 = n - share * gap
        mu_1 = n - 1.0 - share * (gap - 1.0)
    # Far from the edge both sums over s are one integral: (b c / tau) (2 gap - 1) is left.
    reach = math.sqrt(REACH / tau) + 1.0
    if tau < _FLAT and mu_1 > reach:
        return share * (c if small_b else b) * (2.0 * gap - 1.0)
    # Near it, with small steps: tails of a Gaussian from the edge, by Euler-Maclaurin.
    middle = -0.5 - mu_0
    if tau < _SMOOTH and 2.0 * tau * (middle + 1.0) <= _STEEP and mu_1 < reach:
        return 2.0 * b * n + math.log(_from_edge(-0.5 - mu_1, tau) / _from_edge(middle, tau))
    # Otherwise term by term, each sum relative to its largest term at s_i.
    s_0 = max(0.0, math.floor(mu_0 + 0.5))
    s_1 = max(0.0, math.floor(mu_1 + 0.5))
    if small_b:
        d_0 = (s_0 - total) - share * gap
        d_1 = (s_1 - total) - share * (gap - 1.0)
    else:
        d_0 = (s_0 - n) + share * gap
        d_1 = (s_1 - n + 1.0) + share * (gap - 1.0)
    step = s_1 - s_0
    base = b * (1.0 + step) * (2.0 * n - 1.0 - s_0 - s_1)
    base += c * step * (2.0 * total - s_0 - s_1)
    return base + math.log(_term_by_term(d_1, s_1, tau) / _term_by_term(d_0, s_0, tau))


@lean_kernel
def fill(
    n: float,
    total: float,
    b: float,
    c: float,
    laws: Laws,
    window: tuple[int, int],
    work: FloatArray,
) -> tuple[float, float]:
    """Fill ``work`` with log A_0(t), log A_1(t) and log ratios; return the logs of both sums.

    A_i(t) = P(N = k + t) exp(-b (n - t)**2) g(total - t + i) for t >= i, with log g(d) = -c d**2 +
    ripple[d mod m]. An empty ``log_prior`` is flat. Row 2 is log g(total - t + 1) - log g(total -
    t); rows 3 and 4 are A_0 and A_1 relative to their largest values. The results are the
    logarithms of the sums of A_0 and of A_1.
    """
    first, size = window
    ripple, log_prior = laws.ripple, laws.log_prior
    period = ripple.size
    peak_0 = peak_1 = -np.inf
    for j in range(size):
        t = float(first + j)
        # log g(total - t) and log g(total - t + 1): the siblings with and without the target
        d = total - t
        ripple_here = ripple[np.int64(d) % period]
        ripple_next = ripple[np.int64(d + 1.0) % period]
        common = -b * (n - t) * (n - t)
        if log_prior.size > 0:
            common += log_prior[j]
        slope = (ripple_next - ripple_here) - c * (2.0 * d + 1.0)
        work[0, j] = common + ripple_here - c * d * d if t >= 0.0 else -np.inf
        work[1, j] = common + ripple_next - c * (d + 1.0) * (d + 1.0) if t >= 1.0 else -np.inf
        work[2, j] = slope
        peak_0 = max(peak_0, work[0, j])
        peak_1 = max(peak_1, work[1, j])
    # Rows 3 and 4: weights relative to the largest.
    sum_0 = sum_1 = 0.0
    for j in range(size):
        work[3, j] = math.exp(work[0, j] - peak_0) if work[0, j] > -np.inf else 0.0
        work[4, j] = math.exp(work[1, j] - peak_1) if work[1, j] > -np.inf else 0.0
        sum_0 += work[3, j]
        sum_1 += work[4, j]
    return peak_0 + math.log(sum_0), peak_1 + math.log(sum_1)


@lean_step
def _fill_release(
    r: int, releases: Releases, laws: Laws, work: FloatArray
) -> tuple[float, float, int]:
    """Fill ``work`` for one release; return both sums' logs (as ``fill``) and the number of t."""
    n, total, b, c = releases.n[r], releases.total[r], releases.b[r], releases.c[r]
    # The first t and how many: all of a tabulated prior, else what ``reach`` asks for.
    window = (0, 2)
    if laws.log_prior.size > 0:
        window = (releases.start[r], laws.log_prior.size)
    elif b + c > 0.0:
        centre = (n * (b / (b + c))) + total * (c / (b + c))
        width = math.sqrt(laws.reach / (b + c)) + 2.0
        first = int(max(0.0, math.floor(centre - width)))
        window = (first, int(max(0.0, centre) + width) + 2 - first)
    log_0, log_1 = fill(n, total, b, c, laws, window, work)
    return log_0, log_1, window[1]


@lean_kernel
def table_evidence(releases: Releases, laws: Laws, work: FloatArray, out: FloatArray) -> None:
    """Fill ``out`` with the evidence under a tabulated prior, or noise with a ripple."""
    for r in range(out.size):
        if releases.b[r] + releases.c[r] == 0.0 and laws.log_prior.size == 0:
            out[r] = 0.0
            continue
        log_0, log_1, _ = _fill_release(r, releases, laws, work)
        out[r] = log_1 - log_0


@lean_step
def _prepare(work: FloatArray, c: float, period: int, size: int) -> None:
    """Normalise rows 3 and 4 of ``work`` to P(t | i), and fill row 5 with exp(-slope).

    Without a ripple the slopes rise by 2 c from one t to the next.
    """
    sum_0 = sum_1 = 0.0
    for j in range(size):
        sum_0 += work[3, j]
        sum_1 += work[4, j]
    decay = math.exp(-2.0 * c)
    for j in range(size):
        work[3, j] /= sum_0
        work[4, j] /= sum_1
        if period > 1 or j % 64 == 0 or work[5, j - 1] == 0.0 or work[5, j - 1] == np.inf:
            work[5, j] = math.exp(-work[2, j])
        else:
            work[5, j] = work[5, j - 1] * decay


@lean_step
def _stationary_log_odds(
    work: FloatArray, log_0: float, log_1: float, size: int, log_odds: float
) -> float:
    """Return the log odds of i = 1 in the stationary law of the chain i -> t -> i'."""
    # Flow 0 -> 1: sum_t P(t | 0) P(1 | t); flow 1 -> 0: sum_t P(t | 1) P(0 | t).
    decay = math.exp(-log_odds)
    alpha = gamma = 0.0
    for j in range(size):
        odds = decay * work[5, j]
        stay = 1.0 / (1.0 + odds)
        alpha += work[3, j] * stay
        gamma += work[4, j] * (odds * stay)
    if alpha > 1e-250 and gamma > 1e-250:  # false for NaN
        return math.log(alpha / gamma)
    # The same by logarithms, any size of it: sum_t P(t | i) expit(+-(log_odds + slope[t])).
    log_alpha = log_gamma = 0.0
    for row in range(2):
        sign, log_sum = (1.0, log_0) if row == 0 else (-1.0, log_1)
        peak = -np.inf
        for j in range(size):
            z = sign * (log_odds + work[2, j])
            peak = max(peak, work[row, j] - log_sum + min(z, 0.0))
        flow = 0.0
        for j in range(size):
            z = sign * (log_odds + work[2, j])
            soft = min(z, 0.0) - math.log1p(math.exp(-abs(z)))
            flow += math.exp(work[row, j] - log_sum + soft - peak)
        log_alpha, log_gamma = log_gamma, peak + math.log(flow)
    return log_alpha - log_gamma


@lean_kernel
def published_log_odds(
    log_odds: FloatArray, releases: Releases, laws: Laws, work: FloatArray, out: FloatArray
) -> None:
    """Return the log odds of i = 1 in the stationary law of the published conditionals.

    ``log_odds`` is that of i = 1 given the block alone.
    """
    for r in range(out.size):
        if releases.b[r] + releases.c[r] == 0.0:
            out[r] = log_odds[r]
            continue
        log_0, log_1, size = _fill_release(r, releases, laws, work)
        _prepare(work, releases.c[r], laws.ripple.size, size)
        out[r] = _stationary_log_odds(work, log_0, log_1, size, log_odds[r])


@lean_kernel
def published_thresholds(
    logit_p: float, a: float, releases: Releases, laws: Laws, work: FloatArray, out: FloatArray
) -> None:
    """Fill ``out`` with the smallest whole d = y - k with published posterior >= 1/2 (a > 0).

    Half a step less where it is 1/2 there, a tie.  The odds rise with d.  Each search starts from
    the last release's threshold, gallops until the answer is between two values, and bisects.
    """
    right = min(max(math.ceil(0.5 - logit_p / (2.0 * a)), -FAR), FAR)
    for r in range(out.size):
        log_0, log_1, size = _fill_release(r, releases, laws, work)
        _prepare(work, releases.c[r], laws.ripple.size, size)
        # Gallop upwards until the posterior is at least 1/2, or downwards until it is not.
        left = right - 1.0
        step = 1.0
        odds = logit_p + a * (2.0 * right - 1.0)
        while right < FAR and _stationary_log_odds(work, log_0, log_1, size, odds) < -TIE:
            left = right
            right += step
            step *= 2.0
            odds = logit_p + a * (2.0 * right - 1.0)
        if step == 1.0:
            odds = logit_p + a * (2.0 * left - 1.0)
            while left > -FAR and _stationary_log_odds(work, log_0, log_1, size, odds) >= -TIE:
                right = left
                left -= step
                step *= 2.0
                odds = logit_p + a * (2.0 * left - 1.0)
        # Bisect between the two.
        while right - left > 1.0:
            middle = math.floor(0.5 * (left + right))
            odds = logit_p + a * (2.0 * middle - 1.0)
            if _stationary_log_odds(work, log_0, log_1, size, odds) >= -TIE:
                right = middle
            else:
                left = middle
        odds = logit_p + a * (2.0 * right - 1.0)
        tied = abs(_stationary_log_odds(work, log_0, log_1, size, odds)) <= TIE
        out[r] = right - 0.5 if tied else right

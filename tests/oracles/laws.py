"""Slow, obvious twins of the numerical core.  They share no code with the package.

Everything that needs more than a double is mpmath at ``DIGITS`` digits; arguments are taken as
the exact value of the double (or Fraction, or integer) that is passed.
"""

import functools
import itertools
import math
from fractions import Fraction

from mpmath import mp, mpf

DIGITS = 60
_DIRECT_TERMS = 3000


def exact(value):
    """Return a number as mpf without rounding it first."""
    if isinstance(value, Fraction):
        return mpf(value.numerator) / value.denominator
    if isinstance(value, mpf):
        return value
    return mpf(int(value)) if float(value) == math.floor(float(value)) else mpf(float(value))


def relative_error(value, truth):
    """Return |value - truth| / |truth| as a float; 0 when both are 0."""
    truth = exact(truth)
    gap = abs(exact(value) - truth)
    return float(gap / abs(truth)) if truth else float(gap)


# --- discrete Gaussian ------------------------------------------------------------------------


def _direct_tail(first, s2):
    """Sum w(j) from ``first`` on, term by term; each weight is the last one times a power."""
    first = mpf(first)
    term = mp.exp(-first * first / (2 * s2))
    step, square = mp.exp(-(2 * first + 1) / (2 * s2)), mp.exp(-1 / s2)
    total = mpf(0)
    while term > total * mpf(10) ** (-mp.dps):
        total += term
        term *= step
        step *= square
    return total


def _euler_maclaurin_tail(first, s2, terms=24):
    """Sum w(j) from ``first`` on: the integral, half the first term, and end corrections."""
    n = mpf(first)
    weight = mp.exp(-n * n / (2 * s2))
    total = mp.sqrt(mp.pi * s2 / 2) * mp.erfc(n / mp.sqrt(2 * s2)) + weight / 2
    # The derivatives follow w' = -(x / s2) w, differentiated n times.
    derivatives = [weight, -(n / s2) * weight]
    for order in range(1, 2 * terms):
        derivatives.append(-(n * derivatives[order] + order * derivatives[order - 1]) / s2)
    for k in range(1, terms + 1):
        total -= mp.bernoulli(2 * k) / mp.factorial(2 * k) * derivatives[2 * k - 1]
    return total


def gaussian_tail_weight(first, sigma2, dps=DIGITS):
    """Return the sum of exp(-j**2 / (2 sigma2)) over j >= first, for first >= 0."""
    with mp.workdps(dps + 10):
        s2 = exact(sigma2)
        span = 2 * s2 * mp.log(10) * mp.dps
        terms = mp.sqrt(mpf(first) ** 2 + span) - first
        if terms <= _DIRECT_TERMS:
            return _direct_tail(first, s2)
        return _euler_maclaurin_tail(first, s2)


@functools.lru_cache
def gaussian_normaliser(sigma2, dps=DIGITS):
    """Return Z(sigma2), the sum of exp(-j**2 / (2 sigma2)) over all whole j."""
    with mp.workdps(dps + 10):
        return 1 + 2 * gaussian_tail_weight(1, sigma2, dps)


def gaussian_pmf(x, sigma2, loc=0, dps=DIGITS):
    with mp.workdps(dps + 10):
        d = mpf(int(x) - int(loc))
        return mp.exp(-d * d / (2 * exact(sigma2))) / gaussian_normaliser(sigma2, dps)


def gaussian_logpmf(x, sigma2, loc=0, dps=DIGITS):
    """Return log f(x); log1p, as the normaliser may differ from 1 by less than the precision."""
    with mp.workdps(dps + 10):
        d = mpf(int(x) - int(loc))
        return -d * d / (2 * exact(sigma2)) - mp.log1p(2 * gaussian_tail_weight(1, sigma2, dps))


def gaussian_sf(x, sigma2, loc=0, dps=DIGITS):
    """Return P(X > x); the smaller tail is always the one that is summed."""
    d = int(x) - int(loc)
    with mp.workdps(dps + 10):
        z = gaussian_normaliser(sigma2, dps)
        if d >= 0:
            return gaussian_tail_weight(d + 1, sigma2, dps) / z
        return 1 - gaussian_tail_weight(-d, sigma2, dps) / z


def gaussian_cdf(x, sigma2, loc=0, dps=DIGITS):
    return gaussian_sf(2 * int(loc) - int(x) - 1, sigma2, loc, dps)


def gaussian_logsf(x, sigma2, loc=0, dps=DIGITS):
    """Return log P(X > x), by log1p of the small tail where the probability is near 1."""
    d = int(x) - int(loc)
    with mp.workdps(dps + 10):
        z = gaussian_normaliser(sigma2, dps)
        if d >= 0:
            return mp.log(gaussian_tail_weight(d + 1, sigma2, dps) / z)
        return mp.log1p(-gaussian_tail_weight(-d, sigma2, dps) / z)


def gaussian_moments(sigma2, dps=DIGITS):
    """Return variance and entropy by definition (moderate sigma2 only)."""
    with mp.workdps(dps + 10):
        s2 = exact(sigma2)
        reach = int(mp.sqrt(2 * s2 * mp.log(10) * (dps + 10))) + 2
        weights = [mp.exp(-(mpf(j) ** 2) / (2 * s2)) for j in range(reach + 1)]
        z = weights[0] + 2 * mp.fsum(weights[1:])
        variance = 2 * mp.fsum(j * j * w for j, w in enumerate(weights)) / z
        masses = [weights[0] / z] + [w / z for w in weights[1:] for _ in (0, 1)]
        return variance, -mp.fsum(m * mp.log(m) for m in masses)


def gaussian_sum_pmf(sigma2, n, last, dps=30):
    """Return P(S = 0), ..., P(S = last) for the sum S of n draws, by inverting the n-th power of
    the characteristic function on a grid so fine that what wraps around is nothing.
    """
    with mp.workdps(dps):
        s2, size = exact(sigma2), 2 * last + 200
        weights = [mp.exp(-(mpf(j) ** 2) / (2 * s2)) for j in range(int(mp.sqrt(140 * s2)) + 2)]
        cosines = [mp.cos(2 * mp.pi * k / size) for k in range(size)]

        def power(k):
            terms = [w * cosines[j * k % size] for j, w in enumerate(weights)]
            return ((terms[0] + 2 * mp.fsum(terms[1:])) / gaussian_normaliser(sigma2)) ** n

        powers = [power(k) for k in range(size)]
        return [
            mp.fsum(p * cosines[k * x % size] for k, p in enumerate(powers)) / size
            for x in range(last + 1)
        ]


# --- discrete Laplace -------------------------------------------------------------------------


def laplace_pmf(x, scale, loc=0, dps=DIGITS):
    with mp.workdps(dps + 10):
        b = exact(scale)
        return mp.tanh(1 / (2 * b)) * mp.exp(-abs(int(x) - int(loc)) / b)


def laplace_sf(x, scale, loc=0, dps=DIGITS):
    """Return P(X > x), a geometric series."""
    d = int(x) - int(loc)
    with mp.workdps(dps + 10):
        b = exact(scale)

        def tail(first):
            return laplace_pmf(first, scale, dps=dps) / -mp.expm1(-1 / b)

        return tail(d + 1) if d >= 0 else 1 - tail(-d)


# --- the adversary and the auditor ------------------------------------------------------------


def posterior(y, rho, prior, known_count=0, dps=DIGITS):
    """Return P(X = k + 1 | y) by Bayes' theorem from the two normalised pmfs."""
    with mp.workdps(dps + 10):
        p, s2 = exact(prior), 1 / (2 * exact(rho))
        with_target = p * gaussian_pmf(y, s2, known_count + 1, dps)
        without = (1 - p) * gaussian_pmf(y, s2, known_count, dps)
        return with_target / (with_target + without)


def marginal_risk(rho, prior, truth=1, dps=40):
    """Return the posterior over the prior, averaged over releases around ``truth`` (k = 0).

    By direct summation; below rho = 0.01, where that is too long, as the integral that the sum
    equals to within exp(-pi**2 / rho), 1e-400.
    """
    with mp.workdps(dps):
        r, p = exact(rho), exact(prior)

        def ratio(y):
            return 1 / (p + (1 - p) * mp.exp(-r * (2 * y - 1)))

        if rho < 0.01:
            spread = 1 / mp.sqrt(2 * r)
            ends = [truth + spread * z for z in (-14, -9, -5, -2, 0, 2, 5, 9, 14)]
            density = mp.sqrt(r / mp.pi)
            return mp.quad(lambda y: density * mp.exp(-r * (y - truth) ** 2) * ratio(y), ends)
        reach = int(mp.sqrt(dps * mp.log(10) / r)) + 2
        releases = range(truth - reach, truth + reach + 1)
        weights = [mp.exp(-r * (y - truth) ** 2) for y in releases]
        return mp.fdot(weights, [ratio(y) for y in releases]) / mp.fsum(weights)


def multilevel_marginal_risk(rhos, prior, dps=30):
    """Return the same for several levels, by sums nested as deep as there are levels."""
    with mp.workdps(dps):
        p = exact(prior)
        levels, mass = [], mpf(1)
        for rho in map(exact, rhos):
            reach = int(mp.sqrt(50 / rho)) + 2
            atoms = [
                (mp.exp(-rho * j * j), mp.exp(-rho * (2 * j + 1))) for j in range(-reach, reach + 1)
            ]
            levels.append(atoms)
            mass *= mp.fsum(w for w, _ in atoms)
        total = mpf(0)
        for combination in itertools.product(*levels):
            weight = decay = mpf(1)
            for w, d in combination:
                weight *= w
                decay *= d
            total += weight / (p + (1 - p) * decay)
        return total / mass


def ratio_law(rhos, prior, there=True, mass=1e-16):
    """Return [(risk ratio, probability)] of every combination of releases, by nested loops."""
    levels = []
    for rho in rhos:
        reach = int(math.sqrt(-math.log(mass) / rho)) + 2
        weights = {j: math.exp(-rho * j * j) for j in range(-reach, reach + 1)}
        z = math.fsum(weights.values())
        sign = 1 if there else -1
        levels.append([(rho * (2 * j + sign), w / z) for j, w in weights.items()])
    law = []
    for combination in itertools.product(*levels):
        evidence = math.fsum(e for e, _ in combination)
        law.append(
            (
                1.0 / (prior + (1.0 - prior) * math.exp(-evidence)),
                math.prod(w for _, w in combination),
            )
        )
    return sorted(law)


def nested_ratio_law(rhos, prior, others, there=True, truth=None, mass=1e-16):
    """Return [(risk ratio, probability)] of every release of nested levels, by nested loops.

    ``others`` are lists [(number, probability)] of what each level adds to the one below; releases
    are of the numbers in ``truth``, or of any with their probabilities.
    """
    reach = [int(math.sqrt(-math.log(mass) / rho)) + 2 for rho in rhos]
    z = [math.fsum(math.exp(-r * j * j) for j in range(-90, 91)) for r in rhos]
    states = []
    for numbers in itertools.product(*others):
        counts = list(itertools.accumulate(n for n, _ in numbers))
        states.append((counts, math.prod(w for _, w in numbers)))

    def likelihood(release, counts, x):
        gaps = (y - c - x for y, c in zip(release, counts, strict=True))
        return math.prod(math.exp(-r * g * g) / n for r, g, n in zip(rhos, gaps, z, strict=True))

    ranges = []
    for level, r in enumerate(reach):
        counts = [c[level] for c, _ in states]
        ranges.append(range(min(counts) - r, max(counts) + r + 2))
    law = []
    for release in itertools.product(*ranges):
        absent, present = (
            math.fsum(w * likelihood(release, c, x) for c, w in states) for x in (0, 1)
        )
        if truth is not None:
            chance = likelihood(release, list(itertools.accumulate(truth)), int(there))
        else:
            chance = present if there else absent
        law.append((present / (prior * present + (1.0 - prior) * absent), chance))
    return sorted(law)


def correct_decision_probability(rho, prior, dps=DIGITS):
    """Return P(posterior >= 1/2) over releases around k + 1 = 1; None if a posterior is 1/2."""
    with mp.workdps(dps):
        p = exact(prior)
        crossing = mpf("0.5") + mp.log((1 - p) / p) / (2 * exact(rho))
        if abs(crossing - mp.nint(crossing)) < mpf(10) ** -12 * (1 + abs(crossing)):
            return None
        return gaussian_sf(int(mp.ceil(crossing)) - 2, 1 / (2 * exact(rho)), dps=dps)


# --- accounting -------------------------------------------------------------------------------


def _minimise(function, low, high):
    """Return the minimum of a unimodal function, by golden sections."""
    golden = (mp.sqrt(5) - 1) / 2
    low, high = mpf(low), mpf(high)
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = function(a), function(b)
    while high - low > mpf(10) ** (-mp.dps // 2):
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = function(b)
    return min(at_a, at_b)


def _log_order_slack(t):
    """Return the Renyi order a = 1 + exp(t), and a log(1 - 1/a) - log(a - 1)."""
    b = mp.exp(t)
    return 1 + b, (1 + b) * (t - mp.log1p(b)) - t


def tight_delta(rho, epsilon, dps=40):
    """Return inf over a > 1 of exp((a-1)(a rho - eps)) / (a-1) * (1 - 1/a)**a, at most 1."""
    with mp.workdps(dps):
        r, e = exact(rho), exact(epsilon)

        def log_delta(t):
            order, slack = _log_order_slack(t)
            return mp.exp(t) * (order * r - e) + slack

        return min(mp.exp(_minimise(log_delta, -80, 80)), mpf(1))


def tight_epsilon(rho, delta, dps=40):
    """Return the infimum over the order a of the epsilon at which its bound equals delta."""
    with mp.workdps(dps):
        r, log_delta = exact(rho), mp.log(exact(delta))

        def epsilon(t):
            order, slack = _log_order_slack(t)
            return order * r + (slack - log_delta) / mp.exp(t)

        return max(_minimise(epsilon, -80, 80), mpf(0))


def tight_rho(epsilon, delta, dps=30):
    """Return the largest rho whose epsilon does not exceed the one given, by bisection."""
    with mp.workdps(dps):
        low, high = mpf(0), exact(epsilon) + 1
        while high - low > mpf(10) ** -18 * high:
            middle = (low + high) / 2
            if tight_epsilon(middle, delta, dps) <= exact(epsilon):
                low = middle
            else:
                high = middle
        return low


def gaussian_delta(epsilon, sigma2, sensitivity=1, dps=DIGITS):
    """Return P[Y > eps s2/D - D/2] - exp(eps) P[Y > eps s2/D + D/2]."""
    with mp.workdps(dps):
        e, s2 = exact(epsilon), exact(sigma2)
        low = int(mp.floor(e * s2 / sensitivity - mpf(sensitivity) / 2))
        upper = gaussian_sf(low + sensitivity, sigma2, dps=dps)
        return gaussian_sf(low, sigma2, dps=dps) - mp.exp(e) * upper


# --- finite laws ------------------------------------------------------------------------------


def exact_convolution(p, q):
    """The convolution of two tables of doubles, in fractions."""
    p, q = [Fraction(float(x)) for x in p], [Fraction(float(x)) for x in q]
    out = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            out[i + j] += a * b
    return out


def convolution(p, q):
    """Return the convolution of two sequences, by its definition."""
    result = [[] for _ in range(len(p) + len(q) - 1)]
    for (i, a), (j, b) in itertools.product(enumerate(p), enumerate(q)):
        result[i + j].append(a * b)
    return [math.fsum(terms) for terms in result]


def total_variation(p, q):
    """Return half the L1 distance of two mappings from values to probabilities."""
    return 0.5 * math.fsum(abs(p.get(x, 0.0) - q.get(x, 0.0)) for x in {*p, *q})

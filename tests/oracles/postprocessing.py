"""Slow, obvious twins of post-processing: enumeration of both noisy counts, and mpmath.

They share no code with the package.
"""

import math

import numpy as np
from mpmath import mp, mpf


def noise_pmf(rho, terms=1):
    """Return values and probabilities of a sum of discrete Gaussians, by plain convolution."""
    reach = int(math.sqrt(46 / rho)) + 2
    values = np.arange(-reach, reach + 1)
    one = np.exp(-rho * values**2.0)
    one /= one.sum()
    pmf = np.ones(1)
    for _ in range(terms):
        pmf = np.convolve(pmf, one)
    return np.arange(pmf.size) - pmf.size // 2, pmf


def project(y, s, n):
    """Return the block's count: the projection written as it is defined, clipped, rounded."""
    return np.floor(np.clip((n + y - s) / 2, 0, n) + 0.5).astype(int)


def both_counts(rho, m, exact=False):
    """Return the noise of the block, that of the siblings, and their joint probabilities."""
    e1, f1 = noise_pmf(rho)
    em, fm = noise_pmf(rho, m) if exact else noise_pmf(rho / m)
    return e1[:, None], em[None, :], np.outer(f1, fm)


def likelihoods(rho, m, n, k, exact=False):
    """Return P(a | X = k) and P(a | X = k + 1) for a = 0, ..., N over every (y, S)."""
    e1, em, weight = both_counts(rho, m, exact)
    rows = []
    for x in (k, k + 1):
        a = project(x + e1, n - x + em, n)
        rows.append(np.bincount(a.ravel(), weights=weight.ravel(), minlength=n + 1))
    return np.array(rows)


def after(rho, m, n, k, p, exact=False):
    """Return the posterior for each released count, and its average given the truth."""
    without, with_target = likelihoods(rho, m, n, k, exact)
    posterior = p * with_target / (p * with_target + (1 - p) * without)
    return posterior, float(with_target @ posterior)


def before(rho, m, n, k, p, exact=False):
    """Return the average posterior given (y, S), over every (y, S) that the truth may give."""
    e1, em, weight = both_counts(rho, m, exact)
    y, s = k + 1 + e1, n - (k + 1) + em
    pmf_y = dict(zip(*(v.tolist() for v in noise_pmf(rho)), strict=True))
    pmf_s = noise_pmf(rho, m) if exact else noise_pmf(rho / m)
    pmf_s = dict(zip(*(v.tolist() for v in pmf_s), strict=True))

    def likelihood(x):
        first = np.array([pmf_y.get(int(v), 0.0) for v in (y - x).ravel()])
        second = np.array([pmf_s.get(int(v), 0.0) for v in (s - (n - x)).ravel()])
        return np.outer(first, second)

    one, zero = likelihood(k + 1), likelihood(k)
    posterior = p * one / np.maximum(p * one + (1 - p) * zero, 1e-300)
    return float((weight * posterior).sum())


# --- arbitrary precision ----------------------------------------------------------------------


def difference_weight(d, rho, m, exact):
    """Return P(D = d) but for a constant: every split of d that matters."""
    if not exact:
        centre = round(d * m / (m + 1))
        reach = int(mp.sqrt(120 / rho)) + 3
        return mp.fsum(
            mp.exp(-rho * (d - i) ** 2 - rho / m * i**2)
            for i in range(centre - reach, centre + reach + 1)
        )
    assert m == 2, "three terms are enough"
    centre, reach = round(d / 3), int(mp.sqrt(120 / rho)) + 3
    near = range(centre - reach, centre + reach + 1)
    one = [mp.exp(-rho * i**2) for i in range(abs(d) + 2 * (abs(centre) + reach) + 1)]
    return mp.fsum(one[abs(i)] * one[abs(j)] * one[abs(d - i - j)] for i in near for j in near)


def log_odds_change(a, rho, m, n, k, exact=False, dps=60):
    """Return log P(a | X = k + 1) - log P(a | X = k)."""
    with mp.workdps(dps):
        r = mpf(rho)

        def tail(first):
            total, d = mpf(0), first
            while True:
                term = difference_weight(d, r, m, exact)
                total += term
                if d > 0 and term < total * mpf(10) ** -40:
                    return total
                d += 1

        def likelihood(x):
            if a == 0:
                return tail(2 * x)
            if a == n:
                return tail(2 * (n - x) - 1)
            low = 2 * (a - x) - 1
            return difference_weight(low, r, m, exact) + difference_weight(low + 1, r, m, exact)

        return mp.log(likelihood(k + 1)) - mp.log(likelihood(k))


def marginal_risk(rho, m, n, k, p, dps=40):
    """Return posterior over prior averaged given X = k + 1, siblings' noise approximated."""
    with mp.workdps(dps):
        r, prior = mpf(rho), mpf(p)
        reach = int(mp.sqrt(100 * (m + 1) / r)) + 2 * m + 8
        weight = {d: difference_weight(d, r, m, False) for d in range(-reach, reach + 1)}

        def law(x):
            mass = [mpf(0)] * (n + 1)
            for d, w in weight.items():
                mass[min(max(x + (d + 1) // 2, 0), n)] += w
            return mass

        without, with_target = law(k), law(k + 1)
        total = mp.fsum(
            one**2 / (prior * one + (1 - prior) * zero)
            for zero, one in zip(without, with_target, strict=True)
            if one
        )
        return total / mp.fsum(with_target)


def flat_tail(first, rate, dps=60):
    """Return log of sum over d >= first of exp(-rate (d**2 - first**2)), term by term."""
    with mp.workdps(dps):
        h, total, i = mpf(rate), mpf(0), 0
        while True:
            term = mp.exp(-h * i * (2 * first + i))
            total += term
            if term < total * mpf(10) ** -22 and i > 2:
                return mp.log(total)
            i += 1

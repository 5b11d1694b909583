"""Slow twins of the simulated likelihood and its averages: loops, dictionaries, exact sums."""

import math
from collections import Counter

import numpy as np


def importable_draws(hypothesis, rng, size):
    """Draw as a worker process can: from a module that it imports."""
    return hypothesis + rng.integers(0, 9, size)


def exact_average(laws, prior, truth):
    """Return the average posterior and P(correct), summing over every release of finite laws.

    ``laws[h]`` maps a release to its probability under hypothesis h; ties are shared.
    """
    average = right = 0.0
    for release, mass in laws[truth].items():
        if mass == 0.0:
            continue
        joint = [w * law.get(release, 0.0) for w, law in zip(prior, laws, strict=True)]
        average += mass * joint[truth] / sum(joint)
        best = [j >= max(joint) * (1.0 - 1e-12) for j in joint]
        right += mass * best[truth] / sum(best)
    return average, right


def exact_accuracy(laws, prior):
    """Return how often the most probable hypothesis is the true one, over every release."""
    releases = set().union(*laws)
    return math.fsum(
        max(w * law.get(release, 0.0) for w, law in zip(prior, laws, strict=True))
        for release in releases
    )


def gaussian_law(rho, shift, reach=200):
    """Return the discrete Gaussian as a dictionary, by its formula."""
    weights = {x: math.exp(-rho * x * x) for x in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {x + shift: w / total for x, w in weights.items()}


def laplace_law(scale, shift, reach=400):
    """Return the discrete Laplace as a dictionary."""
    weights = {x: math.exp(-abs(x) / scale) for x in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {x + shift: w / total for x, w in weights.items()}


def slow_estimates(releases, prior, truth, smoothing):
    """Return the two estimates of the average posterior by leaving out one replicate in a loop.

    ``releases[h][i]`` is hashable: what replicate i released under hypothesis h.
    """
    n, n_hypotheses = len(releases[0]), len(releases)
    counts = [Counter(row) for row in releases]
    upper = 0.0
    for value, times in counts[truth].items():
        mixture = sum(prior[h] * counts[h][value] for h in range(n_hypotheses))
        upper += prior[truth] * times * times / mixture / n
    lower = 0.0
    for i in range(n):
        others = [Counter(row) for row in counts]
        for h in range(n_hypotheses):
            others[h][releases[h][i]] -= 1

        def posterior(value, others=others):
            joint = [prior[h] * (others[h][value] + smoothing) for h in range(n_hypotheses)]
            return joint[truth] / sum(joint)

        squares = sum(prior[h] * posterior(releases[h][i]) ** 2 for h in range(n_hypotheses))
        lower += (2.0 * posterior(releases[truth][i]) - squares / prior[truth]) / n
    return lower, upper


def binomial_range(trials, probability, level=1e-4):
    """Return the counts whose two-sided tail is above ``level``, by summing the pmf.

    A test that holds fails with probability at most ``level``.
    """
    pmf = [
        math.exp(
            math.lgamma(trials + 1)
            - math.lgamma(k + 1)
            - math.lgamma(trials - k + 1)
            + k * math.log(probability)
            + (trials - k) * math.log1p(-probability)
        )
        for k in range(trials + 1)
    ]
    below = np.cumsum(pmf)
    low = int(np.searchsorted(below, level / 2.0))
    high = trials - int(np.searchsorted(np.cumsum(pmf[::-1]), level / 2.0))
    return low, high

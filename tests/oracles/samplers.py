"""Slow twin of the samplers of paths, every state enumerated; and how far draws are from a law."""

import math

import numpy as np


def largest_score(samples, laws, *, target=None, rare=2e-3):
    """Return the largest gap of draws to laws {label: {count: probability}}, in standard errors.

    Counts with less than ``rare`` are left out: too few draws for a normal approximation.
    """
    scores = [0.0]
    if target is not None and rare < target < 1.0 - rare:
        scores.append((samples.target_probability - target) / samples.target_error)
    elif target is not None:
        assert abs(samples.target_probability - target) < 2 * rare
    for label, law in laws.items():
        pmf = samples.pmf(label)
        drawn = pmf[(pmf["error"] > 0.0) & (pmf["probability"] > rare)]
        exact = np.array([law[count] for count in drawn.index])
        scores += list((drawn["probability"] - exact) / drawn["error"])
    return max(map(abs, scores))


def path(noisy, totals, *, m, rho, p, k=0, log_priors=None, size=40, sibling_rho=None, noise=None):
    """Return the law of each level's count: the first over k, k + 1, the others from 0.

    With ``m`` 0 there are no other children: the two counts are one.  ``noise`` has the log
    probabilities of the noise of each sum of siblings, where it is no discrete Gaussian.
    """
    levels = len(noisy)
    others_rho = rho[:-1] if sibling_rho is None else sibling_rho
    grid = np.meshgrid([k, k + 1], *[np.arange(size)] * (levels - 1), indexing="ij")
    log_weight = np.where(grid[0] == k, math.log(1.0 - p), math.log(p))
    for level in range(levels):
        log_weight = log_weight - rho[level] * (noisy[level] - grid[level]) ** 2
    for level in range(1, levels):
        others = grid[level] - grid[level - 1]
        m_here = m[level - 1]
        gap = totals[level - 1] - others
        if m_here and noise is not None:
            log_weight = log_weight + noise[level - 1](gap)
        elif m_here:
            log_weight = log_weight - others_rho[level - 1] / m_here * gap**2
        log_weight = np.where(others < 0 if m_here else others != 0, -np.inf, log_weight)
        if log_priors is not None and log_priors[level - 1] is not None:
            table = np.array([log_priors[level - 1](c) for c in range(size)])
            log_weight = log_weight + table[grid[level]]
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    axes = range(levels)
    return [weight.sum(axis=tuple(a for a in axes if a != level)) for level in axes]

"""Slow twins of the samplers: every state enumerated, in plain NumPy, from the model's formula."""

import itertools
import math

import numpy as np


def two_levels(release, *, m, rho1, rho2, p, k=0, log_prior=None, size=80):
    """Return the joint law of (x, N) as an array (2, size) over N = k, ..., k + size - 1."""
    y, n, s = release
    joint = np.full((2, size), -np.inf)
    for x in (0, 1):
        for i in range(size):
            count, group = k + x, k + i
            if group < count:
                continue
            joint[x, i] = (
                math.log(p if x else 1.0 - p)
                - rho1 * (y - count) ** 2
                - rho2 * (n - group) ** 2
                - rho1 / m * (s - (group - count)) ** 2
                + (0.0 if log_prior is None else log_prior(group))
            )
    weight = np.exp(joint - joint.max())
    return weight / weight.sum()


def as_published(release, *, m, rho1, rho2, p, k=0, size=80):
    """Return the stationary law of x and of N for conditionals of which one drops 1[N >= x].

    The chain of x alone has two states; its transition matrix sums over N.
    """
    y, n, s = release
    group = k + np.arange(size)
    odds = np.log(p / (1.0 - p)) + rho1 * ((y - k) ** 2 - (y - k - 1) ** 2)
    odds = odds + rho1 / m * ((s - group + k) ** 2 - (s - group + k + 1) ** 2)
    has_target = 1.0 / (1.0 + np.exp(-odds))
    given = np.zeros((2, size))
    for x in (0, 1):
        log_weight = -rho2 * (n - group) ** 2 - rho1 / m * (s - group + k + x) ** 2
        weight = np.where(group >= k + x, np.exp(log_weight - log_weight.max()), 0.0)
        given[x] = weight / weight.sum()
    up, stay = given[0] @ has_target, given[1] @ has_target
    target = up / (1.0 - stay + up)
    return target, (1.0 - target) * given[0] + target * given[1]


def path(noisy, totals, *, m, rho, p, k=0, log_priors=None, size=40):
    """Return the law of each level's count: the first over k, k + 1, the others from 0.

    With ``m`` 0 there are no other children: the two counts are one.
    """
    levels = len(noisy)
    grid = np.meshgrid([k, k + 1], *[np.arange(size)] * (levels - 1), indexing="ij")
    log_weight = np.where(grid[0] == k, math.log(1.0 - p), math.log(p))
    for level in range(levels):
        log_weight = log_weight - rho[level] * (noisy[level] - grid[level]) ** 2
    for level in range(1, levels):
        others = grid[level] - grid[level - 1]
        m_here = m[level - 1]
        if m_here:
            log_weight = log_weight - rho[level - 1] / m_here * (totals[level - 1] - others) ** 2
        log_weight = np.where(others < 0 if m_here else others != 0, -np.inf, log_weight)
        if log_priors is not None and log_priors[level - 1] is not None:
            table = np.array([log_priors[level - 1](c) for c in range(size)])
            log_weight = log_weight + table[grid[level]]
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    axes = range(levels)
    return [weight.sum(axis=tuple(a for a in axes if a != level)) for level in axes]


def tree(parents, noisy, precision, log_prior, size=13):
    """Return {node: law on 0, 1, ...} for ``parents`` {node: parent or None}.

    Every combination of leaf counts below ``size`` is visited; ``log_prior(leaf, count)``.
    """
    leaves = [node for node in parents if node not in parents.values()]
    ancestors = {}
    for leaf in leaves:
        chain, node = [], leaf
        while node is not None:
            chain.append(node)
            node = parents[node]
        ancestors[leaf] = chain
    combos = np.array(list(itertools.product(range(size), repeat=len(leaves))))
    counts = {node: np.zeros(len(combos), dtype=int) for node in parents}
    log_weight = np.zeros(len(combos))
    for i, leaf in enumerate(leaves):
        table = np.array([log_prior(leaf, c) for c in range(size)])
        log_weight += table[combos[:, i]]
        for node in ancestors[leaf]:
            counts[node] += combos[:, i]
    for node in parents:
        log_weight -= precision[node] * (noisy[node] - counts[node]) ** 2
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    most = len(leaves) * (size - 1) + 1
    return {node: np.bincount(counts[node], weight, minlength=most) for node in parents}

"""Posteriors of trees of counts by listing every configuration; no code of the package."""

import itertools
import math

import numpy as np
import pandas as pd


def subtree_sums(frame, leaves, grid):
    """Return the count of every node in each configuration of the leaves' counts."""
    children = {}
    for node, parent in zip(frame["node"], frame["parent"], strict=True):
        children.setdefault(parent, []).append(node)
    counts = {leaf: grid[:, i] for i, leaf in enumerate(leaves)}

    def count(node):
        if node not in counts:
            counts[node] = sum(count(child) for child in children[node])
        return counts[node]

    for node in frame["node"]:
        count(node)
    return counts


def frame_of(parents, noisy, rho=None, **more):
    """Return the frame of a tree {node: parent}, with a noisy count and a budget for each node."""
    columns = {"noisy_count": noisy} | ({} if rho is None else {"rho": rho}) | more
    return pd.DataFrame({"node": list(parents), "parent": list(parents.values()), **columns})


def leaves_of(frame):
    parents = set(frame["parent"])
    return [node for node in frame["node"] if node not in parents]


def brute_force(frame, supports, log_priors, node_log_priors=None):
    """Return {node: {count: probability}}: ``supports[i]`` lists the counts of leaf i."""
    leaves = leaves_of(frame)
    grid = np.array(list(itertools.product(*supports)), dtype=np.int64)
    counts = subtree_sums(frame, leaves, grid)
    log_weight = np.zeros(len(grid))
    for i, leaf in enumerate(leaves):
        table = np.array([log_priors[i](x) for x in supports[i]])
        log_weight += table[np.searchsorted(supports[i], counts[leaf])]
    for row in frame.itertuples():
        released = not pd.isna(row.noisy_count) and not pd.isna(row.rho)
        if released:
            log_weight += -row.rho * (float(row.noisy_count) - counts[row.node]) ** 2
    for node, log_prior in (node_log_priors or {}).items():
        log_weight += np.array([log_prior(x) for x in counts[node].tolist()])
    weight = np.exp(log_weight - log_weight.max())
    weight /= math.fsum(weight)
    result = {}
    for node in frame["node"]:
        mass = np.bincount(counts[node], weights=weight)
        result[node] = {x: p for x, p in enumerate(mass) if p > 0.0}
    return result


# --- log priors, by their textbook formulas ----------------------------------------------------


def log_flat(_):
    return 0.0


def log_poisson(mean):
    return lambda x: x * math.log(mean) - mean - math.lgamma(x + 1)


def log_negative_binomial(mean, dispersion):
    r = 1.0 / dispersion
    p = r / (r + mean)
    return lambda x: (
        math.lgamma(x + r)
        - math.lgamma(r)
        - math.lgamma(x + 1)
        + r * math.log(p)
        + x * math.log(1 - p)
    )


def log_hurdle_geometric(w, mean):
    q = 1 - 1 / mean
    return lambda x: math.log(1 - w) if x == 0 else math.log(w * (1 - q)) + (x - 1) * math.log(q)


def log_hurdle_poisson(w, mean):
    zero = math.exp(-mean)
    poisson = log_poisson(mean)
    return lambda x: math.log(1 - w) if x == 0 else math.log(w / (1 - zero)) + poisson(x)


def worst_gap(posterior, truth):
    """Return the largest difference of probabilities over all nodes and counts."""
    worst = 0.0
    for node, pmf in truth.items():
        mine = posterior.pmf(node)
        keys = set(pmf) | set(mine.index)
        worst = max(worst, max(abs(pmf.get(x, 0.0) - float(mine.get(x, 0.0))) for x in keys))
    return worst

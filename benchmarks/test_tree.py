"""Whole trees against a NumPy sum-product, and how the cost grows with the number of blocks.

A county with tracts, block groups and blocks in the proportions 40 : 150 : 5,000, and the 2020
budgets of the persons file.  The limit is one multiplication for each pair of neighbouring counts.
"""

import time

import numpy as np
import pandas as pd
import pytest
from targets import Aim, seconds_each

from bayesrisk import DiscreteGaussian, Tree, tree_posterior
from bayesrisk.inference import LeafPrior, target_posteriors

RHO = {"county": 0.0513777, "tract": 0.0504162, "group": 0.2464845, "block": 0.0992264}
PRIORS = {
    "sparse": LeafPrior.hurdle(0.05, mean=2.0),
    "dense": LeafPrior.negative_binomial(3.0, dispersion=1.0),
}
WORDS = {"sparse": "one block in twenty inhabited", "dense": "three people a block"}


def county(blocks, population, rng):
    """Return the table of a county: one block in twenty inhabited, or three persons in each."""
    groups, tracts = max(blocks * 150 // 5000, 1), max(blocks * 40 // 5000, 1)
    in_group = np.arange(blocks) * groups // blocks
    in_tract = np.arange(groups) * tracts // groups
    if population == "sparse":
        block = np.where(rng.random(blocks) < 0.05, rng.geometric(0.5, blocks), 0)
    else:
        block = rng.negative_binomial(1, 0.25, blocks)
    group = np.bincount(in_group, block, groups).astype(int)
    tract = np.bincount(in_tract, group, tracts).astype(int)
    counts = [np.array([block.sum()]), tract, group, block]
    noisy = [
        c + DiscreteGaussian.from_rho(rho).rvs(c.size, random_state=rng)
        for c, rho in zip(counts, RHO.values(), strict=True)
    ]
    parent = [-1, *[0] * tracts, *(1 + in_tract), *(1 + tracts + in_group)]
    return pd.DataFrame(
        {
            "node": np.arange(len(parent)),
            "parent": pd.array(np.where(np.array(parent) < 0, None, parent), dtype="Int64"),
            "noisy_count": np.concatenate(noisy),
            "rho": np.repeat(list(RHO.values()), [c.size for c in counts]),
            "known_count": pd.array([None] * (len(parent) - blocks) + [0] * blocks, dtype="Int64"),
            "prior": [None] * (len(parent) - blocks) + [0.05] * blocks,
        }
    )


def numpy_means(tree, prior):
    """Return every posterior mean by sum-product, node by node, on windows of 12 sigma."""
    log_prior = np.concatenate(([0.0], np.cumsum(prior.log_ratios(np.arange(3000)))))
    n = tree.n_nodes
    low, up, own, down = [0] * n, [None] * n, [None] * n, [None] * n
    children = [tree.children[tree.first_child[v] : tree.first_child[v + 1]] for v in range(n)]
    for v in range(n - 1, -1, -1):
        lam, y = tree.precision[v], int(tree.noisy[v])
        reach = int(12.0 * np.sqrt(0.5 / lam)) + 1
        if children[v].size:
            message, low[v] = np.ones(1), 0
            for c in children[v]:
                message = np.convolve(message, up[c])
                low[v] += low[c]
            high = min(low[v] + message.size - 1, max(y + reach, low[v]))
            cut = max(min(y - reach, high) - low[v], 0)
            message = message[cut : high - low[v] + 1]
            low[v] += cut
        else:
            low[v] = max(y - reach, 0)
            message = np.exp(log_prior[low[v] : max(y + reach, 0) + 1])
        x = low[v] + np.arange(message.size)
        own[v] = np.exp(-lam * ((x - y) ** 2 - np.min((x - y) ** 2)))
        up[v] = message * own[v] / (message * own[v]).max()
    mean = np.empty(n)
    down[0] = np.ones(up[0].size)
    for v in range(n):
        weight = up[v] * down[v]
        mean[v] = low[v] + np.arange(weight.size) @ weight / weight.sum()
        if children[v].size:
            before, after = [np.ones(1)], [np.ones(1)]
            for c in children[v][:-1]:
                before.append(np.convolve(before[-1], up[c]))
                before[-1] /= before[-1].max()
            for c in children[v][:0:-1]:
                after.append(np.convolve(after[-1], up[c]))
                after[-1] /= after[-1].max()
            total = sum(low[c] for c in children[v])
            outside = own[v] * down[v] / (own[v] * down[v]).max()
            for c, a, b in zip(children[v], before, after[::-1], strict=True):
                rest = np.convolve(a, b)
                full = np.convolve(outside, rest[::-1])
                at = np.arange(up[c].size) + rest.size - 1 - (low[v] - total)
                inside = (at >= 0) & (at < full.size)
                down[c] = np.where(inside, full[np.clip(at, 0, full.size - 1)], 0.0)
                down[c] /= down[c].max()
    return mean


@pytest.mark.parametrize("population", PRIORS)
def test_county_of_5000_blocks(compare, population):
    tree = Tree.from_frame(county(5000, population, np.random.default_rng(1)))
    few = Tree.from_frame(county(500, population, np.random.default_rng(2)))
    prior = PRIORS[population]
    result = tree_posterior(few, leaf_prior=prior, use_targets=False)
    np.testing.assert_allclose(result.mean, numpy_means(few, prior), rtol=1e-9, atol=1e-10)
    name = f"posteriors of a county of 5,000 blocks, {WORDS[population]}"
    compare(
        lambda: tree_posterior(tree, leaf_prior=prior, use_targets=False),
        lambda: numpy_means(few, prior),
        aims={name: seconds_each(2e-3, "block")},
        ours_units=5000,
        twin_units=500,
        rounds=3,
    )


@pytest.mark.parametrize("population", PRIORS)
def test_cost_grows_in_proportion(benchmark, measured, population):
    """The exponent of the cost over 500, 5,000 and 50,000 blocks."""
    prior, sizes = PRIORS[population], np.array([500, 5000, 50_000])
    trees = [Tree.from_frame(county(n, population, np.random.default_rng(n))) for n in sizes]

    def once(tree):
        start = time.process_time()
        result = tree_posterior(tree, leaf_prior=prior, use_targets=False)
        seconds = time.process_time() - start
        assert result.status == "exact"
        return seconds, result.peak_bytes / 2**20

    benchmark.pedantic(lambda: once(trees[0]), rounds=1, warmup_rounds=1)
    runs = [
        [once(tree) for _ in range(repeats)]
        for tree, repeats in zip(trees, (20, 5, 2), strict=True)
    ]
    seconds = [min(run)[0] for run in runs]
    exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    shown = ", ".join(
        f"{n} blocks {s:.3g} s {run[0][1]:.3g} MiB"
        for n, s, run in zip(sizes, seconds, runs, strict=True)
    )
    print(f"\n  tree, {population}: {shown}")
    what = f"the time of a county as a power of its blocks, {WORDS[population]}"
    measured(what, Aim(1.2, ""), exponent)
    if not benchmark.disabled:
        assert exponent <= 1.2


def test_all_targets_of_a_county(benchmark):
    tree = Tree.from_frame(county(5000, "sparse", np.random.default_rng(1)))
    result = benchmark.pedantic(
        lambda: target_posteriors(tree, leaf_prior=PRIORS["sparse"]), rounds=3, warmup_rounds=1
    )
    print(f"\n  targets: {result.names.size} posteriors, bound {result.truncation_bound.max():.1g}")
    assert result.status == "exact"

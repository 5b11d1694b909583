"""Compiled Gibbs against a plain NumPy loop written as the paper describes it, in one run."""

import math
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import two_level_questions as questions
from targets import faster

from bayesrisk import FiniteLaw, Tree, sample_tree, tree_posterior
from bayesrisk.inference import LeafPrior

Y, N, S, M, RHO1, RHO2, PRIOR = 2, 1, -1, 27, 0.0992264, 0.2464845, 0.5
SLOW_DRAWS = 20_000


def plain_gibbs(draws, rng, coherent=True):
    """Draw N given x from a window of a truncated discrete Gaussian, then x given N."""
    tau = RHO2 + RHO1 / M
    out = np.empty((draws, 2), dtype=int)
    x = 0
    for t in range(draws):
        centre = (RHO2 * N + RHO1 / M * (S + x)) / tau
        support = np.arange(x, x + 30)
        weight = np.exp(-tau * (support - centre) ** 2)
        total = np.cumsum(weight)
        group = support[np.searchsorted(total, rng.random() * total[-1])]
        odds = PRIOR / (1 - PRIOR) * math.exp(RHO1 * (2 * Y - 1) + RHO1 / M * (2 * (group - S) - 1))
        x = int(rng.random() < odds / (1 + odds) and (group >= 1 or not coherent))
        out[t] = x, group
    return out


def test_the_twin_samples_the_same_law():
    draws = plain_gibbs(60_000, np.random.default_rng(1))
    assert abs(draws[:, 0].mean() - 0.503288) < 0.01


@pytest.mark.parametrize("conditionals", ["coherent", "as-published"])
def test_two_levels(compare, conditionals):
    draws, rng = 1_000_000, np.random.default_rng(2)

    def ours():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return questions.sample(
                Y,
                N,
                S,
                n_siblings=M,
                rho_block=RHO1,
                rho_group=RHO2,
                prior=PRIOR,
                conditionals=conditionals,
                draws=draws,
                warmup=0,
                chains=1,
                rng=1,
            )

    exact = {"coherent": 0.503288, "as-published": 0.577702}[conditionals]
    samples = ours()
    assert abs(samples.target_probability - exact) < 4.5 * samples.target_error
    compare(
        ours,
        lambda: plain_gibbs(SLOW_DRAWS, rng, conditionals == "coherent"),
        aims={f"draws of the two-level sampler ({conditionals}), beside NumPy": faster(100)},
        ours_units=draws,
        twin_units=SLOW_DRAWS,
    )


def test_four_chains_in_two_threads(compare):
    """The ratio to the same chains in one thread: 0.5 where two processors are idle."""
    draws = 1_000_000

    def chains(threads):
        return questions.sample(
            Y,
            N,
            S,
            n_siblings=M,
            rho_block=RHO1,
            rho_group=RHO2,
            prior=PRIOR,
            draws=draws,
            warmup=0,
            chains=4,
            rng=1,
            threads=threads,
        )

    np.testing.assert_array_equal(chains(2).counts, chains(1).counts)
    # 0.5 is the limit of two idle processors
    compare(lambda: chains(2), lambda: chains(1), clock=time.perf_counter)


def test_path_of_four_levels(compare):
    draws, rng = 100_000, np.random.default_rng(3)
    about = {"n_siblings": [M, 3, 4], "rho": [RHO1, RHO2, 0.05, 0.05], "prior": PRIOR}
    released = [Y, N, 3, 8], [S, 2, 5]

    def ours():
        nodes = [f"level_{i}" for i in range(4)]
        return sample_tree(
            path, leaf_prior="flat", nodes=nodes, draws=draws, warmup=0, chains=1, rng=1
        )

    path = Tree.path(*released, **about)
    exact, samples = tree_posterior(path, leaf_prior="flat").pmf("level_0")[1], ours()
    assert abs(samples.target_probability - exact) < 4.5 * samples.target_error
    compare(
        ours,
        lambda: plain_gibbs(SLOW_DRAWS, rng),
        ours_units=draws,
        twin_units=SLOW_DRAWS,
    )


@pytest.mark.parametrize("prior", ["flat", "hurdle", "any"])
def test_tree_of_2000_blocks(compare, prior):
    """A unit is one leaf redrawn alone and one pair; the twin redraws one pair of counts.

    Means over eight chains must be the exact ones: scores of Student's law with 7 degrees of
    freedom, whose root mean square is 1.18.
    """
    rng, blocks, groups, draws = np.random.default_rng(4), 2000, 60, 20
    frame = pd.DataFrame(
        {
            "node": [
                "county",
                *(f"g{i}" for i in range(groups)),
                *(f"b{i}" for i in range(blocks)),
            ],
            "parent": [None] + ["county"] * groups + [f"g{i % groups}" for i in range(blocks)],
            "noisy_count": [2000, *rng.poisson(33, groups), *rng.poisson(1, blocks)],
            "rho": [0.05] + [RHO2] * groups + [RHO1] * blocks,
        }
    )
    tree = Tree.from_frame(frame)

    def log_weight(count):
        return -0.5 * np.sqrt(count) - 0.1 * (count % 2)

    weights = np.exp(log_weight(np.arange(61)))
    leaf_prior, same = {
        "flat": ("flat", "flat"),
        "hurdle": (LeafPrior.hurdle(0.3, mean=2.0),) * 2,
        "any": (log_weight, FiniteLaw(0, weights / weights.sum())),
    }[prior]
    exact = tree_posterior(tree, leaf_prior=same).mean
    some = sample_tree(tree, leaf_prior=leaf_prior, draws=50, warmup=50, chains=8, rng=2)
    means = some.counts.mean(axis=1)
    scores = (means.mean(axis=0) - exact) / (means.std(axis=0, ddof=1) / 8**0.5)
    assert np.sqrt(np.mean(scores**2)) < 1.4
    compare(
        lambda: sample_tree(tree, leaf_prior=leaf_prior, draws=draws, warmup=0, chains=1, rng=1),
        lambda: plain_gibbs(SLOW_DRAWS, rng),
        ours_units=draws * blocks,
        twin_units=SLOW_DRAWS,
        rounds=3,
    )

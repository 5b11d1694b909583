"""The law of the ratio along nested levels whose other people are not all known."""

import math

import numpy as np
import pandas as pd
import pytest
from oracles import laws as oracles
from refusals import refuses

from bayesrisk import DiscreteGaussian, FiniteLaw, Noise, tree_posterior
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError
from bayesrisk.inference import Tree
from bayesrisk.risk import multilevel_marginal_posterior, risk_distribution

HALF, THREE, FIVE = [(0, 0.5), (1, 0.5)], [(2, 0.2), (3, 0.5), (4, 0.3)], [(5, 0.6), (7, 0.4)]
KNOWN = [(0, 1.0)]
PATHS = {
    "the block": ([0.7, 1.3], [HALF, KNOWN]),
    "the group": ([0.7, 1.3], [KNOWN, THREE]),
    "the tract, two levels known": ([0.9, 0.7, 1.3], [KNOWN, KNOWN, THREE]),
    "all three": ([0.9, 1.3, 2.0], [HALF, THREE, FIVE]),
    "known in between": ([1.3, 0.9, 2.0], [HALF, KNOWN, FIVE]),
}


def law_of(pairs):
    if pairs is KNOWN:
        return None
    numbers = dict(pairs)
    first = min(numbers)
    return FiniteLaw(first, [numbers.get(n, 0.0) for n in range(first, max(numbers) + 1)])


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("given", ["target", "other"])
@pytest.mark.parametrize("known_truth", [False, True])
def test_against_a_list_of_all_releases(name, given, known_truth):
    rho, others = PATHS[name]
    truth = [pairs[-1][0] for pairs in others] if known_truth else None
    law = risk_distribution(
        noise=Noise(rho=rho),
        prior=0.2,
        given=given,
        others=[law_of(pairs) for pairs in others],
        true_others=truth,
    )
    listed = oracles.nested_ratio_law(rho, 0.2, others, there=given == "target", truth=truth)
    ratios, weights = np.array(listed).T
    slack = 1e-15 * (len(rho) + 2) + 1e-13  # left out by the law and by the list; rounding
    gaps = np.flatnonzero(np.diff(ratios) > 1e-7 * ratios[:-1])
    for at in gaps[np.unique(np.linspace(0, gaps.size - 1, 25).astype(int))]:
        above = math.fsum(weights[at + 1 :])
        limit = 0.5 * (ratios[at] + ratios[at + 1])
        assert law.exceeds(limit) == pytest.approx(above, abs=slack)
        assert law.cdf(limit) == pytest.approx(1.0 - above, abs=slack)
    for level in (0.05, 0.5, 0.95):
        at = np.searchsorted(np.cumsum(weights), level)
        assert law.quantile(level) == pytest.approx(ratios[at], rel=1e-9)
    assert law.mean == pytest.approx(math.fsum(ratios * weights), rel=1e-12, abs=slack / 0.2)


def test_three_levels_against_drawn_releases_judged_by_the_tree():
    """A path is a tree whose other leaves, the rest of each group, have no release of their own."""
    rho, prior = [0.0992264, 0.2464845, 0.0504162], 0.1
    rest = [FiniteLaw(0, np.ones(6) / 6), FiniteLaw(4, np.arange(1.0, 21.0) / 210.0)]
    law = risk_distribution(noise=Noise(rho=rho), prior=prior, others=[None, *rest])
    table = pd.DataFrame(
        {
            "node": ["tract", "group", "rest of tract", "block", "rest of group"],
            "parent": [None, "tract", "tract", "group", "group"],
            "rho": [rho[2], rho[1], 0.0, rho[0], 0.0],
            "known_count": [np.nan, np.nan, np.nan, 0, np.nan],
            "prior": [np.nan, np.nan, np.nan, prior, np.nan],
        }
    )
    rng, draws = np.random.default_rng(3), 120
    added = [one.rvs(draws, rng) for one in rest]
    truth = 1 + np.cumsum([np.zeros(draws, dtype=np.int64), *added], axis=0)
    noise = [DiscreteGaussian.from_rho(r).rvs(draws, rng) for r in rho]
    priors = {"block": FiniteLaw.point(0), "rest of group": rest[0], "rest of tract": rest[1]}
    ratios = []
    for block, group, tract in (truth + noise).T.tolist():
        table["noisy_count"] = [tract, group, 0, block, 0]
        tree = Tree.from_frame(table)
        found = tree_posterior(tree, leaf_prior=[priors[str(tree.names[i])] for i in tree.leaves])
        ratios.append(found.pmf("block").loc[1] / prior)
    ratios = np.array(ratios)
    for limit in (0.6, 0.9, 1.3, 2.0):
        chance = law.exceeds(limit)
        # Five standard errors: a false alarm has probability 6e-7.
        assert abs((ratios > limit).mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / draws)
    assert abs(ratios.mean() - law.mean) < 5 * ratios.std() / math.sqrt(draws)


@pytest.mark.parametrize("rho", [[0.0992264, 0.2464845], [0.1, 0.25, 0.05]])
def test_what_is_known_is_the_law_without_others(rho):
    noise = Noise(rho=rho)
    known = risk_distribution(noise=noise, prior=0.1)
    limits = np.geomspace(0.2, 8.0, 40)
    for others in ([None] * len(rho), [*[None] * (len(rho) - 1), FiniteLaw.point(7)]):
        same = risk_distribution(noise=noise, prior=0.1, others=others)
        np.testing.assert_allclose(same.exceeds(limits), known.exceeds(limits), atol=1e-13)
        assert same.mean == pytest.approx(known.mean, rel=1e-12)


def test_who_knows_less_of_the_others_learns_less_on_average():
    noise, width = Noise(rho=[0.0992264, 0.2464845]), [1, 2, 5, 20, 200]
    laws = [
        risk_distribution(noise=noise, prior=0.1, others=[None, FiniteLaw(0, np.ones(n) / n)])
        for n in width
    ]
    means = [law.mean for law in laws]
    # The posterior of who knows less is a mean of posteriors of who knows more.
    assert means == sorted(means, reverse=True)
    assert means[0] == pytest.approx(
        float(multilevel_marginal_posterior(noise=noise, prior=0.1).ratio), rel=1e-12
    )
    block = risk_distribution(noise=Noise(rho=0.0992264), prior=0.1)
    assert block.mean < means[-1] < block.mean * 1.02  # the group tells nearly nothing


def test_over_the_prior_the_ratio_is_one_on_average():
    noise, others = Noise(rho=[0.3, 0.6, 0.2]), [None, law_of(THREE), law_of(FIVE)]
    laws = {
        given: risk_distribution(noise=noise, prior=0.1, given=given, others=others)
        for given in ("target", "other", "prior")
    }
    assert laws["prior"].mean == pytest.approx(1.0, rel=1e-12)
    limits = np.array([0.3, 0.9, 1.7])
    mixed = 0.1 * laws["target"].exceeds(limits) + 0.9 * laws["other"].exceeds(limits)
    np.testing.assert_allclose(laws["prior"].exceeds(limits), mixed, rtol=1e-12)


def test_much_noise_free_evidence_is_certainty():
    law = risk_distribution(
        noise=Noise(rho=[500.0, 900.0]), prior=0.25, others=[law_of(HALF), None]
    )
    # With the block's other person unknown, a count of 1 is the target or that person.
    assert law.mean == pytest.approx(0.5 * 4.0 + 0.5 * 1.0, rel=1e-12)
    assert law.exceeds([0.9, 1.1]) == pytest.approx([1.0, 0.5])


def test_arguments_are_checked():
    noise = Noise(rho=[0.3, 0.6])
    good = {"noise": noise, "prior": 0.1, "others": [None, law_of(THREE)]}

    def refused(match, kind=ArgumentError, **changes):
        with pytest.raises(kind, match=match):
            risk_distribution(**(good | changes))

    refused(
        "others must have one entry for each of 2 levels of noise, got 1", ShapeError, others=[None]
    )
    refused("others", ArgumentTypeError, others=[None, 3])
    refused("others must give no mass to negative", others=[None, FiniteLaw(-1, [0.5, 0.5])])
    refused("true_others belongs with others", others=None, true_others=[0, 3])
    refused("true_others must have one number", ShapeError, true_others=[3])
    refused("possible under others, got 5 at level 1", true_others=[0, 5])
    assert refuses(lambda bad: risk_distribution(**good, true_others=bad), "true_others", [0, -1])
    wide = FiniteLaw(0, np.ones(4000) / 4000)
    refused("at most 4194304 values", others=[wide, wide])
    told = risk_distribution(**good, true_others=[9, 3]).given
    assert told == "target, others 0, 3"


def test_what_is_left_out_is_bounded():
    noise, others = Noise(rho=[0.1, 0.3]), [law_of(HALF), law_of(FIVE)]
    fine, coarse = (
        risk_distribution(noise=noise, prior=0.1, others=others, left_out=cut)
        for cut in (1e-15, 1e-4)
    )
    ratio = np.geomspace(0.1, 9.0, 50)
    gap = np.abs(fine.exceeds(ratio) - coarse.exceeds(ratio))
    assert 1e-8 < gap.max() <= 1e-4
    assert 0.0 <= fine.mean - coarse.mean <= 1e-4 / 0.1

"""The law of the ratio from two levels against all releases one by one, and against draws."""

import math
from functools import partial

import numpy as np
import pytest
from oracles import two_levels as oracles

from bayesrisk import DiscreteGaussian, TwoLevels
from bayesrisk.distributions import FiniteLaw
from bayesrisk.exceptions import ArgumentError, IncompatibleConditionalsWarning, ShapeError
from bayesrisk.risk import risk_distribution

MODEL = {"m": 2, "a": 0.6, "b": 0.8, "p": 0.2, "k": 1}
REACH = (8, 7, 8)
PRIOR = FiniteLaw(0, [0.05, 0.1, 0.3, 0.25, 0.2, 0.1])


def question(group_prior=None, **changes):
    settings = {"n_siblings": 2, "rho_block": 0.6, "rho_group": 0.8, "prior": 0.2}
    settings |= {"known_count": 1, "group_prior": group_prior, "sibling_noise": "exact"}
    return TwoLevels(**(settings | changes))


def solver(group_prior, solve=oracles.coherent):
    if group_prior is None:
        table = dict.fromkeys(range(60), 0.0)
    else:
        table = {n: math.log(w) for n, w in enumerate(group_prior.probabilities)}
    noise = oracles.sum_pmf(0.6, 2, 40)
    return lambda y, n, S: solve(y, n, S, group_log_prior=table, noise=noise, **MODEL)[0]


@pytest.mark.parametrize("group_prior", [None, PRIOR])
@pytest.mark.parametrize(("group", "block"), [(3, 2), (3, 1), (1, 1)])
def test_against_all_releases_one_by_one(group_prior, group, block):
    law = question(group_prior).distribution(group, block_count=block)
    listed = oracles.ratio_law(group, block, solve=solver(group_prior), reach=REACH, **MODEL)
    ratios, weights = np.array(listed).T
    # What the list leaves out: noise beyond 8, 7 and 8, and triples of weight below 1e-16.
    missing = abs(1.0 - weights.sum()) + 1e-12
    for limit in np.quantile(ratios, np.linspace(0.02, 0.98, 15)) * (1 + 1e-7):
        assert law.exceeds(limit) == pytest.approx(weights[ratios > limit].sum(), abs=missing)
    assert law.mean == pytest.approx(ratios @ weights, abs=missing / 0.2)


def test_published_conditionals_are_listed_release_by_release():
    asked = question(sibling_noise="approximate", conditionals="as-published")
    with pytest.warns(IncompatibleConditionalsWarning):
        law = asked.distribution(3)
    with pytest.warns(IncompatibleConditionalsWarning):
        average = asked.average(3)
    assert law.mean == pytest.approx(float(average.value) / 0.2, rel=1e-10)
    table = dict.fromkeys(range(40), 0.0)
    solve = partial(oracles.published, group_log_prior=table, **MODEL)
    ratio = solve(2, 3, 1)[0] / 0.2
    below, above = law.cdf(ratio * (1 - 1e-6)), law.cdf(ratio * (1 + 1e-6))
    weight = float(DiscreteGaussian.from_rho(0.6).pmf(0) * DiscreteGaussian.from_rho(0.8).pmf(0))
    assert above - below >= weight * oracles.sum_pmf(0.6, 2, 8)[0] * (1 - 1e-9)


@pytest.mark.parametrize("group", [1, 2, 10])
def test_the_mean_is_that_of_the_average(group):
    asked = TwoLevels(n_siblings=27, rho_block=0.0992264, rho_group=0.2464845, prior=0.1)
    law = asked.distribution(group)
    assert law.mean == pytest.approx(float(asked.average(group).value) / 0.1, rel=1e-12)
    without = asked.distribution(group, block_count=0)
    there = float(asked.average(group, block_count=0).value)
    assert without.mean == pytest.approx((1.0 - there) / 0.1, rel=1e-11)


def test_against_drawn_releases():
    asked = TwoLevels(n_siblings=5, rho_block=0.0992264, rho_group=0.2464845, prior=0.1)
    law = asked.distribution(4)
    draws, rng = 40_000, np.random.default_rng(5)
    block, group = DiscreteGaussian.from_rho(0.0992264), DiscreteGaussian.from_rho(0.2464845)
    siblings = 3 + block.rvs((draws, 5), rng).sum(axis=1)
    ratio = asked.posterior(
        1 + block.rvs(draws, rng), 4 + group.rvs(draws, rng), siblings
    ).risk_ratio
    for limit in (0.6, 1.0, 1.4, 2.0):
        chance = law.exceeds(limit)
        # Six standard errors: a false alarm has probability 2e-9.
        assert abs((ratio > limit).mean() - chance) < 6 * math.sqrt(chance * (1 - chance) / draws)


def test_over_the_adversary_s_prior():
    law = question(PRIOR).distribution()
    weights = {
        (x, n): share * PRIOR.pmf(n)
        for x, share in ((1, 0.8), (2, 0.2))
        for n in range(6)
        if n >= x
    }
    total = math.fsum(weights.values())
    limits = np.array([0.2, 0.8, 1.1, 2.5])
    parts = [
        w / total * question(PRIOR).distribution(n, block_count=x).exceeds(limits)
        for (x, n), w in weights.items()
    ]
    np.testing.assert_allclose(law.exceeds(limits), np.sum(parts, axis=0), rtol=1e-11)
    # The posterior is on average the prior, which is p less where N leaves no room for the target.
    believed = math.fsum(w for (x, _), w in weights.items() if x == 2) / total
    assert law.mean == pytest.approx(believed / 0.2, rel=1e-12)


def test_silent_levels():
    block_only = question(rho_group=0.0).distribution(3)
    alone = risk_distribution(noise=DiscreteGaussian(0.5 / 0.6), prior=0.2)
    assert block_only.exceeds([0.5, 1.0, 2.0]) == pytest.approx(alone.exceeds([0.5, 1.0, 2.0]))
    nothing = question(rho_group=0.0, rho_block=0.0).distribution(3)
    assert nothing.exceeds([0.99, 1.01]).tolist() == [1.0, 0.0]


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="group_prior: the flat one is improper"):
        question().distribution()
    with pytest.raises(ArgumentError, match="block_count needs a group_count"):
        question(PRIOR).distribution(block_count=1)
    with pytest.raises(ArgumentError, match="group_count must be >= block_count, got 0"):
        question(PRIOR).distribution(0)
    with pytest.raises(ShapeError, match="one setting"):
        question().distribution([2, 3])
    with pytest.raises(ShapeError, match="one setting"):
        question(PRIOR, prior=[0.1, 0.2]).distribution()
    published = question(PRIOR, conditionals="as-published")
    with (
        pytest.warns(IncompatibleConditionalsWarning),
        pytest.raises(ArgumentError, match="group_count must be given"),
    ):
        published.distribution()

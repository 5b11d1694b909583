"""Simulation-based calibration: where truths are drawn from the prior, their ranks are uniform.

A truth is drawn from the prior, releases from the truth, and the posterior from the releases.  The
truth is then one more draw of that posterior, whatever the releases were: its rank among the
draws, ties broken by a fair coin, is uniform (Cook, Gelman and Rubin 2006; Talts, Betancourt,
Simpson, Vehtari and Gelman 2018, arXiv:1804.06788).  So is F(x - 1) + V f(x) of an exact posterior,
V uniform.

Every test of uniformity gives a false alarm with probability 1e-4, and its seed is fixed.  A
control must find a chain with one prior changed beyond 1e-9.
"""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from paths import path_posterior, sample_path
from scipy import stats

from bayesrisk import DiscreteGaussian, FiniteLaw, Tree, TwoLevels, sample_tree, tree_posterior
from bayesrisk.inference import target_posteriors

ALARM, FOUND = 1e-4, 1e-9
DRAWS, THIN, BINS = 99, 5, 20
P, K = 0.35, 1
GROUP = FiniteLaw(0, np.array([2, 3, 5, 6, 5, 4, 3, 2, 1, 1]) / 32)
TOP = FiniteLaw(2, np.array([1, 2, 4, 5, 6, 6, 5, 4, 3, 2, 2]) / 40)
LEAF = FiniteLaw(0, np.array([4, 3, 2, 1, 1, 1]) / 12)
WRONG = FiniteLaw(0, np.array([30, 3, 2, 1, 1, 1]) / 38)
STEEP = FiniteLaw(0, [0.4, 0.3, 0.1, 0.05, 0.05, 0.04, 0.03, 0.01, 0.01, 0.01])
RHO, SIBLINGS = [0.1, 0.12, 0.08], [2, 3]
TIMES = {"two levels": 500, "path": 500, "tree": 200, "tree and targets": 250}
SWEEPS = {"draws": DRAWS * THIN, "warmup": 30, "chains": 1, "threads": 1}


def noise(rho, size, rng):
    return DiscreteGaussian(0.5 / rho).rvs(size, rng)


def uniform_p(values):
    """Return the p-value of the chi-squared test of uniformity on (0, 1) in equal bins."""
    counts = np.histogram(values, bins=BINS, range=(0.0, 1.0))[0]
    assert counts.sum() / BINS >= 5  # the law of the statistic is close to its limit
    return stats.chisquare(counts).pvalue


def rank(truth, draws, rng):
    """Return where a truth is among thinned draws, as a number in (0, 1); a coin breaks ties."""
    kept = draws[THIN - 1 :: THIN]
    position = (kept < truth).sum() + rng.integers(0, (kept == truth).sum() + 1)
    return (position + 0.5) / (kept.size + 1)


def place(truth, pmf, rng):
    """Return F(x - 1) + V f(x) of a posterior given as probabilities by count."""
    below = float(pmf[pmf.index < truth].sum())
    return below + rng.random() * float(pmf.get(truth, 0.0))


def chance(there, probability, rng):
    """Return the same for what is true or not."""
    v = rng.random()
    return (1 - probability) + v * probability if there else v * (1 - probability)


# --- truths and releases -----------------------------------------------------------------------


def draw_path(rng, levels):
    """Draw counts of a path from P(X_0) times the priors, where each is at least the one below."""
    while True:
        counts = [K + int(rng.random() < P)]
        counts += [int(law.rvs(random_state=rng)) for law in (GROUP, TOP)[:levels]]
        if all(a <= b for a, b in pairwise(counts)):
            return counts


def path_releases(counts, rng):
    noisy = [x + int(noise(r, None, rng)) for x, r in zip(counts, RHO, strict=False)]
    totals = [
        above - below + int(noise(r, m, rng).sum())
        for below, above, m, r in zip(counts, counts[1:], SIBLINGS, RHO, strict=False)
    ]
    return noisy, totals


def path_arguments(group=GROUP):
    known = {"n_siblings": SIBLINGS, "rho": RHO, "prior": P, "known_count": K}
    return known | {"count_priors": [group, TOP]}


def two_levels(group=GROUP, prior=P):
    known = {"n_siblings": SIBLINGS[0], "rho_block": RHO[0], "rho_group": RHO[1], "known_count": K}
    return TwoLevels(**known, prior=prior, group_prior=group)


def draw_tree(rng):
    """Draw a tree of two groups with two leaves each, leaf a2 of known count but for a target."""
    leaf = [int(LEAF.rvs(random_state=rng)) for _ in range(4)]
    leaf[1] = K + int(rng.random() < P)
    counts = [sum(leaf), leaf[0] + leaf[1], leaf[2] + leaf[3], *leaf]
    return counts, [x + int(noise(0.1, None, rng)) for x in counts]


def tree_of(noisy, *, target=True):
    names = ["top", "A", "B", "a1", "a2", "b1", "b2"]
    parents = [None, "top", "top", "A", "A", "B", "B"]
    frame = pd.DataFrame({"node": names, "parent": parents, "noisy_count": noisy, "rho": 0.1})
    if target:
        frame["known_count"] = [np.nan] * 4 + [K] + [np.nan] * 2
        frame["prior"] = [np.nan] * 4 + [P] + [np.nan] * 2
    return Tree.from_frame(frame)


# --- exact engines -----------------------------------------------------------------------------


def two_level_places(times, seed, **settings):
    rng, found = np.random.default_rng(seed), []
    question = two_levels(**settings)
    for _ in range(times):
        counts = draw_path(rng, 1)
        (block, group), (siblings,) = path_releases(counts, rng)
        answer = question.posterior(block, group, siblings)
        there = chance(counts[0] > K, float(answer.target_probability), rng)
        found.append((there, place(counts[1], answer.group_pmf, rng)))
    return np.array(found).T


def path_places(times, seed, **settings):
    rng, found = np.random.default_rng(seed), []
    for _ in range(times):
        counts = draw_path(rng, 2)
        path = path_posterior(*path_releases(counts, rng), **path_arguments(**settings))
        found.append([place(x, path.pmf(i), rng) for i, x in enumerate(counts)])
    return np.array(found).T


def tree_places(times, seed, leaf=LEAF):
    rng, found = np.random.default_rng(seed), []
    for _ in range(times):
        counts, noisy = draw_tree(rng)
        tree = tree_of(noisy)
        whole = tree_posterior(tree, leaf_prior=leaf)
        row = [place(x, whole.pmf(name), rng) for x, name in zip(counts, tree.names, strict=True)]
        risk = target_posteriors(tree, leaf_prior=leaf)
        row.append(chance(counts[4] > K, float(risk.posterior[0]), rng))
        found.append(row)
    return np.array(found).T


EXACT = {"two levels": two_level_places, "path": path_places, "tree and targets": tree_places}


@pytest.mark.parametrize("engine", EXACT)
def test_exact_posteriors_are_calibrated(engine):
    for i, values in enumerate(EXACT[engine](TIMES[engine], 20)):
        assert uniform_p(values) > ALARM, (engine, i)


@pytest.mark.parametrize(
    ("engine", "changed", "row"),
    [
        ("two levels", {"group": STEEP}, 1),
        ("two levels", {"prior": 0.7}, 0),
        ("path", {"group": STEEP}, 1),
        ("tree and targets", {"leaf": WRONG}, 0),
    ],
)
def test_a_changed_prior_is_found_in_exact_posteriors(engine, changed, row):
    values = EXACT[engine](TIMES[engine], 20, **changed)
    assert uniform_p(values[row]) < FOUND


# --- samplers ----------------------------------------------------------------------------------


def two_level_ranks(times, seed, **settings):
    rng, found = np.random.default_rng(seed), []
    question = two_levels(**settings)
    for i in range(times):
        counts = draw_path(rng, 1)
        (block, group), (siblings,) = path_releases(counts, rng)
        samples = question.sample(block, group, siblings, rng=i, **SWEEPS)
        found.append([rank(x, samples.counts[0, :, j], rng) for j, x in enumerate(counts)])
    return np.array(found).T


def path_ranks(times, seed, **settings):
    rng, found = np.random.default_rng(seed), []
    for i in range(times):
        counts = draw_path(rng, 2)
        releases = path_releases(counts, rng)
        samples = sample_path(*releases, **path_arguments(**settings), rng=i, **SWEEPS)
        found.append([rank(x, samples.counts[0, :, j], rng) for j, x in enumerate(counts)])
    return np.array(found).T


def tree_ranks(times, seed, leaf=LEAF):
    rng, found = np.random.default_rng(seed), []
    target = FiniteLaw(K, [1 - P, P])
    for i in range(times):
        counts, noisy = draw_tree(rng)
        tree = tree_of(noisy, target=False)
        priors = [target if name == "a2" else leaf for name in tree.names[tree.leaves]]
        samples = sample_tree(tree, leaf_prior=priors, rng=i, **SWEEPS)
        found.append([rank(x, samples.counts[0, :, j], rng) for j, x in enumerate(counts)])
    return np.array(found).T


CHAINS = {"two levels": two_level_ranks, "path": path_ranks, "tree": tree_ranks}


@pytest.mark.parametrize("sampler", CHAINS)
def test_chains_are_calibrated(sampler):
    for i, values in enumerate(CHAINS[sampler](TIMES[sampler], 30)):
        assert uniform_p(values) > ALARM, (sampler, i)


@pytest.mark.parametrize(
    ("sampler", "changed", "row"),
    [
        ("two levels", {"group": STEEP}, 1),
        ("path", {"group": STEEP}, 1),
        ("tree", {"leaf": WRONG}, 0),
    ],
)
def test_a_changed_prior_is_found_in_chains(sampler, changed, row):
    values = CHAINS[sampler](TIMES[sampler], 30, **changed)
    assert uniform_p(values[row]) < FOUND

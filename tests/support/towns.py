"""Made-up towns whose beliefs are found by listing every possible place.

A place has some 14 people of four races, which a Dirichlet-multinomial law draws; how many people
live there is known.  What is published of their numbers is written here once more, without the
package: a setting is a tuple of a kind and its numbers.
"""

import functools
import itertools

import numpy as np
import pandas as pd

RACES, TOGETHER = 4, 6.0  # races, and the concentration of the prior
SHARES = np.array([0.4, 0.3, 0.2, 0.1])


@functools.cache
def places(people):
    """Return every histogram of so many people, and the logarithm of its prior probability."""
    cuts = np.array(list(itertools.combinations(range(people + RACES - 1), RACES - 1)))
    ends = np.hstack(
        [np.full((len(cuts), 1), -1), cuts, np.full((len(cuts), 1), people + RACES - 1)]
    )
    counts = np.diff(ends, axis=1) - 1
    alpha, prior = TOGETHER * SHARES, np.zeros(len(counts))
    for race in range(RACES):
        # log of Gamma(alpha + x) / (Gamma(alpha) x!), term by term
        terms = np.log((alpha[race] + np.arange(people)) / np.arange(1, people + 1))
        prior += np.concatenate([[0.0], np.cumsum(terms)])[counts[:, race]]
    return counts, prior


def draw_town(rng, number=16):
    """Return the histograms of the places of a town."""
    found = []
    for _ in range(number):
        theta = rng.dirichlet(TOGETHER * SHARES)
        found.append(rng.multinomial(int(rng.integers(8, 15)), theta))
    return found


# What is published of the numbers of people by race, and how probable that is.


def groups_of(setting, counts):
    """Return the numbers of the cells that are published: of races, or of merged ones."""
    if setting[0] != "merged":
        return counts
    return np.stack([counts[..., list(g)].sum(axis=-1) for g in setting[1]], axis=-1)


def answer(setting, counts):
    """Return what is published for counts where chance has no part in it."""
    kind, *more = setting
    if kind == "ranges":
        return np.searchsorted(more[0], counts, side="right")
    if kind == "threshold":
        return np.where((counts > 0) & (counts < more[0]), -1, counts)
    if kind == "nearest":
        return np.floor(counts / more[0] + 0.5).astype(int)
    return groups_of(setting, counts)


@functools.cache
def noise(kind, scale):
    """Return noise of a law from -80 to 80: exp of a square, or of an absolute value."""
    x = np.arange(-80, 81)
    weight = np.exp(-(x**2) / (2.0 * scale) if kind == "gauss" else -np.abs(x) / scale)
    return x, weight / weight.sum()


def publish(setting, counts, rng):
    """Return one release of a place."""
    kind, *more = setting
    if kind == "both":
        return [publish(one, counts, rng) for one in more]
    if kind in ("gauss", "laplace"):
        values, chance = noise(kind, more[0])
        return counts + rng.choice(values, size=counts.shape, p=chance)
    if kind == "random":
        below, rest = np.divmod(counts, more[0])
        return (below + (rng.integers(more[0], size=counts.shape) < rest)) * more[0]
    return answer(setting, counts)


def log_likelihood(setting, release, counts):
    """Return the logarithm of the probability of a release for each of many histograms."""
    kind, *more = setting
    if kind == "both":
        return sum(log_likelihood(one, r, counts) for one, r in zip(more, release, strict=True))
    with np.errstate(divide="ignore"):
        if kind in ("gauss", "laplace"):
            values, chance = noise(kind, more[0])
            off = np.clip(release - counts, values[0], values[-1])
            return np.log(chance[off - values[0]]).sum(axis=1)
        if kind == "random":
            share = 1.0 - np.abs(release - counts) / more[0]
            return np.log(np.maximum(share, 0.0)).sum(axis=1)
        return np.log((answer(setting, counts) == release).all(axis=1).astype(float))


def expected(setting, release, people):
    """Return the mean histogram of a place of so many people, given a release."""
    counts, prior = places(people)
    weight = prior + log_likelihood(setting, release, counts)
    weight = np.exp(weight - weight.max())
    return weight @ counts / weight.sum()


def randomised(setting):
    kind, *more = setting
    return kind in ("gauss", "laplace", "random") or (kind == "both" and any(map(randomised, more)))


def targets_of(town, setting, name, *, releases=8, seed=1):
    """Return the targets of an audit: what an outsider believes of everybody under each release."""
    random, lines = randomised(setting), []
    for number in range(releases if random else 1):
        for place, truth in enumerate(town):
            people, seeds = int(truth.sum()), (seed, number, place)
            release = publish(setting, truth, np.random.default_rng(seeds))
            after = expected(setting, release, people) / people
            for race in np.flatnonzero(truth):
                others = truth - (np.arange(RACES) == race)
                # Without a record what is released is less that record, from the same chance.
                less = publish(setting, others, np.random.default_rng(seeds))
                known = expected(setting, less, people - 1)
                share = TOGETHER * SHARES
                without = (share[race] + known[race]) / (TOGETHER + people - 1)
                line = {
                    "release": number, "place": str(place), "truth_prior": SHARES[race],
                    "truth_without": without, "truth_posterior": after[race],
                    "certain_posterior": after[race] > 1.0 - 1e-12,
                    "certain_without": without > 1.0 - 1e-12,
                }  # fmt: skip
                lines += [line | {"target": f"{place} {race} {i}"} for i in range(truth[race])]
    about = {
        "protection": name, "attack": "likelihood", "adversary": "outsider", "randomised": random,
        "status": "calculated", "error": 0.0, "false": False, "place_size": 14, "alike": 1,
        "nonmodal": False, "brier": 0.5, "right_prior": 0.5, "right_without": 0.5,
        "right_posterior": 0.5,
    }  # fmt: skip
    return pd.DataFrame(lines).assign(**about)

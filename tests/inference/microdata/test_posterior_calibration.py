"""Statements of probability q are true a share q of the time, for records drawn from the prior."""

from dataclasses import replace

import numpy as np
import pytest
from random_places import KINDS, place, score, town
from scipy import stats

from bayesrisk.inference import RecordQuestion, microdata_posterior


def outcomes(kind, seeds):
    """Return for each place and each known sex: probability of age 1, people, those of age 1."""
    rows = []
    for seed in seeds:
        release, prior, _, truth = place(seed, kind)
        schema = prior.schema
        first, last = schema.names[0], schema.names[-1]
        index = np.indices(schema.shape).reshape(len(schema.shape), -1)
        asked, groups = [], []
        for code in range(schema.shape[0]):
            group = truth[0][index[0] == code].sum()
            if group:
                asked.append(RecordQuestion({last: [1]}, among={first: [code]}))
                hit = truth[0][(index[0] == code) & (index[-1] == 1)].sum()
                groups.append((group, hit))
        if not asked:
            continue
        found = microdata_posterior(
            release, asked, level="block", place="100", prior=prior, engine="exact"
        )
        for (group, hit), q in zip(groups, found.answers["posterior"], strict=True):
            rows.append((q, group, hit))
    return np.array(rows)


@pytest.mark.slow
def test_the_posterior_is_calibrated_and_a_sharper_one_is_not():
    rows = np.concatenate([outcomes(kind, range(1000, 1300)) for kind in KINDS])
    q, group, hit = rows.T
    open_ = (q > 0.0) & (q < 1.0)
    assert np.array_equal(hit[~open_], (q * group)[~open_])  # what is certain is true
    q, group, hit = q[open_], group[open_], hit[open_]
    assert q.size > 500
    assert abs(score(q, group, hit)) < 4.0
    sharp = q**2.0 / (q**2.0 + (1.0 - q) ** 2.0)
    assert score(sharp, group, hit) < -4.0


def ranks(engine, seeds, wrong=False):
    """Return where true counts lie among those of the posterior, in (0, 1), ties by a coin.

    If ``wrong``, the adversary is sure of the shares of other kinds of people.
    """
    rng, found = np.random.default_rng(7), []
    for seed in seeds:
        release, prior, x = town(seed, 2, together=True)
        if wrong:
            prior = replace(prior, shares=prior.shares[[1, 0, 3, 2, 5, 4, 7, 6]], concentration=1e3)
        codes = [(s, a) for s in range(2) for a in (0, 1)]
        where = [{"sex": [s], "age": [a, a + 2]} for s, a in codes]
        truth = [x[0].reshape(2, 4)[s, [a, a + 2]].sum() for s, a in codes]
        common = {"level": "tract", "place": "1", "prior": prior, "engine": engine}
        if engine == "exact":
            asked = [
                RecordQuestion(w, place="1000", at_least=k) for w in where for k in range(1, 7)
            ]
            above = microdata_posterior(release, asked, **common).answers["posterior"]
            above = np.column_stack([np.ones(4), above.to_numpy().reshape(4, 6)])
            for row, t in zip(above, truth, strict=True):
                found.append(1.0 - row[t] + rng.random() * (row[t] - row[t + 1]))
            continue
        asked = [RecordQuestion(w, place="1000") for w in where]
        sizes = {"rng": seed, "draws": 66, "chains": 3, "doublings": 0}
        drawn = microdata_posterior(release, asked, **common, **sizes).samples
        for question, t in zip(asked, truth, strict=True):
            kept = drawn.of(str(question))[:, ::2].ravel()
            at = (kept < t).sum() + rng.integers(0, (kept == t).sum() + 1)
            found.append((at + 0.5) / (kept.size + 1))
    return np.array(found).reshape(len(seeds), -1)


def uniform_p(values):
    return stats.chisquare(np.histogram(values, bins=10, range=(0.0, 1.0))[0]).pvalue


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["exact", "people", "lattice"])
def test_ranks_of_true_counts_are_uniform(engine):
    """Simulation-based calibration; a false alarm of any of four has a probability of 4e-4."""
    found = ranks(engine, range(5000, 5200))
    assert min(uniform_p(column) for column in found.T) > 1e-4


@pytest.mark.slow
def test_ranks_under_a_wrong_prior_are_not_uniform():
    found = ranks("exact", range(5000, 5200), wrong=True)
    assert min(uniform_p(column) for column in found.T) < 1e-9

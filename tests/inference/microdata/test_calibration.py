"""Statements of probability q are true a share q of the time, for records drawn from the prior."""

import numpy as np
import pytest
from random_places import KINDS, place

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


def score(q, group, hit):
    """Return the standardised excess of true statements where q is above a half, less below it."""
    excess = np.sign(q - 0.5) * (hit - q * group)
    return float(excess.sum() / np.sqrt((excess**2).sum()))


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

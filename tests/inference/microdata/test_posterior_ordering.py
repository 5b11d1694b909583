"""What theory says: more tables and less noise teach more, and nothing more than epsilon."""

import math

import numpy as np
import pytest
from oracles import record_law as oracle
from random_places import one_block

from bayesrisk.inference import KnownRecords, RecordQuestion, microdata_posterior
from bayesrisk.release import NoiseSpec, TrueCounts

MOST = 2
ASKED = [RecordQuestion({"kind": [0]}, at_least=1)]


def everybody():
    """Return every histogram of up to two people with its prior probability."""
    size = np.full(MOST + 1, 1.0 / (MOST + 1))
    return [(x, w) for w, (x,) in oracle.posterior(1, 3, [1 / 3] * 3, None, size, [])]


def score(law, weights, releases, chance):
    """Return the expected log score of the question, over every release."""
    total = reached = 0.0
    for released in releases:
        probability = math.fsum(w * chance(released, weights @ x) for x, w in everybody())
        if probability < 1e-9:
            continue
        release, prior = one_block(law, list(released), weights, MOST)
        p = microdata_posterior(
            release, ASKED, level="block", place="1", prior=prior, engine="exact"
        ).answers["posterior"][0]
        reached += probability
        total += probability * sum(q * math.log(q) for q in (p, 1.0 - p) if q > 0.0)
    assert reached > 1.0 - 1e-6  # log scores of what is left out are at most log 2 below 0
    return total


def test_more_tables_never_teach_less():
    found = []
    for rows in ([[1, 1, 1]], [[1, 1, 1], [1, 1, 0]], [[1, 1, 1], [1, 1, 0], [1, 0, 0]]):
        weights = np.array(rows)
        releases = {tuple(int(v) for v in weights @ x) for x, _ in everybody()}
        exact = score(TrueCounts(), weights, releases, lambda r, s: float(tuple(s.tolist()) == r))
        found.append(exact)
    assert found[0] < found[1] < found[2] == pytest.approx(0.0, abs=1e-12)


def test_more_noise_never_teaches_more():
    weights, found = np.array([[1, 0, 0]]), []
    for scale in ("1/2", 1, 2):
        b = float(NoiseSpec("discrete-laplace", scale).scale)
        norm = math.tanh(1 / (2 * b))
        reach = math.ceil(b * 16) + MOST
        found.append(
            score(
                NoiseSpec("discrete-laplace", scale),
                weights,
                [(r,) for r in range(-reach, reach + 1)],
                lambda r, s, b=b, norm=norm: norm * math.exp(-abs(r[0] - int(s[0])) / b),
            )
        )
    assert found[0] > found[1] + 1e-3 > found[2] + 2e-3


@pytest.mark.parametrize("scale", [1, 3])
def test_who_knows_all_others_learns_no_more_than_epsilon(scale):
    # One record changes the only count by 1 at most: epsilon is 1 / scale.
    law, largest = NoiseSpec("discrete-laplace", scale), 0.0
    known = [KnownRecords({"kind": [0]}), KnownRecords({"kind": [1]})]
    known.append(KnownRecords({}, 3, "exactly"))
    for released in range(-4, 8):
        release, prior = one_block(law, [released], np.array([[1, 0, 0]]), 6)
        asked = [RecordQuestion({"kind": [k]}, among={}) for k in range(3)]
        found = microdata_posterior(
            release, asked, level="block", place="1", prior=prior, known=known
        ).answers
        ratio = np.abs(np.log(found["posterior"] / found["prior"])).max()
        assert ratio <= 1 / scale + 1e-12
        largest = max(largest, ratio)
    assert largest > 0.6 / scale  # the bound is nearly needed

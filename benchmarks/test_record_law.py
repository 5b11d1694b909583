"""The law of the records of a place: points weighed and proposals made, against plain loops."""

import itertools
import math

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bayesrisk import MechanismSpec, PublishedTables, Records, Release, Schema, Workload, tabulate
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.release import NoiseSpec, TrueCounts
from bayesrisk.tables import Attribute, Geography, Table

SIZES = {"sex": 2, "age": 4}


def noisy_block(people):
    """Return a release of one block: its number of people as it is, three tables with noise."""
    attributes = tuple(Attribute(name, size) for name, size in SIZES.items())
    schema = Schema("people", attributes, Geography("towns", ("block",), (1,)))
    eye = {name: np.eye(size, dtype=np.int64) for name, size in SIZES.items()}
    both = {"sex": np.repeat(eye["sex"], 4, axis=0), "age": np.tile(eye["age"], (2, 1))}
    factors = {"total": {}, "sex": {"sex": eye["sex"]}, "age": {"age": eye["age"]}, "both": both}
    tables = {}
    for name, factor in factors.items():
        cells = max((len(f) for f in factor.values()), default=1)
        tables["block", name] = Table(name, tuple(f"{name}{q}" for q in range(cells)), factor)
    workload = Workload(schema, tables)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({name: rng.integers(size, size=people) for name, size in SIZES.items()})
    published = tabulate(Records.from_frame(frame.assign(block="1"), schema=schema), workload)
    noise, counts = NoiseSpec("discrete-gaussian", 2), {}
    laws = {key: TrueCounts() if key[1] == "total" else noise for key in tables}
    for key, matrix in published.counts.items():
        drawn = 0 if laws[key].exact else noise.to_law().rvs(matrix.shape, random_state=rng)
        counts[key] = sp.csr_array(matrix.toarray() + drawn)
    release = Release(
        MechanismSpec("some", {}, laws), PublishedTables(workload, published.geoids, counts)
    )
    return release, RecordPrior.uniform_data_sets(schema)


def plain_enumeration(release, people):
    """Return P(somebody is of sex 0 and age 0): every histogram, one after another."""
    count = {key[1]: m.toarray()[0] for key, m in release.tables.counts.items()}
    total = hit = 0.0
    for bars in itertools.combinations(range(people + 7), 7):
        edges = (-1, *bars, people + 7)
        x = [b - a - 1 for a, b in itertools.pairwise(edges)]
        value = -sum(math.lgamma(k + 1) for k in x)
        for q in range(8):
            value -= (count["both"][q] - x[q]) ** 2 / 4
        for s in range(2):
            value -= (count["sex"][s] - sum(x[4 * s : 4 * s + 4])) ** 2 / 4
        for a in range(4):
            value -= (count["age"][a] - x[a] - x[a + 4]) ** 2 / 4
        weight = math.exp(value)
        total += weight
        hit += weight * (x[0] > 0)
    return hit / total


def test_points(compare):
    people = 12
    release, prior = noisy_block(people)
    asked = [RecordQuestion({"sex": [0], "age": [0]}, at_least=1)]
    common = {"level": "block", "place": "1", "prior": prior, "engine": "exact"}

    def ours():
        return microdata_posterior(release, asked, **common)

    found = ours()
    assert found.points == math.comb(people + 7, 7)
    slow = plain_enumeration(release, people)
    assert abs(found.answers["posterior"][0] - slow) < 1e-9
    compare(
        ours,
        lambda: plain_enumeration(release, people),
        aim="at least 100 times faster, 1e7 points a second",
        ours_units=found.points,
        twin_units=found.points,
        rounds=3,
    )


def plain_chain(release, people, proposals, rng):
    """Redraw one person after another, with NumPy; return draws of the first kind's number."""
    count = {key[1]: m.toarray()[0] for key, m in release.tables.counts.items()}
    kinds = rng.integers(8, size=people)
    x = np.bincount(kinds, minlength=8)

    def log_likelihood(x):
        table = x.reshape(2, 4)
        value = ((count["both"] - x) ** 2).sum() + ((count["sex"] - table.sum(axis=1)) ** 2).sum()
        return -(value + ((count["age"] - table.sum(axis=0)) ** 2).sum()) / 4

    here, draws = log_likelihood(x), np.empty(proposals, dtype=int)
    for step in range(proposals):
        person, kind = rng.integers(people), rng.integers(8)
        other = x.copy()
        other[kinds[person]] -= 1
        other[kind] += 1
        there = log_likelihood(other)
        if math.log(rng.random()) < there - here:
            kinds[person], x, here = kind, other, there
        draws[step] = x[0]
    return draws


def test_proposals(compare):
    people, draws, slow = 40, 1000, 20_000
    release, prior = noisy_block(people)
    asked = [RecordQuestion({"sex": [0], "age": [0]})]
    common = {"level": "block", "place": "1", "prior": prior, "engine": "people"}

    def ours():
        return microdata_posterior(release, asked, **common, rng=1, draws=draws, chains=2)

    assert ours().answers["status"].tolist() == ["sampled"]
    compare(
        ours,
        lambda: plain_chain(release, people, slow, np.random.default_rng(1)),
        aim="at least 50 times faster, 3e6 proposals a second",
        ours_units=2 * 2 * draws * 1000,
        twin_units=slow,
        rounds=3,
    )

"""The law of the records of a place, against complete enumeration."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles import record_law as oracle
from random_places import COARSE, KINDS, WIDE, place, questions

from bayesrisk import MechanismSpec, PublishedTables, Records, Release, Workload, tabulate
from bayesrisk.inference import RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.inference.microdata.posterior import record_law
from bayesrisk.inference.microdata.system import make_system
from bayesrisk.release import NoiseSpec
from bayesrisk.tables import Attribute, Geography, Schema, Table


def check(seed, kind, n_places):
    release, prior, terms, _ = place(seed, kind, n_places)
    law = oracle.posterior(*terms)
    asked = questions(prior.schema, n_places)
    expected = oracle.answers(law, prior.schema, asked)
    asked = [q for q, value in zip(asked, expected, strict=True) if not math.isnan(value)]
    expected = [value for value in expected if not math.isnan(value)]
    level = "block" if n_places == 1 else "tract"
    where = release.tables.geoids[level][0]
    found = microdata_posterior(
        release, asked, level=level, place=where, prior=prior, engine="exact"
    )
    np.testing.assert_allclose(found.answers["posterior"], expected, rtol=1e-9, atol=1e-12)
    check_means(make_system(release, level=level, place=where, prior=prior), law)


def check_means(system, law):
    """Compare the mean numbers of records of all classes, which audits use."""
    found = record_law(system, rng=1)
    assert found.engine == "exact"
    means = np.where(found.group >= 0, found.weight * np.append(found.mean, 0.0)[found.group], 0.0)
    cells = system.classes.labels(np.arange(system.prior.schema.size))
    expected = np.zeros(means.shape)
    for w, places in law:
        for p, x in enumerate(places):
            np.add.at(expected, p * system.classes.size + cells, w * np.array(x))
    np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-9)


def cases():
    """Return kinds, numbers of places and seeds; with those of which something is known, 2,000."""
    for kind in (*KINDS, COARSE):
        yield kind, 1, range(8), range(100, 180)
        yield kind, 2, range(3), range(100, 120)
    yield WIDE, 1, range(50), range(100, 1200)
    yield WIDE, 2, range(12), range(100, 400)


@pytest.mark.parametrize(
    ("kind", "n_places", "seeds"),
    [case[:3] for case in cases()]
    + [pytest.param(*case[:2], case[3], marks=pytest.mark.slow) for case in cases()],
)
def test_the_exact_engine_agrees_with_enumeration(kind, n_places, seeds):
    for seed in seeds:
        check(seed, kind, n_places)


def two_tables(scale):
    """Return a release of sex by age and age by race of 15 people with noise, and what is asked."""
    schema = Schema(
        "people",
        (Attribute("sex", 2), Attribute("age", 2), Attribute("race", 3)),
        Geography("towns", ("block",), (1,)),
    )
    rng = np.random.default_rng(5)
    tables = {}
    for one, other in (("sex", "age"), ("age", "race")):
        sizes = schema.attribute(one).size, schema.attribute(other).size
        eyes = {one: np.repeat(np.eye(sizes[0], dtype=int), sizes[1], axis=0),
                other: np.tile(np.eye(sizes[1], dtype=int), (sizes[0], 1))}  # fmt: skip
        names = tuple(f"{one}{i}{other}{j}" for i in range(sizes[0]) for j in range(sizes[1]))
        tables["block", one + other] = Table(one + other, names, eyes)
    workload = Workload(schema, tables)
    people = pd.DataFrame({"block": "1", "sex": rng.integers(2, size=15),
                           "age": rng.integers(2, size=15),
                           "race": rng.choice(3, size=15, p=[0.7, 0.2, 0.1])})  # fmt: skip
    true = tabulate(Records.from_frame(people, schema=schema), workload)
    law = NoiseSpec("discrete-gaussian", scale)
    counts = {
        key: sp.csr_array(m.toarray() + law.to_law().rvs(m.shape, random_state=rng))
        for key, m in true.counts.items()
    }
    published = PublishedTables(workload, true.geoids, counts)
    release = Release(MechanismSpec("some", {}, dict.fromkeys(tables, law)), published)
    asked = [
        RecordQuestion({"race": [r]}, among={"sex": [s], "age": [a]})
        for s in range(2) for a in range(2) for r in range(3)
        if ((people["sex"] == s) & (people["age"] == a)).any()
    ]  # fmt: skip
    prior = RecordPrior.composition(
        schema, np.full(12, 1.0), concentration=9.0, size=np.full(31, 1.0 / 31.0)
    )
    return release, asked, {"level": "block", "place": "1", "prior": prior}


@pytest.mark.parametrize("scale", ["1/1000", "1/100"])
def test_near_exact_noise_answers_as_exact_counts_do(scale):
    release, asked, about = two_tables(scale)
    exact, _, _ = two_tables("1/100000")  # noise that is never there
    true = microdata_posterior(exact, asked, **about).answers
    found = microdata_posterior(release, asked, **about).answers
    assert found["status"].eq("exact").all()
    np.testing.assert_allclose(found["posterior"], true["posterior"], atol=1e-12)
    certain = np.isin(true["posterior"], [0.0, 1.0])
    assert certain.any()
    assert not certain.all()
    systems = [make_system(one, **about) for one in (release, exact)]
    laws = [record_law(system) for system in systems]
    assert laws[0].engine == "exact"
    np.testing.assert_allclose(laws[0].mean, laws[1].mean, atol=1e-12)


@pytest.mark.parametrize("apart", [19, 20, 21, 60])
def test_noisy_counts_that_contradict_each_other_are_weighed_as_far_as_it_takes(apart):
    """One number, counted as 0 and as ``apart``: what is likely is unlikely under either count."""
    schema = Schema("people", (Attribute("a", 2),), Geography("towns", ("block",), (1,)))
    law = NoiseSpec("discrete-gaussian", 1)
    tables = {("block", name): Table(name, (name,), {"a": np.array([[1, weight]])})
              for name, weight in (("one", 0), ("other", 1))}  # fmt: skip
    counts = {key: sp.csr_array([[y]]) for key, y in zip(tables, (0, apart), strict=True)}
    published = PublishedTables(Workload(schema, tables), {"block": ["1"]}, counts)
    release = Release(MechanismSpec("some", {}, dict.fromkeys(tables, law)), published)
    size = np.full(apart + 2, 1.0 / (apart + 2.0))
    prior = RecordPrior(schema, np.array([1.0, 0.0]), 3.0, size, name="nobody of the other kind")
    n = np.arange(size.size)
    weight = np.exp(-(n**2) / 2 - (apart - n) ** 2 / 2 + apart**2 / 4)
    least = range(apart // 2 - 1, apart // 2 + 4)
    asked = [RecordQuestion({"a": [0]}, at_least=m) for m in least]
    about = {"level": "block", "place": "1", "prior": prior, "engine": "exact"}
    found = microdata_posterior(release, asked, **about).answers["posterior"]
    expected = [weight[n >= m].sum() / weight.sum() for m in least]
    assert min(expected) > 1e-6
    np.testing.assert_allclose(found, expected, rtol=1e-9)

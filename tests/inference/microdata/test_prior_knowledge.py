"""What is known beyond the release, against enumeration of lists of people."""

import math

import numpy as np
import pandas as pd
import pytest
from oracles import record_law as oracle
from oracles.record_law import answers, fulfil
from random_places import COARSE, KINDS, WIDE, one_block, place, questions

from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference import KnownRecords, RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.release import NoiseSpec, TrueCounts


def knowledge(seed, prior, truth, disjoint):
    """Return true knowledge of random people, and what the oracle needs."""
    rng = np.random.default_rng(seed)
    schema, known, people, exactly = prior.schema, [], [], []
    for p, x in enumerate(truth):
        where, own, sums = f"1{p:02d}", [], []
        lists = rng.permutation(np.repeat(np.arange(x.size), x))
        share = 1.0 if rng.random() < 0.2 else 0.5
        for cell in lists[rng.random(lists.size) < share]:
            codes = np.unravel_index(cell, schema.shape)
            condition = {a: [int(c)] for a, c in zip(schema.names, codes, strict=True)}
            in_full = prior.concentration is not None or rng.random() < 0.5
            if not in_full:
                del condition[schema.names[int(rng.integers(len(schema.names)))]]
            own.append((np.flatnonzero(fulfil(condition, schema)).tolist(), in_full))
            known.append(KnownRecords(condition, 1, "at least", where))
        for name in schema.names[: 1 if disjoint else 2]:
            if rng.random() < 0.5:
                code = int(rng.integers(schema.attribute(name).size))
                kinds = fulfil({name: [code]}, schema)
                known.append(KnownRecords({name: [code]}, int(x[kinds].sum()), "exactly", where))
                sums.append((set(np.flatnonzero(kinds).tolist()), int(x[kinds].sum())))
        people.append(own)
        exactly.append(sums)
    return known, people, exactly


def case(seed, kind, n_places, disjoint=False):
    release, prior, terms, truth = place(seed, kind, n_places)
    known, people, exactly = knowledge([seed, n_places], prior, truth, disjoint)
    law = oracle.with_known_people(*terms, people, exactly)
    asked = questions(prior.schema, n_places)
    expected = answers(law, prior.schema, asked)
    before = answers(
        oracle.with_known_people(*terms[:-1], [], people, exactly), prior.schema, asked
    )
    kept = [i for i, value in enumerate(expected) if not math.isnan(value)]
    level = "block" if n_places == 1 else "tract"
    common = {
        "questions": [asked[i] for i in kept],
        "level": level,
        "place": release.tables.geoids[level][0],
        "prior": prior,
        "known": known,
    }
    return release, common, [expected[i] for i in kept], [before[i] for i in kept]


@pytest.mark.parametrize(
    ("n_places", "seeds"),
    [
        (1, range(40)),
        (2, range(10)),
        pytest.param(1, range(100, 600), marks=pytest.mark.slow),
        pytest.param(2, range(100, 200), marks=pytest.mark.slow),
    ],
)
def test_knowledge_and_all_kinds_of_publication_agree_with_enumeration(n_places, seeds):
    for seed in seeds:
        release, common, expected, _ = case(seed, WIDE, n_places)
        found = microdata_posterior(release, **common, engine="exact").answers
        np.testing.assert_allclose(found["posterior"], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_places", [1, 2])
@pytest.mark.parametrize("kind", [*KINDS, COARSE])
def test_what_is_known_agrees_with_lists_of_people(kind, n_places):
    told = 0
    for seed in range(200, 212 if n_places == 1 else 204):
        release, common, expected, before = case(seed, kind, n_places)
        found = microdata_posterior(release, **common, engine="exact").answers
        np.testing.assert_allclose(found["posterior"], expected, rtol=1e-9, atol=1e-12)
        prior = found["prior"].to_numpy()
        told += np.isfinite(prior).sum()
        np.testing.assert_allclose(
            prior, np.where(np.isnan(prior), np.nan, before), rtol=1e-9, atol=1e-12
        )
    assert told > 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["people", "lattice"])
def test_chains_with_knowledge_agree_with_lists_of_people(engine):
    z = []
    for seed, n_places in [(s, n) for s in range(300, 312) for n in (1, 2)]:
        release, common, expected, _ = case(seed, "noisy", n_places, disjoint=True)
        found = microdata_posterior(release, **common, engine=engine, rng=seed, doublings=0).answers
        for a, b in zip(found.itertuples(), expected, strict=True):
            if a.status == "sampled" and a.error > 0.0:
                if b > 1.0 or min(b, 1.0 - b) * a.ess > 30:
                    z.append((a.posterior - b) / a.error)
            elif a.status != "undecided":
                assert abs(a.posterior - b) < 60 / a.ess if np.isfinite(a.ess) else 1e-9
    z = np.array(z)
    assert z.size >= 20
    assert np.abs(z).max() < 4.5
    assert np.mean(z**2) < 2.0


def test_who_knows_everybody_but_the_target_has_the_closed_form():
    # One of three kinds, all with equal shares; every count has noise of its own.
    release, prior = one_block(
        NoiseSpec("discrete-gaussian", 2), [3, 1, 0], np.eye(3, dtype=int), 6
    )
    known = [KnownRecords({"kind": [0]}, 2), KnownRecords({"kind": [1]}, 1)]
    known.append(KnownRecords({}, 4, "exactly"))
    asked = [RecordQuestion({"kind": [k]}, among={}) for k in range(3)]
    common = {"level": "block", "place": "1", "prior": prior, "known": known}
    found = microdata_posterior(release, asked, **common).answers
    base = np.array([2, 1, 0]) + np.eye(3)
    weight = np.exp(-((base - [3, 1, 0]) ** 2).sum(axis=1) / 4)
    np.testing.assert_allclose(found["posterior"], weight / weight.sum(), rtol=1e-12)
    np.testing.assert_allclose(found["prior"], 1 / 3, rtol=1e-12)


def test_a_file_of_people_is_counted():
    file = pd.DataFrame({"block": ["2", "1", "2"], "sex": [1, 0, 1], "age": [5, 3, 5]})
    found = KnownRecords.from_frame(file, place="block", relation="exactly")
    assert [(k.place, k.count, k.where, k.relation) for k in found] == [
        ("1", 1, {"sex": (0,), "age": (3,)}, "exactly"),
        ("2", 2, {"sex": (1,), "age": (5,)}, "exactly"),
    ]
    assert KnownRecords.from_frame(pd.DataFrame({"sex": [0]}))[0].place is None
    with pytest.raises(ArgumentError, match="where"):
        KnownRecords.from_frame(pd.DataFrame({"sex": [0.5, np.nan]}))


@pytest.mark.parametrize(
    ("known", "error", "match"),
    [
        ([KnownRecords({"kind": [0]}, 3)], DataError, "contradicts"),
        ([KnownRecords({"kind": [0]}, 1, "exactly")], DataError, "contradicts"),
        ([KnownRecords({"kind": [0]}, place="7")], ArgumentError, "known place must be one of 1"),
        ([KnownRecords({"age": [0]})], ArgumentError, "attribute must be one of kind"),
    ],
)
def test_knowledge_that_cannot_be_is_refused(known, error, match):
    release, prior = one_block(TrueCounts(), [2, 0, 1], np.eye(3, dtype=np.int64), 6)
    with pytest.raises(error, match=match):
        microdata_posterior(release, [], level="block", place="1", prior=prior, known=known)


def test_people_known_in_part_need_known_shares():
    release, _ = one_block(TrueCounts(), [2, 0, 1], np.eye(3, dtype=np.int64), 6)
    alike = RecordPrior(release.tables.workload.schema, concentration=3.0)
    with pytest.raises(ArgumentError, match="whole class of every known person"):
        microdata_posterior(
            release, [], level="block", place="1", prior=alike, known=[KnownRecords({})]
        )

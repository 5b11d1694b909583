"""Lists of the most probable records: against enumeration, and right as often as they say."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles import record_law as oracle
from random_places import KINDS, one_block, place, town

from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference import KnownRecords, RecordPrior, RecordQuestion, microdata_posterior
from bayesrisk.release import NoiseSpec, RoundingSpec, TrueCounts

ALL = 10**6


def codes_in(text):
    """Return the codes that a column of a list names, such as ``0,2-4``."""
    ends = [part.split("-") for part in text.split(",")]
    return {code for part in ends for code in range(int(part[0]), int(part[-1]) + 1)}


def cells_of(row, schema):
    kinds = itertools.product(*(codes_in(row[name]) for name in schema.names))
    return [int(np.ravel_multi_index(k, schema.shape)) for k in kinds]


@pytest.mark.parametrize("n_places", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_exact_list_agrees_with_enumeration(kind, n_places):
    for seed in range(400, 404):
        release, prior, terms, _ = place(seed, kind, n_places)
        level = "block" if n_places == 1 else "tract"
        common = {"level": level, "place": release.tables.geoids[level][0], "prior": prior}
        found = microdata_posterior(release, [], **common, engine="exact").ranked_records(ALL)
        assert found["probability"].is_monotonic_decreasing
        law = oracle.posterior(*terms)
        listed = 0.0
        for row in found.to_dict("records"):
            p, cells = int(row["place"][1:]), cells_of(row, prior.schema)
            hits = (w for w, x in law if sum(x[p][c] for c in cells) >= row["number"])
            expected = math.fsum(hits)
            assert abs(row["probability"] - expected) < 1e-9
            listed += expected
        # sum over k of P(x >= k) = E x: nothing that may be there is missing from the list
        assert abs(listed - math.fsum(w * sum(map(sum, x)) for w, x in law)) < 1e-8


def test_known_people_are_not_listed():
    release, prior = one_block(NoiseSpec("discrete-gaussian", 1), [3], np.array([[1, 1, 1]]), 6)
    known = [KnownRecords({"kind": [0]}, 2), KnownRecords({"kind": [1, 2]}, 1)]
    common = {"level": "block", "place": "1", "prior": prior, "known": known}
    asked = [RecordQuestion({}), *(RecordQuestion({"kind": [k]}) for k in range(2))]
    found = microdata_posterior(release, asked, **common)
    table = found.ranked_records()
    assert set(table["known"]) == {"", "kind 1/2"}
    one = table[table["known"] != ""]
    np.testing.assert_allclose(one["probability"], [0.5, 0.5], rtol=1e-12)
    total = found.answers["posterior"][0]
    assert table["probability"].sum() + 2 == pytest.approx(total, rel=1e-12)
    assert found.ranked_records(2).equals(table[:2])


def test_chains_that_do_not_agree_list_nothing():
    # Two kinds weigh 6 and 10: a sum of 30 is five of one or three of the other.
    release, prior = one_block(RoundingSpec(2, "nearest"), [30], np.array([[6, 10, 0]]), 6)
    common = {"level": "block", "place": "1", "prior": prior, "engine": "lattice"}
    found = microdata_posterior(release, [], **common, rng=1, draws=8)
    with pytest.raises(ArgumentError, match="the chains do not agree"):
        found.ranked_records()


def listed(seeds, blocks, engine, **settings):
    """Return for each town: probabilities of the listed records, and whether they are there."""
    found = []
    for seed in seeds:
        release, prior, x = town(seed, blocks, together=engine != "exact")
        # Without a table of the town its blocks are places of their own.
        places = (
            [("tract", "1")]
            if engine != "exact"
            else [("block", p) for p in release.tables.geoids["block"]]
        )
        q, there = [], []
        for level, code in places:
            law = microdata_posterior(
                release,
                [],
                level=level,
                place=str(code),
                prior=prior,
                engine=engine,
                rng=seed,
                **settings,
            )
            table = law.ranked_records(ALL)
            p = table["place"].str[1:].astype(int)
            cell = 4 * table["sex"].astype(int) + table["age"].astype(int)
            q.append(table["probability"].to_numpy())
            there.append(x[p, cell] >= table["number"])
        found.append((np.concatenate(q), np.concatenate(there)))
    return found


def excess(towns, power):
    """Return the standardised excess of records that are there where that is the more probable."""
    each = []
    for q, there in towns:
        sharp = q**power / (q**power + (1.0 - q) ** power)
        each.append((np.sign(q - 0.5) * (there - sharp)).sum())
    return float(np.sum(each) / np.sqrt(np.sum(np.square(np.array(each) - np.mean(each)))))


def bands(towns, power):
    """Return, for ten classes of probability, standardised differences of it and the share."""
    found = []
    sharp = [(q**power / (q**power + (1.0 - q) ** power), there) for q, there in towns]
    for low in np.arange(0.0, 1.0, 0.1):
        each = []
        for q, there in sharp:
            inside = (q >= low) & (q < low + 0.1)
            each.append((there[inside] - q[inside]).sum())
        found.append(np.sum(each) / np.sqrt(np.sum(np.square(each))))
    return np.array(found)


def check(towns, fewest):
    assert sum(q.size for q, _ in towns) >= fewest
    assert abs(excess(towns, 1.0)) < 4.0
    assert excess(towns, 1.3) < -4.0
    assert np.abs(bands(towns, 1.0)).max() < 4.0  # 10 classes
    if fewest >= 20_000:
        assert np.abs(bands(towns, 1.3)).max() > 4.0


def test_the_list_is_right_as_often_as_it_says():
    check(listed(range(15), 12, "exact"), 2_500)


@pytest.mark.slow
def test_twenty_thousand_records_listed_by_the_exact_engine():
    check(listed(range(100, 220), 12, "exact"), 20_000)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "towns", "blocks"), [("people", 35, 40), ("lattice", 65, 20)])
def test_twenty_thousand_records_listed_by_chains(engine, towns, blocks):
    check(listed(range(towns), blocks, engine, draws=1000, chains=2), 20_000)


@pytest.mark.parametrize("concentration", [0.01, 30.0, 1e9, 1e12])
def test_numbers_under_strong_and_weak_priors_equal_exact_fractions(concentration):
    """Of six people of three kinds, with Dirichlet parameters from 0.002 to 5e11."""
    release, prior = one_block(TrueCounts(), [6], np.ones((1, 3), int), 6)
    shares = np.array([0.5, 0.3, 0.2])
    prior = RecordPrior(prior.schema, shares, concentration, prior.size)
    asked = [RecordQuestion({"kind": [k]}, at_least=m) for k in range(3) for m in (1, 2, 5)]
    found = microdata_posterior(release, asked, level="block", place="1", prior=prior)

    def rising(x, k):
        return math.prod((Fraction(x) + i for i in range(k)), start=Fraction(1))

    def tail(kind, m, n):
        a, b = Fraction(concentration * shares[kind]), Fraction(concentration * (1 - shares[kind]))
        terms = (math.comb(n, k) * rising(a, k) * rising(b, n - k) for k in range(m, n + 1))
        return float(sum(terms) / rising(a + b, n))

    tails = [tail(k, m, 6) for k in range(3) for m in (1, 2, 5)]
    np.testing.assert_allclose(found.answers["posterior"], tails, rtol=1e-11)
    before = [sum(tail(k, m, n) for n in range(7)) / 7 for k in range(3) for m in (1, 2, 5)]
    np.testing.assert_allclose(found.answers["prior"], before, rtol=1e-11)
    for row in found.ranked_records(18).itertuples():
        assert row.probability == pytest.approx(tail(int(row.kind), row.number, 6), rel=1e-11)


def test_a_strong_prior_of_those_who_are_like_nobody_known_equals_lists_of_people():
    release, prior = one_block(NoiseSpec("discrete-gaussian", 1), [2], np.ones((1, 3), int), 4)
    shares, asked = np.array([0.5, 0.3, 0.2]), [RecordQuestion({"kind": [0]}, at_least=2)]
    prior = RecordPrior(prior.schema, shares, 1e12, prior.size)
    known = [KnownRecords({"kind": [2]}, 1, "exactly")]
    common = {"level": "block", "place": "1", "prior": prior, "known": known}
    found = microdata_posterior(release, asked, **common).answers
    about = 1, 3, shares, 1e12, prior.size
    before = oracle.with_known_people(*about, [], [[]], [[([2], 1)]])
    assert found["prior"][0] == pytest.approx(
        sum(w for w, (x,), _ in before if x[0] >= 2), rel=1e-11
    )

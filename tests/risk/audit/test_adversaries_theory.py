"""Calibration, the bound of pure privacy, and that more tables say more: what theory demands."""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from audits import SCHEMA

from bayesrisk import posterior_probability
from bayesrisk.inference import RecordPrior
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import MechanismSpec, NoiseSpec, Release, RoundingSpec, TrueCounts
from bayesrisk.risk.audit import Adversary, AuditedPopulation, AuditQuestion, place_beliefs
from bayesrisk.risk.audit.adversaries import TargetQuestion
from bayesrisk.risk.audit.attacks import infer_by_attack
from bayesrisk.risk.audit.place_beliefs import AuditTarget, PlaceReading, infer
from bayesrisk.risk.audit.reading import Reading
from bayesrisk.tables import Attribute, Geography, PublishedTables, Records, Schema, Table, Workload

SEX, RACE = (np.eye(size, dtype=int) for size in (2, 3))
TABLES = {
    "N": Table("N", ("all",), {}),
    "S": Table("S", ("m", "f"), {"sex": SEX}),
    "R": Table("R", ("a", "b", "c"), {"race": RACE}),
    "Q": Table("Q", ("a", "b", "c"), {"race": RACE}),
    "A": Table("A", ("a",), {"race": RACE[:1]}),
}
INDEX = np.indices(SCHEMA.shape).reshape(2, -1)
SHARES = np.array([0.3, 0.15, 0.05, 0.2, 0.1, 0.2])
A = 2.0


def reading(histogram, laws, rng, taken=None):
    """Return a release of one block, each table with its own law, or what is taken for it."""
    tables = {("block", name): TABLES[name] for name in laws}
    counts = {}
    for name, law in laws.items():
        true = _weights(name) @ histogram
        noise = 0
        if isinstance(law, NoiseSpec):
            noise = law.to_law().rvs(true.shape, random_state=rng)
        if isinstance(law, RoundingSpec):
            rounding = make_mechanism("rounding", base=law.base, method=law.method)
            noise = rounding.round(true, rng) - true
        counts["block", name] = (true + noise)[None, :]
    told = laws | (taken or {})
    spec = MechanismSpec("by hand", {}, {("block", name): law for name, law in told.items()})
    tables = PublishedTables(Workload(SCHEMA, tables), {"block": ["100"]}, counts)
    return Reading("likelihood", Release(spec, tables))


def _weights(name):
    index = {"S": INDEX[0], "R": INDEX[1], "Q": INDEX[1]}
    if name == "N":
        return np.ones((1, 6), int)
    if name == "A":
        return _weights("R")[:1]
    return (index[name] == np.arange(index[name].max() + 1)[:, None]).astype(int)


def believed(histogram, laws, rng, *, known=True, others=None, taken=None, infer=infer):
    """Return what is told of one target of each kind, and the kinds."""
    prior = RecordPrior(SCHEMA, SHARES, A)
    place = PlaceReading(
        reading(histogram, laws, rng, taken), "block", "100", prior, True, None, (1,)
    )
    targets = []
    for cell in np.flatnonzero(histogram):
        possible = INDEX[0] == INDEX[0][cell] if known else np.ones(6, bool)
        rest = np.repeat(np.arange(6), histogram - (np.arange(6) == cell))
        whom = np.array([], np.int64) if others is None else rest
        targets.append(
            AuditTarget(
                int(cell), int(cell), TargetQuestion(possible, INDEX[1].astype(np.int64), 3), whom,
                others is not None,
            )
        )  # fmt: skip
    return list(infer(place, targets))


@pytest.mark.parametrize("unfinished", [(), (0,), (1,), (0, 1)])
def test_beliefs_of_unfinished_chains_are_no_numbers(monkeypatch, unfinished):
    """Of either law, with the record and without it: no belief is told, where one is not done."""
    calls, find = [], place_beliefs.record_law

    def found(system, **options):
        calls.append(system)
        law = find(system, **options)
        # Without the means by removed record that an exact law has, two laws are asked for.
        return replace(law, decided=len(calls) - 1 not in unfinished, reduced_means={})

    monkeypatch.setattr(place_beliefs, "record_law", found)
    histogram = np.array([0, 0, 0, 4, 0, 0])
    (told,) = believed(
        histogram,
        {"S": TrueCounts(), "R": NoiseSpec("discrete-gaussian", 1)},
        np.random.default_rng(3),
    )
    if not unfinished:
        assert told.status == "calculated"
        assert len(calls) == 2
    else:
        assert told.status == "undecided"
    for belief in (told.without, told.posterior):
        assert np.isnan(belief.probability).all() == bool(unfinished)
    assert np.isfinite(told.prior.probability).all()


def fits(histogram):
    """Return all histograms of two sexes and three races with the same margins."""
    most = range(int(histogram.sum()) + 1)
    found = []
    for first in itertools.product(most, repeat=3):
        rest = histogram[:3] + histogram[3:] - first
        if sum(first) == histogram[:3].sum() and (rest >= 0).all():
            found.append([*first, *rest])
    return np.array(found)


@pytest.mark.parametrize("known", [True, False])
def test_who_is_settled_by_counts_alone_needs_no_chains(monkeypatch, known):
    """Every histogram that fits the tables gives the same posterior: no finished law is needed."""
    rng, find, settled = np.random.default_rng(5), place_beliefs.record_law, []
    cases = [drawn(rng) for _ in range(12)]
    whole = [believed(one, EXACT, rng, known=known) for one in cases]
    monkeypatch.setattr(
        place_beliefs, "record_law", lambda *a, **k: replace(find(*a, **k), decided=False)
    )
    for histogram, exact in zip(cases, whole, strict=True):
        for one, told in zip(exact, believed(histogram, EXACT, rng, known=known), strict=True):
            like = INDEX[0] == INDEX[0][told.row] if known else np.ones(6, bool)
            people = np.array([x[like].reshape(-1, 3).sum(axis=0) for x in fits(histogram)])
            shares = people / people.sum(axis=1, keepdims=True)
            if np.ptp(shares, axis=0).max() > 0.0:
                assert told.status == "undecided"
                continue
            settled.append(told.status)
            np.testing.assert_allclose(told.posterior.probability, shares[0], atol=1e-12)
            assert not told.posterior.error.any()
            off = np.abs(told.without.probability - one.without.probability)
            assert (off <= told.without.error + 1e-12).all()
            assert (told.status == "calculated") == (not told.without.error.any())
    assert len(settled) > 10
    assert "calculated" in settled


def drawn(rng, most=9):
    theta = rng.dirichlet(A * SHARES)
    return rng.multinomial(int(rng.integers(1, most)), theta)


EXACT = {"S": TrueCounts(), "R": TrueCounts()}


def outcomes(laws, rng, blocks, **options):
    """Return (block, prior, without, posterior, share of people of whom it is true, people)."""
    rows = []
    for block in range(blocks):
        histogram = drawn(rng)
        for told in believed(histogram, laws, rng, **options):
            if told.status == "undecided":
                continue
            three = np.array([b.probability for b in (told.prior, told.without, told.posterior)]).T
            for value in range(3):
                rows.append(
                    (block, *three[value], value == INDEX[1][told.row], histogram[told.row])
                )
    return np.array(rows, float)


def excess(q, true, people, block):
    """Return the standardised excess of true statements where q is above a half, less below."""
    part = np.bincount(block.astype(int), np.sign(q - 0.5) * (true - q) * people)
    return part.sum() / np.sqrt((part**2).sum())


def sharpened(rows, at, power=1.3):
    q = rows[:, at].reshape(-1, 3) ** power
    return (q / q.sum(axis=1, keepdims=True)).ravel()


def calibrated(rows):
    block, true, people = rows[:, 0], rows[:, 4], rows[:, 5]
    for at in (1, 2, 3):  # prior, without, posterior
        assert abs(excess(rows[:, at], true, people, block)) < 4.0
    sure = (rows[:, 3] == 0.0) | (rows[:, 3] == 1.0)
    np.testing.assert_array_equal(rows[sure, 4], rows[sure, 3])  # what is certain is true


def test_beliefs_are_calibrated_under_exact_tables():
    rows = outcomes(EXACT, np.random.default_rng(1), 120)
    assert len(rows) > 600
    calibrated(rows)


@pytest.mark.slow
def test_twenty_thousand_statements_are_calibrated_and_sharper_ones_are_not():
    rows = outcomes(EXACT, np.random.default_rng(2), 3600)
    assert len(rows) >= 20_000
    calibrated(rows)
    block, true, people = rows[:, 0], rows[:, 4], rows[:, 5]
    for at in (1, 2, 3):
        assert excess(sharpened(rows, at), true, people, block) < -4.0


@pytest.mark.slow
def test_beliefs_are_calibrated_under_noise():
    """The number of people is published, so that the prior says how the population was drawn."""
    laws = {"N": TrueCounts(), "R": NoiseSpec("discrete-gaussian", 1)}
    rows = outcomes(laws, np.random.default_rng(3), 60, known=False)
    assert len(rows) > 300
    calibrated(rows)


def test_reconstructed_records_are_not_calibrated_under_noise():
    """Negative control of the last: at their word, records of noisy tables promise too much."""
    laws = {"N": TrueCounts(), "R": NoiseSpec("discrete-gaussian", 1)}
    rebuild = functools.partial(infer_by_attack, "reconstruction")
    rows = outcomes(laws, np.random.default_rng(3), 150, known=False, infer=rebuild)
    block, true, people = rows[:, 0], rows[:, 4], rows[:, 5]
    assert excess(rows[:, 3], true, people, block) < -4.0
    assert excess(rows[:, 2], true, people, block) < -4.0
    certain = rows[rows[:, 3] == 1.0]
    assert len(certain) > 20
    assert not certain[:, 4].all()


def laplace(epsilon, tables=("S", "R")):
    """Each record is in one cell of every table, so that replacing it moves two by one."""
    return {name: NoiseSpec("discrete-laplace", len(tables) / epsilon) for name in tables}


def largest_log_ratio(laws, rng, blocks):
    most = 0.0
    for _ in range(blocks):
        for told in believed(drawn(rng), laws, rng, others=True, known=False):
            np.testing.assert_array_equal(told.without.probability, told.prior.probability)
            assert told.status == "calculated"
            ratio = np.log(told.posterior.probability / told.without.probability)
            most = max(most, float(np.abs(ratio).max()))
    return most


def test_pure_privacy_bounds_the_ratio_of_posterior_and_without():
    """Whoever knows all others compares data sets that differ by a replaced record: 2 epsilon."""
    epsilon = 1.0
    rng = np.random.default_rng(4)
    honest = largest_log_ratio(laplace(epsilon), rng, 60)
    assert honest <= 2.0 * epsilon * (1 + 1e-9)
    broken = largest_log_ratio(laplace(2.0 * epsilon), rng, 60)
    assert broken > 2.0 * epsilon


def test_who_knows_all_others_has_the_closed_form():
    """Posterior proportional to prior times likelihood of the noise that is left."""
    rng = np.random.default_rng(6)
    laws = {"R": NoiseSpec("discrete-gaussian", "3/2")}
    for _ in range(20):
        histogram = drawn(rng)
        stream = np.random.default_rng(rng.integers(2**32))
        state = stream.bit_generator.state
        found = believed(histogram, laws, stream, others=True, known=False)
        stream.bit_generator.state = state
        released = reading(histogram, laws, stream).release.tables.counts["block", "R"].toarray()[0]
        for told in found:
            rest = histogram - (np.arange(6) == told.row)
            prior = A * SHARES + rest
            prior = np.bincount(INDEX[1], prior / prior.sum())
            left = released - _weights("R") @ rest
            # One record of value r leaves noise (left - e_r).
            weight = prior * np.exp(-((left[None, :] - RACE) ** 2).sum(axis=1) / (2 * 1.5))
            np.testing.assert_allclose(told.posterior.probability, weight / weight.sum(), rtol=1e-9)
            np.testing.assert_allclose(told.prior.probability, prior, rtol=1e-12)


def test_one_cell_and_two_alternatives_is_the_formula_of_counts():
    schema = Schema("people", (Attribute("race", 2),), Geography("towns", ("block",), (3,)))
    table = Table("R", ("a",), {"race": np.array([[1, 0]])})
    workload = Workload(schema, {("block", "R"): table})
    spec = MechanismSpec("by hand", {}, {("block", "R"): NoiseSpec("discrete-gaussian", 2)})
    for noisy in (-2, 0, 3, 4, 7):
        tables = PublishedTables(
            workload, {"block": ["100"]}, {("block", "R"): np.array([[noisy]])}
        )
        place = PlaceReading(
            Reading("likelihood", Release(spec, tables)), "block", "100",
            RecordPrior(schema, np.array([0.3, 0.7])), True, None, (1,),
        )  # fmt: skip
        asked = TargetQuestion(np.ones(2, bool), np.array([0, 1]), 2)
        (told,) = infer(place, [AuditTarget(0, 0, asked, np.array([0, 0, 0, 1]), True)])
        # rho of one cell of sensitivity 1 with variance 2 is 1/4; three others are counted.
        expected = posterior_probability(noisy, rho=0.25, prior=0.3, known_count=3)
        np.testing.assert_allclose(told.posterior.probability[0], expected, rtol=1e-9)


def log_scores(laws, histograms, **options):
    """Return the mean log score of each data set's people."""
    scores = []
    for number, histogram in enumerate(histograms):
        told = believed(histogram, laws, np.random.default_rng(number), **options)
        people = histogram[[t.row for t in told]]
        values = [np.log(t.posterior.probability[INDEX[1][t.row]]) for t in told]
        scores.append(np.average(values, weights=people))
    return np.array(scores)


def lower_end(difference):
    return difference.mean() - 3.0 * difference.std(ddof=1) / np.sqrt(difference.size)


@pytest.mark.slow
def test_more_tables_say_more_and_more_noise_says_less():
    rng = np.random.default_rng(8)
    histograms = [drawn(rng) for _ in range(70)]
    few = log_scores({"R": TrueCounts()}, histograms)
    many = log_scores(EXACT, histograms)
    sex = log_scores({"S": TrueCounts()}, histograms)
    assert lower_end(many - sex) > 0.0
    assert lower_end(few - sex) > 0.0
    assert lower_end(few - many) < 0.0  # the sexes add little: at least they take nothing away


#: Of an adversary who knows all others: each pair says no less, and more, than the next.
ORDERED = {
    "noise": [{"R": NoiseSpec("discrete-gaussian", v)} for v in ("1/4", 1, 4)],
    "laplace": [{"R": NoiseSpec("discrete-laplace", v)} for v in ("1/2", 2)],
    "tables": [
        {n: NoiseSpec("discrete-gaussian", 1) for n in names} for names in (("R", "Q"), ("R",))
    ],
    "rounding": [{"R": TrueCounts()}, {"R": RoundingSpec(3, "random")}],
    "nearest": [{"R": TrueCounts()}, {"R": RoundingSpec(3, "nearest")}],
    "fewer cells": [{name: NoiseSpec("discrete-gaussian", 1)} for name in ("R", "A")],
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ORDERED)
def test_what_is_taken_from_a_release_lowers_the_score(what):
    """Where posteriors are right, the release that says more scores higher by a divergence."""
    rng = np.random.default_rng(18)
    histograms = [drawn(rng) for _ in range(60)]
    everybody = {"others": True, "known": False}
    found = [log_scores(laws, histograms, **everybody) for laws in ORDERED[what]]
    for clear, faint in itertools.pairwise(found):
        assert lower_end(clear - faint) > 0.0


@pytest.mark.slow
def test_who_takes_noise_for_less_than_it_is_may_lose_by_a_release():
    """Negative control: the order holds of posteriors that are right, and fails of others."""
    rng = np.random.default_rng(18)
    histograms = [drawn(rng) for _ in range(60)]
    everybody = {"others": True, "known": False}
    noise = {"S": TrueCounts(), "R": NoiseSpec("discrete-gaussian", 1)}
    taken = {"R": NoiseSpec("discrete-gaussian", "1/16")}
    before_ = log_scores({"N": TrueCounts()}, histograms, **everybody)  # says nothing new
    right = log_scores(noise, histograms, **everybody)
    wrong = log_scores(noise, histograms, taken=taken, **everybody)
    assert lower_end(right - before_) > 0.0
    assert lower_end(before_ - wrong) > 0.0


@pytest.mark.slow
def test_a_population_from_its_prior_is_calibrated_through_the_whole_audit():
    rng = np.random.default_rng(9)
    cells, blocks = [], []
    for block in range(150):
        x = drawn(rng)
        cells += np.repeat(np.arange(6), x).tolist()
        blocks += [f"{block:03d}"] * int(x.sum())
    frame = pd.DataFrame({"sex": INDEX[0][cells], "race": INDEX[1][cells], "block": blocks})
    tables = {("block", name): TABLES[name] for name in ("S", "R")}
    question = AuditQuestion(
        Workload(SCHEMA, tables), ("race",), (Adversary.named("linker", known=["sex"]),), A
    )
    of = AuditedPopulation(Records.from_frame(frame, schema=SCHEMA), question, seed=1)
    identity = make_mechanism("identity")
    found = of.statements(
        "none", "none", 0, identity, of.release("none", 0, identity), of.targets(None)
    )
    true, q = found["correct"].to_numpy(float), found["posterior"].to_numpy()
    at = found["place"].to_numpy().astype(int)
    assert abs(excess(q, true, np.ones(len(q)), at)) < 4.0
    wrong = np.abs(found.groupby(["target"])["posterior"].sum() - 1.0)
    assert wrong.max() < 1e-2  # statements that nobody believes are left out

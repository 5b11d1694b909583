"""The plain way against enumeration and against the audit's own engines; what spot checks see."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from audits import EVERYBODY, SHARES, SWAP, WORKLOAD, town
from breakages import BREAKAGES, CHANGED, DRAWN, PRIORS, SPECS, BreakableAudit, alarms
from oracles import audit as oracle, record_law
from random_places import COARSE, KINDS, place

from bayesrisk.mechanisms import make_mechanism
from bayesrisk.risk.audit import (
    AuditedPopulation,
    AuditQuestion,
    audit_checks,
    readings,
    spot_checks,
    spot_comparisons,
)
from bayesrisk.risk.audit.adversaries import TargetQuestion
from bayesrisk.risk.audit.place_beliefs import AuditTarget, PlaceReading
from bayesrisk.risk.audit.reading import Reading
from bayesrisk.risk.audit.release_law import law_checks
from bayesrisk.risk.audit.spot_checks import PUBLIC, SPOTS, plain_beliefs
from bayesrisk.risk.audit.surroundings import fit_place_concentration


def question(prior, rng):
    """Return a random question: some possible cells, and the value of each."""
    cells = prior.schema.size
    possible = rng.random(cells) < 0.7
    possible[prior.shares_of_cells.argmax()] = True
    return TargetQuestion(possible, rng.integers(0, 3, cells), 3)


@pytest.mark.parametrize("kind", [*KINDS, COARSE])
def test_plain_sums_are_those_of_every_histogram(kind):
    """The same release is read with and without a record of the target's."""
    compared = 0
    for seed in range(24):
        release, prior, (_, n_cells, shares, concentration, size, terms), _ = place(seed, kind)
        asked = question(prior, np.random.default_rng(seed))
        value = asked.value.tolist(), asked.values
        reading = Reading("likelihood", release)
        where = PlaceReading(reading, "block", "100", prior, False, lambda row, r=reading: r, ())
        target = AuditTarget(0, 0, asked, np.zeros(0, np.int64), False)
        beliefs = plain_beliefs(where, [target])
        if concentration is None:
            assert beliefs is None
            continue
        (found,) = beliefs
        before = oracle.before(shares, asked.possible, *value)
        np.testing.assert_allclose(found["prior"], before, atol=1e-12)
        law = record_law.posterior(1, n_cells, shares, concentration, size, terms)
        after = oracle.after([(w, x) for w, x in law], asked.possible, *value)
        try:
            others = record_law.posterior(
                1, n_cells, shares, concentration, oracle.size_of_others(size), terms
            )
        except ValueError:  # none agrees with the counts: as if nothing were published
            others = None
        if others is None or np.isnan(after).any():
            for belief in found.values():
                np.testing.assert_allclose(belief, before, atol=1e-12)
            continue
        less = oracle.without(others, shares, concentration, asked.possible, *value)
        np.testing.assert_allclose(found["posterior"], after, atol=1e-9)
        np.testing.assert_allclose(found["without"], less, atol=1e-9)
        compared += 1
    assert compared > 4


def people(number=30):
    return town(3, number, [f"10{i}" for i in range(6)])


MECHANISMS = {
    "identity": {}, "rounding": {"base": 3, "method": "random"}, "suppression": {"threshold": 3},
    "discrete-gaussian": {"rho": 1, **SHARES}, "discrete-laplace": {"epsilon": 2, **SHARES},
    "swapping": {"rate": "1/5", **SWAP},
}  # fmt: skip


def compared(name, targets=4):
    """Return spot comparisons of a valid audit, all adversaries and readings of a mechanism."""
    mechanism = make_mechanism(name, **MECHANISMS[name])
    of = AuditedPopulation(people(), AuditQuestion(WORKLOAD, ("race",), EVERYBODY), seed=2)
    release = of.release(name, 1, mechanism)
    said = of.statements(name, name, 1, mechanism, release, of.targets(8))
    found = []
    for number, reading in enumerate(readings(release, {})):

        def without(row, number=number):
            return readings(of.release(name, 1, mechanism, without_row=row), {})[number]

        mine = said[said["attack"] == reading.name]
        found.append(spot_comparisons(of, mine, reading, without, targets=targets))
    return said, pd.concat(found, ignore_index=True)


@pytest.mark.parametrize("name", MECHANISMS)
def test_valid_audits_agree_with_the_plain_way(name):
    """Everybody who may ask, insiders too, under every law that a release can be read by."""
    said, found = compared(name)
    assert list(found) == SPOTS
    assert found.groupby("attack")["target"].nunique().eq(4).all()
    assert set(found["adversary"]) == {one.name for one in EVERYBODY}
    assert set(found["release"]) == {1}
    assert (found["stated"] - found["again"]).abs().max() < 1e-8
    assert set(found["belief"]) == {"prior", "without", "posterior", *PUBLIC}
    assert found["error"].eq(0.0).all()
    checks = audit_checks(said, spots=found)
    spots = checks[checks["check"] == "spot"]
    assert len(spots) == 2 * said.groupby(["attack", "adversary"]).ngroups
    assert not spots["failed"].any()
    assert spots["compared"].eq(4).all()
    drawn = found[found["drawn"]].groupby("attack")["target"].nunique()
    assert spots["power"].to_numpy() == pytest.approx(1 - 0.9 ** float(drawn.iloc[0]))


def test_half_of_the_targets_are_drawn_and_half_tell_most():
    said, found = compared("identity")
    told = (said["posterior"] - said["without"]).abs().groupby(said["target"]).max()
    most = found.loc[~found["drawn"], "target"].unique()
    rest = told.drop(found["target"].unique())
    assert 1 <= len(most) <= 2
    assert told[most].min() >= rest.max()


def test_places_that_are_not_small_are_passed_over(monkeypatch):
    monkeypatch.setattr(spot_checks, "_MOST_WEIGHTS", 10)
    said, found = compared("identity")
    assert set(found["belief"]) == {*PUBLIC}  # priors are held against public inputs anywhere
    assert list(found) == SPOTS
    checks = audit_checks(said, spots=found)
    assert set(checks.loc[checks["check"] == "spot", "against"]) == {"public inputs"}
    monkeypatch.undo()
    monkeypatch.setattr(spot_checks, "_MOST", 3)
    assert set(compared("discrete-gaussian")[1]["belief"]) == {*PUBLIC}


def estimates(rng, targets=20, error=0.02, off=0.0):
    """Return spot comparisons of estimates by the means of twenty batches."""
    batches = rng.normal(off, error * np.sqrt(20), (targets, 20))
    mean, found = batches.mean(axis=1), batches.std(axis=1, ddof=1) / np.sqrt(20)
    rows = {
        "protection": "p", "attack": "likelihood", "adversary": "outsider", "release": 0,
        "target": np.arange(targets).astype(str), "statement": "race 0", "drawn": True,
        "belief": "posterior", "stated": 0.5 + mean, "error": found, "again": 0.5,
    }  # fmt: skip
    return pd.DataFrame(rows)


def failed(spots):
    said = pd.DataFrame({
        "protection": "p", "attack": "likelihood", "adversary": "outsider", "release": 0,
        "target": "1", "statement": ["race 0", "race 1"], "prior": 0.5, "without": 0.5,
        "posterior": 0.5, "without_error": 0.0, "posterior_error": 0.0, "place": "1",
        "status": "sampled", "correct": [True, False],
    })  # fmt: skip
    checks = audit_checks(said, spots=spots)
    (row,) = checks[checks["check"] == "spot"].to_dict("records")
    assert row["against"] == "plain way"
    return row["failed"]


def test_estimates_have_their_errors_and_no_more():
    """Of valid audits a fifth of 1 % may fail; a hundred have none but once in four such runs."""
    rng = np.random.default_rng(9)
    assert sum(failed(estimates(rng)) > 0 for _ in range(60)) <= 1
    assert sum(failed(estimates(rng, off=0.3)) == 20 for _ in range(10)) == 10
    one = estimates(rng)
    one.loc[3, "stated"] = np.nan  # what is missing agrees with nothing
    assert failed(one) == 1
    assert failed(estimates(rng).assign(error=0.0)) == 20


@pytest.mark.parametrize("seed", [1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3, 4))])
def test_every_breakage_is_seen_and_nothing_without(seed):
    """The smaller version of benchmarks/breakages.py."""
    audit = BreakableAudit(seed, targets=40)
    assert alarms(audit.checks()) == []
    by = {broken: alarms(audit.checks(broken)) for broken in BREAKAGES}
    assert all(by.values()), by
    for broken in (*CHANGED, *DRAWN):
        assert by[broken] == ["law"]
    for broken in PRIORS:
        assert "spot" in by[broken]


@pytest.mark.slow
def test_broken_noise_is_seen_in_fifteen_of_sixteen_audits_and_valid_noise_in_two_of_200():
    """The law alone, at the level that an audit with a confidence of 99 % gives it."""

    def law_fails(seed, broken=None):
        differences = BreakableAudit(seed, targets=1).differences(broken)
        return any(row["failed"] for row in law_checks(differences, SPECS, alpha=0.01 / 5))

    assert sum(law_fails(seed) for seed in range(1, 201)) <= 2
    for broken in (*DRAWN, *CHANGED):
        assert sum(law_fails(seed, broken) for seed in range(1, 17)) >= 15, broken


def test_priors_are_held_against_public_inputs_by_hand():
    """Shares, sizes and concentration of a town of three places, as pencil and paper have them."""
    of = AuditedPopulation(people(), AuditQuestion(WORKLOAD, ("race",), EVERYBODY), seed=2)
    release = of.release("n", 0, make_mechanism("identity"))
    said = of.statements("n", "n", 0, make_mechanism("identity"), release, of.targets(8))
    reading = Reading("likelihood", release)
    found = spot_comparisons(of, said, reading, lambda row: reading, targets=2)
    frame = people().to_frame()
    sizes = frame["block"].value_counts()
    size = found[found["belief"] == "size"]
    assert size["again"].to_numpy() == pytest.approx(1 / (2 * sizes.max() + 1))
    for row in found[found["belief"] == "share"].itertuples():
        home = frame["block"].iloc[int(row.target)]
        others = frame[frame["block"] != home]
        shares = [
            (((others["sex"] == sex) & (others["race"] == race)).sum() + 1 / 6) / (len(others) + 1)
            for sex in (0, 1) for race in (0, 1, 2)
        ]  # fmt: skip
        assert min(abs(row.again - share) for share in shares) < 1e-12
    given = AuditedPopulation(
        people(), AuditQuestion(WORKLOAD, ("race",), EVERYBODY, concentration=7.0), seed=2
    )
    said = given.statements("n", "n", 0, make_mechanism("identity"), release, given.targets(8))
    found = spot_comparisons(given, said, reading, lambda row: reading, targets=2)
    stated = found[found["belief"] == "concentration"]
    assert stated["stated"].eq(7.0).all()  # as the question has it
    assert stated["again"].eq(7.0).all()


def test_a_fitted_concentration_is_found_again_and_others_are_not():
    """Of places alike and unlike each other, to the independent ones of a fit without an end."""
    rng, sure = np.random.default_rng(0), 0
    for number in range(60):
        places, values = int(rng.integers(2, 60)), int(rng.integers(2, 12))
        theta, truth = rng.dirichlet(np.ones(values)), 10.0 ** rng.uniform(-1.0, 6.0)
        shares = rng.dirichlet(truth * theta + 1e-9, places) if number % 3 else [theta] * places
        counts = np.array([rng.multinomial(rng.integers(1, 60), s / s.sum()) for s in shares])
        fitted = fit_place_concentration(counts)

        def likely(value, counts=counts):
            of = SimpleNamespace(seed=1, codes=np.arange(len(counts)), concentration=value)
            of.tallies = counts.__getitem__
            return spot_checks._likely_concentration(of)

        assert likely(fitted) == fitted
        if fitted < 1e3:
            sure += 1
            assert all(likely(t * fitted) != t * fitted for t in (0.01, 0.9, 1.1, 100.0))
    assert sure > 20


def answers(gain, away, places, unlike):
    """Return statements about people, some without an answer, and their gains found again."""
    name = np.arange(gain.size).astype(str)
    about = {
        "protection": "p", "attack": "likelihood", "adversary": "outsider", "release": 0,
        "target": name, "statement": "race 0", "place": places.astype(str), "correct": True,
    }  # fmt: skip
    said = pd.DataFrame(about | {
        "prior": 0.2, "without": np.where(away, np.nan, 0.2), "without_error": 0.0,
        "posterior": np.where(away, np.nan, 0.2 + gain), "posterior_error": 0.0,
        "status": np.where(away, "undecided", "calculated"), "nonmodal": unlike,
        "place_size": 10 + places,
    })  # fmt: skip
    again = {"drawn": True, "belief": "gain", "stated": np.nan, "error": 0.0, "again": gain}
    return said, pd.DataFrame(about | again)[away].reindex(columns=SPOTS)


def missing(*about):
    said, spots = answers(*about)
    checks = audit_checks(said, spots=spots)
    return checks[checks["check"] == "missing"].set_index("against")


def test_who_has_no_answer_is_held_against_the_others():
    rng = np.random.default_rng(4)
    gain, places = rng.uniform(0.0, 0.5, 80), np.repeat(np.arange(8), 10)
    unlike = rng.random(80) < 0.3
    ten = np.argsort(-gain)[:10]
    most = missing(gain, np.isin(np.arange(80), ten), places, unlike)
    assert most.loc["gain", ["compared", "failed", "value", "bound"]].tolist() == [
        80,
        10,
        1.0,
        0.25,
    ]
    # 20 of 80 gain most; that all of m without an answer are of them: product of (20 - i)/(80 - i)
    needed = int(most.loc["gain", "power"])
    chance = [np.prod([(20 - i) / (80 - i) for i in range(m)]) for m in (needed - 1, needed)]
    assert chance[1] <= 0.01 / 5 / 2 < chance[0]
    rare = missing(gain, unlike & (rng.random(80) < 0.7), places, unlike)
    assert rare.loc["rarity", "failed"] > 0
    large = missing(gain, places == 7, places, unlike)  # a place that is too large: nobody's will
    assert large["failed"].eq(0).all()
    assert large.loc["size of place", ["value", "bound"]].tolist() == [17.0, 13.5]
    nobody = missing(gain, np.zeros(80, bool), places, unlike)
    assert nobody["verdict"].tolist() == ["nobody"]
    bare, spots = answers(gain, np.isin(np.arange(80), ten), places, unlike)
    unknown = audit_checks(bare, spots=spots[:0])  # their gains cannot be found
    unknown = unknown[unknown["check"] == "missing"].set_index("against")
    assert unknown.loc["gain", "verdict"] == "found none"


def test_missing_answers_by_chance_are_seen_no_more_often_than_they_may():
    """At 50 % for all five kinds of checks it is 10 %: more than 16 of 60 are one in 10,000."""
    rng, fails = np.random.default_rng(8), 0
    for _ in range(60):
        gain, places = rng.uniform(0.0, 0.5, 60), np.repeat(np.arange(6), 10)
        away = np.isin(np.arange(60), rng.choice(60, 15, replace=False))
        said, spots = answers(gain, away, places, rng.random(60) < 0.4)
        checks = audit_checks(said, spots=spots, confidence=0.5)
        fails += bool((checks[checks["check"] == "missing"]["failed"] > 0).any())
    assert fails <= 16  # 6 are expected

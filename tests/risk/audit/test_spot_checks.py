"""The plain way against enumeration and against the audit's own engines; what spot checks see."""

import numpy as np
import pandas as pd
import pytest
from audits import EVERYBODY, SHARES, SWAP, WORKLOAD, town
from breakages import BREAKAGES, BreakableAudit, alarms
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
from bayesrisk.risk.audit.adversaries import AuditTarget, PlaceReading, Reading, TargetQuestion
from bayesrisk.risk.audit.spot_checks import SPOTS, plain_beliefs


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
    assert found["error"].eq(0.0).all()
    checks = audit_checks(said, spots=found)
    spots = checks[checks["check"] == "spot"]
    assert len(spots) == said.groupby(["attack", "adversary"]).ngroups
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
    assert found.empty
    assert list(found) == SPOTS
    checks = audit_checks(said, spots=found)
    assert "spot" not in set(checks["check"])
    monkeypatch.undo()
    monkeypatch.setattr(spot_checks, "_MOST", 3)
    assert compared("discrete-gaussian")[1].empty


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
    return row["failed"]


def test_estimates_have_their_errors_and_no_more():
    """Of valid audits a fourth of 1 % may fail; a hundred have none but once in four such runs."""
    rng = np.random.default_rng(9)
    assert sum(failed(estimates(rng)) > 0 for _ in range(60)) <= 1
    assert sum(failed(estimates(rng, off=0.3)) == 20 for _ in range(10)) == 10
    one = estimates(rng)
    one.loc[3, "stated"] = np.nan  # what is missing agrees with nothing
    assert failed(one) == 1
    assert failed(estimates(rng).assign(error=0.0)) == 20


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_breakage_is_seen_and_nothing_without(seed):
    """The smaller version of benchmarks/breakages.py."""
    audit = BreakableAudit(seed, targets=12)
    assert alarms(audit.checks()) == []
    for broken in BREAKAGES:
        assert alarms(audit.checks(broken)), broken

"""Tables of one's own from end to end: counted, protected, attacked and assessed."""

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk import datasets as samples
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError
from bayesrisk.inference import RecordPrior
from bayesrisk.reconstruction import claim_sentences, find_claims
from bayesrisk.release import MechanismSpec
from bayesrisk.risk import MechanismOptions
from bayesrisk.tables import Geography

THIRDS = dict.fromkeys(("region * age", "region * diagnosis", "age * diagnosis", "total"), "1/4")
PROTECTIONS = {
    "identity": {},
    "rounding": {"base": 3, "method": "random"},
    "discrete-gaussian": {
        "sensitivity": "add-remove",
        "rho": 1,
        "level_shares": {"all": 1},
        "table_shares": THIRDS,
    },
    "discrete-laplace": {
        "sensitivity": "add-remove",
        "epsilon": 1,
        "level_shares": {"all": 1},
        "table_shares": THIRDS,
    },
    "suppression": {"threshold": 3},
}


@pytest.fixture(scope="module")
def work():
    return br.Workload.read(samples.path("hospital") / "tables.toml")


@pytest.fixture(scope="module")
def patients(work):
    return br.Records.read(samples.path("hospital") / "records.csv", schema=work.schema)


def target(patients):
    """Return the only patient of the one claim about a single record."""
    frame = patients.schema.labelled(patients.to_frame())
    rows = (
        (frame["region"] == "Centre") & (frame["age"] == "0-17") & (frame["diagnosis"] == "injury")
    )
    assert rows.sum() == 1
    return int(np.flatnonzero(rows)[0])


def test_true_tables_prove_a_patient(work, patients):
    tables = br.tabulate(patients, work)
    found = find_claims(tables)
    assert "One record with region Centre, age 0-17, diagnosis injury." in claim_sentences(found)
    assert len(found.to_frame(readable="here")) == 2
    made = br.reconstruct(tables, scope="all")
    again = br.Records.from_frame(work.schema.labelled(made.to_frame()), schema=work.schema)
    assert br.tabulate(again, work) == tables
    spread = br.solution_variability(tables, scope="block")
    assert 0 < spread.lower[0] <= spread.upper[0] <= 1
    release = br.mechanisms.Identity().release(patients, workload=work, rng=1)
    prior = RecordPrior.uniform_data_sets(work.schema)
    assert set(found.statements(release=release, prior=prior).frame["status"]) == {"proved"}


@pytest.mark.parametrize("name", PROTECTIONS)
def test_every_protection_without_places(name, work, patients):
    mechanism = br.make_mechanism(name, **PROTECTIONS[name])
    release = mechanism.release(patients, workload=work, rng=1)
    assert release.tables.geoids["all"].tolist() == [""]
    question = br.risk.MechanismQuestion(
        work,
        observed=[("all", "region * diagnosis", "Centre, injury")],
        alternatives=[{"diagnosis": "mental"}],
        prior=0.2,
    )
    by_code = br.risk.MechanismQuestion(
        work, observed=question.observed, alternatives=[{"diagnosis": 5}], prior=0.2
    )
    settings = {"target": target(patients), "draws": 40, "rng": 1}
    options = MechanismOptions(utility_draws=2)
    risk = br.mechanism_risk(
        patients, mechanism=mechanism, question=question, options=options, **settings
    )
    same = br.mechanism_risk(
        patients, mechanism=mechanism, question=by_code, options=options, **settings
    )
    assert risk.marginal_posterior == same.marginal_posterior
    assert 0.2 - 1e-9 <= risk.marginal_posterior <= 1
    assert risk.true_counts[:, 0].tolist() == [risk.true_counts[0, 0], risk.true_counts[0, 0] - 1]
    if name == "identity":
        assert risk.marginal_posterior == 1
    if name == "discrete-gaussian":
        exact = br.marginal_posterior(rho=0.25, prior=0.2)
        assert risk.marginal_posterior == pytest.approx(exact, abs=1e-9)


def test_swapping_needs_places(work, patients):
    settings = {"rate": 0.2, "swap_key": ["age"], "unique_by": ["diagnosis"], "unit": "person"}
    mechanism = br.Swapping(within="all", unique_within="all", **settings)
    with pytest.raises(ArgumentError, match="place of schema 'hospital' must be more than one"):
        mechanism.release(patients, workload=work, rng=1)
    places = Geography("wards", ("hospital", "ward"), (0, 1))
    frame = work.schema.labelled(patients.to_frame()).assign(ward=["1", "2", "3"] * 20)
    schema = br.Schema.from_frame(frame, columns=["age", "diagnosis"], geography=places)
    wards = br.Workload.of(schema, [("age", "diagnosis")])
    mechanism = br.Swapping(within="hospital", unique_within="hospital", **settings)
    people = br.Records.from_frame(frame, schema=schema)
    release = mechanism.release(people, workload=wards, rng=1, places=["1", "2", "3"])
    true = br.mechanisms.Identity().release(people, workload=wards, places=["1", "2", "3"]).tables
    assert release.tables != true


def test_statements_about_patients(work, patients):
    release = br.mechanisms.Identity().release(patients, workload=work, rng=1)
    made = br.reconstruct(release.tables, scope="all")
    prior = RecordPrior.uniform_data_sets(work.schema)
    about = {"known": ["region", "age"], "stated": ["diagnosis"]}
    said = made.statements(release=release, prior=prior, truth=patients, **about).frame
    frame = made.to_frame()
    names = ["region", "age", "diagnosis"]
    for _, statement in said.iterrows():
        rows = np.flatnonzero((frame[names] == statement[names].astype(int)).all(axis=1))
        alike = (frame[["region", "age"]] == statement[["region", "age"]].astype(int)).all(axis=1)
        assert statement["prior"] == pytest.approx(1 / work.schema.attribute("diagnosis").size)
        assert statement["posterior"] == pytest.approx(len(rows) / alike.sum(), abs=1e-12)
        assert statement["people"] == len(rows)
        truth = patients.to_frame()
        there = truth[(truth[names[:2]] == statement[names[:2]].astype(int)).all(axis=1)]
        right = (there["diagnosis"] == int(statement["diagnosis"])).sum()
        known = True if right == len(there) else False if right == 0 else pd.NA
        assert statement["correct"] is known or statement["correct"] == known
    assert set(said["status"]) == {"believed"}
    assert "region North age 0-17" in set(said["target"])
    assert "diagnosis infection" in set(said["statement"])


def test_proved_statements_and_refusals(work):
    lone = br.Records.from_frame(
        pd.DataFrame({"region": ["North"], "age": ["0-17"], "diagnosis": ["lung"]}),
        schema=work.schema,
    )
    release = br.mechanisms.Identity().release(lone, workload=work, rng=1)
    made = br.reconstruct(release.tables, scope="all")
    about = {"known": ["region"], "stated": ["diagnosis"], "release": release}
    about["prior"] = RecordPrior.uniform_data_sets(work.schema)
    said = made.statements(**about)
    assert said.frame[["posterior", "status"]].values.tolist() == [[1.0, "proved"]]
    noisy = made.statements(
        **about | {"release": br.Release(MechanismSpec("mine", {}), release.tables)}
    )
    assert noisy.frame["status"].tolist() == ["believed"]
    with pytest.raises(ArgumentError, match="result must be of persons, got schema 'hospital'"):
        br.Statements.of(made, spec=br.mechanisms.Identity().spec, prior_weight=1.0)
    for change, error, message in (
        ({"known": ["x"]}, ArgumentError, "known must be one of region, age, diagnosis, got 'x'"),
        ({"stated": None}, ArgumentError, "stated must name an attribute of 'hospital', got none"),
        ({"stated": ["region"]}, ArgumentError, "must give each once, got 'region'"),
        ({"truth": made.to_frame()}, ArgumentTypeError, "truth must be"),
    ):
        with pytest.raises(error, match=message):
            made.statements(**(about | change))

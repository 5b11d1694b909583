"""Audits that ship as samples: how long they take on two cores."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
from targets import faster, lasting
from typer.testing import CliRunner

from bayesrisk import Records
from bayesrisk.cli.app import app
from bayesrisk.experiments.audit import read_audit
from bayesrisk.inference.microdata.posterior import record_law
from bayesrisk.mechanisms import Identity
from bayesrisk.risk.audit import Adversary, AuditedPopulation, AuditQuestion, place_beliefs
from bayesrisk.tables import Attribute, Geography, Schema, Table, Workload

MOST, MOST_TOWN = lasting(600), lasting(60)


def audited(measured, folder, name, what, most, *words):
    """Return the measures of an audit by two workers, whose seconds are held against an aim."""
    started = time.perf_counter()
    done = CliRunner().invoke(
        app, ["audit", name, "-o", str(folder), "--workers", "2", "--quiet", *words]
    )
    passed = time.perf_counter() - started
    assert done.exit_code == 0, done.exception
    measured(what, most, passed)
    assert passed < most.bound
    return read_audit(folder)[1]


def test_the_shipped_audit_is_done_in_ten_minutes(measured, tmp_path):
    what = "the audit of the sample: all protections and attacks, two workers"
    measures = audited(measured, tmp_path / "out", "sample:one-scale-audit", what, MOST)
    assert measures["protection"].nunique() == 8
    assert measures["answers_posterior"].notna().all()


def test_everybody_of_the_small_town_under_twenty_releases(measured, tmp_path):
    what = "everybody of the small town: 20 releases, four protections, two adversaries"
    words = ("--releases", "20", "--half-width", "0")
    measures = audited(
        measured, tmp_path / "out", "sample:small-town-audit", what, MOST_TOWN, *words
    )
    assert measures["releases"].max() == 20
    assert set(measures["adversary"]) == {"outsider", "linker"}
    assert measures.loc[measures["group"] == "everybody", "targets"].eq(248).all()


def patients(seed):
    """Return 200 made-up patients of four wards, and all one- and two-way tables of them."""
    sizes = {"sex": 2, "age": 6, "diagnosis": 8}
    attributes = tuple(Attribute(name, size) for name, size in sizes.items())
    schema = Schema("patients", attributes, Geography("wards", ("ward",), (1,)))
    eye = {name: np.eye(size, dtype=np.int64) for name, size in sizes.items()}
    tables = {}
    for a in sizes:
        for b in [b for b in sizes if b >= a]:
            one = {a: np.repeat(eye[a], sizes[b], axis=0), b: np.tile(eye[b], (sizes[a], 1))}
            factors = {a: eye[a]} if a == b else one
            cells = tuple(map(str, range(len(factors[a]))))
            tables["ward", f"{a} {b}"] = Table(f"{a} {b}", cells, factors)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(size, size=200) for name, size in sizes.items()})
    people = Records.from_frame(frame.assign(ward=np.repeat(list("1234"), 50)), schema=schema)
    return people, Workload(schema, tables)


def test_everybody_of_a_ward_from_one_law(compare, monkeypatch):
    people, workload = patients(1)
    question = AuditQuestion(workload, ("diagnosis",), (Adversary.named("outsider"),))
    population = AuditedPopulation(people, question, seed=1)
    release = population.release("none", 0, Identity())

    def ours():
        rows = population.rows(0)
        return population.statements("none", "none", 0, Identity(), release, rows)

    def twin():  # a law of the others for each record
        def alone(system, **options):
            return replace(record_law(system, **options | {"removed": ()}), reduced_means={})

        with monkeypatch.context() as patch:
            patch.setattr(place_beliefs, "record_law", alone)
            return ours()

    one, other = ours(), twin()
    for belief in ("posterior", "without"):
        np.testing.assert_allclose(one[belief], other[belief], rtol=1e-10, atol=1e-10)
    what = "everybody of a ward with and without their record, against a law for each"
    compare(ours, twin, aims={what: faster(10)}, rounds=3, clock=time.process_time)

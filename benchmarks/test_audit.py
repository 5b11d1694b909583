"""Audits that ship as samples: how long they take on two cores."""

import time

from targets import lasting
from typer.testing import CliRunner

from bayesrisk.cli.app import app
from bayesrisk.experiments.audit import read_audit

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

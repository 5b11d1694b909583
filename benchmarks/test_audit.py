"""The audit that ships as a sample: all protections and attacks in ten minutes on two cores."""

import time

from targets import lasting
from typer.testing import CliRunner

from bayesrisk.cli.app import app
from bayesrisk.experiments.audit import read_audit

MOST = lasting(600)


def test_the_shipped_audit_is_done_in_ten_minutes(measured, tmp_path):
    started = time.perf_counter()
    words = ["audit", "sample:one-scale-audit", "-o", str(tmp_path / "out"), "--workers", "2"]
    done = CliRunner().invoke(app, [*words, "--quiet"])
    passed = time.perf_counter() - started
    assert done.exit_code == 0, done.exception
    _, measures = read_audit(tmp_path / "out")
    assert measures["protection"].nunique() == 8
    assert measures["gain"].notna().all()
    measured("the audit of the sample: all protections and attacks, two workers", MOST, passed)
    assert passed < MOST.bound

"""``bayesrisk audit`` ends with its time, whatever runs then, and keeps what was done."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br

RUN = """
import sys, threading
from bayesrisk.experiments.audit import AuditStudy, populations
compute, pilot = AuditStudy.compute_after, populations.Pilot(person=0.01)
populations.PopulationInParts.pilot = lambda *_: pilot

def hang(study, shard, folder):
    if shard >= ({hangs} if {hangs} >= 0 else len(study._shards)):
        threading.Event().wait(600)
    return compute(study, shard, folder)

AuditStudy.compute_after = hang
from bayesrisk.cli.app import main
sys.argv = ["bayesrisk", "audit", "people.csv", "-o", "out", "--place", "place", *{options!r}]
sys.argv += ["--protection", "none", "--protection", "discrete-gaussian:rho=1", "--releases", "2"]
main()
"""
NEVER, SECOND_PROTECTION = 10**6, -1


def run(folder, hangs, *options):
    return subprocess.run(
        [sys.executable, "-c", RUN.format(hangs=hangs, options=options)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def reported(folder):
    """Return the measures of each protection that the report of a folder is about."""
    assert (folder / "out" / "report.html").exists()
    file = folder / "out" / "measures.csv"
    measures = pd.read_csv(file, keep_default_na=False, na_values=[""])
    return {name: rows.reset_index(drop=True) for name, rows in measures.groupby("protection")}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(5)
    codes = {"place": ["a", "b", "c"], "sex": ["f", "m"], "illness": ["no", "yes"]}
    frame = pd.DataFrame({name: rng.choice(values, 40) for name, values in codes.items()})
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("shards", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_it_ends_with_its_time_and_goes_on_from_what_was_kept(folder, shards):
    late = run(folder, shards, "--time-limit", "10", "--targets", "10")
    assert late.returncode == 4
    assert "Traceback" not in late.stderr
    last = late.stderr.splitlines()[-1]
    assert not (folder / "out" / "report.html").exists()
    if not shards:
        assert "--time-limit is over; no part was done" in last
        return
    assert f"{shards} of " in last
    done = run(folder, NEVER, "--time-limit", "100", "--targets", "10", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["resumed"] == shards
    assert (folder / "out" / "report.html").exists()


def test_a_run_that_ends_before_its_time_says_nothing_of_it(folder):
    done = run(folder, NEVER, "--time-limit", "200", "--targets", "10")
    assert done.returncode == 0, done.stderr
    assert "time-limit" not in done.stderr
    assert "report: " in done.stdout


def test_what_ends_with_its_time_reports_the_protections_that_are_done(folder):
    late = run(folder, SECOND_PROTECTION, "--time-limit", "15", "--targets", "10")
    assert late.returncode == 4, late.stderr
    first = reported(folder)
    assert {*first} == {"none"}
    assert "no protection: remaining answers" in late.stdout
    said = "Not reached before this audit ended: discrete-gaussian:rho=1. Go on with --resume"
    assert said in " ".join(late.stdout.split())
    page = (folder / "out" / "report.html").read_text("utf-8")
    assert said in page.split('<p class="lead">')[1].split("</p>")[0]
    assert "not reached" in page.split('<table class="cards">')[1].split("</table>")[0]
    found = br.read_audit(folder / "out")
    assert {*found.statements["protection"]} == {*found.measures["protection"]} == {"none"}
    assert found.missing == ("discrete-gaussian:rho=1",)
    assert said in " ".join(repr(found).split())
    done = run(folder, NEVER, "--targets", "10", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    whole = reported(folder)
    assert {*whole} == {"none", "discrete-gaussian:rho=1"}
    assert br.read_audit(folder / "out").missing == ()
    pd.testing.assert_frame_equal(whole["none"], first["none"])


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
def test_ctrl_c_reports_the_protections_that_are_done(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", RUN.format(hangs=SECOND_PROTECTION, options=("--targets", "10"))],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end, parts = time.monotonic() + 200, folder / "out" / "parts"
    number = 0
    while time.monotonic() < end and not number:
        time.sleep(0.2)
        config = folder / "out" / "config.json"
        whole = json.loads(config.read_text())["shards"] // 2 if config.exists() else None
        number = whole is not None and len([*parts.glob("shard-*.json")]) == whole
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=200)
    assert process.returncode == 130, stderr
    assert {*reported(folder)} == {"none"}
    assert "no protection: remaining answers" in stdout
    assert "Traceback" not in stderr

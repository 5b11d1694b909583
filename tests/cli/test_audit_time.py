"""``bayesrisk audit`` ends with its time, whatever runs then, and keeps what was done."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

RUN = """
import sys, threading
from bayesrisk.experiments.audit import AuditStudy, populations
compute, pilot = AuditStudy.compute_after, populations.Pilot(person=0.01)
populations.PopulationInParts.pilot = lambda *_: pilot

def hang(study, shard, folder):
    if shard >= {hangs}:
        threading.Event().wait(600)
    return compute(study, shard, folder)

AuditStudy.compute_after = hang
from bayesrisk.cli.app import main
sys.argv = ["bayesrisk", "audit", "people.csv", "-o", "out", "--place", "place", *{options!r}]
sys.argv += ["--protection", "none", "--protection", "discrete-gaussian:rho=1", "--releases", "2"]
main()
"""
NEVER = 10**6


def run(folder, hangs, *options):
    return subprocess.run(
        [sys.executable, "-c", RUN.format(hangs=hangs, options=options)],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(5)
    codes = {"place": ["a", "b", "c"], "sex": ["f", "m"], "illness": ["no", "yes"]}
    frame = pd.DataFrame({name: rng.choice(values, 40) for name, values in codes.items()})
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("shards", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_it_ends_with_its_time_and_goes_on_from_what_was_kept(folder, shards):
    late = run(folder, shards, "--time-limit", "10", "--targets", "10")
    assert late.returncode == 2
    assert "Traceback" not in late.stderr
    last = late.stderr.splitlines()[-1]
    if not shards:
        assert "--time-limit must be longer: it is over, and no part was done" in last
        return
    assert f"{shards} of " in last
    assert last.endswith("parts are done and kept in out; go on with --resume")
    done = run(folder, NEVER, "--time-limit", "100", "--targets", "10", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["resumed"] == shards
    assert (folder / "out" / "report.html").exists()


def test_a_run_that_ends_before_its_time_says_nothing_of_it(folder):
    done = run(folder, NEVER, "--time-limit", "200", "--targets", "10")
    assert done.returncode == 0, done.stderr
    assert "time-limit" not in done.stderr
    assert "report: " in done.stdout

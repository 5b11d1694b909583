"""The plug-in of the documentation, installed as a user would and found by its entry point."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "docs" / "examples" / "bayesrisk-subsampling"

SCRIPT = """
import json
from oracles.mechanisms import AGES, people_workload, population
from bayesrisk import available_mechanisms, make_mechanism
from bayesrisk.interfaces import Mechanism

data, asked = population(1, households=2000), people_workload(AGES)
mechanism = make_mechanism("subsampling", fraction="1/4")
made = mechanism.release(data, workload=asked, rng=1)
truth = make_mechanism("identity").release(data, workload=asked, rng=1)
counts = [r.tables.counts["county", "ages"].sum() for r in (made, truth)]
inside = all(
    (made.tables.counts[key] > truth.tables.counts[key]).nnz == 0 for key in asked.tables
)
try:
    make_mechanism("subsampling", fraction=2)
    error = ""
except ValueError as raised:
    error = str(raised)
print(json.dumps({
    "listed": "subsampling" in available_mechanisms(),
    "protocol": isinstance(mechanism, Mechanism),
    "spec": made.spec.to_dict(),
    "counts": [int(c) for c in counts],
    "inside": inside,
    "places": {k: len(v) for k, v in made.tables.geoids.items()},
    "error": error,
}))
"""


@pytest.mark.slow
def test_the_documented_plug_in(tmp_path):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", tmp_path]
    subprocess.run([*map(str, command), str(PROJECT)], check=True, capture_output=True, text=True)
    paths = [tmp_path, Path(__file__).parents[1]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    found = json.loads(run.stdout)
    assert found["listed"]
    assert found["protocol"]
    assert found["spec"]["parameters"] == {"fraction": "1/4"}
    kept, people = found["counts"]
    assert abs(kept - people / 4) < 5 * (people * 3 / 16) ** 0.5
    assert found["inside"]
    assert found["places"] == {"county": 1, "tract": 3, "block": 12}
    assert found["error"] == "fraction must be in (0, 1], got 2"

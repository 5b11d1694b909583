"""The attack of the documentation, installed as a user would and found by its entry point."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "docs" / "examples" / "bayesrisk-homogeneous"

SCRIPT = """
import json
from oracles.mechanisms import AGES, people_workload, population
from bayesrisk import make_mechanism
from bayesrisk.interfaces import Attack
from bayesrisk.reconstruction import available_attacks, make_attack

data, asked = population(1, households=20), people_workload(AGES)
truth = make_mechanism("identity").release(data, workload=asked)
attack = make_attack("homogeneous", level="block", table="ages")
found = attack.run(truth)
counts = truth.tables.counts["block", "ages"].toarray().tolist()
expected = [
    [str(place), row.index(max(row)), max(row)]
    for place, row in zip(truth.tables.geoids["block"], counts, strict=True)
    if sum(count > 0 for count in row) == 1
]
errors = []
rounded = make_mechanism("rounding", base=5, method="nearest").release(data, workload=asked)
for level, release in (("block", rounded), ("moon", truth)):
    try:
        make_attack("homogeneous", level=level, table="ages").run(release)
    except ValueError as raised:
        errors.append(str(raised))
print(json.dumps({
    "listed": "homogeneous" in available_attacks(),
    "protocol": isinstance(attack, Attack),
    "found": [[str(place), int(cell), int(n)] for place, cell, n in found.to_numpy()],
    "expected": expected,
    "errors": errors,
}))
"""


@pytest.mark.slow
def test_the_documented_attack(tmp_path):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", tmp_path]
    subprocess.run([*map(str, command), str(PROJECT)], check=True, capture_output=True, text=True)
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [tmp_path, Path(__file__).parents[1], *filter(None, inherited)]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["listed"]
    assert found["protocol"]
    assert found["expected"]
    assert found["found"] == found["expected"]
    assert found["errors"] == [
        "release must hold true counts, got 'rounding'",
        "release must have table 'ages' at level 'moon'",
    ]

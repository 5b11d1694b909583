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
    "found": [[str(place), int(cell), int(n)] for place, _, cell, n in found.to_numpy()],
    "expected": expected,
    "errors": errors,
}))
"""


# What a user of the attack runs on records of two towns, in one of which everybody is ill.
AUDIT = """
import json
import pandas as pd
import bayesrisk as br

frame = pd.DataFrame({"town": ["A"] * 6 + ["B"] * 6, "sex": ["f", "m"] * 6,
                      "ill": ["yes"] * 6 + ["no", "yes"] * 3})
found = br.audit(frame, key="sex", secret="ill", place="town", protections=["none"],
                 adversaries=["outsider"], methods=["homogeneous:level=town,table=ill"])
told = found.statements.groupby(["place", "status"]).size()
print(json.dumps([[*key, int(n)] for key, n in told.items()]))
frame.to_csv("people.csv", index=False)
"""


def installed(tmp_path, *words):
    """Return what a process says in which the package of the page is installed."""
    if not (tmp_path / "site").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--disable-pip-version-check"]
        command += ["--target", str(tmp_path / "site"), str(PROJECT)]
        subprocess.run(command, check=True, capture_output=True, text=True)
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [tmp_path / "site", Path(__file__).parents[1], *filter(None, inherited)]
    run = subprocess.run(
        [sys.executable, "-W", "error", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.slow
def test_the_documented_attack(tmp_path):
    found = json.loads(installed(tmp_path, "-c", SCRIPT))
    assert found["listed"]
    assert found["protocol"]
    assert found["expected"]
    assert found["found"] == found["expected"]
    named = "attack 'homogeneous' (bayesrisk-homogeneous 1.0): release must "
    assert found["errors"] == [
        f"{named}hold true counts, got 'rounding'",
        f"{named}have table 'ages' at level 'moon'",
    ]


@pytest.mark.slow
def test_the_documented_attack_is_asked_by_audits_of_python_and_of_the_command_line(tmp_path):
    told = json.loads(installed(tmp_path, "-c", AUDIT).splitlines()[-1])
    assert [(status, n) for _, status, n in told] == [("proved", 12), ("unstated", 12)]
    words = ["people.csv", "--place", "town", "--columns", "sex,ill", "--known", "sex"]
    words += ["--stated", "ill", "--protection", "none", "--adversary", "outsider"]
    words += ["--method", "homogeneous:level=town,table=ill", "-o", "audit", "--json"]
    document = json.loads(installed(tmp_path, "-m", "bayesrisk", "audit", *words))
    assert document["statements"] == 24
    assert (tmp_path / "audit" / "report.html").is_file()

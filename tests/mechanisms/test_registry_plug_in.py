"""The plug-in of the documentation, installed as a user would and found by its entry point."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from mechanism_cases import county, tables

import bayesrisk
from bayesrisk import MechanismQuestion, mechanism_risk
from bayesrisk.release import Release, RoundingSpec, TrueCounts

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PROJECT = EXAMPLES / "bayesrisk-subsampling"
TRUE_TOTALS = EXAMPLES / "bayesrisk-true-totals"

SCRIPT = """
import json
from oracles.mechanisms import AGES, people_workload, population
from bayesrisk.mechanisms import available_mechanisms, make_mechanism
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
    "listed": {"subsampling", "true-totals"} <= set(available_mechanisms()),
    "shown": repr(make_mechanism("true-totals", base=3, true=["sex"])),
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
    command = [*map(str, command), str(PROJECT), str(TRUE_TOTALS)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    paths = [tmp_path, Path(__file__).parents[1], Path(bayesrisk.__file__).parents[1]]
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
    assert found["shown"] == "TrueTotals(base=3, true=['sex'])"
    assert found["spec"]["parameters"] == {"fraction": "1/4"}
    kept, people = found["counts"]
    assert abs(kept - people / 4) < 5 * (people * 3 / 16) ** 0.5
    assert found["inside"]
    assert found["places"] == {"county": 1, "tract": 3, "block": 12}
    assert found["error"] == "fraction must be in (0, 1], got 2"


@pytest.fixture(scope="module")
def true_totals():
    file = TRUE_TOTALS / "bayesrisk_true_totals.py"
    about = spec_from_file_location("bayesrisk_true_totals", file)
    module = module_from_spec(about)
    about.loader.exec_module(module)
    return module.TrueTotals(base=4, true=["total"])


def rounding(count, base):
    """Return the law of a count that is rounded at random, as a mapping, in fractions."""
    below, rest = count // base * base, count % base
    law = {below: 1 - Fraction(rest, base), below + base: Fraction(rest, base)}
    return {value: share for value, share in law.items() if share}


def by_hand(truth, other, prior, base):
    """Return the average posterior of the truth, by listing every release of independent cells."""
    releases = [((), Fraction(1), Fraction(1))]
    for here, there in zip(truth, other, strict=True):
        laws = rounding(here, base), rounding(there, base)
        releases = [
            ((*seen, y), p * laws[0].get(y, 0), q * laws[1].get(y, 0))
            for seen, p, q in releases
            for y in {*laws[0], *laws[1]}
        ]
    return float(sum(p * prior * p / (prior * p + (1 - prior) * q) for _, p, q in releases if p))


@pytest.mark.parametrize("person", [100, 104, 105, 107])
@pytest.mark.parametrize("alternative", [None, {"colour": 0}])
def test_rounding_of_a_plug_in_has_its_risk_in_closed_form(true_totals, person, alternative):
    if alternative is not None and person == 100:
        alternative = {"colour": 2}
    question = MechanismQuestion(
        tables("block"),
        observed=[("block", "colour"), ("block", "detail")],
        alternatives=[alternative],
        prior=0.2,
    )
    found = mechanism_risk(county(), true_totals, {"person": person}, question, draws=40, rng=1)
    assert found.method == "closed-form"
    truth, other = found.true_counts.tolist()
    expected = by_hand(truth, other, Fraction(1, 5), 4)
    assert abs(found.marginal_posterior - expected) <= found.marginal_posterior.error + 1e-15


def test_true_counts_of_a_plug_in_are_certain(true_totals, tmp_path):
    question = MechanismQuestion(
        tables("block"), observed=[("block", "total")], alternatives=[None], prior=0.2
    )
    found = mechanism_risk(county(), true_totals, {"person": 104}, question, draws=40, rng=1)
    assert (found.method, found.marginal_posterior) == ("closed-form", 1.0)
    assert found.spec.likelihood("block", "total") == TrueCounts()
    assert found.spec.likelihood("block", "colour") == RoundingSpec(4, "random")
    assert not found.spec.true_counts
    release = true_totals.release(county(), workload=tables("block"), rng=2)
    release.write(tmp_path / "out")
    assert Release.read(tmp_path / "out") == release

"""The reconstruct command: what it prints, and how it stops."""

import json

import pandas as pd
import pytest
from persons import persons
from typer.testing import CliRunner

from bayesrisk.cli.app import app
from bayesrisk.cli.attacks import JOINT_NODES, JOINT_SECONDS
from bayesrisk.constraints.solvers import make_solver
from bayesrisk.exceptions import MissingDependencyError
from bayesrisk.experiments.reconstruction import read_reconstruction
from bayesrisk.tables import Records, Schema, Workload, tabulate

pytestmark = pytest.mark.usefixtures("quick_figures")

RUNNER = CliRunner()
BOTH = Workload.named("sf1-block").union(Workload.named("sf1-tract"))


def records():
    frame = persons(1, 80, [f"01001020100100{i}" for i in range(4)])
    return Records.from_frame(frame, schema=Schema.named("sf1-person"))


def run(*arguments):
    return RUNNER.invoke(app, ["attack", "--only", "records", *map(str, arguments)])


@pytest.fixture
def tables(tmp_path):
    tabulate(records(), BOTH).write(tmp_path / "t")
    return tmp_path / "t"


def test_records_of_a_tract(tables, tmp_path):
    out = tmp_path / "out"
    done = run(tables, "-o", out, "--scope", "tract", "--variability", "tract-bounds")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"80 records in {out}; blocks: ")
    assert "records: 1 of 1 shards" in done.stderr
    again = run(tables, "-o", out, "--scope", "tract", "--variability", "tract-bounds", "--resume")
    assert "1 of 1 parts done (1 were already there)" in again.stdout
    made = read_reconstruction(out)
    assert list(made.variability) == [
        "block", "population", "lower", "upper", "status", "seconds",
    ]  # fmt: skip
    assert list(made.records) == ["block", "sex", "age", "agebin", "race", "hisp"]


def test_json_and_options(tables, tmp_path):
    options = ["--scope", "block", "--time-limit", "1/2", "--nearest", "--workers", "1", "--json"]
    done = run(tables, "-o", tmp_path / "out", *options)
    assert done.stderr == ""
    summary = json.loads(done.stdout)
    assert (summary["records"], summary["complete"], summary["conflicts"]) == (80, True, [])
    config = read_reconstruction(tmp_path / "out").config
    assert tuple(config[name] for name in ("time_limit", "nearest", "variability")) == (
        0.5,
        True,
        None,
    )


@pytest.mark.parametrize(
    ("options", "limits"),
    [
        (["--variability", "tract-joint"], (JOINT_SECONDS, JOINT_NODES)),
        (
            ["--variability", "tract-joint", "--time-limit", "none", "--node-limit", "none"],
            (None, None),
        ),
        (["--variability", "tract-joint", "--solver", "pulp:highs"], (JOINT_SECONDS, None)),
        (["--variability", "tract-bounds", "--node-limit", "3"], (None, 3)),
    ],
)
def test_what_takes_long_has_a_limit_unless_none_is_asked_for(tables, tmp_path, options, limits):
    done = run(tables, "-o", tmp_path / "out", "--scope", "tract", *options, "--quiet")
    assert done.exit_code == 0
    config = read_reconstruction(tmp_path / "out").config
    assert (config["time_limit"], config["node_limit"]) == limits
    told = " ".join(run("--help").stdout.split())
    assert f"[{JOINT_SECONDS} with --variability tract-joint" in told
    assert f"[{JOINT_NODES} with --variability tract-joint" in told


def test_conflicts_are_printed(tables, tmp_path):
    part = tables / "part-00000.parquet"
    frame = pd.read_parquet(part)
    at = frame.index[(frame["table"] == "P1") & (frame["level"] == "block")][0]
    frame.loc[at, "count"] += 1
    frame.to_parquet(part, index=False)
    manifest = json.loads((tables / "_manifest.json").read_text())
    del manifest["seal"], manifest["parts"][0]["sha256"]  # as if written by hand
    (tables / "_manifest.json").write_text(json.dumps(manifest))
    done = run(tables, "-o", tmp_path / "out", "--scope", "block")
    assert done.exit_code == 0
    assert "1 infeasible" in done.stdout
    assert f"no records fit: block {frame.loc[at, 'geoid']}: " in done.stdout


def solver_is_missing(name):
    try:
        make_solver(name)
    except MissingDependencyError:
        return True
    return False


def test_a_solver_that_is_not_installed(tables, tmp_path, monkeypatch):
    import pulp

    monkeypatch.setattr(pulp, "listSolvers", lambda onlyAvailable=False: (
        [] if onlyAvailable else ["COIN_CMD", "PULP_CBC_CMD"]
    ))  # fmt: skip
    for solver in (pulp.COIN_CMD, getattr(pulp, "PULP_CBC_CMD", pulp.COIN_CMD)):
        monkeypatch.setattr(solver, "available", lambda self: False)
    assert solver_is_missing("pulp:cbc")
    done = run(tables, "-o", tmp_path / "out", "--scope", "block", "--solver", "pulp:cbc")
    assert isinstance(done.exception, MissingDependencyError)
    assert "cbc" in str(done.exception)
    assert not (tmp_path / "out").exists()

"""The command as a user runs it: output, exit status, nothing half-written."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import bayesrisk
from bayesrisk.cli.app import main

CONFIG = """
settings_per_shard = 1
[grid]
rho = [{ log = [0.01, 1.0], points = 3 }, { name = "mine", value = "1/20" }]
prior = ["1/2", "1/10"]
"""


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; return exit status, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["bayesrisk", *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(CONFIG, encoding="utf-8")
    return file


def test_risk_json_holds_the_exact_numbers(run):
    status, out, _ = run("risk", "3", "--rho", "0.0992264", "--prior", "1/864", "--json")
    document = json.loads(out)
    (row,) = document["rows"]
    assert status == 0
    assert row["posterior"] == bayesrisk.posterior_probability(3, rho=0.0992264, prior=1 / 864)
    assert row["correct_decision_probability"] == bayesrisk.correct_decision_probability(
        rho=0.0992264, prior=1 / 864
    )
    assert document["status"] == "exact"


def test_risk_table(run):
    _, out, _ = run("risk", "1", "5", "--rho", "0.0992264", "--prior", "0.5", "--prior", "1/10")
    lines = [line.split() for line in out.splitlines()]
    assert ["5", "0", "0.1", "0.213461", "2.13461", "0"] in lines
    assert ["0.5", "1", "0.523666", "1.04733", "0.58886"] in lines
    assert "found if in cell" in out
    assert "correct decision" not in out
    # prior, right without a release, right with it
    assert ["0.5", "0.5", "0.58886"] in lines
    assert ["0.1", "0.9", "0.9"] in lines


def test_risk_of_a_negative_count_and_options(run):
    options = ("--sigma2", "10", "--known-count", "4", "--scenario", "membership", "--json")
    status, out, _ = run("risk", "--prior", ".2", *options, "--", "-7")
    (row,) = json.loads(out)["rows"]
    assert status == 0
    assert row["posterior"] == bayesrisk.posterior_probability(
        -7, sigma2=10, prior=0.2, known_count=4
    )
    _, out, _ = run("risk", "1", "--prior", ".2", "--rho", ".1", "--sensitivity", "change-one")
    assert "sigma2 = 10)" in out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--rho", "2.56", "--delta", "1e-10"), {"epsilon": 17.158308712}),
        (
            ("--rho", "2.56", "--delta", "1e-10", "--method", "bun-steinke"),
            {"epsilon": 17.915282919},
        ),
        (("--rho", "0.0992", "--epsilon", "1"), {"delta": 0.008691569467328}),
        (("--sigma2", "5"), {"rho": 0.1}),
        (("--rho", "0.1", "--sensitivity", "change-one"), {"sigma2": 10.0}),
        (("--epsilon", "17.158308712104745", "--delta", "1e-10"), {"rho": 2.56}),
    ],
)
def test_convert(run, options, expected):
    status, out, _ = run("convert", *options, "--json")
    document = json.loads(out)
    assert status == 0
    for name, value in expected.items():
        assert document[name] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("risk", "1.5", "--rho", ".1", "--prior", ".5"), "noisy_count must be a whole number"),
        (("risk", "x", "--rho", ".1", "--prior", ".5"), "noisy_count must be a finite number"),
        (("risk", "1", "--rho", "-1", "--prior", ".5"), "rho must be > 0, got -1.0"),
        (("risk", "1", "--rho", ".1", "--prior", "2"), "prior must be < 1, got 2.0"),
        (("risk", "1", "--rho", ".1", "--prior", "1/0"), "prior must be a finite number"),
        (("risk", "1", "--prior", ".5"), "exactly one of rho and sigma2"),
        (
            ("risk", "1", "--rho", ".1", "--prior", ".5", "--scenario", "x"),
            "scenario_name must be one",
        ),
        (("convert", "--rho", "1", "--sigma2", "1"), "give exactly one of --rho"),
        (("convert", "--delta", "0.1"), "give exactly one of --rho"),
        (("sweep", "no.toml", "-o", "x"), "no.toml: cannot be read: [Errno 2] No such file"),
        (("sweep", "sample:dare-county-sweep", "-o", "x", "--shard", "2"), "shard must be i/n"),
        (("report", "nowhere"), "holds no sweep"),
    ],
)
def test_errors_are_one_line_and_status_two(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("bayesrisk: ")
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_sweep_and_report(run, config, tmp_path):
    out_folder = tmp_path / "out"
    status, out, err = run("sweep", config, "-o", out_folder)
    assert status == 0
    assert "4 shards computed" in out
    assert "of 4 shards" in err  # plain log lines, as this is no terminal
    assert (out_folder / "report.html").exists()
    status, out, err = run("sweep", config, "-o", out_folder)
    assert status == 2
    assert "add --resume" in err
    status, out, err = run("sweep", config, "-o", out_folder, "--resume", "--quiet", "--json")
    assert (status, err) == (0, "")
    summary = json.loads(out)
    assert (summary["computed"], summary["resumed"], summary["complete"]) == (0, 4, True)
    status, out, _ = run("report", out_folder, "--json")
    assert json.loads(out)["report"] == str(out_folder / "report.html")


def test_sweep_in_two_shards(run, config, tmp_path):
    _, out, _ = run("sweep", config, "-o", tmp_path / "out", "--shard", "1/2", "--quiet")
    assert "shards of other runs are missing" in out
    _, out, _ = run("sweep", config, "-o", tmp_path / "out", "--shard", "2/2", "--quiet")
    assert "report: " in out


def test_seed_option_makes_another_sweep(run, config, tmp_path):
    run("sweep", config, "-o", tmp_path / "out", "--quiet")
    status, _, err = run("sweep", config, "-o", tmp_path / "out", "--seed", "5", "--resume")
    assert status == 2
    assert "other seed" in err


def test_version_and_help(run):
    assert run("--version")[1] == f"bayesrisk {bayesrisk.__version__}\n"
    status, out, _ = run("--help")
    assert status == 0
    assert all(command in out for command in ("risk", "convert", "sweep", "report"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "end"),
    [
        # What Ctrl-C does: a signal to every process of the group.
        (1, lambda pid: os.killpg(pid, signal.SIGINT)),
        (2, lambda pid: os.killpg(pid, signal.SIGINT)),
        # What a batch system does: a request to the one process that it started.
        (2, lambda pid: os.kill(pid, signal.SIGTERM)),
    ],
    ids=["1-interrupt", "2-interrupt", "2-terminate"],
)
def test_interrupt_keeps_finished_shards(config, tmp_path, workers, end):
    config.write_text(CONFIG.replace("points = 3", "points = 3000"), encoding="utf-8")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "bayesrisk", "sweep", config, "-o", out, "--quiet"]
    process = subprocess.Popen(
        [*map(str, command), "--workers", str(workers)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120.0
    while len(list((out / "parts").glob("*.parquet"))) < 3:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    end(process.pid)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted; finished shards are kept" in err
    assert "Traceback" not in err
    manifest = json.loads((out / "manifest.json").read_text())
    assert len(manifest["parts"]) >= 3
    assert not manifest["complete"]


def test_an_interrupt_of_any_command_is_one_line(run, monkeypatch):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayesrisk.population.population_spec", stop)
    status, out, err = run("simulate", "--preset", "tract", "-o", "nowhere", "--seed", "1")
    assert (status, out, err) == (130, "", "bayesrisk: interrupted\n")

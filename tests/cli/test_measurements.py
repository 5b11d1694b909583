"""``bayesrisk measurements`` as a user runs it."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import bayesrisk as br
from bayesrisk.cli.app import main


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return br.readers.write_nmf(tmp_path_factory.mktemp("nmf") / "US_Person_PL_PROD", rng=41)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; return exit status, output and errors."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["bayesrisk", "measurements", *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_the_whole_way(run, sample, tmp_path):
    out = tmp_path / "out.parquet"
    status, text, err = run(
        sample.folder, "-o", out, "--prior", "1/10", "--known-count", "0",
        "--exceeds", "1.5", "--exceeds", "2", "--budget", "pl94-us",
    )  # fmt: skip
    assert status == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.parquet", "out.png", "out.svg"]
    table = pd.read_parquet(out)
    lines = text.splitlines()
    silent = len(sample.geocodes["Block"]) - table["geocode"].nunique()
    assert lines[0] == (
        f"{len(table)} cells of {table['geocode'].nunique()} units (Block, detailed) in {out}; "
        f"{silent} more have no noisy answer"
    )
    assert [line.split()[:2] for line in lines[3:5]] == [
        ["1.5", str((table["risk_ratio"] > 1.5).sum())],
        ["2", str((table["risk_ratio"] > 2).sum())],
    ]
    assert lines[-1] == f"figure: {tmp_path / 'out.png'}"
    assert "rows" in err
    assert "shards" not in err
    sigma2 = float(1 / sample.rho["Block", "detailed"].max())
    np.testing.assert_array_equal(
        table["posterior"], br.posterior_probability(table["noisy_count"], sigma2=sigma2, prior=0.1)
    )


def test_json_and_other_levels(run, sample, tmp_path):
    status, text, err = run(
        sample.folder, "-o", tmp_path / "out.parquet", "--prior", "0.5", "--known-count",
        "2", "--level", "Tract", "--query", "votingage", "--figure", tmp_path / "f.svg", "--json",
    )  # fmt: skip
    document = json.loads(text)
    assert (status, err) == (0, "")
    assert document["figures"] == [str(tmp_path / "f.png"), str(tmp_path / "f.svg")]
    assert (document["level"], document["query"]) == ("Tract", "votingage")
    assert document["cells"] == 2 * document["units"] == len(pd.read_parquet(document["output"]))
    assert document["known_count"] == 2
    assert [row["risk_ratio"] for row in document["exceedance"]] == [1.5]


def test_quiet(run, sample, tmp_path):
    status, _, err = run(sample.folder, "-o", tmp_path / "o.parquet", "--prior", "0.1", "-q")
    assert (status, err) == (0, "")


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        (["--prior", "2"], "--prior must be < 1, got 2.0"),
        (["--budget", "dhc-us"], "budget must be one of pl94-us, pl94-pr, got 'dhc-us'"),
        (["--budget", "pl94-pr"], "variance"),
        (["--level", "Prim"], "level must be one of US, State"),
        (["--query", "age"], "query must be one of cenrace"),
        (["--exceeds", "0"], "--exceeds must be > 0, got 0"),
        (["--exceeds", "many"], "exceeds must be a finite number"),
        (["--known-count", "-1"], "--known-count must be >= 0, got -1"),
        (["--figure", "/nowhere/f"], "the folder '/nowhere' does not exist"),
    ],
)
def test_what_is_refused(run, sample, tmp_path, extra, text):
    output = tmp_path / "o.parquet"
    if extra == ["--budget", "pl94-pr"]:
        extra = [*extra, "--level", "Block_Group"]  # its budget is not the nation's
    status, out, err = run(sample.folder, "-o", output, "--prior", "0.1", *extra)
    assert (status, out) == (3 if text == "variance" else 2, "")  # the file does not fit
    assert text in err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_figures_are_not_replaced(run, sample, tmp_path):
    assert "Missing option '--output'" in run(sample.folder, "--prior", "0.1")[2]
    (tmp_path / "o.svg").write_text("mine", encoding="utf-8")
    status, _, err = run(sample.folder, "-o", tmp_path / "o.parquet", "--prior", "0.1")
    assert status == 2
    assert "o.svg: exists already" in err
    assert [p.name for p in tmp_path.iterdir()] == ["o.svg"]


@pytest.mark.slow
def test_an_interrupt_leaves_nothing(tmp_path):
    sample = br.readers.write_nmf(
        tmp_path / "nmf", rng=1, counties=1, tracts=(1, 1), block_groups=(9, 9), blocks=(120, 120)
    )
    folder = tmp_path / "out"
    folder.mkdir()
    command = [sys.executable, "-m", "bayesrisk", "measurements", str(sample.folder), "-o",
               str(folder / "o.parquet"), "--prior", "0.1"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "bayesrisk: interrupted" in err
    assert list(folder.iterdir()) == []

"""``bayesrisk occupancy``: households and tables, JSON, refusals, interrupts."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesrisk.cli import app
from bayesrisk.experiments import OccupancyConfig, occupancy_run
from bayesrisk.experiments.occupancy_study import synthetic_households
from bayesrisk.tables import schema, tabulate_records, workload

SMALL = ["--solutions", "2", "--noisy-solutions", "2", "--quiet", "--no-figures"]


def run(*words):
    return CliRunner().invoke(app, ["occupancy", *map(str, words)])


@pytest.fixture(scope="module")
def homes():
    return synthetic_households(OccupancyConfig(seeds=(5,), blocks=8), 5)[0].households


def test_households(tmp_path, homes):
    homes.write(tmp_path / "homes.parquet")
    words = [tmp_path / "homes.parquet", "-o", tmp_path / "out", "--protection", "none", *SMALL]
    first = run(*words)
    assert first.exit_code == 0, first.output
    assert "precision 1.00" in first.output
    assert (tmp_path / "out" / "table.csv").exists()
    document = json.loads(run(*words, "--json").output)
    assert {row["protection"] for row in document["table"]} == {"none"}


def test_synthetic_with_figures(tmp_path):
    result = run(
        *("-o", tmp_path, "--seeds", 1, "--blocks", 8, "--protection", "none"),
        *("--solutions", 2, "--closed"),
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figures" / "blocks.png").exists()
    assert "1 of 1 parts" in result.stderr


def test_tables(tmp_path, homes):
    assert homes.schema == schema("household-occupancy")
    tabulate_records(homes, workload("household-occupancy")).write(tmp_path / "tables")
    result = run(tmp_path / "tables", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    frame = pd.read_parquet(tmp_path / "out" / "blocks.parquet")
    assert list(frame) == ["block", "subsidised", "status", "way", "cause"]
    document = json.loads(run(tmp_path / "tables", "-o", tmp_path / "out", "--json").output)
    assert sum(document["statuses"].values()) == document["blocks"] == len(frame)


def test_refusals(tmp_path):
    missing = run(tmp_path / "none.parquet", "-o", tmp_path / "out")
    assert missing.exit_code != 0
    assert not (tmp_path / "out").exists()
    assert run("-o", tmp_path / "out", "--protection", "prayer").exit_code != 0
    assert run("-o", tmp_path / "out", "--seeds", 0).exit_code != 0


def test_an_interrupt_writes_nothing(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(occupancy_run, "study_part", stop)
    result = run("-o", tmp_path / "out", "--seeds", 1, "--blocks", 8, *SMALL)
    assert result.exit_code == 130
    assert "interrupted; nothing was written" in result.stderr
    assert not (tmp_path / "out").exists()

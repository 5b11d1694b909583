"""``bayesrisk census occupancy``: households, tables and statistics, JSON, refusals, interrupts."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesrisk.census import detect_occupancy, occupancy_statistics
from bayesrisk.census.studies.occupancy import OccupancyStudy, synthetic_households
from bayesrisk.cli.app import app
from bayesrisk.exceptions import BayesRiskError, DataError
from bayesrisk.tables import PublishedTables, Schema, Workload, tabulate

SMALL = ["--solutions", "2", "--noisy-solutions", "2", "--quiet", "--no-figures"]


def run(*words, command="study"):
    return CliRunner().invoke(app, ["census", "occupancy", command, *map(str, words)])


def attack(*words):
    return run(*words, command="attack")


def told(result):
    """The refusal, which the command line shows without a traceback."""
    assert isinstance(result.exception, BayesRiskError)
    return str(result.exception)


@pytest.fixture(scope="module")
def homes():
    return synthetic_households(OccupancyStudy(seeds=(5,), blocks=8), 5)[0].households


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    file = tmp_path_factory.mktemp("sample") / "sample.parquet"
    other = synthetic_households(OccupancyStudy(seeds=(6,), blocks=30), 6)[0].households
    other.to_frame()[["size", "race_ethnicity", "children"]].to_parquet(file)
    return file


def test_households(tmp_path, homes):
    homes.write(tmp_path / "homes.parquet")
    words = [tmp_path / "homes.parquet", "-o", tmp_path / "out", "--protection", "none", *SMALL]
    first = run(*words)
    assert first.exit_code == 0, first.output
    assert "precision 100%" in first.output
    before = (tmp_path / "out" / "table.csv").read_bytes()
    again = run(*words)
    assert again.exit_code != 0
    assert "add --resume" in told(again)
    document = json.loads(run(*words, "--resume", "--json").output)
    assert {row["protection"] for row in document["table"]} == {"none"}
    assert (tmp_path / "out" / "table.csv").read_bytes() == before
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["households"] != "synthetic"
    assert config["sample"] == "synthetic"


@pytest.mark.slow
def test_synthetic_with_figures(tmp_path):
    result = run(
        *("-o", tmp_path, "--seeds", 1, "--blocks", 8, "--protection", "none"),
        *("--solutions", 2, "--closed", "--alpha", 0.01),
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figures" / "blocks.png").exists()
    assert "1 of 1 shards" in result.stderr


def test_published_tables(tmp_path, homes):
    assert homes.schema == Schema.named("household-occupancy")
    tabulate(homes, Workload.named("household-occupancy")).write(tmp_path / "tables")
    result = attack(tmp_path / "tables", "-o", tmp_path / "out", "--quiet")
    assert result.exit_code == 0, result.output
    frame = pd.read_parquet(tmp_path / "out" / "blocks.parquet")
    assert list(frame) == ["block", "subsidised", "status", "way", "conflict"]
    assert frame["status"].eq("violation").any()
    words = [tmp_path / "tables", "-o", tmp_path / "out", "--json"]
    document = json.loads(attack(*words, "--resume").output)
    assert sum(document["statuses"].values()) == document["blocks"] == len(frame)
    assert not (tmp_path / "out" / "households.parquet").exists()


def test_likely_households_of_published_statistics(tmp_path, homes, sample):
    tables = tabulate(homes, Workload.named("household-occupancy"))
    blocks = occupancy_statistics(tables)
    blocks.to_frame().to_parquet(tmp_path / "blocks.parquet")
    words = [tmp_path / "blocks.parquet", "-o", tmp_path / "out", "--sample", sample]
    result = attack(*words, "--solutions", 5, "--quiet")
    assert result.exit_code == 0, result.output
    found = pd.read_parquet(tmp_path / "out" / "blocks.parquet").set_index("block")
    assert found["status"].tolist() == list(detect_occupancy(blocks).status)
    proved = found["status"] == "violation"
    assert (found.loc[proved, "solutions"] == 5).all()
    assert (found.loc[proved, "violations"] >= 1.0).all()  # each reconstruction has one
    assert found.loc[~proved, "violations"].isna().all()
    assert set(found.loc[~proved, "reconstruction"]) == {"none"}
    likely = pd.read_parquet(tmp_path / "out" / "households.parquet")
    total = likely.groupby("block")["households"].sum()
    expected = pd.Series(blocks.households, index=blocks.geoids)[total.index]
    assert np.allclose(total, expected, rtol=1e-12, atol=0)
    breach = likely[likely["violation"]].groupby("block")["households"].sum()
    assert np.allclose(breach, found.loc[breach.index, "violations"], rtol=1e-12, atol=0)
    for block in total.index:  # violations first
        assert likely.loc[likely["block"] == block, "violation"].is_monotonic_decreasing


def test_refusals(tmp_path, homes):
    assert "no --error" in told(run("-o", tmp_path / "out", "--error", "absolute"))  # of attacks
    frame = occupancy_statistics(tabulate(homes, Workload.named("household-occupancy"))).to_frame()
    file = tmp_path / "blocks.parquet"
    words = [file, "-o", tmp_path / "out"]
    frame.assign(sizes_3=-1).to_parquet(file)
    assert "row 1, column 'sizes_3': must be a whole number" in told(attack(*words))
    frame.to_parquet(file)
    assert "--hud must be 'counts'" in told(attack(*words, "--hud", "percentages"))
    assert "--error must be one of" in told(attack(*words, "--error", "big"))
    frame.iloc[:0].to_parquet(file)
    assert "must hold at least one block" in told(attack(*words))
    assert not (tmp_path / "out").exists()


def test_tables_that_do_not_fit_are_data_and_a_level_is_use(homes, tmp_path):
    tables = tabulate(homes, Workload.named("household-occupancy"))
    some = tables.workload.select(without=["H3"])
    PublishedTables(some, tables.geoids, {key: tables.counts[key] for key in some.tables}).write(
        tmp_path / "some"
    )
    done = attack(tmp_path / "some", "-o", tmp_path / "out")
    assert isinstance(done.exception, DataError)
    assert "some: tables must have table 'H3' of level 'block', got none" in told(done)
    done = attack(tmp_path / "some", "-o", tmp_path / "out", "--level", "blok")
    assert "--level must be one of" in told(done)
    assert "Did you mean 'block'?" in told(done)
    assert not (tmp_path / "out").exists()

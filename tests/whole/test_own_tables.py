"""Commands on tables of one's own: files of the user, and the sample."""

import shutil

import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesrisk import datasets as samples
from bayesrisk.cli.app import app
from bayesrisk.release import Release
from bayesrisk.tables import PublishedTables, Records, Workload, tabulate


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def hospital(tmp_path):
    return shutil.copytree(samples.path("hospital"), tmp_path / "hospital")


def test_from_end_to_end(hospital, tmp_path):
    work = Workload.read(hospital / "tables.toml")
    records = Records.read(hospital / "records.csv", schema=work.schema)
    for i, (source, tables) in enumerate(
        ((hospital / "records.csv", hospital / "tables.toml"), ("sample:hospital",) * 2)
    ):
        out = tmp_path / f"t{i}"
        done = run(
            "release", "--protection", "none", source, "--tables", tables, "-o", out, "--quiet"
        )
        assert done.exit_code == 0, done.exception
        assert PublishedTables.read(out) == tabulate(records, work)
    done = run(
        "attack", "--only", "records", out, "--scope", "all", "-o", tmp_path / "r", "--variability",
        "block",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    found = Records.read(tmp_path / "r/records.parquet", schema=work.schema)
    assert tabulate(found, work) == tabulate(records, work)
    done = run("attack", "--only", "claims", out, "-o", tmp_path / "c")
    assert done.exit_code == 0, done.exception
    assert "  One record with region Centre, age 0-17, diagnosis injury." in done.stdout
    assert len(pd.read_parquet(tmp_path / "c/claims.parquet")) > 0
    done = run(
        "release", "sample:hospital", "--tables", "sample:hospital", "-o", tmp_path / "p",
        "--protection", "rounding", "--set", "base=3", "--set", "method=nearest",
    )  # fmt: skip
    assert done.exit_code == 0, done.exception
    assert Release.read(tmp_path / "p").tables.workload == work


def test_a_schema_of_the_file_of_records(hospital, tmp_path):
    more = ("--tables", hospital / "tables.toml", "--schema", hospital / "schema.toml")
    done = run(
        "release", "--protection", "none", hospital / "records.csv", *more, "-o", tmp_path / "t"
    )
    assert done.exit_code == 0, done.exception
    done = run(
        "release", hospital / "records.csv", *more, "--protection", "identity", "-o", tmp_path / "p"
    )
    assert done.exit_code == 0, done.exception

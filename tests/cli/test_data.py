"""Every command that takes data takes ``sample:NAME``, or names the samples that it can take."""

import pandas as pd
import pytest

from bayesrisk import datasets as samples
from bayesrisk.census.cli.measurements import measurement_folder
from bayesrisk.cli.data import MICRODATA, data_path
from bayesrisk.exceptions import ArgumentError

pytestmark = pytest.mark.usefixtures("quick_figures")


def test_measurements(run, tmp_path):
    out = tmp_path / "risk"
    done = run(
        "census", "measurements", "sample:noisy-measurements", "--prior", "0.1", "-o", out, "-q"
    )
    assert (done[0], done[2]) == (0, "")
    assert len(pd.read_parquet(out / "risk.parquet")) > 0
    with measurement_folder(tmp_path) as folder:
        assert folder == tmp_path


def test_microdata(run, tmp_path):
    tables = tmp_path / "tables"
    done = run(
        "release",
        "--protection",
        "none",
        "sample:fifty-blocks",
        "--tables",
        "household-dhc",
        "-o",
        tables,
    )
    assert done[0] == 0, done[2]
    released = ("--tables", "household-dhc", "--protection", "identity", "--simulation-seed", 0)
    done = run("release", "sample:fifty-blocks", *released, "-o", tmp_path / "released")
    assert done[0] == 0, done[2]
    for name in ("persons.parquet", "households.parquet"):
        found = data_path("sample:synthetic-county", MICRODATA, name)
        assert found == samples.path("synthetic-county") / name
    with pytest.raises(ArgumentError, match=r"sample:fifty-blocks must hold persons\.parquet"):
        data_path("sample:fifty-blocks", MICRODATA, "persons.parquet")


def test_a_folder_without_microdata_names_the_file_to_give(tmp_path):
    (tmp_path / "people.csv").write_text("sex\nf\n")
    with pytest.raises(ArgumentError, match=r"holds no microdata .* give .*people\.csv"):
        data_path(tmp_path, MICRODATA)

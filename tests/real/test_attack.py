"""Real records from the command line: tables, records with proof, links that are confirmed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesrisk.cli.app import app
from bayesrisk.experiments.reconstruction import read_reconstruction

PERSON = Path(__file__).parents[3] / "shared" / "data" / "person"
FORM = ["block", "sex", "agebin", "race", "hisp"]

pytestmark = pytest.mark.skipif(
    not PERSON.is_dir(), reason=f"needs the shared data folder, {PERSON} is absent"
)


def two_tracts(name):
    """Return the two tracts with the fewest people, so that the test is short."""
    frame = pd.read_parquet(PERSON / name)
    tract = frame["block"] // 10_000
    chosen = tract.value_counts().nsmallest(2).index
    return frame[tract.isin(chosen)].reset_index(drop=True)


def run(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def sorted_form(frame):
    text = frame["block"].astype("str").str.zfill(15)
    return (
        frame[FORM[1:]]
        .astype("int64")
        .assign(block=text)[FORM]
        .sort_values(FORM, ignore_index=True)
    )


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_two_tracts_from_tables_to_confirmed_links(tmp_path, workers):
    truth = two_tracts("rhdf_dev.parquet").assign(person=lambda t: np.arange(len(t)))
    truth.to_parquet(tmp_path / "truth.parquet", index=False)
    known = truth[["block", "sex", "age", "person"]]
    known.to_parquet(tmp_path / "known.parquet", index=False)
    tables, out, report = (tmp_path / name for name in ("tables", "out", "report"))
    run(
        "release", "--protection", "none", tmp_path / "truth.parquet", "--tables",
        "sf1-block,sf1-tract", "-o", tables,
    )  # fmt: skip
    run(
        "attack", "--only", "records", tables, "-o", out, "--scope", "tract",
        "--variability", "tract-bounds", "--workers", workers,
    )  # fmt: skip
    made = read_reconstruction(out)
    assert set(made.blocks["status"]) == {"unique"}
    pd.testing.assert_frame_equal(sorted_form(made.records), sorted_form(truth))
    assert (made.variability["upper"] == 0.0).all()
    printed = run(
        "attack", "--only", "links", out, "--adversary", tmp_path / "known.parquet",
        "--truth", tmp_path / "truth.parquet", "--dialect", "schema", "-o", report,
    )  # fmt: skip
    assert f"{len(truth)} putative of {len(truth)} persons" in printed
    rates = pd.read_csv(report / "rates.csv")
    unique = rates.query(
        "panel == 'nonmodal-unique' and blocks == 'proved' and block_size == 'All'"
    ).set_index("source")
    assert unique.loc["reconstruction", "precision"] == 1.0
    assert unique.loc["MDG", "confirmed"] == 0
    agreed = pd.read_csv(report / "tables" / "agreement.csv").iloc[0]
    assert agreed["Agreement: binned age"] == agreed["population"] == len(truth)


def test_variability_of_a_noisy_tract_is_proved(tmp_path):
    people = two_tracts("rmdf_dev.parquet")
    people.to_parquet(tmp_path / "people.parquet", index=False)
    run(
        "release", "--protection", "none", tmp_path / "people.parquet",
        "--tables", "sf1-block,sf1-tract", "-o", tmp_path / "tables",
    )  # fmt: skip
    for scope in ("tract-bounds", "tract-joint"):
        run(
            "attack", "--only", "records", tmp_path / "tables", "-o", tmp_path / scope,
            "--scope", "tract", "--variability", scope,
        )  # fmt: skip
    by_block, jointly = (
        read_reconstruction(tmp_path / s).variability for s in ("tract-bounds", "tract-joint")
    )
    assert set(by_block["status"]) == set(jointly["status"]) == {"proved"}
    tract = by_block["block"].str[:11]
    most = (by_block["upper"] * by_block["population"]).groupby(tract).sum()
    joint = jointly.set_index("tract")
    assert (joint["upper"] * joint["population"] <= most[joint.index] * (1 + 1e-12)).all()

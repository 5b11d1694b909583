"""One unit of a noisy measurement file: labels, intervals and risk, each found another way."""

import shutil

import numpy as np
import pandas as pd
import pytest
from oracles.noisy_measurements import frame_of
from studies import run_measurements

import bayesrisk as br

pytestmark = pytest.mark.usefixtures("quick_figures")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nmf") / "US_Person_PL_PROD"
    return br.census.write_nmf(folder, rng=41)


@pytest.fixture(scope="module")
def block(sample):
    answered = frame_of(sample.folder, "Block")
    answered = answered[answered["query_name"] == "detailed_dpq"]
    return answered.iloc[0]["geocode"], np.asarray(answered.iloc[0]["value"])


@pytest.fixture(scope="module")
def found(sample, block):
    geoid = br.census.block_geoid([block[0]])[0]
    return br.census.unit_measurements(sample.folder, geoid, prior="1/10", budget="pl94-us")


def test_counts_and_risks_are_those_of_the_whole_run(sample, block, found, tmp_path):
    result = run_measurements(sample.folder, tmp_path / "r", prior=0.1, budget="pl94-us")
    rows = pd.read_parquet(f"{result.folder}/risk.parquet")
    rows = rows[rows["geocode"].astype(str) == block[0]].reset_index(drop=True)
    assert found.geocode == block[0]
    assert found.cells["noisy_count"].tolist() == block[1].tolist()
    for ours, theirs in (("posterior", "posterior_with_constraints"), ("risk_ratio",) * 2):
        theirs = theirs if "constraints" in theirs else "risk_ratio_with_constraints"
        np.testing.assert_array_equal(found.cells[ours], rows[theirs])
    assert found.cells["label"].tolist() == rows["label"].astype(str).tolist()


def test_intervals_by_adding_up(sample, found):
    """A flat law between the bounds times the noise, on a wide grid, cell by cell."""
    code = found.geocode
    rho = dict(zip(sample.geocodes["Block"], sample.rho["Block", "detailed"], strict=True))[code]
    sigma2 = float(1 / rho)
    free = found.open_cells()
    assert 0 < len(free) < 2016
    for row in free.head(40).to_dict("records"):
        counts = np.arange(0, 500)  # people are not negative; nothing else bounds these cells
        weight = np.exp(-((row["noisy_count"] - counts) ** 2) / (2 * sigma2))
        total = np.append(0.0, np.cumsum(weight / weight.sum()))
        size = row["most"] - row["least"] + 1
        assert total[row["most"] + 1] - total[row["least"]] >= 0.95
        assert (total[size - 1 :] - total[: 1 - size]).max() < 0.95  # none is shorter
        assert row["noisy_count"] > 0 or row["least"] == 0
    settled = found.cells[found.cells["settled_by"].notna()]
    assert (settled["least"] == settled["most"]).all()
    ratios = free["risk_ratio"].tolist()
    assert ratios == sorted(ratios, reverse=True)


def test_the_first_sentence_says_whether_noise_explains_the_counts(sample, block, tmp_path):
    """A file of noise says so; a hundred people more in ten cells are no noise."""
    geoid = br.census.block_geoid([block[0]])[0]
    quiet = br.census.unit_measurements(sample.folder, geoid, prior=0.1)
    assert quiet.more_than_known == 0
    assert repr(quiet).splitlines()[1].strip().startswith("Noise alone explains these counts")
    folder = shutil.copytree(sample.folder, tmp_path / "US_Person_PL_PROD")
    open_cells = quiet.open_cells()["cell"].to_numpy()[:10]
    for file in sorted((folder / "Block.parquet" / "DPQuery").rglob("*.parquet")):
        frame = pd.read_parquet(file)
        mine = (frame["geocode"] == block[0]) & (frame["query_name"] == "detailed_dpq")
        for row in frame.index[mine]:
            values = np.array(frame.at[row, "value"])
            values[open_cells] += 100
            frame.at[row, "value"] = values
        frame.to_parquet(file, index=False)
    loud = br.census.unit_measurements(folder, geoid, prior=0.1)
    assert loud.more_than_known == 10
    assert "10 cells hold more people than noise explains" in repr(loud)


def test_a_unit_that_is_not_there_is_refused(sample):
    with pytest.raises(br.ArgumentError, match=r"unit must be a GEOID or a geocode.*no Block has"):
        br.census.unit_measurements(sample.folder, "999999999999999", prior=0.1)


def test_the_figure_has_the_largest_noisy_counts_and_their_intervals(found):
    axes = found.plot()
    cells = found.open_cells().nlargest(12, "noisy_count")
    bars = [c for c in axes.collections if len(c.get_segments()) == len(cells)]
    ends = {tuple(segment[:, 0]) for c in bars for segment in c.get_segments()}
    assert {*zip(cells["least"], cells["most"], strict=True)} <= ends
    assert axes.lines[0].get_xdata().tolist() == cells["noisy_count"].tolist()
    names = [tick.get_text().replace("\n", " ") for tick in axes.get_yticklabels()]
    assert names == cells["label"].tolist()

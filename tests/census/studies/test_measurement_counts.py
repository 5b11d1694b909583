"""Posteriors of all counts of a folder, against closed forms and enumeration."""

import itertools
import shutil

import numpy as np
import pandas as pd
import pytest
from measurement_files import PERSON, UNIT, row, write_rows
from oracles import trees as oracle
from studies import run_measurement_counts

import bayesrisk as br
from bayesrisk import ArgumentError, DataError
from bayesrisk.census import measurement_posterior
from bayesrisk.census.readers.geocodes import SPINE_WIDTHS
from bayesrisk.experiments import measurement_counts

pytestmark = pytest.mark.usefixtures("quick_figures")

STATE = "057"


def pair(folder, total=100):
    """Write two noisy counts, 30 and 80, of counties whose state counts 100 exactly."""
    counties = [f"{STATE}1000{i}" for i in (1, 2)]
    write_rows(folder, "State", [row(STATE, "total", [total], PERSON, sign="=")])
    rows = [
        row(c, "total", [y], PERSON, variance=25.0) for c, y in zip(counties, (30, 80), strict=True)
    ]
    write_rows(folder, "County", rows)
    return counties


def test_two_noisy_counts_with_an_exact_total(tmp_path):
    counties = pair(tmp_path / "nmf")
    found = measurement_posterior(tmp_path / "nmf", level="County")
    assert found.mean[0] == 100.0
    law = {code: found.pmf(code) for code in counties}
    x = np.arange(101)
    for code, mean in zip(counties, (25.0, 75.0), strict=True):
        weight = np.exp(-((x - mean) ** 2) / 25.0)
        np.testing.assert_allclose(
            law[code].reindex(x, fill_value=0.0), weight / weight.sum(), atol=1e-14
        )
    result = run_measurement_counts(tmp_path / "nmf", tmp_path / "out", level="County")
    table = pd.read_parquet(tmp_path / "out" / "counts.parquet").set_index("geocode")
    np.testing.assert_allclose(table.loc[counties, "mean"], [25.0, 75.0], atol=1e-12)
    np.testing.assert_allclose(table.loc[counties, "sd"] ** 2, 12.5, rtol=1e-6)
    assert table.loc[STATE, ["lower", "upper", "mode", "q05", "q95"]].tolist() == [100] * 5
    assert pd.isna(table.loc[STATE, "noisy_count"])
    assert result.exact == {"State": 1, "County": 0}
    # Without the exact total the two noisy counts stand alone.
    shutil.rmtree(tmp_path / "nmf" / "State.parquet")
    alone = measurement_posterior(tmp_path / "nmf", level="County", top="County", unit=counties[0])
    assert alone.mean[0] == pytest.approx(30.0, abs=1e-6)


def small_spine(folder, rng):
    """Write a state of two counties and five tracts of housing units; return what it says."""
    tracts = {STATE + "101": 2, STATE + "102": 3}
    truth, parent = {}, {}
    for county, n in tracts.items():
        for i in range(n):
            code = f"{county}{i:02d}"
            truth[code], parent[code] = rng.integers(0, 3, 2), county
        truth[county] = sum(truth[c] for c, p in parent.items() if p == county)
        parent[county] = STATE
    truth[STATE], parent[STATE] = sum(truth[c] for c in tracts), None
    levels = {3: "State", 6: "County", 8: "Tract"}
    frame = []
    for width, level in levels.items():
        rows = []
        for code in sorted(c for c in truth if len(c) == width):
            sigma2 = float(rng.uniform(2.3, 6.0))
            noisy = truth[code] + np.rint(rng.normal(0, sigma2**0.5, 2)).astype(int)
            variance = float(np.float32(sigma2))
            if rng.random() < 0.8 or level == "Tract":
                rows.append(row(code, "detailed", noisy, UNIT, variance=variance, h1="h1"))
                frame.append((code, level, noisy, 1 / (2 * variance)))
            else:
                frame.append((code, level, [None, None], None))
            rows.append(row(code, "total", [truth[code].sum()], UNIT, sign="="))
        write_rows(folder, level, rows)
    return pd.DataFrame(frame, columns=["node", "level", "both", "rho"]), truth, parent


@pytest.mark.parametrize("seed", range(6))
def test_small_spines_against_enumeration(tmp_path, seed):
    """Units of housing, each at most as many as the exact total of its place."""
    frame, truth, parent = small_spine(tmp_path / "nmf", np.random.default_rng(seed))
    for cell in (0, 1):
        found = measurement_posterior(
            tmp_path / "nmf", query="detailed", cell=cell, level="Tract", unit=STATE
        )
        plain = frame.assign(
            parent=[parent[node] for node in frame["node"]],
            noisy_count=[both[cell] for both in frame["both"]],
        )
        leaves = oracle.leaves_of(plain)
        bounds = {
            node: (lambda x, count=count: 0.0 if x <= count.sum() else -np.inf)
            for node, count in truth.items()
        }
        supports = [np.arange(int(sum(truth[leaf])) + 1) for leaf in leaves]
        expected = oracle.brute_force(plain, supports, [oracle.log_flat] * len(leaves), bounds)
        assert oracle.worst_gap(found, expected) < 1e-7  # variances are in single precision


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return br.census.write_nmf(tmp_path_factory.mktemp("nmf") / "US_Person_PL_PROD", rng=13)


@pytest.fixture(scope="module")
def counts(sample, tmp_path_factory):
    place = tmp_path_factory.mktemp("counts")
    result = run_measurement_counts(sample.folder, place, query="hhinstlevels", budget="pl94-us")
    return result, pd.read_parquet(place / "counts.parquet")


def test_every_place_and_cell_once_and_they_add_up(sample, counts):
    result, table = counts
    assert result.complete
    assert result.truncation_bound < 1e-14
    widths = SPINE_WIDTHS
    levels = ["State", "County", "Tract", "Block_Group", "Block"]
    assert result.counts == {level: 3 * sample.geocodes[level].size for level in levels}
    assert list(result.counts) == levels
    for above, level in itertools.pairwise(levels):
        upper, lower = (table[table["level"] == name] for name in (above, level))
        assert sorted(set(lower["geocode"])) == sample.geocodes[level].tolist()
        sums = lower.groupby([lower["geocode"].str[: widths[above]], "cell"])["mean"].sum()
        keys = list(zip(upper["geocode"], upper["cell"], strict=True))
        np.testing.assert_allclose(sums.loc[keys], upper["mean"], rtol=1e-9, atol=1e-9)


def test_only_children_count_what_their_parent_counts(sample, counts):
    table = counts[1].set_index(["geocode", "cell"])
    silent = [
        c
        for c, r in zip(sample.geocodes["Block"], sample.rho["Block", "hhinstlevels"], strict=True)
        if not r
    ]
    assert silent
    for code in silent:
        for cell in range(3):
            own, parent = table.loc[(code, cell)], table.loc[(code[:15], cell)]
            assert pd.isna(own["noisy_count"])
            assert own["mean"] == parent["mean"]


def test_what_a_bound_of_zero_says(counts):
    table = counts[1]
    empty = table["upper"] == 0
    assert 0.3 < empty.mean() < 0.9
    assert (table["mean"][empty] == 0.0).all()
    assert (table["mean"] <= table["upper"].astype("float64").fillna(np.inf) + 1e-9).all()
    assert (table["mean"] >= table["lower"] - 1e-9).all()
    assert (table["q05"] <= table["q95"]).all()


def test_intervals_hold_the_truth_as_often_as_they_say(sample, counts):
    """A flat prior is not the law of the truth, but noise dominates at the county level."""
    table = counts[1]
    some = table[(table["level"] == "State") & (table["sd"] > 0)]
    assert len(some) >= 3
    truth = dict(zip(sample.geocodes["State"].tolist(), sample.counts["State"], strict=True))
    for line in some.itertuples():
        shape = truth[line.geocode].reshape(8, -1).sum(axis=1)
        groups = (shape[:1].sum(), shape[1:5].sum(), shape[5:].sum())
        assert abs(groups[line.cell] - line.mean) < 6 * line.sd


@pytest.mark.slow
def test_the_size_of_shards_does_not_matter(sample, tmp_path, monkeypatch):
    given = {"query": "hhinstlevels", "level": "Tract"}
    whole = run_measurement_counts(sample.folder, tmp_path / "whole", **given)
    monkeypatch.setattr(measurement_counts, "_NODES", 1)
    cells = run_measurement_counts(sample.folder, tmp_path / "cells", **given)
    assert cells.shards == 3 * whole.shards
    one, other = (
        pd.read_parquet(tmp_path / name / "counts.parquet").sort_values(["cell", "geocode"])
        for name in ("whole", "cells")
    )
    pd.testing.assert_frame_equal(one.reset_index(drop=True), other.reset_index(drop=True))


def test_the_nation_as_one_tree(sample):
    """The states' exact totals make what the nation says of the total worth nothing."""
    one = measurement_posterior(sample.folder, top="US", level="Tract")
    other = measurement_posterior(sample.folder, level="Tract", unit="058")
    names = other.tree.names
    np.testing.assert_allclose(
        one.mean[[one.tree.index(name) for name in names]], other.mean, rtol=1e-9
    )


# --- what is missing, wrong or contradicts ----------------------------------------------------


def test_a_folder_without_constraints_is_read_as_it_is(sample, tmp_path):
    """Only children are not listed then; their parents stand for them."""
    folder = tmp_path / "nmf"
    for level in ("State", "County", "Tract"):
        shutil.copytree(
            sample.folder / f"{level}.parquet/DPQuery", folder / f"{level}.parquet/DPQuery"
        )
    found = measurement_posterior(folder, level="Tract", unit="057")
    exact = measurement_posterior(sample.folder, level="Tract", unit="057")
    assert found.sd[0] > 0.0 == exact.sd[0]


def test_constraints_that_contradict_are_named(tmp_path):
    counties = pair(tmp_path / "nmf")
    folder = tmp_path / "nmf"
    write_rows(folder, "County", [row(c, "total", [49], PERSON, sign="=") for c in counties])
    with pytest.raises(
        DataError, match="query total, cell 0, constraints total: row 0, node '057'"
    ):
        measurement_posterior(folder, level="County")
    lower = row(
        counties[0], "hhgq_total_lb", [0, 60, 0, 0, 0, 0, 0, 0], PERSON, sign=">=", hhgq="hhgq"
    )
    write_rows(
        folder, "County", [row(c, "total", [50], PERSON, sign="=") for c in counties] + [lower]
    )
    text = (
        "County: unit 05710001: constraints contradict each other: hhgq_total_lb says >= 60 of "
        "total 1, of which total leave at most 50"
    )
    with pytest.raises(DataError, match=text):
        measurement_posterior(folder, level="County")


def test_bad_arguments(sample, tmp_path):
    with pytest.raises(ArgumentError, match="top must be level Tract or a coarser one, got Block"):
        run_measurement_counts(sample.folder, tmp_path / "r", level="Tract", top="Block")
    with pytest.raises(ArgumentError, match=r"query must be one of.*Did you mean 'total'"):
        run_measurement_counts(sample.folder, tmp_path / "r", query="totel")
    with pytest.raises(ArgumentError, match="unit must be given: level State has 3 units"):
        measurement_posterior(sample.folder)
    with pytest.raises(ArgumentError, match=r"unit must be a geocode of level State.*mean '057'"):
        measurement_posterior(sample.folder, unit="0570")
    with pytest.raises(ArgumentError, match="cell must be <= 0"):
        measurement_posterior(sample.folder, unit="057", cell=1)
    assert list(tmp_path.iterdir()) == []

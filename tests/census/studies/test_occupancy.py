"""The study: the same for any number of workers, written whole, and with the known contrast."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from figures import quick_figures
from printed import compare, surely_less
from studies import run_occupancy

from bayesrisk.census import population_spec, simulate_population
from bayesrisk.census.studies.occupancy import PROTECTIONS, OccupancyStudy, synthetic_households
from bayesrisk.census.studies.occupancy_attack import read_households, read_sample
from bayesrisk.exceptions import ArgumentTypeError, DataError
from bayesrisk.tables import Records, Schema

HERE, STEED = "tests/census/studies/test_occupancy.py", "Steed et al."

SMALL = OccupancyStudy(seeds=(3, 4), blocks=12, solutions=3, noisy_solutions=2, sample_blocks=200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("study") / "out"


@pytest.fixture(scope="module")
def study(folder):
    return run_occupancy(SMALL, folder=folder)


def test_parts_hold_no_household(tmp_path):
    config = replace(SMALL, protections=("none",), seeds=(3,))
    run_occupancy(config, folder=tmp_path / "out")
    parts = tmp_path / "out" / "confidential" / "parts"
    stored = {file.name: pd.read_parquet(file) for file in parts.glob("*.parquet")}
    assert set(stored) == {f"{k}-000000.parquet" for k in ("rankings", "variability", "blocks")}
    blocks = stored["blocks-000000.parquet"]
    assert "violations" not in blocks
    ranking = stored["rankings-000000.parquet"]
    assert set(ranking["ranking"]) == {"hud", "subsidised", "broker"}
    # What the adversary reconstructs, in blocks that the tables give away: no sample of the truth.
    given_away = blocks.loc[blocks["status"] == "violation", "block"]
    assert set(ranking["block"]) <= set(given_away)


def test_every_protection_has_its_rows(study):
    assert list(dict.fromkeys(study.table["protection"])) == list(PROTECTIONS)
    assert set(study.table["blocks"]) == {24}
    assert len(study.blocks) == 24 * len(PROTECTIONS)
    assert study.blocks.groupby("protection")["violations"].sum().nunique() == 1
    none = study.table.set_index(["protection", "infeasible_as"]).loc[("none", "apart")]
    assert none["precision"] == 1.0
    assert none["infeasible"] == 0
    swapped = study.seeds.query("protection == 'swapping'")
    assert np.abs(swapped["realised_rate"] - 0.1).max() < 1 / 400  # a pair more or less
    by_seed = study.seeds.groupby(["protection", "infeasible_as"])["confirmed"].sum()
    pooled = study.table.set_index(["protection", "infeasible_as"])["confirmed"]
    assert by_seed.sort_index().equals(pooled.sort_index())
    assert set(study.curves["protection"]) == {*PROTECTIONS, "sampling"}
    assert len(study.ends) == 7 * 3 * 2
    assert set(study.variability["attributes"]) == {"full", "binned"}
    wide = study.variability.pivot_table(
        values="upper", index=["seed", "block"], columns="attributes"
    )
    assert np.all(wide["binned"] <= wide["full"])


def test_more_weight_on_violations_makes_more_of_them(study):
    config = replace(SMALL, protections=("none",), alpha=0.1, solutions=1)
    more = run_occupancy(config).blocks["violations"].sum()
    assert more > study.blocks.query("protection == 'none'")["violations"].sum()


def test_files_hold_the_frames(study, folder, tmp_path):
    private = folder / "confidential"
    totals = {f"{name}.csv" for name in ("table", "seeds", "ends")}
    assert {file.name for file in folder.glob("*.csv")} == totals
    single = {f"{name}.csv" for name in ("blocks", "curves", "variability")}
    assert {file.name for file in private.glob("*.csv")} == single
    assert len(pd.read_csv(private / "blocks.csv")) == len(study.blocks)
    assert json.loads((folder / "config.json").read_text()) == json.loads(json.dumps(study.config))
    assert study.config["seeds"] == (3, 4)
    study.write_report(tmp_path)
    figures = [f for f in (tmp_path / "figures").rglob("*") if f.is_file()]
    assert len(figures) == 2 * (1 + 12 + 6 + 1)
    assert all(f.stat().st_size > 1000 for f in figures)
    assert not [f for f in figures if f.name.startswith(".")]


def test_the_report_says_the_totals_and_no_block(study, tmp_path):
    with quick_figures():
        page = study.write_report(tmp_path)
    text = page.read_text(encoding="utf-8")
    start = text.index('class="answer"')
    answer = " ".join(re.sub("<[^>]*>", "", text[start : text.index("</div>", start)]).split())
    table = study.table[study.table["infeasible_as"] == "apart"]
    assert len(table) == len(PROTECTIONS)
    for row in table.to_dict("records"):
        if row["putative"]:
            blocks = "block is" if row["putative"] == 1 else "blocks are"
            flagged = f"{row['putative']} {blocks} flagged, and {row['confirmed']} of them hold"
            assert flagged in answer
            assert f"one: precision {row['precision']:.0%}" in answer
        else:
            assert "no block is flagged" in answer
    assert f"{row['violating']} of {row['blocks']} blocks hold" in answer
    assert not [code for code in study.blocks["block"].unique() if code in text]
    assert text.count("<img") == 1
    before = page.read_bytes()
    with quick_figures():
        assert study.write_report(tmp_path).read_bytes() == before
    assert (tmp_path / "figures" / "confidential").stat().st_mode & 0o077 == 0


def test_households_of_ones_own(study, tmp_path):
    data, _ = synthetic_households(SMALL, 3)
    data.households.write(tmp_path / "homes.parquet")
    sample = data.households.to_frame()[["size", "race_ethnicity", "children"]]
    sample.to_parquet(tmp_path / "sample.parquet")
    homes = read_households(tmp_path / "homes.parquet")
    found = OccupancyStudy(
        seeds=(3,), protections=("none",), solutions=2, households=homes,
        sample=read_sample(tmp_path / "sample.parquet"),
    ).in_memory()  # fmt: skip
    same = study.blocks.query("protection == 'none' and seed == 3").set_index("block")
    mine = found.blocks.set_index("block")
    assert set(same.index) <= set(mine.index)
    assert mine.loc[same.index, "status"].equals(same["status"])
    assert mine.loc[same.index, "violations"].equals(same["violations"])


def test_a_simulated_population_is_a_sample(tmp_path):
    population = simulate_population(population_spec("tract", n_blocks=20), rng=8)
    population.households.write(tmp_path / "households.parquet")
    sample = read_sample(tmp_path / "households.parquet")
    homes = population.for_schema(Schema.named("household-occupancy")).to_frame()
    assert list(sample) == ["size", "race_ethnicity", "children"]
    pd.testing.assert_frame_equal(sample, homes[list(sample)])


@pytest.mark.slow
def test_the_contrast_of_the_protections(tmp_path):
    """True tables accuse rightly, swapped ones fewer blocks but rightly, noisy ones wrongly."""
    seeds = []
    for seed in (1, 2, 3, 4):
        config = OccupancyStudy(
            seeds=(seed,), blocks=80, protections=("none", "swapping", "das"), solutions=1,
            noisy_solutions=1, sample_blocks=200, time_limit=5.0,
        )  # fmt: skip
        table = run_occupancy(config, folder=tmp_path / str(seed), workers=2).table
        seeds.append(table[table["infeasible_as"] == "apart"].set_index("protection"))
    shown = {
        name: {
            "blocks": [table.loc[name, "putative"] for table in seeds],
            "share": [100 * table.loc[name, "putative"] / 80 for table in seeds],
            "precision": [100 * table.loc[name, "precision"] for table in seeds],
            "recall": [100 * table.loc[name, "recall"] for table in seeds],
        }
        for name in ("none", "swapping", "das")
    }
    none, swapping, das = shown.values()
    assert none["precision"] == [100.0] * len(seeds)
    assert surely_less(das["precision"], swapping["precision"])
    assert surely_less(swapping["recall"], none["recall"])
    assert surely_less(none["blocks"], das["blocks"])
    found = {
        (STEED, "Section 3.2", "before", ""): none["blocks"],
        (STEED, "Section 3.2", "after", ""): das["blocks"],
        (STEED, "Section 4.2", "none", "recall"): none["recall"],
        (STEED, "Section 4.2", "swapping", "recall none"): none["recall"],
        (STEED, "Section 4.2", "swapping", "recall swapping"): swapping["recall"],
        (STEED, "Section 4.2", "swapping", "precision swapping"): swapping["precision"],
        (STEED, "Section 4.2", "das", "precision"): das["precision"],
    }
    for name, values in shown.items():
        found[STEED, "Table 1", name, "putative share"] = values["share"]
        found[STEED, "Table 1", name, "precision"] = values["precision"]
        found[STEED, "Table 1", name, "recall"] = values["recall"]
    compare(f"{HERE}::test_the_contrast_of_the_protections", found)


def test_bad_households(tmp_path):
    with pytest.raises(ArgumentTypeError, match="households must be Records"):
        replace(SMALL, households=3)
    codes = {"size": 1, "race_ethnicity": 0, "children": 0, "bedrooms": 0, "subsidised": 0}
    homes = pd.DataFrame({"block": ["500010101001000"]}).assign(**codes)
    records = Records.from_frame(homes, schema=Schema.named("household-occupancy"))
    with pytest.raises(DataError, match="households: must hold subsidised households, got none"):
        replace(SMALL, households=records).in_memory()
    file = tmp_path / "homes.parquet"
    for read, missing, text in (
        (read_households, "bedrooms", "must have columns block, size"),
        (read_sample, "children", "must have a column 'children'"),
    ):
        with pytest.raises(DataError, match="no such file"):
            read(tmp_path / "none.parquet")
        homes.drop(columns=missing).to_parquet(file)
        with pytest.raises(DataError, match=text):
            read(file)
        file.write_text("no")
        with pytest.raises(DataError, match="cannot be read"):
            read(file)

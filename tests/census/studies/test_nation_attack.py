"""The attack on a nation: what it counts, where it writes, and that workers need no common disk."""

import json
import os
import uuid

import numpy as np
import pandas as pd
import pytest
from object_store import s3_server
from scipy import stats
from upath import UPath

from bayesrisk.census.population.nation import Nation
from bayesrisk.census.population.spec import population_spec
from bayesrisk.census.studies.nation_attack import (
    CLAIMS,
    EXACT,
    PERSONS,
    NationAttackStudy,
    _given_away,
    _interval,
)
from bayesrisk.exceptions import ArgumentError, OutputError
from bayesrisk.experiments import run
from bayesrisk.experiments.runs.executors import DaskExecutor
from bayesrisk.reconstruction import reconstruct, solution_variability
from bayesrisk.tables import tabulate

pytestmark = pytest.mark.usefixtures("quick_figures")

SPEC = population_spec("tract", blocks_per_group=40, groups_per_tract=2, tracts_per_county=1)
SMALL = NationAttackStudy(
    Nation(240, SPEC), seed=3, rules=("suppression:threshold=5,complementary=false",), share=0.5
)


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nation") / "run"
    return folder, run(SMALL, folder)


def test_every_block_with_people_is_there_once_under_exact_tables(serial):
    folder, summary = serial
    rows = pd.read_parquet(folder / "blocks.parquet")
    exact = rows[rows["rule"] == EXACT].set_index("block")
    people = pd.concat(
        [SMALL.nation.county(n, seed=3).persons.to_frame() for n in range(SMALL.nation.counties)]
    )
    sizes = people.groupby("block").size()
    assert exact["people"].to_dict() == sizes.to_dict()
    assert summary.complete
    records = rows[rows["rule"] != CLAIMS]
    assert (records["proved"] <= records["people"]).all()
    # Claims are no records: no share is made of them.
    given = pd.read_csv(folder / "given-away.csv")
    assert set(given["rule"]) == {EXACT, *SMALL.rules}


def test_a_block_is_proved_where_no_other_records_fit(serial):
    folder, _ = serial
    rows = pd.read_parquet(folder / "blocks.parquet")
    exact = rows[rows["rule"] == EXACT].set_index("block")
    tables = tabulate(SMALL.nation.county(0, seed=3).persons, PERSONS)
    found = reconstruct(tables, scope="block")
    moved = solution_variability(tables, scope="block", solution=found).upper
    unique = np.array(found.status) == "unique"
    assert (unique == (moved == 0)).all()
    proved = exact.loc[found.geoids, "proved"].to_numpy()
    assert (proved == np.where(unique, exact.loc[found.geoids, "people"], 0)).all()
    assert 0 < unique.sum() < unique.size


def test_half_of_the_blocks_are_attacked_under_the_rule(serial):
    folder, _ = serial
    rows = pd.read_parquet(folder / "blocks.parquet")
    own = rows[rows["rule"] == SMALL.rules[0]]
    exact = rows[rows["rule"] == EXACT]
    by_county = exact.groupby(exact["block"].str[:5]).size()
    assert len(own) == sum(round(0.5 * n) for n in by_county)
    assert (own["recovered"] <= own["coarsened"]).all()
    assert (own["small_recovered"] <= own["recovered"]).all()
    # Every count from 1 to 4 is withheld, and no other that is not 0.
    people = SMALL.nation.county(0, seed=3).persons
    truth = tabulate(people, PERSONS)
    at = {code: row for row, code in enumerate(truth.geoids["block"])}
    for block, count in own.set_index("block")["coarsened"].items():
        if block in at:
            counts = np.concatenate(
                [m[[at[block]]].toarray().ravel() for m in truth.counts.values()]
            )
            assert count == ((counts > 0) & (counts < 5)).sum()


def test_intervals_are_those_of_a_ratio():
    rng = np.random.default_rng(1)
    wholes = rng.integers(50, 150, size=8).astype(float)
    found = _interval("x", 0.25 * wholes, wholes)  # the same share everywhere has no error
    assert found == pytest.approx({"x": 0.25, "x_low": 0.25, "x_high": 0.25})
    equal = _interval("x", parts := rng.random(8), np.ones(8))
    low, high = stats.t.interval(0.95, 7, parts.mean(), stats.sem(parts))
    assert equal == pytest.approx({"x": parts.mean(), "x_low": max(0, low), "x_high": high})


def test_shares_are_of_all_counties_together():
    names = ["rule", "blocks", "people", "proved", "coarsened", "recovered", "small",
             "small_recovered"]  # fmt: skip
    frame = pd.DataFrame([["a", 1, 10, 5, 4, 1, 2, 0], ["a", 2, 30, 5, 6, 4, 2, 1]], columns=names)
    row = _given_away(frame).iloc[0]
    assert (row["proved"], row["recovered"], row["small_recovered"]) == (0.25, 0.5, 0.25)


def test_a_rule_that_is_none_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ArgumentError, match="nothing-5"):
        run(NationAttackStudy(Nation(60, SPEC), seed=1, rules=("nothing-5",)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_in_a_store_has_the_bytes_of_one_on_a_disk_and_goes_on(serial):
    folder, _ = serial
    url = f"memory://{uuid.uuid4().hex}/run"
    assert not run(SMALL, url, shard=(1, 2)).complete
    with pytest.raises(OutputError, match="--resume"):
        run(SMALL, url, shard=(1, 2))
    summary = run(SMALL, url, resume=True)
    assert (summary.complete, summary.resumed) == (True, 2)
    same_answers(folder, url)
    part = UPath(url) / "parts" / "blocks-000001.parquet"
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.warns(match="computed again"):
        assert run(SMALL, url, resume=True).computed == 1
    same_answers(folder, url)


def same_answers(folder, url):
    for name in ("blocks.parquet", "given-away.csv", "config.json"):
        assert (UPath(url) / name).read_bytes() == (folder / name).read_bytes()
    manifest = json.loads((UPath(url) / "manifest.json").read_text())
    assert manifest["complete"]


@pytest.mark.slow
def test_dask_workers_that_share_no_disk_write_the_same_bytes(serial, monkeypatch, tmp_path):
    folder, _ = serial
    with s3_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
        with DaskExecutor(2) as executor:
            summary = run(SMALL, "s3://nation/run", executor=executor)
        assert summary.complete
        same_answers(folder, "s3://nation/run")
        assert not list(tmp_path.rglob("*.parquet"))


def test_the_time_is_said_for_a_whole_nation_by_a_tract_of_it():
    study = NationAttackStudy(Nation.scaled(1.0), seed=1, every=500, share=0.01, claims=0)
    seconds = study.outlook(range(study.shards)).seconds
    assert set(seconds) == set(range(study.shards))
    assert 0 < min(seconds.values()) == max(seconds.values()) < 600

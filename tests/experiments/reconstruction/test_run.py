"""Reconstruction in shards: the same records however it is run, resumed, and refused."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from peak_memory import run_and_measure
from persons import persons
from scipy import sparse
from studies import contents, run_reconstruction

from bayesrisk import run
from bayesrisk.census import population_spec, simulate_population
from bayesrisk.exceptions import (
    ArgumentError,
    BayesRiskWarning,
    DataError,
    OutputError,
    PartFileError,
)
from bayesrisk.experiments.reconstruction import BoundsStudy, read_reconstruction
from bayesrisk.reconstruction import reconstruct, record_form, solution_variability
from bayesrisk.tables import (
    Attribute,
    Geography,
    PublishedTables,
    Records,
    Schema,
    Table,
    Workload,
    tabulate,
)

pytestmark = pytest.mark.usefixtures("quick_figures")

BLOCKS = [f"010010201{tract}{block}" for tract in ("00", "01", "02") for block in range(1000, 1003)]
FORM = ["block", "sex", "age", "agebin", "race", "hisp"]
BOTH = Workload.named("sf1-block").union(Workload.named("sf1-tract"))


def people(count=240, seed=1):
    shares = [0.6, 0.2, 0.1, 0.1]
    return persons(seed, count, BLOCKS, ages=100, races=[1, 2, 3, 8], shares=shares)


def published(**options):
    records = Records.from_frame(people(**options), schema=Schema.named("sf1-person"))
    return tabulate(records, BOTH)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "tables"
    published().write(path)
    return path


def test_shards_give_what_one_call_gives(folder, tmp_path):
    calls = []
    summary = run_reconstruction(
        folder, tmp_path / "out", scope="tract", variability="tract-bounds", blocks_per_shard=2,
        progress=lambda *call: calls.append(call),
    )  # fmt: skip
    assert (summary.shards, summary.computed, summary.complete) == (3, 3, True)
    assert calls == [(1, 3), (2, 3), (3, 3)]
    made = read_reconstruction(tmp_path / "out")
    whole = reconstruct(published(), scope="tract")
    expected = record_form(whole)
    assert list(made.records) == list(expected) == FORM
    pd.testing.assert_frame_equal(made.records, expected, check_dtype=False)
    pd.testing.assert_frame_equal(made.blocks, whole.blocks(), check_dtype=False)
    bounds = solution_variability(published(), scope="tract-bounds", solution=whole).to_frame()
    pd.testing.assert_frame_equal(
        made.variability.drop(columns="seconds"), bounds.drop(columns="seconds"), check_dtype=False
    )
    assert summary.records == len(people())
    assert sum(summary.statuses.values()) == len(made.blocks)
    listed = json.loads((tmp_path / "out" / "manifest.json").read_text())
    merged = ["blocks.parquet", "records.parquet", "variability.parquet"]
    assert sorted(listed["files"]) == sorted([*merged, "report.html"])
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_the_records_give_the_tables_back(folder, tmp_path):
    run_reconstruction(folder, tmp_path / "out", scope="tract")
    found = Records.read(tmp_path / "out" / "records.parquet", schema=Schema.named("sf1-person"))
    again = tabulate(found, BOTH, geoids=published().geoids["block"])
    assert again == published()


@pytest.mark.parametrize("variability", ["block", "tract-bounds", "tract-joint"])
def test_blocks_alone_with_every_variability(folder, tmp_path, variability):
    run_reconstruction(folder, tmp_path / "out", scope="block", variability=variability)
    made = read_reconstruction(tmp_path / "out")
    place = "tract" if variability == "tract-joint" else "block"
    assert made.variability.columns[0] == place
    assert len(made.variability) == len(published().geoids[place])
    if variability == "block":
        solved = reconstruct(published(), scope="block")
        bounds = solution_variability(published(), scope="block", solution=solved)
        np.testing.assert_array_equal(made.variability["upper"], bounds.upper)


def test_a_shard_without_all_of_its_parts_is_computed_again(folder, tmp_path):
    options = {"scope": "tract", "blocks_per_shard": 1}
    out = tmp_path / "out"
    run_reconstruction(folder, out, shard=(1, 3), **options)
    with pytest.raises(PartFileError, match="is not finished"):
        read_reconstruction(out)
    run_reconstruction(folder, out, resume=True, **options)
    before = contents(out)
    parts = out / "parts"
    (parts / "shard-000001.json").unlink()  # killed after the tables, before their record
    assert run_reconstruction(folder, out, resume=True, **options).computed == 1
    assert contents(out) == before
    (parts / "records-000001.parquet").unlink()
    with pytest.warns(BayesRiskWarning, match=r"records-000001\.parquet: is not a whole part"):
        assert run_reconstruction(folder, out, resume=True, **options).computed == 1
    assert contents(out) == before


class TestRefusals:
    """Nothing is overwritten, and what cannot be done is said before a folder is made."""

    def test_folders_in_use(self, folder, tmp_path):
        out = tmp_path / "out"
        run_reconstruction(folder, out, scope="tract")
        before = contents(out)
        with pytest.raises(OutputError, match=r"another configuration \(other scope"):
            run_reconstruction(folder, out, scope="block", resume=True)
        other = tmp_path / "other"
        published(seed=2).write(other)
        with pytest.raises(OutputError, match=r"another configuration \(other tables\)"):
            run_reconstruction(other, out, scope="tract", resume=True)
        assert contents(out) == before
        with pytest.raises(OutputError, match="must be empty or hold a reconstruction"):
            run_reconstruction(folder, tmp_path, scope="tract")
        with pytest.raises(OutputError, match="holds no reconstruction"):
            read_reconstruction(tmp_path)

    def test_tables_that_are_not_there(self, tmp_path):
        with pytest.raises(DataError, match="must be a folder of tables"):
            run_reconstruction(tmp_path / "none", tmp_path / "out", scope="block")
        (tmp_path / "empty").mkdir()
        with pytest.raises(DataError, match="is not the manifest of tables"):
            run_reconstruction(tmp_path / "empty", tmp_path / "out", scope="block")
        blocks = tmp_path / "blocks"
        records = Records.from_frame(people(), schema=Schema.named("sf1-person"))
        tabulate(records, Workload.named("sf1-block")).write(blocks)
        for options in ({"scope": "tract"}, {"scope": "block", "variability": "tract-joint"}):
            with pytest.raises(ArgumentError, match="tract"):
                run_reconstruction(blocks, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda t: t.assign(count=-t["count"]), "row 4, column 'count': must be >= 0"),
            (lambda t: t.assign(geoid="0" * 15), "column 'geoid': must be a place of its level"),
            (lambda t: t.iloc[1:], "must have"),
        ],
    )
    def test_damaged_tables(self, folder, tmp_path, change, words):
        bad = tmp_path / "bad"
        published().write(bad)
        part = bad / "part-00000.parquet"
        frame = pd.read_parquet(part)
        change(frame).to_parquet(part, index=False)
        manifest = json.loads((bad / "_manifest.json").read_text())
        del manifest["seal"], manifest["parts"][0]["sha256"]  # as if written by hand
        (bad / "_manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(DataError, match=words):
            run_reconstruction(bad, tmp_path / "out", scope="block")
        assert not (tmp_path / "out").exists()

    def test_altered_results(self, folder, tmp_path):
        out = tmp_path / "out"
        run_reconstruction(folder, out, scope="block")
        records = out / "records.parquet"
        pq.write_table(pq.read_table(records).slice(1), records)
        with pytest.raises(PartFileError, match=r"is not the file that manifest\.json lists"):
            read_reconstruction(out)
        records.unlink()
        with pytest.raises(PartFileError, match="cannot be read"):
            read_reconstruction(out)
        (out / "config.json").write_text("[]")
        with pytest.raises(OutputError, match="is not the configuration of a reconstruction"):
            read_reconstruction(out)


def conflicting():
    """Tables in which one count of one block is one too high: P12 no longer adds up to P1."""
    tables = published()
    counts = dict(tables.counts)
    matrix = sparse.lil_array(counts["block", "P1"])
    matrix[4, 0] += 1
    counts["block", "P1"] = sparse.csr_array(matrix)
    return PublishedTables(tables.workload, dict(tables.geoids), counts)


def test_tables_that_do_not_add_up_name_the_cell(tmp_path):
    conflicting().write(tmp_path / "t")
    summary = run_reconstruction(tmp_path / "t", tmp_path / "out", scope="block")
    assert summary.statuses["infeasible"] == 1
    block = published().geoids["block"][4]
    assert f"block {block}" in summary.conflicts[0]
    assert "P001" in summary.conflicts[0] or "P1" in summary.conflicts[0]
    made = read_reconstruction(tmp_path / "out")
    assert block not in set(made.records["block"])
    assert made.blocks.set_index("block").loc[block, "conflict"] == summary.conflicts[0]


def test_nearest_records_where_none_fit(tmp_path):
    conflicting().write(tmp_path / "t")
    summary = run_reconstruction(
        tmp_path / "t", tmp_path / "out", scope="block", nearest=True, variability="block"
    )
    made = read_reconstruction(tmp_path / "out")
    row = made.blocks.iloc[4]
    assert summary.statuses["nearest"] == 1
    assert (row["status"], row["deviation"]) == ("nearest", 1)
    assert (made.records["block"] == row["block"]).sum() == row["population"]
    bounds = made.variability.iloc[4]
    assert (bounds["status"], bounds["lower"], bounds["upper"]) == ("infeasible", 0.0, 1.0)


def test_a_limit_is_reached_honestly(folder, tmp_path):
    run_reconstruction(
        folder, tmp_path / "out", scope="tract", variability="tract-joint", time_limit=1e-9
    )
    made = read_reconstruction(tmp_path / "out")
    exact = solution_variability(published(), scope="tract-joint")
    assert (made.variability["lower"] <= made.variability["upper"]).all()
    known = made.variability["status"].isin(["proved", "feasible"]).to_numpy()
    assert (made.variability["upper"].to_numpy()[known] >= exact.lower[known]).all()
    assert set(made.blocks["status"]) <= {"unique", "feasible", "unknown"}


@pytest.mark.slow
def test_a_county_of_5000_blocks_stays_within_a_gigabyte(tmp_path):
    county = simulate_population(population_spec("county", n_blocks=5000), rng=3)
    tabulate(county, BOTH).write(tmp_path / "t")
    code = (
        "from bayesrisk.experiments import run\n"
        "from bayesrisk.experiments.reconstruction import ReconstructionStudy\n"
        "study = ReconstructionStudy(\n"
        "    sys.argv[1], scope='tract', variability='tract-bounds', time_limit=2.0\n"
        ")\n"
        "answer = run(study, sys.argv[2]).records\n"
    )
    records, kilobytes = run_and_measure(code, tmp_path / "t", tmp_path / "out")
    assert records == len(county.persons)
    assert kilobytes < 2**20


def test_withheld_counts_of_others_stay_beside_tables_of_nearly_one_name(tmp_path):
    """Of men a count is withheld, and of women stated: these are no two laws of one table."""
    schema = Schema("s", (Attribute("sex", 2),), Geography("g", ("block",), (1,)))
    men, women = (
        Table(f"SEX ({name})", ("some",), {"sex": np.eye(2, dtype=np.int64)[[row]]})
        for row, name in enumerate(("men", "women"))
    )
    work = Workload(schema, {("block", table.name): table for table in (men, women)})
    counts = {key: sparse.csr_array([[7 * ("women" in key[1])]]) for key in work.tables}
    hidden = {("block", men.name): sparse.csr_array([[True]])}
    tables = PublishedTables(work, {"block": ["1"]}, counts, suppressed=hidden)
    tables.write(tmp_path / "T")
    run(BoundsStudy(tmp_path / "T"), tmp_path / "out")
    assert len(pd.read_csv(tmp_path / "out" / "bounds.csv")) == 2

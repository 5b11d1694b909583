"""Real records and the published list of cells: every predicate, every count."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrisk.tables import Histogram, PublishedTables, Records, Schema, Workload, tabulate

PERSON = Path(__file__).parents[3] / "shared" / "data" / "person"
FORMATS = PERSON.parent / "formats"

pytestmark = pytest.mark.skipif(
    not PERSON.is_dir(), reason=f"needs the shared data folder, {PERSON} is absent"
)
ABOUT = Schema.named("sf1-person")
FILES = ["rhdf_dev.parquet", "rmdf_dev.parquet"]
_LETTERS = "ABCDEFGHI"


def cells():
    return pd.read_csv(PERSON / "sf1_tables.csv", dtype={"table": str, "cell": str})


def read(name):
    return Records.read(PERSON / name, schema=ABOUT)


def predicate(row, frame):
    """Return which records a published cell counts, from its row in the list."""
    keep = (frame["age"] >= row.age_lo) & (frame["age"] <= row.age_hi)
    if row.sex >= 0:
        keep &= frame["sex"] == row.sex
    if row.hisp >= 0:
        keep &= frame["hisp"] == row.hisp
    if row.race_op == "exact":
        keep &= frame["race"] == row.race_mask
    elif row.race_op == "contains":
        keep &= (frame["race"] & row.race_mask) == row.race_mask
    elif row.race_op == "two_plus":
        keep &= (frame["race"] & (frame["race"] - 1)) != 0
    else:
        assert row.race_op == "any"
    return keep


def test_every_cell_and_predicate_equals_the_published_list():
    codes = ABOUT.codes(np.arange(ABOUT.size))
    listed = cells()
    seen = set()
    for level, name in (("block", "sf1-block"), ("tract", "sf1-tract")):
        made = Workload.named(name)
        of_level = listed[listed["level"] == level]
        assert set(made.at(level)) == set(of_level["table"])
        for table_name, rows in of_level.groupby("table", sort=False):
            table = made.tables[level, table_name]
            assert sorted(table.cells) == sorted(rows["cell"])
            matrix = table.incidence(ABOUT, np.arange(ABOUT.size)).toarray()
            assert set(np.unique(matrix)) <= {0, 1}
            for row in rows.itertuples():
                ours = matrix[table.cells.index(row.cell)].astype(bool)
                assert np.array_equal(ours, predicate(row, codes)), row.cell
                seen.add(row.cell)
    assert len(seen) == len(listed) == 4_071


@pytest.mark.parametrize("file", FILES)
def test_counts_equal_direct_counting(file):
    frame = pd.read_parquet(PERSON / file)
    frame["geoid"] = frame["block"].map("{:015d}".format)
    values = {name: frame[name].to_numpy() for name in ("sex", "age", "race", "hisp")}
    listed = cells()
    made = tabulate(read(file), Workload.named("sf1-block").union(Workload.named("sf1-tract")))
    rng = np.random.default_rng(6)
    for level, width, share in (("block", 15, 400), ("tract", 11, 100)):
        of_level = listed[listed["level"] == level].sample(share, random_state=rng)
        place, names = pd.factorize(frame["geoid"].str[:width], sort=True)
        assert made.geoids[level].tolist() == names.tolist()
        for row in of_level.itertuples():
            direct = np.bincount(place[predicate(row, values)], minlength=len(names))
            column = made.workload.tables[level, row.table].cells.index(row.cell)
            counts = made.counts[level, row.table][:, [column]].toarray().ravel()
            assert np.array_equal(counts, direct), row.cell


@pytest.mark.parametrize("file", FILES)
def test_tracts_are_the_sums_of_their_blocks(file):
    records = read(file)
    both = Workload.named("sf1-block", levels=["block", "tract", "county"])
    made = tabulate(records, both)
    for level in ("tract", "county"):
        width = ABOUT.geography.width(level)
        parent = np.searchsorted(made.geoids[level], made.geoids["block"].astype(f"<U{width}"))
        for table in both.at("block"):
            sums = np.zeros(made.counts[level, table].shape, dtype=np.int64)
            np.add.at(sums, parent, made.counts["block", table].toarray())
            assert np.array_equal(sums, made.counts[level, table].toarray())
    # The tract tables by single years add up to the block tables by groups of years.
    tract = tabulate(records, Workload.named("sf1-tract"))
    for letter in ("", *_LETTERS):
        single = tract.counts["tract", f"PCT12{letter}"].sum()
        assert single == made.counts["block", f"P12{letter}"].sum()


@pytest.mark.parametrize("file", FILES)
def test_folders_give_the_tables_back_and_histograms_count_the_records(file, tmp_path):
    records = read(file)
    made = tabulate(records, Workload.named("sf1-block"))
    made.write(tmp_path / "t")
    assert PublishedTables.read(tmp_path / "t") == made
    made = Histogram.from_records(records)
    rows, cells = made.counts.nonzero()
    pairs = pd.DataFrame({"place": made.geoids[rows], "cell": cells})
    listed = pd.DataFrame({"place": records.geoids, "cell": records.cells()})
    expected = listed.value_counts().sort_index()
    found = pd.Series(made.counts.data, index=pd.MultiIndex.from_frame(pairs)).sort_index()
    assert found.index.equals(expected.index)
    assert np.array_equal(found, expected)


def test_race_codes_equal_the_published_list():
    listed = pd.read_csv(FORMATS / "cenrace63.csv")
    bits = ["white", "black", "aian", "asian", "nhopi", "sor"]
    masks = sum(listed[name] * 2**i for i, name in enumerate(bits))
    p8 = Workload.named("sf1-block").tables["block", "P8"]
    assert listed["p8_cell"].tolist() == list(p8.cells)
    assert (p8.factors["race"].argmax(axis=1) + 1).tolist() == masks.tolist()


def test_cells_of_the_household_tables_exist():
    """The cells of Summary File 1 that the occupancy tables name are published ones."""
    listed = set(pd.read_csv(FORMATS / "sf1_2010_cells.csv", dtype=str)["cell"])
    for (_, name), table in Workload.named("household-occupancy").tables.items():
        if not name.startswith("HUD"):
            assert set(table.cells) <= listed

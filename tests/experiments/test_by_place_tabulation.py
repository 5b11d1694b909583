"""Data sets by place: what was made of a whole, and nothing but the places of a shard is read."""

import json
import shutil

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from nations import write_counties
from studies import run_claims, run_reconstruction

from bayesrisk import run
from bayesrisk.exceptions import ArgumentError, DataError, OutputError
from bayesrisk.experiments.by_place import TabulationStudy, split_by_place
from bayesrisk.experiments.reconstruction import open_tables
from bayesrisk.tables import (
    Attribute,
    Geography,
    Microdata,
    PublishedTables,
    Records,
    Schema,
    Workload,
    tabulate,
)

pytestmark = pytest.mark.usefixtures("quick_figures")

BOTH = Workload.named("sf1-block").union(Workload.named("sf1-tract"))
ALL = BOTH.union(Workload.named("sf1-tract", levels=["nation", "state", "county"]))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return folders of a nation of four counties, and of its tables whole and by place."""
    at = tmp_path_factory.mktemp("by-place")
    write_counties(at / "people")
    run(TabulationStudy(at / "people", ALL), at / "parts")
    tabulate(Microdata.read(at / "people"), ALL).write(at / "whole")
    return at


OWN = Schema(
    "ward",
    (Attribute("sex", 2, labels=("F", "M")), Attribute("room", 3, first=1)),
    Geography("land", ("country", "region", "village"), (0, 1, 3)),
)


def test_records_of_a_schema_of_ones_own_by_place(tmp_path):
    rng = np.random.default_rng(1)
    places = pd.DataFrame({"block": [f"{r}{v:02}" for r in (1, 2, 7) for v in range(4)]})
    places = places.assign(x=np.arange(12.0), y=0.5)
    at = rng.choice(places["block"].to_numpy()[:-1], 200)  # nobody lives in the last one
    frame = pd.DataFrame({"village": at, "sex": rng.integers(0, 2, 200), "room": 1})
    data = Microdata(Records.from_frame(frame, schema=OWN), None, places)
    split_by_place(data, tmp_path / "parts", level="region")
    assert Microdata.read(tmp_path / "parts" / "part-7").persons.schema == OWN
    again = Microdata.read(tmp_path / "parts")
    pd.testing.assert_frame_equal(again.blocks, places)
    order = np.argsort(at.astype("<U1"), kind="stable")
    pd.testing.assert_frame_equal(
        again.persons.to_frame(), data.persons.to_frame().iloc[order].reset_index(drop=True)
    )
    tables = Workload.of(OWN, [["sex", "room"], ["sex"]], levels=["region", "village"])
    run(TabulationStudy(tmp_path / "parts", tables), tmp_path / "tables")
    assert PublishedTables.read(tmp_path / "tables") == tabulate(data, tables)


def test_parts_put_together_are_the_whole(made):
    parts, whole = (PublishedTables.read(made / name) for name in ("parts", "whole"))
    assert parts == whole
    assert [p.name for p in sorted((made / "parts").glob("part-*"))] == [
        *("part-80001", "part-80003", "part-80005", "part-80007", "part-above")
    ]
    assert not (made / "whole" / "part-80001").exists()


def test_a_part_is_an_ordinary_folder_and_other_readers_read_all(made):
    county = PublishedTables.read(made / "parts" / "part-80003")
    whole = PublishedTables.read(made / "whole")
    assert county.workload.levels == ("county", "tract", "block")
    block = county.geoids["block"][5]
    assert (
        county.count("block", "P12", block).tolist() == whole.count("block", "P12", block).tolist()
    )
    order = ["level", "geoid", "table", "cell"]
    rows, expected = (pd.read_parquet(made / n).sort_values(order) for n in ("parts", "whole"))
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), expected.reset_index(drop=True))


def test_results_name_few_groups_of_rows_however_many_shards(made, tmp_path):
    """Each shard was a group: the footer of a nation's results was more than a reader takes."""
    run_reconstruction(made / "parts", tmp_path / "out", scope="block", blocks_per_shard=1)
    about = pq.read_metadata(tmp_path / "out" / "records.parquet")
    assert about.num_rows == len(Microdata.read(made / "people").persons)
    assert about.num_row_groups == 1


def test_records_claims_and_bounds_are_the_same(made, tmp_path):
    for name in ("parts", "whole"):
        how = {"scope": "tract", "variability": "tract-bounds", "blocks_per_shard": 9}
        run_reconstruction(made / name, tmp_path / f"{name}-bounds", **how)
        run_claims(made / name, tmp_path / f"{name}-claims", columns=["sex"], blocks_per_shard=7)
    one, other = (
        pd.read_parquet(tmp_path / f"{n}-bounds" / "variability.parquet").drop(columns="seconds")
        for n in ("parts", "whole")
    )
    pd.testing.assert_frame_equal(one, other)
    for file in (
        "bounds/records.parquet", "bounds/blocks.parquet",
        "claims/claims.parquet", "claims/blocks.parquet", "claims/summary.json",
    ):  # fmt: skip
        one, other = ((tmp_path / f"{n}-{file}").read_bytes() for n in ("parts", "whole"))
        assert one == other


def test_a_shard_reads_its_own_part_and_no_other(made, tmp_path):
    shutil.copytree(made / "parts", tmp_path / "parts")
    source = open_tables(tmp_path / "parts")
    assert source.starts("tract", 24).tolist() == [0, 24, 48, 72]
    for code in ("80005", "80007"):
        shutil.rmtree(tmp_path / "parts" / f"part-{code}")
    found = source.shard(1, "tract", 24)
    assert {b[:5] for b in found.geoids["block"]} == {"80003"}
    assert found.workload.levels == ("tract", "block")
    with pytest.raises(DataError, match="part-80005"):
        source.shard(2, "tract", 24)


def test_shards_are_those_of_the_whole(made):
    parts, whole = (open_tables(made / name) for name in ("parts", "whole"))
    assert parts.blocks == whole.blocks == 90
    for unit in ("block", "tract", "county", "state", "nation"):
        for size in (5, 40):
            starts = [s.starts(unit, size).tolist() for s in (parts, whole)]
            assert starts[0] == starts[1]
            for shard in range(len(starts[0])):
                assert parts.shard(shard, unit, size) == whole.shard(shard, unit, size)


def test_records_in_any_order_are_put_down_by_place(made, tmp_path):
    data = Microdata.read(made / "people")
    order = np.random.default_rng(1).permutation(len(data.persons))
    pieces = [data.persons.take(part) for part in np.array_split(order, 7)]
    split_by_place(iter(pieces), tmp_path / "split", level="tract")
    run(TabulationStudy(tmp_path / "split", BOTH), tmp_path / "tables")
    assert PublishedTables.read(tmp_path / "tables") == tabulate(data.persons, BOTH)
    again = Microdata.read(tmp_path / "split").persons
    assert sorted(again.table.column("person").to_pylist()) == sorted(
        data.persons.table.column("person").to_pylist()
    )
    split_by_place(data, tmp_path / "all")
    both = Microdata.read(tmp_path / "all")
    assert both.households.table == data.households.table
    pd.testing.assert_frame_equal(both.blocks, data.blocks, check_dtype=False)


class TestRefusals:
    """What is damaged, or cannot be by place, is said."""

    def test_splits(self, made, tmp_path):
        data = Microdata.read(made / "people")
        for level in ("block", "nation", "parish"):
            with pytest.raises(ArgumentError, match="level must"):
                split_by_place(data, tmp_path / "out", level=level)
        with pytest.raises(ArgumentError, match="records must be at least one"):
            split_by_place(data.persons.take([]), tmp_path / "out")
        other = data.for_schema(Schema.named("pl94"))
        with pytest.raises(ArgumentError, match="records must be of one schema"):
            split_by_place([data.persons, other], tmp_path / "out")
        assert not (tmp_path / "out").exists()
        with pytest.raises(OutputError, match="new or an empty folder"):
            split_by_place(data, made / "people")

    def test_what_is_not_by_place(self, made, tmp_path):
        Microdata.read(made / "people").write(tmp_path / "whole")
        with pytest.raises(DataError, match="must be microdata by place"):
            run(TabulationStudy(tmp_path / "whole", BOTH), tmp_path / "out")
        with pytest.raises(DataError, match="must hold microdata, got 'tables'"):
            run(TabulationStudy(made / "parts", BOTH), tmp_path / "out")
        with pytest.raises(DataError, match="must hold tables, got 'microdata'"):
            PublishedTables.read(made / "people")
        coarse = Workload.named("sf1-tract", levels=["county"])
        with pytest.raises(ArgumentError, match="tables of a level inside a county"):
            run(TabulationStudy(made / "people", coarse), tmp_path / "out")
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("file", "change", "words"),
        [
            ("_partitions.json", lambda d: {**d, "level": "tract"}, "seal does not fit"),
            ("_partitions.json", lambda d: _unsealed(d, more=1), "must have format"),
            ("_partitions.json", lambda d: _unsealed(d, parts={"x": "y"}), "parts must be digests"),
            ("_partitions.json", lambda d: _unsealed(d, places="0"), "is not the file"),
            ("part-80003/_manifest.json", lambda d: {**d, "negative": True}, "is not the file"),
        ],
    )
    def test_damage_is_seen(self, made, tmp_path, file, change, words):
        shutil.copytree(made / "parts", tmp_path / "parts")
        path = tmp_path / "parts" / file
        path.write_text(json.dumps(change(json.loads(path.read_text()))))
        with pytest.raises(DataError, match=words):
            PublishedTables.read(tmp_path / "parts")

    def test_an_exchange_of_parts_is_seen(self, made, tmp_path):
        parts = tmp_path / "parts"
        shutil.copytree(made / "parts", parts)
        (parts / "part-80001").rename(parts / "x")
        (parts / "part-80003").rename(parts / "part-80001")
        (parts / "x").rename(parts / "part-80003")
        source = open_tables(parts)
        with pytest.raises(DataError, match="is not the file that _partitions"):
            source.shard(1, "tract", 24)


def _unsealed(document, **changes):
    return {key: value for key, value in {**document, **changes}.items() if key != "seal"}

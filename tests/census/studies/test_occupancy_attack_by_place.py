"""The occupancy attack on statistics by place: what it finds in the whole, a part at a time."""

import shutil

import pytest
from nations import write_counties
from peak_memory import run_and_measure

from bayesrisk import make_mechanism, run
from bayesrisk.census import population_spec
from bayesrisk.census.population.nation import Nation
from bayesrisk.census.studies.nation_attack import NationStudy
from bayesrisk.census.studies.occupancy_attack import OccupancyAttackStudy
from bayesrisk.exceptions import ArgumentError, DataError, ShardError
from bayesrisk.experiments.by_place import ReleaseStudy, TabulationStudy
from bayesrisk.tables import Microdata, PublishedTables, Schema, Workload, tabulate

TABLES = Workload.named("household-occupancy")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return households of four counties, and their statistics by place and whole."""
    at = tmp_path_factory.mktemp("occupancy")
    write_counties(at / "people", "subsidised")
    run(TabulationStudy(at / "people", TABLES), at / "parts")
    run(ReleaseStudy(at / "people", TABLES, make_mechanism("identity")), at / "released")
    data = Microdata.read(at / "people")
    tabulate(data, TABLES).write(at / "whole")
    sample = data.for_schema(Schema.named("household-occupancy")).to_frame()
    sample[["size", "race_ethnicity", "children"]].to_parquet(at / "sample.parquet", index=False)
    return at


@pytest.mark.parametrize("size", [13, 1000])
def test_blocks_and_households_are_the_bytes_of_the_whole(made, tmp_path, size):
    found = {}
    for name in ("parts", "whole", "released"):
        study = OccupancyAttackStudy(
            made / name, sample=made / "sample.parquet", solutions=2, blocks_per_shard=size
        )
        found[name] = run(study, tmp_path / name)
    assert found["parts"].blocks == 90
    assert found["parts"].statuses["violation"] == 3
    for name in ("parts", "released"):
        assert found[name].statuses == found["whole"].statuses
        for file in ("blocks.parquet", "households.parquet"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_shard_reads_its_own_part_and_no_other(made, tmp_path):
    shutil.copytree(made / "parts", tmp_path / "parts")
    study = OccupancyAttackStudy(tmp_path / "parts", blocks_per_shard=24)
    assert study.shards == 4
    study.close()
    shutil.rmtree(tmp_path / "parts" / "part-80005")
    assert study.compute(1)["blocks"].num_rows == 24
    with pytest.raises(DataError, match="part-80005"):
        study.compute(2)
    study.close()
    with pytest.raises(ShardError, match="1 of the shards could not be computed"):
        run(OccupancyAttackStudy(tmp_path / "parts", blocks_per_shard=24), tmp_path / "out")


def test_what_is_not_there_is_said_before_a_folder_is_made(made, tmp_path):
    with pytest.raises(ArgumentError, match="level must be one of"):
        run(OccupancyAttackStudy(made / "parts", level="tract"), tmp_path / "out")
    run(TabulationStudy(made / "people", TABLES.select(without=["H13"])), tmp_path / "less")
    with pytest.raises(DataError, match="H13"):
        run(OccupancyAttackStudy(tmp_path / "less"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


#: Detects shard after shard, as a worker does.
_ATTACK = """
import tracemalloc
import pyarrow as pa
from bayesrisk.census.studies.occupancy_attack import OccupancyAttackStudy
study = OccupancyAttackStudy(sys.argv[1], blocks_per_shard=100)
tracemalloc.start()
for shard in range(study.shards):
    study.shard_statistics(shard)
answer = tracemalloc.get_traced_memory()[1] + pa.default_memory_pool().max_memory()
"""


@pytest.mark.slow
def test_a_worker_holds_no_more_of_eight_times_as_many_places(tmp_path):
    spec = population_spec("county", blocks_per_group=5)  # 345 blocks in a county
    held = {}
    for counties in (4, 32):
        at = tmp_path / str(counties)
        run(NationStudy(Nation(345 * counties, spec), 1), at / "people")
        run(TabulationStudy(at / "people", TABLES), at / "parts")
        held[counties] = run_and_measure(_ATTACK, at / "parts")[0]
    PublishedTables.read(at / "parts").write(at / "whole")
    whole = run_and_measure(_ATTACK, at / "whole")[0]
    assert held[32] - held[4] < (whole - held[4]) / 4

"""A nation as a study: microdata by county, and the figures of all."""

import numpy as np
import pytest

from bayesrisk import run
from bayesrisk.census import population_spec, population_summary
from bayesrisk.census.population.nation import Nation
from bayesrisk.census.studies.nation_attack import NationStudy
from bayesrisk.exceptions import ArgumentError, OutputError
from bayesrisk.tables import Microdata

SMALL = population_spec("county", blocks_per_group=4, tracts_per_county=2)


def test_the_summary_is_that_of_all_counties_together(tmp_path):
    nation = Nation(90, SMALL)
    done = run(NationStudy(nation, 3), tmp_path / "out")
    assert (done.shards, done.complete) == (4, True)
    data = Microdata.read(tmp_path / "out")
    expected = population_summary(data)
    assert done.population.all_blocks == expected.all_blocks == 90
    for name, value in vars(expected).items():
        if isinstance(value, str):
            assert getattr(done.population, name) == value
        else:  # a sum of at most 10,000 people in another order
            np.testing.assert_allclose(getattr(done.population, name), value, rtol=1e4 * 2**-52)
    drawn = [nation.county(county, seed=3) for county in range(4)]
    assert len(data.persons) == sum(len(d.persons) for d in drawn)
    assert Microdata.read(tmp_path / "out" / "part-80003").persons.table == drawn[1].persons.table


def test_a_part_of_a_nation_has_no_summary(tmp_path):
    done = run(NationStudy(Nation(90, SMALL), 3), tmp_path / "out", shard=(1, 2))
    assert (done.complete, done.population) == (False, None)
    assert not (tmp_path / "out" / "_partitions.json").exists()
    with pytest.raises(OutputError, match="another configuration"):
        run(NationStudy(Nation(90, SMALL), 4), tmp_path / "out", shard=(2, 2))
    with pytest.raises(ArgumentError, match="seed must be >= 0"):
        run(NationStudy(Nation(90, SMALL), -1), tmp_path / "other")

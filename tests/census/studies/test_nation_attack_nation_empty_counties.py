"""Counties in which nobody lives, and no housing unit stands: every command goes past them."""

import math

import pandas as pd
import pytest
from typer.testing import CliRunner

from bayesrisk import run
from bayesrisk.census import population_spec, population_summary
from bayesrisk.census.population.nation import Nation
from bayesrisk.census.studies.nation_attack import NationStudy
from bayesrisk.cli.app import app
from bayesrisk.tables import Microdata

pytestmark = pytest.mark.usefixtures("quick_figures")

TINY = population_spec("county", blocks_per_group=2, groups_per_tract=1, tracts_per_county=1)
WORDS = {
    "tables": "release --protection none {people} --tables sf1-block,sf1-tract",
    "homes": "release --protection none {people} --tables household-dhc",
    "statistics": "release --protection none {people} --tables household-occupancy",
    "records": "attack --only records {tables} --scope tract --variability tract-bounds",
    "links": "attack --only links {records} --adversary {people} --truth {people}",
    "claims": "attack --only claims {homes} --max-columns 1",
    "attack": "census occupancy attack {statistics} --solutions 1",
    "rounded": "release {people} --protection rounding --set base=3 --set method=random "
    "--tables sf1-block --only P1,P8",
    "audit": "audit {people} --protection identity --method majority --adversary linker "
    "--targets 10 --seed 1",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folder of a nation of five counties, nobody in two, and where others go."""
    at = tmp_path_factory.mktemp("empty")
    done = run(NationStudy(Nation(10, TINY), 6), at / "people")
    assert done.complete
    sizes = [len(Microdata.read(p).persons) for p in sorted((at / "people").glob("part-*"))]
    assert [size == 0 for size in sizes] == [True, False, False, True, False]
    return done, {name: at / name for name in ("people", *WORDS)}


def test_figures_are_those_of_the_whole(folders):
    done, at = folders
    expected = population_summary(Microdata.read(at["people"]))
    for name in ("unique_exact", "quarters", "vacant", "household_size"):
        found = getattr(done.population, name)
        assert math.isclose(found, getattr(expected, name), rel_tol=1e-12)
    assert done.population.all_blocks == 10
    assert done.population.people.sum() == expected.people.sum() > 0


def test_every_command_goes_past_them(folders):
    _, at = folders
    for name, words in WORDS.items():
        line = [*words.format(**at).split(), "-q", "-o", str(at[name])]
        found = CliRunner().invoke(app, line)
        assert found.exit_code == 0, (name, found.output, found.exception)
    truth = Microdata.read(at["people"]).persons
    blocks = pd.Series(truth.geoids).value_counts()
    rebuilt = pd.read_parquet(at["records"] / "records.parquet")
    assert rebuilt["block"].value_counts().to_dict() == blocks.to_dict()

"""Four simulated counties by place: made once in a process, copied for whoever asks."""

import functools
import shutil
import tempfile
from pathlib import Path

from bayesrisk import run
from bayesrisk.census import population_spec
from bayesrisk.census.population.nation import Nation
from bayesrisk.census.studies.nation_attack import NationStudy

#: Settings of a county of 24 blocks; ``subsidised`` ones have people everywhere, in half of the
#: blocks some with a subsidy.
COUNTY = {"blocks_per_group": 4, "tracts_per_county": 2}
MORE = {
    "plain": {},
    "subsidised": {"occupied_blocks": 1.0, "subsidised_blocks": 0.5, "alpha": 0.5},
}


def four_counties(kind="plain"):
    return Nation(90, population_spec("county", **COUNTY, **MORE[kind]))


def write_counties(folder, kind="plain"):
    """Write the people of four counties to a folder, by place."""
    shutil.copytree(Path(_made(kind).name) / "people", folder)


@functools.cache
def _made(kind):
    place = tempfile.TemporaryDirectory(prefix="counties-")
    run(NationStudy(four_counties(kind), 3), Path(place.name) / "people")
    return place

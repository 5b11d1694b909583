"""The time of a release that takes long: foretold by a few places, and nothing changes."""

import time

import numpy as np
import pytest
from studies import contents

from bayesrisk import datasets
from bayesrisk._base.display import spoken
from bayesrisk.cli.protect import time_ahead
from bayesrisk.cli.protect.time_ahead import release_seconds
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.tables import Workload
from bayesrisk.tables.microdata import as_microdata

TABLES = Workload.named("sf1-block").select(tables=["P1", "P8"])


@pytest.fixture(scope="module")
def county():
    """A quarter of the blocks of a made-up county, persons alone."""
    people = datasets.load_microdata("synthetic-county").persons
    some = np.unique(people.geoids)[::4]
    return as_microdata(people.take(np.isin(people.geoids, some))).with_places(some)


def test_a_release_by_topdown_is_foretold_within_a_factor_of_three(county):
    protection = make_mechanism("topdown", rho="3/2")
    foretold = release_seconds(protection, county, TABLES, rng=1)
    start = time.process_time()
    protection.release(county, workload=TABLES, rng=1)
    took = time.process_time() - start
    assert took / 3.0 < foretold < 3.0 * took


def test_what_is_short_has_no_pilot(county):
    assert release_seconds(make_mechanism("rounding", base=5), county, TABLES) == 0.0


@pytest.mark.slow
def test_the_command_says_the_time_and_the_release_is_the_same(run, monkeypatch, tmp_path):
    # How long it takes is the machine's affair: what is said is what was foretold.
    foretold = []
    monkeypatch.setattr(
        time_ahead,
        "release_seconds",
        lambda *given, **options: (
            foretold.append(release_seconds(*given, **options)) or foretold[-1]
        ),
    )
    words = ["release", "sample:synthetic-county", "--tables", "sf1-block", "--only", "P1,P8"]
    words += ["--protection", "topdown:rho=3/2", "--simulation-seed", "1"]
    status, _, errors = run(*words, "-o", tmp_path / "told")
    assert status == 0
    assert [seconds > 0.0 for seconds in foretold] == [True]
    line = f"release: {spoken(foretold[0])}"
    assert errors.splitlines().count(line) == 1
    status, _, errors = run(*words, "-o", tmp_path / "quiet", "--quiet")
    assert status == 0
    assert len(foretold) == 1
    assert line not in errors
    assert contents(tmp_path / "told") == contents(tmp_path / "quiet")

"""Whoever guesses the seed takes the noise off; without a seed there is nothing to guess.

The attacker holds the published folder, and this package: dummy records over the same places,
released with a guessed seed, show the noise of that seed.
"""

import json

import numpy as np
import pandas as pd
import pytest
from oracles.mechanisms import AGES, PEOPLE, SEX, TOTAL, people_workload, population

from bayesrisk import make_mechanism
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError
from bayesrisk.reconstruction import make_attack
from bayesrisk.release import Release
from bayesrisk.tables import Microdata, Records, tabulate

ASKED = people_workload(TOTAL, SEX, AGES)
GUESSES = range(20)
SEED = 17
GAUSSIAN = {
    "budgets": {
        level: dict.fromkeys(("total", "sex", "ages"), "1/50")
        for level in ("county", "tract", "block")
    },
    "sensitivity": "add-remove",
    "overlap": {"sex": 2},
}


def dense(tables):
    return {key: counts.toarray() for key, counts in tables.counts.items()}


def take_off(folder, guesses):
    """Return the (seed, counts) whose noise leaves non-negative counts that add up everywhere."""
    published = Release.read(folder)
    again = make_mechanism(published.spec.mechanism, **published.spec.parameters)
    places = published.tables.geoids["block"]
    dummy = Microdata(
        Records.from_frame(pd.DataFrame({"block": places, "sex": 0, "age": 0}), schema=PEOPLE)
    ).with_places(places)
    blank = dense(tabulate(dummy, ASKED))
    found = []
    for seed in guesses:
        drawn = dense(again.release(dummy, workload=ASKED, rng=seed).tables)
        counts = {
            key: value.toarray() - (drawn[key] - blank[key])
            for key, value in published.tables.counts.items()
        }
        total, sex, ages = (counts["block", name] for name in ("total", "sex", "ages"))
        if (
            all((value >= 0).all() for value in counts.values())
            and (sex[:, 1:].sum(axis=1) == total[:, 0]).all()
            and (ages.sum(axis=1) == total[:, 0]).all()
            and total.sum() == counts["county", "total"].sum()
        ):
            found.append((seed, counts))
    return found


@pytest.fixture(scope="module")
def records():
    return population(3)


def test_a_guessed_seed_gives_the_confidential_tables_back(records, tmp_path):
    mechanism = make_mechanism("discrete-gaussian", **GAUSSIAN)
    made = mechanism.release(records, workload=ASKED, rng=SEED)
    made.write(tmp_path / "out")
    [(seed, counts)] = take_off(tmp_path / "out", GUESSES)
    assert seed == SEED
    truth = dense(tabulate(records, ASKED))
    assert all(np.array_equal(counts[key], truth[key]) for key in truth)
    # Such a folder says of itself that it protects nothing.
    assert json.loads((tmp_path / "out" / "_release.json").read_text())["simulation"] is True
    assert Release.read(tmp_path / "out").simulation


def test_a_release_without_a_seed_gives_nothing_to_guess(records, tmp_path):
    mechanism = make_mechanism("discrete-gaussian", **GAUSSIAN)
    np.random.seed(SEED)  # noqa: NPY002  # nor does the state of the old global generator matter
    made = mechanism.release(records, workload=ASKED)
    made.write(tmp_path / "out")
    assert take_off(tmp_path / "out", GUESSES) == []
    assert json.loads((tmp_path / "out" / "_release.json").read_text())["simulation"] is False
    np.random.seed(SEED)  # noqa: NPY002
    again = mechanism.release(records, workload=ASKED)
    # 12 blocks, 3 tracts and a county of six cells: equal noise has a chance below 1e-60.
    assert again != made


def test_a_release_that_does_not_say_claims_no_protection(records):
    made = make_mechanism("identity").release(records, workload=ASKED)
    assert Release(made.spec, made.tables).simulation is True
    with pytest.raises(ArgumentTypeError, match="simulation must be True or False, got 0"):
        Release(made.spec, made.tables, simulation=0)


def test_a_simulation_cannot_pass_for_a_protected_release(records, tmp_path):
    rounding = make_mechanism("rounding", base=5, method="random")
    made = rounding.release(records, workload=ASKED, rng=1)
    made.write(tmp_path / "out")
    about = tmp_path / "out" / "_release.json"
    text = about.read_text()
    assert text.count('"simulation": true') == 1
    about.write_text(text.replace('"simulation": true', '"simulation": false'))
    with pytest.raises(DataError, match=r"_release\.json: was changed after it was written"):
        Release.read(tmp_path / "out")


def test_a_parameter_called_name_is_a_parameter():
    with pytest.raises(ArgumentError, match="rounding has no 'name'; possible: base"):
        make_mechanism("rounding", **{"name": "x", "base": 3, "method": "nearest"})
    with pytest.raises(ArgumentError, match="got 'name'"):
        make_attack("claims", **{"name": "x"})

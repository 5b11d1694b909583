"""The law of change: ageing, numbers, trajectories, tables of both years, linked files."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles import years as oracle
from two_years import random_law

from bayesrisk import Microdata, Records, Schema, Workload, tabulate
from bayesrisk.census import simulate_later
from bayesrisk.exceptions import ArgumentError, DataError, ShapeError
from bayesrisk.tables import Attribute, Geography, PopulationChange, link_years

TOWN = Geography("towns", ("tract", "block"), (1, 3))
ABOUT = Schema("people", (Attribute("sex", 2), Attribute("age", 3)), TOWN)


def change(**rates):
    return PopulationChange(ABOUT, 10, age="age", starts=[0, 20, 50], **rates)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_expected_trajectories_equal_those_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    law, sizes, age, told = random_law(rng)
    counts = rng.random(math.prod(sizes))
    by_kind = {k: counts[np.ravel_multi_index(k, sizes)] for k in np.ndindex(*sizes)}
    expected = law.trajectories(counts)
    both = law.schema_of_both
    cells = np.arange(both.size)
    first, later = (oracle.cells_of_year(law, cells, later=late) for late in (False, True))
    for start, end, mean in oracle.trajectories(sizes, age, told, by_kind):
        of = [-1 if k is None else int(np.ravel_multi_index(k, sizes)) for k in (start, end)]
        found = expected[(first == of[0]) & (later == of[1])].sum()
        assert found == pytest.approx(mean, rel=1e-12)
    total = sum(m for *_, m in oracle.trajectories(sizes, age, told, by_kind))
    assert expected.sum() == pytest.approx(total, rel=1e-12)


def test_people_of_single_years_are_ten_years_older():
    schema = Schema("people", (Attribute("age", 111),))
    law = PopulationChange(schema, 10, age="age")
    assert np.array_equal(np.argmax(law.ageing, axis=1), np.minimum(np.arange(111) + 10, 110))
    assert np.all(np.isin(law.ageing, (0.0, 1.0)))


def test_groups_age_by_the_share_that_crosses_a_boundary():
    assert change().ageing.tolist() == [[0.5, 0.5, 0.0], [0.0, 2 / 3, 1 / 3], [0.0, 0.0, 1.0]]
    attribute = Attribute("age", 3, labels=("under 20", "20-49", "50 and over"), cuts=(20, 50))
    by_cuts = PopulationChange(Schema("a", (attribute,)), 10, age="age")
    assert by_cuts.ageing.tolist() == change().ageing.tolist()


def people(rng, number):
    codes = {a.name: rng.integers(a.size, size=number) for a in ABOUT.attributes}
    block = np.array(["100", "101"])[rng.integers(2, size=number)]
    frame = pd.DataFrame({"block": block, **codes, "person": rng.permutation(1000)[:number]})
    return Records.from_frame(frame, schema=ABOUT)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30))
def test_tables_of_trajectories_are_those_of_both_years(seed, number):
    rng = np.random.default_rng(seed)
    law = change(staying=0.6, dying=[0.0, 0.1, 0.4], changes={"sex": 0.2}, arrivals=0.5, births=0.2)
    first = people(rng, number)
    later = simulate_later(first, law, rng=rng)
    linked = link_years(first, later, change=law)
    work = Workload.of(ABOUT, ["sex", ["sex", "age"]], levels=["tract", "block"])
    blocks = pd.DataFrame({"block": ["100", "101"]})
    joint = tabulate(Microdata(linked, blocks=blocks), law.workload(work, work))
    for year, records in (("first", first), ("later", later)):
        own = tabulate(Microdata(records, blocks=blocks), work)
        for (level, name), counts in own.counts.items():
            of_both = joint.counts[level, f"{year}: {name}"]
            assert np.array_equal(of_both.toarray(), counts.toarray())
    # Nobody is lost: everybody of either year is in one trajectory.
    ids = set(first.table["person"].to_pylist()) | set(later.table["person"].to_pylist())
    assert len(linked) == len(ids)


def test_numbers_of_a_later_year_are_those_of_the_law():
    law = change(staying=[0.8, 0.4, 0.6], dying=[0.0, 0.1, 0.4], changes={"sex": 0.2},
                 arrivals=0.5, births=0.2)  # fmt: skip
    first = people(np.random.default_rng(1), 60)
    counts = np.bincount(first.cells(), minlength=ABOUT.size)
    mean, runs = law.trajectories(counts), 120
    found = np.zeros(mean.size)
    for seed in range(runs):
        later = simulate_later(first, law, rng=seed)
        found += np.bincount(link_years(first, later, change=law).cells(), minlength=mean.size)
    assert np.all(found[mean == 0.0] == 0)
    z = (found - runs * mean)[mean > 0] / np.sqrt(runs * mean[mean > 0])
    assert np.abs(z).max() < 4.5
    assert np.mean(z**2) < 1.5


def test_the_same_seed_gives_the_same_later_year():
    first, law = people(np.random.default_rng(1), 30), change(staying=0.5, arrivals=0.4)
    once, again = (simulate_later(first, law, rng=5).table for _ in range(2))
    assert once.equals(again)


def test_whoever_changes_as_the_law_excludes_is_counted_as_two():
    law = change(staying=0.5, arrivals=0.5)
    row = {"block": ["100"], "sex": [0], "person": [7]}
    first, later = (
        Records.from_frame(pd.DataFrame({**row, "age": [a]}), schema=ABOUT) for a in (2, 0)
    )
    linked = link_years(first, later, change=law)
    cells = [
        oracle.cells_of_year(law, linked.cells(), later=late).tolist() for late in (False, True)
    ]
    assert cells == [[2, -1], [-1, 0]]
    closed = change(staying=1.0)
    with pytest.raises(DataError, match="person 7"):
        link_years(first, later, change=closed)


def test_conditions_are_about_the_years_that_they_name():
    law = change(staying=0.5, arrivals=0.3, changes={"sex": 0.1})
    labels = law.schema_of_both.attribute("age").labels
    both = [labels[c] for c in law.condition(present="both")["age"]]
    assert both == ["0, then 0", "0, then 1", "1, then 1", "1, then 2", "2, then 2"]
    young = law.condition({"age": [0]}, {"age": [1]}, changed=["sex"])
    assert [labels[c] for c in young["age"]] == ["0, then 1"]
    sexes = law.schema_of_both.attribute("sex").labels
    assert [sexes[c] for c in young["sex"]] == ["0, then 1", "1, then 0"]


@pytest.mark.parametrize(
    ("rates", "error", "name"),
    [
        ({"staying": 1.2}, ArgumentError, "staying"),
        ({"dying": [0.1, 0.2]}, ShapeError, "dying"),
        ({"changes": {"age": 0.1}}, ArgumentError, "changes"),
        ({"changes": {"sex": [[0.5, 0.4], [0, 1]]}}, ArgumentError, "changes"),
        ({"arrivals": [0.1, 0.2]}, ShapeError, "arrivals"),
        ({"births": -1}, ArgumentError, "births"),
    ],
)
def test_rates_out_of_range_are_named(rates, error, name):
    with pytest.raises(error, match=name):
        change(**rates)


def test_ages_in_groups_need_their_first_ages():
    schema = Schema("a", (Attribute("age", 2, labels=("young", "old")),))
    with pytest.raises(ArgumentError, match="starts"):
        PopulationChange(schema, 10, age="age")
    with pytest.raises(ArgumentError, match="age must be given"):
        PopulationChange(schema, 10, births=0.1)

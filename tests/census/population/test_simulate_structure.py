"""Every household, person and block is possible, and they agree."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from oracles.population import combinations, household_faults

from bayesrisk.census import population_spec, simulate_population
from bayesrisk.tables import Microdata, Schema

COLUMNS = ("size", "type", "detailed_type", "under_18", "over_65", "hhage")


def rows(records):
    return records.to_frame().to_dict(orient="records")


def faults(population):
    """Return what is wrong with each housing unit and with the identities of people and units."""
    members = defaultdict(list)
    for person in rows(population.persons):
        members[person["household"]].append(person)
    outside = members.pop(-1, [])
    wrong = [
        p["person"] for p in outside if not (p["gq"] in range(1, 8) and p["relationship"] == 6)
    ]
    units = {u["household"]: u for u in rows(population.households)}
    wrong += [h for h in members if h not in units]
    wrong += [] if len(units) == len(population.households) else ["household given twice"]
    people = [p for ps in members.values() for p in ps]
    wrong += [] if len({p["person"] for p in people}) == len(people) else ["person given twice"]
    for number, unit in units.items():
        found = household_faults(unit, members.get(number, []))
        wrong += [(number, found)] if found else []
    return wrong


def geographic_faults(population, spec):
    """Return codes that do not nest as the settings say, and records outside the blocks."""
    blocks = population.blocks["block"].tolist()
    wrong = [] if len(set(blocks)) == len(blocks) == spec.n_blocks else ["number of blocks"]
    wrong += [] if blocks == sorted(blocks) else ["order of blocks"]
    wrong += [b for b in blocks if len(b) != 15 or not b.isdigit() or not b.startswith(spec.state)]
    for inner, outer, most in (
        (15, 12, spec.blocks_per_group),
        (12, 11, spec.groups_per_tract),
        (11, 5, spec.tracts_per_county),
    ):
        inside = defaultdict(set)
        for b in blocks:
            inside[b[:outer]].add(b[:inner])
        sizes = [len(inside[k]) for k in sorted(inside)]
        # filled in order: all full but the last of each one that is not full itself
        wrong += [f"{outer} holds {n}" for n in sizes if n > most]
        wrong += [f"{outer} is not full"] if any(n < most for n in sizes[:-1]) else []
    wrong += [b for b in blocks if b[4] not in "13579"]  # counties have odd numbers
    wrong += [b for b in blocks if b[11] not in "123456789"]  # a block's first digit: its group
    for records in (population.persons, population.households):
        wrong += sorted(set(records.geoids.tolist()) - set(blocks))
        wrong += [] if records.geoids.tolist() == sorted(records.geoids.tolist()) else ["order"]
    return wrong


SMALL = st.fixed_dictionaries(
    {
        "n_blocks": st.integers(1, 40),
        "blocks_per_group": st.integers(1, 12),
        "groups_per_tract": st.integers(1, 9),
        "tracts_per_county": st.integers(1, 5),
        "occupied_blocks": st.floats(0, 1),
        "quarters_blocks": st.floats(0, 1),
        "tract_mixing": st.floats(1e-3, 1e3),
        "block_mixing": st.floats(1e-6, 1e3),
        "block_mixing_growth": st.floats(0, 1),
        "household_homogeneity": st.floats(0, 1),
        "tenure_correlation": st.floats(0, 1),
        "subsidised_blocks": st.floats(0, 1),
        "subsidised_share": st.floats(0, 1),
        "bedroom_mixing": st.floats(1e-3, 1e3),
        "alpha": st.floats(1e-300, 1),
    }
)


@settings(max_examples=25, deadline=None)
@given(SMALL, st.integers(0, 2**32))
def test_any_settings_give_a_possible_population(changes, seed):
    spec = population_spec("tract", **changes)
    population = simulate_population(spec, rng=seed)
    assert faults(population) == []
    assert geographic_faults(population, spec) == []


def test_a_county_is_possible(county):
    spec = population_spec("county")
    assert faults(county) == []
    assert geographic_faults(county, spec) == []


def test_occupied_units_are_among_the_structural_combinations(state):
    units = state.households
    codes = np.column_stack([units.codes(n) for n in COLUMNS])[units.codes("vacancy") == 0]
    seen = {tuple(map(int, row)) for row in np.unique(codes, axis=0)}
    possible = combinations()
    assert len(possible) == 1902
    assert seen <= possible
    assert len(seen) > 900  # the rare ones need more people, but none is impossible by design


def test_vacant_units_have_a_status_and_nothing_else(county):
    units = county.households
    vacant = units.codes("vacancy") > 0
    for name in (*units.schema.names, "people", "children", "bedrooms", "subsidised"):
        values = np.asarray(units.table.column(name).to_numpy())
        assert (values[vacant] == 0).all() or name == "vacancy"
    assert (units.codes("tenure")[~vacant] > 0).all()


def test_records_can_be_counted_in_every_schema_of_theirs(county):
    redistricting = county.for_schema(Schema.named("pl94"))
    assert (np.bincount(redistricting.codes("hhgq"), minlength=8) > 0).sum() >= 3
    occupancy = county.for_schema(Schema.named("household-occupancy"))
    assert len(occupancy) == (county.households.codes("vacancy") == 0).sum()


def test_subsidised_properties(county):
    frame = county.households.to_frame()
    quarters = county.persons.to_frame().query("gq > 0")["block"].unique()
    per_block = frame.groupby("block")["subsidised"].sum()
    per_block = per_block[per_block > 0]
    assert (per_block >= 11).all()
    assert not per_block.index.isin(quarters).any()
    occupied = frame[frame["vacancy"] == 0].groupby("block").size()
    can = occupied[(occupied >= 11) & ~occupied.index.isin(quarters)]
    assert sorted(can.index) == sorted(per_block.index)


def test_ages_of_householders_children_and_residents(county):
    frame = county.persons.to_frame()
    assert frame.query("relationship in (0, 1, 2)")["age"].min() >= 18
    ranges = frame[frame["gq"] > 0].groupby("gq")["age"].agg(["min", "max"])
    assert (ranges.loc[5] <= [18, 24]).all() or 5 not in ranges.index
    assert (frame.groupby("block")["gq"].apply(lambda g: g[g > 0].nunique()) <= 1).all()


def _with(population, unit, **columns):
    changed = getattr(population, unit).replace(**columns)
    return Microdata(**{**vars(population), unit: changed})


@pytest.mark.parametrize("name", ["size", "detailed_type", "over_65", "race"])
def test_the_rules_see_one_wrong_code(county, name):
    codes = county.households.codes(name).astype(np.int16)
    row = int(np.flatnonzero(county.households.codes("vacancy") == 0)[5])
    top = county.households.schema.attribute(name).size - 1
    codes[row] = codes[row] % top + 1
    wrong = faults(_with(county, "households", **{name: codes}))
    assert [number for number, _ in wrong] == [row]
    assert name in wrong[0][1]


def test_the_rules_see_a_wrong_person(county):
    for name, value in (("household", 10**9), ("relationship", 0), ("age", 17), ("gq", 3)):
        values = county.persons.table.column(name).to_numpy().copy()
        values[0] = value + (name == "relationship") * 4
        assert faults(_with(county, "persons", **{name: values})) != []


def test_the_geography_check_sees_a_wrong_nesting(county):
    spec = population_spec("county")
    assert geographic_faults(county, replace(spec, blocks_per_group=50)) != []
    assert geographic_faults(county, replace(spec, state="98")) != []


def test_blocks_have_places_of_their_own(county):
    xy = county.blocks[["x", "y"]].to_numpy()
    assert len(np.unique(xy, axis=0)) == len(xy)
    tract = county.blocks["block"].str[:11]
    centres = county.blocks.groupby(tract)[["x", "y"]].mean()
    inside = ((xy - centres.loc[tract].to_numpy()) ** 2).sum(axis=1).mean()
    overall = ((xy - xy.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert inside < overall / 5  # blocks of a tract lie together

"""Swapping keeps what it promises, moves the rate it states, and goes for risky households."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles.mechanisms import (
    AGES,
    PEOPLE,
    TOTAL,
    UNITS,
    household_facts,
    key_counts,
    largest_remainder,
    people_workload,
    population,
    slow_swap,
)
from scipy import stats

from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.mechanisms import Identity, Swapping
from bayesrisk.mechanisms.swapping.pairs import PartnerSearch, apportion, pairs_for_rate, risk_tiers
from bayesrisk.tables import Microdata, Records, Table, Workload, tabulate

SETTINGS = {
    "rate": "1/5", "swap_key": ["size", "adults"], "unique_by": ["age", "sex"], "within": "county",
    "unique_within": "tract", "unit": "household",
}  # fmt: skip


def swapping(**changes):
    return Swapping(**{**SETTINGS, **changes})


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(1, 15),
    st.integers(1, 120),
    st.integers(1, 4),
    st.fractions(0, 1),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(["county", "tract"]),
)
def test_invariants(seed, blocks, households, largest, rate, neighbours, coordinates, within):
    data = population(
        seed, blocks=blocks, households=households, largest=largest, coordinates=coordinates
    )
    made = swapping(rate=rate, neighbours=neighbours, within=within).swap(data, rng=seed)
    before, after = household_facts(data), household_facts(made.microdata)
    # Whole records move: everybody in a household is in one block, and is who they were.
    assert all(len(facts[0]) == 1 for facts in after.values())
    assert {n: f[1:] for n, f in before.items()} == {n: f[1:] for n, f in after.items()}
    assert key_counts(made.microdata) == key_counts(data)
    # Partners are mutual, alike, in other blocks of one region; nobody has two.
    numbers = data.households.table.column("household").to_pylist()
    units = made.microdata.households.to_frame().set_index("household")
    for i, j in enumerate(made.partner.tolist()):
        (old,), (new,) = before[numbers[i]][0], after[numbers[i]][0]
        assert units.loc[numbers[i], "block"] == new
        if j < 0:
            assert old == new
            continue
        assert made.partner[j] == i != j
        assert before[numbers[j]][0] == {new} != {old}
        assert before[numbers[j]][1:3] == before[numbers[i]][1:3]
        assert old[: 1 if within == "county" else 2] == new[: 1 if within == "county" else 2]
    assert made.realised_rate == (made.partner >= 0).mean()
    assert made.realised_rate <= 2 * pairs_for_rate(rate, households) / households
    untouched = data.households.to_frame().drop(columns="block")
    assert made.microdata.households.to_frame().drop(columns="block").equals(untouched)


@pytest.mark.parametrize("rate", [0, "1/50", "1/10", "1/4", "1/2"])
def test_the_rate_is_the_stated_one(rate):
    data = population(1, blocks=40, households=3000)
    made = swapping(rate=rate).swap(data, rng=2)
    assert abs(Fraction(int((made.partner >= 0).sum()), 3000) - Fraction(rate)) <= Fraction(1, 3000)
    assert made.stated_rate == float(Fraction(rate))


def test_a_rate_that_cannot_be_reached_is_reported():
    data = population(1, blocks=1, households=50)  # no other block: nobody has a partner
    made = swapping(rate=1).swap(data, rng=2)
    assert made.realised_rate == 0.0
    assert made.stated_rate == 1.0
    assert made.microdata.persons.table.equals(data.persons.table)


def test_riskier_tiers_are_swapped_more():
    data = population(2, blocks=50, households=5000, largest=2)
    made = swapping(rate="1/10").swap(data, rng=3)
    assert list(made.tier_rates) == sorted(made.tier_rates, reverse=True)
    assert np.bincount(made.tier).tolist() == [25, 975, 1500, 2500]
    # The chosen half of the pairs is split 5/1000 x 1 : 195/1000 x .6 : 300/1000 x .3 : 1/2 x .1.
    weights = [Fraction(5), Fraction(117), Fraction(90), Fraction(50)]
    chosen = largest_remainder(250, weights)
    swapped = np.bincount(made.tier[made.partner >= 0], minlength=4)
    assert np.all(swapped >= chosen)
    assert swapped.sum() == 2 * sum(chosen) == 500


def test_equal_tiers_are_negative_control():
    data = population(2, blocks=50, households=5000, largest=2)
    flat = swapping(rate="1/5", tiers=[("0.2", 1), ("0.8", 1)]).swap(data, rng=3)
    targeted = swapping(rate="1/5", tiers=[("0.2", 1), ("0.8", 0)]).swap(data, rng=3)
    tables = [
        np.array(
            [[s := (m.partner >= 0)[m.tier == t].sum(), (m.tier == t).sum() - s] for t in (0, 1)]
        )
        for m in (flat, targeted)
    ]
    pvalues = [stats.chi2_contingency(table).pvalue for table in tables]
    assert pvalues[0] > 1e-3
    assert pvalues[1] < 1e-9


def test_unique_households_in_small_blocks_rank_first():
    region = np.zeros(6, dtype=np.int64)
    tier = risk_tiers(
        region,
        frequency=np.array([3, 1, 2, 1, 3, 1]),
        block_persons=np.array([1, 50, 1, 9, 2, 30]),
        shares=[Fraction(1, 3), Fraction(1, 6), Fraction(1, 2)],
        rng=np.random.default_rng(0),
    )
    assert tier.tolist() == [2, 1, 2, 0, 2, 0]


@given(
    st.integers(0, 200),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), min_size=1, max_size=8),
)
def test_apportionment(total, parts):
    weights, limits = [Fraction(w) for w, _ in parts], [limit for _, limit in parts]
    found = apportion(total, weights, limits)
    room = sum(limit for w, limit in parts if w)
    assert all(0 <= f <= limit for f, limit in zip(found, limits, strict=True))
    assert sum(found) == min(total, room)
    assert all(f == 0 for f, w in zip(found, weights, strict=True) if not w)
    if sum(weights) and all(
        Fraction(total) * w / sum(weights) + 1 <= n for w, n in zip(weights, limits, strict=True)
    ):
        assert found == largest_remainder(total, weights)


def test_pairs_for_rate():
    assert [pairs_for_rate(Fraction(1, 10), n) for n in (0, 1, 10, 20, 30)] == [0, 0, 1, 1, 2]
    assert pairs_for_rate(Fraction(1), 7) == 3


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 12), st.integers(1, 6))
def test_partners_are_among_the_nearest(seed, count, blocks, neighbours):
    rng = np.random.default_rng(seed)
    points = rng.random((blocks, 2))
    block, key = rng.integers(blocks, size=count), rng.integers(3, size=count)
    search = PartnerSearch(key, block, points, neighbours=neighbours, rng=rng)
    distance = np.hypot(*np.moveaxis(points[:, None] - points[None], -1, 0))
    for unit in rng.permutation(count).tolist():
        free = search.partner < 0
        was_free = bool(free[unit])
        others = np.flatnonzero(free & (key == key[unit]) & (block != block[unit]))
        assert search.swap(unit) == (was_free and others.size > 0)
        if was_free and others.size:
            reach = np.sort(distance[block[unit], block[others]])[:neighbours][-1]
            assert distance[block[unit], block[search.partner[unit]]] <= reach
            assert search.partner[unit] in others


def test_each_of_the_nearest_is_as_likely():
    points = np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])
    block = np.array([0, 1, 2, 3, 4])
    counts = np.zeros(5, dtype=int)
    for seed in range(3000):
        rng = np.random.default_rng(seed)
        search = PartnerSearch(np.zeros(5, dtype=np.int64), block, points, neighbours=3, rng=rng)
        search.swap(0)
        counts[search.partner[0]] += 1
    assert counts[[0, 4]].tolist() == [0, 0]
    assert stats.chisquare(counts[1:4]).pvalue > 1e-3


def test_the_slow_twin_has_the_same_number_of_pairs():
    data = population(5, blocks=10, households=200)
    places, place = data.households.places()
    key = data.households.codes("size")
    points = data.blocks.set_index("block").loc[places, ["x", "y"]].to_numpy()
    rng = np.random.default_rng(1)
    order = rng.permutation(200).tolist()
    partner = slow_swap(place, key, points, order=order, neighbours=5, pairs=20, rng=rng)
    ours = swapping(rate="1/5", swap_key=["size"]).swap(data, rng=1)
    assert (partner >= 0).sum() == (ours.partner >= 0).sum() == 40


def test_person_level():
    data = population(6, blocks=10, households=300)
    key = ["sex", "age"]
    persons = data.persons.replace(age=data.persons.codes("age") // 30)
    data = Microdata(persons, data.households, data.blocks)
    made = swapping(unit="person", swap_key=key, unique_by=["age"], rate="1/10").swap(data, rng=1)
    before, after = persons.to_frame(), made.microdata.persons.to_frame()
    # Every household and every block keeps its persons by the key; only who they are changes.
    for place in ("block", "household"):
        counts = [f.groupby([place, *key]).size().to_dict() for f in (before, after)]
        assert counts[0] == counts[1]
    assert made.microdata.households.table.equals(data.households.table)
    assert abs((made.partner >= 0).mean() - 0.1) <= 1 / len(before)
    moved = made.partner >= 0
    assert (before["block"] != after["block"])[moved].all()
    assert not (before["block"] != after["block"])[~moved].any()


def test_households_known_from_persons_only():
    data = population(7)
    alone = Microdata(data.persons, None, data.blocks)
    made = swapping().swap(alone, rng=4)
    assert key_counts(made.microdata) == key_counts(data)
    assert made.realised_rate == pytest.approx(12 / 60)
    assert made.microdata.households is None


def test_households_without_persons_records():
    data = population(7)
    alone = Microdata(None, data.households, data.blocks)
    made = swapping(swap_key=["size"], unique_by=["tenure"]).swap(alone, rng=4)
    counts = [
        d.households.to_frame().groupby(["block", "size"]).size().to_dict()
        for d in (data, made.microdata)
    ]
    assert counts[0] == counts[1]
    assert made.realised_rate == pytest.approx(12 / 60)


def test_group_quarters_and_vacant_units_stay():
    data = population(8)
    frame = data.persons.to_frame()
    quarters = pd.DataFrame(
        {"block": ["100"] * 9, "sex": [0] * 9, "age": [30] * 9, "household": [-1] * 9}
    )
    persons = Records.from_frame(pd.concat([frame, quarters]), schema=PEOPLE)
    units = data.households.to_frame()
    vacant = pd.DataFrame({"block": ["101"], "tenure": [0], "size": [1], "household": [10**6]})
    households = Records.from_frame(pd.concat([units, vacant]), schema=UNITS)
    for units in (households, None):
        made = swapping(rate=1).swap(Microdata(persons, units, data.blocks), rng=1)
        after = made.microdata.persons.to_frame()
        assert set(after.loc[after["household"] == -1, "block"]) == {"100"}
        assert made.realised_rate > 0.5
        if units is not None:
            assert made.partner[-1] == -1


def test_an_open_ended_size_does_not_replace_the_count():
    data = population(9, blocks=4, households=400)
    capped = data.households.replace(size=np.minimum(data.households.codes("size"), 2))
    data = Microdata(data.persons, capped, data.blocks)
    made = swapping(swap_key=["size"], rate="1/2").swap(data, rng=2)
    asked = people_workload(TOTAL)
    assert tabulate(made.microdata, asked) == tabulate(data, asked)


def test_release_names_the_tables_that_cannot_change():
    data = population(10, blocks=15, households=400)
    asked = people_workload(TOTAL, AGES)
    made = swapping(within="tract", rate="1/2").release(data, workload=asked, rng=1)
    truth = Identity().release(data, workload=asked, rng=0).tables
    same = {key for key in truth.counts if (truth.counts[key] != made.tables.counts[key]).nnz == 0}
    coarse = {(level, t) for level in ("county", "tract") for t in ("total", "ages")}
    assert set(made.spec.invariants) == same == coarse | {("block", "total")}
    assert made.diagnostics == {}
    other = swapping(swap_key=["adults"], within="tract").release(data, workload=asked, rng=1)
    assert ("block", "total") not in other.spec.invariants


@pytest.mark.parametrize("unit", ["household", "person"])
def test_the_order_of_records_decides_nothing(unit):
    data = population(3, blocks=6, households=40)
    key = {"swap_key": ["sex"], "unique_by": ["age"]} if unit == "person" else {}
    mechanism, asked = swapping(unit=unit, rate="1/2", **key), people_workload(TOTAL, AGES)
    wanted = mechanism.release(data, workload=asked, rng=4)
    rng = np.random.default_rng(4)
    shuffled = replace(
        data,
        persons=data.persons.take(rng.permutation(len(data.persons))),
        households=data.households.take(rng.permutation(len(data.households))),
    )
    assert mechanism.release(shuffled, workload=asked, rng=4) == wanted


def test_release_of_household_tables():
    data = population(10, blocks=15, households=400)
    sizes = Table("sizes", tuple("1234567"), {"size": np.eye(7, dtype=np.int64)})
    tenure = Table("tenure", tuple("abc"), {"tenure": np.eye(3, dtype=np.int64)})
    asked = Workload(UNITS, {("block", "sizes"): sizes, ("block", "tenure"): tenure})
    made = swapping(rate="1/2").release(data, workload=asked, rng=1)
    truth = tabulate(data, asked)
    assert made.spec.invariants == (("block", "sizes"),)
    assert (truth.counts["block", "sizes"] != made.tables.counts["block", "sizes"]).nnz == 0
    assert (truth.counts["block", "tenure"] != made.tables.counts["block", "tenure"]).nnz > 0


@settings(max_examples=40)
@given(
    st.integers(0, 2**32),
    st.integers(1, 12),
    st.integers(1, 60),
    st.integers(1, 3),
    st.sampled_from(["household", "person"]),
    st.sampled_from(["people", "households"]),
    st.booleans(),
)
def test_releases_are_the_tables_of_swapped_records(
    seed, blocks, households, largest, unit, counted, home
):
    """The slow way: microdata with every record at its new place, counted anew."""
    data = population(seed, blocks=blocks, households=households, largest=largest)
    if home and unit == "household":  # of some persons the household has no record
        data = replace(data, persons=data.persons.replace(household=data.persons.codes("age") - 9))
    tenure = Table("tenure", tuple("abc"), {"tenure": np.eye(3, dtype=np.int64)})
    of_units = Workload(UNITS, {("tract", "tenure"): tenure, ("block", "tenure"): tenure})
    asked = people_workload(TOTAL, AGES) if counted == "people" else of_units
    key = {"swap_key": ["sex"], "unique_by": ["age"]} if unit == "person" else {}
    mechanism = swapping(unit=unit, rate="1/2", **key)
    prepared = mechanism.prepare(data, workload=asked)
    for again in range(2):
        made = mechanism.swap(data, rng=seed + again)
        expected = tabulate(made.microdata, asked)
        for release in (
            mechanism.release(data, workload=asked, rng=seed + again),
            prepared.draw(seed + again),
        ):
            assert release.tables == expected
            assert release.diagnostics == {}
            for key_, counts in expected.counts.items():  # to the byte
                assert release.tables.counts[key_].data.tobytes() == counts.data.tobytes()


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"rate": "11/10"}, r"rate must be in \[0, 1\]"),
        ({"swap_key": []}, "swap_key must name a column"),
        ({"swap_key": ["size", "size"]}, "must give each once, got .size"),
        ({"unique_by": [1]}, r"unique_by\[0\] must be a text, got 1"),
        ({"neighbours": 0}, "neighbours must be >= 1"),
        ({"tiers": [("1/2", 1)]}, "must sum to 1, got 1/2"),
        ({"tiers": [(1, 0)]}, "must not all be 0"),
        ({"tiers": [(1, 2)]}, r"tiers\[0\] must be in"),
        ({"tiers": [(1,)]}, r"tiers\[0\] must be \(share, probability\)"),
    ],
)
def test_parameters_are_checked(changes, match):
    with pytest.raises(ArgumentError, match=match):
        swapping(**changes)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"within": "state"}, "level must be one of"),
        ({"within": "block", "unique_within": "tract"}, "unique_within must be 'block' or finer"),
        ({"swap_key": ["income"]}, "got 'income'"),
        ({"unit": "person", "swap_key": ["tenure"]}, "columns of the persons"),
    ],
)
def test_data_that_do_not_fit_are_refused(changes, match):
    with pytest.raises(ArgumentError, match=match):
        swapping(**changes).swap(population(0), rng=0)


def test_broken_records_are_refused():
    data = population(0)
    without = Microdata(Records(PEOPLE, data.persons.table.drop_columns("household")), None)
    with pytest.raises(DataError, match="must have a column 'household'"):
        swapping().swap(without, rng=0)
    with pytest.raises(ArgumentError, match="needs persons"):
        swapping(unit="person").swap(Microdata(None, data.households), rng=0)
    torn = data.persons.to_frame()
    torn.loc[0, "block"] = "199"
    torn = pd.concat([torn, torn.iloc[[0]].assign(block="198")])
    with pytest.raises(DataError, match="column 'block': must be that of the household"):
        swapping().swap(Microdata(Records.from_frame(torn, schema=PEOPLE)), rng=0)
    twice = data.households.take(np.r_[0, np.arange(len(data.households))])
    with pytest.raises(DataError, match="must be there once"):
        swapping().swap(Microdata(data.persons, twice), rng=0)
    few = Microdata(data.persons, data.households, data.blocks.iloc[1:])
    with pytest.raises(ArgumentError, match="coordinates of every place"):
        swapping().swap(few, rng=0)

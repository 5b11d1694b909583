"""Figures of a population against counting by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles.population import summary_by_hand

from bayesrisk.census import population_summary
from bayesrisk.census.population import figures
from bayesrisk.tables import Records, Schema

PERSON = st.tuples(
    st.integers(0, 4), st.integers(0, 1), st.integers(0, 110), st.integers(1, 63), st.integers(0, 1)
)


def records(people):
    frame = pd.DataFrame(people, columns=["block", "sex", "age", "race", "hisp"])
    return Records.from_frame(frame, schema=Schema.named("sf1-person"))


def check(people):
    result = population_summary(records(people))
    by_hand = summary_by_hand(people, figures.SIZE_CLASSES)
    for i, (blocks, number, unique, modal, proportional) in enumerate(by_hand):
        assert (result.blocks[i], result.people[i]) == (blocks, number)
        for got, wanted in ((result.unique, unique), (result.modal, modal)):
            assert np.isnan(got[i]) if number == 0 else got[i] * number == pytest.approx(wanted)
        if number:
            assert result.proportional[i] * number == pytest.approx(proportional)
    exact = pd.DataFrame(people).duplicated([0, 1, 2], keep=False)
    assert result.unique_exact == pytest.approx(1 - exact.mean())


@settings(max_examples=40, deadline=None)
@given(st.lists(PERSON, min_size=1, max_size=60))
def test_any_people(people):
    check(people)


def test_every_class_of_blocks():
    rng = np.random.default_rng(2)
    sizes = [1, 9, 10, 49, 50, 99, 100, 249, 250, 499, 500, 999, 1000, 1200]
    people = [
        (b, int(rng.integers(2)), int(rng.integers(111)), int(rng.choice([1, 1, 2, 3])), 0)
        for b, n in enumerate(sizes)
        for _ in range(n)
    ]
    check(people)
    assert population_summary(records(people)).blocks.tolist() == [2] * 7


def test_the_whole_of_a_population(county):
    result = population_summary(county)
    persons = county.persons.to_frame()
    units = county.households.to_frame()
    assert result.people.sum() == len(persons)
    assert result.blocks.sum() == persons["block"].nunique()
    assert result.all_blocks == 1000
    assert result.quarters == pytest.approx((persons["gq"] > 0).mean())
    assert result.vacant == pytest.approx((units["vacancy"] > 0).mean())
    assert result.household_size == pytest.approx(units.query("vacancy == 0")["people"].mean())
    assert result.subsidised == units["subsidised"].sum()
    over = ((units.bedrooms == 1) & (units.people > 2)) | (
        (units.bedrooms == 2) & (units.people > 4)
    )
    assert result.violations == over.sum() > 0


def test_persons_alone():
    result = population_summary(records([(1, 0, 30, 1, 0)]))
    assert (result.all_blocks, result.subsidised, result.violations) == (1, 0, 0)
    assert np.isnan([result.quarters, result.vacant, result.household_size]).all()


def test_frame(county):
    frame = population_summary(county).to_frame()
    assert frame["population"].tolist()[::6] == ["1-9", "1000+"]
    for name in ("blocks", "people"):
        assert frame[[name, f"published_{name}"]].sum().to_numpy() == pytest.approx(100.0)
    assert frame["published_unique"].tolist() == [81.7, 50.3, 26.9, 12.2, 3.4, 0.8, 0.2]

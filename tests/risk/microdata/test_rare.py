"""Classes, sample uniques and special uniques against a look at every set of keys."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles.microdata import minimal_uniques

from bayesrisk import Records, Schema
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.risk import first_look, microdata

ROWS = st.lists(
    st.tuples(*[st.integers(0, 2), st.sampled_from("xyz"), st.booleans(), st.integers(0, 4)]),
    min_size=1,
    max_size=14,
)
NAMES = ["a", "b", "c", "d"]


@given(ROWS, st.integers(1, 5))
def test_uniques_are_those_of_the_slow_twin(rows, size):
    frame = pd.DataFrame(rows, columns=NAMES)
    look = first_look(frame, keys=NAMES, max_size=size)
    own = minimal_uniques(rows, min(size, 4))
    wanted = [[sum(len(s) == i + 1 for s in sets) for i in range(min(size, 4))] for sets in own]
    assert look.minimal_uniques.tolist() == wanted
    assert look.class_size.tolist() == [rows.count(row) for row in rows]
    assert look.k == min(map(rows.count, rows))
    assert look.special.tolist() == [any(len(s) < 4 for s in sets) for sets in own]
    fewest = [min(map(len, sets), default=0) for sets in own]
    assert look.to_frame()["fewest_keys"].tolist() == fewest
    if size >= 4:
        assert look.unique.tolist() == [bool(sets) for sets in own]


@settings(max_examples=20)
@given(ROWS)
def test_uniques_by_chance_are_those_of_every_way_in_which_columns_may_meet(rows):
    """Of 3 rows: over all 27 x 27 draws of each column by itself, with replacement."""
    frame = pd.DataFrame(rows[:3], columns=NAMES)[["a", "b"]]
    draws = list(itertools.product(range(len(frame)), repeat=len(frame)))
    alone = []
    for first, second in itertools.product(draws, draws):
        pairs = list(zip(frame["a"].iloc[list(first)], frame["b"].iloc[list(second)], strict=True))
        alone.append(sum(pairs.count(pair) == 1 for pair in pairs))
    found = first_look(frame, keys=["a", "b"]).by_chance
    assert found == pytest.approx(np.mean(alone), abs=1e-12)


@given(ROWS)
def test_values_in_a_class(rows):
    frame = pd.DataFrame(rows, columns=NAMES)
    look = first_look(frame, keys=["a", "c"], sensitive="d")
    wanted = [len({r[3] for r in rows if (r[0], r[2]) == (row[0], row[2])}) for row in rows]
    assert look.distinct.tolist() == wanted
    assert look.l == min(wanted)
    summary = look.summary()
    assert summary["records"].sum() == len(rows)
    assert summary["classes"].sum() == len({(r[0], r[2]) for r in rows})
    assert summary["share"].sum() == pytest.approx(1.0)


def test_sorting_and_counting_agree(monkeypatch):
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, n, 500) for n in (3, 50, 7)]
    dense = microdata.classes(codes)
    monkeypatch.setattr(microdata, "DENSE", 1)
    monkeypatch.setattr(microdata, "_LARGEST", 100)
    for codes_now in (codes, codes[::-1]):
        flat, counts = microdata.classes(codes_now)
        assert (counts[flat] == dense[1][dense[0]]).all()


def test_records_levels_and_missing_values():
    people = pd.DataFrame(
        {"block": ["500010101001000", "500010101001001"], "sex": 0, "age": 3, "race": 1, "hisp": 0}
    )
    records = Records.from_frame(people, schema=Schema.named("sf1-person"))
    assert first_look(records, keys=["tract", "sex"]).k == 2
    assert first_look(records, keys=["block", "sex"]).k == 1
    with pytest.raises(
        DataError, match=r"records: must have a column 'x' \(named by keys\), got .*tract"
    ):
        first_look(records, keys=["x"])
    holes = pd.DataFrame({"a": ["x", None, None], "b": [1.5, np.nan, np.nan]})
    assert first_look(holes, keys=["a", "b"]).class_size.tolist() == [1, 2, 2]
    empty = first_look(holes.iloc[:0], keys=["a"], sensitive="b")
    assert (empty.k, empty.l, len(empty.to_frame())) == (0, 0, 0)
    assert "0 records" in repr(empty)


def test_it_says_what_it_found():
    frame = pd.DataFrame({"a": [1, 1, 2, 3], "b": [1, 1, 1, 2], "c": [1, 2, 1, 1]})
    text = repr(first_look(frame, keys=["a", "b"], sensitive="c")).replace("\n ", "")
    assert "2 of 4 records (50.0 %) are alone with their a, b" in text
    assert "2 of them are alone by fewer of these columns already (special" in text
    assert "2 records (50.0 %) are in a group that has a single" in text


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"keys": ["a", "a"]}, ArgumentError, "keys must give each once, got 'a' more than once"),
        ({"sensitive": "a"}, ArgumentError, "sensitive must be none of the keys, got 'a'"),
        ({"sensitive": "z"}, DataError, "'z' .named by "),
        ({"max_size": 0}, ArgumentError, "max_size must be >= 1, got 0"),
    ],
)
def test_refusals(change, error, message):
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 1]})
    with pytest.raises(error, match=message):
        first_look(frame, **({"keys": ["a"]} | change))

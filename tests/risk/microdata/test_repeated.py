"""Replicated uniques and disclosive-but-correct records against counting pair by pair."""

from dataclasses import asdict

import pandas as pd
import pytest
from hypothesis import given, strategies as st
from oracles.microdata import repeated

from bayesrisk import Swapping, datasets
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.risk import repeated_microdata

ROWS = st.lists(
    st.tuples(st.tuples(st.integers(0, 3), st.sampled_from("xy")), st.integers(0, 2)),
    min_size=1,
    max_size=12,
)


def frame(rows):
    return pd.DataFrame([(a, b, t) for (a, b), t in rows], columns=["a", "b", "t"])


@given(ROWS, ROWS)
def test_measures_are_those_of_the_slow_twin(original, protected):
    found = repeated_microdata(frame(original), frame(protected), keys=["a", "b"], target="t")
    for name, percent in repeated(original, protected).items():
        assert getattr(found, name) == pytest.approx(percent, abs=1e-12), name
    assert found.n_original == len(original)
    only = repeated_microdata(frame(original), frame(protected), keys=["a", "b"])
    assert only.replicated_uniques == found.replicated_uniques
    assert only.disclosive_correct is None
    assert len(only.to_frame()) == 4
    assert len(found.to_frame()) == 9


@given(ROWS)
def test_the_data_themselves_repeat_everything(rows):
    same = repeated_microdata(frame(rows), frame(rows), keys=["a", "b"], target="t")
    assert same.replicated_uniques == same.unique_original == same.unique_protected
    assert same.disclosive_correct == same.disclosive_original == same.disclosive_protected
    assert same.found == 100


def test_swapped_records():
    people = datasets.load_microdata("synthetic-county").persons
    settings = {"swap_key": ["age"], "unique_by": ["race", "hisp"], "unit": "person"}
    by = {"keys": ["block", "sex", "age"], "target": "race"}
    before = None
    for rate in (0, "1/2"):
        mechanism = Swapping(rate=rate, within="county", unique_within="tract", **settings)
        swapped = mechanism.swap(people, rng=1).microdata.persons
        found = asdict(repeated_microdata(people, swapped, **by))
        assert (
            found["disclosive_both"] <= found["disclosive_correct"] <= found["disclosive_protected"]
        )
        assert (
            found["replicated_uniques"]
            <= found["unique_original_found"]
            <= found["unique_original"]
        )
        if before is not None:
            assert found["disclosive_correct"] < before["disclosive_correct"]
        before = found
    assert "% of" in repr(repeated_microdata(people, swapped, **by))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"protected": frame([]).iloc[:0]}, ArgumentError, "protected must have at least one"),
        ({"keys": ["z"]}, DataError, "original: must have the column 'z' .named by keys. once"),
        ({"target": "a"}, ArgumentError, "target must be none of the keys, got 'a'"),
    ],
)
def test_refusals(change, error, message):
    one = frame([((1, "x"), 0)])
    given_ = {"original": one, "protected": one, "keys": ["a", "b"], "target": "t"} | change
    with pytest.raises(error, match=message):
        repeated_microdata(given_.pop("original"), given_.pop("protected"), **given_)

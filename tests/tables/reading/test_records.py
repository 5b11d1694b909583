"""Published tables that are given as records are refused, and records are not."""

import itertools

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import bayesrisk as br
from bayesrisk.exceptions import DataError
from bayesrisk.tables.reading.records import check_records


def _table(total: str, column: str, *, hidden: bool = False) -> pd.DataFrame:
    """Return rows of all sexes and ages with totals of both."""
    ages = {"0-64": (14, 12), "65+": (6, 5)}
    rows = [(s, a, ages[a][i]) for i, s in enumerate("FM") for a in ages]
    frame = pd.DataFrame(rows, columns=["sex", "age", column])
    for name in ("sex", "age"):
        others = [n for n in ("sex", "age") if n != name]
        sums = frame.groupby(others, as_index=False)[column].sum()
        frame = pd.concat([frame, sums.assign(**{name: total})], ignore_index=True)
    if hidden:
        frame[column] = frame[column].astype(str).mask(frame[column] == 5, ".")
    return frame


@pytest.mark.parametrize("total", ["_T", "Total", "Insgesamt", "all"])
@pytest.mark.parametrize("hidden", [False, True])
def test_counts_beside_a_total_are_refused_with_the_command_for_them(total, hidden, tmp_path):
    frame = _table(total, "n", hidden=hidden)
    with pytest.raises(DataError, match="published table: counts in column 'n'") as caught:
        br.audit(frame, key="age", secret="sex", protections="none")
    assert "`bayesrisk attack FILE -o OUT`" in str(caught.value)
    file = tmp_path / "t.csv"
    frame.to_csv(file, index=False)
    with pytest.raises(DataError, match=r"bayesrisk attack .*t\.csv -o OUT"):
        br.release(file, protection="none")


def test_a_heading_of_sdmx_is_refused_whatever_its_labels():
    with pytest.raises(DataError, match="OBS_VALUE"):
        check_records(_table("whole", "OBS_VALUE").iloc[:4], "t.csv")


@settings(max_examples=100)
@given(st.data())
def test_people_are_not_taken_for_counts(data):
    size = data.draw(st.integers(20, 60))
    words = st.sampled_from(["some", "none", "all", "Total"])
    frame = pd.DataFrame(
        {
            "sex": data.draw(st.lists(st.sampled_from("FM"), min_size=size, max_size=size)),
            "friends": data.draw(st.lists(words, min_size=size, max_size=size)),
            "age": data.draw(st.lists(st.integers(0, 99), min_size=size, max_size=size)),
        }
    )
    check_records(frame, "people.csv")  # two sexes and four words cannot tell twenty people apart


def test_people_told_apart_by_their_names_are_not_taken_for_counts():
    pairs = itertools.product(["some", "none", "all"], range(10))
    frame = pd.DataFrame([(f"person {i}-{w}", w, 30 + i) for w, i in pairs])
    check_records(frame.set_axis(["name", "friends", "age"], axis=1), "people.csv")


def test_columns_of_every_kind_are_looked_at():
    frame = pd.DataFrame(
        {
            "band": pd.cut([1, 2, 3, 4] * 10, [0, 2, 5]),
            "kind": pd.Categorical(["x", "all", None, "z"] * 10),
            "day": pd.date_range("2020", periods=40),
            "flag": [True, False] * 20,
            "wage": [1.5, None] * 20,
        }
    )
    check_records(frame, "people")

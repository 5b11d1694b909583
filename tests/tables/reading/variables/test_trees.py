"""Trees among labels that may overlap: their sums are used, and no others."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables, TableReading
from bayesrisk.tables.reading.variables.trees import published_labels

TOWNS = 40


def doses(*, cured="cured", off=0):
    """Return first, second and single doses with all of them, and a column of others."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.integers(5, 90, (TOWNS, 3)), columns=["first", "second", "single"])
    frame["whole"] = frame.sum(axis=1)
    frame[cured] = rng.integers(5, 90, TOWNS)
    frame.loc[3::7, "whole"] += off
    frame.insert(0, "town", [f"Town {i}" for i in range(TOWNS)])
    return frame


def hidden_bounds(reading):
    """Return the bounds of the counts that are withheld."""
    bounds = count_bounds(PublishedTables(*reading.accepted().parts))
    assert not bounds.conflict
    counts = bounds.counts.rename(columns={"geoid": "place"})
    cells = reading.cells.merge(counts, on=["place", "table", "cell"])
    return cells[cells["stated"] == "*"]


def test_a_count_follows_from_a_sum_beside_a_column_that_is_in_none():
    frame = doses()
    truth, shown = frame.loc[[1, 5], "single"].tolist(), frame.astype(str)
    shown.loc[[1, 5], "single"] = "*"
    reading = TableReading.from_frame(shown, counts="exact")
    assert reading.separate == ("town", "category 1")
    assert {place[1] for place in reading.places.values()} == {"whole", "cured"}
    found = hidden_bounds(reading)
    assert found["low"].tolist() == found["high"].tolist() == truth
    assert set(found["parts of category 1"]) == {"single"}


def test_a_sum_that_is_denied_is_not_said_and_not_used():
    frame = doses(off=1).astype(str)
    frame.loc[1, "single"] = "*"
    reading = TableReading.from_frame(frame, counts="exact")
    assert not any("'whole' =" in line for line in reading.lines)
    assert "parts of category 1" not in reading.cells
    assert hidden_bounds(reading)["low"].tolist() == [0]


def test_two_sums_share_their_parts():
    frame = doses()
    frame["fully"] = frame["second"] + frame["single"]
    shown = frame.astype(str)
    shown.loc[2, "second"] = shown.loc[2, "first"] = "*"
    reading = TableReading.from_frame(shown, counts="exact")
    found = hidden_bounds(reading)
    truth = frame.loc[2, ["first", "second"]].tolist()
    assert found["low"].tolist() == found["high"].tolist() == truth


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [3, 5, 0, 4, 1, 2], [4, 2, 5, 1, 3, 0]])
def test_parts_stand_anywhere(order):
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.integers(0, 60, (30, 4)), columns=["south", "n1", "n2", "n3"])
    frame["north"] = frame[["n1", "n2", "n3"]].sum(axis=1)
    frame["isles"] = rng.integers(0, 60, 30)
    truth = int(frame.loc[7, "n2"])
    shown = frame.iloc[:, order].astype(str).assign(town=[f"Town {i}" for i in range(30)])
    shown.loc[7, "n2"] = "*"
    found = hidden_bounds(TableReading.from_frame(shown, counts="exact"))
    assert found[["low", "high"]].to_numpy().tolist() == [[truth, truth]]


def test_two_trees_have_none_of_the_parts_of_each_other():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.integers(3, 60, (30, 5)), columns=["n1", "n2", "s1", "s2", "isles"])
    frame.insert(0, "north", frame["n1"] + frame["n2"])
    frame.insert(3, "south", frame["s1"] + frame["s2"])
    truth = frame.loc[4, ["n1", "s2"]].tolist()
    shown = frame.astype(str).assign(town=[f"Town {i}" for i in range(30)])
    shown.loc[4, ["n1", "s2"]] = "*"
    found = hidden_bounds(TableReading.from_frame(shown, counts="exact"))
    assert found["low"].tolist() == found["high"].tolist() == truth
    assert set(found["category 1"]) == {"north", "south"}


def test_labels_that_are_taken_for_no_sum_are_by_themselves():
    frame = doses().astype(str)
    frame.loc[1, "single"] = "*"
    reading = TableReading.from_frame(
        frame, counts="exact", labels={"category 1": {"whole": "whole"}}
    )
    assert hidden_bounds(reading)["low"].tolist() == [0]


def test_rows_are_called_by_the_labels_of_the_file():
    rows = [
        ("north", "n1"), ("north", "all"), ("north", "s1"), ("north", "in no sum"),
        ("isles", "in no sum"), ("isles", "n1"), ("all", "s1"), ("all", "in no sum"),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["place", "parts of place"]).assign(number=range(8))
    trees = {"place": {"n1": "north", "n2": "north", "s1": "south"}}
    named = published_labels(frame, trees)
    assert list(named) == ["place", "number"]
    assert dict(zip(named["number"], named["place"], strict=True)) == {
        0: "n1", 1: "north", 4: "isles", 6: "s1", 7: "all",
    }  # fmt: skip
    assert published_labels(frame, {}).equals(frame)

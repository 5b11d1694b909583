"""Statistics of blocks as a file with a row for each block: there and back, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from bayesrisk.census import detect_occupancy, occupancy_statistics
from bayesrisk.census.occupancy.statistics import OccupancyStatistics
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.tables import Records, Schema, Workload, tabulate

WIDTHS = {
    "households": 1, "population": 1, "sizes": 7, "race": 14, "children": 1, "hud_households": 1,
    "hud_people": 1, "hud_race": 6, "hud_children": 2, "hud_bedrooms": 3,
}  # fmt: skip


def random_statistics(rng, n):
    fields = {}
    for name, width in WIDTHS.items():
        values = rng.integers(0, 9, (n, width))
        if name == "hud_children":
            values.sort(axis=1)
        fields[name] = values if width > 1 else values[:, 0]
    return OccupancyStatistics(np.array([f"{i:015d}" for i in range(n)]), **fields)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5))
def test_there_and_back(seed, n):
    blocks = random_statistics(np.random.default_rng(seed), n)
    frame = blocks.to_frame()
    assert len(frame.columns) == 1 + sum(WIDTHS.values())
    again = OccupancyStatistics.from_frame(frame.sample(frac=1, random_state=seed % 2**31))
    order = np.argsort(again.geoids)
    again = again.take(order)
    assert again.geoids.tolist() == blocks.geoids.tolist()
    for name in WIDTHS:
        assert np.array_equal(getattr(again, name), getattr(blocks, name)), name
    assert detect_occupancy(again).status == detect_occupancy(blocks).status


def test_numbers_of_other_types_are_read_as_they_are():
    frame = random_statistics(np.random.default_rng(1), 3).to_frame()
    other = frame.astype({"households": float, "sizes_2": "Int64", "population": "str"})
    expected = OccupancyStatistics.from_frame(frame)
    found = OccupancyStatistics.from_frame(other)
    for name in WIDTHS:
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"sizes_3": [1, -2, 0]},
            "homes: row 2, column 'sizes_3': must be a whole number",
        ),
        ({"population": [1.5, 2, 3]}, "row 1, column 'population': must be a whole number"),
        ({"race_14": [0, 0, np.nan]}, "row 3, column 'race_14'"),
        ({"children": [0, 0, 2**31]}, "row 3, column 'children'"),
        ({"hud_people": ["0", "many", "1"]}, "row 2, column 'hud_people': .* got 'many'"),
        ({"block": ["1", "2", "1"]}, "row 3, column 'block': must be a different block, got '1'"),
        ({"block": [None, "2", "1"]}, "row 1, column 'block'"),
        ({"hud_children_1": [9, 9, 9]}, "column hud_children_1: must be at most hud_children_2"),
    ],
)
def test_damaged_files_are_refused_by_row_and_column(change, message):
    frame = random_statistics(np.random.default_rng(2), 3).to_frame()
    frame["hud_children_2"] = 8
    with pytest.raises(DataError, match=message):
        OccupancyStatistics.from_frame(frame.assign(**change), source="homes")


@pytest.mark.parametrize("column", ["block", "households", "sizes_7", "hud_children_2"])
def test_columns_must_be_there(column):
    frame = random_statistics(np.random.default_rng(3), 2).to_frame()
    with pytest.raises(DataError, match=f"'{column}'"):
        OccupancyStatistics.from_frame(frame.drop(columns=column))


def test_intervals_of_counts_have_columns_where_there_are_any():
    blocks = random_statistics(np.random.default_rng(3), 3)
    assert np.array_equal(blocks.hud_race_most, blocks.hud_race)
    wide = replace(blocks, hud_race_most=blocks.hud_race + 2)
    frame = wide.to_frame()
    assert [c for c in frame if "most" in c] == [f"hud_race_most_{i}" for i in range(1, 7)]
    again = OccupancyStatistics.from_frame(frame)
    assert np.array_equal(again.hud_race_most, wide.hud_race_most)
    assert np.array_equal(again.hud_bedrooms_most, blocks.hud_bedrooms)
    assert np.array_equal(wide.take(np.array([2])).hud_race_most, wide.hud_race_most[2:])
    frame.loc[1, "hud_race_most_2"] = frame.loc[1, "hud_race_2"] - 1
    frame.loc[1, "hud_race_2"] += 1
    with pytest.raises(DataError, match="row 2, columns hud_race_most: must be >= those of"):
        OccupancyStatistics.from_frame(frame)
    with pytest.raises(ArgumentError, match="columns hud_bedrooms_most: must be >="):
        replace(blocks, hud_bedrooms_most=blocks.hud_bedrooms - 1 + (blocks.hud_bedrooms == 0))


@pytest.mark.parametrize("hud", ["counts", "percentages"])
def test_counts_beyond_the_bound_are_refused_by_place_and_table(hud):
    homes = pd.DataFrame(
        {"block": ["500010101001000"], "size": 1, "race_ethnicity": 0, "children": 0,
         "bedrooms": 1, "subsidised": 1}
    )  # fmt: skip
    records = Records.from_frame(homes, schema=Schema.named("household-occupancy"))
    tables = tabulate(records, Workload.named("household-occupancy"))
    counts = {
        key: table * (10**18 if key[1] == "HUD-households" else 1)
        for key, table in tables.counts.items()
    }
    message = (
        "block 500010101001000, table HUD-households, cell .*: must be below 2\\*\\*31, got 10"
    )
    with pytest.raises(DataError, match=message):
        occupancy_statistics(replace(tables, counts=counts), hud=hud)

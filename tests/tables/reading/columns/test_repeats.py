"""Totals that repeat in rows: the sums of the groups that they stand beside, each count once."""

import itertools

import numpy as np
import pandas as pd
import pytest

from bayesrisk import PublishedTables, TableReading
from bayesrisk.reconstruction import count_bounds

TOWNS = ("Ash", "Birch", "Cedar", "Dale", "Elm")
KINDS = ("White", "Black", "Asian")


def patients(column="Town total", years=("2020",), hidden=(), residents=0):
    """Return a row for each town, year and kind, each with the total of the town and year."""
    rng, rows = np.random.default_rng(5), list[dict[str, object]]()
    for year, town in itertools.product(years, TOWNS):
        counts = rng.integers(3, 90, len(KINDS))
        total = int(counts.sum()) + residents
        rows += [{"Year": year, "Town": town, "Kind": kind, "Patients": n, column: total}
                 for kind, n in zip(KINDS, counts, strict=True)]  # fmt: skip
    frame = pd.DataFrame(rows).astype(str)
    truth = frame["Patients"].astype(int)
    for row in hidden:
        frame.loc[row, "Patients"] = "*"
    return (frame if len(years) > 1 else frame.drop(columns="Year")), truth


@pytest.mark.parametrize("years", [("2020",), ("2019", "2020", "2021")])
def test_a_total_that_repeats_in_rows_counts_all_of_its_group(years):
    frame, truth = patients(years=years, hidden=[1])
    reading = TableReading.from_frame(frame)
    assert any("Town total: the total over kind" in line for line in reading.lines)
    assert [*reading.questions] == ["counts", "marks.*"]
    assert len(reading.stated_cells) == len(frame) + len(TOWNS) * len(years)
    tables = PublishedTables(*reading.accepted().parts)
    bounds = count_bounds(tables).counts
    stated = reading.cells.merge(bounds.rename(columns={"geoid": "place"}),
                                 on=["place", "table", "cell"])  # fmt: skip
    hidden = stated[stated["stated"] == "*"]
    assert (hidden["low"] == truth[1]).all()
    assert (hidden["high"] == truth[1]).all()


def test_a_number_of_the_town_that_its_patients_do_not_make_up_is_no_total():
    frame, _ = patients("Residents", residents=500)
    reading = TableReading.from_frame(frame)
    assert len(reading.stated_cells) == len(frame)
    assert not any("the total over" in line for line in reading.lines)


def test_one_town_that_denies_it_makes_a_column_no_total():
    frame, _ = patients()
    frame.loc[frame["Town"] == "Elm", "Town total"] = "7"  # fewer than its patients
    reading = TableReading.from_frame(frame)
    assert len(reading.stated_cells) == len(frame)


def test_who_says_that_such_a_column_is_ignored_is_heard():
    frame, _ = patients()
    reading = TableReading.from_frame(frame, columns={"Town total": "ignored"})
    assert len(reading.stated_cells) == len(frame)


@pytest.mark.parametrize("residents", [0, 40])
def test_a_column_without_a_word_for_it_is_a_total_where_sums_show_it(residents):
    frame, _ = patients("box36", years=("2019", "2020", "2021"), residents=residents)
    reading = TableReading.from_frame(frame)
    totals = 0 if residents else 3 * len(TOWNS)
    assert len(reading.stated_cells) == len(frame) + totals

"""Random tables in random layouts: with all guesses confirmed nothing false is proved of any."""

import csv

import pandas as pd
import pytest
from random_layouts import random_layout

from bayesrisk import PublishedTables
from bayesrisk.exceptions import DataError
from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables.reading.reading import read
from bayesrisk.tables.reading.sheet import file_sheet

RESULTS = ("place", "table", "cell", "stated", "file", "row")


def counts_of(layout):
    """Return the texts of the last column."""
    lines = layout.text.replace(";", ",").replace("\t", ",").splitlines()
    return "".join(row[-1] for row in csv.reader(lines) if len(row) > 1)


def reading_of(layout, file):
    """Return the reading of a layout; None if it is refused, as where all counts are withheld."""
    file.write_text(layout.text, encoding="utf-8")
    sheets = [file_sheet(file)]
    try:
        reading = read(sheets, {})
        if reading.rules["counts"] != layout.law:  # numbers alone cannot tell every law
            reading = read(sheets, {"counts": layout.law})
    except DataError:
        assert not any(map(str.isdigit, counts_of(layout)))  # no text says which are the counts
        return None
    return reading


def false_bounds(layout, reading):
    """Return the bounds that do not hold, with the true count of the records they are about."""
    tables = PublishedTables(*reading.accepted().parts)
    bounds = count_bounds(tables, time_limit=5)
    assert not bounds.conflict
    names = [name for name in reading.cells.columns if name not in RESULTS]
    keys = ["place", "table", "cell"]
    rows = reading.cells.merge(bounds.counts.rename(columns={"geoid": "place"}), on=keys)
    assert len(rows) == len(reading.cells)
    wrong = []
    for row in rows.to_dict("records"):
        said = {row[name] for name in names} - {*layout.totals.values()}
        true = layout.count(said)
        high = row["high"]
        if true is None or true < row["low"] or (not pd.isna(high) and true > high):
            wrong.append((said, true, row["low"], high))
    return wrong


def check(layout, file):
    """Check all bounds of a layout."""
    reading = reading_of(layout, file)
    assert reading is None or false_bounds(layout, reading) == []


@pytest.mark.parametrize("seed", range(40))
def test_no_bound_of_a_random_layout_is_false(seed, tmp_path):
    check(random_layout(seed), tmp_path / "table.csv")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 2000, 70))
def test_no_bound_of_many_random_layouts_is_false(first, tmp_path):
    for seed in range(first, min(first + 70, 2000)):
        check(random_layout(seed), tmp_path / "table.csv")

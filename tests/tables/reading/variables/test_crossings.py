"""One label that is made up in two ways: both sums are used, and neither of a label that is not."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables, TableReading


def cases_by_region(off=0, *, most=7000):
    """Return cases of regions by where people are, in a chain of sums, and by the test."""
    rng, regions = np.random.default_rng(3), 25
    frame = pd.DataFrame({"place": [f"Region {i}" for i in range(regions)]})
    for name, end in [("ward", 600), ("intensive", 40), ("at home", 9000), ("seen", most)]:
        frame[name] = rng.integers(5, end, regions)
    frame["hospital"] = frame["ward"] + frame["intensive"]
    frame["ill"] = frame["hospital"] + frame["at home"]
    frame["well"], frame["dead"] = rng.integers(10_000, 90_000, (2, regions))
    frame["cases"] = frame[["ill", "well", "dead"]].sum(axis=1)
    frame["swab"] = frame["cases"] // 3 + rng.integers(0, 99, regions)
    frame["quick"] = frame["cases"] - frame["swab"]
    frame.loc[4, "quick"] += off
    return frame


def bounds_of_hidden(frame, **settings):
    """Return the bounds of counts that are withheld, in the order in which they stand."""
    reading = TableReading.from_frame(frame, counts="exact", **settings)
    bounds = count_bounds(PublishedTables(*reading.accepted().parts))
    assert not bounds.conflict
    counts = bounds.counts.rename(columns={"geoid": "place"})
    cells = reading.cells.merge(counts, on=["place", "table", "cell"])
    return cells.loc[cells["stated"].isin(["*", "."]), ["low", "high"]].to_numpy().tolist()


@pytest.mark.parametrize("most", [7000, 900_000])
@pytest.mark.parametrize(("name", "off"), [("swab", 0), ("dead", 0), ("ward", 0), ("dead", 1)])
def test_a_column_is_the_sum_of_a_chain_and_of_two_others(name, off, most):
    """If one of its sums is off in one region, the other one is used still.

    Those who were seen may be more than all cases, so that no column counts all.
    """
    frame = cases_by_region(off, most=most)
    shown = frame.astype(str)
    shown.loc[7, name] = "*"
    truth = int(frame.loc[7, name])
    assert bounds_of_hidden(shown) == [[truth, truth]]


def test_a_second_sum_that_is_denied_is_not_used():
    shown = cases_by_region(off=1).astype(str)
    shown.loc[7, "swab"] = "*"
    [[low, high]] = bounds_of_hidden(shown)
    assert low == 0
    assert pd.isna(high)


def towns(hidden=(), *, off=0):
    """Return one column: a country, its towns, a place abroad, and its police districts."""
    rng = np.random.default_rng(5)
    counts = rng.integers(100, 9000, 120)
    districts = [int(part.sum()) for part in np.array_split(counts, 6)]
    rows = [("Westland", int(counts.sum()))]
    rows += [(f"Town {i}", int(n)) for i, n in enumerate(counts)]
    rows += [("Abroad", -1), *((f"District {k}", n) for k, n in enumerate(districts))]
    rows[-1] = rows[-1][0], rows[-1][1] + off
    texts = [(x, "*" if x in hidden or n < 0 else str(n)) for x, n in rows]
    return pd.DataFrame(texts, columns=["place", "persons"]), dict(rows)


def test_a_country_is_the_sum_of_its_towns_and_of_its_districts():
    """The place abroad is in neither, so that nothing is known of it."""
    frame, _ = towns()
    reading = TableReading.from_frame(frame, counts="exact")
    assert set(reading.cells["place label 2"]) == {"all", *(f"District {k}" for k in range(6))}
    assert reading.cells["parts of place label"].str.startswith("Town").sum() == 120
    [[low, high]] = bounds_of_hidden(frame)
    assert low == 0
    assert pd.isna(high)


@pytest.mark.parametrize("off", [1, -1])
def test_districts_that_are_not_the_country_are_no_second_way(off):
    reading = TableReading.from_frame(towns(off=off)[0], counts="exact")
    assert {*reading.cells.columns}.isdisjoint({"place label 2", "parts of place label"})

"""Ages that are published in groups and by single years, without a total."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables, TableReading
from bayesrisk.tables.reading.variables.ages import consecutive, nested_ages


def by_age(off=(), *, twin=False, fewer=0):
    """Return women and men by groups of five years and by single years, up to a last group.

    Groups exceed their years by ``off`` in turn, and the last one by ``fewer``, whom no year has.
    """
    rng = np.random.default_rng(11)
    rows, misses = list[tuple[str, list[int]]](), iter([*off, *[0] * 8])
    for low in range(0, 20, 5):
        years = rng.integers(2000, 4000, (5, 2))
        more = np.array([next(misses), next(misses)]) + fewer * (low == 15)
        rows.append((f"{low} to {low + 4} years", years.sum(axis=0) + more))
        rows += [(f"{low + k} years", year) for k, year in enumerate(years)]
    rows += [(f"{low} to {low + 9} years", rng.integers(2000, 4000, 2)) for low in (20, 30, 40)]
    rows.append(("50 years and over", rng.integers(50, 90, 2)))
    table = [[label, *map(str, counts)] for label, counts in rows]
    if twin:
        table.insert(1, ["Under 1 year", *table[1][1:]])
        table[2][1:] = ["...", "..."]
    return pd.DataFrame(table, columns=["age", "women", "men"])


def hidden(frame, **settings):
    """Return how far the bounds of the women of 7 years are apart, who are withheld."""
    shown = frame.copy()
    truth = int(shown.loc[shown["age"] == "7 years", "women"].iloc[0])
    shown.loc[shown["age"] == "7 years", "women"] = "*"
    reading = TableReading.from_frame(shown, **settings)
    bounds = count_bounds(PublishedTables(*reading.changed({}).parts))
    assert not bounds.conflict
    counts = bounds.counts.rename(columns={"geoid": "place"})
    cells = reading.cells.merge(counts, on=["place", "table", "cell"])
    [[low, high]] = cells.loc[cells["stated"] == "*", ["low", "high"]].to_numpy().tolist()
    assert low <= truth <= high
    return high - low


@pytest.mark.parametrize(
    ("off", "law", "width"),
    [((), "exact", 0), ((0, 1), "perturbed-2", 20), ((1, -1, 1), "perturbed-2", 20)],
)
def test_groups_that_miss_their_years_by_one_are_of_changed_counts(off, law, width):
    frame = by_age(off)
    reading = TableReading.from_frame(frame)
    assert reading.questions["counts"][0] == law
    assert ("counts" in reading.open) == bool(off)
    assert reading.separate == ()
    assert hidden(frame) <= width


def test_a_group_that_counts_others_too_is_not_its_years():
    reading = TableReading.from_frame(by_age(fewer=700))
    assert reading.questions["counts"][0] == "exact"
    assert reading.separate == ("age",)


def test_a_label_without_counts_and_with_the_ages_of_another_is_left_out():
    """*0 years* may be what another census has instead of *under 1 year*."""
    reading = TableReading.from_frame(by_age(twin=True))
    assert "..." not in set(reading.stated_cells["stated"])
    assert any("0 years: no count" in line for line in reading.lines)
    assert reading.separate == ()
    stated = by_age(twin=True)
    stated.loc[2, ["women", "men"]] = stated.loc[1, ["women", "men"]]
    reading = TableReading.from_frame(stated)
    assert not any("left out" in line for line in reading.lines)


def test_a_group_of_all_ages_may_count_those_of_an_unknown_age():
    rng, rows = np.random.default_rng(3), list[list[str]]()
    for week in range(40):
        parts = rng.integers(200, 900, 4)
        labels = ["0 to 19 years", "20 to 39 years", "40 to 59 years", "60 years and over"]
        every = parts.sum() + int(week % 6 == 0)
        rows += [[f"Week {week}", x, str(n)] for x, n in zip(labels, parts, strict=True)]
        rows.append([f"Week {week}", "0 years and over", str(every)])
    frame = pd.DataFrame(rows, columns=["week", "age", "deaths"])
    assert TableReading.from_frame(frame).questions["counts"][0] == "exact"


def test_ranges_inside_others_are_those_that_comparing_all_pairs_finds():
    rng = np.random.default_rng(12)
    parts = 0
    for _ in range(300):
        lows = rng.integers(0, 12, rng.integers(0, 14)).tolist()
        ends = {f"r{k}": (low, low + int(rng.integers(0, 8))) for k, low in enumerate(lows)}
        expected = {}
        for label, end in ends.items():
            low, high = end
            inside = {k: e for k, e in ends.items() if e != end and low <= e[0] and e[1] <= high}
            chain = consecutive(inside)
            if inside:
                whole = sum(ends[k][1] - ends[k][0] + 1 for k in chain) == high - low + 1
                expected[label] = chain if whole else []
        assert nested_ages(ends) == expected
        parts += sum(map(len, expected.values()))
    assert parts > 50

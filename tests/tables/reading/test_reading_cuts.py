"""A total that is cut in two ways counts nobody twice; labels are parts where numbers show it."""

import itertools

import numpy as np
import pandas as pd
import pytest

from bayesrisk.reconstruction import count_bounds
from bayesrisk.tables import PublishedTables, TableReading
from bayesrisk.tables.reading.variables.searches import SumSearch
from bayesrisk.tables.reading.variables.sums import CodedLabels

FIRST = ["hostel", "flat", "hotel"]
SECOND = [("hostel", "single"), ("flat", "single"), ("hotel", "single"), ("hostel", "family"),
          ("flat", "family")]  # fmt: skip
OTHER = ["red", "blue", "green", "grey", "brown"]


def two_cuts(second, places=12):
    """Return a table whose column *Housed* is cut in two ways, and its records by second cut."""
    rng, rows, truth = np.random.default_rng(3), [], []
    for place in range(places):
        counts = dict(zip(SECOND, rng.integers(5, 90, 5).tolist(), strict=True))
        first = {k: sum(n for pair, n in counts.items() if pair[0] == k) for k in FIRST}
        housed, street = sum(first.values()), int(rng.integers(5, 90))
        parts = [*counts.values()]
        if second != SECOND:  # other labels, that make up the same total, and none of the first
            ends = np.sort(rng.choice(np.arange(1, housed), 4, replace=False))
            parts = np.diff([0, *ends, housed]).tolist()
        rows.append([f"Town {place}", housed + street, *first.values(), housed, street, *parts])
        truth.append(counts)
    names = [" ".join(one) if isinstance(one, tuple) else one for one in second]
    return pd.DataFrame(rows, columns=["town", "all", *FIRST, "housed", "street", *names]), truth


def test_two_cuts_of_one_total_are_one_tree_where_each_part_is_a_sum_of_others():
    frame, truth = two_cuts(SECOND)
    frame = frame.astype(str)
    frame.loc[4, "flat family"] = "*"
    reading = TableReading.from_frame(frame, counts="exact")
    line = next(x for x in reading.lines if "'housed'" in x)
    assert "'hostel' = hostel single + hostel family" in line
    assert "'hotel' = hotel single" in line
    assert "separate" not in line
    bounds = count_bounds(PublishedTables(*reading.accepted().parts))
    assert not bounds.conflict
    hidden = bounds.counts[bounds.counts["low_stated"] != bounds.counts["high_stated"].fillna(-1)]
    (low,), (high,) = hidden["low"], hidden["high"]
    assert low == high == truth[4]["flat", "family"]  # flat less flat single


@pytest.mark.parametrize("off", [0, 1])
def test_two_cuts_that_no_tree_has_are_two_variables(off):
    """If one of the cuts is no sum in some town, labels may overlap, and nothing follows."""
    frame, _ = two_cuts(OTHER)
    frame.loc[7, "red"] += off
    truth = frame.loc[4, "red"], frame.loc[5, "flat"]
    frame = frame.astype(str)
    frame.loc[4, "red"] = frame.loc[5, "flat"] = "*"
    reading = TableReading.from_frame(frame, counts="exact").accepted()
    bounds = count_bounds(PublishedTables(*reading.parts))
    assert not bounds.conflict
    counts = bounds.counts.rename(columns={"geoid": "place"})
    cells = reading.cells.merge(counts, on=["place", "table", "cell"])
    found = cells[cells["stated"] == "*"]
    exact = [*zip(found["low"].tolist(), found["high"].tolist(), strict=True)]
    assert ({*exact} == {(int(n), int(n)) for n in truth}) == (not off)


def possible(groups, ends, size, most):
    """Return whether counts of codes fit, by trying all of them."""
    for counts in itertools.product(range(most + 1), repeat=size):
        sums = {k: sum(counts[i] for i in group) for k, group in groups.items()}
        if all(low <= sums[k] <= high for k, (low, high) in ends.items()):
            return True
    return False


def test_what_no_counts_can_be_is_what_none_of_them_are():
    """Labels in a tree: a total, two subtotals and three of five labels, as ranges."""
    groups = {"x": (0, 1), "y": (2, 3), "a": (0,), "b": (1,), "c": (2,)}
    rng, rows, ends, expected = np.random.default_rng(5), [], [], []
    for group in range(60):
        one = {}
        for label, most in (("total", 6), ("x", 4), ("y", 3), ("a", 3), ("b", 3), ("c", 3)):
            low = int(rng.integers(0, most))
            one[label] = (low, low + int(rng.integers(0, 2)))
        expected.append(possible({**groups, "total": range(5)}, one, 5, 4))
        rows += [{"kind": label, "group": str(group)} for label in one]
        ends += one.values()
    sums = SumSearch("kind", CodedLabels(rows, ends), {})
    assert 5 < sum(expected) < 55
    # One code more, that no label counts alone, makes the total no less than its labels.
    assert sums.impossible(groups, {"total"}, 5)[0] == expected.count(False)
    assert sums.impossible({}, {"total"}, 5) == (0, {})


@pytest.mark.parametrize(("off", "separate"), [(0, False), (5, True)])
def test_labels_are_by_themselves_where_a_group_has_no_records_of_exclusive_ones(off, separate):
    """The subtotal is withheld where its parts and the other label are more than the total."""
    rows = []
    for area in range(8):
        a, b, c = 31 + 7 * area, 20 + 3 * area, 50 + area * area
        whole = a + b + c - off * (area > 5)
        rest = "*" if area > 5 else a + b
        labels = {"All": whole, "ill": rest, "flu": a, "cold": b, "well": c}
        rows += [(f"Area {area}", label, str(n)) for label, n in labels.items()]
    frame = pd.DataFrame(rows, columns=["area", "state", "n"])
    reading = TableReading.from_frame(frame, counts="exact")
    line = next(x for x in reading.lines if x.startswith("  state"))
    assert ("state" in reading.separate) == separate
    assert ("no records would fit in 2 groups" in line) == separate
    assert not count_bounds(PublishedTables(*reading.accepted().parts)).conflict


@pytest.mark.parametrize("shown", [False, True])
def test_a_label_is_a_part_of_a_sum_only_where_it_is_above_zero(shown):
    """In the years of all three *unknown* is 0, and it is no part of them by chance."""
    rows = []
    for year in range(1991, 2003):
        north, south = 40 + year % 7 * 9, 21 + year % 5 * 4
        other = 3 if shown and year == 1999 else 0
        both = north + south + other
        if year not in (1999, 2000, 2001):
            rows += [(year, "Unknown", 2), (year, "Arctic", both), (year, "East", 70 + year % 9)]
            continue
        labels = {"Arctic": both, "Unknown": other, "North": north, "South": south, "East": 61}
        rows += [(year, label, n) for label, n in labels.items()]
    order = ["Arctic", "Unknown", "North", "South", "East"]
    rows.sort(key=lambda row: (order.index(row[1]), row[0]))
    frame = pd.DataFrame(rows, columns=["year", "area", "n"]).astype(str)
    line = next(x for x in TableReading.from_frame(frame).lines if x.startswith("  area"))
    assert ("'Arctic' = Unknown + North + South" in line) == shown
    assert ("'Arctic' = North + South" in line) != shown


@pytest.mark.parametrize("counted", [False, True])
def test_a_total_may_leave_out_a_label_where_it_is_withheld(counted):
    """In two years of ten *west* is not there, and the total is that of the others, or is not."""
    rows = []
    for year in range(2001, 2011):
        north, west, none = 40 + year % 7 * 9, 21 + year % 5 * 4, year % 2
        hidden = year > 2008
        whole = north + none + west * (counted or not hidden)
        labels = {"All": whole, "North": north, "West": "*" if hidden else west, "Elsewhere": none}
        rows += [(year, label, n) for label, n in labels.items()]
    frame = pd.DataFrame(rows, columns=["year", "area", "n"]).astype(str)
    reading = TableReading.from_frame(frame, counts="exact").accepted()
    line = next(x for x in reading.lines if x.startswith("  area"))
    assert ("the total may leave out 'West'" in line) != counted
    assert ("area" in reading.separate) != counted
    bounds = count_bounds(PublishedTables(*reading.parts)).counts
    hidden = bounds[bounds["high_stated"].isna()]
    assert len(hidden) == 2
    assert sorted(hidden["low"]) == ([21, 37] if counted else [0, 0])
    assert hidden["high"].isna().all() != counted


@pytest.mark.parametrize("off", [0, 2])
def test_sums_that_are_off_are_said_with_their_number(off):
    rows = []
    for zone in range(60):
        boys, girls = 11 + zone % 13, 9 + zone % 11
        wrong = {3: 1, 40: -1}.get(zone, 0) * bool(off)
        pairs = (("All", boys + girls + wrong), ("Male", boys), ("Female", girls))
        rows += [(f"Z{zone}", label, str(n)) for label, n in pairs]
    reading = TableReading.from_frame(pd.DataFrame(rows, columns=["zone", "sex", "births"]))
    line = next(x for x in reading.lines if x.startswith("  sex"))
    guess, text = reading.questions["counts"]
    assert (guess == "exact") == (not off)
    assert ("sums are off in 2 of 60 groups, in both directions" in text) == bool(off)
    assert ("(the sums hold in 60 of 60 groups)" in line) == (not off)
    assert "sums hold" not in line or not off

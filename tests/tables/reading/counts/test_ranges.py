"""A range of a mark that the sums contradict is refused, and the range that is named fits."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

import bayesrisk as br
from bayesrisk.tables.reading.variables.ages import overlapping

REGIONS = ["Angus", "Borders", "Clyde", "Dundee", "Elgin", "Fife"]
CAUSES = ["Cancer", "Heart", "Stroke", "Injury", "Lung"]
HIDDEN = [(2, 0), (4, 1), (5, 1)]


def table(seed):
    """Return counts of regions by cause whose total is no word; a few from 1 to 11 are marks."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(20, 300, (6, 5))
    for place, number in zip(HIDDEN, [11, *rng.integers(5, 11, 2)], strict=True):
        counts[place] = number
    texts = np.where(counts < 12, "*", counts.astype(str))
    rows = [[name, *row] for name, row in zip(REGIONS, texts, strict=True)]
    rows.append(["Scotland", *map(str, counts.sum(axis=0))])
    return pd.DataFrame(rows, columns=["region", *CAUSES]), counts


def refusal(frame, **settings):
    with pytest.raises(br.exceptions.ArgumentError) as error:
        br.tables.TableReading.from_frame(frame, **settings)
    return error.value


def sum_of(frame, **settings):
    reading = br.tables.TableReading.from_frame(frame, **settings).accepted()
    return next((line for line in reading.lines if "counts all" in line), "")


@pytest.mark.parametrize("seed", range(8))
def test_a_range_that_a_sum_contradicts_is_refused_with_one_that_fits(seed):
    frame, counts = table(seed)
    assert "Scotland" in sum_of(frame, **{"marks.*": "1-11"})
    error = refusal(frame, **{"marks.*": "1-4"})
    assert error.argument == "marks.*"
    assert error.got == "'1-4'"
    assert re.search(r"in row (\d+)", error.rule)[1] == str(len(frame))  # that of the total
    assert re.search(r"row (\d+) counts (\d+)|count", error.rule)
    low, high = map(int, re.search(r"marks\.\*=(\d+)-(\d+)", error.advice).groups())
    pair = counts[4, 1] + counts[5, 1]
    assert low <= 11 <= high
    assert 2 * low <= pair <= 2 * high
    assert "Scotland" in sum_of(frame, **{"marks.*": f"{low}-{high}"})
    # Whoever says so takes the sums for none.
    rest = {"totals.region": "separate", "marks.*": "1-4"}
    assert br.tables.TableReading.from_frame(frame, **rest).separate[0] == "region"


@pytest.mark.parametrize("seed", range(8))
def test_true_ranges_and_tables_without_sums_are_read(seed):
    frame, _ = table(seed)
    marks = {"marks.*": "1-4"}
    assert len(br.tables.TableReading.from_frame(frame.iloc[:-1], **marks).cells) == 6 * 5
    frame.loc[len(frame) - 1, CAUSES] = ["977", "1021", "688", "1234", "951"]  # no sum of them
    assert len(br.tables.TableReading.from_frame(frame, **marks).cells) == 7 * 5


def test_a_total_among_others_names_its_row_and_the_rows_of_marks():
    """Rows of a long table: sums of ages in one of three groups are too large for the marks."""
    ages = ["0-17", "18-64", "65+", "Total"]
    rows = [(sex, age) for sex in ("F", "M", "Total") for age in ages]
    counts = [31, 22, "*", 60, 9, 53, "*", 73, 40, 75, 18, 133]
    frame = pd.DataFrame(rows, columns=["sex", "age"]).assign(count=list(map(str, counts)))
    error = refusal(frame, **{"marks.*": "1-4"})
    assert re.findall(r"row (\d+)", error.rule) == ["11"]  # 7 women and 11 men of 18
    assert "rows 3, 7" in error.rule
    assert "marks.*=1-11 " in error.advice
    read = br.tables.TableReading.from_frame(frame, **{"marks.*": "1-11"})
    assert read.separate == ()


@given(
    st.dictionaries(
        st.text("abcd", min_size=1, max_size=3),
        st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted).map(tuple),
    )
)
def test_ranges_that_overlap_are_those_of_all_pairs(ends):
    pairs = [(a, b) for a, b in itertools.permutations(ends, 2) if ends[a] != ends[b]]
    low, high = ({k: end[j] for k, end in ends.items()} for j in range(2))
    inside = [(a, b) for a, b in pairs if low[b] <= low[a] and high[a] <= high[b]]
    across = [(a, b) for a, b in pairs if low[b] < low[a] <= high[b] < high[a]]
    assert overlapping(ends) == (inside, across)

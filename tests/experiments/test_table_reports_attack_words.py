"""Sentences of an attack on made-up bounds: which counts follow, and what may be quoted."""

import pandas as pd
import pytest

from bayesrisk.experiments.table_reports import attack_quotes, hidden_sentences
from bayesrisk.reconstruction.records.bounds import CountBounds


class Bounds:
    """Bounds as the sentences read them: ends of each count, and totals."""

    def __init__(self, ends, at_least_one=0, cells=None):
        names = ["low_stated", "high_stated", "low", "high"]
        self.counts = pd.DataFrame(ends, columns=names).astype("Int64")
        cells = [*map(str, range(len(ends)))] if cells is None else cells
        self.counts = self.counts.assign(level="town", geoid="1", cell=cells)
        wide = [row for row in ends if row[0] != row[1]]
        self.facts = {
            "coarsened": len(wide), "recovered": sum(row[2] == row[3] for row in wide),
            "at_least_one": at_least_one,
        }  # fmt: skip


OPEN, ONE, THREE = (0, 9, 0, 9), (0, 9, 1, 1), (0, 9, 3, 3)
NARROW, EXACT = (0, 9, 2, 4), (5, 5, 5, 5)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([EXACT], ["No count is hidden: all are stated exactly."]),
        ([ONE], ["The one hidden count can be worked out; it is a single record."]),
        ([THREE, THREE], ["All 2 hidden counts can be worked out."]),
        (
            [ONE, ONE, THREE],
            ["All 3 hidden counts can be worked out; 2 of them are single records."],
        ),
        ([ONE, OPEN], ["1 of 2 hidden counts can be worked out; one is a single record."]),
        ([OPEN, OPEN], ["None of 2 hidden counts can be worked out."]),
        (
            [NARROW, OPEN, OPEN],
            ["None of 3 hidden counts can be worked out.",
             "One of them becomes narrower than it is stated."],
        ),
        (
            [NARROW, NARROW],
            ["None of 2 hidden counts can be worked out.",
             "All of them become narrower than they are stated."],
        ),
        (
            [THREE, NARROW, NARROW],
            ["1 of 3 hidden counts can be worked out.",
             "2 others become narrower than they are stated."],
        ),
    ],
)  # fmt: skip
def test_hidden_counts_in_words(ends, said):
    assert hidden_sentences(Bounds(ends), "hidden") == said


def test_one_count_of_two_files_is_one_record():
    said = hidden_sentences(Bounds([ONE, ONE], cells=["F, 0-17"] * 2), "hidden")
    assert said == ["All 2 hidden counts can be worked out; one is a single record."]


def test_the_bounds_of_these_tests_are_read_as_those_of_the_package():
    assert {"counts", "facts"} <= {*dir(CountBounds), *CountBounds.__dataclass_fields__}


@pytest.mark.parametrize(("hidden", "exact"), [(8, 8), (8, 3), (8, 0), (0, 0)])
@pytest.mark.parametrize("proved", [[], ["One record with sex F."]])
def test_three_quotations_and_three_faults(hidden, exact, proved):
    quotes = attack_quotes("First.", proved, {"coarsened": hidden, "recovered": exact})
    assert (len(quotes.may), len(quotes.may_not)) == (3, 3)
    assert quotes.may[0] == "First."
    assert any(proved[0] in text for text in quotes.may) if proved else True
    assert (f"{hidden - exact} hidden counts are safe." in quotes.may_not) == (exact < hidden)

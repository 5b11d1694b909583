"""Blanks and marks in place of counts: which are hidden counts, and which are none."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk import TableReading


def offences(blank, last="Threats"):
    """Return cases and victims by year and offence; ``blank`` victims are not counted."""
    rng = np.random.default_rng(3)
    rows = [
        [year, offence, cases, "" if blank(year, offence) else cases + more]
        for year in range(2015, 2023)
        for offence in ("Murder", "Assault", "Smuggling", "Fraud", last)
        for cases, more in [rng.integers(3, 300, 2).tolist()]
    ]
    return TableReading.from_frame(
        pd.DataFrame(rows, columns=["year", "offence", "cases", "victims"]).astype(str)
    )


def test_blanks_of_combinations_without_counts_are_no_hidden_counts():
    reading = offences(lambda year, offence: offence in ("Smuggling", "Fraud"))
    assert reading.rules["marks."] == "missing"
    assert len(reading.stated_cells) == 80 - 16
    late = offences(lambda year, offence: offence in ("Smuggling", "Fraud", "Threats")
                    or (year, offence) == (2015, "Murder"))  # fmt: skip
    assert late.rules["marks."] == "missing"


@pytest.mark.parametrize(
    "blank",
    [
        lambda year, offence: (year + len(offence)) % 3 == 0,  # here and there
        lambda year, offence: offence == "Fraud" and year % 2,  # half of them
        lambda year, offence: True,  # a column without counts
    ],
)
def test_other_blanks_may_be_hidden_counts(blank):
    reading = offences(blank)
    assert reading.rules.get("marks.") != "missing"


def test_blanks_that_a_total_counts_are_hidden():
    reading = offences(lambda year, offence: offence in ("Smuggling", "Fraud"), last="Total")
    assert reading.rules["marks."] == "withheld"

"""First sentences about noisy measurements: what noise alone explains, and what it does not."""

import numpy as np
import pandas as pd
import pytest

from bayesrisk.census.studies.measurement_counts import _level_sentence, _quotes
from bayesrisk.census.studies.measurement_risk import (
    _constraint,
    more_than_known,
    quotes,
    surely_more,
)


def curve(cells, expected):
    return pd.DataFrame({"cells": cells, "expected_known": expected})


def facts(cells=1000, more=0, k=0):
    row = {
        "risk_ratio": 1.5, "cells": 40, "expected_known": 38.4, "error_known": 6.0,
        "expected_one_more": 80.0, "error_one_more": 8.0, "proved_empty": 3,
        "cells_with_constraints": 5,
    }  # fmt: skip
    return {
        "cells": cells, "known_count": k, "more_than_known": more, "exceedance": [row],
        "settled": {"a": 3, "b": 4},
    }  # fmt: skip


@pytest.mark.parametrize("level", ["", "Tract "])
def test_constraints_of_the_census_are_said_in_words_beside_their_names(level):
    for name in ("hhgq_total_ub", "hhgq_total_lb", "nurse_nva_0", "total"):
        words = _constraint(level + name).removeprefix(f"{level}{name} (")
        assert words.endswith(")")
        assert "_" not in words
    assert _constraint("of_others") == "of_others"


def test_what_noise_explains_is_no_finding():
    assert more_than_known(curve([100, 10, 0], [100.0, 9.0, 0.0])) == 0
    assert more_than_known(curve([0], [0.0])) == 0
    assert more_than_known(curve([5], [0.0])) == 5  # noise never makes so much
    assert more_than_known(curve([20, 15], [1000.0, 1e-9])) == 15


def test_a_poisson_quantile_is_taken_off():
    """With a mean of 4 and a share of 1 in 20: at most 8 of 100 come from noise."""
    law = np.cumsum([np.exp(-4.0) * 4.0**k / np.prod(np.arange(1.0, k + 1)) for k in range(12)])
    least = int(np.flatnonzero(law >= 0.95)[0])
    assert more_than_known(curve([100], [4.0])) == 100 - least


def drawn_curve(rng, extra, sigma=1.0, n=400):
    """Return the cells above each limit, of n cells of which some hold more, by normal noise."""
    from math import erfc, sqrt

    values = rng.normal(0.0, sigma, n)
    values[:extra] += 4.0
    limits = np.linspace(0.0, 5.0, 30)
    cells = [(values > limit).sum() for limit in limits]
    mean = [n * 0.5 * erfc(limit / sigma / sqrt(2.0)) for limit in limits]
    return curve(cells, mean)


@pytest.mark.parametrize("extra", [0, 25])
def test_the_bound_is_too_large_in_at_most_one_of_twenty(extra):
    rng, runs = np.random.default_rng(7), 400
    found = [more_than_known(drawn_curve(rng, extra)) for _ in range(runs)]
    assert sum(n > extra for n in found) <= 0.05 * runs
    if extra:
        assert np.median(found) > extra / 3  # and it sees most of them


def test_the_first_sentence():
    assert "Noise alone can explain these 1,000 noisy counts" in surely_more(facts())
    assert surely_more(facts(more=1)).startswith("At least 1 of 1,000 cells holds somebody:")
    text = surely_more(facts(more=14, k=2))
    assert text.startswith("At least 14 of 1,000 cells hold more than the 2 people who are known:")
    assert "No noisy count was read" in surely_more(facts(cells=0))


@pytest.mark.parametrize("made", [facts(), facts(more=14), facts(cells=0), facts(k=3)])
def test_three_quotations_and_three_faults(made):
    found = quotes(made)
    assert (len(found.may), len(found.may_not)) == (3, 3)
    assert found.may[0] == surely_more(made)


def level(counts, exact, sd, noise):
    names = ("level", "counts", "known exactly", "standard deviation", "of its own noise")
    return dict(zip(names, ("Block", counts, exact, sd, noise), strict=True))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (level(51, 8, 14.98, 89.2), "Of 51 Block counts 8 are exact; all levels together leave a "
         "count uncertain by about 15 people, its own noise alone by about 89 people."),
        (level(2, 2, 0.0, np.nan), "Of 2 Block counts 2 are exact."),
        (level(4, 0, 1.07, np.nan), "None of 4 Block counts is exact; all levels together leave a "
         "count uncertain by about 1 person."),
        (level(4, 1, 0.2, 0.5), "Of 4 Block counts 1 is exact; all levels together leave a count "
         "uncertain by less than one person, its own noise alone by less than one person."),
    ],
)  # fmt: skip
def test_a_level_in_words(row, said):
    assert _level_sentence(row) == said
    found = _quotes([row], "total")
    assert (len(found.may), len(found.may_not)) == (3, 3)

"""Exact budgets: numbers, sums, splits and the tables of the 2020 Census."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from bayesrisk import ArgumentError
from bayesrisk.accounting import census_2020_budget, split_rho
from bayesrisk.accounting.budget import exact_number

positive = st.fractions(Fraction(1, 10**9), 10**9)


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (3, Fraction(3)),
        (np.int64(3), Fraction(3)),
        (0.1, Fraction(1, 10)),
        (np.float64(2.56), Fraction(64, 25)),
        (1e-10, Fraction(1, 10**10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (Decimal("0.0992"), Fraction(62, 625)),
        ("165/4099", Fraction(165, 4099)),
        (" 2.56 ", Fraction(64, 25)),
        ("1.5/0.5", Fraction(3)),
        ("1e-10", Fraction(1, 10**10)),
    ],
)
def test_exact_number(value, exact):
    assert exact_number(value) == exact


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_means_what_it_prints(value):
    assert float(exact_number(value)) == value
    assert exact_number(value) == exact_number(repr(value))


@pytest.mark.parametrize(
    "bad",
    [math.nan, math.inf, "x", "", "1/0", "1/2/3", "nan", "1e99999", None, True, 1j, [], [1, 2]],
)
def test_not_a_number(bad):
    with pytest.raises(ArgumentError, match=r"budget must .*got"):
        exact_number(bad, "budget")


@given(positive, st.lists(positive, min_size=1, max_size=6))
def test_a_split_adds_up_and_keeps_proportions(rho, weights):
    parts = split_rho(rho, weights)
    assert sum(parts) == rho
    assert [p / parts[0] for p in parts] == [w / weights[0] for w in weights]
    named = split_rho(rho, {str(i): w for i, w in enumerate(weights)})
    assert list(named.values()) == parts


def test_bad_budgets():
    with pytest.raises(ArgumentError, match="rho must be > 0, got 0"):
        split_rho(0, [1])
    with pytest.raises(ArgumentError, match="weights must not be empty"):
        split_rho(1, [])
    with pytest.raises(ArgumentError, match=r"weights\[1\] must be > 0, got 0"):
        split_rho(1, [1, 0])
    with pytest.raises(ArgumentError, match=r"weights\[0\] must be"):
        split_rho(1, {"a": None})


TABLES = [
    (product, region, universe)
    for product, universes in (
        ("pl94", ("person", "unit")),
        ("dhc", ("person", "household", "unit")),
    )
    for region in ("US", "PR")
    for universe in universes
]


@pytest.mark.parametrize(("product", "region", "universe"), TABLES)
def test_census_tables(product, region, universe):
    table = census_2020_budget(product, region=region, universe=universe)
    assert not table.duplicated(["level", "query"]).any()
    assert all(type(rho) is Fraction and rho > 0 for rho in table["rho"])
    assert table["rho_float"].tolist() == [float(rho) for rho in table["rho"]]
    assert table["sigma2"].tolist() == [float(1 / rho) for rho in table["rho"]]
    if product == "pl94":
        shares = table["level_share"] * table["query_share"]
        assert sum(shares) == 1
        assert (table["rho"] == shares * sum(table["rho"])).all()
    else:
        assert "level_share" not in table
    scaled = census_2020_budget(product, region=region, universe=universe, total_rho="1/3")
    assert sum(scaled["rho"]) == Fraction(1, 3)
    assert scaled["rho"][0] / scaled["rho"][1] == table["rho"][0] / table["rho"][1]


def test_levels_run_from_the_nation_down():
    levels = census_2020_budget("pl94")["level"].drop_duplicates().tolist()
    assert levels == ["US", "State", "County", "Tract", "Block_Group", "Block"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"product": "sf1"}, "product must be one of pl94, dhc, got 'sf1'"),
        ({"product": None}, "product must be one of"),
        ({"product": "pl94", "region": "VI"}, "region must be one of US, PR, got 'VI'"),
        ({"product": "pl94", "universe": "household"}, "universe must be one of person, unit"),
        ({"product": "pl94", "total_rho": 0}, "total_rho must be > 0, got 0"),
        ({"product": "pl94", "total_rho": "x"}, "total_rho must be .*got 'x'"),
    ],
)
def test_bad_requests(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        census_2020_budget(**arguments)

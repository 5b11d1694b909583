"""Variance of a file and scale of the noise, one from the other."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles.noisy_measurements import variance
from refusals import NOT_POSITIVE, refuses

import bayesrisk as br
from bayesrisk import ArgumentError, DataError
from bayesrisk.census.readers.nmf.reader import SINGLE, Scales, budget_chain, sigma2_from_variance

BUDGET = br.accounting.census_2020_budget("pl94")


@pytest.mark.parametrize(
    "sigma2", [0.02, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.209, 2.19, 2.2, 5, 10.09]
)
def test_the_inverse_of_the_variance_in_forty_digits(sigma2):
    # The variance itself is known to a few ulp; its logarithm falls at least as fast as 0.79 rho.
    assert sigma2_from_variance(variance(sigma2)) == pytest.approx(sigma2, rel=1e-14)


@given(st.floats(0.005, 1e12))
def test_round_trip(sigma2):
    law = br.DiscreteGaussian(sigma2)
    assert sigma2_from_variance(law.var()) == pytest.approx(sigma2, rel=1e-14)


def test_documented_gaps():
    gap = {s: br.DiscreteGaussian(s).var() / s - 1 for s in (1.209, 1.0, 0.75, 0.5, 0.3, 0.2, 0.1)}
    assert [f"{-g:.0e}" for g in gap.values()] == [
        "4e-09",
        "2e-07",
        "2e-05",
        "2e-03",
        "6e-02",
        "3e-01",
        "9e-01",
    ]


def test_arrays_and_bad_values():
    v = np.array([[0.1, 4.0], [1.0, 9e9]])
    one = [sigma2_from_variance(x) for x in v.ravel()]
    np.testing.assert_array_equal(sigma2_from_variance(v).ravel(), one)
    for bad in NOT_POSITIVE:
        assert refuses(sigma2_from_variance, "variance", bad)


def test_the_budget_explains_the_variances_of_its_level_and_of_those_handed_up():
    chain = budget_chain(BUDGET, "Tract", "detailed")
    tract, group, block = (
        BUDGET[(BUDGET.level == level) & (BUDGET["query"] == "detailed")].rho.item()
        for level in ("Tract", "Block_Group", "Block")
    )
    assert chain == [tract, group, block]
    exact = [1 / tract, 1 / (tract + group), 1 / (tract + group + block)]
    noisy = np.array([variance(float(s)) for s in exact], dtype=np.float32).astype(float)
    scales = Scales(chain)
    np.testing.assert_array_equal(
        scales(noisy[[2, 0, 1, 0]]), [float(exact[i]) for i in (2, 0, 1, 0)]
    )
    assert np.isnan(scales(noisy * (1 + 3 * SINGLE))).all()
    assert np.isnan(scales(np.array([float(1 / block)]))).all()  # not handed down
    assert Scales(None)(noisy)[0] == noisy[0]
    assert scales.allowed == pytest.approx(sorted(noisy), rel=SINGLE)


def test_a_query_that_a_level_does_not_have_may_come_from_below():
    assert budget_chain(BUDGET, "US", "total")[0] == Fraction(0)
    assert Scales(budget_chain(BUDGET, "US", "total")).allowed


def test_bad_budgets():
    with pytest.raises(DataError, match=r"budget: must have the columns .* lacks \['rho'\]"):
        budget_chain(BUDGET.drop(columns="rho"), "US", "total")
    with pytest.raises(ArgumentError, match="budget must have the level 'Prim', got US, State"):
        budget_chain(BUDGET, "Prim", "total")
    with pytest.raises(ArgumentError, match="budget must have the query 'age'"):
        budget_chain(BUDGET, "US", "age")
    twice = BUDGET.loc[[*BUDGET.index, BUDGET.index[-1]]]
    with pytest.raises(ArgumentError, match="one row for each level of 'detailed', got two"):
        budget_chain(twice, "Block", "detailed")
    with pytest.raises(ArgumentError, match="positive at some level"):
        Scales([Fraction(0)])

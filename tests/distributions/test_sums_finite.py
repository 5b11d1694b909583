"""Tabulated laws: sums from their own definition, both tails, quantiles, and bad input."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from bayesrisk import ArgumentError, DiscreteGaussian, FiniteLaw
from bayesrisk.distributions import as_finite

weights = st.lists(st.integers(1, 1000), min_size=1, max_size=12)


def law_of(counts, start=-3):
    return FiniteLaw(start, np.array(counts) / sum(counts))


@given(weights, st.integers(-50, 50))
def test_probabilities_and_tails(counts, start):
    law = law_of(counts, start)
    pmf = [c / sum(counts) for c in counts]
    for i, x in enumerate(range(start, start + len(pmf))):
        assert law.pmf(x) == pmf[i]
        assert law.logpmf(x) == np.log(pmf[i])
        assert law.cdf(x) == pytest.approx(math.fsum(pmf[: i + 1]), rel=2e-15, abs=0)
        assert law.sf(x) == pytest.approx(math.fsum(pmf[i + 1 :]), rel=2e-15, abs=0)
        assert law.logcdf(x) == np.log(law.cdf(x))
    assert law.pmf([start - 1, start + len(pmf), start + 0.5]).tolist() == [0.0, 0.0, 0.0]
    assert law.support() == (start, start + len(pmf) - 1)
    assert (law.start, law.shape, law.error_bound) == (start, (), 0.0)


@given(weights)
def test_moments(counts):
    law = law_of(counts)
    pairs = [(x - 3, c / sum(counts)) for x, c in enumerate(counts)]
    mean = math.fsum(x * p for x, p in pairs)
    assert law.mean() == pytest.approx(mean, abs=1e-14)
    assert law.var() == pytest.approx(math.fsum((x - mean) ** 2 * p for x, p in pairs), abs=1e-13)


@given(weights, st.floats(0, 1))
def test_quantiles(counts, q):
    law = law_of(counts)
    low, high = law.support()
    x = law.ppf(q)
    if q == 0:
        assert x == low - 1
    elif q <= law.cdf(high):
        assert law.cdf(x) >= q
        assert x == low or law.cdf(x - 1) < q
    y = law.isf(q)
    if q == 1:
        assert y == low - 1
    else:
        assert law.sf(y) <= q
        assert y == low or law.sf(y - 1) > q
    for x in range(low, high + 1):
        assert law.ppf(law.cdf(x)) == x
        assert x == high or law.isf(law.sf(x)) == x


def test_ends_of_the_quantiles():
    law = FiniteLaw(2, [0.25, 0.25, 0.5])
    assert law.ppf([0.0, 1.0]).tolist() == [1.0, 4.0]
    assert law.isf([0.0, 1.0]).tolist() == [4.0, 1.0]
    assert np.isnan(law.ppf([-0.1, 1.1, np.nan])).all()
    assert np.isnan(law.isf([-0.1, 1.1, np.nan])).all()
    assert law.ppf(0.5) == 3.0


def test_the_upper_end_is_the_last_quantile():
    # Rounded partial sums reach 1 before the tail is over; q = 1 is the upper end all the same.
    law = as_finite(DiscreteGaussian(1.0))
    assert law.ppf(1.0) == law.support()[1]
    assert law.isf(0.0) == law.support()[1]


def test_both_tails_keep_their_precision():
    law, exact = as_finite(DiscreteGaussian(1.0)), DiscreteGaussian(1.0)
    x = np.arange(-8, 8)
    assert law.cdf(x) == pytest.approx(exact.cdf(x), rel=1e-13, abs=0)
    assert law.sf(x) == pytest.approx(exact.sf(x), rel=1e-13, abs=0)


def test_points_of_any_kind():
    law = FiniteLaw(0, pd.Series([0.25, 0.75]))
    assert law.pmf(pd.Series([0, 1, 2])).tolist() == [0.25, 0.75, 0.0]
    assert law.cdf([-np.inf, np.inf]).tolist() == [0.0, 1.0]
    assert law.sf([-np.inf, np.inf]).tolist() == [1.0, 0.0]
    for method in (law.pmf, law.cdf, law.sf, law.logpmf):
        assert np.isnan(method(np.nan))
    assert law.logcdf(-1) == law.logsf(1) == -np.inf
    assert "size=2" in repr(law)
    with pytest.raises(ValueError, match="read-only"):
        law.probabilities[0] = 1.0


@pytest.mark.parametrize(
    ("start", "probabilities", "error", "message"),
    [
        (0, [0.5, 0.6], 0.0, "probabilities must sum to 1, got 1.1"),
        (0, [1.5, -0.5], 0.0, r"probabilities must be >= 0, got -0\.5 at index 1"),
        (0, [0.5, math.nan], 0.0, "probabilities must be finite"),
        (0, [[0.5, 0.5]], 0.0, r"one-dimensional, got shape \(1, 2\)"),
        (0, [], 0.0, "probabilities must not be empty"),
        (0.5, [1.0], 0.0, "start must be a whole number, got 0.5"),
        (0, [1.0], 2.0, "error_bound must be <= 1, got 2.0"),
    ],
)
def test_bad_input(start, probabilities, error, message):
    with pytest.raises(ArgumentError, match=message):
        FiniteLaw(start, probabilities, error_bound=error)

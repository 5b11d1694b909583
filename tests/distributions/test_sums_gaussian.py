"""Sums of discrete Gaussians in log space: against addition one by one, and against tables."""

import numpy as np
import pytest
from oracles import two_levels as oracle

from bayesrisk import DiscreteGaussian
from bayesrisk.distributions import convolve
from bayesrisk.distributions.sums import pair_ripple, sum_ripple
from bayesrisk.exceptions import ArgumentError


# Of the last one the ripples lift terms that are far from the largest one.
@pytest.mark.parametrize(
    ("rho", "m"), [(0.2, 6), (0.7, 3), (1.0, 8), (2.5, 5), (9.0, 6), (9.0, 40)]
)
def test_the_ripple_against_addition_one_by_one(rho, m):
    law = oracle.sum_pmf(rho, m, 14)
    ripple = sum_ripple(rho, m)
    d = np.arange(-2 * m, 2 * m + 1)
    with np.errstate(divide="ignore"):
        exact = np.log([law[int(v)] for v in d])
    shape = ripple[d % ripple.size] - rho / m * d**2
    likely = exact > -400.0  # beyond that the tabulated law itself is cut
    difference = (exact - shape)[likely]
    assert np.ptp(difference) < 2e-12
    assert likely.sum() > 2 * m + 1


def test_the_ripple_is_flat_for_small_budgets_and_refuses_long_sums():
    assert sum_ripple(0.12, 10**9).tolist() == [0.0]
    assert sum_ripple(3.0, 1).tolist() == [0.0]
    assert np.ptp(sum_ripple(0.126, 40)) < 1e-13
    assert np.ptp(sum_ripple(2.0, 40)) > 0.1
    with pytest.raises(ArgumentError, match=r"n_siblings must be <= 1000000 .* 1000002 terms"):
        sum_ripple(1e50, 10**6 + 2)
    with pytest.raises(
        ArgumentError, match=r"n_siblings must be small enough .* 268435456 products"
    ):
        sum_ripple(0.2, 10**5)


@pytest.mark.parametrize(("rho", "m"), [(0.2, 7), (0.4, 3), (1.5, 12), (8.0, 2)])
def test_the_ripple_of_a_pair(rho, m):
    """One discrete Gaussian, and one of m times the scale: as the tables of `convolve` add up."""
    ripple = pair_ripple(rho, m + 1)
    assert ripple.max() == ripple[0] == 0.0
    law = convolve(DiscreteGaussian(0.5 / rho), DiscreteGaussian(0.5 * m / rho), tail=1e-200)
    d = np.arange(-2 * m - 2, 2 * m + 3)
    shape = ripple[d % ripple.size] - rho / (m + 1) * d**2.0
    np.testing.assert_allclose(shape, law.logpmf(d) - law.logpmf(0), rtol=0, atol=2e-13)


def test_ripples_are_shared_and_cannot_be_written():
    ripple = sum_ripple(2.0, 40)
    assert sum_ripple(2.0, 40) is ripple
    with pytest.raises(ValueError, match="read-only"):
        ripple[0] = 1.0

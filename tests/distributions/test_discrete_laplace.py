"""The discrete Laplace law against 60-digit arithmetic, its identities, and bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import laws as oracles

from bayesrisk import ArgumentError, DiscreteLaplace

SCALES = [1e-3, 0.05, 0.3, 1.0, 3.7, 100.0, 1e6, 1e12]
scales = st.floats(-2, 10).map(lambda t: 10.0**t)


def bound(x, scale):
    """Return the documented relative error."""
    return (4 + (1 + abs(x)) / scale) * 2**-52


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["pmf", "cdf", "sf"])
def test_probabilities(scale, name):
    rng = np.random.default_rng(3)
    x = np.rint(np.concatenate(([0, 1, 2], rng.uniform(0, 700, 30) * scale)))
    law = DiscreteLaplace(scale)
    for v in np.concatenate((x, -x)):
        truth = {
            "pmf": lambda v: oracles.laplace_pmf(v, scale),
            "sf": lambda v: oracles.laplace_sf(v, scale),
            "cdf": lambda v: oracles.laplace_sf(-v - 1, scale),
        }[name](v)
        if truth > 2.3e-308:
            assert oracles.relative_error(getattr(law, name)(v), truth) <= bound(v, scale), v


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.5])
def test_moments(scale):
    x = np.arange(-400, 401)
    pmf = np.array([float(oracles.laplace_pmf(v, scale)) for v in x])
    law = DiscreteLaplace(scale, 4)
    assert law.mean() == 4.0
    assert law.var() == pytest.approx(math.fsum(x**2 * pmf), rel=1e-14, abs=0)


@given(scales, st.integers(-1000, 1000), st.integers(-200, 200))
def test_identities(scale, loc, d):
    law, x = DiscreteLaplace(scale, loc), loc + d
    assert law.cdf(x) + law.sf(x) == pytest.approx(1.0, abs=2 * bound(d, scale))
    assert law.cdf(x) - law.cdf(x - 1) == pytest.approx(law.pmf(x), abs=4 * bound(0, scale))
    assert law.sf(x) == law.cdf(2 * loc - x - 1)
    centred = DiscreteLaplace(scale)
    for name in ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"):
        assert getattr(law, name)(x) == getattr(centred, name)(d), name


@given(scales, st.floats(1e-300, 1.0, exclude_max=True))
def test_quantiles_are_the_smallest(scale, q):
    law = DiscreteLaplace(scale)
    low, high = law.ppf(q), law.isf(q)
    assert law.cdf(low) >= q > law.cdf(low - 1)
    assert law.sf(high) <= q < law.sf(high - 1)


def test_pure_privacy():
    # The defining property: neighbours' likelihoods differ by at most exp(epsilon).
    for epsilon, sensitivity in ((0.5, 1), (2.0, 3)):
        law = DiscreteLaplace.from_epsilon(epsilon, sensitivity)
        x = np.arange(-50, 51)
        loss = law.logpmf(x) - law.logpmf(x + sensitivity)
        assert np.abs(loss).max() == pytest.approx(epsilon, rel=1e-13, abs=0)


def test_broadcasting_kinds_and_ends():
    law = DiscreteLaplace([[0.5], [2.0]], [0, 3])
    table = law.cdf(1)
    for i, j in np.ndindex(2, 2):
        assert table[i, j] == DiscreteLaplace([0.5, 2.0][i], [0, 3][j]).cdf(1)
    assert DiscreteLaplace.from_epsilon(Fraction(1, 4)).scale == 4.0
    assert law.shape == law.mean().shape == law.var().shape == (2, 2)
    single = DiscreteLaplace(2.0, 1)
    assert (single.scale, single.loc) == (2.0, 1)
    assert isinstance(single.pmf(0), float)
    assert single.pmf([0.5, np.inf]).tolist() == [0.0, 0.0]
    assert single.cdf([-np.inf, 0.5, np.inf]).tolist() == [0.0, single.cdf(0), 1.0]
    assert np.isnan(single.sf(np.nan))
    assert np.isnan(single.logpmf(np.nan))
    assert repr(single) == "DiscreteLaplace(scale=2.0, loc=1)"


@pytest.mark.parametrize("bad", [0, -1, 1e-13, 1e16, math.nan, "x", None, True, 1j, object(), []])
def test_bad_scale(bad):
    with pytest.raises(ArgumentError, match="scale must"):
        DiscreteLaplace(bad)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "x", None, True, 1j, object(), []])
def test_bad_epsilon_and_sensitivity(bad):
    with pytest.raises(ArgumentError, match="epsilon must"):
        DiscreteLaplace.from_epsilon(bad)
    with pytest.raises(ArgumentError, match="sensitivity must"):
        DiscreteLaplace.from_epsilon(1.0, bad)

"""Truncated laws against their definition, P(X = x) / P(lower <= X <= upper), in 60 digits."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from bayesrisk import (
    ArgumentError,
    DiscreteGaussian,
    DiscreteLaplace,
    FiniteLaw,
    ShapeError,
    TruncatedLaw,
)

INTERVALS = [
    (1.0, 0, 3),
    (10.0, 0, math.inf),
    (10.0, -math.inf, -2),
    (10.0, -4, 4),
    (1.0, 20, 24),  # deep in the upper tail
    (1.0, -30, -25),
    (300.0, 120, math.inf),
    (0.2, 0, 2),
]


def truncated(sigma2, low, high):
    """Return values, probabilities and the log of the mass, by definition."""
    centre = max(low, min(high, 0))
    reach = math.ceil(40 * math.sqrt(sigma2)) + 5
    values = range(int(max(low, centre - reach)), int(min(high, centre + reach)) + 1)
    with mp.workdps(80):
        weights = [oracles.gaussian_pmf(x, sigma2) for x in values]
        mass = mp.fsum(weights)
        return list(values), [w / mass for w in weights], float(mp.log(mass))


def bound(sigma2, low, high, log_mass):
    """Return the documented relative error of a probability of the truncated law."""
    share = 1.0
    if math.isfinite(low) and math.isfinite(high):  # else it is the half-line
        nearer = low if low > 0 else -high
        share = math.exp(log_mass - float(oracles.gaussian_logsf(nearer - 1, sigma2)))
    return 2**-52 * (4 + abs(log_mass)) / share


@pytest.mark.parametrize(("sigma2", "low", "high"), INTERVALS)
def test_probabilities(sigma2, low, high):
    law = TruncatedLaw(DiscreteGaussian(sigma2), low, high)
    values, pmf, log_mass = truncated(sigma2, low, high)
    relative = bound(sigma2, low, high, log_mass)
    for x, p in zip(values, pmf, strict=True):
        if p > 1e-300:
            # The law's own logpmf is within 1e-13 of its logarithm, documented there.
            own = 2**-52 * abs(float(mp.log(oracles.gaussian_pmf(x, sigma2))))
            assert oracles.relative_error(law.pmf(x), p) < relative + own, x


@pytest.mark.parametrize(("sigma2", "low", "high"), INTERVALS)
def test_tails_and_moments(sigma2, low, high):
    law = TruncatedLaw(DiscreteGaussian(sigma2), low, high)
    values, pmf, log_mass = truncated(sigma2, low, high)
    floats = [float(p) for p in pmf]
    entropy = -math.fsum(p * math.log(p) for p in floats if p)
    # The bound of a probability, and the law's own 1e-13 of a typical log-probability.
    slack = bound(sigma2, low, high, log_mass) + 1e-13 * (3 + abs(log_mass) + entropy)
    for i, x in enumerate(values):
        assert law.cdf(x) == pytest.approx(math.fsum(floats[: i + 1]), rel=0, abs=slack)
        assert law.sf(x) == pytest.approx(math.fsum(floats[i + 1 :]), rel=0, abs=slack)
    mean = math.fsum(x * p for x, p in zip(values, floats, strict=True))
    variance = math.fsum((x - mean) ** 2 * p for x, p in zip(values, floats, strict=True))
    # Documented: 2**-59 of the mass is left out, here within ten deviations.
    left_out = 2**-59 * 100 * max(sigma2, 1.0)
    assert law.mean() == pytest.approx(mean, rel=slack, abs=0)
    assert law.var() == pytest.approx(variance, rel=0, abs=slack * variance + left_out)
    # A relative error e of a probability p moves the entropy by e p (1 + log p).
    assert law.entropy() == pytest.approx(entropy, rel=0, abs=slack * (1 + entropy) + left_out)


@pytest.mark.parametrize(("sigma2", "low", "high"), INTERVALS)
def test_outside_and_at_the_ends(sigma2, low, high):
    law = TruncatedLaw(DiscreteGaussian(sigma2), low, high)
    assert law.support() == (low, high)
    if math.isfinite(low):
        assert law.pmf(low - 1) == law.cdf(low - 1) == 0.0
        assert law.sf(low - 1) == 1.0
    if math.isfinite(high):
        assert law.pmf(high + 1) == law.sf(high) == 0.0
        assert law.cdf(high) == 1.0
    assert law.ppf(0.0) == low - 1
    assert law.ppf(1.0) == high
    assert law.isf(0.0) == high
    assert np.isnan([law.ppf(1.5), law.pmf(np.nan), law.cdf(np.nan), law.sf(np.nan)]).all()


@given(
    st.floats(-1, 4).map(lambda t: 10.0**t),
    st.integers(-30, 30),
    st.integers(0, 40),
    st.floats(1e-12, 1 - 1e-12),
)
def test_quantiles(sigma2, low, width, q):
    law = TruncatedLaw(DiscreteGaussian(sigma2 + 2.0), low, low + width)
    x = law.ppf(q)
    assert law.cdf(x) >= q
    assert x == low or law.cdf(x - 1) < q
    y = law.isf(q)
    assert law.sf(y) <= q
    assert y == low or law.sf(y - 1) > q


def test_no_bounds_change_nothing():
    law = DiscreteGaussian(3.0, 2)
    free = TruncatedLaw(law)
    x = np.arange(-9, 12)
    assert free.pmf(x) == pytest.approx(law.pmf(x), rel=1e-14, abs=0)
    assert free.cdf(x) == pytest.approx(law.cdf(x), rel=1e-14, abs=0)
    assert free.support() == (-np.inf, np.inf)


def test_other_laws():
    laplace = TruncatedLaw(DiscreteLaplace(2.0), lower=3)
    # The tail of a geometric law is the same law, moved.
    assert laplace.pmf(5) == pytest.approx(-math.expm1(-0.5) * math.exp(-1.0), rel=1e-14, abs=0)
    die = TruncatedLaw(FiniteLaw(1, [1 / 6] * 6), 2, 99)
    assert die.support() == (2, 6)
    assert die.pmf([1, 2, 6, 7]) == pytest.approx([0, 0.2, 0.2, 0], rel=1e-14, abs=0)
    nested = TruncatedLaw(laplace, upper=6)
    assert nested.pmf([3, 4, 5, 6]).sum() == pytest.approx(1.0, rel=1e-14, abs=0)


def test_broadcasting_equals_a_loop():
    sigma2, lower = np.array([1.0, 40.0]), np.array([[0], [3]])
    law = TruncatedLaw(DiscreteGaussian(sigma2), lower)
    assert law.shape == (2, 2)
    for i, j in np.ndindex(2, 2):
        single = TruncatedLaw(DiscreteGaussian(sigma2[j]), int(lower[i, 0]))
        assert law.pmf(4)[i, j] == single.pmf(4)
        assert law.sf(4)[i, j] == single.sf(4)
        assert law.ppf(0.3)[i, j] == single.ppf(0.3)
        assert law.mean()[i, j] == pytest.approx(single.mean(), rel=1e-14, abs=0)
        assert law.var()[i, j] == pytest.approx(single.var(), rel=1e-13, abs=0)
        assert law.entropy()[i, j] == pytest.approx(single.entropy(), rel=1e-14, abs=0)
    assert "TruncatedLaw(DiscreteGaussian" in repr(law)


def test_the_normaliser_matters():
    # Negative control: the law cut off but not renormalised is another one.
    law = TruncatedLaw(DiscreteGaussian(10.0), lower=0)
    assert law.pmf(1) > 1.5 * DiscreteGaussian(10.0).pmf(1)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (1, 0, r"lower must not exceed upper .* \[1, 0\]"),
        (0.5, 3, "lower must be a whole number or infinite, got 0.5"),
        (math.nan, 3, "lower must be a whole number or infinite, got nan"),
        (0, 1.5, "upper must be a whole number or infinite, got 1.5"),
        ("0", 1, "lower must be a number"),
        (0, None, "upper must be a number"),
        (0, True, "upper must be a number"),
        (0, 1j, "upper must be a real number"),
        ([], 1, "lower must not be empty"),
    ],
)
def test_bad_bounds(lower, upper, message):
    with pytest.raises(ArgumentError, match=message):
        TruncatedLaw(DiscreteGaussian(1.0), lower, upper)


def test_bad_laws_and_shapes():
    for bad in (None, 3, "law", DiscreteGaussian):
        with pytest.raises(ArgumentError, match="law must be a CountLaw, got"):
            TruncatedLaw(bad)
    with pytest.raises(ShapeError, match="do not broadcast"):
        TruncatedLaw(DiscreteGaussian([1.0, 2.0]), [0, 1, 2])
    with pytest.raises(ArgumentError, match="lower must not exceed upper within the support"):
        TruncatedLaw(FiniteLaw(0, [1.0]), 5, 9)
    with pytest.raises(ArgumentError, match="positive probability"):
        TruncatedLaw(FiniteLaw(0, [0.5, 0.0, 0.5]), 1, 1)
    with pytest.raises(ArgumentError, match="at most 16777216 values"):
        TruncatedLaw(DiscreteGaussian(1e14), lower=0).mean()

"""Truncated laws against their definition, P(X = x) / P(lower <= X <= upper), in 60 digits."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from oracles import laws as oracles

from bayesrisk import ArgumentError, DiscreteGaussian, DiscreteLaplace, FiniteLaw
from bayesrisk.distributions import TruncatedLaw
from bayesrisk.exceptions import ShapeError

INTERVALS = [
    (1.0, 0, 3),
    (10.0, 0, math.inf),
    (10.0, -4, 4),
    (1.0, 20, 24),  # deep in the upper tail
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


@settings(max_examples=50)
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


@functools.cache
def tail(first, sigma2):
    """Return the weight of ``first`` and everything above it, in 70 digits."""
    if first == math.inf:
        return mp.mpf(0)
    return oracles.gaussian_tail_weight(first, sigma2)


def between(low, high, sigma2):
    """Return P(low <= X <= high) from the tails on the side where they are small."""
    if high < low:
        return mp.mpf(0)
    if high < 0:
        low, high = -high, -low
    with mp.workdps(70):
        whole = oracles.gaussian_normaliser(sigma2)
        above = tail(low, sigma2) if low >= 0 else whole - tail(1 - low, sigma2)
        return (above - tail(high + 1, sigma2)) / whole


def share(low, high, sigma2):
    """Return what the documented error is divided by, for one interval."""
    if high - low < 256:
        return 1.0
    half = -math.inf if high < 0 else low if low > 0 else None
    line = 1.0
    if half is not None:
        line = between(low, math.inf, sigma2) if low > 0 else between(-math.inf, high, sigma2)
    part = float(between(low, high, sigma2) / line)
    return part if part < 0.25 else 1.0


def placements(sigma2):
    """Return intervals left of, across and right of the centre, narrow, wide and one-sided."""
    sigma = math.sqrt(sigma2)
    for centre in (-1.0, 0.2, 7.0, 35.0):
        for width in (0.0, 0.3, 8.0, math.inf):
            low = round(centre * sigma)
            high = low + round(width * sigma) if width < math.inf else math.inf
            yield low, high
            yield -high, -low


@pytest.mark.parametrize("sigma2", [0.2, 10.0, 1e6])
def test_every_method_wherever_the_interval_lies(sigma2):
    sigma = math.sqrt(sigma2)
    for low, high in placements(sigma2):
        law = TruncatedLaw(DiscreteGaussian(sigma2), low, high)
        mass = between(low, high, sigma2)
        first = low if math.isfinite(low) else min(high, 0) - round(9 * sigma) - 2
        last = high if math.isfinite(high) else max(low, 0) + round(9 * sigma) + 2
        for x in {first, (2 * first + last) // 3, last - 1}:
            if not low <= x <= high:
                continue
            cases = [("cdf", low, x), ("sf", x + 1, high), ("pmf", x, x)]
            for name, a, b in cases:
                truth = between(a, b, sigma2)
                value, log = getattr(law, name)(x), getattr(law, f"log{name}")(x)
                if truth == 0:
                    assert (value, log) == (0.0, -math.inf)
                    continue
                least = min(share(low, high, sigma2), share(a, b, sigma2))
                bound = 2**-52 * (16 + 8 * abs(float(mp.log(truth)))) / least
                truth /= mass
                where = (name, low, high, x)
                if truth > 1e-300:
                    assert oracles.relative_error(value, truth) < bound, where
                with mp.workdps(60):
                    assert abs(mp.mpf(float(log)) - mp.log(truth)) < bound, where
            # Quantiles far out: the least x whose tail is no more than q, by definition.
            with mp.workdps(60):
                q = float(between(x + 1, high, sigma2) / mass) * (1 + 1e-9)
            if 0 < q < 0.1:
                assert law.isf(q) == x, (low, high, x)
                mirror = TruncatedLaw(DiscreteGaussian(sigma2), -high, -low)
                assert mirror.ppf(q * (1 - 2e-9)) == -x - 1, (low, high, x)


def test_the_upper_tail_of_a_law_cut_at_its_centre():
    law = TruncatedLaw(DiscreteGaussian(10.0), lower=0)
    truth = 2.2476144703723093e-18
    assert law.sf(27) == pytest.approx(truth, rel=1e-14, abs=0)
    assert law.logsf(27) == pytest.approx(math.log(truth), rel=1e-15, abs=0)
    assert law.isf(1e-20) == 29
    assert law.logcdf(27) == pytest.approx(-truth, rel=1e-14, abs=0)


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

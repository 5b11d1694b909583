"""The discrete Gaussian against 60-digit arithmetic, its own identities, and bad input."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from oracles import laws as oracles
from refusals import finite_or_refused

from bayesrisk import ArgumentError, DiscreteGaussian, DiscreteLaplace, FiniteLaw

BOUND = 1e-13  # documented, relative, for pmf, cdf, sf and their logarithms
NORMAL = 2.3e-308
SCALES = [*np.logspace(-5, 10, 16), 0.159, 0.16, 3.99, 99.9, 100.0]

sigma2s = st.floats(-5, 10).map(lambda t: 10.0**t)
locs = st.integers(-(10**6), 10**6)


def points(sigma2, rng):
    """Return whole numbers from the centre to beyond the double range, on both sides."""
    sigma = math.sqrt(sigma2)
    inside = np.rint(rng.uniform(0, 37, 8) * sigma)
    outside = np.rint(10.0 ** rng.uniform(0, 9, 2))
    x = np.concatenate(([0, 1, 2], inside, inside / 20, outside))
    return np.unique(np.rint(np.concatenate((x, -x))))


def errors(values, truths, floor=0.0):
    """Return the relative errors where the truth is at least ``floor`` in magnitude."""
    return [
        oracles.relative_error(v, t) for v, t in zip(values, truths, strict=True) if abs(t) >= floor
    ]


@pytest.mark.parametrize("sigma2", SCALES)
def test_probabilities(sigma2):
    x = points(sigma2, np.random.default_rng(1))
    law = DiscreteGaussian(sigma2)
    for name in ("pmf", "cdf", "sf"):
        truths = [getattr(oracles, f"gaussian_{name}")(v, sigma2) for v in x]
        assert max(errors(getattr(law, name)(x), truths, NORMAL)) < BOUND, name


@pytest.mark.parametrize("sigma2", SCALES)
def test_logarithms(sigma2):
    x = points(sigma2, np.random.default_rng(2))
    law = DiscreteGaussian(sigma2)
    logpmf = [oracles.gaussian_logpmf(v, sigma2) for v in x]
    assert max(errors(law.logpmf(x), logpmf, NORMAL)) < BOUND
    logsf = [oracles.gaussian_logsf(v, sigma2) for v in x]
    assert max(errors(law.logsf(x), logsf, NORMAL)) < BOUND
    assert law.logcdf(-x - 1).tolist() == law.logsf(x).tolist()


@pytest.mark.parametrize(
    ("sigma2", "x"),
    [(17.96533892044694, -145), (4.475691220398404, -74), (96.83886239010641, -369)],
)
def test_logarithms_of_probabilities_next_to_one(sigma2, x):
    # log(1 - tail) for a tail near the end of the double range, where a rounded exponent shows.
    truth = oracles.gaussian_logsf(x, sigma2)
    assert oracles.relative_error(DiscreteGaussian(sigma2).logsf(x), truth) < BOUND


@pytest.mark.parametrize("sigma2", [99.999, 100.0, 150.0, 2500.5])
def test_where_the_tail_changes_its_method(sigma2):
    # Term by term for sigma2 < 100 or beyond sigma2 / 2, by Euler-Maclaurin otherwise.
    edge = math.floor(0.5 * sigma2)
    x = np.arange(edge - 12, edge + 12)
    x = np.concatenate((np.arange(12), x[x >= 12]))
    law = DiscreteGaussian(sigma2)
    truths = [oracles.gaussian_sf(v, sigma2) for v in x]
    assert max(errors(law.sf(x), truths, NORMAL)) < BOUND
    logs = [oracles.gaussian_logsf(v, sigma2) for v in x]
    assert max(errors(law.logsf(x), logs)) < BOUND


def test_every_point_of_a_few_laws():
    for sigma2 in (0.3, 1.0, 5.04, 120.0):
        x = np.arange(-40, 41)
        truths = [oracles.gaussian_cdf(v, sigma2) for v in x]
        assert max(errors(DiscreteGaussian(sigma2).cdf(x), truths, NORMAL)) < BOUND


def test_the_oracle_tells_sigma2_from_the_variance():
    # Negative control: the two are close enough that a careless comparison would pass.
    sigma2 = 0.3
    variance = float(DiscreteGaussian(sigma2).var())
    wrong = DiscreteGaussian(variance).pmf(1)
    assert oracles.relative_error(wrong, oracles.gaussian_pmf(1, sigma2)) > 0.01
    assert variance < sigma2


@pytest.mark.parametrize("sigma2", [1e-3, 0.05, 0.2, 0.4, 0.49, 0.5, 0.51, 1.0, 3.0, 20.0, 100.0])
def test_variance(sigma2):
    law = DiscreteGaussian(sigma2)
    # 1 - pmf(0) is exp(-500) at the smallest scale: digits enough to see it.
    variance, _ = oracles.gaussian_moments(sigma2, dps=300 if sigma2 < 0.1 else 60)
    assert oracles.relative_error(law.var(), variance) < BOUND
    assert law.std() == pytest.approx(math.sqrt(law.var()), rel=1e-15, abs=0)


def test_moments_of_wide_laws_are_those_of_the_normal():
    law = DiscreteGaussian([1e3, 1e10])
    assert law.var() == pytest.approx([1e3, 1e10], rel=1e-14, abs=0)


@given(sigma2s, locs, st.integers(-300, 300))
def test_identities(sigma2, loc, d):
    law, x = DiscreteGaussian(sigma2, loc), loc + d
    assert law.cdf(x) + law.sf(x) == pytest.approx(1.0, abs=2**-52)
    assert law.pmf(x) == law.pmf(2 * loc - x)
    assert law.sf(x) == law.cdf(2 * loc - x - 1)
    centred = DiscreteGaussian(sigma2)
    for name in ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"):
        assert getattr(law, name)(x) == getattr(centred, name)(d), name
    assert law.cdf(x) - law.cdf(x - 1) == pytest.approx(law.pmf(x), abs=3 * BOUND)
    assert law.sf(x - 1) - law.sf(x) == pytest.approx(law.pmf(x), abs=3 * BOUND)


@given(sigma2s.filter(lambda s: s < 1e5))
def test_normalisation(sigma2):
    reach = math.ceil(40 * math.sqrt(sigma2)) + 1
    pmf = DiscreteGaussian(sigma2).pmf(np.arange(-reach, reach + 1))
    assert math.fsum(pmf) == pytest.approx(1.0, abs=4 * BOUND)


@given(sigma2s, locs, st.floats(-8, 8))
def test_quantiles_undo_the_tails(sigma2, loc, z):
    law = DiscreteGaussian(sigma2, loc)
    x = loc + round(z * math.sqrt(sigma2))
    if law.pmf(x) > 1e-15 * law.cdf(x) and law.cdf(x) < 1:
        assert law.ppf(law.cdf(x)) == x
    if law.pmf(x) > 1e-15 * law.sf(x) and 0 < law.sf(x) < 1:
        assert law.isf(law.sf(x)) == x


@given(sigma2s, st.floats(1e-300, 1.0, exclude_max=True))
def test_quantiles_are_the_smallest(sigma2, q):
    law = DiscreteGaussian(sigma2, 3)
    low, high = law.ppf(q), law.isf(q)
    assert law.cdf(low) >= q > law.cdf(low - 1)
    assert law.sf(high) <= q < law.sf(high - 1)


def test_quantiles_at_and_beyond_the_ends():
    law = DiscreteGaussian(2.0)
    assert law.ppf([0.0, 0.5, 1.0]).tolist() == [-np.inf, 0.0, np.inf]
    assert law.isf([0.0, 0.5, 1.0]).tolist() == [np.inf, 0.0, -np.inf]
    assert np.isnan(law.ppf([-0.1, 1.1, np.nan])).all()


def test_off_the_integers():
    law = DiscreteGaussian(2.0, 1)
    assert law.pmf([0.5, np.inf, -np.inf]).tolist() == [0.0, 0.0, 0.0]
    assert law.logpmf([0.5, np.inf]).tolist() == [-np.inf, -np.inf]
    assert law.cdf(0.5) == law.cdf(0)
    assert law.sf(0.5) == law.sf(0)
    assert law.cdf([-np.inf, np.inf]).tolist() == [0.0, 1.0]
    assert law.logsf([-np.inf, np.inf]).tolist() == [0.0, -np.inf]
    for name in ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"):
        assert np.isnan(getattr(law, name)(np.nan)), name


@pytest.mark.parametrize(
    "law", [DiscreteGaussian(1.0, 1), DiscreteLaplace(1.0, 1), FiniteLaw(1, [1.0])], ids=repr
)
def test_points_at_the_end_of_the_integers(law):
    # int64 minus a centre must not wrap around to the other side.
    assert law.cdf(-(2**63)) == law.pmf(-(2**63)) == 0.0
    assert law.sf(-(2**63)) == law.cdf(2**63 - 1) == 1.0


def test_draws_that_no_integer_holds_are_refused():
    with pytest.raises(ArgumentError, match="sigma2"):
        DiscreteGaussian(1e40).rvs(3, random_state=1)


@pytest.mark.parametrize("sigma2", [1e-320, 1e-310, 1e300])
def test_scales_at_the_end_of_the_doubles(sigma2):
    # Outside the documented accuracy a law may be refused, but not warn.
    assert finite_or_refused(lambda: DiscreteGaussian(sigma2).sf([0, 1, 10**9]))
    assert finite_or_refused(lambda: DiscreteGaussian(sigma2).pmf([0, 1, 10**9]))


def test_broadcasting_equals_a_loop():
    sigma2, loc, x = np.array([[0.3], [4.0], [1e4]]), np.array([-2, 5]), np.array([0, 7])
    law = DiscreteGaussian(sigma2, loc)
    assert law.shape == (3, 2)
    for name in ("pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"):
        table = getattr(law, name)(x)
        for i, j in np.ndindex(3, 2):
            single = DiscreteGaussian(float(sigma2[i, 0]), int(loc[j]))
            assert table[i, j] == getattr(single, name)(x[j]), name
    q = [0.1, 0.9]
    loop = [
        [DiscreteGaussian(s, m).ppf(p) for m, p in zip(loc, q, strict=True)] for s in sigma2[:, 0]
    ]
    assert law.ppf(q).tolist() == loop
    assert law.mean().tolist() == [[-2.0, 5.0]] * 3
    assert law.var().shape == law.support()[0].shape == (3, 2)


def test_kinds_of_numbers():
    assert DiscreteGaussian(Fraction(1, 3)).sigma2 == pytest.approx(1 / 3, rel=1e-16, abs=0)
    law = DiscreteGaussian.from_rho(Fraction(1, 8))
    assert (law.sigma2, law.loc) == (4.0, 0)
    assert DiscreteGaussian.from_rho(0.125, 2, loc=3).sigma2 == 16.0
    assert isinstance(law.pmf(np.int8(1)), float)
    expected = law.pmf(np.arange(3)).tolist()
    for x in (
        [0, 1, 2],
        pd.Series([0, 1, 2]),
        np.array([0, 1, 2], dtype=np.uint8),
        (0.0, 1.0, 2.0),
    ):
        assert law.pmf(x).tolist() == expected
    assert repr(law) == "DiscreteGaussian(sigma2=4.0, loc=0)"


@pytest.mark.parametrize("bad", [0, math.inf, "x", []])
def test_bad_sigma2(bad):
    with pytest.raises(ArgumentError, match="sigma2 must"):
        DiscreteGaussian(bad)
    with pytest.raises(ArgumentError, match="rho"):
        DiscreteGaussian.from_rho(bad)


@pytest.mark.parametrize("bad", [0.5, 2**53, "1"])
def test_bad_loc(bad):
    with pytest.raises(ArgumentError, match="loc must"):
        DiscreteGaussian(1.0, bad)

"""Sums of laws against a double loop, the closed form against both, and the distances."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from oracles import laws as oracles

from bayesrisk import ArgumentError, DiscreteGaussian, DiscreteLaplace, FiniteLaw
from bayesrisk.distributions import (
    as_finite,
    convolve,
    sum_approximation,
    sums as convolution,
    total_variation,
)

masses = st.lists(st.integers(0, 100), min_size=1, max_size=9).filter(any)
EPS = 2**-52


def table(counts, start=0):
    return FiniteLaw(start, np.array(counts) / sum(counts))


def as_dict(law):
    low, _ = law.support()
    return {int(low) + i: float(p) for i, p in enumerate(law.probabilities)}


@given(masses, masses, st.integers(-9, 9))
def test_tables_against_the_double_loop(a, b, start):
    p, q = table(a, start), table(b, 2)
    result = convolve(p, q)
    loop = oracles.convolution(p.probabilities, q.probabilities)
    # Values without mass at either end may be left out of the table.
    assert start + 2 <= result.start
    assert result.support()[1] < start + 2 + len(loop)
    masses_of = result.pmf(start + 2 + np.arange(len(loop)))
    assert masses_of == pytest.approx(loop, rel=9 * EPS, abs=0)


@given(masses, masses, masses)
def test_the_order_does_not_matter(a, b, c):
    laws = [table(a), table(b, -3), table(c, 5)]
    one, two = convolve(*laws), convolve(*laws[::-1])
    assert one.start == two.start
    assert one.probabilities == pytest.approx(two.probabilities, rel=30 * EPS, abs=0)
    assert one.mean() == pytest.approx(sum(law.mean() for law in laws), abs=1e-13)
    assert one.var() == pytest.approx(sum(law.var() for law in laws), abs=1e-12)


def test_one_law_is_itself():
    law = table([1, 2])
    assert convolve(law) is law
    smooth = DiscreteGaussian(3.0)
    assert convolve(smooth) is smooth


@pytest.mark.parametrize(("s1", "s2"), [(4.0, 4.0), (10.0, 2.6), (1e3, 2.01)])
def test_closed_form_at_every_point(s1, s2):
    law = convolve(DiscreteGaussian(s1, 1), DiscreteGaussian(s2, -3))
    assert isinstance(law, DiscreteGaussian)
    assert (law.sigma2, law.loc) == (s1 + s2, -2)
    spread = 14 * math.sqrt(s1 * s2 / (s1 + s2))
    for x in (0, 3, round(4 * math.sqrt(s1 + s2)), round(20 * math.sqrt(s1 + s2))):
        # Terms matter only around the share of x that belongs to the first law.
        middle = x * s1 / (s1 + s2)
        terms = range(round(middle - spread) - 1, round(middle + spread) + 2)
        exact = oracles.mp.fsum(
            oracles.gaussian_pmf(j, s1) * oracles.gaussian_pmf(x - j, s2) for j in terms
        )
        assert oracles.relative_error(law.pmf(x - 2), exact) < 1e-13, x


@pytest.mark.parametrize(("s1", "s2"), [(0.5, 0.5), (10.0, 1.0), (0.2, 30.0)])
def test_rough_gaussians_are_convolved_exactly(s1, s2):
    law = convolve(DiscreteGaussian(s1), DiscreteGaussian(s2, 2))
    assert isinstance(law, FiniteLaw)
    for x in (-6, -1, 0, 2, 3, 9):
        exact = oracles.mp.fsum(
            oracles.gaussian_pmf(j, s1) * oracles.gaussian_pmf(x - 2 - j, s2)
            for j in range(-150, 151)
        )
        assert oracles.relative_error(law.pmf(x), exact) < 1e-12


def test_the_closed_form_is_refused_where_it_is_wrong():
    # Negative control: at sigma2 = 0.3 the sum is visibly not a discrete Gaussian.
    wrong = DiscreteGaussian(0.6)
    exact = convolve(DiscreteGaussian(0.3), DiscreteGaussian(0.3))
    assert total_variation(wrong, exact)[0] > 1e-3


def test_mixed_laws():
    laws = [DiscreteGaussian(8.0), DiscreteLaplace(1.5), FiniteLaw(0, [0.5, 0.5])]
    law = convolve(*laws)
    assert law.mean() == pytest.approx(0.5, abs=1e-12)
    assert law.var() == pytest.approx(sum(float(x.var()) for x in laws), rel=1e-12, abs=0)
    assert law.error_bound < 1e-13
    brute = sum(
        float(laws[0].pmf(3 - j - b)) * float(laws[1].pmf(j)) * 0.5
        for j in range(-100, 101)
        for b in (0, 1)
    )
    assert law.pmf(3) == pytest.approx(brute, rel=1e-13, abs=0)


def test_long_tables_go_through_fft(monkeypatch):
    p, q = as_finite(DiscreteGaussian(40.0)), as_finite(DiscreteLaplace(3.0))
    direct = convolve(p, q)
    monkeypatch.setattr(convolution, "_MAX_PRODUCTS", 10)
    fast = convolve(p, q)
    x = np.arange(fast.start - 200, fast.start + fast.probabilities.size + 200)
    gap = 0.5 * float(np.abs(fast.pmf(x) - direct.pmf(x)).sum())
    assert 0.0 < gap <= fast.error_bound < 1e-11
    assert fast.error_bound > direct.error_bound


@pytest.mark.parametrize("products", [2**28, 1])  # directly, and by FFT
def test_the_error_bound_of_a_convolution_covers_its_rounding(products, monkeypatch):
    monkeypatch.setattr(convolution, "_MAX_PRODUCTS", products)
    rng, most = np.random.default_rng(40), 0.0
    for sizes in [(1, 40), (2, 3), (40, 40), (7, 90), (120, 120)]:
        p, q = (FiniteLaw(3, rng.dirichlet(np.ones(size))) for size in sizes)
        rounded = convolve(p, q)
        exact = oracles.exact_convolution(p.probabilities, q.probabilities)
        found = rounded.pmf(6 + np.arange(len(exact)))
        gap = sum(abs(Fraction(float(x)) - y) for x, y in zip(found, exact, strict=True)) / 2
        assert gap <= Fraction(rounded.error_bound)
        most = max(most, float(gap))
    # Not vacuous: a bound of the mass that is cut off, 1e-30 a side, would not do.
    assert 1e-17 < most < 1e-14


def test_tables_are_cut_where_asked():
    law = DiscreteGaussian(5.0, 3)
    for tail in (1e-3, 1e-12, 1e-30):
        cut = as_finite(law, tail=tail)
        low, high = cut.support()
        assert law.cdf(low - 1) < tail
        assert law.sf(high) <= tail
        assert law.cdf(low) >= tail
        mass = law.cdf(low - 1) + law.sf(high)
        assert mass <= cut.error_bound < mass + 1e-12  # and rounding
        assert cut.pmf(4) == law.pmf(4)
    assert as_finite(cut) is cut


@given(masses, masses, st.integers(-4, 4))
def test_total_variation_against_its_definition(a, b, start):
    p, q = table(a, start), table(b)
    distance, error = total_variation(p, q)
    assert distance == pytest.approx(oracles.total_variation(as_dict(p), as_dict(q)), abs=error)
    assert 0.0 <= distance <= 1.0
    assert total_variation(q, p)[0] == pytest.approx(distance, abs=error)
    assert total_variation(p, p)[0] == 0.0


def test_the_error_of_a_distance_is_that_of_both_laws():
    p, q = table([1, 1]), FiniteLaw(0, [0.5, 0.5], error_bound=0.25)
    # A law at a distance of .25 from q.
    meant = total_variation(p, table([1, 3]))[0]
    for one, other in [(p, q), (q, p)]:
        distance, error = total_variation(one, other)
        assert abs(meant - distance) <= error


def test_distances_between_gaussians():
    # Shifted by one the distance is the mass at the centre, exactly: the terms telescope.
    for sigma2 in (0.5, 1.0, 77.0):
        distance, error = total_variation(DiscreteGaussian(sigma2), DiscreteGaussian(sigma2, 1))
        assert distance == pytest.approx(float(oracles.gaussian_pmf(0, sigma2)), abs=error)
    assert total_variation(FiniteLaw(0, [1.0]), FiniteLaw(9, [1.0]))[0] == 1.0


@pytest.mark.parametrize(("sigma2", "n"), [(0.1, 3), (1.0, 5), (5.0, 27)])
def test_sum_approximation_against_repeated_loops(sigma2, n):
    result = sum_approximation(DiscreteGaussian(sigma2), n)
    single = as_finite(DiscreteGaussian(sigma2), tail=1e-18).probabilities
    total = single
    for _ in range(n - 1):
        total = oracles.convolution(total, single)
    low = -(len(total) // 2)
    exact = {low + i: p for i, p in enumerate(total)}
    approximate = {x: float(DiscreteGaussian(n * sigma2).pmf(x)) for x in exact}
    distance = oracles.total_variation(exact, approximate)
    assert result.total_variation == pytest.approx(distance, abs=result.error_bound + 1e-14)
    assert result.approximate.sigma2 == pytest.approx(n * sigma2, rel=1e-15, abs=0)
    assert result.exact.pmf(1) == pytest.approx(exact[1], rel=1e-13, abs=0)


@pytest.mark.parametrize(("sigma2", "n"), [(0.3, 64), (0.1, 256)])
def test_the_stated_error_includes_rounding(sigma2, n):
    last = round(14 * math.sqrt(n * sigma2)) + 5
    exact = oracles.gaussian_sum_pmf(sigma2, n, last)
    smooth = [oracles.gaussian_pmf(x, n * sigma2) for x in range(last + 1)]
    result = sum_approximation(DiscreteGaussian(sigma2), n)

    def half_l1(p, q):  # both laws are symmetric
        gaps = [abs(oracles.exact(a) - oracles.exact(b)) for a, b in zip(p, q, strict=True)]
        return (gaps[0] + 2 * oracles.mp.fsum(gaps[1:])) / 2

    distance = half_l1(exact, smooth)
    assert abs(float(distance) - result.total_variation) <= result.error_bound
    table = result.exact.pmf(np.arange(last + 1))
    assert half_l1(table, exact) <= result.exact.error_bound


def test_sum_approximation_of_shifted_laws_and_of_one():
    result = sum_approximation(DiscreteGaussian(0.4, 2), 3)
    assert (result.approximate.loc, result.exact.mean()) == (6, pytest.approx(6.0))
    assert sum_approximation(DiscreteGaussian(0.4), 1).total_variation == 0.0
    # More terms and more noise both help; the limit is not zero for a rough law.
    distances = [sum_approximation(DiscreteGaussian(s), 4).total_variation for s in (0.1, 0.3, 1.0)]
    assert distances == sorted(distances, reverse=True)


def test_bad_input():
    law = DiscreteGaussian(1.0)
    with pytest.raises(ArgumentError, match="convolve needs at least one law, got none"):
        convolve()
    for tail in (0, 0.5, math.nan):
        with pytest.raises(ArgumentError, match="tail must"):
            as_finite(law, tail=tail)
        with pytest.raises(ArgumentError, match="tail must"):
            convolve(law, law, tail=tail)
    for n in (0, 1.5, 10**6 + 1):
        with pytest.raises(ArgumentError, match="n must"):
            sum_approximation(law, n)
    with pytest.raises(ArgumentError, match="q must be a CountLaw, got 3"):
        total_variation(law, 3)
    wide = DiscreteGaussian(1e14)
    with pytest.raises(ArgumentError, match="at most 16777216 entries"):
        as_finite(wide)
    with pytest.raises(ArgumentError, match="at most 16777216 values together"):
        total_variation(FiniteLaw(0, [1.0]), FiniteLaw(2**25, [1.0]))

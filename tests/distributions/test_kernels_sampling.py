"""Draws against the exact laws: chi-square tests with fixed seeds, and a test that can fail."""

import math

import numpy as np
import pytest
from scipy import stats

from bayesrisk import ArgumentError, DiscreteGaussian, DiscreteLaplace, FiniteLaw
from bayesrisk.distributions import kernels as _kernels

DRAWS = 100_000
# One in ten thousand: with fixed seeds a failure is a defect, not bad luck that comes back.
LEVEL = 1e-4


def merged(expected, observed, least=20.0):
    """Merge neighbouring bins until each expects at least ``least`` draws."""
    bins = [[0.0, 0]]
    for e, o in zip(expected, observed, strict=True):
        if bins[-1][0] >= least:
            bins.append([0.0, 0])
        bins[-1][0] += e
        bins[-1][1] += o
    if len(bins) > 1 and bins[-1][0] < least:
        e, o = bins.pop()
        bins[-1][0] += e
        bins[-1][1] += o
    return np.array(bins).T


def p_value(draws, law):
    """Return the p-value of a chi-square test: a bin for each value, or about sixty."""
    low, high = float(law.ppf(1e-6)), float(law.isf(1e-6))
    edges = np.unique(np.rint(np.linspace(low - 1, high, 60)))
    mass = np.diff(np.concatenate(([0.0], law.cdf(edges), [1.0])))
    counts = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=mass.size)
    expected, observed = merged(mass * draws.size, counts)
    assert expected.size > 1, "one bin tests nothing"
    return stats.chisquare(observed, expected * (draws.size / expected.sum())).pvalue


def test_draws_of_a_law_that_never_leaves_its_centre():
    # At sigma2 = 0.01 another value has probability 4e-22.
    assert set(DiscreteGaussian(0.01, 4).rvs(DRAWS, random_state=7).tolist()) == {4}


@pytest.mark.parametrize("sigma2", [0.3, 3.99, 4.0, 1e3, 1e10])
def test_discrete_gaussian_draws(sigma2):
    law = DiscreteGaussian(sigma2)
    assert p_value(law.rvs(DRAWS, random_state=7), law) > LEVEL


@pytest.mark.parametrize("scale", [0.2, 3.7, 1e8])
def test_discrete_laplace_draws(scale):
    law = DiscreteLaplace(scale, loc=2)
    assert p_value(law.rvs(DRAWS, random_state=8), law) > LEVEL


def test_draws_of_tables():
    law = FiniteLaw(-2, [0.5, 0.1, 0.0, 0.4])
    draws = law.rvs(DRAWS, random_state=9)
    assert p_value(draws, law) > LEVEL
    low, high = law.support()
    assert low <= draws.min() <= draws.max() <= high


@pytest.mark.parametrize("sigma2", [0.3, 10.0, 1e6])
def test_the_test_rejects_a_slightly_wrong_scale(sigma2):
    draws = DiscreteGaussian(1.05 * sigma2).rvs(DRAWS, random_state=7)
    assert p_value(draws, DiscreteGaussian(sigma2)) < LEVEL


def test_the_test_rejects_a_shifted_sampler():
    draws = DiscreteGaussian(10.0, 1).rvs(DRAWS, random_state=7)
    assert p_value(draws, DiscreteGaussian(10.0)) < LEVEL


def test_array_of_scales():
    sigma2 = np.array([0.3, 10.0, 1e4])
    law = DiscreteGaussian(sigma2, loc=[0, 1, 2])
    draws = law.rvs((DRAWS // 2, 3), random_state=3)
    for j in range(3):
        assert p_value(draws[:, j], DiscreteGaussian(sigma2[j], j)) > LEVEL
    assert law.rvs(random_state=1).shape == (3,)


@pytest.mark.parametrize(
    "law",
    [
        DiscreteGaussian(0.5),
        DiscreteGaussian(50.0, 3),
        DiscreteLaplace(2.0),
        FiniteLaw(0, [0.25, 0.75]),
    ],
    ids=repr,
)
def test_seeds_and_sizes(law):
    first = law.rvs(50, random_state=5)
    assert first.dtype == np.int64
    assert first.tolist() == law.rvs(50, random_state=np.random.default_rng(5)).tolist()
    assert first.tolist() != law.rvs(50, random_state=6).tolist()
    assert first.tolist() == law.rvs(50, random_state=np.random.SeedSequence(5)).tolist()
    assert np.ndim(law.rvs(random_state=1)) == 0
    assert law.rvs((2, 3), random_state=1).shape == (2, 3)
    assert law.rvs(0, random_state=1).shape == (0,)
    assert law.rvs(np.int64(2), random_state=1).shape == (2,)
    for seed in ("x", -1, 1.5):
        with pytest.raises(ArgumentError, match="random_state must be"):
            law.rvs(3, random_state=seed)


@pytest.mark.parametrize("size", [-1, (2, -1), 2.5, "x"])
def test_bad_sizes(size):
    for law in (DiscreteGaussian(1.0), DiscreteLaplace(1.0), FiniteLaw(0, [1.0])):
        with pytest.raises(ArgumentError, match="size must be"):
            law.rvs(size, random_state=1)


def test_sizes_must_hold_the_parameters():
    for law in (DiscreteGaussian([1.0, 2.0]), DiscreteLaplace([1.0, 2.0])):
        with pytest.raises(ArgumentError, match=r"shape \(2,\), got 3"):
            law.rvs(3)


class Script:
    """A generator that proposes what it is told, then zero, which is always taken."""

    def __init__(self, normal, uniform):
        self.normals, self.uniforms = iter([normal, 0.0]), iter([uniform, 0.0])

    def standard_normal(self):
        return next(self.normals)

    def random(self):
        return next(self.uniforms)


@pytest.mark.parametrize("sigma2", [4.0, 10.0, 1e4])
def test_proposals_are_taken_with_the_right_probability(sigma2):
    # Exact rejection: exp(-excess) is w(x) / phi(y) over its largest value, so it is at most 1.
    sigma = math.sqrt(sigma2)
    spread, out = math.sqrt(sigma2 + sigma), np.empty(1, dtype=np.int64)
    least = math.inf
    for y in np.linspace(0.51, 6 * sigma, 200):
        x = np.rint(y)
        excess = x * x / (2 * sigma2) - y * y / (2 * spread**2) + 1 / (8 * sigma)
        least = min(least, excess)
        for factor, taken in ((1 - 1e-9, x), (1 + 1e-9, 0)):
            rng = Script(y / spread, factor * math.exp(-excess))
            _kernels.fill_discrete_gaussian.py_func(rng, np.array([sigma2]), out)
            assert out[0] == taken, (y, factor)
    assert least > -1e-12


@pytest.mark.parametrize("sigma2", [0.4, 30.0])
def test_the_kernel_without_its_compiler(sigma2):
    out = np.empty(3000, dtype=np.int64)
    rng = np.random.default_rng(12)
    _kernels.fill_discrete_gaussian.py_func(rng, np.array([sigma2]), out)
    assert p_value(out, DiscreteGaussian(sigma2)) > LEVEL
    compiled = np.empty(3000, dtype=np.int64)
    _kernels.fill_discrete_gaussian(np.random.default_rng(12), np.array([sigma2]), compiled)
    assert out.tolist() == compiled.tolist()

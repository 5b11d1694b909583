"""Draws and probabilities of the discrete Gaussian."""

import random
from fractions import Fraction

import numpy as np
from peers.comparison import Case, Comparison
from scipy import stats

from bayesrisk import DiscreteGaussian

SIGMA2, DRAWS = Fraction(5039, 1000), 10_000_000
LAW = DiscreteGaussian(float(SIGMA2))


def assert_drawn_from_law(draws: np.ndarray) -> None:
    """Chi-square over the counts with at least 20 expected draws; wrong once in a million runs."""
    values = np.arange(-12, 13)
    expected = LAW.pmf(values) * draws.size
    values, expected = values[expected >= 20], expected[expected >= 20]
    found = np.array([(draws == v).sum() for v in values])
    rest = draws.size - found.sum(), draws.size - expected.sum()
    statistic = ((found - expected) ** 2 / expected).sum() + (rest[0] - rest[1]) ** 2 / rest[1]
    assert stats.chi2.sf(statistic, values.size) > 1e-6


def draws_opendp() -> Case:
    import opendp.prelude as opendp

    opendp.enable_features("contrib")
    some = 20_000
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    mechanism = opendp.m.make_gaussian(*space, scale=float(SIGMA2) ** 0.5)
    zeros, rng = [0] * some, np.random.default_rng(1)
    assert_drawn_from_law(np.array(mechanism(zeros)))
    assert_drawn_from_law(LAW.rvs(1_000_000, rng))
    return Case(lambda: LAW.rvs(DRAWS, rng), lambda: mechanism(zeros), DRAWS, some)


def exact_bernoulli(power: Fraction, rng: random.Random) -> bool:
    """Return true with probability exp(-power), by comparisons of whole numbers alone."""
    while power > 1:
        if not exact_bernoulli(Fraction(1), rng):
            return False
        power -= 1
    k = 1
    while rng.randrange(power.denominator * k) < power.numerator:
        k += 1
    return k % 2 == 1


def exact_draw(sigma2: Fraction, rng: random.Random) -> int:
    """Draw by rejection from a discrete Laplace law; no number is rounded."""
    scale = int(float(sigma2) ** 0.5) + 1
    while True:
        fraction = rng.randrange(scale)
        if not exact_bernoulli(Fraction(fraction, scale), rng):
            continue
        whole = 0
        while exact_bernoulli(Fraction(1), rng):
            whole += 1
        size, negative = fraction + scale * whole, rng.randrange(2)
        if negative and size == 0:
            continue
        if exact_bernoulli((size - sigma2 / scale) ** 2 / (2 * sigma2), rng):
            return -size if negative else size


def draws_rational() -> Case:
    some, slow, rng = 3_000, random.Random(2), np.random.default_rng(2)  # noqa: S311 (a seed)

    def theirs() -> list[int]:
        return [exact_draw(SIGMA2, slow) for _ in range(some)]

    assert_drawn_from_law(np.array([exact_draw(SIGMA2, slow) for _ in range(20_000)]))
    return Case(lambda: LAW.rvs(DRAWS, rng), theirs, DRAWS, some)


def draws_numpy() -> Case:
    rng = np.random.default_rng(3)
    support = np.arange(-60, 61)
    weight = np.exp(-(support**2) / (2.0 * float(SIGMA2)))
    weight /= weight.sum()
    np.testing.assert_allclose(LAW.pmf(support), weight, rtol=1e-13)
    assert_drawn_from_law(rng.choice(support, size=1_000_000, p=weight))

    def theirs() -> np.ndarray:
        return rng.choice(support, size=DRAWS // 10, p=weight)

    return Case(lambda: LAW.rvs(DRAWS, rng), theirs, DRAWS, DRAWS // 10)


class Generic(stats.rv_discrete):
    """The law as one adds it to SciPy."""

    def _pmf(self, x: np.ndarray) -> np.ndarray:
        weight = np.exp(-(np.arange(-60, 61) ** 2) / (2.0 * float(SIGMA2)))
        return np.exp(-(x**2) / (2.0 * float(SIGMA2))) / weight.sum()


def pmf_scipy() -> Case:
    points = np.random.default_rng(4).integers(-10, 11, 1_000_000)
    generic = Generic(a=-np.inf, name="generic")
    # Exponents of at most 10, of doubles: ten roundings.
    np.testing.assert_allclose(LAW.pmf(points), generic.pmf(points), rtol=1e-14)
    return Case(lambda: LAW.pmf(points), lambda: generic.pmf(points))


DRAWN = "Draws of the discrete Gaussian, σ² = 5.039"
ALL = [
    Comparison(
        DRAWN,
        "DiscreteGaussian.rvs",
        "OpenDP",
        ("opendp",),
        "both pass the same chi-square test against the exact probabilities",
        "OpenDP's draws are exact and come from a cryptographic source: what a release needs. Ours"
        " are for simulation, from a seed, and never protect anybody.",
        draws_opendp,
    ),
    Comparison(
        DRAWN,
        "DiscreteGaussian.rvs",
        "rejection in whole numbers (standard library)",
        (),
        "both pass the same chi-square test against the exact probabilities",
        "the other rounds nowhere, and is plain Python, which nobody tuned",
        draws_rational,
    ),
    Comparison(
        DRAWN,
        "DiscreteGaussian.rvs",
        "NumPy's `choice` from a table of 121 values",
        ("numpy",),
        "probabilities to 1e-13; the same chi-square test",
        "a table ends at 60, which for this σ² loses nothing that a draw could show",
        draws_numpy,
    ),
    Comparison(
        "Probabilities of a million counts",
        "DiscreteGaussian.pmf",
        "SciPy's `rv_discrete`, with `_pmf` written out",
        ("scipy",),
        "to 1e-14, relative",
        "SciPy checks that arguments are whole and within the support, as for any law",
        pmf_scipy,
    ),
]

"""Exact likelihoods against SciPy's generic discrete distribution, the slow obvious way."""

import numpy as np
from scipy import stats

from bayesrisk import DiscreteGaussian

POINTS = np.random.default_rng(6).integers(-10, 11, 100_000)


class _Generic(stats.rv_discrete):
    def _pmf(self, x):
        support = np.arange(-60, 61)
        return np.exp(-(x**2) / 8.0) / np.exp(-(support**2) / 8.0).sum()

    def _cdf(self, x):
        return np.array([self._pmf(np.arange(-60, k + 1)).sum() for k in np.atleast_1d(x)])


def test_pmf(compare):
    generic = _Generic(a=-np.inf, name="generic")
    law = DiscreteGaussian(4.0)
    np.testing.assert_allclose(law.pmf(POINTS), generic.pmf(POINTS), rtol=1e-13)
    compare(
        lambda: law.pmf(POINTS),
        lambda: generic.pmf(POINTS),
        ours_units=POINTS.size,
        twin_units=POINTS.size,
    )


def test_cdf(compare):
    generic = _Generic(a=-np.inf, name="generic")
    law, few = DiscreteGaussian(4.0), POINTS[:2000]
    np.testing.assert_allclose(law.cdf(few), generic.cdf(few), rtol=1e-12)
    compare(
        lambda: law.cdf(POINTS),
        lambda: generic.cdf(few),
        ours_units=POINTS.size,
        twin_units=few.size,
    )

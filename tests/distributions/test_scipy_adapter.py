"""The SciPy face of a law gives the law's own numbers."""

import numpy as np
import pytest
from scipy import stats

from bayesrisk import DiscreteGaussian, DiscreteLaplace, FiniteLaw
from bayesrisk.distributions import as_rv_discrete

LAWS = [
    DiscreteGaussian(4.0),
    DiscreteGaussian(0.3, 2),
    DiscreteLaplace(2.0),
    FiniteLaw(1, [0.5] * 2),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_interface_forwards_to_the_law(law):
    adapter = as_rv_discrete(law)
    assert isinstance(adapter, stats.rv_discrete)
    frozen, x, q = adapter(), np.arange(-3, 6), np.array([0.1, 0.4, 0.999])
    with np.errstate(divide="ignore"):
        for name in ("pmf", "cdf", "sf", "logpmf", "logcdf", "logsf"):
            for scipy_law in (adapter, frozen):
                values = getattr(scipy_law, name)(x)
                assert values == pytest.approx(getattr(law, name)(x), rel=1e-15, abs=0), name
    assert frozen.ppf(q).tolist() == law.ppf(q).tolist()
    assert frozen.isf(q).tolist() == law.isf(q).tolist()
    assert frozen.mean() == pytest.approx(law.mean(), abs=1e-15)
    assert frozen.var() == pytest.approx(law.var(), rel=1e-15, abs=0)
    assert frozen.std() == pytest.approx(law.std(), rel=1e-15, abs=0)
    assert frozen.entropy() == pytest.approx(law.entropy(), rel=1e-15, abs=0)
    assert frozen.support() == law.support()
    assert frozen.median() == law.median()


def test_location_shifts_the_law():
    frozen = as_rv_discrete(DiscreteGaussian(4.0))(loc=10)
    assert frozen.pmf(11) == DiscreteGaussian(4.0, 10).pmf(11)
    assert frozen.mean() == 10.0


def test_draws():
    adapter = as_rv_discrete(DiscreteGaussian(9.0), name="noise")
    assert adapter.name == "noise"
    draws = adapter.rvs(size=20_000, random_state=np.random.default_rng(1))
    assert draws.var() == pytest.approx(9.0, rel=0.05, abs=0)
    again = adapter.rvs(size=20_000, random_state=np.random.default_rng(1))
    assert draws.tolist() == again.tolist()
    legacy = adapter.rvs(size=5, random_state=3)
    assert legacy.tolist() == adapter.rvs(size=5, random_state=3).tolist()

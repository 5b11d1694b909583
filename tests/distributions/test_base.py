"""What every law inherits: quantile search, seeds and sizes, on laws made for the purpose."""

import numpy as np
import pytest

from bayesrisk import DiscreteGaussian
from bayesrisk._base.randomness import generator
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.base import _first_true, _whole_size
from bayesrisk.interfaces import NoiseLaw


class Uniform(CountLaw):
    """Uniform on 0..9, with a guess that is always far off."""

    shape = ()

    def logpmf(self, x):
        inside = (np.asarray(x) >= 0) & (np.asarray(x) <= 9)
        with np.errstate(divide="ignore"):
            return np.log(np.where(inside, 0.1, 0.0))

    def logcdf(self, x):
        with np.errstate(divide="ignore"):
            return np.log(np.clip(np.floor(np.asarray(x)) + 1, 0, 10) / 10)

    def logsf(self, x):
        with np.errstate(divide="ignore"):
            return np.log(1 - np.clip(np.floor(np.asarray(x)) + 1, 0, 10) / 10)

    def support(self):
        return 0, 9

    def mean(self):
        return 4.5

    def var(self):
        return 8.25

    def rvs(self, size=None, random_state=None):
        return generator(random_state).integers(0, 10, _whole_size(size, ()))

    def _guess(self, log_tail, side):
        return np.full(np.shape(log_tail), 1e6)


def test_a_law_of_ones_own():
    law = Uniform()
    assert isinstance(law, NoiseLaw)
    assert law.ppf([0.05, 0.1 + 1e-9, 0.5 + 1e-9, 0.99]).tolist() == [0.0, 1.0, 5.0, 9.0]
    assert law.isf([0.05, 0.55, 0.95]).tolist() == [9.0, 4.0, 0.0]
    assert law.ppf([0.0, 1.0]).tolist() == [-1.0, 9.0]
    assert law.isf([0.0, 1.0]).tolist() == [9.0, -1.0]
    assert law.pmf(3) == pytest.approx(0.1)
    assert law.cdf(3) + law.sf(3) == pytest.approx(1.0)
    assert law.std() == pytest.approx(8.25**0.5)


def test_draws_follow_the_quantiles_where_a_law_has_none_of_its_own():
    class Drawn(Uniform):
        rvs = CountLaw.rvs

    law, size = Drawn(), (4, 5000)
    draws = law.rvs(size, random_state=1)
    again = law.ppf(np.random.default_rng(1).uniform(np.nextafter(0.0, 1.0), 1.0, size))
    assert draws.dtype == np.int64
    assert np.array_equal(draws, again)
    counts = np.bincount(draws.ravel(), minlength=10)
    assert counts.size == 10
    assert np.abs(counts - 2000).max() < 5.0 * np.sqrt(20_000 * 0.09)


def test_the_default_guess_only_costs_steps():
    class Near(Uniform):
        _guess = CountLaw._guess

    q = np.linspace(0.01, 0.99, 50)
    assert Near().ppf(q).tolist() == Uniform().ppf(q).tolist()


@pytest.mark.parametrize("guess", [-500.0, 17.0, 18.0, 10.0**6])
def test_the_search_finds_the_first_true(guess):
    low, high = np.array(-1000.0), np.array(10.0**7)
    assert _first_true(lambda x: x >= 18, np.array(guess), low, high) == 18.0
    assert _first_true(lambda x: x >= -1000, np.array(guess), low, high) == -1000.0
    assert _first_true(lambda x: x >= 10**8, np.array(guess), low, high) == 10.0**7


def test_the_abstract_law_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        CountLaw()


def test_deep_quantiles():
    law = DiscreteGaussian(1e10)
    for q in (1e-300, 1e-100, 1e-17):
        x = law.isf(q)
        assert law.sf(x) <= q < law.sf(x - 1)
        assert law.ppf(q) == pytest.approx(-x, abs=1)


@pytest.mark.parametrize("value", [2.0**54, 2.0**61, -(2.0**61)])
def test_quantiles_where_doubles_are_more_than_one_apart(value):
    calls = []

    def reached(x):
        calls.append(x)
        assert len(calls) < 3000, "the bisection does not end"
        return x >= value

    low, high = np.array(-np.inf), np.array(np.inf)
    found = _first_true(reached, np.array(0.5 * value), low, high)
    assert found == value


def test_quantiles_of_the_widest_law():
    law = DiscreteGaussian(1e30)
    x = law.isf([1e-20, 1e-300])
    # Neighbouring doubles out there are up to 8 apart, which moves the tail by 1e-13 of it.
    assert law.sf(x) == pytest.approx([1e-20, 1e-300], rel=1e-12, abs=0)

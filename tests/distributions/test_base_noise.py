"""A budget with its sensitivity, and the law that it stands for."""

import dataclasses
import math

import numpy as np
import pytest
from refusals import NOT_POSITIVE, refuses

from bayesrisk import ArgumentError, DiscreteGaussian, Noise, count_posterior, posterior_probability
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference import multilevel_posterior
from bayesrisk.risk import multilevel_marginal_posterior


def test_the_law_of_a_budget():
    law = Noise(rho=[0.1, 2.0], sensitivity=math.sqrt(2.0)).law()
    np.testing.assert_allclose(law.sigma2, [10.0, 0.5], rtol=1e-15)
    assert law.loc == 0
    assert Noise(rho=0.25).law().sigma2 == 2.0


def test_a_budget_and_its_law_give_the_same_answers():
    budget = Noise(rho=[0.1, 0.3], sensitivity=1.5)
    law = budget.law()
    given = [
        multilevel_posterior([3, 1], noise=noise, prior=0.2).posterior for noise in (budget, law)
    ]
    assert given[0] == pytest.approx(given[1], rel=1e-14)
    given = [multilevel_marginal_posterior(noise=noise, prior=0.2).ratio for noise in (budget, law)]
    assert given[0] == pytest.approx(given[1], rel=1e-14)
    # Control: the same budgets with another sensitivity are other noise.
    other = multilevel_marginal_posterior(noise=Noise(rho=[0.1, 0.3]), prior=0.2).ratio
    assert other > given[0] * 1.1


def test_the_general_form_takes_a_budget():
    general = count_posterior(3, noise=Noise(rho=0.1), prior_pmf=[0.8, 0.2])
    assert general[1] == pytest.approx(posterior_probability(3, rho=0.1, prior=0.2), rel=1e-13)


def test_noise_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Noise(rho=0.1).rho = 0.2


def test_bad_arguments():
    for bad in NOT_POSITIVE:
        assert refuses(lambda v: Noise(rho=v), "rho", bad)
        assert refuses(lambda v: Noise(rho=0.1, sensitivity=v), "sensitivity", bad)
    with pytest.raises(ShapeError, match="do not broadcast"):
        Noise(rho=[0.1, 0.2, 0.3], sensitivity=[1.0, 2.0])
    with pytest.raises(ArgumentError, match="sigma2 must be <= "):
        Noise(rho=1e-40).law()
    for bad in (None, 0.1, "law", {"rho": 0.1}):
        with pytest.raises(ArgumentTypeError, match=r"noise must be a Noise\(rho=\.\.\.\) or"):
            multilevel_posterior([1, 2], noise=bad, prior=0.5)
    with pytest.raises(ArgumentError, match="noise must be centred on 0"):
        multilevel_posterior([1, 2], noise=DiscreteGaussian(1.0, loc=1), prior=0.5)

"""Priors of leaves: their ratios against SciPy's laws, and what is refused."""

import numpy as np
import pytest
from scipy import stats

from bayesrisk import ArgumentError
from bayesrisk.exceptions import ShapeError
from bayesrisk.inference import LeafPrior

X = np.arange(40)


def ratios(logpmf):
    return np.diff(logpmf(np.arange(41)))


def hurdle(w, law):
    def logpmf(x):
        positive = np.log(w) + law.logpmf(x) - law.logsf(0)
        return np.where(x == 0, np.log1p(-w), positive)

    return logpmf


@pytest.mark.parametrize(
    ("prior", "logpmf"),
    [
        (LeafPrior.flat(), lambda x: np.zeros(x.size)),
        (LeafPrior.poisson(2.5), stats.poisson(2.5).logpmf),
        (
            LeafPrior.negative_binomial(3.0, dispersion=0.7),
            stats.nbinom(1 / 0.7, 1 / (1 + 0.7 * 3)).logpmf,
        ),
        (
            LeafPrior.negative_binomial(0.2, dispersion=4.0),
            stats.nbinom(0.25, 1 / (1 + 4.0 * 0.2)).logpmf,
        ),
        (LeafPrior.hurdle(0.05, mean=2.0), hurdle(0.05, stats.geom(0.5))),
        (LeafPrior.hurdle(0.05, mean=2.0, positive="poisson"), hurdle(0.05, stats.poisson(2.0))),
    ],
)
def test_ratios_are_those_of_the_law(prior, logpmf):
    np.testing.assert_allclose(prior.log_ratios(X), ratios(logpmf), rtol=1e-10, atol=1e-12)


def test_one_person_at_most():
    prior = LeafPrior.hurdle(0.25, mean=1.0)
    np.testing.assert_allclose(prior.log_ratios([0, 1]), [np.log(1 / 3), -np.inf])


def test_parameters_per_leaf():
    prior = LeafPrior.hurdle([0.1, 0.2], mean=[1.5, 2.0])
    for i, (w, mean) in enumerate([(0.1, 1.5), (0.2, 2.0)]):
        one = LeafPrior.hurdle(w, mean=mean)
        np.testing.assert_allclose(prior.log_ratios(3)[i], one.log_ratios(3))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LeafPrior.poisson(0.0),
        lambda: LeafPrior.negative_binomial(1.0, dispersion=0.0),
        lambda: LeafPrior.hurdle(1.0, mean=2.0),
        lambda: LeafPrior.hurdle(0.5, mean=0.5),
        lambda: LeafPrior.hurdle(0.5, mean=2.0, positive="normal"),
        lambda: LeafPrior.flat().log_ratios(-1),
    ],
)
def test_out_of_range(make):
    with pytest.raises(ArgumentError):
        make()


def test_shapes_must_broadcast():
    with pytest.raises(ShapeError):
        LeafPrior.hurdle([0.1, 0.2], mean=[1.0, 2.0, 3.0])

"""Priors of leaves: their ratios against SciPy's laws, and what is refused."""

import numpy as np
import pytest
from scipy import stats

from bayesrisk import ArgumentError, Tree, tree_posterior
from bayesrisk.distributions import FiniteLaw
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference import LeafPrior, sample_tree
from bayesrisk.inference.tree import _kernels as kernels

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


def test_what_a_window_of_a_leaf_leaves_out_is_within_its_share():
    """By the terms of all counts, under priors that may have nearly everything on 0."""
    rng, without_zero, heavy_zero = np.random.default_rng(42), 0, 0
    x, log_eps = np.arange(4000), np.log(1e-9)
    for _ in range(600):
        size = rng.choice([0.25, 1.0, 3.0, np.inf])
        log_ratio = np.log(rng.uniform(1, 60)) if size == np.inf else np.log(rng.uniform(0.5, 1))
        law = np.array([rng.uniform(-80, 5), size, log_ratio])
        lam, theta = 10.0 ** rng.uniform(-3, 0), rng.uniform(-0.2, 0.2)
        leaf = kernels.Leaf(int(rng.integers(-10, 90)), rng.uniform(-0.5, 0.5), lam, law, theta)
        low, high, _, cut = kernels.leaf_window(leaf, log_eps, 0, 2**52)
        steps = LeafPrior("any", *law).log_ratios(x[:-1])
        terms = np.append(0.0, np.cumsum(steps)) + theta * x - lam * (x - leaf.y - leaf.frac) ** 2
        weight = np.exp(terms - terms.max())
        inside = (x >= low) & (x <= high)
        left_out = weight[~inside].sum() / weight[inside].sum()
        assert left_out <= cut * (1 + 1e-9) <= 2e-9 * (1 + 1e-8)
        without_zero += low > 1
        heavy_zero += low == 0 and weight[0] > weight[1:].sum()
    assert min(without_zero, heavy_zero) > 50


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


def test_a_function_is_answered_with_the_law_that_says_the_same():
    tree = Tree.path([2, 1], [-1], n_siblings=2, rho=[0.1, 0.25], prior=0.5)

    def log_weight(counts):
        return -0.3 * np.asarray(counts)

    with pytest.raises(ArgumentTypeError, match=r"write FiniteLaw\(0, p\)"):
        tree_posterior(tree, leaf_prior=log_weight)
    p = np.exp(log_weight(np.arange(80)))
    exact = tree_posterior(tree, leaf_prior=FiniteLaw(0, p / p.sum())).mean
    drawn = sample_tree(tree, leaf_prior=log_weight, draws=4000, warmup=200, chains=4, rng=1)
    error = 5.0 * drawn.counts.std() / np.sqrt(1000.0)
    np.testing.assert_allclose(drawn.counts.mean(axis=(0, 1)), exact, atol=error)

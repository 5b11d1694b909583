"""What a tree's posterior offers, and what is refused."""

import numpy as np
import pytest
from oracles.trees import frame_of

from bayesrisk import ArgumentError, DataError, FiniteLaw, Tree, tree_posterior
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference import LeafPrior


@pytest.fixture(scope="module")
def small():
    frame = frame_of({"g": None, "a": "g", "b": "g"}, [3, None, -1], [0.25, 0.1, 0.1])
    return tree_posterior(Tree.from_frame(frame), leaf_prior=LeafPrior.poisson(1.0))


def test_quantiles_are_those_of_the_pmf(small):
    levels = [0.025, 0.5, 0.975]
    table = small.quantile(levels)
    assert table.shape == (3, 3)
    for v, node in enumerate(small.tree.names):
        law = small.law(node)
        np.testing.assert_array_equal(table[:, v], law.ppf(levels))
        assert law.error_bound < 1e-13
    np.testing.assert_array_equal(small.quantile(0.5), table[1])


def test_frame(small):
    frame = small.to_frame()
    assert frame["node"].tolist() == ["g", "a", "b"]
    assert frame["parent"].isna().tolist() == [True, False, False]
    assert frame["noisy_count"].isna().tolist() == [False, True, False]
    np.testing.assert_array_equal(frame["mean"], small.mean)
    assert small.leaf_prior == "poisson"
    with pytest.raises(ValueError, match="read-only"):
        small.mean[0] = 0.0


def test_refusals(small):
    tree = small.tree
    with pytest.raises(ArgumentTypeError, match="tree"):
        tree_posterior("tree", leaf_prior="flat")
    with pytest.raises(ArgumentError, match="leaf_prior must be one of flat"):
        tree_posterior(tree, leaf_prior="sparse")
    with pytest.raises(ArgumentTypeError, match="leaf_prior"):
        tree_posterior(tree, leaf_prior=3)
    with pytest.raises(ArgumentTypeError, match="use_targets"):
        tree_posterior(tree, leaf_prior="flat", use_targets=1)
    with pytest.raises(ShapeError, match="2 leaves, got 3"):
        tree_posterior(tree, leaf_prior=[FiniteLaw(0, [1.0])] * 3)
    with pytest.raises(ShapeError, match="2 leaves"):
        tree_posterior(tree, leaf_prior=LeafPrior.poisson([1.0, 2.0, 3.0]))
    with pytest.raises(ArgumentError, match="negative counts"):
        tree_posterior(tree, leaf_prior=FiniteLaw(-1, [0.5, 0.5]))
    with pytest.raises(ArgumentError, match="tail"):
        tree_posterior(tree, leaf_prior="flat", tail=0.0)
    with pytest.raises(DataError, match="no node"):
        small.pmf("z")
    with pytest.raises(ArgumentError, match="q must be"):
        small.quantile(1.0)


def test_an_improper_posterior_is_refused_by_name():
    frame = frame_of(
        {"g": None, "a": "g", "b": "g", "c": "a"}, [3, None, 1, None], [0.0, 0.1, 0.1, 0.1]
    )
    with pytest.raises(ArgumentError, match=r"leaf 'c': .* improper"):
        tree_posterior(Tree.from_frame(frame), leaf_prior="flat")


def test_a_leaf_bounded_too_loosely_is_refused_by_name():
    frame = frame_of({"g": None, "a": "g", "b": "g"}, [2**45, None, None], [0.1, 0.0, 0.0])
    with pytest.raises(ArgumentError, match="leaf 'b' needs a release"):
        tree_posterior(Tree.from_frame(frame), leaf_prior="flat")

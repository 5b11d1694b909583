"""The risk of every leaf's target, against enumeration one target at a time."""

import numpy as np
import pytest
from oracles import trees as oracle
from oracles.trees import frame_of

from bayesrisk import ArgumentError, DataError, FiniteLaw, Tree
from bayesrisk.inference import LeafPrior, target_posteriors

FRAME = frame_of(
    {
        "top": None,
        "left": "top",
        "right": "top",
        "a": "left",
        "b": "left",
        "c": "right",
        "d": "right",
    },
    [7, 3, None, -2, 1, 4, 0],
    [0.3, 0.4, 0.4, 0.5, 0.6, 0.5, 0.0],
    known_count=[None, None, None, 0, 1, 3, None],
    prior=[None, None, None, 0.5, 0.1, 0.8, None],
)
PRIORS = {
    "poisson": (LeafPrior.poisson(0.6), oracle.log_poisson(0.6)),
    "negative binomial": (
        LeafPrior.negative_binomial(0.5, dispersion=0.8),
        oracle.log_negative_binomial(0.5, 0.8),
    ),
    "hurdle": (LeafPrior.hurdle(0.2, mean=1.3), oracle.log_hurdle_geometric(0.2, 1.3)),
}


def one_target(log_prior, node, known, prior):
    """Return the target's posterior by listing every configuration."""
    leaves = oracle.leaves_of(FRAME)
    supports = [np.arange(22)] * len(leaves)
    logs = [log_prior] * len(leaves)
    at = leaves.index(node)
    supports[at] = np.array([known, known + 1])
    logs[at] = lambda x: np.log(prior if x == known + 1 else 1 - prior)
    return oracle.brute_force(FRAME, supports, logs)[node][known + 1]


@pytest.mark.parametrize("name", PRIORS)
def test_every_target_against_enumeration(name):
    prior, log_prior = PRIORS[name]
    result = target_posteriors(Tree.from_frame(FRAME), leaf_prior=prior)
    assert result.names.tolist() == ["a", "b", "c"]
    for i, node in enumerate(result.names):
        truth = one_target(log_prior, node, int(result.known_count[i]), result.prior[i])
        # The listing ends at 21 for each leaf: what it lacks is far below 1e-10.
        assert result.posterior[i] == pytest.approx(truth, abs=1e-10)
        assert result.risk_ratio[i] == result.posterior[i] / result.prior[i]
    assert np.all(result.truncation_bound <= 1e-12)
    assert result.status == "exact"


def test_a_known_count_far_from_everything_released():
    """The target's leaf is improbable under the prior of the leaves: windows must reach it."""
    frame = FRAME.assign(known_count=[None, None, None, 25, None, None, None])
    frame["prior"] = [None, None, None, 0.5, None, None, None]
    risk = target_posteriors(Tree.from_frame(frame), leaf_prior=LeafPrior.poisson(0.6))
    leaves = [np.array([25, 26]), *[np.arange(22)] * 3]
    logs = [lambda _: 0.0, *[oracle.log_poisson(0.6)] * 3]
    truth = oracle.brute_force(frame, leaves, logs)["a"][26]
    assert risk.status == "exact"
    assert risk.posterior[0] == pytest.approx(truth, rel=1e-9)


def test_refusals():
    tree = Tree.from_frame(FRAME)
    with pytest.raises(DataError, match="must have a leaf with known_count"):
        target_posteriors(
            Tree.from_frame(FRAME.drop(columns=["known_count", "prior"])), leaf_prior="flat"
        )
    with pytest.raises(ArgumentError, match=r"allow known_count and one .* got 3 for leaf 'c'"):
        target_posteriors(tree, leaf_prior=FiniteLaw(0, [0.4, 0.3, 0.2, 0.1]))
    with pytest.raises(ArgumentError, match="tail"):
        target_posteriors(tree, leaf_prior=LeafPrior.poisson(1.0), tail=1.0)

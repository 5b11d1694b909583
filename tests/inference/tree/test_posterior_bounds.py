"""Bounds and exact totals in a tree, against enumeration and against closed forms."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles import trees as oracle
from oracles.trees import frame_of

from bayesrisk import ArgumentError, DataError, Tree, tree_posterior
from bayesrisk.inference import LeafPrior, sample_tree, target_posteriors
from bayesrisk.inference.tree import plan as plans

TOLERANCE = 1e-12
COUNTS = np.arange(24)


def pair(**columns):
    """Return two noisy counts, 30 and 80, whose sum is 100."""
    frame = {
        "node": ["all", "a", "b"], "parent": [None, "all", "all"], "noisy_count": [None, 30, 80],
        "sigma2": [None, 25.0, 25.0], "lower": [100, None, None], "upper": [100, None, None],
    }  # fmt: skip
    return Tree.from_frame(pd.DataFrame(frame | columns))


def test_two_noisy_counts_with_an_exact_total():
    """The discrete Gaussian law of (30 + 100 - 80) / 2 with half the noise: a closed form."""
    found = tree_posterior(pair(), leaf_prior="flat")
    np.testing.assert_allclose(found.mean, [100.0, 25.0, 75.0], atol=1e-12)
    np.testing.assert_allclose(found.sd[1:] ** 2, 12.5, rtol=1e-6)  # x >= 0 is seven sd away
    x = np.arange(0, 101)
    law = np.exp(-((x - 25.0) ** 2) / 25.0)
    ours = found.pmf("a").reindex(x, fill_value=0.0)
    np.testing.assert_allclose(ours, law / law.sum(), atol=1e-14)
    free = tree_posterior(pair(lower=None, upper=None), leaf_prior="flat")
    assert free.mean[1] > 29.9  # without the total the two know nothing of each other


def bounded(frame, rng, truth):
    """Return a frame with bounds that hold for a true count of each node."""
    lower, upper = [], []
    for node in frame["node"]:
        kind, x = rng.integers(0, 5), truth[node]
        low = [None, x, max(x - int(rng.integers(0, 3)), 0), None, None][kind]
        high = [None, x, None, x + int(rng.integers(0, 3)), None][kind]
        lower.append(low)
        upper.append(high)
    return frame.assign(lower=pd.array(lower, "Int64"), upper=pd.array(upper, "Int64"))


def log_bound(low, high):
    low = 0 if pd.isna(low) else low
    high = math.inf if pd.isna(high) else high
    return lambda x: 0.0 if low <= x <= high else -math.inf


def random_case(seed):
    rng = np.random.default_rng(seed)
    leaves = int(rng.integers(1, 4))
    parent, active, count = {}, list(range(leaves)), leaves
    while len(active) > 1 or rng.random() < 0.4:
        group = rng.choice(active, size=min(len(active), int(rng.integers(1, 4))), replace=False)
        parent |= dict.fromkeys(group.tolist(), count)
        active = [a for a in active if a not in group] + [count]
        count += 1
    frame = pd.DataFrame(
        {
            "node": [f"n{v}" for v in range(count)],
            "parent": [f"n{parent[v]}" if v in parent else None for v in range(count)],
            "noisy_count": rng.integers(-3, 9, count),
            "rho": np.exp(rng.uniform(np.log(0.3), np.log(2.0), count)),
        }
    )
    names = oracle.leaves_of(frame)
    sums = oracle.subtree_sums(frame, names, rng.integers(0, 6, (1, leaves)))
    return bounded(frame, rng, {node: int(x[0]) for node, x in sums.items()}), names


@pytest.mark.parametrize("short", [2**12, 0])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_trees_with_bounds_against_enumeration(short, seed):
    """With 0 every bound cuts windows, with 4096 every one is a table: the same posterior."""
    frame, leaves = random_case(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "_SHORT", short)
        found = tree_posterior(Tree.from_frame(frame), leaf_prior="flat")
    logs = {r.node: log_bound(r.lower, r.upper) for r in frame.itertuples()}
    truth = oracle.brute_force(frame, [COUNTS] * len(leaves), [oracle.log_flat] * len(leaves), logs)
    assert oracle.worst_gap(found, truth) < TOLERANCE
    assert found.truncation_bound <= 1e-15


@settings(max_examples=20, deadline=None)
@given(
    low=st.integers(0, 40),
    width=st.integers(0, 40),
    noisy=st.integers(-20, 60),
    mean=st.floats(0.5, 30.0),
    short=st.sampled_from([2**12, 0]),
)
def test_a_bounded_leaf_under_other_priors(low, width, noisy, mean, short):
    frame = frame_of({"x": None}, [noisy], [0.05], lower=[low], upper=[low + width])  # fmt: skip
    priors = {
        oracle.log_poisson(mean): LeafPrior.poisson(mean),
        oracle.log_negative_binomial(mean, 0.7): LeafPrior.negative_binomial(mean, dispersion=0.7),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "_SHORT", short)
        for log_prior, prior in priors.items():
            found = tree_posterior(Tree.from_frame(frame), leaf_prior=prior)
            x = np.arange(low, low + width + 1)
            truth = oracle.brute_force(frame, [x], [log_prior])
            assert oracle.worst_gap(found, truth) < TOLERANCE


def test_wide_bounds_need_no_table():
    """A facility holds 1 to 99,999 people: the window is that of the noise, cut off at 1."""
    n = 300
    frame = pd.DataFrame(
        {
            "node": ["all", *range(n)], "parent": [None, *["all"] * n],
            "noisy_count": [None, *[-2] * n], "rho": [None, *[0.1] * n],
            "lower": [None, *[1] * n], "upper": [None, *[99_999] * n],
        }
    )  # fmt: skip
    found = tree_posterior(Tree.from_frame(frame), leaf_prior="flat")
    x = np.arange(1, 80)
    law = np.exp(-0.1 * (x + 2.0) ** 2)
    assert found.mean[1] == pytest.approx(x @ law / law.sum(), rel=1e-13)
    assert found.mean[0] == pytest.approx(n * found.mean[1], rel=1e-12)
    assert found.peak_bytes < 3_000_000


def test_an_exact_total_far_from_the_noise():
    """All windows move to where the total wants them."""
    found = tree_posterior(
        pair(lower=[400, None, None], upper=[400, None, None]), leaf_prior="flat"
    )
    np.testing.assert_allclose(found.mean, [400.0, 175.0, 225.0], rtol=1e-9)


def test_a_bound_makes_a_leaf_without_release_proper():
    columns = {"noisy_count": [None, 30, None], "lower": None, "upper": [None, None, 6]}
    found = tree_posterior(pair(**columns), leaf_prior="flat")
    np.testing.assert_allclose(found.pmf("b"), np.full(7, 1 / 7))


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"upper": [99, None, None]}, "row 0, node 'all': lower must be <= upper"),
        (
            {"lower": [None, 60, 41], "upper": [100, None, None]},
            "row 0, node 'all': its bounds and those of its children contradict each other: at "
            "least 101, at most 100",
        ),
        ({"upper": [None, 60, 39]}, "at least 100, at most 99"),
        ({"lower": [-1, None, None]}, "lower must be >= 0"),
        ({"upper": [100.5, None, None]}, "upper must be a whole number"),
    ],
)
def test_bounds_that_contradict_are_named(columns, text):
    with pytest.raises(DataError, match=text):
        pair(**columns)


def test_where_bounds_are_not_used_they_are_refused():
    tree = pair(known_count=[None, 30, None], prior=[None, 0.5, None])
    with pytest.raises(ArgumentError, match="tree must have no lower and upper"):
        target_posteriors(tree, leaf_prior="flat")
    with pytest.raises(ArgumentError, match="tree must have no lower and upper"):
        sample_tree(tree, leaf_prior="flat", draws=10, warmup=1, chains=1, rng=1)

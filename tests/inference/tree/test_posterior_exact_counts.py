"""Counts published without noise are equations: trees, paths and two levels by enumeration."""

import math

import numpy as np
import pandas as pd
import pytest
from oracles import samplers as slow, trees as oracle
from oracles.trees import frame_of
from paths import path_posterior, sample_path

from bayesrisk import (
    ArgumentError,
    DataError,
    FiniteLaw,
    Tree,
    hierarchical_posterior,
    sample_tree,
    tree_posterior,
)
from bayesrisk.inference import LeafPrior, target_posteriors

TOLERANCE = 1e-12


def one(value):
    """Return the log prior of what is certain."""
    return lambda x: 0.0 if x == value else -math.inf


def family(**exact):
    """Return a root with two groups of two and three leaves, and their releases."""
    names = ["top", "A", "B", "a1", "a2", "b1", "b2", "b3"]
    frame = pd.DataFrame(
        {
            "node": names,
            "parent": [None, "top", "top", "A", "A", "B", "B", "B"],
            "noisy_count": [9.0, 3, 5, 2, -1, 0, 3, np.nan],
            "rho": [0.3, 0.5, 0.0, 0.2, 0.4, 0.1, 0.2, 0.0],
        }
    )
    return frame.assign(exact_count=[exact.get(name, np.nan) for name in names])


CASES = [
    {"top": 8},
    {"A": 2},
    {"top": 8, "A": 3},
    {"A": 4, "B": 6},
    {"a1": 0, "top": 10},
    {"b3": 2},
    {"A": 0},
    {"top": 14, "A": 1, "b2": 4},
]


@pytest.mark.parametrize("exact", CASES)
@pytest.mark.parametrize("prior", ["flat", "finite"])
def test_trees_against_enumeration(exact, prior):
    frame = family(**exact)
    log_prior, leaf_prior = {
        "flat": (oracle.log_flat, "flat"),
        "finite": (
            lambda x: math.log((1 + x) / 36) if x < 8 else -math.inf,
            FiniteLaw(0, np.arange(1.0, 9.0) / 36),
        ),
    }[prior]
    if prior == "flat" and not {"top", "B", "b3"} & set(exact):
        frame.loc[frame["node"] == "b3", ["noisy_count", "rho"]] = [2.0, 0.6]
    # Flat leaves run to 15: exp(-0.1 * 16**2) and less is left out, 8e-12.
    supports = [range(16 if prior == "flat" else 15)] * 5
    tree = Tree.from_frame(frame)
    result = tree_posterior(tree, leaf_prior=leaf_prior)
    assert result.status == "exact"
    certain = {name: one(value) for name, value in exact.items()}
    truth = oracle.brute_force(frame, supports, [log_prior] * 5, certain)
    slack = TOLERANCE if "top" in exact and exact["top"] < 15 else 1e-7
    assert oracle.worst_gap(result, truth) < slack
    for name, value in exact.items():
        assert result.pmf(name).to_dict() == {value: 1.0}
        assert result.sd[tree.index(name)] == 0.0


def test_noise_that_vanishes_goes_to_the_equation():
    known = tree_posterior(Tree.from_frame(family(A=2)), leaf_prior=LeafPrior.poisson(2.0))
    frame = family()
    frame.loc[frame["node"] == "A", ["noisy_count", "rho"]] = [2.0, 300.0]
    small = tree_posterior(Tree.from_frame(frame), leaf_prior=LeafPrior.poisson(2.0))
    np.testing.assert_allclose(known.mean, small.mean, atol=1e-12)


def test_chains_of_single_children_share_what_is_exact():
    frame = frame_of(
        {"top": None, "mid": "top", "leaf": "mid"},
        [5.0, np.nan, 1.0],
        [0.1, 0.0, 0.1],
        exact_count=[np.nan, 4.0, np.nan],
    )
    result = tree_posterior(Tree.from_frame(frame), leaf_prior="flat")
    assert result.mean.tolist() == [4.0, 4.0, 4.0]
    frame["exact_count"] = [3.0, 4.0, np.nan]
    with pytest.raises(ArgumentError, match="share a possible count"):
        tree_posterior(Tree.from_frame(frame), leaf_prior="flat")


def test_targets_under_exact_totals():
    frame = family(top=8, A=3).assign(
        known_count=[np.nan] * 3 + [1, 0, 0, 3, 0], prior=[np.nan] * 3 + [0.2] * 5
    )
    tree = Tree.from_frame(frame)
    table = LeafPrior.poisson(2.0)
    risks = target_posteriors(tree, leaf_prior=table).to_frame().set_index("node")
    leaves = oracle.leaves_of(frame)
    for i, leaf in enumerate(leaves):
        k = int(frame["known_count"].iloc[3 + i])
        priors = [oracle.log_poisson(2.0)] * 5
        priors[i] = lambda x, k=k: math.log({k: 0.8, k + 1: 0.2}.get(x, 1e-300))
        supports = [range(9)] * 5
        truth = oracle.brute_force(frame, supports, priors, {"top": one(8), "A": one(3)})
        assert risks.loc[leaf, "posterior"] == pytest.approx(truth[leaf].get(k + 1, 0.0), abs=1e-11)


def test_a_target_in_a_leaf_published_exactly_is_settled():
    frame = family(a1=2).assign(
        known_count=[np.nan] * 3 + [1] + [np.nan] * 4, prior=[np.nan] * 3 + [0.2] + [np.nan] * 4
    )
    risks = target_posteriors(Tree.from_frame(frame), leaf_prior=LeafPrior.poisson(2.0))
    assert risks.posterior.tolist() == [1.0]
    frame["exact_count"] = [np.nan] * 3 + [4.0] + [np.nan] * 4
    with pytest.raises(ArgumentError, match="share a possible count"):
        target_posteriors(Tree.from_frame(frame), leaf_prior=LeafPrior.poisson(2.0))
    frame["exact_count"] = [np.nan] * 3 + [1.0] + [np.nan] * 4
    risks = target_posteriors(Tree.from_frame(frame), leaf_prior=LeafPrior.poisson(2.0))
    assert risks.posterior.tolist() == [0.0]


def test_contradictions_and_bad_values_are_refused():
    with pytest.raises(ArgumentError, match="some set of counts that adds up"):
        tree_posterior(Tree.from_frame(family(A=3, a1=5)), leaf_prior="flat")
    hurdle = LeafPrior.hurdle(0.5, mean=1.0)
    with pytest.raises(ArgumentError, match="leaf_prior must allow the exact count, got 3"):
        tree_posterior(Tree.from_frame(family(a1=3)), leaf_prior=hurdle)
    for bad in (-1, 1.5, np.inf):
        with pytest.raises(DataError, match="row 0, node 'top': exact_count must be"):
            Tree.from_frame(family(top=bad))
    settings = {"draws": 10, "warmup": 1, "chains": 1, "rng": 1}
    with pytest.raises(ArgumentError, match="got none for node 'A'"):
        sample_tree(Tree.from_frame(family(A=3, a1=5)), leaf_prior="flat", **settings)
    gaps = FiniteLaw(0, [0.5, 0.0, 0.5])
    with pytest.raises(ArgumentError, match=r"must allow every count .* gaps for leaf 'a1'"):
        sample_tree(Tree.from_frame(family(A=3)), leaf_prior=gaps, **settings)


@pytest.mark.parametrize("exact", [*CASES[:5], CASES[-1]])
def test_chains_keep_exact_counts(exact):
    tree = Tree.from_frame(family(**exact))
    leaf_prior = LeafPrior.flat()
    if not exact.keys() & {"top", "B", "b3"}:
        leaf_prior = LeafPrior.poisson(1.5)  # nothing is released of b3 or above it but the top
    truth = tree_posterior(tree, leaf_prior=leaf_prior)
    run = {"draws": 4000, "warmup": 100, "chains": 4, "rng": 5}
    samples = sample_tree(tree, leaf_prior=leaf_prior, **run)
    for node, count in exact.items():
        assert (samples.of(node) == count).all()
    for node in tree.names:
        drawn, pmf = samples.pmf(node), truth.pmf(node)
        likely = drawn[(drawn["error"] > 0.0) & (drawn["probability"] > 5e-3)]
        gap = (likely["probability"] - pmf.reindex(likely.index, fill_value=0.0)) / likely["error"]
        assert not gap.abs().max() > 4.5  # NaN where the count is known


GRANVILLE = {"n_siblings": 3, "rho_block": 0.3, "prior": 0.2, "known_count": 1}


@pytest.mark.parametrize("group", [2, 3, 6])
@pytest.mark.parametrize("release", [(2, 1), (4, -2), (0, 7)])
def test_a_group_published_exactly_in_two_levels(group, release):
    y, total = release
    exact = hierarchical_posterior(y, 0, total, rho_group=0.0, known_total=group, **GRANVILLE)
    weights = {
        x: share * math.exp(-0.3 * (y - x) ** 2 - 0.1 * (total - group + x) ** 2)
        for x, share in ((1, 0.8), (2, 0.2))
    }
    expected = weights[2] / math.fsum(weights.values())
    assert exact.target_probability == pytest.approx(expected, abs=1e-14)
    assert exact.group_pmf.to_dict() == {group: 1.0}
    # The noisy group of a budget that leaves no noise says the same.
    close = hierarchical_posterior(y, group, total, rho_group=400.0, **GRANVILLE)
    assert close.target_probability == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("exact", [(4, None), (None, 9), (4, 9), (2, 4)])
def test_levels_of_a_path_published_exactly(exact):
    rho = [0.3, 0.2 if exact[0] is None else 0.0, 0.4 if exact[1] is None else 0.0]
    arguments = {
        "n_siblings": [2, 3], "rho": rho, "sibling_rho": [0.3, 0.2], "prior": 0.3, "known_count": 1,
        "known_totals": exact,
    }  # fmt: skip
    path = path_posterior([3, 4, 8], [2, 5], **arguments)
    truth = slow.path(
        [3, 4, 8], [2, 5], m=[2, 3], rho=rho, p=0.3, k=1, size=60, sibling_rho=[0.3, 0.2],
        log_priors=[None if n is None else one(n) for n in exact],
    )  # fmt: skip
    there = truth[0][1]
    assert path.target_probability == pytest.approx(there, abs=1e-12)
    for level, n in enumerate(exact, start=1):
        if n is not None:
            assert path.pmf(level).to_dict() == {n: 1.0}
    samples = sample_path([3, 4, 8], [2, 5], **arguments, draws=4000, warmup=200, chains=2, rng=4)
    # Even with one draw in four its own, five standard errors are 0.05.
    assert samples.target.mean() == pytest.approx(there, abs=0.055)


def test_a_point_law():
    law = FiniteLaw.point(-3)
    assert (law.support(), float(law.mean()), float(law.var())) == ((-3, -3), -3.0, 0.0)
    with pytest.raises(ArgumentError, match="start must be a whole number"):
        FiniteLaw.point(0.5)

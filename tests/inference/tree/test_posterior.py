"""Posteriors of whole trees against enumeration, and properties that need no oracle."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from oracles import trees as oracle
from oracles.trees import frame_of

from bayesrisk import FiniteLaw, Tree, tree_posterior
from bayesrisk.inference import LeafPrior
from bayesrisk.inference.tree import _sum_product as engine

TOLERANCE = 1e-12


def random_frame(rng, n_leaves):
    """Return a random tree, chains of single children among it, in shuffled rows."""
    parent, active, count = {}, list(range(n_leaves)), n_leaves
    while len(active) > 1 or rng.random() < 0.3:
        group = rng.choice(active, size=min(len(active), int(rng.integers(1, 5))), replace=False)
        parent |= dict.fromkeys(group.tolist(), count)
        active = [a for a in active if a not in group] + [count]
        count += 1
    rows = rng.permutation(count)
    above = [f"n{parent[v]}" if v in parent else None for v in rows.tolist()]
    return pd.DataFrame({"node": [f"n{v}" for v in rows], "parent": above})


def with_releases(frame, rng, *, low, high, missing=0.25, keep=()):
    n = len(frame)
    rho = np.exp(rng.uniform(np.log(low), np.log(high), n))
    absent, zero = rng.random(n) < missing, rng.random(n) < 0.1
    kept = frame["node"].isin(list(keep)).to_numpy()
    noisy = np.where(absent & ~kept, np.nan, rng.integers(-3, 6, n))
    return frame.assign(noisy_count=noisy, rho=np.where(zero & ~kept, 0.0, rho))


def per_leaf(tree, frame, values):
    """Reorder values listed by the oracle's leaves to the order of ``tree.leaves``."""
    listed = oracle.leaves_of(frame)
    return [values[listed.index(name)] for name in tree.names[tree.leaves]]


def check_against_enumeration(frame, priors, log_priors, supports):
    tree = Tree.from_frame(frame)
    result = tree_posterior(tree, leaf_prior=priors(tree))
    assert result.status == "exact"
    assert result.truncation_bound <= 1e-15
    truth = oracle.brute_force(frame, supports, log_priors)
    assert oracle.worst_gap(result, truth) < TOLERANCE
    return result, truth


@pytest.mark.parametrize("seed", range(20))
def test_finite_priors_of_up_to_six_leaves(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    frame = with_releases(random_frame(rng, n), rng, low=0.02, high=3.0)
    laws = [FiniteLaw(int(rng.integers(0, 3)), rng.dirichlet(np.ones(5))) for _ in range(n)]
    result, truth = check_against_enumeration(
        frame,
        lambda tree: per_leaf(tree, frame, laws),
        [lambda x, law=law: float(law.logpmf(x)) for law in laws],
        [np.arange(law.start, law.start + 5) for law in laws],
    )
    for i, node in enumerate(result.tree.names):
        x, p = np.array(list(truth[node])), np.array(list(truth[node].values()))
        mean = x @ p
        assert result.mean[i] == pytest.approx(mean, abs=1e-11)
        assert result.sd[i] == pytest.approx(np.sqrt((x - mean) ** 2 @ p), abs=1e-10)
        assert result.at_least_one[i] == pytest.approx(p[x >= 1].sum(), abs=TOLERANCE)
        assert truth[node][result.mode[i]] == pytest.approx(p.max(), abs=TOLERANCE)


@pytest.mark.parametrize("seed", range(8))
def test_flat_priors(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    frame = random_frame(rng, n)
    frame = with_releases(frame, rng, low=0.3, high=3.0, keep=oracle.leaves_of(frame))
    check_against_enumeration(frame, lambda _: "flat", [oracle.log_flat] * n, [np.arange(28)] * n)


@pytest.mark.parametrize("seed", range(6))
def test_flat_leaves_without_release_are_bounded_from_above(seed):
    rng = np.random.default_rng(seed)
    frame = frame_of(
        {"top": None, "left": "top", "right": "top", "a": "left", "b": "left", "c": "right"},
        [rng.integers(-4, 9), None, rng.integers(-2, 5), None, 2, None],
        [0.4, 0.1, 0.3, 0.2, 0.5, 0.0],
    )
    check_against_enumeration(frame, lambda _: "flat", [oracle.log_flat] * 3, [np.arange(26)] * 3)


PARAMETERS = {
    "poisson": ([0.3, 1.1, 2.0], lambda a: LeafPrior.poisson(a), oracle.log_poisson),
    "negative binomial": (
        [0.2, 0.5, 0.9],
        lambda a: LeafPrior.negative_binomial(a, dispersion=0.4),
        lambda a: oracle.log_negative_binomial(a, 0.4),
    ),
    "overdispersed": (
        [0.1, 0.2, 0.3],
        lambda a: LeafPrior.negative_binomial(a, dispersion=2.5),
        lambda a: oracle.log_negative_binomial(a, 2.5),
    ),
    "geometric hurdle": (
        [0.05, 0.4, 0.9],
        lambda a: LeafPrior.hurdle(a, mean=1.4),
        lambda a: oracle.log_hurdle_geometric(a, 1.4),
    ),
    "poisson hurdle": (
        [0.05, 0.4, 0.9],
        lambda a: LeafPrior.hurdle(a, mean=1.4, positive="poisson"),
        lambda a: oracle.log_hurdle_poisson(a, 1.4),
    ),
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", range(3))
def test_families_with_one_parameter_per_leaf(name, seed):
    values, make, log_prior = PARAMETERS[name]
    rng = np.random.default_rng(seed)
    frame = random_frame(rng, 3)
    frame = with_releases(frame, rng, low=0.15, high=2.0, keep=oracle.leaves_of(frame))
    check_against_enumeration(
        frame,
        lambda tree: make(per_leaf(tree, frame, values)),
        [log_prior(a) for a in values],
        [np.arange(34)] * 3,
    )


def test_without_any_release_the_posterior_is_the_prior():
    frame = frame_of({"g": None, "a": "g", "b": "g"}, None, 0.0)
    result = tree_posterior(Tree.from_frame(frame), leaf_prior=LeafPrior.poisson(1.5))
    for node, mean in (("a", 1.5), ("b", 1.5), ("g", 3.0)):
        pmf = result.pmf(node)
        truth = np.exp([oracle.log_poisson(mean)(x) for x in pmf.index])
        np.testing.assert_allclose(pmf, truth, atol=1e-14)


@pytest.mark.parametrize("dropped", range(5))
def test_a_tree_that_lacks_one_release_disagrees(dropped):
    frame = frame_of(
        {"top": None, "left": "top", "a": "left", "b": "left", "c": "top"},
        [4, 3, 1, 0, 5],
        [0.4, 0.3, 0.5, 0.6, 0.5],
    )
    result = tree_posterior(Tree.from_frame(frame), leaf_prior="flat")
    wrong = frame.assign(rho=frame["rho"].where(frame.index != dropped, 0.0))
    truth = oracle.brute_force(wrong, [np.arange(26)] * 3, [oracle.log_flat] * 3)
    assert oracle.worst_gap(result, truth) > 1e-3


def test_a_target_leaf_has_two_counts_unless_told_otherwise():
    frame = frame_of(
        {"g": None, "a": "g", "b": "g"},
        [3, 2, 1],
        [0.4, 0.5, 0.5],
        known_count=[None, 1, None],
        prior=[None, 0.3, None],
    )
    tree = Tree.from_frame(frame)
    result = tree_posterior(tree, leaf_prior="flat")
    truth = oracle.brute_force(
        frame, [[1, 2], np.arange(30)], [lambda x: np.log({1: 0.7, 2: 0.3}[x]), oracle.log_flat]
    )
    assert oracle.worst_gap(result, truth) < TOLERANCE
    ignored = tree_posterior(tree, leaf_prior="flat", use_targets=False)
    truth = oracle.brute_force(frame, [np.arange(30)] * 2, [oracle.log_flat] * 2)
    assert oracle.worst_gap(ignored, truth) < TOLERANCE


# --- evidence that contradicts itself -----------------------------------------------------------


@pytest.mark.parametrize("prior", [[0.5, 0.0, 0.5], [1 / 3] * 3, [1.0 - 2e-9, 1e-9, 1e-9]])
@pytest.mark.parametrize("rho", [0.5, 20.0, 1000.0])
def test_children_far_from_their_parent(prior, rho):
    frame = frame_of(
        {"g": None, "a": "g", "b": "g", "c": "g"}, [9, -6, 0, 1], [rho, rho / 2, rho, rho]
    )
    law = FiniteLaw(0, prior)
    result = tree_posterior(Tree.from_frame(frame), leaf_prior=law)
    with np.errstate(divide="ignore"):
        logs = np.log(prior)
    truth = oracle.brute_force(frame, [[0, 1, 2]] * 3, [lambda x: float(logs[x])] * 3)
    # Exponents reach rho * 81 and are rounded on both sides.
    assert oracle.worst_gap(result, truth) < TOLERANCE + rho * 81 * 2**-51
    assert result.status == "exact"


def test_huge_counts_and_precisions():
    frame = frame_of({"g": None, "a": "g", "b": "g"}, [2**50, 2**49, 2**49 + 3], [0.1, 0.1, 1e250])
    result = tree_posterior(Tree.from_frame(frame), leaf_prior="flat")
    assert result.mode.tolist()[2] == 2**49 + 3
    # a is measured twice, as 2**49 and as 2**49 - 3, with one precision.
    pmf = result.pmf("a")
    x = pmf.index.to_numpy() - 2**49
    weight = np.exp(-0.1 * x**2 - 0.1 * (x + 3) ** 2)
    np.testing.assert_allclose(pmf, weight / weight.sum(), atol=1e-13)


# --- properties ---------------------------------------------------------------------------------


@st.composite
def frames(draw):
    seed, n = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 12))
    rng = np.random.default_rng(seed)
    frame = random_frame(rng, n)
    return with_releases(frame, rng, low=0.02, high=2.0, keep=oracle.leaves_of(frame))


PRIORS = [
    "flat",
    LeafPrior.poisson(0.7),
    LeafPrior.negative_binomial(3.0, dispersion=1.0),
    LeafPrior.hurdle(0.05, mean=2.0),
]


@given(frames(), st.sampled_from(PRIORS), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_properties_of_every_tree(frame, prior, random):
    tree = Tree.from_frame(frame)
    result = tree_posterior(tree, leaf_prior=prior)
    assert result.truncation_bound <= 1e-15
    for v in range(tree.n_nodes):
        assert result.pmf(tree.names[v]).sum() == pytest.approx(1.0, abs=1e-13)
        children = tree.children[tree.first_child[v] : tree.first_child[v + 1]]
        if children.size:
            assert result.mean[v] == pytest.approx(
                result.mean[children].sum(), rel=1e-12, abs=1e-13
            )
    rows = list(range(len(frame)))
    random.shuffle(rows)
    shuffled = tree_posterior(Tree.from_frame(frame.iloc[rows]), leaf_prior=prior)
    mean = pd.Series(shuffled.mean, shuffled.tree.names)
    np.testing.assert_allclose(mean[tree.names], result.mean, rtol=1e-12, atol=1e-13)


@given(frames(), st.integers(-5, 40))
@settings(max_examples=10, deadline=None)
def test_levels_on_top_without_release_change_nothing(frame, noisy):
    result = tree_posterior(Tree.from_frame(frame), leaf_prior=LeafPrior.poisson(1.0))
    root = frame["node"][frame["parent"].isna()].iloc[0]
    top = frame_of({"county": None, "other": "county"}, [noisy, noisy], [0.0, 0.3])
    deeper = pd.concat([frame.assign(parent=frame["parent"].fillna("county")), top])
    more = tree_posterior(Tree.from_frame(deeper), leaf_prior=LeafPrior.poisson(1.0))
    mean = pd.Series(more.mean, more.tree.names)
    np.testing.assert_allclose(mean[result.tree.names], result.mean, rtol=1e-12, atol=1e-13)
    assert more.tree.index(root) > 0


def test_a_wider_tail_is_within_its_bound():
    rng = np.random.default_rng(3)
    frame = with_releases(random_frame(rng, 10), rng, low=0.05, high=0.5, missing=0.0)
    tree = Tree.from_frame(frame)
    exact = tree_posterior(tree, leaf_prior=LeafPrior.poisson(2.0))
    for tail in (1e-3, 1e-6, 1e-9):
        rough = tree_posterior(tree, leaf_prior=LeafPrior.poisson(2.0), tail=tail)
        assert rough.truncation_bound <= tail
        assert rough.peak_bytes <= exact.peak_bytes
        for node in tree.names:
            gap = rough.pmf(node).subtract(exact.pmf(node), fill_value=0.0).abs().sum()
            assert 0.5 * gap <= rough.truncation_bound + 1e-14


def test_what_a_transform_rounded_grows_as_the_factor_takes_mass_away():
    """Two children of uniform counts under a noisy sum that is far from most of theirs."""
    lam, y, error = 2.0, 16, 1e-6
    merges = engine.Merges(*(np.array(part) for part in ([-1, -1, 0], [-1, -1, 1], [0, 1, 2])))
    none, bounds = np.zeros(3), np.repeat([[0, 2**52]], 3, axis=0)
    factors = engine.Factors(
        np.array([0.0, 0.0, lam]), np.array([0, 0, y]), none, none, np.full(3, -1), np.zeros(0),
        np.zeros((0, 3), np.int64), bounds,
    )  # fmt: skip
    spot = np.array([[0, 0, 10], [0, 10, 10], [0, 20, 19]])
    messages = engine.Messages(spot, np.zeros((3, 2)), np.full(64, 0.1))
    conv = np.convolve(np.full(10, 0.1), np.full(10, 0.1))
    conv[y] += error  # where the factor takes nothing away
    kept = conv @ np.exp(-lam * (np.arange(19) - y) ** 2)
    assert kept < 0.1
    missing = (-np.inf, error)
    code = engine.close_merge(2, 0, conv.copy(), missing, merges, factors, messages, -50.0)
    assert code == engine.DONE
    assert messages.lost[2, 1] >= error / kept * (1 - 1e-9)


def test_transforms_agree_with_direct_sums(monkeypatch):
    rng = np.random.default_rng(4)
    n = 30
    frame = pd.DataFrame(
        {
            "node": ["g", *[f"b{i}" for i in range(n)]],
            "parent": [None, *["g"] * n],
            "noisy_count": [320, *rng.integers(-5, 30, n)],
            "rho": [0.01, *[0.003] * n],
        }
    )
    tree = Tree.from_frame(frame)
    direct = tree_posterior(tree, leaf_prior="flat")
    monkeypatch.setattr(engine, "_LONGEST_DIRECT", 400)
    fast = tree_posterior(tree, leaf_prior="flat")
    assert direct.rounding_bound == 0.0
    assert 0.0 < fast.rounding_bound < 1e-9
    for node in tree.names:
        gap = fast.pmf(node).subtract(direct.pmf(node), fill_value=0.0).abs().sum()
        assert 0.5 * gap <= fast.rounding_bound + 1e-13
    monkeypatch.setattr(engine, "_WORST_TRANSFORM", 0.0)  # none is accurate enough
    again = tree_posterior(tree, leaf_prior="flat")
    np.testing.assert_allclose(again.mean, direct.mean, rtol=1e-13)

"""The tree sampler against enumeration, with and without pair moves, under any prior."""

import math

import numpy as np
import pytest
from oracles import trees as oracle
from oracles.samplers import largest_score

from bayesrisk import ArgumentError, DataError, FiniteLaw, Tree, sample_tree, tree_posterior
from bayesrisk.exceptions import ArgumentTypeError, ShapeError
from bayesrisk.inference import LeafPrior
from bayesrisk.inference.sampling import tree as kernels
from bayesrisk.inference.sampling.chains import standard_error

RUN = {"draws": 10_000, "warmup": 200, "chains": 4, "rng": 3}
PARENTS = {"c": None, "g": "c", "h": "c", "a": "g", "b": "g", "d": "h", "e": "h"}


NOISY, RHO = [5, 2, 2, 1, 1, -1, 3], [0.5, 0.25, 0.0, 0.3, 0.3, 0.3, 0.3]


def frame_of(noisy=NOISY, rho=RHO, parents=PARENTS):
    return oracle.frame_of(parents, noisy, rho)


def make(noisy=NOISY, rho=RHO, parents=PARENTS):
    return Tree.from_frame(frame_of(noisy, rho, parents))


def worst(samples, log_prior, frame=None):
    """Return the largest gap to enumeration; ``log_prior`` is of every leaf, or a list of them."""
    frame = frame_of() if frame is None else frame
    leaves = oracle.leaves_of(frame)
    logs = log_prior if isinstance(log_prior, list) else [log_prior] * len(leaves)
    return largest_score(samples, oracle.brute_force(frame, [range(13)] * len(leaves), logs))


def log_of(law):
    return lambda count: math.log(law.get(count, 1e-300))


PRIORS = {
    "flat": (LeafPrior.flat(), oracle.log_flat),
    "poisson": (LeafPrior.poisson(1.3), oracle.log_poisson(1.3)),
    "negative binomial": (
        LeafPrior.negative_binomial(2.0, dispersion=0.8),
        oracle.log_negative_binomial(2.0, 0.8),
    ),
    "hurdle": (LeafPrior.hurdle(0.3, mean=2.0), oracle.log_hurdle_geometric(0.3, 2.0)),
    "finite": (FiniteLaw(1, [0.2, 0.0, 0.5, 0.3]), log_of({1: 0.2, 3: 0.5, 4: 0.3})),
    # Two separate peaks and no closed form.
    "any": (
        lambda c: np.where(c < 2, 0.0, -6.0) + 5.5 * np.exp(-((c - 5) ** 2)),
        lambda c: (0.0 if c < 2 else -6.0) + 5.5 * math.exp(-((c - 5) ** 2)),
    ),
}


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("pair_moves", [True, False])
def test_draws_follow_the_enumerated_posterior(name, pair_moves):
    prior, log_prior = PRIORS[name]
    samples = sample_tree(make(), leaf_prior=prior, pair_moves=pair_moves, **RUN)
    assert worst(samples, log_prior) < 4.0


@pytest.mark.parametrize("seed", range(8))
def test_random_trees(seed):
    rng = np.random.default_rng(seed)
    parents = {"r": None}
    inner = ["r"]
    for i in range(int(rng.integers(4, 8))):  # at most four leaves: the twin visits them all
        chosen = inner[int(rng.integers(len(inner)))]
        parents[f"n{i}"] = chosen
        leaves = [v for v in parents if v not in parents.values()]
        inner = [*inner, f"n{i}"] if len(leaves) < 4 else [v for v in parents if v not in leaves]
        if len(leaves) == 4:
            break
    rho = rng.choice([0.0, 0.3, 0.8, 2.0], len(parents))
    rho[0] = 0.5
    frame = frame_of(rng.integers(-2, 5, len(parents)), rho, parents)
    prior, log_prior = PRIORS["poisson"]
    samples = sample_tree(Tree.from_frame(frame), leaf_prior=prior, **RUN)
    assert worst(samples, log_prior, frame) < 4.0


def test_the_comparison_can_fail():
    samples = sample_tree(make(), leaf_prior=LeafPrior.flat(), **RUN)
    assert worst(samples, PRIORS["poisson"][1]) > 8.0


def test_each_leaf_its_own_prior():
    tree = make()
    means = [1.5, 0.5, 3.0, 1.0]
    samples = sample_tree(tree, leaf_prior=LeafPrior.poisson(means), **RUN)
    assert worst(samples, list(map(oracle.log_poisson, means))) < 4.0
    other, target = LeafPrior.poisson(0.5), FiniteLaw(1, [0.8, 0.2])  # in leaf d
    samples = sample_tree(tree, leaf_prior=[other, other, target, other], **RUN)
    log_other = oracle.log_poisson(0.5)
    logs = [log_other, log_other, log_of({1: 0.8, 2: 0.2}), log_other]
    assert worst(samples, logs) < 4.0
    assert set(np.unique(samples.of("d"))) == {1, 2}


def test_counts_are_additive_and_start_apart():
    tree = make([60, 30, 30, 10, 20, 15, 15], 0.2)
    samples = sample_tree(tree, leaf_prior=LeafPrior.flat(), draws=50, warmup=0, chains=3, rng=1)
    assert np.all(samples.counts >= 0)
    for parent, children in [("c", "gh"), ("g", "ab"), ("h", "de")]:
        total = sum(samples.of(child) for child in children)
        np.testing.assert_array_equal(samples.of(parent), total)
    assert len({int(first) for first in samples.of("a")[:, 0]}) > 1


def test_pairs_mix_where_the_total_is_known_better_than_its_parts():
    tree = make([40, 20, 20, 10, 10, 10, 10], [50.0, 50.0, 50.0, 0.001, 0.001, 0.001, 0.001])
    setting = {"leaf_prior": LeafPrior.flat(), "draws": 2000, "warmup": 200, "chains": 4, "rng": 1}
    with_pairs = sample_tree(tree, **setting).pmf("a")["error"].max()
    without = sample_tree(tree, pair_moves=False, **setting).pmf("a")["error"].max()
    assert with_pairs < 0.03
    assert not without < 2 * with_pairs  # NaN where nothing moved


def test_a_single_node_is_a_tree():
    frame = frame_of([3], [0.4], {"r": None})
    samples = sample_tree(Tree.from_frame(frame), leaf_prior=LeafPrior.flat(), **RUN)
    assert worst(samples, oracle.log_flat, frame) < 4.0


def test_kept_nodes_and_threads():
    tree = make(rho=0.3)
    setting = {"leaf_prior": LeafPrior.flat(), "draws": 100, "warmup": 5, "chains": 3, "rng": 1}
    whole = sample_tree(tree, threads=1, **setting)
    some = sample_tree(tree, threads=2, nodes=["e", "c"], **setting)
    assert some.labels == ("e", "c")
    for label in some.labels:
        np.testing.assert_array_equal(some.of(label), whole.of(label))
    assert some.target is None
    assert list(some.to_frame()) == ["chain", "draw", "e", "c"]


def test_releases_that_contradict_each_other_are_sampled():
    """A prior's tail is tabulated as far as a distant release can pull a count."""
    tree = make([900, 0, 0, 0, 0, 0, 0], [5.0, 0.0, 0.0, 0.001, 0.001, 0.001, 0.001])
    samples = sample_tree(
        tree, leaf_prior=LeafPrior.poisson(2.0), draws=500, warmup=1500, chains=2, rng=1
    )
    assert 500 < samples.of("c").mean() < 900


def test_plain_python_gives_the_same_draws(monkeypatch):
    compiled = kernels.fill_tree
    tree = make(rho=0.3)
    setting = {"leaf_prior": LeafPrior.poisson(1.0), "draws": 20, "warmup": 2, "chains": 1}
    fast = sample_tree(tree, rng=1, **setting)
    monkeypatch.setattr(kernels, "fill_tree", compiled.py_func)
    plain = sample_tree(tree, rng=1, **setting)
    np.testing.assert_array_equal(fast.counts, plain.counts)


def run(tree=None, **changes):
    tree = make(rho=0.3) if tree is None else tree
    setting = {"leaf_prior": LeafPrior.flat(), "draws": 5, "warmup": 1, "chains": 2, "rng": 1}
    return sample_tree(tree, **(setting | changes))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"tree": "tree"}, ArgumentTypeError, "tree"),
        ({"draws": 0}, ArgumentError, "draws"),
        ({"rng": "x"}, ArgumentTypeError, "rng"),
        ({"leaf_prior": None}, ArgumentTypeError, "leaf_prior"),
        ({"leaf_prior": 3}, ArgumentTypeError, "leaf_prior"),
        ({"leaf_prior": "round"}, ArgumentError, "leaf_prior"),
        ({"leaf_prior": [LeafPrior.flat()] * 3}, ShapeError, "4 leaves, got 3"),
        ({"leaf_prior": [3] * 4}, ArgumentTypeError, "leaf_prior"),
        ({"leaf_prior": LeafPrior.poisson([1.0, 2.0])}, ShapeError, "4 leaves, got shape"),
        ({"leaf_prior": lambda c: 0.0}, ArgumentError, "one number for each"),
        ({"leaf_prior": lambda c: c * np.nan}, ArgumentError, "NaN"),
        ({"leaf_prior": lambda c: np.full(c.shape, -np.inf)}, ArgumentError, "must allow"),
        ({"leaf_prior": FiniteLaw(-3, [0.5, 0.5])}, ArgumentError, "negative counts"),
        ({"nodes": ["x"]}, DataError, "no node 'x'"),
        ({"nodes": []}, ArgumentError, "nodes"),
        ({"pair_moves": 1}, ArgumentTypeError, "pair_moves"),
    ],
)
def test_bad_input(changes, error, message):
    with pytest.raises(error, match=message):
        run(**changes)


def test_leaves_that_nothing_speaks_of():
    silent = make(rho=[0.0, 0.0, 0.3, 0.3, 0.0, 0.3, 0.3])
    for prior in (LeafPrior.flat(), LeafPrior.poisson(1.0)):
        with pytest.raises(ArgumentError, match="leaf 'b'"):
            run(silent, leaf_prior=prior)
    samples = run(silent, leaf_prior=FiniteLaw(0, [0.5, 0.5]), draws=4000, chains=4)
    pmf = samples.pmf("b")
    assert abs(pmf["probability"][1] - 0.5) < 4 * pmf["error"][1]


def test_a_larger_tree_agrees_with_the_exact_posterior():
    """Means of 211 nodes, each within its Monte Carlo error, and as spread as errors are."""
    rng = np.random.default_rng(9)
    parents = {"root": None} | {f"g{i}": "root" for i in range(10)}
    parents |= {f"b{i}": f"g{i % 10}" for i in range(200)}
    noisy = np.concatenate(([300], rng.poisson(30, 10), rng.integers(-3, 8, 200)))
    rho = [0.05] + [0.25] * 10 + [0.1] * 200
    tree = make(noisy, rho, parents)
    prior = LeafPrior.hurdle(0.4, mean=3.0)
    samples = sample_tree(tree, leaf_prior=prior, draws=1000, warmup=200, chains=4, rng=1)
    exact = tree_posterior(tree, leaf_prior=prior)
    errors = np.array([standard_error(samples.of(label)) for label in samples.labels])
    scores = (samples.counts.mean(axis=(0, 1)) - exact.mean) / errors
    assert np.abs(scores).max() < 4.0
    assert 0.85 < np.sqrt(np.mean(scores**2)) < 1.2
    other = tree_posterior(tree, leaf_prior=LeafPrior.hurdle(0.3, mean=3.0))
    assert np.abs((samples.counts.mean(axis=(0, 1)) - other.mean) / errors).max() > 8.0

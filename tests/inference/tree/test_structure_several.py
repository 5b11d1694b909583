"""Trees of several releases of the same counts, against enumeration and by composition."""

import numpy as np
import pandas as pd
import pytest
from oracles.trees import brute_force, frame_of, log_flat, worst_gap

from bayesrisk import MechanismSpec, NoiseSpec, Release, Schema, Tree, Workload, tree_posterior
from bayesrisk.distributions import FiniteLaw
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.inference import sample_tree
from bayesrisk.tables import Attribute, Geography, PublishedTables


def frames(rng, releases):
    """Return frames of one tree of two groups of two blocks, some counts of each without noise."""
    nodes = ["all", "g", "h", "g1", "g2", "h1", "h2"]
    parents = [None, "all", "all", "g", "g", "h", "h"]
    true = rng.poisson(1.0, 4)
    counts = np.array([true.sum(), true[:2].sum(), true[2:].sum(), *true])
    found = []
    for at in range(releases):
        sigma2 = rng.choice([0.5, 1.0, 4.0], 7)
        noisy = (counts + np.rint(rng.normal(0, np.sqrt(sigma2)))).astype(object)
        if at:
            noisy[rng.random(7) < 0.4] = None
        frame = pd.DataFrame({"node": nodes, "parent": parents, "noisy_count": noisy})
        frame = frame.assign(sigma2=sigma2, exact_count=pd.Series([None] * 7, dtype="Int64"))
        frame.loc[0, "exact_count"] = counts[0] if rng.random() < 0.5 else None
        found.append(frame.sample(frac=1.0, random_state=int(rng.integers(2**31))))
    return found, counts


def product(parts):
    """Return the log likelihood of all nodes under several releases, for the oracle."""
    noise, exact, by_node = {}, {}, set(parts[0]["node"])
    for row in pd.concat(parts).itertuples():
        if not pd.isna(row.noisy_count):
            noise.setdefault(row.node, []).append((row.noisy_count, row.sigma2))
        if not pd.isna(row.exact_count):
            exact[row.node] = row.exact_count

    def likelihood(node):
        def log(x):
            if x != exact.get(node, x):
                return -np.inf
            return -sum((y - x) ** 2 / (2 * s) for y, s in noise.get(node, ()))

        return log

    return {node: likelihood(node) for node in by_node}


UNIFORM = np.full(5, 0.2)


def gap(seed, number):
    rng = np.random.default_rng(seed)
    parts, _ = frames(rng, number)
    base = parts[0].assign(noisy_count=np.nan, rho=np.nan)
    truth = brute_force(base, [range(5)] * 4, [log_flat] * 4, product(parts))
    trees = {f"release {at}": Tree.from_frame(frame) for at, frame in enumerate(parts)}
    law = FiniteLaw(0, UNIFORM)
    found = tree_posterior(trees if seed % 2 else list(trees.values()), leaf_prior=law)
    alone = tree_posterior(trees["release 0"], leaf_prior=law)
    return worst_gap(found, truth), worst_gap(alone, truth)


def test_two_and_three_releases_equal_enumeration():
    gaps = np.array([gap(seed, 2 + seed % 2) for seed in range(24)])
    assert gaps[:, 0].max() < 1e-12
    assert gaps[:, 1].min() > 1e-6  # one release alone is another law


def one_count(noisy, sigma2, **known):
    frame = frame_of({"a": None}, [noisy])
    return Tree.from_frame(frame.assign(sigma2=[sigma2], **known))


def test_two_releases_of_twice_the_variance_are_one_at_their_mean():
    """Exactly so where the mean is whole; else no release of one count says the same."""
    v = 1.5
    two = [one_count(y, 2 * v) for y in (3, 7)]
    both, mean = (tree_posterior(t, leaf_prior="flat").pmf("a") for t in (two, one_count(5, v)))
    counts = both.index.intersection(mean.index)
    np.testing.assert_allclose(both.loc[counts], mean.loc[counts], rtol=1e-12, atol=1e-15)
    two = [one_count(y, 2 * v) for y in (3, 6)]
    both = tree_posterior(two, leaf_prior="flat").pmf("a")
    x = both.index.to_numpy()
    weight = np.exp(-((x - 4.5) ** 2) / (2 * v))  # a centre between two whole counts
    np.testing.assert_allclose(both, weight / weight.sum(), rtol=1e-12, atol=1e-15)
    for y in (4, 5):
        other = tree_posterior(one_count(y, v), leaf_prior="flat").pmf("a")
        assert abs(both.loc[5] - other.loc[5]) > 0.02


def test_equal_exact_counts_are_one_and_others_are_refused_by_name():
    exact = [one_count(None, 1.0, exact_count=[n]) for n in (3, 3, 4)]
    assert tree_posterior(exact[:2], leaf_prior="flat").pmf("a").to_dict() == {3: 1.0}
    with pytest.raises(DataError) as caught:
        tree_posterior({"spring": exact[0], "autumn": exact[2]}, leaf_prior="flat")
    for part in ("exact_count", "'a'", "3 in 'spring'", "4 in 'autumn'"):
        assert part in str(caught.value)
    bounded = one_count(1, 1.0, lower=[5], upper=[9])
    found = tree_posterior([bounded, one_count(1, 1.0)], leaf_prior="flat")
    assert found.pmf("a").index.min() == 5
    with pytest.raises(ArgumentError, match="bounds"):
        tree_posterior([one_count(1, 1.0), bounded], leaf_prior="flat")


def test_trees_of_other_nodes_are_refused():
    tree, other = one_count(1, 1.0), one_count(1, 1.0)
    object.__setattr__(other, "names", pd.Index(["b"]))
    with pytest.raises(ArgumentError, match="autumn"):
        Tree.combine({"spring": tree, "autumn": other})
    law = FiniteLaw(0, UNIFORM)
    path = Tree.path([2, 1], [-1], n_siblings=27, rho=[0.1, 0.2], prior=0.5, count_priors=[law])
    with pytest.raises(ArgumentError, match="priors"):
        Tree.combine([path, path])


def test_releases_give_the_tree_of_both_and_samples_agree():
    schema = Schema("s", (Attribute("kind", 2),), Geography("g", ("town", "block"), (1, 2)))
    work = Workload.of(schema, ["kind"], levels=["town", "block"])
    releases = {}
    for name, (town, blocks) in {"a": (9, [[4], [5]]), "b": (7, [[2], [6]])}.items():
        counts = {("town", "kind"): np.array([[town, 1]])}
        counts["block", "kind"] = np.hstack([blocks, [[0], [1]]])
        tables = PublishedTables(work, {"town": ["1"], "block": ["10", "11"]}, counts)
        spec = MechanismSpec("noise", others=NoiseSpec("discrete-gaussian", 2))
        releases[name] = Release(spec, tables)
    tree = Tree.from_release(releases, table="kind", cell=work.at("town")["kind"].cells[0])
    assert tree.n_nodes == 6
    assert (tree.precision == 0.25).all()
    found = tree_posterior(tree, leaf_prior="flat")
    np.testing.assert_allclose(found.mean[tree.index("10")], found.mean[tree.index("b: 10")])
    drawn = sample_tree(tree, leaf_prior="flat", rng=1, draws=1000, warmup=500, chains=4)
    at = list(drawn.labels).index("10") if "10" in drawn.labels else tree.index("10")
    assert abs(drawn.counts[..., at].mean() - found.mean[tree.index("10")]) < 0.15

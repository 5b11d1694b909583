"""Gibbs sampler for every count of a tree at once, under any prior of the leaves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.parse import shown
from bayesrisk._types import FloatArray, IntArray
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.log_table import LogTable, log_table
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, ShapeError
from bayesrisk.inference.sampling import _tree_kernels as kernels
from bayesrisk.inference.sampling.chains import (
    OVERDISPERSION,
    Samples,
    Step,
    room_for,
    run_chains,
    spawn,
    whole_settings,
)
from bayesrisk.inference.tree.leaf_prior import LeafPrior
from bayesrisk.inference.tree.structure import Tree

#: Prior of one leaf: a law, or any unnormalised log prior of an array of counts.
OneLeafPrior = LeafPrior | CountLaw | Callable[[NDArray[np.int64]], Any]

_CUT = 60.0  # a count that no state can carry above e**-60 of the first state's weight is left out
_MAX_TABLE = 2**24


@dataclass(frozen=True)
class _LeafTables:
    """Log priors of the leaves, one after another; ``size`` 0 is flat."""

    tables: FloatArray
    offset: IntArray
    start: IntArray
    size: IntArray
    peak: FloatArray


@dataclass(frozen=True)
class _Leaves:
    """Leaves depth first, the range of them below each node, and the evidence above each."""

    node: IntArray
    begin: IntArray
    end: IntArray
    weight: FloatArray


def _leaves(tree: Tree) -> _Leaves:
    """Order the leaves so that those below any node stand together."""
    below = np.zeros(tree.n_nodes, dtype=np.int64)
    below[tree.leaves] = 1
    for v in range(tree.n_nodes - 1, 0, -1):  # children stand after their parents
        below[tree.parent[v]] += below[v]
    begin = np.zeros(tree.n_nodes, dtype=np.int64)
    weight = np.array(tree.precision)
    for v in range(tree.n_nodes):
        place = begin[v]
        for child in tree.children[tree.first_child[v] : tree.first_child[v + 1]]:
            begin[child] = place
            place += below[child]
            weight[child] += weight[v]
    node = np.empty(tree.leaves.size, dtype=np.int64)
    node[begin[tree.leaves]] = tree.leaves
    return _Leaves(node, begin, begin + below, weight[node])


def _choices(tree: Tree, leaves: _Leaves, leaf_prior: Any) -> list[Any]:
    """Return the prior of each leaf, in the order of ``leaves``."""
    n = tree.leaves.size
    if isinstance(leaf_prior, str):
        check.choice(leaf_prior, "leaf_prior", ("flat",))
        leaf_prior = LeafPrior.flat()
    if isinstance(leaf_prior, Sequence):
        if len(leaf_prior) != n:
            raise ShapeError(
                f"leaf_prior must have one prior for each of {n} leaves, got {len(leaf_prior)}"
            )
        given = list(leaf_prior)
    else:
        given = [leaf_prior] * n
    for prior in given:
        is_law = isinstance(prior, CountLaw)
        if not (isinstance(prior, LeafPrior) or (is_law and prior.shape == ())) and (
            is_law or isinstance(prior, type) or not callable(prior)
        ):
            raise ArgumentTypeError(
                "leaf_prior must be 'flat', a LeafPrior, one CountLaw, a function of counts, or "
                f"a sequence of these, got {shown(prior)}"
            )
    if isinstance(leaf_prior, LeafPrior):
        given = [_of_one_leaf(leaf_prior, i, n) for i in range(n)]
    place = np.empty(tree.n_nodes, dtype=np.int64)
    place[tree.leaves] = np.arange(n)
    return [given[i] for i in place[leaves.node]]


def _of_one_leaf(prior: LeafPrior, leaf: int, leaves: int) -> LeafPrior:
    """Return the prior with the parameters of one leaf."""
    sizes = {prior.log_jump.size, prior.size.size, prior.log_ratio.size} - {1}
    if not sizes:
        return prior
    if sizes != {leaves}:
        raise ShapeError(
            f"leaf_prior must have one parameter or one for each of {leaves} leaves, got "
            f"{max(sizes)}"
        )
    columns = (prior.log_jump, prior.size, prior.log_ratio)
    return LeafPrior(prior.name, *(c if c.size == 1 else c.reshape(-1)[leaf] for c in columns))


def _is_flat(prior: Any) -> bool:
    return isinstance(prior, LeafPrior) and prior.name == "flat"


def _log_table(prior: Any, largest: int) -> LogTable:
    """Return a prior's table up to ``largest`` at most."""
    if isinstance(prior, CountLaw):
        return log_table(prior, "leaf_prior", largest=largest)
    if isinstance(prior, LeafPrior):
        ratios = prior.log_ratios(np.arange(max(largest, 1)))
        return LogTable(0, np.concatenate(([0.0], np.cumsum(ratios))))
    values = np.arange(largest + 1)
    found = prior(values)
    log_weight = check.as_array(found, "leaf_prior")
    if log_weight.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"leaf_prior must return numbers, got {shown(found)}")
    log_weight = log_weight.astype(float)
    if log_weight.shape != values.shape:
        raise ArgumentError(
            f"leaf_prior must return one number for each of {values.size} counts, got shape "
            f"{log_weight.shape}"
        )
    if np.isnan(log_weight).any() or np.isposinf(log_weight).any():
        raise ArgumentError("leaf_prior must be below infinity at every count, and not NaN")
    if not np.isfinite(log_weight).any():
        raise ArgumentError(f"leaf_prior must allow a count in 0..{largest}, got {shown(prior)}")
    return LogTable(0, log_weight)


def _bounded(prior: Any) -> int | None:
    """Return the last count that a prior allows, None if it has no end."""
    if isinstance(prior, CountLaw) and np.isfinite(prior.support()[1]):
        return int(prior.support()[1])
    return None


def _leaf_tables(tree: Tree, leaves: _Leaves, priors: list[Any]) -> _LeafTables:
    """Tabulate the priors, far enough that what is cut off cannot matter."""
    for v, prior, weight in zip(leaves.node, priors, leaves.weight, strict=True):
        if weight == 0.0 and _bounded(prior) is None:
            raise ArgumentError(
                f"leaf_prior must be bounded for leaf {tree.names[v]!r}: no release is about it"
            )
    keys = [id(prior) for prior in priors]  # leaves may share a prior
    different = {k: p for k, p in zip(keys, priors, strict=True) if not _is_flat(p)}
    ends = [end for p in different.values() if (end := _bounded(p)) is not None]
    largest = max(ends, default=0)
    tables = _tabulate(different, largest) if len(ends) == len(different) else {}
    lost = 0.0
    while not tables and different:
        # The priors' own cost of the smallest state is known once they are tabulated.
        largest = max(largest, _reach(tree, leaves, priors, lost))
        tables = _tabulate(different, largest)
        costs = {k: t.log_pmf.max() - t.at(t.allowed[0]) for k, t in tables.items()}
        cost = float(sum(costs.get(k, 0.0) for k in keys))
        if _reach(tree, leaves, priors, cost) > largest and cost > lost:
            lost, tables = 2.0 * cost, {}
    offset, start, size, peak, parts = {}, {}, {}, {}, []
    at = 0
    for key, (first, table) in tables.items():
        offset[key], start[key], size[key], peak[key] = at, first, table.size, table.max()
        parts.append(table)
        at += table.size
    flat = np.concatenate(parts) if parts else np.zeros(1)
    return _LeafTables(
        tables=flat,
        offset=np.array([offset.get(k, 0) for k in keys], dtype=np.int64),
        start=np.array([start.get(k, 0) for k in keys], dtype=np.int64),
        size=np.array([size.get(k, 0) for k in keys], dtype=np.int64),
        peak=np.array([peak.get(k, 0.0) for k in keys]),
    )


def _tabulate(priors: Mapping[Any, Any], largest: int) -> dict[Any, LogTable]:
    if largest * max(len(priors), 1) > _MAX_TABLE:
        raise ArgumentError(
            f"leaf_prior needs {len(priors)} tables of {largest} counts: more than {_MAX_TABLE}"
        )
    return {key: _log_table(prior, largest) for key, prior in priors.items()}


def _reach(tree: Tree, leaves: _Leaves, priors: list[Any], lost: float) -> int:
    """Return a count that no leaf exceeds in any state that could ever be drawn.

    The likelihood of the state in which every leaf holds its smallest count, less what the priors
    lose there, bounds the best weight from below; a leaf of count c makes every total above it at
    least c, and so bounds the weight of the state from above.
    """
    least = np.zeros(tree.n_nodes)
    for v, prior in zip(leaves.node, priors, strict=True):
        if isinstance(prior, CountLaw):
            least[v] = max(float(prior.support()[0]), 0.0)
    for v in range(tree.n_nodes - 1, 0, -1):
        least[tree.parent[v]] += least[v]
    lost += float(np.sum(tree.precision * (tree.noisy - least) ** 2)) + _CUT
    with np.errstate(divide="ignore"):
        limit = np.maximum(tree.noisy, 0) + np.sqrt(lost / tree.precision)
    for v in range(1, tree.n_nodes):
        limit[v] = min(limit[v], limit[tree.parent[v]])
    bounds = [limit[v] for v, p in zip(leaves.node, priors, strict=True) if _bounded(p) is None]
    return int(max(bounds)) + 1


def _first_state(
    tree: Tree, leaves: _Leaves, priors: _LeafTables, rng: np.random.Generator
) -> IntArray:
    """Return counts to start from: the leaves' own releases with three times their noise."""
    weight = np.where(leaves.weight > 0.0, leaves.weight, 0.5)
    spread = OVERDISPERSION * np.sqrt(0.5 / weight) * rng.standard_normal(leaves.node.size)
    value = np.maximum(np.rint(tree.noisy[leaves.node] + np.minimum(spread, 1e6)), 0.0)
    value = value.astype(np.int64)
    count = np.zeros(tree.n_nodes, dtype=np.int64)
    for i, v in enumerate(leaves.node):
        if priors.size[i]:
            own = priors.tables[priors.offset[i] : priors.offset[i] + priors.size[i]]
            allowed = LogTable(int(priors.start[i]), own).allowed
            at = min(int(np.searchsorted(allowed, value[i])), allowed.size - 1)
            value[i] = allowed[at]
        count[v] = value[i]
    for v in range(tree.n_nodes - 1, 0, -1):
        count[tree.parent[v]] += count[v]
    return count


def sample_tree(
    tree: Tree,
    *,
    leaf_prior: OneLeafPrior | Sequence[OneLeafPrior] | str,
    draws: int,
    warmup: int,
    chains: int,
    rng: np.random.Generator | int,
    threads: int | None = None,
    nodes: Iterable[Hashable] | None = None,
    pair_moves: bool = True,
) -> Samples:
    r"""Sample every count of a tree given all its noisy counts: non-negative and additive.

    .. math::

        P(c \mid \text{releases}) \propto \prod_{\text{leaves } i} w_i(c_i)
        \prod_{\text{nodes } v} e^{-\tau_v (y_v - c_v)^2}, \quad
        c_v = \sum_{i \text{ below } v} c_i

    Parameters
    ----------
    tree : Tree
        Hierarchy with its releases.
    leaf_prior : LeafPrior, CountLaw, callable, sequence of these, or "flat"
        Prior w of a leaf's count: one for all, or one for each leaf in the order of
        ``tree.leaves``.  A callable takes an array of counts and returns their log prior, which
        need not be normalised nor have a closed form.
    draws, warmup, chains : int
        Sweeps kept and discarded in each chain, and number of chains. At most 1e8 sweeps, and
        2**28 numbers kept in all (2 GiB).
    rng : Generator or int
        Source of randomness; each chain gets a child of its own.
    threads : int, optional
        Threads to use; the draws do not depend on it. None: as many as there are processors.
    nodes : iterable of node names, optional
        Which counts to keep; None keeps them all.
    pair_moves : bool, default True
        Also move counts from leaf to leaf with totals fixed.  Without them the law is the same,
        and chains mix slowly where a total is known better than its parts.

    Returns
    -------
    Samples
        Variables are nodes; ``target`` is None.

    Raises
    ------
    DataError
        If ``nodes`` names a node that is not there.

    Notes
    -----
    A sweep redraws each leaf from its exact conditional, which changes all totals above it, and
    then moves counts between it and a random leaf below one of its ancestors, from the exact
    conditional along that line.  Any feasible state can be reached leaf by leaf, because leaves
    are independent a priori and every likelihood is positive.  Cost of a sweep: leaves times depth.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"node": ["group", "a", "b"], "parent": ["", "group", "group"],
    ...     "noisy_count": [3, 2, -1], "rho": [0.25, 0.1, 0.1]})
    >>> samples = sample_tree(Tree.from_frame(frame), leaf_prior="flat", draws=100, warmup=10,
    ...     chains=2, rng=1)
    >>> bool((samples.of("group") == samples.of("a") + samples.of("b")).all())
    True
    """
    if not isinstance(tree, Tree):
        raise ArgumentTypeError(f"tree must be a Tree, got {type(tree).__name__}")
    if tree.is_bounded:
        raise ArgumentError("tree must have no lower and upper to be sampled")
    sizes = whole_settings(draws, warmup, chains)
    if not isinstance(pair_moves, bool):
        raise ArgumentTypeError(f"pair_moves must be True or False, got {shown(pair_moves)}")
    labels = tuple(tree.names if nodes is None else check.items(nodes, "nodes"))
    try:
        keep = np.array([tree.index(name) for name in labels], dtype=np.int64)
    except DataError as error:
        raise DataError(f"nodes: {error}") from error
    if not keep.size:
        raise ArgumentError("nodes must name at least one node, got none")
    if np.any(tree.exact >= 0):
        node = tree.names[int(np.argmax(tree.exact >= 0))]
        raise ArgumentError(
            "tree must have no exact count to be sampled (the moves of a chain change every "
            f"total; tree_posterior takes them), got one for node {shown(node)}"
        )
    leaves = _leaves(tree)
    tables = _leaf_tables(tree, leaves, _choices(tree, leaves, leaf_prior))
    model = kernels.TreeModel(
        tree.parent,
        tree.depth,
        tree.noisy,
        tree.precision,
        leaves.node,
        leaves.begin,
        leaves.end,
        tables.tables,
        tables.offset,
        tables.start,
        tables.size,
        tables.peak,
    )
    generators, seed = spawn(rng, sizes[2])
    counts = room_for(sizes[0], sizes[2], keep.size)

    def begin(chain: int) -> Step:
        random = generators[chain]
        count = _first_state(tree, leaves, tables, random)
        return lambda skip, out: kernels.fill_tree(
            random, model, pair_moves, count, keep, skip, out
        )

    run_chains(begin, counts, sizes[1], threads)
    return Samples(
        counts=counts,
        target=None,
        labels=labels,
        dimension="node",
        sampler="single leaves and pairs" if pair_moves else "single leaves",
        warmup=sizes[1],
        spec=MappingProxyType({"tree": repr(tree), "leaf_prior": repr(leaf_prior)}),
        seed=seed,
        observed=MappingProxyType({"noisy_count": tree.noisy[keep]}),
        constants=MappingProxyType({"precision": tree.precision[keep]}),
    )

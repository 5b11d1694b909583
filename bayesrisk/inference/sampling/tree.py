"""Gibbs sampler for all counts of a tree, under any prior of the leaves.

Each chain has its own generator and its own thread, as kernels release the GIL.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from bayesrisk._base import validation as check
from bayesrisk._base.randomness import seeded
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.kernels import FLAT, LogTable, log_table
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, ShapeError, quote
from bayesrisk.inference.sampling.chains import (
    LEAST_PRECISION,
    OVERDISPERSION,
    Samples,
    Step,
    empty_counts,
    run_chains,
    spawn,
    whole_settings,
)
from bayesrisk.inference.sampling.tree_sweeps import TreeModel, fill_tree
from bayesrisk.inference.tree.plan import LeafPrior, law_columns, stored_once
from bayesrisk.inference.tree.structure import Tree

_NO_END = 2**61

#: Prior of one leaf: a law, or any unnormalised log prior of an array of counts.
OneLeafPrior = LeafPrior | CountLaw | Callable[[IntArray], Any]

_CUT = 60.0  # a count that no state can carry above e**-60 of the first state's weight is left out
_MAX_TABLE = 2**24


@dataclass(frozen=True)
class _Leaves:
    """Leaves in depth-first order, each node's range of them, and the evidence on each leaf."""

    node: IntArray
    begin: IntArray
    end: IntArray
    weight: FloatArray


def _leaves(tree: Tree) -> _Leaves:
    """Return the leaves in an order in which those below any node are adjacent."""
    below = np.zeros(tree.n_nodes, dtype=np.int64)
    below[tree.leaves] = 1
    for v in range(tree.n_nodes - 1, 0, -1):  # children stand after their parents
        below[tree.parent[v]] += below[v]
    begin = np.zeros(tree.n_nodes, dtype=np.int64)
    weight = np.array(tree.precision)
    weight[tree.exact >= 0] += 1.0  # a total that is known bounds what is below it
    weight[list(tree.tables)] += 1.0
    for v in range(tree.n_nodes):
        place = begin[v]
        for child in tree.children[tree.first_child[v] : tree.first_child[v + 1]]:
            begin[child] = place
            place += below[child]
            weight[child] += weight[v]
    node = np.empty(tree.leaves.size, dtype=np.int64)
    node[begin[tree.leaves]] = tree.leaves
    return _Leaves(node, begin, begin + below, weight[node])


def _choices(
    tree: Tree, leaf_prior: OneLeafPrior | Sequence[OneLeafPrior] | str
) -> dict[int, OneLeafPrior]:
    n = tree.leaves.size
    if isinstance(leaf_prior, str):
        check.choice(leaf_prior, "leaf_prior", ("flat",))
        leaf_prior = LeafPrior.flat()
    if isinstance(leaf_prior, Sequence):
        if len(leaf_prior) != n:
            raise ShapeError(
                "leaf_prior", f"must have one prior for each of {n} leaves", shown=len(leaf_prior)
            )
        priors = list(leaf_prior)
    else:
        priors = [leaf_prior] * n
    for prior in priors:
        is_law = isinstance(prior, CountLaw)
        scalar_law = isinstance(prior, CountLaw) and prior.shape == ()
        if not (isinstance(prior, LeafPrior) or scalar_law) and (
            is_law or isinstance(prior, type) or not callable(prior)
        ):
            raise ArgumentTypeError(
                "leaf_prior must be 'flat', a LeafPrior, one CountLaw, a function of counts, or "
                f"a sequence of these, got {quote(prior)}"
            )
    if isinstance(leaf_prior, LeafPrior):
        rows = law_columns(leaf_prior, n)
        if np.any(rows != rows[0]):
            priors = [LeafPrior(leaf_prior.name, *row) for row in rows]
    return dict(zip(tree.leaves.tolist(), priors, strict=True))


def _is_flat(prior: OneLeafPrior) -> bool:
    return isinstance(prior, LeafPrior) and prior.name == "flat"


def _log_table(prior: OneLeafPrior, largest: int) -> LogTable:
    """Return a prior's table of log-probabilities, up to ``largest`` at most."""
    if isinstance(prior, CountLaw):
        return log_table(prior, "leaf_prior", largest=largest)
    if isinstance(prior, LeafPrior):
        ratios = prior.log_ratios(np.arange(max(largest, 1)))
        return LogTable(0, np.concatenate(([0.0], np.cumsum(ratios))))
    values = np.arange(largest + 1)
    result = prior(values)
    log_weight = check.as_array(result, "leaf_prior")
    if log_weight.dtype.kind not in "iuf":
        raise ArgumentTypeError("leaf_prior", "must return numbers", got=result)
    log_weight = log_weight.astype(float)
    if log_weight.shape != values.shape:
        raise ArgumentError(
            f"leaf_prior must return one number for each of {values.size} counts, got shape "
            f"{log_weight.shape}"
        )
    if np.isnan(log_weight).any() or np.isposinf(log_weight).any():
        raise ArgumentError("leaf_prior", "must be below infinity at every count, and not NaN")
    if not np.isfinite(log_weight).any():
        raise ArgumentError("leaf_prior", f"must allow a count in 0..{largest}", got=prior)
    return LogTable(0, log_weight)


def _bounded(prior: OneLeafPrior) -> int | None:
    """Return the largest count that a prior allows, or None if it has no bound."""
    if isinstance(prior, CountLaw) and np.isfinite(prior.support()[1]):
        return int(prior.support()[1])
    return None


@dataclass(frozen=True)
class _Weights:
    """Log weights of the nodes' counts, and each node's possible counts.

    ``listed`` are the possible counts of nodes with a table; ``least`` and ``most`` bound those of
    all.
    """

    tables: dict[int, LogTable]
    least: IntArray
    most: IntArray
    listed: dict[int, IntArray]
    restricted: bool

    def nearest(self, v: int, count: int) -> int:
        """Return the smallest possible count >= ``count``, or the largest if there is none."""
        if v not in self.listed:
            return int(min(max(count, self.least[v]), self.most[v]))
        allowed = self.listed[v]
        return int(allowed[min(int(np.searchsorted(allowed, count)), allowed.size - 1)])

    def has_gaps(self, v: int) -> bool:
        """Return whether some count between the least and the most is impossible."""
        return v in self.listed and self.listed[v].size <= self.most[v] - self.least[v]


def _weights(tree: Tree, tables: dict[int, LogTable], restricted: bool) -> _Weights:
    """Return each node's possible counts, given the tables, from the leaves up.

    If totals are restricted, moves keep them: moves between two leaves reach every set of counts if
    no leaf's own counts have gaps.
    """
    least, most = np.zeros(tree.n_nodes, np.int64), np.full(tree.n_nodes, _NO_END)
    listed: dict[int, IntArray] = {}
    for v in range(tree.n_nodes - 1, -1, -1):
        below = tree.children[tree.first_child[v] : tree.first_child[v + 1]]
        if below.size:
            least[v] = least[below].sum()
            most[v] = int(min(most[below].astype(float).sum(), _NO_END))
            if below.size == 1 and int(below[0]) in listed:  # an only child: one count
                listed[v] = listed[int(below[0])]
        if v in tables:
            allowed = tables[v].allowed
            if v in listed:
                allowed = np.intersect1d(allowed, listed[v])
            allowed = allowed[(allowed >= least[v]) & (allowed <= most[v])]
            if not allowed.size:
                raise ArgumentError(
                    "leaf_prior, other priors and exact counts must allow some set of counts that "
                    f"adds up, got none for node {quote(tree.names[v])}"
                )
            least[v], most[v], listed[v] = allowed[0], allowed[-1], allowed
    weights = _Weights(tables, least, most, listed, restricted)
    for leaf in tree.leaves.tolist() if restricted else []:
        if weights.has_gaps(leaf):
            raise ArgumentError(
                "leaf_prior must allow every count between its least and largest where totals are "
                f"known or have priors, got gaps for leaf {quote(tree.names[leaf])}"
            )
    return weights


def _add_up(tree: Tree, weights: _Weights, leaf_counts: IntArray) -> IntArray:
    """Return consistent possible counts of all nodes, close to those proposed for leaves."""
    count = np.zeros(tree.n_nodes, dtype=np.int64)
    for v in tree.leaves.tolist():
        count[v] = weights.nearest(v, int(leaf_counts[v]))
    for v in range(tree.n_nodes - 1, 0, -1):
        count[tree.parent[v]] += count[v]
    if not weights.restricted:
        return count
    count[0] = weights.nearest(0, int(count[0]))
    for v in range(tree.n_nodes):  # parents first: what a total demands, its children make up
        below = tree.children[tree.first_child[v] : tree.first_child[v + 1]]
        if not below.size:
            continue
        for child in below.tolist():
            count[child] = weights.nearest(child, int(count[child]))
        for child in 2 * sorted(below.tolist(), key=weights.has_gaps):
            value = count[child] + count[v] - count[below].sum()
            value = min(max(value, weights.least[child]), weights.most[child])
            if child in weights.listed:
                allowed = weights.listed[child]
                value = allowed[max(int(np.searchsorted(allowed, value, side="right")) - 1, 0)]
            count[child] = value
        if count[below].sum() != count[v]:
            raise ArgumentError(
                "priors and exact counts must leave a set of counts that adds up, found none from "
                f"node {quote(tree.names[v])} downwards"
            )
    return count


def _all_weights(tree: Tree, leaves: _Leaves, priors: dict[int, OneLeafPrior]) -> _Weights:
    """Return tables of all priors, long enough that the mass cut off is negligible."""
    node_tables = dict(tree.tables)
    for v in np.flatnonzero(tree.exact >= 0).tolist():
        node_tables[v] = LogTable(int(tree.exact[v]), np.zeros(1)).times(node_tables.get(v, FLAT))
    restricted = bool(node_tables)
    for v in np.flatnonzero(tree.known_count >= 0).tolist():
        target = LogTable.target_count(int(tree.known_count[v]), float(tree.prior[v]))
        node_tables[v], priors[v] = target.times(node_tables.get(v, FLAT)), LeafPrior.flat()
    bounded = {v: _bounded(priors[v]) for v in priors} | {
        v: t.stop - 1 for v, t in node_tables.items()
    }
    for v, weight in zip(leaves.node.tolist(), leaves.weight, strict=True):
        if weight == 0.0 and bounded[v] is None:
            raise ArgumentError(
                "leaf_prior", f"must be bounded for leaf {tree.names[v]!r}: no release is about it"
            )
    # Leaves may share a prior, and then its table.
    different = {id(p): p for p in priors.values() if not _is_flat(p)}
    ends = [end for p in different.values() if (end := _bounded(p)) is not None]
    largest = max(ends, default=0)

    def weigh() -> _Weights:
        if largest * max(len(different), 1) > _MAX_TABLE:
            raise ArgumentError(
                f"leaf_prior needs {len(different)} tables of {largest} counts: more than "
                f"{_MAX_TABLE}"
            )
        laws = {key: _log_table(prior, largest) for key, prior in different.items()}
        tables = {v: laws[id(p)] for v, p in priors.items() if id(p) in laws}
        for v, table in node_tables.items():
            tables[v] = table.times(tables.get(v, FLAT))
        return _weights(tree, tables, restricted)

    if len(ends) == len(different):
        return weigh()
    # How far depends on what the priors themselves lose in a possible state, once tabulated.
    start = _add_up(tree, _weights(tree, node_tables, restricted), np.zeros(tree.n_nodes, np.int64))
    lost = 0.0
    while True:
        endless = [v for v, end in bounded.items() if end is None and v in priors]
        largest = max(largest, int(start.max()), _reach(tree, start, lost, endless))
        weights = weigh()
        cost = sum(
            float(t.log_pmf.max() - t.log_probability(max(int(start[v]), int(t.allowed[0]))))
            for v, t in weights.tables.items()
        )
        if not _reach(tree, start, cost, endless) > largest or not cost > lost:
            return weights
        lost = 2.0 * cost


def _reach(tree: Tree, state: IntArray, lost: float, endless: list[int]) -> int:
    """Return a count that no unbounded leaf can exceed in any state that could be drawn.

    The likelihood of a possible state, less the loss by the priors, bounds the best weight from
    below. A leaf of count c makes every total above it at least c, which bounds the weight of the
    state from above.
    """
    lost += float(np.sum(tree.precision * (tree.noisy - state) ** 2.0)) + _CUT
    with np.errstate(divide="ignore"):
        limit = np.maximum(tree.noisy, 0) + np.sqrt(lost / tree.precision)
    limit = np.where(tree.exact >= 0, np.minimum(limit, tree.exact), limit)
    for v, table in tree.tables.items():
        limit[v] = min(limit[v], table.stop)
    for v in range(1, tree.n_nodes):
        limit[v] = min(limit[v], limit[tree.parent[v]])
    return int(max(limit[endless], default=0.0)) + 1


def _first_state(
    tree: Tree, leaves: _Leaves, weights: _Weights, rng: np.random.Generator
) -> IntArray:
    """Return starting counts: the leaves' releases with overdispersed noise."""
    weight = np.where(leaves.weight > 0.0, leaves.weight, 0.5)
    spread = OVERDISPERSION * np.sqrt(0.5 / weight) * rng.standard_normal(leaves.node.size)
    proposed = np.zeros(tree.n_nodes, dtype=np.int64)
    near = np.rint(tree.noisy[leaves.node] + np.minimum(spread, 1e6))
    proposed[leaves.node] = np.maximum(near, 0.0).astype(np.int64)
    return _add_up(tree, weights, proposed)


def _model(tree: Tree, leaves: _Leaves, weights: _Weights) -> TreeModel:
    """Return the arrays that the kernels read; equal tables are stored once."""
    offset = np.full(tree.n_nodes, -1, dtype=np.int64)
    lower, upper = np.zeros(tree.n_nodes, np.int64), np.full(tree.n_nodes, _NO_END)
    peak = np.zeros(tree.n_nodes)
    bank, place = stored_once([table.log_pmf for table in weights.tables.values()])
    for v, table in weights.tables.items():
        offset[v], peak[v] = place[id(table.log_pmf)], table.log_pmf.max()
        lower[v], upper[v] = table.start, table.stop - 1
    return TreeModel(
        parent=tree.parent,
        depth=tree.depth,
        noisy=tree.noisy,
        precision=tree.precision,
        node=leaves.node,
        begin=leaves.begin,
        end=leaves.end,
        lower=lower,
        upper=upper,
        tables=bank,
        offset=offset,
        peak=peak,
    )


@seeded
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
    r"""Draw all counts of a tree from their posterior, non-negative and additive.

    .. math::

        P(c \mid \text{releases}) \propto \prod_{\text{leaves } i} w_i(c_i)
        \prod_{\text{nodes } v} e^{-\tau_v (y_v - c_v)^2}, \quad
        c_v = \sum_{i \text{ below } v} c_i

    The count of a leaf with a target is ``known_count`` or one more, the latter with its ``prior``,
    as in :func:`tree_posterior`. A known total (``exact_count``) stays fixed.

    Parameters
    ----------
    tree : Tree
        Hierarchy with its releases.
    leaf_prior : LeafPrior, CountLaw, callable, sequence of these, or "flat"
        Prior w of a leaf's count: one for all, or one for each leaf in the order of
        ``tree.leaves``. A callable takes an array of counts and returns their log prior. It needs
        neither a normaliser nor a closed form.
    draws, warmup, chains : int
        Sweeps kept and discarded in each chain, and number of chains; at most 1e8 sweeps, and 2**28
        numbers kept in all (2 GiB).
    rng : Generator or int
        Source of randomness; each chain gets its own child.
    threads : int, optional
        Number of threads; the draws do not depend on it. None: one for each processor.
    nodes : iterable of node names, optional
        Counts to keep; None keeps them all.
    pair_moves : bool, default True
        Whether to also move counts between leaves with totals fixed. Without these moves the law is
        the same, but chains mix slowly if a total is known better than its parts.

    Returns
    -------
    Samples
        Variables are nodes; ``target`` is that of the only leaf with a target (for example of
        :meth:`Tree.path`), if it is kept.

    Notes
    -----
    A sweep redraws each leaf from its exact conditional, which changes all totals above it. Then it
    moves counts between the leaf and a random leaf below one of its ancestors, from the exact
    conditional along that line. Any feasible state can be reached leaf by leaf, because leaves are
    independent a priori and every likelihood is positive. With known totals it can be reached by
    moves between two leaves. A sweep costs leaves times depth.

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
    check.instance(tree, Tree, "tree")
    if tree.is_bounded:
        raise ArgumentError("tree", "must have no lower and upper to be sampled")
    sizes = whole_settings(draws, warmup, chains)
    check.flag(pair_moves, "pair_moves")
    labels = tuple(tree.names if nodes is None else check.items(nodes, "nodes"))
    try:
        keep = np.array([tree.index(name) for name in labels], dtype=np.int64)
    except DataError as error:
        raise DataError(f"nodes: {error}") from error
    if not keep.size:
        raise ArgumentError("nodes", "must name at least one node", shown="none")
    weak = (tree.precision > 0.0) & (tree.precision < LEAST_PRECISION)
    if weak.any():
        raise ArgumentError(
            f"rho / sensitivity**2 must be 0 or >= {LEAST_PRECISION:g}, got "
            f"{check.describe_first(tree.precision, weak)}"
        )
    leaves = _leaves(tree)
    choices = _choices(tree, leaf_prior)
    weights = _all_weights(tree, leaves, dict(choices))
    model = _model(tree, leaves, weights)
    generators, seed = spawn(rng, sizes[2])
    counts = empty_counts(sizes[0], sizes[2], keep.size)

    def begin(chain: int) -> Step:
        random = generators[chain]
        count = _first_state(tree, leaves, weights, random)
        return lambda skip, out: fill_tree(random, model, pair_moves, count, keep, skip, out)

    run_chains(begin, counts, sizes[1], threads)
    targets = np.flatnonzero(tree.known_count >= 0)
    target = None
    released = keep[tree.precision[keep] > 0.0]
    constants: dict[str, Any] = {"precision": tree.precision[released]} if released.size else {}
    if targets.size == 1 and targets[0] in keep:
        k = int(tree.known_count[targets[0]])
        target = counts[:, :, int(np.argmax(keep == targets[0]))] - k
        constants |= {"prior": tree.prior[targets[0]], "known_count": k}
    return Samples(
        counts=counts,
        target=target,
        labels=labels,
        dimension="node",
        sampler="single leaves and pairs" if pair_moves else "single leaves",
        warmup=sizes[1],
        spec=MappingProxyType({"tree": repr(tree), "leaf_prior": repr(leaf_prior)}),
        seed=seed,
        releases=tuple(tree.names[v] for v in released),
        observed=MappingProxyType({"noisy_count": tree.noisy[released]} if released.size else {}),
        constants=MappingProxyType(constants),
        _prior=partial(_prior_draws, tree, leaves, choices, keep),
    )


def _prior_draws(
    tree: Tree,
    leaves: _Leaves,
    priors: Mapping[int, OneLeafPrior],
    keep: IntArray,
    rng: np.random.Generator,
    size: int,
) -> dict[str, IntArray]:
    """Return prior draws of the target and kept counts; empty where totals are known."""
    if tree.tables or np.any(tree.exact >= 0):
        return {}
    draws, proper = {}, True
    count = np.zeros((size, keep.size), dtype=np.int64)
    targets = np.flatnonzero(tree.known_count >= 0)
    for place, v in enumerate(leaves.node.tolist()):
        law = priors[v]
        if v in targets:
            sample = tree.known_count[v] + (rng.random(size) < tree.prior[v])
            if targets.size == 1 and v in keep:
                draws["target"] = sample - tree.known_count[v]
        elif isinstance(law, CountLaw):
            sample = np.asarray(law.rvs(size, random_state=rng), dtype=np.int64)
        else:
            proper = False
            continue
        count[:, (leaves.begin[keep] <= place) & (place < leaves.end[keep])] += sample[:, None]
    return draws | ({"count": count} if proper else {})

"""Gibbs sampler for every count of a tree at once, under any prior of the leaves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import FloatArray, IntArray, Number
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.kernels import FLAT, LogTable, log_table
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, DataError, ShapeError
from bayesrisk.inference.sampling import _kernels as kernels
from bayesrisk.inference.sampling._kernels import two_level_tables
from bayesrisk.inference.sampling.chains import (
    OVERDISPERSION,
    Samples,
    Step,
    room_for,
    run_chains,
    spawn,
    whole_settings,
)
from bayesrisk.inference.tree import posterior as model
from bayesrisk.inference.tree.leaf_prior import LeafPrior
from bayesrisk.inference.tree.structure import Tree
from bayesrisk.inference.two_levels.posterior import TwoLevelSettings

# -----------------------------------------------------------------------------
# Gibbs sampler for a path of nested groups: block, block group, tract, county, and so on.


_NO_END = 2**61
#: Least ``rho / sensitivity**2`` of a release: noise of weaker ones reaches beyond every count.
_LEAST_PRECISION = 1e-30


@dataclass(frozen=True)
class _State:
    """The free counts of a path, from the block upwards: levels of an only child are merged.

    ``level`` maps each level to its free count; entry 0 of the siblings is unused; ``tables`` are
    log priors with their first counts, of size 0 where flat.
    """

    level: IntArray
    noisy: FloatArray
    weight: FloatArray
    siblings: FloatArray
    sibling_weight: FloatArray
    tables: list[LogTable]


def _state(path: Any, levels: int) -> _State:
    """Return what moves freely: an only child's count is its parent's."""
    level = np.concatenate(([0], np.cumsum(path.n_siblings[: levels - 1] > 0)))
    size = int(level[-1]) + 1
    noisy, weight, siblings, sibling_weight = (np.zeros(size) for _ in range(4))
    tables = [FLAT] * size
    np.add.at(weight, level, path.precision[:levels])
    for i, place in enumerate(level):
        if weight[place] > 0.0:
            noisy[place] += path.precision[i] / weight[place] * path.noisy[i]
        if i and path.n_siblings[i - 1] > 0:
            siblings[place] = path.totals[i - 1]
            sibling_weight[place] = path.total_precision[i - 1]
        prior = path.priors[i - 1] if i else None
        if prior is not None:
            tables[place] = tables[place].times(prior)
    return _State(level, noisy, weight, siblings, sibling_weight, tables)


def _highest(state: _State) -> list[int]:
    """Return the largest feasible count at each free level, from the top down."""
    highest = [_NO_END] * len(state.tables)
    for i in range(len(state.tables) - 1, -1, -1):
        highest[i] = highest[i + 1] if i + 1 < len(highest) else _NO_END
        if not state.tables[i].flat:
            allowed = state.tables[i].allowed
            at = int(np.searchsorted(allowed, highest[i], side="right"))
            highest[i] = int(allowed[at - 1]) if at else -1
    return highest


def _block_log_prior(state: _State, known: int, prior: float, highest: list[int]) -> float:
    """Return the log odds of x = 1 before any release: also what priors make impossible."""
    odds = LogTable.of_target(known, prior).log_pmf
    for x in (0, 1):
        odds[x] += state.tables[0].at(known + x)
        if known + x > highest[0]:
            odds[x] = -np.inf
    if max(odds) == -np.inf:
        raise ArgumentError(f"count_priors must allow counts from known_count = {known} upwards")
    return float(odds[1] - odds[0])


def _first_path_state(
    state: _State, x: int, known: int, highest: list[int], rng: np.random.Generator
) -> IntArray:
    """Return feasible counts, spread by three times the noise of the releases."""
    weight = state.weight + state.sibling_weight
    spread = np.sqrt(0.5 / np.where(weight > 0.0, weight, 0.5))
    likely = state.noisy + OVERDISPERSION * spread * rng.standard_normal(weight.size)
    count = np.empty(weight.size, dtype=np.int64)
    count[0] = known + x
    for i in range(1, count.size):
        count[i] = min(
            max(int(np.clip(likely[i], -_NO_END, _NO_END)), int(count[i - 1])), highest[i]
        )
        if not state.tables[i].flat:
            allowed = state.tables[i].allowed
            count[i] = allowed[np.searchsorted(allowed, count[i])]
    return count


def sample_path(
    noisy_counts: ArrayLike,
    siblings: ArrayLike,
    *,
    n_siblings: ArrayLike,
    rho: Number,
    prior: float,
    known_count: int = 0,
    sibling_rho: Number | None = None,
    count_priors: Sequence[CountLaw | None] | None = None,
    known_totals: Sequence[int | None] | None = None,
    sensitivity: Number = 1.0,
    levels: Sequence[str] | None = None,
    draws: int,
    warmup: int,
    chains: int,
    rng: np.random.Generator | int,
    threads: int | None = None,
) -> Samples:
    r"""Sample the counts of a path of nested groups from releases at every level.

    The model of :func:`path_posterior`: with :math:`X_0` the block's count and :math:`X_l` that of
    the group at level l,

    .. math::

        P(X \mid y, S) \propto P(X_0) \prod_{l=0}^{L} e^{-\rho_l (y_l - X_l)^2}
        \prod_{l=1}^{L} P(X_l)\, e^{-(r_l / m_l) (S_l - X_l + X_{l-1})^2}\, 1[X_l \ge X_{l-1}]

    Parameters
    ----------
    noisy_counts : array_like of int, shape (levels,)
        Released counts y from the block to the top; ignored where rho is 0.
    siblings : array_like of int, shape (levels - 1,)
        For every level above the block, the total S of the released counts of the group's other
        children.
    n_siblings : array_like of int, shape () or (levels - 1,)
        Number m of those other children; 0 for an only child (S is then ignored).
    rho : array_like, shape () or (levels,)
        zCDP budget of the count at each level: 0 for no release, else at least
        1e-30 * sensitivity**2.
    prior : float
        Probability p that the block's count is ``known_count`` + 1, in (0, 1).
    known_count : int, default 0
        Others in the block known to have the characteristics, k.
    sibling_rho : array_like, shape () or (levels - 1,), optional
        Budget r of each of the other children; by default that of the level below.
    count_priors : sequence of CountLaw or None, length levels - 1, optional
        Prior of the count of each group, with bounded support; None is flat on 0, 1, 2, ...
    known_totals : sequence of int or None, length levels - 1, optional
        Counts of groups that are published without noise, as for :func:`path_posterior`.
    sensitivity : float, default 1.0
        L2 sensitivity that the budgets refer to.
    levels : sequence of str, optional
        Names from the block upwards; ``level_0``, ``level_1``, ... if None.
    draws, warmup, chains : int
        Sweeps kept and discarded in each chain, and number of chains. At most 1e8 sweeps, and
        2**28 numbers kept in all (2 GiB).
    rng : Generator or int
        Source of randomness; each chain gets a child of its own.
    threads : int, optional
        Threads to use; the draws do not depend on it. None: as many as there are processors.

    Returns
    -------
    Samples
        One variable for each level; levels at the top about which nothing was released are left
        out under a flat prior.

    Notes
    -----
    A sweep redraws X_0 given X_1, then each level given its neighbours from a discrete Gaussian
    cut to the counts between theirs, by rejection without approximation; under a prior, from its
    table.  Every feasible state can be reached from every other: raise the levels to the larger of
    the two states from the top down, then lower them from the bottom up.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), section 3.2, for one level above the block.

    Examples
    --------
    >>> samples = sample_path([2, 1, 4], [-1, 2], n_siblings=[27, 3], rho=[0.1, 0.25, 0.05],
    ...     prior=0.5, draws=100, warmup=10, chains=2, rng=1)
    >>> samples.counts.shape
    (2, 100, 3)
    """
    k = check.integer(known_count, "known_count", lower=0)
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    path = model.read_path(
        noisy_counts, siblings, n_siblings, rho, sibling_rho, count_priors, sensitivity
    ).with_totals(known_totals, k)
    weak = (path.precision > 0.0) & (path.precision < _LEAST_PRECISION)
    if weak.any():
        raise ArgumentError(
            f"rho / sensitivity**2 must be 0 or >= {_LEAST_PRECISION:g}, got "
            f"{check.describe_first(path.precision, weak)}"
        )
    names = _names(levels, path.noisy.size)
    sizes = whole_settings(draws, warmup, chains)
    state = _state(path, path.informed())
    highest = _highest(state)
    log_odds = _block_log_prior(state, k, p, highest)
    possible = [x for x, ruled_out in ((0, np.inf), (1, -np.inf)) if log_odds != ruled_out]
    log_odds += float(state.weight[0] * (2.0 * (state.noisy[0] - k) - 1.0))
    # The block's own table is in the odds.
    tables = [FLAT, *state.tables[1:]]
    given = kernels.PathModel(
        known_count=k,
        log_odds=log_odds,
        noisy=state.noisy,
        precision=state.weight,
        siblings=state.siblings,
        sibling_precision=state.sibling_weight,
        prior_at=np.cumsum([0, *(table.log_pmf.size for table in tables)]),
        prior_start=np.array([table.start for table in tables], dtype=np.int64),
        log_prior=np.concatenate([table.log_pmf for table in tables]),
    )
    generators, seed = spawn(rng, sizes[2])
    counts = room_for(sizes[0], sizes[2], state.noisy.size)

    def begin(chain: int) -> Step:
        random, x = generators[chain], possible[chain % len(possible)]
        count = _first_path_state(state, x, k, highest, random).copy()
        return lambda skip, out: kernels.fill_path(random, given, count, skip, out)

    run_chains(begin, counts, sizes[1], threads)
    spec = {
        "noisy_counts": path.noisy.tolist(),
        "siblings": path.totals.tolist(),
        "n_siblings": path.n_siblings.tolist(),
        "precision": path.precision.tolist(),
        "sibling_precision": path.total_precision.tolist(),
        "prior": p,
        "known_count": k,
        "count_priors": "flat" if count_priors is None else list(count_priors),
        "known_totals": None if known_totals is None else list(known_totals),
    }
    return Samples(
        counts=counts[:, :, state.level],
        target=counts[:, :, 0] - k,
        labels=names[: state.level.size],
        dimension="level",
        sampler="coherent",
        warmup=sizes[1],
        spec=MappingProxyType(spec),
        seed=seed,
        observed=MappingProxyType({"noisy_count": path.noisy[: state.level.size]}),
        constants=MappingProxyType(
            {"precision": path.precision[: state.level.size], "prior": p, "known_count": k}
        ),
    )


def _names(levels: Sequence[str] | None, size: int) -> tuple[str, ...]:
    if levels is None:
        return tuple(f"level_{i}" for i in range(size))
    names = check.texts(levels, "levels")
    if len(names) != size:
        raise ShapeError(f"levels must name each of the {size} levels, got {shown(names)}")
    if len(set(names)) != size:
        raise ArgumentError(f"levels must be different names, got {shown(names)}")
    return names


# -----------------------------------------------------------------------------


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


# -----------------------------------------------------------------------------
# Gibbs samplers for releases at two or more levels: the exact posteriors' independent check.
#
# The adversary's model is that of Kazan and Reiter, section 3.2: a block inside a group, releases
# with noise at both levels, and the noisy total of the other blocks.


def sample_two_levels(
    known: TwoLevelSettings,
    release: tuple[int, int, int],
    *,
    draws: int,
    warmup: int,
    chains: int,
    rng: np.random.Generator | int,
    threads: int | None,
) -> Samples:
    """Sample the block's and the group's count given block, group and siblings; see `TwoLevels`.

    Both conditionals are drawn without approximation: x has two values, so N given x is one of
    two tables, inverted.
    """
    y, n, s = (
        check.integer(value, name)
        for value, name in zip(release, ("block", "group", "siblings"), strict=True)
    )
    m, k = (check.integer(getattr(known, name), name) for name in ("n_siblings", "known_count"))
    spec = {
        "block": y,
        "group": n,
        "siblings": s,
        "n_siblings": m,
        "rho_block": check.scalar(known.rho_block, "rho_block"),
        "rho_group": check.scalar(known.rho_group, "rho_group"),
        "prior": check.scalar(known.prior, "prior"),
        "known_count": k,
        "group_prior": known.group_prior,
        "known_total": known.known_total,
        "sensitivity": check.scalar(known.sensitivity, "sensitivity"),
        "conditionals": known.conditionals,
    }
    settings = known.checked
    sizes = whole_settings(draws, warmup, chains)
    log_odds = special.logit(float(settings.prior)) + float(settings.block) * (2.0 * (y - k) - 1.0)
    tables, feasible = two_level_tables(
        (n, s, k),
        (float(settings.group), float(settings.total)),
        log_odds,
        settings.group_prior,
        coherent=not settings.published,
    )
    generators, seed = spawn(rng, sizes[2])
    counts = room_for(sizes[0], sizes[2], 2)

    def begin(chain: int) -> Step:
        random = generators[chain]
        state = np.array([feasible[chain % len(feasible)], -1])
        return lambda skip, out: kernels.fill_two_levels(random, tables, state, skip, out)

    run_chains(begin, counts, sizes[1], threads)
    return Samples(
        counts=counts,
        target=counts[:, :, 0] - k,
        labels=("block", "group"),
        dimension="level",
        sampler=known.conditionals,
        warmup=sizes[1],
        spec=MappingProxyType(spec),
        seed=seed,
        observed=MappingProxyType({"noisy_count": np.array([y, n]), "noisy_siblings": s}),
        constants=MappingProxyType(
            {
                "precision": np.array([float(settings.block), float(settings.group)]),
                "prior": float(settings.prior),
                "known_count": k,
            }
        ),
    )

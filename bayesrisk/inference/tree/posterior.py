"""The posterior of every count of a hierarchy given all releases, and the risk of its targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed, number, span
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.distributions import FiniteLaw
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.inference.tree import _sum_product as engine
from bayesrisk.inference.tree.plan import LeafPrior, LeafPriors, Plan, plan_tree
from bayesrisk.inference.tree.structure import SeveralTrees, Tree
from bayesrisk.tables.published import by_release


@displayed
@dataclass(frozen=True, eq=False)
class TreePosterior(Tabular):
    """The posterior of every node's count, exact up to a stated truncation.

    Arrays have one entry per node, in the order of ``tree.names``, and are read-only. ``mean`` and
    ``sd`` are the posterior expectation and standard deviation, in persons; ``mode`` is the most
    probable count, the smallest in a tie. ``at_least_one`` is the probability that the count is not
    zero. The pmf of a node is ``probabilities[offset:offset + size]``, for the counts ``lowest``,
    ``lowest + 1``, ...; nodes with the same count share one pmf.

    ``truncation_bound`` bounds the posterior mass that was cut off: the total-variation distance of
    every pmf, and of the joint law, to the exact one. ``rounding_bound`` bounds the share that
    rounding of fast Fourier transforms may have moved. It is 0 if all sums were direct (they add a
    relative error of about 1e-15 per level of merging). The ``status`` is ``"exact"``, or
    ``"bound above tail"`` if contradictory evidence prevents the requested truncation.
    ``leaf_prior`` describes the prior, and ``peak_bytes`` is the memory of the messages.
    """

    tree: Tree
    mean: FloatArray
    sd: FloatArray
    mode: IntArray
    at_least_one: FloatArray
    truncation_bound: float
    rounding_bound: float
    status: str
    leaf_prior: str
    peak_bytes: int
    lowest: IntArray
    offset: IntArray
    size: IntArray
    probabilities: FloatArray

    def _answer(self) -> list[str]:
        return [
            f"Counts of {len(self.mean):,} nodes, expected {span(self.mean)} with a standard "
            f"deviation of {span(self.sd)}; probability of at least one {span(self.at_least_one)}.",
            f"{self.status}: within {number(self.truncation_bound)} of the untruncated law "
            f"(prior: {self.leaf_prior}).",
        ]

    def pmf(self, node: object) -> pd.Series:
        """Return the posterior of one node's count: probability by count.

        Counts that are not listed have a total probability of at most ``truncation_bound``.
        """
        v = self.tree.index(node)
        low, offset, size = int(self.lowest[v]), int(self.offset[v]), int(self.size[v])
        index = pd.RangeIndex(low, low + size, name="count")
        pmf = self.probabilities[offset : offset + size]
        return pd.Series(pmf, index=index, name="probability")

    def law(self, node: object) -> FiniteLaw:
        """Return the posterior of one node's count as a law."""
        pmf = self.pmf(node)
        bound = min(self.truncation_bound + self.rounding_bound + pmf.size * 2.0**-52, 1.0)
        return FiniteLaw(int(pmf.index[0]), pmf.to_numpy(), error_bound=bound)

    def quantile(self, q: ArrayLike) -> IntArray:
        """Return the smallest count of each node with cumulative probability >= ``q``."""
        levels = check.probability(q, "q")
        out = np.empty((levels.size, self.tree.n_nodes), dtype=np.int64)
        windows = np.stack([self.lowest, self.offset, self.size], axis=1).tolist()
        for row, level in zip(out, levels.reshape(-1).tolist(), strict=True):
            for v, (low, start, size) in enumerate(windows):
                reached = np.cumsum(self.probabilities[start : start + size]).searchsorted(level)
                row[v] = low + min(int(reached), size - 1)
        return out.reshape((*levels.shape, self.tree.n_nodes))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per node."""
        tree = self.tree
        parent = pd.Series(tree.names[np.maximum(tree.parent, 0)])
        noisy = pd.Series(tree.noisy, dtype="Int64").where(tree.precision > 0.0)
        return pd.DataFrame(
            {
                "node": tree.names,
                "parent": parent.where(tree.parent >= 0, None),
                "depth": tree.depth,
                "noisy_count": noisy,
                "mean": self.mean,
                "sd": self.sd,
                "mode": self.mode,
                "at_least_one": self.at_least_one,
                "truncation_bound": self.truncation_bound,
            }
        )


def tree_posterior(
    tree: Tree | SeveralTrees,
    *,
    leaf_prior: LeafPriors,
    use_targets: bool = True,
    tail: float = 1e-15,
) -> TreePosterior:
    r"""Return the posterior of every node's count given every noisy count in the tree.

    .. math:: P(X \mid y) \propto \prod_{i \in \text{leaves}} \pi_i(X_i)
        \prod_{v} e^{-\lambda_v (y_v - X_v)^2}, \qquad X_v = \sum_{c \in \text{children}(v)} X_c,
        \quad X_i \ge 0

    with :math:`\lambda_v = 1 / (2 \sigma_v^2)`, restricted to :math:`\ell_v \le X_v \le u_v` if the
    tree has bounds (equal for an exact total). The method is sum-product. Messages up the tree are
    convolutions over siblings, messages down it correlations, both along a balanced binary tree of
    siblings. A node with an exactly known count (``exact_count`` of the table) has no other value:
    the limit of noise 0, taken as an equation.

    Parameters
    ----------
    tree : Tree, or sequence of them, or mapping by name
        Hierarchy and releases. Noisy counts may be negative; a node may have no release. Trees of
        several releases of the same counts are combined (:meth:`Tree.combine`).
    leaf_prior : LeafPrior, CountLaw, sequence of CountLaw, or "flat"
        Prior of the leaves' counts, which are independent: one for all, or one per leaf in the
        order of ``tree.leaves``. A ``CountLaw`` has finite support. The flat prior is improper.
    use_targets : bool, default True
        Whether the count of a leaf with a target is ``known_count`` or one more, the latter with
        its ``prior``. If False, every leaf has ``leaf_prior``.
    tail : float, default 1e-15
        Largest posterior mass that may be cut off, in (0, 1e-3].

    Raises
    ------
    ArgumentError
        If the posterior is improper: neither a leaf under a flat prior nor any node above it has a
        release. If prior and bounds exclude every set of counts. If more than 2**27 probabilities
        (2 GiB with those of the downward pass) would be needed.

    Notes
    -----
    Time grows as the sum of the products of the windows of neighbouring siblings, near-linearly in
    the number of leaves. Memory is 16 bytes for every entry of every window, about 2 KiB per leaf
    for the 2020 Census budgets. The truncation bound is rigorous apart from rounding. Cut mass is
    followed to the root at the largest rate at which evidence can amplify it, and windows widen
    until the bound is below ``tail``.

    Examples
    --------
    >>> frame = pd.DataFrame(
    ...     {
    ...         "node": ["group", "a", "b"],
    ...         "parent": [None, "group", "group"],
    ...         "noisy_count": [3, 2, -1],
    ...         "rho": [0.25, 0.1, 0.1],
    ...     }
    ... )
    >>> posterior = tree_posterior(Tree.from_frame(frame), leaf_prior="flat")
    >>> posterior.mean.round(3).tolist()
    [3.065, 2.135, 0.93]
    >>> posterior.truncation_bound < 1e-15
    True
    """
    check.flag(use_targets, "use_targets")
    if isinstance(tree, (Mapping, list, tuple)):
        tree = Tree.combine(by_release(tree, Tree, "tree"))
    tree = check.instance(tree, Tree, "tree")
    plan, name = plan_tree(tree, leaf_prior, targets=use_targets)
    check.scalar(tail, "tail", lower=0.0, upper=1e-3, bounds="(]")
    m = engine.run(plan, tail=tail)
    mean, sd, mode, at_least_one = np.ascontiguousarray(m.summary[plan.unit_number].T)
    whole = mode.astype(np.int64)
    lowest, offset, size = (array[plan.unit_number] for array in (m.low, m.offset, m.size))
    for array in (mean, sd, whole, at_least_one, lowest, offset, size, m.pmf):
        array.setflags(write=False)
    return TreePosterior(
        tree=tree,
        mean=mean,
        sd=sd,
        mode=whole,
        at_least_one=at_least_one,
        truncation_bound=m.truncation,
        rounding_bound=m.rounding,
        status="exact" if m.truncation <= tail else "bound above tail",
        leaf_prior=name,
        peak_bytes=m.peak_bytes,
        lowest=lowest,
        offset=offset,
        size=size,
        probabilities=m.pmf,
    )


@displayed
@dataclass(frozen=True, eq=False)
class TargetPosteriors(Tabular):
    """Posterior probability of the target in each leaf, given all releases of a tree.

    Arrays have one entry per leaf with a target. They are the number of others known to be counted
    there; the target's prior and posterior probability; their ratio; and a bound on the posterior's
    error. ``leaf_prior`` is that of the other leaves. ``status`` is ``"exact"`` or
    ``"bound above tail"``.
    """

    names: pd.Index
    known_count: IntArray
    prior: FloatArray
    posterior: FloatArray
    risk_ratio: FloatArray
    truncation_bound: FloatArray
    leaf_prior: str
    status: str

    def to_frame(self) -> pd.DataFrame:
        """Return one row per target."""
        return pd.DataFrame(
            {
                "node": self.names,
                "known_count": self.known_count,
                "prior": self.prior,
                "posterior": self.posterior,
                "risk_ratio": self.risk_ratio,
                "truncation_bound": self.truncation_bound,
            }
        )


def target_posteriors(
    tree: Tree, *, leaf_prior: LeafPriors, tail: float = 1e-12
) -> TargetPosteriors:
    r"""Return the belief that the target is counted in each leaf, given all noisy counts.

    The adversary who attacks leaf i knows that its count is k = ``known_count`` or, with
    probability p = ``prior``, k + 1 with the target. Every other leaf has ``leaf_prior``:

    .. math:: \frac{\pi_i}{1 - \pi_i} = \frac{p}{1 - p}\;
        \frac{e^{-\lambda_i (y_i - k - 1)^2} D_i(k + 1)}{e^{-\lambda_i (y_i - k)^2} D_i(k)}

    where D_i(x) is the probability of all other releases given that leaf i counts x. Exactly known
    counts hold with and without the target. The other leaves make up the rest, whose probability is
    part of D_i(x). Each target is analysed alone: other targets' leaves keep ``leaf_prior``. One
    pass up and down the tree gives every D_i. Only targets whose k is nearly impossible under
    ``leaf_prior`` take a pass of their own.

    Parameters
    ----------
    tree : Tree
        Tree from a table with columns ``known_count`` and ``prior``, without bounds.
    leaf_prior : LeafPrior, CountLaw, sequence of CountLaw, or "flat"
        Prior of the other leaves, as for :func:`tree_posterior`. In a target's own leaf it only
        sets the scale of the computation; it must allow k and k + 1.
    tail : float, default 1e-12
        Largest error of a posterior probability from cutting windows, in (0, 1e-3].

    Examples
    --------
    >>> frame = pd.DataFrame(
    ...     {
    ...         "node": ["group", "a", "b"],
    ...         "parent": [None, "group", "group"],
    ...         "noisy_count": [1, 2, -1],
    ...         "rho": [0.2464845, 0.0992264, 0.0992264],
    ...         "known_count": [None, 0, 0],
    ...         "prior": [None, 0.5, 0.5],
    ...     }
    ... )
    >>> risk = target_posteriors(Tree.from_frame(frame), leaf_prior="flat")
    >>> risk.to_frame()[["node", "prior", "posterior", "risk_ratio"]].round(3)
      node  prior  posterior  risk_ratio
    0    a    0.5      0.548       1.096
    1    b    0.5      0.345       0.690
    """
    plan, name = plan_tree(tree, leaf_prior, targets=False)
    if tree.is_bounded:
        raise ArgumentError(
            "tree must have no lower and upper for posteriors of targets; tree_posterior takes them"
        )
    check.scalar(tail, "tail", lower=0.0, upper=1e-3, bounds="(]")
    leaves = np.flatnonzero(tree.known_count >= 0)
    if not leaves.size:
        raise DataError("tree must have a leaf with known_count and prior, got none")
    k, prior, unit = tree.known_count[leaves], tree.prior[leaves], plan.unit_number[leaves]
    # A leaf with an exact count or a weight of its own is a passage of its own.
    settled = np.isin(unit, plan.unit_number[[*np.flatnonzero(tree.exact >= 0), *tree.tables]])
    posterior, bound = np.empty(unit.size), np.ones(unit.size)
    if not settled.all():
        open_targets = ~settled
        step = _prior_steps(
            plan, unit[open_targets], k[open_targets], tree.names[leaves[open_targets]]
        )
        posterior[open_targets], bound[open_targets] = _joint_passage(
            plan, unit[open_targets], k[open_targets], prior[open_targets], step, tail
        )
    for i in np.flatnonzero(bound > tail).tolist():
        # Nearly impossible under leaf_prior: the windows of all targets cannot reach this one.
        posterior[i], bound[i] = _one_by_one(tree, leaf_prior, int(leaves[i]), tail)
    return TargetPosteriors(
        names=tree.names[leaves],
        known_count=k,
        prior=prior,
        posterior=posterior,
        risk_ratio=posterior / prior,
        truncation_bound=bound,
        leaf_prior=name,
        status="exact" if np.all(bound <= tail) else "bound above tail",
    )


def _joint_passage(
    plan: Plan, unit: IntArray, k: IntArray, prior: FloatArray, step: FloatArray, tail: float
) -> tuple[FloatArray, FloatArray]:
    """Return every target's posterior and its error bound from one pass for all.

    They are the odds of k + 1 against k under ``leaf_prior``, divided by the prior odds in
    ``leaf_prior`` and multiplied by those of the target. The mass cut off may all belong to one of
    the two.
    """
    needed = np.full(plan.lam.size, -1, dtype=np.int64)
    needed[unit] = k
    cut = 1e-3 * tail
    for attempt in range(2):
        m = engine.run(plan, tail=cut, needed=needed)
        position = m.offset[unit] + k - m.low[unit]
        inside = (k >= m.low[unit]) & (k + 1 < m.low[unit] + m.size[unit])
        weight = m.pmf[np.where(inside, position, 0)], m.pmf[np.where(inside, position + 1, 0)]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bound = m.truncation / weight[0] + m.truncation / weight[1]
        bound = np.where(inside & (bound < 1.0), bound, 1.0)
        if attempt or np.all(bound <= tail):
            break
        # Nearly all targets come within reach at little cost; windows grow as the root of a log.
        cut = max(cut * min(tail / float(bound.max()), 1e-30), 1e-60)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        odds = np.log(weight[1]) - np.log(weight[0]) - step
        posterior = 1.0 / (1.0 + (1.0 - prior) / prior * np.exp(-odds))
    return np.where(bound < 1.0, posterior, prior), bound


def _one_by_one(tree: Tree, leaf_prior: LeafPriors, leaf: int, tail: float) -> tuple[float, float]:
    """Return one target's posterior and its bound, from a tree without other targets."""
    only = np.arange(tree.n_nodes) == leaf
    single = replace(tree, known_count=np.where(only, tree.known_count, -1))
    belief = tree_posterior(single, leaf_prior=leaf_prior, tail=tail)
    pmf = belief.pmf(tree.names[leaf])
    return float(pmf.get(int(tree.known_count[leaf]) + 1, 0.0)), belief.truncation_bound


def _prior_steps(plan: Plan, unit: IntArray, k: IntArray, names: pd.Index) -> FloatArray:
    """Return log prior(k + 1) - log prior(k) for each target's leaf."""
    law = plan.law[unit]
    step = LeafPrior("", law[:, 0], law[:, 1], law[:, 2]).log_ratios(k)
    offset, low, size = plan.bank_slot[unit].T
    for i in np.flatnonzero(size):
        values = plan.bank[offset[i] : offset[i] + size[i]]
        position = int(k[i] - low[i])
        step[i] = values[position + 1] - values[position] if 0 <= position < size[i] - 1 else np.nan
    excluded = ~np.isfinite(step)
    if excluded.any():
        worst = int(np.argmax(excluded))
        raise ArgumentError(
            f"leaf_prior must allow known_count and one more in the leaf of a target, "
            f"got {k[worst]} for leaf {quote(names[worst])}"
        )
    return step

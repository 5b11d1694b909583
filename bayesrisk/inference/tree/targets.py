"""The risk of every leaf's target in a tree of releases, from one passage over it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from bayesrisk._base import validation as check
from bayesrisk._base.display import Tabular, displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.exceptions import ArgumentError, DataError, quote
from bayesrisk.inference.tree import _sum_product as engine
from bayesrisk.inference.tree.leaf_prior import LeafPrior
from bayesrisk.inference.tree.plan import LeafPriors, Plan, plan_tree
from bayesrisk.inference.tree.posterior import tree_posterior
from bayesrisk.inference.tree.structure import Tree


@displayed
@dataclass(frozen=True, eq=False)
class TargetPosteriors(Tabular):
    """Posterior probability of the target in each leaf, given all releases of a tree.

    Arrays have one entry per leaf with a target: others known to be counted in it, the probability
    that the target is, before and after the releases, their quotient, and a bound on the error of
    the posterior.  ``leaf_prior`` is that of the other leaves, ``status`` ``"exact"`` or
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
    r"""Return the belief about one person in each leaf of a tree, from all noisy counts.

    The adversary who attacks leaf i knows that its count is ``known_count`` k or k + 1. It is k +
    1, with the target, with probability ``prior`` p. Every other leaf has ``leaf_prior``:

    .. math:: \frac{\pi_i}{1 - \pi_i} = \frac{p}{1 - p}\;
        \frac{e^{-\lambda_i (y_i - k - 1)^2} D_i(k + 1)}{e^{-\lambda_i (y_i - k)^2} D_i(k)}

    where D_i(x) is the probability of all other releases given that leaf i counts x.  Counts that
    are known exactly are events that hold with and without the target: the other leaves make up
    what it leaves, and how probable that is belongs to D_i(x).  Each
    target is analysed on its own: other targets' leaves keep ``leaf_prior``.  One passage up and
    down the tree gives every D_i, but for targets whose k is nearly impossible under
    ``leaf_prior``: each of these takes a passage of its own.

    Parameters
    ----------
    tree : Tree
        Made from a table with columns ``known_count`` and ``prior``; without bounds.
    leaf_prior : LeafPrior, CountLaw, sequence of CountLaw, or "flat"
        Prior of the other leaves, as for :func:`tree_posterior`; in a target's own leaf it only
        sets the scale of the computation, and must allow k and k + 1.
    tail : float, default 1e-12
        Error of a posterior probability that may come from cutting off windows, in (0, 1e-3].

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
    """Return every target's posterior and the bound on its error, from the tree without targets.

    The odds of k + 1 against k under ``leaf_prior``, divided by the prior odds in ``leaf_prior``
    and multiplied by those of the target.  Mass that was cut off may all belong to one of the two.
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
    """Return a target's posterior and its bound from a tree in which only it is a target."""
    only = np.arange(tree.n_nodes) == leaf
    single = replace(tree, known_count=np.where(only, tree.known_count, -1))
    belief = tree_posterior(single, leaf_prior=leaf_prior, tail=tail)
    pmf = belief.pmf(tree.names[leaf])
    return float(pmf.get(int(tree.known_count[leaf]) + 1, 0.0)), belief.truncation_bound


def _prior_steps(plan: Plan, unit: IntArray, k: IntArray, names: pd.Index) -> FloatArray:
    """Return log prior(k + 1) - log prior(k) in each target's leaf."""
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

"""The posterior of every count of a hierarchy, given every noisy count in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._show import displayed, number, span
from bayesrisk._validation import Number
from bayesrisk._version import __version__
from bayesrisk.distributions import CountLaw, FiniteLaw
from bayesrisk.distributions.kernels import LogTable, log_table
from bayesrisk.distributions.sums import sum_ripple
from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError
from bayesrisk.inference.count.posterior import posterior_probability
from bayesrisk.inference.tree import _kernels as kernels
from bayesrisk.inference.tree import _sum_product as engine
from bayesrisk.inference.tree._messages import Plan, make_plan
from bayesrisk.inference.tree.leaf_prior import LeafPriors, plan_tree
from bayesrisk.inference.tree.structure import Tree

# -----------------------------------------------------------------------------
# A path of nested groups: block, block group, tract, county, ..., each with its other children.
#
# The adversary knows the block up to one person, and of every level above the noisy count of the
# group and the noisy total of its other children.  A path is a tree of a special form: the other
# children of a group are one leaf, and a flat prior on that leaf is a flat prior on the group.


#: Doubles in the messages of a path: seconds of work, and windows that no published count fills.
_MAX_ENTRIES = 2**24
_REACH = 700.0  # a table of exact noise ends where it is exp(-700) of its largest value


@displayed
@dataclass(frozen=True, eq=False)
class PathPosterior:
    """Posterior of the target and of the count at every level of a path, exact up to a bound.

    Attributes
    ----------
    target_probability : float
        Posterior probability that the block's count is ``known_count`` + 1.
    prior : float
        The same before the releases: the baseline.
    block_probability : float
        The same given the block's release alone: what the hierarchy is compared with.
    known_count : int
        Others in the block known to have the characteristics.
    mean, sd : ndarray of float64, shape (levels,)
        Posterior expectation and standard deviation of the count at each level, block first.
        Levels at the top about which nothing is known (no release, no total, flat prior) are left
        out: their posterior is flat, and they change nothing below.
    truncation_bound : float
        Bound on the posterior mass that was cut off, hence on the absolute error by truncation
        of every probability here.
    rounding_bound : float
        Bound on what rounding of fast Fourier transforms may have moved; 0 when all sums were
        direct.
    status : str
        ``"exact"``, or ``"bound above tail"``.
    sibling_noise : str
        As asked for.
    pmfs : tuple of pandas.Series
        Posterior of the count at each level: probability by count.
    version : str
        Version of bayesrisk.
    """

    target_probability: float
    prior: float
    block_probability: float
    known_count: int
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    truncation_bound: float
    rounding_bound: float
    status: str
    sibling_noise: str
    pmfs: tuple[pd.Series, ...]
    version: str = __version__

    @property
    def risk_ratio(self) -> float:
        """Posterior over prior."""
        return self.target_probability / self.prior

    def pmf(self, level: int) -> pd.Series:
        """Return the posterior of the count at one level.

        Parameters
        ----------
        level : int
            0 for the block, 1 for the group around it, and so on.

        Returns
        -------
        pandas.Series
            Probability by count.
        """
        at = check.integer(level, "level", lower=0, upper=len(self.pmfs) - 1)
        return self.pmfs[at]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per level, block first.

        Returns
        -------
        pandas.DataFrame
            Columns level, mean, sd, mode, at_least_one and truncation_bound.
        """
        pmfs = self.pmfs
        return pd.DataFrame(
            {
                "level": range(len(pmfs)),
                "mean": self.mean,
                "sd": self.sd,
                "mode": [int(pmf.index[int(pmf.argmax())]) for pmf in pmfs],
                "at_least_one": [min(float(pmf.loc[1:].sum()), 1.0) for pmf in pmfs],
                "truncation_bound": self.truncation_bound,
            }
        )


@dataclass(frozen=True)
class _Path:
    """Checked arguments: releases with precisions, block first; ``totals`` one shorter."""

    noisy: NDArray[np.int64]
    precision: NDArray[np.float64]
    totals: NDArray[np.int64]
    n_siblings: NDArray[np.int64]
    total_precision: NDArray[np.float64]
    priors: tuple[LogTable | None, ...]

    def with_totals(self, known_totals: Any, k: int) -> _Path:
        """Return the path with the totals that are known, each a law of one count."""
        if known_totals is None:
            return self
        totals = check.items(known_totals, "known_totals")
        if len(totals) != len(self.priors):
            raise ShapeError(
                f"known_totals must have one entry for each of the {len(self.priors)} levels above "
                f"the block, got {len(totals)}"
            )
        priors, least = list(self.priors), k + 1
        for i, given in enumerate(totals):
            if given is None:
                continue
            name = f"known_totals[{i}]"
            total = check.integer(given, name)
            if total < least:
                raise ArgumentError(
                    f"{name} must be at least {least}, above known_count and not below the totals "
                    f"of lower levels, got {total}"
                )
            if not self.n_siblings[: i + 1].any():
                raise ArgumentError(
                    f"{name} must be that of a group with more than one block (n_siblings > 0), "
                    f"got {total}"
                )
            law = self.priors[i]
            if law is not None and law.at(total) == -np.inf:
                raise ArgumentError(
                    f"{name} must be possible under count_priors ({law.start} to {law.stop - 1}), "
                    f"got {total}"
                )
            priors[i], least = LogTable(total, np.zeros(1)), total
        return replace(self, priors=tuple(priors))

    def informed(self) -> int:
        """Return the number of levels below which something bounds the counts."""
        levels = self.noisy.size
        while levels > 1 and self.priors[levels - 2] is None:
            if self.precision[levels - 1] > 0.0 or self.total_precision[levels - 2] > 0.0:
                break
            if self.n_siblings[levels - 2] == 0:
                break  # the same count as the level below
            levels -= 1
        return levels


def path_posterior(
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
    sibling_noise: str = "approximate",
    tail: float = 1e-15,
) -> PathPosterior:
    r"""Return the posterior of a target given releases along a path of nested groups.

    With :math:`X_0 \in \{k, k + 1\}` the block's count and :math:`X_l` that of the group at
    level l,

    .. math:: P(X \mid y, S) \propto P(X_0) \prod_{l=0}^{L} e^{-\rho_l (y_l - X_l)^2}
        \prod_{l=1}^{L} P(X_l)\, e^{-(r_l / m_l) (S_l - X_l + X_{l-1})^2}\, 1[X_l \ge X_{l-1}]

    by forward and backward sums over the counts, level by level.  A total that is known (an
    invariant) is an event that holds with and without the target: the sums are over the counts
    with :math:`X_l = N_l` at its level, for either value of :math:`X_0`, so that the other children
    make up what the target leaves.

    Parameters
    ----------
    noisy_counts : array_like of int, shape (levels,)
        Noisy counts y of the block, the group around it, and so on; may be negative.  Ignored
        where ``rho`` is 0.
    siblings : array_like of int, shape (levels - 1,)
        For every level above the block, the total S of the noisy counts of the group's other
        children.
    n_siblings : array_like of int, shape () or (levels - 1,)
        Number m of those other children, in [0, 10**9]; 0 for an only child (S is then ignored).
    rho : array_like, shape () or (levels,)
        zCDP budget of the count at each level, in [0, 1e100]; 0 for no release.
    prior : float
        Probability p that the block's count is k + 1, in (0, 1).
    known_count : int, default 0
        Others in the block known to have the characteristics, k.
    sibling_rho : array_like, shape () or (levels - 1,), optional
        Budget r of each of the other children; by default that of the level below, ``rho[:-1]``.
    count_priors : sequence of CountLaw or None, length levels - 1, optional
        Prior on the count of each group, with finite support; None is flat on 0, 1, 2, ...
    known_totals : sequence of int or None, length levels - 1, optional
        Count of each group that is published without noise, above ``known_count`` and never below
        that of a level further down; None where it is not.
    sensitivity : float, default 1.0
        L2 sensitivity that the budgets refer to: ``sigma2 = sensitivity**2 / (2 rho)``.
    sibling_noise : {"approximate", "exact"}, default "approximate"
        Law of the noise of S: one discrete Gaussian of m times the scale (S2), or the convolution.
    tail : float, default 1e-15
        Posterior mass that may be cut off, in (0, 1e-3].

    Returns
    -------
    PathPosterior
        ``target_probability`` and the pmf of the count at every level, with the bound on what
        was cut off.

    Raises
    ------
    ArgumentError
        If an argument is out of range, more than 2**24 counts in all levels would have to be
        summed over (budgets below about 1e-11), the priors exclude every set of counts or a known
        total, known totals leave only one value of the block's count, or the
        releases contradict each other so much that doubles cannot hold it: by a tilt beyond 2**32
        nats, about twice rho times the gap between a count and what the others say of it.

    Notes
    -----
    With one level above the block this is :func:`hierarchical_posterior` with coherent
    conditionals.  Levels on top without any release and with a flat prior change nothing.  A level
    *between* others that has no release keeps its count in the model: it lies between the counts
    below and above it, with all values equally likely.

    References
    ----------
    Kazan and Reiter (arXiv:2204.04253), section 3.2, for one level above the block.

    Examples
    --------
    >>> path = path_posterior(
    ...     [2, 1], [-1], n_siblings=27, rho=[0.0992264, 0.2464845], prior=0.5)
    >>> round(path.target_probability, 6)
    0.503288
    >>> (100 * path.pmf(1).loc[:3]).round(3).tolist()
    [12.935, 38.66, 29.79, 13.919]
    """
    check.choice(sibling_noise, "sibling_noise", ("approximate", "exact"))
    check.scalar(tail, "tail", lower=0.0, upper=1e-3, bounds="(]")
    k = check.integer(known_count, "known_count", lower=0)
    p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
    path = read_path(
        noisy_counts, siblings, n_siblings, rho, sibling_rho, count_priors, sensitivity
    ).with_totals(known_totals, k)
    levels = path.informed()
    plan, nodes = _plan(path, levels, k, p, exact=sibling_noise == "exact")
    try:
        m = engine.run(plan, tail=tail, most=_MAX_ENTRIES)
    except engine.WindowError as error:
        raise ArgumentError(
            f"rho, sibling_rho or count_priors must bound the counts to at most {_MAX_ENTRIES} "
            f"values that matter in all, got more with rho={shown(rho)}; leave levels that are "
            "hardly known out with rho = 0"
        ) from error
    pmfs = tuple(_series(m, int(unit)) for unit in plan.unit_of[nodes])
    mean, sd = np.array([_moments(pmf) for pmf in pmfs]).T
    alone = p
    if path.precision[0] > 0.0:
        block, scale = int(path.noisy[0]), 0.5 / float(path.precision[0])
        alone = float(posterior_probability(block, sigma2=scale, prior=p, known_count=k))
    return PathPosterior(
        target_probability=float(pmfs[0].get(k + 1, 0.0)),
        prior=p,
        block_probability=alone,
        known_count=k,
        mean=mean,
        sd=sd,
        truncation_bound=m.truncation,
        rounding_bound=m.rounding,
        status="exact" if m.truncation <= tail else "bound above tail",
        sibling_noise=sibling_noise,
        pmfs=pmfs,
    )


def read_path(
    noisy_counts: Any,
    siblings: Any,
    n_siblings: Any,
    rho: Any,
    sibling_rho: Any,
    count_priors: Any,
    sensitivity: Any,
) -> _Path:
    """Return the checked counts, precisions and priors of a path."""
    y = check.count_array(noisy_counts, "noisy_counts")
    if y.ndim != 1 or y.size < 2:
        raise ShapeError(f"noisy_counts must list at least two levels, got shape {y.shape}")
    above = y.size - 1
    totals = check.count_array(siblings, "siblings")
    if totals.shape != (above,):
        raise ShapeError(
            f"siblings must have one total for each of the {above} levels above the block in "
            f"noisy_counts, "
            f"got shape {totals.shape}"
        )
    delta = check.scalar(sensitivity, "sensitivity", lower=1e-100, upper=1e100)
    m = _levels(
        check.count_array(n_siblings, "n_siblings", lower=0, upper=10**9), above, "n_siblings"
    )
    budget = _levels(check.real_array(rho, "rho", lower=0.0, upper=1e100), y.size, "rho")
    others = budget[:-1]
    if sibling_rho is not None:
        others = check.real_array(sibling_rho, "sibling_rho", lower=0.0, upper=1e100)
        others = _levels(others, above, "sibling_rho")
    laws = [None] * above if count_priors is None else check.items(count_priors, "count_priors")
    if len(laws) != above:
        raise ShapeError(
            f"count_priors must have one entry for each of the {above} levels above the block, "
            f"got {len(laws)}"
        )
    tables = tuple(
        None if law is None else log_table(law, "count_priors", negative=True).trimmed()
        for law in laws
    )
    per_cell = np.where(m > 0, others / delta**2, 0.0)
    return _Path(
        y,
        np.minimum(budget / delta**2, 1e280),
        np.where(per_cell > 0.0, totals, 0),
        m,
        np.minimum(per_cell, 1e280) / np.maximum(m, 1),
        tables,
    )


def _levels(values: NDArray[Any], size: int, name: str) -> NDArray[Any]:
    if values.shape not in ((), (size,)):
        raise ShapeError(f"{name} must be one number or have shape ({size},), got {values.shape}")
    return np.broadcast_to(values, (size,))


def _plan(path: _Path, levels: int, k: int, p: float, *, exact: bool) -> tuple[Plan, list[int]]:
    """Return the path as a tree, and the node of each level, block first."""
    # Breadth first from the top: a group, then its child on the path and the other children.
    parent, noisy, precision, nodes = [-1], [], [], [0]
    tables: dict[int, LogTable] = {}
    factors: dict[int, LogTable] = {}
    for level in range(levels - 1, -1, -1):
        node = nodes[-1]
        noisy.append(int(path.noisy[level]))
        precision.append(float(path.precision[level]))
        if level < levels - 1 and path.n_siblings[level] > 0:
            # The sibling leaf of this node stands right after it.
            noisy.append(int(path.totals[level]))
            precision.append(float(path.total_precision[level]))
            if exact:
                _exact_noise(path, level, node + 1, tables, precision)
        above = path.priors[level - 1] if level else None
        if above is not None:
            factors[node] = above
        if level:
            nodes.append(len(parent))
            parent.append(node)
            if path.n_siblings[level - 1] > 0:
                parent.append(node)
    tables[nodes[-1]] = LogTable.of_target(k, p)
    up = np.array(parent, dtype=np.int64)
    count = np.bincount(up[1:], minlength=up.size)
    first = np.concatenate(([0], np.cumsum(count)))
    y, lam = np.array(noisy, dtype=np.int64), np.array(precision)
    leaves = np.flatnonzero(count == 0)
    none = np.full(up.size, -1, dtype=np.int64)
    tree = Tree(
        names=pd.RangeIndex(up.size),
        parent=up,
        first_child=first,
        children=np.arange(1, up.size),
        depth=none,
        noisy=np.where(lam > 0.0, y, 0),
        precision=lam,
        leaves=leaves,
        known_count=none,
        prior=np.full(up.size, np.nan),
        lower=np.zeros(up.size, dtype=np.int64),
        upper=np.full(up.size, check.MAX_COUNT),
        exact=none,
    )
    laws = np.tile([0.0, 1.0, 0.0], (leaves.size, 1))
    plan = make_plan(tree, laws, [tables.get(int(v)) for v in leaves], factors)
    return plan, nodes[::-1]


def _exact_noise(
    path: _Path, level: int, node: int, tables: dict[int, LogTable], precision: list[float]
) -> None:
    """Replace the Gaussian likelihood of a total by a table with the exact law of its noise."""
    m, weight = int(path.n_siblings[level]), float(path.total_precision[level])
    ripple = sum_ripple(weight * m, m, name="n_siblings")
    if weight == 0.0 or ripple.size == 1:
        return  # the sum of the noise is a discrete Gaussian to double precision
    total = int(path.totals[level])
    known = [total, *path.noisy[path.precision > 0.0].tolist()]
    for prior in path.priors:
        known += [] if prior is None else [prior.start, prior.stop]
    reach = int(np.ceil(np.sqrt((_REACH + np.ptp(ripple)) / weight))) + 1
    low, high = max(min(known) - reach, 0), max(*known, 0) + reach
    if high - low > engine.MAX_ENTRIES // 16:
        raise ArgumentError(
            f"siblings must be closer to the other counts for exact sibling noise, got {total}"
        )
    gap = total - np.arange(low, high + 1)
    tables[node] = LogTable(low, ripple[gap % m] - weight * gap.astype(float) ** 2)
    precision[-1] = 0.0


def _series(m: engine.Marginals, unit: int) -> pd.Series:
    low, offset, size = int(m.low[unit]), int(m.offset[unit]), int(m.size[unit])
    index = pd.RangeIndex(low, low + size, name="count")
    return pd.Series(m.pmf[offset : offset + size], index=index, name="probability")


def _moments(pmf: pd.Series) -> tuple[float, float]:
    """Return mean and standard deviation."""
    x, weight = pmf.index.to_numpy(), pmf.to_numpy()
    mean = float(x[0] + (x - x[0]) @ weight)
    return mean, float(np.sqrt((x - mean) ** 2 @ weight))


# -----------------------------------------------------------------------------


@displayed
@dataclass(frozen=True, eq=False)
class TreePosterior:
    """The posterior of every node's count, exact up to a stated truncation.

    Arrays have one entry per node, in the order of ``tree.names``, and are read-only.

    Attributes
    ----------
    tree : Tree
        The hierarchy and its releases.
    mean, sd : ndarray of float64
        Posterior expectation and standard deviation, in persons.
    mode : ndarray of int64
        Most probable count; the smallest one in a tie.
    at_least_one : ndarray of float64
        Posterior probability that the count is not zero.
    truncation_bound : float
        Bound on the posterior mass that was cut off: on the total-variation distance of every
        pmf here, and of the joint law, to the exact one.
    rounding_bound : float
        Bound on the share that rounding of fast Fourier transforms may have moved; 0 when all
        sums were direct (they add a relative error of about 1e-15 per level of merging).
    status : str
        ``"exact"``, or ``"bound above tail"`` when the evidence contradicts itself so much that
        the truncation asked for could not be reached.
    leaf_prior : str
        Description of the prior.
    peak_bytes : int
        Memory held by the messages while the posterior was computed.
    lowest, offset, size : ndarray of int64
        Where each node's pmf is: ``probabilities[offset:offset + size]`` belongs to the counts
        ``lowest``, ``lowest + 1``, ...
    probabilities : ndarray of float64
        The pmfs, one after the other; nodes that have the same count share one.
    version : str
        Version of bayesrisk.
    """

    tree: Tree
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]
    mode: NDArray[np.int64]
    at_least_one: NDArray[np.float64]
    truncation_bound: float
    rounding_bound: float
    status: str
    leaf_prior: str
    peak_bytes: int
    lowest: NDArray[np.int64]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    version: str = __version__

    def _answer(self) -> list[str]:
        return [
            f"Counts of {len(self.mean):,} nodes, expected {span(self.mean)} with a standard "
            f"deviation of {span(self.sd)}; probability of at least one {span(self.at_least_one)}.",
            f"{self.status}: within {number(self.truncation_bound)} of the untruncated law "
            f"(prior: {self.leaf_prior}).",
        ]

    def pmf(self, node: Any) -> pd.Series:
        """Return the posterior of one node's count.

        Parameters
        ----------
        node : hashable
            Name of the node.

        Returns
        -------
        pandas.Series
            Probability by count, on consecutive counts; what is not listed is within
            ``truncation_bound``.

        Raises
        ------
        DataError
            If the tree has no such node.
        """
        v = self.tree.index(node)
        low, offset, size = int(self.lowest[v]), int(self.offset[v]), int(self.size[v])
        index = pd.RangeIndex(low, low + size, name="count")
        pmf = self.probabilities[offset : offset + size]
        return pd.Series(pmf, index=index, name="probability")

    def law(self, node: Any) -> FiniteLaw:
        """Return the posterior of one node's count as a law.

        Parameters
        ----------
        node : hashable
            Name of the node.

        Returns
        -------
        FiniteLaw
            With ``truncation_bound`` and rounding as its error bound.

        Raises
        ------
        DataError
            If the tree has no such node.
        """
        pmf = self.pmf(node)
        bound = min(self.truncation_bound + self.rounding_bound + pmf.size * 2.0**-52, 1.0)
        return FiniteLaw(int(pmf.index[0]), pmf.to_numpy(), error_bound=bound)

    def quantile(self, q: ArrayLike) -> NDArray[np.int64]:
        """Return the smallest count of each node whose cumulative probability reaches ``q``.

        Parameters
        ----------
        q : array_like
            Levels in (0, 1).

        Returns
        -------
        ndarray of int64, shape (..., nodes)
            Quantiles; the axes of ``q`` come first.

        Raises
        ------
        ArgumentError
            If a level is outside (0, 1).
        """
        levels = check.probability(q, "q")
        out = np.empty((levels.size, self.tree.n_nodes), dtype=np.int64)
        for row, level in zip(out, levels.reshape(-1).tolist(), strict=True):
            kernels.quantiles(self.offset, self.size, self.lowest, self.probabilities, level, row)
        return out.reshape((*levels.shape, self.tree.n_nodes))

    def to_frame(self) -> pd.DataFrame:
        """Return one row per node.

        Returns
        -------
        pandas.DataFrame
            Columns node, parent, depth, noisy_count (missing for no release), mean, sd, mode,
            at_least_one and truncation_bound.
        """
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
    tree: Tree, *, leaf_prior: LeafPriors, use_targets: bool = True, tail: float = 1e-15
) -> TreePosterior:
    r"""Return the posterior of every node's count given every noisy count in the tree.

    .. math:: P(X \mid y) \propto \prod_{i \in \text{leaves}} \pi_i(X_i)
        \prod_{v} e^{-\lambda_v (y_v - X_v)^2}, \qquad X_v = \sum_{c \in \text{children}(v)} X_c,
        \quad X_i \ge 0

    with :math:`\lambda_v = 1 / (2 \sigma_v^2)`, restricted to :math:`\ell_v \le X_v \le u_v` where
    the tree has bounds (an exact total has both equal), by sum-product: messages up the tree are
    convolutions over siblings, messages down it correlations, both along a balanced binary tree
    of siblings.  A node whose count is known exactly (``exact_count`` of the table) has no other:
    the limit of noise 0, taken as an equation.

    Parameters
    ----------
    tree : Tree
        Hierarchy and releases.  Noisy counts may be negative; a node may have no release.
    leaf_prior : LeafPrior, CountLaw, sequence of CountLaw, or "flat"
        Prior of the leaves' counts, independent of each other: one for all, or one per leaf in
        the order of ``tree.leaves``.  A ``CountLaw`` has finite support.  The flat prior is
        improper.
    use_targets : bool, default True
        A leaf with a target counts ``known_count`` or one more, the latter with its ``prior``,
        in place of ``leaf_prior``.  False: every leaf has ``leaf_prior``.
    tail : float, default 1e-15
        Posterior mass that may be cut off, in (0, 1e-3].

    Returns
    -------
    TreePosterior
        Mean, spread, mode, quantiles and pmf of every node, with the bound on what was cut off.

    Raises
    ------
    ArgumentError
        If the posterior is improper (a leaf under a flat prior has no release, and nothing above
        it has), prior and bounds exclude every set of counts, a prior gives mass to negative
        counts, or
        more than 2**27 probabilities (2 GiB with those of the passage down) would be needed.

    Notes
    -----
    Time grows as the sum of the products of the windows of neighbouring siblings, near-linearly
    in the number of leaves; memory is 16 bytes for every entry of every window, about 2 KiB per
    leaf for the 2020 Census budgets.  The bound on what is cut off is rigorous apart from
    rounding: cut mass is followed to the root at the largest rate at which evidence can amplify
    it, and windows widen until the bound is below ``tail``.

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
    if not isinstance(use_targets, bool):
        raise ArgumentTypeError(f"use_targets must be True or False, got {shown(use_targets)}")
    plan, name = plan_tree(tree, leaf_prior, targets=use_targets)
    check.scalar(tail, "tail", lower=0.0, upper=1e-3, bounds="(]")
    marginals = engine.run(plan, tail=tail)
    return _result(tree, plan, marginals, name, tail)


def _result(tree: Tree, plan: Plan, m: engine.Marginals, name: str, tail: float) -> TreePosterior:
    summary = np.empty((m.size.size, 4))
    kernels.summarise(m.offset, m.size, m.low, m.pmf, summary)
    mean, sd, mode, some = np.ascontiguousarray(summary[plan.unit_of].T)
    whole = mode.astype(np.int64)
    windows = [array[plan.unit_of] for array in (m.low, m.offset, m.size)]
    for array in (mean, sd, whole, some, *windows, m.pmf):
        array.setflags(write=False)
    return TreePosterior(
        tree=tree,
        mean=mean,
        sd=sd,
        mode=whole,
        at_least_one=some,
        truncation_bound=m.truncation,
        rounding_bound=m.rounding,
        status="exact" if m.truncation <= tail else "bound above tail",
        leaf_prior=name,
        peak_bytes=m.peak_bytes,
        lowest=windows[0],
        offset=windows[1],
        size=windows[2],
        probabilities=m.pmf,
    )

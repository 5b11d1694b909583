"""A hierarchy of counts with their noisy releases, as flat arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrisk._base import validation as check
from bayesrisk._base.validation import BoolArray, FloatArray, IntArray, Number
from bayesrisk.distributions import CountLaw
from bayesrisk.distributions.kernels import MAX_ENTRIES, LogTable, log_table
from bayesrisk.distributions.sums import sum_ripple
from bayesrisk.exceptions import ArgumentError, DataError, ShapeError, quote
from bayesrisk.inference.tree.release_cell import release_frame
from bayesrisk.release import Release
from bayesrisk.tables.published import by_release

_MAX_PRECISION = 1e280  # as in `_base.validation`: beyond that nothing changes


@dataclass(frozen=True, eq=False)
class Tree:
    """Additive counts: a parent's count is the sum of its children's.

    Make it with :meth:`from_frame`, :meth:`from_release` or :meth:`path`. Nodes are stored breadth
    first: node 0 is the root, parents precede their children, and siblings are adjacent. Arrays are
    read-only and have one entry per node in that order, unless stated otherwise.

    Attributes
    ----------
    names : pandas.Index
        Name of each node.
    parent : ndarray of int64
        Index of the parent; -1 for the root.
    first_child : ndarray of int64, shape (nodes + 1,)
        The children of node v are ``children[first_child[v]:first_child[v + 1]]``.
    children : ndarray of int64, shape (nodes - 1,)
        Indices of the children, node by node.
    depth : ndarray of int64
        Number of edges to the root.
    noisy : ndarray of int64
        Noisy count; 0 if nothing was released.
    precision : ndarray of float64
        ``1 / (2 sigma2)`` of its noise: the likelihood of a count x is
        ``exp(-precision * (noisy - x)**2)``. It is 0 if nothing was released.
    leaves : ndarray of int64, shape (leaves,)
        Indices of the nodes without children.
    known_count : ndarray of int64
        For a leaf with a target, the number of others known to be counted in it; -1 for no target.
    prior : ndarray of float64
        Prior probability that the target is counted there; NaN for no target.
    lower, upper : ndarray of int64
        Known bounds: the count is at least ``lower`` (0 if nothing is known) and at most ``upper``
        (2**52 if nothing is). They are tightened up the tree: a count lies between the sums of its
        children's bounds.
    exact : ndarray of int64
        Count that was published without noise; -1 if there is none.

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
    >>> tree = Tree.from_frame(frame)
    >>> tree.n_nodes, tree.leaves.tolist(), tree.parent.tolist()
    (3, [1, 2], [-1, 0, 0])
    """

    names: pd.Index
    parent: IntArray
    first_child: IntArray
    children: IntArray
    depth: IntArray
    noisy: IntArray
    precision: FloatArray
    leaves: IntArray
    known_count: IntArray
    prior: FloatArray
    lower: IntArray
    upper: IntArray
    exact: IntArray
    _tables: dict[int, LogTable] = field(default_factory=dict, repr=False)

    @property
    def tables(self) -> dict[int, LogTable]:
        """Further log weights of the counts by node, from group priors and exact noise."""
        return self._tables

    @property
    def is_bounded(self) -> bool:
        """Whether some count has a known bound besides >= 0."""
        return bool((self.lower > 0).any() or (self.upper < check.MAX_COUNT).any())

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.parent.size)

    def __len__(self) -> int:
        return self.n_nodes

    def __repr__(self) -> str:
        released = int((self.precision > 0.0).sum())
        return (
            f"Tree(nodes={self.n_nodes}, leaves={self.leaves.size}, "
            f"levels={int(self.depth.max()) + 1}, releases={released})"
        )

    def index(self, name: object) -> int:
        """Return the position of a node."""
        try:
            hash(name)  # pandas would quote what it cannot look up
            return int(self.names.get_loc(name))  # type: ignore[arg-type]
        except (KeyError, TypeError, pd.errors.InvalidIndexError) as error:
            raise DataError(f"the tree has no node {quote(name)}") from error

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, sensitivity: Number = 1.0) -> Tree:
        """Return a tree built from a frame with one row per node, in any order.

        Parameters
        ----------
        frame : pandas.DataFrame
            Columns are ``node`` (unique names), ``parent`` (its name; missing or empty for the
            root), ``noisy_count`` (whole number, may be negative), and ``rho`` (zCDP budget) or
            ``sigma2`` (scale of the noise). For a node without a release they are missing, or
            ``rho`` is 0. Leaves with a target also have ``known_count`` and ``prior``, both or
            neither. Nodes with a published or known true count (an invariant) also have
            ``exact_count``, >= 0. Known bounds of a count are ``lower`` and ``upper`` (whole
            numbers >= 0, missing if unknown).
        sensitivity : float, default 1.0
            L2 sensitivity that ``rho`` refers to: ``sigma2 = sensitivity**2 / (2 rho)``.
        """
        frame = check.frame(frame, "frame")
        _require_columns(frame)
        names = _node_names(frame)
        order, parent, depth = _breadth_first(names, _parents(frame, names))
        precision = _precisions(frame, names, sensitivity)
        noisy, released = _whole_column(frame, "noisy_count", names, lower=-check.MAX_COUNT)
        precision = np.where(released, precision, 0.0)
        known_counts, prior = _targets(frame, names)
        exact = np.full(len(frame), -1, dtype=np.int64)
        if "exact_count" in frame.columns:
            counts, has_exact = _whole_column(frame, "exact_count", names, lower=0)
            exact = np.where(has_exact, counts, -1)
        lower, upper = _bounds(frame, names, order, parent, depth)
        tree = cls._linked(
            names=names[order],
            parent=parent,
            depth=depth,
            noisy=np.where(precision > 0.0, noisy, 0)[order],
            precision=precision[order],
            known_count=known_counts[order],
            prior=prior[order],
            lower=lower,
            upper=upper,
            exact=exact[order],
        )
        bad = np.setdiff1d(np.flatnonzero(tree.known_count >= 0), tree.leaves)
        if bad.size:
            raise DataError(
                f"known_count and prior belong to leaves, got them for node "
                f"{quote(tree.names[bad[0]])}"
            )
        return tree

    @classmethod
    def _linked(cls, *, parent: IntArray, **columns: Any) -> Tree:
        """Return a tree from nodes in breadth-first order, with links to their children."""
        n_children = np.bincount(parent[1:], minlength=parent.size)
        tree = cls(
            parent=parent,
            first_child=np.concatenate(([0], np.cumsum(n_children))).astype(np.int64),
            children=np.arange(1, parent.size, dtype=np.int64),
            leaves=np.flatnonzero(n_children == 0).astype(np.int64),
            **columns,
        )
        for value in vars(tree).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        return tree

    @classmethod
    def from_release(
        cls,
        release: Release | Mapping[str, Release] | Sequence[Release],
        *, table: str, cell: str, place: str | None = None,
    ) -> Tree:  # fmt: skip
        """Return the tree of one published cell, with a node for each place of every level.

        Parameters
        ----------
        release : Release, or sequence of them, or mapping by name
            Tables, with the likelihood of each; several are combined (:meth:`combine`).
        table, cell : str
            Name of a table, and of one of its cells. Levels without the table have no nodes.
        place : str, optional
            Code of the place at the top; required if there are several.

        Returns
        -------
        Tree
            Nodes are codes of places, or the name of the level if a code is empty. Counts with
            Gaussian noise are releases, true ones ``exact_count``, withheld ones nothing.

        Examples
        --------
        >>> from bayesrisk import Workload, simulate_population, tabulate
        >>> from bayesrisk.release import MechanismSpec, NoiseSpec
        >>> work = Workload.named("pl94").select(levels=["tract", "block"], tables=["total"])
        >>> tables = tabulate(simulate_population("tract", rng=1), work)
        >>> spec = MechanismSpec("mine", others=NoiseSpec("discrete-gaussian", 5))
        >>> noisy = Release(spec, tables)
        >>> tree = Tree.from_release(noisy, table="total", cell=work.at("tract")["total"].cells[0])
        >>> int(tree.depth.max()), int((tree.precision > 0).sum()) == tree.n_nodes
        (1, True)
        """
        if isinstance(release, Release):
            return cls.from_frame(release_frame(release, table, cell, place))
        several, question = by_release(release, Release, "release"), (table, cell, place)
        frames = {name: release_frame(part, *question) for name, part in several.items()}
        return cls.combine({name: cls.from_frame(frame) for name, frame in frames.items()})

    @classmethod
    def combine(cls, trees: SeveralTrees) -> Tree:
        """Return the tree of several releases of the same counts, each with its own noise.

        If a further release has a noisy count of a node, that node gets a parent ``release: node``
        of which it is the only child. Both have one count, and the likelihoods multiply. Let two
        releases have precisions l and l' and counts y and y'. Together they are equivalent to one
        of precision l + l' at (l y + l' y') / (l + l'), which need not be whole. Equal exact counts
        are merged.

        Parameters
        ----------
        trees : mapping of str to Tree, or sequence of them
            Trees with the same nodes, by the name of their release (its number in a sequence).
            Targets and bounds are those of the first tree; no tree may have priors of groups.
        """
        (title, first), *rest = by_release(trees, Tree, "trees").items()
        names, above, n = list(first.names), first.parent.tolist(), first.n_nodes
        top, exact, noise = list(range(n)), first.exact, [(first.noisy, first.precision)]
        source = np.full(n, title, dtype=object)
        for name, tree in rest:
            position = _positions(first, tree, name)
            stated = tree.exact[position]
            for v in np.flatnonzero((exact >= 0) & (stated >= 0) & (exact != stated)).tolist():
                raise DataError(
                    f"releases contradict each other: exact_count of {quote(names[v])} is "
                    f"{exact[v]} in {source[v]!r} and {stated[v]} in {name!r}"
                )
            source[exact < 0], exact = name, np.maximum(exact, stated)
            noisy_nodes = np.flatnonzero(tree.precision[position] > 0.0)
            noise.append((tree.noisy[position[noisy_nodes]], tree.precision[position[noisy_nodes]]))
            for v in noisy_nodes.tolist():
                above.append(above[top[v]])
                above[top[v]] = top[v] = len(names)
                names.append(f"{name}: {names[v]}")
        order, parent, depth = _breadth_first(pd.Index(names), np.array(above))
        node = np.where(order < n, order, n)
        return cls._linked(
            names=pd.Index(names)[order],
            parent=parent,
            depth=depth,
            noisy=np.concatenate([y for y, _ in noise])[order],
            precision=np.concatenate([p for _, p in noise])[order],
            known_count=np.append(first.known_count, -1)[node],
            prior=np.append(first.prior, np.nan)[node],
            lower=np.append(first.lower, 0)[node],
            upper=np.append(first.upper, check.MAX_COUNT)[node],
            exact=np.append(exact, -1)[node],
        )

    @classmethod
    def path(
        cls,
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
    ) -> Tree:
        r"""Return the tree of nested groups around one target: block, block group, tract, ...

        Let :math:`X_0 \in \{k, k + 1\}` be the block's count and :math:`X_l` that of the group at
        level l. With a flat prior on the other children's total, the posterior is

        .. math:: P(X \mid y, S) \propto P(X_0) \prod_{l=0}^{L} e^{-\rho_l (y_l - X_l)^2}
            \prod_{l=1}^{L} P(X_l)\, e^{-(r_l / m_l) (S_l - X_l + X_{l-1})^2}\, 1[X_l \ge X_{l-1}]

        With one level above the block, it is the coherent posterior of
        :func:`hierarchical_posterior`.

        Source: Kazan and Reiter (arXiv:2204.04253), section 3.2, for one level above the block.

        Parameters
        ----------
        noisy_counts : array_like of int, shape (levels,)
            Noisy counts y, block first; ignored if ``rho`` is 0.
        siblings : array_like of int, shape (levels - 1,)
            For every level above the block, the total S of the noisy counts of the group's other
            children.
        n_siblings : array_like of int, shape () or (levels - 1,)
            Number m of those other children, in [0, 10**9]; 0 for an only child.
        rho : array_like, shape () or (levels,)
            zCDP budget of the count at each level, in [0, 1e100]; 0 for no release.
        prior : float
            Probability p that the block's count is k + 1, in (0, 1).
        known_count : int, default 0
            Number k of others in the block known to have the characteristics.
        sibling_rho : array_like, shape () or (levels - 1,), optional
            Budget r of each of the other children; by default that of the level below.
        count_priors : sequence of CountLaw or None, length levels - 1, optional
            Prior on the count of each group, with finite support; None is flat on 0, 1, 2, ...
        known_totals : sequence of int or None, length levels - 1, optional
            Counts of groups that are published without noise, each above ``known_count`` and at
            least that of any level further down. They hold with and without the target.
        sensitivity, sibling_noise
            As for :func:`hierarchical_posterior`.

        Returns
        -------
        Tree
            Nodes are ``level_0`` (the block, with the target), ``level_1``, ... and, for the other
            children beside level l, ``siblings_l``. Unknown levels at the top are left out; an
            unknown level between others keeps its count without a release.

        Examples
        --------
        >>> from bayesrisk import tree_posterior
        >>> tree = Tree.path([2, 1], [-1], n_siblings=27, rho=[0.0992264, 0.2464845], prior=0.5)
        >>> posterior = tree_posterior(tree, leaf_prior="flat")
        >>> round(float(posterior.pmf("level_0")[1]), 6)
        0.503288
        >>> (100 * posterior.pmf("level_1").loc[:3]).round(3).tolist()
        [12.935, 38.66, 29.79, 13.919]
        """
        exact_noise = check.choice(sibling_noise, "sibling_noise", ("approximate", "exact"))
        k = check.integer(known_count, "known_count", lower=0)
        p = check.scalar(prior, "prior", lower=0.0, upper=1.0, bounds="()")
        path = _read_path(
            noisy_counts, siblings, n_siblings, rho, sibling_rho, count_priors, sensitivity
        ).with_totals(known_totals, k)
        return _path_tree(path, k, p, exact_noise == "exact")


def _positions(first: Tree, tree: Tree, name: str) -> IntArray:
    """Return each node's position in another tree; raise unless it has the same nodes."""
    position = np.asarray(tree.names.get_indexer(first.names), np.int64)
    equal = tree.n_nodes == first.n_nodes and bool((position >= 0).all())
    equal = equal and bool((np.append(position, -1)[first.parent] == tree.parent[position]).all())
    if not equal or tree.tables or first.tables or tree.is_bounded or (tree.known_count >= 0).any():
        must = (
            "must have the same nodes, no priors of groups, targets and bounds in the first alone"
        )
        raise ArgumentError(f"trees {must}: {name!r} has others")
    return position


#: Trees of several releases of the same counts, by name or in order.
SeveralTrees: TypeAlias = Mapping[str, Tree] | Sequence[Tree]

# -----------------------------------------------------------------------------
# A path of nested groups: the other children of a group are one leaf.

_REACH = 700.0  # a table of exact noise ends where it is exp(-700) of its largest value


@dataclass(frozen=True)
class _Path:
    """Checked releases with precisions, block first; fields from ``totals`` on start a level up."""

    noisy: IntArray
    precision: FloatArray
    totals: IntArray
    n_siblings: IntArray
    total_precision: FloatArray
    priors: tuple[LogTable | None, ...]
    exact: tuple[int, ...] = ()

    def with_totals(self, known_totals: object, k: int) -> _Path:
        """Return the path with known totals filled in, -1 where unknown."""
        totals: Sequence[int | None] = [None] * len(self.priors)
        if known_totals is not None:
            totals = check.items(known_totals, "known_totals")
        if len(totals) != len(self.priors):
            raise ShapeError(
                f"known_totals must have one entry for each of the {len(self.priors)} levels above "
                f"the block, got {len(totals)}"
            )
        exact, least = [-1], k + 1
        for i, value in enumerate(totals):
            if value is None:
                exact.append(-1)
                continue
            name, law = f"known_totals[{i}]", self.priors[i]
            total = check.integer(value, name)
            if total < least:
                raise ArgumentError(
                    name,
                    f"must be at least {least}, above known_count and not below the totals of "
                    "lower levels",
                    shown=total,
                )
            if not self.n_siblings[: i + 1].any():
                raise ArgumentError(
                    name,
                    "must be that of a group with more than one block (n_siblings > 0)",
                    shown=total,
                )
            if law is not None and law.log_probability(total) == -np.inf:
                raise ArgumentError(
                    name,
                    f"must be possible under count_priors ({law.start} to {law.stop - 1})",
                    shown=total,
                )
            exact.append(total)
            least = total
        # P(N) of a count that is known is one number.
        priors = [law if e < 0 else None for law, e in zip(self.priors, exact[1:], strict=True)]
        return replace(self, priors=tuple(priors), exact=tuple(exact))

    def informed(self) -> int:
        """Return the number of levels up to the last that any evidence bounds."""
        levels = self.noisy.size
        while levels > 1 and self.priors[levels - 2] is None and self.exact[levels - 1] < 0:
            if self.precision[levels - 1] > 0.0 or self.total_precision[levels - 2] > 0.0:
                break
            if self.n_siblings[levels - 2] == 0:
                break  # the same count as the level below
            levels -= 1
        return levels

    def exact_noise(self, level: int) -> LogTable | None:
        """Return the likelihood of a siblings' total under exact noise, or None if Gaussian."""
        m, weight = int(self.n_siblings[level]), float(self.total_precision[level])
        ripple = sum_ripple(weight * m, m)
        if weight == 0.0 or ripple.size == 1:
            return None  # the sum of the noise is a discrete Gaussian to double precision
        total = int(self.totals[level])
        counts = [total, *self.noisy[self.precision > 0.0].tolist()]
        counts += [count for count in self.exact if count >= 0]
        for prior in self.priors:
            counts += [] if prior is None else [prior.start, prior.stop]
        reach = int(np.ceil(np.sqrt((_REACH + np.ptp(ripple)) / weight))) + 1
        low, high = max(min(counts) - reach, 0), max(*counts, 0) + reach
        if high - low > MAX_ENTRIES // 2:
            raise ArgumentError(
                f"siblings must be closer to the other counts for exact sibling noise, got {total}"
            )
        gap = total - np.arange(low, high + 1)
        return LogTable(low, ripple[gap % m] - weight * gap.astype(float) ** 2)


def _read_path(
    noisy_counts: ArrayLike,
    siblings: ArrayLike,
    n_siblings: ArrayLike,
    rho: Number,
    sibling_rho: Number | None,
    count_priors: Sequence[CountLaw | None] | None,
    sensitivity: Number,
) -> _Path:
    """Return a path with its counts, precisions and priors checked."""
    y = check.count_array(noisy_counts, "noisy_counts")
    if y.ndim != 1 or y.size < 2:
        raise ShapeError("noisy_counts", "must list at least two levels", shown=f"shape {y.shape}")
    above = y.size - 1

    def levels(values: NDArray[Any], size: int, name: str) -> NDArray[Any]:
        if values.shape not in ((), (size,)):
            raise ShapeError(
                name, f"must be one number or have shape ({size},)", shown=values.shape
            )
        return np.broadcast_to(values, (size,))

    totals = check.count_array(siblings, "siblings")
    if totals.shape != (above,):
        raise ShapeError(
            f"siblings must have one total for each of the {above} levels above the block in "
            f"noisy_counts, got shape {totals.shape}"
        )
    delta = check.scalar(check.by_neighbour(sensitivity), "sensitivity", lower=1e-100, upper=1e100)
    m = check.count_array(n_siblings, "n_siblings", lower=0, upper=10**9)
    m = levels(m, above, "n_siblings")
    budget = levels(check.real_array(rho, "rho", lower=0.0, upper=1e100), y.size, "rho")
    rho_siblings = budget[:-1]
    if sibling_rho is not None:
        rho_siblings = check.real_array(sibling_rho, "sibling_rho", lower=0.0, upper=1e100)
        rho_siblings = levels(rho_siblings, above, "sibling_rho")
    laws = [None] * above if count_priors is None else check.items(count_priors, "count_priors")
    if len(laws) != above:
        raise ShapeError(
            f"count_priors must have one entry for each of the {above} levels above the block, "
            f"got {len(laws)}"
        )
    per_cell = np.where(m > 0, rho_siblings / delta**2, 0.0)
    return _Path(
        y,
        np.minimum(budget / delta**2, _MAX_PRECISION),
        np.where(per_cell > 0.0, totals, 0),
        m,
        np.minimum(per_cell, _MAX_PRECISION) / np.maximum(m, 1),
        tuple(
            None if law is None else log_table(law, "count_priors", negative=True).trimmed()
            for law in laws
        ),
    )


def _path_tree(path: _Path, k: int, p: float, exact_noise: bool) -> Tree:
    """Return the breadth-first tree of a path: each group, its child on the path, the siblings."""
    top = path.informed() - 1
    names, parent, depth = [f"level_{top}"], [-1], [0]
    noisy, precision = [int(path.noisy[top])], [float(path.precision[top])]
    exact, tables = [path.exact[top]], {}
    node = 0
    for level in range(top - 1, -1, -1):
        above = path.priors[level]
        if above is not None:
            tables[node] = above
        children = [(f"level_{level}", path.noisy[level], path.precision[level], path.exact[level])]
        if path.n_siblings[level] > 0:
            weight, table = path.total_precision[level], None
            if exact_noise and (table := path.exact_noise(level)) is not None:
                weight, tables[len(names) + 1] = 0.0, table
            children.append((f"siblings_{level}", path.totals[level], weight, -1))
        first = len(names)
        for name, count, weight, exact_count in children:
            names.append(name)
            parent.append(node)
            depth.append(top - level)
            noisy.append(int(count) if weight > 0.0 else 0)
            precision.append(float(weight))
            exact.append(exact_count)
        node = first
    size, lam = len(names), np.array(precision)
    block = np.arange(size) == node
    return Tree._linked(
        names=pd.Index(names),
        parent=np.array(parent, dtype=np.int64),
        depth=np.array(depth, dtype=np.int64),
        noisy=np.where(lam > 0.0, noisy, 0),
        precision=lam,
        known_count=np.where(block, k, -1),
        prior=np.where(block, p, np.nan),
        lower=np.zeros(size, dtype=np.int64),
        upper=np.full(size, check.MAX_COUNT),
        exact=np.array(exact, dtype=np.int64),
        _tables=tables,
    )


def _require_columns(frame: pd.DataFrame) -> None:
    check.frame(frame, "frame", ("node", "parent", "noisy_count"))
    if ("rho" in frame.columns) == ("sigma2" in frame.columns):
        raise DataError(
            f"frame must have exactly one of the columns 'rho' and 'sigma2', "
            f"got {list(frame.columns)}"
        )
    if ("known_count" in frame.columns) != ("prior" in frame.columns):
        raise DataError("frame must have both or neither of the columns 'known_count' and 'prior'")
    if not len(frame):
        raise DataError("frame must have at least one row, got none")


def _names(frame: pd.DataFrame, column: str) -> pd.Index:
    for row, value in enumerate(frame[column]):
        if not isinstance(value, Hashable):
            raise DataError(f"row {row}: column {column!r} must hold names, got {quote(value)}")
    names: pd.Index = pd.Index(frame[column])
    return names


def _node_names(frame: pd.DataFrame) -> pd.Index:
    names = _names(frame, "node")
    missing = np.asarray(names.isna())
    if missing.any():
        raise DataError(f"row {int(np.argmax(missing))}: node has no name")
    twice = np.asarray(names.duplicated())
    if twice.any():
        row = int(np.argmax(twice))
        raise DataError(f"row {row}: node {names[row]!r} is listed twice")
    return names


def _parents(frame: pd.DataFrame, names: pd.Index) -> IntArray:
    """Return the row of each node's parent, -1 for the root."""
    column = _names(frame, "parent")
    empty = [isinstance(value, str) and not value for value in column]
    is_root = np.asarray(column.isna()) | np.array(empty, dtype=bool)
    parent = np.asarray(names.get_indexer(column), dtype=np.int64)
    parent[is_root] = -1
    orphan = (parent < 0) & ~is_root
    if orphan.any():
        row = int(np.argmax(orphan))
        raise DataError(
            f"row {row}: node {names[row]!r} has the unknown parent {column[row]!r} (an orphan)"
        )
    loops = parent == np.arange(parent.size)
    if loops.any():
        row = int(np.argmax(loops))
        raise DataError(f"row {row}: node {names[row]!r} is its own parent")
    roots = np.flatnonzero(is_root)
    if roots.size > 1:
        listed = ", ".join(repr(names[row]) for row in roots[:3])
        raise DataError(f"row {roots[1]}: the tree must have one root, got {roots.size}: {listed}")
    return parent


def _breadth_first(names: pd.Index, parent: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the rows in breadth-first order, and parent and depth in that order."""
    level = np.flatnonzero(parent < 0)
    by_parent = np.argsort(parent, kind="stable")
    start = np.searchsorted(parent[by_parent], np.arange(parent.size + 1))
    order, depth = [level], [np.zeros(level.size, dtype=np.int64)]
    while level.size:
        level = np.concatenate([by_parent[start[v] : start[v + 1]] for v in level])
        order.append(level)
        depth.append(np.full(level.size, len(depth), dtype=np.int64))
    rows = np.concatenate(order).astype(np.int64)
    if rows.size < parent.size:  # what cannot be reached from the root hangs on a cycle
        row = int(np.setdiff1d(np.arange(parent.size), rows)[0])
        visited: set[int] = set()
        while row not in visited:
            visited.add(row)
            row = int(parent[row])
        raise DataError(f"row {row}: node {names[row]!r} is its own ancestor (a cycle)")
    rank = np.empty(rows.size, dtype=np.int64)
    rank[rows] = np.arange(rows.size)
    above = parent[rows]
    return rows, np.where(above < 0, -1, rank[above]), np.concatenate(depth)


def _numbers(frame: pd.DataFrame, column: str, names: pd.Index) -> tuple[FloatArray, BoolArray]:
    """Return a column as float64, and a mask of the rows with a value."""
    try:
        numbers: Any = pd.to_numeric(frame[column]).astype("Float64")
        values = np.asarray(numbers.to_numpy(float, na_value=np.nan))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise DataError(f"column {column!r} must hold numbers: {error}") from error
    present = ~np.isnan(values)
    bad = present & ~np.isfinite(values)
    _refuse(bad, frame, column, names, "finite")
    return values, present


def _refuse(bad: BoolArray, frame: pd.DataFrame, column: str, names: pd.Index, bound: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        value = frame[column].iloc[row]
        raise DataError(f"row {row}, node {names[row]!r}: {column} must be {bound}, got {value!s}")


def _whole_column(
    frame: pd.DataFrame, column: str, names: pd.Index, *, lower: int
) -> tuple[IntArray, BoolArray]:
    values, present = _numbers(frame, column, names)
    values = np.where(present, values, 0.0)
    _refuse(values != np.rint(values), frame, column, names, "a whole number")
    _refuse(values < lower, frame, column, names, f">= {lower}")
    _refuse(values > check.MAX_COUNT, frame, column, names, f"<= {check.MAX_COUNT}")
    return values.astype(np.int64), present


def _precisions(frame: pd.DataFrame, names: pd.Index, sensitivity: Number) -> FloatArray:
    """Return 1 / (2 sigma2) of each row's noise, or 0 where nothing is released."""
    delta = check.scalar(check.by_neighbour(sensitivity), "sensitivity", lower=1e-100, upper=1e100)
    column = "rho" if "rho" in frame.columns else "sigma2"
    values, present = _numbers(frame, column, names)
    if column == "rho":
        values = np.where(present, values, 0.0)
        _refuse(values < 0.0, frame, column, names, ">= 0")
        with np.errstate(over="ignore"):
            return np.minimum(values / delta**2, _MAX_PRECISION)
    check.cell_precision(None, 1.0, sensitivity)  # sensitivity belongs with rho
    _refuse(present & (values <= 0.0), frame, column, names, "> 0")
    with np.errstate(over="ignore"):
        return np.minimum(np.where(present, 0.5 / values, 0.0), _MAX_PRECISION)


def _bounds(
    frame: pd.DataFrame, names: pd.Index, order: IntArray, parent: IntArray, depth: IntArray
) -> tuple[IntArray, IntArray]:
    """Return each node's least and largest count, breadth first, tightened by its children's."""
    lower, upper = np.zeros(len(frame), np.int64), np.full(len(frame), check.MAX_COUNT)
    if "lower" in frame.columns:
        lower = _whole_column(frame, "lower", names, lower=0)[0]
    if "upper" in frame.columns:
        values, present = _whole_column(frame, "upper", names, lower=0)
        upper = np.where(present, values, upper)
    _refuse(lower > upper, frame, "lower", names, "<= upper")
    lower, upper = lower[order], upper[order]
    starts = np.searchsorted(depth, np.arange(int(depth[-1]) + 2))
    for first, last in zip(starts[-2:0:-1], starts[:1:-1], strict=True):  # from the leaves up
        above = parent[first:last]
        holders = np.unique(above)
        for bound, tighten in ((lower, np.maximum), (upper, np.minimum)):
            # Sums in double precision do not wrap; those that are kept are below 2**53, exact.
            total = np.bincount(above - holders[0], bound[first:last].astype(float))
            sums = np.minimum(total, float(check.MAX_COUNT)).astype(np.int64)
            bound[holders] = tighten(bound[holders], sums[holders - holders[0]])
        bad = lower[holders] > upper[holders]
        if bad.any():
            node = int(holders[np.argmax(bad)])
            raise DataError(
                f"row {order[node]}, node {names[order[node]]!r}: its bounds and those of its "
                f"children contradict each other: at least {lower[node]}, at most {upper[node]}"
            )
    return lower, upper


def _targets(frame: pd.DataFrame, names: pd.Index) -> tuple[IntArray, FloatArray]:
    """Return each node's known_count (-1 for no target) and prior (NaN for no target)."""
    if "prior" not in frame.columns:
        return np.full(len(frame), -1, dtype=np.int64), np.full(len(frame), np.nan)
    known_counts, has_known = _whole_column(frame, "known_count", names, lower=0)
    prior, has_prior = _numbers(frame, "prior", names)
    one_only = has_known != has_prior
    if one_only.any():
        row = int(np.argmax(one_only))
        raise DataError(
            f"row {row}, node {names[row]!r}: known_count and prior must both be given or neither"
        )
    outside = has_prior & ~((prior > 0.0) & (prior < 1.0))
    _refuse(outside, frame, "prior", names, "between 0 and 1")
    return np.where(has_known, known_counts, -1), prior

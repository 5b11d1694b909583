"""A hierarchy of counts, each node with its noisy count, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrisk import _validation as check
from bayesrisk._files.text import shown
from bayesrisk._validation import Number
from bayesrisk.exceptions import ArgumentError, DataError
from bayesrisk.release import NoiseSpec, Release, SuppressedCounts, TrueCounts

# -----------------------------------------------------------------------------
# One published cell at every level of a release, as the table that a tree is made from.


def frame_of_release(release: Release, table: str, cell: str, place: str | None) -> pd.DataFrame:
    """Return a row for each place of every level that has the table.

    Raises
    ------
    ArgumentError
        If the table, cell or place is unknown, there is no one place at the top, or a count has
        neither Gaussian noise nor none.
    """
    published = check.instance(release, Release, "release").tables
    workload, geography = published.workload, published.workload.schema.geography
    names = tuple(dict.fromkeys(name for _, name in workload.tables))
    check.choice(table, "table", names)
    levels = [level for level in workload.levels if (level, table) in workload.tables]
    check.choice(cell, "cell", workload.tables[levels[0], table].cells)
    if place is not None:
        check.text(place, "place")
        widths = {geography.width(level): level for level in levels}
        if len(place) not in widths:
            raise ArgumentError(f"place must be of one of the levels {', '.join(levels)}")
        published.row(widths[len(place)], place)
        levels = levels[levels.index(widths[len(place)]) :]
    pieces, above = [], None
    for level in levels:
        geoids = published.geoids[level]
        rows = np.arange(len(geoids))
        if place is not None:
            rows = rows[np.strings.startswith(geoids, place)]
        if above is None and rows.size != 1:
            raise ArgumentError(
                f"place must be given, as the table is of {rows.size} places of level {level!r}"
            )
        at = workload.tables[level, table].cells.index(cell)
        law = release.spec.likelihood(level, table)
        known = isinstance(law, TrueCounts | SuppressedCounts)
        if not known and not (isinstance(law, NoiseSpec) and law.law == "discrete-gaussian"):
            raise ArgumentError(
                f"table {table!r} at level {level!r} must have Gaussian noise or none, got "
                f"{law.kind}"
            )
        counts = published.counts[level, table][rows, :][:, [at]].toarray()[:, 0].astype(float)
        told = ~published.hidden(level, table)[rows, :][:, [at]].toarray()[:, 0]
        codes = geoids[rows].astype(object)
        names_here = np.where(codes == "", level, codes)
        parents: list[str | None] = [None] * rows.size
        if above is not None:
            around = geography.ancestors(geoids[rows], above)
            parents = [str(code) or above for code in around]
        pieces.append(
            pd.DataFrame(
                {
                    "node": names_here,
                    "parent": parents,
                    "noisy_count": np.where(told & (not known), counts, np.nan),
                    "sigma2": float(law.scale) if isinstance(law, NoiseSpec) else np.nan,
                    "exact_count": np.where(told & known, counts, np.nan),
                }
            )
        )
        above = level
    return pd.concat(pieces, ignore_index=True)


# -----------------------------------------------------------------------------


_MAX_PRECISION = 1e280  # as in `_validation`: beyond that nothing changes


@dataclass(frozen=True, eq=False)
class Tree:
    """Counts that add up: a parent's count is the sum of its children's.

    Make it with :meth:`from_frame`.  Nodes are stored breadth first: node 0 is the root, a parent
    stands before its children, and siblings stand together in the order of the table.  Every
    array is read-only, has one entry per node unless it says otherwise, and is indexed by that
    order.

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
        Noisy count; 0 where nothing was released.
    precision : ndarray of float64
        ``1 / (2 sigma2)`` of its noise: the likelihood of a count x is
        ``exp(-precision * (noisy - x)**2)``.  0 where nothing was released.
    leaves : ndarray of int64, shape (leaves,)
        Indices of the nodes without children.
    known_count : ndarray of int64
        For a leaf with a target, the others known to be counted in it; -1 for no target.
    prior : ndarray of float64
        Prior probability that the target is counted there; NaN for no target.
    lower, upper : ndarray of int64
        What is known exactly: the count is at least ``lower`` (0 where nothing is known) and at
        most ``upper`` (2**52 where nothing is).  Tightened up the tree: a count is at least the
        sum of what its children are at least, and at most that of what they are at most.
    exact : ndarray of int64
        Count that was published without noise; -1 where none was.

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
    parent: NDArray[np.int64]
    first_child: NDArray[np.int64]
    children: NDArray[np.int64]
    depth: NDArray[np.int64]
    noisy: NDArray[np.int64]
    precision: NDArray[np.float64]
    leaves: NDArray[np.int64]
    known_count: NDArray[np.int64]
    prior: NDArray[np.float64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    exact: NDArray[np.int64]

    @property
    def is_bounded(self) -> bool:
        """Whether bounds are known of a count, beyond that it is not negative."""
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

    def index(self, name: Any) -> int:
        """Return the position of a node.

        Parameters
        ----------
        name : hashable
            Name of the node.

        Returns
        -------
        int
            Its index in every array of the tree.

        Raises
        ------
        DataError
            If the tree has no such node.
        """
        try:
            hash(name)  # pandas would quote what it cannot look up
            return int(self.names.get_loc(name))  # type: ignore[arg-type]
        except (KeyError, TypeError, pd.errors.InvalidIndexError) as error:
            raise DataError(f"the tree has no node {shown(name)}") from error

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, sensitivity: Number = 1.0) -> Tree:
        """Build the tree from a table with one row per node, in any order.

        Parameters
        ----------
        frame : pandas.DataFrame
            Columns ``node`` (unique names), ``parent`` (name of the parent; missing or an empty
            string for the root), ``noisy_count`` (whole number, may be negative; missing for no
            release), and ``rho`` (zCDP budget; 0 or missing for no release) or ``sigma2`` (scale
            of the noise; missing for no release).  For leaves with a target also ``known_count``
            and ``prior``, both or neither in a row.  For nodes whose true count was published too,
            or is known (an invariant), also ``exact_count``, >= 0; for what is known to bound a
            count, ``lower`` and ``upper`` (whole numbers >= 0, missing for unknown).
        sensitivity : float, default 1.0
            L2 sensitivity that ``rho`` refers to: ``sigma2 = sensitivity**2 / (2 rho)``.

        Returns
        -------
        Tree
            The hierarchy with its releases.

        Raises
        ------
        DataError
            If a column is missing; a name is missing or twice there; a parent is unknown; a node
            is its own ancestor; there is no root or more than one; a value is out of range; or
            no counts are within all bounds.  The message names the row and the node.
        """
        check.frame(frame, "frame")
        _require_columns(frame)
        names = _node_names(frame)
        order, parent, depth = _breadth_first(names, _parents(frame, names))
        precision = _precisions(frame, names, sensitivity)
        noisy, released = _whole_column(frame, "noisy_count", names, lower=-check.MAX_COUNT)
        precision = np.where(released, precision, 0.0)
        known, prior = _targets(frame, names)
        exact = np.full(len(frame), -1, dtype=np.int64)
        if "exact_count" in frame.columns:
            counts, given = _whole_column(frame, "exact_count", names, lower=0)
            exact = np.where(given, counts, -1)
        n_children = np.bincount(parent[1:], minlength=parent.size)
        first_child = np.concatenate(([0], np.cumsum(n_children))).astype(np.int64)
        has_target = known[order] >= 0
        if np.any(has_target & (n_children > 0)):
            node = names[order[np.argmax(has_target & (n_children > 0))]]
            raise DataError(
                f"known_count and prior belong to leaves, got them for node {shown(node)}"
            )
        lower, upper = _bounds(frame, names, order, parent, depth)
        tree = cls(
            names=names[order],
            parent=parent,
            first_child=first_child,
            children=np.arange(1, parent.size, dtype=np.int64),
            depth=depth,
            noisy=np.where(precision > 0.0, noisy, 0)[order],
            precision=precision[order],
            leaves=np.flatnonzero(n_children == 0).astype(np.int64),
            known_count=known[order],
            prior=prior[order],
            lower=lower,
            upper=upper,
            exact=exact[order],
        )
        for value in vars(tree).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        return tree

    @classmethod
    def from_release(
        cls, release: Release, *, table: str, cell: str, place: str | None = None
    ) -> Tree:
        """Build the tree of one published cell: a node for each place of every level.

        Parameters
        ----------
        release : Release
            Tables, with the likelihood of each.
        table, cell : str
            Name of a table, and of one of its cells.  Levels without the table have no nodes.
        place : str, optional
            Code of the place at the top; needed where several stand there.

        Returns
        -------
        Tree
            Nodes are codes of places, or the name of the level where a code is empty.  Counts
            with Gaussian noise are releases, true ones ``exact_count``, withheld ones nothing.

        Raises
        ------
        ArgumentError
            If the table, cell or place is unknown, no one place stands at the top, or a count has
            another likelihood.

        Examples
        --------
        >>> from bayesrisk import MechanismSpec, Workload, simulate_population, tabulate
        >>> from bayesrisk.release import NoiseSpec
        >>> work = Workload.named("pl94").select(levels=["tract", "block"], tables=["total"])
        >>> tables = tabulate(simulate_population("tract", rng=1), work)
        >>> spec = MechanismSpec("mine", others=NoiseSpec("discrete-gaussian", 5))
        >>> noisy = Release(spec, tables)
        >>> tree = Tree.from_release(noisy, table="total", cell=work.at("tract")["total"].cells[0])
        >>> int(tree.depth.max()), int((tree.precision > 0).sum()) == tree.n_nodes
        (1, True)
        """
        return cls.from_frame(frame_of_release(release, table, cell, place))


def _require_columns(frame: pd.DataFrame) -> None:
    for column in ("node", "parent", "noisy_count"):
        if column not in frame.columns:
            raise DataError(f"frame must have a column {column!r}, got {list(frame.columns)}")
    if ("rho" in frame.columns) == ("sigma2" in frame.columns):
        raise DataError(
            f"frame must have exactly one of the columns 'rho' and 'sigma2', "
            f"got {list(frame.columns)}"
        )
    if ("known_count" in frame.columns) != ("prior" in frame.columns):
        raise DataError("frame must have both or neither of the columns 'known_count' and 'prior'")
    if not len(frame):
        raise DataError("frame must have at least one row, got none")


def _node_names(frame: pd.DataFrame) -> pd.Index:
    names: pd.Index = pd.Index(frame["node"])
    missing = np.asarray(names.isna())
    if missing.any():
        raise DataError(f"row {int(np.argmax(missing))}: node has no name")
    twice = np.asarray(names.duplicated())
    if twice.any():
        row = int(np.argmax(twice))
        raise DataError(f"row {row}: node {names[row]!r} is listed twice")
    return names


def _parents(frame: pd.DataFrame, names: pd.Index) -> NDArray[np.int64]:
    """Return the row of each node's parent, -1 for the root."""
    column = pd.Index(frame["parent"])
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
    own = parent == np.arange(parent.size)
    if own.any():
        row = int(np.argmax(own))
        raise DataError(f"row {row}: node {names[row]!r} is its own parent")
    roots = np.flatnonzero(is_root)
    if roots.size > 1:
        listed = ", ".join(repr(names[row]) for row in roots[:3])
        raise DataError(f"row {roots[1]}: the tree must have one root, got {roots.size}: {listed}")
    return parent


def _breadth_first(
    names: pd.Index, parent: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
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
        seen: set[int] = set()
        while row not in seen:
            seen.add(row)
            row = int(parent[row])
        raise DataError(f"row {row}: node {names[row]!r} is its own ancestor (a cycle)")
    rank = np.empty(rows.size, dtype=np.int64)
    rank[rows] = np.arange(rows.size)
    above = parent[rows]
    return rows, np.where(above < 0, -1, rank[above]), np.concatenate(depth)


def _numbers(
    frame: pd.DataFrame, column: str, names: pd.Index
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a column as float64, and where it has a value."""
    try:
        numbers: Any = pd.to_numeric(frame[column]).astype("Float64")
        values = np.asarray(numbers.to_numpy(float, na_value=np.nan))
    except (TypeError, ValueError, ArithmeticError) as error:
        raise DataError(f"column {column!r} must hold numbers: {error}") from error
    present = ~np.isnan(values)
    bad = present & ~np.isfinite(values)
    _refuse(bad, frame, column, names, "finite")
    return values, present


def _refuse(
    bad: NDArray[np.bool_], frame: pd.DataFrame, column: str, names: pd.Index, bound: str
) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        value = frame[column].iloc[row]
        raise DataError(f"row {row}, node {names[row]!r}: {column} must be {bound}, got {value!s}")


def _whole_column(
    frame: pd.DataFrame, column: str, names: pd.Index, *, lower: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    values, present = _numbers(frame, column, names)
    values = np.where(present, values, 0.0)
    _refuse(values != np.rint(values), frame, column, names, "a whole number")
    _refuse(values < lower, frame, column, names, f">= {lower}")
    _refuse(values > check.MAX_COUNT, frame, column, names, f"<= {check.MAX_COUNT}")
    return values.astype(np.int64), present


def _precisions(frame: pd.DataFrame, names: pd.Index, sensitivity: Number) -> NDArray[np.float64]:
    """Return 1 / (2 sigma2) of each row's noise; 0 for no release."""
    delta = check.scalar(sensitivity, "sensitivity", lower=1e-100, upper=1e100)
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
    frame: pd.DataFrame,
    names: pd.Index,
    order: NDArray[np.int64],
    parent: NDArray[np.int64],
    depth: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the least and the largest count of each node, breadth first, tightened upwards."""
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


def _targets(frame: pd.DataFrame, names: pd.Index) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return known_count (-1 for no target) and prior (NaN for no target)."""
    if "prior" not in frame.columns:
        return np.full(len(frame), -1, dtype=np.int64), np.full(len(frame), np.nan)
    known, has_known = _whole_column(frame, "known_count", names, lower=0)
    prior, has_prior = _numbers(frame, "prior", names)
    one_only = has_known != has_prior
    if one_only.any():
        row = int(np.argmax(one_only))
        raise DataError(
            f"row {row}, node {names[row]!r}: known_count and prior must both be given or neither"
        )
    outside = has_prior & ~((prior > 0.0) & (prior < 1.0))
    _refuse(outside, frame, "prior", names, "between 0 and 1")
    return np.where(has_known, known, -1), prior

"""A tree of counts as the arrays that the sum-product runs on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrisk._types import FloatArray, IntArray
from bayesrisk._validation import MAX_COUNT
from bayesrisk.distributions.log_table import LogTable
from bayesrisk.exceptions import ArgumentError
from bayesrisk.inference.tree import _kernels as kernels
from bayesrisk.inference.tree.structure import Tree

_SHORT = 2**12  # counts within bounds that are kept as a table; wider bounds only cut windows
_LONGEST_TABLE = 2**22  # the same for a count of which nothing else is known


@dataclass(frozen=True, eq=False)
class Plan:
    """A tree as units (chains of nodes with one count) and a binary tree of merges."""

    unit_of: IntArray
    parent: IntArray
    is_leaf: NDArray[np.bool_]
    lam: FloatArray
    y: IntArray
    frac: FloatArray
    left: IntArray
    right: IntArray
    unit: IntArray
    root: IntArray
    law: FloatArray
    bank: FloatArray
    bank_of: IntArray
    tables: dict[int, LogTable]
    leaf_units: IntArray
    leaf_names: Any
    bounds: IntArray

    def leaf_name(self, unit: int) -> Any:
        """Return the name of the leaf at the end of a unit."""
        return self.leaf_names[int(np.flatnonzero(self.leaf_units == unit)[0])]


def units(tree: Tree) -> tuple[IntArray, IntArray, FloatArray, IntArray, FloatArray]:
    """Return the unit of each node, and parent, precision, whole and rest of each unit."""
    unit_of = np.empty(tree.n_nodes, dtype=np.int64)
    n = int(kernels.unit_of_nodes(tree.parent, tree.first_child, unit_of))
    head = np.full(n, tree.n_nodes, dtype=np.int64)
    np.minimum.at(head, unit_of, np.arange(tree.n_nodes))
    above = tree.parent[head]
    parent = np.where(above < 0, -1, unit_of[above])
    lam: FloatArray = np.minimum(np.bincount(unit_of, tree.precision, n), 1e280)
    # The most precise release is the reference; the others move it by a weighted mean.
    y = np.zeros(n, dtype=np.int64)
    order = np.argsort(tree.precision, kind="stable")
    y[unit_of[order]] = tree.noisy[order]
    gap = (tree.noisy - y[unit_of]) * np.minimum(tree.precision / np.fmax(lam[unit_of], 1e-320), 1)
    rest = np.bincount(unit_of, np.where(tree.precision > 0.0, gap, 0.0), n)
    return unit_of, np.asarray(parent, dtype=np.int64), lam, y, rest.astype(np.float64)


def _product(a: LogTable, b: LogTable) -> LogTable:
    """Return the product of two laws of one count, not normalised."""
    if min(a.stop, b.stop) <= max(a.start, b.start):
        raise ArgumentError(
            "priors on one count must share a possible count, got "
            f"[{a.start}, {a.stop - 1}] and [{b.start}, {b.stop - 1}]"
        )
    return a.times(b)


def _within(table: LogTable, low: int, high: int) -> LogTable:
    """Return a law cut down to the counts that bounds leave."""
    return _product(table, LogTable(low, np.zeros(min(high, table.stop - 1) - low + 1)))


def _log_law(law: FloatArray, low: int, high: int) -> FloatArray:
    """Return log weights of a law of the family (see ``LeafPrior``) on ``low``, ..., ``high``."""
    x = np.arange(low, high, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        grown = np.where(np.isinf(law[1]), 1.0, x + law[1]) / (x + 1.0)
    steps = np.where(x == 0.0, law[0], law[2] + np.log(grown))
    return np.concatenate(([0.0], np.cumsum(steps)))


def _use_bounds(
    bounds: IntArray,
    lam: FloatArray,
    leaf: NDArray[np.bool_],
    laws: FloatArray,
    leaf_tables: dict[int, LogTable | None],
    inner: dict[int, LogTable],
) -> None:
    """Put short bounds into the tables; those that stay only cut windows.

    A bound of 0, or an exact total, is a table of one count.  Units share tables.
    """
    made: dict[Any, FloatArray] = {}
    width = bounds[:, 1] - bounds[:, 0]
    bounded = (bounds[:, 0] > 0) | (bounds[:, 1] < MAX_COUNT)
    short = (width < _SHORT) | ((lam == 0.0) & (width < _LONGEST_TABLE))
    for u in np.flatnonzero(bounded).tolist():
        low, high = bounds[u].tolist()
        table = leaf_tables.get(u) if leaf[u] else inner.get(u)
        if table is not None:
            table = _within(table, low, high)
        elif short[u]:
            law = laws[u] if leaf[u] else np.array([0.0, 1.0, 0.0])
            key = (low, high, *law.tolist())
            if key not in made:
                made[key] = _log_law(law, low, high)
            table = LogTable(low, made[key])
        else:
            continue
        if leaf[u]:
            leaf_tables[u] = table
        else:
            inner[u] = table


def _unit_tables(
    tree: Tree,
    unit_of: IntArray,
    laws: FloatArray,
    tables: Sequence[LogTable | None],
    node_tables: Mapping[int, LogTable],
) -> tuple[list[LogTable | None], dict[int, LogTable]]:
    """Return the table of each leaf, and those of other units: priors and exact counts together.

    Nodes with one child share a unit, and its count.
    """
    exact = {
        int(v): LogTable(int(tree.exact[v]), np.zeros(1)) for v in np.flatnonzero(tree.exact >= 0)
    }
    inner: dict[int, LogTable] = {}
    for node, table in [*node_tables.items(), *exact.items()]:
        unit = int(unit_of[node])
        inner[unit] = _product(inner[unit], table) if unit in inner else table
    leaf_tables = list(tables)
    for i, unit in enumerate(unit_of[tree.leaves].tolist()):
        if unit not in inner:
            continue
        known = inner.pop(unit)
        own = leaf_tables[i]
        if own is not None:
            known = _product(own, known)
        elif known.start > 1 and np.isneginf(laws[i, 2]):  # a hurdle that allows 0 and 1 alone
            raise ArgumentError(f"leaf_prior must allow the exact count, got {known.start}")
        leaf_tables[i] = known
    return leaf_tables, inner


def make_plan(
    tree: Tree,
    laws: FloatArray,
    tables: Sequence[LogTable | None],
    node_tables: Mapping[int, LogTable],
) -> Plan:
    """Return the plan of a tree; ``laws`` and ``tables`` go with ``tree.leaves``.

    ``tables[i]`` is the table of the i-th leaf, None where it has a law; ``node_tables`` are those
    of inner nodes.
    """
    unit_of, parent, lam, y, frac = units(tree)
    n = lam.size
    count = np.bincount(parent[1:], minlength=n).astype(np.int64)
    first = np.full(n, n, dtype=np.int64)
    np.minimum.at(first, parent[1:], np.arange(1, n))
    n_segments = n + int(np.maximum(count - 2, 0).sum())
    left, right, unit = (np.empty(n_segments, dtype=np.int64) for _ in range(3))
    root = np.empty(n, dtype=np.int64)
    kernels.pair_children(first, count, left, right, unit, root)
    law = np.zeros((n, 3))
    law[unit_of[tree.leaves]] = laws
    bank_of = np.zeros((n, 3), dtype=np.int64)
    parts: list[FloatArray] = [np.zeros(0)]
    placed: dict[int, int] = {}
    total = 0
    leaf_list, inner = _unit_tables(tree, unit_of, laws, tables, node_tables)
    leaf_tables = dict(zip(unit_of[tree.leaves].tolist(), leaf_list, strict=True))
    bounds = np.stack([np.zeros(n, dtype=np.int64), np.full(n, MAX_COUNT)], axis=1)
    if tree.is_bounded:
        np.maximum.at(bounds[:, 0], unit_of, tree.lower)
        np.minimum.at(bounds[:, 1], unit_of, tree.upper)
        _use_bounds(bounds, lam, count == 0, law, leaf_tables, inner)
    for leaf, table in leaf_tables.items():
        if table is not None:
            low, values = table
            if id(values) not in placed:  # leaves may share a law
                placed[id(values)] = total
                parts.append(values)
                total += values.size
            bank_of[leaf] = placed[id(values)], low, values.size
    return Plan(
        unit_of,
        parent,
        count == 0,
        lam,
        y,
        frac,
        left,
        right,
        unit,
        root,
        law,
        np.concatenate(parts),
        bank_of,
        inner,
        unit_of[tree.leaves],
        tree.names[tree.leaves],
        bounds,
    )

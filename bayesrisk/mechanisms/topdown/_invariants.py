"""What is exact in a TopDown-like release: nested sets of cells, public zeros, and their reach.

Exact counts at a level are exact, as sums, at every level above.  Sets must be nested (two sets
are disjoint, or one holds the other): then a parent's integers can always be split over its
children, and the rounding stays a transportation problem.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bayesrisk._files.parse import shown
from bayesrisk._types import BoolArray, IntArray
from bayesrisk.exceptions import ArgumentError
from bayesrisk.mechanisms.topdown._family import Lookahead

Rows = sparse.csr_array


def nested(sets: Rows) -> bool:
    """Return whether every two of the 0/1 sets are disjoint or one holds the other."""
    whole = sparse.csr_array(sets.astype(np.int64))
    if np.any(whole.data != 1):
        return False
    common = sparse.coo_array(whole @ whole.T)
    size = whole.sum(axis=1)
    i, j = common.coords
    return bool(np.all((common.data == size[i]) | (common.data == size[j])))


def distinct(sets: Rows) -> tuple[Rows, IntArray]:
    """Return the sets that are not empty, each once, and where they were."""
    seen: dict[bytes, int] = {}
    whole = sparse.csr_array(sets)
    whole.sort_indices()
    for row in range(whole.shape[0]):
        members = whole.indices[whole.indptr[row] : whole.indptr[row + 1]]
        if members.size:
            seen.setdefault(members.astype(np.int64).tobytes(), row)
    kept = np.array(sorted(seen.values()), dtype=np.int64)
    return sparse.csr_array(whole[kept]), kept


@dataclass(frozen=True)
class ExactSets:
    """Sets of cells whose totals are exact at a level, and the totals (nodes, sets)."""

    sets: Rows
    totals: IntArray

    @classmethod
    def stack(cls, parts: Sequence["ExactSets"], *, cells: int, nodes: int) -> "ExactSets":
        """Return the sets of all parts, each once."""
        if not parts:
            return cls(sparse.csr_array((0, cells), dtype=np.int64), np.zeros((nodes, 0), np.int64))
        sets, kept = distinct(sparse.csr_array(sparse.vstack([p.sets for p in parts])))
        return cls(sets, np.hstack([p.totals for p in parts])[:, kept])

    def sums(self, parent: IntArray, nodes: int) -> "ExactSets":
        """Return the same sets one level up."""
        totals = np.zeros((nodes, self.totals.shape[1]), dtype=np.int64)
        np.add.at(totals, parent, self.totals)
        return ExactSets(self.sets, totals)


def check_nested(exact: ExactSets, level: str) -> None:
    """Refuse sets of a level that cross."""
    if not nested(exact.sets):
        raise ArgumentError(
            f"invariants must be 0/1 tables whose cells are nested, those of the levels below "
            f"included; at level {level!r} they are not"
        )


def controlled_sets(tables: Mapping[str, Rows], exact: Rows, wanted: Sequence[str] | None) -> Rows:
    """Return the sets whose totals the rounding keeps near, nested with each other and ``exact``.

    Unless they are named, tables are taken from the smallest up while they stay nested.
    """
    chosen = exact
    named = sorted(tables, key=lambda name: tables[name].shape[0]) if wanted is None else wanted
    for name in named:
        if name not in tables:
            raise ArgumentError(f"rounding must name measured tables, got {shown(name)}")
        both = sparse.csr_array(sparse.vstack([chosen, tables[name]]))
        if nested(both):
            chosen = both
        elif wanted is not None:
            raise ArgumentError(
                f"rounding must name 0/1 tables nested in each other and in the invariants, "
                f"got {shown(name)}"
            )
    several = np.flatnonzero(np.diff(chosen.indptr) > 1)
    sets, kept = distinct(sparse.csr_array(chosen[several]))
    return sparse.csr_array(sets[np.flatnonzero(several[kept] >= exact.shape[0])])


@dataclass(frozen=True)
class Zeros:
    """Public zeros: the kind of every cell, and the kinds that each node may hold.

    Kinds are combinations of the attribute codes whose zeros are public.
    """

    kinds: IntArray
    allowed: BoolArray

    def above(self, parent: IntArray, nodes: int) -> "Zeros":
        """Return the zeros one level up: a node holds what any of its children may hold."""
        allowed = np.zeros((nodes, self.allowed.shape[1]), dtype=bool)
        np.logical_or.at(allowed, parent, self.allowed)
        return Zeros(self.kinds, allowed)


def lookaheads(exact: ExactSets, zeros: Zeros, ancestor: IntArray) -> dict[int, Lookahead]:
    """Return, for the nodes above the units that hold exact counts, what these must still hold.

    Parameters
    ----------
    exact, zeros : ExactSets, Zeros
        Those of the units.
    ancestor : ndarray of int64
        Node above each unit.
    """
    # Nested sets: the smallest one around a cell says which others hold it.
    smallest = np.full(zeros.kinds.size, -1, dtype=np.int64)
    for row in np.argsort(-np.diff(exact.sets.indptr), kind="stable"):
        smallest[exact.sets.indices[exact.sets.indptr[row] : exact.sets.indptr[row + 1]]] = row
    _, example, classes = np.unique(
        np.vstack([smallest, zeros.kinds]), axis=1, return_index=True, return_inverse=True
    )
    sets, kinds = sparse.csr_array(exact.sets[:, example]), zeros.kinds[example]
    order = np.argsort(ancestor, kind="stable")
    nodes, first = np.unique(ancestor[order], return_index=True)
    found = {}
    for node, units in zip(nodes, np.split(order, first[1:]), strict=True):
        patterns, group = np.unique(zeros.allowed[units], axis=0, return_inverse=True)
        if len(patterns) > 1:
            totals = np.zeros((len(patterns), sets.shape[0]), dtype=np.int64)
            np.add.at(totals, group.reshape(-1), exact.totals[units])
            found[int(node)] = Lookahead(
                classes.reshape(-1).astype(np.int64), sets, patterns[:, kinds], totals
            )
    return found

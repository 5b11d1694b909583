"""Cells that nothing tells apart are one count, and sums that are measured twice are one row.

Cells are alike where every table, every set, every child's zeros and every lookahead treat them
alike: the objective then depends on the sum of a child's counts over the class alone.  Counts of
a parent's cells ``h_j`` ask of the sums ``X_c`` of a class no more than ``sum_c X_c = sum_j h_j``,
for ``x_cj = X_c h_j / sum_j h_j`` then has every parent sum.  So the sums of an optimum over
classes are those of an optimum over cells.  The sums are rounded, for only they were fitted: cells
rounded one by one would go up or down together, and favour sums that are multiples of their number.
The rounded sums are then split in proportion to the parent, what is left over by lot.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bayesrisk._types import FloatArray, IntArray
from bayesrisk.mechanisms.topdown._family import Family, Query


@dataclass(frozen=True)
class Classes:
    """A family of classes of cells.

    Attributes
    ----------
    family : Family
        With a cell for every class; its queries are one, whose rows differ.
    label : ndarray of int64
        Class of every cell.
    """

    family: Family
    label: IntArray

    def split(self, sums: IntArray, parent: IntArray | None, rng: np.random.Generator) -> IntArray:
        """Return whole counts of cells, (children, cells), from those of classes.

        Every cell gets its share of the sum of its class, rounded down; who is left of a class is
        dealt to the places left in its cells at random.  At the top all cells have equal shares.
        """
        label = self.label
        if parent is None:
            size = np.bincount(label)
            order = np.lexsort((rng.random(label.size), label))
            rank = np.empty(label.size, dtype=np.int64)
            rank[order] = np.arange(label.size) - (np.cumsum(size) - size)[label[order]]
            return np.asarray(sums[:, label] // size[label] + (rank < (sums % size)[:, label]))
        people = np.maximum(_sums(parent, label), 1)
        counts: IntArray = sums[:, label] * parent // people[label]
        member = sparse.csr_array((np.ones_like(label), (np.arange(label.size), label)))
        left = (sums - counts @ member).T
        kind, child = np.nonzero(left)
        kind, child = (np.repeat(own, left[kind, child]) for own in (kind, child))
        dealt = child[np.lexsort((rng.random(kind.size), kind))]
        cells = np.argsort(label, kind="stable")
        np.add.at(counts, (dealt, np.repeat(cells, (parent - counts.sum(axis=0))[cells])), 1)
        return counts


def classes_of(family: Family) -> Classes:
    """Return the family of classes of a family whose parent counts are all above zero."""
    rows = sparse.csr_array(sparse.vstack([query.rows for query in family.queries], format="csr"))
    first, label = _alike_cells(family, rows)
    controlled = sparse.csr_array(family.controlled[:, first])
    merged = replace(
        family,
        live=family.live[:, first],
        parent=None if family.parent is None else _sums(family.parent, label),
        queries=(_one_query(family, sparse.csr_array(sparse.csc_array(rows)[:, first])),),
        sets=sparse.csr_array(family.sets[:, first]),
        controlled=sparse.csr_array(controlled[np.flatnonzero(np.diff(controlled.indptr) > 1)]),
        lookahead=tuple(
            (child, replace(ahead, classes=ahead.classes[first]))
            for child, ahead in family.lookahead
        ),
    )
    return Classes(merged, label)


def _sums(counts: IntArray, label: IntArray) -> IntArray:
    return np.bincount(label, counts).astype(np.int64)


def _alike_cells(family: Family, rows: sparse.csr_array) -> tuple[IntArray, IntArray]:
    """Return a cell of every class, and the class of every cell, in the order of first cells."""
    kinds = np.array([ahead.classes for _, ahead in family.lookahead]).reshape(-1, rows.shape[1])
    parts = [rows, family.sets, sparse.csr_array(family.live.astype(np.float64))]
    columns = sparse.csc_array(sparse.vstack(parts, format="csc"), dtype=np.float64)
    # Sums of random numbers find cells that may be alike; what they are made of is then compared.
    columns.sort_indices()
    random = np.random.default_rng(0).random((columns.shape[0], 2))
    marks: FloatArray = np.asarray(columns.T @ random)
    first, label = _numbered(np.column_stack([marks, kinds.T]))
    same = first[label]
    if np.any((columns - columns[:, same]).data) or np.any(kinds != kinds[:, same]):
        first = label = np.arange(columns.shape[1])
    return first, label


def _numbered(marks: FloatArray) -> tuple[IntArray, IntArray]:
    """Return where each distinct row is first, and the number of every row, by first place."""
    # Column by column: to sort whole rows costs about ten times as much.
    order = np.lexsort(marks.T)
    begins = np.ones(order.size, dtype=np.bool_)
    begins[1:] = (marks[order[1:]] != marks[order[:-1]]).any(axis=1)
    group = np.empty(order.size, dtype=np.int64)
    group[order] = np.cumsum(begins) - 1
    firsts = order[begins]  # equal rows stay in order
    place = np.empty(firsts.size, dtype=np.int64)
    place[np.argsort(firsts)] = np.arange(firsts.size)
    return np.sort(firsts).astype(np.int64), place[group]


def _one_query(family: Family, rows: sparse.csr_array) -> Query:
    """Return all queries as one without repeated rows.

    Answers ``y_k`` to one sum with weights ``w_k`` are, but for a constant, one answer
    ``sum_k w_k y_k / sum_k w_k`` with weight ``sum_k w_k``.
    """
    weight = np.concatenate([np.broadcast_to(q.weight, q.rows.shape[0]) for q in family.queries])
    answers = np.hstack([query.noisy for query in family.queries]).astype(np.float64)
    rows.sort_indices()
    random = np.random.default_rng(1).random((rows.shape[1], 2))
    first, label = _numbered(rows @ random)
    if np.any((rows - rows[first[label]]).data):
        return Query(sparse.csc_array(rows), weight, answers)
    total: FloatArray = np.bincount(label, weight).astype(np.float64)
    sums = np.array([np.bincount(label, weight * own) for own in answers])
    return Query(sparse.csc_array(rows[first]), total, sums / total)

"""Cells that nothing tells apart are one unknown, and sums that are measured twice are one row.

Cells are alike where every table, every set, every child's zeros and every lookahead treat them
alike: the objective then depends on the sum of a child's counts over the class alone.  Counts of
a parent's cells ``h_j`` ask of the sums ``X_c`` of a class no more than ``sum_c X_c = sum_j h_j``,
for ``x_cj = X_c h_j / sum_j h_j`` then has every parent sum.  So the sums of an optimum over
classes, split in proportion to the parent (evenly at the top), are an optimum over cells; which
of the optima is taken is thereby settled within classes.
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
    share : ndarray of float64
        Part of the count of its class that a cell gets.
    """

    family: Family
    label: IntArray
    share: FloatArray

    def spread(self, found: FloatArray) -> FloatArray:
        """Return the counts of live cells, child by child, and what follows the counts."""
        live = self.family.live
        sums = np.zeros(live.shape)
        count = int(live.sum())
        sums[live] = found[:count]
        cells = (sums[:, self.label] * self.share)[live[:, self.label]]
        return np.concatenate([cells, found[count:]])


def classes_of(family: Family) -> Classes:
    """Return the family of classes of a family whose parent counts are all above zero."""
    rows = sparse.csr_array(sparse.vstack([query.rows for query in family.queries], format="csr"))
    first, label = _alike_cells(family, rows)
    totals = np.ones(label.size) if family.parent is None else family.parent.astype(np.float64)
    sums = np.bincount(label, totals, minlength=first.size)
    merged = replace(
        family,
        live=family.live[:, first],
        parent=None if family.parent is None else np.rint(sums).astype(np.int64),
        queries=(_one_query(family, sparse.csr_array(sparse.csc_array(rows)[:, first])),),
        sets=sparse.csr_array(family.sets[:, first]),
        controlled=sparse.csr_array((0, first.size), dtype=np.int64),
        lookahead=tuple(
            (child, replace(ahead, classes=ahead.classes[first]))
            for child, ahead in family.lookahead
        ),
    )
    return Classes(merged, label, totals / np.where(sums > 0, sums, 1.0)[label])


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

"""Rows over unknown whole numbers: by columns, and which of them are equal."""

from itertools import count
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bayesrisk._base.validation import IntArray
from bayesrisk.tables.likelihoods import UNBOUNDED


class Columns(NamedTuple):
    """Rows by their columns: the store of a block, whose rows all blocks have.

    The rows of unknown j are ``row[ptr[j]:ptr[j + 1]]``, with the coefficients ``coef``.
    """

    ptr: IntArray
    row: IntArray
    coef: IntArray


def by_columns(rows: sp.sparray) -> Columns:
    """Return the columns of a matrix of rows by unknowns, the rows of each in order."""
    columns = sp.csc_array(rows)
    columns.sort_indices()
    ptr, row = columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
    return Columns(ptr, row, columns.data.astype(np.int64))


def expand(ptr: IntArray, items: IntArray) -> tuple[IntArray, IntArray]:
    """Return positions of the entries of several compressed rows, and whose each one is."""
    begin, size = ptr[items], ptr[items + 1] - ptr[items]
    positions = np.repeat(begin - np.cumsum(size) + size, size) + np.arange(size.sum())
    return positions, np.repeat(np.arange(items.size), size)


def largest_alone(c: Columns, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Return the largest number of each unknown that every row leaves it, and that one asks for.

    By each row alone, weights being > 0: the first is ``UNBOUNDED`` where no row has an upper end;
    no row is served by more than the second.
    """
    most, need = np.full(c.ptr.size - 1, UNBOUNDED), np.zeros(c.ptr.size - 1, np.int64)
    used = np.flatnonzero(np.diff(c.ptr))
    if used.size:
        # x_j <= H_r / a_rj in every row r of unknown j.
        top, least = np.maximum(high, 0)[c.row], low[c.row]
        if (c.coef > 1).any():  # a division takes longer than all the rest
            top = np.where(top < UNBOUNDED, top // c.coef, UNBOUNDED)
            least = -(-least // c.coef)
        most[used] = np.minimum(np.minimum.reduceat(top, c.ptr[used]), UNBOUNDED)
        need[used] = np.maximum(np.maximum.reduceat(least, c.ptr[used]), 0)
    return most, need


def equal_rows(
    matrix: sp.csr_array | sp.csc_array, *marks: NDArray[np.generic]
) -> tuple[IntArray, IntArray]:
    """Return a number for each row, the same for rows that are equal, and equally marked.

    Numbers increase from 0 by the first row that has each, and these are the second array.
    """
    rows = sp.csr_array(matrix)
    rows.sort_indices()
    bits = rows.data if rows.data.dtype.itemsize == 8 else rows.data.astype(np.int64)
    bits = bits.view(np.uint64) ^ (bits.view(np.uint64) >> np.uint64(52))  # floats end in zeros
    for seed in count():
        # Equal rows have equal sums of bits times random numbers; what they are made of decides.
        random = np.random.default_rng(seed).integers(2**64, size=rows.shape[1], dtype=np.uint64)
        sums = np.append(np.uint64(0), np.cumsum(bits * random[rows.indices]))
        label = _numbered(
            *marks, np.diff(rows.indptr), sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]
        )
        first = np.unique(label, return_index=True)[1].astype(np.int64)
        example = rows[first[label]]
        equal = np.array_equal(example.indices, rows.indices)
        if equal and np.array_equal(example.data, rows.data):
            break
    return label, first


def _numbered(*keys: NDArray[np.generic]) -> IntArray:
    """Return the number of each combination of keys, in the order of their first places."""
    # Key by key: to sort whole rows of keys costs about ten times as much.
    order = np.lexsort(keys)
    begins = np.ones(order.size, np.bool_)
    begins[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
    place = np.empty(np.count_nonzero(begins), np.int64)
    place[np.argsort(order[begins])] = np.arange(place.size)  # equal keys stay in order
    label = np.empty(order.size, np.int64)
    label[order] = place[np.cumsum(begins) - 1]
    return label

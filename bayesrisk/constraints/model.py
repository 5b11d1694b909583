"""Integer models (bounds and rows), and their split into components that share no variable.

A row is exact if its two ends are equal, and a range if they differ. It is free on a side whose end
is ``ENDLESS``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bayesrisk._base.display import displayed
from bayesrisk._base.validation import FloatArray, IntArray
from bayesrisk.tables.likelihoods import UNBOUNDED

#: An end that is none.
ENDLESS = UNBOUNDED


def less(ends: IntArray, part: IntArray) -> IntArray:
    """Return ends of rows less a part of them; a missing end stays missing."""
    return np.where(np.abs(ends) >= ENDLESS, ends, ends - part)


class Columns(NamedTuple):
    """A sparse matrix of rows by unknowns, stored column by column.

    The rows of unknown j are ``row[ptr[j]:ptr[j + 1]]``, with the coefficients ``coef``.
    """

    ptr: IntArray
    row: IntArray
    coef: IntArray


def by_columns(rows: sp.sparray) -> Columns:
    """Return a matrix of rows by unknowns stored by columns, row numbers increasing in each."""
    columns = sp.csc_array(rows)
    columns.sort_indices()
    ptr, row = columns.indptr.astype(np.int64), columns.indices.astype(np.int64)
    return Columns(ptr, row, columns.data.astype(np.int64))


def expand(ptr: IntArray, items: IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions of the entries of some compressed rows, and the row that owns each."""
    begin, size = ptr[items], ptr[items + 1] - ptr[items]
    positions = np.repeat(begin - np.cumsum(size) + size, size) + np.arange(size.sum())
    return positions, np.repeat(np.arange(items.size), size)


def largest_alone(c: Columns, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
    """Return each unknown's largest value under every row, and the most that one row can need.

    Each row is used alone, with weights > 0; an unknown without an upper bound is ``UNBOUNDED``.
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
    """Return a group number for each row; rows with equal entries and marks share one.

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
    """Return a number for each combination of keys, counted in order of first appearance."""
    # Key by key: to sort whole rows of keys costs about ten times as much.
    order = np.lexsort(keys)
    begins = np.ones(order.size, np.bool_)
    begins[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
    place = np.empty(np.count_nonzero(begins), np.int64)
    place[np.argsort(order[begins])] = np.arange(place.size)  # equal keys stay in order
    label = np.empty(order.size, np.int64)
    label[order] = place[np.cumsum(begins) - 1]
    return label


class Status(StrEnum):
    """The state of a block, solution or question: what is proved about it.

    For solutions (records, households, values of an integer program):

    - ``UNIQUE``: proved that no other records fit;
    - ``PROVED``: proved to be the best, or the only value;
    - ``FEASIBLE``: they fit; others do, or might;
    - ``NEAREST``: none fit; these deviate least;
    - ``BOUNDED``: a number lies between two proved bounds;
    - ``INFEASIBLE``: proved that nothing fits the published counts;
    - ``UNKNOWN``: no solution is given, and none is excluded;
    - ``NOT_RUN``: no search was made.

    For questions (does a claim hold, does a household violate a limit):

    - ``VERIFIED``, ``REFUTED``: proved to hold in every solution, or to fail in one;
    - ``VIOLATION``, ``POSSIBLE``: proved in every solution, or missing in one;
    - ``UNDECIDED``: a limit left the question open;
    - ``DECIDED``: no question about the block is open;
    - ``EMPTY``: the block has no people.

    Examples
    --------
    >>> Status.UNIQUE == "unique", Status("undecided")
    (True, 'undecided')
    """

    UNIQUE = "unique"
    PROVED = "proved"
    FEASIBLE = "feasible"
    NEAREST = "nearest"
    BOUNDED = "bounded"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    NOT_RUN = "none"
    VERIFIED = "verified"
    REFUTED = "refuted"
    VIOLATION = "violation"
    POSSIBLE = "possible"
    UNDECIDED = "undecided"
    DECIDED = "decided"
    EMPTY = "empty"

    def __repr__(self) -> str:
        """Return the text in quotes, as of any text."""
        return repr(self.value)


@displayed
@dataclass(frozen=True)
class IntegerModel:
    """Integer variables within bounds, and rows ``row_low <= rows @ x <= row_high``.

    The coefficients are whole, rows by variables.
    """

    low: IntArray
    high: IntArray
    rows: sp.csr_array
    row_low: IntArray
    row_high: IntArray

    @cached_property
    def closed(self) -> bool:
        """Whether every row and every variable has a finite lower and upper bound."""
        ends = (self.low, self.high, self.row_low, self.row_high)
        return all(bool(np.all(np.abs(end) < ENDLESS)) for end in ends)

    @cached_property
    def heaviest(self) -> int:
        """The largest sum of absolute weights of one variable, plus 1."""
        return int(np.bincount(self.rows.indices, np.abs(self.rows.data)).max(initial=0)) + 1

    @cached_property
    def largest_ends(self) -> tuple[FloatArray, FloatArray, int, int]:
        """The larger absolute bound of each row and of each variable, and both sums."""
        return largest_ends(self.low, self.high, self.row_low, self.row_high)

    @cached_property
    def columns(self) -> sp.csr_array:
        """The transposed rows."""
        return sp.csr_array(self.rows.T)

    def part(self, rows: IntArray, variables: IntArray | None = None) -> "IntegerModel":
        """Return some of the rows over some of the variables, by default over all."""
        low, high, matrix = self.low, self.high, sp.csr_array(self.rows[rows])
        if variables is not None:
            low, high, matrix = low[variables], high[variables], sp.csr_array(matrix[:, variables])
        return IntegerModel(low, high, matrix, self.row_low[rows], self.row_high[rows])

    def beyond(self, objective: IntArray, least: int, most: int | None = None) -> "IntegerModel":
        """Return the model restricted to solutions whose objective is at least ``least``."""
        if most is None:
            most = max(int(np.maximum(objective * self.low, objective * self.high).sum()), least)
        rows = sp.csr_array(sp.vstack([self.rows, sp.csr_array(objective[None, :])], format="csr"))
        ends = np.append(self.row_low, least), np.append(self.row_high, most)
        return IntegerModel(self.low, self.high, rows, *ends)

    def holds(self, values: IntArray) -> bool:
        """Return True if integer values satisfy every bound and row exactly."""
        if np.any(values < self.low) or np.any(values > self.high):
            return False
        sums = self.rows @ values
        return bool(np.all(sums >= self.row_low) and np.all(sums <= self.row_high))


def largest_ends(
    low: IntArray, high: IntArray, row_low: IntArray, row_high: IntArray
) -> tuple[FloatArray, FloatArray, int, int]:
    """Return the larger absolute bound of each row and of each variable, and both sums plus 1.

    An end that is none is never multiplied, and counts as 0 of a row, as 1 of a variable.
    """
    rows, variables = (
        np.maximum(*(np.where(np.abs(end) >= ENDLESS, none, np.abs(end)) for end in pair))
        for none, pair in ((0, (row_low, row_high)), (1, (low, high)))
    )
    ends = rows.astype(np.float64), variables.astype(np.float64)
    return *ends, int(ends[0].sum()) + 1, int(ends[1].sum()) + 1


@dataclass(frozen=True)
class Components:
    """A model whose variables and rows are sorted by component.

    Component k begins at variable ``first_var[k]`` and row ``first_row[k]``; rows without a
    variable come last.  ``variable`` and ``row`` say which of the given model each one was.
    """

    model: IntegerModel
    first_var: IntArray
    first_row: IntArray
    variable: IntArray
    row: IntArray

    @property
    def size(self) -> int:
        """Number of components."""
        return self.first_var.size - 1

    @property
    def owner(self) -> IntArray:
        """The component number of every variable."""
        return np.repeat(np.arange(self.size), np.diff(self.first_var))

    def variables(self, chosen: Sequence[int]) -> IntArray:
        """Return the variables of some components, in order."""
        return expand(self.first_var, np.array(chosen, np.int64))[0]

    def part(self, chosen: Sequence[int]) -> IntegerModel:
        """Return the model of some components, variables as in :meth:`variables`."""
        k, m = np.array(chosen, np.int64), self.model
        variables, rows = (expand(first, k)[0] for first in (self.first_var, self.first_row))
        ptr: Any = m.rows.indptr
        entry = expand(ptr, rows)[0]
        # Variable first_var[k] of the whole model is the one after those of the components before.
        size = self.first_var[k + 1] - self.first_var[k]
        n_entries = ptr[self.first_row[k + 1]] - ptr[self.first_row[k]]
        shift = np.repeat(np.cumsum(size) - size - self.first_var[k], n_entries)
        place = m.rows.indices[entry] + shift, np.append(0, np.cumsum(ptr[rows + 1] - ptr[rows]))
        matrix = sp.csr_array((m.rows.data[entry], *place), shape=(rows.size, variables.size))
        ends = m.row_low[rows], m.row_high[rows]
        return IntegerModel(m.low[variables], m.high[variables], matrix, *ends)


def components(model: IntegerModel) -> Components:
    """Return a model in components, in the order of their first variables."""
    n_rows, n_vars = model.rows.shape
    entries, size = model.rows.tocoo(), n_rows + n_vars
    row, variable = entries.coords
    edges = np.ones(row.size, np.int8), (variable, row + n_vars)
    graph = sp.csr_array(edges, shape=(size, size))
    count, label = connected_components(graph, directed=False)
    first = np.full(count, size)
    np.minimum.at(first, label, np.arange(size))
    label = np.argsort(np.argsort(first, kind="stable"))[label].astype(np.int64)
    by_var, by_row = label[:n_vars], label[n_vars:]
    var_order, row_order = np.argsort(by_var, kind="stable"), np.argsort(by_row, kind="stable")
    var_rank, row_rank = np.empty(n_vars, np.int64), np.empty(n_rows, np.int64)
    var_rank[var_order], row_rank[row_order] = np.arange(n_vars), np.arange(n_rows)
    ranks = row_rank[row], var_rank[variable]
    matrix = sp.csr_array((entries.data, ranks), shape=(n_rows, n_vars))
    ends = np.arange(int(by_var.max(initial=-1)) + 2)
    sorted_model = IntegerModel(
        model.low[var_order], model.high[var_order], matrix, model.row_low[row_order],
        model.row_high[row_order],
    )  # fmt: skip
    return Components(
        sorted_model,
        np.searchsorted(by_var[var_order], ends).astype(np.int64),
        np.searchsorted(by_row[row_order], ends).astype(np.int64),
        var_order,
        row_order,
    )

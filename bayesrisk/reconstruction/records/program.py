"""What propagation leaves open: a program of free cells, taken apart into components."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bayesrisk._types import IntArray
from bayesrisk.reconstruction.constraints.cells import entries
from bayesrisk.reconstruction.constraints.kernels import HIDDEN
from bayesrisk.reconstruction.records._search_kernels import Arrays, Work

#: Changes of bounds, beyond two for each variable, that a search can take back; one that needs
#: more stops, as at its limit of nodes.  24 bytes each.
MOST_CHANGES = 5_000_000


@dataclass(frozen=True)
class RowSource:
    """Rows that every group of cells (a block, a tract) has.

    Attributes
    ----------
    cell_ptr, cell_row, cell_coef : ndarray of int64
        The rows of every cell.
    family : ndarray of int64
        The family of each row.
    counts : scipy.sparse.csr_array
        Counts, groups by rows.
    group : ndarray of int64
        The group of every block.
    equal : bool
        Whether the cells add up to the count, or to at most the count.
    own : bool
        Whether a group is one block's: cells of other blocks do not enter its rows.
    """

    cell_ptr: IntArray
    cell_row: IntArray
    cell_coef: IntArray
    family: IntArray
    counts: sp.csr_array
    group: IntArray
    equal: bool = True
    own: bool = False


@dataclass(frozen=True)
class Program:
    """Free cells with their bounds, and the rows that bind them.

    Attributes
    ----------
    arrays : Arrays
        Columns, rows and components.
    low, high : ndarray of int64
        Bounds of the variables.
    entry, block, cell : ndarray of int64
        Where each variable comes from: which of the given cells, its block and cell.
    source, group, row : ndarray of int64
        Where each row comes from: which source, which group and which row of it.
    """

    arrays: Arrays
    low: IntArray
    high: IntArray
    entry: IntArray
    block: IntArray
    cell: IntArray
    source: IntArray
    group: IntArray
    row: IntArray

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.arrays.first_var.size - 1

    def component_of(self) -> IntArray:
        """Return the component of every variable."""
        return np.repeat(np.arange(self.n_components), np.diff(self.arrays.first_var))

    def blocks_of(self, component: int) -> IntArray:
        """Return the blocks that have a cell in a component."""
        first, last = self.arrays.first_var[component : component + 2]
        return np.unique(self.block[first:last])

    def work(self) -> Work:
        """Return fresh working arrays; the sums of rows are filled by propagation."""
        n_rows, n_vars = self.arrays.row_low.size, self.low.size
        families = int(self.arrays.family.max()) + 1 if n_rows else 1
        depth = int((self.high - self.low).sum()) + n_vars + 1
        return Work(
            low=self.low.copy(),
            high=self.high.copy(),
            least=np.zeros(n_rows, np.int64),
            most=np.zeros(n_rows, np.int64),
            trail=np.empty((min(depth, MOST_CHANGES) + 2 * n_vars, 3), np.int64),
            queue=np.empty(n_rows + 1, np.int64),
            waiting=np.zeros(n_rows, np.int64),
            state=np.zeros(5, np.int64),
            stack=np.empty((n_vars + 1, 4), np.int64),
            usable=np.zeros(families, np.int64),
            total=np.zeros(families, np.int64),
        )


def _expand(ptr: IntArray, at: IntArray) -> tuple[IntArray, IntArray]:
    """Return positions of the entries of several compressed rows, and whose each one is."""
    sizes = ptr[at + 1] - ptr[at]
    owner = np.repeat(np.arange(at.size), sizes)
    start = np.repeat(ptr[at] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return start + np.arange(owner.size), owner


def _rows(
    source: RowSource, block: IntArray, cell: IntArray, low: IntArray, free: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return keys and residual counts of rows with free cells, and entries (row, var, coef)."""
    n_rows = source.family.size
    position, owner = _expand(source.cell_ptr, cell)
    base = block if source.own else source.group[block]
    key = base[owner] * n_rows + source.cell_row[position]
    coef = source.cell_coef[position]
    open_entry = free[owner]
    keys, row = np.unique(key[open_entry], return_inverse=True)
    group = keys // n_rows
    if source.own:
        group = source.group[group]
    counts = entries(source.counts, group, keys % n_rows)
    # What the settled cells of these rows hold is taken off.
    at = np.searchsorted(keys, key[~open_entry])
    at = np.minimum(at, max(keys.size - 1, 0))
    held = coef[~open_entry] * low[owner[~open_entry]]
    inside = keys[at] == key[~open_entry] if keys.size else np.zeros(0, bool)
    settled = np.zeros(keys.size, np.int64)
    np.add.at(settled, at[inside], held[inside])
    published = counts != HIDDEN
    keep = published[row]
    new = np.cumsum(published) - 1
    var = (np.cumsum(free) - 1)[owner[open_entry]]
    return (
        keys[published],
        (counts - settled)[published],
        new[row[keep]],
        var[keep],
        coef[open_entry][keep],
    )


def build_program(
    sources: Sequence[RowSource], block: IntArray, cell: IntArray, low: IntArray, high: IntArray
) -> Program:
    """Return the program of the cells whose bounds are apart.

    Parameters
    ----------
    sources : sequence of RowSource
        Where rows come from.
    block, cell : ndarray of int64
        Block and cell of everything that is known to be possible.
    low, high : ndarray of int64
        Bounds; settled cells are taken off the counts.

    Returns
    -------
    Program
        Variables and rows sorted by component.
    """
    free = low < high
    parts = [_rows(source, block, cell, low, free) for source in sources]
    sizes = [part[0].size for part in parts]
    offset = np.concatenate([[0], np.cumsum(sizes)])
    entry_row = np.concatenate([p[2] + offset[at] for at, p in enumerate(parts)])
    entry_var = np.concatenate([p[3] for p in parts])
    coef = np.concatenate([p[4] for p in parts])
    count = np.concatenate([p[1] for p in parts])
    source = np.repeat(np.arange(len(sources)), sizes)
    row_id = np.concatenate(
        [p[0] % s.family.size for p, s in zip(parts, sources, strict=True)]
    ).astype(np.int64)
    group = np.concatenate([p[0] // s.family.size for p, s in zip(parts, sources, strict=True)])
    shift = np.concatenate([[0], np.cumsum([int(s.family.max()) + 1 for s in sources])])
    family = np.concatenate(
        [s.family[p[0] % s.family.size] + shift[at]
         for at, (p, s) in enumerate(zip(parts, sources, strict=True))]
    )  # fmt: skip
    equal = np.array([s.equal for s in sources])[source]
    n_vars, n_rows = int(free.sum()), int(offset[-1])
    label = _components(entry_row, entry_var, n_rows, n_vars)
    var_order = np.argsort(label[:n_vars], kind="stable")
    row_order = np.argsort(label[n_vars:], kind="stable")
    n_components = int(label.max()) + 1 if label.size else 0
    var_rank, row_rank = np.empty(n_vars, np.int64), np.empty(n_rows, np.int64)
    var_rank[var_order], row_rank[row_order] = np.arange(n_vars), np.arange(n_rows)
    matrix = sp.csr_array(
        (coef, (row_rank[entry_row], var_rank[entry_var])), shape=(n_rows, n_vars)
    )
    columns = sp.csc_array(matrix)
    columns.sort_indices()
    ends = np.arange(n_components + 1)
    arrays = Arrays(
        var_ptr=columns.indptr.astype(np.int64),
        var_row=columns.indices.astype(np.int64),
        var_coef=columns.data.astype(np.int64),
        row_ptr=matrix.indptr.astype(np.int64),
        row_var=matrix.indices.astype(np.int64),
        row_coef=matrix.data.astype(np.int64),
        row_low=np.where(equal, count, 0)[row_order],
        row_high=count[row_order],
        family=family[row_order].astype(np.int64),
        first_var=np.searchsorted(label[:n_vars][var_order], ends).astype(np.int64),
        first_row=np.searchsorted(label[n_vars:][row_order], ends).astype(np.int64),
    )
    at = np.flatnonzero(free)[var_order]
    return Program(
        arrays, low[at], high[at], at, block[at], cell[at], source[row_order],
        group[row_order], row_id[row_order],
    )  # fmt: skip


def _components(row: IntArray, var: IntArray, n_rows: int, n_vars: int) -> IntArray:
    """Return the component of every variable and then of every row, in order of first variable."""
    size = n_vars + n_rows
    graph = sp.coo_array((np.ones(row.size, np.int8), (var, row + n_vars)), shape=(size, size))
    count, label = connected_components(graph.tocsr(), directed=False)
    first = np.full(count, size)
    np.minimum.at(first, label, np.arange(size))
    return np.argsort(np.argsort(first, kind="stable"))[label].astype(np.int64)

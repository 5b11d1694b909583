"""Models in components, which have no variable in common: each is solved by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from bayesrisk._base.validation import IntArray
from bayesrisk.constraints.model import IntegerModel
from bayesrisk.constraints.rows import expand


@dataclass(frozen=True)
class Components:
    """A model whose variables and rows stand component by component.

    Those of component k stand from ``first_var[k]`` and ``first_row[k]`` on, and after the last one
    rows without a variable.  ``variable`` and ``row`` say which of the given model each one was.
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
        """The component of every variable."""
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

"""Withheld cells of published examples: the intervals that their tables leave.

All cells are counts of 0 or more, so intervals are closed and their ends whole numbers.  The tools
of the examples solve linear programs; in a table of two dimensions with its totals these have whole
ends, so that integer programs find the same.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from bayesrisk.reconstruction import count_bounds
from bayesrisk.release import SuppressedCounts
from bayesrisk.tables import Attribute, Geography, PublishedTables, Schema, Workload

X = -1
#: Handbook on statistical disclosure control (Hundepool et al., the edition of sdctools.github.io),
#: chapter 4, example 3, which takes it from Geurts (1992): the first cell is said to be 3 to 6.
HANDBOOK = [[X, X, 7], [X, X, 3], [3, 3, 6], [9, 7, 16]]
#: Investment by activity and region of Fischetti and Salazar-Gonzalez (2000), whose algorithm
#: tau-Argus has: 22 is sensitive, and three more cells are withheld for it.
INVESTMENT = [[20, 50, 10, 80], [X, 19, X, 49], [X, 32, X, 61], [45, 101, 44, 190]]
#: The first example of the vignette on small counts of the R package GaussSuppression: ages by
#: countries, where 0 is withheld, and three more cells for it.
VIGNETTE = [[5, X, X, 7], [6, X, X, 13], [11, 5, 4, 20]]


def bounds(table):
    """Return the ends of all inner cells of a table with its totals."""
    table = np.array(table)
    rows, columns = table.shape[0] - 1, table.shape[1] - 1
    sides = Attribute("a", rows), Attribute("b", columns)
    schema = Schema("t", sides, Geography("g", ("all",), (1,)))
    work = Workload.of(schema, [(), ("a",), ("b",), ("a", "b")])
    parts = table[-1:, -1], table[:-1, -1], table[-1, :-1], table[:-1, :-1]
    counts = {
        key: sp.csr_array(np.maximum(part, 0).reshape(1, -1))
        for key, part in zip(work.tables, parts, strict=True)
    }
    hidden = {
        key: sp.csr_array((part == X).reshape(1, -1))
        for key, part in zip(work.tables, parts, strict=True)
    }
    laws = dict.fromkeys(work.tables, SuppressedCounts())
    found = count_bounds(PublishedTables(work, {"all": ["1"]}, counts, hidden, laws)).counts
    assert (found["status"] == "proved").all()
    inner = found.tail(rows * columns)
    return np.stack([inner["low"], inner["high"]], axis=-1).astype(int).reshape(rows, columns, 2)


def linear_ends(table):
    """Return the ends of all inner cells by two linear programs each."""
    table = np.array(table)
    inner, cells = table[:-1, :-1], np.arange(table[:-1, :-1].size).reshape(table[:-1, :-1].shape)
    sums = [*zip(cells, table[:-1, -1], strict=True), *zip(cells.T, table[-1, :-1], strict=True)]
    sums += [([at], count) for at, count in enumerate(inner.ravel()) if count != X]
    rows = [np.isin(cells.ravel(), part).astype(float) for part, _ in sums]
    ends = [
        sign * linprog(sign * one, A_eq=rows, b_eq=[count for _, count in sums]).fun
        for one in np.eye(cells.size)
        for sign in (1, -1)
    ]
    return np.reshape(ends, (*cells.shape, 2))


def test_the_printed_interval_is_found():
    found = bounds(HANDBOOK)
    assert found[0, 0].tolist() == [3, 6]
    np.testing.assert_allclose(found, linear_ends(HANDBOOK), atol=1e-9)


@pytest.mark.parametrize(
    ("table", "rows", "columns", "left", "down"),
    [(INVESTMENT, [1, 2], [0, 2], [30, 29], [25, 34]), (VIGNETTE, [0, 1], [1, 2], [2, 7], [5, 4])],
)
def test_four_cells_in_a_rectangle_are_bounded_by_their_sums(table, rows, columns, left, down):
    """Each is at most the sums of its row and column, and at least what the others leave over."""
    found = bounds(table)
    low = np.maximum(np.add.outer(left, down) - sum(left), 0)
    high = np.minimum.outer(left, down)
    assert np.array_equal(found[np.ix_(rows, columns)], np.stack([low, high], axis=-1))
    np.testing.assert_allclose(found, linear_ends(table), atol=1e-9)

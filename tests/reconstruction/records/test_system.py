"""Cells, rows made of published cells, and what couples blocks."""

import numpy as np
import pytest
import scipy.sparse as sp

from bayesrisk.exceptions import ArgumentError
from bayesrisk.reconstruction.records.problem import entries
from bayesrisk.reconstruction.records.search import row_cells
from bayesrisk.reconstruction.records.system import (
    cell_space,
    coarse_coupling,
    coupling_family,
    person_families,
    raw_system,
    reduced_system,
    spanned,
)
from bayesrisk.tables import Attribute, Geography, Schema, Table, Workload
from bayesrisk.tables.cells import Queries

BLOCK = Workload.named("sf1-block")
OWN = list(BLOCK.at("block").values())
TRACT = list(Workload.named("sf1-tract").at("tract").values())
SPACE = cell_space(BLOCK.schema, OWN)
QUERIES = Queries(SPACE, tuple(OWN))
PUBLISHED_LIST = [t for t in OWN if t.name not in ("P8", "P10")]


def test_block_tables_tell_38_age_bins_apart():
    assert SPACE.shape == (2, 38, 63, 2)
    assert SPACE.size == 9576
    bins = SPACE.bins["age"]
    assert bins[:22].tolist() == list(range(22))
    starts = [22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
    assert np.flatnonzero(np.diff(bins)).tolist()[21:] == [a - 1 for a in starts]


def test_queries_are_the_incidence_of_the_workload():
    matrix = QUERIES.matrix
    assert matrix.shape == (775, 9576)
    first = np.unique(SPACE.bins["age"], return_index=True)[1]
    rng = np.random.default_rng(0)
    cells = rng.integers(0, SPACE.size, 300)
    sex, age, race, hisp = np.unravel_index(cells, SPACE.shape)
    codes = {"sex": sex, "age": first[age], "race": race + 1, "hisp": hisp}
    expected = BLOCK.incidence(BLOCK.schema.cell_index(codes), level="block")
    names = [name for t in BLOCK.at("block").values() for name in t.cells]
    assert [cell for _, cell in QUERIES.names] == names
    assert abs(matrix[:, cells] - expected).nnz == 0


def rank(matrix):
    """Return the rank of a tall matrix by its triangular factor, of the same singular values."""
    return np.linalg.matrix_rank(np.linalg.qr(matrix, mode="r"))


def test_families_hold_each_cell_at_most_once_and_span_everything():
    system = reduced_system(QUERIES)
    assert system.reduced
    assert np.bincount(system.family).tolist() == [76, 368, 46, 252]
    assert np.diff(system.columns.ptr).max() == 4
    assert np.all(system.columns.coef == 1)
    matrix = QUERIES.matrix
    rows = sp.csr_array(system.derivation @ matrix)
    # The rows have the rank of the published cells: nothing is lost.
    rng = np.random.default_rng(1)
    some = rng.normal(size=(9576, 700))
    assert rank(matrix @ some) == 678
    assert rank(rows @ some) == 678
    assert rank(np.vstack([rows @ some, matrix @ some])) == 678


def test_the_cover_holds_every_cell_once():
    system = reduced_system(QUERIES)
    assert np.array_equal(np.sort(system.cover_cell), np.arange(9576))
    assert system.cover_ptr[-1] == system.cover_ptr[-2]
    raw = raw_system(QUERIES)
    assert np.array_equal(np.sort(raw.cover_cell), np.arange(9576))


def test_rows_say_what_they_are_made_of():
    system = reduced_system(QUERIES)
    texts = [row_cells(system, row) for row in range(system.n_rows)]
    assert "P0140003" in texts
    assert "+P012A003 -P012I003" in texts
    assert len(set(texts)) == len(texts)
    assert all(texts)


@pytest.mark.parametrize("missing", [("P8", "P10"), ("P12A",)])
def test_missing_tables_leave_the_rank(missing):
    tables = [t for t in OWN if t.name not in missing]
    published = Queries(cell_space(BLOCK.schema, tables), tuple(tables))
    system = reduced_system(published)
    matrix = published.matrix
    some = np.random.default_rng(2).normal(size=(matrix.shape[1], 700))
    both = np.vstack([(system.derivation @ matrix) @ some, matrix @ some])
    whole = rank(matrix @ some)
    assert rank(both) == whole
    assert rank(both[: system.n_rows]) == whole


def test_spanned_sees_what_is_not():
    families = person_families(QUERIES)
    matrix = QUERIES.matrix
    one = sp.csr_array(([1], ([0], [5])), shape=(1, 9576))
    heavy = sp.csr_array(matrix[[0]] * 2)
    assert spanned(matrix[[0]], families).tolist() == [True]
    assert spanned(one, families).tolist() == [False]
    assert spanned(heavy, families).tolist() == [False]


def test_another_schema_keeps_its_published_problem():
    about = Schema("s", (Attribute("a", 3), Attribute("b", 2)), Geography("g", ("block",), (1,)))
    table = Table("T", ("x", "y"), {"a": np.array([[1, 1, 0], [0, 2, 1]])})
    space = cell_space(about, [table])
    assert space.shape == (3, 1)
    system = reduced_system(Queries(space, (table,)))
    assert not system.reduced
    assert system.columns.coef.tolist() == [1, 1, 2, 1]
    # Rows overlap: one more row without a count lists all cells.
    assert system.cover_ptr[-1] - system.cover_ptr[-2] == 3
    assert row_cells(system, 2) == "(no published cell)"
    rows = system.row_counts(sp.csr_array([[1, 0]]))
    assert rows.shape == (1, 3)


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr("bayesrisk.reconstruction.records.system.MAX_CELLS", 100)
    with pytest.raises(ArgumentError, match="at most 100 cells"):
        cell_space(BLOCK.schema, OWN)


def test_too_many_cells_are_answered_with_tables_to_leave_out():
    tables = Workload.named("household-dhc").tables.values()
    schema = Workload.named("household-dhc").schema
    with pytest.raises(ArgumentError, match="got 57507840: without P19, P20, H3, H5 it is 184320"):
        cell_space(schema, list(tables))
    few = [table for table in tables if table.name not in ("P19", "P20", "H3", "H5")]
    assert cell_space(schema, few).size == 184320


def test_entries_of_a_sparse_matrix():
    matrix = sp.csr_array([[0, 3, 0], [1, 0, 2]])
    assert entries(matrix, np.array([0, 1, 1]), np.array([1, 1, 2])).tolist() == [3, 0, 2]
    empty = sp.csr_array((2, 3), dtype=np.int64)
    assert entries(empty, np.array([1]), np.array([1])).tolist() == [0]


def test_tract_tables_couple_blocks_by_1064_rows():
    coupling = coarse_coupling(SPACE, OWN, TRACT)
    assert coupling is not None
    assert coupling.rows.shape == (2 * 38 * 14, 9576)
    # Every cell of a block lies in exactly one of them.
    assert np.array_equal(np.sort(coupling.rows.indices), np.arange(9576))
    assert coupling.detail is not None
    assert coupling.detail.shape[0] == 2 * 103 * 14


def test_tract_tables_without_one_do_not_settle_ages():
    tables = [t for t in TRACT if t.name != "PCT12I"]
    assert coarse_coupling(SPACE, OWN, tables) is None
    assert coupling_family(Queries(cell_space(BLOCK.schema, tables), tuple(tables))) is None

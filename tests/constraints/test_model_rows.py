"""Rows that are equal, against a comparison of every two."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from bayesrisk.constraints.model import by_columns, equal_rows, largest_alone
from bayesrisk.tables.likelihoods import UNBOUNDED


@settings(max_examples=100)
@given(st.data(), st.sampled_from([np.int64, np.float64, np.int8, np.bool_]))
def test_equal_rows_have_the_number_of_the_first(data, dtype):
    shape = data.draw(st.integers(0, 8)), data.draw(st.integers(1, 3))
    values = arrays.arrays(np.int64, shape, elements=st.integers(-1, 1))
    matrix = data.draw(values).astype(dtype)
    key = data.draw(arrays.arrays(np.int64, shape[0], elements=st.integers(0, 1)))
    for keys in ((), (key,)):
        rows = [(*row, *(k[i] for k in keys)) for i, row in enumerate(matrix.tolist())]
        different = list(dict.fromkeys(rows))
        label, first = equal_rows(sp.csr_array(matrix), *keys)
        assert label.tolist() == [different.index(row) for row in rows]
        assert first.tolist() == [rows.index(row) for row in different]


def test_sums_that_meet_by_chance_do_not_make_rows_equal(monkeypatch):
    class Careless:
        def __init__(self, seed):
            self.seed = seed

        def integers(self, most, *, size, dtype):
            return np.arange(size, dtype=dtype) * dtype(self.seed)  # at first all are 0

    monkeypatch.setattr(np.random, "default_rng", Careless)
    matrix = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    assert equal_rows(sp.csr_array(matrix))[0].tolist() == [0, 1, 0]


def test_columns_list_the_rows_of_each_unknown_in_order():
    matrix = np.array([[2, 0, 1], [0, 0, 3]])
    columns = by_columns(sp.coo_array(matrix))
    assert [part.tolist() for part in columns] == [[0, 1, 1, 3], [0, 0, 1], [2, 1, 3]]


@settings(max_examples=100)
@given(st.data())
def test_the_largest_number_by_each_row_alone(data):
    shape = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    matrix = data.draw(arrays.arrays(np.int64, shape, elements=st.integers(0, 3)))
    low = data.draw(arrays.arrays(np.int64, shape[0], elements=st.integers(-2, 7)))
    high = low + data.draw(arrays.arrays(np.int64, shape[0], elements=st.integers(0, 3)))
    high[data.draw(arrays.arrays(np.bool_, shape[0]))] = UNBOUNDED
    most, need = largest_alone(by_columns(sp.csr_array(matrix)), low, high)
    for j, column in enumerate(matrix.T):
        own = [(a, x, y) for a, x, y in zip(column, low, high, strict=True) if a]
        fitting = [x for x in range(20) if all(a * x <= max(y, 0) for a, _, y in own)]
        assert most[j] == (max(fitting) if any(y < UNBOUNDED for *_, y in own) else UNBOUNDED)
        assert need[j] == next(n for n in range(20) if all(a * n >= x for a, x, _ in own))

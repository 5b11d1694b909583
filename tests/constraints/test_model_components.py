"""Components of random models: none shares a variable with another, and together they are all."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from bayesrisk.constraints.model import IntegerModel, components


def random_model(rng):
    """Return a model of few entries a row, with rows and variables without any."""
    n_rows, n_vars = rng.integers(0, 7), rng.integers(1, 9)
    matrix = rng.integers(-2, 3, (n_rows, n_vars)) * (rng.random((n_rows, n_vars)) < 0.25)
    ends = np.sort(rng.integers(-9, 9, (2, n_rows)), axis=0)
    bounds = np.sort(rng.integers(0, 9, (2, n_vars)), axis=0)
    return IntegerModel(*bounds, sp.csr_array(matrix), *ends), matrix


@pytest.mark.parametrize("seed", range(40))
def test_components_are_the_classes_of_variables_that_rows_join(seed):
    rng = np.random.default_rng(seed)
    model, matrix = random_model(rng)
    found, n = components(model), matrix.shape[1]
    # Two variables are of one component if a chain of rows leads from one to the other.
    near = (matrix != 0).T.astype(int) @ (matrix != 0).astype(int) + np.eye(n, dtype=int)
    joined = np.linalg.matrix_power(near.astype(float), n) > 0
    owner = np.empty(n, int)
    owner[found.variable] = found.owner
    assert np.array_equal(joined, owner[:, None] == owner)
    # In the order of their first variables, and what is inside in the order that it was given in.
    firsts = [np.flatnonzero(owner == k)[0] for k in range(found.size)]
    assert firsts == sorted(firsts)
    assert sorted(found.variable.tolist()) == list(range(n))
    assert sorted(found.row.tolist()) == list(range(len(matrix)))
    for begin, end in itertools.pairwise(found.first_var):
        assert (np.diff(found.variable[begin:end]) > 0).all()
    chosen = np.flatnonzero(rng.random(found.size) < 0.6).tolist()
    variables = found.variable[found.variables(chosen)]
    rows = np.concatenate(
        [found.row[:0], *(found.row[found.first_row[k] : found.first_row[k + 1]] for k in chosen)]
    )
    for k in chosen:
        inside = (matrix[:, owner == k] != 0).any(axis=1)
        assert set(rows.tolist()) >= set(np.flatnonzero(inside).tolist())
    part = found.part(chosen)
    assert np.array_equal(part.rows.toarray(), matrix[rows][:, variables])
    for name, index in (("low", variables), ("high", variables), ("row_low", rows),
                        ("row_high", rows)):  # fmt: skip
        assert np.array_equal(getattr(part, name), getattr(model, name)[index])
    assert np.array_equal(found.model.rows.toarray(), matrix[found.row][:, found.variable])

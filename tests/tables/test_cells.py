"""Codes that tables tell apart, against a comparison of every two codes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from bayesrisk.tables import Attribute, Geography, Schema, Table
from bayesrisk.tables.cells import (
    CellSpace,
    coarsest_cells,
    code_kinds,
    crossed_weights,
    joint_kinds,
)

PLACE = Geography("town", ("town",), (1,))
SCHEMA = Schema("toy", (Attribute("a", 3), Attribute("b", 4, first=2), Attribute("c", 2)), PLACE)


@st.composite
def some_tables(draw):
    tables = []
    for number in range(draw(st.integers(0, 3))):
        cells = tuple(f"t{number}c{i}" for i in range(draw(st.integers(1, 3))))
        used = draw(st.sets(st.sampled_from(SCHEMA.names)))
        factors = {
            name: draw(arrays.arrays(np.int64, (len(cells), size), elements=st.integers(0, 2)))
            for name, size in zip(SCHEMA.names, SCHEMA.shape, strict=True)
            if name in used
        }
        tables.append(Table(f"t{number}", cells, factors))
    return tables


def counted(tables):
    """Return the weight of every cell of the schema in all cells of the tables, one by one."""
    rows = []
    for cell in itertools.product(*map(range, SCHEMA.shape)):
        at = dict(zip(SCHEMA.names, cell, strict=True))
        rows.append([
            int(np.prod([w[i, at[n]] for n, w in table.factors.items()]))
            for table in tables
            for i in range(len(table.cells))
        ])  # fmt: skip
    return np.array(rows, np.int64).reshape(SCHEMA.size, -1)


def alike(tables, name, one, other):
    return all(
        (t.factors[name][:, one] == t.factors[name][:, other]).all()
        for t in tables
        if name in t.factors
    )


@settings(max_examples=40)
@given(some_tables(), some_tables())
def test_codes_are_of_one_kind_where_every_table_weighs_them_alike(tables, more):
    space = coarsest_cells(SCHEMA, tables)
    finer = space.refined(more)
    for attribute in SCHEMA.attributes:
        name, codes = attribute.name, range(attribute.size)
        kinds = code_kinds(tables, name, attribute.size)
        used = [t.factors[name] for t in tables if name in t.factors]
        weights = [tuple(int(w) for factor in used for w in factor[:, c]) for c in codes]
        assert [sorted(set(weights)).index(w) for w in weights] == kinds.tolist()
        for one, other in itertools.combinations(codes, 2):
            assert (space.bins[name][one] == space.bins[name][other]) == alike(
                tables, name, one, other
            )
            assert (finer.bins[name][one] == finer.bins[name][other]) == alike(
                [*tables, *more], name, one, other
            )
        seen = list(dict.fromkeys(space.bins[name].tolist()))
        assert seen == list(range(len(seen)))  # in the order of their first codes
    assert finer.refined(more) is finer


@settings(max_examples=40)
@given(some_tables(), st.integers(0, 2**31))
def test_cells_have_the_weights_and_sums_of_their_codes(tables, seed):
    space, weight = coarsest_cells(SCHEMA, tables), counted(tables)
    cells = np.arange(SCHEMA.size)
    label, example = space.labels(cells), space.representatives()
    assert label.max() == space.size - 1
    assert space.labels(example).tolist() == list(range(space.size))
    assert np.array_equal(space.representatives(label[::2]), example[label[::2]])
    assert np.array_equal(weight, weight[example][label])
    crossed = [crossed_weights(t, space.first) for t in tables]
    by_cell = np.concatenate([np.zeros((0, space.size), int), *crossed])
    assert np.array_equal(by_cell[:, label].T, weight)
    values = np.random.default_rng(seed).random(SCHEMA.size)
    expected = np.bincount(label, values, space.size)
    np.testing.assert_allclose(space.mass(values), expected, rtol=1e-14)
    shares = np.bincount(label, minlength=space.size) / SCHEMA.size
    np.testing.assert_allclose(space.mass(None), shares, rtol=1e-14)


def test_a_schema_without_attributes_has_one_cell():
    space = CellSpace(Schema("empty", (), PLACE), {})
    assert (space.size, space.shape, space.representatives().tolist()) == (1, (), [0])
    assert space.labels(np.zeros(2, np.int64)).tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(50))
def test_joint_kinds_are_those_of_different_rows_in_their_order(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(-2, rng.integers(1, 5), (rng.integers(1, 5), rng.integers(1, 12)))
    expected = np.unique(labels, axis=1, return_inverse=True)[1].reshape(-1)
    np.testing.assert_array_equal(joint_kinds([*labels]), expected)

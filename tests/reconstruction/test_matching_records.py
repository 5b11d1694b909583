"""Matching against the printed double loop; the choice among equals; refusals."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from oracles import linkage as oracle

from bayesrisk.exceptions import ArgumentError, ArgumentTypeError, ShapeError
from bayesrisk.reconstruction import matching as kernels
from bayesrisk.reconstruction.matching import match_records
from bayesrisk.reconstruction.persons import age_bin
from bayesrisk.tables.schema import AGE_BIN_STARTS

RECORD = st.fixed_dictionaries(
    {"block": st.sampled_from(["a", "b"]), "age": st.integers(0, 4), "sex": st.integers(0, 1)}
)
FILES = st.lists(RECORD, max_size=12)
KEYS = [("block", "sex", "age"), ("block", "age"), ("block",)]


def columns(records):
    return pd.DataFrame(records, columns=["block", "age", "sex"]).astype(
        {"block": "str", "age": "int16", "sex": "int8"}
    )


@given(FILES, FILES, st.integers(0, 2**32))
def test_as_many_pairs_as_the_printed_loop(left, right, seed):
    found = match_records(columns(left), columns(right), keys=KEYS, rng=seed)
    # The first pass is forced; later ones depend on what it took among equals of the coarser key.
    assert found.counts()[0] == oracle.match_passes(left, right, KEYS[:1])[0]
    assert len(set(found.left)) == len(found.left)
    assert len(set(found.right)) == len(found.right)
    for i, j, number in zip(found.left, found.right, found.match_pass, strict=True):
        assert all(left[i][name] == right[j][name] for name in KEYS[number])


@given(FILES, FILES, st.integers(0, 2**32))
def test_nested_passes_count_like_the_printed_loop(left, right, seed):
    # Each key is coarser than the one before: what is left over has counts that are forced.
    keys = [("block", "sex", "age"), ("block", "sex")]
    found = match_records(columns(left), columns(right), keys=keys, rng=seed)
    assert found.counts().tolist() == oracle.match_passes(left, right, keys)


def test_the_choice_among_equals_is_uniform():
    left, right = {"key": [1, 1, 1]}, {"key": [1]}
    rng = np.random.default_rng(5)
    n = 6000
    taken = [int(match_records(left, right, keys=[("key",)], rng=rng).left[0]) for _ in range(n)]
    counts = np.bincount(taken, minlength=3)
    # Chi-square with 2 degrees of freedom exceeds 18.4 with probability 1e-4.
    assert ((counts - n / 3) ** 2 / (n / 3)).sum() < 18.4


def test_the_same_seed_gives_the_same_pairs():
    both = {"key": np.arange(1000) // 7}
    one, two = (match_records(both, both, keys=[("key",)], rng=11) for _ in range(2))
    assert np.array_equal(one.left, two.left)
    assert np.array_equal(one.right, two.right)


def test_numbers_far_apart_are_told_apart():
    huge = [0, 2**61, 2**61 + 1]
    left = {"a": np.array(huge), "b": np.array(huge)}
    right = {"a": np.array(huge[::-1]), "b": np.array(huge[::-1])}
    found = match_records(left, right, keys=[("a", "b")], rng=0)
    assert sorted(zip(found.left.tolist(), found.right.tolist(), strict=True)) == [
        (0, 2),
        (1, 1),
        (2, 0),
    ]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "Int32", "int16[pyarrow]"])
def test_every_integer_type_matches(dtype):
    left = pd.DataFrame({"x": pd.array([1, 2, 3], dtype=dtype)})
    found = match_records(left, {"x": [3, 1]}, keys=[("x",)], rng=0)
    assert dict(zip(found.left.tolist(), found.right.tolist(), strict=True)) == {2: 0, 0: 1}


def test_empty_files_match_nothing():
    empty = pd.DataFrame({"x": np.zeros(0, np.int64)})
    for left, right in ((empty, {"x": [1]}), ({"x": [1]}, empty), (empty, empty)):
        found = match_records(left, right, keys=[("x",), ("x",)], rng=0)
        assert found.counts().tolist() == [0, 0]


@pytest.mark.parametrize(
    ("left", "right", "keys", "error", "words"),
    [
        ({"x": [1]}, {"y": [1]}, [("x",)], ArgumentError, "right must have the columns"),
        ({"x": [1]}, {"x": [1]}, [], ArgumentError, "keys"),
        ({"x": [1]}, {"x": [1]}, [()], ArgumentError, "keys"),
        ({"x": [1], "y": [1, 2]}, {"x": [1], "y": [1]}, [("x", "y")], ShapeError, "left"),
        ({"x": [1.5]}, {"x": [1.5]}, [("x",)], ArgumentTypeError, "whole numbers"),
        ({"x": ["1"]}, {"x": [1]}, [("x",)], ArgumentTypeError, "text in both"),
        ({"x": ["1", None]}, {"x": ["1"]}, [("x",)], ArgumentError, "missing"),
        (pd.DataFrame({"x": pd.array([1, None])}), {"x": [1]}, [("x",)], ArgumentError, "missing"),
    ],
)
def test_refusals(left, right, keys, error, words):
    with pytest.raises(error, match=words):
        match_records(left, right, keys=keys, rng=0)


@given(st.lists(st.integers(0, 2**30), max_size=40), st.booleans())
def test_the_sort_is_stable(values, compiled):
    keys = np.array(values, dtype=np.int64)
    order = np.arange(keys.size)
    sort = kernels._sort_keys if compiled else kernels._sort_keys.py_func
    sort(keys, order, np.empty_like(keys), np.empty_like(order), 31)
    expected = np.argsort(np.array(values, dtype=np.int64), kind="stable")
    assert np.array_equal(order, expected)
    assert np.array_equal(keys, np.array(values, dtype=np.int64)[expected])


def test_python_kernels_pair_like_compiled_ones():
    rng = np.random.default_rng(2)
    left, right = np.sort(rng.integers(0, 9, 30)), np.sort(rng.integers(0, 9, 20))
    draws = rng.random(30), rng.random(20)
    results = []
    for match in (kernels._match_sorted, kernels._match_sorted.py_func):
        out = np.full((2, 20), -1)
        n = match(left, np.arange(30), draws[0], right, np.arange(20), draws[1], out[0], out[1])
        results.append((n, out[:, :n].tolist()))
    assert results[0] == results[1]


def test_age_bins_are_those_of_the_published_table():
    assert [oracle.age_bin(a) for a in range(111)] == age_bin(np.arange(111)).tolist()
    assert len(AGE_BIN_STARTS) == 38
    with pytest.raises(ArgumentError, match="age must be <= 110, got 111"):
        age_bin([111])

"""Intervals narrowed by rows, against plain arithmetic with infinities and all solutions."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st

from bayesrisk.constraints import propagation
from bayesrisk.constraints.model import ENDLESS, Components, IntegerModel
from bayesrisk.constraints.propagation import program_arrays, propagate_components, search_work

SWEEPS = 20


def swept(matrix, row_ends, ends):
    """Return narrowed ends, None where nothing is left, by rounds of all rows at once.

    Whole numbers of Python and infinities; a third value says whether the rounds came to an end.
    """
    low, high = ([*map(float_or_whole, side)] for side in ends)
    for _ in range(SWEEPS):
        new_low, new_high = low[:], high[:]
        for row, least, most in zip(matrix.tolist(), *row_ends, strict=True):
            terms = [
                sorted((a * x, a * y)) if a else (0, 0)
                for a, x, y in zip(row, low, high, strict=True)
            ]
            for j, a in enumerate(row):
                if not a:
                    continue
                rest = [term for i, term in enumerate(terms) if i != j]
                top, bottom = most - sum(t[0] for t in rest), least - sum(t[1] for t in rest)
                first, last = (bottom, top) if a > 0 else (-top, -bottom)
                if not math.isinf(first):
                    new_low[j] = max(new_low[j], -(-int(first) // abs(a)))
                if not math.isinf(last):
                    new_high[j] = min(new_high[j], int(last) // abs(a))
        if any(x > y for x, y in zip(new_low, new_high, strict=True)):
            return None, True
        if (new_low, new_high) == (low, high):
            break
        low, high = new_low, new_high
    else:
        return (low, high), False
    sums = [
        (sum(min(a * x, a * y) for a, x, y in zip(row, low, high, strict=True) if a),
         sum(max(a * x, a * y) for a, x, y in zip(row, low, high, strict=True) if a))
        for row in matrix.tolist()
    ]  # fmt: skip
    wrong = any(s[0] > m or s[1] < least for s, least, m in zip(sums, *row_ends, strict=True))
    return (None if wrong else (low, high)), True


def float_or_whole(value):
    return math.inf if value >= ENDLESS else int(value)


@st.composite
def systems(draw, *, least=0, most=3, endless=False):
    rows, size = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    numbers = st.lists(st.integers(least, most), min_size=size, max_size=size)
    matrix = np.array([draw(numbers) for _ in range(rows)], np.int64)
    point = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), np.int64)
    slack = draw(st.lists(st.integers(-1, 2), min_size=2 * rows, max_size=2 * rows))
    row_low = matrix @ point - np.array(slack[:rows])
    row_high = np.maximum(matrix @ point + np.array(slack[rows:]), row_low)
    high = np.array(draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)), np.int64)
    if endless:
        open_ends = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        high = np.where(open_ends, ENDLESS, high)
        closed = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
        row_high = np.where(closed, row_high, ENDLESS)
    return matrix, (row_low, row_high), (np.zeros(size, np.int64), high)


def component(matrix, row_ends, ends):
    """Return a program of one component, and what a search of it begins with."""
    model, (rows, size) = IntegerModel(*ends, sp.csr_array(matrix), *row_ends), matrix.shape
    whole = np.array([0, size]), np.array([0, rows]), np.arange(size), np.arange(rows)
    arrays = program_arrays(Components(model, *whole), np.arange(rows))
    return arrays, search_work(arrays, *ends)


@settings(max_examples=200)
@given(systems())
def test_all_ways_come_to_what_plain_arithmetic_does(system):
    matrix, row_ends, ends = system
    expected, ended = swept(matrix, row_ends, ends)
    low, high = ends[0].copy(), ends[1].copy()
    found = propagation.narrow_dense(matrix, *row_ends, low, high)
    sparse = propagation.narrowed(IntegerModel(*ends, sp.csr_array(matrix), *row_ends))
    arrays, work = component(matrix, row_ends, ends)
    wrong = np.zeros(1, np.int64)
    propagate_components(arrays, work, wrong)
    assert (sparse is not None) == found == (wrong[0] < 0)
    inside = [range(int(x), int(y) + 1) for x, y in zip(*ends, strict=True)]
    points = np.array(list(itertools.product(*inside))).reshape(-1, matrix.shape[1])
    sums = points @ matrix.T
    fitting = points[np.all((sums >= row_ends[0]) & (sums <= row_ends[1]), axis=1)]
    if not found:
        assert not len(fitting)
        assert not ended or expected is None
        return
    assert np.all((low <= fitting) & (fitting <= high))
    for other in ((sparse.low, sparse.high), (work.low, work.high)):
        assert np.array_equal(other, (low, high))
    assert np.array_equal(sparse.row_low, np.maximum(row_ends[0], matrix @ low))
    assert np.array_equal(work.rows.most, matrix @ high)
    if ended:
        assert expected == (low.tolist(), high.tolist())


@settings(max_examples=200)
@given(systems(least=-1, most=1, endless=True))
def test_differences_and_numbers_without_an_end(system):
    matrix, row_ends, ends = system
    expected, ended = swept(matrix, [[*map(float_or_whole, side)] for side in row_ends], ends)
    found = propagation.narrowed(IntegerModel(*ends, sp.csr_array(matrix), *row_ends), SWEEPS)
    if not ended:
        return
    assert (found is None) == (expected is None)
    if found is not None:
        assert expected == (found.low.tolist(), [*map(float_or_whole, found.high)])
        sums = [
            sum(max(a * x, a * y) for a, x, y in zip(row, *expected, strict=True) if a)
            for row in matrix.tolist()
        ]
        most = [min(float_or_whole(y), top) for y, top in zip(row_ends[1], sums, strict=True)]
        assert [*map(float_or_whole, found.row_high)] == most


@pytest.mark.parametrize("weight", [1, 2, 3])
def test_ends_are_rounded_inwards(weight):
    matrix = np.full((1, 1), weight)
    low, high = np.zeros(1, np.int64), np.full(1, 9)
    assert propagation.narrow_dense(matrix, np.array([4]), np.array([7]), low, high)
    assert (low[0], high[0]) == (math.ceil(4 / weight), 7 // weight)

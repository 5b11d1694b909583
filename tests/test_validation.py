"""The checks that every public function shares, where no public function reaches them alone."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrisk import ArgumentError
from bayesrisk import _validation as check
from bayesrisk.exceptions import ArgumentTypeError, ShapeError


@pytest.mark.parametrize(
    "value",
    [1, 1.0, Fraction(1), Decimal(1), np.int8(1), np.float32(1), np.uint64(1), True + 0],
)
def test_kinds_of_numbers(value):
    assert check.real_array(value, "x") == 1.0
    assert check.real_array([value, Fraction(1, 2)], "x").tolist() == [1.0, 0.5]
    assert check.count_array(value, "x").dtype == np.int64
    assert check.scalar(value, "x") == check.integer(value, "x") == 1


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("1", ArgumentTypeError),
        (None, ArgumentTypeError),
        (True, ArgumentTypeError),
        ({1, 2}, ArgumentTypeError),
        (1j, ArgumentTypeError),
        ([True, False], ArgumentTypeError),
        ([None], ArgumentTypeError),
        ([Fraction(1), True], ArgumentTypeError),
        (np.array(["2020-01-01"], dtype="M8[D]"), ArgumentTypeError),
        (pd.Series([1, None], dtype="Int64"), ArgumentError),
        ([], ShapeError),
        ([[]], ShapeError),
        ([[1], [1, 2]], ShapeError),
        (math.nan, ArgumentError),
        ([1.0, math.inf], ArgumentError),
        (Decimal("NaN"), ArgumentError),
        (10**400, ArgumentError),
        (Fraction(10**400), ArgumentError),
        ([10**30, 1], ArgumentError),
        ([10**30], ArgumentError),
    ],
    ids=repr,
)
def test_what_is_not_a_finite_number(value, error):
    for function in (check.real_array, check.whole_array, check.count_array):
        with pytest.raises(error, match="argument must"):
            function(value, "argument")


@pytest.mark.parametrize("function", [check.real_array, check.whole_array, check.points])
def test_a_signalling_nan_is_refused_like_any_other(function):
    with pytest.raises(ArgumentError, match="argument must"):
        function(Decimal("sNaN"), "argument")


@pytest.mark.parametrize(
    ("bounds", "inside", "outside"),
    [
        ("[]", [0, 1], [-0.1, 1.1]),
        ("()", [0.5], [0, 1]),
        ("(]", [1], [0]),
        ("[)", [0], [1]),
    ],
)
def test_bounds(bounds, inside, outside):
    for value in inside:
        assert check.real_array(value, "x", lower=0, upper=1, bounds=bounds) == value
    for value in outside:
        with pytest.raises(ArgumentError, match=rf"x must be (>=|>|<=|<) [01], got {float(value)}"):
            check.real_array(value, "x", lower=0, upper=1, bounds=bounds)


def test_the_culprit_is_named():
    with pytest.raises(ArgumentError, match=r"x must be >= 0, got -3\.0 at index 1$"):
        check.real_array([1, -3], "x", lower=0)
    with pytest.raises(
        ArgumentError, match=r"x must be a whole number, got 2\.5 at index \(1, 0\)$"
    ):
        check.count_array([[1, 2], [2.5, 3]], "x")
    with pytest.raises(ArgumentError, match=r"x must be finite, got nan at index 2$"):
        check.count_array([1, 2, math.nan], "x")


@given(st.integers(-(2**52), 2**52), st.integers(0, 20_000))
def test_whole_numbers_of_any_length(value, length):
    array = np.zeros(length + 1)
    array[-1] = value
    assert check.whole_array(array, "x") is array
    assert check.count_array(array, "x")[-1] == value
    array[length // 2] = 0.5
    with pytest.raises(ArgumentError, match=r"x must be a whole number, got 0\.5"):
        check.whole_array(array, "x")


@pytest.mark.parametrize("value", [2**52 + 1, -(2**52) - 1, float(2**53), np.uint64(2**63), 2**64])
def test_counts_beyond_the_doubles(value):
    with pytest.raises(ArgumentError, match=r"x must (be|fit)"):
        check.count_array(value, "x")


def test_points_keep_what_a_law_can_evaluate():
    assert check.points([1, 2], "x").dtype == np.int64
    assert np.isnan(check.points([1, math.nan, math.inf], "x")[1])
    assert check.points(np.uint8(3), "x").dtype == np.float64
    for bad in ("1", None, True, [], 1j, [None]):
        with pytest.raises(ArgumentError, match="x must"):
            check.points(bad, "x")


def test_probability_vectors():
    assert check.probability_vector([[0.5, 0.5], [1, 0]], "w").shape == (2, 2)
    many = np.full(10**5, 1e-5)
    assert check.probability_vector(many, "w") is many
    for bad in ([0.5, 0.4], [[0.5, 0.5], [0.5, 0.6]], [-0.5, 1.5], 1.0, [], [math.nan]):
        with pytest.raises(ArgumentError, match="w must"):
            check.probability_vector(bad, "w")


def test_scalars_and_choices():
    for function in (check.scalar, check.integer):
        with pytest.raises(ShapeError, match=r"x must be one number, got shape \(1,\)"):
            function([1], "x")
    assert check.choice("b", "x", ("a", "b")) == "b"
    for bad in ("c", None, 3, ["a"]):
        with pytest.raises(ArgumentError, match="x must be one of a, b, got"):
            check.choice(bad, "x", ("a", "b"))


def test_broadcast_names_the_shapes():
    assert check.broadcast(a=np.ones((3, 1)), b=np.ones(2)) == (3, 2)
    with pytest.raises(ShapeError, match=r"do not broadcast: a \(3,\), b \(2,\)"):
        check.broadcast(a=np.ones(3), b=np.ones(2))


def test_precision_of_a_cell():
    assert check.cell_precision(0.25, None, 1) == 0.25
    assert check.cell_precision(0.5, None, 2) == 0.125
    assert check.cell_precision(None, 4, 1) == 0.125
    assert check.cell_precision(Fraction(1, 4), None, [1, 2]).tolist() == [0.25, 0.0625]
    for arguments in ((1e308, None, 1e-10), (1e-308, None, 1e20), (None, 1e-320, 1)):
        with pytest.raises(ArgumentError, match="must be"):
            check.cell_precision(*arguments)
    with pytest.raises(ShapeError, match="do not broadcast: rho"):
        check.cell_precision([1, 2], None, [1, 2, 3])


def test_frames_of_other_libraries_are_named_with_what_to_do():
    with pytest.raises(ArgumentTypeError, match=r"got pyarrow\.Table; use \.to_pandas\(\)"):
        check.frame(pa.table({"a": [1]}), "frame")
    foreign = type("DataFrame", (), {"__module__": "polars.frame", "to_pandas": lambda self: None})
    with pytest.raises(ArgumentTypeError, match=r"frame must be .*, got polars\.DataFrame; use"):
        check.frame(foreign(), "frame")
    with pytest.raises(ArgumentTypeError, match="frame must be a pandas DataFrame, got int"):
        check.frame(3, "frame")

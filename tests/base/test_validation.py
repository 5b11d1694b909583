"""The checks that every public function shares, where no public function reaches them alone."""

import inspect
import math
import os
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import bayesrisk as br
from bayesrisk import ArgumentError
from bayesrisk._base import validation as check
from bayesrisk.exceptions import ArgumentTypeError, BayesRiskError, DataError, ShapeError


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
        ("x", ArgumentTypeError),
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
        ArgumentError, match=r"x must be a whole number, got 2\.5 at index \(1, 0\): write 2 or 3$"
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


def test_what_is_no_table_is_refused_as_a_frame():
    foreign = type("DataFrame", (), {"__module__": "polars.frame"})
    with pytest.raises(ArgumentTypeError, match=r"frame must be .*, got polars\.DataFrame"):
        check.frame(foreign(), "frame")
    with pytest.raises(ArgumentTypeError, match=r"frame must be a DataFrame of pandas.*got int"):
        check.frame(3, "frame")
    with pytest.raises(ArgumentTypeError, match="got type"):
        check.frame(pa.Table, "frame")
    with pytest.raises(DataError, match="frame: cannot be read from Arrow"):
        check.frame(pa.chunked_array([[1, 2]]), "frame")


@pytest.mark.parametrize(
    ("wrong", "right", "call"),
    [
        ("risk_rato", "risk_ratio", lambda: br.risk_rato),
        ("two_levels", "TwoLevels", lambda: br.two_levels),
        ("blok_risk", "block_risk", lambda: br.risk.blok_risk),
        ("swaping", "swapping", lambda: br.make_mechanism("swaping")),
        ("rates", "rate", lambda: br.make_mechanism("swapping", rates=0.1)),
        ("sf1_persn", "sf1-person", lambda: br.Schema.named("sf1_persn")),
        ("P12a", "P12A", lambda: br.Workload.named("sf1-block").select(tables=["P12a"])),
        ("sex", "Sex", lambda: check.frame(pd.DataFrame({"Sex": [1]}), "frame", ["sex"])),
    ],
)
def test_a_name_that_is_almost_right_is_answered_with_the_right_one(wrong, right, call):
    with pytest.raises((AttributeError, BayesRiskError)) as refused:
        call()
    assert wrong in str(refused.value)
    asked = ("Did you mean", "is it called")  # of a name that was typed, or one in a file
    assert any(f"{words} {right!r}?" in str(refused.value) for words in asked)
    with pytest.raises(AttributeError) as unlike:
        _ = br.zzz
    assert "Did you mean" not in str(unlike.value)


@given(st.integers(0, 10**18 - 1), st.integers(1, 10**18 - 1))
def test_fractions_of_digits_are_numbers(above, below):
    text = f"{above}/{below}"
    assert check.real_array(text, "x") == float(Fraction(above, below))
    assert br.risk_ratio(3, rho="1/10", prior="1/20", known_count=2) == br.risk_ratio(
        3, rho=Fraction(1, 10), prior=Fraction(1, 20), known_count=2
    )


@given(st.integers(-(10**17), 10**17), st.integers(0, 17), st.integers(-99, 99))
def test_decimals_are_the_numbers_that_they_print_as(digits, places, exponent):
    text = f"{digits // 10**places}.{abs(digits) % 10**places:0{max(places, 1)}d}"
    for written in (text, f"{text}e{exponent}"):
        assert check.real_array(written, "x") == float(written)
        assert check.real_array([written, 2.0], "x").tolist() == [float(written), 2.0]
    assert br.risk_ratio(3, rho="0.1", prior="0.05") == br.risk_ratio(3, rho=0.1, prior=0.05)


@pytest.mark.parametrize(
    "text",
    [
        "1/0",
        "0,1",
        "10%",
        ".5",
        "-1/2",
        "1/2/3",
        "1 / 2",
        "\uff11/\uff12",
        "1/",
        "",
        "1e3/2",
        "1e999",
    ],
)
def test_no_other_text_is_a_number(text):
    with pytest.raises(ArgumentTypeError, match="x must be a number"):
        check.real_array(text, "x")


class Place(os.PathLike):
    def __fspath__(self):
        return "here.csv"


def test_paths_of_any_kind_are_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("here.csv", Path("here.csv"), Place()):
        assert check.is_path(path)
        assert check.path(path, "file") == Path("here.csv")
        assert check.paths(path, "file") == [Path("here.csv")]
        assert check.paths([path], "file") == [Path("here.csv")]
    for path in (b"here.csv", 3, None):
        assert not check.is_path(path)
        with pytest.raises(ArgumentTypeError, match=r"file must be a path, as text or a pathlib"):
            check.paths(path, "file")
    Path("here.csv").write_text("sex\n" + "F\nM\n" * 9)
    released = br.release(Place(), protection="none").tables.to_frame()
    assert released.equals(br.release("here.csv", protection="none").tables.to_frame())
    Path("here.csv").write_text("Ward,Count\nA,4\nB,2\nAll,6\n")
    asked = {"counts": "exact", "totals": "complete", "accept": True, "proofs": 0}
    assert repr(br.attack(Place(), **asked)) == repr(br.attack("here.csv", **asked))


def test_places_are_codes_or_names():
    people = pd.DataFrame({"ward": ["Hill", "Hill", "Lake"], "ill": ["no", "yes", "no"]})
    for places in (["Lake", "Hill"], ["1", "2"], pd.Series(["Hill", "Lake"])):
        made = br.release(people, protection="none", place="ward", places=places)
        assert made.tables.geoids["ward"].tolist() == ["1", "2"]
        assert made.tables.workload.schema.geography.codes == {"Hill": "1", "Lake": "2"}


@pytest.mark.parametrize("name", ["seed", "random_state"])
def test_another_name_for_rng_is_answered_with_it(name):
    for function in (
        br.simulate_population,
        br.inference.sample_tree,
        br.mechanism_risk,
        br.risk.reidentify,
    ):
        with pytest.raises(ArgumentTypeError, match=f"must be given rng, a seed, not {name}"):
            function(**{name: 1})
        assert "rng" in inspect.signature(function).parameters


@pytest.mark.parametrize(("text", "written"), [("2", "2"), ("-3", "-3"), ("10", "10")])
def test_whole_numbers_as_text_say_to_leave_out_the_quotes(text, written):
    with pytest.raises(ArgumentTypeError, match=rf"write {written}, without quotes"):
        br.Tree.path([2, 1], [-1], n_siblings=text, rho=[0.1, 0.2], prior=0.5)

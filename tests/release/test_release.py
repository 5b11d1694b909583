"""Specs and releases: complete, exact through JSON, and without anything confidential."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.mechanisms import AGES, SEX, TOTAL, people_workload, population

from bayesrisk import DiscreteGaussian, DiscreteLaplace
from bayesrisk.exceptions import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    OutputError,
    ShapeError,
)
from bayesrisk.mechanisms import make_mechanism
from bayesrisk.release import MechanismSpec, NoiseSpec, Release, rounding_probability
from bayesrisk.tables import exchange as _exchange

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
scales = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)
noises = st.builds(NoiseSpec, st.sampled_from(["discrete-gaussian", "discrete-laplace"]), scales)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | names
    | st.floats(allow_nan=False, width=32).filter(np.isfinite),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
specs = st.builds(
    MechanismSpec,
    names,
    st.dictionaries(names, values, max_size=3),
    st.dictionaries(st.tuples(names, names), noises, max_size=3),
    st.lists(st.tuples(names, names), max_size=3).map(tuple),
)


@given(specs)
def test_specs_survive_json(spec):
    text = json.dumps(spec.to_dict(), allow_nan=False)
    assert MechanismSpec.from_dict(json.loads(text)) == spec


def test_fractions_are_kept_exactly():
    spec = MechanismSpec("mine", {"share": Fraction(165, 4099), "pair": (1, Fraction(1, 3))})
    assert spec.parameters == {"share": "165/4099", "pair": [1, "1/3"]}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("", {}), "mechanism must be a text"),
        (("m", {"x": float("nan")}), r"parameters\['x'\] must be finite"),
        (("m", {"x": object()}), r"parameters\['x'\]"),
        (("m", {"x": b"1"}), r"parameters\['x'\]"),
        (("m", {1: 2}), "text as keys"),
        (("m", [1]), "parameters must be a mapping"),
        (("m", {}, {"block": NoiseSpec("discrete-laplace", 1)}), "noise must name"),
        (("m", {}, {("block", "t"): 5}), "must be a NoiseSpec"),
        (("m", {}, {}, (("block",),)), "invariants must name"),
    ],
)
def test_specs_are_checked(arguments, match):
    with pytest.raises(ArgumentTypeError, match=match):
        MechanismSpec(*arguments)


@pytest.mark.parametrize(("law", "scale"), [("normal", 1), ("discrete-laplace", 0)])
def test_noise_is_checked(law, scale):
    with pytest.raises(ArgumentError, match=r"law|scale"):
        NoiseSpec(law, scale)


def test_laws():
    spec = MechanismSpec(
        "m",
        noise={
            ("block", "a"): NoiseSpec("discrete-gaussian", "5.04"),
            ("block", "b"): NoiseSpec("discrete-laplace", "3/2"),
        },
    )
    x = np.arange(-5, 6)
    assert np.array_equal(spec.law("block", "a").pmf(x), DiscreteGaussian(5.04).pmf(x))
    assert np.array_equal(spec.law("block", "b").pmf(x), DiscreteLaplace(1.5).pmf(x))
    assert spec.law("tract", "a") is None


def test_likelihoods_in_closed_form():
    gauss = MechanismSpec("m", noise={("block", "a"): NoiseSpec("discrete-gaussian", 2)})
    at = {"level": "block", "table": "a"}
    expected = DiscreteGaussian(2).pmf([3, 2])
    assert np.array_equal(gauss.count_likelihood(7, [4, 5], **at), expected)
    assert gauss.count_likelihood(7, 4, level="block", table="b") is None
    assert MechanismSpec("identity").count_likelihood([3, 4], 4, **at).tolist() == [0.0, 1.0]
    kept = MechanismSpec("swapping", invariants=(("block", "a"),))
    assert kept.count_likelihood([3, 4], 4, **at).tolist() == [0.0, 1.0]
    rounded = MechanismSpec("rounding", {"base": 5, "method": "random"})
    assert rounded.count_likelihood([0, 5], 3, **at).tolist() == pytest.approx([0.4, 0.6])
    with pytest.raises(ShapeError, match="released"):
        gauss.count_likelihood([1, 2], [1, 2, 3], **at)


@given(st.integers(1, 12), st.integers(0, 60), st.sampled_from(["nearest", "random"]))
def test_rounding_probabilities(base, count, method):
    released = np.arange(-base, 60 + 2 * base)
    pmf = rounding_probability(released, count, base=base, method=method)
    assert pmf.sum() == pytest.approx(1.0, abs=1e-15)
    assert set(released[pmf > 0] % base) == {0}
    assert np.abs(released[pmf > 0] - count).max() < max(base, 2)
    if method == "random":
        assert pmf @ released == pytest.approx(count, abs=1e-12)
    else:
        best = np.abs(released - count)[released % base == 0].min()
        assert abs(released[pmf > 0][0] - count) == best


@pytest.mark.parametrize(
    ("arguments", "match"),
    [({"base": 0, "method": "random"}, "base"), ({"base": 5, "method": "up"}, "method")],
)
def test_rounding_probability_is_checked(arguments, match):
    with pytest.raises(ArgumentError, match=match):
        rounding_probability(0, 0, **arguments)


@pytest.fixture(scope="module")
def released():
    mechanism = make_mechanism(
        "discrete-gaussian",
        rho="1",
        level_shares={"county": "1/2", "block": "1/2"},
        table_shares={"sex": "2/3", "ages": "1/3"},
        sensitivity="add-remove",
        overlap={"sex": 2},
    )
    workload = people_workload(SEX, AGES, levels=("county", "block"))
    return mechanism.release(population(0), workload=workload, rng=5)


def test_a_release_survives_the_disk(released, tmp_path):
    folder = tmp_path / "out"
    assert released.write(folder) == folder
    assert Release.read(folder) == released
    assert not [p for p in tmp_path.iterdir() if p != folder]


def test_the_folder_holds_no_seed_and_no_truth(released, tmp_path):
    released.write(tmp_path / "out")
    document = json.loads((tmp_path / "out" / "_release.json").read_text())
    assert set(document) == {"format", "version", "simulation", "spec", "diagnostics", "seal"}
    assert "seed" not in json.dumps(document)
    rebuilt = make_mechanism(document["spec"]["mechanism"], **document["spec"]["parameters"])
    assert rebuilt.spec.noise == released.spec.noise


def test_nothing_is_written_over(released, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(OutputError, match="must be new or an empty folder"):
        released.write(tmp_path)
    with pytest.raises(OutputError, match="nothing was changed"):
        released.write(tmp_path / "mine.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failed_write_leaves_nothing(released, tmp_path, monkeypatch):
    def fail(tables, folder):
        raise OSError("disk full")

    monkeypatch.setattr(_exchange, "fill", fail)
    with pytest.raises(OutputError, match="disk full"):
        released.write(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d.pop("spec"), "'spec' is missing"),
        (lambda d: d.pop("simulation"), "'simulation' is missing"),
        (lambda d: d.update(simulation="no"), "simulation must be True or False"),
        (lambda d: d.update(seed=1), "'seed' is unknown"),
        (lambda d: d.update(format=99), "format must be 2"),
        (lambda d: d["spec"].pop("noise"), "'noise' is missing"),
        (lambda d: d["spec"]["noise"][0].update(scale="0"), "scale must be > 0"),
        (lambda d: d["spec"]["noise"].append(d["spec"]["noise"][0]), "there twice"),
        (lambda d: d["spec"]["noise"][0].update(table="none"), "is not released"),
        (lambda d: d.update(diagnostics={"rate": "many"}), "many"),
        (lambda d: d.update(diagnostics=[1]), "_release.json"),
    ],
)
def test_bad_documents_are_refused(released, tmp_path, change, match):
    released.write(tmp_path / "out")
    file = tmp_path / "out" / "_release.json"
    document = json.loads(file.read_text())
    del document["seal"]  # as if written by hand
    change(document)
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match=match):
        Release.read(tmp_path / "out")


def test_a_truncated_document_is_refused(released, tmp_path):
    released.write(tmp_path / "out")
    file = tmp_path / "out" / "_release.json"
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(DataError, match=r"_release\.json"):
        Release.read(tmp_path / "out")


def test_a_release_is_checked(released):
    with pytest.raises(ArgumentTypeError, match="spec"):
        Release("identity", released.tables)
    with pytest.raises(ArgumentTypeError, match="tables"):
        Release(released.spec, {})
    with pytest.raises(ArgumentError, match="must be finite"):
        Release(released.spec, released.tables, {"rate": float("inf")})


def test_tables_are_public_facts_of_the_workload():
    tables = (
        make_mechanism("identity")
        .release(population(1), workload=people_workload(TOTAL), rng=0)
        .tables
    )
    assert set(tables.counts) == {("county", "total"), ("tract", "total"), ("block", "total")}
